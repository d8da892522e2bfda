//! Elements of an image around positions, and their weights.

use super::super::super::call::unsupported;
use super::super::super::walk::Onnx;
use super::place::Place;
use super::{Axis, Scale};
use crate::dtype::DType;
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{BinaryOp, Coord, IntBinary, Relation, ValueId};
use crate::symbolic::Expr;

/// Which element is nearest to a position between two.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nearest {
    Floor,
    Ceil,
    HalfDown,
    HalfUp,
}

/// Elements before positions.
enum Whole {
    /// `top / bottom`, rounded down, over the results.
    Quotient(Expr, Expr),
    /// A vector of `i64`.
    Vector(ValueId),
}

impl Whole {
    /// Over axis `at` of the results.
    fn expr(cx: &Onnx, top: &Expr, bottom: &Expr, at: usize) -> Expr {
        let own = crate::symbolic::Symbol::axis(0);
        let ranges = cx.b.ranges();
        let top = top.substitute(&|symbol| (symbol == own).then(|| Expr::axis(at)), ranges);
        top.floor_div_in(bottom, ranges)
    }

    fn vector(&self, cx: &mut Onnx, axis: &Axis) -> ValueId {
        match self {
            Whole::Quotient(top, bottom) => {
                let expr = Whole::expr(cx, top, bottom, 0);
                cx.b.index(expr, std::slice::from_ref(&axis.output))
            }
            Whole::Vector(value) => *value,
        }
    }

    /// The image at the element that is `offset` behind, of which the first and the last repeat beyond the ends.
    fn read(&self, cx: &mut Onnx, x: ValueId, axis: &Axis, offset: i64) -> Result<ValueId, RuleError> {
        let (mut shape, own) = (cx.b.shape(x), axis.axis);
        let last = &axis.input - 1;
        shape[own] = axis.output.clone();
        let index = match self {
            Whole::Quotient(top, bottom) => {
                let place = &Whole::expr(cx, top, bottom, own) + offset;
                let ranges = cx.b.axis_ranges(&shape);
                let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
                coords[own] = place.maximum_in(&Expr::int(0), &ranges).minimum_in(&last, &ranges);
                return Ok(cx.b.view(x, &shape, coords)?);
            }
            Whole::Vector(value) => {
                let moved = cx.with_number(BinaryOp::Add, *value, offset)?;
                clamped(cx, moved, last)?
            }
        };
        let index = cx.trailing_ones(index, shape.len() - own)?;
        let coord = |k| if k == own { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) };
        Ok(cx.b.gather(x, &[index], (0..shape.len()).map(coord).collect(), &shape)?)
    }
}

/// Positions within the image.
fn clamped(cx: &mut Onnx, x: ValueId, last: Expr) -> Result<ValueId, RuleError> {
    let above = cx.with_number(BinaryOp::Maximum, x, 0i64)?;
    let last = cx.b.index(last, &[]);
    cx.binary(BinaryOp::Minimum, above, last)
}

/// Of what is not a number no position follows.
fn to_position(cx: &mut Onnx, x: &Formula) -> Result<ValueId, RuleError> {
    let far = (1i64 << 40) as f64;
    let bounded = x.is_nan().select(0.0, x.max(-far).min(far));
    let value = cx.formula(DType::F64, &bounded)?;
    Ok(cx.b.cast(value, DType::I64))
}

fn numerator(step: &Expr, start: &Expr) -> Expr {
    &(&Expr::axis(0) * step) + start
}

/// The element before each position.
fn before(cx: &mut Onnx, place: &Place) -> Result<Whole, RuleError> {
    Ok(match place {
        Place::Fraction { step, start, denominator } => {
            Whole::Quotient(numerator(step, start), denominator.clone())
        }
        Place::Number(at) => Whole::Vector(to_position(cx, &Formula::from(*at).floor())?),
    })
}

/// The image at the elements that are nearest.
pub(super) fn nearest(
    cx: &mut Onnx,
    x: ValueId,
    axis: &Axis,
    place: &Place,
    mode: Nearest,
) -> Result<ValueId, RuleError> {
    let whole = match place {
        Place::Fraction { step, start, denominator } => {
            let top = numerator(step, start);
            let (twice, bottom) = (&top * 2, denominator * 2);
            match mode {
                Nearest::Floor => Whole::Quotient(top, denominator.clone()),
                Nearest::Ceil => Whole::Quotient(&(&top + denominator) - 1, denominator.clone()),
                Nearest::HalfDown => Whole::Quotient(&(&twice + denominator) - 1, bottom),
                Nearest::HalfUp => Whole::Quotient(&twice + denominator, bottom),
            }
        }
        Place::Number(at) => {
            let at = Formula::from(*at);
            let rounded = match mode {
                Nearest::Floor => at.floor(),
                Nearest::Ceil => at.ceil(),
                Nearest::HalfDown => (at - 0.5).ceil(),
                Nearest::HalfUp => (at + 0.5).floor(),
            };
            Whole::Vector(to_position(cx, &rounded)?)
        }
    };
    whole.read(cx, x, axis, 0)
}

