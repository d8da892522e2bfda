//! The loop level: buffers, and kernels that are loop nests over symbolic ranges, contractions with an epilogue, or
//! attention.
//!
//! Values of the graph have become buffers; views have become coordinates. Within a kernel, computation is a list of
//! [`Term`]s in single assignment form evaluated at one position of the iteration space. Knows no C++ and no devices.

mod access;
mod attention;
pub mod bounds;
mod conv;
mod external;
pub(crate) mod inhabited;
mod names;
mod program;
mod row_epilogue;
pub mod text;
mod verify;
pub mod work;

pub use access::{Access, Index};
pub use attention::Attention;
pub use conv::ConvShape;
pub use external::ExternKernel;
pub use verify::verify;

use crate::dtype::DType;
use crate::fourier::Fourier;
use crate::graph::Guard as SizeGuard;
use crate::graph::{
    BinaryOp, Combine, Constant, ConstantId, Conv, Origin, ReduceOp, Routine, Scalar, ScanOp, SymbolInfo,
    UnaryOp,
};
use crate::symbolic::{Expr, Symbol};
use cranelift_entity::{PrimaryMap, entity_impl};

/// A buffer: row-major contiguous memory for one tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(u32);
entity_impl!(BufferId, "b");

/// Where a buffer lives.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// The caller's input at this position. Read only.
    Input(usize),
    /// The caller's output at this position. Written once, may be read afterwards.
    Output(usize),
    /// The caller's mutable state at this position.
    State(usize),
    /// The seed and the offset of the run's random numbers. Read only.
    Generator,
    /// A constant, row-major as the graph has it.
    Constant(ConstantId),
    /// The arena, for as long as it is needed.
    Temporary,
    /// A worker's own scratch within one kernel, holding one row; the leading axes that count rows are not stored.
    Row {
        /// Number of leading axes that are not stored.
        outer: usize,
    },
}

impl Storage {
    /// Whether it is inside one kernel.
    pub fn is_row(self) -> bool {
        matches!(self, Storage::Row { .. })
    }
}

/// A buffer's type, place and name.
#[derive(Clone, PartialEq, Debug)]
pub struct Buffer {
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub shape: Vec<Expr>,
    /// Where it lives.
    pub storage: Storage,
    /// A name for people and generated code, or empty.
    pub name: String,
    /// Whether its elements are complex numbers to the caller: their parts are its last axis, of two.
    pub is_complex: bool,
}

impl Buffer {
    /// Its sizes to the caller, to whom the parts of complex numbers are no axis.
    pub fn sizes_outside(&self) -> &[Expr] {
        match self.shape.split_last() {
            Some((_, sizes)) if self.is_complex => sizes,
            _ => &self.shape,
        }
    }
}

/// One loop: an axis symbol that runs over `0 .. extent`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Axis {
    /// The symbol in index expressions.
    pub symbol: Symbol,
    /// Number of iterations.
    pub extent: Expr,
}

/// A term by its position in its stage.
pub type TermId = usize;

/// An accumulator by its position in its nest.
pub type AccumulatorId = usize;

/// A value at one position of the iteration space. Half types are held as `f32`.
#[derive(Clone, PartialEq, Debug)]
pub enum Term {
    /// A number.
    Literal(Scalar),
    /// The value of an integer expression.
    Index(Expr),
    /// An element of a buffer; where a guard does not hold, `fill`.
    Load {
        /// Which element.
        access: Access,
        /// Conditions under which the element exists.
        guards: Vec<Guard>,
        /// The value where it does not.
        fill: Scalar,
    },
    /// Function of one term.
    Unary(UnaryOp, TermId),
    /// Function of two terms of one type.
    Binary(BinaryOp, TermId, TermId),
    /// Choice by a boolean.
    Select(TermId, TermId, TermId),
    /// Conversion.
    Cast(TermId),
    /// Whether all guards hold.
    Inside(Vec<Guard>),
    /// An index term checked against a size: outside is a fault of the run at `site`.
    CheckIndex {
        /// The index (`i64`).
        index: TermId,
        /// Size of the axis.
        size: Expr,
        /// Negative ones count from the end.
        wraps: bool,
        /// Which operator of the model is to blame: an entry of [`Program::sites`].
        site: usize,
    },
    /// The finished value of an accumulator of an earlier stage.
    Accumulated(AccumulatorId),
    /// A term of an earlier stage without inner axes.
    Earlier {
        /// The stage.
        stage: usize,
        /// Its term.
        term: TermId,
    },
    /// The sum of a contraction, in its epilogue.
    Sum,
}

