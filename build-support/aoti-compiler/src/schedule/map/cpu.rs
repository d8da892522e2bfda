//! Threads and vector lanes.

use super::contiguous;
use crate::loops::{ConvShape, Kernel, KernelKind, MatMul, Nest, Program};
use crate::schedule::mapping::{CpuMapping, Grain, Lanes, Split};
use crate::select::{Choice, Gemm, Template};
use crate::symbolic::{Expr, Symbol};
use crate::target::CpuTarget;

/// Rows of a matrix product from which on blocks of rows keep all threads busy.
const MANY_ROWS: i64 = 64;
/// A vector axis shorter than this leaves most lanes empty.
const FEW_ELEMENTS: i64 = 4;

/// Lays a kernel over threads and lanes.
pub(super) fn map(program: &Program, kernel: &Kernel, choice: &Choice, target: &CpuTarget) -> CpuMapping {
    match &kernel.kind {
        KernelKind::Nest(nest) => map_nest(nest, kernel.rows(program).is_empty(), target),
        KernelKind::MatMul(matmul) => map_product(matmul, choice, target),
        KernelKind::Convolution(conv) => {
            let shape = ConvShape::new(program, conv);
            let taps = &shape.in_channels.floor_div(&Expr::int(shape.groups.max(1))) * &shape.taps();
            let work = &(&Expr::product(&shape.output) * &taps) * &(&shape.batch * &shape.out_channels);
            let grain = Grain { enough: target.thread_products, unit: work };
            CpuMapping { split: Split::Template, lanes: Lanes::Outer, grain }
        }
        KernelKind::Attention(_) => unreachable!("lowering makes attention only where there is a template"),
        KernelKind::Rows(rows) => {
            let grain = Grain { enough: target.thread_work, unit: &rows.length * &rows.inner };
            CpuMapping { split: Split::Template, lanes: Lanes::One, grain }
        }
    }
}

fn map_nest(nest: &Nest, keeps_no_rows: bool, target: &CpuTarget) -> CpuMapping {
    let lanes = choose_lanes(nest, keeps_no_rows);
    let vector = if lanes == Lanes::Outer { nest.axes.last() } else { None };
    let loops = nest.axes.len() - usize::from(vector.is_some());
    let mut unit = position_work(nest);
    let split = match (nest.serial, loops, vector) {
        (true, ..) | (false, 0, None) => Split::Serial,
        (false, 0, Some(_)) => {
            unit = &unit * target.chunk;
            Split::Chunks(target.chunk)
        }
        (false, _, None) => Split::Axes(loops),
        (false, _, Some(axis)) => {
            unit = &unit * &axis.extent;
            Split::Axes(loops)
        }
    };
    CpuMapping { split, lanes, grain: Grain { enough: target.thread_work, unit } }
}

/// Terms that are computed at one position of the outer axes.
fn position_work(nest: &Nest) -> Expr {
    nest.stages.iter().fold(Expr::int(1), |work, stage| {
        let size = Expr::product(stage.axes.iter().map(|axis| &axis.extent));
        &work + &(&size * i64::try_from(stage.terms.len()).expect("few terms"))
    })
}

/// A worker has one of each row, so positions that keep rows do not run side by side in lanes.
fn choose_lanes(nest: &Nest, keeps_no_rows: bool) -> Lanes {
    if nest.serial {
        return Lanes::One;
    }
    let has_inner = nest.stages.iter().any(|stage| !stage.axes.is_empty());
    let Some(last) = nest.axes.last() else {
        return if has_inner { Lanes::Inner } else { Lanes::One };
    };
    if !has_inner {
        return Lanes::Outer;
    }
    let inner = |stage: &crate::loops::Stage| Some(contiguous(stage, stage.axes.last()?.symbol));
    let inner_score: usize = nest.stages.iter().filter_map(inner).sum();
    let outer =
        |symbol: Symbol| nest.stages.iter().map(move |stage| contiguous(stage, symbol)).sum::<usize>();
    let few = |extent: &Expr| extent.as_int().is_some_and(|size| size < FEW_ELEMENTS);
    let inner_few = nest.stages.iter().filter_map(|stage| stage.axes.last()).all(|axis| few(&axis.extent));
    if keeps_no_rows && (outer(last.symbol) > inner_score || (inner_few && !few(&last.extent))) {
        Lanes::Outer
    } else {
        Lanes::Inner
    }
}

fn map_product(matmul: &MatMul, choice: &Choice, target: &CpuTarget) -> CpuMapping {
    let rank = matmul.axes.len();
    let (m, n) = (&matmul.axes[rank - 2].extent, &matmul.axes[rank - 1].extent);
    let row = n * &matmul.depth;
    let whole = m * &row;
    let alone = Expr::product(matmul.axes[..rank - 2].iter().map(|axis| &axis.extent)).is(1);
    let (split, unit) = match (alone, choice.template == Template::Gemm(Gemm::Any)) {
        (false, _) => (Split::Axes(rank - 2), whole),
        (true, true) => (Split::Axes(rank - 1), row),
        (true, false) => (Split::RowsFrom(MANY_ROWS), whole),
    };
    CpuMapping { split, lanes: Lanes::Outer, grain: Grain { enough: target.thread_products, unit } }
}
