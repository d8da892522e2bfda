//! Plans one arena for all temporary buffers: offsets fixed when the model is compiled, or expressions over its sizes.
//!
//! Buffers of fixed size are placed largest first at the lowest offset where no buffer that is alive at the same time
//! lies (greedy by size, as in Pisarchyk and Lee, "Efficient Memory Management for Deep Neural Net Inference", 2020), and in
//! other orders where that takes more than what is alive at once.
//! If some sizes are known only when the model runs, `symbolic.rs` places all of them. What a kernel writes in the place of what it
//! reads for the last time is one buffer with that (`reuse.rs`). Buffers for which no memory can be set aside are not in the arena
//! (`late.rs`).

mod late;
mod reuse;
mod symbolic;
mod workspace;

pub use late::{Late, LateId, is_late, is_late_scratch, is_of_data};
pub(crate) use workspace::{LIBRARY_BYTES, REPORT_BYTES};

use crate::graph::{SymbolInfo, extremes_of};
use crate::kernels::{Scratch, Selection};
use crate::loops::{BufferId, KernelId, Program, Step, Storage};
use crate::symbolic::{Expr, Ranges, Symbol};
use crate::target::Target;
use cranelift_entity::PrimaryMap;
use std::collections::{BTreeMap, BTreeSet};
use symbolic::Sized;

/// Where temporary buffers lie.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MemoryPlan {
    /// Byte offset of each temporary buffer that is used.
    pub offsets: BTreeMap<BufferId, Expr>,
    /// Bytes of the whole arena.
    pub arena_bytes: Expr,
    /// The same with what lies behind it, for one kernel after the other: scratch on a device, memory of a library, the report of
    /// an error.
    pub total_bytes: Expr,
    /// What kernels need while they run, each once: kernels run one after the other, so the largest is enough.
    pub scratch: BTreeSet<Scratch>,
    /// Temporary buffers and outputs whose memory is allocated during the run.
    pub late: Late<BufferId>,
    /// Kernels whose scratch is.
    pub late_scratch: Late<KernelId>,
}

/// From the first write to the last use, in positions of steps.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LiveRange {
    from: usize,
    to: usize,
}

impl LiveRange {
    fn meets(self, other: LiveRange) -> bool {
        self.from <= other.to && other.from <= self.to
    }

    fn contains(self, other: LiveRange) -> bool {
        self.from <= other.from && other.to <= self.to
    }
}

/// Plans a program's arena, and the scratch of its kernels as they were chosen.
pub fn plan(
    program: &Program,
    choices: &PrimaryMap<KernelId, Selection>,
    ranges: &dyn Ranges,
    target: &Target,
) -> MemoryPlan {
    let Buffers { sized, late, homes } = buffers(program, ranges, target);
    let mut plan = MemoryPlan::default();
    late::number(program, late.into_iter(), choices, ranges, &mut plan);
    plan.arena_bytes = place(&sized, ranges, &mut plan);
    for (id, home) in homes {
        if let Some(late) = plan.late.get(&home).copied() {
            plan.late.insert(id, late);
            continue;
        }
        let offset = plan.offsets[&home].clone();
        plan.offsets.insert(id, offset);
    }
    let early = choices.iter().filter(|(kernel, _)| !plan.late_scratch.contains_key(kernel));
    let scratch = early.map(|(_, choice)| &choice.scratch);
    let largest = |scratch| largest_scratch(&program.symbols, scratch, ranges);
    plan.scratch = scratch.filter(|scratch| !scratch.is_empty()).map(largest).collect();
    plan.total_bytes = workspace::total(program, choices, &plan, (ranges, target));
    plan
}

/// The bytes that are alive at once at the busiest step of a program, where its symbols have these values: no arena is
/// smaller. `None` if a size is unknown.
pub fn least_arena(
    program: &Program,
    ranges: &dyn Ranges,
    target: &Target,
    value_of: &dyn Fn(Symbol) -> Option<i64>,
) -> Option<i64> {
    let Buffers { sized, .. } = buffers(program, ranges, target);
    let fixed = sized.iter().map(|buffer| Some((buffer.id, buffer.live, buffer.bytes.evaluate(value_of)?)));
    Some(alive_at_once(&fixed.collect::<Option<Vec<_>>>()?))
}

/// What needs memory of its own.
struct Buffers {
    /// Temporaries of the arena.
    sized: Vec<Sized>,
    /// Temporaries and outputs that are allocated during the run.
    late: Vec<BufferId>,
    /// For each other temporary the one whose memory it takes over.
    homes: BTreeMap<BufferId, BufferId>,
}

