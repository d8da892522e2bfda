//! Loops whose most steps are known as their steps, one after the other.

use super::{UNROLLED_NODES, loop_types, tensor};
use crate::dtype::DType;
use crate::frontend::onnx::ops::branch::chosen;
use crate::frontend::onnx::proto::GraphProto;
use crate::frontend::onnx::value::Val;
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{BinaryOp, IntBinary, ValueId};
use crate::symbolic::Expr;

/// Steps that are written one after the other where they have to be.
pub(super) const MOST_UNROLLED: i64 = 4096;
/// The same where data decide after which of them the loop ends.
const MOST_CHOSEN: i64 = 256;

/// A loop of a known number of steps at most.
pub(super) struct Loop<'g> {
    pub(super) body: &'g GraphProto,
    pub(super) count: i64,
    pub(super) goes_on: ValueId,
    pub(super) carried: &'g [Val],
}

type Results = Result<Option<Vec<Val>>, RuleError>;

impl Loop<'_> {
    /// The steps, if they are few or have to be steps, and it is known how many there are.
    pub(super) fn unrolled(&self, cx: &mut Onnx) -> Results {
        let Some(first) = truth(cx, self.goes_on) else { return Ok(None) };
        if !first || self.count == 0 {
            let lists = self.body.output.len().saturating_sub(1 + self.carried.len());
            return Ok((!first && lists == 0).then(|| self.carried.to_vec()));
        }
        let needs = self.carried.iter().any(|value| !matches!(value, Val::Tensor(_)));
        let nodes = i64::try_from(self.body.node.len()).unwrap_or(i64::MAX).saturating_mul(self.count);
        if !(needs || nodes <= UNROLLED_NODES || changes_shape(cx, self.body, self.carried)?) {
            return Ok(None);
        }
        self.steps(cx, false)
    }

    /// All steps that there may be, of which the results of the last one that is taken are chosen.
    pub(super) fn chosen(&self, cx: &mut Onnx) -> Results {
        if !(1..=MOST_CHOSEN).contains(&self.count) || truth(cx, self.goes_on) != Some(true) {
            return Ok(None);
        }
        self.steps(cx, true)
    }

    fn steps(&self, cx: &mut Onnx, may_choose: bool) -> Results {
        let mut values = self.carried.to_vec();
        let mut lists: Vec<Vec<ValueId>> = Vec::new();
        let mut goes_on = self.goes_on;
        // Whether steps are taken, from the first one of which data say so.
        let mut open: Vec<ValueId> = Vec::new();
        for step in 0..self.count {
            let number = cx.b.scalar(step, DType::I64);
            let given = [vec![number.into(), goes_on.into()], values.clone()].concat();
            let mut results = cx.inlined_body(self.body, given)?.into_iter();
            let Some(Val::Tensor(next)) = results.next() else {
                return Ok(Some(vec![Val::Poison; self.body.output.len().saturating_sub(1)]));
            };
            let next = cx.b.cast(next, DType::Bool);
            goes_on = cx.b.reshape(next, &[])?;
            let after: Vec<Val> = results.by_ref().take(self.carried.len()).collect();
            values = match open.last() {
                None => after,
                Some(is_taken) => {
                    goes_on = cx.b.binary(IntBinary::And, *is_taken, goes_on)?;
                    let pairs = after.iter().zip(&values);
                    pairs
                        .map(|(after, before)| chosen(cx, *is_taken, after, before))
                        .collect::<Result<_, _>>()?
                }
            };
            for (position, value) in results.enumerate() {
                if lists.len() <= position {
                    lists.push(Vec::new());
                }
                let Val::Tensor(value) = value else { continue };
                lists[position].push(cx.b.unsqueeze(value, 0)?);
            }
            match truth(cx, goes_on) {
                Some(false) => break,
                Some(true) => {}
                None if step + 1 == self.count => {}
                None if may_choose => open.push(goes_on),
                // How often it runs is data after all.
                None => return Ok(None),
            }
        }
        for rows in lists {
            values.push(listed(cx, &rows, &open)?.into());
        }
        Ok(Some(values))
    }
}

fn truth(cx: &Onnx, value: ValueId) -> Option<bool> {
    cx.b.element(value).and_then(|known| known.as_int()).map(|known| known != 0)
}

/// The rows of the steps that are taken: of the last ones, data say whether they are.
fn listed(cx: &mut Onnx, rows: &[ValueId], open: &[ValueId]) -> Result<ValueId, RuleError> {
    let all = cx.b.cat(rows, 0)?;
    if open.is_empty() {
        return Ok(all);
    }
    let mut count = cx.b.scalar((rows.len() - open.len()) as i64, DType::I64);
    for is_taken in open {
        let is_taken = cx.b.cast(*is_taken, DType::I64);
        count = cx.b.binary(BinaryOp::Add, count, is_taken)?;
    }
    let most = cx.b.shape(all)[0].clone();
    let count = cx.read_size(count, Some(&most))?;
    Ok(cx.b.slice(all, 0, &Expr::int(0), &count, 1)?)
}

