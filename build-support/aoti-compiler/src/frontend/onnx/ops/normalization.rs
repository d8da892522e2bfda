//! Normalisations and dropout.
//!
//! Half types are computed in `f32` from the first to the last step and rounded once.

use super::super::call::{Call, malformed, unsupported};
use super::super::types::element_type;
use super::super::value::Val;
use super::super::walk::Onnx;
use super::{Rule, many, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::{Operand, RuleError};
use crate::graph::{BinaryOp, FloatUnary, Node, Op, Relation, UnaryOp, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "BatchNormalization" => batch_normalization,
    "InstanceNormalization" => instance_normalization,
    "LayerNormalization" => layer_normalization,
    "GroupNormalization" => group_normalization,
    "RMSNormalization" => rms_normalization,
    "LRN" => local_response,
    "MeanVarianceNormalization" => mean_variance,
    "LpNormalization" => lp_normalization,
    // What ONNX Runtime's optimiser calls it, in the standard's domain.
    "SimplifiedLayerNormalization" => rms_normalization,
}

/// `(x - mean) / sqrt(variance + eps)` with the statistics, all in the computing type.
pub(super) struct Normal {
    pub(super) value: ValueId,
    pub(super) mean: ValueId,
    /// `1 / sqrt(variance + eps)`.
    pub(super) inverse: ValueId,
}

impl Onnx<'_> {
    /// A value in the type that its own type computes in.
    pub(super) fn wide(&mut self, x: ValueId) -> ValueId {
        let dtype = self.b.dtype(x).compute();
        self.b.cast(x, dtype)
    }

    /// A value in the type of another.
    pub(super) fn typed_like(&mut self, x: ValueId, like: ValueId) -> ValueId {
        let dtype = self.b.dtype(like);
        self.b.cast(x, dtype)
    }

    /// A value whose shape has to be that of another.
    pub(super) fn shaped_like(&mut self, x: ValueId, like: ValueId) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(like);
        self.required_shape(x, &shape)
    }

    /// Mean and variance over some axes become 0 and 1.
    pub(super) fn normal(&mut self, x: ValueId, axes: &[usize], eps: f64) -> Result<Normal, RuleError> {
        let wide = self.wide(x);
        let (variance, mean) = self.variance(wide, axes, &Operand::Number(0.0.into()))?;
        let inverse = self.inverse_root(variance, eps)?;
        let centred = self.sub(wide, mean)?;
        Ok(Normal { value: self.mul(centred, inverse)?, mean, inverse })
    }

    /// The mean of squares over some axes becomes 1; and what it was multiplied by.
    pub(super) fn unit_squares(
        &mut self,
        x: ValueId,
        axes: &[usize],
        eps: f64,
    ) -> Result<(ValueId, ValueId), RuleError> {
        let wide = self.wide(x);
        let squares = self.mul(wide, wide)?;
        let mean = self.mean(squares, axes, true)?;
        let inverse = self.inverse_root(mean, eps)?;
        Ok((self.mul(wide, inverse)?, inverse))
    }

    /// `1 / sqrt(x + eps)`.
    pub(super) fn inverse_root(&mut self, x: ValueId, eps: f64) -> Result<ValueId, RuleError> {
        let shifted = self.with_number(BinaryOp::Add, x, eps)?;
        Ok(self.b.unary(FloatUnary::Rsqrt, shifted))
    }

    /// `x * scale + shift` in the type of `x`, as far as they are given.
    pub(super) fn affine(
        &mut self,
        x: ValueId,
        scale: Option<ValueId>,
        shift: Option<ValueId>,
    ) -> Result<ValueId, RuleError> {
        let dtype = self.b.dtype(x);
        let mut result = x;
        for (parameter, op) in [(scale, BinaryOp::Mul), (shift, BinaryOp::Add)] {
            if let Some(parameter) = parameter {
                let parameter = self.b.cast(parameter, dtype);
                result = self.b.binary(op, result, parameter)?;
            }
        }
        Ok(result)
    }

    /// A list with a number for each channel, so that it broadcasts against `[batch, channels, ...]`.
    pub(super) fn per_channel(&mut self, list: ValueId, like: &[Expr]) -> Result<ValueId, RuleError> {
        let list = self.required_shape(list, &like[1..2])?;
        self.trailing_ones(list, like.len() - 1)
    }
}

