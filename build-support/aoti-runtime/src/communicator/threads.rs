//! Ranks that are threads of one process.

use super::reduce::{OwnedKind, Part, result};
use super::{Collective, Communicator, Memory};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long a rank waits for the others, where nobody says.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// A group of ranks that are threads of this process. Each has a [`ThreadRank`], for a model of its own.
///
/// Reductions are made in the order of the ranks, so every run has the same bits. A rank that is dropped, or whose run fails,
/// breaks the group: whoever waits for it gets an error, and so does every later collective.
#[derive(Clone, Debug)]
pub struct ThreadGroup {
    ranks: usize,
    limit: Duration,
}

impl ThreadGroup {
    /// A group of so many ranks, at least one.
    pub fn new(ranks: usize) -> ThreadGroup {
        ThreadGroup { ranks: ranks.max(1), limit: TIME_LIMIT }
    }

    /// How long ranks wait for the others before they get an error; a minute by default.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> ThreadGroup {
        self.limit = limit;
        self
    }

    /// Its ranks, in their order.
    pub fn into_ranks(self) -> Vec<ThreadRank> {
        let state = State { round: 0, parts: vec![None; self.ranks], published: Arc::new([]), broken: None };
        let shared =
            Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new(), limit: self.limit });
        (0..self.ranks).map(|rank| ThreadRank { rank, shared: Arc::clone(&shared) }).collect()
    }
}

/// One rank of a [`ThreadGroup`].
#[derive(Debug)]
pub struct ThreadRank {
    rank: usize,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    limit: Duration,
}

#[derive(Debug)]
struct State {
    /// Collectives in which all have met.
    round: u64,
    /// Who has come to the next one, and with what.
    parts: Vec<Option<Part>>,
    /// What the ranks came with to the last one. The next is not complete before each of them has taken it.
    published: Arc<[Part]>,
    /// Why no more will.
    broken: Option<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self, state: &mut State, reason: String) {
        state.broken.get_or_insert(reason);
        self.changed.notify_all();
    }

    /// Waits until all ranks have come, and gives what they came with.
    fn meet(&self, rank: usize, part: Part) -> Result<Arc<[Part]>, String> {
        let deadline = Instant::now() + self.limit;
        let what = format!("{} of group `{}`", part.kind.borrowed().name(), part.group);
        let mut state = self.lock();
        if let Some(reason) = &state.broken {
            return Err(reason.clone());
        }
        let round = state.round;
        state.parts[rank] = Some(part);
        if state.parts.iter().all(Option::is_some) {
            state.published = state.parts.iter_mut().filter_map(Option::take).collect();
            state.round += 1;
            self.changed.notify_all();
            return Ok(Arc::clone(&state.published));
        }
        loop {
            if state.round != round {
                return Ok(Arc::clone(&state.published));
            }
            if let Some(reason) = &state.broken {
                return Err(reason.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let missing = state.parts.iter().position(Option::is_none).unwrap_or_default();
                let reason = format!("rank {missing} did not come to {what} within {:?}", self.limit);
                self.end(&mut state, reason.clone());
                return Err(reason);
            }
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl ThreadRank {
    /// Its number.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Does this rank's part.
    pub(super) fn take_part(&self, part: Part, output: &mut [u8]) -> Result<(), String> {
        let parts = self.shared.meet(self.rank, part)?;
        result(&parts, self.rank, output).inspect_err(|reason| self.end(reason.clone()))
    }

    pub(super) fn ranks(&self) -> usize {
        self.shared.lock().parts.len()
    }

    fn end(&self, reason: String) {
        let mut state = self.shared.lock();
        self.shared.end(&mut state, reason);
    }
}

/// A rank's part in memory of the processor, with the place for its result.
pub(super) fn part_of(collective: Collective<'_>, ranks: usize) -> Result<(Part, &mut [u8]), String> {
    let Collective { kind, dtype, group, ranks: wanted, memory } = collective;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != ranks) {
        return Err(format!("the program is for {wanted} ranks, and group `{group}` has {ranks}"));
    }
    match memory {
        Memory::Processor { input, output } => {
            let kind = OwnedKind::of(kind);
            Ok((Part { kind, dtype, group: group.to_owned(), input: input.to_vec() }, output))
        }
        Memory::Device { device, .. } => Err(format!(
            "these ranks exchange what is in memory of the processor, and the model runs on {device}"
        )),
    }
}

impl Communicator for ThreadRank {
    fn exchange(&self, collective: Collective<'_>) -> Result<(), String> {
        let (part, output) =
            part_of(collective, self.ranks()).inspect_err(|reason| self.end(reason.clone()))?;
        self.take_part(part, output)
    }

    fn failed(&self, reason: &str) {
        self.end(format!("rank {} failed: {reason}", self.rank));
    }
}

impl Drop for ThreadRank {
    fn drop(&mut self) {
        self.end(format!("rank {} has left the group", self.rank));
    }
}
