//! The command line from outside: exit codes, what goes to stdout and what to stderr.

use std::path::Path;
use std::process::{Command, Output};

const MODEL: &str = "\
graph \"scaled\" {
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

fn aoti(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-aoti"))
        .arg("aoti")
        .args(arguments)
        .current_dir(folder)
        .env("AOTI_CACHE_DIR", folder.join("cache"))
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap()
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

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

fn project(table: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let manifest = format!("[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n{table}");
    write(folder.path(), "Cargo.toml", manifest);
    write(folder.path(), "src/main.rs", "fn main() {}\n");
    write(folder.path(), "models/scaled.aoti", MODEL);
    folder
}

/// One tensor of f32 in the safetensors format.
fn safetensors(sizes: &str, values: &[f32]) -> Vec<u8> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let header =
        format!("{{\"0\":{{\"dtype\":\"F32\",\"shape\":{sizes},\"data_offsets\":[0,{}]}}}}", data.len());
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

fn case(folder: &Path, name: &str, model: &str, expected: &[f32]) {
    write(folder, &format!("{name}/model.aoti"), model);
    write(folder, &format!("{name}/inputs.safetensors"), safetensors("[1,3]", &[1.0, 1.0, 1.0]));
    write(folder, &format!("{name}/outputs.safetensors"), safetensors("[1,3]", expected));
}

#[test]
fn help_is_on_stdout_and_names_cargo_aoti() {
    let folder = tempfile::tempdir().unwrap();
    for command in
        ["build", "run", "verify", "bench", "inspect", "doctor", "cache", "clean", "explain", "new"]
    {
        let output = aoti(folder.path(), &[command, "--help"]);
        assert_eq!(code(&output), 0);
        assert!(out(&output).contains(&format!("cargo aoti {command}")), "{}", out(&output));
    }
    let output = aoti(folder.path(), &["--help"]);
    assert!(out(&output).contains("cargo aoti") && !out(&output).contains("__run-case"));
}

#[test]
fn usage_errors_end_with_2() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [&["frobnicate"][..], &["build", "--frob"], &["bench"], &["explain", "AOTI9999"]] {
        assert_eq!(code(&aoti(folder.path(), arguments)), 2, "{arguments:?}");
    }
    // Commands that only programs give are not recommended.
    for (typo, meant) in [("bulid", "build"), ("tnue", "tune"), ("verfy", "verify"), ("inspcet", "inspect")] {
        let said = err(&aoti(folder.path(), &[typo]));
        assert!(said.contains(&format!("'{meant}'")) && !said.contains("__"), "{said}");
    }
}

#[test]
fn codes_are_explained() {
    let folder = tempfile::tempdir().unwrap();
    let output = aoti(folder.path(), &["explain", "AOTI0007"]);
    assert!(code(&output) == 0 && out(&output).starts_with("AOTI0007: "));
    assert!(out(&aoti(folder.path(), &["explain", "101"])).starts_with("AOTI0101: "));
}

#[test]
fn a_project_is_built_once() {
    let folder = project("");
    let first = aoti(folder.path(), &["build", "--message-format", "json"]);
    assert_eq!(code(&first), 0, "{}", err(&first));
    let lines: Vec<serde_json::Value> =
        out(&first).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["reason"], "aoti-artifact");
    assert_eq!(lines[0]["fresh"], false);
    assert_eq!(lines.last().unwrap(), &serde_json::json!({"reason": "build-finished", "success": true}));
    let host = lines[0]["files"][0]["path"].as_str().unwrap();
    assert!(host.contains("p/scaled/libaoti_scaled_") && Path::new(host).is_file(), "{host}");
    let second = aoti(folder.path(), &["build"]);
    assert!(code(&second) == 0 && out(&second).is_empty());
    assert!(err(&second).contains("nothing to do"), "{}", err(&second));
    assert_eq!(code(&aoti(folder.path(), &["clean"])), 0);
    assert!(!folder.path().join("target/aoti").exists());
}

