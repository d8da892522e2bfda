//! Kernels as C++ functions.

mod contraction;
mod nest;
mod rows;

use super::c_family::function::Parameters;
use crate::graph::Origin;
use crate::loops::{BufferId, Kernel, KernelKind, Program};
use crate::symbolic::Symbol;

/// A kernel function, printed.
#[derive(Clone)]
pub(crate) struct KernelText {
    /// The calls of the user's program that it computes.
    pub(crate) origins: Vec<Origin>,
    /// Parameter list.
    pub(crate) declaration: String,
    /// Everything between the braces.
    pub(crate) body: String,
    /// Buffers that the caller passes, in order.
    pub(crate) arguments: Vec<BufferId>,
    /// Size symbols that the caller passes, after the buffers.
    pub(crate) symbols: Vec<Symbol>,
    /// Bytes of scratch over the size symbols and `threads`, as a C++ expression, where some is needed.
    pub(crate) scratch: Option<String>,
    /// Constants that it reads in packed form.
    pub(crate) packed: Vec<PackedOperand>,
    /// A measure of how much code it is, for splitting into translation units.
    pub(crate) weight: usize,
}

/// A constant that a kernel reads in another form than the graph's.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct PackedOperand {
    /// The constant's buffer.
    pub(crate) buffer: BufferId,
    /// The form.
    pub(crate) packing: super::weights::Packing,
}

/// Prints a kernel.
pub(crate) fn print_kernel(program: &Program, kernel: &Kernel) -> KernelText {
    let parameters = Parameters::new(program, kernel);
    let mut text = KernelText {
        origins: kernel.origins.clone(),
        declaration: parameters.declaration(),
        body: String::new(),
        arguments: parameters.arguments().collect(),
        symbols: parameters.symbols().collect(),
        scratch: None,
        packed: vec![],
        weight: 1,
    };
    match &kernel.kind {
        KernelKind::Nest(nest) => nest::print(program, &parameters, nest, &mut text),
        KernelKind::MatMul(matmul) => contraction::matmul(program, &parameters, matmul, &mut text),
        KernelKind::Convolution(conv) => contraction::convolution(program, &parameters, conv, &mut text),
        KernelKind::Rows(rows) => rows::print(&parameters, rows, &mut text),
    }
    text
}
