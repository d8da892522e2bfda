//! Follows the memory of a run for given sizes: whose values each byte holds, from step to step.
//!
//! A kernel that writes a buffer takes over its bytes from every other buffer that was there. What is read must still be
//! there: so a buffer that nothing has written, and two buffers that are alive at once in one place, are the same mistake.

use super::sizes::{Sizes, runs};
use crate::kernels::Scratch;
use crate::loops::{BufferId, KernelId, KernelKind, Storage};
use crate::runplan::{
    Action, Allocate, Assert, Call, Condition, Exchange, Launch, LaunchPart, Place, Pointer, Read, RunPlan,
};
use crate::schedule::Schedule;
use crate::schedule::memory::{LIBRARY_BYTES, LateId, REPORT_BYTES};
use std::collections::{BTreeMap, BTreeSet};

/// What is wrong in runs of some sizes.
pub(super) fn verify(schedule: &Schedule, run: &RunPlan) -> Vec<String> {
    let mut findings = vec![];
    for sizes in runs(&schedule.program, run) {
        let mut walk = Walk { schedule, run, sizes: &sizes, state: State::default(), findings: vec![] };
        walk.actions(&run.actions);
        walk.outputs_are_written();
        findings.append(&mut walk.findings);
        if !findings.is_empty() {
            break;
        }
    }
    // Each pass over a loop finds the same.
    let mut seen = BTreeSet::new();
    findings.retain(|finding| seen.insert(finding.clone()));
    findings
}

/// A piece of memory of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Space {
    Arena,
    Late(LateId),
    Output(usize),
}

/// Bytes of a piece of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Region {
    space: Space,
    start: i64,
    end: i64,
}

/// What memory holds at one point of a run.
#[derive(Clone, Default)]
struct State {
    /// The end and the buffer of each region that holds values, by where it begins. They do not overlap.
    holds: BTreeMap<(Space, i64), (i64, BufferId)>,
    /// Buffers whose values are gone, and the kernel that wrote there.
    lost: BTreeMap<BufferId, KernelId>,
    /// What is allocated.
    allocated: BTreeSet<LateId>,
}

impl State {
    /// What both of two ways to get here leave.
    fn both(mut self, other: &State) -> State {
        self.holds.retain(|key, own| other.holds.get(key) == Some(own));
        self.allocated.retain(|late| other.allocated.contains(late));
        self.lost.extend(&other.lost);
        self
    }
}

struct Walk<'a> {
    schedule: &'a Schedule,
    run: &'a RunPlan,
    sizes: &'a Sizes,
    state: State,
    findings: Vec<String>,
}

