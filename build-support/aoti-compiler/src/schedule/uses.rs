//! Which steps use which buffers, and which elements of them a kernel touches.

use crate::loops::ranges_over;
use crate::loops::{
    Axis, BufferId, Kernel, KernelClass, KernelKind, MatrixOperand, Nest, Program, Stage, Step,
};
use crate::symbolic::{Expr, Interval, Ranges};
use std::collections::{BTreeMap, BTreeSet};

/// The steps of the outermost list that use each buffer.
pub(super) struct Uses {
    positions: BTreeMap<BufferId, BTreeSet<usize>>,
    /// Buffers that other steps than kernels use, or steps inside of branches and loops.
    elsewhere: BTreeSet<BufferId>,
}

impl Uses {
    pub(super) fn of(program: &Program) -> Uses {
        let mut uses = Uses { positions: BTreeMap::new(), elsewhere: BTreeSet::new() };
        for (position, step) in program.steps.iter().enumerate() {
            if let Step::Kernel(id) = step {
                let kernel = &program.kernels[*id];
                for buffer in kernel.reads().into_iter().chain(kernel.writes()) {
                    uses.positions.entry(buffer).or_default().insert(position);
                }
            } else {
                uses.look_inside(program, step);
            }
        }
        uses
    }

    fn look_inside(&mut self, program: &Program, step: &Step) {
        Step::walk(std::slice::from_ref(step), &mut |step| match step {
            Step::Kernel(id) => {
                let kernel = &program.kernels[*id];
                self.elsewhere.extend(kernel.reads().into_iter().chain(kernel.writes()));
            }
            Step::Read { buffer, .. } | Step::Assert(buffer, _) => {
                self.elsewhere.insert(*buffer);
            }
            Step::Require(_) => {}
            Step::If { predicate, .. } | Step::Loop { predicate, .. } => {
                self.elsewhere.insert(*predicate);
            }
        });
    }

    /// The kernels of the outermost list that use a buffer.
    pub(super) fn positions(&self, buffer: BufferId) -> &BTreeSet<usize> {
        const NONE: &BTreeSet<usize> = &BTreeSet::new();
        self.positions.get(&buffer).unwrap_or(NONE)
    }

    pub(super) fn is_elsewhere(&self, buffer: BufferId) -> bool {
        self.elsewhere.contains(&buffer)
    }

    /// All uses of a buffer are uses of another now.
    pub(super) fn join(&mut self, from: BufferId, to: BufferId) {
        let moved = self.positions.remove(&from).unwrap_or_default();
        self.positions.entry(to).or_default().extend(moved);
    }
}

/// The stages of a kernel with the loops around each.
pub(super) fn placed_stages(kernel: &Kernel) -> Vec<(Vec<Axis>, &Stage)> {
    match kernel.kind.class() {
        KernelClass::Loops(nest) => placed_in(nest).collect(),
        KernelClass::Contraction { axes, epilogue, rows } => {
            std::iter::once((axes.to_vec(), epilogue)).chain(rows.into_iter().flat_map(placed_in)).collect()
        }
        KernelClass::Attention(own) => {
            vec![(own.score_axes(), &own.stages[0]), (own.axes.clone(), &own.stages[1])]
        }
        KernelClass::Whole => vec![],
    }
}

fn placed_in(nest: &Nest) -> impl Iterator<Item = (Vec<Axis>, &Stage)> {
    nest.stages.iter().map(|stage| (nest.axes.iter().chain(&stage.axes).cloned().collect(), stage))
}

/// Buffers that a kernel knows by their beginnings only.
pub(crate) fn takes_whole(kernel: &Kernel) -> Vec<BufferId> {
    match &kernel.kind {
        KernelKind::Nest(_) | KernelKind::MatMul(_) | KernelKind::Attention(_) => vec![],
        KernelKind::Convolution(conv) => vec![conv.input, conv.weight],
        KernelKind::AxisOp(rows) => rows.inputs.iter().chain(&rows.outputs).copied().collect(),
        KernelKind::Extern(own) => own.inputs.iter().chain(&own.outputs).map(|(buffer, _)| *buffer).collect(),
    }
}

/// A strided matrix and what is read of it.
pub(crate) struct Placed<'k> {
    pub(crate) operand: &'k MatrixOperand,
    /// The loops that its offset depends on.
    axes: &'k [Axis],
    rows: &'k Expr,
    columns: &'k Expr,
}

impl Placed<'_> {
    /// The offsets of its elements, where no stride is negative.
    pub(super) fn interval(&self, ranges: &dyn Ranges) -> Option<Interval> {
        let MatrixOperand { offset, row_stride, column_stride, .. } = self.operand;
        let ascending = row_stride.interval(ranges).min >= 0 && column_stride.interval(ranges).min >= 0;
        let bounds =
            ranges_over(ranges, &[self.axes], &[offset, row_stride, column_stride, self.rows, self.columns]);
        let reach = &(&(self.rows - 1) * row_stride) + &(&(self.columns - 1) * column_stride);
        ascending.then(|| offset.interval(&bounds).hull((offset + &reach).interval(&bounds)))
    }
}

/// The strided matrices that a kernel reads.
pub(crate) fn operands(kernel: &Kernel) -> Vec<Placed<'_>> {
    let placed = |operand, axes, rows, columns| Placed { operand, axes, rows, columns };
    match &kernel.kind {
        KernelKind::MatMul(own) => {
            let [.., row, column] = own.axes.as_slice() else { return vec![] };
            vec![
                placed(&own.a, &own.axes, &row.extent, &own.depth),
                placed(&own.b, &own.axes, &own.depth, &column.extent),
            ]
        }
        KernelKind::Attention(own) => {
            let [.., query, column] = own.axes.as_slice() else { return vec![] };
            let keys = &own.key().extent;
            vec![
                placed(&own.queries, &own.axes, &query.extent, &own.depth),
                placed(&own.keys, &own.axes, &own.depth, keys),
                placed(&own.values, &own.axes, keys, &column.extent),
            ]
        }
        KernelKind::Nest(_) | KernelKind::Convolution(_) | KernelKind::AxisOp(_) | KernelKind::Extern(_) => {
            vec![]
        }
    }
}
