//! Caches on servers: a real Redis that dies in the middle of a build, and a web server with every fault that networks
//! have. Whatever happens, builds succeed and what they make is right.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use aoti_toolchain::{Environment, Executor, RemoteStore, open_store};

use crate::common::Log;
use crate::layers::{copy_action, run};
use crate::web::{Fault, Web};

/// A Redis of our own on a free port of the loopback device; killed when dropped.
struct Redis {
    child: Child,
    port: u16,
}

impl Redis {
    fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/aoti", self.port)
    }
}

impl Drop for Redis {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn redis(folder: &Path) -> Option<Redis> {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let child = Command::new("redis-server")
        .args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
            "--dir",
        ])
        .arg(folder)
        .stdout(Stdio::null())
        .spawn();
    let child = match child {
        Ok(child) => child,
        Err(error) if crate::common::is_required("redis") => {
            panic!("`redis-server` is required: {error}")
        }
        Err(error) => {
            println!("skipped: redis-server: {error}");
            return None;
        }
    };
    let redis = Redis { child, port };
    let begun = Instant::now();
    while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < Duration::from_secs(20), "redis-server does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some(redis)
}

fn environment(folder: &Path, local: &str, url: &str) -> Environment {
    Environment::capture()
        .with("TMPDIR", folder)
        .with("AOTI_CACHE_DIR", folder.join(local))
        .with("AOTI_CACHE_REMOTE", url)
        .with("AOTI_CACHE_REMOTE_WRITE", "1")
}

#[test]
fn two_machines_share_a_server() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = redis(folder.path()) else { return };
    let store = |local: &str| open_store(&environment(folder.path(), local, &redis.url())).unwrap();
    assert!(!run(folder.path(), store("one"), "shared").0);
    let (cached, log) = run(folder.path(), store("two"), "shared");
    assert!(cached, "{:?}", log.lines());
    assert_eq!(log.count("warning"), 0);
    // Read-only clients do not write.
    let reader = environment(folder.path(), "three", &redis.url()).with("AOTI_CACHE_REMOTE_WRITE", "");
    assert!(!run(folder.path(), open_store(&reader).unwrap(), "unshared").0);
    assert!(!run(folder.path(), store("four"), "unshared").0);
}

#[test]
fn a_server_that_dies_in_the_middle_is_told_once_and_the_build_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let Some(redis) = redis(folder.path()) else { return };
    let environment = environment(folder.path(), "local", &redis.url());
    let executor = Executor::new(&environment, open_store(&environment), Some(2)).unwrap();
    let log = Arc::new(Log::default());
    let actions = (0..40).map(|index| copy_action(&format!("content {index}"))).collect::<Vec<_>>();
    for result in executor.run(&actions[..20], &*log) {
        result.unwrap();
    }
    assert_eq!(log.count("warning"), 0, "{:?}", log.lines());
    drop(redis);
    let begun = Instant::now();
    for (index, result) in executor.run(&actions[20..], &*log).into_iter().enumerate() {
        assert_eq!(result.unwrap().first().read().unwrap(), format!("content {}", index + 20).as_bytes());
    }
    assert_eq!(log.count("warning going on without the cache"), 1, "{:?}", log.lines());
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
}

#[test]
fn a_url_with_credentials_is_refused_and_not_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let environment = environment(folder.path(), "local", "redis://user:secret@127.0.0.1:1/");
    let (_, log) = run(folder.path(), open_store(&environment).unwrap(), "content");
    assert_eq!(log.count("warning going on without the remote cache"), 1);
    assert!(!log.lines().concat().contains("secret"));
}

#[test]
fn web_servers_keep_results_for_others() {
    for scheme in ["http", "dav"] {
        let folder = tempfile::tempdir().unwrap();
        let web = Web::new();
        let url = format!("{scheme}://127.0.0.1:{}/team", web.port);
        let store = |local: &str| open_store(&environment(folder.path(), local, &url)).unwrap();
        assert!(!run(folder.path(), store("one"), "shared").0);
        let (cached, log) = run(folder.path(), store("two"), "shared");
        assert!(cached && log.count("warning") == 0, "{scheme}: {:?} {:?}", log.lines(), web.requests());
        let requests = web.requests();
        let made_folders = requests.iter().any(|request| request.starts_with("MKCOL"));
        assert_eq!(made_folders, scheme == "dav", "{requests:?}");
        // The name under which bazel-remote takes any content.
        let written = requests.iter().find_map(|request| request.strip_prefix("PUT /team/v1/ac/")).unwrap();
        assert!(written.len() == 64 && written.bytes().all(|digit| digit.is_ascii_hexdigit()), "{written}");
    }
}

