//! Reads and writes at indices from data, in the order of axes that their tensors have in memory.
//!
//! A program that turns a tensor to look up along its first axis, and turns the result back, as ONNX's operators want it, means a
//! lookup along another axis.

use super::rewrite::{Rewriter, count_uses, everywhere, rewrite};
use crate::graph::{Coord, Graph, Node, Op, OpClass, TensorType, ValueId, composed};
use crate::symbolic::{Expr, Node as Formula, SymbolKind};

/// Lets lookups read and write what is turned as it was before.
pub fn orient_lookups(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        let mut uses = count_uses(graph);
        rewrite(graph, ranges, &mut |rewriter, node| {
            let [output] = node.outputs.as_slice() else { return None };
            let ty = rewriter.builder.ty(*output).clone();
            let value = match node.op.class() {
                OpClass::Gather(coords) => of_turned(rewriter, node, coords, &ty),
                OpClass::Scatter(coords) => into_turned(rewriter, node, coords),
                OpClass::View(coords) => {
                    let is_only = uses[node.inputs[0]] == 1;
                    is_only.then(|| turned(rewriter, node.inputs[0], coords, &ty)).flatten()
                }
                OpClass::Source
                | OpClass::Elementwise
                | OpClass::Pad(_)
                | OpClass::Concat
                | OpClass::Reduction(_)
                | OpClass::AxisOp
                | OpClass::Contraction
                | OpClass::Opaque(_)
                | OpClass::Effect
                | OpClass::Control => None,
            };
            if let Some(value) = value {
                uses[value] = uses[*output];
            }
            value.map(|value| vec![value])
        });
    })
}

/// The axis that an expression is, if it is one.
fn axis(expr: &Expr) -> Option<usize> {
    let Formula::Sym(symbol) = expr.node() else { return None };
    (symbol.kind == SymbolKind::Axis).then_some(symbol.index).and_then(|index| usize::try_from(index).ok())
}

/// The axes that the coordinates of a view are, if these are all of its axes in another order.
fn order(coords: &[Expr], rank: usize) -> Option<Vec<usize>> {
    let axes: Vec<usize> = coords.iter().map(axis).collect::<Option<_>>()?;
    let mut sorted = axes.clone();
    sorted.sort_unstable();
    (sorted.iter().copied().eq(0..rank) && !axes.is_sorted()).then_some(axes)
}

/// What makes a value, if that is a view: of what, and its coordinates.
fn as_view(rewriter: &Rewriter, value: ValueId) -> Option<(ValueId, Vec<Expr>)> {
    match rewriter.producer(value)? {
        Node { op: Op::View(coords), inputs, .. } => Some((inputs[0], coords.clone())),
        _ => None,
    }
}

/// A lookup in a tensor that was turned.
fn of_turned(rewriter: &mut Rewriter, node: &Node, coords: &[Coord], ty: &TensorType) -> Option<ValueId> {
    let (source, view) = as_view(rewriter, node.inputs[0])?;
    let order = order(&view, coords.len())?;
    let coords = order.iter().map(|axis| coords[*axis].clone()).collect();
    rewriter.builder.gather(source, &node.inputs[1..], coords, &ty.shape).ok()
}

/// The result of a lookup, turned.
fn turned(rewriter: &mut Rewriter, x: ValueId, view: &[Expr], ty: &TensorType) -> Option<ValueId> {
    let Node { op: Op::Gather(coords), inputs, .. } = rewriter.producer(x)? else { return None };
    let (coords, inputs) = (coords.clone(), inputs.clone());
    order(view, ty.rank())?;
    let ranges = rewriter.builder.axis_ranges(&ty.shape);
    let coords = coords.iter().map(|coord| match coord {
        Coord::Expr(own) => composed(std::slice::from_ref(own), view, &ranges)?.pop().map(Coord::Expr),
        Coord::Indirect(_) | Coord::Wrapped(_) => Some(coord.clone()),
    });
    let coords = coords.collect::<Option<Vec<Coord>>>()?;
    let indices: Vec<ValueId> = inputs[1..]
        .iter()
        .map(|index| rewriter.builder.view(*index, &ty.shape, view.to_vec()))
        .collect::<Result<_, _>>()
        .ok()?;
    rewriter.builder.gather(inputs[0], &indices, coords, &ty.shape).ok()
}

/// Updates of a tensor that was turned: those of the tensor as it was, turned after them.
fn into_turned(rewriter: &mut Rewriter, node: &Node, coords: &[Coord]) -> Option<ValueId> {
    let Op::Scatter { combine, .. } = node.op else { return None };
    let (source, view) = as_view(rewriter, node.inputs[0])?;
    let shape = rewriter.builder.shape(node.inputs[0]);
    // Positions along other axes than these are given by the view.
    let seen: Vec<usize> = view.iter().filter_map(axis).collect();
    let is_plain = view.iter().all(|own| axis(own).is_some() || own.as_int().is_some());
    let unseen: Vec<usize> = (0..shape.len()).filter(|axis| !seen.contains(axis)).collect();
    if !is_plain || seen.is_sorted() || unseen.iter().any(|axis| !shape[*axis].is(1)) {
        return None;
    }
    let new_order = [unseen, seen].concat();
    if new_order.len() != shape.len() {
        return None;
    }
    let place = |old: usize| new_order.iter().position(|axis| *axis == old);
    let new_shape: Vec<Expr> = new_order.iter().map(|axis| shape[*axis].clone()).collect();
    let new_view: Vec<Expr> = view
        .iter()
        .map(|own| axis(own).map_or(Some(own.clone()), |old| place(old).map(Expr::axis)))
        .collect::<Option<_>>()?;
    // Axis `k` of the new order is axis `new_order[k]` of the old one.
    let back = new_order.iter().map(|old| Expr::axis(*old)).collect();
    let base = rewriter.builder.view(source, &new_shape, new_view).ok()?;
    let coords = new_order.iter().map(|old| coords[*old].clone()).collect();
    let [_, updates, indices @ ..] = node.inputs.as_slice() else { return None };
    let written = rewriter.builder.scatter(base, *updates, indices, coords, combine).ok()?;
    rewriter.builder.view(written, &shape, back).ok()
}
