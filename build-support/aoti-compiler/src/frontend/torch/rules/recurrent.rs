//! Recurrent layers over sequences: LSTM, GRU and plain networks, and their single cells.
//!
//! The input's part of all gates of all steps is one matrix product; only the hidden state's part is one a step.

use super::matmul::linear_of;
use super::registry::rules;
use super::steps::{repeat, rows_at, with_row};
use super::support::{count, length};
use super::{Args, Context, Outputs, RuleError};
use crate::graph::{BinaryOp, FloatUnary, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.lstm.input" => |cx, a| layers(cx, a, Cell::Lstm),
    pure "aten.gru.input" => |cx, a| layers(cx, a, Cell::Gru),
    pure "aten.rnn_tanh.input" => |cx, a| layers(cx, a, Cell::Plain(FloatUnary::Tanh)),
    pure "aten.rnn_relu.input" => |cx, a| layers(cx, a, Cell::Relu),
    pure "aten.lstm_cell.default" => |cx, a| single(cx, a, Cell::Lstm),
    pure "aten.gru_cell.default" => |cx, a| single(cx, a, Cell::Gru),
    pure "aten.rnn_tanh_cell.default" => |cx, a| single(cx, a, Cell::Plain(FloatUnary::Tanh)),
    pure "aten.rnn_relu_cell.default" => |cx, a| single(cx, a, Cell::Relu),
    pure "aten.lstm.data" => packed,
    pure "aten.gru.data" => packed,
    pure "aten.rnn_tanh.data" => packed,
    pure "aten.rnn_relu.data" => packed,
}

fn packed(_: &mut Context, _: &Args) -> Rule {
    Err(RuleError::unsupported("packed sequences; pass padded sequences instead"))
}

/// What happens at one step.
#[derive(Clone, Copy)]
enum Cell {
    Lstm,
    Gru,
    Plain(FloatUnary),
    Relu,
}

/// Parameters of one layer in one direction.
struct Weights {
    input: ValueId,
    hidden: ValueId,
    input_bias: Option<ValueId>,
    hidden_bias: Option<ValueId>,
    /// `[projected, hidden]`, of an LSTM that projects its hidden state.
    projection: Option<ValueId>,
}

/// Hidden state, and the cell state of an LSTM.
#[derive(Clone, Copy)]
struct State {
    hidden: ValueId,
    cell: Option<ValueId>,
}

fn layers(cx: &mut Context, a: &Args, cell: Cell) -> Rule {
    let dropout = if a.bool_or("train", false)? { a.float_or("dropout", 0.0)? } else { 0.0 };
    let (layers, both) = (count(a.int("num_layers")?)?, a.bool_or("bidirectional", false)?);
    let directions = if both { 2 } else { 1 };
    let starts = initial_states(cx, a, cell, layers * directions)?;
    let weights = all_weights(a, cell, layers * directions)?;
    let batch_first = a.bool_or("batch_first", false)?;
    let mut x = a.tensor("input")?;
    if batch_first {
        x = cx.b.transpose(x, 0, 1)?;
    }
    let mut ends = Vec::new();
    for layer in 0..layers {
        let mut outputs = Vec::new();
        for direction in 0..directions {
            let k = layer * directions + direction;
            let (output, end) = sequence(cx, cell, x, starts[k], &weights[k], direction == 1)?;
            outputs.push(output);
            ends.push(end);
        }
        x = cx.b.cat(&outputs, 2)?;
        if layer + 1 < layers {
            x = cx.dropped_out(x, dropout)?;
        }
    }
    if batch_first {
        x = cx.b.transpose(x, 0, 1)?;
    }
    let hidden: Vec<ValueId> = ends.iter().map(|state| state.hidden).collect();
    let mut results = vec![Some(x), Some(stacked(cx, &hidden)?)];
    let cells: Vec<ValueId> = ends.iter().filter_map(|state| state.cell).collect();
    if !cells.is_empty() {
        results.push(Some(stacked(cx, &cells)?));
    }
    Ok(Outputs::Many(results))
}

fn stacked(cx: &mut Context, values: &[ValueId]) -> Result<ValueId, RuleError> {
    let rows = values.iter().map(|value| cx.b.unsqueeze(*value, 0)).collect::<Result<Vec<_>, _>>()?;
    Ok(cx.b.cat(&rows, 0)?)
}

