//! The floating-point types of one byte: what each code means, and to which code a number rounds.
//!
//! They differ in how the byte is split and in what takes the place of infinities, so there is one table and one
//! algorithm. Knows nothing of tensors.

/// A way to keep a floating-point number in a byte, by the name of its fields: bits of exponent and mantissa; `Fn` has no
/// infinity, `uz` no negative zero, `u` no sign.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Float8 {
    /// No infinity; NaN where all bits but the sign are set.
    E4M3Fn,
    /// As IEEE 754 would have it.
    E5M2,
    /// Neither infinity nor negative zero, whose place NaN takes.
    E4M3Fnuz,
    /// Neither infinity nor negative zero, whose place NaN takes.
    E5M2Fnuz,
    /// Powers of two, for scales.
    E8M0Fnu,
}

/// What a format has beyond ordinary numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Infinities and NaN in the largest exponent.
    Infinite,
    /// NaN as the largest magnitude.
    Finite,
    /// NaN in the place of negative zero.
    UnsignedZero,
    /// No sign and no zero: every code but the last is a power of two.
    Powers,
}

struct Layout {
    name: &'static str,
    exponent: u32,
    mantissa: u32,
    bias: i32,
    ends: Ends,
}

impl Float8 {
    const fn layout(self) -> Layout {
        let (name, exponent, mantissa, bias, ends) = match self {
            Float8::E4M3Fn => ("f8e4m3fn", 4, 3, 7, Ends::Finite),
            Float8::E5M2 => ("f8e5m2", 5, 2, 15, Ends::Infinite),
            Float8::E4M3Fnuz => ("f8e4m3fnuz", 4, 3, 8, Ends::UnsignedZero),
            Float8::E5M2Fnuz => ("f8e5m2fnuz", 5, 2, 16, Ends::UnsignedZero),
            Float8::E8M0Fnu => ("f8e8m0fnu", 8, 0, 127, Ends::Powers),
        };
        Layout { name, exponent, mantissa, bias, ends }
    }

    /// The name in text forms and generated code.
    pub fn name(self) -> &'static str {
        self.layout().name
    }

    /// The distance from 1 to the next number.
    pub fn epsilon(self) -> f64 {
        1.0 / f64::from(1u32 << self.layout().mantissa)
    }

    /// The largest finite number.
    pub fn largest(self) -> f32 {
        let Layout { exponent, mantissa, ends, .. } = self.layout();
        self.to_f32(match ends {
            // One below infinity.
            Ends::Infinite => (((1 << exponent) - 1) << mantissa) - 1,
            Ends::Finite => 0x7e,
            Ends::UnsignedZero => 0x7f,
            Ends::Powers => 0xfe,
        })
    }

    /// The number that none is below: negative infinity where there is one.
    pub fn lowest(self) -> f32 {
        match self.layout().ends {
            Ends::Infinite => f32::NEG_INFINITY,
            Ends::Finite | Ends::UnsignedZero => -self.largest(),
            Ends::Powers => self.to_f32(0),
        }
    }

    /// The number that none is above: infinity where there is one.
    pub fn highest(self) -> f32 {
        match self.layout().ends {
            Ends::Infinite => f32::INFINITY,
            Ends::Finite | Ends::UnsignedZero | Ends::Powers => self.largest(),
        }
    }

    /// The number of a code.
    pub fn to_f32(self, code: u8) -> f32 {
        let Layout { exponent, mantissa, bias, ends, .. } = self.layout();
        let bits = if ends == Ends::Powers { code } else { code & 0x7f };
        let sign = if bits == code { 1.0 } else { -1.0 };
        let field = i32::from(bits >> mantissa);
        let rest = f64::from(bits) - f64::from(field) * f64::from(1u32 << mantissa);
        let infinite = ends == Ends::Infinite && field == (1 << exponent) - 1;
        let nan = match ends {
            Ends::Infinite => infinite && rest != 0.0,
            Ends::Finite => bits == 0x7f,
            Ends::UnsignedZero => code == 0x80,
            Ends::Powers => code == 0xff,
        };
        if nan {
            return f32::NAN.copysign(sign);
        }
        if infinite {
            return sign * f32::INFINITY;
        }
        let fraction = rest * self.epsilon();
        let (leading, power) = match ends {
            Ends::Powers => (1.0, field - bias),
            // Below the smallest normal number, the exponent stays.
            Ends::Infinite | Ends::Finite | Ends::UnsignedZero if field == 0 => (0.0, 1 - bias),
            Ends::Infinite | Ends::Finite | Ends::UnsignedZero => (1.0, field - bias),
        };
        sign * ((leading + fraction) * 2f64.powi(power)) as f32
    }

    /// The code of the nearest number, the even of two. What is too large becomes infinite; where there is no infinity, NaN,
    /// but the largest number of `E4M3Fn`: as PyTorch has it.
    pub fn from_f32(self, value: f32) -> u8 {
        let Layout { exponent, mantissa, ends, .. } = self.layout();
        let sign = if value.is_sign_negative() { 0x80 } else { 0 };
        let code = self.rounded(value);
        match ends {
            Ends::Powers => nearest_power(value),
            Ends::Infinite if value.is_nan() => sign | 0x7f,
            Ends::Infinite => sign | code.min(((1 << exponent) - 1) << mantissa) as u8,
            Ends::Finite if value.is_nan() => sign | 0x7f,
            Ends::Finite => sign | code.min(0x7e) as u8,
            Ends::UnsignedZero if code >= 0x80 => 0x80,
            Ends::UnsignedZero if code == 0 => 0,
            Ends::UnsignedZero => sign | code as u8,
        }
    }

    /// The code of the nearest magnitude if there were no end to the codes.
    fn rounded(self, value: f32) -> u32 {
        const STORED: u32 = f32::MANTISSA_DIGITS - 1;
        if !value.is_finite() {
            return u32::MAX;
        }
        let Layout { mantissa, bias, .. } = self.layout();
        let magnitude = value.abs().to_bits();
        let field = (magnitude >> STORED) as i32 - 127 + bias;
        // Below the smallest normal number, the mantissa moves down instead of the exponent.
        let shift = (STORED - mantissa + (1 - field).max(0) as u32).min(STORED + 2);
        let leading = u32::from(magnitude >> STORED != 0) << STORED;
        let significand = magnitude & ((1 << STORED) - 1) | leading;
        let (kept, rest, half) = (significand >> shift, significand & ((1 << shift) - 1), 1 << (shift - 1));
        let rounded = kept + u32::from(rest > half || (rest == half && kept & 1 == 1));
        // The leading one of a normal number adds to the exponent, as does what rounding carries over.
        (((field - 1).max(0) as u32) << mantissa) + rounded
    }

    /// By way of `f32`, and so rounded twice, as PyTorch does it.
    pub fn from_f64(self, value: f64) -> u8 {
        self.from_f32(value as f32)
    }
}

/// The exponent of the nearest power of two, whatever the sign; of two, the larger, but where the number is denormal.
fn nearest_power(value: f32) -> u8 {
    let magnitude = value.abs().to_bits();
    let (field, rest) = ((magnitude >> 23) as u8, magnitude & 0x007f_ffff);
    let up = field != u8::MAX && (rest > 0x0040_0000 || (rest == 0x0040_0000 && field > 0));
    field + u8::from(up)
}