/// Whether a value that is carried has another shape after a step.
pub(super) fn changes_shape(cx: &mut Onnx, body: &GraphProto, carried: &[Val]) -> Result<bool, RuleError> {
    let carried = carried.iter().map(tensor).collect::<Result<Vec<_>, _>>()?;
    let types = loop_types(cx, &carried);
    let findings = cx.findings.len();
    let found = cx.body(body, &types);
    cx.findings.truncate(findings);
    let Ok(Some(found)) = found else { return Ok(true) };
    let outputs = found.graph.outputs.iter().skip(1).map(|output| found.graph.ty(output.value));
    Ok(outputs.zip(&types[2..]).any(|(after, before)| after != before))
}

#[cfg(test)]
mod tests {
    use crate::frontend::onnx::testing::{Model, int};
    use crate::interpret::Tensor;

    /// Appends the sum of all numbers to them while it is below a limit, four times at most; and a list of these sums.
    fn summed(limit: f32) -> [Vec<f64>; 2] {
        let body = Model::new(13)
            .input("i", Tensor::from_i64(&[], &[0]))
            .input("c", Tensor::from_bool(&[], &[true]))
            .input("all", Tensor::from_f32(&[0], &[]))
            .node("ReduceSum", &["all"], &["sum"], &[])
            .node("Concat", &["all", "sum"], &["more"], &[int("axis", 0)])
            .node("Less", &["sum", "limit"], &["again"], &[])
            .body("body", &["again", "more", "sum"]);
        let found = Model::new(13)
            .fixed_input("limit", Tensor::from_f32(&[1], &[limit]))
            .constant("steps", &Tensor::from_i64(&[], &[4]))
            .constant("start", &Tensor::from_f32(&[2], &[1.0, 1.0]))
            .node("Loop", &["steps", "", "start"], &["all", "sums"], &[body])
            .run(&["all", "sums"]);
        [found[0].to_f64(), found[1].to_f64()]
    }

    /// Halves a number while it is above a limit, five times at most as a counter says; and a list of what it was.
    fn halved(limit: f32, room: i64) -> Vec<f64> {
        let body = Model::new(13)
            .input("i", Tensor::from_i64(&[], &[0]))
            .input("c", Tensor::from_bool(&[], &[true]))
            .input("k", Tensor::from_i64(&[], &[0]))
            .input("x", Tensor::from_f32(&[], &[0.0]))
            .constant("one", &Tensor::from_i64(&[], &[1]))
            .constant("most", &Tensor::from_i64(&[], &[6]))
            .constant("half", &Tensor::from_f32(&[], &[0.5]))
            .node("Mul", &["x", "half"], &["less"], &[])
            .node("Add", &["k", "one"], &["next"], &[])
            .node("Less", &["next", "most"], &["is_left"], &[])
            .node("Greater", &["less", "limit"], &["is_above"], &[])
            .node("And", &["is_left", "is_above"], &["again"], &[])
            .body("body", &["again", "next", "less", "less"]);
        let model = Model::new(13)
            .fixed_input("limit", Tensor::from_f32(&[], &[limit]))
            .fixed_input("x", Tensor::from_f32(&[], &[32.0]))
            .constant("first", &Tensor::from_i64(&[], &[1]))
            .constant("endless", &Tensor::from_i64(&[], &[room]))
            .node("Loop", &["endless", "", "first", "x"], &["", "", "y"], &[body]);
        model.numbers()
    }

    #[test]
    fn a_counter_says_how_many_steps_there_are_at_most() {
        assert_eq!(halved(0.0, i64::MAX), [16.0, 8.0, 4.0, 2.0, 1.0]);
        assert_eq!(halved(5.0, i64::MAX), [16.0, 8.0, 4.0]);
        assert_eq!(halved(0.0, 2), [16.0, 8.0]);
    }

    #[test]
    fn data_end_a_loop_in_which_shapes_change() {
        assert_eq!(summed(0.0), [vec![1.0, 1.0, 2.0], vec![2.0]]);
        assert_eq!(summed(3.0), [vec![1.0, 1.0, 2.0, 4.0], vec![2.0, 4.0]]);
        assert_eq!(summed(100.0), [vec![1.0, 1.0, 2.0, 4.0, 8.0, 16.0], vec![2.0, 4.0, 8.0, 16.0]]);
    }
}
