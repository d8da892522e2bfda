//! Looks at what a model is given and what its kernels write: keeps some of it, and finds the first that is not a number.

use std::path::Path;

use aoti_runtime::{DType, DynTensor, Error, KernelEvent, KernelInfo, KernelPhase, ModelInfo, bf16, f16};

use crate::failure::Failure;
use crate::tensors::file;
use aoti_tune::tensors::complex;

/// What is looked for in a run.
pub(super) struct Taps {
    /// Positions of kernels with positions of their outputs.
    wanted: Vec<(usize, usize)>,
    check_nan: bool,
    found: Vec<(String, DynTensor)>,
    faulty: Option<String>,
    failed: Option<Error>,
}

impl Taps {
    /// Taps for kernels or values of these names.
    pub(super) fn new(info: &ModelInfo, names: &[String], check_nan: bool) -> Result<Taps, Failure> {
        let mut wanted = Vec::new();
        for name in names {
            let before = wanted.len();
            for (index, kernel) in info.kernels.iter().enumerate() {
                let whole = kernel.name == *name;
                let outputs = kernel.outputs.iter().enumerate();
                let of_name = outputs.filter(|(_, output)| whole || output.name == *name);
                wanted.extend(of_name.map(|(output, _)| (index, output)));
            }
            if wanted.len() == before {
                return Err(unknown(info, name));
            }
        }
        Ok(Taps { wanted, check_nan, found: Vec::new(), faulty: None, failed: None })
    }

    /// Looks at what the run is given: kernels only pass on what is already there.
    pub(super) fn look_at_inputs(&mut self, info: &ModelInfo, inputs: &[DynTensor]) {
        if !self.check_nan {
            return;
        }
        let mut found = info.inputs.iter().zip(inputs).filter_map(|(input, tensor)| {
            let what = first_not_finite(tensor)?;
            Some(format!("input `{}` holds {what}, before any kernel runs", input.name))
        });
        self.faulty = found.next();
    }

    /// To be told of every kernel of a run.
    pub(super) fn watch(&mut self, event: KernelEvent<'_>) {
        let KernelPhase::End(outputs) = event.phase else { return };
        for (position, view) in outputs.iter().enumerate() {
            let keep = self.wanted.contains(&(event.index, position));
            let check = self.check_nan && self.faulty.is_none();
            if !keep && !check {
                continue;
            }
            let tensor = match view.to_tensor() {
                Ok(tensor) => tensor,
                Err(error) => {
                    self.failed.get_or_insert(error);
                    continue;
                }
            };
            if let Some(what) = first_not_finite(&tensor).filter(|_| check) {
                self.faulty = Some(describe(event.kernel, position, &what));
            }
            if keep {
                let name = tensor_name(event.kernel, position);
                // A kernel in a loop writes again: the last is kept.
                self.found.retain(|(other, _)| *other != name);
                self.found.push((name, tensor));
            }
        }
    }

    /// Writes what was kept to a file and says what was found.
    pub(super) fn finish(self, path: &Path) -> Result<(), Failure> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        if !self.wanted.is_empty() {
            file::write_named(path, &self.found)?;
        }
        match self.faulty {
            Some(text) => Err(Failure::User(text)),
            None => Ok(()),
        }
    }
}

fn unknown(info: &ModelInfo, name: &str) -> Failure {
    let kernels: Vec<&str> = info.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    Failure::User(format!(
        "no kernel and no value that a kernel writes is called `{name}`; kernels are `{}`",
        kernels.join("`, `")
    ))
}

/// The value's own name, or its kernel's and its position.
fn tensor_name(kernel: &KernelInfo, position: usize) -> String {
    match kernel.outputs[position].name.as_str() {
        "" => format!("{}.{position}", kernel.name),
        name => name.to_owned(),
    }
}

