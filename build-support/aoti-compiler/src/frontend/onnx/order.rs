//! Nodes in an order in which each comes behind those whose results it uses.
//!
//! The format asks for it, but ONNX Runtime runs models without it, and tools that insert nodes append them.

use super::body::free_names;
use super::proto::{GraphProto, NodeProto};
use indexmap::IndexMap;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// Puts the nodes of a graph and of its bodies in order.
pub(super) fn sort_graph(graph: &mut GraphProto) {
    sort(&mut graph.node);
}

/// Puts nodes in order, and those of their bodies. Nodes that are in order stay where they are; those of a cycle come last.
pub(super) fn sort(nodes: &mut Vec<NodeProto>) {
    for attribute in nodes.iter_mut().flat_map(|node| &mut node.attribute) {
        attribute.g.iter_mut().chain(&mut attribute.graphs).for_each(sort_graph);
    }
    let before = uses(nodes);
    if before.iter().enumerate().all(|(position, needed)| needed.iter().all(|other| *other < position)) {
        return;
    }
    let mut waits: Vec<usize> = before.iter().map(BTreeSet::len).collect();
    let mut behind: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    for (position, needed) in before.iter().enumerate() {
        needed.iter().for_each(|other| behind[*other].push(position));
    }
    let mut ready: BinaryHeap<_> =
        (0..nodes.len()).filter(|position| waits[*position] == 0).map(Reverse).collect();
    let mut order = vec![usize::MAX; nodes.len()];
    let mut count = 0;
    while let Some(Reverse(position)) = ready.pop() {
        order[position] = count;
        count += 1;
        for other in &behind[position] {
            waits[*other] -= 1;
            if waits[*other] == 0 {
                ready.push(Reverse(*other));
            }
        }
    }
    let mut placed: Vec<(usize, NodeProto)> = order.into_iter().zip(std::mem::take(nodes)).collect();
    placed.sort_by_key(|(place, _)| *place);
    nodes.extend(placed.into_iter().map(|(_, node)| node));
}

/// The other nodes whose results each uses, itself or in its bodies.
fn uses(nodes: &[NodeProto]) -> Vec<BTreeSet<usize>> {
    let mut makers: IndexMap<&str, usize> = IndexMap::new();
    for (position, node) in nodes.iter().enumerate() {
        for name in node.output.iter().filter(|name| !name.is_empty()) {
            makers.entry(name).or_insert(position);
        }
    }
    let needed = |node: &NodeProto| {
        let mut names: BTreeSet<String> = BTreeSet::new();
        for body in node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs)) {
            free_names(body, &mut BTreeSet::new(), &mut names);
        }
        let names = node.input.iter().chain(&names);
        names.filter_map(|name| makers.get(name.as_str()).copied()).collect::<BTreeSet<_>>()
    };
    nodes.iter().map(needed).collect()
}

#[cfg(test)]
mod tests {
    use super::super::testing::Model;
    use crate::interpret::Tensor;

    fn model() -> Model {
        Model::new(13).input("x", Tensor::from_f32(&[2], &[1.0, 2.0]))
    }

    #[test]
    fn nodes_may_come_in_any_order() {
        let found = model()
            .node("Neg", &["b"], &["y"], &[])
            .node("Add", &["a", "x"], &["b"], &[])
            .node("Exp", &["z"], &["a"], &[])
            .node("Sub", &["x", "x"], &["z"], &[])
            .numbers();
        assert_eq!(found, [-2.0, -3.0]);
    }

    #[test]
    fn bodies_use_nodes_that_come_later() {
        let body = |operator: &str| {
            Model::new(13).node("Identity", &["early"], &["own"], &[]).node(
                operator,
                &["late"],
                &["early"],
                &[],
            )
        };
        let bodies = [body("Neg").body("then_branch", &["own"]), body("Abs").body("else_branch", &["own"])];
        let found = model()
            .input("c", Tensor::from_bool(&[], &[true]))
            .node("If", &["c"], &["y"], &bodies)
            .node("Add", &["x", "x"], &["late"], &[])
            .numbers();
        assert_eq!(found, [-2.0, -4.0]);
    }

    #[test]
    fn nodes_that_wait_for_each_other_are_refused() {
        let cyclic = model().node("Add", &["x", "y"], &["a"], &[]).node("Neg", &["a"], &["y"], &[]);
        let message = format!("{:?}", cyclic.import(&["y"]).unwrap_err());
        assert!(message.contains("`y` is not defined"), "{message}");
    }
}
