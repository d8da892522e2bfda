//! Conversion between element types.

use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;

/// Converts every element: floats to integers truncate, non-zero is true.
pub(super) fn cast(x: &Tensor, dtype: DType) -> Tensor {
    Tensor::store(dtype, x.sizes().to_vec(), &x.lanes())
}

/// Rounds lanes to what `dtype` can hold.
pub(super) fn store_like(x: &Tensor, lanes: &Lanes) -> Tensor {
    Tensor::store(x.dtype(), x.sizes().to_vec(), lanes)
}

/// Truncates. What does not fit follows x86: the smallest integer of the conversion's width, which is 64 bits for
/// `i64` and 32 bits for narrower types, then wraps.
pub(super) fn float_to_int(value: f64, dtype: DType) -> i64 {
    let truncated = value.trunc();
    let (low, high, otherwise) = if dtype == DType::I64 {
        (-(2f64.powi(63)), 2f64.powi(63), i64::MIN)
    } else {
        (-(2f64.powi(31)), 2f64.powi(31), i64::from(i32::MIN))
    };
    if truncated >= low && truncated < high { truncated as i64 } else { otherwise }
}
