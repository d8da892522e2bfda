//! Compiles a model of several programs: the states of all are one, so that what one program writes the others read.

use super::{ForDevices, Options, bundle, for_devices, read, transformed};
use crate::codegen::bindings;
use crate::codegen::bundle::SourceBundle;
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::frontend::{self, ModelFile};
use crate::graph::{Constant, Graph, Input, InputRole, Op, OutputRole, SymbolSource, TensorType, Value};
use crate::names::{Language, Namer};
use crate::symbolic::Expr;
use crate::target::GpuTarget;
use std::collections::BTreeSet;

/// A tensor that some program mutates, and its first value. Whose it was first.
struct State {
    name: String,
    program: String,
    constant: Constant,
    is_complex: bool,
}

/// Compiles programs, by name, to one source bundle.
pub(super) fn compile(
    programs: &[(String, ModelFile)],
    targets: &[(GpuTarget, Vec<String>)],
    options: &Options,
) -> Result<SourceBundle, Diagnostics> {
    check_names(programs, options)?;
    let mut states = Vec::new();
    let mut findings = Vec::new();
    for (program, file) in programs {
        let own = of_program(options, program);
        let found = read(&own.name, file, &own.operators, &mut |graph| {
            Ok(states_of(&with_own_names(graph, program), program))
        });
        match found {
            Ok(found) => found.into_iter().for_each(|state| join(&mut states, state, &mut findings)),
            Err(refused) => findings.extend(refused.0.into_iter().map(|finding| of(finding, program))),
        }
    }
    if !findings.is_empty() {
        return Err(Diagnostics(findings));
    }
    let mutated: BTreeSet<String> = states.iter().map(|state: &State| state.name.clone()).collect();
    let mut all: Vec<(Option<&str>, ForDevices)> = Vec::new();
    for (program, file) in programs {
        let own = of_program(options, program);
        let file = ModelFile { states: mutated.clone(), ..file.clone() };
        let scheduled = read(&own.name, &file, &own.operators, &mut |graph| {
            let graph = with_states(with_own_names(graph, program), &states)?;
            let graph = transformed(graph, &own)?;
            Ok(for_devices(&graph, targets, &own)?)
        });
        match scheduled {
            Ok(scheduled) => all.push((Some(program), scheduled)),
            Err(refused) => findings.extend(refused.0.into_iter().map(|finding| of(finding, program))),
        }
    }
    if findings.is_empty() { Ok(bundle(&all, options)) } else { Err(Diagnostics(findings)) }
}

/// What the caller decides about a program of the model.
pub(super) fn of_program(options: &Options, program: &str) -> Options {
    Options {
        name: format!("{} {program}", options.name),
        names: options.names.of_program(program),
        ..options.clone()
    }
}

/// A finding that says which program it is about.
fn of(finding: Diagnostic, program: &str) -> Diagnostic {
    finding.note(format!("in the program `{program}`"))
}

/// Programs become functions of the model's module, and what they are called there must be theirs alone.
fn check_names(programs: &[(String, ModelFile)], options: &Options) -> Result<(), Diagnostics> {
    let mut findings = Vec::new();
    let mut taken: BTreeSet<String> = bindings::OWN.iter().map(|name| (*name).to_owned()).collect();
    for (program, _) in programs {
        let is_identifier = Namer::new(Language::Rust).name(program) == *program;
        let is_free = taken.insert(program.clone()) & taken.insert(format!("{program}_with"));
        if !is_identifier || !is_free {
            let message = format!("no program can be called `{program}`");
            let help = format!(
                "a program becomes a function of the model's module: choose a name in lower snake case, and none of `{}`",
                bindings::OWN.join("`, `")
            );
            findings.push(Diagnostic::new(Code::Programs, message).help(help));
        }
    }
    if options.named_weights {
        let message = "the weights of a model with several programs cannot be given by name".to_owned();
        let help = "use `weights = \"embed\"` or `\"sidecar\"`, without `named-weights`";
        findings.push(Diagnostic::new(Code::Programs, message).help(help));
    }
    if findings.is_empty() { Ok(()) } else { Err(Diagnostics(findings)) }
}

/// The same with states that only this program can have named after it.
fn with_own_names(mut graph: Graph, program: &str) -> Graph {
    for input in graph.inputs.iter_mut().filter(|input| is_state(input.role)) {
        if frontend::is_made_up(&input.name) {
            input.name = format!("{program}.{}", input.name);
        }
    }
    graph
}

