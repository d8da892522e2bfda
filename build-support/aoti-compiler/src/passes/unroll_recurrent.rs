//! Recurrent layers as the operators that they are made of, step by step, where a target has no kernel for whole layers.

use super::rewrite::{everywhere, rewrite};
use crate::graph::steps::Steps;
use crate::graph::{
    BinaryOp, Builder, Cell, FloatUnary, Graph, Node, Op, Operands, Recurrent, ShapeError, TensorType,
    ValueId,
};
use crate::symbolic::{Expr, RangeTable};

type Built<T = ValueId> = Result<T, ShapeError>;

/// The graph without the layers that are not `kept`, of which it is told the type and shape of the gates. The second says whether there
/// were any.
pub fn unroll_recurrent(
    graph: Graph,
    kept: &dyn Fn(&Recurrent, &TensorType, &RangeTable) -> bool,
) -> (Graph, bool) {
    let mut found = false;
    let graph = everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Recurrent(own) = &node.op else { return None };
            if kept(own, rewriter.builder.ty(node.inputs[0]), ranges) {
                return None;
            }
            found = true;
            let results = of_node(&mut rewriter.builder, own, node);
            Some(results.expect("the operands are those of a verified layer"))
        });
    });
    (graph, found)
}

/// Hidden state, and the memory of an LSTM.
#[derive(Clone, Copy)]
struct State {
    hidden: ValueId,
    memory: Option<ValueId>,
}

impl State {
    /// From values in the order of its fields.
    fn of(values: &[ValueId]) -> State {
        State { hidden: values[0], memory: values.get(1).copied() }
    }

    /// In the order of its fields.
    fn list(self) -> Vec<ValueId> {
        std::iter::once(self.hidden).chain(self.memory).collect()
    }
}

/// Parameters of one direction.
#[derive(Clone, Copy)]
struct Weights {
    hidden: ValueId,
    bias: Option<ValueId>,
    projection: Option<ValueId>,
}

/// One direction of a layer.
struct Direction<'l> {
    own: &'l Recurrent,
    /// `[steps, batch, gates]`.
    gates: ValueId,
    start: State,
    weights: Weights,
    reversed: bool,
}

fn of_node(b: &mut Builder, own: &Recurrent, node: &Node) -> Built<Vec<ValueId>> {
    let operands = own.operands(&node.inputs).ok_or_else(|| ShapeError("operands are missing".to_owned()))?;
    let mut gates = operands.gates;
    if own.batch_first {
        gates = b.transpose(gates, 0, 1)?;
    }
    let width = Expr::int(own.cell.gates() * own.hidden);
    let (mut outputs, mut ends) = (vec![], vec![]);
    for (direction, reversed) in (0..).zip(own.directions.reversed()) {
        let gates = b.slice(gates, 2, &(&width * direction), &width, 1)?;
        let (start, weights) =
            (start(b, own, &operands, gates, direction)?, weights(b, &operands, direction)?);
        let layer = Direction { own, gates, start, weights, reversed: *reversed };
        let (output, end) = layer.sequence(b)?;
        outputs.push(output);
        ends.push(end);
    }
    let mut all = b.cat(&outputs, 2)?;
    if own.batch_first {
        all = b.transpose(all, 0, 1)?;
    }
    let hidden: Vec<ValueId> = ends.iter().map(|state| state.hidden).collect();
    let memory: Vec<ValueId> = ends.iter().filter_map(|state| state.memory).collect();
    let mut results = vec![all, stacked(b, &hidden)?];
    if !memory.is_empty() {
        results.push(stacked(b, &memory)?);
    }
    Ok(results)
}

fn stacked(b: &mut Builder, values: &[ValueId]) -> Built {
    let rows = values.iter().map(|value| b.unsqueeze(*value, 0)).collect::<Built<Vec<_>>>()?;
    b.cat(&rows, 0)
}

fn start(
    b: &mut Builder,
    own: &Recurrent,
    operands: &Operands<ValueId>,
    gates: ValueId,
    direction: i64,
) -> Built<State> {
    let (batch, dtype) = (b.shape(gates)[1].clone(), b.dtype(gates));
    let mut state = |given: Option<ValueId>, width: i64| match given {
        Some(given) => b.pick(given, 0, &Expr::int(direction)),
        None => Ok(b.full(0.0, dtype, &[batch.clone(), Expr::int(width)])),
    };
    let hidden = state(operands.hidden, own.state())?;
    let memory = if own.cell.has_memory() { Some(state(operands.memory, own.hidden)?) } else { None };
    Ok(State { hidden, memory })
}

fn weights(b: &mut Builder, operands: &Operands<ValueId>, direction: i64) -> Built<Weights> {
    let mut part = |value: ValueId| b.pick(value, 0, &Expr::int(direction));
    Ok(Weights {
        hidden: part(operands.weight)?,
        bias: operands.bias.map(&mut part).transpose()?,
        projection: operands.projection.map(&mut part).transpose()?,
    })
}

