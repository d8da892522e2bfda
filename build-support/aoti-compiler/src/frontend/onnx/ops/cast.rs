//! Conversions between element types.

use super::super::call::{Call, malformed};
use super::super::types::{ElementType, Narrow, SmallFloat, element_type};
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::float8::Float8;
use crate::frontend::torch::rules::bitcast::as_type;
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{BinaryOp, FloatBinary, FloatTest, IntBinary, Relation, UnaryOp, ValueId};

operators! { "";
    "Cast" => cast,
    "CastLike" => cast_like,
    "BitCast" => bit_cast,
}

/// Which way numbers between two powers of two go that become one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Powers {
    Up,
    Down,
    Nearest,
}

/// How numbers beyond the range of a type of eight bits become it, and which way numbers between two of it go.
#[derive(Clone, Copy)]
struct Manner {
    saturate: bool,
    powers: Powers,
}

impl Manner {
    fn of(c: &Call) -> Result<Manner, RuleError> {
        let powers = match c.text("round_mode", "up")? {
            "up" => Powers::Up,
            "down" => Powers::Down,
            "nearest" => Powers::Nearest,
            other => return Err(malformed(format!("`round_mode` is `{other}`"))),
        };
        Ok(Manner { saturate: c.flag("saturate", true)?, powers })
    }
}

fn cast(cx: &mut Onnx, c: &Call) -> Rule {
    let to = c.opt_int("to")?.and_then(|to| i32::try_from(to).ok());
    let to = to.ok_or_else(|| malformed("attribute `to` is missing"))?;
    let to = element_type(to).map_err(malformed)?;
    let x = c.tensor(0)?;
    one(converted(cx, x, to, Manner::of(c)?)?)
}

fn cast_like(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, like) = (c.tensor(0)?, c.tensor(1)?);
    let to = ElementType { dtype: cx.b.dtype(like), narrow: cx.narrow.get(&like).copied() };
    one(converted(cx, x, to, Manner::of(c)?)?)
}

impl Onnx<'_> {
    /// A value of another element type, as `Cast` converts it.
    pub(super) fn converted(&mut self, x: ValueId, to: ElementType) -> Result<ValueId, RuleError> {
        converted(self, x, to, Manner { saturate: true, powers: Powers::Up })
    }

    /// The same, where numbers that are too large for a type of eight bits become infinite or NaN.
    pub(super) fn converted_unbounded(&mut self, x: ValueId, to: ElementType) -> Result<ValueId, RuleError> {
        converted(self, x, to, Manner { saturate: false, powers: Powers::Up })
    }
}

fn converted(cx: &mut Onnx, x: ValueId, to: ElementType, manner: Manner) -> Result<ValueId, RuleError> {
    let from = ElementType { dtype: cx.b.dtype(x), narrow: cx.narrow.get(&x).copied() };
    if from == to {
        return Ok(x);
    }
    if let Some(narrow) = to.narrow {
        let value = narrowed(cx, x, narrow, to.dtype)?;
        cx.narrow.insert(value, narrow);
        return Ok(value);
    }
    if let DType::F8(format) = to.dtype {
        return eight_bits(cx, x, format, manner);
    }
    if from.dtype == to.dtype {
        // A value of its own, so that the type of what it was made of stays what it is.
        let wide = cx.b.cast(x, DType::I64);
        return Ok(cx.b.cast(wide, to.dtype));
    }
    Ok(cx.b.cast(x, to.dtype))
}

fn eight_bits(cx: &mut Onnx, x: ValueId, format: Float8, manner: Manner) -> Result<ValueId, RuleError> {
    let from = cx.b.dtype(x);
    let wide = if from.is_float() { from.compute() } else { DType::F32 };
    let value = cx.b.cast(x, wide);
    if format == Float8::E8M0Fnu {
        return power_of_two(cx, value, manner);
    }
    let bounded = if manner.saturate {
        // Finite numbers and infinities become the nearest finite one; NaN stays.
        let largest = f64::from(format.largest());
        Formula::from(value).max(-largest).min(largest)
    } else if format == Float8::E4M3Fn {
        // Its largest number is 448, and numbers that round to it are less than half a step of 32 above it.
        let value = Formula::from(value);
        value.abs().gt(464.0).select(f64::NAN, &value)
    } else {
        value.into()
    };
    let bounded = cx.formula(wide, &bounded)?;
    Ok(cx.b.cast(bounded, DType::F8(format)))
}

