//! Picks how each kernel is computed where there is more than one way.
//!
//! [`candidates`] lists the ways that are correct for a kernel on a target, each with a cost, cheapest first. A choice
//! is all that memory planning and code generation need to know: the template, the form in which it reads constants,
//! and its scratch. Knows no C++; what a template computes is in the headers.

mod conv;
mod gemm;
mod library;
mod packing;
mod scratch;
pub(crate) mod sorting;
#[cfg(test)]
mod tests;
pub(crate) mod windows;
mod words;

pub use library::{LibraryMatrix, LibraryProduct};
pub(crate) use library::{libraries, library_product};
pub use packing::{Expansion, Form, PackedOperand, Packing};
pub use scratch::Scratch;
pub(crate) use scratch::{all_rows_bytes, few_columns, few_rows, matrix_bytes, pixel_line, row_bytes};

use crate::cost::{Cost, Item};
use crate::loops::{Kernel, KernelKind, Program, RowOp};
use crate::symbolic::Expr;
use crate::target::{MathLibrary, Target};

/// The code that computes a kernel.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Template {
    /// The loops as they stand.
    Loops,
    /// A matrix product.
    Gemm(Gemm),
    /// A convolution.
    Conv(Conv),
    /// Attention.
    Attention,
    /// An operation on rows.
    Rows,
    /// A function of the user's project.
    Extern,
}

/// Algorithms for matrix products.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Gemm {
    /// Register tiles over a right operand that was packed when the model was compiled.
    Packed,
    /// As `Packed`, with elements of a half type that are widened where they are read.
    PackedNarrow,
    /// As `Packed`, of numbers of one byte: unsigned ones times signed ones, four of the depth at once.
    PackedWords,
    /// Register tiles over a right operand that is packed at each run.
    General,
    /// As `Packed`, on matrix units where the machine has them.
    PackedOnUnits,
    /// As `General`, on matrix units where the machine has them.
    GeneralOnUnits,
    /// A row at a time, for every element type; on GPUs by tiles.
    Any,
    /// By this library where there is one when the model is loaded; else as `Any` on GPUs, and as `General` on processors.
    Library(MathLibrary),
}

/// Algorithms for convolutions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Conv {
    /// One product with a row for each image: the kernel lies over the whole input.
    Product,
    /// A few output channels for each input channel.
    Depthwise,
    /// Register tiles of pixels and channels over a padded copy of the input.
    Tiled,
    /// Channels last: register tiles of channels and pixels.
    Pixels,
    /// As `Pixels`, of numbers of one byte: unsigned ones times signed weights, four channels at once.
    PixelWords,
    /// Channels last, 3 x 3 taps: register tiles of channels and tiles of pixels, with fewer products than taps.
    Winograd,
    /// Channels last, one output channel for each input channel.
    DepthwisePixels,
    /// On GPUs, few channels a group: neighbouring outputs with their windows in registers.
    Windows,
    /// A tap at a time, for every element type.
    Any,
    /// Transposed: products with every tap, then their sums.
    Transposed,
    /// Transposed, a tap at a time.
    TransposedAny,
}

/// One way to compute a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Choice {
    /// The code.
    pub template: Template,
    /// Constants that it reads in another form than the graph's.
    pub packed: Vec<PackedOperand>,
    /// Memory that it needs while it runs.
    pub scratch: Scratch,
}

impl Choice {
    /// The library that is asked.
    pub fn library(&self) -> Option<MathLibrary> {
        match self.template {
            Template::Gemm(Gemm::Library(library)) => Some(library),
            Template::Loops
            | Template::Gemm(_)
            | Template::Conv(_)
            | Template::Attention
            | Template::Rows
            | Template::Extern => None,
        }
    }
}

/// A choice and what it costs.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The choice.
    pub choice: Choice,
    /// Its cost; nothing where there is no other.
    pub cost: Cost,
}

/// Sizes that are not known count as this much where costs are compared.
const TYPICAL_SIZE: i64 = 64;

/// The ways to compute a kernel, cheapest first; never none.
pub fn candidates(program: &Program, kernel: &Kernel, target: &Target) -> Vec<Candidate> {
    let mut candidates = match &kernel.kind {
        KernelKind::Nest(nest) => {
            vec![only(Template::Loops, scratch::rows_of(program, kernel, nest, target))]
        }
        KernelKind::MatMul(matmul) => {
            let mut candidates = gemm::candidates(program, matmul, target);
            for Candidate { choice, .. } in &mut candidates {
                choice.scratch = scratch::behind_rows(&choice.scratch, program, kernel, target);
            }
            candidates
        }
        KernelKind::Convolution(conv) => conv::candidates(program, conv, target),
        KernelKind::Attention(own) => {
            let scratch = match target {
                Target::Cpu(_) => scratch::attention(own, target),
                Target::Gpu(_) => Scratch::default(),
            };
            vec![only(Template::Attention, scratch)]
        }
        KernelKind::Extern(_) => vec![only(Template::Extern, Scratch::default())],
        KernelKind::Rows(rows) => {
            let scratch = match rows.op {
                RowOp::Sort(_) => scratch::sort(rows, target),
                RowOp::Matrices(routine) => scratch::matrix(routine, rows, target),
                RowOp::Fourier(fourier) => scratch::fourier(&fourier, rows, target),
                RowOp::Scan(_) | RowOp::SearchSorted { .. } => Scratch::default(),
            };
            vec![only(Template::Rows, scratch)]
        }
    };
    let prices = target.prices();
    candidates.sort_by(|a, b| prices.total(&a.cost).total_cmp(&prices.total(&b.cost)));
    candidates
}

fn only(template: Template, scratch: Scratch) -> Candidate {
    Candidate { choice: Choice { template, packed: vec![], scratch }, cost: Cost::default() }
}

/// A size for the comparison of costs.
fn typical(size: &Expr) -> f64 {
    size.as_int().unwrap_or(TYPICAL_SIZE).max(0) as f64
}

/// Where weights are when a run needs them: few stay near a core.
fn kind_of_weights(program: &Program, target: &Target) -> Item {
    let bytes: usize = program.constants.values().map(|constant| constant.data.len()).sum();
    target.weight(bytes)
}
