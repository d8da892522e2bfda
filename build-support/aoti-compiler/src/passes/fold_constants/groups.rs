//! Recognises constants whose elements are integers that are scaled in groups: what dequantising makes, and what products can read
//! as the integers.

use super::alone;
use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, Constant, Graph, Groups, Node, Op, TensorType, ValueId};
use crate::halves::{Bf16, F16};
use crate::interpret::{Tensor, evaluate};
use crate::symbolic::Expr;
use cranelift_entity::EntityRef;

/// What each element of a constant is made of: an integer times a scale, and what is added to that.
pub(super) struct Factors {
    integers: Vec<f64>,
    /// None where integers are only converted.
    scales: Option<Vec<f64>>,
    offsets: Option<Vec<f64>>,
}

impl Factors {
    /// The groups of a tensor of this type, and whether they are those of the matrix turned: its columns are where runs are.
    pub(super) fn groups(&self, ty: &TensorType) -> Option<(Groups, bool)> {
        let Some(scales) = &self.scales else { return Some((Groups::plain(&self.integers)?, false)) };
        let of = |integers: &[f64], scales: &[f64], offsets: Option<&[f64]>| {
            let either = Groups::with_offsets(integers, scales, offsets);
            either.or_else(|| Groups::with_offsets(scales, integers, offsets))
        };
        if let Some(groups) = of(&self.integers, scales, self.offsets.as_deref()) {
            return Some((groups, false));
        }
        let [rows, columns] = ty.shape.as_slice() else { return None };
        let size = |size: &Expr| size.as_int().and_then(|size| usize::try_from(size).ok());
        let (rows, columns) = (size(rows)?, size(columns)?);
        let turn = |of: &[f64]| -> Vec<f64> {
            (0..columns).flat_map(|column| (0..rows).map(move |row| of[row * columns + column])).collect()
        };
        if self.integers.len() != rows * columns || scales.len() != rows * columns {
            return None;
        }
        let offsets = self.offsets.as_deref().map(turn);
        of(&turn(&self.integers), &turn(scales), offsets.as_deref()).map(|groups| (groups, true))
    }
}

/// What a node scales, if that is integers by scales that no run replaces any of. Where it only rounds or reshapes what another one
/// scales, the elements tell whether they are still these.
pub(super) fn factors(graph: &Graph, producers: &[Option<usize>], node: &Node) -> Option<Factors> {
    let dtype = graph.ty(node.outputs[0]).dtype;
    if dtype != DType::F32 && !dtype.is_half() {
        return None;
    }
    let factor = |value: ValueId| {
        let recipe = alone(graph, producers, &graph.nodes[producers[value.index()]?]);
        let is_final = recipe.constants.values().all(Constant::is_fixed);
        is_final.then(|| evaluate(&recipe, &[]).ok()).flatten().map(|tensors| tensors[0].to_f64())
    };
    let node = behind_views(graph, producers, node)?;
    if node.op == Op::Cast {
        return Some(Factors { integers: factor(node.inputs[0])?, scales: None, offsets: None });
    }
    if node.op == Op::Binary(BinaryOp::Mul) {
        let [a, b] = [factor(node.inputs[0])?, factor(node.inputs[1])?];
        return Some(Factors { integers: a, scales: Some(b), offsets: None });
    }
    let is_sum = node.op == Op::Binary(BinaryOp::Add);
    if !is_sum && node.op != Op::Binary(BinaryOp::Sub) {
        return None;
    }
    let sign = if is_sum { 1.0 } else { -1.0 };
    let product = |value: ValueId| {
        let node = behind_views(graph, producers, &graph.nodes[producers[value.index()]?])?;
        (node.op == Op::Binary(BinaryOp::Mul)).then_some(node)
    };
    let (scaled, offset) = match product(node.inputs[0]) {
        Some(scaled) => (scaled, node.inputs[1]),
        None if is_sum => (product(node.inputs[1])?, node.inputs[0]),
        None => return None,
    };
    let offsets = factor(offset)?.into_iter().map(|number| number * sign).collect();
    let [a, b] = [factor(scaled.inputs[0])?, factor(scaled.inputs[1])?];
    Some(Factors { integers: a, scales: Some(b), offsets: Some(offsets) })
}

/// The node behind views and conversions between floats.
fn behind_views<'g>(graph: &'g Graph, producers: &[Option<usize>], mut node: &'g Node) -> Option<&'g Node> {
    while matches!(node.op, Op::View(_))
        || (node.op == Op::Cast && graph.ty(node.inputs[0]).dtype.category() == Category::Float)
    {
        node = &graph.nodes[producers[node.inputs[0].index()]?];
    }
    let is_other_cast = node.op == Op::Cast && graph.ty(node.inputs[0]).dtype.category() != Category::Int;
    (!is_other_cast).then_some(node)
}

/// Whether a tensor's elements are what is made of these groups.
pub(super) fn makes(groups: &Groups, tensor: &Tensor) -> bool {
    let made = (0..groups.integers.len()).map(|at| {
        let element = groups.element(at);
        if tensor.dtype() == DType::F16 {
            F16::from_f32(element).to_f32()
        } else if tensor.dtype() == DType::Bf16 {
            Bf16::from_f32(element).to_f32()
        } else {
            element
        }
    });
    let elements = tensor.to_f64();
    elements.len() == groups.integers.len() && made.zip(elements).all(|(own, other)| f64::from(own) == other)
}
