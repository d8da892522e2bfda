//! What a search tries and what wins, over a device that is a table of times.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use aoti_compiler::compile::{OpenKernel, OpenWay};
use aoti_compiler::schedule::{Decided, KernelKey};

use super::bench::{Bench, Fault, LibraryId, Sample};
use super::groups::{Assignment, Group, assignments};
use super::outcome::{Knowledge, Outcome};
use super::search::{Listener, Search};
use crate::failure::Failure;

/// What a way of a group does.
#[derive(Clone, Copy)]
enum Does {
    /// It takes so long.
    Takes(f64),
    /// It takes so long where threads are near each other, and so long where they are far apart.
    Shares(f64, f64),
    /// It is wrong, and that shows in the kernel of the group of this number.
    ShowsIn(usize),
    /// It ends the process.
    Crashes,
    /// It does not compile.
    IsNoSource,
    /// It is right in so many checks, and takes so long.
    RightOnly(usize, f64),
    /// It ends the process when it is timed.
    CrashesLate,
}

use Does::{Crashes, CrashesLate, IsNoSource, RightOnly, Shares, ShowsIn, Takes};

/// A device on which each group has one kernel.
struct Stub {
    does: Vec<Vec<Does>>,
    made: Vec<Assignment>,
    checks: Vec<usize>,
    times_kernels: bool,
    /// The part of its kernels' time that a run of a library takes longer as a whole, beside the first library's.
    later: f64,
    runs: usize,
    /// Nanoseconds that threads take to begin and end a loop together, in a run of this number.
    fork_join: fn(usize) -> f64,
}

/// Where one thread runs.
const ALONE: fn(usize) -> f64 = |_| 0.0;
const NEAR: f64 = 100.0;
const FAR: f64 = 500.0;

impl Stub {
    fn new(does: Vec<Vec<Does>>, times_kernels: bool) -> Stub {
        Stub { does, made: vec![], checks: vec![], times_kernels, later: 0.0, runs: 0, fork_join: ALONE }
    }

    fn doing(&self, library: LibraryId) -> Vec<(usize, Does)> {
        self.made[library.0]
            .0
            .iter()
            .enumerate()
            .map(|(group, way)| (group, self.does[group][*way]))
            .collect()
    }
}

fn fault(reason: &str, kernel: Option<usize>, library: LibraryId) -> Fault {
    Fault { reason: reason.to_owned(), kernel, library: Some(library), is_hang: false }
}

impl Bench for Stub {
    fn times_kernels(&self) -> bool {
        self.times_kernels
    }

    fn at_once(&self) -> usize {
        2
    }

    fn takes_to_make(&self) -> Duration {
        Duration::ZERO
    }

    fn make(&mut self, assignments: &[Assignment]) -> Result<Vec<Result<LibraryId, Fault>>, Failure> {
        let mut make = |assignment: &Assignment| {
            self.made.push(assignment.clone());
            self.checks.push(0);
            let id = LibraryId(self.made.len() - 1);
            let is_broken = self.doing(id).iter().any(|(_, does)| matches!(does, IsNoSource));
            if is_broken { Err(fault("does not compile", None, id)) } else { Ok(id) }
        };
        Ok(assignments.iter().map(&mut make).collect())
    }

    fn check(&mut self, library: LibraryId) -> Result<Result<(), Fault>, Failure> {
        self.checks[library.0] += 1;
        for (group, does) in self.doing(library) {
            match does {
                ShowsIn(kernel) => return Ok(Err(fault("is wrong", Some(kernel), library))),
                Crashes => return Ok(Err(fault("crashed", Some(group), library))),
                RightOnly(times, _) if self.checks[library.0] > times => {
                    return Ok(Err(fault("was right before", Some(group), library)));
                }
                Takes(_) | Shares(..) | RightOnly(..) | CrashesLate | IsNoSource => {}
            }
        }
        Ok(Ok(()))
    }

