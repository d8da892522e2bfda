//! Calls of functions of the user's project.

use super::KernelText;
use crate::codegen::c_family::expr::scalar;
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::terms::literal as number_literal;
use crate::codegen::foreign::literal;
use crate::diagnostic::Diagnostics;
use crate::dtype::DType;
use crate::frontend::torch::custom;
use crate::frontend::torch::custom::{Argument, Schema, Type};
use crate::graph::{ExternArgument, ExternCall, Number, NumberKind, Scalar};
use crate::loops::{BufferId, ExternKernel};
use crate::symbolic::Expr;
use indexmap::IndexSet;
use std::fmt::Write;

/// A parameter of a function.
enum Parameter {
    Tensor,
    Tensors,
    Number(NumberKind),
    Optional(NumberKind),
    Numbers(NumberKind),
    Text,
}

impl From<&ExternArgument> for Parameter {
    fn from(argument: &ExternArgument) -> Parameter {
        match argument {
            ExternArgument::Tensor | ExternArgument::Changed | ExternArgument::NoTensor => Parameter::Tensor,
            ExternArgument::Tensors(_) => Parameter::Tensors,
            ExternArgument::Number(number) => Parameter::Number(number.kind()),
            ExternArgument::Optional(kind, _) => Parameter::Optional(*kind),
            ExternArgument::Numbers(kind, _) => Parameter::Numbers(*kind),
            ExternArgument::Text(_) => Parameter::Text,
        }
    }
}

impl From<&Argument> for Parameter {
    fn from(argument: &Argument) -> Parameter {
        match (argument.ty.number(), argument.is_list, argument.is_optional) {
            (Some(kind), true, _) => Parameter::Numbers(kind),
            (Some(kind), false, true) => Parameter::Optional(kind),
            (Some(kind), false, false) => Parameter::Number(kind),
            (None, true, _) => Parameter::Tensors,
            (None, false, _) if argument.ty == Type::Text => Parameter::Text,
            (None, false, _) => Parameter::Tensor,
        }
    }
}

/// The declarations in C of those operators among some that are functions, each once.
///
/// # Errors
/// As [`custom::Operators::new`].
pub fn prototypes<'o>(
    operators: impl IntoIterator<Item = &'o custom::Operator>,
) -> Result<Vec<String>, Diagnostics> {
    let mut all = Vec::new();
    for operator in operators {
        if let Some((symbol, schema)) = custom::function(operator)? {
            let prototype = prototype(&symbol, &schema);
            if !all.contains(&prototype) {
                all.push(prototype);
            }
        }
    }
    Ok(all)
}

/// The declaration of the function of an operator, as C and C++ have it: with the name that its source says, which is not what
/// the linker calls it.
fn prototype(symbol: &str, schema: &Schema) -> String {
    let parameters = schema.arguments.iter().map(Parameter::from);
    let own = declaration(symbol, parameters, schema.functions_results());
    format!("{own} __asm__({:?});\n", custom::link_name(symbol, schema))
}

/// The declaration of a function that is called.
fn declaration_of(call: &ExternCall) -> String {
    let results = call.results.iter().map(Option::is_some);
    declaration(&call.symbol, call.arguments.iter().map(Parameter::from), results) + ";\n"
}

fn declaration(
    symbol: &str,
    parameters: impl Iterator<Item = Parameter>,
    results: impl Iterator<Item = bool>,
) -> String {
    let mut types: Vec<&str> = Vec::new();
    for parameter in parameters {
        match parameter {
            Parameter::Tensor => types.push("const AotiTensor *"),
            Parameter::Tensors => types.push("AotiTensors"),
            Parameter::Number(kind) => types.push(value_type(kind)),
            Parameter::Optional(kind) => types.push(address_type(kind)),
            Parameter::Numbers(kind) => types.push(list_type(kind)),
            Parameter::Text => types.push("const char *"),
        }
    }
    for is_list in results {
        types.push(if is_list { "AotiTensors" } else { "const AotiTensor *" });
    }
    types.extend(["const AotiContext *", "AotiError *"]);
    format!("int32_t {symbol}({})", types.join(", "))
}

fn value_type(kind: NumberKind) -> &'static str {
    match kind {
        NumberKind::Int => "int64_t",
        NumberKind::Float => "double",
        NumberKind::Bool => "uint8_t",
    }
}

fn address_type(kind: NumberKind) -> &'static str {
    match kind {
        NumberKind::Int => "const int64_t *",
        NumberKind::Float => "const double *",
        NumberKind::Bool => "const uint8_t *",
    }
}

fn list_type(kind: NumberKind) -> &'static str {
    match kind {
        NumberKind::Int => "AotiInts",
        NumberKind::Float => "AotiFloats",
        NumberKind::Bool => "AotiBools",
    }
}