impl Direction<'_> {
    /// All hidden states, and the last state.
    fn sequence(&self, b: &mut Builder) -> Built<(ValueId, State)> {
        let Weights { hidden, bias, projection } = self.weights;
        let captured: Vec<ValueId> = [Some(hidden), bias, projection].into_iter().flatten().collect();
        let steps = Steps {
            name: "recurrent",
            count: b.shape(self.gates)[0].clone(),
            reverse: self.reversed,
            tables: &[self.gates],
            captured: &captured,
            outputs: vec![b.ty(self.start.hidden).clone()],
        };
        let (all, end) = steps.run(b, &self.start.list(), &mut |b, now| {
            let mut given = now.captured.iter().copied();
            let mut next = |own: Option<ValueId>| own.and_then(|_| given.next());
            let weights = Weights {
                hidden: next(Some(hidden)).unwrap_or(hidden),
                bias: next(bias),
                projection: next(projection),
            };
            let state = self.step(b, now.rows[0], State::of(now.state), weights)?;
            Ok((vec![state.hidden], state.list()))
        })?;
        Ok((all[0], State::of(&end)))
    }

    /// The next state from the input's part of the gates.
    fn step(&self, b: &mut Builder, gates: ValueId, state: State, weights: Weights) -> Built<State> {
        let recurrent = linear(b, state.hidden, weights.hidden, weights.bias)?;
        match self.own.cell {
            Cell::Lstm => {
                let gates = b.binary(BinaryOp::Add, gates, recurrent)?;
                self.lstm(b, gates, state, weights.projection)
            }
            Cell::Gru => self.gru(b, gates, recurrent, state.hidden),
            Cell::Tanh => {
                let sum = b.binary(BinaryOp::Add, gates, recurrent)?;
                Ok(State { hidden: b.unary(FloatUnary::Tanh, sum), memory: None })
            }
            Cell::Relu => {
                let sum = b.binary(BinaryOp::Add, gates, recurrent)?;
                Ok(State { hidden: b.binary_scalar(BinaryOp::Maximum, sum, 0.0)?, memory: None })
            }
        }
    }

    fn lstm(
        &self,
        b: &mut Builder,
        gates: ValueId,
        state: State,
        projection: Option<ValueId>,
    ) -> Built<State> {
        let old = state.memory.ok_or_else(|| ShapeError("the memory is missing".to_owned()))?;
        let parts = self.gate_parts(b, gates)?;
        let [input, forget, output] =
            [parts[0], parts[1], parts[3]].map(|gate| b.unary(FloatUnary::Sigmoid, gate));
        let candidate = b.unary(FloatUnary::Tanh, parts[2]);
        let kept = b.binary(BinaryOp::Mul, forget, old)?;
        let new = b.binary(BinaryOp::Mul, input, candidate)?;
        let memory = b.binary(BinaryOp::Add, kept, new)?;
        let squashed = b.unary(FloatUnary::Tanh, memory);
        let mut hidden = b.binary(BinaryOp::Mul, output, squashed)?;
        if let Some(projection) = projection {
            hidden = linear(b, hidden, projection, None)?;
        }
        Ok(State { hidden, memory: Some(memory) })
    }

    fn gru(&self, b: &mut Builder, gates: ValueId, recurrent: ValueId, old: ValueId) -> Built<State> {
        let (x, h) = (self.gate_parts(b, gates)?, self.gate_parts(b, recurrent)?);
        let reset = b.binary(BinaryOp::Add, x[0], h[0])?;
        let reset = b.unary(FloatUnary::Sigmoid, reset);
        let update = b.binary(BinaryOp::Add, x[1], h[1])?;
        let update = b.unary(FloatUnary::Sigmoid, update);
        let remembered = b.binary(BinaryOp::Mul, reset, h[2])?;
        let candidate = b.binary(BinaryOp::Add, x[2], remembered)?;
        let candidate = b.unary(FloatUnary::Tanh, candidate);
        let gap = b.binary(BinaryOp::Sub, old, candidate)?;
        let kept = b.binary(BinaryOp::Mul, gap, update)?;
        Ok(State { hidden: b.binary(BinaryOp::Add, kept, candidate)?, memory: None })
    }

    /// The gates, each by itself.
    fn gate_parts(&self, b: &mut Builder, gates: ValueId) -> Built<Vec<ValueId>> {
        let (last, size) = (b.rank(gates) - 1, Expr::int(self.own.hidden));
        (0..self.own.cell.gates()).map(|k| b.slice(gates, last, &(&size * k), &size, 1)).collect()
    }
}

fn linear(b: &mut Builder, x: ValueId, weight: ValueId, bias: Option<ValueId>) -> Built {
    let right = b.transpose(weight, 0, 1)?;
    let result = b.matmul(x, right)?;
    match bias {
        Some(bias) => b.binary(BinaryOp::Add, result, bias),
        None => Ok(result),
    }
}
