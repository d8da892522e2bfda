//! Decides which values get a buffer. The others are recomputed at each use, inside the kernel that uses them.

use super::attention::Attentions;
use super::bytes::Bytes;
use super::element::Element;
use super::widening::{is_widening, widens_right};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Graph, Node, Op, OpClass, ValueId, axis_occurrences};
use crate::symbolic::{Expr, RangeTable};
use crate::target::Target;
use cranelift_entity::{EntityRef, SecondaryMap};

/// What is used more than once gets a buffer from this many operations on.
const SHARED_WEIGHT: usize = 3;

/// The most operations by which a value that is used more than once is made of bytes anew each time.
const WIDENING_WEIGHT: usize = 4;

/// What computing an element of a value costs where it has no buffer.
#[derive(Clone, Copy, Default)]
struct Cost {
    /// Number of operations.
    weight: usize,
    /// Whether some operation takes much longer than an addition.
    heavy: bool,
    /// Whether it reads a contraction's result, in whose epilogue it could be computed.
    contraction: bool,
    /// Whether an index that data gives is checked on the way.
    checks: bool,
    /// How many times longer than a coordinate at which it is read a coordinate behind its views may be.
    growth: usize,
}

/// Most times that coordinates may become longer on the way to a buffer.
const MAX_GROWTH: usize = 256;

/// Decides for all values of a graph.
pub(super) fn decide(
    graph: &Graph,
    ranges: &RangeTable,
    target: &Target,
    (attentions, bytes): (&Attentions, &Bytes),
) -> SecondaryMap<ValueId, bool> {
    let (uses, producers) = (count_uses(graph), graph.producers());
    let mut realized: SecondaryMap<ValueId, bool> = SecondaryMap::new();
    let mut costs: SecondaryMap<ValueId, Cost> = SecondaryMap::new();
    // What a chain of views ends at, and one of views and of conversions that lose nothing, for the values seen so far.
    let mut views: SecondaryMap<ValueId, Option<ValueId>> = SecondaryMap::new();
    let mut widened: SecondaryMap<ValueId, Option<ValueId>> = SecondaryMap::new();
    for (position, node) in graph.nodes.iter().enumerate() {
        let sources = node.outputs.first().and_then(|value| attentions.sources(*value));
        if let Some(sources) = sources {
            for source in sources {
                realized[source] = true;
                costs[source] = Cost::default();
            }
        } else if !(attentions.absorbs(position) && matches!(node.op, Op::MatMul)) {
            let behind = if widens_right(graph, node, target) { [&views, &widened] } else { [&views; 2] };
            let left = node.outputs.first().and_then(|result| bytes.left(*result));
            demand_operands(
                (graph, &producers, ranges, target),
                (node, left),
                behind,
                &mut realized,
                &mut costs,
            );
        }
        let is_view = matches!(node.op, Op::View(_));
        let behind = |map: &SecondaryMap<ValueId, Option<ValueId>>| {
            let operand = node.inputs[0];
            map[operand].filter(|_| !realized[operand]).or(Some(operand))
        };
        if is_view {
            views[node.outputs[0]] = behind(&views);
        }
        if is_view || is_widening(graph, node) {
            widened[node.outputs[0]] = behind(&widened);
        }
        // Only the attention that they are part of computes them.
        if attentions.absorbs(position) {
            continue;
        }
        for output in &node.outputs {
            let Some(element) = element(node, target, &costs) else {
                // Constants are memory already.
                realized[*output] = !matches!(node.op, Op::Constant(_));
                costs[*output].contraction = matches!(node.op, Op::MatMul | Op::Conv(_));
                continue;
            };
            let cost = inline_cost(node, &element, &costs);
            costs[*output] = cost;
            let in_epilogue = cost.contraction && cost.weight > 0;
            let shared = uses[*output] > 1 && (cost.heavy || cost.weight >= SHARED_WEIGHT || in_epilogue);
            // Bytes made of sums are a quarter of these.
            let narrows = node.op == Op::Cast && cost.contraction && is_byte(graph, *output);
            if cost.weight > target.inline_operations() || narrows {
                realized[*output] = true;
                costs[*output] = Cost::default();
            } else if shared {
                keep((graph, &producers, target), *output, WIDENING_WEIGHT, &mut realized, &mut costs);
            }
        }
    }
    for output in &graph.outputs {
        realized[output.value] = true;
    }
    realized
}

