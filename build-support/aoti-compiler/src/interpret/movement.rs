//! Operators that move elements without looking at them, and scatters.

use super::binary::{defined, of_f32, of_f64, of_integers, of_unsigned};
use super::error::EvalError;
use super::index::{IndexFn, Symbols, advance, strides};
use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, Coord, Scalar};
use crate::symbolic::Expr;

/// Every element is one number.
pub(super) fn full(value: Scalar, dtype: DType, sizes: Vec<usize>) -> Tensor {
    let element = scalar_bytes(value, dtype);
    let data = element.repeat(sizes.iter().product());
    Tensor::new(dtype, sizes, data).expect("one element per position")
}

fn scalar_bytes(value: Scalar, dtype: DType) -> Vec<u8> {
    let lanes = match value.cast(dtype) {
        Scalar::Bool(value) => Lanes::Int(vec![i64::from(value)]),
        Scalar::Int(value) if dtype == DType::U64 => Lanes::Uint(vec![value as u64]),
        Scalar::Int(value) => Lanes::Int(vec![value as i64]),
        Scalar::Float(value) => Lanes::F64(vec![value]),
    };
    Tensor::store(dtype, vec![1], &lanes).bytes().to_vec()
}

/// The values of an expression over the axes.
pub(super) fn index(expr: &Expr, sizes: Vec<usize>, symbols: &Symbols) -> Result<Tensor, EvalError> {
    let function = IndexFn::new(expr, sizes.len(), symbols)?;
    let mut values = Vec::new();
    each_position(&sizes, |position, stack| {
        values.push(function.at(position, stack)?);
        Ok(())
    })?;
    Ok(Tensor::from_i64(&sizes, &values))
}

/// Calls `visit` for every position in row-major order, with a scratch stack for expressions.
fn each_position(
    sizes: &[usize],
    mut visit: impl FnMut(&[usize], &mut Vec<i64>) -> Result<(), EvalError>,
) -> Result<(), EvalError> {
    if sizes.contains(&0) {
        return Ok(());
    }
    let (mut position, mut stack) = (vec![0; sizes.len()], Vec::new());
    loop {
        visit(&position, &mut stack)?;
        if !advance(&mut position, sizes) {
            return Ok(());
        }
    }
}

/// Element at a position is the operand's at `coords`; where a coordinate is outside, `fill`, if there is one.
pub(super) fn view(
    x: &Tensor,
    coords: &[Expr],
    fill: Option<Scalar>,
    sizes: Vec<usize>,
    symbols: &Symbols,
) -> Result<Tensor, EvalError> {
    let width = x.dtype().size();
    let functions: Vec<IndexFn> =
        coords.iter().map(|coord| IndexFn::new(coord, sizes.len(), symbols)).collect::<Result<_, _>>()?;
    let steps = strides(x.sizes());
    let fill = fill.map(|fill| scalar_bytes(fill, x.dtype()));
    let source = x.bytes();
    let mut data = Vec::with_capacity(sizes.iter().product::<usize>() * width);
    each_position(&sizes, |position, stack| {
        let mut offset = 0;
        for ((function, size), step) in functions.iter().zip(x.sizes()).zip(&steps) {
            let coord = function.at(position, stack)?;
            match (usize::try_from(coord), &fill) {
                (Ok(inside), _) if inside < *size => offset += inside * step,
                (_, Some(fill)) => {
                    data.extend_from_slice(fill);
                    return Ok(());
                }
                (_, None) => return Err(outside(coord, *size)),
            }
        }
        data.extend_from_slice(&source[offset * width..(offset + 1) * width]);
        Ok(())
    })?;
    Ok(Tensor::new(x.dtype(), sizes, data).expect("one element per position"))
}

fn outside(coord: i64, size: usize) -> EvalError {
    EvalError::Malformed(format!("coordinate {coord} is outside an axis of size {size}"))
}

/// Coordinates of an indirect access, ready for evaluation.
struct Address {
    coords: Vec<Part>,
    sizes: Vec<usize>,
    strides: Vec<usize>,
}

