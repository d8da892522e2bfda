//! Builds graphs: one method per operator, with shape inference, broadcasting and the composition of views.
//!
//! Every front end and every decomposition goes through it, so an ill-typed node cannot be made. Names of axes are
//! non-negative positions here; callers normalise negative ones.

use super::{
    BinaryOp, Combine, Constant, ConstantId, Conv, Coord, Graph, Input, InputRole, Node, Op, Origin,
    OriginId, Output, OutputRole, ReduceOp, Scalar, ScanOp, SymbolInfo, TensorType, UnaryOp, Value, ValueId,
};
use crate::dtype::DType;
use crate::symbolic::{Expr, RangeTable, Ranges, Symbol};
use cranelift_entity::EntityRef;

/// Operands that do not fit the operator.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct ShapeError(pub String);

/// Result of building a node.
type Built<T = ValueId> = Result<T, ShapeError>;

macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition { return Err(ShapeError(format!($($message)+))); }
    };
}

/// Appends nodes to a graph.
pub struct Builder {
    graph: Graph,
    ranges: RangeTable,
    origin: OriginId,
}

impl Builder {
    /// Starts a graph.
    pub fn new(name: &str) -> Builder {
        let mut graph = Graph { name: name.to_owned(), ..Graph::default() };
        let origin = graph.origins.push(Origin::default());
        Builder { graph, ranges: RangeTable::default(), origin }
    }

    /// Starts the body of a branch or a loop: it sees this graph's symbols.
    pub fn child(&self, name: &str) -> Builder {
        let mut child = Builder::new(name);
        child.ranges = self.ranges.clone();
        child.graph.origins[child.origin] = self.graph.origins[self.origin].clone();
        child
    }

    /// Continues a finished graph.
    pub fn from_graph(graph: Graph) -> Builder {
        let ranges = graph.ranges();
        let mut graph = graph;
        let origin = match graph.origins.keys().next() {
            Some(origin) => origin,
            None => graph.origins.push(Origin::default()),
        };
        Builder { graph, ranges, origin }
    }

    /// Continues a graph whose symbols have these ranges: a body has its symbols from the outermost graph.
    pub fn resume(graph: Graph, ranges: RangeTable) -> Builder {
        let mut builder = Builder::from_graph(graph);
        builder.ranges = ranges;
        builder
    }

    /// Appends a node of this graph as it is; its results exist already.
    pub fn append(&mut self, node: Node) {
        self.graph.nodes.push(node);
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
        self.graph.symbols.push(info);
        symbol
    }

    /// States that a size that is read from data is at most `most`; what is read must obey it when a run does.
    pub fn bound(&mut self, symbol: Symbol, most: &Expr) {
        let max = most.interval(&self.ranges).max;
        if let Some(info) = self.graph.symbols.get_mut(symbol.index as usize) {
            info.range.max = info.range.max.min(max);
            self.ranges.set(symbol, info.range);
        }
    }

    /// Adds a condition that is checked when a run begins.
    pub fn guard(&mut self, guard: super::Guard) {
        if !self.graph.guards.contains(&guard) {
            self.graph.guards.push(guard);
        }
    }

    /// Adds an input.
    pub fn input(&mut self, name: &str, ty: TensorType, role: InputRole) -> ValueId {
        let value = self.value(ty, name);
        self.graph.inputs.push(Input { value, name: name.to_owned(), role });
        value
    }

