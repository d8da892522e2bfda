//! Losses over classes, and losses that compare whole vectors.

use super::loss::reduce;
use super::norm::pairwise_distance;
use super::operand::Operand;
use super::random::ops::all_hold;
use super::registry::rules;
use super::softmax::{Form, softmax};
use super::sort::any_equal;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Coord, Relation, Scalar, ScanOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.nll_loss_nd.default" => |cx, a| nll(cx, a, false),
    pure "aten.nll_loss.default" => |cx, a| nll(cx, a, false),
    pure "aten.nll_loss2d.default" => |cx, a| nll(cx, a, false),
    pure "aten.nll_loss_forward.default" => |cx, a| nll(cx, a, true),
    pure "aten.nll_loss2d_forward.default" => |cx, a| nll(cx, a, true),
    pure "aten.cross_entropy_loss.default" => cross_entropy,
    pure "aten.multi_margin_loss.default" => multi_margin,
    pure "aten.multilabel_margin_loss.default" => |cx, a| multilabel_margin(cx, a, false),
    pure "aten.multilabel_margin_loss_forward.default" => |cx, a| multilabel_margin(cx, a, true),
    pure "aten.cosine_embedding_loss.default" => cosine_embedding,
    pure "aten.triplet_margin_loss.default" => triplet_margin,
}

/// The axis of classes: 1, or 0 of a single sample.
pub(crate) fn class_axis(cx: &Context, x: ValueId) -> usize {
    usize::from(cx.b.rank(x) > 1)
}

/// What class targets select: per target, whether it counts and the class (0 where it does not count).
pub(crate) fn targets(cx: &mut Context, a: &Args, target: ValueId) -> Result<(ValueId, ValueId), RuleError> {
    let ignored = a.number_or("ignore_index", -100i64)?;
    let target = cx.b.cast(target, DType::I64);
    let counts = cx.combine_as(Relation::Ne, &Operand::Tensor(target), &ignored, DType::I64)?;
    let zero = cx.b.full_like(0i64, target);
    Ok((counts, cx.b.select(counts, target, zero)?))
}

/// `x` at a class per position; the class axis goes.
fn at_class(cx: &mut Context, x: ValueId, axis: usize, class: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(class);
    let coords = (0..cx.b.rank(x))
        .map(|k| match k.cmp(&axis) {
            std::cmp::Ordering::Less => Coord::Expr(Expr::axis(k)),
            std::cmp::Ordering::Equal => Coord::Indirect(0),
            std::cmp::Ordering::Greater => Coord::Expr(Expr::axis(k - 1)),
        })
        .collect();
    Ok(cx.b.gather(x, &[class], coords, &shape)?)
}

/// Weight of each target: its class's, or 1; 0 where it does not count.
pub(crate) fn target_weights(
    cx: &mut Context,
    a: &Args,
    counts: ValueId,
    class: ValueId,
    dtype: DType,
) -> Result<ValueId, RuleError> {
    let counts = cx.b.cast(counts, dtype);
    match a.opt_tensor("weight")? {
        Some(weight) => {
            let weight = cx.b.cast(weight, dtype);
            let own = at_class(cx, weight, 0, class)?;
            cx.mul(own, counts)
        }
        None => Ok(counts),
    }
}

fn all_axes(cx: &Context, x: ValueId) -> Vec<usize> {
    (0..cx.b.rank(x)).collect()
}

/// Applies `reduction` to losses; the mean is weighted.
fn weighted_mean(
    cx: &mut Context,
    a: &Args,
    losses: ValueId,
    weights: ValueId,
) -> Result<ValueId, RuleError> {
    let axes = all_axes(cx, losses);
    match a.int_or("reduction", 1)? {
        0 => Ok(losses),
        2 => cx.sum(losses, &axes, false),
        _ => {
            let (loss, weight) = (cx.sum(losses, &axes, false)?, cx.sum(weights, &axes, false)?);
            cx.div(loss, weight)
        }
    }
}

