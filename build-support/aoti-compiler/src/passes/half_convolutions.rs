//! Convolutions of half types in `f32`, on processors: these add up in `f32` in any case, and have templates for nothing else.
//!
//! What is rounded is the same: operands are numbers of the half type, and so is the sum once it is complete.

use super::rewrite::{everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{Graph, Op};

/// Converts what convolutions of half types read, and their sums back; and whether there were any.
pub(super) fn half_convolutions(graph: Graph) -> (Graph, bool) {
    let mut is_any = false;
    let graph = everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Conv(conv) = &node.op else { return None };
            let builder = &mut rewriter.builder;
            let dtype = builder.dtype(node.inputs[0]);
            if !matches!(dtype, DType::F16 | DType::Bf16) {
                return None;
            }
            is_any = true;
            let [x, weight] = [0, 1].map(|operand| builder.cast(node.inputs[operand], DType::F32));
            let sum = builder.conv(x, weight, conv.clone()).expect("the operands have the same sizes");
            rewriter.name_after(sum, node.outputs[0]);
            Some(vec![rewriter.builder.cast(sum, dtype)])
        });
    });
    (graph, is_any)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::interpret::{Tensor, evaluate};
    use crate::passes::contractions_in_floats;
    use crate::target::Target;

    #[test]
    fn convolutions_of_halves_are_of_floats_and_round_once() {
        let graph = parse(
            r#"graph {
                input %x "x": bf16[1, 3, 6, 5]
                input %w "w": bf16[4, 3, 3, 3]
                %y: bf16[1, 4, 4, 3] = conv %x, %w stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1
                output %y "y"
            }"#,
        )
        .expect("the text parses");
        let target = Target::cpu(&["x86-64-v3"]);
        let result = contractions_in_floats(graph.clone(), &target);
        let types: Vec<DType> = result
            .nodes
            .iter()
            .filter(|node| matches!(node.op, Op::Conv(_)))
            .map(|node| result.ty(node.outputs[0]).dtype)
            .collect();
        assert_eq!(types, [DType::F32]);
        let tensor = |sizes: &[usize], step: usize| {
            let count: usize = sizes.iter().product();
            let bits = (0..count).map(|k| half::bf16::from_f32(((k * step) % 23) as f32 * 0.17 - 1.9));
            Tensor::new(
                DType::Bf16,
                sizes.to_vec(),
                bits.flat_map(|own| own.to_le_bytes()).collect::<Vec<u8>>(),
            )
            .expect("the data fit")
        };
        let inputs = [tensor(&[1, 3, 6, 5], 7), tensor(&[4, 3, 3, 3], 5)];
        let values = |graph: &Graph| evaluate(graph, &inputs).expect("runs")[0].to_f64();
        assert_eq!(values(&graph), values(&result));
    }
}
