//! Checks that a schedule is well formed. A finding is a bug of the compiler, never of a model.
//!
//! * The program is well formed, and every kernel has a choice and a mapping.
//! * A choice's algorithm is for the kernel's kind and the target, and what it packs is a constant that the kernel reads.
//! * A mapping is of the target's kind; it splits no more axes than there are, and lanes follow an axis that exists.
//! * Kernels are called as follows from what they do, and those that have a function together do the same.
//! * On a device, launches are within its limits whatever the sizes are, and are given the kernel's scratch; on the host there are none.
//! * Every temporary buffer that is used has a place in the arena or is allocated during the run, and every kernel's scratch is
//!   planned.

mod launches;

use super::Schedule;
use super::memory::largest_scratch;
use super::{calls, text};
use crate::dtype::DType;
use crate::graph::{Combine, ranges_of};
use crate::kernels::axis_ops::{self, RowBlock};
use crate::kernels::conv::windows::window_blocks;
use crate::kernels::gemm::library::libraries;
use crate::kernels::gemm::tiles::{is_brought_convolution, is_brought_product};
use crate::kernels::mapping::{
    Along, CpuMapping, GpuMapping, Lanes, Mapping, MathPath, Meeting, Rows, Scattering, Split, Teams, Tile,
};
use crate::kernels::{Selection, group_tiles, nest};
use crate::loops::scatter::Scatter;
use crate::loops::{self, Kernel, KernelId, KernelKind, Nest, Program, Storage};
use crate::target::{GpuTarget, Target};

/// Everything that is wrong, one sentence each; empty where the schedule is well formed.
pub fn verify(schedule: &Schedule) -> Vec<String> {
    let mut findings = loops::verify(&schedule.program);
    let program = &schedule.program;
    for (id, kernel) in &program.kernels {
        let (Some(choice), Some(mapping)) = (schedule.choices.get(id), schedule.mappings.get(id)) else {
            findings.push(format!("kernel `{}` has no choice or no mapping", kernel.name));
            continue;
        };
        let found = check_choice(schedule, id, choice).into_iter();
        let found = found.chain(check_mapping(schedule, kernel, (choice, mapping)));
        let found = found.chain(launches::check(schedule, id, mapping));
        findings.extend(found.map(|finding| format!("kernel `{}`: {finding}", kernel.name)));
        for buffer in kernel.reads().into_iter().chain(kernel.writes()) {
            if program.buffers[buffer].storage == Storage::Temporary
                && schedule.memory.offsets.contains_key(&buffer) == schedule.memory.late.contains_key(&buffer)
            {
                findings
                    .push(format!("kernel `{}` uses {buffer}, which has no place of its own", kernel.name));
            }
        }
    }
    findings.extend(shared_rows(schedule));
    if findings.is_empty() {
        findings.extend(other_calls(schedule));
    }
    findings
}

/// Kernels that are called otherwise than follows from what they do.
fn other_calls(schedule: &Schedule) -> Vec<String> {
    let Schedule { target, program, choices, mappings, launches, .. } = schedule;
    let calls = calls::of_kernels(program, target, (choices, mappings), launches);
    let others = calls.iter().filter(|(id, call)| schedule.calls.get(*id) != Some(call));
    let finding = |(id, call)| {
        let (name, call) = (&program.kernels[id].name, text::call_line(call));
        format!("kernel `{name}`: it is not called as it computes: `{call}`")
    };
    others.map(finding).collect()
}

/// Kernels whose rows several positions would write at once: a worker or a team has one of each.
fn shared_rows(schedule: &Schedule) -> Vec<String> {
    let shares = |mapping: &Mapping| match mapping {
        Mapping::Cpu(cpu) => cpu.lanes == Lanes::Outer,
        Mapping::Gpu(GpuMapping::Teams(teams)) => {
            teams.along == Along::Outer && (teams.lanes > 1 || teams.turned.is_some())
        }
        Mapping::Gpu(GpuMapping::Tiles(_) | GpuMapping::Template { .. } | GpuMapping::Scatter(_)) => false,
    };
    let kernels = schedule.program.kernels.iter().filter(|(id, kernel)| {
        // The lanes of a product are those of its template; its row epilogue has none across rows.
        matches!(kernel.kind, KernelKind::Nest(_))
            && schedule.mappings.get(*id).is_some_and(shares)
            && !kernel.rows(&schedule.program).is_empty()
    });
    let named = |(_, kernel): (_, &Kernel)| {
        format!("kernel `{}`: the positions in its lanes share the rows of one worker", kernel.name)
    };
    kernels.map(named).collect()
}

