//! What users know from cargo means the same here: its flags, its settings, forms of output, and how errors read.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use serde_json::Value;

const MODEL: &str = "\
graph \"scaled\" {
  symbol s0 \"batch\" in 1..1024 from input 0 axis 0
  origin o0 = \"\" \"\" \"\"
  input %0 \"x\": f32[s0, 3]
  %1: f32[s0, 3] = mul %0, %0
  output %1 \"y\"
}
";

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-aoti"));
    command.arg("aoti").args(arguments).current_dir(folder).env("AOTI_CACHE_DIR", folder.join("cache"));
    for name in ["CARGO_TARGET_DIR", "CARGO_BUILD_TARGET", "CARGO_TERM_QUIET", "CARGO_TERM_COLOR"] {
        command.env_remove(name);
    }
    command
}

fn aoti(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().unwrap()
}

fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// A project without models, for which no native tool is needed.
fn project(table: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let package = "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[features]\nx = []\n";
    write(folder.path(), "Cargo.toml", &format!("{package}{table}"));
    write(folder.path(), "src/main.rs", "fn main() {}\n");
    folder
}

fn lines(output: &Output) -> Vec<Value> {
    let text = out(output);
    text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[test]
fn cargos_flags_are_known() {
    let folder = project("");
    let flags =
        ["b", "-vv", "-m", "Cargo.toml", "-F", "x", "--keep-going", "-j", "default", "--all-features"];
    let output = aoti(folder.path(), &flags);
    assert_eq!(code(&output), 0, "{}", err(&output));
    assert_eq!(code(&aoti(folder.path(), &["build", "-j", "-1"])), 0);
    assert_eq!(code(&aoti(folder.path(), &["build", "-j", "0"])), 2);
    let output = aoti(folder.path(), &["build", "--manifest-path", "."]);
    assert!(
        code(&output) == 2
            && err(&output).contains("is a directory but expected a file; `./Cargo.toml` exists")
    );
}

#[test]
fn features_that_no_package_has_are_refused() {
    let folder = project("yes = []\n");
    for features in ["x", "p/x", "x,yes", "x yes"] {
        let output = aoti(folder.path(), &["build", "-F", features]);
        assert_eq!(code(&output), 0, "{features}: {}", err(&output));
    }
    for features in ["yess", "p/yess", "x,yess", "q/x"] {
        let output = aoti(folder.path(), &["build", "-F", features]);
        let said = err(&output);
        assert_eq!(code(&output), 2, "{features}: {said}");
        assert!(said.contains("the package `p` does not contain the feature"), "{said}");
    }
    let said = err(&aoti(folder.path(), &["build", "-F", "yess"]));
    assert!(said.contains("`yess`; did you mean `yes`?"), "{said}");
}

#[test]
fn locked_looks_at_the_lock_file() {
    let folder = project("");
    let output = aoti(folder.path(), &["build", "--locked", "--offline"]);
    assert!(code(&output) != 0 && err(&output).contains("--locked"), "{}", err(&output));
    write(folder.path(), "Cargo.lock", "version = 4\n\n[[package]]\nname = \"p\"\nversion = \"0.1.0\"\n");
    assert_eq!(code(&aoti(folder.path(), &["build", "--locked", "--offline"])), 0);
}

#[test]
fn cargos_settings_are_kept() {
    let folder = project("");
    write(folder.path(), "models/m.aoti", MODEL);
    let said = |output: &Output| err(output).contains("sparc64-unknown-linux-gnu");
    let from_variable =
        command(folder.path(), &["build"]).env("CARGO_BUILD_TARGET", "sparc64-unknown-linux-gnu").output();
    assert!(said(&from_variable.unwrap()));
    let setting = "build.target='sparc64-unknown-linux-gnu'";
    assert!(said(&aoti(folder.path(), &["build", "--config", setting])));
    write(
        folder.path(),
        ".cargo/config.toml",
        "[build]\ntarget = \"sparc64-unknown-linux-gnu\"\n[term]\nquiet = true\n",
    );
    assert!(said(&aoti(folder.path(), &["build"])));
    fs::remove_dir_all(folder.path().join("models")).unwrap();
    assert_eq!(err(&aoti(folder.path(), &["build"])), "");
    assert!(err(&aoti(folder.path(), &["build", "-v"])).contains("no models"));
}

#[test]
fn results_are_json_to_the_last_line() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "case/model.aoti", MODEL);
    write(folder.path(), "case/case.json", "{\"skip\": \"needs a telescope\"}");
    for arguments in [
        &["explain", "--format", "json"][..],
        &["explain", "AOTI0007", "--format", "json"],
        &["doctor", "--format", "json"],
        &["doctor", "--json"],
        &["doctor", "--explain", "--format", "json"],
        &["inspect", "case", "--format", "json"],
        &["inspect", "--ops", "--format", "json"],
        &["inspect", "case", "--choices", "--format", "json"],
        &["bench", "case", "--secs", "0.01", "--format", "json"],
        &["run", "case", "--format", "json"],
        &["cache", "stat", "--format", "json"],
        &["cache", "why", "case", "--format", "json"],
        &["cache", "gc", "--format", "json"],
        &["verify", ".", "--format", "json"],
    ] {
        let output = aoti(folder.path(), arguments);
        let lines = lines(&output);
        assert!(code(&output) == 0 && !lines.is_empty(), "{arguments:?}: {}", err(&output));
        assert!(lines.iter().all(|line| line["reason"].is_string()), "{arguments:?}: {lines:?}");
    }
    let last = lines(&aoti(folder.path(), &["verify", ".", "--format", "json"])).pop().unwrap();
    assert_eq!(
        last,
        serde_json::json!({"reason": "aoti-summary", "passed": 0, "failed": 0, "skipped": 1, "message": "0 passed, 0 failed, 1 skipped"})
    );
    let signature = lines(&aoti(folder.path(), &["inspect", "case", "--format", "json"])).remove(0);
    assert_eq!(signature["inputs"][0]["dims"][0]["size"], "batch");
}

