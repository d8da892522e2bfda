//! Scales and zero points that PT2E's programs choose by their data (`quantized_decomposed.choose_qparams*`).

use super::super::operand::Operand;
use super::super::registry::rules;
use super::super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, FloatBinary, ReduceOp, Relation, Rounding, Scalar, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "quantized_decomposed.choose_qparams.tensor" => |cx, a| choose(cx, a, false),
    pure "quantized_decomposed.choose_qparams_symmetric.tensor" => |cx, a| choose(cx, a, true),
    pure "quantized_decomposed.choose_qparams_per_token.default" => choose_per_token,
    pure "quantized_decomposed.choose_qparams_per_token_asymmetric.default" => choose_per_token_asymmetric,
    pure "quantized_decomposed._choose_qparams_per_token_asymmetric_impl.default" => choose_per_token_asymmetric,
}

/// One scale and one zero point for the whole tensor.
fn choose(cx: &mut Context, a: &Args, is_symmetric: bool) -> Rule {
    let x = a.tensor("input")?;
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    let (least, most) = cx.extent(x, &axes, false)?;
    let (low, high) = (a.int("quant_min")?, a.int("quant_max")?);
    // PyTorch makes a tensor of this number, whose type the scale is promoted to.
    let eps = cx.b.full(a.float_or("eps", 0.0)?, DType::F32, &[Expr::int(1)]);
    let width = (high - low) as f64;
    let (scale, zero) = if is_symmetric {
        let below = cx.unary(UnaryOp::Neg, least);
        let reach = cx.binary(BinaryOp::Maximum, below, most)?;
        let scale = cx.beside(FloatBinary::Div, reach, width / 2.0)?;
        let scale = cx.promoting(BinaryOp::Maximum, scale, eps)?;
        let middle = if a.opt_dtype("dtype")? == Some(DType::U8) { 128i64 } else { 0 };
        (scale, cx.b.full(middle, DType::I64, &[Expr::int(1)]))
    } else {
        let reach = cx.promoting(BinaryOp::Sub, most, least)?;
        let scale = cx.beside(FloatBinary::Div, reach, width)?;
        let scale = cx.promoting(BinaryOp::Maximum, scale, eps)?;
        let steps = cx.promoting(FloatBinary::Div, least, scale)?;
        let steps = cx.unary(Rounding::Round, steps);
        let steps = cx.b.cast(steps, DType::I32);
        let low_value = cx.b.full_like(low, steps);
        let zero = cx.sub(low_value, steps)?;
        (scale, cx.clamped(zero, (Scalar::from(low), Scalar::from(high)))?)
    };
    let (scale, zero) = (cx.b.cast(scale, DType::F64), cx.b.cast(zero, DType::I64));
    Ok(Outputs::Many(vec![Some(scale), Some(zero)]))
}

/// What the program says of both results; PyTorch's own kernel for tokens gives narrower types than it states.
fn stated(cx: &mut Context, a: &Args, results: [ValueId; 2]) -> Outputs {
    let results = results.into_iter().enumerate();
    Outputs::Many(
        results
            .map(|(index, value)| {
                Some(a.output_meta(index).map_or(value, |meta| cx.b.cast(value, meta.dtype)))
            })
            .collect(),
    )
}

fn choose_per_token(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("input")?;
    let magnitude = cx.unary(UnaryOp::Abs, x);
    let last = last_axis(cx, x)?;
    let mut reach = cx.b.reduce(ReduceOp::Max, magnitude, &[last], true)?;
    if cx.b.dtype(reach) == DType::F16 {
        reach = cx.b.cast(reach, DType::F32);
    }
    let reach = cx.with_number(BinaryOp::Maximum, reach, 1e-5)?;
    let scale = cx.beside(FloatBinary::Div, reach, 127i64)?;
    let zero = cx.b.full_like(0.0, scale);
    Ok(stated(cx, a, [scale, zero]))
}

fn last_axis(cx: &Context, x: ValueId) -> Result<usize, RuleError> {
    let rank = cx.b.rank(x);
    rank.checked_sub(1).ok_or_else(|| RuleError::Malformed("a tensor without axes has no tokens".to_owned()))
}

fn choose_per_token_asymmetric(cx: &mut Context, a: &Args) -> Rule {
    const LOW: f64 = -128.0;
    const HIGH: f64 = 127.0;
    let x = a.tensor("input")?;
    let last = last_axis(cx, x)?;
    let (least, most) = cx.extent(x, &[last], true)?;
    let reach = cx.promoting(BinaryOp::Sub, most, least)?;
    let scale = cx.beside(FloatBinary::Div, reach, HIGH - LOW)?;
    let scale = cx.with_number(BinaryOp::Maximum, scale, f64::from(f32::EPSILON))?;
    let below = cx.promoting(FloatBinary::Div, least, scale)?;
    let above = cx.promoting(FloatBinary::Div, most, scale)?;
    // The end of the range that is represented with the smaller error decides.
    let errors = [cx.beside(BinaryOp::Add, below, LOW)?, cx.beside(BinaryOp::Add, above, HIGH)?];
    let error = cx.promoting(BinaryOp::Add, errors[0], errors[1])?;
    let from_below = cx.with_number(Relation::Gt, error, 0.0)?;
    let number = |cx: &mut Context, number: f64, x| {
        cx.combine(BinaryOp::Sub, &Operand::Number(Scalar::Float(number)), &Operand::Tensor(x))
    };
    let (low, high) = (number(cx, LOW, below)?, number(cx, HIGH, above)?);
    let zero = cx.b.select(from_below, low, high)?;
    let zero = cx.clamped(zero, (Scalar::Float(LOW), Scalar::Float(HIGH)))?;
    let zero = cx.unary(Rounding::Round, zero);
    let (scale, zero) = (cx.b.cast(scale, DType::F64), cx.b.cast(zero, DType::I64));
    Ok(Outputs::Many(vec![Some(scale), Some(zero)]))
}
