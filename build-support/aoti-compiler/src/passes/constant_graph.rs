//! What the compiler did to weights as one graph: from the tensors of the program's state, by their own names, to the
//! constants that kernels read. Its evaluation with the elements of the model file gave those constants; a library
//! evaluates it with others.
//!
//! Knows nothing of the form in which kernels read constants.

use super::{cse, dce};
use crate::graph::{
    Constant, ConstantGraph, ConstantId, ConstantSource, Elements, Graph, Input, InputRole, Node, Op, Origin,
    OriginId, Output, OutputRole, TensorType, Value, ValueId, Weight,
};
use crate::symbolic::Expr;
use cranelift_entity::SecondaryMap;
use indexmap::IndexMap;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The constant graph of a model: `graph` knows all weights by name, `constants` are those that the kernels of its programs
/// read, one program for each kind of device.
pub fn constant_graph<'a>(
    graph: &Graph,
    constants: impl IntoIterator<Item = ((usize, ConstantId), &'a Constant)>,
) -> ConstantGraph {
    let mut assembly = Assembly::new(graph);
    let mut elements = BTreeMap::new();
    let mut outputs: IndexMap<ValueId, ()> = IndexMap::new();
    for (id, constant) in constants {
        let source = match &constant.source {
            ConstantSource::Fixed => Elements::Fixed,
            ConstantSource::Weight => Elements::Input(assembly.input(constant).1),
            ConstantSource::Derived { recipe, output } => {
                let value = assembly.inline(recipe)[*output];
                Elements::Output(outputs.insert_full(value, ()).0)
            }
        };
        elements.insert(id, source);
    }
    let Assembly { weights, mut graph, .. } = assembly;
    let output = |(value, ()): (ValueId, ())| Output {
        value,
        name: String::new(),
        role: OutputRole::User,
        is_complex: false,
    };
    graph.outputs = outputs.into_iter().map(output).collect();
    ConstantGraph { weights, graph: dce(cse(graph)), elements }
}

/// The graph while recipes are copied into it.
struct Assembly {
    weights: Vec<Weight>,
    graph: Graph,
    origin: OriginId,
    /// Position of a weight by its name.
    by_name: BTreeMap<String, usize>,
    /// The outputs of recipes that are there already, with the recipes, by their addresses.
    known: BTreeMap<*const Graph, (Arc<Graph>, Vec<ValueId>)>,
}

impl Assembly {
    fn new(graph: &Graph) -> Assembly {
        let mut own = Graph { name: graph.name.clone(), ..Graph::default() };
        let origin = own.origins.push(Origin::default());
        let mut all: Vec<&Constant> = graph
            .constants
            .values()
            .filter(|constant| constant.source == ConstantSource::Weight && !constant.name.is_empty())
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all.dedup_by(|a, b| a.name == b.name);
        let weights: Vec<Weight> = all
            .iter()
            .enumerate()
            .map(|(position, constant)| Weight {
                name: constant.name.clone(),
                dtype: constant.dtype,
                sizes: constant.sizes.clone(),
                tied: all[..position].iter().position(|other| is_tied(other, constant)),
                input: None,
            })
            .collect();
        let by_name = weights.iter().enumerate().map(|(k, weight)| (weight.name.clone(), k)).collect();
        Assembly { weights, graph: own, origin, by_name, known: BTreeMap::new() }
    }

    /// The input that a weight is, and its position.
    fn input(&mut self, constant: &Constant) -> (ValueId, usize) {
        let named = *self.by_name.get(&constant.name).expect("the graph knows all weights by name");
        let weight = self.weights[named].tied.unwrap_or(named);
        if let Some(input) = self.weights[weight].input {
            return (self.graph.inputs[input].value, input);
        }
        let input = self.graph.inputs.len();
        let Weight { name, dtype, sizes, .. } = &self.weights[weight];
        let shape = sizes.iter().map(|size| Expr::int(*size)).collect();
        let ty = TensorType { dtype: *dtype, shape };
        let value = self.graph.values.push(Value { ty, name: name.clone() });
        self.graph.inputs.push(Input { value, name: name.clone(), role: InputRole::User, is_complex: false });
        self.weights[weight].input = Some(input);
        (value, input)
    }

    /// Copies a recipe, and those that its constants come from; gives its outputs.
    fn inline(&mut self, recipe: &Arc<Graph>) -> Vec<ValueId> {
        if let Some((_, outputs)) = self.known.get(&Arc::as_ptr(recipe)) {
            return outputs.clone();
        }
        let mut values: SecondaryMap<ValueId, Option<ValueId>> = SecondaryMap::new();
        for node in &recipe.nodes {
            if let Op::Constant(id) = &node.op {
                let constant = &recipe.constants[*id];
                values[node.outputs[0]] = Some(match &constant.source {
                    ConstantSource::Weight => self.input(constant).0,
                    ConstantSource::Derived { recipe, output } => self.inline(recipe)[*output],
                    ConstantSource::Fixed => {
                        let own = self.graph.constants.push(constant.clone());
                        self.push(recipe, Node { op: Op::Constant(own), ..node.clone() }, &values)[0]
                    }
                });
                continue;
            }
            for (old, new) in node.outputs.iter().zip(self.push(recipe, node.clone(), &values)) {
                values[*old] = Some(new);
            }
        }
        let defined = |output: &Output| values[output.value].expect("a verified recipe defines its outputs");
        let outputs: Vec<ValueId> = recipe.outputs.iter().map(defined).collect();
        self.known.insert(Arc::as_ptr(recipe), (Arc::clone(recipe), outputs.clone()));
        outputs
    }

    /// Appends a node of a recipe; gives its new results.
    fn push(
        &mut self,
        recipe: &Graph,
        node: Node,
        values: &SecondaryMap<ValueId, Option<ValueId>>,
    ) -> Vec<ValueId> {
        let own = &mut self.graph.values;
        let outputs: Vec<ValueId> =
            node.outputs.iter().map(|old| own.push(recipe.values[*old].clone())).collect();
        let operand = |old: &ValueId| values[*old].expect("a verified recipe defines values before uses");
        let inputs = node.inputs.iter().map(operand).collect();
        self.graph.nodes.push(Node { op: node.op, inputs, outputs: outputs.clone(), origin: self.origin });
        outputs
    }
}

/// Whether two weights are names of one tensor.
fn is_tied(a: &Constant, b: &Constant) -> bool {
    !a.data.is_empty() && a.shares_memory(b) && a.dtype == b.dtype && a.sizes == b.sizes
}
