//! Sampling images at positions given as data, and the positions of affine maps.

use super::interpolate::cubic_weights;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Coord, FloatBinary, IntBinary, Relation, Rounding, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.grid_sampler.default" => sample,
    pure "aten.grid_sampler_2d.default" => sample,
    pure "aten.grid_sampler_3d.default" => sample,
    pure "aten._grid_sampler_2d_cpu_fallback.default" => sample,
    pure "aten.affine_grid_generator.default" => |cx, a| {
        let (theta, size) = (a.tensor("theta")?, a.syms("size")?);
        Ok(affine_grid(cx, theta, &size, a.bool_or("align_corners", false)?)?.into())
    },
}

/// How elements between those of the image are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interpolation {
    Linear,
    Nearest,
    Cubic,
}

/// What is beyond the image.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Beyond {
    Zeros,
    Border,
    Reflection,
}

/// One position along one axis of the image: where, how much it counts, and whether it is inside.
#[derive(Clone, Copy)]
struct Tap {
    index: ValueId,
    /// `None` counts fully.
    weight: Option<ValueId>,
    inside: ValueId,
}

/// How one axis of the image is sampled.
struct Sampler {
    size: Expr,
    beyond: Beyond,
    align: bool,
}

fn sample(cx: &mut Context, a: &Args) -> Rule {
    let (x, grid) = (a.tensor("input")?, a.tensor("grid")?);
    let beyond = match a.int_or("padding_mode", 0)? {
        0 => Beyond::Zeros,
        1 => Beyond::Border,
        2 => Beyond::Reflection,
        other => return Err(RuleError::Malformed(format!("padding mode {other}"))),
    };
    let interpolation = match a.int_or("interpolation_mode", 0)? {
        0 => Interpolation::Linear,
        1 => Interpolation::Nearest,
        2 => Interpolation::Cubic,
        other => return Err(RuleError::Malformed(format!("interpolation mode {other}"))),
    };
    Ok(grid_sample(cx, [x, grid], interpolation, beyond, a.bool_or("align_corners", false)?)?.into())
}

/// An image at the positions of a grid; -1 and 1 are the middles of its outermost elements where these are aligned, and its edges
/// otherwise.
pub(crate) fn grid_sample(
    cx: &mut Context,
    [x, grid]: [ValueId; 2],
    interpolation: Interpolation,
    beyond: Beyond,
    align: bool,
) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    let spatial = own.len().saturating_sub(2);
    if spatial == 0 || cx.b.rank(grid) != own.len() {
        return Err(RuleError::Malformed("an image and a grid of as many axes are needed".to_owned()));
    }
    let dtype = cx.b.dtype(x);
    let wide = dtype.compute();
    let (x, grid) = (cx.b.cast(x, wide), cx.b.cast(grid, wide));
    let mut taps = Vec::new();
    for k in 0..spatial {
        // The grid names the innermost axis first.
        let place = Expr::int(super::support::length(spatial - 1 - k));
        let position = cx.b.pick(grid, spatial + 1, &place)?;
        let sampler = Sampler { size: own[k + 2].clone(), beyond, align };
        taps.push(match interpolation {
            Interpolation::Linear => sampler.linear(cx, position)?,
            Interpolation::Nearest => sampler.nearest(cx, position)?,
            Interpolation::Cubic => sampler.cubic(cx, position)?,
        });
    }
    let result = combine(cx, x, &taps)?;
    Ok(cx.b.cast(result, dtype))
}

impl Sampler {
    fn last(&self, cx: &mut Context, like: ValueId) -> ValueId {
        self.number(cx, &self.size - 1, like)
    }

    /// A size as a number of the type of `like`.
    fn number(&self, cx: &mut Context, expr: Expr, like: ValueId) -> ValueId {
        let dtype = cx.b.dtype(like);
        let value = cx.b.index(expr, &[]);
        cx.b.cast(value, dtype)
    }

    /// From -1 .. 1 to positions in the image.
    fn position(&self, cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
        let shifted = cx.with_number(BinaryOp::Add, x, 1.0)?;
        if self.align {
            let half = cx.with_number(FloatBinary::Div, shifted, 2.0)?;
            let last = self.last(cx, x);
            return cx.mul(half, last);
        }
        let size = self.number(cx, self.size.clone(), x);
        let scaled = cx.mul(shifted, size)?;
        let moved = cx.with_number(BinaryOp::Sub, scaled, 1.0)?;
        cx.with_number(FloatBinary::Div, moved, 2.0)
    }

