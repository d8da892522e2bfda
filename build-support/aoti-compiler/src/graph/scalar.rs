//! Constants of one element.

use crate::dtype::DType;
use std::fmt;
use std::hash::{Hash, Hasher};

/// A constant scalar. Floats compare by bits, so that NaN equals itself and -0 differs from 0.
#[derive(Clone, Copy, Debug)]
pub enum Scalar {
    /// A truth value.
    Bool(bool),
    /// An integer: of `i64`, or of `u64`.
    Int(i128),
    /// A floating-point number.
    Float(f64),
}

impl Scalar {
    /// The smallest number of a type: negative infinity where there is one.
    pub fn lowest(dtype: DType) -> Scalar {
        match dtype {
            DType::Bool => Scalar::Bool(false),
            DType::U8 | DType::U16 | DType::U32 | DType::U64 => Scalar::Int(0),
            DType::I8 => Scalar::Int(i8::MIN.into()),
            DType::I16 => Scalar::Int(i16::MIN.into()),
            DType::I32 => Scalar::Int(i32::MIN.into()),
            DType::I64 => Scalar::Int(i64::MIN.into()),
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => Scalar::Float(f64::NEG_INFINITY),
            DType::F8(format) => Scalar::Float(format.lowest().into()),
        }
    }

    /// The largest number of a type: infinity where there is one.
    pub fn highest(dtype: DType) -> Scalar {
        match dtype {
            DType::Bool => Scalar::Bool(true),
            DType::U8 => Scalar::Int(u8::MAX.into()),
            DType::I8 => Scalar::Int(i8::MAX.into()),
            DType::I16 => Scalar::Int(i16::MAX.into()),
            DType::I32 => Scalar::Int(i32::MAX.into()),
            DType::I64 => Scalar::Int(i64::MAX.into()),
            DType::U16 => Scalar::Int(u16::MAX.into()),
            DType::U32 => Scalar::Int(u32::MAX.into()),
            DType::U64 => Scalar::Int(u64::MAX.into()),
            DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => Scalar::Float(f64::INFINITY),
            DType::F8(format) => Scalar::Float(format.highest().into()),
        }
    }

    /// As a floating-point number.
    pub fn to_f64(self) -> f64 {
        match self {
            Scalar::Bool(value) => f64::from(u8::from(value)),
            Scalar::Int(value) => value as f64,
            Scalar::Float(value) => value,
        }
    }

    /// As an integer, rounding towards zero; of one of `u64` alone, the number with its bits.
    pub fn to_i64(self) -> i64 {
        match self {
            Scalar::Bool(value) => i64::from(value),
            Scalar::Int(value) => value as i64,
            Scalar::Float(value) => value as i64,
        }
    }

    /// As a number of `u64`, rounding towards zero and wrapping.
    pub fn to_u64(self) -> u64 {
        match self {
            Scalar::Bool(value) => u64::from(value),
            Scalar::Int(value) => value as u64,
            Scalar::Float(value) => value as i128 as u64,
        }
    }

    /// As a truth value: anything but zero is true.
    pub fn to_bool(self) -> bool {
        match self {
            Scalar::Bool(value) => value,
            Scalar::Int(value) => value != 0,
            Scalar::Float(value) => value != 0.0,
        }
    }

    /// The same number as the category of `dtype` holds it, wrapped or rounded to that type.
    pub fn cast(self, dtype: DType) -> Scalar {
        match dtype {
            DType::Bool => Scalar::Bool(self.to_bool()),
            DType::U8 => Scalar::Int((self.to_i64() as u8).into()),
            DType::I8 => Scalar::Int((self.to_i64() as i8).into()),
            DType::I16 => Scalar::Int((self.to_i64() as i16).into()),
            DType::I32 => Scalar::Int((self.to_i64() as i32).into()),
            DType::I64 => Scalar::Int(self.to_i64().into()),
            DType::U16 => Scalar::Int((self.to_i64() as u16).into()),
            DType::U32 => Scalar::Int((self.to_i64() as u32).into()),
            DType::U64 => Scalar::Int(self.to_u64().into()),
            DType::F16 => Scalar::Float(f64::from(crate::halves::F16::from_f64(self.to_f64()).to_f32())),
            DType::Bf16 => Scalar::Float(f64::from(crate::halves::Bf16::from_f64(self.to_f64()).to_f32())),
            DType::F32 => Scalar::Float(f64::from(self.to_f64() as f32)),
            DType::F64 => Scalar::Float(self.to_f64()),
            DType::F8(format) => Scalar::Float(format.to_f32(format.from_f64(self.to_f64())).into()),
        }
    }

    fn key(self) -> (u8, i128) {
        match self {
            Scalar::Bool(value) => (0, value.into()),
            Scalar::Int(value) => (1, value),
            Scalar::Float(value) => (2, value.to_bits().into()),
        }
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Scalar) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Scalar {}

impl Hash for Scalar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

impl From<bool> for Scalar {
    fn from(value: bool) -> Scalar {
        Scalar::Bool(value)
    }
}

impl From<i64> for Scalar {
    fn from(value: i64) -> Scalar {
        Scalar::Int(value.into())
    }
}

impl From<f64> for Scalar {
    fn from(value: f64) -> Scalar {
        Scalar::Float(value)
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Bool(value) => write!(f, "{value}"),
            Scalar::Int(value) => write!(f, "{value}"),
            Scalar::Float(value) => write!(f, "{value:?}"),
        }
    }
}
