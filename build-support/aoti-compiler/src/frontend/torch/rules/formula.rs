//! Formulas: element-wise expressions written as Rust expressions and emitted as core operators.
//!
//! A rule writes `x * x.sigmoid()` and [`Context::formula`] makes the nodes. Sharing within a formula is kept: a
//! sub-expression that is used twice is emitted once. Knows nothing of particular operators of ATen.

use super::{Context, RuleError};
use crate::dtype::DType;
use crate::graph::{
    BinaryOp, FloatBinary, FloatTest, FloatUnary, IntBinary, Relation, Rounding, Scalar, SpecialUnary,
    UnaryOp, ValueId,
};
use std::collections::BTreeMap;
use std::ops::{Add, Div, Mul, Neg, Sub};
use std::rc::Rc;

enum Term {
    Value(ValueId),
    Number(Scalar),
    Unary(UnaryOp, Formula),
    Binary(BinaryOp, Formula, Formula),
    Select(Formula, Formula, Formula),
    Cast(DType, Formula),
}

/// An element-wise expression. Numbers take the type of what they are combined with.
#[derive(Clone)]
pub struct Formula(Rc<Term>);

impl From<ValueId> for Formula {
    fn from(value: ValueId) -> Formula {
        Formula(Rc::new(Term::Value(value)))
    }
}

impl From<f64> for Formula {
    fn from(number: f64) -> Formula {
        Formula(Rc::new(Term::Number(Scalar::Float(number))))
    }
}

impl From<Scalar> for Formula {
    fn from(number: Scalar) -> Formula {
        Formula(Rc::new(Term::Number(number)))
    }
}

impl From<&Formula> for Formula {
    fn from(formula: &Formula) -> Formula {
        formula.clone()
    }
}

macro_rules! unary_methods {
    ($($name:ident $op:path,)*) => {$(
        #[doc = concat!("[`", stringify!($op), "`].")]
        pub fn $name(&self) -> Formula { self.unary($op) }
    )*};
}

macro_rules! binary_methods {
    ($($name:ident $op:path,)*) => {$(
        #[doc = concat!("[`", stringify!($op), "`].")]
        pub fn $name(&self, other: impl Into<Formula>) -> Formula { self.binary($op, other) }
    )*};
}

impl Formula {
    /// A function of one operand.
    pub fn unary(&self, op: impl Into<UnaryOp>) -> Formula {
        Formula(Rc::new(Term::Unary(op.into(), self.clone())))
    }

    /// A function of two operands.
    pub fn binary(&self, op: impl Into<BinaryOp>, other: impl Into<Formula>) -> Formula {
        Formula(Rc::new(Term::Binary(op.into(), self.clone(), other.into())))
    }

    /// This, a condition, chooses between two values.
    pub fn select(&self, then: impl Into<Formula>, otherwise: impl Into<Formula>) -> Formula {
        Formula(Rc::new(Term::Select(self.clone(), then.into(), otherwise.into())))
    }

    /// Conversion of the element type.
    pub fn cast(&self, dtype: DType) -> Formula {
        Formula(Rc::new(Term::Cast(dtype, self.clone())))
    }

    /// `self * self`.
    pub fn square(&self) -> Formula {
        self * self
    }

    /// Whether neither infinite nor NaN.
    pub fn is_finite(&self) -> Formula {
        self.is_inf().or(self.is_nan()).not()
    }

    unary_methods! {
        abs UnaryOp::Abs, sign UnaryOp::Sign, floor Rounding::Floor, ceil Rounding::Ceil, trunc Rounding::Trunc,
        round Rounding::Round, sqrt FloatUnary::Sqrt, rsqrt FloatUnary::Rsqrt, exp FloatUnary::Exp,
        exp2 FloatUnary::Exp2, expm1 FloatUnary::Expm1, log FloatUnary::Log, log2 FloatUnary::Log2,
        log1p FloatUnary::Log1p, sin FloatUnary::Sin, tanh FloatUnary::Tanh, erf FloatUnary::Erf,
        erfc FloatUnary::Erfc, sigmoid FloatUnary::Sigmoid, lgamma SpecialUnary::Lgamma,
        is_nan FloatTest::IsNan, is_inf FloatTest::IsInf, not UnaryOp::Not,
    }

    binary_methods! {
        pow BinaryOp::Pow, max BinaryOp::Maximum, min BinaryOp::Minimum, fmax BinaryOp::Fmax, and IntBinary::And,
        or IntBinary::Or,
        equals Relation::Eq, differs Relation::Ne, lt Relation::Lt, le Relation::Le, gt Relation::Gt,
        ge Relation::Ge, gcd IntBinary::Gcd, trunc_div BinaryOp::TruncDiv,
    }
}

