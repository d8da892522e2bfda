//! Convolutions and their transposes over one to three axes, batched or not.

use super::registry::rules;
use super::support::{fixed, spread};
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{Conv, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.conv1d.default" => |cx, a| plain(cx, a, 1),
    pure "aten.conv2d.default" => |cx, a| plain(cx, a, 2),
    pure "aten.conv3d.default" => |cx, a| plain(cx, a, 3),
    pure "aten.conv1d.padding" => |cx, a| named_padding(cx, a, 1),
    pure "aten.conv2d.padding" => |cx, a| named_padding(cx, a, 2),
    pure "aten.conv3d.padding" => |cx, a| named_padding(cx, a, 3),
    pure "aten.conv_transpose1d.default" => |cx, a| transposed(cx, a, 1),
    pure "aten.conv_transpose2d.input" => |cx, a| transposed(cx, a, 2),
    pure "aten.conv_transpose3d.input" => |cx, a| transposed(cx, a, 3),
    pure "aten.convolution.default" => general,
    pure "aten._convolution.default" => general,
    pure "aten._convolution.deprecated" => general,
}

/// The parameters that all overloads share, with symmetric padding.
fn parameters(a: &Args, spatial: usize) -> Result<Conv, RuleError> {
    let list = |name: &str, default: i64| spread(&a.ints_or(name, &[default])?, spatial);
    Ok(Conv {
        stride: list("stride", 1)?,
        padding: vec![(0, 0); spatial],
        dilation: list("dilation", 1)?,
        groups: a.int_or("groups", 1)?,
        transposed: false,
        output_padding: vec![0; spatial],
    })
}

fn symmetric(a: &Args, spatial: usize) -> Result<Vec<(i64, i64)>, RuleError> {
    let padding = spread(&a.ints_or("padding", &[0])?, spatial)?;
    Ok(padding.into_iter().map(|amount| (amount, amount)).collect())
}

fn plain(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let conv = Conv { padding: symmetric(a, spatial)?, ..parameters(a, spatial)? };
    convolve(cx, a, conv)
}

fn named_padding(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let mut conv = parameters(a, spatial)?;
    match a.str_or("padding", "valid")? {
        "valid" => {}
        "same" => {
            let weight = a.tensor("weight")?;
            let window = fixed(&cx.b.shape(weight)[2..], "padding `same`")?;
            for axis in 0..spatial {
                // What cannot be halved goes behind.
                let total = conv.dilation[axis] * (window[axis] - 1);
                conv.padding[axis] = (total / 2, total - total / 2);
            }
        }
        other => return Err(RuleError::Malformed(format!("padding `{other}`"))),
    }
    convolve(cx, a, conv)
}

fn transposed(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let conv = Conv {
        padding: symmetric(a, spatial)?,
        transposed: true,
        output_padding: spread(&a.ints_or("output_padding", &[0])?, spatial)?,
        ..parameters(a, spatial)?
    };
    convolve(cx, a, conv)
}

fn general(cx: &mut Context, a: &Args) -> Rule {
    let weight = a.tensor("weight")?;
    let spatial = cx.b.rank(weight).saturating_sub(2);
    let transposed = a.bool_or("transposed", false)?;
    let output_padding = if transposed { a.ints_or("output_padding", &[0])? } else { vec![0] };
    let conv = Conv {
        padding: symmetric(a, spatial)?,
        transposed,
        output_padding: spread(&output_padding, spatial)?,
        ..parameters(a, spatial)?
    };
    convolve(cx, a, conv)
}

/// Applies the window and adds the bias.
fn convolve(cx: &mut Context, a: &Args, conv: Conv) -> Rule {
    let (mut x, weight) = (a.tensor("input")?, a.tensor("weight")?);
    let spatial = conv.stride.len();
    let unbatched = cx.b.rank(x) == spatial + 1;
    if unbatched {
        x = cx.batched(x)?;
    }
    let mut result = cx.b.conv(x, weight, conv)?;
    if let Some(bias) = a.opt_tensor("bias")? {
        result = add_channels(cx, result, bias)?;
    }
    if unbatched {
        result = cx.b.squeeze(result, &[0])?;
    }
    Ok(result.into())
}

/// Adds one number per channel, channels being axis 1.
fn add_channels(cx: &mut Context, x: ValueId, bias: ValueId) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(bias);
    shape.extend(vec![Expr::int(1); cx.b.rank(x).saturating_sub(2)]);
    let bias = cx.b.reshape(bias, &shape)?;
    cx.add(x, bias)
}
