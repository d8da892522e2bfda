//! Operators of complex numbers with meanings of their own, element by element.

use super::super::softmax::shift;
use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::parts::{Complex, Parts};
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::{FloatUnary, Relation, Scalar};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

/// The operand, whatever the schema calls it, in the type that its parts are computed in.
fn operand(cx: &mut Context, a: &Args) -> Result<(Complex, DType), RuleError> {
    let own = a.meta("self")?.dtype.compute();
    Ok((a.complex(cx, "self", own)?, own))
}

/// A complex function of one operand.
pub(crate) fn one(cx: &mut Context, a: &Args, f: impl FnOnce(&Complex) -> Complex) -> Rule {
    let (z, _) = operand(cx, a)?;
    a.emitted(cx, &f(&z))
}

/// A real function of one operand.
pub(crate) fn real(cx: &mut Context, a: &Args, f: impl FnOnce(&Complex) -> Formula) -> Rule {
    let (z, dtype) = operand(cx, a)?;
    let result = cx.formula(dtype, &f(&z))?;
    Ok(cx.b.cast(result, a.part_type()?).into())
}

/// A complex function of two operands.
pub(crate) fn two(cx: &mut Context, a: &Args, f: impl FnOnce(&Complex, &Complex) -> Complex) -> Rule {
    let dtype = a.part_type()?.compute();
    let (x, y) = (a.complex(cx, "self", dtype)?, a.complex(cx, "other", dtype)?);
    a.emitted(cx, &f(&x, &y))
}

pub(crate) fn sum(cx: &mut Context, a: &Args, sign: f64) -> Rule {
    let factor = sign * a.scalar_or("alpha", 1i64)?.to_f64();
    two(cx, a, |x, y| {
        let y = if factor == 1.0 { y.clone() } else { y.scaled(&factor.into()) };
        x.plus(&y)
    })
}

fn unit(z: &Complex) -> Complex {
    Complex { re: &z.re * 0.0 + 1.0, im: None }
}

pub(crate) fn power(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?.compute();
    let z = a.complex(cx, "self", dtype)?;
    let whole = a.scalar("exponent").ok().map(Scalar::to_f64).filter(|n| n.fract() == 0.0 && n.abs() <= 8.0);
    let result = match whole {
        Some(n) if n != 0.0 => {
            let mut product = z.clone();
            for _ in 1..n.abs() as usize {
                product = product.times(&z);
            }
            if n < 0.0 { product.reciprocal() } else { product }
        }
        Some(_) => unit(&z),
        None if a.scalar("exponent").is_ok_and(|n| n.to_f64() == 0.5) => z.sqrt(),
        None => {
            let exponent = a.complex(cx, "exponent", dtype)?;
            z.power(&exponent)
        }
    };
    a.emitted(cx, &result)
}

pub(crate) fn tanh(z: &Complex) -> Complex {
    let (x, y) = (&z.re, z.imaginary());
    let (a, b) = (x * 2.0, &y * 2.0);
    let below = a.unary(FloatUnary::Cosh) + super::parts::cos(&b);
    // Beyond this it is one in all digits, unless the angle is none.
    let large = x.abs().gt(20.0).and(x.is_inf().or(y.is_finite()));
    let re = x.equals(0.0).select(x, a.unary(FloatUnary::Sinh) / &below);
    let im = y.equals(0.0).select(&y, b.sin() / &below);
    Complex::new(large.select(x.sign(), re), large.select(0.0, im))
}

/// The number of magnitude 1 in the same direction; of 0, 0.
pub(crate) fn direction(z: &Complex) -> Complex {
    let size = z.magnitude();
    let none = size.equals(0.0);
    let unit = z.divided(&size);
    let im = unit.imaginary();
    Complex::new(none.select(0.0, &unit.re), none.select(0.0, im))
}

pub(crate) fn complex(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?;
    let (re, im) = (a.tensor("real")?, a.tensor("imag")?);
    let parts = Parts { re: cx.b.cast(re, dtype), im: cx.b.cast(im, dtype) };
    Ok(cx.join(parts)?.into())
}

pub(crate) fn polar(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?.compute();
    let (size, angle) = (a.complex(cx, "abs", dtype)?.re, a.complex(cx, "angle", dtype)?.re);
    a.emitted(cx, &Complex::new(&size * super::parts::cos(&angle), &size * angle.sin()))
}

