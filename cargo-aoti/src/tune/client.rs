//! The other end of the helper process: starts it, asks it, ends it when it takes too long, and starts it again.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use aoti_runtime::Device;
use aoti_toolchain::ProcessTree;

use super::bench::Fault;
use super::helper::{Request, Response};
use super::place::Place;
use crate::failure::Failure;
use crate::system;

/// What a helper process is started with.
pub(super) struct Setting {
    /// A private folder.
    pub(super) folder: PathBuf,
    pub(super) inputs: PathBuf,
    /// What the evaluator gives.
    pub(super) expected: Option<PathBuf>,
    pub(super) device: Device,
    pub(super) threads: u16,
    /// Whether products of `f32` may be rounded as TF32.
    pub(super) tf32: bool,
}

/// A helper process.
pub(super) struct Client {
    child: Child,
    /// What ends with us, whatever becomes of us.
    tree: Option<ProcessTree>,
    requests: Option<ChildStdin>,
    responses: Receiver<String>,
    place: Place,
    errors: PathBuf,
}

impl Client {
    /// Starts a process.
    ///
    /// # Errors
    /// When it cannot be started.
    pub(super) fn start(setting: &Setting) -> Result<Client, Failure> {
        let refuse = |error: std::io::Error| {
            Failure::Machine(format!("cannot start the process for candidates: {error}"))
        };
        let (place, errors) = (setting.folder.join("place"), setting.folder.join("stderr"));
        // What an earlier process left is not where this one is.
        let _ = std::fs::remove_file(&place);
        let shared = Place::open(&place)?;
        let mut words: Vec<OsString> =
            vec![std::env::current_exe().map_err(refuse)?.into(), "__candidates".into()];
        for (flag, value) in [
            ("--inputs", setting.inputs.clone().into_os_string()),
            ("--place", place.into_os_string()),
            ("--device", setting.device.to_string().into()),
            ("--threads", setting.threads.to_string().into()),
        ] {
            words.extend([flag.into(), value]);
        }
        if let Some(expected) = &setting.expected {
            words.extend(["--expected".into(), expected.clone().into_os_string()]);
        }
        if setting.tf32 {
            words.push("--tf32".into());
        }
        let mut command = limited(words, setting.device);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(std::fs::File::create(&errors).map_err(refuse)?);
        let mut child = command.spawn().map_err(refuse)?;
        let tree = Some(ProcessTree::of(&child));
        let requests = child.stdin.take();
        let (send, responses) = channel();
        let stdout =
            child.stdout.take().ok_or_else(|| Failure::Machine("the process has no output".to_owned()))?;
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Client { child, tree, requests, responses, place: shared, errors })
    }

    /// Asks for something. The fault is of the candidate that ran; then the process has ended.
    pub(super) fn ask(&mut self, request: &Request, limit: Duration) -> Result<Response, Fault> {
        let mut line = serde_json::to_string(request).expect("requests have text keys only");
        line.push('\n');
        let sent =
            self.requests.as_mut().map(|pipe| pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()));
        if !matches!(sent, Some(Ok(()))) {
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
            self.place.last().map_or((None, None), |(library, kernel)| (Some(library), kernel));
        Fault { reason, kernel, library, is_hang: false }
    }
}

impl Drop for Client {
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
