//! What matrix units of a GPU make of a type of numbers.

use crate::dtype::DType;

/// Numbers as matrix units see them.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// Multiplied as they are, summed in `f32`.
    Halves,
    /// `f32`, as sums of narrower numbers.
    Split,
    /// `f32` that may be rounded to TF32.
    Rounded,
    /// Others, of which units know nothing.
    Other,
}

impl Kind {
    pub(super) fn of(dtype: DType, may_round: bool) -> Kind {
        match dtype {
            DType::F16 | DType::Bf16 => Kind::Halves,
            DType::F32 if may_round => Kind::Rounded,
            DType::F32 => Kind::Split,
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
