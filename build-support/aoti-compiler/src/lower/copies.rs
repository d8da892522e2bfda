//! Values in buffers: where one is computed into the buffer that is its home, or copied into another.

use super::Scope;
use super::expand::Expander;
use super::nodes::{axes_over, axis_exprs, expr_indices};
use crate::graph::{Combine, Scalar, ValueId};
use crate::loops::{Access, BufferId, Channels, Effect, KernelKind, Nest, Stage, Term};
use crate::symbolic::Expr;

/// The coordinates of a value in loops over its axes as they lie in memory.
fn coordinates(channels: Channels, rank: usize) -> Vec<Expr> {
    let mut coords = axis_exprs(0..rank);
    for (position, axis) in channels.in_memory(&(0..rank).collect::<Vec<_>>()).into_iter().enumerate() {
        coords[axis] = Expr::axis(position);
    }
    coords
}

impl Scope<'_> {
    /// Gives a value a buffer now, if it has none.
    pub(super) fn realize_now(&mut self, value: ValueId) -> BufferId {
        if let Some(buffer) = self.home(value) {
            return buffer;
        }
        let buffer = self.new_home(value);
        self.store(value, (buffer, self.layouts.of(value)), None, Some(value));
        buffer
    }

    /// Computes a value that has no buffer into a row-major buffer that is not its home.
    pub(super) fn copy(&mut self, value: ValueId, target: BufferId) {
        self.store(value, (target, Channels::First), None, None);
    }

    /// Computes a value into a buffer with channels in a certain place, or into the part of it that begins at a position
    /// of an axis. The loops run as the buffer lies in memory.
    pub(super) fn store(
        &mut self,
        value: ValueId,
        (target, channels): (BufferId, Channels),
        start: Option<(usize, &Expr)>,
        root: Option<ValueId>,
    ) {
        let axes = axes_over(&channels.in_memory(&self.graph.ty(value).shape), 0);
        let own = coordinates(channels, axes.len());
        let ranges = self.table(&[&axes]);
        let mut expander = Expander::new(self, ranges, root);
        let term = expander.value(value, &own);
        let (mut stage, ranges) = (expander.stage, expander.ranges);
        let mut coords = own;
        if let Some((axis, start)) = start {
            coords[axis] = &coords[axis] + start;
        }
        let indices = expr_indices(&channels.in_memory(&coords));
        let access = Access::new(target, &self.program.buffers[target], indices, &ranges);
        stage.effects.push(Effect::Store { access, value: term, combine: Combine::Set });
        let nest = Nest { axes, stages: vec![stage], accumulators: vec![], serial: false };
        let node = self.producer(value);
        self.run_kernel(node, "map", KernelKind::Nest(nest));
    }

    /// A value in a buffer of its own with channels last, one for all that read it so.
    pub(super) fn turned_copy(&mut self, value: ValueId) -> BufferId {
        if let Some(buffer) = self.turned_copies[value] {
            return buffer;
        }
        let ty = self.graph.ty(value);
        let buffer = self.temporary(ty.dtype, Channels::Last.in_memory(&ty.shape), "");
        self.store(value, (buffer, Channels::Last), None, None);
        self.turned_copies[value] = Some(buffer);
        buffer
    }

    /// Copies one buffer to another of the same shape.
    pub(super) fn copy_buffer(&mut self, from: BufferId, to: BufferId) {
        let (shape, dtype) = {
            let buffer = &self.program.buffers[from];
            (buffer.shape.clone(), buffer.dtype)
        };
        let axes = axes_over(&shape, 0);
        let ranges = self.table(&[&axes]);
        let indices = expr_indices(&axis_exprs(0..axes.len()));
        let mut stage = Stage::default();
        let access = Access::with_shape(from, &shape, indices.clone(), &ranges);
        let load = Term::Load { access, guards: vec![], fill: Scalar::Int(0).cast(dtype) };
        let term = stage.term(load, dtype);
        let access = Access::with_shape(to, &shape, indices, &ranges);
        stage.effects.push(Effect::Store { access, value: term, combine: Combine::Set });
        let nest = Nest { axes, stages: vec![stage], accumulators: vec![], serial: false };
        let name = format!("keep_{}", self.program.buffers[to].name);
        self.run_kernel(None, &name, KernelKind::Nest(nest));
    }
}

#[cfg(test)]
mod tests {
    use crate::graph::text::parse;
    use crate::loops::KernelKind;
    use crate::lower::lower;
    use crate::target::{GpuTarget, Target};
    use crate::tuning::Decisions;

    #[test]
    fn convolutions_of_one_value_read_one_copy_of_it() {
        let graph = parse(
            "graph \"g\" {
              const c0 \"w\": f32[64, 32, 3, 3] = splat 0.5
              const c1 \"v\": f32[64, 32, 5, 5] = splat 0.5
              input %x \"x\": f32[4, 32, 64, 64]
              %w: f32[64, 32, 3, 3] = constant c0
              %v: f32[64, 32, 5, 5] = constant c1
              %a: f32[4, 64, 64, 64] = conv %x, %w stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1
              %b: f32[4, 64, 64, 64] = conv %x, %v stride [1, 1] padding [2:2, 2:2] dilation [1, 1] groups 1
              output %a \"a\" output %b \"b\"
            }",
        )
        .unwrap_or_else(|error| panic!("{error}"));
        let gpu = Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"));
        let program = lower(&graph, &gpu, &mut Decisions::default());
        let read = program.kernels.values().filter_map(|kernel| {
            let KernelKind::Convolution(conv) = &kernel.kind else { return None };
            Some(conv.input)
        });
        let read: Vec<_> = read.collect();
        assert_eq!(read.len(), 2);
        assert_eq!(read[0], read[1]);
        assert_ne!(Some(read[0]), program.inputs.first().copied(), "it is a copy");
    }
}
