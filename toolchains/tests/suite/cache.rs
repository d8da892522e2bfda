//! The cache: hits, spoiled entries, explanations, upkeep, and builds that go on when it cannot be used.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aoti_toolchain::{
    ActionStore, Environment, Error, Executor, Fetched, Key, LocalStore, Manifest, Miss, Mode, OutputFile,
};

use crate::common::{Log, compile, executor, host_toolchains};

fn files_under(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for child in std::fs::read_dir(folder).into_iter().flatten() {
        let path = child.unwrap().path();
        if path.is_dir() { found.extend(files_under(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn the_second_build_is_a_hit_with_the_same_bytes() {
    for toolchain in host_toolchains() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = LocalStore::new(cache.path().join("aoti"));
        let action = compile(&toolchain, None, &Mode::default());
        let first = executor(folder.path(), Some(store.clone())).run_one(&action, &Log::default()).unwrap();
        let log = Log::default();
        let second = executor(folder.path(), Some(store.clone())).run_one(&action, &log).unwrap();
        assert!(!first.cached && second.cached);
        assert_eq!(first.first().read().unwrap(), second.first().read().unwrap());
        assert_eq!(log.count("cached"), 1);
        assert_eq!(store.stat().unwrap().entries, 1);
        assert!(store.root().join("CACHEDIR.TAG").exists());
        drop(first);
        assert!(files_under(folder.path()).is_empty(), "temporary folders are left");
    }
}

#[test]
fn whatever_is_spoiled_is_made_again() {
    for toolchain in host_toolchains() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = LocalStore::new(cache.path());
        let action = compile(&toolchain, None, &Mode::default());
        let good = executor(folder.path(), Some(store.clone())).run_one(&action, &Log::default()).unwrap();
        let good = good.first().read().unwrap();
        let spoilers: [fn(&Path); 4] = [
            |file| std::fs::write(file, b"").unwrap(),
            |file| std::fs::write(file, b"{\"key\": 1}").unwrap(),
            |file| std::fs::remove_file(file).unwrap(),
            |file| {
                let mut bytes = std::fs::read(file).unwrap();
                let middle = bytes.len() / 2;
                bytes[middle] ^= 1;
                std::fs::write(file, bytes).unwrap();
            },
        ];
        for spoil in spoilers {
            for name in ["0", "manifest.json"] {
                let files = files_under(&cache.path().join("actions-v1"));
                spoil(files.iter().find(|file| file.ends_with(name)).unwrap());
                let log = Log::default();
                let outputs = executor(folder.path(), Some(store.clone())).run_one(&action, &log).unwrap();
                assert_eq!(outputs.first().read().unwrap(), good);
                let lines = log.lines();
                // A flipped bit in a manifest may hit text that proves nothing, such as the label.
                let noticed = log.count("warning a cached result was spoiled") == 1;
                assert!(noticed || (name == "manifest.json" && outputs.cached), "{lines:?}");
            }
        }
    }
}

#[test]
fn a_miss_names_what_changed() {
    let environment = Environment::capture();
    for toolchain in host_toolchains() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = LocalStore::new(cache.path());
        let action = compile(&toolchain, None, &Mode::default());
        assert_eq!(store.why(&action, &environment).unwrap(), Miss::NeverBuilt);
        let run = executor(folder.path(), Some(store.clone()));
        run.run_one(&action, &Log::default()).unwrap();
        assert_eq!(store.why(&action, &environment).unwrap(), Miss::Hit);

        let mut changed = action.clone();
        changed.inputs[1] = aoti_toolchain::Input::text("aoti/base.h", "#pragma once\n");
        changed.arguments.insert(0, "-DMORE".to_owned());
        let Miss::Changed(found) = store.why(&changed, &environment).unwrap() else { panic!() };
        let fields = found.iter().map(|difference| difference.field.as_str()).collect::<Vec<_>>();
        assert_eq!(fields, ["arguments", "input aoti/base.h"]);
        assert!(found[0].now.as_ref().unwrap().starts_with("-DMORE "));

        let report = store.gc_with_grace(0, Duration::ZERO).unwrap();
        assert_eq!((report.removed_entries, report.kept.entries), (1, 0));
        assert_eq!(store.why(&action, &environment).unwrap(), Miss::Evicted);
    }
}

#[test]
fn collection_removes_the_longest_unused_first() {
    for toolchain in host_toolchains() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let store = LocalStore::new(cache.path());
        let run = executor(folder.path(), Some(store.clone()));
        let [old, new] = [false, true].map(|debug| {
            let action = compile(&toolchain, None, &Mode { debug, ..Mode::default() });
            run.run_one(&action, &Log::default()).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            action
        });
        // Using the older one makes it the newer.
        assert!(run.run_one(&old, &Log::default()).unwrap().cached);
        let before = store.stat().unwrap();
        assert_eq!(store.gc(0).unwrap().removed_entries, 0, "entries in use must stay");
        let report = store.gc_with_grace(before.bytes - 1, Duration::ZERO).unwrap();
        assert_eq!(report.removed_entries, 1);
        assert_eq!(report.kept, store.stat().unwrap());
        assert!(run.run_one(&old, &Log::default()).unwrap().cached);
        assert!(!run.run_one(&new, &Log::default()).unwrap().cached);
        assert_eq!(store.clear().unwrap().entries, 2);
        assert_eq!(store.stat().unwrap().entries, 0);
    }
}

#[test]
fn an_unusable_cache_warns_once_and_the_build_goes_on() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, b"").unwrap();
        // A file in the place of a folder, and a file system that nobody can write to, not even root.
        for root in [file.join("cache"), PathBuf::from("/proc/aoti-cache")] {
            let run = executor(folder.path(), Some(LocalStore::new(root)));
            let actions = [
                compile(&toolchain, None, &Mode::default()),
                compile(&toolchain, Some("native"), &Mode::default()),
            ];
            let log = Log::default();
            for outputs in run.run(&actions, &log) {
                assert!(!outputs.unwrap().first().read().unwrap().is_empty());
            }
            assert_eq!(log.count("warning building without the cache"), 1, "{:?}", log.lines());
        }
    }
}

