//! The core graph: functional, typed, in static single assignment form.
//!
//! A [`Graph`] is a list of [`Node`]s in execution order. A value is defined once, by a node or as an input, and
//! never changes; what a program mutates appears as an input and an output of a role. Shapes are expressions over
//! the graph's size symbols, and a node's operands have exactly the shapes that its operator states.
//!
//! Knows neither file formats nor loops.

mod builder;
mod collective;
mod condition;
mod constant_graph;
mod extern_call;
mod functions;
mod groups;
mod op;
mod recurrent;
mod scalar;
pub mod text;
mod verify;

pub use builder::{Builder, ShapeError, Spliced, axis_occurrences, composed, steps};
pub use collective::{Collective, CollectiveKind, RankReduction};
pub use condition::Condition;
pub use constant_graph::{ConstantGraph, Elements, Weight};
pub use extern_call::{ExternArgument, ExternCall, Number, NumberKind};
pub use functions::{
    BinaryOp, Bits, Combine, FloatBinary, FloatTest, FloatUnary, IntBinary, Part, ReduceOp, Relation,
    Rounding, Routine, ScanOp, Side, SpecialBinary, SpecialUnary, UnaryOp,
};
pub use groups::Groups;
pub use op::{Conv, Coord, Op, OpClass, Ties, Unused};
pub use recurrent::{Cell, Directions, Operands, Recurrent, WIDEST};
pub use scalar::Scalar;
pub use verify::verify;

use crate::dtype::DType;
pub use crate::origin::{Origin, placed};
use crate::symbolic::{Expr, Extremes, Facts, Interval, RangeTable, Symbol, SymbolKind};
use bytes::Bytes;
use cranelift_entity::{EntityRef, PrimaryMap, entity_impl};
use std::sync::Arc;

/// A value of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(u32);
entity_impl!(ValueId, "%");

/// A constant of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConstantId(u32);
entity_impl!(ConstantId, "const");

/// Where a node comes from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OriginId(u32);
entity_impl!(OriginId, "origin");

/// Element type and sizes.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorType {
    /// Element type.
    pub dtype: DType,
    /// Sizes, outermost first.
    pub shape: Vec<Expr>,
}

impl TensorType {
    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Number of elements.
    pub fn numel(&self) -> Expr {
        Expr::product(&self.shape)
    }
}

/// The type of an input of the role [`InputRole::Generator`]: a seed and an offset.
pub fn generator_type() -> TensorType {
    TensorType { dtype: DType::I64, shape: vec![Expr::int(2)] }
}

/// A value: its type and a name for people.
#[derive(Clone, PartialEq, Debug)]
pub struct Value {
    /// Element type and shape.
    pub ty: TensorType,
    /// A name from the program, or empty.
    pub name: String,
}

/// One application of an operator.
#[derive(Clone, PartialEq, Debug)]
pub struct Node {
    /// What is computed.
    pub op: Op,
    /// Operands.
    pub inputs: Vec<ValueId>,
    /// Results; most operators have one.
    pub outputs: Vec<ValueId>,
    /// Where in the user's program it comes from.
    pub origin: OriginId,
}

/// A tensor whose elements are known when the program is compiled: row-major, contiguous.
#[derive(Clone, PartialEq, Debug)]
pub struct Constant {
    /// The program's own name for it, such as `layers.0.weight`; empty for literals made by the compiler.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Sizes.
    pub sizes: Vec<i64>,
    /// `product(sizes) * dtype.size()` bytes, little-endian. Shared with the mapped file where it comes from one.
    /// Passes that decide by elements read them through [`Constant::fixed`].
    pub data: Bytes,
    /// Whether a run may have other elements in its place.
    pub source: ConstantSource,
    /// What it was made of, where it was dequantised when the program was compiled. The elements say the same; text has only those.
    pub groups: Option<Arc<Groups>>,
}

/// Where the elements of a constant come from, which says whether they are final.
#[derive(Clone, PartialEq, Debug)]
pub enum ConstantSource {
    /// Part of the program: the elements are these in every run.
    Fixed,
    /// Part of the program's state under its own name, like what a checkpoint holds. The elements are those that the
    /// model was exported with; a library may be given others.
    Weight,
    /// Made from weights by the compiler: an output of a graph without inputs whose leaves are constants, some of them
    /// weights. Other weights give other elements by the same graph.
    Derived {
        /// The graph. Constants that come from one computation share it.
        recipe: Arc<Graph>,
        /// Position among its outputs.
        output: usize,
    },
}

