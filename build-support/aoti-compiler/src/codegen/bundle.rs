//! The product of the compiler: everything that the build needs to make one native library, as plain data.

use super::interface::Interface;
use super::{bindings, header, names};
use crate::loops::{KernelKind, Program};
pub use crate::runplan::WeightsBlob;
use crate::target::Vendor;
use crate::{json_fields, json_words};

/// A generated text file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    /// Path relative to the bundle, such as `kernels.cpp` or `include/aoti/vec.h`.
    pub name: String,
    /// Its whole text.
    pub text: String,
}

/// One compile action: a source file at one CPU level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TranslationUnit {
    /// Name of the [`SourceFile`] to compile.
    pub source: String,
    /// Name of the object, such as `kernels.v3.o`.
    pub object: String,
    /// CPU level by its toolchain name (`x86-64`, `x86-64-v3`, `native`, ...), or `None` for the target's baseline.
    pub level: Option<String>,
    /// Preprocessor definitions as (name, value).
    pub defines: Vec<(String, String)>,
    /// What its code should be.
    pub goal: Goal,
}

json_fields!(TranslationUnit { source, object, level, defines, goal });

/// What a compiler should make of a source file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Goal {
    /// Fast code.
    Speed,
    /// Small code: it runs once a call, whatever the call computes.
    Size,
}

json_words!(Goal { Speed = "speed", Size = "size" });

/// Kernels of a vendor's GPUs, to be compiled by a device compiler and embedded under a symbol.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeviceUnit {
    /// Whose GPUs.
    pub vendor: Vendor,
    /// The architectures that the code is made for, by their compiler's names.
    pub architectures: Vec<String>,
    /// Name of the [`SourceFile`].
    pub source: String,
    /// Where the library looks for the compiled code.
    pub symbol: String,
}

json_fields!(DeviceUnit { vendor, architectures, source, symbol });

/// A function of the user's project that a library calls.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CalledFunction {
    /// What the linker calls it.
    pub symbol: String,
    /// The operator that it computes.
    pub operator: String,
    /// The line of the program that calls it first, or nothing.
    pub source: String,
}

json_fields!(CalledFunction { symbol, operator, source });

impl CalledFunction {
    /// Those that the kernels of a program call, each once.
    pub(super) fn of(program: &Program) -> Vec<CalledFunction> {
        let mut all: Vec<CalledFunction> = Vec::new();
        for kernel in program.kernels.values() {
            if let KernelKind::Extern(own) = &kernel.kind
                && let Some(call) = own.function()
                && !all.iter().any(|called| called.symbol == call.symbol)
            {
                let (symbol, operator) = (call.symbol.clone(), call.operator.clone());
                let source = kernel.origins.first().map(|origin| origin.source.clone()).unwrap_or_default();
                all.push(CalledFunction { symbol, operator, source });
            }
        }
        all
    }
}

/// The symbol of a model's code for a vendor's GPUs.
pub(super) fn code_symbol(model: &str, vendor: Vendor) -> String {
    format!("aoti_{model}_{}_code", vendor.device())
}

/// How bindings refer to the library.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Names<'a> {
    /// The model's identifier, as for [`SourceBundle::identifier`].
    pub identifier: &'a str,
    /// What stands for it in symbols, as for [`SourceBundle::symbol`].
    pub symbol: &'a str,
    /// Digest of the library, as for [`SourceBundle::library`].
    pub library: &'a str,
}

/// One of several programs of a model, from outside.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ProgramInterface {
    /// Its name among the programs.
    pub name: String,
    /// How it looks.
    pub interface: Interface,
}

json_fields!(ProgramInterface { name, interface });

/// One model, compiled to source.
#[derive(Clone, Debug)]
pub struct SourceBundle {
    /// Outside view of the model; of its first program, where it has several.
    pub interface: Interface,
    /// The programs, where there are several.
    pub programs: Vec<ProgramInterface>,
    /// The identifier that stands for the model in names that need not differ between packages.
    pub identifier: String,
    /// What stands for it in symbols and names of libraries: the exported function is `aoti_<symbol>_api`.
    pub symbol: String,
    /// Digest of all that is compiled into the library.
    pub library: String,
    /// Generated files and the headers they include.
    pub files: Vec<SourceFile>,
    /// What to compile.
    pub units: Vec<TranslationUnit>,
    /// Code for GPUs.
    pub devices: Vec<DeviceUnit>,
    /// Functions of the user's project that the library refers to and does not define.
    pub functions: Vec<CalledFunction>,
    /// Kernels: distinct functions of the generated source, however many levels each is compiled for.
    pub kernels: usize,
    /// The weights.
    pub weights: WeightsBlob,
    /// What the library holds besides, to make weights from tensors by name: under the symbol
    /// `aoti_<symbol>_fixed`. Nothing in a library that does not.
    pub fixed: WeightsBlob,
}

impl SourceBundle {
    /// The typed Rust module.
    pub fn bindings(&self, options: &bindings::Options) -> String {
        if self.programs.is_empty() {
            return bindings::print(&self.interface, &self.names(), options);
        }
        bindings::print_programs(&self.programs, &self.names(), options)
    }

    /// The typed C header.
    pub fn header(&self) -> String {
        if self.programs.is_empty() {
            return header::print(&self.interface, &self.names());
        }
        header::print_programs(&self.programs, &self.names())
    }

    fn names(&self) -> Names<'_> {
        Names { identifier: &self.identifier, symbol: &self.symbol, library: &self.library }
    }

    /// The one symbol that the library exports.
    pub fn exported_symbol(&self) -> String {
        names::exported_symbol(&self.symbol)
    }
}
