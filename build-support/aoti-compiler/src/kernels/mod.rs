//! The ways to compute a kernel: one file and one [`Algorithm`] for each.
//!
//! An algorithm says which kernels it computes, what that costs, in which form it reads constants, which memory it needs,
//! how it is laid over a machine, and which function of its header is called with what. [`candidates`] lists those that
//! compute a kernel on a target, cheapest first; other stages and code generation ask the row and know no algorithm by
//! name. Which kinds of kernels there are is closed ([`KernelKind`]); which algorithms, is the registries' business: those of
//! products are in `gemm/`, those of convolutions in `conv/`.

pub(crate) mod attention;
pub(crate) mod axis_ops;
pub(crate) mod conv;
mod extern_call;
pub(crate) mod gemm;
pub(crate) mod index_width;
pub mod launch;
pub(crate) mod mapped;
pub mod mapping;
pub(crate) mod nest;
mod scratch;
mod shared_panels;
#[cfg(test)]
mod tests;
mod weight_form;

pub use gemm::library::{LibraryMatrix, LibraryProduct};
pub use scratch::Scratch;
pub(crate) use scratch::{all_rows_bytes, row_bytes};
pub(crate) use shared_panels::{read_panels, share_panels};
pub(crate) use weight_form::group_tiles;
pub use weight_form::{Expansion, Form, GroupTiles, PackedOperand, Packing};

use self::launch::Launches;
use self::mapping::GpuMapping;
use crate::cost::{Cost, WorkKind};
use crate::loops::{Elsewhere, Kernel, KernelKind, Program};
use crate::symbolic::Expr;
use crate::target::{MathLibrary, Target};
use std::fmt;

/// One way to compute a kind of kernel. Two are the same if their words are.
pub struct Algorithm {
    /// Its name in records, text forms and reports.
    pub word: &'static str,
    /// Raised when its speed changes: a record of an older one says nothing of this.
    pub version: u32,
    /// For people.
    pub description: &'static str,
    /// The headers that its code for processors needs beside `nest.h`.
    pub headers: fn(&Kernel) -> &'static [&'static str],
    /// What depends on the kind of kernel.
    pub(crate) code: Code,
}

/// What an algorithm does for the kind of kernels that it computes.
pub(crate) enum Code {
    /// Loops.
    Loops(nest::Code),
    /// A matrix product.
    Product(gemm::Code),
    /// A convolution.
    Convolution(conv::Code),
    /// Attention.
    Attention(attention::Code),
    /// An operation on rows.
    AxisOp(axis_ops::Code),
    /// A function of the user's project.
    Extern,
}

impl PartialEq for Algorithm {
    fn eq(&self, other: &Algorithm) -> bool {
        self.word == other.word
    }
}

impl Eq for Algorithm {}

impl fmt::Debug for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word)
    }
}

