//! Sequences and optionals. Their lengths are known when the model is compiled, so that nothing is left of them in the graph.

use super::super::call::{Call, malformed, unsupported};
use super::super::value::Val;
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::gather::index_select;
use crate::graph::ValueId;
use crate::symbolic::Expr;

operators! { "";
    "SequenceEmpty" => |_, _| Ok(vec![Val::Sequence(Vec::new())]),
    "SequenceConstruct" => |_, c| Ok(vec![Val::Sequence(c.inputs.clone())]),
    "SequenceInsert" => insert,
    "SequenceErase" => erase,
    "SequenceAt" => at,
    "SequenceLength" => length,
    "SplitToSequence" => split,
    "ConcatFromSequence" => concat,
    "SequenceMap" => map,
    "Optional" => |_, c| Ok(vec![c.input(0)]),
    "OptionalHasElement" => has_element,
    "OptionalGetElement" => get_element,
}

/// A position in a sequence of so many, negative ones counted from the end.
fn place(cx: &Onnx, position: Option<ValueId>, count: usize, default: i64) -> Result<usize, RuleError> {
    let position = match position {
        Some(position) => *cx.fixed(position, "a position in a sequence")?.first().unwrap_or(&default),
        None => default,
    };
    let count = i64::try_from(count).expect("a list in memory");
    let from_start = if position < 0 { position + count } else { position };
    usize::try_from(from_start)
        .map_err(|_| malformed(format!("position {position} is outside of the sequence")))
}

fn insert(cx: &mut Onnx, c: &Call) -> Rule {
    let mut all = c.sequence(0)?;
    let position = match c.opt_tensor(2)? {
        Some(position) => place(cx, Some(position), all.len(), 0)?,
        None => all.len(),
    };
    if position > all.len() {
        return Err(malformed("the position is outside of the sequence"));
    }
    all.insert(position, c.input(1));
    Ok(vec![Val::Sequence(all)])
}

fn erase(cx: &mut Onnx, c: &Call) -> Rule {
    let mut all = c.sequence(0)?;
    let position = place(cx, c.opt_tensor(1)?, all.len(), -1)?;
    if position >= all.len() {
        return Err(malformed("the position is outside of the sequence"));
    }
    all.remove(position);
    Ok(vec![Val::Sequence(all)])
}

/// Where the position is data, all elements have one shape.
fn at(cx: &mut Onnx, c: &Call) -> Rule {
    let all = c.sequence(0)?;
    let position = c.tensor(1)?;
    if cx.b.element(position).is_some() {
        let position = place(cx, Some(position), all.len(), 0)?;
        let value = all.get(position).cloned();
        return Ok(vec![value.ok_or_else(|| malformed("the position is outside of the sequence"))?]);
    }
    let mut rows = Vec::new();
    for value in &all {
        let Val::Tensor(value) = value else {
            return Err(unsupported("a position among sequences that is data"));
        };
        rows.push(cx.b.unsqueeze(*value, 0)?);
    }
    let table = cx.b.cat(&rows, 0)?;
    let position = cx.b.cast(position, DType::I64);
    let position = cx.b.reshape(position, &[])?;
    let row = index_select(cx, table, 0, position)?;
    one(cx.b.squeeze(row, &[0])?)
}

fn length(cx: &mut Onnx, c: &Call) -> Rule {
    let count = i64::try_from(c.sequence(0)?.len()).expect("a list in memory");
    one(cx.b.scalar(count, DType::I64))
}

/// Parts of one size, of given sizes, or single elements.
fn split(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axis = axis_of(c.int("axis", 0)?, cx.b.rank(x))?;
    let total = cx.b.shape(x)[axis].as_int();
    let total =
        total.ok_or_else(|| unsupported("a sequence of as many parts as a size that is not known"))?;
    let (sizes, keeps) = match c.opt_tensor(1)? {
        None => (vec![1; usize::try_from(total).unwrap_or(0)], c.flag("keepdims", true)?),
        Some(split) => {
            let is_number = cx.b.rank(split) == 0;
            let sizes = cx.fixed(split, "sizes of parts")?;
            match sizes.as_slice() {
                [size] if is_number && *size > 0 => {
                    let whole = vec![*size; usize::try_from(total / size).unwrap_or(0)];
                    let rest = (total % size > 0).then_some(total % size);
                    (whole.into_iter().chain(rest).collect(), true)
                }
                _ => (sizes, true),
            }
        }
    };
    let (mut parts, mut start) = (Vec::new(), 0);
    for size in sizes {
        let mut part = cx.b.slice(x, axis, &Expr::int(start), &Expr::int(size), 1)?;
        if !keeps {
            part = cx.b.squeeze(part, &[axis])?;
        }
        parts.push(part.into());
        start += size;
    }
    Ok(vec![Val::Sequence(parts)])
}

fn concat(cx: &mut Onnx, c: &Call) -> Rule {
    let is_new = c.flag("new_axis", false)?;
    let mut values = Vec::new();
    for value in c.sequence(0)? {
        let Val::Tensor(value) = value else { return Err(malformed("an element is no tensor")) };
        values.push(value);
    }
    let first = *values.first().ok_or_else(|| unsupported("what a sequence without elements joins to"))?;
    let axis = axis_of(c.int("axis", 0)?, cx.b.rank(first) + usize::from(is_new))?;
    if is_new {
        for value in &mut values {
            *value = cx.b.unsqueeze(*value, axis)?;
        }
    }
    one(cx.b.cat(&values, axis)?)
}

/// A body for each element of a sequence; other sequences give it their own, tensors are the same for all.
fn map(cx: &mut Onnx, c: &Call) -> Rule {
    let body = c.graph("body")?;
    let count = c.sequence(0)?.len();
    let mut results = vec![Vec::new(); body.output.len()];
    for position in 0..count {
        let element = |value: &Val| match value {
            Val::Sequence(all) => all.get(position).cloned().unwrap_or(Val::Absent),
            Val::Absent | Val::Tensor(_) | Val::Poison => value.clone(),
        };
        let given = c.inputs.iter().map(element).collect();
        for (all, one) in results.iter_mut().zip(cx.inlined_body(body, given)?) {
            all.push(one);
        }
    }
    Ok(results.into_iter().map(Val::Sequence).collect())
}

fn has_element(cx: &mut Onnx, c: &Call) -> Rule {
    let is_there = !matches!(c.input(0), Val::Absent);
    one(cx.b.scalar(is_there, DType::Bool))
}

fn get_element(_: &mut Onnx, c: &Call) -> Rule {
    match c.input(0) {
        Val::Absent => Err(malformed("the optional has no element")),
        value @ (Val::Tensor(_) | Val::Sequence(_) | Val::Poison) => Ok(vec![value]),
    }
}
