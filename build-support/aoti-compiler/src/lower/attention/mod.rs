//! Finds attention in a graph: products of queries and keys, some function of each, softmax over the keys, and the product
//! with the values, in whatever way a program spells it.
//!
//! What is found becomes one kernel where the target has a template for it; everywhere else, and wherever a step between
//! the products is wanted for itself, the steps stay kernels of their own. Decides nothing about tiles.

mod hidden;
mod search;
#[cfg(test)]
mod tests;

use super::Scope;
use super::expand::Expander;
use crate::dtype::DType;
use crate::graph::{Graph, Node, Op, Origin, ValueId};
use crate::loops::{Attention, Axis, Effect, KernelKind, MatrixOperand, OfNothing, Term};
use crate::symbolic::{Expr, RangeTable};
use crate::target::Target;
use search::Search;
use std::collections::{BTreeMap, BTreeSet};

/// The attention of a graph.
#[derive(Default)]
pub(super) struct Attentions {
    /// By the result of the second product.
    found: BTreeMap<ValueId, Pattern>,
    /// Positions of the nodes that are part of them and of nothing else.
    absorbed: BTreeSet<usize>,
}

/// One attention.
pub(super) struct Pattern {
    axes: Vec<Axis>,
    key: Axis,
    depth: Expr,
    /// Queries, keys and values.
    operands: [Operand; 3],
    /// The product of queries and keys, and what the product of the operands is multiplied by for it.
    product: (ValueId, f64),
    /// The scores that are not hidden, and their coordinates over the axes.
    scores: (ValueId, Vec<Expr>),
    reach: Option<Expr>,
    of_nothing: OfNothing,
    /// Positions of the nodes between the operands and the result.
    absorbed: BTreeSet<usize>,
}

/// A matrix within the memory of a value.
struct Operand {
    source: ValueId,
    /// What its elements are multiplied by.
    scale: f64,
    offset: Expr,
    row_stride: Expr,
    column_stride: Expr,
}

impl Attentions {
    /// All attention of a graph that is one kernel on the target.
    pub(super) fn find(graph: &Graph, ranges: &RangeTable, target: &Target) -> Attentions {
        let mut all = Attentions::default();
        let producers = graph.producers();
        for (position, node) in graph.nodes.iter().enumerate() {
            if !matches!(node.op, Op::MatMul) {
                continue;
            }
            let Some(mut search) = Search::new(graph, &producers, ranges, node) else { continue };
            if search.queries().as_int().is_some_and(|count| count < target.attention_queries()) {
                continue;
            }
            let results = |pattern: &Pattern| {
                pattern
                    .absorbed
                    .iter()
                    .any(|position| all.found.contains_key(&graph.nodes[*position].outputs[0]))
            };
            // Of attention whose scores are the result of another, the first one stays.
            if let Some(pattern) = search.pattern(position, node).filter(|pattern| !results(pattern)) {
                all.absorbed.extend(&pattern.absorbed);
                all.found.insert(node.outputs[0], pattern);
            }
        }
        all
    }

    /// Whether the node at a position needs no kernel.
    pub(super) fn absorbs(&self, position: usize) -> bool {
        self.absorbed.contains(&position)
    }

    /// The values that must have a buffer for the attention with this result.
    pub(super) fn sources(&self, result: ValueId) -> Option<impl Iterator<Item = ValueId> + '_> {
        let pattern = self.found.get(&result)?;
        Some(pattern.operands.iter().map(|operand| operand.source))
    }

    /// Takes the attention with this result.
    pub(super) fn take(&mut self, result: ValueId) -> Option<Pattern> {
        self.found.remove(&result)
    }
}

impl<'a> Scope<'a> {
    /// The kernel of an attention whose result is that of `node`.
    pub(super) fn attention(&mut self, node: &'a Node, pattern: Pattern) {
        let value = node.outputs[0];
        let dtype = self.graph.ty(value).dtype;
        let [queries, keys, values] = pattern.operands.map(|operand| MatrixOperand {
            buffer: self.realize_now(operand.source),
            offset: operand.offset,
            row_stride: operand.row_stride,
            column_stride: operand.column_stride,
        });
        let ranges = self.table(&[&pattern.axes, std::slice::from_ref(&pattern.key)]);
        let (scores, coords) = &pattern.scores;
        let is_wide = self.graph.ty(*scores).dtype == DType::F32;
        let mut expander =
            Expander::new(self, ranges, None).with_scaled_sum(pattern.product.0, pattern.product.1);
        let mut score = expander.value(*scores, coords);
        let mut stage = expander.stage;
        if !is_wide {
            score = stage.term(Term::Cast(score), DType::F32);
        }
        stage.axes = vec![pattern.key];
        stage.effects.push(Effect::Accumulate { accumulator: 0, value: score });
        let target = self.new_home(value);
        let epilogue = self.plain_epilogue(&pattern.axes, target, dtype);
        let kind = Attention {
            axes: pattern.axes,
            depth: pattern.depth,
            queries,
            keys,
            values,
            reach: pattern.reach,
            of_nothing: pattern.of_nothing,
            dtype,
            stages: [stage, epilogue],
        };
        self.run_kernel(Some(node), "attention", KernelKind::Attention(kind));
        let nodes = pattern.absorbed.iter().map(|position| &self.graph.nodes[*position]);
        let before: Vec<Origin> = nodes.map(|node| self.graph.origins[node.origin].clone()).collect();
        let (_, kernel) = self.program.kernels.iter_mut().next_back().expect("it was made right now");
        let own = std::mem::take(&mut kernel.origins);
        for origin in before.into_iter().chain(own) {
            if origin != Origin::default() && !kernel.origins.contains(&origin) {
                kernel.origins.push(origin);
            }
        }
    }
}
