//! Loops that front ends and passes make: a body that runs as often as numbers say, from a state that the step before left, over the
//! rows of tensors.

use super::{Builder, Built, ShapeError};
use crate::dtype::DType;
use crate::graph::{BinaryOp, InputRole, OutputRole, ReduceOp, Relation, TensorType, ValueId};
use crate::symbolic::Expr;

/// So many steps are written one after the other, where they fuse and read parameters as they were packed; more, and as many as
/// data decides, are a loop, which takes no longer to compile for more of them.
const UNROLLED: i64 = 512;

/// What builds a graph: a builder, or something around one, which has another of its kind for each body.
pub trait Builds: Sized {
    /// Why it cannot build something.
    type Error: From<ShapeError>;

    /// The builder.
    fn builder(&mut self) -> &mut Builder;

    /// Another one, around the builder of a body.
    fn of_body(body: Builder) -> Self;

    /// The builder, with what was built.
    fn into_builder(self) -> Builder;
}

impl Builds for Builder {
    type Error = ShapeError;

    fn builder(&mut self) -> &mut Builder {
        self
    }

    fn of_body(body: Builder) -> Builder {
        body
    }

    fn into_builder(self) -> Builder {
        self
    }
}

/// Values, unless they cannot be built.
pub type Values<C> = Result<Vec<ValueId>, <C as Builds>::Error>;
/// A body: from the number of the step (`i64`, without axes), the carried values and the captured ones to the next carried values, of
/// the same types.
pub type Body<'f, C> = dyn FnMut(&mut C, ValueId, &[ValueId], &[ValueId]) -> Values<C> + 'f;
/// Whether there is a next step: from what the body gets to a boolean.
pub type Condition<'f> = dyn Fn(&mut Builder, ValueId, &[ValueId], &[ValueId]) -> Built + 'f;

/// Runs `body` as long as `condition` holds; gives the number of steps, then the carried values.
pub fn repeat_while<C: Builds>(
    cx: &mut C,
    name: &str,
    carried: &[ValueId],
    captured: &[ValueId],
    condition: &Condition<'_>,
    body: &mut Body<'_, C>,
) -> Values<C> {
    let b = cx.builder();
    let first = b.scalar(0i64, DType::I64);
    let operands = [&[first], carried, captured].concat();
    let (mut verdict, inputs) = b.body(&format!("{name}_condition"), &operands);
    let (own, rest) = inputs[1..].split_at(carried.len());
    let goes_on = condition(&mut verdict, inputs[0], own, rest)?;
    verdict.output("goes_on", goes_on, OutputRole::User);

    let (step, inputs) = b.body(name, &operands);
    let mut step = C::of_body(step);
    let (own, rest) = inputs[1..].split_at(carried.len());
    let results = body(&mut step, inputs[0], own, rest)?;
    let mut step = step.into_builder();
    let next = step.binary_scalar(BinaryOp::Add, inputs[0], 1i64)?;
    for (position, value) in std::iter::once(next).chain(results).enumerate() {
        step.output(&format!("carried_{position}"), value, OutputRole::User);
    }
    Ok(b.while_loop(verdict.finish(), step.finish(), &operands, carried.len() + 1)?)
}

/// Runs `body` for each number from 0 to `count` (`i64`, without axes); gives the carried values.
pub fn repeat<C: Builds>(
    cx: &mut C,
    name: &str,
    count: ValueId,
    carried: &[ValueId],
    captured: &[ValueId],
    body: &mut Body<'_, C>,
) -> Values<C> {
    let captured = [captured, &[count]].concat();
    let is_left = |b: &mut Builder, number, _: &[ValueId], captured: &[ValueId]| {
        b.binary(Relation::Lt, number, captured[captured.len() - 1])
    };
    let mut ends =
        repeat_while(cx, name, carried, &captured, &is_left, &mut |cx, number, carried, captured| {
            body(cx, number, carried, &captured[..captured.len() - 1])
        })?;
    ends.remove(0);
    Ok(ends)
}

/// One step of [`repeat_while_any`].
pub struct Step<'s> {
    /// Which, from 0 on.
    pub number: ValueId,
    /// Where it is still to be done.
    pub open: ValueId,
    /// What the step before left.
    pub carried: &'s [ValueId],
    /// What every step sees.
    pub captured: &'s [ValueId],
}

/// The body of [`repeat_while_any`].
pub type BodyWhileAny<'f, C> = dyn FnMut(&mut C, Step<'_>) -> Values<C> + 'f;

/// Runs `body` for the numbers from 0 on, as long as any element of `open` (`bool`) is true; it gives the next of it before the
/// next carried values.
pub fn repeat_while_any<C: Builds>(
    cx: &mut C,
    name: &str,
    open: ValueId,
    carried: &[ValueId],
    captured: &[ValueId],
    body: &mut BodyWhileAny<'_, C>,
) -> Values<C> {
    let is_any_open = |b: &mut Builder, _, carried: &[ValueId], _: &[ValueId]| {
        let axes: Vec<usize> = (0..b.rank(carried[0])).collect();
        if axes.is_empty() { Ok(carried[0]) } else { b.reduce(ReduceOp::Any, carried[0], &axes, false) }
    };
    let start = [&[open], carried].concat();
    let mut ends =
        repeat_while(cx, name, &start, captured, &is_any_open, &mut |cx, number, carried, captured| {
            body(cx, Step { number, open: carried[0], carried: &carried[1..], captured })
        })?;
    ends.drain(..2);
    Ok(ends)
}

