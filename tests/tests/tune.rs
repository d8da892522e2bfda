//! `tune` as a user meets it: locks that builds use, candidates that do harm, processes that are killed.

#![cfg(unix)]

use aoti_compiler::schedule::Setting;
use aoti_tests::project::Project;
use aoti_tests::schema::Schema;
use aoti_tests::subcommand::Ended;
use serde_json::Value;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Two products with something between, at sizes where tiles of eight rows are a way of their own.
const MODEL: &str = "\
graph \"two\" {
  origin o0 = \"\" \"\" \"\"
  const c0 \"a\": f32[64, 96] = splat 0.25006103515625
  const c1 \"b\": f32[96, 32] = splat 0.125030517578125
  input %0 \"x\": f32[20, 64]
  %1: f32[64, 96] = constant c0
  %2: f32[20, 96] = matmul %0, %1
  %3: f32[20, 96] = tanh %2
  %4: f32[96, 32] = constant c1
  %5: f32[20, 32] = matmul %3, %4
  output %5 \"y\"
}
";

/// What makes a candidate of the one with tiles of eight rows.
const MARK: &str = "gemm_packed<8>(";

fn project() -> Project {
    let project = Project::new("");
    project.write("models/two.aoti", MODEL);
    project
}

/// A compiler that does something to the source of the marked candidates, by a script for `sed`.
fn with_planted(project: &Project, script: &str) -> PathBuf {
    let text = format!(
        "#!/bin/sh\nfor word; do\n  shift\n  case \"$word\" in\n    *.cpp)\n      if [ -f \"$word\" ] && grep -q '{MARK}' \"$word\"; then\n\
         \x20       sed '{script}' \"$word\" > \"planted-${{word##*/}}\"\n        word=\"planted-${{word##*/}}\"\n      fi;;\n  esac\n\
         \x20 set -- \"$@\" \"$word\"\ndone\nexec g++ \"$@\"\n"
    );
    project.write("planting", text);
    let path = project.folder().join("planting");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn tune(project: &Project, arguments: &[&str]) -> Command {
    let mut command = project.aoti(&["tune", "two"]);
    // What killed processes leave goes with the project.
    project.write("tmp/here", "");
    command.env("TMPDIR", project.folder().join("tmp"));
    command.args(["--budget", "60s"]);
    command.args(arguments);
    command
}

/// The same command, started through another.
fn through(words: &[&str], inner: &Command) -> Command {
    let mut outer = Command::new(words[0]);
    outer.args(&words[1..]).arg(inner.get_program()).args(inner.get_args());
    if let Some(folder) = inner.get_current_dir() {
        outer.current_dir(folder);
    }
    for (name, value) in inner.get_envs() {
        match value {
            Some(value) => outer.env(name, value),
            None => outer.env_remove(name),
        };
    }
    outer
}

/// The same command, for which the permissions of files count even where it is root's.
fn bound_by_permissions(inner: &Command) -> Command {
    let words = ["setpriv", "--inh-caps=-dac_override", "--bounding-set=-dac_override"];
    // Nobody else has the capability, and nobody else may give it up.
    let is_root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
    through(if is_root { &words } else { &["env"] }, inner)
}

fn lock_dependencies(project: &Project) {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["generate-lockfile", "--offline"]).current_dir(project.folder());
    assert!(cargo.output().unwrap().status.success());
}

fn objects(ended: &Ended) -> Vec<Value> {
    let objects: Vec<Value> = ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let schema = Schema::read();
    let mistakes: Vec<String> = objects.iter().flat_map(|object| schema.mistakes(object)).collect();
    assert!(mistakes.is_empty(), "{mistakes:#?}");
    objects
}

fn lock(project: &Project) -> PathBuf {
    project.folder().join("aoti.lock")
}

