//! Boxes of objects: of those that overlap, the one with the highest score.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::masked::hits_of;
use crate::frontend::torch::rules::{Context, Formula, RuleError};
use crate::graph::steps::{Step, Values, repeat_while_any};
use crate::graph::{BinaryOp, Coord, IntBinary, ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "NonMaxSuppression" => non_max_suppression,
}

/// Boxes of each class of each image from the highest score down, `[images, classes, boxes]`: in each step the first that is
/// left is chosen, and those that it overlaps too much are not left. The number of rows of the result follows from the data.
fn non_max_suppression(cx: &mut Onnx, c: &Call) -> Rule {
    let (boxes, scores) = (c.tensor(0)?, c.tensor(1)?);
    let Some(most) = c.opt_tensor(2)? else {
        return one(cx.b.full(0i64, DType::I64, &[Expr::int(0), Expr::int(3)]));
    };
    if cx.b.rank(boxes) != 3 || cx.b.rank(scores) != 3 {
        return Err(malformed("boxes and scores have three axes"));
    }
    let shape = cx.b.shape(scores);
    let boxes = cx.required_shape(boxes, &[shape[0].clone(), shape[2].clone(), Expr::int(4)])?;
    let most = cx.b.cast(most, DType::I64);
    let most = cx.b.reshape(most, &[])?;
    let threshold = match c.opt_tensor(3)? {
        Some(threshold) => cx.b.reshape(threshold, &[])?,
        None => cx.b.scalar(0.0, DType::F32),
    };
    let (sorted, order) = cx.b.sort(scores, 2, true)?;
    let edges = edges(cx, boxes, order, c.flag("center_point_box", false)?)?;
    let mut open = cx.b.full(true, DType::Bool, &shape);
    if let Some(least) = c.opt_tensor(4)? {
        let least = cx.b.reshape(least, &[])?;
        open = cx.b.binary(Relation::Gt, sorted, least)?;
    }
    let any = cx.with_number(Relation::Gt, most, 0i64)?;
    let open = cx.b.binary(IntBinary::And, open, any)?;
    let chosen = cx.b.full(false, DType::Bool, &shape);
    let captured = [edges.as_slice(), &[most, threshold]].concat();
    let chosen = repeat_while_any(&mut cx.cx, "suppress", open, &[chosen], &captured, &mut |cx, step| {
        choose(cx, &step)
    })?[0];
    rows(cx, chosen, order)
}

/// Where boxes begin and end along two axes and their areas, in order.
fn edges(cx: &mut Onnx, boxes: ValueId, order: ValueId, is_centred: bool) -> Result<Vec<ValueId>, RuleError> {
    let shape = cx.b.shape(order);
    let mut columns = Vec::new();
    for column in 0..4 {
        let coords = vec![Coord::Expr(Expr::axis(0)), Coord::Indirect(0), Coord::Expr(Expr::int(column))];
        columns.push(Formula::from(cx.b.gather(boxes, &[order], coords, &shape)?));
    }
    let [a, b, c, d] = [0, 1, 2, 3].map(|column: usize| &columns[column]);
    let edges = if is_centred {
        let (width, height) = (c * 0.5, d * 0.5);
        [a - &width, b - &height, a + &width, b + &height]
    } else {
        // The corners may be any two that are opposite.
        [a.min(c), b.min(d), a.max(c), b.max(d)]
    };
    let area = (&edges[2] - &edges[0]) * (&edges[3] - &edges[1]);
    let dtype = cx.b.dtype(boxes);
    edges.iter().chain([&area]).map(|formula| cx.formula(dtype, formula)).collect()
}

