//! One kernel (or a few) for each node whose result has a buffer.

use super::Scope;
use super::expand::Expander;
use super::whole_rows::Effort;
use super::widening::{is_widening, widens_right};
use crate::fourier::Fourier;
use crate::graph::{Combine, Conv, Coord, Graph, Node, Op, Origin, Recurrent, ReduceOp, Routine, ValueId};
use crate::loops::{
    Access, Accumulator, Axis, AxisKernel, AxisOp, Buffer, BufferId, Channels, Convolution, Effect,
    Elsewhere, ExternKernel, Index, Kernel, KernelKind, MatMul, MatrixOperand, Nest, Stage, Step, Storage,
    Term,
};
use crate::symbolic::{Expr, RangeTable, Symbol};
use cranelift_entity::SecondaryMap;

/// Axes `first, first + 1, ...` over a shape.
pub(super) fn axes_over(shape: &[Expr], first: usize) -> Vec<Axis> {
    shape
        .iter()
        .enumerate()
        .map(|(k, extent)| Axis { symbol: axis_symbol(first + k), extent: extent.clone() })
        .collect()
}

pub(super) fn axis_symbol(index: usize) -> Symbol {
    Symbol::axis(u32::try_from(index).expect("axes are few"))
}

pub(super) fn axis_exprs(range: std::ops::Range<usize>) -> Vec<Expr> {
    range.map(Expr::axis).collect()
}

pub(super) fn expr_indices(exprs: &[Expr]) -> Vec<Index> {
    exprs.iter().cloned().map(Index::Expr).collect()
}

impl<'a> Scope<'a> {
    pub(super) fn node(&mut self, node: &'a Node) {
        if let Some(pattern) = node.outputs.first().and_then(|value| self.attentions.take(*value)) {
            self.attention(node, pattern);
            return;
        }
        match &node.op {
            Op::Constant(_) => {}
            Op::Full(_)
            | Op::Index(_)
            | Op::Unary(_)
            | Op::Binary(_)
            | Op::Select
            | Op::Cast
            | Op::View(_)
            | Op::Pad { .. }
            | Op::Gather(_) => {
                let value = node.outputs[0];
                if self.realized[value] {
                    self.realize_now(value);
                }
            }
            Op::Reduce { op, axes } => self.reduce(node, *op, axes),
            Op::Cat { axis } if self.realized[node.outputs[0]] => self.cat(node, *axis),
            Op::Cat { .. } => {}
            Op::Scatter { coords, combine } => self.scatter(node, coords, *combine),
            Op::MatMul => self.matmul(node),
            Op::Conv(conv) => self.convolution(node, conv),
            Op::Scan { op, axis } => self.rows(node, AxisOp::Scan(*op), *axis),
            Op::Sort { axis, descending, kept } => self.sort(node, *axis, (*descending, *kept)),
            Op::NthElement { axis, ties } => self.nth_element(node, *axis, *ties),
            Op::Routine(routine) => self.matrices(node, *routine),
            Op::Fourier(fourier) => self.fourier(node, *fourier),
            Op::Recurrent(own) => self.recurrent(node, *own),
            Op::SearchSorted { right } => self.search_sorted(node, *right),
            Op::Extern(call) => {
                self.external(node, &call.operator.replace("::", "_"), Elsewhere::Function(call.clone()));
            }
            Op::Collective(own) => self.external(node, own.kind.name(), Elsewhere::Ranks(own.clone())),
            Op::Read(symbol) => {
                let buffer = self.realize_now(node.inputs[0]);
                let place = self.graph.origins[node.origin].place().to_owned();
                self.steps.push(Step::Read { buffer, symbol: *symbol, place });
            }
            Op::Assert(message) => {
                let buffer = self.realize_now(node.inputs[0]);
                self.steps.push(Step::Assert(buffer, message.clone()));
            }
            Op::Require(guard) => self.steps.push(Step::Require(guard.clone())),
            Op::Cond { then, otherwise } => self.cond(node, then, otherwise),
            Op::While { condition, body, carried } => self.while_loop(node, condition, body, *carried),
        }
    }

    // --- loops ---------------------------------------------------------------------------------------------------

    pub(super) fn table(&self, axes: &[&[Axis]]) -> RangeTable {
        let mut table = self.ranges.clone();
        for axis in axes.iter().copied().flatten() {
            table.set_extent(axis.symbol, axis.extent.clone());
        }
        table
    }

