//! The cache under assault: processes killed at any moment, every kind of file spoiled, full disks, clocks that jump,
//! and other versions of the tool in the same folder. Whatever happens, what is handed out is right.

#![cfg(unix)]

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime};

use aoti_toolchain::{Environment, LocalStore, OutputFile, sweep_temporaries};

use crate::common::{Log, executor};
use crate::layers::copy_action;

const FOLDER: &str = "AOTI_TEST_ASSAULT_FOLDER";
const ACTIONS: usize = 24;

pub(crate) fn each_file(folder: &Path, act: &mut dyn FnMut(&Path)) {
    for child in std::fs::read_dir(folder).into_iter().flatten() {
        let path = child.unwrap().path();
        if path.is_dir() { each_file(&path, act) } else { act(&path) }
    }
}

fn content(index: usize) -> String {
    format!("{index} ").repeat(3000)
}

/// Builds everything and checks every byte.
fn build_all(folder: &Path) -> usize {
    let run = executor(&folder.join("tmp"), Some(LocalStore::new(folder.join("cache"))));
    let actions = (0..ACTIONS).map(|index| copy_action(&content(index))).collect::<Vec<_>>();
    let results = run.run(&actions, &Log::default());
    let mut cached = 0;
    for (index, result) in results.into_iter().enumerate() {
        let outputs = result.unwrap();
        cached += usize::from(outputs.cached);
        assert_eq!(outputs.first().read().unwrap(), content(index).as_bytes(), "action {index}");
    }
    cached
}

/// Not a test of its own: what the assault starts and kills.
#[test]
fn one_builder() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    // Until it is killed, or its parent is gone for good.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(30) {
        build_all(Path::new(&folder));
    }
}

fn builder(folder: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "faults::one_builder"]).env(FOLDER, folder);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// A small generator of our own, so that a failure repeats.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    *state >> 33
}

#[test]
fn two_hundred_kills_leave_nothing_wrong_behind() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    let (mut state, mut kills, begun) = (7, 0, Instant::now());
    let mut running = Vec::new();
    let cache = LocalStore::new(folder.path().join("cache"));
    while kills < 200 && begun.elapsed() < Duration::from_secs(40) {
        while running.len() < 16 {
            running.push(builder(folder.path()));
        }
        std::thread::sleep(Duration::from_millis(next(&mut state) % 60));
        let mut victim = running.swap_remove(next(&mut state) as usize % 16);
        if victim.try_wait().unwrap().is_none() {
            victim.kill().unwrap();
            kills += 1;
        }
        victim.wait().unwrap();
        // Now and then everything is to be made again, so that there is something to interrupt.
        if kills % 7 == 0 {
            let _ = cache.gc_with_grace(0, Duration::ZERO);
        }
    }
    for child in &mut running {
        let _ = child.kill();
        child.wait().unwrap();
    }
    println!("{kills} kills in {:?}", begun.elapsed());
    assert!(kills >= 50, "only {kills} processes lived long enough to be killed");

    let begun = Instant::now();
    build_all(folder.path());
    assert!(begun.elapsed() < Duration::from_secs(10), "a lock was left behind: {:?}", begun.elapsed());
    assert_eq!(build_all(folder.path()), ACTIONS, "everything is cached now");
    // What the dead left half-written is swept up once it is old.
    let aside = folder.path().join("cache/tmp-v1");
    let long_ago = SystemTime::now() - Duration::from_secs(3 * 24 * 3600);
    for child in std::fs::read_dir(&aside).unwrap() {
        std::fs::File::open(child.unwrap().path()).unwrap().set_modified(long_ago).unwrap();
    }
    cache.gc(u64::MAX).unwrap();
    assert_eq!(std::fs::read_dir(&aside).unwrap().count(), 0);
    // So are the folders that they worked in; those of the living stay, and so does what is not ours.
    let temporary = folder.path().join("tmp");
    let environment = Environment::from_variables([("TMPDIR", &temporary)], "/");
    let left = std::fs::read_dir(&temporary).unwrap().count();
    println!("{left} folders were left");
    assert_eq!(sweep_temporaries(&environment), 0, "they are young");
    std::fs::create_dir(temporary.join("somebody-elses")).unwrap();
    for child in std::fs::read_dir(&temporary).unwrap() {
        std::fs::File::open(child.unwrap().path()).unwrap().set_modified(long_ago).unwrap();
    }
    std::fs::create_dir(temporary.join("aoti-action-of-the-living")).unwrap();
    assert_eq!(sweep_temporaries(&environment), left);
    let mut kept = Vec::new();
    for child in std::fs::read_dir(&temporary).unwrap() {
        kept.push(child.unwrap().file_name().into_string().unwrap());
    }
    kept.sort();
    assert_eq!(kept, ["aoti-action-of-the-living", "somebody-elses"]);
    assert_eq!(build_all(folder.path()), ACTIONS);
}