    fn time(
        &mut self,
        libraries: &[LibraryId],
        rounds: usize,
    ) -> Result<Result<Vec<Vec<Sample>>, Fault>, Failure> {
        let mut all = vec![Vec::new(); libraries.len()];
        for _ in 0..rounds {
            for (position, library) in libraries.iter().enumerate() {
                self.runs += 1;
                let fork_join = (self.fork_join)(self.runs);
                let mut kernels = Vec::new();
                for (group, does) in self.doing(*library) {
                    // Some noise, the same in every test.
                    let noise = 1.0 + (self.runs * 7 % 5) as f64 * 1e-3;
                    match does {
                        Takes(micros) | RightOnly(_, micros) => kernels.push(micros * noise),
                        Shares(near, far) => kernels.push(noise * if fork_join < FAR { near } else { far }),
                        CrashesLate => return Ok(Err(fault("crashed late", Some(group), *library))),
                        ShowsIn(_) | Crashes | IsNoSource => unreachable!("it was refused"),
                    }
                }
                let more = if library.0 > 0 { 1.0 + self.later } else { 1.0 };
                let whole = kernels.iter().sum::<f64>() * more;
                all[position].push(Sample { whole, kernels, fork_join });
            }
        }
        Ok(Ok(all))
    }
}

/// Keeps what was refused.
#[derive(Default)]
struct Heard(RefCell<Vec<(String, usize, String)>>);

impl Listener for Heard {
    fn making(&self, _: usize, _: usize) {}
    fn refused(&self, group: &Group, way: usize, reason: &str) {
        self.0.borrow_mut().push((group.name.clone(), way, reason.to_owned()));
    }
    fn turn(&self, _: usize, _: usize, _: f64) {}
}

const SETTINGS: [&str; 5] = [
    "gemm.packed split rows 64 lanes outer grain 65536",
    "gemm.packed split rows 64 lanes outer grain 65536 block rows 8",
    "gemm.packed split rows 64 lanes outer grain 65536 block rows 4",
    "gemm.general split rows 64 lanes outer grain 65536",
    "gemm.packed split rows 1 lanes outer grain 65536",
];

fn group(number: usize, ways: usize) -> Group {
    let way = |way: usize| OpenWay {
        setting: SETTINGS[way].parse().unwrap(),
        cost: 1.0 + way as f64 / 10.0,
        parts: vec![],
        is_shared: false,
    };
    Group {
        key: KernelKey::parse(&format!("{number:016x}")).unwrap(),
        sizes: vec![],
        name: format!("k{number}"),
        kernels: vec![number],
        others: vec![],
        ways: (0..ways).map(way).collect(),
        tried: (1..ways).collect(),
    }
}

fn search(
    does: &[&[Does]],
    times_kernels: bool,
    before: &[Option<usize>],
) -> (Outcome, Heard, Vec<Assignment>) {
    let groups: Vec<Group> = does.iter().enumerate().map(|(k, does)| group(k, does.len())).collect();
    let does = does.iter().map(|does| does.to_vec()).collect();
    let mut stub = Stub::new(does, times_kernels);
    let mut before = before.to_vec();
    before.resize(groups.len(), None);
    let heard = Heard::default();
    let outcome = Search::new(&groups, before, &mut stub, &heard, (Duration::from_secs(2), 0.0)).run();
    let outcome = outcome.unwrap_or_else(|failure| panic!("{failure:?}"));
    (outcome, heard, stub.made)
}

#[test]
fn the_fastest_of_each_group_wins_together() {
    for times_kernels in [true, false] {
        let does: [&[Does]; 2] =
            [&[Takes(10.0), Takes(8.0), Takes(12.0)], &[Takes(20.0), Takes(30.0), Takes(15.0)]];
        let (outcome, heard, made) = search(&does, times_kernels, &[]);
        assert_eq!(outcome.winners, Assignment(vec![1, 2]));
        let [first, tuned] = outcome.whole.unwrap();
        assert!(tuned.median < first.median, "{first:?} {tuned:?}");
        assert!(heard.0.borrow().is_empty());
        // One library has another way for all groups where kernels are timed one by one.
        assert_eq!(made.len(), if times_kernels { 1 + 2 + 1 } else { 1 + 4 + 1 });
    }
}

/// A planted answer to a question is found, one that gives something else is named, and each is tried by itself.
#[test]
fn the_best_answer_that_is_right_wins() {
    let does = vec![
        vec![Takes(10.0), Takes(9.0), ShowsIn(0), Takes(5.0)],
        vec![Takes(10.0), Takes(20.0), Takes(30.0)],
    ];
    let mut groups: Vec<Group> = (0..2).map(|number| group(number, does[number].len())).collect();
    for (number, group) in groups.iter_mut().enumerate() {
        group.others = vec![vec![number]; group.ways.len() - 1];
    }
    let mut stub = Stub::new(does, true);
    let heard = Heard::default();
    let search = Search::new(&groups, vec![None; 2], &mut stub, &heard, (Duration::from_secs(2), 0.0));
    let outcome = search.run().unwrap_or_else(|failure| panic!("{failure:?}"));
    assert_eq!(outcome.winners, Assignment(vec![3, 0]));
    assert_eq!(heard.0.into_inner(), [("k0".to_owned(), 2, "is wrong".to_owned())]);
    assert!(stub.made[1..].iter().all(|made| made.pairs().len() == 1), "{:?}", stub.made);
}

