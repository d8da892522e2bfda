//! Conversion between element types.

use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;

/// Converts every element: floats to integers truncate, non-zero is true.
pub(crate) fn cast(x: &Tensor, dtype: DType) -> Tensor {
    Tensor::store(dtype, x.sizes().to_vec(), &x.lanes())
}

/// Rounds lanes to what `dtype` can hold.
pub(super) fn store_like(x: &Tensor, lanes: &Lanes) -> Tensor {
    Tensor::store(x.dtype(), x.sizes().to_vec(), lanes)
}

/// Truncates, to the bits of an integer. What does not fit follows x86: the smallest integer of the conversion's width,
/// which is 64 bits for `i64` and `u32` and 32 bits for narrower types, then wraps. Of the numbers of `u64`, the upper half
/// is converted from 2^63 on.
pub(super) fn float_to_int(value: f64, dtype: DType) -> i64 {
    let half = 2f64.powi(63);
    match dtype {
        DType::U64 if value >= half => truncated(value - half, 63) ^ i64::MIN,
        DType::I64 | DType::U32 | DType::U64 => truncated(value, 63),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::U16
        | DType::F16
        | DType::Bf16
        | DType::F8(_)
        | DType::F32
        | DType::F64 => truncated(value, 31),
    }
}

/// An integer with so many bits beside the sign; the smallest where it does not fit.
fn truncated(value: f64, bits: i32) -> i64 {
    let (truncated, limit) = (value.trunc(), 2f64.powi(bits));
    if truncated >= -limit && truncated < limit { truncated as i64 } else { (-limit) as i64 }
}
