//! Products and convolutions with what follows them.

use super::activation::sum;
use super::operators;
use crate::frontend::onnx::call::{Call, malformed};
use crate::frontend::onnx::ops::{Rule, find, one};
use crate::frontend::onnx::value::Val;
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::activation::{Gelu, gelu};
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::ValueId;

operators! { "com.microsoft";
    "FusedConv" => |cx, c| fused_conv(cx, c, false),
    "FusedGemm" => fused_gemm,
    "FusedMatMul" => fused_matmul,
    "FusedMatMulActivation" => |cx, c| {
        let product = product(cx, c)?;
        activated_by_name(cx, c, product)
    },
    "GemmFastGelu" => gemm_fast_gelu,
    "NhwcConv" => |cx, c| fused_conv(cx, c, true),
    "NhwcFusedConv" => |cx, c| fused_conv(cx, c, true),
    "NhwcMaxPool" => |cx, c| {
        let x = channels_second(cx, c.tensor(0)?)?;
        let value = standard(cx, c, "MaxPool", vec![x.into()])?;
        one(channels_last(cx, value)?)
    },
    "TransposeMatMul" => fused_matmul,
}

/// What an operator of the standard gives for these operands and the attributes of the node.
pub(super) fn standard(cx: &mut Onnx, c: &Call, name: &str, inputs: Vec<Val>) -> Result<ValueId, RuleError> {
    match standard_results(cx, c, name, inputs)?.as_slice() {
        [Val::Tensor(value), ..] => Ok(*value),
        _ => Err(malformed(format!("`{name}` gives no tensor"))),
    }
}

/// The same with all its results.
pub(super) fn standard_results(cx: &mut Onnx, c: &Call, name: &str, inputs: Vec<Val>) -> Rule {
    let operator = find("", name).ok_or_else(|| malformed(format!("`{name}` has no rule")))?;
    let version = cx.versions.get("").copied().unwrap_or(c.version);
    (operator.run)(cx, &Call { node: c.node, version, inputs })
}

/// `[batch, ..., channels]` as `[batch, channels, ...]`.
pub(super) fn channels_second(cx: &mut Onnx, x: ValueId) -> Result<ValueId, RuleError> {
    let last = cx.b.rank(x).checked_sub(1).filter(|last| *last > 0);
    let last = last.ok_or_else(|| malformed("it takes a batch and channels"))?;
    cx.move_axis(x, last, 1)
}

/// The inverse of it.
pub(super) fn channels_last(cx: &mut Onnx, x: ValueId) -> Result<ValueId, RuleError> {
    let last = cx.b.rank(x) - 1;
    cx.move_axis(x, 1, last)
}

fn product(cx: &mut Onnx, c: &Call) -> Result<ValueId, RuleError> {
    let mut sides = Vec::new();
    for (position, side) in ["A", "B"].into_iter().enumerate() {
        let mut x = c.tensor(position)?;
        let rank = cx.b.rank(x);
        if rank > 2 && c.flag(&format!("transBatch{side}"), false)? {
            // The first axis moves behind the other batch axes.
            x = cx.move_axis(x, 0, rank - 2)?;
        }
        if rank > 1 && c.flag(&format!("trans{side}"), false)? {
            x = cx.b.transpose(x, rank - 2, rank - 1)?;
        }
        sides.push(x);
    }
    let product = cx.matmul(sides[0], sides[1])?;
    cx.times(product, c.float("alpha", 1.0)?)
}

fn fused_matmul(cx: &mut Onnx, c: &Call) -> Rule {
    one(product(cx, c)?)
}

fn gemm_fast_gelu(cx: &mut Onnx, c: &Call) -> Rule {
    let mut value = cx.matmul(c.tensor(0)?, c.tensor(1)?)?;
    if let Some(bias) = c.opt_tensor(2)? {
        value = sum(cx, &[value, bias])?;
    }
    one(gelu(cx, value, Gelu::Tanh)?)
}

fn fused_gemm(cx: &mut Onnx, c: &Call) -> Rule {
    let value = standard(cx, c, "Gemm", c.inputs.clone())?;
    activated_by_name(cx, c, value)
}

/// The activation that attributes name, with numbers of their own.
fn activated_by_name(cx: &mut Onnx, c: &Call, x: ValueId) -> Rule {
    let numbers: Vec<Option<f64>> = ["activation_alpha", "activation_beta", "activation_gamma"]
        .into_iter()
        .map(|name| c.opt_float(name))
        .collect::<Result<_, _>>()?;
    let first = match numbers[0] {
        Some(first) => Some(first),
        None => c.opt_float("leaky_relu_alpha")?,
    };
    one(activated(cx, x, c.text("activation", "")?, &[first, numbers[1], numbers[2]])?)
}

fn fused_conv(cx: &mut Onnx, c: &Call, last: bool) -> Rule {
    let mut x = c.tensor(0)?;
    if last {
        x = channels_second(cx, x)?;
    }
    let mut value = standard(cx, c, "Conv", vec![x.into(), c.input(1), c.input(2)])?;
    if last {
        value = channels_last(cx, value)?;
    }
    if let Some(other) = c.opt_tensor(3)? {
        value = sum(cx, &[value, other])?;
    }
    let numbers: Vec<Option<f64>> =
        c.opt_floats("activation_params")?.unwrap_or_default().into_iter().map(Some).collect();
    one(activated(cx, value, c.text("activation", "")?, &numbers)?)
}

/// An activation with its numbers, which have the defaults of the standard's operators.
fn activated(cx: &mut Onnx, x: ValueId, name: &str, numbers: &[Option<f64>]) -> Result<ValueId, RuleError> {
    let number = |k: usize, default: f64| numbers.get(k).copied().flatten().unwrap_or(default);
    let function: Box<dyn Fn(&Formula) -> Formula> = match name {
        "" => return Ok(x),
        "Relu" => Box::new(|x| x.max(0.0)),
        "Tanh" => Box::new(Formula::tanh),
        "Sigmoid" => Box::new(Formula::sigmoid),
        "LeakyRelu" => {
            let alpha = number(0, 0.01);
            Box::new(move |x| x.lt(0.0).select(x * alpha, x))
        }
        "HardSigmoid" => {
            let (alpha, beta) = (number(0, 0.2), number(1, 0.5));
            Box::new(move |x| (x * alpha + beta).max(0.0).min(1.0))
        }
        "Clip" => {
            let (low, high) = (number(0, f64::from(f32::MIN)), number(1, f64::from(f32::MAX)));
            Box::new(move |x| x.max(low).min(high))
        }
        "Elu" => {
            let alpha = number(0, 1.0);
            Box::new(move |x| x.lt(0.0).select(x.min(0.0).expm1() * alpha, x))
        }
        "Softplus" => Box::new(|x| x.max(0.0) + (-x.abs()).exp().log1p()),
        "HardSwish" => Box::new(|x| x * (x * (1.0 / 6.0) + 0.5).max(0.0).min(1.0)),
        "QuickGelu" => {
            let alpha = number(0, 1.702);
            Box::new(move |x| x * (x * alpha).sigmoid())
        }
        other => return Err(malformed(format!("the activation `{other}` is unknown"))),
    };
    let dtype = cx.b.dtype(x);
    cx.apply([x], dtype, |[x]| function(&x))
}
