//! Discrete Fourier transforms along the last axis, of numbers whose parts are apart. Knows no operator.
//!
//! A length that is known when the model is compiled makes an `Op::Fourier`; any other is a product with the matrix of the
//! roots of unity, which is computed when the model runs.

use super::complex::parts::Parts;
use super::{Context, RuleError};
use crate::dtype::DType;
use crate::fourier::{Form, Fourier, Norm};
use crate::graph::{BinaryOp, Condition, FloatUnary, IntBinary, Relation, UnaryOp, ValueId};
use crate::symbolic::Expr;

/// The direction of a transform: the sign of the exponent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forward,
    Inverse,
}

/// Numbers to transform, of which the imaginary parts may be known to be 0.
#[derive(Clone, Copy)]
pub(crate) struct Signal {
    pub(crate) re: ValueId,
    pub(crate) im: Option<ValueId>,
}

/// Cosines and sines of the angles of the roots of unity, from numbers along the first axis to results along the second.
struct Roots {
    cos: ValueId,
    sin: ValueId,
}

impl Context {
    /// How many numbers of a transform of `n` real ones do not repeat others.
    pub(crate) fn half(&self, n: &Expr) -> Expr {
        n.floor_div_in(&Expr::int(2), self.b.ranges()) + 1
    }

    /// The transform of length `n` along the last axis.
    pub(crate) fn fourier(
        &mut self,
        x: Signal,
        size: &Expr,
        direction: Direction,
        norm: Norm,
    ) -> Result<Parts, RuleError> {
        let Some(n) = size.as_int() else {
            let roots = self.roots(x.re, size, [size, size], direction)?;
            let parts = self.product(x, &roots)?;
            return self.normalized(parts, size, norm);
        };
        let Some(im) = x.im else {
            let half = self.half_fourier(x.re, size, direction, norm)?;
            return self.mirrored(half, n);
        };
        let form = match direction {
            Direction::Forward => Form::Forward,
            Direction::Inverse => Form::Inverse,
        };
        let pairs = self.join(Parts { re: x.re, im })?;
        let result = self.b.fourier(Fourier { form, length: n, norm }, pairs)?;
        self.split(result)
    }

    /// The first `n / 2 + 1` numbers of the transform of real ones.
    pub(crate) fn half_fourier(
        &mut self,
        x: ValueId,
        size: &Expr,
        direction: Direction,
        norm: Norm,
    ) -> Result<Parts, RuleError> {
        let Some(n) = size.as_int() else {
            let roots = self.roots(x, size, [size, &self.half(size)], direction)?;
            let parts = self.product(Signal { re: x, im: None }, &roots)?;
            return self.normalized(parts, size, norm);
        };
        let half = self.b.fourier(Fourier { form: Form::ToHalf, length: n, norm }, x)?;
        let half = self.split(half)?;
        Ok(self.turned(half, direction == Direction::Inverse))
    }

    /// The `n` real numbers that are the transform of numbers of which `x` is the first half.
    pub(crate) fn real_fourier(
        &mut self,
        x: Signal,
        size: &Expr,
        direction: Direction,
        norm: Norm,
    ) -> Result<ValueId, RuleError> {
        let Some(n) = size.as_int() else {
            let x = x.each(self, |cx, x| cx.doubled(x, size))?;
            let roots = self.roots(x.re, size, [&self.half(size), size], direction)?;
            let parts = self.product(x, &roots)?;
            return Ok(self.normalized(parts, size, norm)?.re);
        };
        let im = match x.im {
            Some(im) => im,
            None => self.b.full_like(0.0, x.re),
        };
        let half = self.turned(Parts { re: x.re, im }, direction == Direction::Forward);
        let pairs = self.join(half)?;
        Ok(self.b.fourier(Fourier { form: Form::FromHalf, length: n, norm }, pairs)?)
    }

    /// Conjugated, if the direction is not that of the form: real numbers are on the other side.
    fn turned(&mut self, x: Parts, is_other: bool) -> Parts {
        if is_other { Parts { re: x.re, im: self.unary(UnaryOp::Neg, x.im) } } else { x }
    }

