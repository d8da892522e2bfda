//! Reading and writing along one axis at positions given by a tensor, and through flat positions.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, Combine, Coord, FloatBinary, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.gather.default" => gather,
    pure "aten.take_along_dim.default" => take_along,
    pure "aten.take.default" => take,
    pure "aten.put.default" => put,
    pure "aten.index_select.default" => |cx, a| {
        let (x, index) = (a.tensor("self")?, a.tensor("index")?);
        let axis = Context::axis(a.int("dim")?, cx.b.rank(x))?;
        Ok(index_select(cx, x, axis, index)?.into())
    },
    pure "aten.scatter.src" => scatter,
    pure "aten.scatter.value" => scatter,
    pure "aten.scatter.reduce" => scatter,
    pure "aten.scatter.value_reduce" => scatter,
    pure "aten.scatter_add.default" => scatter_add,
    pure "aten.scatter_reduce.two" => |cx, a| { let target = element_target(cx, a)?; reduce(cx, a, target) },
    pure "aten.index_add.default" => index_add,
    pure "aten.index_copy.default" => index_copy,
    pure "aten.index_fill.int_Scalar" => index_fill,
    pure "aten.index_fill.int_Tensor" => index_fill,
    pure "aten.index_reduce.default" => |cx, a| {
        let source = a.tensor("source")?;
        let target = row_target(cx, a, source)?;
        reduce(cx, a, target)
    },
}

/// Coordinates that follow the axes but for `axis`, which the first index operand gives.
fn along(rank: usize, axis: usize) -> Vec<Coord> {
    (0..rank).map(|k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) }).collect()
}

/// `torch.gather` of tensors with axes.
pub(crate) fn gather_along(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    index: ValueId,
) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(index);
    Ok(cx.b.gather(x, &[index], along(shape.len(), axis), &shape)?)
}

fn gather(cx: &mut Context, a: &Args) -> Rule {
    let (x, index) = (a.tensor("self")?, a.tensor("index")?);
    let shape = cx.b.shape(index);
    let axis = Context::axis(a.int("dim")?, cx.b.rank(x))?;
    if cx.b.ty(index).numel().is(0) {
        let dtype = cx.b.dtype(x);
        return Ok(cx.b.full(0i64, dtype, &shape).into());
    }
    let (x, index) = (cx.at_least_1d(x)?, cx.at_least_1d(index)?);
    let result = gather_along(cx, x, axis, index)?;
    Ok(cx.b.reshape(result, &shape)?.into())
}

fn take_along(cx: &mut Context, a: &Args) -> Rule {
    let (x, index) = (a.tensor("self")?, a.tensor("indices")?);
    // Negative positions count from the end, as in NumPy and unlike `gather`.
    let wrapped = |cx: &mut Context, x, axis: usize, index| -> Result<ValueId, RuleError> {
        let shape = cx.b.shape(index);
        let mut coords = along(shape.len(), axis);
        coords[axis] = Coord::Wrapped(0);
        Ok(cx.b.gather(x, &[index], coords, &shape)?)
    };
    let Some(axis) = a.opt_int("dim")? else {
        let (x, index) = (cx.flattened(x)?, cx.flattened(index)?);
        return Ok(wrapped(cx, x, 0, index)?.into());
    };
    let (own, places) = (cx.b.shape(x), cx.b.shape(index));
    let axis = Context::axis(axis, own.len())?;
    if own.len() != places.len() {
        return Err(RuleError::Malformed(
            "the tensor and its indices have different numbers of axes".to_owned(),
        ));
    }
    // All axes but the indexed one broadcast.
    let (mut left, mut right) = (own.clone(), places.clone());
    left[axis] = Expr::int(1);
    right[axis] = Expr::int(1);
    let mut shape = cx.b.broadcast(&[left, right])?;
    shape[axis] = own[axis].clone();
    let x = cx.b.expand(x, &shape)?;
    shape[axis] = places[axis].clone();
    let index = cx.b.expand(index, &shape)?;
    Ok(wrapped(cx, x, axis, index)?.into())
}

fn take(cx: &mut Context, a: &Args) -> Rule {
    let (x, index) = (a.tensor("self")?, a.tensor("index")?);
    let (flat, shape) = (cx.flattened(x)?, cx.b.shape(index));
    Ok(cx.b.gather(flat, &[index], vec![Coord::Wrapped(0)], &shape)?.into())
}

