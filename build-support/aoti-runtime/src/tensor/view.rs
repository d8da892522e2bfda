//! A borrowed tensor whose element type is known to the compiler: what the fields of generated `Inputs` hold.

use super::dims::{self, Dims};
use crate::{AnyView, Element, Error, ErrorCode};
use std::fmt;

/// A borrowed tensor. Row-major contiguous unless made by [`TensorView::strided`].
#[derive(Clone)]
pub struct TensorView<'a, T> {
    data: &'a [T],
    sizes: Dims,
    /// In elements; `None` for row-major contiguous.
    strides: Option<Dims>,
}

impl<'a, T: Element> TensorView<'a, T> {
    /// Views `data` as a row-major tensor. Its length must be the product of `sizes`.
    pub fn new(data: &'a [T], sizes: &[usize]) -> Result<Self, Error> {
        let count = dims::count(sizes, size_of::<T>())?;
        if count != data.len() {
            let message = format!("data has {} elements, but sizes {sizes:?} need {count}", data.len());
            return Err(Error::new(ErrorCode::Size, message));
        }
        Ok(TensorView { data, sizes: Dims::new(sizes), strides: None })
    }

    /// Views `data` with the given strides, in elements, outermost first; 0 repeats a dimension. Models take only
    /// row-major inputs, so a run copies such a view into its workspace first, unless it is row-major after all.
    pub fn strided(data: &'a [T], sizes: &[usize], strides: &[usize]) -> Result<Self, Error> {
        let count = dims::count(sizes, size_of::<T>())?;
        let refuse = |what: &str| {
            let message =
                format!("strides {strides:?} {what} for sizes {sizes:?} and {} elements", data.len());
            Err(Error::new(ErrorCode::Stride, message))
        };
        if strides.len() != sizes.len() {
            let message = format!("{} strides for {} sizes", strides.len(), sizes.len());
            return Err(Error::new(ErrorCode::Stride, message));
        }
        if count > 0 && dims::last_offset(sizes, strides).is_none_or(|last| last >= data.len()) {
            return refuse("reach outside the data");
        }
        if dims::is_contiguous(sizes, strides) {
            return Ok(TensorView { data: &data[..count], sizes: Dims::new(sizes), strides: None });
        }
        Ok(TensorView { data, sizes: Dims::new(sizes), strides: Some(Dims::new(strides)) })
    }

    /// Views one element as a tensor without dimensions.
    pub fn scalar(value: &'a T) -> Self {
        TensorView { data: std::slice::from_ref(value), sizes: Dims::default(), strides: None }
    }

    /// The sizes, outermost first.
    pub fn sizes(&self) -> &[usize] {
        self.sizes.as_slice()
    }

    /// The strides in elements, or `None` for row-major contiguous.
    pub fn strides(&self) -> Option<&[usize]> {
        self.strides.as_ref().map(Dims::as_slice)
    }

    /// The elements in memory order.
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// The same view with its element type as a value.
    pub fn erase(&self) -> AnyView<'_> {
        AnyView::new(self)
    }
}

impl<T: Element> fmt::Debug for TensorView<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("TensorView");
        debug.field("dtype", &T::DTYPE).field("sizes", &self.sizes());
        debug.field("strides", &self.strides()).finish_non_exhaustive()
    }
}

impl<'a, T: Element> From<&'a [T]> for TensorView<'a, T> {
    fn from(data: &'a [T]) -> Self {
        TensorView { data, sizes: Dims::new(&[data.len()]), strides: None }
    }
}

impl<'a, T: Element> From<&'a Vec<T>> for TensorView<'a, T> {
    fn from(data: &'a Vec<T>) -> Self {
        data.as_slice().into()
    }
}

impl<'a, T: Element, const A: usize> From<&'a [T; A]> for TensorView<'a, T> {
    fn from(data: &'a [T; A]) -> Self {
        TensorView { data, sizes: Dims::new(&[A]), strides: None }
    }
}

