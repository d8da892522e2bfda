//! From the exported program as the file has it to [`Program`].
//!
//! What is wrong or not understood is collected; the import fails once, with all of it.

use super::archive::Archive;
use super::constants::Payloads;
use super::expr::{Scope, Tree, parse};
use super::guards::guards;
use super::origin::{origin, target};
use super::schema::{
    Argument, ExportedProgram, Graph, InputSpec, Node, OptionalTensor, OutputSpec, SymBool, SymBoolArgument,
    SymFloat, SymFloatArgument, SymInt, SymIntArgument, TensorMeta as RawMeta, VersionOnly,
};
use super::symbols::{Occurrence, Symbols};
use super::values::{self, read_json};
use crate::aten::{
    Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, ProgramOutput, TensorMeta,
};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::graph::{Origin, SymbolSource};
use crate::symbolic::Expr;
use bytes::Bytes;
use indexmap::IndexMap;
use std::collections::BTreeSet;

/// Graphs inside of graphs; the JSON reader's own limit on nesting is near.
const MAX_BODIES: usize = 8;
/// Bytes of a tensor.
const MAX_BYTES: i64 = 1 << 47;

/// Reads a `.pt2` archive. Tensors share `file`; `name` becomes the program's name.
pub fn import(name: &str, file: Bytes) -> Result<Program, Diagnostics> {
    let archive = Archive::open(&file)?;
    // Entries hold on to the file's bytes.
    drop(file);
    let model = archive.model_name()?;
    let exported = read_program(&archive, &model)?;
    let payloads = Payloads::read(&archive, &model)?;
    let graph = &exported.graph_module.graph;
    let specs = &exported.graph_module.signature.input_specs;
    let mutated = mutated(&exported.graph_module.signature.output_specs);
    let places = occurrences(graph, specs, &mutated);
    let mut importer = Importer {
        symbols: Symbols::new(exported.range_constraints.clone(), &places),
        findings: Vec::new(),
        depth: 0,
    };
    let mut program = importer.body(name, graph, inputs_defined(graph, specs));
    importer.inputs(&mut program, specs, &payloads);
    importer.outputs(&mut program, graph, &exported.graph_module.signature.output_specs);
    program.guards = guards(&exported.guards_code, graph, &mut importer.symbols);
    importer.finish(program)
}

fn read_program(archive: &Archive, model: &str) -> Result<ExportedProgram, Diagnostic> {
    let path = format!("models/{model}.json");
    let bytes = archive.get(&path).expect("the model's name was found by this entry");
    let version: VersionOnly = read_json(bytes, &path)?;
    if version.schema_version.major != 8 {
        let (major, minor) = (version.schema_version.major, version.schema_version.minor);
        let torch = version.torch_version.unwrap_or_else(|| "an unknown version".to_owned());
        return Err(Diagnostic::new(
            Code::Version,
            format!("the program has schema version {major}.{minor}, written by torch {torch}"),
        )
        .note("schema version 8 is supported")
        .help("export the model again with a current torch"));
    }
    read_json(bytes, &path)
}

/// Qualified names of what the program overwrites.
fn mutated(specs: &[OutputSpec]) -> BTreeSet<&str> {
    let names = specs.iter().filter_map(|spec| match spec {
        OutputSpec::BufferMutation(spec) => Some(spec.buffer_name.as_str()),
        OutputSpec::ParameterMutation(spec) => Some(spec.parameter_name.as_str()),
        _ => None,
    });
    names.collect()
}