fn check_choice(schedule: &Schedule, id: KernelId, choice: &Selection) -> Vec<String> {
    let kernel = &schedule.program.kernels[id];
    let mut findings = vec![];
    let fits = choice.algorithm.is_for(&kernel.kind, &schedule.target);
    if !fits {
        findings.push("its algorithm is for kernels of another kind or target".to_owned());
    }
    if let (KernelKind::MatMul(matmul), Some(library)) = (&kernel.kind, choice.algorithm.library())
        && !libraries(&schedule.program, matmul, &schedule.target).contains(&library)
    {
        findings.push("its library does not compute it".to_owned());
    }
    for packed in &choice.packed {
        let is_constant = matches!(schedule.program.buffers[packed.buffer].storage, Storage::Constant(_));
        if !is_constant || !kernel.reads().contains(&packed.buffer) {
            findings.push(format!("it packs {}, which is no constant that it reads", packed.buffer));
        }
    }
    let symbols = &schedule.program.symbols;
    let largest = largest_scratch(symbols, &choice.scratch, &ranges_of(symbols));
    let is_planned =
        schedule.memory.scratch.contains(&largest) || schedule.memory.late_scratch.contains_key(&id);
    if !choice.scratch.is_empty() && !is_planned {
        findings.push("its scratch is not planned".to_owned());
    }
    findings
}

/// What matrix units of a GPU ask of operands.
fn check_units(schedule: &Schedule, kernel: &Kernel, by: MathPath, gpu: &GpuTarget) -> Option<String> {
    let product = match &kernel.kind {
        KernelKind::MatMul(matmul) => Some((&schedule.program, matmul)),
        KernelKind::Nest(_)
        | KernelKind::Convolution(_)
        | KernelKind::Attention(_)
        | KernelKind::AxisOp(_)
        | KernelKind::Extern(_) => None,
    };
    let fits = (by.row().fits)(product, gpu);
    (!fits).then(|| "matrix units do not read operands as these are".to_owned())
}

/// Whether a kernel is a convolution of which there are such windows.
fn has_windows(program: &Program, kernel: &Kernel, tile: &Tile) -> bool {
    let KernelKind::Convolution(conv) = &kernel.kind else { return false };
    let blocks = window_blocks(program, conv);
    blocks.iter().any(|block| block.tile() == [tile.rows, tile.columns] && block.threads() == tile.threads)
}

