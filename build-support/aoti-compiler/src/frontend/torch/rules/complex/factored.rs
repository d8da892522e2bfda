//! What is computed with factors of complex matrices that a program has: products of reflections, and what LU factors solve.
//!
//! Factors are stored as LAPACK stores them, so that a program can compute them at one place and use them at another.

use super::super::linalg::solve::{self, all_pivots, row_exchanges, sides};
use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::lu::factors_of;
use super::matrices::{adjoint, any_parts, parts, triangular};
use super::parts::{Complex, Parts};
use super::reflections::{Reflection, column, each, expression, of, reflection};
use crate::dtype::DType;
use crate::graph::steps::repeat;
use crate::graph::{Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

// --- reflections -----------------------------------------------------------------------------------------------------

/// `Q X`, or `Q^H X`, where Q is the product of reflections as `geqrf` stores them.
fn turned_by(
    cx: &mut Context,
    (vectors, tau): (Parts, Parts),
    x: Parts,
    is_adjoint: bool,
) -> Result<Parts, RuleError> {
    let last = cx.b.rank(tau.re) - 1;
    let count = cx.b.index(cx.b.shape(tau.re)[last].clone(), &[]);
    let captured = [vectors.re, vectors.im, tau.re, tau.im, count];
    let ends = repeat(cx, "turned", count, &[x.re, x.im], &captured, &mut |cx, step, carried, captured| {
        let (vectors, tau, x) = (of(captured, 0), of(captured, 2), of(carried, 0));
        // The first reflection is the last that a vector meets, but for the adjoint.
        let from_end = cx.apply([captured[4], step], DType::I64, |[count, step]| count - step - 1.0)?;
        let number = if is_adjoint { step } else { from_end };
        let mut turn = stored(cx, vectors, tau, number)?;
        if !is_adjoint {
            // What is applied is the adjoint of a reflection, which differs by its factor alone.
            turn.tau = cx.parts_of(&expression(turn.tau).conjugate())?;
        }
        let x = turn.on_left(cx, x)?;
        Ok(vec![x.re, x.im])
    })?;
    Ok(of(&ends, 0))
}

/// Reflection `number`: its vector begins with a one on the diagonal, which is not stored.
fn stored(cx: &mut Context, vectors: Parts, tau: Parts, number: ValueId) -> Result<Reflection, RuleError> {
    let own = column(cx, vectors, number)?;
    let rank = cx.b.rank(own.re);
    let shape = cx.b.shape(own.re);
    let row = cx.b.index(Expr::axis(rank - 2), &shape);
    let (at, behind) = (cx.binary(Relation::Eq, row, number)?, cx.binary(Relation::Gt, row, number)?);
    let (at, behind) = (Formula::from(at), Formula::from(behind));
    let own = expression(own);
    let vector =
        Complex::new(at.select(1.0, behind.select(&own.re, 0.0)), behind.select(own.imaginary(), 0.0));
    let last = cx.b.rank(tau.re) - 1;
    let rows = each(tau, |part| Ok(cx.b.unsqueeze(part, last)?))?;
    Ok(Reflection { vector: cx.parts_of(&vector)?, tau: column(cx, rows, number)? })
}

/// R, and below it the vectors of reflections, and their factors.
pub(crate) fn geqrf(cx: &mut Context, a: &Args) -> Rule {
    let x = parts(cx, a, "self")?;
    let (leading, m, n) = sides(cx, x.re)?;
    let count = cx.b.smaller(&m, &n);
    let tau = cx.b.full(0.0, cx.b.dtype(x.re), &[leading, vec![count.clone()]].concat());
    let steps = cx.b.index(count, &[]);
    let ends = repeat(cx, "geqrf", steps, &[x.re, x.im, tau, tau], &[], &mut |cx, step, carried, _| {
        let (x, tau) = (of(carried, 0), of(carried, 2));
        let now = column(cx, x, step)?;
        let turn = reflection(cx, now, step)?;
        let after = turn.on_left(cx, x)?;
        let shape = cx.b.shape(x.re);
        let rank = shape.len();
        let [row, place] = [rank - 2, rank - 1].map(|axis| cx.b.index(Expr::axis(axis), &shape));
        let step_of = Formula::from(step);
        let (row, place) = (Formula::from(row), Formula::from(place));
        let is_done = place.lt(&step_of);
        let is_vector = place.equals(&step_of).and(row.gt(&step_of));
        let [before, after, vector] = [x, after, turn.vector].map(expression);
        let chosen = |before: &Formula, after: &Formula, vector: &Formula| {
            is_done.select(before, is_vector.select(vector, after))
        };
        let x = cx.parts_of(&Complex::new(
            chosen(&before.re, &after.re, &vector.re),
            chosen(&before.imaginary(), &after.imaginary(), &vector.imaginary()),
        ))?;
        let own = cx.b.rank(tau.re) - 1;
        let here = cx.b.index(Expr::axis(own), &cx.b.shape(tau.re));
        let here = Formula::from(cx.binary(Relation::Eq, here, step)?);
        let factor = each(turn.tau, |part| Ok(cx.b.squeeze(part, &[rank - 1])?))?;
        let (factor, tau) = (expression(factor), expression(tau));
        let tau = cx.parts_of(&Complex::new(
            here.select(&factor.re, &tau.re),
            here.select(factor.imaginary(), tau.imaginary()),
        ))?;
        Ok(vec![x.re, x.im, tau.re, tau.im])
    })?;
    let (x, tau) = (cx.join(of(&ends, 0))?, cx.join(of(&ends, 2))?);
    Ok(Outputs::Many(vec![Some(x), Some(tau)]))
}

/// The first columns of the product of reflections.
pub(crate) fn householder_product(cx: &mut Context, a: &Args, names: [&str; 2]) -> Rule {
    let (x, tau) = (parts(cx, a, names[0])?, any_parts(cx, a, names[1])?);
    let ty = cx.b.ty(x.re).clone();
    let re = cx.identity_matrix(ty.dtype, &ty.shape)?;
    let im = cx.b.full_like(0.0, re);
    let result = turned_by(cx, (x, tau), Parts { re, im }, false)?;
    Ok(cx.join(result)?.into())
}

/// Q X, Q^H X, X Q or X Q^H.
pub(crate) fn ormqr(cx: &mut Context, a: &Args) -> Rule {
    let factors = (parts(cx, a, "self")?, any_parts(cx, a, "input2")?);
    let x = parts(cx, a, "input3")?;
    let transpose = a.bool_or("transpose", false)?;
    if a.bool_or("left", true)? {
        let result = turned_by(cx, factors, x, transpose)?;
        return Ok(cx.join(result)?.into());
    }
    // X Q is the adjoint of Q^H X^H.
    let x = adjoint(cx, x)?;
    let result = turned_by(cx, factors, x, !transpose)?;
    let result = adjoint(cx, result)?;
    Ok(cx.join(result)?.into())
}

// --- LU factors ------------------------------------------------------------------------------------------------------

fn unpacked(cx: &mut Context, both: Parts, pivots: ValueId) -> Rule {
    let [p, re_l, re_u] = solve::unpacked(cx, both.re, pivots)?;
    let [_, im_l, im_u] = solve::unpacked(cx, both.im, pivots)?;
    // The ones on the diagonal of L are real.
    let im_l = solve::part(cx, im_l, Relation::Lt, false)?;
    let none = cx.b.full_like(0.0, p);
    let p = cx.join(Parts { re: p, im: none })?;
    let (l, u) = (cx.join(Parts { re: re_l, im: im_l })?, cx.join(Parts { re: re_u, im: im_u })?);
    Ok(Outputs::Many(vec![Some(p), Some(l), Some(u)]))
}

/// The permutation, L and U of a matrix.
pub(crate) fn lu(cx: &mut Context, a: &Args) -> Rule {
    let all = factors_of(cx, a, "A")?;
    unpacked(cx, all.both, all.pivots)
}

/// The same of factors that there are.
pub(crate) fn lu_unpack(cx: &mut Context, a: &Args) -> Rule {
    let (both, pivots) = (parts(cx, a, "LU_data")?, a.tensor("LU_pivots")?);
    let (_, rows, _) = sides(cx, both.re)?;
    cx.check_pivots(a, pivots, &rows, false)?;
    unpacked(cx, both, pivots)
}

/// X of A X = B, of A^H X = B, and the same with X on the left.
pub(crate) fn lu_solve(cx: &mut Context, a: &Args, names: [&str; 3]) -> Rule {
    let (both, pivots, b) = (parts(cx, a, names[0])?, a.tensor(names[1])?, parts(cx, a, names[2])?);
    let (left, is_adjoint) = (a.bool_or("left", true)?, a.bool_or("adjoint", false)?);
    let (_, rows, _) = sides(cx, both.re)?;
    cx.check_pivots(a, pivots, &rows, false)?;
    let b = if left { b } else { adjoint(cx, b)? };
    // From the right it is the adjoint that meets the unknown's.
    let x = if left != is_adjoint {
        let b = exchanged(cx, pivots, b, false)?;
        let y = triangular(cx, both, b, false, true)?;
        triangular(cx, both, y, true, false)?
    } else {
        let turned = adjoint(cx, both)?;
        let y = triangular(cx, turned, b, false, false)?;
        let x = triangular(cx, turned, y, true, true)?;
        exchanged(cx, pivots, x, true)?
    };
    let x = if left { x } else { adjoint(cx, x)? };
    Ok(cx.join(x)?.into())
}

/// Rows exchanged as the pivots say, or back.
pub(crate) fn exchanged(cx: &mut Context, pivots: ValueId, b: Parts, back: bool) -> Result<Parts, RuleError> {
    let (leading, m, _) = sides(cx, b.re)?;
    let pivots = all_pivots(cx, pivots, &m)?;
    let mut shape = leading;
    shape.push(m);
    let pivots = cx.b.expand(pivots, &shape)?;
    each(b, |part| row_exchanges(cx, pivots, part, back))
}

// --- triangles and powers ----------------------------------------------------------------------------------------------

/// X of A X = B with a triangular A, and A.
pub(crate) fn triangular_solve(cx: &mut Context, a: &Args) -> Rule {
    let (b, m) = (parts(cx, a, "self")?, parts(cx, a, "A")?);
    let (upper, unit) = (a.bool_or("upper", true)?, a.bool_or("unitriangular", false)?);
    let x = if a.bool_or("transpose", false)? {
        let turned = each(m, |part| solve::adjoint(cx, part))?;
        triangular(cx, turned, b, !upper, unit)?
    } else {
        triangular(cx, m, b, upper, unit)?
    };
    let (x, m) = (cx.join(x)?, cx.join(m)?);
    Ok(Outputs::Many(vec![Some(x), Some(m)]))
}

/// Powers of each element from 0 on.
pub(crate) fn vander(cx: &mut Context, a: &Args) -> Rule {
    let x = cx.split(a.tensor("x")?)?;
    let x = each(x, |part| cx.at_least_1d(part))?;
    let shape = super::super::matrices::powers_shape(cx, a, x.re)?;
    let last = shape.len() - 1;
    let is_first = cx.b.index(Expr::axis(last), &shape);
    let is_first = Formula::from(cx.with_number(Relation::Eq, is_first, 0i64)?);
    let x = each(x, |part| {
        let part = cx.b.unsqueeze(part, last)?;
        Ok(cx.b.expand(part, &shape)?)
    })?;
    let x = expression(x);
    let factors =
        cx.parts_of(&Complex::new(is_first.select(1.0, &x.re), is_first.select(0.0, x.imaginary())))?;
    let powers = super::products::products(cx, factors, last)?;
    Ok(cx.join(powers)?.into())
}
