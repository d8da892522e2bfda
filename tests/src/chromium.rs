//! A page in a browser without a screen, driven by the DevTools protocol over a pipe, and the server that it is loaded from.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// What servers say of a file, by its extension. Browsers take WebAssembly and modules under these names alone.
const TYPES: &[(&str, &str)] = &[
    ("html", "text/html; charset=utf-8"),
    ("js", "text/javascript"),
    ("wasm", "application/wasm"),
    ("png", "image/png"),
];

/// How often a page is asked, and how long it is left alone in between.
const TRIES: u32 = 600;
const PAUSE: Duration = Duration::from_millis(100);

/// Serves the files of a folder for as long as the test runs, and gives the address.
pub fn serve(folder: &Path) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it has an address");
    let folder = folder.to_owned();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let folder = folder.clone();
            std::thread::spawn(move || answer(stream, &folder));
        }
    });
    format!("http://{address}")
}

/// One request, after which the connection ends.
fn answer(mut stream: TcpStream, folder: &Path) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let request = lines.next().transpose()?.unwrap_or_default();
    // Whoever closes a connection with something unread resets it.
    lines.find(|line| line.as_ref().is_ok_and(String::is_empty));
    let path = request.split(' ').nth(1).unwrap_or_default().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    let file = folder.join(path);
    let extension = file.extension().unwrap_or_default();
    let kind = TYPES.iter().find(|(name, _)| extension == *name);
    let (status, kind, bytes) = match (kind, fs::read(&file)) {
        (Some((_, kind)), Ok(bytes)) => ("200 OK", *kind, bytes),
        (_, _) => ("404 Not Found", "text/plain", path.as_bytes().to_vec()),
    };
    let length = bytes.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(&bytes)
}

/// Chromium with one page, which ends with this value.
pub struct Page {
    browser: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
    session: Option<String>,
    last: u64,
    _profile: tempfile::TempDir,
}

impl Page {
    /// Opens an address.
    pub fn open(browser: &Path, address: &str) -> Page {
        let profile = tempfile::tempdir().expect("there is room for a folder");
        // The pipe is at descriptors 3 and 4.
        let mut browser = Command::new("bash")
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>/dev/null"])
            .arg(browser)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash can be started");
        let requests = browser.stdin.take().expect("it is a pipe");
        let replies = BufReader::new(browser.stdout.take().expect("it is a pipe"));
        let mut page = Page { browser, requests, replies, session: None, last: 0, _profile: profile };
        let target = page.call("Target.createTarget", json!({ "url": address }));
        let attached =
            page.call("Target.attachToTarget", json!({ "targetId": target["targetId"], "flatten": true }));
        page.session = attached["sessionId"].as_str().map(str::to_owned);
        page
    }

    /// Calls a method of the protocol.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.last += 1;
        let mut request = json!({ "id": self.last, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            request["sessionId"] = session.as_str().into();
        }
        let text = format!("{request}\0");
        self.requests.write_all(text.as_bytes()).expect("the browser reads");
        loop {
            let mut text = Vec::new();
            self.replies.read_until(0, &mut text).expect("the browser replies");
            assert_eq!(text.pop(), Some(0), "the browser ended during {method}");
            let reply: Value = serde_json::from_slice(&text).expect("replies are JSON");
            // What has no such number is an event.
            if reply["id"] == self.last {
                assert!(reply["error"].is_null(), "{method}: {reply}");
                return reply["result"].clone();
            }
        }
    }

    /// The value of an expression, once it is something else than null, undefined or false.
    pub fn wait_for(&mut self, expression: &str) -> Value {
        let mut result = Value::Null;
        for _ in 0..TRIES {
            // The page may be another by now, and what is asked of the old one fails.
            result =
                self.call("Runtime.evaluate", json!({ "expression": expression, "returnByValue": true }));
            let value = &result["result"]["value"];
            if !value.is_null() && *value != false {
                return value.clone();
            }
            std::thread::sleep(PAUSE);
        }
        panic!("never: {expression}, but {result}");
    }

    /// Draws a line with the mouse.
    pub fn draw(&mut self, points: &[(f64, f64)]) {
        let last = points.len() - 1;
        for (at, (x, y)) in points.iter().enumerate() {
            let mut kinds = vec!["mouseMoved"];
            if at == 0 {
                kinds.push("mousePressed");
            }
            if at == last {
                kinds.push("mouseReleased");
            }
            for kind in kinds {
                let event =
                    json!({ "type": kind, "x": x, "y": y, "button": "left", "buttons": 1, "clickCount": 1 });
                self.call("Input.dispatchMouseEvent", event);
            }
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.browser.kill();
        let _ = self.browser.wait();
    }
}

/// The browser's program, where there is one.
pub fn program() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut found = std::env::split_paths(&paths).flat_map(|folder| names.map(|name| folder.join(name)));
    found.find(|program| program.is_file())
}
