//! A user's project, from an empty folder to a run: the build script compiles a model, the program runs it.
//!
//! Compiles the libraries as a user's build does, in a target folder that later runs of the tests use again.

use std::path::{Path, PathBuf};
use std::process::Output;

const MODEL: &str = "\
graph \"anything\" {
  symbol s0 \"batch\" in 1..1024 from input 0 axis 0
  origin o0 = \"\" \"\" \"\"
  const c0 \"weight\": f32[3] = [1.0, 2.0, 3.0]
  input %0 \"x\": f32[s0, 3]
  %1: f32[3] = constant c0
  %2: f32[s0, 3] = view %1 [i1]
  %3: f32[s0, 3] = mul %0, %2
  output %3 \"y\"
}
";

const BUILD: &str = "\
fn main() -> Result<(), aoti_build::Error> {
    aoti_build::Builder::from_manifest()?.build()
}
";

const MAIN: &str = "\
#![deny(warnings, missing_docs)]
//! Runs two models.

aoti_runtime::include_model!(\"scaled\");
aoti_runtime::include_model!(\"beside\");

fn main() -> Result<(), aoti_runtime::Error> {
    let x = [[1.0f32, 1.0, 1.0], [2.0, 2.0, 2.0]];
    let y = scaled::Model::load()?.run(&scaled::Inputs { x: (&x).into() })?.y;
    let z = beside::Model::load()?.run(&beside::Inputs { x: y.view() })?.y;
    println!(\"{:?} {:?}\", y.as_slice(), z.as_slice());
    Ok(())
}
";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the tests are in the workspace").to_owned()
}

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let root = workspace();
    let manifest = format!(
        "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\naoti-runtime = {{ path = {:?} }}\n\
         [build-dependencies]\naoti-build = {{ path = {:?} }}\n\
         [package.metadata.aoti.models.scaled]\npath = \"models/scaled.aoti\"\n\
         [package.metadata.aoti.models.beside]\npath = \"models/scaled.aoti\"\nweights = \"sidecar\"\n\
         [workspace]\n",
        root.join("build-support/aoti-runtime"),
        root.join("build-support/aoti-build"),
    );
    write(folder.path(), "Cargo.toml", &manifest);
    std::fs::copy(root.join("Cargo.lock"), folder.path().join("Cargo.lock")).unwrap();
    write(folder.path(), "build.rs", BUILD);
    write(folder.path(), "src/main.rs", MAIN);
    write(folder.path(), "models/scaled.aoti", MODEL);
    folder
}

fn cargo(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    let mut command = aoti_tests::subcommand::cargo(folder, &folder.join("cache"));
    command.args(arguments).envs(variables.iter().copied()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_project_compiles_checks_runs_and_follows_its_model() {
    let folder = project();
    let run = || {
        let output = cargo(folder.path(), &["run", "--quiet"], &[]);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(run(), "[1.0, 2.0, 3.0, 2.0, 4.0, 6.0] [1.0, 4.0, 9.0, 2.0, 8.0, 18.0]\n");

    write(folder.path(), "models/scaled.aoti", &MODEL.replace("[1.0, 2.0, 3.0]", "[5.0, 2.0, 3.0]"));
    assert_eq!(run(), "[5.0, 2.0, 3.0, 10.0, 4.0, 6.0] [25.0, 4.0, 9.0, 50.0, 8.0, 18.0]\n");

    write(folder.path(), "models/scaled.aoti", "graph {");
    let output = cargo(folder.path(), &["build"], &[]);
    let said = text(&output.stderr);
    assert!(!output.status.success() && said.contains("AOTI0009"), "{said}");

    write(folder.path(), "models/scaled.aoti", MODEL);
    let without_tools = [("AOTI_BUILD", "bindings"), ("CXX", "/nowhere/c++")];
    let output = cargo(folder.path(), &["check"], &without_tools);
    assert!(output.status.success(), "{}", text(&output.stderr));
}
