//! Pooling to a given size: window `i` of `out` over `n` runs from `floor(i n / out)` to `ceil((i + 1) n / out)`.

use super::pooling::largest_tap;
use super::registry::rules;
use super::support::spread_syms;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Condition, FloatBinary, ReduceOp, Relation, Scalar, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.adaptive_avg_pool1d.default" => |cx, a| average(cx, a, 1),
    pure "aten.adaptive_avg_pool2d.default" => |cx, a| average(cx, a, 2),
    pure "aten.adaptive_avg_pool3d.default" => |cx, a| average(cx, a, 3),
    pure "aten._adaptive_avg_pool2d.default" => |cx, a| average(cx, a, 2),
    pure "aten._adaptive_avg_pool3d.default" => |cx, a| average(cx, a, 3),
    pure "aten.adaptive_max_pool1d.default" => |cx, a| largest(cx, a, 1),
    pure "aten.adaptive_max_pool2d.default" => |cx, a| largest(cx, a, 2),
    pure "aten.adaptive_max_pool3d.default" => |cx, a| largest(cx, a, 3),
}

/// The windows of one axis, as expressions over the axis that counts them.
pub(crate) struct Axis {
    pub(crate) start: Expr,
    /// Number of elements.
    pub(crate) count: Expr,
    /// The largest number of elements, or a bound on it.
    pub(crate) most: Expr,
    /// Whether all windows have `most` elements.
    pub(crate) even: bool,
}

pub(crate) fn axis_windows(cx: &Context, size: &Expr, output: &Expr, axis: usize) -> Axis {
    let ranges = cx.b.ranges();
    let position = Expr::axis(axis);
    if size.modulo_in(output, ranges).is(0) {
        let step = size.floor_div_in(output, ranges);
        return Axis { start: &position * &step, count: step.clone(), most: step, even: true };
    }
    let start = (&position * size).floor_div_in(output, ranges);
    let end = (&(&position + 1) * size).ceil_div(output, ranges);
    let most = match (size.as_int(), output.as_int()) {
        (Some(n), Some(out)) if out > 0 => {
            let length = |i: i64| (i + 1) * n / out + i64::from((i + 1) * n % out != 0) - i * n / out;
            Expr::int((0..out).map(length).max().unwrap_or(0))
        }
        _ => &size.floor_div_in(output, ranges) + 2,
    };
    Axis { count: &end - &start, start, most, even: false }
}

/// Axes from `first` on as windows, whose taps are the last axes, with `fill` for what is beyond a window.
fn windows(
    cx: &mut Context,
    x: ValueId,
    first: usize,
    (axes, outputs): (&[Axis], &[Expr]),
    fill: Scalar,
) -> Result<ValueId, RuleError> {
    let own = cx.b.shape(x);
    let behind = first + axes.len();
    let mut shape = own[..first].to_vec();
    shape.extend_from_slice(outputs);
    shape.extend_from_slice(&own[behind..]);
    shape.extend(axes.iter().map(|axis| axis.most.clone()));
    for size in &own[first..behind] {
        cx.b.require(Condition::compare(size.clone(), Relation::Ge, 1), "pooling of nothing");
    }
    let mut coords: Vec<Expr> = (0..first).map(Expr::axis).collect();
    for (k, axis) in axes.iter().enumerate() {
        let position = &axis.start + &Expr::axis(own.len() + k);
        // Taps beyond the window may lie beyond the tensor; their values are replaced below.
        coords.push(if axis.even { position } else { position.minimum(&(&own[first + k] - 1)) });
    }
    coords.extend((behind..own.len()).map(Expr::axis));
    let mut taps = cx.b.view(x, &shape, coords)?;
    for (k, axis) in axes.iter().enumerate().filter(|(_, axis)| !axis.even) {
        let inside = &axis.count - &Expr::axis(own.len() + k);
        let inside = cx.index_is(Relation::Gt, inside, &shape)?;
        let other = cx.b.full_like(fill, taps);
        taps = cx.b.select(inside, taps, other)?;
    }
    Ok(taps)
}

