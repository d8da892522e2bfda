//! Pooling with windows of fixed size: reductions over a view of sliding windows; and its inverse.

use super::registry::rules;
use super::support::spread;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, Combine, Coord, FloatBinary, FloatTest, ReduceOp, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.max_pool1d.default" => |cx, a| max_pool(cx, a, 1, false),
    pure "aten.max_pool2d.default" => |cx, a| max_pool(cx, a, 2, false),
    pure "aten.max_pool3d.default" => |cx, a| max_pool(cx, a, 3, false),
    pure "aten.max_pool1d_with_indices.default" => |cx, a| max_pool(cx, a, 1, true),
    pure "aten.max_pool2d_with_indices.default" => |cx, a| max_pool(cx, a, 2, true),
    pure "aten.max_pool3d_with_indices.default" => |cx, a| max_pool(cx, a, 3, true),
    pure "aten.max_pool2d_with_indices_backward.default" => |cx, a| max_pool_backward(cx, a, 2),
    pure "aten.max_pool3d_with_indices_backward.default" => |cx, a| max_pool_backward(cx, a, 3),
    pure "aten.avg_pool1d.default" => |cx, a| avg_pool(cx, a, 1),
    pure "aten.avg_pool2d.default" => |cx, a| avg_pool(cx, a, 2),
    pure "aten.avg_pool3d.default" => |cx, a| avg_pool(cx, a, 3),
    pure "aten.max_unpool2d.default" => |cx, a| max_unpool(cx, a, 2),
    pure "aten.max_unpool3d.default" => |cx, a| max_unpool(cx, a, 3),
}

/// Windows over the last axes.
pub(crate) struct Windows {
    pub(crate) kernel: Vec<i64>,
    pub(crate) stride: Vec<i64>,
    pub(crate) padding: Vec<i64>,
    dilation: Vec<i64>,
    ceil: bool,
}

impl Windows {
    pub(crate) fn new(a: &Args, spatial: usize) -> Result<Windows, RuleError> {
        let kernel = spread(&a.ints("kernel_size")?, spatial)?;
        let stride = a.ints_or("stride", &[])?;
        let windows = Windows {
            stride: if stride.is_empty() { kernel.clone() } else { spread(&stride, spatial)? },
            padding: spread(&a.ints_or("padding", &[0])?, spatial)?,
            dilation: spread(&a.ints_or("dilation", &[1])?, spatial)?,
            ceil: a.bool_or("ceil_mode", false)?,
            kernel,
        };
        if windows.kernel.iter().chain(&windows.stride).chain(&windows.dilation).any(|value| *value <= 0) {
            return Err(RuleError::Malformed("windows, strides and dilations must be positive".to_owned()));
        }
        Ok(windows)
    }

    fn spatial(&self) -> usize {
        self.kernel.len()
    }

    fn span(&self, k: usize) -> i64 {
        self.dilation[k] * (self.kernel[k] - 1) + 1
    }

    /// Amount of padding behind axis `k` of a size, such that all windows of the result fit.
    pub(crate) fn behind(&self, cx: &Context, k: usize, size: &Expr) -> Expr {
        let (stride, padding) = (Expr::int(self.stride[k]), self.padding[k]);
        if !self.ceil {
            return Expr::int(padding);
        }
        // Rounding up, but a window must begin before the end of the tensor and its padding in front.
        let ranges = cx.b.ranges();
        let room = size + (2 * padding - self.span(k));
        let windows = (&room.ceil_div(&stride, ranges) + 1)
            .minimum_in(&(size + padding).ceil_div(&stride, ranges), ranges);
        let end = &(&(&windows - 1) * &stride) + self.span(k);
        &(&end - size) - padding
    }

    /// `[..., spatial]` as `[..., windows, taps]`, with `fill` around.
    fn view(&self, cx: &mut Context, x: ValueId, fill: crate::graph::Scalar) -> Result<ValueId, RuleError> {
        let (own, first) = (cx.b.shape(x), cx.b.rank(x) - self.spatial());
        let mut amounts = vec![(Expr::int(0), Expr::int(0)); own.len()];
        for k in 0..self.spatial() {
            amounts[first + k] = (Expr::int(self.padding[k]), self.behind(cx, k, &own[first + k]));
        }
        let mut result = cx.b.pad(x, &amounts, fill)?;
        for k in 0..self.spatial() {
            result = cx.b.windows(result, first + k, self.kernel[k], self.stride[k], self.dilation[k])?;
        }
        Ok(result)
    }

