//! Normalisations: layer, RMS, batch, group and instance.
//!
//! Moments are computed in two passes, in `f32` for half types. Batch normalisation with running statistics becomes
//! one scale and one shift per channel, which fold where the statistics are constants.

use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatUnary, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.layer_norm.default" => |cx, a| layer_norm(cx, a, false),
    pure "aten.native_layer_norm.default" => |cx, a| layer_norm(cx, a, true),
    pure "aten.rms_norm.default" => |cx, a| rms_norm(cx, a, false),
    pure "aten._fused_rms_norm.default" => |cx, a| rms_norm(cx, a, true),
    pure "aten.group_norm.default" => |cx, a| group_norm(cx, a, a.int("num_groups")?, false),
    pure "aten.native_group_norm.default" => |cx, a| group_norm(cx, a, a.int("group")?, true),
    pure "aten.instance_norm.default" => instance_norm,
    pure "aten.batch_norm.default" => |cx, a| batch_norm(cx, a, Extras::None),
    pure "aten.native_batch_norm.default" => |cx, a| batch_norm(cx, a, Extras::Statistics),
    pure "aten._native_batch_norm_legit.default" => |cx, a| batch_norm(cx, a, Extras::Statistics),
    pure "aten._native_batch_norm_legit.no_stats" => |cx, a| batch_norm(cx, a, Extras::Statistics),
    pure "aten._native_batch_norm_legit_no_training.default" => |cx, a| batch_norm(cx, a, Extras::Statistics),
    pure "aten._native_batch_norm_legit_functional.default" => |cx, a| batch_norm(cx, a, Extras::Updated),
    pure "aten._batch_norm_with_update.default" => |cx, a| batch_norm(cx, a, Extras::Reserve),
    pure "aten._batch_norm_no_update.default" => |cx, a| batch_norm(cx, a, Extras::Reserve),
    pure "aten._batch_norm_with_update_functional.default" => |cx, a| batch_norm(cx, a, Extras::ReserveUpdated),
    pure "aten.cudnn_batch_norm.default" => |cx, a| batch_norm(cx, a, Extras::Reserve),
    pure "aten.miopen_batch_norm.default" => |cx, a| batch_norm(cx, a, Extras::Statistics),
}

/// `1 / sqrt(variance + eps)`.
fn inverse_deviation(cx: &mut Context, variance: ValueId, eps: f64) -> Result<ValueId, RuleError> {
    let shifted = cx.with_number(BinaryOp::Add, variance, eps)?;
    Ok(cx.unary(FloatUnary::Rsqrt, shifted))
}

/// `x * weight + bias`, where they are given; all in the type of `x`.
fn scale_and_shift(
    cx: &mut Context,
    x: ValueId,
    weight: Option<ValueId>,
    bias: Option<ValueId>,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let mut result = x;
    for (parameter, op) in [(weight, BinaryOp::Mul), (bias, BinaryOp::Add)] {
        if let Some(parameter) = parameter {
            let parameter = cx.b.cast(parameter, dtype);
            result = cx.binary(op, result, parameter)?;
        }
    }
    Ok(result)
}

/// An output in the element type that the program states for it.
fn output_as(cx: &mut Context, a: &Args, index: usize, value: ValueId) -> ValueId {
    match a.output_meta(index) {
        Some(meta) => cx.b.cast(value, meta.dtype),
        None => value,
    }
}

/// The trailing axes that `normalized_shape` names.
fn trailing_axes(cx: &Context, a: &Args, x: ValueId) -> Result<Vec<usize>, RuleError> {
    let rank = cx.b.rank(x);
    let n_axes = a.syms("normalized_shape")?.len();
    match rank.checked_sub(n_axes) {
        Some(first) => Ok((first..rank).collect()),
        None => Err(RuleError::Malformed("more normalised axes than the input has".to_owned())),
    }
}

fn layer_norm(cx: &mut Context, a: &Args, with_statistics: bool) -> Rule {
    let x = a.tensor("input")?;
    let axes = trailing_axes(cx, a, x)?;
    let parameters = [a.opt_tensor("weight")?, a.opt_tensor("bias")?];
    let Normal { result, mean, inverse } = normalised(cx, x, &axes, parameters, a.float_or("eps", 1e-5)?)?;
    if !with_statistics {
        return Ok(result.into());
    }
    let (mean, inverse) = (output_as(cx, a, 1, mean), output_as(cx, a, 2, inverse));
    Ok(Outputs::Many(vec![Some(result), Some(mean), Some(inverse)]))
}

