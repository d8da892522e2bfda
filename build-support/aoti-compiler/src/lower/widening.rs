//! Which products convert their right operand as they read it, so that the converted one is never in memory.

use crate::graph::{Graph, Node, Op, ValueId};
use crate::target::Target;

/// Whether a node is a product that reads its right operand as it is before it is converted, on this target: one of few rows.
pub(super) fn widens_right(graph: &Graph, node: &Node, target: &Target) -> bool {
    if node.op != Op::MatMul {
        return false;
    }
    let left = graph.ty(node.inputs[0]);
    let rows = left.shape[left.rank() - 2].as_int();
    rows.is_some_and(|rows| (1..=target.widening_rows(left.dtype)).contains(&rows))
}

/// Whether a node converts numbers to a type of more bytes that holds them all.
pub(super) fn is_widening(graph: &Graph, node: &Node) -> bool {
    let dtype = |value: &ValueId| graph.ty(*value).dtype;
    node.op == Op::Cast && dtype(&node.outputs[0]).widens(dtype(&node.inputs[0]))
}
