//! Element-wise operators of two tensors, or of a tensor and a number.

use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{
    BinaryOp, Condition, FloatBinary, FloatUnary, IntBinary, Relation, Rounding, Scalar, SpecialBinary,
    ValueId,
};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.add.*" => |cx, a| scaled(cx, a, BinaryOp::Add),
    pure "aten.sub.*" => |cx, a| scaled(cx, a, BinaryOp::Sub),
    pure "aten.rsub.*" => reversed_sub,
    pure "aten.mul.*" => |cx, a| common(cx, a, BinaryOp::Mul),
    pure "aten.div.*" => div,
    pure "aten.floor_divide.*" => |cx, a| quotient(cx, a, BinaryOp::FloorDiv),
    pure "aten.remainder.*" => |cx, a| quotient(cx, a, BinaryOp::Remainder),
    pure "aten.fmod.*" => |cx, a| quotient(cx, a, BinaryOp::Fmod),
    pure "aten.pow.*" => pow,
    pure "aten.float_power.*" => float_power,
    pure "aten.maximum.default" => |cx, a| common(cx, a, BinaryOp::Maximum),
    pure "aten.minimum.default" => |cx, a| common(cx, a, BinaryOp::Minimum),
    pure "aten.max.other" => |cx, a| common(cx, a, BinaryOp::Maximum),
    pure "aten.min.other" => |cx, a| common(cx, a, BinaryOp::Minimum),
    pure "aten.fmax.default" => |cx, a| common(cx, a, BinaryOp::Fmax),
    pure "aten.fmin.default" => |cx, a| common(cx, a, BinaryOp::Fmin),
    pure "aten.eq.*" => |cx, a| common(cx, a, Relation::Eq),
    pure "aten.ne.*" => |cx, a| common(cx, a, Relation::Ne),
    pure "aten.lt.*" => |cx, a| common(cx, a, Relation::Lt),
    pure "aten.le.*" => |cx, a| common(cx, a, Relation::Le),
    pure "aten.gt.*" => |cx, a| common(cx, a, Relation::Gt),
    pure "aten.ge.*" => |cx, a| common(cx, a, Relation::Ge),
    pure "aten.bitwise_and.*" => |cx, a| common(cx, a, IntBinary::And),
    pure "aten.bitwise_or.*" => |cx, a| common(cx, a, IntBinary::Or),
    pure "aten.bitwise_xor.*" => |cx, a| common(cx, a, IntBinary::Xor),
    pure "aten.bitwise_left_shift.*" => |cx, a| common(cx, a, IntBinary::Shl),
    pure "aten.bitwise_right_shift.*" => |cx, a| common(cx, a, IntBinary::Shr),
    pure "aten.logical_and.default" => |cx, a| logical(cx, a, IntBinary::And),
    pure "aten.logical_or.default" => |cx, a| logical(cx, a, IntBinary::Or),
    pure "aten.logical_xor.default" => |cx, a| logical(cx, a, IntBinary::Xor),
    pure "aten.gcd.default" => |cx, a| common(cx, a, IntBinary::Gcd),
    pure "aten.lcm.default" => lcm,
    pure "aten.atan2.default" => |cx, a| float(cx, a, FloatBinary::Atan2),
    pure "aten.hypot.default" => |cx, a| float(cx, a, FloatBinary::Hypot),
    pure "aten.copysign.*" => |cx, a| float(cx, a, FloatBinary::CopySign),
    pure "aten.nextafter.default" => next_after,
    pure "aten.igamma.default" => |cx, a| float(cx, a, SpecialBinary::Igamma),
    pure "aten.igammac.default" => |cx, a| float(cx, a, SpecialBinary::Igammac),
    pure "aten.special_zeta.*" => |cx, a| float(cx, a, SpecialBinary::Zeta),
    pure "aten.special_chebyshev_polynomial_t.*" => |cx, a| float(cx, a, SpecialBinary::ChebyshevT),
    pure "aten.special_chebyshev_polynomial_u.*" => |cx, a| float(cx, a, SpecialBinary::ChebyshevU),
    pure "aten.special_chebyshev_polynomial_v.*" => |cx, a| float(cx, a, SpecialBinary::ChebyshevV),
    pure "aten.special_chebyshev_polynomial_w.*" => |cx, a| float(cx, a, SpecialBinary::ChebyshevW),
    pure "aten.special_shifted_chebyshev_polynomial_t.*" => |cx, a| float(cx, a, SpecialBinary::ShiftedChebyshevT),
    pure "aten.special_shifted_chebyshev_polynomial_u.*" => |cx, a| float(cx, a, SpecialBinary::ShiftedChebyshevU),
    pure "aten.special_shifted_chebyshev_polynomial_v.*" => |cx, a| float(cx, a, SpecialBinary::ShiftedChebyshevV),
    pure "aten.special_shifted_chebyshev_polynomial_w.*" => |cx, a| float(cx, a, SpecialBinary::ShiftedChebyshevW),
    pure "aten.special_hermite_polynomial_h.*" => |cx, a| float(cx, a, SpecialBinary::HermiteH),
    pure "aten.special_hermite_polynomial_he.*" => |cx, a| float(cx, a, SpecialBinary::HermiteHe),
    pure "aten.special_laguerre_polynomial_l.*" => |cx, a| float(cx, a, SpecialBinary::LaguerreL),
    pure "aten.special_legendre_polynomial_p.*" => |cx, a| float(cx, a, SpecialBinary::LegendreP),
    pure "aten.heaviside.default" => heaviside,
    pure "aten.xlogy.*" => |cx, a| x_times_log(cx, a, |y| y.log()),
    pure "aten.special_xlog1py.*" => |cx, a| x_times_log(cx, a, |y| y.log1p()),
    pure "aten.logaddexp.default" => |cx, a| log_add(cx, a, |d| d.exp().log1p()),
    pure "aten.logaddexp2.default" => |cx, a| log_add(cx, a, |d| d.exp2().log1p() * std::f64::consts::LOG2_E),
    pure "aten.ldexp.Tensor" => ldexp,
    pure "aten.isclose.default" => is_close,
}

