//! Fourier transforms.

use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;
use crate::fourier::Fourier;

/// The rows of a tensor, transformed: computed in `f64`, rounded once.
pub(super) fn transform(fourier: &Fourier, x: &Tensor, sizes: Vec<usize>) -> Tensor {
    let (dtype, results) = (x.dtype(), fourier.of_rows(&x.to_f64()));
    let lanes = if dtype == DType::F64 {
        Lanes::F64(results)
    } else {
        Lanes::F32(results.into_iter().map(|x| x as f32).collect())
    };
    Tensor::store(dtype, sizes, &lanes)
}
