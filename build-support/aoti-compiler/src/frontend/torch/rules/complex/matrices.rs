//! Matrices of complex numbers as real ones twice as large: the element `a + bi` is the block `[[a, -b], [b, a]]`.
//! Sums, products and inverses of such matrices are of that form again, so that what is composed of these needs no code
//! of its own; and so is the triangle that Cholesky's method gives, whose diagonal is real.
//!
//! Knows the operators of which that holds, and nothing of how the real ones are computed.

use super::super::linalg::solve::{
    self, are_vectors, checked, demand, demand_inverse_of_factor, sides, solution, tried_inverse,
    unit_triangular,
};
use super::super::{Args, Context, Outputs, RuleError};
use super::parts::{Complex, Parts};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Relation, Routine, UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

/// X of A X = B, or of X A = B.
pub(crate) fn solve(cx: &mut Context, a: &Args) -> Rule {
    let (x, info) = solved(cx, a)?;
    demand(cx, info, "torch.linalg.solve: the matrix is singular")?;
    Ok(x.into())
}

/// The same with `info`, and without the factors that one form has: those are of the larger matrices.
pub(crate) fn solve_ex(cx: &mut Context, a: &Args) -> Rule {
    let (x, info) = solved(cx, a)?;
    checked(cx, a, info)?;
    if a.target() == "aten.linalg_solve_ex.default" {
        return Ok(Outputs::Many(vec![Some(x), Some(info)]));
    }
    Ok(Outputs::Many(vec![Some(x), None, None, Some(info)]))
}

/// B may be vectors, one for each matrix, and either may be real.
fn solved(cx: &mut Context, a: &Args) -> Result<(ValueId, ValueId), RuleError> {
    let (m, mut b) = (parts(cx, a, "A")?, any_parts(cx, a, "B")?);
    let is_vector = are_vectors(cx, m.re, b.re);
    if is_vector {
        let last = cx.b.rank(b.re);
        b = Parts { re: cx.b.unsqueeze(b.re, last)?, im: cx.b.unsqueeze(b.im, last)? };
    }
    let from_right = !is_vector && !a.bool_or("left", true)?;
    // X A = B is A' X' = B', where a mark is the matrix turned.
    let (m, b) = if from_right { (turned(cx, m)?, turned(cx, b)?) } else { (m, b) };
    let (mut x, info) = solution_parts(cx, m, b)?;
    if from_right {
        x = turned(cx, x)?;
    }
    if is_vector {
        let last = cx.b.rank(x.re) - 1;
        x = Parts { re: cx.b.squeeze(x.re, &[last])?, im: cx.b.squeeze(x.im, &[last])? };
    }
    Ok((cx.join(x)?, cx.b.cast(info, DType::I32)))
}

/// X of A X = B, and `info`.
pub(crate) fn solution_parts(cx: &mut Context, m: Parts, b: Parts) -> Result<(Parts, ValueId), RuleError> {
    let (doubled, below) = (interleaved(cx, m)?, interleaved_rows(cx, b)?);
    let [x, info] = solution(cx, doubled, below)?;
    Ok((row_parts(cx, x)?, info))
}

/// The inverse of each matrix.
pub(crate) fn inverse(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let (x, info) = inverted(cx, a, name)?;
    demand(cx, info, "linalg.inv: the matrix is singular")?;
    Ok(x.into())
}

/// The same with `info`.
pub(crate) fn inverse_ex(cx: &mut Context, a: &Args) -> Rule {
    let (x, info) = inverted(cx, a, "A")?;
    checked(cx, a, info)?;
    Ok(Outputs::Many(vec![Some(x), Some(info)]))
}

fn inverted(cx: &mut Context, a: &Args, name: &str) -> Result<(ValueId, ValueId), RuleError> {
    let m = parts(cx, a, name)?;
    let (x, info) = inverse_parts(cx, m)?;
    Ok((cx.join(x)?, cx.b.cast(info, DType::I32)))
}

/// What comes of inverting each matrix, and `info`.
pub(crate) fn inverse_parts(cx: &mut Context, m: Parts) -> Result<(Parts, ValueId), RuleError> {
    let doubled = interleaved(cx, m)?;
    let [x, info] = tried_inverse(cx, doubled)?;
    Ok((first_of_columns(cx, x)?, info))
}

/// The lower triangle whose product with its adjoint is a Hermitian matrix, of which one triangle is read, and `info`.
fn cholesky(cx: &mut Context, a: &Args) -> Result<(Parts, ValueId), RuleError> {
    let name = if a.has("A") { "A" } else { "self" };
    let m = parts(cx, a, name)?;
    let upper = a.bool_or("upper", false)?;
    let m = if upper { adjoint(cx, m)? } else { m };
    let im = without_diagonal(cx, m.im)?;
    let doubled = interleaved(cx, Parts { re: m.re, im })?;
    let all = cx.b.routine(Routine::Cholesky, &[doubled])?;
    let l = first_of_columns(cx, all[0])?;
    let l = if upper { adjoint(cx, l)? } else { l };
    // Two minors of the larger matrix are one.
    let info = cx.with_number(BinaryOp::Add, all[1], 1i64)?;
    Ok((l, cx.with_number(BinaryOp::FloorDiv, info, 2i64)?))
}

