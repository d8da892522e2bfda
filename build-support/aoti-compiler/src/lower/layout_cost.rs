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
    let lies_last = |value: ValueId| last[value] || is_turned(graph, &producers, last, value);
    let own = graph.nodes.iter().map(|node| elements_of(graph, node, last, (&size, &lies_last)));
    own.fold(0, i64::saturating_add)
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

/// Whether a value shows one that has its channels along its last axis, as tokens have them that are an image again.
fn is_turned(
    graph: &Graph,
    producers: &[Option<usize>],
    last: &SecondaryMap<ValueId, bool>,
    value: ValueId,
) -> bool {
    let Some(Node { op: Op::View(coords), inputs, .. }) =
        producers[value.index()].map(|position| &graph.nodes[position])
    else {
        return false;
    };
    let Some((channel, others)) = coords.split_last() else { return false };
    let own = Symbol::axis(1);
    let is_along = channel.affine_in(own).is_some_and(|(step, _)| step.is(1));
    is_along && !last[inputs[0]] && !others.iter().any(|coord| coord.mentions(own))
}

fn elements_of(
    graph: &Graph,
    node: &Node,
    last: &SecondaryMap<ValueId, bool>,
    (size, lies_last): (&dyn Fn(ValueId) -> i64, &dyn Fn(ValueId) -> bool),
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
            let is_across = |input: ValueId| if last[*output] { !lies_last(input) } else { last[input] };
            reads(&|input| is_across(input) && graph.ty(input).rank() == rank)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;

    #[test]
    fn tokens_that_are_an_image_again_have_channels_last_already() {
        let turned = |view: &str| {
            let text = format!(
                "graph {{
                  input %x: f32[2, 8, 6, 6]
                  input %t: f32[72, 8]
                  input %c: f32[2, 8, 6, 6]
                  %i: f32[2, 8, 6, 6] = view {view}
                  %y: f32[2, 8, 6, 6] = add %x, %i
                  output %y
                }}"
            );
            let graph = parse(&text).unwrap_or_else(|error| panic!("{error}"));
            let mut last: SecondaryMap<ValueId, bool> = SecondaryMap::new();
            (last[graph.inputs[0].value], last[graph.outputs[0].value]) = (true, true);
            elements(&graph, &last)
        };
        assert_eq!(turned("%t [36*i0 + 6*i2 + i3, i1]"), 0);
        assert_eq!(turned("%c [i0, i1, 5 - i2, i3]"), 2 * 8 * 6 * 6, "its channels are planes");
    }
}
