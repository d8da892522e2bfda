//! As [`super::packed`], of numbers of one byte: unsigned ones times signed weights, of which four that are neighbours along the
//! depth make a word.

use super::{BLOCK_BYTES, Code, LINE, PART, Product, Site, TILE_ROWS, Tiling, most_rows_parameter, size};
use crate::constants::SPLIT_WORDS;
use crate::cost::{Cost, WorkKind};
use crate::dtype::DType;
use crate::kernels::scratch::{aligned, round_up};
use crate::kernels::{self, Algorithm, Call, Packing, Scratch};
use crate::loops::Storage;
use crate::symbolic::Expr;
use crate::target::Target;
use crate::target::templates::{WORD, are_words, in_words};

pub(crate) static PACKED_WORDS: Algorithm = Algorithm {
    word: "gemm.packed-words",
    version: 3,
    description: "GEMM of bytes, weights prepacked in words",
    headers: |_| &["gemm.h"],
    code: kernels::Code::Product(Code {
        applies: is_of_words,
        cost: |site| Cost::of(WorkKind::VectorFma, site.multiply_adds() / WORD as f64),
        weights: |site| product_words(site).map(Into::into),
        scratch: split_rows,
        tiling: Tiling::Registers,
        widens: true,
        library: None,
        processors: Some(|matmul, block| {
            let call = Call::new("gemm_packed", PART).with(most_rows_parameter(matmul, block));
            Product { is_of_words: true, is_packed: true, call }
        }),
        gpus: None,
    }),
};

/// A block of rows of the left operand, whose words are split: as many rows as a copied block of as many bytes has
/// (`gemm_packed_scratch_bytes` of `gemm.h`).
fn split_rows(site: &Site) -> Scratch {
    let [m, _, k] = site.sizes;
    let rows = Expr::int(BLOCK_BYTES).floor_div(&k.maximum(&Expr::int(1)));
    let stride = &round_up(&in_words(k), SPLIT_WORDS) * 2 + LINE / 4;
    let block = &(&m.minimum(&rows.maximum(&Expr::int(TILE_ROWS))) * &stride) * 4;
    Scratch::of_worker(aligned(&block, site.target))
}

/// Whether a product is one of words.
pub(super) fn is_of_words(site: &Site) -> bool {
    matches!(site.target, Target::Cpu(_)) && product_words(site).is_some()
}

/// The panels of a product's right operand, if it is one of bytes: lowering leaves those as they are on the left where the
/// numbers on the right are such that signed bytes hold them.
fn product_words(site: &Site) -> Option<Packing> {
    let (matmul, program) = (site.matmul, site.program);
    let (a, b) = (&matmul.a, &matmul.b);
    let is_constant = matches!(program.buffers[b.buffer].storage, Storage::Constant(_));
    let read_elsewhere = matmul.epilogue.reads().any(|buffer| buffer == b.buffer);
    if matmul.dtype != DType::I32
        || program.buffers[a.buffer].dtype != DType::U8
        || !is_constant
        || read_elsewhere
        || !a.column_stride.is(1)
        || ![&a.offset, &a.row_stride].into_iter().all(are_words)
    {
        return None;
    }
    let (offset, row_stride, col_stride) = (size(&b.offset)?, size(&b.row_stride)?, size(&b.column_stride)?);
    let (k, n) = (size(&matmul.depth)?, size(site.sizes[1])?);
    are_words(&matmul.depth).then_some(Packing::ProductWords { offset, row_stride, col_stride, k, n })
}
