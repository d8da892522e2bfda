//! What is known of a value's elements: bounds on their magnitude and on how far two right computations may differ.
//!
//! Inputs are small multiples of 1/4, so sums and products of a few of them are exact in floating point, and must be
//! equal to the last bit however they are computed. Where they are not, the first-order error bound is carried along.

use aoti_compiler::dtype::DType;

/// Of every element of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Accuracy {
    /// Bound on the magnitude.
    pub(crate) size: f64,
    /// Bound on the difference; 0: bit for bit.
    pub(crate) error: f64,
    /// Elements are multiples of `2^-digits`; only of exact ones.
    pub(crate) digits: i32,
    /// The function is as accurate as it is documented to be, which says little: compared loosely, not used further.
    pub(crate) last: bool,
}

/// Rounding error of one operation on numbers of magnitude 1, with room for functions of a few units.
pub(crate) fn rounding(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-9),
        DType::Bf16 => 2f64.powi(-6),
        DType::F32 => 2f64.powi(-21),
        DType::F64 => 2f64.powi(-48),
        DType::F8(format) => 8.0 * format.epsilon(),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64 => 0.0,
    }
}

fn mantissa(dtype: DType) -> i32 {
    match dtype {
        DType::F16 => 11,
        DType::Bf16 => 8,
        DType::F32 => 24,
        DType::F8(format) => (2.0 / format.epsilon()).log2() as i32,
        DType::F64
        | DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64 => 53,
    }
}

impl Accuracy {
    /// Exact multiples of `2^-digits`.
    pub(crate) fn exact(size: f64, digits: i32) -> Accuracy {
        Accuracy { size, error: 0.0, digits, last: false }
    }

    /// Documented accuracy only.
    pub(crate) fn last() -> Accuracy {
        Accuracy { size: f64::INFINITY, error: f64::INFINITY, digits: 0, last: true }
    }

    /// Whether equal to the last bit.
    pub(crate) fn is_exact(self) -> bool {
        self.error == 0.0 && !self.last
    }

    /// Whether it can be computed with further: neither overflow nor noise.
    pub(crate) fn is_usable(self, dtype: DType) -> bool {
        let most = if dtype == DType::F16 { 2000.0 } else { 1e6 };
        !self.last && (!dtype.is_float() || (self.size < most && self.error <= 0.05 * self.size.max(1.0)))
    }

    /// A result of this magnitude from operands whose errors and digits have been joined.
    pub(crate) fn rounded(self, dtype: DType) -> Accuracy {
        if !dtype.is_float() {
            return Accuracy::exact(self.size.min(wrap(dtype)), 0);
        }
        let fits = self.size.max(1e-30).log2().ceil() as i32 + self.digits < mantissa(dtype);
        if self.error == 0.0 && fits {
            return self;
        }
        Accuracy { error: self.error + rounding(dtype) * self.size, ..self }
    }

    /// A sum.
    pub(crate) fn plus(self, other: Accuracy, dtype: DType) -> Accuracy {
        Accuracy {
            size: self.size + other.size,
            error: self.error + other.error,
            digits: self.digits.max(other.digits),
            last: false,
        }
        .rounded(dtype)
    }

    /// A product.
    pub(crate) fn times(self, other: Accuracy, dtype: DType) -> Accuracy {
        Accuracy {
            size: self.size * other.size,
            error: self.error * other.size + other.error * self.size,
            digits: self.digits + other.digits,
            last: false,
        }
        .rounded(dtype)
    }

    /// A sum of `count` of them. Partial sums of half types may be rounded or not.
    pub(crate) fn summed(self, count: f64, dtype: DType) -> Accuracy {
        let count = count.max(1.0);
        let sum = Accuracy { size: self.size * count, error: self.error * count, ..self }.rounded(dtype);
        if sum.error > 0.0 { Accuracy { error: sum.error * count.sqrt().max(1.0), ..sum } } else { sum }
    }

    /// One of the two.
    pub(crate) fn either(self, other: Accuracy) -> Accuracy {
        Accuracy {
            size: self.size.max(other.size),
            error: self.error.max(other.error),
            digits: self.digits.max(other.digits),
            last: self.last || other.last,
        }
    }

    /// A function with values of magnitude at most `size` and slope of at most 1.2.
    pub(crate) fn through(self, size: f64, dtype: DType) -> Accuracy {
        Accuracy { size, error: 1.2 * self.error + rounding(dtype) * size.max(1.0), digits: 0, last: false }
    }
}

/// Bound on what an integer type holds.
pub(crate) fn wrap(dtype: DType) -> f64 {
    match dtype {
        DType::Bool => 1.0,
        DType::U8 | DType::I8 => 256.0,
        DType::I16 | DType::U16 => 65536.0,
        DType::I32 | DType::U32 => 4294967296.0,
        DType::I64 | DType::U64 | DType::F8(_) | DType::F16 | DType::Bf16 | DType::F32 | DType::F64 => 1e19,
    }
}
