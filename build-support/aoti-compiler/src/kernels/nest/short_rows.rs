//! Whether lanes had better run across short rows than along them: along a row of a few elements most lanes are empty, and what
//! reduces a vector to one number costs more than the row; across rows, elements are a row apart.

use super::cpu::{FEW_APART, size_of};
use crate::graph::ReduceOp;
use crate::loops::{Access, Effect, Nest, Stage, Term};
use crate::symbolic::Symbol;

/// Lanes of a vector. Narrower ones change both sides alike.
const LANES: f64 = 16.0;
/// Positions of a stage from which on rows are not looked at: no row that long is short.
const LONG: f64 = 64.0;

/// Cycles on a processor of four gigahertz with vectors of 16 floats, from the sums, extremes, norms and logarithms of 60,000
/// to 90,000 elements in rows of 3 to 12.
mod cycles {
    /// Of a vector: one term.
    pub(super) const TERM: f64 = 1.0;
    /// Of an element that is loaded across rows, shuffled out of whole registers or by itself.
    pub(super) const LOAD_ACROSS: f64 = 0.45;
    /// Of an element that is stored across rows.
    pub(super) const STORE_ACROSS: f64 = 1.0;
    /// Of a vector whose lanes are added or multiplied.
    pub(super) const ADD_LANES: f64 = 5.0;
    /// Of a vector of whose lanes the least or the largest is taken, with what is not a number.
    pub(super) const EXTREME_LANE: f64 = 12.0;
    /// The same with its position.
    pub(super) const POSITION_OF_LANE: f64 = 150.0;
    /// Of a function of one number, a root or a logarithm.
    pub(super) const FUNCTION: f64 = 8.0;
}

/// Whether the rows of a nest, counted by its last axis, are short, near each other, and cheaper with lanes across them.
pub(super) fn suit_lanes_across(nest: &Nest) -> bool {
    let Some(last) = nest.axes.last() else { return false };
    let is_short = |stage: &Stage| {
        stage.axes.iter().all(|axis| axis.extent.as_int().is_some()) && size_of(&stage.axes) < LONG
    };
    let are_rows_many = size_of(std::slice::from_ref(last)) >= LANES;
    let is_near = |access: &Access| {
        let step = access.offset.affine_in(last.symbol).and_then(|(step, _)| step.as_int());
        access.is_direct() && step.is_some_and(|step| step.abs() <= FEW_APART)
    };
    are_rows_many
        && nest.stages.iter().all(|stage| is_short(stage) && stage.accesses().all(is_near))
        && across(nest, last.symbol) < along(nest)
}

/// Of one row with lanes along it.
fn along(nest: &Nest) -> f64 {
    let of_stage = |stage: &Stage| {
        let Some((last, others)) = stage.axes.split_last() else {
            let is_function = |term: &Term| matches!(term, Term::Unary(..));
            let functions = stage.terms.iter().filter(|typed| is_function(&typed.term)).count();
            return functions as f64 * cycles::FUNCTION;
        };
        let vectors = size_of(others) * (size_of(std::slice::from_ref(last)) / LANES).ceil();
        vectors * stage.terms.len() as f64 * cycles::TERM
    };
    let reduced = nest.accumulators.iter().map(|accumulator| match accumulator.op {
        ReduceOp::ArgMax | ReduceOp::ArgMin => cycles::POSITION_OF_LANE,
        ReduceOp::Max | ReduceOp::Min => cycles::EXTREME_LANE,
        ReduceOp::Sum | ReduceOp::Prod | ReduceOp::Any | ReduceOp::All | ReduceOp::Xor => cycles::ADD_LANES,
    });
    nest.stages.iter().map(of_stage).chain(reduced).sum()
}

/// Of one row with lanes across rows, which are counted by this axis.
fn across(nest: &Nest, rows: Symbol) -> f64 {
    let is_strided = |access: &Access| {
        let step = access.offset.affine_in(rows).and_then(|(step, _)| step.as_int());
        step.is_none_or(|step| step.abs() > 1)
    };
    let of_stage = |stage: &Stage| {
        let loads = stage.loads().filter(|(access, _)| is_strided(access)).count() as f64;
        let stores = stage.effects.iter().filter(|effect| match effect {
            Effect::Store { access, .. } => is_strided(access),
            Effect::Accumulate { .. } => false,
        });
        let terms = stage.terms.len() as f64 * cycles::TERM / LANES;
        let apart = loads * cycles::LOAD_ACROSS + stores.count() as f64 * cycles::STORE_ACROSS;
        size_of(&stage.axes) * (terms + apart)
    };
    nest.stages.iter().map(of_stage).sum()
}
