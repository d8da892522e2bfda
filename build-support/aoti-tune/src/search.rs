//! Which ways are tried for how long, and which win. Knows no process and no compiler.
//!
//! A way that ends the process, hangs or gives something else is refused by name. Those that are left run by turns, and
//! the slower half of each kernel's ways is dropped from turn to turn as the budget is used up. What wins is run once more,
//! all together, against the first ways: if the whole is slower, nothing wins. Runs count where the threads were near each other
//! (`placement`); a record that there is changes only for what is certain.

use std::time::{Duration, Instant};

use super::bench::{Bench, Fault, LibraryId, Sample};
use super::groups::{Assignment, Group, assignments};
use super::outcome::{Knowledge, Outcome, Whole};
use super::placement::{FEW, PlacementFilter};
use super::statistics::Timing;
use crate::error::Error;

/// The part of the budget that may go by before the last library is made.
const MAKING: f64 = 0.6;
/// The part of the budget that is kept for the winners all together.
const LAST: f64 = 0.12;
/// Turns after which only the better ways are left.
const TURNS: usize = 4;
/// How many times as long as what is measured a round takes.
const UNMEASURED: f64 = 1.5;
/// Runs of each library in a turn.
const ROUNDS: std::ops::RangeInclusive<usize> = FEW..=400;

/// News of a search.
pub trait Listener {
    /// So many of so many libraries are being made.
    fn making(&self, done: usize, all: usize);
    /// A way was refused.
    fn refused(&self, group: &Group, way: usize, reason: &str);
    /// What is known after a turn: the part of the first ways' time that the best take.
    fn turn(&self, turn: usize, left: usize, part: f64);
}

/// A library that is still in the running.
struct Running {
    id: LibraryId,
    assignment: Assignment,
    samples: Vec<Sample>,
}

/// A search over the ways of a model's kernels.
pub struct Search<'a> {
    groups: &'a [Group],
    bench: &'a mut dyn Bench,
    listener: &'a dyn Listener,
    begun: Instant,
    budget: Duration,
    known: Vec<Vec<Knowledge>>,
    /// The ways that were taken before: among equals they win again.
    before: Vec<Option<usize>>,
    /// How long the first library took to open and to check.
    checking: Duration,
    /// Which runs count.
    apart: PlacementFilter,
}

