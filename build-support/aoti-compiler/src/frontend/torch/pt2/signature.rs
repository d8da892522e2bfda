//! The signature: what each input and output of the program is for, and the data of its constants.

use super::body::{Body, program_values};
use super::constants::Payloads;
use super::import::Importer;
use super::mutation::Mutation;
use super::results::output_names;
use super::schema::{
    Argument, GraphModule, InputSpec, OutputSpec, SymBoolArgument, SymFloatArgument, SymIntArgument,
};
use crate::diagnostic::Code;
use crate::frontend::torch::aten::{Arg, InputKind, OutputKind, Program, ProgramInput, ProgramOutput};
use crate::graph::{Constant, Origin};

/// What takes a plain tensor out of a tensor subclass.
const ACCESS: &str = "export.access_subclass_inner_tensor.default";

/// Makes the plain tensors inside of a subclass inputs of their own, which calls that take them out of it become names of.
fn subclass(program: &mut Program, value: &str, inner: Vec<(String, Constant)>) {
    program.tensors.shift_remove(value);
    for (attribute, constant) in inner {
        let name = format!("{value}.{attribute}");
        for call in program.calls.iter_mut().filter(|call| call.target == ACCESS) {
            let takes = |arg: &Arg| matches!(arg, Arg::Tensor(own) if own == value);
            let named = |arg: &Arg| matches!(arg, Arg::Str(own) if *own == attribute);
            if call.args.iter().any(|(_, arg)| takes(arg)) && call.args.iter().any(|(_, arg)| named(arg)) {
                "aten.alias.default".clone_into(&mut call.target);
                call.args = vec![("self".to_owned(), Arg::Tensor(name.clone()))];
            }
        }
        let kind = InputKind::Constant(constant.name.clone());
        program.constants.insert(constant.name.clone(), constant);
        program.inputs.push(ProgramInput { name, kind });
    }
}

impl Importer {
    pub(super) fn inputs(&mut self, program: &mut Program, specs: &[InputSpec], payloads: &Payloads) {
        for spec in specs {
            let (name, kind) = match spec {
                InputSpec::User(spec) => {
                    let input = self.user_input(program, &spec.arg);
                    self.symbols.pass(input.as_ref().map(|(name, _)| name.as_str()));
                    match input {
                        Some(input) => input,
                        None => continue,
                    }
                }
                InputSpec::Parameter(spec) => {
                    (&spec.arg.name, InputKind::Constant(spec.parameter_name.clone()))
                }
                InputSpec::Buffer(spec) => (&spec.arg.name, InputKind::Constant(spec.buffer_name.clone())),
                InputSpec::TensorConstant(spec) => {
                    (&spec.arg.name, InputKind::Constant(spec.tensor_constant_name.clone()))
                }
                InputSpec::Constant(constant) => {
                    self.symbols.pass(None);
                    (&constant.name, InputKind::UserConstant)
                }
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
                match payloads.inner(constant) {
                    Ok(None) => self.constant(program, name, constant, payloads),
                    Ok(Some(inner)) => {
                        subclass(program, name, inner);
                        continue;
                    }
                    Err(finding) => {
                        self.findings.push(finding);
                        continue;
                    }
                }
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
                self.symbols.set_number(name, value.clone());
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
            Argument::None(_)
            | Argument::Tensors(_)
            | Argument::Int(_)
            | Argument::Ints(_)
            | Argument::Float(_)
            | Argument::Floats(_)
            | Argument::String(_)
            | Argument::Strings(_)
            | Argument::SymInt(_)
            | Argument::SymInts(_)
            | Argument::ScalarType(_)
            | Argument::MemoryFormat(_)
            | Argument::Layout(_)
            | Argument::Device(_)
            | Argument::Bool(_)
            | Argument::Bools(_)
            | Argument::SymBool(_)
            | Argument::SymBools(_)
            | Argument::Graph(_)
            | Argument::OptionalTensors(_)
            | Argument::Operator(_)
            | Argument::Named(_)
            | Argument::SymFloat(_)
            | Argument::SymFloats(_)
            | Argument::OptionalTensor(_)
            | Argument::Complex(_) => None,
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
            let sizes = meta.stored_sizes();
            let same_sizes = sizes.len() == constant.sizes.len()
                && sizes.iter().zip(&constant.sizes).all(|(size, own)| size.is(*own));
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

    /// Gives what calls overwrite a place among the outputs: its value after the last call.
    pub(super) fn unstated(&mut self, program: &mut Program, mutation: &Mutation) {
        for (value, name) in &mutation.unstated {
            program.outputs.push(ProgramOutput {
                value: Arg::Tensor(value.clone()),
                kind: OutputKind::BufferMutation(name.clone()),
                name: None,
            });
        }
    }

    pub(super) fn outputs(&mut self, program: &mut Program, module: &GraphModule) {
        let (graph, specs) = (&module.graph, &module.signature.output_specs);
        let count = specs.iter().filter(|spec| matches!(spec, OutputSpec::User(_))).count();
        let mut names = output_names(module, count).into_iter();
        let defined = program_values(program, graph);
        let mut body = Body {
            graph,
            defined,
            sym_ints: std::mem::take(&mut program.sym_ints),
            conditions: std::mem::take(&mut program.conditions),
        };
        let here = Origin { node: "output".to_owned(), ..Origin::default() };
        // The graph lists its outputs too; nothing is read from there.
        for output in &graph.outputs {
            if let Argument::Tensor(tensor) = output {
                self.tensor(&body, &tensor.name, &here);
            }
        }
        for spec in specs {
            let name = matches!(spec, OutputSpec::User(_)).then(|| names.next()).flatten().flatten();
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
                program.outputs.push(ProgramOutput { value, kind, name });
            }
        }
        program.sym_ints = body.sym_ints;
        program.conditions = body.conditions;
    }
}
