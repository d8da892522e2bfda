//! L D L^T of complex symmetric matrices and L D L^H of Hermitian ones, D of blocks of one and two rows, by the pivots
//! of Bunch and Kaufman as LAPACK's `zsytrf` and `zhetrf` choose them, and in the form in which those store factors.
//!
//! Matrices of a batch differ in where their blocks of two rows are. So a step is a column, and one whose block has
//! been dealt with changes nothing but its pivot.

use super::super::linalg::solve::{self, checked, demand, sides};
use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::lu::gathered;
use super::matrices::parts;
use super::parts::{Complex, Parts};
use super::reflections::{column, each, expression, of};
use crate::dtype::DType;
use crate::graph::steps::repeat;
use crate::graph::{ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

/// (1 + sqrt(17)) / 8, which bounds how factors grow.
const ALPHA: f64 = 0.640_388_203_202_207_6;

/// Both triangles of the matrix whose lower one is given: all that is left to be factored stays symmetric, or Hermitian.
fn both_triangles(cx: &mut Context, x: Parts, is_hermitian: bool) -> Result<Parts, RuleError> {
    let (_, rows, columns) = sides(cx, x.re)?;
    let distance = cx.b.index(&Expr::axis(1) - &Expr::axis(0), &[rows, columns]);
    let above = Formula::from(cx.with_number(Relation::Gt, distance, 0i64)?);
    let on_diagonal = Formula::from(cx.with_number(Relation::Eq, distance, 0i64)?);
    let turned = each(x, |part| solve::adjoint(cx, part))?;
    let (own, other) = (expression(x), conjugate_if(is_hermitian, &expression(turned)));
    let im = above.select(other.imaginary(), own.imaginary());
    let im = if is_hermitian { on_diagonal.select(0.0, im) } else { im };
    cx.parts_of(&Complex::new(above.select(&other.re, &own.re), im))
}

/// What stands on the other side of the diagonal.
pub(crate) fn conjugate_if(is_hermitian: bool, x: &Complex) -> Complex {
    if is_hermitian { x.conjugate() } else { x.clone() }
}

/// The element of each column (`[..., n, 1]`) in a row (`[..., 1, 1]`).
fn element(cx: &mut Context, column: Parts, row: ValueId) -> Result<Complex, RuleError> {
    let (mut shape, ..) = sides(cx, column.re)?;
    shape.extend([Expr::int(1), Expr::int(1)]);
    let row = cx.b.expand(row, &shape)?;
    Ok(expression(gathered(cx, column, shape.len() - 2, row)?))
}

/// A matrix that is being factored, and the step.
struct Step {
    x: Parts,
    number: ValueId,
    is_hermitian: bool,
    /// Whether a block starts in this column (`[..., 1, 1]`): it is not the second of one.
    is_open: ValueId,
}

/// What a step does to each matrix of a batch (`[..., 1, 1]`).
struct Pivot {
    /// The row, from 0 on, that is exchanged.
    row: ValueId,
    /// Whether the block has two rows.
    is_double: ValueId,
    /// Whether the column is zero.
    is_zero: ValueId,
}

impl Step {
    /// Rows (`axis` 2 from the end) or columns (1) of what is left to be factored.
    fn position(&self, cx: &mut Context, from_end: usize) -> Formula {
        let shape = cx.b.shape(self.x.re);
        Formula::from(cx.b.index(Expr::axis(shape.len() - from_end), &shape))
    }

    /// Sizes as pivots are compared by, and that of an element on the diagonal.
    fn size(&self, x: &Complex, on_diagonal: bool) -> Formula {
        if on_diagonal && self.is_hermitian { x.re.abs() } else { x.re.abs() + x.imaginary().abs() }
    }

    /// The largest size in a column of the rows where `counts` holds, or 0, and its row.
    fn largest(
        &self,
        cx: &mut Context,
        own: Parts,
        counts: impl FnOnce(&Formula) -> Formula,
    ) -> Result<[ValueId; 2], RuleError> {
        let rank = cx.b.rank(own.re);
        let row = cx.b.index(Expr::axis(rank - 2), &cx.b.shape(own.re));
        let counts = counts(&row.into());
        let dtype = cx.b.dtype(own.re);
        let sizes = cx.formula(dtype, &counts.select(self.size(&expression(own), false), -1.0))?;
        let most = cx.b.reduce(ReduceOp::Max, sizes, &[rank - 2], true)?;
        let most = cx.apply([most], dtype, |[most]| most.max(0.0))?;
        Ok([most, cx.b.reduce(ReduceOp::ArgMax, sizes, &[rank - 2], true)?])
    }

    fn pivot(&self, cx: &mut Context) -> Result<Pivot, RuleError> {
        let step = Formula::from(self.number);
        let own = column(cx, self.x, self.number)?;
        let [most, widest] = self.largest(cx, own, |row| row.gt(&step))?;
        let diagonal = element(cx, own, self.number)?;
        let other = column(cx, self.x, widest)?;
        let [row_most, _] =
            self.largest(cx, other, |row| row.ge(&step).and(row.differs(Formula::from(widest))))?;
        let far = element(cx, other, widest)?;
        let [most, row_most, is_open] = [most, row_most, self.is_open].map(Formula::from);
        let diagonal = self.size(&diagonal, true);
        let is_zero = diagonal.equals(0.0).and(most.equals(0.0));
        let limit = &most * ALPHA;
        let is_small = diagonal.lt(&limit).and(diagonal.lt(limit * (&most / &row_most)));
        let moves = is_open.and(is_small);
        let is_double = moves.and(self.size(&far, true).lt(&row_most * ALPHA));
        let row = moves.select(Formula::from(widest), step);
        Ok(Pivot {
            row: cx.formula(DType::I64, &row)?,
            is_double: cx.formula(DType::Bool, &is_double)?,
            is_zero: cx.formula(DType::Bool, &is_zero)?,
        })
    }

    /// The pivot's row and column exchanged with those that the block ends with, in what is left to be factored.
    fn exchanged(&self, cx: &mut Context, pivot: &Pivot) -> Result<Parts, RuleError> {
        let step = Formula::from(self.number);
        let (row, column) = (self.position(cx, 2), self.position(cx, 1));
        let is_left = row.ge(&step).and(column.ge(&step)).and(Formula::from(self.is_open));
        let to = Formula::from(pivot.row);
        let last = Formula::from(pivot.is_double).select(&step + 1.0, &step);
        let rank = cx.b.rank(self.x.re);
        let mut x = self.x;
        for (axis, place) in [(rank - 2, &row), (rank - 1, &column)] {
            let from = place.equals(&last).select(&to, place.equals(&to).select(&last, place));
            let from = cx.formula(DType::I64, &is_left.select(from, place))?;
            x = gathered(cx, x, axis, from)?;
        }
        Ok(x)
    }

    /// Columns of L in the place of those of the block, and what is left without their products.
    fn eliminated(&self, cx: &mut Context, pivot: &Pivot) -> Result<Parts, RuleError> {
        let (_, n, _) = sides(cx, self.x.re)?;
        let end = cx.b.index(&n - 1, &[]);
        let next = cx.apply([self.number, end], DType::I64, |[step, end]| (step + 1.0).min(end))?;
        let (first, second) = (column(cx, self.x, self.number)?, column(cx, self.x, next)?);
        let corner = [(first, self.number), (first, next), (second, next)];
        let [a, below, c] = corner.map(|(own, row)| element(cx, own, row));
        let block = Block { a: a?, below: below?, c: c?, is_hermitian: self.is_hermitian };
        let double = Formula::from(pivot.is_double);
        let columns = [expression(first), expression(second)];
        let [left, right] = block.columns(&double, &columns);
        let rows = [first, second].map(|own| each(own, |part| solve::adjoint(cx, part)));
        let [over, beside] = rows;
        let [over, beside] = [over?, beside?].map(|row| conjugate_if(self.is_hermitian, &expression(row)));
        let rest = expression(self.x).plus(&left.times(&over).negated());
        let rest = rest.plus(&right.times(&beside).negated());
        self.chosen(cx, pivot, &rest, [&left, &right])
    }

    /// Products where a matrix is left, columns of L in those of the block, else what there was.
    fn chosen(
        &self,
        cx: &mut Context,
        pivot: &Pivot,
        rest: &Complex,
        columns: [&Complex; 2],
    ) -> Result<Parts, RuleError> {
        let (row, place, step) = (self.position(cx, 2), self.position(cx, 1), Formula::from(self.number));
        let double = Formula::from(pivot.is_double);
        let last = double.select(&step + 1.0, &step);
        let acts = Formula::from(self.is_open).and(Formula::from(pivot.is_zero).not());
        let below = acts.and(row.gt(&last));
        let behind = below.and(place.gt(&last));
        let (here, beside) = (below.and(place.equals(&step)), below.and(double.and(place.equals(&last))));
        let own = expression(self.x);
        let choose = |part: fn(&Complex) -> Formula| {
            let kept = here.select(part(columns[0]), part(&own));
            behind.select(part(rest), beside.select(part(columns[1]), kept))
        };
        let (re, im) = (choose(|x| x.re.clone()), choose(Complex::imaginary));
        let im = if self.is_hermitian { row.equals(&place).select(0.0, im) } else { im };
        cx.parts_of(&Complex::new(re, im))
    }
}

/// `[[a, b], [below, c]]`, where b is `below` or its conjugate.
pub(crate) struct Block {
    pub(crate) a: Complex,
    pub(crate) below: Complex,
    pub(crate) c: Complex,
    pub(crate) is_hermitian: bool,
}

impl Block {
    fn diagonal(&self, x: &Complex) -> Complex {
        if self.is_hermitian { Complex::real(&x.re) } else { x.clone() }
    }

    /// The element above the diagonal, c and a over what stands beside them, and the determinant over the product of both.
    pub(crate) fn scaled(&self, below: &Complex) -> [Complex; 4] {
        let above = conjugate_if(self.is_hermitian, below);
        let (c, a) = (self.diagonal(&self.c).over(below), self.diagonal(&self.a).over(&above));
        let whole = c.times(&a).plus(&Complex::real(-1.0));
        [above, c, a, whole]
    }

    /// The columns of L: the two given ones times the inverse of the block, or the first one over its first element.
    fn columns(&self, double: &Formula, [first, second]: &[Complex; 2]) -> [Complex; 2] {
        let [zero, one] = [0.0, 1.0].map(Complex::real);
        let a = self.diagonal(&self.a);
        let is_zero = a.is_zero();
        let alone = first.over(&chosen(&is_zero, &one, &a));
        let below = chosen(double, &self.below, &one);
        let [above, c, d, whole] = self.scaled(&below);
        let whole = chosen(double, &whole, &one);
        let left = first.times(&c).plus(&second.negated()).over(&above.times(&whole));
        let right = second.times(&d).plus(&first.negated()).over(&below.times(&whole));
        [chosen(double, &left, &alone), chosen(double, &right, &zero)]
    }
}

/// One of two complex numbers.
pub(crate) fn chosen(condition: &Formula, then: &Complex, otherwise: &Complex) -> Complex {
    let re = condition.select(&then.re, &otherwise.re);
    if then.is_real() && otherwise.is_real() {
        return Complex::real(re);
    }
    Complex::new(re, condition.select(then.imaginary(), otherwise.imaginary()))
}

/// L below the diagonal and D, pivots, and 0 or the number from 1 on of the first block that is zero.
fn factors(cx: &mut Context, x: Parts, is_hermitian: bool) -> Result<[ValueId; 3], RuleError> {
    let (leading, n, _) = sides(cx, x.re)?;
    let x = both_triangles(cx, x, is_hermitian)?;
    let pivots = cx.b.full(0i64, DType::I64, &[leading.clone(), vec![n.clone()]].concat());
    let each_matrix = [leading, vec![Expr::int(1), Expr::int(1)]].concat();
    // The pivot of the block whose second column comes next, where there is one.
    let pending = cx.b.full(0i64, DType::I64, &each_matrix);
    let info = cx.b.full(0i64, DType::I64, &each_matrix);
    let steps = cx.b.index(n, &[]);
    let carried = [x.re, x.im, pivots, pending, info];
    let ends = repeat(cx, "ldl", steps, &carried, &[], &mut |cx, number, carried, _| {
        let (pivots, pending, info) = (carried[2], carried[3], carried[4]);
        let is_open = cx.with_number(Relation::Eq, pending, 0i64)?;
        let mut step = Step { x: of(carried, 0), number, is_hermitian, is_open };
        let pivot = step.pivot(cx)?;
        step.x = step.exchanged(cx, &pivot)?;
        let x = step.eliminated(cx, &pivot)?;
        let [own, next] = pivot.numbers(cx, is_open, pending)?;
        let zero = Formula::from(pivot.is_zero).and(Formula::from(is_open));
        let now = Formula::from(info);
        let now = zero.and(now.equals(0.0)).select(Formula::from(number) + 1.0, &now);
        let info = cx.formula(DType::I64, &now)?;
        let rank = cx.b.rank(pivots);
        let own = cx.b.squeeze(own, &[rank])?;
        let place = cx.b.index(Expr::axis(rank - 1), &cx.b.shape(pivots));
        let pivots = cx.apply([place, number, own, pivots], DType::I64, |[place, number, own, pivots]| {
            place.equals(number).select(own, pivots)
        })?;
        Ok(vec![x.re, x.im, pivots, next, info])
    })?;
    let lower = each(of(&ends, 0), |part| solve::part(cx, part, Relation::Le, false))?;
    let rank = cx.b.rank(ends[4]);
    let info = cx.b.squeeze(ends[4], &[rank - 2, rank - 1])?;
    Ok([cx.join(lower)?, cx.b.cast(ends[2], DType::I32), cx.b.cast(info, DType::I32)])
}

impl Pivot {
    /// The pivot as it is stored in this column, and what is stored in the next one of the same block.
    fn numbers(
        &self,
        cx: &mut Context,
        is_open: ValueId,
        pending: ValueId,
    ) -> Result<[ValueId; 2], RuleError> {
        let [row, double, is_open, pending] = [self.row, self.is_double, is_open, pending].map(Formula::from);
        let number = row + 1.0;
        let new = double.select(-&number, &number);
        let own = cx.formula(DType::I64, &is_open.select(&new, &pending))?;
        let next = cx.formula(DType::I64, &is_open.and(double).select(&new, pending * 0.0))?;
        Ok([own, next])
    }
}

fn factors_of(cx: &mut Context, a: &Args) -> Result<[ValueId; 3], RuleError> {
    let x = parts(cx, a, "self")?;
    factors(cx, x, a.bool_or("hermitian", false)?)
}

pub(crate) fn factor_ex(cx: &mut Context, a: &Args) -> Rule {
    let all = factors_of(cx, a)?;
    checked(cx, a, all[2])?;
    Ok(Outputs::Many(all.map(Some).to_vec()))
}

pub(crate) fn factor(cx: &mut Context, a: &Args) -> Rule {
    let all = factors_of(cx, a)?;
    demand(cx, all[2], "torch.linalg.ldl_factor: a block of the diagonal is zero")?;
    Ok(Outputs::Many(all[..2].iter().copied().map(Some).collect()))
}
