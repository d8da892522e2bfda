//! The stored cases of `tests/cases`: for each family of operators an archive of programs, inputs and PyTorch's outputs.

use std::io::{Cursor, Read};
use std::path::PathBuf;

use aoti_compiler::dtype::DType as Compiled;
use aoti_compiler::interpret::Tensor;
use aoti_runtime::{DType, DynTensor};
use bytes::Bytes;
use safetensors::{Dtype, SafeTensors};

/// One program with the values that it must give.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its path in the archive: the element type, and perhaps what sizes are.
    pub name: String,
    /// The `.pt2` file.
    pub model: Bytes,
    /// In order.
    pub inputs: Vec<DynTensor>,
    /// What PyTorch gave, in order.
    pub outputs: Vec<DynTensor>,
    /// For each output, the expression that it is from.
    pub labels: Vec<String>,
    /// What must be refused instead, if it must.
    pub refused: Option<String>,
    /// Other inputs for the same program.
    pub sets: Vec<Set>,
    /// For each output, or for all of them: floating-point values may be apart by `absolute + relative * |expected|`.
    pub absolute: Vec<f64>,
    /// See `absolute`.
    pub relative: Vec<f64>,
}

/// Inputs of a program beside its first ones.
#[derive(Clone, Debug)]
pub struct Set {
    /// What is other about them.
    pub what: String,
    /// In order.
    pub inputs: Vec<DynTensor>,
    /// What PyTorch gave; `None` where it refused, and so must a run.
    pub outputs: Option<Vec<DynTensor>>,
    /// Whether a run may refuse them too: PyTorch computes with numbers beyond 64 bits.
    pub may_fail: bool,
}

/// Where the archives are.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("cases")
}

/// The families that there are cases of.
pub fn all() -> Vec<String> {
    let files = std::fs::read_dir(folder()).expect("the cases are there");
    let names =
        files.map(|file| file.expect("the folder can be read").file_name().to_string_lossy().into_owned());
    let mut families: Vec<String> =
        names.filter_map(|name| Some(name.strip_suffix(".zip")?.to_owned())).collect();
    families.sort();
    families
}

/// The cases of one family.
pub fn read(family: &str) -> Vec<Case> {
    let file = std::fs::read(folder().join(format!("{family}.zip"))).expect("the family has an archive");
    let entries = inflate(file);
    let find = |name: String| {
        let entry = entries.iter().find(|(entry, _)| *entry == name);
        &entry.unwrap_or_else(|| panic!("`{family}.zip` has no `{name}`")).1
    };
    let names = entries.iter().filter_map(|(name, _)| name.strip_suffix("/model.pt2"));
    let case = |name: &str| {
        let told: serde_json::Value =
            serde_json::from_slice(find(format!("{name}/case.json"))).expect("`case.json` is JSON");
        let labels = told["outputs"].as_array().expect("outputs are listed").iter();
        let sets = told["sets"].as_array().map(Vec::as_slice).unwrap_or_default();
        let stored = (!sets.is_empty()).then(|| find(format!("{name}/sets.safetensors")));
        Case {
            sets: stored.map(|file| read_sets(file, sets)).unwrap_or_default(),
            name: name.to_owned(),
            model: find(format!("{name}/model.pt2")).clone().into(),
            inputs: tensors(find(format!("{name}/inputs.safetensors"))),
            outputs: tensors(find(format!("{name}/outputs.safetensors"))),
            labels: labels.map(|label| label.as_str().expect("a label is text").to_owned()).collect(),
            refused: told["refused"].as_str().map(str::to_owned),
            absolute: numbers_of(&told["atol"]),
            relative: numbers_of(&told["rtol"]),
        }
    };
    names.map(case).collect()
}

/// A number, or several.
fn numbers_of(told: &serde_json::Value) -> Vec<f64> {
    let all = told.as_array().map_or(std::slice::from_ref(told), Vec::as_slice);
    all.iter().map(|number| number.as_f64().expect("a tolerance is a number")).collect()
}

/// All entries of an archive. Inflates them itself: the `zip` of this workspace knows no compression, which the
/// compiler, whose archives have none, is built with.
fn inflate(file: Vec<u8>) -> Vec<(String, Vec<u8>)> {
    let mut zip = zip::ZipArchive::new(Cursor::new(file)).expect("the archive is well formed");
    let count = zip.len();
    let entry = |index| {
        let mut entry = zip.by_index_raw(index).expect("the archive is well formed");
        let mut data = Vec::new();
        let name = entry.name().expect("names are UTF-8").into_owned();
        flate2::read::DeflateDecoder::new(&mut entry).read_to_end(&mut data).expect("the entry is deflated");
        (name, data)
    };
    (0..count).map(entry).collect()
}

