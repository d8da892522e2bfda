//! Matrices of complex numbers as real ones twice as large: `a + bi` is the block `[[a, -b], [b, a]]`. Sums, products and
//! inverses of such matrices are of that form again, so that what is composed of these needs no code of its own.
//!
//! Knows the operators of which that holds, and nothing of how the real ones are computed.

use super::parts::Parts;
use super::solve::{adjoint, are_vectors, checked, demand, solution, tried_inverse};
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{UnaryOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

/// X of A X = B, or of X A = B.
pub(super) fn solve(cx: &mut Context, a: &Args) -> Rule {
    let (x, info) = solved(cx, a)?;
    demand(cx, info, "torch.linalg.solve: the matrix is singular")?;
    Ok(x.into())
}

/// The same with `info`, and without factors: those are of the larger matrices.
pub(super) fn solve_ex(cx: &mut Context, a: &Args) -> Rule {
    let (x, info) = solved(cx, a)?;
    checked(cx, a, info)?;
    Ok(Outputs::Many(vec![Some(x), None, None, Some(info)]))
}

/// B may be vectors, one for each matrix, and either may be real.
fn solved(cx: &mut Context, a: &Args) -> Result<(ValueId, ValueId), RuleError> {
    let (m, mut b) = (parts(cx, a, "A")?, parts(cx, a, "B")?);
    let is_vector = are_vectors(cx, m.re, b.re);
    if is_vector {
        let last = cx.b.rank(b.re);
        b = Parts { re: cx.b.unsqueeze(b.re, last)?, im: cx.b.unsqueeze(b.im, last)? };
    }
    let from_right = !is_vector && !a.bool_or("left", true)?;
    // X A = B is A' X' = B', where a mark is the matrix turned.
    let (m, b) = if from_right { (turned(cx, m)?, turned(cx, b)?) } else { (m, b) };
    let (rows, block) = (rows_of(cx, m.re)?, block(cx, m)?);
    let stacked = cx.b.cat(&[b.re, b.im], cx.b.rank(b.re) - 2)?;
    let [x, info] = solution(cx, block, stacked)?;
    let mut x = halves(cx, x, &rows)?;
    if from_right {
        x = turned(cx, x)?;
    }
    if is_vector {
        let last = cx.b.rank(x.re) - 1;
        x = Parts { re: cx.b.squeeze(x.re, &[last])?, im: cx.b.squeeze(x.im, &[last])? };
    }
    Ok((cx.join(x)?, cx.b.cast(info, DType::I32)))
}

/// The inverse of each matrix.
pub(super) fn inverse(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let (x, info) = inverted(cx, a, name)?;
    demand(cx, info, "linalg.inv: the matrix is singular")?;
    Ok(x.into())
}

/// The same with `info`.
pub(super) fn inverse_ex(cx: &mut Context, a: &Args) -> Rule {
    let (x, info) = inverted(cx, a, "A")?;
    checked(cx, a, info)?;
    Ok(Outputs::Many(vec![Some(x), Some(info)]))
}

fn inverted(cx: &mut Context, a: &Args, name: &str) -> Result<(ValueId, ValueId), RuleError> {
    let m = parts(cx, a, name)?;
    let (rows, block) = (rows_of(cx, m.re)?, block(cx, m)?);
    let [x, info] = tried_inverse(cx, block)?;
    let last = cx.b.rank(x) - 1;
    // The left half is the inverse's real part above its imaginary part.
    let left = cx.b.slice(x, last, &Expr::int(0), &rows, 1)?;
    let x = halves(cx, left, &rows)?;
    Ok((cx.join(x)?, cx.b.cast(info, DType::I32)))
}

/// The parts of an operand, which may be real.
fn parts(cx: &mut Context, a: &Args, name: &str) -> Result<Parts, RuleError> {
    let x = a.tensor(name)?;
    if a.is_complex(name) {
        return cx.split(x);
    }
    Ok(Parts { re: x, im: cx.b.full_like(0i64, x) })
}

fn rows_of(cx: &Context, x: ValueId) -> Result<Expr, RuleError> {
    let shape = cx.b.shape(x);
    let rows = shape.len().checked_sub(2).map(|axis| shape[axis].clone());
    rows.ok_or_else(|| RuleError::Malformed("a matrix has two axes".to_owned()))
}

fn turned(cx: &mut Context, x: Parts) -> Result<Parts, RuleError> {
    Ok(Parts { re: adjoint(cx, x.re)?, im: adjoint(cx, x.im)? })
}

fn block(cx: &mut Context, m: Parts) -> Result<ValueId, RuleError> {
    let (rows, columns) = (cx.b.rank(m.re) - 2, cx.b.rank(m.re) - 1);
    let negative = cx.unary(UnaryOp::Neg, m.im);
    let left = cx.b.cat(&[m.re, m.im], rows)?;
    let right = cx.b.cat(&[negative, m.re], rows)?;
    Ok(cx.b.cat(&[left, right], columns)?)
}

/// The upper rows and those below them.
fn halves(cx: &mut Context, x: ValueId, rows: &Expr) -> Result<Parts, RuleError> {
    let axis = cx.b.rank(x) - 2;
    let re = cx.b.slice(x, axis, &Expr::int(0), rows, 1)?;
    let im = cx.b.slice(x, axis, rows, rows, 1)?;
    Ok(Parts { re, im })
}
