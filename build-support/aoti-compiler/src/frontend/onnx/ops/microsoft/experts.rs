//! Mixtures of experts: each token goes through a few of many small networks, by weights that a router gives.
//!
//! All experts are computed, those that were not chosen with a weight of zero.

use super::activation::sum;
use super::operators;
use super::packed_weights::unpacked;
use crate::frontend::onnx::call::{Call, malformed, unsupported};
use crate::frontend::onnx::ops::{Rule, one};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::activation::{Gelu, gelu};
use crate::frontend::torch::rules::softmax::{Form, softmax_over};
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::{ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "com.microsoft";
    "MoE" => plain,
    "QMoE" => quantized,
}

/// The layers of all experts, `[experts, outputs, inputs]` each, with biases `[experts, outputs]`.
struct Layers {
    first: ValueId,
    first_bias: Option<ValueId>,
    second: ValueId,
    second_bias: Option<ValueId>,
    /// What the first is multiplied by.
    gate: Option<(ValueId, Option<ValueId>)>,
}

fn plain(cx: &mut Onnx, c: &Call) -> Rule {
    let gate = match c.opt_tensor(6)? {
        Some(weight) => Some((weight, c.opt_tensor(7)?)),
        None => None,
    };
    let layers = Layers {
        first: c.tensor(2)?,
        first_bias: c.opt_tensor(3)?,
        second: c.tensor(4)?,
        second_bias: c.opt_tensor(5)?,
        gate,
    };
    let (logits, normalize) = (c.tensor(1)?, c.flag("normalize_routing_weights", false)?);
    let routed = routed(cx, c, logits, None, normalize)?;
    of_layers(cx, c, &layers, routed)
}

fn quantized(cx: &mut Onnx, c: &Call) -> Rule {
    let kind = c.text("quant_type", "int")?;
    if kind != "int" {
        return Err(unsupported(format!("experts whose weights are of kind `{kind}`")));
    }
    if c.int("weights_prepacked", -1)? > 0 {
        return Err(unsupported("weights in the order of one processor"));
    }
    let bits = c.int("expert_weight_bits", 4)?;
    let of = |name: &str| c.int(name, bits);
    let gate = match c.opt_tensor(8)? {
        Some(weight) => {
            let packed = Packed { weight, scale: c.tensor(9)?, zero: c.opt_tensor(13)? };
            let weight = packed.unpacked(cx, c, of("fc3_expert_weight_bits")?)?;
            Some((weight, c.opt_tensor(10)?))
        }
        None => None,
    };
    let first = Packed { weight: c.tensor(2)?, scale: c.tensor(3)?, zero: c.opt_tensor(11)? };
    let second = Packed { weight: c.tensor(5)?, scale: c.tensor(6)?, zero: c.opt_tensor(12)? };
    let layers = Layers {
        first: first.unpacked(cx, c, of("fc1_expert_weight_bits")?)?,
        first_bias: c.opt_tensor(4)?,
        second: second.unpacked(cx, c, of("fc2_expert_weight_bits")?)?,
        second_bias: c.opt_tensor(7)?,
        gate,
    };
    let (logits, weights) = (c.tensor(1)?, c.opt_tensor(14)?);
    let normalize = weights.is_none() || c.flag("normalize_routing_weights", false)?;
    let routed = routed(cx, c, logits, weights, normalize)?;
    of_layers(cx, c, &layers, routed)
}

/// Weights of few bits, `[experts, outputs, inputs * bits / 8]`.
struct Packed {
    weight: ValueId,
    /// `[experts, outputs]`, or `[experts, outputs, blocks]`.
    scale: ValueId,
    zero: Option<ValueId>,
}

impl Packed {
    fn unpacked(&self, cx: &mut Onnx, c: &Call, bits: i64) -> Result<ValueId, RuleError> {
        if !matches!(bits, 2 | 4 | 8) {
            return Err(unsupported(format!("experts with weights of {bits} bits")));
        }
        let packed = cx.b.shape(self.weight);
        let [experts, outputs, bytes] = packed.as_slice() else {
            return Err(malformed("weights of experts have three axes"));
        };
        let shape = [experts.clone(), outputs.clone(), bytes * (8 / bits)];
        let coords = vec![Expr::axis(0), Expr::axis(1), Expr::axis(2)];
        let numbers = unpacked(cx, self.weight, bits, &shape, coords.clone())?;
        let of_block = cx.b.shape(self.scale);
        let block = c.int("block_size", 0)?;
        let at = match of_block.len() {
            2 => vec![Expr::axis(0), Expr::axis(1)],
            3 if block > 0 => {
                let ranges = cx.b.axis_ranges(&shape);
                vec![Expr::axis(0), Expr::axis(1), Expr::axis(2).floor_div_in(&Expr::int(block), &ranges)]
            }
            _ => return Err(malformed("scales of experts have two axes, or three with `block_size`")),
        };
        let wide = cx.b.dtype(self.scale).compute();
        let zero = match self.zero {
            Some(zero) => {
                let coords = coords[..of_block.len()].to_vec();
                let zero = unpacked(cx, zero, bits, &of_block, coords)?;
                cx.b.view(zero, &shape, at.clone())?
            }
            None => cx.b.full((1i64 << (bits - 1)) as f64, wide, &[]),
        };
        let scale = cx.b.view(self.scale, &shape, at)?;
        cx.apply([numbers, zero, scale], wide, |[q, zero, scale]| (q - zero) * scale)
    }
}

