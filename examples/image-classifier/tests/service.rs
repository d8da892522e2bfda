//! The service as its users see it: pictures posted over TCP, one by one and many at once.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use tokio::net::TcpListener;
use tokio::sync::oneshot;

/// Clients of the test at once.
const CLIENTS: usize = 48;

/// A service on a port of its own.
struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: std::thread::JoinHandle<()>,
}

impl Running {
    fn start(delay: Duration) -> Running {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = std::sync::mpsc::channel();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                tell.send(listener.local_addr().unwrap()).unwrap();
                let shutdown = async { drop(stopped.await) };
                image_classifier::serve(listener, delay, shutdown).await.unwrap();
            });
        });
        Running { address: told.recv().unwrap(), stop, thread }
    }

    /// Status and body of a request.
    fn ask(&self, request: &str, body: &[u8]) -> (u16, String) {
        ask(self.address, request, body)
    }

    fn counter(&self, name: &str) -> u64 {
        let (_, text) = self.ask("GET /metrics", &[]);
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).unwrap();
        line.parse().unwrap()
    }

    /// Ends it, and waits for that.
    fn end(self) {
        self.stop.send(()).unwrap();
        self.thread.join().unwrap();
    }
}

fn ask(address: SocketAddr, request: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let head =
        format!("{request} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Pictures of the example `digits` with what PyTorch reads in them, right or not.
fn pictures() -> Vec<(String, Vec<u8>)> {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../digits");
    let expected = std::fs::read_to_string(example.join("expected.txt")).unwrap();
    let fields = expected.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let named = fields.filter(|fields| fields[0].ends_with(".png"));
    named
        .map(|fields| {
            (fields[1].to_owned(), std::fs::read(example.join("pictures").join(fields[0])).unwrap())
        })
        .collect()
}

#[test]
fn pictures_are_classified_and_bad_ones_are_refused() {
    let service = Running::start(Duration::ZERO);
    assert_eq!(service.ask("GET /health", &[]), (200, "ok\n".to_owned()));
    for (label, picture) in pictures() {
        let (status, body) = service.ask("POST /classify", &picture);
        assert_eq!(status, 200, "{body}");
        assert!(body.starts_with(&format!("{{\"digit\":{label},\"probability\":")), "{label}: {body}");
    }
    let (status, _) = service.ask("POST /classify", b"no picture");
    assert_eq!(status, 400);
    let (status, _) = service.ask("POST /classify", &vec![0; (64 << 10) + 1]);
    assert_eq!(status, 413);
    assert_eq!(service.counter("classifier_bad_requests_total"), 1);
    service.end();
}

#[test]
fn many_at_once_are_batches() {
    let service = Running::start(Duration::from_millis(20));
    let before = service.counter("classifier_batches_total");
    let pictures = pictures();
    let together = Arc::new(Barrier::new(CLIENTS));
    let clients = (0..CLIENTS).map(|client| {
        let (label, picture) = pictures[client % pictures.len()].clone();
        let (address, together) = (service.address, Arc::clone(&together));
        std::thread::spawn(move || {
            together.wait();
            let (status, body) = ask(address, "POST /classify", &picture);
            assert!(status == 200 && body.starts_with(&format!("{{\"digit\":{label},")), "{status} {body}");
        })
    });
    let clients: Vec<_> = clients.collect();
    clients.into_iter().for_each(|client| client.join().unwrap());
    let batches = service.counter("classifier_batches_total") - before;
    assert!(batches < CLIENTS as u64 / 2, "{CLIENTS} pictures were {batches} batches");
    service.end();
}

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let service = Running::start(Duration::from_millis(300));
    let (_, picture) = pictures().remove(0);
    let address = service.address;
    let client = std::thread::spawn(move || ask(address, "POST /classify", &picture));
    // The picture waits for others when the service is told to end.
    std::thread::sleep(Duration::from_millis(100));
    let begun = Instant::now();
    service.end();
    assert_eq!(client.join().unwrap().0, 200);
    assert!(begun.elapsed() < Duration::from_secs(10));
}
