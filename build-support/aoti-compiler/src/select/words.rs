//! Products and convolutions of numbers of one byte: unsigned ones times signed weights, of which four that are neighbours along the
//! depth make a word.

use super::Packing;
use crate::dtype::DType;
use crate::loops::{ConvShape, Convolution, MatMul, Program, Storage};
use crate::symbolic::Expr;
use crate::target::templates::{are_words, in_words};

/// The panels of a product's right operand, if it is one of bytes: lowering leaves those as they are on the left where the
/// numbers on the right are such that signed bytes hold them.
pub(super) fn product_words(program: &Program, matmul: &MatMul) -> Option<Packing> {
    let (a, b) = (&matmul.a, &matmul.b);
    let is_constant = matches!(program.buffers[b.buffer].storage, Storage::Constant(_));
    let read_elsewhere = matmul.epilogue.reads().any(|buffer| buffer == b.buffer);
    if matmul.dtype != DType::I32
        || program.buffers[a.buffer].dtype != DType::U8
        || !is_constant
        || read_elsewhere
        || !a.column_stride.is(1)
        || ![&a.offset, &a.row_stride].into_iter().all(are_words)
    {
        return None;
    }
    let size = |expr: &Expr| expr.as_int().and_then(|value| usize::try_from(value).ok());
    let (offset, row_stride, col_stride) = (size(&b.offset)?, size(&b.row_stride)?, size(&b.column_stride)?);
    let (k, n) = (size(&matmul.depth)?, size(&matmul.axes.last()?.extent)?);
    are_words(&matmul.depth).then_some(Packing::ProductWords { offset, row_stride, col_stride, k, n })
}

/// Whether a convolution is one of bytes, as for products.
pub(super) fn is_of_words(program: &Program, conv: &Convolution) -> bool {
    conv.dtype == DType::I32 && program.buffers[conv.input].dtype == DType::U8
}

/// The sizes in words.
pub(super) fn shape_in_words(shape: &ConvShape) -> ConvShape {
    ConvShape { in_channels: in_words(&shape.in_channels), ..shape.clone() }
}