fn check_mapping(
    schedule: &Schedule,
    kernel: &Kernel,
    (choice, mapping): (&Selection, &Mapping),
) -> Vec<String> {
    let widens = matches!(&kernel.kind, KernelKind::MatMul(matmul) if matmul.widens(&schedule.program));
    match (&schedule.target, mapping) {
        (Target::Cpu(_), Mapping::Cpu(_)) if widens && !choice.algorithm.widens() => {
            vec!["the algorithm widens no operand".to_owned()]
        }
        (Target::Cpu(_), Mapping::Cpu(mapping)) => check_cpu(&schedule.program, kernel, mapping),
        (Target::Gpu(gpu), Mapping::Gpu(mapping)) => {
            let mut findings = vec![];
            if matches!(&kernel.kind, KernelKind::MatMul(matmul) if matmul.row_epilogue.is_some()) {
                findings.push("tiles of a GPU have no whole rows for a row epilogue".to_owned());
            }
            if mapping.threads() < 1 || mapping.threads() > gpu.max_threads {
                findings.push(format!("a block has {} threads", mapping.threads()));
            }
            if matches!(&kernel.kind, KernelKind::Nest(_)) && !nest::fits(choice.algorithm, mapping) {
                findings.push("its algorithm is laid otherwise".to_owned());
            }
            match (mapping, &kernel.kind) {
                (GpuMapping::Teams(teams), KernelKind::Nest(nest)) => {
                    if teams.in_order.iter().chain(&teams.turned).any(|axis| *axis >= nest.axes.len()) {
                        findings.push("it names an axis that it does not have".to_owned());
                    }
                    let can_keep = teams.along == Along::Inner
                        && teams.is_shared()
                        && Teams::length_of_own_rows(&schedule.program, nest)
                            .is_some_and(|length| length % teams.lanes.max(1) == 0);
                    if teams.rows == Rows::Registers && !can_keep {
                        findings.push("other threads than those that write its rows read them".to_owned());
                    }
                    let has_rows = !kernel.rows(&schedule.program).is_empty();
                    let can_share =
                        teams.can_be_of_blocks(nest, has_rows) && teams.blocks <= gpu.cluster_blocks;
                    if teams.blocks < 1 || (teams.blocks > 1 && !can_share) {
                        findings.push(format!("{} blocks cannot share a position", teams.blocks));
                    }
                }
                (GpuMapping::Scatter(own), KernelKind::Nest(nest)) => {
                    findings.extend(check_scatter(&schedule.program, nest, own));
                }
                (GpuMapping::Scatter(_), _) => findings.push("only loops scatter".to_owned()),
                (GpuMapping::Teams(_), _) => findings.push("a template has no teams".to_owned()),
                (
                    GpuMapping::Tiles(tile),
                    KernelKind::MatMul(_) | KernelKind::Convolution(_) | KernelKind::Attention(_),
                ) => {
                    findings.extend(check_tile(schedule, (kernel, choice), tile, gpu));
                }
                (GpuMapping::Tiles(_), _) => {
                    findings.push("only contractions and attention have tiles".to_owned())
                }
                (GpuMapping::Template { threads, rows, .. }, KernelKind::AxisOp(own)) => {
                    let block = RowBlock { threads: *threads, rows: *rows };
                    if !axis_ops::fits(choice.algorithm, own, block) {
                        findings.push(format!("{threads} threads cannot have {rows} rows"));
                    }
                }
                (GpuMapping::Template { .. }, KernelKind::Extern(_)) => {}
                (GpuMapping::Template { .. }, KernelKind::Nest(_)) => {
                    findings.push("loops are no template".to_owned());
                }
                (GpuMapping::Template { .. }, _) => findings.push("contractions have tiles".to_owned()),
            }
            findings
        }
        (Target::Cpu(_), Mapping::Gpu(_)) | (Target::Gpu(_), Mapping::Cpu(_)) => {
            vec!["its mapping is for another machine".to_owned()]
        }
    }
}

fn check_tile(
    schedule: &Schedule,
    (kernel, choice): (&Kernel, &Selection),
    tile: &Tile,
    gpu: &GpuTarget,
) -> Vec<String> {
    let mut findings = vec![];
    if tile.rows < 1 || tile.columns < 1 || tile.shared > gpu.max_shared_bytes {
        findings.push("no block can have such a tile".to_owned());
    }
    findings.extend(check_units(schedule, kernel, tile.by, gpu));
    if tile.by == MathPath::SkinnyGroupQuantized && group_tiles(&choice.packed).is_none() {
        findings.push("it has no weights in groups".to_owned());
    }
    if tile.by == MathPath::DirectConv && !has_windows(&schedule.program, kernel, tile) {
        findings.push("it has no such windows".to_owned());
    }
    let is_attention = matches!(kernel.kind, KernelKind::Attention(_));
    let has_depth = !is_attention || tile.by == MathPath::Gemv;
    let most = if has_depth { gpu.cluster_blocks } else { 1 };
    if tile.blocks < 1 || tile.blocks > most {
        findings.push(format!("{} blocks cannot share a tile", tile.blocks));
    }
    let may_round = match &kernel.kind {
        KernelKind::MatMul(_) => gpu.tf32.matmul,
        KernelKind::Convolution(_) => gpu.tf32.conv,
        KernelKind::Nest(_) | KernelKind::Attention(_) | KernelKind::AxisOp(_) | KernelKind::Extern(_) => {
            false
        }
    };
    if tile.by == MathPath::TensorCoreTf32 && !may_round {
        findings.push("its numbers may not be rounded to TF32".to_owned());
    }
    let can_bring = match &kernel.kind {
        KernelKind::Attention(_) => true,
        KernelKind::MatMul(own) => is_brought_product(&schedule.program, own, gpu),
        KernelKind::Convolution(own) => is_brought_convolution(&schedule.program, own, gpu),
        KernelKind::Nest(_) | KernelKind::AxisOp(_) | KernelKind::Extern(_) => false,
    };
    let has_roles = can_bring && matches!(tile.by, MathPath::TensorCore | MathPath::TensorCoreTf32);
    if tile.producer_threads < 0 || (tile.producer_threads > 0 && !has_roles) {
        findings.push(format!("{} threads cannot copy what others multiply", tile.producer_threads));
    }
    if tile.heads < 1 || (tile.heads > 1 && !is_attention) {
        findings.push(format!("{} heads cannot take turns", tile.heads));
    }
    findings
}

