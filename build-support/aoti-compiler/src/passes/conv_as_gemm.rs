//! Convolutions whose windows lie side by side become matrix products: where the stride is the kernel's size, every
//! element of the input is read by one window only, so the windows are the input reshaped, and nothing is repeated.
//!
//! The product is patches times weight, `[pixels, k] x [k, channels]`: taps of a row of the kernel lie side by side in
//! a patch as in the input, weights are the operand that is packed when the model is built, and channels are last in
//! the result, as the tokens want them that most such convolutions make of an image.

use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::graph::{Conv, Graph, Node, Op, ValueId};
use crate::symbolic::Expr;
use crate::target::{Target, templates};
use cranelift_entity::SecondaryMap;

/// Turns convolutions with windows side by side into products. Processors keep those that a template reads in place: where channels
/// are last, a row of a window is a run of elements already, and three channels that are first are side by side in the copy that the
/// template makes. On GPUs, convolutions with one window for each image become products too: as many rows as there are images are
/// few, for which products have templates of their own that read the weights at the speed of memory.
pub fn conv_as_gemm(graph: Graph, target: &Target) -> Graph {
    let mut has_products = false;
    let graph = everywhere(graph, &mut |graph, ranges| {
        let weights = read_once(graph);
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Conv(conv) = &node.op else { return None };
            let (kernel, output) = (node.inputs[1], rewriter.builder.shape(node.outputs[0]));
            let weight = rewriter.builder.graph().ty(kernel);
            let is_wanted = match (output[2..].iter().all(|size| size.is(1)), target) {
                (true, Target::Gpu(_)) => output.len() > 2,
                (true, Target::Cpu(_)) => false,
                // One tap is a product already, for which there are templates.
                (false, Target::Gpu(_)) => !Expr::product(&weight.shape[2..]).is(1),
                (false, Target::Cpu(_)) => {
                    let has_template = weights[kernel] && templates::has_pixel_template(conv, weight);
                    !has_template && !Expr::product(&weight.shape[2..]).is(1)
                }
            };
            let value = if is_wanted { product(rewriter, node, conv) } else { None };
            has_products |= value.is_some();
            value.map(|value| vec![value])
        });
    });
    if has_products { super::dce(super::cse(graph)) } else { graph }
}

/// Whether a value is a constant that one node reads.
fn read_once(graph: &Graph) -> SecondaryMap<ValueId, bool> {
    let (uses, mut constants) = (count_uses(graph), SecondaryMap::new());
    for node in graph.nodes.iter().filter(|node| matches!(node.op, Op::Constant(_))) {
        constants[node.outputs[0]] = uses[node.outputs[0]] == 1;
    }
    constants
}

fn product(rewriter: &mut Rewriter, node: &Node, conv: &Conv) -> Option<ValueId> {
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
    if !plain || !side_by_side {
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

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;
    use crate::graph::text::{parse, print};
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};
    use crate::target::GpuTarget;

    fn a_gpu() -> Target {
        Target::Gpu(GpuTarget::named("sm_90a").expect("an architecture"))
    }

    fn conv_as_gemm_on_gpus(graph: Graph) -> Graph {
        conv_as_gemm(graph, &a_gpu())
    }

    #[test]
    fn convolutions_with_windows_side_by_side_are_products() {
        check(
            conv_as_gemm_on_gpus,
            "const c0: f32[3, 2, 2, 2] = random 1 input %x: f32[1, 2, 4, 5] %w: f32[3, 2, 2, 2] = constant c0
             %y: f32[1, 3, 2, 2] = conv %x, %w stride [2, 2] padding [0:0, 0:0] dilation [1, 1] groups 1 output_padding [0, 0]
             output %y",
            "const c0: f32[3, 2, 2, 2] = random 1 input %x: f32[1, 2, 4, 5] %w: f32[3, 2, 2, 2] = constant c0
             %p: f32[4, 8] = view %x [0, i1 // 4, 2*(i0 // 2) + i1 // 2 % 2, 2*(i0 % 2) + i1 % 2]
             %m: f32[8, 3] = view %w [i1, i0 // 4, i0 // 2 % 2, i0 % 2]
             %s: f32[4, 3] = matmul %p, %m %y: f32[1, 3, 2, 2] = view %s [2*i2 + i3, i1] output %y",
        );
    }

    #[test]
    fn processors_keep_windows_side_by_side_that_a_template_reads_in_place() {
        let cpu = Target::cpu(&["x86-64-v3"]);
        let is_product = |dtype: &str, weight: &str, reads: &str| {
            let text = format!(
                "graph {{ const c0: {dtype}[3, 2, 2, 2] = random 1 input %x: {dtype}[1, 2, 4, 4] {weight}
                 %y: {dtype}[1, 3, 2, 2] = conv %x, %w stride [2, 2] padding [0:0, 0:0] dilation [1, 1] groups 1 output_padding [0, 0]
                 output %y {reads} }}"
            );
            let graph = conv_as_gemm(parse(&text).expect("it parses"), &cpu);
            verify(&graph).expect("it is well formed");
            print(&graph).contains("matmul")
        };
        let constant = |dtype: &str| format!("%w: {dtype}[3, 2, 2, 2] = constant c0");
        assert!(!is_product("f32", &constant("f32"), ""));
        assert!(is_product("f64", &constant("f64"), ""), "its template is for floats");
        assert!(
            is_product("f32", "input %w: f32[3, 2, 2, 2]", ""),
            "weights are laid out when a model is compiled"
        );
        assert!(is_product("f32", &constant("f32"), "output %w"), "nothing else reads them then");
    }

    #[test]
    fn single_windows_are_rows_of_products_on_gpus() {
        let text = "const c0: f32[3, 2, 2, 5] = random 1 input %x: f32[4, 2, 2, 5] %w: f32[3, 2, 2, 5] = constant c0
             %y: f32[4, 3, 1, 1] = conv %x, %w stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1 output_padding [0, 0]
             output %y";
        let on = |target: &Target| {
            let graph = conv_as_gemm(parse(&format!("graph {{ {text} }}")).expect("it parses"), target);
            verify(&graph).expect("it is well formed");
            let x = Tensor::from_f32(&[4, 2, 2, 5], &(0..80).map(|k| (k % 7) as f32).collect::<Vec<_>>());
            (print(&graph).contains("matmul"), evaluate(&graph, &[x]).expect("it runs"))
        };
        let (on_gpu, on_cpu) = (on(&a_gpu()), on(&Target::cpu(&["x86-64-v3"])));
        assert_eq!([on_gpu.0, on_cpu.0], [true, false]);
        assert_eq!(on_gpu.1, on_cpu.1);
    }

    #[test]
    fn windows_that_overlap_or_are_padded_stay_convolutions() {
        let text = |stride: i64, padding: &str, size: i64| {
            format!(
                "const c0: f32[3, 2, 2] = random 1 input %x: f32[1, 2, 4] %w: f32[3, 2, 2] = constant c0
                 %y: f32[1, 3, {size}] = conv %x, %w stride [{stride}] padding [{padding}] dilation [1] groups 1 output_padding [0]
                 output %y"
            )
        };
        for text in [text(1, "0:0", 3), text(2, "1:1", 3)] {
            check(conv_as_gemm_on_gpus, &text, &text);
        }
    }
}
