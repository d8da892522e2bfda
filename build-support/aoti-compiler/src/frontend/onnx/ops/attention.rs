//! The standard's operators of attention.

use super::super::call::{Call, malformed};
use super::super::proto::GraphProto;
use super::super::types::element_type;
use super::super::value::Val;
use super::super::walk::Onnx;
use super::attention_core::{Attend, Start};
use super::{Operator, Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::attention::softmax as attention_softmax;
use crate::graph::{BinaryOp, Combine, Coord, Scalar, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "Attention" => attention,
    "TensorScatter" => tensor_scatter,
    "SwiGLU" => swiglu,
}

/// Operators that may still change.
pub(super) const PREVIEW: &[Operator] =
    &[Operator { domain: "ai.onnx.preview", name: "FlexAttention", run: flex_attention }];

fn attention(cx: &mut Onnx, c: &Call) -> Rule {
    let mut operands = [c.tensor(0)?, c.tensor(1)?, c.tensor(2)?];
    let is_flat = cx.b.rank(operands[0]) == 3;
    if is_flat {
        let heads = |name: &str| c.opt_int(name)?.ok_or_else(|| malformed(format!("`{name}` is missing")));
        let (of_queries, of_keys) = (heads("q_num_heads")?, heads("kv_num_heads")?);
        for (operand, heads) in operands.iter_mut().zip([of_queries, of_keys, of_keys]) {
            *operand = cx.with_heads(*operand, heads)?;
        }
    }
    if operands.iter().any(|operand| cx.b.rank(*operand) != 4) {
        return Err(malformed("queries, keys and values have three axes or four"));
    }
    let [query, mut key, mut value] = operands;
    let mut past = Expr::int(0);
    if let (Some(past_key), Some(past_value)) = (c.opt_tensor(4)?, c.opt_tensor(5)?) {
        past = cx.b.shape(past_key).get(2).cloned().ok_or_else(|| malformed("the past has too few axes"))?;
        key = cx.b.cat(&[past_key, key], 2)?;
        value = cx.b.cat(&[past_value, value], 2)?;
    }
    let mut own = Attend::new(query, key, value);
    own.scale = c.opt_float("scale")?;
    own.cap = c.float("softcap", 0.0)?;
    own.precision = precision(c)?;
    let (queries, keys) = (cx.b.shape(query)[2].clone(), cx.b.shape(key)[2].clone());
    if let Some(mask) = c.opt_tensor(3)? {
        own.masks.push(padded(cx, mask, &keys)?);
    }
    let counts = c.opt_tensor(6)?;
    hide_by_position(cx, c, &mut own, (&past, counts), (&queries, &keys))?;
    let done = cx.attend(&own)?;
    let dtype = cx.b.dtype(query);
    let inner = match c.int("qk_matmul_output_mode", 0)? {
        0 => done.raw,
        1 => done.capped,
        2 => done.masked,
        3 => done.weights,
        other => return Err(malformed(format!("`qk_matmul_output_mode` is {other}"))),
    };
    let output = if is_flat { cx.without_heads(done.output)? } else { done.output };
    let inner: Val = if c.wants(3) { cx.b.cast(inner, dtype).into() } else { Val::Absent };
    Ok(vec![output.into(), key.into(), value.into(), inner])
}

/// What is hidden because of where it is: keys behind the query's own position, outside of a window, or of no meaning.
fn hide_by_position(
    cx: &mut Onnx,
    c: &Call,
    own: &mut Attend,
    (past, counts): (&Expr, Option<ValueId>),
    (queries, keys): (&Expr, &Expr),
) -> Result<(), RuleError> {
    let causal = c.flag("is_causal", false)?;
    let limit = |name: &str| Ok::<_, RuleError>(c.opt_int(name)?.filter(|limit| *limit >= 0));
    let (left, mut right) = (limit("left_window_size")?, limit("right_window_size")?);
    let start = match counts {
        None => Start::All(past.clone()),
        Some(counts) => {
            own.masks.push(cx.first_keys(counts, keys)?);
            let counts = cx.b.cast(counts, DType::I64);
            let before = cx.b.index(queries.clone(), &[]);
            Start::Each(cx.sub(counts, before)?)
        }
    };
    match &start {
        Start::All(offset) if causal => own.causal = Some(offset.clone()),
        Start::Each(_) if causal => right = Some(0),
        Start::All(_) | Start::Each(_) => {}
    }
    if left.is_some() || right.is_some() {
        let distance = cx.distance(&start, queries, keys)?;
        own.masks.extend(cx.in_window(distance, left, right)?);
    }
    Ok(())
}

fn precision(c: &Call) -> Result<Option<DType>, RuleError> {
    let Some(number) = c.opt_int("softmax_precision")? else { return Ok(None) };
    let number = i32::try_from(number).map_err(|_| malformed("`softmax_precision` is unknown"))?;
    Ok(Some(element_type(number).map_err(malformed)?.dtype))
}

/// A mask may be of fewer keys than there are; the others are hidden.
fn padded(cx: &mut Onnx, mask: ValueId, keys: &Expr) -> Result<ValueId, RuleError> {
    let mut shape = cx.b.shape(mask);
    let Some(last) = shape.len().checked_sub(1) else { return Ok(mask) };
    if cx.b.same_size(&shape[last], keys) {
        return Ok(mask);
    }
    shape[last] = keys.clone();
    let is_truth = cx.b.dtype(mask) == DType::Bool;
    let fill = if is_truth { Scalar::Bool(false) } else { Scalar::Float(f64::NEG_INFINITY) };
    Ok(cx.b.padded_view(mask, &shape, (0..=last).map(Expr::axis).collect(), fill)?)
}

/// New rows are written into a cache, from a position of each element of the batch on.
fn tensor_scatter(cx: &mut Onnx, c: &Call) -> Rule {
    let (cache, update) = (c.tensor(0)?, c.tensor(1)?);
    let (own, shape) = (cx.b.shape(cache), cx.b.shape(update));
    let axis = axis_of(c.int("axis", -2)?, own.len())?;
    if axis == 0 || shape.len() != own.len() {
        return Err(malformed("the axis is that of the batch, or the update has other axes than the cache"));
    }
    let mut at = cx.b.index(Expr::axis(axis), &shape);
    if let Some(starts) = c.opt_tensor(2)? {
        let starts = cx.b.cast(starts, DType::I64);
        let starts = cx.trailing_ones(starts, own.len())?;
        at = cx.add(at, starts)?;
    }
    match c.text("mode", "linear")? {
        "linear" => {}
        "circular" => {
            let size = cx.b.index(own[axis].clone(), &[]);
            at = cx.binary(BinaryOp::Remainder, at, size)?;
        }
        other => return Err(malformed(format!("the mode `{other}` is unknown"))),
    }
    let coords = (0..own.len())
        .map(|k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) })
        .collect();
    one(cx.b.scatter(cache, update, &[at], coords, Combine::Set)?)
}

