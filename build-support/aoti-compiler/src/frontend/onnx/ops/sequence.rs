//! Sequences and optionals.
//!
//! Where the length of a sequence is known when the model is compiled, nothing is left of it in the graph. Else it is the rows of a
//! tensor (`Val::Rows`).

use super::super::call::{Call, malformed, unsupported};
use super::super::value::Val;
use super::super::walk::Onnx;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::onnx::call::axis_of;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::gather::index_select;
use crate::graph::{BinaryOp, IntBinary, Relation, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "SequenceEmpty" => |_, _| Ok(vec![Val::Sequence(Vec::new())]),
    "SequenceConstruct" => |_, c| Ok(vec![Val::Sequence(c.inputs.clone())]),
    "SequenceInsert" => insert,
    "SequenceErase" => erase,
    "SequenceAt" => at,
    "SequenceLength" => length,
    "SplitToSequence" => split,
    "ConcatFromSequence" => concat,
    "SequenceMap" => map,
    "Optional" => |_, c| Ok(vec![c.input(0)]),
    "OptionalHasElement" => has_element,
    "OptionalGetElement" => get_element,
}

/// A position in a sequence of so many, negative ones counted from the end.
fn place(cx: &Onnx, position: Option<ValueId>, count: usize, default: i64) -> Result<usize, RuleError> {
    let position = match position {
        Some(position) => *cx.fixed(position, "a position in a sequence")?.first().unwrap_or(&default),
        None => default,
    };
    let count = i64::try_from(count).expect("a list in memory");
    let from_start = if position < 0 { position + count } else { position };
    usize::try_from(from_start)
        .map_err(|_| malformed(format!("position {position} is outside of the sequence")))
}

impl Onnx<'_> {
    /// A sequence as the rows of a tensor, if it has elements; they have to be of one type.
    pub(super) fn rows(&mut self, sequence: &Val) -> Result<Option<ValueId>, RuleError> {
        let all = match sequence {
            Val::Rows(table) => return Ok(Some(*table)),
            Val::Sequence(all) => all,
            Val::Absent | Val::Tensor(_) | Val::Poison => return Err(malformed("an operand is no sequence")),
        };
        let mut rows = Vec::new();
        for value in all {
            let Val::Tensor(value) = value else {
                return Err(unsupported("a sequence of sequences whose length or position is data"));
            };
            rows.push(self.b.unsqueeze(*value, 0)?);
        }
        if rows.iter().any(|row| self.b.ty(*row) != self.b.ty(rows[0])) {
            return Err(unsupported(
                "elements of several shapes in a sequence whose length or position is data",
            ));
        }
        if rows.is_empty() { Ok(None) } else { Ok(Some(self.b.cat(&rows, 0)?)) }
    }

    /// Rows one after the other along an axis of theirs.
    pub(super) fn joined_rows(&mut self, table: ValueId, axis: usize) -> Result<ValueId, RuleError> {
        let mut shape = self.b.shape(table);
        let count = shape.remove(0);
        shape[axis] = &count * &shape[axis];
        let table = self.move_axis(table, 0, axis)?;
        Ok(self.b.reshape(table, &shape)?)
    }

    /// A position among so many, counted from the start, which has to be one of `most`.
    fn position(&mut self, position: ValueId, count: &Expr, most: &Expr) -> Result<ValueId, RuleError> {
        let position = self.b.cast(position, DType::I64);
        let position = self.b.reshape(position, &[])?;
        let (zero, count) = (self.b.scalar(0i64, DType::I64), self.b.index(count.clone(), &[]));
        let is_negative = self.b.binary(Relation::Lt, position, zero)?;
        let from_end = self.b.binary(BinaryOp::Add, position, count)?;
        let position = self.b.select(is_negative, from_end, position)?;
        let most = self.b.index(most.clone(), &[]);
        let is_behind_start = self.b.binary(Relation::Ge, position, zero)?;
        let is_before_end = self.b.binary(Relation::Lt, position, most)?;
        let is_inside = self.b.binary(IntBinary::And, is_behind_start, is_before_end)?;
        self.b.assert(is_inside, "the position is outside of the sequence")?;
        Ok(position)
    }

    /// Whether the position of a sequence is known, and where it is.
    fn is_open(&self, c: &Call, position: Option<ValueId>) -> bool {
        let is_data =
            position.is_some_and(|position| self.b.element(position).and_then(|at| at.as_int()).is_none());
        is_data || matches!(c.input(0), Val::Rows(_))
    }
}

