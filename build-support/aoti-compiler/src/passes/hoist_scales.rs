//! Numbers by which both operands of a product are scaled scale the product instead, once: (a * s) b = (a b) * s.
//!
//! Exporters of attention scale queries and keys by the root of what others scale the scores by. Afterwards both spellings are the
//! same graph: the operands are read as their products left them, which `merge_matmuls` needs.

use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Graph, Node, Op, ValueId};
use crate::symbolic::Expr;
use cranelift_entity::{EntityRef, SecondaryMap};
use std::collections::BTreeMap;

/// Scales products of computed matrices in place of their operands.
pub fn hoist_scales(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let mut products = find(graph);
        rewrite(graph, ranges, &mut |rewriter, node| {
            let product = products.remove(node.outputs.first()?)?;
            apply(rewriter, node.outputs[0], &product).map(|value| vec![value])
        });
    })
}

/// An operand without the number that it is scaled by.
struct Operand {
    /// What is scaled.
    source: ValueId,
    /// The views through which the product reads it, with their sizes, the outermost first.
    views: Vec<(Vec<Expr>, Vec<Expr>)>,
    scale: f64,
}

/// Products of which an operand is scaled, by what they give.
fn find(graph: &Graph) -> BTreeMap<ValueId, [Operand; 2]> {
    let uses = Uses { graph, counts: count_uses(graph), producers: graph.producers() };
    let mut products = BTreeMap::new();
    for node in graph.nodes.iter().filter(|node| node.op == Op::MatMul) {
        let ([left, right], [end]) = (node.inputs.as_slice(), node.outputs.as_slice()) else { continue };
        // Scores of half types may be larger than their largest number before they are scaled, and a weight takes a scale itself.
        let is_wide = matches!(graph.ty(*end).dtype, DType::F32 | DType::F64);
        if !is_wide || [left, right].into_iter().any(|operand| uses.is_constant(*operand)) {
            continue;
        }
        let operands = [left, right].map(|operand| uses.unscaled(*operand));
        let scale: f64 = operands.iter().map(|operand| operand.scale).product();
        if operands.iter().any(|operand| operand.scale != 1.0) && scale.is_normal() {
            products.insert(*end, operands);
        }
    }
    products
}

/// How a graph's values are made and used.
struct Uses<'a> {
    graph: &'a Graph,
    counts: SecondaryMap<ValueId, usize>,
    producers: Vec<Option<usize>>,
}

impl Uses<'_> {
    fn maker(&self, value: ValueId) -> Option<&Node> {
        self.producers[value.index()].map(|position| &self.graph.nodes[position])
    }

    /// Whether a value is a constant behind views.
    fn is_constant(&self, value: ValueId) -> bool {
        match self.maker(value) {
            Some(Node { op: Op::View(_), inputs, .. }) => self.is_constant(inputs[0]),
            maker => matches!(maker, Some(Node { op: Op::Constant(_), .. })),
        }
    }

    /// What of a value is left when the numbers are taken away that all its elements are multiplied by. What others read too stays.
    fn unscaled(&self, value: ValueId) -> Operand {
        let mut found = Operand { source: value, views: vec![], scale: 1.0 };
        let (mut at, mut views, mut scale) = (value, vec![], 1.0);
        while self.counts[at] == 1
            && let Some(maker) = self.maker(at)
        {
            match (&maker.op, maker.inputs.as_slice()) {
                (Op::View(coords), [inner]) => {
                    views.push((coords.clone(), self.graph.ty(at).shape.clone()));
                    at = *inner;
                }
                (Op::Binary(BinaryOp::Mul), [a, b]) => {
                    let Some((inner, number)) = self.number(*a, *b).or_else(|| self.number(*b, *a)) else {
                        break;
                    };
                    (at, scale) = (inner, scale * number);
                    found = Operand { source: at, views: views.clone(), scale };
                }
                _ => break,
            }
        }
        found
    }

    /// The first of two factors and the number that the second one is.
    fn number(&self, factor: ValueId, other: ValueId) -> Option<(ValueId, f64)> {
        let Op::Full(number) = self.maker(other)?.op else { return None };
        Some((factor, number.to_f64()))
    }
}

fn apply(rewriter: &mut Rewriter, old: ValueId, operands: &[Operand; 2]) -> Option<ValueId> {
    let mut values = Vec::new();
    for Operand { source, views, .. } in operands {
        let mut value = rewriter.current(*source);
        for (coords, shape) in views.iter().rev() {
            value = rewriter.builder.view(value, shape, coords.clone()).ok()?;
        }
        values.push(value);
    }
    let product = rewriter.builder.matmul(values[0], values[1]).ok()?;
    rewriter.name_after(product, old);
    rewriter.builder.binary_scalar(BinaryOp::Mul, product, operands[0].scale * operands[1].scale).ok()
}
