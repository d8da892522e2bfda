//! Compiles the C++ programs of `tests/headers/` with each compiler at each level that this processor runs, and runs
//! them: the vector headers must behave as scalar code, libm and PyTorch do, and loops must be shared as they say.
//!
//! A missing tool skips its tests with a printed reason, unless `AOTI_TEST_REQUIRE` (a comma-separated list) names it.

use std::path::{Path, PathBuf};
use std::process::Command;

use compilers::is_installed;

mod compilers;

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn run(command: &mut Command) -> String {
    let output = command.current_dir(env!("CARGO_MANIFEST_DIR")).output().expect("the tool was found before");
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} failed:\n{text}");
    text
}

/// Compiles the programs and runs them, in an emulator if they are for another architecture.
fn check_programs(compiler: &str, flags: &[&str], emulator: Option<&str>, programs: &[&str]) {
    let directory = scratch_folder(compiler, flags);
    for program in programs {
        let binary = directory.join(program);
        run(Command::new(compiler)
            .args(["-std=c++17", "-O1", "-ffp-contract=off", "-Wall", "-Wextra", "-Werror"])
            .args(flags)
            .arg("-I")
            .arg(manifest("include"))
            .arg(manifest(&format!("tests/headers/{program}.cpp")))
            .arg("-o")
            .arg(&binary));
        match emulator {
            Some(emulator) => run(Command::new(emulator).arg(&binary).arg("99991")),
            None => run(&mut Command::new(&binary)),
        };
    }
}

fn check(compiler: &str, flags: &[&str]) {
    // The special functions are scalar code, alike at all levels, so one level is enough; and it is the vectors for which
    // compilers have builtins of their own.
    let programs: &[&str] = match compiler {
        "g++" | "clang++-19" if flags == ["-march=x86-64-v3"] => {
            &["vec", "math", "parallel", "loops", "words", "special", "rows"]
        }
        "g++" | "clang++-19" => &["vec", "math", "parallel", "loops", "words"],
        _ => &["vec", "math"],
    };
    check_programs(compiler, flags, None, programs);
}

/// A folder of this compiler's own under cargo's folder for integration tests.
fn scratch_folder(compiler: &str, flags: &[&str]) -> PathBuf {
    let name = format!("headers-{compiler}{}", flags.concat());
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&directory).expect("cargo's test folder is writable");
    directory
}

with_each_compiler!();

#[cfg(target_arch = "x86_64")]
#[test]
fn gcc_for_aarch64_under_emulation() {
    if is_installed("aarch64-linux-gnu-g++") && is_installed("qemu-aarch64") {
        let programs = ["vec", "math", "parallel", "words", "special"];
        check_programs("aarch64-linux-gnu-g++", &["-static"], Some("qemu-aarch64"), &programs);
    }
}

/// Clang is the same program for every target; the libraries are those of the GNU cross compiler.
#[cfg(target_arch = "x86_64")]
#[test]
fn each_clang_for_aarch64_under_emulation() {
    if !is_installed("aarch64-linux-gnu-g++") || !is_installed("qemu-aarch64") {
        return;
    }
    for compiler in ["clang++-13", "clang++-14", "clang++-16", "clang++-19"] {
        if is_installed(compiler) {
            let flags = ["--target=aarch64-linux-gnu", "-static"];
            check_programs(compiler, &flags, Some("qemu-aarch64"), &["vec"]);
        }
    }
}

/// Objects of several levels are linked together, so nothing but kernels may have external linkage, weak symbols
/// included; and the headers must not need the C++ run-time library.
#[test]
fn only_the_kernel_leaves_the_object() {
    for compiler in ["g++", "g++-11", "clang++-14", "clang++-19"] {
        if !is_installed(compiler) || !is_installed("nm") {
            continue;
        }
        let directory = scratch_folder(compiler, &["symbols"]);
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
