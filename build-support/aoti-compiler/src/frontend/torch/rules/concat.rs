//! Joining tensors: concatenation, stacking, block diagonals and products of sets.

use super::registry::rules;
use super::shape::{grid, with_rank};
use super::support::{fixed, length};
use super::{Args, Context, Outputs, RuleError};
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.cat.default" => |cx, a| { let list = a.tensors("tensors")?; cat(cx, &list, a.int_or("dim", 0)?) },
    pure "aten.concat.default" => |cx, a| { let list = a.tensors("tensors")?; cat(cx, &list, a.int_or("dim", 0)?) },
    pure "aten.concatenate.default" => |cx, a| {
        let list = a.tensors("tensors")?;
        cat(cx, &list, a.int_or("dim", 0)?)
    },
    pure "aten.stack.default" => stack,
    pure "aten.hstack.default" => hstack,
    pure "aten.vstack.default" => |cx, a| raised(cx, a, 2, 0),
    pure "aten.row_stack.default" => |cx, a| raised(cx, a, 2, 0),
    pure "aten.dstack.default" => |cx, a| raised(cx, a, 3, 2),
    pure "aten.column_stack.default" => column_stack,
    pure "aten._chunk_cat.default" => chunk_cat,
    pure "aten.block_diag.default" => block_diag,
    pure "aten.cartesian_prod.default" => cartesian_prod,
    pure "aten.combinations.default" => combinations,
}

/// `torch.cat`: operands promote; one-dimensional empty tensors fit anything.
pub(crate) fn cat(cx: &mut Context, tensors: &[ValueId], axis: i64) -> Rule {
    let dtype = cx.result_type(tensors)?;
    let is_legacy_empty = |cx: &Context, x: ValueId| matches!(cx.b.shape(x).as_slice(), [n] if n.is(0));
    let solid: Vec<ValueId> = tensors.iter().copied().filter(|x| !is_legacy_empty(cx, *x)).collect();
    let chosen = if solid.is_empty() { tensors.to_vec() } else { solid };
    let Some(first) = chosen.first() else {
        return Err(RuleError::Malformed("nothing to concatenate".to_owned()));
    };
    let axis = Context::axis(axis, cx.b.rank(*first))?;
    let cast: Vec<ValueId> = chosen.into_iter().map(|x| cx.b.cast(x, dtype)).collect();
    Ok(cx.b.cat(&cast, axis)?.into())
}

fn stack(cx: &mut Context, a: &Args) -> Rule {
    let tensors = a.tensors("tensors")?;
    let rank = tensors.first().map_or(0, |x| cx.b.rank(*x));
    let axis = Context::axis(a.int_or("dim", 0)?, rank + 1)?;
    let raised: Vec<ValueId> =
        tensors.into_iter().map(|x| cx.b.unsqueeze(x, axis)).collect::<Result<_, _>>()?;
    cat(cx, &raised, length(axis))
}

fn hstack(cx: &mut Context, a: &Args) -> Rule {
    let tensors = lifted(cx, a, 1)?;
    let axis = i64::from(tensors.first().is_some_and(|x| cx.b.rank(*x) > 1));
    cat(cx, &tensors, axis)
}

fn lifted(cx: &mut Context, a: &Args, rank: usize) -> Result<Vec<ValueId>, RuleError> {
    a.tensors("tensors")?.into_iter().map(|x| with_rank(cx, x, rank)).collect()
}

fn raised(cx: &mut Context, a: &Args, rank: usize, axis: i64) -> Rule {
    let tensors = lifted(cx, a, rank)?;
    cat(cx, &tensors, axis)
}

fn column_stack(cx: &mut Context, a: &Args) -> Rule {
    let mut columns = Vec::new();
    for x in a.tensors("tensors")? {
        columns.push(if cx.b.rank(x) <= 1 {
            let numel = cx.b.ty(x).numel();
            cx.b.reshape(x, &[numel, Expr::int(1)])?
        } else {
            x
        });
    }
    cat(cx, &columns, 1)
}

