//! `verify` with cases as programs of their own: for another processor in an emulator, and under sanitizers.

use std::os::unix::fs::PermissionsExt;

use aoti_tests::cases::{digits, safetensors, scaled};
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use aoti_tests::{models, tools};
use serde_json::Value;

const ARM: &str = "aarch64-unknown-linux-gnu";

fn project() -> Project {
    let project = Project::new("");
    scaled(&project, "scaled", models::SCALED, &[1.0, 2.0, 3.0]);
    digits(&project);
    project
}

fn verify(project: &Project, arguments: &[&str]) -> Ended {
    Ended::of(&mut project.aoti(&[&["verify", "cases", "--jobs", "2"], arguments].concat()))
}

#[track_caller]
fn assert_all_pass(ended: &Ended) {
    assert_eq!(ended.stdout, "2 passed, 0 failed, 0 skipped\n", "{}", ended.stderr);
    assert_eq!(ended.code, Some(0));
}

#[test]
fn cases_pass_on_another_processor_in_an_emulator() {
    if !tools::arm_compiler() || !tools::arm_emulator() {
        return;
    }
    let project = project();
    let arguments = ["--target", ARM, "--toolchain", "gcc-aarch64"];
    assert_all_pass(&verify(&project, &[&arguments[..], &["--runner", "qemu-aarch64"]].concat()));
    // As cargo itself would be told.
    let mut command = project.aoti(&[&["verify", "cases"], &arguments[..]].concat());
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", "qemu-aarch64 -cpu cortex-a72");
    assert_all_pass(&Ended::of(&mut command));
}

#[test]
fn cases_pass_on_another_processor_as_clang_compiles_them() {
    if !tools::are_there("clang-aarch64", &["clang++-19"]) || !tools::arm_compiler() || !tools::arm_emulator()
    {
        return;
    }
    let arguments = ["--target", ARM, "--toolchain", "clang-aarch64", "--runner", "qemu-aarch64"];
    assert_all_pass(&verify(&project(), &arguments));
}

/// Numbers that an integer may not hold, and what each becomes as one, read as `f32` again.
const CONVERTED: [(&str, [f32; 8]); 5] = [
    ("f32", [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e20, -1e20, -3.75, 2147483648.0, 4294967296.0]),
    ("i32", [INT, INT, INT, INT, INT, -3.0, INT, INT]),
    ("i64", [LONG, LONG, LONG, LONG, LONG, -3.0, 2147483648.0, 4294967296.0]),
    ("u32", [0.0, 0.0, 0.0, 0.0, 0.0, 4294967293.0, 2147483648.0, 0.0]),
    ("i8", [0.0, 0.0, 0.0, 0.0, 0.0, -3.0, 0.0, 0.0]),
];
const INT: f32 = i32::MIN as f32;
const LONG: f32 = i64::MIN as f32;

#[test]
fn what_an_integer_cannot_hold_becomes_the_same_on_another_processor() {
    if !tools::arm_compiler() || !tools::arm_emulator() {
        return;
    }
    let project = Project::new("");
    let [(_, given), rows @ ..] = CONVERTED;
    for (dtype, expected) in &rows {
        let model = format!(
            "graph \"to_{dtype}\" {{\n  input %0 \"x\": f32[8]\n  %1: {dtype}[8] = cast %0\n  \
             %2: f32[8] = cast %1\n  output %2 \"y\"\n}}\n"
        );
        project.write(&format!("cases/{dtype}/model.aoti"), model);
        project.write(&format!("cases/{dtype}/inputs.safetensors"), safetensors(&[8], &given));
        project.write(&format!("cases/{dtype}/outputs.safetensors"), safetensors(&[8], expected));
    }
    let arm = ["--target", ARM, "--toolchain", "gcc-aarch64", "--runner", "qemu-aarch64"];
    for arguments in [&["--reference"][..], &[], &arm] {
        let ended = verify(&project, arguments);
        assert_eq!(ended.stdout, "4 passed, 0 failed, 0 skipped\n", "{arguments:?}: {}", ended.stderr);
    }
}

#[test]
fn sanitizers_find_nothing_in_good_models() {
    let project = project();
    for sanitize in ["address,undefined", "thread"] {
        assert_all_pass(&verify(&project, &["--sanitize", sanitize, "--threads", "3"]));
    }
}

/// A compiler that adds a constructor to models: one that writes behind an array.
const SABOTEUR: &str = "\
#!/bin/sh
for argument; do
  case $argument in *model.cpp) set -- \"$@\" -include \"$SABOTAGE\" ;; esac
done
exec c++ \"$@\"
";

#[test]
fn a_finding_fails_its_case_at_the_run() {
    let project = Project::new("");
    scaled(&project, "scaled", models::SCALED, &[1.0, 2.0, 3.0]);
    project.write("c++", SABOTEUR);
    let compiler = project.folder().join("c++");
    std::fs::set_permissions(&compiler, std::fs::Permissions::from_mode(0o755)).unwrap();
    let slips = [
        ("address", "heap-buffer-overflow", "volatile char *p = new char[3]; p[3] = 1;"),
        ("undefined", "signed integer overflow", "volatile int most = 0x7fffffff; most = most + 1;"),
    ];
    for (sanitize, finding, slip) in slips {
        let slip = slip.replace("new char[3]", "(volatile char *)__builtin_malloc(3)");
        project.write("slip.h", format!("__attribute__((constructor)) static void slip() {{ {slip} }}\n"));
        let mut command = project.aoti(&[
            "verify",
            "cases",
            "--format",
            "json",
            "--sanitize",
            sanitize,
            "--toolchain",
            "gcc",
        ]);
        command.env("CXX", &compiler).env("SABOTAGE", project.folder().join("slip.h"));
        let ended = Ended::of(&mut command);
        assert_eq!(ended.code, Some(1), "{}", ended.stderr);
        let case: Value = serde_json::from_str(ended.stdout.lines().next().unwrap()).unwrap();
        assert_eq!((&case["status"], &case["stage"]), (&"fail".into(), &"run".into()), "{case}");
        assert!(case["message"].as_str().unwrap().contains(finding), "{case}");
    }
}

#[test]
fn what_cannot_be_done_is_said_before_any_case() {
    let project = project();
    let foreign = "sparc64-unknown-linux-gnu";
    for (code, arguments, said) in [
        (2, &["--target", foreign][..], "--runner"),
        (2, &["--sanitize", "memory"], "address"),
        (2, &["--sanitize", "address,thread"], "exclude"),
        (2, &["--level", "x86-64-v9"], "it has `"),
        (2, &["--reference", "--sanitize", "address"], "cannot be used with"),
        (3, &["--target", foreign, "--runner", "qemu-sparc64"], "no toolchain"),
        (3, &["--toolchain", "msvc"], "`msvc` was asked for"),
    ] {
        let ended = verify(&project, arguments);
        assert_eq!(ended.code, Some(code), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(said) && ended.stdout.is_empty(), "{arguments:?}: {ended:?}");
    }
}
