//! A borrowed tensor whose element type is a value.

use super::{
    abi::{AOTI_CPU, AotiDevice, AotiTensor},
    described::{Described, wide},
};
use crate::{DType, Device, DynTensor, Element, Error, ErrorCode, TensorView};
use std::{fmt, ptr};

/// Memory that the processor sees.
pub(super) const CPU: AotiDevice = AotiDevice { kind: AOTI_CPU as i32, index: 0 };

/// A borrowed tensor whose element type is a value. Data, sizes and strides live as long as `'a`.
#[derive(Clone, Copy)]
pub struct AnyView<'a> {
    data: *const u8,
    dtype: DType,
    device: AotiDevice,
    sizes: &'a [usize],
    /// `None` exactly when the tensor is row-major contiguous.
    strides: Option<&'a [usize]>,
}

// SAFETY: a view is a shared borrow of elements, all of which are `Sync`.
unsafe impl Send for AnyView<'_> {}
// SAFETY: as above.
unsafe impl Sync for AnyView<'_> {}

impl<'a> AnyView<'a> {
    pub(crate) fn new<T: Element>(view: &'a TensorView<'_, T>) -> AnyView<'a> {
        let (data, sizes, strides) = (view.data().as_ptr().cast(), view.sizes(), view.strides());
        AnyView { data, dtype: T::DTYPE, device: CPU, sizes, strides }
    }

    pub(crate) fn of_tensor(tensor: &'a DynTensor) -> AnyView<'a> {
        let (data, dtype, sizes) = (tensor.data_ptr(), tensor.dtype(), tensor.sizes());
        AnyView { data, dtype, device: CPU, sizes, strides: None }
    }

    /// A tensor that the C side tells of, row-major contiguous and of a known element type, whose sizes are these.
    pub(super) fn of_raw(tensor: &AotiTensor, sizes: &'a [usize]) -> AnyView<'a> {
        let dtype = DType::from_code(tensor.dtype).expect("libraries tell of known element types");
        AnyView { data: tensor.data.cast(), dtype, device: tensor.device, sizes, strides: None }
    }

    /// A row-major contiguous tensor in memory of a device, such as one of cudarc's.
    ///
    /// # Safety
    ///
    /// `data` is the address of as many elements on this device as `sizes` say, aligned for their type, and they stay there and
    /// unchanged, but for what the program itself orders on the stream of its runs, as long as `'a`.
    pub unsafe fn on_device(
        device: Device,
        dtype: DType,
        sizes: &'a [usize],
        data: *const std::ffi::c_void,
    ) -> AnyView<'a> {
        AnyView { data: data.cast(), dtype, device: device.raw(), sizes, strides: None }
    }

    /// A tensor whose strides, if it has any, are not those of a row-major contiguous one.
    ///
    /// # Safety
    ///
    /// As for [`AnyView::on_device`]; strides are for memory of the processor alone.
    pub(super) unsafe fn of_parts(
        device: Device,
        dtype: DType,
        sizes: &'a [usize],
        strides: Option<&'a [usize]>,
        data: *const std::ffi::c_void,
    ) -> AnyView<'a> {
        AnyView { data: data.cast(), dtype, device: device.raw(), sizes, strides }
    }

    /// The element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &'a [usize] {
        self.sizes
    }

    /// The strides in elements, or `None` for row-major contiguous.
    pub fn strides(&self) -> Option<&'a [usize]> {
        self.strides
    }

    /// An owned tensor with the same elements.
    ///
    /// # Errors
    /// [`ErrorCode::Device`] for a tensor in memory of a device, which only its model can read, and [`ErrorCode::Memory`]: strides
    /// of 0 make a tensor of a few elements as large as one likes.
    pub fn to_tensor(&self) -> Result<DynTensor, Error> {
        if self.device.kind != CPU.kind {
            return Err(Error::new(ErrorCode::Device, "the tensor lies in memory of a device"));
        }
        let mut tensor = DynTensor::zeros(self.dtype(), self.sizes())?;
        self.pack(tensor.bytes_mut());
        tensor.settle_bools();
        Ok(tensor)
    }

    /// Bytes of the tensor when it is contiguous.
    pub(super) fn packed_bytes(&self) -> usize {
        self.sizes().iter().product::<usize>() * self.dtype().size()
    }

    /// Adds the tensor, which has no strides, to a list for the C interface.
    pub(super) fn describe(&self, described: &mut Described) {
        described.push(self.data.cast_mut().cast(), self.dtype, self.device, self.sizes.iter().map(wide));
    }

    /// Copies the elements in row-major order to the first [`AnyView::packed_bytes`] of `target`.
    pub(super) fn pack(&self, target: &mut [u8]) {
        let target = &mut target[..self.packed_bytes()];
        let Some(strides) = self.strides().filter(|_| !target.is_empty()) else {
            // SAFETY: without strides the data is contiguous and as long as its packed form, which `target` is.
            return unsafe { ptr::copy_nonoverlapping(self.data, target.as_mut_ptr(), target.len()) };
        };
        let element = self.dtype().size();
        // SAFETY: `TensorView::strided` keeps every offset inside the data, `target` has room for every element, and
        // a borrowed target does not overlap data that is borrowed as shared.
        unsafe { pack(self.data, self.sizes(), strides, element, target.as_mut_ptr()) };
    }
}