    /// Position in the operand of the first tap of the window at axis `first + k` of the result.
    fn start(&self, k: usize, axis: usize) -> Expr {
        &(&Expr::axis(axis) * self.stride[k]) - self.padding[k]
    }

    /// The same of the first tap that is not in the padding in front.
    fn first_within(&self, cx: &Context, k: usize, axis: usize) -> Expr {
        let (start, ranges) = (self.start(k, axis), cx.b.ranges());
        let missing = (-&start).maximum_in(&Expr::int(0), ranges);
        &start + &(&missing.ceil_div(&Expr::int(self.dilation[k]), ranges) * self.dilation[k])
    }
}

fn operand(cx: &Context, a: &Args, spatial: usize) -> Result<ValueId, RuleError> {
    let x = a.tensor("self")?;
    if cx.b.rank(x) < spatial + 1 {
        return Err(RuleError::Malformed(format!("pooling over {spatial} axes needs at least one more")));
    }
    Ok(x)
}

fn max_pool(cx: &mut Context, a: &Args, spatial: usize, with_indices: bool) -> Rule {
    let x = operand(cx, a, spatial)?;
    let windows = Windows::new(a, spatial)?;
    let taps = windows.view(cx, x, Scalar::lowest(cx.b.dtype(x)))?;
    let rank = cx.b.rank(x);
    let axes: Vec<usize> = (rank..rank + spatial).collect();
    let largest = cx.b.reduce(ReduceOp::Max, taps, &axes, false)?;
    if !with_indices {
        return Ok(largest.into());
    }
    let taps = cx.merge_axes(taps, rank, rank + spatial)?;
    let tap = largest_tap(cx, taps)?;
    let indices = plane_positions(cx, x, &windows, tap)?;
    Ok(Outputs::Many(vec![Some(largest), Some(indices)]))
}

/// The number of the largest tap along the last axis, the first of equal ones; of several NaN the last.
pub(crate) fn largest_tap(cx: &mut Context, taps: ValueId) -> Result<ValueId, RuleError> {
    let last = cx.b.rank(taps) - 1;
    let largest = cx.b.reduce(ReduceOp::ArgMax, taps, &[last], false)?;
    if !cx.b.dtype(taps).is_float() {
        return Ok(largest);
    }
    // Where there is any, the largest is the first NaN.
    let is_nan = cx.unary(FloatTest::IsNan, taps);
    let number = cx.b.index(Expr::axis(last), &cx.b.shape(taps));
    let none = cx.b.full_like(-1i64, number);
    let number = cx.b.select(is_nan, number, none)?;
    let last_nan = cx.b.reduce(ReduceOp::Max, number, &[last], false)?;
    cx.binary(BinaryOp::Maximum, largest, last_nan)
}

/// Positions in the flattened plane of the operand, from the number of the tap within its window. Where all that there is of a
/// window is as low as what is around it, the first tap is taken: the first position in the operand stands for it.
fn plane_positions(
    cx: &mut Context,
    x: ValueId,
    windows: &Windows,
    tap: ValueId,
) -> Result<ValueId, RuleError> {
    let (own, shape) = (cx.b.shape(x), cx.b.shape(tap));
    let first = own.len() - windows.spatial();
    let mut result = cx.b.full(0i64, DType::I64, &shape);
    for k in 0..windows.spatial() {
        let inner: i64 = windows.kernel[k + 1..].iter().product();
        let number = cx.with_number(BinaryOp::FloorDiv, tap, inner)?;
        let number = cx.with_number(BinaryOp::Remainder, number, windows.kernel[k])?;
        let offset = cx.with_number(BinaryOp::Mul, number, windows.dilation[k])?;
        let start = windows.start(k, first + k);
        let within = windows.first_within(cx, k, first + k);
        let (start, within) = (cx.b.index(start, &shape), cx.b.index(within, &shape));
        let position = cx.add(start, offset)?;
        let position = cx.binary(BinaryOp::Maximum, position, within)?;
        let size = cx.b.index(own[first + k].clone(), &shape);
        let above = cx.mul(result, size)?;
        result = cx.add(above, position)?;
    }
    Ok(result)
}