/// In the operands' common type.
fn common(cx: &mut Context, a: &Args, op: impl Into<BinaryOp>) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    Ok(cx.combine(op, &x, &y)?.into())
}

/// In the operands' common type; of integers there is no quotient by zero, and no remainder.
fn quotient(cx: &mut Context, a: &Args, op: BinaryOp) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    let dtype = cx.operands_type(&[&x, &y])?;
    let result = cx.combine_as(op, &x, &y, dtype)?;
    if !dtype.is_float() {
        let elements = cx.b.ty(result).numel();
        cx.require_divisor(&y, dtype, &elements)?;
    }
    Ok(result.into())
}

/// In the operands' common type, made floating-point.
fn float(cx: &mut Context, a: &Args, op: impl Into<BinaryOp>) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    let dtype = cx.float_type(cx.operands_type(&[&x, &y])?);
    Ok(cx.combine_as(op, &x, &y, dtype)?.into())
}

/// Both operands as tensors of their common type (made floating-point), which is returned too.
fn float_operands(cx: &mut Context, a: &Args) -> Result<(ValueId, ValueId, DType), RuleError> {
    let (x, y) = (a.left()?, a.right()?);
    let dtype = cx.float_type(cx.operands_type(&[&x, &y])?);
    Ok((x.to_value(cx, dtype), y.to_value(cx, dtype), dtype))
}

fn logical(cx: &mut Context, a: &Args, op: impl Into<BinaryOp>) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    Ok(cx.combine_as(op, &x, &y, DType::Bool)?.into())
}

