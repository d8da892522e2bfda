//! The process that runs a case.

use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use serde::Deserialize;

use aoti_tune::system;

/// What the process says when all is well.
#[derive(Deserialize, Debug)]
struct Report {
    run_us: f64,
}

/// Runs a command that prints a report; gives the microseconds that the run took. The error is why there are none.
pub(super) fn run(mut command: Command, folder: &Path, timeout: Duration) -> Result<f64, String> {
    // Files, not pipes: a process that says much must not wait for a reader that waits for it.
    let (out, err) = (folder.join("stdout"), folder.join("stderr"));
    let create = |path: &Path| std::fs::File::create(path).map_err(|error| error.to_string());
    command.stdin(Stdio::null()).stdout(create(&out)?).stderr(create(&err)?);
    let mut child = spawn(&mut command).map_err(|error| {
        let program = Path::new(command.get_program()).display();
        format!("cannot start `{program}`: {error}")
    })?;
    let Some(status) = wait(&mut child, timeout) else {
        return Err(format!("no result after {} s", timeout.as_secs()));
    };
    if !status.success() {
        return Err(format!("{}{}", describe(status), tail(&err)).trim_start().to_owned());
    }
    let text = std::fs::read_to_string(&out).unwrap_or_default();
    let report = serde_json::from_str::<Report>(text.trim());
    report.map(|report| report.run_us).map_err(|_| format!("the process gave no report{}", tail(&err)))
}

/// A program that was written a moment ago may still be open for writing in a process that another thread has forked and
/// that has not yet started what it is for; the kernel refuses to run it for those few milliseconds.
fn spawn(command: &mut Command) -> std::io::Result<Child> {
    for _ in 0..20 {
        match command.spawn() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            other => return other,
        }
    }
    command.spawn()
}

/// Waits for the end; a process that takes too long is ended.
fn wait(child: &mut Child, timeout: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if begun.elapsed() >= timeout {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(20));
    }
}

fn describe(status: ExitStatus) -> String {
    system::crash(status).unwrap_or_else(|| match status.code() {
        // The program itself said what is wrong.
        Some(1) => String::new(),
        Some(code) => format!("ended with code {code}"),
        None => "ended".to_owned(),
    })
}

/// The end of what the process said, after a colon if something comes before.
fn tail(path: &Path) -> String {
    const MOST: u64 = 4000;
    let mut text = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(MOST).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let text = text.trim().trim_start_matches("error: ");
    if text.is_empty() { String::new() } else { format!(" {text}") }
}
