//! Products of matrices.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::einsum::einsum;
use crate::frontend::torch::rules::linalg::solve::determinant;
use crate::frontend::torch::rules::matmul;
use crate::graph::{BinaryOp, Scalar, ValueId};

operators! { "";
    "MatMul" => matmul,
    "Gemm" => gemm,
    "Einsum" => named_axes,
    "Det" => |cx, c| {
        let x = cx.square(c.tensor(0)?)?;
        one(determinant(cx, x)?[0])
    },
}

impl Onnx<'_> {
    /// The product as `numpy.matmul` has it.
    pub(super) fn matmul(&mut self, a: ValueId, b: ValueId) -> Result<ValueId, RuleError> {
        matmul::matmul(self, a, b)
    }

    /// Matrices that have as many columns as rows.
    pub(super) fn square(&mut self, x: ValueId) -> Result<ValueId, RuleError> {
        let mut shape = self.b.shape(x);
        let [.., rows, columns] = shape.as_mut_slice() else {
            return Err(malformed("matrices have two axes"));
        };
        columns.clone_from(rows);
        self.required_shape(x, &shape)
    }

    /// A value times a number of its type, unless that is 1.
    pub(super) fn times(&mut self, x: ValueId, number: f64) -> Result<ValueId, RuleError> {
        if number == 1.0 {
            return Ok(x);
        }
        let dtype = self.b.dtype(x);
        if dtype.is_float() {
            return self.apply([x], dtype, |[x]| x * number);
        }
        self.with_number(BinaryOp::Mul, x, Scalar::Float(number).cast(dtype))
    }
}

fn matmul(cx: &mut Onnx, c: &Call) -> Rule {
    one(cx.matmul(c.tensor(0)?, c.tensor(1)?)?)
}

fn gemm(cx: &mut Onnx, c: &Call) -> Rule {
    let (mut a, mut b) = (c.tensor(0)?, c.tensor(1)?);
    if c.flag("transA", false)? {
        a = cx.b.transpose(a, 0, 1)?;
    }
    if c.flag("transB", false)? {
        b = cx.b.transpose(b, 0, 1)?;
    }
    let product = cx.matmul(a, b)?;
    let product = cx.times(product, c.float("alpha", 1.0)?)?;
    let Some(bias) = c.opt_tensor(2)? else { return one(product) };
    let bias = cx.times(bias, c.float("beta", 1.0)?)?;
    let dtype = cx.b.dtype(product);
    let shape = cx.b.shape(product);
    let value = if dtype.compute() == dtype {
        cx.b.binary(BinaryOp::Add, product, bias)?
    } else {
        cx.apply([product, bias], dtype, |[product, bias]| product + bias)?
    };
    one(cx.required_shape(value, &shape)?)
}

fn named_axes(cx: &mut Onnx, c: &Call) -> Rule {
    one(einsum(cx, c.text("equation", "")?, &c.tensors()?)?)
}
