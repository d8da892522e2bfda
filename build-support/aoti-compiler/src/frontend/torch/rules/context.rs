//! What a rule works with: the builder and the conventions that many rules share.

use super::complex::parts::Parts;
use super::random::distributions::Draws;
use crate::dtype::{Category, DType, NotPromoted};
use crate::graph::steps::Builds;
use crate::graph::{BinaryOp, Builder, Condition, FloatBinary, Scalar, ShapeError, UnaryOp, ValueId};
use crate::symbolic::{Expr, Symbol};
use std::collections::BTreeMap;
use std::fmt;

/// Why a rule cannot be applied to a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum RuleError {
    /// The operator does not cover this use.
    Unsupported(String),
    /// The program's call is malformed: an argument is missing or of another kind.
    Malformed(String),
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RuleError::Unsupported(inner) => write!(f, "{inner}"),
            RuleError::Malformed(inner) => write!(f, "{inner}"),
        }
    }
}

impl std::error::Error for RuleError {}

impl RuleError {
    /// A use that is not covered.
    pub fn unsupported(reason: impl Into<String>) -> RuleError {
        RuleError::Unsupported(reason.into())
    }
}

impl From<NotPromoted> for RuleError {
    fn from(error: NotPromoted) -> RuleError {
        RuleError::Unsupported(error.to_string())
    }
}

impl From<ShapeError> for RuleError {
    fn from(error: ShapeError) -> RuleError {
        RuleError::Unsupported(error.0)
    }
}

/// The builder of the core graph and helpers with PyTorch's conventions. `b` has every core operator.
pub struct Context {
    /// The graph under construction.
    pub b: Builder,
    /// What the current rule makes of tensor arguments that its operator overwrites, by argument name.
    pub(crate) overwritten: Vec<(&'static str, ValueId)>,
    /// The parts of complex values, where they were made of parts.
    pub(crate) parts: BTreeMap<ValueId, Parts>,
    /// The complex values that parts are of.
    pub(crate) wholes: BTreeMap<(ValueId, ValueId), ValueId>,
    /// The bits, as signed integers, that values were made of. A processor may change those of a NaN in a conversion.
    pub(crate) bits: BTreeMap<ValueId, ValueId>,
    /// Of random numbers.
    pub(crate) draws: Draws,
    /// The element type of floating-point results that no operand and no argument decides.
    pub(crate) default_float: DType,
    /// The largest values of sizes read from data, which hold where nothing in the program bounds them.
    pub(crate) default_bounds: BTreeMap<Symbol, i64>,
}

/// That type, unless the program was made under another one.
pub(crate) const DEFAULT_FLOAT: DType = DType::F32;

impl Builds for Context {
    type Error = RuleError;

    fn builder(&mut self) -> &mut Builder {
        &mut self.b
    }

    fn of_body(body: Builder) -> Context {
        Context::new(body)
    }

    fn into_builder(self) -> Builder {
        self.b
    }
}

impl Context {
    /// Rules that build onto `b`.
    pub fn new(b: Builder) -> Context {
        Context {
            b,
            overwritten: Vec::new(),
            parts: BTreeMap::new(),
            wholes: BTreeMap::new(),
            bits: BTreeMap::new(),
            draws: Draws::default(),
            default_float: DEFAULT_FLOAT,
            default_bounds: BTreeMap::new(),
        }
    }

    /// Gives away the largest values of sizes read from data.
    pub(crate) fn take_default_bounds(&mut self) -> BTreeMap<Symbol, i64> {
        std::mem::take(&mut self.default_bounds)
    }

    /// States that the operator overwrites its tensor argument `name`, beside its results.
    pub fn overwrite(&mut self, name: &'static str, value: ValueId) {
        self.overwritten.push((name, value));
    }

    /// A possibly negative axis of a tensor with `rank` axes; a tensor without axes counts as having one.
    pub fn axis(axis: i64, rank: usize) -> Result<usize, RuleError> {
        let rank = i64::try_from(rank.max(1)).expect("few axes");
        let positive = if axis < 0 { axis + rank } else { axis };
        if (0..rank).contains(&positive) {
            Ok(usize::try_from(positive).expect("checked to be in range"))
        } else {
            Err(RuleError::Malformed(format!("axis {axis} is outside a tensor of {rank} axes")))
        }
    }

    /// Possibly negative axes; an empty list stands for all.
    pub fn axes(axes: &[i64], rank: usize) -> Result<Vec<usize>, RuleError> {
        if axes.is_empty() {
            return Ok((0..rank).collect());
        }
        if rank == 0 {
            return axes
                .iter()
                .map(|axis| Context::axis(*axis, 0))
                .collect::<Result<Vec<_>, _>>()
                .map(|_| vec![]);
        }
        axes.iter().map(|axis| Context::axis(*axis, rank)).collect()
    }

