//! Complex numbers where only their parts can be stored: as pairs, along an axis more.

use aoti_runtime::{DType, DynTensor, Error, ModelInfo};

/// Complex numbers as their parts; other tensors as they are.
pub fn to_parts(tensor: &DynTensor) -> Result<DynTensor, Error> {
    let Some(part) = tensor.dtype().part() else { return Ok(tensor.clone()) };
    let sizes: Vec<usize> = tensor.sizes().iter().copied().chain([2]).collect();
    DynTensor::from_bytes(part, &sizes, tensor.bytes())
}

/// Pairs as complex numbers where those are wanted; any other tensor as it is.
pub fn of_parts(tensor: DynTensor, wanted: DType) -> Result<DynTensor, Error> {
    match tensor.sizes() {
        [sizes @ .., 2] if wanted.part() == Some(tensor.dtype()) => {
            DynTensor::from_bytes(wanted, sizes, tensor.bytes())
        }
        _ => Ok(tensor),
    }
}

/// Inputs as a model takes them, whose complex numbers a file may have as pairs.
pub fn for_model(inputs: Vec<DynTensor>, model: &ModelInfo) -> Result<Vec<DynTensor>, Error> {
    let wanted = model.inputs.iter().map(|input| Some(input.dtype)).chain(std::iter::repeat(None));
    let fit = |(tensor, wanted): (DynTensor, Option<DType>)| match wanted {
        Some(wanted) => of_parts(tensor, wanted),
        None => Ok(tensor),
    };
    inputs.into_iter().zip(wanted).map(fit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_pairs_have_the_same_bytes() {
        let bytes: Vec<u8> = (0..32).collect();
        let numbers = DynTensor::from_bytes(DType::C64, &[2, 2], &bytes).unwrap();
        let pairs = to_parts(&numbers).unwrap();
        assert_eq!((pairs.dtype(), pairs.sizes(), pairs.bytes()), (DType::F32, &[2, 2, 2][..], &bytes[..]));
        assert_eq!(of_parts(pairs.clone(), DType::C64).unwrap(), numbers);
        assert_eq!(of_parts(pairs.clone(), DType::F32).unwrap(), pairs);
        let three = DynTensor::from_bytes(DType::F32, &[3], &bytes[..12]).unwrap();
        assert_eq!(of_parts(three.clone(), DType::C64).unwrap(), three);
    }
}