/// One step: what is left, and what is chosen so far.
fn choose(cx: &mut Context, step: &Step<'_>) -> Values<Context> {
    let (open, chosen) = (step.open, step.carried[0]);
    let [edges @ .., most, threshold] = step.captured else {
        return Err(malformed("the limits are missing"));
    };
    let shape = cx.b.shape(open);
    let numbers = cx.b.cast(open, DType::I64);
    let first = cx.b.reduce(ReduceOp::ArgMax, numbers, &[2], true)?;
    let position = cx.b.index(Expr::axis(2), &shape);
    let is_first = cx.binary(Relation::Eq, position, first)?;
    let is_new = cx.binary(IntBinary::And, is_first, open)?;
    let chosen = cx.binary(IntBinary::Or, chosen, is_new)?;
    let overlapped = overlapped(cx, edges, first, *threshold)?;
    let gone = cx.binary(IntBinary::Or, overlapped, is_new)?;
    let left = cx.unary(crate::graph::UnaryOp::Not, gone);
    let left = cx.binary(IntBinary::And, open, left)?;
    let next = cx.with_number(BinaryOp::Add, step.number, 1i64)?;
    let goes_on = cx.binary(Relation::Lt, next, *most)?;
    let left = cx.binary(IntBinary::And, left, goes_on)?;
    Ok(vec![left, chosen])
}

/// Which boxes share more than a part of what they and another box cover together.
fn overlapped(
    cx: &mut Context,
    edges: &[ValueId],
    at: ValueId,
    threshold: ValueId,
) -> Result<ValueId, RuleError> {
    let mut pairs = Vec::new();
    for all in edges {
        let shape = cx.b.shape(at);
        let coords = vec![Coord::Expr(Expr::axis(0)), Coord::Expr(Expr::axis(1)), Coord::Indirect(0)];
        let own = cx.b.gather(*all, &[at], coords, &shape)?;
        pairs.push((Formula::from(*all), Formula::from(own)));
    }
    let length = |k: usize| {
        let (low, high) = (pairs[k].0.max(&pairs[k].1), pairs[k + 2].0.min(&pairs[k + 2].1));
        (high - low).max(0.0)
    };
    let shared = length(0) * length(1);
    let together = &pairs[4].0 + &pairs[4].1 - &shared;
    let is_much = (&shared / &together).gt(Formula::from(threshold));
    let exist = shared.gt(0.0).and(pairs[4].0.gt(0.0)).and(pairs[4].1.gt(0.0));
    let dtype = cx.b.dtype(edges[0]);
    cx.formula(dtype, &exist.and(is_much))
}

/// Image, class and number of each box that is chosen.
fn rows(cx: &mut Onnx, chosen: ValueId, order: ValueId) -> Rule {
    let flags = cx.b.cast(chosen, DType::I64);
    let count = cx.b.reduce(ReduceOp::Sum, flags, &[0, 1, 2], false)?;
    let size = cx.read_size(count, Some(&cx.b.ty(chosen).numel()))?;
    let mut lines = hits_of(cx, chosen, &size)?;
    let coords = (0..3).map(Coord::Indirect).collect();
    let number = cx.b.gather(order, &lines, coords, std::slice::from_ref(&size))?;
    lines[2] = number;
    let columns =
        lines.into_iter().map(|line| Ok(cx.b.unsqueeze(line, 1)?)).collect::<Result<Vec<_>, RuleError>>()?;
    one(cx.b.cat(&columns, 1)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::Model;
    use crate::interpret::Tensor;

    #[test]
    fn boxes_that_overlap_a_better_one_are_left_out() {
        let boxes = [
            [0.0, 0.0, 2.0, 2.0],
            [2.0, 2.0, 0.0, 0.2], // The first one's, by other corners.
            [5.0, 5.0, 6.0, 6.0],
            [9.0, 9.0, 9.5, 9.5],
        ];
        let model = Model::new(11)
            .input("boxes", Tensor::from_f32(&[1, 4, 4], &boxes.concat()))
            .input("scores", Tensor::from_f32(&[1, 2, 4], &[0.5, 0.9, 0.8, 0.1, 0.3, 0.2, 0.1, 0.25]))
            .input("most", Tensor::from_i64(&[1], &[2]))
            .input("overlap", Tensor::from_f32(&[1], &[0.5]))
            .input("least", Tensor::from_f32(&[1], &[0.15]));
        let inputs = ["boxes", "scores", "most", "overlap", "least"];
        let found = model.of_one("NonMaxSuppression", &inputs, &[]);
        assert_eq!(found, [0.0, 0.0, 1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 0.0, 0.0, 1.0, 3.0]);
    }
}
