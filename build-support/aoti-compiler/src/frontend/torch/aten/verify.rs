//! Checks that a program keeps the rules that decomposition relies on. All breaches are reported together.
//!
//! * An expression mentions size symbols of the outermost program only.
//! * A name is defined once, by an input or a call, before its uses; within a program, bodies are on their own.
//! * Of a tensor input is said what it is; the value of a symbolic integer is known.
//! * A constant has as many bytes as its type and sizes need; an input that is one has its type.
//! * The names of a call's arguments differ.
//! * An output that overwrites names a constant, or an input, of the program.
//! * A body has no symbols, guards or constants, and takes as many values as its operator gives it.

use super::{Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, TensorMeta};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::graph::{Condition, Origin};
use crate::symbolic::{Expr, SymbolKind};
use std::collections::BTreeSet;

/// Reports every breach of the rules.
pub fn verify(program: &Program) -> Result<(), Diagnostics> {
    let mut findings = Vec::new();
    Ctx { n_symbols: program.symbols.len(), program, defined: BTreeSet::new(), findings: &mut findings }
        .program();
    if findings.is_empty() { Ok(()) } else { Err(Diagnostics(findings)) }
}

struct Ctx<'a, 'f> {
    /// Symbols of the outermost program.
    n_symbols: usize,
    program: &'a Program,
    /// Names that have a value so far.
    defined: BTreeSet<&'a str>,
    findings: &'f mut Vec<Diagnostic>,
}

