//! Element-wise nodes of random graphs, with what becomes of the accuracy of their operands.

use super::{Generator, Made};
use crate::accuracy::{Accuracy, rounding};
use aoti_compiler::dtype::{Category, DType};
use aoti_compiler::graph::{BinaryOp, FloatBinary, FloatUnary, IntBinary, Relation, SpecialBinary, UnaryOp};

impl Generator {
    pub(super) fn unary(&mut self) -> Made {
        use UnaryOp::{Abs, Neg, Not};
        let x = self.any(|_, accuracy| accuracy.is_exact())?;
        let dtype = self.b.dtype(x.value);
        let choices: Vec<UnaryOp> = match dtype.category() {
            Category::Bool => vec![Not],
            Category::Int | Category::Float => UnaryOp::all()
                .filter(|op| {
                    op.takes(dtype)
                        && !matches!(op, UnaryOp::Bits(_) | UnaryOp::Float(_) | UnaryOp::Special(_))
                })
                .collect(),
        };
        let op = self.rng.pick(&choices);
        let value = self.b.unary(op, x.value);
        let keeps_size = matches!(op, Abs | Neg);
        let accuracy = if keeps_size { x.accuracy } else { Accuracy::exact(x.accuracy.size + 1.0, 0) };
        self.add(value, accuracy)
    }

    /// Functions that keep errors small, on the whole line.
    pub(super) fn smooth(&mut self) -> Made {
        use FloatUnary::*;
        let x = self.any(|ty, _| ty.dtype.is_float())?;
        let dtype = self.b.dtype(x.value);
        let op = self
            .rng
            .pick(&[Tanh, Sigmoid, Sin, Cos, Atan, Erf, Asinh, Sqrt, Log, Rsqrt, Reciprocal, Exp, Log1p]);
        if matches!(op, Tanh | Sigmoid | Sin | Cos | Atan | Erf | Asinh) {
            let value = self.b.unary(op, x.value);
            let noise =
                Accuracy { error: x.accuracy.error + rounding(dtype) * x.accuracy.size, ..x.accuracy };
            return self.add(value, noise.through(if op == Asinh { 15.0 } else { 2.0 }, dtype));
        }
        let size = self.b.unary(UnaryOp::Abs, x.value);
        let (argument, bound) = if op == Exp {
            (self.b.unary(UnaryOp::Neg, size), 1.0)
        } else {
            (self.b.binary_scalar(BinaryOp::Add, size, 1.0).ok()?, x.accuracy.size + 2.0)
        };
        let noise = Accuracy { error: x.accuracy.error + rounding(dtype) * x.accuracy.size, ..x.accuracy };
        let value = self.b.unary(op, argument);
        self.add(value, noise.through(bound, dtype))
    }

    /// Any function, on exact operands; nothing is built on it.
    pub(super) fn special(&mut self) -> Made {
        let x = self.any(|ty, accuracy| {
            matches!(ty.dtype, DType::F32 | DType::F64) && accuracy.is_exact() && accuracy.size <= 8.0
        })?;
        if self.rng.one_in(4) {
            let op = self.rng.pick(&[
                BinaryOp::Pow,
                FloatBinary::Atan2.into(),
                FloatBinary::Hypot.into(),
                SpecialBinary::Igamma.into(),
                SpecialBinary::Igammac.into(),
                SpecialBinary::Zeta.into(),
            ]);
            let other = self.operand(x, true)?;
            let value = self.b.binary(op, x.value, other.value).ok()?;
            return self.add(value, Accuracy::last());
        }
        let dtype = self.b.dtype(x.value);
        let choices: Vec<UnaryOp> = UnaryOp::all()
            .filter(|op| op.takes(dtype) && !matches!(op, UnaryOp::Test(_) | UnaryOp::Bits(_)))
            .collect();
        let op = self.rng.pick(&choices);
        let value = self.b.unary(op, x.value);
        self.add(value, Accuracy::last())
    }

