//! Builds graphs: one method per operator, with shape inference, broadcasting and the composition of views. Here are
//! the graph's frame, sources and element-wise operators.
//!
//! Every front end and every decomposition goes through it, so an ill-typed node cannot be made. Names of axes are
//! non-negative positions here; callers normalise negative ones.

mod collective;
mod contract;
mod control;
mod elements;
mod fold;
mod indirect;
mod require;
mod splice;
pub mod steps;
mod view;

pub use splice::Spliced;
pub use view::{axis_occurrences, composed};

use super::{
    BinaryOp, Condition, Constant, ConstantId, Graph, Input, InputRole, Node, Op, Origin, OriginId, Output,
    OutputRole, Scalar, SymbolInfo, SymbolSource, TensorType, UnaryOp, Value, ValueId, generator_type,
};
use crate::dtype::{DType, bytes_of};
use crate::symbolic::{Expr, Facts, RangeTable, Symbol};
use cranelift_entity::SecondaryMap;
use std::collections::BTreeSet;
use std::fmt;

/// Operands that do not fit the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ShapeError(pub String);

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ShapeError(inner) = self;
        write!(f, "{inner}")
    }
}

impl std::error::Error for ShapeError {}

/// Result of building a node.
type Built<T = ValueId> = Result<T, ShapeError>;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition { return Err($crate::graph::ShapeError(format!($($message)+))); }
    };
}
use ensure;

/// Appends nodes to a graph.
///
/// What a node needs and what cannot be decided now is required of the run, by a guard in front of the node.
pub struct Builder {
    graph: Graph,
    ranges: RangeTable,
    /// What holds at the end of the graph so far, guards included.
    facts: Facts,
    /// Where the symbols of the outermost graph come from.
    sources: Vec<SymbolSource>,
    /// What has been required so far, as it was stated.
    required: Vec<Condition>,
    /// The symbols from data that have been read so far.
    read: BTreeSet<Symbol>,
    /// Whether this is the body of a branch or a loop, which may not run.
    is_body: bool,
    /// Whether accesses were checked when they were first built.
    is_checked: bool,
    origin: OriginId,
    /// Position of the node that makes a value, plus one.
    makers: SecondaryMap<ValueId, usize>,
}

impl Builder {
    /// Starts a graph.
    pub fn new(name: &str) -> Builder {
        let mut graph = Graph { name: name.to_owned(), ..Graph::default() };
        let origin = graph.origins.push(Origin::default());
        Builder {
            graph,
            ranges: RangeTable::default(),
            facts: Facts::default(),
            sources: Vec::new(),
            required: Vec::new(),
            read: BTreeSet::new(),
            is_body: false,
            is_checked: false,
            origin,
            makers: SecondaryMap::new(),
        }
    }

    /// Starts the body of a branch or a loop: it sees this graph's symbols.
    pub fn child(&self, name: &str) -> Builder {
        let mut child = Builder::new(name);
        child.ranges = self.ranges.clone();
        child.facts = self.facts.clone();
        child.sources = self.sources.clone();
        child.required = self.required.clone();
        child.read = self.read.clone();
        child.is_body = true;
        child.graph.origins[child.origin] = self.graph.origins[self.origin].clone();
        child
    }

    /// Continues a finished graph.
    pub fn from_graph(graph: Graph) -> Builder {
        let ranges = graph.ranges();
        let mut graph = graph;
        let (facts, sources) =
            (graph.facts(), graph.symbols.iter().map(|info| info.source.clone()).collect());
        let origin = match graph.origins.keys().next() {
            Some(origin) => origin,
            None => graph.origins.push(Origin::default()),
        };
        let nodes = std::mem::take(&mut graph.nodes);
        let mut builder = Builder {
            graph,
            ranges,
            facts,
            sources,
            required: Vec::new(),
            read: BTreeSet::new(),
            is_body: false,
            is_checked: true,
            origin,
            makers: SecondaryMap::new(),
        };
        nodes.into_iter().for_each(|node| builder.append(node));
        builder
    }

    /// Continues a graph whose symbols have these ranges: a body has its symbols from the outermost graph.
    pub fn resume(graph: Graph, ranges: RangeTable) -> Builder {
        let mut builder = Builder::from_graph(graph);
        if builder.graph.symbols.is_empty() {
            builder.facts = Facts::new(ranges.clone());
            builder.is_body = true;
        }
        builder.ranges = ranges;
        builder
    }

    /// Appends a node of this graph as it is; its results exist already.
    pub fn append(&mut self, node: Node) {
        if let Op::Require(guard) = &node.op {
            guard.condition.assume(&mut self.facts);
        }
        self.graph.nodes.push(node);
        for output in &self.graph.nodes[self.graph.nodes.len() - 1].outputs {
            self.makers[*output] = self.graph.nodes.len();
        }
    }

