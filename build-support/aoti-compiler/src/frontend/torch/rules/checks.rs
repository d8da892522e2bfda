//! Where data meets the program's numbers: assertions and reading a number from a tensor.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.item.default" => item,
    pure "aten._local_scalar_dense.default" => item,
    // Left behind where `torch.tensor` was traced; the calls that follow have the element type already.
    pure "aten.promote_types.default" => |_, _| Ok(Outputs::Nothing),
    pure "aten._assert_async.default" => check,
    pure "aten._assert_async.msg" => check,
    pure "aten._functional_assert_async.msg" => |cx, a| {
        check(cx, a)?;
        Ok(a.tensor("dep_token")?.into())
    },
}

fn check(cx: &mut Context, a: &Args) -> Rule {
    let condition = a.tensor("self")?;
    let message = a.str_or("assert_msg", "an assertion of the program does not hold")?;
    cx.b.assert(condition, message)?;
    Ok(Outputs::Nothing)
}

/// The number in a tensor: an integer is read into the symbol that the program has for it where the result is bound.
fn item(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    if !cx.b.ty(x).numel().is(1) {
        return Err(RuleError::Malformed("only a tensor of one element is a number".to_owned()));
    }
    Ok(cx.b.reshape(x, &[])?.into())
}
