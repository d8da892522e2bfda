//! Libraries with code for GPUs, built and loaded on a machine that may have none: they run on the processor as ever, and say
//! what is missing where they are asked for a GPU.

#![cfg(unix)]

use aoti_runtime::{
    AnyView, DType, Device, DeviceTensor, DynTensor, Error, ErrorCode, Finished, LoadOptions, Model,
    Prepared, Stream, Submitted, Workspace,
};
use aoti_tests::models;
use aoti_tests::native::{self, open};
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use aoti_tests::tools::are_there;
use serde_json::Value;
use std::process::Command;
use std::sync::Arc;

/// Compilers for NVIDIA's GPUs by the variable that names them.
fn compilers() -> Vec<(&'static str, String)> {
    let nvcc = std::env::var("NVCC").unwrap_or_else(|_| "nvcc".to_owned());
    let mut found = Vec::new();
    if are_there("nvcc", &[&nvcc]) {
        found.push(("NVCC", nvcc));
    }
    let clang = ["clang++-19", "clang++"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok());
    if are_there("clang", &[clang.unwrap_or("clang++")]) {
        found.push(("CLANG_CUDA", clang.unwrap_or("clang++").to_owned()));
    }
    found
}

/// The one that is wanted, and no other that a variable names.
fn with<'c>(command: &'c mut Command, (variable, compiler): &(&str, String)) -> &'c mut Command {
    command.env_remove("NVCC").env_remove("CLANG_CUDA").env(variable, compiler)
}

/// What a machine says that has no driver, or whose driver has no device for the code.
fn is_refusal(message: &str) -> bool {
    let parts = [
        "no CUDA driver on this machine: looked for libcuda.so.1",
        "does not start",
        "has 0 devices",
        "runs none of it",
    ];
    parts.iter().any(|part| message.contains(part))
}

fn has_gpu() -> bool {
    Command::new("nvidia-smi").arg("-L").output().is_ok_and(|output| output.status.success())
}

#[test]
fn a_library_for_both_runs_on_the_processor_and_says_what_it_lacks_on_a_gpu() {
    for compiler in compilers() {
        let table = "[package.metadata.aoti]\ndevices = [\"cpu\", \"cuda\"]\ncpu = [\"native\"]\ncuda = [\"sm_90a\"]\n\
            [package.metadata.aoti.models.digits]\npath = \"models/digits.pt2\"\nlink = \"dylib\"\n";
        let project = Project::new(table).with_model("digits.pt2", &models::digits());
        Ended::of(with(&mut project.aoti(&["build", "-v"]), &compiler)).succeeded();
        let manifest = project.manifest("digits");
        let made = manifest["devices"].as_array().unwrap();
        let is_for = |one: &Value| one["device"] == "cuda" && one["architecture"] == "sm_90a";
        assert!(made.iter().any(is_for), "{manifest:#}");

        let path = project.library("digits");
        let needed = Command::new("readelf").arg("-d").arg(&path).output().unwrap();
        let needed = String::from_utf8_lossy(&needed.stdout).into_owned();
        assert!(!needed.contains("cuda"), "nothing of a GPU is linked: {needed}");

        let library = open(&project, "digits");
        let input = native::numbers(&[5, 1, 8, 8], 7);
        let expected = native::reference(&models::digits(), &input);
        let model = library.load(LoadOptions::default()).unwrap();
        let mut output = DynTensor::empty(DType::F32);
        let views: [AnyView<'_>; 1] = [input.view()];
        let executor = &aoti_runtime::Inline;
        model.run(&views, &mut [&mut output], None, &mut Workspace::new(), executor).unwrap();
        let near = output.as_slice::<f32>().unwrap().iter().zip(&expected);
        assert!(near.into_iter().all(|(a, b)| (a - b).abs() < 1e-4));

        let load = |device| library.load(LoadOptions { device, ..LoadOptions::default() });
        if !has_gpu() {
            let error = load(Device::Cuda(0)).unwrap_err();
            assert_eq!(error.code(), ErrorCode::Device);
            assert!(is_refusal(error.message()), "{error}");
        }
        let error = load(Device::Rocm(1)).unwrap_err();
        assert_eq!(error.message(), "rocm:1 was asked for, the library has code for cpu, cuda");
        assert!(
            Ended::of(with(&mut project.aoti(&["build", "-v"]), &compiler))
                .succeeded()
                .stderr
                .contains("Fresh")
        );
    }
}

#[test]
fn a_command_for_a_gpu_compiles_and_then_says_that_there_is_none() {
    for compiler in compilers().into_iter().filter(|_| !has_gpu()) {
        let project = Project::new("").with_model("digits.pt2", &models::digits());
        let arguments = ["bench", "models/digits.pt2", "--device", "cuda", "--level", "sm_90a"];
        let ended = Ended::of(with(&mut project.aoti(&arguments), &compiler));
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(is_refusal(&ended.stderr), "{}", ended.stderr);
    }
}

/// Submits a run of five pictures, prepared before or now.
fn start<'m>(
    model: &'m Model,
    input: &Arc<DeviceTensor<'m>>,
    run: Option<Prepared<'m>>,
) -> Result<Submitted<'m>, Error> {
    let run = run.map_or_else(|| model.prepare(&[input.view()], 1), Ok)?;
    let output = model.device_tensor(DType::F32, &[5, 10])?;
    run.submit(vec![Arc::clone(input)], vec![output], None, Stream::default())
}