/// Where sizes of user inputs are symbolic. Positions count what is passed when the program runs: the user's
/// tensors and integers, and state.
fn occurrences(graph: &Graph, specs: &[InputSpec], mutated: &BTreeSet<&str>) -> Vec<Occurrence> {
    let mut places = Vec::new();
    let mut position = 0;
    for spec in specs {
        match spec {
            InputSpec::User(spec) => match &spec.arg {
                Argument::Tensor(tensor) => {
                    let sizes = graph.tensor_values.get(&tensor.name).map(|meta| meta.sizes.as_slice());
                    for (axis, size) in sizes.unwrap_or_default().iter().enumerate() {
                        let source = SymbolSource::InputDim { input: position, axis };
                        places.extend(occurrence(&tensor.name, size, source));
                    }
                    position += 1;
                }
                Argument::SymInt(SymIntArgument::Name(name)) => {
                    let source = SymbolSource::InputValue { input: position };
                    let value = graph.sym_int_values.get(name);
                    places.extend(value.and_then(|value| occurrence(name, value, source)));
                    position += 1;
                }
                _ => {}
            },
            InputSpec::Parameter(spec) => position += usize::from(mutated.contains(&*spec.parameter_name)),
            InputSpec::Buffer(spec) => position += usize::from(mutated.contains(&*spec.buffer_name)),
            InputSpec::TensorConstant(spec) => {
                position += usize::from(mutated.contains(&*spec.tensor_constant_name));
            }
            InputSpec::CustomObj(_)
            | InputSpec::Token(_)
            | InputSpec::Constant(_)
            | InputSpec::Unknown(_) => {}
        }
    }
    places
}

fn occurrence(input: &str, size: &SymInt, source: SymbolSource) -> Option<Occurrence> {
    let SymInt::Expr(expr) = size else { return None };
    // A malformed expression is reported where the size itself is read.
    let tree: Tree = parse(&expr.expr_str).ok()?;
    Some(Occurrence { input: input.to_owned(), source, tree })
}

/// Values that exist before the first call.
fn inputs_defined<'g>(graph: &'g Graph, specs: &'g [InputSpec]) -> BTreeSet<&'g str> {
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
    match arg {
        Argument::Tensor(tensor) => Some(&tensor.name),
        Argument::SymInt(SymIntArgument::Name(name))
        | Argument::SymBool(SymBoolArgument::Name(name))
        | Argument::SymFloat(SymFloatArgument::Name(name)) => Some(name),
        _ => None,
    }
}

/// What is in reach while one graph is read.
struct Body<'g> {
    graph: &'g Graph,
    defined: BTreeSet<&'g str>,
    sym_ints: IndexMap<String, Expr>,
}

struct Importer {
    symbols: Symbols,
    findings: Vec<Diagnostic>,
    depth: usize,
}

impl Importer {
    fn report(&mut self, code: Code, message: impl Into<String>, at: &Origin) {
        let finding = Diagnostic::new(code, message);
        let finding = if *at == Origin::default() { finding } else { finding.at(at) };
        if !self.findings.contains(&finding) {
            self.findings.push(finding);
        }
    }

    fn finish(mut self, mut program: Program) -> Result<Program, Diagnostics> {
        let (infos, underived) = self.symbols.finish();
        for name in underived {
            let message = format!("the size symbol `{name}` is not determined by the size of any input");
            self.findings.push(Diagnostic::new(Code::Graph, message));
        }
        if !self.findings.is_empty() {
            return Err(Diagnostics(self.findings));
        }
        program.symbols = infos;
        Ok(program)
    }

    // --- signature -----------------------------------------------------------------------------------------------

