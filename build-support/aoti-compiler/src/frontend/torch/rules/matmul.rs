//! Matrix products and what is made of them.
//!
//! A product with a two-dimensional right operand is brought to two dimensions, and a transposed weight stays a view
//! of its constant, so that later stages see one plain contraction with constant weights.

use super::operand::Operand;
use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.linear.default" => linear,
    pure "aten.matmul.default" => |cx, a| product(cx, a, "self", "other"),
    pure "aten.linalg_matmul.default" => |cx, a| product(cx, a, "self", "other"),
    pure "aten.mm.default" => |cx, a| product(cx, a, "self", "mat2"),
    pure "aten.mm.dtype" => product_as,
    pure "aten.bmm.default" => |cx, a| product(cx, a, "self", "mat2"),
    pure "aten.bmm.dtype" => product_as,
    pure "aten._int_mm.default" => |cx, a| {
        let (x, y) = (a.tensor("self")?, a.tensor("mat2")?);
        let (x, y) = (cx.b.cast(x, DType::I32), cx.b.cast(y, DType::I32));
        Ok(cx.b.matmul(x, y)?.into())
    },
    pure "aten.mv.default" => |cx, a| product(cx, a, "self", "vec"),
    pure "aten.dot.default" => |cx, a| product(cx, a, "self", "tensor"),
    pure "aten.vdot.default" => |cx, a| product(cx, a, "self", "other"),
    pure "aten.addmm.default" => |cx, a| add_product(cx, a, "mat1", "mat2"),
    pure "aten.addmm.dtype" => |cx, a| add_product(cx, a, "mat1", "mat2"),
    pure "aten.addmv.default" => |cx, a| add_product(cx, a, "mat", "vec"),
    pure "aten.baddbmm.default" => |cx, a| add_product(cx, a, "batch1", "batch2"),
    pure "aten.baddbmm.dtype" => |cx, a| add_product(cx, a, "batch1", "batch2"),
    pure "aten.addbmm.default" => addbmm,
    pure "aten.outer.default" => outer,
    pure "aten.ger.default" => outer,
    pure "aten.addr.default" => addr,
    pure "aten.inner.default" => inner,
    pure "aten.linalg_vecdot.default" => vecdot,
}

/// `torch.matmul`: every combination of ranks from 1 up.
pub(crate) fn matmul(cx: &mut Context, x: ValueId, y: ValueId) -> Result<ValueId, RuleError> {
    match (cx.b.rank(x), cx.b.rank(y)) {
        (0, _) | (_, 0) => Err(RuleError::Malformed("both factors must have at least one axis".to_owned())),
        (1, _) => {
            let row = cx.b.unsqueeze(x, 0)?;
            let result = matmul(cx, row, y)?;
            // With a vector on the right the result has lost that axis already.
            let axis = if cx.b.rank(y) == 1 { 0 } else { cx.b.rank(result) - 2 };
            Ok(cx.b.squeeze(result, &[axis])?)
        }
        (_, 1) => {
            let column = cx.b.unsqueeze(y, 1)?;
            let result = matmul(cx, x, column)?;
            let last = cx.b.rank(result) - 1;
            Ok(cx.b.squeeze(result, &[last])?)
        }
        (rank, 2) if rank > 2 => {
            let lead = cx.b.shape(x)[..rank - 1].to_vec();
            let rows = cx.merge_axes(x, 0, rank - 1)?;
            let result = cx.b.matmul(rows, y)?;
            cx.split_axis(result, 0, &lead)
        }
        _ => Ok(cx.b.matmul(x, y)?),
    }
}

fn product(cx: &mut Context, a: &Args, left: &str, right: &str) -> Rule {
    let (x, y) = (a.tensor(left)?, a.tensor(right)?);
    Ok(matmul(cx, x, y)?.into())
}

fn product_as(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("mat2")?);
    let dtype = a.opt_dtype("out_dtype")?.unwrap_or(cx.b.dtype(x));
    let (x, y) = (cx.b.cast(x, dtype), cx.b.cast(y, dtype));
    Ok(matmul(cx, x, y)?.into())
}

/// `x w^T + bias` with `w` of `[out, in]` or `[in]`.
pub(crate) fn linear_of(
    cx: &mut Context,
    x: ValueId,
    weight: ValueId,
    bias: Option<ValueId>,
) -> Result<ValueId, RuleError> {
    let right = if cx.b.rank(weight) == 2 { cx.b.transpose(weight, 0, 1)? } else { weight };
    let dtype = cx.b.dtype(x);
    let [x, right] = factors(cx, [x, right]);
    let mut result = matmul(cx, x, right)?;
    if let Some(bias) = bias {
        let bias = cx.b.cast(bias, cx.b.dtype(result));
        result = cx.add(result, bias)?;
    }
    Ok(cx.b.cast(result, dtype))
}

/// Factors whose sum something is added to: numbers of one byte are widened, so that they are rounded once.
fn factors<const N: usize>(cx: &mut Context, factors: [ValueId; N]) -> [ValueId; N] {
    factors.map(|factor| {
        let dtype = cx.b.dtype(factor);
        if matches!(dtype, DType::F8(_)) { cx.b.cast(factor, dtype.compute()) } else { factor }
    })
}

