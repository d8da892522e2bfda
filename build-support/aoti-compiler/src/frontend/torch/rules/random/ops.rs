//! Operators that draw random numbers, from the bits that `distributions.rs` gives each element.
//!
//! Their values are not those of PyTorch, whose generators count otherwise; their distributions, types and shapes are.

use super::super::context::DEFAULT_FLOAT;
use super::super::operand::Operand;
use super::super::registry::rules;
use super::super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Condition, FloatTest, FloatUnary, IntBinary, Relation, ScanOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.rand.*" => |cx, a| { let (dtype, shape) = sized(a)?; uniform(cx, dtype, &shape) },
    pure "aten.rand_like.*" => |cx, a| { let (dtype, shape) = like(cx, a)?; uniform(cx, dtype, &shape) },
    pure "aten.randn.*" => |cx, a| { let (dtype, shape) = sized(a)?; normal(cx, dtype, &shape) },
    pure "aten.randn_like.*" => |cx, a| { let (dtype, shape) = like(cx, a)?; normal(cx, dtype, &shape) },
    pure "aten.randint.*" => |cx, a| { let (dtype, shape) = sized(a)?; integers(cx, a, dtype, &shape) },
    pure "aten.randint_like.*" => |cx, a| { let (dtype, shape) = like(cx, a)?; integers(cx, a, dtype, &shape) },
    pure "aten.randperm.*" => permutation,
    pure "aten.bernoulli.*" => bernoulli,
    pure "aten.multinomial.*" => multinomial,
    pure "aten.normal.*" => |cx, a| normal_with(cx, a),
    pure "aten.normal_functional.*" => |cx, a| normal_with(cx, a),
    pure "aten.log_normal.*" => |cx, a| {
        let (mean, std) = (a.number_or("mean", 1.0)?, a.number_or("std", 2.0)?);
        let ty = cx.b.ty(a.tensor("self")?).clone();
        let z = cx.normal(ty.dtype, &ty.shape)?;
        located(cx, ty.dtype, z, [mean, std], |z, mean, std| (z * std + mean).exp())
    },
    pure "aten.uniform.*" => |cx, a| {
        let (low, high) = (a.number_or("from", 0.0)?, a.number_or("to", 1.0)?);
        let ty = cx.b.ty(a.tensor("self")?).clone();
        let u = cx.uniform(ty.dtype, &ty.shape)?;
        located(cx, ty.dtype, u, [low, high], |u, low, high| u * (high - &low) + low)
    },
    pure "aten.exponential.*" => |cx, a| {
        let rate = a.number_or("lambd", 1.0)?;
        open(cx, a, [rate, Operand::Number(0.0.into())], |u, rate, _| -(u.log() / rate))
    },
    pure "aten.cauchy.*" => |cx, a| {
        let (median, sigma) = (a.number_or("median", 0.0)?, a.number_or("sigma", 1.0)?);
        open(cx, a, [median, sigma], |u, median, sigma| {
            ((u - 0.5) * std::f64::consts::PI).unary(FloatUnary::Tan) * sigma + median
        })
    },
    pure "aten.geometric.*" => |cx, a| {
        let p = a.number("p")?;
        open(cx, a, [p, Operand::Number(0.0.into())], |u, p, _| (u.log() / (-p).log1p()).ceil())
    },
    pure "aten.random.*" => |cx, a| {
        let ty = cx.b.ty(a.tensor("self")?).clone();
        integers(cx, a, ty.dtype, &ty.shape)
    },
}

/// Type and sizes that the call asks for.
fn sized(a: &Args) -> Result<(DType, Vec<Expr>), RuleError> {
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DEFAULT_FLOAT);
    Ok((dtype, a.syms("size")?))
}

/// Type and sizes of the operand, or the type that the call asks for.
fn like(cx: &Context, a: &Args) -> Result<(DType, Vec<Expr>), RuleError> {
    let ty = cx.b.ty(a.only()?).clone();
    Ok((a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(ty.dtype), ty.shape))
}

fn uniform(cx: &mut Context, dtype: DType, shape: &[Expr]) -> Rule {
    let u = cx.uniform(dtype, shape)?;
    Ok(cx.b.cast(u, dtype).into())
}

