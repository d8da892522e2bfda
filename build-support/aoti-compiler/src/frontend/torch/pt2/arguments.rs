//! Arguments of calls: names are checked to be defined, symbolic numbers are resolved.

use super::body::Body;
use super::expr::parse;
use super::import::Importer;
use super::origin::target;
use super::schema::{
    Argument, OptionalTensor, SymBool, SymBoolArgument, SymFloat, SymFloatArgument, SymIntArgument, Union,
};
use super::values;
use crate::diagnostic::Code;
use crate::frontend::torch::aten::Arg;
use crate::graph::{Condition, Origin};
use crate::symbolic::Expr;

impl Importer {
    /// An argument; `None` where it was refused.
    pub(super) fn arg(&mut self, body: &mut Body, arg: &Argument, at: &Origin) -> Option<Arg> {
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
            Argument::ScalarType(number) => match values::element(*number) {
                // That it is complex is said of the call's result.
                Ok((dtype, _)) => Some(Arg::DType(dtype)),
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
            Argument::SymFloat(value) => self.sym_float(body, value, at),
            Argument::SymFloats(values) => self.sym_floats(body, values, at),
            Argument::Graph(graph) => self.nested(&graph.name, &graph.graph, at),
            Argument::Complex(value) => Some(Arg::Complex { re: value.real.0, im: value.imag.0 }),
            Argument::Operator(name) => Some(Arg::Other(target(name).to_owned())),
            Argument::Named(values) if values.is_empty() => Some(Arg::None),
            Argument::Named(values) => {
                let names: Vec<&str> = values.keys().map(String::as_str).collect();
                Some(Arg::Other(names.join(", ")))
            }
            Argument::Strings(_) | Argument::SymBools(_) | Argument::CustomObj(_) | Argument::Unknown(_) => {
                let message = format!("an argument is of kind `{}`, which is not supported", arg.key());
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

    /// A tensor that must exist.
    pub(super) fn tensor(&mut self, body: &Body, name: &str, at: &Origin) -> Option<Arg> {
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
                    Some(match body.conditions.get(name) {
                        Some(condition) => Arg::Condition(condition.clone()),
                        None => Arg::SymBool(name.clone()),
                    })
                }
            },
            SymBoolArgument::Unknown(key) => {
                self.report(Code::Schema, format!("a symbolic truth value is of kind `{key}`"), at);
                None
            }
        }
    }

    /// A truth value as a condition on sizes; `None` where it is not one: then a call computes it.
    pub(super) fn condition(&mut self, truth: &SymBool) -> Option<Condition> {
        match truth {
            SymBool::Bool(true) => Some(Condition::TRUE),
            SymBool::Bool(false) => Some(Condition::FALSE),
            SymBool::Expr(expr) => {
                let tree = parse(&expr.expr_str).ok()?;
                tree.condition(&mut self.symbols).ok()
            }
            SymBool::Unknown(_) => None,
        }
    }

    /// Numbers in a list, which must be known.
    fn sym_floats(&mut self, body: &Body, values: &[SymFloatArgument], at: &Origin) -> Option<Arg> {
        let mut numbers = Vec::new();
        for value in values {
            let Arg::Float(number) = self.sym_float(body, value, at)? else {
                let message = "a list of numbers holds one that is computed when the program runs";
                self.report(Code::Operands, message, at);
                return None;
            };
            numbers.push(number);
        }
        Some(Arg::Floats(numbers))
    }

    fn sym_float(&mut self, body: &Body, value: &SymFloatArgument, at: &Origin) -> Option<Arg> {
        let SymFloatArgument::Name(name) = value else {
            return match value {
                SymFloatArgument::Float(value) => Some(Arg::Float(value.0)),
                SymFloatArgument::Name(_) => None,
                SymFloatArgument::Unknown(key) => {
                    self.report(Code::Schema, format!("a symbolic number is of kind `{key}`"), at);
                    None
                }
            };
        };
        match body.graph.sym_float_values.get(name) {
            Some(SymFloat::Float(value)) => Some(Arg::Float(value.0)),
            Some(SymFloat::Expr(_)) => {
                self.used(body, name, at);
                Some(Arg::SymFloat(name.clone()))
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
}
