//! Products and convolutions of small integers, as quantised networks have them, in `f32` where that is exact: processors
//! multiply floats much faster than integers of 32 bits.
//!
//! Sums of products that never exceed 2^24 are numbers of `f32`, whatever their order. Longer ones are sums of integers, each of
//! which is a product of a part of the depth. Convolutions for which processors have an algorithm that rounds even so become products of
//! the weights with what each window shows.

use super::byte_products::byte_operands;
use super::integer_extent::{extents, reach};
use super::rewrite::{everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Builder, Conv, Graph, Node, Op, ShapeError, ValueId};
use crate::symbolic::Expr;
use crate::target::templates::may_round;
use std::collections::BTreeMap;

/// Up to here `f32` holds every integer.
const EXACT: u64 = 1 << 24;
/// Shorter parts of the depth cost more than they save.
const LEAST_PART: i64 = 64;
/// The length of a part is a multiple of this where it may be.
const ALIGNED: i64 = 16;
/// Parts of one product at most.
const MAX_PARTS: i64 = 64;

type Built<T = ValueId> = Result<T, ShapeError>;

/// Computes products of small integers in floats; and whether there were any.
pub(super) fn integers_in_floats(graph: Graph) -> (Graph, bool) {
    let mut is_any = false;
    let graph = everywhere(graph, &mut |graph, ranges| {
        let parts = find(graph);
        is_any |= !parts.is_empty();
        rewrite(graph, ranges, &mut |rewriter, node| {
            let part = *parts.get(node.outputs.first()?)?;
            let builder = &mut rewriter.builder;
            let result = if let Op::Conv(conv) = &node.op {
                convolution(builder, node, conv, part)
            } else {
                product(builder, [node.inputs[0], node.inputs[1]], part)
            };
            Some(vec![result.ok()?])
        });
    });
    (graph, is_any)
}

/// How much of the depth of each product is exact at once, by the product's value.
fn find(graph: &Graph) -> BTreeMap<ValueId, i64> {
    let mut parts = BTreeMap::new();
    if !graph.nodes.iter().any(|node| depth(graph, node).is_some()) {
        return parts;
    }
    let extents = extents(graph);
    let of_bytes = byte_operands(graph);
    for node in &graph.nodes {
        let Some(depth) = depth(graph, node).filter(|_| of_bytes[node.outputs[0]].is_none()) else {
            continue;
        };
        let reach_of = |position: usize| extents[node.inputs[position]].map(reach);
        let (Some(a), Some(b)) = (reach_of(0), reach_of(1)) else { continue };
        let exact = EXACT / a.saturating_mul(b).max(1);
        let exact = i64::try_from(exact).unwrap_or(i64::MAX);
        if exact >= depth {
            parts.insert(node.outputs[0], depth);
        } else if exact >= LEAST_PART && depth <= exact.saturating_mul(MAX_PARTS) {
            let count = (depth - 1) / exact + 1;
            let even = (depth - 1) / count + 1;
            parts.insert(node.outputs[0], ((even - 1) / ALIGNED * ALIGNED + ALIGNED).min(exact));
        }
    }
    parts
}

/// How many products a contraction of integers adds, if it is one that may be computed in floats.
fn depth(graph: &Graph, node: &Node) -> Option<i64> {
    let shape = |position: usize| &graph.ty(node.inputs[position]).shape;
    let sizes = if node.op == Op::MatMul {
        &shape(0)[shape(0).len() - 1..]
    } else {
        let Op::Conv(conv) = &node.op else { return None };
        if conv.transposed {
            return None;
        }
        &shape(1)[1..]
    };
    let is_integer = matches!(graph.ty(node.outputs[0]).dtype, DType::I32 | DType::I64);
    let depth = sizes.iter().try_fold(1i64, |depth, size| depth.checked_mul(size.as_int()?))?;
    (is_integer && depth > 0).then_some(depth)
}

