//! Kernels as CUDA C++ and HIP: one text for both.
//!
//! Prints what the mapping of a kernel says, in the vocabulary of `include/aoti/gpu`, where the two dialects differ.

mod attention;
mod contraction;
mod functions;
mod nest;
pub mod program;
mod rows;
mod scatter;
mod windows;

use super::c_family::function::{Parameters, Use};
use super::c_family::indent;
use super::c_family::operations::headers_of_terms;
use super::headers::Header;
use crate::graph::Origin;
use crate::kernels::axis_ops::RowBlock;
use crate::kernels::group_tiles;
use crate::kernels::launch::{Launch, Trigger};
use crate::kernels::mapping::{GpuMapping, IndexWidth, Mapping, MathPath};
use crate::loops::{Kernel, KernelId, KernelKind};
use crate::schedule::Schedule;
use std::collections::BTreeSet;

/// A device function, printed.
#[derive(Clone)]
pub(super) struct DeviceText {
    /// The calls of the user's program that it computes.
    pub(super) origins: Vec<Origin>,
    /// Parameter list.
    pub(super) declaration: String,
    /// Everything between the braces, but for what the launch's trigger adds.
    pub(super) body: String,
    /// The type of sizes.
    pub(super) index: IndexWidth,
    /// How it is launched.
    pub(super) launch: Launch,
    /// Headers beside `gpu/simt.h`.
    pub(super) headers: Vec<&'static str>,
}

/// Stands before the loop of a block over its units: a compiler that knows how many units there are at most would write the loop
/// out for each, though a block has one as a rule. nvcc does for sm_100 and later, where that took minutes.
const EACH_UNIT: &str = "AOTI_UNROLL_TIMES(1)\n";

/// The parameters for maps of tensors, in the order of the operands.
const MAPS: [&str; 2] = ["left_map", "right_map"];

/// Buffers of a kernel are apart, so that it may read ahead of what it writes: those that are written are said to be. Of what it
/// only reads, compilers make loads through a cache that is not kept coherent while a kernel runs, and a kernel that was
/// launched early runs while others still write: only weights are declared so.
fn pointer(use_of: Use) -> &'static str {
    match use_of {
        Use::Written | Use::Constant => "*__restrict__ ",
        Use::Read => "*",
    }
}

/// The C++ name of a type of indices.
fn index_type(width: IndexWidth) -> &'static str {
    match width {
        IndexWidth::Narrow => "i32",
        IndexWidth::Wide => "i64",
    }
}

/// Body and headers of a function, as its kind's printer gives them.
struct Printed {
    body: String,
    headers: Vec<&'static str>,
}

/// Prints a kernel of a schedule for a GPU: a function for each of its launches, which are given the same.
pub(super) fn print_kernel(schedule: &Schedule, id: KernelId) -> Vec<DeviceText> {
    let program = &schedule.program;
    let choice = &schedule.choices[id];
    let call = &schedule.calls[id];
    let kernel = &call.rebased(program, &program.kernels[id], &choice.packed);
    let Mapping::Gpu(mapping) = &schedule.mappings[id] else {
        unreachable!("a schedule for GPUs maps its kernels to blocks of threads")
    };
    let parameters = Parameters::new(program, kernel, call);
    let launches = &schedule.launches[id];
    let printed = match (&kernel.kind, mapping) {
        (KernelKind::Nest(nest), GpuMapping::Scatter(own)) => {
            let all = scatter::print(program, &parameters, nest, own).into_iter().zip(launches);
            return all
                .map(|(own, launch)| device_text(&parameters, kernel, (mapping, launch), own))
                .collect();
        }
        (KernelKind::Nest(nest), GpuMapping::Teams(teams)) => nest::print(program, &parameters, nest, teams),
        (KernelKind::MatMul(matmul), GpuMapping::Tiles(tile)) => contraction::matmul(
            program,
            &parameters,
            matmul,
            (tile, &launches[0]),
            group_tiles(&choice.packed),
        ),
        (KernelKind::Convolution(conv), GpuMapping::Tiles(tile)) if tile.by == MathPath::DirectConv => {
            windows::print(program, &parameters, conv, tile)
        }
        (KernelKind::Convolution(conv), GpuMapping::Tiles(tile)) => {
            contraction::convolution(program, &parameters, conv, (tile, &launches[0]))
        }
        (KernelKind::Attention(own), GpuMapping::Tiles(tile)) => {
            attention::print(program, &parameters, own, (choice, tile))
        }
        (KernelKind::AxisOp(own), GpuMapping::Template { threads, rows, index }) => {
            let block = RowBlock { threads: *threads, rows: *rows };
            rows::print(&parameters, own, (choice, block), *index)
        }
        (
            KernelKind::Nest(_)
            | KernelKind::MatMul(_)
            | KernelKind::Convolution(_)
            | KernelKind::Attention(_)
            | KernelKind::AxisOp(_)
            | KernelKind::Extern(_),
            _,
        ) => {
            unreachable!("a verified schedule maps kernels as their kind is mapped")
        }
    };
    vec![device_text(&parameters, kernel, (mapping, &launches[0]), printed)]
}

/// The function of one launch of a kernel.
fn device_text(
    parameters: &Parameters,
    kernel: &Kernel,
    (mapping, launch): (&GpuMapping, &Launch),
    mut printed: Printed,
) -> DeviceText {
    let called: BTreeSet<Header> = headers_of_terms(kernel).collect();
    printed.headers.extend(called.into_iter().map(Header::file));
    let scratch = launch.takes_scratch.then(|| "char *scratch".to_owned());
    let list = parameters.list(&pointer, index_type(mapping.index()));
    let maps = MAPS.iter().take(launch.maps.len()).map(|name| format!("AOTI_TENSOR_MAP {name}"));
    let declaration: Vec<String> =
        ["Run run".to_owned()].into_iter().chain(maps).chain(scratch).chain(list).collect();
    DeviceText {
        origins: kernel.origins.clone(),
        declaration: declaration.join(", "),
        body: printed.body,
        index: mapping.index(),
        launch: launch.clone(),
        headers: printed.headers,
    }
}

impl DeviceText {
    /// The definition under a name, with comment lines above it.
    pub(super) fn definition(&self, name: &str, notes: &str) -> String {
        let Launch { threads, producer_threads, cluster, resident, .. } = &self.launch;
        let kernel = match (producer_threads, cluster) {
            (0, 1) if *resident > 1 => format!("AOTI_RESIDENT_KERNEL({threads}, {resident})"),
            (0, 1) => format!("AOTI_KERNEL({threads})"),
            (0, blocks) => format!("AOTI_CLUSTER_KERNEL({threads}, {blocks})"),
            (producer_threads, 1) => format!("AOTI_ROLES_KERNEL({threads}, {producer_threads})"),
            (producer_threads, blocks) => {
                format!("AOTI_ROLES_CLUSTER_KERNEL({threads}, {producer_threads}, {blocks})")
            }
        };
        let (begin, call_next) = ("begin_kernel();\n", "let_next_kernel_come();\n");
        let (first, last) = match self.launch.trigger {
            Trigger::AtEnd => (begin.to_owned(), call_next),
            Trigger::AtStart => (format!("{call_next}{begin}"), ""),
            // It does not end before earlier kernels where it has nothing to do.
            Trigger::InTemplate => (String::new(), begin),
        };
        let statements = format!("(void)run;\n{first}{}{last}", self.body);
        format!(
            "{notes}{kernel} {name}({}) {{\n{}}}\nAOTI_KERNEL_END({name})\n\n",
            self.declaration,
            indent(&statements, 1)
        )
    }
}
