//! The operators of the core graph: few, pure and total over their documented domain.
//!
//! Scalar functions are tables: one line gives the name that the text form, the interpreter and generated code
//! share, and how the result's element type follows from the operands'.

use super::{ConstantId, Graph, Scalar};
use crate::symbolic::{Expr, Symbol};

/// How the element type of a scalar function's result follows from its operands'.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ResultType {
    /// The operands' own type.
    Same,
    /// `bool`.
    Bool,
}

macro_rules! scalar_functions {
    ($(#[$doc:meta])* $name:ident { $($(#[$op_doc:meta])* $op:ident $text:literal $result:ident,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[$op_doc])* $op,)* }

        impl $name {
            /// Every function of this table.
            pub const ALL: &'static [$name] = &[$($name::$op,)*];

            /// The name in text forms and generated code.
            pub fn name(self) -> &'static str {
                match self { $($name::$op => $text,)* }
            }

            /// How the element type of the result follows from the operands'.
            pub fn result(self) -> ResultType {
                match self { $($name::$op => ResultType::$result,)* }
            }

            /// The inverse of `name`.
            pub fn from_name(name: &str) -> Option<$name> {
                $name::ALL.iter().copied().find(|op| op.name() == name)
            }
        }
    };
}

scalar_functions! {
    /// Functions of one number. Integers wrap around; floating-point results follow IEEE 754 and PyTorch.
    UnaryOp {
        /// Magnitude.
        Abs "abs" Same,
        /// Negation; wraps for the smallest integer.
        Neg "neg" Same,
        /// -1, 0 or 1; 0 for NaN, as `torch.sign`.
        Sign "sign" Same,
        /// Rounds down.
        Floor "floor" Same,
        /// Rounds up.
        Ceil "ceil" Same,
        /// Rounds towards zero.
        Trunc "trunc" Same,
        /// Rounds to nearest, ties to even.
        Round "round" Same,
        /// Square root.
        Sqrt "sqrt" Same,
        /// `1 / sqrt(x)`.
        Rsqrt "rsqrt" Same,
        /// `1 / x`.
        Reciprocal "reciprocal" Same,
        /// e^x.
        Exp "exp" Same,
        /// 2^x.
        Exp2 "exp2" Same,
        /// e^x - 1.
        Expm1 "expm1" Same,
        /// Natural logarithm.
        Log "log" Same,
        /// Binary logarithm.
        Log2 "log2" Same,
        /// Decimal logarithm.
        Log10 "log10" Same,
        /// log(1 + x).
        Log1p "log1p" Same,
        /// Sine.
        Sin "sin" Same,
        /// Cosine.
        Cos "cos" Same,
        /// Tangent.
        Tan "tan" Same,
        /// Inverse sine.
        Asin "asin" Same,
        /// Inverse cosine.
        Acos "acos" Same,
        /// Inverse tangent.
        Atan "atan" Same,
        /// Hyperbolic sine.
        Sinh "sinh" Same,
        /// Hyperbolic cosine.
        Cosh "cosh" Same,
        /// Hyperbolic tangent.
        Tanh "tanh" Same,
        /// Inverse hyperbolic sine.
        Asinh "asinh" Same,
        /// Inverse hyperbolic cosine.
        Acosh "acosh" Same,
        /// Inverse hyperbolic tangent.
        Atanh "atanh" Same,
        /// Error function.
        Erf "erf" Same,
        /// Complementary error function.
        Erfc "erfc" Same,
        /// Inverse error function.
        Erfinv "erfinv" Same,
        /// `1 / (1 + e^-x)`.
        Sigmoid "sigmoid" Same,
        /// Logarithm of the magnitude of the gamma function.
        Lgamma "lgamma" Same,
        /// Digamma function.
        Digamma "digamma" Same,
        /// Modified Bessel function of the first kind, order 0.
        I0 "i0" Same,
        /// The same, scaled by e^-|x|.
        I0e "i0e" Same,
        /// Modified Bessel function of the first kind, order 1.
        I1 "i1" Same,
        /// The same, scaled by e^-|x|.
        I1e "i1e" Same,
        /// Scaled complementary error function.
        Erfcx "erfcx" Same,
        /// Inverse of the normal distribution function.
        Ndtri "ndtri" Same,
        /// Logarithm of the normal distribution function.
        LogNdtr "log_ndtr" Same,
        /// Bessel function of the first kind, order 0.
        BesselJ0 "bessel_j0" Same,
        /// Bessel function of the first kind, order 1.
        BesselJ1 "bessel_j1" Same,
        /// Bessel function of the second kind, order 0.
        BesselY0 "bessel_y0" Same,
        /// Bessel function of the second kind, order 1.
        BesselY1 "bessel_y1" Same,
        /// Modified Bessel function of the first kind, order 0 (`torch.special.modified_bessel_i0`).
        ModifiedBesselI0 "modified_bessel_i0" Same,
        /// Modified Bessel function of the first kind, order 1.
        ModifiedBesselI1 "modified_bessel_i1" Same,
        /// Modified Bessel function of the second kind, order 0.
        ModifiedBesselK0 "modified_bessel_k0" Same,
        /// Modified Bessel function of the second kind, order 1.
        ModifiedBesselK1 "modified_bessel_k1" Same,
        /// The same of order 0, scaled by e^x.
        ScaledModifiedBesselK0 "scaled_modified_bessel_k0" Same,
        /// The same of order 1, scaled by e^x.
        ScaledModifiedBesselK1 "scaled_modified_bessel_k1" Same,
        /// Spherical Bessel function of the first kind, order 0.
        SphericalBesselJ0 "spherical_bessel_j0" Same,
        /// Airy function.
        AiryAi "airy_ai" Same,
        /// Mantissa in [0.5, 1) of `frexp`.
        FrexpMantissa "frexp_mantissa" Same,
        /// Exponent of `frexp`, as a floating-point number.
        FrexpExponent "frexp_exponent" Same,
        /// Whether NaN.
        IsNan "isnan" Bool,
        /// Whether infinite.
        IsInf "isinf" Bool,
        /// Whether the sign bit is set (for integers: whether negative).
        SignBit "signbit" Bool,
        /// Bitwise complement; logical negation of booleans.
        Not "bit_not" Same,
    }
}