/// What an element of a node's result is, where it needs no kernel of its own.
fn element<'a>(node: &'a Node, target: &Target, costs: &SecondaryMap<ValueId, Cost>) -> Option<Element<'a>> {
    // Every operand is computed at every position, though read only where it lies: no index may be at fault elsewhere.
    let is_cheap = |value: &ValueId| !costs[*value].heavy && !costs[*value].checks;
    if node.inputs.len() <= target.inline_operands() && node.inputs.iter().all(is_cheap) {
        Element::in_place(&node.op)
    } else {
        Element::of(&node.op)
    }
}

/// How many nodes read each value, and outputs. A node computes an operand once, however often it has it.
pub(super) fn count_uses(graph: &Graph) -> SecondaryMap<ValueId, usize> {
    let mut uses: SecondaryMap<ValueId, usize> = SecondaryMap::new();
    for node in &graph.nodes {
        for (position, operand) in node.inputs.iter().enumerate() {
            if !node.inputs[..position].contains(operand) {
                uses[*operand] += 1;
            }
        }
    }
    for output in &graph.outputs {
        uses[output.value] += 1;
    }
    uses
}

/// Operands that an operator can only read from a buffer, and operands that it would compute too often.
fn demand_operands(
    (graph, producers, ranges, target): (&Graph, &[Option<usize>], &RangeTable, &Target),
    (node, bytes): (&Node, Option<ValueId>),
    [behind_left, behind_right]: [&SecondaryMap<ValueId, Option<ValueId>>; 2],
    realized: &mut SecondaryMap<ValueId, bool>,
    costs: &mut SecondaryMap<ValueId, Cost>,
) {
    let too_often = node.inputs.first().map_or_else(Cost::default, |operand| costs[*operand]);
    let mut demand = |value: ValueId| {
        realized[value] = true;
        costs[value] = Cost::default();
    };
    match node.op.class() {
        OpClass::Gather(_) => demand(node.inputs[0]),
        OpClass::AxisOp | OpClass::Opaque(_) | OpClass::Effect | OpClass::Control => {
            node.inputs.iter().copied().for_each(demand);
        }
        OpClass::Contraction => {
            let (left, right) = (bytes.unwrap_or(node.inputs[0]), node.inputs[1]);
            // Products read strided views of buffers in place; what is behind the view must have one.
            let is_product = node.op == Op::MatMul;
            demand(behind_left[left].filter(|_| is_product).unwrap_or(left));
            demand(behind_right[right].filter(|_| is_product).unwrap_or(right));
        }
        OpClass::View(_) | OpClass::Pad(_) => {
            if growth(node, too_often) > MAX_GROWTH {
                demand(node.inputs[0]);
                return;
            }
            // In the epilogue of a contraction it is computed once, before the sum ever reaches memory.
            let free = too_often.contraction && too_often.weight > 0;
            if (too_often.heavy || too_often.weight >= SHARED_WEIGHT || free)
                && repeats_elements(graph, ranges, node)
            {
                keep((graph, producers, target), node.inputs[0], SHARED_WEIGHT - 1, realized, costs);
            }
        }
        OpClass::Source
        | OpClass::Elementwise
        | OpClass::Scatter(_)
        | OpClass::Concat
        | OpClass::Reduction(_) => {}
    }
}

/// Has a value computed once: it gets a buffer, or the narrow numbers do that it is made of by at most so many operations, which are a
/// half or a quarter of what it would take.
fn keep(
    (graph, producers, target): (&Graph, &[Option<usize>], &Target),
    value: ValueId,
    most: usize,
    realized: &mut SecondaryMap<ValueId, bool>,
    costs: &mut SecondaryMap<ValueId, Cost>,
) {
    let narrow = widened_bytes(graph, producers, value, most)
        .or_else(|| target.keeps_halves().then(|| widened_half(graph, producers, value)).flatten());
    let (kept, widening) = narrow.unwrap_or((value, Vec::new()));
    if producers[kept.index()].is_some() {
        realized[kept] = true;
    }
    costs[kept] = Cost::default();
    for (before, own) in widening.into_iter().rev().enumerate() {
        costs[own] = Cost { weight: before + 1, growth: costs[own].growth, ..Cost::default() };
    }
}

