//! Element types of ONNX, and what stores them.

use super::proto::tensor_proto::DataType;
use crate::dtype::DType;
use crate::float8::Float8;

/// An element type: what stores it, and what of that it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ElementType {
    /// What stores an element in memory.
    pub(super) dtype: DType,
    /// Where it has fewer numbers than that.
    pub(super) narrow: Option<Narrow>,
}

/// A type of fewer than eight bits. Files pack several into a byte; in memory each has a byte of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Narrow {
    /// Signed, of four bits.
    I4,
    /// Unsigned, of four bits.
    U4,
    /// Signed, of two bits.
    I2,
    /// Unsigned, of two bits.
    U2,
    /// A floating-point number of four bits: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives.
    F4,
    /// Of six bits, up to 7.5.
    F6E2M3,
    /// Of six bits, up to 28.
    F6E3M2,
}

/// The form of floating-point numbers without infinities and NaN.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SmallFloat {
    pub(super) exponent_bits: u32,
    pub(super) mantissa_bits: u32,
}

impl SmallFloat {
    /// The exponents of the least and the greatest numbers that have all digits.
    pub(super) fn exponents(self) -> (i32, i32) {
        let bias = (1 << (self.exponent_bits - 1)) - 1;
        (1 - bias, (1 << self.exponent_bits) - 1 - bias)
    }

    /// The greatest number.
    pub(super) fn largest(self) -> f64 {
        2f64.powi(self.exponents().1) * (2.0 - 0.5f64.powi(self.mantissa_bits as i32))
    }

    /// The number that bits stand for.
    pub(super) fn number(self, bits: u8) -> f64 {
        let mantissa = u32::from(bits) & ((1 << self.mantissa_bits) - 1);
        let exponent = (u32::from(bits) >> self.mantissa_bits) & ((1 << self.exponent_bits) - 1);
        let is_negative = bits >> (self.exponent_bits + self.mantissa_bits) & 1 == 1;
        let fraction = f64::from(mantissa) * 0.5f64.powi(self.mantissa_bits as i32);
        let least = self.exponents().0;
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(least),
            _ => (1.0 + fraction) * 2f64.powi(least - 1 + exponent as i32),
        };
        if is_negative { -magnitude } else { magnitude }
    }
}

impl Narrow {
    /// Bits of one element.
    pub(super) fn bits(self) -> usize {
        match self {
            Narrow::I4 | Narrow::U4 | Narrow::F4 => 4,
            Narrow::I2 | Narrow::U2 => 2,
            Narrow::F6E2M3 | Narrow::F6E3M2 => 6,
        }
    }

    /// The least and the greatest number.
    pub(super) fn range(self) -> (f64, f64) {
        match self {
            Narrow::I4 => (-8.0, 7.0),
            Narrow::U4 => (0.0, 15.0),
            Narrow::I2 => (-2.0, 1.0),
            Narrow::U2 => (0.0, 3.0),
            Narrow::F4 => (-6.0, 6.0),
            Narrow::F6E2M3 => (-7.5, 7.5),
            Narrow::F6E3M2 => (-28.0, 28.0),
        }
    }

    /// Its form, if it is a floating-point type.
    pub(super) fn float(self) -> Option<SmallFloat> {
        let (exponent_bits, mantissa_bits) = match self {
            Narrow::F4 => (2, 1),
            Narrow::F6E2M3 => (2, 3),
            Narrow::F6E3M2 => (3, 2),
            Narrow::I4 | Narrow::U4 | Narrow::I2 | Narrow::U2 => return None,
        };
        Some(SmallFloat { exponent_bits, mantissa_bits })
    }
}

impl From<DType> for ElementType {
    fn from(dtype: DType) -> ElementType {
        ElementType { dtype, narrow: None }
    }
}

/// The type of a number of the format.
pub(super) fn element_type(number: i32) -> Result<ElementType, String> {
    let known = DataType::try_from(number).map_err(|_| format!("element type {number} is unknown"))?;
    let narrow = |dtype, narrow| ElementType { dtype, narrow: Some(narrow) };
    Ok(match known {
        DataType::Float => DType::F32.into(),
        DataType::Uint8 => DType::U8.into(),
        DataType::Int8 => DType::I8.into(),
        DataType::Uint16 => DType::U16.into(),
        DataType::Int16 => DType::I16.into(),
        DataType::Int32 => DType::I32.into(),
        DataType::Int64 => DType::I64.into(),
        DataType::Bool => DType::Bool.into(),
        DataType::Float16 => DType::F16.into(),
        DataType::Double => DType::F64.into(),
        DataType::Uint32 => DType::U32.into(),
        DataType::Uint64 => DType::U64.into(),
        DataType::Bfloat16 => DType::Bf16.into(),
        DataType::Float8e4m3fn => DType::F8(Float8::E4M3Fn).into(),
        DataType::Float8e4m3fnuz => DType::F8(Float8::E4M3Fnuz).into(),
        DataType::Float8e5m2 => DType::F8(Float8::E5M2).into(),
        DataType::Float8e5m2fnuz => DType::F8(Float8::E5M2Fnuz).into(),
        DataType::Float8e8m0 => DType::F8(Float8::E8M0Fnu).into(),
        DataType::Int4 => narrow(DType::I8, Narrow::I4),
        DataType::Uint4 => narrow(DType::U8, Narrow::U4),
        DataType::Int2 => narrow(DType::I8, Narrow::I2),
        DataType::Uint2 => narrow(DType::U8, Narrow::U2),
        DataType::Float4e2m1 => narrow(DType::F8(Float8::E4M3Fn), Narrow::F4),
        DataType::Float6e2m3 => narrow(DType::F8(Float8::E4M3Fn), Narrow::F6E2M3),
        DataType::Float6e3m2 => narrow(DType::F8(Float8::E4M3Fn), Narrow::F6E3M2),
        DataType::Undefined | DataType::String | DataType::Complex64 | DataType::Complex128 => {
            return Err(format!("tensors of {} are not supported", known.as_str_name().to_lowercase()));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_floats_are_those_of_their_bits() {
        for (narrow, largest, least) in
            [(Narrow::F4, 6.0, 0.5), (Narrow::F6E2M3, 7.5, 0.125), (Narrow::F6E3M2, 28.0, 0.0625)]
        {
            let form = narrow.float().unwrap();
            let top = (1u8 << (narrow.bits() - 1)) - 1;
            assert_eq!((form.number(top), form.largest(), narrow.range().1), (largest, largest, largest));
            assert_eq!(form.number(1), least);
            let magnitudes: Vec<f64> = (0..=top).map(|bits| form.number(bits)).collect();
            assert!(magnitudes.is_sorted());
            for bits in 0..=top {
                let number = form.number(bits);
                // The type that stores it has it.
                let stored = Float8::E4M3Fn.from_f32(number as f32);
                assert_eq!(f64::from(Float8::E4M3Fn.to_f32(stored)), number);
                assert_eq!(form.number(bits | 1 << (narrow.bits() - 1)), -number);
            }
        }
    }
}
