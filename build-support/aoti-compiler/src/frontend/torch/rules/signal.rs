//! Window functions of signal processing, frequencies, and shifts that go with transforms.

use super::context::DEFAULT_FLOAT;
use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{FloatUnary, SpecialUnary};
use crate::symbolic::Expr;
use std::f64::consts::PI;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.hann_window.*" => |cx, a| cosines(cx, a, &[0.5, -0.5]),
    pure "aten.hamming_window.*" => hamming,
    pure "aten.blackman_window.*" => |cx, a| cosines(cx, a, &[0.42, -0.5, 0.08]),
    pure "aten.bartlett_window.*" => |cx, a| window(cx, a, |x| 1.0 - (x * 2.0 - 1.0).abs()),
    pure "aten.kaiser_window.*" => kaiser,
    pure "aten.fft_fftfreq.default" => |cx, a| frequencies(cx, a, true),
    pure "aten.fft_rfftfreq.default" => |cx, a| frequencies(cx, a, false),
    pure "aten.fft_fftshift.default" => |cx, a| shift(cx, a, 0),
    pure "aten.fft_ifftshift.default" => |cx, a| shift(cx, a, 1),
}

/// The frequencies of a transform's elements: up to the middle, and then, of both sides, the negative ones.
fn frequencies(cx: &mut Context, a: &Args, both_sides: bool) -> Rule {
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DEFAULT_FLOAT);
    let n = a.int("n")?;
    if n <= 0 {
        return Err(RuleError::Malformed(format!("the frequencies of {n} numbers")));
    }
    let factor = 1.0 / (n as f64 * a.float_or("d", 1.0)?);
    let count = if both_sides { n } else { n / 2 + 1 };
    let index = cx.b.index(Expr::axis(0), &[Expr::int(count)]);
    let index = cx.b.cast(index, DType::F64);
    let middle = if both_sides { (n + 1) / 2 } else { count };
    let values = cx.apply([index], DType::F64, |[index]| {
        let signed = index.lt(middle as f64).select(&index, &index - n as f64);
        signed * factor
    })?;
    Ok(cx.b.cast(values, dtype).into())
}

/// Brings the first element of each axis to the middle, or, with `extra`, the middle one to the front.
fn shift(cx: &mut Context, a: &Args, extra: i64) -> Rule {
    let mut x = a.only()?;
    for axis in Context::axes(&a.ints_or("dim", &[])?, cx.b.rank(x))? {
        let size = cx.b.shape(x)[axis].clone();
        let moved = (&size + extra).floor_div_in(&Expr::int(2), cx.b.ranges());
        let front = &size - &moved;
        let tail = cx.b.slice(x, axis, &front, &moved, 1)?;
        let head = cx.b.slice(x, axis, &Expr::int(0), &front, 1)?;
        x = cx.b.cat(&[tail, head], axis)?;
    }
    Ok(x.into())
}

/// A function of the position, which goes from 0 to 1. A periodic window leaves out the last one of a window that is
/// longer by one.
fn window(cx: &mut Context, a: &Args, function: impl FnOnce(Formula) -> Formula) -> Rule {
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DEFAULT_FLOAT);
    let length = a.int("window_length")?;
    let shape = [Expr::int(length)];
    if length <= 1 {
        return Ok(cx.b.full(1i64, dtype, &shape).into());
    }
    let last = if a.bool_or("periodic", true)? { length } else { length - 1 };
    let index = cx.b.index(Expr::axis(0), &shape);
    let index = cx.b.cast(index, DType::F64);
    let values = cx.apply([index], DType::F64, |[index]| function(index / last as f64))?;
    Ok(cx.b.cast(values, dtype).into())
}

/// A sum of cosines of 0, 1, 2, … periods with these weights.
fn cosines(cx: &mut Context, a: &Args, weights: &[f64]) -> Rule {
    window(cx, a, |x| {
        let mut sum = x.clone() * 0.0;
        for (periods, weight) in weights.iter().enumerate() {
            sum = sum + (x.clone() * (2.0 * PI * periods as f64)).unary(FloatUnary::Cos) * *weight;
        }
        sum
    })
}

fn hamming(cx: &mut Context, a: &Args) -> Rule {
    let (alpha, beta) = (a.float_or("alpha", 0.54)?, a.float_or("beta", 0.46)?);
    cosines(cx, a, &[alpha, -beta])
}

fn kaiser(cx: &mut Context, a: &Args) -> Rule {
    let beta = a.float_or("beta", 12.0)?;
    window(cx, a, |x| {
        let x = x * 2.0 - 1.0;
        let bessel = |x: Formula| x.unary(SpecialUnary::I0);
        let root = (1.0 - x.square()).sqrt() * beta;
        let most = bessel(x * 0.0 + beta);
        bessel(root) / most
    })
}
