//! Convolutions whose windows lie side by side become matrix products: where the stride is the kernel's size, every
//! element of the input is read by one window only, so the windows are the input reshaped, and nothing is repeated.
//!
//! The product is patches times weight, `[pixels, k] x [k, channels]`: taps of a row of the kernel lie side by side in
//! a patch as in the input, weights are the operand that is packed when the model is built, and channels are last in
//! the result, as the tokens want them that most such convolutions make of an image.

use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::graph::{Conv, Graph, Node, Op, ValueId};
use crate::symbolic::Expr;
use crate::target::Target;

/// Turns convolutions with windows side by side into products.
pub fn conv_as_gemm(graph: Graph) -> Graph {
    // One tap is a product already, for which there are templates; so is one window.
    with_windows(graph, Windows::Several)
}

/// On GPUs, convolutions with one window for each image too: as many rows as there are images are few, for which products have templates
/// of their own that read the weights at the speed of memory.
pub fn single_windows_as_gemm(graph: Graph, target: &Target) -> Graph {
    match target {
        Target::Cpu(_) => graph,
        Target::Gpu(_) => with_windows(graph, Windows::One),
    }
}

/// Windows for each image of the convolutions that become products.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Windows {
    One,
    /// Of more than one tap.
    Several,
}

fn with_windows(graph: Graph, windows: Windows) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Conv(conv) = &node.op else { return None };
            product(rewriter, node, conv, windows).map(|value| vec![value])
        });
    })
}

fn product(rewriter: &mut Rewriter, node: &Node, conv: &Conv, windows: Windows) -> Option<ValueId> {
    let builder = &mut rewriter.builder;
    let (x, weight) = (node.inputs[0], node.inputs[1]);
    let (input, kernel) = (builder.shape(x), builder.shape(weight));
    let output = builder.shape(node.outputs[0]);
    let spatial = conv.stride.len();
    let plain = !conv.transposed && conv.groups == 1;
    let side_by_side = (0..spatial).all(|d| {
        (kernel[d + 2].is(conv.stride[d]) || kernel[d + 2] == input[d + 2])
            && conv.padding[d] == (0, 0)
            && (conv.dilation[d] == 1 || kernel[d + 2].is(1))
    });
    let taps = Expr::product(&kernel[2..]);
    let is_wanted = match (output[2..].iter().all(|size| size.is(1)), windows) {
        (true, Windows::One) => spatial > 0,
        (false, Windows::Several) => !taps.is(1),
        (true, Windows::Several) | (false, Windows::One) => false,
    };
    if !plain || !side_by_side || !is_wanted {
        return None;
    }
    let mut patches = x;
    // What does not fill a window at the end is not read.
    for d in 0..spatial {
        let covered = &output[d + 2] * &kernel[d + 2];
        if !builder.same_size(&covered, &input[d + 2]) {
            patches = builder.slice(patches, d + 2, &Expr::int(0), &covered, 1).ok()?;
        }
    }
    let mut split = input[..2].to_vec();
    for d in 0..spatial {
        split.extend([output[d + 2].clone(), kernel[d + 2].clone()]);
    }
    let patches = builder.reshape(patches, &split).ok()?;
    let windows = (0..spatial).map(|d| 2 + 2 * d);
    let taps_of_each = (0..spatial).map(|d| 3 + 2 * d);
    let order: Vec<usize> = [0].into_iter().chain(windows).chain([1]).chain(taps_of_each).collect();
    let patches = builder.permute(patches, &order).ok()?;
    let k = &input[1] * &taps;
    let rows = &input[0] * &Expr::product(&output[2..]);
    let patches = builder.reshape(patches, &[rows, k.clone()]).ok()?;
    let matrix = builder.reshape(weight, &[kernel[0].clone(), k]).ok()?;
    let matrix = builder.permute(matrix, &[1, 0]).ok()?;
    let sums = builder.matmul(patches, matrix).ok()?;
    let mut channels_last = output.clone();
    channels_last[1..].rotate_left(1);
    let sums = builder.reshape(sums, &channels_last).ok()?;
    let order: Vec<usize> = [0, spatial + 1].into_iter().chain(1..=spatial).collect();
    builder.permute(sums, &order).ok()
}
