//! Conditions between sizes that the export states beside the graph: the guards it recorded and the assertions on
//! sizes that it left among the calls.
//!
//! What follows from the ranges is dropped. A bound on a value read from data narrows its symbol's range.

use super::expr::Scope;
use super::expr::parse;
use super::schema::{Argument, Graph, SymBool, SymBoolArgument};
use super::symbols::Symbols;
use crate::graph::{Guard, Relation};
use crate::symbolic::{Interval, Node};
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
        .filter_map(|node| {
            let Argument::SymBool(SymBoolArgument::Name(name)) = &node.inputs.first()?.arg else {
                return None;
            };
            let SymBool::Expr(expr) = graph.sym_bool_values.get(name)? else { return None };
            Some(expr.expr_str.as_str())
        })
        .collect()
}

fn add(guard: Guard, symbols: &mut Symbols, guards: &mut Vec<Guard>) {
    let gap = (&guard.left - &guard.right).interval(symbols.ranges());
    if holds(guard.relation, gap) {
        return;
    }
    let mut used = BTreeSet::new();
    guard.left.collect_symbols(&mut used);
    guard.right.collect_symbols(&mut used);
    if used.iter().any(|symbol| symbols.is_data(*symbol)) {
        bound(&guard, symbols);
        return;
    }
    if !guards.contains(&guard) {
        guards.push(guard);
    }
}

/// Whether the relation holds for every difference in `gap`.
fn holds(relation: Relation, gap: Interval) -> bool {
    match relation {
        Relation::Eq => gap == Interval::point(0),
        Relation::Ne => gap.min > 0 || gap.max < 0,
        Relation::Ge => gap.min >= 0,
        Relation::Gt => gap.min > 0,
        Relation::Le => gap.max <= 0,
        Relation::Lt => gap.max < 0,
    }
}

fn bound(guard: &Guard, symbols: &mut Symbols) {
    let (Node::Sym(symbol), Some(value)) = (guard.left.node(), guard.right.as_int()) else { return };
    let range = match guard.relation {
        Relation::Eq => Interval::point(value),
        Relation::Ge => Interval::new(value, i64::MAX),
        Relation::Gt => Interval::new(value.saturating_add(1), i64::MAX),
        Relation::Le => Interval::new(i64::MIN, value),
        Relation::Lt => Interval::new(i64::MIN, value.saturating_sub(1)),
        Relation::Ne => return,
    };
    symbols.narrow(*symbol, range);
}
