//! The operators of the core graph: few, pure and total over their documented domain.

use super::functions::{BinaryOp, Combine, ReduceOp, Routine, ScanOp, UnaryOp};
use super::recurrent::Recurrent;
use super::{Collective, ConstantId, ExternCall, Graph, Guard, Scalar};
use crate::fourier::Fourier;
use crate::symbolic::{Expr, Symbol};

/// One coordinate of an indirect access.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Coord {
    /// An expression over the axes of the iteration space and size symbols; always within bounds.
    Expr(Expr),
    /// The value of index operand `k` (`i64`) at the same position. Anything outside `0 .. size` is a run-time error that
    /// names the operator, never a wild access.
    Indirect(usize),
    /// As [`Coord::Indirect`], but negative values count from the end: outside is what is not in `-size .. size`.
    Wrapped(usize),
}

/// Parameters of a convolution over `spatial rank` trailing axes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Conv {
    /// Step of the window per spatial axis.
    pub stride: Vec<i64>,
    /// Zeros before and after, per spatial axis; may be negative for transposed convolutions only.
    pub padding: Vec<(i64, i64)>,
    /// Distance of window taps per spatial axis.
    pub dilation: Vec<i64>,
    /// Channel groups.
    pub groups: i64,
    /// Whether it is the transpose of a convolution; then the weight is `[in, out/groups, ...]`.
    pub transposed: bool,
    /// Extra size at the end of each spatial axis of the result (transposed only).
    pub output_padding: Vec<i64>,
}

/// Which of the equal elements of a row has a rank.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ties {
    /// The one that a stable sort has there.
    Stable,
    /// The one that partitioning by medians of three ends at: PyTorch's `kthvalue` gives its index.
    Partitioned,
}

impl Ties {
    /// In text forms, behind an operator.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Ties::Stable => "",
            Ties::Partitioned => " partitioned",
        }
    }
}

/// A core operator. Operands of one node have exactly the shapes stated; broadcasting is a [`Op::View`].
#[derive(Clone, PartialEq, Debug)]
pub enum Op {
    /// A tensor of the program. No operands.
    Constant(ConstantId),
    /// Every element is this number. No operands.
    Full(Scalar),
    /// An `i64` tensor whose element at axes `i0, i1, ...` is the value of the expression. No operands.
    Index(Expr),
    /// Element-wise function of one operand of the result's shape.
    Unary(UnaryOp),
    /// Element-wise function of two operands of one type and the result's shape.
    Binary(BinaryOp),
    /// Element-wise choice: operands condition (`bool`), value if true, value if false.
    Select,
    /// Conversion of every element to the result's type: floats to integers truncate, non-zero is true.
    Cast,
    /// Element at axes `i0, i1, ...` is the operand's element at these coordinates, all within bounds.
    View(Vec<Expr>),
    /// As [`Op::View`], but where a coordinate falls outside the operand the element is `fill`.
    Pad {
        /// Coordinates into the operand over the result's axes.
        coords: Vec<Expr>,
        /// Value outside.
        fill: Scalar,
    },
    /// Operands: data, then index tensors (`i64`) of the result's shape. One coordinate per axis of data.
    Gather(Vec<Coord>),
    /// Operands: base, updates, then index tensors of updates' shape. One coordinate per axis of base, over updates'
    /// axes. The result is base with every update combined in, in row-major order of updates.
    Scatter {
        /// Where in base each update goes.
        coords: Vec<Coord>,
        /// What happens there.
        combine: Combine,
    },
    /// Operands laid one after the other along an axis.
    Cat {
        /// The axis.
        axis: usize,
    },
    /// Removes axes by an associative reduction.
    Reduce {
        /// The reduction.
        op: ReduceOp,
        /// The operand's axes that go, ascending, at least one.
        axes: Vec<usize>,
    },
    /// Running reduction; one output, or two (values, `i64` indices) where [`ScanOp::has_indices`].
    Scan {
        /// The reduction.
        op: ScanOp,
        /// The axis.
        axis: usize,
    },
    /// Stable sort along an axis; outputs values and `i64` indices. NaN counts as largest.
    Sort {
        /// The axis.
        axis: usize,
        /// Largest first.
        descending: bool,
        /// How many of the first are results; all are without.
        kept: Option<i64>,
    },
    /// Operands: data, and ranks from 0 on (`i64`), of the data's shape with an axis of one. Results, of the ranks' shape: the
    /// element that has the rank in an ascending order of its row in which NaN counts as largest, and its `i64` index. A rank
    /// beyond either end counts as that end.
    NthElement {
        /// The axis, which is not empty.
        axis: usize,
        /// Which of equal elements it is.
        ties: Ties,
    },
    /// Operands: sorted `[..., n]` and values `[..., m]` of one type, equal leading axes. Result (`i64`, values'
    /// shape): where each value would be inserted, left of equal ones, or right of them.
    SearchSorted {
        /// Insert right of equal elements.
        right: bool,
    },
    /// A routine on each matrix; its operands have equal leading axes.
    Routine(Routine),
    /// Operands: rows, their sizes those of the transform, and the roots of its plan ([`crate::fourier::Plan`]), all of
    /// one type, `f32` or `f64`. The result has a transformed row for each.
    Fourier(Fourier),
    /// A recurrent layer over a sequence; operands and results are of one type.
    Recurrent(Recurrent),
    /// A function of the user's project. Operands and results are contiguous tensors of any types; it may fail the run, and
    /// nothing is known of what it computes.
    Extern(ExternCall),
    /// What a group of ranks computes together, of one operand; it may fail the run. All ranks meet in the same collectives in
    /// the same order: none is dropped, repeated or moved past another.
    Collective(Collective),
    /// `[batch..., m, k] x [batch..., k, n] -> [batch..., m, n]`, one type; half types accumulate in `f32`.
    MatMul,
    /// Operands: input `[n, c, spatial...]`, weight `[out, c/groups, window...]`. No bias: that is an addition.
    Conv(Conv),
    /// Reads a one-element integer operand into a size symbol. No outputs.
    Read(Symbol),
    /// The run fails with the message where the one-element boolean operand is false. No outputs.
    Assert(String),
    /// The run fails where the condition does not hold; its symbols are known here. No operands, no outputs.
    Require(Guard),
    /// Operands: one-element boolean, then the operands of both branches. Outputs: the branch's outputs.
    Cond {
        /// Run where true.
        then: Box<Graph>,
        /// Run where false.
        otherwise: Box<Graph>,
    },
    /// Operands: carried values (`carried` of them), then captured ones. Outputs: the carried values at the end.
    While {
        /// Gives a one-element boolean from all operands.
        condition: Box<Graph>,
        /// Gives the next carried values from all operands.
        body: Box<Graph>,
        /// Number of carried values.
        carried: usize,
    },
}

