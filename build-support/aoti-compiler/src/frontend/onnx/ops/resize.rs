//! Images of another size: which elements each result is made of, and with which weights, axis by axis.
//!
//! Where a result comes from is a fraction of expressions over sizes wherever that is so, which is exact, and a number that is
//! computed when the model runs where scales or regions are data.

mod place;
mod taps;

use super::super::call::{Call, malformed, unsupported};
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::{Category, DType};
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{BinaryOp, Condition, Relation, Rounding, Scalar, ValueId};
use crate::symbolic::Expr;
use place::{Mapping, Place};
use taps::{Kernel, Nearest};

operators! { "";
    "Resize" => resize,
    "Upsample" => upsample,
}

/// How much larger a result is.
#[derive(Clone)]
enum Scale {
    /// As a fraction.
    Ratio(Expr, Expr),
    /// A number without axes, as `f32`.
    Data(ValueId),
}

/// One axis that gets another size.
struct Axis {
    axis: usize,
    input: Expr,
    output: Expr,
    scale: Scale,
    /// The part of the axis that is shown, as `f64` numbers without axes: its elements are from 0 to 1.
    region: Option<[ValueId; 2]>,
}

impl Axis {
    /// Whether the result is the operand.
    fn is_same(&self, cx: &Onnx) -> bool {
        let is_one = match &self.scale {
            Scale::Ratio(top, bottom) => cx.b.same_size(top, bottom),
            Scale::Data(_) => false,
        };
        is_one && self.region.is_none() && cx.b.same_size(&self.input, &self.output)
    }
}

/// What a node does along each axis.
struct Way {
    mapping: Mapping,
    nearest: Nearest,
    /// Without one, results are single elements.
    kernel: Option<Kernel>,
    /// What is shown beyond the image.
    beyond: Option<f64>,
}

fn resize(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let way = way(c)?;
    let axes = c.opt_ints("axes")?.unwrap_or_else(|| (0..cx.b.rank(x) as i64).collect());
    let axes = axes.iter().map(|axis| axis_of(*axis, cx.b.rank(x))).collect::<Result<Vec<_>, RuleError>>()?;
    let (roi, scales, sizes) = match c.version {
        ..11 => (None, Some(c.tensor(1)?), None),
        _ => (c.opt_tensor(1)?, given(cx, c.opt_tensor(2)?), given(cx, c.opt_tensor(3)?)),
    };
    let mut axes = match (scales, sizes) {
        (Some(scales), _) => by_scales(cx, x, &axes, scales)?,
        (None, Some(sizes)) => by_sizes(cx, x, &axes, sizes, c.text("keep_aspect_ratio_policy", "stretch")?)?,
        (None, None) => return Err(malformed("neither scales nor sizes are given")),
    };
    if way.mapping == Mapping::Crop {
        let roi = roi.ok_or_else(|| malformed("the region that is shown is not given"))?;
        regions(cx, roi, &mut axes)?;
    }
    one(resampled(cx, x, &axes, &way)?)
}

/// What is left out is an empty tensor in some versions.
fn given(cx: &Onnx, value: Option<ValueId>) -> Option<ValueId> {
    value.filter(|value| !cx.b.ty(*value).numel().is(0))
}

fn way(c: &Call) -> Result<Way, RuleError> {
    let mapping = match (c.version, c.text("coordinate_transformation_mode", "half_pixel")?) {
        (..11, _) | (_, "asymmetric") => Mapping::Asymmetric,
        (_, "half_pixel") => Mapping::HalfPixel,
        (_, "half_pixel_symmetric") => Mapping::Symmetric,
        (_, "pytorch_half_pixel") => Mapping::HalfPixelOrFirst,
        (_, "align_corners") => Mapping::Corners,
        (_, "tf_half_pixel_for_nn") => Mapping::Middle,
        (_, "tf_crop_and_resize") => Mapping::Crop,
        (_, other) => return Err(malformed(format!("the coordinate transformation `{other}` is unknown"))),
    };
    let nearest = match (c.version, c.text("nearest_mode", "round_prefer_floor")?) {
        (..11, _) | (_, "floor") => Nearest::Floor,
        (_, "ceil") => Nearest::Ceil,
        (_, "round_prefer_floor") => Nearest::HalfDown,
        (_, "round_prefer_ceil") => Nearest::HalfUp,
        (_, other) => return Err(malformed(format!("the nearest mode `{other}` is unknown"))),
    };
    let (smooth, without) = (c.flag("antialias", false)?, c.flag("exclude_outside", false)?);
    let kernel = match c.text("mode", "nearest")? {
        "nearest" => None,
        "linear" | "bilinear" => Some(Kernel { cubic: None, smooth, without }),
        "cubic" => Some(Kernel { cubic: Some(c.float("cubic_coeff_a", -0.75)?), smooth, without }),
        other => return Err(malformed(format!("the mode `{other}` is unknown"))),
    };
    let beyond = c.float("extrapolation_value", 0.0)?;
    let beyond = (mapping == Mapping::Crop).then_some(beyond);
    Ok(Way { mapping, nearest, kernel, beyond })
}

