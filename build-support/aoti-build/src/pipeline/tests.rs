//! Builds with a stand-in for the compiler and real native tools: what is made, what is kept, what fails how.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::SystemTime;

use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_compiler::compile::Options;
use aoti_compiler::diagnostic::Diagnostics;
use aoti_compiler::frontend::ModelFile;
use aoti_toolchain::Environment;

use super::*;
use crate::layout::Layout;
use crate::model::{LinkKind, Model, Weights};
use crate::session::Settings;

struct Bench {
    folder: tempfile::TempDir,
    session: Session,
}

impl Bench {
    fn new() -> Bench {
        Bench::with(Settings::default())
    }

    fn with(settings: Settings) -> Bench {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::capture().with("AOTI_CACHE_DIR", folder.path().join("cache"));
        let mut session = Session::new(&environment, settings).unwrap();
        session.compiler = fake::compile;
        Bench { folder, session }
    }

    fn write(&self, name: &str, weight: f32, program: &str) -> Job {
        let path = self.folder.path().join(format!("{name}.fake"));
        let content = [&weight.to_le_bytes()[..], program.as_bytes()].concat();
        fs_err::write(&path, content).unwrap();
        let layout = Layout::flat(self.folder.path().join("out").join(name));
        Job { model: Model::new(name, path), layout, incremental: true }
    }

    fn build(&self, job: &Job) -> Built {
        self.session.build(std::slice::from_ref(job), &Silent).remove(0).unwrap()
    }
}

use crate::progress::Silent;

fn times(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut found = Vec::new();
    for entry in fs_err::read_dir(folder).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(times(&entry.path()));
        } else if !entry.path().ends_with("state.json") {
            found.push((entry.path(), entry.metadata().unwrap().modified().unwrap()));
        }
    }
    found.sort();
    found
}

#[test]
fn a_second_build_does_nothing() {
    let bench = Bench::new();
    let job = bench.write("digits", 1.0, "program");
    let first = bench.build(&job);
    assert!(!first.fresh && first.tools_run == 4, "{first:?}");
    let library = first.library().unwrap();
    assert!(library.path.ends_with("libaoti_digits.a") && library.path.is_file());
    let before = times(&job.layout.folder);
    let second = bench.build(&job);
    assert!(second.fresh);
    assert_eq!(second.artefacts, first.artefacts);
    assert_eq!(times(&job.layout.folder), before);
}

#[test]
fn what_was_compiled_is_kept_for_other_folders() {
    static CALLS: AtomicUsize = AtomicUsize::new(0);
    fn counting(model: ModelFile, options: &Options) -> Result<SourceBundle, Diagnostics> {
        CALLS.fetch_add(1, Ordering::Relaxed);
        fake::compile(model, options)
    }
    let mut bench = Bench::new();
    bench.session.compiler = counting;
    let job = bench.write("digits", 1.0, "program");
    let elsewhere = |name: &str, job: &Job| {
        let layout = Layout::flat(bench.folder.path().join(name));
        bench.build(&Job { layout, ..job.clone() })
    };
    let made = |built: &Built| -> Vec<(String, String)> {
        built.artefacts.iter().map(|artefact| (artefact.kind.clone(), artefact.digest.clone())).collect()
    };
    let first = bench.build(&job);
    let second = elsewhere("second", &job);
    assert_eq!(CALLS.load(Ordering::Relaxed), 1);
    assert!(second.tools_run == 0 && !second.fresh, "{second:?}");
    assert_eq!(made(&second), made(&first));

    // A record that is spoiled is made again.
    let cache = bench.folder.path().join("cache/actions-v1");
    let records = times(&cache).into_iter().map(|(path, _)| path);
    let records: Vec<_> = records
        .filter(|path| fs_err::read(path).is_ok_and(|bytes| bytes.starts_with(b"{\"interface\"")))
        .collect();
    assert_eq!(records.len(), 1, "{records:?}");
    fs_err::write(&records[0], "{}").unwrap();
    assert_eq!(made(&elsewhere("third", &job)), made(&first));
    assert_eq!(CALLS.load(Ordering::Relaxed), 2);

    // Another model, other options: compiled for themselves. What is refused is refused again.
    elsewhere("fourth", &bench.write("digits", 2.0, "program"));
    let mut job = bench.write("digits", 1.0, "program");
    job.model.weights = Weights::External;
    elsewhere("fifth", &job);
    assert_eq!(CALLS.load(Ordering::Relaxed), 4);
    let wrong = bench.write("wrong", 1.0, "error");
    for _ in 0..2 {
        assert!(bench.session.build(std::slice::from_ref(&wrong), &Silent).remove(0).is_err());
    }
    assert_eq!(CALLS.load(Ordering::Relaxed), 6);
}

