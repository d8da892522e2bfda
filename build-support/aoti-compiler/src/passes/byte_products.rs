//! Products and convolutions of small integers as processors compute them fastest: of unsigned bytes, as they are stored, with
//! weights that signed bytes hold, four of the depth at once.
//!
//! The sum of `(q - z) * w` is that of `q * w` less `z` times the sum of the weights, which is known when the model is built. Around
//! an image is what stands for zero, and where the depth is no multiple of four, weights of zero follow.

use super::clean;
use super::integer_extent::{extents, fits_signed_byte};
use super::padded_images::padded_image;
use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Builder, Conv, Graph, Node, Op, ReduceOp, Scalar, ShapeError, ValueId};
use crate::symbolic::{Expr, Symbol};
use crate::target::Target;
use crate::target::templates::{WORD, has_byte_template, is_depthwise};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::BTreeSet;

/// Computes products of bytes with weights of bytes as they are, on processors.
pub fn products_of_bytes(graph: Graph, target: &Target) -> Graph {
    match target {
        Target::Gpu(_) => return graph,
        Target::Cpu(_) => {}
    }
    let mut is_any = false;
    let graph = everywhere(graph, &mut |graph, ranges| {
        let found = find(graph);
        is_any |= !found.is_empty();
        if found.is_empty() {
            return;
        }
        rewrite(graph, ranges, &mut |rewriter, node| {
            if !found.contains(node.outputs.first()?) {
                return None;
            }
            let left = Left::of(rewriter, node.inputs[0])?;
            product(&mut rewriter.builder, node, left).ok().flatten().map(|value| vec![value])
        });
    });
    if is_any { clean(graph) } else { graph }
}

/// The left operands, as they are stored, of the contractions that read bytes, by their results.
pub(crate) fn byte_operands(graph: &Graph) -> SecondaryMap<ValueId, Option<ValueId>> {
    let mut operands = SecondaryMap::new();
    let found = find(graph);
    if found.is_empty() {
        return operands;
    }
    let producers = graph.producers();
    let maker = |value: ValueId| producers[value.index()].map(|position| &graph.nodes[position]);
    for node in graph.nodes.iter().filter(|node| node.outputs.first().is_some_and(|own| found.contains(own)))
    {
        let Some(Node { op: Op::Cast, inputs, .. }) = maker(node.inputs[0]) else { continue };
        let has_template = if let Op::Conv(conv) = &node.op {
            has_byte_template(conv, graph.ty(node.inputs[1]))
        } else {
            graph.ty(node.inputs[0]).shape.last().is_some_and(|depth| missing(depth) == Some(0))
        };
        let is_stored = maker(node.inputs[1]).is_some_and(|maker| {
            matches!((&maker.op, &node.op), (Op::Constant(_), _) | (Op::View(_), Op::MatMul))
        });
        if has_template && is_stored && graph.ty(inputs[0]).dtype == DType::U8 {
            operands[node.outputs[0]] = Some(inputs[0]);
        }
    }
    operands
}

/// The contractions of integers with small weights.
fn find(graph: &Graph) -> BTreeSet<ValueId> {
    let is_integer = |node: &&Node| {
        let is_contraction = matches!(&node.op, Op::Conv(conv) if !conv.transposed) || node.op == Op::MatMul;
        is_contraction && graph.ty(node.outputs[0]).dtype == DType::I32
    };
    if !graph.nodes.iter().any(|node| is_integer(&node)) {
        return BTreeSet::new();
    }
    let (extents, producers) = (extents(graph), graph.producers());
    let is_constant = |mut value: ValueId| {
        loop {
            let Some(position) = producers[value.index()] else { return false };
            let node = &graph.nodes[position];
            if !matches!(node.op, Op::View(_) | Op::Cast) {
                return matches!(node.op, Op::Constant(_));
            }
            value = node.inputs[0];
        }
    };
    let is_small =
        |node: &&Node| extents[node.inputs[1]].is_some_and(fits_signed_byte) && is_constant(node.inputs[1]);
    graph.nodes.iter().filter(is_integer).filter(is_small).map(|node| node.outputs[0]).collect()
}

/// A left operand: bytes, and the number that stands for zero, both of the operand's shape.
struct Left {
    bytes: ValueId,
    zero: Option<ValueId>,
}

