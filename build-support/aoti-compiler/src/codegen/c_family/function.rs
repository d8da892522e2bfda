//! The frame of a kernel function: its parameters and their names.

use super::expr::symbol_name;
use super::terms::type_name;
use crate::dtype::DType;
use crate::loops::{AccumulatorId, BufferId, Kernel, KernelKind, Nest, Program, Storage};
use crate::symbolic::{Expr, Symbol, SymbolKind};
use indexmap::IndexMap;
use std::collections::BTreeSet;

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
    symbols: BTreeSet<Symbol>,
    positions: Vec<Option<Expr>>,
}

impl<'a> Parameters<'a> {
    pub(in crate::codegen) fn new(program: &'a Program, kernel: &Kernel) -> Parameters<'a> {
        let writes = kernel.writes();
        let mut buffers = IndexMap::new();
        let (mut inputs, mut outputs, mut rows) = (0, 0, 0);
        for buffer in kernel.reads().into_iter().chain(writes.iter().copied()) {
            if buffers.contains_key(&buffer) {
                continue;
            }
            let written = writes.contains(&buffer);
            let counter = match (program.buffers[buffer].storage, written) {
                (Storage::Row { .. }, _) => &mut rows,
                (_, true) => &mut outputs,
                (_, false) => &mut inputs,
            };
            let prefix = match (program.buffers[buffer].storage, written) {
                (Storage::Row { .. }, _) => "row",
                (_, true) => "out",
                (_, false) => "in",
            };
            buffers.insert(buffer, (format!("{prefix}{counter}"), written));
            *counter += 1;
        }
        let positions = match &kernel.kind {
            KernelKind::Nest(nest) => positions_of(nest),
            KernelKind::MatMul(matmul) => matmul.row_epilogue.as_ref().map_or(vec![], positions_of),
            KernelKind::Convolution(_)
            | KernelKind::Attention(_)
            | KernelKind::Rows(_)
            | KernelKind::Extern(_) => vec![],
        };
        Parameters { program, buffers, symbols: symbols_of(program, kernel), positions }
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
        self.buffers.keys().copied().filter(|id| !self.is_row(*id))
    }

    /// Rows of scratch, with their names.
    pub(in crate::codegen) fn rows(&self) -> impl Iterator<Item = (BufferId, &str)> + '_ {
        self.buffers.iter().filter(|(id, _)| self.is_row(**id)).map(|(id, (name, _))| (*id, name.as_str()))
    }

    /// Whether a buffer lives inside the kernel.
    pub(in crate::codegen) fn is_row(&self, buffer: BufferId) -> bool {
        self.program.buffers[buffer].storage.is_row()
    }

    /// Size symbols that the caller passes, in order.
    pub(in crate::codegen) fn symbols(&self) -> impl Iterator<Item = Symbol> + '_ {
        self.symbols.iter().copied()
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
        let sizes = self.symbols.iter().map(|symbol| format!("{index} {}", symbol_name(*symbol)));
        buffers.chain(sizes).collect()
    }
}

/// What each accumulator keeps, where it keeps a position.
fn positions_of(nest: &Nest) -> Vec<Option<Expr>> {
    nest.accumulators.iter().map(|accumulator| accumulator.position.clone()).collect()
}

/// Size symbols that a kernel's text mentions.
fn symbols_of(program: &Program, kernel: &Kernel) -> BTreeSet<Symbol> {
    let mut all = BTreeSet::new();
    let mut add = |expr: &Expr| expr.collect_symbols(&mut all);
    for stage in kernel.stages() {
        stage.axes.iter().for_each(|axis| add(&axis.extent));
        stage.accesses().for_each(|access| {
            add(&access.offset);
            access.indirect.iter().for_each(|(_, stride)| add(stride));
        });
        stage.terms.iter().flat_map(|typed| typed.term.exprs()).for_each(&mut add);
    }
    match &kernel.kind {
        KernelKind::Nest(nest) => {
            nest.axes.iter().for_each(|axis| add(&axis.extent));
            nest.accumulators.iter().filter_map(|acc| acc.position.as_ref()).for_each(add);
        }
        KernelKind::MatMul(matmul) => {
            matmul.axes.iter().for_each(|axis| add(&axis.extent));
            add(&matmul.depth);
            let accumulators = matmul.row_epilogue.iter().flat_map(|rows| &rows.accumulators);
            accumulators.filter_map(|acc| acc.position.as_ref()).for_each(&mut add);
            for operand in [&matmul.a, &matmul.b] {
                [&operand.offset, &operand.row_stride, &operand.column_stride].into_iter().for_each(&mut add);
            }
        }
        KernelKind::Convolution(conv) => {
            conv.axes.iter().for_each(|axis| add(&axis.extent));
            for buffer in [conv.input, conv.weight] {
                program.buffers[buffer].shape.iter().for_each(&mut add);
            }
        }
        KernelKind::Attention(own) => {
            own.axes.iter().for_each(|axis| add(&axis.extent));
            own.reach.iter().for_each(&mut add);
            add(&own.depth);
            for operand in [&own.queries, &own.keys, &own.values] {
                [&operand.offset, &operand.row_stride, &operand.column_stride].into_iter().for_each(&mut add);
            }
        }
        KernelKind::Rows(rows) => [&rows.outer, &rows.length, &rows.inner].into_iter().for_each(&mut add),
        KernelKind::Extern(own) => own.sizes().for_each(&mut add),
    }
    for buffer in kernel.reads().into_iter().chain(kernel.writes()) {
        if let Storage::Row { outer } = program.buffers[buffer].storage {
            program.buffers[buffer].shape[outer..].iter().for_each(|size| size.collect_symbols(&mut all));
        }
    }
    all.into_iter().filter(|symbol| symbol.kind == SymbolKind::Size).collect()
}
