//! The frame of a kernel function: its parameters and their names.

use super::expr::symbol_name;
use super::terms::type_name;
use crate::dtype::DType;
use crate::loops::{AccumulatorId, BufferId, Kernel, KernelClass, Nest, Program, Storage};
use crate::schedule::Call;
use crate::symbolic::{Expr, Symbol};
use indexmap::IndexMap;

/// What a kernel does with a buffer that it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::codegen) enum Use {
    /// Writes it, and may read it too.
    Written,
    /// Reads what other kernels or the caller wrote.
    Read,
    /// Reads what nobody writes.
    Constant,
}

/// Names of what a kernel reads and writes. They follow roles, not the model, so that kernels that do the same have the
/// same text and are compiled once.
pub(in crate::codegen) struct Parameters<'a> {
    program: &'a Program,
    buffers: IndexMap<BufferId, (String, bool)>,
    sizes: &'a [Symbol],
    positions: Vec<Option<Expr>>,
}

impl<'a> Parameters<'a> {
    pub(in crate::codegen) fn new(program: &'a Program, kernel: &Kernel, call: &'a Call) -> Parameters<'a> {
        let writes = kernel.writes();
        let mut buffers = IndexMap::new();
        let (mut inputs, mut outputs, mut rows) = (0, 0, 0);
        for buffer in kernel.reads().into_iter().chain(writes.iter().copied()) {
            if buffers.contains_key(&buffer) {
                continue;
            }
            let written = writes.contains(&buffer);
            let counter = match (program.buffers[buffer].storage, written) {
                (Storage::Local { .. }, _) => &mut rows,
                (_, true) => &mut outputs,
                (_, false) => &mut inputs,
            };
            let prefix = match (program.buffers[buffer].storage, written) {
                (Storage::Local { .. }, _) => "row",
                (_, true) => "out",
                (_, false) => "in",
            };
            buffers.insert(buffer, (format!("{prefix}{counter}"), written));
            *counter += 1;
        }
        let positions = match kernel.kind.class() {
            KernelClass::Loops(nest) | KernelClass::Contraction { rows: Some(nest), .. } => {
                positions_of(nest)
            }
            KernelClass::Contraction { rows: None, .. } | KernelClass::Attention(_) | KernelClass::Whole => {
                vec![]
            }
        };
        Parameters { program, buffers, sizes: &call.sizes, positions }
    }

    pub(in crate::codegen) fn buffer(&self, buffer: BufferId) -> &str {
        &self.buffers[&buffer].0
    }

    pub(in crate::codegen) fn dtype(&self, buffer: BufferId) -> DType {
        self.program.buffers[buffer].dtype
    }

    /// What an accumulator of positions keeps.
    pub(in crate::codegen) fn position(&self, accumulator: AccumulatorId) -> Option<&Expr> {
        self.positions.get(accumulator).and_then(Option::as_ref)
    }

    /// Buffers that the caller passes, in order.
    pub(in crate::codegen) fn arguments(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.buffers.keys().copied().filter(|id| !self.is_local(*id))
    }

    /// Rows of scratch, with their names.
    pub(in crate::codegen) fn rows(&self) -> impl Iterator<Item = (BufferId, &str)> + '_ {
        self.buffers.iter().filter(|(id, _)| self.is_local(**id)).map(|(id, (name, _))| (*id, name.as_str()))
    }

    /// Whether a buffer lives inside the kernel.
    pub(in crate::codegen) fn is_local(&self, buffer: BufferId) -> bool {
        self.program.buffers[buffer].storage.is_local()
    }

    /// The parameter list.
    pub(in crate::codegen) fn declaration(&self) -> String {
        let parts: Vec<String> =
            ["const Run &run".to_owned()].into_iter().chain(self.list(&|_| "*", "i64")).collect();
        parts.join(", ")
    }

    /// The parameters for buffers, each declared as its kind of pointer, then those for sizes, which have type `index`.
    pub(in crate::codegen) fn list(&self, pointer: &dyn Fn(Use) -> &'static str, index: &str) -> Vec<String> {
        let buffers = self.arguments().map(|buffer| {
            let (name, written) = &self.buffers[&buffer];
            let is_constant = matches!(self.program.buffers[buffer].storage, Storage::Constant(_));
            let (constness, pointer) = match (*written, is_constant) {
                (true, _) => ("", pointer(Use::Written)),
                (false, true) => ("const ", pointer(Use::Constant)),
                (false, false) => ("const ", pointer(Use::Read)),
            };
            format!("{constness}{} {pointer}{name}", type_name(self.dtype(buffer)))
        });
        let sizes = self.sizes.iter().map(|symbol| format!("{index} {}", symbol_name(*symbol)));
        buffers.chain(sizes).collect()
    }
}

/// What each accumulator keeps, where it keeps a position.
fn positions_of(nest: &Nest) -> Vec<Option<Expr>> {
    nest.accumulators.iter().map(|accumulator| accumulator.position.clone()).collect()
}
