//! Making tensors of numbers and overwriting whole tensors.

use super::context::DEFAULT_FLOAT;
use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::{Category, DType};
use crate::frontend::torch::aten::Arg;
use crate::graph::{BinaryOp, Condition, FloatBinary, IntBinary, ReduceOp, Relation, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.zeros.default" => |cx, a| sized(cx, a, 0),
    // What forward-mode differentiation has where nothing changes.
    pure "aten._efficientzerotensor.default" => |cx, a| sized(cx, a, 0),
    pure "aten.ones.default" => |cx, a| sized(cx, a, 1),
    pure "aten.full.default" => |cx, a| { let shape = a.syms("size")?; filled(cx, a, &shape, "fill_value") },
    pure "aten.empty.memory_format" => |cx, a| sized(cx, a, 0),
    pure "aten.empty_strided.default" => |cx, a| sized(cx, a, 0),
    pure "aten.empty_permuted.default" => |cx, a| sized(cx, a, 0),
    pure "aten.new_zeros.default" => |cx, a| sized(cx, a, 0),
    pure "aten.new_ones.default" => |cx, a| sized(cx, a, 1),
    pure "aten.new_full.default" => |cx, a| { let shape = a.syms("size")?; filled(cx, a, &shape, "fill_value") },
    pure "aten.new_empty.default" => |cx, a| sized(cx, a, 0),
    pure "aten.new_empty_strided.default" => |cx, a| sized(cx, a, 0),
    pure "aten.zeros_like.default" => |cx, a| like(cx, a, 0),
    pure "aten.ones_like.default" => |cx, a| like(cx, a, 1),
    pure "aten.empty_like.default" => |cx, a| like(cx, a, 0),
    pure "aten.full_like.default" => |cx, a| {
        let shape = cx.b.shape(a.tensor("self")?);
        filled(cx, a, &shape, "fill_value")
    },
    pure "aten.scalar_tensor.default" => |cx, a| filled(cx, a, &[], "s"),
    pure "aten.arange.default" => arange,
    pure "aten.arange.start" => arange,
    pure "aten.arange.start_step" => arange,
    pure "aten.range.default" => closed_range,
    pure "aten.range.step" => closed_range,
    pure "aten.linspace.default" => linspace,
    pure "aten.linspace.Tensor_Tensor" => linspace,
    pure "aten.linspace.Tensor_Scalar" => linspace,
    pure "aten.linspace.Scalar_Tensor" => linspace,
    pure "aten.logspace.default" => logspace,
    pure "aten.logspace.Tensor_Tensor" => logspace,
    pure "aten.logspace.Tensor_Scalar" => logspace,
    pure "aten.logspace.Scalar_Tensor" => logspace,
    pure "aten.one_hot.default" => one_hot,
    pure "aten.zero.default" => |cx, a| { let x = a.tensor("self")?; Ok(cx.b.full_like(0i64, x).into()) },
    pure "aten.fill.Scalar" => fill,
    pure "aten.fill.Tensor" => fill,
    pure "aten.copy.default" => copy,
}

/// The type that the call asks for, else the one that the program states, else that of `self`.
fn wanted_type(cx: &Context, a: &Args) -> Result<DType, RuleError> {
    if let Some(dtype) = a.opt_dtype("dtype")?.or(a.output_dtype()) {
        return Ok(dtype);
    }
    Ok(a.opt_tensor("self")?.map_or(DEFAULT_FLOAT, |x| cx.b.dtype(x)))
}

fn sized(cx: &mut Context, a: &Args, number: i64) -> Rule {
    let (dtype, shape) = (wanted_type(cx, a)?, a.syms("size")?);
    Ok(cx.b.full(number, dtype, &shape).into())
}

fn like(cx: &mut Context, a: &Args, number: i64) -> Rule {
    let dtype = wanted_type(cx, a)?;
    let shape = cx.b.shape(a.tensor("self")?);
    Ok(cx.b.full(number, dtype, &shape).into())
}

/// A tensor full of an argument, which may be a number that is known only when the program runs.
fn filled(cx: &mut Context, a: &Args, shape: &[Expr], name: &str) -> Rule {
    let dtype = wanted_type(cx, a)?;
    filled_with(cx, &a.number(name)?, dtype, shape)
}

fn fill(cx: &mut Context, a: &Args) -> Rule {
    let ty = cx.b.ty(a.tensor("self")?).clone();
    filled_with(cx, &a.number("value")?, ty.dtype, &ty.shape)
}

fn filled_with(cx: &mut Context, value: &Operand, dtype: DType, shape: &[Expr]) -> Rule {
    if let Operand::Number(number) = value {
        return Ok(cx.b.full(*number, dtype, shape).into());
    }
    // One element alone of a half type PyTorch converts as it comes, to infinity if need be.
    let is_one = Expr::product(shape).is(1);
    cx.require_element(value, if is_one { dtype.compute() } else { dtype })?;
    let value = value.to_value(cx, dtype);
    let value = cx.b.reshape(value, &[])?;
    Ok(cx.b.expand(value, shape)?.into())
}

