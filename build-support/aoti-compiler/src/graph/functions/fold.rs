//! What combines many numbers into one: reductions, running reductions, scatters.

table! {
    /// An associative reduction of an axis.
    ReduceOp {
        /// Sum; half types accumulate in `f32`; integers wrap. Of nothing: 0.
        Sum "sum",
        /// Product. Of nothing: 1.
        Prod "prod",
        /// Largest; NaN if any is NaN. Of nothing: the smallest that the type has, negative infinity among them.
        Max "max",
        /// Smallest; NaN if any is NaN. Of nothing: the largest that the type has, infinity among them.
        Min "min",
        /// First index (`i64`) of the largest; NaN counts as largest. One axis, which must not be empty.
        ArgMax "argmax",
        /// First index (`i64`) of the smallest; NaN counts as smallest. One axis, which must not be empty.
        ArgMin "argmin",
        /// Whether any is true. Booleans only.
        Any "any",
        /// Whether all are true. Booleans only.
        All "all",
        /// Exclusive or of bits. Integers only.
        Xor "xor",
    }
}

table! {
    /// A running reduction along an axis.
    ScanOp {
        /// Running sum.
        Sum "cumsum",
        /// Running product.
        Prod "cumprod",
        /// Running logarithm of the sum of exponentials.
        LogSumExp "logcumsumexp",
        /// Running maximum (NaN sticks) and the index of its latest occurrence: two outputs.
        Max "cummax",
        /// Running minimum (NaN sticks) and the index of its latest occurrence: two outputs.
        Min "cummin",
    }
}

table! {
    /// What a scatter does where an update meets a value (which may be an earlier update).
    Combine {
        /// The update replaces it; of several updates the last in row-major order stays.
        Set "set",
        /// Sum.
        Add "add",
        /// Product.
        Mul "mul",
        /// Larger; NaN sticks.
        Max "max",
        /// Smaller; NaN sticks.
        Min "min",
    }
}

impl ReduceOp {
    /// Whether the result is a position (`i64`) rather than a value.
    pub fn is_arg(self) -> bool {
        matches!(self, ReduceOp::ArgMax | ReduceOp::ArgMin)
    }
}

impl ScanOp {
    /// Whether a second output gives indices (`i64`).
    pub fn has_indices(self) -> bool {
        matches!(self, ScanOp::Max | ScanOp::Min)
    }
}
