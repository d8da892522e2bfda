//! Functions of single elements: arithmetic, elementary functions, activations.

use super::super::call::{Call, malformed};
use super::super::value::Val;
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::activation::{Gelu, gelu, mish, relu};
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{
    BinaryOp, FloatBinary, FloatTest, FloatUnary, IntBinary, Relation, Rounding, Scalar, UnaryOp, ValueId,
};

operators! { "";
    "Abs" => |cx, c| unary(cx, c, UnaryOp::Abs),
    "Neg" => |cx, c| unary(cx, c, UnaryOp::Neg),
    "Sign" => |cx, c| unary(cx, c, UnaryOp::Sign),
    "Floor" => |cx, c| unary(cx, c, Rounding::Floor),
    "Ceil" => |cx, c| unary(cx, c, Rounding::Ceil),
    "Round" => |cx, c| unary(cx, c, Rounding::Round),
    "Sqrt" => |cx, c| unary(cx, c, FloatUnary::Sqrt),
    "Reciprocal" => |cx, c| unary(cx, c, FloatUnary::Reciprocal),
    "Exp" => |cx, c| unary(cx, c, FloatUnary::Exp),
    "Log" => |cx, c| unary(cx, c, FloatUnary::Log),
    "Sin" => |cx, c| unary(cx, c, FloatUnary::Sin),
    "Cos" => |cx, c| unary(cx, c, FloatUnary::Cos),
    "Tan" => |cx, c| unary(cx, c, FloatUnary::Tan),
    "Asin" => |cx, c| unary(cx, c, FloatUnary::Asin),
    "Acos" => |cx, c| unary(cx, c, FloatUnary::Acos),
    "Atan" => |cx, c| unary(cx, c, FloatUnary::Atan),
    "Sinh" => |cx, c| unary(cx, c, FloatUnary::Sinh),
    "Cosh" => |cx, c| unary(cx, c, FloatUnary::Cosh),
    "Tanh" => |cx, c| unary(cx, c, FloatUnary::Tanh),
    "Asinh" => |cx, c| unary(cx, c, FloatUnary::Asinh),
    "Acosh" => |cx, c| unary(cx, c, FloatUnary::Acosh),
    "Atanh" => |cx, c| unary(cx, c, FloatUnary::Atanh),
    "Erf" => |cx, c| unary(cx, c, FloatUnary::Erf),
    "Sigmoid" => |cx, c| unary(cx, c, FloatUnary::Sigmoid),
    "IsNaN" => |cx, c| unary(cx, c, FloatTest::IsNan),
    "Relu" => |cx, c| one(relu(cx, c.tensor(0)?)?),
    "Softplus" => |cx, c| formula(cx, c, |x| x.max(0.0) + (-x.abs()).exp().log1p()),
    "Softsign" => |cx, c| formula(cx, c, |x| &x / (x.abs() + 1.0)),
    "HardSwish" => |cx, c| formula(cx, c, |x| &x * (&x * (1.0 / 6.0) + 0.5).max(0.0).min(1.0)),
    "Mish" => |cx, c| one(mish(cx, c.tensor(0)?)?),
    "Add" => |cx, c| arithmetic(cx, c, BinaryOp::Add),
    "Sub" => |cx, c| arithmetic(cx, c, BinaryOp::Sub),
    "Mul" => |cx, c| arithmetic(cx, c, BinaryOp::Mul),
    "Div" => div,
    "Mod" => modulo,
    "Pow" => pow,
    "Min" => |cx, c| folded(cx, c, BinaryOp::Minimum),
    "Max" => |cx, c| folded(cx, c, BinaryOp::Maximum),
    "Sum" => |cx, c| folded(cx, c, BinaryOp::Add),
    "Mean" => mean,
    "LeakyRelu" => leaky_relu,
    "Elu" => elu,
    "Selu" => selu,
    "Celu" => celu,
    "ThresholdedRelu" => thresholded_relu,
    "HardSigmoid" => hard_sigmoid,
    "Shrink" => shrink,
    "Gelu" => |cx, c| {
        let form = Gelu::named(c.text("approximate", "none")?)?;
        one(gelu(cx, c.tensor(0)?, form)?)
    },
    "Swish" => swish,
    "PRelu" => prelu,
    "Clip" => clip,
    "IsInf" => is_inf,
}

