//! Products of one matrix with several weights become one product with the weights side by side, as the queries, keys and
//! values of attention: the matrix is read once, and there is one kernel where there were three.
//!
//! Only products are joined whose readers find their part in place. Element-wise readers of whole results would be the
//! epilogue of their own product, and would become passes of their own: such products stay apart.

use super::derive;
use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::graph::{
    BinaryOp, Builder, Constant, ConstantId, Graph, Groups, Node, Op, OpClass, OriginId, OutputRole, ValueId,
};
use crate::interpret::evaluate;
use crate::symbolic::{Expr, Symbol};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Joins products of one left operand with constants.
pub fn merge_matmuls(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let mut families = find(graph);
        let mut joined: BTreeMap<ValueId, ValueId> = BTreeMap::new();
        rewrite(graph, ranges, &mut |rewriter, node| {
            let end = *node.outputs.first()?;
            if let Some(family) = families.remove(&end)
                && let Some(parts) = join(rewriter, &family)
            {
                joined.extend(family.members.iter().map(|member| member.end).zip(parts));
            }
            joined.get(&end).map(|part| vec![*part])
        });
    })
}

/// Products that differ in their weights alone.
struct Family {
    left: ValueId,
    members: Vec<Member>,
    shape: Shape,
}

/// What the members of a family have in common, beside the left operand.
#[derive(Clone, PartialEq)]
struct Shape {
    /// Coordinates of the view through which weights are read.
    weight: Option<Vec<Expr>>,
    /// The view of the product's result that spreads its rows over several axes, and its sizes but the last.
    rows: Option<(Vec<Expr>, Vec<Expr>)>,
    is_shifted: bool,
    /// Whether weights are numbers of a few bits, which are read as they are: joined with others they would be wider.
    has_groups: bool,
}

/// One product with what is added to it.
struct Member {
    weight: ConstantId,
    /// The axis of the weight along which its columns are.
    axis: usize,
    shift: Option<ConstantId>,
    columns: i64,
    /// The last value, which others read.
    end: ValueId,
    origin: OriginId,
}

/// How a graph's values are used.
struct Uses<'a> {
    graph: &'a Graph,
    producers: Vec<Option<usize>>,
    counts: SecondaryMap<ValueId, usize>,
    readers: SecondaryMap<ValueId, Vec<usize>>,
}

/// Families of more than one member, by the first value that ends one of them.
fn find(graph: &Graph) -> BTreeMap<ValueId, Family> {
    let mut readers: SecondaryMap<ValueId, Vec<usize>> = SecondaryMap::new();
    for (position, node) in graph.nodes.iter().enumerate() {
        node.inputs.iter().for_each(|input| readers[*input].push(position));
    }
    let uses = Uses { graph, producers: graph.producers(), counts: count_uses(graph), readers };
    let mut families: BTreeMap<ValueId, Vec<Family>> = BTreeMap::new();
    for node in &graph.nodes {
        let Some((shape, member)) = uses.member(node) else { continue };
        let left = node.inputs[0];
        let of_left = families.entry(left).or_default();
        match of_left.iter_mut().find(|family| family.shape == shape) {
            Some(family) => family.members.push(member),
            None => of_left.push(Family { left, members: vec![member], shape }),
        }
    }
    let several = families.into_values().flatten().filter(|family| family.members.len() > 1);
    several.map(|family| (family.members[0].end, family)).collect()
}

