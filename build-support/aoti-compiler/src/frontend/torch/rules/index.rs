//! Indexing by tensors and masks: reading and writing. What a mask's true elements are is `masked`'s affair.

use super::masked::hits;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, Coord, Relation, ScanOp, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.index.Tensor" => index,
    pure "aten.index.Tensor_hacked_twin" => index,
    pure "aten._unsafe_index.Tensor" => index,
    pure "aten._unsafe_index.Tensor_hacked_twin" => index,
    pure "aten._unsafe_masked_index.default" => masked_index,
    pure "aten._unsafe_masked_index_put_accumulate.default" => masked_accumulate,
    pure "aten.index_put.default" => index_put,
    pure "aten.index_put.hacked_twin" => index_put,
    pure "aten._unsafe_index_put.default" => index_put,
    pure "aten._unsafe_index_put.hacked_twin" => index_put,
    pure "aten._index_put_impl.default" => index_put,
}

/// An index for each axis of a tensor, and where the axes of the result come from.
struct Places {
    indices: Vec<Option<ValueId>>,
    /// Common shape of the indices.
    common: Vec<Expr>,
    /// First axis of the result that belongs to the indices.
    first: usize,
}

impl Places {
    /// Indexed axes that are not next to each other go in front.
    fn new(cx: &mut Context, rank: usize, mut indices: Vec<Option<ValueId>>) -> Result<Places, RuleError> {
        if indices.len() > rank {
            return Err(RuleError::Malformed(format!("{} indices for {rank} axes", indices.len())));
        }
        indices.resize(rank, None);
        let given: Vec<usize> = (0..rank).filter(|axis| indices[*axis].is_some()).collect();
        let tensors: Vec<ValueId> = indices.iter().flatten().copied().collect();
        let common = cx.b.broadcast_shapes(&tensors)?;
        let adjacent = given.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let first = if adjacent { given.first().copied().unwrap_or(0) } else { 0 };
        Ok(Places { indices, common, first })
    }

    /// The shape of the result of reading from a tensor of sizes `own`.
    fn shape(&self, own: &[Expr]) -> Vec<Expr> {
        let kept = own.iter().zip(&self.indices).filter(|(_, index)| index.is_none());
        let mut shape: Vec<Expr> = kept.map(|(size, _)| size.clone()).collect();
        shape.splice(self.first..self.first, self.common.iter().cloned());
        shape
    }

    /// Index operands and coordinates over the result's axes.
    fn coords(&self, cx: &mut Context, shape: &[Expr]) -> Result<(Vec<ValueId>, Vec<Coord>), RuleError> {
        let behind = shape.len() - self.first - self.common.len();
        let (mut operands, mut coords, mut plain) = (Vec::new(), Vec::new(), 0);
        for index in &self.indices {
            match index {
                Some(index) => {
                    let rank = cx.b.rank(*index) + behind;
                    coords.push(Coord::Wrapped(operands.len()));
                    operands.push(cx.trailing_ones(*index, rank)?);
                }
                None => {
                    let axis = if plain < self.first { plain } else { plain + self.common.len() };
                    coords.push(Coord::Expr(Expr::axis(axis)));
                    plain += 1;
                }
            }
        }
        Ok((operands, coords))
    }
}

fn read(cx: &mut Context, x: ValueId, places: &Places) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    let shape = places.shape(&own);
    let (operands, coords) = places.coords(cx, &shape)?;
    if operands.is_empty() {
        return Ok(x);
    }
    Ok(cx.b.gather(x, &operands, coords, &shape)?)
}

fn write(
    cx: &mut Context,
    x: ValueId,
    places: &Places,
    values: ValueId,
    combine: Combine,
) -> Result<ValueId, RuleError> {
    let ty = cx.b.ty(x).clone();
    let shape = places.shape(&ty.shape);
    let values = cx.b.cast(values, ty.dtype);
    let values = fit(cx, values, &shape)?;
    let (operands, coords) = places.coords(cx, &shape)?;
    Ok(cx.b.scatter(x, values, &operands, coords, combine)?)
}

/// Broadcasts values that may have superfluous leading axes of size 1.
fn fit(cx: &mut Context, values: ValueId, shape: &[Expr]) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(values);
    let extra = own.len().saturating_sub(shape.len());
    let values = if extra > 0 { cx.b.reshape(values, &own[extra..])? } else { values };
    Ok(cx.b.expand(values, shape)?)
}