impl<'a> Search<'a> {
    /// With the time that there is, and the least nanoseconds that threads are known to take to begin and end a loop together.
    pub fn new(
        groups: &'a [Group],
        before: Vec<Option<usize>>,
        bench: &'a mut dyn Bench,
        listener: &'a dyn Listener,
        (budget, fork_join): (Duration, Option<f64>),
    ) -> Search<'a> {
        let known = groups.iter().map(|group| vec![Knowledge::Untried; group.candidates.len()]).collect();
        let (begun, checking, apart) = (Instant::now(), Duration::ZERO, PlacementFilter::new(fork_join));
        Search { groups, bench, listener, begun, budget, known, before, checking, apart }
    }

    /// Searches until all is known or the budget is used up.
    ///
    /// # Errors
    /// When the first ways themselves cannot be made and run.
    pub fn run(mut self) -> Result<Outcome, Error> {
        let first = Assignment::first(self.groups);
        let made = self.bench.make(std::slice::from_ref(&first))?.remove(0);
        let id = made.map_err(|fault| faulty(&fault))?;
        let begun = Instant::now();
        self.bench.check(id)?.map_err(|fault| faulty(&fault))?;
        self.checking = begun.elapsed();
        let mut running = vec![Running { id, assignment: first, samples: Vec::new() }];
        self.make_all(&mut running)?;
        self.race(&mut running)?;
        let mut winners = self.winners();
        let mut whole = None;
        while !winners.pairs().is_empty() {
            match self.together(&winners, running[0].id)? {
                Ok(timings) => {
                    whole = timings;
                    if timings.is_some_and(|timings| self.is_refuted(&winners, timings)) {
                        winners = Assignment::first(self.groups);
                    }
                    break;
                }
                Err((group, way)) => {
                    debug_assert!(matches!(self.known[group][way], Knowledge::Refused(_)));
                    winners = self.winners();
                }
            }
        }
        Ok(Outcome { known: self.known, winners, whole, apart: self.apart })
    }

    fn has_time(&self, part: f64) -> bool {
        self.begun.elapsed() < self.budget.mul_f64(part)
    }

    /// Makes and checks libraries for all ways that are tried, as far as time allows, the most promising first.
    fn make_all(&mut self, running: &mut Vec<Running>) -> Result<(), Error> {
        let all = assignments(self.groups, self.bench.times_kernels());
        let mut rest = &all[..];
        let mut each = self.bench.takes_to_make() + self.checking;
        while !rest.is_empty() {
            let left = self.budget.mul_f64(MAKING).saturating_sub(self.begun.elapsed());
            let most = self.bench.at_once().clamp(1, rest.len());
            let (part, others) = rest.split_at(ready(left, each, most));
            if part.is_empty() {
                break;
            }
            self.listener.making(all.len() - rest.len(), all.len());
            let begun = Instant::now();
            let made = self.bench.make(part)?;
            for (assignment, made) in part.iter().zip(made) {
                if let Some(library) = self.admit(assignment.clone(), made)? {
                    running.push(library);
                }
            }
            each = begun.elapsed() / u32::try_from(part.len()).unwrap_or(u32::MAX);
            rest = others;
        }
        Ok(())
    }

    /// Checks a library; what is wrong in it is refused, and the rest is made again.
    fn admit(
        &mut self,
        mut assignment: Assignment,
        mut made: Result<LibraryId, Fault>,
    ) -> Result<Option<Running>, Error> {
        loop {
            let fault = match made {
                Ok(id) => match self.bench.check(id)? {
                    Ok(()) => return Ok(Some(Running { id, assignment, samples: Vec::new() })),
                    Err(fault) => fault,
                },
                Err(fault) => fault,
            };
            let ((group, way), reason) = self.blame(&assignment, &fault)?;
            self.refuse(group, way, &reason);
            assignment.0[group] = 0;
            if assignment.pairs().is_empty() || !self.has_time(1.0 - LAST) {
                return Ok(None);
            }
            made = self.bench.make(std::slice::from_ref(&assignment))?.remove(0);
        }
    }

    fn refuse(&mut self, group: usize, way: usize, reason: &str) {
        self.listener.refused(&self.groups[group], way, reason);
        self.known[group][way] = Knowledge::Refused(reason.to_owned());
    }

    /// Which way of a library is at fault, and what it does. The kernel where it showed is asked first; but what one writes
    /// out of bounds shows in another.
    fn blame(&mut self, assignment: &Assignment, fault: &Fault) -> Result<((usize, usize), String), Error> {
        let (mut suspects, mut reason) = (assignment.pairs(), fault.reason.clone());
        let is_named = |pair: &(usize, usize)| {
            fault.kernel.is_some_and(|kernel| self.groups[pair.0].kernels.contains(&kernel))
        };
        if let Some(position) = suspects.iter().position(is_named) {
            let named = suspects.remove(position);
            if suspects.is_empty() || fault.is_hang || self.faulty(&[named])?.is_some() {
                return Ok((named, reason));
            }
        }
        while suspects.len() > 1 {
            let rest = suspects.split_off(suspects.len() / 2);
            match self.faulty(&suspects)? {
                Some(own) => reason = own.reason,
                None => suspects = rest,
            }
        }
        Ok((suspects.remove(0), reason))
    }

    /// What goes wrong where only these groups have another way than the first.
    fn faulty(&mut self, pairs: &[(usize, usize)]) -> Result<Option<Fault>, Error> {
        let assignment = Assignment::of(self.groups, pairs);
        match self.bench.make(std::slice::from_ref(&assignment))?.remove(0) {
            Ok(id) => Ok(self.bench.check(id)?.err()),
            Err(fault) => Ok(Some(fault)),
        }
    }

    /// Runs libraries by turns, and drops those whose ways have all fallen behind.
    fn race(&mut self, running: &mut Vec<Running>) -> Result<(), Error> {
        let (mut turn, mut run, mut counts) = (0, None, true);
        while turn < TURNS {
            let left = self.budget.mul_f64(1.0 - LAST).saturating_sub(self.begun.elapsed());
            if run.is_some() && left.is_zero() {
                break;
            }
            let share = left.as_secs_f64() * 1e6 / (TURNS - turn) as f64 / running.len() as f64 / UNMEASURED;
            // The first turn finds out how long a run takes; where runs do not count, a few look whether the next do.
            let is_look = !counts;
            let rounds = run.filter(|_| counts).map_or(0, |run: f64| (share / run) as usize);
            counts = self.turn(running, rounds.clamp(*ROUNDS.start(), *ROUNDS.end()))?;
            let samples = running.iter().flat_map(|library| &library.samples);
            run = Some(samples.map(|sample| sample.whole).fold(f64::MIN_POSITIVE, f64::max));
            if is_look || !counts {
                continue;
            }
            turn += 1;
            self.learn(running);
            self.listener.turn(turn, running.len() - 1, self.part());
            let kept = self.kept(turn);
            let is_first = |library: &Running| library.assignment.pairs().is_empty();
            running.retain(|library| {
                is_first(library) || library.assignment.pairs().iter().any(|pair| kept.contains(pair))
            });
            if running.len() == 1 {
                break;
            }
        }
        self.learn(running);
        // Right the first time is not enough.
        let mut others = running.split_off(1);
        while let Some(library) = others.pop() {
            if let Err(fault) = self.bench.check(library.id)? {
                let (group, way) = self.blame_late(&library.assignment, &fault);
                self.refuse(group, way, &fault.reason);
            }
        }
        Ok(())
    }

    /// Runs all by turns; what ends the process meanwhile is refused, and its library made without it. Says whether runs
    /// count, and are enough.
    fn turn(&mut self, running: &mut Vec<Running>, rounds: usize) -> Result<bool, Error> {
        loop {
            let ids: Vec<LibraryId> = running.iter().map(|library| library.id).collect();
            match self.bench.time(&ids, rounds)? {
                Ok(samples) => {
                    self.see(&samples);
                    let counts = samples[0].iter().any(|sample| self.apart.is_near(sample));
                    for (library, own) in running.iter_mut().zip(samples) {
                        // Others may be as many as an hour brings.
                        library.samples.extend(own.into_iter().filter(|sample| self.apart.is_near(sample)));
                    }
                    let is_enough = |library: &Running| !self.apart.near(&library.samples).is_empty();
                    return Ok(counts && running.iter().all(is_enough));
                }
                Err(fault) => {
                    let at = running.iter().position(|library| Some(library.id) == fault.library);
                    let found = match at.filter(|at| *at > 0) {
                        Some(at) => Some((at, fault.clone())),
                        None => self.first_faulty(running)?,
                    };
                    let Some((at, fault)) = found else { return Err(faulty(&fault)) };
                    let mut assignment = running.remove(at).assignment;
                    let (group, way) = self.blame_late(&assignment, &fault);
                    self.refuse(group, way, &fault.reason);
                    assignment.0[group] = 0;
                    if !assignment.pairs().is_empty() && self.has_time(1.0 - LAST) {
                        let made = self.bench.make(std::slice::from_ref(&assignment))?.remove(0);
                        running.extend(self.admit(assignment, made)?);
                    }
                }
            }
        }
    }

    /// Looks where threads were. What was measured while they were far apart, as shows now, is no longer known.
    fn see(&mut self, samples: &[Vec<Sample>]) {
        for own in samples {
            if self.apart.see(own) {
                let timed =
                    self.known.iter_mut().flatten().filter(|known| matches!(known, Knowledge::Timed(_)));
                timed.for_each(|known| *known = Knowledge::Untried);
            }
        }
    }

    /// The first library, beside the very first, that fails by itself: memory that it damaged was that one's.
    fn first_faulty(&mut self, running: &[Running]) -> Result<Option<(usize, Fault)>, Error> {
        for (position, library) in running.iter().enumerate().skip(1) {
            if let Err(fault) = self.bench.check(library.id)? {
                return Ok(Some((position, fault)));
            }
        }
        Ok(None)
    }

    /// Which way is at fault that was right before: the one whose kernel it showed in, else the first of the library.
    fn blame_late(&self, assignment: &Assignment, fault: &Fault) -> (usize, usize) {
        let pairs = assignment.pairs();
        let named = pairs
            .iter()
            .find(|pair| fault.kernel.is_some_and(|kernel| self.groups[pair.0].kernels.contains(&kernel)));
        *named.or(pairs.first()).expect("a library that is not the first has another way for some kernel")
    }

    /// Takes over what the samples say.
    fn learn(&mut self, running: &[Running]) {
        let together = self.bench.times_kernels();
        for library in running {
            let pairs: Vec<(usize, usize)> = library.assignment.0.iter().copied().enumerate().collect();
            let is_first = library.assignment.pairs().is_empty();
            for (group, way) in pairs.into_iter().filter(|(_, way)| is_first || *way != 0) {
                let kernels = self.groups[group].positions(way);
                let of = |sample: &Sample| {
                    if together {
                        kernels.iter().map(|kernel| sample.kernels[*kernel]).sum()
                    } else {
                        sample.whole
                    }
                };
                let samples = self.apart.near(&library.samples);
                let timing = Timing::of(samples.into_iter().map(of).collect());
                let known = &mut self.known[group][way];
                if let (Some(timing), false) = (timing, matches!(known, Knowledge::Refused(_))) {
                    *known = Knowledge::Timed(timing);
                }
            }
        }
    }

    /// The ways of a group that were measured, fastest first.
    fn ranked(&self, group: usize) -> Vec<(usize, Timing)> {
        let timed = |(way, known): (usize, &Knowledge)| match known {
            Knowledge::Timed(timing) => Some((way, *timing)),
            Knowledge::Untried | Knowledge::Refused(_) => None,
        };
        let mut all: Vec<(usize, Timing)> = self.known[group].iter().enumerate().filter_map(timed).collect();
        all.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
        all
    }

    /// The ways that go on after a turn, counted from 1: of each group the better half, and then half of that, but never fewer than two.
    fn kept(&self, turn: usize) -> Vec<(usize, usize)> {
        let of_group = |group: usize| {
            let ranked = self.ranked(group);
            let most = (ranked.len() >> turn).max(2);
            let kept: Vec<(usize, usize)> =
                ranked.into_iter().take(most).map(|(way, _)| (group, way)).collect();
            kept
        };
        (0..self.groups.len()).flat_map(of_group).filter(|(_, way)| *way != 0).collect()
    }

    /// The part of the time of the first ways that the best take.
    fn part(&self) -> f64 {
        let (mut best, mut first) = (0.0, 0.0);
        for (group, known) in self.known.iter().enumerate() {
            if let Knowledge::Timed(timing) = &known[0] {
                first += timing.median;
                best += self.ranked(group).first().map_or(timing.median, |(_, best)| best.median);
            }
        }
        if first > 0.0 { best / first } else { 1.0 }
    }

    /// The winner of each group: the fastest, if it is faster than the first beyond noise; of near equals the one that won
    /// before, so that noise changes no record. What was not measured changes none either.
    fn winners(&self) -> Assignment {
        let winner = |group: usize| {
            let ranked = self.ranked(group);
            let (Some(&(best, timing)), Knowledge::Timed(first)) = (ranked.first(), &self.known[group][0])
            else {
                let is_refused = |way: &usize| matches!(self.known[group][*way], Knowledge::Refused(_));
                return self.before[group].filter(|way| !is_refused(way)).unwrap_or(0);
            };
            let of = |way: usize| ranked.iter().find(|(own, _)| *own == way).map(|(_, timing)| *timing);
            if let Some((before, own)) = self.before[group].and_then(|way| Some((way, of(way)?)))
                && !timing.displaces(own)
                && !first.displaces(own)
            {
                return before;
            }
            if timing.is_faster_than(*first) { best } else { 0 }
        };
        Assignment((0..self.groups.len()).map(winner).collect())
    }

    /// Whether whole runs, of the first ways and of the winners, say that the winners are none: the whole is slower. Those of
    /// before must be so much slower that a record changes.
    fn is_refuted(&self, winners: &Assignment, [first, tuned]: [Timing; 2]) -> bool {
        let is_of_before = |(group, way): &(usize, usize)| self.before[*group] == Some(*way);
        if winners.pairs().iter().all(is_of_before) {
            return first.displaces(tuned);
        }
        tuned.median > first.median
    }

    /// Whole runs of the first library and of one with all winners, by turns; none if no run counts. The error is a way that is
    /// wrong there.
    fn together(
        &mut self,
        winners: &Assignment,
        first: LibraryId,
    ) -> Result<Result<Whole, (usize, usize)>, Error> {
        let made = self.bench.make(std::slice::from_ref(winners))?.remove(0);
        let checked = match made {
            Ok(id) => self.bench.check(id)?.map(|()| id),
            Err(fault) => Err(fault),
        };
        let refused = |search: &mut Self, fault: Fault| {
            let (group, way) = search.blame_late(winners, &fault);
            search.refuse(group, way, &fault.reason);
            Ok(Err((group, way)))
        };
        let id = match checked {
            Ok(id) => id,
            Err(fault) => return refused(self, fault),
        };
        let mut samples = [Vec::new(), Vec::new()];
        // At least two goes; then as long as there is time.
        for go in 0..TURNS * 4 {
            if go > 1 && !self.has_time(1.0) {
                break;
            }
            match self.bench.time(&[first, id], *ROUNDS.start() * 4)? {
                Ok(own) => {
                    self.see(&own);
                    samples.iter_mut().zip(own).for_each(|(all, own)| all.extend(own));
                }
                Err(fault) => return refused(self, fault),
            }
        }
        let timing = |samples: &Vec<Sample>| {
            Timing::of(self.apart.near(samples).into_iter().map(|sample| sample.whole).collect())
        };
        Ok(Ok(timing(&samples[0]).zip(timing(&samples[1])).map(|(first, tuned)| [first, tuned])))
    }
}

/// How many libraries are made next: what cannot be ready in time is not begun. Several that are made at the same time may take
/// as long as one after the other, where weights are large, and are checked one after the other in any case.
fn ready(left: Duration, each: Duration, most: usize) -> usize {
    let count = left.as_secs_f64() / each.as_secs_f64().max(f64::MIN_POSITIVE);
    most.min(count as usize)
}

/// The first ways, which every build takes, cannot be run.
fn faulty(fault: &Fault) -> Error {
    Error::User(format!("without any record the model cannot be measured: {}", fault.reason))
}
