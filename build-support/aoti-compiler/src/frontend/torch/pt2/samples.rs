//! The inputs that a program was exported with, which `torch.export.save` keeps in the archive.
//!
//! Only where they lie is of interest: tests read them there.

use super::archive::{self, Archive};
use super::pickle;
use crate::dtype::DType;
use bytes::Bytes;

/// A tensor among the sample inputs of an archive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SampleInput {
    /// Type of its elements.
    pub dtype: DType,
    /// Its sizes.
    pub sizes: Vec<u64>,
    /// Bytes of the file before its elements, which are row-major contiguous.
    pub offset: u64,
}

/// The tensors among the sample inputs, in the order of the program's inputs. None where there are no such, where one does not lie in
/// the file as it is, or is not understood.
pub fn sample_inputs(file: &Bytes) -> Option<Vec<SampleInput>> {
    let archive = Archive::open(file).ok()?;
    let path = format!("data/sample_inputs/{}.pt", archive.model_name().ok()?);
    let entries = archive::saved(archive.get(&path)?).ok()?;
    let tensors = pickle::tensors(&entries).ok()?;
    tensors.into_iter().map(|tensor| placed(&tensor, file)).collect()
}

fn placed(tensor: &pickle::Inner, file: &Bytes) -> Option<SampleInput> {
    let sizes: Vec<u64> = tensor.sizes.iter().map(|size| u64::try_from(*size).ok()).collect::<Option<_>>()?;
    let mut step = 1u64;
    for (size, stride) in sizes.iter().zip(&tensor.strides).rev() {
        if *size > 1 && u64::try_from(*stride) != Ok(step) {
            return None;
        }
        step = step.checked_mul((*size).max(1))?;
    }
    let count = if sizes.contains(&0) { 0 } else { step };
    let bytes = tensor.dtype.size() as u64;
    let begin = u64::try_from(tensor.offset).ok()?.checked_mul(bytes)?;
    let end = count.checked_mul(bytes)?.checked_add(begin)?;
    if end > tensor.data.len() as u64 {
        return None;
    }
    // The entry is a part of the file: nothing is compressed, and nothing was copied.
    let at = (tensor.data.as_ptr().addr()).checked_sub(file.as_ptr().addr())?;
    let is_inside = at.checked_add(tensor.data.len()).is_some_and(|end| end <= file.len());
    is_inside.then_some(SampleInput { dtype: tensor.dtype, sizes, offset: at as u64 + begin })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(data: Bytes, sizes: &[i64], strides: &[i64], offset: i64) -> pickle::Inner {
        let (sizes, strides) = (sizes.to_vec(), strides.to_vec());
        pickle::Inner { name: String::new(), dtype: DType::F32, sizes, strides, offset, data }
    }

    #[test]
    fn tensors_are_found_where_they_lie_in_the_file() {
        let file = Bytes::from(vec![0u8; 100]);
        let part = file.slice(20..68);
        let of = |sizes: &[i64], strides: &[i64], offset| {
            placed(&tensor(part.clone(), sizes, strides, offset), &file).map(|sample| sample.offset)
        };
        assert_eq!(of(&[3, 4], &[4, 1], 0), Some(20));
        assert_eq!(of(&[2, 1, 4], &[4, 9, 1], 4), Some(36));
        assert_eq!(of(&[], &[], 11), Some(64));
        // Transposed, beyond its entry, and of another file.
        assert_eq!(of(&[3, 4], &[1, 3], 0), None);
        assert_eq!(of(&[3, 4], &[4, 1], 1), None);
        assert_eq!(placed(&tensor(Bytes::from(vec![0u8; 48]), &[3, 4], &[4, 1], 0), &file), None);
    }
}