fn is_mask(cx: &Context, x: ValueId) -> bool {
    matches!(cx.b.dtype(x), DType::Bool | DType::U8)
}

fn index(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let given = a.opt_tensors("indices")?;
    let mut indices = Vec::new();
    for (k, index) in given.iter().enumerate() {
        match index {
            Some(mask) if is_mask(cx, *mask) => {
                let size = hit_size(cx, a, &given, k)?;
                let (lines, _) = hits(cx, *mask, &size, true)?;
                indices.extend(lines.into_iter().map(Some));
            }
            other => indices.push(*other),
        }
    }
    let places = Places::new(cx, cx.b.rank(x), indices)?;
    Ok(read(cx, x, &places)?.into())
}

/// The number of true elements of mask `k`, as the program names it in the result's sizes.
fn hit_size(cx: &Context, a: &Args, given: &[Option<ValueId>], k: usize) -> Result<Expr, RuleError> {
    // Axes in front that are not indexed stay in front if the indexed ones are adjacent.
    let plain_before = given[..k].iter().all(Option::is_none);
    let later_gap = given[k..].iter().skip_while(|index| index.is_some()).any(Option::is_some);
    let position = if plain_before && !later_gap { k } else { 0 };
    // Another index of more axes would move it; the common shape is then not just the count.
    let wide = given.iter().flatten().any(|index| !is_mask(cx, *index) && cx.b.rank(*index) > 1);
    let size = a.output_meta(0).and_then(|meta| meta.sizes.get(position)).cloned();
    match size {
        Some(size) if !wide => Ok(size),
        _ => Err(RuleError::unsupported("a mask beside indices of several axes")),
    }
}

/// Indices brought within bounds, for the overloads that promise not to look at what they read there.
fn clamped(
    cx: &mut Context,
    x: ValueId,
    indices: Vec<Option<ValueId>>,
) -> Result<Vec<Option<ValueId>>, RuleError> {
    let own = cx.b.shape(x);
    let mut safe = Vec::new();
    for (axis, index) in indices.into_iter().enumerate() {
        safe.push(match (index, own.get(axis)) {
            (Some(index), Some(size)) => {
                let index = cx.b.cast(index, DType::I64);
                let zero = cx.b.scalar(0i64, DType::I64);
                let last = cx.b.index(size - 1, &[]);
                let index = cx.binary(BinaryOp::Maximum, index, zero)?;
                Some(cx.binary(BinaryOp::Minimum, index, last)?)
            }
            (index, _) => index,
        });
    }
    Ok(safe)
}

fn masked_index(cx: &mut Context, a: &Args) -> Rule {
    let (x, mask) = (a.tensor("self")?, a.tensor("mask")?);
    let ty = cx.b.ty(x).clone();
    let fill = a.number("fill")?.to_element(cx, ty.dtype)?;
    let indices = clamped(cx, x, a.opt_tensors("indices")?)?;
    let places = Places::new(cx, cx.b.rank(x), indices)?;
    if ty.numel().is(0) {
        let shape = places.shape(&ty.shape);
        return Ok(cx.b.expand(fill, &shape)?.into());
    }
    let values = read(cx, x, &places)?;
    Ok(cx.b.select(mask, values, fill)?.into())
}

fn masked_accumulate(cx: &mut Context, a: &Args) -> Rule {
    let (x, mask, values) = (a.tensor("self")?, a.tensor("mask")?, a.tensor("values")?);
    if cx.b.ty(x).numel().is(0) {
        return Ok(x.into());
    }
    let indices = clamped(cx, x, a.opt_tensors("indices")?)?;
    let places = Places::new(cx, cx.b.rank(x), indices)?;
    let zero = cx.b.full_like(0i64, values);
    let values = cx.b.select(mask, values, zero)?;
    Ok(write(cx, x, &places, values, Combine::Add)?.into())
}

