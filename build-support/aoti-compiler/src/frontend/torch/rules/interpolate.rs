//! Resampling images to another size: nearest, linear and cubic interpolation, axis by axis.
//!
//! Source positions are exact rational functions of the axes, so that they stay plain index expressions; only the
//! interpolation weights are floating-point, and being continuous they do not depend on how positions are rounded.

use super::registry::rules;
use super::support::spread_syms;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::{BinaryOp, Condition, Coord, Relation, Rounding, ValueId};
use crate::symbolic::{Expr, Ranges};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.upsample_nearest1d.default" => |cx, a| resample(cx, a, 1, Filter::Nearest),
    pure "aten.upsample_nearest2d.default" => |cx, a| resample(cx, a, 2, Filter::Nearest),
    pure "aten.upsample_nearest3d.default" => |cx, a| resample(cx, a, 3, Filter::Nearest),
    pure "aten.upsample_nearest1d.vec" => |cx, a| resample(cx, a, 1, Filter::Nearest),
    pure "aten.upsample_nearest2d.vec" => |cx, a| resample(cx, a, 2, Filter::Nearest),
    pure "aten.upsample_nearest3d.vec" => |cx, a| resample(cx, a, 3, Filter::Nearest),
    pure "aten._upsample_nearest_exact1d.default" => |cx, a| resample(cx, a, 1, Filter::NearestExact),
    pure "aten._upsample_nearest_exact2d.default" => |cx, a| resample(cx, a, 2, Filter::NearestExact),
    pure "aten._upsample_nearest_exact3d.default" => |cx, a| resample(cx, a, 3, Filter::NearestExact),
    pure "aten._upsample_nearest_exact1d.vec" => |cx, a| resample(cx, a, 1, Filter::NearestExact),
    pure "aten._upsample_nearest_exact2d.vec" => |cx, a| resample(cx, a, 2, Filter::NearestExact),
    pure "aten._upsample_nearest_exact3d.vec" => |cx, a| resample(cx, a, 3, Filter::NearestExact),
    pure "aten.upsample_linear1d.default" => |cx, a| resample(cx, a, 1, Filter::Linear),
    pure "aten.upsample_bilinear2d.default" => |cx, a| resample(cx, a, 2, Filter::Linear),
    pure "aten.upsample_trilinear3d.default" => |cx, a| resample(cx, a, 3, Filter::Linear),
    pure "aten.upsample_linear1d.vec" => |cx, a| resample(cx, a, 1, Filter::Linear),
    pure "aten.upsample_bilinear2d.vec" => |cx, a| resample(cx, a, 2, Filter::Linear),
    pure "aten.upsample_trilinear3d.vec" => |cx, a| resample(cx, a, 3, Filter::Linear),
    pure "aten.upsample_bicubic2d.default" => |cx, a| resample(cx, a, 2, Filter::Cubic),
    pure "aten.upsample_bicubic2d.vec" => |cx, a| resample(cx, a, 2, Filter::Cubic),
}

/// How values between elements are found.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filter {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
}

/// One axis of the resampling: the sizes and the explicit scale, if the program gives one.
pub(crate) struct Scaled {
    pub(crate) input: Expr,
    pub(crate) output: Expr,
    pub(crate) scale: Option<f64>,
    /// By how much the results may outnumber the elements exactly, and whether they do, as 1 or 0: then that is the scale.
    multiple: Option<(i64, Expr)>,
}

impl Scaled {
    pub(crate) fn new(input: Expr, output: Expr, scale: Option<f64>) -> Scaled {
        Scaled { input, output, scale, multiple: None }
    }

    /// PyTorch copies elements where there are exactly as many results, or up to `most` times as many, whatever the scale says.
    pub(crate) fn copying(mut self, most: i64, ranges: &dyn Ranges) -> Scaled {
        let Some((p, q)) = self.scale.map(rational) else { return self };
        let times = p / q;
        if p % q == 0 || !(1..=most).contains(&times) {
            return self;
        }
        let is_multiple = Condition::compare(self.output.clone(), Relation::Eq, &self.input * times);
        let indicator = is_multiple.indicator(ranges);
        if indicator.is(1) {
            self.scale = None;
        } else if !indicator.is(0) {
            self.multiple = Some((times, indicator));
        }
        self
    }
}