/// On the processor, whose libraries have the same functions as those for GPUs.
#[test]
fn a_submitted_run_owns_what_it_uses_until_it_is_waited_for() {
    let table = "[package.metadata.aoti]\ncpu = [\"native\"]\n\
        [package.metadata.aoti.models.digits]\npath = \"models/digits.pt2\"\nlink = \"dylib\"\n";
    let project = Project::new(table).with_model("digits.pt2", &models::digits());
    Ended::of(&mut project.aoti(&["build"])).succeeded();
    let library = open(&project, "digits");
    let model = library.load(LoadOptions::default()).unwrap();
    let pictures = [7, 11].map(|seed| native::numbers(&[5, 1, 8, 8], seed));
    let inputs = pictures.each_ref().map(|picture| Arc::new(model.upload(picture).unwrap()));
    let agrees = |finished: &Finished<'_>, picture: &DynTensor| {
        let got = finished.outputs[0].download().unwrap();
        let expected = native::reference(&models::digits(), picture);
        let near = got.as_slice::<f32>().unwrap().iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-4);
        assert!(near, "{got:?}");
    };
    // Two at once, one of which reads what the other reads too.
    let [first, second] = [&inputs[0], &inputs[1]].map(|input| start(&model, input, None).unwrap());
    drop(start(&model, &inputs[0], None).unwrap());
    let (first, second) = (first.wait().unwrap(), second.wait().unwrap());
    agrees(&first, &pictures[0]);
    agrees(&second, &pictures[1]);
    // The same run again, on what another one has read.
    agrees(&start(&model, &inputs[1], Some(first.run)).unwrap().wait().unwrap(), &pictures[1]);
    // An input of other sizes than the run was prepared for is refused when it is submitted.
    let small = Arc::new(model.upload(&native::numbers(&[4, 1, 8, 8], 7)).unwrap());
    assert_eq!(start(&model, &small, Some(second.run)).unwrap_err().code(), ErrorCode::Size);
    // What memory held before is not in a new tensor.
    let mut used = DynTensor::zeros(DType::U8, &[1 << 16]).unwrap();
    used.as_mut_slice::<u8>().unwrap().fill(165);
    for _ in 0..4 {
        drop(model.upload(&used).unwrap());
        let fresh = model.device_tensor(DType::Bool, &[1 << 16]).unwrap().download().unwrap();
        assert!(fresh.bytes().iter().all(|byte| *byte == 0));
    }
}