    /// Appends a kernel and the step that runs it. Where no call of the program tells what it is, it is called `name`.
    pub(super) fn run_kernel(&mut self, node: Option<&Node>, name: &str, kind: KernelKind) {
        let origin = node.map(|node| self.graph.origins[node.origin].clone());
        let origins: Vec<Origin> = origin.into_iter().filter(|origin| *origin != Origin::default()).collect();
        let value = node.and_then(|node| node.outputs.first());
        let name = match value.map(|value| self.graph.values[*value].name.as_str()) {
            Some(own) if !own.is_empty() => own.to_owned(),
            Some(_) | None => name.to_owned(),
        };
        let id = self.program.kernels.push(Kernel { name, origins, kind });
        self.steps.push(Step::Kernel(id));
    }

    fn reduce(&mut self, node: &'a Node, op: ReduceOp, reduced: &[usize]) {
        let (operand, value) = (node.inputs[0], node.outputs[0]);
        let shape = self.graph.ty(operand).shape.clone();
        let dtype = self.graph.ty(operand).dtype;
        let kept: Vec<usize> = (0..shape.len()).filter(|axis| !reduced.contains(axis)).collect();
        let kept = self.layouts.of(value).in_memory(&kept);
        let pick = |axes: &[usize]| -> Vec<Expr> { axes.iter().map(|axis| shape[*axis].clone()).collect() };
        let outer = axes_over(&pick(&kept), 0);
        let inner = axes_over(&pick(reduced), kept.len());
        let mut coords = vec![Expr::int(0); shape.len()];
        for (position, axis) in kept.iter().chain(reduced).enumerate() {
            coords[*axis] = Expr::axis(position);
        }
        let target = self.new_home(value);
        let ranges = self.table(&[&outer, &inner]);
        let position = op.is_arg().then(|| linear_position(&inner));
        let mut expander = Expander::new(self, ranges, None);
        let term = expander.value(operand, &coords);
        let (mut stage, ranges) = (expander.stage, expander.ranges);
        stage.axes = inner;
        stage.effects.push(Effect::Accumulate { accumulator: 0, value: term });
        let mut last = Stage::default();
        let result = last.term(Term::Accumulated(0), self.graph.ty(value).dtype);
        let indices = expr_indices(&axis_exprs(0..outer.len()));
        let access = Access::new(target, &self.program.buffers[target], indices, &ranges);
        last.effects.push(Effect::Store { access, value: result, combine: Combine::Set });
        let accumulators = vec![Accumulator { op, dtype, stage: 0, position }];
        let nest = Nest { axes: outer, stages: vec![stage, last], accumulators, serial: false };
        self.run_kernel(Some(node), "reduce", KernelKind::Nest(nest));
    }

    fn cat(&mut self, node: &'a Node, axis: usize) {
        let value = node.outputs[0];
        let target = (self.new_home(value), self.layouts.of(value));
        let mut start = Expr::int(0);
        for input in &node.inputs {
            self.store(*input, target, Some((axis, &start)), None);
            start = &start + &self.graph.ty(*input).shape[axis];
        }
    }

    fn scatter(&mut self, node: &'a Node, coords: &[Coord], combine: Combine) {
        let [base, updates, indices @ ..] = node.inputs.as_slice() else {
            unreachable!("a scatter has a base and updates")
        };
        let target = self.new_home(node.outputs[0]);
        self.copy(*base, target);
        let shape = self.graph.ty(*base).shape.clone();
        let axes = axes_over(&self.graph.ty(*updates).shape.clone(), 0);
        let own = axis_exprs(0..axes.len());
        let ranges = self.table(&[&axes]);
        let mut expander = Expander::new(self, ranges, None);
        let site = expander.site(node);
        let term = expander.value(*updates, &own);
        let place = expander.indices(coords, indices, &shape, &own, &[], site);
        let (mut stage, ranges) = (expander.stage, expander.ranges);
        let serial = !is_injective(&place, &axes);
        let access = Access::new(target, &self.program.buffers[target], place, &ranges);
        stage.effects.push(Effect::Store { access, value: term, combine });
        let nest = Nest { axes, stages: vec![stage], accumulators: vec![], serial };
        self.run_kernel(Some(node), "scatter", KernelKind::Nest(nest));
    }

