//! As [`super::packed`], of numbers of one byte: unsigned ones times signed weights, of which four that are neighbours along the
//! depth make a word.

use super::{Code, LINE, PART, Product, Site, TILE_ROWS, Tiling, block_rows, most_rows_parameter, size};
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

/// A block of rows of the left operand, whose words are split (`gemm_packed_scratch_bytes` of `gemm.h`).
fn split_rows(site: &Site) -> Scratch {
    let [m, _, k] = site.sizes;
    Scratch::of_worker(aligned(&split_block(m, &in_words(k)), site.target))
}

/// Its bytes, of rows of so many words.
fn split_block(m: &Expr, words: &Expr) -> Expr {
    let stride = &round_up(words, SPLIT_WORDS) * 2 + LINE / WORD;
    &(&block_rows([m, words], WORD, TILE_ROWS) * &stride) * WORD
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_have_room_for_the_rows_that_headers_split_at_a_time() {
        // 393,216 bytes of rows of which a chain of 1,024 words is read at a time: 96 rows, however long these are.
        for (m, words, rows) in
            [(200, 512, 192), (200, 1024, 96), (200, 2048, 96), (200, 100_000, 96), (5, 2048, 5)]
        {
            let stride = (words + 63) / 64 * 64 * 2 + 16;
            assert!(split_block(&Expr::int(m), &Expr::int(words)).is(rows * stride * 4), "{words} words");
        }
    }
}
