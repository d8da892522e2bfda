//! Transposed convolutions become ordinary ones: the output pixels that are a stride apart, a *phase*, read the same taps,
//! and at stride 1 of the input. Phases with equally many taps are one convolution with a channel for each of them, and the
//! results are interleaved; templates, layouts and fusion know nothing of transposition.
//!
//! Along an axis phases have `kernel / stride` taps, rounded up for the first `kernel % stride` of them and down for the
//! others, so there are at most two kinds of phase an axis. Taps of zero in place of missing ones would make one
//! convolution of all, but also NaN of infinities that the program multiplies by nothing. A kernel shorter than its stride
//! leaves phases without a tap: such convolutions stay transposed.

use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::graph::{Builder, Conv, Graph, Node, Op, ShapeError, ValueId};
use crate::symbolic::{Expr, NoRanges};
use crate::target::Target;

/// Products from which several convolutions and a kernel that interleaves them take a GPU less time than one that gathers, by
/// measurements on an H200.
const REPAYS_KERNELS: i64 = 1 << 23;

/// Turns transposed convolutions by constant weights into ordinary ones.
pub fn subpixel_conv(graph: Graph, target: &Target) -> Graph {
    let mut is_changed = false;
    let graph = everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Conv(conv) = &node.op else { return None };
            let value = interleaved(rewriter, node, conv, target)?;
            is_changed = true;
            Some(vec![value])
        });
    });
    if is_changed { super::dce(super::fold_constants(graph)) } else { graph }
}

type Built = Result<ValueId, ShapeError>;

/// Phases with equally many taps.
#[derive(Clone)]
struct Kind {
    first: i64,
    phases: i64,
    taps: i64,
}

/// One spatial axis: output pixel `o` is number `o + padding` of the sum that the transposed convolution begins at, which is
/// pixel `(o + padding) / stride - skipped` of phase `(o + padding) % stride`.
struct Axis {
    stride: i64,
    padding: i64,
    skipped: i64,
    /// Distance between the taps of a phase.
    dilation: i64,
    /// Zeros after the input.
    after: i64,
    kinds: Vec<Kind>,
}

impl Axis {
    fn new(conv: &Conv, d: usize, kernel: i64) -> Option<Axis> {
        let (stride, (padding, behind)) = (conv.stride[d], conv.padding[d]);
        let dilation = if kernel == 1 { 1 } else { conv.dilation[d] };
        if kernel < stride || (stride > 1 && dilation > 1) || padding < 0 {
            return None;
        }
        let (fewest, longer) = (kernel / stride, kernel % stride);
        let kinds = [
            Kind { first: 0, phases: longer, taps: fewest + 1 },
            Kind { first: longer, phases: stride - longer, taps: fewest },
        ];
        let skipped = (padding / stride).min((fewest - 1) * dilation);
        let after = ((kernel - 1) * dilation - behind + conv.output_padding[d]).div_euclid(stride);
        let kinds = kinds.into_iter().filter(|kind| kind.phases > 0).collect();
        Some(Axis { stride, padding, skipped, dilation, after: after.max(0), kinds })
    }

    /// Zeros before and after the input for phases of `kind`: all of them begin at the pixel after those skipped.
    fn zeros(&self, kind: &Kind) -> (i64, i64) {
        ((kind.taps - 1) * self.dilation - self.skipped, self.after)
    }

    /// The phase and its pixel of the output pixel that an axis of the result counts.
    fn of(&self, axis: usize) -> (Expr, Expr) {
        let (at, stride) = (&Expr::axis(axis) + self.padding, Expr::int(self.stride));
        (at.modulo_in(&stride, &NoRanges), &at.floor_div(&stride) - self.skipped)
    }
}

/// A transposed convolution `[groups][in / groups][out / groups]` of constant weights.
struct Transposed {
    x: ValueId,
    weight: ValueId,
    groups: i64,
    /// Output channels of a group.
    channels: i64,
    axes: Vec<Axis>,
}

fn interleaved(rewriter: &mut Rewriter, node: &Node, conv: &Conv, target: &Target) -> Option<ValueId> {
    let (x, weight) = (node.inputs[0], node.inputs[1]);
    // Elsewhere the weights would be turned around in each run.
    if !conv.transposed || !matches!(rewriter.op(weight), Some(Op::Constant(_))) {
        return None;
    }
    let builder = &mut rewriter.builder;
    let sizes: Option<Vec<i64>> = builder.shape(weight).iter().map(Expr::as_int).collect();
    let sizes = sizes?;
    let [_, channels, kernel @ ..] = sizes.as_slice() else { return None };
    let axes: Option<Vec<Axis>> =
        kernel.iter().enumerate().map(|(d, size)| Axis::new(conv, d, *size)).collect();
    let own = Transposed { x, weight, groups: conv.groups, channels: *channels, axes: axes? };
    let is_wanted = match target {
        Target::Cpu(_) => true,
        Target::Gpu(_) => own.is_one() || own.products(builder, kernel) >= REPAYS_KERNELS,
    };
    if !is_wanted {
        return None;
    }
    let phases = own.phases(builder, &mut Vec::new()).ok()?;
    own.interleave(builder, phases, &builder.shape(node.outputs[0])).ok()
}