/// `0 <= coordinate < size`.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Guard {
    /// The coordinate.
    pub coordinate: Expr,
    /// The size.
    pub size: Expr,
}

/// A term and its element type.
#[derive(Clone, PartialEq, Debug)]
pub struct TypedTerm {
    /// What it is.
    pub term: Term,
    /// Its element type as the graph has it (half types included).
    pub dtype: DType,
}

/// What a stage does with its terms.
#[derive(Clone, PartialEq, Debug)]
pub enum Effect {
    /// Writes an element.
    Store {
        /// Where.
        access: Access,
        /// What.
        value: TermId,
        /// How it meets what is there.
        combine: Combine,
    },
    /// Feeds an accumulator.
    Accumulate {
        /// Which.
        accumulator: AccumulatorId,
        /// With what.
        value: TermId,
    },
}

/// Terms and effects at each position of `axes`, inside the axes of the nest.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Stage {
    /// Inner axes, outermost first; none for what happens once per position of the nest's axes.
    pub axes: Vec<Axis>,
    /// Terms; each uses only earlier ones.
    pub terms: Vec<TypedTerm>,
    /// Effects, in order.
    pub effects: Vec<Effect>,
}

/// A running reduction over the inner axes of one stage.
#[derive(Clone, PartialEq, Debug)]
pub struct Accumulator {
    /// The reduction.
    pub op: ReduceOp,
    /// Element type of what is reduced.
    pub dtype: DType,
    /// The stage that feeds it.
    pub stage: usize,
    /// For positions ([`ReduceOp::is_arg`]): the expression whose value is kept.
    pub position: Option<Expr>,
}

/// Loops over `axes`; at each position the stages run one after the other, each over its own inner axes.
///
/// Different positions of `axes` are independent and can run in any order and in parallel, unless `serial`.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Nest {
    /// Outer axes, outermost first. Symbols are `i0, i1, ...`.
    pub axes: Vec<Axis>,
    /// Stages in order. Their axes' symbols continue the numbering.
    pub stages: Vec<Stage>,
    /// Accumulators.
    pub accumulators: Vec<Accumulator>,
    /// Whether positions must run in order (scatters whose targets may coincide).
    pub serial: bool,
}

/// The strided matrix operand of a contraction: element (row, column) at batch position `i0, i1, ...` is at
/// `offset + row * row_stride + column * column_stride`.
#[derive(Clone, PartialEq, Debug)]
pub struct MatrixOperand {
    /// The buffer.
    pub buffer: BufferId,
    /// Offset over the batch axes.
    pub offset: Expr,
    /// Elements between rows.
    pub row_stride: Expr,
    /// Elements between columns.
    pub column_stride: Expr,
}

/// A batched matrix product. The epilogue runs at each position of (batch axes..., row, column) with the sum.
#[derive(Clone, PartialEq, Debug)]
pub struct MatMul {
    /// Batch axes, then row, then column.
    pub axes: Vec<Axis>,
    /// Length of the sums.
    pub depth: Expr,
    /// Left operand: rows by depth.
    pub a: MatrixOperand,
    /// Right operand: depth by columns.
    pub b: MatrixOperand,
    /// Element type. The operands are of it, or are numbers of it in a narrower type.
    pub dtype: DType,
    /// What happens to each sum.
    pub epilogue: Stage,
    /// What happens to each row of results once the epilogue has seen all of it: loops over the batch axes and the row.
    pub row_epilogue: Option<Nest>,
}

impl MatMul {
    /// Whether an operand is stored in a narrower type than that of the product, which widens it.
    pub fn widens(&self, program: &Program) -> bool {
        [&self.a, &self.b].iter().any(|operand| program.buffers[operand.buffer].dtype != self.dtype)
    }

    /// Whether neighbouring elements of the right operand lie along the depth.
    pub fn right_by_depth(&self) -> bool {
        self.b.row_stride.is(1) && !self.b.column_stride.is(1)
    }
}

