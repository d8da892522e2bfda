//! Operands of contractions that cannot be shown to stay within their buffers are copied first: what a copy reads can be checked
//! at each position.

use super::goals::{self, Goal};
use crate::graph::{Combine, Scalar};
use crate::loops::{
    Access, Axis, Buffer, BufferId, Effect, Index, Kernel, KernelId, KernelKind, MatrixOperand, Nest,
    Program, Stage, Storage, Term,
};
use crate::symbolic::{Expr, RangeTable, Symbol};

/// Makes the operand of a contraction that a goal is about a copy; gives the kernel that copies. `None` where the goal is about
/// something else.
pub(super) fn copied(
    program: &mut Program,
    id: KernelId,
    goal: &Goal,
    ranges: &RangeTable,
) -> Option<KernelId> {
    let operands = goals::operands(&program.kernels[id]);
    let is_meant = |(operand, axes): &(&MatrixOperand, Vec<Axis>)| {
        operand.buffer == goal.buffer
            && *axes == goal.axes
            && goals::of_operand(program, operand, axes).contains(&goal.expr)
    };
    let number = operands.iter().position(is_meant)?;
    let (operand, axes) = operands.into_iter().nth(number)?;
    let from = goals::offset_of(operand, &axes)?;
    let matrix = axes.len() - 2;
    let is_used = |(position, axis): &(usize, &Axis)| *position >= matrix || from.mentions(axis.symbol);
    let used: Vec<Axis> = axes.iter().enumerate().filter(is_used).map(|(_, axis)| axis.clone()).collect();
    let (buffer, kernel) = copy(program, id, goal.buffer, &used, &from, ranges);
    let (strides, used) = (strides(&used), &used);
    let batch = used.iter().zip(&strides).take(used.len() - 2);
    let offset = batch.fold(Expr::int(0), |sum, (axis, stride)| &sum + &(&Expr::sym(axis.symbol) * stride));
    let [.., row_stride, column_stride] = strides.as_slice() else { return None };
    let (row_stride, column_stride) = (row_stride.clone(), column_stride.clone());
    let own = program.kernels[id].kind.matrices_mut().into_iter().nth(number)?;
    *own = MatrixOperand { buffer, offset, row_stride, column_stride };
    Some(kernel)
}

/// Elements between the positions of each axis of a dense buffer.
fn strides(axes: &[Axis]) -> Vec<Expr> {
    let after = |position: usize| Expr::product(axes[position + 1..].iter().map(|axis| &axis.extent));
    (0..axes.len()).map(after).collect()
}

/// A dense buffer over axes, and a kernel that fills it with what is at an offset of another.
fn copy(
    program: &mut Program,
    reader: KernelId,
    source: BufferId,
    over: &[Axis],
    from: &Expr,
    ranges: &RangeTable,
) -> (BufferId, KernelId) {
    let numbered = (0u32..).zip(over);
    let axes: Vec<Axis> = numbered
        .map(|(number, axis)| Axis { symbol: Symbol::axis(number), extent: axis.extent.clone() })
        .collect();
    let mut ranges = ranges.clone();
    axes.iter().for_each(|axis| ranges.set_extent(axis.symbol, axis.extent.clone()));
    let renamed = |symbol: Symbol| {
        let position = over.iter().position(|axis| axis.symbol == symbol)?;
        Some(Expr::sym(axes[position].symbol))
    };
    let Buffer { dtype, name, .. } = program.buffers[source].clone();
    let shape = axes.iter().map(|axis| axis.extent.clone()).collect();
    let copy = Buffer { dtype, shape, storage: Storage::Temporary, name, is_complex: false };
    let offset = from.substitute(&renamed, &ranges);
    let mut stage = Stage::default();
    let access = Access { buffer: source, coords: vec![], offset, indirect: vec![] };
    let value = stage.term(Term::Load { access, guards: vec![], fill: Scalar::Int(0).cast(dtype) }, dtype);
    let coords = axes.iter().map(|axis| Index::Expr(Expr::sym(axis.symbol))).collect();
    let buffer = program.buffers.push(copy);
    let access = Access::new(buffer, &program.buffers[buffer], coords, &ranges);
    stage.effects.push(Effect::Store { access, value, combine: Combine::Set });
    let kind = KernelKind::Nest(Nest { axes, stages: vec![stage], ..Nest::default() });
    let origins = program.kernels[reader].origins.clone();
    (buffer, program.kernels.push(Kernel { name: "copy".to_owned(), origins, kind }))
}
