//! Products and convolutions of dequantised numbers become those of the integers: `(q - z) * s` times weights of the same form is the
//! product of `q - z` with the weights' integers, times both scales. What a sum adds up is then exact.
//!
//! Only what has code for integers later (`byte_products.rs`): bytes on the left, and weights that no run replaces and signed bytes hold.

use super::byte_products::{differs, is_byte};
use super::gemv_weights::is_worth_bytes;
use super::integer_extent::{Extent, fits_signed_byte, of_constant};
use super::rewrite::{Rewriter, everywhere, rewrite};
use super::{cse, dce, fold_uniform_constants, simplify};
use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, Builder, Conv, Graph, Node, Op, ShapeError, ValueId};
use crate::symbolic::Expr;
use crate::target::templates::{WORD, has_byte_template, is_depthwise};

/// Computes products of dequantised bytes in integers.
pub fn quantised_products(graph: Graph) -> Graph {
    let is_quantised = |graph: &Graph| {
        let of_bytes = |dtype: DType| is_byte(dtype) || matches!(dtype, DType::F8(_));
        graph.nodes.iter().any(|node| node.op == Op::Cast && of_bytes(graph.ty(node.inputs[0]).dtype))
    };
    if !is_quantised(&graph) {
        return graph;
    }
    let graph = cse(simplify(fold_uniform_constants(dce(graph))));
    let graph = everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let is_contraction = if let Op::Conv(conv) = &node.op {
                !conv.transposed && has_depth(rewriter, node, conv)
            } else {
                node.op == Op::MatMul
            };
            if !is_contraction || rewriter.builder.dtype(node.outputs[0]) != DType::F32 {
                return None;
            }
            product(rewriter, node).map(|value| vec![value])
        });
    });
    dce(graph)
}

/// Whether a convolution has code for bytes: its sums are of several channels, or of single ones that are read as they are.
fn has_depth(rewriter: &Rewriter, node: &Node, conv: &Conv) -> bool {
    let weight = rewriter.builder.ty(node.inputs[1]);
    let channels = weight.shape[1].as_int();
    channels.is_some_and(|channels| channels > 1 && (conv.groups == 1 || channels % WORD == 0))
        || (is_depthwise(conv, weight) && has_byte_template(conv, weight))
}

/// Integers and what they are multiplied by, both of an operand's shape.
#[derive(Clone, Copy)]
struct Scaled {
    integers: ValueId,
    scale: Option<ValueId>,
}

fn product(rewriter: &mut Rewriter, node: &Node) -> Option<ValueId> {
    let (left, right) = (node.inputs[0], node.inputs[1]);
    let b = &mut rewriter.builder;
    if !is_small_constant(b, right) {
        return product_with_float8(b, node);
    }
    if !is_dequantised(b, left) {
        return product_with_integers(b, node);
    }
    let (left, right) = (scaled(b, left)?, scaled(b, right)?);
    let output = b.shape(node.outputs[0]);
    let rank = output.len();
    // The axes of operands along which sums run.
    let (left_depth, right_depth) = if node.op == Op::MatMul {
        (vec![rank - 1], vec![rank - 2])
    } else {
        ((0..rank).collect(), (1..rank).collect::<Vec<usize>>())
    };
    let is_free = |value: Option<ValueId>, depth: &[usize]| {
        value.is_none_or(|value| depth.iter().all(|axis| !differs(b, value, *axis)))
    };
    if !is_free(left.scale, &left_depth) || !is_free(right.scale, &right_depth) {
        return None;
    }
    let sums = if let Op::Conv(conv) = &node.op {
        b.conv(left.integers, right.integers, conv.clone())
    } else {
        b.matmul(left.integers, right.integers)
    };
    rescaled(b, node, [left.scale, right.scale], sums.ok()?).ok()
}

/// A product whose right operand alone is dequantised: one with the integers, whose sums the scale of each column follows. The integers
/// can then be stored as bytes, however many rows there are.
fn product_with_integers(b: &mut Builder, node: &Node) -> Option<ValueId> {
    if node.op != Op::MatMul || !b.ty(node.inputs[1]).numel().as_int().is_some_and(is_worth_bytes) {
        return None;
    }
    let right = scaled(b, node.inputs[1])?;
    let depth = b.rank(node.inputs[1]) - 2;
    let scale = right.scale.filter(|scale| !differs(b, *scale, depth))?;
    let weights = b.cast(right.integers, DType::F32);
    let sums = b.matmul(node.inputs[0], weights).ok()?;
    rescaled(b, node, [None, Some(scale)], sums).ok()
}

