//! Tensors of a file: slices of it, or of files beside it, wherever they are stored as they are in memory.

use super::proto::tensor_proto::DataLocation;
use super::proto::{SparseTensorProto, TensorProto};
use super::types::{ElementType, Narrow, element_type};
use crate::dtype::{DType, bytes_of};
use crate::float8::Float8;
use crate::graph::Constant;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Bytes of a tensor; more does not fit the address space of today's machines.
const MAX_BYTES: usize = 1 << 47;

/// Files beside the model's, by the names that it knows them by.
pub(super) type Beside = BTreeMap<String, Bytes>;

/// A tensor and what it is of.
pub(super) struct Read {
    pub(super) constant: Constant,
    pub(super) narrow: Option<Narrow>,
}

/// Reads a tensor.
pub(super) fn read(proto: &TensorProto, beside: &Beside) -> Result<Read, String> {
    let named = |message: String| format!("tensor `{}`: {message}", proto.name());
    let ElementType { dtype, narrow } = element_type(proto.data_type()).map_err(named)?;
    let count = count(&proto.dims).map_err(named)?;
    let data = data(proto, dtype, narrow, count, beside).map_err(named)?;
    let expected = count.checked_mul(dtype.size()).filter(|bytes| *bytes <= MAX_BYTES);
    if expected != Some(data.len()) {
        return Err(named(format!("{} bytes for {count} elements of {dtype}", data.len())));
    }
    if dtype == DType::Bool && data.iter().any(|byte| *byte > 1) {
        let data: Vec<u8> = data.iter().map(|byte| u8::from(*byte != 0)).collect();
        return Ok(Read { constant: Constant::new(proto.name(), dtype, proto.dims.clone(), data), narrow });
    }
    Ok(Read { constant: Constant::new(proto.name(), dtype, proto.dims.clone(), data), narrow })
}

/// The number of elements of sizes.
fn count(dims: &[i64]) -> Result<usize, String> {
    let step = |n: usize, size: &i64| n.checked_mul(usize::try_from(*size).ok()?);
    let count = dims.iter().try_fold(1usize, step).filter(|count| *count <= MAX_BYTES);
    count.ok_or_else(|| format!("sizes {dims:?} are negative or too large"))
}

fn data(
    proto: &TensorProto,
    dtype: DType,
    narrow: Option<Narrow>,
    count: usize,
    beside: &Beside,
) -> Result<Bytes, String> {
    if proto.segment.is_some() {
        return Err("it is stored in segments, which nothing writes".to_owned());
    }
    let raw = if proto.data_location() == DataLocation::External {
        Some(external(proto, beside)?)
    } else {
        proto.raw_data.clone().filter(|raw| !raw.is_empty())
    };
    match (raw, narrow) {
        (Some(raw), None) => Ok(raw),
        (Some(raw), Some(narrow)) => unpacked(narrow, &raw, count).map(Bytes::from),
        (None, narrow) => listed(proto, dtype, narrow, count).map(Bytes::from),
    }
}

/// Elements of a list of numbers.
fn listed(
    proto: &TensorProto,
    dtype: DType,
    narrow: Option<Narrow>,
    count: usize,
) -> Result<Vec<u8>, String> {
    let ints = &proto.int32_data;
    if let Some(narrow @ (Narrow::F6E2M3 | Narrow::F6E3M2)) = narrow {
        // One element in each number.
        return Ok(ints.iter().map(|value| stored(narrow, *value as u8 & 63)).collect());
    }
    if let Some(narrow) = narrow {
        let packed: Vec<u8> = ints.iter().map(|value| *value as u8).collect();
        return unpacked(narrow, &packed, count);
    }
    Ok(match dtype {
        DType::F32 => bytes_of(&proto.float_data, &f32::to_le_bytes),
        DType::F64 => bytes_of(&proto.double_data, &f64::to_le_bytes),
        DType::I64 => bytes_of(&proto.int64_data, &i64::to_le_bytes),
        DType::U64 => bytes_of(&proto.uint64_data, &u64::to_le_bytes),
        DType::U32 => bytes_of(&proto.uint64_data, &|value: u64| (value as u32).to_le_bytes()),
        DType::I32 => bytes_of(ints, &i32::to_le_bytes),
        DType::I16 | DType::U16 | DType::F16 | DType::Bf16 => {
            bytes_of(ints, &|value: i32| (value as u16).to_le_bytes())
        }
        DType::I8 | DType::U8 | DType::Bool | DType::F8(_) => ints.iter().map(|value| *value as u8).collect(),
    })
}