    /// States that the following nodes come from where another one does.
    pub fn continue_origin(&mut self, origin: OriginId) {
        self.origin = origin;
    }

    /// The graph so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The ranges of the size symbols so far.
    pub fn ranges(&self) -> &RangeTable {
        &self.ranges
    }

    /// Gives the graph away.
    pub fn finish(self) -> Graph {
        self.graph
    }

    /// States where the following nodes come from.
    pub fn set_origin(&mut self, origin: Origin) {
        if self.graph.origins[self.origin] != origin {
            self.origin = self.graph.origins.push(origin);
        }
    }

    /// Adds a size symbol.
    pub fn symbol(&mut self, info: SymbolInfo) -> Symbol {
        let symbol = Symbol::size(u32::try_from(self.graph.symbols.len()).expect("symbols are few"));
        self.ranges.set(symbol, info.range);
        self.facts.table().set(symbol, super::known_range(&info));
        self.sources.push(info.source.clone());
        self.graph.symbols.push(info);
        symbol
    }

    /// What holds at the end of the graph so far.
    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Adds an input.
    pub fn input(&mut self, name: &str, ty: TensorType, role: InputRole) -> ValueId {
        self.input_of(name, ty, role, false)
    }

    /// As [`Builder::input`]; the elements may be complex numbers to the caller, whose parts are the last axis of the type.
    pub fn input_of(&mut self, name: &str, ty: TensorType, role: InputRole, is_complex: bool) -> ValueId {
        let value = self.value(ty, name);
        self.graph.inputs.push(Input { value, name: name.to_owned(), role, is_complex });
        value
    }

    /// The input that the random numbers of a run follow from.
    pub fn generator(&mut self, name: &str) -> ValueId {
        self.input(name, generator_type(), InputRole::Generator)
    }

    /// Whether this is the body of a branch or a loop, which may not run, or more than once.
    pub fn is_body(&self) -> bool {
        self.is_body
    }

    /// Adds an output.
    pub fn output(&mut self, name: &str, value: ValueId, role: OutputRole) {
        self.output_of(name, value, role, false);
    }

    /// As [`Builder::output`]; the elements may be complex numbers to the caller, whose parts are the last axis.
    pub fn output_of(&mut self, name: &str, value: ValueId, role: OutputRole, is_complex: bool) {
        self.graph.outputs.push(Output { value, name: name.to_owned(), role, is_complex });
    }

