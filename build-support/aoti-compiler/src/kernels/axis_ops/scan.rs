//! Running reductions.

use super::{Code, OnGpus, Operand, RUN, RowBlock, no_scratch, number, sizes};
use crate::constants;
use crate::graph::ScanOp;
use crate::kernels::launch::{Launch, MAX_BLOCKS};
use crate::kernels::{self, Algorithm, Call, Parameter};
use crate::loops::{AxisKernel, AxisOp};
use crate::symbolic::Ranges;

pub(crate) static SCAN: Algorithm = Algorithm {
    word: "rows.scan",
    version: 2,
    description: "running reductions of rows",
    headers: |_| &["scan.h"],
    code: kernels::Code::AxisOp(Code {
        scratch: no_scratch,
        processors: Some(call),
        gpus: Some(OnGpus {
            headers: &["rows.h", "gpu/scan.h", "gpu/sort.h"],
            block,
            fits: |_, block| block.is_together() || block.is_apart(),
            launches: |rows, RowBlock { threads, rows: at_once }| {
                Launch::of(&(&rows.outer * &rows.inner), at_once, threads, MAX_BLOCKS).into()
            },
            calls: |rows, block| call_on_gpu(rows, block).into(),
        }),
    }),
};

/// Neighbouring elements that a thread has of a row that a block scans (`kScanned` of `gpu/scan.h`).
const AT_ONCE: i64 = constants::SCANNED;
/// Elements of a row up to which one thread does them alone.
const ALONE: i64 = 16;
/// Threads side by side that make whole memory transactions.
const SIDE_BY_SIDE: i64 = 32;
/// Rows from which on a thread for each is enough of them.
const MANY_ROWS: i64 = 1 << 14;
/// Rows up to which each may have a multiprocessor.
const FEW_ROWS: i64 = 512;
/// Threads of a block, and where there are few rows.
const THREADS: i64 = 256;
const MOST_THREADS: i64 = 1024;

fn block(own: &AxisKernel, ranges: &dyn Ranges) -> RowBlock {
    let longest = own.length.interval(ranges).max;
    let positions = (&own.outer * &own.inner).interval(ranges).min;
    // Side by side, threads read whole transactions, each of a row of its own.
    let fills = own.inner.interval(ranges).min >= SIDE_BY_SIDE && positions >= MANY_ROWS;
    if longest <= ALONE || fills {
        return RowBlock::ROW_EACH;
    }
    // A thread has several neighbouring elements of a row at a time. Few rows leave a multiprocessor to each.
    let most = if positions < FEW_ROWS { MOST_THREADS } else { THREADS };
    let each = longest.min(most * AT_ONCE) / AT_ONCE;
    let threads = each.unsigned_abs().next_power_of_two().clamp(64, most.unsigned_abs()).cast_signed();
    RowBlock { threads, rows: 1 }
}

/// How a row is combined, and whether positions are results too.
fn combine(rows: &AxisKernel) -> (&'static str, bool) {
    let AxisOp::Scan(op) = &rows.op else { unreachable!("its rows are scanned") };
    let combine = match op {
        ScanOp::Sum => "ScanSum",
        ScanOp::Prod => "ScanProd",
        ScanOp::LogSumExp => "ScanLogSumExp",
        ScanOp::Max => "ScanMax",
        ScanOp::Min => "ScanMin",
    };
    (combine, op.has_indices())
}

/// Input, outputs and sizes.
fn operands(rows: &AxisKernel, has_indices: bool) -> impl Iterator<Item = Operand> {
    let indices = has_indices.then_some(Operand::Output(1));
    [Operand::Input(0), Operand::Output(0)].into_iter().chain(indices).chain(sizes(rows))
}

fn call(rows: &AxisKernel) -> Call<Operand> {
    let (combine, has_indices) = combine(rows);
    let function = if has_indices { "scan_extreme" } else { "scan" };
    let operands = [RUN].into_iter().chain(operands(rows, has_indices));
    Call::new(function, operands).with([combine.into(), Parameter::Element])
}

fn call_on_gpu(rows: &AxisKernel, block: RowBlock) -> Call<Operand> {
    if !block.is_together() {
        return call(rows);
    }
    let (combine, has_indices) = combine(rows);
    let function = if has_indices { "scan_extreme_rows" } else { "scan_rows" };
    let parameters = [number(block.threads), combine.into(), Parameter::Element];
    Call::new(function, operands(rows, has_indices)).with(parameters)
}
