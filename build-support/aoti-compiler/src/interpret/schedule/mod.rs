//! Evaluates schedules: fused kernels with their mappings and their places in memory, slowly and exactly.
//!
//! What lowering, fusion, mapping and memory planning made of a graph is computed as it stands, so that a test can
//! compare it with the graph itself without a C++ compiler. Every access is checked against its buffer; temporaries lie
//! in one arena where the plan put them; units that may run in any order run last first. Which template was chosen
//! makes no difference here: a contraction is its sums.

mod attention;
mod memory;
mod nest;
mod stage;

use super::error::EvalError;
use super::index::Symbols;
use super::run::check_guard;
use super::tensor::{Lanes, Tensor};
use super::{contract, fourier, matrices, movement, order, recurrent, reduce};
use crate::graph::{Part, SymbolSource};
use crate::loops::{
    AxisKernel, AxisOp, BufferId, Convolution, Elsewhere, Kernel, KernelId, KernelKind, MatMul,
    MatrixOperand, Program, Sorting, Step, Storage,
};
use crate::schedule::Schedule;
use crate::symbolic::{Expr, Symbol};
use memory::Memory;
use stage::{Positions, Values};

/// What a run of a schedule gives.
#[derive(Clone, PartialEq, Debug)]
pub struct Evaluated {
    /// The outputs, without states.
    pub outputs: Vec<Tensor>,
    /// The states as they are left.
    pub states: Vec<Tensor>,
}

/// Runs a schedule.
///
/// `inputs` are one tensor for each input of the graph, states among them, or one for each of the caller's; then states
/// start as their constants.
pub fn evaluate_schedule(schedule: &Schedule, inputs: &[Tensor]) -> Result<Evaluated, EvalError> {
    let program = &schedule.program;
    let inputs = with_states(program, inputs)?;
    let symbols = bind_symbols(program, &inputs)?;
    for guard in &program.guards {
        check_guard(guard, &symbols)?;
    }
    let memory = Memory::new(schedule, &symbols, &inputs)?;
    let mut machine = Machine { schedule, program, symbols, memory };
    machine.steps(&program.steps)?;
    let tensors = |buffers: &mut dyn Iterator<Item = BufferId>| -> Result<Vec<Tensor>, EvalError> {
        buffers.map(|buffer| machine.tensor(buffer)).collect()
    };
    let outputs = tensors(&mut program.outputs.iter().copied())?;
    let states = tensors(&mut program.states.iter().map(|(buffer, _)| *buffer))?;
    Ok(Evaluated { outputs, states })
}

fn with_states(program: &Program, inputs: &[Tensor]) -> Result<Vec<Tensor>, EvalError> {
    if inputs.len() == program.graph_inputs.len() {
        return Ok(inputs.to_vec());
    }
    if inputs.len() != program.inputs.len() {
        return Err(EvalError::InputCount { expected: program.inputs.len(), given: inputs.len() });
    }
    let mut given = inputs.iter();
    let tensor = |buffer: &BufferId| {
        if program.buffers[*buffer].storage == Storage::Generator {
            return Ok(Tensor::from_i64(&[2], &[0, 0]));
        }
        let Some((_, initial)) = program.states.iter().find(|(state, _)| state == buffer) else {
            return Ok(given.next().expect("as many as the caller's inputs").clone());
        };
        let constant = &program.constants[*initial];
        let sizes = constant.sizes.iter().map(|size| usize::try_from(*size).unwrap_or(0)).collect();
        Tensor::new(constant.dtype, sizes, constant.data.clone())
            .map_err(|error| EvalError::Malformed(error.to_string()))
    };
    program.graph_inputs.iter().map(tensor).collect()
}

fn bind_symbols(program: &Program, inputs: &[Tensor]) -> Result<Symbols, EvalError> {
    let value = |source: &SymbolSource| match source {
        SymbolSource::InputDim { input, axis } => {
            inputs.get(*input).and_then(|tensor| tensor.sizes().get(*axis)).map(|size| *size as i64)
        }
        SymbolSource::InputValue { input } => {
            inputs.get(*input).and_then(Tensor::to_i64).and_then(|values| values.first().copied())
        }
        SymbolSource::Data => None,
    };
    Ok(Symbols(program.symbols.iter().map(|info| value(&info.source)).collect()))
}

/// A run.
struct Machine<'a> {
    schedule: &'a Schedule,
    program: &'a Program,
    symbols: Symbols,
    memory: Memory,
}

