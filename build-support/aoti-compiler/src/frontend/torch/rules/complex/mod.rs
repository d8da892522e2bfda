//! Complex numbers as pairs of real ones: which operators have them, and how each is computed from parts.

pub(crate) mod arranged;
pub(crate) mod elementary;
pub(crate) mod factored;
pub(crate) mod factors;
pub(crate) mod functions;
pub(crate) mod ldl;
pub(crate) mod ldl_solve;
pub(crate) mod lu;
pub(crate) mod matrices;
pub(crate) mod parts;
pub(crate) mod products;
pub(crate) mod reflections;
pub(crate) mod table;
#[cfg(test)]
mod tests;

use super::{Args, Context, Outputs, RuleError};
use crate::graph::BinaryOp;

/// How an operator is computed of complex numbers.
#[derive(Clone, Copy)]
pub(crate) enum How {
    /// By the rule for real tensors, applied to real and to imaginary parts. The operands named are numbers to compute with,
    /// so that real ones count as having no imaginary part; all others are the same for both.
    Parts(&'static [&'static str]),
    /// By the rule for real tensors, which is linear in each of the complex operands.
    Product,
    /// The same, but for the operand named: it is added to the product, and may be absent.
    Affine(&'static str),
    /// By the rule for real tensors, of whether each number differs from zero.
    Truth,
    /// By the rule for real tensors, of magnitudes.
    Magnitude,
    /// By the rule for real tensors, applied to real and to imaginary parts; this function of both results is the result.
    Together(BinaryOp),
    /// By the rule for real matrices, applied to the one twice as large.
    Doubled,
    /// The parts themselves: no element is computed, and what is written to one tensor shows in the other.
    Window(Seen),
    /// By a rule of its own, whose tensors are pairs.
    Own(fn(&mut Context, &Args) -> Result<Outputs, RuleError>),
}

/// What is seen of pairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Seen {
    Both,
    Real,
    Imaginary,
}
