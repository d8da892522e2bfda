//! Which parameters, buffers and constants a program overwrites.
//!
//! Functional programs state it in their signature. Programs as first exported do not: an in-place call writes to a
//! buffer, perhaps through views of it. Here such writes are found, so that the buffer becomes state. Taking a copy
//! for a view does no harm beyond keeping state that never changes.

use super::origin::target;
use super::schema::{Argument, Graph, InputSpec, Node, OutputSpec};
use crate::frontend::torch::aten::{STATISTICS, updates_where};
use indexmap::{IndexMap, IndexSet};
use std::collections::BTreeSet;

/// Operators whose results may share the memory of their first operand.
const VIEWS: &[&str] = &[
    "H",
    "T",
    "alias",
    "as_strided",
    "chunk",
    "contiguous",
    "detach",
    "detach_",
    "diagonal",
    "dsplit",
    "expand",
    "expand_as",
    "flatten",
    "hsplit",
    "imag",
    "mH",
    "mT",
    "moveaxis",
    "movedim",
    "narrow",
    "numpy_T",
    "permute",
    "ravel",
    "real",
    "requires_grad_",
    "reshape",
    "reshape_as",
    "select",
    "slice",
    "split",
    "split_with_sizes",
    "squeeze",
    "squeeze_",
    "swapaxes",
    "swapaxes_",
    "swapdims",
    "swapdims_",
    "t",
    "t_",
    "tensor_split",
    "to",
    "transpose",
    "transpose_",
    "type_as",
    "unbind",
    "unflatten",
    "unfold",
    "unsafe_chunk",
    "unsafe_split",
    "unsqueeze",
    "unsqueeze_",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
    "vsplit",
    "_unsafe_view",
    "_reshape_alias",
    "_to_copy",
];

/// What a program overwrites.
#[derive(Default)]
pub(super) struct Mutation {
    /// Qualified names of everything overwritten.
    pub(super) names: IndexSet<String>,
    /// (value, qualified name) of what is overwritten by calls and not stated in the signature.
    pub(super) unstated: Vec<(String, String)>,
}

/// Finds everything that is overwritten, and what other programs overwrite: that is then overwritten by itself.
pub(super) fn mutation(
    graph: &Graph,
    inputs: &[InputSpec],
    outputs: &[OutputSpec],
    others: &BTreeSet<String>,
) -> Mutation {
    let mut mutation = Mutation::default();
    mutation.names.extend(outputs.iter().filter_map(|spec| match spec {
        OutputSpec::BufferMutation(spec) => Some(spec.buffer_name.clone()),
        OutputSpec::ParameterMutation(spec) => Some(spec.parameter_name.clone()),
        OutputSpec::User(_)
        | OutputSpec::Loss(_)
        | OutputSpec::InputMutation(_)
        | OutputSpec::ParameterGradient(_)
        | OutputSpec::InputGradient(_)
        | OutputSpec::Token(_)
        | OutputSpec::Unknown(_) => None,
    }));
    let written = written(graph);
    for spec in inputs {
        let (value, name) = match spec {
            InputSpec::Parameter(spec) => (&spec.arg.name, &spec.parameter_name),
            InputSpec::Buffer(spec) => (&spec.arg.name, &spec.buffer_name),
            InputSpec::TensorConstant(spec) => (&spec.arg.name, &spec.tensor_constant_name),
            InputSpec::User(_)
            | InputSpec::CustomObj(_)
            | InputSpec::Token(_)
            | InputSpec::Constant(_)
            | InputSpec::Unknown(_) => continue,
        };
        let is_mutated = written.contains(value.as_str()) || others.contains(name);
        if is_mutated && mutation.names.insert(name.clone()) {
            mutation.unstated.push((value.clone(), name.clone()));
        }
    }
    mutation
}

/// Names of the values whose memory calls write to, views traced back to what they look at.
fn written(graph: &Graph) -> IndexSet<&str> {
    let mut viewed: IndexMap<&str, &str> = IndexMap::new();
    let mut written = IndexSet::new();
    for node in &graph.nodes {
        let Some(name) = aten_name(node) else { continue };
        let is_view = VIEWS.contains(&name);
        let statistics = updated_statistics(node, name);
        written.extend(statistics.map(|own| viewed.get(own).copied().unwrap_or(own)));
        let writes = name.ends_with('_') && !name.ends_with("__") && !is_view;
        if !writes && !is_view {
            continue;
        }
        let Some(Argument::Tensor(operand)) = node.inputs.first().map(|input| &input.arg) else { continue };
        let root = viewed.get(operand.name.as_str()).copied().unwrap_or(&operand.name);
        if writes {
            written.insert(root);
        }
        for output in &node.outputs {
            if let Argument::Tensor(tensor) = output {
                viewed.insert(&tensor.name, root);
            } else if let Argument::Tensors(tensors) = output {
                viewed.extend(tensors.iter().map(|tensor| (tensor.name.as_str(), root)));
            }
        }
    }
    written
}

/// The running statistics that a normalisation overwrites.
fn updated_statistics<'n>(node: &'n Node, name: &str) -> impl Iterator<Item = &'n str> {
    let arg = |wanted: &str| node.inputs.iter().find(|input| input.name == wanted).map(|input| &input.arg);
    let updates = updates_where(name).is_some_and(|flag| matches!(arg(flag), Some(Argument::Bool(true))));
    STATISTICS.into_iter().filter(move |_| updates).filter_map(move |own| {
        let Some(Argument::Tensor(tensor)) = arg(own) else { return None };
        Some(tensor.name.as_str())
    })
}

/// `add_` of `torch.ops.aten.add_.Tensor`.
fn aten_name(node: &Node) -> Option<&str> {
    target(&node.target).strip_prefix("aten.")?.split('.').next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frontend::torch::pt2::values::read_json;

    #[test]
    fn writes_are_traced_through_views() {
        let node = |target: &str, operand: &str, result: &str| {
            format!(
                r#"{{"target": "torch.ops.aten.{target}", "outputs": [{{"as_tensor": {{"name": "{result}"}}}}],
                "inputs": [{{"name": "self", "arg": {{"as_tensor": {{"name": "{operand}"}}}}}}]}}"#
            )
        };
        let nodes = [
            node("slice.Tensor", "b", "v"),
            node("select.int", "v", "w"),
            node("copy_.default", "w", "c"),
            node("mul.Tensor", "d", "e"),
            node("add_.Tensor", "e", "f"),
            node("detach_.default", "g", "h"),
            node("batch_norm.default", "h", "i").replace(
                "]}",
                r#", {"name": "running_mean", "arg": {"as_tensor": {"name": "m"}}}, {"name": "training", "arg": {"as_bool": true}}]}"#,
            ),
        ];
        let text = format!(
            r#"{{"inputs": [], "outputs": [], "tensor_values": {{}}, "nodes": [{}]}}"#,
            nodes.join(", ")
        );
        let graph: Graph = read_json(text.as_bytes(), "f").unwrap();
        assert_eq!(written(&graph).into_iter().collect::<Vec<_>>(), ["b", "e", "m"]);
    }
}
