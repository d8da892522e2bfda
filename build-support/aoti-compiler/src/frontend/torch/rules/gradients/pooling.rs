//! Gradients of averages of windows: each window's share goes to all that it was an average of.

use super::{Args, Context, Outputs, RuleError, added_at, rules};
use crate::frontend::torch::rules::adaptive_pooling::axis_windows;
use crate::frontend::torch::rules::pooling::{Windows, shared};
use crate::graph::{FloatBinary, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.avg_pool2d_backward.default" => |cx, a| averaged(cx, a, 2),
    pure "aten.avg_pool3d_backward.default" => |cx, a| averaged(cx, a, 3),
    pure "aten._adaptive_avg_pool2d_backward.default" => |cx, a| adaptive(cx, a, 2),
    pure "aten._adaptive_avg_pool3d_backward.default" => |cx, a| adaptive(cx, a, 3),
}

/// The gradient and the operand, which have as many axes.
fn operands(cx: &Context, a: &Args, spatial: usize) -> Result<(ValueId, ValueId), RuleError> {
    let (g, x) = (a.tensor("grad_output")?, a.tensor("self")?);
    if cx.b.rank(g) != cx.b.rank(x) || cx.b.rank(x) < spatial {
        return Err(RuleError::Malformed(format!("pooling over {spatial} axes of a gradient of others")));
    }
    Ok((g, x))
}

/// Every element once for each tap of its window: taps are the last axes.
fn for_taps(cx: &mut Context, g: ValueId, taps: &[Expr]) -> Result<ValueId, RuleError> {
    let shape = [cx.b.shape(g).as_slice(), taps].concat();
    let with_taps = cx.trailing_ones(g, shape.len())?;
    Ok(cx.b.expand(with_taps, &shape)?)
}

fn averaged(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let (g, x) = operands(cx, a, spatial)?;
    let windows = Windows::new(a, spatial)?;
    let (dtype, own) = (cx.b.dtype(g), cx.b.shape(x));
    let (rank, first) = (own.len(), own.len() - spatial);
    let wide = cx.b.cast(g, dtype.compute());
    let share = shared(cx, a, &windows, &own, wide, FloatBinary::Div.into())?;
    let taps: Vec<Expr> = windows.kernel.iter().map(|size| Expr::int(*size)).collect();
    let shares = for_taps(cx, share, &taps)?;
    // Into the padding, too, which is cut off after.
    let mut padded = own.clone();
    let mut coords: Vec<Expr> = (0..rank).map(Expr::axis).collect();
    for k in 0..spatial {
        let behind = windows.behind(cx, k, &own[first + k]).maximum_in(&Expr::int(0), cx.b.ranges());
        padded[first + k] = &(&own[first + k] + windows.padding[k]) + &behind;
        coords[first + k] = &(&Expr::axis(first + k) * windows.stride[k]) + &Expr::axis(rank + k);
    }
    let mut result = added_at(cx, shares, &padded, coords)?;
    for k in 0..spatial {
        result = cx.b.slice(result, first + k, &Expr::int(windows.padding[k]), &own[first + k], 1)?;
    }
    Ok(cx.b.cast(result, dtype).into())
}

fn adaptive(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let (g, x) = operands(cx, a, spatial)?;
    let (dtype, own, outputs) = (cx.b.dtype(g), cx.b.shape(x), cx.b.shape(g));
    let (rank, first) = (own.len(), own.len() - spatial);
    let axes: Vec<_> = (first..rank).map(|axis| axis_windows(cx, &own[axis], &outputs[axis], axis)).collect();
    let counts = cx.b.index(Expr::product(axes.iter().map(|axis| &axis.count)), &outputs);
    let counts = cx.b.cast(counts, dtype.compute());
    let wide = cx.b.cast(g, dtype.compute());
    let share = cx.div(wide, counts)?;
    let taps: Vec<Expr> = axes.iter().map(|axis| axis.most.clone()).collect();
    let mut shares = for_taps(cx, share, &taps)?;
    let shape = cx.b.shape(shares);
    let mut coords: Vec<Expr> = (0..rank).map(Expr::axis).collect();
    for (k, axis) in axes.iter().enumerate() {
        let tap = Expr::axis(rank + k);
        let position = &axis.start + &tap;
        if axis.even {
            coords[first + k] = position;
            continue;
        }
        // Taps beyond the window add nothing to what they meet.
        let inside = cx.index_is(Relation::Gt, &axis.count - &tap, &shape)?;
        let nothing = cx.b.full_like(0.0, shares);
        shares = cx.b.select(inside, shares, nothing)?;
        coords[first + k] = position.minimum(&(&own[first + k] - 1));
    }
    let result = added_at(cx, shares, &own, coords)?;
    Ok(cx.b.cast(result, dtype).into())
}
