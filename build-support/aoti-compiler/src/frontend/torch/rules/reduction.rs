//! Sums, products, moments and logical reductions over axes.

use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, FloatTest, FloatUnary, ReduceOp, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.sum.default" => sum,
    pure "aten.sum.dim_IntList" => sum,
    pure "aten.nansum.default" => nansum,
    pure "aten.prod.default" => prod,
    pure "aten.prod.dim_int" => prod,
    pure "aten.mean.default" => mean,
    pure "aten.mean.dim" => mean,
    pure "aten.nanmean.default" => nanmean,
    pure "aten.var.*" => |cx, a| moments(cx, a, false, false),
    pure "aten.std.*" => |cx, a| moments(cx, a, true, false),
    pure "aten.var_mean.*" => |cx, a| moments(cx, a, false, true),
    pure "aten.std_mean.*" => |cx, a| moments(cx, a, true, true),
    pure "aten.any.default" => |cx, a| logical(cx, a, ReduceOp::Any),
    pure "aten.any.dim" => |cx, a| logical(cx, a, ReduceOp::Any),
    pure "aten.any.dims" => |cx, a| logical(cx, a, ReduceOp::Any),
    pure "aten.all.default" => |cx, a| logical(cx, a, ReduceOp::All),
    pure "aten.all.dim" => |cx, a| logical(cx, a, ReduceOp::All),
    pure "aten.all.dims" => |cx, a| logical(cx, a, ReduceOp::All),
    pure "aten.count_nonzero.default" => count_nonzero,
    pure "aten.count_nonzero.dim_IntList" => count_nonzero,
    pure "aten.sum_to_size.default" => sum_to_size,
    pure "prims.xor_sum.default" => |cx, a| {
        let x = a.operand(&["inp"], 0)?.to_value(cx, DType::I64);
        let axes = Context::axes(&a.ints("dims")?, cx.b.rank(x))?;
        Ok(cx.b.reduce(ReduceOp::Xor, x, &axes, false)?.into())
    },
}

/// The axes that a reduction names by `dim` (absent or empty: all) and whether they stay.
pub(crate) fn reduced(cx: &Context, a: &Args, x: ValueId) -> Result<(Vec<usize>, bool), RuleError> {
    let axes = Context::axes(&a.ints_or("dim", &[])?, cx.b.rank(x))?;
    Ok((axes, a.bool_or("keepdim", false)?))
}

/// Converts to the type of `dtype=`, or integers to what their sums are held in.
fn accumulating(cx: &mut Context, a: &Args, x: ValueId) -> Result<ValueId, RuleError> {
    let own = cx.b.dtype(x);
    let dtype = match a.opt_dtype("dtype")? {
        Some(dtype) => dtype,
        None if own.is_float() => own,
        None => DType::I64,
    };
    Ok(cx.b.cast(x, dtype))
}

/// Replaces NaN by 0.
fn without_nan(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    if !cx.b.dtype(x).is_float() {
        return Ok(x);
    }
    let (nan, zero) = (cx.unary(FloatTest::IsNan, x), cx.b.full_like(0.0, x));
    Ok(cx.b.select(nan, zero, x)?)
}

fn sum(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let x = accumulating(cx, a, x)?;
    let (axes, keep) = reduced(cx, a, x)?;
    Ok(cx.sum(x, &axes, keep)?.into())
}

fn nansum(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let x = without_nan(cx, x)?;
    let x = accumulating(cx, a, x)?;
    let (axes, keep) = reduced(cx, a, x)?;
    Ok(cx.sum(x, &axes, keep)?.into())
}

fn prod(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let x = accumulating(cx, a, x)?;
    let (axes, keep) = reduced(cx, a, x)?;
    let product = |cx: &mut Context, x| Ok(cx.b.reduce(ReduceOp::Prod, x, &axes, keep)?);
    Ok(cx.in_compute_type(x, product)?.into())
}

impl Context {
    /// Number of elements of some axes as a tensor without axes of type `dtype`.
    pub(crate) fn element_count(&mut self, x: ValueId, axes: &[usize], dtype: DType) -> ValueId {
        let shape = self.b.shape(x);
        let count = Expr::product(axes.iter().map(|axis| &shape[*axis]));
        let count = self.b.index(count, &[]);
        match self.b.producer(count).map(|node| node.op.clone()) {
            Some(crate::graph::Op::Full(number)) => self.b.scalar(number, dtype),
            _ => self.b.cast(count, dtype),
        }
    }

    /// Mean over axes of an `f32` or `f64` tensor.
    pub(crate) fn mean(&mut self, x: ValueId, axes: &[usize], keep: bool) -> Result<ValueId, RuleError> {
        let dtype = self.b.dtype(x);
        let count = self.element_count(x, axes, dtype);
        let total = self.sum(x, axes, keep)?;
        self.div(total, count)
    }

