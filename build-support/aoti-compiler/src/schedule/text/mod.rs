//! The text form of schedules: printed by `inspect --emit schedule`, parsed, and what tests are written in.
//!
//! ```text
//! schedule cpu "x86-64" "x86-64-v3" {
//!   loops "rows" {
//!     ...
//!     kernel "head_sum" {
//!       note "aten.sum.dim_IntList of sum_1" at "m.py:3" in "head"
//!       choose loops
//!       map split axes 1 lanes inner grain [16384, 8]
//!       for [i0 < s0] {
//!         ...
//!       }
//!     }
//!   }
//!   arena [64*s0]
//!   place b3 [0]
//! }
//! ```
//!
//! The program is in its own form, with two kinds of lines more in each kernel. `choose` names the template, what
//! it reads packed (`pack b1 product [0, 1, 64, 64, 32]`) and its scratch (`scratch [for all, for each worker]`); `map`
//! is the mapping. Behind the program stand the arena's bytes and the place of each buffer in it. The first line names the
//! libraries that products may be left to, each as `library "openblas"`.

mod parse;
mod print;
mod setting;
#[cfg(test)]
mod tests;

pub use parse::parse;
pub use print::{print, print_short};

use crate::select::{Conv, Gemm, Template};
use crate::target::MathLibrary;

/// Templates and the words for them.
const TEMPLATES: &[(Template, &str)] = &[
    (Template::Loops, "loops"),
    (Template::Gemm(Gemm::Packed), "gemm.packed"),
    (Template::Gemm(Gemm::PackedNarrow), "gemm.packed-narrow"),
    (Template::Gemm(Gemm::PackedWords), "gemm.packed-words"),
    (Template::Gemm(Gemm::General), "gemm.general"),
    (Template::Gemm(Gemm::PackedOnUnits), "gemm.packed-on-units"),
    (Template::Gemm(Gemm::GeneralOnUnits), "gemm.general-on-units"),
    (Template::Gemm(Gemm::Any), "gemm.any"),
    (Template::Gemm(Gemm::Library(MathLibrary::CublasLt)), "gemm.cublaslt"),
    (Template::Gemm(Gemm::Library(MathLibrary::HipblasLt)), "gemm.hipblaslt"),
    (Template::Gemm(Gemm::Library(MathLibrary::OpenBlas)), "gemm.openblas"),
    (Template::Gemm(Gemm::Library(MathLibrary::OneDnn)), "gemm.onednn"),
    (Template::Conv(Conv::Product), "conv.product"),
    (Template::Conv(Conv::Depthwise), "conv.depthwise"),
    (Template::Conv(Conv::Tiled), "conv.tiled"),
    (Template::Conv(Conv::Pixels), "conv.pixels"),
    (Template::Conv(Conv::PixelWords), "conv.pixel-words"),
    (Template::Conv(Conv::Winograd), "conv.winograd"),
    (Template::Conv(Conv::DepthwisePixels), "conv.depthwise_pixels"),
    (Template::Conv(Conv::Windows), "conv.windows"),
    (Template::Conv(Conv::Any), "conv.any"),
    (Template::Conv(Conv::Transposed), "conv.transposed"),
    (Template::Conv(Conv::TransposedAny), "conv.transposed_any"),
    (Template::Attention, "attention"),
    (Template::Rows, "rows"),
    (Template::Extern, "extern"),
];