/// Weights by distance.
pub(super) struct Kernel {
    /// The coefficient of cubic convolution; linear interpolation without.
    pub(super) cubic: Option<f64>,
    /// Whether it grows with the elements of a result.
    pub(super) smooth: bool,
    /// Whether elements beyond the ends have no weight, instead of being the first or the last one.
    pub(super) without: bool,
}

impl Kernel {
    /// Elements on each side.
    fn reach(&self) -> i64 {
        if self.cubic.is_some() { 2 } else { 1 }
    }

    /// The weight at a distance that is not negative.
    fn weight(&self, x: &Formula) -> Formula {
        let Some(a) = self.cubic else { return (1.0 - x).max(0.0) };
        let near = ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0;
        let far = ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a;
        x.le(1.0).select(near, x.lt(2.0).select(far, 0.0))
    }

    /// Sums of elements around positions.
    pub(super) fn apply(
        &self,
        cx: &mut Onnx,
        x: ValueId,
        axis: &Axis,
        place: &Place,
    ) -> Result<ValueId, RuleError> {
        let whole = before(cx, place)?;
        if self.smooth { self.many(cx, x, axis, place, &whole) } else { self.few(cx, x, axis, place, &whole) }
    }

    /// How many elements of the image, at least one, are as long as one of the result, as a number; and how many elements the
    /// window has on each side.
    fn window(&self, cx: &mut Onnx, axis: &Axis) -> Result<(ValueId, Expr), RuleError> {
        match &axis.scale {
            Scale::Ratio(top, bottom) => {
                let larger = top.maximum_in(bottom, cx.b.ranges());
                let half = (&larger * self.reach()).ceil_div(top, cx.b.ranges());
                let [larger, top] = [larger, top.clone()].map(|size| cx.b.index(size, &[]));
                let length = cx.apply([larger, top], DType::F64, |[larger, top]| larger / top)?;
                Ok((length, half))
            }
            Scale::Data(scale) => {
                let length = cx.apply([*scale], DType::F64, |[scale]| (1.0 / scale).max(1.0))?;
                let reach = self.reach() as f64;
                let half = cx.apply([length], DType::F64, |[length]| (length * reach).ceil())?;
                Ok((length, cx.read_size(half, None)?))
            }
        }
    }

    /// How far each position is behind the element before it, as a vector.
    fn rest(&self, cx: &mut Onnx, axis: &Axis, place: &Place, whole: &Whole) -> Result<ValueId, RuleError> {
        let shape = std::slice::from_ref(&axis.output);
        match (place, whole) {
            (Place::Fraction { .. }, Whole::Quotient(top, bottom)) => {
                let rest = top - &(&Whole::expr(cx, top, bottom, 0) * bottom);
                let rest = cx.b.index(rest, shape);
                let bottom = cx.b.index(bottom.clone(), &[]);
                cx.apply([rest, bottom], DType::F64, |[rest, bottom]| rest / bottom)
            }
            (Place::Number(at), _) => {
                let whole = whole.vector(cx, axis);
                cx.apply([*at, whole], DType::F64, |[at, whole]| at - whole)
            }
            (Place::Fraction { .. }, Whole::Vector(_)) => Err(unsupported("a place without a fraction")),
        }
    }

