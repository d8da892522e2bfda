//! Compiles and runs the tests of the contraction headers at every CPU level that this machine executes.
//!
//! Knows the flags of generated code and nothing of what the headers compute. Without a C++ compiler the header tests
//! are skipped with a note, or fail if `AOTI_TEST_REQUIRE` names `gcc`.

use std::path::{Path, PathBuf};
use std::process::Command;

fn compiler() -> Option<String> {
    let name = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    if Command::new(&name).arg("--version").output().is_ok_and(|o| o.status.success()) {
        return Some(name);
    }
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    assert!(!required.split(',').any(|r| r == "gcc"), "`{name}` is required and does not run");
    eprintln!("skipped: no C++ compiler `{name}`");
    None
}

/// Flags of each level that this machine executes.
fn levels() -> Vec<Vec<&'static str>> {
    #[cfg(target_arch = "x86_64")]
    {
        let mut levels = vec![vec!["-march=x86-64"]];
        if is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2")
        {
            levels.push(vec!["-march=x86-64-v3"]);
        }
        let v4 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512cd");
        if v4 {
            levels.push(vec!["-march=x86-64-v4", "-mprefer-vector-width=512"]);
        }
        levels
    }
    #[cfg(not(target_arch = "x86_64"))]
    vec![vec![]]
}

fn check(program: &str, defined: &[&str]) {
    let Some(compiler) = compiler() else { return };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (index, level) in levels().iter().enumerate() {
        let name = format!("{program}_{index}{}", defined.concat());
        let binary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let built = Command::new(&compiler)
            .args(["-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"])
            .args(level)
            .args(defined)
            .args(["-I".as_ref(), root.join("include").as_os_str()])
            .arg(root.join("tests/headers").join(format!("{program}.cpp")))
            .args(["-o".as_ref(), binary.as_os_str()])
            .output()
            .expect("the compiler ran before");
        assert!(built.status.success(), "{level:?}: {}", String::from_utf8_lossy(&built.stderr));
        let ran = Command::new(&binary).output().expect("the compiler made the program");
        assert!(ran.status.success(), "{level:?}: {}", String::from_utf8_lossy(&ran.stdout));
    }
}

#[test]
fn matrix_products_equal_plain_loops_at_every_level() {
    check("gemm_test", &[]);
}

/// This machine may have none.
#[test]
fn matrix_products_on_emulated_units_equal_plain_loops() {
    check("gemm_test", &["-DAOTI_UNITS_EMULATED"]);
}

#[test]
fn matrix_products_by_a_library_equal_plain_loops() {
    check("gemm_blas_test", &[]);
}

#[test]
fn convolutions_equal_plain_loops_at_every_level() {
    check("conv_test", &[]);
}