fn tensors(file: &[u8]) -> Vec<DynTensor> {
    let file = SafeTensors::deserialize(file).expect("the file is well formed");
    numbered(&file, "")
}

/// The tensors whose keys are the prefix and a number, in order.
fn numbered(file: &SafeTensors<'_>, prefix: &str) -> Vec<DynTensor> {
    let find = |index: usize| file.tensor(&format!("{prefix}{index}")).ok();
    let views = (0..).map_while(find);
    let tensor = |view: safetensors::tensor::TensorView<'_>| {
        DynTensor::from_bytes(element_type(view.dtype()), view.shape(), view.data()).expect("the data fit")
    };
    views.map(tensor).collect()
}

fn read_sets(file: &[u8], told: &[serde_json::Value]) -> Vec<Set> {
    let file = SafeTensors::deserialize(file).expect("the file is well formed");
    let set = |(number, told): (usize, &serde_json::Value)| {
        let fails = told["fails"].as_bool().expect("a set tells whether it fails");
        Set {
            what: told["what"].as_str().expect("a set has a text").to_owned(),
            inputs: numbered(&file, &format!("{number}.in.")),
            outputs: (!fails).then(|| numbered(&file, &format!("{number}.out."))),
            may_fail: told["may_fail"].as_bool() == Some(true),
        }
    };
    told.iter().enumerate().map(set).collect()
}

fn element_type(dtype: Dtype) -> DType {
    let known = [
        (Dtype::BOOL, DType::Bool),
        (Dtype::U8, DType::U8),
        (Dtype::I8, DType::I8),
        (Dtype::I16, DType::I16),
        (Dtype::I32, DType::I32),
        (Dtype::I64, DType::I64),
        (Dtype::F16, DType::F16),
        (Dtype::BF16, DType::Bf16),
        (Dtype::F32, DType::F32),
        (Dtype::F64, DType::F64),
        (Dtype::U16, DType::U16),
        (Dtype::U32, DType::U32),
        (Dtype::U64, DType::U64),
        (Dtype::F8_E4M3, DType::F8E4M3Fn),
        (Dtype::F8_E5M2, DType::F8E5M2),
        (Dtype::F8_E4M3FNUZ, DType::F8E4M3Fnuz),
        (Dtype::F8_E5M2FNUZ, DType::F8E5M2Fnuz),
        (Dtype::F8_E8M0, DType::F8E8M0Fnu),
        (Dtype::C64, DType::C64),
    ];
    let found = known.iter().find(|(stored, _)| *stored == dtype);
    found.unwrap_or_else(|| panic!("no case has elements of {dtype:?}")).1
}

/// As a model takes it: pairs where it has complex numbers of two `f64`, which files do not.
pub fn numbers(tensor: &DynTensor, dtype: DType) -> DynTensor {
    match tensor.sizes() {
        [sizes @ .., 2] if dtype.part() == Some(tensor.dtype()) => {
            DynTensor::from_bytes(dtype, sizes, tensor.bytes()).expect("the parts are those of the numbers")
        }
        _ => tensor.clone(),
    }
}

/// As the interpreter takes it.
pub fn to_interpreter(tensor: &DynTensor) -> Tensor {
    // To it, complex numbers are pairs.
    let (dtype, pair) = match tensor.dtype().part() {
        Some(part) => (part, Some(2)),
        None => (tensor.dtype(), None),
    };
    let dtype = Compiled::from_name(dtype.name()).expect("both have the same types");
    let sizes = tensor.sizes().iter().copied().chain(pair).collect();
    Tensor::new(dtype, sizes, Bytes::copy_from_slice(tensor.bytes())).expect("the data fit")
}

/// As the interpreter gives it.
pub fn from_interpreter(tensor: &Tensor) -> DynTensor {
    let dtype = DType::from_name(tensor.dtype().name()).expect("both have the same types");
    DynTensor::from_bytes(dtype, tensor.sizes(), tensor.bytes()).expect("the data fit")
}

impl Case {
    /// The case of a model that gives some of the outputs.
    pub fn with_outputs(&self, model: &Bytes, keeps: &dyn Fn(usize) -> bool) -> Case {
        fn some<T: Clone>(all: &[T], keeps: &dyn Fn(usize) -> bool) -> Vec<T> {
            let kept = all.iter().enumerate().filter(|(position, _)| keeps(*position));
            kept.map(|(_, one)| one.clone()).collect()
        }
        // One number stands for all outputs.
        let numbers = |all: &[f64]| if all.len() == 1 { all.to_vec() } else { some(all, keeps) };
        let set = |set: &Set| Set {
            outputs: set.outputs.as_ref().map(|outputs| some(outputs, keeps)),
            ..set.clone()
        };
        Case {
            model: model.clone(),
            outputs: some(&self.outputs, keeps),
            labels: some(&self.labels, keeps),
            sets: self.sets.iter().map(set).collect(),
            absolute: numbers(&self.absolute),
            relative: numbers(&self.relative),
            ..self.clone()
        }
    }

