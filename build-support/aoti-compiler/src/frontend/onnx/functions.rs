//! Functions: operators that a model defines by nodes of others.

use super::call::{Call, malformed};
use super::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};
use super::value::Val;
use super::walk::{Onnx, Scope, canonical_domain};
use crate::frontend::torch::rules::RuleError;
use indexmap::IndexMap;

impl Onnx<'_> {
    /// Translates the body of the function that a node calls.
    pub(super) fn function(&mut self, call: &Call) -> Result<Vec<Val>, RuleError> {
        let opened = self.opened;
        let function = opened.function(call.node).expect("the node calls a function");
        self.inlined(function, call)
    }

    /// Translates the body of a function in place of a node.
    pub(super) fn inlined(&mut self, function: &FunctionProto, call: &Call) -> Result<Vec<Val>, RuleError> {
        let mut scope = Scope::new();
        for (position, name) in function.input.iter().enumerate() {
            scope.insert(name.clone(), call.input(position));
        }
        if call.inputs.len() > function.input.len() {
            return Err(malformed(format!(
                "{} operands of a function of {}",
                call.inputs.len(),
                function.input.len()
            )));
        }
        let given = attributes(function, call.attributes());
        let nodes: Vec<NodeProto> = function.node.iter().map(|node| resolved(node, &given)).collect();
        let scopes = std::mem::replace(&mut self.scopes, vec![scope]);
        let mut versions: IndexMap<String, i64> = self.versions.clone();
        for import in &function.opset_import {
            versions.insert(canonical_domain(import.domain()).to_owned(), import.version());
        }
        let versions = std::mem::replace(&mut self.versions, versions);
        let stated = std::mem::take(&mut self.stated);
        let types = std::mem::take(&mut self.types);
        self.state_types(function.value_info.iter());
        self.nodes(&nodes);
        let results = function.output.iter().map(|name| self.operand(name)).collect();
        self.scopes = scopes;
        self.versions = versions;
        self.stated = stated;
        self.types = types;
        results
    }
}

/// Attributes of a call, with the function's defaults.
fn attributes<'a>(
    function: &'a FunctionProto,
    given: &'a [AttributeProto],
) -> IndexMap<&'a str, &'a AttributeProto> {
    let all = function.attribute_proto.iter().chain(given);
    all.map(|attribute| (attribute.name(), attribute)).collect()
}

/// A node of a function's body with the attributes of its call in place of references to them.
fn resolved(node: &NodeProto, given: &IndexMap<&str, &AttributeProto>) -> NodeProto {
    let attribute = node.attribute.iter().filter_map(|own| {
        let reference = own.ref_attr_name();
        if !reference.is_empty() {
            let mut value = (*given.get(reference)?).clone();
            value.name.clone_from(&own.name);
            return Some(value);
        }
        let mut own = own.clone();
        own.g = own.g.map(|graph| in_body(graph, given));
        own.graphs = own.graphs.into_iter().map(|graph| in_body(graph, given)).collect();
        Some(own)
    });
    NodeProto { attribute: attribute.collect(), ..node.clone() }
}

fn in_body(graph: GraphProto, given: &IndexMap<&str, &AttributeProto>) -> GraphProto {
    let node = graph.node.iter().map(|node| resolved(node, given)).collect();
    GraphProto { node, ..graph }
}
