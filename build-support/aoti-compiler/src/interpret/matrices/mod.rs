//! Routines on one matrix each: the twins of `include/aoti/linalg_*.h`, operation by operation, so that both give equal bits.

mod eigen;
mod factor;
mod mode;
mod orthogonal;

use super::error::EvalError;
use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;
use crate::graph::Routine;
use std::ops::{Add, Div, Mul, Neg, Sub};

/// `f32` and `f64`, each rounding by itself.
trait Real:
    Copy
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    const EPSILON: Self;
    fn of(number: f64) -> Self;
    fn root(self) -> Self;

    /// Without a sign; NaN stays.
    fn magnitude(self) -> Self {
        if self < Self::of(0.0) { -self } else { self }
    }
}

impl Real for f32 {
    const EPSILON: f32 = f32::EPSILON;
    fn of(number: f64) -> f32 {
        number as f32
    }
    fn root(self) -> f32 {
        self.sqrt()
    }
}

impl Real for f64 {
    const EPSILON: f64 = f64::EPSILON;
    fn of(number: f64) -> f64 {
        number
    }
    fn root(self) -> f64 {
        self.sqrt()
    }
}

/// What a routine gives for one matrix: floating-point results, then integers, each in the routine's order.
#[derive(Default)]
struct Results<T> {
    reals: Vec<Vec<T>>,
    integers: Vec<Vec<i64>>,
}

/// Applies a routine to `batch` matrices of `m` rows and `n` columns; operands and results have their elements one matrix after
/// the other, and results the sizes that are wanted.
pub(super) fn apply(
    routine: Routine,
    operands: &[Tensor],
    [batch, m, n]: [usize; 3],
    results: Vec<(DType, Vec<usize>)>,
) -> Result<Vec<Tensor>, EvalError> {
    let malformed = || EvalError::Malformed(format!("operands of `{}` do not fit", routine.name()));
    let integers: Vec<Vec<i64>> = operands.iter().filter_map(Tensor::to_i64).collect();
    let lanes: Vec<Lanes> = operands.iter().map(Tensor::lanes).collect();
    let dtype = operands.get(routine.matrix()).ok_or_else(malformed)?.dtype();
    let (mut reals, mut wholes) = match &lanes[routine.matrix()] {
        Lanes::F32(_) => {
            let reals = lanes
                .iter()
                .filter_map(|own| if let Lanes::F32(x) = own { Some(x.as_slice()) } else { None });
            let (reals, wholes) = over_batch(routine, &reals.collect::<Vec<_>>(), &integers, [batch, m, n]);
            (reals.into_iter().map(Lanes::F32).collect::<Vec<_>>(), wholes)
        }
        Lanes::F64(_) => {
            let reals = lanes
                .iter()
                .filter_map(|own| if let Lanes::F64(x) = own { Some(x.as_slice()) } else { None });
            let (reals, wholes) = over_batch(routine, &reals.collect::<Vec<_>>(), &integers, [batch, m, n]);
            (reals.into_iter().map(Lanes::F64).collect::<Vec<_>>(), wholes)
        }
        Lanes::Int(_) | Lanes::Uint(_) => return Err(malformed()),
    };
    reals.reverse();
    wholes.reverse();
    let take = |(own, sizes): (DType, Vec<usize>)| {
        let lanes = if own == dtype { reals.pop() } else { wholes.pop().map(Lanes::Int) };
        Ok(Tensor::store(own, sizes, &lanes.ok_or_else(malformed)?))
    };
    results.into_iter().map(take).collect()
}

fn over_batch<T: Real>(
    routine: Routine,
    reals: &[&[T]],
    integers: &[Vec<i64>],
    [batch, m, n]: [usize; 3],
) -> (Vec<Vec<T>>, Vec<Vec<i64>>) {
    let mut all = Results { reals: vec![vec![]; 3], integers: vec![vec![]; 2] };
    for u in 0..batch {
        let real = |k: usize| {
            let length = reals[k].len() / batch;
            &reals[k][u * length..][..length]
        };
        let one = match routine {
            Routine::Lu => factor::lu(m, n, real(0)),
            Routine::Cholesky => factor::cholesky(n, real(0)),
            Routine::Exchange => factor::exchange(m, n, &integers[0][u * m..][..m], real(0)),
            Routine::SolveLower => factor::solve_lower(m, n, real(0), real(1)),
            Routine::SolveUpper => factor::solve_upper(m, n, real(0), real(1)),
            Routine::Ldl => factor::ldl(n, real(0)),
            Routine::LdlSolve => factor::ldl_solve(m, n, real(0), &integers[0][u * m..][..m], real(1)),
            Routine::Qr => orthogonal::qr(m, n, real(0)),
            Routine::Reflections => orthogonal::reflections(m, n, real(0), real(1)),
            Routine::Eigh => orthogonal::eigh(n, real(0)),
            Routine::Svd => orthogonal::svd(m, n, real(0)),
            Routine::Eig => eigen::eig(n, real(0)),
            Routine::Mode => mode::mode(m, n, real(0)),
        };
        for (all, one) in all.reals.iter_mut().zip(one.reals) {
            all.extend(one);
        }
        for (all, one) in all.integers.iter_mut().zip(one.integers) {
            all.extend(one);
        }
    }
    (all.reals, all.integers)
}