/// What was normalised, and the statistics that it was normalised by.
pub(crate) struct Normal {
    pub(crate) result: ValueId,
    mean: ValueId,
    inverse: ValueId,
}

/// Layer normalisation over some axes; the parameters are scale and shift.
pub(crate) fn normalised(
    cx: &mut Context,
    x: ValueId,
    axes: &[usize],
    [weight, bias]: [Option<ValueId>; 2],
    eps: f64,
) -> Result<Normal, RuleError> {
    let dtype = cx.b.dtype(x);
    let wide = cx.b.cast(x, dtype.compute());
    let (variance, mean) = cx.variance(wide, axes, &Operand::Number(0.0.into()))?;
    let inverse = inverse_deviation(cx, variance, eps)?;
    let centred = cx.sub(wide, mean)?;
    let normal = cx.mul(centred, inverse)?;
    let result = scale_and_shift(cx, normal, weight, bias)?;
    Ok(Normal { result: cx.b.cast(result, dtype), mean, inverse })
}

fn rms_norm(cx: &mut Context, a: &Args, with_statistics: bool) -> Rule {
    let x = a.tensor("input")?;
    let dtype = cx.b.dtype(x);
    let axes = trailing_axes(cx, a, x)?;
    let Some(limits) = dtype.limits() else {
        return Err(RuleError::unsupported(format!("a mean of {dtype}")));
    };
    let eps = a.float_or("eps", limits.epsilon)?;
    let wide = cx.b.cast(x, dtype.compute());
    let squares = cx.mul(wide, wide)?;
    let mean = cx.mean(squares, &axes, true)?;
    let inverse = inverse_deviation(cx, mean, eps)?;
    let normal = cx.mul(wide, inverse)?;
    let result = scale_and_shift(cx, normal, a.opt_tensor("weight")?, None)?;
    let result = output_as(cx, a, 0, result);
    if !with_statistics {
        return Ok(result.into());
    }
    let inverse = output_as(cx, a, 1, inverse);
    Ok(Outputs::Many(vec![Some(result), Some(inverse)]))
}

/// A parameter per channel, shaped to broadcast against `[n, channels, ...]`.
fn per_channel(cx: &mut Context, value: ValueId, like: &[Expr]) -> Result<ValueId, RuleError> {
    let mut shape = vec![Expr::int(1); like.len()];
    shape[1] = like[1].clone();
    let value = cx.required_shape(value, &like[1..2])?;
    Ok(cx.b.reshape(value, &shape)?)
}

fn opt_per_channel(
    cx: &mut Context,
    value: Option<ValueId>,
    like: &[Expr],
) -> Result<Option<ValueId>, RuleError> {
    value.map(|value| per_channel(cx, value, like)).transpose()
}

fn group_norm(cx: &mut Context, a: &Args, groups: i64, with_statistics: bool) -> Rule {
    let x = a.operand(&["input", "self"], 0)?;
    let super::Operand::Tensor(x) = x else {
        return Err(RuleError::Malformed("the input is not a tensor".to_owned()));
    };
    let (dtype, shape) = (cx.b.dtype(x), cx.b.shape(x));
    if shape.len() < 2 || groups <= 0 {
        return Err(RuleError::Malformed("the input has no channels or there are no groups".to_owned()));
    }
    let members = shape[1].floor_div_in(&Expr::int(groups), cx.b.ranges());
    let wide = cx.b.cast(x, dtype.compute());
    let grouped = cx.split_axis(wide, 1, &[Expr::int(groups), members])?;
    let axes: Vec<usize> = (2..cx.b.rank(grouped)).collect();
    let (variance, mean) = cx.variance(grouped, &axes, &Operand::Number(0.0.into()))?;
    let inverse = inverse_deviation(cx, variance, a.float_or("eps", 1e-5)?)?;
    let centred = cx.sub(grouped, mean)?;
    let normal = cx.mul(centred, inverse)?;
    let normal = cx.b.reshape(normal, &shape)?;
    let weight = opt_per_channel(cx, a.opt_tensor("weight")?, &shape)?;
    let bias = opt_per_channel(cx, a.opt_tensor("bias")?, &shape)?;
    let result = scale_and_shift(cx, normal, weight, bias)?;
    let result = cx.b.cast(result, dtype);
    if !with_statistics {
        return Ok(result.into());
    }
    let (mean, inverse) = (cx.drop_axes(mean, &axes)?, cx.drop_axes(inverse, &axes)?);
    let (mean, inverse) = (output_as(cx, a, 1, mean), output_as(cx, a, 2, inverse));
    Ok(Outputs::Many(vec![Some(result), Some(mean), Some(inverse)]))
}