/// The same for a right operand of 8-bit floats.
fn product_with_float8(b: &mut Builder, node: &Node) -> Option<ValueId> {
    if node.op != Op::MatMul || !b.ty(node.inputs[1]).numel().as_int().is_some_and(is_worth_bytes) {
        return None;
    }
    let right = scaled_float8(b, node.inputs[1])?;
    let depth = b.rank(node.inputs[1]) - 2;
    let scale = right.scale.filter(|scale| !differs(b, *scale, depth))?;
    let sums = b.matmul(node.inputs[0], right.integers).ok()?;
    rescaled(b, node, [None, Some(scale)], sums).ok()
}

/// An operand of 8-bit floats that no run replaces, converted, and its scale. Adds nodes only.
fn scaled_float8(b: &mut Builder, value: ValueId) -> Option<Scaled> {
    let node = b.producer(value)?.clone();
    if let Op::View(coords) = &node.op {
        return viewed(b, value, coords, scaled_float8);
    }
    if node.op == Op::Binary(BinaryOp::Mul) && b.dtype(value) == DType::F32 {
        let own = scaled_float8(b, node.inputs[0])?;
        return own.scale.is_none().then_some(Scaled { scale: Some(node.inputs[1]), ..own });
    }
    let from = *node.inputs.first()?;
    let widens = node.op == Op::Cast && b.dtype(value) == DType::F32 && matches!(b.dtype(from), DType::F8(_));
    let Op::Constant(id) = b.producer(from)?.op else { return None };
    (widens && b.graph().constants[id].is_fixed()).then_some(Scaled { integers: value, scale: None })
}

/// What a view shows of what is split so.
fn viewed(
    b: &mut Builder,
    value: ValueId,
    coords: &[Expr],
    split: fn(&mut Builder, ValueId) -> Option<Scaled>,
) -> Option<Scaled> {
    let from = b.producer(value)?.inputs[0];
    let own = split(b, from)?;
    let shape = b.shape(value);
    let mut seen = |value: ValueId| b.view(value, &shape, coords.to_vec()).ok();
    let scale = match own.scale {
        Some(scale) => Some(seen(scale)?),
        None => None,
    };
    Some(Scaled { integers: seen(own.integers)?, scale })
}

/// Sums of integers times the scales of both operands.
fn rescaled(
    b: &mut Builder,
    node: &Node,
    scales: [Option<ValueId>; 2],
    sums: ValueId,
) -> Result<ValueId, ShapeError> {
    let output = b.shape(node.outputs[0]);
    let rank = output.len();
    let mut result = b.cast(sums, DType::F32);
    // Each as a tensor of the axes that it depends on, along the result's.
    let mut small = Vec::new();
    for (position, scale) in scales.into_iter().enumerate() {
        let Some(scale) = scale else { continue };
        let of_conv = matches!(node.op, Op::Conv(_));
        // The operand's axis that is each of the result's.
        let own: Vec<Option<usize>> = (0..rank)
            .map(|axis| match (of_conv, position) {
                (true, 0) => None,
                (true, _) => (axis == 1).then_some(0),
                (false, 0) => (axis + 1 < rank).then_some(axis),
                (false, _) => (axis + 2 != rank).then_some(axis),
            })
            .collect();
        let is_kept = |axis: usize| own[axis].filter(|from| differs(b, scale, *from));
        let kept: Vec<Option<usize>> = (0..rank).map(is_kept).collect();
        let one = Expr::int(1);
        let shape: Vec<Expr> = (0..rank)
            .map(|axis| if kept[axis].is_some() { output[axis].clone() } else { one.clone() })
            .collect();
        let mut coords = vec![Expr::int(0); b.rank(scale)];
        for (axis, from) in kept.iter().enumerate() {
            if let Some(from) = from {
                coords[*from] = Expr::axis(axis);
            }
        }
        small.push(b.view(scale, &shape, coords)?);
    }
    if let [left, right] = *small.as_slice()
        && b.ty(left).numel().is(1)
    {
        // Known when the model is built.
        let shape = b.shape(right);
        let left = b.expand(left, &shape)?;
        small = vec![b.binary(BinaryOp::Mul, left, right)?];
    }
    for scale in small {
        let scale = b.expand(scale, &output)?;
        result = b.binary(BinaryOp::Mul, result, scale)?;
    }
    Ok(result)
}

