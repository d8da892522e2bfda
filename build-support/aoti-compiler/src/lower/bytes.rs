//! Which contractions of integers read numbers of one byte as they are (`byte_products.rs`), and have their channels as words need
//! them.

use super::Scope;
use super::layout::Layouts;
use super::nodes::{axes_over, axis_exprs, axis_symbol, expr_indices, strided};
use crate::graph::{Graph, Op, ValueId};
use crate::loops::{Access, Channels, MatrixOperand};
use crate::passes::byte_operands;
use crate::target::Target;
use crate::target::templates::are_words;
use cranelift_entity::SecondaryMap;

/// The contractions by their results.
#[derive(Default)]
pub(super) struct Bytes {
    left: SecondaryMap<ValueId, Option<ValueId>>,
}

impl Bytes {
    /// Of a graph.
    pub(super) fn find(graph: &Graph, target: &Target) -> Bytes {
        match target {
            Target::Cpu(_) => Bytes { left: byte_operands(graph) },
            Target::Gpu(_) => Bytes::default(),
        }
    }

    /// Leaves convolutions out whose left operand does not have channels last.
    pub(super) fn keep_last(&mut self, graph: &Graph, layouts: &Layouts) {
        for node in graph.nodes.iter().filter(|node| matches!(node.op, Op::Conv(_))) {
            let left = &mut self.left[node.outputs[0]];
            if left.is_some_and(|left| layouts.of(left) == Channels::First) {
                *left = None;
            }
        }
    }

    /// The left operand of a contraction that reads bytes as they are.
    pub(super) fn left(&self, result: ValueId) -> Option<ValueId> {
        self.left[result]
    }
}

impl Scope<'_> {
    /// A matrix of bytes whose rows are words: read in place where they are, else from a copy.
    pub(super) fn byte_operand(&mut self, value: ValueId) -> MatrixOperand {
        let operand = self.matrix_operand(value, false);
        if operand.column_stride.is(1) && are_words(&operand.row_stride) && are_words(&operand.offset) {
            return operand;
        }
        let ty = self.graph.ty(value).clone();
        let rank = ty.rank();
        let buffer = self.temporary(ty.dtype, ty.shape.clone(), &self.graph.values[value].name.clone());
        self.copy(value, buffer);
        let ranges = self.table(&[&axes_over(&ty.shape, 0)]);
        let coords = expr_indices(&axis_exprs(0..rank));
        let access = Access::new(buffer, &self.program.buffers[buffer], coords, &ranges);
        strided(&access, axis_symbol(rank - 2), axis_symbol(rank - 1)).expect("rows of a copy are strided")
    }
}
