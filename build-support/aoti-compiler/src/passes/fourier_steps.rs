//! Fourier transforms of rows that are too long for a target's own passes, as two rounds of transforms that are not (Bailey, "FFTs in
//! external or hierarchical memory", 1990). Numbers stay pairs from the first to the last, so that each step between two rounds is one
//! loop that reads and writes both parts side by side.
//!
//! Real numbers are transformed as half as many complex ones, as `include/aoti/fourier.h` does.

use super::fourier_to_gemm::{Direction, HasPasses, root, table};
use crate::dtype::DType;
use crate::fourier::{Form, Fourier, Norm};
use crate::graph::{BinaryOp, Builder, ShapeError, ValueId};
use crate::symbolic::Expr;

type Built<T = ValueId> = Result<T, ShapeError>;

/// The transform of rows, if their length is a product of two that the target has passes for.
pub(super) fn in_steps(b: &mut Builder, own: &Fourier, x: ValueId, has_passes: HasPasses) -> Option<Built> {
    let is_real = matches!(own.form, Form::ToHalf | Form::FromHalf);
    if is_real && own.length % 2 != 0 {
        return None;
    }
    let n = if is_real { own.length / 2 } else { own.length };
    let dtype = b.dtype(x);
    let lengths =
        parts(n, &|length| has_passes(&Fourier { form: Form::Forward, length, norm: Norm::One }, dtype))?;
    let direction = if own.form.is_inverse() { Direction::Inverse } else { Direction::Forward };
    Some(Steps { b, dtype, direction, lengths }.of_rows(own, x))
}

/// The two factors of a length that are nearest to each other, of those that are wanted.
fn parts(n: i64, is_wanted: &dyn Fn(i64) -> bool) -> Option<[i64; 2]> {
    let root = n.isqrt();
    let all = (2..=root).rev().filter(|first| n % first == 0).map(|first| [first, n / first]);
    all.into_iter().find(|pair| pair.iter().all(|length| is_wanted(*length)))
}

/// Builds the steps of a transform whose complex numbers are as many as these lengths have as their product.
struct Steps<'b> {
    b: &'b mut Builder,
    dtype: DType,
    direction: Direction,
    lengths: [i64; 2],
}

