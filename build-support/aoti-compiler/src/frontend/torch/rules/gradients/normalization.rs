//! Gradients of normalisations: of the input, the weight and the bias.

use super::{Args, Context, Outputs, RuleError, rules, stated};
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatUnary, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.native_layer_norm_backward.default" => layer,
    pure "aten.native_group_norm_backward.default" => group,
    pure "aten.native_batch_norm_backward.default" => batch,
}

/// A normalised tensor and what it was multiplied with, which broadcast against each other.
struct Normal {
    /// The input, centred and scaled.
    normal: ValueId,
    /// The inverse deviation.
    inverse: ValueId,
    /// The axes that moments are of.
    axes: Vec<usize>,
}

impl Normal {
    /// Of the input, from the gradient of what was normalised: what moves all elements of a mean alike changes nothing, and
    /// neither does what scales them alike.
    fn of_input(&self, cx: &mut Context, gradient: ValueId) -> Result<ValueId, RuleError> {
        let along = cx.mul(gradient, self.normal)?;
        let along = cx.mean(along, &self.axes, true)?;
        let along = cx.mul(self.normal, along)?;
        let rest = cx.sub(gradient, along)?;
        let mean = cx.mean(gradient, &self.axes, true)?;
        let rest = cx.sub(rest, mean)?;
        cx.mul(rest, self.inverse)
    }
}

/// An argument in the type that it is computed in.
fn wide(cx: &mut Context, a: &Args, name: &str) -> Result<ValueId, RuleError> {
    let value = a.tensor(name)?;
    Ok(cx.b.cast(value, cx.b.dtype(value).compute()))
}

fn weighted(
    cx: &mut Context,
    gradient: ValueId,
    weight: Option<ValueId>,
    shape: &[Expr],
) -> Result<ValueId, RuleError> {
    let Some(weight) = weight else { return Ok(gradient) };
    let weight = cx.b.reshape(weight, shape)?;
    let weight = cx.b.cast(weight, cx.b.dtype(gradient));
    cx.mul(gradient, weight)
}

/// The gradients of weight and bias: sums of what each parameter was part of.
fn of_parameters(
    cx: &mut Context,
    gradient: ValueId,
    normal: ValueId,
    axes: &[usize],
) -> Result<[ValueId; 2], RuleError> {
    let product = cx.mul(gradient, normal)?;
    let mut total = |value| if axes.is_empty() { Ok(value) } else { cx.sum(value, axes, false) };
    Ok([total(product)?, total(gradient)?])
}

fn leading(cx: &Context, a: &Args, x: ValueId) -> Result<usize, RuleError> {
    let own = a.syms("normalized_shape")?.len();
    let first = cx.b.rank(x).checked_sub(own);
    first.ok_or_else(|| RuleError::Malformed("more normalised axes than the input has".to_owned()))
}

fn layer(cx: &mut Context, a: &Args) -> Rule {
    let (g, x) = (wide(cx, a, "grad_out")?, wide(cx, a, "input")?);
    let (mean, inverse) = (wide(cx, a, "mean")?, wide(cx, a, "rstd")?);
    let (first, rank, shape) = (leading(cx, a, x)?, cx.b.rank(x), cx.b.shape(x));
    let centred = cx.sub(x, mean)?;
    let normal = cx.mul(centred, inverse)?;
    let own = Normal { normal, inverse, axes: (first..rank).collect() };
    let scaled = weighted(cx, g, a.opt_tensor("weight")?, &shape[first..])?;
    let of_x = own.of_input(cx, scaled)?;
    let [of_weight, of_bias] = of_parameters(cx, g, normal, &(0..first).collect::<Vec<_>>())?;
    Ok(stated(cx, a, &[Some(of_x), Some(of_weight), Some(of_bias)]))
}

/// A parameter per channel against `[n, channels, ...]`.
fn channels(shape: &[Expr]) -> Vec<Expr> {
    let one = |axis: usize| if axis == 1 { shape[1].clone() } else { Expr::int(1) };
    (0..shape.len()).map(one).collect()
}

