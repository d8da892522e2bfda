//! Parts of a network whose values may have their channels last, and whether they do: as a record says, or as is thought to be
//! faster.
//!
//! Values are in one part where an operator reads or writes both: then it walks over them in one order, or turns elements.

use super::layout_cost;
use crate::cost::{Cost, WorkKind};
use crate::graph::{Graph, Node, Op, ValueId};
use crate::loops::Channels;
use crate::target::Target;
use crate::tuning::{Alternative, Config, Decisions, TuningKey};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::BTreeMap;

/// How much longer the multiply-adds of a convolution take whose channels do not lie side by side.
const APART: f64 = 1.2;

/// Values that have their channels in one place.
pub(super) struct Neighbourhood {
    /// In the order in which they are made.
    pub(super) values: Vec<ValueId>,
}

/// The parts of a network among values that may have their channels last, in the order of their first values.
pub(super) fn neighbourhoods(graph: &Graph, last: &SecondaryMap<ValueId, bool>) -> Vec<Neighbourhood> {
    let mut joined: Vec<usize> = (0..graph.values.len()).collect();
    for node in &graph.nodes {
        let mut own = touched(node).filter(|value| last[*value]).map(|value| root(&joined, value.index()));
        let Some(first) = own.next() else { continue };
        let others: Vec<usize> = own.collect();
        for other in others {
            let (first, other) = (root(&joined, first), root(&joined, other));
            joined[first.max(other)] = first.min(other);
        }
    }
    let mut parts: BTreeMap<usize, Vec<ValueId>> = BTreeMap::new();
    for value in graph.values.keys().filter(|value| last[*value]) {
        parts.entry(root(&joined, value.index())).or_default().push(value);
    }
    parts.into_values().map(|values| Neighbourhood { values }).collect()
}

/// The smallest value that one is joined with.
fn root(joined: &[usize], mut value: usize) -> usize {
    while joined[value] != value {
        value = joined[value];
    }
    value
}

fn touched(node: &Node) -> impl Iterator<Item = ValueId> + '_ {
    node.inputs.iter().chain(&node.outputs).copied()
}

impl Neighbourhood {
    /// Where the channels of its values are.
    pub(super) fn channels(&self, graph: &Graph, target: &Target, questions: &mut Decisions) -> Channels {
        let mut own: SecondaryMap<ValueId, bool> = SecondaryMap::new();
        self.values.iter().for_each(|value| own[*value] = true);
        let nodes: Vec<&Node> =
            graph.nodes.iter().filter(|node| touched(node).any(|value| own[value])).collect();
        let work = layout_cost::work(graph, &own) as f64;
        let turned = if target.pays_for_turning() { layout_cost::elements(graph, &own) as f64 } else { 0.0 };
        let last = Cost::of(WorkKind::VectorFma, work).and(WorkKind::TransposedAccess, turned);
        let first = Cost::of(WorkKind::VectorFma, APART * work);
        let prices = target.prices();
        let places = if prices.total(&last) <= prices.total(&first) {
            [(Channels::Last, last), (Channels::First, first)]
        } else {
            [(Channels::First, first), (Channels::Last, last)]
        };
        let answers = places.map(|(place, cost)| Alternative::new(Config::new(place.name()), cost)).to_vec();
        let key = TuningKey::of_nodes("channels", graph, (&nodes, &self.values), target);
        let recorded = questions.ask(key, answers, || about(graph, &nodes));
        places[recorded.unwrap_or(0)].0
    }
}

/// A part of a network, by the names of its convolutions.
fn about(graph: &Graph, nodes: &[&Node]) -> String {
    let convolutions = nodes.iter().filter(|node| matches!(node.op, Op::Conv(_)));
    let mut names = convolutions.map(|node| graph.name_of(node));
    match (names.next(), names.next_back()) {
        (Some(first), Some(last)) => format!("channels of {first} to {last}"),
        (Some(only), None) => format!("channels of {only}"),
        (None, _) => "channels".to_owned(),
    }
}
