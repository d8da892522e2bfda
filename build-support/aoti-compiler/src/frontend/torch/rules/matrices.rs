//! Triangles, diagonals and other matrices given by their indices.

use super::registry::rules;
use super::support::{fixed, length};
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, IntBinary, Relation, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.tril.default" => |cx, a| triangle(cx, a, Relation::Le),
    pure "aten.triu.default" => |cx, a| triangle(cx, a, Relation::Ge),
    pure "aten.tril_indices.default" => |cx, a| triangle_indices(cx, a, true),
    pure "aten.triu_indices.default" => |cx, a| triangle_indices(cx, a, false),
    pure "aten.eye.default" => eye,
    pure "aten.eye.m" => eye,
    pure "aten.diag.default" => diag,
    pure "aten.diagflat.default" => |cx, a| {
        let x = cx.flattened(a.tensor("self")?)?;
        Ok(embed(cx, x, a.int_or("offset", 0)?, [0, 1])?.into())
    },
    pure "aten.diag_embed.default" => |cx, a| {
        let x = a.tensor("self")?;
        let axes = [a.int_or("dim1", -2)?, a.int_or("dim2", -1)?];
        Ok(embed(cx, x, a.int_or("offset", 0)?, axes)?.into())
    },
    pure "aten.fill_diagonal.default" => fill_diagonal,
    pure "aten.vander.default" => vander,
    pure "aten.linalg_vander.default" => powers,
}

/// The elements whose coordinates are all equal become a number. With `wrap`, the diagonal of a tall matrix begins anew
/// a row below where it ended.
fn fill_diagonal(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let ty = cx.b.ty(x).clone();
    let wraps = a.bool_or("wrap", false)? && ty.rank() == 2;
    let mut on = cx.b.full(true, DType::Bool, &ty.shape);
    for axis in 1..ty.rank() {
        let row = if wraps { Expr::axis(0).modulo(&(&ty.shape[1] + 1)) } else { Expr::axis(0) };
        let here = cx.index_is(Relation::Eq, &row - &Expr::axis(axis), &ty.shape)?;
        on = cx.binary(IntBinary::And, on, here)?;
    }
    let number = a.number("fill_value")?.to_element(cx, ty.dtype)?;
    Ok(cx.b.select(on, number, x)?.into())
}

/// Keeps elements where `column - row - diagonal <op> 0`.
fn triangle(cx: &mut Context, a: &Args, op: Relation) -> Rule {
    let x = a.tensor("self")?;
    let shape = cx.b.shape(x);
    if shape.len() < 2 {
        return Err(RuleError::Malformed("a matrix has two axes".to_owned()));
    }
    let diagonal = a.opt_sym("diagonal")?.unwrap_or_else(|| Expr::int(0));
    let tail = &shape[shape.len() - 2..];
    let kept = cx.index_is(op, &(&Expr::axis(1) - &Expr::axis(0)) - &diagonal, tail)?;
    let zero = cx.b.full_like(0i64, x);
    Ok(cx.b.select(kept, x, zero)?.into())
}

fn triangle_indices(cx: &mut Context, a: &Args, lower: bool) -> Rule {
    let (rows, columns, offset) = (a.int("row")?, a.int("col")?, a.int_or("offset", 0)?);
    let (mut down, mut across) = (Vec::new(), Vec::new());
    for row in 0..rows {
        for column in 0..columns {
            let kept = if lower { column - row <= offset } else { column - row >= offset };
            if kept {
                down.push(row);
                across.push(column);
            }
        }
    }
    let count = length(down.len());
    down.append(&mut across);
    let flat = cx.b.int_vector(&down);
    let pairs = cx.b.reshape(flat, &[Expr::int(2), Expr::int(count)])?;
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DType::I64);
    Ok(cx.b.cast(pairs, dtype).into())
}

fn eye(cx: &mut Context, a: &Args) -> Rule {
    let rows = a.sym("n")?;
    let columns = a.opt_sym("m")?.unwrap_or_else(|| rows.clone());
    let dtype = a.opt_dtype("dtype")?.or(a.output_dtype()).unwrap_or(DType::F32);
    Ok(cx.identity_matrix(dtype, &[rows, columns])?.into())
}

