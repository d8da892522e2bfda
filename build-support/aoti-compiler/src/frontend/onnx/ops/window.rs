//! What slides windows over the last axes: convolutions and pooling.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::{Rule, many, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, Conv, FloatUnary, ReduceOp, Scalar, UnaryOp, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "Conv" => conv,
    "ConvTranspose" => conv_transpose,
    "MaxPool" => max_pool,
    "AveragePool" => average_pool,
    "LpPool" => lp_pool,
    "GlobalAveragePool" => |cx, c| global(cx, c, Global::Mean),
    "GlobalMaxPool" => |cx, c| global(cx, c, Global::Max),
    "GlobalLpPool" => |cx, c| global(cx, c, Global::Lp),
}

/// How windows lie over the spatial axes, with an entry for each in every list.
pub(super) struct Windows {
    kernel: Vec<i64>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
    /// Before and behind.
    padding: Vec<(Expr, Expr)>,
    ceil: bool,
}

impl Windows {
    /// Of a node over axes of these sizes, with this window if the node states none.
    pub(super) fn of(
        cx: &Onnx,
        c: &Call,
        sizes: &[Expr],
        kernel: Option<Vec<i64>>,
    ) -> Result<Windows, RuleError> {
        let spatial = sizes.len();
        let list = |name: &str, default: i64| -> Result<Vec<i64>, RuleError> {
            let list = c.opt_ints(name)?.unwrap_or_else(|| vec![default; spatial]);
            if list.len() == spatial && list.iter().all(|number| *number > 0) {
                return Ok(list);
            }
            Err(malformed(format!("`{name}` is {list:?} for {spatial} spatial axes")))
        };
        let kernel = match (c.opt_ints("kernel_shape")?, kernel) {
            (Some(own), Some(weight)) if own != weight => {
                return Err(malformed(format!("`kernel_shape` is {own:?} and the weight has {weight:?}")));
            }
            (Some(own), _) | (None, Some(own)) => own,
            (None, None) => return Err(malformed("`kernel_shape` is missing")),
        };
        if kernel.len() != spatial || kernel.iter().any(|size| *size <= 0) {
            return Err(malformed(format!("`kernel_shape` is {kernel:?} for {spatial} spatial axes")));
        }
        let mut own = Windows {
            stride: list("strides", 1)?,
            dilation: list("dilations", 1)?,
            padding: Vec::new(),
            ceil: c.flag("ceil_mode", false)?,
            kernel,
        };
        own.padding = own.padding_of(cx, c, sizes)?;
        Ok(own)
    }

    fn padding_of(&self, cx: &Onnx, c: &Call, sizes: &[Expr]) -> Result<Vec<(Expr, Expr)>, RuleError> {
        let spatial = sizes.len();
        let none = vec![(Expr::int(0), Expr::int(0)); spatial];
        match c.text("auto_pad", "NOTSET")? {
            "VALID" => Ok(none),
            "NOTSET" | "" => {
                let Some(pads) = c.opt_ints("pads")? else { return Ok(none) };
                if pads.len() != 2 * spatial {
                    return Err(malformed(format!("`pads` is {pads:?} for {spatial} spatial axes")));
                }
                Ok((0..spatial).map(|k| (Expr::int(pads[k]), Expr::int(pads[k + spatial]))).collect())
            }
            mode @ ("SAME_UPPER" | "SAME_LOWER") => {
                let pair = |k: usize| {
                    // As many windows as steps over the axis.
                    let ranges = cx.b.ranges();
                    let steps = sizes[k].ceil_div(&Expr::int(self.stride[k]), ranges);
                    let needed = &(&(&steps - 1) * self.stride[k]) + self.span(k);
                    let total = (&needed - &sizes[k]).maximum_in(&Expr::int(0), ranges);
                    let half = total.floor_div_in(&Expr::int(2), ranges);
                    let rest = &total - &half;
                    if mode == "SAME_UPPER" { (half, rest) } else { (rest, half) }
                };
                Ok((0..spatial).map(pair).collect())
            }
            other => Err(malformed(format!("`auto_pad` `{other}` is unknown"))),
        }
    }

