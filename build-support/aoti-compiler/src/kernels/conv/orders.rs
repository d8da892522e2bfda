//! What threads of a processor share of a convolution, and what the algorithm goes over once.

use super::{Site, code};
use crate::cost::{Cost, WorkKind};
use crate::dtype::DType;
use crate::kernels::Algorithm;
use crate::kernels::mapped::{Mapped, with_grains};
use crate::kernels::mapping::{Block, CpuMapping, Grain, Lanes, Split};
use crate::loops::{ConvShape, Convolution, Program};
use crate::symbolic::Expr;
use crate::target::{CpuTarget, Target};

/// How many times as large one of weights and pixels must be so that padding does not decide which is larger.
const CLEARLY: f64 = 1.25;

/// The ways to lay a convolution over the threads of a processor, and all its work.
pub(in crate::kernels) fn on_processor(
    program: &Program,
    conv: &Convolution,
    algorithm: &'static Algorithm,
    (target, cpu): (&Target, &CpuTarget),
) -> (Vec<Mapped>, Expr) {
    let site = Site::new(program, conv, target);
    let shape = &site.shape;
    let taps = &shape.in_channels.floor_div(&Expr::int(shape.groups.max(1))) * &shape.taps();
    let work = &(&Expr::product(&shape.output) * &taps) * &(&shape.batch * &shape.out_channels);
    let grain = Grain { enough: cpu.thread_products, unit: work.clone() };
    let (split, lanes, block) = (Split::Template, Lanes::Outer, Block::Typical);
    let typical = CpuMapping { split, lanes, grain, block, rows: None };
    let mut all = with_grains(&typical, &work);
    // What stays near a core is read again for nothing.
    let again = if stays_near(shape, cpu) { 0.0 } else { 1.0 };
    let own = code(algorithm).processors.as_ref().expect("candidates for processors have orders");
    for block in (own.orders)(&site) {
        let mapping = CpuMapping { block, ..typical.clone() };
        all.push(Mapped { extra: Cost::of(WorkKind::LoopOrder, again), ..Mapped::of(mapping) });
    }
    (all, work)
}

/// What is passed over once, as a template's parameter.
pub(super) fn once(block: Block) -> &'static str {
    match block {
        Block::WeightsOnce => "ConvOnce::Weights",
        Block::PixelsOnce => "ConvOnce::Pixels",
        Block::Typical | Block::Rows(_) => "ConvOnce::Larger",
    }
}

/// The orders in which a convolution goes over weights and pixels other than its own, which is over the larger of the two once;
/// both where it is not known, or not clear, which that is.
pub(super) fn other_orders(shape: &ConvShape, in_phases: bool) -> Vec<Block> {
    let size = |expr: &Expr| expr.as_int().map(|size| size as f64);
    let product = |of: &[Expr]| of.iter().map(size).product::<Option<f64>>();
    // Of a padded copy in phases of the stride there are those that some tap uses.
    let padded = (0..shape.kernel.len()).map(|axis| {
        let (kernel, output) = (size(&shape.kernel[axis])?, size(&shape.output[axis])?);
        let (stride, span) = (shape.stride[axis] as f64, (kernel - 1.0) * shape.dilation[axis] as f64);
        Some(if in_phases {
            kernel.min(stride) * (output + span / stride)
        } else {
            (output - 1.0) * stride + span + 1.0
        })
    });
    let channels = size(&shape.out_channels).map(|channels| channels / shape.groups.max(1) as f64);
    let counts = (channels, product(&shape.kernel), padded.product::<Option<f64>>(), product(&shape.output));
    match counts {
        // Of one pixel there is one order.
        (_, _, _, Some(pixels)) if pixels <= 1.0 && shape.batch.is(1) => vec![],
        // Input channels count on both sides.
        (Some(channels), Some(taps), Some(pixels), _) if channels * taps > CLEARLY * pixels => {
            vec![Block::PixelsOnce]
        }
        (Some(channels), Some(taps), Some(pixels), _) if channels * taps * CLEARLY < pixels => {
            vec![Block::WeightsOnce]
        }
        _ => vec![Block::WeightsOnce, Block::PixelsOnce],
    }
}

/// Whether weights and an image stay in a core's second-level cache.
fn stays_near(shape: &ConvShape, target: &CpuTarget) -> bool {
    let taps = &shape.in_channels.floor_div(&Expr::int(shape.groups.max(1))) * &shape.taps();
    let image = &shape.in_channels * &Expr::product(&shape.input);
    let elements = &(&taps * &shape.out_channels) + &image;
    let near = i64::try_from(target.near_weights / DType::F32.size()).unwrap_or(i64::MAX);
    elements.as_int().is_some_and(|elements| elements <= near)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::Symbol;

    #[test]
    fn a_convolution_has_the_orders_that_are_not_its_own() {
        let shape = |batch: Expr, channels: i64, size: i64, taps: i64| ConvShape {
            batch,
            in_channels: Expr::int(64),
            out_channels: Expr::int(channels),
            groups: 1,
            input: [1, size, size].map(Expr::int),
            kernel: [1, taps, taps].map(Expr::int),
            stride: [1; 3],
            dilation: [1; 3],
            padding: [0, taps / 2, taps / 2],
            output: [1, size, size].map(Expr::int),
        };
        let orders = |channels, size| other_orders(&shape(Expr::int(1), channels, size, 3), false);
        assert_eq!(orders(64, 56), [Block::WeightsOnce], "it goes over the pixels once by itself");
        assert_eq!(orders(512, 7), [Block::PixelsOnce]);
        assert_eq!(orders(13, 9), [Block::WeightsOnce, Block::PixelsOnce], "neither is clearly larger");
        assert_eq!(other_orders(&shape(Expr::int(1), 512, 1, 1), false), []);
        let batch = Expr::sym(Symbol::size(0));
        assert_eq!(
            other_orders(&shape(batch, 64, 1, 1), true),
            [Block::PixelsOnce],
            "of pixels there may be many"
        );
    }
}
