//! How much a kernel does: arithmetic operations, and bytes that it reads and writes at least once.
//!
//! Counts what the kernel's loops say. What hardware makes of it, such as bytes that are read again because a cache is
//! small, is not known here.

use super::{
    Attention, AxisOp, BufferId, Convolution, Effect, Kernel, KernelKind, Nest, Program, Stage, Storage, Term,
};
use crate::symbolic::{Expr, Symbol};
use std::collections::BTreeMap;

/// What one call of a kernel amounts to.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Work {
    /// Arithmetic operations; a multiply-add is two.
    pub operations: f64,
    /// Bytes of memory that are read, each counted once.
    pub read: f64,
    /// Bytes of memory that are written, each counted once.
    pub written: f64,
}

/// The work of a kernel for sizes that `value_of` knows; `None` where it does not know one.
pub fn work(program: &Program, kernel: &Kernel, value_of: &dyn Fn(Symbol) -> Option<i64>) -> Option<Work> {
    let mut count =
        Count { program, value_of, operations: 0.0, read: BTreeMap::new(), written: BTreeMap::new() };
    count.kernel(kernel)?;
    let (read, written) = (count.bytes(&count.read)?, count.bytes(&count.written)?);
    Some(Work { operations: count.operations, read, written })
}

struct Count<'a> {
    program: &'a Program,
    value_of: &'a dyn Fn(Symbol) -> Option<i64>,
    operations: f64,
    /// Elements of each buffer that are accessed, repeated ones too.
    read: BTreeMap<BufferId, f64>,
    written: BTreeMap<BufferId, f64>,
}

