//! Quantised numbers: integers and small floats that stand for multiples of a scale, counted from a zero point; products and
//! convolutions of them in integers.

use super::super::call::{Call, malformed};
use super::super::types::{ElementType, element_type};
use super::super::walk::Onnx;
use super::window::convolution;
use super::{Rule, many, one, operators};
use crate::dtype::{Category, DType};
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{ReduceOp, Scalar, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "QuantizeLinear" => quantize,
    "DequantizeLinear" => dequantize,
    "DynamicQuantizeLinear" => quantize_by_range,
    "MatMulInteger" => matmul_integer,
    "QLinearMatMul" => matmul_quantized,
    "ConvInteger" => conv_integer,
    "QLinearConv" => conv_quantized,
}

/// The element type of a value.
fn type_of(cx: &Onnx, x: ValueId) -> ElementType {
    ElementType { dtype: cx.b.dtype(x), narrow: cx.narrow.get(&x).copied() }
}

/// The element type that an attribute names.
fn type_attribute(c: &Call, name: &str) -> Result<Option<ElementType>, RuleError> {
    let number = c.opt_int(name)?.filter(|number| *number != 0);
    let number = number.map(|number| i32::try_from(number).unwrap_or(-1));
    number.map(|number| element_type(number).map_err(malformed)).transpose()
}

/// The least and the greatest number of integers.
fn range(ty: ElementType) -> Result<(f64, f64), RuleError> {
    if let Some(narrow) = ty.narrow {
        return Ok(narrow.range());
    }
    let limits = (Scalar::lowest(ty.dtype), Scalar::highest(ty.dtype));
    match (ty.dtype.category(), limits) {
        (Category::Int, (low, high)) => Ok((low.to_f64(), high.to_f64())),
        (Category::Bool | Category::Float, _) => {
            Err(malformed(format!("numbers are quantised to {}", ty.dtype)))
        }
    }
}

/// Scales and zero points: one for all elements, one for each position along the axis, or one for each block along it.
struct Granularity {
    axis: i64,
    block: i64,
}

impl Granularity {
    fn of(c: &Call) -> Result<Granularity, RuleError> {
        let block = c.int("block_size", 0)?;
        if block < 0 {
            return Err(malformed(format!("`block_size` is {block}")));
        }
        Ok(Granularity { axis: c.int("axis", 1)?, block })
    }

    /// As a tensor that broadcasts against one of `shape`.
    fn spread(&self, cx: &mut Onnx, x: ValueId, shape: &[Expr]) -> Result<ValueId, RuleError> {
        let own = cx.b.shape(x);
        if Expr::product(&own).is(1) {
            return Ok(cx.b.reshape(x, &[])?);
        }
        if own.len() == 1 && self.block == 0 {
            // One axis is the only one there is, whatever the attribute says.
            let axis = if shape.len() == 1 { 0 } else { axis_of(self.axis, shape.len())? };
            cx.b.require_same(&own[0], &shape[axis])?;
            return cx.trailing_ones(x, shape.len() - axis);
        }
        if own.len() != shape.len() || self.block == 0 {
            return Err(malformed("scales fit neither all elements nor an axis nor blocks along it"));
        }
        let axis = axis_of(self.axis, shape.len())?;
        let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
        coords[axis] = coords[axis].floor_div_in(&Expr::int(self.block), &cx.b.axis_ranges(shape));
        for (k, (own, size)) in own.iter().zip(shape).enumerate().filter(|(k, _)| *k != axis) {
            cx.b.require_same(own, size)
                .map_err(|_| malformed(format!("scales differ in size along axis {k}")))?;
        }
        Ok(cx.b.view(x, shape, coords)?)
    }
}

/// The type in which two numbers are divided: what the node says, or that of the scale if it has fractions.
fn precision(cx: &Onnx, c: &Call, x: ValueId, scale: ValueId) -> Result<DType, RuleError> {
    if let Some(ty) = type_attribute(c, "precision")? {
        return Ok(ty.dtype);
    }
    let is_real = |dtype: DType| matches!(dtype, DType::F32 | DType::F64 | DType::F16 | DType::Bf16);
    let types = [cx.b.dtype(scale), cx.b.dtype(x)];
    Ok(types.into_iter().find(|dtype| is_real(*dtype)).unwrap_or(DType::F32))
}

