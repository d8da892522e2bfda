//! Reductions of axes and running reductions.

use super::error::EvalError;
use super::index::{advance, strides};
use super::movement::full;
use super::tensor::{Lanes, Tensor};
use crate::graph::{ReduceOp, Scalar, ScanOp};

/// Removes axes by a reduction.
pub(super) fn reduce(
    op: ReduceOp,
    x: &Tensor,
    axes: &[usize],
    sizes: Vec<usize>,
) -> Result<Tensor, EvalError> {
    let targets = targets(x.sizes(), axes);
    let numel: usize = sizes.iter().product();
    let is_empty = axes.iter().any(|axis| x.sizes()[*axis] == 0);
    if is_empty && numel > 0 {
        match op {
            ReduceOp::Max => return Ok(full(Scalar::lowest(x.dtype()), x.dtype(), sizes)),
            ReduceOp::Min => return Ok(full(Scalar::highest(x.dtype()), x.dtype(), sizes)),
            ReduceOp::ArgMax | ReduceOp::ArgMin => {
                return Err(EvalError::Malformed(format!("`{}` of an empty axis", op.name())));
            }
            ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Any | ReduceOp::All | ReduceOp::Xor => {}
        }
    }
    let lanes = match op {
        ReduceOp::Sum => match x.lanes() {
            Lanes::F32(v) => Lanes::F64(fold(&v, &targets, vec![0.0; numel], |sum, x| sum + f64::from(x))),
            Lanes::F64(v) => Lanes::F64(fold(&v, &targets, vec![0.0; numel], |sum, x| sum + x)),
            Lanes::Int(v) => Lanes::Int(fold(&v, &targets, vec![0; numel], i64::wrapping_add)),
            Lanes::Uint(v) => Lanes::Uint(fold(&v, &targets, vec![0; numel], u64::wrapping_add)),
        },
        ReduceOp::Prod => match x.lanes() {
            Lanes::F32(v) => Lanes::F32(fold(&v, &targets, vec![1.0; numel], |product, x| product * x)),
            Lanes::F64(v) => Lanes::F64(fold(&v, &targets, vec![1.0; numel], |product, x| product * x)),
            Lanes::Int(v) => Lanes::Int(fold(&v, &targets, vec![1; numel], i64::wrapping_mul)),
            Lanes::Uint(v) => Lanes::Uint(fold(&v, &targets, vec![1; numel], u64::wrapping_mul)),
        },
        ReduceOp::Max | ReduceOp::Min => extreme_values(op == ReduceOp::Max, x, &targets, numel),
        ReduceOp::ArgMax | ReduceOp::ArgMin => {
            let positions = extreme_positions(op == ReduceOp::ArgMax, x, &targets, numel);
            // The position along the axis follows from the offset.
            let Some(axis) = axes.first().filter(|_| axes.len() == 1) else {
                return Err(EvalError::Malformed(format!("`{}` of several axes", op.name())));
            };
            let step = strides(x.sizes())[*axis];
            let along = |offset: usize| (offset / step % x.sizes()[*axis]) as i64;
            let values: Vec<i64> = positions.into_iter().map(along).collect();
            return Ok(Tensor::from_i64(&sizes, &values));
        }
        ReduceOp::Any => {
            Lanes::Int(fold(&integers(op, x)?, &targets, vec![0; numel], |a, b| a | i64::from(b != 0)))
        }
        ReduceOp::All => {
            Lanes::Int(fold(&integers(op, x)?, &targets, vec![1; numel], |a, b| a & i64::from(b != 0)))
        }
        ReduceOp::Xor => Lanes::Int(fold(&integers(op, x)?, &targets, vec![0; numel], |a, b| a ^ b)),
    };
    Ok(Tensor::store(x.dtype(), sizes, &lanes))
}

