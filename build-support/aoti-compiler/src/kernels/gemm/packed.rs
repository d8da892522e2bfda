//! Register tiles over a right operand that was packed when the model was compiled.

use super::{Code, PART, Product, Site, TILE_ROWS, Tiling, bytes, left_block, most_rows_parameter};
use crate::kernels::scratch::{PAGE, aligned};
use crate::kernels::{self, Algorithm, Call, Scratch};
use crate::symbolic::Expr;
use crate::target::Target;

pub(crate) static PACKED: Algorithm = Algorithm {
    word: "gemm.packed",
    version: 4,
    description: "GEMM, weights prepacked",
    headers: |_| &["gemm.h"],
    code: kernels::Code::Product(Code {
        applies: |site| site.is_packable(),
        cost: |site| site.work().plus(&site.read(1.0)),
        weights: |site| site.panels(false).map(Into::into),
        scratch: |site| site.packed_scratch(),
        tiling: Tiling::Registers,
        widens: false,
        library: None,
        processors: Some(|matmul, block| {
            let call = Call::new("gemm_packed", PART).with(most_rows_parameter(matmul, block));
            Product { is_of_words: false, is_packed: true, call }
        }),
        gpus: None,
    }),
};

/// Whether rows of the left operand are read in place without loss: rows that are a page apart share a cache set.
pub(super) fn reads_rows_in_place(site: &Site) -> bool {
    let (matmul, sum) = (site.matmul, site.sum_type());
    let page = PAGE / bytes(sum);
    let spread = matmul.a.row_stride.as_int().is_some_and(|stride| stride % page != 0);
    matmul.dtype == sum && matmul.a.column_stride.is(1) && spread
}

/// A copied block of rows of the left operand, of numbers of `size` bytes.
pub(super) fn scratch(m: &Expr, k: &Expr, size: i64, target: &Target) -> Scratch {
    Scratch::of_worker(aligned(&left_block(m, k, size, TILE_ROWS), target))
}
