//! Element types: their names, sizes and how two of them promote to a common one.
//!
//! Knows nothing of tensors or operators.

use crate::float8::Float8;
use crate::halves::{Bf16, F16};
use crate::json::{FromJson, Malformed, ToJson, Value};
use std::fmt;

/// The element type of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned 8-bit integer.
    U8,
    /// Signed 8-bit integer.
    I8,
    /// Signed 16-bit integer.
    I16,
    /// Signed 32-bit integer.
    I32,
    /// Signed 64-bit integer.
    I64,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary64.
    F64,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 64-bit integer.
    U64,
    /// A floating-point number of one byte.
    F8(Float8),
}

/// What kind of number a [`DType`] holds; orders PyTorch's promotion lattice.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Category {
    /// Truth values.
    Bool,
    /// Integers.
    Int,
    /// Floating-point numbers.
    Float,
}

/// What a floating-point type can hold.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Limits {
    /// The distance from 1 to the next number.
    pub epsilon: f64,
    /// The largest finite number.
    pub largest: f64,
}

impl DType {
    /// Every element type, in the order of the C interface's numbering.
    pub const ALL: [DType; 18] = [
        DType::Bool,
        DType::U8,
        DType::I8,
        DType::I16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::Bf16,
        DType::F32,
        DType::F64,
        DType::U16,
        DType::U32,
        DType::U64,
        DType::F8(Float8::E4M3Fn),
        DType::F8(Float8::E5M2),
        DType::F8(Float8::E4M3Fnuz),
        DType::F8(Float8::E5M2Fnuz),
        DType::F8(Float8::E8M0Fnu),
    ];

    /// Its number in the C interface.
    pub fn code(self) -> usize {
        DType::ALL.iter().position(|dtype| *dtype == self).expect("every element type is listed")
    }

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 | DType::F8(_) => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::Bf16 => 2,
            DType::I32 | DType::U32 | DType::F32 => 4,
            DType::I64 | DType::U64 | DType::F64 => 8,
        }
    }

    /// The name used in text forms and generated code: `f32`, `i64`, `bool`.
    pub fn name(self) -> &'static str {
        match self {
            DType::Bool => "bool",
            DType::U8 => "u8",
            DType::I8 => "i8",
            DType::I16 => "i16",
            DType::I32 => "i32",
            DType::I64 => "i64",
            DType::F16 => "f16",
            DType::Bf16 => "bf16",
            DType::F32 => "f32",
            DType::F64 => "f64",
            DType::U16 => "u16",
            DType::U32 => "u32",
            DType::U64 => "u64",
            DType::F8(format) => format.name(),
        }
    }

    /// The inverse of [`DType::name`].
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Whether every number of another type is one of its own.
    pub fn holds_all(self, narrow: DType) -> bool {
        use DType::*;
        match narrow {
            Bool => true,
            U8 => !matches!(self, Bool | I8 | F8(_)),
            I8 => matches!(self, I8 | I16 | I32 | I64 | F16 | Bf16 | F32 | F64),
            I16 => matches!(self, I16 | I32 | I64 | F32 | F64),
            I32 => matches!(self, I32 | I64 | F64),
            I64 => self == I64,
            U16 => matches!(self, U16 | U32 | U64 | I32 | I64 | F32 | F64),
            U32 => matches!(self, U32 | U64 | I64 | F64),
            U64 => self == U64,
            F8(_) => self == narrow || matches!(self, Bf16 | F32 | F64),
            F16 => matches!(self, F16 | F32 | F64),
            Bf16 => matches!(self, Bf16 | F32 | F64),
            F32 => matches!(self, F32 | F64),
            F64 => self == F64,
        }
    }

    /// Whether numbers of another type take fewer bytes and are all its own.
    pub fn widens(self, narrow: DType) -> bool {
        narrow.size() < self.size() && self.holds_all(narrow)
    }

    /// Whether it holds truth values, integers or floating-point numbers.
    pub fn category(self) -> Category {
        match self {
            DType::Bool => Category::Bool,
            DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U16
            | DType::U32
            | DType::U64 => Category::Int,
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 | DType::F8(_) => Category::Float,
        }
    }

    /// Whether it is a floating-point type.
    pub fn is_float(self) -> bool {
        self.category() == Category::Float
    }

    /// Whether it is `f16` or `bf16`: stored in two bytes, computed in `f32`.
    pub fn is_half(self) -> bool {
        matches!(self, DType::F16 | DType::Bf16)
    }

    /// Whether it is a floating-point type for storage: one that is computed in `f32`.
    pub fn is_narrow(self) -> bool {
        self.is_half() || matches!(self, DType::F8(_))
    }

    /// The type that arithmetic on this one is done in: `f32` for narrow types, else the type itself.
    pub fn compute(self) -> DType {
        if self.is_narrow() { DType::F32 } else { self }
    }

    /// What a floating-point type can hold; `None` for others.
    pub fn limits(self) -> Option<Limits> {
        let (epsilon, largest) = match self {
            DType::F16 => (F16::EPSILON, F16::max().into()),
            DType::Bf16 => (Bf16::EPSILON, Bf16::max().into()),
            DType::F32 => (f64::from(f32::EPSILON), f64::from(f32::MAX)),
            DType::F64 => (f64::EPSILON, f64::MAX),
            DType::F8(format) => (format.epsilon(), format.largest().into()),
            DType::Bool
            | DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U16
            | DType::U32
            | DType::U64 => return None,
        };
        Some(Limits { epsilon, largest })
    }

    /// The common type of two tensors of equal standing, as `torch.promote_types` gives it: none where PyTorch has none.
    pub fn promote(self, other: DType) -> Result<DType, NotPromoted> {
        use DType::*;
        if self == other {
            return Ok(self);
        }
        let (low, high) = if self.category() <= other.category() { (self, other) } else { (other, self) };
        let alone = |dtype| match dtype {
            F8(_) => true,
            U16 | U32 | U64 => !high.is_float(),
            Bool | U8 | I8 | I16 | I32 | I64 | F16 | Bf16 | F32 | F64 => false,
        };
        if alone(low) || alone(high) {
            return Err(NotPromoted(self, other));
        }
        Ok(match (low.category(), high.category()) {
            (Category::Bool, _) | (Category::Int, Category::Float) => high,
            (Category::Float, _) => match (low, high) {
                (F64, _) | (_, F64) => F64,
                (F32, _) | (_, F32) => F32,
                // f16 with bf16: neither holds the other.
                _ => F32,
            },
            (Category::Int, _) => match (low, high) {
                // u8 with a signed type: the next wider signed type that holds both.
                (U8, I8) | (I8, U8) => I16,
                _ => {
                    if low.size() > high.size() {
                        low
                    } else {
                        high
                    }
                }
            },
        })
    }
}

