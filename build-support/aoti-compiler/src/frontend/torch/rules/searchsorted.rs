//! Searches in sorted sequences, membership and counting by value.

use super::registry::rules;
use super::sort::any_equal;
use super::{Args, Context, Operand, Outputs, RuleError};
use crate::dtype::DType;
use crate::frontend::torch::aten::Arg;
use crate::graph::{BinaryOp, Combine, Condition, Coord, ReduceOp, Relation, UnaryOp, ValueId};
use crate::symbolic::{Expr, Node};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.searchsorted.Tensor" => search_sorted,
    pure "aten.searchsorted.Scalar" => search_sorted,
    pure "aten.bucketize.Tensor" => bucketize,
    pure "aten.bucketize.Scalar" => bucketize,
    pure "aten.isin.Tensor_Tensor" => |cx, a| is_in(cx, a, "elements", "test_elements"),
    pure "aten.isin.Tensor_Scalar" => |cx, a| is_in(cx, a, "elements", "test_element"),
    pure "aten.isin.Scalar_Tensor" => |cx, a| is_in(cx, a, "element", "test_elements"),
    pure "aten.histc.default" => histc,
    pure "aten.bincount.default" => bincount,
}

fn search_sorted(cx: &mut Context, a: &Args) -> Rule {
    let (mut sorted, values) = (a.tensor("sorted_sequence")?, a.operand(&["self"], 1)?);
    if let Some(order) = a.opt_tensor("sorter")? {
        let shape = cx.b.shape(sorted);
        let last = shape.len() - 1;
        let coords = (0..shape.len())
            .map(|k| if k == last { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) })
            .collect();
        sorted = cx.b.gather(sorted, &[order], coords, &shape)?;
    }
    let right = a.bool_or("right", false)? || a.str_or("side", "left")? == "right";
    search(cx, a, sorted, &values, right)
}

fn bucketize(cx: &mut Context, a: &Args) -> Rule {
    let (sorted, values) = (a.tensor("boundaries")?, a.operand(&["self"], 0)?);
    search(cx, a, sorted, &values, a.bool_or("right", false)?)
}

fn search(cx: &mut Context, a: &Args, sorted: ValueId, values: &Operand, right: bool) -> Rule {
    let dtype = cx.operands_type(&[&Operand::Tensor(sorted), values])?;
    let sorted = cx.b.cast(sorted, dtype);
    let values = values.to_value(cx, dtype);
    let shape = cx.b.shape(values);
    let found = if cx.b.rank(sorted) == 1 {
        let flat = cx.flattened(values)?;
        let found = cx.b.search_sorted(sorted, flat, right)?;
        cx.b.reshape(found, &shape)?
    } else {
        cx.b.search_sorted(sorted, values, right)?
    };
    let dtype = if a.bool_or("out_int32", false)? { DType::I32 } else { DType::I64 };
    Ok(cx.b.cast(found, dtype).into())
}

fn is_in(cx: &mut Context, a: &Args, elements: &str, candidates: &str) -> Rule {
    let (x, candidates) = (a.operand(&[elements], 0)?, a.operand(&[candidates], 1)?);
    let dtype = cx.operands_type(&[&x, &candidates])?;
    let (x, candidates) = (x.to_value(cx, dtype), candidates.to_value(cx, dtype));
    let candidates = cx.flattened(candidates)?;
    let found = any_equal(cx, x, candidates)?;
    Ok(if a.bool_or("invert", false)? { cx.unary(UnaryOp::Not, found) } else { found }.into())
}

/// Counts of elements in `bins` equal intervals of `[min, max]`; the last is closed. Equal bounds stand for the range
/// of the data.
fn histc(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let dtype = cx.b.dtype(x);
    let bins = a.int_or("bins", 100)?;
    let (low, high) = (a.number_or("min", 0.0)?, a.number_or("max", 0.0)?);
    let flat = cx.flattened(x)?;
    let wide = cx.b.cast(flat, dtype.compute());
    let bounds = histogram_bounds(cx, wide, &low, &high)?;
    let operands = [wide, bounds[0], bounds[1]];
    let inside = cx.apply(operands, dtype.compute(), |[x, low, high]| x.ge(low).and(x.le(high)))?;
    let bin = cx.apply(operands, dtype.compute(), |[x, low, high]| {
        let last = bins as f64 - 1.0;
        ((x - &low) * (bins as f64) / (high - low)).trunc().max(0.0).min(last)
    })?;
    // Where the element is outside (or NaN), bin 0 is incremented by 0.
    let zero = cx.b.full_like(0.0, bin);
    let bin = cx.b.select(inside, bin, zero)?;
    let bin = cx.b.cast(bin, DType::I64);
    // Integers may be added in any order.
    let ones = cx.b.cast(inside, DType::I64);
    let base = cx.b.full(0i64, DType::I64, &[Expr::int(bins)]);
    let counts = cx.b.scatter(base, ones, &[bin], vec![Coord::Indirect(0)], Combine::Add)?;
    Ok(cx.b.cast(counts, dtype).into())
}