fn integers(op: ReduceOp, x: &Tensor) -> Result<Vec<i64>, EvalError> {
    match x.lanes() {
        Lanes::Int(v) => Ok(v),
        // Bits are bits.
        Lanes::Uint(v) => Ok(v.into_iter().map(u64::cast_signed).collect()),
        Lanes::F32(_) | Lanes::F64(_) => {
            Err(EvalError::Malformed(format!("`{}` of {}", op.name(), x.dtype())))
        }
    }
}

/// For each element of the operand, in order, the element of the result that it goes to.
fn targets(sizes: &[usize], axes: &[usize]) -> Vec<usize> {
    let kept: Vec<usize> =
        sizes.iter().enumerate().filter(|(axis, _)| !axes.contains(axis)).map(|(_, size)| *size).collect();
    let kept_strides = strides(&kept);
    let mut steps = vec![0; sizes.len()];
    let mut next = 0;
    for axis in 0..sizes.len() {
        if !axes.contains(&axis) {
            steps[axis] = kept_strides[next];
            next += 1;
        }
    }
    if sizes.contains(&0) {
        return Vec::new();
    }
    let (mut position, mut targets) = (vec![0; sizes.len()], Vec::new());
    loop {
        targets.push(position.iter().zip(&steps).map(|(p, s)| p * s).sum());
        if !advance(&mut position, sizes) {
            return targets;
        }
    }
}

fn fold<T: Copy, A: Copy>(
    values: &[T],
    targets: &[usize],
    mut result: Vec<A>,
    f: impl Fn(A, T) -> A,
) -> Vec<A> {
    for (value, target) in values.iter().zip(targets) {
        result[*target] = f(result[*target], *value);
    }
    result
}

/// Offset of the first largest (or smallest) element for each element of the result; the first NaN, if any.
fn extreme_positions(largest: bool, x: &Tensor, targets: &[usize], numel: usize) -> Vec<usize> {
    fn search<T: Copy>(
        values: &[T],
        targets: &[usize],
        numel: usize,
        better: impl Fn(T, T) -> bool,
    ) -> Vec<usize> {
        let mut best: Vec<Option<usize>> = vec![None; numel];
        for (offset, target) in targets.iter().enumerate() {
            let slot = &mut best[*target];
            if slot.is_none_or(|current| better(values[offset], values[current])) {
                *slot = Some(offset);
            }
        }
        best.into_iter().map(|offset| offset.expect("no axis is empty")).collect()
    }
    let better_float =
        |new: f64, old: f64| !old.is_nan() && (new.is_nan() || if largest { new > old } else { new < old });
    match x.lanes() {
        Lanes::F32(v) => search(&v, targets, numel, |a, b| better_float(f64::from(a), f64::from(b))),
        Lanes::F64(v) => search(&v, targets, numel, better_float),
        Lanes::Int(v) => search(&v, targets, numel, |a, b| if largest { a > b } else { a < b }),
        Lanes::Uint(v) => search(&v, targets, numel, |a, b| if largest { a > b } else { a < b }),
    }
}

fn extreme_values(largest: bool, x: &Tensor, targets: &[usize], numel: usize) -> Lanes {
    let positions = extreme_positions(largest, x, targets, numel);
    fn pick<T: Copy>(values: &[T], positions: &[usize]) -> Vec<T> {
        positions.iter().map(|offset| values[*offset]).collect()
    }
    match x.lanes() {
        Lanes::F32(v) => Lanes::F32(pick(&v, &positions)),
        Lanes::F64(v) => Lanes::F64(pick(&v, &positions)),
        Lanes::Int(v) => Lanes::Int(pick(&v, &positions)),
        Lanes::Uint(v) => Lanes::Uint(pick(&v, &positions)),
    }
}

