//! Tensors: borrowed and owned, with the element type in the Rust type or as a value.

mod dims;
mod dynamic;
#[cfg(feature = "ndarray")]
mod ndarray;
mod owned;
mod view;

pub(crate) use dims::{Dims, MOST_DIMENSIONS, count as count_elements};
pub use dynamic::DynTensor;
pub use owned::Tensor;
pub use view::TensorView;
