//! Evaluates, when the model is compiled, what depends on constants only.
//!
//! The reference evaluator does it; what comes from weights keeps the graph that computes it (`derive.rs`). Views of
//! constants are left alone: they cost nothing, and products pack their weights through them. So are results much larger
//! than what they come from, and cheap functions of positions.

mod groups;

use super::derive;
use super::rewrite::{everywhere, rewrite};
use crate::graph::{Builder, Graph, Groups, Node, Op, OpClass, Origin, Output, OutputRole, Scalar, ValueId};
use crate::interpret::{Tensor, evaluate};
use crate::symbolic::{Expr, SymbolKind};
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A result of at most this many bytes is always worth having as a constant.
const SMALL_BYTES: u64 = 16 << 10;
/// A larger result may have this many times the bytes of the constants that it comes from: what dequantising takes.
const MAX_GROWTH: u64 = 4;
/// The same where integers in groups are scaled, which are stored as the integers: of two bits with a scale for each sixteen.
const MAX_GROWTH_OF_GROUPS: u64 = 16;
/// Functions of positions with at most this many operations are computed where they are used, unless one of them takes a kernel.
const CHEAP: usize = 8;
/// Bytes up to which what a kernel makes of positions alone is computed to see whether it is one number, as the sums are by which decoders
/// tell packed sequences apart where there is one.
const UNIFORM_BYTES: u64 = 1 << 20;
/// Work that the evaluator is willing to do for one result, in bytes of results times what each of them sums.
const MAX_WORK: u64 = 1 << 26;
/// It does this much for each byte of the constants anyway: unpacking and dequantising weights takes that, however many they are.
const WORK_PER_BYTE: u64 = 128;

/// Replaces what depends on constants only by constants.
pub fn fold_constants(graph: Graph) -> Graph {
    fold(graph, MAX_GROWTH, |_| true)
}

/// Does so with integers that are scaled in groups, however few bits they have in the program: processors read them packed.
pub fn fold_groups(graph: Graph) -> Graph {
    fold(graph, MAX_GROWTH_OF_GROUPS, |groups| groups.is_some())
}

fn fold(graph: Graph, growth: u64, is_wanted: fn(&Option<Arc<Groups>>) -> bool) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let mut folded = evaluate_all(graph, growth, is_wanted);
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Folded { recipe, tensors, groups, is_turned, number } =
                folded.remove(node.outputs.first()?)?;
            if let Some(number) = number {
                let ty = rewriter.builder.ty(node.outputs[0]).clone();
                return Some(vec![rewriter.builder.full(number, ty.dtype, &ty.shape)]);
            }
            let own = derive::add(&mut rewriter.builder, "", recipe, &tensors, groups)?;
            if !is_turned {
                return Some(own);
            }
            let shape = rewriter.builder.shape(node.outputs[0]);
            let turned = rewriter.builder.view(own[0], &shape, vec![Expr::axis(1), Expr::axis(0)]);
            Some(vec![turned.ok()?])
        });
    })
}

/// What becomes of a node.
struct Folded {
    recipe: Graph,
    tensors: Vec<Tensor>,
    groups: Option<Arc<Groups>>,
    /// Whether the tensor is the matrix turned, where that alone has groups.
    is_turned: bool,
    /// What every element of the one result is, of a kernel on positions alone.
    number: Option<Scalar>,
}

/// Every node to be replaced, by its first output.
fn evaluate_all(
    graph: &Graph,
    growth: u64,
    is_wanted: fn(&Option<Arc<Groups>>) -> bool,
) -> BTreeMap<ValueId, Folded> {
    let producers = graph.producers();
    let mut results = BTreeMap::new();
    for position in choose(graph, &producers, growth) {
        let node = &graph.nodes[position];
        let found = groups::factors(graph, &producers, node)
            .and_then(|factors| factors.groups(graph.ty(node.outputs[0])));
        let is_turned = found.as_ref().is_some_and(|(_, is_turned)| *is_turned);
        let groups = found.map(|(groups, _)| Arc::new(groups));
        if !is_wanted(&groups) {
            continue;
        }
        let recipe = alone(graph, &producers, node);
        let recipe = if is_turned { turned(recipe) } else { Some(recipe) };
        let Some(recipe) = recipe else { continue };
        if let Ok(tensors) = evaluate(&recipe, &[]) {
            let groups = groups.filter(|groups| groups::makes(groups, &tensors[0]));
            let is_of_positions = recipe.constants.is_empty();
            let number = if is_of_positions { number_of(&tensors) } else { None };
            // Larger ones were computed to see that.
            if number.is_none() && is_of_positions && bytes_of_all(graph, node) > SMALL_BYTES {
                continue;
            }
            results.insert(node.outputs[0], Folded { recipe, tensors, groups, is_turned, number });
        }
    }
    results
}

