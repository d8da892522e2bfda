//! Tools that a test needs beyond Rust and g++, each of which may be absent.

use std::process::Command;

/// Whether the programs run that a tool, by its name in `AOTI_TEST_REQUIRE`, consists of. Where one does not, says so; or
/// fails, where that variable names the tool.
pub fn are_there(tool: &str, programs: &[&str]) -> bool {
    let runs = |program: &&&str| Command::new(program).arg("--version").output().is_ok();
    let Some(absent) = programs.iter().find(|program| !runs(program)) else { return true };
    let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|name| name.trim() == tool);
    assert!(!is_required, "`{tool}` is required by AOTI_TEST_REQUIRE, and `{absent}` does not run");
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