/// Scales were attributes at first: two, then one for each axis.
fn upsample(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let linear = Kernel { cubic: None, smooth: false, without: false };
    let kernel = match c.text("mode", "nearest")? {
        "nearest" => None,
        "linear" | "bilinear" => Some(linear),
        other => return Err(malformed(format!("the mode `{other}` is unknown"))),
    };
    let axes: Vec<usize> = (0..cx.b.rank(x)).collect();
    let axes = if c.version >= 9 {
        by_scales(cx, x, &axes, c.tensor(1)?)?
    } else {
        let scales = match c.opt_floats("scales")? {
            Some(scales) => scales,
            None => vec![1.0, 1.0, c.float("height_scale", 1.0)?, c.float("width_scale", 1.0)?],
        };
        by_known_scales(cx, x, &axes, &scales)?
    };
    let way = Way { mapping: Mapping::Asymmetric, nearest: Nearest::Floor, kernel, beyond: None };
    one(resampled(cx, x, &axes, &way)?)
}

// --- sizes ---------------------------------------------------------------------------------------------------------

fn by_known_scales(
    cx: &mut Onnx,
    x: ValueId,
    axes: &[usize],
    scales: &[f64],
) -> Result<Vec<Axis>, RuleError> {
    if scales.len() != axes.len() {
        return Err(malformed(format!("{} scales for {} axes", scales.len(), axes.len())));
    }
    axes.iter().zip(scales).map(|(axis, scale)| known_scale(cx, x, *axis, *scale)).collect()
}

fn known_scale(cx: &mut Onnx, x: ValueId, axis: usize, scale: f64) -> Result<Axis, RuleError> {
    if scale <= 0.0 || !scale.is_finite() {
        return Err(malformed(format!("a scale of {scale}")));
    }
    let input = cx.b.shape(x)[axis].clone();
    let (top, bottom) = fraction(scale as f32);
    let output = match input.as_int() {
        Some(size) => Expr::int((size as f32 * scale as f32) as i64),
        None => (&input * top).floor_div_in(&Expr::int(bottom), cx.b.ranges()),
    };
    let scale = Scale::Ratio(Expr::int(top), Expr::int(bottom));
    Ok(Axis { axis, input, output, scale, region: None })
}

/// The simplest fraction that rounds to a number.
fn fraction(number: f32) -> (i64, i64) {
    let (mut top, mut bottom, mut last_top, mut last_bottom) = (1i64, 0i64, 0i64, 1i64);
    let mut rest = f64::from(number);
    loop {
        let whole = rest.floor();
        let digit = whole as i64;
        let next = digit.checked_mul(top).and_then(|product| product.checked_add(last_top));
        let below = digit.checked_mul(bottom).and_then(|product| product.checked_add(last_bottom));
        let (Some(next), Some(below)) = (next, below) else { break };
        (last_top, last_bottom, top, bottom) = (top, bottom, next, below);
        if (top as f64 / bottom as f64) as f32 == number || rest == whole {
            break;
        }
        rest = 1.0 / (rest - whole);
    }
    (top, bottom)
}

