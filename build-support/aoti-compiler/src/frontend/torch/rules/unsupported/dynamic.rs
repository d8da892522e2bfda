//! What operators demand of numbers that are known only when a program runs: that an element type has them, that nothing
//! is divided by zero. PyTorch looks when it calls its kernels; here the run fails instead of giving a number.

use super::super::operand::Operand;
use super::super::{Context, Formula, RuleError};
use crate::dtype::DType;
use crate::graph::{Condition, ReduceOp, Relation, Scalar, ValueId};
use crate::symbolic::Expr;

/// The largest finite number of `f16`.
const MOST_OF_F16: i64 = 65504;
/// Up to it, `f64` has every integer.
const MOST_EXACT: i64 = 1 << 53;
/// Numbers below it are integers of 64 bits, as floating-point numbers tell them.
pub(crate) const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

impl Context {
    /// The number is one of the element type, as PyTorch wants it where a kernel takes it as an element; elements of half
    /// types are often computed with in `f32`, which is then the type.
    pub(crate) fn require_element(&mut self, number: &Operand, dtype: DType) -> Result<(), RuleError> {
        match number {
            Operand::Size(number) => self.require_integer_of(number, dtype),
            Operand::Computed(number, Scalar::Float(_)) => self.require_float_of(*number, dtype)?,
            Operand::Tensor(_) | Operand::Number(_) | Operand::Truth(_) | Operand::Computed(..) => {}
        }
        Ok(())
    }

    /// A floating-point number that is cut to one of the element type: infinities and NaN are numbers of those types that have
    /// them.
    fn require_float_of(&mut self, number: ValueId, dtype: DType) -> Result<(), RuleError> {
        let (least, most, has_infinity) = match dtype {
            DType::Bool | DType::F64 => return Ok(()),
            DType::F8(format) => (-f64::from(format.largest()), format.largest().into(), false),
            DType::F16 | DType::Bf16 | DType::F32 => {
                let most = dtype.limits().expect("it is a floating-point type").largest;
                (-most, most, true)
            }
            DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U16
            | DType::U32
            | DType::U64 => (Scalar::lowest(dtype).to_f64(), Scalar::highest(dtype).to_f64(), false),
        };
        // Two to the 63 is the first that is beyond `i64`, whose largest number is none of `f64`.
        let below = if most >= TWO_TO_63 { Relation::Lt } else { Relation::Le };
        let wide = self.b.cast(number, DType::F64);
        let x = Formula::from(wide);
        let within = x.ge(least).and(x.binary(below, most));
        let holds = if has_infinity { within.or(x.is_finite().not()) } else { within };
        let holds = self.formula(DType::F64, &holds)?;
        Ok(self.b.assert(holds, &beyond(dtype))?)
    }

    fn require_integer_of(&mut self, number: &Expr, dtype: DType) {
        let (least, most) = match dtype {
            DType::Bool | DType::I64 | DType::U64 | DType::Bf16 | DType::F32 | DType::F64 => return,
            // Negative ones count from the end.
            DType::U8 => (-255, 255),
            DType::I8 | DType::I16 | DType::I32 => {
                (Scalar::lowest(dtype).to_i64(), Scalar::highest(dtype).to_i64())
            }
            DType::F16 => (-MOST_OF_F16, MOST_OF_F16),
            DType::U16 | DType::U32 => (-Scalar::highest(dtype).to_i64(), Scalar::highest(dtype).to_i64()),
            DType::F8(format) => (-(format.largest() as i64), format.largest() as i64),
        };
        self.require_between(number, least, most, &beyond(dtype));
    }