impl Left {
    fn of(rewriter: &mut Rewriter, value: ValueId) -> Option<Left> {
        let node = rewriter.producer(value)?.clone();
        if let Op::View(coords) = &node.op {
            let own = Left::of(rewriter, node.inputs[0])?;
            let b = &mut rewriter.builder;
            let shape = b.shape(value);
            let zero = match own.zero {
                Some(zero) => Some(b.view(zero, &shape, coords.clone()).ok()?),
                None => None,
            };
            Some(Left { bytes: b.view(own.bytes, &shape, coords.clone()).ok()?, zero })
        } else if node.op == Op::Binary(BinaryOp::Sub) {
            let own = Left::of(rewriter, node.inputs[0])?;
            own.zero.is_none().then_some(Left { zero: Some(node.inputs[1]), ..own })
        } else {
            let converts = node.op == Op::Cast && is_byte(rewriter.builder.dtype(node.inputs[0]));
            converts.then_some(Left { bytes: node.inputs[0], zero: None })
        }
    }

    /// With unsigned bytes: signed ones are shifted, and so is what stands for zero.
    fn unsigned(self, b: &mut Builder) -> Result<Left, ShapeError> {
        if b.dtype(self.bytes) == DType::U8 {
            return Ok(self);
        }
        let wide = b.cast(self.bytes, DType::I32);
        let shifted = b.binary_scalar(BinaryOp::Add, wide, 128i64)?;
        let zero = match self.zero {
            Some(zero) => match number(b, zero) {
                Some(number) => b.full_like(number + 128, zero),
                None => b.binary_scalar(BinaryOp::Add, zero, 128i64)?,
            },
            None => b.full_like(128i64, wide),
        };
        Ok(Left { bytes: b.cast(shifted, DType::U8), zero: Some(zero) })
    }
}

/// The number that all elements are, however they are looked at.
fn number(b: &Builder, value: ValueId) -> Option<i64> {
    let node = b.producer(value)?;
    if let Op::View(_) = node.op {
        return number(b, node.inputs[0]);
    }
    let Op::Full(number) = node.op else { return None };
    Some(number.to_i64())
}

/// The product of bytes; nothing where there is no code for it.
fn product(b: &mut Builder, node: &Node, left: Left) -> Result<Option<ValueId>, ShapeError> {
    let left = left.unsigned(b)?;
    let zero = left.zero.and_then(|zero| number(b, zero));
    // What stands for zero where nobody knows it yet differs from row to row at most.
    let is_open = left.zero.is_some() && zero.is_none();
    if let Op::Conv(conv) = &node.op {
        let fill = zero.unwrap_or(0);
        if is_open || !(0..=255).contains(&fill) {
            return Ok(None);
        }
        return convolution(b, node, conv, left.bytes, fill);
    }
    let depth = b.rank(left.bytes) - 1;
    if left.zero.is_some_and(|zero| is_open && differs(b, zero, depth)) {
        return Ok(None);
    }
    matrices(b, node, &left)
}

pub(super) fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8)
}

/// Whether elements may differ along an axis.
pub(super) fn differs(b: &Builder, value: ValueId, axis: usize) -> bool {
    if b.ty(value).shape[axis].is(1) {
        return false;
    }
    let Some(node) = b.producer(value) else { return true };
    if let Op::View(coords) = &node.op {
        let own = u32::try_from(axis).map(Symbol::axis);
        let mentions = |coord: &Expr| own.is_ok_and(|own| coord.mentions(own));
        return coords
            .iter()
            .enumerate()
            .any(|(at, coord)| mentions(coord) && differs(b, node.inputs[0], at));
    }
    let is_function = matches!(node.op, Op::Full(_) | Op::Cast | Op::Unary(_) | Op::Binary(_));
    !is_function || node.inputs.iter().any(|input| differs(b, *input, axis))
}

/// What makes whole words of so many.
fn missing(size: &Expr) -> Option<i64> {
    Some((-size.as_int()?).rem_euclid(WORD))
}

fn padded(b: &mut Builder, x: ValueId, amounts: &[(i64, i64)], fill: i64) -> Result<ValueId, ShapeError> {
    if amounts.iter().all(|amount| *amount == (0, 0)) {
        return Ok(x);
    }
    let amounts: Vec<(Expr, Expr)> =
        amounts.iter().map(|(low, high)| (Expr::int(*low), Expr::int(*high))).collect();
    b.pad(x, &amounts, Scalar::from(fill))
}