    fn inputs(&mut self, program: &mut Program, specs: &[InputSpec], payloads: &Payloads) {
        for spec in specs {
            let (name, kind) = match spec {
                InputSpec::User(spec) => match self.user_input(program, &spec.arg) {
                    Some(input) => input,
                    None => continue,
                },
                InputSpec::Parameter(spec) => {
                    (&spec.arg.name, InputKind::Constant(spec.parameter_name.clone()))
                }
                InputSpec::Buffer(spec) => (&spec.arg.name, InputKind::Constant(spec.buffer_name.clone())),
                InputSpec::TensorConstant(spec) => {
                    (&spec.arg.name, InputKind::Constant(spec.tensor_constant_name.clone()))
                }
                InputSpec::Constant(constant) => (&constant.name, InputKind::UserConstant),
                InputSpec::CustomObj(spec) => {
                    let message = format!("`{}` is a custom object, not a tensor", spec.custom_obj_name);
                    self.report(Code::Operator, message, &Origin::default());
                    continue;
                }
                // Tokens order effects; calls are in order anyway.
                InputSpec::Token(_) => continue,
                InputSpec::Unknown(key) => {
                    let message = format!("an input is of kind `{key}`, which is not known");
                    self.report(Code::Schema, message, &Origin::default());
                    continue;
                }
            };
            if let InputKind::Constant(constant) = &kind {
                self.constant(program, name, constant, payloads);
            }
            program.inputs.push(ProgramInput { name: name.clone(), kind });
        }
    }