    fn span(&self, k: usize) -> i64 {
        self.dilation[k] * (self.kernel[k] - 1) + 1
    }

    /// The padding, if it is known when the model is compiled.
    fn fixed_padding(&self) -> Option<Vec<(i64, i64)>> {
        self.padding.iter().map(|(before, behind)| Some((before.as_int()?, behind.as_int()?))).collect()
    }

    /// Padding behind axis `k` of a size, such that all windows fit: with `ceil` the last one may reach over the end.
    fn behind(&self, cx: &Onnx, k: usize, size: &Expr) -> Expr {
        let (before, behind) = &self.padding[k];
        if !self.ceil {
            return behind.clone();
        }
        let (stride, ranges) = (Expr::int(self.stride[k]), cx.b.ranges());
        let padded = &(size + before) + behind;
        // A window has to begin before the padding behind the end.
        let windows = (&(&padded - self.span(k)).ceil_div(&stride, ranges) + 1)
            .minimum_in(&(size + before).ceil_div(&stride, ranges), ranges);
        let end = &(&(&windows - 1) * &stride) + self.span(k);
        &(&end - size) - before
    }

    /// `[..., spatial]` as `[..., windows, taps]`, with `fill` around.
    fn view(&self, cx: &mut Onnx, x: ValueId, fill: Scalar) -> Result<ValueId, RuleError> {
        let (own, first) = (cx.b.shape(x), cx.b.rank(x) - self.kernel.len());
        let mut amounts = vec![(Expr::int(0), Expr::int(0)); own.len()];
        for k in 0..self.kernel.len() {
            amounts[first + k] = (self.padding[k].0.clone(), self.behind(cx, k, &own[first + k]));
        }
        let mut result = cx.b.pad(x, &amounts, fill)?;
        for k in 0..self.kernel.len() {
            result = cx.b.windows(result, first + k, self.kernel[k], self.stride[k], self.dilation[k])?;
        }
        Ok(result)
    }
}

/// The sizes of the spatial axes of a batch of channels.
fn spatial(cx: &Onnx, x: ValueId) -> Result<Vec<Expr>, RuleError> {
    let sizes = cx.b.shape(x);
    if sizes.len() < 3 {
        return Err(malformed("it takes a batch, channels, and at least one more axis"));
    }
    Ok(sizes[2..].to_vec())
}

/// A weight and its window. Where sizes of the weight are open, the node may state them.
fn windowed(cx: &mut Onnx, c: &Call, weight: ValueId) -> Result<(ValueId, Vec<i64>), RuleError> {
    let mut shape = cx.b.shape(weight);
    if let Some(window) = shape.iter().skip(2).map(Expr::as_int).collect() {
        return Ok((weight, window));
    }
    let stated = c.opt_ints("kernel_shape")?.filter(|stated| stated.len() + 2 == shape.len());
    let stated =
        stated.ok_or_else(|| unsupported("a window whose size is not known when the model is compiled"))?;
    shape.truncate(2);
    shape.extend(stated.iter().map(|size| Expr::int(*size)));
    Ok((cx.required_shape(weight, &shape)?, stated))
}

fn with_bias(cx: &mut Onnx, x: ValueId, bias: Option<ValueId>) -> Result<ValueId, RuleError> {
    let Some(bias) = bias else { return Ok(x) };
    let rank = cx.b.rank(x) - 1;
    let bias = cx.trailing_ones(bias, rank)?;
    cx.add(x, bias)
}

fn conv(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, weight, bias) = (c.tensor(0)?, c.tensor(1)?, c.opt_tensor(2)?);
    let value = convolution(cx, c, x, weight)?;
    one(with_bias(cx, value, bias)?)
}

