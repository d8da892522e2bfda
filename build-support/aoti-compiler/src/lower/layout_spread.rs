//! How a layout spreads from convolutions to what stands between them.

use super::layout::{CHANNELS, keeps_channels};
use crate::graph::{Graph, Node, OpClass, ValueId};
use cranelift_entity::{EntityRef, SecondaryMap};

/// Spreads a layout through what stands between convolutions, until nothing changes: from operands to the results that are walked
/// through as these are, and from results to such operands that are made by the same kind of operators.
/// Where `alone`, all that reads such an operand has it: others would have to turn it.
pub(super) fn spread(graph: &Graph, last: &mut SecondaryMap<ValueId, bool>, alone: bool) {
    let (producers, readers) = (graph.producers(), readers(graph));
    let is_made = |value: ValueId| {
        let maker = producers[value.index()].map(|position| &graph.nodes[position]);
        maker.is_some_and(|maker| maker.inputs.iter().any(|input| is_alike(graph, maker, *input, value)))
    };
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for node in &graph.nodes {
            let Some(output) = node.outputs.first().filter(|output| !last[**output]) else { continue };
            if node.inputs.iter().any(|input| last[*input] && is_alike(graph, node, *input, *output)) {
                (last[*output], changed) = (true, true);
            }
        }
        for node in graph.nodes.iter().rev() {
            let Some(output) = node.outputs.first().filter(|output| last[**output]) else { continue };
            for input in &node.inputs {
                let is_read_so = |last: &SecondaryMap<ValueId, bool>| {
                    let reads_so = |reader: &&Node| {
                        let result = reader.outputs.first().copied();
                        result.is_some_and(|to| last[to] && is_alike(graph, reader, *input, to))
                    };
                    !alone || readers[*input].iter().all(reads_so)
                };
                if !last[*input]
                    && is_alike(graph, node, *input, *output)
                    && is_made(*input)
                    && is_read_so(last)
                {
                    (last[*input], changed) = (true, true);
                }
            }
        }
    }
}

/// Whether an operator walks through an operand as through its result, channel by channel.
fn is_alike(graph: &Graph, node: &Node, input: ValueId, output: ValueId) -> bool {
    let (from, to) = (graph.ty(input).rank(), graph.ty(output).rank());
    if from < 3 || to < 3 {
        return false;
    }
    match node.op.class() {
        OpClass::Elementwise | OpClass::Concat => from == to,
        OpClass::View(coords) | OpClass::Pad(coords) => keeps_channels(coords),
        OpClass::Reduction(axes) => axes.iter().all(|axis| *axis > CHANNELS),
        OpClass::Source
        | OpClass::Gather(_)
        | OpClass::Scatter(_)
        | OpClass::AxisOp
        | OpClass::Contraction
        | OpClass::Opaque(_)
        | OpClass::Effect
        | OpClass::Control => false,
    }
}

/// The nodes that read each value.
fn readers(graph: &Graph) -> SecondaryMap<ValueId, Vec<&Node>> {
    let mut readers: SecondaryMap<ValueId, Vec<&Node>> = SecondaryMap::new();
    for node in &graph.nodes {
        node.inputs.iter().for_each(|input| readers[*input].push(node));
    }
    readers
}