    // --- contractions --------------------------------------------------------------------------------------------

    fn matmul(&mut self, node: &'a Node) {
        let value = node.outputs[0];
        let ty = self.graph.ty(value).clone();
        let rank = ty.rank();
        let depth = self.graph.ty(node.inputs[0]).shape[rank - 1].clone();
        let a = match self.bytes.left(value) {
            Some(left) => self.byte_operand(left),
            None => self.matrix_operand(node.inputs[0], false),
        };
        let b = self.matrix_operand(node.inputs[1], widens_right(self.graph, node, self.target));
        let effort = Effort::of(&ty.shape[..rank - 2], [&ty.shape[rank - 2], &ty.shape[rank - 1], &depth]);
        let a = self.whole_operand(node.inputs[0], a, (effort, 0));
        let b = self.whole_operand(node.inputs[1], b, (effort, 1));
        let axes = axes_over(&ty.shape, 0);
        let target = self.new_home(value);
        let epilogue = self.plain_epilogue(&axes, target, ty.dtype);
        let matmul = MatMul { axes, depth, a, b, dtype: ty.dtype, epilogue, row_epilogue: None };
        self.run_kernel(Some(node), "gemm", KernelKind::MatMul(matmul));
    }

    /// An epilogue that stores the sum.
    pub(super) fn plain_epilogue(
        &mut self,
        axes: &[Axis],
        target: BufferId,
        dtype: crate::dtype::DType,
    ) -> Stage {
        let ranges = self.table(&[axes]);
        let mut epilogue = Stage::default();
        let sum = epilogue.term(Term::Sum, dtype);
        let indices = expr_indices(&axis_exprs(0..axes.len()));
        let access = Access::new(target, &self.program.buffers[target], indices, &ranges);
        epilogue.effects.push(Effect::Store { access, value: sum, combine: Combine::Set });
        epilogue
    }

    /// A matrix read in place through its views where they are strided, else from a copy. A product that `widens` it reads it
    /// as it is before it is converted.
    pub(super) fn matrix_operand(&mut self, value: ValueId, widens: bool) -> MatrixOperand {
        let shape = self.graph.ty(value).shape.clone();
        let (row, column) = (axis_symbol(shape.len() - 2), axis_symbol(shape.len() - 1));
        let axes = axes_over(&shape, 0);
        let ranges = self.table(&[&axes]);
        let (mut source, mut coords) = (value, axis_exprs(0..shape.len()));
        loop {
            if let Some(buffer) = self.home(source) {
                let access = self.access(source, buffer, &expr_indices(&coords), &ranges);
                if let Some(operand) = strided(&access, row, column) {
                    return operand;
                }
                break;
            }
            let Some(node) = self.producer(source) else { break };
            if let Op::View(map) = &node.op {
                let replace = |symbol: Symbol| coords.get(symbol.index as usize).cloned();
                let only_axes = |symbol: Symbol| match symbol.kind {
                    crate::symbolic::SymbolKind::Axis => replace(symbol),
                    crate::symbolic::SymbolKind::Size => None,
                };
                coords = map.iter().map(|expr| expr.substitute(&only_axes, &ranges)).collect();
            } else if !(widens && is_widening(self.graph, node)) {
                break;
            }
            source = node.inputs[0];
        }
        let buffer = match self.homes[value] {
            Some(buffer) => buffer,
            None => self.realize_now(value),
        };
        let access = self.access(value, buffer, &expr_indices(&axis_exprs(0..shape.len())), &ranges);
        strided(&access, row, column).expect("a position in a buffer is a sum of strides")
    }

    fn convolution(&mut self, node: &'a Node, conv: &Conv) {
        let value = node.outputs[0];
        let ty = self.graph.ty(value).clone();
        let left = self.bytes.left(value).unwrap_or(node.inputs[0]);
        let (input, input_channels) = if self.layouts.turns_input(value) {
            (self.turned_copy(left), Channels::Last)
        } else {
            (self.realize_now(left), self.layouts.of(left))
        };
        let weight = self.realize_now(node.inputs[1]);
        let output_channels = self.layouts.of(value);
        let axes = axes_over(&output_channels.in_memory(&ty.shape), 0);
        let target = self.new_home(value);
        let epilogue = self.plain_epilogue(&axes, target, ty.dtype);
        let (conv, dtype) = (conv.clone(), ty.dtype);
        let kind =
            Convolution { axes, conv, input, input_channels, output_channels, weight, dtype, epilogue };
        self.run_kernel(Some(node), "conv", KernelKind::Convolution(kind));
    }