/// The product of matrices of integers, so much of its depth at once.
fn product(b: &mut Builder, factors: [ValueId; 2], part: i64) -> Built {
    let dtype = b.dtype(factors[0]);
    let [left, right] = factors.map(|factor| b.cast(factor, DType::F32));
    let (columns, rows) = (b.rank(left) - 1, b.rank(right) - 2);
    let depth = b.shape(left)[columns].as_int().unwrap_or(part);
    let mut sum = None;
    for start in (0..depth).step_by(usize::try_from(part).unwrap_or(usize::MAX)) {
        let (from, length) = (Expr::int(start), Expr::int(part.min(depth - start)));
        let (left, right) = if length.is(depth) {
            (left, right)
        } else {
            (b.slice(left, columns, &from, &length, 1)?, b.slice(right, rows, &from, &length, 1)?)
        };
        let exact = b.matmul(left, right)?;
        let exact = b.cast(exact, dtype);
        sum = Some(match sum {
            Some(sum) => b.binary(BinaryOp::Add, sum, exact)?,
            None => exact,
        });
    }
    sum.ok_or_else(|| ShapeError("a product without depth".to_owned()))
}

/// A convolution of integers; as the product of its weights with what each window shows, for every image and group, where it has to be.
fn convolution(b: &mut Builder, node: &Node, conv: &Conv, part: i64) -> Built {
    let (x, weight) = (node.inputs[0], node.inputs[1]);
    if depth(b.graph(), node) == Some(part) && !may_round(conv, b.ty(weight)) {
        let (dtype, [x, weight]) = (b.dtype(x), [x, weight].map(|factor| b.cast(factor, DType::F32)));
        let exact = b.conv(x, weight, conv.clone())?;
        return Ok(b.cast(exact, dtype));
    }
    let (kernel, output) = (b.shape(weight), b.shape(node.outputs[0]));
    let (groups, depth) = (Expr::int(conv.groups), Expr::product(&kernel[1..]));
    let windows = windows(b, x, conv, &kernel, &output)?;
    // Stored with an axis for each coordinate, so that loops run along them.
    let windows = b.cast(windows, DType::F32);
    let pixels = Expr::product(&output[2..]);
    let windows = b.reshape(windows, &[output[0].clone(), groups.clone(), depth.clone(), pixels])?;
    let channels = kernel[0].floor_div_in(&groups, b.ranges());
    let weight = b.reshape(weight, &[groups, channels, depth])?;
    let sums = product(b, [weight, windows], part)?;
    b.reshape(sums, &output)
}

