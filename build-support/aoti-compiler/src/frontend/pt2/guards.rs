//! Conditions between sizes that the export states beside the graph: the guards it recorded and the assertions on
//! sizes that it left among the calls.
//!
//! What follows from the ranges is dropped. A bound on a value read from data narrows its symbol's range.

use super::expr::Scope;
use super::expr::{Relation, parse};
use super::schema::{Argument, Graph, SymBool, SymBoolArgument};
use super::symbols::Symbols;
use crate::graph::{BinaryOp, Guard};
use crate::symbolic::{Expr, Interval, Node};
use std::collections::BTreeSet;

/// The conditions to check when a run begins.
pub(super) fn guards(code: &[String], graph: &Graph, symbols: &mut Symbols) -> Vec<Guard> {
    let mut texts: Vec<&str> = asserted(graph);
    texts.extend(code.iter().map(String::as_str));
    let mut guards = Vec::new();
    for text in texts {
        // A condition in other terms than sizes is not for the caller to keep: the program checks it itself.
        let Ok(relations) = parse(text).and_then(|tree| tree.relations(symbols)) else { continue };
        for relation in relations {
            add(relation, symbols, &mut guards);
        }
    }
    guards
}

/// Expressions of the symbolic truth values that the program asserts.
fn asserted(graph: &Graph) -> Vec<&str> {
    let calls = graph.nodes.iter().filter(|node| node.target == "torch.ops.aten._assert_scalar.default");
    calls
        .filter_map(|node| match &node.inputs.first()?.arg {
            Argument::SymBool(SymBoolArgument::Name(name)) => match graph.sym_bool_values.get(name)? {
                SymBool::Expr(expr) => Some(expr.expr_str.as_str()),
                SymBool::Bool(_) | SymBool::Unknown(_) => None,
            },
            _ => None,
        })
        .collect()
}

fn add((left, relation, right): Relation, symbols: &mut Symbols, guards: &mut Vec<Guard>) {
    let gap = (&left - &right).interval(symbols.ranges());
    if holds(relation, gap) {
        return;
    }
    let mut used = BTreeSet::new();
    left.collect_symbols(&mut used);
    right.collect_symbols(&mut used);
    if used.iter().any(|symbol| symbols.is_data(*symbol)) {
        bound(&left, relation, &right, symbols);
        return;
    }
    let guard = Guard { left, relation, right };
    if !guards.contains(&guard) {
        guards.push(guard);
    }
}

/// Whether the relation holds for every difference in `gap`.
fn holds(relation: BinaryOp, gap: Interval) -> bool {
    match relation {
        BinaryOp::Eq => gap == Interval::point(0),
        BinaryOp::Ne => gap.min > 0 || gap.max < 0,
        BinaryOp::Ge => gap.min >= 0,
        BinaryOp::Gt => gap.min > 0,
        BinaryOp::Le => gap.max <= 0,
        BinaryOp::Lt => gap.max < 0,
        _ => false,
    }
}

fn bound(left: &Expr, relation: BinaryOp, right: &Expr, symbols: &mut Symbols) {
    let (Node::Sym(symbol), Some(value)) = (left.node(), right.as_int()) else { return };
    let range = match relation {
        BinaryOp::Eq => Interval::point(value),
        BinaryOp::Ge => Interval::new(value, i64::MAX),
        BinaryOp::Gt => Interval::new(value.saturating_add(1), i64::MAX),
        BinaryOp::Le => Interval::new(i64::MIN, value),
        BinaryOp::Lt => Interval::new(i64::MIN, value.saturating_sub(1)),
        _ => return,
    };
    symbols.narrow(*symbol, range);
}
