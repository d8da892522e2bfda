//! Memory aligned to 64 bytes that only grows and is always initialised.

use crate::{Element, Error, ffi::abi::AOTI_ALIGNMENT};
use std::slice;

#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

const _: () =
    assert!(size_of::<Line>() == AOTI_ALIGNMENT as usize && align_of::<Line>() == size_of::<Line>());

/// Aligned bytes. They are zero until written; `bool`s in them are written only with 0 or 1.
#[derive(Clone, Default)]
pub(crate) struct Buffer {
    lines: Vec<Line>,
}

impl Buffer {
    pub(crate) const fn new() -> Buffer {
        Buffer { lines: Vec::new() }
    }

    /// Makes room for `bytes`. Where it must grow, what it held is lost, unless there is no memory for that.
    pub(crate) fn reserve(&mut self, bytes: usize) -> Result<(), Error> {
        // Nothing has an address in memory, too: kernels count on from where an empty tensor lies, though they read nothing.
        let lines = bytes.div_ceil(size_of::<Line>()).max(1);
        if lines > self.lines.len() {
            let mut larger = Vec::new();
            larger.try_reserve_exact(lines).map_err(|_| Error::memory(bytes))?;
            // Of two of a size only one is ever in memory: what is new is not touched before the old is gone.
            self.lines = Vec::new();
            larger.resize(lines, Line([0; 64]));
            self.lines = larger;
        }
        Ok(())
    }

    pub(crate) fn capacity(&self) -> usize {
        size_of_val(self.lines.as_slice())
    }

    pub(crate) fn as_ptr(&self) -> *const u8 {
        self.lines.as_ptr().cast()
    }

    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.lines.as_mut_ptr().cast()
    }

    /// The first `len` elements; panics if there are fewer. Callers keep one element type for a buffer, or bytes.
    pub(crate) fn elements<T: Element>(&self, len: usize) -> &[T] {
        self.check::<T>(len);
        // SAFETY: the memory holds `len` elements, is aligned more than any element is, and is initialised; every bit
        // pattern is a value of every element but `bool`, and buffers of `bool` hold only 0 and 1.
        unsafe { slice::from_raw_parts(self.as_ptr().cast(), len) }
    }

    /// The first `len` elements; panics if there are fewer.
    pub(crate) fn elements_mut<T: Element>(&mut self, len: usize) -> &mut [T] {
        self.check::<T>(len);
        // SAFETY: as above, and borrowed mutably.
        unsafe { slice::from_raw_parts_mut(self.as_mut_ptr().cast(), len) }
    }

    fn check<T>(&self, len: usize) {
        let needed = len.checked_mul(size_of::<T>());
        assert!(needed.is_some_and(|bytes| bytes <= self.capacity()), "{len} elements are not in the buffer");
    }
}
