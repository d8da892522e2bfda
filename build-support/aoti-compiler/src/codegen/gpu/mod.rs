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
use super::c_family::starts::Started;
use super::c_family::terms::WIDEST_ACCESS;
use super::headers::Header;
use crate::graph::Origin;
use crate::kernels::gemm::tensor_map::TensorMap;
use crate::kernels::mapping::{GpuMapping, IndexWidth, Mapping, Multiplier};
use crate::loops::{BufferId, KernelId, KernelKind};
use crate::schedule::Schedule;
use crate::symbolic::{Expr, NoRanges, Symbol};
use std::collections::BTreeSet;

/// A device function, printed.
pub(super) struct DeviceText {
    /// The calls of the user's program that it computes.
    pub(super) origins: Vec<Origin>,
    /// Parameter list.
    pub(super) declaration: String,
    begins: Begins,
    /// Everything between the braces, but for what `begins` adds.
    pub(super) body: String,
    /// Buffers that the caller passes, in order, and where they begin, in elements.
    pub(super) arguments: Vec<(BufferId, Expr)>,
    /// Size symbols that the caller passes, after the buffers.
    pub(super) symbols: Vec<Symbol>,
    /// The type of sizes.
    pub(super) index: IndexWidth,
    /// How it is launched.
    pub(super) launch: Launch,
    /// Headers beside `gpu/simt.h`.
    pub(super) headers: Vec<&'static str>,
}

/// How a device function is launched.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Launch {
    /// Blocks.
    pub(super) blocks: Expr,
    /// Threads of a block.
    pub(super) threads: i64,
    /// Threads of a block beside these, which only copy what the others compute with, where the code of a device has such a role; or 0.
    pub(super) copiers: i64,
    /// Blocks that run as a cluster, where the device has such.
    pub(super) cluster: i64,
    /// Bytes of shared memory beside what the text declares.
    pub(super) shared: Expr,
    /// Bytes of scratch in device memory, which is an argument before the buffers.
    pub(super) scratch: Option<Expr>,
    /// Whether there are no more blocks than multiprocessors, where the code of a device has the role of copiers: a block then
    /// has what it needs next brought while it finishes.
    pub(super) stays: bool,
    /// Maps of tensors, which are arguments before all others.
    pub(super) maps: Vec<MapArgument>,
}

/// A map of a tensor by which the copy engine finds boxes of it.
#[derive(Clone, PartialEq, Debug)]
pub(in crate::codegen) struct MapArgument {
    /// Its name in the kernel.
    pub(in crate::codegen) name: &'static str,
    /// The buffer.
    pub(in crate::codegen) buffer: BufferId,
    /// The map, from where the kernel is given the buffer.
    pub(in crate::codegen) map: TensorMap,
    /// Elements of a box along the first two axes.
    pub(in crate::codegen) extents: [i64; 2],
}

impl Launch {
    /// So many units, of which a block takes `per_block` at a time.
    fn of(units: &Expr, per_block: i64, threads: i64, most: i64) -> Launch {
        let blocks = units.ceil_div(&Expr::int(per_block), &NoRanges);
        let blocks = blocks.minimum(&Expr::int(most));
        Launch {
            blocks,
            threads,
            copiers: 0,
            cluster: 1,
            shared: Expr::int(0),
            scratch: None,
            stays: false,
            maps: vec![],
        }
    }

    fn is_small(&self) -> bool {
        self.blocks.as_int().is_some_and(|blocks| blocks <= SMALL_LAUNCH)
    }
}

/// Blocks of a launch at most at whose beginning the next kernel may come: that many leave room on all multiprocessors alike.
const SMALL_LAUNCH: i64 = 8;
/// Blocks of a launch at most; what is beyond is done by the same blocks in turn.
const MAX_BLOCKS: i64 = 1 << 20;
/// Blocks of a launch at most whose blocks have scratch in device memory.
const SCRATCH_BLOCKS: i64 = 512;

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

/// Where a kernel waits for what earlier kernels write, and lets the next one come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Begins {
    /// Before its body; the next one may come at its end.
    AtOnce,
    /// Before its body; the next one may come at the same time.
    WithNext,
    /// In its template, behind what does not depend on earlier kernels.
    Itself,
}

/// Body, launch and headers of a kernel, as its kind's printer gives them.
struct Printed {
    begins: Begins,
    body: String,
    launch: Launch,
    headers: Vec<&'static str>,
}