/// How much of each expert each token takes, `[tokens, experts]`: nothing of all but the first `k`.
fn routed(
    cx: &mut Onnx,
    c: &Call,
    logits: ValueId,
    weights: Option<ValueId>,
    normalize: bool,
) -> Result<ValueId, RuleError> {
    if c.flag("use_sparse_mixer", false)? {
        return Err(unsupported("experts that a sparse mixer chooses"));
    }
    let logits = cx.wide(logits);
    let dtype = cx.b.dtype(logits);
    let shape = cx.b.shape(logits);
    let [_, experts] = shape.as_slice() else { return Err(malformed("the router has two axes")) };
    let k = Expr::int(c.int("k", 1)?);
    let (_, order) = cx.b.sort(logits, 1, true)?;
    let order = cx.b.slice(order, 1, &Expr::int(0), &k, 1)?;
    let order = cx.b.unsqueeze(order, 2)?;
    let each = [shape[0].clone(), k, experts.clone()];
    let expert = cx.b.index(Expr::axis(2), &each);
    let chosen = cx.binary(Relation::Eq, order, expert)?;
    let chosen = cx.b.reduce(ReduceOp::Any, chosen, &[1], false)?;
    let all = match weights {
        Some(weights) => cx.typed_like(weights, logits),
        None => softmax_over(cx, logits, 1, Form::Plain)?,
    };
    let none = cx.b.scalar(0.0, dtype);
    let taken = cx.b.select(chosen, all, none)?;
    if !normalize {
        return Ok(taken);
    }
    let total = cx.b.reduce(ReduceOp::Sum, taken, &[1], true)?;
    cx.apply([taken, total], dtype, |[taken, total]| taken / total)
}

/// `[experts, tokens, outputs]` of `[experts or 1, tokens, inputs]`.
fn linear(cx: &mut Onnx, x: ValueId, weight: ValueId, bias: Option<ValueId>) -> Result<ValueId, RuleError> {
    let weight = cx.typed_like(weight, x);
    let weight = cx.b.transpose(weight, 1, 2)?;
    let product = cx.matmul(x, weight)?;
    match bias {
        Some(bias) => {
            let bias = cx.b.unsqueeze(bias, 1)?;
            sum(cx, &[product, bias])
        }
        None => Ok(product),
    }
}

fn of_layers(cx: &mut Onnx, c: &Call, layers: &Layers, routed: ValueId) -> Rule {
    let input = c.tensor(0)?;
    let shape = cx.b.shape(input);
    let Some((width, tokens)) = shape.split_last().filter(|(_, tokens)| !tokens.is_empty()) else {
        return Err(malformed("tokens have two axes or three"));
    };
    let x = cx.b.reshape(input, &[Expr::int(1), Expr::product(tokens), width.clone()])?;
    let hidden = linear(cx, x, layers.first, layers.first_bias)?;
    let gate = match layers.gate {
        Some((weight, bias)) => Some(linear(cx, x, weight, bias)?),
        None => None,
    };
    let hidden = activated(cx, c, hidden, gate)?;
    let output = linear(cx, hidden, layers.second, layers.second_bias)?;
    let routed = cx.b.transpose(routed, 0, 1)?;
    let routed = cx.b.unsqueeze(routed, 2)?;
    let dtype = cx.b.dtype(output).compute();
    let parts = cx.apply([output, routed], dtype, |[output, routed]| output * routed)?;
    let total = cx.b.reduce(ReduceOp::Sum, parts, &[0], false)?;
    let total = cx.typed_like(total, input);
    one(cx.b.reshape(total, &shape)?)
}

