//! Loops that rules make: a body that is run a number of times that may follow from data.

use super::{Context, RuleError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Combine, Coord, InputRole, OutputRole, ReduceOp, Relation, ValueId};
use crate::symbolic::Expr;

/// The next carried values.
pub(crate) type Carried = Result<Vec<ValueId>, RuleError>;
/// The body of [`repeat`].
type Body<'f> = dyn FnMut(&mut Context, ValueId, &[ValueId], &[ValueId]) -> Carried + 'f;
/// The body of [`repeat_while_any`].
type BodyWhileAny<'f> = dyn FnMut(&mut Context, Step<'_>) -> Carried + 'f;

/// Runs `body` for each number from 0 to `count` (`i64`, without axes). It gets the number, the carried values and the
/// captured ones, and gives the next carried values, of the same types.
pub(crate) fn repeat(
    cx: &mut Context,
    name: &str,
    count: ValueId,
    carried: &[ValueId],
    captured: &[ValueId],
    body: &mut Body<'_>,
) -> Carried {
    let first = cx.b.scalar(0i64, DType::I64);
    let operands = [&[first], carried, captured, &[count]].concat();
    let (mut condition, inputs) = inner(cx, &format!("{name}_condition"), &operands);
    let goes_on = condition.binary(Relation::Lt, inputs[0], inputs[inputs.len() - 1])?;
    condition.b.output("goes_on", goes_on, OutputRole::User);

    let (mut step, inputs) = inner(cx, name, &operands);
    let (own, rest) = inputs[1..inputs.len() - 1].split_at(carried.len());
    let results = body(&mut step, inputs[0], own, rest)?;
    let next = step.with_number(BinaryOp::Add, inputs[0], 1i64)?;
    for (position, value) in std::iter::once(next).chain(results).enumerate() {
        step.b.output(&format!("carried_{position}"), value, OutputRole::User);
    }
    let outputs = cx.b.while_loop(condition.b.finish(), step.b.finish(), &operands, carried.len() + 1)?;
    Ok(outputs[1..].to_vec())
}

/// Runs `body` for the numbers from 0 on, as long as any element of `open` (`bool`) is true; it gives the next of it before the
/// next carried values.
pub(crate) fn repeat_while_any(
    cx: &mut Context,
    name: &str,
    open: ValueId,
    carried: &[ValueId],
    captured: &[ValueId],
    body: &mut BodyWhileAny<'_>,
) -> Carried {
    let first = cx.b.scalar(0i64, DType::I64);
    let operands = [&[first, open], carried, captured].concat();
    let (mut condition, inputs) = inner(cx, &format!("{name}_condition"), &operands);
    let axes: Vec<usize> = (0..condition.b.rank(inputs[1])).collect();
    let goes_on = if axes.is_empty() {
        inputs[1]
    } else {
        condition.b.reduce(ReduceOp::Any, inputs[1], &axes, false)?
    };
    condition.b.output("goes_on", goes_on, OutputRole::User);

    let (mut step, inputs) = inner(cx, name, &operands);
    let (own, rest) = inputs[2..].split_at(carried.len());
    let now = Step { number: inputs[0], open: inputs[1], carried: own, captured: rest };
    let results = body(&mut step, now)?;
    let next = step.with_number(BinaryOp::Add, inputs[0], 1i64)?;
    for (position, value) in std::iter::once(next).chain(results).enumerate() {
        step.b.output(&format!("carried_{position}"), value, OutputRole::User);
    }
    let outputs = cx.b.while_loop(condition.b.finish(), step.b.finish(), &operands, carried.len() + 2)?;
    Ok(outputs[2..].to_vec())
}

/// One step of [`repeat_while_any`].
pub(crate) struct Step<'s> {
    /// Which, from 0 on.
    pub(crate) number: ValueId,
    /// Where it is still to be done.
    pub(crate) open: ValueId,
    pub(crate) carried: &'s [ValueId],
    pub(crate) captured: &'s [ValueId],
}

/// A body that takes the operands.
fn inner(cx: &Context, name: &str, operands: &[ValueId]) -> (Context, Vec<ValueId>) {
    let mut body = Context::new(cx.b.child(name));
    let input = |(position, value): (usize, &ValueId)| {
        body.b.input(&format!("operand_{position}"), cx.b.ty(*value).clone(), InputRole::User)
    };
    let inputs = operands.iter().enumerate().map(input).collect();
    (body, inputs)
}

/// Row `at` (`i64`, without axes) of a table.
pub(crate) fn rows_at(cx: &mut Context, table: ValueId, at: ValueId) -> Result<ValueId, RuleError> {
    super::embedding::rows(cx, table, at)
}

/// A table with another row `at`.
pub(crate) fn with_row(
    cx: &mut Context,
    table: ValueId,
    at: ValueId,
    row: ValueId,
) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(row);
    let at = cx.b.expand(at, &shape)?;
    let mut coords = vec![Coord::Indirect(0)];
    coords.extend((0..shape.len()).map(|axis| Coord::Expr(Expr::axis(axis))));
    Ok(cx.b.scatter(table, row, &[at], coords, Combine::Set)?)
}