/// The convolution of a node's attributes.
pub(super) fn convolution(
    cx: &mut Onnx,
    c: &Call,
    x: ValueId,
    weight: ValueId,
) -> Result<ValueId, RuleError> {
    let sizes = spatial(cx, x)?;
    let (weight, window) = windowed(cx, c, weight)?;
    let windows = Windows::of(cx, c, &sizes, Some(window))?;
    let mut x = x;
    let padding = match windows.fixed_padding() {
        Some(padding) if padding.iter().all(|(before, behind)| *before >= 0 && *behind >= 0) => padding,
        Some(_) | None => {
            let none = (Expr::int(0), Expr::int(0));
            let amounts = [vec![none.clone(), none], windows.padding.clone()].concat();
            let zero = Scalar::Int(0).cast(cx.b.dtype(x));
            x = cx.b.pad(x, &amounts, zero)?;
            vec![(0, 0); sizes.len()]
        }
    };
    let conv = Conv {
        stride: windows.stride,
        padding,
        dilation: windows.dilation,
        groups: c.int("group", 1)?,
        transposed: false,
        output_padding: vec![0; sizes.len()],
    };
    Ok(cx.b.conv(x, weight, conv)?)
}

fn conv_transpose(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, weight, bias) = (c.tensor(0)?, c.tensor(1)?, c.opt_tensor(2)?);
    let sizes = spatial(cx, x)?;
    let count = sizes.len();
    let (weight, kernel) = windowed(cx, c, weight)?;
    if kernel.len() != count {
        return Err(malformed(format!("a window of {} axes in a tensor of {count}", kernel.len())));
    }
    let list = |name: &str, default: i64| -> Result<Vec<i64>, RuleError> {
        let list = c.opt_ints(name)?.unwrap_or_else(|| vec![default; count]);
        if list.len() == count {
            Ok(list)
        } else {
            Err(malformed(format!("`{name}` has {} entries", list.len())))
        }
    };
    let (stride, dilation) = (list("strides", 1)?, list("dilations", 1)?);
    let mut more = list("output_padding", 0)?;
    let span = |k: usize| dilation[k] * (kernel[k] - 1) + 1;
    let mode = c.text("auto_pad", "NOTSET")?;
    let mut padding = vec![(0, 0); count];
    if let Some(wanted) = c.opt_ints("output_shape")? {
        let wanted = wanted.get(wanted.len().saturating_sub(count)..).unwrap_or_default();
        for (k, wanted) in wanted.iter().enumerate() {
            let size =
                sizes[k].as_int().ok_or_else(|| unsupported("`output_shape` of sizes that are not fixed"))?;
            let total = stride[k] * (size - 1) + more[k] + span(k) - wanted;
            padding[k] = halves(total.max(0), mode);
            // What is missing is added at the end.
            more[k] += (-total).max(0);
        }
    } else if matches!(mode, "SAME_UPPER" | "SAME_LOWER") {
        for k in 0..count {
            let total = span(k) - stride[k] + more[k];
            padding[k] = halves(total.max(0), mode);
        }
    } else if let Some(pads) = c.opt_ints("pads")?.filter(|_| mode != "VALID") {
        if pads.len() != 2 * count {
            return Err(malformed(format!("`pads` is {pads:?} for {count} spatial axes")));
        }
        padding = (0..count).map(|k| (pads[k], pads[k + count])).collect();
    }
    // More at the end than a step is what no window reaches.
    let reach: Vec<i64> = (0..count).map(|k| more[k].min(stride[k].max(dilation[k]) - 1)).collect();
    let beyond: Vec<i64> = more.iter().zip(&reach).map(|(more, reach)| more - reach).collect();
    let groups = c.int("group", 1)?;
    let conv = Conv { stride, padding, dilation, groups, transposed: true, output_padding: reach };
    let mut value = cx.b.conv(x, weight, conv)?;
    if beyond.iter().any(|amount| *amount > 0) {
        let none = (Expr::int(0), Expr::int(0));
        let mut amounts = vec![none; 2];
        amounts.extend(beyond.iter().map(|amount| (Expr::int(0), Expr::int(*amount))));
        let zero = Scalar::Int(0).cast(cx.b.dtype(value));
        value = cx.b.pad(value, &amounts, zero)?;
    }
    one(with_bias(cx, value, bias)?)
}

