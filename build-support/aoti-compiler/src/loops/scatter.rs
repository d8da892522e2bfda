//! Where the updates of a scatter go: which of its axes count updates that may meet, which count columns along which none
//! meet, and what number an update's destination has among all.

use super::{Access, BufferId, Effect, Nest, Program, Stage, Term, TermId, TypedTerm};
use crate::dtype::DType;
use crate::graph::Combine;
use crate::symbolic::{Expr, RangeTable, Ranges, Symbol};
use std::collections::BTreeSet;

/// A nest that is one scatter.
#[derive(Clone, PartialEq, Debug)]
pub struct Scatter {
    /// What it writes.
    pub target: BufferId,
    /// Its element type.
    pub dtype: DType,
    /// How an update meets what is there.
    pub combine: Combine,
    /// The term that is written.
    pub value: TermId,
    /// Axes of the nest, by position, along which updates may meet.
    pub updates: Vec<usize>,
    /// Axes of the nest, by position, along which the destination moves by itself.
    pub columns: Vec<usize>,
    /// What tells the destinations of updates apart, from what moves them farthest.
    pub parts: Vec<Part>,
}

/// A number of a destination: elements that it moves it by, and how many values it has.
#[derive(Clone, PartialEq, Debug)]
pub struct Part {
    /// What it is.
    pub of: PartOf,
    /// How many elements one more of it is.
    pub stride: Expr,
    /// It is from 0 to here.
    pub count: Expr,
}

/// What a [`Part`] counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PartOf {
    /// The positions of an axis of the nest.
    Axis(usize),
    /// The values of an index.
    Index(TermId),
    /// Elements of the target, because its parts cannot be told apart.
    Element,
}

impl Scatter {
    /// What a nest does, if it is one scatter that reads nothing of what it writes.
    pub fn of(program: &Program, nest: &Nest, ranges: &dyn Ranges) -> Option<Scatter> {
        let [stage] = nest.stages.as_slice() else { return None };
        let [Effect::Store { access, value, combine }] = stage.effects.as_slice() else { return None };
        let buffer = &program.buffers[access.buffer];
        let is_plain = stage.axes.is_empty() && nest.accumulators.is_empty() && !buffer.storage.is_local();
        if !is_plain || stage.reads().any(|read| read == access.buffer) {
            return None;
        }
        let parts = parts(nest, stage, access, &table(nest, access, ranges));
        let moving = moving(nest, stage, access);
        let is_column = |axis: usize| {
            let is_part = |part: &Part| part.of == PartOf::Axis(axis);
            !moving.contains(&nest.axes[axis].symbol) && parts.iter().flatten().any(is_part)
        };
        let (columns, updates): (Vec<usize>, Vec<usize>) =
            (0..nest.axes.len()).partition(|axis| is_column(*axis));
        let element = Part { of: PartOf::Element, stride: Expr::int(1), count: Expr::product(&buffer.shape) };
        let mut parts = parts.unwrap_or_else(|| vec![element]);
        let is_column = |part: &Part| matches!(part.of, PartOf::Axis(axis) if columns.contains(&axis));
        parts.retain(|part| !is_column(part) && !part.count.is(1));
        let (target, dtype) = (access.buffer, buffer.dtype);
        Some(Scatter { target, dtype, combine: *combine, value: *value, updates, columns, parts })
    }

    /// How many destinations there are, columns aside.
    pub fn slots(&self) -> Expr {
        Expr::product(self.parts.iter().map(|part| &part.count))
    }

    /// How many updates there are, columns aside.
    pub fn count(&self, nest: &Nest) -> Expr {
        Expr::product(self.updates.iter().map(|axis| &nest.axes[*axis].extent))
    }

    /// How many columns each update has.
    pub fn width(&self, nest: &Nest) -> Expr {
        Expr::product(self.columns.iter().map(|axis| &nest.axes[*axis].extent))
    }

    /// Axes of the nest, by position, whose positions touch different elements whatever the indices are.
    pub fn apart(&self) -> BTreeSet<usize> {
        let of_parts = self.parts.iter().filter_map(|part| match part.of {
            PartOf::Axis(axis) => Some(axis),
            PartOf::Index(_) | PartOf::Element => None,
        });
        of_parts.chain(self.columns.iter().copied()).collect()
    }
}

/// Ranges of the sizes and axes of a nest.
fn table(nest: &Nest, access: &Access, ranges: &dyn Ranges) -> RangeTable {
    let strides: Vec<&Expr> = access.indirect.iter().map(|(_, stride)| stride).collect();
    super::ranges_over(ranges, &[&nest.axes], &strides)
}

/// The parts of an address from the largest stride down, if each is larger than all that come after it can be together: then
/// equal addresses have equal parts.
fn parts(nest: &Nest, stage: &Stage, access: &Access, ranges: &dyn Ranges) -> Option<Vec<Part>> {
    let (mut parts, mut rest) = (Vec::new(), access.offset.clone());
    for (position, axis) in nest.axes.iter().enumerate() {
        let (stride, without) = rest.affine_in(axis.symbol)?;
        rest = without;
        // An axis along which nothing moves counts updates of one destination.
        if !stride.is(0) {
            parts.push(Part { of: PartOf::Axis(position), stride, count: axis.extent.clone() });
        }
    }
    let of_sizes = |expr: &Expr| nest.axes.iter().all(|axis| !expr.mentions(axis.symbol));
    if !of_sizes(&rest) || !parts.iter().all(|part| of_sizes(&part.stride)) {
        return None;
    }
    for (term, stride) in &access.indirect {
        let Term::CheckIndex { size, .. } = &stage.terms[*term].term else { return None };
        parts.push(Part { of: PartOf::Index(*term), stride: stride.clone(), count: size.clone() });
    }
    // The smallest first: what has a smaller stride reaches less far than the next stride.
    let mut ordered: Vec<Part> = Vec::new();
    let mut reach = Expr::int(1);
    while !parts.is_empty() {
        let fits = |part: &Part| (&part.stride - &reach).never_negative(ranges);
        let is_least = |own: &Part| {
            fits(own)
                && parts.iter().all(|other| {
                    other == own || (&other.stride - &(&own.stride * &own.count)).never_negative(ranges)
                })
        };
        let least = parts.iter().position(is_least)?;
        let part = parts.remove(least);
        reach = &part.stride * &part.count;
        ordered.push(part);
    }
    ordered.reverse();
    Some(ordered)
}

/// Axes on which the indices of an access depend.
fn moving(nest: &Nest, stage: &Stage, access: &Access) -> BTreeSet<Symbol> {
    let (mut found, mut seen) = (BTreeSet::new(), BTreeSet::new());
    let mut open: Vec<TermId> = access.indirect.iter().map(|(term, _)| *term).collect();
    while let Some(id) = open.pop() {
        if !seen.insert(id) {
            continue;
        }
        let TypedTerm { term, .. } = &stage.terms[id];
        open.extend(term.operands());
        let mut exprs = term.exprs();
        if let Term::Load { access, .. } = term {
            exprs.push(&access.offset);
        }
        let mentioned = |symbol: &Symbol| exprs.iter().any(|expr| expr.mentions(*symbol));
        found.extend(nest.axes.iter().map(|axis| axis.symbol).filter(mentioned));
    }
    found
}