impl Uses<'_> {
    fn maker(&self, value: ValueId) -> Option<&Node> {
        self.producers[value.index()].map(|position| &self.graph.nodes[position])
    }

    /// The constant behind a value, and the view in between.
    fn constant(&self, value: ValueId) -> Option<(ConstantId, Option<Vec<Expr>>)> {
        let node = self.maker(value)?;
        if let Op::View(coords) = &node.op {
            let (id, below) = self.constant(node.inputs[0])?;
            return below.is_none().then(|| (id, Some(coords.clone())));
        }
        let Op::Constant(id) = node.op else { return None };
        Some((id, None))
    }

    /// The same where nothing else reads it. Numbers for the columns alone may have other readers: they are few, and exporters
    /// store equal ones once.
    fn own_constant(&self, value: ValueId) -> Option<(ConstantId, Option<Vec<Expr>>)> {
        let below = match self.maker(value)? {
            Node { op: Op::View(_), inputs, .. } => inputs[0],
            _ => value,
        };
        if self.counts[value] != 1 || self.counts[below] != 1 {
            return None;
        }
        self.constant(value)
    }

    /// The only node that reads a value, if it is no output.
    fn only_reader(&self, value: ValueId) -> Option<&Node> {
        match self.readers[value].as_slice() {
            [one] if self.counts[value] == 1 => Some(&self.graph.nodes[*one]),
            _ => None,
        }
    }

    fn member(&self, node: &Node) -> Option<(Shape, Member)> {
        if node.op != Op::MatMul {
            return None;
        }
        let columns = self.graph.ty(node.outputs[0]).shape.last()?.as_int()?;
        let (weight, view) = self.own_constant(node.inputs[1])?;
        let axis = match view.as_deref() {
            None => 1,
            Some([columns, rows]) if *columns == Expr::axis(1) && *rows == Expr::axis(0) => 0,
            Some(_) => return None,
        };
        if self.graph.constants[weight].sizes.len() != 2 {
            return None;
        }
        let mut end = node.outputs[0];
        let rows = self.rows(end);
        if rows.is_some() {
            end = self.only_reader(end)?.outputs[0];
        }
        let shift = self.shift(end, columns);
        if shift.is_some() {
            end = self.only_reader(end)?.outputs[0];
        }
        let has_groups =
            self.graph.constants[weight].groups.as_ref().is_some_and(|groups| groups.is_scaled());
        if has_groups && axis != 0 {
            return None;
        }
        let shape = Shape { weight: view, rows, is_shifted: shift.is_some(), has_groups };
        let member = Member { weight, axis, shift, columns, end, origin: node.origin };
        (self.is_read_in_place(end) && !self.could_be_epilogues(end)).then_some((shape, member))
    }

    /// The view that alone reads a product's result, where its last axis is the product's, and its other sizes.
    fn rows(&self, product: ValueId) -> Option<(Vec<Expr>, Vec<Expr>)> {
        let reader = self.only_reader(product)?;
        let Op::View(coords) = &reader.op else { return None };
        let sizes = &self.graph.ty(reader.outputs[0]).shape;
        let (last, own) = (sizes.len().checked_sub(1)?, Symbol::axis(u32::try_from(sizes.len() - 1).ok()?));
        let (column, others) = coords.split_last()?;
        let keeps = *column == Expr::sym(own) && others.iter().all(|coord| !coord.mentions(own));
        let is_whole = sizes.last() == self.graph.ty(product).shape.last();
        (keeps && is_whole).then(|| (others.to_vec(), sizes[..last].to_vec()))
    }

    /// The constant that the only reader of a value adds to each column.
    fn shift(&self, value: ValueId, columns: i64) -> Option<ConstantId> {
        let reader = self.only_reader(value)?;
        let [a, b] = *reader.inputs.as_slice() else { return None };
        if reader.op != Op::Binary(BinaryOp::Add) || a == b {
            return None;
        }
        let (id, view) = self.constant(if a == value { b } else { a })?;
        let last = self.graph.ty(value).rank().checked_sub(1)?;
        (self.graph.constants[id].sizes == [columns] && view? == [Expr::axis(last)]).then_some(id)
    }

    /// Whether all readers of a value compute with its elements where they are, through views at most.
    fn is_read_in_place(&self, value: ValueId) -> bool {
        let is_output = self.graph.outputs.iter().any(|output| output.value == value);
        let reads = |position: &usize| {
            let reader = &self.graph.nodes[*position];
            match reader.op.class() {
                OpClass::Elementwise | OpClass::Concat => true,
                OpClass::Contraction => reader.op == Op::MatMul,
                OpClass::Scatter(_) => reader.inputs[0] != value,
                OpClass::View(_) => self.is_read_in_place(reader.outputs[0]),
                OpClass::Source
                | OpClass::Pad(_)
                | OpClass::Gather(_)
                | OpClass::Reduction(_)
                | OpClass::AxisOp
                | OpClass::Opaque(_)
                | OpClass::Effect
                | OpClass::Control => false,
            }
        };
        let readers = &self.readers[value];
        !is_output && !readers.is_empty() && readers.iter().all(reads)
    }

    /// Whether all readers of a value are functions of its elements, each at its own position.
    fn could_be_epilogues(&self, value: ValueId) -> bool {
        self.readers[value].iter().all(|position| {
            let reader = &self.graph.nodes[*position];
            if let Op::View(_) = &reader.op {
                let whole = self.graph.ty(reader.outputs[0]).numel() == self.graph.ty(value).numel();
                return whole && self.could_be_epilogues(reader.outputs[0]);
            }
            reader.op.class() == OpClass::Elementwise
        })
    }
}