/// A store on a disk that is full: locks, but keeps nothing.
struct FullDisk(LocalStore);

impl ActionStore for FullDisk {
    fn fetch(&self, key: &Key, outputs: &[String]) -> Result<Fetched, Error> {
        self.0.fetch(key, outputs)
    }
    fn publish(&self, _: &Manifest, _: &[OutputFile]) -> Result<(), Error> {
        let source = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(Error::Cache { action: "write", path: self.0.root().to_owned(), source })
    }
    fn remove(&self, key: &Key) -> Result<(), Error> {
        self.0.remove(key)
    }
    fn exclusively(&self, key: &Key, waiting: &dyn Fn(), work: &mut dyn FnMut()) -> Result<(), Error> {
        self.0.exclusively(key, waiting, work)
    }
}

#[test]
fn a_full_cache_warns_and_the_build_goes_on() {
    for toolchain in host_toolchains() {
        let (folder, cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let environment = Environment::capture().with("TMPDIR", folder.path());
        let store = Arc::new(FullDisk(LocalStore::new(cache.path())));
        let run = Executor::new(&environment, Some(store), None).unwrap();
        let log = Log::default();
        let outputs = run.run_one(&compile(&toolchain, None, &Mode::default()), &log).unwrap();
        assert!(!outputs.first().read().unwrap().is_empty());
        assert_eq!(log.count("warning building without the cache"), 1, "{:?}", log.lines());
    }
}

#[test]
fn results_come_in_order_and_failures_do_not_stop_others() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let mut actions = (0..6)
            .map(|index| {
                let mut action = compile(&toolchain, None, &Mode::default());
                action.label = format!("action {index}");
                action.arguments.insert(0, format!("-DINDEX={index}"));
                action
            })
            .collect::<Vec<_>>();
        actions[2].arguments.push("--no-such-option".to_owned());
        actions[4].inputs[0].name = "../escape.cpp".to_owned();
        let results = executor(folder.path(), None).run(&actions, &Log::default());
        let kinds = results.iter().map(|result| match result {
            Ok(_) => "ok",
            Err(Error::ToolFailed { .. }) => "failed",
            Err(Error::Input { .. }) => "input",
            Err(_) => "other",
        });
        assert_eq!(kinds.collect::<Vec<_>>(), ["ok", "ok", "failed", "ok", "input", "ok"]);
    }
}

