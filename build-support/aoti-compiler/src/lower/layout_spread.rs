//! How a layout spreads from convolutions to what stands between them.

use super::layout::{CHANNELS, keeps_channels};
use crate::graph::{Graph, Node, OpClass, ValueId};
use cranelift_entity::SecondaryMap;

/// Spreads a layout through what stands between convolutions, until nothing changes: from operands to the results that are walked
/// through as these are, and from results to such operands that are made by the same kind of operators. Where `alone`, all that
/// reads such an operand has the layout: others would have to turn it.
pub(super) fn spread(graph: &Graph, last: &mut SecondaryMap<ValueId, bool>, alone: bool) {
    let readers = readers(graph);
    let mut changed = true;
    while std::mem::take(&mut changed) {
        for node in &graph.nodes {
            let Some(output) = node.outputs.first().filter(|output| !last[**output]) else { continue };
            if node.inputs.iter().any(|input| last[*input] && is_alike(graph, node, *input, *output)) {
                (last[*output], changed) = (true, true);
            }
        }
        for node in graph.nodes.iter().rev() {
            let Some(value) = node.outputs.first().copied().filter(|value| !last[*value]) else { continue };
            let is_made = node.inputs.iter().any(|input| is_alike(graph, node, *input, value));
            let reads_so = |reader: &&Node| {
                reader.outputs.first().is_some_and(|to| last[*to] && is_alike(graph, reader, value, *to))
            };
            let mut own = readers[value].iter();
            let is_read_so = own.clone().any(reads_so) && (!alone || own.all(reads_so));
            if is_made && is_read_so {
                (last[value], changed) = (true, true);
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