/// `x + alpha * y` and its like.
fn scaled(cx: &mut Context, a: &Args, op: BinaryOp) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    let alpha = a.number_or("alpha", 1i64)?;
    scaled_by(cx, op, &x, &y, &alpha)
}

fn scaled_by(cx: &mut Context, op: BinaryOp, x: &Operand, y: &Operand, alpha: &Operand) -> Rule {
    if alpha.is(1.0) {
        return Ok(cx.combine(op, x, y)?.into());
    }
    let dtype = cx.operands_type(&[x, y])?;
    // PyTorch adds, and where it subtracts, it adds the negative of it.
    let mut added = alpha.clone();
    if op == BinaryOp::Sub
        && let Operand::Size(number) = alpha
    {
        cx.b.require(Condition::Fits(-number), "a factor whose negative is within 64 bits");
        added = Operand::Size(-number);
    }
    cx.require_element(&added, dtype)?;
    let wide = dtype.compute();
    let (x, y) = (x.to_value(cx, wide), y.to_value(cx, wide));
    let y = cx.scaled(y, alpha)?;
    let result = cx.binary(op, x, y)?;
    Ok(cx.b.cast(result, dtype).into())
}

/// `other - alpha * self`.
fn reversed_sub(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    let alpha = a.number_or("alpha", 1i64)?;
    scaled_by(cx, BinaryOp::Sub, &y, &x, &alpha)
}

fn div(cx: &mut Context, a: &Args) -> Rule {
    match a.str_or("rounding_mode", "")? {
        "" => float(cx, a, FloatBinary::Div),
        "floor" => quotient(cx, a, BinaryOp::FloorDiv),
        "trunc" => truncated(cx, a),
        other => Err(RuleError::unsupported(format!("rounding mode `{other}`"))),
    }
}

/// Quotient rounded towards zero; of half types, after the quotient itself is rounded.
fn truncated(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    let dtype = cx.operands_type(&[&x, &y])?;
    if !dtype.is_float() {
        return quotient(cx, a, BinaryOp::TruncDiv);
    }
    let quotient = cx.combine_as(FloatBinary::Div, &x, &y, dtype)?;
    Ok(cx.unary(Rounding::Trunc, quotient).into())
}

fn pow(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    let dtype = cx.operands_type(&[&x, &y])?;
    Ok(power(cx, &x, &y, dtype)?.into())
}

fn float_power(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    Ok(power(cx, &x, &y, DType::F64)?.into())
}

fn next_after(cx: &mut Context, a: &Args) -> Rule {
    // Smallest and largest number, and what is added relative to a number so that rounding to the type ends at the next
    // one: between a half and one unit in the last place of every number, a little more than a half.
    let neighbour = |exponent: i32| 2f64.powi(exponent) * (1.0 + 2f64.powi(-10));
    let (x, y, dtype) = float_operands(cx, a)?;
    let (tiny, largest, relative) = match dtype {
        DType::F16 => (2f64.powi(-24), 65504.0, neighbour(-11)),
        DType::Bf16 => (2f64.powi(-133), 255.0 * 2f64.powi(120), neighbour(-8)),
        DType::F32 | DType::F64 => return float(cx, a, FloatBinary::NextAfter),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8(_) => return Err(RuleError::unsupported(format!("elements of {dtype}"))),
    };
    let result = cx.apply([x, y], dtype, |[x, y]| {
        let step = (x.abs() * relative).max(tiny);
        let moved = x.lt(&y).select(&x + &step, &x - &step);
        let from_infinity = x.sign() * largest;
        let moved = x.is_inf().select(from_infinity, moved);
        x.equals(&y).or(y.is_nan()).select(&y, moved)
    })?;
    Ok(result.into())
}

