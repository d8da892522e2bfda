//! The typed Rust module and C header: goldens, and that real compilers take them without a warning.
//!
//! `UPDATE_GOLDENS=1` rewrites the goldens. The Rust modules are compiled and one is run, against the hand-written
//! model of the runtime's tests.

use aoti_compiler::{
    codegen::{
        bindings::{self, Link, Options, Sample, Samples, WeightsPlacement},
        bundle::Names,
        header,
        interface::{ConstantInterface, DimInterface, ElementType, Interface, ValueInterface},
    },
    dtype::DType,
    names,
};
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

struct Case {
    interface: Interface,
    package: String,
    options: Options,
}

impl Case {
    fn new(interface: Interface, weights: WeightsPlacement, link: Link) -> Case {
        Case {
            interface,
            package: String::new(),
            options: Options { weights, link, weights_digest: None, samples: None },
        }
    }

    fn identifier(&self) -> String {
        names::identifier(&self.interface.name)
    }

    fn rust(&self) -> String {
        self.print(|interface, names| bindings::print(interface, names, &self.options))
    }

    fn header(&self) -> String {
        self.print(header::print)
    }

    fn print(&self, print: impl Fn(&Interface, &Names<'_>) -> String) -> String {
        let (identifier, symbol) = (self.identifier(), names::symbol(&self.interface.name, &self.package));
        print(&self.interface, &Names { identifier: &identifier, symbol: &symbol, library: "" })
    }
}

fn dim(text: &str, min: i64, max: i64) -> DimInterface {
    DimInterface { expression: Some(text.to_owned()), min, max }
}

fn fixed(size: i64) -> DimInterface {
    DimInterface { expression: None, min: size, max: size }
}

fn value(name: &str, dtype: DType, dims: &[DimInterface]) -> ValueInterface {
    ValueInterface { name: name.to_owned(), element: ElementType::Number(dtype), dims: dims.to_vec() }
}

fn interface(name: &str, inputs: Vec<ValueInterface>, outputs: Vec<ValueInterface>) -> Interface {
    Interface {
        name: name.to_owned(),
        inputs,
        outputs,
        states: Vec::new(),
        constants: Vec::new(),
        weights_bytes: 0,
        expanded_bytes: 0,
        state_bytes: 0,
    }
}

/// An ordinary model with embedded weights, and samples beside it.
fn digits() -> Case {
    let batch = dim("batch", 1, 64);
    let image = value("image", DType::F32, &[batch.clone(), fixed(1), fixed(28), fixed(28)]);
    let logits = value("logits", DType::F32, &[batch, fixed(10)]);
    let mut interface = interface("digits", vec![image], vec![logits]);
    interface.weights_bytes = 64;
    interface.constants.push(ConstantInterface {
        name: "fc.bias".to_owned(),
        dtype: DType::F32,
        sizes: vec![10],
        tied: None,
        is_read: true,
    });
    let mut case = Case::new(interface, WeightsPlacement::Embedded, Link::Static);
    let sample = |sizes: &[u64], offset| Sample { index: 0, sizes: sizes.to_vec(), offset };
    let tensors = Ok((vec![sample(&[2, 1, 28, 28], 176)], vec![sample(&[2, 10], 6448)]));
    case.options.samples =
        Some(Samples { file: "models/digits.safetensors".to_owned(), tensors, needs_gpu: false });
    case
}

/// Every name that makes trouble, every element type, a state, and weights in a file.
fn hostile() -> Case {
    let seq = dim("seq", 2, i64::MAX);
    let complex = |name: &str, part: DType| ValueInterface {
        element: ElementType::Complex(part),
        ..value(name, part, std::slice::from_ref(&seq))
    };
    let inputs = vec![
        complex("spectrum", DType::F32),
        value("type", DType::F16, std::slice::from_ref(&seq)),
        value("self", DType::Bf16, &[dim("2*seq", 4, i64::MAX), seq.clone()]),
        value("a.b", DType::Bool, &[]),
        value("a b", DType::U8, &[fixed(0)]),
        value("入力", DType::I8, &[fixed(3)]),
        value("count", DType::I16, &[fixed(3)]),
        value("X", DType::I32, &[fixed(3)]),
        value("", DType::I64, &[fixed(3)]),
        value("*/ `|\n\\", DType::F64, &[fixed(3)]),
        value("inputs", DType::F32, &[dim("batch|`x`", 1, 9)]),
    ];
    let outputs = vec![
        complex("wide", DType::F64),
        complex("narrow", DType::F16),
        value("out[0]", DType::Bool, &[]),
        value("out[1]", DType::I64, std::slice::from_ref(&seq)),
        value("self", DType::F16, &[]),
    ];
    let mut interface = interface("Double `trouble` \u{202e}\\", inputs, outputs);
    interface.states =
        vec![value("cache.k", DType::F32, &[fixed(4), fixed(8)]), value("cache_k", DType::F32, &[])];
    interface.state_bytes = 192;
    interface.weights_bytes = 128;
    let (file, digest) = ("double-0123.weights".to_owned(), "0123".to_owned());
    let case = Case::new(interface, WeightsPlacement::Sidecar { file, digest }, Link::Dylib);
    Case { package: "troubled 0.1.0".to_owned(), ..case }
}

/// No inputs; weights from outside.
fn constant() -> Case {
    let mut interface = interface("constant", vec![], vec![value("out", DType::I64, &[fixed(2)])]);
    interface.weights_bytes = 64;
    Case::new(interface, WeightsPlacement::External, Link::Static)
}

/// No outputs, no weights, and a name that is a word of both languages.
fn silent() -> Case {
    let interface = interface("for", vec![value("x", DType::F32, &[])], vec![]);
    Case::new(interface, WeightsPlacement::External, Link::Elsewhere)
}

/// What `fake.c` of the runtime's tests is.
fn fake() -> Case {
    let batch = [dim("batch", 1, 1_000_000), fixed(3)];
    let outputs = vec![value("y", DType::F32, &batch), value("count", DType::I64, &[])];
    let mut interface = interface("fake", vec![value("x", DType::F32, &batch)], outputs);
    interface.states.push(value("count", DType::I64, &[]));
    interface.state_bytes = 64;
    interface.weights_bytes = 64;
    Case::new(interface, WeightsPlacement::Embedded, Link::Static)
}

/// Bindings alone.
fn unbuilt() -> Case {
    let x = value("x", DType::F32, &[fixed(3)]);
    Case::new(interface("un-built", vec![x.clone()], vec![x]), WeightsPlacement::Embedded, Link::Absent)
}

fn cases() -> [Case; 6] {
    [digits(), hostile(), constant(), silent(), fake(), unbuilt()]
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn goldens_are_as_printed() {
    let mut stale = Vec::new();
    for case in cases() {
        for (ending, text) in [("rs", case.rust()), ("h", case.header())] {
            let path = root().join("tests/goldens/bindings").join(format!("{}.{ending}", case.identifier()));
            if std::env::var_os("UPDATE_GOLDENS").is_some() {
                fs::write(&path, &text).unwrap();
            } else if fs::read_to_string(&path).ok().as_ref() != Some(&text) {
                stale.push(path.file_name().unwrap().to_owned());
            }
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} differ from what is printed: read the new ones with UPDATE_GOLDENS=1"
    );
}

/// Runs a command; its output is shown only if it fails.
fn succeed(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{command:?}\n{text}");
}

#[test]
fn headers_are_c11_and_cpp17() {
    let folder = tempfile::tempdir().unwrap();
    let mut user = String::new();
    for case in cases() {
        let name = format!("{}.h", case.identifier());
        fs::write(folder.path().join(&name), case.header()).unwrap();
        user += &format!("#include \"{name}\"\n");
    }
    user += "AotiTensor use(const float *x, const int64_t *sizes);\n\
             AotiTensor use(const float *x, const int64_t *sizes) { return digits_input_image(x, sizes); }\n\
             static const int n[DIGITS_INPUT_COUNT] = {DIGITS_OUTPUT_LOGITS};\n\
             const void *api(void);\n\
             const void *api(void) { return n[0] ? 0 : aoti_digits_api()->info->inputs[DIGITS_INPUT_IMAGE].name; }\n";
    for (compiler, language, standard) in [("cc", "c", "c11"), ("c++", "c++", "c++17")] {
        let path = folder.path().join(format!("user.{language}"));
        fs::write(&path, &user).unwrap();
        succeed(
            Command::new(compiler)
                .args(["-x", language, &format!("-std={standard}"), "-fsyntax-only", "-I"])
                .arg(root().join("include"))
                .args(["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"])
                .arg(&path),
        );
    }
}

const BUILD_RS: &str = r#"
fn main() {
    let out = std::env::var("OUT_DIR").unwrap();
    let here = std::env::var("CARGO_MANIFEST_DIR").unwrap();
    std::fs::create_dir_all(format!("{out}/aoti")).unwrap();
    for entry in std::fs::read_dir(format!("{here}/generated")).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        std::fs::copy(entry.path(), format!("{out}/aoti/{name}")).unwrap();
        println!("cargo::rustc-env=AOTI_MODEL_{}={out}/aoti/{name}", name.trim_end_matches(".rs"));
    }
    println!("cargo::rustc-env=AOTI_MODELS=those");
    println!("cargo::rerun-if-changed=generated");
    println!("cargo::rustc-link-search=native={here}");
}
"#;

/// The strictest of users.
const LIB_RS: &str = r#"//! Documented.
#![deny(warnings, missing_docs, missing_debug_implementations, unused, nonstandard_style, rust_2018_idioms, future_incompatible)]
#![forbid(unsafe_code)]
#![deny(unsafe_op_in_unsafe_fn, unreachable_pub, missing_copy_implementations)]
"#;

const MAIN_RS: &str = r#"
#![deny(warnings, missing_docs)]
#![forbid(unsafe_code)]
//! Runs the hand-written model through its generated module.
aoti_runtime::include_model!("fake");
aoti_runtime::include_model!("un_built");
aoti_runtime::include_model!("stale");

fn main() -> Result<(), aoti_runtime::Error> {
    let model = fake::Model::load()?;
    let mut state = model.state()?;
    let out = model.run(&fake::Inputs { x: (&[[1.0, 2.0, 3.0]]).into() }, &mut state)?;
    assert_eq!(out.y.sizes(), [1, 3]);
    assert_eq!(*out.y, [2.0, 3.0, 4.0]);
    assert_eq!(*out.count, [11]);

    let (mut out, mut workspace) = (fake::Outputs::default(), aoti_runtime::Workspace::new());
    let pool = aoti_runtime::ThreadPool::new(2);
    let data = vec![1.0; 300];
    let inputs = fake::Inputs { x: aoti_runtime::TensorView::new(&data, &[100, 3])? };
    for run in 12..20 {
        model.run_with(&inputs, &mut out, &mut state, &mut workspace, &pool)?;
        assert_eq!((&*out.count, out.y.sizes()), (&[run][..], &[100, 3][..]));
        assert!(out.y.iter().all(|y| *y == 2.0));
    }

    let bad = model.run(&fake::Inputs { x: (&[[1.0]]).into() }, &mut state).unwrap_err();
    assert_eq!(bad.to_string(), "input `x`: dimension 1 is 1, not 3");
    assert_eq!(model.untyped().info(), &fake::Model::info()?);

    let absent = un_built::Model::load().unwrap_err();
    assert!(absent.to_string().starts_with("only the bindings of `un-built` were built"), "{absent}");
    assert_eq!(un_built::Model::info().unwrap_err(), absent);

    // The same library, by a module that was written for another.
    let refused = [stale::Model::load().unwrap_err(), stale::Model::info().unwrap_err()];
    assert!(refused.iter().all(|error| error.code() == aoti_runtime::ErrorCode::Library), "{refused:?}");
    Ok(())
}
"#;

fn write_project(folder: &Path, edition: &str) {
    let runtime = root().join("../aoti-runtime");
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.0.0\"\nedition = \"{edition}\"\n\n[workspace]\n\n\
         [dependencies]\naoti-runtime = {{ path = {runtime:?}, features = [\"half\"] }}\n"
    );
    let mut lib = LIB_RS.to_owned();
    for case in cases() {
        let name = case.identifier();
        fs::write(folder.join(format!("generated/{name}.rs")), case.rust()).unwrap();
        lib += &format!("aoti_runtime::include_model!({name:?});\n");
    }
    let stale = fake();
    let names = Names { identifier: "stale", symbol: "fake", library: "of another build" };
    let stale = bindings::print(&stale.interface, &names, &stale.options);
    fs::write(folder.join("generated/stale.rs"), stale).unwrap();
    fs::write(folder.join("Cargo.toml"), manifest).unwrap();
    fs::write(folder.join("build.rs"), BUILD_RS).unwrap();
    fs::write(folder.join("src/lib.rs"), lib).unwrap();
    fs::write(folder.join("src/main.rs"), MAIN_RS).unwrap();
    // The same versions as ours, which are at hand without a network.
    fs::copy(root().join("../../Cargo.lock"), folder.join("Cargo.lock")).unwrap();
}