enum Part {
    Function(IndexFn),
    /// One value per position, row-major; negative ones count from the end where that is asked.
    Values {
        values: Vec<i64>,
        wraps: bool,
    },
}

impl Address {
    fn new(
        coords: &[Coord],
        indices: &[&Tensor],
        target: &[usize],
        rank: usize,
        symbols: &Symbols,
    ) -> Result<Address, EvalError> {
        let mut parts = Vec::new();
        for coord in coords {
            parts.push(match coord {
                Coord::Expr(expr) => Part::Function(IndexFn::new(expr, rank, symbols)?),
                Coord::Indirect(k) | Coord::Wrapped(k) => {
                    let values = indices.get(*k).and_then(|index| index.to_i64());
                    let missing = || EvalError::Malformed(format!("index operand {k} is missing"));
                    Part::Values {
                        values: values.ok_or_else(missing)?,
                        wraps: matches!(coord, Coord::Wrapped(_)),
                    }
                }
            });
        }
        Ok(Address { coords: parts, sizes: target.to_vec(), strides: strides(target) })
    }

    /// Offset in elements of the access at position number `ordinal`.
    fn offset(&self, ordinal: usize, position: &[usize], stack: &mut Vec<i64>) -> Result<usize, EvalError> {
        let mut offset = 0;
        for ((part, size), stride) in self.coords.iter().zip(&self.sizes).zip(&self.strides) {
            let coord = match part {
                Part::Function(function) => {
                    let coord = function.at(position, stack)?;
                    usize::try_from(coord).ok().filter(|c| c < size).ok_or_else(|| outside(coord, *size))?
                }
                Part::Values { values, wraps } => {
                    let index = values[ordinal];
                    let from_end = *wraps && index < 0;
                    let wrapped = if from_end { index.saturating_add(*size as i64) } else { index };
                    usize::try_from(wrapped)
                        .ok()
                        .filter(|c| c < size)
                        .ok_or(EvalError::IndexOutOfRange { index, size: *size })?
                }
            };
            offset += coord * stride;
        }
        Ok(offset)
    }
}

/// The tensor whose axis `k` is axis `from(k)` of this one.
pub(super) fn transposed(x: &Tensor, from: impl Fn(usize) -> usize) -> Tensor {
    let steps = strides(x.sizes());
    let axes: Vec<usize> = (0..x.sizes().len()).map(from).collect();
    let sizes: Vec<usize> = axes.iter().map(|axis| x.sizes()[*axis]).collect();
    let width = x.dtype().size();
    let mut data = Vec::with_capacity(x.bytes().len());
    let mut position = vec![0; sizes.len()];
    for _ in 0..x.numel() {
        let offset: usize = axes.iter().zip(&position).map(|(axis, at)| at * steps[*axis]).sum();
        data.extend_from_slice(&x.bytes()[offset * width..][..width]);
        for (at, size) in position.iter_mut().zip(&sizes).rev() {
            *at += 1;
            if *at < *size {
                break;
            }
            *at = 0;
        }
    }
    Tensor::new(x.dtype(), sizes, data).expect("as many elements")
}

/// Indirect read.
pub(super) fn gather(
    x: &Tensor,
    indices: &[&Tensor],
    coords: &[Coord],
    sizes: Vec<usize>,
    symbols: &Symbols,
) -> Result<Tensor, EvalError> {
    let address = Address::new(coords, indices, x.sizes(), sizes.len(), symbols)?;
    let (width, source) = (x.dtype().size(), x.bytes());
    let (mut data, mut ordinal) = (Vec::new(), 0);
    each_position(&sizes, |position, stack| {
        let offset = address.offset(ordinal, position, stack)?;
        data.extend_from_slice(&source[offset * width..(offset + 1) * width]);
        ordinal += 1;
        Ok(())
    })?;
    Ok(Tensor::new(x.dtype(), sizes, data).expect("one element per position"))
}

