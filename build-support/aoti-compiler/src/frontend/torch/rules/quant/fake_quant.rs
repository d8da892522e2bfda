//! Fake quantisation: numbers as they are once they were quantised, in programs that were made aware of it.

use super::super::random::ops::all_hold;
use super::super::registry::rules;
use super::super::{Args, Context, Outputs, RuleError};
use super::pt2e::{along, channel_axis, dequantized, parameter, range};
use crate::dtype::DType;
use crate::graph::{BinaryOp, IntBinary, Relation, Rounding, ValueId};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "quantized_decomposed.fake_quant_per_channel.default" => |cx, a| {
        let parameters = (a.tensor("scales")?, a.tensor("zero_points")?);
        fake_quantize_channels(cx, a, a.tensor("input")?, parameters)
    },
    pure "aten.fake_quantize_per_tensor_affine.*" => fake_quantize,
    pure "aten.fake_quantize_per_tensor_affine_cachemask.default" => fake_quantize,
    pure "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default" => fake_quantize,
    pure "aten.fake_quantize_per_channel_affine.default" => fake_quantize_along,
    pure "aten.fake_quantize_per_channel_affine_cachemask.default" => fake_quantize_along,
}

/// `x` as it is after it was quantised, and where it was within the range. Zero points that need not be integers are added before
/// numbers are rounded, others afterwards.
fn faked(
    cx: &mut Context,
    x: ValueId,
    (scale, zero): (ValueId, ValueId),
    (low, high): (i64, i64),
    is_fractional: bool,
) -> Result<(ValueId, ValueId), RuleError> {
    let dtype = cx.b.dtype(x);
    let wide = dtype.compute();
    let (x, scale, zero) = (cx.b.cast(x, wide), cx.b.cast(scale, wide), cx.b.cast(zero, wide));
    let inverse = cx.inverse(scale)?;
    let scaled = cx.mul(x, inverse)?;
    let shifted = if is_fractional {
        let sum = cx.add(scaled, zero)?;
        cx.unary(Rounding::Round, sum)
    } else {
        let rounded = cx.unary(Rounding::Round, scaled);
        cx.add(rounded, zero)?
    };
    let above = cx.with_number(Relation::Ge, shifted, low)?;
    let below = cx.with_number(Relation::Le, shifted, high)?;
    let within = cx.binary(IntBinary::And, above, below)?;
    // NaN becomes the smallest number.
    let limited = cx.with_number(BinaryOp::Fmax, shifted, low)?;
    let limited = cx.with_number(BinaryOp::Fmin, limited, high)?;
    let centred = cx.sub(limited, zero)?;
    let result = cx.mul(centred, scale)?;
    Ok((cx.b.cast(result, dtype), within))
}

/// The result, and the mask where the overload has one.
fn with_mask(a: &Args, result: ValueId, within: ValueId) -> Outputs {
    if a.target().contains("cachemask") {
        Outputs::Many(vec![Some(result), Some(within)])
    } else {
        Outputs::One(result)
    }
}

fn fake_quantize(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let parameters = (parameter(cx, a, "scale")?, parameter(cx, a, "zero_point")?);
    let (result, mut within) = faked(cx, x, parameters, (a.int("quant_min")?, a.int("quant_max")?), false)?;
    let mut result = result;
    if let Some(enabled) = a.opt_tensor("fake_quant_enabled")? {
        let enabled = cx.b.cast(enabled, DType::Bool);
        let enabled = cx.b.reshape(enabled, &[])?;
        result = cx.b.select(enabled, result, x)?;
        let all = cx.b.full_like(true, within);
        within = cx.b.select(enabled, within, all)?;
    }
    Ok(with_mask(a, result, within))
}

fn fake_quantize_along(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (axis, rank) = (channel_axis(cx, a, x)?, cx.b.rank(x));
    let scale = along(cx, a.tensor("scale")?, axis, rank)?;
    let zero = a.tensor("zero_point")?;
    let is_fractional = cx.b.dtype(zero).is_float();
    if !is_fractional {
        let (least, most) = (a.int("quant_min")?, a.int("quant_max")?);
        let (above, below) =
            (cx.with_number(Relation::Ge, zero, least)?, cx.with_number(Relation::Le, zero, most)?);
        let within = cx.binary(IntBinary::And, above, below)?;
        all_hold(cx, a, within, "zero points must be within the range of quantised numbers")?;
    }
    let zero = along(cx, zero, axis, rank)?;
    let (result, within) =
        faked(cx, x, (scale, zero), (a.int("quant_min")?, a.int("quant_max")?), is_fractional)?;
    Ok(with_mask(a, result, within))
}

/// PT2E's own, which stays with floating-point numbers all the way.
fn fake_quantize_channels(
    cx: &mut Context,
    a: &Args,
    x: ValueId,
    (scales, zeros): (ValueId, ValueId),
) -> Rule {
    let (axis, rank) = (channel_axis(cx, a, x)?, cx.b.rank(x));
    let scales = cx.b.cast(scales, DType::F32);
    let scales = along(cx, scales, axis, rank)?;
    let zeros = cx.b.cast(zeros, DType::I32);
    let zeros = along(cx, zeros, axis, rank)?;
    let limited = cx.quantized(x, scales, zeros, range(a)?)?;
    Ok(dequantized(cx, limited, scales, Some(zeros))?.into())
}
