//! Numbers of one byte that are rounded, moved and limited, as quantised networks have them behind every product: one function of
//! the headers, for which processors have shorter ways than its parts one by one.

use crate::dtype::DType;
use crate::graph::{BinaryOp, Rounding, Scalar, UnaryOp};
use crate::loops::{Stage, Term, TermId};

/// A number of one byte: `x` rounded to the nearest integer, plus `zero`, as far as its type holds that.
pub(super) struct Quantised {
    pub(super) x: TermId,
    pub(super) zero: f64,
    /// Terms between, which nothing may need but this one.
    pub(super) within: Vec<TermId>,
}

impl Quantised {
    /// What a term is, if it is that.
    pub(super) fn of(stage: &Stage, id: TermId) -> Option<Quantised> {
        let typed = &stage.terms[id];
        if !matches!(typed.dtype, DType::U8 | DType::I8) {
            return None;
        }
        let Term::Cast(limited) = typed.term else { return None };
        if stage.terms[limited].dtype != DType::F32 {
            return None;
        }
        let mut own = Quantised { x: limited, zero: 0.0, within: Vec::new() };
        let mut limits = [BinaryOp::Maximum, BinaryOp::Minimum].map(|op| (op, None));
        // What is not a number is 0, the least one of those without a sign, however it is limited.
        let either: &[BinaryOp] = if typed.dtype == DType::U8 {
            &[BinaryOp::Maximum, BinaryOp::Minimum, BinaryOp::Fmax]
        } else {
            &[BinaryOp::Maximum, BinaryOp::Minimum]
        };
        while let Some((op, number)) = own.skip_with_number(stage, either) {
            let kind = if op == BinaryOp::Fmax { BinaryOp::Maximum } else { op };
            let (_, limit) = limits.iter_mut().find(|(own, _)| *own == kind)?;
            if limit.replace(number).is_some() {
                return None;
            }
        }
        let held = [Scalar::lowest(typed.dtype), Scalar::highest(typed.dtype)].map(Scalar::to_f64);
        if limits.map(|(_, limit)| limit) != held.map(Some) {
            return None;
        }
        if let Some((_, zero)) = own.skip_with_number(stage, &[BinaryOp::Add]) {
            own.zero = zero;
        }
        let Term::Unary(UnaryOp::Round(Rounding::Round), x) = stage.terms[own.x].term else { return None };
        own.within.push(own.x);
        own.x = x;
        // Beyond these, it is not certain that sums of floats are exact.
        (own.zero.fract() == 0.0 && own.zero.abs() <= 255.0).then_some(own)
    }

    /// Goes on behind a function of two operands of which one is a number.
    fn skip_with_number(&mut self, stage: &Stage, ops: &[BinaryOp]) -> Option<(BinaryOp, f64)> {
        let Term::Binary(op, a, b) = stage.terms[self.x].term else { return None };
        if !ops.contains(&op) {
            return None;
        }
        let number = |id: TermId| {
            let Term::Literal(number) = stage.terms[id].term else { return None };
            Some(number.to_f64())
        };
        let (x, literal, number) = match (number(a), number(b)) {
            (_, Some(number)) => (a, b, number),
            (Some(number), None) => (b, a, number),
            (None, None) => return None,
        };
        self.within.extend([self.x, literal]);
        self.x = x;
        Some((op, number))
    }
}