impl Transposed {
    /// Whether all phases are one convolution.
    fn is_one(&self) -> bool {
        self.axes.iter().all(|axis| axis.kinds.len() == 1)
    }

    /// Products of the convolution, of sizes that only runs know for one.
    fn products(&self, builder: &Builder, kernel: &[i64]) -> i64 {
        let input = builder.shape(self.x);
        let sizes =
            input.iter().filter_map(Expr::as_int).chain([self.channels]).chain(kernel.iter().copied());
        sizes.fold(1, i64::saturating_mul)
    }

    /// All phases of the axes that `chosen` leaves open: `[batch, groups, phases of each axis..., channels, pixels...]`.
    fn phases(&self, builder: &mut Builder, chosen: &mut Vec<Kind>) -> Built {
        let Some(axis) = self.axes.get(chosen.len()) else { return self.convolution(builder, chosen) };
        let mut parts = Vec::new();
        for kind in &axis.kinds {
            chosen.push(kind.clone());
            parts.push(self.phases(builder, chosen)?);
            chosen.pop();
        }
        if parts.len() == 1 { Ok(parts[0]) } else { builder.cat(&parts, 2 + chosen.len()) }
    }

    /// The phases of one kind of each axis.
    fn convolution(&self, builder: &mut Builder, kinds: &[Kind]) -> Built {
        let weight = self.turned(builder, kinds)?;
        let per_axis = self.axes.iter().zip(kinds);
        let ordinary = Conv {
            stride: vec![1; kinds.len()],
            padding: per_axis.map(|(axis, kind)| axis.zeros(kind)).collect(),
            dilation: self.axes.iter().map(|axis| axis.dilation).collect(),
            groups: self.groups,
            transposed: false,
            output_padding: vec![0; kinds.len()],
        };
        let sums = builder.conv(self.x, weight, ordinary)?;
        let shape = builder.shape(sums);
        let mut split = vec![shape[0].clone(), Expr::int(self.groups)];
        split.extend(kinds.iter().map(|kind| Expr::int(kind.phases)));
        split.push(Expr::int(self.channels));
        split.extend_from_slice(&shape[2..]);
        builder.reshape(sums, &split)
    }

    /// The weight `[in, out / groups, taps...]` as `[groups * phases * out / groups, in / groups, taps of a phase...]`,
    /// taps last to first.
    fn turned(&self, builder: &mut Builder, kinds: &[Kind]) -> Built {
        let inputs = &builder.shape(self.weight)[0].floor_div(&Expr::int(self.groups));
        // Axes: groups, phases of each axis, output channels, input channels, taps of each axis.
        let spatial = kinds.len();
        let mut shape = vec![Expr::int(self.groups)];
        shape.extend(kinds.iter().map(|kind| Expr::int(kind.phases)));
        shape.extend([Expr::int(self.channels), inputs.clone()]);
        shape.extend(kinds.iter().map(|kind| Expr::int(kind.taps)));
        let mut coords = vec![&(&Expr::axis(0) * inputs) + &Expr::axis(spatial + 2), Expr::axis(spatial + 1)];
        for (d, (axis, kind)) in self.axes.iter().zip(kinds).enumerate() {
            let backwards = &Expr::int(kind.taps - 1) - &Expr::axis(spatial + 3 + d);
            coords.push(&(&backwards * axis.stride) + &(&Expr::axis(1 + d) + kind.first));
        }
        let weight = builder.view(self.weight, &shape, coords)?;
        let phases: i64 = kinds.iter().map(|kind| kind.phases).product();
        let mut joined = vec![Expr::int(self.groups * phases * self.channels), inputs.clone()];
        joined.extend(kinds.iter().map(|kind| Expr::int(kind.taps)));
        builder.reshape(weight, &joined)
    }

    /// The pixels of all phases in their places of the output.
    fn interleave(&self, builder: &mut Builder, phases: ValueId, output: &[Expr]) -> Built {
        let channels = Expr::int(self.channels);
        let (group, channel) = match self.groups {
            1 => (Expr::int(0), Expr::axis(1)),
            _ => (Expr::axis(1).floor_div(&channels), Expr::axis(1).modulo_in(&channels, &NoRanges)),
        };
        let places: Vec<(Expr, Expr)> =
            self.axes.iter().enumerate().map(|(d, axis)| axis.of(d + 2)).collect();
        let (phase, pixels): (Vec<Expr>, Vec<Expr>) = places.into_iter().unzip();
        let coords = [vec![Expr::axis(0), group], phase, vec![channel], pixels].concat();
        builder.view(phases, output, coords)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};
    use crate::target::GpuTarget;