/// Padding before and behind; of an odd amount the greater half is behind, but for `SAME_LOWER`.
fn halves(total: i64, mode: &str) -> (i64, i64) {
    let half = total / 2;
    if mode == "SAME_UPPER" { (half, total - half) } else { (total - half, half) }
}

fn max_pool(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let sizes = spatial(cx, x)?;
    let windows = Windows::of(cx, c, &sizes, None)?;
    let lowest = Scalar::lowest(cx.b.dtype(x));
    let taps = windows.view(cx, x, lowest)?;
    let rank = cx.b.rank(x);
    let axes: Vec<usize> = (rank..rank + sizes.len()).collect();
    let largest = cx.b.reduce(ReduceOp::Max, taps, &axes, false)?;
    if !c.wants(1) {
        return one(largest);
    }
    let flat = cx.merge_axes(taps, rank, rank + sizes.len())?;
    let tap = cx.b.reduce(ReduceOp::ArgMax, flat, &[rank], false)?;
    let by_columns = c.flag("storage_order", false)?;
    let place = places(cx, &windows, x, tap, by_columns)?;
    many([largest, place])
}

/// The position in the whole tensor of a tap of each window.
fn places(
    cx: &mut Onnx,
    windows: &Windows,
    x: ValueId,
    tap: ValueId,
    by_columns: bool,
) -> Result<ValueId, RuleError> {
    let (own, shape) = (cx.b.shape(x), cx.b.shape(tap));
    let count = windows.kernel.len();
    let mut rest = tap;
    let mut coords = vec![tap; count];
    for k in (0..count).rev() {
        let within = cx.with_number(BinaryOp::Remainder, rest, windows.kernel[k])?;
        rest = cx.with_number(BinaryOp::FloorDiv, rest, windows.kernel[k])?;
        let start = &(&Expr::axis(k + 2) * windows.stride[k]) - &windows.padding[k].0;
        let start = cx.b.index(start, &shape);
        let step = cx.with_number(BinaryOp::Mul, within, windows.dilation[k])?;
        coords[k] = cx.add(start, step)?;
    }
    let plane = &(&Expr::axis(0) * &own[1]) + &Expr::axis(1);
    let mut place = cx.b.index(plane, &shape);
    let sizes = Expr::product(&own[2..]);
    let sizes = cx.b.index(sizes, &[]);
    place = cx.mul(place, sizes)?;
    let order: Vec<usize> = if by_columns { (0..count).rev().collect() } else { (0..count).collect() };
    let mut inner = cx.b.full(0i64, DType::I64, &shape);
    for k in order {
        let size = cx.b.index(own[k + 2].clone(), &[]);
        inner = cx.mul(inner, size)?;
        inner = cx.add(inner, coords[k])?;
    }
    cx.add(place, inner)
}

fn average_pool(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let sizes = spatial(cx, x)?;
    let windows = Windows::of(cx, c, &sizes, None)?;
    let (dtype, rank) = (cx.b.dtype(x), cx.b.rank(x));
    let wide = cx.b.cast(x, dtype.compute());
    let taps = windows.view(cx, wide, Scalar::Float(0.0))?;
    let axes: Vec<usize> = (rank..rank + sizes.len()).collect();
    let sum = cx.b.reduce(ReduceOp::Sum, taps, &axes, false)?;
    let with_padding = c.flag("count_include_pad", false)?;
    let count = covered(cx, &windows, &sizes, with_padding)?;
    let count = cx.b.cast(count, dtype.compute());
    let value = cx.div(sum, count)?;
    one(cx.b.cast(value, dtype))
}

