//! Views that regroup, reorder, insert, remove or broadcast whole axes.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{Condition, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    view "aten.alias.default" => same,
    pure "aten.alias_copy.default" => same,
    view "aten.detach.default" => same,
    view "aten.detach_.default" => same,
    pure "aten.detach_copy.default" => same,
    view "aten._fw_primal.default" => same,
    view "aten.real.default" => same,
    view "aten.view.default" => |cx, a| reshape(cx, a, "size"),
    pure "aten.view_copy.default" => |cx, a| reshape(cx, a, "size"),
    pure "aten._unsafe_view.default" => |cx, a| reshape(cx, a, "size"),
    view "aten.reshape.default" => |cx, a| reshape(cx, a, "shape"),
    view "aten._reshape_alias.default" => |cx, a| reshape(cx, a, "size"),
    pure "aten._reshape_alias_copy.default" => |cx, a| reshape(cx, a, "size"),
    pure "aten._reshape_copy.default" => |cx, a| reshape(cx, a, "size"),
    view "aten.view_as.default" => reshape_as,
    view "aten.reshape_as.default" => reshape_as,
    view "aten.flatten.using_ints" => flatten,
    view "aten.unflatten.int" => unflatten,
    view "aten.ravel.default" => |cx, a| { let x = a.tensor("self")?; Ok(cx.flattened(x)?.into()) },
    view "aten.squeeze.default" => squeeze,
    view "aten.squeeze.dim" => squeeze,
    view "aten.squeeze.dims" => squeeze,
    view "aten.squeeze_.default" => squeeze,
    view "aten.squeeze_.dim" => squeeze,
    view "aten.squeeze_.dims" => squeeze,
    view "aten.unsqueeze_.default" => unsqueeze,
    view "aten.t_.default" => transpose_matrix,
    view "aten.transpose_.default" => |cx, a| swap(cx, a, a.int("dim0")?, a.int("dim1")?),
    view "aten.swapdims_.default" => |cx, a| swap(cx, a, a.int("dim0")?, a.int("dim1")?),
    view "aten.swapaxes_.default" => |cx, a| swap(cx, a, a.int("axis0")?, a.int("axis1")?),
    pure "aten.squeeze_copy.default" => squeeze,
    pure "aten.squeeze_copy.dim" => squeeze,
    pure "aten.squeeze_copy.dims" => squeeze,
    view "aten.unsqueeze.default" => unsqueeze,
    pure "aten.unsqueeze_copy.default" => unsqueeze,
    view "aten.transpose.int" => |cx, a| swap(cx, a, a.int("dim0")?, a.int("dim1")?),
    pure "aten.transpose_copy.int" => |cx, a| swap(cx, a, a.int("dim0")?, a.int("dim1")?),
    view "aten.swapdims.default" => |cx, a| swap(cx, a, a.int("dim0")?, a.int("dim1")?),
    view "aten.swapaxes.default" => |cx, a| swap(cx, a, a.int("axis0")?, a.int("axis1")?),
    view "aten.mT.default" => |cx, a| swap(cx, a, -2, -1),
    view "aten.mH.default" => |cx, a| swap(cx, a, -2, -1),
    view "aten.matrix_H.default" => |cx, a| swap(cx, a, -2, -1),
    view "aten.adjoint.default" => |cx, a| swap(cx, a, -2, -1),
    view "aten.t.default" => transpose_matrix,
    pure "aten.t_copy.default" => transpose_matrix,
    view "aten.numpy_T.default" => reverse_axes,
    view "aten.permute.default" => permute,
    pure "aten.permute_copy.default" => permute,
    view "aten.movedim.int" => move_axes,
    view "aten.movedim.intlist" => move_axes,
    view "aten.moveaxis.int" => move_axes,
    view "aten.moveaxis.intlist" => move_axes,
    view "aten.expand.default" => expand,
    pure "aten.expand_copy.default" => expand,
    view "aten.broadcast_to.default" => expand,
    view "aten.expand_as.default" => expand_as,
    pure "aten.broadcast_tensors.default" => broadcast_tensors,
    pure "aten.meshgrid.default" => meshgrid,
    pure "aten.meshgrid.indexing" => meshgrid,
    view "aten.atleast_1d.default" => |cx, a| at_least(cx, a, 1),
    view "aten.atleast_2d.default" => |cx, a| at_least(cx, a, 2),
    view "aten.atleast_3d.default" => |cx, a| at_least(cx, a, 3),
    pure "aten.atleast_1d.Sequence" => |cx, a| all_at_least(cx, a, 1),
    pure "aten.atleast_2d.Sequence" => |cx, a| all_at_least(cx, a, 2),
    pure "aten.atleast_3d.Sequence" => |cx, a| all_at_least(cx, a, 3),
}