/// Negative logarithm of the probability of the target class, by target, with the targets' weights.
fn class_losses(
    cx: &mut Context,
    a: &Args,
    log_probabilities: ValueId,
    target: ValueId,
) -> Result<(ValueId, ValueId), RuleError> {
    let dtype = cx.b.dtype(log_probabilities);
    let axis = class_axis(cx, log_probabilities);
    let (counts, class) = targets(cx, a, target)?;
    let weights = target_weights(cx, a, counts, class, dtype)?;
    let chosen = at_class(cx, log_probabilities, axis, class)?;
    let losses = cx.apply([chosen, weights, counts], dtype, |[x, w, counts]| {
        // A target that does not count costs nothing, whatever the prediction.
        counts.differs(0.0).select(-(x * w), 0.0)
    })?;
    Ok((losses, weights))
}

fn nll(cx: &mut Context, a: &Args, with_weight: bool) -> Rule {
    let (x, target) = (a.tensor("self")?, a.tensor("target")?);
    let dtype = cx.b.dtype(x);
    let x = cx.b.cast(x, dtype.compute());
    let (losses, weights) = class_losses(cx, a, x, target)?;
    let result = weighted_mean(cx, a, losses, weights)?;
    let result = cx.b.cast(result, dtype);
    if !with_weight {
        return Ok(result.into());
    }
    let axes = all_axes(cx, weights);
    let total = match a.int_or("reduction", 1)? {
        0 => cx.b.scalar(0.0, dtype),
        _ => cx.sum(weights, &axes, false)?,
    };
    let total = cx.b.cast(total, dtype);
    Ok(Outputs::Many(vec![Some(result), Some(total)]))
}

fn cross_entropy(cx: &mut Context, a: &Args) -> Rule {
    let (x, target) = (a.tensor("self")?, a.tensor("target")?);
    let dtype = cx.b.dtype(x);
    let axis = class_axis(cx, x);
    let smoothing = a.float_or("label_smoothing", 0.0)?;
    let wide = cx.b.cast(x, dtype.compute());
    let log = softmax(cx, wide, axis, Form::Log)?;
    let result = if cx.b.dtype(target).is_float() {
        of_probabilities(cx, a, log, target, axis, smoothing)?
    } else {
        let (losses, weights) = class_losses(cx, a, log, target)?;
        let plain = weighted_mean(cx, a, losses, weights)?;
        if smoothing == 0.0 {
            plain
        } else {
            let smooth = smooth_losses(cx, a, log, target, axis)?;
            let smooth = weighted_mean(cx, a, smooth, weights)?;
            let classes = cx.element_count(log, &[axis], dtype.compute());
            cx.apply([plain, smooth, classes], dtype.compute(), |[plain, smooth, classes]| {
                plain * (1.0 - smoothing) + smooth * (smoothing / classes)
            })?
        }
    };
    Ok(cx.b.cast(result, dtype).into())
}

/// The class weights, shaped to broadcast against predictions.
fn class_weights(
    cx: &mut Context,
    a: &Args,
    like: ValueId,
    axis: usize,
) -> Result<Option<ValueId>, RuleError> {
    let Some(weight) = a.opt_tensor("weight")? else { return Ok(None) };
    let mut shape = vec![Expr::int(1); cx.b.rank(like)];
    shape[axis] = cx.b.ty(weight).numel();
    let weight = cx.b.cast(weight, cx.b.dtype(like));
    Ok(Some(cx.b.reshape(weight, &shape)?))
}

/// Negative sum over classes of weighted log-probabilities, 0 where the target does not count.
fn smooth_losses(
    cx: &mut Context,
    a: &Args,
    log: ValueId,
    target: ValueId,
    axis: usize,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(log);
    let weighted = match class_weights(cx, a, log, axis)? {
        Some(weight) => cx.mul(log, weight)?,
        None => log,
    };
    let total = cx.sum(weighted, &[axis], false)?;
    let (counts, _) = targets(cx, a, target)?;
    cx.apply([total, counts], dtype, |[total, counts]| counts.differs(0.0).select(-total, 0.0))
}

