//! Compiles many models into one shared library: one invocation of the compiler is much of the time.

use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_compiler::compile::{Options, compile};
use aoti_runtime::{Library, LoadOptions, Model, Weights};
use bytes::Bytes;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What processors a batch is compiled for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Processors {
    /// All of this architecture.
    All,
    /// Those like this machine's.
    ThisOne,
}

impl Processors {
    fn argument(self) -> &'static str {
        match self {
            Processors::All if cfg!(target_arch = "x86_64") => "-march=x86-64",
            Processors::All => "-march=armv8-a",
            Processors::ThisOne => "-march=native",
        }
    }
}

/// The C++ compiler: `CXX`, else `g++`. `None`, and a line that says so, where it does not run; a failure where
/// `AOTI_TEST_REQUIRE` names gcc.
pub fn compiler() -> Option<String> {
    let name = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    if Command::new(&name).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Some(name);
    }
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|tool| tool == "gcc"), "`{name}` is required and does not run");
    eprintln!("skipped: no C++ compiler `{name}`");
    None
}

/// The name of a model of a batch.
fn name(number: usize) -> String {
    format!("g{number}")
}

/// The address sanitizer's library, which a process must have loaded before [`build_checked`]. `None`, and a line that
/// says so, where the compiler has none.
pub fn sanitizer() -> Option<PathBuf> {
    let compiler = compiler()?;
    let output = Command::new(&compiler).arg("-print-file-name=libasan.so").output().ok()?;
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    if path.is_absolute() && path.is_file() {
        return Some(path);
    }
    eprintln!("skipped: `{compiler}` has no address sanitizer to load");
    None
}

/// Compiles models, of any format, and loads them.
pub fn build(
    compiler: &str,
    models: &[Bytes],
    processors: Processors,
    folder: &Path,
) -> Result<Vec<Model>, String> {
    build_with(compiler, models, processors, folder, &of_kernels(compiler), &["-O0"])
}

/// Options for kernels; of interfaces nothing depends on the speed. The analysis of what pointers may point to is a fifth
/// of gcc's time, and its place is the builds of users, which other tests make.
fn of_kernels(compiler: &str) -> Vec<&'static str> {
    if compiler.contains("clang") { vec!["-O1"] } else { vec!["-O1", "-fno-tree-pta"] }
}

/// As [`build`], under the sanitizers of addresses and of undefined behaviour: what they find ends the process. See
/// [`sanitizer`]. What a process before this one built of the same models in the same folder is loaded as it is.
pub fn build_checked(
    compiler: &str,
    models: &[Bytes],
    processors: Processors,
    folder: &Path,
) -> Result<Vec<Model>, String> {
    let sanitizers = ["-g1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    let mut of_kernels = of_kernels(compiler);
    // Checks of addresses as calls: the same is checked, in less than half of the compiler's time.
    if !compiler.contains("clang") {
        of_kernels.extend(["--param", "asan-instrumentation-with-call-threshold=0"]);
    }
    of_kernels.extend(sanitizers);
    let of_interfaces = [&["-O0"], sanitizers.as_slice()].concat();
    build_with(compiler, models, processors, folder, &of_kernels, &of_interfaces)
}

fn build_with(
    compiler: &str,
    models: &[Bytes],
    processors: Processors,
    folder: &Path,
    of_kernels: &[&str],
    of_interfaces: &[&str],
) -> Result<Vec<Model>, String> {
    let bundles = models.iter().enumerate().map(|(number, model)| bundle(number, model));
    let bundles = bundles.collect::<Result<Vec<_>, _>>()?;
    for (number, bundle) in bundles.iter().enumerate() {
        write_files(number, bundle, folder)?;
    }
    let library = folder.join("all.so");
    if !library.exists() {
        link(compiler, &bundles, processors, folder, of_kernels, of_interfaces)?;
    }
    bundles.iter().enumerate().map(|(number, bundle)| load(&library, number, bundle)).collect()
}

/// Makes `all.so` of the bundles' files, which lie in the folder.
fn link(
    compiler: &str,
    bundles: &[SourceBundle],
    processors: Processors,
    folder: &Path,
    of_kernels: &[&str],
    of_interfaces: &[&str],
) -> Result<(), String> {
    for (name, text) in [("kernels.cpp", kernels(bundles)), ("interfaces.cpp", interfaces(bundles))] {
        fs::write(folder.join(name), text).map_err(|error| error.to_string())?;
    }
    let run = |options: &[&str], arguments: &[&str]| {
        let output = Command::new(compiler)
            .args(["-std=c++17", "-fPIC", processors.argument(), "-fno-exceptions", "-fno-rtti"])
            .args(options)
            .args([
                "-fno-math-errno",
                "-fno-trapping-math",
                "-ffp-contract=off",
                "-fno-strict-aliasing",
                "-w",
            ])
            .args(["-DAOTI_LEVEL_NS=native", "-Ig0/include"])
            .args(arguments)
            .current_dir(folder)
            // What this process needs loaded the compiler does not.
            .env_remove("LD_PRELOAD")
            .output()
            .map_err(|error| format!("`{compiler}`: {error}"))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("generated code does not compile: {said}")) }
    };
    run(of_interfaces, &["-c", "interfaces.cpp"])?;
    run(of_kernels, &["interfaces.o", "kernels.cpp", "-shared", "-o", "linking.so"])?;
    // A process that is killed while it links leaves nothing that looks whole.
    fs::rename(folder.join("linking.so"), folder.join("all.so")).map_err(|error| error.to_string())
}