/// What every element of a single integer or boolean result is.
fn number_of(tensors: &[Tensor]) -> Option<Scalar> {
    let [tensor] = tensors else { return None };
    let values = tensor.to_i64()?;
    let first = *values.first()?;
    values.iter().all(|value| *value == first).then(|| Scalar::from(first).cast(tensor.dtype()))
}

/// A graph of one matrix that makes it turned.
fn turned(mut recipe: Graph) -> Option<Graph> {
    let value = recipe.outputs.pop()?.value;
    let ranges = recipe.ranges();
    let mut builder = Builder::resume(recipe, ranges);
    let shape: Vec<Expr> = builder.shape(value).into_iter().rev().collect();
    let own = builder.view(value, &shape, vec![Expr::axis(1), Expr::axis(0)]).ok()?;
    builder.output("", own, OutputRole::User);
    Some(builder.finish())
}

/// Positions of the nodes to evaluate.
fn choose(graph: &Graph, producers: &[Option<usize>], growth: u64) -> BTreeSet<usize> {
    let known = known_values(graph);
    let mut search = Search { graph, producers, growth, seen: SecondaryMap::new(), chosen: BTreeSet::new() };
    for node in graph.nodes.iter().filter(|node| !node.outputs.iter().any(|output| known[*output])) {
        for (position, input) in node.inputs.iter().enumerate() {
            if known[*input] {
                search.visit(*input, needs_buffer(&node.op, position));
            }
        }
    }
    for output in graph.outputs.iter().filter(|output| known[output.value]) {
        search.visit(output.value, false);
    }
    search.chosen
}

/// Operands that are copied on every run where they are not buffers already.
fn needs_buffer(op: &Op, position: usize) -> bool {
    matches!((op, position), (Op::Conv(_) | Op::Recurrent(_), _) | (Op::Gather(_), 0))
}

/// Which values depend on constants only, with fixed sizes.
fn known_values(graph: &Graph) -> SecondaryMap<ValueId, bool> {
    let mut known: SecondaryMap<ValueId, bool> = SecondaryMap::new();
    for node in &graph.nodes {
        let is_fixed = |value: &ValueId| graph.ty(*value).shape.iter().all(|size| size.as_int().is_some());
        let all = node.inputs.iter().all(|input| known[*input])
            && node.outputs.iter().all(is_fixed)
            && is_pure(&node.op);
        node.outputs.iter().for_each(|output| known[*output] = all);
    }
    known
}

/// Whether a node has no effect and mentions no size symbol.
fn is_pure(op: &Op) -> bool {
    use crate::graph::Coord;
    let fixed = |expr: &Expr| {
        let mut symbols = BTreeSet::new();
        expr.collect_symbols(&mut symbols);
        symbols.iter().all(|symbol| symbol.kind == SymbolKind::Axis)
    };
    let fixed_coord = |coord: &Coord| match coord {
        Coord::Expr(expr) => fixed(expr),
        Coord::Indirect(_) | Coord::Wrapped(_) => true,
    };
    match op.class() {
        OpClass::Source => {
            if let Op::Index(expr) = op {
                fixed(expr)
            } else {
                true
            }
        }
        OpClass::View(coords) | OpClass::Pad(coords) => coords.iter().all(fixed),
        OpClass::Gather(coords) | OpClass::Scatter(coords) => coords.iter().all(fixed_coord),
        // The last bits of a transform depend on the processor.
        OpClass::AxisOp => !matches!(op, Op::Fourier(_) | Op::Recurrent(_)),
        OpClass::Elementwise | OpClass::Concat | OpClass::Reduction(_) | OpClass::Contraction => true,
        OpClass::Opaque(_) | OpClass::Effect | OpClass::Control => false,
    }
}

