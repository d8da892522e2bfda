//! Comparisons, logic and bits.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::elementwise::{arithmetic, operands};
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::graph::{IntBinary, Relation, Scalar, UnaryOp};

operators! { "";
    "Equal" => |cx, c| compare(cx, c, Relation::Eq),
    "Less" => |cx, c| compare(cx, c, Relation::Lt),
    "LessOrEqual" => |cx, c| compare(cx, c, Relation::Le),
    "Greater" => |cx, c| compare(cx, c, Relation::Gt),
    "GreaterOrEqual" => |cx, c| compare(cx, c, Relation::Ge),
    "And" => |cx, c| arithmetic(cx, c, IntBinary::And),
    "Or" => |cx, c| arithmetic(cx, c, IntBinary::Or),
    "Xor" => |cx, c| arithmetic(cx, c, IntBinary::Xor),
    "Not" => not,
    "BitwiseAnd" => |cx, c| arithmetic(cx, c, IntBinary::And),
    "BitwiseOr" => |cx, c| arithmetic(cx, c, IntBinary::Or),
    "BitwiseXor" => |cx, c| arithmetic(cx, c, IntBinary::Xor),
    "BitwiseNot" => not,
    "BitShift" => shift,
    "Where" => choose,
}

fn compare(cx: &mut Onnx, c: &Call, relation: Relation) -> Rule {
    let (a, b) = operands(cx, c)?;
    one(cx.b.binary(relation, a, b)?)
}

fn not(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    one(cx.b.unary(UnaryOp::Not, x))
}

/// Shifts by the number of bits or more, or by less than none, leave nothing but the sign of what goes to the right.
fn shift(cx: &mut Onnx, c: &Call) -> Rule {
    let (a, b) = operands(cx, c)?;
    let dtype = cx.b.dtype(a);
    let op = match c.text("direction", "")? {
        "LEFT" => IntBinary::Shl,
        "RIGHT" => IntBinary::Shr,
        other => return Err(malformed(format!("direction `{other}` is neither `LEFT` nor `RIGHT`"))),
    };
    let bits = i64::try_from(8 * dtype.size()).expect("few bits");
    let last = cx.b.full(bits - 1, dtype, &[]);
    let zero = cx.b.full(0i64, dtype, &[]);
    let below = cx.b.binary(Relation::Le, b, last)?;
    let above = cx.b.binary(Relation::Ge, b, zero)?;
    let within = cx.b.binary(IntBinary::And, below, above)?;
    let amount = cx.b.select(within, b, if op == IntBinary::Shr { last } else { zero })?;
    let shifted = cx.b.binary(op, a, amount)?;
    if op == IntBinary::Shr && Scalar::lowest(dtype).to_i64() < 0 {
        // The last bit that is left is the sign.
        return one(shifted);
    }
    one(cx.b.select(within, shifted, zero)?)
}

fn choose(cx: &mut Onnx, c: &Call) -> Rule {
    let condition = cx.b.cast(c.tensor(0)?, DType::Bool);
    one(cx.b.select(condition, c.tensor(1)?, c.tensor(2)?)?)
}
