//! Signals: Fourier transforms, windows, scales of pitch.

use super::super::call::{Call, malformed, unsupported};
use super::super::types::element_type;
use super::super::walk::Onnx;
use super::axes::Axes;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::fourier::Norm;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::fft_primitive::{Direction, Signal};
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::ValueId;
use crate::symbolic::Expr;

operators! { "";
    "DFT" => dft,
    "STFT" => stft,
    "HannWindow" => |cx, c| window(cx, c, [0.5, -0.5, 0.0]),
    "HammingWindow" => |cx, c| window(cx, c, [25.0 / 46.0, -21.0 / 46.0, 0.0]),
    "BlackmanWindow" => |cx, c| window(cx, c, [0.42, -0.5, 0.08]),
    "MelWeightMatrix" => mel_weights,
}

/// Numbers whose parts are the last axis, of one or two, in the type that transforms compute in.
fn signal(cx: &mut Onnx, x: ValueId) -> Result<Signal, RuleError> {
    let last = cx.b.rank(x).checked_sub(1).ok_or_else(|| malformed("a signal without axes"))?;
    let wide = cx.b.dtype(x).compute();
    let x = cx.b.cast(x, wide);
    let re = cx.b.pick(x, last, &Expr::int(0))?;
    match cx.b.shape(x)[last].as_int() {
        Some(1) => Ok(Signal { re, im: None }),
        Some(2) => Ok(Signal { re, im: Some(cx.b.pick(x, last, &Expr::int(1))?) }),
        _ => Err(unsupported("numbers with other than one or two parts, which have to be known")),
    }
}

fn each(
    cx: &mut Onnx,
    x: Signal,
    of: impl Fn(&mut Onnx, ValueId) -> Result<ValueId, RuleError>,
) -> Result<Signal, RuleError> {
    Ok(Signal { re: of(cx, x.re)?, im: x.im.map(|im| of(cx, im)).transpose()? })
}

/// The last axis with zeros behind it, or without what is too much.
fn fitted(cx: &mut Onnx, x: ValueId, size: &Expr) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x);
    let last = shape.len() - 1;
    if cx.b.same_size(&shape[last], size) {
        return Ok(x);
    }
    shape[last] = size.clone();
    let coords = (0..shape.len()).map(Expr::axis).collect();
    Ok(cx.b.padded_view(x, &shape, coords, 0.0.into())?)
}

/// The parts as the last axis, behind an axis that was moved to the end.
fn joined(cx: &mut Onnx, parts: &[ValueId], axis: usize, dtype: DType) -> Result<ValueId, RuleError> {
    let mut columns = Vec::new();
    for part in parts {
        let last = cx.b.rank(*part) - 1;
        let part = cx.move_axis(*part, last, axis)?;
        columns.push(cx.b.unsqueeze(part, last + 1)?);
    }
    let last = cx.b.rank(columns[0]) - 1;
    let value = cx.b.cat(&columns, last)?;
    Ok(cx.b.cast(value, dtype))
}

/// What a transform of real or complex numbers along the last axis begins with.
fn transformed(cx: &mut Onnx, x: Signal, length: &Expr, is_half: bool) -> Result<[ValueId; 2], RuleError> {
    let parts = match (is_half, x.im) {
        (true, None) => cx.half_fourier(x.re, length, Direction::Forward, Norm::One)?,
        (_, _) => cx.fourier(x, length, Direction::Forward, Norm::One)?,
    };
    let mut parts = [parts.re, parts.im];
    if is_half && x.im.is_some() {
        let half = cx.half(length);
        for part in &mut parts {
            let last = cx.b.rank(*part) - 1;
            *part = cx.b.slice(*part, last, &Expr::int(0), &half, 1)?;
        }
    }
    Ok(parts)
}

fn dft(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let rank = cx.b.rank(x);
    let axes = match (c.version, c.opt_tensor(2)?) {
        (..20, _) => Axes::Known(vec![axis_of(c.int("axis", 1)?, rank)?]),
        (_, Some(axis)) => cx.axes_of(axis, rank)?,
        (_, None) => Axes::Known(vec![axis_of(-2, rank)?]),
    };
    let length = c.opt_tensor(1)?.map(|length| cx.size(length)).transpose()?;
    one(cx.over_axes(c, &axes, &mut |cx, axes| {
        let axis = axes.first().copied().ok_or_else(|| malformed("no axis is transformed"))?;
        along(cx, c, x, axis, length.as_ref())
    })?)
}

