//! Products of few rows whose right operand lies side by side along its columns: it is read once, where it lies, and the sums stay
//! near the core.

use super::{Code, PART, Product, Tiling, as_it_is};
use crate::constants;
use crate::cost::{Cost, WorkKind};
use crate::kernels::{self, Algorithm, Call, Scratch};
use crate::symbolic::Expr;

pub(crate) static STREAM: Algorithm = Algorithm {
    word: "gemm.stream",
    version: 1,
    description: "sums of few rows in memory, nothing packed",
    headers: |_| &["gemm_stream.h"],
    code: kernels::Code::Product(Code {
        applies: |site| {
            let b = &site.matmul.b;
            site.has_tiles() && rows(site.sizes[0]).is_some() && b.column_stride.is(1)
        },
        cost: |site| {
            let work = Cost::of(WorkKind::VectorFma, site.multiply_adds() * site.floats() * STORES);
            work.plus(&site.read(1.0))
        },
        weights: as_it_is,
        scratch: |site| {
            let rows = rows(site.sizes[0]).unwrap_or(MOST_ROWS);
            Scratch::of_worker(Expr::int(2 * rows * constants::STREAM_COLUMNS * site.element_bytes()))
        },
        tiling: Tiling::Registers,
        widens: false,
        library: None,
        processors: Some(|matmul, _| {
            let rows = rows(&matmul.axes[matmul.axes.len() - 2].extent).unwrap_or(MOST_ROWS);
            let call = Call::new("gemm_stream", PART).with([rows.to_string().into()]);
            Product { is_of_words: false, is_packed: false, call }
        }),
        gpus: None,
    }),
};

/// Rows for which reading and writing sums costs less than packing.
const MOST_ROWS: i64 = 4;
/// How many times as long a multiply-add takes as one whose sum is in a register.
const STORES: f64 = 1.5;

/// The number of rows, where they are few.
fn rows(rows: &Expr) -> Option<i64> {
    rows.as_int().filter(|rows| (1..=MOST_ROWS).contains(rows))
}