fn normal(cx: &mut Context, dtype: DType, shape: &[Expr]) -> Rule {
    let z = cx.normal(dtype, shape)?;
    Ok(cx.b.cast(z, dtype).into())
}

/// A function of a draw and two parameters, rounded to `dtype`.
fn located(
    cx: &mut Context,
    dtype: DType,
    draw: ValueId,
    parameters: [Operand; 2],
    build: impl FnOnce(Formula, Formula, Formula) -> Formula,
) -> Rule {
    let wide = cx.b.dtype(draw);
    let [first, second] = parameters.map(|number| number.formula(cx, wide));
    let result = cx.formula(wide, &build(draw.into(), first, second))?;
    Ok(cx.b.cast(result, dtype).into())
}

/// Overwrites the operand with a function of a number between 0 and 1, neither included, and two parameters.
fn open(
    cx: &mut Context,
    a: &Args,
    parameters: [Operand; 2],
    build: impl FnOnce(Formula, Formula, Formula) -> Formula,
) -> Rule {
    let ty = cx.b.ty(a.tensor("self")?).clone();
    // Integers take the results of `geometric_` alone.
    let dtype = cx.float_type(ty.dtype);
    let u = cx.open_uniform(dtype, &ty.shape)?;
    located(cx, ty.dtype, u, parameters, build)
}

/// Means and deviations that are tensors or numbers; the shape is that of all of them together.
fn normal_with(cx: &mut Context, a: &Args) -> Rule {
    let (mean, std) = (a.number_or("mean", 0.0)?, a.number_or("std", 1.0)?);
    let tensors: Vec<ValueId> = [&mean, &std]
        .into_iter()
        .filter_map(|operand| if let Operand::Tensor(value) = operand { Some(*value) } else { None })
        .collect();
    let (dtype, shape) = match a.opt_tensor("self")? {
        Some(x) => (cx.b.dtype(x), cx.b.shape(x)),
        None if tensors.is_empty() => sized(a)?,
        None => (cx.result_type(&tensors)?, cx.b.broadcast_shapes(&tensors)?),
    };
    let z = cx.normal(dtype, &shape)?;
    located(cx, dtype, z, [mean, std], |z, mean, std| z * std + mean)
}

/// The largest number that `random_` draws of a type when nothing bounds it.
fn largest(dtype: DType) -> Expr {
    Expr::int(match dtype {
        DType::Bool => 1,
        DType::U8 => i64::from(u8::MAX),
        DType::I8 => i64::from(i8::MAX),
        DType::I16 => i64::from(i16::MAX),
        DType::I32 => i64::from(i32::MAX),
        DType::I64 => i64::MAX - 1,
        // As far as all integers are numbers of the type.
        DType::Bf16 => 1 << 8,
        DType::F16 => 1 << 11,
        DType::F32 => 1 << 24,
        DType::F64 => 1 << 53,
        DType::U16 => i64::from(u16::MAX),
        DType::U32 => i64::from(u32::MAX),
        DType::U64 => i64::MAX - 1,
        DType::F8(format) => (2.0 / format.epsilon()) as i64,
    })
}

/// Integers `low <= k < high`; the bits of a number are taken modulo how many there are, as PyTorch does.
fn integers(cx: &mut Context, a: &Args, dtype: DType, shape: &[Expr]) -> Rule {
    let low = a.opt_sym("low")?.or(a.opt_sym("from")?).unwrap_or_else(|| Expr::int(0));
    let high = match a.opt_sym("high")?.or(a.opt_sym("to")?) {
        Some(high) => high,
        None => &largest(dtype) + &Expr::int(1),
    };
    let message = "random integers are drawn below a number that is larger than the least of them";
    cx.b.require(Condition::compare(low.clone(), Relation::Lt, high.clone()), message);
    let bits = cx.random_bits(shape)?;
    let magnitude = cx.with_number(IntBinary::And, bits, i64::MAX)?;
    let count = cx.b.index(&high - &low, &[]);
    let below = cx.binary(BinaryOp::Remainder, magnitude, count)?;
    let low = cx.b.index(low, &[]);
    let number = cx.add(below, low)?;
    Ok(cx.b.cast(number, dtype).into())
}

/// The order in which random numbers are sorted.
fn permutation(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DType::I64);
    let keys = cx.random_bits(&[a.sym("n")?])?;
    let (_, order) = cx.b.sort(keys, 0, false)?;
    Ok(cx.b.cast(order, dtype).into())
}