/// Where the axis of channels is among those of a tensor in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub enum Channels {
    /// `[n, c, spatial...]`, as programs have it.
    #[default]
    First,
    /// `[n, spatial..., c]`.
    Last,
}

impl Channels {
    /// What belongs to the axes of `[n, c, spatial...]`, in the order in which they lie in memory.
    pub fn in_memory<T: Clone>(self, axes: &[T]) -> Vec<T> {
        let mut ordered = axes.to_vec();
        if self == Channels::Last && ordered.len() > 1 {
            ordered[1..].rotate_left(1);
        }
        ordered
    }

    /// Position of the axis of channels among `rank` axes.
    pub fn axis(self, rank: usize) -> usize {
        match self {
            Channels::First => 1,
            Channels::Last => rank - 1,
        }
    }
}

/// A convolution. The epilogue runs at each position of its axes with the sum.
#[derive(Clone, PartialEq, Debug)]
pub struct Convolution {
    /// Image, output channel and spatial axes, in the order that `output_channels` says.
    pub axes: Vec<Axis>,
    /// Parameters.
    pub conv: Conv,
    /// Input, of an image, channel and spatial axes.
    pub input: BufferId,
    /// Where channels are in the input.
    pub input_channels: Channels,
    /// Where channels are among the axes, and in what the epilogue writes.
    pub output_channels: Channels,
    /// Weight, as the graph has it.
    pub weight: BufferId,
    /// Element type.
    pub dtype: DType,
    /// What happens to each sum.
    pub epilogue: Stage,
}

impl Convolution {
    /// The axis of images.
    pub fn image(&self) -> &Axis {
        &self.axes[0]
    }

    /// The axis of output channels.
    pub fn channel(&self) -> &Axis {
        &self.axes[self.output_channels.axis(self.axes.len())]
    }

    /// The spatial axes of the output.
    pub fn spatial(&self) -> &[Axis] {
        let end = self.axes.len();
        match self.output_channels {
            Channels::First => &self.axes[2..],
            Channels::Last => &self.axes[1..end - 1],
        }
    }

    /// Whether products run over taps first and over the channels of each then, which lie side by side in the input.
    pub fn depth_is_by_tap(&self) -> bool {
        self.input_channels == Channels::Last
    }
}

/// An operation on rows along one axis of contiguous buffers `[outer, length, inner]`.
#[derive(Clone, PartialEq, Debug)]
pub struct RowOperation {
    /// What is done.
    pub op: RowOp,
    /// Element type of the input.
    pub dtype: DType,
    /// Input buffers.
    pub inputs: Vec<BufferId>,
    /// Output buffers.
    pub outputs: Vec<BufferId>,
    /// Product of the sizes before the axis.
    pub outer: Expr,
    /// Size of the axis.
    pub length: Expr,
    /// Product of the sizes after the axis.
    pub inner: Expr,
}

/// What a [`RowOperation`] does.
#[derive(Clone, PartialEq, Debug)]
pub enum RowOp {
    /// Running reduction.
    Scan(ScanOp),
    /// Stable sort with indices.
    Sort {
        /// Largest first.
        descending: bool,
    },
    /// Insertion points: inputs are sorted rows of `length`, and values, `inner` of them per row.
    SearchSorted {
        /// Right of equal elements.
        right: bool,
    },
    /// The transform of each of `outer` rows of `length` numbers, with `inner` 1; inputs are rows and roots.
    Fourier(Fourier),
    /// A routine on each of `outer` matrices of `length` rows and `inner` columns.
    Matrices(Routine),
}

/// What a kernel computes.
#[derive(Clone, PartialEq, Debug)]
pub enum KernelKind {
    /// Fused loops.
    Nest(Nest),
    /// Matrix product.
    MatMul(MatMul),
    /// Convolution.
    Convolution(Convolution),
    /// Attention.
    Attention(Attention),
    /// Rows.
    Rows(RowOperation),
    /// A function of the user's project.
    Extern(ExternKernel),
}

/// A kernel of a program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(u32);
entity_impl!(KernelId, "k");

/// A kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Kernel {
    /// Name, from the model's own names; unique in its program once [`Program::number_kernels`] has run.
    pub name: String,
    /// The calls of the user's program that it computes, each once.
    pub origins: Vec<Origin>,
    /// What it computes.
    pub kind: KernelKind,
}

