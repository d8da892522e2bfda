//! Factorisations of complex matrices by reflections.
//!
//! What reflections from both sides leave is a real matrix with few diagonals, whose eigenvalues or singular values the
//! routines for real matrices find. General eigenvalues come from the real matrix twice as large. Vectors are unique up
//! to a factor of magnitude 1, and not always PyTorch's.

use super::super::gather::gather_along;
use super::super::linalg::orthogonal::{
    all_finite, completed_by, condition_of, condition_of_nothing, counted, is_tall,
};
use super::super::linalg::solve::sides;
use super::super::norm::{of_matrix, order_of};
use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::matrices::{adjoint, alternating, interleaved, inverse_parts, parts};
use super::parts::{Complex, Parts};
use super::reflections::{Form, each, expression, identity, reduced};
use crate::dtype::DType;
use crate::graph::{ReduceOp, Relation, Routine, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

/// The product of matrices.
fn product(cx: &mut Context, x: Parts, y: Parts) -> Result<Parts, RuleError> {
    let [rr, ii] = [cx.b.matmul(x.re, y.re)?, cx.b.matmul(x.im, y.im)?];
    let [ri, ir] = [cx.b.matmul(x.re, y.im)?, cx.b.matmul(x.im, y.re)?];
    Ok(Parts { re: cx.sub(rr, ii)?, im: cx.add(ri, ir)? })
}

fn first_columns(cx: &mut Context, x: Parts, count: &Expr) -> Result<Parts, RuleError> {
    let last = cx.b.rank(x.re) - 1;
    each(x, |part| Ok(cx.b.slice(part, last, &Expr::int(0), count, 1)?))
}

fn first_rows(cx: &mut Context, x: Parts, count: &Expr) -> Result<Parts, RuleError> {
    let rows = cx.b.rank(x.re) - 2;
    each(x, |part| Ok(cx.b.slice(part, rows, &Expr::int(0), count, 1)?))
}

/// Nothing, where a call wants no vectors.
fn absent(cx: &mut Context, dtype: DType) -> Result<ValueId, RuleError> {
    let none = cx.b.full(0.0, dtype, &[Expr::int(0)]);
    cx.join(Parts { re: none, im: none })
}

fn results(values: impl IntoIterator<Item = ValueId>) -> Outputs {
    Outputs::Many(values.into_iter().map(Some).collect())
}

pub(crate) fn qr(cx: &mut Context, a: &Args) -> Rule {
    let x = parts(cx, a, "A")?;
    let (_, m, n) = sides(cx, x.re)?;
    let mode = a.str_or("mode", "reduced")?;
    let all = reduced(cx, x, Form::Triangular)?;
    let size = if mode == "complete" { m } else { cx.b.smaller(&m, &n) };
    let r = first_rows(cx, all.middle, &size)?;
    let r = each(r, |part| super::super::linalg::solve::part(cx, part, Relation::Ge, false))?;
    let q = match mode {
        "r" => absent(cx, cx.b.dtype(x.re))?,
        _ => {
            let q = first_columns(cx, all.left, &size)?;
            cx.join(q)?
        }
    };
    Ok(results([q, cx.join(r)?]))
}

/// Both triangles of a Hermitian matrix of which one is given.
fn hermitian(cx: &mut Context, x: Parts, upper: bool) -> Result<Parts, RuleError> {
    let (_, m, n) = sides(cx, x.re)?;
    let distance = cx.b.index(&Expr::axis(1) - &Expr::axis(0), &[m, n]);
    let own = if upper { Relation::Gt } else { Relation::Lt };
    let own = Formula::from(cx.with_number(own, distance, 0i64)?);
    let diagonal = Formula::from(cx.with_number(Relation::Eq, distance, 0i64)?);
    let turned = expression(adjoint(cx, x)?);
    let x = expression(x);
    let im = own.select(x.imaginary(), turned.imaginary());
    cx.parts_of(&Complex::new(own.select(&x.re, &turned.re), diagonal.select(0.0, im)))
}

/// Singular values with their vectors; of a matrix that a call says to be Hermitian, eigenvalues. Their magnitudes come second.
fn spectrum(cx: &mut Context, a: &Args, name: &str) -> Result<(Singular, ValueId), RuleError> {
    if a.bool_or("hermitian", false)? {
        let (values, vectors) = eigh(cx, a, name)?;
        let magnitudes = cx.apply([values], cx.b.dtype(values), |[values]| values.abs())?;
        return Ok((Singular { left: vectors, values, right: vectors }, magnitudes));
    }
    let x = parts(cx, a, name)?;
    let all = singular(cx, x, false)?;
    let values = all.values;
    Ok((all, values))
}

/// Eigenvalues, ascending, and eigenvectors of a Hermitian matrix.
fn eigh(cx: &mut Context, a: &Args, name: &str) -> Result<(ValueId, Parts), RuleError> {
    let x = parts(cx, a, name)?;
    let x = hermitian(cx, x, a.str_or("UPLO", "L")?.eq_ignore_ascii_case("U"))?;
    each(x, |part| all_finite(cx, part, "linalg.eigh").map(|()| part))?;
    let all = reduced(cx, x, Form::Tridiagonal)?;
    let real = cx.b.routine(Routine::Eigh, &[all.middle.re])?;
    let vectors = each(all.left, |part| Ok(cx.b.matmul(part, real[1])?))?;
    Ok((real[0], vectors))
}

pub(crate) fn eigh_of(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let (values, vectors) = eigh(cx, a, name)?;
    let vectors = match a.bool_or("compute_v", true)? {
        true => cx.join(vectors)?,
        false => absent(cx, cx.b.dtype(values))?,
    };
    Ok(results([values, vectors]))
}

pub(crate) fn eigvalsh(cx: &mut Context, a: &Args) -> Rule {
    Ok(eigh(cx, a, "self")?.0.into())
}

/// Singular values with as many vectors, as columns.
struct Singular {
    left: Parts,
    values: ValueId,
    right: Parts,
}

/// `full` completes the vectors of the longer side to a square.
fn singular(cx: &mut Context, x: Parts, full: bool) -> Result<Singular, RuleError> {
    each(x, |part| all_finite(cx, part, "linalg.svd").map(|()| part))?;
    if !is_tall(cx, x.re)? {
        let turned = adjoint(cx, x)?;
        let Singular { left, values, right } = singular(cx, turned, full)?;
        return Ok(Singular { left: right, values, right: left });
    }
    let (_, _, n) = sides(cx, x.re)?;
    let all = reduced(cx, x, Form::Bidiagonal)?;
    let square = first_rows(cx, all.middle, &n)?;
    let real = cx.b.routine(Routine::Svd, &[square.re])?;
    let first = first_columns(cx, all.left, &n)?;
    let mut left = each(first, |part| Ok(cx.b.matmul(part, real[0])?))?;
    if full {
        left = Parts {
            re: completed_by(cx, left.re, all.left.re)?,
            im: completed_by(cx, left.im, all.left.im)?,
        };
    }
    let right = each(all.right, |part| Ok(cx.b.matmul(part, real[2])?))?;
    Ok(Singular { left, values: real[1], right })
}

pub(crate) fn svd(cx: &mut Context, a: &Args, full: bool) -> Rule {
    let x = parts(cx, a, "A")?;
    let vectors = a.bool_or("compute_uv", true)?;
    let all = singular(cx, x, vectors && a.bool_or("full_matrices", full)?)?;
    if !vectors {
        let none = absent(cx, cx.b.dtype(all.values))?;
        return Ok(results([none, all.values, none]));
    }
    let turned = adjoint(cx, all.right)?;
    Ok(results([cx.join(all.left)?, all.values, cx.join(turned)?]))
}

/// Vectors of both sides as columns.
pub(crate) fn both_vectors(cx: &mut Context, a: &Args) -> Rule {
    let x = parts(cx, a, "self")?;
    let all = singular(cx, x, !a.bool_or("some", true)?)?;
    Ok(results([cx.join(all.left)?, all.values, cx.join(all.right)?]))
}

pub(crate) fn svdvals(cx: &mut Context, a: &Args) -> Rule {
    let x = parts(cx, a, "A")?;
    Ok(singular(cx, x, false)?.values.into())
}

/// The inverse that is left where singular values vanish.
pub(crate) fn pseudo_inverse(cx: &mut Context, a: &Args, names: [&str; 2]) -> Rule {
    let x = parts(cx, a, "self")?;
    let (all, magnitudes) = spectrum(cx, a, "self")?;
    let inverses =
        super::super::linalg::orthogonal::inverted_values(cx, a, [all.values, magnitudes], x.re, names)?;
    let rank = cx.b.rank(inverses);
    let rows = cx.b.unsqueeze(inverses, rank - 1)?;
    let scaled = each(all.right, |part| cx.mul(part, rows))?;
    let turned = adjoint(cx, all.left)?;
    let inverse = product(cx, scaled, turned)?;
    Ok(cx.join(inverse)?.into())
}

/// General eigenvalues. Of the real matrix twice as large they are those of the matrix and their conjugates; that
/// matrix is moved along the imaginary axis until all of its own are above the real one, which tells the two apart.
fn eig_parts(cx: &mut Context, a: &Args) -> Result<(Parts, Parts), RuleError> {
    let x = parts(cx, a, "self")?;
    each(x, |part| all_finite(cx, part, "linalg.eig").map(|()| part))?;
    let (leading, _, n) = sides(cx, x.re)?;
    let rank = leading.len() + 2;
    let dtype = cx.b.dtype(x.re);
    let squares = cx.apply([x.re, x.im], dtype, |[re, im]| re.square() + im.square())?;
    let squares = cx.sum(squares, &[rank - 2, rank - 1], true)?;
    // No eigenvalue is larger than the root of the sum of squares.
    let shift =
        cx.apply([squares], dtype, |[squares]| squares.equals(0.0).select(1.0, squares.sqrt() * 1.25))?;
    let ones = identity(cx, dtype, &leading, &n)?;
    let im = cx.apply([x.im, ones.re, shift], dtype, |[im, one, shift]| im + one * shift)?;
    let doubled = interleaved(cx, Parts { re: x.re, im })?;
    let all = cx.b.routine(Routine::Eig, &[doubled])?;
    let (values, vectors) = above(cx, all[0], all[1], &n)?;
    let shift = cx.b.squeeze(shift, &[rank - 1])?;
    let values = Parts { re: values.re, im: cx.sub(values.im, shift)? };
    // A vector v is there as v above -iv.
    let (re, im) = (alternating(cx, vectors.re, rank - 2)?, alternating(cx, vectors.im, rank - 2)?);
    let [first, second] = [0, 1].map(|k| expression(Parts { re: re[k], im: im[k] }));
    let vector = first.plus(&Complex::new(-&second.imaginary(), second.re));
    let vectors = cx.parts_of(&vector)?;
    let squares = cx.apply([vectors.re, vectors.im], dtype, |[re, im]| re.square() + im.square())?;
    let squares = cx.sum(squares, &[rank - 2], true)?;
    let vectors =
        each(vectors, |part| cx.apply([part, squares], dtype, |[part, squares]| part / squares.sqrt()))?;
    Ok((values, vectors))
}

/// Of twice as many eigenvalues and vectors those whose imaginary part is positive, as many as `n`.
fn above(cx: &mut Context, values: ValueId, vectors: ValueId, n: &Expr) -> Result<(Parts, Parts), RuleError> {
    let (values, vectors) = (cx.split(values)?, cx.split(vectors)?);
    let last = cx.b.rank(values.im) - 1;
    let is_above = cx.with_number(Relation::Gt, values.im, 0.0)?;
    let is_above = cx.b.cast(is_above, DType::I64);
    let (_, order) = cx.b.sort(is_above, last, true)?;
    let order = cx.b.slice(order, last, &Expr::int(0), n, 1)?;
    let values = each(values, |part| gather_along(cx, part, last, order))?;
    let mut shape = cx.b.shape(vectors.re);
    shape[last + 1] = n.clone();
    let order = cx.b.unsqueeze(order, last)?;
    let order = cx.b.expand(order, &shape)?;
    Ok((values, each(vectors, |part| gather_along(cx, part, last + 1, order))?))
}

pub(crate) fn eig(cx: &mut Context, a: &Args) -> Rule {
    let (values, vectors) = eig_parts(cx, a)?;
    Ok(results([cx.join(values)?, cx.join(vectors)?]))
}

pub(crate) fn eigvals(cx: &mut Context, a: &Args) -> Rule {
    let (values, _) = eig_parts(cx, a)?;
    Ok(cx.join(values)?.into())
}

/// The norm of the matrices of two axes: of singular values, or of magnitudes.
pub(crate) fn matrix_norm(cx: &mut Context, a: &Args) -> Rule {
    let name = if a.has("self") { "self" } else { "A" };
    let (x, keep) = (cx.split(a.tensor(name)?)?, a.bool_or("keepdim", false)?);
    let rank = cx.b.rank(x.re);
    let axes = Context::axes(&a.ints_or("dim", &[-2, -1])?, rank)?;
    let [rows, columns] = axes.as_slice() else {
        return Err(RuleError::Malformed("a matrix norm is over two axes".to_owned()));
    };
    let order = order_of(a, "ord", "fro")?;
    if !matches!(order.as_str(), "nuc" | "2" | "-2") {
        let sizes = magnitudes(cx, x)?;
        return Ok(of_matrix(cx, sizes, &[*rows, *columns], &order, keep)?.into());
    }
    let mut places: Vec<usize> = (0..rank).filter(|axis| !axes.contains(axis)).collect();
    places.extend([*rows, *columns]);
    let moved = each(x, |part| Ok(cx.b.permute(part, &places)?))?;
    let norm = singular_norm(cx, moved, &order)?;
    if !keep {
        return Ok(norm.into());
    }
    let mut shape = cx.b.shape(x.re);
    axes.iter().for_each(|axis| shape[*axis] = Expr::int(1));
    Ok(cx.b.reshape(norm, &shape)?.into())
}

/// A norm of the last two axes.
fn norm_by(cx: &mut Context, x: Parts, order: &str) -> Result<ValueId, RuleError> {
    if order == "nuc" {
        return singular_norm(cx, x, order);
    }
    let rank = cx.b.rank(x.re);
    let sizes = magnitudes(cx, x)?;
    of_matrix(cx, sizes, &[rank - 2, rank - 1], order, false)
}

fn magnitudes(cx: &mut Context, x: Parts) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x.re);
    cx.formula(dtype, &expression(x).magnitude())
}

