//! What matrix units of a GPU make of a type of numbers.

use crate::dtype::DType;
use crate::target::MatrixUnits;

/// Numbers as matrix units see them.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Multiplied as they are, summed in `f32`.
    Halves,
    /// `f32` that loses nothing: as it is, or as sums of narrower numbers.
    Whole,
    /// `f32` that may be rounded to TF32.
    Rounded,
    /// Others, of which units know nothing.
    Other,
}

impl Kind {
    /// Whether matrix units multiply such numbers.
    pub(super) fn is_of(self, units: MatrixUnits) -> bool {
        match self {
            Kind::Halves => true,
            Kind::Whole => units.multiplies_f32,
            Kind::Rounded => units.multiplies_by_warp,
            Kind::Other => false,
        }
    }

    pub(super) fn of(dtype: DType, may_round: bool) -> Kind {
        match dtype {
            DType::F16 | DType::Bf16 => Kind::Halves,
            DType::F32 if may_round => Kind::Rounded,
            DType::F32 => Kind::Whole,
            DType::Bool
            | DType::U8
            | DType::I8
            | DType::I16
            | DType::I32
            | DType::I64
            | DType::U16
            | DType::U32
            | DType::U64
            | DType::F8(_)
            | DType::F64 => Kind::Other,
        }
    }
}
