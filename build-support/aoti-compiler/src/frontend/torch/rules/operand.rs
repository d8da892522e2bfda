//! Operands that may be tensors or numbers, and what two of them promote to.

use super::context::common_type;
use super::{Args, Context, Formula, RuleError};
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::{BinaryOp, Condition, FloatBinary, Scalar, ValueId};
use crate::symbolic::Expr;

/// An argument that is a tensor or a number.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor.
    Tensor(ValueId),
    /// A number.
    Number(Scalar),
    /// An integer over the program's sizes.
    Size(Expr),
    /// A truth value over the program's sizes.
    Truth(Condition),
    /// A number that is computed when the program runs, as a tensor without axes.
    Computed(ValueId, Scalar),
}

impl Operand {
    /// What it counts as in promotion, if it is no tensor.
    fn number(&self) -> Option<Scalar> {
        match self {
            Operand::Tensor(_) => None,
            Operand::Number(number) => Some(*number),
            Operand::Size(_) => Some(Scalar::Int(0)),
            Operand::Truth(_) => Some(Scalar::Bool(false)),
            Operand::Computed(_, kind) => Some(*kind),
        }
    }

    /// As a tensor of an element type; a number has no axes.
    pub fn to_value(&self, cx: &mut Context, dtype: DType) -> ValueId {
        match self {
            Operand::Tensor(value) | Operand::Computed(value, _) => cx.b.cast(*value, dtype),
            Operand::Truth(condition) => {
                let value = cx.truth(condition);
                cx.b.cast(value, dtype)
            }
            Operand::Number(number) => cx.b.scalar(*number, dtype),
            Operand::Size(size) => {
                let value = cx.b.index(size.clone(), &[]);
                cx.b.cast(value, dtype)
            }
        }
    }

    /// As [`Operand::to_value`] where PyTorch wants a number to be one of the element type.
    pub fn to_element(&self, cx: &mut Context, dtype: DType) -> Result<ValueId, RuleError> {
        cx.require_element(self, dtype)?;
        Ok(self.to_value(cx, dtype))
    }

    /// As an operand of a formula in an element type.
    pub fn formula(&self, cx: &mut Context, dtype: DType) -> Formula {
        match self {
            Operand::Number(number) => Formula::from(*number),
            Operand::Tensor(_) | Operand::Size(_) | Operand::Truth(_) | Operand::Computed(..) => {
                Formula::from(self.to_value(cx, dtype))
            }
        }
    }

    /// Whether it is this number.
    pub fn is(&self, number: f64) -> bool {
        matches!(self, Operand::Number(own) if own.to_f64() == number)
    }
}

impl Context {
    /// The element type that operands, tensors or numbers, promote to.
    pub fn operands_type(&self, operands: &[&Operand]) -> Result<DType, RuleError> {
        let tensors: Vec<ValueId> = operands
            .iter()
            .filter_map(|operand| if let Operand::Tensor(value) = operand { Some(*value) } else { None })
            .collect();
        let numbers = operands.iter().filter_map(|operand| operand.number());
        if tensors.is_empty() {
            let types = numbers.map(|number| self.number_type(number));
            return Ok(common_type(types)?.unwrap_or(self.default_float));
        }
        // The number of the highest kind decides; one of a lower kind changes nothing beside it.
        let highest = numbers.max_by_key(|number| self.number_type(*number).category());
        match highest {
            Some(number) => self.result_type_with(&tensors, number),
            None => self.result_type(&tensors),
        }
    }

    /// The element type of a tensor made of one number.
    fn number_type(&self, number: Scalar) -> DType {
        match number {
            Scalar::Bool(_) => DType::Bool,
            Scalar::Int(_) => DType::I64,
            Scalar::Float(_) => self.default_float,
        }
    }

    /// A tensor times a number, in the tensor's type.
    pub fn scaled(&mut self, x: ValueId, factor: &Operand) -> Result<ValueId, RuleError> {
        match factor {
            factor if factor.is(1.0) => Ok(x),
            Operand::Number(number) => self.with_number(BinaryOp::Mul, x, *number),
            Operand::Tensor(_) | Operand::Size(_) | Operand::Truth(_) | Operand::Computed(..) => {
                let factor = factor.to_value(self, self.b.dtype(x));
                self.mul(x, factor)
            }
        }
    }

