//! Gives outputs and dimensions the names that the user asks for.

use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::graph::{Graph, OutputRole};
use std::collections::BTreeSet;

/// Names that go before the program's own.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Names {
    /// Of the outputs, in order; none for the program's.
    pub outputs: Vec<String>,
    /// Of dimensions: the program's name, and the one to use.
    pub dims: Vec<(String, String)>,
    /// Of a model with several programs: those of each that has any, by the program's name.
    pub programs: Vec<(String, Names)>,
}

impl Names {
    /// Those of a program: dimensions that several programs have are named for all of them, or for one.
    pub fn of_program(&self, program: &str) -> Names {
        let own = self.programs.iter().find(|(name, _)| name == program);
        own.map(|(_, names)| names.clone()).unwrap_or_default()
    }
}

/// Renames, or says all that cannot be.
///
/// # Errors
/// Another number of outputs, dimensions that there are not, and two of one name.
pub fn rename(mut graph: Graph, names: &Names) -> Result<Graph, Diagnostics> {
    let mut findings = Vec::new();
    rename_outputs(&mut graph, &names.outputs, &mut findings);
    let known: Vec<String> = graph.symbols.iter().map(|symbol| symbol.name.clone()).collect();
    for (old, new) in &names.dims {
        match known.iter().position(|name| name == old) {
            Some(index) => graph.symbols[index].name.clone_from(new),
            None => {
                let message = format!("there is no dimension `{old}` to be called `{new}`");
                let finding = Diagnostic::new(Code::Names, message);
                findings.push(if known.is_empty() {
                    finding.note("all sizes of the program are fixed")
                } else {
                    finding.help(format!("its dimensions are `{}`", known.join("`, `")))
                });
            }
        }
    }
    let mut seen = BTreeSet::new();
    for symbol in graph.symbols.iter().filter(|_| !names.dims.is_empty()) {
        if !seen.insert(symbol.name.as_str()) {
            findings
                .push(Diagnostic::new(Code::Names, format!("two dimensions are called `{}`", symbol.name)));
        }
    }
    if findings.is_empty() { Ok(graph) } else { Err(Diagnostics(findings)) }
}

/// Such as `1 output` or `2 outputs`.
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

fn rename_outputs(graph: &mut Graph, names: &[String], findings: &mut Vec<Diagnostic>) {
    if names.is_empty() {
        return;
    }
    let is_users = |role: &OutputRole| !matches!(role, OutputRole::State(_));
    let outputs: Vec<_> = graph.outputs.iter_mut().filter(|output| is_users(&output.role)).collect();
    if outputs.len() != names.len() {
        let own: Vec<&str> = outputs.iter().map(|output| output.name.as_str()).collect();
        let message = format!(
            "the model has {}, but is given {}",
            counted(outputs.len(), "output"),
            counted(names.len(), "name")
        );
        let help = format!("its outputs are `{}`", own.join("`, `"));
        return findings.push(Diagnostic::new(Code::Names, message).help(help));
    }
    let mut seen = BTreeSet::new();
    for (output, name) in outputs.into_iter().zip(names) {
        output.name.clone_from(name);
        if !seen.insert(name) {
            findings.push(Diagnostic::new(Code::Names, format!("two outputs are called `{name}`")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
graph \"g\" {
  symbol s0 \"x_d0\" in 1..9 from input 0 axis 0
  symbol s1 \"x_d1\" in 1..9 from input 0 axis 1
  origin o0 = \"\" \"\" \"\"
  input %0 \"x\": f32[s0, s1]
  output %0 \"linear_1\"
}
";

    fn named(outputs: &[&str], dims: &[(&str, &str)]) -> Result<Graph, Diagnostics> {
        let graph = crate::graph::text::parse(TEXT).unwrap();
        let owned = |text: &&str| (*text).to_owned();
        let dims = dims.iter().map(|(old, new)| (owned(old), owned(new))).collect();
        rename(graph, &Names { outputs: outputs.iter().map(owned).collect(), dims, ..Names::default() })
    }

    #[test]
    fn names_asked_for_replace_the_programs() {
        let graph = named(&["logits"], &[("x_d0", "batch")]).unwrap();
        assert_eq!((graph.outputs[0].name.as_str(), graph.symbols[0].name.as_str()), ("logits", "batch"));
        assert_eq!(graph.symbols[1].name, "x_d1");
        assert_eq!(named(&[], &[("x_d0", "x_d1"), ("x_d1", "x_d0")]).unwrap().symbols[0].name, "x_d1");
    }

    #[test]
    fn everything_that_cannot_be_named_is_said_with_what_there_is() {
        let found = named(&["a", "b"], &[("x_d7", "batch"), ("x_d0", "x_d1")]).unwrap_err().0;
        let found: Vec<String> = found.iter().map(ToString::to_string).collect();
        for (finding, part) in found.iter().zip([
            "the model has 1 output, but is given 2 names\n  = help: its outputs are `linear_1`",
            "no dimension `x_d7` to be called `batch`\n  = help: its dimensions are `x_d0`, `x_d1`",
            "two dimensions are called `x_d1`",
        ]) {
            assert!(finding.contains(part), "{finding}");
        }
        assert_eq!(found.len(), 3);
    }
}
