//! The operators of `torch.fft`.

use super::complex::How::{self, Own};
use super::complex::parts::Parts;
use super::fft_primitive::{Direction, Signal};
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::fourier::Norm;
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

pub(crate) const TABLE: &[(&str, How)] = &[
    ("aten._fft_r2c.default", Own(real_to_complex)),
    ("aten._fft_c2c.default", Own(complex_to_complex)),
    ("aten._fft_c2r.default", Own(complex_to_real)),
    ("aten.fft_fft.default", Own(|cx, a| full(cx, a, &one(a)?, Direction::Forward))),
    ("aten.fft_ifft.default", Own(|cx, a| full(cx, a, &one(a)?, Direction::Inverse))),
    ("aten.fft_fft2.default", Own(|cx, a| full(cx, a, &two(a)?, Direction::Forward))),
    ("aten.fft_ifft2.default", Own(|cx, a| full(cx, a, &two(a)?, Direction::Inverse))),
    ("aten.fft_fftn.default", Own(|cx, a| full(cx, a, &many(cx, a)?, Direction::Forward))),
    ("aten.fft_ifftn.default", Own(|cx, a| full(cx, a, &many(cx, a)?, Direction::Inverse))),
    ("aten.fft_rfft.default", Own(|cx, a| half(cx, a, &one(a)?, Direction::Forward))),
    ("aten.fft_ihfft.default", Own(|cx, a| half(cx, a, &one(a)?, Direction::Inverse))),
    ("aten.fft_rfft2.default", Own(|cx, a| half(cx, a, &two(a)?, Direction::Forward))),
    ("aten.fft_rfftn.default", Own(|cx, a| half(cx, a, &many(cx, a)?, Direction::Forward))),
    ("aten.fft_irfft.default", Own(inverse_half)),
    ("aten.fft_hfft.default", Own(forward_half)),
    ("aten.fft_ihfft2.default", Own(|cx, a| half(cx, a, &two(a)?, Direction::Inverse))),
    ("aten.fft_ihfftn.default", Own(|cx, a| half(cx, a, &many(cx, a)?, Direction::Inverse))),
    ("aten.fft_hfft2.default", Own(forward_half_2)),
    ("aten.fft_hfftn.default", Own(forward_half_n)),
    ("aten.fft_irfft2.default", Own(inverse_half_2)),
    ("aten.fft_irfftn.default", Own(inverse_half_n)),
];

rules! {
    // Real numbers are a spectrum too.
    pure "aten.fft_irfft.default" => inverse_half,
    pure "aten.fft_hfft.default" => forward_half,
    pure "aten.fft_hfft2.default" => forward_half_2,
    pure "aten.fft_hfftn.default" => forward_half_n,
    pure "aten.fft_irfft2.default" => inverse_half_2,
    pure "aten.fft_irfftn.default" => inverse_half_n,
}

// --- one axis --------------------------------------------------------------------------------------------------------

/// The operand as a signal, in the type that its parts are computed in.
pub(crate) fn signal(cx: &mut Context, a: &Args, name: &str) -> Result<Signal, RuleError> {
    let x = a.tensor(name)?;
    let own = a.meta(name)?.dtype;
    let dtype = cx.float_type(own).compute();
    if a.is_complex(name) {
        let parts = cx.split(x)?;
        return Ok(Signal { re: cx.b.cast(parts.re, dtype), im: Some(cx.b.cast(parts.im, dtype)) });
    }
    Ok(Signal { re: cx.b.cast(x, dtype), im: None })
}

impl Signal {
    pub(crate) fn each(
        self,
        cx: &mut Context,
        f: impl Fn(&mut Context, ValueId) -> Result<ValueId, RuleError>,
    ) -> Result<Signal, RuleError> {
        let re = f(cx, self.re)?;
        let im = match self.im {
            Some(im) => Some(f(cx, im)?),
            None => None,
        };
        Ok(Signal { re, im })
    }

