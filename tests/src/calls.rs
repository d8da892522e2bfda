//! Programs of a family with a part of their calls: what compiles them is most of what tests take, and one call at a time is enough
//! to have each in several element types and at several levels of a processor.
//!
//! Programs are pure: without the outputs of a call, nothing of it is left.

use aoti_compiler::frontend;
use aoti_compiler::graph::{Graph, Output, OutputRole, text};
use bytes::Bytes;
use std::collections::BTreeMap;

use crate::families::Case;

/// A program with everything that is known of what it gives: cases that differ in their inputs alone have one.
#[derive(Debug)]
pub struct Program {
    /// The model, in any format.
    pub model: Bytes,
    /// Its cases.
    pub cases: Vec<Case>,
}

/// The programs of cases, in their order.
pub fn programs(cases: Vec<Case>) -> Vec<Program> {
    let mut programs: Vec<Program> = Vec::new();
    for case in cases {
        match programs.iter_mut().find(|program| program.model == case.model) {
            Some(program) => program.cases.push(case),
            None => programs.push(Program { model: case.model.clone(), cases: vec![case] }),
        }
    }
    programs
}

impl Program {
    /// The element type that it is about: how the names of its cases begin.
    pub fn element(&self) -> &str {
        self.cases[0].name.split('-').next().unwrap_or_default()
    }

    /// What a call is, whatever its element type.
    fn kind(&self, call: usize) -> String {
        let case = &self.cases[0];
        let position = call_of_each_output(case).iter().position(|own| *own == call);
        position.map_or_else(String::new, |position| case.labels[position].replace(self.element(), "T"))
    }

    /// How many calls it has.
    pub fn calls(&self) -> usize {
        call_of_each_output(&self.cases[0]).last().map_or(1, |last| last + 1)
    }

    /// The program of these calls alone. `None` if there are none of them.
    ///
    /// # Errors
    /// A model that is not read.
    pub fn with_calls(&self, keeps: &dyn Fn(usize) -> bool) -> Result<Option<Program>, String> {
        let kept = (0..self.calls()).filter(|&call| keeps(call)).count();
        if kept == 0 {
            return Ok(None);
        }
        let Program { model, cases } = self;
        if kept == self.calls() {
            return Ok(Some(Program { model: model.clone(), cases: cases.clone() }));
        }
        let calls = call_of_each_output(&cases[0]);
        let keeps_output = |position: usize| keeps(calls[position]);
        let graph = frontend::read("case", model.clone(), &[]).map_err(|findings| findings.to_string())?;
        let model = Bytes::from(text::print(&with_outputs(graph, &keeps_output)));
        let cases = cases.iter().map(|case| case.with_outputs(&model, &keeps_output)).collect();
        Ok(Some(Program { model, cases }))
    }
}

/// The number of the call that each output is from: outputs of one have one label.
fn call_of_each_output(case: &Case) -> Vec<usize> {
    let mut calls: Vec<usize> = Vec::with_capacity(case.labels.len());
    for (position, label) in case.labels.iter().enumerate() {
        calls.push(match (position.checked_sub(1), calls.last()) {
            (Some(before), Some(&call)) => call + usize::from(case.labels[before] != *label),
            _ => 0,
        });
    }
    calls
}

/// A graph with some of the outputs that callers get; states that it changes stay.
fn with_outputs(mut graph: Graph, keeps: &dyn Fn(usize) -> bool) -> Graph {
    let mut position = 0;
    graph.outputs.retain(|output: &Output| {
        if matches!(output.role, OutputRole::State(_)) {
            return true;
        }
        position += 1;
        keeps(position - 1)
    });
    graph
}

/// How much of a family is compiled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Calls in the commonest element types, each at one of the levels.
    Common,
    /// Those, and each call in one of the other types: which one is another's turn for every number.
    Turn(usize),
    /// Every call in every type at every level.
    All,
}

/// Element types in which every call is compiled.
const COMMON: [&str; 2] = ["f32", "i64"];

/// What is compiled of a family's programs at each of the levels, of which there are so many.
///
/// # Errors
/// A model that is not read.
pub fn shared_out(programs: &[Program], extent: Extent, levels: usize) -> Result<Vec<Vec<Program>>, String> {
    let kinds = Kinds::of(programs);
    let at = |level: usize| {
        let own = |program: &Program| {
            program.with_calls(&|call| kinds.is_compiled(program, call, extent, (level, levels)))
        };
        programs.iter().filter_map(|program| own(program).transpose()).collect()
    };
    (0..levels).map(at).collect()
}

