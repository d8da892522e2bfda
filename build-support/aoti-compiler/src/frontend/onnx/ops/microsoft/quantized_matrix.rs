//! Products of quantised matrices, and convolutions.

use super::activation::sum;
use super::matrix::{channels_last, channels_second};
use super::operators;
use super::quantized::{Scale, dequantized, dot, quantized};
use crate::dtype::DType;
use crate::frontend::onnx::call::Call;
use crate::frontend::onnx::ops::window::convolution;
use crate::frontend::onnx::ops::{Rule, one};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{ReduceOp, ValueId};

operators! { "com.microsoft";
    "DynamicQuantizeMatMul" => dynamic,
    "MatMulIntegerToFloat" => to_float,
    "QGemm" => gemm,
    "QLinearConv" => conv,
}

fn with_bias(cx: &mut Onnx, product: ValueId, bias: Option<ValueId>) -> Rule {
    one(match bias {
        Some(bias) => sum(cx, &[product, bias])?,
        None => product,
    })
}

fn to_float(cx: &mut Onnx, c: &Call) -> Rule {
    let product = dot(cx, (c.tensor(0)?, c.opt_tensor(4)?), (c.tensor(1)?, c.opt_tensor(5)?))?;
    let product = dequantized(cx, product, &[c.tensor(2)?, c.tensor(3)?])?;
    with_bias(cx, product, c.opt_tensor(6)?)
}

/// The left side is quantised by its own range when the model runs.
fn dynamic(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, scale) = ranged(cx, c.tensor(0)?)?;
    let product = dot(cx, (x, scale.zero), (c.tensor(1)?, c.opt_tensor(3)?))?;
    let product = dequantized(cx, product, &[scale.scale, c.tensor(2)?])?;
    with_bias(cx, product, c.opt_tensor(4)?)
}

/// A tensor in unsigned bytes, over the range that it has and that zero is in.
fn ranged(cx: &mut Onnx, x: ValueId) -> Result<(ValueId, Scale), RuleError> {
    let wide = cx.wide(x);
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    let (low, high) =
        (cx.b.reduce(ReduceOp::Min, wide, &axes, false)?, cx.b.reduce(ReduceOp::Max, wide, &axes, false)?);
    let dtype = cx.b.dtype(wide);
    let scale = cx.apply([low, high], dtype, |[low, high]| {
        let scale = (high.max(0.0) - low.min(0.0)) / 255.0;
        scale.equals(0.0).select(Formula::from(1.0), &scale)
    })?;
    let zero =
        cx.apply([low, scale], dtype, |[low, scale]| (-(low.min(0.0) / scale)).round().max(0.0).min(255.0))?;
    let scale = Scale { scale, zero: Some(cx.b.cast(zero, DType::U8)) };
    Ok((quantized(cx, x, scale)?, scale))
}

/// The result is quantised where there is a scale for it. Its bias is of the scales of both sides.
fn gemm(cx: &mut Onnx, c: &Call) -> Rule {
    let (mut a, mut b) = (c.tensor(0)?, c.tensor(3)?);
    if c.flag("transA", false)? {
        a = cx.b.transpose(a, 0, 1)?;
    }
    let of_b = Scale::at(c, 4)?;
    if c.flag("transB", false)? {
        b = cx.b.transpose(b, 0, 1)?;
    }
    let mut product = dot(cx, (a, c.opt_tensor(2)?), (b, of_b.zero))?;
    if let Some(bias) = c.opt_tensor(6)? {
        let bias = cx.b.cast(bias, DType::I32);
        product = cx.add(product, bias)?;
    }
    let value = dequantized(cx, product, &[c.tensor(1)?, of_b.scale])?;
    let value = cx.times(value, c.float("alpha", 1.0)?)?;
    one(match c.opt_tensor(7)? {
        Some(scale) => quantized(cx, value, Scale { scale, zero: c.opt_tensor(8)? })?,
        None => value,
    })
}

/// As the standard's, whose channels may be behind.
fn conv(cx: &mut Onnx, c: &Call) -> Rule {
    let last = c.flag("channels_last", false)?;
    let mut x = super::quantized::centred(cx, c.tensor(0)?, c.opt_tensor(2)?)?;
    if last {
        x = channels_second(cx, x)?;
    }
    let weight = c.tensor(3)?;
    let rank = cx.b.rank(weight);
    let mut of_weight = Scale::at(c, 4)?;
    // Lists are of the first axis of a weight, and of the second one of the result.
    let own_zero = of_weight.zero.map(|zero| by_channel(cx, zero, rank)).transpose()?;
    let weight = super::quantized::centred(cx, weight, own_zero)?;
    of_weight.scale = by_channel(cx, of_weight.scale, rank - 1)?;
    let mut value = convolution(cx, c, x, weight)?;
    if let Some(bias) = c.opt_tensor(8)? {
        let bias = cx.b.cast(bias, DType::I32);
        let bias = cx.trailing_ones(bias, rank - 1)?;
        value = cx.add(value, bias)?;
    }
    let value = dequantized(cx, value, &[c.tensor(1)?, of_weight.scale])?;
    let mut value = quantized(cx, value, Scale::at(c, 6)?)?;
    if last {
        value = channels_last(cx, value)?;
    }
    one(value)
}

fn by_channel(cx: &mut Onnx, list: ValueId, rank: usize) -> Result<ValueId, RuleError> {
    if cx.b.ty(list).numel().is(1) { Ok(cx.b.reshape(list, &[])?) } else { cx.trailing_ones(list, rank) }
}
