//! What must hold for a kernel to stay within its buffers: expressions that are never negative, over sizes and axes.

use crate::fourier::{Fourier, Plan};
use crate::graph::{Conv, Part, Recurrent, Routine};
use crate::loops::{
    Access, Axis, AxisKernel, AxisOp, BufferId, Convolution, Effect, Guard, Index, Kernel, KernelKind,
    MatrixOperand, Nest, Program, Stage, Storage, Term, TermId,
};
use crate::symbolic::{Expr, Ranges, Symbol};

/// Which access of a kernel a goal is about.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// A load by term `term` of stage `stage`, along an axis of the buffer where that is known.
    Load { stage: usize, term: TermId, axis: Option<usize> },
    /// The store that is effect `effect` of stage `stage`.
    Store { stage: usize, effect: usize, axis: Option<usize> },
    /// An operand of a contraction or an operation on rows.
    Operand,
}

impl Place {
    pub(super) fn verb(self) -> &'static str {
        match self {
            Place::Load { .. } => "reads",
            Place::Store { .. } => "writes",
            Place::Operand => "takes",
        }
    }
}

/// An expression that must never be negative.
pub(super) struct Goal {
    pub(super) place: Place,
    pub(super) buffer: BufferId,
    pub(super) expr: Expr,
    /// Loops around the access, and positions that stand for what is only known when it runs.
    pub(super) axes: Vec<Axis>,
    /// What holds where the access happens.
    pub(super) guards: Vec<Guard>,
    /// Whether it says that an axis along which an index is looked up has elements at all. Programs may look up what there
    /// is none of, and fail when they run.
    pub(super) of_index: bool,
}

impl Goal {
    /// Whether it says the same of every position.
    pub(super) fn is_of_sizes(&self) -> bool {
        self.axes.iter().all(|axis| !self.expr.mentions(axis.symbol))
    }
}

/// First number of the axes that stand for checked indices and for coordinates within a guard.
const FRESH: u32 = 1 << 16;

/// An axis that no loop has.
pub(in crate::loops) fn fresh(number: usize, extent: Expr) -> Axis {
    let number = u32::try_from(number).unwrap_or(u32::MAX - FRESH);
    Axis { symbol: Symbol::axis(FRESH + number), extent }
}

/// All goals of a kernel.
pub(super) fn of_kernel(program: &Program, kernel: &Kernel, ranges: &dyn Ranges) -> Vec<Goal> {
    let mut goals = Goals { program, ranges, all: vec![] };
    match &kernel.kind {
        KernelKind::Nest(nest) => {
            goals.nest(nest, 0);
        }
        KernelKind::MatMul(matmul) => {
            goals.operands(kernel);
            goals.stage((std::slice::from_ref(&matmul.epilogue), 0), 0, &matmul.axes);
            if let Some(rows) = &matmul.row_epilogue {
                goals.nest(rows, 1);
            }
        }
        KernelKind::Convolution(conv) => {
            goals.convolution(conv);
            goals.stage((std::slice::from_ref(&conv.epilogue), 0), 0, &conv.axes);
        }
        KernelKind::Attention(own) => {
            goals.operands(kernel);
            goals.stage((&own.stages, 0), 0, &own.score_axes());
            goals.stage((&own.stages, 0), 1, &own.axes);
        }
        KernelKind::AxisOp(rows) => goals.rows(rows),
        // The function is told of whole tensors.
        KernelKind::Extern(own) => {
            own.tensors().for_each(|(buffer, shape)| goals.fills(*buffer, &Expr::product(shape)));
        }
    }
    goals.all
}

struct Goals<'a> {
    program: &'a Program,
    ranges: &'a dyn Ranges,
    all: Vec<Goal>,
}

/// The size that an index was checked against, wherever the check is.
pub(super) fn checked_size(stages: &[Stage], stage: usize, term: TermId) -> Option<&Expr> {
    match &stages.get(stage)?.terms.get(term)?.term {
        Term::CheckIndex { size, .. } => Some(size),
        Term::Earlier { stage: earlier, term } if *earlier < stage => checked_size(stages, *earlier, *term),
        Term::Earlier { .. }
        | Term::Literal(_)
        | Term::Index(_)
        | Term::Load { .. }
        | Term::Unary(..)
        | Term::Binary(..)
        | Term::Select(..)
        | Term::Cast(_)
        | Term::Inside(_)
        | Term::Accumulated(_)
        | Term::Sum => None,
    }
}

