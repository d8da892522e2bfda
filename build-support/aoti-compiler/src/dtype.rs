//! Element types: their names, sizes and how two of them promote to a common one.
//!
//! Knows nothing of tensors or operators.

use crate::halves::{Bf16, F16};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The element type of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[repr(u8)]
pub enum DType {
    /// One byte, 0 or 1.
    Bool = 0,
    /// Unsigned 8-bit integer.
    U8 = 1,
    /// Signed 8-bit integer.
    I8 = 2,
    /// Signed 16-bit integer.
    I16 = 3,
    /// Signed 32-bit integer.
    I32 = 4,
    /// Signed 64-bit integer.
    I64 = 5,
    /// IEEE 754 binary16.
    F16 = 6,
    /// bfloat16.
    Bf16 = 7,
    /// IEEE 754 binary32.
    F32 = 8,
    /// IEEE 754 binary64.
    F64 = 9,
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
    pub const ALL: [DType; 10] = [
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
    ];

    /// Bytes of one element.
    pub fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::I16 | DType::F16 | DType::Bf16 => 2,
            DType::I32 | DType::F32 => 4,
            DType::I64 | DType::F64 => 8,
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
        }
    }

    /// The inverse of [`DType::name`].
    pub fn from_name(name: &str) -> Option<DType> {
        DType::ALL.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Whether it holds truth values, integers or floating-point numbers.
    pub fn category(self) -> Category {
        match self {
            DType::Bool => Category::Bool,
            DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => Category::Int,
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => Category::Float,
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

    /// The type that arithmetic on this one is done in: `f32` for half types, else the type itself.
    pub fn compute(self) -> DType {
        if self.is_half() { DType::F32 } else { self }
    }

    /// What a floating-point type can hold; `None` for others.
    pub fn limits(self) -> Option<Limits> {
        let (epsilon, largest) = match self {
            DType::F16 => (F16::EPSILON, F16::max().into()),
            DType::Bf16 => (Bf16::EPSILON, Bf16::max().into()),
            DType::F32 => (f64::from(f32::EPSILON), f64::from(f32::MAX)),
            DType::F64 => (f64::EPSILON, f64::MAX),
            DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => return None,
        };
        Some(Limits { epsilon, largest })
    }

    /// The common type of two tensors of equal standing, as `torch.promote_types` gives it.
    pub fn promote(self, other: DType) -> DType {
        use DType::*;
        if self == other {
            return self;
        }
        let (low, high) = if self.category() <= other.category() { (self, other) } else { (other, self) };
        match (low.category(), high.category()) {
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
        }
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

    #[test]
    fn promotion_matches_torch() {
        assert_eq!(U8.promote(I8), I16);
        assert_eq!(F16.promote(Bf16), F32);
        assert_eq!(I64.promote(F16), F16);
        assert_eq!(Bool.promote(I8), I8);
        assert_eq!(I32.promote(I64), I64);
        assert_eq!(U8.promote(I64), I64);
    }
}