    // --- rows ----------------------------------------------------------------------------------------------------

    fn rows(&mut self, node: &'a Node, op: AxisOp, axis: usize) {
        let ty = self.graph.ty(node.inputs[0]).clone();
        let inputs = vec![self.realize_now(node.inputs[0])];
        let outputs = node.outputs.iter().map(|output| self.new_home(*output)).collect();
        let operation = AxisKernel {
            op,
            dtype: ty.dtype,
            inputs,
            outputs,
            outer: Expr::product(&ty.shape[..axis]),
            length: ty.shape[axis].clone(),
            inner: Expr::product(&ty.shape[axis + 1..]),
        };
        self.run_kernel(Some(node), "rows", KernelKind::AxisOp(operation));
    }

    fn matrices(&mut self, node: &'a Node, routine: Routine) {
        let ty = self.graph.ty(node.inputs[routine.matrix()]).clone();
        let last = ty.rank() - 2;
        let inputs = node.inputs.iter().map(|input| self.realize_now(*input)).collect();
        let outputs = node.outputs.iter().map(|output| self.new_home(*output)).collect();
        let operation = AxisKernel {
            op: AxisOp::Matrices(routine),
            dtype: ty.dtype,
            inputs,
            outputs,
            outer: Expr::product(&ty.shape[..last]),
            length: ty.shape[last].clone(),
            inner: ty.shape[last + 1].clone(),
        };
        self.run_kernel(Some(node), routine.name(), KernelKind::AxisOp(operation));
    }

    fn fourier(&mut self, node: &'a Node, fourier: Fourier) {
        let ty = self.graph.ty(node.inputs[0]).clone();
        let inputs = node.inputs.iter().map(|input| self.realize_now(*input)).collect();
        let outputs = vec![self.new_home(node.outputs[0])];
        let operation = AxisKernel {
            op: AxisOp::Fourier(fourier),
            dtype: ty.dtype,
            inputs,
            outputs,
            outer: Expr::product(&ty.shape[..ty.rank() - fourier.operand().len()]),
            length: Expr::int(fourier.length),
            inner: Expr::int(1),
        };
        self.run_kernel(Some(node), "fourier", KernelKind::AxisOp(operation));
    }

    fn recurrent(&mut self, node: &'a Node, own: Recurrent) {
        let ty = self.graph.ty(node.inputs[0]).clone();
        let (steps, batch) = own.steps_and_batch(&ty.shape).expect("a verified graph");
        let operation = AxisKernel {
            op: AxisOp::Recurrent(own),
            dtype: ty.dtype,
            inputs: node.inputs.iter().map(|input| self.realize_now(*input)).collect(),
            outputs: node.outputs.iter().map(|output| self.new_home(*output)).collect(),
            outer: batch.clone(),
            length: steps.clone(),
            inner: Expr::int(own.hidden),
        };
        self.run_kernel(Some(node), "recurrent", KernelKind::AxisOp(operation));
    }

    fn search_sorted(&mut self, node: &'a Node, right: bool) {
        let sorted = self.graph.ty(node.inputs[0]).clone();
        let values = self.graph.ty(node.inputs[1]).clone();
        let last = sorted.rank() - 1;
        let inputs = node.inputs.iter().map(|input| self.realize_now(*input)).collect();
        let outputs = vec![self.new_home(node.outputs[0])];
        let operation = AxisKernel {
            op: AxisOp::SearchSorted { right },
            dtype: sorted.dtype,
            inputs,
            outputs,
            outer: Expr::product(&sorted.shape[..last]),
            length: sorted.shape[last].clone(),
            inner: values.shape[last].clone(),
        };
        self.run_kernel(Some(node), "search_sorted", KernelKind::AxisOp(operation));
    }

    fn external(&mut self, node: &'a Node, name: &str, by: Elsewhere) {
        let shape = |scope: &Self, value: ValueId| scope.graph.ty(value).shape.clone();
        let inputs =
            node.inputs.iter().map(|value| (self.realize_now(*value), shape(self, *value))).collect();
        let outputs = node.outputs.iter().map(|value| (self.new_home(*value), shape(self, *value))).collect();
        let kernel = ExternKernel { by, inputs, outputs };
        self.run_kernel(Some(node), name, KernelKind::Extern(kernel));
    }

