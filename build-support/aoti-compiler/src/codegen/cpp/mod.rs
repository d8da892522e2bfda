//! Kernels as C++ functions.

mod attention;
mod contraction;
mod convolution;
pub(crate) mod external;
mod nest;
mod rows;
mod threads;
mod turned;
mod wide_lanes;

use super::c_family::function::Parameters;
use super::c_family::operations::headers_of_terms;
use super::headers::Header;
use crate::graph::Origin;
use crate::kernels::Algorithm;
use crate::kernels::mapping::Mapping;
use crate::loops::{Elsewhere, Kernel, KernelId, KernelKind};
use crate::schedule::Schedule;
use std::collections::BTreeSet;

/// A kernel function, printed.
#[derive(Clone)]
pub(crate) struct KernelText {
    /// The calls of the user's program that it computes.
    pub(crate) origins: Vec<Origin>,
    /// Parameter list.
    pub(crate) declaration: String,
    /// Everything between the braces.
    pub(crate) body: String,
    /// The declaration of the function of the user's project that it calls.
    pub(crate) external: Option<String>,
    /// Headers that it needs beside `nest.h`.
    pub(crate) headers: BTreeSet<Header>,
    /// A measure of how much code it is, for splitting into translation units.
    pub(crate) weight: usize,
}

/// Prints a kernel of a schedule for CPUs.
pub(crate) fn print_kernel(schedule: &Schedule, id: KernelId) -> KernelText {
    let (program, choice) = (&schedule.program, &schedule.choices[id]);
    let call = &schedule.calls[id];
    let kernel = &call.rebased(program, &program.kernels[id], &choice.packed);
    let Mapping::Cpu(mapping) = &schedule.mappings[id] else {
        unreachable!("a schedule for CPUs maps its kernels to threads and lanes")
    };
    let parameters = Parameters::new(program, kernel, call);
    let mut text = KernelText {
        origins: kernel.origins.clone(),
        declaration: parameters.declaration(),
        body: String::new(),
        headers: headers(kernel, choice.algorithm),
        external: None,
        weight: 1,
    };
    match &kernel.kind {
        KernelKind::Nest(nest) => {
            nest::print(schedule, &parameters, nest, (mapping, &choice.scratch), &mut text);
        }
        KernelKind::MatMul(matmul) => {
            contraction::matmul((schedule, kernel), &parameters, matmul, choice, mapping, &mut text);
        }
        KernelKind::Convolution(conv) => {
            convolution::convolution(schedule, &parameters, conv, choice, mapping, &mut text);
        }
        KernelKind::AxisOp(rows) => rows::print(&parameters, rows, choice, &mut text),
        KernelKind::Extern(own) => match &own.by {
            Elsewhere::Function(call) => external::print(&parameters, (own, call), &mut text),
            Elsewhere::Ranks(_) => unreachable!("a run exchanges without a function"),
        },
        KernelKind::Attention(own) => {
            attention::print(program, &parameters, own, (mapping, choice), &mut text);
        }
    }
    text
}

/// The headers that a kernel needs beside `nest.h`.
fn headers(kernel: &Kernel, algorithm: &Algorithm) -> BTreeSet<Header> {
    let own = (algorithm.headers)(kernel).iter().map(|file| Header::named(file));
    own.chain(headers_of_terms(kernel)).collect()
}
