//! How many steps a loop takes at most, where its condition says so.
//!
//! Scripted loops that may end early have no number of steps: their condition is that a counter is below a limit, and whatever else ends
//! them. Lists need room for all steps that there can be.

use crate::frontend::onnx::proto::tensor_proto::DataType;
use crate::frontend::onnx::proto::{GraphProto, NodeProto, TensorProto};
use crate::frontend::onnx::value::Val;
use crate::frontend::onnx::walk::{Onnx, domain};
use crate::symbolic::Expr;

/// Nodes that are looked at behind a condition or a counter.
const DEEPEST: usize = 16;

/// The most steps that the condition at the end of a body allows.
pub(super) fn most_steps(cx: &Onnx, body: &GraphProto, carried: &[Val]) -> Option<Expr> {
    let mut conditions = vec![(body.output.first()?.name(), DEEPEST)];
    while let Some((name, depth)) = conditions.pop() {
        let Some(node) = producer(body, name).filter(|_| depth > 0) else { continue };
        match (node.op_type(), node.input.as_slice()) {
            ("Identity" | "Cast", [own]) => conditions.push((own, depth - 1)),
            ("And", [a, b]) => conditions.extend([(a.as_str(), depth - 1), (b.as_str(), depth - 1)]),
            ("Less", [counter, limit]) | ("Greater", [limit, counter]) => {
                if let Some(most) = below(cx, body, carried, counter, limit) {
                    return Some(most);
                }
            }
            _ => {}
        }
    }
    None
}

/// The most steps of a loop that goes on while a counter is below a limit.
fn below(cx: &Onnx, body: &GraphProto, carried: &[Val], counter: &str, limit: &str) -> Option<Expr> {
    let (name, ahead) = counted(cx, body, counter)?;
    let position = body.input.iter().position(|info| info.name() == name)?;
    let start = match position.checked_sub(2) {
        None if position == 0 => Expr::int(0),
        None => return None,
        Some(own) => {
            let (before, step) = counted(cx, body, body.output.get(own + 1)?.name())?;
            let Val::Tensor(start) = carried.get(own)? else { return None };
            cx.b.element(*start).filter(|_| before == name && step == 1)?
        }
    };
    let left = &(&number(cx, body, limit)? - &start) - ahead;
    Some(&cx.b.larger(&left, &Expr::int(0)) + 1)
}

/// What an integer is counted from, and how far it is ahead of it.
fn counted<'g>(cx: &Onnx, body: &'g GraphProto, mut name: &'g str) -> Option<(&'g str, i64)> {
    let mut ahead = 0i64;
    for _ in 0..DEEPEST {
        let Some(node) = producer(body, name) else { return Some((name, ahead)) };
        let (own, more) = match (node.op_type(), node.input.as_slice()) {
            ("Identity", [own]) => (own, 0),
            ("Add", [own, more]) => match number(cx, body, more) {
                Some(more) => (own, more.as_int()?),
                None => (more, number(cx, body, own)?.as_int()?),
            },
            _ => return None,
        };
        (name, ahead) = (own, ahead.checked_add(more)?);
    }
    None
}

/// An integer that is a constant of the body, or known outside of it.
fn number(cx: &Onnx, body: &GraphProto, name: &str) -> Option<Expr> {
    if let Some(tensor) = body.initializer.iter().find(|tensor| tensor.name() == name) {
        return integer(tensor).map(Expr::int);
    }
    if let Some(node) = producer(body, name) {
        let [value] = node.attribute.as_slice() else { return None };
        return match (node.op_type(), value.name(), &value.t) {
            ("Constant", "value", Some(tensor)) => integer(tensor).map(Expr::int),
            ("Constant", "value_int", _) => Some(Expr::int(value.i())),
            _ => None,
        };
    }
    match cx.look_up(name)? {
        Val::Tensor(value) if body.input.iter().all(|info| info.name() != name) => cx.b.element(*value),
        Val::Absent | Val::Tensor(_) | Val::Sequence(_) | Val::Rows(_) | Val::Poison => None,
    }
}

fn producer<'g>(body: &'g GraphProto, name: &str) -> Option<&'g NodeProto> {
    let is_it = |node: &&NodeProto| node.output.iter().any(|own| own == name) && domain(node).is_empty();
    body.node.iter().find(is_it)
}

/// The only element of a tensor of 64-bit integers.
fn integer(tensor: &TensorProto) -> Option<i64> {
    if tensor.data_type() != DataType::Int64 as i32 || tensor.dims.iter().any(|size| *size != 1) {
        return None;
    }
    match tensor.int64_data.as_slice() {
        [one] => Some(*one),
        _ => Some(i64::from_le_bytes(tensor.raw_data.as_deref()?.try_into().ok()?)),
    }
}