fn swiglu(cx: &mut Onnx, c: &Call) -> Rule {
    let (gate, value) = (c.tensor(0)?, c.tensor(1)?);
    let alpha = c.float("alpha", 1.0)?;
    let dtype = cx.b.dtype(gate);
    one(cx.apply([gate, value], dtype, |[gate, value]| &gate * (&gate * alpha).sigmoid() * value)?)
}

/// Attention with functions of the scores and of the weights, which the node has as graphs.
fn flex_attention(cx: &mut Onnx, c: &Call) -> Rule {
    let (query, key, value) = (c.tensor(0)?, c.tensor(1)?, c.tensor(2)?);
    let mut scores = cx.scores(query, key, c.opt_float("scale")?)?;
    let wide = cx.b.dtype(scores);
    let precision = precision(c)?.unwrap_or(wide);
    if c.has("score_mod") {
        let given = cx.b.cast(scores, precision);
        scores = changed(cx, c.graph("score_mod")?, given)?;
    }
    let inner = cx.b.cast(scores, if precision == DType::F64 { precision } else { wide });
    let (mut weights, _) = attention_softmax(cx, inner, true)?;
    if c.has("prob_mod") {
        let given = cx.b.cast(weights, precision);
        weights = changed(cx, c.graph("prob_mod")?, given)?;
    }
    one(cx.weighted(weights, query, value)?)
}

