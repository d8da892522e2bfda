//! A lock goes in and out unchanged; whatever else is in the file is said, and never makes a wrong build.

use super::*;
use std::sync::Arc;

const CHOICE: &str = "gemm.packed split rows 64 lanes outer grain 65536 block rows 8";

pub(crate) fn place(kernel: &str, machine: &str, threads: u16) -> Place {
    let kernel = TuningKey::parse(kernel).expect("a key");
    Place { kernel, machine: machine.to_owned(), threads, sizes: Sizes::default() }
}

pub(crate) fn record(choice: &str) -> Record {
    let setting: Setting = choice.parse().expect("a choice");
    Record {
        model: "net \"a\" \\\t\u{7f}".to_owned(),
        name: "fc_linear".to_owned(),
        template: setting.version(),
        setting,
        micros: 12.5,
        spread: 0.25,
        default_micros: 14.0,
        others: vec![("loops".parse().expect("a choice"), 13.0)],
        predicted: 1.1,
        tool: "0.1.0".to_owned(),
        compiler: "g++ 12".to_owned(),
    }
}

fn two() -> Lock {
    let mut lock = Lock::default();
    lock.records.insert(place("ffffffffffffffff", "x86_64.v4.intel", 1), record(CHOICE));
    lock.records.insert(place("0123456789abcdef", "x86_64.v4.intel", 2), record("loops"));
    lock
}

fn rates(mflop_per_s: u64) -> Rates {
    let caches = vec![(48 << 10, 500_000), (1 << 20, 250_000), (32 << 20, 100_000)];
    Rates { mflop_per_s, caches, memory_mb_per_s: 40_000 }
}

fn runner(machine: &str, threads: u16) -> Runner {
    Runner { machine: machine.to_owned(), threads }
}

fn read(text: &str) -> Result<Reading, String> {
    super::read::read(Path::new("aoti.lock"), text.as_bytes()).map_err(|problem| problem.to_string())
}

fn cpu(compiler: &str) -> Machines {
    Machines { family: "x86_64".to_owned(), compiler: Some(compiler.to_owned()) }
}

#[test]
fn a_lock_is_read_as_it_was_written_and_sorted() {
    let text = two().to_string();
    assert_eq!(read(&text).unwrap(), Reading { lock: two(), notes: vec![] });
    assert!(text.find("0123456789abcdef").unwrap() < text.find("ffffffffffffffff").unwrap(), "{text}");
    assert_eq!(read("version = 1\n").unwrap(), Reading::default());
}

#[test]
fn what_is_wrong_with_the_file_is_an_error_with_its_place() {
    let text = two().to_string();
    let conflict = text.replacen("\n[", "\n<<<<<<< ours\n[", 1);
    let message = read(&conflict).unwrap_err();
    assert!(message.contains("a merge has left its marks") && message.contains("aoti.lock:5:1"), "{message}");
    let message = read(&text.replace("version = 1", "version = 7")).unwrap_err();
    assert!(message.contains("version 7") && message.contains("newer cargo-aoti"), "{message}");
    let message = read(&text.replace("us = 12.5", "us = = 12.5")).unwrap_err();
    assert!(message.contains("not TOML") && message.contains("aoti.lock:9"), "{message}");
    assert!(read("version = \"x\"").unwrap_err().contains("version"));
    assert!(read("").unwrap_err().contains("no `version`"));
    let twice = format!("{text}{}", text.split_once("version = 1\n").unwrap().1);
    assert!(read(&twice).unwrap_err().contains("duplicate"), "one record is there twice");
    let problem = super::read::read(Path::new("aoti.lock"), &[0xff, 0xfe]).unwrap_err();
    assert!(problem.to_string().contains("not text"));
}

