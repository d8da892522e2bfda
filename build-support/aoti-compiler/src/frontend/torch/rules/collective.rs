//! Collectives of `torch.distributed` in the functional form that export writes. A run waits for each where it stands, so what
//! waits gives what it is given.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{CollectiveKind, RankReduction, ValueId};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "_c10d_functional.all_reduce.default" => |cx, a| one(cx, a, all_reduce(a)?),
    pure "_c10d_functional.all_reduce_coalesced.default" => |cx, a| each(cx, a, &all_reduce(a)?),
    pure "_c10d_functional.all_gather_into_tensor.default" => |cx, a| one(cx, a, all_gather(a)?),
    pure "_c10d_functional.all_gather_into_tensor_out.default" => |cx, a| into_out(cx, a, all_gather(a)?),
    pure "_c10d_functional.all_gather_into_tensor_coalesced.default" => |cx, a| each(cx, a, &all_gather(a)?),
    pure "_c10d_functional.reduce_scatter_tensor.default" => |cx, a| one(cx, a, reduce_scatter(a)?),
    pure "_c10d_functional.reduce_scatter_tensor_out.default" => |cx, a| into_out(cx, a, reduce_scatter(a)?),
    pure "_c10d_functional.reduce_scatter_tensor_coalesced.default" => |cx, a| each(cx, a, &reduce_scatter(a)?),
    pure "_c10d_functional.all_to_all_single.default" => |cx, a| one(cx, a, all_to_all(a)?),
    pure "_c10d_functional.broadcast.default" => |cx, a| one(cx, a, CollectiveKind::Broadcast { root: a.int("src")? }),
    pure "_c10d_functional_autograd.all_gather_into_tensor.default" => |cx, a| one(cx, a, all_gather(a)?),
    pure "_c10d_functional_autograd.reduce_scatter_tensor.default" => |cx, a| one(cx, a, reduce_scatter(a)?),
    pure "_c10d_functional_autograd.all_to_all_single.default" => |cx, a| one(cx, a, all_to_all(a)?),
    view "_c10d_functional.wait_tensor.default" => |_, a| Ok(a.tensor("tensor")?.into()),
    pure "_c10d_functional.wait_tensors.default" => |_, a| Ok(Outputs::List(a.tensors("tensors")?)),
}

fn all_reduce(a: &Args) -> Result<CollectiveKind, RuleError> {
    Ok(CollectiveKind::AllReduce(reduction(a)?))
}

fn all_gather(a: &Args) -> Result<CollectiveKind, RuleError> {
    Ok(CollectiveKind::AllGather { ranks: a.int("group_size")? })
}

fn reduce_scatter(a: &Args) -> Result<CollectiveKind, RuleError> {
    Ok(CollectiveKind::ReduceScatter { reduction: reduction(a)?, ranks: a.int("group_size")? })
}

fn all_to_all(a: &Args) -> Result<CollectiveKind, RuleError> {
    let (send, receive) = (a.syms("input_split_sizes")?, a.syms("output_split_sizes")?);
    Ok(CollectiveKind::AllToAll { send, receive })
}

fn reduction(a: &Args) -> Result<RankReduction, RuleError> {
    let name = a.str_or("reduce_op", "")?.to_lowercase();
    RankReduction::from_name(&name)
        .ok_or_else(|| RuleError::unsupported(format!("ranks that reduce by `{name}`")))
}

fn group<'a>(a: &Args<'a>) -> Result<&'a str, RuleError> {
    let name = a.str_or("group_name", "")?;
    if name.is_empty() { Err(RuleError::unsupported("a group without a name")) } else { Ok(name) }
}

fn of(cx: &mut Context, a: &Args, kind: CollectiveKind, x: ValueId) -> Result<ValueId, RuleError> {
    Ok(cx.b.collective(kind, group(a)?, x)?)
}

fn one(cx: &mut Context, a: &Args, kind: CollectiveKind) -> Rule {
    let x = a.tensor("input")?;
    Ok(of(cx, a, kind, x)?.into())
}

/// Of every tensor of a list, in its order.
fn each(cx: &mut Context, a: &Args, kind: &CollectiveKind) -> Rule {
    let results = a.tensors("inputs")?.into_iter().map(|x| of(cx, a, kind.clone(), x));
    Ok(Outputs::List(results.collect::<Result<_, _>>()?))
}

fn into_out(cx: &mut Context, a: &Args, kind: CollectiveKind) -> Rule {
    let x = a.tensor("input")?;
    let result = of(cx, a, kind, x)?;
    cx.overwrite("out", result);
    Ok(result.into())
}
