//! Removes what no output and no effect needs: nodes, values, constants and origins. What stays is renumbered.

use super::rewrite::everywhere;
use crate::graph::{
    Constant, ConstantId, ConstantSource, Graph, InputRole, Node, Op, OpClass, Origin, OriginId, Unused,
    Value, ValueId,
};
use cranelift_entity::{EntityRef, PrimaryMap, SecondaryMap};

/// Dead code elimination. Nodes with effects stay: reads of sizes, assertions, and branches and loops with such inside.
pub fn dce(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, _| {
        sweep(graph);
        compact(graph, Unread::Stay);
    })
}

/// As [`dce`] for a graph that computes constants: it names no weight that it does not read.
pub(super) fn prune(mut graph: Graph) -> Graph {
    sweep(&mut graph);
    compact(&mut graph, Unread::Go);
    graph
}

/// What becomes of weights that nothing reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unread {
    /// They stay known by name: a checkpoint holds them all the same.
    Stay,
    Go,
}

fn sweep(graph: &mut Graph) {
    let mut live: SecondaryMap<ValueId, bool> = SecondaryMap::new();
    for output in &graph.outputs {
        live[output.value] = true;
    }
    let mut kept: Vec<Node> = Vec::with_capacity(graph.nodes.len());
    for node in std::mem::take(&mut graph.nodes).into_iter().rev() {
        if has_effect(&node.op) || node.outputs.iter().any(|output| live[*output]) {
            node.inputs.iter().for_each(|input| live[*input] = true);
            kept.push(node);
        }
    }
    kept.reverse();
    graph.nodes = kept;
}

/// Whether a node does more than give values. A loop may not end, which is an effect too.
pub(super) fn has_effect(op: &Op) -> bool {
    match op.class() {
        OpClass::Effect => true,
        OpClass::Opaque(unused) => unused == Unused::Stays,
        OpClass::Control => {
            let Op::Cond { then, otherwise } = op else { return true };
            then.nodes.iter().chain(&otherwise.nodes).any(|node| has_effect(&node.op))
        }
        OpClass::Source
        | OpClass::Elementwise
        | OpClass::View(_)
        | OpClass::Pad(_)
        | OpClass::Gather(_)
        | OpClass::Scatter(_)
        | OpClass::Concat
        | OpClass::Reduction(_)
        | OpClass::AxisOp
        | OpClass::Contraction => false,
    }
}

/// Renumbers values in order of definition, constants and origins in order of use.
fn compact(graph: &mut Graph, unread: Unread) {
    let mut values = Renumbered { old: std::mem::take(&mut graph.values), ..Renumbered::default() };
    let mut constants: PrimaryMap<ConstantId, Constant> = PrimaryMap::new();
    let mut new_constants: Vec<Option<ConstantId>> = vec![None; graph.constants.len()];
    let mut constant = |id: &mut ConstantId| {
        let old = &graph.constants;
        *id = *new_constants[id.index()].get_or_insert_with(|| constants.push(old[*id].clone()));
    };
    for input in &mut graph.inputs {
        values.define(&mut input.value);
        if let InputRole::State(id) = &mut input.role {
            constant(id);
        }
    }
    let mut origins: PrimaryMap<OriginId, Origin> = PrimaryMap::new();
    let mut new_origins: Vec<Option<OriginId>> = vec![None; graph.origins.len()];
    for node in &mut graph.nodes {
        let slot = &mut new_origins[node.origin.index()];
        node.origin = *slot.get_or_insert_with(|| origins.push(graph.origins[node.origin].clone()));
        node.inputs.iter_mut().for_each(|input| values.rename(input));
        node.outputs.iter_mut().for_each(|output| values.define(output));
        if let Op::Constant(id) = &mut node.op {
            constant(id);
        }
    }
    let is_weight = |constant: &Constant| unread == Unread::Stay && constant.source == ConstantSource::Weight;
    for (id, weight) in graph.constants.iter().filter(|(_, constant)| is_weight(constant)) {
        if new_constants[id.index()].is_none() {
            constants.push(weight.clone());
        }
    }
    graph.outputs.iter_mut().for_each(|output| values.rename(&mut output.value));
    graph.values = values.new;
    graph.constants = constants;
    graph.origins = origins;
}

#[derive(Default)]
struct Renumbered {
    old: PrimaryMap<ValueId, Value>,
    new: PrimaryMap<ValueId, Value>,
    ids: SecondaryMap<ValueId, Option<ValueId>>,
}

impl Renumbered {
    fn define(&mut self, value: &mut ValueId) {
        let id = self.new.push(self.old[*value].clone());
        self.ids[*value] = Some(id);
        *value = id;
    }

    fn rename(&self, value: &mut ValueId) {
        *value = self.ids[*value].expect("a verified graph defines values before their uses");
    }
}