scalar_functions! {
    /// Functions of two numbers of one type. Integers wrap around; division of integers by zero gives 0.
    BinaryOp {
        /// Sum; for booleans, or.
        Add "add" Same,
        /// Difference.
        Sub "sub" Same,
        /// Product; for booleans, and.
        Mul "mul" Same,
        /// Quotient of floating-point numbers.
        Div "div" Same,
        /// Quotient rounded down (`torch.floor_divide`).
        FloorDiv "floor_div" Same,
        /// Quotient rounded towards zero.
        TruncDiv "trunc_div" Same,
        /// Remainder with the sign of the divisor.
        Remainder "remainder" Same,
        /// Remainder with the sign of the dividend.
        Fmod "fmod" Same,
        /// Power; integers with a negative exponent as PyTorch: 0 unless the base is 1 or -1.
        Pow "pow" Same,
        /// Larger; NaN if either is NaN.
        Maximum "maximum" Same,
        /// Smaller; NaN if either is NaN.
        Minimum "minimum" Same,
        /// Larger; the other if one is NaN.
        Fmax "fmax" Same,
        /// Smaller; the other if one is NaN.
        Fmin "fmin" Same,
        /// Angle of the point (second, first).
        Atan2 "atan2" Same,
        /// Square root of the sum of squares.
        Hypot "hypot" Same,
        /// Magnitude of the first, sign of the second.
        CopySign "copysign" Same,
        /// Next representable number after the first towards the second.
        NextAfter "nextafter" Same,
        /// Bitwise and; logical for booleans.
        And "bit_and" Same,
        /// Bitwise or; logical for booleans.
        Or "bit_or" Same,
        /// Bitwise exclusive or; logical for booleans.
        Xor "bit_xor" Same,
        /// Shift left; 0 where the amount is negative or not below the width.
        Shl "shl" Same,
        /// Arithmetic shift right; the sign where the amount is negative or not below the width.
        Shr "shr" Same,
        /// Equal.
        Eq "eq" Bool,
        /// Not equal; true for NaN.
        Ne "ne" Bool,
        /// Less.
        Lt "lt" Bool,
        /// Less or equal.
        Le "le" Bool,
        /// Greater.
        Gt "gt" Bool,
        /// Greater or equal.
        Ge "ge" Bool,
        /// Greatest common divisor.
        Gcd "gcd" Same,
        /// Regularised lower incomplete gamma function.
        Igamma "igamma" Same,
        /// Regularised upper incomplete gamma function.
        Igammac "igammac" Same,
        /// Hurwitz zeta function.
        Zeta "zeta" Same,
        /// `polygamma(n, x)`: derivative of order n (first operand) of digamma.
        Polygamma "polygamma" Same,
        /// Chebyshev polynomial of the first kind of x (first) and degree n (second).
        ChebyshevT "chebyshev_polynomial_t" Same,
        /// Second kind.
        ChebyshevU "chebyshev_polynomial_u" Same,
        /// Third kind.
        ChebyshevV "chebyshev_polynomial_v" Same,
        /// Fourth kind.
        ChebyshevW "chebyshev_polynomial_w" Same,
        /// Shifted, first kind.
        ShiftedChebyshevT "shifted_chebyshev_polynomial_t" Same,
        /// Shifted, second kind.
        ShiftedChebyshevU "shifted_chebyshev_polynomial_u" Same,
        /// Shifted, third kind.
        ShiftedChebyshevV "shifted_chebyshev_polynomial_v" Same,
        /// Shifted, fourth kind.
        ShiftedChebyshevW "shifted_chebyshev_polynomial_w" Same,
        /// Physicist's Hermite polynomial.
        HermiteH "hermite_polynomial_h" Same,
        /// Probabilist's Hermite polynomial.
        HermiteHe "hermite_polynomial_he" Same,
        /// Laguerre polynomial.
        LaguerreL "laguerre_polynomial_l" Same,
        /// Legendre polynomial.
        LegendreP "legendre_polynomial_p" Same,
    }
}