/// Whether a value is a constant that no run replaces, of integers that signed bytes hold, times a scale.
fn is_small_constant(b: &Builder, value: ValueId) -> bool {
    let Some(node) = b.producer(value) else { return false };
    if matches!(node.op, Op::View(_) | Op::Binary(BinaryOp::Mul)) {
        return is_small_constant(b, node.inputs[0]);
    }
    range(b, value).is_some_and(fits_signed_byte)
}

/// Between which numbers the elements of what is computed of constants of integers lie.
fn range(b: &Builder, value: ValueId) -> Option<Extent> {
    let node = b.producer(value)?;
    if matches!(node.op, Op::View(_) | Op::Cast) {
        return range(b, node.inputs[0]);
    }
    if node.op == Op::Binary(BinaryOp::Sub) {
        let (own, zero) = (range(b, node.inputs[0])?, range(b, node.inputs[1])?);
        return Some((own.0.checked_sub(zero.1)?, own.1.checked_sub(zero.0)?));
    }
    if let Op::Constant(id) = node.op {
        let constant = &b.graph().constants[id];
        let is_integer = constant.dtype.category() == Category::Int && constant.is_fixed();
        return is_integer.then(|| of_constant(constant)).flatten();
    }
    whole_number(b, value).map(|number| (number, number))
}

/// The whole number that all elements of a value are.
fn whole_number(b: &Builder, value: ValueId) -> Option<i64> {
    let Op::Full(number) = b.producer(value)?.op else { return None };
    let own = number.to_i64();
    (own as f64 == number.to_f64() && own.unsigned_abs() <= 1 << 20).then_some(own)
}

/// Whether a value is made of bytes that are converted, and scaled.
fn is_dequantised(b: &Builder, value: ValueId) -> bool {
    let Some(node) = b.producer(value) else { return false };
    if matches!(node.op, Op::View(_) | Op::Binary(BinaryOp::Mul | BinaryOp::Sub)) {
        return is_dequantised(b, node.inputs[0]);
    }
    let from = *node.inputs.first().unwrap_or(&value);
    node.op == Op::Cast
        && (is_byte(b.dtype(from)) || (b.dtype(from) == DType::I32 && is_dequantised(b, from)))
}

/// An operand as integers and a scale. Adds nodes only.
fn scaled(b: &mut Builder, value: ValueId) -> Option<Scaled> {
    let node = b.producer(value)?.clone();
    if let Op::View(coords) = &node.op {
        return viewed(b, value, coords, scaled);
    }
    if node.op == Op::Binary(BinaryOp::Mul) && b.dtype(value) == DType::F32 {
        let own = scaled(b, node.inputs[0])?;
        return own.scale.is_none().then_some(Scaled { scale: Some(node.inputs[1]), ..own });
    }
    Some(Scaled { integers: integers(b, value)?, scale: None })
}

