//! The data of parameters, buffers and constants: slices of the archive's entries, checked against what is said of
//! each tensor.
//!
//! A tensor that lies contiguous in its entry shares the file's bytes; any other is gathered into new ones.

use super::archive::{self, Archive};
use super::pickle;
use super::schema::{PayloadConfig, PayloadMeta, SymInt, TensorMeta};
use super::values::{self, read_json};
use crate::diagnostic::{Code, Diagnostic};
use crate::dtype::DType;
use crate::graph::{Constant, ConstantSource};
use bytes::Bytes;
use indexmap::IndexMap;
use std::cell::RefCell;

/// Where the archive keeps parameters and persistent buffers: what a state dict holds.
const WEIGHTS: &str = "weights";
/// Bytes of a tensor; more does not fit the address space of today's machines.
const MAX_BYTES: i64 = 1 << 47;
/// What gathering may allocate in all, whatever the size of the file; beyond it, at most four times the file.
const FREE_GATHER: usize = 64 << 20;

/// Where the data of every tensor is, by qualified name.
pub(super) struct Payloads<'a> {
    archive: &'a Archive,
    places: IndexMap<String, (&'static str, PayloadMeta)>,
    gathered: RefCell<Gathered>,
}

/// What was gathered so far: tensors of the same elements share them.
#[derive(Default)]
struct Gathered {
    /// By the address of the entry, which lives as long as the archive.
    data: IndexMap<(usize, Layout), Bytes>,
    bytes: usize,
}

impl<'a> Payloads<'a> {
    /// Reads the two tables of the archive.
    pub(super) fn read(archive: &'a Archive, model: &str) -> Result<Payloads<'a>, Diagnostic> {
        let mut places = IndexMap::new();
        for kind in [WEIGHTS, "constants"] {
            let path = format!("data/{kind}/{model}_{kind}_config.json");
            let Some(bytes) = archive.get(&path) else {
                if archive.get(&format!("data/{kind}/{model}.pt")).is_some() {
                    let message = format!("`data/{kind}/{model}.pt` is a pickle, as torch 2.8 writes it");
                    return Err(Diagnostic::new(Code::Version, message)
                        .help("export the model again with torch 2.9 or newer"));
                }
                continue;
            };
            let config: PayloadConfig = read_json(bytes, &path)?;
            for (name, meta) in config.config {
                places.entry(name).or_insert((kind, meta));
            }
        }
        Ok(Payloads { archive, places, gathered: RefCell::default() })
    }

    /// The plain tensors inside of the tensor subclass of this qualified name, by attribute; `None` where it is a plain tensor
    /// itself.
    pub(super) fn inner(&self, name: &str) -> Result<Option<Vec<(String, Constant)>>, Diagnostic> {
        let Some((kind, place)) = self.places.get(name).filter(|(_, place)| place.use_pickle) else {
            return Ok(None);
        };
        let path = format!("data/{kind}/{}", place.path_name);
        let Some(file) = self.archive.get(&path) else {
            return Err(weights(format!("`{path}`, which holds `{name}`, is not in the archive")));
        };
        let read = || {
            let entries = archive::saved(file).map_err(|finding| finding.message)?;
            pickle::inner_tensors(&entries)
        };
        let refused = |reason: String| {
            weights(format!("`{name}` is stored as a Python pickle in `{path}`, and {reason}"))
                .note("tensor subclasses and custom objects are stored so")
                .help("call `torchao.utils.unwrap_tensor_subclass(model)` before exporting, or replace it by a plain tensor")
        };
        let source = if *kind == WEIGHTS { ConstantSource::Weight } else { ConstantSource::Fixed };
        let constant = |inner: pickle::Inner| {
            let own = format!("{name}.{}", inner.name);
            let layout = Layout::new(inner.dtype, inner.sizes, inner.strides, inner.offset, &own)?;
            let data = self.data(&layout, &inner.data, &path, &own)?;
            let source = source.clone();
            let constant =
                Constant { name: own, dtype: layout.dtype, sizes: layout.sizes, data, source, groups: None };
            Ok((inner.name, constant))
        };
        read().map_err(refused)?.into_iter().map(constant).collect::<Result<_, _>>().map(Some)
    }

    /// The tensor of this qualified name.
    pub(super) fn constant(&self, name: &str) -> Result<Constant, Diagnostic> {
        let Some((kind, place)) = self.places.get(name) else {
            return Err(weights(format!("the archive has no data for `{name}`")));
        };
        let path = format!("data/{kind}/{}", place.path_name);
        let Some(meta) = &place.tensor_meta else {
            return Err(weights(format!("the archive does not say what `{name}` is")));
        };
        let Some(data) = self.archive.get(&path) else {
            return Err(weights(format!("`{path}`, which holds `{name}`, is not in the archive")));
        };
        let layout = Layout::read(meta, name)?;
        let data = self.data(&layout, data, &path, name)?;
        // What the archive keeps among the weights is the state dict; the rest belongs to the program.
        let source = if *kind == WEIGHTS { ConstantSource::Weight } else { ConstantSource::Fixed };
        let (name, dtype, sizes) = (name.to_owned(), layout.dtype, layout.sizes);
        Ok(Constant { name, dtype, sizes, data, source, groups: None })
    }

    /// The elements of a tensor. Strides of 0 make many of few bytes, so that what is gathered has a limit in all.
    fn data(&self, layout: &Layout, entry: &Bytes, path: &str, name: &str) -> Result<Bytes, Diagnostic> {
        if let Some(data) = layout.within(entry, path, name)? {
            return Ok(data);
        }
        let mut gathered = self.gathered.borrow_mut();
        let key = (entry.as_ptr().addr(), layout.clone());
        if let Some(data) = gathered.data.get(&key) {
            return Ok(data.clone());
        }
        let length = layout.length();
        let total = gathered.bytes.saturating_add(length);
        if total > FREE_GATHER.max(self.archive.bytes().saturating_mul(4)) {
            return Err(weights(format!(
                "`{name}` repeats the {} bytes of `{path}` into {length} bytes; with other tensors of the archive that \
                 would be {total}",
                entry.len()
            )));
        }
        let data = Bytes::from(layout.gather(entry, length));
        gathered.bytes = total;
        gathered.data.insert(key, data.clone());
        Ok(data)
    }
}

fn weights(message: impl Into<String>) -> Diagnostic {
    Diagnostic::new(Code::Weights, message)
}

/// Fixed sizes and strides in elements.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Layout {
    dtype: DType,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    offset: i64,
    /// Number of elements.
    numel: i64,
}

