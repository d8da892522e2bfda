//! The element types of two bytes, converted by bits: the same on every machine, and one crate less that build scripts
//! compile. Knows nothing of tensors.

/// IEEE binary16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct F16(u16);

/// The upper half of IEEE binary32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bf16(u16);

macro_rules! conversions {
    ($name:ident, $exponent:literal, $mantissa:literal) => {
        impl $name {
            /// The distance from 1 to the next number.
            pub const EPSILON: f64 = 1.0 / (1u32 << $mantissa) as f64;

            /// The largest number.
            pub fn max() -> f32 {
                // One below infinity.
                widen((((1 << $exponent) - 1) << $mantissa) - 1, $exponent, $mantissa)
            }

            /// From its bytes.
            pub fn from_le_bytes(bytes: [u8; 2]) -> Self {
                Self(u16::from_le_bytes(bytes))
            }

            /// Its bytes.
            pub fn to_le_bytes(self) -> [u8; 2] {
                self.0.to_le_bytes()
            }

            /// The nearest one, the even of two.
            pub fn from_f32(value: f32) -> Self {
                Self(round(value.into(), $exponent, $mantissa))
            }

            /// By way of `f32`, and so rounded twice, as PyTorch does it.
            pub fn from_f64(value: f64) -> Self {
                Self::from_f32(value as f32)
            }

            /// The same number.
            pub fn to_f32(self) -> f32 {
                widen(self.0, $exponent, $mantissa)
            }
        }
    };
}

conversions!(F16, 5, 10);
conversions!(Bf16, 8, 7);

/// The bits of the nearest number with so many bits of exponent and mantissa, behind a sign.
fn round(value: f64, exponent_bits: u32, mantissa_bits: u32) -> u16 {
    const STORED: u32 = f64::MANTISSA_DIGITS - 1;
    let bits = value.to_bits();
    let sign = ((bits >> 63) as u16) << 15;
    let infinity = ((1u64 << exponent_bits) - 1) << mantissa_bits;
    let mantissa = bits & ((1 << STORED) - 1);
    if value.is_nan() {
        // Quiet, with what there is room for of its mantissa.
        let kept = (mantissa >> (STORED - mantissa_bits)) | (1 << (mantissa_bits - 1));
        return sign | (infinity | kept) as u16;
    }
    let bias = (1i64 << (exponent_bits - 1)) - 1;
    let exponent = ((bits >> STORED) & 0x7ff) as i64 - 1023 + bias;
    if exponent >= (1 << exponent_bits) - 1 {
        return sign | infinity as u16;
    }
    // Below the smallest normal number, the mantissa moves down instead of the exponent.
    let shift = i64::from(STORED - mantissa_bits) + (1 - exponent).max(0);
    if shift > i64::from(STORED) + 1 {
        return sign;
    }
    let significand = mantissa | (1 << STORED);
    let (kept, rest, half) = (significand >> shift, significand & ((1 << shift) - 1), 1u64 << (shift - 1));
    let rounded = kept + u64::from(rest > half || (rest == half && kept & 1 == 1));
    // The leading one of a normal number adds to the exponent, as does what rounding carries over.
    let below = (exponent - 1).max(0) as u64;
    sign | ((below << mantissa_bits) + rounded) as u16
}

/// The same number in more bits. NaNs become quiet.
fn widen(bits: u16, exponent_bits: u32, mantissa_bits: u32) -> f32 {
    const STORED: u32 = f32::MANTISSA_DIGITS - 1;
    let sign = u32::from(bits >> 15) << 31;
    let exponent = u32::from(bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
    let mantissa = u32::from(bits) & ((1 << mantissa_bits) - 1);
    let widened = mantissa << (STORED - mantissa_bits);
    let bias = (1i32 << (exponent_bits - 1)) - 1;
    if exponent == (1 << exponent_bits) - 1 {
        let quiet = if mantissa == 0 { 0 } else { 1 << (STORED - 1) };
        return f32::from_bits(sign | f32::INFINITY.to_bits() | widened | quiet);
    }
    if exponent == 0 {
        // A multiple of the smallest number. Where the exponents are those of f32, so are the bits.
        let unit =
            f64::from_bits(((1023 + 1 - bias - mantissa_bits as i32) as u64) << (f64::MANTISSA_DIGITS - 1));
        let magnitude = (f64::from(mantissa) * unit) as f32;
        return f32::from_bits(sign | magnitude.to_bits());
    }
    f32::from_bits(sign | ((exponent as i32 - bias + 127) as u32) << STORED | widened)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_of_them_widen_as_the_reference_says() {
        for bits in 0..=u16::MAX {
            let (f, b) = (F16(bits).to_f32().to_bits(), Bf16(bits).to_f32().to_bits());
            assert_eq!(f, half::f16::from_bits(bits).to_f32_const().to_bits(), "{bits:#x}");
            assert_eq!(b, half::bf16::from_bits(bits).to_f32_const().to_bits(), "{bits:#x}");
        }
    }

    #[test]
    fn numbers_of_f32_round_as_the_reference_says() {
        // Every exponent with mantissas about the ties of both types.
        let mut state = 1u32;
        for top in 0..=0xffff_u32 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            for low in [0, 1, 0x7fff, 0x8000, 0x8001, 0xffff, state >> 16, 0x1000, 0xfff, 0x1001, 0x3000] {
                let value = f32::from_bits(top << 16 | low);
                let (f, b) = (F16::from_f32(value).0, Bf16::from_f32(value).0);
                assert_eq!(f, half::f16::from_f32_const(value).to_bits(), "{value:e} {:#x}", value.to_bits());
                assert_eq!(
                    b,
                    half::bf16::from_f32_const(value).to_bits(),
                    "{value:e} {:#x}",
                    value.to_bits()
                );
            }
        }
    }

    /// The values are PyTorch's.
    #[test]
    fn numbers_of_f64_round_by_way_of_f32() {
        // Just above a tie, by less than an f32 can tell.
        assert_eq!(F16::from_f64(1.0 + 2f64.powi(-11) + 2f64.powi(-40)).to_f32(), 1.0);
        assert_eq!(Bf16::from_f64(1.0 + 2f64.powi(-8) + 2f64.powi(-40)).to_f32(), 1.0);
        assert_eq!(F16::from_f64(65_519.999_999).to_f32(), f32::INFINITY);
        assert_eq!(F16::from_f64(-65520.0).to_f32(), f32::NEG_INFINITY);
        assert_eq!(F16::from_f64(2f64.powi(-25)).0, 0);
        assert_eq!(F16::from_f64(2f64.powi(-25) * 1.000_001).0, 1);
        assert_eq!((Bf16::from_f64(1e300).to_f32(), Bf16::from_f64(-1e-300).0), (f32::INFINITY, 0x8000));
    }
}
