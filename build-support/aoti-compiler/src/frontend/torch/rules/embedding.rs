//! Look-ups in tables of rows, alone and summed over bags.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, Coord, IntBinary, Op, ReduceOp, Relation, UnaryOp, ValueId};
use crate::symbolic::{Expr, Symbol};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.embedding.default" => |cx, a| {
        let (table, indices) = (a.tensor("weight")?, a.tensor("indices")?);
        Ok(embedding(cx, table, indices)?.into())
    },
    inplace "aten.embedding_renorm_.default" => renorm,
    pure "aten.embedding_renorm.default" => renorm,
    pure "aten.embedding_bag.default" => bag,
    pure "aten.embedding_bag.padding_idx" => bag,
    pure "aten._embedding_bag.default" => bag,
    pure "aten._embedding_bag_forward_only.default" => bag,
}

/// Rows of a table that the model gives.
pub(crate) fn embedding(cx: &mut Context, table: ValueId, indices: ValueId) -> Result<ValueId, RuleError> {
    if cx.b.rank(table) == 0 {
        return Err(RuleError::Malformed("the table has no axes".to_owned()));
    }
    Ok(cx.b.rows(table, indices)?)
}

/// Scales down the rows that are looked up and whose norm exceeds the limit.
fn renorm(cx: &mut Context, a: &Args) -> Rule {
    let (table, indices) = (a.tensor("self")?, a.tensor("indices")?);
    let (limit, order) = (a.float_or("max_norm", 1.0)?, a.float_or("norm_type", 2.0)?);
    let ty = cx.b.ty(table).clone();
    let wide = cx.b.cast(table, ty.dtype.compute());
    let magnitude = cx.unary(UnaryOp::Abs, wide);
    let norm = if order.is_infinite() {
        cx.b.reduce(ReduceOp::Max, magnitude, &[1], true)?
    } else {
        let powers = cx.with_number(BinaryOp::Pow, magnitude, order)?;
        let total = cx.sum(powers, &[1], true)?;
        cx.with_number(BinaryOp::Pow, total, 1.0 / order)?
    };
    let indices = cx.flattened(indices)?;
    let unseen = cx.b.full(false, DType::Bool, &[ty.shape[0].clone()]);
    let hits = cx.b.shape(indices);
    let hits = cx.b.full(true, DType::Bool, &hits);
    let seen = cx.b.scatter(unseen, hits, &[indices], vec![Coord::Indirect(0)], Combine::Set)?;
    let seen = cx.b.unsqueeze(seen, 1)?;
    let long = cx.with_number(Relation::Gt, norm, limit)?;
    let scaled = cx.binary(IntBinary::And, long, seen)?;
    let divisor = cx.with_number(BinaryOp::Add, norm, 1e-7)?;
    let limit = cx.b.full_like(limit, divisor);
    let factor = cx.div(limit, divisor)?;
    let shorter = cx.mul(wide, factor)?;
    let result = cx.b.select(scaled, shorter, wide)?;
    Ok(cx.b.cast(result, ty.dtype).into())
}

/// The entries of all bags: their rows, the bag of each, and which of them count.
struct Entries {
    rows: ValueId,
    bag: ValueId,
    counts: Option<ValueId>,
    bags: Expr,
    /// The bags, and a last one for entries behind the last offset, which are in none, where it is an end.
    slots: Expr,
    /// The entries of every bag, where all have as many.
    each: Option<Expr>,
}

fn bag(cx: &mut Context, a: &Args) -> Rule {
    let dtype = cx.b.dtype(a.tensor("weight")?);
    let entries = entries(cx, a)?;
    let result = match a.int_or("mode", 0)? {
        0 => summed(cx, a, &entries)?,
        1 => averaged(cx, &entries)?,
        2 => largest(cx, &entries)?,
        mode => return Err(RuleError::Malformed(format!("mode {mode}"))),
    };
    let result = cx.b.cast(result, dtype);
    Ok(Outputs::Many(vec![Some(result), None, None, None]))
}

fn entries(cx: &mut Context, a: &Args) -> Result<Entries, RuleError> {
    let (table, mut indices, offsets) = (a.tensor("weight")?, a.tensor("indices")?, a.tensor("offsets")?);
    if cx.b.rank(indices) != 1 || cx.b.rank(offsets) != 1 || cx.b.rank(table) != 2 {
        return Err(RuleError::unsupported(
            "bags need a table of rows, a list of indices and a list of offsets",
        ));
    }
    indices = cx.b.cast(indices, DType::I64);
    let offsets = cx.b.cast(offsets, DType::I64);
    let slots = cx.b.shape(offsets)[0].clone();
    let bags = if a.bool_or("include_last_offset", false)? { &slots - 1 } else { slots.clone() };
    let count = cx.b.shape(indices)[0].clone();
    let each = entries_of_each(cx, offsets).filter(|each| cx.b.same_size(&(each * &bags), &count));
    if each.is_none() {
        require_offsets(cx, offsets, &count)?;
    }
    // The bag of entry i is the last one that starts at or before i.
    let positions = cx.b.index(Expr::axis(0), &cx.b.shape(indices));
    let after = cx.b.search_sorted(offsets, positions, true)?;
    let bag = cx.with_number(BinaryOp::Sub, after, 1i64)?;
    let table_rows = cx.b.shape(table)[0].clone();
    let counts = match padding_row(a, &table_rows)? {
        Some(row) => Some(cx.with_number(Relation::Ne, indices, row)?),
        None => None,
    };
    let rows = cx.b.rows(table, indices)?;
    let wide = cx.b.dtype(rows).compute();
    Ok(Entries { rows: cx.b.cast(rows, wide), bag, counts, bags, slots, each })
}

