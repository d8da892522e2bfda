//! Checks what a kernel reads of the buffers that it writes itself. A finding is a bug of the compiler, never of a model.
//!
//! * Each element of a row that a stage reads was written, at the same position of the outer loops, by an earlier stage.
//! * Positions that may run in any order do not read from other buffers what another position writes.
//! * A stage, which reads before it writes, writes no element that it reads, other than in the very place of it.
//!
//! An extent of one proves nothing here, and neither does an index that is read from data: what such an index may be is any
//! position that its check lets pass. Where a buffer has no coordinates any more, its offsets are looked at.

use super::cover::Cover;
use super::{
    Access, Axis, Effect, Guard, Index, Kernel, KernelClass, Nest, Program, Stage, Storage, Term, TermId,
    guard,
};
use crate::graph::Combine;
use crate::symbolic::{Expr, Extremes, Interval, RangeTable, Ranges, Symbol};

/// Everything that is wrong, one sentence each.
pub(crate) fn verify(program: &Program) -> Vec<String> {
    let mut sizes = RangeTable::default();
    for (index, symbol) in program.symbols.iter().enumerate() {
        sizes.set(Symbol::size(u32::try_from(index).expect("symbols are few")), symbol.range);
    }
    let mut findings = Vec::new();
    for kernel in program.kernels.values() {
        let found =
            loops_of(kernel).into_iter().flat_map(|own| Flow { program, sizes: &sizes, own }.findings());
        findings.extend(found.map(|finding| format!("kernel `{}`: {finding}", kernel.name)));
    }
    findings
}

/// Stages that run one after the other at each position of loops.
struct Loops<'k> {
    axes: &'k [Axis],
    stages: &'k [Stage],
    serial: bool,
}

fn loops_of(kernel: &Kernel) -> Vec<Loops<'_>> {
    fn of_nest(nest: &Nest) -> Loops<'_> {
        Loops { axes: &nest.axes, stages: &nest.stages, serial: nest.serial }
    }
    fn of_stage<'k>(axes: &'k [Axis], stage: &'k Stage) -> Loops<'k> {
        Loops { axes, stages: std::slice::from_ref(stage), serial: false }
    }
    match kernel.kind.class() {
        KernelClass::Loops(nest) => vec![of_nest(nest)],
        KernelClass::Contraction { axes, epilogue, rows } => {
            std::iter::once(of_stage(axes, epilogue)).chain(rows.map(of_nest)).collect()
        }
        // Scores are stored nowhere.
        KernelClass::Attention(own) => vec![of_stage(&own.axes, &own.stages[1])],
        KernelClass::Whole => vec![],
    }
}

struct Flow<'a> {
    program: &'a Program,
    sizes: &'a RangeTable,
    own: Loops<'a>,
}

/// An element that a stage reads or writes.
#[derive(Clone, Copy)]
struct Touch<'a> {
    stage: usize,
    access: &'a Access,
    /// Where one does not hold, nothing is touched.
    guards: &'a [Guard],
    combine: Combine,
}

impl<'a> Flow<'a> {
    fn findings(&self) -> Vec<String> {
        let (loads, stores) = (self.loads(), self.stores());
        let mut findings = Vec::new();
        for load in &loads {
            let own: Vec<Touch<'_>> =
                stores.iter().filter(|store| store.access.buffer == load.access.buffer).copied().collect();
            let buffer = load.access.buffer;
            if self.program.buffers[buffer].storage.is_local() {
                if !self.is_written(load, &own) {
                    let stage = load.stage;
                    findings
                        .push(format!("stage {stage} reads of the row {buffer} what is not written before"));
                }
            } else if !self.own.serial && !own.iter().all(|store| self.is_in_order(load, store)) {
                findings.push(format!("it may read of {buffer} what another position writes"));
            }
        }
        findings
    }

