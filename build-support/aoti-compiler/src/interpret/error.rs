//! Why an evaluation fails: inputs that do not fit, or a condition that data do not meet.

use std::fmt;

/// An evaluation that did not succeed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum EvalError {
    /// Too few or too many inputs.
    InputCount {
        /// Inputs of the graph.
        expected: usize,
        /// Inputs given.
        given: usize,
    },
    /// An input of another element type or number of axes.
    InputType {
        /// Its name.
        input: String,
        /// Type and sizes of the graph's input.
        expected: String,
        /// Type and sizes given.
        given: String,
    },
    /// A symbol's value is outside its range.
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
    Guard {
        /// The relation.
        guard: String,
    },
    /// A symbol or expression has no value: unbound, overflow or division by zero.
    Size {
        /// The expression.
        expr: String,
    },
    /// An index read from data is outside its axis.
    IndexOutOfRange {
        /// The index.
        index: i64,
        /// Size of the axis.
        size: usize,
    },
    /// An assertion of the program does not hold.
    Assert(String),
    /// An operator that a function of the user's project computes.
    Extern {
        /// Its name.
        operator: String,
    },
    /// Ranks compute it together, and the evaluator is alone.
    Collective(&'static str),
    /// A tensor is larger than the evaluator is willing to hold.
    TooLarge(String),
    /// The graph breaks its own rules; the verifier finds such graphs.
    Malformed(String),
    /// The place of an error.
    At {
        /// Operator and result, with the node of the user's program where known.
        place: String,
        /// What happened there.
        error: Box<EvalError>,
    },
}

impl fmt::Display for EvalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EvalError::InputCount { expected, given } => {
                write!(f, "{given} inputs are given, the graph takes {expected}")
            }
            EvalError::InputType { input, expected, given } => {
                write!(f, "input `{input}` is {given}, expected is {expected}")
            }
            EvalError::Range { symbol, value, min, max } => {
                write!(f, "`{symbol}` is {value}, allowed is {min} to {max}")
            }
            EvalError::Guard { guard } => write!(f, "the sizes do not satisfy `{guard}`"),
            EvalError::Size { expr } => write!(f, "the size `{expr}` has no value"),
            EvalError::IndexOutOfRange { index, size } => {
                write!(f, "index {index} is out of range for an axis of size {size}")
            }
            EvalError::Assert(inner) => write!(f, "assertion failed: {inner}"),
            EvalError::Extern { operator } => write!(
                f,
                "operator `{operator}` is a function of the project, which the reference evaluator does not call"
            ),
            EvalError::Collective(name) => {
                write!(f, "`{name}` is computed by several ranks, and the reference evaluator is one")
            }
            EvalError::TooLarge(inner) => write!(f, "a tensor of {inner} does not fit into memory"),
            EvalError::Malformed(inner) => write!(f, "malformed graph: {inner}"),
            EvalError::At { place, error } => write!(f, "{place}: {error}"),
        }
    }
}

impl std::error::Error for EvalError {}
