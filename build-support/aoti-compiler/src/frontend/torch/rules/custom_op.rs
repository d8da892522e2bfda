//! Calls of custom operators: what is given for each argument of a schema, and how functions and graphs take it.

use super::{Context, RuleError};
use crate::dtype::DType;
use crate::frontend::torch::custom::{Argument, Default, Type};
use crate::graph::{ExternArgument, Graph, Number, NumberKind, Scalar, ShapeError, Spliced, ValueId};
use crate::symbolic::Expr;

/// What a call gives for one argument.
pub(crate) enum Given {
    Tensor(ValueId),
    /// A tensor of the program that is changed, and what it is.
    Changed(String, ValueId),
    NoTensor,
    Tensors(Vec<ValueId>),
    Number(Number),
    Optional(NumberKind, Option<Number>),
    Numbers(NumberKind, Option<Vec<Number>>),
    Text(Option<String>),
}

/// What a call gives, as a function takes it.
pub(crate) struct Taken {
    pub(crate) arguments: Vec<ExternArgument>,
    /// The tensors among them.
    pub(crate) operands: Vec<ValueId>,
    /// Those of the program that are changed, and what they are.
    pub(crate) changed: Vec<(String, ValueId)>,
}

impl Context {
    /// The results of a graph for what a call gives.
    pub(crate) fn of_operators_graph(
        &mut self,
        graph: &Graph,
        given: Vec<Given>,
    ) -> Result<Vec<ValueId>, RuleError> {
        let operands = given.into_iter().map(|given| self.as_operand(given));
        let operands = operands.collect::<Result<Vec<Spliced>, RuleError>>()?;
        let spliced = self.b.splice(graph, &operands);
        spliced.map_err(|ShapeError(fault)| RuleError::Malformed(format!("its graph: {fault}")))
    }

    /// An argument as an operand of a graph; declarations have seen to it that it is one tensor or number.
    fn as_operand(&mut self, given: Given) -> Result<Spliced, RuleError> {
        let plain = |value: ValueId| Spliced { value, number: None };
        match given {
            Given::Tensor(value) => Ok(plain(value)),
            Given::Number(Number::Int(expr)) => {
                Ok(Spliced { value: self.b.index(expr.clone(), &[]), number: Some(expr) })
            }
            Given::Number(Number::Float(number)) => {
                Ok(plain(self.b.scalar(Scalar::Float(number), DType::F64)))
            }
            Given::Number(Number::Bool(flag)) => Ok(plain(self.b.scalar(flag, DType::Bool))),
            Given::NoTensor
            | Given::Changed(..)
            | Given::Tensors(_)
            | Given::Optional(..)
            | Given::Numbers(..)
            | Given::Text(_) => Err(RuleError::Malformed("a graph takes tensors and numbers".to_owned())),
        }
    }
}

/// What a call gives, as a function takes it.
pub(crate) fn taken(given: Vec<Given>) -> Taken {
    let (mut arguments, mut operands, mut changed) = (Vec::new(), Vec::new(), Vec::new());
    for given in given {
        arguments.push(match given {
            Given::Tensor(value) => {
                operands.push(value);
                ExternArgument::Tensor
            }
            Given::Changed(name, value) => {
                operands.push(value);
                changed.push((name, value));
                ExternArgument::Changed
            }
            Given::Tensors(values) => {
                let count = values.len();
                operands.extend(values);
                ExternArgument::Tensors(count)
            }
            Given::NoTensor => ExternArgument::NoTensor,
            Given::Number(number) => ExternArgument::Number(number),
            Given::Optional(kind, number) => ExternArgument::Optional(kind, number),
            Given::Numbers(kind, numbers) => ExternArgument::Numbers(kind, numbers),
            Given::Text(text) => ExternArgument::Text(text),
        });
    }
    Taken { arguments, operands, changed }
}

/// The argument where it is `None`.
pub(crate) fn none_of(argument: &Argument) -> Given {
    match (argument.ty.number(), argument.is_list) {
        (Some(kind), true) => Given::Numbers(kind, None),
        (Some(kind), false) => Given::Optional(kind, None),
        (None, _) if argument.ty == Type::Text => Given::Text(None),
        (None, _) => Given::NoTensor,
    }
}

/// The argument where it is what its schema says; schemas are parsed so that it fits.
pub(crate) fn default_as(default: &Default, argument: &Argument) -> Given {
    let number = |kind: NumberKind, default: &Default| match (kind, default) {
        (NumberKind::Float, Default::Int(value)) => Number::Float(*value as f64),
        (_, Default::Int(value)) => Number::Int(Expr::int(*value)),
        (_, Default::Float(value)) => Number::Float(*value),
        (_, Default::Bool(value)) => Number::Bool(*value),
        (_, Default::None | Default::Text(_) | Default::List(_)) => Number::Int(Expr::int(0)),
    };
    match (default, argument.ty.number()) {
        (Default::None, _) => none_of(argument),
        (Default::List(items), Some(kind)) => {
            Given::Numbers(kind, Some(items.iter().map(|item| number(kind, item)).collect()))
        }
        (Default::List(_), None) => Given::Tensors(vec![]),
        (Default::Text(text), _) => Given::Text(Some(text.clone())),
        (one, Some(kind)) if argument.is_optional => Given::Optional(kind, Some(number(kind, one))),
        (one, Some(kind)) => Given::Number(number(kind, one)),
        (_, None) => none_of(argument),
    }
}
