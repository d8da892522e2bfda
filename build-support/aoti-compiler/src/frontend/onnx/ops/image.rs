//! Parts of images: sampling at positions that are data, regions, offsets; putting windows back.

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::deform_conv::{DeformConv, convolve};
use crate::frontend::torch::rules::grid_sample::{Beyond, Interpolation, affine_grid, grid_sample};
use crate::frontend::torch::rules::roi_align::{Regions, Samples, Sampling, roi_align};
use crate::frontend::torch::rules::roi_pool::roi_pool;
use crate::graph::{Combine, Coord, Scalar, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "GridSample" => sample,
    "AffineGrid" => grid,
    "RoiAlign" => regions,
    "MaxRoiPool" => max_roi_pool,
    "MaxUnpool" => max_unpool,
    "Col2Im" => col2im,
    "DeformConv" => deform_conv,
    "CenterCropPad" => center_crop_pad,
}

/// A list for `count` axes, that may be left out.
fn list(c: &Call, name: &str, count: usize, default: i64) -> Result<Vec<i64>, RuleError> {
    let list = c.opt_ints(name)?.unwrap_or_else(|| vec![default; count]);
    if list.len() == count {
        Ok(list)
    } else {
        Err(malformed(format!("`{name}` has {} entries", list.len())))
    }
}

fn sample(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, grid) = (c.tensor(0)?, c.tensor(1)?);
    let mode = match c.text("mode", "linear")? {
        "linear" | "bilinear" => Interpolation::Linear,
        "nearest" => Interpolation::Nearest,
        "cubic" | "bicubic" => Interpolation::Cubic,
        other => return Err(malformed(format!("the mode `{other}` is unknown"))),
    };
    let beyond = match c.text("padding_mode", "zeros")? {
        "zeros" => Beyond::Zeros,
        "border" => Beyond::Border,
        "reflection" => Beyond::Reflection,
        other => return Err(malformed(format!("the padding `{other}` is unknown"))),
    };
    let align = c.flag("align_corners", false)?;
    let dtype = cx.b.dtype(x);
    // Integers are sampled as numbers.
    let wide = if dtype.is_float() { dtype } else { DType::F64 };
    let image = cx.b.cast(x, wide);
    let value = grid_sample(cx, [image, grid], mode, beyond, align)?;
    one(cx.b.cast(value, dtype))
}

fn grid(cx: &mut Onnx, c: &Call) -> Rule {
    let (theta, size) = (c.tensor(0)?, cx.sizes(c.tensor(1)?)?);
    let align = c.flag("align_corners", false)?;
    one(affine_grid(cx, theta, &size, align)?)
}

// --- regions -------------------------------------------------------------------------------------------------------

fn regions(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, rois, batch) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let default = if c.version >= 16 { "half_pixel" } else { "output_half_pixel" };
    let is_aligned = match c.text("coordinate_transformation_mode", default)? {
        "half_pixel" => true,
        "output_half_pixel" => false,
        other => return Err(malformed(format!("the coordinate transformation `{other}` is unknown"))),
    };
    let samples = match c.text("mode", "avg")? {
        "avg" => Samples::Average,
        "max" => Samples::Largest,
        other => return Err(malformed(format!("the mode `{other}` is unknown"))),
    };
    // The number of the image is in front of its regions.
    let wide = cx.b.dtype(x).compute();
    let (rois, batch) = (cx.b.cast(rois, wide), cx.b.cast(batch, wide));
    let batch = cx.b.unsqueeze(batch, 1)?;
    let rois = cx.b.cat(&[batch, rois], 1)?;
    let regions = Regions {
        image: x,
        rois,
        scale: c.float("spatial_scale", 1.0)?,
        bins: [Expr::int(c.int("output_height", 1)?), Expr::int(c.int("output_width", 1)?)],
    };
    let ratio = c.int("sampling_ratio", 0)?;
    one(roi_align(cx, &regions, Sampling { ratio, is_aligned, samples })?)
}

fn max_roi_pool(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, rois) = (c.tensor(0)?, c.tensor(1)?);
    let shape = c.opt_ints("pooled_shape")?.unwrap_or_default();
    let [height, width] = shape.as_slice() else { return Err(malformed("`pooled_shape` has two sizes")) };
    let regions = Regions {
        image: x,
        rois,
        scale: c.float("spatial_scale", 1.0)?,
        bins: [Expr::int(*height), Expr::int(*width)],
    };
    one(roi_pool(cx, &regions)?[0])
}

// --- windows -------------------------------------------------------------------------------------------------------

