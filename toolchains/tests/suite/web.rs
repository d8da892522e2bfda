//! A small web server that keeps what it is given, as bazel-remote does, with the faults that networks have.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// The connection ends in the middle of the answer.
    Cut,
    /// No answer comes.
    Hang,
    /// The server says that it cannot.
    Refuse,
    /// One bit of an answer is another.
    Flip,
}

/// The server, on a free port of the loopback device, for as long as the process lives.
pub(crate) struct Web {
    pub(crate) port: u16,
    shared: Arc<Shared>,
}

struct Shared {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    requests: Mutex<Vec<String>>,
    /// What an `Authorization` header must end in, if anything.
    authorization: Option<String>,
    fault: Fault,
    /// So many requests are answered before the fault sets in.
    good: AtomicUsize,
}

struct Request {
    method: String,
    path: String,
    authorization: String,
    body: Vec<u8>,
}

impl Web {
    pub(crate) fn new() -> Web {
        Web::with(None, Fault::None, 0)
    }

    pub(crate) fn with(authorization: Option<&str>, fault: Fault, good: usize) -> Web {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared {
            objects: Mutex::default(),
            requests: Mutex::default(),
            authorization: authorization.map(str::to_owned),
            fault,
            good: AtomicUsize::new(good),
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let serving = Arc::clone(&serving);
                std::thread::spawn(move || serving.serve(stream));
            }
        });
        Web { port, shared }
    }

    /// Every request so far, as `METHOD /path`.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.lock().unwrap().clone()
    }
}

impl Shared {
    /// One request on each connection.
    fn serve(&self, mut stream: TcpStream) -> Option<()> {
        let request = read(&stream)?;
        self.requests.lock().unwrap().push(format!("{} {}", request.method, request.path));
        let is_good =
            self.good.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        let fault = if is_good.is_ok() { Fault::None } else { self.fault };
        let (status, mut body) = match fault {
            Fault::Refuse => ("503 Service Unavailable", Vec::new()),
            Fault::Hang => {
                std::thread::sleep(Duration::from_secs(60));
                return None;
            }
            Fault::None | Fault::Cut | Fault::Flip => self.answer(&request),
        };
        let head =
            format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        if fault == Fault::Flip
            && let Some(last) = body.last_mut()
        {
            *last ^= 1;
        }
        let sent = [head.as_bytes(), &body].concat();
        let length = if fault == Fault::Cut { sent.len() / 2 } else { sent.len() };
        stream.write_all(&sent[..length]).ok()
    }

    fn answer(&self, request: &Request) -> (&'static str, Vec<u8>) {
        if self.authorization.as_ref().is_some_and(|wanted| !request.authorization.ends_with(wanted)) {
            return ("401 Unauthorized", Vec::new());
        }
        let mut objects = self.objects.lock().unwrap();
        match request.method.as_str() {
            "PUT" => {
                objects.insert(request.path.clone(), request.body.clone());
                ("201 Created", Vec::new())
            }
            "GET" => match objects.get(&request.path) {
                Some(body) => ("200 OK", body.clone()),
                None => ("404 Not Found", Vec::new()),
            },
            "MKCOL" => ("201 Created", Vec::new()),
            "PROPFIND" => ("404 Not Found", Vec::new()),
            _ => ("405 Method Not Allowed", Vec::new()),
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let (mut length, mut authorization) = (0, String::new());
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).ok()?;
        let Some((name, value)) = header.trim().split_once(':') else { break };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse().ok()?,
            "authorization" => authorization = value.trim().to_owned(),
            _ => {}
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path, authorization, body })
}
