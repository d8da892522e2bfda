//! Starts processes, and ends those that do not end: the only file that does. No shell, no inherited variables, no standard
//! input.

use std::ffi::OsString;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::environment::Environment;
use crate::find::Launch;
use crate::system::tree::ProcessTree;

/// Says how many seconds a tool may take.
const LIMIT: &str = "AOTI_TOOL_TIMEOUT";
/// Without it: longer than any compile of a model has taken, and short enough for a build that nobody watches.
const USUAL_LIMIT: Duration = Duration::from_secs(3600);
/// How long is waited for what a tool that was ended has written.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// The time that a tool may take. `Err` is what the variable holds, which is no such time.
pub(crate) fn limit(environment: &Environment) -> Result<Duration, String> {
    let Some(value) = environment.variable(LIMIT) else { return Ok(USUAL_LIMIT) };
    let value = value.to_string_lossy();
    let seconds = value.parse::<u32>().ok().filter(|seconds| *seconds > 0);
    seconds.map(|seconds| Duration::from_secs(seconds.into())).ok_or_else(|| value.into_owned())
}

/// A tool that has ended, or was ended.
pub(crate) struct Ended {
    pub(crate) output: Output,
    /// The time after which it was ended.
    late: Option<Duration>,
}

impl Ended {
    pub(crate) fn is_success(&self) -> bool {
        self.late.is_none() && self.output.status.success()
    }

    /// How it ended, in words.
    pub(crate) fn status(&self) -> String {
        match self.late {
            Some(limit) => format!("no end after {} s, so it was ended", limit.as_secs()),
            None => self.output.status.to_string(),
        }
    }

    /// What to do, where it was ended.
    pub(crate) fn advice(&self) -> Option<&'static str> {
        self.late.map(
            |_| "the tool may hang; if it needs more time, set `AOTI_TOOL_TIMEOUT` to a number of seconds",
        )
    }
}

/// Runs a tool to its end in a folder and returns its status and both streams. One that takes longer than the limit is
/// ended, and all that it has started.
pub(crate) fn run(
    launch: &Launch,
    arguments: &[String],
    directory: &Path,
    environment: &Environment,
) -> io::Result<Ended> {
    // Who runs actions has reported a value that is no time.
    let limit = limit(environment).unwrap_or(USUAL_LIMIT);
    let mut command = Command::new(&launch.program);
    command
        .args(&launch.arguments)
        .args(&launch.places)
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(environment.for_tools())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A script that was written a moment ago may still be open for writing in a child that another thread has
    // forked but that has not yet called exec; the kernel refuses to run it for those few milliseconds.
    for _ in 0..20 {
        match command.spawn() {
            Err(error) if error.kind() == io::ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return ended(other?, limit),
        }
    }
    ended(command.spawn()?, limit)
}

/// Waits for both streams, which end with the last process that writes to them, and then for the tool itself.
fn ended(mut child: Child, limit: Duration) -> io::Result<Ended> {
    let tree = ProcessTree::of(&child);
    // Later than that cannot be told apart from never.
    let until = Instant::now().checked_add(limit);
    let left = || until.map_or(limit, |until| until.saturating_duration_since(Instant::now()));
    let (stdout, stderr) = (reader(child.stdout.take()), reader(child.stderr.take()));
    let mut texts = [&stdout, &stderr].map(|stream| stream.recv_timeout(left()).ok());
    let mut status = None;
    if texts.iter().all(Option::is_some) {
        let mut pause = Duration::from_micros(100);
        loop {
            status = child.try_wait()?;
            if status.is_some() || left().is_zero() {
                break;
            }
            std::thread::sleep(pause.min(left()));
            pause = (pause * 2).min(Duration::from_millis(50));
        }
    }
    let late = status.is_none().then_some(limit);
    if late.is_some() {
        tree.end(&mut child);
    }
    for (text, stream) in texts.iter_mut().zip([stdout, stderr]).filter(|(text, _)| text.is_none()) {
        *text = stream.recv_timeout(LAST_WORDS).ok();
    }
    let status = match status {
        Some(status) => status,
        None => child.wait()?,
    };
    let [stdout, stderr] = texts.map(Option::unwrap_or_default);
    Ok(Ended { output: Output { status, stdout, stderr }, late })
}

/// Reads a stream on a thread of its own, so that a tool can fill both. What cannot be read any more is not missed.
fn reader(stream: Option<impl Read + Send + 'static>) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = stream.map(|mut stream| stream.read_to_end(&mut text));
        let _ = send.send(text);
    });
    receive
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
