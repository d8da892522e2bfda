//! Which element of a buffer a term reads or an effect writes, and rewriting of terms.

use super::{Buffer, BufferId, Guard, Term, TermId};
use crate::symbolic::{Expr, Ranges, Symbol};

/// One coordinate.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Index {
    /// An expression over the axes and size symbols.
    Expr(Expr),
    /// The value of a term, already checked against the size.
    Term(TermId),
}

/// An element of a buffer, by coordinates and by offset.
#[derive(Clone, PartialEq, Debug)]
pub struct Access {
    /// The buffer.
    pub buffer: BufferId,
    /// One coordinate for each axis of the buffer; what dependencies are decided on.
    pub coords: Vec<Index>,
    /// The part of the element offset that is an expression.
    pub offset: Expr,
    /// Terms that add `term * stride` elements.
    pub indirect: Vec<(TermId, Expr)>,
}

/// Replaces symbols by expressions.
pub(super) type Replace<'a> = &'a dyn Fn(Symbol) -> Option<Expr>;

impl Access {
    /// Of a row-major buffer.
    pub fn new(id: BufferId, buffer: &Buffer, coords: Vec<Index>, ranges: &dyn Ranges) -> Access {
        Access::with_shape(id, &buffer.shape, coords, ranges)
    }

    /// Of a row-major buffer of the given shape.
    pub fn with_shape(id: BufferId, shape: &[Expr], coords: Vec<Index>, ranges: &dyn Ranges) -> Access {
        let mut offset = Expr::int(0);
        let mut indirect = Vec::new();
        for (axis, coord) in coords.iter().enumerate() {
            let stride = Expr::product(&shape[axis + 1..]);
            match coord {
                Index::Expr(expr) => offset = &offset + &(expr * &stride),
                Index::Term(term) => indirect.push((*term, stride)),
            }
        }
        Access { buffer: id, coords, offset: offset.simplify(ranges), indirect }
    }

    /// Replaces axis symbols.
    pub fn substitute(&mut self, replace: Replace, ranges: &dyn Ranges) {
        for coord in &mut self.coords {
            if let Index::Expr(expr) = coord {
                *expr = expr.substitute(replace, ranges);
            }
        }
        self.offset = self.offset.substitute(replace, ranges);
    }

    /// Renumbers terms.
    pub fn renumber(&mut self, new: &dyn Fn(TermId) -> TermId) {
        for coord in &mut self.coords {
            if let Index::Term(term) = coord {
                *term = new(*term);
            }
        }
        for (term, _) in &mut self.indirect {
            *term = new(*term);
        }
    }

    /// Whether this is, at every position, the same element as another of the same loops. An index that is read from data is
    /// equal to nothing, whatever its axis has: only its value would tell. Loops that were joined have no coordinates any more.
    pub fn is_same_element(&self, other: &Access) -> bool {
        let same_place =
            self.offset == other.offset || (!self.coords.is_empty() && self.coords == other.coords);
        self.buffer == other.buffer && self.is_direct() && other.is_direct() && same_place
    }

    /// Whether every coordinate is an expression.
    pub fn is_direct(&self) -> bool {
        self.indirect.is_empty()
    }
}

impl Term {
    /// Renumbers the terms that this one uses.
    pub fn renumber(&mut self, new: &dyn Fn(TermId) -> TermId) {
        match self {
            Term::Literal(_)
            | Term::Index(_)
            | Term::Inside(_)
            | Term::Accumulated(_)
            | Term::Earlier { .. }
            | Term::Sum => {}
            Term::Load { access, .. } => access.renumber(new),
            Term::Unary(_, a) | Term::Cast(a) | Term::CheckIndex { index: a, .. } => *a = new(*a),
            Term::Binary(_, a, b) => {
                *a = new(*a);
                *b = new(*b);
            }
            Term::Select(a, b, c) => {
                *a = new(*a);
                *b = new(*b);
                *c = new(*c);
            }
        }
    }

    /// The expressions that it evaluates itself; those of its access are not among them.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Term::Index(expr) | Term::CheckIndex { size: expr, .. } => vec![expr],
            Term::Load { guards, .. } | Term::Inside(guards) => {
                guards.iter().flat_map(|guard| [&guard.coordinate, &guard.size]).collect()
            }
            Term::Literal(_)
            | Term::Unary(..)
            | Term::Binary(..)
            | Term::Select(..)
            | Term::Cast(_)
            | Term::Accumulated(_)
            | Term::Earlier { .. }
            | Term::Sum => Vec::new(),
        }
    }

    /// Replaces axis symbols.
    pub fn substitute(&mut self, replace: Replace, ranges: &dyn Ranges) {
        let guards_in = |guards: &mut Vec<Guard>| {
            for guard in guards {
                guard.coordinate = guard.coordinate.substitute(replace, ranges);
            }
        };
        match self {
            Term::Index(expr) => *expr = expr.substitute(replace, ranges),
            Term::Load { access, guards, .. } => {
                access.substitute(replace, ranges);
                guards_in(guards);
            }
            Term::Inside(guards) => guards_in(guards),
            Term::Literal(_)
            | Term::Unary(..)
            | Term::Binary(..)
            | Term::Select(..)
            | Term::Cast(_)
            | Term::CheckIndex { .. }
            | Term::Accumulated(_)
            | Term::Earlier { .. }
            | Term::Sum => {}
        }
    }

    /// The terms that this one uses.
    pub fn operands(&self) -> Vec<TermId> {
        match self {
            Term::Literal(_)
            | Term::Index(_)
            | Term::Inside(_)
            | Term::Accumulated(_)
            | Term::Earlier { .. }
            | Term::Sum => vec![],
            Term::Load { access, .. } => access.indirect.iter().map(|(term, _)| *term).collect(),
            Term::Unary(_, a) | Term::Cast(a) | Term::CheckIndex { index: a, .. } => vec![*a],
            Term::Binary(_, a, b) => vec![*a, *b],
            Term::Select(a, b, c) => vec![*a, *b, *c],
        }
    }
}