fn of_probabilities(
    cx: &mut Context,
    a: &Args,
    log: ValueId,
    target: ValueId,
    axis: usize,
    smoothing: f64,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(log);
    let classes = cx.element_count(log, &[axis], dtype);
    let mut products = cx.apply([log, target, classes], dtype, |[log, target, classes]| {
        let target = if smoothing == 0.0 { target } else { target * (1.0 - smoothing) + smoothing / classes };
        -(log * target)
    })?;
    if let Some(weight) = class_weights(cx, a, log, axis)? {
        products = cx.mul(products, weight)?;
    }
    let losses = cx.sum(products, &[axis], false)?;
    let ones = cx.b.full_like(1.0, losses);
    weighted_mean(cx, a, losses, ones)
}

/// `sum over other classes of max(0, margin - x[target] + x[class]) ^ p`, over the number of classes.
fn multi_margin(cx: &mut Context, a: &Args) -> Rule {
    let (x, target) = (a.tensor("self")?, a.tensor("target")?);
    let dtype = cx.b.dtype(x);
    let p = a.float_or("p", 1.0)?;
    let margin = a.number_or("margin", 1.0)?.formula(cx, dtype.compute());
    let x = cx.b.cast(x, dtype.compute());
    let x = cx.at_least_1d(x)?;
    let axis = class_axis(cx, x);
    // A single sample may come with a target of one element.
    let mut lead = cx.b.shape(x);
    lead.truncate(axis);
    let target = cx.b.cast(target, DType::I64);
    let target = cx.b.reshape(target, &lead)?;
    let chosen = at_class(cx, x, axis, target)?;
    let chosen = cx.b.unsqueeze(chosen, axis)?;
    let mut losses = cx.apply([x, chosen], dtype.compute(), |[x, chosen]| {
        let gap = x - chosen + margin;
        // A gap that is not a number costs nothing, as in PyTorch's kernel.
        gap.gt(0.0).select(if p == 1.0 { gap.clone() } else { gap.square() }, 0.0)
    })?;
    if let Some(weight) = a.opt_tensor("weight")? {
        let weight = cx.b.cast(weight, dtype.compute());
        let own = at_class(cx, weight, 0, target)?;
        let own = cx.b.unsqueeze(own, axis)?;
        losses = cx.mul(losses, own)?;
    }
    let shape = cx.b.shape(x);
    let class = cx.b.index(Expr::axis(axis), &shape);
    let target = cx.b.unsqueeze(target, axis)?;
    let own = cx.binary(Relation::Eq, class, target)?;
    let zero = cx.b.full_like(0.0, losses);
    let losses = cx.b.select(own, zero, losses)?;
    let losses = cx.mean(losses, &[axis], false)?;
    reduce(cx, a, losses, dtype)
}