/// Scales that are known when the model is compiled are; of others the sizes follow when it runs.
fn by_scales(cx: &mut Onnx, x: ValueId, axes: &[usize], scales: ValueId) -> Result<Vec<Axis>, RuleError> {
    let scales = cx.required_shape(scales, &[Expr::int(axes.len() as i64)])?;
    let mut all = Vec::new();
    for (position, axis) in axes.iter().enumerate() {
        let scale = cx.b.pick(scales, 0, &Expr::int(position as i64))?;
        if let Some([known]) = cx.b.numbers(scale).as_deref() {
            all.push(known_scale(cx, x, *axis, *known)?);
            continue;
        }
        let input = cx.b.shape(x)[*axis].clone();
        let scale = cx.b.cast(scale, DType::F32);
        let size = cx.b.index(input.clone(), &[]);
        let size = cx.apply([size, scale], DType::F32, |[size, scale]| (size * scale).floor())?;
        let output = cx.read_size(size, None)?;
        all.push(Axis { axis: *axis, input, output, scale: Scale::Data(scale), region: None });
    }
    Ok(all)
}

fn by_sizes(
    cx: &mut Onnx,
    x: ValueId,
    axes: &[usize],
    sizes: ValueId,
    policy: &str,
) -> Result<Vec<Axis>, RuleError> {
    let sizes = cx.required_shape(sizes, &[Expr::int(axes.len() as i64)])?;
    let (sizes, own) = (cx.sizes(sizes)?, cx.b.shape(x));
    if sizes.len() != axes.len() {
        return Err(malformed(format!("{} sizes for {} axes", sizes.len(), axes.len())));
    }
    let pairs = axes.iter().zip(sizes).map(|(axis, output)| (*axis, own[*axis].clone(), output));
    if policy == "stretch" {
        let stretched = pairs.map(|(axis, input, output)| {
            let scale = Scale::Ratio(output.clone(), input.clone());
            Axis { axis, input, output, scale, region: None }
        });
        return Ok(stretched.collect());
    }
    let better = match policy {
        "not_larger" => Relation::Lt,
        "not_smaller" => Relation::Gt,
        other => return Err(malformed(format!("`keep_aspect_ratio_policy` is `{other}`"))),
    };
    let pairs: Vec<_> = pairs.collect();
    let mut common: Option<(Expr, Expr)> = None;
    for (_, input, output) in &pairs {
        common = Some(match common {
            None => (output.clone(), input.clone()),
            Some((top, bottom)) => {
                let is_better = Condition::compare(output * &bottom, better, &top * input);
                let takes = is_better.indicator(cx.b.ranges());
                let choose = |own: &Expr, other: &Expr| &(&takes * &(own - other)) + other;
                (choose(output, &top), choose(input, &bottom))
            }
        });
    }
    let (top, bottom) = common.ok_or_else(|| malformed("no axis is resized"))?;
    let fitted = pairs.into_iter().map(|(axis, input, _)| {
        // Halves are rounded up.
        let twice = &(&(&input * &top) * 2) + &bottom;
        let output = twice.floor_div_in(&(&bottom * 2), cx.b.ranges());
        Axis { axis, input, output, scale: Scale::Ratio(top.clone(), bottom.clone()), region: None }
    });
    Ok(fitted.collect())
}

/// All starts, then all ends.
fn regions(cx: &mut Onnx, roi: ValueId, axes: &mut [Axis]) -> Result<(), RuleError> {
    let count = axes.len();
    let roi = cx.required_shape(roi, &[Expr::int(2 * count as i64)])?;
    let roi = cx.b.cast(roi, DType::F64);
    for (position, axis) in axes.iter_mut().enumerate() {
        let [start, end] = [position, position + count].map(|k| cx.b.pick(roi, 0, &Expr::int(k as i64)));
        let (start, end) = (start?, end?);
        let numbers = [start, end].map(|value| cx.b.numbers(value).and_then(|all| all.first().copied()));
        if numbers != [Some(0.0), Some(1.0)] || !axis.is_same(cx) {
            axis.region = Some([start, end]);
        }
    }
    Ok(())
}

// --- elements ------------------------------------------------------------------------------------------------------

