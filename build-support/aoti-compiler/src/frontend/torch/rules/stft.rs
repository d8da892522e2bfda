//! Short-time Fourier transforms: `stft` and `istft`.

use super::complex::How::{self, Own};
use super::fft::{real_of, signal};
use super::fft_primitive::Direction;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::fourier::Norm;
use crate::graph::{Combine, Coord, FloatBinary, Relation, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

pub(crate) const TABLE: &[(&str, How)] = &[
    ("aten.stft.default", Own(short_time)),
    ("aten.stft.center", Own(short_time)),
    ("aten.istft.default", Own(inverse_short_time)),
];

/// The window in the middle of `n` elements; ones where there is none.
fn window(cx: &mut Context, a: &Args, n: i64, dtype: DType) -> Result<ValueId, RuleError> {
    let length = a.int_or("win_length", n)?;
    let own = match a.opt_tensor("window")? {
        Some(_) if a.is_complex("window") => return Err(RuleError::unsupported("a complex window")),
        Some(window) => cx.b.cast(window, dtype),
        None => cx.b.full(1.0, dtype, &[Expr::int(length)]),
    };
    let left = (n - length) / 2;
    Ok(cx.b.pad(own, &[(Expr::int(left), Expr::int(n - length - left))], 0.0)?)
}

fn short_time(cx: &mut Context, a: &Args) -> Rule {
    let n = a.int("n_fft")?;
    let hop = a.int_or("hop_length", n / 4)?;
    let mut x = signal(cx, a, "self")?;
    if a.bool_or("center", false)? {
        x = x.each(cx, |cx, x| centred(cx, a, x, n / 2))?;
    }
    let is_batched = cx.b.rank(x.re) == 2;
    let axis = usize::from(is_batched);
    let window = window(cx, a, n, cx.b.dtype(x.re))?;
    // [batch, frames, n].
    let frames = x.each(cx, |cx, x| {
        let frames = cx.b.windows(x, axis, n, hop, 1)?;
        cx.mul(frames, window)
    })?;
    let norm = if a.bool_or("normalized", false)? { Norm::Root } else { Norm::One };
    let spectrum = match a.bool_or("onesided", x.im.is_none())? {
        true => frames.half_transformed(cx, axis + 1, Direction::Forward, norm)?,
        false => frames.transformed(cx, axis + 1, Direction::Forward, norm)?,
    };
    let spectrum = spectrum.each(cx, |cx, x| Ok(cx.b.transpose(x, axis, axis + 1)?))?;
    // Without complex results the program has pairs, which is what a complex value is here.
    spectrum.result(cx, a)
}

/// Reflected, or padded otherwise, by `by` elements at both ends of the last axis.
fn centred(cx: &mut Context, a: &Args, x: ValueId, by: i64) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    let last = shape.len() - 1;
    let mut padded = shape.clone();
    padded[last] = &shape[last] + 2 * by;
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    coords[last] = &coords[last] - by;
    match a.str_or("pad_mode", "reflect")? {
        "constant" => Ok(cx.b.padded_view(x, &padded, coords, Scalar::Float(0.0))?),
        "reflect" => {
            let head = cx.b.slice(x, last, &Expr::int(1), &Expr::int(by), 1)?;
            let head = cx.b.flip(head, &[last])?;
            let tail = cx.b.slice(x, last, &(&shape[last] - (by + 1)), &Expr::int(by), 1)?;
            let tail = cx.b.flip(tail, &[last])?;
            Ok(cx.b.cat(&[head, x, tail], last)?)
        }
        other => Err(RuleError::unsupported(format!("the padding `{other}`"))),
    }
}

/// Frames are transformed back, weighted by the window, added where they overlap, and divided by what the squares of the
/// window add up to there.
fn inverse_short_time(cx: &mut Context, a: &Args) -> Rule {
    let n = a.int("n_fft")?;
    let hop = a.int_or("hop_length", n / 4)?;
    if a.bool_or("return_complex", false)? {
        return Err(RuleError::unsupported("a complex signal"));
    }
    let mut x = signal(cx, a, "self")?;
    let is_batched = cx.b.rank(x.re) == 3;
    if !is_batched {
        x = x.each(cx, Context::batched)?;
    }
    let x = x.each(cx, |cx, x| Ok(cx.b.transpose(x, 1, 2)?))?;
    if a.has("onesided") && !a.bool_or("onesided", true)? {
        return Err(RuleError::unsupported("a spectrum of both sides"));
    }
    let norm = if a.bool_or("normalized", false)? { Norm::Root } else { Norm::Length };
    let frames = real_of(cx, x, (&[], 2, &Expr::int(n)), Direction::Inverse, norm)?;
    let window = window(cx, a, n, cx.b.dtype(frames))?;
    let weighted = cx.mul(frames, window)?;
    let shape = cx.b.shape(weighted);
    let total = &(&(&shape[1] - 1) * hop) + n;
    let place = cx.b.index(&(&Expr::axis(1) * hop) + &Expr::axis(2), &shape);
    let base = cx.b.full(0.0, cx.b.dtype(weighted), &[shape[0].clone(), total.clone()]);
    let coords = vec![Coord::Expr(Expr::axis(0)), Coord::Indirect(0)];
    let sum = cx.b.scatter(base, weighted, &[place], coords, Combine::Add)?;
    let squares = cx.mul(window, window)?;
    let squares = cx.b.expand(squares, &shape[1..])?;
    let place = cx.b.index(&(&Expr::axis(0) * hop) + &Expr::axis(1), &shape[1..]);
    let base = cx.b.full(0.0, cx.b.dtype(weighted), std::slice::from_ref(&total));
    let weight = cx.b.scatter(base, squares, &[place], vec![Coord::Indirect(0)], Combine::Add)?;
    let start = if a.bool_or("center", true)? { n / 2 } else { 0 };
    let length = match a.opt_sym("length")? {
        Some(length) => length,
        None => &total - 2 * start,
    };
    let kept = |cx: &mut Context, x: ValueId| -> Result<ValueId, RuleError> {
        let axis = cx.b.rank(x) - 1;
        let mut shape = cx.b.shape(x);
        shape[axis] = length.clone();
        let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
        coords[axis] = &coords[axis] + start;
        // A signal longer than its frames ends in zeros.
        Ok(cx.b.padded_view(x, &shape, coords, Scalar::Float(0.0))?)
    };
    let (sum, weight) = (kept(cx, sum)?, kept(cx, weight)?);
    let mut result = cx.binary(FloatBinary::Div, sum, weight)?;
    if a.has("length") {
        let none = cx.with_number(Relation::Eq, weight, 0.0)?;
        let zero = cx.b.full_like(0.0, result);
        result = cx.b.select(none, zero, result)?;
    }
    if !is_batched {
        result = cx.b.squeeze(result, &[0])?;
    }
    Ok(cx.b.cast(result, a.part_type()?).into())
}