#[test]
fn a_touched_model_is_not_built_again_and_a_changed_weight_only_links() {
    let bench = Bench::new();
    let mut job = bench.write("digits", 1.0, "program");
    job.model.link = LinkKind::Dylib;
    bench.build(&job);
    std::thread::sleep(std::time::Duration::from_millis(20));
    bench.write("digits", 1.0, "program");
    assert!(bench.build(&job).fresh);
    bench.write("digits", 2.0, "program");
    let built = bench.build(&job);
    assert!(!built.fresh);
    assert_eq!(built.tools_run, 2, "weights and library");
    bench.write("digits", 2.0, "another");
    assert_eq!(
        bench.build(&job).tools_run,
        1,
        "another comment makes the same object, which is linked already"
    );
}

#[test]
fn what_is_gone_is_made_again_from_the_cache() {
    let bench = Bench::new();
    let job = bench.write("digits", 1.0, "program");
    let library = bench.build(&job).library().unwrap().path.clone();
    fs_err::remove_file(&library).unwrap();
    let built = bench.build(&job);
    assert_eq!((built.fresh, built.tools_run), (false, 0));
    assert!(library.is_file());
}

#[test]
fn weights_lie_where_they_are_asked_for() {
    let bench = Bench::new();
    let mut job = bench.write("digits", 1.0, "program");
    job.model.weights = Weights::Sidecar;
    job.model.link = LinkKind::Dylib;
    let built = bench.build(&job);
    let weights = built.artefact("weights").unwrap();
    let name = weights.path.file_name().unwrap().to_str().unwrap();
    assert_eq!(name, format!("digits-{}.weights.bin", &weights.digest[..16]));
    let bytes = fs_err::read(&weights.path).unwrap();
    assert_eq!((bytes.len(), &bytes[..4]), (64, &1f32.to_le_bytes()[..]));
    bench.write("digits", 2.0, "program");
    bench.build(&job);
    assert!(!weights.path.exists(), "weights of another content are removed");
    job.model.weights = Weights::External;
    let built = bench.build(&job);
    assert!(built.artefact("weights").unwrap().path.ends_with("digits.weights.bin"));
}

#[test]
fn several_models_fail_each_for_itself() {
    let bench = Bench::new();
    let jobs =
        [bench.write("a", 1.0, "error"), bench.write("b", 1.0, "fine"), bench.write("c", 1.0, "error")];
    let results = bench.session.build(&jobs, &Silent);
    assert!(matches!(&results[0], Err(Error::Model { name, .. }) if name == "a"));
    assert!(results[1].is_ok() && results[2].is_err());
    let text = results[0].as_ref().unwrap_err().to_string();
    let path = jobs[0].model.path.display();
    let expected = "error[AOTI0007]: `error` is not supported\n  = help: write something else";
    assert_eq!(text, format!("{expected}\n  = model: `a` (`{path}`)"));
    let lines = results[2].as_ref().unwrap_err().lines();
    assert!(lines[0].starts_with("model `c` (") && lines[0].ends_with("; write something else [AOTI0007]"));
}

#[test]
fn more_weights_than_a_library_holds_are_refused_with_the_ways_out() {
    let bench = Bench::new();
    let job = bench.write("a", 1.0, "huge");
    let error = bench.session.build(&[job], &Silent).remove(0).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the weights have 2000000064 bytes; a library holds at most 2000000000"), "{text}");
    assert!(text.contains("say `weights = \"sidecar\"` or `weights = \"external\"` for `a`"), "{text}");
    assert_eq!(error.fault(), crate::Fault::User);
}

#[test]
fn bindings_need_no_tool() {
    let mut bench = Bench::with(Settings { bindings_only: true, ..Settings::default() });
    bench.session.environment = Environment::from_variables([("PATH", "/nowhere")], "/");
    let job = bench.write("digits", 1.0, "program");
    let built = bench.build(&job);
    assert!(built.library().is_none());
    let module = fs_err::read_to_string(&built.artefact("bindings").unwrap().path).unwrap();
    assert!(module.contains("pub mod digits") && module.contains("__absent_library"), "{module}");
    assert!(bench.build(&job).fresh);
    assert!(!bench.session.has_native_code(&job));
}

#[test]
fn native_code_is_known_without_a_tool() {
    let mut bench = Bench::new();
    let job = bench.write("digits", 1.0, "program");
    bench.build(&job);
    bench.session.settings.bindings_only = true;
    bench.session.environment = Environment::from_variables([("PATH", "/nowhere")], "/");
    assert!(bench.session.has_native_code(&job));
    let other = Job { model: Model { weights: Weights::External, ..job.model.clone() }, ..job.clone() };
    assert!(!bench.session.has_native_code(&other));
    bench.write("digits", 2.0, "program");
    assert!(!bench.session.has_native_code(&job));
}

#[test]
fn many_builders_of_one_folder_share_the_work() {
    let bench = Bench::new();
    let job = bench.write("digits", 1.0, "program");
    let built = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| built.lock().unwrap().push(bench.build(&job)));
        }
    });
    // The lock above is taken after the build, so that builds do run side by side.
    let built = built.into_inner().unwrap();
    assert_eq!(built.iter().map(|built| built.tools_run).sum::<usize>(), 4);
    assert_eq!(built.iter().filter(|built| !built.fresh).count(), 1);
}