fn instance_norm(cx: &mut Context, a: &Args) -> Rule {
    if !a.bool_or("use_input_stats", true)? {
        return batch_norm(cx, a, Extras::None);
    }
    let x = a.tensor("input")?;
    let (dtype, shape) = (cx.b.dtype(x), cx.b.shape(x));
    if shape.len() < 2 {
        return Err(RuleError::Malformed("the input has no channels".to_owned()));
    }
    let axes: Vec<usize> = (2..shape.len()).collect();
    let wide = cx.b.cast(x, dtype.compute());
    let (variance, mean) = cx.variance(wide, &axes, &Operand::Number(0.0.into()))?;
    let inverse = inverse_deviation(cx, variance, a.float_or("eps", 1e-5)?)?;
    let centred = cx.sub(wide, mean)?;
    let normal = cx.mul(centred, inverse)?;
    let weight = opt_per_channel(cx, a.opt_tensor("weight")?, &shape)?;
    let bias = opt_per_channel(cx, a.opt_tensor("bias")?, &shape)?;
    let result = scale_and_shift(cx, normal, weight, bias)?;
    if a.has("running_mean") && a.has("running_var") {
        let count = cx.element_count(wide, &axes, dtype.compute());
        // Of the instances' statistics the running ones take the mean.
        let of_channels = |cx: &mut Context, value: ValueId| {
            let value = cx.drop_axes(value, &axes)?;
            cx.mean(value, &[0], false)
        };
        let (variance, mean) = (of_channels(cx, variance)?, of_channels(cx, mean)?);
        let (mean, variance) = running(cx, a, mean, variance, count)?;
        cx.overwrite("running_mean", mean);
        cx.overwrite("running_var", variance);
    }
    Ok(cx.b.cast(result, dtype).into())
}

/// What a batch normalisation gives beside its result.
#[derive(Clone, Copy, PartialEq)]
enum Extras {
    None,
    /// Mean and inverse deviation of the batch.
    Statistics,
    /// The same, then the new running statistics.
    Updated,
    /// Mean and inverse deviation, then an empty buffer of the training kernels.
    Reserve,
    /// The same, then the new running statistics.
    ReserveUpdated,
}

/// Statistics of the batch or running ones: what normalises, and what updates.
struct Batch {
    mean: ValueId,
    inverse: ValueId,
    /// New running mean and variance, where the operator makes them.
    updated: Option<(ValueId, ValueId)>,
}

fn batch_norm(cx: &mut Context, a: &Args, extras: Extras) -> Rule {
    let x = a.tensor("input")?;
    let (dtype, rank) = (cx.b.dtype(x), cx.b.rank(x));
    if rank < 2 {
        // PyTorch lets an empty tensor pass without channels.
        return if extras == Extras::None {
            Ok(x.into())
        } else {
            Err(RuleError::Malformed("the input has no channels".to_owned()))
        };
    }
    let wide = cx.b.cast(x, dtype.compute());
    let always = a.target().contains("with_update");
    let never = a.target().contains("no_training") || a.target().contains("no_update");
    let training = always || (!never && a.bool_or("training", false)?);
    let batch = if training || !a.has("running_mean") {
        from_batch(cx, a, wide)?
    } else {
        from_running(cx, a, wide)?
    };
    let result = normalise(cx, a, wide, &batch)?;
    let result = cx.b.cast(result, dtype);
    let mut outputs = vec![Some(result)];
    if extras == Extras::None {
        overwrite_statistics(cx, &batch);
        return Ok(result.into());
    }
    for (index, value) in [(1, batch.mean), (2, batch.inverse)] {
        outputs.push(Some(match a.output_meta(index) {
            // Without training, nothing is saved: the outputs are empty.
            Some(meta) if meta.sizes.first().is_some_and(|size| size.is(0)) && !training => {
                cx.b.full(0i64, meta.dtype, &[Expr::int(0)])
            }
            _ => output_as(cx, a, index, value),
        }));
    }
    if matches!(extras, Extras::Reserve | Extras::ReserveUpdated) {
        outputs.push(Some(cx.b.full(0i64, DType::U8, &[Expr::int(0)])));
    }
    if matches!(extras, Extras::Updated | Extras::ReserveUpdated) {
        let (mean, variance) = match batch.updated {
            Some(updated) => updated,
            None => (a.tensor("running_mean")?, a.tensor("running_var")?),
        };
        outputs.extend([Some(mean), Some(variance)]);
    } else {
        overwrite_statistics(cx, &batch);
    }
    Ok(Outputs::Many(outputs))
}