    /// Gives a value a name for people, if it has none.
    pub fn name(&mut self, value: ValueId, name: &str) {
        let slot = &mut self.graph.values[value].name;
        if slot.is_empty() {
            name.clone_into(slot);
        }
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &TensorType {
        self.graph.ty(value)
    }

    /// The sizes of a value.
    pub fn shape(&self, value: ValueId) -> Vec<Expr> {
        self.graph.ty(value).shape.clone()
    }

    /// The element type of a value.
    pub fn dtype(&self, value: ValueId) -> DType {
        self.graph.ty(value).dtype
    }

    /// The number of axes of a value.
    pub fn rank(&self, value: ValueId) -> usize {
        self.graph.ty(value).rank()
    }

    /// The node that makes a value, if it is not an input.
    pub fn producer(&self, value: ValueId) -> Option<&Node> {
        self.makers[value].checked_sub(1).map(|position| &self.graph.nodes[position])
    }

    fn value(&mut self, ty: TensorType, name: &str) -> ValueId {
        self.graph.values.push(Value { ty, name: name.to_owned() })
    }

    /// Appends a node whose result types the caller has already decided.
    fn push(&mut self, op: Op, inputs: &[ValueId], types: Vec<TensorType>) -> Vec<ValueId> {
        if !self.is_checked {
            types.iter().flat_map(|ty| &ty.shape).for_each(|size| self.require_size(size));
        }
        let outputs: Vec<ValueId> = types.into_iter().map(|ty| self.value(ty, "")).collect();
        let node = Node { op, inputs: inputs.to_vec(), outputs: outputs.clone(), origin: self.origin };
        self.append(node);
        outputs
    }

    fn push1(&mut self, op: Op, inputs: &[ValueId], dtype: DType, shape: Vec<Expr>) -> ValueId {
        self.push(op, inputs, vec![TensorType { dtype, shape }])[0]
    }

    // --- sources -------------------------------------------------------------------------------------------------

    /// A tensor of the program.
    pub fn constant(&mut self, constant: Constant) -> Built {
        let numel = constant.sizes.iter().try_fold(1i64, |n, size| n.checked_mul(*size));
        let bytes =
            numel.and_then(|n| usize::try_from(n).ok()).and_then(|n| n.checked_mul(constant.dtype.size()));
        ensure!(
            bytes == Some(constant.data.len()),
            "constant `{}` has {} bytes, which is not what {} of {:?} need",
            constant.name,
            constant.data.len(),
            constant.dtype,
            constant.sizes
        );
        let (dtype, shape) = (constant.dtype, constant.sizes.iter().map(|s| Expr::int(*s)).collect());
        let name = constant.name.clone();
        let id = self.graph.constants.push(constant);
        let value = self.push1(Op::Constant(id), &[], dtype, shape);
        self.graph.values[value].name = name;
        Ok(value)
    }

    /// The constant of a state input.
    pub fn add_constant(&mut self, constant: Constant) -> ConstantId {
        self.graph.constants.push(constant)
    }

    /// A one-dimensional constant of integers.
    pub fn int_vector(&mut self, values: &[i64]) -> ValueId {
        let data = bytes_of(values, &i64::to_le_bytes);
        let sizes = vec![i64::try_from(values.len()).expect("a vector in memory")];
        self.constant(Constant::new("", DType::I64, sizes, data)).expect("length and bytes agree")
    }

    /// A tensor of one number.
    pub fn full(&mut self, value: impl Into<Scalar>, dtype: DType, shape: &[Expr]) -> ValueId {
        self.push1(Op::Full(value.into().cast(dtype)), &[], dtype, shape.to_vec())
    }

    /// A tensor without axes.
    pub fn scalar(&mut self, value: impl Into<Scalar>, dtype: DType) -> ValueId {
        self.full(value, dtype, &[])
    }

    /// A tensor of one number with the type and shape of another.
    pub fn full_like(&mut self, value: impl Into<Scalar>, like: ValueId) -> ValueId {
        let ty = self.ty(like).clone();
        self.full(value, ty.dtype, &ty.shape)
    }

    /// An `i64` tensor whose elements are the values of an expression over its axes and size symbols.
    pub fn index(&mut self, expr: Expr, shape: &[Expr]) -> ValueId {
        if let Some(value) = expr.as_int() {
            return self.full(value, DType::I64, shape);
        }
        if !self.is_checked {
            self.require_fits(&expr, shape);
        }
        self.push1(Op::Index(expr), &[], DType::I64, shape.to_vec())
    }

    // --- element-wise --------------------------------------------------------------------------------------------

    /// Element-wise function of one operand.
    pub fn unary(&mut self, op: impl Into<UnaryOp>, x: ValueId) -> ValueId {
        let (op, ty) = (op.into(), self.ty(x).clone());
        self.push1(Op::Unary(op), &[x], op.result(ty.dtype), ty.shape)
    }

    /// Element-wise function of two operands of one type, broadcast to a common shape.
    pub fn binary(&mut self, op: impl Into<BinaryOp>, a: ValueId, b: ValueId) -> Built {
        let op = op.into();
        let (a_type, b_type) = (self.dtype(a), self.dtype(b));
        ensure!(a_type == b_type, "operands of `{}` are {a_type} and {b_type}", op.name());
        let shape = self.broadcast_shapes(&[a, b])?;
        let (a, b) = (self.expand(a, &shape)?, self.expand(b, &shape)?);
        Ok(self.push1(Op::Binary(op), &[a, b], op.result(a_type), shape))
    }

    /// Element-wise function of a tensor and a number of its type.
    pub fn binary_scalar(&mut self, op: impl Into<BinaryOp>, a: ValueId, b: impl Into<Scalar>) -> Built {
        let b = self.full_like(b, a);
        self.binary(op, a, b)
    }

    /// Element-wise choice, broadcast to a common shape.
    pub fn select(&mut self, condition: ValueId, a: ValueId, b: ValueId) -> Built {
        ensure!(self.dtype(condition) == DType::Bool, "condition is {}, not bool", self.dtype(condition));
        let (a_type, b_type) = (self.dtype(a), self.dtype(b));
        ensure!(a_type == b_type, "values to choose from are {a_type} and {b_type}");
        let shape = self.broadcast_shapes(&[condition, a, b])?;
        let operands = [self.expand(condition, &shape)?, self.expand(a, &shape)?, self.expand(b, &shape)?];
        Ok(self.push1(Op::Select, &operands, a_type, shape))
    }

    /// Conversion to another element type.
    pub fn cast(&mut self, x: ValueId, dtype: DType) -> ValueId {
        let ty = self.ty(x).clone();
        if ty.dtype == dtype {
            return x;
        }
        self.push1(Op::Cast, &[x], dtype, ty.shape)
    }
}