impl<'a, T: Element, const A: usize, const B: usize> From<&'a [[T; B]; A]> for TensorView<'a, T> {
    fn from(data: &'a [[T; B]; A]) -> Self {
        TensorView { data: data.as_flattened(), sizes: Dims::new(&[A, B]), strides: None }
    }
}

impl<'a, T: Element, const A: usize, const B: usize, const C: usize> From<&'a [[[T; C]; B]; A]>
    for TensorView<'a, T>
{
    fn from(data: &'a [[[T; C]; B]; A]) -> Self {
        let data = data.as_flattened().as_flattened();
        TensorView { data, sizes: Dims::new(&[A, B, C]), strides: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_give_their_sizes() {
        assert_eq!(TensorView::from(&[[1i64, 2, 3], [4, 5, 6]]).sizes(), [2, 3]);
        assert_eq!(TensorView::from(&[[[1f32; 4]; 3]; 2]).sizes(), [2, 3, 4]);
        assert_eq!(TensorView::from(&vec![true, false]).sizes(), [2]);
        assert_eq!(TensorView::scalar(&1u8).sizes(), [0usize; 0]);
    }

    #[test]
    fn a_length_that_is_not_the_product_of_sizes_is_refused() {
        let error = TensorView::new(&[0f32; 5], &[2, 3]).unwrap_err();
        assert_eq!(error.code(), ErrorCode::Size);
        assert_eq!(error.message(), "data has 5 elements, but sizes [2, 3] need 6");
        assert!(TensorView::new(&[0f32; 0], &[0, usize::MAX]).is_err());
        assert!(TensorView::new(&[0f32; 1], &[usize::MAX, usize::MAX]).is_err());
    }

    #[test]
    fn strides_are_kept_inside_the_data() {
        let data = [0f32; 6];
        assert!(TensorView::strided(&data, &[3, 2], &[1, 3]).unwrap().strides().is_some());
        assert!(TensorView::strided(&data, &[2, 3], &[3, 1]).unwrap().strides().is_none());
        assert!(TensorView::strided(&data, &[1, 6], &[77, 1]).unwrap().strides().is_none());
        assert!(TensorView::strided(&data, &[1, 3], &[77, 2]).is_ok());
        assert!(TensorView::strided(&data, &[2, 3], &[4, 1]).is_err_and(|e| e.code() == ErrorCode::Stride));
        assert!(TensorView::strided(&data, &[2], &[usize::MAX]).is_err());
        assert!(TensorView::strided(&data, &[0], &[usize::MAX]).is_ok());
        assert!(TensorView::strided(&data, &[4], &[0]).unwrap().strides().is_some());
    }

    #[test]
    fn many_dimensions_are_kept() {
        let sizes = [1, 2, 1, 2, 1, 2, 1, 2, 1, 2];
        assert_eq!(TensorView::new(&[0u8; 32], &sizes).unwrap().sizes(), sizes);
        assert_eq!(TensorView::strided(&[7u8], &[1; 64], &[3; 64]).unwrap().sizes(), [1; 64]);
    }

    #[test]
    fn more_dimensions_than_sixty_four_are_refused() {
        let many = vec![1; 1_000_000];
        let refused = [
            TensorView::new(&[7u8], &many).map(drop),
            TensorView::strided(&[7u8], &many, &many).map(drop),
            TensorView::strided(&[7u8], &[1; 65], &[0; 65]).map(drop),
            crate::DynTensor::zeros(crate::DType::U8, &many).map(drop),
            crate::DynTensor::from_bytes(crate::DType::U8, &many, &[7]).map(drop),
            crate::DynTensor::empty(crate::DType::U8).resize(&many),
            crate::Tensor::<u8>::zeros(&many).map(drop),
            crate::Tensor::from_slice(&[7u8], &many).map(drop),
        ];
        for error in refused.map(Result::unwrap_err) {
            assert_eq!(error.code(), ErrorCode::Rank);
            assert!(error.message().len() < 100, "{error}");
        }
        let error = TensorView::strided(&[7u8], &[1], &many).unwrap_err();
        assert_eq!(error.message(), "1000000 strides for 1 sizes");
    }
}
