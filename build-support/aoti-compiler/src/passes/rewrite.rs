//! How passes over the core graph walk and replace: the shared machinery, with no rule of its own.
//!
//! A pass looks at one node at a time, in execution order, with its operands already rewritten. Values that a rule
//! replaces stay defined until [`super::dce`] takes them away.

use crate::graph::{Builder, Graph, Node, Op, ValueId};
use crate::symbolic::RangeTable;
use cranelift_entity::SecondaryMap;

/// Applies `pass` to the bodies of branches and loops, innermost first, then to the graph itself. Bodies use the
/// symbols of the outermost graph, so its ranges go with them.
pub(super) fn everywhere(mut graph: Graph, pass: &mut dyn FnMut(&mut Graph, &RangeTable)) -> Graph {
    let ranges = graph.ranges();
    in_graph(&mut graph, &ranges, pass);
    graph
}

fn in_graph(graph: &mut Graph, ranges: &RangeTable, pass: &mut dyn FnMut(&mut Graph, &RangeTable)) {
    for node in &mut graph.nodes {
        let (Op::Cond { then: first, otherwise: second } | Op::While { condition: first, body: second, .. }) =
            &mut node.op
        else {
            continue;
        };
        in_graph(first, ranges, pass);
        in_graph(second, ranges, pass);
    }
    pass(graph, ranges);
}

/// A graph while its nodes are looked at one by one.
pub(super) struct Rewriter {
    /// Makes the nodes that replace others.
    pub(super) builder: Builder,
    replaced: SecondaryMap<ValueId, Option<ValueId>>,
}

impl Rewriter {
    /// The node that makes a value, if it is not an input.
    pub(super) fn producer(&self, value: ValueId) -> Option<&Node> {
        self.builder.producer(value)
    }

    /// The operator that makes a value, if it is not an input.
    pub(super) fn op(&self, value: ValueId) -> Option<&Op> {
        self.producer(value).map(|node| &node.op)
    }

    fn replace(&mut self, old: ValueId, new: ValueId) {
        self.name_after(new, old);
        self.replaced[old] = Some(new);
    }

    /// Gives what computes most of a value, or all of it, the value's name.
    pub(super) fn name_after(&mut self, new: ValueId, old: ValueId) {
        let name = self.builder.graph().values[old].name.clone();
        if old != new && !name.is_empty() && self.producer(new).is_some() {
            self.builder.name(new, &name);
        }
    }

    /// What stands for a value of the graph as it was.
    pub(super) fn current(&self, value: ValueId) -> ValueId {
        self.replaced[value].unwrap_or(value)
    }
}

/// Walks a graph. Where `rule` gives values, they stand for the node's results and the node goes; where it gives
/// `None`, the node stays. The rule may add nodes through the builder in either case.
pub(super) fn rewrite(
    graph: &mut Graph,
    ranges: &RangeTable,
    rule: &mut dyn FnMut(&mut Rewriter, &Node) -> Option<Vec<ValueId>>,
) {
    let nodes = std::mem::take(&mut graph.nodes);
    let mut rewriter = Rewriter {
        builder: Builder::resume(std::mem::take(graph), ranges.clone()),
        replaced: SecondaryMap::new(),
    };
    for mut node in nodes {
        for input in &mut node.inputs {
            *input = rewriter.current(*input);
        }
        rewriter.builder.continue_origin(node.origin);
        match rule(&mut rewriter, &node) {
            Some(values) => {
                for (old, new) in node.outputs.iter().zip(values) {
                    rewriter.replace(*old, new);
                }
            }
            None => {
                rewriter.builder.append(node);
            }
        }
    }
    let Rewriter { builder, replaced, .. } = rewriter;
    *graph = builder.finish();
    for output in &mut graph.outputs {
        output.value = replaced[output.value].unwrap_or(output.value);
    }
}

/// How often each value is read, by nodes and as an output.
pub(super) fn count_uses(graph: &Graph) -> SecondaryMap<ValueId, usize> {
    let mut uses: SecondaryMap<ValueId, usize> = SecondaryMap::new();
    let operands = graph.nodes.iter().flat_map(|node| &node.inputs).copied();
    for value in operands.chain(graph.outputs.iter().map(|output| output.value)) {
        uses[value] += 1;
    }
    uses
}
