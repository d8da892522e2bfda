//! Models of one name in one program: of two packages, and of two versions of one package.
//!
//! Compiles the libraries as a user's build does, in a target folder that later runs of the tests use again.

use aoti_tests::native::defined_symbols;
use aoti_tests::subcommand::{Ended, aoti, cargo, projects, workspace};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Packages by folder, name and version, with what their model `net` multiplies by.
const PACKAGES: [(&str, &str, &str, f32); 4] = [
    ("a", "alpha", "0.1.0", 2.0),
    ("b", "beta", "0.1.0", 30.0),
    ("c1", "gamma", "0.1.0", 500.0),
    ("c2", "gamma", "0.2.0", 7000.0),
];

fn model(factor: f32) -> String {
    format!(
        "graph \"net\" {{\n  origin o0 = \"\" \"\" \"\"\n  const c0 \"weight\": f32[3] = [{factor:?}, {factor:?}, {factor:?}]\n  \
         input %0 \"x\": f32[3]\n  %1: f32[3] = constant c0\n  %2: f32[3] = mul %0, %1\n  output %2 \"y\"\n}}\n"
    )
}

const BUILD: &str = "\
fn main() -> Result<(), aoti_build::Error> {
    aoti_build::Builder::from_manifest()?.build()
}
";

const LIB: &str = "\
aoti_runtime::include_model!(\"net\");

pub fn first(x: f32) -> Result<f32, aoti_runtime::Error> {
    let x = [x; 3];
    Ok(net::Model::load()?.run(&net::Inputs { x: (&x).into() })?.y.as_slice()[0])
}
";

const MAIN: &str = "\
fn main() -> Result<(), aoti_runtime::Error> {
    println!(\"{} {} {} {}\", a::first(1.0)?, b::first(1.0)?, c1::first(1.0)?, c2::first(1.0)?);
    Ok(())
}
";

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

fn project(folder: &Path) {
    let root = workspace();
    let runtime = root.join("build-support/aoti-runtime");
    let build = root.join("build-support/aoti-build");
    let mut dependencies = String::new();
    for (place, name, version, factor) in PACKAGES {
        dependencies += &format!("{place} = {{ path = \"../{place}\", package = \"{name}\" }}\n");
        let manifest = format!(
            "[package]\nname = \"{name}\"\nversion = \"{version}\"\nedition = \"2024\"\n\
             [dependencies]\naoti-runtime = {{ path = {runtime:?} }}\n\
             [build-dependencies]\naoti-build = {{ path = {build:?} }}\n\
             [package.metadata.aoti]\ncpu = [\"native\"]\n\
             [package.metadata.aoti.models.net]\npath = \"models/net.aoti\"\n"
        );
        write(folder, &format!("{place}/Cargo.toml"), &manifest);
        write(folder, &format!("{place}/build.rs"), BUILD);
        write(folder, &format!("{place}/src/lib.rs"), LIB);
        write(folder, &format!("{place}/models/net.aoti"), &model(factor));
    }
    let manifest = format!(
        "[package]\nname = \"program\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\naoti-runtime = {{ path = {runtime:?} }}\n{dependencies}[workspace]\n"
    );
    // Beside them: packages below it would be of its workspace, which has each name once.
    write(folder, "program/Cargo.toml", &manifest);
    write(folder, "program/src/main.rs", MAIN);
    fs::copy(root.join("Cargo.lock"), folder.join("program/Cargo.lock")).unwrap();
}

