//! Tensors in the layout of the C interface, where sizes have 64 bits whatever a pointer has here.

use super::abi::{AotiDevice, AotiTensor};
use crate::DType;
use std::{ffi::c_void, ptr, slice};

/// A reusable list of row-major tensors for the C interface, with their sizes. What it points to may be gone between its
/// uses, when nobody reads it.
#[derive(Default)]
pub(super) struct Described {
    tensors: Vec<AotiTensor>,
    /// Of all tensors, one after the other.
    sizes: Vec<i64>,
}

// SAFETY: entries are written anew at the start of each use, under `&mut`; those left over are never read.
unsafe impl Send for Described {}
// SAFETY: as above; a shared reference only reads the list itself.
unsafe impl Sync for Described {}

impl Described {
    /// Begins anew.
    pub(super) fn clear(&mut self) {
        self.tensors.clear();
        self.sizes.clear();
    }

    /// Adds a tensor. Who makes the list a call's argument vouches for the data.
    pub(super) fn push(
        &mut self,
        data: *mut c_void,
        dtype: DType,
        device: AotiDevice,
        sizes: impl IntoIterator<Item = i64>,
    ) {
        let before = self.sizes.len();
        self.sizes.extend(sizes);
        let rank = i32::try_from(self.sizes.len() - before).unwrap_or(i32::MAX);
        let (sizes, strides) = (ptr::null(), ptr::null());
        self.tensors.push(AotiTensor { data, sizes, strides, rank, dtype: dtype.code(), device });
    }

    /// The tensors, when all are there: the sizes have their place now.
    pub(super) fn finish(&mut self) -> &[AotiTensor] {
        let mut rest = self.sizes.as_slice();
        for tensor in &mut self.tensors {
            let own;
            (own, rest) = rest.split_at(usize::try_from(tensor.rank).unwrap_or(0).min(rest.len()));
            tensor.sizes = own.as_ptr();
        }
        &self.tensors
    }

    /// The same again, once it is finished.
    pub(super) fn as_slice(&self) -> &[AotiTensor] {
        &self.tensors
    }
}

/// A size as the C interface has it.
pub(super) fn wide(size: &usize) -> i64 {
    // Tensors of more elements than `isize` counts are refused when they are made.
    *size as i64
}

/// A size of the C interface as Rust has it. One that is unknown, or more than any memory here, is the largest number.
pub(super) fn narrow(size: &i64) -> usize {
    usize::try_from(*size).unwrap_or(usize::MAX)
}

/// Sizes of the C interface as Rust has them, in memory that is used again.
pub(super) fn narrowed<'s>(sizes: &[i64], scratch: &'s mut Vec<usize>) -> &'s [usize] {
    scratch.clear();
    scratch.extend(sizes.iter().map(narrow));
    scratch
}

/// The sizes of a tensor of the C interface.
///
/// # Safety
///
/// The tensor has as many sizes as its rank says, and they live as long as `'a`.
pub(super) unsafe fn sizes_of<'a>(tensor: &AotiTensor) -> &'a [i64] {
    match usize::try_from(tensor.rank) {
        // SAFETY: the caller vouches for the sizes.
        Ok(rank) if rank > 0 => unsafe { slice::from_raw_parts(tensor.sizes, rank) },
        _ => &[],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ffi::view::CPU;

    #[test]
    fn every_tensor_finds_its_sizes() {
        let mut described = Described::default();
        for sizes in [&[2usize, 3][..], &[], &[1 << 20; 9], &[7]] {
            described.push(ptr::null_mut(), DType::F32, CPU, sizes.iter().map(wide));
        }
        let tensors = described.finish();
        // SAFETY: the list is alive.
        let sizes: Vec<&[i64]> = tensors.iter().map(|tensor| unsafe { sizes_of(tensor) }).collect();
        assert_eq!(sizes, [&[2i64, 3][..], &[], &[1 << 20; 9], &[7]]);
        described.clear();
        assert!(described.finish().is_empty());
    }

    #[test]
    fn what_is_no_size_here_is_the_largest_number() {
        let mut scratch = vec![1];
        let most = if usize::BITS == 64 { 1 << 40 } else { usize::MAX };
        assert_eq!(narrowed(&[-1, 0, 1 << 40, 5], &mut scratch), [usize::MAX, 0, most, 5]);
    }
}