    /// Adds an output.
    pub fn output(&mut self, name: &str, value: ValueId, role: OutputRole) {
        self.graph.outputs.push(Output { value, name: name.to_owned(), role });
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

    /// The number of a value's node and the node, if a node makes it. Linear; for rules that look at patterns.
    pub fn producer(&self, value: ValueId) -> Option<&Node> {
        self.graph.nodes.iter().rev().find(|node| node.outputs.contains(&value))
    }

    fn value(&mut self, ty: TensorType, name: &str) -> ValueId {
        self.graph.values.push(Value { ty, name: name.to_owned() })
    }

    /// Appends a node whose result types the caller has already decided.
    fn push(&mut self, op: Op, inputs: &[ValueId], types: Vec<TensorType>) -> Vec<ValueId> {
        let outputs: Vec<ValueId> = types.into_iter().map(|ty| self.value(ty, "")).collect();
        let node = Node { op, inputs: inputs.to_vec(), outputs: outputs.clone(), origin: self.origin };
        self.graph.nodes.push(node);
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
        let data: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        let sizes = vec![i64::try_from(values.len()).expect("a vector in memory")];
        self.constant(Constant { name: String::new(), dtype: DType::I64, sizes, data: data.into() })
            .expect("length and bytes agree")
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

    // --- shapes and views ----------------------------------------------------------------------------------------

    /// Whether two sizes are the same for all values of the symbols.
    pub fn same_size(&self, a: &Expr, b: &Expr) -> bool {
        a == b || (a - b).simplify(&self.ranges).is(0)
    }

    /// The common shape of operands by NumPy's broadcasting rules.
    pub fn broadcast_shapes(&self, values: &[ValueId]) -> Built<Vec<Expr>> {
        let shapes: Vec<Vec<Expr>> = values.iter().map(|value| self.shape(*value)).collect();
        self.broadcast(&shapes)
    }

    /// The common shape of shapes by NumPy's broadcasting rules. Two different symbolic sizes cannot be decided and
    /// are refused, except against 1.
    pub fn broadcast(&self, shapes: &[Vec<Expr>]) -> Built<Vec<Expr>> {
        let rank = shapes.iter().map(Vec::len).max().unwrap_or(0);
        let mut result = vec![Expr::int(1); rank];
        for shape in shapes {
            for (size, slot) in shape.iter().zip(&mut result[rank - shape.len()..]) {
                if slot.is(1) {
                    *slot = size.clone();
                } else if !size.is(1) && !self.same_size(size, slot) {
                    return Err(ShapeError(format!("shapes {shapes:?} do not broadcast together")));
                }
            }
        }
        Ok(result)
    }

    /// General view: element at axes `i0, i1, ...` of the result is the operand's at `coords`.
    /// A view of a view becomes one view.
    pub fn view(&mut self, x: ValueId, shape: &[Expr], coords: Vec<Expr>) -> Built {
        ensure!(coords.len() == self.rank(x), "{} coordinates for {} axes", coords.len(), self.rank(x));
        let ranges = self.axis_ranges(shape);
        let coords: Vec<Expr> = coords.iter().map(|coord| coord.simplify(&ranges)).collect();
        if shape == self.shape(x).as_slice() && is_identity(&coords, shape) {
            return Ok(x);
        }
        let (source, coords) = match self.producer(x) {
            Some(Node { op: Op::View(inner), inputs, .. }) => {
                let outer = coords;
                let composed =
                    inner.iter().map(|coord| coord.substitute(&axis_replacer(&outer), &ranges)).collect();
                (inputs[0], composed)
            }
            _ => (x, coords),
        };
        if shape == self.shape(source).as_slice() && is_identity(&coords, shape) {
            return Ok(source);
        }
        let dtype = self.dtype(source);
        Ok(self.push1(Op::View(coords), &[source], dtype, shape.to_vec()))
    }

    /// Ranges of the symbols and of axes that run over `shape`.
    pub fn axis_ranges(&self, shape: &[Expr]) -> RangeTable {
        let mut table = self.ranges.clone();
        for (axis, size) in shape.iter().enumerate() {
            table.set_extent(axis_symbol(axis), size.clone());
        }
        table
    }

    /// Reorders axes: axis `k` of the result is the operand's axis `order[k]`.
    pub fn permute(&mut self, x: ValueId, order: &[usize]) -> Built {
        let shape = self.shape(x);
        let mut seen = vec![false; shape.len()];
        ensure!(order.len() == shape.len(), "order {order:?} for {} axes", shape.len());
        for axis in order {
            ensure!(*axis < shape.len() && !seen[*axis], "order {order:?} is not a permutation");
            seen[*axis] = true;
        }
        let mut coords = vec![Expr::int(0); shape.len()];
        for (to, from) in order.iter().enumerate() {
            coords[*from] = Expr::axis(to);
        }
        let new_shape: Vec<Expr> = order.iter().map(|axis| shape[*axis].clone()).collect();
        self.view(x, &new_shape, coords)
    }

    /// Swaps two axes.
    pub fn transpose(&mut self, x: ValueId, a: usize, b: usize) -> Built {
        let mut order: Vec<usize> = (0..self.rank(x)).collect();
        ensure!(a < order.len() && b < order.len(), "axes {a} and {b} of {}", order.len());
        order.swap(a, b);
        self.permute(x, &order)
    }

    /// Broadcasts to a shape.
    pub fn expand(&mut self, x: ValueId, shape: &[Expr]) -> Built {
        let own = self.shape(x);
        if own == shape {
            return Ok(x);
        }
        ensure!(own.len() <= shape.len(), "{own:?} does not broadcast to {shape:?}");
        let offset = shape.len() - own.len();
        let mut coords = Vec::with_capacity(own.len());
        for (axis, size) in own.iter().enumerate() {
            let target = &shape[axis + offset];
            if self.same_size(size, target) {
                coords.push(Expr::axis(axis + offset));
            } else {
                ensure!(size.is(1), "{own:?} does not broadcast to {shape:?}");
                coords.push(Expr::int(0));
            }
        }
        self.view(x, shape, coords)
    }

    /// The same elements in row-major order under another shape with as many elements.
    pub fn reshape(&mut self, x: ValueId, shape: &[Expr]) -> Built {
        let own = self.shape(x);
        if own == shape {
            return Ok(x);
        }
        let (from, to) = (Expr::product(&own), Expr::product(shape));
        ensure!(self.same_size(&from, &to), "{own:?} has {from} elements and {shape:?} has {to}");
        let ranges = self.axis_ranges(shape);
        if from.is(0) {
            return Ok(self.full(0i64, self.dtype(x), shape));
        }
        let coords = reshape_coords(&own, shape, &ranges);
        self.view(x, shape, coords)
    }

    /// Inserts an axis of size 1.
    pub fn unsqueeze(&mut self, x: ValueId, axis: usize) -> Built {
        let mut shape = self.shape(x);
        ensure!(axis <= shape.len(), "axis {axis} of {}", shape.len());
        let coords = (0..shape.len()).map(|k| Expr::axis(if k < axis { k } else { k + 1 })).collect();
        shape.insert(axis, Expr::int(1));
        self.view(x, &shape, coords)
    }

    /// Removes axes of size 1.
    pub fn squeeze(&mut self, x: ValueId, axes: &[usize]) -> Built {
        let shape = self.shape(x);
        let (mut kept, mut coords) = (Vec::new(), Vec::new());
        for (axis, size) in shape.iter().enumerate() {
            if axes.contains(&axis) {
                ensure!(size.is(1), "axis {axis} has size {size}, not 1");
                coords.push(Expr::int(0));
            } else {
                coords.push(Expr::axis(kept.len()));
                kept.push(size.clone());
            }
        }
        self.view(x, &kept, coords)
    }

    /// `length` elements of an axis from `start` in steps of `step`, all within bounds.
    pub fn slice(&mut self, x: ValueId, axis: usize, start: &Expr, length: &Expr, step: i64) -> Built {
        let mut shape = self.shape(x);
        ensure!(axis < shape.len(), "axis {axis} of {}", shape.len());
        shape[axis] = length.clone();
        let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
        coords[axis] = &(&Expr::axis(axis) * step) + start;
        self.view(x, &shape, coords)
    }

    /// The element at `position` of an axis, which goes.
    pub fn pick(&mut self, x: ValueId, axis: usize, position: &Expr) -> Built {
        let mut shape = self.shape(x);
        ensure!(axis < shape.len(), "axis {axis} of {}", shape.len());
        shape.remove(axis);
        let coords = (0..=shape.len())
            .map(|k| match k.cmp(&axis) {
                std::cmp::Ordering::Less => Expr::axis(k),
                std::cmp::Ordering::Equal => position.clone(),
                std::cmp::Ordering::Greater => Expr::axis(k - 1),
            })
            .collect();
        self.view(x, &shape, coords)
    }

    /// Reverses axes.
    pub fn flip(&mut self, x: ValueId, axes: &[usize]) -> Built {
        let shape = self.shape(x);
        let coords = (0..shape.len())
            .map(|k| if axes.contains(&k) { &(&shape[k] - 1) - &Expr::axis(k) } else { Expr::axis(k) })
            .collect();
        self.view(x, &shape, coords)
    }

    /// Sliding windows: axis `axis` becomes the window's number, and a new last axis the position inside it.
    pub fn windows(&mut self, x: ValueId, axis: usize, size: i64, step: i64, dilation: i64) -> Built {
        let mut shape = self.shape(x);
        ensure!(axis < shape.len(), "axis {axis} of {}", shape.len());
        ensure!(size >= 0 && step > 0 && dilation > 0, "window {size} step {step} dilation {dilation}");
        let span = dilation * (size - 1).max(0) + 1;
        let count = &(&shape[axis] - span).floor_div_in(&Expr::int(step), &self.ranges) + 1;
        ensure!(count.interval(&self.ranges).min >= 0, "window of {span} over {}", shape[axis]);
        let last = shape.len();
        let mut coords: Vec<Expr> = (0..shape.len()).map(Expr::axis).collect();
        coords[axis] = &(&Expr::axis(axis) * step) + &(&Expr::axis(last) * dilation);
        shape[axis] = count;
        shape.push(Expr::int(size));
        self.view(x, &shape, coords)
    }

    /// General view with a value for what lies outside the operand.
    pub fn padded_view(&mut self, x: ValueId, shape: &[Expr], coords: Vec<Expr>, fill: Scalar) -> Built {
        ensure!(coords.len() == self.rank(x), "{} coordinates for {} axes", coords.len(), self.rank(x));
        let ranges = self.axis_ranges(shape);
        let coords: Vec<Expr> = coords.iter().map(|coord| coord.simplify(&ranges)).collect();
        let own = self.shape(x);
        let inside =
            |(coord, size): (&Expr, &Expr)| coord.never_negative(&ranges) && coord.always_less(size, &ranges);
        if coords.iter().zip(&own).all(inside) {
            return self.view(x, shape, coords);
        }
        let dtype = self.dtype(x);
        Ok(self.push1(Op::Pad { coords, fill: fill.cast(dtype) }, &[x], dtype, shape.to_vec()))
    }

    /// Adds elements before and after each axis (or takes away, where negative).
    pub fn pad(&mut self, x: ValueId, amounts: &[(Expr, Expr)], fill: impl Into<Scalar>) -> Built {
        let own = self.shape(x);
        ensure!(amounts.len() == own.len(), "{} paddings for {} axes", amounts.len(), own.len());
        let shape: Vec<Expr> =
            own.iter().zip(amounts).map(|(size, (low, high))| &(size + low) + high).collect();
        for size in &shape {
            ensure!(size.interval(&self.ranges).max >= 0, "padding leaves a size of {size}");
        }
        let coords = amounts.iter().enumerate().map(|(axis, (low, _))| &Expr::axis(axis) - low).collect();
        self.padded_view(x, &shape, coords, fill.into())
    }

    /// Lays operands of one type one after the other along an axis.
    pub fn cat(&mut self, values: &[ValueId], axis: usize) -> Built {
        let Some(first) = values.first() else {
            return Err(ShapeError("nothing to concatenate".to_owned()));
        };
        let mut ty = self.ty(*first).clone();
        ensure!(axis < ty.rank(), "axis {axis} of {}", ty.rank());
        let mut total = Expr::int(0);
        for value in values {
            let other = self.ty(*value);
            ensure!(other.dtype == ty.dtype, "operands are {} and {}", ty.dtype, other.dtype);
            ensure!(other.rank() == ty.rank(), "operands have {} and {} axes", ty.rank(), other.rank());
            for (k, (a, b)) in ty.shape.iter().zip(&other.shape).enumerate() {
                ensure!(k == axis || self.same_size(a, b), "sizes {a} and {b} of axis {k} differ");
            }
            total = &total + &other.shape[axis];
        }
        if values.len() == 1 {
            return Ok(*first);
        }
        ty.shape[axis] = total;
        Ok(self.push1(Op::Cat { axis }, values, ty.dtype, ty.shape))
    }

    // --- indirect access -----------------------------------------------------------------------------------------

    /// Indirect read: indices are `i64` and have the shape of the result.
    pub fn gather(&mut self, x: ValueId, indices: &[ValueId], coords: Vec<Coord>, shape: &[Expr]) -> Built {
        ensure!(coords.len() == self.rank(x), "{} coordinates for {} axes", coords.len(), self.rank(x));
        let mut inputs = vec![x];
        for index in indices {
            inputs.push(self.index_operand(*index, shape)?);
        }
        let dtype = self.dtype(x);
        Ok(self.push1(Op::Gather(self.simplify_coords(coords, shape)), &inputs, dtype, shape.to_vec()))
    }

    /// Indirect write of `updates` into `base`: indices are `i64` and have the shape of the updates.
    pub fn scatter(
        &mut self,
        base: ValueId,
        updates: ValueId,
        indices: &[ValueId],
        coords: Vec<Coord>,
        combine: Combine,
    ) -> Built {
        let ty = self.ty(base).clone();
        ensure!(coords.len() == ty.rank(), "{} coordinates for {} axes", coords.len(), ty.rank());
        let update_type = self.dtype(updates);
        ensure!(update_type == ty.dtype, "updates are {update_type}, the base is {}", ty.dtype);
        let shape = self.shape(updates);
        let mut inputs = vec![base, updates];
        for index in indices {
            inputs.push(self.index_operand(*index, &shape)?);
        }
        let coords = self.simplify_coords(coords, &shape);
        Ok(self.push1(Op::Scatter { coords, combine }, &inputs, ty.dtype, ty.shape))
    }

    fn index_operand(&mut self, index: ValueId, shape: &[Expr]) -> Built {
        let dtype = self.dtype(index);
        ensure!(matches!(dtype.category(), crate::dtype::Category::Int), "index is {dtype}, not an integer");
        let index = self.cast(index, DType::I64);
        self.expand(index, shape)
    }

    fn simplify_coords(&self, coords: Vec<Coord>, shape: &[Expr]) -> Vec<Coord> {
        let ranges = self.axis_ranges(shape);
        coords
            .into_iter()
            .map(|coord| match coord {
                Coord::Expr(expr) => Coord::Expr(expr.simplify(&ranges)),
                Coord::Indirect(k) => Coord::Indirect(k),
            })
            .collect()
    }

    // --- reductions and order ------------------------------------------------------------------------------------

    /// Reduces axes; with `keep` they stay with size 1.
    pub fn reduce(&mut self, op: ReduceOp, x: ValueId, axes: &[usize], keep: bool) -> Built {
        let ty = self.ty(x).clone();
        let mut axes = axes.to_vec();
        axes.sort_unstable();
        axes.dedup();
        ensure!(axes.iter().all(|axis| *axis < ty.rank()), "axes {axes:?} of {}", ty.rank());
        let kept: Vec<Expr> = ty
            .shape
            .iter()
            .enumerate()
            .map(|(k, s)| if axes.contains(&k) { Expr::int(1) } else { s.clone() })
            .collect();
        let reduced: Vec<Expr> =
            ty.shape.iter().enumerate().filter(|(k, _)| !axes.contains(k)).map(|(_, s)| s.clone()).collect();
        let needs_element = matches!(op, ReduceOp::Max | ReduceOp::Min | ReduceOp::ArgMax | ReduceOp::ArgMin);
        ensure!(
            !needs_element || axes.iter().all(|axis| !ty.shape[*axis].is(0)),
            "`{}` of an empty axis has no value",
            op.name()
        );
        let dtype = if op.is_arg() { DType::I64 } else { ty.dtype };
        let result = if axes.is_empty() {
            if op.is_arg() { self.full(0i64, DType::I64, &reduced) } else { x }
        } else {
            self.push1(Op::Reduce { op, axes: axes.clone() }, &[x], dtype, reduced)
        };
        if keep { self.reshape(result, &kept) } else { Ok(result) }
    }

    /// Running reduction: values, and indices where the operator has them.
    pub fn scan(&mut self, op: ScanOp, x: ValueId, axis: usize) -> Built<Vec<ValueId>> {
        let ty = self.ty(x).clone();
        ensure!(axis < ty.rank(), "axis {axis} of {}", ty.rank());
        let mut types = vec![ty.clone()];
        if op.has_indices() {
            types.push(TensorType { dtype: DType::I64, shape: ty.shape });
        }
        Ok(self.push(Op::Scan { op, axis }, &[x], types))
    }

    /// Stable sort: values and indices.
    pub fn sort(&mut self, x: ValueId, axis: usize, descending: bool) -> Built<(ValueId, ValueId)> {
        let ty = self.ty(x).clone();
        ensure!(axis < ty.rank(), "axis {axis} of {}", ty.rank());
        let indices = TensorType { dtype: DType::I64, shape: ty.shape.clone() };
        let outputs = self.push(Op::Sort { axis, descending }, &[x], vec![ty, indices]);
        Ok((outputs[0], outputs[1]))
    }

    /// Where values would be inserted into sorted rows.
    pub fn search_sorted(&mut self, sorted: ValueId, values: ValueId, right: bool) -> Built {
        let (rows, ty) = (self.ty(sorted).clone(), self.ty(values).clone());
        ensure!(rows.dtype == ty.dtype, "sorted is {}, values are {}", rows.dtype, ty.dtype);
        ensure!(rows.rank() >= 1 && rows.rank() == ty.rank(), "ranks {} and {}", rows.rank(), ty.rank());
        for (a, b) in rows.shape.iter().zip(&ty.shape).take(rows.rank() - 1) {
            ensure!(self.same_size(a, b), "leading sizes {a} and {b} differ");
        }
        Ok(self.push1(Op::SearchSorted { right }, &[sorted, values], DType::I64, ty.shape))
    }

    // --- contractions --------------------------------------------------------------------------------------------

    /// Batched matrix product; leading axes broadcast.
    pub fn matmul(&mut self, a: ValueId, b: ValueId) -> Built {
        let (a_type, b_type) = (self.ty(a).clone(), self.ty(b).clone());
        ensure!(a_type.dtype == b_type.dtype, "factors are {} and {}", a_type.dtype, b_type.dtype);
        ensure!(
            a_type.rank() >= 2 && b_type.rank() >= 2,
            "factors have {} and {} axes",
            a_type.rank(),
            b_type.rank()
        );
        let (a_lead, a_matrix) = a_type.shape.split_at(a_type.rank() - 2);
        let (b_lead, b_matrix) = b_type.shape.split_at(b_type.rank() - 2);
        ensure!(
            self.same_size(&a_matrix[1], &b_matrix[0]),
            "inner sizes {} and {} differ",
            a_matrix[1],
            b_matrix[0]
        );
        let batch = self.broadcast(&[a_lead.to_vec(), b_lead.to_vec()])?;
        let with = |tail: &[Expr]| [batch.as_slice(), tail].concat();
        let (a, b) = (self.expand(a, &with(a_matrix))?, self.expand(b, &with(b_matrix))?);
        let shape = with(&[a_matrix[0].clone(), b_matrix[1].clone()]);
        Ok(self.push1(Op::MatMul, &[a, b], a_type.dtype, shape))
    }

    /// Convolution or its transpose, without bias.
    pub fn conv(&mut self, x: ValueId, weight: ValueId, conv: Conv) -> Built {
        let (x_type, w_type) = (self.ty(x).clone(), self.ty(weight).clone());
        let spatial = conv.stride.len();
        ensure!(x_type.dtype == w_type.dtype, "input is {}, weight is {}", x_type.dtype, w_type.dtype);
        ensure!(
            x_type.rank() == spatial + 2 && w_type.rank() == spatial + 2,
            "input has {} axes and weight {}, not {}",
            x_type.rank(),
            w_type.rank(),
            spatial + 2
        );
        ensure!(
            conv.padding.len() == spatial
                && conv.dilation.len() == spatial
                && conv.output_padding.len() == spatial,
            "parameters do not have one entry for each of {spatial} axes"
        );
        ensure!(
            conv.groups > 0 && conv.stride.iter().chain(&conv.dilation).all(|value| *value > 0),
            "groups, strides and dilations must be positive"
        );
        let groups = Expr::int(conv.groups);
        let (in_channels, out_channels) = if conv.transposed {
            (w_type.shape[0].clone(), &w_type.shape[1] * &groups)
        } else {
            (&w_type.shape[1] * &groups, w_type.shape[0].clone())
        };
        ensure!(
            self.same_size(&x_type.shape[1], &in_channels),
            "input has {} channels, the weight wants {in_channels}",
            x_type.shape[1]
        );
        let mut shape = vec![x_type.shape[0].clone(), out_channels];
        for axis in 0..spatial {
            let span = &(&(&w_type.shape[axis + 2] - 1) * conv.dilation[axis]) + 1;
            let (low, high) = conv.padding[axis];
            let size = &x_type.shape[axis + 2];
            let result = if conv.transposed {
                &(&(&(size - 1) * conv.stride[axis]) - (low + high)) + &(&span + conv.output_padding[axis])
            } else {
                let room = &(size + (low + high)) - &span;
                &room.floor_div_in(&Expr::int(conv.stride[axis]), &self.ranges) + 1
            };
            ensure!(result.interval(&self.ranges).max >= 0, "the window of {span} does not fit {size}");
            shape.push(result);
        }
        Ok(self.push1(Op::Conv(conv), &[x, weight], x_type.dtype, shape))
    }

    // --- data-dependent values and control flow ------------------------------------------------------------------

    /// Reads a one-element integer tensor into a size symbol.
    pub fn read(&mut self, x: ValueId, symbol: Symbol) -> Built<()> {
        ensure!(self.ty(x).numel().is(1), "only a one-element tensor can be read into a size");
        let x = self.cast(x, DType::I64);
        let x = self.reshape(x, &[])?;
        self.push(Op::Read(symbol), &[x], vec![]);
        Ok(())
    }

    /// The run fails with the message where the one-element operand is false.
    pub fn assert(&mut self, x: ValueId, message: &str) -> Built<()> {
        ensure!(self.ty(x).numel().is(1), "only a one-element tensor can be asserted");
        let x = self.cast(x, DType::Bool);
        let x = self.reshape(x, &[])?;
        self.push(Op::Assert(message.to_owned()), &[x], vec![]);
        Ok(())
    }

    /// Runs one of two graphs of equal interface.
    pub fn cond(
        &mut self,
        predicate: ValueId,
        then: Graph,
        otherwise: Graph,
        operands: &[ValueId],
    ) -> Built<Vec<ValueId>> {
        ensure!(self.ty(predicate).numel().is(1), "the predicate must have one element");
        self.check_body(&then, operands)?;
        self.check_body(&otherwise, operands)?;
        let types = output_types(&then);
        ensure!(types == output_types(&otherwise), "the two branches give different types");
        let predicate = self.cast(predicate, DType::Bool);
        let predicate = self.reshape(predicate, &[])?;
        let inputs = [&[predicate], operands].concat();
        let op = Op::Cond { then: Box::new(then), otherwise: Box::new(otherwise) };
        Ok(self.push(op, &inputs, types))
    }

    /// Repeats `body` while `condition` holds; the first `carried` operands are carried.
    pub fn while_loop(
        &mut self,
        condition: Graph,
        body: Graph,
        operands: &[ValueId],
        carried: usize,
    ) -> Built<Vec<ValueId>> {
        self.check_body(&condition, operands)?;
        self.check_body(&body, operands)?;
        let types: Vec<TensorType> =
            operands[..carried.min(operands.len())].iter().map(|value| self.ty(*value).clone()).collect();
        ensure!(output_types(&body) == types, "the loop body changes the types of carried values");
        let verdict = output_types(&condition);
        ensure!(
            verdict.len() == 1 && verdict[0].dtype == DType::Bool && verdict[0].numel().is(1),
            "the loop condition must give one boolean"
        );
        let op = Op::While { condition: Box::new(condition), body: Box::new(body), carried };
        Ok(self.push(op, operands, types))
    }

    fn check_body(&self, body: &Graph, operands: &[ValueId]) -> Built<()> {
        ensure!(
            body.inputs.len() == operands.len(),
            "body `{}` takes {} values, {} are given",
            body.name,
            body.inputs.len(),
            operands.len()
        );
        for (input, operand) in body.inputs.iter().zip(operands) {
            ensure!(
                body.ty(input.value) == self.ty(*operand),
                "input `{}` of body `{}` is {:?}, given is {:?}",
                input.name,
                body.name,
                body.ty(input.value),
                self.ty(*operand)
            );
        }
        Ok(())
    }
}

fn output_types(graph: &Graph) -> Vec<TensorType> {
    graph.outputs.iter().map(|output| graph.ty(output.value).clone()).collect()
}

fn axis_symbol(axis: usize) -> Symbol {
    Symbol::axis(u32::try_from(axis).expect("axes are few"))
}

/// Replaces axis `k` by `coords[k]`.
fn axis_replacer(coords: &[Expr]) -> impl Fn(Symbol) -> Option<Expr> + '_ {
    move |symbol| match symbol.kind {
        crate::symbolic::SymbolKind::Axis => coords.get(symbol.index as usize).cloned(),
        crate::symbolic::SymbolKind::Size => None,
    }
}

/// Whether coordinates name each axis in order (an axis of size 1 may also be named by 0).
fn is_identity(coords: &[Expr], shape: &[Expr]) -> bool {
    coords.len() == shape.len()
        && coords
            .iter()
            .enumerate()
            .all(|(k, coord)| *coord == Expr::axis(k) || (coord.is(0) && shape[k].is(1)))
}

/// Coordinates into `from` of the element at axes over `to`, both row-major with equally many elements.
///
/// Axes are matched in groups of equal products, so that a reshape of some axes leaves the others plain.
fn reshape_coords(from: &[Expr], to: &[Expr], ranges: &dyn Ranges) -> Vec<Expr> {
    let mut coords = Vec::with_capacity(from.len());
    let (mut f, mut t) = (0, 0);
    while f < from.len() {
        let (f_start, t_start) = (f, t);
        let (mut f_product, mut t_product) = (from[f].clone(), Expr::int(1));
        f += 1;
        if f_product.is(1) {
            coords.push(Expr::int(0));
            continue;
        }
        loop {
            if f_product == t_product {
                break;
            }
            // Take from the side that is visibly smaller; where neither is, take everything that is left.
            let t_smaller = (&f_product - &t_product).interval(ranges).min >= 0;
            if t < to.len() && (t_smaller || f == from.len()) {
                t_product = &t_product * &to[t];
                t += 1;
            } else if f < from.len() {
                f_product = &f_product * &from[f];
                f += 1;
            } else {
                break;
            }
        }
        let linear = linearize(t_start, &to[t_start..t]);
        delinearize(&linear, &from[f_start..f], ranges, &mut coords);
    }
    coords
}

fn linearize(first_axis: usize, sizes: &[Expr]) -> Expr {
    sizes
        .iter()
        .enumerate()
        .fold(Expr::int(0), |linear, (k, size)| &(&linear * size) + &Expr::axis(first_axis + k))
}

fn delinearize(linear: &Expr, sizes: &[Expr], ranges: &dyn Ranges, coords: &mut Vec<Expr>) {
    for (k, size) in sizes.iter().enumerate() {
        let stride = Expr::product(&sizes[k + 1..]);
        let quotient = linear.floor_div_in(&stride, ranges);
        coords.push(if k == 0 { quotient } else { quotient.modulo_in(size, ranges) });
    }
}

impl Graph {
    /// Position of an input's value among the inputs.
    pub fn input_position(&self, value: ValueId) -> Option<usize> {
        self.inputs.iter().position(|input| input.value == value)
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