    /// Variance and mean over axes of an `f32` or `f64` tensor, axes kept: the mean first, then the mean of squared
    /// differences with `count - correction` in the denominator.
    pub(crate) fn variance(
        &mut self,
        x: ValueId,
        axes: &[usize],
        correction: &Operand,
    ) -> Result<(ValueId, ValueId), RuleError> {
        let dtype = self.b.dtype(x);
        let mean = self.mean(x, axes, true)?;
        let centred = self.sub(x, mean)?;
        let squares = self.mul(centred, centred)?;
        let total = self.sum(squares, axes, true)?;
        let mut count = self.element_count(x, axes, dtype);
        if !correction.is(0.0) {
            count = self.combine_as(BinaryOp::Sub, &Operand::Tensor(count), correction, dtype)?;
            count = self.with_number(BinaryOp::Maximum, count, 0.0)?;
        }
        Ok((self.div(total, count)?, mean))
    }

    /// Removes axes of size 1.
    pub(crate) fn drop_axes(&mut self, x: ValueId, axes: &[usize]) -> Result<ValueId, RuleError> {
        Ok(self.b.squeeze(x, axes)?)
    }
}

fn mean(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let dtype = a.opt_dtype("dtype")?.unwrap_or(cx.b.dtype(x));
    if !dtype.is_float() {
        return Err(RuleError::unsupported("the mean of integers"));
    }
    let x = cx.b.cast(x, dtype);
    let (axes, keep) = reduced(cx, a, x)?;
    Ok(cx.in_compute_type(x, |cx, x| cx.mean(x, &axes, keep))?.into())
}

fn nanmean(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let dtype = a.opt_dtype("dtype")?.unwrap_or(cx.b.dtype(x));
    let x = cx.b.cast(x, dtype);
    let (axes, keep) = reduced(cx, a, x)?;
    let result = cx.in_compute_type(x, |cx, x| {
        let nan = cx.unary(FloatTest::IsNan, x);
        let present = cx.unary(UnaryOp::Not, nan);
        let present = cx.b.cast(present, dtype.compute());
        let count = cx.sum(present, &axes, keep)?;
        let x = without_nan(cx, x)?;
        let total = cx.sum(x, &axes, keep)?;
        cx.div(total, count)
    })?;
    Ok(result.into())
}

/// Variance or standard deviation, alone or with the mean.
fn moments(cx: &mut Context, a: &Args, root: bool, with_mean: bool) -> Rule {
    let x = a.tensor("self")?;
    let (axes, keep) = reduced(cx, a, x)?;
    // The older overloads say `unbiased`, the newer `correction`; both default to Bessel's.
    let unbiased = || Ok::<_, RuleError>(f64::from(u8::from(a.bool_or("unbiased", true)?)));
    let correction = match a.has("correction") {
        true => a.number("correction")?,
        false => Operand::Number(unbiased()?.into()),
    };
    let dtype = cx.b.dtype(x);
    if dtype.category() != Category::Float {
        return Err(RuleError::unsupported("the variance of integers"));
    }
    let x = cx.b.cast(x, dtype.compute());
    let (mut spread, mean) = cx.variance(x, &axes, &correction)?;
    if root {
        spread = cx.unary(FloatUnary::Sqrt, spread);
    }
    let mut results = Vec::new();
    for value in if with_mean { vec![spread, mean] } else { vec![spread] } {
        let value = if keep { value } else { cx.drop_axes(value, &axes)? };
        results.push(Some(cx.b.cast(value, dtype)));
    }
    Ok(match results.as_slice() {
        [Some(one)] => Outputs::One(*one),
        _ => Outputs::Many(results),
    })
}

fn logical(cx: &mut Context, a: &Args, op: ReduceOp) -> Rule {
    let x = a.tensor("self")?;
    // An explicit empty list of axes reduces nothing; an absent one everything.
    let axes = match a.raw("dim") {
        Some(crate::frontend::torch::aten::Arg::Ints(list)) if list.is_empty() => vec![],
        _ => Context::axes(&a.ints_or("dim", &[])?, cx.b.rank(x))?,
    };
    // PyTorch gives bytes for bytes.
    let dtype = if cx.b.dtype(x) == DType::U8 { DType::U8 } else { DType::Bool };
    let truth = cx.b.cast(x, DType::Bool);
    let result = cx.b.reduce(op, truth, &axes, a.bool_or("keepdim", false)?)?;
    Ok(cx.b.cast(result, dtype).into())
}

fn count_nonzero(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (axes, _) = reduced(cx, a, x)?;
    let truth = cx.b.cast(x, DType::Bool);
    let ones = cx.b.cast(truth, DType::I64);
    Ok(cx.sum(ones, &axes, false)?.into())
}

/// Sums what broadcasting from `size` would have repeated.
fn sum_to_size(cx: &mut Context, a: &Args) -> Rule {
    let (x, size) = (a.tensor("self")?, a.syms("size")?);
    let shape = cx.b.shape(x);
    let Some(extra) = shape.len().checked_sub(size.len()) else {
        return Err(RuleError::Malformed("the size has more axes than the tensor".to_owned()));
    };
    let axes: Vec<usize> = (0..shape.len())
        .filter(|axis| *axis < extra || (size[*axis - extra].is(1) && !shape[*axis].is(1)))
        .collect();
    if axes.is_empty() && !size.is_empty() {
        return Ok(x.into());
    }
    let x = accumulating(cx, a, x)?;
    let total = cx.sum(x, &axes, false)?;
    Ok(cx.b.reshape(total, &size)?.into())
}
