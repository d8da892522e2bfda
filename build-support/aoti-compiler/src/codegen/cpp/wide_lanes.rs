//! Loops that copy or compare numbers of one byte alone have as many lanes as a register has bytes, where others have as many as it
//! has numbers of four bytes.

use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::lane_access::MOST_LANES;
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, ReduceOp};
use crate::kernels::mapping::Lanes;
use crate::loops::{Access, Effect, Nest, Stage, Term};
use crate::symbolic::Symbol;

/// Lanes of most loops.
pub(super) const LANES: &str = "AOTI_LANES";
/// The fewest lanes that a loop has, of which all numbers of lanes are multiples.
pub(super) const LEAST_LANES: i64 = 4;

/// The lanes of a nest, as an expression of C++.
pub(super) fn lanes_of(nest: &Nest, lanes: Lanes, parameters: &Parameters) -> &'static str {
    let vector = match lanes {
        Lanes::Outer => nest.axes.last(),
        Lanes::Inner | Lanes::One => None,
    };
    let Some(vector) = vector.filter(|_| !nest.serial) else { return LANES };
    let Some(count) = vector.extent.as_int() else { return LANES };
    let are_bytes = nest.stages.iter().all(|stage| is_of_bytes(stage, vector.symbol, parameters))
        && nest.accumulators.iter().all(|own| {
            is_byte(own.dtype) && matches!(own.op, ReduceOp::Max | ReduceOp::Min) && own.position.is_none()
        });
    if !are_bytes || nest.stages.is_empty() {
        LANES
    } else if count > 0 && count % (4 * MOST_LANES) == 0 {
        "4 * AOTI_LANES"
    } else if count > 0 && count % (2 * MOST_LANES) == 0 {
        "2 * AOTI_LANES"
    } else {
        LANES
    }
}

fn is_byte(dtype: DType) -> bool {
    matches!(dtype, DType::U8 | DType::I8)
}

/// Whether a stage has nothing but bytes that lie side by side, and the larger or smaller ones of these.
fn is_of_bytes(stage: &Stage, vector: Symbol, parameters: &Parameters) -> bool {
    let is_beside = |access: &Access, least: i64| {
        let step = access.offset.affine_in(vector).and_then(|(step, _)| step.as_int());
        access.indirect.is_empty()
            && is_byte(parameters.dtype(access.buffer))
            && step.is_some_and(|step| (least..=1).contains(&step))
    };
    let terms = stage.terms.iter().all(|typed| {
        let is_simple = match &typed.term {
            Term::Literal(_) | Term::Accumulated(_) | Term::Earlier { .. } => true,
            Term::Load { access, guards, .. } => {
                is_beside(access, 0) && !guards.iter().any(|guard| guard.coordinate.mentions(vector))
            }
            Term::Binary(op, ..) => matches!(op, BinaryOp::Maximum | BinaryOp::Minimum),
            Term::Index(_)
            | Term::Unary(..)
            | Term::Select(..)
            | Term::Cast(_)
            | Term::Inside(_)
            | Term::CheckIndex { .. }
            | Term::Sum => false,
        };
        is_simple && is_byte(typed.dtype)
    });
    terms
        && stage.effects.iter().all(|effect| match effect {
            Effect::Store { access, combine, .. } => *combine == Combine::Set && is_beside(access, 1),
            Effect::Accumulate { .. } => true,
        })
}
