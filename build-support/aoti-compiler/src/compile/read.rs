//! Compiles a model for the smallest sizes for which that succeeds.

use crate::diagnostic::Diagnostics;
use crate::frontend::torch::custom::{Operator, Operators};
use crate::frontend::{ModelFile, read_with};
use crate::graph::Graph;
use crate::loops::bounds::OutOfBounds;

/// Why a graph cannot be compiled.
pub(super) enum Stop {
    /// It is refused.
    Refused(Diagnostics),
    /// A stage failed.
    OutOfBounds(OutOfBounds),
}

impl From<Diagnostics> for Stop {
    fn from(findings: Diagnostics) -> Stop {
        Stop::Refused(findings)
    }
}

impl From<OutOfBounds> for Stop {
    fn from(outside: OutOfBounds) -> Stop {
        Stop::OutOfBounds(outside)
    }
}

/// What `then` gives for the smallest sizes for which it succeeds.
///
/// # Panics
///
/// Where a stage fails for the sizes that the file states: that is a bug of the compiler.
pub(super) fn read<T>(
    name: &str,
    model: &ModelFile,
    operators: &[Operator],
    then: &mut dyn FnMut(Graph) -> Result<T, Stop>,
) -> Result<T, Diagnostics> {
    // What is wrong with a declaration would be reported again for every call.
    let operators = Operators::new(operators)?;
    match read_with(name, model, &operators, then) {
        Ok(value) => Ok(value),
        Err(Stop::Refused(findings)) => Err(findings),
        Err(Stop::OutOfBounds(outside)) => panic!("{outside}"),
    }
}
