//! What functions are known by: the text of what they do, in which buffers have roles for names.

use super::super::text::{choice_lines, mapping_line};
use super::{Call, FunctionId};
use crate::graph::text::bracketed;
use crate::kernels::Selection;
use crate::kernels::launch::Launch;
use crate::kernels::mapping::Mapping;
use crate::loops::text::print_kernel;
use crate::loops::{BufferId, Elsewhere, Kernel, KernelId, KernelKind, Program, Storage};
use crate::symbolic::Expr;
use crate::tuning::Roles;
use cranelift_entity::{EntityRef, PrimaryMap};
use indexmap::IndexMap;
use std::fmt::Write;

/// Numbers the functions of kernels, in the order in which these run.
pub(in crate::schedule) fn number(
    program: &Program,
    (choices, mappings): (&PrimaryMap<KernelId, Selection>, &PrimaryMap<KernelId, Mapping>),
    launches: &PrimaryMap<KernelId, Vec<Launch>>,
    calls: &mut PrimaryMap<KernelId, Call>,
) {
    let mut known: IndexMap<String, FunctionId> = IndexMap::new();
    let mut function = |key: String| {
        let next = FunctionId::new(known.len());
        *known.entry(key).or_insert(next)
    };
    for id in program.running() {
        let kernel = &program.kernels[id];
        let key = canonical(program, kernel, &calls[id], (&choices[id], &mappings[id]));
        calls[id].functions = match &mappings[id] {
            Mapping::Cpu(_) if is_of_ranks(kernel) => vec![],
            Mapping::Cpu(_) => vec![function(key)],
            Mapping::Gpu(_) => {
                launches[id].iter().map(|launch| function(key.clone() + &entry(launch))).collect()
            }
        };
    }
}

/// Whether a kernel is no function, but something that ranks do together.
fn is_of_ranks(kernel: &Kernel) -> bool {
    matches!(&kernel.kind, KernelKind::Extern(own) if matches!(own.by, Elsewhere::Ranks(_)))
}

/// What a kernel computes from what it is given, and how.
fn canonical(
    program: &Program,
    kernel: &Kernel,
    call: &Call,
    (choice, mapping): (&Selection, &Mapping),
) -> String {
    let mut kernel = call.rebased(program, kernel, &choice.packed);
    // Where an element lies says its offset; what its coordinates are in a buffer does not matter here.
    let accesses = kernel.stages_mut().flat_map(|stage| stage.accesses_mut());
    accesses.for_each(|access| access.coords.clear());
    let mut roles = Roles::of_buffers();
    let mut text = roles.renamed(&print_kernel(program, &kernel));
    for line in choice_lines(choice).into_iter().chain([mapping_line(mapping)]) {
        let _ = writeln!(text, "{}", roles.renamed(&line));
    }
    for (buffer, role) in roles.buffers() {
        let own = &program.buffers[BufferId::from_u32(buffer)];
        let (storage, shape) = match own.storage {
            Storage::Constant(_) => ("constant", shape_of(&kernel, &own.shape)),
            Storage::Input(_)
            | Storage::Output(_)
            | Storage::State(_)
            | Storage::Generator
            | Storage::Temporary => ("memory", shape_of(&kernel, &own.shape)),
            Storage::Local { outer } => ("row", &own.shape[outer..]),
        };
        let _ = writeln!(text, "{role}: {}{} {storage}", own.dtype, bracketed(shape));
    }
    text
}

/// The shape of a buffer, where what a kernel does follows from it and not from its loops alone.
fn shape_of<'a>(kernel: &Kernel, shape: &'a [Expr]) -> &'a [Expr] {
    match &kernel.kind {
        KernelKind::Nest(nest) if !nest.serial => &[],
        KernelKind::MatMul(_) | KernelKind::Attention(_) | KernelKind::AxisOp(_) => &[],
        KernelKind::Nest(_) | KernelKind::Convolution(_) | KernelKind::Extern(_) => shape,
    }
}

/// What a launch adds: which part of a kernel it does, and what is compiled for it.
fn entry(launch: &Launch) -> String {
    let Launch { entry, threads, producer_threads, cluster, takes_scratch, trigger, maps, .. } = launch;
    let batches: Vec<_> = maps.iter().map(|own| &own.map.batches).collect();
    format!("entry {entry} {threads} {producer_threads} {cluster} {takes_scratch} {trigger:?} {batches:?}")
}
