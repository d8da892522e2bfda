//! Orthogonal factorisations, eigenvalues and singular values, and what is measured or inverted with them.
//!
//! Vectors are unique only up to a sign, and those of equal values up to a rotation; they are not always PyTorch's.

use super::super::registry::rules;
use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::solve::{adjoint, part, sides};
use crate::dtype::DType;
use crate::graph::{BinaryOp, ReduceOp, Relation, Routine, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;
type Value = Result<ValueId, RuleError>;

rules! {
    pure "aten.linalg_qr.default" => qr,
    pure "aten.geqrf.default" => |cx, a| {
        let x = a.tensor("self")?;
        let all = cx.b.routine(Routine::Qr, &[x])?;
        Ok(pair(all[0], all[1]))
    },
    pure "aten.linalg_householder_product.default" => |cx, a| {
        let (x, tau) = (a.tensor("input")?, a.tensor("tau")?);
        Ok(reflections(cx, x, tau, false)?.into())
    },
    pure "aten.orgqr.default" => |cx, a| {
        let (x, tau) = (a.tensor("self")?, a.tensor("input2")?);
        Ok(reflections(cx, x, tau, false)?.into())
    },
    pure "aten.ormqr.default" => |cx, a| {
        let (x, tau, other) = (a.tensor("self")?, a.tensor("input2")?, a.tensor("input3")?);
        let q = reflections(cx, x, tau, true)?;
        let q = if a.bool_or("transpose", false)? { adjoint(cx, q)? } else { q };
        Ok(if a.bool_or("left", true)? { cx.b.matmul(q, other)? } else { cx.b.matmul(other, q)? }.into())
    },
    pure "aten.linalg_eigh.default" => |cx, a| { let (w, v) = eigh_of(cx, a, "self")?; Ok(pair(w, v)) },
    pure "aten._linalg_eigh.default" => |cx, a| { let (w, v) = eigh_of(cx, a, "A")?; Ok(pair(w, v)) },
    pure "aten.linalg_eigvalsh.default" => |cx, a| Ok(eigh_of(cx, a, "self")?.0.into()),
    pure "aten.linalg_svd.default" => |cx, a| singular_vectors(cx, a, true),
    pure "aten._linalg_svd.default" => |cx, a| singular_vectors(cx, a, false),
    pure "aten.linalg_svdvals.default" => |cx, a| { let x = a.tensor("A")?; Ok(singular_of_any(cx, x)?.values.into()) },
    pure "aten.svd.default" => |cx, a| {
        let x = a.tensor("self")?;
        let all = singular(cx, x)?;
        let (u, v) = match a.bool_or("some", true)? {
            true => (all.left, all.right),
            false => (completed(cx, all.left)?, completed(cx, all.right)?),
        };
        Ok(Outputs::Many(vec![Some(u), Some(all.values), Some(v)]))
    },
    pure "aten.linalg_pinv.atol_rtol_tensor" => |cx, a| pseudo_inverse(cx, a, "atol", "rtol"),
    pure "aten.linalg_pinv.atol_rtol_float" => |cx, a| pseudo_inverse(cx, a, "atol", "rtol"),
    pure "aten.linalg_pinv.default" => |cx, a| pseudo_inverse(cx, a, "none", "rcond"),
    pure "aten.linalg_pinv.rcond_tensor" => |cx, a| pseudo_inverse(cx, a, "none", "rcond"),
    pure "aten.pinverse.default" => |cx, a| pseudo_inverse(cx, a, "none", "rcond"),
    pure "aten.linalg_matrix_rank.atol_rtol_tensor" => |cx, a| rank(cx, a, "atol", "rtol"),
    pure "aten.linalg_matrix_rank.atol_rtol_float" => |cx, a| rank(cx, a, "atol", "rtol"),
    pure "aten.linalg_matrix_rank.default" => |cx, a| rank(cx, a, "tol", "none"),
    pure "aten.linalg_matrix_rank.tol_tensor" => |cx, a| rank(cx, a, "tol", "none"),
    pure "aten.linalg_cond.default" => condition,
    pure "aten.linalg_cond.p_str" => condition,
}

fn pair(first: ValueId, second: ValueId) -> Outputs {
    Outputs::Many(vec![Some(first), Some(second)])
}

/// Whether there are at least as many rows as columns, which decides what is computed.
pub(crate) fn is_tall(cx: &Context, x: ValueId) -> Result<bool, RuleError> {
    let (_, m, n) = sides(cx, x)?;
    orientation(cx, &m, &n).ok_or_else(|| {
        RuleError::unsupported(format!(
            "which of {m} and {n} is larger must be known when the model is compiled"
        ))
    })
}

/// Whether `m >= n`, if that or the opposite is known.
fn orientation(cx: &Context, m: &Expr, n: &Expr) -> Option<bool> {
    let surplus = (m - n).interval(cx.b.ranges());
    (surplus.min >= 0 || surplus.max <= 0).then_some(surplus.min >= 0)
}

/// Rows of zeros below, until there are at least as many rows as columns.
fn heightened(cx: &mut Context, x: ValueId) -> Value {
    let (_, m, n) = sides(cx, x)?;
    let mut amounts = vec![(Expr::int(0), Expr::int(0)); cx.b.rank(x)];
    let rows = amounts.len() - 2;
    amounts[rows].1 = &cx.b.larger(&m, &n) - &m;
    Ok(cx.b.pad(x, &amounts, 0.0)?)
}

/// The first rows and columns of a matrix.
fn corner(cx: &mut Context, x: ValueId, rows: &Expr, columns: &Expr) -> Value {
    let last = cx.b.rank(x) - 1;
    let x = cx.b.slice(x, last - 1, &Expr::int(0), rows, 1)?;
    Ok(cx.b.slice(x, last, &Expr::int(0), columns, 1)?)
}

/// The first so many columns.
fn columns(cx: &mut Context, x: ValueId, count: &Expr) -> Value {
    let last = cx.b.rank(x) - 1;
    Ok(cx.b.slice(x, last, &Expr::int(0), count, 1)?)
}

/// Zeros behind the last axis, up to `size`.
fn widened(cx: &mut Context, x: ValueId, size: &Expr) -> Value {
    let mut amounts = vec![(Expr::int(0), Expr::int(0)); cx.b.rank(x)];
    let last = amounts.len() - 1;
    amounts[last].1 = size - &cx.b.shape(x)[last];
    Ok(cx.b.pad(x, &amounts, 0.0)?)
}

/// The product of reflections, its first columns or all of them.
fn reflections(cx: &mut Context, x: ValueId, tau: ValueId, whole: bool) -> Value {
    let (_, m, n) = sides(cx, x)?;
    let size = if whole { m } else { n };
    let (x, tau) = (widened(cx, x, &size)?, widened(cx, tau, &size)?);
    Ok(cx.b.routine(Routine::Reflections, &[x, tau])?[0])
}

fn qr(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("A")?;
    let mode = a.str_or("mode", "reduced")?;
    let (leading, m, n) = sides(cx, x)?;
    if mode != "complete" && orientation(cx, &m, &n).is_none() {
        return qr_of_any(cx, x, mode);
    }
    let tall = is_tall(cx, x)?;
    let all = cx.b.routine(Routine::Qr, &[x])?;
    let complete = mode == "complete" && tall;
    let upper = match complete {
        true => all[0],
        // As many rows as the shorter side has.
        false => cx.b.slice(all[0], leading.len(), &Expr::int(0), if tall { &n } else { &m }, 1)?,
    };
    let r = part(cx, upper, Relation::Ge, false)?;
    let q = if mode == "r" {
        cx.b.full(0.0, cx.b.dtype(x), &[Expr::int(0)])
    } else {
        let vectors = if tall { all[0] } else { columns(cx, all[0], &m)? };
        reflections(cx, vectors, all[1], complete)?
    };
    Ok(pair(q, r))
}

/// The same where it is not known which side is longer: rows of zeros change neither factor.
fn qr_of_any(cx: &mut Context, x: ValueId, mode: &str) -> Rule {
    let (_, m, n) = sides(cx, x)?;
    let count = cx.b.smaller(&m, &n);
    let tall = heightened(cx, x)?;
    let all = cx.b.routine(Routine::Qr, &[tall])?;
    let upper = corner(cx, all[0], &count, &n)?;
    let r = part(cx, upper, Relation::Ge, false)?;
    let q = if mode == "r" {
        cx.b.full(0.0, cx.b.dtype(x), &[Expr::int(0)])
    } else {
        let vectors = reflections(cx, all[0], all[1], false)?;
        corner(cx, vectors, &m, &count)?
    };
    Ok(pair(q, r))
}

/// The run fails where an element is not finite, as PyTorch's iterations do.
pub(crate) fn all_finite(cx: &mut Context, x: ValueId, operator: &str) -> Result<(), RuleError> {
    let dtype = cx.b.dtype(x);
    let finite = cx.apply([x], dtype, |[x]| x.is_finite())?;
    cx.assert_all(finite, &format!("{operator}: the matrix holds numbers that are not finite"))
}

fn eigh(cx: &mut Context, x: ValueId, upper: bool) -> Result<(ValueId, ValueId), RuleError> {
    let x = if upper { adjoint(cx, x)? } else { x };
    // The other triangle is never read.
    let read = part(cx, x, Relation::Le, false)?;
    all_finite(cx, read, "linalg.eigh")?;
    let all = cx.b.routine(Routine::Eigh, &[x])?;
    Ok((all[0], all[1]))
}

fn eigh_of(cx: &mut Context, a: &Args, name: &str) -> Result<(ValueId, ValueId), RuleError> {
    let upper = a.str_or("UPLO", "L")?.eq_ignore_ascii_case("U");
    let (values, vectors) = eigh(cx, a.tensor(name)?, upper)?;
    Ok((values, wanted(cx, a, vectors)?))
}

/// Vectors, or an empty tensor where the call wants none.
fn wanted(cx: &mut Context, a: &Args, vectors: ValueId) -> Value {
    if a.bool_or("compute_v", true)? && a.bool_or("compute_uv", true)? {
        return Ok(vectors);
    }
    Ok(cx.b.full(0.0, cx.b.dtype(vectors), &[Expr::int(0)]))
}

/// Eigenvalues and eigenvectors of general matrices, as pairs of real and imaginary parts.
pub(crate) fn eig(cx: &mut Context, a: &Args) -> Rule {
    if a.is_complex("self") {
        return super::super::complex::factors::eig(cx, a);
    }
    let all = eig_parts(cx, a)?;
    Ok(pair(all[0], all[1]))
}

pub(crate) fn eigvals(cx: &mut Context, a: &Args) -> Rule {
    if a.is_complex("self") {
        return super::super::complex::factors::eigvals(cx, a);
    }
    Ok(eig_parts(cx, a)?[0].into())
}

fn eig_parts(cx: &mut Context, a: &Args) -> Result<Vec<ValueId>, RuleError> {
    let x = a.tensor("self")?;
    all_finite(cx, x, "linalg.eig")?;
    Ok(cx.b.routine(Routine::Eig, &[x])?)
}

struct Singular {
    /// Columns are vectors, as many as there are values.
    left: ValueId,
    values: ValueId,
    right: ValueId,
}

fn singular(cx: &mut Context, x: ValueId) -> Result<Singular, RuleError> {
    all_finite(cx, x, "linalg.svd")?;
    if is_tall(cx, x)? {
        let all = cx.b.routine(Routine::Svd, &[x])?;
        return Ok(Singular { left: all[0], values: all[1], right: all[2] });
    }
    let turned = adjoint(cx, x)?;
    let all = cx.b.routine(Routine::Svd, &[turned])?;
    Ok(Singular { left: all[2], values: all[1], right: all[0] })
}

/// The same where it is not known which side is longer: rows of zeros add at most values of zero, whose vectors mean nothing.
fn singular_of_any(cx: &mut Context, x: ValueId) -> Result<Singular, RuleError> {
    let (leading, m, n) = sides(cx, x)?;
    if orientation(cx, &m, &n).is_some() {
        return singular(cx, x);
    }
    all_finite(cx, x, "linalg.svd")?;
    let count = cx.b.smaller(&m, &n);
    let tall = heightened(cx, x)?;
    let all = cx.b.routine(Routine::Svd, &[tall])?;
    Ok(Singular {
        left: corner(cx, all[0], &m, &count)?,
        values: cx.b.slice(all[1], leading.len(), &Expr::int(0), &count, 1)?,
        right: corner(cx, all[2], &n, &count)?,
    })
}

/// Orthonormal columns with as many others as make a square of them.
fn completed(cx: &mut Context, x: ValueId) -> Value {
    let (_, m, n) = sides(cx, x)?;
    if cx.b.same_size(&m, &n) {
        return Ok(x);
    }
    let all = cx.b.routine(Routine::Qr, &[x])?;
    let q = reflections(cx, all[0], all[1], true)?;
    completed_by(cx, x, q)
}

/// Columns, and behind them those of a square that are behind as many.
pub(crate) fn completed_by(cx: &mut Context, x: ValueId, square: ValueId) -> Value {
    let (leading, m, n) = sides(cx, x)?;
    let others = cx.b.slice(square, leading.len() + 1, &n, &(&m - &n), 1)?;
    Ok(cx.b.cat(&[x, others], leading.len() + 1)?)
}

fn singular_vectors(cx: &mut Context, a: &Args, full: bool) -> Rule {
    let x = a.tensor("A")?;
    let Singular { mut left, values, mut right } = singular(cx, x)?;
    if a.bool_or("full_matrices", full)? && a.bool_or("compute_uv", true)? {
        (left, right) = (completed(cx, left)?, completed(cx, right)?);
    }
    let turned = adjoint(cx, right)?;
    let (left, turned) = (wanted(cx, a, left)?, wanted(cx, a, turned)?);
    Ok(Outputs::Many(vec![Some(left), Some(values), Some(turned)]))
}

/// From which size on a singular value counts: the larger of an absolute bound and of one relative to the largest value,
/// which is some units of rounding where neither is given.
fn threshold(cx: &mut Context, a: &Args, largest: ValueId, x: ValueId, names: [&str; 2]) -> Value {
    let dtype = cx.b.dtype(x);
    let (_, m, n) = sides(cx, x)?;
    let [absolute, relative] = names;
    let bound = |cx: &mut Context, name: &str| -> Result<Formula, RuleError> {
        let value = a.number(name)?.to_value(cx, dtype);
        let rank = cx.b.rank(value);
        Ok(Formula::from(if rank > 0 { cx.b.unsqueeze(value, rank)? } else { value }))
    };
    let unit = if dtype == DType::F64 { f64::EPSILON } else { f64::from(f32::EPSILON) };
    let relative = if a.has(relative) {
        bound(cx, relative)?
    } else if !a.has(absolute) {
        let size = cx.b.index(cx.b.larger(&m, &n), &[]);
        Formula::from(cx.b.cast(size, dtype)) * unit
    } else {
        // PyTorch takes the default beside an absolute bound of zero only; elsewhere none.
        match a.number(absolute)? {
            number if number.is(0.0) => {
                let size = cx.b.index(cx.b.larger(&m, &n), &[]);
                Formula::from(cx.b.cast(size, dtype)) * unit
            }
            _ => Formula::from(0.0),
        }
    };
    let relative = Formula::from(largest) * relative;
    let all = if a.has(absolute) { bound(cx, absolute)?.max(relative) } else { relative };
    cx.formula(dtype, &all)
}

/// Singular values with vectors of a matrix, or eigenvalues of a symmetric one, with their magnitudes.
fn spectrum(cx: &mut Context, a: &Args, x: ValueId) -> Result<(Singular, ValueId), RuleError> {
    if !a.bool_or("hermitian", false)? {
        let all = singular_of_any(cx, x)?;
        let values = all.values;
        return Ok((all, values));
    }
    let (values, vectors) = eigh(cx, x, false)?;
    let magnitudes = cx.apply([values], cx.b.dtype(values), |[values]| values.abs())?;
    Ok((Singular { left: vectors, values, right: vectors }, magnitudes))
}

/// The largest along the last axis, which stays; of nothing, zero.
fn largest(cx: &mut Context, magnitudes: ValueId) -> Value {
    let last = cx.b.rank(magnitudes) - 1;
    if cx.b.shape(magnitudes)[last].is(0) {
        return cx.sum(magnitudes, &[last], true);
    }
    Ok(cx.b.reduce(ReduceOp::Max, magnitudes, &[last], true)?)
}

/// The inverses of singular values, and zero where they do not count.
pub(crate) fn inverted_values(
    cx: &mut Context,
    a: &Args,
    [values, magnitudes]: [ValueId; 2],
    x: ValueId,
    names: [&str; 2],
) -> Value {
    let most = largest(cx, magnitudes)?;
    let bound = if a.target() == "aten.pinverse.default" && !a.has(names[1]) {
        cx.with_number(BinaryOp::Mul, most, 1e-15)?
    } else {
        threshold(cx, a, most, x, names)?
    };
    let dtype = cx.b.dtype(x);
    cx.apply([values, magnitudes, bound], dtype, |[values, size, bound]| {
        size.gt(bound).select(1.0 / &values, 0.0)
    })
}

fn pseudo_inverse(cx: &mut Context, a: &Args, absolute: &str, relative: &str) -> Rule {
    let x = a.tensor("self")?;
    let (all, magnitudes) = spectrum(cx, a, x)?;
    let inverses = inverted_values(cx, a, [all.values, magnitudes], x, [absolute, relative])?;
    let rank = cx.b.rank(inverses);
    let rows = cx.b.unsqueeze(inverses, rank - 1)?;
    let scaled = cx.mul(all.right, rows)?;
    let turned = adjoint(cx, all.left)?;
    Ok(cx.b.matmul(scaled, turned)?.into())
}

/// How many singular values count.
fn rank(cx: &mut Context, a: &Args, absolute: &str, relative: &str) -> Rule {
    let x = if a.has("input") { a.tensor("input")? } else { a.tensor("self")? };
    let (_, magnitudes) = spectrum(cx, a, x)?;
    Ok(counted(cx, a, magnitudes, x, [absolute, relative])?.into())
}

/// How many of the values along the last axis count.
pub(crate) fn counted(
    cx: &mut Context,
    a: &Args,
    magnitudes: ValueId,
    x: ValueId,
    names: [&str; 2],
) -> Value {
    let most = largest(cx, magnitudes)?;
    let bound = threshold(cx, a, most, x, names)?;
    let counts = cx.binary(Relation::Gt, magnitudes, bound)?;
    let counts = cx.b.cast(counts, DType::I64);
    let last = cx.b.rank(counts) - 1;
    cx.sum(counts, &[last], false)
}

impl Context {
    /// The largest singular value of the last two axes, the smallest, or the sum of all.
    pub(crate) fn singular_norm(&mut self, x: ValueId, order: &str) -> Result<ValueId, RuleError> {
        let values = singular_of_any(self, x)?.values;
        let last = self.b.rank(values) - 1;
        Ok(match order {
            "nuc" => self.sum(values, &[last], false)?,
            "2" => self.b.reduce(ReduceOp::Max, values, &[last], false)?,
            _ => self.b.reduce(ReduceOp::Min, values, &[last], false)?,
        })
    }
}

/// The largest singular value over the smallest, or a norm times that of the inverse.
fn condition(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    if let Some(zeros) = condition_of_nothing(cx, x) {
        return Ok(zeros.into());
    }
    let order = super::super::norm::order_of(a, "p", "2")?;
    if order == "2" || order == "-2" {
        let (most, least) = (cx.singular_norm(x, "2")?, cx.singular_norm(x, "-2")?);
        return Ok(if order == "2" { cx.div(most, least)? } else { cx.div(least, most)? }.into());
    }
    let rank = cx.b.rank(x);
    let axes = [rank - 2, rank - 1];
    let [lu, info] = super::solve::tried_inverse(cx, x)?;
    let norms = [
        super::super::norm::of_matrix(cx, x, &axes, &order, false)?,
        super::super::norm::of_matrix(cx, lu, &axes, &order, false)?,
    ];
    condition_of(cx, norms, info)
}

/// The condition of matrices without elements: 0, whatever the norm.
pub(crate) fn condition_of_nothing(cx: &mut Context, x: ValueId) -> Option<ValueId> {
    let ty = cx.b.ty(x).clone();
    let (batch, sides) = ty.shape.split_at(ty.shape.len().checked_sub(2)?);
    sides.iter().any(|side| side.is(0)).then(|| cx.b.full(0.0, ty.dtype, batch))
}

/// The condition by the norms of a matrix and of its inverse; one without an inverse has an infinite one.
pub(crate) fn condition_of(cx: &mut Context, [own, other]: [ValueId; 2], info: ValueId) -> Rule {
    let dtype = cx.b.dtype(own);
    let infinity = Scalar::highest(dtype).to_f64();
    let info = cx.b.cast(info, dtype);
    Ok(cx
        .apply([own, other, info], dtype, |[own, other, info]| {
            info.gt(0.0).or((&own * &other).is_nan()).select(infinity, own * other)
        })?
        .into())
}
