//! Branches.
//!
//! A branch whose condition is known is that branch. Where the results of both have the same types, and nothing in them decides
//! sizes by data, they become bodies of which a run takes one. Else both are computed, and the condition chooses among results.

use super::super::body::Body;
use super::super::call::{Call, unsupported};
use super::super::proto::GraphProto;
use super::super::value::Val;
use super::super::walk::Onnx;
use super::control::spliced;
use super::{Rule, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::{Context, RuleError};
use crate::graph::{Graph, InputRole, OutputRole, Scalar, TensorType, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "If" => branch,
}

const LENGTHS: &str = "branches of which one gives a sequence or an optional and the other one something else, where the condition is data";

fn branch(cx: &mut Onnx, c: &Call) -> Rule {
    let condition = c.tensor(0)?;
    let (then, otherwise) = (c.graph("then_branch")?, c.graph("else_branch")?);
    let condition = cx.b.cast(condition, DType::Bool);
    if let Some(known) = cx.b.element(condition).and_then(|known| known.as_int()) {
        return cx.inlined_body(if known != 0 { then } else { otherwise }, Vec::new());
    }
    let condition = cx.b.reshape(condition, &[])?;
    let findings = cx.findings.len();
    if let (Ok(Some(then)), Ok(Some(otherwise))) = (cx.body(then, &[]), cx.body(otherwise, &[]))
        && then.results == otherwise.results
        && types(&then.graph).eq(types(&otherwise.graph))
    {
        return one_of(cx, condition, then, otherwise);
    }
    cx.findings.truncate(findings);
    both(cx, condition, then, otherwise)
}

fn types(graph: &Graph) -> impl Iterator<Item = &TensorType> {
    graph.outputs.iter().map(|output| graph.ty(output.value))
}

/// The branches as bodies, one of which runs.
fn one_of(cx: &mut Onnx, condition: ValueId, then: Body, otherwise: Body) -> Rule {
    let operands = [then.captured.as_slice(), &otherwise.captured].concat();
    let behind = otherwise.captured.len();
    let before = then.captured.len();
    let results = then.results;
    let [then, otherwise] = [(then.graph, 0, before), (otherwise.graph, before, behind)]
        .map(|(graph, skipped, count)| with_interface(cx, &graph, &operands, skipped, count));
    let mut tensors = cx.b.cond(condition, then?, otherwise?, &operands)?.into_iter();
    Ok(results.iter().map(|form| form.filled(&mut tensors)).collect())
}

/// A graph that takes all operands and uses `count` of them behind `skipped`.
fn with_interface(
    cx: &Onnx,
    graph: &Graph,
    operands: &[ValueId],
    skipped: usize,
    count: usize,
) -> Result<Graph, RuleError> {
    let mut body = Context::new(cx.b.child(&graph.name));
    let inputs: Vec<ValueId> = operands
        .iter()
        .enumerate()
        .map(|(position, value)| {
            body.b.input(&format!("operand_{position}"), cx.b.ty(*value).clone(), InputRole::User)
        })
        .collect();
    let results = spliced(&mut body, graph, &inputs[skipped..skipped + count])?;
    for (position, value) in results.into_iter().enumerate() {
        body.b.output(&format!("result_{position}"), value, OutputRole::User);
    }
    Ok(body.b.finish())
}

/// The results of the branch that the condition chooses, where both are computed.
fn both(cx: &mut Onnx, condition: ValueId, then: &GraphProto, otherwise: &GraphProto) -> Rule {
    let then = cx.inlined_body(then, Vec::new())?;
    let otherwise = cx.inlined_body(otherwise, Vec::new())?;
    if then.len() != otherwise.len() {
        return Err(unsupported(LENGTHS));
    }
    then.iter().zip(&otherwise).map(|(then, otherwise)| chosen(cx, condition, then, otherwise)).collect()
}

/// One value or another, as the condition says.
pub(super) fn chosen(
    cx: &mut Onnx,
    condition: ValueId,
    then: &Val,
    otherwise: &Val,
) -> Result<Val, RuleError> {
    match (then, otherwise) {
        (Val::Poison, _) | (_, Val::Poison) => Ok(Val::Poison),
        (Val::Absent, Val::Absent) => Ok(Val::Absent),
        (Val::Tensor(then), Val::Tensor(otherwise)) => {
            Ok(chosen_tensor(cx, condition, *then, *otherwise)?.into())
        }
        (Val::Sequence(then), Val::Sequence(otherwise)) if then.len() == otherwise.len() => {
            let pairs = then.iter().zip(otherwise);
            let all: Result<_, _> =
                pairs.map(|(then, otherwise)| chosen(cx, condition, then, otherwise)).collect();
            Ok(Val::Sequence(all?))
        }
        (Val::Sequence(_) | Val::Rows(_), Val::Sequence(_) | Val::Rows(_)) => {
            let (then, otherwise) = (cx.rows(then)?, cx.rows(otherwise)?);
            // One without elements has the type of the other.
            let none = then.or(otherwise).map(|table| cx.b.slice(table, 0, &Expr::int(0), &Expr::int(0), 1));
            let none = none.ok_or_else(|| unsupported(LENGTHS))??;
            let table = chosen_tensor(cx, condition, then.unwrap_or(none), otherwise.unwrap_or(none))?;
            Ok(Val::Rows(table))
        }
        (Val::Absent | Val::Tensor(_) | Val::Sequence(_) | Val::Rows(_), _) => Err(unsupported(LENGTHS)),
    }
}

/// One tensor or another. Sizes in which they differ are read when the condition is known.
fn chosen_tensor(
    cx: &mut Onnx,
    condition: ValueId,
    then: ValueId,
    otherwise: ValueId,
) -> Result<ValueId, RuleError> {
    let (ty, other) = (cx.b.ty(then).clone(), cx.b.ty(otherwise).clone());
    if ty.dtype != other.dtype || ty.shape.len() != other.shape.len() {
        return Err(unsupported(format!(
            "branches of which one gives a value of {ty} and the other one of {other}, where the condition is data"
        )));
    }
    let mut shape = Vec::new();
    for (size, other) in ty.shape.iter().zip(&other.shape) {
        shape.push(chosen_size(cx, condition, size, other)?);
    }
    let coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
    // Elements beyond the end of one are never chosen.
    let beyond = Scalar::Int(0).cast(ty.dtype);
    let then = cx.b.padded_view(then, &shape, coords.clone(), beyond)?;
    let otherwise = cx.b.padded_view(otherwise, &shape, coords, beyond)?;
    Ok(cx.b.select(condition, then, otherwise)?)
}

fn chosen_size(cx: &mut Onnx, condition: ValueId, then: &Expr, otherwise: &Expr) -> Result<Expr, RuleError> {
    if then == otherwise {
        return Ok(then.clone());
    }
    let sizes = [then, otherwise].map(|size| cx.b.index(size.clone(), &[]));
    let size = cx.b.select(condition, sizes[0], sizes[1])?;
    match cx.b.element(size) {
        Some(known) => Ok(known),
        None => cx.read_size(size, Some(&then.maximum(otherwise))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, int};
    use crate::interpret::Tensor;

    /// The numbers and sizes of what a branch gives; the condition is whether any of `x` is above 2.
    fn taken(x: &[f32], then: &Model, otherwise: &Model) -> (Vec<f64>, Vec<usize>) {
        let bodies = [then.body("then_branch", &["own"]), otherwise.body("else_branch", &["own"])];
        let model = Model::new(13)
            .input("x", Tensor::from_f32(&[x.len()], x))
            .constant("two", &Tensor::from_f32(&[], &[2.0]))
            .node("ReduceMax", &["x"], &["most"], &[int("keepdims", 0)])
            .node("Greater", &["most", "two"], &["is_large"], &[])
            .node("If", &["is_large"], &["y"], &bodies);
        let found = model.run(&["y"]);
        (found[0].to_f64(), found[0].sizes().to_vec())
    }

    #[test]
    fn branches_give_results_of_different_sizes() {
        let twice = Model::new(13).node("Concat", &["x", "x"], &["own"], &[int("axis", 0)]);
        let same = Model::new(13).node("Neg", &["x"], &["own"], &[]);
        assert_eq!(taken(&[1.0, 3.0], &twice, &same), (vec![1.0, 3.0, 1.0, 3.0], vec![4]));
        assert_eq!(taken(&[1.0, 2.0], &twice, &same), (vec![-1.0, -2.0], vec![2]));
        assert_eq!(taken(&[1.0, 3.0], &same, &twice), (vec![-1.0, -3.0], vec![2]));
    }

    #[test]
    fn data_decide_sizes_inside_of_a_branch() {
        let positive = Model::new(13).node("Greater", &["x", "two"], &["is_above"], &[]).node(
            "Compress",
            &["x", "is_above"],
            &["own"],
            &[],
        );
        let empty = Model::new(13).constant("own", &Tensor::from_f32(&[0], &[]));
        assert_eq!(taken(&[3.0, 1.0, 4.0], &positive, &empty), (vec![3.0, 4.0], vec![2]));
        assert_eq!(taken(&[2.0, 1.0, 0.0], &positive, &empty), (vec![], vec![0]));
        assert_eq!(taken(&[2.0, 5.0], &empty, &positive), (vec![], vec![0]));
        // Of the same sizes after all.
        let counted = positive.node("Shape", &["own"], &["count"], &[]);
        let bodies = |model: &Model, name: &str| model.body(name, &["count"]);
        let none = Model::new(13).constant("count", &Tensor::from_i64(&[1], &[-1]));
        let model = Model::new(13)
            .input("x", Tensor::from_f32(&[3], &[5.0, 1.0, 7.0]))
            .input("is_wanted", Tensor::from_bool(&[], &[true]))
            .constant("two", &Tensor::from_f32(&[], &[2.0]))
            .node(
                "If",
                &["is_wanted"],
                &["y"],
                &[bodies(&counted, "then_branch"), bodies(&none, "else_branch")],
            );
        assert_eq!(model.numbers(), [2.0]);
    }

    #[test]
    fn branches_of_other_ranks_are_refused() {
        let other = Model::new(13).constant("axes", &Tensor::from_i64(&[1], &[0])).node(
            "Unsqueeze",
            &["x", "axes"],
            &["own"],
            &[],
        );
        let same = Model::new(13).node("Neg", &["x"], &["own"], &[]);
        let model = Model::new(13)
            .input("x", Tensor::from_f32(&[2], &[1.0, 2.0]))
            .input("c", Tensor::from_bool(&[], &[true]))
            .node(
                "If",
                &["c"],
                &["y"],
                &[other.body("then_branch", &["own"]), same.body("else_branch", &["own"])],
            );
        let message = format!("{:?}", model.import(&["y"]).unwrap_err());
        assert!(message.contains("branches of which one gives"), "{message}");
    }
}