impl Count<'_> {
    fn size(&self, expr: &Expr) -> Option<f64> {
        // Sizes up to 2^53 are exact, and others are not run.
        expr.evaluate(self.value_of).map(|size| size as f64)
    }

    fn product<'e>(&self, sizes: impl IntoIterator<Item = &'e Expr>) -> Option<f64> {
        sizes.into_iter().try_fold(1.0, |product, size| Some(product * self.size(size)?))
    }

    /// Bytes of memory behind accesses: a buffer counts at most once.
    fn bytes(&self, accesses: &BTreeMap<BufferId, f64>) -> Option<f64> {
        let mut total = 0.0;
        for (id, elements) in accesses {
            let buffer = &self.program.buffers[*id];
            if !matches!(buffer.storage, Storage::Local { .. }) {
                total += elements.min(self.product(&buffer.shape)?) * buffer.dtype.size() as f64;
            }
        }
        Some(total)
    }

    fn reads(&mut self, buffer: BufferId, elements: f64) {
        *self.read.entry(buffer).or_default() += elements;
    }

    fn kernel(&mut self, kernel: &Kernel) -> Option<()> {
        match &kernel.kind {
            KernelKind::Nest(nest) => self.nest(nest),
            KernelKind::MatMul(own) => {
                let positions = self.product(own.axes.iter().map(|axis| &axis.extent))?;
                let depth = self.size(&own.depth)?;
                let [.., row, column] = own.axes.as_slice() else { return None };
                let (rows, columns) = (self.size(&row.extent)?, self.size(&column.extent)?);
                self.operations += 2.0 * positions * depth;
                self.reads(own.a.buffer, positions / columns.max(1.0) * depth);
                self.reads(own.b.buffer, positions / rows.max(1.0) * depth);
                self.stage(&own.epilogue, positions)?;
                own.row_epilogue.as_ref().map_or(Some(()), |rows| self.nest(rows))
            }
            KernelKind::Convolution(own) => self.convolution(own),
            KernelKind::Attention(own) => self.attention(own),
            // What a user's function does is not known; that it touches its tensors is.
            KernelKind::Extern(own) => {
                own.inputs.iter().for_each(|(buffer, _)| self.reads(*buffer, f64::INFINITY));
                self.written.extend(own.outputs.iter().map(|(buffer, _)| (*buffer, f64::INFINITY)));
                Some(())
            }
            KernelKind::AxisOp(own) => {
                let elements = self.product([&own.outer, &own.length, &own.inner])?;
                let each = match own.op {
                    AxisOp::Scan(_) => 1.0,
                    AxisOp::Matrices(_) => self.size(&own.length)? + self.size(&own.inner)?,
                    // Each number of the state is multiplied for each gate.
                    AxisOp::Recurrent(layer) => {
                        let directions = layer.directions.count() * layer.cell.gates();
                        2.0 * directions as f64 * layer.state() as f64
                    }
                    AxisOp::Fourier(_) => 5.0 * self.size(&own.length)?.max(2.0).log2(),
                    AxisOp::Sort(_) | AxisOp::SearchSorted { .. } => self.size(&own.length)?.max(2.0).log2(),
                    // Each halves the digits that are open.
                    AxisOp::NthElement { .. } => 2.0,
                };
                self.operations += elements * each;
                own.inputs.iter().for_each(|buffer| self.reads(*buffer, f64::INFINITY));
                self.written.extend(own.outputs.iter().map(|buffer| (*buffer, f64::INFINITY)));
                Some(())
            }
        }
    }

    fn convolution(&mut self, own: &Convolution) -> Option<()> {
        let positions = self.product(own.axes.iter().map(|axis| &axis.extent))?;
        let weight = self.program.buffers[own.weight].shape.get(1..)?;
        let taps = self.product(weight)?;
        // Each input of a transposed one goes to as many outputs as it has taps.
        let applied = if own.conv.transposed {
            self.product(&self.program.buffers[own.input].shape)?
        } else {
            positions
        };
        self.operations += 2.0 * applied * taps;
        self.reads(own.input, f64::INFINITY);
        self.reads(own.weight, f64::INFINITY);
        self.stage(&own.epilogue, positions)
    }

    fn attention(&mut self, own: &Attention) -> Option<()> {
        let scores = self.product(own.score_axes().iter().map(|axis| &axis.extent))?;
        let positions = self.product(own.axes.iter().map(|axis| &axis.extent))?;
        let [.., query, column] = own.axes.as_slice() else { return None };
        let (queries, columns) = (self.size(&query.extent)?, self.size(&column.extent)?);
        let (keys, depth) = (self.size(&own.key().extent)?, self.size(&own.depth)?);
        self.operations += 2.0 * scores * (depth + columns);
        self.reads(own.queries.buffer, positions / columns.max(1.0) * depth);
        self.reads(own.keys.buffer, scores / queries.max(1.0) * depth);
        self.reads(own.values.buffer, positions / queries.max(1.0) * keys);
        let [score, epilogue] = &own.stages;
        self.stage(score, scores)?;
        self.stage(epilogue, positions)
    }

    fn nest(&mut self, nest: &Nest) -> Option<()> {
        let outer = self.product(nest.axes.iter().map(|axis| &axis.extent))?;
        for stage in &nest.stages {
            let positions = outer * self.product(stage.axes.iter().map(|axis| &axis.extent))?;
            self.stage(stage, positions)?;
        }
        Some(())
    }

    fn stage(&mut self, stage: &Stage, positions: f64) -> Option<()> {
        for typed in &stage.terms {
            match &typed.term {
                Term::Unary(..) | Term::Binary(..) | Term::Select(..) => self.operations += positions,
                Term::Load { access, .. } => self.reads(access.buffer, positions),
                Term::Literal(_)
                | Term::Index(_)
                | Term::Cast(_)
                | Term::Inside(_)
                | Term::CheckIndex { .. }
                | Term::Accumulated(_)
                | Term::Earlier { .. }
                | Term::Sum => {}
            }
        }
        for effect in &stage.effects {
            match effect {
                Effect::Store { access, .. } => *self.written.entry(access.buffer).or_default() += positions,
                Effect::Accumulate { .. } => self.operations += positions,
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::text::parse;

    #[test]
    fn bytes_count_once_and_multiply_adds_are_two_operations() {
        let program = parse(
            r#"loops "m" {
  symbol s0 "batch" in 1..64 from input 0 axis 0
  buffer b0 "x": f32[s0, 8] input 0
  buffer b1 "w": f32[8, 16] input 1
  buffer b2 "y": f32[s0, 16] output 0
  buffer b3 "z": f32[s0] output 1
  inputs [b0, b1]
  graph_inputs [b0, b1]
  outputs [b2, b3]
  kernel "product" {
    matmul f32 b0 [0, 8, 1], b1 [0, 16, 1] over [i0 < s0, i1 < 16] depth [8] {
      t0: f32 = total
      store b2[i0, i1] = t0
    }
  }
  kernel "sum" {
    for [i0 < s0] {
      accumulator acc0: sum f32 in stage 0
      stage [i1 < 16] {
        t0: f32 = load b2[i0, i1]
        t1: f32 = mul t0, t0
        accumulate acc0 t1
      }
      stage [] {
        t0: f32 = result acc0
        store b3[i0] = t0
      }
    }
  }
}"#,
        )
        .expect("the program parses");
        let works: Vec<Work> = program
            .kernels
            .values()
            .map(|kernel| work(&program, kernel, &|_| Some(4)).expect("all sizes are known"))
            .collect();
        let product = Work { operations: 2.0 * 4.0 * 16.0 * 8.0, read: 4.0 * (32.0 + 128.0), written: 256.0 };
        assert_eq!(works[0], product);
        assert_eq!(works[1], Work { operations: 2.0 * 64.0, read: 256.0, written: 16.0 });
        let unknown = work(&program, program.kernels.values().next().expect("one"), &|_| None);
        assert_eq!(unknown, None);
    }
}