fn unary(cx: &mut Onnx, c: &Call, op: impl Into<UnaryOp>) -> Rule {
    let x = c.tensor(0)?;
    let op = op.into();
    if op.takes(cx.b.dtype(x)) && cx.b.dtype(x).compute() == cx.b.dtype(x) {
        return one(cx.b.unary(op, x));
    }
    let value = cx.in_compute_type(x, |cx, x| Ok(cx.b.unary(op, x)))?;
    one(value)
}

/// A formula of the only operand, which is of a floating-point type.
fn formula(cx: &mut Onnx, c: &Call, build: impl FnOnce(Formula) -> Formula) -> Rule {
    let x = c.tensor(0)?;
    let dtype = cx.b.dtype(x);
    one(cx.apply([x], dtype, |[x]| build(x))?)
}

/// Two operands. Those of the first six versions broadcast where an attribute says so, from an axis on.
pub(super) fn operands(cx: &mut Onnx, c: &Call) -> Result<(ValueId, ValueId), RuleError> {
    let (a, b) = (c.tensor(0)?, c.tensor(1)?);
    let Some(axis) = c.opt_int("axis")?.filter(|_| c.version < 7) else { return Ok((a, b)) };
    let rank = cx.b.rank(a);
    let axis = axis_of(axis, rank)?;
    let behind =
        rank.checked_sub(axis + cx.b.rank(b)).ok_or_else(|| malformed("operands do not broadcast"))?;
    let length = cx.b.rank(b) + behind;
    Ok((a, cx.trailing_ones(b, length)?))
}

pub(super) fn arithmetic(cx: &mut Onnx, c: &Call, op: impl Into<BinaryOp>) -> Rule {
    let (a, b) = operands(cx, c)?;
    one(computed(cx, op.into(), a, b)?)
}

/// Of two tensors of one type, in the type in which that type computes.
fn computed(cx: &mut Onnx, op: BinaryOp, a: ValueId, b: ValueId) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(a);
    if dtype.compute() == dtype {
        return Ok(cx.b.binary(op, a, b)?);
    }
    cx.apply([a, b], dtype, |[a, b]| a.binary(op, b))
}

fn div(cx: &mut Onnx, c: &Call) -> Rule {
    let (a, b) = operands(cx, c)?;
    let op = if cx.b.dtype(a).is_float() { FloatBinary::Div.into() } else { BinaryOp::TruncDiv };
    one(computed(cx, op, a, b)?)
}

fn modulo(cx: &mut Onnx, c: &Call) -> Rule {
    let (a, b) = operands(cx, c)?;
    let op = if c.flag("fmod", false)? { BinaryOp::Fmod } else { BinaryOp::Remainder };
    one(computed(cx, op, a, b)?)
}

/// The exponent may be of another type; the result is of the base's.
fn pow(cx: &mut Onnx, c: &Call) -> Rule {
    let (a, b) = operands(cx, c)?;
    let (dtype, exponent) = (cx.b.dtype(a), cx.b.dtype(b));
    let wide = if dtype.is_float() {
        dtype.compute()
    } else if exponent.is_float() {
        DType::F64
    } else {
        DType::I64
    };
    let (a, b) = (cx.b.cast(a, wide), cx.b.cast(b, wide));
    let value = cx.b.binary(BinaryOp::Pow, a, b)?;
    one(cx.b.cast(value, dtype))
}

fn folded(cx: &mut Onnx, c: &Call, op: BinaryOp) -> Rule {
    let values = c.tensors()?;
    let mut rest = values.iter();
    let mut result = *rest.next().ok_or_else(|| malformed("it has no operands"))?;
    for value in rest {
        result = computed(cx, op, result, *value)?;
    }
    one(result)
}

fn mean(cx: &mut Onnx, c: &Call) -> Rule {
    let count = c.inputs.len() as f64;
    let total = folded(cx, c, BinaryOp::Add)?;
    let [Val::Tensor(total)] = total.as_slice() else { return Ok(total) };
    let dtype = cx.b.dtype(*total);
    one(cx.apply([*total], dtype, |[x]| x / count)?)
}

fn leaky_relu(cx: &mut Onnx, c: &Call) -> Rule {
    let alpha = c.float("alpha", 0.01)?;
    formula(cx, c, |x| x.lt(0.0).select(&x * alpha, &x))
}

fn elu(cx: &mut Onnx, c: &Call) -> Rule {
    let alpha = c.float("alpha", 1.0)?;
    formula(cx, c, |x| x.lt(0.0).select(x.min(0.0).expm1() * alpha, &x))
}