/// The same program with two packages that differ in nothing but where they come from: one is a path, the other of a
/// registry (which a folder stands in for).
fn project_with_twins(folder: &Path) {
    project(folder);
    for (place, factor) in [("a", 2.0), ("program/registry/twin", 30.0)] {
        let manifest = fs::read_to_string(folder.join("b/Cargo.toml")).unwrap();
        write(folder, &format!("{place}/Cargo.toml"), &manifest.replace("\"beta\"", "\"twin\""));
        write(folder, &format!("{place}/build.rs"), BUILD);
        write(folder, &format!("{place}/src/lib.rs"), LIB);
        write(folder, &format!("{place}/models/net.aoti"), &model(factor));
    }
    write(folder, "program/registry/twin/.cargo-checksum.json", "{\"files\": {}}");
    let index = "\"https://registry.invalid/index\"";
    let config = format!(
        "[registries.elsewhere]\nindex = {index}\n[source.elsewhere]\nregistry = {index}\nreplace-with = \"folder\"\n\
         [source.folder]\ndirectory = \"registry\"\n"
    );
    write(folder, "program/.cargo/config.toml", &config);
    let [runtime, build] =
        ["aoti-runtime", "aoti-build"].map(|name| workspace().join("build-support").join(name));
    // What a package of a registry needs is looked for there too.
    let patch = format!(
        "[patch.{index}]\naoti-runtime = {{ path = {runtime:?} }}\naoti-build = {{ path = {build:?} }}\n"
    );
    let manifest = format!(
        "[package]\nname = \"twins\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
         [dependencies]\naoti-runtime = {{ path = {runtime:?} }}\na = {{ path = \"../a\", package = \"twin\" }}\n\
         b = {{ version = \"0.1.0\", registry = \"elsewhere\", package = \"twin\" }}\n{patch}"
    );
    write(folder, "program/Cargo.toml", &manifest);
    let main = "fn main() {\n    println!(\"{:?} {:?}\", a::first(1.0).is_ok(), b::first(1.0).is_ok());\n    \
        for failed in [a::first(1.0), b::first(1.0)].iter().filter_map(|result| result.as_ref().err()) {\n        \
        println!(\"{failed}\");\n    }\n}\n";
    write(folder, "program/src/main.rs", main);
}

/// A build script is not told where its package comes from, and its folder differs from machine to machine. So the symbols
/// of such two are one, and what must not be is that one of them computes with the other's model.
#[test]
fn packages_of_one_name_and_version_never_run_each_others_models() {
    let folder = tempfile::tempdir().unwrap();
    project_with_twins(folder.path());
    let mut command = cargo(&folder.path().join("program"), &folder.path().join("cache"));
    let said = Ended::of(command.args(["run", "--quiet"])).succeeded().stdout;
    let (loaded, message) = said.split_once('\n').unwrap();
    assert!(["true false", "false true"].contains(&loaded), "{said}");
    assert!(message.contains("two packages of one name and version have a model of this name"), "{said}");
}

fn libraries(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            libraries(&path, found);
        } else if name.starts_with("libaoti_net_") && name.ends_with(".a") {
            found.push(path);
        }
    }
}

#[test]
fn each_package_runs_its_own_model() {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let mut command = cargo(&folder.path().join("program"), &folder.path().join("cache"));
    command.args(["run", "--quiet"]);
    assert_eq!(Ended::of(&mut command).succeeded().stdout, "2 30 500 7000\n");

    let mut collect = aoti(&folder.path().join("program"), &folder.path().join("cache"));
    collect.args(["collect", "../all", "--offline"]).env("CARGO_TARGET_DIR", projects());
    collect.env("CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG", "0");
    Ended::of(&mut collect).succeeded();
    let mut functions = BTreeSet::new();
    for header in fs::read_dir(folder.path().join("all/include")).unwrap().map(|entry| entry.unwrap().path())
    {
        let name = header.file_name().unwrap().to_string_lossy().into_owned();
        if let Some(stem) = name.strip_suffix(".h") {
            let function = format!("{stem}_api(void);");
            assert!(fs::read_to_string(header).unwrap().contains(&function), "{function}");
            functions.insert(function);
        }
    }
    assert_eq!(functions.len(), PACKAGES.len(), "{functions:?}");
    assert!(!functions.contains("aoti_net_api(void);"), "whose is it? {functions:?}");
}

#[test]
fn libraries_of_one_name_share_no_symbol_that_means_different_things() {
    let folder = tempfile::tempdir().unwrap();
    project(folder.path());
    let mut symbols = BTreeSet::new();
    for (place, ..) in PACKAGES {
        let mut build = aoti(&folder.path().join(place), &folder.path().join("cache"));
        Ended::of(build.args(["build", "--target-dir", place])).succeeded();
        let mut found = Vec::new();
        libraries(&folder.path().join(place).join(place), &mut found);
        let [library] = found.as_slice() else { panic!("{found:?}") };
        let has_digest =
            |symbol: &str| symbol.as_bytes().windows(12).any(|part| part.iter().all(u8::is_ascii_hexdigit));
        for symbol in defined_symbols(library) {
            assert!(has_digest(&symbol), "{symbol}");
            // Kernels are called after their own text: those of one name are one thing.
            assert!(
                symbol.contains("_run_") || symbol.contains("_scratch_") || symbols.insert(symbol.clone()),
                "{symbol}"
            );
        }
    }
}