fn resampled(cx: &mut Onnx, x: ValueId, axes: &[Axis], way: &Way) -> Result<ValueId, RuleError> {
    let (dtype, narrow) = (cx.b.dtype(x), cx.narrow.get(&x).copied());
    let computes = way.kernel.is_some() || way.beyond.is_some();
    let wide = if !computes {
        dtype
    } else if dtype.is_float() {
        dtype.compute()
    } else if dtype.size() > 2 {
        DType::F64
    } else {
        DType::F32
    };
    let mut result = cx.b.cast(x, wide);
    // Innermost axis first.
    for axis in axes.iter().rev().filter(|axis| !axis.is_same(cx)).collect::<Vec<_>>() {
        let exists = Condition::compare(axis.input.clone(), Relation::Ge, 1);
        cx.b.require(exists, "an image without elements cannot be resized");
        let place = place::of(cx, axis, way.mapping)?;
        result = match &way.kernel {
            None => taps::nearest(cx, result, axis, &place, way.nearest)?,
            Some(kernel) => kernel.apply(cx, result, axis, &place)?,
        };
        if let Some(value) = way.beyond {
            result = beyond(cx, result, axis, &place, value)?;
        }
    }
    let result = if wide == dtype || dtype.is_float() { result } else { whole(cx, result, dtype, way)? };
    let result = cx.b.cast(result, dtype);
    if let Some(narrow) = narrow {
        cx.narrow.insert(result, narrow);
    }
    Ok(result)
}

/// Integers are rounded, and end where their type does. ONNX Runtime leaves fractions away, unless it smooths.
fn whole(cx: &mut Onnx, x: ValueId, dtype: DType, way: &Way) -> Result<ValueId, RuleError> {
    if dtype.category() != Category::Int {
        return Ok(x);
    }
    let is_smooth = way.kernel.as_ref().is_some_and(|kernel| kernel.smooth);
    let cuts = cx.opened.is_quantized_by_runtime() && !is_smooth;
    let nearest = cx.b.unary(if cuts { Rounding::Trunc } else { Rounding::Round }, x);
    let low = cx.with_number(BinaryOp::Maximum, nearest, Scalar::lowest(dtype).to_f64())?;
    cx.with_number(BinaryOp::Minimum, low, Scalar::highest(dtype).to_f64())
}

