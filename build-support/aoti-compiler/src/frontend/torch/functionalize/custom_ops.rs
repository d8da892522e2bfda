//! Calls of custom operators: checked against their schemas, then calls of functions, or graphs
//! that become part of the program.

use super::super::rules::custom_op::{Given, Taken, default_as, none_of, taken};
use super::super::rules::{Outputs, RuleError};
use super::run::Walk;
use crate::frontend::torch::aten::{Arg, Call, Output};
use crate::frontend::torch::custom::{self, Argument, Declared, DeclaredCode, Schema, Type};
use crate::graph::{ExternCall, Number, NumberKind};

impl Walk<'_> {
    pub(crate) fn custom_op(&mut self, call: &Call, own: &Declared) -> Result<(), RuleError> {
        let given = self.given(call, &own.schema)?;
        match &own.code {
            DeclaredCode::Function(symbol) => self.extern_call(call, own, symbol, given),
            DeclaredCode::Graph(graph) => {
                let values = self.cx.of_operators_graph(graph, given)?;
                let outputs = match values.as_slice() {
                    [value] => Outputs::One(*value),
                    _ => Outputs::Many(values.into_iter().map(Some).collect()),
                };
                self.bind(call, outputs, None)
            }
        }
    }

    /// What a call gives for each argument of a schema.
    fn given(&mut self, call: &Call, schema: &Schema) -> Result<Vec<Given>, RuleError> {
        let unknown = |(name, _): &&(String, Arg)| !schema.arguments.iter().any(|own| own.name == *name);
        if let Some((name, _)) = call.args.iter().find(unknown) {
            return Err(mismatch(format!(
                "the program gives `{name}`, which the declared schema does not have"
            )));
        }
        let mut all = Vec::new();
        for argument in &schema.arguments {
            let arg = call.args.iter().find(|(name, _)| *name == argument.name).map(|(_, arg)| arg);
            all.push(match (arg, &argument.default) {
                (Some(arg), _) => self.given_as(arg, argument)?,
                (None, Some(default)) => default_as(default, argument),
                (None, None) if argument.is_optional => none_of(argument),
                (None, None) => {
                    let name = &argument.name;
                    return Err(mismatch(format!(
                        "the program gives no `{name}`, for which the declared schema has no default"
                    )));
                }
            });
        }
        Ok(all)
    }

    fn given_as(&mut self, arg: &Arg, argument: &Argument) -> Result<Given, RuleError> {
        let other = || {
            mismatch(format!(
                "`{}` is {}, the declared schema has `{argument}`",
                argument.name,
                description(arg)
            ))
        };
        if *arg == Arg::None {
            return if argument.is_optional { Ok(none_of(argument)) } else { Err(other()) };
        }
        let Some(kind) = argument.ty.number() else {
            return match (argument.ty, arg) {
                (Type::Text, Arg::Str(text)) => Ok(Given::Text(Some(text.clone()))),
                (Type::Tensor, Arg::Tensor(name)) if argument.is_changed => {
                    Ok(Given::Changed(name.clone(), self.read(name)?))
                }
                (Type::Tensor, Arg::Tensor(name)) if !argument.is_list => Ok(Given::Tensor(self.read(name)?)),
                (Type::Tensor, Arg::Tensors(names)) if argument.is_list => {
                    let names: Option<Vec<&String>> = names.iter().map(Option::as_ref).collect();
                    let names = names.ok_or_else(other)?;
                    Ok(Given::Tensors(
                        names.into_iter().map(|name| self.read(name)).collect::<Result<_, _>>()?,
                    ))
                }
                (Type::Tensor, arg) if argument.is_list && is_empty(arg) => Ok(Given::Tensors(vec![])),
                _ => Err(other()),
            };
        };
        if argument.is_list {
            let numbers = numbers_as(arg, kind).ok_or_else(other)?;
            return Ok(Given::Numbers(kind, Some(numbers)));
        }
        if let Arg::Tensor(_) | Arg::SymBool(_) | Arg::SymFloat(_) | Arg::Condition(_) = arg {
            return Err(RuleError::unsupported(format!(
                "`{}` is a number that the program computes, which a function cannot be given yet",
                argument.name
            )));
        }
        let number = number_as(arg, kind).ok_or_else(other)?;
        Ok(if argument.is_optional { Given::Optional(kind, Some(number)) } else { Given::Number(number) })
    }

    fn extern_call(
        &mut self,
        call: &Call,
        own: &Declared,
        symbol: &str,
        given: Vec<Given>,
    ) -> Result<(), RuleError> {
        let Taken { arguments, operands, changed } = taken(given);
        let (mut results, names) = results_of(call, &own.schema)?;
        let (operator, symbol) = (own.name.clone(), custom::link_name(symbol, &own.schema));
        let values = if own.schema.decides_sizes {
            results = own.schema.functions_results().map(|_| None).collect();
            let called = ExternCall { operator, symbol, arguments, results };
            self.of_decided_sizes(called, &operands, (&names, &call.origin.source))?
        } else {
            let mut types = names.iter().map(|name| self.type_of(name)).collect::<Result<Vec<_>, _>>()?;
            types.extend(changed.iter().map(|(_, value)| self.cx.b.graph().ty(*value).clone()));
            self.cx.b.extern_call(ExternCall { operator, symbol, arguments, results }, &operands, types)
        };
        let mut values = values.into_iter();
        for (name, value) in names.into_iter().zip(&mut values) {
            self.cx.b.name(value, name);
            self.define(name, value);
        }
        // One after the other, where they are parts of one tensor.
        for ((name, _), value) in changed.iter().zip(values) {
            self.write(name, value)?;
        }
        Ok(())
    }
}

