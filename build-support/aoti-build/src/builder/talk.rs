//! What a build script says: to cargo, which shows errors and warnings, and on stderr, which cargo keeps and shows with
//! `-vv` or where the script fails.

use aoti_toolchain::{Event, Target};

use crate::error::{Error, Fault};
use crate::progress::{ModelEvent, Progress};

/// Tells cargo what is wrong, which fails the build, whatever the script does next.
///
/// Of a script that fails besides, cargo shows all that it has printed, and the same once more. So it ends here where what cargo
/// was told is all that there is to say; what tools have written is longer, and goes on to the script's `main`.
pub(super) fn failed(error: Error) -> Error {
    for line in error.lines() {
        println!("cargo::error={}", on_one_line(&line));
    }
    match error.fault() {
        Fault::User => std::process::exit(0),
        Fault::Machine => error,
    }
}

/// Tells cargo what the package's owner should know.
pub(super) fn warn(notes: &[String]) {
    for note in notes {
        println!("cargo::warning={}", on_one_line(note));
    }
}

/// What to tell whoever builds a program for another processor and names no linker: rustc then calls `cc`, which links for the
/// host alone.
pub(super) fn linker_advice(target: &Target, host: &Target, has_linker: bool) -> Option<String> {
    let parts: Vec<&str> = target.as_str().split('-').collect();
    let [architecture, .., "linux", library] = parts.as_slice() else { return None };
    if has_linker || target.is_served_by(host.as_str()) || !library.starts_with("gnu") {
        return None;
    }
    let variable = target.as_str().replace(['-', '.'], "_").to_uppercase();
    Some(format!(
        "programs for `{target}` need its linker, and none is configured: set \
         `CARGO_TARGET_{variable}_LINKER={architecture}-linux-{library}-gcc`, or `target.{target}.linker` in `.cargo/config.toml`"
    ))
}

/// Cargo reads line by line.
fn on_one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// A listener of build scripts.
pub(super) struct Talk;

impl Progress for Talk {
    fn model(&self, event: &ModelEvent<'_>) {
        match event {
            ModelEvent::Fresh { name } => eprintln!("       Fresh {name}"),
            ModelEvent::Note { message, .. } => println!("cargo::warning={}", on_one_line(message)),
            ModelEvent::Compiling { name, .. } => eprintln!("   Compiling {name}"),
            ModelEvent::Waiting { name } => {
                eprintln!("    Blocking waiting for another process that builds {name}");
            }
            ModelEvent::Built { name, millis } => eprintln!("       Built {name} in {millis} ms"),
        }
    }

    fn tool(&self, event: &Event<'_>) {
        match event {
            Event::Finished { label, cached, millis } => {
                let verb = if *cached { "Cached" } else { "Ran" };
                eprintln!("{verb:>12} {label} in {millis} ms");
            }
            Event::Waiting { label } => {
                eprintln!("    Blocking waiting for another process that makes {label}");
            }
            Event::Warning { label, message } => {
                println!("cargo::warning={}", on_one_line(&format!("{label}: {message}")));
            }
            Event::Started { .. } | Event::Failed { .. } | _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linkers_are_advised_where_rustc_would_call_that_of_the_host() {
        let host = Target::new("x86_64-unknown-linux-gnu");
        let advice = |target: &str, has_linker| linker_advice(&Target::new(target), &host, has_linker);
        let said = advice("aarch64-unknown-linux-gnu", false).expect("there is no linker");
        assert!(
            said.contains("`CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc`"),
            "{said}"
        );
        let said = advice("armv7-unknown-linux-gnueabihf", false).expect("there is no linker");
        assert!(said.contains("LINKER=armv7-linux-gnueabihf-gcc"), "{said}");
        assert_eq!(advice("aarch64-unknown-linux-gnu", true), None);
        // rustc brings what links these, or they are for this processor.
        for target in ["aarch64-unknown-linux-musl", "wasm32-wasip1", "x86_64-unknown-linux-gnu"] {
            assert_eq!(advice(target, false), None, "{target}");
        }
    }

    #[test]
    fn what_cargo_reads_has_no_line_ends() {
        assert_eq!(on_one_line("a\r\nb\ncargo::x"), "a  b cargo::x");
    }
}