pub(crate) fn compared(cx: &mut Context, a: &Args, differs: bool) -> Rule {
    let dtype = a.meta("self").or_else(|_| a.meta("other"))?.dtype.compute();
    let (x, y) = (a.complex(cx, "self", dtype)?, a.complex(cx, "other", dtype)?);
    let relation = if differs { Relation::Ne } else { Relation::Eq };
    let (re, im) = (x.re.binary(relation, &y.re), x.imaginary().binary(relation, y.imaginary()));
    let result = if differs { re.or(im) } else { re.and(im) };
    Ok(cx.formula(dtype, &result)?.into())
}

pub(crate) fn masked_fill(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?;
    let (z, value) = (a.complex(cx, "self", dtype)?, a.complex(cx, "value", dtype)?);
    let mask = cx.b.cast(a.tensor("mask")?, DType::Bool);
    let mask = Formula::from(mask);
    let result = Complex::new(mask.select(&value.re, &z.re), mask.select(value.imaginary(), z.imaginary()));
    a.emitted(cx, &result)
}

/// The same number everywhere, which may be real.
pub(crate) fn filling(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?;
    let value = a.complex(cx, "value", dtype)?;
    let parts = cx.split(a.tensor("self")?)?;
    let (re, im) = (cx.formula(dtype, &value.re)?, cx.formula(dtype, &value.imaginary())?);
    let shape = cx.b.shape(parts.re);
    let parts = Parts { re: cx.b.expand(re, &shape)?, im: cx.b.expand(im, &shape)? };
    Ok(cx.join(parts)?.into())
}

/// To complex numbers of another width, from real ones, or to real ones, which drops the imaginary part.
pub(crate) fn convert(cx: &mut Context, a: &Args) -> Rule {
    let (x, dtype) = (a.tensor("self")?, a.part_type()?);
    let own = a.meta("self")?;
    let becomes_complex = a.output_meta(0).is_some_and(|meta| meta.is_complex);
    let parts = if own.is_complex { cx.split(x)? } else { Parts { re: x, im: cx.b.full_like(0i64, x) } };
    let re = cx.b.cast(parts.re, dtype);
    if !becomes_complex {
        return Ok(re.into());
    }
    if own.is_complex && own.dtype == dtype {
        return Ok(x.into());
    }
    let im = cx.b.cast(parts.im, dtype);
    Ok(cx.join(Parts { re, im })?.into())
}

/// One number everywhere, in the sizes that the program states.
fn everywhere(cx: &mut Context, a: &Args, re: f64, im: f64) -> Rule {
    let meta =
        a.output_meta(0).ok_or_else(|| RuleError::Malformed("the result is not described".to_owned()))?;
    let sizes: Vec<Expr> = meta.sizes.clone();
    let parts = Parts { re: cx.b.full(re, meta.dtype, &sizes), im: cx.b.full(im, meta.dtype, &sizes) };
    if !meta.is_complex {
        return Ok(parts.re.into());
    }
    Ok(cx.join(parts)?.into())
}

pub(crate) fn filled(cx: &mut Context, a: &Args, number: f64) -> Rule {
    everywhere(cx, a, number, 0.0)
}

pub(crate) fn filled_with(cx: &mut Context, a: &Args) -> Rule {
    let name = if a.has("fill_value") { "fill_value" } else { "s" };
    match a.raw(name) {
        Some(Arg::Complex { re, im }) => everywhere(cx, a, *re, *im),
        _ => everywhere(cx, a, a.scalar(name)?.to_f64(), 0.0),
    }
}

/// The logarithm of the sum of exponentials over axes.
pub(crate) fn exponentials(cx: &mut Context, a: &Args) -> Rule {
    let (z, dtype) = operand(cx, a)?;
    let re = cx.formula(dtype, &z.re)?;
    let axes = Context::axes(&a.ints_or("dim", &[])?, cx.b.rank(re))?;
    let shift = shift(cx, re, &axes)?;
    let terms = z.plus(&Complex::real(shift).negated()).exp();
    let mut sum = |term: &Formula| {
        let term = cx.formula(dtype, term)?;
        cx.sum(term, &axes, true)
    };
    let sum = Complex::new(sum(&terms.re)?.into(), sum(&terms.imaginary())?.into());
    let result = sum.log().plus(&Complex::real(shift));
    let mut part = |part: &Formula| -> Result<_, RuleError> {
        let part = cx.formula(dtype, part)?;
        Ok(if a.bool_or("keepdim", false)? { part } else { cx.b.squeeze(part, &axes)? })
    };
    let result = Complex::new(part(&result.re)?.into(), part(&result.imaginary())?.into());
    a.emitted(cx, &result)
}