/// The halves that a value shows, widened, and what is between: views and the conversion, last first.
fn widened_half(
    graph: &Graph,
    producers: &[Option<usize>],
    value: ValueId,
) -> Option<(ValueId, Vec<ValueId>)> {
    let (mut own, mut behind) = (value, vec![]);
    loop {
        let node = &graph.nodes[producers[own.index()]?];
        let converts = is_widening(graph, node);
        if !converts && !matches!(node.op, Op::View(_)) {
            return None;
        }
        behind.push(own);
        own = node.inputs[0];
        if converts {
            return graph.ty(own).dtype.is_half().then_some((own, behind));
        }
    }
}

fn is_byte(graph: &Graph, value: ValueId) -> bool {
    matches!(graph.ty(value).dtype, DType::U8 | DType::I8 | DType::Bool)
}

/// The bytes that a value is made of, and what is made of them on the way, last first: conversions, and what is done with one number.
fn widened_bytes(
    graph: &Graph,
    producers: &[Option<usize>],
    value: ValueId,
    most: usize,
) -> Option<(ValueId, Vec<ValueId>)> {
    let maker = |value: ValueId| producers[value.index()].map(|position| &graph.nodes[position]);
    let (mut own, mut widening) = (value, Vec::new());
    while !is_byte(graph, own) && widening.len() < most {
        let node = maker(own)?;
        let is_scaled = matches!(node.op, Op::Binary(BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul))
            && maker(node.inputs[1]).is_some_and(|maker| matches!(maker.op, Op::Full(_)));
        if node.op != Op::Cast && !is_scaled {
            return None;
        }
        widening.push(own);
        own = node.inputs[0];
    }
    let is_constant = maker(own).is_some_and(|maker| matches!(maker.op, Op::Constant(_)));
    (is_byte(graph, own) && !widening.is_empty() && !is_constant).then_some((own, widening))
}

/// How many times longer coordinates become through a node and what is behind its operands.
fn growth(node: &Node, operands: Cost) -> usize {
    let own = match node.op.class() {
        OpClass::View(coords) | OpClass::Pad(coords) => axis_occurrences(coords, MAX_GROWTH + 1),
        OpClass::Source
        | OpClass::Elementwise
        | OpClass::Gather(_)
        | OpClass::Scatter(_)
        | OpClass::Concat
        | OpClass::Reduction(_)
        | OpClass::AxisOp
        | OpClass::Contraction
        | OpClass::Opaque(_)
        | OpClass::Effect
        | OpClass::Control => 1,
    };
    own.max(1) * operands.growth.max(1)
}

/// Whether a view shows some element more than once (judged by sizes).
fn repeats_elements(graph: &Graph, ranges: &RangeTable, node: &Node) -> bool {
    let (from, to) = (graph.ty(node.inputs[0]).numel(), graph.ty(node.outputs[0]).numel());
    let difference: Expr = &to - &from;
    difference.interval(ranges).max > 0
}

/// The cost of what computes an element, given that of its operands.
fn inline_cost(node: &Node, element: &Element, costs: &SecondaryMap<ValueId, Cost>) -> Cost {
    let own = element.weight();
    let operands = node.inputs.iter().map(|value| costs[*value]);
    let sum = operands.fold(Cost::default(), |sum, cost| Cost {
        weight: sum.weight + cost.weight,
        heavy: sum.heavy || cost.heavy,
        contraction: sum.contraction || cost.contraction,
        checks: sum.checks || cost.checks,
        growth: sum.growth.max(cost.growth),
    });
    let gathers = matches!(element, Element::Gather(_));
    Cost {
        weight: sum.weight + own,
        heavy: sum.heavy || own > 9,
        contraction: sum.contraction && !gathers,
        checks: sum.checks || gathers,
        growth: growth(node, sum),
    }
}
