//! Recurrent layers, step by step: computed in `f64`, with states rounded to their type at each step.

use super::error::EvalError;
use super::tensor::{Lanes, Tensor};
use crate::dtype::DType;
use crate::graph::{Cell, Operands, Recurrent};

/// The results of a layer.
pub(super) fn layer(own: &Recurrent, operands: &[Tensor]) -> Result<Vec<Tensor>, EvalError> {
    let malformed = || EvalError::Malformed(format!("`{}` of other operands", own.text()));
    let all: Vec<&Tensor> = operands.iter().collect();
    let Operands { gates, weight, bias, projection, hidden, memory } =
        own.operands(&all).ok_or_else(malformed)?;
    let &[first, second, columns] = gates.sizes() else { return Err(malformed()) };
    let [steps, batch] = if own.batch_first { [second, first] } else { [first, second] };
    let size = |count: i64| usize::try_from(count).unwrap_or(0);
    let sizes = Sizes { steps, batch, columns, units: size(own.hidden), state: size(own.state()) };
    let values = |tensor: Option<&Tensor>| tensor.map(Tensor::to_f64);
    let run = Layer {
        own,
        sizes,
        dtype: gates.dtype(),
        gates: gates.to_f64(),
        weight: weight.to_f64(),
        bias: values(bias),
        projection: values(projection),
    };
    Ok(run.all_directions(values(hidden), values(memory)))
}

struct Sizes {
    steps: usize,
    batch: usize,
    /// Of the gates of all directions.
    columns: usize,
    units: usize,
    /// Numbers of a hidden state.
    state: usize,
}

struct Layer<'l> {
    own: &'l Recurrent,
    sizes: Sizes,
    dtype: DType,
    gates: Vec<f64>,
    weight: Vec<f64>,
    bias: Option<Vec<f64>>,
    projection: Option<Vec<f64>>,
}

impl Layer<'_> {
    fn all_directions(&self, hidden: Option<Vec<f64>>, memory: Option<Vec<f64>>) -> Vec<Tensor> {
        let Sizes { steps, batch, units, state, .. } = self.sizes;
        let directions = self.own.directions.reversed();
        let count = directions.len();
        let mut hidden = hidden.unwrap_or_else(|| vec![0.0; count * batch * state]);
        let mut memory = memory.unwrap_or_else(|| vec![0.0; count * batch * units]);
        let mut all = vec![0.0; steps * batch * count * state];
        for (direction, reversed) in directions.iter().enumerate() {
            for step in 0..steps {
                let step = if *reversed { steps - 1 - step } else { step };
                for row in 0..batch {
                    let own = (direction * batch + row) * state;
                    let old: Vec<f64> = hidden[own..own + state].to_vec();
                    let cells = &mut memory[(direction * batch + row) * units..][..units];
                    let new = self.step((direction, step, row), &old, cells);
                    let at = (self.row(step, row) * count + direction) * state;
                    all[at..at + state].copy_from_slice(&new);
                    hidden[own..own + state].copy_from_slice(&new);
                }
            }
        }
        let shape = if self.own.batch_first { [batch, steps] } else { [steps, batch] };
        let tensor = |sizes: Vec<usize>, values| Tensor::store(self.dtype, sizes, &Lanes::F64(values));
        let mut results = vec![
            tensor(vec![shape[0], shape[1], count * state], all),
            tensor(vec![count, batch, state], hidden),
        ];
        if self.own.cell.has_memory() {
            results.push(tensor(vec![count, batch, units], memory));
        }
        results
    }

    /// The position of a step of a sequence.
    fn row(&self, step: usize, row: usize) -> usize {
        let Sizes { steps, batch, .. } = self.sizes;
        if self.own.batch_first { row * steps + step } else { step * batch + row }
    }

    /// The next hidden state.
    fn step(
        &self,
        (direction, step, row): (usize, usize, usize),
        old: &[f64],
        memory: &mut [f64],
    ) -> Vec<f64> {
        let Sizes { columns, units, state, .. } = self.sizes;
        let own = columns / self.own.directions.reversed().len();
        let given = &self.gates[self.row(step, row) * columns + direction * own..][..own];
        let product = |gate: usize, unit: usize| {
            let at = direction * own + gate * units + unit;
            let weights = &self.weight[at * state..][..state];
            let sum: f64 = weights.iter().zip(old).map(|(a, b)| a * b).sum();
            sum + self.bias.as_ref().map_or(0.0, |bias| bias[at])
        };
        let gate = |gate: usize, unit: usize| given[gate * units + unit] + product(gate, unit);
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let new = (0..units).map(|unit| match self.own.cell {
            Cell::Lstm => {
                let kept = sigmoid(gate(1, unit)) * memory[unit];
                memory[unit] = kept + sigmoid(gate(0, unit)) * gate(2, unit).tanh();
                sigmoid(gate(3, unit)) * memory[unit].tanh()
            }
            Cell::Gru => {
                let (reset, update) = (sigmoid(gate(0, unit)), sigmoid(gate(1, unit)));
                let candidate = (given[2 * units + unit] + reset * product(2, unit)).tanh();
                (old[unit] - candidate) * update + candidate
            }
            Cell::Tanh => gate(0, unit).tanh(),
            Cell::Relu => gate(0, unit).max(0.0),
        });
        let new = self.rounded(new.collect());
        let kept = self.rounded(memory.to_vec());
        memory.copy_from_slice(&kept);
        let Some(projection) = &self.projection else { return new };
        let rows = projection[direction * state * units..][..state * units].chunks_exact(units);
        self.rounded(rows.map(|row| row.iter().zip(&new).map(|(a, b)| a * b).sum()).collect())
    }

    fn rounded(&self, values: Vec<f64>) -> Vec<f64> {
        Tensor::store(self.dtype, vec![values.len()], &Lanes::F64(values)).to_f64()
    }
}