fn quantize(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, scale, zero) = (c.tensor(0)?, c.tensor(1)?, c.opt_tensor(2)?);
    let ty = match zero {
        Some(zero) => type_of(cx, zero),
        None => type_attribute(c, "output_dtype")?.unwrap_or(DType::U8.into()),
    };
    let (shape, granularity) = (cx.b.shape(x), Granularity::of(c)?);
    let divided = precision(cx, c, x, scale)?;
    let scale = granularity.spread(cx, scale, &shape)?;
    let zero = zero.map(|zero| granularity.spread(cx, zero, &shape)).transpose()?;
    let quotient = cx.apply([x, scale], divided, |[x, scale]| x / scale)?;
    let value = if ty.dtype.is_float() {
        // Their zero point is zero.
        if c.flag("saturate", true)? {
            cx.converted(quotient, ty)?
        } else {
            cx.converted_unbounded(quotient, ty)?
        }
    } else {
        rounded(cx, quotient, zero, ty)?
    };
    one(value)
}

/// The nearest integers, the even one of two, counted from the zero point, within what the type has. The standard does not say what
/// becomes of NaN; ONNX Runtime makes it the lowest, and its quantiser gives masks of infinities an infinite scale.
fn rounded(cx: &mut Onnx, x: ValueId, zero: Option<ValueId>, ty: ElementType) -> Result<ValueId, RuleError> {
    let (low, high) = range(ty)?;
    // Half types do not have all integers.
    let wide = cx.b.dtype(x).compute();
    let mut value = Formula::from(cx.b.cast(x, wide)).round();
    if let Some(zero) = zero {
        value = value + Formula::from(cx.b.cast(zero, wide));
    }
    let value = cx.formula(wide, &value.fmax(low).min(high))?;
    let value = cx.b.cast(value, ty.dtype);
    if let Some(narrow) = ty.narrow {
        cx.narrow.insert(value, narrow);
    }
    Ok(value)
}

fn dequantize(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, scale, zero) = (c.tensor(0)?, c.tensor(1)?, c.opt_tensor(2)?);
    let dtype = match type_attribute(c, "output_dtype")? {
        Some(ty) => ty.dtype,
        None if matches!(cx.b.dtype(scale), DType::F8(_)) => DType::F32,
        None => cx.b.dtype(scale),
    };
    let (shape, granularity) = (cx.b.shape(x), Granularity::of(c)?);
    let scale = granularity.spread(cx, scale, &shape)?;
    let value = match zero {
        Some(zero) if !cx.b.dtype(x).is_float() => {
            let zero = granularity.spread(cx, zero, &shape)?;
            centred(cx, x, Some(zero))?
        }
        Some(_) | None => x,
    };
    one(cx.apply([value, scale], dtype, |[x, scale]| x * scale)?)
}

/// Integers counted from zero instead of their zero point.
fn centred(cx: &mut Onnx, x: ValueId, zero: Option<ValueId>) -> Result<ValueId, RuleError> {
    let x = cx.b.cast(x, DType::I32);
    let Some(zero) = zero else { return Ok(x) };
    let zero = cx.b.cast(zero, DType::I32);
    cx.sub(x, zero)
}

/// Bytes with a scale and a zero point such that their range is that of the elements and of zero.
fn quantize_by_range(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let (dtype, axes) = (cx.b.dtype(x), (0..cx.b.rank(x)).collect::<Vec<_>>());
    let end = |cx: &mut Onnx, op: ReduceOp| -> Result<ValueId, RuleError> {
        Ok(if axes.is_empty() { x } else { cx.b.reduce(op, x, &axes, false)? })
    };
    let (low, high) = (end(cx, ReduceOp::Min)?, end(cx, ReduceOp::Max)?);
    let scale = cx.apply([low, high], dtype, |[low, high]| {
        let span = high.max(0.0) - low.min(0.0);
        // Where all elements are zero any scale will do.
        span.equals(0.0).select(1.0, &span / 255.0)
    })?;
    let zero =
        cx.apply([low, scale], dtype, |[low, scale]| (-(low.min(0.0) / scale)).max(0.0).min(255.0).round())?;
    let zero = cx.b.cast(zero, DType::U8);
    let quotient = cx.apply([x, scale], dtype, |[x, scale]| x / scale)?;
    many([rounded(cx, quotient, Some(zero), DType::U8.into())?, scale, zero])
}