#[test]
fn every_byte_of_a_manifest_may_be_another() {
    let folder = tempfile::tempdir().unwrap();
    let run = executor(folder.path(), Some(LocalStore::new(folder.path().join("cache"))));
    let action = copy_action("content");
    run.run_one(&action, &Log::default()).unwrap();
    let mut manifest = None;
    each_file(&folder.path().join("cache/actions-v1"), &mut |path| {
        if path.ends_with("manifest.json") {
            manifest = Some(path.to_owned());
        }
    });
    let manifest = manifest.unwrap();
    let good = std::fs::read(&manifest).unwrap();
    let mut noticed = 0;
    for position in 0..good.len() {
        let mut bytes = good.clone();
        bytes[position] ^= 1 << (position % 8);
        std::fs::write(&manifest, bytes).unwrap();
        let outputs = run.run_one(&action, &Log::default()).unwrap();
        assert_eq!(outputs.first().read().unwrap(), b"content", "byte {position}");
        noticed += usize::from(!outputs.cached);
    }
    println!("{noticed} of {} bytes", good.len());
    // The others are in the text that tells people what was made, and prove nothing.
    assert!(noticed > 200, "{noticed} of {} bytes", good.len());
}

#[test]
fn every_file_of_a_cache_may_be_spoiled_in_every_way() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    build_all(folder.path());
    let spoilers: [fn(&Path); 6] = [
        |file| std::fs::write(file, b"").unwrap(),
        |file| std::fs::write(file, [0xff; 300]).unwrap(),
        |file| std::fs::remove_file(file).unwrap(),
        |file| {
            // Another file's content, whole and in good order.
            let other = file.parent().unwrap().join("manifest.json");
            let _ = std::fs::copy(other, file);
        },
        |file| {
            std::fs::remove_file(file).unwrap();
            std::fs::create_dir(file).unwrap();
        },
        |file| {
            let length = std::fs::metadata(file).unwrap().len();
            std::fs::File::options().write(true).open(file).unwrap().set_len(length / 2).unwrap();
        },
    ];
    // Outputs, manifests, times of use, locks, and the records that explain misses.
    for spoil in spoilers {
        for class in ["0", "manifest.json", "used", "lock", "latest"] {
            let mut files = Vec::new();
            each_file(&folder.path().join("cache"), &mut |path| {
                let place = path.to_string_lossy().into_owned();
                let fits = match class {
                    "lock" => place.contains("locks-v1"),
                    "latest" => place.contains("latest-v1"),
                    name => place.contains("actions-v1") && path.ends_with(name),
                };
                if fits {
                    files.push(path.to_owned());
                }
            });
            assert!(!files.is_empty(), "{class}");
            files.sort();
            files.iter().step_by(3).for_each(|file| spoil(file));
            build_all(folder.path());
        }
    }
    // A spoiled lock or record may keep a result out of the cache, never make it wrong; a cleared cache is a good one.
    LocalStore::new(folder.path().join("cache")).clear().unwrap();
    assert_eq!(build_all(folder.path()), 0);
    assert_eq!(build_all(folder.path()), ACTIONS);
}

#[test]
fn every_bit_of_an_output_and_of_a_key_counts() {
    let folder = tempfile::tempdir().unwrap();
    let store = LocalStore::new(folder.path().join("cache"));
    let run = executor(folder.path(), Some(store.clone()));
    let action = copy_action("0123456789abcdef");
    run.run_one(&action, &Log::default()).unwrap();
    for position in 0..16 {
        each_file(&folder.path().join("cache/actions-v1"), &mut |path| {
            if path.ends_with("0") {
                let mut bytes = std::fs::read(path).unwrap();
                bytes[position] ^= 1 << (position % 8);
                std::fs::write(path, bytes).unwrap();
            }
        });
        let outputs = run.run_one(&action, &Log::default()).unwrap();
        assert!(!outputs.cached);
        assert_eq!(outputs.first().read().unwrap(), b"0123456789abcdef");
    }
}

#[test]
fn a_full_disk_is_told_and_the_build_goes_on_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let small = folder.path().join("small");
    std::fs::create_dir(&small).unwrap();
    let mount =
        Command::new("mount").args(["-t", "tmpfs", "-o", "size=64k", "aoti-test"]).arg(&small).output();
    if !mount.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: no small file system can be mounted here");
        return;
    }
    let outcome = std::panic::catch_unwind(|| full_disk(folder.path(), &small));
    let unmounted = Command::new("umount").arg(&small).status().unwrap().success();
    outcome.unwrap();
    assert!(unmounted);
}