/// The image and, for each spatial axis, sizes and scale.
pub(crate) fn scaled_axes(
    cx: &mut Context,
    a: &Args,
    spatial: usize,
) -> Result<(ValueId, Vec<Scaled>), RuleError> {
    let x = a.tensor("self").or_else(|_| a.tensor("input"))?;
    let own = cx.b.shape(x);
    if own.len() != spatial + 2 {
        return Err(RuleError::Malformed(format!("an image of {spatial} axes has two more")));
    }
    let scales = scales(a, spatial)?;
    let outputs = if a.has("output_size") {
        spread_syms(&a.syms("output_size")?, spatial)?
    } else {
        (0..spatial).map(|k| scaled_size(cx, &own[k + 2], scales[k])).collect::<Result<_, _>>()?
    };
    for size in own[1..].iter().chain(&outputs) {
        let exists = Condition::compare(size.clone(), Relation::Ge, 1);
        cx.b.require(exists, "an image without elements cannot be resampled");
    }
    let axes = own[2..].iter().zip(outputs).zip(scales);
    Ok((x, axes.map(|((input, output), scale)| Scaled::new(input.clone(), output, scale)).collect()))
}

/// `floor(size * scale)`.
fn scaled_size(cx: &Context, size: &Expr, scale: Option<f64>) -> Result<Expr, RuleError> {
    let scale =
        scale.ok_or_else(|| RuleError::Malformed("neither a size nor a scale is given".to_owned()))?;
    Ok(match size.as_int() {
        Some(size) => Expr::int((size as f64 * scale) as i64),
        None => {
            let (p, q) = rational(scale);
            (size * p).floor_div_in(&Expr::int(q), cx.b.ranges())
        }
    })
}

pub(crate) fn scales(a: &Args, spatial: usize) -> Result<Vec<Option<f64>>, RuleError> {
    let positive = |scale: f64| if scale > 0.0 { Some(scale) } else { None };
    if let Some(Arg::Floats(_) | Arg::Float(_) | Arg::Ints(_)) = a.raw("scale_factors") {
        let mut factors = a.floats("scale_factors")?;
        if let [one] = factors.as_slice() {
            factors = vec![*one; spatial];
        }
        if factors.len() == spatial {
            return Ok(factors.into_iter().map(positive).collect());
        }
        if !factors.is_empty() {
            return Err(RuleError::Malformed(format!("{} scales for {spatial} axes", factors.len())));
        }
    }
    let names: &[&str] = if spatial == 1 { &["scales"] } else { &["scales_d", "scales_h", "scales_w"] };
    let names = &names[names.len() - spatial.min(names.len())..];
    names.iter().map(|name| Ok(a.opt_scalar(name)?.and_then(|scale| positive(scale.to_f64())))).collect()
}

/// A fraction equal to `value` up to rounding, by its continued fraction.
fn rational(value: f64) -> (i64, i64) {
    let (mut p, mut q, mut last_p, mut last_q) = (1i64, 0i64, 0i64, 1i64);
    let mut rest = value;
    loop {
        let whole = rest.floor();
        let (next_p, next_q) = (whole as i64 * p + last_p, whole as i64 * q + last_q);
        if next_q > 1_000_000 || next_p > 1_000_000_000 {
            break;
        }
        (last_p, last_q, p, q) = (p, q, next_p, next_q);
        if (value - p as f64 / q as f64).abs() <= value * 1e-12 || rest - whole < 1e-12 {
            break;
        }
        rest = 1.0 / (rest - whole);
    }
    (p.max(1), q.max(1))
}

/// Input elements per output element, as a fraction.
pub(crate) fn ratio(axis: &Scaled, align: bool, ranges: &dyn Ranges) -> (Expr, Expr) {
    if align {
        let steps = &axis.output - 1;
        // A single element is the first.
        let input = if steps.is(0) { Expr::int(0) } else { &axis.input - 1 };
        return (input, steps.maximum_in(&Expr::int(1), ranges));
    }
    match axis.scale {
        Some(scale) => {
            let (p, q) = rational(scale);
            let Some((times, is_multiple)) = &axis.multiple else { return (Expr::int(q), Expr::int(p)) };
            (is_multiple * (p - times * q) + times * q, Expr::int(times * p))
        }
        None => (axis.input.clone(), axis.output.clone()),
    }
}