#[test]
fn a_build_uses_what_was_measured_and_measures_nothing() {
    let project = project();
    project.build();
    let ended = Ended::of(&mut tune(&project, &["--format", "json"])).succeeded();
    let tuned: Vec<Value> =
        objects(&ended).into_iter().filter(|one| one["reason"] == "aoti-tuning").collect();
    assert_eq!(tuned.len(), 2, "{}", ended.stdout);
    for kernel in &tuned {
        let candidates = kernel["candidates"].as_array().unwrap();
        assert!(candidates.len() >= 3 && candidates.iter().any(|one| one["us"].is_number()), "{kernel}");
        assert!(candidates.iter().all(|one| one["refused"].is_null()), "{kernel}");
    }
    let text = fs::read_to_string(lock(&project)).unwrap();
    assert_eq!(text.matches("\nchoice = ").count(), 2, "{text}");
    assert!(project.folder().join("cache/tuning.jsonl").is_file());
    // Another choice by hand: the build follows it, as far as there is such a way.
    let own = text.split("\n\n").find(|record| record.contains("\nchoice = ")).unwrap();
    let line = |name: &str| own.lines().find(|line| line.starts_with(name)).unwrap();
    let other: Setting = "gemm.general split rows 64 lanes outer grain 65536".parse().unwrap();
    let edited = own.replacen(line("choice = "), &format!("choice = \"{other}\""), 1).replacen(
        line("template = "),
        &format!("template = {}", other.version()),
        1,
    );
    fs::write(lock(&project), text.replacen(own, &edited, 1)).unwrap();
    let ended = project.build();
    assert!(ended.tools().iter().any(|tool| tool.contains("kernels")), "{}", ended.stderr);
    let sources = project.artefacts("two").join("src");
    let is_general = |entry: fs::DirEntry| {
        // With template arguments or without.
        let calls = ["gemm_general(", "gemm_general<"];
        fs::read_to_string(entry.path()).is_ok_and(|text| calls.iter().any(|call| text.contains(call)))
    };
    assert!(fs::read_dir(sources).unwrap().flatten().any(is_general));
    assert!(project.build().tools().is_empty(), "nothing has changed since");
    let ended = Ended::of(&mut project.aoti(&["inspect", "models/two.aoti", "--choices"])).succeeded();
    assert!(ended.stdout.contains("  *") && ended.stdout.contains(" us"), "{}", ended.stdout);
}

#[test]
fn what_is_wrong_with_a_lock_never_makes_a_wrong_build() {
    let project = project();
    Ended::of(&mut tune(&project, &[])).succeeded();
    let text = fs::read_to_string(lock(&project)).unwrap();
    let build = |text: &str| {
        fs::write(lock(&project), text).unwrap();
        Ended::of(&mut project.aoti(&["build", "-v"]))
    };
    let ended = build(&text.replacen("\n[", "\n<<<<<<< HEAD\n[", 1));
    assert_eq!(ended.code, Some(1));
    assert!(
        ended.stderr.contains("error[AOTI0107]") && ended.stderr.contains("aoti.lock:5:1"),
        "{}",
        ended.stderr
    );
    let ended = build(&text.replace("version = 1", "version = 99"));
    assert!(ended.code == Some(1) && ended.stderr.contains("version 99"), "{}", ended.stderr);
    let ended = build(&text.replace("choice = \"", "choice = \"nonsense "));
    assert_eq!(ended.code, Some(0), "{}", ended.stderr);
    assert!(ended.stderr.contains("is ignored"), "{}", ended.stderr);
    let ended = build(&text.replace("compiler = \"", "compiler = \"other "));
    assert!(ended.code == Some(0) && ended.stderr.contains("this build uses"), "{}", ended.stderr);
    let locked = |project: &Project| Ended::of(&mut project.aoti(&["build", "--locked"]));
    lock_dependencies(&project);
    let stale = locked(&project);
    assert!(stale.code == Some(1) && stale.stderr.contains("out of date"), "{}", stale.stderr);
    fs::write(lock(&project), &text).unwrap();
    locked(&project).succeeded();
    fs::remove_file(lock(&project)).unwrap();
    locked(&project).succeeded();
}