impl Constant {
    /// A constant that is part of the program.
    pub fn new(name: impl Into<String>, dtype: DType, sizes: Vec<i64>, data: impl Into<Bytes>) -> Constant {
        Constant {
            name: name.into(),
            dtype,
            sizes,
            data: data.into(),
            source: ConstantSource::Fixed,
            groups: None,
        }
    }

    /// The elements, if they are the same in every run.
    pub fn fixed(&self) -> Option<&Bytes> {
        self.is_fixed().then_some(&self.data)
    }

    /// Whether the elements are the same in every run.
    pub fn is_fixed(&self) -> bool {
        matches!(self.source, ConstantSource::Fixed)
    }

    /// Whether both are one piece of memory, as tied weights are.
    pub fn shares_memory(&self, other: &Constant) -> bool {
        self.data.as_ptr() == other.data.as_ptr() && self.data.len() == other.data.len()
    }
}

/// Where the value of a size symbol comes from when a program runs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum SymbolSource {
    /// Size of axis `axis` of input `input`.
    InputDim {
        /// Position among the inputs.
        input: usize,
        /// Axis.
        axis: usize,
    },
    /// The value of the one-element integer input `input`.
    InputValue {
        /// Position among the inputs.
        input: usize,
    },
    /// Read from data by an [`Op::Read`].
    Data,
}

/// A size symbol. Symbol `s<k>` is entry `k` of [`Graph::symbols`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SymbolInfo {
    /// A name for people, such as `batch`.
    pub name: String,
    /// The values it may take; checked when its value becomes known.
    pub range: Interval,
    /// Where its value comes from.
    pub source: SymbolSource,
    /// What it never exceeds, over symbols that are known when a run begins; checked as the range is. Only what is read
    /// from data has one.
    pub most: Option<Expr>,
}

/// A size in terms of the symbols' names, for messages.
pub fn size_text(symbols: &[SymbolInfo], size: &Expr) -> String {
    size.display_with(&|symbol| {
        let name = symbols.get(symbol.index as usize).map(|info| info.name.clone());
        name.filter(|name| !name.is_empty()).unwrap_or_else(|| symbol.to_string())
    })
}

/// The largest size of an axis, whatever its range: such tensors are not in memory. Of sizes that a run chooses this is
/// checked; memory cannot be planned by it, so it is no bound of what is read from data.
pub const LARGEST_SIZE: i64 = 1 << 48;

/// A condition on sizes that must hold, or the run fails.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Guard {
    /// What must hold.
    pub condition: Condition,
    /// What the program says of it, and where; may be empty.
    pub message: String,
}

/// The stated ranges of symbols.
pub fn ranges_of(symbols: &[SymbolInfo]) -> RangeTable {
    let mut table = RangeTable::default();
    for (index, symbol) in symbols.iter().enumerate() {
        let index = u32::try_from(index).expect("symbols are few");
        table.set(Symbol::size(index), symbol.range);
    }
    table
}

/// The values that a symbol has in a run: no tensor in memory is larger than [`LARGEST_SIZE`].
fn known_range(info: &SymbolInfo) -> Interval {
    let mut range = info.range;
    if let SymbolSource::InputDim { .. } = info.source {
        range.max = range.max.min(LARGEST_SIZE).max(range.min);
    }
    range
}

/// What is known of symbols by their declarations alone. A symbol that is read from data has its value, and so obeys its
/// range, only once it is read.
pub fn facts_of(symbols: &[SymbolInfo]) -> Facts {
    let mut facts = Facts::default();
    for (index, info) in symbols.iter().enumerate() {
        let symbol = Symbol::size(u32::try_from(index).expect("symbols are few"));
        facts.table().set(symbol, known_range(info));
    }
    for (index, info) in symbols.iter().enumerate() {
        if let Some(most) = &info.most {
            let symbol = Symbol::size(u32::try_from(index).expect("symbols are few"));
            facts.assume_never_negative(&(most - &Expr::sym(symbol)));
        }
    }
    facts
}