    fn size(self, cx: &Context, axis: usize) -> Expr {
        cx.b.shape(self.re)[axis].clone()
    }

    /// Trimmed, or filled with zeros, to `n` elements along an axis.
    fn resized(self, cx: &mut Context, axis: usize, n: &Expr) -> Result<Signal, RuleError> {
        let kept = self.size(cx, axis).minimum_in(n, cx.b.ranges());
        let missing = n - &kept;
        self.each(cx, |cx, x| {
            let x = cx.b.slice(x, axis, &Expr::int(0), &kept, 1)?;
            let mut amounts = vec![(Expr::int(0), Expr::int(0)); cx.b.rank(x)];
            amounts[axis].1 = missing.clone();
            Ok(if missing.is(0) { x } else { cx.b.pad(x, &amounts, 0.0)? })
        })
    }

    pub(crate) fn transformed(
        self,
        cx: &mut Context,
        axis: usize,
        direction: Direction,
        norm: Norm,
    ) -> Result<Signal, RuleError> {
        self.along(cx, axis, |cx, x, n| cx.fourier(x, &n, direction, norm))
    }

    /// What is made of the last axis, made of another one of so many elements.
    fn along(
        self,
        cx: &mut Context,
        axis: usize,
        transform: impl FnOnce(&mut Context, Signal, Expr) -> Result<Parts, RuleError>,
    ) -> Result<Signal, RuleError> {
        let n = self.size(cx, axis);
        let last = cx.b.rank(self.re) - 1;
        let moved = self.each(cx, |cx, x| cx.move_axis(x, axis, last))?;
        let parts = transform(cx, moved, n)?;
        Signal { re: parts.re, im: Some(parts.im) }.each(cx, |cx, x| cx.move_axis(x, last, axis))
    }

    /// The first half of a transform; of numbers without imaginary parts the rest repeats it.
    pub(crate) fn half_transformed(
        self,
        cx: &mut Context,
        axis: usize,
        direction: Direction,
        norm: Norm,
    ) -> Result<Signal, RuleError> {
        if self.im.is_some() {
            let half = cx.half(&self.size(cx, axis));
            return self.transformed(cx, axis, direction, norm)?.first(cx, axis, &half);
        }
        self.along(cx, axis, |cx, x, n| cx.half_fourier(x.re, &n, direction, norm))
    }

    /// The first `n` elements of an axis.
    fn first(self, cx: &mut Context, axis: usize, n: &Expr) -> Result<Signal, RuleError> {
        self.each(cx, |cx, x| Ok(cx.b.slice(x, axis, &Expr::int(0), n, 1)?))
    }

    pub(crate) fn result(self, cx: &mut Context, a: &Args) -> Rule {
        let dtype = a.part_type()?;
        let im = match self.im {
            Some(im) => im,
            None => cx.b.full_like(0.0, self.re),
        };
        let parts = Parts { re: cx.b.cast(self.re, dtype), im: cx.b.cast(im, dtype) };
        Ok(cx.join(parts)?.into())
    }
}

// --- the operators that all others are made of -----------------------------------------------------------------------

/// 0 leaves the result as it is, 1 divides by the root of the number of elements, 2 by their number: of several axes, each by
/// its own.
fn normalised(mode: i64) -> Result<Norm, RuleError> {
    match mode {
        0 => Ok(Norm::One),
        1 => Ok(Norm::Root),
        2 => Ok(Norm::Length),
        other => Err(RuleError::Malformed(format!("normalisation {other}"))),
    }
}

fn dims(cx: &Context, a: &Args, x: Signal) -> Result<Vec<usize>, RuleError> {
    let rank = cx.b.rank(x.re);
    a.ints("dim")?.iter().map(|axis| Context::axis(*axis, rank)).collect()
}