fn buffers(program: &Program, ranges: &dyn Ranges, target: &Target) -> Buffers {
    let alignment = target.alignment();
    let mut live_ranges = live_ranges(program);
    let homes = reuse::share(program, &mut live_ranges, target);
    let (mut sized, mut late) = (Vec::new(), Vec::new());
    for (id, live) in live_ranges {
        let buffer = &program.buffers[id];
        if late::is_late_buffer(program, id, ranges) {
            late.push(id);
            continue;
        }
        if buffer.storage != Storage::Temporary {
            continue;
        }
        // Sizes that are read from data count with their bounds, so that offsets do not move during a run.
        let most: Vec<Expr> = buffer.shape.iter().map(|size| most(&program.symbols, size, ranges)).collect();
        let bytes = &Expr::product(&most) * i64::try_from(buffer.dtype.size()).expect("small");
        sized.push(Sized { id, live, bytes: align(&bytes, alignment, ranges) });
    }
    Buffers { sized, late, homes }
}

/// The most scratch that a kernel needs, over symbols that are known when a run begins.
pub(super) fn largest_scratch(symbols: &[SymbolInfo], scratch: &Scratch, ranges: &dyn Ranges) -> Scratch {
    scratch.map(|bytes| most(symbols, bytes, ranges))
}

/// The largest value of a size, over symbols that are known when a run begins.
pub fn most(symbols: &[SymbolInfo], size: &Expr, ranges: &dyn Ranges) -> Expr {
    let mut mentioned = BTreeSet::new();
    size.collect_symbols(&mut mentioned);
    if !mentioned.iter().any(|symbol| extremes_of(symbols, *symbol).is_some()) {
        return size.clone();
    }
    let extremes = size.extremes(&|symbol| extremes_of(symbols, symbol), ranges);
    // Buffers of what nothing bounds are late; so much memory for anything else is refused when a run begins.
    let most = extremes.map_or(Expr::int(i64::MAX), |extremes| extremes.most);
    most.maximum_in(&Expr::int(0), ranges)
}

fn align(bytes: &Expr, alignment: i64, ranges: &dyn Ranges) -> Expr {
    match bytes.as_int() {
        Some(bytes) => Expr::int(bytes.saturating_add(alignment - 1) / alignment * alignment),
        None => &(bytes + (alignment - 1)).floor_div_in(&Expr::int(alignment), ranges) * alignment,
    }
}

/// Gives each buffer its offset, and the bytes of all.
fn place(buffers: &[Sized], ranges: &dyn Ranges, plan: &mut MemoryPlan) -> Expr {
    let fixed = buffers.iter().map(|buffer| Some((buffer.id, buffer.live, buffer.bytes.as_int()?)));
    if let Some(fixed) = fixed.collect::<Option<Vec<_>>>() {
        return Expr::int(place_fixed(fixed, plan));
    }
    let (offsets, total) = symbolic::place(buffers, ranges);
    plan.offsets.extend(buffers.iter().zip(offsets).map(|(buffer, offset)| (buffer.id, offset)));
    total
}

/// A buffer of fixed size with its life and its bytes.
type Fixed = (BufferId, LiveRange, i64);

/// A key to sort buffers by.
type Order = fn(&Fixed) -> (i64, usize);

/// The orders in which buffers are placed, best first: each fits some programs that the others do not.
const ORDERS: [Order; 4] = [
    |(_, live, bytes)| (-bytes, live.from),
    |(_, live, bytes)| (-bytes.saturating_mul(steps(*live)), live.from),
    |(_, live, bytes)| (-steps(*live), usize::try_from(i64::MAX - bytes).unwrap_or(0)),
    |(_, live, bytes)| {
        (i64::try_from(live.from).unwrap_or(i64::MAX), usize::try_from(i64::MAX - bytes).unwrap_or(0))
    },
];

fn steps(live: LiveRange) -> i64 {
    i64::try_from(live.to - live.from + 1).unwrap_or(i64::MAX)
}

fn place_fixed(mut buffers: Vec<Fixed>, plan: &mut MemoryPlan) -> i64 {
    let needed = alive_at_once(&buffers);
    let mut best: Option<(Vec<(BufferId, i64)>, i64)> = None;
    for order in ORDERS {
        buffers.sort_by_key(|buffer| (order(buffer), buffer.0));
        let (offsets, total) = place_in_order(&buffers);
        if best.as_ref().is_none_or(|(_, least)| total < *least) {
            best = Some((offsets, total));
        }
        if total <= needed {
            break;
        }
    }
    let (offsets, total) = best.unwrap_or_default();
    plan.offsets.extend(offsets.into_iter().map(|(id, offset)| (id, Expr::int(offset))));
    total
}

