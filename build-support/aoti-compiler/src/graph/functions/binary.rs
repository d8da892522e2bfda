//! Functions of two numbers, in families by what they are functions of.

use crate::dtype::DType;

families! {
    /// Functions of two numbers of one type. Integers wrap around; division of integers by zero gives 0.
    BinaryOp {
        /// Sum; for booleans, or.
        Add "add",
        /// Difference.
        Sub "sub",
        /// Product; for booleans, and.
        Mul "mul",
        /// Quotient rounded down (`torch.floor_divide`).
        FloorDiv "floor_div",
        /// Quotient rounded towards zero.
        TruncDiv "trunc_div",
        /// Remainder with the sign of the divisor.
        Remainder "remainder",
        /// Remainder with the sign of the dividend.
        Fmod "fmod",
        /// Power; integers with a negative exponent as PyTorch: 0 unless the base is 1 or -1.
        Pow "pow",
        /// Larger; NaN if either is NaN.
        Maximum "maximum",
        /// Smaller; NaN if either is NaN.
        Minimum "minimum",
        /// Larger; the other if one is NaN.
        Fmax "fmax",
        /// Smaller; the other if one is NaN.
        Fmin "fmin",
    } of {
        /// Of any numbers; the result is a truth value.
        Compare(Relation),
        /// Of integers and booleans.
        Int(IntBinary),
        /// Of floating-point numbers.
        Float(FloatBinary),
        /// Of floating-point numbers.
        Special(SpecialBinary),
    }
}

table! {
    /// Comparisons of two numbers, and of two sizes.
    Relation {
        /// Equal.
        Eq "eq",
        /// Not equal; true for NaN.
        Ne "ne",
        /// Less.
        Lt "lt",
        /// Less or equal.
        Le "le",
        /// Greater.
        Gt "gt",
        /// Greater or equal.
        Ge "ge",
    }
}

table! {
    /// Functions of two integers or booleans.
    IntBinary {
        /// Bitwise and; logical for booleans.
        And "bit_and",
        /// Bitwise or; logical for booleans.
        Or "bit_or",
        /// Bitwise exclusive or; logical for booleans.
        Xor "bit_xor",
        /// Shift left; 0 where the amount is negative or not below the width.
        Shl "shl",
        /// Arithmetic shift right; the sign where the amount is negative or not below the width.
        Shr "shr",
        /// Greatest common divisor.
        Gcd "gcd",
        /// 64 random bits: the first two words of Philox 4x32-10 (Salmon et al. 2011) of the counter (first), whose upper
        /// half is zero, under the key (second).
        Philox "philox",
    }
}

table! {
    /// Elementary functions of two floating-point numbers.
    FloatBinary {
        /// Quotient of floating-point numbers.
        Div "div",
        /// Angle of the point (second, first).
        Atan2 "atan2",
        /// Square root of the sum of squares.
        Hypot "hypot",
        /// Magnitude of the first, sign of the second.
        CopySign "copysign",
        /// Next representable number after the first towards the second.
        NextAfter "nextafter",
    }
}

table! {
    /// Special functions of two floating-point numbers.
    SpecialBinary {
        /// Regularised lower incomplete gamma function.
        Igamma "igamma",
        /// Regularised upper incomplete gamma function.
        Igammac "igammac",
        /// Hurwitz zeta function.
        Zeta "zeta",
        /// `polygamma(n, x)`: derivative of order n (first operand) of digamma.
        Polygamma "polygamma",
        /// Chebyshev polynomial of the first kind of x (first) and degree n (second).
        ChebyshevT "chebyshev_polynomial_t",
        /// Second kind.
        ChebyshevU "chebyshev_polynomial_u",
        /// Third kind.
        ChebyshevV "chebyshev_polynomial_v",
        /// Fourth kind.
        ChebyshevW "chebyshev_polynomial_w",
        /// Shifted, first kind.
        ShiftedChebyshevT "shifted_chebyshev_polynomial_t",
        /// Shifted, second kind.
        ShiftedChebyshevU "shifted_chebyshev_polynomial_u",
        /// Shifted, third kind.
        ShiftedChebyshevV "shifted_chebyshev_polynomial_v",
        /// Shifted, fourth kind.
        ShiftedChebyshevW "shifted_chebyshev_polynomial_w",
        /// Physicist's Hermite polynomial.
        HermiteH "hermite_polynomial_h",
        /// Probabilist's Hermite polynomial.
        HermiteHe "hermite_polynomial_he",
        /// Laguerre polynomial.
        LaguerreL "laguerre_polynomial_l",
        /// Legendre polynomial.
        LegendreP "legendre_polynomial_p",
    }
}

