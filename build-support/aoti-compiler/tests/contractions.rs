//! Compiles and runs the tests of the contraction headers at every CPU level that this machine executes.
//!
//! Knows the flags of generated code and nothing of what the headers compute. Without a compiler its tests
//! are skipped with a note, or fail if `AOTI_TEST_REQUIRE` names it.

use std::path::{Path, PathBuf};
use std::process::Command;

mod compilers;

/// Compiles a program, with macros, and runs it.
fn check_program(compiler: &str, flags: &[&str], program: &str, defined: &[&str]) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let name = format!("{program}_{compiler}{}{}", flags.concat(), defined.concat());
    let binary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let built = Command::new(compiler)
        .args(["-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .args(defined)
        .args(["-I".as_ref(), root.join("include").as_os_str()])
        .arg(root.join("tests/headers").join(format!("{program}.cpp")))
        .args(["-o".as_ref(), binary.as_os_str()])
        .output()
        .expect("the compiler ran before");
    let place = format!("{program} of {compiler} {flags:?}");
    assert!(built.status.success(), "{place}: {}", String::from_utf8_lossy(&built.stderr));
    let ran = Command::new(&binary).output().expect("the compiler made the program");
    assert!(ran.status.success(), "{place}: {}", String::from_utf8_lossy(&ran.stdout));
}

/// Matrix products and convolutions equal plain loops.
fn check(compiler: &str, flags: &[&str]) {
    check_program(compiler, flags, "gemm_test", &[]);
    check_program(compiler, flags, "conv_test", &[]);
    // What is left is the same for all compilers.
    if compiler == "g++" {
        check_program(compiler, flags, "gemm_blas_test", &[]);
        // This machine may have no matrix units.
        check_program(compiler, flags, "gemm_test", &["-DAOTI_UNITS_EMULATED"]);
    }
}

/// Whatever the compiler and the level.
mod equal_plain_loops_with {
    use super::check;
    use crate::with_each_compiler;

    with_each_compiler!();
}