impl Walk<'_> {
    fn find(&mut self, finding: String) {
        self.findings.push(finding);
    }

    fn actions(&mut self, actions: &[Action]) {
        actions.iter().for_each(|action| self.action(action));
    }

    fn action(&mut self, action: &Action) {
        match action {
            Action::Call(call) => self.kernel(call, LaunchPart::Whole),
            Action::Launch(Launch { call, part, product, .. }) => {
                if let Some(product) = product {
                    self.workspace(&product.workspace, Some(LIBRARY_BYTES), "a library");
                }
                self.kernel(call, *part);
            }
            Action::Exchange(Exchange { kernel, .. }) => self.touches(*kernel),
            Action::Read(Read { from, symbol, .. }) => self.element(from, &format!("the size {symbol}")),
            Action::Assert(Assert { condition, .. }) => match condition {
                Condition::Holds(flag) => self.element(flag, "an assertion"),
                Condition::Sizes(_) => {}
                Condition::Succeeded(report) => self.workspace(report, Some(REPORT_BYTES), "a report"),
            },
            Action::Allocate(own) => self.allocate(own),
            Action::Free(late) => {
                if !self.state.allocated.remove(late) {
                    self.find(format!("{late} is freed, which is not allocated"));
                }
                self.state.holds.retain(|(space, _), _| *space != Space::Late(*late));
            }
            Action::If { predicate, then, otherwise } => {
                self.element(predicate, "a branch");
                let before = self.state.clone();
                self.actions(then);
                let after = std::mem::replace(&mut self.state, before);
                self.actions(otherwise);
                self.state = std::mem::take(&mut self.state).both(&after);
            }
            Action::Loop { condition, predicate, body } => {
                self.actions(condition);
                self.element(predicate, "a loop");
                let without = self.state.clone();
                // What the first iteration leaves is what every later one meets.
                self.actions(body);
                self.actions(condition);
                self.element(predicate, "a loop");
                self.actions(body);
                self.actions(condition);
                self.state = std::mem::take(&mut self.state).both(&without);
            }
        }
    }

    fn allocate(&mut self, own: &Allocate) {
        let Allocate { late, bytes, output, .. } = own;
        if !self.state.allocated.insert(*late) && output.is_none() {
            self.find(format!("{late} is allocated twice"));
        }
        let memory = &self.schedule.memory;
        let scratch = memory.late_scratch.iter().filter(|(_, own)| *own == late);
        let kernels: Vec<KernelId> = scratch.map(|(kernel, _)| *kernel).collect();
        let buffers = memory.late.iter().filter(|(_, own)| *own == late);
        let buffers: Vec<BufferId> = buffers.map(|(buffer, _)| *buffer).collect();
        if kernels.iter().any(|kernel| self.schedule.choices[*kernel].scratch != *bytes) {
            self.find(format!("{late} is not as large as the scratch that it is"));
        }
        let given = self.sizes.of(&bytes.shared);
        for buffer in buffers {
            if given.zip(self.bytes(buffer)).is_some_and(|(given, bytes)| given < bytes) {
                self.find(format!("{late} is smaller than {buffer}"));
            }
        }
    }

    /// What a kernel is given beside buffers, and then what it does to these.
    fn kernel(&mut self, call: &Call, part: LaunchPart) {
        let kernel = &self.schedule.program.kernels[call.kernel];
        let launches = &self.schedule.launches[call.kernel];
        let Scratch { shared, .. } = &self.schedule.choices[call.kernel].scratch;
        if launches.iter().any(|launch| launch.takes_scratch) {
            self.workspace(&call.tensors[0], self.sizes.of(shared), "scratch");
        }
        if matches!(kernel.kind, KernelKind::Extern(_)) {
            self.workspace(&call.tensors[0], Some(REPORT_BYTES), "a report");
        }
        if let Some(late) = call.scratch
            && !self.state.allocated.contains(&late)
        {
            self.find(format!("kernel `{}` has scratch in {late}, which is not allocated", kernel.name));
        }
        // All launches of a kernel together do what it does.
        if matches!(part, LaunchPart::Whole | LaunchPart::Last) {
            self.touches(call.kernel);
        }
    }

    /// What a kernel reads is there, and what it writes is there from now on.
    fn touches(&mut self, id: KernelId) {
        let kernel = &self.schedule.program.kernels[id];
        for buffer in kernel.needs() {
            self.reads(&kernel.name, buffer);
        }
        let mut own: Vec<Region> = vec![];
        for buffer in kernel.writes() {
            let Some(region) = self.region(&kernel.name, buffer) else { continue };
            if own.iter().any(|other| {
                other.space == region.space && other.start < region.end && region.start < other.end
            }) {
                self.find(format!(
                    "kernel `{}` writes {buffer} and another buffer in one place",
                    kernel.name
                ));
            }
            own.push(region);
            self.writes(id, buffer, region);
        }
    }

    fn reads(&mut self, name: &str, buffer: BufferId) {
        let Some(Region { space, start, end }) = self.region(name, buffer) else { return };
        if start == end || self.state.holds.get(&(space, start)) == Some(&(end, buffer)) {
            return;
        }
        let finding = match self.state.lost.get(&buffer) {
            Some(by) => {
                let by = &self.schedule.program.kernels[*by].name;
                format!("kernel `{name}` reads {buffer}, over which kernel `{by}` has written")
            }
            None => format!("kernel `{name}` reads {buffer}, which nothing has written"),
        };
        self.find(finding);
    }

    fn writes(&mut self, by: KernelId, buffer: BufferId, Region { space, start, end }: Region) {
        if start == end {
            return;
        }
        let before = self.state.holds.range(..(space, end)).rev();
        let over: Vec<(Space, i64)> = before
            .take_while(|((own, _), (last, _))| *own == space && *last > start)
            .map(|(key, _)| *key)
            .collect();
        for key in over {
            if let Some((_, other)) = self.state.holds.remove(&key)
                && other != buffer
            {
                self.state.lost.insert(other, by);
            }
        }
        self.state.lost.remove(&buffer);
        self.state.holds.insert((space, start), (end, buffer));
    }

    /// The bytes of a buffer that a run computes. `None` where a run finds its values, and where 64 bits do not hold the sizes.
    fn region(&mut self, name: &str, buffer: BufferId) -> Option<Region> {
        let memory = &self.schedule.memory;
        let late = memory.late.get(&buffer).copied();
        if let Some(late) = late.filter(|late| !self.state.allocated.contains(late)) {
            self.find(format!("kernel `{name}` is given {buffer} in {late}, which is not allocated"));
        }
        let bytes = self.bytes(buffer)?;
        let (space, start) = match (self.schedule.program.buffers[buffer].storage, late) {
            (Storage::Temporary, Some(late)) => (Space::Late(late), 0),
            (Storage::Temporary, None) => (Space::Arena, self.sizes.of(memory.offsets.get(&buffer)?)?),
            (Storage::Output(position), _) => (Space::Output(position), 0),
            (
                Storage::Input(_)
                | Storage::State(_)
                | Storage::Generator
                | Storage::Constant(_)
                | Storage::Local { .. },
                _,
            ) => return None,
        };
        let end = start.checked_add(bytes)?;
        if space == Space::Arena
            && (start < 0 || self.sizes.of(&memory.arena_bytes).is_some_and(|last| end > last))
        {
            self.find(format!("{buffer} of kernel `{name}` ends behind the arena"));
        }
        Some(Region { space, start, end })
    }

    fn bytes(&self, buffer: BufferId) -> Option<i64> {
        let buffer = &self.schedule.program.buffers[buffer];
        let size = i64::try_from(buffer.dtype.size()).ok()?;
        buffer.shape.iter().try_fold(size, |bytes, size| bytes.checked_mul(self.sizes.of(size)?))
    }

    /// One element that a run reads itself.
    fn element(&mut self, pointer: &Pointer, by: &str) {
        let (space, start) = match &pointer.place {
            Place::Arena(offset) => (Space::Arena, self.sizes.of(offset)),
            Place::Late(late) => (Space::Late(*late), Some(0)),
            Place::Output(position) => (Space::Output(*position), Some(0)),
            Place::Input(_) | Place::State(_) | Place::Generator | Place::Weights(_) | Place::Expanded(_) => {
                return;
            }
        };
        let start =
            start.zip(self.sizes.of(&pointer.start)).and_then(|(place, start)| place.checked_add(start));
        let Some(start) = start else { return };
        let program = &self.schedule.program;
        let found = self.state.holds.range(..=(space, start)).next_back();
        let is_there = found.is_some_and(|((own, _), (end, buffer))| {
            *own == space && start < *end && program.buffers[*buffer].dtype == pointer.dtype
        });
        if !is_there {
            self.find(format!("{by} is read where nothing has written it"));
        }
    }

    /// Memory behind the arena's buffers, for one kernel after the other.
    fn workspace(&mut self, pointer: &Pointer, bytes: Option<i64>, what: &str) {
        let offset = match &pointer.place {
            Place::Arena(offset) => offset,
            Place::Late(late) if self.state.allocated.contains(late) => return,
            Place::Late(_)
            | Place::Input(_)
            | Place::Output(_)
            | Place::State(_)
            | Place::Generator
            | Place::Weights(_)
            | Place::Expanded(_) => {
                return self.find(format!("{what} is in memory that is not for it"));
            }
        };
        let [buffers, all] =
            [&self.schedule.memory.arena_bytes, &self.run.arena_bytes].map(|own| self.sizes.of(own));
        let ends = || Some(self.sizes.of(offset)?.checked_add(bytes?)? <= all?);
        let begins = || Some(self.sizes.of(offset)? >= buffers?);
        if begins() == Some(false) || ends() == Some(false) {
            self.find(format!("{what} is not within the memory behind the arena's buffers"));
        }
    }

    fn outputs_are_written(&mut self) {
        let program = &self.schedule.program;
        for buffer in &program.outputs {
            let Storage::Output(position) = program.buffers[*buffer].storage else { continue };
            let is_empty = self.bytes(*buffer).is_none_or(|bytes| bytes == 0);
            if !is_empty && !self.state.holds.contains_key(&(Space::Output(position), 0)) {
                self.find(format!("output {position} is never written"));
            }
        }
    }
}