/// The joint product; what stands for the end of each member.
fn join(rewriter: &mut Rewriter, family: &Family) -> Option<Vec<ValueId>> {
    let Family { left, members, shape } = family;
    let left = rewriter.current(*left);
    let builder = &mut rewriter.builder;
    let origin = builder.graph().nodes.last().map(|node| node.origin);
    builder.continue_origin(members[0].origin);
    let weights: Vec<ConstantId> = members.iter().map(|member| member.weight).collect();
    let mut weight = side_by_side(builder, &weights, members[0].axis)?;
    if let Some(coords) = &shape.weight {
        let sizes: Vec<Expr> = builder.shape(weight).into_iter().rev().collect();
        weight = builder.view(weight, &sizes, coords.clone()).ok()?;
    }
    let mut whole = builder.matmul(left, weight).ok()?;
    let columns = Expr::int(members.iter().map(|member| member.columns).sum());
    if let Some((coords, sizes)) = &shape.rows {
        let coords = coords.iter().cloned().chain([Expr::axis(sizes.len())]).collect();
        let sizes: Vec<Expr> = sizes.iter().cloned().chain([columns]).collect();
        whole = builder.view(whole, &sizes, coords).ok()?;
    }
    let last = builder.rank(whole) - 1;
    if shape.is_shifted {
        let shifts: Option<Vec<ConstantId>> = members.iter().map(|member| member.shift).collect();
        let shift = side_by_side(builder, &shifts?, 0)?;
        let sizes = builder.shape(whole);
        let shift = builder.view(shift, &sizes, vec![Expr::axis(last)]).ok()?;
        whole = builder.binary(BinaryOp::Add, whole, shift).ok()?;
    }
    let mut start = 0;
    let parts = members.iter().map(|member| {
        builder.continue_origin(member.origin);
        let (from, length) = (Expr::int(start), Expr::int(member.columns));
        start += member.columns;
        builder.slice(whole, last, &from, &length, 1).ok()
    });
    let parts = parts.collect();
    if let Some(origin) = origin {
        builder.continue_origin(origin);
    }
    parts
}

/// Constants one behind the other along an axis, as a constant.
fn side_by_side(builder: &mut Builder, constants: &[ConstantId], axis: usize) -> Option<ValueId> {
    let constants: Vec<Constant> =
        constants.iter().map(|id| builder.graph().constants[*id].clone()).collect();
    let name = match constants.first()?.name.as_str() {
        "" => String::new(),
        name => format!("{name}.joined"),
    };
    let groups: Option<Vec<&Groups>> = constants.iter().map(|constant| constant.groups.as_deref()).collect();
    let is_scaled = constants.iter().flat_map(|constant| &constant.groups).any(|groups| groups.is_scaled());
    let groups = if is_scaled { Some(Arc::new(Groups::joined(&groups?)?)) } else { None };
    let mut recipe = Builder::new("");
    let parts: Option<Vec<ValueId>> =
        constants.iter().map(|constant| recipe.constant(constant.clone()).ok()).collect();
    let whole = recipe.cat(&parts?, axis).ok()?;
    recipe.output("", whole, OutputRole::User);
    let recipe = recipe.finish();
    let tensors = evaluate(&recipe, &[]).ok()?;
    derive::add(builder, &name, recipe, &tensors, groups)?.into_iter().next()
}
