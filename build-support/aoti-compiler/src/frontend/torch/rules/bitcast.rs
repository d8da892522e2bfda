//! Elements seen as the bits that they are: as another type, of the same size or not, and as one number for a whole tensor.
//!
//! Bits travel as integers. Those of types that are narrower than `f32` are made of its bits, which a conversion gives exactly.

use super::reduction::reduced;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Bits, IntBinary, ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;
type Value = Result<ValueId, RuleError>;

rules! {
    view "aten.view.dtype" => view_as_type,
    pure "aten.view_copy.dtype" => view_as_type,
    pure "aten.hash_tensor.default" => hash,
}

/// The signed integer type of so many bytes.
fn integer_of(bytes: usize) -> DType {
    match bytes {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    }
}

fn view_as_type(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let to = a.opt_dtype("dtype")?.unwrap_or(cx.b.dtype(x));
    Ok(as_type(cx, x, to)?.into())
}

/// The same bits as elements of another type; where its size differs, the last axis is shorter or longer.
pub(crate) fn as_type(cx: &mut Context, x: ValueId, to: DType) -> Value {
    let from = cx.b.dtype(x);
    if from == to {
        return Ok(x);
    }
    let bits = match cx.bits.get(&x) {
        Some(&bits) => bits,
        None => bits_of(cx, x)?,
    };
    let bits = match from.size().cmp(&to.size()) {
        std::cmp::Ordering::Equal => bits,
        std::cmp::Ordering::Greater => split(cx, bits, from.size(), to.size())?,
        std::cmp::Ordering::Less => joined(cx, bits, from.size(), to.size())?,
    };
    let result = of_bits(cx, bits, to)?;
    cx.bits.insert(result, bits);
    Ok(result)
}

/// The bits of elements, as the signed integer of their size.
fn bits_of(cx: &mut Context, x: ValueId) -> Value {
    let dtype = cx.b.dtype(x);
    let bits = match dtype {
        DType::F32 | DType::F64 => cx.unary(Bits::OfFloat, x),
        DType::Bf16 => {
            let wide = cx.b.cast(x, DType::F32);
            let bits = cx.unary(Bits::OfFloat, wide);
            cx.with_number(IntBinary::Shr, bits, 16i64)?
        }
        DType::F16 => bits_of_half(cx, x)?,
        DType::F8(_) => return Err(RuleError::unsupported(format!("the bits of {dtype}"))),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64 => x,
    };
    Ok(cx.b.cast(bits, integer_of(dtype.size())))
}

/// The elements that have these bits; integers keep their bits in conversions between types of one size.
fn of_bits(cx: &mut Context, bits: ValueId, to: DType) -> Value {
    match to {
        DType::F32 | DType::F64 => Ok(cx.unary(Bits::ToFloat, bits)),
        DType::Bf16 => {
            let wide = cx.b.cast(bits, DType::I32);
            let wide = cx.with_number(IntBinary::Shl, wide, 16i64)?;
            let number = cx.unary(Bits::ToFloat, wide);
            Ok(cx.b.cast(number, DType::Bf16))
        }
        DType::F16 => half_of_bits(cx, bits),
        DType::F8(_) => Err(RuleError::unsupported(format!("bits as {to}"))),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64 => Ok(cx.b.cast(bits, to)),
    }
}

/// Bits of `f16` in `i32`: the exponent of `f32` is greater by 112, its mantissa 13 bits longer. What is denormal there is
/// a whole number of its smallest steps.
fn bits_of_half(cx: &mut Context, x: ValueId) -> Value {
    let wide = cx.b.cast(x, DType::F32);
    let bits = cx.unary(Bits::OfFloat, wide);
    let steps = cx.apply([wide], DType::F32, |[x]| x.abs() * 2f64.powi(24))?;
    let steps = cx.b.cast(steps, DType::I32);
    let sign = cx.with_number(IntBinary::Shr, bits, 16i64)?;
    let sign = cx.with_number(IntBinary::And, sign, 0x8000i64)?;
    let size = cx.with_number(IntBinary::And, bits, 0x7fff_ffffi64)?;
    let short = cx.with_number(IntBinary::Shr, size, 13i64)?;
    let normal = cx.with_number(BinaryOp::Sub, short, 112i64 << 10)?;
    let mantissa = cx.with_number(IntBinary::And, short, 0x3ffi64)?;
    let special = cx.with_number(IntBinary::Or, mantissa, 0x7c00i64)?;
    let is_special = cx.with_number(Relation::Ge, size, 0x7f80_0000i64)?;
    let is_normal = cx.with_number(Relation::Ge, size, 113i64 << 23)?;
    let finite = cx.b.select(is_normal, normal, steps)?;
    let size = cx.b.select(is_special, special, finite)?;
    cx.binary(IntBinary::Or, size, sign)
}

