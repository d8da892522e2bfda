//! Products of few columns as products of few rows: the left operand is then the one that is read once, by code whose time is that of
//! reading it. The result stays where it is, as the epilogue stores each sum by its row and its column.

use crate::kernels::gemm::tiles::streams_right;
use crate::loops::{KernelKind, MatMul, Program};
use crate::target::Target;

/// Turns products of few columns, where the target has code for few rows.
pub(super) fn turn(program: &mut Program, target: &Target) {
    let Target::Gpu(gpu) = target else { return };
    let turned = |matmul: &MatMul| {
        let turned = transposed(matmul);
        let has_code = !streams_right(program, matmul, gpu) && streams_right(program, &turned, gpu);
        // Without elements side by side along the depth, threads would read what lies apart.
        (has_code && turned.row_epilogue.is_none() && turned.by_depth() == [true, true]).then_some(turned)
    };
    let products = program.kernels.iter().filter_map(|(id, kernel)| match &kernel.kind {
        KernelKind::MatMul(matmul) => Some((id, turned(matmul)?)),
        KernelKind::Nest(_)
        | KernelKind::Convolution(_)
        | KernelKind::Attention(_)
        | KernelKind::AxisOp(_)
        | KernelKind::Extern(_) => None,
    });
    for (id, turned) in products.collect::<Vec<_>>() {
        program.kernels[id].kind = KernelKind::MatMul(turned);
    }
}

/// The product of the transposed operands in the other order, with the same sums.
fn transposed(matmul: &MatMul) -> MatMul {
    let mut turned = matmul.clone();
    let last = turned.axes.len() - 1;
    turned.axes.swap(last - 1, last);
    std::mem::swap(&mut turned.a, &mut turned.b);
    for operand in [&mut turned.a, &mut turned.b] {
        std::mem::swap(&mut operand.row_stride, &mut operand.column_stride);
    }
    turned
}
