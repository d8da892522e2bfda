//! Conversions between element types.

use super::super::call::{Call, malformed};
use super::super::torch::Given;
use super::super::types::{ElementType, Narrow, element_type};
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::aten::Arg;
use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, FloatBinary, ValueId};
use crate::transform::decompose::{Formula, RuleError};

operators! { "";
    "Cast" => cast,
    "CastLike" => cast_like,
    "BitCast" => bit_cast,
}

/// How numbers beyond the range of a type of eight bits become it, and which way numbers between two of it go.
#[derive(Clone, Copy)]
struct Manner {
    saturate: bool,
}

fn cast(cx: &mut Onnx, c: &Call) -> Rule {
    let to = c.opt_int("to")?.and_then(|to| i32::try_from(to).ok());
    let to = to.ok_or_else(|| malformed("attribute `to` is missing"))?;
    let to = element_type(to).map_err(malformed)?;
    let manner = Manner { saturate: c.flag("saturate", true)? };
    let x = c.tensor(0)?;
    one(converted(cx, x, to, manner)?)
}

fn cast_like(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, like) = (c.tensor(0)?, c.tensor(1)?);
    let to = ElementType { dtype: cx.b.dtype(like), narrow: cx.narrow.get(&like).copied() };
    let manner = Manner { saturate: c.flag("saturate", true)? };
    one(converted(cx, x, to, manner)?)
}

impl Onnx<'_> {
    /// A value of another element type, as `Cast` converts it.
    pub(super) fn converted(&mut self, x: ValueId, to: ElementType) -> Result<ValueId, RuleError> {
        converted(self, x, to, Manner { saturate: true })
    }
}

fn converted(cx: &mut Onnx, x: ValueId, to: ElementType, manner: Manner) -> Result<ValueId, RuleError> {
    let from = cx.b.dtype(x);
    if from == to.dtype && cx.narrow.get(&x).copied() == to.narrow {
        return Ok(x);
    }
    if let Some(narrow) = to.narrow {
        let value = narrowed(cx, x, narrow, to.dtype)?;
        // A view of its own, so that the type of what it was made of stays what it is.
        cx.narrow.insert(value, narrow);
        return Ok(value);
    }
    if let (DType::F8(_), true, true) = (to.dtype, manner.saturate, from.is_float()) {
        return saturated(cx, x, to.dtype);
    }
    Ok(cx.b.cast(x, to.dtype))
}

/// Finite numbers and infinities become the nearest finite one; NaN stays.
fn saturated(cx: &mut Onnx, x: ValueId, dtype: DType) -> Result<ValueId, RuleError> {
    let DType::F8(format) = dtype else { return Ok(cx.b.cast(x, dtype)) };
    let compute = cx.b.dtype(x).compute();
    let wide = cx.b.cast(x, compute);
    let largest = f64::from(format.largest());
    let clamped = Formula::from(wide).max(-largest).min(largest);
    let clamped = cx.formula(compute, &clamped)?;
    Ok(cx.b.cast(clamped, dtype))
}

/// Of floats the nearest number of four or two bits; of integers their lowest bits.
fn narrowed(cx: &mut Onnx, x: ValueId, narrow: Narrow, storage: DType) -> Result<ValueId, RuleError> {
    let from = cx.b.dtype(x);
    let (low, high) = narrow.range();
    if narrow == Narrow::F4 {
        let wide = cx.b.cast(x, if from.is_float() { from.compute() } else { DType::F32 });
        return f4(cx, wide, storage);
    }
    if from.category() == Category::Float {
        let wide = cx.b.cast(x, from.compute());
        let rounded = Formula::from(wide).round().max(low).min(high);
        let rounded = cx.formula(from.compute(), &rounded)?;
        return Ok(cx.b.cast(rounded, storage));
    }
    // Modulo two to the number of bits.
    let wide = cx.b.cast(x, DType::I64);
    let count = 1i64 << narrow.bits();
    let offset = low as i64;
    let shifted = cx.with_number(BinaryOp::Sub, wide, offset)?;
    let wrapped = cx.with_number(BinaryOp::Remainder, shifted, count)?;
    let value = cx.with_number(BinaryOp::Add, wrapped, offset)?;
    let value = cx.b.cast(value, storage);
    Ok(value)
}

/// The nearest of the numbers of four bits, the even one of two.
fn f4(cx: &mut Onnx, x: ValueId, storage: DType) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let magnitude = Formula::from(x).abs();
    // Steps are 0.5 below 2, 1 below 4, 2 above.
    let step = |size: f64| (&magnitude * (1.0 / size)).round() * size;
    let nearest = magnitude.lt(2.0).select(step(0.5), magnitude.lt(4.0).select(step(1.0), step(2.0)));
    let nearest = nearest.min(6.0);
    let value = cx.formula(dtype, &nearest)?;
    let value = cx.b.binary(FloatBinary::CopySign, value, x)?;
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
    let dtype = Given::Other(Arg::DType(to.dtype));
    one(cx.torch1("aten.view.dtype", &[("self", x.into()), ("dtype", dtype)])?)
}
