//! Where data meets the program's numbers: assertions and reading a number from a tensor.

use super::registry::rules;
use super::support::read_size;
use super::{Args, Context, Outputs, RuleError};
use crate::aten::Output;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.item.default" => item,
    pure "aten._local_scalar_dense.default" => item,
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

/// Reads an integer into the symbol that the program has for it.
fn item(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let Some(Output::SymInt(name)) = a.call.outputs.first() else {
        return Err(RuleError::unsupported("a floating-point or boolean number read from data"));
    };
    let Some(size) = a.program.sym_ints.get(name) else {
        return Err(RuleError::Malformed(format!("number `{name}` is not described")));
    };
    read_size(cx, x, size, None)?;
    Ok(Outputs::Nothing)
}