fn convolution(
    b: &mut Builder,
    node: &Node,
    conv: &Conv,
    bytes: ValueId,
    zero: i64,
) -> Result<Option<ValueId>, ShapeError> {
    let weight = node.inputs[1];
    let Some(rest) = missing(&b.shape(weight)[1]) else { return Ok(None) };
    // Single channels make no words. Their code knows of zeros around an image, and a copy with other numbers there does not pay.
    let is_depthwise = is_depthwise(conv, b.ty(weight));
    let rest = if is_depthwise { 0 } else { rest };
    if is_depthwise && zero != 0 && conv.padding.iter().any(|padding| *padding != (0, 0)) {
        return Ok(None);
    }
    if rest > 0 && conv.groups > 1 {
        return Ok(None);
    }
    let mut amounts = vec![(0, 0); b.rank(weight)];
    amounts[1] = (0, rest);
    let weight = padded(b, weight, &amounts, 0)?;
    let none = vec![(0, 0); conv.padding.len()];
    let (around, within) = if is_depthwise { (&none, &conv.padding) } else { (&conv.padding, &none) };
    let inner = Conv { padding: within.clone(), ..conv.clone() };
    if !has_byte_template(&inner, b.ty(weight)) {
        return Ok(None);
    }
    amounts[2..].copy_from_slice(around);
    let bytes = match padded_image(b, bytes, &amounts, zero) {
        Some(bytes) => bytes,
        None => padded(b, bytes, &amounts, zero)?,
    };
    let wide = b.cast(bytes, DType::I32);
    let sums = b.conv(wide, weight, inner)?;
    if zero == 0 {
        return Ok(Some(sums));
    }
    let axes: Vec<usize> = (1..b.rank(weight)).collect();
    let of_weights = b.reduce(ReduceOp::Sum, weight, &axes, false)?;
    let less = b.binary_scalar(BinaryOp::Mul, of_weights, zero)?;
    let shape = b.shape(sums);
    let less = b.view(less, &shape, vec![Expr::axis(1)])?;
    b.binary(BinaryOp::Sub, sums, less).map(Some)
}