/// A power; small constant exponents become products and roots, exactly where PyTorch's kernel does so.
fn power(cx: &mut Context, x: &Operand, y: &Operand, dtype: DType) -> Result<ValueId, RuleError> {
    if let (Operand::Tensor(_), Operand::Size(exponent), false) = (x, y, dtype.is_float()) {
        let condition = Condition::compare(exponent.clone(), Relation::Ge, 0);
        cx.b.require(condition, "integers to negative integer powers");
    }
    let (Operand::Tensor(base), Operand::Number(exponent)) = (x, y) else {
        return cx.combine_as(BinaryOp::Pow, x, y, dtype);
    };
    let exponent = exponent.to_f64();
    let special = |x: Formula| {
        if exponent == 2.0 {
            Some(&x * &x)
        } else if exponent == 3.0 {
            Some(&x * &x * &x)
        } else if !dtype.is_float() || dtype == DType::F16 {
            // Of f16, PyTorch computes the power itself, which differs from the root at -0 and -inf.
            None
        } else if exponent == 0.5 {
            Some(x.sqrt())
        } else if exponent == -0.5 {
            Some(x.rsqrt())
        } else if exponent == -1.0 {
            Some(x.unary(FloatUnary::Reciprocal))
        } else if exponent == -2.0 {
            Some((&x * &x).unary(FloatUnary::Reciprocal))
        } else {
            None
        }
    };
    if exponent == 1.0 {
        return Ok(cx.b.cast(*base, dtype));
    }
    if !dtype.is_float() && exponent < 0.0 {
        return Err(RuleError::unsupported("integers to negative integer powers"));
    }
    let number = match y {
        Operand::Number(number) => *number,
        Operand::Tensor(_) | Operand::Size(_) | Operand::Truth(_) | Operand::Computed(..) => {
            Scalar::Float(exponent)
        }
    };
    cx.apply([*base], dtype, |[x]| special(x.clone()).unwrap_or_else(|| x.pow(number)))
}

fn lcm(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.left()?, a.right()?);
    let dtype = cx.operands_type(&[&x, &y])?;
    let (x, y) = (x.to_value(cx, dtype), y.to_value(cx, dtype));
    let result = cx.apply([x, y], dtype, |[x, y]| {
        let divisor = x.gcd(&y);
        let multiple = (x.trunc_div(&divisor) * &y).abs();
        divisor.equals(0.0).select(0.0, multiple)
    })?;
    Ok(result.into())
}

fn heaviside(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.left()?, a.tensor("values")?);
    let y = Operand::Tensor(y);
    let dtype = cx.operands_type(&[&x, &y])?;
    let (x, y) = (x.to_value(cx, dtype), y.to_value(cx, dtype));
    let step = |x: Formula, y: Formula| x.equals(0.0).select(y, x.gt(0.0).cast(dtype.compute()));
    Ok(cx.apply([x, y], dtype, |[x, y]| step(x, y))?.into())
}

fn x_times_log(cx: &mut Context, a: &Args, log: impl FnOnce(&Formula) -> Formula) -> Rule {
    let (x, y, dtype) = float_operands(cx, a)?;
    let result = cx.apply([x, y], dtype, |[x, y]| {
        let product = &x * log(&y);
        y.is_nan().select(&y, x.equals(0.0).select(0.0, product))
    })?;
    Ok(result.into())
}

/// `max + grow(-|x - y|)`; equal infinities give themselves.
fn log_add(cx: &mut Context, a: &Args, grow: impl FnOnce(Formula) -> Formula) -> Rule {
    let (x, y, dtype) = float_operands(cx, a)?;
    let result = cx.apply([x, y], dtype, |[x, y]| {
        let sum = x.max(&y) + grow(-(&x - &y).abs());
        x.is_inf().and(x.equals(&y)).select(&x, sum)
    })?;
    Ok(result.into())
}