/// The most bytes that are alive at one step: no plan has less.
fn alive_at_once(buffers: &[Fixed]) -> i64 {
    let end = buffers.iter().map(|(_, live, _)| live.to + 2).max().unwrap_or(0);
    let mut changes = vec![0i64; end];
    for (_, live, bytes) in buffers {
        changes[live.from] = changes[live.from].saturating_add(*bytes);
        changes[live.to + 1] = changes[live.to + 1].saturating_sub(*bytes);
    }
    let alive = changes.into_iter().scan(0i64, |alive, change| {
        *alive = alive.saturating_add(change);
        Some(*alive)
    });
    alive.max().unwrap_or(0)
}

/// Each buffer at the lowest offset where none that is alive at the same time lies.
fn place_in_order(buffers: &[Fixed]) -> (Vec<(BufferId, i64)>, i64) {
    let end = buffers.iter().map(|(_, live, _)| live.to + 1).max().unwrap_or(0);
    let mut placed = Placed::new(end);
    let (mut offsets, mut total) = (Vec::with_capacity(buffers.len()), 0);
    for (id, live, bytes) in buffers.iter().copied() {
        let mut taken = placed.meeting(live);
        taken.sort_unstable();
        let mut offset = 0;
        for (start, size) in taken {
            if bytes.saturating_add(offset) <= start {
                break;
            }
            offset = offset.max(size.saturating_add(start));
        }
        placed.insert(live, (offset, bytes));
        offsets.push((id, offset));
        // So much memory is refused when a run begins.
        total = total.max(bytes.saturating_add(offset));
    }
    (offsets, total)
}

/// What has been placed, found by life: a segment tree over the positions of steps. Asking who is alive during a life
/// costs what the answer is long, so long programs of short lives are planned in linear time.
struct Placed {
    /// Number of leaves, a power of two.
    leaves: usize,
    /// At each node, the (offset, size) of those alive during the whole of its positions, and of no larger node's.
    spans: Vec<Vec<(i64, i64)>>,
    /// At each position, the lives that begin there.
    begins: Vec<Vec<(i64, i64)>>,
    /// At each node, how many begin within it.
    n_begins: Vec<usize>,
}

impl Placed {
    fn new(end: usize) -> Placed {
        let leaves = end.max(1).next_power_of_two();
        Placed {
            leaves,
            spans: vec![Vec::new(); 2 * leaves],
            begins: vec![Vec::new(); leaves],
            n_begins: vec![0; 2 * leaves],
        }
    }

    fn insert(&mut self, live: LiveRange, place: (i64, i64)) {
        let (mut low, mut high) = (live.from + self.leaves, live.to + self.leaves + 1);
        while low < high {
            if low % 2 == 1 {
                self.spans[low].push(place);
                low += 1;
            }
            if high % 2 == 1 {
                high -= 1;
                self.spans[high].push(place);
            }
            (low, high) = (low / 2, high / 2);
        }
        self.begins[live.from].push(place);
        let mut node = live.from + self.leaves;
        while node > 0 {
            self.n_begins[node] += 1;
            node /= 2;
        }
    }

    /// The places of all that are alive at some time of a life: at its beginning, or beginning within it.
    fn meeting(&self, live: LiveRange) -> Vec<(i64, i64)> {
        let mut found = Vec::new();
        let mut node = live.from + self.leaves;
        while node > 0 {
            found.extend(&self.spans[node]);
            node /= 2;
        }
        self.begun(1, (0, self.leaves), (live.from + 1, live.to + 1), &mut found);
        found
    }

    /// Those that begin in `wanted`, of those below a node of the positions `own`.
    fn begun(&self, node: usize, own: (usize, usize), wanted: (usize, usize), found: &mut Vec<(i64, i64)>) {
        if self.n_begins[node] == 0 || own.1 <= wanted.0 || wanted.1 <= own.0 {
            return;
        }
        if own.1 - own.0 == 1 {
            found.extend(&self.begins[own.0]);
            return;
        }
        let middle = own.0.midpoint(own.1);
        self.begun(2 * node, (own.0, middle), wanted, found);
        self.begun(2 * node + 1, (middle, own.1), wanted, found);
    }
}

/// The life of every buffer that some step touches.
fn live_ranges(program: &Program) -> BTreeMap<BufferId, LiveRange> {
    let mut all = LiveRanges::default();
    all.walk(program, &program.steps);
    all.within_loops();
    all.live_ranges
}

/// LiveRanges, as they are found by walking over the steps, and the loops that are met.
#[derive(Default)]
struct LiveRanges {
    position: usize,
    live_ranges: BTreeMap<BufferId, LiveRange>,
    /// The positions of each loop, inner ones first.
    loops: Vec<LiveRange>,
}