fn copy(cx: &mut Context, a: &Args) -> Rule {
    let (x, source) = (a.tensor("self")?, a.tensor("src")?);
    let ty = cx.b.ty(x).clone();
    let source = cx.b.cast(source, ty.dtype);
    Ok(cx.b.expand(source, &ty.shape)?.into())
}

/// A bound of a range: an integer, perhaps symbolic, or a floating-point number.
enum Bound {
    Int(Expr),
    Float(f64),
}

impl Bound {
    fn is_symbolic(&self) -> bool {
        matches!(self, Bound::Int(expr) if expr.as_int().is_none())
    }

    /// As an integer, if it is one.
    fn whole(self) -> Bound {
        match self {
            Bound::Float(value) if value.fract() == 0.0 && value.abs() < 9e15 => {
                Bound::Int(Expr::int(value as i64))
            }
            Bound::Int(_) | Bound::Float(_) => self,
        }
    }
}

fn bound(a: &Args, name: &str, default: i64) -> Result<Bound, RuleError> {
    match a.raw(name) {
        None => Ok(Bound::Int(Expr::int(default))),
        Some(Arg::Int(expr)) => Ok(Bound::Int(expr.clone())),
        Some(_) => match a.scalar(name)? {
            Scalar::Float(value) => Ok(Bound::Float(value)),
            number @ (Scalar::Int(_) | Scalar::Bool(_)) => Ok(Bound::Int(Expr::int(number.to_i64()))),
        },
    }
}

fn arange(cx: &mut Context, a: &Args) -> Rule {
    let mut bounds = [bound(a, "start", 0)?, bound(a, "end", 0)?, bound(a, "step", 1)?];
    if bounds.iter().any(Bound::is_symbolic) {
        bounds = bounds.map(Bound::whole);
    }
    let [start, end, step] = bounds;
    match (&start, &end, &step) {
        (Bound::Int(start), Bound::Int(end), Bound::Int(step)) => {
            let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DType::I64);
            let facts = cx.b.facts();
            let (rises, falls) = (facts.never_negative(&(step - 1)), facts.never_negative(&(-step - 1)));
            if dtype != DType::I64 {
                cx.require_exact(start);
                cx.require_exact(end);
            }
            let up = Condition::compare(end - start, Relation::Ge, 0);
            let down = Condition::compare(start - end, Relation::Ge, 0);
            let forward = match (rises, falls) {
                (true, _) => up,
                (_, true) => down,
                _ => {
                    let sign = |relation| Condition::compare(step.clone(), relation, 0);
                    cx.b.require(sign(Relation::Ne), "a range whose step is zero");
                    let [rising, falling] = [sign(Relation::Gt), sign(Relation::Lt)];
                    Condition::any([Condition::all([rising, up]), Condition::all([falling, down])])
                }
            };
            cx.b.require(forward, "the bounds of a range are not in the order of its step");
            let ranges = cx.b.ranges();
            let steps =
                |gap: Expr, step: &Expr| gap.ceil_div(&step.maximum_in(&Expr::int(1), ranges), ranges);
            // Of a step of either sign the other one's count is of no gap, or of one below zero.
            let length = match (rises, falls) {
                (true, _) => steps(end - start, step),
                (_, true) => steps(start - end, &-step),
                _ => steps(end - start, step).maximum_in(&steps(start - end, &-step), ranges),
            };
            let length = length.maximum_in(&Expr::int(0), ranges);
            let values = cx.b.index(&(&Expr::axis(0) * step) + start, &[length]);
            Ok(cx.b.cast(values, dtype).into())
        }
        _ => {
            let [start, end, step] = [number(&start)?, number(&end)?, number(&step)?];
            steps(cx, a, start, step, ((end - start) / step).ceil())
        }
    }
}

fn number(bound: &Bound) -> Result<f64, RuleError> {
    match bound {
        Bound::Int(expr) => expr
            .as_int()
            .map(|value| value as f64)
            .ok_or_else(|| RuleError::unsupported("a symbolic bound beside a floating-point one")),
        Bound::Float(value) => Ok(*value),
    }
}