/// One step of a program.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Runs a kernel.
    Kernel(KernelId),
    /// Reads a size.
    Read {
        /// `i64`, of one element.
        buffer: BufferId,
        /// What has its value from here on.
        symbol: Symbol,
        /// Where the user's program reads it, for messages; may be empty.
        place: String,
    },
    /// Fails the run where a boolean buffer of one element is false.
    Assert(BufferId, String),
    /// Fails the run where the condition does not hold.
    Require(SizeGuard),
    /// Runs one of two lists of steps.
    If {
        /// Boolean of one element.
        predicate: BufferId,
        /// Where true.
        then: Vec<Step>,
        /// Where false.
        otherwise: Vec<Step>,
    },
    /// Runs `condition`, then, while the predicate holds, `body` and `condition` again.
    Loop {
        /// Computes the predicate.
        condition: Vec<Step>,
        /// Boolean of one element.
        predicate: BufferId,
        /// One iteration.
        body: Vec<Step>,
    },
}

/// A program at loop level.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Program {
    /// The model's name.
    pub name: String,
    /// Size symbols.
    pub symbols: Vec<SymbolInfo>,
    /// Conditions on sizes that are known when a run begins; checked then.
    pub guards: Vec<SizeGuard>,
    /// Buffers.
    pub buffers: PrimaryMap<BufferId, Buffer>,
    /// Tensors known at compile time.
    pub constants: PrimaryMap<ConstantId, Constant>,
    /// The caller's inputs in order.
    pub inputs: Vec<BufferId>,
    /// All inputs of the graph in order, states among them.
    pub graph_inputs: Vec<BufferId>,
    /// Outputs in order, without states.
    pub outputs: Vec<BufferId>,
    /// States in order with their first values.
    pub states: Vec<(BufferId, ConstantId)>,
    /// Kernels. Each is run by one step; after [`Program::number_kernels`] they are in the order of the steps.
    pub kernels: PrimaryMap<KernelId, Kernel>,
    /// Steps in order.
    pub steps: Vec<Step>,
    /// Operators that check indices at run time, as text for messages.
    pub sites: Vec<String>,
}

impl Program {
    /// A size in terms of the symbols' names, for messages.
    pub fn size_text(&self, size: &Expr) -> String {
        crate::graph::size_text(&self.symbols, size)
    }
}

impl Stage {
    /// Appends a term, or finds an equal one.
    pub fn term(&mut self, term: Term, dtype: DType) -> TermId {
        let typed = TypedTerm { term, dtype };
        match self.terms.iter().position(|other| *other == typed) {
            Some(position) => position,
            None => {
                self.terms.push(typed);
                self.terms.len() - 1
            }
        }
    }

    /// All loads, with their guards.
    pub fn loads(&self) -> impl Iterator<Item = (&Access, &[Guard])> {
        self.terms.iter().filter_map(|typed| {
            let Term::Load { access, guards, .. } = &typed.term else { return None };
            Some((access, guards.as_slice()))
        })
    }

    /// The accesses of all loads and stores.
    pub fn accesses(&self) -> impl Iterator<Item = &Access> {
        let loads = self.loads().map(|(access, _)| access);
        let stores = self.effects.iter().filter_map(|effect| match effect {
            Effect::Store { access, .. } => Some(access),
            Effect::Accumulate { .. } => None,
        });
        loads.chain(stores)
    }

    /// What it reads and writes, to be changed.
    pub fn accesses_mut(&mut self) -> impl Iterator<Item = &mut Access> {
        let loads = self.terms.iter_mut().filter_map(|typed| {
            let Term::Load { access, .. } = &mut typed.term else { return None };
            Some(access)
        });
        let stores = self.effects.iter_mut().filter_map(|effect| match effect {
            Effect::Store { access, .. } => Some(access),
            Effect::Accumulate { .. } => None,
        });
        loads.chain(stores)
    }

    /// Buffers that are read.
    pub fn reads(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.loads().map(|(access, _)| access.buffer)
    }

    /// Buffers that are written.
    pub fn writes(&self) -> impl Iterator<Item = BufferId> + '_ {
        self.effects.iter().filter_map(|effect| match effect {
            Effect::Store { access, .. } => Some(access.buffer),
            Effect::Accumulate { .. } => None,
        })
    }
}

