//! Convolutions and their transposes over one to three axes, batched or not.

use super::dynamic_conv::Sliding;
use super::registry::rules;
use super::support::spread_syms;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::ValueId;
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
    pure "aten.conv_tbc.default" => time_first,
    pure "aten.convolution.default" => general,
    pure "aten._convolution.default" => general,
    pure "aten._convolution.deprecated" => general,
}

/// The parameters that all overloads share, with symmetric padding.
fn parameters(cx: &Context, a: &Args, spatial: usize) -> Result<Sliding, RuleError> {
    let list = |name: &str, default: i64| spread_syms(&a.syms_or(name, default)?, spatial);
    let groups = a.sym_or("groups", 1)?;
    let range = groups.interval(cx.b.ranges());
    if range.min != range.max {
        return Err(RuleError::unsupported(format!("argument `groups` is `{groups}`, not a constant")));
    }
    Ok(Sliding {
        stride: list("stride", 1)?,
        padding: vec![[Expr::int(0), Expr::int(0)]; spatial],
        dilation: list("dilation", 1)?,
        groups: range.min,
        transposed: false,
        output_padding: vec![Expr::int(0); spatial],
    })
}

fn symmetric(a: &Args, spatial: usize) -> Result<Vec<[Expr; 2]>, RuleError> {
    let padding = spread_syms(&a.syms_or("padding", 0)?, spatial)?;
    Ok(padding.into_iter().map(|amount| [amount.clone(), amount]).collect())
}

fn plain(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let own = Sliding { padding: symmetric(a, spatial)?, ..parameters(cx, a, spatial)? };
    convolve(cx, a, &own)
}

fn named_padding(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let mut own = parameters(cx, a, spatial)?;
    match a.str_or("padding", "valid")? {
        "valid" => {}
        "same" => {
            let weight = a.tensor("weight")?;
            for (axis, window) in cx.b.shape(weight)[2..].iter().enumerate().take(spatial) {
                // What cannot be halved goes behind.
                let total = &own.dilation[axis] * &(window - 1);
                let before = total.floor_div_in(&Expr::int(2), cx.b.ranges());
                own.padding[axis] = [before.clone(), &total - &before];
            }
        }
        other => return Err(RuleError::Malformed(format!("padding `{other}`"))),
    }
    convolve(cx, a, &own)
}

/// A convolution of `[time, batch, channels]` with `[window, channels, results]`.
fn time_first(cx: &mut Context, a: &Args) -> Rule {
    let pad = a.sym_or("pad", 0)?;
    let (x, weight) = (a.tensor("self")?, a.tensor("weight")?);
    if cx.b.rank(x) != 3 || cx.b.rank(weight) != 3 {
        return Err(RuleError::Malformed("operand and weight have three axes".to_owned()));
    }
    let own = Sliding { padding: vec![[pad.clone(), pad]], ..parameters(cx, a, 1)? };
    let x = cx.b.permute(x, &[1, 2, 0])?;
    let weight = cx.b.permute(weight, &[2, 1, 0])?;
    let result = applied(cx, &own, x, weight)?;
    let result = add_channels(cx, result, a.tensor("bias")?)?;
    Ok(cx.b.permute(result, &[2, 0, 1])?.into())
}

fn transposed(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let own = Sliding {
        padding: symmetric(a, spatial)?,
        transposed: true,
        output_padding: spread_syms(&a.syms_or("output_padding", 0)?, spatial)?,
        ..parameters(cx, a, spatial)?
    };
    convolve(cx, a, &own)
}

fn general(cx: &mut Context, a: &Args) -> Rule {
    let own = stated_windows(cx, a)?;
    convolve(cx, a, &own)
}

/// The windows of a call that says whether it is a transpose.
pub(crate) fn stated_windows(cx: &Context, a: &Args) -> Result<Sliding, RuleError> {
    let weight = a.tensor("weight")?;
    let spatial = cx.b.rank(weight).saturating_sub(2);
    let transposed = a.bool_or("transposed", false)?;
    let output_padding = if transposed { a.syms_or("output_padding", 0)? } else { vec![Expr::int(0)] };
    Ok(Sliding {
        padding: symmetric(a, spatial)?,
        transposed,
        output_padding: spread_syms(&output_padding, spatial)?,
        ..parameters(cx, a, spatial)?
    })
}

/// The convolution of a batch, without bias.
pub(crate) fn applied(
    cx: &mut Context,
    own: &Sliding,
    x: ValueId,
    weight: ValueId,
) -> Result<ValueId, RuleError> {
    match own.fixed() {
        Some(conv) => Ok(cx.b.conv(x, weight, conv)?),
        None => own.by_windows(cx, x, weight),
    }
}

/// Applies the window and adds the bias.
fn convolve(cx: &mut Context, a: &Args, own: &Sliding) -> Rule {
    let (mut x, weight) = (a.tensor("input")?, a.tensor("weight")?);
    let spatial = own.stride.len();
    let unbatched = cx.b.rank(x) == spatial + 1;
    if unbatched {
        x = cx.batched(x)?;
    }
    let mut result = applied(cx, own, x, weight)?;
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
