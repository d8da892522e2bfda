//! Constants computed from constants: evaluated here with the elements that are known now, and, where weights are
//! among what they come from, kept together with the graph that computes them, for other weights.
//!
//! Knows nothing of which values are worth computing.

use crate::graph::{Builder, Constant, ConstantSource, Graph, Groups, ValueId};
use crate::interpret::{Tensor, evaluate};
use std::sync::Arc;

use super::dce::prune;
use super::rewrite::everywhere;

/// Evaluates a graph without inputs and adds a constant for each of its outputs. `None` where it cannot be evaluated.
pub(super) fn derive(builder: &mut Builder, name: &str, recipe: Graph) -> Option<Vec<ValueId>> {
    let recipe = prune(recipe);
    let tensors = evaluate(&recipe, &[]).ok()?;
    add(builder, name, recipe, &tensors, None)
}

/// Adds constants for the outputs of a graph, which are these tensors, and made of these groups. The graph holds nothing else.
pub(super) fn add(
    builder: &mut Builder,
    name: &str,
    recipe: Graph,
    tensors: &[Tensor],
    groups: Option<Arc<Groups>>,
) -> Option<Vec<ValueId>> {
    let is_final = recipe.constants.values().all(Constant::is_fixed);
    let recipe = Arc::new(recipe);
    let source = |output| match is_final {
        true => ConstantSource::Fixed,
        false => ConstantSource::Derived { recipe: Arc::clone(&recipe), output },
    };
    let constant = |(output, tensor): (usize, &Tensor)| {
        let sizes = tensor.sizes().iter().map(|size| i64::try_from(*size)).collect::<Result<_, _>>().ok()?;
        let constant = Constant::new(name, tensor.dtype(), sizes, tensor.bytes().clone());
        builder.constant(Constant { source: source(output), groups: groups.clone(), ..constant }).ok()
    };
    tensors.iter().enumerate().map(constant).collect()
}

/// States that no run will have other weights: passes may then look at all elements.
pub fn freeze(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, _| {
        for constant in graph.constants.values_mut() {
            constant.source = ConstantSource::Fixed;
        }
    })
}