/// What becomes of an operator whose results nobody uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unused {
    /// It has no other effect.
    Goes,
    /// It is there for more than its results.
    Stays,
}

/// What operators have in common. Passes that only need to know this match on it, so that a new operator of a known class
/// concerns them no further.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum OpClass<'op> {
    /// Has no operands: constants, numbers, positions.
    Source,
    /// Computes each element from the elements of its operands there.
    Elementwise,
    /// Reads its operand at these coordinates.
    View(&'op [Expr]),
    /// As a view, with a number where the coordinates are outside.
    Pad(&'op [Expr]),
    /// Reads its operand at coordinates that are partly data.
    Gather(&'op [Coord]),
    /// Writes at coordinates that are partly data.
    Scatter(&'op [Coord]),
    /// Joins its operands along an axis.
    Concat,
    /// Removes these axes.
    Reduction(&'op [usize]),
    /// Computes whole rows or matrices at once: scans, sorts, searches, routines, transforms.
    AxisOp,
    /// Sums products: of matrices, or of windows.
    Contraction,
    /// What is computed elsewhere, by a function of the user's project or with other ranks: nothing is known of its values.
    Opaque(Unused),
    /// Reads a size or checks something. No outputs.
    Effect,
    /// Runs graphs of its own.
    Control,
}

impl Op {
    /// Its class.
    pub fn class(&self) -> OpClass<'_> {
        match self {
            Op::Constant(_) | Op::Full(_) | Op::Index(_) => OpClass::Source,
            Op::Unary(_) | Op::Binary(_) | Op::Select | Op::Cast => OpClass::Elementwise,
            Op::View(coords) => OpClass::View(coords),
            Op::Pad { coords, .. } => OpClass::Pad(coords),
            Op::Gather(coords) => OpClass::Gather(coords),
            Op::Scatter { coords, .. } => OpClass::Scatter(coords),
            Op::Cat { .. } => OpClass::Concat,
            Op::Reduce { axes, .. } => OpClass::Reduction(axes),
            Op::Scan { .. }
            | Op::Sort { .. }
            | Op::NthElement { .. }
            | Op::SearchSorted { .. }
            | Op::Routine(_)
            | Op::Fourier(_)
            | Op::Recurrent(_) => OpClass::AxisOp,
            Op::MatMul | Op::Conv(_) => OpClass::Contraction,
            // A call without results is there for its effect; PyTorch drops other calls whose results are dead, too.
            Op::Extern(call) if call.results.is_empty() => OpClass::Opaque(Unused::Stays),
            Op::Extern(_) => OpClass::Opaque(Unused::Goes),
            // Other ranks wait for this one.
            Op::Collective(_) => OpClass::Opaque(Unused::Stays),
            Op::Read(_) | Op::Assert(_) | Op::Require(_) => OpClass::Effect,
            Op::Cond { .. } | Op::While { .. } => OpClass::Control,
        }
    }

    /// The name in text forms and messages; for functions and reductions that of the function.
    pub fn name(&self) -> &'static str {
        match self {
            Op::Constant(_) => "constant",
            Op::Full(_) => "full",
            Op::Index(_) => "index",
            Op::Unary(op) => op.name(),
            Op::Binary(op) => op.name(),
            Op::Select => "select",
            Op::Cast => "cast",
            Op::View(_) => "view",
            Op::Pad { .. } => "pad",
            Op::Gather(_) => "gather",
            Op::Scatter { .. } => "scatter",
            Op::Cat { .. } => "cat",
            Op::Reduce { op, .. } => op.name(),
            Op::Scan { op, .. } => op.name(),
            Op::Sort { .. } => "sort",
            Op::NthElement { .. } => "nth_element",
            Op::SearchSorted { .. } => "searchsorted",
            Op::Routine(routine) => routine.name(),
            Op::Fourier(_) => "fourier",
            Op::Recurrent(_) => "recurrent",
            Op::Extern(_) => "extern",
            Op::Collective(own) => own.kind.name(),
            Op::MatMul => "matmul",
            Op::Conv(_) => "conv",
            Op::Read(_) => "read",
            Op::Assert(_) => "assert",
            Op::Require(_) => "require",
            Op::Cond { .. } => "cond",
            Op::While { .. } => "while",
        }
    }
}
