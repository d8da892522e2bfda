//! The C++ compilers that tests of headers use: which there are, what `AOTI_TEST_REQUIRE` calls them, and the flags of the
//! levels that this processor runs.

use std::process::Command;

/// Programs that tests run, each with its name in `AOTI_TEST_REQUIRE`. Of the compilers the oldest that is supported is here, the
/// usual one, and those before and after a release in which builtins came that headers use.
const TOOLS: [(&str, &str); 10] = [
    ("g++", "gcc"),
    ("g++-11", "g++-11"),
    ("clang++-13", "clang-13"),
    ("clang++-14", "clang-14"),
    ("clang++-15", "clang-15"),
    ("clang++-16", "clang-16"),
    ("clang++-19", "clang"),
    ("aarch64-linux-gnu-g++", "gcc-aarch64"),
    ("qemu-aarch64", "qemu"),
    ("nm", "gcc"),
];

/// Whether a program runs. Where it does not, says so; or fails, where it is required.
pub(crate) fn is_installed(program: &str) -> bool {
    if Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success()) {
        return true;
    }
    let tool = TOOLS.iter().find(|(known, _)| *known == program).map_or(program, |(_, tool)| tool);
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == tool);
    assert!(!is_required, "`{tool}` is required by AOTI_TEST_REQUIRE, but `{program}` does not run");
    println!("skipped: `{program}` is not installed");
    false
}

/// The flags of a level, if this processor runs it.
#[cfg(target_arch = "x86_64")]
pub(crate) fn flags_of(level: &str) -> Option<&'static [&'static str]> {
    let v3 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi2");
    let v4 = is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512cd");
    let (flags, runs): (&[&str], bool) = match level {
        "v3" => (&["-march=x86-64-v3"], v3),
        "v4" => (&["-march=x86-64-v4", "-mprefer-vector-width=512"], v4),
        _ => (&["-march=x86-64"], true),
    };
    if !runs {
        println!("skipped: this processor does not run level {level}");
    }
    runs.then_some(flags)
}

/// The flags of a level, if this processor runs it: there is one here.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn flags_of(level: &str) -> Option<&'static [&'static str]> {
    (level == "base").then_some(&[])
}

/// A module for each compiler with a test for each of its levels, which calls `check(compiler, flags)` of the caller where both are
/// there. The usual compilers compile every level; of the others, which differ from them by builtins alone, one each.
#[macro_export]
macro_rules! with_each_compiler {
    () => {
        $crate::with_each_compiler! {
            gcc = "g++" at [base, v3, v4],
            gcc_11 = "g++-11" at [v4],
            clang_13 = "clang++-13" at [v4],
            clang_14 = "clang++-14" at [v3],
            clang_15 = "clang++-15" at [v4],
            clang_16 = "clang++-16" at [base],
            clang = "clang++-19" at [base, v3, v4],
        }
    };
    ($($module:ident = $compiler:literal at [$($level:ident),*]),* $(,)?) => {$(
        mod $module {
            $(
                #[test]
                fn $level() {
                    if let (true, Some(flags)) =
                        ($crate::compilers::is_installed($compiler), $crate::compilers::flags_of(stringify!($level)))
                    {
                        super::check($compiler, flags);
                    }
                }
            )*
        }
    )*};
}
