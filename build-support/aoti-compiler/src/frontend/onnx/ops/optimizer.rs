//! Optimisers: new weights from old ones, gradients and what an optimiser remembers.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::{Rule, many, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::ValueId;

operators! { "ai.onnx.preview.training";
    "Adagrad" => adagrad,
    "Adam" => adam,
    "Momentum" => momentum,
}

/// The rate and the step's number, then weights, gradients and so many kinds of memory, each of all weights.
fn parts<const N: usize>(c: &Call) -> Result<Vec<[ValueId; N]>, RuleError> {
    let all = (2..c.inputs.len()).map(|position| c.tensor(position)).collect::<Result<Vec<_>, _>>()?;
    if all.len() % N != 0 {
        return Err(malformed(format!("{} tensors are not {N} for each weight", all.len())));
    }
    let count = all.len() / N;
    Ok((0..count).map(|k| std::array::from_fn(|part| all[part * count + k])).collect())
}

/// Results of all weights: first the weights, then each kind of memory.
fn in_order<const N: usize>(results: &[[ValueId; N]]) -> Rule {
    many((0..N).flat_map(|part| results.iter().map(move |own| own[part])))
}

/// The learning rate, which is one number, and the number of the step as a number of its type.
fn rate_and_step(cx: &mut Onnx, c: &Call, dtype: DType) -> Result<(Formula, Formula), RuleError> {
    let [rate, step] = [c.tensor(0)?, c.tensor(1)?];
    let rate = cx.b.reshape(rate, &[])?;
    let step = cx.b.reshape(step, &[])?;
    let wide = dtype.compute();
    Ok((cx.b.cast(rate, wide).into(), cx.b.cast(step, wide).into()))
}

fn adagrad(cx: &mut Onnx, c: &Call) -> Rule {
    let (decay, epsilon) = (c.float("decay_factor", 0.0)?, c.float("epsilon", 0.0)?);
    let norm = c.float("norm_coefficient", 0.0)?;
    let mut results = Vec::new();
    for [x, gradient, squares] in parts::<3>(c)? {
        let dtype = cx.b.dtype(x);
        let (rate, step) = rate_and_step(cx, c, dtype)?;
        let rate = rate / (step * decay + 1.0);
        let total = |x: &Formula, g: &Formula, h: &Formula| {
            let gradient = x * norm + g;
            h + gradient.square()
        };
        let new = cx.apply([x, gradient, squares], dtype, |[x, g, h]| {
            let own = &x * norm + &g;
            &x - rate * own / (total(&x, &g, &h).sqrt() + epsilon)
        })?;
        let memory = cx.apply([x, gradient, squares], dtype, |[x, g, h]| total(&x, &g, &h))?;
        results.push([new, memory]);
    }
    in_order(&results)
}

fn adam(cx: &mut Onnx, c: &Call) -> Rule {
    let (alpha, beta) = (c.float("alpha", 0.9)?, c.float("beta", 0.999)?);
    let epsilon = c.float("epsilon", 0.0)?;
    let (norm, after) = (c.float("norm_coefficient", 0.0)?, c.float("norm_coefficient_post", 0.0)?);
    let mut results = Vec::new();
    for [x, gradient, mean, squares] in parts::<4>(c)? {
        let dtype = cx.b.dtype(x);
        let (rate, step) = rate_and_step(cx, c, dtype)?;
        let wide = dtype.compute();
        // The first steps are larger, for the memory begins with zeros.
        let corrected = {
            let powers = |base: f64| Formula::from(base).pow(&step);
            let longer = &rate * (1.0 - powers(beta)).sqrt() / (1.0 - powers(alpha));
            let longer = step.gt(0.0).select(longer, &rate);
            cx.formula(wide, &longer)?
        };
        let first =
            cx.apply([x, gradient, mean], dtype, |[x, g, v]| v * alpha + (x * norm + g) * (1.0 - alpha))?;
        let second = cx.apply([x, gradient, squares], dtype, |[x, g, h]| {
            h * beta + (x * norm + g).square() * (1.0 - beta)
        })?;
        let new = cx.apply([x, first, second], dtype, |[x, v, h]| {
            let moved = x - Formula::from(corrected) * v / (h.sqrt() + epsilon);
            moved * (1.0 - after)
        })?;
        results.push([new, first, second]);
    }
    in_order(&results)
}