impl Layout {
    fn read(meta: &TensorMeta, name: &str) -> Result<Layout, Diagnostic> {
        let (dtype, is_complex) = values::element(meta.dtype)
            .map_err(|dtype| Diagnostic::new(Code::DType, format!("`{name}` is a tensor of `{dtype}`")))?;
        if meta.layout != values::STRIDED {
            return Err(weights(format!("`{name}` is not a dense tensor")));
        }
        let fixed = |value: &SymInt, what: &str| match value {
            SymInt::Int(value) if *value >= 0 => Ok(*value),
            SymInt::Int(value) => Err(weights(format!("a {what} of `{name}` is negative: {value}"))),
            SymInt::Expr(_) | SymInt::Unknown(_) => {
                Err(weights(format!("a {what} of `{name}` is not a number")))
            }
        };
        let sizes: Result<Vec<i64>, _> = meta.sizes.iter().map(|size| fixed(size, "size")).collect();
        let strides: Result<Vec<i64>, _> = meta.strides.iter().map(|step| fixed(step, "stride")).collect();
        let (mut sizes, mut strides) = (sizes?, strides?);
        let mut offset = fixed(&meta.storage_offset, "storage offset")?;
        if is_complex {
            // Its parts lie side by side: an axis of two more.
            let twice = |value: i64| {
                value.checked_mul(2).ok_or_else(|| weights(format!("a stride of `{name}` overflows")))
            };
            strides = strides.into_iter().map(twice).collect::<Result<_, _>>()?;
            offset = twice(offset)?;
            sizes.push(2);
            strides.push(1);
        }
        Layout::new(dtype, sizes, strides, offset, name)
    }

    fn new(
        dtype: DType,
        sizes: Vec<i64>,
        strides: Vec<i64>,
        offset: i64,
        name: &str,
    ) -> Result<Layout, Diagnostic> {
        if sizes.iter().chain(&strides).any(|value| *value < 0) || offset < 0 {
            return Err(weights(format!("a size or stride of `{name}` is negative")));
        }
        if sizes.len() != strides.len() || sizes.len() > values::MAX_RANK {
            return Err(weights(format!("`{name}` has {} sizes and {} strides", sizes.len(), strides.len())));
        }
        let bytes = sizes.iter().try_fold(dtype.size() as i64, |all, size| {
            all.checked_mul((*size).max(1)).filter(|bytes| *bytes <= MAX_BYTES)
        });
        let Some(bytes) = bytes else {
            return Err(weights(format!("the size of `{name}`, {sizes:?} of {dtype}, overflows")));
        };
        let numel = if sizes.contains(&0) { 0 } else { bytes / dtype.size() as i64 };
        Ok(Layout { dtype, sizes, strides, offset, numel })
    }

