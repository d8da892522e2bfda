//! Which operators a model has, and what translates them.

use super::model::Opened;
use super::ops;
use super::origin::qualified;
use super::proto::{GraphProto, NodeProto};
use super::tensors::Beside;
use super::walk::domain;
use crate::diagnostic::Diagnostics;
use crate::frontend::import::{OperatorCounts, Support};
use crate::frontend::torch::custom::Operators;
use bytes::Bytes;

/// The operators of a model, of its bodies and of its functions, named with their domains: how many nodes, and what translates
/// them.
///
/// # Errors
/// A file that is not readable.
pub(super) fn operators_of(file: Bytes, declared: &Operators) -> Result<OperatorCounts, Diagnostics> {
    let opened = Opened::open(file, Beside::new())?;
    let mut counts = OperatorCounts::new();
    let mut count = |node: &NodeProto| {
        let entry = counts.entry(qualified(node)).or_insert_with(|| (0, support(node, &opened, declared)));
        entry.0 += 1;
    };
    count_graph(opened.graph()?, &mut count);
    for node in opened.functions().flat_map(|function| &function.node) {
        count_node(node, &mut count);
    }
    Ok(counts)
}

fn support(node: &NodeProto, opened: &Opened, declared: &Operators) -> Support {
    if !domain(node).is_empty() && declared.has(&super::custom::target(node)) {
        Support::Project
    } else if opened.function(node).is_some() {
        Support::Function
    } else if ops::find(domain(node), node.op_type()).is_some() {
        Support::Rule
    } else {
        ops::why_not(&qualified(node)).map_or(Support::None, Support::Refused)
    }
}

fn count_graph(graph: &GraphProto, count: &mut dyn FnMut(&NodeProto)) {
    graph.node.iter().for_each(|node| count_node(node, count));
}

fn count_node(node: &NodeProto, count: &mut dyn FnMut(&NodeProto)) {
    count(node);
    let bodies = node.attribute.iter().flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs));
    bodies.for_each(|body| count_graph(body, count));
}

#[cfg(test)]
mod tests {
    use super::super::testing::Model;
    use super::*;
    use crate::frontend::torch::custom::{Operator, OperatorCode};
    use crate::interpret::Tensor;

    #[test]
    fn operators_are_told_with_what_translates_them() {
        let file = Model::new(17)
            .input("x", Tensor::from_f32(&[2], &[1.0, 2.0]))
            .node("Relu", &["x"], &["a"], &[])
            .node("Relu", &["a"], &["b"], &[])
            .node("StringSplit", &["b"], &["c"], &[])
            .node("com.example::Own", &["b"], &["d"], &[])
            .node("com.example::Other", &["b"], &["y"], &[])
            .file(&["y"]);
        let own = Operator {
            name: "com.example::Own".to_owned(),
            schema: "(Tensor x) -> Tensor".to_owned(),
            code: OperatorCode::Function("own".to_owned()),
            decides_sizes: false,
        };
        let found = operators_of(file.into(), &Operators::new(&[own]).unwrap()).unwrap();
        assert_eq!(found["Relu"], (2, Support::Rule));
        assert_eq!(found["com.example::Own"], (1, Support::Project));
        assert_eq!(found["com.example::Other"], (1, Support::None));
        assert!(matches!(found["StringSplit"], (1, Support::Refused(_))));
    }
}
