//! Discrete Fourier transforms along the last axis, of numbers whose parts are apart. Knows no operator.

use super::parts::Parts;
use super::{Context, RuleError};
use crate::fourier::{Form, Fourier, Norm};
use crate::graph::{UnaryOp, ValueId};
use crate::symbolic::Expr;

/// The direction of a transform: the sign of the exponent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Forward,
    Inverse,
}

/// Numbers to transform, of which the imaginary parts may be known to be 0.
#[derive(Clone, Copy)]
pub(super) struct Signal {
    pub(super) re: ValueId,
    pub(super) im: Option<ValueId>,
}

impl Context {
    /// The transform of length `n` along the last axis.
    pub(super) fn fourier(
        &mut self,
        x: Signal,
        n: i64,
        direction: Direction,
        norm: Norm,
    ) -> Result<Parts, RuleError> {
        let Some(im) = x.im else {
            let half = self.half_fourier(x.re, n, direction, norm)?;
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
    pub(super) fn half_fourier(
        &mut self,
        x: ValueId,
        n: i64,
        direction: Direction,
        norm: Norm,
    ) -> Result<Parts, RuleError> {
        let half = self.b.fourier(Fourier { form: Form::ToHalf, length: n, norm }, x)?;
        let half = self.split(half)?;
        Ok(self.turned(half, direction == Direction::Inverse))
    }

    /// The `n` real numbers that are the transform of numbers of which `x` is the first half.
    pub(super) fn real_fourier(
        &mut self,
        x: Signal,
        n: i64,
        direction: Direction,
        norm: Norm,
    ) -> Result<ValueId, RuleError> {
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
}
