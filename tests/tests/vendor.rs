//! Sources of a model in a folder of their own: they build with a C++ compiler and make, to what a build here makes, and as a
//! crate.

use std::path::Path;
use std::process::Command;

use aoti_tests::models::SCALED;
use aoti_tests::project::Project;
use aoti_tests::subcommand::{Ended, cargo, workspace};

/// A project with two models.
fn project() -> Project {
    let project = Project::new("[package.metadata.aoti]\ncpu = [\"x86-64\", \"x86-64-v3\"]\n");
    project.write("models/scaled.aoti", SCALED);
    let other = SCALED.replace("\"scaled\"", "\"other\"").replace("1.0, 2.0, 3.0", "2.0, 4.0, 6.0");
    project.write("models/other.aoti", other);
    project
}

/// Runs make in a vendored folder, with nothing but the system's programs on the path.
#[track_caller]
fn make(folder: &Path) {
    let mut command = Command::new("make");
    command.current_dir(folder).env_clear().env("PATH", "/usr/bin:/bin");
    Ended::of(&mut command).succeeded();
}

#[test]
fn a_folder_of_sources_builds_with_make_to_the_same_library() {
    let project = project();
    project.build();
    for name in ["scaled", "other"] {
        Ended::of(&mut project.aoti(&["vendor", name, &format!("out/{name}")])).succeeded();
        make(&project.folder().join("out").join(name));
        let built = project.library(name);
        let vendored = project.folder().join("out").join(name).join("out").join(built.file_name().unwrap());
        assert!(std::fs::read(&vendored).unwrap() == std::fs::read(&built).unwrap(), "{name}: other bytes");
    }
    let libraries = ["scaled", "other"].map(|name| {
        let name = project.library(name).file_name().unwrap().to_owned();
        name.into_string().unwrap()
    });
    let out = project.folder().join("out");
    let program = out.join("main");
    let mut compile = Command::new("g++");
    compile.arg(workspace().join("tests/programs/two_models.cc")).arg("-o").arg(&program).current_dir(&out);
    compile.args(["-Iscaled/include", "-Iother/include"]);
    compile.arg(format!("scaled/out/{}", libraries[0])).arg(format!("other/out/{}", libraries[1])).arg("-lm");
    Ended::of(&mut compile).succeeded();
    assert_eq!(Ended::of(&mut Command::new(&program)).succeeded().stdout, "34 68\n");

    // Again into the same folder, with fewer files, but never into somebody else's.
    Ended::of(&mut project.aoti(&["vendor", "scaled", "out/scaled"])).succeeded();
    let ended = Ended::of(&mut project.aoti(&["vendor", "scaled", "src"]));
    assert_eq!(ended.code, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("has other files in it"), "{}", ended.stderr);
    let ended = Ended::of(&mut project.aoti(&["vendor", "scale", "out/new"]));
    assert!(ended.stderr.contains("did you mean `scaled`?"), "{}", ended.stderr);
}

#[test]
fn a_folder_of_sources_is_a_crate() {
    let project = project();
    Ended::of(&mut project.aoti(&["vendor", "scaled", "vendored"])).succeeded();
    let folder = project.folder().join("user");
    let write = |name: &str, text: &str| project.write(&format!("user/{name}"), text);
    write(
        "Cargo.toml",
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\n\
         scaled-model = { path = \"../vendored\" }\naoti-runtime = \"*\"\n[workspace]\n",
    );
    write(
        "src/main.rs",
        "use aoti_runtime::TensorView;\nuse scaled_model::scaled;\n\
         fn main() -> Result<(), aoti_runtime::Error> {\n    let model = scaled::Model::load()?;\n    \
         let x = TensorView::new(&[1.0_f32; 6], &[2, 3])?;\n    let outputs = model.run(&scaled::Inputs { x })?;\n    \
         println!(\"{:?}\", outputs.y.as_slice());\n    Ok(())\n}\n",
    );
    let runtime = workspace().join("build-support/aoti-runtime");
    let mut command = cargo(&folder, &project.folder().join("cache"));
    command.args(["run", "--quiet", "--offline", "--config"]);
    command.arg(format!("patch.crates-io.aoti-runtime.path={:?}", runtime.display().to_string()));
    let said = Ended::of(&mut command).succeeded();
    assert_eq!(said.stdout, "[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]\n");
}
