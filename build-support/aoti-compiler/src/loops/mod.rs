//! The loop level: buffers, and kernels that are loop nests over symbolic ranges, contractions with an epilogue, or
//! attention.
//!
//! Values of the graph have become buffers; views have become coordinates. Within a kernel, computation is a list of
//! [`Term`]s in single assignment form evaluated at one position of the iteration space. Knows no C++ and no devices.

mod access;
mod attention;
pub mod bounds;
mod conv;
mod cover;
mod external;
pub(crate) mod flow;
mod guard;
mod kernel;
mod key;
mod names;
mod program;
mod ranges;
mod row_epilogue;
pub mod scatter;
mod site;
pub mod text;
mod verify;
pub mod work;

pub use access::{Access, Index};
pub use attention::{Attention, OfNothing};
pub use conv::{Channels, ConvShape, Convolution};
pub use external::{Elsewhere, ExternKernel};
pub(crate) use ranges::ranges_over;
pub use site::Site;
pub use verify::verify;

use crate::dtype::DType;
use crate::fourier::Fourier;
use crate::graph::Guard as SizeGuard;
use crate::graph::{
    BinaryOp, Combine, Constant, ConstantId, Origin, Recurrent, ReduceOp, Routine, Scalar, ScanOp,
    SymbolInfo, Ties, UnaryOp,
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
    Local {
        /// Number of leading axes that are not stored.
        outer: usize,
    },
}

impl Storage {
    /// Whether it is inside one kernel.
    pub fn is_local(self) -> bool {
        matches!(self, Storage::Local { .. })
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
        /// What is to blame: an entry of [`Program::sites`].
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

    /// The same of both operands.
    pub fn by_depth(&self) -> [bool; 2] {
        [self.a.column_stride.is(1), self.right_by_depth()]
    }
}

/// An operation on rows along one axis of contiguous buffers `[outer, length, inner]`.
#[derive(Clone, PartialEq, Debug)]
pub struct AxisKernel {
    /// What is done.
    pub op: AxisOp,
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

/// What of each row is sorted, and what is known of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Sorting {
    /// Largest first.
    pub descending: bool,
    /// Elements of the runs that are sorted, each by itself; whole rows without. The last run may be shorter.
    pub run: Option<i64>,
    /// Elements of the runs that are in order already, several of which are one run; nothing is without.
    pub merged: Option<i64>,
    /// How many of the first of each run are results; all are without.
    pub kept: Option<i64>,
}

impl Sorting {
    /// Results of a row of so many elements. Runs of a size that is not known keep nothing.
    pub fn results(&self, length: &Expr) -> Expr {
        match (self.run, self.kept) {
            (_, None) => length.clone(),
            (None, Some(kept)) => Expr::int(kept),
            (Some(run), Some(kept)) => Expr::int(
                length.as_int().map_or(-1, |length| length / run * kept.min(run) + kept.min(length % run)),
            ),
        }
    }
}

/// What a [`AxisKernel`] does.
#[derive(Clone, PartialEq, Debug)]
pub enum AxisOp {
    /// Running reduction.
    Scan(ScanOp),
    /// Stable sort: outputs are values and places, those of the row, or of a second input that has places of its own.
    Sort(Sorting),
    /// The element of a rank in each row: outputs are values and places. Inputs are rows, and ranks where these differ.
    NthElement {
        /// Which of equal elements it is.
        ties: Ties,
        /// The rank of all rows.
        rank: Option<i64>,
    },
    /// Insertion points: inputs are sorted rows of `length`, and values, `inner` of them per row.
    SearchSorted {
        /// Right of equal elements.
        right: bool,
    },
    /// The transform of each of `outer` rows of `length` numbers, with `inner` 1; inputs are rows and roots.
    Fourier(Fourier),
    /// A layer over sequences: `outer` is the batch, `length` the steps, `inner` the hidden units.
    Recurrent(Recurrent),
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
    AxisOp(AxisKernel),
    /// A function of the user's project.
    Extern(ExternKernel),
}

/// What kinds of kernels have in common. Stages that only need to know this match on it, so that a new kind of a known class
/// concerns them no further.
#[derive(Clone, Copy, Debug)]
pub enum KernelClass<'k> {
    /// Loops, which are all that it does.
    Loops(&'k Nest),
    /// Sums of products at each position of axes, which an epilogue finishes.
    Contraction {
        /// The positions.
        axes: &'k [Axis],
        /// What becomes of each sum.
        epilogue: &'k Stage,
        /// Loops over whole rows of results.
        rows: Option<&'k Nest>,
    },
    /// Attention, whose scores are of another space than its results.
    Attention(&'k Attention),
    /// Computes whole tensors in a way that has no stages.
    Whole,
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
    /// What kernels check at run time, for messages.
    pub sites: Vec<Site>,
}

impl Program {
    /// A size in terms of the symbols' names, for messages.
    pub fn size_text(&self, size: &Expr) -> String {
        crate::graph::size_text(&self.symbols, size)
    }
}
