//! Layers that PyTorch has too, as one operator: kernels of whole layers exist for it.

use super::functions::Function;
use super::{Cell, Form, Operands, Results};
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::RuleError;
use crate::frontend::torch::rules::recurrent::{State, Weights, one_layer};
use crate::graph::{self, Directions, ValueId, WIDEST};
use crate::symbolic::Expr;

/// The cell of the operator, if it says all that the node does.
pub(super) fn cell(cx: &Onnx, operands: &Operands, forms: &[Form]) -> Option<graph::Cell> {
    let [form, others @ ..] = forms else { return None };
    let width = cx.b.shape(operands.hidden_weight)[2].as_int()?;
    let is_plain = form.clip.is_none() && !form.couples && others.iter().all(|other| other == form);
    let is_whole = operands.lengths.is_none() && operands.peepholes.is_none();
    if !is_plain || !is_whole || !(1..=WIDEST).contains(&width) {
        return None;
    }
    match (form.cell, form.functions.as_slice()) {
        (Cell::Plain, [Function::Tanh]) => Some(graph::Cell::Tanh),
        (Cell::Plain, [Function::Relu]) => Some(graph::Cell::Relu),
        (Cell::Gru, [Function::Sigmoid, Function::Tanh]) if form.resets_product => Some(graph::Cell::Gru),
        (Cell::Lstm, [Function::Sigmoid, Function::Tanh, Function::Tanh]) => Some(graph::Cell::Lstm),
        _ => None,
    }
}

/// Which of a node's gates each of the operator's is.
fn gate_order(cell: graph::Cell) -> &'static [i64] {
    match cell {
        // Input, output, forget and candidate are input, forget, candidate and output.
        graph::Cell::Lstm => &[0, 2, 3, 1],
        // Update, reset and candidate are reset, update and candidate.
        graph::Cell::Gru => &[1, 0, 2],
        graph::Cell::Tanh | graph::Cell::Relu => &[0],
    }
}

/// A layer in all its directions.
pub(super) fn layer(
    cx: &mut Onnx,
    operands: &Operands,
    cell: graph::Cell,
    directions: Directions,
) -> Result<Results, RuleError> {
    let weights = (0..directions.count()).map(|direction| weights(cx, operands, cell, &Expr::int(direction)));
    let weights = weights.collect::<Result<Vec<_>, _>>()?;
    let start = State { hidden: operands.states[0], memory: operands.states.get(1).copied() };
    let results = one_layer(cx, (cell, directions, operands.by_batch), operands.x, start, &weights)?;
    let width = cx.b.shape(operands.hidden_weight)[2].clone();
    // Directions lie side by side in the last axis.
    let mut all = cx.split_axis(results[0], 2, &[Expr::int(directions.count()), width])?;
    if !operands.by_batch {
        all = cx.b.transpose(all, 1, 2)?;
    }
    Ok(Results { all, ends: results[1..].to_vec() })
}

/// The parameters of a direction.
fn weights(
    cx: &mut Onnx,
    operands: &Operands,
    cell: graph::Cell,
    direction: &Expr,
) -> Result<Weights, RuleError> {
    let rows = cx.b.shape(operands.hidden_weight)[1].clone();
    let width = cx.b.shape(operands.hidden_weight)[2].clone();
    // As many rows as all gates have, from `first` on, in the order of the operator.
    let mut gates = |table: ValueId, first: &Expr| -> Result<ValueId, RuleError> {
        let own = cx.b.pick(table, 0, direction)?;
        let parts = gate_order(cell).iter();
        let parts = parts.map(|gate| cx.b.slice(own, 0, &(first + &(&width * *gate)), &width, 1));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        Ok(cx.b.cat(&parts, 0)?)
    };
    let none = Expr::int(0);
    Ok(Weights {
        input: gates(operands.weight, &none)?,
        hidden: gates(operands.hidden_weight, &none)?,
        input_bias: operands.bias.map(|bias| gates(bias, &none)).transpose()?,
        hidden_bias: operands.bias.map(|bias| gates(bias, &rows)).transpose()?,
        projection: None,
    })
}