fn describe(kernel: &KernelInfo, position: usize, what: &str) -> String {
    let mut text = format!(
        "kernel `{}` is the first that wrote {what}, in `{}`",
        kernel.name,
        tensor_name(kernel, position)
    );
    for call in &kernel.calls {
        text.push_str(&format!("\n  computes {call}"));
    }
    for line in &kernel.source {
        text.push_str(&format!("\n  at {line}"));
    }
    text
}

/// The first element that is NaN or infinite, with its position.
fn first_not_finite(tensor: &DynTensor) -> Option<String> {
    fn first<T: aoti_runtime::Element>(tensor: &DynTensor, to_f64: fn(T) -> f64) -> Option<String> {
        let elements = tensor.as_slice::<T>().unwrap_or_default();
        let mut values = elements.iter().map(|element| to_f64(*element)).enumerate();
        let (position, value) = values.find(|(_, value)| !value.is_finite())?;
        Some(format!("{value} (element {position} of {})", elements.len()))
    }
    let tensor = &complex::to_parts(tensor).ok()?;
    match tensor.dtype() {
        DType::F16 => first::<f16>(tensor, f16::to_f64),
        DType::Bf16 => first::<bf16>(tensor, bf16::to_f64),
        DType::F32 => first::<f32>(tensor, f64::from),
        DType::F64 => first::<f64>(tensor, |value| value),
        DType::F8E4M3Fn => first::<aoti_runtime::f8e4m3fn>(tensor, f64::from),
        DType::F8E5M2 => first::<aoti_runtime::f8e5m2>(tensor, f64::from),
        DType::F8E4M3Fnuz => first::<aoti_runtime::f8e4m3fnuz>(tensor, f64::from),
        DType::F8E5M2Fnuz => first::<aoti_runtime::f8e5m2fnuz>(tensor, f64::from),
        DType::F8E8M0Fnu => first::<aoti_runtime::f8e8m0fnu>(tensor, f64::from),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::C32
        | DType::C64
        | DType::C128 => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(dtype: DType, bytes: &[u8]) -> Option<String> {
        let sizes = [bytes.len() / dtype.size()];
        first_not_finite(&DynTensor::from_bytes(dtype, &sizes, bytes).unwrap())
    }

    #[test]
    fn every_type_that_has_them_is_searched() {
        let second = Some("NaN (element 1 of 2)".to_owned());
        assert_eq!(found(DType::F64, &[0f64, f64::NAN].map(f64::to_le_bytes).concat()), second);
        assert_eq!(found(DType::F32, &[0f32, f32::NAN].map(f32::to_le_bytes).concat()), second);
        for (dtype, nan) in [(DType::F16, 0x7e00u16), (DType::Bf16, 0x7fc0)] {
            assert_eq!(found(dtype, &[0, nan].map(u16::to_le_bytes).concat()), second, "{dtype}");
        }
        // Numbers of eight bits: NaN where there is one, and infinities where there are some.
        let eighths = [
            (DType::F8E4M3Fn, 0x7f),
            (DType::F8E5M2, 0x7e),
            (DType::F8E4M3Fnuz, 0x80),
            (DType::F8E5M2Fnuz, 0x80),
            (DType::F8E8M0Fnu, 0xff),
        ];
        for (dtype, nan) in eighths {
            assert_eq!(found(dtype, &[1, nan]), second, "{dtype}");
        }
        let minus = Some("-inf (element 0 of 2)".to_owned());
        assert_eq!(found(DType::F32, &[f32::NEG_INFINITY, f32::NAN].map(f32::to_le_bytes).concat()), minus);
        assert_eq!(found(DType::F8E5M2, &[0xfc, 0]), minus);
        // Of a complex number either part.
        let parts = [1f32, 2.0, 3.0, f32::INFINITY].map(f32::to_le_bytes).concat();
        assert_eq!(found(DType::C64, &parts), Some("inf (element 3 of 4)".to_owned()));
        assert_eq!(found(DType::F32, &[f32::MAX, -0.0].map(f32::to_le_bytes).concat()), None);
        assert_eq!(found(DType::I64, &[0xff; 16]), None);
    }
}
