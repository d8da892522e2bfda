//! Tensors as matrices: inverses, and systems of equations whose unknowns have several axes.

use super::super::complex::matrices::{any_parts, inverse_parts, solution_parts};
use super::super::complex::parts::Parts;
use super::super::complex::reflections::each;
use super::super::registry::rules;
use super::super::support::count;
use super::super::{Args, Context, Outputs, RuleError};
use super::solve::{demand, solution};
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.linalg_tensorinv.default" => inverse,
    pure "aten.linalg_tensorsolve.default" => solved,
}

/// The inverse of a tensor whose first `ind` axes are rows.
fn inverse(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (size, shape) = inverse_shape(a, &cx.b.shape(x))?;
    let square = cx.b.reshape(x, &[size.clone(), size])?;
    let inverse = cx.matrix_inverse(square)?;
    Ok(cx.b.reshape(inverse, &shape)?.into())
}

/// The same of complex numbers.
pub(crate) fn complex_inverse(cx: &mut Context, a: &Args) -> Rule {
    let x = cx.split(a.tensor("self")?)?;
    let shape = cx.b.shape(x.re);
    let (size, result) = inverse_shape(a, &shape)?;
    let square = each(x, |part| Ok(cx.b.reshape(part, &[size.clone(), size.clone()])?))?;
    let (inverse, info) = inverse_parts(cx, square)?;
    demand(cx, info, "linalg.tensorinv: the tensor is singular")?;
    let inverse = each(inverse, |part| Ok(cx.b.reshape(part, &result)?))?;
    Ok(cx.join(inverse)?.into())
}

/// How many rows the matrix has that a tensor is, its first `ind` axes being rows, and the shape of its inverse.
fn inverse_shape(a: &Args, shape: &[Expr]) -> Result<(Expr, Vec<Expr>), RuleError> {
    let rows = count(a.int_or("ind", 2)?)?;
    if rows > shape.len() {
        return Err(RuleError::Malformed(format!("{rows} axes of {}", shape.len())));
    }
    Ok((Expr::product(&shape[..rows]), [&shape[rows..], &shape[..rows]].concat()))
}

/// X of A X = B, where the axes of A that B does not have are those of X.
fn solved(cx: &mut Context, a: &Args) -> Rule {
    let (x, b) = (a.tensor("self")?, a.tensor("other")?);
    let (square, b, shape) = system(cx, a, x, b)?;
    let [x, info] = solution(cx, square, b)?;
    demand(cx, info, "torch.linalg.tensorsolve: the tensor is singular")?;
    Ok(cx.b.reshape(x, &shape)?.into())
}

/// The same of complex numbers.
pub(crate) fn complex_solution(cx: &mut Context, a: &Args) -> Rule {
    let [x, b] = ["self", "other"].map(|name| any_parts(cx, a, name));
    let (x, b) = (x?, b?);
    let (re, b_re, shape) = system(cx, a, x.re, b.re)?;
    let (im, b_im, _) = system(cx, a, x.im, b.im)?;
    let (x, info) = solution_parts(cx, Parts { re, im }, Parts { re: b_re, im: b_im })?;
    demand(cx, info, "torch.linalg.tensorsolve: the tensor is singular")?;
    let x = each(x, |part| Ok(cx.b.reshape(part, &shape)?))?;
    Ok(cx.join(x)?.into())
}

/// The matrix and the column that a system of tensors is, and the shape of what solves it.
fn system(
    cx: &mut Context,
    a: &Args,
    x: ValueId,
    b: ValueId,
) -> Result<(ValueId, ValueId, Vec<Expr>), RuleError> {
    let rank = cx.b.rank(x);
    let moved = if a.has("dims") { Context::axes(&a.ints("dims")?, rank)? } else { vec![] };
    let mut places: Vec<usize> = (0..rank).filter(|axis| !moved.contains(axis)).collect();
    places.extend(moved);
    let x = cx.b.permute(x, &places)?;
    let shape = cx.b.shape(x).split_off(cx.b.rank(b).min(rank));
    let size = Expr::product(&shape);
    let square = cx.b.reshape(x, &[size.clone(), size.clone()])?;
    Ok((square, cx.b.reshape(b, &[size, Expr::int(1)])?, shape))
}
