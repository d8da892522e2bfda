//! Gradients of resampled images: each element goes back to those that it is a weighted sum of, axis by axis.

use super::{Args, Context, Outputs, RuleError, added_at, rules};
use crate::frontend::torch::rules::interpolate::{
    Filter, Line, Nearest, Scaled, nearest_of, scales, with_indirect,
};
use crate::graph::{Combine, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.upsample_nearest1d_backward.default" => |cx, a| resampled(cx, a, Filter::Nearest),
    pure "aten.upsample_nearest2d_backward.default" => |cx, a| resampled(cx, a, Filter::Nearest),
    pure "aten.upsample_nearest3d_backward.default" => |cx, a| resampled(cx, a, Filter::Nearest),
    pure "aten._upsample_nearest_exact1d_backward.default" => |cx, a| resampled(cx, a, Filter::NearestExact),
    pure "aten._upsample_nearest_exact2d_backward.default" => |cx, a| resampled(cx, a, Filter::NearestExact),
    pure "aten._upsample_nearest_exact3d_backward.default" => |cx, a| resampled(cx, a, Filter::NearestExact),
    pure "aten.upsample_linear1d_backward.default" => |cx, a| resampled(cx, a, Filter::Linear),
    pure "aten.upsample_bilinear2d_backward.default" => |cx, a| resampled(cx, a, Filter::Linear),
    pure "aten.upsample_trilinear3d_backward.default" => |cx, a| resampled(cx, a, Filter::Linear),
    pure "aten.upsample_bicubic2d_backward.default" => |cx, a| resampled(cx, a, Filter::Cubic),
}

fn resampled(cx: &mut Context, a: &Args, filter: Filter) -> Rule {
    let g = a.tensor("grad_output")?;
    let (inputs, outputs) = (a.syms("input_size")?, a.syms("output_size")?);
    if cx.b.rank(g) != inputs.len() || inputs.len() != outputs.len() + 2 {
        return Err(RuleError::Malformed("images and their gradient have a batch and channels".to_owned()));
    }
    let align = a.bool_or("align_corners", false)?;
    let scales = scales(a, outputs.len())?;
    let dtype = cx.b.dtype(g);
    let mut result = cx.b.cast(g, dtype.compute());
    for (k, (output, scale)) in outputs.into_iter().zip(scales).enumerate() {
        let scaled = Scaled::new(inputs[k + 2].clone(), output, scale);
        let line = Line { axis: k + 2, scaled: &scaled, align };
        result = match filter {
            Filter::Nearest => from_nearest(cx, result, &line, false)?,
            Filter::NearestExact => from_nearest(cx, result, &line, true)?,
            Filter::Linear | Filter::Cubic => from_taps(cx, result, &line, filter)?,
        };
    }
    Ok(cx.b.cast(result, dtype).into())
}

/// The shape that the gradient gets along a line.
fn source_shape(cx: &Context, g: ValueId, line: &Line) -> Vec<Expr> {
    let mut shape = cx.b.shape(g);
    shape[line.axis] = line.scaled.input.clone();
    shape
}

fn from_nearest(cx: &mut Context, g: ValueId, line: &Line, exact: bool) -> Result<ValueId, RuleError> {
    let (own, shape) = (cx.b.shape(g), source_shape(cx, g, line));
    match nearest_of(cx, line.axis, line.scaled, &own, exact) {
        Nearest::Position(position) => added_along(cx, g, &shape, line.axis, position),
        Nearest::Table(table) => {
            let base = cx.b.full(0i64, cx.b.dtype(g), &shape);
            let index = cx.b.int_vector(&table);
            let index = cx.trailing_ones(index, own.len() - line.axis)?;
            let index = cx.b.expand(index, &own)?;
            Ok(cx.b.scatter(base, g, &[index], with_indirect(own.len(), line.axis), Combine::Add)?)
        }
    }
}

fn from_taps(cx: &mut Context, g: ValueId, line: &Line, filter: Filter) -> Result<ValueId, RuleError> {
    let (shape, behind) = (source_shape(cx, g, line), cx.b.rank(g) - line.axis);
    let mut sum = None;
    for (position, weight) in line.taps(cx, filter, cx.b.dtype(g))? {
        let weight = cx.trailing_ones(weight, behind)?;
        let share = cx.mul(g, weight)?;
        let added = added_along(cx, share, &shape, line.axis, position)?;
        sum = Some(match sum {
            Some(sum) => cx.add(sum, added)?,
            None => added,
        });
    }
    sum.ok_or_else(|| RuleError::Malformed("no taps".to_owned()))
}

fn added_along(
    cx: &mut Context,
    g: ValueId,
    shape: &[Expr],
    axis: usize,
    position: Expr,
) -> Result<ValueId, RuleError> {
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    coords[axis] = position;
    added_at(cx, g, shape, coords)
}
