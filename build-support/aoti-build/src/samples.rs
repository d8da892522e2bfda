//! Samples of a model: which tensors of a safetensors file beside it stand for its inputs and outputs, or else where in the model's own
//! file the inputs lie that it was exported with. The test that the Rust module has reads the elements.

use std::io::Read;
use std::path::Path;

use aoti_compiler::codegen::bindings::{self, Sample};
use aoti_compiler::codegen::interface::{ElementType, Interface, ValueInterface};
use aoti_compiler::frontend::torch::pt2::{SampleInput, sample_inputs};
use serde_json::{Map, Value};

use crate::files;
use crate::model::Samples;

/// More than any header of samples has.
const LONGEST: u64 = 1 << 24;

/// What builds follow from: where the file is, and the digest of its header.
pub(crate) fn record(samples: &Samples) -> String {
    if is_archive(samples) {
        // What it holds is known by the digest of the model.
        return format!("{} itself", file(samples));
    }
    let digest = match header(&samples.path) {
        Ok(bytes) => blake3::hash(&bytes).to_hex().to_string(),
        Err(message) => message,
    };
    format!("{} {digest}", file(samples))
}

/// What the test of a model compares. There is none for an archive that keeps no inputs which could be given to the model as they are.
pub(crate) fn of_interface(
    samples: &Samples,
    interface: &Interface,
    needs_gpu: bool,
) -> Option<bindings::Samples> {
    let tensors = if is_archive(samples) {
        Ok((of_archive(&samples.path, interface)?, Vec::new()))
    } else {
        tensors(&samples.path, interface)
            .map_err(|message| format!("`{}`: {message}", samples.path.display()))
    };
    Some(bindings::Samples { file: file(samples), tensors, needs_gpu })
}

/// Whether the samples are the model itself: the inputs that it was exported with.
fn is_archive(samples: &Samples) -> bool {
    samples.path.extension().is_some_and(|extension| extension == "pt2")
}

fn of_archive(path: &Path, interface: &Interface) -> Option<Vec<Sample>> {
    let given = sample_inputs(&files::model_file(path).ok()?.file)?;
    if given.len() != interface.inputs.len() {
        return None;
    }
    let fits = |(given, value): &(SampleInput, &ValueInterface)| {
        let sizes = given.sizes.iter().map(|size| i64::try_from(*size).unwrap_or(i64::MAX));
        value.element == ElementType::Number(given.dtype)
            && given.sizes.len() == value.dims.len()
            && sizes.zip(&value.dims).all(|(size, dim)| (dim.min..=dim.max).contains(&size))
    };
    let pairs: Vec<_> = given.into_iter().zip(&interface.inputs).collect();
    if !pairs.iter().all(fits) {
        return None;
    }
    let sample = |(index, (given, _)): (usize, (SampleInput, _))| Sample {
        index,
        sizes: given.sizes,
        offset: given.offset,
    };
    Some(pairs.into_iter().enumerate().map(sample).collect())
}

fn file(samples: &Samples) -> String {
    let path = samples.from_package.as_deref().unwrap_or(&samples.path);
    path.to_string_lossy().replace('\\', "/")
}