fn index_put(cx: &mut Context, a: &Args) -> Rule {
    let (x, values) = (a.tensor("self")?, a.tensor("values")?);
    let indices = a.opt_tensors("indices")?;
    let accumulate = a.bool_or("accumulate", false)?;
    let masks = indices.iter().flatten().filter(|index| is_mask(cx, **index)).count();
    if masks > 0 {
        if masks > 1 || indices.iter().flatten().count() > 1 {
            return Err(RuleError::unsupported("writing through a mask together with other indices"));
        }
        return put_masked(cx, x, &indices, values, accumulate);
    }
    if indices.iter().flatten().next().is_none() {
        let ty = cx.b.ty(x).clone();
        let values = cx.b.cast(values, ty.dtype);
        let values = fit(cx, values, &ty.shape)?;
        return Ok(if accumulate { cx.add(x, values)? } else { values }.into());
    }
    let places = Places::new(cx, cx.b.rank(x), indices)?;
    let combine = if accumulate { Combine::Add } else { Combine::Set };
    Ok(write(cx, x, &places, values, combine)?.into())
}

/// Writing through one mask: each true element takes its value by its number among the true ones.
fn put_masked(
    cx: &mut Context,
    x: ValueId,
    indices: &[Option<ValueId>],
    values: ValueId,
    accumulate: bool,
) -> Rule {
    let ty = cx.b.ty(x).clone();
    let first = indices.iter().position(Option::is_some).expect("a mask is among the indices");
    let mask = indices[first].expect("found above");
    let mask = cx.b.cast(mask, DType::Bool);
    let (mask_shape, values) = (cx.b.shape(mask), cx.b.cast(values, ty.dtype));
    if first + mask_shape.len() > ty.rank() {
        return Err(RuleError::Malformed("the mask has too many axes".to_owned()));
    }
    let behind = ty.rank() - first - mask_shape.len();
    let wide_mask = cx.trailing_ones(mask, mask_shape.len() + behind)?;
    let counted = spread_values(cx, values, mask, first, behind, &ty.shape)?;
    let new = if accumulate { cx.add(x, counted)? } else { counted };
    Ok(cx.b.select(wide_mask, new, x)?.into())
}

/// Values of `[before, count, behind]`, broadcast, at every element of the masked tensor.
fn spread_values(
    cx: &mut Context,
    values: ValueId,
    mask: ValueId,
    first: usize,
    behind: usize,
    target: &[Expr],
) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(values);
    let mask_rank = cx.b.rank(mask);
    // Position of the count's axis among the values' own axes, if they have it at all.
    let Some(count_axis) = own.len().checked_sub(behind + 1).filter(|axis| !own[*axis].is(1)) else {
        // One value for all true elements: only the axes around remain to be placed.
        let cut = own.len().saturating_sub(behind);
        let mut shape = own[..cut.saturating_sub(1)].to_vec();
        shape.extend(vec![Expr::int(1); if cut > 0 { mask_rank } else { 0 }]);
        shape.extend_from_slice(&own[cut..]);
        let values = cx.b.reshape(values, &shape)?;
        return fit(cx, values, target);
    };
    // What lies before the first true element has the number 0: one more value, which is there where there are no others.
    let (zero, one) = (Expr::int(0), Expr::int(1));
    let room = |axis| (if axis == count_axis { one.clone() } else { zero.clone() }, zero.clone());
    let rooms: Vec<(Expr, Expr)> = (0..own.len()).map(room).collect();
    let values = cx.b.pad(values, &rooms, 0i64)?;
    let ones = cx.b.cast(mask, DType::I64);
    let flat = cx.flattened(ones)?;
    let total = cx.sum(flat, &[0], false)?;
    let given = cx.b.index(own[count_axis].clone(), &[]);
    let as_many = cx.binary(Relation::Eq, total, given)?;
    cx.b.assert(as_many, "the mask has another number of true elements than there are values for them")?;
    let number = cx.b.scan(ScanOp::Sum, flat, 0)?[0];
    let mask_shape = cx.b.shape(mask);
    let number = cx.b.reshape(number, &mask_shape)?;
    let number = cx.trailing_ones(number, mask_rank + behind)?;
    let coords = own
        .iter()
        .enumerate()
        .map(|(axis, size)| {
            if axis == count_axis {
                Coord::Indirect(0)
            } else if size.is(1) {
                Coord::Expr(Expr::int(0))
            } else if axis < count_axis {
                Coord::Expr(Expr::axis(first - (count_axis - axis).min(first)))
            } else {
                Coord::Expr(Expr::axis(first + mask_rank + (axis - count_axis - 1)))
            }
        })
        .collect();
    Ok(cx.b.gather(values, &[number], coords, target)?)
}
