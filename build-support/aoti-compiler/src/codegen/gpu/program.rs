//! A whole program for one GPU architecture: the file with its kernels, and the host code that launches them in order.

use super::functions::Functions;
use super::host;
use crate::codegen::bundle::WeightsBlob;
use crate::codegen::foreign::comment;
use crate::codegen::functions::notes;
use crate::codegen::names;
use crate::codegen::run::{RunPlan, plan_with};
use crate::schedule::Schedule;
use crate::symbolic::RangeTable;
use std::fmt::Write;

/// Device code and the host code that drives it.
pub struct DeviceProgram {
    /// The kernels, in the common subset of CUDA C++ and HIP.
    pub device: String,
    /// The function that launches them.
    pub host: String,
    /// The kernels, in the order of the host code's table.
    pub kernels: Vec<DeviceKernel>,
    /// What a run does.
    pub plan: RunPlan,
    /// The constants as kernels read them.
    pub weights: WeightsBlob,
}

/// A kernel as the driver finds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceKernel {
    /// Its name.
    pub name: String,
    /// Bytes of shared memory that a launch asks for at most, beside what the kernel declares.
    pub shared: i64,
}

/// Prints a schedule for an architecture.
pub fn generate(schedule: &Schedule, ranges: &RangeTable) -> DeviceProgram {
    let program = &schedule.program;
    let identifier = names::identifier(&program.name);
    let planned = plan_with(schedule, ranges, Functions::new(ranges));
    let run = host::run_functions(&planned.run, &planned.functions, program.symbols.len(), &identifier);
    let host = format!(
        "{}#include \"aoti/gpu/host.h\"\n\nusing namespace aoti;\nusing namespace aoti::gpu;\n\n{run}",
        comment(&format!("Runs the model `{identifier}` on a GPU, written by cargo-aoti."))
    );
    let functions = planned.functions.all.values();
    let kernels =
        functions.map(|function| DeviceKernel { name: function.name.clone(), shared: function.shared });
    DeviceProgram {
        device: device(&planned.functions, &identifier),
        host,
        kernels: kernels.collect(),
        plan: planned.run,
        weights: planned.layout.finish(),
    }
}

fn device(functions: &Functions, identifier: &str) -> String {
    let mut headers: Vec<&str> = vec!["gpu/simt.h"];
    for header in functions.all.values().flat_map(|function| &function.text.headers) {
        if !headers.contains(header) {
            headers.push(header);
        }
    }
    let title = format!("Kernels of the model `{identifier}` for GPUs, written by cargo-aoti.");
    let mut text = comment(&title);
    for header in headers {
        let _ = writeln!(text, "#include \"aoti/{header}\"");
    }
    text.push_str("\nusing namespace aoti;\n\n");
    for function in functions.all.values() {
        text.push_str(&function.text.definition(&function.name, &notes(&function.text.origins)));
    }
    text
}
