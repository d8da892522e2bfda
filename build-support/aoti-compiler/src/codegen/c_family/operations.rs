//! Functions of terms as C++ on lanes, the headers that have them, and accumulators.

use super::terms::{lane_type, type_name};
use crate::codegen::headers::Header;
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, FloatBinary, FloatTest, IntBinary, ReduceOp, Relation, UnaryOp};
use crate::loops::{Accumulator, Kernel, Term};

/// The type of an accumulator of `width` lanes.
pub(in crate::codegen) fn accumulator_type(accumulator: &Accumulator, width: &str) -> String {
    // Booleans are masks: their sum and maximum is "any", their product and minimum is "all".
    if accumulator.dtype == DType::Bool {
        return match accumulator.op {
            ReduceOp::Sum | ReduceOp::Max | ReduceOp::Any => format!("AnyAccumulator<{width}>"),
            ReduceOp::Prod | ReduceOp::Min | ReduceOp::All => format!("AllAccumulator<{width}>"),
            ReduceOp::Xor => format!("ParityAccumulator<{width}>"),
            ReduceOp::ArgMax => format!("ArgAccumulator<i32, {width}, true>"),
            ReduceOp::ArgMin => format!("ArgAccumulator<i32, {width}, false>"),
        };
    }
    let element = lane_type(accumulator.dtype);
    match accumulator.op {
        ReduceOp::Sum => format!("SumAccumulator<{element}, {width}>"),
        ReduceOp::Prod => format!("ProdAccumulator<{element}, {width}>"),
        ReduceOp::Max => format!("MaxAccumulator<{element}, {width}>"),
        ReduceOp::Min => format!("MinAccumulator<{element}, {width}>"),
        ReduceOp::ArgMax => format!("ArgAccumulator<{element}, {width}, true>"),
        ReduceOp::ArgMin => format!("ArgAccumulator<{element}, {width}, false>"),
        ReduceOp::Any => format!("AnyAccumulator<{width}>"),
        ReduceOp::All => format!("AllAccumulator<{width}>"),
        ReduceOp::Xor => format!("XorAccumulator<{element}, {width}>"),
    }
}

pub(super) fn combined(combine: Combine, old: &str, new: &str, dtype: DType) -> String {
    match combine {
        Combine::Set => new.to_owned(),
        Combine::Add => binary(BinaryOp::Add, old, new, dtype),
        Combine::Mul => binary(BinaryOp::Mul, old, new, dtype),
        Combine::Max => binary(BinaryOp::Maximum, old, new, dtype),
        Combine::Min => binary(BinaryOp::Minimum, old, new, dtype),
    }
}

/// The header of the function that a term calls, where every kernel does not have it.
fn header_of(term: &Term) -> Option<Header> {
    match term {
        Term::Unary(UnaryOp::Special(_), _)
        | Term::Binary(
            BinaryOp::Special(_) | BinaryOp::Float(FloatBinary::NextAfter) | BinaryOp::Int(IntBinary::Gcd),
            ..,
        ) => Some(Header::SPECIAL),
        Term::Binary(BinaryOp::Int(IntBinary::Philox), ..) => Some(Header::RANDOM),
        Term::Unary(..)
        | Term::Binary(..)
        | Term::Literal(_)
        | Term::Index(_)
        | Term::Load { .. }
        | Term::Select(..)
        | Term::Cast(_)
        | Term::Inside(_)
        | Term::CheckIndex { .. }
        | Term::Accumulated(_)
        | Term::Earlier { .. }
        | Term::Sum => None,
    }
}

/// The headers of the functions that a kernel's terms call, beside those that every kernel has.
pub(in crate::codegen) fn headers_of_terms(kernel: &Kernel) -> impl Iterator<Item = Header> {
    kernel.stages().flat_map(|stage| &stage.terms).filter_map(|typed| header_of(&typed.term))
}

pub(super) fn cast(value: &str, from: DType, to: DType) -> String {
    if from == to || (from.is_narrow() && to == DType::F32) {
        value.to_owned()
    } else {
        format!("cast<{}>({value})", type_name(to))
    }
}

pub(super) fn unary(op: UnaryOp, a: &str, dtype: DType) -> String {
    match op {
        UnaryOp::Neg => format!("-{a}"),
        UnaryOp::Not => format!("~{a}"),
        UnaryOp::Bits(_) => format!("bits_as<{}>({a})", lane_type(op.result(dtype))),
        // Integers are never NaN or infinite, and their sign bit is a comparison.
        UnaryOp::Test(FloatTest::IsNan | FloatTest::IsInf) if !dtype.is_float() => format!("no_lanes({a})"),
        UnaryOp::Test(FloatTest::SignBit) if !dtype.is_float() => format!("{a} < {}(0)", lane_type(dtype)),
        // Every other function is named in the headers as in the table.
        UnaryOp::Abs | UnaryOp::Sign | UnaryOp::Round(_) | UnaryOp::Test(_) | UnaryOp::Float(_) => {
            format!("{}({a})", op.name())
        }
        UnaryOp::Special(_) => format!("special::{}({a})", op.name()),
    }
}

pub(super) fn binary(op: BinaryOp, a: &str, b: &str, dtype: DType) -> String {
    let (is_bool, is_float) = (dtype == DType::Bool, dtype.is_float());
    let infix = match op {
        BinaryOp::Add | BinaryOp::Maximum | BinaryOp::Fmax if is_bool => "|",
        BinaryOp::Mul | BinaryOp::Minimum | BinaryOp::Fmin if is_bool => "&",
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Float(FloatBinary::Div) => "/",
        BinaryOp::Int(IntBinary::And) => "&",
        BinaryOp::Int(IntBinary::Or) => "|",
        BinaryOp::Int(IntBinary::Xor) => "^",
        BinaryOp::Int(IntBinary::Shl) => "<<",
        BinaryOp::Int(IntBinary::Shr) => ">>",
        BinaryOp::Compare(relation) => match relation {
            Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge if is_bool => {
                return format!("cast<i32>({a}) {} cast<i32>({b})", relation.sign());
            }
            Relation::Eq | Relation::Ne | Relation::Lt | Relation::Le | Relation::Gt | Relation::Ge => {
                relation.sign()
            }
        },
        BinaryOp::Fmax if !is_float => return format!("maximum({a}, {b})"),
        BinaryOp::Fmin if !is_float => return format!("minimum({a}, {b})"),
        BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::Remainder
        | BinaryOp::Fmod
        | BinaryOp::Pow
        | BinaryOp::Int(IntBinary::Philox)
        | BinaryOp::Maximum
        | BinaryOp::Minimum
        | BinaryOp::Fmax
        | BinaryOp::Fmin
        | BinaryOp::Float(FloatBinary::Atan2 | FloatBinary::Hypot | FloatBinary::CopySign) => {
            return format!("{}({a}, {b})", op.name());
        }
        BinaryOp::Float(FloatBinary::NextAfter) | BinaryOp::Int(IntBinary::Gcd) | BinaryOp::Special(_) => {
            return format!("special::{}({a}, {b})", op.name());
        }
    };
    format!("{a} {infix} {b}")
}