fn group(cx: &mut Context, a: &Args) -> Rule {
    let (g, x) = (wide(cx, a, "grad_out")?, wide(cx, a, "input")?);
    let (mean, inverse) = (wide(cx, a, "mean")?, wide(cx, a, "rstd")?);
    let (groups, shape) = (Expr::int(a.int("group")?), cx.b.shape(x));
    if shape.len() < 2 || !(1..).contains(&a.int("group")?) {
        return Err(RuleError::Malformed("the input has no channels or there are no groups".to_owned()));
    }
    let members = shape[1].floor_div_in(&groups, cx.b.ranges());
    let parts = [groups, members];
    let grouped = cx.split_axis(x, 1, &parts)?;
    let rank = cx.b.rank(grouped);
    let (mean, inverse) = (cx.trailing_ones(mean, rank)?, cx.trailing_ones(inverse, rank)?);
    let centred = cx.sub(grouped, mean)?;
    let normal = cx.mul(centred, inverse)?;
    let own = Normal { normal, inverse, axes: (2..rank).collect() };
    let scaled = weighted(cx, g, a.opt_tensor("weight")?, &channels(&shape))?;
    let scaled = cx.split_axis(scaled, 1, &parts)?;
    let of_x = own.of_input(cx, scaled)?;
    let (of_x, normal) = (cx.b.reshape(of_x, &shape)?, cx.b.reshape(normal, &shape)?);
    let others: Vec<usize> = (0..shape.len()).filter(|axis| *axis != 1).collect();
    let [of_weight, of_bias] = of_parameters(cx, g, normal, &others)?;
    Ok(stated(cx, a, &[Some(of_x), Some(of_weight), Some(of_bias)]))
}

/// Mean and inverse deviation that the forward pass went by.
fn moments(cx: &mut Context, a: &Args, trains: bool, dtype: DType) -> Result<[ValueId; 2], RuleError> {
    if trains {
        let (mean, inverse) = (a.tensor("save_mean")?, a.tensor("save_invstd")?);
        return Ok([cx.b.cast(mean, dtype), cx.b.cast(inverse, dtype)]);
    }
    let (mean, variance) = (a.tensor("running_mean")?, a.tensor("running_var")?);
    let variance = cx.b.cast(variance, dtype);
    let shifted = cx.with_number(BinaryOp::Add, variance, a.float_or("eps", 1e-5)?)?;
    Ok([cx.b.cast(mean, dtype), cx.unary(FloatUnary::Rsqrt, shifted)])
}

fn batch(cx: &mut Context, a: &Args) -> Rule {
    let (g, x) = (wide(cx, a, "grad_out")?, wide(cx, a, "input")?);
    let (shape, trains) = (cx.b.shape(x), a.bool_or("train", false)?);
    if shape.len() < 2 {
        return Err(RuleError::Malformed("the input has no channels".to_owned()));
    }
    let [mean, inverse] = moments(cx, a, trains, cx.b.dtype(x))?;
    let own = channels(&shape);
    let (mean, inverse) = (cx.b.reshape(mean, &own)?, cx.b.reshape(inverse, &own)?);
    let centred = cx.sub(x, mean)?;
    let normal = cx.mul(centred, inverse)?;
    let axes: Vec<usize> = (0..shape.len()).filter(|axis| *axis != 1).collect();
    let scaled = weighted(cx, g, a.opt_tensor("weight")?, &own)?;
    let [of_weight, of_bias] = of_parameters(cx, g, normal, &axes)?;
    // Running statistics do not depend on the input.
    let of_x = if trains {
        Normal { normal, inverse, axes }.of_input(cx, scaled)?
    } else {
        cx.mul(scaled, inverse)?
    };
    Ok(stated(cx, a, &[Some(of_x), Some(of_weight), Some(of_bias)]))
}