    /// A transposed convolution of one axis, of two channels to three, in one group or two.
    struct Case {
        groups: usize,
        size: usize,
        kernel: usize,
        stride: usize,
        padding: (usize, usize),
        dilation: usize,
        extra: usize,
    }

    fn transposed(case: &Case) -> Graph {
        let Case { groups, size, kernel, stride, padding: (before, behind), dilation, extra } = case;
        let (batch, channels, results) = (2, 2 * groups, 3 * groups);
        let output = (size - 1) * stride + dilation * (kernel - 1) + 1 + extra - before - behind;
        let text = format!(
            "graph {{ const c0: f32[{channels}, 3, {kernel}] = random 1
               input %x: f32[{batch}, {channels}, {size}] %w: f32[{channels}, 3, {kernel}] = constant c0
               %y: f32[{batch}, {results}, {output}] = conv %x, %w stride [{stride}] padding [{before}:{behind}] dilation [{dilation}]
                 groups {groups} transposed output_padding [{extra}]
               output %y }}"
        );
        parse(&text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn is_transposed(graph: &Graph) -> bool {
        graph.nodes.iter().any(|node| matches!(&node.op, Op::Conv(conv) if conv.transposed))
    }

    fn check(case: &Case) {
        let before = transposed(case);
        let after = subpixel_conv(before.clone(), &Target::cpu(&["x86-64-v3"]));
        verify(&after).expect("the result is well formed");
        assert!(!is_transposed(&after));
        let numbers: Vec<f32> = (0..4 * case.groups * case.size).map(|k| (k * 7 % 13) as f32 - 6.0).collect();
        let x = [Tensor::from_f32(&[2, 2 * case.groups, case.size], &numbers)];
        let [expected, found] =
            [before, after].map(|graph| evaluate(&graph, &x).expect("it runs")[0].to_f64());
        for (a, b) in expected.iter().zip(&found) {
            assert!((a - b).abs() < 1e-5, "{expected:?} became {found:?}");
        }
    }

    #[test]
    fn phases_are_channels_whatever_is_cut_off() {
        for (kernel, stride) in
            [(2, 2), (4, 2), (6, 3), (3, 1), (8, 2), (5, 5), (3, 2), (5, 2), (5, 3), (7, 4)]
        {
            for (before, behind) in [(0, 0), (1, 1), (1, 0), (2, 4), (3, 0)] {
                for extra in 0..stride {
                    let (padding, groups) = ((before, behind), 1 + extra % 2);
                    check(&Case { groups, size: 5, kernel, stride, padding, dilation: 1, extra });
                }
            }
        }
        for padding in [(0, 0), (2, 1), (5, 5)] {
            check(&Case { groups: 1, size: 6, kernel: 3, stride: 1, padding, dilation: 2, extra: 0 });
        }
    }

    #[test]
    fn axes_have_their_own_kinds_of_phases() {
        let text = "graph { const c0: f32[4, 3, 3, 5] = random 1
           input %x: f32[1, 4, 3, 4] %w: f32[4, 3, 3, 5] = constant c0
           %y: f32[1, 6, 6, 14] = conv %x, %w stride [2, 3] padding [1:1, 0:0] dilation [1, 1]
             groups 2 transposed output_padding [1, 0]
           output %y }";
        let before = parse(text).unwrap_or_else(|error| panic!("{error}"));
        let after = subpixel_conv(before.clone(), &Target::cpu(&["x86-64-v3"]));
        let convolutions = after.nodes.iter().filter(|node| matches!(&node.op, Op::Conv(_))).count();
        assert!(!is_transposed(&after) && convolutions == 4);
        let x = [Tensor::from_f32(&[1, 4, 3, 4], &(0..48).map(|k| (k * 7 % 13) as f32).collect::<Vec<_>>())];
        let [expected, found] =
            [before, after].map(|graph| evaluate(&graph, &x).expect("it runs")[0].to_f64());
        assert!(
            expected.iter().zip(&found).all(|(a, b)| (a - b).abs() < 1e-4),
            "{expected:?} became {found:?}"
        );
    }

    #[test]
    fn gpus_keep_small_ones_that_would_be_several() {
        let gpu = Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"));
        let stays = |kernel, size| {
            let case = Case { groups: 1, size, kernel, stride: 2, padding: (0, 0), dilation: 1, extra: 0 };
            is_transposed(&subpixel_conv(transposed(&case), &gpu))
        };
        assert!(!stays(4, 5), "one convolution");
        assert!(stays(3, 5) && !stays(3, 1 << 20));
    }

    #[test]
    fn phases_without_taps_stay_transposed() {
        let stays = |kernel, stride, dilation| {
            let case = Case { groups: 1, size: 4, kernel, stride, padding: (0, 0), dilation, extra: 0 };
            is_transposed(&subpixel_conv(transposed(&case), &Target::cpu(&["x86-64-v3"])))
        };
        assert!(stays(4, 2, 3) && stays(1, 2, 1) && stays(2, 3, 1));
        assert!(!stays(4, 2, 1) && !stays(3, 2, 1));
    }
}
