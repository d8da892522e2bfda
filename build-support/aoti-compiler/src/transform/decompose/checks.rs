//! Conditions on data that the program states.

use super::registry::rules;
use super::{Args, Context, Outputs, RuleError};

type Rule = Result<Outputs, RuleError>;

rules! {
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