fn resample(cx: &mut Context, a: &Args, spatial: usize, filter: Filter) -> Rule {
    let (x, axes) = scaled_axes(cx, a, spatial)?;
    let align = a.bool_or("align_corners", false)?;
    let dtype = cx.b.dtype(x);
    let most = match filter {
        Filter::Nearest if spatial == 2 => 2,
        Filter::Linear => 1,
        Filter::Cubic if dtype == DType::U8 => 1,
        Filter::Nearest | Filter::NearestExact | Filter::Cubic => 0,
    };
    let axes: Vec<Scaled> = axes.into_iter().map(|axis| axis.copying(most, cx.b.ranges())).collect();
    if matches!(filter, Filter::Nearest | Filter::NearestExact) {
        let mut result = x;
        for (k, axis) in axes.iter().enumerate() {
            result = nearest(cx, result, k + 2, axis, filter == Filter::NearestExact)?;
        }
        return Ok(result.into());
    }
    let wide = if dtype.is_float() { dtype.compute() } else { DType::F32 };
    let mut result = cx.b.cast(x, wide);
    // Innermost axis first: bytes are rounded after each pass, so that the order shows.
    for (k, axis) in axes.iter().enumerate().rev() {
        let line = Line { axis: k + 2, scaled: axis, align };
        let taps = line.taps(cx, filter, wide)?;
        result = line.weighted(cx, result, &taps)?;
        if dtype == DType::U8 {
            let bytes = rounded(cx, result, dtype);
            result = cx.b.cast(bytes, wide);
        }
    }
    Ok(rounded(cx, result, dtype).into())
}

/// Integers round to nearest; images of bytes round halves up and saturate.
pub(crate) fn rounded(cx: &mut Context, x: ValueId, dtype: DType) -> ValueId {
    if dtype.is_float() {
        return cx.b.cast(x, dtype);
    }
    if dtype != DType::U8 {
        let whole = cx.unary(Rounding::Round, x);
        return cx.b.cast(whole, dtype);
    }
    let half = cx.b.full_like(0.5, x);
    // The operands are of one type and shape.
    let shifted = cx.add(x, half).unwrap_or(x);
    let whole = cx.unary(Rounding::Floor, shifted);
    let (low, high) = (cx.b.full_like(0.0, whole), cx.b.full_like(255.0, whole));
    let bounded =
        cx.binary(BinaryOp::Maximum, whole, low).and_then(|x| cx.binary(BinaryOp::Minimum, x, high));
    let bounded = bounded.unwrap_or(whole);
    cx.b.cast(bounded, dtype)
}

/// The operand read at `position` (over the result's axes) of an axis that gets another size.
fn along(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    size: &Expr,
    position: Expr,
) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x);
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    shape[axis] = size.clone();
    coords[axis] = position;
    Ok(cx.b.view(x, &shape, coords)?)
}

/// Positions as PyTorch computes them in `f32` where sizes are fixed; they differ from the exact fraction only where
/// that is within rounding of a whole number.
fn nearest_table(axis: &Scaled, exact: bool) -> Option<Vec<i64>> {
    let (input, output) = (axis.input.as_int()?, axis.output.as_int()?);
    let scale = match axis.scale {
        Some(scale) => (1.0 / scale) as f32,
        None => input as f32 / output as f32,
    };
    let offset = if exact { 0.5f32 } else { 0.0 };
    let position = |i: i64| (((i as f32 + offset) * scale).floor() as i64).min(input - 1);
    Some((0..output).map(position).collect())
}

/// Which element is nearest, over the axis of the result.
pub(crate) enum Nearest {
    Position(Expr),
    /// A position for each, where rounding decides.
    Table(Vec<i64>),
}

