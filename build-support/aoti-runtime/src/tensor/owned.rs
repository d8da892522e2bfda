//! An owned tensor whose element type is known to the compiler: what the fields of generated `Outputs` hold.

use super::{DynTensor, TensorView};
use crate::{Element, Error, ErrorCode};
use std::{fmt, marker::PhantomData, ops};

/// An owned, row-major tensor in memory aligned to 64 bytes. Dereferences to its elements.
#[derive(Clone, PartialEq)]
pub struct Tensor<T> {
    inner: DynTensor,
    elements: PhantomData<T>,
}

impl<T: Element> Tensor<T> {
    /// An empty tensor of one dimension of size 0; allocates nothing.
    pub fn new() -> Tensor<T> {
        Tensor { inner: DynTensor::empty(T::DTYPE), elements: PhantomData }
    }

    /// A tensor of zeros.
    pub fn zeros(sizes: &[usize]) -> Result<Tensor<T>, Error> {
        Ok(Tensor { inner: DynTensor::zeros(T::DTYPE, sizes)?, elements: PhantomData })
    }

    /// A copy of `data`, whose length must be the product of `sizes`.
    pub fn from_slice(data: &[T], sizes: &[usize]) -> Result<Tensor<T>, Error> {
        TensorView::new(data, sizes)?;
        let mut tensor = Tensor::zeros(sizes)?;
        tensor.copy_from_slice(data);
        Ok(tensor)
    }

    /// Takes over a tensor whose element type is a value, which must be `T`'s.
    ///
    /// ```
    /// use aoti_runtime::{DType, DynTensor, Tensor};
    ///
    /// let tensor: Tensor<f32> = Tensor::from_dyn(DynTensor::zeros(DType::F32, &[2, 3])?)?;
    /// assert_eq!(tensor.sizes(), [2, 3]);
    /// # Ok::<(), aoti_runtime::Error>(())
    /// ```
    pub fn from_dyn(tensor: DynTensor) -> Result<Tensor<T>, Error> {
        if tensor.dtype() != T::DTYPE {
            let message = format!("expected a tensor of {}, got one of {}", T::DTYPE, tensor.dtype());
            return Err(Error::new(ErrorCode::DType, message));
        }
        Ok(Tensor { inner: tensor, elements: PhantomData })
    }

    /// The same tensor with its element type as a value.
    pub fn into_dyn(self) -> DynTensor {
        self.inner
    }

    /// The tensor with its element type as a value, to be written by a run. A tensor of another element type must not
    /// be put in its place.
    #[doc(hidden)]
    pub fn as_dyn_mut(&mut self) -> &mut DynTensor {
        &mut self.inner
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        self.inner.sizes()
    }

    /// A view of the whole tensor.
    pub fn view(&self) -> TensorView<'_, T> {
        TensorView::new(self, self.sizes()).expect("the length is the product of the sizes")
    }

    /// The elements in row-major order.
    pub fn as_slice(&self) -> &[T] {
        self.inner.as_slice().expect("the element type is the tensor's own")
    }

    /// The elements in row-major order.
    pub fn as_mut_slice(&mut self) -> &mut [T] {
        self.inner.as_mut_slice().expect("the element type is the tensor's own")
    }
}

impl<T: Element> Default for Tensor<T> {
    fn default() -> Self {
        Tensor::new()
    }
}

impl<T: Element> ops::Deref for Tensor<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T: Element> ops::DerefMut for Tensor<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        self.as_mut_slice()
    }
}

impl<'a, T: Element> From<&'a Tensor<T>> for TensorView<'a, T> {
    fn from(tensor: &'a Tensor<T>) -> Self {
        tensor.view()
    }
}

impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor").field("sizes", &self.sizes()).field("data", &self.as_slice()).finish()
    }
}
