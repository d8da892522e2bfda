//! Systems with a complex matrix that [`super::ldl`] has factored.
//!
//! LAPACK stores each column of L as it was before later pivots exchanged rows. Once they are exchanged, the matrix is
//! P L D L^T P^T, or the same with L^H, and each factor is met by itself.

use super::super::linalg::solve::{self, all_pivots, sides};
use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::factored::exchanged;
use super::ldl::{Block, chosen, conjugate_if};
use super::lu::gathered;
use super::matrices::{parts, triangular};
use super::parts::{Complex, Parts};
use super::reflections::{column, each, expression, of};
use crate::dtype::DType;
use crate::graph::steps::repeat;
use crate::graph::{Coord, Relation, ScanOp, ValueId};
use crate::symbolic::Expr;

/// The blocks of D, as each of its rows (`[..., n]`) sees them.
struct Blocks {
    /// Whether the row is the first, or the second, of a block of two.
    is_first: ValueId,
    is_second: ValueId,
    /// The row from 1 on with which it is exchanged; the first of a block of two stays.
    pivots: ValueId,
}

impl Blocks {
    /// Pivots are the caller's: whatever they are, rows of blocks are rows of the matrix.
    fn of(cx: &mut Context, pivots: ValueId) -> Result<Blocks, RuleError> {
        let shape = cx.b.shape(pivots);
        let axis = shape.len() - 1;
        let negative = cx.with_number(Relation::Lt, pivots, 0i64)?;
        let negative = cx.b.cast(negative, DType::I64);
        let count = cx.b.scan(ScanOp::Sum, negative, axis)?[0];
        let last = &shape[axis] - 1;
        let has_next = cx.index_is(Relation::Lt, &Expr::axis(0) - &last, &shape[axis..])?;
        let [is_double, count] = [negative, count].map(Formula::from);
        let is_double = is_double.differs(0.0);
        // Those of a block stand side by side, so the first is the one with an odd number.
        let is_odd = (&count - count.trunc_div(2.0) * 2.0).equals(1.0);
        let first = is_double.and(is_odd.and(Formula::from(has_next)));
        let second = is_double.and(is_odd.not());
        let own = Formula::from(cx.b.index(&Expr::axis(axis) + 1, &shape));
        let pivots = first.select(own, Formula::from(pivots).abs());
        Ok(Blocks {
            is_first: cx.formula(DType::I64, &first.cast(DType::I64))?,
            is_second: cx.formula(DType::I64, &second.cast(DType::I64))?,
            pivots: cx.formula(DType::I64, &pivots)?,
        })
    }

    /// As matrices of one column.
    fn columns(&self, cx: &mut Context) -> Result<[ValueId; 2], RuleError> {
        let rank = cx.b.rank(self.pivots);
        Ok([cx.b.unsqueeze(self.is_first, rank)?, cx.b.unsqueeze(self.is_second, rank)?])
    }

    /// L with ones on its diagonal understood, its rows exchanged by the pivots of all columns behind each.
    fn triangle(&self, cx: &mut Context, stored: Parts) -> Result<Parts, RuleError> {
        let shape = cx.b.shape(stored.re);
        let rows = shape.len() - 2;
        let distance = cx.b.index(&Expr::axis(rows) - &Expr::axis(rows + 1), &shape);
        let [_, second] = self.columns(cx)?;
        // The element of D below its diagonal is none of L.
        let least = Formula::from(second) + 1.0;
        let is_kept = Formula::from(distance).ge(least);
        let x = expression(stored);
        let x = cx.parts_of(&chosen(&is_kept, &x, &Complex::real(0.0)))?;
        let rank = cx.b.rank(self.pivots);
        let pivots = cx.b.unsqueeze(self.pivots, rank)?;
        let steps = cx.b.index(shape[rows].clone(), &[]);
        let carried = [x.re, x.im];
        let ends = repeat(
            cx,
            "ldl_rows",
            steps,
            &carried,
            &[pivots, second],
            &mut |cx, step, carried, captured| {
                let x = of(carried, 0);
                let both = column_entries(cx, captured, step)?;
                let [pivot, is_second] = both.map(Formula::from);
                let [row, place] =
                    [rows, rows + 1].map(|axis| Formula::from(cx.b.index(Expr::axis(axis), &shape)));
                let end = Formula::from(cx.b.index(shape[rows].clone(), &[]));
                let step = Formula::from(step);
                let is_local = pivot.gt(&step).and(pivot.le(end));
                let other = is_local.select(pivot - 1.0, &step);
                let from = row.equals(&step).select(&other, row.equals(&other).select(&step, &row));
                let from = place.lt(step - is_second).select(from, &row);
                let from = cx.formula(DType::I64, &from)?;
                let x = gathered(cx, x, rows, from)?;
                Ok(vec![x.re, x.im])
            },
        )?;
        Ok(of(&ends, 0))
    }

