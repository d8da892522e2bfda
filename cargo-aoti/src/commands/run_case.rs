//! `__run-case`: one model in a process of its own, so that a crash or a hang is its own affair. Started by `verify`.

use std::path::PathBuf;
use std::time::Instant;

use aoti_compiler::frontend::{self, InputShape, ModelFile};
use aoti_compiler::interpret;
use aoti_compiler::json::FromJson;
use aoti_runtime::{AnyView, DType, Device, DynTensor, Library, LoadOptions, ThreadPool, Weights, Workspace};
use clap::Args;
use serde_json::json;

use super::{Context, print_json};
use crate::failure::Failure;
use crate::memory;
use crate::tensors::file;
use aoti_tune::tensors::complex;

/// Runs a library, or a model in the interpreter, on inputs from a file
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The library
    #[arg(long, requires = "symbol", conflicts_with = "model")]
    library: Option<PathBuf>,
    /// What it exports
    #[arg(long)]
    symbol: Option<String>,
    /// Its weights, if they are not inside
    #[arg(long, requires = "library")]
    weights: Option<PathBuf>,
    /// A model for the interpreter
    #[arg(long, required_unless_present = "library")]
    model: Option<PathBuf>,
    /// What is said of its inputs
    #[arg(long = "shape", value_parser = named_shape, requires = "model")]
    shapes: Vec<(String, InputShape)>,
    #[arg(long)]
    inputs: PathBuf,
    #[arg(long)]
    outputs: PathBuf,
    #[arg(long, default_value = "cpu")]
    device: Device,
    #[arg(long, default_value_t = 1)]
    threads: usize,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let inputs = file::read(&arguments.inputs)?;
    let (outputs, micros) = match (&arguments.library, &arguments.model) {
        (Some(library), _) => native(arguments, library, &inputs)?,
        (None, Some(model)) => {
            let shapes = arguments.shapes.iter().cloned().collect();
            let file = ModelFile { shapes, ..memory::model_file(model)? };
            reference(file, &inputs, context)?
        }
        (None, None) => return Err(Failure::Usage("neither a library nor a model".to_owned())),
    };
    file::write(&arguments.outputs, &outputs)?;
    print_json(&json!({ "run_us": micros }));
    Ok(())
}

fn native(
    arguments: &Arguments,
    library: &std::path::Path,
    inputs: &[DynTensor],
) -> Result<(Vec<DynTensor>, f64), Failure> {
    let symbol = arguments.symbol.as_deref().unwrap_or_default();
    // SAFETY: the process that starts this one has built the library and knows its symbol.
    let library = unsafe { Library::open(library, symbol) }?;
    let info = library.info()?;
    let weights = arguments.weights.as_ref().map_or_else(|| Ok(Weights::embedded()), Weights::file)?;
    let model = library.load(LoadOptions { weights, device: arguments.device, ..LoadOptions::default() })?;
    let inputs = complex::for_model(inputs.to_vec(), &info)?;
    let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
    let pool = ThreadPool::new(arguments.threads);
    let begun = Instant::now();
    model.run(&views, &mut targets, state.as_mut(), &mut Workspace::new(), &pool)?;
    Ok((outputs, begun.elapsed().as_nanos() as f64 / 1e3))
}

/// An input's name and its shape in JSON.
fn named_shape(text: &str) -> Result<(String, InputShape), String> {
    let (name, shape) = text.rsplit_once('=').ok_or("there is no `=`")?;
    let value = serde_json::from_str(shape).map_err(|error| error.to_string())?;
    Ok((name.to_owned(), InputShape::from_json(value).map_err(|error| error.to_string())?))
}

fn reference(
    model: ModelFile,
    inputs: &[DynTensor],
    context: &Context,
) -> Result<(Vec<DynTensor>, f64), Failure> {
    let refuse = |text: String| Failure::User(text);
    let operators = crate::single::read_operators(&context.environment)?;
    let graph = frontend::read("case", model, &operators).map_err(|error| refuse(error.to_string()))?;
    let into = |tensor: &DynTensor| {
        let tensor = complex::to_parts(tensor)?;
        let dtype = aoti_compiler::dtype::DType::from_name(tensor.dtype().name())
            .ok_or_else(|| refuse(format!("the interpreter has no {}", tensor.dtype())))?;
        let bytes = bytes::Bytes::copy_from_slice(tensor.bytes());
        interpret::Tensor::new(dtype, tensor.sizes().to_vec(), bytes)
            .map_err(|error| refuse(error.to_string()))
    };
    let inputs = inputs.iter().map(into).collect::<Result<Vec<_>, _>>()?;
    let begun = Instant::now();
    let outputs = interpret::evaluate(&graph, &inputs).map_err(|error| refuse(error.to_string()))?;
    let micros = begun.elapsed().as_nanos() as f64 / 1e3;
    let is_users = |output: &aoti_compiler::graph::Output| {
        !matches!(output.role, aoti_compiler::graph::OutputRole::State(_))
    };
    let outputs = outputs.iter().zip(&graph.outputs).filter(|(_, output)| is_users(output));
    let back = |tensor: &interpret::Tensor| {
        let dtype = DType::from_name(tensor.dtype().name())
            .ok_or_else(|| refuse(format!("there is no {} at run time", tensor.dtype())))?;
        Ok(DynTensor::from_bytes(dtype, tensor.sizes(), tensor.bytes())?)
    };
    let outputs = outputs.map(|(tensor, _)| back(tensor)).collect::<Result<Vec<_>, Failure>>()?;
    Ok((outputs, micros))
}
