//! The tests that generated modules have: a run on the sample inputs of a model, compared with its sample outputs.
//!
//! The build looks at the header of the samples' file and writes down where each tensor lies, so a test reads bytes and needs no
//! crate that knows the format.

use crate::float8::{f8e4m3fn, f8e4m3fnuz, f8e5m2, f8e5m2fnuz, f8e8m0fnu};
use crate::{DType, DynTensor, Element, Model};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

/// How far floating-point values may be apart, as for `cargo aoti verify`: `|a - b| <= ATOL + RTOL * |b|`.
const ATOL: f64 = 1e-4;
const RTOL: f64 = 1e-3;

/// A tensor in a file of samples.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Which input or output of the model it is.
    pub index: usize,
    /// Its sizes.
    pub sizes: &'static [usize],
    /// Where its elements begin in the file.
    pub offset: u64,
}

/// Runs the model on samples of all its inputs; a difference is an error that names the output and the element. Without samples of
/// outputs, code for each level is compared with that for the others.
pub fn check(model: &Model, file: &str, inputs: &[Sample], outputs: &[Sample]) -> Result<(), String> {
    let info = model.info();
    let mut opened = File::open(file).map_err(|error| format!("cannot open `{file}`: {error}"))?;
    let mut read = |sample: &Sample, dtype: DType| {
        tensor(&mut opened, sample, dtype).map_err(|error| format!("cannot read `{file}`: {error}"))
    };
    let given = inputs.iter().zip(&info.inputs).map(|(sample, input)| read(sample, input.dtype));
    let given = given.collect::<Result<Vec<_>, _>>()?;
    if outputs.is_empty() {
        return levels_agree(model, &given);
    }
    let found = run(model, &given)?;
    for sample in outputs {
        let (Some(found), Some(value)) = (found.get(sample.index), info.outputs.get(sample.index)) else {
            return Err(format!("the model has no output {}", sample.index));
        };
        compare(found, &read(sample, value.dtype)?)
            .map_err(|what| format!("output `{}` is not as in `{file}`: {what}", value.name))?;
    }
    Ok(())
}

/// Without expected outputs, all code that runs on this machine must give the same, within the tolerance. Integers may follow from which
/// of two floats is larger, and are not compared.
fn levels_agree(model: &Model, given: &[DynTensor]) -> Result<(), String> {
    if model.info().collectives > 0 {
        return Ok(());
    }
    let mut first: Option<(String, Vec<DynTensor>)> = None;
    for (name, model) in model.at_every_level() {
        let model = model.map_err(|error| format!("at level `{name}`: {error}"))?;
        let found = run(&model, given).map_err(|message| format!("at level `{name}`: {message}"))?;
        let Some((of, expected)) = &first else {
            first = Some((name, found));
            continue;
        };
        for ((found, expected), output) in found.iter().zip(expected).zip(&model.info().outputs) {
            let part = found.dtype().part().unwrap_or(found.dtype());
            if floats(found, part).is_some() {
                compare(found, expected).map_err(|what| {
                    format!("output `{}` at level `{name}` is not that at `{of}`: {what}", output.name)
                })?;
            }
        }
    }
    Ok(())
}

fn run(model: &Model, given: &[DynTensor]) -> Result<Vec<DynTensor>, String> {
    let info = model.info();
    let mut found: Vec<_> = info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut state =
        if info.state_bytes == 0 { None } else { Some(model.state().map_err(|e| e.to_string())?) };
    let views: Vec<_> = given.iter().map(DynTensor::view).collect();
    let mut targets: Vec<_> = found.iter_mut().collect();
    model.run_shared(&views, &mut targets, state.as_mut()).map_err(|error| error.to_string())?;
    Ok(found)
}

fn tensor(file: &mut File, sample: &Sample, dtype: DType) -> Result<DynTensor, String> {
    let mut tensor = DynTensor::zeros(dtype, sample.sizes).map_err(|error| error.to_string())?;
    let mut bytes = vec![0; tensor.bytes().len()];
    let read = file.seek(SeekFrom::Start(sample.offset)).and_then(|_| file.read_exact(&mut bytes));
    read.map_err(|error| error.to_string())?;
    tensor.bytes_mut().copy_from_slice(&bytes);
    tensor.settle_bools();
    Ok(tensor)
}

