//! Linear attention: a state for each head that every step decays, corrects and adds to.

use super::super::call::{Call, malformed};
use super::super::walk::Onnx;
use super::{Rule, many, operators};
use crate::frontend::torch::rules::attention::{default_scale, scaled, share_heads};
use crate::frontend::torch::rules::{Context, Operand, RuleError};
use crate::graph::steps::{Now, Stepped, Steps};
use crate::graph::{FloatUnary, TensorType, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "LinearAttention" => linear_attention,
}

/// What happens to the state at a step.
#[derive(Clone, Copy)]
struct Update {
    decays: bool,
    corrects: bool,
}

impl Update {
    fn of(name: &str) -> Result<Update, RuleError> {
        let (decays, corrects) = match name {
            "linear" => (false, false),
            "gated" => (true, false),
            "delta" => (false, true),
            "gated_delta" => (true, true),
            other => return Err(malformed(format!("the update rule `{other}` is unknown"))),
        };
        Ok(Update { decays, corrects })
    }
}

fn linear_attention(cx: &mut Onnx, c: &Call) -> Rule {
    let update = Update::of(c.text("update_rule", "gated_delta")?)?;
    let (heads, own) = (c.int("q_num_heads", 0)?, c.int("kv_num_heads", 0)?);
    if heads <= 0 || own <= 0 || heads % own != 0 {
        return Err(malformed(format!("{heads} heads of queries for {own} of keys")));
    }
    let dtype = cx.b.dtype(c.tensor(0)?);
    let wide = dtype.compute();
    let lead = cx.b.shape(c.tensor(0)?).into_iter().take(2).collect::<Vec<_>>();
    let query = by_steps(cx, c.tensor(0)?, heads, &lead)?;
    let (key, value) = (by_steps(cx, c.tensor(1)?, own, &lead)?, by_steps(cx, c.tensor(2)?, own, &lead)?);
    let mut rows = vec![query, key, value];
    if update.decays {
        rows.push(by_steps(cx, c.tensor(4)?, own, &lead)?);
    }
    if update.corrects {
        let beta = c.tensor(5)?;
        let count = if cx.b.shape(beta).get(2).is_some_and(|size| size.is(1)) { 1 } else { own };
        rows.push(by_steps(cx, beta, count, &lead)?);
    }
    let shape = cx.b.shape(query);
    let (depth, width) = (cx.b.shape(key)[3].clone(), cx.b.shape(value)[3].clone());
    let state = [shape[1].clone(), Expr::int(own), depth.clone(), width.clone()];
    let (start, stored) = match c.opt_tensor(3)? {
        Some(past) => (cx.required_shape(past, &state)?, cx.b.dtype(past)),
        None => (cx.b.full(0.0, wide, &state), dtype),
    };
    let start = cx.b.cast(start, wide);
    let scale = match c.float("scale", 0.0)? {
        0.0 => default_scale(cx, &depth)?,
        scale => Operand::Number(scale.into()),
    };
    let steps = Steps {
        name: "linear_attention",
        count: shape[0].clone(),
        reverse: false,
        tables: &rows,
        captured: &[],
        outputs: vec![TensorType { dtype: wide, shape: vec![shape[1].clone(), Expr::int(heads), width] }],
    };
    let (all, end) = steps.run(&mut cx.cx, &[start], &mut |cx, now| step(cx, update, &now))?;
    let all = scaled(cx, all[0], &scale)?;
    let all = cx.b.permute(all, &[1, 0, 2, 3])?;
    let output = cx.merge_axes(all, 2, 4)?;
    many([cx.b.cast(output, dtype), cx.b.cast(end[0], stored)])
}

/// `[batch, steps, heads * width]` as `[steps, batch, heads, width]`, in the computing type.
fn by_steps(cx: &mut Onnx, x: ValueId, heads: i64, rows: &[Expr]) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    if shape.len() != 3 {
        return Err(malformed(format!("a tensor of {} axes", shape.len())));
    }
    let x = cx.required_shape(x, &[rows, &shape[2..]].concat())?;
    let width = shape[2].floor_div_in(&Expr::int(heads), cx.b.ranges());
    let split = cx.split_axis(x, 2, &[Expr::int(heads), width])?;
    let moved = cx.b.transpose(split, 0, 1)?;
    Ok(cx.wide(moved))
}

/// The state is `[batch, heads, depth, width]`, rows are `[batch, heads, ...]`.
fn step(cx: &mut Context, update: Update, now: &Now) -> Stepped<Context> {
    let mut rows = now.rows.iter().copied();
    let mut next = || rows.next().ok_or_else(|| malformed("an operand is missing"));
    let (query, key, mut value) = (next()?, next()?, next()?);
    let mut state = now.state[0];
    let column = cx.b.unsqueeze(key, 3)?;
    if update.decays {
        let decay = cx.b.unary(FloatUnary::Exp, next()?);
        let decay = cx.b.unsqueeze(decay, 3)?;
        state = cx.mul(state, decay)?;
    }
    if update.corrects {
        let beta = next()?;
        let found = cx.mul(state, column)?;
        let found = cx.sum(found, &[2], false)?;
        let missing = cx.sub(value, found)?;
        value = cx.mul(missing, beta)?;
    }
    let line = cx.b.unsqueeze(value, 2)?;
    let new = cx.mul(column, line)?;
    state = cx.add(state, new)?;
    let shape = cx.b.shape(query);
    let like = [shape.clone(), vec![Expr::int(1)]].concat();
    let shared = share_heads(cx, state, &like)?;
    let query = cx.b.unsqueeze(query, 2)?;
    let output = cx.b.matmul(query, shared)?;
    Ok((vec![cx.b.squeeze(output, &[2])?], vec![state]))
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::{Model, float, int, text};
    use crate::interpret::Tensor;

    /// One head of one column: the state is a number. Decays are 1, and what is found is corrected by half.
    #[test]
    fn a_state_is_corrected() {
        let rows = |values: &[f32]| Tensor::from_f32(&[1, 2, 1], values);
        let attributes = [
            int("q_num_heads", 1),
            int("kv_num_heads", 1),
            float("scale", 1.0),
            text("update_rule", "gated_delta"),
        ];
        let model = Model::new(27)
            .input("q", rows(&[1.0, 3.0]))
            .input("k", rows(&[1.0, 2.0]))
            .input("v", rows(&[4.0, 6.0]))
            .input("decay", rows(&[0.0, 0.0]))
            .input("beta", rows(&[0.5, 0.5]))
            .node("LinearAttention", &["q", "k", "v", "", "decay", "beta"], &["y", "state"], &attributes);
        let results = model.run(&["y", "state"]);
        // 0 + 1 * 0.5 * (4 - 0) = 2, then 2 + 2 * 0.5 * (6 - 2 * 2) = 4.
        assert_eq!(results[0].to_f64(), [2.0, 12.0]);
        assert_eq!(results[1].to_f64(), [4.0]);
    }
}