/// Powers of two are found by their exponents, of which there are 255. What has a sign loses it.
fn power_of_two(cx: &mut Onnx, x: ValueId, manner: Manner) -> Result<ValueId, RuleError> {
    const DIGITS: i64 = 52;
    let wide = cx.b.cast(x, DType::F64);
    let magnitude = cx.b.unary(UnaryOp::Abs, wide);
    let bits = as_type(cx, magnitude, DType::I64)?;
    let exponent = cx.with_number(IntBinary::Shr, bits, DIGITS)?;
    let mantissa = cx.with_number(IntBinary::And, bits, (1i64 << DIGITS) - 1)?;
    let least = match manner.powers {
        Powers::Up => 1i64,
        Powers::Nearest => 1i64 << (DIGITS - 1),
        Powers::Down => 1i64 << DIGITS,
    };
    let goes_up = cx.with_number(Relation::Ge, mantissa, least)?;
    let goes_up = cx.b.cast(goes_up, DType::I64);
    let exponent = cx.add(exponent, goes_up)?;
    let bounded = cx.with_number(BinaryOp::Maximum, exponent, 1023 - 127i64)?;
    let bounded = cx.with_number(BinaryOp::Minimum, bounded, 1023 + 127i64)?;
    let bits = cx.with_number(IntBinary::Shl, bounded, DIGITS)?;
    let power = as_type(cx, bits, DType::F64)?;
    let mut is_none = cx.b.unary(FloatTest::IsNan, wide);
    if !manner.saturate {
        let is_beyond = cx.binary(Relation::Ne, exponent, bounded)?;
        is_none = cx.binary(IntBinary::Or, is_none, is_beyond)?;
    }
    let none = cx.b.full_like(f64::NAN, power);
    let power = cx.b.select(is_none, none, power)?;
    Ok(cx.b.cast(power, DType::F8(Float8::E8M0Fnu)))
}

/// The lowest bits of integers, and of what is left of floats without their fraction; the nearest of the floats of four bits.
fn narrowed(cx: &mut Onnx, x: ValueId, narrow: Narrow, storage: DType) -> Result<ValueId, RuleError> {
    let from = cx.b.dtype(x);
    if let Some(form) = narrow.float() {
        let wide = cx.b.cast(x, if from.is_float() { from.compute() } else { DType::F32 });
        return small_float(cx, wide, form, storage);
    }
    // Modulo two to the number of bits.
    let wide = cx.b.cast(x, DType::I64);
    let count = 1i64 << narrow.bits();
    let offset = narrow.range().0 as i64;
    let shifted = cx.with_number(BinaryOp::Sub, wide, offset)?;
    let wrapped = cx.with_number(BinaryOp::Remainder, shifted, count)?;
    let value = cx.with_number(BinaryOp::Add, wrapped, offset)?;
    Ok(cx.b.cast(value, storage))
}

/// The nearest of the numbers of few bits, the even one of two. None of them is NaN, which becomes a negative zero.
fn small_float(cx: &mut Onnx, x: ValueId, form: SmallFloat, storage: DType) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let is_nan = Formula::from(x).is_nan();
    let magnitude = is_nan.select(0.0, Formula::from(x).abs());
    let sign = is_nan.select(-1.0, x);
    // Steps are as large again from each power of two on.
    let rounded = |exponent: i32| {
        let step = 2f64.powi(exponent) * 0.5f64.powi(form.mantissa_bits as i32);
        (&magnitude * (1.0 / step)).round() * step
    };
    let (least, most) = form.exponents();
    let nearest = (least..most).rev().fold(rounded(most), |above, exponent| {
        magnitude.lt(2f64.powi(exponent + 1)).select(rounded(exponent), &above)
    });
    let nearest = nearest.min(form.largest()).binary(FloatBinary::CopySign, sign);
    let value = cx.formula(dtype, &nearest)?;
    Ok(cx.b.cast(value, storage))
}