    /// What is loaded, and what is met by stores that combine.
    fn loads(&self) -> Vec<Touch<'a>> {
        let stages = self.own.stages.iter().enumerate();
        let loads = stages.flat_map(|(stage, own)| {
            own.loads().map(move |(access, guards)| Touch { stage, access, guards, combine: Combine::Set })
        });
        let met = self.stores().into_iter().filter(|store| {
            store.combine != Combine::Set && self.program.buffers[store.access.buffer].storage.is_local()
        });
        loads.chain(met).collect()
    }

    fn stores(&self) -> Vec<Touch<'a>> {
        let stages = self.own.stages.iter().enumerate();
        let stores = stages.flat_map(|(stage, own)| {
            own.effects.iter().filter_map(move |effect| match effect {
                Effect::Store { access, combine, .. } => {
                    Some(Touch { stage, access, guards: &[], combine: *combine })
                }
                Effect::Accumulate { .. } => None,
            })
        });
        stores.collect()
    }

    /// Whether earlier stages have written at this position what is read of a row.
    fn is_written(&self, load: &Touch<'_>, stores: &[Touch<'_>]) -> bool {
        let Storage::Local { outer } = self.program.buffers[load.access.buffer].storage else { return true };
        let earlier = stores.iter().filter(|store| {
            store.stage < load.stage && store.combine == Combine::Set && store.access.is_direct()
        });
        let mut cover = Cover::default();
        for store in earlier {
            if self.same_inner_element(load, store) {
                return true;
            }
            cover.add(&store.access.offset, &self.own.stages[store.stage].axes);
        }
        let shape = &self.program.buffers[load.access.buffer].shape;
        let length = Expr::product(shape.get(outer..).unwrap_or_default()).as_int();
        // Every access is within its buffer, and that is all that an index from data tells.
        let own = self.reach(load);
        let own = Interval::new(own.min.max(0), length.map_or(own.max, |length| own.max.min(length - 1)));
        cover.holds(own)
    }

    /// Whether both touch one element where their inner loops are at the same positions.
    fn same_inner_element(&self, one: &Touch<'_>, other: &Touch<'_>) -> bool {
        let (from, to) = (&self.own.stages[one.stage].axes, &self.own.stages[other.stage].axes);
        if from.len() != to.len() || from.iter().zip(to).any(|(a, b)| a.extent != b.extent) {
            return false;
        }
        let renamed = |symbol: Symbol| {
            let position = from.iter().position(|axis| axis.symbol == symbol)?;
            Some(Expr::sym(to[position].symbol))
        };
        let mut moved = one.access.clone();
        moved.substitute(&renamed, &self.table(other.stage));
        moved.is_same_element(other.access)
    }

    /// Whether what is read of a buffer is what that position itself, or nobody, writes there.
    fn is_in_order(&self, load: &Touch<'_>, store: &Touch<'_>) -> bool {
        if self.are_apart(load, store) {
            return true;
        }
        let positions = self.own.axes.iter().filter(|axis| !axis.extent.is(1));
        if load.stage != store.stage {
            return self.of_one_position(load, store);
        }
        let inner = self.own.stages[load.stage].axes.iter().filter(|axis| !axis.extent.is(1));
        store.combine == Combine::Set
            && load.access.is_same_element(store.access)
            && positions.chain(inner).all(|axis| distinguishes(store.access, axis))
    }

    fn table(&self, stage: usize) -> RangeTable {
        let mut table = self.sizes.clone();
        for axis in self.own.axes.iter().chain(&self.own.stages[stage].axes) {
            table.set_extent(axis.symbol, axis.extent.clone());
        }
        table
    }

    /// All offsets of an access, as numbers.
    fn reach(&self, touch: &Touch<'_>) -> Interval {
        let Some(Offsets { direct, more, table }) = self.offsets(touch) else { return Interval::ALL };
        let (direct, more) = (direct.interval(&table), more.interval(&table));
        Interval::new(direct.min, direct.max.saturating_add(more.max.max(0)))
    }

    /// Whether two accesses never touch the same element.
    fn are_apart(&self, one: &Touch<'_>, other: &Touch<'_>) -> bool {
        let (a, b) = (self.table(one.stage), self.table(other.stage));
        let apart = |(x, y): (&Index, &Index)| match (x, y) {
            (Index::Expr(x), Index::Expr(y)) => !x.interval(&a).meets(y.interval(&b)),
            (Index::Term(_), _) | (_, Index::Term(_)) => false,
        };
        let coords = one.access.coords.len() == other.access.coords.len()
            && one.access.coords.iter().zip(&other.access.coords).any(apart);
        coords || !self.reach(one).meets(self.reach(other)) || self.offsets_are_apart(one, other)
    }

    /// Whether the offsets of two accesses are never equal, for sizes that are known only when the model runs.
    fn offsets_are_apart(&self, one: &Touch<'_>, other: &Touch<'_>) -> bool {
        self.both_offsets(one, other).iter().any(|offsets| self.never_meet(offsets, self.own.axes))
    }

    /// Whether two offsets are never equal: one is always the larger, or they only meet at one position of an axis, and what is
    /// left of them never meets.
    fn never_meet(&self, offsets: &[Offsets; 2], axes: &[Axis]) -> bool {
        let bounds = || Some([offsets[0].bounds()?, offsets[1].bounds()?]);
        let Some([a, b]) = bounds() else { return false };
        if self.is_less(&a.most, &b.least) || self.is_less(&b.most, &a.least) {
            return true;
        }
        axes.iter().enumerate().any(|(position, axis)| {
            let rests = self.at_one_position(offsets, axis);
            rests.is_some_and(|rests| self.never_meet(&rests, &axes[position + 1..]))
        })
    }

    /// What is left of two offsets without an axis, if they are only equal where both are at one position of it: a step of the
    /// axis is larger than what else there is.
    fn at_one_position(&self, offsets: &[Offsets; 2], axis: &Axis) -> Option<[Offsets; 2]> {
        let ((step, one), (other_step, other)) = (offsets[0].without(axis)?, offsets[1].without(axis)?);
        let is_only = step == other_step && self.are_nearer(&one, &other, &step)?;
        is_only.then_some([one, other])
    }

    /// Whether two offsets always differ by less than a step.
    fn are_nearer(&self, one: &Offsets, other: &Offsets, step: &Expr) -> Option<bool> {
        let (a, b) = (one.bounds()?, other.bounds()?);
        let is_short = |most: &Expr, least: &Expr| self.is_less(&(most - least), step);
        Some(is_short(&a.most, &b.least) && is_short(&b.most, &a.least))
    }

    /// The offsets of two accesses, as they stand and with guarded coordinates as axes.
    fn both_offsets(&self, one: &Touch<'_>, other: &Touch<'_>) -> Vec<[Offsets; 2]> {
        let Some(plain) = self.offsets(one).zip(self.offsets(other)) else { return vec![] };
        let guarded = [one, other].iter().any(|touch| !touch.guards.is_empty());
        let inside = guarded.then(|| Some((self.inside(one, &plain.0)?, self.inside(other, &plain.1)?)));
        let ways = std::iter::once(plain).chain(inside.flatten());
        ways.filter_map(|(a, b)| self.meeting(one, other, [a, b])).collect()
    }

    /// The offsets where the guards hold.
    fn inside(&self, touch: &Touch<'_>, offsets: &Offsets) -> Option<Offsets> {
        let Offsets { direct, more, mut table } = offsets.clone();
        let axes: Vec<Axis> =
            self.own.axes.iter().chain(&self.own.stages[touch.stage].axes).cloned().collect();
        let direct = guard::inside(direct, touch.guards, &axes, &mut table, &mut |_, _| true)?;
        Some(Offsets { direct, more, table })
    }

    /// Two offsets less those at which they cannot be equal: where one step of an inner loop of one leads past all that the other
    /// touches, they are equal at its first position at most.
    fn meeting(&self, one: &Touch<'_>, other: &Touch<'_>, mut offsets: [Offsets; 2]) -> Option<[Offsets; 2]> {
        for (own, touch) in [one, other].into_iter().enumerate() {
            for axis in &self.own.stages[touch.stage].axes {
                let Some((step, rest)) = offsets[own].without(axis) else { continue };
                let (a, b) = (rest.bounds()?, offsets[1 - own].bounds()?);
                let is_forward = self.is_less(&Expr::int(0), &step);
                if is_forward && self.is_less(&(&b.most - &a.least), &step) {
                    offsets[own] = rest;
                }
            }
        }
        Some(offsets)
    }

    /// All offsets of an access; `None` for an index from data that nothing checks. A checked one is any position below its bound.
    fn offsets(&self, touch: &Touch<'_>) -> Option<Offsets> {
        let terms = &self.own.stages[touch.stage].terms;
        let of_index = |sum: Expr, (term, stride): &(TermId, Expr)| {
            let Some(Term::CheckIndex { size, .. }) = terms.get(*term).map(|typed| &typed.term) else {
                return None;
            };
            Some(&sum + &(&(size - 1) * stride))
        };
        let more = touch.access.indirect.iter().try_fold(Expr::int(0), of_index)?;
        Some(Offsets { direct: touch.access.offset.clone(), more, table: self.table(touch.stage) })
    }

    fn is_less(&self, a: &Expr, b: &Expr) -> bool {
        (&(b - a) - 1).never_negative(self.sizes)
    }

    /// Whether two accesses only meet where the outer loops are at one position.
    fn of_one_position(&self, one: &Touch<'_>, other: &Touch<'_>) -> bool {
        let mut axes = self.own.axes.iter().filter(|axis| !axis.extent.is(1));
        axes.clone().all(|axis| shares_coordinate(one.access, other.access, axis))
            || self.steps_over(one, other)
            || (axes.all(|axis| distinguishes(one.access, axis)) && self.same_inner_element(one, other))
    }

    /// Whether both offsets make steps of the outer loops that are larger than what else they add up to.
    fn steps_over(&self, one: &Touch<'_>, other: &Touch<'_>) -> bool {
        self.both_offsets(one, other).into_iter().any(|mut offsets| {
            self.own.axes.iter().filter(|axis| !axis.extent.is(1)).all(|axis| {
                let rests = self.at_one_position(&offsets, axis).or_else(|| {
                    let settled = self.settled([one, other], &offsets)?;
                    self.at_one_position(&settled, axis)
                });
                rests.map(|rests| offsets = rests).is_some()
            })
        })
    }

    /// What is left of two offsets without an inner loop of one of them, if they are only equal at one position of it: its step is
    /// larger than what else there is then.
    fn settled(&self, touches: [&Touch<'_>; 2], offsets: &[Offsets; 2]) -> Option<[Offsets; 2]> {
        let inner = |own: usize| self.own.stages[touches[own].stage].axes.iter().map(move |axis| (own, axis));
        inner(0).chain(inner(1)).find_map(|(own, axis)| {
            let (step, rest) = offsets[own].without(axis).filter(|(step, _)| !step.is(0))?;
            let positions = axis.extent.as_int().filter(|count| *count <= MOST_POSITIONS)?;
            (0..positions).find_map(|position| {
                let mut other = offsets[1 - own].clone();
                other.direct = &other.direct - &(&step * position);
                let is_only = self.are_nearer(&rest, &other, &step)?;
                let rests = if own == 0 { [rest.clone(), other] } else { [other, rest.clone()] };
                is_only.then_some(rests)
            })
        })
    }
}