/// The rows of a table at other places: row `k` is the one that `place` says.
fn placed(
    cx: &mut Onnx,
    table: ValueId,
    count: &Expr,
    place: impl FnOnce(&mut Onnx, ValueId) -> Result<ValueId, RuleError>,
) -> Rule {
    let own = cx.b.index(Expr::axis(0), std::slice::from_ref(count));
    let place = place(cx, own)?;
    Ok(vec![Val::Rows(index_select(cx, table, 0, place)?)])
}

/// A row at a position of a table.
fn insert_row(cx: &mut Onnx, c: &Call, position: Option<ValueId>) -> Rule {
    let row = cx.b.unsqueeze(c.tensor(1)?, 0)?;
    let Some(table) = cx.rows(&c.input(0))? else { return Ok(vec![Val::Rows(row)]) };
    let count = cx.b.shape(table)[0].clone();
    let all = cx.b.cat(&[table, row], 0)?;
    let Some(position) = position else { return Ok(vec![Val::Rows(all)]) };
    let more = &count + 1;
    let position = cx.position(position, &count, &more)?;
    placed(cx, all, &more, |cx, own| {
        let before = cx.b.binary_scalar(BinaryOp::Sub, own, 1i64)?;
        let last = cx.b.index(count, &[]);
        let is_it = cx.binary(Relation::Eq, own, position)?;
        let behind = cx.b.select(is_it, last, before)?;
        let is_before = cx.binary(Relation::Lt, own, position)?;
        Ok(cx.b.select(is_before, own, behind)?)
    })
}

/// A table without the row at a position.
fn erase_row(cx: &mut Onnx, c: &Call, position: Option<ValueId>) -> Rule {
    let table = cx.rows(&c.input(0))?.ok_or_else(|| malformed("the position is outside of the sequence"))?;
    let count = cx.b.shape(table)[0].clone();
    let fewer = cx.b.larger(&(&count - 1), &Expr::int(0));
    let position = match position {
        Some(position) => position,
        None => cx.b.scalar(-1i64, DType::I64),
    };
    let position = cx.position(position, &count, &count)?;
    placed(cx, table, &fewer, |cx, own| {
        let next = cx.b.binary_scalar(BinaryOp::Add, own, 1i64)?;
        let is_before = cx.binary(Relation::Lt, own, position)?;
        Ok(cx.b.select(is_before, own, next)?)
    })
}

fn insert(cx: &mut Onnx, c: &Call) -> Rule {
    let position = c.opt_tensor(2)?;
    if cx.is_open(c, position) {
        return insert_row(cx, c, position);
    }
    let mut all = c.sequence(0)?;
    let position = match c.opt_tensor(2)? {
        Some(position) => place(cx, Some(position), all.len(), 0)?,
        None => all.len(),
    };
    if position > all.len() {
        return Err(malformed("the position is outside of the sequence"));
    }
    all.insert(position, c.input(1));
    Ok(vec![Val::Sequence(all)])
}

fn erase(cx: &mut Onnx, c: &Call) -> Rule {
    let position = c.opt_tensor(1)?;
    if cx.is_open(c, position) {
        return erase_row(cx, c, position);
    }
    let mut all = c.sequence(0)?;
    let position = place(cx, position, all.len(), -1)?;
    if position >= all.len() {
        return Err(malformed("the position is outside of the sequence"));
    }
    all.remove(position);
    Ok(vec![Val::Sequence(all)])
}

/// Where the position is data, all elements have one shape.
fn at(cx: &mut Onnx, c: &Call) -> Rule {
    let position = c.tensor(1)?;
    if !cx.is_open(c, Some(position)) {
        let all = c.sequence(0)?;
        let position = place(cx, Some(position), all.len(), 0)?;
        let value = all.get(position).cloned();
        return Ok(vec![value.ok_or_else(|| malformed("the position is outside of the sequence"))?]);
    }
    let table = cx.rows(&c.input(0))?.ok_or_else(|| malformed("the position is outside of the sequence"))?;
    let count = cx.b.shape(table)[0].clone();
    let position = cx.position(position, &count, &count)?;
    let row = index_select(cx, table, 0, position)?;
    one(cx.b.squeeze(row, &[0])?)
}

