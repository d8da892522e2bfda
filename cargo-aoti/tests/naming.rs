//! Models, dimensions and outputs have the same names in every command, and so have the objects in which failures are told.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

const MODEL: &str = "\
graph \"scaled\" {
  symbol s0 \"image_d0\" in 1..1024 from input 0 axis 0
  origin o0 = \"aten.mul.Tensor of mul\" \"m.py:3 in forward: x * x\" \"\"
  input %0 \"x\": f32[s0, 3]
  %1: f32[s0, 3] = mul %0, %0 @ o0
  output %1 \"y\"
}
";

const NAMES: &str = "
[package.metadata.aoti.models.petnet]
path = \"models/exported.aoti\"
outputs = [\"logits\"]
dims = { image_d0 = \"batch\" }
";

fn aoti(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-aoti"));
    command.arg("aoti").args(arguments).current_dir(folder).env("AOTI_CACHE_DIR", folder.join("cache"));
    command.env_remove("CARGO_TARGET_DIR").output().unwrap()
}

#[track_caller]
fn ends(folder: &Path, arguments: &[&str], code: i32) -> (String, String) {
    let output = aoti(folder, arguments);
    let (out, err) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {out}{err}");
    (out, err)
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let package = "[package]\nname = \"pets\"\nversion = \"0.1.0\"\nedition = \"2024\"\n";
    write(folder.path(), "Cargo.toml", &format!("{package}{NAMES}"));
    write(folder.path(), "src/main.rs", "fn main() {}\n");
    write(folder.path(), "models/exported.aoti", MODEL);
    folder
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn every_command_knows_the_projects_names() {
    let folder = project();
    let folder = folder.path();
    for model in ["petnet", "models/exported.aoti"] {
        let (said, _) = ends(folder, &["inspect", model], 0);
        assert!(said.contains("model petnet") && said.contains("batch in 1..=1024"), "{said}");
        assert!(said.contains("logits: f32"), "{said}");
        let (said, _) = ends(folder, &["run", model, "--dim", "batch=2"], 0);
        assert!(said.starts_with("logits: f32 [2, 3]"), "{said}");
        let (said, _) =
            ends(folder, &["bench", model, "--dim", "batch=2", "--secs", "0.01", "--format", "json"], 0);
        assert_eq!(objects(&said)[0]["reason"], "aoti-bench");
        let (_, said) = ends(folder, &["bench", model, "--dim", "image_d0=2"], 2);
        assert!(said.contains("the model has no dimension `image_d0`; it has `batch`"), "{said}");
    }
    let (said, _) = ends(folder, &["verify", "petnet"], 0);
    assert!(said.contains("1 passed"), "{said}");
    let (_, said) = ends(folder, &["inspect", "petnett"], 1);
    assert!(
        said.contains("neither a file nor a model of the project `petnett`; did you mean `petnet`?"),
        "{said}"
    );
    // Outside of the project the file has the names of its manifest still.
    let elsewhere = tempfile::tempdir().unwrap();
    let file = folder.join("models/exported.aoti");
    let (said, _) = ends(elsewhere.path(), &["inspect", file.to_str().unwrap()], 0);
    assert!(said.contains("logits: f32[batch in 1..=1024, 3]"), "{said}");
}

#[test]
fn a_member_of_a_workspace_goes_before_another_with_a_model_of_the_same_name() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "Cargo.toml", "[workspace]\nmembers = [\"pa\", \"pb\"]\nresolver = \"2\"\n");
    for (member, output) in [("pa", "of_a"), ("pb", "of_b")] {
        let package = format!("[package]\nname = \"{member}\"\nversion = \"0.1.0\"\nedition = \"2024\"\n");
        write(folder.path(), &format!("{member}/Cargo.toml"), &package);
        write(folder.path(), &format!("{member}/src/lib.rs"), "");
        let model = MODEL.replace("output %1 \"y\"", &format!("output %1 \"{output}\""));
        write(folder.path(), &format!("{member}/models/net.aoti"), &model);
    }
    for (member, output) in [("pa", "of_a"), ("pb", "of_b")] {
        let (said, _) = ends(&folder.path().join(member), &["inspect", "net"], 0);
        assert!(said.contains(output), "{said}");
    }
    let (_, said) = ends(folder.path(), &["build", "--color", "never"], 0);
    assert!(said.contains("Compiling net (pa)") && said.contains("Compiling net (pb)"), "{said}");
}

#[test]
fn failures_are_objects_in_every_command() {
    let folder = project();
    let folder = folder.path();
    write(folder, "bad.aoti", "graph \"bad\" {\n  input %0 \"x\": f3[2]\n}\n");
    let commands: [&[&str]; 8] = [
        &["run", "bad.aoti"],
        &["bench", "bad.aoti"],
        &["inspect", "bad.aoti"],
        &["inspect", "bad.aoti", "--emit", "graph"],
        &["tune", "bad.aoti"],
        &["verify", "nowhere.aoti"],
        &["new", "other", "--model", "bad.aoti"],
        &["explain", "AOTI9999"],
    ];
    let keys = ["code", "column", "file", "help", "level", "line", "message", "reason", "rendered"];
    for command in commands {
        let output = aoti(folder, &[command, &["--format", "json"]].concat());
        assert_ne!(output.status.code(), Some(0), "{command:?}");
        let told = objects(&String::from_utf8(output.stdout).unwrap());
        let Some(Value::Object(finding)) = told.last() else { panic!("{command:?} tells nothing") };
        assert!(finding.keys().all(|key| keys.contains(&key.as_str())) && finding.len() == keys.len());
        assert_eq!(finding["reason"], "aoti-diagnostic", "{command:?}");
        // For people it is on stderr as ever.
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(finding["message"].as_str().unwrap()), "{command:?}: {said}");
        if command.contains(&"bad.aoti") && command[0] != "tune" {
            assert_eq!(finding["code"], "AOTI0009", "{command:?}: {finding:?}");
        }
    }
}

