//! Prints programs.

use super::{KEYWORDS, contiguous, is_plain};
use crate::frontend::torch::aten::{
    Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, ProgramOutput, TensorMeta,
};
use crate::graph::text::{
    Detail, bracketed, condition_text, constant_text, guard_line, origin_text, print_scalar, quoted,
    symbol_line,
};
use crate::graph::{Origin, Scalar};
use crate::symbolic::Expr;
use std::collections::BTreeSet;

/// The whole program; [`super::parse`] gives it back.
pub fn print(program: &Program) -> String {
    printed(program, Detail::Full, 0) + "\n"
}

/// For people: the data of larger constants is left out, so it cannot be parsed again.
pub fn print_short(program: &Program) -> String {
    printed(program, Detail::Short, 0) + "\n"
}

/// Ends with the closing brace; the caller ends the line.
fn printed(program: &Program, detail: Detail, depth: usize) -> String {
    let text = format!("program {} {{\n", quoted(&program.name));
    let (described, valued) = (BTreeSet::new(), BTreeSet::new());
    let mut printer = Printer { program, detail, depth: depth + 1, text, described, valued };
    printer.statements();
    printer.text + &"  ".repeat(depth) + "}"
}

struct Printer<'a> {
    program: &'a Program,
    detail: Detail,
    depth: usize,
    text: String,
    /// Tensors of which has been printed what is said of them.
    described: BTreeSet<&'a str>,
    /// Symbolic integers whose value has been printed.
    valued: BTreeSet<&'a str>,
}

