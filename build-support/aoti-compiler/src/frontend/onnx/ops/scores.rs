//! What classical learners share: transforms of scores, labels of classes, tables of numbers.

use super::super::call::{Call, malformed, unsupported};
use super::super::value::Val;
use super::super::walk::Onnx;
use super::Rule;
use crate::dtype::{DType, bytes_of};
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{Constant, ConstantSource, FloatUnary, ReduceOp, ValueId};

/// What becomes of the scores of a row.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Post {
    None,
    Softmax,
    Logistic,
    /// Scores of zero stay.
    SoftmaxZero,
    Probit,
}

impl Post {
    /// The attribute of a node.
    pub(super) fn of(c: &Call) -> Result<Post, RuleError> {
        Ok(match c.text("post_transform", "NONE")? {
            "NONE" => Post::None,
            "SOFTMAX" => Post::Softmax,
            "LOGISTIC" => Post::Logistic,
            "SOFTMAX_ZERO" => Post::SoftmaxZero,
            "PROBIT" => Post::Probit,
            other => return Err(malformed(format!("`post_transform` is `{other}`"))),
        })
    }

    /// The same as a number.
    pub(super) fn of_number(number: i64) -> Result<Post, RuleError> {
        let all = [Post::None, Post::Softmax, Post::Logistic, Post::SoftmaxZero, Post::Probit];
        let found = usize::try_from(number).ok().and_then(|number| all.get(number).copied());
        found.ok_or_else(|| malformed(format!("`post_transform` is {number}")))
    }

    /// Of rows of scores.
    pub(super) fn apply(self, cx: &mut Onnx, x: ValueId) -> Result<ValueId, RuleError> {
        let dtype = cx.b.dtype(x);
        match self {
            Post::None => Ok(x),
            Post::Logistic => Ok(cx.b.unary(FloatUnary::Sigmoid, x)),
            Post::Probit => cx.apply([x], dtype, |[x]| probit(&x)),
            Post::Softmax | Post::SoftmaxZero => {
                let largest = cx.b.reduce(ReduceOp::Max, x, &[1], true)?;
                let parts = cx.apply([x, largest], dtype, |[x, largest]| {
                    let power = (&x - &largest).exp();
                    if self == Post::Softmax {
                        return power;
                    }
                    x.abs().gt(1e-7).select(power, &x * (-largest).exp())
                })?;
                let sum = cx.sum(parts, &[1], true)?;
                cx.apply([parts, sum], dtype, |[parts, sum]| sum.equals(0.0).select(0.5, parts / &sum))
            }
        }
    }

    /// Of a column of single scores.
    pub(super) fn of_one(self, cx: &mut Onnx, x: ValueId) -> Result<ValueId, RuleError> {
        if self == Post::Probit { self.apply(cx, x) } else { Ok(x) }
    }
}

/// The inverse of the normal distribution, by Winitzki's approximation of that of the error function.
fn probit(x: &Formula) -> Formula {
    let centred = x * 2.0 - 1.0;
    let log = ((1.0 - &centred) * (&centred + 1.0)).log();
    let half = &log * 0.5 + 2.0 / (std::f64::consts::PI * 0.147);
    let root = (&half * &half - &log * (1.0 / 0.147)).sqrt() - &half;
    let size = root.sqrt() * std::f64::consts::SQRT_2;
    centred.lt(0.0).select(-&size, size)
}

/// The labels of classes.
pub(super) struct Labels {
    ints: Vec<i64>,
    texts: usize,
}

impl Labels {
    pub(super) fn of(c: &Call, ints: &str) -> Result<Labels, RuleError> {
        let texts = c.opt_texts("classlabels_strings")?.map_or(0, |all| all.len());
        Ok(Labels { ints: c.opt_ints(ints)?.unwrap_or_default(), texts })
    }

    pub(super) fn count(&self) -> usize {
        self.ints.len().max(self.texts)
    }