/// Positions of an inner loop that are looked at one by one.
const MOST_POSITIONS: i64 = 16;

/// The offsets that an access may have.
#[derive(Clone)]
struct Offsets {
    /// Over the loops' axes.
    direct: Expr,
    /// The most that indices from data add.
    more: Expr,
    table: RangeTable,
}

impl Offsets {
    /// What they lie between, over all positions of the loops.
    fn bounds(&self) -> Option<Extremes> {
        let of_axis = |symbol: Symbol| {
            let extent = self.table.extent(symbol)?;
            Some(Extremes { least: Expr::int(0), most: extent - 1 })
        };
        let direct = self.direct.extremes(&of_axis, &self.table)?;
        Some(Extremes { most: &direct.most + &self.more, ..direct })
    }

    /// The step along an axis, and the offsets without it.
    fn without(&self, axis: &Axis) -> Option<(Expr, Offsets)> {
        let (step, direct) = self.direct.affine_in(axis.symbol)?;
        Some((step, Offsets { direct, ..self.clone() }))
    }
}

/// Whether positions along an axis are plainly the same coordinate of both.
fn shares_coordinate(one: &Access, other: &Access, axis: &Axis) -> bool {
    let plain = Index::Expr(Expr::sym(axis.symbol));
    one.coords.iter().zip(&other.coords).any(|(a, b)| *a == plain && *b == plain)
}

/// Whether an access is of another element wherever an axis is at another position, as far as can be seen at once.
fn distinguishes(access: &Access, axis: &Axis) -> bool {
    let plain = Index::Expr(Expr::sym(axis.symbol));
    access.coords.contains(&plain) || access.offset.mentions(axis.symbol)
}

#[cfg(test)]
mod tests;
