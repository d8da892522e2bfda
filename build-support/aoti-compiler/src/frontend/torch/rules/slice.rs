//! Views of parts of an axis: picks, slices and splits.

use super::registry::rules;
use super::support::{count, fixed, length};
use super::{Args, Context, Outputs, RuleError};
use crate::frontend::torch::aten::{Output, TensorMeta};
use crate::graph::{BinaryOp, Condition, Coord, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    view "aten.select.int" => select,
    pure "aten.select_copy.int" => select,
    view "aten.slice.Tensor" => slice,
    pure "aten.slice_copy.Tensor" => slice,
    view "aten.narrow.default" => narrow,
    pure "aten.narrow_copy.default" => narrow,
    pure "aten.narrow.Tensor" => narrow_at,
    view "aten.split.Tensor" => split,
    view "aten.split.sizes" => |cx, a| split_sizes(cx, a, "split_size"),
    view "aten.split.default" => |cx, a| split_sizes(cx, a, "split_sizes"),
    pure "aten.split_copy.Tensor" => split,
    pure "aten.unsafe_split.Tensor" => split,
    view "aten.split_with_sizes.default" => |cx, a| split_sizes(cx, a, "split_sizes"),
    pure "aten.split_with_sizes_copy.default" => |cx, a| split_sizes(cx, a, "split_sizes"),
    pure "aten.unsafe_split_with_sizes.default" => |cx, a| split_sizes(cx, a, "split_sizes"),
    view "aten.chunk.default" => chunk,
    pure "aten.unsafe_chunk.default" => chunk,
    view "aten.tensor_split.sections" => |cx, a| even_parts(cx, a, a.int_or("dim", 0)?, false),
    view "aten.tensor_split.indices" => |cx, a| parts_at(cx, a, a.int_or("dim", 0)?),
    pure "aten.tensor_split.tensor_indices_or_sections" => parts_at_data,
    view "aten.hsplit.int" => |cx, a| { let axis = horizontal(cx, a)?; even_parts(cx, a, axis, true) },
    view "aten.hsplit.array" => |cx, a| { let axis = horizontal(cx, a)?; parts_at(cx, a, axis) },
    view "aten.vsplit.int" => |cx, a| even_parts(cx, a, 0, true),
    view "aten.vsplit.array" => |cx, a| parts_at(cx, a, 0),
    view "aten.dsplit.int" => |cx, a| even_parts(cx, a, 2, true),
    view "aten.dsplit.array" => |cx, a| parts_at(cx, a, 2),
    view "aten.unbind.int" => unbind,
    pure "aten.unbind_copy.int" => unbind,
}

fn select(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int("dim")?, cx.b.rank(x))?;
    let Some(size) = cx.b.shape(x).get(axis).cloned() else {
        return Err(RuleError::Malformed("a tensor without axes has nothing to select".to_owned()));
    };
    let index = a.sym("index")?;
    if let Some(index) = index.as_int() {
        // Also where nothing is read.
        let least = if index < 0 { index.saturating_neg() } else { index.saturating_add(1) };
        cx.b.require(Condition::compare(size.clone(), Relation::Ge, least), "an index beyond its axis");
    }
    let position = cx.b.wrapped(&index, &size);
    Ok(cx.b.pick(x, axis, &position)?.into())
}

/// First position and number of positions of a Python slice.
pub(crate) struct Span {
    pub(crate) axis: usize,
    pub(crate) start: Expr,
    pub(crate) length: Expr,
    pub(crate) step: Expr,
}

pub(crate) fn span(cx: &mut Context, a: &Args, x: ValueId) -> Result<Span, RuleError> {
    let axis = Context::axis(a.int_or("dim", 0)?, cx.b.rank(x))?;
    let size = cx.b.shape(x).get(axis).cloned().unwrap_or_else(|| Expr::int(1));
    let step = a.opt_sym("step")?.unwrap_or_else(|| Expr::int(1));
    if step.as_int().is_some_and(|step| step <= 0) {
        return Err(RuleError::Malformed(format!("step {step}")));
    }
    let condition = Condition::compare(step.clone(), Relation::Ge, 1);
    cx.b.require(condition, "the step of a slice must be positive");
    let step = step.maximum_in(&Expr::int(1), cx.b.ranges());
    let clamp = |bound: Option<Expr>, default: &Expr| match bound {
        None => default.clone(),
        Some(bound) if bound.as_int().is_some_and(|b| b == i64::MAX) => size.clone(),
        Some(bound) => clamped(cx, &bound, &size),
    };
    let start = clamp(a.opt_sym("start")?, &Expr::int(0));
    let end = clamp(a.opt_sym("end")?, &size);
    let length = (&end - &start).ceil_div(&step, cx.b.ranges());
    let length = cx.b.larger(&length, &Expr::int(0));
    Ok(Span { axis, start, length, step })
}

/// A boundary as a position in `0 ..= size`, negative ones counted from the end.
fn clamped(cx: &Context, bound: &Expr, size: &Expr) -> Expr {
    let bound = cx.b.larger(&cx.b.wrapped(bound, size), &Expr::int(0));
    cx.b.smaller(&bound, size)
}

