//! How wide the index expressions of a kernel must be.

use crate::kernels::mapping::IndexWidth;
use crate::loops::{ConvShape, Kernel, KernelKind, MatrixOperand, Program, Stage};
use crate::symbolic::{Expr, Node, RangeTable, Ranges, Symbol, SymbolKind};

/// 32 bits where every index of a kernel, with all its parts, fits them.
pub(super) fn width(program: &Program, kernel: &Kernel, ranges: &dyn Ranges) -> IndexWidth {
    let mut exprs: Vec<Expr> = kernel.stages().flat_map(|stage| of_stage(program, stage)).collect();
    let mut axes = kernel.stages().flat_map(|stage| stage.axes.clone()).collect::<Vec<_>>();
    for buffer in kernel.reads().into_iter().chain(kernel.writes()) {
        exprs.push(&Expr::product(&program.buffers[buffer].shape) * 2);
    }
    match &kernel.kind {
        KernelKind::Nest(nest) => {
            axes.splice(0..0, nest.axes.clone());
            exprs.push(Expr::product(nest.axes.iter().map(|axis| &axis.extent)));
            exprs.extend(nest.accumulators.iter().filter_map(|accumulator| accumulator.position.clone()));
        }
        KernelKind::MatMul(matmul) => {
            axes.splice(0..0, matmul.axes.clone());
            let [row, column] = [2, 1].map(|back| &matmul.axes[matmul.axes.len() - back].extent);
            let a = &(&matmul.a.row_stride * row) + &(&matmul.a.column_stride * &matmul.depth);
            let b = &(&matmul.b.column_stride * column) + &(&matmul.b.row_stride * &matmul.depth);
            exprs.extend([&a + &matmul.a.offset, &b + &matmul.b.offset, &matmul.depth * TILE]);
            let (batch, matrix) = matmul.axes.split_at(matmul.axes.len() - 2);
            let batches = Expr::product(batch.iter().map(|axis| &axis.extent));
            exprs.push(&batches * &padded([&matrix[0].extent, &matrix[1].extent]));
        }
        KernelKind::Convolution(conv) => {
            axes.splice(0..0, conv.axes.clone());
            let pixels = Expr::product(conv.spatial().iter().map(|axis| &axis.extent));
            exprs.push(padded([&conv.channel().extent, &(&conv.image().extent * &pixels)]));
            exprs.push(&ConvShape::new(program, conv).taps() * TILE);
        }
        KernelKind::Attention(own) => {
            axes.splice(0..0, own.axes.clone());
            let [.., query, column] = own.axes.as_slice() else { return IndexWidth::Wide };
            let key = &own.key().extent;
            let far = |operand: &MatrixOperand, rows: &Expr, columns: &Expr| {
                let (rows, columns) = (rows + &Expr::int(TILE), columns + &Expr::int(TILE));
                &(&(&operand.row_stride * &rows) + &(&operand.column_stride * &columns)) + &operand.offset
            };
            exprs.push(far(&own.queries, &query.extent, &own.depth));
            exprs.push(far(&own.keys, &own.depth, key));
            exprs.push(far(&own.values, key, &column.extent));
            exprs.extend(own.reach.clone());
            let batches = Expr::product(own.axes[..own.axes.len() - 2].iter().map(|axis| &axis.extent));
            exprs.push(&batches * &padded([&query.extent, &column.extent]));
        }
        // Elements of large tensors are counted in 64 bits by the templates themselves.
        KernelKind::AxisOp(_) | KernelKind::Extern(_) => return IndexWidth::Wide,
    }
    let mut table = RangeTable::default();
    let mut symbols = std::collections::BTreeSet::new();
    axes.iter().map(|axis| &axis.extent).chain(&exprs).for_each(|expr| expr.collect_symbols(&mut symbols));
    for symbol in symbols.into_iter().filter(|symbol: &Symbol| symbol.kind == SymbolKind::Size) {
        table.set(symbol, ranges.range(symbol));
    }
    axes.iter().for_each(|axis| table.set_extent(axis.symbol, axis.extent.clone()));
    if exprs.iter().all(|expr| is_narrow(expr, &table)) { IndexWidth::Narrow } else { IndexWidth::Wide }
}

/// Rows or columns of the largest tile.
const TILE: i64 = 256;

/// The elements of a matrix whose rows and columns are rounded up to tiles.
fn padded([rows, columns]: [&Expr; 2]) -> Expr {
    &(rows + TILE) * &(columns + TILE)
}

fn of_stage(program: &Program, stage: &Stage) -> Vec<Expr> {
    let mut exprs = vec![Expr::product(stage.axes.iter().map(|axis| &axis.extent))];
    for access in stage.accesses() {
        exprs.extend([access.offset.clone(), Expr::product(&program.buffers[access.buffer].shape)]);
    }
    exprs.extend(stage.terms.iter().flat_map(|typed| typed.term.exprs()).cloned());
    exprs
}

/// Room for the steps of loops beyond the end.
const NARROW: i64 = 1 << 30;

/// Whether an expression fits 32 bits with all its parts.
pub(crate) fn is_narrow(expr: &Expr, ranges: &dyn Ranges) -> bool {
    let own = expr.interval(ranges);
    let fits = own.min > -NARROW && own.max < NARROW;
    fits && match expr.node() {
        Node::Int(_) | Node::Sym(_) => true,
        Node::Sum { terms, .. } => {
            let mut total = 0i64;
            terms.iter().all(|(term, coefficient)| {
                let part = term.interval(ranges);
                let size =
                    part.max.max(part.min.saturating_neg()).saturating_mul(coefficient.saturating_abs());
                total = total.saturating_add(size);
                total < NARROW && is_narrow(term, ranges)
            })
        }
        Node::Product(factors) => factors.iter().all(|factor| is_narrow(factor, ranges)),
        Node::FloorDiv(a, b) | Node::Mod(a, b) | Node::Min(a, b) | Node::Max(a, b) => {
            is_narrow(a, ranges) && is_narrow(b, ranges)
        }
    }
}