/// A number in place of what comes from outside of the image.
fn beyond(cx: &mut Onnx, x: ValueId, axis: &Axis, place: &Place, value: f64) -> Result<ValueId, RuleError> {
    let Place::Number(at) = place else {
        return Err(unsupported("what is beyond the image of a place that is a fraction"));
    };
    let last = cx.b.index(&axis.input - 1, &[]);
    let last = cx.b.cast(last, DType::F64);
    let at = Formula::from(*at);
    let outside = cx.formula(DType::F64, &at.lt(0.0).or(at.gt(last)))?;
    let behind = cx.b.rank(x) - axis.axis;
    let outside = cx.trailing_ones(outside, behind)?;
    let value = cx.b.full_like(value, x);
    Ok(cx.b.select(outside, value, x)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, float, int, ints, text};
    use super::fraction;
    use crate::interpret::Tensor;

    #[test]
    fn scales_are_the_simplest_fractions() {
        assert_eq!(fraction(0.6), (3, 5));
        assert_eq!(fraction(2.0), (2, 1));
        assert_eq!(fraction(1.0 / 3.0), (1, 3));
        let (top, bottom) = fraction(0.123_456_79);
        assert_eq!((top as f64 / bottom as f64) as f32, 0.123_456_79);
    }

    fn row(attributes: &[super::super::super::proto::AttributeProto], size: i64) -> Vec<f64> {
        let model = Model::new(19)
            .input("x", Tensor::from_f32(&[1, 4], &[1.0, 2.0, 3.0, 4.0]))
            .constant("size", &Tensor::from_i64(&[1], &[size]));
        let attributes = [attributes, &[ints("axes", &[1])]].concat();
        model.node("Resize", &["x", "", "", "size"], &["y"], &attributes).numbers()
    }

    #[test]
    fn places_follow_the_transformation_and_what_is_nearest() {
        let asymmetric = text("coordinate_transformation_mode", "asymmetric");
        let corners = text("coordinate_transformation_mode", "align_corners");
        // From 0, 1.33, 2.67.
        assert_eq!(row(&[asymmetric.clone(), text("nearest_mode", "floor")], 3), [1.0, 2.0, 3.0]);
        assert_eq!(row(&[asymmetric, text("nearest_mode", "ceil")], 3), [1.0, 3.0, 4.0]);
        assert_eq!(row(&[corners, text("mode", "linear")], 7), [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0]);
        // From 0.5 and 2.5.
        assert_eq!(row(&[text("mode", "linear")], 2), [1.5, 3.5]);
        assert_eq!(row(&[], 2), [1.0, 3.0]);
        assert_eq!(row(&[text("nearest_mode", "round_prefer_ceil")], 2), [2.0, 4.0]);
        // Weights 1, 3, 3, 1 of eight; what is before the first one counts as it.
        let smooth = row(&[text("mode", "linear"), int("antialias", 1)], 2);
        assert_eq!(smooth, [1.625, 3.375]);
    }

    #[test]
    fn a_region_may_leave_the_image() {
        let model = Model::new(13)
            .input("x", Tensor::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0]))
            .input("roi", Tensor::from_f32(&[2], &[0.5, 1.5]))
            .constant("size", &Tensor::from_i64(&[1], &[3]));
        let attributes = [
            text("coordinate_transformation_mode", "tf_crop_and_resize"),
            text("mode", "linear"),
            float("extrapolation_value", 9.0),
        ];
        // From 1.5, 3 and 4.5.
        let model = model.node("Resize", &["x", "roi", "", "size"], &["y"], &attributes);
        assert_eq!(model.numbers(), [2.5, 4.0, 9.0]);
    }

    #[test]
    fn scales_in_the_file_are_no_weights() {
        let model = Model::new(13)
            .fixed_input("x", Tensor::from_f32(&[2], &[1.0, 2.0]))
            .constant("scales", &Tensor::from_f32(&[1], &[2.0]))
            .node("Resize", &["x", "", "scales"], &["y"], &[text("mode", "nearest")]);
        assert!(model.import(&["y"]).unwrap().graph.symbols.is_empty());
        assert_eq!(model.numbers(), [1.0, 1.0, 2.0, 2.0]);
    }

    #[test]
    fn corners_of_a_fractional_length_are_those_of_who_wrote_the_model() {
        let numbers = |producer: &str| {
            let model = Model::new(13)
                .by(producer)
                .input("x", Tensor::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0]))
                .constant("scales", &Tensor::from_f32(&[1], &[0.875]));
            let corners = text("coordinate_transformation_mode", "align_corners");
            model.node("Resize", &["x", "", "scales"], &["y"], &[text("mode", "linear"), corners]).numbers()
        };
        // Steps of 3 / 2.5 and of 3 / 2.
        let [standard, torch] = [numbers("other"), numbers("pytorch")];
        assert!((standard[1] - 2.2).abs() < 1e-6 && (standard[2] - 3.4).abs() < 1e-6, "{standard:?}");
        assert_eq!(torch, [1.0, 2.5, 4.0]);
    }

    #[test]
    fn integers_between_others_are_those_of_who_wrote_the_model() {
        let numbers = |producer: &str| {
            let model = Model::new(19)
                .by(producer)
                .fixed_input("x", Tensor::from_i32(&[2], &[1, 4]))
                .constant("scales", &Tensor::from_f32(&[1], &[2.0]));
            model.node("Resize", &["x", "", "scales"], &["y"], &[text("mode", "linear")]).numbers()
        };
        // Between them are 1.75 and 3.25.
        assert_eq!(numbers("other"), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(numbers("onnx.quantize"), [1.0, 1.0, 3.0, 4.0]);
    }

    #[test]
    fn scales_that_are_data_decide_sizes() {
        let model = Model::new(13)
            .input("x", Tensor::from_f32(&[2], &[1.0, 2.0]))
            .input("scales", Tensor::from_f32(&[1], &[2.5]));
        let attributes = [text("mode", "nearest"), text("coordinate_transformation_mode", "asymmetric")];
        let model = model.node("Resize", &["x", "", "scales"], &["y"], &attributes);
        assert_eq!(model.numbers(), [1.0, 1.0, 2.0, 2.0, 2.0]);
    }
}
