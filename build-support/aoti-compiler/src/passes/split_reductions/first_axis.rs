//! Sums over several axes whose parts are those of the first of these: where it is a matter of layout which of them lies side by side in
//! memory, such as the channels of a group of an image, threads then read side by side in either.

use super::{Cut, FEW_RESULTS, Producer};
use crate::graph::{Builder, OpClass, ValueId};
use crate::symbolic::Expr;
use crate::target::SplitPolicy;

/// Operators between a convolution and what is made of it.
const DEPTH: usize = 16;

/// How many times fewer results than one thread each keep the device busy, where a team is as many for each.
const TEAM: i64 = 4;

/// The first of neighbouring axes as one of its own.
pub(super) struct FirstAxis {
    pub(super) shape: Vec<i64>,
    pub(super) axes: Vec<usize>,
    /// The size of the first axis.
    pub(super) parts: i64,
    /// Pieces of the others: the parts alone are too few for all threads where they lie side by side.
    pub(super) pieces: i64,
}

/// None where there are too few or too many parts to keep the device busy.
pub(super) fn first_apart(
    sizes: &[i64],
    axes: &[usize],
    results: i64,
    splits: &SplitPolicy,
) -> Option<FirstAxis> {
    let (first, last) = (*axes.first()?, *axes.last()?);
    if splits.few == 0 || axes.len() < 2 || last - first + 1 != axes.len() {
        return None;
    }
    let parts = sizes[first];
    let rest = sizes[first + 1..=last].iter().try_fold(1, |all: i64, size| all.checked_mul(*size))?;
    let units = results.checked_mul(parts)?;
    // A sum of nearly everything is in order as it is: more parts than these share the device more evenly.
    let least = if results < FEW_RESULTS { splits.rows / 4 } else { splits.rows / 16 };
    let keeps_busy = (least..=splits.rows * 4).contains(&units);
    let shape = [&sizes[..first], &[parts, rest], &sizes[last + 1..]].concat();
    let most = (splits.columns / TEAM / units.max(1)).min(rest / splits.part);
    let pieces = (splits.fewest..=most).rev().find(|pieces| rest % pieces == 0).unwrap_or(1);
    (parts > 1 && keeps_busy && rest >= splits.part).then(|| FirstAxis {
        shape,
        axes: vec![first, first + 1],
        parts,
        pieces,
    })
}

/// Elements in a shape, with the axis behind the one that is cut in pieces, which are the first axis then; and the axes and the cut of
/// what is arranged so.
pub(super) fn arranged(
    builder: &mut Builder,
    x: ValueId,
    (shape, axes): (&[i64], &[(usize, i64)]),
    cut: Cut,
) -> Option<(ValueId, Vec<usize>, Cut)> {
    let mut shape: Vec<Expr> = shape.iter().copied().map(Expr::int).collect();
    let axes = axes.iter().map(|(axis, _)| *axis);
    if cut.pieces == 1 {
        return Some((builder.reshape(x, &shape).ok()?, axes.collect(), cut));
    }
    let behind = cut.axis + 1;
    let length = shape.get(behind)?.as_int()? / cut.pieces;
    shape.splice(behind..=behind, [Expr::int(cut.pieces), Expr::int(length)]);
    let apart = builder.reshape(x, &shape).ok()?;
    let order: Vec<usize> =
        std::iter::once(behind).chain((0..shape.len()).filter(|axis| *axis != behind)).collect();
    let x = builder.permute(apart, &order).ok()?;
    Some((x, axes.map(|axis| axis + 1).collect(), Cut { axis: cut.axis + 1, ..cut }))
}

/// Whether a value is made of the result of a convolution, element by element.
pub(super) fn is_of_convolution(producer: &Producer, value: ValueId, depth: usize) -> bool {
    let Some(node) = producer(value).filter(|_| depth < DEPTH) else { return false };
    match node.op.class() {
        OpClass::Contraction => node.op != crate::graph::Op::MatMul,
        OpClass::Elementwise | OpClass::View(_) | OpClass::Pad(_) | OpClass::Concat => {
            node.inputs.iter().any(|input| is_of_convolution(producer, *input, depth + 1))
        }
        OpClass::Source
        | OpClass::Gather(_)
        | OpClass::Scatter(_)
        | OpClass::Reduction(_)
        | OpClass::AxisOp
        | OpClass::Opaque(_)
        | OpClass::Effect
        | OpClass::Control => false,
    }
}