/// An associative reduction of an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ReduceOp {
    /// Sum; half types accumulate in `f32`; integers wrap. Of nothing: 0.
    Sum,
    /// Product. Of nothing: 1.
    Prod,
    /// Largest; NaN if any is NaN. The axis must not be empty.
    Max,
    /// Smallest; NaN if any is NaN. The axis must not be empty.
    Min,
    /// First index (`i64`) of the largest; NaN counts as largest. One axis.
    ArgMax,
    /// First index (`i64`) of the smallest; NaN counts as smallest. One axis.
    ArgMin,
    /// Whether any is true. Booleans only.
    Any,
    /// Whether all are true. Booleans only.
    All,
    /// Exclusive or of bits. Integers only.
    Xor,
}

impl ReduceOp {
    /// Every reduction.
    pub const ALL: &'static [ReduceOp] = &[
        ReduceOp::Sum,
        ReduceOp::Prod,
        ReduceOp::Max,
        ReduceOp::Min,
        ReduceOp::ArgMax,
        ReduceOp::ArgMin,
        ReduceOp::Any,
        ReduceOp::All,
        ReduceOp::Xor,
    ];

    /// The name in text forms and generated code.
    pub fn name(self) -> &'static str {
        match self {
            ReduceOp::Sum => "sum",
            ReduceOp::Prod => "prod",
            ReduceOp::Max => "max",
            ReduceOp::Min => "min",
            ReduceOp::ArgMax => "argmax",
            ReduceOp::ArgMin => "argmin",
            ReduceOp::Any => "any",
            ReduceOp::All => "all",
            ReduceOp::Xor => "xor",
        }
    }

    /// Whether the result is a position (`i64`) rather than a value.
    pub fn is_arg(self) -> bool {
        matches!(self, ReduceOp::ArgMax | ReduceOp::ArgMin)
    }
}