/// Trap 9: the first way is the default, and stays it where others are no faster.
#[test]
fn the_first_way_wins_where_no_other_is_faster_beyond_noise() {
    let (outcome, ..) = search(&[&[Takes(10.0), Takes(9.95), Takes(10.0)]], true, &[]);
    assert_eq!((outcome.winners, outcome.whole), (Assignment(vec![0]), None));
}

#[test]
fn what_is_planted_never_wins_and_is_named() {
    let does: [&[Does]; 3] = [
        &[Takes(10.0), Crashes, Takes(9.0)],
        &[Takes(10.0), IsNoSource, ShowsIn(2), Takes(8.0)],
        &[Takes(10.0), RightOnly(1, 1.0), CrashesLate, Takes(7.0)],
    ];
    let (outcome, heard, _) = search(&does, true, &[]);
    assert_eq!(outcome.winners, Assignment(vec![2, 3, 3]));
    let mut refused = heard.0.into_inner();
    refused.sort();
    let named = |name: &str, way, reason: &str| (name.to_owned(), way, reason.to_owned());
    assert_eq!(
        refused,
        [
            named("k0", 1, "crashed"),
            named("k1", 1, "does not compile"),
            named("k1", 2, "is wrong"),
            named("k2", 1, "was right before"),
            named("k2", 2, "crashed late"),
        ]
    );
    assert!(matches!(outcome.known[1][2], Knowledge::Refused(_)));
}

/// What one writes out of bounds shows in another: that one is not refused.
#[test]
fn the_one_at_fault_is_found_among_those_of_a_library() {
    let right: &[Does] = &[Takes(10.0), Takes(8.0)];
    let does: [&[Does]; 5] = [right, right, &[Takes(10.0), ShowsIn(4)], right, right];
    let (outcome, heard, _) = search(&does, true, &[]);
    assert_eq!(outcome.winners, Assignment(vec![1, 1, 0, 1, 1]));
    assert_eq!(heard.0.into_inner(), [("k2".to_owned(), 1, "is wrong".to_owned())]);
}

#[test]
fn of_equals_the_one_that_won_before_wins_again() {
    let does: [&[Does]; 1] = [&[Takes(10.0), Takes(8.0), Takes(8.05)]];
    assert_eq!(search(&does, true, &[]).0.winners, Assignment(vec![1]));
    assert_eq!(search(&does, true, &[Some(2)]).0.winners, Assignment(vec![2]));
    assert_eq!(search(&does, true, &[Some(0)]).0.winners, Assignment(vec![1]), "the first is slower");
    // One that is no longer ahead of the first stays while it is not behind it beyond noise.
    let does: [&[Does]; 1] = [&[Takes(10.0), Takes(10.05)]];
    assert_eq!(search(&does, true, &[Some(1)]).0.winners, Assignment(vec![1]));
    let does: [&[Does]; 1] = [&[Takes(10.0), Takes(11.0)]];
    assert_eq!(search(&does, true, &[Some(1)]).0.winners, Assignment(vec![0]));
}

/// A search over one kernel, of which the second way is the better one only where threads are near each other.
fn shared(fork_join: fn(usize) -> f64, known: f64, before: Option<usize>) -> Outcome {
    let does = vec![vec![Takes(10.0), Shares(8.0, 30.0)]];
    let mut stub = Stub { fork_join, ..Stub::new(does, true) };
    let (groups, budget) = ([group(0, 2)], Duration::from_millis(200));
    let found = Search::new(&groups, vec![before], &mut stub, &Heard::default(), (budget, known)).run();
    found.unwrap_or_else(|failure| panic!("{failure:?}"))
}