    /// Brings positions into the image, as the mode says.
    fn confine(&self, cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
        match self.beyond {
            Beyond::Zeros => Ok(x),
            Beyond::Border => self.clip(cx, x),
            Beyond::Reflection => {
                let (low, high) = if self.align {
                    (Expr::int(0), &(&self.size - 1) * 2)
                } else {
                    (Expr::int(-1), &(&self.size * 2) - 1)
                };
                let reflected = self.reflect(cx, x, &low, &high)?;
                self.clip(cx, reflected)
            }
        }
    }

    fn clip(&self, cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
        let last = self.last(cx, x);
        // NaN becomes 0.
        let low = cx.b.full_like(0.0, x);
        let x = cx.binary(BinaryOp::Fmax, x, low)?;
        cx.binary(BinaryOp::Minimum, x, last)
    }

    /// Reflects at `low / 2` and `high / 2` until it lies between.
    fn reflect(&self, cx: &mut Context, x: ValueId, low: &Expr, high: &Expr) -> Result<ValueId, RuleError> {
        if cx.b.same_size(low, high) {
            return Ok(cx.b.full_like(0.0, x));
        }
        let start = self.number(cx, low.clone(), x);
        let start = cx.with_number(FloatBinary::Div, start, 2.0)?;
        let span = self.number(cx, high - low, x);
        let span = cx.with_number(FloatBinary::Div, span, 2.0)?;
        let distance = cx.sub(x, start)?;
        let distance = cx.unary(UnaryOp::Abs, distance);
        let extra = cx.binary(BinaryOp::Fmod, distance, span)?;
        let flips = cx.div(distance, span)?;
        let flips = cx.unary(Rounding::Floor, flips);
        let odd = cx.with_number(BinaryOp::Fmod, flips, 2.0)?;
        let even = cx.with_number(Relation::Eq, odd, 0.0)?;
        let mirrored = cx.sub(span, extra)?;
        let offset = cx.b.select(even, extra, mirrored)?;
        cx.add(offset, start)
    }

    /// The element at a whole position.
    fn tap(&self, cx: &mut Context, at: ValueId, weight: Option<ValueId>) -> Result<Tap, RuleError> {
        let last = self.last(cx, at);
        let above = cx.with_number(Relation::Ge, at, 0.0)?;
        let below = cx.binary(Relation::Le, at, last)?;
        let inside = cx.binary(IntBinary::And, above, below)?;
        let zero = cx.b.full_like(0.0, at);
        // Whatever is outside, NaN included, must not reach the conversion to an integer.
        let safe = cx.b.select(inside, at, zero)?;
        Ok(Tap { index: cx.b.cast(safe, DType::I64), weight, inside })
    }

    fn nearest(&self, cx: &mut Context, x: ValueId) -> Result<Vec<Tap>, RuleError> {
        let position = self.position(cx, x)?;
        let position = self.confine(cx, position)?;
        let whole = cx.unary(Rounding::Round, position);
        Ok(vec![self.tap(cx, whole, None)?])
    }

    fn linear(&self, cx: &mut Context, x: ValueId) -> Result<Vec<Tap>, RuleError> {
        let position = self.position(cx, x)?;
        let position = self.confine(cx, position)?;
        let low = cx.unary(Rounding::Floor, position);
        let high = cx.with_number(BinaryOp::Add, low, 1.0)?;
        let high_weight = cx.sub(position, low)?;
        let low_weight = cx.sub(high, position)?;
        Ok(vec![self.tap(cx, low, Some(low_weight))?, self.tap(cx, high, Some(high_weight))?])
    }

    fn cubic(&self, cx: &mut Context, x: ValueId) -> Result<Vec<Tap>, RuleError> {
        let position = self.position(cx, x)?;
        let whole = cx.unary(Rounding::Floor, position);
        let fraction = cx.sub(position, whole)?;
        let weights = cubic_weights(cx, fraction)?;
        let mut taps = Vec::new();
        for (weight, offset) in weights.into_iter().zip([-1.0, 0.0, 1.0, 2.0]) {
            let at = cx.with_number(BinaryOp::Add, whole, offset)?;
            let at = self.confine(cx, at)?;
            taps.push(self.tap(cx, at, Some(weight))?);
        }
        Ok(taps)
    }
}

