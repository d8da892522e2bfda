//! The other end of the worker process: starts it, asks it, ends it when it takes too long, and starts it again.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use aoti_runtime::Device;
use aoti_toolchain::ProcessTree;
use serde::Serialize;

use super::bench::Fault;
use super::crash_marker::CrashMarker;
use super::worker::{COMMAND, Request, Response, Settings};
use crate::error::Error;
use crate::system;

/// What a worker process is started with.
pub(crate) struct Setting {
    /// A private folder.
    pub folder: PathBuf,
    pub inputs: PathBuf,
    /// What the evaluator gives.
    pub expected: Option<PathBuf>,
    pub device: Device,
    pub threads: u16,
    /// Whether products of `f32` may be rounded as TF32.
    pub tf32: bool,
}

/// A worker process.
pub(crate) struct WorkerClient {
    child: Child,
    /// What ends with us, whatever becomes of us.
    tree: Option<ProcessTree>,
    requests: Option<ChildStdin>,
    responses: Receiver<String>,
    marker: CrashMarker,
    errors: PathBuf,
}

impl WorkerClient {
    /// Starts a process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(crate) fn start(setting: &Setting) -> Result<WorkerClient, Error> {
        let refuse = |error: std::io::Error| {
            Error::Machine(format!("cannot start the process for candidates: {error}"))
        };
        let (marker, errors) = (setting.folder.join("place"), setting.folder.join("stderr"));
        // What an earlier process left is not where this one is.
        let _ = std::fs::remove_file(&marker);
        let shared = CrashMarker::open(&marker)?;
        let program = std::env::current_exe().map_err(refuse)?;
        let mut command = limited(vec![program.into(), COMMAND.into()], setting.device);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(std::fs::File::create(&errors).map_err(refuse)?);
        let mut child = command.spawn().map_err(refuse)?;
        let tree = Some(ProcessTree::of(&child));
        let requests = child.stdin.take();
        let (send, responses) = channel();
        let stdout =
            child.stdout.take().ok_or_else(|| Error::Machine("the process has no output".to_owned()))?;
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let mut client = WorkerClient { child, tree, requests, responses, marker: shared, errors };
        let first = Settings {
            inputs: setting.inputs.clone(),
            expected: setting.expected.clone(),
            marker,
            device: setting.device.to_string(),
            threads: setting.threads,
            tf32: setting.tf32,
        };
        // What goes wrong with it is told by the first request.
        client.send(&first);
        Ok(client)
    }

    /// Writes a line; whether that was possible.
    fn send(&mut self, what: &impl Serialize) -> bool {
        let mut line = serde_json::to_string(what).expect("requests have text keys only");
        line.push('\n');
        let sent =
            self.requests.as_mut().map(|pipe| pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()));
        matches!(sent, Some(Ok(())))
    }

    /// Asks for something. The fault is of the candidate that ran; then the process has ended.
    pub(crate) fn ask(&mut self, request: &Request, limit: Duration) -> Result<Response, Fault> {
        if !self.send(request) {
            return Err(self.ended());
        }
        match self.responses.recv_timeout(limit) {
            Ok(line) => {
                serde_json::from_str(&line).map_err(|_| self.fault("the process gave no answer".to_owned()))
            }
            Err(RecvTimeoutError::Timeout) => {
                self.kill();
                {
                    let fault = self.fault(format!("no result after {:.1} s", limit.as_secs_f64()));
                    Err(Fault { is_hang: true, ..fault })
                }
            }
            Err(RecvTimeoutError::Disconnected) => Err(self.ended()),
        }
    }

    fn kill(&mut self) {
        if let Some(tree) = self.tree.take() {
            tree.end(&mut self.child);
        }
        let _ = self.child.wait();
    }

    /// The process has ended, or will.
    fn ended(&mut self) -> Fault {
        self.requests = None;
        let status = self.child.wait();
        let mut reason = status.map_or_else(|error| error.to_string(), describe);
        reason.push_str(&tail(&self.errors));
        self.fault(reason)
    }

    fn fault(&self, reason: String) -> Fault {
        let (library, kernel) =
            self.marker.last().map_or((None, None), |(library, kernel)| (Some(library), kernel));
        Fault { reason, kernel, library, is_hang: false }
    }
}

impl Drop for WorkerClient {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The command with a limit on its memory, where the shell knows one: all that the machine has. Drivers of GPUs reserve
/// more addresses than that.
fn limited(words: Vec<OsString>, device: Device) -> Command {
    let memory = if system::HAS_ULIMIT && device == Device::Cpu { memory_kib() } else { None };
    let mut words = words.into_iter();
    let program = words.next().unwrap_or_default();
    let Some(memory) = memory else {
        let mut command = Command::new(program);
        command.args(words);
        return command;
    };
    let mut command = Command::new("sh");
    command
        .arg("-c")
        .arg(format!("ulimit -v {memory} 2>/dev/null; exec \"$0\" \"$@\""))
        .arg(program)
        .args(words);
    command
}

/// Kibibytes of memory that the machine has.
fn memory_kib() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().trim_end_matches("kB").trim().parse().ok()
}

fn describe(status: ExitStatus) -> String {
    system::crash(status).unwrap_or_else(|| match status.code() {
        Some(code) => format!("the process ended with code {code}"),
        None => "the process ended".to_owned(),
    })
}

/// The end of what the process said, after a colon.
fn tail(path: &Path) -> String {
    const MOST: u64 = 2000;
    let mut text = Vec::new();
    if let Ok(file) = std::fs::File::open(path) {
        let _ = file.take(MOST).read_to_end(&mut text);
    }
    let text = String::from_utf8_lossy(&text);
    let text = text.trim().trim_start_matches("error: ");
    if text.is_empty() { String::new() } else { format!(": {}", text.lines().next().unwrap_or_default()) }
}
