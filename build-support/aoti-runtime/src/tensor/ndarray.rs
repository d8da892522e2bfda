//! Tensors as arrays of the `ndarray` crate, and the reverse, without copies.

use ::ndarray::{ArrayBase, ArrayView, ArrayViewMut, Data, Dimension, IxDyn, ShapeBuilder};

use super::{Tensor, TensorView};
use crate::{Element, Error, ErrorCode};

/// An array whose elements lie side by side, in any order of dimensions: whole arrays, and transposed ones.
///
/// # Errors
/// [`ErrorCode::Stride`] for an array with gaps, repeated or reversed dimensions; `as_standard_layout` copies it.
impl<'a, T: Element, S: Data<Elem = T>, D: Dimension> TryFrom<&'a ArrayBase<S, D>> for TensorView<'a, T> {
    type Error = Error;

    fn try_from(array: &'a ArrayBase<S, D>) -> Result<Self, Error> {
        let strides: Result<Vec<usize>, _> =
            array.strides().iter().map(|&stride| usize::try_from(stride)).collect();
        let (Ok(strides), Some(data)) = (strides, array.as_slice_memory_order()) else {
            let (sizes, strides) = (array.shape(), array.strides());
            let message = format!(
                "an array of sizes {sizes:?} with strides {strides:?} is not contiguous: copy it with `as_standard_layout`"
            );
            return Err(Error::new(ErrorCode::Stride, message));
        };
        TensorView::strided(data, array.shape(), &strides)
    }
}

impl<'a, T: Element> From<&'a Tensor<T>> for ArrayView<'a, T, IxDyn> {
    fn from(tensor: &'a Tensor<T>) -> Self {
        ArrayView::from_shape(tensor.sizes(), tensor.as_slice())
            .expect("tensors have as many elements as that")
    }
}

impl<'a, T: Element> From<&'a mut Tensor<T>> for ArrayViewMut<'a, T, IxDyn> {
    fn from(tensor: &'a mut Tensor<T>) -> Self {
        let sizes = tensor.sizes().to_vec();
        ArrayViewMut::from_shape(sizes, tensor.as_mut_slice()).expect("tensors have as many elements as that")
    }
}

/// # Errors
/// [`ErrorCode::Stride`] for what the crate does not take: strides beyond `isize`, say.
impl<'a, T: Element> TryFrom<&TensorView<'a, T>> for ArrayView<'a, T, IxDyn> {
    type Error = Error;

    fn try_from(view: &TensorView<'a, T>) -> Result<Self, Error> {
        let sizes = IxDyn(view.sizes());
        let array = match view.strides() {
            Some(strides) => ArrayView::from_shape(sizes.strides(IxDyn(strides)), view.data()),
            None => ArrayView::from_shape(sizes, view.data()),
        };
        array.map_err(|error| Error::new(ErrorCode::Stride, format!("{view:?} is no array: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Array1, Array2, ArrayViewD, array, s};

    #[test]
    fn arrays_are_tensors_in_place() {
        let rows = array![[1f32, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let view = TensorView::try_from(&rows).unwrap();
        assert_eq!((view.sizes(), view.strides()), (&[2, 3][..], None));
        assert_eq!(view.data().as_ptr(), rows.as_ptr());
        let columns = rows.t();
        let view = TensorView::try_from(&columns).unwrap();
        assert_eq!((view.sizes(), view.strides()), (&[3, 2][..], Some(&[1, 3][..])));
        assert_eq!(TensorView::try_from(&Array1::<i64>::zeros(0)).unwrap().sizes(), [0]);
        assert!(TensorView::try_from(&ndarray::arr0(1u8)).unwrap().sizes().is_empty());
    }

    #[test]
    fn what_is_not_contiguous_is_refused_and_copies_are_not() {
        let whole = Array2::<f32>::from_shape_fn((4, 4), |(i, j)| (4 * i + j) as f32);
        for part in [whole.slice(s![.., ..2]), whole.slice(s![..;-1, ..]), whole.slice(s![..;2, ..])] {
            let error = TensorView::try_from(&part).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Stride);
            assert!(error.message().contains("as_standard_layout"), "{error}");
            let copy = part.as_standard_layout();
            assert_eq!(TensorView::try_from(&copy).unwrap().sizes(), part.shape());
        }
    }

    #[test]
    fn tensors_are_arrays_in_place() {
        let mut tensor = Tensor::from_slice(&[1i64, 2, 3, 4, 5, 6], &[2, 3]).unwrap();
        let mut array = ndarray::ArrayViewMutD::from(&mut tensor);
        array[[1, 0]] = 40;
        let array = ArrayViewD::from(&tensor);
        assert_eq!(array.shape(), [2, 3]);
        assert_eq!((array[[0, 2]], array[[1, 0]]), (3, 40));
        let data = [1u8, 2, 3, 4, 5, 6];
        let columns = TensorView::strided(&data, &[3, 2], &[1, 3]).unwrap();
        let array = ArrayViewD::try_from(&columns).unwrap();
        assert_eq!(array, array![[1, 4], [2, 5], [3, 6]].into_dyn());
    }
}