fn same(_: &mut Context, a: &Args) -> Rule {
    Ok(a.tensor("self")?.into())
}

/// Replaces the one size -1, if there is one, by what `numel` elements leave for it.
pub(crate) fn infer_size(cx: &Context, sizes: &[Expr], numel: &Expr) -> Result<Vec<Expr>, RuleError> {
    let Some(unknown) = sizes.iter().position(|size| size.is(-1)) else { return Ok(sizes.to_vec()) };
    let rest = Expr::product(sizes.iter().enumerate().filter(|(k, _)| *k != unknown).map(|(_, size)| size));
    if rest.is(0) || sizes.iter().filter(|size| size.is(-1)).count() > 1 {
        return Err(RuleError::Malformed("the size -1 cannot be inferred".to_owned()));
    }
    let mut sizes = sizes.to_vec();
    // PyTorch infers nothing from no elements, so that the others need not be positive.
    let inferred = numel.cofactor(&rest);
    sizes[unknown] = inferred.unwrap_or_else(|| numel.floor_div_in(&rest, cx.b.ranges()));
    Ok(sizes)
}

fn reshape(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let x = a.tensor("self")?;
    let numel = cx.b.ty(x).numel();
    let sizes = infer_size(cx, &a.syms(name)?, &numel)?;
    Ok(cx.b.reshape(x, &sizes)?.into())
}

/// Only where equal bits mean equal numbers modulo the type's range; there is no operator that reads bits anew.
fn reshape_as(cx: &mut Context, a: &Args) -> Rule {
    let (x, other) = (a.tensor("self")?, a.tensor("other")?);
    let shape = cx.b.shape(other);
    Ok(cx.b.reshape(x, &shape)?.into())
}

fn flatten(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let rank = cx.b.rank(x);
    let (from, to) =
        (Context::axis(a.int_or("start_dim", 0)?, rank)?, Context::axis(a.int_or("end_dim", -1)?, rank)?);
    if rank == 0 {
        return Ok(cx.at_least_1d(x)?.into());
    }
    if from > to {
        return Err(RuleError::Malformed("the first axis to flatten comes after the last".to_owned()));
    }
    Ok(cx.merge_axes(x, from, to + 1)?.into())
}

fn unflatten(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int("dim")?, cx.b.rank(x))?;
    let x = cx.at_least_1d(x)?;
    let size = cx.b.shape(x)[axis].clone();
    let sizes = infer_size(cx, &a.syms("sizes")?, &size)?;
    Ok(cx.split_axis(x, axis, &sizes)?.into())
}

fn squeeze(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let shape = cx.b.shape(x);
    let mut axes: Vec<usize> = if a.has("dim") {
        a.ints("dim")?.iter().map(|axis| Context::axis(*axis, shape.len())).collect::<Result<_, _>>()?
    } else {
        (0..shape.len()).collect()
    };
    for size in axes.iter().filter_map(|axis| shape.get(*axis)).filter(|size| !size.is(1)) {
        // PyTorch would give a tensor of fewer axes, which what follows was not traced for.
        let other = Condition::compare(size.clone(), Relation::Ne, 1);
        cx.b.require(other, "an axis that is squeezed away if its size is 1, unlike in the export");
    }
    axes.retain(|axis| shape.get(*axis).is_some_and(|size| size.is(1)));
    Ok(cx.b.squeeze(x, &axes)?.into())
}

fn unsqueeze(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int("dim")?, cx.b.rank(x) + 1)?;
    Ok(cx.b.unsqueeze(x, axis)?.into())
}

fn swap(cx: &mut Context, a: &Args, first: i64, second: i64) -> Rule {
    let x = a.tensor("self")?;
    let rank = cx.b.rank(x);
    if rank == 0 {
        return Ok(x.into());
    }
    let (first, second) = (Context::axis(first, rank)?, Context::axis(second, rank)?);
    Ok(cx.b.transpose(x, first, second)?.into())
}

fn transpose_matrix(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    match cx.b.rank(x) {
        0 | 1 => Ok(x.into()),
        2 => Ok(cx.b.transpose(x, 0, 1)?.into()),
        rank => Err(RuleError::Malformed(format!("a tensor of {rank} axes is not a matrix"))),
    }
}

fn reverse_axes(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let order: Vec<usize> = (0..cx.b.rank(x)).rev().collect();
    Ok(cx.b.permute(x, &order)?.into())
}