impl LiveRanges {
    fn walk(&mut self, program: &Program, steps: &[Step]) {
        for step in steps {
            self.position += 1;
            match step {
                Step::Kernel(id) => {
                    let kernel = &program.kernels[*id];
                    for buffer in kernel.reads().into_iter().chain(kernel.writes()) {
                        self.touch(buffer);
                    }
                }
                Step::Read { buffer, .. } | Step::Assert(buffer, _) => self.touch(*buffer),
                Step::Require(_) => {}
                Step::If { predicate, then, otherwise } => {
                    self.touch(*predicate);
                    self.walk(program, then);
                    self.walk(program, otherwise);
                }
                Step::Loop { condition, predicate, body } => {
                    let from = self.position;
                    self.walk(program, condition);
                    self.position += 1;
                    self.touch(*predicate);
                    self.walk(program, body);
                    self.position += 1;
                    self.loops.push(LiveRange { from, to: self.position });
                }
            }
        }
    }

    fn touch(&mut self, buffer: BufferId) {
        let at = self.position;
        let live = self.live_ranges.entry(buffer).or_insert(LiveRange { from: at, to: at });
        live.to = at;
    }

    /// What is touched inside and outside of a loop lives as long as the loop: an iteration reads what an earlier one left. What
    /// only the loop touches holds nothing before the first iteration, which writes what it reads, as every later one does, so it
    /// lives within an iteration.
    fn within_loops(&mut self) {
        for own in &self.loops {
            for live in self.live_ranges.values_mut().filter(|live| live.meets(*own) && !own.contains(**live))
            {
                *live = LiveRange { from: live.from.min(own.from), to: live.to.max(own.to) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cranelift_entity::EntityRef;

    fn live(from: usize, to: usize) -> LiveRange {
        LiveRange { from, to }
    }

    fn by_size(buffers: &[Fixed]) -> Vec<Fixed> {
        let mut sorted = buffers.to_vec();
        sorted.sort_by_key(|buffer| (ORDERS[0](buffer), buffer.0));
        sorted
    }

    #[test]
    fn buffers_alive_together_do_not_overlap() {
        let live_ranges = [live(0, 2), live(1, 3), live(3, 5), live(4, 6), live(0, 6), live(2, 2)];
        let sizes = [128, 64, 128, 256, 64, 192];
        let buffers: Vec<_> = (0..6).map(|k| (BufferId::new(k), live_ranges[k], sizes[k])).collect();
        let mut plan = MemoryPlan::default();
        let total = place_fixed(buffers, &mut plan);
        let at = |k: usize| plan.offsets[&BufferId::new(k)].as_int().expect("fixed");
        for a in 0..6 {
            assert!(at(a) % 64 == 0 && at(a) + sizes[a] <= total);
            for b in 0..a {
                let apart = at(a) + sizes[a] <= at(b) || at(b) + sizes[b] <= at(a);
                assert!(apart || !live_ranges[a].meets(live_ranges[b]), "{a} and {b} overlap");
            }
        }
        assert!(total < sizes.iter().sum::<i64>(), "something is reused");
    }

    #[test]
    fn another_order_is_tried_where_the_largest_first_leave_gaps() {
        let live_ranges = [live(4, 5), live(1, 5), live(1, 2), live(0, 1), live(4, 4)];
        let sizes = [64, 192, 192, 192, 256];
        let buffers: Vec<_> = (0..5).map(|k| (BufferId::new(k), live_ranges[k], sizes[k])).collect();
        assert_eq!(place_in_order(&by_size(&buffers)).1, 640);
        assert_eq!(place_fixed(buffers.clone(), &mut MemoryPlan::default()), 576);
    }

    #[test]
    fn more_memory_than_there_is_is_the_most_there_can_be() {
        let buffers = (0..3).map(|k| (BufferId::new(k), live(0, 1), i64::MAX / 2)).collect();
        assert_eq!(place_fixed(buffers, &mut MemoryPlan::default()), i64::MAX);
    }

    #[test]
    fn what_is_alive_during_a_life_is_found_wherever_it_begins() {
        let live_ranges =
            [live(0, 9), live(3, 3), live(2, 4), live(5, 9), live(4, 6), live(9, 9), live(1, 2)];
        let mut placed = Placed::new(10);
        for (k, own) in live_ranges.iter().enumerate() {
            placed.insert(*own, (i64::try_from(k).expect("few"), 0));
        }
        for from in 0..10 {
            for to in from..10 {
                let mut found: Vec<i64> =
                    placed.meeting(live(from, to)).iter().map(|place| place.0).collect();
                found.sort_unstable();
                let wanted: Vec<i64> = (0..7)
                    .filter(|k| live_ranges[usize::try_from(*k).expect("small")].meets(live(from, to)))
                    .collect();
                assert_eq!(found, wanted, "{from}..={to}");
            }
        }
    }
}
