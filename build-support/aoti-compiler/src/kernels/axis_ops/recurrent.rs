//! Recurrent layers as one kernel of a GPU, whose blocks keep the weights near for all steps (`gpu/recurrent.h`). Other targets
//! unroll layers ([`crate::passes::unroll_recurrent`]).

use super::{Code, OnGpus, Operand, RowBlock, flag, no_scratch, number};
use crate::constants;
use crate::dtype::DType;
use crate::graph::{Cell, Directions, Operands, Recurrent};
use crate::kernels::launch::{Launch, Launches, MAX_BLOCKS};
use crate::kernels::{self, Algorithm, Call, Parameter};
use crate::loops::{AxisKernel, AxisOp};
use crate::symbolic::{Expr, NoRanges, Ranges};
use crate::target::GpuTarget;

pub(crate) static RECURRENT: Algorithm = Algorithm {
    word: "rows.recurrent",
    version: 1,
    description: "recurrent layers whose weights stay in registers",
    headers: |_| &[],
    code: kernels::Code::AxisOp(Code {
        scratch: no_scratch,
        // Layers are unrolled.
        processors: None,
        gpus: Some(OnGpus {
            headers: &["gpu/recurrent.h"],
            block,
            fits: |_, block| block.threads == THREADS && ROWS.contains(&block.rows),
            launches,
            calls: |rows, block| call(rows, block).into(),
        }),
    }),
};

/// Threads of a block, and of a warp, whose lanes share the columns of the weights.
const THREADS: i64 = constants::RECURRENT_THREADS;
const WARP: i64 = 32;
/// Rows of the batch that a cluster can have.
const ROWS: [i64; 4] = [1, 2, 4, 8];
/// Rows of a cluster where the batch is not known.
const USUAL_ROWS: i64 = 4;
/// Blocks that run at once on the GPUs that this was measured on.
const AT_ONCE: i64 = 132;
/// Blocks of a cluster at most.
const MOST_BLOCKS: i64 = 8;
/// Weights that a lane has in registers where blocks are enough to choose from, and registers for weights and sums in all.
const FEW_WEIGHTS: i64 = 64;
const REGISTERS: i64 = 200;
/// Rows of a batch from which on products of whole matrices at each step take less time.
const MANY_ROWS: i64 = 1024;
/// Units of a layer at most.
const LARGEST: i64 = 1024;

/// How a layer is shared out: what `RecurrentPartition` of the header has.
#[derive(Clone, Copy)]
struct Partition {
    /// Blocks of a cluster.
    blocks: i64,
    /// Rows of the weights that a warp has.
    weights: i64,
    /// Groups of units that a warp has one after the other.
    groups: i64,
    /// Sums of a lane at a time.
    sums: i64,
    /// Neighbouring columns of a lane, and how often it has so many.
    width: i64,
    chunks: i64,
}

impl Partition {
    fn of_blocks(own: &Recurrent, rows: i64, blocks: i64) -> Partition {
        let gates = own.cell.gates();
        let places = if gates == 3 { 4 } else { gates };
        let least = pieces(pieces(own.hidden, blocks), THREADS / WARP);
        let wanted = least.unsigned_abs().next_power_of_two().cast_signed();
        let at_once = (WARP / (places * rows)).min(wanted);
        let groups = pieces(least, at_once);
        let width = match own.hidden {
            ..=32 => 1,
            33..=64 => 2,
            _ => 4,
        };
        let chunks = pieces(own.hidden, WARP * width);
        let sums = at_once * rows * places;
        Partition { blocks, weights: groups * at_once * gates, groups, sums, width, chunks }
    }

    /// As few blocks as leave room for the weights of each.
    fn of(own: &Recurrent, rows: i64) -> Partition {
        let mut blocks = 1;
        loop {
            let shares = Partition::of_blocks(own, rows, blocks);
            if shares.weights * shares.chunks * shares.width <= FEW_WEIGHTS || blocks == MOST_BLOCKS {
                return shares;
            }
            blocks *= 2;
        }
    }

    /// Chunks of the weights in registers.
    fn held(self, own: &Recurrent, rows: i64) -> i64 {
        let other = self.sums + rows * self.width + self.groups * (1 + 2 * own.cell.gates());
        ((REGISTERS - other) / (self.weights * self.width)).clamp(0, self.chunks)
    }

    /// Bytes of the weights that are in shared memory, and of the states.
    fn shared_bytes(self, own: &Recurrent, rows: i64, dtype: DType) -> (i64, i64) {
        let size = i64::try_from(dtype.size()).expect("a few bytes");
        let beyond = self.chunks - self.held(own, rows);
        let states = 2 * rows * self.chunks * self.width * WARP * 4;
        (self.weights * beyond * self.width * THREADS * size, states)
    }
}