    fn user_input<'s>(&mut self, program: &Program, arg: &'s Argument) -> Option<(&'s String, InputKind)> {
        match arg {
            Argument::Tensor(tensor) => {
                match program.tensors.get(&tensor.name) {
                    Some(meta) => self.symbols.set_input(&tensor.name, meta.sizes.clone()),
                    // Refused for its element type or sizes already, or not described at all.
                    None if self.findings.is_empty() => {
                        let message = format!("input `{}` has no entry in `tensor_values`", tensor.name);
                        self.report(Code::Schema, message, &Origin::default());
                    }
                    None => {}
                }
                Some((&tensor.name, InputKind::User))
            }
            Argument::SymInt(SymIntArgument::Name(name)) => {
                let value = program.sym_ints.get(name).cloned();
                let Some(value) = value else {
                    let message = format!("input `{name}` has no entry in `sym_int_values`");
                    self.report(Code::Schema, message, &Origin::default());
                    return None;
                };
                Some((name, InputKind::UserInt(value)))
            }
            Argument::SymBool(SymBoolArgument::Name(name))
            | Argument::SymFloat(SymFloatArgument::Name(name)) => {
                let message = format!("input `{name}` is a number that is not an integer");
                self.report(Code::Operands, message, &Origin::default());
                None
            }
            Argument::CustomObj(_) => {
                self.report(Code::Operator, "an input is a custom object, not a tensor", &Origin::default());
                None
            }
            Argument::Unknown(key) => {
                let message = format!("an input is of kind `{key}`, which is not known");
                self.report(Code::Schema, message, &Origin::default());
                None
            }
            // Constants were specialised when the program was exported.
            _ => None,
        }
    }

    fn constant(&mut self, program: &mut Program, value: &str, name: &str, payloads: &Payloads) {
        if program.constants.contains_key(name) {
            return;
        }
        let constant = match payloads.constant(name) {
            Ok(constant) => constant,
            Err(finding) => return self.findings.push(finding),
        };
        if let Some(meta) = program.tensors.get(value) {
            let same_sizes = meta.sizes.len() == constant.sizes.len()
                && meta.sizes.iter().zip(&constant.sizes).all(|(size, own)| size.is(*own));
            if meta.dtype != constant.dtype || !same_sizes {
                let message = format!(
                    "`{name}` is {:?} of {} where the program has {:?} of {}",
                    constant.sizes, constant.dtype, meta.sizes, meta.dtype
                );
                self.report(Code::Weights, message, &Origin::default());
            }
        }
        program.constants.insert(name.to_owned(), constant);
    }

    fn outputs(&mut self, program: &mut Program, graph: &Graph, specs: &[OutputSpec]) {
        let defined = program_values(program, graph);
        let mut body = Body { graph, defined, sym_ints: std::mem::take(&mut program.sym_ints) };
        let here = Origin { node: "output".to_owned(), ..Origin::default() };
        for spec in specs {
            let (value, kind) = match spec {
                OutputSpec::User(spec) => (self.arg(&mut body, &spec.arg, &here), OutputKind::User),
                OutputSpec::Loss(spec) => (self.tensor(&body, &spec.arg.name, &here), OutputKind::User),
                OutputSpec::BufferMutation(spec) => {
                    let kind = OutputKind::BufferMutation(spec.buffer_name.clone());
                    (self.tensor(&body, &spec.arg.name, &here), kind)
                }
                OutputSpec::ParameterMutation(spec) => {
                    let kind = OutputKind::BufferMutation(spec.parameter_name.clone());
                    (self.tensor(&body, &spec.arg.name, &here), kind)
                }
                OutputSpec::InputMutation(spec) => {
                    let kind = OutputKind::InputMutation(spec.user_input_name.clone());
                    (self.tensor(&body, &spec.arg.name, &here), kind)
                }
                OutputSpec::ParameterGradient(_) | OutputSpec::InputGradient(_) => {
                    self.report(Code::Operator, "the program computes gradients", &here);
                    continue;
                }
                OutputSpec::Token(_) => continue,
                OutputSpec::Unknown(key) => {
                    let message = format!("an output is of kind `{key}`, which is not known");
                    self.report(Code::Schema, message, &here);
                    continue;
                }
            };
            if let Some(value) = value {
                program.outputs.push(ProgramOutput { value, kind });
            }
        }
        program.sym_ints = body.sym_ints;
    }

    // --- graphs --------------------------------------------------------------------------------------------------

    /// Values and calls of a graph; inputs and outputs are the caller's.
    fn body(&mut self, name: &str, graph: &Graph, defined: BTreeSet<&str>) -> Program {
        let mut program = Program { name: name.to_owned(), ..Program::default() };
        let producers = producers(graph);
        for (value, meta) in &graph.tensor_values {
            let at = producers.get(value.as_str()).map(|node| origin(node)).unwrap_or_default();
            if let Some(meta) = self.meta(value, meta, &at) {
                program.tensors.insert(value.clone(), meta);
            }
        }
        for (value, size) in &graph.sym_int_values {
            let at = producers.get(value.as_str()).map(|node| origin(node)).unwrap_or_default();
            if let Some(size) = self.size(size, &format!("the integer `{value}`"), &at) {
                program.sym_ints.insert(value.clone(), size);
            }
        }
        let mut body = Body { graph, defined, sym_ints: std::mem::take(&mut program.sym_ints) };
        for node in &graph.nodes {
            let call = self.call(&mut body, node);
            program.calls.push(call);
        }
        program.sym_ints = body.sym_ints;
        program
    }

    /// A body of a higher-order operator.
    fn nested(&mut self, name: &str, graph: &Graph, at: &Origin) -> Option<Arg> {
        if self.depth >= MAX_BODIES {
            self.report(Code::Graph, format!("`{name}` is nested in more than {MAX_BODIES} graphs"), at);
            return None;
        }
        self.depth += 1;
        let mut program = self.body(name, graph, inputs_defined(graph, &[]));
        self.depth -= 1;
        for arg in &graph.inputs {
            let kind = match arg {
                Argument::Tensor(_) => InputKind::User,
                Argument::SymInt(SymIntArgument::Name(name)) => match program.sym_ints.get(name) {
                    Some(value) => InputKind::UserInt(value.clone()),
                    None => InputKind::UserConstant,
                },
                _ => InputKind::UserConstant,
            };
            let name = value_name(arg).unwrap_or_default().to_owned();
            program.inputs.push(ProgramInput { name, kind });
        }
        let defined = program_values(&program, graph);
        let mut body = Body { graph, defined, sym_ints: std::mem::take(&mut program.sym_ints) };
        for arg in &graph.outputs {
            if let Some(value) = self.arg(&mut body, arg, at) {
                program.outputs.push(ProgramOutput { value, kind: OutputKind::User });
            }
        }
        program.sym_ints = body.sym_ints;
        Some(Arg::Graph(Box::new(program)))
    }

    fn call<'g>(&mut self, body: &mut Body<'g>, node: &'g Node) -> Call {
        let at = origin(node);
        let mut args = Vec::new();
        for input in &node.inputs {
            if let Some(arg) = self.arg(body, &input.arg, &at) {
                args.push((input.name.clone(), arg));
            }
        }
        let mut outputs = Vec::new();
        for output in &node.outputs {
            outputs.extend(self.output(body, output, &at));
        }
        Call { target: target(&node.target).to_owned(), args, outputs, origin: at }
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
            other => {
                let message = format!("a result is of kind `{}`, which is not supported", kind(other));
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

    // --- arguments -----------------------------------------------------------------------------------------------

    fn arg(&mut self, body: &mut Body, arg: &Argument, at: &Origin) -> Option<Arg> {
        match arg {
            Argument::None(_) => Some(Arg::None),
            Argument::Tensor(tensor) => self.tensor(body, &tensor.name, at),
            Argument::Tensors(tensors) => {
                let names: Vec<_> = tensors.iter().map(|tensor| Some(tensor.name.clone())).collect();
                names.iter().flatten().for_each(|name| self.used(body, name, at));
                Some(Arg::Tensors(names))
            }
            Argument::OptionalTensor(tensor) => self.optional(body, tensor, at).map(|name| match name {
                Some(name) => Arg::Tensor(name),
                None => Arg::None,
            }),
            Argument::OptionalTensors(tensors) => {
                let names: Option<Vec<_>> =
                    tensors.iter().map(|tensor| self.optional(body, tensor, at)).collect();
                names.map(Arg::Tensors)
            }
            Argument::Int(value) => Some(Arg::Int(Expr::int(*value))),
            Argument::Ints(values) => Some(Arg::Ints(values.iter().map(|value| Expr::int(*value)).collect())),
            Argument::Float(value) => Some(Arg::Float(value.0)),
            Argument::Floats(values) => Some(Arg::Floats(values.iter().map(|value| value.0).collect())),
            Argument::String(text) => Some(Arg::Str(text.clone())),
            Argument::SymInt(value) => self.sym_int(body, value, at).map(Arg::Int),
            Argument::SymInts(values) => {
                let values: Option<Vec<_>> =
                    values.iter().map(|value| self.sym_int(body, value, at)).collect();
                values.map(Arg::Ints)
            }
            Argument::ScalarType(number) => match values::dtype(*number) {
                Ok(dtype) => Some(Arg::DType(dtype)),
                Err(name) => {
                    self.report(Code::DType, format!("an argument is the element type `{name}`"), at);
                    None
                }
            },
            Argument::MemoryFormat(number) => self.named(values::memory_format(*number), "memory format", at),
            Argument::Layout(number) => self.named(values::layout(*number), "layout", at),
            Argument::Device(device) => Some(Arg::Other(values::device(device))),
            Argument::Bool(value) => Some(Arg::Bool(*value)),
            Argument::Bools(values) => Some(Arg::Bools(values.clone())),
            Argument::SymBool(value) => self.sym_bool(body, value, at),
            Argument::SymFloat(value) => self.sym_float(body, value, at).map(Arg::Float),
            Argument::SymFloats(values) => {
                let values: Option<Vec<_>> =
                    values.iter().map(|value| self.sym_float(body, value, at)).collect();
                values.map(Arg::Floats)
            }
            Argument::Graph(graph) => self.nested(&graph.name, &graph.graph, at),
            Argument::Operator(name) => Some(Arg::Other(target(name).to_owned())),
            Argument::Strings(_)
            | Argument::SymBools(_)
            | Argument::CustomObj(_)
            | Argument::Complex(_)
            | Argument::Unknown(_) => {
                let message = format!("an argument is of kind `{}`, which is not supported", kind(arg));
                self.report(Code::Operands, message, at);
                None
            }
        }
    }

    fn named(&mut self, name: Option<&str>, what: &str, at: &Origin) -> Option<Arg> {
        if name.is_none() {
            self.report(Code::Schema, format!("an argument is a {what} of unknown number"), at);
        }
        name.map(|name| Arg::Other(name.to_owned()))
    }

    fn used(&mut self, body: &Body, name: &str, at: &Origin) {
        if !body.defined.contains(name) {
            self.report(Code::Graph, format!("the value `{name}` is used before it is defined"), at);
        }
    }

    fn tensor(&mut self, body: &Body, name: &str, at: &Origin) -> Option<Arg> {
        self.used(body, name, at);
        Some(Arg::Tensor(name.to_owned()))
    }

    /// The name of a tensor or of its absence; `None` where it is neither.
    fn optional(&mut self, body: &Body, tensor: &OptionalTensor, at: &Origin) -> Option<Option<String>> {
        match tensor {
            OptionalTensor::Tensor(tensor) => {
                self.used(body, &tensor.name, at);
                Some(Some(tensor.name.clone()))
            }
            OptionalTensor::None(_) => Some(None),
            OptionalTensor::Unknown(key) => {
                self.report(Code::Schema, format!("an optional tensor is of kind `{key}`"), at);
                None
            }
        }
    }

    fn sym_int(&mut self, body: &Body, value: &SymIntArgument, at: &Origin) -> Option<Expr> {
        match value {
            SymIntArgument::Int(value) => Some(Expr::int(*value)),
            SymIntArgument::Name(name) => {
                self.used(body, name, at);
                let value = body.sym_ints.get(name).cloned();
                if value.is_none() && !body.graph.sym_int_values.contains_key(name) {
                    self.report(Code::Schema, format!("`{name}` has no entry in `sym_int_values`"), at);
                }
                value
            }
            SymIntArgument::Unknown(key) => {
                self.report(Code::Schema, format!("a symbolic integer is of kind `{key}`"), at);
                None
            }
        }
    }

    fn sym_bool(&mut self, body: &Body, value: &SymBoolArgument, at: &Origin) -> Option<Arg> {
        match value {
            SymBoolArgument::Bool(value) => Some(Arg::Bool(*value)),
            SymBoolArgument::Name(name) => match body.graph.sym_bool_values.get(name) {
                Some(SymBool::Bool(value)) => Some(Arg::Bool(*value)),
                Some(SymBool::Unknown(key)) => {
                    self.report(Code::Schema, format!("the truth value `{name}` is of kind `{key}`"), at);
                    None
                }
                Some(SymBool::Expr(_)) | None => {
                    self.used(body, name, at);
                    Some(Arg::SymBool(name.clone()))
                }
            },
            SymBoolArgument::Unknown(key) => {
                self.report(Code::Schema, format!("a symbolic truth value is of kind `{key}`"), at);
                None
            }
        }
    }

    fn sym_float(&mut self, body: &Body, value: &SymFloatArgument, at: &Origin) -> Option<f64> {
        let SymFloatArgument::Name(name) = value else {
            return match value {
                SymFloatArgument::Float(value) => Some(value.0),
                SymFloatArgument::Name(_) => None,
                SymFloatArgument::Unknown(key) => {
                    self.report(Code::Schema, format!("a symbolic number is of kind `{key}`"), at);
                    None
                }
            };
        };
        match body.graph.sym_float_values.get(name) {
            Some(SymFloat::Float(value)) => Some(value.0),
            Some(SymFloat::Expr(expr)) => {
                let message = format!("`{name}` is a number computed from sizes: `{}`", expr.expr_str);
                self.report(Code::Operands, message, at);
                None
            }
            Some(SymFloat::Unknown(key)) => {
                self.report(Code::Schema, format!("the number `{name}` is of kind `{key}`"), at);
                None
            }
            None => {
                self.report(Code::Schema, format!("`{name}` has no entry in `sym_float_values`"), at);
                None
            }
        }
    }

    // --- what is said of values ----------------------------------------------------------------------------------

    fn size(&mut self, size: &SymInt, what: &str, at: &Origin) -> Option<Expr> {
        let value = match size {
            SymInt::Int(value) => return Some(Expr::int(*value)),
            SymInt::Expr(expr) => parse(&expr.expr_str)
                .and_then(|tree| tree.integer(&mut self.symbols))
                .map_err(|reason| format!("{what} is `{}`: {reason}", expr.expr_str)),
            SymInt::Unknown(key) => Err(format!("{what} is of kind `{key}`, which is not known")),
        };
        value.map_err(|message| self.report(Code::Schema, message, at)).ok()
    }

    fn sizes(&mut self, sizes: &[SymInt], what: &str, at: &Origin) -> Option<Vec<Expr>> {
        sizes.iter().map(|size| self.size(size, what, at)).collect()
    }

    fn meta(&mut self, name: &str, meta: &RawMeta, at: &Origin) -> Option<TensorMeta> {
        let dtype = match values::dtype(meta.dtype) {
            Ok(dtype) => dtype,
            Err(dtype) => {
                self.report(Code::DType, format!("the value `{name}` is a tensor of `{dtype}`"), at);
                return None;
            }
        };
        if meta.layout != values::STRIDED {
            let layout = values::layout(meta.layout).unwrap_or("unknown");
            self.report(
                Code::DType,
                format!("the value `{name}` is not dense: its layout is `{layout}`"),
                at,
            );
            return None;
        }
        if meta.sizes.len() > values::MAX_RANK || meta.sizes.len() != meta.strides.len() {
            let (sizes, strides) = (meta.sizes.len(), meta.strides.len());
            self.report(Code::Schema, format!("`{name}` has {sizes} sizes and {strides} strides"), at);
            return None;
        }
        let sizes = self.sizes(&meta.sizes, &format!("a size of `{name}`"), at)?;
        let strides = self.sizes(&meta.strides, &format!("a stride of `{name}`"), at)?;
        let storage_offset = self.size(&meta.storage_offset, &format!("the offset of `{name}`"), at)?;
        // Symbols count with their smallest values, so that every run would overflow.
        let bytes = sizes.iter().try_fold(dtype.size() as i64, |all, size| {
            let size = size.interval(self.symbols.ranges());
            let size = if size.max < 0 { return None } else { size.min.max(1) };
            all.checked_mul(size).filter(|bytes| *bytes <= MAX_BYTES)
        });
        if bytes.is_none() {
            self.report(
                Code::Size,
                format!("the size of `{name}`, {sizes:?} of {dtype}, is out of range"),
                at,
            );
            return None;
        }
        Some(TensorMeta { dtype, sizes, strides, storage_offset })
    }
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
fn program_values<'g>(program: &Program, graph: &'g Graph) -> BTreeSet<&'g str> {
    let mut names = inputs_defined(graph, &[]);
    names.extend(producers(graph).keys());
    // Inputs that only the signature names.
    let known = graph.tensor_values.keys().chain(graph.sym_int_values.keys());
    names.extend(
        known.map(String::as_str).filter(|name| program.inputs.iter().any(|input| input.name == *name)),
    );
    names
}

fn kind(arg: &Argument) -> &str {
    match arg {
        Argument::Strings(_) => "as_strings",
        Argument::SymBools(_) => "as_sym_bools",
        Argument::CustomObj(_) => "as_custom_obj",
        Argument::Complex(_) => "as_complex",
        Argument::Graph(_) => "as_graph",
        Argument::Ints(_) => "as_ints",
        Argument::SymInts(_) => "as_sym_ints",
        Argument::Unknown(key) => key,
        _ => "another kind",
    }
}
