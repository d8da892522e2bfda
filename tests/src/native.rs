//! Built models, run and compared with the interpreter.

use std::path::Path;

use aoti_compiler::{frontend, interpret};
use aoti_runtime::{DType, DynTensor, Executor, Inline, Library, LoadOptions, Model, Workspace};

use crate::project::Project;

/// Builds one model file as a shared library and loads it. The library is open for as long as the model lives.
#[track_caller]
pub fn load(name: &str, path: &Path) -> Model {
    let file = path.file_name().expect("a model is a file").to_string_lossy();
    let table =
        format!("[package.metadata.aoti.models.{name}]\npath = \"models/{file}\"\nlink = \"dylib\"\n");
    let project = Project::new(&table).with_model(&file, path);
    project.build();
    open(&project, name).load(LoadOptions::default()).expect("the model can be loaded")
}

/// Opens the shared library of a model that the project has built.
#[track_caller]
pub fn open(project: &Project, name: &str) -> Library {
    // SAFETY: the project has built the library, and says what its symbol is.
    let library = unsafe { Library::open(project.library(name), &project.symbol(name)) };
    library.expect("the library can be opened")
}

/// The symbols that the members of a static library define for each other and for programs. `nm` comes with every
/// compiler.
#[track_caller]
pub fn defined_symbols(library: &Path) -> Vec<String> {
    let mut command = std::process::Command::new("nm");
    let output = command.args(["--extern-only", "--defined-only"]).arg(library).output().expect("nm runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8_lossy(&output.stdout);
    let symbol = |line: &str| match line.split_whitespace().collect::<Vec<_>>().as_slice() {
        [_, _, name] => Some((*name).to_owned()),
        _ => None,
    };
    text.lines().filter_map(symbol).collect()
}

/// Reproducible numbers between -1 and 1.
pub fn numbers(sizes: &[usize], seed: u64) -> DynTensor {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut tensor = DynTensor::zeros(DType::F32, sizes).expect("the sizes are small");
    for element in tensor.as_mut_slice::<f32>().expect("it was made of f32") {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        *element = (state >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
    }
    tensor
}

/// Runs a model of one f32 input and one f32 output.
pub fn run(
    model: &Model,
    input: &DynTensor,
    executor: &dyn Executor,
) -> Result<DynTensor, aoti_runtime::Error> {
    let mut output = DynTensor::empty(DType::F32);
    model.run(&[input.view()], &mut [&mut output], None, &mut Workspace::new(), executor)?;
    Ok(output)
}

/// The same, on one thread.
pub fn run_alone(model: &Model, input: &DynTensor) -> Result<DynTensor, aoti_runtime::Error> {
    run(model, input, &Inline)
}

/// What the interpreter gives.
pub fn reference(path: &Path, input: &DynTensor) -> Vec<f32> {
    let bytes = std::fs::read(path).expect("the model can be read");
    let graph = frontend::read("reference", bytes, &[]).expect("the model can be imported");
    let elements = input.as_slice::<f32>().expect("inputs are f32");
    let outputs = interpret::evaluate(&graph, &[interpret::Tensor::from_f32(input.sizes(), elements)]);
    let outputs = outputs.expect("the interpreter runs the model");
    outputs[0].to_f64().iter().map(|&value| value as f32).collect()
}

/// Checks that numbers agree as well as a case asks for by default.
#[track_caller]
pub fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (index, (found, expected)) in found.iter().zip(expected).enumerate() {
        let distance = (found - expected).abs();
        assert!(distance <= 1e-4 + 1e-3 * expected.abs(), "element {index}: {found} instead of {expected}");
    }
}
