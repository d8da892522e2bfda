//! Random numbers. They follow from the seed of a run, not from those that nodes have.

use super::super::call::{Call, malformed};
use super::super::types::element_type;
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::random::ops::{bernoulli_of, multinomial_of};
use crate::frontend::torch::rules::{Operand, RuleError};
use crate::graph::ReduceOp;
use crate::symbolic::Expr;

operators! { "";
    "RandomNormal" => |cx, c| { let (dtype, shape) = stated(c)?; normal(cx, c, dtype, &shape) },
    "RandomNormalLike" => |cx, c| { let (dtype, shape) = like(cx, c)?; normal(cx, c, dtype, &shape) },
    "RandomUniform" => |cx, c| { let (dtype, shape) = stated(c)?; uniform(cx, c, dtype, &shape) },
    "RandomUniformLike" => |cx, c| { let (dtype, shape) = like(cx, c)?; uniform(cx, c, dtype, &shape) },
    "Bernoulli" => bernoulli,
    "Multinomial" => multinomial,
}

fn dtype_or(c: &Call, default: DType) -> Result<DType, RuleError> {
    let Some(number) = c.opt_int("dtype")? else { return Ok(default) };
    Ok(element_type(i32::try_from(number).unwrap_or(-1)).map_err(malformed)?.dtype)
}

fn stated(c: &Call) -> Result<(DType, Vec<Expr>), RuleError> {
    let shape = c.opt_ints("shape")?.ok_or_else(|| malformed("`shape` is missing"))?;
    Ok((dtype_or(c, DType::F32)?, shape.into_iter().map(Expr::int).collect()))
}

fn like(cx: &Onnx, c: &Call) -> Result<(DType, Vec<Expr>), RuleError> {
    let ty = cx.b.ty(c.tensor(0)?).clone();
    Ok((dtype_or(c, ty.dtype)?, ty.shape))
}

fn normal(cx: &mut Onnx, c: &Call, dtype: DType, shape: &[Expr]) -> Rule {
    let (mean, scale) = (c.float("mean", 0.0)?, c.float("scale", 1.0)?);
    let value = cx.cx.normal(dtype.compute(), shape)?;
    let value = cx.b.cast(value, dtype.compute());
    one(cx.apply([value], dtype, |[x]| x * scale + mean)?)
}

fn uniform(cx: &mut Onnx, c: &Call, dtype: DType, shape: &[Expr]) -> Rule {
    let (low, high) = (c.float("low", 0.0)?, c.float("high", 1.0)?);
    let value = cx.cx.uniform(dtype.compute(), shape)?;
    let value = cx.b.cast(value, dtype.compute());
    one(cx.apply([value], dtype, |[x]| x * (high - low) + low)?)
}

fn bernoulli(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let dtype = dtype_or(c, cx.b.dtype(x))?;
    let value = bernoulli_of(cx, x, &Operand::Tensor(x), "Bernoulli")?;
    one(cx.b.cast(value, dtype))
}

/// The operand has logarithms of weights.
fn multinomial(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let dtype = dtype_or(c, DType::I32)?;
    let last = cx.b.rank(x).checked_sub(1).ok_or_else(|| malformed("weights of categories need an axis"))?;
    let wide = cx.b.cast(x, DType::F64);
    let largest = cx.b.reduce(ReduceOp::Max, wide, &[last], true)?;
    let weights = cx.apply([wide, largest], DType::F64, |[x, largest]| (x - largest).exp())?;
    let samples = Expr::int(c.int("sample_size", 1)?);
    let value = multinomial_of(cx, weights, &samples, true, "Multinomial")?;
    one(cx.b.cast(value, dtype))
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, float, int, ints};
    use crate::dtype::DType;
    use crate::interpret::{Tensor, evaluate};

    fn drawn(model: &Model, feeds: &[Tensor]) -> Tensor {
        let graph = model.import(&["y"]).unwrap().graph;
        let feeds = [feeds, &[Tensor::from_i64(&[2], &[7, 0])]].concat();
        evaluate(&graph, &feeds).unwrap().remove(0)
    }

    #[test]
    fn numbers_are_drawn_as_the_node_says() {
        let attributes = [ints("shape", &[50]), float("low", 2.0), float("high", 3.0), int("dtype", 11)];
        let found = drawn(&Model::new(22).node("RandomUniform", &[], &["y"], &attributes), &[]);
        assert_eq!((found.dtype(), found.sizes()), (DType::F64, [50].as_slice()));
        assert!(found.to_f64().iter().all(|number| (2.0..3.0).contains(number)));

        let weights = Tensor::from_f32(&[1, 3], &[-90.0, 0.0, -90.0]);
        let model = Model::new(22).input("x", weights.clone());
        let model = model.node("Multinomial", &["x"], &["y"], &[int("sample_size", 4)]);
        let found = drawn(&model, &[weights]);
        assert_eq!((found.dtype(), found.to_f64()), (DType::I32, vec![1.0; 4]));
    }
}