impl Algorithm {
    /// All of them.
    pub fn all() -> impl Iterator<Item = &'static Algorithm> {
        let others = [&attention::ATTENTION, &extern_call::EXTERN];
        let lists = [nest::ALGORITHMS, gemm::ALGORITHMS, conv::ALGORITHMS, axis_ops::ALGORITHMS];
        others.into_iter().chain(lists.into_iter().flatten().copied())
    }

    /// The one with this word.
    pub fn named(word: &str) -> Option<&'static Algorithm> {
        Algorithm::all().find(|algorithm| algorithm.word == word)
    }

    /// Whether it is for kernels of this kind, on this target.
    pub(crate) fn is_for(&self, kind: &KernelKind, target: &Target) -> bool {
        match (&self.code, kind) {
            (Code::Product(own), KernelKind::MatMul(_)) => match target {
                Target::Cpu(_) => own.processors.is_some(),
                Target::Gpu(_) => own.gpus.is_some(),
            },
            (Code::Convolution(own), KernelKind::Convolution(_)) => match target {
                Target::Cpu(_) => own.processors.is_some(),
                Target::Gpu(_) => own.gpus.is_some(),
            },
            (Code::AxisOp(own), KernelKind::AxisOp(rows)) => {
                let is_there = match target {
                    Target::Cpu(_) => own.processors.is_some(),
                    Target::Gpu(_) => own.gpus.is_some(),
                };
                is_there && self == axis_ops::algorithm(&rows.op)
            }
            (Code::Loops(own), KernelKind::Nest(_)) => own.processors || matches!(target, Target::Gpu(_)),
            (Code::Attention(_), KernelKind::Attention(_)) | (Code::Extern, KernelKind::Extern(_)) => true,
            (
                Code::Loops(_)
                | Code::Product(_)
                | Code::Convolution(_)
                | Code::Attention(_)
                | Code::AxisOp(_)
                | Code::Extern,
                _,
            ) => false,
        }
    }

    /// The library that is asked.
    pub fn library(&self) -> Option<MathLibrary> {
        match &self.code {
            Code::Product(own) => own.library,
            Code::Loops(_) | Code::Convolution(_) | Code::Attention(_) | Code::AxisOp(_) | Code::Extern => {
                None
            }
        }
    }

    /// Whether it reads operands of a product that are of another type than what it multiplies.
    pub(crate) fn widens(&self) -> bool {
        match &self.code {
            Code::Product(own) => own.widens,
            Code::Loops(_) | Code::Convolution(_) | Code::Attention(_) | Code::AxisOp(_) | Code::Extern => {
                false
            }
        }
    }

    /// How a device launches a kernel that is laid so.
    pub(crate) fn launches(&self, program: &Program, kernel: &Kernel, mapping: &GpuMapping) -> Launches {
        match (&self.code, &kernel.kind, mapping) {
            (Code::Loops(own), KernelKind::Nest(nest), _) => (own.launches)(program, kernel, nest, mapping),
            (Code::Product(own), KernelKind::MatMul(matmul), GpuMapping::Tiles(tile)) => {
                let own = own.gpus.as_ref().expect("candidates for GPUs are launched");
                (own.launch)(program, matmul, tile).into()
            }
            (Code::Convolution(own), KernelKind::Convolution(conv), GpuMapping::Tiles(tile)) => {
                let own = own.gpus.as_ref().expect("candidates for GPUs are launched");
                (own.launch)(program, conv, tile).into()
            }
            (Code::Attention(own), KernelKind::Attention(attention), GpuMapping::Tiles(tile)) => {
                (own.gpus.launch)(attention, tile).into()
            }
            (
                Code::AxisOp(own),
                KernelKind::AxisOp(rows),
                GpuMapping::Template { threads, rows: at_once, .. },
            ) => {
                let own = own.gpus.as_ref().expect("candidates for GPUs are launched");
                (own.launches)(rows, axis_ops::RowBlock { threads: *threads, rows: *at_once })
            }
            // Who connects the ranks launches what they compute together.
            (Code::Extern, KernelKind::Extern(_), GpuMapping::Template { .. }) => Launches::default(),
            (
                Code::Loops(_)
                | Code::Product(_)
                | Code::Convolution(_)
                | Code::Attention(_)
                | Code::AxisOp(_)
                | Code::Extern,
                _,
                _,
            ) => unreachable!("kernels are computed and mapped as their kind is"),
        }
    }
}

/// How a kernel is computed.
#[derive(Clone, PartialEq, Debug)]
pub struct Selection {
    /// The algorithm.
    pub algorithm: &'static Algorithm,
    /// Constants that it reads in another form than the graph's.
    pub packed: Vec<PackedOperand>,
    /// Memory that it needs while it runs.
    pub scratch: Scratch,
}

/// A choice and what it costs.
#[derive(Clone, PartialEq, Debug)]
pub struct Candidate {
    /// The choice.
    pub choice: Selection,
    /// Its cost; nothing where there is no other.
    pub cost: Cost,
}

/// Sizes that are not known count as this much where costs are compared.
const TYPICAL_SIZE: i64 = 64;

