//! Shapes: what tensors look like, and tensors of sizes.

use super::super::call::{Call, malformed, unsupported};
use super::super::sizes::MOST_SIZES;
use super::super::tensors;
use super::super::types::element_type;
use super::super::walk::Onnx;
use super::axes::Axes;
use super::{Rule, many, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::rearrange::repeat;
use crate::graph::{
    BinaryOp, Constant, ConstantSource, IntBinary, ReduceOp, Relation, Rounding, Scalar, UnaryOp, ValueId,
};
use crate::symbolic::Expr;

operators! { "";
    "Identity" => |_, c| Ok(vec![c.input(0)]),
    "Constant" => constant,
    "ConstantOfShape" => constant_of_shape,
    "Shape" => shape,
    "Size" => size,
    "Reshape" => reshape,
    "Flatten" => flatten,
    "Transpose" => transpose,
    "Squeeze" => squeeze,
    "Unsqueeze" => unsqueeze,
    "Expand" => expand,
    "Tile" => tile,
    "Concat" => concat,
    "Split" => split,
    "Range" => range,
    "DepthToSpace" => depth_to_space,
    "SpaceToDepth" => space_to_depth,
    "EyeLike" => eye_like,
    "Trilu" => trilu,
}

fn constant(cx: &mut Onnx, c: &Call) -> Rule {
    if let Some(tensor) = c.opt_tensor_attribute("value")? {
        let mut read = tensors::read(tensor, &cx.opened.beside).map_err(malformed)?;
        read.constant.name.clear();
        let (narrow, is_large) = (read.narrow, read.constant.data.len() > 1024);
        if is_large {
            read.constant.name = c.node.output.first().cloned().unwrap_or_default();
            read.constant.source = ConstantSource::Weight;
        }
        let value = cx.b.constant(read.constant)?;
        if let Some(narrow) = narrow {
            cx.narrow.insert(value, narrow);
        }
        return one(value);
    }
    if let Some(number) = c.opt_float("value_float")? {
        return one(cx.b.scalar(number, DType::F32));
    }
    if let Some(number) = c.opt_int("value_int")? {
        return one(cx.b.scalar(number, DType::I64));
    }
    if let Some(numbers) = c.opt_ints("value_ints")? {
        return one(cx.b.int_vector(&numbers));
    }
    if let Some(numbers) = c.opt_floats("value_floats")? {
        let data = crate::dtype::bytes_of(&numbers, &|number: f64| (number as f32).to_le_bytes());
        let sizes = vec![i64::try_from(numbers.len()).expect("a list in memory")];
        return one(cx.b.constant(Constant::new("", DType::F32, sizes, data))?);
    }
    if c.has("sparse_value") {
        let sparse = c.attributes().iter().find_map(|attribute| attribute.sparse_tensor.as_ref());
        let sparse = sparse.ok_or_else(|| malformed("`sparse_value` has no value"))?;
        let read = tensors::dense(sparse, &cx.opened.beside).map_err(malformed)?;
        return one(cx.b.constant(read.constant)?);
    }
    Err(unsupported("texts"))
}

fn constant_of_shape(cx: &mut Onnx, c: &Call) -> Rule {
    let shape = cx.sizes(c.tensor(0)?)?;
    let Some(value) = c.opt_tensor_attribute("value")? else {
        return one(cx.b.full(0.0, DType::F32, &shape));
    };
    let read = tensors::read(value, &cx.opened.beside).map_err(malformed)?;
    let value = cx.constant(read)?;
    let value = cx.b.reshape(value, &[])?;
    one(cx.b.expand(value, &shape)?)
}

fn shape(cx: &mut Onnx, c: &Call) -> Rule {
    let sizes = cx.b.shape(c.tensor(0)?);
    let rank = i64::try_from(sizes.len()).expect("few axes");
    let place = |position: i64| {
        let from_end = if position < 0 { position + rank } else { position };
        usize::try_from(from_end.clamp(0, rank)).expect("within the axes")
    };
    let (start, end) = (place(c.int("start", 0)?), place(c.int("end", rank)?));
    let part = sizes.get(start..end.max(start)).unwrap_or_default().to_vec();
    one(cx.vector(&part)?)
}

fn size(cx: &mut Onnx, c: &Call) -> Rule {
    let numel = cx.b.ty(c.tensor(0)?).numel();
    one(cx.b.index(numel, &[]))
}

fn reshape(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let own = cx.b.shape(x);
    let keeps_zeros = c.flag("allowzero", false)?;
    if c.version < 5 {
        let sizes = c.opt_ints("shape")?.ok_or_else(|| malformed("attribute `shape` is missing"))?;
        let sizes: Vec<Expr> = sizes.into_iter().map(Expr::int).collect();
        let shape = filled(cx, &own, sizes, keeps_zeros)?;
        return one(cx.b.reshape(x, &shape)?);
    }
    let wanted = c.tensor(1)?;
    if let Some(sizes) = cx.known(wanted) {
        let shape = filled(cx, &own, sizes, keeps_zeros)?;
        return one(cx.b.reshape(x, &shape)?);
    }
    let sizes = resolved(cx, &own, wanted, keeps_zeros)?;
    one(cx.b.reshape(x, &sizes)?)
}

/// A shape in which 0 stands for the size that was there, and -1 for what is left.
fn filled(cx: &Onnx, own: &[Expr], sizes: Vec<Expr>, keeps_zeros: bool) -> Result<Vec<Expr>, RuleError> {
    let mut shape = Vec::new();
    let mut open = None;
    for (axis, size) in sizes.into_iter().enumerate() {
        if size.is(-1) {
            if open.replace(axis).is_some() {
                return Err(malformed("two sizes are left open"));
            }
            shape.push(Expr::int(1));
        } else if size.is(0) && !keeps_zeros {
            let size = own.get(axis).cloned();
            shape.push(size.ok_or_else(|| malformed(format!("there is no axis {axis} whose size to keep")))?);
        } else {
            shape.push(size);
        }
    }
    if let Some(axis) = open {
        // What stays on both sides cancels, whatever its size.
        let mut before: Vec<Expr> = own.to_vec();
        let mut after = Vec::new();
        for (_, size) in shape.iter().enumerate().filter(|(position, _)| *position != axis) {
            match before.iter().position(|own| own == size) {
                Some(same) => drop(before.remove(same)),
                None => after.push(size.clone()),
            }
        }
        let (total, rest) = (Expr::product(&before), Expr::product(&after));
        shape[axis] = match total.cofactor(&rest) {
            Some(quotient) => quotient,
            None => total.floor_div_in(&rest, cx.b.ranges()),
        };
    }
    Ok(shape)
}

/// The same where the shape is data.
fn resolved(cx: &mut Onnx, own: &[Expr], wanted: ValueId, keeps_zeros: bool) -> Result<Vec<Expr>, RuleError> {
    let wanted = cx.b.cast(wanted, DType::I64);
    let count = cx.b.shape(wanted).first().and_then(Expr::as_int).filter(|count| *count <= MOST_SIZES);
    let count = count.ok_or_else(|| unsupported("a shape whose number of axes is not known"))?;
    let mut kept: Vec<Expr> = own.to_vec();
    kept.resize(usize::try_from(count).unwrap_or(0), Expr::int(0));
    let kept = cx.vector(&kept)?;
    let sizes = if keeps_zeros {
        wanted
    } else {
        let is_kept = cx.with_number(Relation::Eq, wanted, 0i64)?;
        cx.b.select(is_kept, kept, wanted)?
    };
    let is_open = cx.with_number(Relation::Eq, sizes, -1i64)?;
    let ones = cx.b.full_like(1i64, sizes);
    let others = cx.b.select(is_open, ones, sizes)?;
    let product = cx.b.reduce(ReduceOp::Prod, others, &[0], false)?;
    let product = cx.with_number(BinaryOp::Maximum, product, 1i64)?;
    let total = cx.b.index(Expr::product(own), &[]);
    let rest = cx.b.binary(BinaryOp::FloorDiv, total, product)?;
    let sizes = cx.b.select(is_open, rest, sizes)?;
    cx.sizes(sizes)
}

fn flatten(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let sizes = cx.b.shape(x);
    let rank = i64::try_from(sizes.len()).expect("few axes");
    let axis = c.int("axis", 1)?;
    let axis =
        usize::try_from(if axis < 0 { axis + rank } else { axis }).ok().filter(|axis| *axis <= sizes.len());
    let axis = axis.ok_or_else(|| malformed("the axis is outside of the tensor"))?;
    let shape = [Expr::product(&sizes[..axis]), Expr::product(&sizes[axis..])];
    one(cx.b.reshape(x, &shape)?)
}

fn transpose(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let rank = cx.b.rank(x);
    let order = match c.opt_ints("perm")? {
        Some(order) => order.iter().map(|axis| axis_of(*axis, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).rev().collect(),
    };
    one(cx.b.permute(x, &order)?)
}

fn squeeze(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let sizes = cx.b.shape(x);
    let axes = cx.axes(c, 13, 1, sizes.len())?;
    let ones = || (0..sizes.len()).filter(|axis| sizes[*axis].is(1)).collect();
    let axes = axes.unwrap_or_else(|| Axes::Known(ones()));
    one(cx.over_axes(c, &axes, &mut |cx, axes| without(cx, x, axes))?)
}

/// Axes of one element go.
fn without(cx: &mut Onnx, x: ValueId, axes: &[usize]) -> Result<ValueId, RuleError> {
    let sizes = cx.b.shape(x);
    let is_kept = |axis: &usize| !axes.contains(axis);
    let kept: Vec<Expr> = (0..sizes.len()).filter(is_kept).map(|axis| sizes[axis].clone()).collect();
    for axis in axes {
        cx.b.require_same(&sizes[*axis], &Expr::int(1))?;
    }
    let coord = |axis: usize| match is_kept(&axis) {
        true => Expr::axis((0..axis).filter(is_kept).count()),
        false => Expr::int(0),
    };
    Ok(cx.b.view(x, &kept, (0..sizes.len()).map(coord).collect())?)
}

fn unsqueeze(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let own = cx.b.shape(x);
    let axes = if c.version < 13 {
        let axes = c.opt_ints("axes")?.ok_or_else(|| malformed("axes are missing"))?;
        let rank = own.len() + axes.len();
        Axes::Known(axes.iter().map(|axis| axis_of(*axis, rank)).collect::<Result<_, _>>()?)
    } else {
        let axes = c.tensor(1)?;
        let count = cx.b.ty(axes).numel().as_int().and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or_else(|| unsupported("axes whose number is not known"))?;
        cx.axes_of(axes, own.len() + count)?
    };
    let value = cx.over_axes(c, &axes, &mut |cx, axes| {
        let rank = own.len() + axes.len();
        let mut rest = own.iter().cloned();
        let shape: Option<Vec<Expr>> = (0..rank)
            .map(|axis| if axes.contains(&axis) { Some(Expr::int(1)) } else { rest.next() })
            .collect();
        let shape = shape.ok_or_else(|| malformed("an axis is given twice"))?;
        Ok(cx.b.reshape(x, &shape)?)
    })?;
    if let Some(narrow) = cx.narrow.get(&x).copied() {
        cx.narrow.insert(value, narrow);
    }
    one(value)
}

fn expand(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let own = cx.b.shape(x);
    let wanted = c.tensor(1)?;
    let wanted = match cx.known(wanted) {
        Some(wanted) => wanted,
        None => expanded_sizes(cx, &own, wanted)?,
    };
    let shape = cx.b.broadcast(&[own, wanted])?;
    one(cx.b.expand(x, &shape)?)
}

/// Sizes that are data, where 1 stands for what is there.
fn expanded_sizes(cx: &mut Onnx, own: &[Expr], wanted: ValueId) -> Result<Vec<Expr>, RuleError> {
    let wanted = cx.b.cast(wanted, DType::I64);
    let count =
        cx.b.shape(wanted).first().and_then(Expr::as_int).and_then(|count| usize::try_from(count).ok());
    let count = count.ok_or_else(|| unsupported("a shape whose number of axes is not known"))?;
    let rank = count.max(own.len());
    let mut sizes = Vec::new();
    for axis in 0..rank {
        let there = axis.checked_sub(rank - own.len()).map(|axis| own[axis].clone());
        let Some(position) = axis.checked_sub(rank - count) else {
            sizes.extend(there);
            continue;
        };
        let given = cx.b.pick(wanted, 0, &Expr::int(position as i64))?;
        let there = there.unwrap_or_else(|| Expr::int(1));
        if there.is(1) {
            sizes.push(cx.size_of(given)?);
            continue;
        }
        // It has to be the size that there is, or 1.
        let (is_one, size) = (cx.with_number(Relation::Eq, given, 1i64)?, cx.b.index(there.clone(), &[]));
        let is_same = cx.b.binary(Relation::Eq, given, size)?;
        let fits = cx.b.binary(IntBinary::Or, is_one, is_same)?;
        cx.b.assert(fits, "a size to expand to that is neither 1 nor the size that there is")?;
        sizes.push(there);
    }
    Ok(sizes)
}

fn tile(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    if c.version < 6 {
        let (times, axis) = (cx.size(c.tensor(1)?)?, cx.size(c.tensor(2)?)?);
        let rank = cx.b.rank(x);
        let axis = axis.as_int().ok_or_else(|| unsupported("an axis that is data"))?;
        let mut repeats = vec![Expr::int(1); rank];
        repeats[axis_of(axis, rank)?] = times;
        return one(repeat(cx, x, repeats)?);
    }
    let repeats = cx.sizes(c.tensor(1)?)?;
    one(repeat(cx, x, repeats)?)
}

fn concat(cx: &mut Onnx, c: &Call) -> Rule {
    let values = c.tensors()?;
    let first = *values.first().ok_or_else(|| malformed("it has no operands"))?;
    let axis = axis_of(c.int("axis", 1)?, cx.b.rank(first))?;
    one(cx.b.cat(&values, axis)?)
}

fn split(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axis = axis_of(c.int("axis", 0)?, cx.b.rank(x))?;
    let sizes = if c.version < 13 {
        c.opt_ints("split")?.map(|sizes| sizes.into_iter().map(Expr::int).collect())
    } else {
        c.opt_tensor(1)?.map(|sizes| cx.sizes(sizes)).transpose()?
    };
    let total = cx.b.shape(x)[axis].clone();
    let sizes = match sizes {
        Some(sizes) => sizes,
        None => even(cx, c, &total)?,
    };
    let (mut start, mut parts) = (Expr::int(0), Vec::new());
    for size in &sizes {
        parts.push(cx.b.slice(x, axis, &start, size, 1)?);
        start = &start + size;
    }
    cx.b.require_same(&start, &total)?;
    many(parts)
}

/// Parts of one size, the last of which may be smaller.
fn even(cx: &Onnx, c: &Call, total: &Expr) -> Result<Vec<Expr>, RuleError> {
    let results = i64::try_from(c.results()).expect("few results");
    let count = match c.opt_int("num_outputs")? {
        Some(count) => count,
        None => results,
    };
    if count < 1 || count > results {
        return Err(malformed(format!("`num_outputs` is {count} for {results} results")));
    }
    let ranges = cx.b.ranges();
    let size = total.ceil_div(&Expr::int(count), ranges);
    let mut sizes = vec![size.clone(); usize::try_from(count - 1).expect("few results")];
    sizes.push(total - &(&size * (count - 1)));
    Ok(sizes)
}

fn range(cx: &mut Onnx, c: &Call) -> Rule {
    let (start, limit, delta) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let dtype = cx.b.dtype(start);
    let length = if dtype.is_float() {
        let wide = [limit, start, delta].map(|value| cx.b.cast(value, DType::F64));
        let [limit, start, delta] = wide;
        let span = cx.sub(limit, start)?;
        let count = cx.div(span, delta)?;
        let count = cx.b.unary(Rounding::Ceil, count);
        cx.b.cast(count, DType::I64)
    } else {
        let [limit, start, delta] = [limit, start, delta].map(|value| cx.b.cast(value, DType::I64));
        let span = cx.sub(start, limit)?;
        let count = cx.b.binary(BinaryOp::FloorDiv, span, delta)?;
        cx.b.unary(UnaryOp::Neg, count)
    };
    let length = cx.with_number(BinaryOp::Maximum, length, 0i64)?;
    let length = cx.b.reshape(length, &[Expr::int(1)])?;
    let length = cx.size(length)?;
    let wide = if dtype.is_float() { dtype.compute() } else { dtype };
    let position = cx.b.index(Expr::axis(0), &[length]);
    let position = cx.b.cast(position, wide);
    let start = cx.b.reshape(start, &[])?;
    let delta = cx.b.reshape(delta, &[])?;
    let (start, delta) = (cx.b.cast(start, wide), cx.b.cast(delta, wide));
    let steps = cx.mul(position, delta)?;
    let value = cx.add(start, steps)?;
    one(cx.b.cast(value, dtype))
}

fn depth_to_space(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let size = c.int("blocksize", 0)?;
    let is_rows_first = blocks_first(c)?;
    let [n, channels, h, w] =
        <[Expr; 4]>::try_from(cx.b.shape(x)).map_err(|_| malformed("it takes four axes"))?;
    if size < 1 {
        return Err(malformed("the size of blocks is not positive"));
    }
    let block = Expr::int(size);
    let depth = channels.floor_div_in(&Expr::int(size * size), cx.b.ranges());
    let (shape, order) = if is_rows_first {
        ([n.clone(), block.clone(), block, depth.clone(), h.clone(), w.clone()], [0, 3, 4, 1, 5, 2])
    } else {
        ([n.clone(), depth.clone(), block.clone(), block, h.clone(), w.clone()], [0, 1, 4, 2, 5, 3])
    };
    let parts = cx.b.reshape(x, &shape)?;
    let parts = cx.b.permute(parts, &order)?;
    one(cx.b.reshape(parts, &[n, depth, &h * size, &w * size])?)
}

fn space_to_depth(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let size = c.int("blocksize", 0)?;
    let [n, channels, h, w] =
        <[Expr; 4]>::try_from(cx.b.shape(x)).map_err(|_| malformed("it takes four axes"))?;
    if size < 1 {
        return Err(malformed("the size of blocks is not positive"));
    }
    let block = Expr::int(size);
    let (rows, columns) = (h.floor_div_in(&block, cx.b.ranges()), w.floor_div_in(&block, cx.b.ranges()));
    let parts = [n.clone(), channels.clone(), rows.clone(), block.clone(), columns.clone(), block];
    let parts = cx.b.reshape(x, &parts)?;
    let order = if blocks_first(c)? { [0, 3, 5, 1, 2, 4] } else { [0, 1, 3, 5, 2, 4] };
    let parts = cx.b.permute(parts, &order)?;
    one(cx.b.reshape(parts, &[n, &channels * (size * size), rows, columns])?)
}

/// Whether the positions in a block are before the channels in the order of depth, or behind them.
fn blocks_first(c: &Call) -> Result<bool, RuleError> {
    match c.text("mode", "DCR")? {
        "DCR" => Ok(true),
        "CRD" => Ok(false),
        other => Err(malformed(format!("mode `{other}` is neither `DCR` nor `CRD`"))),
    }
}

fn eye_like(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let shape = cx.b.shape(x);
    if shape.len() != 2 {
        return Err(malformed("it takes a matrix"));
    }
    let dtype = match c.opt_int("dtype")? {
        Some(number) => element_type(i32::try_from(number).unwrap_or(0)).map_err(malformed)?.dtype,
        None => cx.b.dtype(x),
    };
    let diagonal = &(&Expr::axis(1) - &Expr::axis(0)) - c.int("k", 0)?;
    let on = cx.index_is(Relation::Eq, diagonal, &shape)?;
    one(cx.b.cast(on, dtype))
}

fn trilu(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let shape = cx.b.shape(x);
    let Some(row) = shape.len().checked_sub(2) else { return Err(malformed("it takes matrices")) };
    let k = match c.opt_tensor(1)? {
        Some(k) => k,
        None => cx.b.scalar(0i64, DType::I64),
    };
    let k = cx.b.reshape(k, &[])?;
    let diagonal = cx.b.index(&Expr::axis(row + 1) - &Expr::axis(row), &shape);
    let relation = if c.flag("upper", true)? { Relation::Ge } else { Relation::Le };
    let kept = cx.b.binary(relation, diagonal, k)?;
    let zero = Scalar::Int(0).cast(cx.b.dtype(x));
    let zero = cx.b.full_like(zero, x);
    one(cx.b.select(kept, x, zero)?)
}
