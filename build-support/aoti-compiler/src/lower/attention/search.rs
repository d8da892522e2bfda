//! The search behind one product: is its left operand a softmax of some function of another product?

use super::{Operand, Pattern};
use crate::dtype::DType;
use crate::graph::{
    BinaryOp, FloatBinary, FloatTest, FloatUnary, Graph, Node, Op, ReduceOp, Relation, UnaryOp, ValueId,
    composed,
};
use crate::loops::{Axis, OfNothing};
use crate::lower::element::Element;
use crate::symbolic::{Expr, RangeTable, Symbol, SymbolKind};
use cranelift_entity::EntityRef;
use indexmap::IndexSet;
use std::collections::BTreeSet;

/// Sizes of heads at most: a template holds rows of them in registers and shared memory.
const MAX_WIDTH: i64 = 256;

/// The search behind one product.
pub(super) struct Search<'g> {
    pub(super) graph: &'g Graph,
    producers: &'g [Option<usize>],
    ranges: RangeTable,
    /// Batch axes, query, column.
    pub(super) axes: Vec<Axis>,
    pub(super) key: Axis,
    /// Positions of the nodes whose part in it is understood.
    known: BTreeSet<usize>,
}

fn axis(index: usize, extent: &Expr) -> Axis {
    Axis { symbol: Symbol::axis(u32::try_from(index).expect("axes are few")), extent: extent.clone() }
}

/// Whether a coordinate is an axis, plainly.
fn is_axis(coordinate: &Expr, axis: &Axis) -> bool {
    *coordinate == Expr::sym(axis.symbol) || (axis.extent.is(1) && coordinate.is(0))
}

/// Whether an expression is the same at all positions.
pub(super) fn is_fixed(expr: &Expr) -> bool {
    let mut symbols = BTreeSet::new();
    expr.collect_symbols(&mut symbols);
    symbols.iter().all(|symbol| symbol.kind == SymbolKind::Size)
}

fn is_computed_in_f32(dtype: DType) -> bool {
    dtype.is_half() || dtype == DType::F32
}

