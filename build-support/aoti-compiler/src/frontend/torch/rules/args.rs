//! Typed access to the arguments of a call.

use super::RuleError;
use crate::dtype::DType;
use crate::frontend::torch::aten::{Arg, Call, Program, TensorMeta};
use crate::graph::{Scalar, ValueId};
use crate::symbolic::Expr;
use indexmap::IndexMap;

/// The arguments of one call, tensors already resolved to values of the core graph.
pub struct Args<'a> {
    pub(crate) call: &'a Call,
    pub(crate) program: &'a Program,
    /// Current value of every tensor argument, by its name in the program.
    pub(crate) tensors: &'a IndexMap<String, ValueId>,
}

impl<'a> Args<'a> {
    /// The arguments of a call of `program` whose tensors have these values.
    pub(crate) fn new(
        call: &'a Call,
        program: &'a Program,
        tensors: &'a IndexMap<String, ValueId>,
    ) -> Args<'a> {
        Args { call, program, tensors }
    }

    /// The overload's name.
    pub fn target(&self) -> &'a str {
        &self.call.target
    }

    fn find(&self, name: &str) -> Option<&'a Arg> {
        self.call
            .args
            .iter()
            .find(|(own, _)| own == name)
            .map(|(_, arg)| arg)
            .filter(|arg| **arg != Arg::None)
    }

    /// Whether an argument is given and not `None`.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_some()
    }

    /// The argument as the program has it.
    pub fn raw(&self, name: &str) -> Option<&'a Arg> {
        self.find(name)
    }

    fn want(&self, name: &str) -> Result<&'a Arg, RuleError> {
        self.find(name).ok_or_else(|| RuleError::Malformed(format!("argument `{name}` is missing")))
    }

    fn kind_error<T>(&self, name: &str, wanted: &str) -> Result<T, RuleError> {
        Err(RuleError::Malformed(format!("argument `{name}` is not {wanted}")))
    }

    fn resolve(&self, tensor: &str) -> Result<ValueId, RuleError> {
        let value = self.tensors.get(tensor).copied();
        value.ok_or_else(|| RuleError::Malformed(format!("tensor `{tensor}` is not defined")))
    }

    /// A tensor.
    pub fn tensor(&self, name: &str) -> Result<ValueId, RuleError> {
        let (Arg::Tensor(tensor) | Arg::SymBool(tensor) | Arg::SymFloat(tensor)) = self.want(name)? else {
            return self.kind_error(name, "a tensor");
        };
        self.resolve(tensor)
    }

    /// A tensor that may be absent.
    pub fn opt_tensor(&self, name: &str) -> Result<Option<ValueId>, RuleError> {
        self.has(name).then(|| self.tensor(name)).transpose()
    }

    /// A list of tensors.
    pub fn tensors(&self, name: &str) -> Result<Vec<ValueId>, RuleError> {
        let list = self.opt_tensors(name)?;
        list.into_iter()
            .map(|tensor| {
                tensor.ok_or_else(|| RuleError::Malformed(format!("`{name}` has an absent tensor")))
            })
            .collect()
    }

    /// A list of tensors, some of which may be absent.
    pub fn opt_tensors(&self, name: &str) -> Result<Vec<Option<ValueId>>, RuleError> {
        let arg = self.want(name)?;
        if is_empty_list(arg) {
            return Ok(vec![]);
        }
        let Arg::Tensors(list) = arg else { return self.kind_error(name, "a list of tensors") };
        list.iter().map(|tensor| tensor.as_deref().map(|t| self.resolve(t)).transpose()).collect()
    }

    /// What the program says of a tensor argument: strides matter to few operators.
    pub fn meta(&self, name: &str) -> Result<&'a TensorMeta, RuleError> {
        let Arg::Tensor(tensor) = self.want(name)? else { return self.kind_error(name, "a tensor") };
        let meta = self.program.tensors.get(tensor);
        meta.ok_or_else(|| RuleError::Malformed(format!("tensor `{tensor}` has no description")))
    }

    /// What the program says of output `index`, where it is a tensor.
    pub fn output_meta(&self, index: usize) -> Option<&'a TensorMeta> {
        self.program.tensors.get(self.call.outputs.get(index)?.tensor()?)
    }

    /// The element type that the program states for its first output.
    pub fn output_dtype(&self) -> Option<DType> {
        let first = self.call.outputs.first()?.tensors().first().copied()?;
        self.program.tensors.get(first).map(|meta| meta.dtype)
    }

    /// An integer, perhaps symbolic.
    pub fn sym(&self, name: &str) -> Result<Expr, RuleError> {
        let arg = self.want(name)?;
        if let Arg::Bool(value) = arg {
            return Ok(Expr::int(i64::from(*value)));
        }
        let Arg::Int(value) = arg else { return self.kind_error(name, "an integer") };
        Ok(value.clone())
    }

    /// An integer, perhaps symbolic, that may be absent.
    pub fn opt_sym(&self, name: &str) -> Result<Option<Expr>, RuleError> {
        self.has(name).then(|| self.sym(name)).transpose()
    }

    /// An integer, perhaps symbolic, with a default.
    pub fn sym_or(&self, name: &str, default: i64) -> Result<Expr, RuleError> {
        if self.has(name) { self.sym(name) } else { Ok(Expr::int(default)) }
    }

    /// Integers, perhaps symbolic. One integer counts as a list of one.
    pub fn syms(&self, name: &str) -> Result<Vec<Expr>, RuleError> {
        let arg = self.want(name)?;
        if is_empty_list(arg) {
            return Ok(vec![]);
        }
        if let Arg::Int(value) = arg {
            return Ok(vec![value.clone()]);
        }
        let Arg::Ints(values) = arg else { return self.kind_error(name, "a list of integers") };
        Ok(values.clone())
    }

    /// Integers, perhaps symbolic, with a default for all of them.
    pub fn syms_or(&self, name: &str, default: i64) -> Result<Vec<Expr>, RuleError> {
        if self.has(name) { self.syms(name) } else { Ok(vec![Expr::int(default)]) }
    }

    /// A fixed integer.
    pub fn int(&self, name: &str) -> Result<i64, RuleError> {
        let value = self.sym(name)?;
        value
            .as_int()
            .ok_or_else(|| RuleError::unsupported(format!("argument `{name}` is `{value}`, not a constant")))
    }

    /// A fixed integer with a default.
    pub fn int_or(&self, name: &str, default: i64) -> Result<i64, RuleError> {
        if self.has(name) { self.int(name) } else { Ok(default) }
    }

    /// A fixed integer that may be absent.
    pub fn opt_int(&self, name: &str) -> Result<Option<i64>, RuleError> {
        self.has(name).then(|| self.int(name)).transpose()
    }

    /// Fixed integers.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>, RuleError> {
        let constant = |value: &Expr| {
            value
                .as_int()
                .ok_or_else(|| RuleError::unsupported(format!("`{name}` holds `{value}`, not a constant")))
        };
        self.syms(name)?.iter().map(constant).collect()
    }

    /// Fixed integers with a default.
    pub fn ints_or(&self, name: &str, default: &[i64]) -> Result<Vec<i64>, RuleError> {
        if self.has(name) { self.ints(name) } else { Ok(default.to_vec()) }
    }

    /// A truth value with a default.
    pub fn bool_or(&self, name: &str, default: bool) -> Result<bool, RuleError> {
        match self.find(name) {
            None => Ok(default),
            Some(Arg::Bool(value)) => Ok(*value),
            Some(Arg::Int(value)) => Ok(!value.is(0)),
            Some(_) => self.kind_error(name, "a truth value"),
        }
    }

    /// A number.
    pub fn scalar(&self, name: &str) -> Result<Scalar, RuleError> {
        let arg = self.want(name)?;
        if let Arg::Float(value) = arg {
            return Ok(Scalar::Float(*value));
        }
        if let Arg::Bool(value) = arg {
            return Ok(Scalar::Bool(*value));
        }
        let Arg::Int(value) = arg else { return self.kind_error(name, "a number") };
        let number = value.as_int().map(Scalar::from);
        number.ok_or_else(|| RuleError::unsupported(format!("`{name}` is `{value}`, not a constant")))
    }

    /// A number that may be absent.
    pub fn opt_scalar(&self, name: &str) -> Result<Option<Scalar>, RuleError> {
        self.has(name).then(|| self.scalar(name)).transpose()
    }

    /// A number with a default.
    pub fn scalar_or(&self, name: &str, default: impl Into<Scalar>) -> Result<Scalar, RuleError> {
        if self.has(name) { self.scalar(name) } else { Ok(default.into()) }
    }

    /// A floating-point number with a default.
    pub fn float_or(&self, name: &str, default: f64) -> Result<f64, RuleError> {
        Ok(self.scalar_or(name, default)?.to_f64())
    }

    /// Floating-point numbers.
    pub fn floats(&self, name: &str) -> Result<Vec<f64>, RuleError> {
        let arg = self.want(name)?;
        if let Arg::Float(value) = arg {
            return Ok(vec![*value]);
        }
        if let Arg::Floats(values) = arg {
            return Ok(values.clone());
        }
        let Arg::Ints(values) = arg else { return self.kind_error(name, "a list of numbers") };
        let fixed = |value: &Expr| value.as_int().map(|value| value as f64);
        let fixed: Option<Vec<f64>> = values.iter().map(fixed).collect();
        fixed.ok_or_else(|| RuleError::unsupported("symbolic numbers"))
    }

    /// Text with a default.
    pub fn str_or(&self, name: &str, default: &'a str) -> Result<&'a str, RuleError> {
        match self.find(name) {
            None => Ok(default),
            Some(Arg::Str(text)) => Ok(text),
            Some(_) => self.kind_error(name, "text"),
        }
    }

    /// An element type that may be absent.
    pub fn opt_dtype(&self, name: &str) -> Result<Option<DType>, RuleError> {
        match self.find(name) {
            None => Ok(None),
            Some(Arg::DType(dtype)) => Ok(Some(*dtype)),
            Some(_) => self.kind_error(name, "an element type"),
        }
    }
}

/// What an empty list is a list of is not known.
fn is_empty_list(arg: &Arg) -> bool {
    matches!(arg, Arg::Ints(list) if list.is_empty()) || matches!(arg, Arg::Tensors(list) if list.is_empty())
}