    /// The element type that operands promote to: tensors with axes win over tensors without within a category,
    /// as `torch.result_type` defines it.
    pub fn result_type(&self, values: &[ValueId]) -> Result<DType, RuleError> {
        let common = |with_axes: bool| {
            let own = values.iter().filter(|value| (self.b.rank(**value) > 0) == with_axes);
            common_type(own.map(|value| self.b.dtype(*value)))
        };
        Ok(match (common(true)?, common(false)?) {
            (Some(tensors), Some(scalars)) if scalars.category() > tensors.category() => scalars,
            (Some(dtype), _) | (None, Some(dtype)) => dtype,
            (None, None) => self.default_float,
        })
    }

    /// As [`Context::result_type`] with a Python number beside the tensors.
    pub fn result_type_with(&self, values: &[ValueId], number: Scalar) -> Result<DType, RuleError> {
        let dtype = self.result_type(values)?;
        Ok(match (number, dtype.category()) {
            (Scalar::Float(_), Category::Bool | Category::Int) => self.default_float,
            (Scalar::Int(_), Category::Bool) => DType::I64,
            _ => dtype,
        })
    }

    /// The type in which a function that only gives floating-point results works on `dtype`.
    pub fn float_type(&self, dtype: DType) -> DType {
        if dtype.is_float() { dtype } else { self.default_float }
    }

    /// Converts an integer or boolean tensor to the default floating-point type.
    pub fn to_float(&mut self, x: ValueId) -> ValueId {
        let dtype = self.float_type(self.b.dtype(x));
        self.b.cast(x, dtype)
    }

    /// Converts operands to their common type.
    pub fn promoted(&mut self, a: ValueId, b: ValueId) -> Result<(ValueId, ValueId), RuleError> {
        let dtype = self.result_type(&[a, b])?;
        Ok((self.b.cast(a, dtype), self.b.cast(b, dtype)))
    }

    /// Runs `compute` in `f32` where the operand is of a half type, as PyTorch's kernels do, and rounds once.
    pub fn in_compute_type(
        &mut self,
        x: ValueId,
        compute: impl FnOnce(&mut Context, ValueId) -> Result<ValueId, RuleError>,
    ) -> Result<ValueId, RuleError> {
        let dtype = self.b.dtype(x);
        let wide = self.b.cast(x, dtype.compute());
        let result = compute(self, wide)?;
        Ok(if self.b.dtype(result) == dtype.compute() { self.b.cast(result, dtype) } else { result })
    }

    /// Element-wise function of one operand (any type the function has).
    pub fn unary(&mut self, op: impl Into<UnaryOp>, x: ValueId) -> ValueId {
        self.b.unary(op, x)
    }

    /// Element-wise function of two operands of one type.
    pub fn binary(&mut self, op: impl Into<BinaryOp>, a: ValueId, b: ValueId) -> Result<ValueId, RuleError> {
        Ok(self.b.binary(op, a, b)?)
    }

    /// Views `x` as `shape`, whose sizes the operator requires to be its own: where that cannot be decided now, it is
    /// checked when a run begins.
    pub(crate) fn required_shape(&mut self, x: ValueId, shape: &[Expr]) -> Result<ValueId, RuleError> {
        let own = self.b.shape(x);
        if own.len() != shape.len() {
            return Err(RuleError::Malformed(format!("a tensor of {own:?} where {shape:?} is needed")));
        }
        for (left, right) in own.iter().zip(shape) {
            let differ = |_| RuleError::Malformed(format!("a tensor of {own:?} where {shape:?} is needed"));
            self.b.require_same(left, right).map_err(differ)?;
        }
        let coords = (0..own.len()).map(Expr::axis).collect();
        Ok(self.b.view(x, shape, coords)?)
    }

    /// A condition on sizes as a truth value.
    pub fn truth(&mut self, condition: &Condition) -> ValueId {
        let indicator = condition.indicator(self.b.ranges());
        let number = self.b.index(indicator, &[]);
        self.b.cast(number, DType::Bool)
    }

    /// Sum of two.
    pub fn add(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, RuleError> {
        self.binary(BinaryOp::Add, a, b)
    }

    /// Difference of two.
    pub fn sub(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, RuleError> {
        self.binary(BinaryOp::Sub, a, b)
    }

    /// Product of two.
    pub fn mul(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, RuleError> {
        self.binary(BinaryOp::Mul, a, b)
    }

    /// Quotient of two floating-point tensors.
    pub fn div(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, RuleError> {
        self.binary(FloatBinary::Div, a, b)
    }

    /// A tensor combined with a number of its type.
    pub fn with_number(
        &mut self,
        op: impl Into<BinaryOp>,
        a: ValueId,
        number: impl Into<Scalar>,
    ) -> Result<ValueId, RuleError> {
        Ok(self.b.binary_scalar(op, a, number)?)
    }
}

/// What all element types promote to, if there are any.
pub(crate) fn common_type(mut types: impl Iterator<Item = DType>) -> Result<Option<DType>, NotPromoted> {
    let first = types.next();
    first.map(|first| types.try_fold(first, DType::promote)).transpose()
}