/// What has a batch and channels.
fn channelled(cx: &Onnx, x: ValueId) -> Result<Vec<Expr>, RuleError> {
    let shape = cx.b.shape(x);
    if shape.len() < 2 { Err(malformed("it takes a batch and channels")) } else { Ok(shape) }
}

/// Of what statistics a batch normalisation is.
struct Statistics {
    mean: ValueId,
    variance: ValueId,
}

fn batch_normalization(cx: &mut Onnx, c: &Call) -> Rule {
    let own = cx.b.shape(c.tensor(0)?);
    // One axis is a batch of one channel.
    let x = cx.trailing_ones(c.tensor(0)?, 2)?;
    let (shape, dtype) = (channelled(cx, x)?, cx.b.dtype(x));
    let eps = c.float("epsilon", 1e-5)?;
    // Before version 9, statistics might be of single elements over the batch.
    let by_channel = c.version >= 9 || c.flag("spatial", true)?;
    let first = if by_channel { 2 } else { shape.len() };
    let axes: Vec<usize> = std::iter::once(0).chain(first..shape.len()).collect();
    let list = |cx: &mut Onnx, position: usize| -> Result<ValueId, RuleError> {
        let list = c.tensor(position)?;
        if by_channel { cx.per_channel(list, &shape) } else { cx.required_shape(list, &shape[1..]) }
    };
    let (scale, shift) = (list(cx, 1)?, list(cx, 2)?);
    let running = Statistics { mean: list(cx, 3)?, variance: list(cx, 4)? };
    let is_training = match c.version {
        14.. => c.flag("training_mode", false)?,
        7..14 => (1..5).any(|position| c.wants(position)),
        _ => !c.flag("is_test", false)?,
    };
    let wide = cx.b.cast(x, dtype.compute());
    let batch = if is_training {
        let (variance, mean) = cx.variance(wide, &axes, &Operand::Number(0.0.into()))?;
        Some(Statistics { mean, variance })
    } else {
        None
    };
    let Statistics { mean, variance } = batch.as_ref().unwrap_or(&running);
    let [mean, variance] = [*mean, *variance].map(|value| cx.b.cast(value, dtype.compute()));
    let inverse = cx.inverse_root(variance, eps)?;
    let centred = cx.sub(wide, mean)?;
    let normal = cx.mul(centred, inverse)?;
    let value = cx.affine(normal, Some(scale), Some(shift))?;
    let value = cx.b.cast(value, dtype);
    let mut results = vec![cx.b.reshape(value, &own)?.into()];
    let Some(batch) = batch else { return Ok(results) };
    let momentum = c.float("momentum", 0.9)?;
    let updated = [(running.mean, batch.mean), (running.variance, batch.variance)];
    for (position, (old, new)) in updated.into_iter().enumerate() {
        let mixed =
            cx.apply([old, new], dtype.compute(), |[old, new]| old * momentum + new * (1.0 - momentum))?;
        results.push(statistic(cx, c.tensor(position + 3)?, mixed)?);
    }
    if c.version < 14 {
        results.push(statistic(cx, c.tensor(3)?, batch.mean)?);
        results.push(statistic(cx, c.tensor(4)?, batch.variance)?);
    }
    Ok(results)
}

/// Statistics in the shape and type of the given ones.
fn statistic(cx: &mut Onnx, like: ValueId, value: ValueId) -> Result<Val, RuleError> {
    let ty = cx.b.ty(like).clone();
    let value = cx.b.reshape(value, &ty.shape)?;
    Ok(cx.b.cast(value, ty.dtype).into())
}

