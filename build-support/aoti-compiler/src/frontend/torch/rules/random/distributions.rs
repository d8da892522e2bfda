//! Random numbers: which bits each element of a program gets, and the distributions that are made of them.
//!
//! Every number is a function of the run's seed and offset, of the place of its draw among those of the program, and of its
//! position in the tensor: Philox of the offset under the seed is the key of a run, Philox of the draw's number under that
//! the key of a draw, Philox of the position under that the bits of an element. So neither threads nor devices matter, and
//! a draw can be computed wherever its elements are used. Knows no operator of ATen.

use super::super::{Context, Formula, RuleError};
use crate::dtype::DType;
use crate::graph::{FloatUnary, IntBinary, ValueId};
use crate::symbolic::Expr;

/// The draws of a program so far.
#[derive(Default)]
pub(crate) struct Draws {
    /// The key of the run, once there is a draw.
    key: Option<ValueId>,
    count: i64,
}

/// Random bits of each element of a shape, from a key.
pub(crate) fn bits_under(cx: &mut Context, key: ValueId, shape: &[Expr]) -> Result<ValueId, RuleError> {
    let position = shape
        .iter()
        .enumerate()
        .fold(Expr::int(0), |position, (axis, size)| &(&position * size) + &Expr::axis(axis));
    let position = cx.b.index(position, shape);
    cx.binary(IntBinary::Philox, position, key)
}

/// How many bits of a random fraction a type holds, as PyTorch draws them.
fn digits(dtype: DType) -> u32 {
    match dtype {
        DType::Bf16 => 8,
        DType::F16 => 11,
        DType::F32 => 24,
        DType::F64 => 53,
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8(_) => {
            unreachable!("fractions are drawn in floating-point types")
        }
    }
}

/// Fractions in `0 <= u < 1` of the lowest bits, in the compute type of `dtype` and with as many digits as `dtype` has.
pub(crate) fn fraction(cx: &mut Context, bits: ValueId, dtype: DType) -> Result<ValueId, RuleError> {
    fraction_of(cx, bits, digits(dtype), dtype.compute(), 0.0)
}

/// Fractions in `0 < u < 1`.
pub(crate) fn open_fraction(cx: &mut Context, bits: ValueId, dtype: DType) -> Result<ValueId, RuleError> {
    fraction_of(cx, bits, digits(dtype.compute()) - 1, dtype.compute(), 0.5)
}

/// `(k + shift) / 2^digits`, where `k` is the number that the lowest `digits` bits are.
fn fraction_of(
    cx: &mut Context,
    bits: ValueId,
    digits: u32,
    dtype: DType,
    shift: f64,
) -> Result<ValueId, RuleError> {
    let number = cx.with_number(IntBinary::And, bits, (1i64 << digits) - 1)?;
    let scale = 0.5f64.powi(digits as i32);
    cx.apply([number], dtype, |[number]| if shift == 0.0 { number * scale } else { (number + shift) * scale })
}

impl Context {
    /// A key that no other draw of the program has.
    pub(crate) fn random_key(&mut self) -> Result<ValueId, RuleError> {
        let run = match self.draws.key {
            Some(key) => key,
            None => {
                let key = self.run_key()?;
                self.draws.key = Some(key);
                key
            }
        };
        let number = self.b.scalar(self.draws.count, DType::I64);
        self.draws.count += 1;
        self.binary(IntBinary::Philox, number, run)
    }

    fn run_key(&mut self) -> Result<ValueId, RuleError> {
        if self.b.is_body() {
            return Err(RuleError::unsupported(
                "it draws random numbers in a branch or a loop; draw them before, and pass them in",
            ));
        }
        let generator = self.b.generator("generator");
        let [seed, offset] = [0, 1].map(|position| self.b.pick(generator, 0, &Expr::int(position)));
        self.binary(IntBinary::Philox, offset?, seed?)
    }

    /// 64 random bits for each element.
    pub(crate) fn random_bits(&mut self, shape: &[Expr]) -> Result<ValueId, RuleError> {
        let key = self.random_key()?;
        bits_under(self, key, shape)
    }

    /// Uniform in `0 <= u < 1`, in the compute type of `dtype`.
    pub(crate) fn uniform(&mut self, dtype: DType, shape: &[Expr]) -> Result<ValueId, RuleError> {
        let bits = self.random_bits(shape)?;
        fraction(self, bits, dtype)
    }

    /// Uniform in `0 < u < 1`, in the compute type of `dtype`.
    pub(crate) fn open_uniform(&mut self, dtype: DType, shape: &[Expr]) -> Result<ValueId, RuleError> {
        let bits = self.random_bits(shape)?;
        open_fraction(self, bits, dtype)
    }

    /// True with this probability, which is a formula in `f64`.
    pub(crate) fn chance(
        &mut self,
        shape: &[Expr],
        probability: impl Into<Formula>,
    ) -> Result<ValueId, RuleError> {
        let u = self.uniform(DType::F64, shape)?;
        let is_hit = Formula::from(u).lt(probability);
        let is_hit = self.formula(DType::F64, &is_hit)?;
        Ok(self.b.expand(is_hit, shape)?)
    }

    /// Of the standard normal distribution, in the compute type of `dtype`.
    pub(crate) fn normal(&mut self, dtype: DType, shape: &[Expr]) -> Result<ValueId, RuleError> {
        let key = self.random_key()?;
        let bits = bits_under(self, key, shape)?;
        // In `f32` the upper half of the bits is left, and independent of the lower.
        let turn = if dtype.compute() == DType::F32 {
            self.with_number(IntBinary::Shr, bits, 32i64)?
        } else {
            self.random_bits(shape)?
        };
        normal_of(self, [bits, turn], dtype.compute())
    }
}

/// Box and Muller's transform of two independent sets of bits: of the first the lowest 32 in `f32`, where 23 would end the
/// tails too soon.
pub(crate) fn normal_of(cx: &mut Context, bits: [ValueId; 2], dtype: DType) -> Result<ValueId, RuleError> {
    // In `f32` the sum with the shift would round to one and more.
    let digits = if dtype == DType::F32 { 32 } else { 52 };
    let radius = fraction_of(cx, bits[0], digits, DType::F64, 0.5)?;
    let radius = cx.b.cast(radius, dtype);
    let turn = fraction(cx, bits[1], dtype)?;
    cx.apply([radius, turn], dtype, |[radius, turn]| {
        let angle = turn * std::f64::consts::TAU;
        (radius.log() * -2.0).max(0.0).sqrt() * angle.unary(FloatUnary::Cos)
    })
}