fn diag(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let offset = a.int_or("diagonal", 0)?;
    if cx.b.rank(x) == 1 {
        return Ok(embed(cx, x, offset, [0, 1])?.into());
    }
    let shape = cx.b.shape(x);
    let [rows, columns] = shape.as_slice() else {
        return Err(RuleError::Malformed("a vector or a matrix is needed".to_owned()));
    };
    let (down, right) = ((-offset).max(0), offset.max(0));
    let ranges = cx.b.ranges();
    let size = (rows - down).minimum_in(&(columns - right), ranges).maximum_in(&Expr::int(0), ranges);
    Ok(cx.b.view(x, &[size], vec![&Expr::axis(0) + down, &Expr::axis(0) + right])?.into())
}

/// Puts the last axis on a diagonal of two new axes, zeros elsewhere.
fn embed(cx: &mut Context, x: ValueId, offset: i64, axes: [i64; 2]) -> Result<ValueId, RuleError> {
    let x = cx.at_least_1d(x)?;
    let own = cx.b.shape(x);
    let rank = own.len() + 1;
    let (first, second) = (Context::axis(axes[0], rank)?, Context::axis(axes[1], rank)?);
    if first == second {
        return Err(RuleError::Malformed("a diagonal needs two different axes".to_owned()));
    }
    let size = &own[own.len() - 1] + offset.abs();
    let mut rest = own[..own.len() - 1].iter().cloned();
    let mut coords = Vec::new();
    let mut shape = Vec::new();
    for axis in 0..rank {
        if axis == first || axis == second {
            shape.push(size.clone());
        } else {
            shape.push(rest.next().expect("one size for each other axis"));
            coords.push(Expr::axis(axis));
        }
    }
    // Along the diagonal, row - max(-offset, 0) == column - max(offset, 0).
    coords.push(&Expr::axis(first) - (-offset).max(0));
    let spread = cx.b.padded_view(x, &shape, coords, Scalar::Int(0))?;
    let on = cx.index_is(Relation::Eq, &(&Expr::axis(second) - &Expr::axis(first)) - offset, &shape)?;
    let zero = cx.b.full_like(0i64, spread);
    Ok(cx.b.select(on, spread, zero)?)
}

/// Columns are powers of the vector, falling or rising.
/// Powers of each element, from 0 on, along an axis of their own.
fn powers(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("x")?;
    let x = cx.at_least_1d(x)?;
    let shape = powers_shape(cx, a, x)?;
    let last = shape.len() - 1;
    let dtype = cx.b.dtype(x);
    let dtype = if dtype.is_float() { dtype } else { DType::I64 };
    let base = cx.b.cast(x, dtype);
    let base = cx.b.unsqueeze(base, last)?;
    let exponents = cx.b.index(Expr::axis(last), &shape);
    let exponents = cx.b.cast(exponents, dtype);
    Ok(cx.binary(BinaryOp::Pow, base, exponents)?.into())
}

/// The shape of `linalg.vander`: as many powers as the last axis is long, unless `N` says how many.
pub(crate) fn powers_shape(cx: &Context, a: &Args, x: ValueId) -> Result<Vec<Expr>, RuleError> {
    let mut shape = cx.b.shape(x);
    let own = shape.last().cloned();
    let count = match a.opt_int("N")? {
        Some(count) => Some(Expr::int(count)),
        None => own,
    };
    shape.push(count.ok_or_else(|| RuleError::Malformed("`vander` of a single number".to_owned()))?);
    Ok(shape)
}

fn vander(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("x")?;
    let own = cx.b.shape(x);
    let columns = match a.opt_int("N")? {
        Some(columns) => columns,
        None => fixed(&own, "`vander`")?.first().copied().unwrap_or(0),
    };
    let exponent = if a.bool_or("increasing", false)? {
        Expr::axis(1)
    } else {
        &Expr::int(columns - 1) - &Expr::axis(1)
    };
    let dtype = cx.b.dtype(x);
    let dtype = if dtype.is_float() { dtype } else { DType::I64 };
    let base = cx.b.cast(x, dtype);
    let base = cx.b.unsqueeze(base, 1)?;
    let powers = cx.b.index(exponent, &[own[0].clone(), Expr::int(columns)]);
    let powers = cx.b.cast(powers, dtype);
    Ok(cx.binary(BinaryOp::Pow, base, powers)?.into())
}