/// Copies one level of dimensions; returns where the target goes on.
unsafe fn pack(
    source: *const u8,
    sizes: &[usize],
    strides: &[usize],
    element: usize,
    target: *mut u8,
) -> *mut u8 {
    // SAFETY: the caller vouches for source and target over all of `sizes`; each step covers a part of them.
    unsafe {
        let ([size, inner_sizes @ ..], [stride, inner_strides @ ..]) = (sizes, strides) else {
            ptr::copy_nonoverlapping(source, target, element);
            return target.add(element);
        };
        if inner_sizes.is_empty() && *stride == 1 {
            ptr::copy_nonoverlapping(source, target, size * element);
            return target.add(size * element);
        }
        (0..*size).fold(target, |target, index| {
            pack(source.add(index * stride * element), inner_sizes, inner_strides, element, target)
        })
    }
}

impl<'a, T: Element> From<&'a TensorView<'_, T>> for AnyView<'a> {
    fn from(view: &'a TensorView<'_, T>) -> Self {
        view.erase()
    }
}

impl<'a> From<&'a DynTensor> for AnyView<'a> {
    fn from(tensor: &'a DynTensor) -> Self {
        tensor.view()
    }
}

impl fmt::Debug for AnyView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("AnyView");
        debug.field("dtype", &self.dtype()).field("sizes", &self.sizes());
        debug.field("strides", &self.strides()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_element_that_no_memory_holds_is_an_error() {
        let view = TensorView::strided(&[1u8], &[isize::MAX as usize, 1], &[0, 0]).unwrap();
        assert_eq!(view.erase().to_tensor().unwrap_err().code(), ErrorCode::Memory);
        let view = TensorView::strided(&[true, false], &[2, 2], &[0, 1]).unwrap();
        assert_eq!(view.erase().to_tensor().unwrap().as_slice(), Some(&[true, false, true, false][..]));
    }

    #[test]
    fn a_transposed_and_a_repeated_view_are_packed_in_row_major_order() {
        let packed = |sizes: &[usize], strides: &[usize]| {
            let view = TensorView::strided(&[1u8, 2, 3, 4, 5, 6], sizes, strides).unwrap();
            let mut bytes = vec![0; view.erase().packed_bytes()];
            view.erase().pack(&mut bytes);
            bytes
        };
        assert_eq!(packed(&[3, 2], &[1, 3]), [1, 4, 2, 5, 3, 6]);
        assert_eq!(packed(&[2, 2], &[0, 1]), [1, 2, 1, 2]);
        assert_eq!(packed(&[2, 1, 3], &[3, 9, 1]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(packed(&[0, 3], &[3, 2]), [0u8; 0]);
    }
}
