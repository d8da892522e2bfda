//! Graphs: the program's own and the bodies of higher-order operators. Every value is defined once and before its
//! first use.

use super::import::Importer;
use super::origin::{origin, target};
use super::schema::{
    Argument, Graph, InputSpec, Name, Node, OptionalTensor, SymBoolArgument, SymFloatArgument,
    SymIntArgument, Union,
};
use crate::diagnostic::Code;
use crate::frontend::torch::aten::{
    Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, ProgramOutput,
};
use crate::graph::{Condition, Origin};
use crate::symbolic::Expr;
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// Graphs inside of graphs; the JSON reader's own limit on nesting is near.
const MAX_BODIES: usize = 8;

/// What is in reach while one graph is read.
pub(super) struct Body<'g> {
    pub(super) graph: &'g Graph,
    pub(super) defined: BTreeSet<&'g str>,
    pub(super) sym_ints: IndexMap<String, Expr>,
    /// Truth values that are conditions on sizes.
    pub(super) conditions: IndexMap<String, Condition>,
}

impl Importer {
    /// Values and calls of a graph; inputs and outputs are the caller's.
    pub(super) fn body(&mut self, name: &str, graph: &Graph, defined: BTreeSet<&str>) -> Program {
        let mut program = Program { name: name.to_owned(), ..Program::default() };
        let producers = producers(graph);
        // Before the sizes of tensors, which may be numbers that calls compute.
        for (value, size) in &graph.sym_int_values {
            let at = producers.get(value.as_str()).map(|node| origin(node)).unwrap_or_default();
            let computed = self.computed(size);
            let size = computed.or_else(|| self.size(size, &format!("the integer `{value}`"), &at));
            program.sym_ints.extend(size.map(|size| (value.clone(), size)));
        }
        for (value, meta) in &graph.tensor_values {
            let at = producers.get(value.as_str()).map(|node| origin(node)).unwrap_or_default();
            if let Some(meta) = self.meta(value, meta, &at) {
                program.tensors.insert(value.clone(), meta);
            }
        }
        for (value, truth) in &graph.sym_bool_values {
            let condition = self.condition(truth);
            program.conditions.extend(condition.map(|condition| (value.clone(), condition)));
        }
        let mut body = Body {
            graph,
            defined,
            sym_ints: std::mem::take(&mut program.sym_ints),
            conditions: std::mem::take(&mut program.conditions),
        };
        for node in &graph.nodes {
            let call = self.call(&mut body, node);
            program.calls.push(call);
        }
        program.sym_ints = body.sym_ints;
        program.conditions = body.conditions;
        program
    }

    /// A body of a higher-order operator.
    pub(super) fn nested(&mut self, name: &str, graph: &Graph, at: &Origin) -> Option<Arg> {
        if self.depth >= MAX_BODIES {
            self.report(Code::Graph, format!("`{name}` is nested in more than {MAX_BODIES} graphs"), at);
            return None;
        }
        self.depth += 1;
        let mut program = self.body(name, graph, inputs_defined(graph, &[]));
        self.depth -= 1;
        for arg in &graph.inputs {
            let kind = if let Argument::Tensor(_) = arg {
                InputKind::User
            } else if let Argument::SymInt(SymIntArgument::Name(name)) = arg
                && let Some(value) = program.sym_ints.get(name)
            {
                InputKind::UserInt(value.clone())
            } else {
                InputKind::UserConstant
            };
            let name = value_name(arg).unwrap_or_default().to_owned();
            program.inputs.push(ProgramInput { name, kind });
        }
        let defined = program_values(&program, graph);
        let mut body = Body {
            graph,
            defined,
            sym_ints: std::mem::take(&mut program.sym_ints),
            conditions: std::mem::take(&mut program.conditions),
        };
        for arg in &graph.outputs {
            if let Some(value) = self.arg(&mut body, arg, at) {
                program.outputs.push(ProgramOutput { value, kind: OutputKind::User, name: None });
            }
        }
        program.sym_ints = body.sym_ints;
        program.conditions = body.conditions;
        Some(Arg::Graph(Box::new(program)))
    }

