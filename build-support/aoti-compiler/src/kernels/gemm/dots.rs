//! Sums along vectors, for products of few rows or columns whose operands both lie side by side along the depth.

use super::{Code, PART, Product, Tiling, as_it_is};
use crate::cost::{Cost, WorkKind};
use crate::kernels::{self, Algorithm, Call, Scratch, typical};

pub(crate) static DOTS: Algorithm = Algorithm {
    word: "gemm.dots",
    version: 1,
    description: "sums along vectors, nothing packed",
    headers: |_| &["dots.h"],
    code: kernels::Code::Product(Code {
        applies: |site| {
            let matmul = site.matmul;
            site.has_tiles() && matmul.a.column_stride.is(1) && matmul.b.row_stride.is(1)
        },
        cost: |site| {
            let results = site.multiply_adds() / typical(site.sizes[2]).max(1.0);
            let sums = results * (SUM + PADDING) * site.floats();
            let work = Cost::of(WorkKind::VectorFma, site.multiply_adds() * site.floats() * LOADS + sums);
            work.plus(&site.read(1.0))
        },
        weights: as_it_is,
        scratch: |_| Scratch::default(),
        tiling: Tiling::Registers,
        widens: false,
        library: None,
        processors: Some(|_, _| {
            let call = Call::new("gemm_dots", PART);
            Product { is_of_words: false, is_packed: false, call }
        }),
        gpus: None,
    }),
};

/// How many times as long as register tiles of broadcast elements a multiply-add takes whose operands are both loaded.
const LOADS: f64 = 1.4;
/// Multiply-adds that take as long as adding up the lanes of a sum, and the lanes of its last vector that are empty.
const SUM: f64 = 96.0;
const PADDING: f64 = 8.0;
