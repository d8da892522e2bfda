//! Sizes or strides of a tensor, inline for common ranks so that views allocate nothing.

use crate::{Error, ErrorCode};
use std::fmt;

const INLINE: usize = 8;

/// A short list of sizes or strides.
#[derive(Clone, Default)]
pub(crate) struct Dims {
    rank: usize,
    inline: [usize; INLINE],
    /// All of them, when there are more than [`INLINE`].
    spilled: Vec<usize>,
}

impl Dims {
    pub(crate) fn new(values: &[usize]) -> Dims {
        let mut dims = Dims::default();
        dims.set(values);
        dims
    }

    pub(crate) fn set(&mut self, values: &[usize]) {
        self.rank = values.len();
        self.spilled.clear();
        match self.inline.get_mut(..values.len()) {
            Some(inline) => inline.copy_from_slice(values),
            None => self.spilled.extend_from_slice(values),
        }
    }

    pub(crate) fn as_slice(&self) -> &[usize] {
        self.inline.get(..self.rank).unwrap_or(&self.spilled)
    }
}

impl FromIterator<usize> for Dims {
    fn from_iter<I: IntoIterator<Item = usize>>(values: I) -> Dims {
        let mut dims = Dims::default();
        for value in values {
            match dims.inline.get_mut(dims.rank) {
                Some(place) => *place = value,
                None if dims.spilled.is_empty() => {
                    dims.spilled.extend(dims.inline);
                    dims.spilled.push(value);
                }
                None => dims.spilled.push(value),
            }
            dims.rank += 1;
        }
        dims
    }
}

impl fmt::Debug for Dims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}

/// The most dimensions of a tensor, as in PyTorch.
pub(crate) const MOST_DIMENSIONS: usize = 64;

/// The number of elements of a tensor of these sizes whose elements have `size` bytes; refuses what no memory can hold, and
/// more dimensions than a tensor has.
pub(crate) fn count(sizes: &[usize], size: usize) -> Result<usize, Error> {
    if sizes.len() > MOST_DIMENSIONS {
        let message = format!("a tensor of {} dimensions, where there can be {MOST_DIMENSIONS}", sizes.len());
        return Err(Error::new(ErrorCode::Rank, message));
    }
    // Zero sizes do not excuse the others: each must still be a size that the C interface can carry.
    let within = |n: &usize| *n <= isize::MAX as usize;
    let wanted = sizes.iter().try_fold(1usize, |n, &d| n.checked_mul(d));
    match wanted {
        Some(n) if sizes.iter().all(within) && n.checked_mul(size).as_ref().is_some_and(within) => Ok(n),
        _ => Err(Error::new(ErrorCode::Size, format!("a tensor of sizes {sizes:?} does not fit in memory"))),
    }
}

/// Whether these strides are row-major contiguous. Strides of dimensions of size 1 do not matter, nor any of an empty
/// tensor.
pub(crate) fn is_contiguous(sizes: &[usize], strides: &[usize]) -> bool {
    let mut expected = 1;
    sizes.contains(&0)
        || sizes.iter().zip(strides).rev().all(|(&size, &stride)| {
            let fits = size == 1 || stride == expected;
            expected *= size;
            fits
        })
}

/// The largest element offset that these strides reach, or `None` where it overflows. Not for empty tensors.
pub(crate) fn last_offset(sizes: &[usize], strides: &[usize]) -> Option<usize> {
    sizes
        .iter()
        .zip(strides)
        .try_fold(0usize, |sum, (&size, &stride)| sum.checked_add((size - 1).checked_mul(stride)?))
}
