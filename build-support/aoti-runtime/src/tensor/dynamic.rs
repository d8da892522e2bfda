//! An owned tensor whose element type is a value: for programs that learn it at run time, and below [`Tensor`].
//!
//! [`Tensor`]: super::Tensor

use super::dims::{self, Dims};
use crate::{AnyView, DType, Element, Error, ErrorCode, ffi::buffer::Buffer};
use std::fmt;

/// An owned, row-major tensor in memory aligned to 64 bytes.
#[derive(Clone)]
pub struct DynTensor {
    dtype: DType,
    sizes: Dims,
    len: usize,
    buffer: Buffer,
}

impl DynTensor {
    /// An empty tensor of one dimension of size 0; allocates nothing.
    pub fn empty(dtype: DType) -> DynTensor {
        DynTensor { dtype, sizes: Dims::new(&[0]), len: 0, buffer: Buffer::new() }
    }

    /// A tensor of zeros.
    pub fn zeros(dtype: DType, sizes: &[usize]) -> Result<DynTensor, Error> {
        let mut tensor = DynTensor::empty(dtype);
        tensor.resize(sizes)?;
        Ok(tensor)
    }

    /// A tensor from the bytes of its elements in row-major order and the machine's byte order. Any byte but 0 is a
    /// true `bool`.
    pub fn from_bytes(dtype: DType, sizes: &[usize], bytes: &[u8]) -> Result<DynTensor, Error> {
        let wanted = dims::count(sizes, dtype.size())? * dtype.size();
        if bytes.len() != wanted {
            let message =
                format!("{} bytes do not fill {dtype} of sizes {sizes:?}, which needs {wanted}", bytes.len());
            return Err(Error::new(ErrorCode::Size, message));
        }
        let mut tensor = DynTensor::zeros(dtype, sizes)?;
        tensor.bytes_mut().copy_from_slice(bytes);
        tensor.settle_bools();
        Ok(tensor)
    }

    /// Gives the tensor other sizes, allocating only if it grows beyond what it ever held. Elements keep no meaning.
    ///
    /// # Errors
    /// Where there is no memory for it; the tensor has the sizes and elements that it had.
    pub fn resize(&mut self, sizes: &[usize]) -> Result<(), Error> {
        let len = dims::count(sizes, self.dtype.size())?;
        self.buffer.reserve(len * self.dtype.size())?;
        self.len = len;
        if self.sizes.as_slice() != sizes {
            self.sizes.set(sizes);
        }
        Ok(())
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        self.sizes.as_slice()
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes of the elements in row-major order.
    pub fn bytes(&self) -> &[u8] {
        self.buffer.elements(self.len * self.dtype.size())
    }

    /// The same to be written; [`DynTensor::settle_bools`] follows.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        self.buffer.elements_mut(self.len * self.dtype.size())
    }

    /// Makes every byte but 0 a true `bool`, in a tensor of those: what devices and other programs wrote may be any.
    pub(crate) fn settle_bools(&mut self) {
        if self.dtype == DType::Bool {
            self.bytes_mut().iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
    }

    /// The elements, or `None` if they are of another type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        (self.dtype == T::DTYPE).then(|| self.buffer.elements(self.len))
    }

    /// The elements, or `None` if they are of another type.
    pub fn as_mut_slice<T: Element>(&mut self) -> Option<&mut [T]> {
        (self.dtype == T::DTYPE).then(|| self.buffer.elements_mut(self.len))
    }

    /// A view of the whole tensor.
    pub fn view(&self) -> AnyView<'_> {
        AnyView::of_tensor(self)
    }

    pub(crate) fn data_ptr(&self) -> *const u8 {
        self.buffer.as_ptr()
    }

    pub(crate) fn data_mut_ptr(&mut self) -> *mut u8 {
        self.buffer.as_mut_ptr()
    }
}

impl fmt::Debug for DynTensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DynTensor")
            .field("dtype", &self.dtype)
            .field("sizes", &self.sizes())
            .finish_non_exhaustive()
    }
}

impl PartialEq for DynTensor {
    /// Equal element type, sizes and bytes.
    fn eq(&self, other: &DynTensor) -> bool {
        self.dtype == other.dtype && self.sizes() == other.sizes() && self.bytes() == other.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_elements_of_the_right_type_only() {
        let tensor = DynTensor::from_bytes(DType::I16, &[2], &[1, 0, 2, 0]).unwrap();
        assert_eq!(tensor.as_slice::<i16>(), Some(&[1i16, 2][..]));
        assert_eq!(tensor.as_slice::<f32>(), None);
        assert!(DynTensor::from_bytes(DType::I16, &[3], &[1, 0, 2, 0]).is_err());
    }

    #[test]
    fn any_byte_becomes_a_valid_bool() {
        let tensor = DynTensor::from_bytes(DType::Bool, &[3], &[0, 2, 255]).unwrap();
        assert_eq!(tensor.as_slice::<bool>(), Some(&[false, true, true][..]));
    }

    #[test]
    fn memory_is_aligned_and_kept_when_shrinking() {
        let mut tensor = DynTensor::zeros(DType::F64, &[100]).unwrap();
        let address = tensor.data_ptr();
        assert_eq!(address as usize % 64, 0);
        tensor.resize(&[3, 4]).unwrap();
        tensor.resize(&[10, 10]).unwrap();
        assert_eq!((address, tensor.sizes()), (tensor.data_ptr(), &[10, 10][..]));
    }

    #[test]
    fn memory_that_nobody_has_is_an_error() {
        let error = DynTensor::zeros(DType::F32, &[isize::MAX as usize / 4]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Memory);
    }

    #[test]
    fn a_tensor_that_cannot_grow_stays_as_it_is() {
        let own = || DynTensor::from_bytes(DType::I16, &[2], &[1, 0, 2, 0]).unwrap();
        for sizes in [&[isize::MAX as usize / 2][..], &[usize::MAX >> 8, usize::MAX >> 8]] {
            let mut tensor = own();
            assert!(tensor.resize(sizes).is_err());
            assert_eq!(tensor, own());
        }
    }
}
