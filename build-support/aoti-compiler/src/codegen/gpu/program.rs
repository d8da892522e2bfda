//! A whole program for the GPUs of one vendor: the file with its kernels, and the host code that launches them in order.

use super::functions::Functions;
use crate::codegen::foreign::comment;
use crate::codegen::functions::notes;
use crate::codegen::run::run_body;
use crate::names;
use crate::runplan::weights::Layout;
use crate::runplan::{Planned, RunPlan, plan_with};
use crate::schedule::Schedule;
use crate::symbolic::RangeTable;
use crate::target::Vendor;
use std::fmt::Write;

/// A kernel as the driver finds it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceKernel {
    /// Its name.
    pub name: String,
    /// Bytes of shared memory that a launch asks for at most, beside what the kernel declares.
    pub shared: i64,
    /// Threads of a block.
    pub threads: i64,
    /// Threads of a block beside these, which only copy what the others compute with, where the code of a device has such a role; or 0.
    pub producer_threads: i64,
}

/// A program for the GPUs of one vendor, planned and printed.
pub(in crate::codegen) struct Printed {
    /// The kernels.
    pub(in crate::codegen) device: String,
    /// The function that launches them.
    pub(in crate::codegen) host: String,
    /// The kernels, in the order of the host code's numbers.
    pub(in crate::codegen) kernels: Vec<DeviceKernel>,
    /// What a run does.
    pub(in crate::codegen) run: RunPlan,
}

/// Prints a schedule for a vendor's GPUs; `symbol` stands for the model among all models. Its constants go into the
/// weights behind those that are there.
pub(in crate::codegen) fn print(
    schedule: &Schedule,
    ranges: &RangeTable,
    vendor: Vendor,
    symbol: &str,
    layout: &mut Layout,
) -> Printed {
    let identifier = names::identifier(&schedule.program.name);
    let Planned { run, layout: filled, .. } = plan_with(schedule, ranges, std::mem::take(layout));
    let functions = Functions::of(schedule, ranges);
    let header = if run.exchanges().is_empty() { "host" } else { "collective" };
    let host = format!(
        "{}#include \"aoti/gpu/{header}.h\"\n\nusing namespace aoti;\nusing namespace aoti::gpu;\n\n\
         extern \"C\" int32_t aoti_{symbol}_{}_run(DeviceRun &run) {{\n{}}}\n",
        comment(&format!("Runs the model `{identifier}` on a GPU, written by cargo-aoti.")),
        vendor.device(),
        run_body(&run, &functions)
    );
    let device = device(&functions, &identifier);
    let kernels = functions.all.values().map(|function| DeviceKernel {
        name: function.name.clone(),
        shared: function.shared,
        threads: function.text.launch.threads,
        producer_threads: function.text.launch.producer_threads,
    });
    let kernels = kernels.collect();
    *layout = filled;
    Printed { device, host, kernels, run }
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