/// Between what a symbol that is read from data lies, over symbols that are known when a run begins; `None` for those.
pub fn extremes_of(symbols: &[SymbolInfo], symbol: Symbol) -> Option<Extremes> {
    let info = symbols.get(symbol.index as usize).filter(|_| symbol.kind == SymbolKind::Size)?;
    if info.source != SymbolSource::Data {
        return None;
    }
    let range = Expr::int(info.range.max);
    let most = match &info.most {
        Some(most) if info.range.max == i64::MAX => most.clone(),
        Some(most) => most.minimum(&range),
        None => range,
    };
    Some(Extremes { least: Expr::int(info.range.min), most })
}

/// What an input is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum InputRole {
    /// Given by the caller on each run.
    User,
    /// Lives in the caller's state; starts as the constant.
    State(ConstantId),
    /// What the random numbers of a run follow from: its seed and its offset, two `i64`, from the run's options.
    Generator,
}

/// An input of a graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Input {
    /// Its value.
    pub value: ValueId,
    /// The program's name for it.
    pub name: String,
    /// What it is for.
    pub role: InputRole,
    /// Whether its elements are complex numbers to the caller: their parts are its last axis, of two.
    pub is_complex: bool,
}

/// What an output is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OutputRole {
    /// A result for the caller.
    User,
    /// The next value of the state input at this position among the inputs.
    State(usize),
    /// What the program has made of the user input at this position among the inputs; given to the caller as one
    /// more output.
    Mutation(usize),
}

/// An output of a graph.
#[derive(Clone, PartialEq, Debug)]
pub struct Output {
    /// Its value. One value may be several outputs, and an input or a constant may be an output.
    pub value: ValueId,
    /// A name for it.
    pub name: String,
    /// What it is for.
    pub role: OutputRole,
    /// Whether its elements are complex numbers to the caller: their parts are its last axis, of two.
    pub is_complex: bool,
}

/// A program, or the body of a branch or a loop. Bodies use the symbols of the outermost graph and have none of
/// their own; they see outer values only through their inputs.
#[derive(Clone, PartialEq, Default, Debug)]
pub struct Graph {
    /// The model's name.
    pub name: String,
    /// Size symbols.
    pub symbols: Vec<SymbolInfo>,
    /// Conditions on sizes that are known when a run begins; checked then.
    pub guards: Vec<Guard>,
    /// Values.
    pub values: PrimaryMap<ValueId, Value>,
    /// Nodes in execution order.
    pub nodes: Vec<Node>,
    /// Constants.
    pub constants: PrimaryMap<ConstantId, Constant>,
    /// Places in the user's program.
    pub origins: PrimaryMap<OriginId, Origin>,
    /// Inputs in order.
    pub inputs: Vec<Input>,
    /// Outputs in order.
    pub outputs: Vec<Output>,
}

impl Graph {
    /// The ranges of the size symbols.
    pub fn ranges(&self) -> RangeTable {
        ranges_of(&self.symbols)
    }

    /// What holds of the size symbols when a run has begun.
    pub fn facts(&self) -> Facts {
        let mut facts = facts_of(&self.symbols);
        self.guards.iter().for_each(|guard| guard.condition.assume(&mut facts));
        facts
    }

    /// What people know a node by: the name of its result, else its module or its call in the user's program.
    pub fn name_of(&self, node: &Node) -> &str {
        let name = node.outputs.first().map_or("", |value| self.values[*value].name.as_str());
        let origin = &self.origins[node.origin];
        let call = origin.node.rsplit(" of ").next().unwrap_or_default();
        [name, origin.module.as_str(), call]
            .into_iter()
            .find(|name| !name.is_empty())
            .unwrap_or(node.op.name())
    }

    /// The type of a value.
    pub fn ty(&self, value: ValueId) -> &TensorType {
        &self.values[value].ty
    }

    /// Calls `see` with every node and the graph that it is in, those of bodies behind their own.
    pub fn visit<'g>(&'g self, see: &mut dyn FnMut(&'g Graph, &'g Node)) {
        for node in &self.nodes {
            see(self, node);
            let (Op::Cond { then: first, otherwise: second }
            | Op::While { condition: first, body: second, .. }) = &node.op
            else {
                continue;
            };
            first.visit(see);
            second.visit(see);
        }
    }

    /// For each value, the position of the node that makes it.
    pub fn producers(&self) -> Vec<Option<usize>> {
        let mut producers = vec![None; self.values.len()];
        for (position, node) in self.nodes.iter().enumerate() {
            for output in &node.outputs {
                producers[output.index()] = Some(position);
            }
        }
        producers
    }
}