fn complex_to_complex(cx: &mut Context, a: &Args) -> Rule {
    let mut x = signal(cx, a, "self")?;
    let axes = dims(cx, a, x)?;
    let norm = normalised(a.int("normalization")?)?;
    let direction = if a.bool_or("forward", true)? { Direction::Forward } else { Direction::Inverse };
    for axis in axes {
        x = x.transformed(cx, axis, direction, norm)?;
    }
    x.result(cx, a)
}

fn real_to_complex(cx: &mut Context, a: &Args) -> Rule {
    let mut x = signal(cx, a, "self")?;
    let axes = dims(cx, a, x)?;
    let norm = normalised(a.int("normalization")?)?;
    // The last axis first: of it half is enough.
    for (number, axis) in axes.iter().rev().enumerate() {
        let is_half = number == 0 && a.bool_or("onesided", true)?;
        x = match is_half {
            true => x.half_transformed(cx, *axis, Direction::Forward, norm)?,
            false => x.transformed(cx, *axis, Direction::Forward, norm)?,
        };
    }
    x.result(cx, a)
}

fn complex_to_real(cx: &mut Context, a: &Args) -> Rule {
    let x = signal(cx, a, "self")?;
    let axes = dims(cx, a, x)?;
    let n = a.sym("last_dim_size")?;
    let (last, others) = axes.split_last().ok_or_else(|| RuleError::Malformed("no axis".to_owned()))?;
    let norm = normalised(a.int("normalization")?)?;
    let x = real_of(cx, x, (others, *last, &n), Direction::Inverse, norm)?;
    Ok(cx.b.cast(x, a.part_type()?).into())
}

/// The real numbers along the last of some axes, `n` of them, that numbers are transformed to whose first half is the operand.
pub(crate) fn real_of(
    cx: &mut Context,
    mut x: Signal,
    (others, last, n): (&[usize], usize, &Expr),
    direction: Direction,
    norm: Norm,
) -> Result<ValueId, RuleError> {
    for axis in others {
        x = x.transformed(cx, *axis, direction, norm)?;
    }
    let half = cx.half(n);
    let x = x.resized(cx, last, &half)?;
    let behind = cx.b.rank(x.re) - 1;
    let x = x.each(cx, |cx, x| cx.move_axis(x, last, behind))?;
    let result = cx.real_fourier(x, n, direction, norm)?;
    cx.move_axis(result, behind, last)
}

// --- torch.fft -------------------------------------------------------------------------------------------------------

/// Axes, and the length that each is brought to.
type Lengths = Vec<(i64, Option<Expr>)>;

fn one(a: &Args) -> Result<Lengths, RuleError> {
    Ok(vec![(a.int_or("dim", -1)?, a.opt_sym("n")?)])
}

fn with_sizes(a: &Args, axes: &[i64]) -> Result<Lengths, RuleError> {
    if !a.has("s") {
        return Ok(axes.iter().map(|axis| (*axis, None)).collect());
    }
    let sizes = a.syms("s")?;
    if sizes.len() != axes.len() {
        return Err(RuleError::Malformed(format!("{} sizes for {} axes", sizes.len(), axes.len())));
    }
    // -1 leaves the length as it is.
    let given = |size: &Expr| size.as_int().is_none_or(|size| size >= 0);
    Ok(axes.iter().zip(sizes).map(|(axis, size)| (*axis, Some(size).filter(given))).collect())
}

fn two(a: &Args) -> Result<Lengths, RuleError> {
    with_sizes(a, &a.ints_or("dim", &[-2, -1])?)
}

/// All axes, or the last ones that sizes are given for, unless some are named.
fn many(cx: &Context, a: &Args) -> Result<Lengths, RuleError> {
    if a.has("dim") {
        return with_sizes(a, &a.ints("dim")?);
    }
    let rank = super::support::length(cx.b.rank(a.tensor("self")?)) - i64::from(a.is_complex("self"));
    let count = if a.has("s") { super::support::length(a.syms("s")?.len()) } else { rank };
    with_sizes(a, &(rank - count..rank).collect::<Vec<i64>>())
}