impl<'a> Ctx<'a, '_> {
    fn report(&mut self, message: String) {
        self.report_at(message, &Origin::default());
    }

    fn report_at(&mut self, message: String, at: &Origin) {
        let finding = Diagnostic::new(Code::Graph, message);
        self.findings.push(if *at == Origin::default() { finding } else { finding.at(at) });
    }

    fn program(&mut self) {
        let program = self.program;
        for guard in &program.guards {
            self.condition("a guard", &guard.condition);
        }
        for (name, value) in &program.sym_ints {
            self.expr(&format!("integer `{name}`"), value);
        }
        for (name, condition) in &program.conditions {
            self.condition(&format!("truth value `{name}`"), condition);
        }
        for (name, meta) in &program.tensors {
            self.meta(name, meta);
        }
        for (name, constant) in &program.constants {
            let size = |bytes: usize, size: &i64| bytes.checked_mul(usize::try_from(*size).ok()?);
            let needed = constant.sizes.iter().try_fold(constant.dtype.size(), size);
            if needed != Some(constant.data.len()) {
                self.report(format!(
                    "constant `{name}` has {} bytes, not those of its sizes",
                    constant.data.len()
                ));
            }
        }
        for input in &program.inputs {
            self.input(input);
        }
        for call in &program.calls {
            self.call(call);
        }
        self.outputs();
    }

    fn condition(&mut self, what: &str, condition: &Condition) {
        condition.expressions().into_iter().for_each(|expr| self.expr(what, expr));
    }

    fn expr(&mut self, what: &str, expr: &Expr) {
        let mut symbols = BTreeSet::new();
        expr.collect_symbols(&mut symbols);
        for symbol in symbols {
            if symbol.kind == SymbolKind::Axis || symbol.index as usize >= self.n_symbols {
                self.report(format!("{what} mentions {symbol}, which does not exist"));
            }
        }
    }

    fn meta(&mut self, name: &str, meta: &TensorMeta) {
        let what = format!("tensor `{name}`");
        for expr in meta.sizes.iter().chain(&meta.strides).chain([&meta.storage_offset]) {
            self.expr(&what, expr);
        }
    }

    fn define(&mut self, name: &'a str, at: &Origin) {
        // Results that nothing uses may have no name.
        if !name.is_empty() && !self.defined.insert(name) {
            self.report_at(format!("`{name}` is defined twice"), at);
        }
    }

    fn used(&mut self, name: &str, at: &Origin) {
        if !self.defined.contains(name) {
            self.report_at(format!("`{name}` is used before it is defined"), at);
        }
    }

    fn input(&mut self, input: &'a ProgramInput) {
        let name = &input.name;
        self.define(name, &Origin::default());
        let meta = self.program.tensors.get(name);
        match &input.kind {
            InputKind::User if meta.is_none() => {
                self.report(format!("nothing is said of input `{name}`"));
            }
            InputKind::Constant(key) => match (self.program.constants.get(key), meta) {
                (None, _) => self.report(format!("constant `{key}` of input `{name}` does not exist")),
                (Some(constant), Some(meta)) => {
                    let sizes: Vec<Expr> = constant.sizes.iter().copied().map(Expr::int).collect();
                    if constant.dtype != meta.dtype || sizes != meta.stored_sizes() {
                        self.report(format!("constant `{key}` is not of the type of input `{name}`"));
                    }
                }
                (Some(_), None) => {}
            },
            InputKind::UserInt(value) => self.expr(&format!("input `{name}`"), value),
            InputKind::User | InputKind::UserConstant => {}
        }
    }

    fn call(&mut self, call: &'a Call) {
        let at = &call.origin;
        let mut names = BTreeSet::new();
        for (name, arg) in &call.args {
            if !name.is_empty() && !names.insert(name) {
                self.report_at(format!("argument `{name}` of `{}` is given twice", call.target), at);
            }
            self.arg(arg, at);
        }
        self.bodies(call);
        for output in &call.outputs {
            output.tensors().into_iter().for_each(|name| self.define(name, at));
            match output {
                Output::SymInt(name) => {
                    self.define(name, at);
                    if !self.program.sym_ints.contains_key(name) {
                        self.report_at(format!("the value of the integer `{name}` is not known"), at);
                    }
                }
                Output::SymBool(name) | Output::SymFloat(name) => self.define(name, at),
                Output::Tensor(_) | Output::Tensors(_) | Output::None => {}
            }
        }
    }

    fn arg(&mut self, arg: &Arg, at: &Origin) {
        match arg {
            Arg::Tensor(_) | Arg::Tensors(_) => {
                arg.tensors().into_iter().for_each(|name| self.used(name, at))
            }
            Arg::SymBool(name) | Arg::SymFloat(name) => self.used(name, at),
            Arg::Condition(condition) => self.condition("an argument", condition),
            Arg::Int(value) => self.expr("an argument", value),
            Arg::Ints(values) => values.iter().for_each(|value| self.expr("an argument", value)),
            Arg::None
            | Arg::Float(_)
            | Arg::Floats(_)
            | Arg::Complex { .. }
            | Arg::Bool(_)
            | Arg::Bools(_)
            | Arg::Str(_)
            | Arg::DType(_)
            | Arg::Other(_)
            | Arg::Graph(_) => {}
        }
    }

    /// Bodies are programs on their own, but for the symbols. Values for them are the arguments that are tensors and
    /// integers behind the last body; how an operator without bodies of its own kind calls one is not known here.
    fn bodies(&mut self, call: &'a Call) {
        let Some(last) = call.args.iter().rposition(|(_, arg)| arg.graph().is_some()) else { return };
        let given: usize = call.args[last + 1..].iter().map(|(_, arg)| count(arg)).sum();
        let branches = matches!(call.target.as_str(), "higher_order.cond" | "higher_order.while_loop");
        for body in call.args.iter().filter_map(|(_, arg)| arg.graph()) {
            if !(body.symbols.is_empty() && body.guards.is_empty() && body.constants.is_empty()) {
                self.report_at(
                    format!("body `{}` has symbols or constants of its own", body.name),
                    &call.origin,
                );
            }
            if branches && body.inputs.len() != given {
                let (name, takes) = (&body.name, body.inputs.len());
                self.report_at(
                    format!("body `{name}` takes {takes} values, {given} are given"),
                    &call.origin,
                );
            }
            let defined = BTreeSet::new();
            Ctx { n_symbols: self.n_symbols, program: body, defined, findings: self.findings }.program();
        }
    }

    fn outputs(&mut self) {
        let program = self.program;
        for output in &program.outputs {
            self.arg(&output.value, &Origin::default());
            let exists = match &output.kind {
                OutputKind::User => true,
                OutputKind::BufferMutation(name) => program.constants.contains_key(name),
                OutputKind::InputMutation(name) => {
                    program.inputs.iter().any(|input| input.name == *name && input.kind == InputKind::User)
                }
            };
            if !exists {
                self.report(format!("output {:?} overwrites what does not exist", output.value));
            }
        }
    }
}

/// How many values an argument gives to a body.
fn count(arg: &Arg) -> usize {
    match arg {
        Arg::Tensor(_) | Arg::Int(_) => 1,
        Arg::Tensors(names) => names.iter().flatten().count(),
        Arg::Ints(values) => values.len(),
        Arg::None
        | Arg::Float(_)
        | Arg::Floats(_)
        | Arg::Complex { .. }
        | Arg::Bool(_)
        | Arg::Bools(_)
        | Arg::Condition(_)
        | Arg::SymBool(_)
        | Arg::SymFloat(_)
        | Arg::Str(_)
        | Arg::DType(_)
        | Arg::Other(_)
        | Arg::Graph(_) => 0,
    }
}
