//! Resampling images with antialiasing: each result is a weighted mean over a window that grows with the scale.
//!
//! Windows and weights depend on sizes alone and are tables; sizes must be fixed. Weights follow Pillow's resampling.

use super::registry::rules;
use super::resample::{Scaled, rounded, scaled_axes};
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{Constant, Coord, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten._upsample_bilinear2d_aa.default" => |cx, a| resample(cx, a, &TRIANGLE),
    pure "aten._upsample_bilinear2d_aa.vec" => |cx, a| resample(cx, a, &TRIANGLE),
    pure "aten._upsample_bicubic2d_aa.default" => |cx, a| resample(cx, a, &CUBIC),
    pure "aten._upsample_bicubic2d_aa.vec" => |cx, a| resample(cx, a, &CUBIC),
    pure "aten._upsample_lanczos2d_aa.default" => |cx, a| resample(cx, a, &LANCZOS),
    pure "aten._upsample_lanczos2d_aa.vec" => |cx, a| resample(cx, a, &LANCZOS),
}

/// A filter: half its width and its value at a distance.
struct Filter {
    reach: f64,
    value: fn(f64) -> f64,
}

const TRIANGLE: Filter = Filter { reach: 1.0, value: |x| (1.0 - x.abs()).max(0.0) };

/// Cubic convolution with coefficient -1/2.
const CUBIC: Filter = Filter {
    reach: 2.0,
    value: |x| {
        let (a, x) = (-0.5, x.abs());
        if x < 1.0 {
            ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
        } else if x < 2.0 {
            (((x - 5.0) * x + 8.0) * x - 4.0) * a
        } else {
            0.0
        }
    },
};

const LANCZOS: Filter =
    Filter { reach: 3.0, value: |x| if x.abs() < 3.0 { sinc(x) * sinc(x / 3.0) } else { 0.0 } };

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { (x * std::f64::consts::PI).sin() / (x * std::f64::consts::PI) }
}

/// For each result, `taps` positions and weights.
struct Table {
    taps: usize,
    positions: Vec<i64>,
    weights: Vec<f64>,
}

fn table(axis: &Scaled, align: bool, filter: &Filter) -> Result<Table, RuleError> {
    let (Some(input), Some(output)) = (axis.input.as_int(), axis.output.as_int()) else {
        return Err(RuleError::unsupported("antialiased resampling between symbolic sizes"));
    };
    let scale = match axis.scale {
        _ if align => {
            if output > 1 {
                (input - 1) as f64 / (output - 1) as f64
            } else {
                0.0
            }
        }
        Some(scale) => 1.0 / scale,
        None => input as f64 / output as f64,
    };
    let (support, inverse) =
        if scale >= 1.0 { (filter.reach * scale, 1.0 / scale) } else { (filter.reach, 1.0) };
    let mut rows = Vec::new();
    for i in 0..output {
        let center = scale * (i as f64 + 0.5);
        let first = ((center - support + 0.5) as i64).max(0);
        let last = ((center + support + 0.5) as i64).min(input);
        let weight = |j: i64| (filter.value)((j as f64 - center + 0.5) * inverse);
        let mut weights: Vec<f64> = (first..last).map(weight).collect();
        let total: f64 = weights.iter().sum();
        if total != 0.0 {
            weights.iter_mut().for_each(|weight| *weight /= total);
        }
        rows.push((first, weights));
    }
    let taps = rows.iter().map(|(_, weights)| weights.len()).max().unwrap_or(0);
    let (mut positions, mut weights) = (Vec::new(), Vec::new());
    for (first, mut row) in rows {
        positions.extend((first..).take(taps).map(|j| j.min(input - 1)));
        row.resize(taps, 0.0);
        weights.extend(row);
    }
    Ok(Table { taps, positions, weights })
}

fn resample(cx: &mut Context, a: &Args, filter: &Filter) -> Rule {
    let (x, axes) = scaled_axes(cx, a, 2)?;
    let align = a.bool_or("align_corners", false)?;
    let dtype = cx.b.dtype(x);
    let wide = if dtype.is_float() { dtype.compute() } else { DType::F32 };
    let mut result = cx.b.cast(x, wide);
    for (k, axis) in axes.iter().enumerate().rev() {
        let table = table(axis, align, filter)?;
        result = apply(cx, result, k + 2, &axis.output, &table)?;
        if dtype == DType::U8 {
            let bytes = rounded(cx, result, dtype);
            result = cx.b.cast(bytes, wide);
        }
    }
    Ok(rounded(cx, result, dtype).into())
}

fn apply(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    output: &Expr,
    table: &Table,
) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    let taps = Expr::int(super::support::length(table.taps));
    let mut shape = own.clone();
    shape[axis] = output.clone();
    shape.push(taps.clone());
    // [output, taps] -> [output, 1.., taps]
    let mut along = vec![output.clone()];
    along.extend(vec![Expr::int(1); own.len() - axis - 1]);
    along.push(taps);
    let positions = cx.b.int_vector(&table.positions);
    let positions = cx.b.reshape(positions, &along)?;
    let coords = (0..own.len())
        .map(|k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) })
        .collect();
    let values = cx.b.gather(x, &[positions], coords, &shape)?;
    let weights = constant_vector(cx, &table.weights)?;
    let dtype = cx.b.dtype(x);
    let weights = cx.b.cast(weights, dtype);
    let weights = cx.b.reshape(weights, &along)?;
    let terms = cx.mul(values, weights)?;
    cx.sum(terms, &[own.len()], false)
}

fn constant_vector(cx: &mut Context, values: &[f64]) -> Result<ValueId, RuleError> {
    let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let sizes = vec![super::support::length(values.len())];
    Ok(cx.b.constant(Constant::new("", DType::F64, sizes, data))?)
}