pub(crate) fn cholesky_ex(cx: &mut Context, a: &Args) -> Rule {
    let (l, info) = cholesky(cx, a)?;
    checked(cx, a, info)?;
    let (l, info) = (cx.join(l)?, cx.b.cast(info, DType::I32));
    Ok(Outputs::Many(vec![Some(l), Some(info)]))
}

pub(crate) fn positive_definite(cx: &mut Context, a: &Args) -> Rule {
    let (l, info) = cholesky(cx, a)?;
    demand(cx, info, "linalg.cholesky: the matrix is not positive definite")?;
    Ok(cx.join(l)?.into())
}

/// X of L L^H X = B, or of U^H U X = B.
pub(crate) fn cholesky_solve(cx: &mut Context, a: &Args) -> Rule {
    let (b, l) = (parts(cx, a, "self")?, parts(cx, a, "input2")?);
    let x = of_cholesky(cx, a, l, b)?;
    Ok(cx.join(x)?.into())
}

fn of_cholesky(cx: &mut Context, a: &Args, l: Parts, b: Parts) -> Result<Parts, RuleError> {
    let upper = a.bool_or("upper", false)?;
    let (lower, above) = if upper { (adjoint(cx, l)?, l) } else { (l, adjoint(cx, l)?) };
    let y = triangular(cx, lower, b, false, false)?;
    triangular(cx, above, y, true, false)
}

/// The inverse of L L^H, or of U^H U.
pub(crate) fn cholesky_inverse(cx: &mut Context, a: &Args) -> Rule {
    let l = parts(cx, a, "self")?;
    demand_inverse_of_factor(cx, &[l.re, l.im])?;
    let ty = cx.b.ty(l.re).clone();
    let re = cx.identity_matrix(ty.dtype, &ty.shape)?;
    let b = Parts { re, im: cx.b.full_like(0.0, re) };
    let x = of_cholesky(cx, a, l, b)?;
    Ok(cx.join(x)?.into())
}

/// Rows and columns exchanged, and conjugates taken.
pub(crate) fn conjugate_transpose(cx: &mut Context, a: &Args) -> Rule {
    let x = parts(cx, a, "self")?;
    let x = adjoint(cx, x)?;
    Ok(cx.join(x)?.into())
}

/// A function of a matrix by that of the real one twice as large.
pub(crate) fn doubled(cx: &mut Context, x: ValueId, run: impl FnOnce(&mut Context, ValueId) -> Rule) -> Rule {
    let parts = cx.split(x)?;
    sides(cx, parts.re)?;
    let larger = interleaved(cx, parts)?;
    let Outputs::One(result) = run(cx, larger)? else {
        return Err(RuleError::unsupported("it is not supported for complex numbers"));
    };
    let result = first_of_columns(cx, result)?;
    Ok(cx.join(result)?.into())
}

/// X of A X = B, or of X A = B, with a triangular A.
pub(crate) fn solve_triangular(cx: &mut Context, a: &Args) -> Rule {
    let (m, b) = (parts(cx, a, "self")?, parts(cx, a, "B")?);
    let (upper, unit) = (a.bool_or("upper", false)?, a.bool_or("unitriangular", false)?);
    if a.bool_or("left", true)? {
        let x = triangular(cx, m, b, upper, unit)?;
        return Ok(cx.join(x)?.into());
    }
    let (m, b) = (turned(cx, m)?, turned(cx, b)?);
    let x = triangular(cx, m, b, !upper, unit)?;
    let x = turned(cx, x)?;
    Ok(cx.join(x)?.into())
}

/// Rows are divided by their elements on the diagonal first: with ones there, the larger matrix is triangular too.
pub(crate) fn triangular(
    cx: &mut Context,
    m: Parts,
    b: Parts,
    upper: bool,
    unit: bool,
) -> Result<Parts, RuleError> {
    let (mut m, mut b) = (m, b);
    if !unit {
        let diagonal = diagonal(cx, m)?;
        m = quotient(cx, m, diagonal)?;
        b = quotient(cx, b, diagonal)?;
    }
    m.im = without_diagonal(cx, m.im)?;
    let (doubled, below) = (interleaved(cx, m)?, interleaved_rows(cx, b)?);
    let x = unit_triangular(cx, doubled, below, upper)?;
    row_parts(cx, x)
}