fn slice(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let span = span(cx, a, x)?;
    Ok(cx.b.slice(x, span.axis, &span.start, &span.length, span.step)?.into())
}

fn narrow(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int("dim")?, cx.b.rank(x))?;
    let size = cx.b.shape(x).get(axis).cloned().unwrap_or_else(|| Expr::int(1));
    let start = cx.b.wrapped(&a.sym("start")?, &size);
    Ok(cx.b.slice(x, axis, &start, &a.sym("length")?, 1)?.into())
}

/// A slice whose start is data.
fn slice_at(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    start: ValueId,
    length: &Expr,
) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(x);
    let rank = shape.len();
    shape[axis] = length.clone();
    let offsets = cx.b.index(Expr::axis(axis), &shape);
    let start = cx.b.cast(start, crate::dtype::DType::I64);
    let positions = cx.add(offsets, start)?;
    let coords =
        (0..rank).map(|k| if k == axis { Coord::Wrapped(0) } else { Coord::Expr(Expr::axis(k)) }).collect();
    Ok(cx.b.gather(x, &[positions], coords, &shape)?)
}

fn narrow_at(cx: &mut Context, a: &Args) -> Rule {
    let (x, start) = (a.tensor("self")?, a.tensor("start")?);
    let axis = Context::axis(a.int("dim")?, cx.b.rank(x))?;
    let start = cx.b.reshape(start, &[])?;
    Ok(slice_at(cx, x, axis, start, &a.sym("length")?)?.into())
}

/// What the program says of the tensors of a list output.
fn listed<'a>(a: &Args<'a>) -> Vec<Option<&'a TensorMeta>> {
    let names: Vec<&String> = match a.call.outputs.as_slice() {
        [Output::Tensors(names)] => names.iter().collect(),
        outputs => outputs
            .iter()
            .filter_map(|output| if let Output::Tensor(name) = output { Some(name) } else { None })
            .collect(),
    };
    names.into_iter().map(|name| a.program.tensors.get(name)).collect()
}

/// Consecutive parts of the given lengths.
fn parts(cx: &mut Context, x: ValueId, axis: usize, lengths: &[Expr]) -> Rule {
    let mut start = Expr::int(0);
    let mut values = Vec::new();
    for length in lengths {
        values.push(cx.b.slice(x, axis, &start, length, 1)?);
        start = &start + length;
    }
    Ok(Outputs::List(values))
}

fn split(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int_or("dim", 0)?, cx.b.rank(x))?;
    parts_of(cx, a, x, axis, &a.sym("split_size")?)
}

/// Parts of `part` positions each, the last one shorter. Their number is the program's where sizes are symbolic.
fn parts_of(cx: &mut Context, a: &Args, x: ValueId, axis: usize, part: &Expr) -> Rule {
    let size = cx.b.shape(x).get(axis).cloned().unwrap_or_else(|| Expr::int(1));
    let number = match (size.as_int(), part.as_int()) {
        (Some(0), _) | (_, Some(0)) => 1,
        (Some(size), Some(part)) => size.div_euclid(part) + i64::from(size % part != 0),
        _ => {
            // The program counts on a number of parts, so the last one has at least one position.
            let number = length(listed(a).len());
            let message = "the number of parts must be the one that the program was exported with";
            let whole = Condition::compare(part * (number - 1).max(0), Relation::Lt, size.clone());
            let covered = Condition::compare(part * number, Relation::Ge, size.clone());
            let empty = Condition::compare(size.clone(), Relation::Eq, 0);
            let fits = Condition::all([whole, covered]);
            cx.b.require(if number == 1 { Condition::any([fits, empty]) } else { fits }, message);
            number
        }
    };
    let mut lengths = Vec::new();
    for k in 0..number {
        let start = part * k;
        let rest = &size - &start;
        // All parts but the last are known to be whole.
        lengths.push(if k + 1 < number { part.clone() } else { cx.b.smaller(part, &rest) });
    }
    parts(cx, x, axis, &lengths)
}

fn split_sizes(cx: &mut Context, a: &Args, name: &str) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int_or("dim", 0)?, cx.b.rank(x))?;
    let lengths = a.syms(name)?;
    let total = lengths.iter().fold(Expr::int(0), |total, length| &total + length);
    for length in &lengths {
        let condition = Condition::compare(length.clone(), Relation::Ge, 0);
        cx.b.require(condition, "the length of a part must not be negative");
    }
    if let Some(size) = cx.b.shape(x).get(axis).cloned() {
        cx.b.require_same(&total, &size)?;
    }
    parts(cx, x, axis, &lengths)
}

fn chunk(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int_or("dim", 0)?, cx.b.rank(x))?;
    let chunks = a.int("chunks")?;
    let size = cx.b.shape(x).get(axis).cloned().unwrap_or_else(|| Expr::int(1));
    if chunks <= 0 {
        return Err(RuleError::Malformed(format!("{chunks} chunks")));
    }
    if size.is(0) {
        return parts(cx, x, axis, &vec![Expr::int(0); count(chunks)?]);
    }
    let part = size.ceil_div(&Expr::int(chunks), cx.b.ranges());
    parts_of(cx, a, x, axis, &part)
}