/// What transforms in a direction divide by.
fn norm(a: &Args, direction: Direction) -> Result<Norm, RuleError> {
    match (a.str_or("norm", "backward")?, direction) {
        ("ortho", _) => Ok(Norm::Root),
        ("backward", Direction::Inverse) | ("forward", Direction::Forward) => Ok(Norm::Length),
        ("backward", Direction::Forward) | ("forward", Direction::Inverse) => Ok(Norm::One),
        (other, _) => Err(RuleError::Malformed(format!("the norm `{other}`"))),
    }
}

fn resolved(cx: &Context, x: Signal, lengths: &Lengths) -> Result<Vec<(usize, Option<Expr>)>, RuleError> {
    let rank = cx.b.rank(x.re);
    lengths.iter().map(|(axis, n)| Ok((Context::axis(*axis, rank)?, n.clone()))).collect()
}

fn full(cx: &mut Context, a: &Args, lengths: &Lengths, direction: Direction) -> Rule {
    let mut x = signal(cx, a, "self")?;
    let norm = norm(a, direction)?;
    for (axis, n) in resolved(cx, x, lengths)? {
        let n = n.unwrap_or_else(|| x.size(cx, axis));
        x = x.resized(cx, axis, &n)?.transformed(cx, axis, direction, norm)?;
    }
    x.result(cx, a)
}

fn half(cx: &mut Context, a: &Args, lengths: &Lengths, direction: Direction) -> Rule {
    let mut x = signal(cx, a, "self")?;
    let norm = norm(a, direction)?;
    let axes = resolved(cx, x, lengths)?;
    for (number, (axis, n)) in axes.into_iter().rev().enumerate() {
        let n = n.unwrap_or_else(|| x.size(cx, axis));
        x = x.resized(cx, axis, &n)?;
        x = match number {
            0 => x.half_transformed(cx, axis, direction, norm)?,
            _ => x.transformed(cx, axis, direction, norm)?,
        };
    }
    x.result(cx, a)
}

fn inverse_half(cx: &mut Context, a: &Args) -> Rule {
    to_real(cx, a, &one(a)?, Direction::Inverse)
}

fn forward_half(cx: &mut Context, a: &Args) -> Rule {
    to_real(cx, a, &one(a)?, Direction::Forward)
}

fn forward_half_2(cx: &mut Context, a: &Args) -> Rule {
    to_real(cx, a, &two(a)?, Direction::Forward)
}

fn forward_half_n(cx: &mut Context, a: &Args) -> Rule {
    to_real(cx, a, &many(cx, a)?, Direction::Forward)
}

fn inverse_half_2(cx: &mut Context, a: &Args) -> Rule {
    to_real(cx, a, &two(a)?, Direction::Inverse)
}

fn inverse_half_n(cx: &mut Context, a: &Args) -> Rule {
    to_real(cx, a, &many(cx, a)?, Direction::Inverse)
}

fn to_real(cx: &mut Context, a: &Args, lengths: &Lengths, direction: Direction) -> Rule {
    let mut x = signal(cx, a, "self")?;
    let mut axes = resolved(cx, x, lengths)?;
    let (last, n) = axes.pop().ok_or_else(|| RuleError::Malformed("no axis".to_owned()))?;
    let n = match n {
        Some(n) => n,
        None => (x.size(cx, last) - 1) * 2,
    };
    let mut others = Vec::new();
    for (axis, size) in axes {
        let size = size.unwrap_or_else(|| x.size(cx, axis));
        x = x.resized(cx, axis, &size)?;
        others.push(axis);
    }
    let result = real_of(cx, x, (&others, last, &n), direction, norm(a, direction)?)?;
    Ok(cx.b.cast(result, a.part_type()?).into())
}