fn matrices(b: &mut Builder, node: &Node, left: &Left) -> Result<Option<ValueId>, ShapeError> {
    let weight = node.inputs[1];
    let rank = b.rank(weight);
    let Some(rest) = missing(&b.shape(weight)[rank - 2]) else { return Ok(None) };
    let mut amounts = vec![(0, 0); rank];
    amounts[rank - 1] = (0, rest);
    let bytes = padded(b, left.bytes, &amounts, 0)?;
    amounts.swap(rank - 2, rank - 1);
    let weight = padded(b, weight, &amounts, 0)?;
    let wide = b.cast(bytes, DType::I32);
    let sums = b.matmul(wide, weight)?;
    let Some(zero) = left.zero.filter(|zero| number(b, *zero) != Some(0)) else { return Ok(Some(sums)) };
    let of_weights = b.reduce(ReduceOp::Sum, weight, &[rank - 2], true)?;
    let shape = b.shape(sums);
    let less = match number(b, zero) {
        Some(number) => {
            let less = b.binary_scalar(BinaryOp::Mul, of_weights, number)?;
            b.expand(less, &shape)?
        }
        None => {
            // A number for each row.
            let mut coords: Vec<Expr> = (0..rank).map(Expr::axis).collect();
            coords[rank - 1] = Expr::int(0);
            let zero = b.view(zero, &shape, coords)?;
            let of_weights = b.expand(of_weights, &shape)?;
            b.binary(BinaryOp::Mul, zero, of_weights)?
        }
    };
    b.binary(BinaryOp::Sub, sums, less).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};

    /// How many contractions of a graph of one input read bytes after the pass, which keeps its results.
    #[track_caller]
    fn of_bytes(text: &str, x: &Tensor) -> usize {
        let graph = parse(&format!("graph {{ {text} }}")).expect("the text parses");
        verify(&graph).expect("the graph is well formed");
        let result = products_of_bytes(graph.clone(), &Target::cpu(&["x86-64-v3"]));
        verify(&result).expect("the result is well formed");
        let inputs = [x.clone()];
        assert_eq!(evaluate(&graph, &inputs).expect("runs"), evaluate(&result, &inputs).expect("runs"));
        let operands = byte_operands(&result);
        result
            .nodes
            .iter()
            .filter(|node| node.outputs.first().is_some_and(|own| operands[*own].is_some()))
            .count()
    }

    fn bytes(dtype: DType, sizes: &[usize]) -> Tensor {
        let data: Vec<u8> = (0..sizes.iter().product::<usize>()).map(|k| (k * 97 % 251) as u8).collect();
        Tensor::new(dtype, sizes.to_vec(), data).expect("the data fit")
    }

    #[test]
    fn products_of_any_depth_and_either_sign_are_of_bytes() {
        let text = |dtype: &str, depth: usize, zero: &str, (weight, numbers): (&str, &str)| {
            format!(
                "const c0: {weight}[{depth}, 5] = {numbers} input %x: {dtype}[3, {depth}]
                 %q: {weight}[{depth}, 5] = constant c0 %w: i32[{depth}, 5] = cast %q
                 %i: i32[3, {depth}] = cast %x %z: i32[3, {depth}] = full {zero} %c: i32[3, {depth}] = sub %i, %z
                 %y: i32[3, 5] = matmul %c, %w output %y \"y\""
            )
        };
        for (dtype, depth, zero) in
            [(DType::U8, 8, "117"), (DType::I8, 9, "-3"), (DType::U8, 3, "0"), (DType::I8, 4, "300")]
        {
            let x = bytes(dtype, &[3, depth]);
            assert_eq!(of_bytes(&text(dtype.name(), depth, zero, ("i8", "random 1")), &x), 1, "{depth}");
            assert_eq!(
                of_bytes(&text(dtype.name(), depth, zero, ("i16", "splat 128")), &x),
                0,
                "weights are large"
            );
        }
    }

    #[test]
    fn rows_may_have_zero_points_that_only_a_run_knows() {
        let text = "const c0: i8[6, 5] = random 1 input %x: u8[3, 6] %q: i8[6, 5] = constant c0 %w: i32[6, 5] = cast %q
             %i: i32[3, 6] = cast %x %f: u8[3] = view %x [i0, 2] %g: i32[3] = cast %f %z: i32[3, 6] = view %g [i0]
             %c: i32[3, 6] = sub %i, %z %y: i32[3, 5] = matmul %c, %w output %y \"y\"";
        let x = bytes(DType::U8, &[3, 6]);
        assert_eq!(of_bytes(text, &x), 1);
        let of_columns = text
            .replace("u8[3] = view %x [i0, 2]", "u8[6] = view %x [1, i0]")
            .replace("i32[3] =", "i32[6] =");
        assert_eq!(of_bytes(&of_columns.replace("view %g [i0]", "view %g [i1]"), &x), 0);
    }

    #[test]
    fn a_number_for_zero_is_one_for_all_rows_however_it_is_looked_at() {
        let text = "const c0: i8[6, 5] = random 1 input %x: u8[1, 300, 6] %q: i8[6, 5] = constant c0 %w: i32[6, 5] = cast %q
             %i: i32[1, 300, 6] = cast %x %z: i32[1, 300, 6] = full 117 %c: i32[1, 300, 6] = sub %i, %z
             %v: i32[300, 6] = view %c [0, i0, i1] %y: i32[300, 5] = matmul %v, %w output %y \"y\"";
        assert_eq!(of_bytes(text, &bytes(DType::U8, &[1, 300, 6])), 1);
        let graph = parse(&format!("graph {{ {text} }}")).expect("the text parses");
        let result = products_of_bytes(graph, &Target::cpu(&["x86-64-v3"]));
        let elements = |constant: &crate::graph::Constant| constant.sizes.iter().product::<i64>();
        assert!(result.constants.values().all(|constant| elements(constant) <= 8 * 5));
    }

    #[test]
    fn what_stands_for_zero_is_around_images() {
        let text = |groups: i64, own: i64, zero: i64| {
            format!(
                "const c0: i8[16, {own}, 3, 2] = random 1 input %x: u8[2, 6, 5, 7] %q: i8[16, {own}, 3, 2] = constant c0
                 %w: i32[16, {own}, 3, 2] = cast %q %i: i32[2, 6, 5, 7] = cast %x %z: i32[2, 6, 5, 7] = full {zero}
                 %c: i32[2, 6, 5, 7] = sub %i, %z
                 %y: i32[2, 16, 3, 8] = conv %c, %w stride [2, 1] padding [1:2, 0:2] dilation [1, 1] groups {groups} output %y \"y\""
            )
        };
        let x = bytes(DType::U8, &[2, 6, 5, 7]);
        assert_eq!(of_bytes(&text(1, 6, 117), &x), 1);
        assert_eq!(of_bytes(&text(1, 6, 0), &x), 1);
        assert_eq!(of_bytes(&text(1, 6, 256), &x), 0, "no byte stands for zero");
        assert_eq!(of_bytes(&text(2, 3, 117), &x), 0, "channels of a group make no words");
        let depthwise = |zero: i64| text(6, 1, zero).replace("[16, 1", "[6, 1").replace("[2, 16", "[2, 6");
        assert_eq!(of_bytes(&depthwise(0), &x), 1, "zeros are known where it is computed");
        assert_eq!(of_bytes(&depthwise(117), &x), 0);
        assert_eq!(
            of_bytes(
                &depthwise(117)
                    .replace("padding [1:2, 0:2]", "padding [0:0, 0:0]")
                    .replace("[2, 6, 3, 8]", "[2, 6, 2, 6]"),
                &x
            ),
            1
        );
    }
}
