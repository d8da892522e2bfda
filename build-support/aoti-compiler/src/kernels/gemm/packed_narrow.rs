//! As [`super::packed`], with elements of a half type, or of bytes, that are widened where they are read: by each tile of rows, or
//! panel by panel for all rows of a block where there are many.

use super::packed::reads_rows_in_place;
use super::{CHAIN, Code, PART, Product, Site, TILE_ROWS, Tiling, left_block, most_rows_parameter};
use crate::constants::FEW_ROWS;
use crate::cost::WorkKind;
use crate::kernels::scratch::aligned;
use crate::kernels::weight_form::PANEL_BYTES;
use crate::kernels::{self, Algorithm, Call, Scratch, typical};
use crate::symbolic::Expr;

/// Tiles of rows from which on panels are widened once (`kWidenRows` of `gemm.h`).
const MANY_TILES: f64 = 4.0;

pub(crate) static PACKED_NARROW: Algorithm = Algorithm {
    word: "gemm.packed-narrow",
    version: 3,
    description: "GEMM, narrow weights prepacked",
    headers: |_| &["gemm.h"],
    code: kernels::Code::Product(Code {
        applies: |site| site.is_of_halves() || site.has_widening_tiles(),
        cost: |site| {
            let tiles = (typical(site.sizes[0]) / TILE_ROWS as f64).ceil();
            let times = if tiles >= MANY_TILES { 1.0 } else { tiles };
            site.work().plus(&site.read(site.stored_part())).and(WorkKind::Upcast, site.weights() * times)
        },
        weights: |site| site.panels(true).map(Into::into),
        scratch: wide_panel,
        tiling: Tiling::Registers,
        widens: true,
        library: None,
        processors: Some(|matmul, block| {
            let call = Call::new("gemm_packed", PART).with(most_rows_parameter(matmul, block));
            Product { is_of_words: false, is_packed: true, call }
        }),
        gpus: None,
    }),
};

/// The part of a panel that one chain reads, widened, unless there are few rows, and copied rows of the left operand
/// (`gemm_packed_scratch_bytes` of `gemm.h`).
fn wide_panel(site: &Site) -> Scratch {
    let [m, _, k] = site.sizes;
    if m.as_int().is_some_and(|rows| rows <= FEW_ROWS) {
        return site.packed_scratch();
    }
    let wide = &k.minimum(&Expr::int(CHAIN)) * PANEL_BYTES;
    let rows = if reads_rows_in_place(site) {
        Expr::int(0)
    } else {
        left_block(m, k, site.element_bytes(), TILE_ROWS)
    };
    Scratch::of_worker(aligned(&(&wide + &rows), site.target))
}