/// A transform along one axis.
fn along(
    cx: &mut Onnx,
    c: &Call,
    x: ValueId,
    axis: usize,
    length: Option<&Expr>,
) -> Result<ValueId, RuleError> {
    let (dtype, rank) = (cx.b.dtype(x), cx.b.rank(x));
    if axis + 1 >= rank {
        return Err(malformed("the axis of the transform is that of the parts of numbers"));
    }
    let (is_inverse, is_half) = (c.flag("inverse", false)?, c.flag("onesided", false)?);
    let x = signal(cx, x)?;
    let x = each(cx, x, |cx, part| cx.move_axis(part, axis, rank - 2))?;
    let own = cx.b.shape(x.re)[rank - 2].clone();
    let length = match length {
        Some(length) => length.clone(),
        None if is_inverse && is_half => &(&own - 1) * 2,
        None => own,
    };
    if is_inverse && is_half {
        let half = cx.half(&length);
        let x = each(cx, x, |cx, part| fitted(cx, part, &half))?;
        let value = cx.real_fourier(x, &length, Direction::Inverse, Norm::Length)?;
        return joined(cx, &[value], axis, dtype);
    }
    let x = each(cx, x, |cx, part| fitted(cx, part, &length))?;
    let parts = if is_inverse {
        let parts = cx.fourier(x, &length, Direction::Inverse, Norm::Length)?;
        [parts.re, parts.im]
    } else {
        transformed(cx, x, &length, is_half)?
    };
    joined(cx, &parts, axis, dtype)
}

/// Transforms of parts of a signal, one for each step.
fn stft(cx: &mut Onnx, c: &Call) -> Rule {
    let mut x = c.tensor(0)?;
    let dtype = cx.b.dtype(x);
    if cx.b.rank(x) == 2 {
        x = cx.b.unsqueeze(x, 2)?;
    }
    if cx.b.rank(x) != 3 {
        return Err(malformed("signals are a batch of rows of numbers with one or two parts"));
    }
    let step = cx.size(c.tensor(1)?)?;
    let window = c.opt_tensor(2)?;
    let length = match (c.opt_tensor(3)?, window) {
        (Some(length), _) => cx.size(length)?,
        (None, Some(window)) => cx.b.shape(window)[0].clone(),
        (None, None) => cx.b.shape(x)[1].clone(),
    };
    let own = cx.b.shape(x);
    let frames = &(&own[1] - &length).floor_div_in(&step, cx.b.ranges()) + 1;
    let shape = [own[0].clone(), frames, length.clone()];
    let x = signal(cx, x)?;
    let window = match window {
        Some(window) => {
            let window = cx.required_shape(window, std::slice::from_ref(&length))?;
            Some(cx.b.cast(window, dtype.compute()))
        }
        None => None,
    };
    let place = &(&Expr::axis(1) * &step) + &Expr::axis(2);
    let x = each(cx, x, |cx, part| {
        let frames = cx.b.view(part, &shape, vec![Expr::axis(0), place.clone()])?;
        match window {
            Some(window) => cx.mul(frames, window),
            None => Ok(frames),
        }
    })?;
    let parts = transformed(cx, x, &length, c.flag("onesided", true)?)?;
    one(joined(cx, &parts, 2, dtype)?)
}

/// The type that a node asks for.
fn wanted(c: &Call) -> Result<DType, RuleError> {
    let number = i32::try_from(c.int("output_datatype", 1)?).unwrap_or(-1);
    Ok(element_type(number).map_err(malformed)?.dtype)
}

/// A sum of cosines of no, one and two turns over the length.
fn window(cx: &mut Onnx, c: &Call, [still, once, twice]: [f64; 3]) -> Rule {
    let size = cx.size(c.tensor(0)?)?;
    let turn = if c.flag("periodic", true)? { size.clone() } else { &size - 1 };
    let at = cx.b.index(Expr::axis(0), std::slice::from_ref(&size));
    let turn = cx.b.index(turn, &[]);
    let value = cx.apply([at, turn], DType::F64, |[at, turn]| {
        let angle = at * std::f64::consts::TAU / turn;
        let cos = |angle: Formula| angle.unary(crate::graph::FloatUnary::Cos);
        let first = cos(angle.clone()) * once + still;
        if twice == 0.0 { first } else { first + cos(angle * 2.0) * twice }
    })?;
    one(cx.b.cast(value, wanted(c)?))
}