#[test]
fn processes_side_by_side_do_the_work_once() {
    let folder = project("");
    let start = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-aoti"));
        command.args(["build", "-v"]).current_dir(folder.path());
        command.env("AOTI_CACHE_DIR", folder.path().join("cache")).env_remove("CARGO_TARGET_DIR");
        command.stderr(std::process::Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<_> = (0..8).map(|_| start()).collect();
    let mut ran = 0;
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", err(&output));
        ran += err(&output).matches("Ran ").count();
    }
    // Three levels of kernels, the wrapper, the weights and the archive.
    assert_eq!(ran, 6);
}

#[test]
fn a_bad_table_ends_with_1_and_says_all() {
    let folder = project("[package.metadata.aoti]\nmodles = 1\ncpu = [\"x86-64-v7\"]\n");
    let output = aoti(folder.path(), &["build"]);
    assert_eq!(code(&output), 1);
    let text = err(&output);
    assert!(text.contains("AOTI0101") && text.contains("did you mean `models`?"), "{text}");
    assert!(text.contains("AOTI0105"), "{text}");
    let output = aoti(folder.path(), &["build", "--message-format", "json"]);
    let lines = out(&output);
    let codes: Vec<&str> = ["AOTI0101", "AOTI0105", "build-finished"].into();
    assert!(lines.lines().zip(codes).all(|(line, code)| line.contains(code)), "{lines}");
}

#[test]
fn a_machine_without_the_device_fails_each_case_and_says_what_was_looked_for() {
    let folder = tempfile::tempdir().unwrap();
    case(folder.path(), "good", MODEL, &[1.0, 2.0, 3.0]);
    let output = aoti(folder.path(), &["verify", ".", "--device", "rocm"]);
    assert_eq!(code(&output), 1);
    let (said, end) = (out(&output), "0 passed, 1 failed, 0 skipped\n");
    assert!(said.contains("`native` rocm code is for the GPUs of this machine, and there is none"), "{said}");
    assert!(said.ends_with(end), "{said}");
    let output = aoti(folder.path(), &["verify", ".", "--device", "gpu"]);
    assert_eq!(code(&output), 2);
    assert!(err(&output).contains("there is no device `gpu`"), "{}", err(&output));
}

#[test]
fn a_bad_model_ends_with_1_and_a_missing_compiler_with_3() {
    let folder = project("");
    write(folder.path(), "models/bad.pt2", "not an archive");
    let output = aoti(folder.path(), &["build"]);
    assert_eq!(code(&output), 1);
    assert!(err(&output).contains("error[AOTI0001]"), "{}", err(&output));
    let output = aoti(folder.path(), &["build", "--target", "sparc64-unknown-linux-gnu", "-p", "p"]);
    assert_eq!(code(&output), 3);
    assert_eq!(code(&aoti(folder.path(), &["build", "-p", "q"])), 2);
}

#[test]
fn cases_pass_and_fail_each_for_itself() {
    let folder = tempfile::tempdir().unwrap();
    case(folder.path(), "good", MODEL, &[1.0, 2.0, 3.0]);
    case(folder.path(), "wrong", MODEL, &[1.0, 2.0, 4.0]);
    case(folder.path(), "broken", "graph {", &[]);
    case(folder.path(), "not-here", MODEL, &[]);
    write(folder.path(), "not-here/case.json", "{\"skip\": \"needs a telescope\"}");
    let output = aoti(folder.path(), &["verify", ".", "--format", "json"]);
    assert_eq!(code(&output), 1);
    let text = out(&output);
    let last = "{\"reason\":\"aoti-summary\",\"passed\":1,\"failed\":2,\"skipped\":1,\"message\":\"1 passed, 2 failed, 1 skipped\"}\n";
    assert!(text.ends_with(last), "{text}");
    let of = |name: &str| -> serde_json::Value {
        let cases = text.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        cases.into_iter().find(|case| case["name"] == name).unwrap()
    };
    assert_eq!(
        (of("good")["status"].as_str(), of("good")["stage"].as_str()),
        (Some("pass"), Some("compare"))
    );
    assert_eq!(of("wrong")["message"], "output 0: 1 of 3 elements differ, most at [0, 2]: 3 instead of 4");
    assert_eq!(of("wrong")["max_abs"], 1.0);
    assert_eq!(
        (of("broken")["stage"].as_str(), of("not-here")["status"].as_str()),
        (Some("import"), Some("skip"))
    );
    let output = aoti(folder.path(), &["verify", "good", "--reference"]);
    assert_eq!((code(&output), out(&output).as_str()), (0, "1 passed, 0 failed, 0 skipped\n"));
}

