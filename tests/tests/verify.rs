//! `verify`: what it reports, and that a case which crashes or hangs takes no other with it.

use aoti_tests::cases::scaled;
use aoti_tests::models;
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use aoti_tests::tools;
use serde_json::Value;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};

const KEYS: [&str; 10] =
    ["reason", "name", "format", "status", "stage", "message", "max_abs", "max_rel", "compile_ms", "run_us"];

/// A compiler that puts a constructor into models of certain names: one that crashes, one that never ends.
const SABOTEUR: &str = "\
#!/bin/sh
for argument; do
  case $argument in
    *model.cpp)
      if grep -q '`crashes`\\|aoti_crashes' \"$argument\"; then set -- \"$@\" -include \"$SABOTAGE/crash.h\"; fi
      if grep -q '`hangs`\\|aoti_hangs' \"$argument\"; then set -- \"$@\" -include \"$SABOTAGE/hang.h\"; fi ;;
  esac
done
exec c++ \"$@\"
";

fn of_lines(text: &str) -> BTreeMap<String, Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    let values = lines.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let cases = values.filter(|value| value["reason"] == "case");
    cases.map(|value| (value["name"].as_str().unwrap().to_owned(), value)).collect()
}

#[test]
fn a_crash_and_a_hang_fail_their_own_cases_only() {
    let project = Project::new("");
    for name in ["crashes", "hangs", "works"] {
        scaled(&project, name, models::SCALED, &[1.0, 2.0, 3.0]);
    }
    let function = "__attribute__((constructor)) static void sabotage()";
    project.write("crash.h", format!("{function} {{ __builtin_trap(); }}\n"));
    project.write("hang.h", format!("{function} {{ for (volatile int i = 0;; i = 0) {{}} }}\n"));
    project.write("c++", SABOTEUR);
    let compiler = project.folder().join("c++");
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = project.aoti(&["verify", "cases", "--format", "json", "--timeout", "10"]);
    command.env("CXX", &compiler).env("SABOTAGE", project.folder());
    let ended = Ended::of(&mut command);
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(ended.stdout.ends_with("\"1 passed, 2 failed, 0 skipped\"}\n"), "{}", ended.stdout);
    let cases = of_lines(&ended.stdout);
    for (name, status, stage, message) in [
        ("crashes", "fail", "run", "signal"),
        ("hangs", "fail", "run", "10 s"),
        ("works", "pass", "compare", ""),
    ] {
        let case = &cases[name];
        assert_eq!((&case["status"], &case["stage"]), (&status.into(), &stage.into()), "{case}");
        assert!(case["message"].as_str().unwrap().contains(message), "{case}");
    }
}

#[test]
fn lines_have_the_documented_keys() {
    let project = Project::new("");
    scaled(&project, "good", models::SCALED, &[1.0, 2.0, 3.0]);
    scaled(&project, "wrong", models::SCALED, &[1.0, 2.0, 4.0]);
    scaled(&project, "broken", "graph {", &[]);
    scaled(&project, "elsewhere", models::SCALED, &[]);
    project.write("cases/elsewhere/case.json", "{\"skip\": \"needs a telescope\"}");
    let verify = |arguments: &[&str]| Ended::of(&mut project.aoti(&[&["verify"], arguments].concat()));

    let ended = verify(&["cases", "--format", "json"]);
    assert_eq!(ended.code, Some(1));
    assert!(ended.stdout.ends_with("\"1 passed, 2 failed, 1 skipped\"}\n"), "{}", ended.stdout);
    let cases = of_lines(&ended.stdout);
    assert_eq!(cases.len(), 4);
    for case in cases.values() {
        let keys: Vec<&str> = case.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, KEYS);
        assert_eq!((&case["reason"], &case["format"]), (&"case".into(), &"aoti".into()));
    }
    for key in ["max_abs", "max_rel", "compile_ms", "run_us"] {
        assert!(cases["good"][key].is_number() && cases["broken"][key].is_null(), "{key}");
    }
    assert_eq!(cases["elsewhere"]["message"], "needs a telescope");

    let ended = verify(&["cases/good", "cases/elsewhere"]);
    assert_eq!((ended.code, ended.stdout.lines().last()), (Some(0), Some("1 passed, 0 failed, 1 skipped")));
    assert_eq!(verify(&["cases", "--only", "pt2"]).code, Some(1));
    assert_eq!(verify(&["cases", "--only", "mlir"]).code, Some(2));
    assert_eq!(verify(&[]).code, Some(2));
    assert_eq!(verify(&["nowhere"]).code, Some(1));
}

/// Runs a command whose standard error, and nothing else, is a terminal: how it ends, and what the terminal was shown.
fn on_terminal(command: &Command, stdout: &Path) -> Ended {
    // `script` gives a line to a shell; whatever needs quotes is in variables.
    let mut script = Command::new("script");
    script.args([
        "--quiet",
        "--return",
        "--command",
        "exec \"$PROGRAM\" $ARGUMENTS > \"$STDOUT\"",
        "/dev/null",
    ]);
    let arguments: Vec<&str> = command.get_args().map(|argument| argument.to_str().unwrap()).collect();
    script.env("PROGRAM", command.get_program()).env("ARGUMENTS", arguments.join(" ")).env("STDOUT", stdout);
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => script.env(name, value),
            None => script.env_remove(name),
        };
    }
    script.env("TERM", "xterm").stdin(Stdio::null());
    let shown = script.current_dir(command.get_current_dir().unwrap()).output().unwrap();
    let stdout = std::fs::read_to_string(stdout).unwrap();
    Ended { code: shown.status.code(), stdout, stderr: String::from_utf8(shown.stdout).unwrap() }
}

#[test]
fn a_terminal_is_shown_how_far_it_is_and_what_was_slow() {
    if !tools::are_there("script", &["script"]) {
        return;
    }
    let project = Project::new("");
    for name in ["first", "second"] {
        scaled(&project, name, models::SCALED, &[1.0, 2.0, 3.0]);
    }
    scaled(&project, "wrong", models::SCALED, &[1.0, 2.0, 4.0]);
    let shows_bar = |text: &str| text.contains("Verifying [");
    let slowest = |text: &str| text.lines().filter(|line| line.contains("Slowest")).count();

    let command = project.aoti(&["verify", "cases", "--format", "json"]);
    let ended = on_terminal(&command, &project.folder().join("stdout"));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(shows_bar(&ended.stderr), "{}", ended.stderr);
    // How often the bar is drawn depends on the time that cases take.
    assert!(ended.stderr.contains("/3 "), "{}", ended.stderr);
    assert_eq!(slowest(&ended.stderr), 3, "{}", ended.stderr);
    // None of it is among the data.
    assert!(ended.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", ended.stdout);
    assert_eq!(of_lines(&ended.stdout).len(), 3);

    let command = project.aoti(&["verify", "cases", "--quiet"]);
    let ended = on_terminal(&command, &project.folder().join("stdout"));
    assert!(!shows_bar(&ended.stderr) && slowest(&ended.stderr) == 0, "{}", ended.stderr);

    let ended = Ended::of(&mut project.aoti(&["verify", "cases"]));
    assert_eq!(ended.code, Some(1), "{}", ended.stderr);
    assert!(!shows_bar(&ended.stderr) && slowest(&ended.stderr) == 0, "{}", ended.stderr);
    assert!(!ended.stderr.contains('\u{1b}'), "{}", ended.stderr);
}
