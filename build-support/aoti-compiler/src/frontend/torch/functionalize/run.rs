//! Walks a program call by call: its inputs, the rule of each call, its outputs.

use super::super::rules::unsupported::report::{is_structural, is_unsupported, unsupported_operators};
use super::super::rules::{Args, Context, Kind, Outputs, Registry, RuleError};
use super::default_float::default_float;
use super::poison::Poison;
use super::unify::Unified;
use super::windows::{ReadAs, Storage, Window};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::dtype::DType;
use crate::frontend::torch::aten::{
    Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, ProgramOutput,
};
use crate::frontend::torch::custom::Operators;
use crate::graph::{Builder, Graph, Guard, InputRole, OutputRole, TensorType, ValueId, verify};
use crate::passes::bounds;
use crate::symbolic::{Expr, Node, Symbol};
use indexmap::{IndexMap, IndexSet};
use std::collections::{BTreeMap, BTreeSet};

/// Turns a program of PyTorch's own operators into a core graph.
pub fn functionalize(program: &Program) -> Result<Graph, Diagnostics> {
    functionalize_with(program, &Operators::default())
}

/// Turns a program into a core graph that calls PyTorch's operators and those of the user's project. All operators that are
/// not supported, and all calls that a rule refuses, are reported together.
pub fn functionalize_with(program: &Program, operators: &Operators) -> Result<Graph, Diagnostics> {
    let registry = Registry::with(operators);
    let program = super::vmap::mapped(program);
    let program = super::inline::inlined(&program);
    let program = super::auto_functionalized::undone(&program);
    let program = super::foreach::spread(&program);
    let mut unified = Unified::new(&program);
    loop {
        let (required, graph) = translate(unified.program(), &registry);
        // What is refused may be refused because two sizes were not known to be one.
        if !unified.learn(&required) {
            return graph;
        }
    }
}

/// The core graph of a program, and what it requires of the sizes of inputs.
fn translate(program: &Program, registry: &Registry) -> (Vec<Guard>, Result<Graph, Diagnostics>) {
    let (mut findings, mut builder) = (unsupported_operators(program, registry), Builder::new(&program.name));
    for symbol in &program.symbols {
        builder.symbol(symbol.clone());
    }
    for guard in &program.guards {
        builder.require(guard.condition.clone(), &guard.message);
    }
    let mut walk = Walk::new(program, registry, builder);
    match walk.inputs() {
        Ok(()) => findings.extend(walk.calls()),
        Err(inputs) => findings.extend(inputs.0),
    }
    let outputs = if findings.is_empty() { walk.outputs() } else { Err(Diagnostics(findings)) };
    let defaults = walk.cx.take_default_bounds();
    let graph = walk.cx.b.finish();
    let required = graph.guards.clone();
    (required, outputs.and_then(|()| finished(graph, &defaults)))
}

/// A graph whose sizes have the bounds that follow for them.
fn finished(graph: Graph, defaults: &BTreeMap<Symbol, i64>) -> Result<Graph, Diagnostics> {
    let graph = bounds::follow_or(graph, defaults);
    // What rules build is well formed for programs of torch.export, which read numbers before they use them and have
    // positions that some run is within; other files may hold programs that do not.
    verify(&graph)?;
    Ok(graph)
}

/// A program on its way through the rules.
pub(crate) struct Walk<'a> {
    pub(crate) program: &'a Program,
    pub(crate) registry: &'a Registry<'a>,
    pub(crate) cx: Context,
    /// Each tensor of the program as a window onto a storage.
    pub(crate) windows: IndexMap<String, Window>,
    pub(crate) storages: Vec<Storage>,
    /// Aliasing is tracked only where something is mutated.
    mutates: bool,
    /// Symbols of offsets within PyTorch's storages, which are nothing that a program's results follow from.
    pub(crate) offsets: BTreeSet<Symbol>,
    /// What refused calls would have given.
    poison: Poison,
    /// Values whose sizes are not what the program says.
    pub(crate) misdescribed: BTreeSet<String>,
}

fn offsets(program: &Program) -> BTreeSet<Symbol> {
    let calls = program.calls.iter().filter(|call| call.target == "aten.sym_storage_offset.default");
    let symbol = |output: &Output| match output {
        Output::SymInt(name) => match program.sym_ints.get(name)?.node() {
            Node::Sym(symbol) => Some(*symbol),
            Node::Int(_)
            | Node::Sum { .. }
            | Node::Product(_)
            | Node::FloorDiv(..)
            | Node::Mod(..)
            | Node::Min(..)
            | Node::Max(..) => None,
        },
        Output::Tensor(_) | Output::Tensors(_) | Output::SymBool(_) | Output::SymFloat(_) | Output::None => {
            None
        }
    };
    calls.flat_map(|call| &call.outputs).filter_map(symbol).collect()
}