fn selu(cx: &mut Onnx, c: &Call) -> Rule {
    let alpha = c.float("alpha", 1.673_263_192_176_818_8)?;
    let gamma = c.float("gamma", 1.050_701_022_148_132_3)?;
    formula(cx, c, |x| x.gt(0.0).select(&x * gamma, x.min(0.0).expm1() * alpha * gamma))
}

fn celu(cx: &mut Onnx, c: &Call) -> Rule {
    let alpha = c.float("alpha", 1.0)?;
    formula(cx, c, |x| x.max(0.0) + ((&x / alpha).expm1() * alpha).min(0.0))
}

fn thresholded_relu(cx: &mut Onnx, c: &Call) -> Rule {
    let alpha = c.float("alpha", 1.0)?;
    formula(cx, c, |x| x.gt(alpha).select(&x, 0.0))
}

fn hard_sigmoid(cx: &mut Onnx, c: &Call) -> Rule {
    let (alpha, beta) = (c.float("alpha", 0.2)?, c.float("beta", 0.5)?);
    formula(cx, c, |x| (x * alpha + beta).max(0.0).min(1.0))
}

fn shrink(cx: &mut Onnx, c: &Call) -> Rule {
    let (bias, lambda) = (c.float("bias", 0.0)?, c.float("lambd", 0.5)?);
    let x = c.tensor(0)?;
    let dtype = cx.b.dtype(x);
    let wide = if dtype.is_float() { dtype.compute() } else { DType::F64 };
    let value =
        cx.apply([x], wide, |[x]| x.lt(-lambda).select(&x + bias, x.gt(lambda).select(&x - bias, &x * 0.0)))?;
    one(cx.b.cast(value, dtype))
}

fn swish(cx: &mut Onnx, c: &Call) -> Rule {
    let alpha = c.float("alpha", 1.0)?;
    formula(cx, c, |x| &x * (&x * alpha).sigmoid())
}

fn prelu(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, mut slope) = (c.tensor(0)?, c.tensor(1)?);
    let dtype = cx.b.dtype(x);
    // Before version 7 a slope for each channel had one axis.
    if c.version < 7 && cx.b.rank(slope) == 1 && cx.b.rank(x) > 2 {
        let rank = cx.b.rank(x) - 1;
        slope = cx.trailing_ones(slope, rank)?;
    }
    if dtype.compute() != dtype {
        return one(cx.apply([x, slope], dtype, |[x, slope]| x.lt(0.0).select(&x * &slope, &x))?);
    }
    let zero = cx.b.full_like(Scalar::Int(0).cast(dtype), x);
    let below = cx.b.binary(Relation::Lt, x, zero)?;
    let product = cx.b.binary(BinaryOp::Mul, x, slope)?;
    one(cx.b.select(below, product, x)?)
}

/// The bounds were attributes before version 11.
fn clip(cx: &mut Onnx, c: &Call) -> Rule {
    let mut x = c.tensor(0)?;
    let dtype = cx.b.dtype(x);
    let bound = |cx: &mut Onnx, position: usize, name: &str| -> Result<Option<ValueId>, RuleError> {
        if c.version >= 11 {
            return c.opt_tensor(position);
        }
        Ok(c.opt_float(name)?.map(|number| cx.b.scalar(number, dtype)))
    };
    if let Some(low) = bound(cx, 1, "min")? {
        let low = cx.b.reshape(low, &[])?;
        x = cx.b.binary(BinaryOp::Maximum, x, low)?;
    }
    if let Some(high) = bound(cx, 2, "max")? {
        let high = cx.b.reshape(high, &[])?;
        x = cx.b.binary(BinaryOp::Minimum, x, high)?;
    }
    one(x)
}

fn is_inf(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let (positive, negative) = (c.flag("detect_positive", true)?, c.flag("detect_negative", true)?);
    let compute = cx.b.dtype(x).compute();
    let wide = cx.b.cast(x, compute);
    let is_inf = cx.b.unary(FloatTest::IsInf, wide);
    let value = match (positive, negative) {
        (true, true) => is_inf,
        (false, false) => cx.b.full_like(false, is_inf),
        (true, false) | (false, true) => {
            let relation = if positive { Relation::Gt } else { Relation::Lt };
            let side = cx.with_number(relation, wide, 0.0)?;
            cx.b.binary(IntBinary::And, is_inf, side)?
        }
    };
    one(value)
}
