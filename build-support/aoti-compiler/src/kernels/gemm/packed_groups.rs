//! Register tiles over weights that are stored as whole numbers of a few bits, scaled in groups along the depth.

use super::{Code, LINE, Operand, Product, Site, TILE_ROWS, Tiling, left_block, most_rows_parameter};
use crate::constants;
use crate::cost::{Cost, WorkKind};
use crate::dtype::DType;
use crate::graph::Groups;
use crate::kernels::scratch::{aligned, round_up};
use crate::kernels::weight_form::PANEL_BYTES;
use crate::kernels::{self, Algorithm, Call, Form, Packing, Scratch, kind_of_weights, typical};
use crate::loops::{MatMul, Program, Storage};
use crate::symbolic::Expr;

pub(crate) static PACKED_GROUPS: Algorithm = Algorithm {
    word: "gemm.packed-groups",
    version: 2,
    description: "GEMM, quantised weights prepacked",
    headers: |_| &["gemm.h", "gemm_groups.h"],
    code: kernels::Code::Product(Code {
        applies: |site| grouped(site).is_some(),
        cost: |site| {
            // It is taken for the memory that weights need, where there are such.
            let tiles = (typical(site.sizes[0]) / TILE_ROWS as f64).ceil();
            let read = Cost::of(kind_of_weights(site.program, site.target), site.weights() * 0.25);
            site.work().plus(&read).and(WorkKind::Upcast, site.weights() * tiles)
        },
        weights: grouped,
        scratch,
        tiling: Tiling::Registers,
        widens: false,
        library: None,
        processors: Some(|matmul, block| {
            let sizes = ["m", "n", "k", "a", "b"].map(Operand::Name);
            let operands = [Operand::Rows, Operand::Panels].into_iter().chain(sizes);
            let operands = operands.chain([Operand::Worker, Operand::Epilogue]);
            let call = Call::new("gemm_groups", operands).with(most_rows_parameter(matmul, block));
            Product { is_of_words: false, is_packed: true, call }
        }),
        gpus: None,
    }),
};

/// Rows of the longest group: sums of bytes times digits fit 32 bits.
const MOST_ROWS: usize = 1 << 15;
/// Floats of the widest vector.
const MOST_LANES: i64 = 16;

/// The form of the right operand, if it is all of a constant that was dequantised in groups along the depth.
pub(super) fn grouped(site: &Site) -> Option<Form> {
    // Numbers of half types are not rounded to those again; of more rows, products of halves have code of their own.
    let has_rows = typical(site.sizes[0]) <= constants::GROUPED_ROWS as f64;
    let is_wanted = site.matmul.dtype == DType::F32 || (site.matmul.dtype.is_half() && has_rows);
    if site.sum != Some(DType::F32) || !is_wanted {
        return None;
    }
    let (groups, [k, n]) = of_columns(site.program, site.matmul).filter(|(groups, _)| groups.is_scaled())?;
    // Groups that are whole columns, or parts of those.
    let rows = if groups.run.is_multiple_of(k) { k } else { groups.run };
    let bits = groups.bits(rows)?;
    (rows <= MOST_ROWS && k.is_multiple_of(rows))
        .then_some(Packing::ProductGroups { k, n, rows, bits }.into())
}

/// A panel of floats, a copied block of rows of the left operand, and the digits of few rows (`digit_row_words`).
fn scratch(site: &Site) -> Scratch {
    let Some(Form::Packed(Packing::ProductGroups { k, rows, bits, .. })) = grouped(site) else {
        return Scratch::default();
    };
    let blocks = i64::try_from(k / rows * rows.div_ceil(32 / bits)).expect("rows are no larger than weights");
    let groups = i64::try_from(k / rows).expect("there are no more than rows");
    let words = blocks * (32 / bits as i64) + groups * constants::DIGIT_HEAD + MOST_LANES;
    let [m, _, k] = site.sizes;
    let copy = round_up(&left_block(m, k, site.element_bytes(), TILE_ROWS), LINE);
    let digits = &m.minimum(&Expr::int(constants::GROUPED_ROWS)) * (words * 4);
    Scratch::of_worker(aligned(&(&(&(k * PANEL_BYTES) + &copy) + &digits), site.target))
}

/// What the right operand was made of, its depth and its columns, if it is all of a constant whose columns lie one after the other, of
/// one type with the left operand.
pub(super) fn of_columns<'a>(program: &'a Program, matmul: &MatMul) -> Option<(&'a Groups, [usize; 2])> {
    let Packing::Product { offset: 0, row_stride: 1, col_stride, k, n, .. } =
        super::panels(program, matmul, false)?
    else {
        return None;
    };
    let Storage::Constant(id) = program.buffers[matmul.b.buffer].storage else { return None };
    let groups = program.constants[id].groups.as_deref()?;
    let fits = [&matmul.a, &matmul.b].iter().all(|own| program.buffers[own.buffer].dtype == matmul.dtype)
        && col_stride == k
        && groups.integers.len() == k.checked_mul(n)?;
    fits.then_some((groups, [k, n]))
}
