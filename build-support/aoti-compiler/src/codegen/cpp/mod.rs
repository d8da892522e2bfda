//! Kernels as C++ functions.

mod attention;
mod contraction;
mod convolution;
pub(crate) mod external;
mod nest;
mod rows;
mod threads;

use super::c_family::function::Parameters;
use super::c_family::operations::headers_of_terms;
use super::c_family::starts::Started;
use super::headers::Header;
use crate::graph::Origin;
use crate::loops::{BufferId, Kernel, KernelId, KernelKind, RowOp};
use crate::schedule::Schedule;
use crate::schedule::mapping::Mapping;
use crate::select::{Conv, Gemm, PackedOperand, Template};
use crate::symbolic::{Expr, Symbol};
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
    /// Buffers that the caller passes, in order, and where they begin, in elements.
    pub(crate) arguments: Vec<(BufferId, Expr)>,
    /// Size symbols that the caller passes, after the buffers.
    pub(crate) symbols: Vec<Symbol>,
    /// Constants that it reads in packed form.
    pub(crate) packed: Vec<PackedOperand>,
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
    let started = Started::new(program, &program.kernels[id], &choice.packed, 1);
    let kernel = &started.kernel;
    let Mapping::Cpu(mapping) = &schedule.mappings[id] else {
        unreachable!("a schedule for CPUs maps its kernels to threads and lanes")
    };
    let parameters = Parameters::new(program, kernel);
    let mut text = KernelText {
        origins: kernel.origins.clone(),
        declaration: parameters.declaration(),
        body: String::new(),
        arguments: parameters.arguments().map(|buffer| (buffer, started.start(buffer))).collect(),
        symbols: parameters.symbols().collect(),
        packed: choice.packed.clone(),
        headers: headers(kernel, choice.template),
        external: None,
        weight: 1,
    };
    match (&kernel.kind, choice.template) {
        (KernelKind::Nest(nest), _) => {
            nest::print(schedule, &parameters, nest, (mapping, &choice.scratch), &mut text);
        }
        (KernelKind::MatMul(matmul), Template::Gemm(gemm)) => {
            contraction::matmul((schedule, kernel), &parameters, matmul, (gemm, choice), mapping, &mut text);
        }
        (KernelKind::Convolution(conv), Template::Conv(algorithm)) => {
            convolution::convolution(program, &parameters, conv, (algorithm, choice), mapping, &mut text);
        }
        (KernelKind::Rows(rows), _) => rows::print(&parameters, rows, &choice.scratch, &mut text),
        (KernelKind::Extern(own), _) => external::print(&parameters, own, &mut text),
        (KernelKind::Attention(own), _) => {
            attention::print(program, &parameters, own, (mapping, &choice.scratch), &mut text);
        }
        (KernelKind::MatMul(_) | KernelKind::Convolution(_), _) => {
            unreachable!("a verified schedule has templates of its kernels' kinds")
        }
    }
    text
}

/// The headers that a kernel needs beside `nest.h`.
fn headers(kernel: &Kernel, template: Template) -> BTreeSet<Header> {
    let mut headers: BTreeSet<Header> = match template {
        Template::Loops => &[],
        Template::Gemm(Gemm::Packed | Gemm::PackedNarrow | Gemm::PackedWords | Gemm::General) => {
            [Header::Gemm].as_slice()
        }
        Template::Gemm(Gemm::PackedOnUnits | Gemm::GeneralOnUnits) => &[Header::GemmUnits],
        Template::Gemm(Gemm::Library(_)) => &[Header::GemmBlas],
        Template::Gemm(Gemm::Any) => &[Header::ContractAny],
        Template::Conv(Conv::Product) => &[Header::Gemm, Header::Conv],
        Template::Conv(Conv::Depthwise) => &[Header::Conv, Header::Depthwise],
        Template::Conv(Conv::Tiled) => &[Header::Conv],
        Template::Conv(Conv::Pixels | Conv::PixelWords) => &[Header::Pixels],
        Template::Conv(Conv::Winograd) => &[Header::Winograd],
        Template::Conv(Conv::DepthwisePixels) => &[Header::DepthwisePixels],
        Template::Conv(Conv::Any | Conv::Windows | Conv::TransposedAny) => {
            &[Header::Conv, Header::ContractAny]
        }
        Template::Conv(Conv::Transposed) => &[Header::Conv, Header::Transposed],
        Template::Attention => &[Header::Attention],
        Template::Rows => header_of_rows(kernel),
        Template::Extern => &[Header::Extern],
    }
    .iter()
    .copied()
    .collect();
    headers.extend(headers_of_terms(kernel));
    headers
}

fn header_of_rows(kernel: &Kernel) -> &'static [Header] {
    let KernelKind::Rows(rows) = &kernel.kind else { return &[] };
    match rows.op {
        RowOp::Matrices(_) => &[Header::Linalg],
        RowOp::Fourier(_) => &[Header::Fourier],
        RowOp::Scan(_) | RowOp::Sort(_) | RowOp::SearchSorted { .. } => &[Header::Rows],
    }
}