fn length(cx: &mut Onnx, c: &Call) -> Rule {
    if let Val::Rows(table) = c.input(0) {
        let count = cx.b.shape(table)[0].clone();
        return one(cx.b.index(count, &[]));
    }
    let count = i64::try_from(c.sequence(0)?.len()).expect("a list in memory");
    one(cx.b.scalar(count, DType::I64))
}

/// Parts of one size, of given sizes, or single elements.
fn split(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let axis = axis_of(c.int("axis", 0)?, cx.b.rank(x))?;
    let total = cx.b.shape(x)[axis].as_int();
    let parts = c.opt_tensor(1)?;
    let Some(total) = total else {
        let size = parts.map(|split| cx.fixed(split, "sizes of parts")).transpose()?;
        if size.is_some_and(|size| size != [1]) || parts.is_some_and(|split| cx.b.rank(split) > 0) {
            return Err(unsupported(
                "a sequence of parts of a length that is not known, of more than one each",
            ));
        }
        let mut table = cx.move_axis(x, axis, 0)?;
        if parts.is_some() || c.flag("keepdims", true)? {
            table = cx.b.unsqueeze(table, axis + 1)?;
        }
        return Ok(vec![Val::Rows(table)]);
    };
    let (sizes, keeps) = match parts {
        None => (vec![1; usize::try_from(total).unwrap_or(0)], c.flag("keepdims", true)?),
        Some(split) => {
            let is_number = cx.b.rank(split) == 0;
            let sizes = cx.fixed(split, "sizes of parts")?;
            match sizes.as_slice() {
                [size] if is_number && *size > 0 => {
                    let whole = vec![*size; usize::try_from(total / size).unwrap_or(0)];
                    let rest = (total % size > 0).then_some(total % size);
                    (whole.into_iter().chain(rest).collect(), true)
                }
                _ => (sizes, true),
            }
        }
    };
    let (mut parts, mut start) = (Vec::new(), 0);
    for size in sizes {
        let mut part = cx.b.slice(x, axis, &Expr::int(start), &Expr::int(size), 1)?;
        if !keeps {
            part = cx.b.squeeze(part, &[axis])?;
        }
        parts.push(part.into());
        start += size;
    }
    Ok(vec![Val::Sequence(parts)])
}

fn concat(cx: &mut Onnx, c: &Call) -> Rule {
    let is_new = c.flag("new_axis", false)?;
    if let Val::Rows(table) = c.input(0) {
        let rank = cx.b.rank(table) - usize::from(!is_new);
        let axis = axis_of(c.int("axis", 0)?, rank)?;
        return one(if is_new { cx.move_axis(table, 0, axis)? } else { cx.joined_rows(table, axis)? });
    }
    let mut values = Vec::new();
    for value in c.sequence(0)? {
        let Val::Tensor(value) = value else { return Err(malformed("an element is no tensor")) };
        values.push(value);
    }
    let first = *values.first().ok_or_else(|| unsupported("what a sequence without elements joins to"))?;
    let axis = axis_of(c.int("axis", 0)?, cx.b.rank(first) + usize::from(is_new))?;
    if is_new {
        for value in &mut values {
            *value = cx.b.unsqueeze(*value, axis)?;
        }
    }
    one(cx.b.cat(&values, axis)?)
}

/// A body for each element of a sequence; other sequences give it their own, tensors are the same for all.
fn map(cx: &mut Onnx, c: &Call) -> Rule {
    let body = c.graph("body")?;
    let count = c.sequence(0)?.len();
    let mut results = vec![Vec::new(); body.output.len()];
    for position in 0..count {
        let element = |value: &Val| match value {
            Val::Sequence(all) => all.get(position).cloned().unwrap_or(Val::Absent),
            Val::Absent | Val::Tensor(_) | Val::Rows(_) | Val::Poison => value.clone(),
        };
        let given = c.inputs.iter().map(element).collect();
        for (all, one) in results.iter_mut().zip(cx.inlined_body(body, given)?) {
            all.push(one);
        }
    }
    Ok(results.into_iter().map(Val::Sequence).collect())
}

fn has_element(cx: &mut Onnx, c: &Call) -> Rule {
    let is_there = !matches!(c.input(0), Val::Absent);
    one(cx.b.scalar(is_there, DType::Bool))
}