/// The function between both layers. Gates may be every second column of the first layer, or the left half of it.
fn activated(cx: &mut Onnx, c: &Call, hidden: ValueId, gate: Option<ValueId>) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(hidden);
    let kind = c.text("activation_type", "relu")?;
    if kind == "swiglu" || kind == "geglu" {
        let [gate, linear] = match (c.int("swiglu_fusion", 0)?, gate) {
            (0, Some(linear)) => [hidden, linear],
            (fusion @ (1 | 2), None) => halves(cx, hidden, fusion == 1)?,
            _ => return Err(malformed("`swiglu_fusion` does not say where gates are")),
        };
        return gated(cx, c, gate, linear, kind == "geglu");
    }
    let value = match kind {
        "identity" => hidden,
        "gelu" => tanh_gelu(cx, hidden)?,
        _ => {
            let of: fn(Formula) -> Formula = match kind {
                "relu" => |x| x.max(0.0),
                "relu2" => |x| &x.max(0.0) * &x.max(0.0),
                "silu" => |x| &x * x.sigmoid(),
                other => return Err(malformed(format!("the activation `{other}` is unknown"))),
            };
            cx.apply([hidden], dtype, |[x]| of(x))?
        }
    };
    match gate {
        Some(gate) => cx.apply([value, gate], dtype, |[value, gate]| value * gate),
        None => Ok(value),
    }
}

fn tanh_gelu(cx: &mut Onnx, x: ValueId) -> Result<ValueId, RuleError> {
    gelu(cx, x, Gelu::Tanh)
}

/// Both halves of the columns, or every second column and those between.
fn halves(cx: &mut Onnx, x: ValueId, interleaved: bool) -> Result<[ValueId; 2], RuleError> {
    let half = cx.b.shape(x)[2].floor_div_in(&Expr::int(2), cx.b.ranges());
    let (second, step) = if interleaved { (Expr::int(1), 2) } else { (half.clone(), 1) };
    Ok([cx.b.slice(x, 2, &Expr::int(0), &half, step)?, cx.b.slice(x, 2, &second, &half, step)?])
}

fn gated(cx: &mut Onnx, c: &Call, gate: ValueId, linear: ValueId, gelu: bool) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(gate);
    if gelu {
        let gate = tanh_gelu(cx, gate)?;
        return cx.apply([gate, linear], dtype, |[gate, linear]| gate * linear);
    }
    let (alpha, beta) = (c.float("activation_alpha", 1.0)?, c.float("activation_beta", 0.0)?);
    let limit = c.float("swiglu_limit", f64::INFINITY)?;
    let late = c.flag("swiglu_limit_after_activation", false)?;
    cx.apply([gate, linear], dtype, |[gate, linear]| {
        let early = if late { gate } else { gate.min(limit) };
        let gate = &early * (&early * alpha).sigmoid();
        let gate = if late { gate.min(limit) } else { gate };
        gate * (linear.max(-limit).min(limit) + beta)
    })
}

#[cfg(test)]
mod tests {
    use super::super::super::super::testing::{Model, int};
    use crate::dtype::DType;
    use crate::interpret::Tensor;

    /// One token, two experts of one number each, of which the router gives the second three quarters.
    fn token() -> Model {
        Model::new(17)
            .input("x", Tensor::from_f32(&[1, 1], &[2.0]))
            .input("router", Tensor::from_f32(&[1, 2], &[0.0, 3f32.ln()]))
            .constant("bias", &Tensor::from_f32(&[2, 1], &[0.0, 1.0]))
    }

    fn is_near(found: &[f64], wanted: f64) {
        assert!(found.len() == 1 && (found[0] - wanted).abs() < 1e-5, "{found:?}, not {wanted}");
    }

    #[test]
    fn tokens_take_the_first_experts_by_their_weights() {
        let model = token()
            .constant("first", &Tensor::from_f32(&[2, 1, 1], &[-1.0, 3.0]))
            .constant("second", &Tensor::from_f32(&[2, 1, 1], &[5.0, 0.5]));
        let inputs = ["x", "router", "first", "bias", "second", ""];
        let run = |attributes: &[_]| model.of_one("com.microsoft::MoE", &inputs, attributes);
        // relu(2 * 3 + 1) / 2 of the second; the first gives relu(-2) = 0.
        is_near(&run(&[]), 0.75 * 3.5);
        is_near(&run(&[int("k", 2)]), 0.75 * 3.5);
        is_near(&run(&[int("normalize_routing_weights", 1)]), 3.5);
    }

    #[test]
    fn weights_of_experts_may_be_quantised() {
        let bytes =
            |sizes: &[usize], all: &[u8]| Tensor::new(DType::U8, sizes.to_vec(), all.to_vec()).unwrap();
        let model = token()
            .constant("scale", &Tensor::from_f32(&[2, 1], &[1.0, 0.5]))
            .constant("first", &bytes(&[2, 1, 1], &[127, 134]))
            .constant("second", &bytes(&[2, 1, 1], &[133, 129]));
        let inputs = ["x", "router", "first", "scale", "bias", "second", "scale", ""];
        let found = model.of_one("com.microsoft::QMoE", &inputs, &[int("expert_weight_bits", 8)]);
        is_near(&found, 3.5);
    }
}
