//! Sums of squared differences, as variances have them. A part is read once for its own mean and, while it is near, once more
//! for the squares of differences from that, where one step after the other would read all elements twice from memory:
//! the sum of (x - c)^2 over n elements of mean m is that of (x - m)^2 and n (m - c)^2 (Chan, Golub and LeVeque, "Algorithms for
//! computing the sample variance", 1983).

use super::first_axis::arranged;
use super::parts::{Part, each_part, joined};
use super::{Cut, Producer};
use crate::graph::{BinaryOp, Builder, FloatBinary, Node, Op, OpClass, ReduceOp, ValueId};
use crate::symbolic::{Expr, Symbol};

/// The values of a sum of (x - c)^2.
#[derive(Clone, Copy)]
pub(super) struct Squares {
    pub(super) x: ValueId,
    /// The same along all axes that are reduced.
    centre: ValueId,
    pub(super) centred: ValueId,
    pub(super) squares: ValueId,
}

/// Operators between what is reduced and a centre's view.
const DEPTH: usize = 8;

impl Squares {
    /// The squares that a node adds up, if these are such.
    pub(super) fn of<'a>(producer: &Producer<'a>, node: &Node) -> Option<Squares> {
        let Op::Reduce { op: ReduceOp::Sum, axes } = &node.op else { return None };
        let binary = |value: ValueId, wanted: BinaryOp| {
            let node = producer(value).filter(|node| node.op == Op::Binary(wanted))?;
            <[ValueId; 2]>::try_from(node.inputs.as_slice()).ok()
        };
        let squares = node.inputs[0];
        let [centred, again] = binary(squares, BinaryOp::Mul)?;
        let [x, centre] = if centred == again { binary(centred, BinaryOp::Sub)? } else { return None };
        is_same_along(producer, centre, axes, DEPTH).then_some(Squares { x, centre, centred, squares })
    }

    /// The sum by parts of an axis. `shape` is that of the elements with some axes as one, `axes` those that are reduced.
    pub(super) fn split(
        self,
        builder: &mut Builder,
        (shape, axes): (&[i64], &[(usize, i64)]),
        cut: Cut,
    ) -> Option<ValueId> {
        let (centre, ..) = arranged(builder, self.centre, (shape, axes), cut)?;
        let (x, axes, cut) = arranged(builder, self.x, (shape, axes), cut)?;
        let centre = first_of(builder, centre, &axes)?;
        let centre = builder.unsqueeze(centre, builder.rank(centre)).ok()?;
        let each = each_part(builder, x, &axes, cut, &mut |builder, part| of_part(builder, part, centre))?;
        let last = builder.rank(centre) - 1;
        let partial = joined(builder, &each, last)?;
        builder.reduce(ReduceOp::Sum, partial, &cut.axes(last), false).ok()
    }
}

/// What parts add to the sum of (x - c)^2. Parts are the last axis of the results and of `centre`.
///
/// Everything is in the order of the loops of the reductions, so that each of them is one kernel.
fn of_part(builder: &mut Builder, part: &Part, centre: ValueId) -> Option<ValueId> {
    let Part { x, axis: parts, inside } = *part;
    let count = inside.iter().try_fold(1, |all, axis| Some(all * builder.shape(x)[*axis].as_int()?))?;
    let sum = builder.reduce(ReduceOp::Sum, x, inside, false).ok()?;
    let count = builder.full_like(count as f64, sum);
    let mean = builder.binary(FloatBinary::Div, sum, count).ok()?;
    let (rank, results) = (builder.rank(x), builder.rank(mean));
    let order = (0..rank).filter(|axis| !inside.contains(axis)).chain(inside.iter().copied());
    let ordered = builder.permute(x, &order.collect::<Vec<_>>()).ok()?;
    let kept = (results..rank).try_fold(mean, |kept, axis| builder.unsqueeze(kept, axis).ok())?;
    let centred = builder.binary(BinaryOp::Sub, ordered, kept).ok()?;
    let squares = builder.binary(BinaryOp::Mul, centred, centred).ok()?;
    let spread = builder.reduce(ReduceOp::Sum, squares, &(results..rank).collect::<Vec<_>>(), false).ok()?;
    let own = parts - inside.iter().filter(|axis| **axis < parts).count();
    let order: Vec<usize> = (0..results).filter(|axis| *axis != own).chain([own]).collect();
    let [mean, count, spread] = [mean, count, spread].map(|value| builder.permute(value, &order).ok());
    let off = builder.binary(BinaryOp::Sub, mean?, centre).ok()?;
    let off = builder.binary(BinaryOp::Mul, off, off).ok()?;
    let off = builder.binary(BinaryOp::Mul, off, count?).ok()?;
    builder.binary(BinaryOp::Add, spread?, off).ok()
}

/// The first element along axes, which go.
fn first_of(builder: &mut Builder, mut x: ValueId, axes: &[usize]) -> Option<ValueId> {
    for axis in axes.iter().rev() {
        x = builder.pick(x, *axis, &Expr::int(0)).ok()?;
    }
    Some(x)
}

/// Whether a value is known not to change along axes.
fn is_same_along(producer: &Producer, value: ValueId, axes: &[usize], depth: usize) -> bool {
    let Some(node) = producer(value).filter(|_| depth > 0) else { return false };
    match node.op.class() {
        OpClass::View(coords) => {
            let mut symbols = axes.iter().filter_map(|axis| u32::try_from(*axis).ok()).map(Symbol::axis);
            symbols.all(|axis| coords.iter().all(|coord| !coord.mentions(axis)))
        }
        OpClass::Elementwise => {
            node.inputs.iter().all(|input| is_same_along(producer, *input, axes, depth - 1))
        }
        OpClass::Source => matches!(node.op, Op::Full(_)),
        OpClass::Pad(_)
        | OpClass::Gather(_)
        | OpClass::Scatter(_)
        | OpClass::Concat
        | OpClass::Reduction(_)
        | OpClass::AxisOp
        | OpClass::Contraction
        | OpClass::Opaque(_)
        | OpClass::Effect
        | OpClass::Control => false,
    }
}
