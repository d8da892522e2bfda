//! Computes equal things once: nodes with the same operator, operands and result types become one.

use super::dce::has_effect;
use super::rewrite::{everywhere, rewrite};
use crate::graph::{Constant, Graph, Node, Op, TensorType, ValueId};
use indexmap::IndexMap;

/// Constants of at most this many bytes are compared by content; larger ones only if they share their memory.
const SMALL: usize = 4096;

/// Common subexpression elimination; the first of equal nodes stays.
pub fn cse(graph: Graph) -> Graph {
    everywhere(graph, &|graph, ranges| {
        let mut known: IndexMap<Key, Vec<Node>> = IndexMap::new();
        rewrite(graph, ranges, |rewriter, node| {
            if has_effect(&node.op) || matches!(node.op, Op::Cond { .. }) {
                return None;
            }
            let graph = rewriter.builder.graph();
            let types = node.outputs.iter().map(|output| graph.ty(*output).clone()).collect();
            let key = Key { name: node.op.name(), inputs: node.inputs.clone(), types };
            let alike = known.entry(key).or_default();
            if let Some(first) = alike.iter().find(|first| same(graph, &first.op, &node.op)) {
                return Some(first.outputs.clone());
            }
            alike.push(node.clone());
            None
        });
    })
}

/// What equal nodes share at least, apart from parameters.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: &'static str,
    inputs: Vec<ValueId>,
    types: Vec<TensorType>,
}

fn same(graph: &Graph, a: &Op, b: &Op) -> bool {
    match (a, b) {
        (Op::Constant(a), Op::Constant(b)) => {
            a == b || same_constant(&graph.constants[*a], &graph.constants[*b])
        }
        _ => a == b,
    }
}

/// A constant with another name of the program's stays, unless both are one piece of memory (tied weights).
fn same_constant(a: &Constant, b: &Constant) -> bool {
    if a.is_fixed() != b.is_fixed() {
        return false;
    }
    let literal = || a.is_fixed() && a.name == b.name && a.data.len() <= SMALL && a.data == b.data;
    a.shares_memory(b) || literal()
}
