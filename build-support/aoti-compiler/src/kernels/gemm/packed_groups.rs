//! Register tiles over weights that are stored as whole numbers of a few bits, scaled in groups along the depth.

use super::{Code, Operand, Product, Site, TILE_ROWS, Tiling, general, most_rows_parameter};
use crate::cost::{Cost, WorkKind};
use crate::dtype::DType;
use crate::graph::Groups;
use crate::kernels::{self, Algorithm, Call, Form, Packing, kind_of_weights, typical};
use crate::loops::{MatMul, Program, Storage};

pub(crate) static PACKED_GROUPS: Algorithm = Algorithm {
    word: "gemm.packed-groups",
    version: 1,
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
        scratch: |site| general::scratch(site.sizes, site.element_bytes(), site.target),
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

/// The form of the right operand, if it is all of a constant that was dequantised in groups along the depth.
pub(super) fn grouped(site: &Site) -> Option<Form> {
    if site.sum != Some(DType::F32) || site.matmul.dtype != DType::F32 {
        return None;
    }
    let (groups, [k, n]) = of_columns(site.program, site.matmul).filter(|(groups, _)| groups.is_scaled())?;
    // Groups that are whole columns, or parts of those.
    let rows = if groups.run.is_multiple_of(k) { k } else { groups.run };
    let bits = groups.bits(rows)?;
    k.is_multiple_of(rows).then_some(Packing::ProductGroups { k, n, rows, bits }.into())
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
