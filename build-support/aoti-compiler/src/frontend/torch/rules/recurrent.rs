//! Recurrent layers over sequences: LSTM, GRU and plain networks, and their single cells.
//!
//! The input's part of all gates of all steps is one matrix product; the rest of a layer is one operator.

use super::matmul::linear_of;
use super::registry::rules;
use super::support::{count, length};
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{Cell, Directions, Op, Operands, Recurrent, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.lstm.input" => |cx, a| layers(cx, a, Cell::Lstm),
    pure "aten.gru.input" => |cx, a| layers(cx, a, Cell::Gru),
    pure "aten.rnn_tanh.input" => |cx, a| layers(cx, a, Cell::Tanh),
    pure "aten.rnn_relu.input" => |cx, a| layers(cx, a, Cell::Relu),
    pure "aten.lstm_cell.default" => |cx, a| single(cx, a, Cell::Lstm),
    pure "aten.gru_cell.default" => |cx, a| single(cx, a, Cell::Gru),
    pure "aten.rnn_tanh_cell.default" => |cx, a| single(cx, a, Cell::Tanh),
    pure "aten.rnn_relu_cell.default" => |cx, a| single(cx, a, Cell::Relu),
    pure "aten.lstm.data" => packed,
    pure "aten.gru.data" => packed,
    pure "aten.rnn_tanh.data" => packed,
    pure "aten.rnn_relu.data" => packed,
}

fn packed(_: &mut Context, _: &Args) -> Rule {
    Err(RuleError::unsupported("packed sequences; pass padded sequences instead"))
}

/// Parameters of one layer in one direction.
#[derive(Clone, Copy)]
pub(crate) struct Weights {
    /// `[gates * hidden, features]`.
    pub(crate) input: ValueId,
    /// `[gates * hidden, hidden]`, or as many columns as the hidden state is projected to.
    pub(crate) hidden: ValueId,
    /// `[gates * hidden]`.
    pub(crate) input_bias: Option<ValueId>,
    /// `[gates * hidden]`.
    pub(crate) hidden_bias: Option<ValueId>,
    /// `[projected, hidden]`, of an LSTM that projects its hidden state.
    pub(crate) projection: Option<ValueId>,
}

/// Hidden state, and the memory of an LSTM: `[directions, batch, units]`.
#[derive(Clone, Copy)]
pub(crate) struct State {
    pub(crate) hidden: ValueId,
    pub(crate) memory: Option<ValueId>,
}

fn layers(cx: &mut Context, a: &Args, cell: Cell) -> Rule {
    let dropout = if a.bool_or("train", false)? { a.float_or("dropout", 0.0)? } else { 0.0 };
    let (layers, both) = (count(a.int("num_layers")?)?, a.bool_or("bidirectional", false)?);
    let directions = if both { Directions::Both } else { Directions::Forward };
    let each = if both { 2 } else { 1 };
    let start = states(a, cell)?;
    let weights = all_weights(a, cell, layers * each)?;
    let batch_first = a.bool_or("batch_first", false)?;
    let mut x = a.tensor("input")?;
    let (mut hidden, mut memory) = (Vec::new(), Vec::new());
    for (layer, own) in (0..).zip(weights.chunks_exact(each)) {
        let (first, size) = (Expr::int(layer) * length(each), Expr::int(length(each)));
        let mut part = |value: ValueId| cx.b.slice(value, 0, &first, &size, 1);
        let own_start =
            State { hidden: part(start.hidden)?, memory: start.memory.map(&mut part).transpose()? };
        let results = one_layer(cx, (cell, directions, batch_first), x, own_start, own)?;
        x = results[0];
        hidden.push(results[1]);
        memory.extend(results.get(2).copied());
        if layer + 1 < length(layers) {
            x = cx.dropped_out(x, dropout)?;
        }
    }
    let mut results = vec![Some(x), Some(cx.b.cat(&hidden, 0)?)];
    if !memory.is_empty() {
        results.push(Some(cx.b.cat(&memory, 0)?));
    }
    Ok(Outputs::Many(results))
}

/// The states of all layers at the start.
fn states(a: &Args, cell: Cell) -> Result<State, RuleError> {
    if !cell.has_memory() {
        return Ok(State { hidden: a.tensor("hx")?, memory: None });
    }
    match a.tensors("hx")?.as_slice() {
        [hidden, memory] => Ok(State { hidden: *hidden, memory: Some(*memory) }),
        _ => Err(RuleError::Malformed("an LSTM has two states".to_owned())),
    }
}

