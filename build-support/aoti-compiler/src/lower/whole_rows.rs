//! Operands of products on GPUs whose rows begin anywhere. Wide accesses and the engine that copies tiles want rows that begin at
//! multiples of 16 bytes; where every element is read by many tiles, a copy with such rows costs less than reading it in pieces.

use super::Scope;
use super::expand::Expander;
use super::nodes::{axes_over, axis_exprs, axis_symbol, expr_indices, strided};
use crate::graph::{Combine, ValueId};
use crate::loops::{Access, Effect, KernelKind, MatrixOperand, Nest, Storage};
use crate::symbolic::Expr;
use crate::target::Target;

/// Bytes of a wide access.
const ACCESS: i64 = 16;
/// Multiplications from which on a product takes longer than the launches of two copies, and elements of a sum: where they are few, what
/// takes the time is the result.
const LEAST_PRODUCTS: i64 = 1 << 25;
const LEAST_DEPTH: i64 = 256;
/// How often each element is multiplied at least, where pairs of elements can be read at once, and where they cannot.
const LEAST_USES: i64 = 256;
const LEAST_USES_OF_SINGLES: i64 = 64;

/// How much there is to multiply.
#[derive(Clone, Copy)]
pub(super) struct Effort {
    /// All multiplications.
    products: i64,
    depth: i64,
    /// Those of an element of the left operand, and of one of the right.
    uses: [i64; 2],
}

impl Effort {
    /// Of matrices of these sizes, in batches; none where one is not known.
    pub(super) fn of(batch: &[Expr], [rows, columns, depth]: [&Expr; 3]) -> Option<Effort> {
        let (rows, columns, depth) = (rows.as_int()?, columns.as_int()?, depth.as_int()?);
        let factors = batch.iter().map(Expr::as_int).chain([rows, columns, depth].map(Some));
        let products = factors.into_iter().try_fold(1, |all: i64, size| all.checked_mul(size?))?;
        Some(Effort { products, depth, uses: [columns, rows] })
    }
}

impl Scope<'_> {
    /// The left operand of a product (`position` 0) or the right one, from a copy with longer rows where that pays.
    pub(super) fn whole_operand(
        &mut self,
        value: ValueId,
        operand: MatrixOperand,
        (effort, position): (Option<Effort>, usize),
    ) -> MatrixOperand {
        let Target::Gpu(_) = self.target else { return operand };
        let ty = self.graph.ty(value).clone();
        let buffer = &self.program.buffers[operand.buffer];
        let is_constant = matches!(buffer.storage, Storage::Constant(_));
        // Of wider types every element is a copy by itself.
        let is_own = ty.dtype.is_half() && buffer.dtype == ty.dtype;
        let (Some(effort), true) = (effort, is_own && !is_constant) else {
            return operand;
        };
        let (row, column) = (ty.rank() - 2, ty.rank() - 1);
        let lines =
            [(&operand.column_stride, &operand.row_stride), (&operand.row_stride, &operand.column_stride)];
        let is_line = |(step, _): &(&Expr, &Expr)| step.is(1);
        let by_row = is_line(&lines[0]) || !is_line(&lines[1]);
        let (step, pitch) = lines[usize::from(!by_row)];
        let size = i64::try_from(ty.dtype.size()).expect("elements are small");
        let begin_at = |bytes: i64| {
            let count = Expr::int((bytes / size).max(1));
            step.is(1) && [pitch, &operand.offset].iter().all(|place| place.modulo(&count).is(0))
        };
        let least = if begin_at(4) { LEAST_USES } else { LEAST_USES_OF_SINGLES };
        let pays = effort.products >= LEAST_PRODUCTS && effort.depth >= LEAST_DEPTH;
        if begin_at(ACCESS) || !pays || effort.uses[position] < least {
            return operand;
        }
        // Of a matrix that is the same in several batches one is enough.
        let mut order: Vec<usize> =
            (0..row).filter(|axis| operand.offset.mentions(axis_symbol(*axis))).collect();
        order.extend(if by_row { [row, column] } else { [column, row] });
        self.copy_in_order(value, &order, ACCESS / size)
    }

    /// A value with its axes in this order, in rows of a multiple of so many elements, as an operand of a product.
    fn copy_in_order(&mut self, value: ValueId, order: &[usize], multiple: i64) -> MatrixOperand {
        let ty = self.graph.ty(value).clone();
        let sizes: Vec<Expr> = order.iter().map(|axis| ty.shape[*axis].clone()).collect();
        let axes = axes_over(&sizes, 0);
        let mut coords = vec![Expr::int(0); ty.rank()];
        for (position, axis) in order.iter().enumerate() {
            coords[*axis] = Expr::axis(position);
        }
        let mut shape = sizes;
        if let Some(last) = shape.last_mut() {
            *last = &last.ceil_div(&Expr::int(multiple), self.ranges) * multiple;
        }
        let name = self.graph.values[value].name.clone();
        let target = self.temporary(ty.dtype, shape, &name);
        let ranges = self.table(&[&axes]);
        let mut expander = Expander::new(self, ranges, None);
        let term = expander.value(value, &coords);
        let (mut stage, ranges) = (expander.stage, expander.ranges);
        let own = expr_indices(&axis_exprs(0..order.len()));
        let access = Access::new(target, &self.program.buffers[target], own, &ranges);
        stage.effects.push(Effect::Store { access, value: term, combine: Combine::Set });
        let nest = Nest { axes, stages: vec![stage], accumulators: vec![], serial: false };
        self.run_kernel(self.producer(value), "whole_rows", KernelKind::Nest(nest));
        let ranges = self.table(&[&axes_over(&ty.shape, 0)]);
        let places: Vec<Expr> = order.iter().map(|axis| Expr::axis(*axis)).collect();
        let access = Access::new(target, &self.program.buffers[target], expr_indices(&places), &ranges);
        strided(&access, axis_symbol(ty.rank() - 2), axis_symbol(ty.rank() - 1))
            .expect("rows of a copy are strided")
    }
}
