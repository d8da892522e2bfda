//! Reductions, softmax, running sums.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::axes::Axes;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::softmax::{Form, log_sum_exp_over, softmax_over};
use crate::graph::{BinaryOp, FloatUnary, ReduceOp, Relation, Scalar, ScanOp, UnaryOp, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "ReduceSum" => |cx, c| reduced(cx, c, 13, Of::Sum),
    "ReduceMean" => |cx, c| reduced(cx, c, 18, Of::Mean),
    "ReduceMax" => |cx, c| reduced(cx, c, 18, Of::Max),
    "ReduceMin" => |cx, c| reduced(cx, c, 18, Of::Min),
    "ReduceProd" => |cx, c| reduced(cx, c, 18, Of::Prod),
    "ReduceL1" => |cx, c| reduced(cx, c, 18, Of::L1),
    "ReduceL2" => |cx, c| reduced(cx, c, 18, Of::L2),
    "ReduceSumSquare" => |cx, c| reduced(cx, c, 18, Of::SumSquare),
    "ReduceLogSum" => |cx, c| reduced(cx, c, 18, Of::LogSum),
    "ReduceLogSumExp" => |cx, c| reduced(cx, c, 18, Of::LogSumExp),
    "ArgMax" => |cx, c| arg(cx, c, ReduceOp::ArgMax),
    "ArgMin" => |cx, c| arg(cx, c, ReduceOp::ArgMin),
    "Softmax" => |cx, c| softmax(cx, c, Form::Plain),
    "LogSoftmax" => |cx, c| softmax(cx, c, Form::Log),
    "Hardmax" => hardmax,
    "CumSum" => |cx, c| running(cx, c, ScanOp::Sum),
    "CumProd" => |cx, c| running(cx, c, ScanOp::Prod),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    SumSquare,
    LogSum,
    LogSumExp,
}

/// `since` is the version from which on axes are an operand.
fn reduced(cx: &mut Onnx, c: &Call, since: i64, of: Of) -> Rule {
    let x = c.tensor(0)?;
    let (rank, keep) = (cx.b.rank(x), c.flag("keepdims", true)?);
    let is_none = |axes: &Axes| match axes {
        Axes::Known(axes) => axes.is_empty(),
        Axes::Data { count, .. } => *count == 0,
    };
    let axes = cx.axes(c, since, 1, rank)?.filter(|axes| !is_none(axes));
    if axes.is_none() && c.flag("noop_with_empty_axes", false)? {
        // The axes are none, and each element is reduced alone.
        return one(reduction(cx, x, &[], true, of)?);
    }
    let axes = axes.unwrap_or_else(|| Axes::Known((0..rank).collect()));
    one(cx.over_axes(c, &axes, &mut |cx, axes| reduction(cx, x, axes, keep, of))?)
}

fn reduction(cx: &mut Onnx, x: ValueId, axes: &[usize], keep: bool, of: Of) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let wide = if dtype.is_float() { dtype.compute() } else { dtype };
    let x = cx.b.cast(x, wide);
    let value = match of {
        Of::Sum => cx.b.reduce(ReduceOp::Sum, x, axes, keep)?,
        Of::Prod => cx.b.reduce(ReduceOp::Prod, x, axes, keep)?,
        Of::Max | Of::Min => extreme(cx, x, axes, keep, of)?,
        Of::Mean => mean(cx, x, axes, keep)?,
        Of::L1 => {
            let size = cx.b.unary(UnaryOp::Abs, x);
            cx.b.reduce(ReduceOp::Sum, size, axes, keep)?
        }
        Of::SumSquare => sum_of_squares(cx, x, axes, keep)?,
        Of::L2 => {
            let sum = sum_of_squares(cx, x, axes, keep)?;
            through_float(cx, sum, |cx, sum| cx.b.unary(FloatUnary::Sqrt, sum))
        }
        Of::LogSum => {
            let sum = cx.b.reduce(ReduceOp::Sum, x, axes, keep)?;
            through_float(cx, sum, |cx, sum| cx.b.unary(FloatUnary::Log, sum))
        }
        Of::LogSumExp => {
            let float = cx.b.cast(x, if wide.is_float() { wide } else { DType::F64 });
            if axes.is_empty() { x } else { log_sum_exp_over(cx, float, axes, keep)? }
        }
    };
    Ok(cx.b.cast(value, dtype))
}

/// A function of floating-point numbers, of the sum of which type it may be.
fn through_float(cx: &mut Onnx, x: ValueId, f: impl FnOnce(&mut Onnx, ValueId) -> ValueId) -> ValueId {
    let dtype = cx.b.dtype(x);
    let float = if dtype.is_float() { x } else { cx.b.cast(x, DType::F64) };
    let value = f(cx, float);
    cx.b.cast(value, dtype)
}