/// Sums the image over all combinations of taps.
fn combine(cx: &mut Context, x: ValueId, taps: &[Vec<Tap>]) -> Result<ValueId, RuleError> {
    let mut choices: Vec<Vec<Tap>> = vec![vec![]];
    for axis in taps {
        choices = choices
            .iter()
            .flat_map(|head| axis.iter().map(|tap| [head.as_slice(), &[*tap]].concat()))
            .collect();
    }
    let mut sum = None;
    for choice in choices {
        let term = at_taps(cx, x, &choice)?;
        sum = Some(match sum {
            Some(sum) => cx.add(sum, term)?,
            None => term,
        });
    }
    sum.ok_or_else(|| RuleError::Malformed("an image without axes".to_owned()))
}

/// The image at one tap of each axis, weighted; zero outside.
fn at_taps(cx: &mut Context, x: ValueId, taps: &[Tap]) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    let mut shape = own[..2].to_vec();
    shape.extend_from_slice(&cx.b.shape(taps[0].index)[1..]);
    let mut indices = Vec::new();
    let (mut inside, mut weight) = (taps[0].inside, None);
    for (k, tap) in taps.iter().enumerate() {
        indices.push(cx.b.unsqueeze(tap.index, 1)?);
        if k > 0 {
            inside = cx.binary(IntBinary::And, inside, tap.inside)?;
        }
        weight = match (weight, tap.weight) {
            (Some(weight), Some(more)) => Some(cx.mul(weight, more)?),
            (weight, more) => weight.or(more),
        };
    }
    let mut coords = vec![Coord::Expr(Expr::axis(0)), Coord::Expr(Expr::axis(1))];
    coords.extend((0..taps.len()).map(Coord::Indirect));
    let value = cx.b.gather(x, &indices, coords, &shape)?;
    let inside = cx.b.unsqueeze(inside, 1)?;
    let zero = cx.b.full_like(0.0, value);
    let value = cx.b.select(inside, value, zero)?;
    // Weighted last: a weight of NaN shows even where the tap is outside.
    match weight {
        Some(weight) => {
            let weight = cx.b.unsqueeze(weight, 1)?;
            cx.mul(value, weight)
        }
        None => Ok(value),
    }
}

/// `theta [n, d, d + 1]` applied to the centres (or corners) of an image's elements in -1 .. 1.
pub(crate) fn affine_grid(
    cx: &mut Context,
    theta: ValueId,
    size: &[Expr],
    align: bool,
) -> Result<ValueId, RuleError> {
    let spatial = size.len().saturating_sub(2);
    let dtype = cx.b.dtype(theta);
    let theta = cx.b.cast(theta, dtype.compute());
    let mut shape = vec![size[0].clone()];
    shape.extend_from_slice(&size[2..]);
    shape.push(Expr::int(super::support::length(spatial)));
    let rank = shape.len();
    let mut result = None;
    for j in 0..=spatial {
        let coords = vec![Expr::axis(0), Expr::axis(rank - 1), Expr::int(super::support::length(j))];
        let mut term = cx.b.view(theta, &shape, coords)?;
        if j < spatial {
            // Columns go from the innermost axis outwards; the last one is the translation.
            let axis = spatial - j;
            let base = centre(cx, &shape[axis].clone(), axis, rank, align, dtype.compute())?;
            term = cx.mul(term, base)?;
        }
        result = Some(match result {
            Some(sum) => cx.add(sum, term)?,
            None => term,
        });
    }
    let result = result.ok_or_else(|| RuleError::Malformed("an image without axes".to_owned()))?;
    Ok(cx.b.cast(result, dtype))
}

/// Positions along an axis in -1 .. 1, shaped to broadcast against `rank` axes.
fn centre(
    cx: &mut Context,
    size: &Expr,
    axis: usize,
    rank: usize,
    align: bool,
    dtype: DType,
) -> Result<ValueId, RuleError> {
    // (2 i - (n - 1)) / (n - 1), or / n for centres.
    let mut shape = vec![Expr::int(1); rank];
    shape[axis] = size.clone();
    let numerator = cx.b.index(&(&(&Expr::axis(axis) * 2) - size) + 1, &shape);
    let steps = if align { (size - 1).maximum(&Expr::int(1)) } else { size.clone() };
    let denominator = cx.b.index(steps, &shape);
    let (numerator, denominator) = (cx.b.cast(numerator, dtype), cx.b.cast(denominator, dtype));
    cx.div(numerator, denominator)
}