/// A scale or zero point of the rows or columns of a matrix: one without other axes gets that of the columns or rows.
fn of_rows(cx: &mut Onnx, x: ValueId, matrix: ValueId) -> Result<ValueId, RuleError> {
    let one_for_all = cx.b.ty(x).numel().is(1);
    if one_for_all {
        return Ok(cx.b.reshape(x, &[])?);
    }
    if cx.b.rank(x) == 1 && cx.b.rank(matrix) > 1 { Ok(cx.b.unsqueeze(x, 1)?) } else { Ok(x) }
}

/// The product of integers, each counted from its zero point. Rows of the first and columns of the second may have their own.
fn integer_product(cx: &mut Onnx, pairs: [(ValueId, Option<ValueId>); 2]) -> Result<ValueId, RuleError> {
    let [(a, a_zero), (b, b_zero)] = pairs;
    let a_zero = a_zero.map(|zero| of_rows(cx, zero, a)).transpose()?;
    let (a, b) = (centred(cx, a, a_zero)?, centred(cx, b, b_zero)?);
    cx.matmul(a, b)
}

fn matmul_integer(cx: &mut Onnx, c: &Call) -> Rule {
    let pairs = [(c.tensor(0)?, c.opt_tensor(2)?), (c.tensor(1)?, c.opt_tensor(3)?)];
    one(integer_product(cx, pairs)?)
}

fn matmul_quantized(cx: &mut Onnx, c: &Call) -> Rule {
    let (a, b, zero) = (c.tensor(0)?, c.tensor(3)?, c.tensor(7)?);
    let ty = type_of(cx, zero);
    let product = integer_product(cx, [(a, Some(c.tensor(2)?)), (b, Some(c.tensor(5)?))])?;
    let a_scale = of_rows(cx, c.tensor(1)?, a)?;
    let (b_scale, y_scale) = (c.tensor(4)?, of_rows(cx, c.tensor(6)?, product)?);
    let zero = of_rows(cx, zero, product)?;
    one(requantized(cx, product, [a_scale, b_scale, y_scale], zero, ty)?)
}

/// Integers that stand for multiples of two scales, as multiples of a third.
fn requantized(
    cx: &mut Onnx,
    x: ValueId,
    scales: [ValueId; 3],
    zero: ValueId,
    ty: ElementType,
) -> Result<ValueId, RuleError> {
    // The factor is rounded to the type of the scales.
    let dtype = cx.b.dtype(scales[0]);
    let [first, second, result] = scales;
    let product = cx.apply([first, second], dtype, |[first, second]| first * second)?;
    let factor = cx.apply([product, result], dtype, |[product, result]| product / result)?;
    let value = cx.apply([x, factor], DType::F32, |[x, factor]| x * factor)?;
    rounded(cx, value, Some(zero), ty)
}

/// The convolution of integers, each counted from its zero point; around the image is what stands for zero.
fn integer_convolution(
    cx: &mut Onnx,
    c: &Call,
    pairs: [(ValueId, Option<ValueId>); 2],
) -> Result<ValueId, RuleError> {
    let [(x, x_zero), (weight, weight_zero)] = pairs;
    let x_zero = match x_zero {
        Some(zero) => Some(cx.b.reshape(zero, &[])?),
        None => None,
    };
    let weight_zero = weight_zero.map(|zero| of_channels(cx, zero, weight)).transpose()?;
    let (x, weight) = (centred(cx, x, x_zero)?, centred(cx, weight, weight_zero)?);
    convolution(cx, c, x, weight)
}

/// What each channel of a result has of its own, against what has `like`'s axes with channels first.
fn of_channels(cx: &mut Onnx, x: ValueId, like: ValueId) -> Result<ValueId, RuleError> {
    if cx.b.ty(x).numel().is(1) {
        return Ok(cx.b.reshape(x, &[])?);
    }
    let rank = cx.b.rank(like);
    cx.trailing_ones(x, rank)
}