    /// The labels of numbers of classes, which are their own where there are none.
    fn at(&self, cx: &mut Onnx, number: ValueId) -> Result<ValueId, RuleError> {
        if self.ints.is_empty() {
            return Ok(number);
        }
        let table = cx.b.int_vector(&self.ints);
        Ok(cx.b.rows(table, number)?)
    }

    /// The two results of a classifier. Labels that are texts can be left out only.
    pub(super) fn results(&self, cx: &mut Onnx, c: &Call, number: ValueId, scores: ValueId) -> Rule {
        let scores = cx.b.cast(scores, DType::F32);
        if self.texts == 0 {
            return Ok(vec![self.at(cx, number)?.into(), scores.into()]);
        }
        if c.wants(0) {
            return Err(unsupported(
                "labels that are texts; export the model with classes that are integers, or without its labels",
            ));
        }
        Ok(vec![Val::Absent, scores.into()])
    }
}

/// The number of the first of the largest scores of each row.
pub(super) fn best(cx: &mut Onnx, scores: ValueId) -> Result<ValueId, RuleError> {
    Ok(cx.b.reduce(ReduceOp::ArgMax, scores, &[1], false)?)
}

/// Numbers of a node as a tensor.
pub(super) fn table(
    cx: &mut Onnx,
    c: &Call,
    part: &str,
    dtype: DType,
    numbers: &[f64],
    sizes: &[usize],
) -> Result<ValueId, RuleError> {
    let data = if dtype == DType::F64 {
        bytes_of(numbers, &|number: f64| number.to_le_bytes())
    } else {
        bytes_of(numbers, &|number: f64| (number as f32).to_le_bytes())
    };
    let stored = if dtype == DType::F64 { DType::F64 } else { DType::F32 };
    let value = constant(cx, c, part, Constant::new("", stored, lengths(sizes), data))?;
    Ok(cx.b.cast(value, dtype))
}

/// Integers of a node as a vector.
pub(super) fn int_table(cx: &mut Onnx, c: &Call, part: &str, numbers: &[i64]) -> Result<ValueId, RuleError> {
    let data = bytes_of(numbers, &i64::to_le_bytes);
    constant(cx, c, part, Constant::new("", DType::I64, lengths(&[numbers.len()]), data))
}

fn lengths(sizes: &[usize]) -> Vec<i64> {
    sizes.iter().map(|size| i64::try_from(*size).unwrap_or(i64::MAX)).collect()
}

/// What is large is a weight.
fn constant(cx: &mut Onnx, c: &Call, part: &str, mut constant: Constant) -> Result<ValueId, RuleError> {
    if constant.data.len() > 1024 {
        let name = c.node.output.iter().find(|name| !name.is_empty()).map_or("", String::as_str);
        constant.name = format!("{name}.{part}");
        constant.source = ConstantSource::Weight;
    }
    Ok(cx.b.constant(constant)?)
}

/// Numbers of an attribute, or of the tensor that may be in its place.
pub(super) fn numbers(cx: &Onnx, c: &Call, name: &str) -> Result<(Vec<f64>, bool), RuleError> {
    let as_tensor = format!("{name}_as_tensor");
    if let Some(tensor) = c.opt_tensor_attribute(&as_tensor)? {
        return tensor_numbers(cx, tensor);
    }
    Ok((c.opt_floats(name)?.unwrap_or_default(), false))
}

/// The numbers of a tensor of an attribute, and whether they have the precision of `f64`.
pub(super) fn tensor_numbers(
    cx: &Onnx,
    tensor: &super::super::proto::TensorProto,
) -> Result<(Vec<f64>, bool), RuleError> {
    let read = super::super::tensors::read(tensor, &cx.opened.beside).map_err(malformed)?;
    let constant = read.constant;
    let sizes = constant.sizes.iter().map(|size| usize::try_from(*size).unwrap_or(0)).collect();
    let tensor = crate::interpret::Tensor::new(constant.dtype, sizes, constant.data.clone());
    let tensor = tensor.map_err(|error| malformed(error.to_string()))?;
    Ok((tensor.to_f64(), constant.dtype == DType::F64))
}
