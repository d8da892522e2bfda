//! Computes equal things once: nodes with the same operator, operands and result types become one.

use super::dce::has_effect;
use super::rewrite::{everywhere, rewrite};
use crate::graph::{Constant, Graph, Node, Op, TensorType, ValueId};
use indexmap::IndexMap;
use rustc_hash::FxHasher;
use std::hash::{Hash, Hasher};

/// Constants of at most this many bytes are compared by content; larger ones only if they share their memory.
const SMALL: usize = 4096;

/// Common subexpression elimination; the first of equal nodes stays.
pub fn cse(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let mut known: IndexMap<Key, Vec<Node>> = IndexMap::new();
        rewrite(graph, ranges, &mut |rewriter, node| {
            // What a user's function gives may differ from call to call, and other ranks count collectives.
            if has_effect(&node.op) || matches!(node.op, Op::Cond { .. } | Op::Extern(_) | Op::Collective(_))
            {
                return None;
            }
            let graph = rewriter.builder.graph();
            let types = node.outputs.iter().map(|output| graph.ty(*output).clone()).collect();
            let parameters = fingerprint(graph, &node.op);
            let key = Key { name: node.op.name(), parameters, inputs: node.inputs.clone(), types };
            let alike = known.entry(key).or_default();
            if let Some(first) = alike.iter().find(|first| same(graph, &first.op, &node.op)) {
                return Some(first.outputs.clone());
            }
            alike.push(node.clone());
            None
        });
    })
}

/// What equal nodes share at least.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    name: &'static str,
    /// Equal where the parameters are: see [`fingerprint`].
    parameters: u64,
    inputs: Vec<ValueId>,
    types: Vec<TensorType>,
}

/// A hash of the parameters of which a program may have thousands beside equal operands: what has no operands at all, and
/// views of one value. Without it each of these would be compared with all before it.
fn fingerprint(graph: &Graph, op: &Op) -> u64 {
    let mut hasher = FxHasher::default();
    match op {
        Op::Constant(id) => {
            let constant = &graph.constants[*id];
            // As `same_constant` compares them: what is equal in memory is equal in content too.
            if constant.is_fixed() && constant.data.len() <= SMALL {
                constant.data.hash(&mut hasher);
            } else {
                (constant.data.as_ptr(), constant.data.len()).hash(&mut hasher);
            }
        }
        Op::Full(value) => value.hash(&mut hasher),
        Op::Index(value) => value.hash(&mut hasher),
        Op::View(coords) => coords.hash(&mut hasher),
        Op::Pad { coords, fill } => (coords, fill).hash(&mut hasher),
        Op::Gather(coords) => coords.hash(&mut hasher),
        Op::Unary(_)
        | Op::Binary(_)
        | Op::Select
        | Op::Cast
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
        | Op::While { .. } => {}
    }
    hasher.finish()
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