#[test]
fn runs_count_where_threads_are_as_near_as_they_ever_are() {
    let far_at_first: fn(usize) -> f64 = |run| if run < 100 { FAR } else { NEAR };
    let often_far: fn(usize) -> f64 = |run| if run % 7 < 4 { FAR } else { NEAR };
    for (fork_join, known) in
        [(far_at_first, 0.0), (far_at_first, FAR), (far_at_first, NEAR), (often_far, 0.0), (often_far, NEAR)]
    {
        let outcome = shared(fork_join, known, None);
        assert_eq!(outcome.winners, Assignment(vec![1]), "{known}: {:?}", outcome.apart);
        assert_eq!((outcome.apart.best, outcome.timing(0, 1).unwrap().median.round()), (NEAR, 8.0));
        let [first, tuned] = outcome.whole.unwrap();
        assert!(tuned.median < first.median, "{known}: {first:?} {tuned:?}");
    }
}

/// Nothing is known then, and what was recorded stays; where they were never nearer, that is how the machine is.
#[test]
fn while_threads_are_farther_apart_than_they_were_no_record_changes() {
    for before in [None, Some(0), Some(1)] {
        let outcome = shared(|_| FAR, NEAR, before);
        assert_eq!(outcome.winners, Assignment(vec![before.unwrap_or(0)]));
        assert!(outcome.is_empty() && outcome.whole.is_none() && outcome.apart.left_out > 0);
        let outcome = shared(|_| FAR, FAR, before);
        assert_eq!((outcome.winners, outcome.apart.left_out), (Assignment(vec![0]), 0));
    }
}

/// A small gain of a small kernel cannot be seen in whole runs: their noise decides nothing about it.
#[test]
fn whole_runs_refute_only_what_would_show_in_them() {
    let winners = |does: &[&[Does]], later: f64| {
        let groups: Vec<Group> = does.iter().enumerate().map(|(k, does)| group(k, does.len())).collect();
        let does = does.iter().map(|does| does.to_vec()).collect();
        let mut stub = Stub { later, ..Stub::new(does, true) };
        let before = vec![None; groups.len()];
        let found =
            Search::new(&groups, before, &mut stub, &Heard::default(), (Duration::from_secs(2), 0.0)).run();
        found.unwrap_or_else(|failure| panic!("{failure:?}")).winners
    };
    let small: [&[Does]; 2] = [&[Takes(1000.0), Takes(1000.0)], &[Takes(10.0), Takes(9.0)]];
    assert_eq!(winners(&small, 0.005), Assignment(vec![0, 1]), "1 us of 1010 does not show");
    assert_eq!(winners(&small, 0.05), Assignment(vec![0, 0]), "5 % more do");
    let large: [&[Does]; 2] = [&[Takes(100.0), Takes(100.0)], &[Takes(100.0), Takes(90.0)]];
    assert_eq!(winners(&large, 0.03), Assignment(vec![0, 1]));
    assert_eq!(winners(&large, 0.06), Assignment(vec![0, 0]), "5 % less would show");
}

/// A device where all takes its time.
struct Slow {
    stub: Stub,
    at_once: usize,
    making: Duration,
    checking: Duration,
    /// Libraries that were asked for at the same time.
    parts: Vec<usize>,
}

impl Slow {
    /// With so many ways of one kernel, each faster than the one before.
    fn new(ways: usize, at_once: usize, [making, checking]: [u64; 2]) -> Slow {
        let does = vec![(0..ways).map(|way| Takes(10.0 - way as f64)).collect()];
        let stub = Stub::new(does, false);
        let [making, checking] = [making, checking].map(Duration::from_millis);
        Slow { stub, at_once, making, checking, parts: vec![] }
    }

    /// Searches with so many milliseconds; gives what it found, and how many times as long it took.
    fn search(&mut self, budget: u64) -> (Outcome, f64) {
        let (groups, heard, begun) =
            (vec![group(0, self.stub.does[0].len())], Heard::default(), Instant::now());
        let budget = Duration::from_millis(budget);
        let outcome = Search::new(&groups, vec![None], self, &heard, (budget, 0.0)).run();
        let outcome = outcome.unwrap_or_else(|failure| panic!("{failure:?}"));
        (outcome, begun.elapsed().as_secs_f64() / budget.as_secs_f64())
    }
}