fn instance_normalization(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let shape = channelled(cx, x)?;
    let spread = spread_groups(cx, x, &shape)?.unwrap_or(x);
    let own = cx.b.shape(spread);
    let axes: Vec<usize> = (2..own.len()).collect();
    let normal = cx.normal(spread, &axes, c.float("epsilon", 1e-5)?)?;
    let (scale, shift) = (cx.per_channel(c.tensor(1)?, &own)?, cx.per_channel(c.tensor(2)?, &own)?);
    let value = cx.affine(normal.value, Some(scale), Some(shift))?;
    let value = cx.b.reshape(value, &shape)?;
    one(cx.typed_like(value, x))
}

/// `[batch, groups, channels of a group, ...]` of `[batch, groups, elements of a group]`, where a reshape joined them: so exporters
/// write group normalisation. Axes as they were before fuse with the loops of what comes before and behind.
fn spread_groups(cx: &mut Onnx, x: ValueId, shape: &[Expr]) -> Result<Option<ValueId>, RuleError> {
    let ([_, groups, _], Some(Node { op, inputs, .. })) = (shape, cx.b.producer(x)) else { return Ok(None) };
    let (op, source) = (op.clone(), inputs.first().copied());
    let (Op::View(_), Some(source), Some(groups)) = (&op, source, groups.as_int()) else { return Ok(None) };
    let own = cx.b.shape(source);
    let channels = own.get(1).and_then(Expr::as_int);
    let members = channels.filter(|channels| groups > 0 && channels % groups == 0);
    let Some(members) = members.filter(|_| own.len() > 2).map(|channels| channels / groups) else {
        return Ok(None);
    };
    let joined = cx.b.reshape(source, shape).ok();
    if joined.and_then(|joined| cx.b.producer(joined)).is_none_or(|joined| joined.op != op) {
        return Ok(None);
    }
    Ok(Some(cx.split_axis(source, 1, &[Expr::int(groups), Expr::int(members)])?))
}

/// The axes from the one of an attribute on.
pub(super) fn axes_from(cx: &Onnx, c: &Call, x: ValueId) -> Result<Vec<usize>, RuleError> {
    let rank = cx.b.rank(x);
    Ok((axis_of(c.int("axis", -1)?, rank)?..rank).collect())
}

/// The type that statistics are given in.
fn statistics_type(c: &Call) -> Result<DType, RuleError> {
    let number = i32::try_from(c.int("stash_type", 1)?).map_err(|_| malformed("`stash_type` is unknown"))?;
    Ok(element_type(number).map_err(malformed)?.dtype)
}

pub(super) fn layer_normalization(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axes = axes_from(cx, c, x)?;
    let normal = cx.normal(x, &axes, c.float("epsilon", 1e-5)?)?;
    let value = cx.affine(normal.value, Some(c.tensor(1)?), c.opt_tensor(2)?)?;
    let value = cx.shaped_like(value, x)?;
    let stash = statistics_type(c)?;
    let dtype = cx.b.dtype(c.tensor(1)?);
    many([cx.b.cast(value, dtype), cx.b.cast(normal.mean, stash), cx.b.cast(normal.inverse, stash)])
}

pub(super) fn rms_normalization(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axes = axes_from(cx, c, x)?;
    let (normal, inverse) = cx.unit_squares(x, &axes, c.float("epsilon", 1e-5)?)?;
    let scale = c.tensor(1)?;
    let value = cx.affine(normal, Some(scale), None)?;
    let value = cx.shaped_like(value, x)?;
    let stash = statistics_type(c)?;
    many([cx.typed_like(value, scale), cx.b.cast(inverse, stash)])
}

/// Groups of channels become normal.
pub(super) fn grouped(
    cx: &mut Onnx,
    x: ValueId,
    groups: i64,
    eps: f64,
) -> Result<(ValueId, Vec<Expr>), RuleError> {
    let shape = channelled(cx, x)?;
    if groups <= 0 {
        return Err(malformed(format!("{groups} groups")));
    }
    let members = shape[1].floor_div_in(&Expr::int(groups), cx.b.ranges());
    let split = cx.split_axis(x, 1, &[Expr::int(groups), members])?;
    let axes: Vec<usize> = (2..cx.b.rank(split)).collect();
    Ok((cx.normal(split, &axes, eps)?.value, shape))
}