fn put(cx: &mut Context, a: &Args) -> Rule {
    let (x, index, source) = (a.tensor("self")?, a.tensor("index")?, a.tensor("source")?);
    let shape = cx.b.shape(x);
    let (flat, index, source) = (cx.flattened(x)?, cx.flattened(index)?, cx.flattened(source)?);
    let combine = if a.bool_or("accumulate", false)? { Combine::Add } else { Combine::Set };
    let result = cx.b.scatter(flat, source, &[index], vec![Coord::Wrapped(0)], combine)?;
    Ok(cx.b.reshape(result, &shape)?.into())
}

/// The slices of a tensor along an axis that a list of positions names.
pub(crate) fn index_select(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    index: ValueId,
) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    let (x, index) = (cx.at_least_1d(x)?, cx.at_least_1d(index)?);
    let mut shape = cx.b.shape(x);
    shape[axis] = cx.b.shape(index)[0].clone();
    let index = cx.trailing_ones(index, shape.len() - axis)?;
    let result = cx.b.gather(x, &[index], along(shape.len(), axis), &shape)?;
    Ok(if own.is_empty() { cx.b.reshape(result, &[])? } else { result })
}

/// Where updates of some shape go in a tensor.
struct Target {
    base: ValueId,
    /// The shape to give back; differs from the base's only for a tensor without axes.
    shape: Vec<Expr>,
    updates: ValueId,
    index: ValueId,
    coords: Vec<Coord>,
}

impl Target {
    fn scatter(
        &self,
        cx: &mut Context,
        base: ValueId,
        updates: ValueId,
        combine: Combine,
    ) -> Result<ValueId, RuleError> {
        let result = cx.b.scatter(base, updates, &[self.index], self.coords.clone(), combine)?;
        Ok(cx.b.reshape(result, &self.shape)?)
    }

    fn apply(&self, cx: &mut Context, combine: Combine) -> Result<ValueId, RuleError> {
        self.scatter(cx, self.base, self.updates, combine)
    }
}

/// Each element of `index` names where the element of `src` (or the number `value`) at its position goes.
fn element_target(cx: &mut Context, a: &Args) -> Result<Target, RuleError> {
    let (x, index) = (a.tensor("self")?, a.tensor("index")?);
    let ty = cx.b.ty(x).clone();
    let axis = Context::axis(a.int("dim")?, ty.rank())?;
    let (base, mut index) = (cx.at_least_1d(x)?, cx.at_least_1d(index)?);
    let rank = cx.b.rank(base);
    if cx.b.ty(index).numel().is(0) {
        // An empty index may have any number of axes: nothing is written.
        index = cx.b.full(0i64, DType::I64, &vec![Expr::int(0); rank]);
    }
    let places = cx.b.shape(index);
    let updates = if a.has("src") {
        let mut source = cx.at_least_1d(a.tensor("src")?)?;
        source = cx.b.cast(source, ty.dtype);
        if places.iter().any(|size| size.is(0)) {
            cx.b.full(0i64, ty.dtype, &places)
        } else {
            for (axis, size) in places.iter().enumerate() {
                source = cx.b.slice(source, axis, &Expr::int(0), size, 1)?;
            }
            source
        }
    } else {
        let value = a.number("value")?.to_element(cx, ty.dtype)?;
        cx.b.expand(value, &places)?
    };
    Ok(Target { base, shape: ty.shape, updates, index, coords: along(rank, axis) })
}

/// `index` names where each slice of `source` along the axis goes.
fn row_target(cx: &mut Context, a: &Args, source: ValueId) -> Result<Target, RuleError> {
    let (x, index) = (a.tensor("self")?, a.tensor("index")?);
    let ty = cx.b.ty(x).clone();
    let axis = Context::axis(a.int("dim")?, ty.rank())?;
    let (base, index) = (cx.at_least_1d(x)?, cx.at_least_1d(index)?);
    let mut shape = cx.b.shape(base);
    shape[axis] = cx.b.shape(index)[0].clone();
    let updates = cx.b.cast(source, ty.dtype);
    let updates = cx.at_least_1d(updates)?;
    let updates = cx.b.expand(updates, &shape)?;
    let index = cx.trailing_ones(index, shape.len() - axis)?;
    Ok(Target { base, shape: ty.shape, updates, index, coords: along(shape.len(), axis) })
}

