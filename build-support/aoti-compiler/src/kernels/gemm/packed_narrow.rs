//! As [`super::packed`], with elements of a half type, or of bytes, that are widened where they are read.

use super::{Code, PART, Product, TILE_ROWS, Tiling, most_rows_parameter};
use crate::cost::WorkKind;
use crate::kernels::{self, Algorithm, Call, typical};

pub(crate) static PACKED_NARROW: Algorithm = Algorithm {
    word: "gemm.packed-narrow",
    version: 2,
    description: "GEMM, narrow weights prepacked",
    headers: |_| &["gemm.h"],
    code: kernels::Code::Product(Code {
        applies: |site| site.is_of_halves() || site.has_widening_tiles(),
        cost: |site| {
            // Each tile of rows widens them again.
            let tiles = (typical(site.sizes[0]) / TILE_ROWS as f64).ceil();
            site.work().plus(&site.read(site.stored_part())).and(WorkKind::Upcast, site.weights() * tiles)
        },
        weights: |site| site.panels(true).map(Into::into),
        scratch: |site| site.packed_scratch(),
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
