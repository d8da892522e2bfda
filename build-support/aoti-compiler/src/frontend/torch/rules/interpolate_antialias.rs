//! Resampling images with antialiasing: each result is a weighted mean over a window that grows with the scale.
//!
//! Windows and weights depend on sizes alone: where those are fixed, they are constants after folding. Weights follow
//! Pillow's resampling.

use super::formula::Formula;
use super::interpolate::{Scaled, ratio, rounded, scaled_axes};
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{Relation, ValueId};
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

/// A filter: half its width and its value at a distance that is not negative.
struct Filter {
    reach: i64,
    value: fn(&Formula) -> Formula,
}

const TRIANGLE: Filter = Filter { reach: 1, value: |x| (1.0 - x).max(0.0) };

/// Cubic convolution with coefficient -1/2.
const CUBIC: Filter = Filter {
    reach: 2,
    value: |x| {
        let near = (1.5 * x - 2.5) * x * x + 1.0;
        let far = (((x - 5.0) * x + 8.0) * x - 4.0) * -0.5;
        x.lt(1.0).select(near, x.lt(2.0).select(far, 0.0))
    },
};

const LANCZOS: Filter = Filter { reach: 3, value: |x| x.lt(3.0).select(sinc(x) * sinc(&(x / 3.0)), 0.0) };

fn sinc(x: &Formula) -> Formula {
    let angle = x * std::f64::consts::PI;
    x.equals(0.0).select(1.0, angle.sin() / &angle)
}

/// The elements that a result is a mean of, along one axis, as expressions over results and taps.
struct Window<'a> {
    axis: &'a Scaled,
    /// Input elements per output element, as a fraction.
    ratio: (Expr, Expr),
    /// The fraction, or one where the image grows, over the same denominator.
    stretch: Expr,
    taps: Expr,
    reach: i64,
}

impl Window<'_> {
    fn new<'a>(cx: &Context, axis: &'a Scaled, align: bool, reach: i64) -> Window<'a> {
        let ranges = cx.b.ranges();
        let (mut p, q) = ratio(axis, align, ranges);
        if align {
            // The center of a single element is at the start.
            p = &p * &(&axis.output - 1).minimum_in(&Expr::int(1), ranges);
        }
        let stretch = p.maximum_in(&q, ranges);
        let taps = (&stretch * (2 * reach)).ceil_div(&q, ranges);
        Window { axis, ratio: (p, q), stretch, taps, reach }
    }

    /// The center of result `at`, in halves of the denominator.
    fn center(&self, at: &Expr) -> Expr {
        &(&(at * 2) + 1) * &self.ratio.0
    }

    /// The element behind tap `tap` of result `at`; may be past the last.
    fn element(&self, cx: &Context, at: &Expr, tap: &Expr) -> Expr {
        let (ranges, q) = (cx.b.ranges(), &self.ratio.1);
        let start = &(&self.center(at) - &(&self.stretch * (2 * self.reach))) + q;
        let first = start.floor_div_in(&(q * 2), ranges).maximum_in(&Expr::int(0), ranges);
        &first + tap
    }

    /// The weights of all taps of all results; those of one result add up to one.
    fn weights(&self, cx: &mut Context, filter: &Filter) -> Result<ValueId, RuleError> {
        let (at, tap) = (Expr::axis(0), Expr::axis(1));
        let shape = [self.axis.output.clone(), self.taps.clone()];
        let element = self.element(cx, &at, &tap);
        let q = &self.ratio.1;
        let distance = &(&(&(&element * 2) + 1) * q) - &self.center(&at);
        let inside = cx.b.index(&self.axis.input - &element, &shape);
        let [distance, stretch] = [distance, &self.stretch * 2].map(|expr| {
            let index = cx.b.index(expr, &shape);
            cx.b.cast(index, DType::F64)
        });
        let value = (filter.value)(&(Formula::from(distance).abs() / Formula::from(stretch)));
        let value = cx.formula(DType::F64, &value)?;
        let outside = cx.b.full_like(0.0, value);
        let zero = cx.b.full_like(0, inside);
        let inside = cx.binary(Relation::Gt, inside, zero)?;
        let weights = cx.b.select(inside, value, outside)?;
        let total = cx.sum(weights, &[1], true)?;
        cx.div(weights, total)
    }
}

fn resample(cx: &mut Context, a: &Args, filter: &Filter) -> Rule {
    let (x, axes) = scaled_axes(cx, a, 2)?;
    let align = a.bool_or("align_corners", false)?;
    let dtype = cx.b.dtype(x);
    let wide = if dtype.is_float() { dtype.compute() } else { DType::F32 };
    let mut result = cx.b.cast(x, wide);
    let axes: Vec<Scaled> = axes.into_iter().map(|axis| axis.copying(1, cx.b.ranges())).collect();
    for (k, axis) in axes.iter().enumerate().rev() {
        let window = Window::new(cx, axis, align, filter.reach);
        let weights = window.weights(cx, filter)?;
        let weights = cx.b.cast(weights, wide);
        result = apply(cx, result, k + 2, &window, weights)?;
        if dtype == DType::U8 {
            let bytes = rounded(cx, result, dtype);
            result = cx.b.cast(bytes, wide);
        }
    }
    Ok(rounded(cx, result, dtype).into())
}

/// Means along one axis, with the taps as an additional last axis that is summed.
fn apply(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    window: &Window,
    weights: ValueId,
) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x);
    let rank = shape.len();
    shape[axis] = window.axis.output.clone();
    shape.push(window.taps.clone());
    // [output, taps] -> [output, 1.., taps]
    let mut along = vec![window.axis.output.clone()];
    along.extend(vec![Expr::int(1); rank - axis - 1]);
    along.push(window.taps.clone());
    let weights = cx.b.reshape(weights, &along)?;
    let mut coords: Vec<Expr> = (0..rank).map(Expr::axis).collect();
    let element = window.element(cx, &Expr::axis(axis), &Expr::axis(rank));
    coords[axis] = element.minimum_in(&(&window.axis.input - 1), cx.b.ranges());
    let values = cx.b.view(x, &shape, coords)?;
    let terms = cx.mul(values, weights)?;
    cx.sum(terms, &[rank], false)
}