/// Looks for the nodes to evaluate, from their uses backwards.
struct Search<'a> {
    graph: &'a Graph,
    producers: &'a [Option<usize>],
    /// How many times the bytes that it comes from a large result may have.
    growth: u64,
    seen: SecondaryMap<ValueId, bool>,
    /// Positions of nodes.
    chosen: BTreeSet<usize>,
}

impl Search<'_> {
    fn visit(&mut self, value: ValueId, needs_buffer: bool) {
        if self.seen[value] && !needs_buffer {
            return;
        }
        self.seen[value] = true;
        let Some(position) = self.producers[value.index()] else { return };
        let node = &self.graph.nodes[position];
        match node.op.class() {
            OpClass::Source => {}
            OpClass::View(_) if !needs_buffer => self.visit(node.inputs[0], false),
            _ if self.is_worthwhile(position, needs_buffer) => {
                self.chosen.insert(position);
            }
            OpClass::Elementwise
            | OpClass::View(_)
            | OpClass::Pad(_)
            | OpClass::Gather(_)
            | OpClass::Scatter(_)
            | OpClass::Concat
            | OpClass::Reduction(_)
            | OpClass::AxisOp
            | OpClass::Contraction
            | OpClass::Opaque(_)
            | OpClass::Effect
            | OpClass::Control => node.inputs.clone().into_iter().for_each(|input| self.visit(input, false)),
        }
    }

    fn is_worthwhile(&self, position: usize, needs_buffer: bool) -> bool {
        let cone = cone(self.graph, self.producers, position);
        let (mut operations, mut work, mut leaves) = (0, 0u64, 0u64);
        for node in cone.iter().map(|position| &self.graph.nodes[*position]) {
            let bytes = bytes_of_all(self.graph, node);
            match node.op.class() {
                OpClass::Source if matches!(node.op, Op::Constant(_)) => {
                    leaves = leaves.saturating_add(bytes)
                }
                OpClass::Source | OpClass::View(_) => {}
                OpClass::Elementwise
                | OpClass::Pad(_)
                | OpClass::Gather(_)
                | OpClass::Scatter(_)
                | OpClass::Concat
                | OpClass::Reduction(_)
                | OpClass::AxisOp
                | OpClass::Contraction
                | OpClass::Opaque(_)
                | OpClass::Effect
                | OpClass::Control => operations += 1,
            }
            work = work.saturating_add(bytes.saturating_mul(depth(self.graph, node)));
        }
        let node = &self.graph.nodes[position];
        let bytes = bytes_of_all(self.graph, node);
        let is_kernel = takes_a_kernel(node);
        let most = if is_kernel && leaves == 0 { UNIFORM_BYTES } else { SMALL_BYTES };
        let small = bytes <= most.max(leaves.saturating_mul(self.growth));
        let real = leaves > 0 || operations > CHEAP || is_kernel;
        let bearable = work <= MAX_WORK.max(leaves.saturating_mul(WORK_PER_BYTE));
        small && bearable && (real || needs_buffer)
    }
}

/// Multiplications for one element of a contraction.
fn depth(graph: &Graph, node: &Node) -> u64 {
    let elements = |value: ValueId, from: usize| {
        let sizes = graph.ty(value).shape.iter().skip(from);
        sizes.fold(1u64, |product, size| product.saturating_mul(fixed_size(size)))
    };
    match node.op.class() {
        OpClass::Contraction if node.op == Op::MatMul => {
            graph.ty(node.inputs[0]).shape.last().map_or(1, fixed_size)
        }
        OpClass::Contraction => elements(node.inputs[1], 1),
        OpClass::Reduction(_) => {
            let (from, to) = (elements(node.inputs[0], 0), elements(node.outputs[0], 0));
            from / to.max(1)
        }
        OpClass::Source
        | OpClass::Elementwise
        | OpClass::View(_)
        | OpClass::Pad(_)
        | OpClass::Gather(_)
        | OpClass::Scatter(_)
        | OpClass::Concat
        | OpClass::AxisOp
        | OpClass::Opaque(_)
        | OpClass::Effect
        | OpClass::Control => 1,
    }
}

/// Whether a kernel of its own makes what a node gives.
fn takes_a_kernel(node: &Node) -> bool {
    match node.op.class() {
        OpClass::AxisOp | OpClass::Reduction(_) | OpClass::Contraction => true,
        OpClass::Source
        | OpClass::Elementwise
        | OpClass::View(_)
        | OpClass::Pad(_)
        | OpClass::Gather(_)
        | OpClass::Scatter(_)
        | OpClass::Concat
        | OpClass::Opaque(_)
        | OpClass::Effect
        | OpClass::Control => false,
    }
}

