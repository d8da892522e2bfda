//! States as bytes, to be kept in a file and taken up later, by another process too.
//!
//! The form: eight bytes that say what it is, then for each tensor its name, element type and sizes, then its values. All numbers
//! have 64 bits, and their bytes and those of the values are in the order of the machine, which the first eight tell.

use crate::{DType, DynTensor, Error, ErrorCode, State};

/// `aotistat` as a number, so that a machine of another byte order reads another word.
const MAGIC: u64 = u64::from_le_bytes(*b"aotistat");

impl State {
    /// All its values, with the names, types and sizes of its tensors.
    ///
    /// # Errors
    /// What goes wrong on a device, and where there is no memory for them.
    pub fn save(&self) -> Result<Vec<u8>, Error> {
        let mut out = Vec::with_capacity(self.bytes() + 64 * (1 + self.tensors().len()));
        let number = |out: &mut Vec<u8>, value: u64| out.extend_from_slice(&value.to_ne_bytes());
        number(&mut out, MAGIC);
        number(&mut out, self.tensors().len() as u64);
        for tensor in self.tensors() {
            let values = self.read(tensor.name())?;
            number(&mut out, tensor.name().len() as u64);
            out.extend_from_slice(tensor.name().as_bytes());
            number(&mut out, tensor.dtype().code() as u64);
            number(&mut out, tensor.sizes().len() as u64);
            tensor.sizes().iter().for_each(|size| number(&mut out, *size as u64));
            out.extend_from_slice(values.bytes());
        }
        Ok(out)
    }

    /// Takes up what [`State::save`] gave of a state of the same tensors, in this process or another, of this build of the model
    /// or another. Where that fails, some tensors may have the new values.
    ///
    /// # Errors
    /// Bytes that are not those of a state, or of one with other tensors, and what goes wrong on a device.
    pub fn restore(&mut self, saved: &[u8]) -> Result<(), Error> {
        let mut saved = Saved(saved);
        if saved.number()? != MAGIC {
            return Err(Error::new(ErrorCode::Size, "these are not the bytes of a saved state"));
        }
        let tensors: Vec<(String, DType, Vec<usize>)> = self
            .tensors()
            .iter()
            .map(|tensor| (tensor.name().to_owned(), tensor.dtype(), tensor.sizes().to_vec()))
            .collect();
        if saved.number()? != tensors.len() as u64 {
            return Err(Error::new(ErrorCode::Count, "the saved state has another number of tensors"));
        }
        for (name, dtype, sizes) in tensors {
            let length = saved.number()?;
            let is_same = saved.take(length)? == name.as_bytes()
                && saved.number()? == dtype.code() as u64
                && saved.number()? == sizes.len() as u64;
            let mut are_same = is_same;
            for size in &sizes {
                are_same = are_same && saved.number()? == *size as u64;
            }
            if !are_same {
                let message = format!(
                    "the saved state has another tensor in the place of `{name}`: {dtype} of sizes {sizes:?}"
                );
                return Err(Error::new(ErrorCode::Size, message));
            }
            let bytes = sizes.iter().product::<usize>() * dtype.size();
            let values = DynTensor::from_bytes(dtype, &sizes, saved.take(bytes as u64)?)?;
            self.write(&name, &values.view())?;
        }
        if saved.0.is_empty() {
            Ok(())
        } else {
            Err(Error::new(ErrorCode::Size, "the saved state is too long"))
        }
    }
}

/// What is left of the bytes of a state.
struct Saved<'a>(&'a [u8]);

impl<'a> Saved<'a> {
    fn take(&mut self, bytes: u64) -> Result<&'a [u8], Error> {
        let end = usize::try_from(bytes).ok().filter(|end| *end <= self.0.len());
        let end = end.ok_or_else(|| Error::new(ErrorCode::Size, "the saved state ends too soon"))?;
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        Ok(taken)
    }

    fn number(&mut self) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_ne_bytes(bytes))
    }
}
