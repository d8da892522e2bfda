//! LDL factors of symmetric matrices, with `info` as LAPACK gives it.

use super::super::{Args, Context, RuleError};
use super::solve::sides;
use crate::dtype::DType;
use crate::graph::{FloatTest, ReduceOp, Routine, ValueId};
use crate::symbolic::Expr;

/// Factors, pivots and `info`.
pub(crate) fn ldl(cx: &mut Context, a: &Args) -> Result<[ValueId; 3], RuleError> {
    let x = a.tensor("self")?;
    let all = cx.b.routine(Routine::Ldl, &[x])?;
    let info = first_nan(cx, all[0], all[2])?;
    Ok([all[0], all[1], info])
}

/// `info`, or where it is 0, one more than the first element of the diagonal that is NaN: LAPACK takes it for no pivot either.
fn first_nan(cx: &mut Context, factors: ValueId, info: ValueId) -> Result<ValueId, RuleError> {
    let (mut shape, rows, _) = sides(cx, factors)?;
    let rank = shape.len();
    shape.push(rows.clone());
    let coords = (0..=rank).chain([rank]).map(Expr::axis).collect();
    let diagonal = cx.b.view(factors, &shape, coords)?;
    let nan = cx.unary(FloatTest::IsNan, diagonal);
    let place = cx.b.index(Expr::axis(rank) + Expr::int(1), &shape);
    let beyond = cx.b.index(&rows + 1, &shape);
    let places = cx.b.select(nan, place, beyond)?;
    let first = cx.b.reduce(ReduceOp::Min, places, &[rank], false)?;
    let none = cx.b.index(rows, &[]);
    let info = cx.b.cast(info, DType::I64);
    cx.apply([info, first, none], DType::I64, |[info, first, none]| {
        info.equals(0.0).and(first.le(none)).select(first, info)
    })
}