    /// What an operator demands of one of its parameters.
    pub(crate) fn require_number(
        &mut self,
        number: &Operand,
        relation: Relation,
        bound: i64,
        message: &str,
    ) -> Result<(), RuleError> {
        match number {
            Operand::Size(number) => {
                self.b.require(Condition::compare(number.clone(), relation, bound), message);
            }
            Operand::Computed(number, _) | Operand::Tensor(number) => {
                let wide = self.b.cast(*number, DType::F64);
                let holds = self.with_number(relation, wide, bound)?;
                self.b.assert(holds, message)?;
            }
            Operand::Truth(truth) => {
                let number = truth.indicator(self.b.ranges());
                self.b.require(Condition::compare(number, relation, bound), message);
            }
            Operand::Number(_) => {}
        }
        Ok(())
    }

    /// The bounds of a range are exact in `f64`, in which PyTorch computes how long it is.
    pub(crate) fn require_exact(&mut self, number: &Expr) {
        if self.b.is_chosen(number) {
            self.require_between(number, -MOST_EXACT, MOST_EXACT, "a bound of a range beyond 2^53");
        }
    }

    pub(crate) fn require_between(&mut self, number: &Expr, least: i64, most: i64, message: &str) {
        self.b.require(Condition::compare(number.clone(), Relation::Ge, least), message);
        self.b.require(Condition::compare(number.clone(), Relation::Le, most), message);
    }

    /// An integer division in `dtype` of `elements` elements has no divisor that is zero there.
    pub(crate) fn require_divisor(
        &mut self,
        divisor: &Operand,
        dtype: DType,
        elements: &Expr,
    ) -> Result<(), RuleError> {
        const MESSAGE: &str = "a division by zero";
        let number = match divisor {
            Operand::Number(number) => Expr::int(number.to_i64()),
            Operand::Size(number) => number.clone(),
            Operand::Tensor(value) | Operand::Computed(value, _) => {
                let converted = self.b.cast(*value, dtype);
                let differs = self.b.cast(converted, DType::Bool);
                let axes: Vec<usize> = (0..self.b.rank(differs)).collect();
                let all = self.b.reduce(ReduceOp::All, differs, &axes, false)?;
                return Ok(self.b.assert(all, MESSAGE)?);
            }
            Operand::Truth(condition) => condition.indicator(self.b.ranges()),
        };
        // A narrower type keeps the lowest bits of it.
        let kept = match dtype.size() {
            8 => number,
            bytes => number.modulo_in(&Expr::int(1 << (8 * bytes)), self.b.ranges()),
        };
        let differs = Condition::compare(kept, Relation::Ne, 0);
        let has_elements = elements.interval(self.b.ranges()).min > 0;
        let empty = Condition::compare(elements.clone(), Relation::Eq, 0);
        self.b.require(if has_elements { differs } else { Condition::any([differs, empty]) }, MESSAGE);
        Ok(())
    }

    /// A bound of `clamp` that bounds elements of the type: PyTorch refuses one that no element is within, and forgets
    /// one that all are within.
    pub(crate) fn bound(
        &mut self,
        bound: Operand,
        dtype: DType,
        is_least: bool,
    ) -> Result<Operand, RuleError> {
        Ok(match (bound, Scalar::lowest(dtype), Scalar::highest(dtype)) {
            (Operand::Number(Scalar::Int(number)), Scalar::Int(least), Scalar::Int(most)) => {
                Operand::Number(Scalar::Int(number.clamp(least, most)))
            }
            (Operand::Size(number), Scalar::Int(least), Scalar::Int(most)) => {
                let (least, most) = (least as i64, most.min(i64::MAX.into()) as i64);
                let (beyond, relation) = if is_least { (most, Relation::Le) } else { (least, Relation::Ge) };
                let within = Condition::compare(number.clone(), relation, beyond);
                self.b.require(within, &format!("a bound that no number of {dtype} is within"));
                let ranges = self.b.ranges();
                Operand::Size(if is_least {
                    number.maximum_in(&Expr::int(least), ranges)
                } else {
                    number.minimum_in(&Expr::int(most), ranges)
                })
            }
            (bound, ..) => {
                self.require_element(&bound, dtype)?;
                bound
            }
        })
    }
}

fn beyond(dtype: DType) -> String {
    format!("a number that {dtype} does not have")
}