    fn call<'g>(&mut self, body: &mut Body<'g>, node: &'g Node) -> Call {
        let at = origin(node);
        let (operator, skipped) = effect_of(node).map_or((&node.target, 0), |operator| (operator, 1));
        let mut args = Vec::new();
        for input in &node.inputs[2 * skipped..] {
            if let Some(arg) = self.arg(body, &input.arg, &at) {
                args.push((input.name.clone(), arg));
            }
        }
        let mut outputs = Vec::new();
        for output in node.outputs.iter().skip(skipped) {
            outputs.extend(self.output(body, output, &at));
        }
        Call { target: target(operator).to_owned(), args, outputs, origin: at }
    }

    fn output<'g>(&mut self, body: &mut Body<'g>, output: &'g Argument, at: &Origin) -> Option<Output> {
        match output {
            Argument::None(_) => Some(Output::None),
            Argument::Tensor(tensor) => {
                self.define(body, &tensor.name, at);
                Some(Output::Tensor(tensor.name.clone()))
            }
            Argument::Tensors(tensors) => {
                tensors.iter().for_each(|tensor| self.define(body, &tensor.name, at));
                Some(Output::Tensors(tensors.iter().map(|tensor| tensor.name.clone()).collect()))
            }
            Argument::OptionalTensor(OptionalTensor::Tensor(tensor)) => {
                self.define(body, &tensor.name, at);
                Some(Output::Tensor(tensor.name.clone()))
            }
            Argument::OptionalTensor(OptionalTensor::None(_)) => Some(Output::None),
            Argument::OptionalTensors(tensors) => {
                let mut names = Vec::new();
                for tensor in tensors {
                    match tensor {
                        OptionalTensor::Tensor(tensor) => {
                            self.define(body, &tensor.name, at);
                            names.push(tensor.name.clone());
                        }
                        OptionalTensor::None(_) | OptionalTensor::Unknown(_) => names.push(String::new()),
                    }
                }
                Some(Output::Tensors(names))
            }
            Argument::SymInt(SymIntArgument::Name(name)) => {
                self.define(body, name, at);
                Some(Output::SymInt(name.clone()))
            }
            Argument::SymBool(SymBoolArgument::Name(name)) => {
                self.define(body, name, at);
                Some(Output::SymBool(name.clone()))
            }
            Argument::SymFloat(SymFloatArgument::Name(name)) => {
                self.define(body, name, at);
                Some(Output::SymFloat(name.clone()))
            }
            // Constants: nothing refers to them by name.
            Argument::Int(_) | Argument::Float(_) | Argument::Bool(_) | Argument::String(_) => {
                Some(Output::None)
            }
            other @ (Argument::Ints(_)
            | Argument::Floats(_)
            | Argument::Strings(_)
            | Argument::SymInt(_)
            | Argument::SymInts(_)
            | Argument::SymBool(_)
            | Argument::SymBools(_)
            | Argument::Bools(_)
            | Argument::SymFloat(_)
            | Argument::SymFloats(_)
            | Argument::ScalarType(_)
            | Argument::MemoryFormat(_)
            | Argument::Layout(_)
            | Argument::Device(_)
            | Argument::Graph(_)
            | Argument::OptionalTensor(_)
            | Argument::CustomObj(_)
            | Argument::Operator(_)
            | Argument::Named(_)
            | Argument::Complex(_)
            | Argument::Unknown(_)) => {
                let message = format!("a result is of kind `{}`, which is not supported", other.key());
                self.report(Code::Operands, message, at);
                None
            }
        }
    }

    fn define<'g>(&mut self, body: &mut Body<'g>, name: &'g str, at: &Origin) {
        // Results that nothing uses may have no name.
        if !name.is_empty() && !body.defined.insert(name) {
            self.report(Code::Graph, format!("the value `{name}` is defined twice"), at);
        }
    }
}

/// The operator that a node calls for its effect. Its token, the first operand and the first result, orders effects; calls
/// are in order anyway.
fn effect_of(node: &Node) -> Option<&String> {
    let Argument::Operator(operator) = &node.inputs.get(1)?.arg else { return None };
    (target(&node.target) == "higher_order.with_effects").then_some(operator)
}

/// Values that exist before the first call.
pub(super) fn inputs_defined<'g>(graph: &'g Graph, specs: &'g [InputSpec]) -> BTreeSet<&'g str> {
    let mut names = BTreeSet::new();
    for arg in &graph.inputs {
        names.extend(value_name(arg));
    }
    for spec in specs {
        match spec {
            InputSpec::User(spec) => names.extend(value_name(&spec.arg)),
            InputSpec::Parameter(spec) => names.extend([spec.arg.name.as_str()]),
            InputSpec::Buffer(spec) => names.extend([spec.arg.name.as_str()]),
            InputSpec::TensorConstant(spec) => names.extend([spec.arg.name.as_str()]),
            InputSpec::Constant(_)
            | InputSpec::CustomObj(_)
            | InputSpec::Token(_)
            | InputSpec::Unknown(_) => {}
        }
    }
    names
}

fn value_name(arg: &Argument) -> Option<&str> {
    if let Argument::Tensor(Name { name })
    | Argument::SymInt(SymIntArgument::Name(name))
    | Argument::SymBool(SymBoolArgument::Name(name))
    | Argument::SymFloat(SymFloatArgument::Name(name)) = arg
    {
        return Some(name);
    }
    None
}

/// The node that makes each value, by the value's name.
fn producers(graph: &Graph) -> IndexMap<&str, &Node> {
    let mut producers = IndexMap::new();
    for node in &graph.nodes {
        for output in &node.outputs {
            if let Argument::Tensors(tensors) = output {
                producers.extend(tensors.iter().map(|tensor| (tensor.name.as_str(), node)));
            }
            producers.extend(value_name(output).map(|name| (name, node)));
        }
    }
    producers
}

/// Every value that exists after the last call.
pub(super) fn program_values<'g>(program: &Program, graph: &'g Graph) -> BTreeSet<&'g str> {
    let mut names = inputs_defined(graph, &[]);
    names.extend(producers(graph).keys());
    // Inputs that only the signature names.
    let known = graph.tensor_values.keys().chain(graph.sym_int_values.keys());
    names.extend(
        known.map(String::as_str).filter(|name| program.inputs.iter().any(|input| input.name == *name)),
    );
    names
}