/// A call that is not as its operator is declared.
fn mismatch(message: String) -> RuleError {
    RuleError::Malformed(message)
}

fn number_as(arg: &Arg, kind: NumberKind) -> Option<Number> {
    match (kind, arg) {
        (NumberKind::Int, Arg::Int(expr)) => Some(Number::Int(expr.clone())),
        (NumberKind::Float, Arg::Float(value)) => Some(Number::Float(*value)),
        // Python's numbers without a point are good where one with it is wanted.
        (NumberKind::Float, Arg::Int(expr)) => expr.as_int().map(|value| Number::Float(value as f64)),
        (NumberKind::Bool, Arg::Bool(value)) => Some(Number::Bool(*value)),
        _ => None,
    }
}

fn numbers_as(arg: &Arg, kind: NumberKind) -> Option<Vec<Number>> {
    match (kind, arg) {
        (_, arg) if is_empty(arg) => Some(vec![]),
        (NumberKind::Int, Arg::Ints(items)) => Some(items.iter().cloned().map(Number::Int).collect()),
        (NumberKind::Float, Arg::Floats(items)) => Some(items.iter().copied().map(Number::Float).collect()),
        (NumberKind::Float, Arg::Ints(items)) => {
            items.iter().map(|item| item.as_int().map(|value| Number::Float(value as f64))).collect()
        }
        (NumberKind::Bool, Arg::Bools(items)) => Some(items.iter().copied().map(Number::Bool).collect()),
        _ => None,
    }
}

/// What an empty list is a list of is not known.
fn is_empty(arg: &Arg) -> bool {
    matches!(arg, Arg::Ints(list) if list.is_empty())
        || matches!(arg, Arg::Tensors(list) if list.is_empty())
        || matches!(arg, Arg::Floats(list) if list.is_empty())
        || matches!(arg, Arg::Bools(list) if list.is_empty())
}

fn description(arg: &Arg) -> &'static str {
    match arg {
        Arg::None => "None",
        Arg::Tensor(_) => "a tensor",
        Arg::Tensors(_) => "a list of tensors",
        Arg::Int(_) => "an integer",
        Arg::Ints(_) => "a list of integers",
        Arg::Float(_) | Arg::SymFloat(_) => "a float",
        Arg::Floats(_) => "a list of floats",
        Arg::Complex { .. } => "a complex number",
        Arg::Bool(_) | Arg::Condition(_) | Arg::SymBool(_) => "a bool",
        Arg::Bools(_) => "a list of bools",
        Arg::Str(_) => "text",
        Arg::DType(_) => "an element type",
        Arg::Other(_) => "a device, layout or memory format",
        Arg::Graph(_) => "a graph",
    }
}

/// How many tensors each result of a call is, and the names of all of them.
fn results_of<'c>(call: &'c Call, schema: &Schema) -> Result<(Vec<Option<usize>>, Vec<&'c str>), RuleError> {
    let outputs: Vec<&Output> = call.outputs.iter().filter(|output| **output != Output::None).collect();
    let shapes: Option<Vec<Option<usize>>> = outputs
        .iter()
        .map(|output| match output {
            Output::Tensor(_) => Some(None),
            Output::Tensors(names) => Some(Some(names.len())),
            Output::SymInt(_) | Output::SymBool(_) | Output::SymFloat(_) | Output::None => None,
        })
        .collect();
    let is_declared = |shapes: &Vec<Option<usize>>| {
        let declared = schema.results.iter().map(|result| result.is_list);
        shapes.iter().map(Option::is_some).eq(declared)
    };
    let (given, declared) = (outputs.len(), schema.results.len());
    match shapes.filter(is_declared) {
        Some(shapes) => Ok((shapes, outputs.into_iter().flat_map(Output::tensors).collect())),
        None if given != declared => {
            Err(mismatch(format!("the program has {given} results, the declared schema has {declared}")))
        }
        None => Err(mismatch("the program has results of other types than the declared schema".to_owned())),
    }
}