/// Scale and shift were of groups before version 21.
fn group_normalization(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let groups = c.opt_int("num_groups")?.ok_or_else(|| malformed("`num_groups` is missing"))?;
    let (mut normal, shape) = grouped(cx, x, groups, c.float("epsilon", 1e-5)?)?;
    let (scale, shift) = (c.tensor(1)?, c.tensor(2)?);
    if c.version >= 21 {
        normal = cx.b.reshape(normal, &shape)?;
    }
    let like = cx.b.shape(normal);
    let (scale, shift) = (cx.per_channel(scale, &like)?, cx.per_channel(shift, &like)?);
    let value = cx.affine(normal, Some(scale), Some(shift))?;
    let value = cx.b.reshape(value, &shape)?;
    one(cx.typed_like(value, x))
}

/// Each element is divided by a power of the squares of the channels around it.
fn local_response(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    channelled(cx, x)?;
    let size = c.opt_int("size")?.filter(|size| *size > 0);
    let size = size.ok_or_else(|| malformed("`size` is missing or not positive"))?;
    let (alpha, beta, bias) = (c.float("alpha", 1e-4)?, c.float("beta", 0.75)?, c.float("bias", 1.0)?);
    let dtype = cx.b.dtype(x);
    let wide = cx.b.cast(x, dtype.compute());
    let squares = cx.mul(wide, wide)?;
    let rank = cx.b.rank(x);
    let mut amounts = vec![(Expr::int(0), Expr::int(0)); rank];
    amounts[1] = (Expr::int((size - 1) / 2), Expr::int(size / 2));
    let padded = cx.b.pad(squares, &amounts, 0.0)?;
    let windows = cx.b.windows(padded, 1, size, 1, 1)?;
    let total = cx.sum(windows, &[rank], false)?;
    let total = cx.shaped_like(total, x)?;
    one(cx.apply([x, total], dtype, |[x, total]| x / (total * (alpha / size as f64) + bias).pow(beta))?)
}

fn mean_variance(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axes = c.opt_ints("axes")?.unwrap_or_else(|| vec![0, 2, 3]);
    let rank = cx.b.rank(x);
    let axes = axes.iter().map(|axis| axis_of(*axis, rank)).collect::<Result<Vec<_>, _>>()?;
    let value = cx.in_compute_type(x, |cx, x| {
        let (variance, mean) = cx.variance(x, &axes, &Operand::Number(0.0.into()))?;
        let dtype = cx.b.dtype(x);
        cx.apply([x, mean, variance], dtype, |[x, mean, variance]| (x - mean) / (variance.sqrt() + 1e-9))
    })?;
    one(value)
}

