//! Steps along the first axis, each of which starts from the state that the one before it left.

use crate::dtype::DType;
use crate::frontend::torch::rules::steps::{repeat, rows_at, with_row};
use crate::frontend::torch::rules::{Context, RuleError};
use crate::graph::{BinaryOp, TensorType, ValueId};
use crate::symbolic::Expr;

/// So many steps are written one after the other; more, and as many as data decides, are a loop.
const UNROLLED: i64 = 512;

/// What is gone through.
pub(super) struct Steps<'s> {
    pub(super) name: &'s str,
    pub(super) count: Expr,
    /// From the last row to the first one.
    pub(super) reverse: bool,
    /// `[count, ...]` each.
    pub(super) rows: &'s [ValueId],
    /// What every step needs.
    pub(super) captured: &'s [ValueId],
    /// What each step gives, beside its state.
    pub(super) output: TensorType,
}

/// One step.
pub(super) struct Now<'s> {
    /// Of the row (`i64`, without axes).
    pub(super) position: ValueId,
    pub(super) rows: Vec<ValueId>,
    pub(super) state: &'s [ValueId],
    pub(super) captured: &'s [ValueId],
}

/// What a step gives, and its state.
pub(super) type Stepped = Result<(ValueId, Vec<ValueId>), RuleError>;

impl Steps<'_> {
    /// The results of all steps in the order of the rows, and the state after the last one.
    pub(super) fn run(
        &self,
        cx: &mut Context,
        start: &[ValueId],
        step: &mut dyn FnMut(&mut Context, Now) -> Stepped,
    ) -> Result<(ValueId, Vec<ValueId>), RuleError> {
        match self.count.as_int() {
            Some(count) if count <= UNROLLED => self.unrolled(cx, count, start, step),
            Some(_) | None => self.looped(cx, start, step),
        }
    }

    fn room(&self, cx: &mut Context) -> ValueId {
        let shape = [std::slice::from_ref(&self.count), &self.output.shape].concat();
        cx.b.full(0i64, self.output.dtype, &shape)
    }

    fn unrolled(
        &self,
        cx: &mut Context,
        count: i64,
        start: &[ValueId],
        step: &mut dyn FnMut(&mut Context, Now) -> Stepped,
    ) -> Result<(ValueId, Vec<ValueId>), RuleError> {
        let (mut state, mut outputs) = (start.to_vec(), Vec::new());
        for k in 0..count {
            let at = if self.reverse { count - 1 - k } else { k };
            let position = cx.b.scalar(at, DType::I64);
            let rows = self.rows.iter().map(|rows| cx.b.pick(*rows, 0, &Expr::int(at)));
            let rows = rows.collect::<Result<Vec<_>, _>>()?;
            let now = Now { position, rows, state: &state, captured: self.captured };
            let (output, next) = step(cx, now)?;
            outputs.push(cx.b.unsqueeze(output, 0)?);
            state = next;
        }
        if self.reverse {
            outputs.reverse();
        }
        let all = if outputs.is_empty() { self.room(cx) } else { cx.b.cat(&outputs, 0)? };
        Ok((all, state))
    }

    fn looped(
        &self,
        cx: &mut Context,
        start: &[ValueId],
        step: &mut dyn FnMut(&mut Context, Now) -> Stepped,
    ) -> Result<(ValueId, Vec<ValueId>), RuleError> {
        let all = self.room(cx);
        let count = cx.b.index(self.count.clone(), &[]);
        let last = cx.with_number(BinaryOp::Sub, count, 1i64)?;
        let carried = [&[all], start].concat();
        let captured = [&[last], self.rows, self.captured].concat();
        let ends =
            repeat(cx, self.name, count, &carried, &captured, &mut |cx, number, carried, captured| {
                let position = if self.reverse { cx.sub(captured[0], number)? } else { number };
                let (rows, own) = captured[1..].split_at(self.rows.len());
                let rows =
                    rows.iter().map(|rows| rows_at(cx, *rows, position)).collect::<Result<Vec<_>, _>>()?;
                let now = Now { position, rows, state: &carried[1..], captured: own };
                let (output, next) = step(cx, now)?;
                let all = with_row(cx, carried[0], position, output)?;
                // What is carried on has the sizes that it had.
                let states = next.into_iter().zip(&carried[1..]);
                let states = states.map(|(next, old)| {
                    let shape = cx.b.shape(*old);
                    cx.required_shape(next, &shape)
                });
                let states = states.collect::<Result<Vec<_>, _>>()?;
                Ok([vec![all], states].concat())
            })?;
        Ok((ends[0], ends[1..].to_vec()))
    }
}
