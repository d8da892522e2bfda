//! For which sizes a model is read: the smallest for which everything that follows succeeds.

use super::format_of;
use super::import::{Import, MinSize, ModelFile};
use super::torch::custom::Operators;
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::graph::{Condition, Graph, Op};

/// Reads a model for the smallest sizes for which `then` succeeds, and returns what it gives: a rule or a proof may need to know
/// that a size is neither 0 nor 1, where exporters only assume it.
///
/// # Errors
/// What is wrong if the model is read for the sizes that the file states.
pub(crate) fn read_with<T, E: From<Diagnostics>>(
    name: &str,
    model: &ModelFile,
    operators: &Operators,
    then: &mut dyn FnMut(Graph) -> Result<T, E>,
) -> Result<T, E> {
    let format = format_of(&model.file);
    if let Some(name) = model.shapes.keys().next().filter(|_| !format.takes_shapes) {
        let finding =
            Diagnostic::new(Code::Names, format!("the shape of the input `{name}` is that of its file"));
        let finding = finding.help("`shapes` are of ONNX models; leave them out");
        return Err(Diagnostics::from(finding).into());
    }
    let import = |min| (format.import)(min, name, model, operators);
    for min in [0, 1].map(MinSize::Lowered) {
        let Ok(Import { graph, asked, is_stated }) = import(min) else { continue };
        if is_stated {
            return then(graph);
        }
        let asks_more = conditions(&graph).iter().any(|condition| !asked.contains(condition));
        if asks_more && import(MinSize::Stated).is_ok_and(|stated| !takes_all_of(&graph, &stated.graph)) {
            continue;
        }
        if let Ok(value) = then(graph) {
            return Ok(value);
        }
    }
    then(import(MinSize::Stated)?.graph)
}

/// Whether whatever the graph asks for holds for all sizes that the other one takes.
fn takes_all_of(graph: &Graph, other: &Graph) -> bool {
    let asked = conditions(other);
    let mut facts = other.facts();
    asked.iter().for_each(|condition| condition.assume(&mut facts));
    let holds = |condition: &Condition| asked.contains(&condition) || condition.decide(&facts) == Some(true);
    graph.symbols.len() == other.symbols.len() && conditions(graph).into_iter().all(holds)
}

/// What a graph asks of sizes, before a run and during it.
fn conditions(graph: &Graph) -> Vec<&Condition> {
    let mut all: Vec<&Condition> = graph.guards.iter().map(|guard| &guard.condition).collect();
    graph.visit(&mut |_, node| {
        if let Op::Require(guard) = &node.op {
            all.push(&guard.condition);
        }
    });
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_sizes_are_not_taken_for_larger_ones() {
        let graph = |least: i64, guards: &str| {
            let text = format!(
                "graph \"g\" {{\n  symbol s0 \"n\" in {least}..9 from input 0 axis 0\n  {guards}\n  input %0 \"x\": f32[s0]\n  output %0 \"y\"\n}}\n"
            );
            crate::frontend::text::import("g", text.into()).unwrap_or_else(|error| panic!("{error}"))
        };
        let stated = graph(2, "");
        assert!(takes_all_of(&graph(0, ""), &stated));
        assert!(takes_all_of(&graph(0, "guard [s0] ne [1]"), &stated));
        assert!(!takes_all_of(&graph(0, "guard [min(1, s0)] eq [s0]"), &stated));
        assert!(!takes_all_of(&graph(0, "guard [s0] ge [3]"), &stated));
        assert!(takes_all_of(&graph(0, "guard [s0] ge [3]"), &graph(2, "guard [s0] ge [3]")));
        assert!(takes_all_of(&graph(0, "guard [s0] ge [3]"), &graph(2, "guard [s0] ge [4]")));
    }
}
