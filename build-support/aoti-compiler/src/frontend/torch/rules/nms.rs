//! Suppression of overlapping boxes (`torchvision.ops.nms`).

use super::masked::linear_hits;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::steps::repeat;
use crate::graph::{BinaryOp, Coord, IntBinary, Relation, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "torchvision.nms.default" => suppress,
}

/// Boxes from the highest score down: each that is still there removes those after it that overlap it too much. The
/// number of those that stay follows from the data.
fn suppress(cx: &mut Context, a: &Args) -> Rule {
    let (boxes, scores) = (a.tensor("dets")?, a.tensor("scores")?);
    let size = a.output_meta(0).and_then(|meta| meta.sizes.first()).cloned();
    let size = size.ok_or_else(|| RuleError::unsupported("the size of the result is not described"))?;
    if cx.b.rank(boxes) != 2 || cx.b.rank(scores) != 1 {
        return Err(RuleError::Malformed("boxes are a matrix, their scores a vector".to_owned()));
    }
    let count = cx.b.shape(scores)[0].clone();
    let (_, order) = cx.b.sort(scores, 0, true)?;
    let boxes = cx.required_shape(boxes, &[count.clone(), Expr::int(4)])?;
    let wide = cx.b.cast(boxes, cx.b.dtype(boxes).compute());
    let sorted = cx.b.rows(wide, order)?;
    let mut captured = Vec::new();
    for edge in 0..4 {
        captured.push(cx.b.pick(sorted, 1, &Expr::int(edge))?);
    }
    let edges = Edges::of(&captured);
    captured.push(edges.area(cx)?);
    let kept = cx.b.full(true, DType::Bool, std::slice::from_ref(&count));
    let threshold = a.float_or("iou_threshold", 0.5)?;
    let total = cx.b.index(count, &[]);
    let kept = repeat(cx, "suppress", total, &[kept], &captured, &mut |cx, number, carried, captured| {
        Ok(vec![survivors(cx, number, carried[0], captured, threshold)?])
    })?;
    let (positions, _) = linear_hits(cx, kept[0], &size, true)?;
    Ok(cx.b.rows(order, positions)?.into())
}

/// Where boxes begin and end, along x and y.
struct Edges {
    low: [ValueId; 2],
    high: [ValueId; 2],
}

impl Edges {
    fn of(columns: &[ValueId]) -> Edges {
        Edges { low: [columns[0], columns[1]], high: [columns[2], columns[3]] }
    }

    fn area(&self, cx: &mut Context) -> Result<ValueId, RuleError> {
        let width = cx.sub(self.high[0], self.low[0])?;
        let height = cx.sub(self.high[1], self.low[1])?;
        cx.mul(width, height)
    }
}

/// Which boxes are left once box `number` has removed what it overlaps.
fn survivors(
    cx: &mut Context,
    number: ValueId,
    kept: ValueId,
    captured: &[ValueId],
    threshold: f64,
) -> Result<ValueId, RuleError> {
    let one = |cx: &mut Context, all| cx.b.gather(all, &[number], vec![Coord::Indirect(0)], &[]);
    let mut own = Vec::new();
    for column in captured {
        own.push(one(cx, *column)?);
    }
    let (all, own_edges, all_edges) = (captured, Edges::of(&own), Edges::of(captured));
    let mut shared = None;
    for k in 0..2 {
        let low = cx.binary(BinaryOp::Maximum, all_edges.low[k], own_edges.low[k])?;
        let high = cx.binary(BinaryOp::Minimum, all_edges.high[k], own_edges.high[k])?;
        let length = cx.sub(high, low)?;
        let length = cx.with_number(BinaryOp::Maximum, length, 0.0)?;
        shared = Some(match shared {
            Some(width) => cx.mul(width, length)?,
            None => length,
        });
    }
    let shared = shared.expect("there are two axes");
    let both = cx.add(own[4], all[4])?;
    let joint = cx.sub(both, shared)?;
    let overlap = cx.div(shared, joint)?;
    // The threshold is a Python number, and is compared as such.
    let overlap = cx.b.cast(overlap, DType::F64);
    let much = cx.with_number(Relation::Gt, overlap, threshold)?;
    let position = cx.b.index(Expr::axis(0), &cx.b.shape(kept));
    let later = cx.binary(Relation::Gt, position, number)?;
    let is_kept = one(cx, kept)?;
    let hit = cx.binary(IntBinary::And, much, later)?;
    let hit = cx.binary(IntBinary::And, hit, is_kept)?;
    let free = cx.unary(UnaryOp::Not, hit);
    cx.binary(IntBinary::And, kept, free)
}
