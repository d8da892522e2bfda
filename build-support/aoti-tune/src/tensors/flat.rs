//! Tensors in the flat files of the harness (see `harness.c`): a C program has no JSON to read. They hold every element type,
//! so that `tune` and its worker use them too.

use std::path::Path;

use aoti_runtime::{DType, DynTensor};

use crate::error::Error;

const MAGIC: &[u8; 8] = b"AOTIFLAT";

/// Writes tensors in order.
pub fn write(path: &Path, tensors: &[DynTensor]) -> Result<(), Error> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend((tensors.len() as i64).to_le_bytes());
    for tensor in tensors {
        bytes.extend(tensor.dtype().code().to_le_bytes());
        bytes.extend((tensor.sizes().len() as i32).to_le_bytes());
        bytes.extend(tensor.sizes().iter().flat_map(|&size| (size as i64).to_le_bytes()));
        bytes.extend(tensor.bytes());
    }
    fs_err::write(path, bytes).map_err(Error::machine("write", path))
}

/// Reads tensors in order.
pub fn read(path: &Path) -> Result<Vec<DynTensor>, Error> {
    let bytes = crate::files::map(path)?;
    parse(&bytes)
        .ok_or_else(|| Error::Machine(format!("`{}` is not what the harness writes", path.display())))
}

fn parse(bytes: &[u8]) -> Option<Vec<DynTensor>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let count = number(&mut rest)?;
    let mut tensors = Vec::new();
    for _ in 0..count {
        let dtype = DType::from_code(i32::from_le_bytes(take(&mut rest)?))?;
        let rank = i32::from_le_bytes(take(&mut rest)?);
        let sizes = (0..rank).map(|_| number(&mut rest)).collect::<Option<Vec<usize>>>()?;
        let elements = sizes.iter().try_fold(1usize, |product, &size| product.checked_mul(size))?;
        let (data, behind) = rest.split_at_checked(elements.checked_mul(dtype.size())?)?;
        rest = behind;
        tensors.push(DynTensor::from_bytes(dtype, &sizes, data).ok()?);
    }
    rest.is_empty().then_some(tensors)
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    usize::try_from(i64::from_le_bytes(take(rest)?)).ok()
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, behind) = rest.split_first_chunk::<N>()?;
    *rest = behind;
    Some(*head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensors() -> Vec<DynTensor> {
        let rows = DynTensor::from_bytes(DType::I16, &[2, 1], &[1, 2, 3, 4]).unwrap();
        let nothing = DynTensor::from_bytes(DType::F64, &[3, 0], &[]).unwrap();
        vec![rows, nothing, DynTensor::from_bytes(DType::Bool, &[], &[1]).unwrap()]
    }

    #[test]
    fn tensors_round_trip() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensors");
        write(&path, &tensors()).unwrap();
        assert_eq!(read(&path).unwrap(), tensors());
    }

    #[test]
    fn what_is_cut_short_or_too_long_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tensors");
        write(&path, &tensors()).unwrap();
        let whole = fs_err::read(&path).unwrap();
        for length in 0..whole.len() {
            assert_eq!(parse(&whole[..length]), None, "{length}");
        }
        assert_eq!(parse(&[whole.as_slice(), &[0]].concat()), None);
        let mut huge = whole.clone();
        huge[24..32].copy_from_slice(&i64::MAX.to_le_bytes());
        assert_eq!(parse(&huge), None);
    }
}
