//! Keys that a query does not see because of where they are.

use super::search::{Search, is_fixed};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Node, Op, Relation, UnaryOp, ValueId};
use crate::lower::element::Element;
use crate::symbolic::Expr;

/// Most operations that the expression of a position is made of.
const MOST_OPERATIONS: usize = 256;

impl Search<'_> {
    /// Scores of which those behind `query + reach` are hidden: what is shown, and the reach.
    pub(super) fn hidden(&mut self, scores: ValueId, coords: &[Expr]) -> Option<(ValueId, Expr)> {
        let mut value = scores;
        // Hiding and widening come to the same in either order.
        while let Some(node) = self.node(value).filter(|node| self.is_cast(node)) {
            value = node.inputs[0];
        }
        let Node { op: Op::Select, inputs, .. } = self.node(value)? else { return None };
        let [condition, yes, no] = inputs.as_slice() else { return None };
        let shown_if = |wanted: bool| self.reach(*condition, coords, wanted);
        let found = if self.is_full(*no, f64::NEG_INFINITY) {
            (*yes, shown_if(true)?)
        } else if self.is_full(*yes, f64::NEG_INFINITY) {
            (*no, shown_if(false)?)
        } else {
            return None;
        };
        let mut between = scores;
        while between != found.0 {
            let node = self.know(between)?;
            between = if matches!(node.op, Op::Cast) { node.inputs[0] } else { found.0 };
        }
        Some(found)
    }

    /// The reach by which a condition on positions is `wanted`.
    fn reach(&self, condition: ValueId, coords: &[Expr], wanted: bool) -> Option<Expr> {
        let node = self.node(condition)?;
        if let Op::View(map) = &node.op {
            return self.reach(node.inputs[0], &self.at(map, coords)?, wanted);
        }
        if let Op::Unary(UnaryOp::Not) = node.op {
            return self.reach(node.inputs[0], coords, !wanted);
        }
        let Op::Binary(BinaryOp::Compare(relation)) = node.op else { return None };
        let mut left = MOST_OPERATIONS;
        let [a, b] = [node.inputs[0], node.inputs[1]].map(|value| self.index(value, coords, &mut left));
        let difference: Expr = &a? - &b?;
        // Of integers, what must not be negative.
        let slack = match (relation, wanted) {
            (Relation::Ge, true) | (Relation::Lt, false) => difference,
            (Relation::Gt, true) | (Relation::Le, false) => &difference - 1,
            (Relation::Le, true) | (Relation::Gt, false) => -&difference,
            (Relation::Lt, true) | (Relation::Ge, false) => &(-&difference) - 1,
            (Relation::Eq | Relation::Ne, _) => return None,
        };
        let query = Expr::sym(self.axes[self.axes.len() - 2].symbol);
        let reach = &(&slack - &query) + &Expr::sym(self.key.symbol);
        is_fixed(&reach).then_some(reach)
    }

    /// The expression that an integer is at some coordinates.
    /// A sum whose operands are one value would be computed twice at each level, so there is a limit of operations.
    fn index(&self, value: ValueId, coords: &[Expr], left: &mut usize) -> Option<Expr> {
        *left = left.checked_sub(1)?;
        if self.graph.ty(value).dtype != DType::I64 {
            return None;
        }
        let node = self.node(value)?;
        let mut operand = |k: usize| self.index(node.inputs[k], coords, left);
        match Element::of(&node.op)? {
            Element::Index(expr) => self.at(std::slice::from_ref(expr), coords)?.pop(),
            Element::Literal(number) => Some(Expr::int(number.to_i64())),
            Element::Binary(BinaryOp::Add) => Some(&operand(0)? + &operand(1)?),
            Element::Binary(BinaryOp::Sub) => Some(&operand(0)? - &operand(1)?),
            Element::View(map) => self.index(node.inputs[0], &self.at(map, coords)?, left),
            Element::Unary(_)
            | Element::Binary(_)
            | Element::Select
            | Element::Cast
            | Element::Pad(..)
            | Element::Gather(_)
            | Element::Cat(_) => None,
        }
    }
}
