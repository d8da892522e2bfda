//! Numbers of one byte: which operators have them at all, and their scaled matrix product.
//!
//! They are for storage. PyTorch's CPU copies, views and compares them, and has few kernels beyond that; a call that it has
//! none for is refused, rather than given results that nothing can be compared with.

use super::registry::rules;
use super::{Args, Context, Kind, Outputs, RuleError};
use crate::dtype::DType;
use crate::frontend::torch::aten::{Call, Program};

/// Beside views: the operators of ATen, without overloads and in-place marks, that take elements of one byte.
const TAKE: &[&str] = &[
    // Copies and conversions.
    "_to_copy",
    "alias_copy",
    "clone",
    "contiguous",
    "copy",
    "empty_like",
    "expand_copy",
    "lift_fresh_copy",
    "to",
    "type_as",
    // Elements by position.
    "as_strided_copy",
    "as_strided_scatter",
    "block_diag",
    "cartesian_prod",
    "cat",
    "combinations",
    "constant_pad_nd",
    "diag",
    "diag_embed",
    "diagonal_copy",
    "diagonal_scatter",
    "embedding",
    "flip",
    "fliplr",
    "flipud",
    "index",
    "index_put",
    "index_select",
    "masked_select",
    "nonzero_static",
    "pad",
    "permute_copy",
    "pixel_shuffle",
    "pixel_unshuffle",
    "repeat",
    "repeat_interleave",
    "roll",
    "rot90",
    "select_copy",
    "select_scatter",
    "slice_copy",
    "slice_scatter",
    "split_with_sizes_copy",
    "squeeze_copy",
    "stack",
    "t_copy",
    "tile",
    "transpose_copy",
    "unbind_copy",
    "unfold_copy",
    "unsqueeze_copy",
    "view_copy",
    "where",
    // Fills.
    "fill",
    "full_like",
    "new_empty",
    "new_empty_strided",
    "new_full",
    "new_ones",
    "new_zeros",
    "ones_like",
    "zero",
    "zeros_like",
    // Questions.
    "all",
    "any",
    "count_nonzero",
    "eq",
    "equal",
    "isfinite",
    "isinf",
    "isnan",
    "isreal",
    "logical_not",
    "ne",
    // Arithmetic.
    "_scaled_mm",
    "abs",
    "addbmm",
    "addmm",
    "kron",
    "linear",
    "matmul",
    "mm",
    "mul",
    "outer",
    // What converts its operand first.
    "_log_softmax",
    "_softmax",
    "float_power",
    "log_softmax",
    "softmax",
    // What an assertion reads.
    "_assert_async",
    "_assert_tensor_metadata",
    "_local_scalar_dense",
    "item",
];

/// The name of an operator of ATen without its overload and the mark of what works in place.
fn packet(target: &str) -> Option<&str> {
    let name = target.strip_prefix("aten.")?.split('.').next()?;
    Some(name.strip_suffix('_').unwrap_or(name))
}

/// Refuses a call with elements of one byte among its operands that PyTorch has no kernel for.
pub(crate) fn check(call: &Call, kind: Kind, program: &Program) -> Result<(), RuleError> {
    let is_float8 =
        |name: &&str| program.tensors.get(*name).is_some_and(|ty| matches!(ty.dtype, DType::F8(_)));
    let Some(name) = call.args.iter().flat_map(|(_, arg)| arg.tensors()).find(is_float8) else {
        return Ok(());
    };
    // Operators of other libraries, such as those of quantisation, say themselves what they take.
    let Some(packet) = packet(&call.target) else { return Ok(()) };
    if kind == Kind::View || TAKE.contains(&packet) {
        return Ok(());
    }
    let dtype = program.tensors[name].dtype;
    Err(RuleError::unsupported(format!(
        "`{name}` has elements of {dtype}, which PyTorch's CPU does not compute this of; convert them first, \
         as in `{name}.to(torch.float32)`"
    )))
}

rules! {
    pure "aten._scaled_mm.default" => scaled_product,
}

/// The product of two matrices of numbers of one byte, each times its scales, summed in `f32` and rounded once.
fn scaled_product(cx: &mut Context, a: &Args) -> Result<Outputs, RuleError> {
    let (x, y) = (a.tensor("self")?, a.tensor("mat2")?);
    let mut scaled = Vec::new();
    for (matrix, scale) in [(x, "scale_a"), (y, "scale_b")] {
        let scale = a.tensor(scale)?;
        let (matrix, scale) = (cx.b.cast(matrix, DType::F32), cx.b.cast(scale, DType::F32));
        let shape = cx.b.shape(matrix);
        // One scale for all, in whatever shape, or one for each row or column.
        let scale = if cx.b.ty(scale).numel().is(1) { cx.b.reshape(scale, &[])? } else { scale };
        let scale = cx.b.expand(scale, &shape)?;
        scaled.push(cx.mul(matrix, scale)?);
    }
    let mut product = cx.b.matmul(scaled[0], scaled[1])?;
    if let Some(bias) = a.opt_tensor("bias")? {
        let bias = cx.b.cast(bias, DType::F32);
        let shape = cx.b.shape(product);
        let bias = cx.b.expand(bias, &shape)?;
        product = cx.add(product, bias)?;
    }
    let dtype = a.opt_dtype("out_dtype")?.unwrap_or(cx.b.dtype(x));
    Ok(cx.b.cast(product, dtype).into())
}