/// For each target class (those before the first -1) and each class that is no target, the margin between them.
fn multilabel_margin(cx: &mut Context, a: &Args, with_mask: bool) -> Rule {
    let (x, target) = (a.tensor("self")?, a.tensor("target")?);
    let dtype = cx.b.dtype(x);
    let shape = cx.b.shape(x);
    let axis = class_axis(cx, x);
    let wide = cx.b.cast(x, dtype.compute());
    let wide = cx.at_least_1d(wide)?;
    let target = cx.b.cast(target, DType::I64);
    let target = cx.at_least_1d(target)?;
    let axis = axis.min(cx.b.rank(wide) - 1);
    let classes = cx.b.shape(wide)[axis].clone();
    let classes = cx.b.index(classes, &[]);
    let is_target =
        cx.apply([target, classes], DType::I64, |[target, classes]| target.ge(-1.0).and(target.lt(classes)))?;
    all_hold(cx, a, is_target, "targets must be at least -1, and below the number of classes")?;
    let named = cx.with_number(Relation::Ge, target, 0i64)?;
    let named = cx.b.cast(named, DType::I64);
    let valid = cx.b.scan(ScanOp::Prod, named, axis)?[0];
    let class = cx.apply([target, valid], DType::I64, |[t, valid]| valid.differs(0.0).select(t, 0.0))?;
    // Classes that are targets: [..., class] among the valid entries of the row.
    let sentinel = cx.apply([target, valid], DType::I64, |[t, valid]| valid.differs(0.0).select(t, -1.0))?;
    let row = cx.b.unsqueeze(sentinel, axis)?;
    let class_shape = cx.b.shape(wide);
    let index = cx.b.index(Expr::axis(axis), &class_shape);
    let is_target = any_equal(cx, index, row)?;
    let positions = cx.b.shape(class);
    let coords = (0..positions.len())
        .map(|k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) })
        .collect();
    let chosen = cx.b.gather(wide, &[class], coords, &positions)?;
    // [..., target, class].
    let (chosen, valid) = (cx.b.unsqueeze(chosen, axis + 1)?, cx.b.unsqueeze(valid, axis + 1)?);
    let (others, taken) = (cx.b.unsqueeze(wide, axis)?, cx.b.unsqueeze(is_target, axis)?);
    let margins = cx.apply([chosen, others, valid, taken], dtype.compute(), |[t, x, valid, taken]| {
        let gap = 1.0 - t + x;
        let counts = gap.gt(0.0).and(valid.differs(0.0)).and(taken.equals(0.0));
        counts.select(gap, 0.0)
    })?;
    let total = cx.sum(margins, &[axis, axis + 1], false)?;
    let classes = cx.element_count(wide, &[axis], dtype.compute());
    let losses = cx.div(total, classes)?;
    let result = reduce(cx, a, losses, dtype)?;
    if let Outputs::One(value) = result
        && with_mask
    {
        let mask = cx.b.cast(is_target, dtype);
        let mask = cx.b.reshape(mask, &shape)?;
        return Ok(Outputs::Many(vec![Some(value), Some(mask)]));
    }
    Ok(result)
}

fn cosine_embedding(cx: &mut Context, a: &Args) -> Rule {
    let (x, y, target) = (a.tensor("input1")?, a.tensor("input2")?, a.tensor("target")?);
    let margin = a.float_or("margin", 0.0)?;
    let dtype = cx.float_type(cx.result_type(&[x, y])?);
    let wide = dtype.compute();
    let axis = cx.b.rank(target);
    let mut sums = Vec::new();
    for (left, right, floor) in [(x, y, 0.0), (x, x, 1e-12), (y, y, 1e-12)] {
        let product = cx.apply([left, right], wide, |[left, right]| left * right)?;
        let total = cx.sum(product, &[axis], false)?;
        sums.push(cx.with_number(BinaryOp::Add, total, Scalar::Float(floor))?);
    }
    let losses = cx.apply([sums[0], sums[1], sums[2], target], wide, |[product, x, y, target]| {
        let cosine = product / (x * y).sqrt();
        let far = (&cosine - margin).max(0.0);
        target.equals(1.0).select(1.0 - &cosine, 0.0) + target.equals(-1.0).select(far, 0.0)
    })?;
    reduce(cx, a, losses, dtype)
}

fn triplet_margin(cx: &mut Context, a: &Args) -> Rule {
    let operands = [a.tensor("anchor")?, a.tensor("positive")?, a.tensor("negative")?];
    let dtype = cx.float_type(cx.result_type(&operands)?);
    let [anchor, positive, negative] = operands;
    let parameters = (a.float_or("p", 2.0)?, a.float_or("eps", 1e-6)?);
    let near = pairwise_distance(cx, anchor, positive, parameters, false)?;
    let mut far = pairwise_distance(cx, anchor, negative, parameters, false)?;
    if a.bool_or("swap", false)? {
        let other = pairwise_distance(cx, positive, negative, parameters, false)?;
        far = cx.binary(BinaryOp::Minimum, far, other)?;
    }
    let margin = a.float_or("margin", 1.0)?;
    let losses = cx.apply([near, far], dtype.compute(), |[near, far]| (near - far + margin).max(0.0))?;
    reduce(cx, a, losses, dtype)
}