fn header(path: &Path) -> Result<Vec<u8>, String> {
    let read = |mut file: std::fs::File| {
        let mut length = [0; 8];
        file.read_exact(&mut length)?;
        let mut bytes = Vec::new();
        file.take(u64::from_le_bytes(length).min(LONGEST)).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    std::fs::File::open(path).and_then(read).map_err(|error: std::io::Error| error.to_string())
}

fn tensors(path: &Path, interface: &Interface) -> Result<(Vec<Sample>, Vec<Sample>), String> {
    let bytes = header(path)?;
    let start = bytes.len() as u64 + 8;
    let header: Map<String, Value> =
        serde_json::from_slice(&bytes).map_err(|error| format!("not a safetensors file: {error}"))?;
    let find = |prefix: &str, values: &[ValueInterface]| {
        let by_number = header.contains_key(&format!("{prefix}.0"));
        let mut found = Vec::new();
        for (index, value) in values.iter().enumerate() {
            let name =
                if by_number { format!("{prefix}.{index}") } else { format!("{prefix}.{}", value.name) };
            found.push(match header.get(&name) {
                Some(entry) => {
                    Some(sample(entry, index, value, start).map_err(|why| format!("tensor `{name}` {why}"))?)
                }
                None => None,
            });
        }
        Ok::<_, String>(found)
    };
    let lacks = |what: &str| {
        format!(
            "no tensor `{what}`; samples are `inputs.0`, `outputs.0` and so on, or have the names of the model's inputs and \
             outputs (`test = false` of the model turns its test off)"
        )
    };
    let inputs = find("inputs", &interface.inputs)?;
    if let Some(missing) = inputs.iter().position(Option::is_none) {
        return Err(lacks(&format!("inputs.{}", interface.inputs[missing].name)));
    }
    // What the program mutates follows its outputs and may be absent.
    let outputs: Vec<Sample> = find("outputs", &interface.outputs)?.into_iter().flatten().collect();
    if outputs.is_empty() && !interface.outputs.is_empty() {
        return Err(lacks(&format!("outputs.{}", interface.outputs[0].name)));
    }
    Ok((inputs.into_iter().flatten().collect(), outputs))
}

/// A tensor of the file as a value of the model.
fn sample(entry: &Value, index: usize, value: &ValueInterface, start: u64) -> Result<Sample, String> {
    let dtype = entry.get("dtype").and_then(Value::as_str).unwrap_or_default();
    let sizes = entry.get("shape").and_then(Value::as_array).map(|sizes| sizes.iter().map(Value::as_u64));
    let mut sizes: Vec<u64> = sizes.and_then(Iterator::collect).ok_or("has no sizes")?;
    let offset =
        entry.pointer("/data_offsets/0").and_then(Value::as_u64).ok_or("has no place in the file")?;
    let is_complex = matches!(value.element, ElementType::Complex(_));
    let whole = if is_complex { value.element.name().to_uppercase() } else { String::new() };
    // The format has few complex types; others are stored as pairs.
    if dtype != whole {
        let part = stored_name(value.element.part().name());
        if dtype != part {
            return Err(format!(
                "has elements of {dtype}, but the model's `{}` has {}",
                value.name,
                value.element.name()
            ));
        }
        if is_complex && sizes.pop() != Some(2) {
            return Err("has no pairs for complex numbers in its last dimension".to_owned());
        }
    }
    if sizes.len() != value.dims.len() {
        let (given, wanted) = (sizes.len(), value.dims.len());
        return Err(format!("has {given} dimensions, but the model's `{}` has {wanted}", value.name));
    }
    Ok(Sample { index, sizes, offset: start + offset })
}

/// What the format calls an element type.
fn stored_name(name: &str) -> String {
    let upper = name.to_uppercase();
    match upper.strip_prefix("F8") {
        Some(format) => {
            let plain = format.strip_suffix("FNU").or_else(|| format.strip_suffix("FN"));
            format!("F8_{}", plain.unwrap_or(format))
        }
        None => upper,
    }
}

#[cfg(test)]
mod tests {
    use aoti_compiler::codegen::interface::DimInterface;
    use aoti_compiler::dtype::DType;

    use super::*;

    fn value(element: ElementType, rank: usize) -> ValueInterface {
        let dim = DimInterface { expression: None, min: 3, max: 3 };
        ValueInterface { name: "x".to_owned(), element, dims: vec![dim; rank] }
    }

    fn of(dtype: &str, sizes: &[u64], value: &ValueInterface) -> Result<Vec<u64>, String> {
        let entry = serde_json::json!({ "dtype": dtype, "shape": sizes, "data_offsets": [8, 20] });
        sample(&entry, 0, value, 100).map(|sample| {
            assert_eq!(sample.offset, 108);
            sample.sizes
        })
    }

    #[test]
    fn element_types_are_called_as_in_the_format() {
        let names = ["f32", "bf16", "f8e4m3fn", "f8e5m2", "f8e4m3fnuz", "f8e8m0fnu", "bool"].map(stored_name);
        assert_eq!(names, ["F32", "BF16", "F8_E4M3", "F8_E5M2", "F8_E4M3FNUZ", "F8_E8M0", "BOOL"]);
    }

    #[test]
    fn a_sample_has_the_type_and_rank_of_its_value() {
        let number = value(ElementType::Number(DType::F32), 1);
        assert_eq!(of("F32", &[3], &number), Ok(vec![3]));
        assert!(of("F64", &[3], &number).unwrap_err().contains("elements of F64"));
        assert!(of("F32", &[3, 1], &number).unwrap_err().contains("2 dimensions"));
        let complex = value(ElementType::Complex(DType::F32), 1);
        assert_eq!(of("C64", &[3], &complex), Ok(vec![3]));
        assert_eq!(of("F32", &[3, 2], &complex), Ok(vec![3]));
        assert!(of("F32", &[3], &complex).unwrap_err().contains("pairs"));
    }
}
