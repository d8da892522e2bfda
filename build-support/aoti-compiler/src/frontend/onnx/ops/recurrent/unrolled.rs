//! Recurrent layers step by step.
//!
//! The input's part of all gates of all steps is one matrix product; only the hidden state's part is one a step.

use super::{Cell, Form, Operands, Results};
use crate::frontend::onnx::call::unsupported;
use crate::frontend::onnx::walk::Onnx;
use crate::frontend::torch::rules::{Context, Formula, RuleError};
use crate::graph::steps::{Now, Stepped, Steps};
use crate::graph::{BinaryOp, Directions, Relation, ValueId};
use crate::symbolic::Expr;

/// A layer in all its directions.
pub(super) fn layer(
    cx: &mut Onnx,
    operands: &Operands,
    forms: &[Form],
    directions: Directions,
) -> Result<Results, RuleError> {
    let operands = operands.wide(cx)?;
    let (mut outputs, mut ends) = (Vec::new(), vec![Vec::new(); operands.states.len()]);
    for (direction, (form, reverse)) in (0..).zip(forms.iter().zip(directions.reversed())) {
        let (output, end) = sequence(cx, &operands, form, &Expr::int(direction), *reverse)?;
        outputs.push(cx.b.unsqueeze(output, 1)?);
        for (all, value) in ends.iter_mut().zip(end) {
            all.push(cx.b.unsqueeze(value, 0)?);
        }
    }
    let mut all = cx.b.cat(&outputs, 1)?;
    if operands.by_batch {
        all = cx.b.permute(all, &[2, 0, 1, 3])?;
    }
    let ends = ends.iter().map(|end| Ok(cx.b.cat(end, 0)?)).collect::<Result<Vec<_>, RuleError>>()?;
    Ok(Results { all, ends })
}

impl Operands {
    /// The same in the type that they are computed in, the steps first.
    fn wide(&self, cx: &mut Onnx) -> Result<Operands, RuleError> {
        let x = if self.by_batch { cx.b.transpose(self.x, 0, 1)? } else { self.x };
        Ok(Operands {
            x: cx.wide(x),
            by_batch: self.by_batch,
            weight: cx.wide(self.weight),
            hidden_weight: cx.wide(self.hidden_weight),
            bias: self.bias.map(|bias| cx.wide(bias)),
            lengths: self.lengths,
            states: self.states.iter().map(|state| cx.wide(*state)).collect(),
            peepholes: self.peepholes.map(|weights| cx.wide(weights)),
        })
    }
}

/// What a step needs of one direction's parameters, at fixed places in a list.
struct Parameters {
    /// `[hidden, gates * hidden]`.
    hidden_weight: ValueId,
    /// Of what the hidden state is multiplied to, where it cannot be added to the input's part.
    hidden_bias: Option<ValueId>,
    peepholes: Option<ValueId>,
    lengths: Option<ValueId>,
}

impl Parameters {
    fn list(&self) -> Vec<ValueId> {
        let others = [self.hidden_bias, self.peepholes, self.lengths];
        std::iter::once(self.hidden_weight).chain(others.into_iter().flatten()).collect()
    }

    /// The same parameters as values of a body that captured them.
    fn captured(&self, list: &[ValueId]) -> Parameters {
        let mut list = list.iter().copied();
        let hidden_weight = list.next().unwrap_or(self.hidden_weight);
        let mut next = |own: Option<ValueId>| own.and_then(|_| list.next());
        Parameters {
            hidden_weight,
            hidden_bias: next(self.hidden_bias),
            peepholes: next(self.peepholes),
            lengths: next(self.lengths),
        }
    }
}

/// One direction: `[steps, batch, hidden]`, and the last states.
fn sequence(
    cx: &mut Onnx,
    operands: &Operands,
    form: &Form,
    direction: &Expr,
    reverse: bool,
) -> Result<(ValueId, Vec<ValueId>), RuleError> {
    let start = operands.states.iter().map(|state| Ok(cx.b.pick(*state, 0, direction)?));
    let start = start.collect::<Result<Vec<_>, RuleError>>()?;
    let weight = cx.b.pick(operands.weight, 0, direction)?;
    let weight = cx.b.transpose(weight, 0, 1)?;
    let mut projected = cx.matmul(operands.x, weight)?;
    let hidden_weight = cx.b.pick(operands.hidden_weight, 0, direction)?;
    let mut own = Parameters {
        hidden_weight: cx.b.transpose(hidden_weight, 0, 1)?,
        hidden_bias: None,
        peepholes: operands.peepholes.map(|all| cx.b.pick(all, 0, direction)).transpose()?,
        lengths: operands.lengths,
    };
    if let Some(bias) = operands.bias {
        let bias = cx.b.pick(bias, 0, direction)?;
        let half = cx.b.shape(weight)[1].clone();
        let input = cx.b.slice(bias, 0, &Expr::int(0), &half, 1)?;
        let hidden = cx.b.slice(bias, 0, &half, &half, 1)?;
        projected = cx.add(projected, input)?;
        if form.cell == Cell::Gru && form.resets_product {
            own.hidden_bias = Some(hidden);
        } else {
            projected = cx.add(projected, hidden)?;
        }
    }
    let captured = own.list();
    let steps = Steps {
        name: "recurrent",
        count: cx.b.shape(operands.x)[0].clone(),
        reverse,
        tables: &[projected],
        captured: &captured,
        outputs: vec![cx.b.ty(start[0]).clone()],
    };
    let (outputs, ends) =
        steps.run(&mut cx.cx, &start, &mut |cx, now| step(cx, form, &own.captured(now.captured), &now))?;
    Ok((outputs[0], ends))
}