    /// A function of two operands in their common type. Half types with a number are computed in `f32`, where the
    /// number keeps its digits.
    pub fn combine(
        &mut self,
        op: impl Into<BinaryOp>,
        a: &Operand,
        b: &Operand,
    ) -> Result<ValueId, RuleError> {
        let dtype = self.operands_type(&[a, b])?;
        self.combine_as(op, a, b, dtype)
    }

    /// As [`Context::combine`], in the given type.
    pub fn combine_as(
        &mut self,
        op: impl Into<BinaryOp>,
        a: &Operand,
        b: &Operand,
        dtype: DType,
    ) -> Result<ValueId, RuleError> {
        use BinaryOp::{Add, Float, Mul, Sub};
        let op = op.into();
        let keeps_digits = matches!(op, Add | Sub | Mul | Float(FloatBinary::Div));
        let has_number = a.number().is_some() || b.number().is_some();
        let wide = if keeps_digits && has_number { dtype.compute() } else { dtype };
        let result = match (a, b) {
            (Operand::Tensor(x), Operand::Number(number)) => {
                let x = self.b.cast(*x, wide);
                self.with_number(op, x, *number)?
            }
            (Operand::Number(number), Operand::Tensor(y)) => {
                let y = self.b.cast(*y, wide);
                let x = self.b.full_like(*number, y);
                self.binary(op, x, y)?
            }
            _ => {
                let (x, y) = (a.to_value(self, wide), b.to_value(self, wide));
                self.binary(op, x, y)?
            }
        };
        Ok(if self.b.dtype(result) == wide { self.b.cast(result, dtype) } else { result })
    }
}

impl Args<'_> {
    /// An argument that is a tensor or a number: by one of its names, else by position among the given ones.
    pub fn operand(&self, names: &[&str], position: usize) -> Result<Operand, RuleError> {
        let named = names.iter().find_map(|name| self.raw(name).map(|arg| (*name, arg)));
        let positional = || self.call.args.get(position).map(|(name, arg)| (name.as_str(), arg));
        let Some((name, arg)) = named.or_else(positional) else {
            return Err(RuleError::Malformed(format!("operand {position} is missing")));
        };
        if let Arg::Tensor(_) = arg {
            return Ok(Operand::Tensor(self.tensor(name)?));
        }
        if let Arg::SymFloat(_) = arg {
            return Ok(Operand::Computed(self.tensor(name)?, Scalar::Float(0.0)));
        }
        if let Arg::SymBool(_) = arg {
            return Ok(Operand::Computed(self.tensor(name)?, Scalar::Bool(false)));
        }
        if let Arg::Condition(condition) = arg {
            return Ok(Operand::Truth(condition.clone()));
        }
        if let Arg::Int(size) = arg
            && size.as_int().is_none()
        {
            return Ok(Operand::Size(size.clone()));
        }
        Ok(Operand::Number(self.scalar(name)?))
    }

    /// A number that may be known only when the program runs.
    pub fn number(&self, name: &str) -> Result<Operand, RuleError> {
        if !self.has(name) {
            return Err(RuleError::Malformed(format!("argument `{name}` is missing")));
        }
        self.operand(&[name], 0)
    }

    /// A number with a default, which may be known only when the program runs.
    pub fn number_or(&self, name: &str, default: impl Into<Scalar>) -> Result<Operand, RuleError> {
        if self.has(name) { self.number(name) } else { Ok(Operand::Number(default.into())) }
    }

    /// The first operand of an element-wise operator, whatever the schema calls it.
    pub fn left(&self) -> Result<Operand, RuleError> {
        self.operand(&["self", "x", "input"], 0)
    }

    /// The second operand of an element-wise operator.
    pub fn right(&self) -> Result<Operand, RuleError> {
        self.operand(&["other", "exponent", "n"], 1)
    }

    /// The tensor that an operator of one operand works on.
    pub fn only(&self) -> Result<ValueId, RuleError> {
        match self.left()? {
            Operand::Tensor(value) => Ok(value),
            Operand::Number(_) | Operand::Size(_) | Operand::Truth(_) | Operand::Computed(..) => {
                Err(RuleError::Malformed("the operand is not a tensor".to_owned()))
            }
        }
    }
}