impl Bench for Slow {
    fn times_kernels(&self) -> bool {
        self.stub.times_kernels()
    }
    fn at_once(&self) -> usize {
        self.at_once
    }
    fn takes_to_make(&self) -> Duration {
        self.making
    }
    fn make(&mut self, assignments: &[Assignment]) -> Result<Vec<Result<LibraryId, Fault>>, Failure> {
        self.parts.push(assignments.len());
        std::thread::sleep(self.making);
        self.stub.make(assignments)
    }
    fn check(&mut self, library: LibraryId) -> Result<Result<(), Fault>, Failure> {
        std::thread::sleep(self.checking);
        self.stub.check(library)
    }
    fn time(&mut self, ids: &[LibraryId], rounds: usize) -> Result<Result<Vec<Vec<Sample>>, Fault>, Failure> {
        std::thread::sleep(Duration::from_millis(5));
        self.stub.time(ids, rounds)
    }
}

#[test]
fn a_search_ends_with_its_budget() {
    let (outcome, part) = Slow::new(5, 1, [60, 0]).search(300);
    assert!(part < 3.0, "{part}");
    assert_eq!(outcome.known[0][4], Knowledge::Untried, "no time was left to make it");
    assert!(outcome.winners.0[0] > 0, "what was made is used");
}

/// Of a large model so many libraries are made at once as there is time to open and to check.
#[test]
fn what_is_made_at_once_can_be_checked_in_time() {
    let mut slow = Slow::new(5, 16, [20, 120]);
    let (outcome, part) = slow.search(600);
    // The first, and its check, take 140 ms of the 360 ms for making: there is time for one more.
    assert_eq!(slow.parts[..2], [1, 1], "{:?}", slow.parts);
    assert!(part < 2.0, "{part}");
    assert!(matches!(outcome.known[0][1], Knowledge::Timed(_)), "{:?}", outcome.known);
    let mut fast = Slow::new(5, 16, [1, 1]);
    assert_eq!(fast.search(600).0.winners, Assignment(vec![4]));
    assert_eq!(fast.parts[..2], [1, 4], "all at the same time");
}

#[test]
fn predicted_costs_are_held_against_what_was_measured() {
    let does: [&[Does]; 2] =
        [&[Takes(10.0), Takes(11.0), Takes(12.0)], &[Takes(10.0), Takes(9.0), Takes(8.0), Takes(5.0)]];
    let (outcome, ..) = search(&does, false, &[]);
    let groups: Vec<Group> = does.iter().enumerate().map(|(k, does)| group(k, does.len())).collect();
    let [(template, mean, count)] = &outcome.correlations(&groups)[..] else { panic!("one template") };
    assert_eq!((template.as_str(), *count), ("gemm.packed", 2));
    assert!(mean.abs() < 1e-9, "one order is right and one reversed: {mean}");
    assert_eq!(outcome.good_defaults(), (1, 2));
}

#[test]
fn ways_that_only_threads_see_are_not_tried_on_one() {
    let mut ways = group(0, 4).ways;
    ways[1].is_shared = true;
    ways[2].cost = 100.0;
    let kernel = |index: usize| OpenKernel {
        name: format!("k{index}"),
        key: KernelKey::parse("0123456789abcdef").unwrap(),
        target: "cpu".to_owned(),
        sizes: vec![],
        index: Some(index),
        ways: ways.clone(),
        taken: 0,
    };
    let kernels = [kernel(0), kernel(5)];
    let tried = |threads| super::groups::groups(&kernels, &["x86_64"], threads, &[])[0].tried.clone();
    assert_eq!((tried(1), tried(2)), (vec![3], vec![1, 3]), "one is thought to be hopeless");
    let one = super::groups::groups(&kernels, &["x86_64"], 1, &["k5".to_owned()]);
    assert_eq!((one.len(), &one[0].kernels[..], one[0].name.as_str()), (1, &[0, 5][..], "k5"));
    assert!(super::groups::groups(&kernels, &["x86_64"], 1, &["k7".to_owned()]).is_empty());
    assert!(super::groups::groups(&kernels, &["sm_90a"], 1, &[]).is_empty());
    assert_eq!(assignments(&one, true).len(), 1);
}

/// A question about a processor's kernel, or about more than one, with these answers.
fn open(name: &str, index: Option<usize>, key: u8, settings: &[&str]) -> OpenKernel {
    let way =
        |text: &&str| OpenWay { setting: text.parse().unwrap(), cost: 1.0, parts: vec![], is_shared: false };
    OpenKernel {
        name: name.to_owned(),
        key: KernelKey::parse(&format!("{key:016x}")).unwrap(),
        target: "cpu".to_owned(),
        sizes: vec![],
        index,
        ways: settings.iter().map(way).collect(),
        taken: 0,
    }
}

