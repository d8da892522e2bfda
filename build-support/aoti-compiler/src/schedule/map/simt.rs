//! Blocks of threads.

use super::contiguous;
use crate::loops::{Kernel, KernelKind, Nest, Program};
use crate::schedule::mapping::{Block, GpuMapping};
use crate::symbolic::{Expr, Ranges};
use crate::target::GpuTarget;

/// Warps of a block of independent threads: enough to hide latency, few enough to fill a device evenly.
const WARPS: i64 = 8;
/// Inner positions that each thread of a block should have at least.
const ROUNDS: i64 = 4;

/// Lays a kernel over blocks of threads.
pub(super) fn map(program: &Program, kernel: &Kernel, ranges: &dyn Ranges, target: &GpuTarget) -> GpuMapping {
    let index_bits = if fits_32_bits(program, kernel, ranges) { 32 } else { 64 };
    let plain = |block: Block, threads: i64| GpuMapping {
        block,
        threads,
        vector: 1,
        shared: kernel.rows(program),
        parts: 1,
        index_bits,
    };
    let KernelKind::Nest(nest) = &kernel.kind else { return plain(Block::Template, WARPS * target.warp) };
    if nest.serial {
        return plain(Block::Serial, 1);
    }
    if nest.stages.iter().all(|stage| stage.axes.is_empty()) {
        return GpuMapping {
            vector: vector(program, nest, target),
            ..plain(Block::Positions, WARPS * target.warp)
        };
    }
    plain(Block::Position, threads(nest, target))
}

/// Threads that share one position: of the longest stage, several rounds each.
fn threads(nest: &Nest, target: &GpuTarget) -> i64 {
    let longest = nest.stages.iter().map(|stage| Expr::product(stage.axes.iter().map(|axis| &axis.extent)));
    let longest = longest.map(|size| size.as_int().unwrap_or(i64::MAX)).max().unwrap_or(1);
    let wanted = (longest / ROUNDS).clamp(target.warp, target.max_threads);
    (wanted / target.warp * target.warp).max(target.warp)
}

/// Elements of the last axis that fill the widest load, where every access follows it.
fn vector(program: &Program, nest: &Nest, target: &GpuTarget) -> i64 {
    let Some(last) = nest.axes.last() else { return 1 };
    let accesses: Vec<_> = nest.stages.iter().flat_map(crate::loops::Stage::accesses).collect();
    let along: usize = nest.stages.iter().map(|stage| contiguous(stage, last.symbol)).sum();
    let widest = accesses.iter().map(|access| program.buffers[access.buffer].dtype.size()).max().unwrap_or(1);
    let count = target.load_bytes / i64::try_from(widest).expect("small").max(1);
    let divides = last.extent.as_int().is_some_and(|extent| extent % count.max(1) == 0);
    if along == accesses.len() && divides { count.max(1) } else { 1 }
}

/// Whether every buffer that the kernel touches has fewer than 2^31 elements.
fn fits_32_bits(program: &Program, kernel: &Kernel, ranges: &dyn Ranges) -> bool {
    let small = |id: &crate::loops::BufferId| {
        let elements = Expr::product(&program.buffers[*id].shape);
        elements.interval(ranges).max < i64::from(i32::MAX)
    };
    kernel.reads().iter().chain(&kernel.writes()).all(small)
}