impl<'a> Walk<'a> {
    pub(crate) fn new(program: &'a Program, registry: &'a Registry<'a>, builder: Builder) -> Walk<'a> {
        let mutates = program.calls.iter().any(|call| registry.changes_operands(call));
        Walk {
            program,
            registry,
            cx: Context { default_float: default_float(program), ..Context::new(builder) },
            windows: IndexMap::new(),
            storages: vec![],
            mutates,
            offsets: offsets(program),
            poison: Poison::default(),
            misdescribed: BTreeSet::new(),
        }
    }

    // --- inputs and outputs --------------------------------------------------------------------------------------

    fn inputs(&mut self) -> Result<(), Diagnostics> {
        let program = self.program;
        let mutated: BTreeSet<&str> = program
            .outputs
            .iter()
            .filter_map(|output| match &output.kind {
                OutputKind::BufferMutation(name) => Some(name.as_str()),
                OutputKind::User | OutputKind::InputMutation(_) => None,
            })
            .collect();
        for input in &program.inputs {
            self.input(input, &mutated)?;
        }
        Ok(())
    }

    fn input(&mut self, input: &ProgramInput, mutated: &BTreeSet<&str>) -> Result<(), Diagnostics> {
        let described = self.program.tensors.get(&input.name);
        match &input.kind {
            InputKind::User => {
                let Some(meta) = described else {
                    return Err(graph_error(format!("input `{}` has no description", input.name)));
                };
                let ty = TensorType { dtype: meta.dtype, shape: meta.stored_sizes() };
                let value = self.cx.b.input_of(&input.name, ty, InputRole::User, meta.is_complex);
                self.define(&input.name, value);
            }
            InputKind::UserInt(_) => {
                let ty = TensorType { dtype: DType::I64, shape: vec![] };
                self.cx.b.input(&input.name, ty, InputRole::User);
            }
            InputKind::UserConstant => {}
            InputKind::Constant(name) => {
                let Some(constant) = self.program.constants.get(name) else {
                    return Err(graph_error(format!("constant `{name}` has no data")));
                };
                let value = if mutated.contains(name.as_str()) {
                    let ty = TensorType {
                        dtype: constant.dtype,
                        shape: constant.sizes.iter().map(|size| Expr::int(*size)).collect(),
                    };
                    let initial = self.cx.b.add_constant(constant.clone());
                    let is_complex = described.is_some_and(|meta| meta.is_complex);
                    self.cx.b.input_of(name, ty, InputRole::State(initial), is_complex)
                } else {
                    self.cx.b.constant(constant.clone()).map_err(|error| graph_error(error.0))?
                };
                self.define(&input.name, value);
            }
        }
        Ok(())
    }

    /// What the program returns, then the inputs that it overwrites, which functional programs state first.
    pub(crate) fn outputs(&mut self) -> Result<(), Diagnostics> {
        let program = self.program;
        let mut user_outputs = 0;
        let overwrites = |output: &&ProgramOutput| matches!(output.kind, OutputKind::InputMutation(_));
        let (overwritten, returned): (Vec<_>, Vec<_>) = program.outputs.iter().partition(overwrites);
        for output in returned.into_iter().chain(overwritten) {
            let (name, value) = match &output.value {
                Arg::Tensor(name) => (name.clone(), self.read(name).map_err(|e| graph_error(e.to_string()))?),
                Arg::Int(expr) => {
                    let value = self.cx.b.index(expr.clone(), &[]);
                    (format!("output_{user_outputs}"), value)
                }
                Arg::Float(number) => {
                    (format!("output_{user_outputs}"), self.cx.b.scalar(*number, DType::F64))
                }
                Arg::Condition(_) | Arg::SymBool(_) | Arg::SymFloat(_) => {
                    let value = self.number(&output.value).map_err(|e| graph_error(e.to_string()))?;
                    (format!("output_{user_outputs}"), value)
                }
                Arg::Bool(flag) => (format!("output_{user_outputs}"), self.cx.b.scalar(*flag, DType::Bool)),
                // `None` is returned as nothing.
                Arg::None
                | Arg::Tensors(_)
                | Arg::Ints(_)
                | Arg::Floats(_)
                | Arg::Bools(_)
                | Arg::Str(_)
                | Arg::Complex { .. }
                | Arg::DType(_)
                | Arg::Other(_)
                | Arg::Graph(_) => continue,
            };
            let role = match &output.kind {
                OutputKind::User => OutputRole::User,
                OutputKind::BufferMutation(buffer) => self.state_role(buffer)?,
                OutputKind::InputMutation(input) => self.mutation_role(input)?,
            };
            user_outputs += usize::from(role == OutputRole::User);
            let tensor = output.value.tensors().first().and_then(|name| program.tensors.get(*name));
            let is_complex = tensor.is_some_and(|meta| meta.is_complex);
            let name = if let OutputKind::InputMutation(input) = &output.kind { input } else { &name };
            self.cx.b.output_of(output.name.as_ref().unwrap_or(name), value, role, is_complex);
        }
        self.overwritten_inputs()
    }

    /// Functional programs state which inputs they overwrite; in programs as first exported calls do it. Such an input is an
    /// output too: what it holds after the last call.
    fn overwritten_inputs(&mut self) -> Result<(), Diagnostics> {
        let program = self.program;
        let stated = |name: &str| {
            let mut kinds = program.outputs.iter().map(|output| &output.kind);
            kinds.any(|kind| matches!(kind, OutputKind::InputMutation(own) if own == name))
        };
        let users = program.inputs.iter().filter(|input| matches!(input.kind, InputKind::User));
        for input in users.filter(|input| !stated(&input.name)) {
            let value = self.read(&input.name).map_err(|error| graph_error(error.to_string()))?;
            let role = self.mutation_role(&input.name)?;
            let OutputRole::Mutation(position) = role else { continue };
            if self.cx.b.graph().inputs[position].value != value {
                let is_complex = program.tensors.get(&input.name).is_some_and(|meta| meta.is_complex);
                self.cx.b.output_of(&input.name, value, role, is_complex);
            }
        }
        Ok(())
    }

    fn state_role(&self, buffer: &str) -> Result<OutputRole, Diagnostics> {
        let inputs = &self.cx.b.graph().inputs;
        let position =
            inputs.iter().position(|input| input.name == buffer && matches!(input.role, InputRole::State(_)));
        position
            .map(OutputRole::State)
            .ok_or_else(|| graph_error(format!("mutated buffer `{buffer}` is no input")))
    }

    fn mutation_role(&self, name: &str) -> Result<OutputRole, Diagnostics> {
        let inputs = &self.cx.b.graph().inputs;
        let position = inputs.iter().position(|input| input.name == name && input.role == InputRole::User);
        position
            .map(OutputRole::Mutation)
            .ok_or_else(|| graph_error(format!("mutated input `{name}` is no input")))
    }

    // --- calls ---------------------------------------------------------------------------------------------------

    /// Applies the rule of each call; gives the calls that a rule refuses.
    pub(crate) fn calls(&mut self) -> Vec<Diagnostic> {
        let mut findings = Vec::new();
        let program = self.program;
        for call in &program.calls {
            // What depends on a refused call is not a finding of its own; operators without rules have theirs.
            let blocked = is_unsupported(call, self.registry) || self.poison.reaches(call);
            let result = if blocked { None } else { Some(self.call(call)) };
            if let Some(Ok(())) = result {
                continue;
            }
            self.poison.spread(call, program, &self.cx.b);
            if let Some(Err(error)) = result {
                let message = format!("operator `{}`: {error}", call.target);
                findings.push(Diagnostic::new(Code::Operands, message).at(&call.origin));
            }
        }
        findings
    }

    fn call(&mut self, call: &Call) -> Result<(), RuleError> {
        self.cx.b.set_origin(call.origin.clone());
        if is_structural(&call.target) {
            return self.structural(call);
        }
        if self.is_complex(call) {
            return self.complex(call);
        }
        if let Some(own) = self.registry.declared(&call.target) {
            return self.custom_op(call, own);
        }
        let rule = self.registry.find(&call.target).expect("unsupported operators are left out");
        super::super::rules::float8::check(call, rule.kind, self.program)?;
        let mut tensors = IndexMap::new();
        for name in tensor_names(call) {
            let value = self.read(name)?;
            tensors.insert(name.to_owned(), value);
        }
        let outputs = rule.run_on(&mut self.cx, &Args::new(call, self.program, &tensors))?;
        for (name, value) in std::mem::take(&mut self.cx.overwritten) {
            if let Some((_, Arg::Tensor(tensor))) = call.args.iter().find(|(own, _)| own == name) {
                self.write(tensor, value)?;
            }
        }
        if rule.kind == Kind::InPlace {
            return self.finish_in_place(call, outputs);
        }
        if rule.kind == Kind::View && self.mutates && super::copies::depends_on_strides(call) {
            self.rely_on_description(call)?;
        }
        let is_window = rule.kind == Kind::View && !super::copies::copies(call, self.program);
        let windows = if is_window && self.mutates { self.window_onto_operand(call, rule)? } else { None };
        let is_own = windows.is_none();
        self.bind(call, outputs, windows)?;
        if is_own && self.mutates {
            match call.target.as_str() {
                "aten.view.dtype" => self.is_reading(call, ReadAs::Bits, false)?,
                "aten._neg_view.default" => self.is_reading(call, ReadAs::Negative, false)?,
                _ => {}
            }
        }
        Ok(())
    }

    pub(crate) fn finish_in_place(&mut self, call: &Call, outputs: Outputs) -> Result<(), RuleError> {
        let target = match call.args.iter().find(|(name, _)| name == "self").or(call.args.first()) {
            Some((_, Arg::Tensor(name))) => name.clone(),
            _ => return Err(RuleError::Malformed("the tensor to overwrite is missing".to_owned())),
        };
        let value = match outputs {
            Outputs::One(value) => value,
            Outputs::Many(_) | Outputs::List(_) | Outputs::Int(_) | Outputs::Nothing => {
                return Err(RuleError::unsupported("in place with other than one result"));
            }
        };
        self.write(&target, value)?;
        if let Some(Output::Tensor(name)) = call.outputs.first() {
            let window = self.windows[&target].clone();
            self.windows.insert(name.clone(), window);
        }
        Ok(())
    }

    /// Gives the outputs of a call their names.
    pub(crate) fn bind(
        &mut self,
        call: &Call,
        outputs: Outputs,
        windows: Option<Vec<Window>>,
    ) -> Result<(), RuleError> {
        let named: Vec<(&str, Option<ValueId>)> = match (outputs, call.outputs.as_slice()) {
            (Outputs::Nothing, _) => vec![],
            (Outputs::One(value), [Output::Tensor(name), ..]) => vec![(name, Some(value))],
            (Outputs::One(value), [number, ..]) => return self.bind_number(number, value),
            (Outputs::List(values), [Output::Tensors(names)]) => {
                pair(names.iter().map(String::as_str), values)?
            }
            (Outputs::List(values), outputs) => {
                let slots = slots(outputs);
                count_fits(slots.len(), values.len())?;
                let mut tensors = Vec::new();
                for (slot, value) in slots.into_iter().zip(values) {
                    match slot {
                        Slot::Tensor(name) => tensors.push((name, Some(value))),
                        Slot::Number(output) => self.bind_number(output, value)?,
                    }
                }
                tensors
            }
            (Outputs::Many(values), [Output::Tensors(names)]) => {
                names.iter().map(String::as_str).zip(values).collect()
            }
            (Outputs::Many(values), names) => names
                .iter()
                .map(Output::tensor)
                .zip(values)
                .filter_map(|(name, value)| Some((name?, value)))
                .collect(),
            (Outputs::One(_), []) | (Outputs::Int(_), _) => {
                return Err(RuleError::Malformed("the call's results do not fit its operator".to_owned()));
            }
        };
        for (index, (name, value)) in named.into_iter().enumerate() {
            let Some(value) = value else { continue };
            self.check(call, name, value)?;
            self.cx.b.name(value, name);
            match windows.as_ref().and_then(|windows| windows.get(index)) {
                Some(window) => {
                    let window = window.holding(value);
                    self.windows.insert(name.to_owned(), window);
                }
                None => self.define(name, value),
            }
        }
        Ok(())
    }
}

fn graph_error(message: String) -> Diagnostics {
    Diagnostic::new(Code::Graph, message).into()
}

fn pair<'n>(
    names: impl ExactSizeIterator<Item = &'n str>,
    values: Vec<ValueId>,
) -> Result<Vec<(&'n str, Option<ValueId>)>, RuleError> {
    count_fits(names.len(), values.len())?;
    Ok(names.zip(values.into_iter().map(Some)).collect())
}

fn count_fits(expected: usize, given: usize) -> Result<(), RuleError> {
    if expected == given {
        return Ok(());
    }
    Err(RuleError::unsupported(format!("{given} results where the program has {expected}")))
}

/// A place that a rule's result goes to.
enum Slot<'o> {
    Tensor(&'o str),
    Number(&'o Output),
}

/// The places of all results, those of a list one after the other.
fn slots(outputs: &[Output]) -> Vec<Slot<'_>> {
    fn of(output: &Output) -> Vec<Slot<'_>> {
        match output {
            Output::None => vec![],
            Output::Tensor(name) => vec![Slot::Tensor(name)],
            Output::Tensors(names) => names.iter().map(|name| Slot::Tensor(name)).collect(),
            Output::SymInt(_) | Output::SymBool(_) | Output::SymFloat(_) => vec![Slot::Number(output)],
        }
    }
    outputs.iter().flat_map(of).collect()
}

/// Names of the tensors among a call's arguments, each once.
pub(crate) fn tensor_names(call: &Call) -> Vec<&str> {
    let names: IndexSet<&str> = call.args.iter().flat_map(|(_, arg)| arg.tensors()).collect();
    names.into_iter().collect()
}
