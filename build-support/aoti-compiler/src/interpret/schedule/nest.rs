//! Loop nests: their units of work in an order of our own, and the stages at the positions of a unit.

use super::Machine;
use super::stage::{Positions, Values, flat};
use crate::interpret::error::EvalError;
use crate::interpret::reduce;
use crate::interpret::tensor::Tensor;
use crate::kernels::mapping::{GpuMapping, Mapping, Split};
use crate::loops::{Accumulator, Kernel, MatMul, Nest, Stage, Storage};
use crate::symbolic::Expr;
use std::collections::BTreeMap;
use std::ops::Range;

/// Parts that work is split into, so that what one leaves out or does twice shows.
const PARTS: usize = 3;

impl Machine<'_> {
    pub(super) fn nest(&mut self, kernel: &Kernel, nest: &Nest, mapping: &Mapping) -> Result<(), EvalError> {
        let all = Positions::all(&nest.axes, &self.symbols)?;
        for part in self.parts(nest, mapping, all.count())?.into_iter().rev() {
            let positions = all.part(part);
            self.rows_for(kernel, &positions)?;
            self.stages_at(nest, &positions)?;
        }
        Ok(())
    }

    /// A product whose rows are finished as soon as they are there, some rows at a time.
    pub(super) fn by_rows(&mut self, kernel: &Kernel, matmul: &MatMul, rows: &Nest) -> Result<(), EvalError> {
        let all = Positions::all(&rows.axes, &self.symbols)?;
        let sums = Positions::all(&matmul.axes, &self.symbols)?;
        let columns = sums.count().checked_div(all.count()).unwrap_or(0);
        let each = all.count().div_ceil(PARTS).max(1);
        let starts = (0..all.count()).step_by(each);
        for part in starts.map(|start| start..(start + each).min(all.count())).rev() {
            self.product(matmul, &sums.part(part.start * columns..part.end * columns))?;
            let positions = all.part(part);
            self.rows_for(kernel, &positions)?;
            self.stages_at(rows, &positions)?;
        }
        Ok(())
    }

    /// All stages at some positions of the outer loops.
    fn stages_at(&mut self, nest: &Nest, positions: &Positions) -> Result<(), EvalError> {
        let mut values = Values::default();
        for (index, stage) in nest.stages.iter().enumerate() {
            let inner = positions.with_inner(&stage.axes, &self.symbols)?;
            self.stage(stage, &inner, &mut values)?;
            for (number, accumulator) in nest.accumulators.iter().enumerate() {
                if accumulator.stage == index {
                    let fed = values.fed.remove(&number);
                    let result = self.accumulated(stage, accumulator, fed, positions, &inner)?;
                    values.results.insert(number, result);
                }
            }
            values.stages.push(std::mem::take(&mut values.terms));
        }
        Ok(())
    }

    /// Ranges of positions that are run together, as the mapping splits them.
    fn parts(&self, nest: &Nest, mapping: &Mapping, count: usize) -> Result<Vec<Range<usize>>, EvalError> {
        let unit = match mapping {
            Mapping::Cpu(cpu) => match cpu.split {
                Split::Axes(leading) => {
                    let rest = Expr::product(nest.axes[leading..].iter().map(|axis| &axis.extent));
                    usize::try_from(self.symbols.value(&rest)?).unwrap_or(0)
                }
                // Parts of the last axis have all positions of the others.
                Split::Chunks(_) if nest.serial => count,
                Split::Chunks(elements) => usize::try_from(elements).unwrap_or(0),
                Split::Serial | Split::RowsFrom(_) | Split::Template => count,
            },
            Mapping::Gpu(GpuMapping::Teams(teams)) => usize::try_from(teams.threads()).unwrap_or(0),
            Mapping::Gpu(GpuMapping::Tiles(_) | GpuMapping::Template { .. } | GpuMapping::Scatter(_)) => {
                count
            }
        };
        // Positions that run in order and read what earlier ones wrote are run one by one.
        let written: Vec<_> = nest.stages.iter().flat_map(Stage::writes).collect();
        let reads_back = nest.stages.iter().flat_map(Stage::reads).any(|buffer| written.contains(&buffer));
        if nest.serial && reads_back {
            return Ok((0..count).map(|at| at..at + 1).rev().collect());
        }
        let unit = unit.max(1);
        let units = count.div_ceil(unit);
        let each = units.div_ceil(PARTS).max(1) * unit;
        Ok((0..count.div_ceil(each)).map(|part| part * each..((part + 1) * each).min(count)).collect())
    }

    /// Fresh rows for the positions that run together.
    fn rows_for(&mut self, kernel: &Kernel, positions: &Positions) -> Result<(), EvalError> {
        for id in kernel.rows(self.program) {
            let buffer = &self.program.buffers[id];
            let Storage::Local { outer } = buffer.storage else { continue };
            let row: usize = self.symbols.sizes(&buffer.shape[outer..])?.iter().product();
            self.memory.make_rows(id, positions.count() * row * buffer.dtype.size());
        }
        Ok(())
    }

    /// The finished accumulator at each outer position.
    fn accumulated(
        &self,
        stage: &Stage,
        accumulator: &Accumulator,
        fed: Option<Tensor>,
        positions: &Positions,
        inner: &Positions,
    ) -> Result<Tensor, EvalError> {
        let fed = fed.ok_or_else(|| EvalError::Malformed("an accumulator is not fed".to_owned()))?;
        let each = positions.inner_count(&stage.axes, &self.symbols)?;
        let sizes = vec![positions.count(), each];
        let rows = Tensor::new(fed.dtype(), sizes, fed.bytes().clone()).expect("a value for each position");
        let result = reduce::reduce(accumulator.op, &rows, &[1], vec![positions.count()])?;
        let Some(position) = &accumulator.position else { return Ok(result) };
        // The place among the inner positions, and what is kept for it.
        let kept = inner.values(position, &self.symbols)?;
        let places =
            result.to_i64().ok_or_else(|| EvalError::Malformed("a position is a number".to_owned()))?;
        let found = places.iter().enumerate().map(|(row, place)| {
            let at = usize::try_from(*place).ok().filter(|place| *place < each);
            at.map(|place| kept[row * each + place])
        });
        let found: Option<Vec<i64>> = found.collect();
        let found = found.ok_or_else(|| EvalError::Malformed("a position lies outside".to_owned()))?;
        Ok(flat(&Tensor::from_i64(&[found.len()], &found)))
    }
}

/// Terms of earlier stages by stage.
pub(super) type Stages = Vec<BTreeMap<usize, Tensor>>;