/// The positions are those in the tensor that the pooling was of; a larger one that is asked for begins with it.
fn max_unpool(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, at) = (c.tensor(0)?, c.tensor(1)?);
    let own = cx.b.shape(x);
    let kernel = c.opt_ints("kernel_shape")?.ok_or_else(|| malformed("`kernel_shape` is missing"))?;
    let count = kernel.len();
    if own.len() != count + 2 {
        return Err(malformed("it takes a batch, channels, and an axis for each of the window's"));
    }
    let (strides, pads) = (list(c, "strides", count, 1)?, list(c, "pads", 2 * count, 0)?);
    let mut shape = own[..2].to_vec();
    for k in 0..count {
        let inner = &(&own[k + 2] - 1) * strides[k];
        shape.push(&inner + (kernel[k] - pads[k] - pads[k + count]));
    }
    let dtype = cx.b.dtype(x);
    let base = cx.b.full(Scalar::Int(0).cast(dtype), dtype, &[Expr::product(&shape)]);
    let (values, at) = (cx.flattened(x)?, cx.flattened(at)?);
    let flat = cx.b.scatter(base, values, &[at], vec![Coord::Indirect(0)], Combine::Set)?;
    let mut value = cx.b.reshape(flat, &shape)?;
    if let Some(wanted) = c.opt_tensor(2)? {
        let wanted = cx.required_shape(wanted, &[Expr::int(shape.len() as i64)])?;
        let wanted = cx.sizes(wanted)?;
        let coords = (0..shape.len()).map(Expr::axis).collect();
        let zero = Scalar::Int(0).cast(cx.b.dtype(value));
        value = cx.b.padded_view(value, &wanted, coords, zero)?;
    }
    one(value)
}

/// Axes of an image: the formulas of its sizes grow with each.
const MOST_AXES: usize = 5;

/// Windows of an image added up where they overlap.
fn col2im(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let (image, block) = (cx.sizes(c.tensor(1)?)?, cx.sizes(c.tensor(2)?)?);
    let (own, count) = (cx.b.shape(x), block.len());
    if own.len() != 3 || image.len() != count {
        return Err(malformed(
            "it takes a batch of rows of windows, and as many sizes of the image as of a window",
        ));
    }
    if count > MOST_AXES {
        return Err(unsupported(format!("an image of more than {MOST_AXES} axes")));
    }
    let (dilations, strides) = (list(c, "dilations", count, 1)?, list(c, "strides", count, 1)?);
    let pads = list(c, "pads", 2 * count, 0)?;
    let ranges = cx.b.ranges();
    let padded: Vec<Expr> = (0..count).map(|k| &image[k] + (pads[k] + pads[k + count])).collect();
    let windows: Vec<Expr> = (0..count)
        .map(|k| {
            let span = &(&(&block[k] - 1) * dilations[k]) + 1;
            &(&padded[k] - &span).floor_div_in(&Expr::int(strides[k]), ranges) + 1
        })
        .collect();
    let channels = own[1].floor_div_in(&Expr::product(&block), ranges);
    let shape = [&[own[0].clone(), channels.clone()], block.as_slice(), &windows].concat();
    let x = cx.b.reshape(x, &shape)?;
    let dtype = cx.b.dtype(x);
    let x = cx.b.cast(x, dtype.compute());
    let sizes = [&[own[0].clone(), channels], padded.as_slice()].concat();
    let base = cx.b.full(Scalar::Int(0).cast(dtype.compute()), dtype.compute(), &sizes);
    let mut coords = vec![Coord::Expr(Expr::axis(0)), Coord::Expr(Expr::axis(1))];
    for k in 0..count {
        let tap = &Expr::axis(2 + k) * dilations[k];
        coords.push(Coord::Expr(&(&Expr::axis(2 + count + k) * strides[k]) + &tap));
    }
    let mut value = cx.b.scatter(base, x, &[], coords, Combine::Add)?;
    for k in 0..count {
        value = cx.b.slice(value, 2 + k, &Expr::int(pads[k]), &image[k], 1)?;
    }
    one(cx.b.cast(value, dtype))
}

fn deform_conv(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, weight, offset) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let (bias, mask) = (c.opt_tensor(3)?, c.opt_tensor(4)?);
    if cx.b.rank(x) != 4 {
        return Err(unsupported("a deformable convolution of other than two axes"));
    }
    let bias = match bias {
        Some(bias) => bias,
        None => {
            let (dtype, rows) = (cx.b.dtype(x), cx.b.shape(weight)[0].clone());
            cx.b.full(0.0, dtype, &[rows])
        }
    };
    // Padding behind the image shows only in the sizes of the offsets.
    let (strides, pads) = (list(c, "strides", 2, 1)?, list(c, "pads", 4, 0)?);
    let dilations = list(c, "dilations", 2, 1)?;
    let of = DeformConv {
        image: x,
        weight,
        offset,
        mask,
        bias,
        stride: [strides[0], strides[1]],
        padding: [pads[0], pads[1]],
        dilation: [dilations[0], dilations[1]],
        groups: c.int("group", 1)?,
        offset_groups: c.int("offset_group", 1)?,
    };
    one(convolve(cx, &of)?)
}