fn states_of(graph: &Graph, program: &str) -> Vec<State> {
    let state = |input: &Input| match input.role {
        InputRole::State(constant) => Some(State {
            name: input.name.clone(),
            program: program.to_owned(),
            constant: graph.constants[constant].clone(),
            is_complex: input.is_complex,
        }),
        InputRole::User | InputRole::Generator => None,
    };
    graph.inputs.iter().filter_map(state).collect()
}

/// Adds a state to those of the programs before, unless it is one of them.
fn join(states: &mut Vec<State>, state: State, findings: &mut Vec<Diagnostic>) {
    let Some(known) = states.iter().find(|known| known.name == state.name) else {
        return states.push(state);
    };
    let (one, other) = (&known.constant, &state.constant);
    let what = if one.dtype != other.dtype || one.sizes != other.sizes {
        let of = |constant: &Constant| format!("{} of sizes {:?}", constant.dtype.name(), constant.sizes);
        format!("{} in `{}` and {} in `{}`", of(one), known.program, of(other), state.program)
    } else if one.data != other.data {
        format!("of other first values in `{}` than in `{}`", state.program, known.program)
    } else {
        return;
    };
    let message = format!("the programs mutate a tensor `{}` that is {what}", state.name);
    let help =
        "programs of one model share what they mutate: export them from one module, with caches of one size";
    findings.push(Diagnostic::new(Code::Programs, message).help(help));
}

/// The same graph with the states of all programs, in one order, if it has any of them.
fn with_states(mut graph: Graph, states: &[State]) -> Result<Graph, Diagnostics> {
    refuse_constants(&graph, states)?;
    if !graph.inputs.iter().any(|input| is_state(input.role)) {
        return Ok(graph);
    }
    let mut order: Vec<Option<usize>> =
        (0..graph.inputs.len()).filter(|k| !is_state(graph.inputs[*k].role)).map(Some).collect();
    for state in states {
        let is_own = |input: &Input| input.name == state.name && is_state(input.role);
        order.push(graph.inputs.iter().position(is_own));
    }
    let moved = |old: usize| order.iter().position(|position| *position == Some(old)).unwrap_or(old);
    for symbol in &mut graph.symbols {
        match &mut symbol.source {
            SymbolSource::InputDim { input, .. } | SymbolSource::InputValue { input, .. } => {
                *input = moved(*input);
            }
            SymbolSource::Data => {}
        }
    }
    for output in &mut graph.outputs {
        match &mut output.role {
            OutputRole::State(input) | OutputRole::Mutation(input) => *input = moved(*input),
            OutputRole::User => {}
        }
    }
    let own = graph.inputs.clone();
    let first = order.len() - states.len();
    let input = |(position, old): (usize, &Option<usize>)| match old {
        Some(old) => own[*old].clone(),
        None => unread(&mut graph, &states[position - first]),
    };
    graph.inputs = order.iter().enumerate().map(input).collect();
    Ok(graph)
}

fn is_state(role: InputRole) -> bool {
    match role {
        InputRole::State(_) => true,
        InputRole::User | InputRole::Generator => false,
    }
}

/// An input for a state that the program has nothing to do with.
fn unread(graph: &mut Graph, state: &State) -> Input {
    let shape = state.constant.sizes.iter().map(|size| Expr::int(*size)).collect();
    let ty = TensorType { dtype: state.constant.dtype, shape };
    let value = graph.values.push(Value { ty, name: state.name.clone() });
    let initial = graph.constants.push(state.constant.clone());
    Input { value, name: state.name.clone(), role: InputRole::State(initial), is_complex: state.is_complex }
}

/// Refuses programs in whose file a tensor is a constant that others mutate: of those of PyTorch none is.
fn refuse_constants(graph: &Graph, states: &[State]) -> Result<(), Diagnostics> {
    let mut findings = Vec::new();
    graph.visit(&mut |own, node| {
        let Op::Constant(id) = &node.op else { return };
        if let Some(state) = states.iter().find(|state| state.name == own.constants[*id].name) {
            let message = format!(
                "the tensor `{}` is a constant here and is mutated by the program `{}`",
                state.name, state.program
            );
            let help = "make it a state of both programs";
            findings.push(Diagnostic::new(Code::Programs, message).at(&own.origins[node.origin]).help(help));
        }
    });
    if findings.is_empty() { Ok(()) } else { Err(Diagnostics(findings)) }
}
