//! Functions of one number, in families by what they are functions of.

use crate::dtype::DType;

families! {
    /// Functions of one number. Integers wrap around; floating-point results follow IEEE 754 and PyTorch.
    UnaryOp {
        /// Magnitude.
        Abs "abs",
        /// Negation; wraps for the smallest integer.
        Neg "neg",
        /// -1, 0 or 1; 0 for NaN, as `torch.sign`.
        Sign "sign",
        /// Bitwise complement; logical negation of booleans.
        Not "bit_not",
    } of {
        /// Of any number; integers stay as they are.
        Round(Rounding),
        /// Of any number.
        Test(FloatTest),
        /// Of numbers of four or eight bytes.
        Bits(Bits),
        /// Of floating-point numbers.
        Float(FloatUnary),
        /// Of floating-point numbers.
        Special(SpecialUnary),
    }
}

table! {
    /// Ways to round to a whole number.
    Rounding {
        /// Rounds down.
        Floor "floor",
        /// Rounds up.
        Ceil "ceil",
        /// Rounds towards zero.
        Trunc "trunc",
        /// Rounds to nearest, ties to even.
        Round "round",
    }
}

table! {
    /// What a number can be asked; the answer is a truth value.
    FloatTest {
        /// Whether NaN.
        IsNan "isnan",
        /// Whether infinite.
        IsInf "isinf",
        /// Whether the sign bit is set (for integers: whether negative).
        SignBit "signbit",
    }
}

table! {
    /// Ways to see the same bits as a number of another kind.
    Bits {
        /// The bits of a floating-point number as a signed integer.
        OfFloat "bits_of_float",
        /// The floating-point number of which a signed integer has the bits.
        ToFloat "float_of_bits",
    }
}

table! {
    /// Elementary functions of one floating-point number.
    FloatUnary {
        /// Square root.
        Sqrt "sqrt",
        /// `1 / sqrt(x)`.
        Rsqrt "rsqrt",
        /// `1 / x`.
        Reciprocal "reciprocal",
        /// e^x.
        Exp "exp",
        /// 2^x.
        Exp2 "exp2",
        /// e^x - 1.
        Expm1 "expm1",
        /// Natural logarithm.
        Log "log",
        /// Binary logarithm.
        Log2 "log2",
        /// Decimal logarithm.
        Log10 "log10",
        /// log(1 + x).
        Log1p "log1p",
        /// Sine.
        Sin "sin",
        /// Cosine.
        Cos "cos",
        /// Tangent.
        Tan "tan",
        /// Inverse sine.
        Asin "asin",
        /// Inverse cosine.
        Acos "acos",
        /// Inverse tangent.
        Atan "atan",
        /// Hyperbolic sine.
        Sinh "sinh",
        /// Hyperbolic cosine.
        Cosh "cosh",
        /// Hyperbolic tangent.
        Tanh "tanh",
        /// Inverse hyperbolic sine.
        Asinh "asinh",
        /// Inverse hyperbolic cosine.
        Acosh "acosh",
        /// Inverse hyperbolic tangent.
        Atanh "atanh",
        /// Error function.
        Erf "erf",
        /// Complementary error function.
        Erfc "erfc",
        /// Inverse error function.
        Erfinv "erfinv",
        /// `1 / (1 + e^-x)`.
        Sigmoid "sigmoid",
    }
}

table! {
    /// Special functions of one floating-point number.
    SpecialUnary {
        /// Logarithm of the magnitude of the gamma function.
        Lgamma "lgamma",
        /// Digamma function.
        Digamma "digamma",
        /// Modified Bessel function of the first kind, order 0.
        I0 "i0",
        /// The same, scaled by e^-|x|.
        I0e "i0e",
        /// Modified Bessel function of the first kind, order 1.
        I1 "i1",
        /// The same, scaled by e^-|x|.
        I1e "i1e",
        /// Scaled complementary error function.
        Erfcx "erfcx",
        /// Inverse of the normal distribution function.
        Ndtri "ndtri",
        /// Logarithm of the normal distribution function.
        LogNdtr "log_ndtr",
        /// Bessel function of the first kind, order 0.
        BesselJ0 "bessel_j0",
        /// Bessel function of the first kind, order 1.
        BesselJ1 "bessel_j1",
        /// Bessel function of the second kind, order 0.
        BesselY0 "bessel_y0",
        /// Bessel function of the second kind, order 1.
        BesselY1 "bessel_y1",
        /// Modified Bessel function of the first kind, order 0 (`torch.special.modified_bessel_i0`).
        ModifiedBesselI0 "modified_bessel_i0",
        /// Modified Bessel function of the first kind, order 1.
        ModifiedBesselI1 "modified_bessel_i1",
        /// Modified Bessel function of the second kind, order 0.
        ModifiedBesselK0 "modified_bessel_k0",
        /// Modified Bessel function of the second kind, order 1.
        ModifiedBesselK1 "modified_bessel_k1",
        /// The same of order 0, scaled by e^x.
        ScaledModifiedBesselK0 "scaled_modified_bessel_k0",
        /// The same of order 1, scaled by e^x.
        ScaledModifiedBesselK1 "scaled_modified_bessel_k1",
        /// Spherical Bessel function of the first kind, order 0.
        SphericalBesselJ0 "spherical_bessel_j0",
        /// Airy function.
        AiryAi "airy_ai",
        /// Mantissa in [0.5, 1) of `frexp`.
        FrexpMantissa "frexp_mantissa",
        /// Exponent of `frexp`, as a floating-point number.
        FrexpExponent "frexp_exponent",
    }
}

impl UnaryOp {
    /// Whether an element takes much longer than an addition.
    pub fn takes_long(self) -> bool {
        match self {
            UnaryOp::Abs
            | UnaryOp::Neg
            | UnaryOp::Sign
            | UnaryOp::Not
            | UnaryOp::Round(_)
            | UnaryOp::Test(_)
            | UnaryOp::Bits(_) => false,
            UnaryOp::Float(op) => !matches!(op, FloatUnary::Sqrt | FloatUnary::Reciprocal),
            UnaryOp::Special(_) => true,
        }
    }

    /// The element type of the result.
    pub fn result(self, operand: DType) -> DType {
        match self {
            UnaryOp::Test(_) => DType::Bool,
            UnaryOp::Bits(Bits::OfFloat) => {
                if operand == DType::F64 {
                    DType::I64
                } else {
                    DType::I32
                }
            }
            UnaryOp::Bits(Bits::ToFloat) => {
                if operand == DType::I64 {
                    DType::F64
                } else {
                    DType::F32
                }
            }
            UnaryOp::Abs
            | UnaryOp::Neg
            | UnaryOp::Sign
            | UnaryOp::Not
            | UnaryOp::Round(_)
            | UnaryOp::Float(_)
            | UnaryOp::Special(_) => operand,
        }
    }

    /// Whether the function is defined for an element type.
    pub fn takes(self, operand: DType) -> bool {
        match self {
            UnaryOp::Abs | UnaryOp::Neg | UnaryOp::Sign | UnaryOp::Round(_) | UnaryOp::Test(_) => true,
            UnaryOp::Not => !operand.is_float(),
            UnaryOp::Bits(Bits::OfFloat) => matches!(operand, DType::F32 | DType::F64),
            UnaryOp::Bits(Bits::ToFloat) => matches!(operand, DType::I32 | DType::I64),
            UnaryOp::Float(_) | UnaryOp::Special(_) => operand.is_float(),
        }
    }
}