fn overwrite_statistics(cx: &mut Context, batch: &Batch) {
    if let Some((mean, variance)) = batch.updated {
        cx.overwrite("running_mean", mean);
        cx.overwrite("running_var", variance);
    }
}

fn batch_eps(a: &Args) -> Result<f64, RuleError> {
    a.float_or(if a.has("epsilon") { "epsilon" } else { "eps" }, 1e-5)
}

/// `x * scale + shift` with both per channel.
fn normalise(cx: &mut Context, a: &Args, x: ValueId, batch: &Batch) -> Result<ValueId, RuleError> {
    let (dtype, shape) = (cx.b.dtype(x), cx.b.shape(x));
    let channels = &shape[1..2];
    let mut scale = batch.inverse;
    if let Some(weight) = a.opt_tensor("weight")? {
        let weight = cx.required_shape(weight, channels)?;
        let weight = cx.b.cast(weight, dtype);
        scale = cx.required_shape(scale, channels)?;
        scale = cx.mul(scale, weight)?;
    }
    let mean = cx.required_shape(batch.mean, channels)?;
    let moved = cx.mul(mean, scale)?;
    let shift = match a.opt_tensor("bias")? {
        Some(bias) => {
            let bias = cx.required_shape(bias, channels)?;
            let bias = cx.b.cast(bias, dtype);
            cx.sub(bias, moved)?
        }
        None => cx.unary(UnaryOp::Neg, moved),
    };
    let (scale, shift) = (per_channel(cx, scale, &shape)?, per_channel(cx, shift, &shape)?);
    let scaled = cx.mul(x, scale)?;
    cx.add(scaled, shift)
}

fn from_running(cx: &mut Context, a: &Args, x: ValueId) -> Result<Batch, RuleError> {
    let dtype = cx.b.dtype(x);
    let (mean, variance) = (a.tensor("running_mean")?, a.tensor("running_var")?);
    let channels = cx.b.shape(x)[1..2].to_vec();
    let (mean, variance) = (cx.required_shape(mean, &channels)?, cx.required_shape(variance, &channels)?);
    let (mean, variance) = (cx.b.cast(mean, dtype), cx.b.cast(variance, dtype));
    let inverse = inverse_deviation(cx, variance, batch_eps(a)?)?;
    Ok(Batch { mean, inverse, updated: None })
}

fn from_batch(cx: &mut Context, a: &Args, x: ValueId) -> Result<Batch, RuleError> {
    let rank = cx.b.rank(x);
    let axes: Vec<usize> = (0..rank).filter(|axis| *axis != 1).collect();
    let (variance, mean) = cx.variance(x, &axes, &Operand::Number(0.0.into()))?;
    let (variance, mean) = (cx.drop_axes(variance, &axes)?, cx.drop_axes(mean, &axes)?);
    let inverse = inverse_deviation(cx, variance, batch_eps(a)?)?;
    if !a.has("running_mean") || !a.has("running_var") {
        return Ok(Batch { mean, inverse, updated: None });
    }
    let dtype = cx.b.dtype(x);
    let count = cx.element_count(x, &axes, dtype);
    let updated = running(cx, a, mean, variance, count)?;
    Ok(Batch { mean, inverse, updated: Some(updated) })
}

/// The new running statistics, of channels' means and variances over `count` elements.
fn running(
    cx: &mut Context,
    a: &Args,
    mean: ValueId,
    variance: ValueId,
    count: ValueId,
) -> Result<(ValueId, ValueId), RuleError> {
    let factor = if a.has("exponential_average_factor") { "exponential_average_factor" } else { "momentum" };
    let momentum = a.float_or(factor, 0.1)?;
    // Running variances are unbiased: the batch's is scaled by count / (count - 1).
    let dtype = cx.b.dtype(mean);
    let unbiased = cx.apply([variance, count], dtype, |[v, n]| v * (&n / (&n - 1.0)))?;
    let mut updated = Vec::new();
    for (name, new) in [("running_mean", mean), ("running_var", unbiased)] {
        let old = a.tensor(name)?;
        let channels = cx.b.shape(new);
        let old = cx.required_shape(old, &channels)?;
        let stored = cx.b.dtype(old);
        let mixed = cx.apply([old, new], dtype, |[old, new]| old * (1.0 - momentum) + new * momentum)?;
        updated.push(cx.b.cast(mixed, stored));
    }
    Ok((updated[0], updated[1]))
}
