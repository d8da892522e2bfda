//! Target triples, as cargo writes them.
//!
//! Owns the comparison of a Rust triple with what a compiler says of itself; knows no compiler.

use std::fmt;

mod platform;

pub use platform::{ObjectFormat, Platform};

/// A target triple such as `x86_64-unknown-linux-gnu`. Any text is accepted: an unknown one is served by no toolchain.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Target(String);

impl Target {
    /// The triple with this text.
    pub fn new(triple: impl Into<String>) -> Self {
        Target(triple.into())
    }

    /// The machine that this crate was compiled for, which is the one that the build runs on.
    pub fn host() -> Self {
        Target(target_lexicon::HOST.to_string())
    }

    /// The triple as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The architecture under its usual Rust name: `x86_64`, `aarch64`, …
    pub fn architecture(&self) -> &str {
        normal_architecture(first_part(&self.0))
    }

    /// Whether a compiler that calls its output `machine` (`-dumpmachine`) makes objects for this target.
    ///
    /// Vendors and C libraries are not compared: generated code is freestanding, so objects made by a glibc
    /// compiler link into a musl program.
    pub fn is_served_by(&self, machine: &str) -> bool {
        self.architecture() == normal_architecture(first_part(machine))
            && self.platform().system == Platform::of(machine).system
    }

    /// Whether code for one runs on the other: they have the same architecture, system and C library. Vendors, by which
    /// distributions call their own compilers, say nothing of code.
    pub fn is_same_platform(&self, other: &Target) -> bool {
        let parts = |target: &Target| {
            let triple = target.0.parse::<target_lexicon::Triple>().ok()?;
            Some((triple.architecture, triple.operating_system, triple.environment))
        };
        self == other || parts(self).is_some_and(|own| parts(other) == Some(own))
    }

    /// What is known of its system.
    pub fn platform(&self) -> &'static Platform {
        Platform::of(&self.0)
    }

    /// The triple with `-` and `.` written `_`, as environment variables spell it.
    pub(crate) fn underscored(&self) -> String {
        self.0.replace(['-', '.'], "_")
    }
}

impl fmt::Display for Target {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

fn first_part(triple: &str) -> &str {
    triple.split('-').next().unwrap_or(triple)
}

fn normal_architecture(name: &str) -> &str {
    match name {
        "amd64" | "x86_64h" => "x86_64",
        "arm64" => "aarch64",
        "i386" | "i486" | "i586" | "i686" => "x86",
        "riscv64gc" | "riscv64a23" => "riscv64",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vendors_do_not_matter_and_c_libraries_do() {
        let same = |a: &str, b: &str| Target::new(a).is_same_platform(&Target::new(b));
        assert!(same("x86_64-alpine-linux-musl", "x86_64-unknown-linux-musl"));
        assert!(!same("x86_64-alpine-linux-musl", "x86_64-unknown-linux-gnu"));
        assert!(!same("aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"));
        assert!(same("board", "board") && !same("board", "other"));
    }

    #[test]
    fn compilers_are_matched_by_architecture_and_system() {
        let target = Target::new("x86_64-unknown-linux-gnu");
        assert!(target.is_served_by("x86_64-linux-gnu"));
        assert!(target.is_served_by("x86_64-pc-linux-gnu"));
        assert!(!target.is_served_by("aarch64-linux-gnu"));
        assert!(!target.is_served_by("x86_64-w64-mingw32"));
        assert!(Target::new("aarch64-unknown-linux-musl").is_served_by("aarch64-linux-gnu"));
        for (target, machine) in [
            ("x86_64-pc-windows-gnu", "x86_64-w64-mingw32"),
            ("aarch64-pc-windows-gnullvm", "aarch64-unknown-windows-gnu"),
            ("aarch64-apple-darwin", "aarch64-unknown-macos"),
            ("wasm32-unknown-unknown", "wasm32-unknown-wasi"),
            ("riscv64gc-unknown-linux-gnu", "riscv64-linux-gnu"),
        ] {
            assert!(Target::new(target).is_served_by(machine), "{target}");
        }
        assert!(!Target::new("aarch64-linux-android").is_served_by("aarch64-linux-gnu"));
    }
}