impl Steps<'_> {
    fn of_rows(&mut self, own: &Fourier, x: ValueId) -> Built {
        let result = match own.form {
            Form::Forward | Form::Inverse => self.pairs(x)?,
            Form::ToHalf => {
                let pairs = self.with_row(x, 1, &[own.length / 2, 2])?;
                let all = self.pairs(pairs)?;
                self.unfolded(all, own.length)?
            }
            Form::FromHalf => {
                let folded = self.folded(x, own.length)?;
                let all = self.pairs(folded)?;
                self.with_row(all, 2, &[own.length])?
            }
        };
        match own.scale() {
            1.0 => Ok(result),
            scale => self.b.binary_scalar(BinaryOp::Mul, result, scale),
        }
    }

    /// A tensor whose last axes, so many, have become others.
    fn with_row(&mut self, x: ValueId, count: usize, row: &[i64]) -> Built {
        let mut shape = self.b.shape(x);
        shape.truncate(shape.len() - count);
        shape.extend(row.iter().copied().map(Expr::int));
        self.b.reshape(x, &shape)
    }

    /// The transform of rows of pairs, without any normalisation. With `j = j1 * second + j2` and `k = k1 + first * k2`:
    /// transforms over `j1`, a multiplication by the root of `j2 * k1`, and transforms over `j2`.
    fn pairs(&mut self, x: ValueId) -> Built {
        let [first, second] = self.lengths;
        let n = first * second;
        let x = self.with_row(x, 2, &[first, second, 2])?;
        let axis = self.b.rank(x) - 3;
        let columns = self.b.transpose(x, axis, axis + 1)?;
        let inner = self.round(columns, first)?;
        let direction = self.direction;
        let of = |at: i64| root((at / first) * (at % first), n, direction);
        let cos = table(self.b, self.dtype, &[second, first, 1], &|at| of(at).0)?;
        let sin = table(self.b, self.dtype, &[second, first, 1], &|at| of(at).1)?;
        let turned = self.combined(inner, cos, [-1.0, 1.0], sin)?;
        let rows = self.b.transpose(turned, axis, axis + 1)?;
        let outer = self.round(rows, second)?;
        let in_order = self.b.transpose(outer, axis, axis + 1)?;
        self.with_row(in_order, 3, &[n, 2])
    }

    fn round(&mut self, x: ValueId, length: i64) -> Built {
        let form = match self.direction {
            Direction::Forward => Form::Forward,
            Direction::Inverse => Form::Inverse,
        };
        self.b.fourier(Fourier { form, length, norm: Norm::One }, x)
    }

    /// Of pairs, each times `own`, and the other of the pair times `sign` and `other`, added up.
    fn combined(&mut self, x: ValueId, own: ValueId, sign: [f64; 2], other: ValueId) -> Built {
        let last = self.b.rank(x) - 1;
        let exchanged = self.b.flip(x, &[last])?;
        let sign = table(self.b, self.dtype, &[2], &|at| if at == 0 { sign[0] } else { sign[1] })?;
        let other = self.b.binary(BinaryOp::Mul, other, sign)?;
        let a = self.b.binary(BinaryOp::Mul, x, own)?;
        let b = self.b.binary(BinaryOp::Mul, exchanged, other)?;
        self.b.binary(BinaryOp::Add, a, b)
    }

    /// The sum and the difference of each of `h + 1` numbers and the one at the same place from the end, conjugated.
    fn with_mirrored(&mut self, x: ValueId) -> Built<[ValueId; 2]> {
        let axis = self.b.rank(x) - 2;
        let mirrored = self.b.flip(x, &[axis])?;
        let sign = table(self.b, self.dtype, &[2], &|at| if at == 0 { 1.0 } else { -1.0 })?;
        let conjugate = self.b.binary(BinaryOp::Mul, mirrored, sign)?;
        let sum = self.b.binary(BinaryOp::Add, x, conjugate)?;
        Ok([sum, self.b.binary(BinaryOp::Sub, x, conjugate)?])
    }

    /// With z the transform of pairs of real numbers, the first half of that of the numbers:
    /// `(z[k] + z'[h - k]) / 2 - i w (z[k] - z'[h - k]) / 2`, where w is the root of k.
    fn unfolded(&mut self, z: ValueId, n: i64) -> Built {
        let (h, axis) = (n / 2, self.b.rank(z) - 2);
        let first = self.b.slice(z, axis, &Expr::int(0), &Expr::int(1), 1)?;
        let around = self.b.cat(&[z, first], axis)?;
        let [sum, difference] = self.with_mirrored(around)?;
        let of = |k: i64| root(k, n, Direction::Forward);
        let cos = table(self.b, self.dtype, &[h + 1, 1], &|k| of(k).0 / 2.0)?;
        let sin = table(self.b, self.dtype, &[h + 1, 1], &|k| of(k).1 / 2.0)?;
        let turned = self.combined(difference, sin, [1.0, -1.0], cos)?;
        let sum = self.b.binary_scalar(BinaryOp::Mul, sum, 0.5)?;
        self.b.binary(BinaryOp::Add, sum, turned)
    }

    /// The way back: `x[k] + x'[h - k] + i w (x[k] - x'[h - k])`, whose transform has the results as its parts.
    fn folded(&mut self, x: ValueId, n: i64) -> Built {
        let (h, axis) = (n / 2, self.b.rank(x) - 2);
        // Imaginary parts of the first number and of the last one do not count.
        let counts = |at: i64| if at % 2 == 1 && (at / 2) % h == 0 { 0.0 } else { 1.0 };
        let zero = self.b.full_like(0.0, x);
        let counts = table(self.b, self.dtype, &[h + 1, 2], &counts)?;
        let is_counted = self.b.binary(BinaryOp::Compare(crate::graph::Relation::Ne), counts, zero)?;
        let x = self.b.select(is_counted, x, zero)?;
        let [sum, difference] = self.with_mirrored(x)?;
        let mut before_last = |x| self.b.slice(x, axis, &Expr::int(0), &Expr::int(h), 1);
        let [sum, difference] = [before_last(sum)?, before_last(difference)?];
        let of = |k: i64| root(k, n, Direction::Inverse);
        let cos = table(self.b, self.dtype, &[h, 1], &|k| of(k).0)?;
        let sin = table(self.b, self.dtype, &[h, 1], &|k| -of(k).1)?;
        let turned = self.combined(difference, sin, [-1.0, 1.0], cos)?;
        self.b.binary(BinaryOp::Add, sum, turned)
    }
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn lengths_become_two_that_there_are_passes_for() {
        let is_wanted = |length: i64| (32..=16384).contains(&length) && length != 512;
        assert_eq!(parts(1 << 18, &is_wanted), Some([256, 1024]));
        assert_eq!(parts(44100, &is_wanted), Some([210, 210]));
        assert_eq!(parts(2 * 10007, &is_wanted), None);
    }
}
