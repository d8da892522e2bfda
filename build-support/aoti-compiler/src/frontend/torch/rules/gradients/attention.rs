//! The gradient of attention, from the logarithm of each query's sum that the forward pass kept.

use super::{Args, Context, Outputs, RuleError, rules, stated};
use crate::frontend::torch::rules::attention::{scaled, scores_of};
use crate::graph::ValueId;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten._scaled_dot_product_flash_attention_for_cpu_backward.default" => flash,
}

fn flash(cx: &mut Context, a: &Args) -> Rule {
    if a.float_or("dropout_p", 0.0)? != 0.0 {
        return Err(RuleError::unsupported("the gradient of attention with dropout"));
    }
    let (query, key) = (a.tensor("query")?, a.tensor("key")?);
    let (scores, scale) = scores_of(cx, a, query, key, a.opt_tensor("attn_mask")?)?;
    let dtype = cx.b.dtype(scores);
    let last = cx.b.rank(scores) - 1;
    let normalizer = a.tensor("logsumexp")?;
    let normalizer = cx.b.unsqueeze(normalizer, last)?;
    // Where a query sees no key at all, its normaliser is as hidden as its scores.
    let weights = cx.apply([scores, normalizer], dtype, |[score, normalizer]| {
        score.equals(f64::NEG_INFINITY).select(0.0, (score - normalizer).exp())
    })?;
    let mut wide = |name: &str| Ok::<ValueId, RuleError>(cx.b.cast(a.tensor(name)?, dtype));
    let [g, value, output, query, key] =
        [wide("grad_out")?, wide("value")?, wide("out")?, wide("query")?, wide("key")?];
    let turned = |cx: &mut Context, x| cx.b.transpose(x, last - 1, last);
    let (turned_weights, turned_value) = (turned(cx, weights)?, turned(cx, value)?);
    let of_value = cx.b.matmul(turned_weights, g)?;
    let of_weights = cx.b.matmul(g, turned_value)?;
    // What moves all scores of a query alike changes nothing.
    let common = cx.mul(g, output)?;
    let common = cx.sum(common, &[last], true)?;
    let of_scores = cx.sub(of_weights, common)?;
    let of_scores = cx.mul(weights, of_scores)?;
    let of_scores = scaled(cx, of_scores, &scale)?;
    let turned_scores = turned(cx, of_scores)?;
    let (of_query, of_key) = (cx.b.matmul(of_scores, key)?, cx.b.matmul(turned_scores, query)?);
    Ok(stated(cx, a, &[Some(of_query), Some(of_key), Some(of_value)]))
}