/// Steps along the first axis of tensors, each of which starts from the state that the one before it left.
pub struct Steps<'s> {
    /// Of the body, where they are a loop.
    pub name: &'s str,
    /// How many there are.
    pub count: Expr,
    /// From the last row to the first one.
    pub reverse: bool,
    /// `[count, ...]` each.
    pub tables: &'s [ValueId],
    /// What every step sees.
    pub captured: &'s [ValueId],
    /// What each step gives, beside its state.
    pub outputs: Vec<TensorType>,
}

/// What a step is given.
pub struct Now<'s> {
    /// Of the rows (`i64`, without axes).
    pub position: ValueId,
    /// One of each table.
    pub rows: Vec<ValueId>,
    /// What the step before left.
    pub state: &'s [ValueId],
    /// What every step sees.
    pub captured: &'s [ValueId],
}

/// What a step gives, and the state that it leaves; of all steps, their outputs as tables in the order of the rows, and the last state.
pub type Stepped<C> = Result<(Vec<ValueId>, Vec<ValueId>), <C as Builds>::Error>;
/// One step.
pub type StepBody<'f, C> = dyn FnMut(&mut C, Now<'_>) -> Stepped<C> + 'f;

impl Steps<'_> {
    /// All steps: one after the other if they are few, and else a loop.
    pub fn run<C: Builds>(&self, cx: &mut C, start: &[ValueId], step: &mut StepBody<'_, C>) -> Stepped<C> {
        match self.count.as_int() {
            Some(count) if count <= UNROLLED => self.unrolled(cx, count, start, step),
            Some(_) | None => self.looped(cx, start, step),
        }
    }

    /// Room for the outputs of all steps.
    fn blank(&self, b: &mut Builder) -> Vec<ValueId> {
        let room = |ty: &TensorType| {
            let shape = [std::slice::from_ref(&self.count), &ty.shape].concat();
            b.full(0i64, ty.dtype, &shape)
        };
        self.outputs.iter().map(room).collect()
    }

    fn unrolled<C: Builds>(
        &self,
        cx: &mut C,
        count: i64,
        start: &[ValueId],
        step: &mut StepBody<'_, C>,
    ) -> Stepped<C> {
        if count == 0 {
            return Ok((self.blank(cx.builder()), start.to_vec()));
        }
        let mut state = start.to_vec();
        let mut lists = vec![Vec::new(); self.outputs.len()];
        for k in 0..count {
            let at = if self.reverse { count - 1 - k } else { k };
            let b = cx.builder();
            let position = b.scalar(at, DType::I64);
            let rows = self.tables.iter().map(|table| b.pick(*table, 0, &Expr::int(at)));
            let rows = rows.collect::<Built<Vec<_>>>()?;
            let (outputs, next) = step(cx, Now { position, rows, state: &state, captured: self.captured })?;
            for (list, output) in lists.iter_mut().zip(outputs) {
                list.push(cx.builder().unsqueeze(output, 0)?);
            }
            state = next;
        }
        if self.reverse {
            lists.iter_mut().for_each(|list| list.reverse());
        }
        let tables = lists.iter().map(|list| cx.builder().cat(list, 0)).collect::<Built<Vec<_>>>()?;
        Ok((tables, state))
    }

    /// The steps as a loop, however many there are.
    pub fn looped<C: Builds>(&self, cx: &mut C, start: &[ValueId], step: &mut StepBody<'_, C>) -> Stepped<C> {
        let b = cx.builder();
        let blank = self.blank(b);
        let count = b.index(self.count.clone(), &[]);
        let last = self.reverse.then(|| b.binary_scalar(BinaryOp::Sub, count, 1i64)).transpose()?;
        let last = last.as_slice();
        let carried = [start, &blank].concat();
        let captured = [last, self.tables, self.captured].concat();
        let ends =
            repeat(cx, self.name, count, &carried, &captured, &mut |cx, number, carried, captured| {
                let (state, lists) = carried.split_at(start.len());
                let (last, given) = captured.split_at(last.len());
                let (tables, captured) = given.split_at(self.tables.len());
                let b = cx.builder();
                let position = match last {
                    [last, ..] => b.binary(BinaryOp::Sub, *last, number)?,
                    [] => number,
                };
                let rows = tables.iter().map(|table| b.rows(*table, position)).collect::<Built<Vec<_>>>()?;
                let (outputs, next) = step(cx, Now { position, rows, state, captured })?;
                let b = cx.builder();
                // What is carried on has the sizes that it had.
                let states = next.into_iter().zip(state).map(|(next, old)| b.as_sized(next, *old));
                let mut values = states.collect::<Built<Vec<_>>>()?;
                for (list, output) in lists.iter().zip(outputs) {
                    values.push(b.with_row(*list, position, output)?);
                }
                Ok(values)
            })?;
        let (state, lists) = ends.split_at(start.len());
        Ok((lists.to_vec(), state.to_vec()))
    }
}

impl Builder {
    /// Starts a body that takes the operands: its builder, and its inputs.
    fn body(&self, name: &str, operands: &[ValueId]) -> (Builder, Vec<ValueId>) {
        let mut body = self.child(name);
        let input = |(position, value): (usize, &ValueId)| {
            body.input(&format!("operand_{position}"), self.ty(*value).clone(), InputRole::User)
        };
        let inputs = operands.iter().enumerate().map(input).collect();
        (body, inputs)
    }

    /// A value as one of the sizes of another, which is required of it.
    fn as_sized(&mut self, x: ValueId, other: ValueId) -> Built {
        let (own, shape) = (self.shape(x), self.shape(other));
        for (left, right) in own.iter().zip(&shape) {
            self.require_same(left, right)?;
        }
        self.view(x, &shape, (0..own.len()).map(Expr::axis).collect())
    }
}
