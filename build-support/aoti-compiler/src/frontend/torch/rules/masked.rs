//! Masks and the positions of non-zero elements.
//!
//! A mask stands for the positions of its true elements: the k-th one is where the running count reaches k + 1, found
//! by binary search. Results whose size depends on data get it through a symbol of the program.

use super::registry::rules;
use super::support::read_size;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Relation, ScanOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.masked_select.default" => masked_select,
    pure "aten.masked_scatter.default" => masked_scatter,
    pure "aten.nonzero.default" => nonzero,
    pure "aten.argwhere.default" => nonzero,
    pure "aten.nonzero_numpy.default" => nonzero_columns,
    pure "aten.where.default" => nonzero_columns,
    pure "aten.nonzero_static.default" => nonzero_static,
}

/// Linear positions of the first `size` true elements of a mask, and their number. Beyond the last one the position is
/// the number of elements.
pub(crate) fn linear_hits(
    cx: &mut Context,
    mask: ValueId,
    size: &Expr,
    read: bool,
) -> Result<(ValueId, ValueId), RuleError> {
    let flags = cx.b.cast(mask, DType::Bool);
    let ones = cx.b.cast(flags, DType::I64);
    let ones = cx.flattened(ones)?;
    let total = cx.sum(ones, &[0], false)?;
    if read {
        let most = cx.b.ty(ones).numel();
        read_size(cx, total, size, Some(&most))?;
    }
    let running = cx.b.scan(ScanOp::Sum, ones, 0)?[0];
    let wanted = cx.b.index(&Expr::axis(0) + 1, std::slice::from_ref(size));
    Ok((cx.b.search_sorted(running, wanted, false)?, total))
}

/// For each axis of a mask, the coordinates of its true elements.
pub(crate) fn hits(
    cx: &mut Context,
    mask: ValueId,
    size: &Expr,
    read: bool,
) -> Result<(Vec<ValueId>, ValueId), RuleError> {
    let shape = cx.b.shape(mask);
    let (mut rest, total) = linear_hits(cx, mask, size, read)?;
    let mut lines = Vec::new();
    for (axis, extent) in shape.iter().enumerate().rev() {
        if axis == 0 {
            lines.push(rest);
            break;
        }
        let extent = cx.b.index(extent.maximum(&Expr::int(1)), &[]);
        lines.push(cx.binary(BinaryOp::Remainder, rest, extent)?);
        rest = cx.binary(BinaryOp::FloorDiv, rest, extent)?;
    }
    lines.reverse();
    Ok((lines, total))
}

/// For each axis of a mask, the coordinates of its first `size` true elements, whose number is known to be that.
#[cfg(feature = "onnx")]
pub(crate) fn hits_of(cx: &mut Context, mask: ValueId, size: &Expr) -> Result<Vec<ValueId>, RuleError> {
    Ok(hits(cx, mask, size, false)?.0)
}

fn masked_select(cx: &mut Context, a: &Args) -> Rule {
    let (x, mask) = (a.tensor("self")?, a.tensor("mask")?);
    let shape = cx.b.broadcast_shapes(&[x, mask])?;
    let (x, mask) = (cx.b.expand(x, &shape)?, cx.b.expand(mask, &shape)?);
    let size = first_size(a)?;
    let (positions, _) = linear_hits(cx, mask, &size, true)?;
    let flat = cx.flattened(x)?;
    Ok(cx.b.rows(flat, positions)?.into())
}

fn first_size(a: &Args) -> Result<Expr, RuleError> {
    let size = a.output_meta(0).and_then(|meta| meta.sizes.first()).cloned();
    size.ok_or_else(|| RuleError::unsupported("the size of the result is not described"))
}

/// The k-th true element takes the k-th element of the source.
fn masked_scatter(cx: &mut Context, a: &Args) -> Rule {
    let (x, mask, source) = (a.tensor("self")?, a.tensor("mask")?, a.tensor("source")?);
    let shape = cx.b.broadcast_shapes(&[x, mask])?;
    let (x, mask) = (cx.b.expand(x, &shape)?, cx.b.expand(mask, &shape)?);
    if Expr::product(&shape).is(0) {
        return Ok(x.into());
    }
    let flags = cx.b.cast(mask, DType::Bool);
    let ones = cx.b.cast(flags, DType::I64);
    let flat = cx.flattened(ones)?;
    let running = cx.b.scan(ScanOp::Sum, flat, 0)?[0];
    let number = cx.b.reshape(running, &shape)?;
    // Elements that are not taken read one more in front, which is there where there are no others. So an element that the source
    // does not have is an index outside of it.
    let none = cx.b.full_like(0i64, number);
    let number = cx.b.select(flags, number, none)?;
    let source = cx.flattened(source)?;
    let source = cx.b.pad(source, &[(Expr::int(1), Expr::int(0))], 0i64)?;
    let taken = cx.b.rows(source, number)?;
    Ok(cx.b.select(flags, taken, x)?.into())
}

/// Whether each element differs from zero.
fn truth(cx: &mut Context, a: &Args) -> Result<ValueId, RuleError> {
    let x = a.tensor("self").or_else(|_| a.tensor("condition"))?;
    Ok(cx.b.cast(x, DType::Bool))
}

fn as_columns(cx: &mut Context, lines: &[ValueId], size: &Expr) -> Rule {
    if lines.is_empty() {
        return Ok(cx.b.full(0i64, DType::I64, &[size.clone(), Expr::int(0)]).into());
    }
    let columns = lines.iter().map(|line| cx.b.unsqueeze(*line, 1)).collect::<Result<Vec<_>, _>>()?;
    Ok(cx.b.cat(&columns, 1)?.into())
}

fn nonzero(cx: &mut Context, a: &Args) -> Rule {
    let (mask, size) = (truth(cx, a)?, first_size(a)?);
    let (lines, _) = hits(cx, mask, &size, true)?;
    as_columns(cx, &lines, &size)
}

fn nonzero_columns(cx: &mut Context, a: &Args) -> Rule {
    let mask = truth(cx, a)?;
    let mask = cx.at_least_1d(mask)?;
    let names = match a.call.outputs.first() {
        Some(crate::frontend::torch::aten::Output::Tensors(names)) => names.first(),
        _ => None,
    };
    let meta = names.and_then(|name| a.program.tensors.get(name));
    let Some(size) = meta.and_then(|meta| meta.sizes.first()) else {
        return Err(RuleError::unsupported("the size of the result is not described"));
    };
    let (lines, _) = hits(cx, mask, size, true)?;
    Ok(Outputs::List(lines))
}

fn nonzero_static(cx: &mut Context, a: &Args) -> Rule {
    let (mask, size) = (truth(cx, a)?, a.sym("size")?);
    let fill = a.int_or("fill_value", -1)?;
    let (lines, total) = hits(cx, mask, &size, false)?;
    let number = cx.b.index(Expr::axis(0), std::slice::from_ref(&size));
    let found = cx.binary(Relation::Lt, number, total)?;
    let mut columns = Vec::new();
    for line in lines {
        let fill = cx.b.full_like(fill, line);
        columns.push(cx.b.select(found, line, fill)?);
    }
    as_columns(cx, &columns, &size)
}
