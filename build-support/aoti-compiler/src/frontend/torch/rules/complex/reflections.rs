//! Reflections of complex matrices, each of which makes one column, or one row, a multiple of a unit vector by a real number
//! (Golub and Van Loan, "Matrix computations", 5.1; LAPACK's `zlarfg` chooses that number so). Knows no operator.

use super::super::linalg::solve::sides;
use super::super::{Context, Formula, RuleError};
use super::matrices::adjoint;
use super::parts::{Complex, Parts};
use crate::dtype::DType;
use crate::graph::steps::repeat;
use crate::graph::{BinaryOp, Coord, Relation, ValueId};
use crate::symbolic::Expr;

impl Context {
    /// The parts of a complex expression of tensors of one real type.
    pub(crate) fn parts_of(&mut self, value: &Complex) -> Result<Parts, RuleError> {
        let dtype = DType::F64;
        Ok(Parts { re: self.formula(dtype, &value.re)?, im: self.formula(dtype, &value.imaginary())? })
    }
}

pub(crate) fn expression(x: Parts) -> Complex {
    Complex::new(x.re.into(), x.im.into())
}

pub(crate) fn each(
    x: Parts,
    mut f: impl FnMut(ValueId) -> Result<ValueId, RuleError>,
) -> Result<Parts, RuleError> {
    Ok(Parts { re: f(x.re)?, im: f(x.im)? })
}

/// Ones on the diagonal of so many rows and columns, for each of a batch.
pub(crate) fn identity(
    cx: &mut Context,
    dtype: DType,
    leading: &[Expr],
    size: &Expr,
) -> Result<Parts, RuleError> {
    let shape = [leading, &[size.clone(), size.clone()]].concat();
    let re = cx.identity_matrix(dtype, &shape)?;
    Ok(Parts { re, im: cx.b.full_like(0.0, re) })
}

/// `I - tau v v^H`, as a column.
pub(crate) struct Reflection {
    pub(crate) vector: Parts,
    pub(crate) tau: Parts,
}

/// The reflection whose adjoint makes zeros of a column behind its element at `place`, and that element real; elements
/// before it count as zero.
pub(crate) fn reflection(cx: &mut Context, column: Parts, place: ValueId) -> Result<Reflection, RuleError> {
    let rank = cx.b.rank(column.re);
    let shape = cx.b.shape(column.re);
    let row = cx.b.index(Expr::axis(rank - 2), &shape);
    let (at, behind) = (cx.binary(Relation::Eq, row, place)?, cx.binary(Relation::Gt, row, place)?);
    let (at, behind) = (Formula::from(at), Formula::from(behind));
    let chosen = |cx: &mut Context, part: ValueId, where_: &Formula| {
        let dtype = cx.b.dtype(part);
        cx.formula(dtype, &where_.select(Formula::from(part), 0.0))
    };
    let head = each(column, |part| {
        let own = chosen(cx, part, &at)?;
        cx.sum(own, &[rank - 2], true)
    })?;
    let tail = each(column, |part| chosen(cx, part, &behind))?;
    let dtype = cx.b.dtype(column.re);
    let squares = cx.apply([tail.re, tail.im], dtype, |[re, im]| re.square() + im.square())?;
    let squares = cx.sum(squares, &[rank - 2], true)?;
    let (alpha, squares) = (expression(head), Formula::from(squares));
    let norm = (alpha.re.square() + alpha.imaginary().square() + &squares).sqrt();
    let beta = alpha.re.lt(0.0).select(&norm, -&norm);
    // What is real already, and alone, stays.
    let stays = squares.equals(0.0).and(alpha.imaginary().equals(0.0));
    let safe = stays.select(1.0, &beta);
    let tau = Complex::new(
        stays.select(0.0, (&safe - &alpha.re) / &safe),
        stays.select(0.0, -(alpha.imaginary() / &safe)),
    );
    let below = Complex::new(stays.select(1.0, &alpha.re - &safe), alpha.imaginary());
    let scaled = expression(tail).over(&below);
    let vector = Complex::new(at.select(1.0, &scaled.re), scaled.imaginary());
    Ok(Reflection { vector: cx.parts_of(&vector)?, tau: cx.parts_of(&tau)? })
}