/// Rows of nothing but zeros stay.
fn lp_normalization(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axis = axis_of(c.int("axis", -1)?, cx.b.rank(x))?;
    let order = c.int("p", 2)?;
    let value = cx.in_compute_type(x, |cx, x| {
        let norm = match order {
            1 => {
                let size = cx.b.unary(UnaryOp::Abs, x);
                cx.sum(size, &[axis], true)?
            }
            2 => {
                let squares = cx.mul(x, x)?;
                let total = cx.sum(squares, &[axis], true)?;
                cx.b.unary(FloatUnary::Sqrt, total)
            }
            other => return Err(unsupported(format!("the norm of order {other}"))),
        };
        let is_zero = cx.with_number(Relation::Eq, norm, 0.0)?;
        let quotient = cx.div(x, norm)?;
        let zero = cx.b.scalar(0.0, cx.b.dtype(x));
        Ok(cx.b.select(is_zero, zero, quotient)?)
    })?;
    one(value)
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::{Model, float, int};
    use crate::graph::{Node, Op};
    use crate::interpret::Tensor;

    #[track_caller]
    fn near(found: &[f64], expected: &[f64]) {
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(close), "{found:?}");
    }

    #[test]
    fn a_batch_in_training_gives_new_statistics() {
        let model = Model::new(15)
            .input("x", Tensor::from_f32(&[2, 1], &[1.0, 3.0]))
            .constant("two", &Tensor::from_f32(&[1], &[2.0]))
            .constant("one", &Tensor::from_f32(&[1], &[1.0]))
            .constant("zero", &Tensor::from_f32(&[1], &[0.0]))
            .node(
                "BatchNormalization",
                &["x", "two", "one", "zero", "one"],
                &["y", "mean", "variance"],
                &[int("training_mode", 1), float("epsilon", 0.0), float("momentum", 0.75)],
            );
        let results = model.run(&["y", "mean", "variance"]);
        near(&results[0].to_f64(), &[-1.0, 3.0]);
        near(&results[1].to_f64(), &[0.5]);
        near(&results[2].to_f64(), &[1.0]);
    }

    /// As exporters write it, and as one node: nothing is left of the reshape in front of the statistics.
    #[test]
    fn groups_that_a_reshape_makes_are_normalised_where_they_are() {
        let numbers = |sizes: &[usize]| {
            let count: usize = sizes.iter().product();
            Tensor::from_f32(sizes, &(0..count).map(|at| (at as f32 * 0.7).sin()).collect::<Vec<_>>())
        };
        let row = |values: &[f32]| Tensor::from_f32(&[values.len()], values);
        let model = || Model::new(21).fixed_input("x", numbers(&[2, 4, 3, 2]));
        let written = model()
            .constant("groups", &Tensor::from_i64(&[3], &[0, 2, -1]))
            .constant("ones", &row(&[1.0, 1.0]))
            .constant("zeros", &row(&[0.0, 0.0]))
            .constant("sizes", &Tensor::from_i64(&[4], &[2, 4, 3, 2]))
            .node("Reshape", &["x", "groups"], &["grouped"], &[])
            .node("InstanceNormalization", &["grouped", "ones", "zeros"], &["normal"], &[])
            .node("Reshape", &["normal", "sizes"], &["y"], &[]);
        let graph = written.import(&["y"]).unwrap().graph;
        let reduced = |node: &Node| matches!(&node.op, Op::Reduce { axes, .. } if axes.len() == 3);
        assert!(graph.nodes.iter().any(reduced));
        let one = model().constant("ones", &row(&[1.0; 4])).constant("zeros", &row(&[0.0; 4])).node(
            "GroupNormalization",
            &["x", "ones", "zeros"],
            &["y"],
            &[int("num_groups", 2)],
        );
        near(&written.numbers(), &one.numbers());
    }

    #[test]
    fn scales_are_of_groups_until_version_21() {
        let of = |version, scale: &[f32], shift: &[f32]| {
            Model::new(version)
                .input("x", Tensor::from_f32(&[1, 4], &[1.0, 3.0, 5.0, 9.0]))
                .constant("scale", &Tensor::from_f32(&[scale.len()], scale))
                .constant("shift", &Tensor::from_f32(&[shift.len()], shift))
                .node(
                    "GroupNormalization",
                    &["x", "scale", "shift"],
                    &["y"],
                    &[int("num_groups", 2), float("epsilon", 0.0)],
                )
                .numbers()
        };
        near(&of(18, &[2.0, 3.0], &[0.0, 1.0]), &[-2.0, 2.0, -2.0, 4.0]);
        near(&of(21, &[1.0, 2.0, 3.0, 4.0], &[0.0; 4]), &[-1.0, 2.0, -3.0, 4.0]);
    }

    #[test]
    fn a_response_is_of_the_channels_around() {
        let parameters = [int("size", 3), float("alpha", 3.0), float("beta", 1.0), float("bias", 0.0)];
        let model = Model::new(13).input("x", Tensor::from_f32(&[1, 3, 1, 1], &[1.0, 2.0, 3.0])).node(
            "LRN",
            &["x"],
            &["y"],
            &parameters,
        );
        near(&model.numbers(), &[0.2, 2.0 / 14.0, 3.0 / 13.0]);
    }

    #[test]
    fn rows_of_zeros_stay() {
        let model = Model::new(22).input("x", Tensor::from_f32(&[2, 2], &[3.0, 4.0, 0.0, 0.0])).node(
            "LpNormalization",
            &["x"],
            &["y"],
            &[],
        );
        near(&model.numbers(), &[0.6, 0.8, 0.0, 0.0]);
    }
}