#[test]
fn a_candidate_that_does_harm_is_named_and_never_wins() {
    let planted = [
        ("s/gemm_packed<8>(/__builtin_trap(); &/", "crashed with signal"),
        ("s/gemm_packed<8>(/for (volatile int x = 0;;) x = x + 1; &/", "no result after"),
        (
            "s/gemm_packed<8>(/for (i64 x = 0; x < 1 << 26; ++x) const_cast<f32 *>(a.data)[x] = 7; &/",
            "crashed with signal",
        ),
        ("s/gemm_packed<8>(\\(.*\\), n, k, a/gemm_packed<8>(\\1, n, k - 1, a/", "elements differ"),
        ("s/gemm_packed<8>(/static int calls = 0; if (++calls > 1) return; &/", "elements differ"),
        ("s/gemm_packed<8>(/no such statement; &/", ""),
    ];
    for (script, reason) in planted {
        let project = project();
        let compiler = with_planted(&project, script);
        let begun = Instant::now();
        let ended = Ended::of(tune(&project, &["--format", "json"]).env("CXX", &compiler)).succeeded();
        assert!(begun.elapsed() < Duration::from_secs(400), "{script}: {:?}", begun.elapsed());
        let kernels = objects(&ended).into_iter().filter(|one| one["reason"] == "aoti-tuning");
        let mut refused = 0;
        for kernel in kernels {
            assert!(!kernel["choice"].as_str().unwrap().contains("rows 8"), "{script}: {kernel}");
            for candidate in kernel["candidates"].as_array().unwrap() {
                let Some(why) = candidate["refused"].as_str() else { continue };
                assert!(candidate["choice"].as_str().unwrap().contains("rows 8"), "{script}: {kernel}");
                assert!(why.contains(reason), "{script}: {why}");
                refused += 1;
            }
        }
        assert!(refused > 0, "{script}: {}\n{}", ended.stdout, ended.stderr);
        assert!(ended.stderr.contains("is not run as"), "{script}: {}", ended.stderr);
    }
}

#[test]
fn a_killed_tune_leaves_a_valid_lock() {
    let project = project();
    Ended::of(&mut tune(&project, &[])).succeeded();
    let valid = |project: &Project| {
        let text = fs::read_to_string(lock(project)).unwrap();
        let ended = Ended::of(&mut project.aoti(&["build"]));
        assert_eq!(ended.code, Some(0), "{text}\n{}", ended.stderr);
        text
    };
    valid(&project);
    let kills = std::env::var("AOTI_TUNE_KILLS").ok().and_then(|count| count.parse().ok()).unwrap_or(4);
    for kill in 0..kills {
        let mut child = tune(&project, &[]).stderr(Stdio::null()).stdout(Stdio::null()).spawn().unwrap();
        // Moments all over a run, the last ones after it has ended.
        std::thread::sleep(Duration::from_millis(kill * 4500 / kills + 37));
        let _ = child.kill();
        let _ = child.wait();
        valid(&project);
    }
    let names = fs::read_dir(project.folder()).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = names.filter(|name| name.to_string_lossy().starts_with(".aoti-")).collect();
    assert!(left.len() <= 1, "{left:?}");
}

#[test]
fn two_at_once_lose_nothing() {
    let project = project();
    project.write("models/other.aoti", MODEL.replace("20, ", "24, ").replace("\"two\"", "\"other\""));
    let mut first = tune(&project, &[]).stderr(Stdio::null()).spawn().unwrap();
    let second = Ended::of(&mut project.aoti(&["tune", "other", "--budget", "60s"]));
    assert!(first.wait().unwrap().success());
    second.succeeded();
    let text = fs::read_to_string(lock(&project)).unwrap();
    assert_eq!(
        (text.matches("model = \"two\"").count(), text.matches("model = \"other\"").count()),
        (2, 2),
        "{text}"
    );
}

/// A product with an epilogue that a loop of its own may compute as fast.
const HEAVY: &str = "\
graph \"heavy\" {
  origin o0 = \"\" \"\" \"\"
  const c0 \"a\": f32[64, 96] = splat 0.25006103515625
  input %0 \"x\": f32[20, 64]
  %1: f32[64, 96] = constant c0
  %2: f32[20, 96] = matmul %0, %1
  %3: f32[20, 96] = full 0.5
  %4: f32[20, 96] = full 1.0
  %5: f32[20, 96] = full 0.7071
  %6: f32[20, 96] = mul %2, %3
  %7: f32[20, 96] = mul %2, %5
  %8: f32[20, 96] = erf %7
  %9: f32[20, 96] = add %8, %4
  %10: f32[20, 96] = mul %6, %9
  output %10 \"y\"
}
";

