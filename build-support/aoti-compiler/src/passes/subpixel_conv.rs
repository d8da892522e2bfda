//! Transposed convolutions become ordinary ones: the output pixels that are a stride apart, a *phase*, read the same taps,
//! and at stride 1 of the input. So all phases are one convolution with stride times as many channels, whose results are
//! interleaved, and templates, layouts and fusion know nothing of transposition.
//!
//! Only where the stride divides the kernel: else phases have different numbers of taps, and zeros in their place would
//! make NaN of infinities that the program multiplies by nothing.

use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::graph::{Conv, Graph, Node, Op, ValueId};
use crate::symbolic::{Expr, NoRanges};

/// Turns transposed convolutions by constant weights into ordinary ones.
pub fn subpixel_conv(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Conv(conv) = &node.op else { return None };
            interleaved(rewriter, node, conv).map(|value| vec![value])
        });
    })
}

/// One spatial axis: output pixel `o` is number `o + padding` of the sum that the transposed convolution begins at, which is
/// pixel `(o + padding) / stride - skipped` of phase `(o + padding) % stride`.
struct Phases {
    stride: i64,
    padding: i64,
    skipped: i64,
    /// Taps of a phase, and the distance between them.
    taps: i64,
    dilation: i64,
    /// Zeros before and after the input.
    zeros: (i64, i64),
}

impl Phases {
    fn new(conv: &Conv, d: usize, kernel: i64) -> Option<Phases> {
        let (stride, (padding, behind)) = (conv.stride[d], conv.padding[d]);
        let dilation = if kernel == 1 { 1 } else { conv.dilation[d] };
        if kernel < 1 || kernel % stride != 0 || (stride > 1 && dilation > 1) || padding < 0 {
            return None;
        }
        let taps = kernel / stride;
        let reach = (taps - 1) * dilation;
        let skipped = (padding / stride).min(reach);
        let after = ((kernel - 1) * dilation - behind + conv.output_padding[d]).div_euclid(stride);
        Some(Phases { stride, padding, skipped, taps, dilation, zeros: (reach - skipped, after.max(0)) })
    }

    /// The pixel of its phase, and the phase, of the output pixel that an axis counts.
    fn of(&self, axis: usize) -> (Expr, Expr) {
        let (at, stride) = (&Expr::axis(axis) + self.padding, Expr::int(self.stride));
        (&at.floor_div(&stride) - self.skipped, at.modulo_in(&stride, &NoRanges))
    }
}

fn interleaved(rewriter: &mut Rewriter, node: &Node, conv: &Conv) -> Option<ValueId> {
    let (x, weight) = (node.inputs[0], node.inputs[1]);
    // Elsewhere the weights would be turned around in each run.
    if !conv.transposed || conv.groups != 1 || !matches!(rewriter.op(weight), Some(Op::Constant(_))) {
        return None;
    }
    let builder = &mut rewriter.builder;
    let output = builder.shape(node.outputs[0]);
    let sizes: Option<Vec<i64>> = builder.shape(weight).iter().map(Expr::as_int).collect();
    let sizes = sizes?;
    let [_, channels, kernel @ ..] = sizes.as_slice() else { return None };
    let phases: Option<Vec<Phases>> =
        kernel.iter().enumerate().map(|(d, size)| Phases::new(conv, d, *size)).collect();
    let phases = phases?;
    let weight = turned(builder, weight, &phases)?;
    let ordinary = Conv {
        stride: vec![1; phases.len()],
        padding: phases.iter().map(|own| own.zeros).collect(),
        dilation: phases.iter().map(|own| own.dilation).collect(),
        groups: 1,
        transposed: false,
        output_padding: vec![0; phases.len()],
    };
    let sums = builder.conv(x, weight, ordinary).ok()?;
    let mut coords = vec![Expr::axis(0), Expr::int(0)];
    let mut phase = Expr::int(0);
    for (d, own) in phases.iter().enumerate() {
        let (pixel, own_phase) = own.of(d + 2);
        coords.push(pixel);
        phase = &(&phase * own.stride) + &own_phase;
    }
    coords[1] = &(&phase * *channels) + &Expr::axis(1);
    builder.view(sums, &output, coords).ok()
}

