//! What it is worth, and what it costs, that values have their channels last: the multiply-adds of convolutions that then
//! run over channels, and the elements that are read or written across the order in which they lie. Decides nothing.

use super::layout::{CHANNELS, has_channels_along, keeps_channels};
use crate::graph::{Graph, Node, Op, OpClass, ValueId};
use crate::symbolic::{Expr, Symbol};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Sizes that are not known count as this much.
const TYPICAL_SIZE: i64 = 64;

/// Multiply-adds of the convolutions whose input or output has channels last.
pub(super) fn work(graph: &Graph, last: &SecondaryMap<ValueId, bool>) -> i64 {
    let convolutions = graph.nodes.iter().filter_map(|node| {
        let Op::Conv(conv) = &node.op else { return None };
        let (input, output) = (node.inputs[0], node.outputs[0]);
        let own = graph.ty(node.inputs[1]).shape.get(CHANNELS..).map_or(1, volume);
        (!conv.transposed && (last[input] || last[output]))
            .then(|| own.saturating_mul(volume(&graph.ty(output).shape)))
    });
    convolutions.fold(0, i64::saturating_add)
}

/// Elements that operators read or write across the order in which they lie.
pub(super) fn elements(graph: &Graph, last: &SecondaryMap<ValueId, bool>) -> i64 {
    let producers = graph.producers();
    let size = |value: ValueId| {
        let source = source(graph, &producers, value);
        let is_computed = producers[source.index()]
            .is_some_and(|position| matches!(graph.nodes[position].op, Op::Full(_) | Op::Index(_)));
        if is_computed || is_flat(graph, source) { 0 } else { volume(&graph.ty(source).shape) }
    };
    graph.nodes.iter().map(|node| elements_of(graph, node, last, &size)).fold(0, i64::saturating_add)
}

/// The value whose elements a view shows: what is repeated by one is read, and counts, once.
fn source(graph: &Graph, producers: &[Option<usize>], mut value: ValueId) -> ValueId {
    while let Some(Node { op: Op::View(_), inputs, .. }) =
        producers[value.index()].map(|position| &graph.nodes[position])
    {
        value = inputs[0];
    }
    value
}

fn elements_of(
    graph: &Graph,
    node: &Node,
    last: &SecondaryMap<ValueId, bool>,
    size: &dyn Fn(ValueId) -> i64,
) -> i64 {
    let Some(output) = node.outputs.first() else { return 0 };
    let reads = |is_turned: &dyn Fn(ValueId) -> bool| -> i64 {
        node.inputs.iter().filter(|input| is_turned(**input)).map(|input| size(*input)).sum()
    };
    match node.op.class() {
        OpClass::View(coords) | OpClass::Pad(coords) => {
            let end = graph.ty(*output).rank().checked_sub(1).and_then(|end| u32::try_from(end).ok());
            let is_along = |end: u32| has_channels_along(coords, Symbol::axis(end));
            let follows = keeps_channels(coords) || end.is_some_and(is_along);
            reads(&|input| last[input] && !follows)
        }
        OpClass::Reduction(axes) => {
            let mixes = axes.contains(&CHANNELS) && axes.len() > 1;
            reads(&|input| last[input] && mixes)
        }
        OpClass::Elementwise | OpClass::Concat => {
            let rank = graph.ty(*output).rank();
            reads(&|input| last[input] != last[*output] && graph.ty(input).rank() == rank)
        }
        // A template reads its input in either order, and writes with lanes over channels.
        OpClass::Contraction if node.op != Op::MatMul => {
            if last[node.inputs[0]] && !last[*output] {
                size(*output)
            } else {
                0
            }
        }
        OpClass::Source
        | OpClass::Gather(_)
        | OpClass::Scatter(_)
        | OpClass::AxisOp
        | OpClass::Contraction
        | OpClass::Opaque(_)
        | OpClass::Effect
        | OpClass::Control => reads(&|input| last[input]),
    }
}

/// Whether a value has one pixel, or one channel: either order is the same then.
fn is_flat(graph: &Graph, value: ValueId) -> bool {
    let shape = &graph.ty(value).shape;
    shape.len() <= CHANNELS || shape[CHANNELS].is(1) || shape[CHANNELS + 1..].iter().all(|size| size.is(1))
}

pub(super) fn volume(shape: &[Expr]) -> i64 {
    shape.iter().map(|size| size.as_int().unwrap_or(TYPICAL_SIZE)).fold(1, i64::saturating_mul)
}