fn get_element(_: &mut Onnx, c: &Call) -> Rule {
    match c.input(0) {
        Val::Absent => Err(malformed("the optional has no element")),
        value @ (Val::Tensor(_) | Val::Sequence(_) | Val::Rows(_) | Val::Poison) => Ok(vec![value]),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, int};
    use crate::interpret::{Tensor, evaluate};

    /// A model of three sequences of two numbers each, with a position among them that is data.
    fn with_position(position: i64) -> Model {
        Model::new(13)
            .fixed_input("x", Tensor::from_f32(&[3, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]))
            .fixed_input("new", Tensor::from_f32(&[2], &[8.0, 9.0]))
            .fixed_input("position", Tensor::from_i64(&[], &[position]))
            .node("SplitToSequence", &["x"], &["all"], &[int("keepdims", 0)])
    }

    fn refused_in_run(model: &Model) -> String {
        evaluate(&model.import(&["y"]).unwrap().graph, model.feeds()).unwrap_err().to_string()
    }

    #[test]
    fn positions_in_sequences_are_data() {
        let insert =
            |position: i64| {
                with_position(position)
                    .node("SequenceInsert", &["all", "new", "position"], &["more"], &[])
                    .node("ConcatFromSequence", &["more"], &["y"], &[int("axis", 0)])
            };
        assert_eq!(insert(0).numbers(), [8.0, 9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        assert_eq!(insert(-1).numbers(), [1.0, 2.0, 3.0, 4.0, 8.0, 9.0, 5.0, 6.0]);
        assert_eq!(insert(3).numbers(), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 9.0]);
        assert!(refused_in_run(&insert(4)).contains("outside of the sequence"));
        let erase = |position: i64| {
            with_position(position).node("SequenceErase", &["all", "position"], &["fewer"], &[]).node(
                "ConcatFromSequence",
                &["fewer"],
                &["y"],
                &[int("axis", 1), int("new_axis", 1)],
            )
        };
        assert_eq!(erase(0).numbers(), [3.0, 5.0, 4.0, 6.0]);
        assert_eq!(erase(-2).numbers(), [1.0, 5.0, 2.0, 6.0]);
        assert!(refused_in_run(&erase(3)).contains("outside of the sequence"));
        let at =
            |position: i64| with_position(position).node("SequenceAt", &["all", "position"], &["y"], &[]);
        assert_eq!(at(2).numbers(), [5.0, 6.0]);
        assert_eq!(at(-3).numbers(), [1.0, 2.0]);
        assert!(refused_in_run(&at(-4)).contains("outside of the sequence"));
    }

    #[test]
    fn sequences_are_as_long_as_a_size_says() {
        let x = Tensor::from_f32(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let split = |keeps: i64| {
            let sizes = [("", 2), ("n", 0)];
            let model = Model::new(13).sized_input("x", x.clone(), &sizes);
            model.node("SplitToSequence", &["x"], &["all"], &[int("axis", 1), int("keepdims", keeps)])
        };
        assert_eq!(split(0).of_one("SequenceLength", &["all"], &[]), [3.0]);
        assert_eq!(
            split(1).of_one("ConcatFromSequence", &["all"], &[int("axis", 0)]),
            [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
        );
        assert_eq!(
            split(0).of_one("ConcatFromSequence", &["all"], &[int("axis", 1), int("new_axis", 1)]),
            x.to_f64()
        );
        let last = split(0).constant("last", &Tensor::from_i64(&[], &[-1]));
        assert_eq!(last.of_one("SequenceAt", &["all", "last"], &[]), [3.0, 6.0]);
        let more = last.node("SequenceInsert", &["all", "z", "last"], &["more"], &[]);
        let more = more.node("SequenceErase", &["more"], &["fewer"], &[]);
        let more = more.constant("z", &Tensor::from_f32(&[2], &[0.0, 0.0]));
        assert_eq!(
            more.of_one("ConcatFromSequence", &["fewer"], &[int("axis", 0)]),
            [1.0, 4.0, 2.0, 5.0, 0.0, 0.0]
        );
        let message = format!("{:?}", split(0).import(&["all"]).unwrap_err());
        assert!(message.contains("a sequence whose length is not known"), "{message}");
    }
}