fn permute(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let rank = cx.b.rank(x);
    let order: Vec<usize> =
        a.ints("dims")?.iter().map(|axis| Context::axis(*axis, rank)).collect::<Result<_, _>>()?;
    Ok(cx.b.permute(x, &order)?.into())
}

fn move_axes(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let rank = cx.b.rank(x);
    if rank == 0 {
        return Ok(x.into());
    }
    let normal = |name: &str| -> Result<Vec<usize>, RuleError> {
        a.ints(name)?.iter().map(|axis| Context::axis(*axis, rank)).collect()
    };
    let (sources, targets) = (normal("source")?, normal("destination")?);
    let mut order: Vec<Option<usize>> = vec![None; rank];
    for (source, target) in sources.iter().zip(&targets) {
        order[*target] = Some(*source);
    }
    let mut others = (0..rank).filter(|axis| !sources.contains(axis));
    let order: Vec<usize> =
        order.into_iter().map(|axis| axis.or_else(|| others.next()).unwrap_or(0)).collect();
    Ok(cx.b.permute(x, &order)?.into())
}

fn expand(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let (own, mut sizes) = (cx.b.shape(x), a.syms("size")?);
    if sizes.len() < own.len() {
        return Err(RuleError::Malformed(format!("{} sizes for {} axes", sizes.len(), own.len())));
    }
    let lead = sizes.len() - own.len();
    for (size, kept) in sizes[lead..].iter_mut().zip(&own) {
        if size.is(-1) {
            *size = kept.clone();
        }
    }
    Ok(cx.b.expand(x, &sizes)?.into())
}

fn expand_as(cx: &mut Context, a: &Args) -> Rule {
    let (x, other) = (a.tensor("self")?, a.tensor("other")?);
    let shape = cx.b.shape(other);
    Ok(cx.b.expand(x, &shape)?.into())
}

fn broadcast_tensors(cx: &mut Context, a: &Args) -> Rule {
    let tensors = a.tensors("tensors")?;
    let shape = cx.b.broadcast_shapes(&tensors)?;
    let all = tensors.into_iter().map(|x| cx.b.expand(x, &shape)).collect::<Result<_, _>>()?;
    Ok(Outputs::List(all))
}

/// Tensors along one axis each, broadcast against each other.
pub(crate) fn grid(cx: &mut Context, tensors: &[ValueId], swap: bool) -> Result<Vec<ValueId>, RuleError> {
    let rank = tensors.len();
    let lines: Vec<ValueId> = tensors.iter().map(|x| cx.flattened(*x)).collect::<Result<_, _>>()?;
    let position = |k: usize| match k {
        0 | 1 if swap && rank >= 2 => 1 - k,
        _ => k,
    };
    let mut shape = vec![Expr::int(1); rank];
    for (k, line) in lines.iter().enumerate() {
        shape[position(k)] = cx.b.shape(*line)[0].clone();
    }
    let mut grids = Vec::new();
    for (k, line) in lines.iter().enumerate() {
        grids.push(cx.b.view(*line, &shape, vec![Expr::axis(position(k))])?);
    }
    Ok(grids)
}

fn meshgrid(cx: &mut Context, a: &Args) -> Rule {
    let tensors = a.tensors("tensors")?;
    let swap = match a.str_or("indexing", "ij")? {
        "ij" => false,
        "xy" => true,
        other => return Err(RuleError::Malformed(format!("indexing `{other}`"))),
    };
    Ok(Outputs::List(grid(cx, &tensors, swap)?))
}

/// At least `rank` axes, new ones where `torch.atleast_<rank>d` puts them.
pub(crate) fn with_rank(cx: &mut Context, x: ValueId, rank: usize) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    let one = || Expr::int(1);
    let shape = match (rank, own.as_slice()) {
        (1, []) => vec![one()],
        (2, []) => vec![one(), one()],
        (2, [n]) => vec![one(), n.clone()],
        (3, []) => vec![one(), one(), one()],
        (3, [n]) => vec![one(), n.clone(), one()],
        (3, [n, m]) => vec![n.clone(), m.clone(), one()],
        _ => return Ok(x),
    };
    Ok(cx.b.reshape(x, &shape)?)
}

fn at_least(cx: &mut Context, a: &Args, rank: usize) -> Rule {
    let x = a.tensor("self")?;
    Ok(with_rank(cx, x, rank)?.into())
}

fn all_at_least(cx: &mut Context, a: &Args, rank: usize) -> Rule {
    let tensors = a.tensors("tensors")?;
    Ok(Outputs::List(tensors.into_iter().map(|x| with_rank(cx, x, rank)).collect::<Result<_, _>>()?))
}
