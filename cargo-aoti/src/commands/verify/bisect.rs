//! The first value of a program that native code computes otherwise than the reference evaluator.

use aoti_build::LinkKind;
use aoti_compiler::dtype::DType as Element;
use aoti_compiler::graph::{Graph, ValueId};
use aoti_compiler::interpret::{self, Tensor};
use aoti_runtime::{AnyView, DType, DynTensor, KernelEvent, KernelInfo, KernelPhase, ThreadPool, Workspace};

use super::examine::Examiner;
use super::outcome::Outcome;
use crate::case::Case;
use crate::failure::Failure;
use crate::tensors::file;
use aoti_tune::tensors::compare::{self, Tolerance, Tolerances};
use aoti_tune::tensors::complex;

/// What a kernel wrote.
struct Written {
    kernel: KernelInfo,
    /// Which of its outputs.
    position: usize,
    tensor: DynTensor,
}

impl Examiner {
    /// A sentence about the first difference, in the order in which kernels run.
    pub(super) fn first_difference(&self, case: &Case, tolerances: &Tolerances) -> Result<String, Failure> {
        let Some(graph) = self.import(case) else {
            return Err(Failure::User("the model cannot be read".to_owned()));
        };
        let inputs = file::read(&case.inputs())?;
        let expected = reference(&graph, &inputs)?;
        let written = self.written(case, &inputs)?;
        let tolerance = match tolerances {
            Tolerances::Same(tolerance) | Tolerances::Digits(tolerance) => *tolerance,
            Tolerances::Each(all) => all.first().copied().unwrap_or(Tolerance { atol: 1e-4, rtol: 1e-3 }),
        };
        let (mut compared, count) = (0, written.len());
        for Written { kernel, position, tensor } in written {
            let Some(value) = own(&expected, &kernel.outputs[position].name, &tensor) else { continue };
            compared += 1;
            let found = std::slice::from_ref(&tensor);
            let (_, result) =
                compare::all(found, std::slice::from_ref(value), &Tolerances::Same(tolerance), None);
            if let Err(message) = result {
                return Ok(told(&kernel, position, &message));
            }
        }
        Ok(format!(
            "none of the {compared} values that could be compared ({count} are written by kernels) differs from the reference \
             evaluator's: what is expected was computed otherwise"
        ))
    }

    /// What all kernels write, in the order in which they do.
    fn written(&self, case: &Case, inputs: &[DynTensor]) -> Result<Vec<Written>, Failure> {
        let single = self.build(case, LinkKind::Dylib, &mut Outcome::new(case));
        let (model, info) = single.map_err(|(_, message)| Failure::User(message))?.load()?;
        let inputs = complex::for_model(inputs.to_vec(), &info)?;
        let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
        let mut outputs: Vec<DynTensor> =
            info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
        let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
        let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
        let mut written = Vec::new();
        let watch = &mut |event: KernelEvent<'_>| {
            let KernelPhase::End(outputs) = event.phase else { return };
            for (position, view) in outputs.iter().enumerate() {
                if let Ok(tensor) = view.to_tensor() {
                    written.push(Written { kernel: event.kernel.clone(), position, tensor });
                }
            }
        };
        let pool = ThreadPool::new(usize::from(self.threads));
        let mut workspace = Workspace::new();
        model.run_watched(&views, &mut targets, state.as_mut(), &mut workspace, &pool, watch)?;
        Ok(written)
    }
}

/// The reference evaluator's values by the names that the program has for them; the last of each name and size is its value.
fn reference(graph: &Graph, inputs: &[DynTensor]) -> Result<Vec<(String, DynTensor)>, Failure> {
    let refuse = |text: String| Failure::User(text);
    let into = |tensor: &DynTensor| {
        let tensor = complex::to_parts(tensor)?;
        let dtype = Element::from_name(tensor.dtype().name())
            .ok_or_else(|| refuse(format!("the interpreter has no {}", tensor.dtype())))?;
        let bytes = bytes::Bytes::copy_from_slice(tensor.bytes());
        Tensor::new(dtype, tensor.sizes().to_vec(), bytes).map_err(|error| refuse(error.to_string()))
    };
    let inputs = inputs.iter().map(into).collect::<Result<Vec<_>, Failure>>()?;
    let mut values = Vec::new();
    let mut watch = |value: ValueId, tensor: &Tensor| {
        let dtype = DType::from_name(tensor.dtype().name());
        let tensor =
            dtype.and_then(|dtype| DynTensor::from_bytes(dtype, tensor.sizes(), tensor.bytes()).ok());
        for name in names(graph, value) {
            values.extend(tensor.clone().map(|tensor| (name, tensor)));
        }
    };
    interpret::evaluate_watched(graph, &inputs, &mut watch).map_err(|error| refuse(error.to_string()))?;
    Ok(values)
}

/// What a value may be called in a library: an output's name, or the call's that it is the result of.
fn names(graph: &Graph, value: ValueId) -> Vec<String> {
    let outputs = graph.outputs.iter().filter(|output| output.value == value);
    let mut names: Vec<String> = outputs.map(|output| output.name.clone()).collect();
    let own = graph.values[value].name.clone();
    if !own.is_empty() && !names.contains(&own) {
        names.push(own);
    }
    names
}

/// The value that a kernel's output is.
fn own<'v>(values: &'v [(String, DynTensor)], name: &str, written: &DynTensor) -> Option<&'v DynTensor> {
    let is_own = |(own, tensor): &&(String, DynTensor)| {
        own == name && tensor.dtype() == written.dtype() && tensor.sizes() == written.sizes()
    };
    values.iter().rev().find(is_own).map(|(_, tensor)| tensor)
}

fn told(kernel: &KernelInfo, position: usize, message: &str) -> String {
    let name = &kernel.outputs[position].name;
    let mut text =
        format!("the first value that differs is `{name}`, of kernel `{}`: {message}", kernel.name);
    for call in &kernel.calls {
        text.push_str(&format!("\n  computes {call}"));
    }
    for line in &kernel.source {
        text.push_str(&format!("\n  at {line}"));
    }
    text
}