    /// One line for each thing that is not as it must be with what a run gave.
    pub fn check(&self, result: Result<Vec<DynTensor>, String>) -> Vec<String> {
        match (result, &self.refused) {
            (Ok(outputs), None) => self.differences(&outputs, &self.outputs),
            (Err(message), None) => vec![format!("{}: {message}", self.name)],
            (Ok(_), Some(what)) => vec![format!("{}: not refused: {what}", self.name)],
            (Err(message), Some(_))
                if message.contains("out of range") || message.contains(" is outside ") =>
            {
                Vec::new()
            }
            (Err(message), Some(what)) => vec![format!("{}: {what} is refused, but: {message}", self.name)],
        }
    }

    /// The same for other inputs: what PyTorch refuses must be an error of the run.
    pub fn check_set(&self, set: &Set, result: Result<Vec<DynTensor>, String>) -> Vec<String> {
        let label = self.labels.first().map_or("", String::as_str);
        let lines = match (result, &set.outputs) {
            (Ok(outputs), Some(expected)) => self.differences(&outputs, expected),
            (Err(_), Some(_)) if set.may_fail => vec![],
            (Err(message), Some(_)) => vec![format!("{}: {message}", self.name)],
            (Ok(_), None) => vec![format!("{}: not refused\n    {label}", self.name)],
            (Err(_), None) => vec![],
        };
        lines.into_iter().map(|line| format!("{line}\n    with {}", set.what)).collect()
    }

    /// One line for each output that is not as it must be, with the expression that it is from. Element types and sizes
    /// must be equal, and so must values that are no floating-point numbers; NaN and infinities must be where expected.
    fn differences(&self, found: &[DynTensor], expected: &[DynTensor]) -> Vec<String> {
        if found.len() != expected.len() {
            return vec![format!("{}: {} outputs instead of {}", self.name, found.len(), expected.len())];
        }
        let all = found.iter().zip(expected).zip(&self.labels).enumerate();
        all.filter_map(|(index, ((found, expected), label))| {
            let what = self.difference(index, found, expected)?;
            Some(format!("{}, output {index}: {what}\n    {label}", self.name))
        })
        .collect()
    }

    fn difference(&self, index: usize, found: &DynTensor, expected: &DynTensor) -> Option<String> {
        let (a, b) = (to_interpreter(found), to_interpreter(expected));
        let (found, expected) = (&from_interpreter(&a), &from_interpreter(&b));
        if (found.dtype(), found.sizes()) != (expected.dtype(), expected.sizes()) {
            let (a, b) = (found.sizes(), expected.sizes());
            return Some(format!("{} {a:?} instead of {} {b:?}", found.dtype(), expected.dtype()));
        }
        if !a.dtype().is_float() {
            return (a != b).then(|| format!("{a:?}\n    instead of {b:?}"));
        }
        if let Compiled::F8(format) = a.dtype() {
            // Conversions are exact: so are their codes, those of NaN and zeros too.
            let is_nan = |code: u8| format.to_f32(code).is_nan();
            let mut pairs = a.bytes().iter().zip(b.bytes()).enumerate();
            let (at, (a, b)) = pairs.find(|(_, (a, b))| a != b && !(is_nan(**a) && is_nan(**b)))?;
            return Some(format!("element {at}: code {a:#04x} instead of {b:#04x}"));
        }
        let of_output = |all: &[f64]| if let [one] = all { *one } else { all[index] };
        let (absolute, relative) = (of_output(&self.absolute), of_output(&self.relative));
        let same = |a: f64, b: f64| {
            if a.is_finite() && b.is_finite() {
                (a - b).abs() <= absolute + relative * b.abs()
            } else {
                a == b || (a.is_nan() && b.is_nan())
            }
        };
        let (a, b) = (a.to_f64(), b.to_f64());
        let wrong: Vec<usize> = (0..a.len()).filter(|&at| !same(a[at], b[at])).collect();
        let at = *wrong.first()?;
        Some(format!(
            "{} of {} elements differ, first {at}: {} instead of {}",
            wrong.len(),
            a.len(),
            a[at],
            b[at]
        ))
    }
}
