//! Layers behind the local store: read-only folders and size limits.

use std::path::Path;
use std::sync::Arc;

use aoti_toolchain::{
    Action, ActionStore, Environment, Executor, Identity, Input, Launch, LayeredStore, LocalStore, Target,
    Tool, Work, open_store,
};

use crate::common::Log;

/// Copies its input; a compiler would be slower.
pub(crate) fn copy_action(content: &str) -> Action {
    Action {
        label: format!("copy of {}", Identity::from_text(content)),
        tool: Tool { launch: Launch::of("/bin/cp"), identity: Identity::from_text("cp") },
        target: Target::host(),
        inputs: vec![Input::text("in", content)],
        arguments: vec!["in".to_owned(), "out".to_owned()],
        outputs: vec!["out".to_owned()],
        host_only: false,
        distributable: false,
    }
}

pub(crate) fn run(folder: &Path, store: Arc<dyn ActionStore>, content: &str) -> (bool, Log) {
    let environment = Environment::capture().with("TMPDIR", folder);
    let log = Log::default();
    let executor = Executor::new(&environment, Some(store), Some(1)).unwrap();
    let outputs = executor.run_one(&copy_action(content), &log).unwrap();
    assert_eq!(outputs.first().read().unwrap(), content.as_bytes());
    (outputs.cached, log)
}

#[test]
fn a_layer_below_serves_and_is_never_written() {
    let folder = tempfile::tempdir().unwrap();
    let lower = folder.path().join("ci");
    run(folder.path(), Arc::new(LocalStore::new(&lower)), "made by a CI job");
    let before = LocalStore::new(&lower).stat().unwrap();

    let upper = LocalStore::new(folder.path().join("local"));
    let below: Arc<dyn ActionStore> = Arc::new(LocalStore::read_only(&lower));
    let layered =
        || Arc::new(LayeredStore::new(Arc::new(upper.clone())).with_layer("ci", Arc::clone(&below), false));
    assert!(run(folder.path(), layered(), "made by a CI job").0);
    assert_eq!(upper.stat().unwrap().entries, 1, "what was found below is kept above");
    assert!(!run(folder.path(), layered(), "made here").0);
    assert_eq!(LocalStore::new(&lower).stat().unwrap(), before);
    std::fs::remove_dir_all(&lower).unwrap();
    assert!(run(folder.path(), layered(), "made by a CI job").0);
    assert!(!lower.exists());
}

#[test]
fn work_is_looked_up_without_being_done_and_its_result_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::capture().with("TMPDIR", folder.path());
    let (log, lower) = (Log::default(), LocalStore::new(folder.path().join("team")));
    let work = |of: &str| Work {
        label: "measured".to_owned(),
        target: Target::host(),
        ingredients: vec![("of", of.to_owned())],
        outputs: vec!["out".to_owned()],
    };
    let executor = |store: Arc<dyn ActionStore>| Executor::new(&environment, Some(store), Some(1)).unwrap();
    let replace = |executor: &Executor, of: &str, content: &str| {
        let write = |folder: &Path| -> Result<(), aoti_toolchain::Error> {
            std::fs::write(folder.join("out"), content).unwrap();
            Ok(())
        };
        executor.replace(&work(of), &log, write).unwrap();
    };
    let kept = |executor: &Executor, of: &str| {
        let outputs = executor.kept(&work(of), &log)?;
        Some(String::from_utf8(outputs.first().read().unwrap()).unwrap())
    };
    let team = executor(Arc::new(lower.clone()));
    assert_eq!(kept(&team, "a"), None);
    replace(&team, "a", "old");
    assert_eq!((kept(&team, "a").as_deref(), kept(&team, "b")), (Some("old"), None));

    let upper = Arc::new(LocalStore::new(folder.path().join("own")));
    let below = Arc::new(LocalStore::read_only(folder.path().join("team")));
    let own = executor(Arc::new(LayeredStore::new(upper).with_layer("team", below, false)));
    assert_eq!(kept(&own, "a").as_deref(), Some("old"), "a layer has it");
    replace(&own, "a", "new");
    assert_eq!((kept(&own, "a").as_deref(), kept(&team, "a").as_deref()), (Some("new"), Some("old")));
    let none = Executor::new(&environment, None, Some(1)).unwrap();
    replace(&none, "a", "lost");
    assert_eq!(kept(&none, "a"), None);
    assert!(log.lines().iter().all(|line| !line.contains("warning")), "{:?}", log.lines());
}

#[test]
fn a_spoiled_layer_is_told_and_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let lower = folder.path().join("ci");
    run(folder.path(), Arc::new(LocalStore::new(&lower)), "content");
    let spoil = |path: &Path| std::fs::write(path, b"something else").unwrap();
    crate::faults::each_file(&lower.join("actions-v1"), &mut |path| {
        if path.ends_with("0") {
            spoil(path);
        }
    });
    let layered = LayeredStore::new(Arc::new(LocalStore::new(folder.path().join("local"))));
    let layered = layered.with_layer("ci", Arc::new(LocalStore::read_only(&lower)), false);
    let (cached, log) = run(folder.path(), Arc::new(layered), "content");
    assert!(!cached);
    assert_eq!(log.count("warning a result in the cache `ci` is spoiled"), 1, "{:?}", log.lines());
}

#[test]
fn the_environment_names_layers_and_sizes_and_mistakes_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let lower = folder.path().join("ci");
    run(folder.path(), Arc::new(LocalStore::new(&lower)), "content");
    let environment = Environment::capture()
        .with("AOTI_CACHE_DIR", folder.path().join("local"))
        .with("AOTI_CACHE_LAYERS", &lower)
        .with("AOTI_CACHE_SIZE", "plenty");
    let (cached, log) = run(folder.path(), open_store(&environment).unwrap(), "content");
    assert!(cached);
    assert_eq!(log.count("warning `AOTI_CACHE_SIZE` is `plenty`"), 1, "{:?}", log.lines());
}

#[test]
fn a_store_keeps_itself_below_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("cache");
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    for index in 0..10 {
        run(folder.path(), Arc::new(LocalStore::new(&root)), &format!("{index}{}", "x".repeat(20_000)));
    }
    // Nothing that was used in the last minutes goes, so these must look older.
    crate::faults::each_file(&root, &mut |path| {
        if path.ends_with("used") {
            std::fs::File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
        }
    });
    let limited = LocalStore::new(&root).with_limit(100_000);
    run(folder.path(), Arc::new(limited.clone()), "one more");
    let stat = limited.stat().unwrap();
    assert!(stat.bytes <= 100_000 && stat.entries >= 3, "{stat:?}");
    assert!(run(folder.path(), Arc::new(limited), "one more").0, "the newest stays");
}

#[cfg(not(feature = "remote"))]
#[test]
fn a_server_without_support_is_told_and_the_build_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let environment = Environment::capture()
        .with("AOTI_CACHE_DIR", folder.path().join("local"))
        .with("AOTI_CACHE_REMOTE", "redis://localhost:1/");
    let (_, log) = run(folder.path(), open_store(&environment).unwrap(), "content");
    assert_eq!(log.count("warning going on without the remote cache"), 1, "{:?}", log.lines());
}