/// A running reduction along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum ScanOp {
    /// Running sum.
    Sum,
    /// Running product.
    Prod,
    /// Running logarithm of the sum of exponentials.
    LogSumExp,
    /// Running maximum (NaN sticks) and the index of its latest occurrence: two outputs.
    Max,
    /// Running minimum (NaN sticks) and the index of its latest occurrence: two outputs.
    Min,
}

impl ScanOp {
    /// Every running reduction.
    pub const ALL: &'static [ScanOp] =
        &[ScanOp::Sum, ScanOp::Prod, ScanOp::LogSumExp, ScanOp::Max, ScanOp::Min];

    /// The name in text forms and generated code.
    pub fn name(self) -> &'static str {
        match self {
            ScanOp::Sum => "cumsum",
            ScanOp::Prod => "cumprod",
            ScanOp::LogSumExp => "logcumsumexp",
            ScanOp::Max => "cummax",
            ScanOp::Min => "cummin",
        }
    }

    /// Whether a second output gives indices (`i64`).
    pub fn has_indices(self) -> bool {
        matches!(self, ScanOp::Max | ScanOp::Min)
    }
}

/// What a scatter does where an update meets a value (which may be an earlier update).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Combine {
    /// The update replaces it; of several updates the last in row-major order stays.
    Set,
    /// Sum.
    Add,
    /// Product.
    Mul,
    /// Larger; NaN sticks.
    Max,
    /// Smaller; NaN sticks.
    Min,
}

impl Combine {
    /// Every combination.
    pub const ALL: &'static [Combine] =
        &[Combine::Set, Combine::Add, Combine::Mul, Combine::Max, Combine::Min];

    /// The inverse of [`Combine::name`].
    pub fn from_name(name: &str) -> Option<Combine> {
        Combine::ALL.iter().copied().find(|combine| combine.name() == name)
    }

    /// The name in text forms and generated code.
    pub fn name(self) -> &'static str {
        match self {
            Combine::Set => "set",
            Combine::Add => "add",
            Combine::Mul => "mul",
            Combine::Max => "max",
            Combine::Min => "min",
        }
    }
}

/// One coordinate of an indirect access.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Coord {
    /// An expression over the axes of the iteration space and size symbols; always within bounds.
    Expr(Expr),
    /// The value of index operand `k` (`i64`) at the same position. Negative values count from the end; anything
    /// outside `-size .. size` is a run-time error that names the operator, never a wild access.
    Indirect(usize),
}

/// Parameters of a convolution over `spatial rank` trailing axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Conv {
    /// Step of the window per spatial axis.
    pub stride: Vec<i64>,
    /// Zeros before and after, per spatial axis; may be negative for transposed convolutions only.
    pub padding: Vec<(i64, i64)>,
    /// Distance of window taps per spatial axis.
    pub dilation: Vec<i64>,
    /// Channel groups.
    pub groups: i64,
    /// Whether it is the transpose of a convolution; then the weight is `[in, out/groups, ...]`.
    pub transposed: bool,
    /// Extra size at the end of each spatial axis of the result (transposed only).
    pub output_padding: Vec<i64>,
}