/// Of an empty axis, the least number there is, or the greatest.
fn extreme(cx: &mut Onnx, x: ValueId, axes: &[usize], keep: bool, of: Of) -> Result<ValueId, RuleError> {
    let op = if of == Of::Max { ReduceOp::Max } else { ReduceOp::Min };
    let shape = cx.b.shape(x);
    if !axes.iter().any(|axis| shape[*axis].is(0)) {
        return Ok(cx.b.reduce(op, x, axes, keep)?);
    }
    let dtype = cx.b.dtype(x);
    let none = if of == Of::Max { Scalar::lowest(dtype) } else { Scalar::highest(dtype) };
    let left: Vec<Expr> = shape
        .iter()
        .enumerate()
        .filter(|(axis, _)| keep || !axes.contains(axis))
        .map(|(axis, size)| if axes.contains(&axis) { Expr::int(1) } else { size.clone() })
        .collect();
    Ok(cx.b.full(none, dtype, &left))
}

fn mean(cx: &mut Onnx, x: ValueId, axes: &[usize], keep: bool) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let shape = cx.b.shape(x);
    let count = Expr::product(axes.iter().map(|axis| &shape[*axis]));
    let sum = cx.b.reduce(ReduceOp::Sum, x, axes, keep)?;
    let count = cx.b.index(count, &[]);
    let count = cx.b.cast(count, dtype);
    if dtype.is_float() {
        return cx.div(sum, count);
    }
    Ok(cx.b.binary(BinaryOp::TruncDiv, sum, count)?)
}

fn sum_of_squares(cx: &mut Onnx, x: ValueId, axes: &[usize], keep: bool) -> Result<ValueId, RuleError> {
    let square = cx.mul(x, x)?;
    Ok(cx.b.reduce(ReduceOp::Sum, square, axes, keep)?)
}

fn arg(cx: &mut Onnx, c: &Call, op: ReduceOp) -> Rule {
    let mut x = c.tensor(0)?;
    let rank = cx.b.rank(x);
    let axis = axis_of(c.int("axis", 0)?, rank)?;
    let keep = c.flag("keepdims", true)?;
    let last = c.flag("select_last_index", false)?;
    let size = cx.b.shape(x)[axis].clone();
    if last {
        x = cx.b.flip(x, &[axis])?;
    }
    let mut value = cx.b.reduce(op, x, &[axis], keep)?;
    if last {
        let shape = cx.b.shape(value);
        let end = cx.b.index(&size - 1, &shape);
        value = cx.sub(end, value)?;
    }
    one(value)
}

/// Before version 13 everything from the axis on was one row.
fn softmax(cx: &mut Onnx, c: &Call, form: Form) -> Rule {
    let x = c.tensor(0)?;
    let shape = cx.b.shape(x);
    if c.version >= 13 {
        let axis = axis_of(c.int("axis", -1)?, shape.len())?;
        return one(softmax_over(cx, x, axis, form)?);
    }
    let axis = axis_of(c.int("axis", 1)?, shape.len())?;
    let flat = cx.b.reshape(x, &[Expr::product(&shape[..axis]), Expr::product(&shape[axis..])])?;
    let value = softmax_over(cx, flat, 1, form)?;
    one(cx.b.reshape(value, &shape)?)
}

/// One where a row is largest first, zero elsewhere.
fn hardmax(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let (shape, dtype) = (cx.b.shape(x), cx.b.dtype(x));
    let default = if c.version < 13 { 1 } else { -1 };
    let axis = axis_of(c.int("axis", default)?, shape.len())?;
    let (rows, axis) = if c.version < 13 {
        (cx.b.reshape(x, &[Expr::product(&shape[..axis]), Expr::product(&shape[axis..])])?, 1)
    } else {
        (x, axis)
    };
    if cx.b.shape(rows)[axis].is(0) {
        return one(x);
    }
    let largest = cx.b.reduce(ReduceOp::ArgMax, rows, &[axis], true)?;
    let row_shape = cx.b.shape(rows);
    let position = cx.b.index(Expr::axis(axis), &row_shape);
    let hit = cx.b.binary(Relation::Eq, position, largest)?;
    let value = cx.b.cast(hit, dtype);
    one(cx.b.reshape(value, &shape)?)
}

fn running(cx: &mut Onnx, c: &Call, op: ScanOp) -> Rule {
    let x = c.tensor(0)?;
    let axes = cx.axes_of(c.tensor(1)?, cx.b.rank(x))?;
    let (exclusive, reverse) = (c.flag("exclusive", false)?, c.flag("reverse", false)?);
    one(cx.over_axes(c, &axes, &mut |cx, axes| match axes {
        [axis] => running_along(cx, x, *axis, op, exclusive, reverse),
        _ => Err(malformed("it takes one axis")),
    })?)
}

fn running_along(
    cx: &mut Onnx,
    x: ValueId,
    axis: usize,
    op: ScanOp,
    exclusive: bool,
    reverse: bool,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let x = if reverse { cx.b.flip(x, &[axis])? } else { x };
    let wide = cx.b.cast(x, if dtype.is_float() { dtype.compute() } else { dtype });
    let mut value = cx.b.scan(op, wide, axis)?[0];
    if exclusive {
        let shape = cx.b.shape(value);
        let none = if op == ScanOp::Sum { 0i64 } else { 1i64 };
        let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
        coords[axis] = &coords[axis] - 1;
        let none = Scalar::from(none).cast(cx.b.dtype(value));
        value = cx.b.padded_view(value, &shape, coords, none)?;
    }
    value = cx.b.cast(value, dtype);
    if reverse {
        value = cx.b.flip(value, &[axis])?;
    }
    Ok(value)
}