#[test]
fn what_is_made_and_removed_is_told_in_json_too() {
    let folder = project("");
    write(folder.path(), "target/aoti/debug/left", "");
    let told = |arguments: &[&str]| {
        let output = aoti(folder.path(), &[arguments, &["--format", "json"]].concat());
        assert_eq!(code(&output), 0, "{arguments:?}: {}", err(&output));
        let lines = lines(&output);
        assert_eq!(lines.len(), 1, "{arguments:?}: {lines:?}");
        lines.into_iter().next().unwrap()
    };
    let ends_with = |object: &Value, end: &str| object["path"].as_str().unwrap().ends_with(end);
    let removed = told(&["clean"]);
    assert!(removed["reason"] == "aoti-removed" && ends_with(&removed, "aoti"), "{removed}");
    let collected = told(&["collect", "out"]);
    assert!(collected["reason"] == "aoti-collected" && ends_with(&collected, "out"), "{collected}");
    assert_eq!(collected["programs"], serde_json::json!(["p"]));
    let created = told(&["new", "other"]);
    assert!(created["reason"] == "aoti-created" && ends_with(&created, "other"), "{created}");
    assert_eq!(told(&["init", "other"])["reason"], "aoti-prepared");
    let cleared = serde_json::json!({"reason": "aoti-removed", "entries": 0, "bytes": 0});
    assert_eq!(told(&["cache", "clear"]), cleared);
}