/// The same bits as numbers of another type of the same size.
fn bit_cast(cx: &mut Onnx, c: &Call) -> Rule {
    let to = c.opt_int("to")?.and_then(|to| i32::try_from(to).ok());
    let to = to.ok_or_else(|| malformed("attribute `to` is missing"))?;
    let to = element_type(to).map_err(malformed)?;
    let x = c.tensor(0)?;
    let from = cx.b.dtype(x);
    if to.narrow.is_some() || cx.narrow.contains_key(&x) || from.size() != to.dtype.size() {
        return Err(malformed("types of other sizes have other bits"));
    }
    one(as_type(cx, x, to.dtype)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, int, text};
    use crate::interpret::Tensor;

    fn cast(to: i64, saturate: i64, mode: &str, x: &[f32]) -> Vec<f64> {
        let attributes = [int("to", to), int("saturate", saturate), text("round_mode", mode)];
        let model = Model::new(25).input("x", Tensor::from_f32(&[x.len()], x));
        model.node("Cast", &["x"], &["y"], &attributes).numbers()
    }

    #[test]
    fn numbers_of_few_bits_are_the_lowest_bits_and_the_nearest_floats() {
        let (int4, uint2, float4) = (22, 25, 23);
        assert_eq!(cast(int4, 1, "up", &[-9.0, -2.7, 7.9, 8.0]), [7.0, -2.0, 7.0, -8.0]);
        assert_eq!(cast(uint2, 1, "up", &[-1.0, 3.0, 4.0]), [3.0, 3.0, 0.0]);
        let found = cast(float4, 1, "up", &[0.25, 0.75, 2.5, 5.0, 99.0, -1.25, f32::NAN]);
        assert_eq!(found, [0.0, 1.0, 2.0, 4.0, 6.0, -1.0, 0.0]);
        assert!(found[6].is_sign_negative());
        let (float6, wide_float6) = (27, 28);
        assert_eq!(cast(float6, 1, "up", &[0.0625, 0.19, 1.0625, 99.0, -7.4]), [0.0, 0.25, 1.0, 7.5, -7.5]);
        assert_eq!(
            cast(wide_float6, 1, "up", &[0.04, 1.125, 25.9, 1e9, -0.2]),
            [0.0625, 1.0, 24.0, 28.0, -0.1875]
        );
    }

    #[test]
    fn floats_of_eight_bits_end_as_the_node_says() {
        let (e4m3, e5m2) = (17, 19);
        let large = [448.0, 464.0, 465.0, f32::NEG_INFINITY];
        assert_eq!(cast(e4m3, 1, "up", &large), [448.0, 448.0, 448.0, -448.0]);
        let open = cast(e4m3, 0, "up", &large);
        assert_eq!(open[..2], [448.0, 448.0]);
        assert!(open[2].is_nan() && open[3].is_nan());
        assert_eq!(cast(e5m2, 0, "up", &[1e6, -1e6]), [f64::INFINITY, f64::NEG_INFINITY]);
    }

    #[test]
    fn scales_are_powers_of_two_as_the_node_rounds() {
        let e8m0 = 24;
        let x = [1.1, 1.5, 3.0, 4.0];
        assert_eq!(cast(e8m0, 1, "up", &x), [2.0, 2.0, 4.0, 4.0]);
        assert_eq!(cast(e8m0, 1, "down", &x), [1.0, 1.0, 2.0, 4.0]);
        assert_eq!(cast(e8m0, 1, "nearest", &x), [1.0, 2.0, 4.0, 4.0]);
        assert_eq!(cast(e8m0, 1, "up", &[0.0, f32::INFINITY]), [0.5f64.powi(127), 2f64.powi(127)]);
        assert!(cast(e8m0, 0, "nearest", &[0.0, f32::INFINITY]).iter().all(|number| number.is_nan()));
    }
}