/// NaN equals NaN and infinities equal themselves; what is no floating-point number is equal or not.
fn compare(found: &DynTensor, expected: &DynTensor) -> Result<(), String> {
    if found.sizes() != expected.sizes() {
        return Err(format!("sizes {:?} instead of {:?}", found.sizes(), expected.sizes()));
    }
    if found.bytes() == expected.bytes() {
        return Ok(());
    }
    let part = found.dtype().part().unwrap_or(found.dtype());
    let (Some(a), Some(b)) = (floats(found, part), floats(expected, part)) else {
        let size = found.dtype().size();
        let pairs = found.bytes().chunks(size).zip(expected.bytes().chunks(size));
        let at = pairs.enumerate().find(|(_, (a, b))| a != b).map_or(0, |(at, _)| at);
        return Err(format!("element {at} of {} differs", found.len()));
    };
    let is_apart = |a: f64, b: f64| {
        let is_same = a == b || (a.is_nan() && b.is_nan());
        // Of a NaN this is false, and an infinity is near to nothing else.
        let is_near = b.is_finite() && (a - b).abs() <= ATOL + RTOL * b.abs();
        !is_same && !is_near
    };
    let apart: Vec<usize> = (0..a.len()).filter(|&at| is_apart(a[at], b[at])).collect();
    let Some(&at) = apart.first() else { return Ok(()) };
    let (n, of) = (apart.len(), a.len());
    Err(format!("{n} of {of} elements differ, element {at} first: {} instead of {}", a[at], b[at]))
}

/// The elements of a tensor of floating-point numbers, or the parts of complex ones.
fn floats(tensor: &DynTensor, part: DType) -> Option<Vec<f64>> {
    fn small<T: Element>(tensor: &DynTensor, value: fn(T) -> f32) -> Vec<f64> {
        tensor.as_slice::<T>().unwrap_or_default().iter().map(|&x| f64::from(value(x))).collect()
    }
    let bytes = tensor.bytes();
    let halves = |value: fn(u16) -> f64| {
        bytes.chunks_exact(2).map(|element| value(u16::from_ne_bytes([element[0], element[1]]))).collect()
    };
    Some(match part {
        DType::F16 => halves(binary16),
        DType::Bf16 => halves(|bits| f64::from(f32::from_bits(u32::from(bits) << 16))),
        DType::F32 => {
            let value = |x: &[u8]| x.try_into().map_or(f64::NAN, |x| f64::from(f32::from_ne_bytes(x)));
            bytes.chunks_exact(4).map(value).collect()
        }
        DType::F64 => {
            bytes.chunks_exact(8).map(|x| x.try_into().map_or(f64::NAN, f64::from_ne_bytes)).collect()
        }
        DType::F8E4M3Fn => small(tensor, f8e4m3fn::to_f32),
        DType::F8E5M2 => small(tensor, f8e5m2::to_f32),
        DType::F8E4M3Fnuz => small(tensor, f8e4m3fnuz::to_f32),
        DType::F8E5M2Fnuz => small(tensor, f8e5m2fnuz::to_f32),
        DType::F8E8M0Fnu => small(tensor, f8e8m0fnu::to_f32),
        DType::Bool | DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::I64 => return None,
        DType::U16 | DType::U32 | DType::U64 => return None,
        // Seen as their parts.
        DType::C32 | DType::C64 | DType::C128 => return None,
    })
}

/// The value of an IEEE 754 binary16; there may be no `half` crate.
fn binary16(bits: u16) -> f64 {
    let sign = if bits >> 15 == 0 { 1.0 } else { -1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    sign * match exponent {
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Tensor, f16};

    #[test]
    fn halves_have_the_values_of_the_half_crate() {
        for bits in 0..=u16::MAX {
            let (own, other) = (binary16(bits), f64::from(f16::from_bits(bits)));
            assert!(own == other || own.is_nan() && other.is_nan(), "{bits:#x}: {own} {other}");
        }
    }

    #[test]
    fn a_difference_is_told_with_its_element() {
        let tensor = |values: &[f32]| Tensor::from_slice(values, &[values.len()]).unwrap().into_dyn();
        let same =
            compare(&tensor(&[1.0, f32::NAN, f32::INFINITY]), &tensor(&[1.0004, f32::NAN, f32::INFINITY]));
        assert_eq!(same, Ok(()));
        let error = compare(&tensor(&[1.0, 2.0, f32::NAN]), &tensor(&[1.0, 2.1, 3.0])).unwrap_err();
        assert_eq!(
            error,
            format!("2 of 3 elements differ, element 1 first: 2 instead of {}", f64::from(2.1f32))
        );
        assert!(compare(&tensor(&[1.0]), &tensor(&[f32::INFINITY])).is_err());
        assert!(compare(&tensor(&[1.0]), &tensor(&[1.0, 1.0])).unwrap_err().starts_with("sizes [1]"));
        let whole = |values: &[i64]| Tensor::from_slice(values, &[values.len()]).unwrap().into_dyn();
        assert_eq!(compare(&whole(&[1, 5, 3]), &whole(&[1, 2, 3])), Err("element 1 of 3 differs".to_owned()));
    }
}