    // --- control flow --------------------------------------------------------------------------------------------

    fn cond(&mut self, node: &'a Node, then: &'a Graph, otherwise: &'a Graph) {
        let buffers: Vec<BufferId> = node.inputs.iter().map(|input| self.realize_now(*input)).collect();
        let targets: Vec<BufferId> = node.outputs.iter().map(|output| self.new_home(*output)).collect();
        let then = self.body(then, &buffers[1..], &targets);
        let otherwise = self.body(otherwise, &buffers[1..], &targets);
        self.steps.push(Step::If { predicate: buffers[0], then, otherwise });
    }

    fn while_loop(&mut self, node: &'a Node, condition: &'a Graph, body: &'a Graph, carried: usize) {
        let mut buffers: Vec<BufferId> = node.inputs.iter().map(|input| self.realize_now(*input)).collect();
        for (position, output) in node.outputs.iter().enumerate().take(carried) {
            let current = self.new_home(*output);
            self.copy_buffer(buffers[position], current);
            buffers[position] = current;
        }
        let predicate = self.temporary(crate::dtype::DType::Bool, vec![], "predicate");
        let condition = self.body(condition, &buffers, &[predicate]);
        let next: Vec<BufferId> = (0..carried)
            .map(|position| {
                let buffer = &self.program.buffers[buffers[position]];
                let (dtype, shape) = (buffer.dtype, buffer.shape.clone());
                self.temporary(dtype, shape, "next")
            })
            .collect();
        let mut body = self.body(body, &buffers, &next);
        let outside = std::mem::take(self.steps);
        for (from, to) in next.iter().zip(&buffers) {
            self.copy_buffer(*from, *to);
        }
        body.extend(std::mem::replace(self.steps, outside));
        self.steps.push(Step::Loop { condition, predicate, body });
    }

    pub(super) fn temporary(&mut self, dtype: crate::dtype::DType, shape: Vec<Expr>, name: &str) -> BufferId {
        self.program.buffers.push(Buffer {
            dtype,
            shape,
            storage: Storage::Temporary,
            name: name.to_owned(),
            is_complex: false,
        })
    }

    /// The steps of a body that reads `inputs` and writes its results to `targets`.
    fn body(&mut self, body: &'a Graph, inputs: &[BufferId], targets: &[BufferId]) -> Vec<Step> {
        let mut homes = SecondaryMap::new();
        for (input, buffer) in body.inputs.iter().zip(inputs) {
            homes[input.value] = Some(*buffer);
        }
        let mut steps = Vec::new();
        let targets: Vec<Option<BufferId>> = targets.iter().copied().map(Some).collect();
        let facts = (self.ranges, self.target);
        let (program, questions) = (&mut *self.program, &mut *self.questions);
        let mut scope = Scope::new(body, program, facts, questions, homes, &mut steps);
        scope.run(&targets);
        steps
    }
}

/// The position within the reduced axes, row-major.
fn linear_position(inner: &[Axis]) -> Expr {
    inner.iter().fold(Expr::int(0), |position, axis| &(&position * &axis.extent) + &Expr::sym(axis.symbol))
}

/// A store whose coordinates name every axis plainly writes each element at most once, whatever those say that data decides.
fn is_injective(place: &[Index], axes: &[Axis]) -> bool {
    axes.iter().all(|axis| {
        axis.extent.is(1)
            || place.iter().any(|index| match index {
                Index::Expr(expr) => {
                    let others = axes.iter().filter(|other| other.symbol != axis.symbol);
                    expr.affine_in(axis.symbol)
                        .is_some_and(|(coefficient, _)| coefficient.as_int().is_some_and(|c| c != 0))
                        && others.clone().all(|other| !expr.mentions(other.symbol))
                }
                Index::Term(_) => false,
            })
    })
}

pub(super) fn strided(access: &Access, row: Symbol, column: Symbol) -> Option<MatrixOperand> {
    let (row_stride, rest) = access.offset.affine_in(row)?;
    let (column_stride, offset) = rest.affine_in(column)?;
    let plain = !row_stride.mentions(column) && !row_stride.mentions(row);
    plain.then_some(MatrixOperand { buffer: access.buffer, offset, row_stride, column_stride })
}