#[test]
fn a_cut_or_changed_file_never_makes_other_records() {
    let text = two().to_string();
    for end in 0..text.len() {
        if let Ok(reading) = read(&text[..end]) {
            for (place, record) in &reading.lock.records {
                assert_eq!(two().records[place].setting, record.setting, "{end}");
            }
        }
    }
}

/// Trap 7: a candidate that failed has no time, and an infinite one would never be tried again.
#[test]
fn infinite_times_are_no_records() {
    for time in ["inf", "-inf", "nan", "-1.0"] {
        let text = two().to_string().replace("us = 12.500", &format!("us = {time}"));
        let reading = read(&text).unwrap();
        assert!(reading.lock.records.is_empty(), "{time}");
        assert!(reading.notes[0].contains("a time that cannot be"), "{:?}", reading.notes);
        assert!(reading.notes[0].starts_with("aoti.lock:5: the record `0123"), "{:?}", reading.notes);
    }
}

/// Trap 8: what is there of a partial file is used as it is; nothing of it stands for what is not there.
#[test]
fn records_that_make_no_sense_leave_the_others_alone() {
    for (old, new, reason) in [
        ("choice = \"loops\"", "choice = \"lops\"", "`lops` is no choice"),
        ("choice = \"loops\"", "choice = 3", "invalid type"),
        ("0123456789abcdef", "0123", "key of a kernel"),
        ("intel 2", "intel 0", "number of threads"),
        ("intel 2", "intel", "number of threads"),
        ("intel 2", "intel 2 8x", "sizes"),
        ("intel 2", "intel 2 8 16", "number of threads, and sizes"),
    ] {
        let reading = read(&two().to_string().replacen(old, new, 1)).unwrap();
        assert_eq!((reading.lock.records.len(), reading.notes.len()), (1, 1), "{new}");
        assert!(reading.notes[0].contains(reason), "{new}: {:?}", reading.notes);
    }
}

/// Trap 28: records nest as kernel, machine, threads, and each is of all three.
#[test]
fn records_of_other_machines_compilers_and_templates_are_not_used() {
    let key = |kernel: &str| TuningKey::parse(kernel).expect("a key");
    let usable = two().usable(&[cpu("g++ 12")]);
    assert_eq!(usable.notes, Vec::<String>::new());
    assert_eq!(usable.records.get(&key("ffffffffffffffff")).unwrap().to_string(), CHOICE);
    let other = two().usable(&[cpu("clang 19")]);
    assert!(
        other.records.is_empty() && other.notes[0].contains("this build uses `clang 19`"),
        "{:?}",
        other.notes
    );
    let arm = Machines { family: "aarch64".to_owned(), compiler: None };
    assert_eq!(two().usable(&[arm]), ApplicableRecords::default());
    let mut old = two();
    old.records.values_mut().for_each(|record| record.template = 0);
    let old = old.usable(&[cpu("g++ 12")]);
    assert!(old.records.is_empty() && old.notes[0].contains("2 records"), "{:?}", old.notes);
}

#[test]
fn the_machine_with_most_records_and_the_most_threads_count() {
    let mut lock = two();
    lock.records.insert(place("ffffffffffffffff", "x86_64.v3.amd", 1), record("loops"));
    lock.records.insert(place("0123456789abcdef", "x86_64.v4.intel", 1), record(CHOICE));
    let usable = lock.usable(&[cpu("g++ 12")]);
    assert_eq!(
        usable.notes,
        ["`aoti.lock` has records of `x86_64.v3.amd`, `x86_64.v4.intel`; those of `x86_64.v4.intel` count"]
    );
    let of =
        |kernel: &str| usable.records.get(&TuningKey::parse(kernel).expect("a key")).unwrap().to_string();
    assert_eq!((of("ffffffffffffffff"), of("0123456789abcdef")), (CHOICE.to_owned(), "loops".to_owned()));
}

