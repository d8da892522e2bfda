//! Compiles the C++ programs of `tests/headers/` with each compiler at each level that this processor runs, and runs
//! them: the vector headers must behave as scalar code, libm and PyTorch do, and loops must be shared as they say.
//!
//! A missing tool skips its tests with a printed reason, unless `AOTI_TEST_REQUIRE` (a comma-separated list) names it.

use std::path::{Path, PathBuf};
use std::process::Command;

/// How one program is built and run.
struct Toolchain {
    compiler: &'static str,
    flags: &'static [&'static str],
    /// A program that runs the result, for another architecture.
    emulator: Option<&'static str>,
}

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn is_installed(tool: &str) -> bool {
    let found = Command::new(tool).arg("--version").current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == tool);
    match found {
        Ok(output) if output.status.success() => true,
        Ok(_) | Err(_) => {
            assert!(!is_required, "`{tool}` is required by AOTI_TEST_REQUIRE but does not run");
            println!("skipped: `{tool}` is not installed");
            false
        }
    }
}

fn run(command: &mut Command) -> String {
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("the tool was found before");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed:\n{text}");
    text
}

fn check(toolchain: &Toolchain) {
    if !is_installed(toolchain.compiler) || toolchain.emulator.is_some_and(|emulator| !is_installed(emulator))
    {
        return;
    }
    let directory = scratch_folder(toolchain);
    // The special functions are scalar code, alike at all levels, so one level of each compiler is enough.
    let has_special = toolchain.emulator.is_some() || toolchain.flags == ["-march=x86-64-v3"];
    let all = ["vec", "math", "parallel", "special"];
    for program in &all[..if has_special { all.len() } else { all.len() - 1 }] {
        let binary = directory.join(program);
        run(Command::new(toolchain.compiler)
            .args(["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"])
            .args(toolchain.flags)
            .arg("-I")
            .arg(manifest("include"))
            .arg(manifest(&format!("tests/headers/{program}.cpp")))
            .arg("-o")
            .arg(&binary));
        match toolchain.emulator {
            Some(emulator) => run(Command::new(emulator).arg(&binary).arg("99991")),
            None => run(&mut Command::new(&binary)),
        };
    }
}

/// A folder of this toolchain's own under cargo's folder for integration tests.
fn scratch_folder(toolchain: &Toolchain) -> PathBuf {
    let name = format!("headers-{}{}", toolchain.compiler, toolchain.flags.concat());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).expect("cargo's test folder is writable");
    directory
}

#[cfg(target_arch = "x86_64")]
fn check_level(compiler: &'static str, level: &str) {
    let (flags, runs): (&[&str], bool) = match level {
        "v3" => (
            &["-march=x86-64-v3"],
            is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("f16c"),
        ),
        "v4" => (
            &["-march=x86-64-v4"],
            is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512dq")
                && is_x86_feature_detected!("avx512vl"),
        ),
        _ => (&["-march=x86-64"], true),
    };
    if runs {
        check(&Toolchain { compiler, flags, emulator: None });
    } else {
        println!("skipped: this processor does not run level {level}");
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    use super::*;

    #[test]
    fn gcc_baseline() {
        check_level("g++", "base");
    }
    #[test]
    fn gcc_v3() {
        check_level("g++", "v3");
    }
    #[test]
    fn gcc_v4() {
        check_level("g++", "v4");
    }
    #[test]
    fn clang_baseline() {
        check_level("clang++-19", "base");
    }
    #[test]
    fn clang_v3() {
        check_level("clang++-19", "v3");
    }
    #[test]
    fn clang_v4() {
        check_level("clang++-19", "v4");
    }
    #[test]
    fn aarch64_under_emulation() {
        check(&Toolchain {
            compiler: "aarch64-linux-gnu-g++",
            flags: &["-static"],
            emulator: Some("qemu-aarch64"),
        });
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[test]
fn native_level() {
    check(&Toolchain { compiler: "g++", flags: &[], emulator: None });
}

/// Objects of several levels are linked together, so nothing but kernels may have external linkage, weak symbols
/// included; and the headers must not need the C++ run-time library.
#[test]
fn only_the_kernel_leaves_the_object() {
    for compiler in ["g++", "clang++-19"] {
        if !is_installed(compiler) || !is_installed("nm") {
            continue;
        }
        let directory = scratch_folder(&Toolchain { compiler, flags: &["symbols"], emulator: None });
        let object = directory.join("symbols.o");
        run(Command::new(compiler)
            .args(["-std=c++17", "-O1", "-fno-exceptions", "-fno-rtti", "-DAOTI_LEVEL_NS=v3", "-c", "-I"])
            .arg(manifest("include"))
            .arg(manifest("tests/headers/symbols.cpp"))
            .arg("-o")
            .arg(&object));
        let defined = run(Command::new("nm").arg("-g").arg("--defined-only").arg(&object));
        let names: Vec<_> = defined.lines().filter_map(|line| line.split_whitespace().last()).collect();
        assert_eq!(names, ["kernel"], "{compiler}");
        let undefined = run(Command::new("nm").arg("-u").arg(&object));
        assert!(!undefined.contains("_Z"), "{compiler} needs C++ symbols:\n{undefined}");
    }
}