fn full_disk(folder: &Path, small: &Path) {
    let big = "x".repeat(200_000);
    // The cache is full: the build succeeds without it.
    let log = Log::default();
    let run = executor(folder, Some(LocalStore::new(small.join("cache"))));
    for _ in 0..2 {
        let outputs = run.run_one(&copy_action(&big), &log).unwrap();
        assert_eq!(outputs.first().read().unwrap(), big.as_bytes());
        assert!(!outputs.cached);
    }
    assert_eq!(log.count("warning building without the cache"), 1, "{:?}", log.lines());
    let small_enough = copy_action("small");
    run.run_one(&small_enough, &Log::default()).unwrap();
    assert!(run.run_one(&small_enough, &Log::default()).unwrap().cached, "what fits is still kept");
    // The folder for temporary files is full: that is an error, with advice.
    std::fs::create_dir(small.join("tmp")).unwrap();
    let error = executor(&small.join("tmp"), None).run_one(&copy_action(&big), &Log::default()).unwrap_err();
    assert!(error.advice().is_some_and(|advice| advice.contains("disk is full")), "{error:?}");
}

#[test]
fn clocks_that_jump_change_nothing_but_order() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    build_all(folder.path());
    let cache = LocalStore::new(folder.path().join("cache"));
    let year = Duration::from_secs(365 * 24 * 3600);
    let set = |time: SystemTime| {
        each_file(&folder.path().join("cache"), &mut |path| {
            std::fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
        });
    };
    for time in [SystemTime::UNIX_EPOCH, SystemTime::now() - year, SystemTime::now() + year] {
        set(time);
        assert_eq!(build_all(folder.path()), ACTIONS);
        set(time);
        // Entries from the future are not kept for ever.
        let report = cache.gc(0).unwrap();
        assert_eq!(report.kept.entries, 0, "{report:?}");
        assert_eq!(build_all(folder.path()), 0);
    }
}

#[test]
fn versions_share_a_folder_without_meeting() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    build_all(folder.path());
    let root = folder.path().join("cache");
    // A later version has folders of its own, and may write manifests with fields that we do not know.
    for later in ["actions-v2/ab/key/manifest.json", "locks-v2/key", "something-else"] {
        let path = root.join(later);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, b"{\"of\": \"a later version\"}").unwrap();
    }
    let mut manifests = Vec::new();
    each_file(&root.join("actions-v1"), &mut |path| {
        if path.ends_with("manifest.json") {
            manifests.push(path.to_owned());
        }
    });
    let text = std::fs::read_to_string(&manifests[0]).unwrap();
    std::fs::write(&manifests[0], text.replacen('{', "{\"new field\": 1,", 1)).unwrap();
    assert_eq!(build_all(folder.path()), ACTIONS - 1, "an entry that we do not understand is made again");
    let cache = LocalStore::new(&root);
    cache.gc_with_grace(0, Duration::ZERO).unwrap();
    cache.clear().unwrap();
    assert!(root.join("actions-v2/ab/key/manifest.json").exists(), "others' folders are left alone");
    assert!(root.join("something-else").exists());
}

#[test]
fn a_cache_that_may_only_be_read_serves_and_says_so_once() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    build_all(folder.path());
    let root = folder.path().join("cache");
    let bind = |arguments: &[&str]| Command::new("mount").args(arguments).arg(&root).output();
    let name = root.to_string_lossy().into_owned();
    let mounted = bind(&["--bind", &name]).is_ok_and(|output| output.status.success());
    if !mounted || !bind(&["-o", "remount,bind,ro"]).is_ok_and(|output| output.status.success()) {
        println!("skipped: nothing can be mounted here");
        if mounted {
            let _ = Command::new("umount").arg(&root).status();
        }
        return;
    }
    let outcome = std::panic::catch_unwind(|| {
        assert_eq!(build_all(folder.path()), ACTIONS);
        let log = Log::default();
        let run = executor(&folder.path().join("tmp"), Some(LocalStore::new(&root)));
        let outputs = run.run_one(&copy_action("not there yet"), &log).unwrap();
        assert_eq!(outputs.first().read().unwrap(), b"not there yet");
        assert_eq!(log.count("warning building without the cache"), 1, "{:?}", log.lines());
    });
    assert!(Command::new("umount").arg(&root).status().unwrap().success());
    outcome.unwrap();
}

/// Files that are handed out stay readable while a collection empties the cache.
#[test]
fn what_is_in_use_survives_a_collection() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("tmp")).unwrap();
    build_all(folder.path());
    let store = LocalStore::new(folder.path().join("cache"));
    let run = executor(&folder.path().join("tmp"), Some(store.clone()));
    let outputs = run.run_one(&copy_action(&content(3)), &Log::default()).unwrap();
    store.gc(0).unwrap();
    let file: &OutputFile = outputs.first();
    assert_eq!(file.read().unwrap(), content(3).as_bytes());
}