/// What each window shows: `[image, group, channel, taps.., pixels..]`.
fn windows(b: &mut Builder, x: ValueId, conv: &Conv, kernel: &[Expr], output: &[Expr]) -> Built {
    let spatial = conv.stride.len();
    let mut amounts = vec![(Expr::int(0), Expr::int(0)); 2];
    amounts.extend(conv.padding.iter().map(|(low, high)| (Expr::int(*low), Expr::int(*high))));
    let padded = b.pad(x, &amounts, 0i64)?;
    let mut shape = vec![output[0].clone(), Expr::int(conv.groups)];
    shape.extend_from_slice(&kernel[1..]);
    shape.extend_from_slice(&output[2..]);
    let mut coords = vec![Expr::axis(0), &(&Expr::axis(1) * &kernel[1]) + &Expr::axis(2)];
    coords.extend((0..spatial).map(|d| {
        let (tap, pixel) = (Expr::axis(3 + d), Expr::axis(3 + spatial + d));
        &(&tap * &Expr::int(conv.dilation[d])) + &(&pixel * &Expr::int(conv.stride[d]))
    }));
    b.view(padded, &shape, coords)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};
    use crate::passes::contractions_in_floats;
    use crate::target::Target;

    /// All contractions after the pass and their types, of a graph of one input that keeps its results.
    #[track_caller]
    fn contractions(text: &str, x: &Tensor) -> Vec<(&'static str, DType)> {
        let graph = parse(&format!("graph {{ {text} }}")).expect("the text parses");
        verify(&graph).expect("the graph is well formed");
        let result = contractions_in_floats(graph.clone(), &Target::cpu(&["x86-64-v3"]));
        verify(&result).expect("the result is well formed");
        let inputs = [x.clone()];
        assert_eq!(evaluate(&graph, &inputs).expect("runs"), evaluate(&result, &inputs).expect("runs"));
        let is_contraction = |node: &&Node| matches!(node.op, Op::MatMul | Op::Conv(_));
        result
            .nodes
            .iter()
            .filter(is_contraction)
            .map(|node| (node.op.name(), result.ty(node.inputs[0]).dtype))
            .collect()
    }

    #[track_caller]
    fn types(text: &str, x: &Tensor) -> Vec<DType> {
        contractions(text, x).into_iter().map(|(_, dtype)| dtype).collect()
    }

    fn bytes(dtype: DType, sizes: &[usize]) -> Tensor {
        let data: Vec<u8> = (0..sizes.iter().product::<usize>()).map(|k| (k * 97 % 251) as u8).collect();
        Tensor::new(dtype, sizes.to_vec(), data).expect("the data fit")
    }

    fn of_depth(depth: usize, dtype: &str, weight: &str) -> String {
        format!(
            "const c0: i8[{depth}, 3] {weight} input %x: {dtype}[2, {depth}]
             %q: i8[{depth}, 3] = constant c0 %w: i32[{depth}, 3] = cast %q
             %i: i32[2, {depth}] = cast %x %y: i32[2, 3] = matmul %i, %w output %y \"y\""
        )
    }

    #[test]
    fn sums_that_floats_hold_are_of_floats() {
        let types_of = |depth, dtype: DType, weight| {
            types(&of_depth(depth, dtype.name(), weight), &bytes(dtype, &[2, depth]))
        };
        // 1024 times -128 times -128 is 2^24.
        assert_eq!(types_of(1024, DType::I8, "weight = splat -128"), [DType::F32]);
        assert_eq!(types_of(1025, DType::I8, "weight = splat -128"), [DType::F32; 2]);
        assert_eq!(types_of(1000, DType::U8, "weight = splat -128"), [DType::F32; 2]);
        // Of final elements more is known than of weights.
        assert_eq!(types_of(5000, DType::U8, "= splat 3"), [DType::F32]);
        assert_eq!(types_of(5000, DType::U8, "weight = splat 3").len(), 10);
        assert_eq!(types_of(9, DType::U8, "= random 1"), [DType::F32]);
    }

    #[test]
    fn numbers_that_may_be_large_stay_integers() {
        let text = "input %x: i32[2, 3] %t: i32[3, 2] = view %x [i1, i0] %y: i32[2, 2] = matmul %x, %t output %y \"y\"";
        let large = Tensor::from_i32(&[2, 3], &[40000, 3, -5, 70000, 1 << 30, 2]);
        assert_eq!(types(text, &large), [DType::I32]);
        let text = "input %x: i32[2, 3] %n: i32[2, 3] = full -9 %m: i32[2, 3] = full 5000
             %a: i32[2, 3] = maximum %x, %n %b: i32[2, 3] = minimum %a, %m %t: i32[3, 2] = view %b [i1, i0]
             %y: i32[2, 2] = matmul %a, %t %z: i32[2, 2] = matmul %b, %t output %y \"y\" output %z \"z\"";
        assert_eq!(types(text, &large), [DType::I32, DType::I32]);
        assert_eq!(types(&text.replace("5000", "2000"), &large), [DType::I32, DType::F32]);
    }

    #[test]
    fn convolutions_that_an_algorithm_would_round_are_products_of_windows() {
        for (conv, weight, sizes, op) in [
            ("stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1", "4, 6, 3, 3", "5, 7", "matmul"),
            ("stride [2, 1] padding [0:1, 2:0] dilation [1, 2] groups 2", "4, 3, 2, 2", "3, 7", "conv"),
            ("stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 6", "6, 1, 1, 1", "5, 7", "conv"),
            ("stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1", "2, 6, 7, 9", "1, 1", "conv"),
        ] {
            let channels = &weight[..1];
            let text = format!(
                "const c0: i8[{weight}] weight = random 1 input %x: u8[2, 6, 5, 7] %i: i32[2, 6, 5, 7] = cast %x
                 %z: i32[2, 6, 5, 7] = full 113 %c: i32[2, 6, 5, 7] = sub %i, %z
                 %q: i8[{weight}] = constant c0 %w: i32[{weight}] = cast %q
                 %y: i32[2, {channels}, {sizes}] = conv %c, %w {conv} output %y \"y\""
            );
            let found = contractions(&text, &bytes(DType::U8, &[2, 6, 5, 7]));
            assert_eq!(found, [(op, DType::F32)], "{conv}");
        }
    }
}