#[test]
fn a_model_is_run_and_measured() {
    let folder = tempfile::tempdir().unwrap();
    case(folder.path(), "good", MODEL, &[1.0, 2.0, 3.0]);
    let output = aoti(folder.path(), &["run", "good", "--output", "y.safetensors"]);
    assert_eq!(out(&output), "y: f32 [1, 3] [1.0, 2.0, 3.0]\n", "{}", err(&output));
    let written = std::fs::read(folder.path().join("y.safetensors")).unwrap();
    assert!(written.ends_with(&3f32.to_le_bytes()));
    let model = "good/model.aoti";
    let output = aoti(folder.path(), &["bench", model, "--secs", "0.01", "--json", "--dim", "batch=5"]);
    let report: serde_json::Value = serde_json::from_str(&out(&output)).unwrap();
    for key in ["us_med", "us_min", "n", "compile_ms", "library_bytes", "workspace_bytes"] {
        assert!(report[key].is_number(), "{key} in {report}");
    }
    assert_eq!(code(&aoti(folder.path(), &["bench", model, "--dim", "bach=5"])), 2);
}

#[test]
fn a_model_is_inspected_at_every_stage() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "scaled.aoti", MODEL);
    let output = aoti(folder.path(), &["inspect", "scaled.aoti"]);
    assert!(out(&output).contains("input x: f32[batch in 1..=1024, 3]"), "{}", out(&output));
    for stage in ["graph", "loops", "schedule", "run", "cpp", "wrapper", "bindings", "header"] {
        let output = aoti(folder.path(), &["inspect", "scaled.aoti", "--emit", stage]);
        assert!(code(&output) == 0 && out(&output).len() > 50, "{stage}: {}", err(&output));
    }
    let digits = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/digits/models/digits.pt2");
    for (stage, text) in
        [("schedule", "schedule gpu \"sm_90a\""), ("run", "kernel"), ("cuda", "AOTI_KERNEL(")]
    {
        let output = aoti(folder.path(), &["inspect", "scaled.aoti", "--emit", stage, "--level", "sm_90a"]);
        let shown = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && shown.contains(text), "{stage}: {shown}");
    }
    let output = aoti(folder.path(), &["inspect", digits, "--emit", "aten"]);
    assert!(out(&output).contains(" = aten.conv2d.default("), "{}{}", out(&output), err(&output));
    let output = aoti(folder.path(), &["inspect", "scaled.aoti", "--emit", "aten"]);
    assert!(code(&output) == 1 && err(&output).contains("--emit graph"), "{}", err(&output));
    assert_eq!(code(&aoti(folder.path(), &["inspect", "scaled.aoti", "--explain-fusion"])), 0);
    let bundle =
        ["inspect", "scaled.aoti", "--emit", "bundle", "--named-weights", "--level", "x86-64-v3,gfx942"];
    let shown = out(&aoti(folder.path(), &bundle));
    for part in
        ["==== kernels.cpp\n", "==== constants.cpp\n", "==== weights\n", "\"architectures\":[\"gfx942\"]"]
    {
        assert!(shown.contains(part), "no {part:?} in {shown}");
    }
    assert!(out(&aoti(folder.path(), &["inspect", "--ops"])).contains("aten.relu.default"));
}