#[test]
fn whatever_inspect_shows_has_a_form_for_programs() {
    let folder = project();
    let of = |arguments: &[&str]| {
        let (said, _) =
            ends(folder.path(), &[&["inspect", "petnet", "--format", "json"], arguments].concat(), 0);
        objects(&said)
    };
    let text = of(&["--emit", "graph"]);
    assert_eq!((&text[0]["reason"], &text[0]["stage"]), (&"aoti-text".into(), &"graph".into()));
    assert!(text[0]["text"].as_str().unwrap().contains("mul"));
    assert!(of(&["--explain-fusion"]).iter().all(|one| one["reason"] == "aoti-fusion"));
    assert_eq!(of(&[])[0]["reason"], "aoti-signature");
}

#[test]
fn new_projects_may_have_operators_of_their_own() {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("examples/operators");
    let model = examples.join("models/compressor.pt2");
    let model = model.to_str().unwrap();
    let (_, said) = ends(folder.path(), &["new", "mine", "--model", model], 1);
    assert!(said.contains("is not supported") && said.contains("cargo aoti init mine --model"), "{said}");

    ends(folder.path(), &["new", "mine"], 0);
    let project = folder.path().join("mine");
    let manifest = fs::read_to_string(examples.join("Cargo.toml")).unwrap();
    let (_, operators) = manifest.split_once("[package.metadata.aoti.operators").unwrap();
    let (operators, _) = operators.split_once("[dependencies]").unwrap();
    let own = fs::read_to_string(project.join("Cargo.toml")).unwrap();
    write(&project, "Cargo.toml", &format!("{own}\n[package.metadata.aoti.operators{operators}"));
    for file in fs::read_dir(examples.join("operators")).into_iter().flatten().flatten() {
        fs::create_dir_all(project.join("operators")).unwrap();
        fs::copy(file.path(), project.join("operators").join(file.file_name())).unwrap();
    }
    fs::remove_file(project.join("src/main.rs")).unwrap();
    ends(folder.path(), &["init", "mine", "--model", model], 0);
    let program = fs::read_to_string(project.join("src/main.rs")).unwrap();
    let function = "fn sound_envelope(x: TensorView<f32>, attack: f64, release: f64, y: TensorViewMut<f32>)";
    assert!(program.contains("aoti_runtime::operator!") && program.contains(function), "{program}");
}