/// How many elements each window covers, with or without those of the padding.
fn covered(
    cx: &mut Onnx,
    windows: &Windows,
    sizes: &[Expr],
    with_padding: bool,
) -> Result<ValueId, RuleError> {
    let mut total: Option<ValueId> = None;
    for (k, size) in sizes.iter().enumerate() {
        let (before, behind) = &windows.padding[k];
        let ones = cx.b.full(1i64, DType::I64, std::slice::from_ref(size));
        let own =
            if with_padding { cx.b.pad(ones, &[(before.clone(), behind.clone())], 1i64)? } else { ones };
        let reach = windows.behind(cx, k, size);
        let rest = if with_padding { (Expr::int(0), &reach - behind) } else { (before.clone(), reach) };
        let padded = cx.b.pad(own, &[rest], 0i64)?;
        let taps = cx.b.windows(padded, 0, windows.kernel[k], windows.stride[k], windows.dilation[k])?;
        let own = cx.b.reduce(ReduceOp::Sum, taps, &[1], false)?;
        let own = cx.trailing_ones(own, sizes.len() - k)?;
        total = Some(match total {
            None => own,
            Some(total) => cx.mul(total, own)?,
        });
    }
    Ok(total.expect("there is a spatial axis"))
}

fn lp_pool(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let sizes = spatial(cx, x)?;
    let windows = Windows::of(cx, c, &sizes, None)?;
    let (dtype, rank) = (cx.b.dtype(x), cx.b.rank(x));
    let p = if c.version < 2 { c.float("p", 2.0)? } else { c.int("p", 2)? as f64 };
    let wide = cx.b.cast(x, dtype.compute());
    let taps = windows.view(cx, wide, Scalar::Float(0.0))?;
    let axes: Vec<usize> = (rank..rank + sizes.len()).collect();
    let value = norm(cx, taps, &axes, p, false)?;
    one(cx.b.cast(value, dtype))
}

/// The norm of all elements along some axes.
fn norm(cx: &mut Onnx, x: ValueId, axes: &[usize], p: f64, keep: bool) -> Result<ValueId, RuleError> {
    let size = cx.b.unary(UnaryOp::Abs, x);
    let power = if p == 1.0 {
        size
    } else if p == 2.0 {
        cx.mul(size, size)?
    } else {
        cx.with_number(BinaryOp::Pow, size, p)?
    };
    let sum = cx.b.reduce(ReduceOp::Sum, power, axes, keep)?;
    if p == 1.0 {
        Ok(sum)
    } else if p == 2.0 {
        Ok(cx.b.unary(FloatUnary::Sqrt, sum))
    } else {
        cx.with_number(BinaryOp::Pow, sum, 1.0 / p)
    }
}

#[derive(Clone, Copy)]
enum Global {
    Mean,
    Max,
    Lp,
}

fn global(cx: &mut Onnx, c: &Call, of: Global) -> Rule {
    let x = c.tensor(0)?;
    let (dtype, sizes) = (cx.b.dtype(x), spatial(cx, x)?);
    let axes: Vec<usize> = (2..2 + sizes.len()).collect();
    let wide = cx.b.cast(x, dtype.compute());
    let value = match of {
        Global::Max => cx.b.reduce(ReduceOp::Max, wide, &axes, true)?,
        Global::Lp => norm(cx, wide, &axes, c.int("p", 2)? as f64, true)?,
        Global::Mean => {
            let sum = cx.b.reduce(ReduceOp::Sum, wide, &axes, true)?;
            let count = cx.b.index(Expr::product(&sizes), &[]);
            let count = cx.b.cast(count, dtype.compute());
            cx.div(sum, count)?
        }
    };
    one(cx.b.cast(value, dtype))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, ints};
    use crate::interpret::Tensor;

    #[test]
    fn a_node_states_the_window_of_a_weight_whose_sizes_are_open() {
        let model = Model::new(11)
            .input("x", Tensor::from_f32(&[1, 1, 3], &[1.0, 2.0, 4.0]))
            .input("w", Tensor::from_f32(&[1, 1, 2], &[1.0, 10.0]));
        let stated = [ints("kernel_shape", &[2])];
        assert_eq!(model.of_one("Conv", &["x", "w"], &stated), [21.0, 42.0]);
        assert_eq!(model.of_one("ConvTranspose", &["x", "w"], &stated), [1.0, 12.0, 24.0, 40.0]);
        let message =
            format!("{:?}", model.node("Conv", &["x", "w"], &["y"], &[]).import(&["y"]).unwrap_err());
        assert!(message.contains("a window whose size is not known"), "{message}");
    }
}
