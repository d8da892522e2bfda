//! Register tiles over a right operand that is packed at each run.

use super::{
    BLOCK_BYTES, CHAIN, Code, LINE, PART, Product, Tiling, as_it_is, few_columns, left_block, most_rows,
};
use crate::constants;
use crate::cost::WorkKind;
use crate::kernels::mapping::Block;
use crate::kernels::scratch::{aligned, round_up};
use crate::kernels::weight_form::PANEL_BYTES;
use crate::kernels::{self, Algorithm, Call, Parameter, Scratch, typical};
use crate::loops::MatMul;
use crate::symbolic::Expr;
use crate::target::Target;

pub(crate) static GENERAL: Algorithm = Algorithm {
    word: "gemm.general",
    version: 5,
    description: "GEMM, operands packed in each run",
    headers: |_| &["gemm.h"],
    code: kernels::Code::Product(Code {
        applies: |site| site.has_tiles(),
        cost: |site| {
            let [m, n, k] = site.sizes;
            // Of constants every packing after the first is one that need not be.
            let blocks = (typical(m) / block_rows(typical(k), site.element_bytes())).ceil();
            let again = if site.is_packable() { site.packed() * (blocks - 1.0).max(0.0) } else { 0.0 };
            site.work().times(empty_columns(n)).plus(&site.packs()).and(WorkKind::PackElement, again)
        },
        weights: as_it_is,
        scratch: |site| scratch(site.sizes, site.element_bytes(), site.target),
        tiling: Tiling::Registers,
        widens: false,
        library: None,
        processors: Some(|matmul, block| {
            let call = Call::new("gemm_general", PART).with(most_rows_and_columns(matmul, block));
            Product { is_of_words: false, is_packed: false, call }
        }),
        gpus: None,
    }),
};

/// Panels that are packed together (`kGroup` of `gemm.h`).
const PANEL_GROUP: i64 = constants::GROUP;
/// Rows of the left operand at least where the right operand is packed for each block anew (`kGeneralRows`).
const GENERAL_ROWS: i64 = constants::GENERAL_ROWS;

/// The largest register tile and the columns of a product of few, as the template's arguments.
fn most_rows_and_columns(matmul: &MatMul, block: Block) -> Vec<Parameter> {
    let most = most_rows(matmul, block).map(|most| most.to_string());
    let columns = matmul.axes.last().and_then(|column| few_columns(&column.extent));
    match (most, columns) {
        (most, None) => most.into_iter().map(Into::into).collect(),
        (most, Some(columns)) => {
            vec![most.unwrap_or_else(|| "kGemmMost".to_owned()).into(), columns.to_string().into()]
        }
    }
}

/// How many times as long a product of few columns takes because it computes those of whole vectors.
fn empty_columns(columns: &Expr) -> f64 {
    /// Floats of the widest vectors.
    const LANES: i64 = 16;
    few_columns(columns).map_or(1.0, |columns| {
        (columns.max(LANES).unsigned_abs().next_power_of_two() as f64) / columns as f64
    })
}

/// A copied block of rows of the left operand, and a group of packed panels of the right one.
pub(super) fn scratch([m, n, k]: [&Expr; 3], size: i64, target: &Target) -> Scratch {
    let columns = PANEL_BYTES / size;
    let panels = (n + (columns - 1)).floor_div(&Expr::int(columns)).minimum(&Expr::int(PANEL_GROUP));
    let bytes = &(&(&panels * k) * PANEL_BYTES) + &round_up(&left_block(m, k, size, GENERAL_ROWS), LINE);
    Scratch::of_worker(aligned(&bytes, target))
}

/// Rows of the left operand that share a packing of the right one.
fn block_rows(k: f64, size: i64) -> f64 {
    ((BLOCK_BYTES / size) as f64 / k.clamp(1.0, CHAIN as f64)).max(GENERAL_ROWS as f64)
}