/// Indirect write in row-major order of the updates.
pub(super) fn scatter(
    base: &Tensor,
    updates: &Tensor,
    indices: &[&Tensor],
    coords: &[Coord],
    combine: Combine,
    symbols: &Symbols,
) -> Result<Tensor, EvalError> {
    let sizes = updates.sizes();
    let address = Address::new(coords, indices, base.sizes(), sizes.len(), symbols)?;
    let mut offsets = Vec::with_capacity(updates.numel());
    each_position(sizes, |position, stack| {
        offsets.push(address.offset(offsets.len(), position, stack)?);
        Ok(())
    })?;
    let op = match combine {
        Combine::Set => return Ok(overwrite(base, updates, &offsets)),
        Combine::Add => BinaryOp::Add,
        Combine::Mul => BinaryOp::Mul,
        Combine::Max => BinaryOp::Maximum,
        Combine::Min => BinaryOp::Minimum,
    };
    let dtype = base.dtype();
    let mut lanes = base.lanes();
    match (&mut lanes, updates.lanes()) {
        (Lanes::F32(base), Lanes::F32(updates)) => {
            accumulate(base, &offsets, &updates, defined(of_f32(op), op, dtype)?);
        }
        (Lanes::F64(base), Lanes::F64(updates)) => {
            accumulate(base, &offsets, &updates, defined(of_f64(op), op, dtype)?);
        }
        (Lanes::Int(base), Lanes::Int(updates)) => {
            accumulate(base, &offsets, &updates, defined(of_integers(op, dtype), op, dtype)?);
        }
        (Lanes::Uint(base), Lanes::Uint(updates)) => {
            accumulate(base, &offsets, &updates, defined(of_unsigned(op), op, dtype)?);
        }
        (Lanes::F32(_) | Lanes::F64(_) | Lanes::Int(_) | Lanes::Uint(_), _) => {
            return Err(EvalError::Malformed("updates and base differ in type".to_owned()));
        }
    }
    Ok(super::convert::store_like(base, &lanes))
}

fn overwrite(base: &Tensor, updates: &Tensor, offsets: &[usize]) -> Tensor {
    let width = base.dtype().size();
    let mut data = base.bytes().to_vec();
    for (offset, update) in offsets.iter().zip(updates.bytes().chunks_exact(width)) {
        data[offset * width..(offset + 1) * width].copy_from_slice(update);
    }
    Tensor::new(base.dtype(), base.sizes().to_vec(), data).expect("the base's own size")
}

fn accumulate<T: Copy>(base: &mut [T], offsets: &[usize], updates: &[T], combine: impl Fn(T, T) -> T) {
    for (offset, update) in offsets.iter().zip(updates) {
        base[*offset] = combine(base[*offset], *update);
    }
}

/// Operands laid one after the other along an axis.
pub(super) fn cat(operands: &[&Tensor], axis: usize, sizes: Vec<usize>) -> Result<Tensor, EvalError> {
    let first = operands.first().ok_or_else(|| EvalError::Malformed("nothing to concatenate".to_owned()))?;
    let dtype = first.dtype();
    let outer: usize = sizes[..axis].iter().product();
    let mut data = Vec::new();
    for row in 0..outer {
        for operand in operands {
            let length = operand.sizes()[axis..].iter().product::<usize>() * dtype.size();
            data.extend_from_slice(&operand.bytes()[row * length..(row + 1) * length]);
        }
    }
    Tensor::new(dtype, sizes, data).map_err(|error| EvalError::Malformed(error.to_string()))
}

/// Element-wise choice.
pub(super) fn select(condition: &Tensor, a: &Tensor, b: &Tensor) -> Tensor {
    let width = a.dtype().size();
    let mut data = Vec::with_capacity(a.bytes().len());
    for (position, flag) in condition.bytes().iter().enumerate() {
        let chosen = if *flag != 0 { a } else { b };
        data.extend_from_slice(&chosen.bytes()[position * width..(position + 1) * width]);
    }
    Tensor::new(a.dtype(), a.sizes().to_vec(), data).expect("one element per position")
}
