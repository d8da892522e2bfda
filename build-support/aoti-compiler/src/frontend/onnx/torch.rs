//! Operators that PyTorch has too are computed by the rules of its operators: one rule for each, and the same kernels for a
//! model whichever way it was exported.

use super::walk::Onnx;
use crate::frontend::torch::aten::{Arg, Call, Program};
use crate::frontend::torch::rules::{Args, Outputs, RuleError};
use crate::graph::{Origin, ValueId};
use crate::symbolic::Expr;
use indexmap::IndexMap;

/// An argument of an operator of PyTorch.
#[derive(Clone, Debug)]
pub(super) enum Given {
    /// A tensor.
    Tensor(ValueId),
    /// Tensors.
    Tensors(Vec<ValueId>),
    /// Anything else.
    Other(Arg),
}

impl From<ValueId> for Given {
    fn from(value: ValueId) -> Given {
        Given::Tensor(value)
    }
}

impl From<Option<ValueId>> for Given {
    fn from(value: Option<ValueId>) -> Given {
        value.map_or(Given::Other(Arg::None), Given::Tensor)
    }
}

impl From<Vec<ValueId>> for Given {
    fn from(values: Vec<ValueId>) -> Given {
        Given::Tensors(values)
    }
}

impl From<i64> for Given {
    fn from(number: i64) -> Given {
        Given::Other(Arg::Int(Expr::int(number)))
    }
}

impl From<f64> for Given {
    fn from(number: f64) -> Given {
        Given::Other(Arg::Float(number))
    }
}

impl From<bool> for Given {
    fn from(flag: bool) -> Given {
        Given::Other(Arg::Bool(flag))
    }
}

impl From<&str> for Given {
    fn from(text: &str) -> Given {
        Given::Other(Arg::Str(text.to_owned()))
    }
}

impl From<&[i64]> for Given {
    fn from(numbers: &[i64]) -> Given {
        Given::Other(Arg::Ints(numbers.iter().map(|number| Expr::int(*number)).collect()))
    }
}

impl From<&[Expr]> for Given {
    fn from(sizes: &[Expr]) -> Given {
        Given::Other(Arg::Ints(sizes.to_vec()))
    }
}

impl From<Expr> for Given {
    fn from(size: Expr) -> Given {
        Given::Other(Arg::Int(size))
    }
}

impl Onnx<'_> {
    /// What an operator of PyTorch gives: `target` is its overload, arguments have the names of its schema.
    pub(super) fn torch(&mut self, target: &str, given: &[(&str, Given)]) -> Result<Outputs, RuleError> {
        let (mut tensors, mut args) = (IndexMap::new(), Vec::new());
        let mut tensor = |value: ValueId| {
            let name = format!("%{}", tensors.len());
            tensors.insert(name.clone(), value);
            name
        };
        for (name, given) in given {
            let arg = match given {
                Given::Tensor(value) => Arg::Tensor(tensor(*value)),
                Given::Tensors(values) => {
                    Arg::Tensors(values.iter().map(|value| Some(tensor(*value))).collect())
                }
                Given::Other(arg) => arg.clone(),
            };
            args.push(((*name).to_owned(), arg));
        }
        let call = Call { target: target.to_owned(), args, outputs: Vec::new(), origin: Origin::default() };
        let rule = self.rules.find(target);
        let rule = rule.unwrap_or_else(|| panic!("`{target}` has no rule"));
        let program = Program::default();
        rule.run_on(self, &Args::new(&call, &program, &tensors))
    }

    /// The same of an operator of one result.
    pub(super) fn torch1(&mut self, target: &str, given: &[(&str, Given)]) -> Result<ValueId, RuleError> {
        match self.torch(target, given)? {
            Outputs::One(value) => Ok(value),
            Outputs::Many(values) => match values.first() {
                Some(Some(value)) => Ok(*value),
                Some(None) | None => Err(RuleError::Malformed(format!("`{target}` has no result"))),
            },
            Outputs::List(_) | Outputs::Int(_) | Outputs::Nothing => {
                Err(RuleError::Malformed(format!("`{target}` does not give one tensor")))
            }
        }
    }
}