/// The weight `[in, out, taps...]` as `[phases * out, in, taps of a phase...]`, taps last to first.
fn turned(builder: &mut crate::graph::Builder, weight: ValueId, phases: &[Phases]) -> Option<ValueId> {
    let shape = builder.shape(weight);
    let spatial = phases.len();
    let mut split = shape[..2].to_vec();
    for own in phases {
        split.extend([Expr::int(own.taps), Expr::int(own.stride)]);
    }
    let taps: Vec<usize> = (0..spatial).map(|d| 2 + 2 * d).collect();
    let of_phase = taps.iter().map(|axis| axis + 1);
    let order: Vec<usize> = of_phase.chain([1, 0]).chain(taps.iter().copied()).collect();
    let count: i64 = phases.iter().map(|own| own.stride).product();
    let mut joined = vec![&shape[1] * count, shape[0].clone()];
    joined.extend(phases.iter().map(|own| Expr::int(own.taps)));
    let weight = builder.reshape(weight, &split).ok()?;
    let weight = builder.flip(weight, &taps).ok()?;
    let weight = builder.permute(weight, &order).ok()?;
    builder.reshape(weight, &joined).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};
    use crate::passes::dce;

    /// A transposed convolution of one axis, of two channels to three.
    struct Case {
        size: usize,
        kernel: usize,
        stride: usize,
        padding: (usize, usize),
        dilation: usize,
        extra: usize,
    }

    fn transposed(case: &Case) -> Graph {
        let Case { size, kernel, stride, padding: (before, behind), dilation, extra } = case;
        let output = (size - 1) * stride + dilation * (kernel - 1) + 1 + extra - before - behind;
        let text = format!(
            "graph {{ const c0: f32[2, 3, {kernel}] = random 1
               input %x: f32[2, 2, {size}] %w: f32[2, 3, {kernel}] = constant c0
               %y: f32[2, 3, {output}] = conv %x, %w stride [{stride}] padding [{before}:{behind}] dilation [{dilation}]
                 groups 1 transposed output_padding [{extra}]
               output %y }}"
        );
        parse(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn is_transposed(graph: &Graph) -> bool {
        graph.nodes.iter().any(|node| matches!(&node.op, Op::Conv(conv) if conv.transposed))
    }

    fn check(case: &Case) {
        let before = transposed(case);
        let after = dce(subpixel_conv(before.clone()));
        verify(&after).expect("the result is well formed");
        assert!(!is_transposed(&after));
        let numbers: Vec<f32> = (0..4 * case.size).map(|k| (k * 7 % 13) as f32 - 6.0).collect();
        let x = [Tensor::from_f32(&[2, 2, case.size], &numbers)];
        let [expected, found] =
            [before, after].map(|graph| evaluate(&graph, &x).expect("it runs")[0].to_f64());
        for (a, b) in expected.iter().zip(&found) {
            assert!((a - b).abs() < 1e-5, "{expected:?} became {found:?}");
        }
    }

    #[test]
    fn phases_are_channels_whatever_is_cut_off() {
        for (kernel, stride) in [(2, 2), (4, 2), (6, 3), (3, 1), (8, 2), (5, 5)] {
            for (before, behind) in [(0, 0), (1, 1), (1, 0), (2, 4), (3, 0)] {
                for extra in 0..stride {
                    let padding = (before, behind);
                    check(&Case { size: 5, kernel, stride, padding, dilation: 1, extra });
                }
            }
        }
        for padding in [(0, 0), (2, 1), (5, 5)] {
            check(&Case { size: 6, kernel: 3, stride: 1, padding, dilation: 2, extra: 0 });
        }
    }

    #[test]
    fn phases_of_different_numbers_of_taps_stay_transposed() {
        let stays = |kernel, stride, dilation| {
            let case = Case { size: 4, kernel, stride, padding: (0, 0), dilation, extra: 0 };
            is_transposed(&subpixel_conv(transposed(&case)))
        };
        assert!(stays(3, 2, 1) && stays(4, 2, 3) && stays(1, 2, 1));
        assert!(!stays(4, 2, 1));
    }
}