/// A value of whole numbers in `i32`; wider ones are known to be small.
fn integers(b: &mut Builder, value: ValueId) -> Option<ValueId> {
    let dtype = b.dtype(value);
    if dtype == DType::I32 {
        return Some(value);
    }
    if let Some(number) = whole_number(b, value) {
        let shape = b.shape(value);
        return Some(b.full(number, DType::I32, &shape));
    }
    if is_byte(dtype) {
        return Some(b.cast(value, DType::I32));
    }
    let node = b.producer(value)?.clone();
    if matches!(node.op, Op::Constant(_)) {
        return (dtype.category() == Category::Int).then(|| b.cast(value, DType::I32));
    }
    if let Op::View(coords) = &node.op {
        let own = integers(b, node.inputs[0])?;
        let shape = b.shape(value);
        return b.view(own, &shape, coords.clone()).ok();
    }
    if node.op == Op::Binary(BinaryOp::Sub) {
        let (own, zero) = (integers(b, node.inputs[0])?, integers(b, node.inputs[1])?);
        return b.binary(BinaryOp::Sub, own, zero).ok();
    }
    let converts = node.op == Op::Cast && b.dtype(node.inputs[0]).category() == Category::Int;
    converts.then(|| integers(b, node.inputs[0])).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};

    /// The types of the contractions of a graph after the pass, whose result stays close.
    #[track_caller]
    fn types(text: &str) -> Vec<DType> {
        let graph = parse(&format!("graph {{ {text} }}")).expect("the text parses");
        verify(&graph).expect("the graph is well formed");
        let result = quantised_products(graph.clone());
        verify(&result).expect("the result is well formed");
        let sizes: Vec<usize> = graph
            .ty(graph.inputs[0].value)
            .shape
            .iter()
            .map(|size| size.as_int().expect("a number") as usize)
            .collect();
        let data = (0..sizes.iter().product::<usize>()).map(|k| (k * 97 % 251) as u8).collect::<Vec<u8>>();
        let inputs = [Tensor::new(graph.ty(graph.inputs[0].value).dtype, sizes, data).expect("the data fit")];
        let numbers = |graph: &Graph| evaluate(graph, &inputs).expect("runs")[0].to_f64();
        for (own, other) in numbers(&graph).into_iter().zip(numbers(&result)) {
            assert!((own - other).abs() <= 1e-5 * own.abs().max(1.0), "{own} {other}");
        }
        let is_contraction = |node: &&Node| matches!(node.op, Op::MatMul | Op::Conv(_));
        result.nodes.iter().filter(is_contraction).map(|node| result.ty(node.outputs[0]).dtype).collect()
    }

    const PRODUCT: &str = "const c0: i8[5, 8] = random 1 const c1: f32[5] = random 2 const c2: i64[5] = splat 0
         input %x: u8[3, 8] %q: i8[5, 8] = constant c0 %l: i64[5, 8] = cast %q %n: i64[5] = constant c2
         %m: i64[5, 8] = view %n [i0] %d: i64[5, 8] = sub %l, %m %f: f32[5, 8] = cast %d %s: f32[5] = constant c1
         %t: f32[5, 8] = view %s [i0] %g: f32[5, 8] = mul %f, %t %w: f32[8, 5] = view %g [i1, i0]
         %i: f32[3, 8] = cast %x %z: f32[3, 8] = full 117.0 %c: f32[3, 8] = sub %i, %z %u: f32[3, 8] = full 0.25
         %a: f32[3, 8] = mul %c, %u %y: f32[3, 5] = matmul %a, %w output %y \"y\"";

    #[test]
    fn products_of_dequantised_numbers_are_of_integers() {
        assert_eq!(types(PRODUCT), [DType::I32]);
        assert_eq!(
            types(&PRODUCT.replace("full 117.0", "full 117.5")),
            [DType::F32],
            "no integer stands for zero"
        );
        assert_eq!(types(&PRODUCT.replace("splat 0", "splat 200")), [DType::F32], "weights are below -128");
        assert_eq!(
            types(&PRODUCT.replace("c0: i8[5, 8] =", "c0: i8[5, 8] weight =")),
            [DType::F32],
            "they may be others"
        );
        // A scale of its own for each element of a sum.
        let along_depth = PRODUCT.replace("f32[5]", "f32[8]").replace("view %s [i0]", "view %s [i1]");
        assert_eq!(types(&along_depth), [DType::F32]);
    }

    #[test]
    fn so_are_convolutions_that_have_code_for_bytes() {
        let text = |own: i64, groups: i64| {
            format!(
                "const c0: i8[8, {own}, 3, 3] = random 1 const c1: f32[8] = random 2 input %x: i8[1, 8, 5, 5]
                 %q: i8[8, {own}, 3, 3] = constant c0 %f: f32[8, {own}, 3, 3] = cast %q %s: f32[8] = constant c1
                 %t: f32[8, {own}, 3, 3] = view %s [i0] %w: f32[8, {own}, 3, 3] = mul %f, %t
                 %i: f32[1, 8, 5, 5] = cast %x %u: f32[1, 8, 5, 5] = full 0.5 %a: f32[1, 8, 5, 5] = mul %i, %u
                 %y: f32[1, 8, 5, 5] = conv %a, %w stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups {groups}
                 output %y \"y\""
            )
        };
        assert_eq!(types(&text(8, 1)), [DType::I32]);
        assert_eq!(types(&text(4, 2)), [DType::I32]);
        assert_eq!(types(&text(1, 8)), [DType::I32], "single channels have code of their own");
        let two = text(2, 4);
        assert_eq!(types(&two), [DType::F32], "two channels make no word");
    }
}