/// A byte for each element of a type that files pack, lowest bits first.
pub(super) fn unpacked(narrow: Narrow, packed: &[u8], count: usize) -> Result<Vec<u8>, String> {
    let bits = narrow.bits();
    if Some(packed.len()) != count.checked_mul(bits).map(|all| all.div_ceil(8)) {
        return Err(format!("{} bytes for {count} elements of {bits} bits", packed.len()));
    }
    let element = |position: usize| {
        let at = position * bits;
        // Elements of six bits go across bytes.
        let next = packed.get(at / 8 + 1).copied().unwrap_or(0);
        let both = u16::from_le_bytes([packed[at / 8], next]);
        stored(narrow, (both >> (at % 8)) as u8 & ((1u8 << bits) - 1))
    };
    Ok((0..count).map(element).collect())
}

/// The bits of an element, alone in its byte, as they are in memory.
fn stored(narrow: Narrow, bits: u8) -> u8 {
    match narrow.float() {
        Some(form) => Float8::E4M3Fn.from_f32(form.number(bits) as f32),
        None if narrow.range().0 < 0.0 => {
            let top = 8 - narrow.bits();
            ((bits << top) as i8 >> top) as u8
        }
        None => bits,
    }
}

/// A slice of a file beside the model's.
fn external(proto: &TensorProto, beside: &Beside) -> Result<Bytes, String> {
    let entry = |key: &str| {
        let mut entries = proto.external_data.iter();
        entries.find(|entry| entry.key() == key).map(|entry| entry.value())
    };
    let number = |key: &str| {
        let text = entry(key);
        let read = |text: &str| text.trim().parse::<usize>();
        text.map(read).transpose().map_err(|_| format!("its `{key}` is no number"))
    };
    let location = entry("location").ok_or("it is in another file, which has no name")?;
    let file = beside.get(location).ok_or_else(|| format!("the file `{location}` is not there"))?;
    let offset = number("offset")?.unwrap_or(0);
    let rest = file.len().checked_sub(offset);
    let length = match (number("length")?, rest) {
        (Some(length), Some(rest)) if length <= rest => length,
        (None, Some(rest)) => rest,
        _ => return Err(format!("it ends behind the end of `{location}`")),
    };
    Ok(file.slice(offset..offset + length))
}

/// A sparse tensor, made dense.
pub(super) fn dense(proto: &SparseTensorProto, beside: &Beside) -> Result<Read, String> {
    let missing = || "a sparse tensor without values or indices".to_owned();
    let values = read(proto.values.as_ref().ok_or_else(missing)?, beside)?;
    let indices = read(proto.indices.as_ref().ok_or_else(missing)?, beside)?.constant;
    let size = values.constant.dtype.size();
    let total = count(&proto.dims)?;
    let bytes = total.checked_mul(size).filter(|bytes| *bytes <= 1 << 32).ok_or("too many elements")?;
    let mut data = vec![0; bytes];
    let index = |at: usize| -> Option<i64> {
        Some(i64::from_le_bytes(indices.data.get(at * 8..at * 8 + 8)?.try_into().ok()?))
    };
    let rank = proto.dims.len();
    let is_linear = indices.sizes.len() < 2;
    for (number, value) in values.constant.data.chunks_exact(size).enumerate() {
        let at = if is_linear {
            index(number)
        } else {
            let coords = proto.dims.iter().enumerate();
            coords
                .map(|(axis, extent)| (index(number * rank + axis), *extent))
                .try_fold(0, |at, (own, extent)| {
                    own.filter(|own| (0..extent).contains(own)).map(|own| at * extent + own)
                })
        };
        let at = at.and_then(|at| usize::try_from(at).ok()).filter(|at| *at < total);
        let at = at.ok_or("an index of a sparse tensor is outside of it")? * size;
        data[at..at + size].copy_from_slice(value);
    }
    let constant = Constant::new(values.constant.name, values.constant.dtype, proto.dims.clone(), data);
    Ok(Read { constant, narrow: values.narrow })
}