fn pieces(count: i64, size: i64) -> i64 {
    (count + size - 1) / size
}

/// The layer.
fn layer(rows: &AxisKernel) -> &Recurrent {
    match &rows.op {
        AxisOp::Recurrent(own) => own,
        AxisOp::Scan(_)
        | AxisOp::Sort(_)
        | AxisOp::NthElement { .. }
        | AxisOp::SearchSorted { .. }
        | AxisOp::Matrices(_)
        | AxisOp::Fourier(_) => unreachable!("its rows are sequences"),
    }
}

/// Whether a GPU takes a layer as it is, rather than step by step.
pub(crate) fn is_taken(
    own: &Recurrent,
    (dtype, steps, batch): (DType, &Expr, &Expr),
    ranges: &dyn Ranges,
    target: &GpuTarget,
) -> bool {
    let has_type = matches!(dtype, DType::F32 | DType::F16 | DType::Bf16);
    if !has_type || own.projected.is_some() || target.warp != WARP || own.hidden > LARGEST {
        return false;
    }
    // Of one step nothing is kept for another.
    let is_sequence = steps.as_int().is_none_or(|steps| steps > 1);
    let is_small = batch.as_int().is_none_or(|batch| batch < MANY_ROWS);
    let rows = rows_of(own, batch, ranges);
    let shares = Partition::of(own, rows);
    let (weights, states) = shares.shared_bytes(own, rows, dtype);
    let fits = states <= target.shared_bytes && weights + states <= target.max_shared_bytes;
    is_sequence && is_small && fits && shares.blocks <= target.cluster_blocks
}

/// Rows of the batch that a cluster has: as few as leave no more clusters than run at once.
fn rows_of(own: &Recurrent, batch: &Expr, ranges: &dyn Ranges) -> i64 {
    if batch.as_int().is_none() && batch.interval(ranges).max >= MANY_ROWS {
        return USUAL_ROWS;
    }
    let batch = batch.interval(ranges).max.max(1);
    let fits = |rows: &i64| {
        let clusters = own.directions.count() * pieces(batch, *rows);
        clusters * Partition::of(own, *rows).blocks <= AT_ONCE
    };
    ROWS.into_iter().find(fits).unwrap_or(ROWS[ROWS.len() - 1])
}

fn block(rows: &AxisKernel, ranges: &dyn Ranges) -> RowBlock {
    RowBlock { threads: THREADS, rows: rows_of(layer(rows), &rows.outer, ranges) }
}

fn launches(rows: &AxisKernel, block: RowBlock) -> Launches {
    let own = layer(rows);
    let shares = Partition::of(own, block.rows);
    let each = shares.blocks * own.directions.count();
    let clusters = rows.outer.ceil_div(&Expr::int(block.rows), &NoRanges);
    let grid = &clusters.minimum(&Expr::int(MAX_BLOCKS / each)) * each;
    let (shared, _) = shares.shared_bytes(own, block.rows, rows.dtype);
    let launch = Launch::of(&grid, 1, THREADS, i64::from(i32::MAX));
    Launch { grid, cluster: shares.blocks, shared: Expr::int(shared), ..launch }.into()
}

fn call(rows: &AxisKernel, block: RowBlock) -> Call<Operand> {
    let own = layer(rows);
    let positions: Vec<usize> = (0..rows.inputs.len()).collect();
    let Operands { gates, weight, bias, projection: _, hidden, memory } =
        own.operands(&positions).expect("a verified layer");
    let given = |position: Option<usize>| position.map_or(Operand::Name("nullptr"), Operand::Input);
    let made = |position| {
        if position < rows.outputs.len() { Operand::Output(position) } else { Operand::Name("nullptr") }
    };
    let sizes = [&rows.length, &rows.outer].map(|size| Operand::Size(size.clone()));
    let inputs = [Operand::Input(gates), Operand::Input(weight), given(bias), given(hidden), given(memory)];
    let operands = sizes.into_iter().chain(inputs).chain((0..3).map(made));
    let cell = match own.cell {
        Cell::Lstm => "Cell::kLstm",
        Cell::Gru => "Cell::kGru",
        Cell::Tanh => "Cell::kTanh",
        Cell::Relu => "Cell::kRelu",
    };
    let shares = Partition::of(own, block.rows);
    Call::new("recurrent_layer", operands).with([
        Parameter::Element,
        cell.into(),
        number(own.hidden),
        flag(own.batch_first),
        flag(own.directions == Directions::Reverse),
        number(own.directions.count()),
        number(shares.blocks),
        number(block.rows),
        number(shares.held(own, block.rows)),
    ])
}
