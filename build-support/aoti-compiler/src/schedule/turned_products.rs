//! Products of few columns as products of few rows: the left operand is then the one that is read once, by code whose time is that of
//! reading it. The result stays where it is, as the epilogue stores each sum by its row and its column.

use crate::kernels::gemm::tiles::streams_right;
use crate::kernels::typical;
use crate::loops::{KernelKind, MatMul, Program};
use crate::target::{GpuTarget, Target};

/// Turns products of few columns, where the target has code for few rows.
pub(super) fn turn(program: &mut Program, target: &Target) {
    let turned = |matmul: &MatMul| {
        let turned = transposed(matmul);
        let pays = match target {
            Target::Gpu(gpu) => streams_turned(program, matmul, &turned, gpu),
            Target::Cpu(_) => fills_vectors(matmul),
        };
        (pays && matmul.row_epilogue.is_none()).then_some(turned)
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

/// Whether the turned product alone is one that streams its right operand.
fn streams_turned(program: &Program, matmul: &MatMul, turned: &MatMul, gpu: &GpuTarget) -> bool {
    let has_code = !streams_right(program, matmul, gpu) && streams_right(program, turned, gpu);
    // Without elements side by side along the depth, threads would read what lies apart.
    has_code && turned.by_depth() == [true, true]
}

/// Columns of a product that leave most lanes of a vector empty.
const FEW_COLUMNS: i64 = 8;

/// Whether columns are fewer than lanes and the rows, which become columns, lie side by side in the left operand.
fn fills_vectors(matmul: &MatMul) -> bool {
    let [.., rows, columns] = matmul.axes.as_slice() else { return false };
    let is_few = columns.extent.as_int().is_some_and(|columns| columns <= FEW_COLUMNS);
    let is_by_rows = matmul.a.row_stride.is(1) && !matmul.a.column_stride.is(1);
    is_few && is_by_rows && typical(&rows.extent) >= 2.0 * FEW_COLUMNS as f64
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