/// The inverse: a product puts the exponent right, denormal numbers included.
fn half_of_bits(cx: &mut Context, bits: ValueId) -> Value {
    let bits = cx.b.cast(bits, DType::I32);
    let size = cx.with_number(IntBinary::And, bits, 0x7fffi64)?;
    let long = cx.with_number(IntBinary::Shl, size, 13i64)?;
    let special = cx.with_number(IntBinary::Or, long, 0x7f80_0000i64)?;
    let (finite, special) = (cx.unary(Bits::ToFloat, long), cx.unary(Bits::ToFloat, special));
    let finite = cx.apply([finite], DType::F32, |[x]| x * 2f64.powi(112))?;
    let is_special = cx.with_number(Relation::Ge, size, 0x7c00i64)?;
    let size = cx.b.select(is_special, special, finite)?;
    let sign = cx.with_number(IntBinary::And, bits, 0x8000i64)?;
    let is_negative = cx.with_number(Relation::Ne, sign, 0i64)?;
    let negative = cx.apply([size], DType::F32, |[x]| -x)?;
    let number = cx.b.select(is_negative, negative, size)?;
    Ok(cx.b.cast(number, DType::F16))
}

/// Each integer as several smaller ones, the lowest bits first: the last axis is as many times as long.
fn split(cx: &mut Context, bits: ValueId, from: usize, to: usize) -> Value {
    let rank = cx.b.rank(bits);
    let wide = cx.b.cast(bits, DType::I64);
    let mut pieces = Vec::new();
    for piece in 0..from / to {
        let bits = cx.with_number(IntBinary::Shr, wide, (8 * to * piece) as i64)?;
        let bits = cx.b.cast(bits, integer_of(to));
        pieces.push(cx.b.unsqueeze(bits, rank)?);
    }
    let last = rank.checked_sub(1).ok_or_else(|| RuleError::Malformed("there is no last axis".to_owned()))?;
    let all = cx.b.cat(&pieces, rank)?;
    cx.merge_axes(all, last, rank + 1)
}

/// The inverse: neighbours along the last axis make one integer.
fn joined(cx: &mut Context, bits: ValueId, from: usize, to: usize) -> Value {
    let times = to / from;
    let rank = cx.b.rank(bits);
    let last = rank.checked_sub(1).ok_or_else(|| RuleError::Malformed("there is no last axis".to_owned()))?;
    let length = cx.b.shape(bits)[last].clone();
    let groups = length.floor_div_in(&Expr::int(times as i64), cx.b.ranges());
    let wide = cx.b.cast(bits, DType::I64);
    let wide = cx.with_number(IntBinary::And, wide, (1i64 << (8 * from)) - 1)?;
    let wide = cx.split_axis(wide, last, &[groups, Expr::int(times as i64)])?;
    let mut all = None;
    for piece in 0..times {
        let own = cx.b.pick(wide, rank, &Expr::int(piece as i64))?;
        let own = cx.with_number(IntBinary::Shl, own, (8 * from * piece) as i64)?;
        all = Some(match all {
            Some(all) => cx.binary(IntBinary::Or, all, own)?,
            None => own,
        });
    }
    let all = all.ok_or_else(|| RuleError::Malformed("no element is so small".to_owned()))?;
    Ok(cx.b.cast(all, integer_of(to)))
}

/// The exclusive or of all elements: of floating-point numbers, of their bits in `f64`.
fn hash(cx: &mut Context, a: &Args) -> Rule {
    let mode = a.int_or("mode", 0)?;
    if mode != 0 {
        return Err(RuleError::unsupported(format!("mode {mode}")));
    }
    let x = a.tensor("self")?;
    let (axes, keeps) = reduced(cx, a, x)?;
    let bits = if cx.b.dtype(x).is_float() {
        let wide = cx.b.cast(x, DType::F64);
        cx.unary(Bits::OfFloat, wide)
    } else {
        cx.b.cast(x, DType::I64)
    };
    let all = cx.b.reduce(ReduceOp::Xor, bits, &axes, keeps)?;
    Ok(cx.b.cast(all, DType::U64).into())
}