/// The ways to compute a kernel, cheapest first; never none.
pub fn candidates(program: &Program, kernel: &Kernel, target: &Target) -> Vec<Candidate> {
    let mut candidates = match &kernel.kind {
        KernelKind::Nest(nest) => nest::candidates(program, kernel, nest, target),
        KernelKind::MatMul(matmul) => gemm::candidates(program, kernel, matmul, target),
        KernelKind::Convolution(conv) => conv::candidates(program, conv, target),
        KernelKind::Attention(own) => vec![only(&attention::ATTENTION, attention::scratch(own, target))],
        KernelKind::Extern(own) => {
            let algorithm = match own.by {
                Elsewhere::Function(_) => &extern_call::EXTERN,
                Elsewhere::Ranks(_) => &extern_call::COLLECTIVE,
            };
            vec![only(algorithm, Scratch::default())]
        }
        KernelKind::AxisOp(rows) => {
            vec![only(axis_ops::algorithm(&rows.op), axis_ops::scratch(rows, target))]
        }
    };
    let prices = target.prices();
    candidates.sort_by(|a, b| prices.total(&a.cost).total_cmp(&prices.total(&b.cost)));
    candidates
}

fn only(algorithm: &'static Algorithm, scratch: Scratch) -> Candidate {
    Candidate { choice: Selection { algorithm, packed: vec![], scratch }, cost: Cost::default() }
}

/// A size for the comparison of costs.
pub(crate) fn typical(size: &Expr) -> f64 {
    size.as_int().unwrap_or(TYPICAL_SIZE).max(0) as f64
}

/// Where weights are when a run needs them: few stay near a core.
fn kind_of_weights(program: &Program, target: &Target) -> WorkKind {
    let bytes: usize = program.constants.values().map(|constant| constant.data.len()).sum();
    target.weight(bytes)
}

/// A call of a function of a header, as code generation prints it.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Call<T> {
    /// The function.
    pub(crate) function: &'static str,
    /// Its template arguments; none where they follow from what it is given.
    pub(crate) parameters: Vec<Parameter>,
    /// What it is given.
    pub(crate) operands: Vec<T>,
}

/// A template argument.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Parameter {
    /// As C++ writes it.
    Text(String),
    /// The type in which products are added up.
    Sum,
    /// The type of elements.
    Element,
}

impl<T: Into<String>> From<T> for Parameter {
    fn from(text: T) -> Parameter {
        Parameter::Text(text.into())
    }
}

impl<T> Call<T> {
    /// A call without template arguments.
    pub(crate) fn new(function: &'static str, operands: impl IntoIterator<Item = T>) -> Call<T> {
        Call { function, parameters: vec![], operands: operands.into_iter().collect() }
    }

    /// The same with template arguments.
    pub(crate) fn with(self, parameters: impl IntoIterator<Item = Parameter>) -> Call<T> {
        Call { parameters: parameters.into_iter().collect(), ..self }
    }

    /// The call as C++, of these types, with operands that are printed so.
    pub(crate) fn print(&self, types: Types, operand: impl Fn(&T) -> String) -> String {
        format!("{})", self.open(types, operand))
    }

    /// The same before the parenthesis that closes it, for operands that follow.
    pub(crate) fn open(&self, types: Types, operand: impl Fn(&T) -> String) -> String {
        let parameters = self.parameters.iter().map(|own| match own {
            Parameter::Text(text) => text.as_str(),
            Parameter::Sum => types.sum,
            Parameter::Element => types.element,
        });
        let parameters: Vec<&str> = parameters.collect();
        let parameters = parameters.join(", ");
        let parameters = if parameters.is_empty() { parameters } else { format!("<{parameters}>") };
        let operands: Vec<String> = self.operands.iter().map(operand).collect();
        format!("{}{parameters}({}", self.function, operands.join(", "))
    }
}

/// How C++ names the types of a contraction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Types {
    /// Of its elements.
    pub(crate) element: &'static str,
    /// Of its sums.
    pub(crate) sum: &'static str,
}