/// Where two kernels are one, the time of that is held against the times of both: those of other kernels say nothing.
#[test]
fn a_pair_is_measured_by_the_kernels_that_it_makes() {
    let pair = open("a + b", None, 9, &["fused", "apart"]);
    let kernel = |name: &str, index: usize, key: u8| open(name, Some(index), key, &SETTINGS[..2]);
    // Two layers of one key, with something between.
    let fused = [pair.clone(), kernel("ab", 0, 1), kernel("c", 1, 2), kernel("ab_2", 2, 1)];
    let apart = [
        pair.clone(),
        kernel("a", 0, 3),
        kernel("b", 1, 4),
        kernel("c", 2, 2),
        kernel("a_2", 3, 3),
        kernel("b_2", 4, 4),
    ];
    let other = |_: &KernelKey, setting: &aoti_compiler::schedule::Setting| {
        assert_eq!(setting.to_string(), "apart");
        Ok::<_, ()>(apart.to_vec())
    };
    let between = (Decided::OfKernels, 1);
    let found = super::groups::questions(&fused, &["x86_64"], between, &[], &other).unwrap();
    let [group] = &found[..] else { panic!("one pair") };
    assert_eq!((group.positions(0), group.positions(1)), (&[0, 2][..], &[0, 1, 3, 4][..]));
    assert!(group.makes_kernels());
    // Kernels are groups of their own, and the pair is none of them.
    let kernels = super::groups::groups(&fused, &["x86_64"], 1, &[]);
    assert_eq!(kernels.iter().map(|group| &group.kernels[..]).collect::<Vec<_>>(), [&[0, 2][..], &[1]]);
    // Each pair has a library of its own.
    let two = vec![group.clone(), group.clone()];
    assert_eq!(assignments(&two, true), [Assignment(vec![1, 0]), Assignment(vec![0, 1])]);
    // One that makes no other kernels is no question.
    let same = |_: &KernelKey, _: &aoti_compiler::schedule::Setting| Ok::<_, ()>(fused.to_vec());
    assert!(super::groups::questions(&fused, &["x86_64"], between, &[], &same).unwrap().is_empty());
    assert!(
        super::groups::questions(&fused, &["x86_64"], between, &["c".to_owned()], &other).unwrap().is_empty()
    );
    let in_graph = (Decided::InGraph, 1);
    assert!(super::groups::questions(&fused, &["x86_64"], in_graph, &[], &other).unwrap().is_empty());
}

/// Answers to one question are held against each other by what any of them changes.
#[test]
fn several_answers_are_measured_by_what_they_have_not_in_common() {
    let open = |index, key: u8, settings: &[&str]| open(&format!("k{key}"), index, key, settings);
    let run = |keys: &[u8]| -> Vec<OpenKernel> {
        let question = open(None, 99, &["parts 64", "parts 1", "parts 16", "parts 8"]);
        let kernels = keys.iter().enumerate();
        let kernels = kernels.map(|(index, key)| open(Some(index), *key, &SETTINGS[..1]));
        std::iter::once(question).chain(kernels).collect()
    };
    let other = |_: &KernelKey, setting: &aoti_compiler::schedule::Setting| {
        Ok::<_, ()>(match setting.to_string().as_str() {
            "parts 1" => run(&[7, 3, 5]),
            "parts 16" => run(&[7, 8, 2, 5]),
            // As without a record.
            "parts 8" => run(&[7, 1, 2, 5]),
            other => panic!("{other}"),
        })
    };
    let (all, in_graph) = (run(&[7, 1, 2, 5]), (Decided::InGraph, 1));
    let found = super::groups::questions(&all, &["x86_64"], in_graph, &[], &other).unwrap();
    let [group] = &found[..] else { panic!("one question") };
    assert_eq!(group.tried, [1, 2], "an answer that changes nothing is not tried");
    let positions: Vec<&[usize]> = (0..3).map(|way| group.positions(way)).collect();
    assert_eq!(positions, [&[1, 2][..], &[1], &[1, 2]], "what one of them changes is measured with all");
    // What an answer only leaves out has no time of its own.
    let fewer = |_: &KernelKey, _: &aoti_compiler::schedule::Setting| Ok::<_, ()>(run(&[7, 5]));
    let found = super::groups::questions(&all, &["x86_64"], in_graph, &[], &fewer).unwrap();
    assert_eq!((found[0].positions(0), found[0].positions(1)), (&[0, 1, 2, 3][..], &[0, 1][..]));
}