impl<'g> Search<'g> {
    pub(super) fn new(
        graph: &'g Graph,
        producers: &'g [Option<usize>],
        ranges: &RangeTable,
        node: &Node,
    ) -> Option<Search<'g>> {
        let (result, weights) = (graph.ty(node.outputs[0]), graph.ty(node.inputs[0]));
        let rank = result.rank();
        let columns = result.shape[rank - 1].as_int()?;
        if !is_computed_in_f32(result.dtype) || !(1..=MAX_WIDTH).contains(&columns) {
            return None;
        }
        let axes: Vec<Axis> = result.shape.iter().enumerate().map(|(k, size)| axis(k, size)).collect();
        let key = axis(rank, &weights.shape[rank - 1]);
        let mut ranges = ranges.clone();
        for axis in axes.iter().chain([&key]) {
            ranges.set_extent(axis.symbol, axis.extent.clone());
        }
        Some(Search { graph, producers, ranges, axes, key, known: BTreeSet::new() })
    }

    /// How many queries there are.
    pub(super) fn queries(&self) -> &Expr {
        &self.axes[self.axes.len() - 2].extent
    }

    pub(super) fn pattern(&mut self, position: usize, node: &Node) -> Option<Pattern> {
        let rank = self.axes.len();
        let (query, column) = (self.axes[rank - 2].clone(), self.axes[rank - 1].clone());
        let batch: Vec<Expr> = (0..rank - 2).map(Expr::axis).collect();
        let at = |last: [&Axis; 2]| -> Vec<Expr> {
            batch.iter().cloned().chain(last.map(|axis| Expr::sym(axis.symbol))).collect()
        };
        let (scores, coords, of_nothing) = self.softmax(node.inputs[0], at([&query, &self.key]))?;
        let (visible, reach) = match self.hidden(scores, &coords) {
            Some((visible, reach)) => (visible, Some(reach)),
            None => (scores, None),
        };
        let (product, place) = self.product(visible, &coords)?;
        let product_node = self.node(product)?;
        let [left, right] = product_node.inputs.as_slice() else { return None };
        let depth = self.graph.ty(*left).shape.last()?.clone();
        if !depth.as_int().is_some_and(|depth| (1..=MAX_WIDTH).contains(&depth)) {
            return None;
        }
        let along_depth = axis(rank + 1, &depth);
        self.ranges.set_extent(along_depth.symbol, depth.clone());
        let outer = &place[..place.len() - 2];
        let within = |last: [&Axis; 2]| -> Vec<Expr> {
            outer.iter().cloned().chain(last.map(|axis| Expr::sym(axis.symbol))).collect()
        };
        let operands = [
            self.operand(*left, within([&query, &along_depth]), &query, &along_depth, true)?,
            self.operand(*right, within([&along_depth, &self.key]), &along_depth, &self.key, true)?,
            self.operand(node.inputs[1], at([&self.key, &column]), &self.key, &column, false)?,
        ];
        let scale = operands[0].scale * operands[1].scale;
        let absorbed = self.absorbed(self.producers[product.index()]?, position)?;
        Some(Pattern {
            axes: self.axes.clone(),
            key: self.key.clone(),
            depth,
            operands,
            product: (product, scale),
            scores: (visible, coords),
            reach,
            of_nothing,
            absorbed,
        })
    }

    pub(super) fn node(&self, value: ValueId) -> Option<&'g Node> {
        self.producers[value.index()].map(|position| &self.graph.nodes[position])
    }

    /// The node of a value, whose part is understood now.
    pub(super) fn know(&mut self, value: ValueId) -> Option<&'g Node> {
        self.known.extend(self.producers[value.index()]);
        self.node(value)
    }

    /// Whether a node only changes how many bits a number has.
    pub(super) fn is_cast(&self, node: &Node) -> bool {
        matches!(node.op, Op::Cast) && is_computed_in_f32(self.graph.ty(node.inputs[0]).dtype)
    }

    /// A view's coordinates into its operand, where they are not too long.
    pub(super) fn at(&self, map: &[Expr], coords: &[Expr]) -> Option<Vec<Expr>> {
        composed(map, coords, &self.ranges)
    }

    fn is_batch(&self, coordinate: &Expr) -> bool {
        let own = &self.axes[self.axes.len() - 2..];
        !own.iter().chain([&self.key]).any(|axis| coordinate.mentions(axis.symbol))
    }

    /// Whether coordinates are those of a score: something of the batch axes alone, then query, then key.
    fn is_score(&self, coords: &[Expr], shape: &[Expr]) -> bool {
        let [batch @ .., query, key] = coords else { return false };
        let [.., queries, keys] = shape else { return false };
        let own_query = &self.axes[self.axes.len() - 2];
        batch.iter().all(|coordinate| self.is_batch(coordinate))
            && (is_axis(query, own_query) && is_axis(key, &self.key))
            && (*queries == own_query.extent && *keys == self.key.extent)
    }

    /// What a softmax over keys is of, at which coordinates, and what it gives where there is nothing.
    fn softmax(&mut self, weights: ValueId, coords: Vec<Expr>) -> Option<(ValueId, Vec<Expr>, OfNothing)> {
        let (mut value, mut coords) = (weights, coords);
        loop {
            let node = self.know(value)?;
            if let Op::View(map) = &node.op {
                coords = self.at(map, &coords)?;
            } else if !self.is_cast(node) {
                break;
            }
            value = node.inputs[0];
        }
        let ty = self.graph.ty(value);
        if ty.dtype != DType::F32 || !self.is_score(&coords, &ty.shape) {
            return None;
        }
        let (mut nothing, mut is_nan) = (None, false);
        if let Op::Select = self.node(value)?.op {
            let [condition, zero, quotient] = self.node(value)?.inputs.as_slice() else { return None };
            // Weights of a row are NaN together: their sum is.
            is_nan = self.is_nan_of(*condition, *quotient);
            if !is_nan {
                nothing = Some(self.is_nothing(*condition, f64::NEG_INFINITY, ty.rank())?);
            }
            if !self.is_full(*zero, 0.0) {
                return None;
            }
            value = *quotient;
        }
        let [powers, total] = self.shares(value, ty.rank())?;
        let power = self.know(powers)?;
        if power.op != Op::Unary(UnaryOp::Float(FloatUnary::Exp)) {
            return None;
        }
        let [scores, peak] = self.binary(power.inputs[0], BinaryOp::Sub)?;
        let (peak, peak_is_guarded) = self.guarded(peak, f64::NEG_INFINITY, 0.0, ty.rank())?;
        let (total, total_is_guarded) = self.guarded(total, 0.0, 1.0, ty.rank())?;
        let of_row = |search: &mut Self, value, wanted, of| {
            let node = search.know(value)?;
            let Op::Reduce { op, axes } = &node.op else { return None };
            (*op == wanted && *axes == [ty.rank() - 1] && node.inputs[0] == of).then_some(())
        };
        of_row(self, peak, ReduceOp::Max, scores)?;
        of_row(self, total, ReduceOp::Sum, powers)?;
        if nothing.is_some_and(|of| of != peak) {
            return None;
        }
        let of_nothing = if is_nan {
            OfNothing::ZerosForNan
        } else if nothing.is_some() || (peak_is_guarded && total_is_guarded) {
            OfNothing::Zeros
        } else {
            OfNothing::Nothing
        };
        Some((scores, coords, of_nothing))
    }

    /// Whether a condition says which elements of a value are NaN.
    fn is_nan_of(&mut self, condition: ValueId, value: ValueId) -> bool {
        let test = Op::Unary(UnaryOp::Test(FloatTest::IsNan));
        let found = self.node(condition).is_some_and(|node| node.op == test && node.inputs[0] == value);
        if found {
            self.know(condition);
        }
        found
    }

    /// Parts of a whole and the whole of each row: a quotient, or a product with a reciprocal.
    fn shares(&mut self, value: ValueId, rank: usize) -> Option<[ValueId; 2]> {
        if let Some(quotient) = self.binary(value, BinaryOp::Float(FloatBinary::Div)) {
            return Some(quotient);
        }
        let factors = self.binary(value, BinaryOp::Mul)?;
        [factors, [factors[1], factors[0]]].into_iter().find_map(|[parts, inverse]| {
            let inverse = self.of_row(inverse, rank)?;
            let node = self.node(inverse)?;
            if node.op != Op::Unary(UnaryOp::Float(FloatUnary::Reciprocal)) {
                return None;
            }
            let total = node.inputs[0];
            self.know(inverse).map(|_| [parts, total])
        })
    }

    fn binary(&mut self, value: ValueId, wanted: BinaryOp) -> Option<[ValueId; 2]> {
        let node = self.know(value)?;
        let Op::Binary(op) = node.op else { return None };
        (op == wanted).then_some(<[ValueId; 2]>::try_from(node.inputs.as_slice()).ok()).flatten()
    }

    /// The value of each row behind views that repeat it along the row.
    fn of_row(&mut self, value: ValueId, rank: usize) -> Option<ValueId> {
        let mut value = value;
        while let Some(Node { op: Op::View(map), inputs, .. }) = self.know(value) {
            let sizes = &self.graph.ty(inputs[0]).shape;
            let plain = |(k, (coordinate, size)): (usize, (&Expr, &Expr))| match k {
                _ if k + 1 == rank => coordinate.is(0),
                _ => *coordinate == Expr::axis(k) || (size.is(1) && coordinate.is(0)),
            };
            let is_plain = map.len() + 1 >= rank && map.iter().zip(sizes).enumerate().all(plain);
            if !is_plain {
                return None;
            }
            value = inputs[0];
        }
        Some(value)
    }

    /// The value of each row, and whether `instead` stands where it is `nothing`.
    fn guarded(
        &mut self,
        value: ValueId,
        nothing: f64,
        instead: f64,
        rank: usize,
    ) -> Option<(ValueId, bool)> {
        let value = self.of_row(value, rank)?;
        let Some(Node { op: Op::Select, inputs, .. }) = self.node(value) else { return Some((value, false)) };
        let [condition, replacement, own] = inputs.as_slice() else { return None };
        let tested = self.is_nothing(*condition, nothing, rank)?;
        let own = self.of_row(*own, rank)?;
        (tested == own && self.is_full(*replacement, instead)).then_some((own, true))
    }

    /// What a condition compares with a number, for each row.
    fn is_nothing(&mut self, condition: ValueId, number: f64, rank: usize) -> Option<ValueId> {
        let condition = self.of_row(condition, rank)?;
        let [value, constant] = self.binary(condition, BinaryOp::Compare(Relation::Eq))?;
        if !self.is_full(constant, number) {
            return None;
        }
        self.of_row(value, rank)
    }

    /// Whether every element of a value is a number.
    pub(super) fn is_full(&self, value: ValueId, number: f64) -> bool {
        match self.node(value) {
            Some(Node { op: Op::Full(own), .. }) => own.to_f64() == number,
            Some(Node { op: Op::View(_), inputs, .. }) => self.is_full(inputs[0], number),
            Some(_) | None => false,
        }
    }

    /// The product that a score is an element-wise function of, and where in it.
    fn product(&mut self, scores: ValueId, coords: &[Expr]) -> Option<(ValueId, Vec<Expr>)> {
        let (mut seen, mut products) = (IndexSet::new(), IndexSet::new());
        let mut pending = vec![(scores, Some(coords.to_vec()))];
        while let Some((value, coords)) = pending.pop() {
            let Some(node) = self.node(value) else { continue };
            if matches!(node.op, Op::MatMul) {
                products.insert((value, coords));
                continue;
            }
            let Some(element) = Element::of(&node.op) else { continue };
            if !seen.insert((value, coords.clone())) {
                continue;
            }
            self.know(value);
            let inner = match &element {
                Element::View(map) => coords.and_then(|coords| self.at(map, &coords)),
                // What may lie outside, or in another operand, has no place.
                Element::Pad(..) | Element::Cat(_) => None,
                Element::Literal(_)
                | Element::Index(_)
                | Element::Unary(_)
                | Element::Binary(_)
                | Element::Select
                | Element::Cast
                | Element::Gather(_) => coords,
            };
            let from = usize::from(matches!(element, Element::Gather(_)));
            pending.extend(node.inputs[from..].iter().rev().map(|input| (*input, inner.clone())));
        }
        let is_plain = |(value, coords): &(ValueId, Option<Vec<Expr>>)| {
            let ty = self.graph.ty(*value);
            is_computed_in_f32(ty.dtype)
                && coords.as_ref().is_some_and(|coords| self.is_score(coords, &ty.shape))
        };
        let (product, coords) = products.iter().find(|entry| is_plain(entry))?.clone();
        let places = products.iter().filter(|(value, _)| *value == product).count();
        self.know(product);
        (places == 1).then_some((product, coords?))
    }

    /// The memory that a matrix is read from: as far behind views and widening as its elements lie at fixed steps. A number that all
    /// elements are multiplied by may as well scale the product (`scales`).
    fn operand(
        &self,
        value: ValueId,
        coords: Vec<Expr>,
        row: &Axis,
        column: &Axis,
        scales: bool,
    ) -> Option<Operand> {
        let (mut value, mut coords, mut scale) = (value, coords, 1.0);
        let mut found = None;
        loop {
            let own = self.strided(value, &coords, row, column);
            found = own.map(|own| Operand { scale, ..own }).or(found);
            let Some(node) = self.node(value) else { break };
            let widens = matches!(node.op, Op::Cast) && self.graph.ty(node.inputs[0]).dtype.is_half();
            if let Op::View(map) = &node.op {
                let Some(inner) = self.at(map, &coords) else { break };
                coords = inner;
                value = node.inputs[0];
            } else if widens {
                value = node.inputs[0];
            } else if let Some((of, number)) = self.multiple(node).filter(|_| scales) {
                (value, scale) = (of, scale * number);
            } else {
                break;
            }
        }
        found
    }

    /// What the elements of a product with a number are of, and the number.
    fn multiple(&self, node: &Node) -> Option<(ValueId, f64)> {
        let is_single = self.graph.ty(*node.outputs.first()?).dtype == DType::F32;
        if !(is_single && node.op == Op::Binary(BinaryOp::Mul)) {
            return None;
        }
        let [a, b] = <[ValueId; 2]>::try_from(node.inputs.as_slice()).ok()?;
        let number = |value: ValueId| {
            let Op::Full(number) = &self.node(value)?.op else { return None };
            Some(number.to_f64()).filter(|number| number.is_finite())
        };
        number(b).map(|number| (a, number)).or_else(|| number(a).map(|number| (b, number)))
    }

    fn strided(&self, source: ValueId, coords: &[Expr], row: &Axis, column: &Axis) -> Option<Operand> {
        let ty = self.graph.ty(source);
        if !is_computed_in_f32(ty.dtype) {
            return None;
        }
        let offset = coords.iter().enumerate().fold(Expr::int(0), |offset, (axis, coordinate)| {
            &offset + &(coordinate * &Expr::product(&ty.shape[axis + 1..]))
        });
        let (row_stride, rest) = offset.simplify(&self.ranges).affine_in(row.symbol)?;
        let (column_stride, offset) = rest.affine_in(column.symbol)?;
        (is_fixed(&row_stride) && is_fixed(&column_stride)).then_some(Operand {
            source,
            scale: 1.0,
            offset,
            row_stride,
            column_stride,
        })
    }

    /// The nodes on the way from one product to the other, if nothing else uses them and all are understood.
    fn absorbed(&self, first: usize, last: usize) -> Option<BTreeSet<usize>> {
        let nodes = &self.graph.nodes;
        let mut after: BTreeSet<ValueId> = nodes[first].outputs.iter().copied().collect();
        for node in &nodes[first + 1..last] {
            if node.inputs.iter().any(|input| after.contains(input)) {
                after.extend(&node.outputs);
            }
        }
        let mut between = BTreeSet::new();
        let mut wanted: BTreeSet<ValueId> = BTreeSet::from([nodes[last].inputs[0]]);
        for position in (first..last).rev() {
            let node = &nodes[position];
            if node.outputs.iter().any(|output| wanted.contains(output) && after.contains(output)) {
                between.insert(position);
                wanted.extend(&node.inputs);
            }
        }
        let inside: BTreeSet<ValueId> =
            between.iter().flat_map(|position| nodes[*position].outputs.iter().copied()).collect();
        let is_free = nodes.iter().enumerate().all(|(position, node)| {
            between.contains(&position)
                || node
                    .inputs
                    .iter()
                    .enumerate()
                    .all(|(k, input)| !inside.contains(input) || (position == last && k == 0))
        });
        let is_hidden = self.graph.outputs.iter().all(|output| !inside.contains(&output.value));
        (is_free && is_hidden && between.is_subset(&self.known)).then_some(between)
    }
}
