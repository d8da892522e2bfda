//! Accesses of a nest that step from line to line of memory, while neighbours of the whole row lie side by side: such rows are
//! turned in blocks (`turned.h`), and lanes find their elements side by side.

use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::dtype::DType;
use crate::graph::Combine;
use crate::kernels::mapping::Lanes;
use crate::loops::{Access, Axis, Effect, Nest, Stage};
use std::fmt::Write;

/// Elements of a row at most: a block of rows stays in the first-level cache.
const MOST_ELEMENTS: i64 = 256;
/// Elements that are so many apart are in lines of their own.
const LEAST_STEP: i64 = 16;
/// Rows that are worth a block.
const LEAST_ROWS: i64 = 8;

/// The rows that a nest turns.
#[derive(Default)]
pub(super) struct Turned {
    /// For each stage the accesses, and the names of their rows.
    stages: Vec<Vec<(Access, String)>>,
    /// Declarations of the blocks.
    pub(super) blocks: String,
    /// The rows of a unit of work.
    pub(super) rows: String,
}

impl Turned {
    /// Of a nest whose units of work, one behind the other, are positions along these axes.
    pub(super) fn of(nest: &Nest, lanes: Lanes, units: &[Axis], parameters: &Parameters) -> Turned {
        let mut turned = Turned::default();
        let Some(unit) = units.last() else { return turned };
        let outer = match lanes {
            Lanes::Outer => nest.axes.last(),
            Lanes::Inner => None,
            Lanes::One => return turned,
        };
        // All axes but that of the lanes are those of units.
        if units.len() + usize::from(outer.is_some()) != nest.axes.len() {
            return turned;
        }
        let left = match units {
            [_] => "end - unit".to_owned(),
            _ => format!("min_i64(end - unit, {} - {})", scalar(&unit.extent), symbol_name(unit.symbol)),
        };
        let is_long = unit.extent.as_int().is_none_or(|rows| rows >= LEAST_ROWS);
        for stage in &nest.stages {
            let vector = match (outer, stage.axes.as_slice()) {
                (Some(outer), []) => Some(outer),
                (None, [own]) => Some(own),
                (Some(_) | None, _) => None,
            };
            let own = vector.filter(|_| is_long).map_or_else(Vec::new, |vector| {
                accesses(nest, stage)
                    .filter(|(access, _)| parameters.dtype(access.buffer) == DType::F32)
                    .filter_map(|(access, kind)| turned.row(access, kind, unit, vector, parameters, &left))
                    .collect()
            });
            turned.stages.push(own);
        }
        turned
    }

    /// The accesses of a stage that find their elements in rows.
    pub(super) fn stage(&self, index: usize) -> &[(Access, String)] {
        self.stages.get(index).map_or(&[], Vec::as_slice)
    }

    /// Declares the row of an access, if it is worth a block.
    fn row(
        &mut self,
        access: &Access,
        kind: &str,
        unit: &Axis,
        vector: &Axis,
        parameters: &Parameters,
        left: &str,
    ) -> Option<(Access, String)> {
        let (step, first) = access.offset.affine_in(vector.symbol)?;
        let is_next = access.offset.affine_in(unit.symbol)?.0.is(1);
        let is_far = step.as_int().is_some_and(|step| step >= LEAST_STEP);
        let count = vector.extent.as_int().filter(|count| *count <= MOST_ELEMENTS)?;
        if !access.is_direct() || !is_next || !is_far {
            return None;
        }
        let number = self.rows.lines().count();
        let (buffer, element) = (parameters.buffer(access.buffer), scalar(&first));
        let _ = writeln!(self.blocks, "Turned{kind}<{count}> block{number};");
        let _ = writeln!(
            self.rows,
            "auto *const turned{number} = block{number}.row({buffer} + ({element}), {}, {left});",
            scalar(&step)
        );
        Some((access.clone(), format!("turned{number}")))
    }
}

/// The plain loads of a stage from buffers that the nest does not write, and its stores to buffers that nothing else in the nest
/// reads or writes.
fn accesses<'a>(nest: &'a Nest, stage: &'a Stage) -> impl Iterator<Item = (&'a Access, &'static str)> {
    let touches = |access: &Access| {
        let all = nest.stages.iter().flat_map(Stage::accesses);
        all.filter(|other| other.buffer == access.buffer).count()
    };
    let writes = |access: &Access| nest.stages.iter().flat_map(Stage::writes).any(|own| own == access.buffer);
    let loads = stage.loads().filter_map(move |(access, guards)| {
        (guards.is_empty() && !writes(access)).then_some((access, "Loads"))
    });
    let stores = stage.effects.iter().filter_map(move |effect| match effect {
        Effect::Store { access, combine: Combine::Set, .. } if touches(access) == 1 => {
            Some((access, "Stores"))
        }
        Effect::Store { .. } | Effect::Accumulate { .. } => None,
    });
    loads.chain(stores)
}