/// What a scatter does must be the same in any order of what its mapping leaves open.
fn check_scatter(program: &Program, nest: &Nest, mapping: &Scattering) -> Option<String> {
    let Some(own) = Scatter::of(program, nest, &ranges_of(&program.symbols)) else {
        return Some("its loops are no scatter".to_owned());
    };
    let is_exact = match own.combine {
        Combine::Set => false,
        Combine::Add | Combine::Mul => !own.dtype.is_float(),
        Combine::Max | Combine::Min => true,
    };
    let fits = match mapping.by {
        Meeting::Atomics => is_exact,
        Meeting::Bins(slots) => {
            let words = matches!(own.dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64);
            own.combine == Combine::Add && words && own.columns.is_empty() && own.slots().is(slots)
        }
        Meeting::Fixed | Meeting::Columns => own.combine == Combine::Add && own.dtype.compute() == DType::F32,
        Meeting::Last => own.combine == Combine::Set,
        Meeting::Ranked | Meeting::Sorted => own.combine != Combine::Set,
    };
    (!fits).then(|| "its updates cannot meet so".to_owned())
}

/// Whether only positions that touch different elements run side by side.
fn keeps_order(program: &Program, nest: &Nest, mapping: &CpuMapping) -> bool {
    let own = Scatter::of(program, nest, &ranges_of(&program.symbols));
    let apart = own.map(|own| own.apart()).unwrap_or_default();
    let last = nest.axes.len().checked_sub(1).is_some_and(|last| apart.contains(&last));
    let in_lanes = mapping.lanes == Lanes::Outer;
    let in_parts = match mapping.split {
        Split::Serial => true,
        Split::Axes(count) => (0..count).all(|axis| apart.contains(&axis)),
        Split::Chunks(_) => last && in_lanes,
        Split::RowsFrom(_) | Split::Template => false,
    };
    in_parts && (last || !in_lanes)
}

fn check_cpu(program: &Program, kernel: &Kernel, mapping: &CpuMapping) -> Vec<String> {
    let mut findings = vec![];
    let axes = match &kernel.kind {
        KernelKind::Nest(nest) => {
            if nest.serial && !keeps_order(program, nest, mapping) {
                findings.push("its positions must run in order".to_owned());
            }
            if mapping.lanes == Lanes::Outer && nest.axes.is_empty() {
                findings.push("there is no axis for the lanes".to_owned());
            }
            nest.axes.len() - usize::from(mapping.lanes == Lanes::Outer && !nest.axes.is_empty())
        }
        KernelKind::MatMul(matmul) => matmul.axes.len() - 1,
        KernelKind::Attention(_)
        | KernelKind::Convolution(_)
        | KernelKind::AxisOp(_)
        | KernelKind::Extern(_) => 0,
    };
    let has_rows = matches!(&kernel.kind, KernelKind::MatMul(matmul) if matmul.row_epilogue.is_some());
    if has_rows != mapping.rows.is_some() {
        findings.push("its mapping and its row epilogue do not match".to_owned());
    }
    if let Split::Axes(count) = mapping.split
        && count > axes
    {
        findings.push(format!("it splits {count} axes of {axes}"));
    }
    findings
}