    pub(super) fn binary(&mut self) -> Made {
        use BinaryOp::*;
        use FloatBinary::{CopySign, Div};
        use IntBinary::{And, Gcd, Or, Philox, Shl, Shr, Xor};
        use Relation::{Eq, Ge, Gt, Le, Lt, Ne};
        let x = self.any(|_, _| true)?;
        let dtype = self.b.dtype(x.value);
        let y = self.operand(x, false)?;
        let (a, b) = (x.accuracy, y.accuracy);
        let exact = a.is_exact() && b.is_exact();
        let op = match dtype.category() {
            Category::Bool => {
                let numbers = [Add, Mul, Maximum, Minimum];
                let bits = [And, Or, Xor].map(Int);
                let relations = [Eq, Ne, Lt, Ge].map(Compare);
                self.rng.pick(&[&numbers[..], &bits, &relations].concat())
            }
            Category::Int => {
                let numbers = [Add, Sub, Mul, FloorDiv, TruncDiv, Remainder, Fmod, Pow, Maximum, Minimum];
                let bits = [And, Or, Xor, Shl, Shr, Gcd].map(Int);
                let relations = [Eq, Ne, Lt, Le, Gt, Ge].map(Compare);
                let random: &[BinaryOp] = if dtype == DType::I64 { &[Int(Philox)] } else { &[] };
                self.rng.pick(&[&numbers[..], &bits, &relations, random].concat())
            }
            Category::Float if exact => {
                let numbers = [Add, Sub, Mul, Maximum, Minimum, Fmax, Fmin, Float(CopySign)];
                let relations = [Eq, Ne, Lt, Le, Gt, Ge].map(Compare);
                self.rng.pick(&[&numbers[..], &relations].concat())
            }
            Category::Float => self.rng.pick(&[Add, Sub, Mul, Mul, Maximum, Minimum, Float(Div)]),
        };
        let mut right = y.value;
        if op == Float(Div) {
            let size = self.b.unary(UnaryOp::Abs, right);
            right = self.b.binary_scalar(Add, size, 1.0).ok()?;
        }
        let value = self.b.binary(op, x.value, right).ok()?;
        let accuracy = match op {
            _ if !dtype.is_float() || matches!(op, Compare(_)) => {
                Accuracy::exact(1e19, 0).rounded(self.b.dtype(value))
            }
            Add | Sub => a.plus(b, dtype),
            Mul => a.times(b, dtype),
            Float(Div) => Accuracy {
                size: a.size,
                error: a.error
                    + (b.error + rounding(dtype) * (b.size + 1.0)) * a.size
                    + rounding(dtype) * a.size,
                ..a
            },
            FloorDiv | TruncDiv | Remainder | Fmod | Pow | Maximum | Minimum | Fmax | Fmin | Compare(_)
            | Int(_) | Float(_) | Special(_) => a.either(b),
        };
        self.add(value, accuracy)
    }

    pub(super) fn select(&mut self) -> Made {
        let x = self.any(|_, _| true)?;
        let y = self.operand(x, false)?;
        let condition = self.any(|ty, _| ty.dtype == DType::Bool)?;
        let value = self.b.select(condition.value, x.value, y.value).ok()?;
        self.add(value, x.accuracy.either(y.accuracy))
    }

    pub(super) fn cast(&mut self) -> Made {
        let x = self.any(|_, _| true)?;
        let (from, to) = (self.b.dtype(x.value), self.dtype());
        let a = x.accuracy;
        // What a float outside an integer type's range becomes is nobody's promise, nor is infinity of a half.
        let discrete = from.is_float() && !to.is_float();
        if discrete && (self.wild || !a.is_exact() || a.size >= 120.0) {
            return None;
        }
        if to == DType::F16 && a.size > 2000.0 {
            return None;
        }
        let value = self.b.cast(x.value, to);
        let accuracy = match (from.is_float(), to.is_float()) {
            (_, false) => Accuracy::exact(a.size.max(256.0), 0).rounded(to),
            (_, true) => a.rounded(to),
        };
        self.add(value, accuracy)
    }
}