/// `[planes..., plane]`: the last `spatial` axes as one.
fn flat_planes(cx: &mut Context, x: ValueId, spatial: usize) -> Result<ValueId, RuleError> {
    let rank = cx.b.rank(x);
    cx.merge_axes(x, rank - spatial, rank)
}

/// Writes values at positions of flattened planes of zeros and gives the planes their shape.
fn onto_planes(
    cx: &mut Context,
    values: ValueId,
    indices: ValueId,
    shape: &[Expr],
    spatial: usize,
    combine: Combine,
) -> Result<ValueId, RuleError> {
    let (values, indices) = (flat_planes(cx, values, spatial)?, flat_planes(cx, indices, spatial)?);
    let dtype = cx.b.dtype(values);
    let base = cx.b.full(0i64, dtype, shape);
    let base = flat_planes(cx, base, spatial)?;
    let mut coords: Vec<Coord> = (0..cx.b.rank(base) - 1).map(|axis| Coord::Expr(Expr::axis(axis))).collect();
    coords.push(Coord::Indirect(0));
    let planes = cx.b.scatter(base, values, &[indices], coords, combine)?;
    Ok(cx.b.reshape(planes, shape)?)
}

fn max_pool_backward(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let (grad, x, indices) = (a.tensor("grad_output")?, operand(cx, a, spatial)?, a.tensor("indices")?);
    let shape = cx.b.shape(x);
    Ok(onto_planes(cx, grad, indices, &shape, spatial, Combine::Add)?.into())
}

fn max_unpool(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let (x, indices) = (operand(cx, a, spatial)?, a.tensor("indices")?);
    let mut shape = cx.b.shape(x);
    let first = shape.len() - spatial;
    shape.truncate(first);
    let sizes = a.syms("output_size")?;
    if sizes.len() != spatial {
        return Err(RuleError::Malformed(format!("{} sizes for {spatial} axes", sizes.len())));
    }
    shape.extend(sizes);
    Ok(onto_planes(cx, x, indices, &shape, spatial, Combine::Set)?.into())
}

fn avg_pool(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let x = operand(cx, a, spatial)?;
    let windows = Windows::new(a, spatial)?;
    let dtype = cx.b.dtype(x);
    let wide = cx.b.cast(x, dtype.compute());
    let taps = windows.view(cx, wide, crate::graph::Scalar::Int(0))?;
    let (own, rank) = (cx.b.shape(x), cx.b.rank(x));
    let axes: Vec<usize> = (rank..rank + spatial).collect();
    let total = cx.sum(taps, &axes, false)?;
    let op = if dtype.category() == Category::Float { FloatBinary::Div.into() } else { BinaryOp::TruncDiv };
    let average = shared(cx, a, &windows, &own, total, op)?;
    Ok(cx.b.cast(average, dtype).into())
}

/// What there is of each window of an operand of shape `own`, divided by the number of its taps that count.
pub(crate) fn shared(
    cx: &mut Context,
    a: &Args,
    windows: &Windows,
    own: &[Expr],
    total: ValueId,
    op: BinaryOp,
) -> Result<ValueId, RuleError> {
    let include = a.bool_or("count_include_pad", true)?;
    if let Some(divisor) = a.opt_int("divisor_override")? {
        return cx.with_number(op, total, divisor);
    }
    if windows.padding.iter().all(|padding| *padding == 0 || include) && !windows.ceil {
        let taps: i64 = windows.kernel.iter().product();
        return cx.with_number(op, total, taps);
    }
    let counts = window_counts(cx, windows, own, include);
    let shape = cx.b.shape(total)[own.len() - windows.spatial()..].to_vec();
    let counts = cx.b.index(counts, &shape);
    let counts = cx.b.cast(counts, cx.b.dtype(total));
    cx.binary(op, total, counts)
}

/// How many taps of each window count, over the spatial axes of the result alone.
fn window_counts(cx: &Context, windows: &Windows, own: &[Expr], include: bool) -> Expr {
    let first = own.len() - windows.spatial();
    let ranges = cx.b.ranges();
    (0..windows.spatial()).fold(Expr::int(1), |product, k| {
        let size = &own[first + k];
        let start = windows.start(k, k);
        let end = &start + windows.kernel[k];
        let count = if include {
            &end.minimum_in(&(size + windows.padding[k]), ranges) - &start
        } else {
            &end.minimum_in(size, ranges) - &start.maximum_in(&Expr::int(0), ranges)
        };
        &product * &count
    })
}