#[test]
fn kernels_are_measured_as_one_and_apart() {
    let project = Project::new("");
    project.write("models/heavy.aoti", HEAVY);
    let tune = || {
        let mut command = project.aoti(&["tune", "heavy", "--budget", "60s", "--format", "json"]);
        objects(&Ended::of(&mut command).succeeded())
    };
    let told = tune();
    let pair =
        told.iter().find(|one| one["kernel"].as_str().is_some_and(|name| name.contains(" + "))).unwrap();
    let choices: Vec<&str> =
        pair["candidates"].as_array().unwrap().iter().filter_map(|one| one["choice"].as_str()).collect();
    assert_eq!(choices, ["fused", "apart"]);
    assert!(pair["candidates"].as_array().unwrap().iter().all(|one| one["us"].is_number()), "{pair}");
    let text = fs::read_to_string(lock(&project)).unwrap();
    let key = pair["key"].as_str().unwrap();
    let (before, own) = text.split_once(&format!("[\"{key} ")).unwrap();
    // Whatever was faster here: builds do as the record says, and what it says is taken up by the next run.
    let mut sources = Vec::new();
    for choice in ["fused", "apart"] {
        let old = own.lines().find(|line| line.starts_with("choice = ")).unwrap();
        let own = own.replacen(old, &format!("choice = \"{choice}\""), 1);
        fs::write(lock(&project), format!("{before}[\"{key} {own}")).unwrap();
        project.build();
        sources.push(sources_of(&project, "heavy"));
        let ended =
            Ended::of(&mut project.aoti(&["inspect", "models/heavy.aoti", "--choices", "--format", "json"]));
        let told = objects(&ended.succeeded());
        let pair = told.iter().find(|one| one["key"] == key).unwrap();
        let taken = pair["ways"].as_array().unwrap().iter().find(|way| way["taken"] == true).unwrap();
        assert_eq!(taken["choice"], choice);
    }
    assert_ne!(sources[0], sources[1], "the record decides what is built");
    let again = tune();
    let pair = again.iter().find(|one| one["key"] == key).unwrap();
    assert_eq!(pair["recorded"], "apart", "{pair}");
}

/// A long sum, and two convolutions with something between.
const BEFORE_KERNELS: &str = "\
graph \"early\" {
  origin o0 = \"\" \"\" \"\"
  const c0 \"w\": f32[16, 16, 3, 3] = splat 0.0625
  const c1 \"v\": f32[16, 16, 3, 3] = splat 0.03125
  input %0 \"x\": f32[1024, 512]
  input %1 \"y\": f32[1, 16, 24, 24]
  %2 \"total\": f32[512] = sum %0 axes [0]
  %3: f32[16, 16, 3, 3] = constant c0
  %4: f32[16, 16, 3, 3] = constant c1
  %5 \"first\": f32[1, 16, 24, 24] = conv %1, %3 stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1
  %6: f32[1, 16, 24, 24] = tanh %5
  %7 \"second\": f32[1, 16, 24, 24] = conv %6, %4 stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1
  output %2 \"a\"
  output %7 \"b\"
}
";