impl Machine<'_> {
    fn tensor(&self, buffer: BufferId) -> Result<Tensor, EvalError> {
        let sizes = self.symbols.sizes(&self.program.buffers[buffer].shape)?;
        self.shaped(buffer, sizes)
    }

    /// A whole buffer under sizes of as many elements.
    fn shaped(&self, buffer: BufferId, sizes: Vec<usize>) -> Result<Tensor, EvalError> {
        self.memory.whole(self.program, &self.symbols, buffer, sizes)
    }

    /// The single number in a buffer.
    fn number(&self, buffer: BufferId) -> Result<i64, EvalError> {
        match self.tensor(buffer)?.to_i64().as_deref() {
            Some([value]) => Ok(*value),
            _ => Err(EvalError::Malformed(format!("{buffer} is not one integer"))),
        }
    }

    fn steps(&mut self, steps: &[Step]) -> Result<(), EvalError> {
        for step in steps {
            match step {
                Step::Kernel(id) => {
                    let place = format!("kernel `{}`", self.program.kernels[*id].name);
                    self.kernel(*id).map_err(|error| EvalError::At { place, error: Box::new(error) })?;
                }
                Step::Read { buffer, symbol, .. } => self.read(*buffer, *symbol)?,
                Step::Assert(buffer, message) => {
                    if self.number(*buffer)? == 0 {
                        return Err(EvalError::Assert(message.clone()));
                    }
                }
                Step::Require(guard) => check_guard(guard, &self.symbols)?,
                Step::If { predicate, then, otherwise } => {
                    let chosen = if self.number(*predicate)? != 0 { then } else { otherwise };
                    self.steps(chosen)?;
                }
                Step::Loop { condition, predicate, body } => loop {
                    self.steps(condition)?;
                    if self.number(*predicate)? == 0 {
                        break;
                    }
                    self.steps(body)?;
                },
            }
        }
        Ok(())
    }

    fn read(&mut self, buffer: BufferId, symbol: Symbol) -> Result<(), EvalError> {
        let (value, index) = (self.number(buffer)?, symbol.index as usize);
        let info = &self.program.symbols[index];
        if !(info.range.min..=info.range.max).contains(&value) {
            let (min, max) = (info.range.min, info.range.max);
            return Err(EvalError::Range { symbol: info.name.clone(), value, min, max });
        }
        let most = info.most.as_ref().map(|most| self.symbols.value(most)).transpose()?;
        if let Some(max) = most.filter(|most| value > *most) {
            let (symbol, min) = (info.name.clone(), info.range.min);
            return Err(EvalError::Range { symbol, value, min, max });
        }
        self.symbols.0[index] = Some(value);
        Ok(())
    }

    fn kernel(&mut self, id: KernelId) -> Result<(), EvalError> {
        let kernel: &Kernel = &self.program.kernels[id];
        match &kernel.kind {
            KernelKind::Nest(nest) => self.nest(kernel, nest, &self.schedule.mappings[id]),
            KernelKind::MatMul(matmul) => match &matmul.row_epilogue {
                Some(rows) => self.by_rows(kernel, matmul, rows),
                None => self.product(matmul, &Positions::all(&matmul.axes, &self.symbols)?),
            },
            KernelKind::Convolution(conv) => {
                let positions = Positions::all(&conv.axes, &self.symbols)?;
                let sums = self.convolution(conv)?;
                self.stage(&conv.epilogue, &positions, &mut Values::of_sums(sums))
            }
            KernelKind::Attention(own) => self.attention(own),
            KernelKind::AxisOp(rows) => self.rows(rows),
            KernelKind::Extern(own) => Err(match &own.by {
                Elsewhere::Function(call) => EvalError::Extern { operator: call.operator.clone() },
                Elsewhere::Ranks(own) => EvalError::Collective(own.kind.name()),
            }),
        }
    }

    /// A matrix product and its epilogue at some of its positions.
    fn product(&mut self, matmul: &MatMul, positions: &Positions) -> Result<(), EvalError> {
        let sums = self.products(matmul, positions)?;
        self.stage(&matmul.epilogue, positions, &mut Values::of_sums(sums))
    }

    /// The sum at each position of a matrix product.
    fn products(&self, matmul: &MatMul, positions: &Positions) -> Result<Tensor, EvalError> {
        let rank = matmul.axes.len();
        let (row, column) = (matmul.axes[rank - 2].symbol, matmul.axes[rank - 1].symbol);
        let k = self.symbols.value(&matmul.depth)?;
        let elements = |operand: &MatrixOperand| {
            let tensor = self.tensor(operand.buffer)?;
            let widens = tensor.dtype() != matmul.dtype;
            let tensor = if widens { super::convert::cast(&tensor, matmul.dtype) } else { tensor };
            Ok::<Lanes, EvalError>(tensor.lanes())
        };
        let (a, b) = (elements(&matmul.a)?, elements(&matmul.b)?);
        let starts = |operand: &MatrixOperand| positions.values(&operand.offset, &self.symbols);
        let (a_start, b_start) = (starts(&matmul.a)?, starts(&matmul.b)?);
        let [a_row, a_k] = [&matmul.a.row_stride, &matmul.a.column_stride].map(|e| self.symbols.value(e));
        let [b_k, b_column] = [&matmul.b.row_stride, &matmul.b.column_stride].map(|e| self.symbols.value(e));
        let (a_row, a_k, b_k, b_column) = (a_row?, a_k?, b_k?, b_column?);
        let (rows, columns) = (positions.along(row), positions.along(column));
        let pair = |at: usize, step: i64| {
            let left = a_start[at] + rows[at] * a_row + step * a_k;
            (left, b_start[at] + columns[at] * b_column + step * b_k)
        };
        let outside = |index: i64| EvalError::Malformed(format!("a factor's element {index} does not exist"));
        macro_rules! sums {
            ($a:expr, $b:expr, $zero:expr, $add:expr) => {
                (0..positions.count())
                    .map(|at| {
                        (0..k).try_fold($zero, |sum, step| {
                            let (left, right) = pair(at, step);
                            let x = usize::try_from(left).ok().and_then(|left| $a.get(left));
                            let y = usize::try_from(right).ok().and_then(|right| $b.get(right));
                            let x = x.ok_or_else(|| outside(left))?;
                            Ok($add(sum, *x, *y.ok_or_else(|| outside(right))?))
                        })
                    })
                    .collect::<Result<Vec<_>, EvalError>>()?
            };
        }
        let lanes = match (&a, &b) {
            (Lanes::F32(a), Lanes::F32(b)) => {
                let sums = sums!(a, b, 0.0f64, |sum: f64, x: f32, y: f32| sum + f64::from(x) * f64::from(y));
                Lanes::F32(sums.into_iter().map(|sum| sum as f32).collect())
            }
            (Lanes::F64(a), Lanes::F64(b)) => {
                Lanes::F64(sums!(a, b, 0.0f64, |sum: f64, x: f64, y: f64| sum + x * y))
            }
            (Lanes::Int(a), Lanes::Int(b)) => {
                Lanes::Int(sums!(a, b, 0i64, |sum: i64, x: i64, y: i64| sum.wrapping_add(x.wrapping_mul(y))))
            }
            (Lanes::Uint(a), Lanes::Uint(b)) => {
                Lanes::Uint(sums!(a, b, 0u64, |sum: u64, x: u64, y: u64| sum.wrapping_add(x.wrapping_mul(y))))
            }
            _ => return Err(EvalError::Malformed("factors of different types".to_owned())),
        };
        Ok(Tensor::store(matmul.dtype, vec![positions.count()], &lanes))
    }

    fn convolution(&self, conv: &Convolution) -> Result<Tensor, EvalError> {
        let axes = [conv.image(), conv.channel()].into_iter().chain(conv.spatial());
        let axes: Vec<_> = axes.map(|axis| axis.extent.clone()).collect();
        let sizes = self.symbols.sizes(&axes)?;
        let input = self.tensor(conv.input)?;
        let widens = input.dtype() != conv.dtype;
        let input = if widens { super::convert::cast(&input, conv.dtype) } else { input };
        // Axis k in memory is axis `order[k]` of the program.
        let axes: Vec<usize> = (0..input.sizes().len()).collect();
        let order = conv.input_channels.in_memory(&axes);
        let input = movement::transposed(&input, |axis| {
            order.iter().position(|k| *k == axis).expect("each is there")
        });
        let result = contract::conv(&input, &self.tensor(conv.weight)?, &conv.conv, sizes)?;
        let order = conv.output_channels.in_memory(&axes);
        let result = movement::transposed(&result, |k| order[k]);
        Ok(stage::flat(&result))
    }

    /// Values, and places of the row or of the second input.
    fn sort(
        &mut self,
        rows: &AxisKernel,
        sorting: &Sorting,
        sizes: Vec<usize>,
    ) -> Result<Vec<Tensor>, EvalError> {
        let count = |own: Option<i64>| own.and_then(|own| usize::try_from(own).ok()).unwrap_or(usize::MAX);
        let runs = order::Runs {
            length: count(sorting.run),
            kept: count(sorting.kept),
            descending: sorting.descending,
        };
        let x = self.shaped(rows.inputs[0], sizes.clone())?;
        let (values, mut places) = order::sort(&x, 1, &runs);
        if let Some(own) = rows.inputs.get(1) {
            let own = self.shaped(*own, sizes.clone())?.to_i64();
            let own = own.ok_or_else(|| EvalError::Malformed("places are integers".to_owned()))?;
            let (results, inner) = (values.sizes()[1], sizes[2]);
            for (to, place) in places.iter_mut().enumerate() {
                let row = to / (results * inner) * sizes[1];
                *place = own[(row + usize::try_from(*place).unwrap_or(0)) * inner + to % inner];
            }
        }
        let dtype = self.program.buffers[rows.outputs[1]].dtype;
        let places = Lanes::Int(places);
        let places = Tensor::store(dtype, values.sizes().to_vec(), &places);
        Ok(vec![values, places])
    }

    fn rows(&mut self, rows: &AxisKernel) -> Result<(), EvalError> {
        let [outer, length, inner]: [usize; 3] = self
            .symbols
            .sizes(&[rows.outer.clone(), rows.length.clone(), rows.inner.clone()])?
            .try_into()
            .expect("three sizes");
        let results = match &rows.op {
            AxisOp::Scan(op) => {
                let x = self.shaped(rows.inputs[0], vec![outer, length, inner])?;
                let (values, indices) = reduce::scan(*op, &x, 1)?;
                [Some(values), indices].into_iter().flatten().collect()
            }
            AxisOp::Sort(sorting) => self.sort(rows, sorting, vec![outer, length, inner])?,
            AxisOp::Matrices(routine) => {
                let shaped = |parts: &[Part], buffers: &[BufferId]| -> Result<Vec<_>, EvalError> {
                    let sizes = parts.iter().map(|part| {
                        let leading = std::slice::from_ref(&rows.outer);
                        self.symbols.sizes(&part.shape(leading, &rows.length, &rows.inner))
                    });
                    buffers.iter().copied().zip(sizes).map(|(buffer, sizes)| Ok((buffer, sizes?))).collect()
                };
                let operands = shaped(routine.operands(), &rows.inputs)?;
                let operands: Vec<Tensor> = operands
                    .into_iter()
                    .map(|(buffer, sizes)| self.shaped(buffer, sizes))
                    .collect::<Result<_, _>>()?;
                let results = shaped(routine.results(), &rows.outputs)?.into_iter();
                let results =
                    results.map(|(buffer, sizes)| (self.program.buffers[buffer].dtype, sizes)).collect();
                matrices::apply(*routine, &operands, [outer, length, inner], results)?
            }
            AxisOp::Fourier(fourier) => {
                let sizes = |row: Vec<i64>| -> Result<Vec<usize>, EvalError> {
                    let shape: Vec<Expr> =
                        std::iter::once(rows.outer.clone()).chain(row.into_iter().map(Expr::int)).collect();
                    self.symbols.sizes(&shape)
                };
                let x = self.shaped(rows.inputs[0], sizes(fourier.operand())?)?;
                vec![fourier::transform(fourier, &x, sizes(fourier.result())?)]
            }
            AxisOp::Recurrent(own) => {
                let shapes = own.operand_shapes(&rows.length, &rows.outer);
                let operands = rows.inputs.iter().zip(shapes);
                let operands = operands
                    .map(|(buffer, shape)| self.shaped(*buffer, self.symbols.sizes(&shape)?))
                    .collect::<Result<Vec<_>, EvalError>>()?;
                recurrent::layer(own, &operands)?
            }
            AxisOp::NthElement { ties, rank } => {
                let x = self.shaped(rows.inputs[0], vec![outer, length, inner])?;
                let ranks = match rank {
                    Some(rank) => vec![*rank; outer * inner],
                    None => order::ranks(&self.shaped(rows.inputs[1], vec![outer, 1, inner])?)?,
                };
                let (values, places) = order::nth_element(&x, &ranks, 1, *ties);
                vec![values, Tensor::from_i64(&[outer, 1, inner], &places)]
            }
            AxisOp::SearchSorted { right } => {
                let sorted = self.shaped(rows.inputs[0], vec![outer, length])?;
                let values = self.shaped(rows.inputs[1], vec![outer, inner])?;
                vec![order::search_sorted(&sorted, &values, *right)?]
            }
        };
        for (buffer, result) in rows.outputs.iter().zip(results) {
            self.memory.replace(self.program, &self.symbols, *buffer, &result)?;
        }
        Ok(())
    }
}
