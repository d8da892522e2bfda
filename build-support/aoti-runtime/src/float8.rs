//! Elements of one byte as Rust types: a code, its number and back.
//!
//! Knows nothing of tensors. They are for storage; arithmetic is for wider types.

use std::cmp::Ordering;
use std::fmt;

/// What a format has beyond ordinary numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Infinities and NaN in the largest exponent.
    Infinite,
    /// NaN as the largest magnitude.
    Finite,
    /// NaN in the place of negative zero.
    UnsignedZero,
}

/// How a byte with a sign is split.
struct Format {
    mantissa: u32,
    bias: i32,
    ends: Ends,
}

impl Format {
    /// The code of infinity, where there is one.
    const fn infinity(&self) -> u32 {
        ((1 << (7 - self.mantissa)) - 1) << self.mantissa
    }

    /// The mantissa moves to where `f32` has it, and a product rebiases the exponent, denormal numbers included.
    fn to_f32(&self, code: u8) -> f32 {
        let magnitude = u32::from(code & 0x7f);
        let nan = match self.ends {
            Ends::Infinite => magnitude > self.infinity(),
            Ends::Finite => magnitude == 0x7f,
            Ends::UnsignedZero => code == 0x80,
        };
        let number = if nan {
            f32::NAN
        } else if self.ends == Ends::Infinite && magnitude == self.infinity() {
            f32::INFINITY
        } else {
            f32::from_bits(magnitude << (23 - self.mantissa)) * 2f32.powi(127 - self.bias)
        };
        if code < 0x80 { number } else { -number }
    }

    /// The nearest number's code, the even of two.
    fn code(&self, value: f32) -> u8 {
        let magnitude = value.abs().to_bits();
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let shift = 23 - self.mantissa;
        let code = if magnitude < ((128 - self.bias) as u32) << 23 {
            // Below the smallest normal number: adding one whose last place is ours rounds to it.
            let unit = ((151 - self.bias - self.mantissa as i32) as u32) << 23;
            (f32::from_bits(magnitude) + f32::from_bits(unit)).to_bits() - unit
        } else {
            let odd = (magnitude >> shift) & 1;
            (magnitude - (((127 - self.bias) as u32) << 23) + (1 << (shift - 1)) - 1 + odd) >> shift
        };
        match self.ends {
            Ends::Infinite if value.is_nan() => sign | 0x7f,
            Ends::Infinite => sign | code.min(self.infinity()) as u8,
            Ends::Finite if value.is_nan() => sign | 0x7f,
            Ends::Finite => sign | code.min(0x7e) as u8,
            Ends::UnsignedZero if code > 0x7f => 0x80,
            Ends::UnsignedZero if code == 0 => 0,
            Ends::UnsignedZero => sign | code as u8,
        }
    }
}

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident $to:expr, $from:expr;)*) => {$(
        $(#[$doc])*
        #[expect(non_camel_case_types, reason = "a number, named as numbers are")]
        #[derive(Clone, Copy, Default)]
        #[repr(transparent)]
        pub struct $name(u8);

        impl $name {
            /// The number of a code.
            pub const fn from_bits(bits: u8) -> Self {
                Self(bits)
            }

            /// Its code.
            pub const fn to_bits(self) -> u8 {
                self.0
            }

            /// The nearest number, the even of two. What is too large becomes infinite; where there is no infinity, NaN, but
            /// the largest number of `f8e4m3fn`.
            pub fn from_f32(value: f32) -> Self {
                Self($from(value))
            }

            /// The same number.
            pub fn to_f32(self) -> f32 {
                $to(self.0)
            }
        }

        impl From<$name> for f32 {
            fn from(value: $name) -> f32 {
                value.to_f32()
            }
        }

        impl From<$name> for f64 {
            fn from(value: $name) -> f64 {
                value.to_f32().into()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.to_f32() == other.to_f32()
            }
        }

        impl PartialOrd for $name {
            fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
                self.to_f32().partial_cmp(&other.to_f32())
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Debug::fmt(&self.to_f32(), f)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.to_f32(), f)
            }
        }
    )*};
}

const E4M3FN: Format = Format { mantissa: 3, bias: 7, ends: Ends::Finite };
const E5M2: Format = Format { mantissa: 2, bias: 15, ends: Ends::Infinite };
const E4M3FNUZ: Format = Format { mantissa: 3, bias: 8, ends: Ends::UnsignedZero };
const E5M2FNUZ: Format = Format { mantissa: 2, bias: 16, ends: Ends::UnsignedZero };

types! {
    /// `float8_e4m3fn`: 4 bits of exponent, 3 of mantissa, no infinity; up to 448.
    f8e4m3fn |code| E4M3FN.to_f32(code), |value| E4M3FN.code(value);
    /// `float8_e5m2`: 5 bits of exponent, 2 of mantissa; up to 57,344.
    f8e5m2 |code| E5M2.to_f32(code), |value| E5M2.code(value);
    /// `float8_e4m3fnuz`: as `f8e4m3fn`, but without negative zero; up to 240.
    f8e4m3fnuz |code| E4M3FNUZ.to_f32(code), |value| E4M3FNUZ.code(value);
    /// `float8_e5m2fnuz`: as `f8e5m2`, but with neither infinity nor negative zero; up to 57,344.
    f8e5m2fnuz |code| E5M2FNUZ.to_f32(code), |value| E5M2FNUZ.code(value);
    /// `float8_e8m0fnu`: powers of two from 2^-127 to 2^127, for scales. It has no zero.
    f8e8m0fnu power_of_two, nearest_power;
}

fn power_of_two(code: u8) -> f32 {
    match code {
        // The only one that is denormal.
        0 => f32::from_bits(0x0040_0000),
        u8::MAX => f32::NAN,
        exponent => f32::from_bits(u32::from(exponent) << 23),
    }
}

/// Of two, the larger, but where the number is denormal; the sign is lost.
fn nearest_power(value: f32) -> u8 {
    let magnitude = value.abs().to_bits();
    let (exponent, rest) = ((magnitude >> 23) as u8, magnitude & 0x007f_ffff);
    let up = exponent != u8::MAX && (rest > 0x0040_0000 || (rest == 0x0040_0000 && exponent > 0));
    exponent + u8::from(up)
}