pub(super) fn print(
    parameters: &Parameters,
    (own, call): (&ExternKernel, &ExternCall),
    text: &mut KernelText,
) {
    text.external = Some(declaration_of(call));
    // Before all others: where the run finds what the function reports.
    text.declaration = text.declaration.replacen("const Run &run", "const Run &run, u8 *report", 1);
    let results = own.outputs.len().saturating_sub(call.n_changed());
    let (outputs, changed) = own.outputs.split_at(results);
    let mut printer = Printer {
        parameters,
        inputs: &own.inputs,
        outputs,
        changed,
        lists: IndexSet::new(),
        body: String::new(),
    };
    let mut arguments = Vec::new();
    for argument in &call.arguments {
        printer.argument(argument, &mut arguments);
    }
    for result in &call.results {
        let (of_results, rest) = printer.outputs.split_at(result.unwrap_or(1));
        printer.outputs = rest;
        let name = printer.tensors(of_results);
        arguments.push(match result {
            Some(count) => format!("AotiTensors{{{name}, {count}}}"),
            None => name,
        });
    }
    arguments.extend(["run.context".to_owned(), "error".to_owned()]);
    text.body = format!(
        "{}AotiError *error = cleared(report);\nreported(error, {}({}));\n",
        printer.body,
        call.symbol,
        arguments.join(", ")
    );
}

struct Printer<'a> {
    parameters: &'a Parameters<'a>,
    /// Those that arguments to come have.
    inputs: &'a [(BufferId, Vec<Expr>)],
    outputs: &'a [(BufferId, Vec<Expr>)],
    /// Where what arguments to come are changed to goes.
    changed: &'a [(BufferId, Vec<Expr>)],
    /// Arrays so far: types and elements.
    lists: IndexSet<(String, String)>,
    /// Their definitions.
    body: String,
}

impl Printer<'_> {
    fn argument(&mut self, argument: &ExternArgument, arguments: &mut Vec<String>) {
        match argument {
            ExternArgument::Tensor => {
                let name = self.operands(1);
                arguments.push(name);
            }
            ExternArgument::Changed => {
                let name = self.copied();
                arguments.push(name);
            }
            ExternArgument::Tensors(count) => {
                let name = self.operands(*count);
                arguments.push(format!("AotiTensors{{{name}, {count}}}"));
            }
            ExternArgument::NoTensor | ExternArgument::Text(None) | ExternArgument::Optional(_, None) => {
                arguments.push("nullptr".to_owned())
            }
            ExternArgument::Number(value) => arguments.push(number(value)),
            ExternArgument::Optional(kind, Some(value)) => {
                let name = self.numbers(*kind, std::slice::from_ref(value));
                arguments.push(name);
            }
            ExternArgument::Numbers(kind, values) => {
                let name = self.numbers(*kind, values.as_deref().unwrap_or_default());
                let count =
                    values.as_ref().map_or_else(|| "-1".to_owned(), |values| values.len().to_string());
                arguments.push(format!("{}{{{name}, {count}}}", list_type(*kind)));
            }
            ExternArgument::Text(Some(value)) => arguments.push(literal(value)),
        }
    }

    /// The next operands.
    fn operands(&mut self, count: usize) -> String {
        let (own, rest) = self.inputs.split_at(count);
        self.inputs = rest;
        self.tensors(own)
    }

    /// A copy of the next operand, to be changed.
    fn copied(&mut self) -> String {
        let ((from, rest), (to, others)) = (self.inputs.split_at(1), self.changed.split_at(1));
        (self.inputs, self.changed) = (rest, others);
        for ((source, shape), (target, _)) in from.iter().zip(to) {
            let count = scalar(&Expr::product(shape));
            let size = self.parameters.dtype(*source).size();
            let (source, target) = (self.parameters.buffer(*source), self.parameters.buffer(*target));
            let _ = writeln!(self.body, "copy_bytes({target}, {source}, {count} * {size});");
        }
        self.tensors(to)
    }

    /// Defines an array, if it has elements and there is none like it; gives its name.
    fn array(&mut self, ty: &str, elements: &[String]) -> String {
        if elements.is_empty() {
            return "nullptr".to_owned();
        }
        let definition = (ty.to_owned(), elements.join(", "));
        let (number, is_new) = self.lists.insert_full(definition);
        if is_new {
            let _ = writeln!(self.body, "const {ty} list{number}[] = {{{}}};", elements.join(", "));
        }
        format!("list{number}")
    }

    fn numbers(&mut self, kind: NumberKind, values: &[Number]) -> String {
        let values: Vec<String> = values.iter().map(number).collect();
        self.array(value_type(kind), &values)
    }

    fn tensors(&mut self, tensors: &[(BufferId, Vec<Expr>)]) -> String {
        let mut rows = Vec::new();
        for (buffer, shape) in tensors {
            let sizes: Vec<String> = shape.iter().map(scalar).collect();
            let sizes = self.array("int64_t", &sizes);
            let (name, dtype) = (self.parameters.buffer(*buffer), self.parameters.dtype(*buffer));
            rows.push(format!("tensor({name}, {}, {}, {sizes})", dtype.code(), shape.len()));
        }
        self.array("AotiTensor", &rows)
    }
}

fn number(value: &Number) -> String {
    match value {
        Number::Int(expr) => scalar(expr),
        Number::Float(value) => number_literal(Scalar::Float(*value), DType::F64),
        Number::Bool(value) => value.to_string(),
    }
}