fn scatter(cx: &mut Context, a: &Args) -> Rule {
    let combine = match a.str_or("reduce", "")? {
        "" => Combine::Set,
        "add" => Combine::Add,
        "multiply" => Combine::Mul,
        other => return Err(RuleError::Malformed(format!("reduction `{other}`"))),
    };
    Ok(element_target(cx, a)?.apply(cx, combine)?.into())
}

fn scatter_add(cx: &mut Context, a: &Args) -> Rule {
    Ok(element_target(cx, a)?.apply(cx, Combine::Add)?.into())
}

fn index_add(cx: &mut Context, a: &Args) -> Rule {
    let mut source = a.tensor("source")?;
    let alpha = a.number_or("alpha", 1i64)?;
    cx.require_element(&alpha, cx.b.dtype(source))?;
    source = cx.scaled(source, &alpha)?;
    Ok(row_target(cx, a, source)?.apply(cx, Combine::Add)?.into())
}

fn index_copy(cx: &mut Context, a: &Args) -> Rule {
    let source = a.tensor("source")?;
    Ok(row_target(cx, a, source)?.apply(cx, Combine::Set)?.into())
}

fn index_fill(cx: &mut Context, a: &Args) -> Rule {
    let dtype = cx.b.dtype(a.tensor("self")?);
    let value = match a.tensor("value") {
        Ok(value) => cx.b.reshape(value, &[])?,
        Err(_) => a.number("value")?.to_element(cx, dtype)?,
    };
    let mut target = row_target(cx, a, value)?;
    // The only one of its kind to which negative positions mean something.
    for coord in &mut target.coords {
        if let Coord::Indirect(k) = coord {
            *coord = Coord::Wrapped(*k);
        }
    }
    Ok(target.apply(cx, Combine::Set)?.into())
}

/// The number that leaves every other one as it is under a combination.
fn neutral(combine: Combine, dtype: DType) -> Scalar {
    match combine {
        Combine::Set | Combine::Add => Scalar::Int(0),
        Combine::Mul => Scalar::Int(1),
        Combine::Max => Scalar::lowest(dtype),
        Combine::Min => Scalar::highest(dtype),
    }
}

/// `scatter_reduce` and `index_reduce`: elements that nothing is written to stay; others start from their own value
/// or, without `include_self`, from nothing.
fn reduce(cx: &mut Context, a: &Args, target: Target) -> Rule {
    let (combine, mean) = match a.str_or("reduce", "sum")? {
        "sum" => (Combine::Add, false),
        "mean" => (Combine::Add, true),
        "prod" => (Combine::Mul, false),
        "amax" => (Combine::Max, false),
        "amin" => (Combine::Min, false),
        other => return Err(RuleError::Malformed(format!("reduction `{other}`"))),
    };
    let include_self = a.bool_or("include_self", true)?;
    let dtype = cx.b.dtype(target.base);
    let mut base = target.base;
    if !include_self {
        let own = cx.b.shape(base);
        let start = cx.b.full_like(neutral(combine, dtype), target.updates);
        base = target.scatter(cx, base, start, Combine::Set)?;
        base = cx.b.reshape(base, &own)?;
    }
    let result = target.scatter(cx, base, target.updates, combine)?;
    if !mean {
        return Ok(result.into());
    }
    let count_type = if dtype.is_float() { dtype.compute() } else { dtype };
    let own = cx.b.shape(target.base);
    let start = cx.b.full(i64::from(include_self), count_type, &own);
    let places = cx.b.shape(target.updates);
    let ones = cx.b.full(1i64, count_type, &places);
    let counts = target.scatter(cx, start, ones, Combine::Add)?;
    let counts = cx.with_number(BinaryOp::Maximum, counts, 1i64)?;
    let op = if dtype.category() == Category::Float { FloatBinary::Div.into() } else { BinaryOp::FloorDiv };
    let total = cx.b.cast(result, count_type);
    let average = cx.binary(op, total, counts)?;
    Ok(cx.b.cast(average, dtype).into())
}
