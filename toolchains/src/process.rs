//! Starts processes: the only file that does. No shell, no inherited variables, no standard input.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use crate::environment::Environment;
use crate::find::Launch;

/// Runs a tool to its end in a folder and returns its status and both streams.
pub(crate) fn run(
    launch: &Launch,
    arguments: &[String],
    directory: &Path,
    environment: &Environment,
) -> io::Result<Output> {
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .args(&launch.places)
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(environment.for_tools())
        .stdin(Stdio::null());
    // A script that was written a moment ago may still be open for writing in a child that another thread has
    // forked but that has not yet called exec; the kernel refuses to run it for those few milliseconds.
    for _ in 0..20 {
        match command.output() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
    command.output()
}

/// A line to paste into a POSIX shell: enters the folder and runs the tool with the same arguments.
pub(crate) fn copyable(launch: &Launch, arguments: &[String], directory: &Path) -> String {
    let words = std::iter::once(launch.program.as_os_str().to_owned())
        .chain(launch.arguments.iter().map(OsString::from))
        .chain(launch.places.iter().map(OsString::from))
        .chain(arguments.iter().map(OsString::from))
        .map(|word| quoted(&word.to_string_lossy()))
        .collect::<Vec<_>>();
    format!("cd {} && {}", quoted(&directory.to_string_lossy()), words.join(" "))
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+:,@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_survive_a_shell() {
        assert_eq!(quoted("-Wl,-s"), "-Wl,-s");
        assert_eq!(quoted("a b"), "'a b'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted("$ORIGIN"), "'$ORIGIN'");
        assert_eq!(quoted(""), "''");
    }
}