/// How far apart offsets are, if they are multiples of a size: those of a matrix of indices, whose rows are bags.
fn entries_of_each(cx: &Context, offsets: ValueId) -> Option<Expr> {
    let Op::Index(expr) = &cx.b.producer(offsets)?.op else { return None };
    let axis = Symbol::axis(0);
    let (step, rest) = expr.affine_in(axis)?;
    (rest.is(0) && !step.mentions(axis)).then_some(step)
}

/// The first offset is 0, none is smaller than the one before it, and none is beyond the entries.
fn require_offsets(cx: &mut Context, offsets: ValueId, entries: &Expr) -> Result<(), RuleError> {
    let shape = cx.b.shape(offsets);
    let before = Expr::axis(0) - Expr::int(1);
    let before = cx.b.view(offsets, &shape, vec![cx.b.larger(&before, &Expr::int(0))])?;
    let rises = cx.binary(Relation::Ge, offsets, before)?;
    let end = cx.b.index(entries.clone(), &shape);
    let ends = cx.binary(Relation::Le, offsets, end)?;
    let is_later = cx.index_is(Relation::Gt, Expr::axis(0), &shape)?;
    let is_start = cx.with_number(Relation::Eq, offsets, 0i64)?;
    let begins = cx.binary(IntBinary::Or, is_later, is_start)?;
    let within = cx.binary(IntBinary::And, rises, ends)?;
    let valid = cx.binary(IntBinary::And, within, begins)?;
    cx.assert_all(valid, "offsets of bags must begin with 0, not fall, and not be beyond the indices")
}

/// The row that does not count, if any.
fn padding_row(a: &Args, rows: &Expr) -> Result<Option<i64>, RuleError> {
    let optional = a.target().ends_with(".padding_idx");
    match a.opt_int("padding_idx")? {
        Some(row) if row >= 0 => Ok(Some(row)),
        Some(row) if optional => {
            let rows = rows.as_int().ok_or_else(|| RuleError::unsupported("a table of symbolic height"))?;
            Ok(Some(row + rows))
        }
        Some(_) | None => Ok(None),
    }
}

/// Combines the rows of each bag into `base`.
fn combine(
    cx: &mut Context,
    entries: &Entries,
    updates: ValueId,
    start: f64,
    how: Combine,
) -> Result<ValueId, RuleError> {
    let ty = cx.b.ty(updates).clone();
    if let Some(each) = &entries.each {
        let op = match how {
            Combine::Add => ReduceOp::Sum,
            Combine::Max => ReduceOp::Max,
            Combine::Set | Combine::Mul | Combine::Min => unreachable!("bags are added up or compared"),
        };
        let bags = cx.b.reshape(updates, &[entries.bags.clone(), each.clone(), ty.shape[1].clone()])?;
        return Ok(cx.b.reduce(op, bags, &[1], false)?);
    }
    let base = cx.b.full(start, ty.dtype, &[entries.slots.clone(), ty.shape[1].clone()]);
    let bag = cx.b.unsqueeze(entries.bag, 1)?;
    let coords = vec![Coord::Indirect(0), Coord::Expr(Expr::axis(1))];
    let slots = cx.b.scatter(base, updates, &[bag], coords, how)?;
    Ok(cx.b.slice(slots, 0, &Expr::int(0), &entries.bags, 1)?)
}

/// Rows with `other` in place of those that do not count.
fn counted(cx: &mut Context, entries: &Entries, other: f64) -> Result<ValueId, RuleError> {
    let Some(counts) = entries.counts else { return Ok(entries.rows) };
    let counts = cx.b.unsqueeze(counts, 1)?;
    let other = cx.b.full_like(other, entries.rows);
    Ok(cx.b.select(counts, entries.rows, other)?)
}

fn summed(cx: &mut Context, a: &Args, entries: &Entries) -> Result<ValueId, RuleError> {
    let mut updates = counted(cx, entries, 0.0)?;
    if let Some(weights) = a.opt_tensor("per_sample_weights")? {
        let dtype = cx.b.dtype(updates);
        let weights = cx.b.cast(weights, dtype);
        let weights = cx.b.unsqueeze(weights, 1)?;
        updates = cx.mul(updates, weights)?;
    }
    combine(cx, entries, updates, 0.0, Combine::Add)
}

/// How many entries of each bag count, as a column.
fn bag_sizes(cx: &mut Context, entries: &Entries) -> Result<ValueId, RuleError> {
    let ty = cx.b.ty(entries.rows).clone();
    let column = [ty.shape[0].clone(), Expr::int(1)];
    let ones = match entries.counts {
        Some(counts) => {
            let counts = cx.b.cast(counts, ty.dtype);
            cx.b.unsqueeze(counts, 1)?
        }
        None => cx.b.full(1.0, ty.dtype, &column),
    };
    combine(cx, entries, ones, 0.0, Combine::Add)
}

fn averaged(cx: &mut Context, entries: &Entries) -> Result<ValueId, RuleError> {
    let updates = counted(cx, entries, 0.0)?;
    let sums = combine(cx, entries, updates, 0.0, Combine::Add)?;
    let sizes = bag_sizes(cx, entries)?;
    let sizes = cx.with_number(BinaryOp::Maximum, sizes, 1.0)?;
    cx.div(sums, sizes)
}

fn largest(cx: &mut Context, entries: &Entries) -> Result<ValueId, RuleError> {
    let updates = counted(cx, entries, f64::NEG_INFINITY)?;
    let peaks = combine(cx, entries, updates, f64::NEG_INFINITY, Combine::Max)?;
    let sizes = bag_sizes(cx, entries)?;
    let empty = cx.with_number(Relation::Eq, sizes, 0.0)?;
    let zero = cx.b.full_like(0.0, peaks);
    Ok(cx.b.select(empty, zero, peaks)?)
}