fn bytes_of_all(graph: &Graph, node: &Node) -> u64 {
    node.outputs.iter().map(|output| bytes_of(graph, *output)).sum()
}

fn fixed_size(size: &Expr) -> u64 {
    size.as_int().and_then(|size| u64::try_from(size).ok()).unwrap_or(u64::MAX)
}

fn bytes_of(graph: &Graph, value: ValueId) -> u64 {
    let ty = graph.ty(value);
    ty.shape.iter().fold(ty.dtype.size() as u64, |bytes, size| bytes.saturating_mul(fixed_size(size)))
}

/// Positions of a node and everything that it depends on.
fn cone(graph: &Graph, producers: &[Option<usize>], position: usize) -> BTreeSet<usize> {
    let (mut cone, mut open) = (BTreeSet::new(), vec![position]);
    while let Some(position) = open.pop() {
        if cone.insert(position) {
            open.extend(graph.nodes[position].inputs.iter().filter_map(|input| producers[input.index()]));
        }
    }
    cone
}

/// A graph that computes just the results of one node, and holds nothing else.
fn alone(graph: &Graph, producers: &[Option<usize>], node: &Node) -> Graph {
    let position = producers[node.outputs[0].index()].expect("the node makes its outputs");
    let mut recipe = Graph::default();
    let origin = recipe.origins.push(Origin::default());
    let mut values: BTreeMap<ValueId, ValueId> = BTreeMap::new();
    for position in cone(graph, producers, position) {
        let old = &graph.nodes[position];
        let op = if let Op::Constant(id) = &old.op {
            Op::Constant(recipe.constants.push(graph.constants[*id].clone()))
        } else {
            old.op.clone()
        };
        let inputs = old.inputs.iter().map(|input| values[input]).collect();
        let mut define = |output: &ValueId| {
            let own = recipe.values.push(graph.values[*output].clone());
            values.insert(*output, own);
            own
        };
        let outputs = old.outputs.iter().map(&mut define).collect();
        recipe.nodes.push(Node { op, inputs, outputs, origin });
    }
    let output = |value: &ValueId| Output {
        value: values[value],
        name: String::new(),
        role: OutputRole::User,
        is_complex: false,
    };
    recipe.outputs = node.outputs.iter().map(output).collect();
    recipe
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;

    /// How many nodes are evaluated of a graph that multiplies by what the statements make of constants.
    fn chosen(constants: &str, statements: &str) -> usize {
        let graph = parse(&format!(
            "graph {{ {constants} input %x: f32[1, 2048, 8, 8] {statements}
             %y: f32[1, 2048, 6, 6] = conv %x, %w stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1
             output %y }}"
        ));
        let graph = graph.expect("the text parses");
        choose(&graph, &graph.producers(), MAX_GROWTH).len()
    }

    #[test]
    fn weights_of_any_size_are_dequantised() {
        let constants = "const c0: i8[2048, 2048, 3, 3] weight = splat 3 const c1: i64[2048] weight = splat 1
             const c2: f32[2048] weight = splat 0.5";
        let statements = "%q: i8[2048, 2048, 3, 3] = constant c0 %i: i64[2048, 2048, 3, 3] = cast %q
             %z: i64[2048] = constant c1 %zv: i64[2048, 2048, 3, 3] = view %z [i0]
             %s: f32[2048] = constant c2 %sv: f32[2048, 2048, 3, 3] = view %s [i0]
             %d: i64[2048, 2048, 3, 3] = sub %i, %zv %f: f32[2048, 2048, 3, 3] = cast %d
             %w: f32[2048, 2048, 3, 3] = mul %f, %sv";
        assert_eq!(chosen(constants, statements), 1);
    }

    #[test]
    fn long_sums_of_weights_stay() {
        let constants = "const c0: f32[2048, 2048] = splat 1 const c1: f32[2048, 18432] = splat 1";
        let statements = "%a: f32[2048, 2048] = constant c0 %b: f32[2048, 18432] = constant c1
             %p: f32[2048, 18432] = matmul %a, %b
             %w: f32[2048, 2048, 3, 3] = view %p [i0, i1 * 9 + i2 * 3 + i3]";
        assert_eq!(chosen(constants, statements), 0);
    }
}
