//! LU factors of complex matrices by elimination with pivots, as LAPACK's `zgetrf` chooses them, and determinants.

use super::super::gather::gather_along;
use super::super::linalg::solve::{checked, demand, diagonal_and_sign, sides};
use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::matrices::{adjoint, parts};
use super::parts::{Complex, Parts};
use super::products::{of_all, quotient_by};
use super::reflections::{column, each, of};
use crate::dtype::DType;
use crate::graph::steps::repeat;
use crate::graph::{ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

/// L below the diagonal and U, the row from 1 on that each step exchanged with its own, and 0 or the number of the first pivot
/// that is zero.
pub(crate) struct Factors {
    pub(crate) both: Parts,
    pub(crate) pivots: ValueId,
    pub(crate) info: ValueId,
}

/// Rows `first` and `second` of each matrix (`[..., 1, 1]`) exchanged.
fn exchanged(cx: &mut Context, x: Parts, first: ValueId, second: ValueId) -> Result<Parts, RuleError> {
    let shape = cx.b.shape(x.re);
    let rows = shape.len() - 2;
    let row = cx.b.index(Expr::axis(rows), &shape);
    let [row, first, second] = [row, first, second].map(Formula::from);
    let from = row.equals(&first).select(&second, row.equals(&second).select(&first, &row));
    let from = cx.formula(DType::I64, &from)?;
    let from = cx.b.expand(from, &shape)?;
    gathered(cx, x, rows, from)
}

/// `torch.gather` of both parts.
pub(crate) fn gathered(cx: &mut Context, x: Parts, axis: usize, from: ValueId) -> Result<Parts, RuleError> {
    each(x, |part| gather_along(cx, part, axis, from))
}

/// Eliminates column `step` below its row.
fn eliminated(cx: &mut Context, x: Parts, step: ValueId) -> Result<(Parts, Parts), RuleError> {
    let shape = cx.b.shape(x.re);
    let rank = shape.len();
    let own = column(cx, x, step)?;
    let turned = adjoint(cx, x)?;
    let row = column(cx, turned, step)?;
    let row = adjoint(cx, row)?;
    let pivot = column(cx, row, step)?;
    let [own, row, divisor, x] =
        [own, row, pivot, x].map(|part| Complex::new(part.re.into(), part.im.into()));
    let is_zero = divisor.is_zero();
    let safe = Complex::new(is_zero.select(1.0, &divisor.re), divisor.imaginary());
    let factor = own.over(&safe);
    let rest = x.plus(&factor.times(&row).negated());
    let step = Formula::from(step);
    let below = Formula::from(cx.b.index(Expr::axis(rank - 2), &shape)).gt(&step);
    let place = Formula::from(cx.b.index(Expr::axis(rank - 1), &shape));
    let (behind, here) = (below.and(place.gt(&step)), below.and(place.equals(&step)));
    let chosen =
        |rest: &Formula, factor: &Formula, own: &Formula| behind.select(rest, here.select(factor, own));
    let re = chosen(&rest.re, &factor.re, &x.re);
    let im = chosen(&rest.imaginary(), &factor.imaginary(), &x.imaginary());
    let next = Parts { re: cx.formula(DType::F64, &re)?, im: cx.formula(DType::F64, &im)? };
    Ok((next, pivot))
}

/// The row, from `step` on, of the largest element in column `step` (`[..., 1, 1]`).
fn pivot_row(cx: &mut Context, x: Parts, step: ValueId) -> Result<ValueId, RuleError> {
    let own = column(cx, x, step)?;
    let rank = cx.b.rank(own.re);
    let row = cx.b.index(Expr::axis(rank - 2), &cx.b.shape(own.re));
    let open = Formula::from(cx.binary(Relation::Ge, row, step)?);
    let dtype = cx.b.dtype(own.re);
    let size = cx.apply([own.re, own.im], dtype, |[re, im]| open.select(re.abs() + im.abs(), -1.0))?;
    Ok(cx.b.reduce(ReduceOp::ArgMax, size, &[rank - 2], true)?)
}

fn factors(cx: &mut Context, x: Parts) -> Result<Factors, RuleError> {
    let (leading, m, n) = sides(cx, x.re)?;
    let count = cx.b.smaller(&m, &n);
    let pivots = cx.b.full(0i64, DType::I64, &[leading.clone(), vec![count.clone()]].concat());
    let info = cx.b.full(0i64, DType::I64, &leading);
    let steps = cx.b.index(count, &[]);
    let ends = repeat(cx, "lu", steps, &[x.re, x.im, pivots, info], &[], &mut |cx, step, carried, _| {
        let (x, pivots, info) = (of(carried, 0), carried[2], carried[3]);
        let rank = cx.b.rank(x.re);
        let row = pivot_row(cx, x, step)?;
        let x = exchanged(cx, x, step, row)?;
        let (x, pivot) = eliminated(cx, x, step)?;
        let place = cx.b.index(Expr::axis(rank - 2), &cx.b.shape(pivots));
        let row = cx.b.squeeze(row, &[rank - 1])?;
        let pivots = cx.apply([place, step, row, pivots], DType::I64, |[place, step, row, pivots]| {
            place.equals(step).select(row + 1.0, pivots)
        })?;
        let pivot = each(pivot, |part| Ok(cx.b.squeeze(part, &[rank - 2, rank - 1])?))?;
        let is_zero = Complex::new(pivot.re.into(), pivot.im.into()).is_zero();
        let is_zero = cx.formula(DType::F64, &is_zero)?;
        let info = cx.apply([is_zero, info, step], DType::I64, |[is_zero, info, step]| {
            is_zero.differs(0.0).and(info.equals(0.0)).select(step + 1.0, &info)
        })?;
        Ok(vec![x.re, x.im, pivots, info])
    })?;
    Ok(Factors { both: of(&ends, 0), pivots: ends[2], info: ends[3] })
}

/// Factors, pivots and `info` as PyTorch has them.
fn results(cx: &mut Context, all: &Factors) -> Result<[Option<ValueId>; 3], RuleError> {
    let both = cx.join(all.both)?;
    let (pivots, info) = (cx.b.cast(all.pivots, DType::I32), cx.b.cast(all.info, DType::I32));
    Ok([Some(both), Some(pivots), Some(info)])
}

pub(crate) fn factors_of(cx: &mut Context, a: &Args, name: &str) -> Result<Factors, RuleError> {
    if !a.bool_or("pivot", true)? {
        return Err(RuleError::unsupported("a factorisation without pivots"));
    }
    let x = parts(cx, a, name)?;
    factors(cx, x)
}

pub(crate) fn factor_ex(cx: &mut Context, a: &Args) -> Rule {
    let all = factors_of(cx, a, "A")?;
    checked(cx, a, all.info)?;
    Ok(Outputs::Many(results(cx, &all)?.to_vec()))
}

pub(crate) fn factor(cx: &mut Context, a: &Args) -> Rule {
    let all = factors_of(cx, a, "A")?;
    demand(cx, all.info, "torch.linalg.lu_factor: a pivot is zero")?;
    Ok(Outputs::Many(results(cx, &all)?[..2].to_vec()))
}

/// The elements on the diagonal of U, the sign of the exchanges, and the factors.
fn diagonal(cx: &mut Context, a: &Args, name: &str) -> Result<(Parts, ValueId, Factors), RuleError> {
    let all = factors_of(cx, a, name)?;
    let [re, sign] = diagonal_and_sign(cx, all.both.re, all.pivots)?;
    let [im, _] = diagonal_and_sign(cx, all.both.im, all.pivots)?;
    Ok((Parts { re, im }, sign, all))
}

fn signed(cx: &mut Context, x: Parts, sign: ValueId) -> Result<ValueId, RuleError> {
    let x = each(x, |part| cx.mul(part, sign))?;
    cx.join(x)
}

pub(crate) fn determinant(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let (diagonal, sign, all) = diagonal(cx, a, name)?;
    let axis = cx.b.rank(diagonal.re) - 1;
    let product = of_all(cx, diagonal, axis, false)?;
    let result = signed(cx, product, sign)?;
    if !a.target().starts_with("aten._") {
        return Ok(result.into());
    }
    let [both, pivots, _] = results(cx, &all)?;
    Ok(Outputs::Many(vec![Some(result), both, pivots]))
}

/// The direction of the determinant, and the logarithm of its magnitude.
pub(crate) fn log_determinant(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let (diagonal, sign, all) = diagonal(cx, a, name)?;
    let axis = cx.b.rank(diagonal.re) - 1;
    let dtype = cx.b.dtype(diagonal.re);
    let sizes = Complex::new(diagonal.re.into(), diagonal.im.into()).magnitude();
    let sizes = cx.formula(dtype, &sizes)?;
    let units = quotient_by(cx, diagonal, sizes)?;
    let direction = of_all(cx, units, axis, false)?;
    let logs = cx.apply([sizes], dtype, |[sizes]| sizes.log())?;
    let log = cx.sum(logs, &[axis], false)?;
    let direction = signed(cx, direction, sign)?;
    if a.target() == "aten.logdet.default" {
        return whole_log(cx, direction, log);
    }
    if !a.target().starts_with("aten._") {
        return Ok(Outputs::Many(vec![Some(direction), Some(log)]));
    }
    let [both, pivots, _] = results(cx, &all)?;
    Ok(Outputs::Many(vec![Some(direction), Some(log), both, pivots]))
}

/// The logarithm of the determinant, whose direction and magnitude are known.
fn whole_log(cx: &mut Context, direction: ValueId, log: ValueId) -> Rule {
    let parts = cx.split(direction)?;
    let direction = Complex::new(parts.re.into(), parts.im.into()).log();
    let dtype = cx.b.dtype(log);
    let re = cx.formula(dtype, &(direction.re.clone() + Formula::from(log)))?;
    let im = cx.formula(dtype, &direction.imaginary())?;
    Ok(cx.join(Parts { re, im })?.into())
}