#[test]
fn credentials_come_from_variables() {
    let folder = tempfile::tempdir().unwrap();
    // `user:word` in base 64.
    let web = Web::with(Some("dXNlcjp3b3Jk"), Fault::None, 0);
    let plain = environment(folder.path(), "one", &format!("http://127.0.0.1:{}/", web.port));
    let (_, log) = run(folder.path(), open_store(&plain).unwrap(), "content");
    assert_eq!(log.count("warning going on without the cache"), 1, "{:?}", log.lines());
    let with = |local: &str| {
        let named = plain.clone().with("AOTI_CACHE_DIR", folder.path().join(local));
        named.with("AOTI_CACHE_REMOTE_USERNAME", "user").with("AOTI_CACHE_REMOTE_PASSWORD", "word")
    };
    for (local, cached) in [("two", false), ("three", true)] {
        let (found, log) = run(folder.path(), open_store(&with(local)).unwrap(), "content");
        assert_eq!((found, log.count("warning")), (cached, 0), "{local}: {:?}", log.lines());
        assert!(!log.lines().concat().contains("word"));
    }
}

#[test]
fn faults_of_a_network_are_told_once_and_builds_succeed() {
    for (fault, told) in [
        (Fault::Cut, "warning going on without the cache"),
        (Fault::Refuse, "warning going on without the cache"),
        (Fault::Hang, "warning going on without the cache"),
        (Fault::Flip, "warning a result in the cache"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        // Three results are looked for and written, and the fault sets in with the first that is there.
        let web = Web::with(None, fault, 6);
        let url = format!("http://127.0.0.1:{}/", web.port);
        let contents = ["a", "b", "c"].map(|content| content.repeat(10_000));
        let build = |local: &str| {
            let environment = environment(folder.path(), local, &url);
            let executor = Executor::new(&environment, open_store(&environment), Some(1)).unwrap();
            let log = Log::default();
            let actions = contents.iter().map(|content| copy_action(content)).collect::<Vec<_>>();
            for (result, content) in executor.run(&actions, &log).into_iter().zip(&contents) {
                assert_eq!(result.unwrap().first().read().unwrap(), content.as_bytes(), "{fault:?}");
            }
            log
        };
        assert_eq!(build("one").count("warning"), 0, "{:?}", web.requests());
        let begun = Instant::now();
        let log = build("two");
        let times = if fault == Fault::Flip { contents.len() } else { 1 };
        assert_eq!(log.count(told), times, "{fault:?}: {:?}", log.lines());
        assert_eq!(log.count("made"), contents.len(), "{fault:?}: {:?}", log.lines());
        assert!(begun.elapsed() < Duration::from_secs(20), "{fault:?}: {:?}", begun.elapsed());
        // What was refused once is not asked again.
        if fault != Fault::Flip {
            assert_eq!(web.requests().len(), 7, "{fault:?}: {:?}", web.requests());
        }
    }
}

#[test]
fn every_kind_of_server_has_a_url() {
    let environment = Environment::from_variables([("PATH", "/bin")], "/");
    for url in [
        "redis://host:6379/prefix",
        "rediss://host/prefix",
        "http://host:8080/prefix",
        "https://host/prefix",
        "dav://host/prefix",
        "davs://host/prefix",
        "s3://bucket/prefix?region=eu-central-1",
        "gcs://bucket/prefix",
        "azblob://container/prefix?endpoint=https%3A%2F%2Faccount.blob.core.windows.net",
    ] {
        let connected = RemoteStore::connect(url, &environment);
        assert!(connected.is_ok(), "{url}: {:?}", connected.err());
    }
}
