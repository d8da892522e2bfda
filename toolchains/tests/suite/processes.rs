//! Many threads and many processes on one action: it is made once; a process that is killed holds nobody up.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aoti_toolchain::{Action, Environment, Executor, Identity, Launch, LocalStore, Target, Tool};

use crate::common::{Log, executor};

const FOLDER: &str = "AOTI_TEST_FOLDER";

/// A tool that notes each call, takes its time and copies its input.
fn slow_action(folder: &Path, seconds: &str) -> Action {
    let program = folder.join("slow-tool");
    if !program.exists() {
        let calls = folder.join("calls");
        let text = format!("#!/bin/sh\necho call >> {}\nsleep {seconds}\ncat in > out\n", calls.display());
        let aside = folder.join("slow-tool.new");
        std::fs::write(&aside, text).unwrap();
        std::fs::set_permissions(&aside, std::fs::Permissions::from_mode(0o755)).unwrap();
        std::fs::rename(aside, &program).unwrap();
    }
    let launch = Launch::of(program);
    Action {
        label: "slow".to_owned(),
        tool: Tool { launch, identity: Identity::from_text("slow tool") },
        target: Target::host(),
        inputs: vec![aoti_toolchain::Input::text("in", "content")],
        arguments: Vec::new(),
        outputs: vec!["out".to_owned()],
        host_only: false,
        distributable: false,
    }
}

fn calls(folder: &Path) -> usize {
    std::fs::read_to_string(folder.join("calls")).unwrap_or_default().lines().count()
}

fn child(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "processes::one_child", "--nocapture"])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

/// Not a test of its own: what [`child`] runs in another process.
#[test]
fn one_child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let store = LocalStore::new(folder.join("cache"));
    let outputs = executor(folder, Some(store)).run_one(&slow_action(folder, "0"), &Log::default()).unwrap();
    assert_eq!(outputs.first().read().unwrap(), b"content");
}

#[test]
fn eight_processes_make_it_once() {
    let folder = tempfile::tempdir().unwrap();
    slow_action(folder.path(), "0.4");
    let mut children = (0..8).map(|_| child(folder.path())).collect::<Vec<_>>();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(calls(folder.path()), 1);
}

#[test]
fn eight_threads_make_it_once_and_waits_are_announced() {
    let folder = tempfile::tempdir().unwrap();
    let action = slow_action(folder.path(), "0.5");
    let store = LocalStore::new(folder.path().join("cache"));
    let environment = Environment::capture().with("TMPDIR", folder.path());
    let run = Executor::new(&environment, Some(std::sync::Arc::new(store)), Some(8)).unwrap();
    let log = Log::default();
    let results = run.run(&vec![action; 8], &log);
    assert!(results.iter().all(|result| result.is_ok()));
    assert_eq!(calls(folder.path()), 1);
    assert_eq!(log.count("made"), 1);
    assert!(log.count("waiting slow") >= 1, "{:?}", log.lines());
}

#[test]
fn a_killed_process_leaves_no_lock_and_no_result() {
    let folder = tempfile::tempdir().unwrap();
    slow_action(folder.path(), "30");
    let mut first = child(folder.path());
    let begun = Instant::now();
    while calls(folder.path()) == 0 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(10));
    }
    first.kill().unwrap();
    first.wait().unwrap();
    // The next one runs the tool itself, at once and not after the dead one's thirty seconds.
    std::fs::remove_file(folder.path().join("slow-tool")).unwrap();
    let action = slow_action(folder.path(), "0");
    let store = LocalStore::new(folder.path().join("cache"));
    let begun = Instant::now();
    let outputs = executor(folder.path(), Some(store)).run_one(&action, &Log::default()).unwrap();
    assert!(!outputs.cached && begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(calls(folder.path()), 2);
}

#[test]
fn no_more_tools_run_at_once_than_there_are_tokens() {
    let folder = tempfile::tempdir().unwrap();
    let actions = (0..6).map(|index| {
        let mut action = slow_action(folder.path(), "0.2");
        action.inputs[0] = aoti_toolchain::Input::text("in", &index.to_string());
        action
    });
    let actions = actions.collect::<Vec<_>>();
    let environment = Environment::capture().with("TMPDIR", folder.path());
    for (jobs, least) in [(1, 1200), (3, 400)] {
        let begun = Instant::now();
        let run = Executor::new(&environment, None, Some(jobs)).unwrap();
        assert!(run.run(&actions, &Log::default()).iter().all(Result::is_ok));
        let took = begun.elapsed().as_millis();
        assert!(took >= least, "{jobs} jobs took {took} ms");
    }
}

/// Not a test of its own: the child of the test below, with the jobserver that its parent made.
#[test]
fn one_child_of_a_jobserver() {
    let Some(folder) = std::env::var_os(JOBSERVER_FOLDER) else { return };
    let folder = Path::new(&folder);
    let environment = Environment::capture().with("TMPDIR", folder);
    let actions = (0..6).map(|index| {
        let mut action = slow_action(folder, "0");
        action.inputs[0] = aoti_toolchain::Input::text("in", &index.to_string());
        action
    });
    let run = Executor::new(&environment, None, None).unwrap();
    assert!(run.run(&actions.collect::<Vec<_>>(), &Log::default()).iter().all(Result::is_ok));
}

const JOBSERVER_FOLDER: &str = "AOTI_TEST_JOBSERVER_FOLDER";

#[test]
fn tokens_of_an_inherited_jobserver_are_respected_and_returned() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path().display();
    // Each call notes how many run beside it.
    let text = format!(
        "#!/bin/sh\nmkdir {here}/running.$$\nls -d {here}/running.* | wc -l >> {here}/counts\n\
         sleep 0.2\nrmdir {here}/running.$$\ncat in > out\n"
    );
    let program = folder.path().join("slow-tool");
    std::fs::write(&program, text).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();

    let client = jobserver::Client::new(1).unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "processes::one_child_of_a_jobserver"]).env(JOBSERVER_FOLDER, folder.path());
    client.configure(&mut command);
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
    let counts = std::fs::read_to_string(folder.path().join("counts")).unwrap();
    let most = counts.lines().filter_map(|line| line.trim().parse::<usize>().ok()).max();
    assert_eq!(most, Some(2), "one implicit token and one from the pipe");
    assert_eq!(client.available().unwrap(), 1);
}