/// The middle of axes that are too long, and others with zeros around them.
fn center_crop_pad(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let rank = cx.b.rank(x);
    let axes = match c.opt_ints("axes")? {
        Some(axes) => axes.iter().map(|axis| axis_of(*axis, rank)).collect::<Result<Vec<_>, _>>()?,
        None => (0..rank).collect(),
    };
    let wanted = cx.required_shape(c.tensor(1)?, &[Expr::int(axes.len() as i64)])?;
    let wanted = cx.sizes(wanted)?;
    let narrow = cx.narrow.get(&x).copied();
    let value = cropped_or_padded(cx, x, &axes, &wanted)?;
    if let Some(narrow) = narrow {
        cx.narrow.insert(value, narrow);
    }
    one(value)
}

fn cropped_or_padded(
    cx: &mut Onnx,
    x: ValueId,
    axes: &[usize],
    wanted: &[Expr],
) -> Result<ValueId, RuleError> {
    let (own, ranges) = (cx.b.shape(x), cx.b.ranges());
    let (zero, two) = (Expr::int(0), Expr::int(2));
    let mut shape = own.clone();
    let mut coords: Vec<Expr> = (0..own.len()).map(Expr::axis).collect();
    for (axis, size) in axes.iter().zip(wanted) {
        let half = |amount: Expr| amount.maximum_in(&zero, ranges).floor_div_in(&two, ranges);
        let (start, before) = (half(&own[*axis] - size), half(size - &own[*axis]));
        coords[*axis] = &(&coords[*axis] + &start) - &before;
        shape[*axis] = size.clone();
    }
    let zero = Scalar::Int(0).cast(cx.b.dtype(x));
    Ok(cx.b.padded_view(x, &shape, coords, zero)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, float, int, ints, text};
    use crate::interpret::Tensor;

    fn numbers(sizes: &[usize]) -> Tensor {
        let count: usize = sizes.iter().product();
        Tensor::from_f32(sizes, &(0..count).map(|number| number as f32).collect::<Vec<_>>())
    }

    #[test]
    fn axes_are_cropped_and_padded_around_the_middle() {
        let model = Model::new(18).input("x", numbers(&[2, 5]));
        let model = model.constant("shape", &Tensor::from_i64(&[2], &[3, 2]));
        let found = model.node("CenterCropPad", &["x", "shape"], &["y"], &[]).numbers();
        assert_eq!(found, [1.0, 2.0, 6.0, 7.0, 0.0, 0.0]);
    }

    #[test]
    fn windows_are_added_where_they_overlap() {
        let model = Model::new(18)
            .input("x", numbers(&[1, 2, 3]))
            .constant("image", &Tensor::from_i64(&[1], &[4]))
            .constant("block", &Tensor::from_i64(&[1], &[2]));
        let found = model.of_one("Col2Im", &["x", "image", "block"], &[]);
        // Windows of columns (0, 3), (1, 4), (2, 5).
        assert_eq!(found, [0.0, 4.0, 6.0, 5.0]);
    }

    #[test]
    fn unpooled_elements_are_where_they_were() {
        let model = Model::new(11)
            .input("x", Tensor::from_f32(&[1, 1, 2], &[5.0, 6.0]))
            .input("at", Tensor::from_i64(&[1, 1, 2], &[1, 2]))
            .constant("shape", &Tensor::from_i64(&[3], &[1, 1, 5]));
        let attributes = [ints("kernel_shape", &[2]), ints("strides", &[2])];
        assert_eq!(model.of_one("MaxUnpool", &["x", "at"], &attributes), [0.0, 5.0, 6.0, 0.0]);
        let longer = model.of_one("MaxUnpool", &["x", "at", "shape"], &attributes);
        assert_eq!(longer, [0.0, 5.0, 6.0, 0.0, 0.0]);
    }

    #[test]
    fn regions_have_the_largest_of_weighted_elements() {
        let model = Model::new(16)
            .input("x", numbers(&[1, 1, 4, 4]))
            .input("rois", Tensor::from_f32(&[1, 4], &[0.0, 0.0, 2.0, 2.0]))
            .input("batch", Tensor::from_i64(&[1], &[0]));
        let attributes = [
            text("mode", "max"),
            float("spatial_scale", 1.0),
            int("output_height", 1),
            int("output_width", 1),
        ];
        // Four samples between 0 and 1 along both axes: of element 5 the last one has all.
        assert_eq!(model.of_one("RoiAlign", &["x", "rois", "batch"], &attributes), [5.0]);
    }

    #[test]
    fn a_row_is_sampled_like_an_image() {
        let model = Model::new(20)
            .input("x", Tensor::from_f32(&[1, 1, 3], &[1.0, 2.0, 4.0]))
            .input("grid", Tensor::from_f32(&[1, 3, 1], &[-1.0, 0.5, 3.0]));
        let attributes = [int("align_corners", 1), text("padding_mode", "border")];
        assert_eq!(model.of_one("GridSample", &["x", "grid"], &attributes), [1.0, 3.0, 4.0]);
    }
}