impl<'a> Printer<'a> {
    fn line(&mut self, line: &str) {
        self.text.push_str(&"  ".repeat(self.depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn statements(&mut self) {
        let program = self.program;
        for (index, symbol) in program.symbols.iter().enumerate() {
            self.line(&symbol_line(index, symbol));
        }
        for guard in &program.guards {
            self.line(&guard_line(guard));
        }
        for (key, constant) in &program.constants {
            let own = if *key == constant.name {
                String::new()
            } else {
                format!(" named {}", quoted(&constant.name))
            };
            let text = constant_text(constant, self.detail);
            self.line(&format!("const {}{own}: {text}", quoted(key)));
        }
        self.undefined();
        for input in &program.inputs {
            self.input(input);
        }
        for call in &program.calls {
            self.call(call);
        }
        for output in &program.outputs {
            self.output(output);
        }
    }

    /// What is said of names that nothing defines.
    fn undefined(&mut self) {
        let program = self.program;
        let outputs = || program.calls.iter().flat_map(|call| &call.outputs);
        let mut defined: BTreeSet<&str> = outputs().flat_map(Output::tensors).collect();
        defined.extend(program.inputs.iter().map(|input| input.name.as_str()));
        for (name, meta) in &program.tensors {
            if !defined.contains(name.as_str()) {
                self.line(&format!("tensor {}: {}", tensor(name), description(meta)));
            }
        }
        let known = |name: &str| outputs().any(|output| matches!(output, Output::SymInt(own) if own == name));
        for (name, value) in &program.sym_ints {
            if !known(name) {
                self.line(&format!("let {} = [{value}]", word(name)));
            }
        }
    }

    /// A tensor where it is defined, with what is said of it.
    fn definition(&mut self, name: &'a str) -> String {
        match self.program.tensors.get(name) {
            Some(meta) if self.described.insert(name) => format!("{}: {}", tensor(name), description(meta)),
            Some(_) | None => tensor(name),
        }
    }

    fn input(&mut self, input: &'a ProgramInput) {
        let kind = match &input.kind {
            InputKind::User => String::new(),
            InputKind::UserInt(value) => format!(" int [{value}]"),
            InputKind::UserConstant => " fixed".to_owned(),
            InputKind::Constant(key) => format!(" constant {}", quoted(key)),
        };
        let definition = self.definition(&input.name);
        self.line(&format!("input {definition}{kind}"));
    }

    fn call(&mut self, call: &'a Call) {
        let outputs: Vec<String> = call.outputs.iter().map(|output| self.result(output)).collect();
        let outputs = if outputs.is_empty() { String::new() } else { outputs.join(", ") + " = " };
        let args: Vec<String> = call
            .args
            .iter()
            .map(|(name, arg)| {
                let arg = self.arg(arg);
                if name.is_empty() { arg } else { format!("{} = {arg}", plain(name)) }
            })
            .collect();
        let place = match &call.origin {
            origin if *origin == Origin::default() => String::new(),
            origin => format!(" @ {}", origin_text(origin)),
        };
        self.line(&format!("{outputs}{}({}){place}", word(&call.target), args.join(", ")));
    }

    fn result(&mut self, output: &'a Output) -> String {
        match output {
            Output::Tensor(name) => self.definition(name),
            Output::Tensors(names) => {
                let parts: Vec<String> = names.iter().map(|name| self.definition(name)).collect();
                bracketed(&parts)
            }
            Output::SymInt(name) => match self.program.sym_ints.get(name) {
                Some(value) if self.valued.insert(name) => format!("int {}: [{value}]", word(name)),
                Some(_) | None => format!("int {}", word(name)),
            },
            Output::SymBool(name) => match self.program.conditions.get(name) {
                Some(condition) => format!("truth {}: {}", word(name), condition_text(condition)),
                None => format!("truth {}", word(name)),
            },
            Output::SymFloat(name) => format!("number {}", word(name)),
            Output::None => "none".to_owned(),
        }
    }

    fn output(&mut self, output: &ProgramOutput) {
        let kind = match &output.kind {
            OutputKind::User => String::new(),
            OutputKind::BufferMutation(name) => format!(" overwrites buffer {}", quoted(name)),
            OutputKind::InputMutation(name) => format!(" overwrites input {}", quoted(name)),
        };
        let name = output.name.as_ref().map(|name| format!(" named {}", quoted(name))).unwrap_or_default();
        let value = self.arg(&output.value);
        self.line(&format!("output {value}{kind}{name}"));
    }

    fn arg(&self, arg: &Arg) -> String {
        match arg {
            Arg::None => "none".to_owned(),
            Arg::Tensor(name) => tensor(name),
            Arg::Tensors(names) if names.is_empty() => "tensors []".to_owned(),
            Arg::Tensors(names) => {
                let names: Vec<String> =
                    names.iter().map(|name| name.as_deref().map_or("none".to_owned(), tensor)).collect();
                bracketed(&names)
            }
            Arg::Int(value) => {
                value.as_int().map_or_else(|| format!("{{{value}}}"), |value| value.to_string())
            }
            Arg::Ints(values) => bracketed(values),
            Arg::Float(value) => print_scalar(Scalar::Float(*value)),
            Arg::Floats(values) => {
                let values: Vec<String> =
                    values.iter().map(|value| print_scalar(Scalar::Float(*value))).collect();
                format!("floats {}", bracketed(&values))
            }
            Arg::Complex { re, im } => {
                let parts = [re, im].map(|part| print_scalar(Scalar::Float(*part)));
                format!("complex {}", bracketed(&parts))
            }
            Arg::Bool(value) => value.to_string(),
            Arg::Bools(values) => format!("bools {}", bracketed(values)),
            Arg::Condition(condition) => format!("holds {}", condition_text(condition)),
            Arg::SymBool(name) => format!("truth {}", word(name)),
            Arg::SymFloat(name) => format!("number {}", word(name)),
            Arg::Str(text) => quoted(text),
            Arg::DType(dtype) => dtype.to_string(),
            Arg::Other(text) => format!("other {}", quoted(text)),
            Arg::Graph(body) => printed(body, self.detail, self.depth),
        }
    }
}

fn tensor(name: &str) -> String {
    format!("%{}", plain(name))
}

fn plain(name: &str) -> String {
    if is_plain(name) { name.to_owned() } else { quoted(name) }
}

/// A name without a sigil, where words have meanings.
fn word(name: &str) -> String {
    if KEYWORDS.contains(&name) { quoted(name) } else { plain(name) }
}

fn description(meta: &TensorMeta) -> String {
    let kind = if meta.is_complex { "complex " } else { "" };
    let mut text = format!("{kind}{}{}", meta.dtype, bracketed(&meta.sizes));
    if meta.strides != contiguous(&meta.sizes) {
        text += &format!(" strides {}", bracketed(&meta.strides));
    }
    if meta.storage_offset != Expr::int(0) {
        text += &format!(" offset [{}]", meta.storage_offset);
    }
    text
}