    /// Z of D Z = Y.
    fn divided(
        &self,
        cx: &mut Context,
        stored: Parts,
        y: Parts,
        is_hermitian: bool,
    ) -> Result<Parts, RuleError> {
        let shape = cx.b.shape(y.re);
        let rows = shape.len() - 2;
        let of_block = [&shape[..rows + 1], &[Expr::int(1)]].concat();
        let [is_first, is_second] = self.columns(cx)?.map(Formula::from);
        let row = Formula::from(cx.b.index(Expr::axis(rows), &of_block));
        let low = cx.formula(DType::I64, &(&row - &is_second))?;
        let high = cx.formula(DType::I64, &(row + &is_first))?;
        let at = |cx: &mut Context, row: ValueId, place: ValueId| {
            let mut coords: Vec<Coord> = (0..rows).map(|axis| Coord::Expr(Expr::axis(axis))).collect();
            coords.extend([Coord::Indirect(0), Coord::Indirect(1)]);
            let part =
                each(stored, |part| Ok(cx.b.gather(part, &[row, place], coords.clone(), &of_block)?))?;
            Ok::<_, RuleError>(expression(part))
        };
        let (a, below, c) = (at(cx, low, low)?, at(cx, high, low)?, at(cx, high, high)?);
        let [upper, lower] = [low, high].map(|from| {
            let from = cx.b.expand(from, &shape)?;
            Ok::<_, RuleError>(expression(gathered(cx, y, rows, from)?))
        });
        let (upper, lower) = (upper?, lower?);
        let block = Block { a, below, c, is_hermitian };
        let [above, c, a, whole] = block.scaled(&block.below);
        let (upper, lower) = (upper.over(&above), lower.over(&block.below));
        let first = c.times(&upper).plus(&lower.negated()).over(&whole);
        let second = a.times(&lower).plus(&upper.negated()).over(&whole);
        let alone = expression(y).over(&block.a);
        let (is_first, is_second) = (is_first.differs(0.0), is_second.differs(0.0));
        cx.parts_of(&chosen(&is_first, &first, &chosen(&is_second, &second, &alone)))
    }
}

/// The entry of a step of each column (`[..., n, 1]`).
fn column_entries(cx: &mut Context, columns: &[ValueId], step: ValueId) -> Result<[ValueId; 2], RuleError> {
    let turned = Parts { re: solve::adjoint(cx, columns[0])?, im: solve::adjoint(cx, columns[1])? };
    let entry = column(cx, turned, step)?;
    Ok([entry.re, entry.im])
}

/// X of A X = B.
pub(crate) fn solve(cx: &mut Context, a: &Args) -> Result<Outputs, RuleError> {
    let (stored, b) = (parts(cx, a, "LD")?, parts(cx, a, "B")?);
    let is_hermitian = a.bool_or("hermitian", false)?;
    let ((first, m, _), (second, _, n)) = (sides(cx, stored.re)?, sides(cx, b.re)?);
    let leading = cx.b.broadcast(&[first, second])?;
    let whole = |last: [&Expr; 2]| [leading.clone(), last.map(Clone::clone).to_vec()].concat();
    let stored = each(stored, |part| Ok(cx.b.expand(part, &whole([&m, &m]))?))?;
    let b = each(b, |part| Ok(cx.b.expand(part, &whole([&m, &n]))?))?;
    cx.check_pivots(a, a.tensor("pivots")?, &m, true)?;
    let pivots = all_pivots(cx, a.tensor("pivots")?, &m)?;
    let pivots = cx.b.expand(pivots, &[leading.clone(), vec![m.clone()]].concat())?;
    let blocks = Blocks::of(cx, pivots)?;
    let l = blocks.triangle(cx, stored)?;
    let b = exchanged(cx, blocks.pivots, b, false)?;
    let y = triangular(cx, l, b, false, true)?;
    let z = blocks.divided(cx, stored, y, is_hermitian)?;
    let turned = each(l, |part| solve::adjoint(cx, part))?;
    let turned = cx.parts_of(&conjugate_if(is_hermitian, &expression(turned)))?;
    let x = triangular(cx, turned, z, true, true)?;
    let x = exchanged(cx, blocks.pivots, x, true)?;
    Ok(cx.join(x)?.into())
}