/// The shape of what a buffer holds at a time.
pub(super) fn stored_shape(program: &Program, buffer: BufferId) -> &[Expr] {
    let buffer = &program.buffers[buffer];
    match buffer.storage {
        Storage::Local { outer } => buffer.shape.get(outer..).unwrap_or_default(),
        Storage::Input(_)
        | Storage::Output(_)
        | Storage::State(_)
        | Storage::Constant(_)
        | Storage::Generator
        | Storage::Temporary => &buffer.shape,
    }
}

/// The matrices that a contraction multiplies, each with the loops over it: batch axes, row and column.
pub(super) fn operands(kernel: &Kernel) -> Vec<(&MatrixOperand, Vec<Axis>)> {
    fn over(batch: &[Axis], row: &Axis, column: &Axis) -> Vec<Axis> {
        batch.iter().chain([row, column]).cloned().collect()
    }
    match &kernel.kind {
        KernelKind::MatMul(own) => {
            let [batch @ .., row, column] = own.axes.as_slice() else { return vec![] };
            let depth = fresh(0, own.depth.clone());
            vec![(&own.a, over(batch, row, &depth)), (&own.b, over(batch, &depth, column))]
        }
        KernelKind::Attention(own) => {
            let [batch @ .., query, column] = own.axes.as_slice() else { return vec![] };
            let depth = fresh(0, own.depth.clone());
            vec![
                (&own.queries, over(batch, query, &depth)),
                (&own.keys, over(batch, &depth, own.key())),
                (&own.values, over(batch, own.key(), column)),
            ]
        }
        KernelKind::Nest(_) | KernelKind::Convolution(_) | KernelKind::AxisOp(_) | KernelKind::Extern(_) => {
            vec![]
        }
    }
}

/// Where an element of a matrix is, in loops over it.
pub(super) fn offset_of(operand: &MatrixOperand, axes: &[Axis]) -> Option<Expr> {
    let at = |axis: &Axis, stride: &Expr| &Expr::sym(axis.symbol) * stride;
    let [.., row, column] = axes else { return None };
    Some(&(&operand.offset + &at(row, &operand.row_stride)) + &at(column, &operand.column_stride))
}

/// What must not be negative for a matrix to stay within its buffer.
pub(super) fn of_operand(program: &Program, operand: &MatrixOperand, axes: &[Axis]) -> Vec<Expr> {
    let Some(offset) = offset_of(operand, axes) else { return vec![] };
    let count = Expr::product(stored_shape(program, operand.buffer));
    let last = &(&count - 1) - &offset;
    vec![offset, last]
}

