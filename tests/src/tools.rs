//! Tools that a test needs beyond Rust and g++, each of which may be absent.

use std::path::Path;
use std::process::Command;

/// Whether the programs run that a tool, by its name in `AOTI_TEST_REQUIRE`, consists of. Where one does not, says so; or
/// fails, where that variable names the tool.
pub fn are_there(tool: &str, programs: &[&str]) -> bool {
    let runs = |program: &&&str| Command::new(program).arg("--version").output().is_ok();
    programs.iter().find(|program| !runs(program)).is_none_or(|absent| is_absent(tool, absent))
}

/// Whether Rust's own libraries for a target are installed. Where they are not, as with [`are_there`].
pub fn rust_target(tool: &str, target: &str) -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let printed = Command::new(rustc).args(["--print", "target-libdir", "--target", target]).output();
    let folder = printed.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    folder.is_ok_and(|folder| Path::new(&folder).is_dir()) || is_absent(tool, target)
}

/// Says that something is not installed, and gives false; or fails, where the variable requires the tool that it is of.
fn is_absent(tool: &str, absent: &str) -> bool {
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == tool);
    assert!(!is_required, "`{tool}` is required by AOTI_TEST_REQUIRE, and `{absent}` is not there");
    eprintln!("skipped: `{absent}` is not installed");
    false
}

/// The GNU cross compiler for 64-bit Arm with its binary utilities.
pub fn arm_compiler() -> bool {
    are_there("gcc-aarch64", &["aarch64-linux-gnu-g++", "aarch64-linux-gnu-objdump"])
}

/// What runs programs for 64-bit Arm on another processor.
pub fn arm_emulator() -> bool {
    are_there("qemu", &["qemu-aarch64"])
}

/// Zig's compiler: on `PATH`, or where the variable of cargo-zigbuild says.
pub fn zig() -> bool {
    let program = std::env::var("CARGO_ZIGBUILD_ZIG_PATH").unwrap_or_else(|_| "zig".to_owned());
    are_there("zig", &[&program])
}

/// A browser.
pub fn chromium() -> bool {
    crate::chromium::program().is_some() || is_absent("chromium", "chromium")
}

/// What runs programs for Windows: wine, which some distributions keep off `PATH`.
pub fn wine() -> Option<String> {
    const PROGRAMS: [&str; 3] = ["wine64", "wine", "/usr/lib/wine/wine64"];
    let runs = |program: &&str| Command::new(program).arg("--version").output().is_ok();
    let found = PROGRAMS.into_iter().find(runs).map(str::to_owned);
    found.or_else(|| is_absent("wine", "wine64").then(String::new))
}