    fn is_contiguous(&self) -> bool {
        let mut expected = 1;
        self.sizes.iter().zip(&self.strides).rev().all(|(size, stride)| {
            let fits = *size == 1 || *stride == expected;
            expected *= (*size).max(1);
            fits
        })
    }

    /// Offset of the element after the last one that is read.
    fn end(&self) -> Option<i64> {
        let steps = self.sizes.iter().zip(&self.strides);
        steps
            .map(|(size, stride)| (size - 1).checked_mul(*stride))
            .try_fold(self.offset, |sum, step| sum.checked_add(step?))
            .and_then(|last| last.checked_add(1))
    }

    /// The elements as they lie in an entry; `None` where they are inside of it and do not lie side by side.
    fn within(&self, entry: &Bytes, path: &str, name: &str) -> Result<Option<Bytes>, Diagnostic> {
        if self.numel == 0 {
            return Ok(Some(Bytes::new()));
        }
        let element = self.dtype.size();
        let end = self.end().and_then(|end| end.checked_mul(element as i64));
        let fits = end.and_then(|end| usize::try_from(end).ok()).is_some_and(|end| end <= entry.len());
        if !fits {
            return Err(weights(format!(
                "`{path}` has {} bytes; `{name}`, {:?} of {} at element {} with strides {:?}, does not fit",
                entry.len(),
                self.sizes,
                self.dtype,
                self.offset,
                self.strides
            )));
        }
        // The bounds above hold for every number below.
        let start = self.offset as usize * element;
        Ok(self.is_contiguous().then(|| entry.slice(start..start + self.length())))
    }

    /// Number of bytes of the elements, side by side.
    fn length(&self) -> usize {
        self.numel as usize * self.dtype.size()
    }

    fn gather(&self, entry: &[u8], length: usize) -> Vec<u8> {
        let element = self.dtype.size();
        let mut gathered = Vec::with_capacity(length);
        let mut index = vec![0i64; self.sizes.len()];
        let mut at = self.offset;
        loop {
            let start = at as usize * element;
            gathered.extend_from_slice(&entry[start..start + element]);
            let mut axis = self.sizes.len();
            loop {
                if axis == 0 {
                    return gathered;
                }
                axis -= 1;
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.sizes[axis] {
                    break;
                }
                at -= self.strides[axis] * self.sizes[axis];
                index[axis] = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(sizes: &[i64], strides: &[i64], offset: i64) -> Result<Layout, Diagnostic> {
        let ints = |values: &[i64]| values.iter().map(|value| SymInt::Int(*value)).collect();
        let meta = TensorMeta {
            dtype: 3,
            sizes: ints(sizes),
            strides: ints(strides),
            storage_offset: SymInt::Int(offset),
            layout: values::STRIDED,
        };
        Layout::read(&meta, "w")
    }

    fn data(layout: &Layout, entry: &Bytes) -> Result<Bytes, Diagnostic> {
        let gathered = || layout.gather(entry, layout.length()).into();
        Ok(layout.within(entry, "f", "w")?.unwrap_or_else(gathered))
    }

    #[test]
    fn contiguous_tensors_share_the_file() {
        let entry = Bytes::from((0u8..12).collect::<Vec<_>>());
        let data = data(&layout(&[2, 2], &[2, 1], 1).unwrap(), &entry).unwrap();
        assert_eq!(data.as_ptr(), entry[2..].as_ptr());
        assert_eq!(&data[..], &entry[2..10]);
    }

    #[test]
    fn strided_tensors_are_gathered() {
        let entry = Bytes::from((0u8..12).collect::<Vec<_>>());
        let transposed = data(&layout(&[2, 3], &[1, 2], 0).unwrap(), &entry).unwrap();
        assert_eq!(&transposed[..], [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]);
        let expanded = data(&layout(&[2, 2], &[0, 1], 4).unwrap(), &entry).unwrap();
        assert_eq!(&expanded[..], [8, 9, 10, 11, 8, 9, 10, 11]);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let entry = Bytes::from_static(&[0; 12]);
        for (sizes, strides, offset) in [
            (&[7i64][..], &[1i64][..], 0),
            (&[6], &[1], 1),
            (&[2, 2], &[i64::MAX, 1], 0),
            (&[1], &[1], i64::MAX),
        ] {
            let error = data(&layout(sizes, strides, offset).unwrap(), &entry).unwrap_err();
            assert_eq!(error.code, Code::Weights);
        }
        assert!(layout(&[-1], &[1], 0).is_err());
        assert!(layout(&[1 << 30, 1 << 30, 1 << 30], &[1, 1, 1], 0).is_err());
        assert!(layout(&[2], &[], 0).is_err());
        assert_eq!(data(&layout(&[0, 1 << 40], &[1, 1], 0).unwrap(), &entry).unwrap().len(), 0);
    }
}