/// The calls of a family, whatever their element type.
struct Kinds<'p> {
    /// By what they are.
    kinds: BTreeMap<String, Kind<'p>>,
    /// Types in which every call is compiled.
    common: Vec<&'p str>,
}

struct Kind<'p> {
    /// Their order.
    number: usize,
    /// In which it is called.
    types: Vec<&'p str>,
}

impl<'p> Kinds<'p> {
    fn of(programs: &'p [Program]) -> Kinds<'p> {
        let mut kinds: BTreeMap<String, Kind<'_>> = BTreeMap::new();
        for program in programs {
            for call in 0..program.calls() {
                let number = kinds.len();
                let kind = kinds.entry(program.kind(call)).or_insert(Kind { number, types: vec![] });
                if !kind.types.contains(&program.element()) {
                    kind.types.push(program.element());
                }
            }
        }
        let elements = programs.iter().map(Program::element);
        let mut common: Vec<&str> = elements.clone().filter(|element| COMMON.contains(element)).collect();
        // A family that is about other element types is compiled whole.
        if common.is_empty() {
            common = elements.collect();
        }
        Kinds { kinds, common }
    }

    /// Whether a call is compiled at one of the levels. In all types that it is compiled in, it is at each of them by turns.
    fn is_compiled(
        &self,
        program: &Program,
        call: usize,
        extent: Extent,
        (level, levels): (usize, usize),
    ) -> bool {
        let Kind { number, types } = &self.kinds[&program.kind(call)];
        let is_common = |element: &&str| self.common.contains(element);
        let element = program.element();
        let own = types.iter().position(|one| *one == element).expect("the type has the call");
        let others: Vec<&str> = types.iter().copied().filter(|one| !is_common(one)).collect();
        // What a common type has too is another's at every second call at most.
        let turns = others.len().max(if others.len() < types.len() { 2 } else { 1 });
        match extent {
            Extent::All => true,
            _ if is_common(&element) => (number + own) % levels == level,
            Extent::Common => false,
            Extent::Turn(turn) => {
                let has_turn = others.get((number + turn) % turns) == Some(&element);
                has_turn && (number / turns + own) % levels == level
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families;

    /// The calls that are compiled, as `type: kind`, of a level each.
    fn compiled(programs: &[Program], extent: Extent) -> Vec<Vec<String>> {
        let kinds = Kinds::of(programs);
        let at = |level| {
            let own = |program: &Program| {
                let kept =
                    (0..program.calls()).filter(|&call| kinds.is_compiled(program, call, extent, (level, 2)));
                kept.map(|call| format!("{}: {}", program.element(), program.kind(call))).collect::<Vec<_>>()
            };
            programs.iter().flat_map(own).collect()
        };
        (0..2).map(at).collect()
    }

    #[test]
    fn every_call_is_compiled_in_the_common_types_and_in_the_others_by_turns() {
        let programs = programs(families::read("unary"));
        let all = compiled(&programs, Extent::All);
        assert_eq!(all[0], all[1]);
        let mut seen = Vec::new();
        for turn in 0..8 {
            let mut own = compiled(&programs, Extent::Turn(turn)).concat();
            let count = own.len();
            let kinds: std::collections::BTreeSet<_> =
                own.iter().map(|call| call.split_once(": ").expect("both are there").1.to_owned()).collect();
            assert_eq!(kinds.len(), Kinds::of(&programs).kinds.len(), "each kind is compiled");
            let common = |call: &&String| call.starts_with("f32: ") || call.starts_with("i64: ");
            assert_eq!(own.iter().filter(common).count(), all[0].iter().filter(common).count());
            own.sort();
            own.dedup();
            assert_eq!(own.len(), count, "each at one level");
            seen.append(&mut own);
        }
        seen.sort();
        seen.dedup();
        let mut all = all[0].clone();
        all.sort();
        assert_eq!(seen, all, "turns are all that there is");
    }

    #[test]
    fn a_part_of_a_program_has_what_its_calls_give() {
        let programs = programs(families::read("mutation"));
        let whole = programs.iter().find(|program| program.element() == "f32").expect("there is one");
        let part =
            whole.with_calls(&|call| call == 2).expect("the model is read").expect("it has three calls");
        assert_eq!((part.calls(), part.kind(0)), (1, whole.kind(2)));
        assert!(part.cases[0].outputs.len() < whole.cases[0].outputs.len());
        assert_eq!(part.cases[0].outputs.len(), part.cases[0].labels.len());
        assert!(whole.with_calls(&|_| false).expect("nothing is read").is_none());
    }
}