/// Pads each tensor's axis to a multiple of the number of chunks, and lays the k-th chunks of all side by side.
fn chunk_cat(cx: &mut Context, a: &Args) -> Rule {
    let (axis, chunks) = (a.int("dim")?, a.int("num_chunks")?);
    let mut pieces = Vec::new();
    let mut joint = 0;
    for x in a.tensors("tensors")? {
        let shape = cx.b.shape(x);
        let axis = Context::axis(axis, shape.len())?;
        joint = axis + 1;
        let whole = &shape[axis].ceil_div(&Expr::int(chunks), cx.b.ranges()) * chunks;
        let mut amounts = vec![(Expr::int(0), Expr::int(0)); shape.len()];
        amounts[axis].1 = &whole - &shape[axis];
        let padded = cx.b.pad(x, &amounts, 0i64)?;
        let mut sizes = shape[..axis].to_vec();
        let rest = Expr::product(&shape[axis + 1..]);
        sizes.push(Expr::int(chunks));
        sizes.push(&whole.floor_div_in(&Expr::int(chunks), cx.b.ranges()) * &rest);
        pieces.push(cx.b.reshape(padded, &sizes)?);
    }
    cat(cx, &pieces, length(joint))
}

fn block_diag(cx: &mut Context, a: &Args) -> Rule {
    let blocks = lifted(cx, a, 2)?;
    let dtype = cx.result_type(&blocks)?;
    let total = blocks.iter().fold(Expr::int(0), |sum, x| &sum + &cx.b.shape(*x)[1]);
    let mut rows = Vec::new();
    let mut before = Expr::int(0);
    for x in blocks {
        let x = cx.b.cast(x, dtype);
        let width = cx.b.shape(x)[1].clone();
        let after = &(&total - &before) - &width;
        let none = (Expr::int(0), Expr::int(0));
        rows.push(cx.b.pad(x, &[none, (before.clone(), after)], 0i64)?);
        before = &before + &width;
    }
    Ok(cx.b.cat(&rows, 0)?.into())
}

fn cartesian_prod(cx: &mut Context, a: &Args) -> Rule {
    let tensors = a.tensors("tensors")?;
    if let [only] = tensors.as_slice() {
        return Ok((*only).into());
    }
    let dtype = cx.result_type(&tensors)?;
    let grids = grid(cx, &tensors, false)?;
    let mut columns = Vec::new();
    for column in grids {
        let column = cx.b.cast(column, dtype);
        let numel = cx.b.ty(column).numel();
        columns.push(cx.b.reshape(column, &[numel, Expr::int(1)])?);
    }
    Ok(cx.b.cat(&columns, 1)?.into())
}

fn combinations(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let picks = a.int_or("r", 2)?;
    if picks == 0 {
        let dtype = cx.b.dtype(x);
        return Ok(cx.b.full(0i64, dtype, &[Expr::int(0)]).into());
    }
    let repeat = a.bool_or("with_replacement", false)?;
    if picks == 2 {
        let size = cx.b.shape(x).first().cloned().unwrap_or(Expr::int(0));
        let mut columns = Vec::new();
        for numbers in cx.pairs(&size, repeat)? {
            columns.push(cx.b.unsqueeze(numbers, 1)?);
        }
        let index = cx.b.cat(&columns, 1)?;
        return Ok(cx.b.rows(x, index)?.into());
    }
    let size = fixed(&cx.b.shape(x), "combinations of more than two")?.first().copied().unwrap_or(0);
    let mut all: Vec<Vec<i64>> = vec![vec![]];
    for _ in 0..picks {
        let longer = |head: &Vec<i64>| {
            let first = head.last().map_or(0, |last| if repeat { *last } else { last + 1 });
            (first..size).map(|next| [head.as_slice(), &[next]].concat()).collect::<Vec<_>>()
        };
        all = all.iter().flat_map(longer).collect();
    }
    let rows = length(all.len());
    let flat = cx.b.int_vector(&all.concat());
    let index = cx.b.reshape(flat, &[Expr::int(rows), Expr::int(picks)])?;
    Ok(cx.b.rows(x, index)?.into())
}