#[test]
fn diagnostics_have_places() {
    let folder = project("[package.metadata.aoti]\nmodles = 1\ncuda = [\"sm_90\"]\ndevices = [\"gpu\"]\n");
    let output = aoti(folder.path(), &["build", "--format", "json"]);
    let found = lines(&output);
    let of = |message: &str| {
        let is_it = |line: &&Value| line["message"].as_str().is_some_and(|text| text.contains(message));
        found.iter().find(is_it).unwrap_or_else(|| panic!("{message}: {found:?}"))
    };
    let typo = of("unknown key `modles`");
    assert!(typo["file"].as_str().unwrap().ends_with("Cargo.toml"), "{typo}");
    assert_eq!((typo["line"].as_u64(), typo["column"].as_u64()), (Some(8), Some(1)));
    assert_eq!(of("`devices` does not name `cuda`")["line"], 9);
    assert_eq!(of("no device `gpu`")["help"], "say which: `cuda` or `rocm`");
    let said = err(&aoti(folder.path(), &["build"]));
    assert!(said.contains("8 | modles = 1") && said.contains("did you mean `models`?"), "{said}");
}

#[test]
fn a_broken_onnx_file_is_told_as_one() {
    let folder = tempfile::tempdir().unwrap();
    for (content, told) in [
        ("\x08\x08\x12\x7fpytorch", "the file is not a readable ONNX model"),
        ("\x08\x08\x12\x07pytorch", "the file has no graph"),
    ] {
        write(folder.path(), "net.onnx", content);
        let said = err(&aoti(folder.path(), &["inspect", "net.onnx"]));
        assert!(said.contains(told), "{said}");
    }
}

#[test]
fn dimensions_are_looked_up_before_anything_is_compiled() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "m.aoti", MODEL);
    for command in ["bench", "run"] {
        let output = aoti(folder.path(), &[command, "m.aoti", "--dim", "bacth=5"]);
        let said = err(&output);
        assert_eq!(code(&output), 2);
        assert!(
            said.contains("it has `batch`; did you mean `batch`?") && !said.contains("Compiling"),
            "{said}"
        );
    }
}

#[test]
fn help_keeps_options_in_groups() {
    let folder = tempfile::tempdir().unwrap();
    let help = out(&aoti(folder.path(), &["build", "--help"]));
    let at = |text: &str| help.find(text).unwrap_or_else(|| panic!("{text}: {help}"));
    assert!(
        at("--target <TRIPLE>") < at("Package selection:")
            && at("Package selection:") < at("Manifest options:")
    );
    assert!(at("Global options:") < at("--quiet"));
    assert!(out(&aoti(folder.path(), &["--help"])).contains("Exit codes:"));
}

#[test]
fn completions_serve_cargo_and_pages_are_roff() {
    let folder = tempfile::tempdir().unwrap();
    let script = out(&aoti(folder.path(), &["completions", "bash"]));
    write(folder.path(), "aoti.bash", &script);
    let asked = "source aoti.bash; COMP_WORDS=(cargo aoti insp); COMP_CWORD=2; __cargo_with_aoti cargo insp aoti; \
                 echo \"${COMPREPLY[@]}\"";
    let bash =
        Command::new("bash").args(["--norc", "-c", asked]).current_dir(folder.path()).output().unwrap();
    assert_eq!(out(&bash).trim(), "inspect", "{}", err(&bash));
    assert!(out(&aoti(folder.path(), &["completions", "fish"])).contains("complete -c cargo -n"));
    assert!(out(&aoti(folder.path(), &["man"])).contains(".TH"));
    assert!(out(&aoti(folder.path(), &["man", "verify"])).contains("sanitize"));
}

#[cfg(unix)]
#[test]
fn an_interrupted_build_says_so() {
    use std::os::unix::fs::PermissionsExt;
    let folder = project("");
    write(folder.path(), "models/m.aoti", MODEL);
    write(folder.path(), "slow", "#!/bin/sh\nexec sleep 3\n");
    let slow = folder.path().join("slow");
    fs::set_permissions(&slow, fs::Permissions::from_mode(0o755)).unwrap();
    let mut build = command(folder.path(), &["build"]);
    let child = build.env("CXX", &slow).stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1500));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 130, "{}", err(&output));
    assert!(err(&output).contains("interrupted"), "{}", err(&output));
}