impl Goals<'_> {
    fn stored_shape(&self, buffer: BufferId) -> &[Expr] {
        stored_shape(self.program, buffer)
    }

    /// Loops whose first stage has this number in the kernel.
    fn nest(&mut self, nest: &Nest, first: usize) {
        for (index, stage) in nest.stages.iter().enumerate() {
            let axes: Vec<Axis> = nest.axes.iter().chain(&stage.axes).cloned().collect();
            self.stage((&nest.stages, first), index, &axes);
        }
    }

    /// One of some stages, of which the first has this number in the kernel.
    fn stage(&mut self, (stages, first): (&[Stage], usize), index: usize, axes: &[Axis]) {
        let stage = &stages[index];
        let number = first + index;
        for (term, typed) in stage.terms.iter().enumerate() {
            if let Term::Load { access, guards, .. } = &typed.term {
                let place = |axis| Place::Load { stage: number, term, axis };
                self.access(access, guards, stages, index, axes, &place);
            }
        }
        for (effect, own) in stage.effects.iter().enumerate() {
            if let Effect::Store { access, .. } = own {
                let place = |axis| Place::Store { stage: number, effect, axis };
                self.access(access, &[], stages, index, axes, &place);
            }
        }
    }

    /// Each coordinate within its axis; where only the offset is left, the offset within the buffer.
    fn access(
        &mut self,
        access: &Access,
        guards: &[Guard],
        stages: &[Stage],
        stage: usize,
        axes: &[Axis],
        place: &dyn Fn(Option<usize>) -> Place,
    ) {
        let shape = self.stored_shape(access.buffer).to_vec();
        let buffer = access.buffer;
        let of_index = |axis: Option<usize>, goal: &Expr| {
            axis.is_some_and(|axis| {
                matches!(access.coords[axis], Index::Term(_)) && *goal == &shape[axis] - 1
            })
        };
        let mut add = |expr: Expr, axes: &[Axis], axis: Option<usize>| {
            let (axes, guards, of_index) = (axes.to_vec(), guards.to_vec(), of_index(axis, &expr));
            self.all.push(Goal { place: place(axis), buffer, expr, axes, guards, of_index });
        };
        if access.coords.len() == shape.len() {
            for (axis, (coord, size)) in access.coords.iter().zip(&shape).enumerate() {
                match coord {
                    Index::Expr(expr) => {
                        add(expr.clone(), axes, Some(axis));
                        add(&(size - 1) - expr, axes, Some(axis));
                    }
                    Index::Term(term) => {
                        // What fails the check is replaced by 0, which an empty axis does not have either.
                        add(size - 1, axes, Some(axis));
                        let checked = checked_size(stages, stage, *term);
                        add(checked.map_or(Expr::int(-1), |checked| size - checked), axes, Some(axis));
                    }
                }
            }
            return;
        }
        let mut axes = axes.to_vec();
        let mut offset = access.offset.clone();
        for (number, (term, stride)) in access.indirect.iter().enumerate() {
            let Some(size) = checked_size(stages, stage, *term) else {
                add(Expr::int(-1), &axes, None);
                return;
            };
            let axis = fresh(number, size.clone());
            offset = &offset + &(&Expr::sym(axis.symbol) * stride);
            axes.push(axis);
        }
        add(offset.clone(), &axes, None);
        add(&(&Expr::product(&shape) - 1) - &offset, &axes, None);
    }

    fn operand(&mut self, buffer: BufferId, expr: Expr, axes: &[Axis]) {
        let (place, axes, guards) = (Place::Operand, axes.to_vec(), vec![]);
        self.all.push(Goal { place, buffer, expr, axes, guards, of_index: false });
    }

    /// Two sizes that must be one.
    fn equal(&mut self, buffer: BufferId, a: &Expr, b: &Expr) {
        if a != b {
            self.operand(buffer, a - b, &[]);
            self.operand(buffer, b - a, &[]);
        }
    }

    fn operands(&mut self, kernel: &Kernel) {
        for (operand, axes) in operands(kernel) {
            for expr in of_operand(self.program, operand, &axes) {
                self.operand(operand.buffer, expr, &axes);
            }
        }
    }

    /// The kernel checks places against the input's own sizes; what it takes from elsewhere must agree with them.
    fn convolution(&mut self, conv: &Convolution) {
        let input = self.stored_shape(conv.input).to_vec();
        let weight = self.stored_shape(conv.weight).to_vec();
        let Conv { groups, transposed, .. } = conv.conv;
        if conv.axes.len() < 2 || input.len() != conv.axes.len() || weight.len() != conv.axes.len() {
            self.operand(conv.input, Expr::int(-1), &[]);
            return;
        }
        self.equal(conv.input, &input[0], &conv.image().extent);
        let (ins, outs) = if transposed {
            (weight[0].clone(), &weight[1] * groups)
        } else {
            (&weight[1] * groups, weight[0].clone())
        };
        self.equal(conv.weight, &ins, &input[conv.input_channels.axis(input.len())]);
        self.equal(conv.weight, &outs, &conv.channel().extent);
    }

    fn rows(&mut self, rows: &AxisKernel) {
        if let AxisOp::Matrices(routine) = rows.op {
            return self.matrices(routine, rows);
        }
        if let AxisOp::Fourier(fourier) = rows.op {
            return self.fourier(&fourier, rows);
        }
        if let AxisOp::Recurrent(own) = rows.op {
            return self.recurrent(&own, rows);
        }
        let searched = matches!(rows.op, AxisOp::SearchSorted { .. });
        let along = |length: &Expr| &rows.outer * length;
        let whole = &along(&rows.length) * &rows.inner;
        let one_each = matches!(rows.op, AxisOp::NthElement { .. });
        let sizes = |position: usize| match (searched, position) {
            (true, 0) => along(&rows.length),
            (true, _) => along(&rows.inner),
            (false, 1) if one_each => along(&rows.inner),
            (false, _) => whole.clone(),
        };
        if one_each {
            self.operand(rows.inputs[0], &rows.length - 1, &[]);
        }
        for (position, buffer) in rows.inputs.iter().enumerate() {
            self.fills(*buffer, &sizes(position));
        }
        let results = match rows.op {
            AxisOp::Sort(sorting) => &along(&sorting.results(&rows.length)) * &rows.inner,
            AxisOp::Scan(_)
            | AxisOp::NthElement { .. }
            | AxisOp::SearchSorted { .. }
            | AxisOp::Fourier(_)
            | AxisOp::Recurrent(_)
            | AxisOp::Matrices(_) => sizes(1),
        };
        for buffer in &rows.outputs {
            self.fills(*buffer, &results);
        }
    }

    fn matrices(&mut self, routine: Routine, rows: &AxisKernel) {
        let leading = std::slice::from_ref(&rows.outer);
        let count = |part: &Part| Expr::product(&part.shape(leading, &rows.length, &rows.inner));
        let (operands, results) = (routine.operands(), routine.results());
        if rows.inputs.len() != operands.len() || rows.outputs.len() != results.len() {
            rows.inputs.iter().for_each(|buffer| self.operand(*buffer, Expr::int(-1), &[]));
            return;
        }
        for (part, buffer) in operands.iter().zip(&rows.inputs).chain(results.iter().zip(&rows.outputs)) {
            self.fills(*buffer, &count(part));
        }
        if routine.is_of_squares() {
            self.equal(rows.inputs[0], &rows.length, &rows.inner);
        }
        if matches!(routine, Routine::Svd | Routine::Reflections) {
            self.operand(rows.inputs[0], &rows.length - &rows.inner, &[]);
        }
        if routine == Routine::Mode {
            self.operand(rows.inputs[0], &rows.inner - 1, &[]);
        }
    }

    fn fourier(&mut self, fourier: &Fourier, rows: &AxisKernel) {
        let ([x, roots], [out]) = (rows.inputs.as_slice(), rows.outputs.as_slice()) else {
            rows.inputs.iter().for_each(|buffer| self.operand(*buffer, Expr::int(-1), &[]));
            return;
        };
        let of_row = |sizes: Vec<i64>| &rows.outer * sizes.into_iter().product::<i64>();
        self.fills(*x, &of_row(fourier.operand()));
        self.fills(*roots, &Expr::int(Plan::of(fourier, rows.dtype).root_count()));
        self.fills(*out, &of_row(fourier.result()));
    }

    fn recurrent(&mut self, own: &Recurrent, rows: &AxisKernel) {
        let (operands, results) =
            (own.operand_shapes(&rows.length, &rows.outer), own.result_shapes(&rows.length, &rows.outer));
        let fits = (rows.inputs.len(), rows.outputs.len()) == (operands.len(), results.len());
        if !fits || !rows.inner.is(own.hidden) {
            rows.inputs.iter().for_each(|buffer| self.operand(*buffer, Expr::int(-1), &[]));
            return;
        }
        let buffers = rows.inputs.iter().chain(&rows.outputs);
        for (buffer, shape) in buffers.zip(operands.iter().chain(&results)) {
            self.fills(*buffer, &Expr::product(shape));
        }
    }

    fn fills(&mut self, buffer: BufferId, count: &Expr) {
        let own = Expr::product(self.stored_shape(buffer)).simplify(self.ranges);
        self.equal(buffer, &own, &count.simplify(self.ranges));
    }
}
