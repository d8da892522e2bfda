//! What products on the matrix units of processors have in common (`gemm_units.h`).

use super::{Operand, Site, TILE_ROWS};
use crate::constants;
use crate::cost::{Cost, WorkKind};
use crate::dtype::DType;
use crate::kernels::scratch::{PANEL, aligned, round_up};
use crate::kernels::{Scratch, typical};
use crate::symbolic::Expr;
use crate::target::Target;

/// Rows and depth of two tiles of matrix units (`kGemmUnitRows` and `kUnitDepth` of `gemm_units.h`).
const UNIT_ROWS: i64 = constants::GEMM_UNIT_ROWS;
const UNIT_DEPTH: i64 = constants::UNIT_DEPTH;
/// Rows from which on matrix units are used (`kUnitLeastRows` of `gemm_units.h`).
const UNIT_LEAST_ROWS: i64 = constants::UNIT_LEAST_ROWS;
/// Numbers of a block of rows whose planes are made at a time, and rows of it at least and at most (`kUnitBlock` and
/// `kUnitBlockRows`).
const UNIT_BLOCK: i64 = constants::UNIT_BLOCK;
const UNIT_BLOCK_ROWS: [i64; 2] = constants::UNIT_BLOCK_ROWS;
/// Bytes of the planes of a number.
const PLANE_BYTES: i64 = 6;
/// Multiply-adds that matrix units must save, as they need code of their own: a small network's library stays small.
const UNITS_CODE: f64 = 500_000.0;
/// Multiply-adds that take as long as it takes to load an element of a panel, once for each tile of rows.
const LOADED: f64 = 1.5;

/// What the functions are given.
pub(super) const PLANNED: [Operand; 9] = [
    Operand::Name("plan"),
    Operand::Rows,
    Operand::Panels,
    Operand::Name("n"),
    Operand::Name("k"),
    Operand::Name("a"),
    Operand::Name("b"),
    Operand::Worker,
    Operand::Epilogue,
];

/// Whether some machines have matrix units, and rows can be enough for them.
pub(super) fn may_help(site: &Site) -> bool {
    let Target::Cpu(cpu) = site.target else { return false };
    let are_few = site.sizes[0].as_int().is_some_and(|m| m < UNIT_LEAST_ROWS);
    site.has_tiles() && site.sum == Some(DType::F32) && cpu.may_have_units() && !are_few
}

/// What a product costs on them.
pub(super) fn cost(site: &Site) -> Cost {
    // Planes of a number, and products of planes: those of `matrix_units.h`.
    let (planes, products) = if site.matmul.dtype == DType::Bf16 {
        (1.0, 1.0)
    } else if site.matmul.dtype == DType::F16 {
        (2.0, 4.0)
    } else {
        (3.0, 6.0)
    };
    let [m, n, k] = site.sizes.map(typical);
    let (batches, blocks) = (site.batches(), (m / block_rows(k)).ceil());
    Cost::of(WorkKind::MatrixUnitFma, batches * m * n * k * products)
        .and(WorkKind::SplitBf16, batches * k * (m + n * blocks) * planes)
        .and(WorkKind::VectorFma, UNITS_CODE)
        .and(WorkKind::MatrixUnitFallback, batches * m * n * k * (1.0 + LOADED / TILE_ROWS as f64))
}

/// Rows whose planes are made at a time.
fn block_rows(k: f64) -> f64 {
    (UNIT_BLOCK as f64 / k.max(1.0)).clamp(UNIT_BLOCK_ROWS[0] as f64, UNIT_BLOCK_ROWS[1] as f64)
}

/// Bytes of planes of rows and of a panel, of sums and those of a chain, and of rows that are copied: `unit_scratch`.
fn planes(m: &Expr, k: &Expr) -> Expr {
    let most = Expr::int(UNIT_BLOCK).floor_div(&k.maximum(&Expr::int(1)));
    let most = most.maximum(&Expr::int(UNIT_BLOCK_ROWS[0])).minimum(&Expr::int(UNIT_BLOCK_ROWS[1]));
    let rows = round_up(m, UNIT_ROWS).minimum(&most);
    let depth = round_up(k, UNIT_DEPTH);
    let of_rows = &rows * &(&(&depth * (PLANE_BYTES + 4)) + 2 * 4 * PANEL);
    &of_rows + &(&depth * (PANEL * PLANE_BYTES))
}

/// Bytes of a panel of the right operand.
pub(super) fn panel(site: &Site) -> Expr {
    &round_up(site.sizes[2], UNIT_DEPTH) * (PANEL * 4)
}

/// What a product takes that uses matrix units where there are some: this beside planes there, and the plain product's elsewhere.
pub(super) fn scratch(site: &Site, beside: Expr, plain: Scratch) -> Scratch {
    let [m, _, k] = site.sizes;
    let bytes = &planes(m, k) + &beside;
    Scratch { units: Some(aligned(&bytes.maximum(&plain.worker), site.target)), ..plain }
}