/// Prints a kernel of a schedule for a GPU: a function for each of its launches, which are given the same.
pub(super) fn print_kernel(schedule: &Schedule, id: KernelId) -> Vec<DeviceText> {
    let program = &schedule.program;
    let packed = &schedule.choices[id].packed;
    let started = Started::new(program, &program.kernels[id], packed, WIDEST_ACCESS);
    let kernel = &started.kernel;
    let Mapping::Gpu(mapping) = &schedule.mappings[id] else {
        unreachable!("a schedule for GPUs maps its kernels to blocks of threads")
    };
    let parameters = Parameters::new(program, kernel);
    let printed = match (&kernel.kind, mapping) {
        (KernelKind::Nest(nest), GpuMapping::Scatter(own)) => {
            return scatter::print(program, &parameters, nest, own)
                .into_iter()
                .map(|printed| device_text(&parameters, &started, mapping, printed))
                .collect();
        }
        (KernelKind::Nest(nest), GpuMapping::Teams(teams)) => nest::print(program, &parameters, nest, teams),
        (KernelKind::MatMul(matmul), GpuMapping::Tiles(tile)) => {
            contraction::matmul(program, &parameters, matmul, tile)
        }
        (KernelKind::Convolution(conv), GpuMapping::Tiles(tile)) if tile.by == Multiplier::Windows => {
            windows::print(program, &parameters, conv, tile)
        }
        (KernelKind::Convolution(conv), GpuMapping::Tiles(tile)) => {
            contraction::convolution(program, &parameters, conv, tile)
        }
        (KernelKind::Attention(own), GpuMapping::Tiles(tile)) => {
            attention::print(program, &parameters, own, tile)
        }
        (KernelKind::Rows(own), GpuMapping::Template { threads, rows, index }) => {
            rows::print(&parameters, own, (*threads, *rows), *index)
        }
        (
            KernelKind::Nest(_)
            | KernelKind::MatMul(_)
            | KernelKind::Convolution(_)
            | KernelKind::Attention(_)
            | KernelKind::Rows(_)
            | KernelKind::Extern(_),
            _,
        ) => {
            unreachable!("a verified schedule maps kernels as their kind is mapped")
        }
    };
    vec![device_text(&parameters, &started, mapping, printed)]
}

/// The function of one launch of a kernel.
fn device_text(
    parameters: &Parameters,
    started: &Started,
    mapping: &GpuMapping,
    mut printed: Printed,
) -> DeviceText {
    let kernel = &started.kernel;
    let called: BTreeSet<Header> = headers_of_terms(kernel).collect();
    printed.headers.extend(called.into_iter().map(Header::file));
    let scratch = printed.launch.scratch.as_ref().map(|_| "char *scratch".to_owned());
    let list = parameters.list(&pointer, index_type(mapping.index()));
    let maps = printed.launch.maps.iter().map(|map| format!("AOTI_TENSOR_MAP {}", map.name));
    let declaration: Vec<String> =
        ["Run run".to_owned()].into_iter().chain(maps).chain(scratch).chain(list).collect();
    DeviceText {
        origins: kernel.origins.clone(),
        declaration: declaration.join(", "),
        begins: printed.begins,
        body: printed.body,
        arguments: parameters.arguments().map(|buffer| (buffer, started.start(buffer))).collect(),
        symbols: parameters.symbols().collect(),
        index: mapping.index(),
        launch: printed.launch,
        headers: printed.headers,
    }
}

impl DeviceText {
    /// The definition under a name, with comment lines above it.
    pub(super) fn definition(&self, name: &str, notes: &str) -> String {
        let Launch { threads, copiers, cluster, .. } = &self.launch;
        let kernel = match (copiers, cluster) {
            (0, 1) => format!("AOTI_KERNEL({threads})"),
            (0, blocks) => format!("AOTI_CLUSTER_KERNEL({threads}, {blocks})"),
            (copiers, _) => format!("AOTI_ROLES_KERNEL({threads}, {copiers})"),
        };
        let (begin, call_next) = ("begin_kernel();\n", "let_next_kernel_come();\n");
        let (first, last) = match (self.begins, self.launch.is_small()) {
            (Begins::AtOnce, false) => (begin.to_owned(), call_next),
            (Begins::AtOnce, true) | (Begins::WithNext, _) => (format!("{call_next}{begin}"), ""),
            // Nor does it end before them where it has nothing to do.
            (Begins::Itself, _) => (String::new(), begin),
        };
        let statements = format!("(void)run;\n{first}{}{last}", self.body);
        format!(
            "{notes}{kernel} {name}({}) {{\n{}}}\nAOTI_KERNEL_END({name})\n\n",
            self.declaration,
            indent(&statements, 1)
        )
    }
}