fn horizontal(cx: &mut Context, a: &Args) -> Result<i64, RuleError> {
    Ok(if cx.b.rank(a.tensor("self")?) == 1 { 0 } else { 1 })
}

/// `sections` parts whose sizes differ by at most one, larger ones first.
fn even_parts(cx: &mut Context, a: &Args, axis: i64, exact: bool) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(axis, cx.b.rank(x))?;
    let sections = a.int("sections")?;
    if sections <= 0 {
        return Err(RuleError::Malformed(format!("{sections} sections")));
    }
    even_lengths(cx, x, axis, sections, exact)
}

fn even_lengths(cx: &mut Context, x: ValueId, axis: usize, sections: i64, exact: bool) -> Rule {
    let size = cx.b.shape(x)[axis].clone();
    let part = size.floor_div_in(&Expr::int(sections), cx.b.ranges());
    let lengths: Vec<Expr> = match (size.as_int(), exact) {
        (_, true) => vec![part; count(sections)?],
        (Some(size), false) => {
            (0..sections).map(|k| Expr::int(size / sections + i64::from(k < size % sections))).collect()
        }
        (None, false) => {
            let extra = size.modulo_in(&Expr::int(sections), cx.b.ranges());
            // min(max(extra - k, 0), 1) is 1 for the first `extra` parts.
            let more = |k: i64| (&extra - k).maximum(&Expr::int(0)).minimum(&Expr::int(1));
            (0..sections).map(|k| &part + &more(k)).collect()
        }
    };
    parts(cx, x, axis, &lengths)
}

fn parts_at(cx: &mut Context, a: &Args, axis: i64) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(axis, cx.b.rank(x))?;
    let size = cx.b.shape(x)[axis].clone();
    let mut values = Vec::new();
    let mut start = Expr::int(0);
    let indices = a.syms("indices")?;
    for bound in indices.iter().map(Some).chain([None]) {
        let end = match bound {
            Some(bound) => clamped(cx, bound, &size),
            None => size.clone(),
        };
        let length = cx.b.larger(&(&end - &start), &Expr::int(0));
        values.push(cx.b.slice(x, axis, &start, &length, 1)?);
        start = end;
    }
    Ok(Outputs::List(values))
}

/// Sections or boundaries given as data: the lengths of the parts are read into the program's symbols.
fn parts_at_data(cx: &mut Context, a: &Args) -> Rule {
    let (x, at) = (a.tensor("self")?, a.tensor("tensor_indices_or_sections")?);
    let axis = Context::axis(a.int_or("dim", 0)?, cx.b.rank(x))?;
    let outputs = listed(a);
    if cx.b.rank(at) == 0 {
        return even_lengths(cx, x, axis, length(outputs.len()), false);
    }
    let size = cx.b.shape(x)[axis].clone();
    let size_value = cx.b.index(size.clone(), &[]);
    let zero = cx.b.scalar(0i64, crate::dtype::DType::I64);
    let boundaries = fixed(&cx.b.shape(at), "a list of boundaries")?[0];
    let mut start = zero;
    let mut values = Vec::new();
    for k in 0..=boundaries {
        let end = if k == boundaries { size_value } else { cx.b.pick(at, 0, &Expr::int(k))? };
        let end = bounded(cx, end, zero, size_value)?;
        let gap = cx.sub(end, start)?;
        let gap = cx.binary(crate::graph::BinaryOp::Maximum, gap, zero)?;
        let meta = outputs.get(count(k)?).copied().flatten();
        let Some(length) = meta.and_then(|meta| meta.sizes.get(axis)).cloned() else {
            return Err(RuleError::Malformed("the sizes of the parts are not described".to_owned()));
        };
        super::support::read_size(cx, gap, &length, Some(&size))?;
        values.push(slice_at(cx, x, axis, start, &length)?);
        start = end;
    }
    Ok(Outputs::List(values))
}

/// A boundary as a position in `0 ..= size`, negative ones counted from the end.
fn bounded(cx: &mut Context, at: ValueId, zero: ValueId, size: ValueId) -> Result<ValueId, RuleError> {
    let at = cx.b.cast(at, crate::dtype::DType::I64);
    let negative = cx.binary(Relation::Lt, at, zero)?;
    let from_end = cx.add(at, size)?;
    let at = cx.b.select(negative, from_end, at)?;
    let at = cx.binary(BinaryOp::Maximum, at, zero)?;
    cx.binary(BinaryOp::Minimum, at, size)
}

fn unbind(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let axis = Context::axis(a.int_or("dim", 0)?, cx.b.rank(x))?;
    let size = match cx.b.shape(x).get(axis).map(Expr::as_int) {
        Some(Some(size)) => size,
        Some(None) => length(listed(a).len()),
        None => return Err(RuleError::Malformed("a tensor without axes has no parts".to_owned())),
    };
    let values = (0..size).map(|k| cx.b.pick(x, axis, &Expr::int(k))).collect::<Result<Vec<_>, _>>()?;
    Ok(Outputs::List(values))
}
