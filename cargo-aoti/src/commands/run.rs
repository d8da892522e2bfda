//! `run`: compiles a model and runs it once.

mod taps;

use std::path::PathBuf;

use aoti_build::LinkKind;
use aoti_runtime::{AnyView, Device, DynTensor, Generator, KernelEvent, ModelInfo, ThreadPool, Workspace};
use clap::Args;

use serde_json::json;

use super::{Context, print, print_json};
use crate::arguments::{Output, Rounding};
use crate::case::Case;
use crate::chosen::Chosen;
use crate::dims;
use crate::failure::Failure;
use crate::progress::Shown;
use crate::ranks;
use crate::single;
use crate::tensors::file;
use crate::tensors::random::Random;
use aoti_tune::tensors::complex;
use taps::Taps;

/// Compiles a model and runs it once
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A model of the project by name, a model file, or a case's folder
    model: PathBuf,
    /// One of the model's programs, where it has several; it is compiled alone
    #[arg(long, value_name = "NAME")]
    program: Option<String>,
    /// Inputs under the keys "0", "1", … or their names; random ones if absent
    #[arg(long, value_name = "FILE")]
    inputs: Option<PathBuf>,
    /// Where to write the outputs
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Size of a dynamic dimension, for random inputs; by default the smallest
    #[arg(long, value_name = "NAME=SIZE", value_parser = dims::parse)]
    dim: Vec<(String, i64)>,
    /// Device to run on: `cpu`, `cuda`, or `cuda:1` for the second
    #[arg(long, value_name = "DEVICE", default_value = "cpu")]
    device: Device,
    /// Threads to run on
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..))]
    threads: u16,
    /// Seed of the random numbers that the program draws
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Save the outputs of this kernel, or the value of this name; may be repeated
    #[arg(long, value_name = "KERNEL|VALUE")]
    dump: Vec<String>,
    /// File for the tensors that `--dump` saves
    #[arg(long, value_name = "FILE", default_value = "dump.safetensors", requires = "dump")]
    dump_to: PathBuf,
    /// Fail with the first input that holds a NaN or an infinity, or the first kernel, and its place in the program, that writes one
    #[arg(long)]
    check_nan: bool,
    #[command(flatten)]
    count: ranks::Count,
    #[command(flatten)]
    rounding: Rounding,
    #[command(flatten)]
    pub(crate) printed: Output,
}

/// Runs all ranks at one time, and tells of each.
fn run_ranks(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    if !arguments.dump.is_empty() || arguments.check_nan {
        let message = "`--dump` and `--check-nan` look into one run, and `--ranks` makes several";
        return Err(Failure::Usage(message.to_owned()));
    }
    let Arguments { model, count, device, rounding, .. } = arguments;
    let ranks = ranks::load(model, *count, *device, rounding, context)?;
    let results = ranks.each(|rank| {
        let own = arguments.inputs.as_deref().map(|path| ranks::path_of(path, rank.number));
        let case = rank.case.as_ref().filter(|case| case.has_inputs());
        let file = own.or_else(|| case.map(Case::inputs));
        let inputs = inputs(&rank.info, file.as_deref(), &arguments.dim)?;
        ranks::run(rank, &inputs, usize::from(arguments.threads))
    });
    let (mut failed, several) = (None, arguments.output.as_ref());
    for (rank, result) in ranks.all.iter().zip(results) {
        match result {
            Ok(outputs) => {
                show(arguments, Some(rank.number), &rank.info, &outputs);
                if let Some(path) = several {
                    file::write(&ranks::path_of(path, rank.number), &outputs)?;
                }
            }
            Err(failure) => {
                let message = failure.message().unwrap_or_default();
                context.terminal.failure(&Failure::User(format!("rank {}: {message}", rank.number)));
                failed = Some(failure);
            }
        }
    }
    failed.map_or(Ok(()), |_| Err(Failure::Reported))
}