/// The operand, the sizes of the result and the windows of each pooled axis.
fn prepare(cx: &mut Context, a: &Args, spatial: usize) -> Result<(ValueId, Vec<Expr>, Vec<Axis>), RuleError> {
    let x = a.tensor("self")?;
    let own = cx.b.shape(x);
    let Some(first) = own.len().checked_sub(spatial) else {
        return Err(RuleError::Malformed(format!("pooling over {spatial} axes of {}", own.len())));
    };
    let outputs = spread_syms(&a.syms("output_size")?, spatial)?;
    let axes = (0..spatial).map(|k| axis_windows(cx, &own[first + k], &outputs[k], first + k)).collect();
    Ok((x, outputs, axes))
}

fn average(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let (x, outputs, axes) = prepare(cx, a, spatial)?;
    let (dtype, rank) = (cx.b.dtype(x), cx.b.rank(x));
    let wide = cx.b.cast(x, dtype.compute());
    let total = if outputs.iter().all(|size| size.is(1)) {
        let all: Vec<usize> = (rank - spatial..rank).collect();
        cx.sum(wide, &all, true)?
    } else if axes.iter().all(|axis| axis.even) {
        let taps = windows(cx, wide, rank - spatial, (&axes, &outputs), Scalar::Int(0))?;
        let tap_axes: Vec<usize> = (rank..rank + spatial).collect();
        cx.sum(taps, &tap_axes, false)?
    } else {
        // One axis after the other, so that what lies side by side in memory is read so, but for the last.
        let mut total = wide;
        for (k, (axis, output)) in axes.iter().zip(&outputs).enumerate() {
            let one = (std::slice::from_ref(axis), std::slice::from_ref(output));
            let taps = windows(cx, total, rank - spatial + k, one, Scalar::Int(0))?;
            total = cx.sum(taps, &[rank], false)?;
        }
        total
    };
    let counts = Expr::product(axes.iter().map(|axis| &axis.count));
    let result = if let Some(count) = counts.as_int() {
        cx.with_number(FloatBinary::Div, total, count as f64)?
    } else {
        let shape = cx.b.shape(total);
        let counts = cx.b.index(counts, &shape);
        let counts = cx.b.cast(counts, dtype.compute());
        cx.div(total, counts)?
    };
    Ok(cx.b.cast(result, dtype).into())
}

fn largest(cx: &mut Context, a: &Args, spatial: usize) -> Rule {
    let (x, outputs, axes) = prepare(cx, a, spatial)?;
    let (own, rank) = (cx.b.shape(x), cx.b.rank(x));
    let taps = windows(cx, x, rank - spatial, (&axes, &outputs), Scalar::lowest(cx.b.dtype(x)))?;
    let tap_axes: Vec<usize> = (rank..rank + spatial).collect();
    let peak = cx.b.reduce(ReduceOp::Max, taps, &tap_axes, false)?;
    let flat = cx.merge_axes(taps, rank, rank + spatial)?;
    let tap = largest_tap(cx, flat)?;
    let shape = cx.b.shape(tap);
    let mut position = cx.b.full(0i64, DType::I64, &shape);
    for (k, axis) in axes.iter().enumerate() {
        let inner = Expr::product(axes[k + 1..].iter().map(|axis| &axis.most));
        let (inner, most) = (cx.b.index(inner, &shape), cx.b.index(axis.most.clone(), &shape));
        let number = cx.binary(BinaryOp::FloorDiv, tap, inner)?;
        let number = cx.binary(BinaryOp::Remainder, number, most)?;
        let start = cx.b.index(axis.start.clone(), &shape);
        let own_position = cx.add(start, number)?;
        let size = cx.b.index(own[rank - spatial + k].clone(), &shape);
        let above = cx.mul(position, size)?;
        position = cx.add(above, own_position)?;
    }
    Ok(Outputs::Many(vec![Some(peak), Some(position)]))
}
