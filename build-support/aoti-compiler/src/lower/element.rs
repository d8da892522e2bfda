//! Operators whose result needs no kernel of its own: what one element is, given the operands' elements.

use crate::graph::{BinaryOp, Coord, Op, Scalar, UnaryOp};
use crate::symbolic::Expr;

/// What an element is.
pub(super) enum Element<'a> {
    /// This number.
    Literal(Scalar),
    /// The value of an expression over its position.
    Index(&'a Expr),
    /// A function of the operand's element.
    Unary(UnaryOp),
    /// A function of both operands' elements.
    Binary(BinaryOp),
    /// Chosen by the first operand's element.
    Select,
    /// The operand's element, converted.
    Cast,
    /// The operand's element elsewhere.
    View(&'a [Expr]),
    /// The operand's element elsewhere, or a number where there is none.
    Pad(&'a [Expr], Scalar),
    /// The first operand's element at a place that the others tell.
    Gather(&'a [Coord]),
    /// The element of the operand that lies there along an axis.
    Cat(usize),
}

impl<'a> Element<'a> {
    /// Of an operator's result; `None` where that is memory already, or only a kernel can make it.
    pub(super) fn of(op: &'a Op) -> Option<Element<'a>> {
        Some(match op {
            Op::Full(number) => Element::Literal(*number),
            Op::Index(expr) => Element::Index(expr),
            Op::Unary(op) => Element::Unary(*op),
            Op::Binary(op) => Element::Binary(*op),
            Op::Select => Element::Select,
            Op::Cast => Element::Cast,
            Op::View(coords) => Element::View(coords),
            Op::Pad { coords, fill } => Element::Pad(coords, *fill),
            Op::Gather(coords) => Element::Gather(coords),
            Op::Constant(_)
            | Op::Scatter { .. }
            | Op::Cat { .. }
            | Op::Reduce { .. }
            | Op::Scan { .. }
            | Op::Sort { .. }
            | Op::NthElement { .. }
            | Op::SearchSorted { .. }
            | Op::Routine(_)
            | Op::Fourier(_)
            | Op::Recurrent(_)
            | Op::Extern(_)
            | Op::Collective(_)
            | Op::MatMul
            | Op::Conv(_)
            | Op::Read(_)
            | Op::Assert(_)
            | Op::Require(_)
            | Op::Cond { .. }
            | Op::While { .. } => return None,
        })
    }

    /// The same where a concatenation that has no buffer counts as well.
    pub(super) fn in_place(op: &'a Op) -> Option<Element<'a>> {
        if let Op::Cat { axis } = op {
            return Some(Element::Cat(*axis));
        }
        Element::of(op)
    }

    /// What computing it costs beside its operands, in operations; above 9 it takes much longer than an addition.
    pub(super) fn weight(&self) -> usize {
        match self {
            Element::Literal(_) | Element::Index(_) | Element::View(_) => 0,
            Element::Unary(op) => 1 + 9 * usize::from(op.takes_long()),
            Element::Binary(op) => 1 + 9 * usize::from(op.takes_long()),
            Element::Select | Element::Cast | Element::Pad(..) | Element::Cat(_) => 1,
            Element::Gather(_) => 3,
        }
    }
}