#[test]
fn every_ingredient_of_a_key_is_in_the_documented_table() {
    let environment = Environment::capture();
    let text = include_str!("../../CACHE.md");
    let rows =
        text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`').map(|(name, _)| name));
    let documented = rows.collect::<Vec<_>>();
    for toolchain in host_toolchains() {
        for level in [None, Some("native")] {
            for field in compile(&toolchain, level, &Mode::default()).key_fields(&environment) {
                let kind = if field.name.starts_with("input ") { "input NAME" } else { field.name.as_str() };
                assert!(documented.contains(&kind), "`{kind}` is not in {documented:?}");
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn links_and_pipes_in_a_shared_folder_lead_nowhere_and_hang_nothing() {
    let Some(toolchain) = host_toolchains().into_iter().next() else { return };
    let action = compile(&toolchain, None, &Mode::default());
    let link = |to: &Path, at: &Path| std::os::unix::fs::symlink(to, at).unwrap();
    let pipe = |at: &Path| assert!(std::process::Command::new("mkfifo").arg(at).status().unwrap().success());
    for spoiled in ["0", "manifest.json", "used", "entry", "bucket", "locks", "lock", "tmp", "latest"] {
        let [folder, cache, outside] = std::array::from_fn(|_| tempfile::tempdir().unwrap());
        std::fs::write(outside.path().join("mine"), "mine").unwrap();
        let store = LocalStore::new(cache.path());
        let made = executor(folder.path(), Some(store.clone())).run_one(&action, &Log::default()).unwrap();
        let good = made.first().read().unwrap();
        let file = files_under(&cache.path().join("actions-v1")).remove(0);
        let entry = file.parent().unwrap();
        let key = entry.file_name().unwrap();
        match spoiled {
            "0" | "manifest.json" | "used" => {
                std::fs::remove_file(entry.join(spoiled)).unwrap();
                pipe(&entry.join(spoiled));
            }
            "entry" | "bucket" => {
                let place = if spoiled == "entry" { entry } else { entry.parent().unwrap() };
                std::fs::remove_dir_all(place).unwrap();
                link(outside.path(), place);
            }
            "lock" => {
                std::fs::remove_dir_all(entry).unwrap();
                std::fs::remove_file(cache.path().join("locks-v1").join(key)).unwrap();
                link(&outside.path().join("made"), &cache.path().join("locks-v1").join(key));
            }
            folder => {
                std::fs::remove_dir_all(entry).unwrap();
                let place = cache.path().join(format!("{folder}-v1"));
                std::fs::remove_dir_all(&place).unwrap();
                link(outside.path(), &place);
            }
        }
        let again = executor(folder.path(), Some(store.clone())).run_one(&action, &Log::default()).unwrap();
        assert_eq!(again.first().read().unwrap(), good, "{spoiled}");
        let collected = store.gc_with_grace(0, Duration::ZERO);
        assert!(collected.is_ok() || spoiled == "tmp", "{spoiled}: {collected:?}");
        let left = files_under(outside.path());
        assert_eq!(left, [outside.path().join("mine")], "{spoiled}");
        assert_eq!(std::fs::read(&left[0]).unwrap(), b"mine");
    }
}