/// Running reduction along an axis; the indices too where the operator has them.
pub(super) fn scan(op: ScanOp, x: &Tensor, axis: usize) -> Result<(Tensor, Option<Tensor>), EvalError> {
    let (length, inner) = (x.sizes()[axis], x.sizes()[axis + 1..].iter().product::<usize>());
    let outer: usize = x.sizes()[..axis].iter().product();
    let rows: Vec<Vec<usize>> = (0..outer * inner)
        .map(|row| (0..length).map(|k| (row / inner * length + k) * inner + row % inner).collect())
        .collect();
    let lanes = match (op, x.lanes()) {
        (ScanOp::Max | ScanOp::Min, _) => {
            let (offsets, indices) = running_extreme(op == ScanOp::Max, x, &rows);
            let width = x.dtype().size();
            let data: Vec<u8> =
                offsets.iter().flat_map(|offset| &x.bytes()[offset * width..][..width]).copied().collect();
            let values = Tensor::new(x.dtype(), x.sizes().to_vec(), data).expect("the operand's own size");
            return Ok((values, Some(Tensor::from_i64(x.sizes(), &indices))));
        }
        (ScanOp::Sum, Lanes::Int(v)) => Lanes::Int(running(&v, &rows, 0, i64::wrapping_add)),
        (ScanOp::Prod, Lanes::Int(v)) => Lanes::Int(running(&v, &rows, 1, i64::wrapping_mul)),
        (ScanOp::Sum, Lanes::Uint(v)) => Lanes::Uint(running(&v, &rows, 0, u64::wrapping_add)),
        (ScanOp::Prod, Lanes::Uint(v)) => Lanes::Uint(running(&v, &rows, 1, u64::wrapping_mul)),
        (ScanOp::LogSumExp, Lanes::Int(_) | Lanes::Uint(_)) => {
            return Err(EvalError::Malformed("`logcumsumexp` of integers".to_owned()));
        }
        (ScanOp::Sum, Lanes::F32(_) | Lanes::F64(_)) => {
            Lanes::F64(running(&x.to_f64(), &rows, 0.0, |a, b| a + b))
        }
        (ScanOp::Prod, Lanes::F32(_) | Lanes::F64(_)) => {
            Lanes::F64(running(&x.to_f64(), &rows, 1.0, |a, b| a * b))
        }
        (ScanOp::LogSumExp, Lanes::F32(_) | Lanes::F64(_)) => {
            Lanes::F64(running(&x.to_f64(), &rows, f64::NEG_INFINITY, log_add_exp))
        }
    };
    Ok((super::convert::store_like(x, &lanes), None))
}

fn log_add_exp(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() {
        return f64::NAN;
    }
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    if low == high && !low.is_finite() { low } else { (low - high).exp().ln_1p() + high }
}

fn running<T: Copy>(values: &[T], rows: &[Vec<usize>], start: T, f: impl Fn(T, T) -> T) -> Vec<T> {
    let mut result = values.to_vec();
    for row in rows {
        let mut state = start;
        for offset in row {
            state = f(state, values[*offset]);
            result[*offset] = state;
        }
    }
    result
}

/// Offset and index of the latest extreme so far, for each element.
fn running_extreme(largest: bool, x: &Tensor, rows: &[Vec<usize>]) -> (Vec<usize>, Vec<i64>) {
    let takes_over: Box<dyn Fn(usize, usize) -> bool> = match x.lanes() {
        Lanes::Int(v) => Box::new(move |new, old| if largest { v[new] >= v[old] } else { v[new] <= v[old] }),
        Lanes::Uint(v) => Box::new(move |new, old| if largest { v[new] >= v[old] } else { v[new] <= v[old] }),
        Lanes::F32(_) | Lanes::F64(_) => {
            let v = x.to_f64();
            Box::new(move |new, old| {
                let wins = if largest { v[new] >= v[old] } else { v[new] <= v[old] };
                v[new].is_nan() || (!v[old].is_nan() && wins)
            })
        }
    };
    let (mut offsets, mut indices) = (vec![0; x.numel()], vec![0; x.numel()]);
    for row in rows {
        let mut best = 0;
        for (k, offset) in row.iter().enumerate() {
            if takes_over(*offset, row[best]) {
                best = k;
            }
            offsets[*offset] = row[best];
            indices[*offset] = best as i64;
        }
    }
    (offsets, indices)
}