fn initial_states(cx: &mut Context, a: &Args, cell: Cell, number: usize) -> Result<Vec<State>, RuleError> {
    let (hidden, cells) = match cell {
        Cell::Lstm => match a.tensors("hx")?.as_slice() {
            [hidden, cells] => (*hidden, Some(*cells)),
            _ => return Err(RuleError::Malformed("an LSTM has two states".to_owned())),
        },
        Cell::Gru | Cell::Plain(_) | Cell::Relu => (a.tensor("hx")?, None),
    };
    (0..length(number))
        .map(|k| {
            let mut part = |value: ValueId| cx.b.pick(value, 0, &Expr::int(k));
            Ok(State { hidden: part(hidden)?, cell: cells.map(&mut part).transpose()? })
        })
        .collect()
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

/// So many steps of a layer are written one after the other, where they fuse and read the layer's parameters as they were
/// packed; more, and as many as data decides, are a loop, which takes no longer to compile for more of them.
const UNROLLED: i64 = 512;

/// One layer in one direction over `[steps, batch, features]`: all hidden states and the last state.
fn sequence(
    cx: &mut Context,
    cell: Cell,
    x: ValueId,
    start: State,
    weights: &Weights,
    reverse: bool,
) -> Result<(ValueId, State), RuleError> {
    let steps = cx.b.shape(x)[0].clone();
    let projected = linear_of(cx, x, weights.input, weights.input_bias)?;
    match steps.as_int() {
        Some(steps) if steps <= UNROLLED => unrolled(cx, cell, (projected, steps), start, weights, reverse),
        Some(_) | None => looped(cx, cell, (projected, &steps), start, weights, reverse),
    }
}

fn unrolled(
    cx: &mut Context,
    cell: Cell,
    (projected, steps): (ValueId, i64),
    start: State,
    weights: &Weights,
    reverse: bool,
) -> Result<(ValueId, State), RuleError> {
    let mut state = start;
    let mut outputs = Vec::new();
    for k in 0..steps {
        let position = if reverse { steps - 1 - k } else { k };
        let gates = cx.b.pick(projected, 0, &Expr::int(position))?;
        state = step(cx, cell, gates, state, weights)?;
        outputs.push(cx.b.unsqueeze(state.hidden, 0)?);
    }
    if reverse {
        outputs.reverse();
    }
    let all = if outputs.is_empty() { blank(cx, &Expr::int(0), start) } else { cx.b.cat(&outputs, 0)? };
    Ok((all, state))
}

fn looped(
    cx: &mut Context,
    cell: Cell,
    (projected, steps): (ValueId, &Expr),
    start: State,
    weights: &Weights,
    reverse: bool,
) -> Result<(ValueId, State), RuleError> {
    let all = blank(cx, steps, start);
    let count = cx.b.index(steps.clone(), &[]);
    let last = cx.with_number(BinaryOp::Sub, count, 1i64)?;
    let carried: Vec<ValueId> = [all, start.hidden].into_iter().chain(start.cell).collect();
    let parameters = [Some(weights.hidden), weights.hidden_bias, weights.projection];
    let captured: Vec<ValueId> =
        [last, projected].into_iter().chain(parameters.into_iter().flatten()).collect();
    let ends = repeat(cx, "recurrent", count, &carried, &captured, &mut |cx, number, carried, captured| {
        let mut given = captured[2..].iter().copied();
        let own = Weights {
            hidden: given.next().unwrap_or(weights.hidden),
            hidden_bias: weights.hidden_bias.and_then(|_| given.next()),
            projection: weights.projection.and_then(|_| given.next()),
            ..*weights
        };
        let at = if reverse { cx.sub(captured[0], number)? } else { number };
        let gates = rows_at(cx, captured[1], at)?;
        let state = State { hidden: carried[1], cell: carried.get(2).copied() };
        let next = step(cx, cell, gates, state, &own)?;
        let all = with_row(cx, carried[0], at, next.hidden)?;
        Ok([all, next.hidden].into_iter().chain(next.cell).collect())
    })?;
    Ok((ends[0], State { hidden: ends[1], cell: ends.get(2).copied() }))
}

/// Room for the hidden states of all steps.
fn blank(cx: &mut Context, steps: &Expr, state: State) -> ValueId {
    let ty = cx.b.ty(state.hidden).clone();
    let shape = [std::slice::from_ref(steps), &ty.shape].concat();
    cx.b.full(0i64, ty.dtype, &shape)
}

/// Equal parts of the last axis.
fn gate_parts(cx: &mut Context, gates: ValueId, number: i64) -> Result<Vec<ValueId>, RuleError> {
    let last = cx.b.rank(gates) - 1;
    let size = cx.b.shape(gates)[last].floor_div(&Expr::int(number));
    (0..number).map(|k| Ok(cx.b.slice(gates, last, &(&size * k), &size, 1)?)).collect()
}

/// The next state from the input's part of the gates.
fn step(
    cx: &mut Context,
    cell: Cell,
    gates: ValueId,
    state: State,
    weights: &Weights,
) -> Result<State, RuleError> {
    let recurrent = linear_of(cx, state.hidden, weights.hidden, weights.hidden_bias)?;
    match cell {
        Cell::Lstm => {
            let old =
                state.cell.ok_or_else(|| RuleError::Malformed("the cell state is missing".to_owned()))?;
            let gates = cx.add(gates, recurrent)?;
            lstm_step(cx, gates, old, weights.projection)
        }
        Cell::Gru => gru_step(cx, gates, recurrent, state.hidden),
        Cell::Plain(function) => {
            let sum = cx.add(gates, recurrent)?;
            Ok(State { hidden: cx.unary(function, sum), cell: None })
        }
        Cell::Relu => {
            let sum = cx.add(gates, recurrent)?;
            Ok(State { hidden: cx.with_number(BinaryOp::Maximum, sum, 0i64)?, cell: None })
        }
    }
}

fn lstm_step(
    cx: &mut Context,
    gates: ValueId,
    old: ValueId,
    projection: Option<ValueId>,
) -> Result<State, RuleError> {
    let parts = gate_parts(cx, gates, 4)?;
    let [input, forget, output] =
        [parts[0], parts[1], parts[3]].map(|gate| cx.unary(FloatUnary::Sigmoid, gate));
    let candidate = cx.unary(FloatUnary::Tanh, parts[2]);
    let (kept, new) = (cx.mul(forget, old)?, cx.mul(input, candidate)?);
    let cell = cx.add(kept, new)?;
    let squashed = cx.unary(FloatUnary::Tanh, cell);
    let mut hidden = cx.mul(output, squashed)?;
    if let Some(projection) = projection {
        hidden = linear_of(cx, hidden, projection, None)?;
    }
    Ok(State { hidden, cell: Some(cell) })
}

fn gru_step(cx: &mut Context, gates: ValueId, recurrent: ValueId, old: ValueId) -> Result<State, RuleError> {
    let (x, h) = (gate_parts(cx, gates, 3)?, gate_parts(cx, recurrent, 3)?);
    let reset = cx.add(x[0], h[0])?;
    let reset = cx.unary(FloatUnary::Sigmoid, reset);
    let update = cx.add(x[1], h[1])?;
    let update = cx.unary(FloatUnary::Sigmoid, update);
    let remembered = cx.mul(reset, h[2])?;
    let candidate = cx.add(x[2], remembered)?;
    let candidate = cx.unary(FloatUnary::Tanh, candidate);
    let gap = cx.sub(old, candidate)?;
    let kept = cx.mul(gap, update)?;
    Ok(State { hidden: cx.add(kept, candidate)?, cell: None })
}

fn single(cx: &mut Context, a: &Args, cell: Cell) -> Rule {
    let weights = Weights {
        input: a.tensor("w_ih")?,
        hidden: a.tensor("w_hh")?,
        input_bias: a.opt_tensor("b_ih")?,
        hidden_bias: a.opt_tensor("b_hh")?,
        projection: None,
    };
    let state = match cell {
        Cell::Lstm => match a.tensors("hx")?.as_slice() {
            [hidden, cells] => State { hidden: *hidden, cell: Some(*cells) },
            _ => return Err(RuleError::Malformed("an LSTM has two states".to_owned())),
        },
        Cell::Gru | Cell::Plain(_) | Cell::Relu => State { hidden: a.tensor("hx")?, cell: None },
    };
    let gates = linear_of(cx, a.tensor("input")?, weights.input, weights.input_bias)?;
    let next = step(cx, cell, gates, state, &weights)?;
    Ok(match next.cell {
        Some(cell) => Outputs::Many(vec![Some(next.hidden), Some(cell)]),
        None => next.hidden.into(),
    })
}
