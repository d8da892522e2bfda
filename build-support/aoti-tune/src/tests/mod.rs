//! What a search tries and what wins, over a device that is a table of times.

mod groups;
mod placement;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use aoti_compiler::compile::{OpenKernel, TuningCandidate};
use aoti_compiler::schedule::{TuningKey, TuningStage};

use super::bench::{Bench, Fault, LibraryId, Sample};
use super::groups::{Assignment, Group, assignments};
use super::outcome::{Knowledge, Outcome};
use super::search::{Listener, Search};
use crate::error::Error;

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

    fn make(&mut self, assignments: &[Assignment]) -> Result<Vec<Result<LibraryId, Fault>>, Error> {
        let mut make = |assignment: &Assignment| {
            self.made.push(assignment.clone());
            self.checks.push(0);
            let id = LibraryId(self.made.len() - 1);
            let is_broken = self.doing(id).iter().any(|(_, does)| matches!(does, IsNoSource));
            if is_broken { Err(fault("does not compile", None, id)) } else { Ok(id) }
        };
        Ok(assignments.iter().map(&mut make).collect())
    }

    fn check(&mut self, library: LibraryId) -> Result<Result<(), Fault>, Error> {
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
    ) -> Result<Result<Vec<Vec<Sample>>, Fault>, Error> {
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

fn group(number: usize, candidates: usize) -> Group {
    let way = |way: usize| TuningCandidate {
        setting: SETTINGS[way].parse().unwrap(),
        cost: 1.0 + way as f64 / 10.0,
        parts: vec![],
        is_shared: false,
        shares: None,
    };
    Group {
        key: TuningKey::parse(&format!("{number:016x}")).unwrap(),
        sizes: vec![],
        name: format!("k{number}"),
        kernels: vec![number],
        others: vec![],
        candidates: (0..candidates).map(way).collect(),
        tried: (1..candidates).collect(),
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
    let outcome = Search::new(&groups, before, &mut stub, &heard, (Duration::from_secs(2), None)).run();
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
        group.others = vec![vec![number]; group.candidates.len() - 1];
    }
    let mut stub = Stub::new(does, true);
    let heard = Heard::default();
    let search = Search::new(&groups, vec![None; 2], &mut stub, &heard, (Duration::from_secs(2), None));
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

/// Nothing is written with which the whole was slower, whatever its kernels gain by themselves.
#[test]
fn whole_runs_that_are_slower_refute_what_kernels_gain() {
    let found = |does: &[&[Does]], later: f64, before: [Option<usize>; 2]| {
        let groups: Vec<Group> = does.iter().enumerate().map(|(k, does)| group(k, does.len())).collect();
        let does = does.iter().map(|does| does.to_vec()).collect();
        let mut stub = Stub { later, ..Stub::new(does, true) };
        let before = before.to_vec();
        let found =
            Search::new(&groups, before, &mut stub, &Heard::default(), (Duration::from_secs(2), None)).run();
        found.unwrap_or_else(|failure| panic!("{failure:?}")).winners
    };
    let winners = |does: &[&[Does]], later: f64| found(does, later, [None; 2]);
    let small: [&[Does]; 2] = [&[Takes(1000.0), Takes(1000.0)], &[Takes(10.0), Takes(9.0)]];
    assert_eq!(winners(&small, 0.0), Assignment(vec![0, 1]));
    assert_eq!(winners(&small, 0.005), Assignment(vec![0, 0]), "1 us less in a kernel, 4 us more in all");
    let large: [&[Does]; 2] = [&[Takes(100.0), Takes(100.0)], &[Takes(100.0), Takes(90.0)]];
    assert_eq!(winners(&large, 0.03), Assignment(vec![0, 1]));
    assert_eq!(winners(&large, 0.06), Assignment(vec![0, 0]), "5 % less would show");
    let recorded = |later: f64| found(&large, later, [None, Some(1)]);
    assert_eq!(recorded(0.06), Assignment(vec![0, 1]), "no more than another day would bring");
    assert_eq!(recorded(0.2), Assignment(vec![0, 0]));
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
    fn new(candidates: usize, at_once: usize, [making, checking]: [u64; 2]) -> Slow {
        let does = vec![(0..candidates).map(|way| Takes(10.0 - way as f64)).collect()];
        let stub = Stub::new(does, false);
        let [making, checking] = [making, checking].map(Duration::from_millis);
        Slow { stub, at_once, making, checking, parts: vec![] }
    }

    /// Searches with so many milliseconds; gives what it found, and how many times as long it took.
    fn search(&mut self, budget: u64) -> (Outcome, f64) {
        let (groups, heard, begun) =
            (vec![group(0, self.stub.does[0].len())], Heard::default(), Instant::now());
        let budget = Duration::from_millis(budget);
        let outcome = Search::new(&groups, vec![None], self, &heard, (budget, None)).run();
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
    fn make(&mut self, assignments: &[Assignment]) -> Result<Vec<Result<LibraryId, Fault>>, Error> {
        self.parts.push(assignments.len());
        std::thread::sleep(self.making);
        self.stub.make(assignments)
    }
    fn check(&mut self, library: LibraryId) -> Result<Result<(), Fault>, Error> {
        std::thread::sleep(self.checking);
        self.stub.check(library)
    }
    fn time(&mut self, ids: &[LibraryId], rounds: usize) -> Result<Result<Vec<Vec<Sample>>, Fault>, Error> {
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