    /// Interpolation between two or four elements.
    fn few(
        &self,
        cx: &mut Onnx,
        x: ValueId,
        axis: &Axis,
        place: &Place,
        whole: &Whole,
    ) -> Result<ValueId, RuleError> {
        let rest = self.rest(cx, axis, place, whole)?;
        let offsets: Vec<i64> = (1 - self.reach()..=self.reach()).collect();
        let mut weights = Vec::new();
        for offset in &offsets {
            let distance = (Formula::from(rest) - *offset as f64).abs();
            let weight = self.weight(&distance);
            let weight = cx.formula(DType::F64, &weight)?;
            weights.push(match self.without {
                true => {
                    let number = whole.vector(cx, axis);
                    let number = cx.with_number(BinaryOp::Add, number, *offset)?;
                    inside_only(cx, weight, number, &axis.input)?
                }
                false => weight,
            });
        }
        if self.without {
            let total = weights[1..].iter().try_fold(weights[0], |sum, weight| cx.add(sum, *weight))?;
            for weight in &mut weights {
                *weight = cx.div(*weight, total)?;
            }
        }
        let (dtype, behind) = (cx.b.dtype(x), cx.b.rank(x) - axis.axis);
        let mut sum = None;
        for (offset, weight) in offsets.iter().zip(weights) {
            let value = whole.read(cx, x, axis, *offset)?;
            let weight = cx.b.cast(weight, dtype);
            let weight = cx.trailing_ones(weight, behind)?;
            let term = cx.mul(value, weight)?;
            sum = Some(match sum {
                Some(sum) => cx.add(sum, term)?,
                None => term,
            });
        }
        sum.ok_or_else(|| unsupported("a kernel without elements"))
    }

    /// Means over a window that grows where the image shrinks, as another axis that is summed.
    fn many(
        &self,
        cx: &mut Onnx,
        x: ValueId,
        axis: &Axis,
        place: &Place,
        whole: &Whole,
    ) -> Result<ValueId, RuleError> {
        let (length, half) = self.window(cx, axis)?;
        let shape = [axis.output.clone(), &half * 2];
        let rest = self.rest(cx, axis, place, whole)?;
        let (rest, number) = (cx.b.unsqueeze(rest, 1)?, whole.vector(cx, axis));
        // The window ends `half` elements behind the position.
        let offset = cx.b.index(&(&Expr::axis(1) + 1) - &half, &shape);
        let number = cx.b.unsqueeze(number, 1)?;
        let number = cx.add(number, offset)?;
        let distance = cx.apply([offset, rest, length], DType::F64, |[offset, rest, length]| {
            (offset - rest).abs() / length
        })?;
        let weight = self.weight(&distance.into());
        let mut weight = cx.formula(DType::F64, &weight)?;
        if self.without {
            weight = inside_only(cx, weight, number, &axis.input)?;
        }
        let total = cx.sum(weight, &[1], true)?;
        let weight = cx.div(weight, total)?;
        self.summed(cx, x, axis, whole, weight, number)
    }

    fn summed(
        &self,
        cx: &mut Onnx,
        x: ValueId,
        axis: &Axis,
        whole: &Whole,
        weight: ValueId,
        number: ValueId,
    ) -> Result<ValueId, RuleError> {
        let (mut shape, own, rank) = (cx.b.shape(x), axis.axis, cx.b.rank(x));
        let taps = cx.b.shape(weight)[1].clone();
        shape[own] = axis.output.clone();
        shape.push(taps.clone());
        let mut along = vec![Expr::int(1); rank - own + 1];
        along[0] = axis.output.clone();
        along[rank - own] = taps.clone();
        let dtype = cx.b.dtype(x);
        let weight = cx.b.cast(weight, dtype);
        let weight = cx.b.reshape(weight, &along)?;
        let last = &axis.input - 1;
        let values = match whole {
            Whole::Quotient(top, bottom) => {
                let ranges = cx.b.axis_ranges(&shape);
                let half = taps.floor_div_in(&Expr::int(2), &ranges);
                let offset = &(&Expr::axis(rank) + 1) - &half;
                let place = &Whole::expr(cx, top, bottom, own) + &offset;
                let mut coords: Vec<Expr> = (0..rank).map(Expr::axis).collect();
                coords[own] = place.maximum_in(&Expr::int(0), &ranges).minimum_in(&last, &ranges);
                cx.b.view(x, &shape, coords)?
            }
            Whole::Vector(_) => {
                let index = clamped(cx, number, last)?;
                let index = cx.b.reshape(index, &along)?;
                let coord = |k| if k == own { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) };
                cx.b.gather(x, &[index], (0..rank).map(coord).collect(), &shape)?
            }
        };
        let terms = cx.mul(values, weight)?;
        cx.sum(terms, &[rank], false)
    }
}

/// Weights of the elements that there are, and zeros.
fn inside_only(cx: &mut Onnx, weight: ValueId, number: ValueId, size: &Expr) -> Result<ValueId, RuleError> {
    let above = cx.with_number(Relation::Ge, number, 0i64)?;
    let size = cx.b.index(size.clone(), &[]);
    let below = cx.binary(Relation::Lt, number, size)?;
    let inside = cx.binary(IntBinary::And, above, below)?;
    let none = cx.b.full_like(0.0, weight);
    Ok(cx.b.select(inside, weight, none)?)
}
