//! Products and convolutions whose operands the copy engine brings, and what their tiles take on an H100, with those that may take
//! their place.

use super::{Contraction, Kind, MULTIPROCESSORS, UNIT_BYTES, UnitTile, kind_of_product};
use crate::kernels::conv::brought;
use crate::kernels::gemm::tensor_map::tensor_maps;
use crate::loops::{Convolution, MatMul, Program};
use crate::target::GpuTarget;

/// What tiles take on an H100, in nanoseconds. Of those that keep the device busy the one is taken that takes least, in as many turns as
/// its multiprocessors need for all tiles.
pub(super) struct PieceTimes {
    rows: i64,
    columns: i64,
    /// A piece of the depth, where few multiprocessors read and where all do: then the cache that they share sets the pace. Small tiles
    /// wait for memory, as in a network each weight comes from there and few of their pieces are on their way.
    alone: i64,
    together: i64,
    /// The end of a tile, of one block and of several that add up what they have.
    end: i64,
    shared_end: i64,
}
static PIECE_TIMES: [PieceTimes; 4] = [
    PieceTimes { rows: 128, columns: 256, alone: 450, together: 840, end: 5500, shared_end: 9500 },
    PieceTimes { rows: 128, columns: 128, alone: 300, together: 470, end: 2000, shared_end: 5500 },
    PieceTimes { rows: 128, columns: 64, alone: 230, together: 315, end: 2000, shared_end: 4500 },
    PieceTimes { rows: 64, columns: 64, alone: 400, together: 230, end: 1000, shared_end: 2000 },
];
/// What each block more adds to that.
const SHARER: i64 = 500;
/// Blocks that are sure to run at a time where four are a cluster: parts of an H100 have no whole number of such.
const FOURS: i64 = 96;
/// Pieces of a depth that is not known.
const TYPICAL_PIECES: i64 = 16;

impl UnitTile {
    /// What was measured of tiles of its size.
    pub(super) fn times(&self) -> Option<&'static PieceTimes> {
        PIECE_TIMES.iter().find(|times| (times.rows, times.columns) == (self.rows, self.columns))
    }

    /// Nanoseconds that it takes on an H100 once it has begun.
    pub(super) fn time(&self, contraction: &Contraction, target: &GpuTarget) -> i64 {
        let blocks = self.blocks(contraction, target);
        let units = contraction.count(self.rows, self.columns).unwrap_or(1).saturating_mul(blocks);
        let all = contraction.depth.as_int().map_or(TYPICAL_PIECES, |depth| {
            (depth.saturating_mul(contraction.size) + UNIT_BYTES - 1) / UNIT_BYTES
        });
        let pieces = (all + blocks - 1) / blocks;
        let at_once = if blocks > 2 { FOURS } else { MULTIPROCESSORS };
        let turns = (units + at_once - 1) / at_once;
        let times = self.times().unwrap_or(&PIECE_TIMES[0]);
        let piece = times.alone.max(times.together * units.min(at_once) / MULTIPROCESSORS);
        let end = if blocks > 1 { times.shared_end + SHARER * blocks } else { times.end };
        let piece =
            if self.producer_threads == 0 && contraction.kind != Kind::Halves { 2 * piece } else { piece };
        if self.producer_threads > 0 && blocks == 1 {
            return turns.saturating_mul(pieces).saturating_mul(piece) + end;
        }
        turns.saturating_mul(pieces.saturating_mul(piece) + end)
    }
}

/// Whether the device has an engine that copies tiles of both operands: `gpu/unit_roles.h` asks it to.
pub(crate) fn is_brought_product(program: &Program, matmul: &MatMul, target: &GpuTarget) -> bool {
    let can_multiply = match kind_of_product(program, matmul, target) {
        Kind::Halves => true,
        // The units turn no operand but halves.
        Kind::Rounded => matmul.by_depth() == [true, true],
        Kind::Whole | Kind::Other => false,
    };
    can_multiply && target.has_tma && tensor_maps(program, matmul).is_some()
}

/// The same of weights and of the pixels that windows meet.
pub(crate) fn is_brought_convolution(program: &Program, conv: &Convolution, target: &GpuTarget) -> bool {
    let can_multiply = match Kind::of(conv.dtype, target.tf32.conv) {
        Kind::Halves | Kind::Rounded => true,
        Kind::Whole | Kind::Other => false,
    };
    can_multiply && target.has_tma && brought::tensor_maps(program, conv).is_some()
}