fn momentum(cx: &mut Onnx, c: &Call) -> Rule {
    let (alpha, beta) = (c.float("alpha", 0.0)?, c.float("beta", 0.0)?);
    let norm = c.float("norm_coefficient", 0.0)?;
    let nesterov = match c.text("mode", "standard")? {
        "standard" => false,
        "nesterov" => true,
        other => return Err(malformed(format!("the mode `{other}` is unknown"))),
    };
    let mut results = Vec::new();
    for [x, gradient, memory] in parts::<3>(c)? {
        let dtype = cx.b.dtype(x);
        let (rate, step) = rate_and_step(cx, c, dtype)?;
        // The first step takes the gradient whole.
        let share = step.gt(0.0).select(Formula::from(beta), 1.0);
        let next = cx.apply([x, gradient, memory], dtype, |[x, g, v]| v * alpha + (x * norm + g) * share)?;
        let new = cx.apply([x, gradient, next], dtype, |[x, g, v]| {
            if nesterov { &x - (&x * norm + g + v * alpha) * rate } else { x - v * rate }
        })?;
        results.push([new, next]);
    }
    in_order(&results)
}

#[cfg(test)]
mod tests {
    use crate::frontend::MinSize;
    use crate::frontend::onnx::import;
    use crate::frontend::onnx::proto::{
        AttributeProto, GraphProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, ValueInfoProto,
    };
    use crate::frontend::onnx::testing::{float, text};
    use crate::frontend::torch::custom::Operators;
    use crate::interpret::{Tensor, evaluate};
    use prost::Message;

    /// One step with a rate of 0.5: a weight of 2, a gradient of 3, and memory.
    fn step(name: &str, number: i64, memory: &[f32], attribute: &[AttributeProto]) -> Vec<f64> {
        let floats = [&[0.5, 2.0, 3.0], memory].concat();
        let tensor = |(k, value): (usize, &f32)| TensorProto {
            data_type: Some(1),
            name: Some(format!("i{k}")),
            float_data: vec![*value],
            ..TensorProto::default()
        };
        let mut initializer: Vec<TensorProto> = floats.iter().enumerate().map(tensor).collect();
        initializer.push(TensorProto {
            data_type: Some(7),
            name: Some("t".to_owned()),
            int64_data: vec![number],
            ..TensorProto::default()
        });
        let mut input: Vec<String> = (0..floats.len()).map(|k| format!("i{k}")).collect();
        input.insert(1, "t".to_owned());
        let output: Vec<String> = (0..=memory.len()).map(|k| format!("o{k}")).collect();
        let domain = Some("ai.onnx.preview.training".to_owned());
        let info = |name: &String| ValueInfoProto { name: Some(name.clone()), ..ValueInfoProto::default() };
        let graph = GraphProto {
            output: output.iter().map(info).collect(),
            node: vec![NodeProto {
                input,
                output,
                op_type: Some(name.to_owned()),
                domain: domain.clone(),
                attribute: attribute.to_vec(),
                ..NodeProto::default()
            }],
            initializer,
            ..GraphProto::default()
        };
        let model = ModelProto {
            ir_version: Some(10),
            opset_import: vec![OperatorSetIdProto { domain, version: Some(1) }],
            graph: Some(graph),
            ..ModelProto::default()
        };
        let file = model.encode_to_vec().into();
        let import = import(MinSize::Lowered(0), "test", &file, &Operators::default()).unwrap();
        evaluate(&import.graph, &[]).unwrap().iter().flat_map(Tensor::to_f64).collect()
    }

    #[track_caller]
    fn near(found: &[f64], expected: &[f64]) {
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(close), "{found:?}");
    }

    #[test]
    fn squares_are_remembered() {
        near(&step("Adagrad", 1, &[7.0], &[float("decay_factor", 1.0)]), &[2.0 - 0.25 * 3.0 / 4.0, 16.0]);
    }

    #[test]
    fn first_steps_are_corrected() {
        let factors = [float("alpha", 0.5), float("beta", 0.75)];
        // The memory becomes 0.5 * 3 and 0.25 * 9, the rate 0.5 * sqrt(0.25) / 0.5.
        near(&step("Adam", 1, &[0.0, 0.0], &factors), &[2.0 - 0.5 * 1.5 / 1.5, 1.5, 2.25]);
        near(&step("Adam", 0, &[0.0, 0.0], &factors), &[2.0 - 0.5 * 1.5 / 1.5, 1.5, 2.25]);
    }

    #[test]
    fn gradients_gather_momentum() {
        let factors = [float("alpha", 0.5), float("beta", 0.25), float("norm_coefficient", 0.5)];
        // With the norm, the gradient is 4; the first step takes it whole.
        let standard = [&factors[..], &[text("mode", "standard")]].concat();
        near(&step("Momentum", 0, &[2.0], &standard), &[2.0 - 0.5 * 5.0, 5.0]);
        near(&step("Momentum", 1, &[2.0], &standard), &[2.0 - 0.5 * 2.0, 2.0]);
        let nesterov = [&factors[..], &[text("mode", "nesterov")]].concat();
        near(&step("Momentum", 1, &[2.0], &nesterov), &[2.0 - 0.5 * (4.0 + 1.0), 2.0]);
    }
}