fn quotient(cx: &mut Context, x: Parts, y: Parts) -> Result<Parts, RuleError> {
    let [x, y] = [x, y].map(|parts| Complex::new(parts.re.into(), parts.im.into()));
    let result = x.over(&y);
    let dtype = DType::F64;
    Ok(Parts { re: cx.formula(dtype, &result.re)?, im: cx.formula(dtype, &result.imaginary())? })
}

/// The elements on the diagonal, as a matrix of one column.
fn diagonal(cx: &mut Context, x: Parts) -> Result<Parts, RuleError> {
    let rank = cx.b.rank(x.re);
    let mut shape = cx.b.shape(x.re);
    shape[rank - 1] = Expr::int(1);
    let mut coords: Vec<Expr> = (0..rank).map(Expr::axis).collect();
    coords[rank - 1] = Expr::axis(rank - 2);
    let of = |cx: &mut Context, part| cx.b.view(part, &shape, coords.clone());
    Ok(Parts { re: of(cx, x.re)?, im: of(cx, x.im)? })
}

/// Zeros on the diagonal.
fn without_diagonal(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    let (_, rows, columns) = sides(cx, x)?;
    let beside = cx.index_is(Relation::Ne, &Expr::axis(1) - &Expr::axis(0), &[rows, columns])?;
    let zero = cx.b.full_like(0.0, x);
    Ok(cx.b.select(beside, x, zero)?)
}

/// The parts of an operand, which may be real.
pub(crate) fn any_parts(cx: &mut Context, a: &Args, name: &str) -> Result<Parts, RuleError> {
    let x = a.tensor(name)?;
    if a.is_complex(name) { cx.split(x) } else { Ok(Parts { re: x, im: cx.b.full_like(0i64, x) }) }
}

/// The same of an operand that is matrices.
pub(crate) fn parts(cx: &mut Context, a: &Args, name: &str) -> Result<Parts, RuleError> {
    let own = any_parts(cx, a, name)?;
    sides(cx, own.re)?;
    Ok(own)
}

fn turned(cx: &mut Context, x: Parts) -> Result<Parts, RuleError> {
    Ok(Parts { re: solve::adjoint(cx, x.re)?, im: solve::adjoint(cx, x.im)? })
}

/// Rows and columns exchanged, and conjugates taken.
pub(crate) fn adjoint(cx: &mut Context, x: Parts) -> Result<Parts, RuleError> {
    let x = turned(cx, x)?;
    Ok(Parts { re: x.re, im: cx.unary(UnaryOp::Neg, x.im) })
}

/// The real matrix twice as large.
pub(crate) fn interleaved(cx: &mut Context, m: Parts) -> Result<ValueId, RuleError> {
    let negative = cx.unary(UnaryOp::Neg, m.im);
    let upper = interleaved_columns(cx, m.re, negative)?;
    let lower = interleaved_columns(cx, m.im, m.re)?;
    interleaved_rows(cx, Parts { re: upper, im: lower })
}

fn interleaved_columns(cx: &mut Context, even: ValueId, odd: ValueId) -> Result<ValueId, RuleError> {
    let rank = cx.b.rank(even);
    let columns = [cx.b.unsqueeze(even, rank)?, cx.b.unsqueeze(odd, rank)?];
    let all = cx.b.cat(&columns, rank)?;
    cx.merge_axes(all, rank - 1, rank + 1)
}

/// Each row of imaginary parts below that of real ones.
fn interleaved_rows(cx: &mut Context, x: Parts) -> Result<ValueId, RuleError> {
    let rank = cx.b.rank(x.re);
    let rows = [cx.b.unsqueeze(x.re, rank - 1)?, cx.b.unsqueeze(x.im, rank - 1)?];
    let all = cx.b.cat(&rows, rank - 1)?;
    cx.merge_axes(all, rank - 2, rank)
}

/// The even and the odd positions along an axis.
pub(crate) fn alternating(cx: &mut Context, x: ValueId, axis: usize) -> Result<[ValueId; 2], RuleError> {
    let half = cx.b.shape(x)[axis].floor_div_in(&Expr::int(2), cx.b.ranges());
    let both = cx.split_axis(x, axis, &[half, Expr::int(2)])?;
    Ok([cx.b.pick(both, axis + 1, &Expr::int(0))?, cx.b.pick(both, axis + 1, &Expr::int(1))?])
}

/// What [`interleaved_rows`] was made of.
fn row_parts(cx: &mut Context, x: ValueId) -> Result<Parts, RuleError> {
    let rows = cx.b.rank(x) - 2;
    let [re, im] = alternating(cx, x, rows)?;
    Ok(Parts { re, im })
}

/// The matrix of which the larger one consists: the first column of each block has both parts.
fn first_of_columns(cx: &mut Context, x: ValueId) -> Result<Parts, RuleError> {
    let last = cx.b.rank(x) - 1;
    let [first, _] = alternating(cx, x, last)?;
    row_parts(cx, first)
}