/// What a graph of one operand makes of a value, of the same shape.
fn changed(cx: &mut Onnx, graph: &GraphProto, x: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    match cx.inlined_body(graph, vec![x.into()])?.as_slice() {
        [Val::Tensor(value)] => cx.required_shape(*value, &shape),
        _ => Err(malformed("a function of scores does not give one tensor")),
    }
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::proto::AttributeProto;
    use crate::frontend::onnx::testing::{Model, float, int};
    use crate::interpret::Tensor;
    use crate::loops::KernelKind;
    use crate::lower::lower;
    use crate::target::{GpuTarget, Target};
    use crate::tuning::Decisions;

    /// Two queries of two heads, keys of one head that all have the same score, with values 1, 3 and 8.
    fn values(masks: &[(&str, Tensor)], inputs: &[&str], attributes: &[AttributeProto]) -> Vec<f64> {
        let model = Model::new(24)
            .input("q", Tensor::from_f32(&[1, 2, 2, 1], &[0.0; 4]))
            .input("k", Tensor::from_f32(&[1, 1, 3, 1], &[1.0; 3]))
            .input("v", Tensor::from_f32(&[1, 1, 3, 1], &[1.0, 3.0, 8.0]));
        let model = masks.iter().fold(model, |model, (name, mask)| model.input(name, mask.clone()));
        model.node("Attention", &[&["q", "k", "v"], inputs].concat(), &["y"], attributes).numbers()
    }

    #[track_caller]
    fn near(found: &[f64], expected: &[f64]) {
        let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-5;
        assert!(found.len() == expected.len() && found.iter().zip(expected).all(close), "{found:?}");
    }

    #[test]
    fn heads_share_keys_and_positions_hide_them() {
        near(&values(&[], &[], &[]), &[4.0; 4]);
        near(&values(&[], &[], &[int("is_causal", 1)]), &[1.0, 2.0, 1.0, 2.0]);
    }

    #[test]
    fn a_mask_may_be_shorter_and_a_row_may_see_nothing() {
        let mask = Tensor::from_bool(&[2, 2], &[true, true, false, false]);
        near(&values(&[("m", mask)], &["m"], &[]), &[2.0, 0.0, 2.0, 0.0]);
    }

    #[test]
    fn keys_count_and_their_count_places_queries() {
        let count = Tensor::from_i64(&[1], &[2]);
        let inputs = ["", "", "", "n"];
        near(&values(&[("n", count.clone())], &inputs, &[]), &[2.0; 4]);
        near(&values(&[("n", count)], &inputs, &[int("is_causal", 1)]), &[1.0, 2.0, 1.0, 2.0]);
    }

    #[test]
    fn a_cache_wraps_around() {
        let model = Model::new(24)
            .input("cache", Tensor::from_f32(&[1, 3, 1], &[1.0, 2.0, 3.0]))
            .input("new", Tensor::from_f32(&[1, 2, 1], &[8.0, 9.0]))
            .input("at", Tensor::from_i64(&[1], &[2]))
            .node(
                "TensorScatter",
                &["cache", "new", "at"],
                &["y"],
                &[crate::frontend::onnx::testing::text("mode", "circular")],
            );
        assert_eq!(model.numbers(), [9.0, 2.0, 8.0]);
    }

    /// Attention is one kernel where a target has one, whatever is said of its scores.
    #[test]
    fn it_is_one_kernel() {
        let target = Target::Gpu(GpuTarget::named("sm_90a").unwrap());
        // Of fixed sizes, but not constants.
        let fixed = |model: Model, name: &str, sizes: &[i64]| {
            let (flat, shape) = (format!("{name}.flat"), format!("{name}.shape"));
            model
                .input(&flat, Tensor::from_f32(&[0], &[]))
                .constant(&shape, &Tensor::from_i64(&[sizes.len()], sizes))
                .node("Reshape", &[&flat, &shape], &[name], &[])
        };
        let variants: [&[AttributeProto]; 3] =
            [&[], &[int("is_causal", 1)], &[int("is_causal", 1), float("softcap", 5.0)]];
        for attributes in variants {
            let model = fixed(Model::new(23), "q", &[1, 4, 64, 16]);
            let model = fixed(model, "k", &[1, 2, 64, 16]);
            let model =
                fixed(model, "m", &[64, 64]).node("Attention", &["q", "k", "k", "m"], &["y"], attributes);
            let graph = model.import(&["y"]).unwrap().graph;
            let graph = crate::passes::optimize(graph);
            let program = lower(&graph, &target, &mut Decisions::default());
            let count = |program: &crate::loops::Program| {
                let is_one = |kernel: &&crate::loops::Kernel| matches!(kernel.kind, KernelKind::Attention(_));
                program.kernels.values().filter(is_one).count()
            };
            assert_eq!(count(&program), 1);
        }
    }
}
