//! What a build script says: to cargo, which shows errors and warnings, and on stderr, which cargo keeps and shows with
//! `-vv` or where the script fails.

use aoti_toolchain::Event;

use crate::error::Error;
use crate::progress::{ModelEvent, Progress};

/// Tells cargo what is wrong; the error goes on to the script's `main`.
pub(super) fn failed(error: Error) -> Error {
    for line in error.lines() {
        println!("cargo::error={}", on_one_line(&line));
    }
    error
}

/// Tells cargo what the package's owner should know.
pub(super) fn warn(notes: &[String]) {
    for note in notes {
        println!("cargo::warning={}", on_one_line(note));
    }
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
            ModelEvent::Compiling { name } => eprintln!("   Compiling {name}"),
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
    fn what_cargo_reads_has_no_line_ends() {
        assert_eq!(on_one_line("a\r\nb\ncargo::x"), "a  b cargo::x");
    }
}