/// Tells of outputs, in the order of the program.
fn show(arguments: &Arguments, rank: Option<usize>, info: &ModelInfo, outputs: &[DynTensor]) {
    for (output, tensor) in info.outputs.iter().zip(outputs) {
        if arguments.printed.is_json() {
            let (name, dtype, sizes) = (&output.name, tensor.dtype().name(), tensor.sizes());
            let mut object = json!({ "reason": "aoti-output", "name": name, "dtype": dtype, "sizes": sizes });
            if let Some(rank) = rank {
                object["rank"] = json!(rank);
            }
            print_json(&object);
            continue;
        }
        let of = rank.map_or_else(String::new, |rank| format!("rank {rank}: "));
        print(&format!("{of}{}: {} {:?} {}\n", output.name, tensor.dtype(), tensor.sizes(), head(tensor)));
    }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    if arguments.count.ranks.is_some() {
        return run_ranks(arguments, context);
    }
    let chosen = Chosen::find(&arguments.model, context)?.program(arguments.program.as_deref())?;
    let session = single::session(context, true)?;
    dims::check(&chosen, &arguments.dim)?;
    let progress = Shown::new(context.terminal);
    let (device, levels) = (arguments.device, vec!["native".to_owned()]);
    let numerics = arguments.rounding.or(chosen.numerics());
    let single = single::build(&session, &chosen.model, LinkKind::Dylib, device, levels, numerics, &progress);
    progress.finish();
    let single = single?;
    let (model, info) = single.load()?;
    let file = arguments
        .inputs
        .clone()
        .or_else(|| chosen.case.filter(|case| case.has_inputs()).map(|case| case.inputs()));
    let inputs = inputs(&info, file.as_deref(), &arguments.dim)?;
    let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
    let pool = ThreadPool::new(usize::from(arguments.threads));
    let mut workspace = Workspace::new();
    workspace.set_generator(Generator::new(arguments.seed));
    if arguments.dump.is_empty() && !arguments.check_nan {
        model.run(&views, &mut targets, state.as_mut(), &mut workspace, &pool)?;
    } else {
        let mut taps = Taps::new(&info, &arguments.dump, arguments.check_nan)?;
        taps.look_at_inputs(&info, &inputs);
        let watch = &mut |event: KernelEvent<'_>| taps.watch(event);
        let done = model.run_watched(&views, &mut targets, state.as_mut(), &mut workspace, &pool, watch);
        // What was seen may be why a run failed.
        taps.finish(&arguments.dump_to)?;
        done?;
    }
    show(arguments, None, &info, &outputs);
    match &arguments.output {
        Some(path) => file::write(path, &outputs),
        None => Ok(()),
    }
}

/// Inputs from a file, or random ones.
pub(crate) fn inputs(
    info: &ModelInfo,
    file: Option<&std::path::Path>,
    dims: &[(String, i64)],
) -> Result<Vec<DynTensor>, Failure> {
    if let Some(path) = file {
        let names: Vec<String> = info.inputs.iter().map(|input| input.name.clone()).collect();
        return Ok(complex::for_model(file::read_for(path, &names)?, info)?);
    }
    let mut random = Random::new(0);
    let sizes = dims::of_inputs(info, dims)?;
    let tensors = info.inputs.iter().zip(&sizes).map(|(input, sizes)| random.tensor(input.dtype, sizes));
    Ok(tensors.collect::<Result<Vec<_>, _>>()?)
}

/// The first elements, for people.
fn head(tensor: &DynTensor) -> String {
    use aoti_runtime::{Complex, DType, bf16, f16};
    fn some<T: aoti_runtime::Element>(tensor: &DynTensor) -> String {
        shown(tensor, |element: T| format!("{element:?}"))
    }
    fn shown<T: aoti_runtime::Element>(tensor: &DynTensor, text: impl Fn(T) -> String) -> String {
        let elements = tensor.as_slice::<T>().unwrap_or_default();
        let shown: Vec<String> = elements.iter().take(8).map(|&element| text(element)).collect();
        let more = if elements.len() > 8 { ", …" } else { "" };
        format!("[{}{more}]", shown.join(", "))
    }
    match tensor.dtype() {
        DType::Bool => some::<bool>(tensor),
        DType::U8 => some::<u8>(tensor),
        DType::I8 => some::<i8>(tensor),
        DType::I16 => some::<i16>(tensor),
        DType::I32 => some::<i32>(tensor),
        DType::I64 => some::<i64>(tensor),
        DType::F16 => some::<f16>(tensor),
        DType::Bf16 => some::<bf16>(tensor),
        DType::F32 => some::<f32>(tensor),
        DType::F64 => some::<f64>(tensor),
        DType::U16 => some::<u16>(tensor),
        DType::U32 => some::<u32>(tensor),
        DType::U64 => some::<u64>(tensor),
        DType::F8E4M3Fn => some::<aoti_runtime::f8e4m3fn>(tensor),
        DType::F8E5M2 => some::<aoti_runtime::f8e5m2>(tensor),
        DType::F8E4M3Fnuz => some::<aoti_runtime::f8e4m3fnuz>(tensor),
        DType::F8E5M2Fnuz => some::<aoti_runtime::f8e5m2fnuz>(tensor),
        DType::F8E8M0Fnu => some::<aoti_runtime::f8e8m0fnu>(tensor),
        DType::C32 => shown(tensor, |number: Complex<f16>| number.to_string()),
        DType::C64 => shown(tensor, |number: Complex<f32>| number.to_string()),
        DType::C128 => shown(tensor, |number: Complex<f64>| number.to_string()),
    }
}