#[test]
fn updates_at_the_same_time_lose_no_record() {
    let folder = tempfile::tempdir().unwrap();
    let path = Arc::new(folder.path().join(FILE));
    let threads: Vec<_> = (0..8_u16)
        .map(|number| {
            let path = Arc::clone(&path);
            std::thread::spawn(move || {
                for step in 0..8_u16 {
                    let place = place(&format!("{:016x}", number * 8 + step), "x86_64.v4.intel", 1);
                    Lock::update(&path, |lock| drop(lock.records.insert(place, record(CHOICE)))).unwrap();
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(Lock::read(&path).unwrap().lock.records.len(), 64);
    assert_eq!(fs_err::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn a_lock_that_cannot_be_written_is_told_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    fs_err::write(&file, "text").unwrap();
    let error = Lock::update(&file.join(FILE), |_| {}).unwrap_err();
    assert!(matches!(error, Error::File { .. }), "{error}");
    let broken = folder.path().join(FILE);
    fs_err::write(&broken, "version = 9\n").unwrap();
    assert!(Lock::update(&broken, |lock| lock.records.clear()).is_err());
    assert_eq!(fs_err::read_to_string(&broken).unwrap(), "version = 9\n");
}

fn at(sizes: &str) -> Place {
    let sizes = Sizes::parse(sizes).expect("sizes");
    Place { sizes, ..place("0123456789abcdef", "x86_64.v4.intel", 2) }
}

/// A record of a dynamic kernel: its choice, then the others.
fn timed(default_micros: f64, times: &[(&str, f64)]) -> Record {
    let setting = |text: &str| text.parse::<Setting>().expect("a choice");
    let others = times[1..].iter().map(|(text, micros)| (setting(text), *micros)).collect();
    Record { micros: times[0].1, default_micros, others, ..record(times[0].0) }
}

#[test]
fn sizes_are_part_of_a_place() {
    let mut lock = two();
    let general = "gemm.general split rows 64 lanes outer grain 65536";
    lock.records.insert(at("8x?"), timed(3.0, &[(CHOICE, 1.0), ("loops", 2.0), (general, 3.0)]));
    lock.records.insert(at("64x?"), timed(3.0, &[("loops", 1.0), (CHOICE, 2.0)]));
    let text = lock.to_string();
    assert!(text.contains("[\"0123456789abcdef x86_64.v4.intel 2 8x?\"]"), "{text}");
    assert!(text.contains(&format!("\nothers = [[\"{general}\", 3.000]]\n")), "{text}");
    assert_eq!(read(&text).unwrap(), Reading { lock, notes: vec![] });
    let inputs = [vec![8, 3], vec![64]];
    let sizes = Sizes::of(&[Some((0, 0)), None, Some((1, 0)), Some((9, 9))], &inputs);
    assert_eq!(sizes.to_string(), "8x?x64x?");
    assert!(["", "x", "8x", "-1", "8 x 3"].iter().all(|text| Sizes::parse(text).is_none()));
}

#[test]
fn of_several_sizes_what_is_best_at_all_of_them_counts() {
    let general = "gemm.general split rows 64 lanes outer grain 65536";
    // At the small size the first gains more than it loses at the large one.
    let small = timed(4.0, &[(CHOICE, 1.0), (general, 3.0), ("loops", 4.0)]);
    let large = timed(40.0, &[("loops", 40.0), (general, 42.0), (CHOICE, 80.0)]);
    assert_eq!(Record::best(&[&small, &large]).to_string(), CHOICE);
    let large = timed(40.0, &[("loops", 40.0), (general, 42.0), (CHOICE, 400.0)]);
    assert_eq!(Record::best(&[&small, &large]).to_string(), general, "none of the two that won");
    // What was not measured at one of the sizes may be anything there.
    let large = timed(40.0, &[("loops", 40.0), (general, 200.0)]);
    assert_eq!(Record::best(&[&small, &large]).to_string(), "loops");
    // An outlier makes nothing faster than what won there.
    let outlier = timed(4.0, &[("loops", 4.0), (CHOICE, 0.1)]);
    let large = timed(40.0, &[(general, 35.0), ("loops", 40.0), (CHOICE, 60.0)]);
    assert_eq!(Record::best(&[&outlier, &large]).to_string(), "loops");
    let mut lock = Lock::default();
    lock.records.insert(at("8"), small);
    lock.records.insert(at("64"), timed(40.0, &[("loops", 40.0), (CHOICE, 80.0)]));
    let one_thread = Place { threads: 1, ..at("8") };
    lock.records.insert(one_thread, timed(4.0, &[("loops", 1.0)]));
    let usable = lock.usable(&[cpu("g++ 12")]);
    assert_eq!(usable.records.get(&at("8").kernel).unwrap().to_string(), CHOICE);
}

#[test]
fn rates_are_read_as_they_were_written_and_stand_behind_the_records() {
    let mut lock = two();
    let without = lock.to_string();
    lock.rates.insert(runner("x86_64.v4.intel", 2), rates(500_000));
    lock.rates.insert(runner("aarch64.neon", 1), rates(50_000));
    let text = lock.to_string();
    assert!(text.starts_with(&without), "records are as they were: {text}");
    assert!(text.find("[\"rates aarch64.neon 1\"]") < text.find("[\"rates x86_64.v4.intel 2\"]"), "{text}");
    assert_eq!(read(&text).unwrap(), Reading { lock, notes: vec![] });
}

#[test]
fn rates_that_make_no_sense_are_passed_over_with_a_note() {
    let mut lock = two();
    lock.rates.insert(runner("x86_64.v4.intel", 2), rates(500_000));
    for (old, new, reason) in [
        ("mflop-per-s = 500000", "mflop-per-s = 0", "no machine is so fast"),
        ("mflop-per-s = 500000", "mflop-per-s = 99999999999999", "no machine is so fast"),
        ("mflop-per-s = 500000", "mflop-per-s = -5", "expected u64"),
        ("mflop-per-s = 500000", "mflop-per-s = inf", "expected u64"),
        ("memory-mb-per-s = 40000\n", "", "missing field"),
        ("[[49152, 500000], ", "[[49152], ", "expected 2"),
        ("rates x86_64.v4.intel 2", "rates x86_64.v4.intel 0", "number of threads"),
        ("rates x86_64.v4.intel 2", "rates x86_64.v4.intel", "number of threads"),
        ("rates x86_64.v4.intel 2", "rate x86_64.v4.intel 2", "key of a kernel"),
    ] {
        let reading = read(&lock.to_string().replacen(old, new, 1)).unwrap();
        assert_eq!((reading.lock.records.len(), reading.lock.rates.len()), (2, 0), "{new}");
        assert!(reading.notes.len() == 1 && reading.notes[0].contains(reason), "{new}: {:?}", reading.notes);
    }
}

#[test]
fn builds_price_by_the_machine_whose_records_they_follow() {
    let mut lock = two();
    assert_eq!(lock.usable(&[cpu("g++ 12")]).rates, None);
    lock.rates.insert(runner("x86_64.v3.amd", 64), rates(1));
    lock.rates.insert(runner("aarch64.neon", 1), rates(2));
    assert_eq!(lock.usable(&[cpu("g++ 12")]).rates, None, "others say nothing of it");
    lock.rates.insert(runner("x86_64.v4.intel", 1), rates(3));
    lock.rates.insert(runner("x86_64.v4.intel", 2), rates(4));
    assert_eq!(lock.usable(&[cpu("g++ 12")]).rates, Some(rates(4)), "with the most threads");
    assert_eq!(lock.usable(&[cpu("clang 19")]).rates, Some(rates(4)), "whatever compiles");
    assert_eq!(lock.rates_for("aarch64"), Some(&rates(2)), "where there is no record of a kernel");
    assert_eq!(lock.rates_for("sm_90"), None);
}
