//! `new` and `init`: what they write, and that what fails leaves nothing behind. That their projects build is shown by the
//! tests of the whole.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

const MODEL: &str = "\
graph \"halves\" {
  symbol s0 \"batch\" in 2..9 from input 0 axis 0
  origin o0 = \"\" \"\" \"\"
  input %0 \"type\": f16[s0, 3]
  output %0 \"y\"
}
";

fn aoti(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-aoti"))
        .arg("aoti")
        .args(arguments)
        .current_dir(folder)
        .env("AOTI_CACHE_DIR", folder.join("cache"))
        .output()
        .unwrap()
}

#[track_caller]
fn ends(folder: &Path, arguments: &[&str], code: i32) -> String {
    let output = aoti(folder, arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

fn read(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn a_new_project_runs_its_model_with_the_crates_of_this_program() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("my-net.aoti"), MODEL).unwrap();
    ends(folder.path(), &["new", "Über uns/net", "--model", "my-net.aoti"], 0);
    let project = folder.path().join("Über uns/net");
    let manifest = read(&project, "Cargo.toml");
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("build-support");
    for (name, rest) in [("aoti-runtime", ", features = [\"half\"] }"), ("aoti-build", " }")] {
        let line = format!("{name} = {{ path = \"{}\"{rest}", sources.join(name).display());
        assert!(manifest.contains(&line), "{line} in {manifest}");
    }
    assert_eq!(read(&project, ".gitignore"), "/target\n");
    assert_eq!(read(&project, "models/my-net.aoti"), MODEL);
    let program = read(&project, "src/main.rs");
    for part in [
        "include_model!(\"my_net\")",
        "// type_: f16 of sizes [batch, 3]",
        "vec![aoti_runtime::f16::ZERO; 6]",
        "&[2, 3]",
        "outputs.y.as_slice()",
    ] {
        assert!(program.contains(part), "{part} in {program}");
    }
    assert!(ends(folder.path(), &["new", "Über uns/net"], 2).contains("cargo aoti init"));
}

#[test]
fn what_fails_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("bad.pt2"), "no model").unwrap();
    ends(folder.path(), &["new", "p", "--model", "bad.pt2"], 1);
    ends(folder.path(), &["new", "p", "--model", "absent.pt2"], 1);
    ends(folder.path(), &["new", "1p"], 2);
    ends(folder.path(), &["new", "p", "--sources", "."], 2);
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["bad.pt2"]);
}

#[test]
fn the_folder_that_one_is_in_becomes_a_project() {
    for command in [&["new", "."][..], &["init"]] {
        let folder = tempfile::Builder::new()
            .prefix("here")
            .rand_bytes(0)
            .tempdir_in(tempfile::tempdir().unwrap().keep());
        let folder = folder.unwrap();
        let said = ends(folder.path(), command, 0);
        assert!(said.contains("Created .\n"), "{said}");
        assert!(read(folder.path(), "Cargo.toml").contains("name = \"here\""));
        assert!(folder.path().join("models").is_dir());
        assert!(read(folder.path(), "build.rs").contains("Builder::from_manifest"));
    }
}

#[test]
fn a_project_that_is_there_gets_what_it_lacks_and_keeps_the_rest() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        fs::create_dir_all(folder.path().join("src")).unwrap();
        fs::write(folder.path().join(name), text).unwrap();
    };
    write(
        "Cargo.toml",
        "[package]\nname = \"mine\" # stays\nversion = \"1.0.0\"\nedition = \"2021\"\n[workspace]\n",
    );
    write("src/main.rs", "fn main() {}\n");
    write("build.rs", "fn main() {}\n");
    write("net.aoti", MODEL);
    let said = ends(folder.path(), &["init", "--model", "net.aoti"], 0);
    assert!(said.contains("Builder::from_manifest") && said.contains("include_model!(\"net\")"), "{said}");
    let manifest = read(folder.path(), "Cargo.toml");
    assert!(manifest.contains("\"mine\" # stays") && manifest.contains("aoti-build"), "{manifest}");
    assert_eq!(read(folder.path(), "src/main.rs"), "fn main() {}\n");
    assert_eq!(read(folder.path(), "build.rs"), "fn main() {}\n");
    ends(folder.path(), &["init", "--model", "net.aoti"], 0);
    assert_eq!(read(folder.path(), "Cargo.toml"), manifest);
}