/// Elements one after the other, each as it is stored.
pub(crate) fn bytes_of<T: Copy, const N: usize>(values: &[T], element: &dyn Fn(T) -> [u8; N]) -> Vec<u8> {
    let mut data = Vec::with_capacity(N * values.len());
    for value in values {
        data.extend_from_slice(&element(*value));
    }
    data
}

/// Two element types that PyTorch gives no common one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NotPromoted(DType, DType);

impl fmt::Display for NotPromoted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let NotPromoted(inner, second) = self;
        write!(f, "elements of {inner} and {second} have no common type: convert one of them first")
    }
}

impl std::error::Error for NotPromoted {}

impl FromJson for DType {
    fn from_json(value: Value) -> Result<DType, Malformed> {
        let found = value.as_str().and_then(DType::from_name);
        found.ok_or_else(|| Malformed::unexpected(&value, "the name of an element type"))
    }
}

impl ToJson for DType {
    fn to_json(&self) -> Value {
        Value::from(self.name())
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::DType::*;
    use crate::float8::Float8;

    #[test]
    fn promotion_matches_torch() {
        assert_eq!(U8.promote(I8), Ok(I16));
        assert_eq!(F16.promote(Bf16), Ok(F32));
        assert_eq!(I64.promote(F16), Ok(F16));
        assert_eq!(Bool.promote(I8), Ok(I8));
        assert_eq!(I32.promote(I64), Ok(I64));
        assert_eq!(U8.promote(I64), Ok(I64));
        assert_eq!(U32.promote(F16), Ok(F16));
    }

    #[test]
    fn types_without_a_common_one_are_not_promoted() {
        let [fp8, other] = [F8(Float8::E4M3Fn), F8(Float8::E5M2)];
        for (a, b) in [
            (U16, U32),
            (Bool, U64),
            (U16, U8),
            (I64, U32),
            (fp8, other),
            (fp8, F32),
            (U16, fp8),
            (Bool, fp8),
        ] {
            assert!(a.promote(b).is_err() && b.promote(a).is_err(), "{a} {b}");
        }
    }
}