/// The bounds of a histogram, one above the other. Bounds that are not known to differ do where they are those of the data.
fn histogram_bounds(
    cx: &mut Context,
    x: ValueId,
    low: &Operand,
    high: &Operand,
) -> Result<[ValueId; 2], RuleError> {
    let dtype = cx.b.dtype(x);
    let given = [low.to_value(cx, dtype), high.to_value(cx, dtype)];
    let known = if let (Operand::Number(low), Operand::Number(high)) = (low, high) {
        Some((low.to_f64(), high.to_f64()))
    } else {
        let ordered =
            cx.apply(given, dtype, |[low, high]| low.le(&high).and(low.is_finite()).and(high.is_finite()))?;
        cx.b.assert(ordered, "the bounds of a histogram must be finite and in order")?;
        None
    };
    if known.is_some_and(|(low, high)| low != high) || cx.b.ty(x).numel().is(0) {
        return Ok(given);
    }
    let data = [cx.b.reduce(ReduceOp::Min, x, &[0], false)?, cx.b.reduce(ReduceOp::Max, x, &[0], false)?];
    let [low, high] = given;
    let mut bounds = Vec::new();
    for (own, apart) in [(0, -1.0), (1, 1.0)] {
        let operands = [low, high, given[own], data[0], data[1], data[own]];
        bounds.push(cx.apply(operands, dtype, |[low, high, given, least, most, data]| {
            // Of no element neither is finite, and the least is above the most.
            let spread = least.equals(&most).select(&data + apart, &data);
            low.equals(high).select(spread, given)
        })?);
    }
    let finite = cx.apply([low, high, data[0], data[1]], dtype, |[low, high, least, most]| {
        let exists = least.is_finite().and(most.is_finite()).or(least.gt(most));
        low.equals(high).not().or(exists)
    })?;
    cx.b.assert(finite, "a histogram of what is not finite")?;
    Ok([bounds[0], bounds[1]])
}

/// The size of the counts is at most this, where the element type says which integer is the largest that memory can be set
/// aside for.
fn most_counted(dtype: DType, least: &Expr) -> Option<i64> {
    let most: i64 = match dtype {
        DType::Bool => 2,
        DType::I8 => 1 << 7,
        DType::U8 => 1 << 8,
        DType::I16 => 1 << 15,
        DType::U16 => 1 << 16,
        DType::I32
        | DType::U32
        | DType::I64
        | DType::U64
        | DType::F16
        | DType::Bf16
        | DType::F32
        | DType::F64
        | DType::F8(_) => return None,
    };
    Some(most.max(least.as_int().unwrap_or(0)))
}

/// Counts (or sums of weights) of each integer; the size follows from the data.
fn bincount(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let own = cx.b.dtype(x);
    let x = cx.b.cast(x, DType::I64);
    let least = match a.raw("minlength") {
        Some(Arg::Int(size)) => size.clone(),
        _ => Expr::int(0),
    };
    let message = "the number of counts must not be negative";
    cx.b.require(Condition::compare(least.clone(), Relation::Ge, 0), message);
    let size = a.output_meta(0).and_then(|meta| meta.sizes.first().cloned());
    let Some(size) = size else {
        return Err(RuleError::Malformed("the result has no described size".to_owned()));
    };
    if let Node::Sym(symbol) = size.node() {
        if let Some(most) = most_counted(own, &least) {
            cx.default_bounds.insert(*symbol, most);
        }
        let largest = cx.b.reduce(ReduceOp::Max, x, &[0], false)?;
        let count = cx.with_number(BinaryOp::Add, largest, 1i64)?;
        let least = cx.b.index(least, &[]);
        let count = cx.binary(BinaryOp::Maximum, count, least)?;
        cx.b.read(count, *symbol)?;
    } else if size.as_int().is_none() {
        return Err(RuleError::unsupported(format!("a result of size `{size}`")));
    }
    let updates = match a.opt_tensor("weights")? {
        Some(weights) => {
            let weights = cx.required_shape(weights, &cx.b.shape(x))?;
            let dtype = if cx.b.dtype(weights) == DType::F32 { DType::F32 } else { DType::F64 };
            cx.b.cast(weights, dtype)
        }
        None => cx.b.full_like(1i64, x),
    };
    let base = cx.b.full(0i64, cx.b.dtype(updates), &[size]);
    Ok(cx.b.scatter(base, updates, &[x], vec![Coord::Indirect(0)], Combine::Add)?.into())
}