    /// All `n` numbers of a transform of real ones, of which the first half is there.
    fn mirrored(&mut self, half: Parts, n: i64) -> Result<Parts, RuleError> {
        let axis = self.b.rank(half.re) - 1;
        let mut part = |part, is_imaginary: bool| -> Result<ValueId, RuleError> {
            let rest = self.b.slice(part, axis, &Expr::int(1), &Expr::int((n - 1) / 2), 1)?;
            let rest = self.b.flip(rest, &[axis])?;
            let rest = if is_imaginary { self.unary(UnaryOp::Neg, rest) } else { rest };
            Ok(self.b.cat(&[part, rest], axis)?)
        };
        Ok(Parts { re: part(half.re, false)?, im: part(half.im, true)? })
    }

    // --- lengths that are known when the model runs --------------------------------------------------------------

    /// The roots for a transform of length `n` of so many numbers to so many, in the type of `x`.
    fn roots(
        &mut self,
        x: ValueId,
        n: &Expr,
        [from, to]: [&Expr; 2],
        direction: Direction,
    ) -> Result<Roots, RuleError> {
        self.b.require(Condition::compare(n.clone(), Relation::Ge, 1), "a Fourier transform of no numbers");
        let shape = [from.clone(), to.clone()];
        // Of whole turns nothing is left, so that angles stay exact.
        let turns = (&Expr::axis(0) * &Expr::axis(1)).modulo_in(n, &self.b.axis_ranges(&shape));
        let [turns, n] = [turns, n.clone()].map(|expr| {
            let index = self.b.index(expr, &shape);
            self.b.cast(index, DType::F64)
        });
        let angle = self.div(turns, n)?;
        let sign = if direction == Direction::Forward { -1.0 } else { 1.0 };
        let angle = self.with_number(BinaryOp::Mul, angle, sign * std::f64::consts::TAU)?;
        let dtype = self.b.dtype(x);
        let [cos, sin] = [FloatUnary::Cos, FloatUnary::Sin].map(|f| {
            let part = self.unary(f, angle);
            self.b.cast(part, dtype)
        });
        Ok(Roots { cos, sin })
    }

    /// The sums over the numbers of the last axis times their roots.
    fn product(&mut self, x: Signal, roots: &Roots) -> Result<Parts, RuleError> {
        let (re, im) = (self.rows(x.re, roots.cos)?, self.rows(x.re, roots.sin)?);
        let Some(own) = x.im else { return Ok(Parts { re, im }) };
        let (less, more) = (self.rows(own, roots.sin)?, self.rows(own, roots.cos)?);
        Ok(Parts { re: self.sub(re, less)?, im: self.add(im, more)? })
    }

    /// The rows of `x`, or the only one, times a matrix.
    fn rows(&mut self, x: ValueId, matrix: ValueId) -> Result<ValueId, RuleError> {
        if self.b.rank(x) > 1 {
            return Ok(self.b.matmul(x, matrix)?);
        }
        let row = self.b.unsqueeze(x, 0)?;
        let product = self.b.matmul(row, matrix)?;
        Ok(self.b.pick(product, 0, &Expr::int(0))?)
    }

    /// The first half of the spectrum of `n` real numbers, with those twice that stand for another.
    fn doubled(&mut self, x: ValueId, n: &Expr) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(x);
        let at = Expr::axis(shape.len() - 1);
        let first = self.index_is(Relation::Eq, at.clone(), &shape)?;
        let middle = self.index_is(Relation::Eq, &(&at * 2) - n, &shape)?;
        let alone = self.binary(IntBinary::Or, first, middle)?;
        let twice = self.with_number(BinaryOp::Mul, x, 2.0)?;
        Ok(self.b.select(alone, x, twice)?)
    }

    fn normalized(&mut self, x: Parts, n: &Expr, norm: Norm) -> Result<Parts, RuleError> {
        let dtype = self.b.dtype(x.re);
        let length = self.b.index(n.clone(), &[]);
        let length = self.b.cast(length, DType::F64);
        let by = match norm {
            Norm::One => return Ok(x),
            Norm::Root => self.unary(FloatUnary::Sqrt, length),
            Norm::Length => length,
        };
        let by = self.b.cast(by, dtype);
        Ok(Parts { re: self.div(x.re, by)?, im: self.div(x.im, by)? })
    }
}