#[test]
fn the_cache_says_why() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "scaled.aoti", MODEL);
    let why = || out(&aoti(folder.path(), &["cache", "why", "scaled.aoti", "--levels", "native"]));
    assert!(why().contains("never built"), "{}", why());
    aoti(folder.path(), &["run", "scaled.aoti"]);
    assert!(!why().contains("never built") && why().contains(": cached"), "{}", why());
    write(folder.path(), "scaled.aoti", MODEL.replace("mul", "add"));
    assert!(why().contains("changed\n  input kernels.cpp"), "{}", why());
    assert!(out(&aoti(folder.path(), &["cache", "stat", "--json"])).contains("\"entries\""));
    // What was used a moment ago stays; a size is a size.
    let gc = aoti(folder.path(), &["cache", "gc", "--max-size", "0"]);
    assert!(code(&gc) == 0 && err(&gc).contains("Removed 0 results"), "{}", err(&gc));
    assert_eq!(code(&aoti(folder.path(), &["cache", "gc", "--max-size", "plenty"])), 2);
    assert_eq!(code(&aoti(folder.path(), &["cache", "clear"])), 0);
    assert!(why().contains("never built"));
}

#[test]
fn choices_are_shown_with_the_prices_that_builds_go_by() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "scaled.aoti", MODEL);
    let prices = || {
        let output = aoti(folder.path(), &["inspect", "scaled.aoti", "--choices", "--format", "json"]);
        let all: serde_json::Value = serde_json::from_str(out(&output).lines().next().unwrap()).unwrap();
        assert_eq!(all["reason"], "aoti-prices", "{}", err(&output));
        (all["prices"]["dram-weight"].as_f64().unwrap(), all["by_rates"].as_bool().unwrap())
    };
    let typical = prices();
    assert!(!typical.1);
    let rates = |machine: &str, mflop: u64| {
        format!(
            "\n[\"rates {machine} 1\"]\nmflop-per-s = {mflop}\ncaches = [[32768, 9000]]\nmemory-mb-per-s = 4000\n"
        )
    };
    let own = format!("{}.native", std::env::consts::ARCH);
    write(folder.path(), "aoti.lock", format!("version = 1\n{}", rates("sm_90", 1000)));
    assert_eq!(prices(), typical, "those of other machines say nothing");
    write(folder.path(), "aoti.lock", format!("version = 1\n{}", rates(&own, 50_000)));
    assert_eq!(prices(), (25.0, true));
    write(folder.path(), "aoti.lock", format!("version = 1\n{}", rates(&own, 0)));
    assert_eq!(prices(), typical, "what cannot be is passed over");
    let output = aoti(folder.path(), &["inspect", "scaled.aoti", "--choices"]);
    assert!(out(&output).starts_with("prices: vector-fma 1.000, "), "{}", out(&output));
}

#[test]
fn the_cache_knows_what_a_project_builds() {
    let folder = project("[package.metadata.aoti]\ncpu = [\"native\"]\n");
    let built = aoti(folder.path(), &["build"]);
    assert_eq!(code(&built), 0, "{}", err(&built));
    for model in ["scaled", "models/scaled.aoti", "src/../models/scaled.aoti"] {
        let output = aoti(folder.path(), &["cache", "why", model]);
        let said = out(&output);
        assert!(code(&output) == 0 && !said.is_empty(), "{model}: {}", err(&output));
        assert!(said.lines().all(|line| line.ends_with(": cached")), "{model}: {said}");
    }
    // The same file is another model where no package has it.
    let elsewhere = tempfile::tempdir().unwrap();
    let file = folder.path().join("models/scaled.aoti");
    let mut command = Command::new(env!("CARGO_BIN_EXE_cargo-aoti"));
    command.args(["aoti", "cache", "why"]).arg(file).current_dir(elsewhere.path());
    let output = command.env("AOTI_CACHE_DIR", folder.path().join("cache")).output().unwrap();
    assert!(out(&output).contains("never built") || out(&output).contains("changed"), "{}", out(&output));
}