#[test]
fn a_file_that_is_no_model_is_named() {
    let bench = Bench::new();
    let mut job = bench.write("digits", 1.0, "program");
    job.model.path = bench.folder.path().join("absent.pt2");
    let error = bench.session.build(&[job], &Silent).remove(0).unwrap_err();
    assert!(error.to_string().contains("absent.pt2"), "{error}");
    assert_eq!(error.fault(), crate::Fault::User);
}

#[test]
fn the_next_build_sweeps_up_after_those_that_were_killed_long_ago() {
    let mut bench = Bench::new();
    let temporary = bench.folder.path().join("tmp");
    let folders = ["aoti-action-old", "aoti-model-old", "aoti-action-young", "old-of-others"];
    for name in folders {
        fs_err::create_dir_all(temporary.join(name)).unwrap();
        if name.contains("old") {
            let long_ago = SystemTime::now() - std::time::Duration::from_secs(2 * 24 * 3600);
            std::fs::File::open(temporary.join(name)).unwrap().set_modified(long_ago).unwrap();
        }
    }
    bench.session.environment = bench.session.environment.clone().with("TMPDIR", &temporary);
    let job = bench.write("digits", 1.0, "program");
    bench.build(&job);
    let left: Vec<&str> = folders.into_iter().filter(|name| temporary.join(name).exists()).collect();
    assert_eq!(left, ["aoti-action-young", "old-of-others"]);
}

/// Writes an entry of a cache anew, with what is said of its files, as somebody does who shares the folder.
fn forge(entry: &Path, change: &dyn Fn(&str) -> String) {
    let record = entry.join("0");
    let text = change(&fs_err::read_to_string(&record).unwrap());
    fs_err::remove_file(&record).unwrap();
    fs_err::write(&record, &text).unwrap();
    let path = entry.join("manifest.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs_err::read(&path).unwrap()).unwrap();
    manifest["outputs"][0]["digest"] = blake3::hash(text.as_bytes()).to_hex().as_str().into();
    manifest["outputs"][0]["bytes"] = text.len().into();
    fs_err::write(&path, manifest.to_string()).unwrap();
}

#[test]
fn a_forged_entry_of_the_cache_writes_nothing_outside_of_the_output_folder() {
    let bench = Bench::new();
    let job = bench.write("digits", 1.0, "program");
    let built = bench.build(&job);
    let cache = bench.folder.path().join("cache/actions-v1");
    let is_record =
        |path: &PathBuf| fs_err::read(path).is_ok_and(|bytes| bytes.starts_with(b"{\"interface\""));
    let record = times(&cache).into_iter().map(|(path, _)| path).find(is_record).unwrap();
    let entry = record.parent().unwrap();
    let identifier = format!("\"identifier\":\"{}\"", built.identifier);
    let text = fs_err::read_to_string(&record).unwrap();
    assert!(text.contains("\"wrapper.cpp\"") && text.contains(&identifier), "{text}");
    let before = times(bench.folder.path()).len();
    let mut turn = 0;
    let outside = tempfile::tempdir().unwrap();
    let absolute = outside.path().join("ESCAPED").to_str().unwrap().to_owned();
    let deep = "../".repeat(6) + "ESCAPED";
    for name in ["../../ESCAPED", &deep, &absolute, "a/../../../ESCAPED", "ESCAPED\\\\x"] {
        for original in ["\"wrapper.cpp\"", &identifier] {
            let forged = original.replace("wrapper.cpp", name).replace(&built.identifier, name);
            forge(entry, &|_| text.replace(original, &forged));
            turn += 1;
            let layout = Layout::flat(bench.folder.path().join("deep/er/than").join(turn.to_string()));
            let again = bench.build(&Job { layout, ..job.clone() });
            assert_eq!(again.identifier, built.identifier);
            assert_eq!(fs_err::read_to_string(&record).unwrap(), text, "the entry is not made again");
        }
    }
    assert!(times(bench.folder.path()).iter().all(|(path, _)| !path.to_string_lossy().contains("ESCAPED")));
    assert!(times(bench.folder.path()).len() > before && times(outside.path()).is_empty());
}

#[cfg(unix)]
#[test]
fn nothing_is_written_or_removed_through_a_link_in_the_output_folder() {
    let bench = Bench::new();
    let job = bench.write("digits", 1.0, "program");
    let sources = job.layout.sources();
    fs_err::create_dir_all(&sources).unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs_err::write(outside.path().join("mine.cpp"), "int mine;").unwrap();
    std::os::unix::fs::symlink(outside.path().join("mine.cpp"), sources.join("wrapper.cpp")).unwrap();
    std::os::unix::fs::symlink(outside.path(), sources.join("folder")).unwrap();
    bench.build(&job);
    assert_eq!(fs_err::read_to_string(outside.path().join("mine.cpp")).unwrap(), "int mine;");
    assert_eq!(fs_err::read_dir(outside.path()).unwrap().count(), 1);
    assert!(fs_err::symlink_metadata(sources.join("wrapper.cpp")).unwrap().is_file());
    assert!(fs_err::symlink_metadata(sources.join("folder")).is_err(), "what is left over goes");
}