impl Reflection {
    /// `H^H x`.
    pub(crate) fn on_left(&self, cx: &mut Context, x: Parts) -> Result<Parts, RuleError> {
        let rank = cx.b.rank(x.re);
        let terms = expression(self.vector).conjugate().times(&expression(x));
        let terms = cx.parts_of(&terms)?;
        let sums = each(terms, |part| cx.sum(part, &[rank - 2], true))?;
        let tau = expression(self.tau).conjugate();
        let change = tau.times(&expression(self.vector)).times(&expression(sums)).negated();
        cx.parts_of(&expression(x).plus(&change))
    }

    /// `x H`.
    fn on_right(&self, cx: &mut Context, x: Parts) -> Result<Parts, RuleError> {
        let rank = cx.b.rank(x.re);
        let row = each(self.vector, |part| super::super::linalg::solve::adjoint(cx, part))?;
        let terms = cx.parts_of(&expression(x).times(&expression(row)))?;
        let sums = each(terms, |part| cx.sum(part, &[rank - 1], true))?;
        let tau = expression(self.tau);
        let change = tau.times(&expression(sums)).times(&expression(row).conjugate()).negated();
        cx.parts_of(&expression(x).plus(&change))
    }
}

/// Column `number` of each matrix, as a matrix of one column.
pub(crate) fn column(cx: &mut Context, x: Parts, number: ValueId) -> Result<Parts, RuleError> {
    let rank = cx.b.rank(x.re);
    let mut shape = cx.b.shape(x.re);
    shape[rank - 1] = Expr::int(1);
    let number = cx.b.expand(number, &shape)?;
    let mut coords: Vec<Coord> = (0..rank - 1).map(|axis| Coord::Expr(Expr::axis(axis))).collect();
    coords.push(Coord::Indirect(0));
    each(x, |part| Ok(cx.b.gather(part, &[number], coords.clone(), &shape)?))
}

/// Which reflections are made of a matrix.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Columns from the diagonal on: what is left is upper triangular.
    Triangular,
    /// The same, and rows from beside the diagonal on: two diagonals are left, and they are real.
    Bidiagonal,
    /// Columns from below the diagonal on, and the same reflections from the right: of a Hermitian matrix, three diagonals
    /// are left, and they are real.
    Tridiagonal,
}

/// `left middle right^H`, the matrix.
pub(crate) struct Reduced {
    pub(crate) left: Parts,
    pub(crate) middle: Parts,
    pub(crate) right: Parts,
}

pub(crate) fn reduced(cx: &mut Context, x: Parts, form: Form) -> Result<Reduced, RuleError> {
    let (leading, m, n) = sides(cx, x.re)?;
    let dtype = cx.b.dtype(x.re);
    let (left, right) = (identity(cx, dtype, &leading, &m)?, identity(cx, dtype, &leading, &n)?);
    let steps = cx.b.index(cx.b.smaller(&m, &n), &[]);
    let carried = [x.re, x.im, left.re, left.im, right.re, right.im];
    let name = "reflections";
    let ends = repeat(cx, name, steps, &carried, &[], &mut |cx, step, carried, _| {
        let mut own = Reduced { middle: of(carried, 0), left: of(carried, 2), right: of(carried, 4) };
        let next = cx.with_number(BinaryOp::Add, step, 1i64)?;
        let from = if form == Form::Tridiagonal { next } else { step };
        let now = column(cx, own.middle, step)?;
        let turn = reflection(cx, now, from)?;
        own.middle = turn.on_left(cx, own.middle)?;
        own.left = turn.on_right(cx, own.left)?;
        match form {
            Form::Triangular => {}
            Form::Tridiagonal => {
                own.middle = turn.on_right(cx, own.middle)?;
            }
            Form::Bidiagonal => {
                let turned = adjoint(cx, own.middle)?;
                let row = column(cx, turned, step)?;
                let turn = reflection(cx, row, next)?;
                own.middle = turn.on_right(cx, own.middle)?;
                own.right = turn.on_right(cx, own.right)?;
            }
        }
        let Reduced { left, middle, right } = own;
        Ok(vec![middle.re, middle.im, left.re, left.im, right.re, right.im])
    })?;
    Ok(Reduced { middle: of(&ends, 0), left: of(&ends, 2), right: of(&ends, 4) })
}

pub(crate) fn of(values: &[ValueId], first: usize) -> Parts {
    Parts { re: values[first], im: values[first + 1] }
}
