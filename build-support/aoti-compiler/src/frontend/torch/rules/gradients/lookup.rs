//! Gradients of rows that were looked up, of windows and of diagonals: they go back to where they were read.

use super::{Args, Context, Outputs, RuleError, added_at, rules};
use crate::dtype::DType;
use crate::graph::{Combine, Coord, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.embedding_dense_backward.default" => embedding,
    pure "aten.unfold_backward.default" => unfold,
    pure "aten.diagonal_backward.default" => diagonal,
}

fn embedding(cx: &mut Context, a: &Args) -> Rule {
    let (g, indices) = (a.tensor("grad_output")?, a.tensor("indices")?);
    let indices = cx.b.cast(indices, DType::I64);
    let (dtype, rank) = (cx.b.dtype(g), cx.b.rank(indices));
    let wide = cx.b.cast(g, dtype.compute());
    let shape = cx.b.shape(wide);
    let Some(width) = shape.get(rank).filter(|_| shape.len() == rank + 1).cloned() else {
        return Err(RuleError::Malformed("the gradient is not a row for each index".to_owned()));
    };
    let rows = a.sym("num_weights")?;
    let padding = a.number_or("padding_idx", -1i64)?.to_value(cx, DType::I64);
    let padding = cx.b.expand(padding, &cx.b.shape(indices))?;
    let counts = cx.binary(Relation::Ne, indices, padding)?;
    let mut weights = cx.b.cast(counts, dtype.compute());
    if a.bool_or("scale_grad_by_freq", false)? {
        let one = cx.b.full_like(1.0, weights);
        let none = cx.b.full(0.0, dtype.compute(), std::slice::from_ref(&rows));
        let often = cx.b.scatter(none, one, &[indices], vec![Coord::Indirect(0)], Combine::Add)?;
        let often = cx.b.gather(often, &[indices], vec![Coord::Indirect(0)], &cx.b.shape(indices))?;
        weights = cx.div(weights, often)?;
    }
    let weights = cx.b.unsqueeze(weights, rank)?;
    let weighted = cx.mul(wide, weights)?;
    let base = cx.b.full(0i64, dtype.compute(), &[rows, width]);
    let at = cx.b.unsqueeze(indices, rank)?;
    let at = cx.b.expand(at, &shape)?;
    let coords = vec![Coord::Indirect(0), Coord::Expr(Expr::axis(rank))];
    let total = cx.b.scatter(base, weighted, &[at], coords, Combine::Add)?;
    Ok(cx.b.cast(total, dtype).into())
}

/// Of `unfold`: windows of `size` every `step`, the taps behind all axes.
fn unfold(cx: &mut Context, a: &Args) -> Rule {
    let g: ValueId = a.tensor("grad_in")?;
    let shape = a.syms("input_sizes")?;
    if shape.is_empty() {
        return Ok(cx.b.reshape(g, &shape)?.into());
    }
    let axis = Context::axis(a.int("dim")?, shape.len())?;
    let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    coords[axis] = &(&Expr::axis(axis) * &a.sym("step")?) + &Expr::axis(shape.len());
    Ok(added_at(cx, g, &shape, coords)?.into())
}

fn diagonal(cx: &mut Context, a: &Args) -> Rule {
    let g: ValueId = a.tensor("grad_output")?;
    let shape = a.syms("input_sizes")?;
    let [first, second] = [
        Context::axis(a.int_or("dim1", 0)?, shape.len())?,
        Context::axis(a.int_or("dim2", 1)?, shape.len())?,
    ];
    let offset = a.int_or("offset", 0)?;
    let along = Expr::axis(cx.b.rank(g).saturating_sub(1));
    let mut others = (0..).map(Expr::axis);
    let coords = (0..shape.len())
        .map(|axis| match axis {
            _ if axis == first => &along + (-offset).max(0),
            _ if axis == second => &along + offset.max(0),
            _ => others.next().unwrap_or_else(|| Expr::int(0)),
        })
        .collect();
    Ok(added_at(cx, g, &shape, coords)?.into())
}