impl BinaryOp {
    /// Whether an element takes much longer than an addition.
    pub fn takes_long(self) -> bool {
        match self {
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Maximum
            | BinaryOp::Minimum
            | BinaryOp::Fmax
            | BinaryOp::Fmin
            | BinaryOp::Compare(_) => false,
            BinaryOp::FloorDiv
            | BinaryOp::TruncDiv
            | BinaryOp::Remainder
            | BinaryOp::Fmod
            | BinaryOp::Pow
            | BinaryOp::Special(_) => true,
            BinaryOp::Int(op) => matches!(op, IntBinary::Gcd | IntBinary::Philox),
            BinaryOp::Float(op) => !matches!(op, FloatBinary::Div | FloatBinary::CopySign),
        }
    }

    /// The element type of the result.
    pub fn result(self, operands: DType) -> DType {
        match self {
            BinaryOp::Compare(_) => DType::Bool,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::FloorDiv
            | BinaryOp::TruncDiv
            | BinaryOp::Remainder
            | BinaryOp::Fmod
            | BinaryOp::Pow
            | BinaryOp::Maximum
            | BinaryOp::Minimum
            | BinaryOp::Fmax
            | BinaryOp::Fmin
            | BinaryOp::Int(_)
            | BinaryOp::Float(_)
            | BinaryOp::Special(_) => operands,
        }
    }

    /// Whether the function is defined for an element type.
    pub fn takes(self, operands: DType) -> bool {
        match self {
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::FloorDiv
            | BinaryOp::TruncDiv
            | BinaryOp::Remainder
            | BinaryOp::Fmod
            | BinaryOp::Pow
            | BinaryOp::Maximum
            | BinaryOp::Minimum
            | BinaryOp::Fmax
            | BinaryOp::Fmin
            | BinaryOp::Compare(_) => true,
            BinaryOp::Int(IntBinary::Philox) => operands == DType::I64,
            BinaryOp::Int(_) => !operands.is_float(),
            BinaryOp::Float(_) | BinaryOp::Special(_) => operands.is_float(),
        }
    }
}

impl Relation {
    /// Whether two numbers are so related; of NaN only [`Relation::Ne`] holds.
    pub fn holds<T: PartialOrd>(self, left: T, right: T) -> bool {
        match self {
            Relation::Eq => left == right,
            Relation::Ne => left != right,
            Relation::Lt => left < right,
            Relation::Le => left <= right,
            Relation::Gt => left > right,
            Relation::Ge => left >= right,
        }
    }

    /// The relation of those that are not so related.
    pub fn negated(self) -> Relation {
        match self {
            Relation::Eq => Relation::Ne,
            Relation::Ne => Relation::Eq,
            Relation::Lt => Relation::Ge,
            Relation::Le => Relation::Gt,
            Relation::Gt => Relation::Le,
            Relation::Ge => Relation::Lt,
        }
    }

    /// The sign that C++, Rust and people write.
    pub fn sign(self) -> &'static str {
        match self {
            Relation::Eq => "==",
            Relation::Ne => "!=",
            Relation::Lt => "<",
            Relation::Le => "<=",
            Relation::Gt => ">",
            Relation::Ge => ">=",
        }
    }
}
