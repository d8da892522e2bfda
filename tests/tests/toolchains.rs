//! Toolchains as a user meets them: what `doctor` says of a machine and of a project, and toolchains that a project brings.

#![cfg(unix)]

use aoti_tests::models;
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// Answers like a compiler and makes nothing.
const COMPILER: &str = "case \"$*\" in\n*-E*) echo 'aoti_family gcc 13'; echo aoti_headers;;\n\
    *-dumpmachine*) echo MACHINE-linux-gnu;;\n*-print-prog-name*) echo none;;\n*) echo 'g++ (shim) 13.1';;\nesac";

/// A project on a machine whose only programs are these scripts.
fn machine(table: &str, scripts: &[(&str, &str)]) -> Project {
    let project = Project::new(table);
    for (name, body) in scripts {
        let name = format!("bin/{name}");
        project.write(&name, format!("#!/bin/sh\n{body}\n"));
        let path = project.folder().join(&name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    project
}

fn doctor(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.aoti(&["doctor"]);
    command.args(arguments).env("PATH", project.folder().join("bin"));
    for name in ["CXX", "NVCC", "CUDA_PATH", "CUDA_HOME", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME"] {
        command.env_remove(name);
    }
    command
}

/// The report, which is the first object of those that are printed; what failed is another behind it.
fn json(ended: &Ended) -> Value {
    let objects = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {}", ended.stdout)));
    let objects: Vec<Value> = objects.collect();
    assert!(objects[1..].iter().all(|failure| failure["reason"] == "aoti-diagnostic"), "{}", ended.stdout);
    objects[0].clone()
}

#[test]
fn doctor_explains_what_was_considered_in_which_order_and_why() {
    let table = "[package.metadata.aoti]\ndevices = [\"cpu\"]\ncuda = [\"native\"]\n\
        [package.metadata.aoti.toolchain.board]\nbase = \"gcc-aarch64\"\nprogram = \"bin/board-g++\"\n";
    let (x86, arm) = (COMPILER.replace("MACHINE", "x86_64"), COMPILER.replace("MACHINE", "aarch64"));
    let gpu = "echo 9.0";
    let scripts = [
        ("g++", x86.as_str()),
        ("clang++", x86.as_str()),
        ("ar", "echo 'ar 2'"),
        ("board-g++", arm.as_str()),
        ("aarch64-linux-gnu-ar", "echo 'ar 2'"),
        ("nvidia-smi", gpu),
    ];
    let project = machine(table, &scripts);
    let targets = ["--target", "x86_64-unknown-linux-gnu", "--target", "aarch64-unknown-linux-gnu"];
    let explained = |more: &[&str]| {
        let ended = Ended::of(doctor(&project, &["--explain"]).args(targets).args(more));
        assert_eq!(ended.code, Some(3), "nothing compiles for the GPU: {}", ended.stderr);
        assert!(
            ended.stderr.contains("no toolchain for cuda (native) on x86_64-unknown-linux-gnu"),
            "{}",
            ended.stderr
        );
        ended
    };
    let report = json(&explained(&["--json"]));
    let resolutions = report["resolutions"].as_array().unwrap();
    let of = |device: &str, target: &str| {
        let is_it =
            |one: &&Value| one["device"] == device && one["target"].as_str().unwrap().starts_with(target);
        resolutions.iter().find(is_it).unwrap()
    };
    let lines = |resolution: &Value| -> Vec<String> {
        let text = |one: &Value| {
            let field = |name: &str| one[name].as_str().unwrap_or("-").to_owned();
            format!("{} {}: {}", field("toolchain"), field("verdict"), field("reason"))
        };
        resolution["considered"].as_array().unwrap().iter().map(text).collect()
    };
    assert_eq!(resolutions.len(), 4);
    let x86 = of("cpu", "x86_64");
    assert_eq!((&x86["taken"], &x86["packages"][0]), (&Value::from("gcc"), &Value::from("p")));
    assert_eq!(
        lines(x86)[..3],
        [
            "board refused: does not serve cpu on `x86_64-unknown-linux-gnu`",
            "gcc taken: -",
            "clang refused: is gcc, not clang",
        ]
    );
    let arm = of("cpu", "aarch64");
    assert_eq!(arm["taken"], "board");
    assert_eq!(
        lines(arm)[..2],
        [
            "board taken: -",
            "gcc refused: makes code for `x86_64-linux-gnu`, not for `aarch64-unknown-linux-gnu`"
        ]
    );
    let cuda = of("cuda", "x86_64");
    assert_eq!((&cuda["wanted"][0], &cuda["levels"][0]), (&Value::from("native"), &Value::from("sm_90a")));
    assert!(lines(cuda).contains(&"nvcc refused: not found".to_owned()), "{:?}", lines(cuda));
    assert!(cuda["taken"].is_null() && cuda["help"][0].as_str().unwrap().starts_with("for nvcc: "));

    let text = explained(&[]).stdout;
    for line in [
        "cpu on aarch64-unknown-linux-gnu, for `p`\n  1. board: `",
        "board-g++` is taken: (shim) 13.1",
        "  native is sm_90a\n",
        "  taken: board\n",
        "help: for nvcc: ",
    ] {
        assert!(text.contains(line), "{line} is not in {text}");
    }
    // One device alone, of which nothing is missing.
    let ended =
        Ended::of(doctor(&project, &["--explain"]).args(targets).args(["--device", "cpu"])).succeeded();
    assert!(!ended.stdout.lines().any(|line| line.starts_with("cuda ")), "{}", ended.stdout);
}

#[test]
fn doctor_tells_of_devices_and_that_none_are_there() {
    let project = machine("", &[("g++", &COMPILER.replace("MACHINE", std::env::consts::ARCH))]);
    let told = Ended::of(&mut doctor(&project, &[])).succeeded().stdout;
    assert!(told.contains("cuda devices: none (`nvidia-smi`, which comes with NVIDIA's driver"), "{told}");
    let project = machine(
        "",
        &[
            ("g++", &COMPILER.replace("MACHINE", std::env::consts::ARCH)),
            ("nvidia-smi", "echo 9.0; echo 9.0"),
        ],
    );
    let told = Ended::of(&mut doctor(&project, &[])).succeeded().stdout;
    assert!(told.contains("cuda devices: 2 x sm_90a\n"), "{told}");
    let report = json(&Ended::of(&mut doctor(&project, &["--json"])).succeeded());
    assert_eq!(
        report["devices"][0],
        serde_json::json!({"device": "cuda", "architecture": "sm_90a", "count": 2})
    );
    // Outside of any project, and in one that cannot be read.
    project.write("Cargo.toml", "[package");
    let ended = Ended::of(&mut doctor(&project, &[])).succeeded();
    assert!(ended.stderr.contains("warning") && ended.stdout.contains("gcc: ready"), "{}", ended.stderr);
    assert_eq!(Ended::of(&mut doctor(&project, &["--explain"])).code, Some(1));
    fs::remove_file(project.folder().join("Cargo.toml")).unwrap();
    let ended = Ended::of(&mut doctor(&project, &["--explain", "--device", "cuda"]));
    assert!(ended.code == Some(3) && ended.stdout.starts_with("cuda on "), "{}", ended.stdout);
}

#[test]
fn a_project_brings_a_toolchain_and_other_flags_are_another_build() {
    let manifest = |flags: &str| {
        format!(
            "[package]\nname = \"p\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n\
             [workspace.metadata.aoti]\ncpu = [\"native\"]\n\
             [workspace.metadata.aoti.toolchain.own]\nbase = \"gcc\"\nflags = [{flags}]\n"
        )
    };
    let project = Project::new("");
    project.write("models/scaled.aoti", models::SCALED);
    project.write("Cargo.toml", manifest(""));
    let first = project.build().tools().len();
    let record = fs::read_to_string(project.artefacts("scaled").join("manifest.json")).unwrap();
    assert!(record.contains("\"own\""), "{record}");
    assert!(project.build().stderr.contains("nothing to do"));
    project.write("Cargo.toml", manifest("\"-DANOTHER=1\""));
    let again = project.build();
    assert!(again.tools().len() >= first - 2, "{first}: {:?}", again.tools());
    project.write("Cargo.toml", manifest("").replace("flags", "flag"));
    let ended = Ended::of(&mut project.aoti(&["build"]));
    assert_eq!(ended.code, Some(1));
    assert!(ended.stderr.contains("did you mean `flags`?"), "{}", ended.stderr);
}
