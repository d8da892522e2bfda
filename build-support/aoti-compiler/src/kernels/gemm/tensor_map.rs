//! Operands of products as the copy engine of a GPU sees them ("TMA"): axes with steps through memory.
//!
//! The engine copies boxes of up to five axes, of which one is contiguous and the others begin at multiples of 16 bytes.

use crate::loops::{Axis, MatMul, MatrixOperand, Program};
use crate::symbolic::{Expr, Symbol};

/// Axes that a map has at most beside the two of a matrix.
const MOST_BATCHES: usize = 3;
/// Bytes of a row of a box in shared memory: along the contiguous axis.
pub(crate) const ROW_BYTES: i64 = 128;
/// What the engine's steps are multiples of.
const STEP_BYTES: i64 = 16;

/// The map of one operand.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorMap {
    /// Its first element.
    pub start: Expr,
    /// Sizes, that of the contiguous axis first, then the other one of the matrix.
    pub sizes: Vec<Expr>,
    /// Elements between neighbours along the axes behind the contiguous one.
    pub strides: Vec<Expr>,
    /// The batch axes among them, in order.
    pub batches: Vec<Symbol>,
    /// Of a convolution's input, how its windows move over the axes between channels and images.
    pub window: Option<Window>,
}

/// How the windows of a convolution move over its input, along each spatial axis, the last one first. The engine then takes the
/// pixels that a tap meets, one after the other, over rows and images.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Window {
    /// Where the first tap of the first window lies.
    pub lower: Vec<i64>,
    /// Where the first tap of the last window lies at most, from the last element on.
    pub upper: Vec<i64>,
    /// Elements between windows.
    pub steps: Vec<i64>,
}

/// The maps of both operands of a product, if the engine can copy both.
pub(crate) fn tensor_maps(program: &Program, matmul: &MatMul) -> Option<[TensorMap; 2]> {
    let (batch, matrix) = matmul.axes.split_at(matmul.axes.len() - 2);
    let (row, column) = (&matrix[0].extent, &matrix[1].extent);
    let (a, b) = (&matmul.a, &matmul.b);
    let [left_by_depth, right_by_depth] = matmul.by_depth();
    let left = if left_by_depth {
        [(&matmul.depth, &a.column_stride), (row, &a.row_stride)]
    } else {
        [(row, &a.row_stride), (&matmul.depth, &a.column_stride)]
    };
    let right = if right_by_depth {
        [(&matmul.depth, &b.row_stride), (column, &b.column_stride)]
    } else {
        [(column, &b.column_stride), (&matmul.depth, &b.row_stride)]
    };
    Some([map(program, a, left, batch)?, map(program, b, right, batch)?])
}

/// The map of a matrix of these sizes and strides, the contiguous axis first, and of those beside it.
fn map(
    program: &Program,
    operand: &MatrixOperand,
    [(inner, one), (outer, pitch)]: [(&Expr, &Expr); 2],
    batch: &[Axis],
) -> Option<TensorMap> {
    let size = i64::try_from(program.buffers[operand.buffer].dtype.size()).expect("elements are small");
    let step = Expr::int(STEP_BYTES / size);
    let is_whole = |stride: &Expr| stride.modulo(&step).is(0);
    // Rows do not overlap.
    let is_apart =
        pitch == inner || pitch.as_int().zip(inner.as_int()).is_some_and(|(pitch, inner)| pitch >= inner);
    if !one.is(1) || !is_whole(pitch) || !is_apart {
        return None;
    }
    let mut own = TensorMap {
        start: operand.offset.clone(),
        sizes: vec![inner.clone(), outer.clone()],
        strides: vec![pitch.clone()],
        batches: vec![],
        window: None,
    };
    for axis in batch {
        let (stride, rest) = own.start.affine_in(axis.symbol)?;
        own.start = rest;
        if stride.is(0) {
            continue;
        }
        if !is_whole(&stride) || stride.as_int().is_some_and(|stride| stride < 0) {
            return None;
        }
        own.sizes.push(axis.extent.clone());
        own.strides.push(stride);
        own.batches.push(axis.symbol);
    }
    let is_known = [&own.start].into_iter().chain(&own.strides).all(Expr::is_of_sizes);
    (is_known && is_whole(&own.start) && own.batches.len() <= MOST_BATCHES).then_some(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::KernelKind;
    use crate::loops::text::parse;

    /// The maps of a product of `bf16` with these operands, over two batch axes of 3 and 4.
    fn maps(a: &str, b: &str) -> Option<[TensorMap; 2]> {
        let program = parse(&format!(
            r#"loops {{
                symbol s0 "rows" in 1..4096 from input 0 axis 0
                buffer b0 "x": bf16[s0, 65536] input 0
                buffer b1 "w": bf16[65536, 64] input 1
                buffer b2: bf16[3, 4, 128, 256] output 0
                kernel "p" {{ matmul bf16 b0 {a}, b1 {b} over [i0 < 3, i1 < 4, i2 < 128, i3 < 256] depth [64] {{
                    t0: f32 = total t1: bf16 = cast t0 store b2[i0, i1, i2, i3] = t1 }} }}
            }}"#
        ))
        .unwrap_or_else(|error| panic!("{error}"));
        let kernel = program.kernels.values().next().expect("one kernel");
        let KernelKind::MatMul(matmul) = &kernel.kind else { panic!("a product") };
        tensor_maps(&program, matmul)
    }

    fn numbers(expressions: &[Expr]) -> Vec<i64> {
        expressions.iter().map(|own| own.as_int().expect("a number")).collect()
    }

    #[test]
    fn axes_are_those_of_the_matrix_and_the_batches_that_move_it() {
        let [left, right] =
            maps("[i0 * 32768 + i1 * 64 + 16, 256, 1]", "[i1 * 16384, 1, 64]").expect("both fit");
        assert_eq!(left.start, Expr::int(16));
        assert_eq!(
            (numbers(&left.sizes), numbers(&left.strides)),
            (vec![64, 128, 3, 4], vec![256, 32768, 64])
        );
        assert_eq!((numbers(&right.sizes), numbers(&right.strides)), (vec![64, 256, 4], vec![64, 16384]));
        assert_eq!((left.batches.len(), right.batches.len()), (2, 1));
        let [_, by_column] = maps("[0, 64, 1]", "[0, 256, 1]").expect("columns lie side by side");
        assert_eq!((numbers(&by_column.sizes), numbers(&by_column.strides)), (vec![256, 64], vec![256]));
    }

    #[test]
    fn what_the_engine_cannot_copy_has_no_map() {
        let fits = |a: &str| maps(a, "[0, 1, 64]").is_some();
        assert!(fits("[0, 64, 1]"));
        assert!(!fits("[i0 * 8192, s0 * 64, 1]"), "whether rows overlap is not known");
        assert!(!fits("[0, 68, 1]"), "rows begin anywhere");
        assert!(!fits("[4, 64, 1]"), "it begins anywhere");
        assert!(!fits("[i1 * 4, 64, 1]"), "matrices begin anywhere");
        assert!(!fits("[0, 32, 1]"), "rows overlap");
        assert!(!fits("[0, 128, 2]"), "nothing is contiguous");
        assert!(!fits("[i0 // 2 * 8192, 64, 1]"), "two matrices are one");
    }
}
