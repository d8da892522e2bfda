//! What templates for a few rows on a GPU take as given of operands in memory.

use crate::loops::{MatMul, MatrixOperand, Program};
use crate::symbolic::Expr;

/// Bytes of the widest load of one thread.
const LOAD: i64 = 16;

/// Whether both operands are contiguous along the depth, and their rows and columns begin and end where a thread's widest loads do:
/// what `gpu/skinny.h` takes as given.
pub(super) fn is_of_whole_loads(program: &Program, matmul: &MatMul) -> bool {
    let b = &matmul.b;
    has_whole_rows(program, matmul) && is_whole(program, matmul, b, [&b.row_stride, &b.column_stride])
}

/// The same of the left operand alone: what `gpu/groups.h` takes as given.
pub(super) fn has_whole_rows(program: &Program, matmul: &MatMul) -> bool {
    let a = &matmul.a;
    is_whole(program, matmul, a, [&a.column_stride, &a.row_stride])
}

fn is_whole(
    program: &Program,
    matmul: &MatMul,
    operand: &MatrixOperand,
    [along, across]: [&Expr; 2],
) -> bool {
    let load = Expr::int(LOAD / program.buffers[operand.buffer].dtype.size() as i64);
    along.is(1)
        && [across, &operand.offset, &matmul.depth].iter().all(|elements| elements.modulo(&load).is(0))
}
