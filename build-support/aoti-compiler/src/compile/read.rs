//! Reads a model, for the smallest sizes for which it compiles.

use crate::diagnostic::Diagnostics;
use crate::frontend::torch::custom::{Operator, Operators};
use crate::frontend::{self, Import, Least, ModelFile};
use crate::graph::{Condition, Graph, Op};
use crate::loops::bounds::Outside;

/// Reads a model of any supported format and turns it into a core graph.
pub fn import(name: &str, model: impl Into<ModelFile>) -> Result<Graph, Diagnostics> {
    import_with(name, model, &[])
}

/// The same with operators that the user's project declares.
pub fn import_with(
    name: &str,
    model: impl Into<ModelFile>,
    operators: &[Operator],
) -> Result<Graph, Diagnostics> {
    read(name, &model.into(), operators, &mut Ok)
}

/// Why a graph cannot be compiled.
pub(super) enum Stop {
    /// It is refused.
    Refused(Diagnostics),
    /// A stage failed.
    Outside(Outside),
}

impl From<Diagnostics> for Stop {
    fn from(findings: Diagnostics) -> Stop {
        Stop::Refused(findings)
    }
}

impl From<Outside> for Stop {
    fn from(outside: Outside) -> Stop {
        Stop::Outside(outside)
    }
}

/// Reads a model for the smallest sizes for which everything that follows succeeds: a rule or a proof may need to know that a
/// size is neither 0 nor 1, where export only assumes it.
///
/// # Panics
///
/// Where a stage fails for the sizes that the file states: that is a bug of the compiler.
pub(super) fn read<T>(
    name: &str,
    model: &ModelFile,
    operators: &[Operator],
    then: &mut dyn FnMut(Graph) -> Result<T, Stop>,
) -> Result<T, Diagnostics> {
    let done = |result: Result<T, Stop>| match result {
        Ok(value) => Ok(value),
        Err(Stop::Refused(findings)) => Err(findings),
        Err(Stop::Outside(outside)) => panic!("{outside}"),
    };
    // What is wrong with a declaration would be told again for every call.
    let operators = Operators::new(operators)?;
    let stated = || frontend::read(Least::Stated, name, model, &operators);
    for least in [0, 1].map(Least::Size) {
        let Import { graph, asked, is_stated } = match frontend::read(least, name, model, &operators) {
            Ok(import) => import,
            Err(_) => continue,
        };
        if is_stated {
            break;
        }
        let asks_more = conditions(&graph).iter().any(|condition| !asked.contains(condition));
        if asks_more && stated().is_ok_and(|stated| !takes_all_of(&graph, &stated.graph)) {
            continue;
        }
        if let Ok(value) = then(graph) {
            return Ok(value);
        }
    }
    done(then(stated()?.graph))
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
            frontend::text::import("g", text.into()).unwrap_or_else(|error| panic!("{error}"))
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
