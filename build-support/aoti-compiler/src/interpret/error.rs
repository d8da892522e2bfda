//! Why an evaluation fails: inputs that do not fit, or a condition that data do not meet.

/// An evaluation that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EvalError {
    /// Too few or too many inputs.
    #[error("{given} inputs are given, the graph takes {expected}")]
    InputCount {
        /// Inputs of the graph.
        expected: usize,
        /// Inputs given.
        given: usize,
    },
    /// An input of another element type or number of axes.
    #[error("input `{input}` is {given}, expected is {expected}")]
    InputType {
        /// Its name.
        input: String,
        /// Type and sizes of the graph's input.
        expected: String,
        /// Type and sizes given.
        given: String,
    },
    /// A symbol's value is outside its range.
    #[error("`{symbol}` is {value}, allowed is {min} to {max}")]
    Range {
        /// The symbol's name.
        symbol: String,
        /// Its value.
        value: i64,
        /// Smallest allowed.
        min: i64,
        /// Largest allowed.
        max: i64,
    },
    /// A relation between sizes does not hold.
    #[error("the sizes do not satisfy `{guard}`")]
    Guard {
        /// The relation.
        guard: String,
    },
    /// A symbol or expression has no value: unbound, overflow or division by zero.
    #[error("the size `{expr}` has no value")]
    Size {
        /// The expression.
        expr: String,
    },
    /// An index read from data is outside its axis.
    #[error("index {index} is out of range for an axis of size {size}")]
    IndexOutOfRange {
        /// The index.
        index: i64,
        /// Size of the axis.
        size: usize,
    },
    /// An assertion of the program does not hold.
    #[error("assertion failed: {0}")]
    Assert(String),
    /// An operator that a function of the user's project computes.
    #[error(
        "operator `{operator}` is a function of the project, which the reference evaluator does not call"
    )]
    Extern {
        /// Its name.
        operator: String,
    },
    /// A tensor is larger than the evaluator is willing to hold.
    #[error("a tensor of {0} does not fit into memory")]
    TooLarge(String),
    /// The graph breaks its own rules; the verifier finds such graphs.
    #[error("malformed graph: {0}")]
    Malformed(String),
    /// The place of an error.
    #[error("{place}: {error}")]
    At {
        /// Operator and result, with the node of the user's program where known.
        place: String,
        /// What happened there.
        error: Box<EvalError>,
    },
}