/// The hidden state, which is the output too, then the cell state of an LSTM.
fn step(cx: &mut Context, form: &Form, own: &Parameters, now: &Now) -> Stepped<Context> {
    let gates = now.rows[0];
    let next = match form.cell {
        Cell::Plain => vec![plain(cx, form, own, gates, now.state[0])?],
        Cell::Gru => vec![gru(cx, form, own, gates, now.state[0])?],
        Cell::Lstm => lstm(cx, form, own, gates, now.state)?,
    };
    let Some(lengths) = own.lengths else { return Ok((vec![next[0]], next)) };
    // Behind the end of its sequence, a row's state stays and its output is zero.
    let goes_on = cx.binary(Relation::Gt, lengths, now.position)?;
    let goes_on = cx.b.unsqueeze(goes_on, 1)?;
    let zero = cx.b.full_like(0.0, next[0]);
    let output = cx.b.select(goes_on, next[0], zero)?;
    let pairs = next.into_iter().zip(now.state);
    let kept = pairs.map(|(new, old)| Ok(cx.b.select(goes_on, new, *old)?));
    Ok((vec![output], kept.collect::<Result<Vec<_>, RuleError>>()?))
}

/// Parts of a size each of the last axis.
fn parts(cx: &mut Context, x: ValueId, size: &Expr, count: i64) -> Result<Vec<ValueId>, RuleError> {
    let last = cx.b.rank(x) - 1;
    (0..count).map(|k| Ok(cx.b.slice(x, last, &(size * k), size, 1)?)).collect()
}

impl Form {
    /// One of the functions, of a gate.
    fn function(&self, position: usize, gate: &Formula) -> Formula {
        self.functions[position].of(&self.clipped(gate))
    }

    fn clipped(&self, gate: &Formula) -> Formula {
        match self.clip {
            Some(clip) => gate.max(-clip).min(clip),
            None => gate.clone(),
        }
    }
}

fn plain(
    cx: &mut Context,
    form: &Form,
    own: &Parameters,
    gate: ValueId,
    hidden: ValueId,
) -> Result<ValueId, RuleError> {
    let recurrent = cx.b.matmul(hidden, own.hidden_weight)?;
    let dtype = cx.b.dtype(hidden);
    cx.apply([gate, recurrent], dtype, |[x, h]| form.function(0, &(x + h)))
}

/// Gates are update, reset and the new state.
fn gru(
    cx: &mut Context,
    form: &Form,
    own: &Parameters,
    gates: ValueId,
    hidden: ValueId,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(hidden);
    let size = cx.b.shape(hidden)[1].clone();
    let x = parts(cx, gates, &size, form.cell.gates())?;
    let weights = parts(cx, own.hidden_weight, &size, form.cell.gates())?;
    let biases = own.hidden_bias.map(|bias| parts(cx, bias, &size, form.cell.gates())).transpose()?;
    let product = |cx: &mut Context, state: ValueId, gate: usize| -> Result<ValueId, RuleError> {
        let product = cx.b.matmul(state, weights[gate])?;
        match &biases {
            Some(biases) => cx.add(product, biases[gate]),
            None => Ok(product),
        }
    };
    let (of_update, of_reset) = (product(cx, hidden, 0)?, product(cx, hidden, 1)?);
    let update = cx.apply([x[0], of_update], dtype, |[x, h]| form.function(0, &(x + h)))?;
    let reset = cx.apply([x[1], of_reset], dtype, |[x, h]| form.function(0, &(x + h)))?;
    let remembered = if form.resets_product {
        let recurrent = product(cx, hidden, 2)?;
        cx.mul(reset, recurrent)?
    } else {
        let kept = cx.mul(reset, hidden)?;
        product(cx, kept, 2)?
    };
    cx.apply([x[2], remembered, update, hidden], dtype, |[x, h, update, old]| {
        let new = form.function(1, &(x + h));
        (1.0 - &update) * new + update * old
    })
}

/// Gates are input, output, forget and the new cell state; the first three may look at the cell state.
fn lstm(
    cx: &mut Context,
    form: &Form,
    own: &Parameters,
    gates: ValueId,
    state: &[ValueId],
) -> Result<Vec<ValueId>, RuleError> {
    let [hidden, cell] = *state else { return Err(unsupported("an LSTM without a cell state")) };
    let dtype = cx.b.dtype(hidden);
    let recurrent = cx.b.matmul(hidden, own.hidden_weight)?;
    let all = cx.binary(BinaryOp::Add, gates, recurrent)?;
    let size = cx.b.shape(hidden)[1].clone();
    let all = parts(cx, all, &size, form.cell.gates())?;
    let looks = own.peepholes.map(|weights| parts(cx, weights, &size, 3)).transpose()?;
    let gate = |cx: &mut Context, position: usize, cell: ValueId| -> Result<ValueId, RuleError> {
        let Some(looks) = &looks else { return Ok(all[position]) };
        let seen = cx.mul(cell, looks[position])?;
        cx.add(all[position], seen)
    };
    let (input, forget) = (gate(cx, 0, cell)?, gate(cx, 2, cell)?);
    let new_cell = cx.apply([input, forget, all[3], cell], dtype, |[input, forget, new, old]| {
        let input = form.function(0, &input);
        let forget = if form.couples { 1.0 - &input } else { form.function(0, &forget) };
        forget * old + input * form.function(1, &new)
    })?;
    let output = gate(cx, 1, new_cell)?;
    let new_hidden = cx.apply([output, new_cell], dtype, |[output, cell]| {
        form.function(0, &output) * form.functions[2].of(&cell)
    })?;
    Ok(vec![new_hidden, new_cell])
}