/// Of a result of `shape`.
pub(crate) fn nearest_of(cx: &Context, axis: usize, scaled: &Scaled, shape: &[Expr], exact: bool) -> Nearest {
    let (p, q) = ratio(scaled, false, cx.b.ranges());
    let at = Expr::axis(axis);
    let ranges = cx.b.axis_ranges(shape);
    let position = if exact {
        (&(&(&at * 2) + 1) * &p).floor_div_in(&(&q * 2), &ranges)
    } else {
        (&at * &p).floor_div_in(&q, &ranges)
    };
    let position = position.minimum_in(&(&scaled.input - 1), &ranges);
    let symbol = crate::symbolic::Symbol::axis(u32::try_from(axis).unwrap_or(0));
    let agrees = |(wanted, i): (&i64, i64)| {
        position.evaluate(&|other| (other == symbol).then_some(i)) == Some(*wanted)
    };
    match nearest_table(scaled, exact) {
        Some(table) if !table.iter().zip(0i64..).all(agrees) => Nearest::Table(table),
        _ => Nearest::Position(position),
    }
}

fn nearest(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    scaled: &Scaled,
    exact: bool,
) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x);
    shape[axis] = scaled.output.clone();
    match nearest_of(cx, axis, scaled, &shape, exact) {
        Nearest::Position(position) => along(cx, x, axis, &scaled.output, position),
        Nearest::Table(table) => {
            let index = cx.b.int_vector(&table);
            let index = cx.trailing_ones(index, shape.len() - axis)?;
            Ok(cx.b.gather(x, &[index], with_indirect(shape.len(), axis), &shape)?)
        }
    }
}

/// The coordinates of all axes, of which one follows an index.
pub(crate) fn with_indirect(rank: usize, axis: usize) -> Vec<Coord> {
    let coord = |k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) };
    (0..rank).map(coord).collect()
}

/// Positions over the axis that is interpolated, and weights, vectors along it.
type Taps = Vec<(Expr, ValueId)>;

/// One axis to interpolate.
pub(crate) struct Line<'a> {
    pub(crate) axis: usize,
    pub(crate) scaled: &'a Scaled,
    pub(crate) align: bool,
}

impl Line<'_> {
    /// What each element is a weighted sum of.
    pub(crate) fn taps(&self, cx: &mut Context, filter: Filter, dtype: DType) -> Result<Taps, RuleError> {
        match filter {
            Filter::Cubic => cubic_taps(cx, self, dtype),
            Filter::Linear => linear_taps(cx, self, dtype),
            Filter::Nearest | Filter::NearestExact => {
                Err(RuleError::Malformed("what is nearest has no weights".to_owned()))
            }
        }
    }

    /// The whole part of the source position over axis `at`; may be -1 where nothing clamps it.
    fn whole(&self, cx: &Context, at: usize) -> Expr {
        let (p, q) = ratio(self.scaled, self.align, cx.b.ranges());
        let at = Expr::axis(at);
        let ranges = cx.b.ranges();
        if self.align {
            return (&at * &p).floor_div_in(&q, ranges);
        }
        // (i + 1/2) p / q - 1/2
        (&(&(&(&at * 2) + 1) * &p) - &q).floor_div_in(&(&q * 2), ranges)
    }

    /// The source position minus `whole` (both over the one axis of a vector), as a vector.
    fn fraction(&self, cx: &mut Context, whole: &Expr, dtype: DType) -> Result<ValueId, RuleError> {
        let (p, q) = ratio(self.scaled, self.align, cx.b.ranges());
        let shape = [self.scaled.output.clone()];
        let at = Expr::axis(0);
        // Exact in integers up to one division: no cancellation.
        let (numerator, denominator) = if self.align {
            (&(&at * &p) - &(whole * &q), q)
        } else {
            (&(&(&(&at * 2) + 1) * &p) - &(&(&(whole * 2) + 1) * &q), &q * 2)
        };
        let numerator = cx.b.index(numerator, &shape);
        let numerator = cx.b.cast(numerator, dtype);
        let denominator = cx.b.index(denominator, &shape);
        let denominator = cx.b.cast(denominator, dtype);
        cx.div(numerator, denominator)
    }

    /// The sum of the operand at positions times weights, vectors along the axis.
    fn weighted(&self, cx: &mut Context, x: ValueId, taps: &[(Expr, ValueId)]) -> Result<ValueId, RuleError> {
        let behind = cx.b.rank(x) - self.axis;
        let mut sum = None;
        for (position, weight) in taps {
            let value = along(cx, x, self.axis, &self.scaled.output, position.clone())?;
            let weight = cx.trailing_ones(*weight, behind)?;
            let term = cx.mul(value, weight)?;
            sum = Some(match sum {
                Some(sum) => cx.add(sum, term)?,
                None => term,
            });
        }
        sum.ok_or_else(|| RuleError::Malformed("no taps".to_owned()))
    }

    fn clamped(&self, cx: &Context, position: &Expr) -> Expr {
        let ranges = cx.b.ranges();
        position.maximum_in(&Expr::int(0), ranges).minimum_in(&(&self.scaled.input - 1), ranges)
    }
}