fn all_weights(a: &Args, cell: Cell, number: usize) -> Result<Vec<Weights>, RuleError> {
    let params = a.tensors("params")?;
    let biases = a.bool_or("has_biases", true)?;
    let plain = if biases { 4 } else { 2 };
    let each = params.len() / number.max(1);
    let projects = matches!(cell, Cell::Lstm) && each == plain + 1;
    if params.len() != each * number || !(each == plain || projects) {
        return Err(RuleError::Malformed(format!("{} parameters for {number} layers", params.len())));
    }
    Ok(params
        .chunks_exact(each)
        .map(|own| Weights {
            input: own[0],
            hidden: own[1],
            input_bias: biases.then(|| own[2]),
            hidden_bias: biases.then(|| own[3]),
            projection: projects.then(|| own[each - 1]),
        })
        .collect())
}

/// A layer in all its directions: all hidden states, the last ones, and the last memory of an LSTM.
pub(crate) fn one_layer(
    cx: &mut Context,
    (cell, directions, batch_first): (Cell, Directions, bool),
    x: ValueId,
    start: State,
    weights: &[Weights],
) -> Result<Vec<ValueId>, RuleError> {
    let rows = |cx: &mut Context, part: &dyn Fn(&Weights) -> Option<ValueId>| {
        let parts: Option<Vec<ValueId>> = weights.iter().map(part).collect();
        parts.map(|parts| cx.b.cat(&parts, 0)).transpose()
    };
    let input = rows(cx, &|own| Some(own.input))?.unwrap_or(weights[0].input);
    let input_bias = rows(cx, &|own| own.input_bias)?;
    let gates = linear_of(cx, x, input, input_bias)?;
    let stacked = |cx: &mut Context, part: &dyn Fn(&Weights) -> Option<ValueId>| {
        let parts: Option<Vec<ValueId>> = weights.iter().map(part).collect();
        let Some(parts) = parts else { return Ok(None) };
        let parts = parts.into_iter().map(|part| cx.b.unsqueeze(part, 0)).collect::<Result<Vec<_>, _>>()?;
        cx.b.cat(&parts, 0).map(Some)
    };
    let weight = stacked(cx, &|own| Some(own.hidden))?.unwrap_or(weights[0].hidden);
    let (bias, projection) = (stacked(cx, &|own| own.hidden_bias)?, stacked(cx, &|own| own.projection)?);
    let number = |cx: &Context, value: ValueId, axis: usize| {
        let size = cx.b.shape(value).get(axis).and_then(Expr::as_int);
        size.ok_or_else(|| RuleError::unsupported("hidden units of a number that is not known"))
    };
    let has_start = !is_zero(cx, start.hidden) || start.memory.is_some_and(|memory| !is_zero(cx, memory));
    let own = Recurrent {
        cell,
        directions,
        hidden: number(cx, weight, 1)?.checked_div(cell.gates()).unwrap_or(0),
        projected: projection.map(|projection| number(cx, projection, 1)).transpose()?,
        batch_first,
        has_bias: bias.is_some(),
        has_start,
    };
    let (hidden, memory) = (has_start.then_some(start.hidden), start.memory.filter(|_| has_start));
    Ok(cx.b.recurrent(own, Operands { gates, weight, bias, projection, hidden, memory })?)
}

/// Whether all elements are known to be zero.
fn is_zero(cx: &Context, value: ValueId) -> bool {
    let Some(node) = cx.b.producer(value) else { return false };
    match (&node.op, node.inputs.as_slice()) {
        (Op::Full(number), _) => number.to_f64() == 0.0,
        (Op::View(_), [whole]) => is_zero(cx, *whole),
        _ => false,
    }
}

fn single(cx: &mut Context, a: &Args, cell: Cell) -> Rule {
    let weights = Weights {
        input: a.tensor("w_ih")?,
        hidden: a.tensor("w_hh")?,
        input_bias: a.opt_tensor("b_ih")?,
        hidden_bias: a.opt_tensor("b_hh")?,
        projection: None,
    };
    let start = states(a, cell)?;
    let mut leading = |value: ValueId| cx.b.unsqueeze(value, 0);
    let start = State { hidden: leading(start.hidden)?, memory: start.memory.map(&mut leading).transpose()? };
    let x = leading(a.tensor("input")?)?;
    let results = one_layer(cx, (cell, Directions::Forward, false), x, start, &[weights])?;
    let mut ends = results[1..].iter().map(|end| cx.b.pick(*end, 0, &Expr::int(0)));
    Ok(match (ends.next().transpose()?, ends.next().transpose()?) {
        (Some(hidden), Some(memory)) => Outputs::Many(vec![Some(hidden), Some(memory)]),
        (hidden, _) => hidden.unwrap_or(results[0]).into(),
    })
}
