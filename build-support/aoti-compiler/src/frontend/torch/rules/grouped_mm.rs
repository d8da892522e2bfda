//! Products in groups: each row (or column) belongs to one of several matrices, in runs whose ends are data. They are
//! the expert layers of mixtures of experts.
//!
//! The run of a position is found by binary search in the ends, and the matrix is read through it inside the sum, so
//! that no matrix is copied. Positions behind the last end belong to no run and give 0.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError, matmul};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Coord, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten._grouped_mm.default" => |cx, a| grouped(cx, a, "self", "mat2"),
    // What the `transformers` package calls where PyTorch's operator has no kernel.
    pure "transformers.grouped_mm_fallback.default" => |cx, a| grouped(cx, a, "input", "weight"),
}

fn grouped(cx: &mut Context, a: &Args, left: &str, right: &str) -> Rule {
    let (x, y) = (a.tensor(left)?, a.tensor(right)?);
    if a.opt_tensor("bias")?.is_some() {
        return Err(RuleError::unsupported("a bias of a grouped product"));
    }
    let dtype = a.opt_dtype("out_dtype")?.unwrap_or(cx.b.dtype(x));
    let ends = a.opt_tensor("offs")?;
    let result = match (cx.b.rank(x), cx.b.rank(y), ends) {
        (3, 3, None) => matmul::matmul(cx, x, y)?,
        (2, 3, Some(ends)) => rows(cx, x, y, ends)?,
        (3, 2, Some(ends)) => {
            // Groups of columns: the transposed product has groups of rows.
            let (x, y) = (cx.b.transpose(x, 1, 2)?, cx.b.transpose(y, 0, 1)?);
            let result = rows(cx, y, x, ends)?;
            cx.b.transpose(result, 0, 1)?
        }
        (2, 2, Some(ends)) => terms(cx, x, y, ends)?,
        (m, n, _) => {
            return Err(RuleError::unsupported(format!("a grouped product of {m}-d and {n}-d operands")));
        }
    };
    Ok(cx.b.cast(result, dtype).into())
}

/// The run that each of `count` positions belongs to; the number of runs for those behind the last end.
fn runs(cx: &mut Context, ends: ValueId, count: &Expr) -> Result<ValueId, RuleError> {
    let ends = cx.b.cast(ends, DType::I64);
    let positions = cx.b.index(Expr::axis(0), std::slice::from_ref(count));
    Ok(cx.b.search_sorted(ends, positions, true)?)
}

/// `[s, k]` by `[g, k, n]`: row `s` is multiplied with the matrix of its run.
fn rows(cx: &mut Context, x: ValueId, weight: ValueId, ends: ValueId) -> Result<ValueId, RuleError> {
    let (x_shape, shape) = (cx.b.shape(x), cx.b.shape(weight));
    let run = runs(cx, ends, &x_shape[0])?;
    let run = cx.b.unsqueeze(run, 1)?;
    let last = cx.b.index(&shape[0] - 1, &[]);
    let safe = cx.binary(BinaryOp::Minimum, run, last)?;
    let safe = cx.b.unsqueeze(safe, 2)?;
    let coords = vec![Coord::Indirect(0), Coord::Expr(Expr::axis(1)), Coord::Expr(Expr::axis(2))];
    let own = [x_shape[0].clone(), shape[1].clone(), shape[2].clone()];
    let matrices = cx.b.gather(weight, &[safe], coords, &own)?;
    let compute = cx.b.dtype(x).compute();
    let (x, matrices) = (cx.b.cast(x, compute), cx.b.cast(matrices, compute));
    let x = cx.b.unsqueeze(x, 2)?;
    let products = cx.mul(x, matrices)?;
    let sum = cx.sum(products, &[1], false)?;
    let inside = cx.binary(Relation::Le, run, last)?;
    let zero = cx.b.full_like(0.0, sum);
    Ok(cx.b.select(inside, sum, zero)?)
}

/// `[m, k]` by `[k, n]`: a product `[g, m, n]`, matrix `g` of the terms `k` of run `g`.
fn terms(cx: &mut Context, x: ValueId, y: ValueId, ends: ValueId) -> Result<ValueId, RuleError> {
    let groups = cx.b.shape(ends)[0].clone();
    let count = cx.b.shape(x)[1].clone();
    let run = runs(cx, ends, &count)?;
    let own = cx.b.index(Expr::axis(0), &[groups, Expr::int(1), Expr::int(1)]);
    let inside = cx.binary(Relation::Eq, run, own)?;
    let zero = cx.b.scalar(0.0, cx.b.dtype(x));
    let x = cx.b.select(inside, x, zero)?;
    matmul::matmul(cx, x, y)
}