fn linear(cx: &mut Context, a: &Args) -> Rule {
    let (x, weight, bias) = (a.tensor("input")?, a.tensor("weight")?, a.opt_tensor("bias")?);
    Ok(linear_of(cx, x, weight, bias)?.into())
}

/// `beta * base + alpha * term`, in the compute type; a `beta` of 0 drops the base altogether, NaN included.
fn blend(cx: &mut Context, a: &Args, base: ValueId, term: ValueId) -> Result<ValueId, RuleError> {
    let (beta, alpha) = (a.number_or("beta", 1i64)?, a.number_or("alpha", 1i64)?);
    let dtype = cx.b.dtype(term);
    for factor in [&beta, &alpha] {
        cx.require_element(factor, dtype.compute())?;
    }
    let term = cx.b.cast(term, dtype.compute());
    let term = cx.scaled(term, &alpha)?;
    let sum = if beta.is(0.0) {
        term
    } else {
        let base = cx.b.cast(base, dtype.compute());
        let mut scaled = cx.scaled(base, &beta)?;
        if !matches!(beta, Operand::Number(_)) {
            let zero = cx.b.full_like(0i64, scaled);
            let counts = beta.to_value(cx, DType::Bool);
            scaled = cx.b.select(counts, scaled, zero)?;
        }
        cx.add(scaled, term)?
    };
    Ok(cx.b.cast(sum, dtype))
}

fn add_product(cx: &mut Context, a: &Args, left: &str, right: &str) -> Rule {
    let (base, x, y) = (a.tensor("self")?, a.tensor(left)?, a.tensor(right)?);
    let dtype = a.opt_dtype("out_dtype")?.unwrap_or(cx.b.dtype(x));
    let (x, y) = (cx.b.cast(x, dtype), cx.b.cast(y, dtype));
    let [x, y] = factors(cx, [x, y]);
    let term = matmul(cx, x, y)?;
    let sum = blend(cx, a, base, term)?;
    Ok(cx.b.cast(sum, dtype).into())
}

fn addbmm(cx: &mut Context, a: &Args) -> Rule {
    let (base, x, y) = (a.tensor("self")?, a.tensor("batch1")?, a.tensor("batch2")?);
    // The sum over the batch is one longer contraction: [n, b*m] x [b*m, p].
    let x = cx.b.permute(x, &[1, 0, 2])?;
    let x = cx.merge_axes(x, 1, 3)?;
    let y = cx.merge_axes(y, 0, 2)?;
    let dtype = cx.b.dtype(x);
    let [x, y] = factors(cx, [x, y]);
    let term = cx.b.matmul(x, y)?;
    let sum = blend(cx, a, base, term)?;
    Ok(cx.b.cast(sum, dtype).into())
}

fn outer_of(cx: &mut Context, x: ValueId, y: ValueId) -> Result<ValueId, RuleError> {
    let (x, y) = cx.promoted(x, y)?;
    let column = cx.b.unsqueeze(x, 1)?;
    cx.mul(column, y)
}

fn outer(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("vec2")?);
    Ok(outer_of(cx, x, y)?.into())
}

fn addr(cx: &mut Context, a: &Args) -> Rule {
    let (base, x, y) = (a.tensor("self")?, a.tensor("vec1")?, a.tensor("vec2")?);
    let dtype = cx.result_type(&[base, x, y])?;
    let (base, x, y) = (cx.b.cast(base, dtype), cx.b.cast(x, dtype), cx.b.cast(y, dtype));
    let term = outer_of(cx, x, y)?;
    Ok(blend(cx, a, base, term)?.into())
}

fn inner(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("self")?, a.tensor("other")?);
    let (x_rank, y_rank) = (cx.b.rank(x), cx.b.rank(y));
    if x_rank == 0 || y_rank == 0 {
        return Ok(cx.mul(x, y)?.into());
    }
    let mut shape = cx.b.shape(x)[..x_rank - 1].to_vec();
    shape.extend_from_slice(&cx.b.shape(y)[..y_rank - 1]);
    let rows = as_rows(cx, x)?;
    let columns = as_rows(cx, y)?;
    let columns = cx.b.transpose(columns, 0, 1)?;
    let result = cx.b.matmul(rows, columns)?;
    Ok(cx.b.reshape(result, &shape)?.into())
}

/// `[..., k]` as `[n, k]`.
pub(crate) fn as_rows(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    let (last, lead) = shape.split_last().expect("a tensor with axes");
    Ok(cx.b.reshape(x, &[Expr::product(lead), last.clone()])?)
}

fn vecdot(cx: &mut Context, a: &Args) -> Rule {
    let (x, y) = (a.tensor("x")?, a.tensor("y")?);
    let dtype = cx.b.dtype(x);
    let (x, y) = (cx.b.cast(x, dtype.compute()), cx.b.cast(y, dtype.compute()));
    let terms = cx.mul(x, y)?;
    let axis = Context::axis(a.int_or("dim", -1)?, cx.b.rank(terms))?;
    let sum = cx.sum(terms, &[axis], false)?;
    Ok(cx.b.cast(sum, dtype).into())
}