/// `count` numbers from `start` in steps of `step`, computed in `f64` as PyTorch's kernel does.
fn steps(cx: &mut Context, a: &Args, start: f64, step: f64, count: f64) -> Rule {
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DEFAULT_FLOAT);
    if !(count.is_finite() && count < 9e15) {
        return Err(RuleError::Malformed("the range has no finite length".to_owned()));
    }
    let (start, step) = match dtype.category() {
        Category::Float => (start, step),
        Category::Int | Category::Bool => (start.trunc(), step.trunc()),
    };
    let positions = cx.b.index(Expr::axis(0), &[Expr::int(count.max(0.0) as i64)]);
    let positions = cx.b.cast(positions, DType::F64);
    let offsets = cx.with_number(BinaryOp::Mul, positions, step)?;
    let values = cx.with_number(BinaryOp::Add, offsets, start)?;
    Ok(cx.b.cast(values, dtype).into())
}

/// `torch.range`: the end is included.
fn closed_range(cx: &mut Context, a: &Args) -> Rule {
    let (start, end, step) =
        (number(&bound(a, "start", 0)?)?, number(&bound(a, "end", 0)?)?, number(&bound(a, "step", 1)?)?);
    steps(cx, a, start, step, ((end - start) / step).floor() + 1.0)
}

/// An end of `linspace`: a number or a tensor of one element.
fn end_point(cx: &mut Context, a: &Args, name: &str, dtype: DType) -> Result<ValueId, RuleError> {
    match a.raw(name) {
        Some(Arg::Tensor(_)) => {
            let value = cx.b.cast(a.tensor(name)?, dtype);
            Ok(cx.b.reshape(value, &[])?)
        }
        _ => Ok(a.number(name)?.to_value(cx, dtype)),
    }
}

/// Evenly spaced numbers in the type that PyTorch computes them in: `f64` for integer results. The second half is
/// counted from the end, so that the last number is exact.
fn spaced(cx: &mut Context, a: &Args) -> Result<(ValueId, DType), RuleError> {
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DEFAULT_FLOAT);
    let wide = if dtype.is_float() { dtype.compute() } else { DType::F64 };
    let (start, end) = (end_point(cx, a, "start", wide)?, end_point(cx, a, "end", wide)?);
    let count = a.int("steps")?;
    let shape = [Expr::int(count)];
    if count <= 1 {
        return Ok((cx.b.expand(start, &shape)?, dtype));
    }
    let gap = cx.sub(end, start)?;
    let step = cx.with_number(FloatBinary::Div, gap, (count - 1) as f64)?;
    let counted = |cx: &mut Context, expr: Expr| {
        let index = cx.b.index(expr, &shape);
        let index = cx.b.cast(index, wide);
        cx.mul(index, step)
    };
    let forward = counted(cx, Expr::axis(0))?;
    let forward = cx.add(start, forward)?;
    let backward = counted(cx, &Expr::int(count - 1) - &Expr::axis(0))?;
    let backward = cx.sub(end, backward)?;
    let first_half = cx.index_is(Relation::Lt, &Expr::axis(0) - count / 2, &shape)?;
    Ok((cx.b.select(first_half, forward, backward)?, dtype))
}

fn linspace(cx: &mut Context, a: &Args) -> Rule {
    let (values, dtype) = spaced(cx, a)?;
    Ok(cx.b.cast(values, dtype).into())
}

fn logspace(cx: &mut Context, a: &Args) -> Rule {
    let (values, dtype) = spaced(cx, a)?;
    let base = cx.b.full_like(a.float_or("base", 10.0)?, values);
    let powers = cx.binary(BinaryOp::Pow, base, values)?;
    Ok(cx.b.cast(powers, dtype).into())
}

/// The run fails where a class is not one of `classes`.
fn check_classes(cx: &mut Context, x: ValueId, classes: &Expr) -> Result<(), RuleError> {
    let bound = cx.b.index(classes.clone(), &[]);
    let below = cx.binary(Relation::Lt, x, bound)?;
    let counts = cx.with_number(Relation::Ge, x, 0i64)?;
    let is_class = cx.binary(IntBinary::And, below, counts)?;
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    let all = if axes.is_empty() { is_class } else { cx.b.reduce(ReduceOp::All, is_class, &axes, false)? };
    Ok(cx.b.assert(all, "a class of `one_hot` is out of range")?)
}

fn one_hot(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let classes = match a.int_or("num_classes", -1)? {
        -1 => a.output_meta(0).and_then(|meta| meta.sizes.last()).cloned().filter(|n| n.as_int().is_some()),
        classes => Some(Expr::int(classes)),
    };
    let Some(classes) = classes else {
        return Err(RuleError::unsupported("the number of classes depends on data; give `num_classes`"));
    };
    let x = cx.b.cast(x, DType::I64);
    let mut shape = cx.b.shape(x);
    check_classes(cx, x, &classes)?;
    let column = cx.trailing_ones(x, shape.len() + 1)?;
    shape.push(classes);
    let class = cx.b.index(Expr::axis(shape.len() - 1), &shape);
    let hot = cx.binary(Relation::Eq, column, class)?;
    Ok(cx.b.cast(hot, DType::I64).into())
}