/// Ones with a probability that is a number, a tensor, or the operand's own elements.
fn bernoulli(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let in_place = a.target().contains("bernoulli_");
    let p = match a.has("p") {
        true => a.number("p")?,
        false if in_place => Operand::Number(0.5.into()),
        false => Operand::Tensor(x),
    };
    Ok(bernoulli_of(cx, x, &p, a.target())?.into())
}

/// Ones with a probability, of the shape and type of a tensor. Messages name `operator`.
pub(crate) fn bernoulli_of(
    cx: &mut Context,
    like: ValueId,
    p: &Operand,
    operator: &str,
) -> Result<ValueId, RuleError> {
    let ty = cx.b.ty(like).clone();
    if let Operand::Tensor(p) = p {
        let wide = cx.b.cast(*p, DType::F64);
        let inside = cx.apply([wide], DType::F64, |[p]| p.ge(0.0).and(p.le(1.0)))?;
        cx.assert_all(inside, &format!("{operator}: probabilities must be between 0 and 1"))?;
    }
    let p = p.formula(cx, DType::F64);
    let hit = cx.chance(&ty.shape, p)?;
    Ok(cx.b.cast(hit, ty.dtype))
}

/// The run fails where not all elements hold.
pub(crate) fn all_hold(cx: &mut Context, a: &Args, x: ValueId, what: &str) -> Result<(), RuleError> {
    cx.assert_all(x, &format!("{}: {what}", a.target()))
}

fn multinomial(cx: &mut Context, a: &Args) -> Rule {
    let (weights, samples) = (a.tensor("self")?, a.sym("num_samples")?);
    Ok(multinomial_of(cx, weights, &samples, a.bool_or("replacement", false)?, a.target())?.into())
}

/// Categories by their weights: with replacement where the running sum of weights passes a random part of the whole;
/// without, the largest of the weights over exponentially distributed numbers, which is to draw one after the other. Messages
/// name `operator`.
pub(crate) fn multinomial_of(
    cx: &mut Context,
    weights: ValueId,
    samples: &Expr,
    replacement: bool,
    operator: &str,
) -> Result<ValueId, RuleError> {
    let must = |what: &str| format!("{operator}: {what}");
    let shape = cx.b.shape(weights);
    let Some((last, size)) = shape.len().checked_sub(1).map(|last| (last, shape[last].clone())) else {
        return Err(RuleError::Malformed("weights of categories need an axis".to_owned()));
    };
    let weights = cx.b.cast(weights, DType::F64);
    let is_weight = cx.apply([weights], DType::F64, |[w]| {
        let infinite = w.unary(FloatTest::IsInf);
        w.ge(0.0).and(infinite.not())
    })?;
    cx.assert_all(is_weight, &must("weights must be finite and not negative"))?;
    let mut drawn = shape.clone();
    drawn[last] = samples.clone();
    cx.b.require(Condition::compare(samples.clone(), Relation::Ge, 1), "at least one category must be drawn");
    if replacement {
        let sums = cx.b.scan(ScanOp::Sum, weights, last)?[0];
        let total = cx.b.slice(sums, last, &(&size - &Expr::int(1)), &Expr::int(1), 1)?;
        let some = cx.with_number(Relation::Gt, total, 0.0)?;
        cx.assert_all(some, &must("weights must not all be zero"))?;
        let u = cx.uniform(DType::F64, &drawn)?;
        // No part is rounded up to the whole.
        let parts =
            cx.apply([u, total], DType::F64, |[u, total]| (u * &total).min(total * (1.0 - f64::EPSILON)))?;
        return Ok(cx.b.search_sorted(sums, parts, true)?);
    }
    let total = cx.sum(weights, &[last], false)?;
    let some = cx.with_number(Relation::Gt, total, 0.0)?;
    cx.assert_all(some, &must("weights must not all be zero"))?;
    let u = cx.open_uniform(DType::F64, &shape)?;
    let keys = cx.apply([weights, u], DType::F64, |[w, u]| w / -u.log())?;
    let (_, order) = cx.b.sort(keys, last, true)?;
    Ok(cx.b.slice(order, last, &Expr::int(0), samples, 1)?)
}