#[test]
fn what_is_decided_before_there_are_kernels_is_measured_too() {
    let project = Project::new("");
    project.write("models/early.aoti", BEFORE_KERNELS);
    let mut command = project.aoti(&["tune", "early", "--budget", "60s", "--format", "json"]);
    let told = objects(&Ended::of(&mut command).succeeded());
    for (name, first, other) in [
        ("sums of total", "parts 8", "parts 1"),
        ("channels of first to second", "channels-last", "channels-first"),
    ] {
        let own: Vec<&Value> =
            told.iter().filter(|one| one["kernel"] == name && one["reason"] == "aoti-tuning").collect();
        let [question] = &own[..] else { panic!("{name} is measured once: {told:#?}") };
        let candidates = question["candidates"].as_array().unwrap();
        let of = |choice: &str| candidates.iter().find(|one| one["choice"] == choice).unwrap();
        assert!(of(first)["us"].is_number() && of(other)["us"].is_number(), "{question}");
        assert!(candidates.iter().all(|one| one["refused"].is_null()), "{question}");
        // Whatever was faster here: builds do as the record says, and give what they should.
        let key = question["key"].as_str().unwrap();
        let text = fs::read_to_string(lock(&project)).unwrap();
        let (before, own) = text.split_once(&format!("[\"{key} ")).unwrap();
        let mut built = Vec::new();
        for choice in [first, other, "parts 3"] {
            let old = own.lines().find(|line| line.starts_with("choice = ")).unwrap();
            let own = own.replacen(old, &format!("choice = \"{choice}\""), 1);
            fs::write(lock(&project), format!("{before}[\"{key} {own}")).unwrap();
            project.build();
            built.push(sources_of(&project, "early"));
        }
        assert_ne!(built[0], built[1], "{name}: the record decides what is built");
        assert_eq!(built[0], built[2], "{name}: what is no answer is passed over");
    }
}

/// The sources of a model, in order.
fn sources_of(project: &Project, model: &str) -> Vec<String> {
    let files = fs::read_dir(project.artefacts(model).join("src")).unwrap().flatten();
    let mut texts: Vec<String> = files.filter_map(|entry| fs::read_to_string(entry.path()).ok()).collect();
    texts.sort();
    texts
}

#[test]
fn checks_and_dry_runs_write_nothing() {
    let project = project();
    let ended = Ended::of(&mut tune(&project, &["--dry-run"])).succeeded();
    assert!(
        ended.stdout.contains("candidates for 2 kernels on x86_64.") || cfg!(not(target_arch = "x86_64")),
        "{}",
        ended.stdout
    );
    let ended = Ended::of(&mut tune(&project, &["--check"])).succeeded();
    assert!(ended.stdout.contains("0 are slower than without"), "{}", ended.stdout);
    assert!(!lock(&project).exists());
    let wrong = Ended::of(&mut tune(&project, &["--only", "matmull"]));
    assert!(wrong.code == Some(2) && wrong.stderr.contains("has no kernel `matmull`"), "{}", wrong.stderr);
    let wrong = Ended::of(&mut project.aoti(&["tune", "twoo"]));
    assert!(wrong.code == Some(2) && wrong.stderr.contains("did you mean `two`?"), "{}", wrong.stderr);
}

