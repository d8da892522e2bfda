//! The distinct elements of a tensor, and sequences the other way round.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::{Rule, many, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::masked::hits_of;
use crate::frontend::torch::rules::unique::{in_order, run_starts};
use crate::graph::{BinaryOp, Combine, Coord, ReduceOp, Relation, ScanOp, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "Unique" => unique,
    "ReverseSequence" => reverse_sequence,
}

/// Distinct elements or slices, where each is first, which of them each is, and how often it is there; in their order or in
/// that in which they come.
fn unique(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axis = c.opt_int("axis")?.map(|axis| axis_of(axis, cx.b.rank(x))).transpose()?;
    let rank = cx.b.rank(x);
    let (rows, slices) = match axis {
        Some(axis) if rank > 1 => {
            let moved = cx.move_axis(x, axis, 0)?;
            let shape = cx.b.shape(moved)[1..].to_vec();
            (cx.merge_axes(moved, 1, rank)?, Some((axis, shape)))
        }
        Some(_) | None => (cx.flattened(x)?, None),
    };
    let (sorted, places) = in_order(cx, rows, true)?;
    let places = places.ok_or_else(|| malformed("what is sorted has places"))?;
    let mut starts = run_starts(cx, sorted, 0)?;
    if slices.is_some() {
        starts = cx.b.reduce(ReduceOp::Any, starts, &[1], false)?;
    }
    let flags = cx.b.cast(starts, DType::I64);
    let total = cx.b.reduce(ReduceOp::Sum, flags, &[0], false)?;
    let most = cx.b.shape(starts)[0].clone();
    let size = cx.read_size(total, Some(&most))?;
    let positions = hits_of(cx, starts, &size)?[0];
    // Equal ones keep their order, so that the first of a run is the first of all.
    let mut first = cx.b.rows(places, positions)?;
    let number = cx.b.scan(ScanOp::Sum, flags, 0)?[0];
    let number = cx.with_number(BinaryOp::Sub, number, 1i64)?;
    let mut inverse = spread(cx, number, places, &most)?;
    let (none, ones) =
        (cx.b.full(0i64, DType::I64, std::slice::from_ref(&size)), cx.b.full_like(1i64, number));
    let mut counts = cx.b.scatter(none, ones, &[number], vec![Coord::Indirect(0)], Combine::Add)?;
    if !c.flag("sorted", true)? {
        let (earliest, order) = cx.b.sort(first, 0, false)?;
        first = earliest;
        counts = cx.b.rows(counts, order)?;
        let numbers = cx.b.index(Expr::axis(0), std::slice::from_ref(&size));
        let rank = spread(cx, numbers, order, &size)?;
        inverse = cx.b.rows(rank, inverse)?;
    }
    let mut distinct = cx.b.rows(rows, first)?;
    if let Some((axis, shape)) = &slices {
        distinct = cx.split_axis(distinct, 1, shape)?;
        distinct = cx.move_axis(distinct, 0, *axis)?;
    }
    many([distinct, first, inverse, counts])
}

/// A vector of `size` elements that has each of `values` at its place.
fn spread(cx: &mut Onnx, values: ValueId, places: ValueId, size: &Expr) -> Result<ValueId, RuleError> {
    let base = cx.b.full(0i64, DType::I64, std::slice::from_ref(size));
    Ok(cx.b.scatter(base, values, &[places], vec![Coord::Indirect(0)], Combine::Set)?)
}

/// The first elements of each row along the axis of time, the last of them first; the others as they are.
fn reverse_sequence(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, lengths) = (c.tensor(0)?, c.tensor(1)?);
    let shape = cx.b.shape(x);
    let batch = axis_of(c.int("batch_axis", 1)?, shape.len())?;
    let time = axis_of(c.int("time_axis", 0)?, shape.len())?;
    let lengths = cx.required_shape(lengths, std::slice::from_ref(&shape[batch]))?;
    let lengths = cx.b.cast(lengths, DType::I64);
    let lengths = cx.trailing_ones(lengths, shape.len() - batch)?;
    let lengths = cx.b.expand(lengths, &shape)?;
    let at = cx.b.index(Expr::axis(time), &shape);
    let last = cx.with_number(BinaryOp::Sub, lengths, 1i64)?;
    let turned = cx.sub(last, at)?;
    let is_turned = cx.b.binary(Relation::Lt, at, lengths)?;
    let place = cx.b.select(is_turned, turned, at)?;
    let coord = |axis| if axis == time { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(axis)) };
    one(cx.b.gather(x, &[place], (0..shape.len()).map(coord).collect(), &shape)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, int};
    use crate::interpret::Tensor;

    #[test]
    fn distinct_elements_come_in_either_order() {
        let model = Model::new(11).input("x", Tensor::from_f32(&[6], &[2.0, 1.0, 1.0, 3.0, 4.0, 3.0]));
        let outputs = ["y", "first", "inverse", "counts"];
        let found = |sorted: i64| -> Vec<Vec<f64>> {
            let model = model.clone().node("Unique", &["x"], &outputs, &[int("sorted", sorted)]);
            model.run(&outputs).iter().map(Tensor::to_f64).collect()
        };
        let [y, first, inverse, counts] = found(1).try_into().unwrap();
        assert_eq!((y, first), (vec![1.0, 2.0, 3.0, 4.0], vec![1.0, 0.0, 3.0, 4.0]));
        assert_eq!((inverse, counts), (vec![1.0, 0.0, 0.0, 2.0, 3.0, 2.0], vec![2.0, 1.0, 2.0, 1.0]));
        let [y, first, inverse, counts] = found(0).try_into().unwrap();
        assert_eq!((y, first), (vec![2.0, 1.0, 3.0, 4.0], vec![0.0, 1.0, 3.0, 4.0]));
        assert_eq!((inverse, counts), (vec![0.0, 1.0, 1.0, 2.0, 3.0, 2.0], vec![1.0, 2.0, 2.0, 1.0]));
    }

    #[test]
    fn rows_turn_as_far_as_they_go() {
        let model = Model::new(10)
            .input("x", Tensor::from_f32(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
            .input("lengths", Tensor::from_i64(&[2], &[2, 3]));
        let attributes = [int("batch_axis", 0), int("time_axis", 1)];
        let found = model.of_one("ReverseSequence", &["x", "lengths"], &attributes);
        assert_eq!(found, [2.0, 1.0, 3.0, 6.0, 5.0, 4.0]);
    }
}