fn singular_norm(cx: &mut Context, x: Parts, order: &str) -> Result<ValueId, RuleError> {
    let values = singular(cx, x, false)?.values;
    let last = cx.b.rank(values) - 1;
    Ok(match order {
        "nuc" => cx.sum(values, &[last], false)?,
        "2" => cx.b.reduce(ReduceOp::Max, values, &[last], false)?,
        _ => cx.b.reduce(ReduceOp::Min, values, &[last], false)?,
    })
}

/// A norm of a matrix where an order is given and there are two axes, else one of a vector of magnitudes.
pub(crate) fn norm(cx: &mut Context, a: &Args) -> Rule {
    let x = cx.split(a.tensor("self")?)?;
    let rank = cx.b.rank(x.re);
    let axes = if a.has("dim") { Context::axes(&a.ints("dim")?, rank)? } else { (0..rank).collect() };
    if a.has("ord") && axes.len() == 2 {
        return matrix_norm(cx, a);
    }
    let sizes = magnitudes(cx, x)?;
    let order = a.float_or("ord", 2.0)?;
    Ok(cx.vector_norm(sizes, order, &axes, a.bool_or("keepdim", false)?)?.into())
}

/// How many singular values count.
pub(crate) fn rank(cx: &mut Context, a: &Args) -> Rule {
    let name = if a.has("input") { "input" } else { "self" };
    let x = parts(cx, a, name)?;
    let (_, magnitudes) = spectrum(cx, a, name)?;
    let names = if a.target().contains("atol_rtol") { ["atol", "rtol"] } else { ["tol", "none"] };
    Ok(counted(cx, a, magnitudes, x.re, names)?.into())
}

/// The largest singular value over the smallest, or a norm of the matrix times that of its inverse.
pub(crate) fn condition(cx: &mut Context, a: &Args) -> Rule {
    let x = parts(cx, a, "self")?;
    if let Some(zeros) = condition_of_nothing(cx, x.re) {
        return Ok(zeros.into());
    }
    let order = order_of(a, "p", "2")?;
    if order != "2" && order != "-2" {
        let (inverse, info) = inverse_parts(cx, x)?;
        let norms = [norm_by(cx, x, &order)?, norm_by(cx, inverse, &order)?];
        return condition_of(cx, norms, info);
    }
    let (most, least) = (singular_norm(cx, x, "2")?, singular_norm(cx, x, "-2")?);
    Ok(if order == "2" { cx.div(most, least)? } else { cx.div(least, most)? }.into())
}