fn ldexp(cx: &mut Context, a: &Args) -> Rule {
    let (x, exponent) = (a.left()?, a.right()?);
    let Operand::Tensor(exponent) = exponent else {
        return Err(RuleError::Malformed("the exponent is not a tensor".to_owned()));
    };
    let floats =
        if let Operand::Tensor(x) = x { Some(x).filter(|x| cx.b.dtype(*x).is_float()) } else { None };
    let Some(number) = floats.filter(|_| !cx.b.dtype(exponent).is_float()) else {
        // The power of two is a tensor of its own, in the exponent's floating-point type.
        let power = cx.apply_float([exponent], |[e]| e.exp2())?;
        return Ok(cx.combine(BinaryOp::Mul, &x, &Operand::Tensor(power))?.into());
    };
    // Whole exponents of floating-point numbers move the point: the power may lie outside of the type where the result does not.
    // Up to 2.14 PyTorch multiplied by a tensor of `f32`, whose type the result then has.
    let dtype = a.output_meta(0).map_or(cx.b.dtype(number), |meta| meta.dtype);
    let scaled = cx.apply([number, exponent], DType::F64, |[x, e]| {
        // Between the least and the largest number lie fewer powers; a third of that many is a number itself.
        let whole = e.max(-2100.0).min(2100.0);
        let part = (&whole / 3.0).trunc();
        let rest = &whole - &part * 2.0;
        x * part.exp2() * part.exp2() * rest.exp2()
    })?;
    Ok(cx.b.cast(scaled, dtype).into())
}

fn is_close(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("other")?);
    let (rtol, atol) = (a.float_or("rtol", 1e-5)?, a.float_or("atol", 1e-8)?);
    let dtype = cx.b.dtype(x);
    let wide = if dtype.is_float() { dtype.compute() } else { DType::F64 };
    let (x, y) = (cx.b.cast(x, wide), cx.b.cast(y, wide));
    let (x, y) = (Formula::from(x), Formula::from(y));
    let mut close = x.equals(&y);
    if a.bool_or("equal_nan", false)? && dtype.is_float() {
        close = close.or(x.is_nan().and(y.is_nan()));
    }
    let difference = (&x - &y).abs();
    let allowed = (&y * rtol).abs() + atol;
    let close = close.or(difference.is_finite().and(difference.le(allowed)));
    Ok(cx.formula(wide, &close)?.into())
}

#[cfg(test)]
mod tests {
    use super::super::tests::evaluated;
    use crate::halves::F16;
    use crate::interpret::Tensor;

    fn ldexp(x: Tensor, ty: &str, result: &str, powers: &[i64]) -> Vec<f64> {
        let n = powers.len();
        let statements = format!(
            "input %x: {ty}[{n}] input %e: i64[{n}]
            %y: {result}[{n}] = aten.ldexp.Tensor(self = %x, other = %e) output %y"
        );
        let found = evaluated(&statements, &[x, Tensor::from_i64(&[n], powers)]).expect("it runs");
        found[0].to_f64()
    }

    #[test]
    fn whole_exponents_move_the_point_of_floating_point_numbers() {
        let halves = || Tensor::from_f16(&[3], &[1.0, 1.0, -1.5].map(F16::from_f32));
        let powers = [20, -30, 3];
        assert_eq!(ldexp(halves(), "f16", "f16", &powers), [f64::INFINITY, 0.0, -12.0]);
        // As programs of PyTorch before 2.15 state it.
        assert_eq!(ldexp(halves(), "f16", "f32", &powers), [1_048_576.0, 2f64.powi(-30), -12.0]);
        // The power is no number, the result is.
        let singles = Tensor::from_f32(&[3], &[1e-30, 0.0, 1.0]);
        let expected = [f64::from(1e-30f32) * 2f64.powi(150), 0.0, 0.0];
        assert_eq!(ldexp(singles, "f32", "f32", &[150, 5000, -200]), expected);
        // Whole numbers are multiplied by it.
        let found = ldexp(Tensor::from_i64(&[2], &[0, 3]), "i64", "f32", &[200, 2]);
        assert!(found[0].is_nan() && found[1] == 12.0, "{found:?}");
    }
}