#[test]
fn modules_compile_in_every_edition_and_run() {
    let project = tempfile::tempdir().unwrap();
    let folder = project.path();
    fs::create_dir_all(folder.join("generated")).unwrap();
    fs::create_dir_all(folder.join("src")).unwrap();
    let cargo = |arguments: &[&str]| {
        // Its own environment: what cargo set for this test is not meant for the project.
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(folder).args(arguments).args(["--offline", "--quiet", "--target-dir"]);
        command.arg(Path::new(env!("CARGO_TARGET_TMPDIR")).join("bindings")).env_remove("RUSTFLAGS");
        succeed(&mut command);
    };
    // The library that declares every module is only checked: no native code is needed for that.
    for edition in ["2018", "2021", "2024"] {
        write_project(folder, edition);
        cargo(&["check", "--lib"]);
    }
    let object = folder.join("fake.o");
    succeed(
        Command::new("cc")
            .args(["-std=c11", "-O1", "-DFAKE_STATE", "-DFAKE_API=aoti_fake_api", "-c", "-I"])
            .arg(root().join("include"))
            .arg(root().join("../aoti-runtime/tests/fake.c"))
            .arg("-o")
            .arg(&object),
    );
    succeed(Command::new("ar").arg("rcs").arg(folder.join("libaoti_fake.a")).arg(&object));
    // The other modules' libraries are nowhere; the program has the one that it includes.
    fs::write(folder.join("src/lib.rs"), "").unwrap();
    cargo(&["run"]);
}