/// Positions of two elements, and their weights.
fn linear_taps(cx: &mut Context, line: &Line, dtype: DType) -> Result<Taps, RuleError> {
    // Positions before the first element count as on it.
    let low = |cx: &Context, at: usize| line.clamped(cx, &line.whole(cx, at));
    let whole = low(cx, 0);
    let fraction = line.fraction(cx, &whole, dtype)?;
    let (zero, one) = (cx.b.full_like(0.0, fraction), cx.b.full_like(1.0, fraction));
    let high_weight = cx.binary(BinaryOp::Maximum, fraction, zero)?;
    let high_weight = cx.binary(BinaryOp::Minimum, high_weight, one)?;
    let low_weight = cx.sub(one, high_weight)?;
    let low = low(cx, line.axis);
    let high = line.clamped(cx, &(&low + 1));
    Ok(vec![(low, low_weight), (high, high_weight)])
}

/// The coefficient of cubic convolution that PyTorch uses (Keys, "Cubic convolution interpolation", 1981).
pub(crate) const CUBIC: f64 = -0.75;

fn cubic_taps(cx: &mut Context, line: &Line, dtype: DType) -> Result<Taps, RuleError> {
    let whole = line.whole(cx, 0);
    let fraction = line.fraction(cx, &whole, dtype)?;
    let weights = cubic_weights(cx, fraction)?;
    let whole = line.whole(cx, line.axis);
    let positions = (-1..).map(|offset| line.clamped(cx, &(&whole + offset)));
    Ok(positions.zip(weights).collect())
}

/// Weights of the elements at -1, 0, 1 and 2 from the one before a position, from the fraction behind it.
pub(crate) fn cubic_weights(cx: &mut Context, t: ValueId) -> Result<[ValueId; 4], RuleError> {
    let one = cx.b.full_like(1.0, t);
    let rest = cx.sub(one, t)?;
    let (before, after) = (cx.add(t, one)?, cx.add(rest, one)?);
    Ok([cubic_far(cx, before)?, cubic_near(cx, t)?, cubic_near(cx, rest)?, cubic_far(cx, after)?])
}

/// A polynomial of third degree by Horner's scheme.
fn polynomial(cx: &mut Context, x: ValueId, coefficients: [f64; 4]) -> Result<ValueId, RuleError> {
    let mut value = cx.b.full_like(coefficients[0], x);
    for coefficient in &coefficients[1..] {
        let product = cx.mul(value, x)?;
        value = cx.with_number(BinaryOp::Add, product, *coefficient)?;
    }
    Ok(value)
}

fn cubic_near(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    polynomial(cx, x, [CUBIC + 2.0, -(CUBIC + 3.0), 0.0, 1.0])
}

fn cubic_far(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    polynomial(cx, x, [CUBIC, -5.0 * CUBIC, 8.0 * CUBIC, -4.0 * CUBIC])
}

#[cfg(test)]
mod tests {
    use super::rational;

    #[test]
    fn scales_are_small_fractions() {
        assert_eq!(rational(2.0), (2, 1));
        assert_eq!(rational(0.5), (1, 2));
        assert_eq!(rational(1.7), (17, 10));
        let (p, q) = rational(std::f64::consts::SQRT_2);
        assert!((p as f64 / q as f64 - std::f64::consts::SQRT_2).abs() < 1e-11);
    }
}