impl Kernel {
    /// The stages of loops, or the epilogue and then those of the row epilogue, to be changed.
    pub fn stages_mut(&mut self) -> impl Iterator<Item = &mut Stage> {
        let [first, then] = self.stage_lists_mut();
        first.iter_mut().chain(then)
    }

    /// The stages of loops, or the epilogue and then those of the row epilogue.
    pub fn stages(&self) -> impl Iterator<Item = &Stage> {
        let [first, then]: [&[Stage]; 2] = match &self.kind {
            KernelKind::Nest(nest) => [&nest.stages, &[]],
            KernelKind::MatMul(matmul) => {
                let rows = matmul.row_epilogue.as_ref();
                [std::slice::from_ref(&matmul.epilogue), rows.map_or(&[], |rows| &rows.stages)]
            }
            KernelKind::Convolution(conv) => [std::slice::from_ref(&conv.epilogue), &[]],
            KernelKind::Attention(attention) => [&attention.stages, &[]],
            KernelKind::Rows(_) | KernelKind::Extern(_) => [&[], &[]],
        };
        first.iter().chain(then)
    }

    /// The stages that may refer to the stage of this number, and its place among them.
    pub fn stages_beside_mut(&mut self, stage: usize) -> (&mut [Stage], usize) {
        let [first, then] = self.stage_lists_mut();
        let count = first.len();
        if stage < count { (first, stage) } else { (then, stage - count) }
    }

    fn stage_lists_mut(&mut self) -> [&mut [Stage]; 2] {
        match &mut self.kind {
            KernelKind::Nest(nest) => [&mut nest.stages, &mut []],
            KernelKind::MatMul(matmul) => {
                let rows = matmul.row_epilogue.as_mut();
                let rows: &mut [Stage] = rows.map_or(&mut [], |rows| &mut rows.stages);
                [std::slice::from_mut(&mut matmul.epilogue), rows]
            }
            KernelKind::Convolution(conv) => [std::slice::from_mut(&mut conv.epilogue), &mut []],
            KernelKind::Attention(attention) => [&mut attention.stages, &mut []],
            KernelKind::Rows(_) | KernelKind::Extern(_) => [&mut [], &mut []],
        }
    }

    /// Buffers that are read, in order of first use.
    pub fn reads(&self) -> Vec<BufferId> {
        let mut buffers: Vec<BufferId> = match &self.kind {
            KernelKind::Nest(_) => vec![],
            KernelKind::MatMul(matmul) => vec![matmul.a.buffer, matmul.b.buffer],
            KernelKind::Convolution(conv) => vec![conv.input, conv.weight],
            KernelKind::Attention(own) => vec![own.queries.buffer, own.keys.buffer, own.values.buffer],
            KernelKind::Rows(rows) => rows.inputs.clone(),
            KernelKind::Extern(own) => own.inputs.iter().map(|(buffer, _)| *buffer).collect(),
        };
        for stage in self.stages() {
            buffers.extend(stage.reads());
            for effect in &stage.effects {
                // Combining stores read what is there; indirect ones leave most of it as it is.
                if let Effect::Store { access, combine, .. } = effect
                    && (*combine != Combine::Set || !access.is_direct())
                {
                    buffers.push(access.buffer);
                }
            }
        }
        unique(buffers)
    }

    /// Buffers of which it keeps one row in a worker, in order of first use.
    pub fn rows(&self, program: &Program) -> Vec<BufferId> {
        let is_row = |id: &BufferId| matches!(program.buffers[*id].storage, Storage::Row { .. });
        unique(self.reads().into_iter().chain(self.writes()).filter(is_row).collect())
    }

    /// Buffers that are written, in order of first use.
    pub fn writes(&self) -> Vec<BufferId> {
        let mut buffers: Vec<BufferId> = self.stages().flat_map(Stage::writes).collect();
        if let KernelKind::Rows(rows) = &self.kind {
            buffers.extend(&rows.outputs);
        }
        if let KernelKind::Extern(own) = &self.kind {
            buffers.extend(own.outputs.iter().map(|(buffer, _)| *buffer));
        }
        unique(buffers)
    }
}

fn unique(buffers: Vec<BufferId>) -> Vec<BufferId> {
    let mut seen = std::collections::BTreeSet::new();
    buffers.into_iter().filter(|buffer| seen.insert(*buffer)).collect()
}
