//! Whether a part of a buffer is free for a temporary buffer from the first use of that on.

use super::super::uses::{Placed, Uses, operands, placed_stages, takes_whole};
use super::{Part, keeps};
use crate::loops::ranges_over;
use crate::loops::{Access, Axis, Effect, Index, Kernel, KernelKind, Program, Stage, Step};
use crate::symbolic::{Expr, Interval, Ranges};

/// Kernels that use the larger buffer while the temporary one is used: each is looked at for each part.
const MOST_USES: usize = 512;

/// A part that may be taken by the temporary buffer, from the first use of that on.
pub(super) struct Place<'a> {
    pub(super) program: &'a Program,
    pub(super) ranges: &'a dyn Ranges,
    pub(super) uses: &'a Uses,
    pub(super) part: &'a Part,
    /// The step that copies.
    pub(super) copy: usize,
}

/// A store to the temporary buffer that would change what the part holds.
struct Change {
    position: usize,
    stage: usize,
    /// The element of the larger buffer.
    access: Access,
    extents: Vec<Interval>,
}

impl Place<'_> {
    pub(super) fn is_free(&self) -> bool {
        let (part, uses) = (self.part, self.uses);
        if uses.is_elsewhere(part.of) || uses.is_elsewhere(part.to) {
            return false;
        }
        let own = uses.positions(part.of);
        let (Some(first), Some(last)) = (own.first().copied(), own.last().copied()) else { return false };
        // Nobody reads a buffer of one use: its stores go anyway.
        if first == last || !own.iter().all(|position| self.own_use_fits(*position, first)) {
            return false;
        }
        let changes = self.changes(own.iter().copied());
        uses.positions(part.to).range(first..=last).count() <= MOST_USES
            && uses.positions(part.to).range(first..=last).all(|position| self.leaves_it(*position, &changes))
    }

    fn kernel(&self, position: usize) -> Option<&Kernel> {
        let Step::Kernel(id) = &self.program.steps[position] else { return None };
        Some(&self.program.kernels[*id])
    }

    /// Whether the temporary buffer is used as it may be: made before it is read, whole when it is copied, and not after.
    fn own_use_fits(&self, position: usize, first: usize) -> bool {
        let Some(kernel) = self.kernel(position) else { return false };
        let writes = kernel.writes().contains(&self.part.of);
        let in_order = if self.part.at_once {
            writes == (position == self.copy) && (position != self.copy || self.stores_once(kernel))
        } else {
            (!writes || position < self.copy)
                && (position != first || (writes && !kernel.reads().contains(&self.part.of)))
        };
        in_order && self.part.can_move(&self.program.buffers, kernel, self.ranges)
    }

    fn stores_once(&self, kernel: &Kernel) -> bool {
        kernel.stages().flat_map(Stage::writes).filter(|buffer| *buffer == self.part.of).count() == 1
    }

    /// What is stored in the temporary buffer and is not what the part held before, in the order of the kernels.
    fn changes(&self, positions: impl Iterator<Item = usize>) -> Vec<Change> {
        let mut changes = Vec::new();
        for (position, kernel) in positions.filter_map(|position| Some((position, self.kernel(position)?))) {
            for (number, (axes, stage)) in placed_stages(kernel).into_iter().enumerate() {
                let bounds = ranges_over(self.ranges, &[&axes], &[]);
                for effect in &stage.effects {
                    let Effect::Store { access, .. } = effect else { continue };
                    if access.buffer != self.part.of {
                        continue;
                    }
                    let moved = self.part.access(&self.program.buffers, access, self.ranges);
                    let access = moved.expect("every use was found to be movable");
                    if !keeps(stage, effect, &access) {
                        let extents = extents(&access, &bounds);
                        changes.push(Change { position, stage: number, access, extents });
                    }
                }
            }
        }
        changes
    }

    /// Whether a kernel, other than for the copy, leaves the part to the temporary buffer.
    fn leaves_it(&self, position: usize, changes: &[Change]) -> bool {
        let Some(kernel) = self.kernel(position) else { return false };
        let to = self.part.to;
        // What is read later is what was copied; what is read before the first change is what was there.
        let changes: Vec<&Change> = changes.iter().filter(|change| change.position <= position).collect();
        let reads_too = position <= self.copy && !changes.is_empty();
        if takes_whole(kernel).contains(&to) && (reads_too || kernel.writes().contains(&to)) {
            return false;
        }
        let mut copies = usize::from(position == self.copy);
        for (number, (axes, stage)) in placed_stages(kernel).into_iter().enumerate() {
            let bounds = ranges_over(self.ranges, &[&axes], &[]);
            let is_apart = |access: &Access| access.buffer != to || self.is_apart(access, &bounds);
            let reads_old = |access: &Access| {
                let read = extents(access, &bounds);
                changes.iter().all(|change| {
                    let own = change.position == position && change.stage == number;
                    are_apart(&read, &change.extents)
                        || (own && change.access == *access && replaces(kernel, &axes, stage, access))
                })
            };
            if reads_too && !stage.loads().all(|(access, _)| is_apart(access) || reads_old(access)) {
                return false;
            }
            for effect in &stage.effects {
                let Effect::Store { access, .. } = effect else { continue };
                if !is_apart(access) {
                    // The copy itself is the one store that may be there.
                    if copies == 0 {
                        return false;
                    }
                    copies -= 1;
                }
            }
        }
        !reads_too || operands(kernel).iter().all(|place| place.operand.buffer != to || self.is_behind(place))
    }

    /// What the part takes of each axis of the larger buffer.
    fn extents(&self) -> impl Iterator<Item = Interval> + '_ {
        let small = &self.program.buffers[self.part.of].shape;
        self.part.axes.iter().map(|(own, begin)| match own {
            None => Interval::point(*begin),
            Some(own) => (&small[*own] + (begin - 1)).interval(self.ranges).hull(Interval::point(*begin)),
        })
    }

    fn is_apart(&self, access: &Access, bounds: &dyn Ranges) -> bool {
        are_apart(&extents(access, bounds), &self.extents().collect::<Vec<_>>())
    }

    /// Whether a matrix lies wholly before or behind the part.
    fn is_behind(&self, place: &Placed) -> bool {
        let large = &self.program.buffers[self.part.to].shape;
        let (mut low, mut high) = (Expr::int(0), Expr::int(0));
        for (axis, taken) in self.extents().enumerate() {
            let stride = Expr::product(&large[axis + 1..]);
            low = &low + &(&stride * taken.min);
            high = &high + &(&stride * taken.max);
        }
        let taken = low.interval(self.ranges).hull(high.interval(self.ranges));
        place.interval(self.ranges).is_some_and(|own| !own.meets(taken))
    }
}

/// What an access touches of each axis of its buffer.
fn extents(access: &Access, bounds: &dyn Ranges) -> Vec<Interval> {
    let extent = |coord: &Index| match coord {
        Index::Expr(coord) => coord.interval(bounds),
        Index::Term(_) => Interval::ALL,
    };
    access.coords.iter().map(extent).collect()
}

fn are_apart(one: &[Interval], other: &[Interval]) -> bool {
    one.len() == other.len() && one.iter().zip(other).any(|(one, other)| !one.meets(*other))
}

/// Whether a stage may read an element that it writes: each position has one of its own, is computed once, and nobody
/// else waits to read there. Templates compute some positions twice; before the stage's loops, members of a team all
/// read what one of them writes.
fn replaces(kernel: &Kernel, axes: &[Axis], stage: &Stage, access: &Access) -> bool {
    let KernelKind::Nest(nest) = &kernel.kind else { return false };
    let is_plain =
        |axis: &Axis| axis.extent.is(1) || access.coords.contains(&Index::Expr(Expr::sym(axis.symbol)));
    let alone = nest.stages.len() == 1 && nest.accumulators.is_empty();
    (alone || !stage.axes.is_empty()) && access.is_direct() && axes.iter().all(is_plain)
}