fn conv_integer(cx: &mut Onnx, c: &Call) -> Rule {
    let pairs = [(c.tensor(0)?, c.opt_tensor(2)?), (c.tensor(1)?, c.opt_tensor(3)?)];
    one(integer_convolution(cx, c, pairs)?)
}

fn conv_quantized(cx: &mut Onnx, c: &Call) -> Rule {
    let (x, weight, zero) = (c.tensor(0)?, c.tensor(3)?, c.tensor(7)?);
    let ty = type_of(cx, zero);
    let mut sum = integer_convolution(cx, c, [(x, Some(c.tensor(2)?)), (weight, Some(c.tensor(5)?))])?;
    let rank = cx.b.rank(sum) - 1;
    let per_channel = |cx: &mut Onnx, value: ValueId| -> Result<ValueId, RuleError> {
        if cx.b.ty(value).numel().is(1) {
            Ok(cx.b.reshape(value, &[])?)
        } else {
            cx.trailing_ones(value, rank)
        }
    };
    if let Some(bias) = c.opt_tensor(8)? {
        let bias = per_channel(cx, bias)?;
        sum = cx.add(sum, bias)?;
    }
    let scales = [c.tensor(1)?, c.tensor(4)?, c.tensor(6)?];
    let mut spread = [scales[0]; 3];
    for (place, scale) in spread.iter_mut().zip(scales) {
        *place = per_channel(cx, scale)?;
    }
    let zero = per_channel(cx, zero)?;
    one(requantized(cx, sum, spread, zero, ty)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, int};
    use crate::dtype::DType;
    use crate::interpret::Tensor;

    fn bytes(sizes: &[usize], values: &[u8]) -> Tensor {
        Tensor::new(DType::U8, sizes.to_vec(), values.to_vec()).unwrap()
    }

    #[test]
    fn blocks_along_an_axis_have_scales_of_their_own() {
        let model = Model::new(21)
            .input("x", Tensor::from_f32(&[1, 5], &[1.0, 2.0, 3.0, 5.0, 2000.0]))
            .input("scale", Tensor::from_f32(&[1, 3], &[1.0, 2.0, 4.0]))
            .input("zero", bytes(&[1, 3], &[0, 10, 0]));
        let attributes = [int("axis", 1), int("block_size", 2)];
        let model = model.node("QuantizeLinear", &["x", "scale", "zero"], &["q"], &attributes);
        let model = model.node("DequantizeLinear", &["q", "scale", "zero"], &["y"], &attributes);
        // 1.5 and 2.5 both become 2, and what is too large the largest byte.
        assert_eq!(model.run(&["q"])[0].to_f64(), [1.0, 2.0, 12.0, 12.0, 255.0]);
        assert_eq!(model.numbers(), [1.0, 2.0, 4.0, 4.0, 1020.0]);
    }

    #[test]
    fn what_is_not_a_number_becomes_the_lowest() {
        let x = Tensor::from_f32(&[4], &[f32::NEG_INFINITY, 0.0, f32::NAN, 2.0]);
        let quantized = |scale: f32, zero: &Tensor| {
            let model = Model::new(21).input("x", x.clone()).constant("s", &Tensor::from_f32(&[], &[scale]));
            model.constant("z", zero).node("QuantizeLinear", &["x", "s", "z"], &["y"], &[]).numbers()
        };
        let signed = Tensor::new(DType::I8, vec![], vec![3]).unwrap();
        assert_eq!(quantized(1.0, &signed), [-128.0, 3.0, -128.0, 5.0]);
        assert_eq!(quantized(f32::INFINITY, &signed), [-128.0, 3.0, -128.0, 3.0]);
        assert_eq!(quantized(1.0, &bytes(&[], &[3])), [0.0, 3.0, 0.0, 5.0]);
    }

    #[test]
    fn products_are_of_integers_counted_from_their_zero_points() {
        let model = Model::new(21)
            .input("a", bytes(&[2, 2], &[1, 2, 3, 4]))
            .input("b", bytes(&[2, 1], &[5, 7]))
            .constant("a_zero", &bytes(&[2], &[1, 3]))
            .constant("b_zero", &bytes(&[], &[6]));
        let model = model.node("MatMulInteger", &["a", "b", "a_zero", "b_zero"], &["y"], &[]);
        assert_eq!(model.numbers(), [1.0, 1.0]);
    }
}