/// What models are compiled with for this machine, where their weights are not wanted in the library.
pub fn options(name: String) -> Options {
    Options::new(name, ["native"]).with_embedded_weights(false)
}

fn bundle(number: usize, model: &Bytes) -> Result<SourceBundle, String> {
    let options = options(name(number));
    compile(model.clone(), &options).map_err(|findings| format!("model {number}: {findings}"))
}

fn write_files(number: usize, bundle: &SourceBundle, folder: &Path) -> Result<(), String> {
    for file in &bundle.files {
        let is_shared = file.name.starts_with("include/");
        if is_shared && number > 0 {
            continue;
        }
        let path = folder.join(name(number)).join(&file.name);
        let parent = path.parent().expect("the file is in a folder");
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, &file.text))
            .map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// The file of a bundle with its interface.
const INTERFACE: &str = "model.cpp";

/// Whether a file holds kernels.
fn is_kernels(name: &str) -> bool {
    name.ends_with(".cpp") && name != INTERFACE
}

/// One translation unit of all kernels: system and run-time headers first, then each model in a namespace of its own.
fn kernels(bundles: &[SourceBundle]) -> String {
    let mut unit = String::from("#include <string.h>\n");
    let shared = bundles[0].files.iter().filter_map(|file| file.name.strip_prefix("include/"));
    let is_for_hosts = |name: &&str| !name.ends_with("x86_gcc.h");
    let mut headers: Vec<&str> = shared.filter(is_for_hosts).collect();
    // `nest.h` is what every kernel begins with.
    headers.sort_by_key(|name| (!name.ends_with("/nest.h"), *name));
    headers.iter().for_each(|name| unit.push_str(&format!("#include \"{name}\"\n")));
    for (number, bundle) in bundles.iter().enumerate() {
        let _ = writeln!(unit, "namespace model_{number} {{");
        for source in bundle.files.iter().filter(|file| is_kernels(&file.name)) {
            let _ = writeln!(unit, "#include \"{}/{}\"", name(number), source.name);
        }
        unit.push_str("}\n");
    }
    unit
}

/// One translation unit of all interfaces: their headers first, then each in a namespace of its own.
fn interfaces(bundles: &[SourceBundle]) -> String {
    let interfaces =
        bundles.iter().flat_map(|bundle| bundle.files.iter().filter(|file| file.name == INTERFACE));
    let includes: BTreeSet<&str> =
        interfaces.flat_map(|file| file.text.lines().filter(|line| line.starts_with("#include"))).collect();
    let mut unit = String::new();
    includes.iter().for_each(|line| unit.push_str(&format!("{line}\n")));
    for number in 0..bundles.len() {
        let _ = writeln!(unit, "namespace model_{number} {{\n#include \"{}/{INTERFACE}\"\n}}", name(number));
    }
    unit
}

fn load(library: &Path, number: usize, bundle: &SourceBundle) -> Result<Model, String> {
    let mut bytes = vec![0u8; usize::try_from(bundle.weights.bytes).map_err(|error| error.to_string())?];
    for (offset, data) in &bundle.weights.segments {
        let start = usize::try_from(*offset).map_err(|error| error.to_string())?;
        bytes[start..start + data.len()].copy_from_slice(data);
    }
    let weights = Weights::bytes(&bytes).map_err(|error| error.to_string())?;
    // SAFETY: the library was built of this bundle.
    let library = unsafe { Library::open(library, &bundle.exported_symbol()) };
    let library = library.map_err(|error| error.to_string())?;
    library
        .load(LoadOptions { weights, ..LoadOptions::default() })
        .map_err(|error| format!("model {number}: {error}"))
}