#[test]
fn where_no_lock_can_be_written_nothing_is_measured() {
    let project = project();
    lock_dependencies(&project);
    project.write("cache/here", "");
    let command = tune(&project, &[]);
    // The form of a full disk that needs no disk: files of more than a few KiB cannot be written.
    let full = through(&["sh", "-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""], &command);
    let permissions = |mode| fs::set_permissions(project.folder(), fs::Permissions::from_mode(mode)).unwrap();
    for (mode, mut command) in [(0o755, full), (0o555, bound_by_permissions(&command))] {
        permissions(mode);
        let begun = Instant::now();
        let ended = Ended::of(&mut command);
        permissions(0o755);
        assert!(ended.code == Some(3) || ended.code == Some(1), "{:o}: {}", mode, ended.stderr);
        assert!(ended.stderr.contains("cannot write"), "{}", ended.stderr);
        assert!(
            begun.elapsed() < Duration::from_secs(20) && !ended.stderr.contains("Tuning"),
            "{}",
            ended.stderr
        );
        let names = fs::read_dir(project.folder()).unwrap().flatten().map(|entry| entry.file_name());
        assert!(
            !names.into_iter().any(|name| name.to_string_lossy().contains("aoti")),
            "nothing is left behind"
        );
    }
    permissions(0o555);
    let checked = Ended::of(&mut bound_by_permissions(&tune(&project, &["--check"])));
    permissions(0o755);
    assert!(checked.succeeded().stdout.contains("0 are slower"), "a check writes nothing");
}

#[test]
fn machines_of_a_class_share_what_was_measured() {
    let (first, second) = (project(), project());
    let ended = Ended::of(&mut tune(&first, &["--format", "json"])).succeeded();
    let tuned = objects(&ended).into_iter().filter(|one| one["reason"] == "aoti-tuning");
    assert_eq!(tuned.count(), 2, "{}", ended.stdout);
    let layered = |arguments: &[&str]| {
        let mut command = tune(&second, arguments);
        command.env("AOTI_CACHE_LAYERS", first.folder().join("cache"));
        command
    };
    let ended = Ended::of(&mut layered(&["--format", "json"])).succeeded();
    let told = objects(&ended);
    assert!(told.len() == 2 && told.iter().all(|one| one["reason"] == "aoti-taken-over"), "{}", ended.stdout);
    let text = |project: &Project| fs::read_to_string(lock(project)).unwrap();
    assert_eq!(text(&first), text(&second));
    // What the lock has is what a second run asks about; what `--again` and `--check` say was measured here and now.
    for (argument, keeps_lock) in [("--verbose", true), ("--again", false), ("--check", false)] {
        if !keeps_lock {
            fs::remove_file(lock(&second)).unwrap();
        }
        let told = objects(&Ended::of(&mut layered(&[argument, "--format", "json"])).succeeded());
        let of = |reason: &str| told.iter().filter(|one| one["reason"] == reason).count();
        assert_eq!((of("aoti-tuning"), of("aoti-taken-over")), (2, 0), "{argument}");
    }
}

/// One product of as many rows as there are.
const DYNAMIC: &str = "\
graph \"rows\" {
  symbol s0 \"rows\" in 1..512 from input 0 axis 0
  origin o0 = \"\" \"\" \"\"
  const c0 \"a\": f32[64, 96] = splat 0.25006103515625
  input %0 \"x\": f32[s0, 64]
  %1: f32[64, 96] = constant c0
  %2: f32[s0, 96] = matmul %0, %1
  output %2 \"y\"
}
";

#[test]
fn each_size_has_a_record_and_a_build_goes_by_all() {
    let table = "[package.metadata.aoti.models.two]\npath = \"models/two.aoti\"\nsizes = [{ rows = 1 }, { rows = 200 }]\n";
    let project = Project::new(table);
    project.write("models/two.aoti", DYNAMIC);
    let ended = Ended::of(&mut tune(&project, &["--format", "json"])).succeeded();
    let tuned: Vec<Value> =
        objects(&ended).into_iter().filter(|one| one["reason"] == "aoti-tuning").collect();
    let rows: Vec<_> = tuned.iter().map(|one| one["dims"]["rows"].as_i64()).collect();
    assert_eq!(rows, [Some(1), Some(200)], "{}", ended.stdout);
    let text = fs::read_to_string(lock(&project)).unwrap();
    let names: Vec<&str> = text.lines().filter(|line| line.starts_with("[\"")).collect();
    let sizes: Vec<_> = names.iter().map(|name| name.trim_end_matches("\"]").rsplit(' ').next()).collect();
    assert_eq!(sizes, [Some("1"), Some("200")], "{text}");
    // What is known of one size says nothing of another, in the cache either.
    let ended = Ended::of(&mut tune(&project, &["--dim", "rows=7", "--format", "json"])).succeeded();
    let is_measured = ended.stdout.contains("aoti-tuning") && !ended.stdout.contains("aoti-taken-over");
    assert!(is_measured, "{}{}", ended.stdout, ended.stderr);
    let inspect = Ended::of(&mut project.aoti(&["inspect", "models/two.aoti", "--choices"])).succeeded();
    assert!(inspect.stdout.contains("sizes: "), "{}", inspect.stdout);
    let mut locked = project.aoti(&["build", "--locked"]);
    lock_dependencies(&project);
    Ended::of(&mut locked).succeeded();
    let ended = Ended::of(&mut tune(&project, &["--dim", "columns=7"]));
    assert!(ended.stderr.contains("no dimension `columns`; it has `rows`"), "{}", ended.stderr);
}