/// Triangles over the frequencies of a transform, whose corners are as far apart as pitch is heard.
fn mel_weights(cx: &mut Onnx, c: &Call) -> Rule {
    let (bins, length) = (cx.size(c.tensor(0)?)?, cx.size(c.tensor(1)?)?);
    let number = |cx: &mut Onnx, position: usize| -> Result<Formula, RuleError> {
        let value = cx.b.cast(c.tensor(position)?, DType::F64);
        Ok(cx.b.reshape(value, &[])?.into())
    };
    let rate = number(cx, 2)?;
    let pitch = |hertz: Formula| (hertz * (1.0 / 700.0)).log1p() * (2595.0 / std::f64::consts::LN_10);
    let (low, high) = (pitch(number(cx, 3)?), pitch(number(cx, 4)?));
    let count = cx.b.index(&bins + 2, &[]);
    let size = cx.b.index(&length + 1, &[]);
    let [count, size] = [count, size].map(|value| Formula::from(cx.b.cast(value, DType::F64)));
    let step = (high - &low) / count;
    let half = cx.half(&length);
    let shape = [half, bins.clone()];
    // The number of the frequency at a corner.
    let mut corners = Vec::new();
    for corner in 0..3 {
        let at = cx.b.index(&Expr::axis(1) + corner, &[Expr::int(1), bins.clone()]);
        let at = Formula::from(cx.b.cast(at, DType::F64));
        let hertz = ((at * &step + &low) * (std::f64::consts::LN_10 / 2595.0)).expm1() * 700.0;
        let place = cx.formula(DType::F64, &(&size * hertz / &rate).floor())?;
        corners.push(Formula::from(place));
    }
    let at = cx.b.index(Expr::axis(0), &shape);
    let at = Formula::from(cx.b.cast(at, DType::F64));
    let [left, middle, right] = [&corners[0], &corners[1], &corners[2]];
    let (rising, falling) = (middle - left, right - middle);
    let is_rising = at.ge(left).and(at.lt(middle));
    let is_falling = at.gt(middle).and(at.lt(right));
    let rise = is_rising.select((&at - left) / rising, 0.0);
    let slope = is_falling.select((right - &at) / falling, rise);
    let value = cx.formula(DType::F64, &at.equals(middle).select(1.0, slope))?;
    let value = cx.b.expand(value, &shape)?;
    one(cx.b.cast(value, wanted(c)?))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, int};
    use crate::interpret::Tensor;

    fn close(found: &[f64], expected: &[f64]) -> bool {
        found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5)
    }

    #[test]
    fn transforms_have_the_length_that_is_asked_for() {
        let model = Model::new(20)
            .fixed_input("x", Tensor::from_f32(&[1, 3, 1], &[1.0, 2.0, 3.0]))
            .constant("four", &Tensor::from_i64(&[], &[4]))
            .constant("axis", &Tensor::from_i64(&[], &[-2]));
        // 1, 2, 3 and a zero.
        let half = model.of_one("DFT", &["x", "four", "axis"], &[int("onesided", 1)]);
        assert!(close(&half, &[6.0, 0.0, -2.0, -2.0, 2.0, 0.0]), "{half:?}");
        let model = model.node("DFT", &["x", "four"], &["half"], &[int("onesided", 1)]);
        let back = model.of_one("DFT", &["half"], &[int("onesided", 1), int("inverse", 1)]);
        assert!(close(&back, &[1.0, 2.0, 3.0, 0.0]), "{back:?}");
    }

    #[test]
    fn parts_of_a_signal_are_weighted_and_transformed() {
        let model = Model::new(17)
            .fixed_input("x", Tensor::from_f32(&[1, 5, 1], &[1.0, 2.0, 3.0, 4.0, 5.0]))
            .input("window", Tensor::from_f32(&[2], &[1.0, 2.0]))
            .constant("step", &Tensor::from_i64(&[], &[2]));
        let found = model.of_one("STFT", &["x", "step", "window"], &[]);
        assert!(close(&found, &[5.0, 0.0, -3.0, 0.0, 11.0, 0.0, -5.0, 0.0]), "{found:?}");
    }

    #[test]
    fn windows_end_where_they_begin_or_one_later() {
        let model = Model::new(17).constant("four", &Tensor::from_i64(&[], &[4]));
        assert!(close(&model.of_one("HannWindow", &["four"], &[]), &[0.0, 0.5, 1.0, 0.5]));
        let symmetric = model.of_one("BlackmanWindow", &["four"], &[int("periodic", 0)]);
        assert!(close(&symmetric, &[0.0, 0.63, 0.63, 0.0]), "{symmetric:?}");
        // The standard divides by nothing there.
        let model = Model::new(17).constant("one", &Tensor::from_i64(&[], &[1]));
        assert!(model.of_one("HannWindow", &["one"], &[int("periodic", 0)])[0].is_nan());
    }
}
