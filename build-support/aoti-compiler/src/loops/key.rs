//! Keys of kernels: digests of what they compute, by which records know questions about them.

use super::text::print_kernel;
use super::{BufferId, Kernel, Program, Storage};
use crate::graph::text::bracketed;
use crate::target::Target;
use crate::tuning::{Roles, TuningKey, kind_of};
use std::fmt::Write;

impl TuningKey {
    /// The key of a kernel.
    pub fn of(program: &Program, kernel: &Kernel, target: &Target) -> TuningKey {
        TuningKey::with_sizes(program, &[kernel], target).0
    }

    /// The key of a kernel, or of two that may become one, and the sizes that it leaves open: positions among the symbols
    /// of the program, in the order of their roles. Kernels of one key have as many, each of the same meaning.
    pub fn with_sizes(program: &Program, kernels: &[&Kernel], target: &Target) -> (TuningKey, Vec<usize>) {
        let (text, sizes) = canonical(program, kernels, target);
        (TuningKey::digest(&text), sizes)
    }

    /// The key of another question of some kind about a kernel than how it runs.
    pub fn of_kernel(
        what: &str,
        program: &Program,
        kernel: &Kernel,
        target: &Target,
    ) -> (TuningKey, Vec<usize>) {
        let (text, sizes) = canonical(program, &[kernel], target);
        (TuningKey::digest(&format!("{what}\n{text}")), sizes)
    }
}

/// What kernels compute, and what their ways depend on, as text with roles for names; and the symbols in it.
fn canonical(program: &Program, kernels: &[&Kernel], target: &Target) -> (String, Vec<usize>) {
    let (mut roles, mut text) = (Roles::default(), kind_of(target));
    for kernel in kernels {
        text.push_str(&roles.renamed(&print_kernel(program, kernel)));
    }
    // Shapes may name further symbols, and so come before the ranges of all.
    for (buffer, role) in roles.buffers() {
        let own = &program.buffers[BufferId::from_u32(buffer)];
        let storage = match own.storage {
            Storage::Constant(_) => "constant".to_owned(),
            Storage::Input(_)
            | Storage::Output(_)
            | Storage::State(_)
            | Storage::Generator
            | Storage::Temporary => "memory".to_owned(),
            Storage::Local { outer } => format!("row {outer}"),
        };
        let shape = roles.renamed(&bracketed(&own.shape));
        let _ = writeln!(text, "{role}: {}{shape} {storage}", own.dtype);
    }
    let (sizes, ranges) = roles.ranges(&program.symbols);
    (text + &ranges, sizes)
}
