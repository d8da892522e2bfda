//! The gradient of convolutions and their transposes: of input, weight and bias, each itself a convolution.

use super::{Args, Context, Outputs, RuleError, rules, stated};
use crate::frontend::torch::rules::convolution::{applied, stated_windows};
use crate::frontend::torch::rules::dynamic_conv::Sliding;
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.convolution_backward.default" => convolution,
}

fn convolution(cx: &mut Context, a: &Args) -> Rule {
    let (g, x, weight) = (a.tensor("grad_output")?, a.tensor("input")?, a.tensor("weight")?);
    let own = stated_windows(cx, a)?;
    if cx.b.rank(x) != own.stride.len() + 2 || cx.b.rank(g) != cx.b.rank(x) {
        return Err(RuleError::Malformed("images and their gradient have a batch and channels".to_owned()));
    }
    let others: Vec<usize> = (0..cx.b.rank(g)).filter(|axis| *axis != 1).collect();
    // Nobody computes what the program does not name.
    let of_x = a.output_meta(0).map(|_| of_input(cx, &own, g, x, weight)).transpose()?;
    let of_weight = a.output_meta(1).map(|_| of_weight(cx, &own, g, x, weight)).transpose()?;
    let wide = cx.b.cast(g, cx.b.dtype(g).compute());
    let of_bias = a.output_meta(2).map(|_| cx.sum(wide, &others, false)).transpose()?;
    Ok(stated(cx, a, &[of_x, of_weight, of_bias]))
}

/// Of the input: windows put back where they were taken from.
fn of_input(
    cx: &mut Context,
    own: &Sliding,
    g: ValueId,
    x: ValueId,
    weight: ValueId,
) -> Result<ValueId, RuleError> {
    let (sizes, window) = (cx.b.shape(x), cx.b.shape(weight));
    let reached = cx.b.shape(g);
    let mut back = Sliding { transposed: !own.transposed, ..own.clone() };
    for k in 0..own.stride.len() {
        back.output_padding[k] = if own.transposed {
            Expr::int(0)
        } else {
            // What no window reached at the end.
            let [before, behind] = &own.padding[k];
            let span = &(&own.dilation[k] * &(&window[k + 2] - 1)) + 1;
            let covered = &(&(&own.stride[k] * &(&reached[k + 2] - 1)) + &span) - &(before + behind);
            &sizes[k + 2] - &covered
        };
    }
    let result = applied(cx, &back, g, weight)?;
    first_of(cx, result, &sizes)
}

/// Of the weight: at each tap the products of what it met, summed over the batch and all windows. That is a convolution whose
/// windows are the gradient's positions, with strides and dilations exchanged.
fn of_weight(
    cx: &mut Context,
    own: &Sliding,
    g: ValueId,
    x: ValueId,
    weight: ValueId,
) -> Result<ValueId, RuleError> {
    let (moving, still) = if own.transposed { (g, x) } else { (x, g) };
    let groups = Expr::int(own.groups);
    let members = cx.b.shape(moving)[1].floor_div_in(&groups, cx.b.ranges());
    let split = cx.split_axis(moving, 1, &[groups, members])?;
    // [n, groups, members, ...] as [members, groups n, ...]
    let split = cx.move_axis(split, 0, 2)?;
    let split = cx.move_axis(split, 1, 0)?;
    let image = cx.merge_axes(split, 1, 3)?;
    let windows = cx.b.transpose(still, 0, 1)?;
    let exchanged = Sliding {
        stride: own.dilation.clone(),
        dilation: own.stride.clone(),
        transposed: false,
        output_padding: vec![Expr::int(0); own.stride.len()],
        ..own.clone()
    };
    let result = applied(cx, &exchanged, image, windows)?;
    let result = cx.b.transpose(result, 0, 1)?;
    let shape = cx.b.shape(weight);
    first_of(cx, result, &shape)
}

/// The first elements of each spatial axis.
fn first_of(cx: &mut Context, x: ValueId, shape: &[Expr]) -> Result<ValueId, RuleError> {
    let mut result = x;
    for (axis, size) in shape.iter().enumerate().skip(2) {
        if !cx.b.same_size(&cx.b.shape(result)[axis], size) {
            result = cx.b.slice(result, axis, &Expr::int(0), size, 1)?;
        }
    }
    Ok(result)
}
