//! Which products convert their right operand as they read it, so that the converted one is never in memory.

use crate::dtype::DType;
use crate::graph::{Graph, Node, Op, ValueId};
use crate::target::Target;

/// Whether a node is a product that reads its right operand as it is before it is converted, on this target: one of few rows on
/// GPUs, and one of weights on processors, which pack them when the model is built.
pub(super) fn widens_right(graph: &Graph, node: &Node, target: &Target) -> bool {
    if node.op != Op::MatMul {
        return false;
    }
    let left = graph.ty(node.inputs[0]);
    let rows = left.shape[left.rank() - 2].as_int();
    match target {
        Target::Gpu(_) => (1..=target.widening_rows(left.dtype)).contains(&rows.unwrap_or(0)),
        Target::Cpu(_) => {
            stored(graph, node.inputs[1]).is_some_and(|own| target.widens(rows, left.dtype, own))
        }
    }
}

/// The type of the matrix of weights behind views and one conversion, if there is one.
fn stored(graph: &Graph, mut value: ValueId) -> Option<DType> {
    let maker = |value: ValueId| graph.nodes.iter().find(|node| node.outputs.contains(&value));
    let mut is_converted = false;
    loop {
        let node = maker(value)?;
        if matches!(node.op, Op::Constant(_)) {
            let ty = graph.ty(value);
            return (is_converted && ty.rank() == 2).then_some(ty.dtype);
        }
        let converts = !is_converted && is_widening(graph, node);
        if !converts && !matches!(node.op, Op::View(_)) {
            return None;
        }
        is_converted |= converts;
        value = node.inputs[0];
    }
}

/// Whether a node converts numbers to a type of more bytes that holds them all.
pub(super) fn is_widening(graph: &Graph, node: &Node) -> bool {
    let dtype = |value: &ValueId| graph.ty(*value).dtype;
    node.op == Op::Cast && dtype(&node.outputs[0]).widens(dtype(&node.inputs[0]))
}
