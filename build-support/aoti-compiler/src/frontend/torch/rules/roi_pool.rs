//! Pools of regions: the largest of a bin's elements, and the average of those in the channels that belong to it.

use super::registry::rules;
use super::roi_align::{Axis, Call, Channels, Regions, over_cells};
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, IntBinary, Relation, Rounding, ValueId};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "torchvision.roi_pool.default" => |cx, a| {
        let found = roi_pool(cx, &Regions::read(a)?)?;
        Ok(Outputs::Many(found.map(Some).to_vec()))
    },
    pure "torchvision.ps_roi_pool.default" => ps_roi_pool,
}

/// Rounds to the nearest integer, halves away from zero.
fn nearest(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let rounded = cx.apply([x], dtype, |[x]| {
        let whole = x.trunc();
        let rest = (&x - &whole).abs();
        rest.ge(0.5).select(&whole + x.sign(), &whole)
    })?;
    Ok(cx.b.cast(rounded, DType::I64))
}

/// Where each bin begins and how many elements it has. Regions include their last element where `closed`; elements
/// beyond `limit` before the image's end are left out.
fn pooled_axes(cx: &mut Context, call: &Call, closed: i64, limit: i64) -> Result<[Axis; 2], RuleError> {
    let wide = call.dtype.compute();
    let mut axes = Vec::new();
    for axis in 0..2 {
        let (low, high) = (nearest(cx, call.low[axis])?, nearest(cx, call.high[axis])?);
        let length = cx.sub(high, low)?;
        let length = cx.with_number(BinaryOp::Add, length, closed)?;
        let length = cx.with_number(BinaryOp::Maximum, length, 1i64)?;
        let length = cx.b.cast(length, wide);
        let bins = call.bin_count(cx, axis);
        let width = cx.div(length, bins)?;
        let last = call.extent(cx, axis, limit, DType::I64);
        let zero = cx.b.full_like(0i64, last);
        let number = call.bins(cx, axis)?;
        let next = cx.with_number(BinaryOp::Add, number, 1.0)?;
        let mut ends = Vec::new();
        for (number, rounding) in [(number, Rounding::Floor), (next, Rounding::Ceil)] {
            let edge = cx.mul(number, width)?;
            let edge = cx.unary(rounding, edge);
            let edge = cx.b.cast(edge, DType::I64);
            let edge = cx.add(edge, low)?;
            let edge = cx.binary(BinaryOp::Maximum, edge, zero)?;
            ends.push(cx.binary(BinaryOp::Minimum, edge, last)?);
        }
        let count = cx.sub(ends[1], ends[0])?;
        axes.push(Axis { start: ends[0], step: ends[1], count });
    }
    Ok([axes[0], axes[1]])
}

/// The element of each bin's cell; of cells that it does not have, some element of the image.
fn cell_element(
    cx: &mut Context,
    call: &Call,
    cell: [ValueId; 2],
    captured: &[ValueId],
) -> Result<(ValueId, [ValueId; 2]), RuleError> {
    let mut at = Vec::new();
    for (axis, number) in cell.into_iter().enumerate() {
        let position = cx.add(captured[2 + axis], number)?;
        let last = call.extent(cx, axis, 1, DType::I64);
        at.push(cx.binary(BinaryOp::Minimum, position, last)?);
    }
    let at = [at[0], at[1]];
    Ok((call.elements(cx, captured[0], captured[1], at, &call.shape)?, at))
}

/// The largest element of each bin, and where it is in the image; 0 and -1 of bins without elements.
pub(crate) fn roi_pool(cx: &mut Context, regions: &Regions) -> Result<[ValueId; 2], RuleError> {
    let call = Call::new(cx, regions, Channels::All)?;
    let wide = call.dtype.compute();
    let axes = pooled_axes(cx, &call, 1, 0)?;
    let lowest = -wide.limits().expect("images have floating-point elements").largest;
    let start = [cx.b.full(lowest, wide, &call.shape), cx.b.full(-1i64, DType::I64, &call.shape)];
    let captured = [call.image, call.batch, axes[0].start, axes[1].start];
    let counts = [axes[0].count, axes[1].count];
    let found =
        over_cells(cx, "pool", counts, &start, &captured, &mut |cx, cell, has, carried, captured| {
            let (value, at) = cell_element(cx, &call, cell, captured)?;
            let larger = cx.binary(Relation::Gt, value, carried[0])?;
            let taken = cx.binary(IntBinary::And, larger, has)?;
            let width = call.extent(cx, 1, 0, DType::I64);
            let row = cx.mul(at[0], width)?;
            let place = cx.add(row, at[1])?;
            Ok(vec![cx.b.select(taken, value, carried[0])?, cx.b.select(taken, place, carried[1])?])
        })?;
    let empty = empty_bins(cx, &axes)?;
    let zero = cx.b.full_like(0.0, found[0]);
    let result = cx.b.select(empty, zero, found[0])?;
    let result = cx.b.cast(result, call.dtype);
    Ok([result, cx.b.cast(found[1], DType::I32)])
}

fn empty_bins(cx: &mut Context, axes: &[Axis; 2]) -> Result<ValueId, RuleError> {
    let rows = cx.with_number(Relation::Le, axes[0].count, 0i64)?;
    let columns = cx.with_number(Relation::Le, axes[1].count, 0i64)?;
    cx.binary(IntBinary::Or, rows, columns)
}

/// The average of the elements of each bin in the channels that belong to it; 0 of bins without elements.
fn ps_roi_pool(cx: &mut Context, a: &Args) -> Rule {
    let call = Call::new(cx, &Regions::read(a)?, Channels::OfBin)?;
    let wide = call.dtype.compute();
    let axes = pooled_axes(cx, &call, 0, 1)?;
    let zero = cx.b.full(0.0, wide, &call.shape);
    let captured = [call.image, call.batch, axes[0].start, axes[1].start];
    let counts = [axes[0].count, axes[1].count];
    let sum = over_cells(cx, "pool", counts, &[zero], &captured, &mut |cx, cell, has, carried, captured| {
        let (value, _) = cell_element(cx, &call, cell, captured)?;
        let zero = cx.b.full_like(0.0, value);
        let value = cx.b.select(has, value, zero)?;
        Ok(vec![cx.add(carried[0], value)?])
    })?;
    let empty = empty_bins(cx, &axes)?;
    let count = cx.mul(axes[0].count, axes[1].count)?;
    let one = cx.b.full_like(1i64, count);
    let count = cx.b.select(empty, one, count)?;
    let count = cx.b.cast(count, wide);
    let mean = cx.div(sum[0], count)?;
    let none = cx.b.full_like(0.0, mean);
    let result = cx.b.select(empty, none, mean)?;
    Ok(call.results(cx, result))
}