macro_rules! operators {
    ($($trait:ident $method:ident $op:path,)*) => {$(
        impl<R: Into<Formula>> $trait<R> for Formula {
            type Output = Formula;
            fn $method(self, other: R) -> Formula { self.binary($op, other) }
        }
        impl<R: Into<Formula>> $trait<R> for &Formula {
            type Output = Formula;
            fn $method(self, other: R) -> Formula { self.binary($op, other) }
        }
        impl $trait<Formula> for f64 {
            type Output = Formula;
            fn $method(self, other: Formula) -> Formula { Formula::from(self).binary($op, other) }
        }
        impl $trait<&Formula> for f64 {
            type Output = Formula;
            fn $method(self, other: &Formula) -> Formula { Formula::from(self).binary($op, other) }
        }
    )*};
}
operators! { Add add BinaryOp::Add, Sub sub BinaryOp::Sub, Mul mul BinaryOp::Mul, Div div FloatBinary::Div, }

impl Neg for Formula {
    type Output = Formula;
    fn neg(self) -> Formula {
        self.unary(UnaryOp::Neg)
    }
}

impl Neg for &Formula {
    type Output = Formula;
    fn neg(self) -> Formula {
        self.unary(UnaryOp::Neg)
    }
}

struct Emit<'c> {
    cx: &'c mut Context,
    /// The type of a number that meets no tensor.
    dtype: DType,
    done: BTreeMap<*const Term, ValueId>,
}

impl Emit<'_> {
    fn emit(&mut self, formula: &Formula) -> Result<ValueId, RuleError> {
        let key = Rc::as_ptr(&formula.0);
        if let Some(value) = self.done.get(&key) {
            return Ok(*value);
        }
        let value = match &*formula.0 {
            Term::Value(value) => *value,
            Term::Number(number) => return Ok(self.cx.b.scalar(*number, self.dtype)),
            Term::Unary(op, x) => {
                let x = self.emit(x)?;
                self.cx.b.unary(*op, x)
            }
            Term::Binary(op, a, b) => {
                let (a, b) = self.pair(a, b)?;
                self.cx.b.binary(*op, a, b)?
            }
            Term::Select(condition, a, b) => {
                let condition = self.emit(condition)?;
                let (a, b) = self.pair(a, b)?;
                self.cx.b.select(condition, a, b)?
            }
            Term::Cast(dtype, x) => {
                let x = self.emit(x)?;
                self.cx.b.cast(x, *dtype)
            }
        };
        self.done.insert(key, value);
        Ok(value)
    }

    /// Two operands of one type; a number follows the other operand.
    fn pair(&mut self, a: &Formula, b: &Formula) -> Result<(ValueId, ValueId), RuleError> {
        match (&*a.0, &*b.0) {
            (Term::Number(number), Term::Number(_)) => {
                let first = self.cx.b.scalar(*number, self.dtype);
                Ok((first, self.emit(b)?))
            }
            (Term::Number(number), _) => {
                let b = self.emit(b)?;
                Ok((self.cx.b.full_like(*number, b), b))
            }
            (_, Term::Number(number)) => {
                let a = self.emit(a)?;
                Ok((a, self.cx.b.full_like(*number, a)))
            }
            _ => Ok((self.emit(a)?, self.emit(b)?)),
        }
    }
}

impl Context {
    /// Emits a formula; `dtype` is the type of numbers that meet no tensor.
    pub fn formula(&mut self, dtype: DType, formula: &Formula) -> Result<ValueId, RuleError> {
        Emit { cx: self, dtype, done: BTreeMap::new() }.emit(formula)
    }

    /// A formula of operands that are first converted to `dtype`. Half types are computed in `f32`; a result of the
    /// computing type is rounded to `dtype` once, at the end.
    pub fn apply<const N: usize>(
        &mut self,
        operands: [ValueId; N],
        dtype: DType,
        build: impl FnOnce([Formula; N]) -> Formula,
    ) -> Result<ValueId, RuleError> {
        let operands = self.widened(operands, dtype);
        self.rounded(&build(operands), dtype)
    }

    fn widened<const N: usize>(&mut self, operands: [ValueId; N], dtype: DType) -> [Formula; N] {
        operands.map(|value| Formula::from(self.b.cast(value, dtype.compute())))
    }

    fn rounded(&mut self, formula: &Formula, dtype: DType) -> Result<ValueId, RuleError> {
        let wide = dtype.compute();
        let result = self.formula(wide, formula)?;
        Ok(if self.b.dtype(result) == wide { self.b.cast(result, dtype) } else { result })
    }

    /// As [`Context::apply`] in the operands' common type, which is a floating-point one.
    pub fn apply_float<const N: usize>(
        &mut self,
        operands: [ValueId; N],
        build: impl FnOnce([Formula; N]) -> Formula,
    ) -> Result<ValueId, RuleError> {
        let dtype = self.float_type(self.result_type(&operands)?);
        self.apply(operands, dtype, build)
    }
}