/// A core operator. Operands of one node have exactly the shapes stated; broadcasting is a [`Op::View`].
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// A tensor of the program. No operands.
    Constant(ConstantId),
    /// Every element is this number. No operands.
    Full(Scalar),
    /// An `i64` tensor whose element at axes `i0, i1, ...` is the value of the expression. No operands.
    Index(Expr),
    /// Element-wise function of one operand of the result's shape.
    Unary(UnaryOp),
    /// Element-wise function of two operands of one type and the result's shape.
    Binary(BinaryOp),
    /// Element-wise choice: operands condition (`bool`), value if true, value if false.
    Select,
    /// Conversion of every element to the result's type: floats to integers truncate, non-zero is true.
    Cast,
    /// Element at axes `i0, i1, ...` is the operand's element at these coordinates, all within bounds.
    View(Vec<Expr>),
    /// As [`Op::View`], but where a coordinate falls outside the operand the element is `fill`.
    Pad {
        /// Coordinates into the operand over the result's axes.
        coords: Vec<Expr>,
        /// Value outside.
        fill: Scalar,
    },
    /// Operands: data, then index tensors (`i64`) of the result's shape. One coordinate per axis of data.
    Gather(Vec<Coord>),
    /// Operands: base, updates, then index tensors of updates' shape. One coordinate per axis of base, over updates'
    /// axes. The result is base with every update combined in, in row-major order of updates.
    Scatter {
        /// Where in base each update goes.
        coords: Vec<Coord>,
        /// What happens there.
        combine: Combine,
    },
    /// Operands laid one after the other along an axis.
    Cat {
        /// The axis.
        axis: usize,
    },
    /// Removes axes by an associative reduction.
    Reduce {
        /// The reduction.
        op: ReduceOp,
        /// The operand's axes that go, ascending, at least one.
        axes: Vec<usize>,
    },
    /// Running reduction; one output, or two (values, `i64` indices) where [`ScanOp::has_indices`].
    Scan {
        /// The reduction.
        op: ScanOp,
        /// The axis.
        axis: usize,
    },
    /// Stable sort along an axis; outputs values and `i64` indices. NaN counts as largest.
    Sort {
        /// The axis.
        axis: usize,
        /// Largest first.
        descending: bool,
    },
    /// Operands: sorted `[..., n]` and values `[..., m]` of one type, equal leading axes. Result (`i64`, values'
    /// shape): where each value would be inserted, left of equal ones, or right of them.
    SearchSorted {
        /// Insert right of equal elements.
        right: bool,
    },
    /// `[batch..., m, k] x [batch..., k, n] -> [batch..., m, n]`, one type; half types accumulate in `f32`.
    MatMul,
    /// Operands: input `[n, c, spatial...]`, weight `[out, c/groups, window...]`. No bias: that is an addition.
    Conv(Conv),
    /// Reads a one-element integer operand into a size symbol. No outputs.
    Read(Symbol),
    /// The run fails with the message where the one-element boolean operand is false. No outputs.
    Assert(String),
    /// Operands: one-element boolean, then the operands of both branches. Outputs: the branch's outputs.
    Cond {
        /// Run where true.
        then: Box<Graph>,
        /// Run where false.
        otherwise: Box<Graph>,
    },
    /// Operands: carried values (`carried` of them), then captured ones. Outputs: the carried values at the end.
    While {
        /// Gives a one-element boolean from all operands.
        condition: Box<Graph>,
        /// Gives the next carried values from all operands.
        body: Box<Graph>,
        /// Number of carried values.
        carried: usize,
    },
}

impl Op {
    /// The name in text forms and messages; for functions and reductions that of the function.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Constant(_) => "constant",
            Op::Full(_) => "full",
            Op::Index(_) => "index",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Select => "select",
            Op::Cast => "cast",
            Op::View(_) => "view",
            Op::Pad { .. } => "pad",
            Op::Gather(_) => "gather",
            Op::Scatter { .. } => "scatter",
            Op::Cat { .. } => "cat",
            Op::Reduce { op, .. } => op.name(),
            Op::Scan { op, .. } => op.name(),
            Op::Sort { .. } => "sort",
            Op::SearchSorted { .. } => "searchsorted",
            Op::MatMul => "matmul",
            Op::Conv(_) => "conv",
            Op::Read(_) => "read",
            Op::Assert(_) => "assert",
            Op::Cond { .. } => "cond",
            Op::While { .. } => "while",
        }
    }
}
