//! Element types at run time, and the Rust types that stand for them.

use crate::complex::Complex;
use crate::ffi::abi;
use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu};
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
    /// A floating-point number of one byte, [`f8e4m3fn`].
    F8E4M3Fn,
    /// [`f8e5m2`].
    F8E5M2,
    /// [`f8e4m3fnuz`].
    F8E4M3Fnuz,
    /// [`f8e5m2fnuz`].
    F8E5M2Fnuz,
    /// [`f8e8m0fnu`].
    F8E8M0Fnu,
    /// A complex number of two `f16`.
    C32,
    /// A complex number of two `f32`.
    C64,
    /// A complex number of two `f64`.
    C128,
}

/// Every element type beside its number in the C interface and its name.
const TABLE: [(DType, abi::AotiDType, &str); 21] = [
    (DType::Bool, abi::AOTI_BOOL, "bool"),
    (DType::U8, abi::AOTI_U8, "u8"),
    (DType::I8, abi::AOTI_I8, "i8"),
    (DType::I16, abi::AOTI_I16, "i16"),
    (DType::I32, abi::AOTI_I32, "i32"),
    (DType::I64, abi::AOTI_I64, "i64"),
    (DType::F16, abi::AOTI_F16, "f16"),
    (DType::Bf16, abi::AOTI_BF16, "bf16"),
    (DType::F32, abi::AOTI_F32, "f32"),
    (DType::F64, abi::AOTI_F64, "f64"),
    (DType::U16, abi::AOTI_U16, "u16"),
    (DType::U32, abi::AOTI_U32, "u32"),
    (DType::U64, abi::AOTI_U64, "u64"),
    (DType::F8E4M3Fn, abi::AOTI_F8E4M3FN, "f8e4m3fn"),
    (DType::F8E5M2, abi::AOTI_F8E5M2, "f8e5m2"),
    (DType::F8E4M3Fnuz, abi::AOTI_F8E4M3FNUZ, "f8e4m3fnuz"),
    (DType::F8E5M2Fnuz, abi::AOTI_F8E5M2FNUZ, "f8e5m2fnuz"),
    (DType::F8E8M0Fnu, abi::AOTI_F8E8M0FNU, "f8e8m0fnu"),
    (DType::C32, abi::AOTI_C32, "c32"),
    (DType::C64, abi::AOTI_C64, "c64"),
    (DType::C128, abi::AOTI_C128, "c128"),
];

impl DType {
    /// Bytes of one element.
    pub const fn size(self) -> usize {
        match self {
            DType::Bool | DType::U8 | DType::I8 => 1,
            DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E8M0Fnu => 1,
            DType::I16 | DType::U16 | DType::F16 | DType::Bf16 => 2,
            DType::I32 | DType::U32 | DType::F32 | DType::C32 => 4,
            DType::I64 | DType::U64 | DType::F64 | DType::C64 => 8,
            DType::C128 => 16,
        }
    }

    /// The type of a complex number's parts; `None` of numbers that are not complex.
    pub const fn part(self) -> Option<DType> {
        match self {
            DType::C32 => Some(DType::F16),
            DType::C64 => Some(DType::F32),
            DType::C128 => Some(DType::F64),
            DType::Bool
            | DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::F16
            | DType::Bf16
            | DType::F32
            | DType::F64
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::F8E4M3Fn
            | DType::F8E5M2
            | DType::F8E4M3Fnuz
            | DType::F8E5M2Fnuz
            | DType::F8E8M0Fnu => None,
        }
    }

    /// Whether it is a floating-point type.
    pub const fn is_float(self) -> bool {
        match self {
            DType::F16
            | DType::Bf16
            | DType::F32
            | DType::F64
            | DType::F8E4M3Fn
            | DType::F8E5M2
            | DType::F8E4M3Fnuz
            | DType::F8E5M2Fnuz
            | DType::F8E8M0Fnu => true,
            DType::Bool
            | DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::C32
            | DType::C64
            | DType::C128 => false,
        }
    }

    /// The short name: `f32`, `i64`, `bool`.
    pub const fn name(self) -> &'static str {
        TABLE[self as usize].2
    }

    /// The inverse of [`DType::name`].
    pub fn from_name(name: &str) -> Option<DType> {
        TABLE.iter().find(|row| row.2 == name).map(|row| row.0)
    }

    /// Its number in the C interface.
    pub const fn code(self) -> i32 {
        TABLE[self as usize].1 as i32
    }

    /// The inverse of [`DType::code`].
    pub fn from_code(code: i32) -> Option<DType> {
        TABLE.iter().find(|row| row.1 as i32 == code).map(|row| row.0)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A Rust type that is the element of a tensor. Sealed: aligned memory is handed out as slices of these types, which
/// is sound only for the list below.
pub trait Element: sealed::Sealed + Copy + Default + PartialEq + fmt::Debug + Send + Sync + 'static {
    /// The element type that this Rust type stands for; of the same size and layout.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident,)*) => {$(
        impl sealed::Sealed for $type {}
        impl Element for $type {
            const DTYPE: DType = DType::$dtype;
        }
        const _: () = assert!(size_of::<$type>() == DType::$dtype.size());
    )*};
}

elements! {
    bool => Bool,
    u8 => U8,
    i8 => I8,
    i16 => I16,
    i32 => I32,
    i64 => I64,
    f32 => F32,
    f64 => F64,
    u16 => U16,
    u32 => U32,
    u64 => U64,
    f8e4m3fn => F8E4M3Fn,
    f8e5m2 => F8E5M2,
    f8e4m3fnuz => F8E4M3Fnuz,
    f8e5m2fnuz => F8E5M2Fnuz,
    f8e8m0fnu => F8E8M0Fnu,
    Complex<f32> => C64,
    Complex<f64> => C128,
}

#[cfg(feature = "half")]
elements! {
    half::f16 => F16,
    half::bf16 => Bf16,
    Complex<half::f16> => C32,
}

#[cfg(feature = "num-complex")]
elements! {
    num_complex::Complex<f32> => C64,
    num_complex::Complex<f64> => C128,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_round_trip() {
        for (index, (dtype, code, name)) in TABLE.into_iter().enumerate() {
            assert_eq!(dtype as usize, index);
            assert_eq!(DType::from_code(code as i32), Some(dtype));
            assert_eq!(DType::from_name(name), Some(dtype));
            assert_eq!((dtype.code(), dtype.name()), (code as i32, name));
        }
        assert_eq!(DType::from_code(99), None);
        assert_eq!(DType::from_name("f8"), None);
    }
}
