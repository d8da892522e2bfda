//! Dropout: elements, or whole channels, that become zero at random in programs that are exported while they train.

use super::registry::rules;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::dtype::DType;
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.dropout.default" => |cx, a| dropout(cx, a, Form { by_channel: false, keeps_moments: false }),
    pure "aten.feature_dropout.default" => |cx, a| dropout(cx, a, Form { by_channel: true, keeps_moments: false }),
    pure "aten.alpha_dropout.default" => |cx, a| dropout(cx, a, Form { by_channel: false, keeps_moments: true }),
    pure "aten.feature_alpha_dropout.default" => |cx, a| {
        dropout(cx, a, Form { by_channel: true, keeps_moments: true })
    },
    pure "aten.native_dropout.default" => native_dropout,
    pure "aten.native_dropout_backward.default" => native_dropout_backward,
}

/// Which of the four operators it is.
struct Form {
    /// All elements of a channel go together.
    by_channel: bool,
    /// What goes becomes what keeps mean and variance of a self-normalising activation.
    keeps_moments: bool,
}

/// The saturation of SELU for ever smaller numbers, negated: its scale times its `alpha`.
const SATURATION: f64 = 1.758_099_340_847_376_6;

fn dropout(cx: &mut Context, a: &Args, form: Form) -> Rule {
    let x = a.only()?;
    let p = a.float_or("p", 0.5)?;
    if !a.bool_or("train", true)? || p == 0.0 {
        return Ok(x.into());
    }
    let mut shape = cx.b.shape(x);
    if form.by_channel {
        shape.iter_mut().skip(2).for_each(|size| *size = Expr::int(1));
    }
    if !form.keeps_moments {
        return Ok(dropped(cx, x, p, &shape)?.0.into());
    }
    if p == 1.0 {
        return Ok(cx.b.full_like(0i64, x).into());
    }
    let keeps = cx.chance(&shape, 1.0 - p)?;
    let scale = 1.0 / ((SATURATION * SATURATION * p + 1.0) * (1.0 - p)).sqrt();
    let dtype = cx.b.dtype(x);
    let result = cx.apply([x], dtype, |[x]| {
        let kept = (x + SATURATION * p) * scale;
        Formula::from(keeps).select(kept, SATURATION * (p - 1.0) * scale)
    })?;
    Ok(result.into())
}

/// The tensor with elements that are zero with probability `p`, the others scaled so that the mean stays, and which stay.
/// Decided for `shape`, which broadcasts to the tensor's.
fn dropped(cx: &mut Context, x: ValueId, p: f64, shape: &[Expr]) -> Result<(ValueId, ValueId), RuleError> {
    let keeps = cx.chance(shape, 1.0 - p)?;
    let scale = if p == 1.0 { 0.0 } else { 1.0 / (1.0 - p) };
    let dtype = cx.b.dtype(x);
    let result = cx.apply([x], dtype, |[x]| Formula::from(keeps).select(x * scale, 0.0))?;
    Ok((result, keeps))
}

impl Context {
    /// Dropout of single elements.
    pub(crate) fn dropped_out(&mut self, x: ValueId, p: f64) -> Result<ValueId, RuleError> {
        let shape = self.b.shape(x);
        if p == 0.0 { Ok(x) } else { Ok(dropped(self, x, p, &shape)?.0) }
    }
}

fn native_dropout(cx: &mut Context, a: &Args) -> Rule {
    let x = a.only()?;
    let p = a.float_or("p", 0.5)?;
    let shape = cx.b.shape(x);
    // `train` absent counts as true.
    if a.bool_or("train", true)? && p != 0.0 {
        let (result, keeps) = dropped(cx, x, p, &shape)?;
        return Ok(Outputs::Many(vec![Some(result), Some(keeps)]));
    }
    let mask = cx.b.full(true, DType::Bool, &shape);
    Ok(Outputs::Many(vec![Some(x), Some(mask)]))
}

fn native_dropout_backward(cx: &mut Context, a: &Args) -> Rule {
    let (grad, mask) = (a.tensor("grad_output")?, a.tensor("mask")?);
    let scale = a.float_or("scale", 1.0)?;
    let dtype = cx.result_type(&[grad, mask])?;
    let dtype = cx.float_type(dtype);
    Ok(cx.apply([grad, mask], dtype, |[grad, mask]| grad * mask * scale)?.into())
}