/// A number that is added to a product, or a quotient, of two others.
pub(crate) fn with_term(cx: &mut Context, a: &Args, f: impl FnOnce(&Complex, &Complex) -> Complex) -> Rule {
    let dtype = a.part_type()?.compute();
    let [own, x, y] = ["self", "tensor1", "tensor2"].map(|name| a.complex(cx, name, dtype));
    let mut term = f(&x?, &y?);
    if a.has("value") {
        term = term.times(&a.complex(cx, "value", dtype)?);
    }
    a.emitted(cx, &own?.plus(&term))
}

/// From one number towards another by a weight.
pub(crate) fn interpolated(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?.compute();
    let [own, end, weight] = ["self", "end", "weight"].map(|name| a.complex(cx, name, dtype));
    let (own, end) = (own?, end?);
    a.emitted(cx, &own.plus(&weight?.times(&end.plus(&own.negated()))))
}

/// Whether two numbers are as close as tolerances ask.
pub(crate) fn close(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.meta("self")?.dtype.compute();
    let (x, y) = (a.complex(cx, "self", dtype)?, a.complex(cx, "other", dtype)?);
    let (rtol, atol) = (a.float_or("rtol", 1e-5)?, a.float_or("atol", 1e-8)?);
    let equal = x.re.equals(&y.re).and(x.imaginary().equals(y.imaginary()));
    let distance = x.plus(&y.negated()).magnitude();
    let near = distance.is_finite().and(distance.le(y.magnitude() * rtol + atol));
    let mut result = equal.or(near);
    if a.bool_or("equal_nan", false)? {
        let is_nan = |z: &Complex| z.re.is_nan().or(z.imaginary().is_nan());
        result = result.or(is_nan(&x).and(is_nan(&y)));
    }
    Ok(cx.formula(dtype, &result)?.into())
}

/// Whether there is no imaginary part.
pub(crate) fn is_real(cx: &mut Context, a: &Args) -> Rule {
    let parts = cx.split(a.tensor("self")?)?;
    Ok(cx.with_number(Relation::Eq, parts.im, 0i64)?.into())
}

/// The sum of products of the first one's conjugates with the second one.
pub(crate) fn conjugate_product(cx: &mut Context, a: &Args, [left, right]: [&str; 2]) -> Rule {
    let dtype = a.part_type()?.compute();
    let (x, y) = (a.complex(cx, left, dtype)?, a.complex(cx, right, dtype)?);
    let terms = x.conjugate().times(&y);
    let mut parts = Vec::new();
    for term in [terms.re.clone(), terms.imaginary()] {
        let term = cx.formula(dtype, &term)?;
        let axis = Context::axis(a.int_or("dim", -1)?, cx.b.rank(term))?;
        let sum = cx.sum(term, &[axis], false)?;
        parts.push(cx.b.cast(sum, a.part_type()?));
    }
    Ok(cx.join(Parts { re: parts[0], im: parts[1] })?.into())
}

/// Ones on the diagonal.
pub(crate) fn identity(cx: &mut Context, a: &Args) -> Rule {
    let meta =
        a.output_meta(0).ok_or_else(|| RuleError::Malformed("the result is not described".to_owned()))?;
    let re = cx.identity_matrix(meta.dtype, &meta.sizes)?;
    let im = cx.b.full_like(0.0, re);
    Ok(cx.join(Parts { re, im })?.into())
}

/// Dropout where nothing is dropped.
pub(crate) fn kept(_: &mut Context, a: &Args) -> Rule {
    if a.bool_or("train", false)? {
        return Err(RuleError::unsupported("dropout of complex numbers in training"));
    }
    Ok(a.tensor("input")?.into())
}
