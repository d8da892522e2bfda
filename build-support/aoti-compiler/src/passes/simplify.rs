//! Identities that hold exactly, for every element type, NaN and negative zero included: what a node computes is had
//! more cheaply.
//!
//! Two rules are PyTorch's own choice of formula rather than identities: squares and cubes are products.

use super::rewrite::{Rewriter, everywhere, rewrite};
use super::uniform_constants::splat;
use crate::dtype::{Category, DType};
use crate::graph::{
    BinaryOp, Combine, Coord, FloatBinary, Graph, IntBinary, Node, Op, ReduceOp, Scalar, TensorType, UnaryOp,
    ValueId, composed,
};
use crate::symbolic::{Expr, Symbol};

/// Replaces nodes by cheaper equal ones.
pub fn simplify(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| match (&node.op, node.outputs.as_slice()) {
            (Op::Assert(_), _) => {
                let holds = splat(rewriter, node.inputs[0]).is_some_and(Scalar::to_bool);
                holds.then(Vec::new)
            }
            (_, [output]) => {
                let ty = rewriter.builder.ty(*output).clone();
                rule(rewriter, node, &ty).map(|value| vec![value])
            }
            _ => None,
        });
    })
}

fn rule(rewriter: &mut Rewriter, node: &Node, ty: &TensorType) -> Option<ValueId> {
    match &node.op {
        Op::Unary(op) => unary(rewriter, *op, node.inputs[0]),
        Op::Binary(op) => binary(rewriter, *op, node.inputs[0], node.inputs[1]),
        Op::Select => select(rewriter, node),
        Op::Cast => cast(rewriter, node.inputs[0], ty.dtype),
        Op::View(coords) => view(rewriter, node.inputs[0], coords, ty),
        Op::Pad { coords, fill } => {
            let ranges = rewriter.builder.axis_ranges(&ty.shape);
            let shape = rewriter.builder.shape(node.inputs[0]);
            let inside = coords
                .iter()
                .zip(&shape)
                .all(|(coord, size)| coord.never_negative(&ranges) && coord.always_less(size, &ranges));
            let padded = |rewriter: &mut Rewriter| {
                rewriter.builder.padded_view(node.inputs[0], &ty.shape, coords.clone(), *fill).ok()
            };
            inside.then(|| padded(rewriter))?
        }
        Op::Cat { axis } => cat(rewriter, &node.inputs, *axis),
        Op::Reduce { op, axes } => reduce(rewriter, *op, node.inputs[0], axes, ty),
        Op::Scatter { coords, combine: Combine::Set } => {
            // Everything is overwritten by updates of the same shape.
            let (base, updates) = (node.inputs[0], node.inputs[1]);
            let same = rewriter.builder.shape(base) == rewriter.builder.shape(updates);
            let plain =
                coords.iter().enumerate().all(|(axis, coord)| *coord == Coord::Expr(Expr::axis(axis)));
            (same && plain).then_some(updates)
        }
        Op::Constant(_)
        | Op::Full(_)
        | Op::Index(_)
        | Op::Gather(_)
        | Op::Scatter { .. }
        | Op::Scan { .. }
        | Op::Sort { .. }
        | Op::NthElement { .. }
        | Op::SearchSorted { .. }
        | Op::Routine(_)
        | Op::Fourier(_)
        | Op::Recurrent(_)
        | Op::Extern(_)
        | Op::Collective(_)
        | Op::MatMul
        | Op::Conv(_)
        | Op::Read(_)
        | Op::Assert(_)
        | Op::Require(_)
        | Op::Cond { .. }
        | Op::While { .. } => None,
    }
}

fn unary(rewriter: &mut Rewriter, op: UnaryOp, x: ValueId) -> Option<ValueId> {
    use UnaryOp::{Abs, Neg, Not, Round};
    if matches!(op, Round(_)) && !rewriter.builder.dtype(x).is_float() {
        return Some(x);
    }
    let Some(Node { op: Op::Unary(inner), inputs, .. }) = rewriter.producer(x) else { return None };
    let (inner, source) = (*inner, inputs[0]);
    match (op, inner) {
        (Neg, Neg) | (Not, Not) => Some(source),
        (Abs, Abs) | (Round(_), Round(_)) => Some(x),
        (Abs, Neg) => Some(rewriter.builder.unary(Abs, source)),
        (
            Abs
            | Neg
            | UnaryOp::Sign
            | Not
            | Round(_)
            | UnaryOp::Test(_)
            | UnaryOp::Bits(_)
            | UnaryOp::Float(_)
            | UnaryOp::Special(_),
            _,
        ) => None,
    }
}

fn is_number(rewriter: &Rewriter, value: ValueId, wanted: Scalar) -> bool {
    splat(rewriter, value) == Some(wanted.cast(rewriter.builder.dtype(value)))
}

fn binary(rewriter: &mut Rewriter, op: BinaryOp, a: ValueId, b: ValueId) -> Option<ValueId> {
    let category = rewriter.builder.dtype(a).category();
    let one = |value| is_number(rewriter, value, Scalar::Int(1));
    let zero = |value| is_number(rewriter, value, Scalar::Int(0));
    let float = category == Category::Float;
    // x + 0 turns -0 into 0; x + -0 and x - 0 are x.
    let negative_zero = |value| is_number(rewriter, value, Scalar::Float(-0.0));
    let nothing = |value| if float { negative_zero(value) } else { zero(value) };
    match op {
        BinaryOp::Add if nothing(b) => Some(a),
        BinaryOp::Add if nothing(a) => Some(b),
        BinaryOp::Sub if zero(b) => Some(a),
        BinaryOp::Mul if one(b) => Some(a),
        BinaryOp::Mul if one(a) => Some(b),
        BinaryOp::Float(FloatBinary::Div) | BinaryOp::Pow if one(b) => Some(a),
        BinaryOp::FloorDiv | BinaryOp::TruncDiv if one(b) && !float => Some(a),
        BinaryOp::Float(FloatBinary::Div) => reciprocal_of_power(rewriter, b)
            .and_then(|reciprocal| rewriter.builder.binary_scalar(BinaryOp::Mul, a, reciprocal).ok()),
        BinaryOp::Pow if is_number(rewriter, b, Scalar::Int(2)) => {
            rewriter.builder.binary(BinaryOp::Mul, a, a).ok()
        }
        BinaryOp::Pow if is_number(rewriter, b, Scalar::Int(3)) && !rewriter.builder.dtype(a).is_half() => {
            let square = rewriter.builder.binary(BinaryOp::Mul, a, a).ok()?;
            rewriter.builder.binary(BinaryOp::Mul, square, a).ok()
        }
        BinaryOp::Int(IntBinary::Shl | IntBinary::Shr) if zero(b) => Some(a),
        BinaryOp::Int(IntBinary::And | IntBinary::Or) if a == b => Some(a),
        BinaryOp::Int(IntBinary::And) if category == Category::Bool => logical(rewriter, true, a, b),
        BinaryOp::Int(IntBinary::Or) if category == Category::Bool => logical(rewriter, false, a, b),
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::Remainder
        | BinaryOp::Fmod
        | BinaryOp::Pow
        | BinaryOp::Maximum
        | BinaryOp::Minimum
        | BinaryOp::Fmax
        | BinaryOp::Fmin
        | BinaryOp::Compare(_)
        | BinaryOp::Int(_)
        | BinaryOp::Float(_)
        | BinaryOp::Special(_) => None,
    }
}

/// And with true, or with false (`neutral`): the other. And with false, or with true: that.
fn logical(rewriter: &Rewriter, neutral: bool, a: ValueId, b: ValueId) -> Option<ValueId> {
    for (x, other) in [(a, b), (b, a)] {
        if let Some(number) = splat(rewriter, x) {
            return Some(if number.to_bool() == neutral { other } else { x });
        }
    }
    None
}

/// Dividing by a power of two is multiplying by its reciprocal, where the element type holds that.
fn reciprocal_of_power(rewriter: &Rewriter, divisor: ValueId) -> Option<Scalar> {
    let Scalar::Float(number) = splat(rewriter, divisor)? else { return None };
    let is_power = number.is_normal() && number.to_bits() << 12 == 0;
    let reciprocal = Scalar::Float(1.0 / number);
    let held = reciprocal.cast(rewriter.builder.dtype(divisor)) == reciprocal;
    (is_power && held && (1.0 / number).is_normal()).then_some(reciprocal)
}

fn select(rewriter: &mut Rewriter, node: &Node) -> Option<ValueId> {
    let (condition, a, b) = (node.inputs[0], node.inputs[1], node.inputs[2]);
    if a == b {
        return Some(a);
    }
    if let Some(number) = splat(rewriter, condition) {
        return Some(if number.to_bool() { a } else { b });
    }
    match rewriter.producer(condition) {
        Some(Node { op: Op::Unary(UnaryOp::Not), inputs, .. }) => {
            let condition = inputs[0];
            rewriter.builder.select(condition, b, a).ok()
        }
        _ => None,
    }
}

fn cast(rewriter: &mut Rewriter, x: ValueId, to: DType) -> Option<ValueId> {
    if rewriter.builder.dtype(x) == to {
        return Some(x);
    }
    let Some(Node { op: Op::Cast, inputs, .. }) = rewriter.producer(x) else { return None };
    let (source, between) = (inputs[0], rewriter.builder.dtype(x));
    between.holds_all(rewriter.builder.dtype(source)).then(|| rewriter.builder.cast(source, to))
}

fn view(rewriter: &mut Rewriter, x: ValueId, coords: &[Expr], ty: &TensorType) -> Option<ValueId> {
    let behind = match rewriter.producer(x) {
        Some(Node { op: Op::View(_), .. }) => true,
        Some(Node { op: Op::Pad { coords: inner, fill }, inputs, .. }) => {
            // A view of a padded view is one padded view.
            let ranges = rewriter.builder.axis_ranges(&ty.shape);
            let composed = composed(inner, coords, &ranges)?;
            let (source, fill) = (inputs[0], *fill);
            return rewriter.builder.padded_view(source, &ty.shape, composed, fill).ok();
        }
        Some(Node { op: Op::Cat { axis }, inputs, .. }) => {
            let (axis, operands) = (*axis, inputs.clone());
            if let Some(value) = view_of_operand(rewriter, &operands, axis, coords, ty) {
                return Some(value);
            }
            false
        }
        _ => false,
    };
    let same_shape = rewriter.builder.ty(x).shape == ty.shape;
    let identity = same_shape
        && coords
            .iter()
            .enumerate()
            .all(|(axis, coord)| *coord == Expr::axis(axis) || (coord.is(0) && ty.shape[axis].is(1)));
    if identity {
        return Some(x);
    }
    behind.then(|| rewriter.builder.view(x, &ty.shape, coords.to_vec()).ok())?
}

/// A view of operands laid one after the other that is of one of them alone.
fn view_of_operand(
    rewriter: &mut Rewriter,
    operands: &[ValueId],
    axis: usize,
    coords: &[Expr],
    ty: &TensorType,
) -> Option<ValueId> {
    let ranges = rewriter.builder.axis_ranges(&ty.shape);
    let mut coords = coords.to_vec();
    for operand in operands {
        // What is before this operand is not looked at, nor what is behind the one that the view begins in.
        if !coords[axis].never_negative(&ranges) {
            return None;
        }
        let size = rewriter.builder.shape(*operand)[axis].clone();
        if coords[axis].always_less(&size, &ranges) {
            return rewriter.builder.view(*operand, &ty.shape, coords).ok();
        }
        coords[axis] = &coords[axis] - &size;
    }
    None
}

fn cat(rewriter: &mut Rewriter, operands: &[ValueId], axis: usize) -> Option<ValueId> {
    if let [only] = operands {
        return Some(*only);
    }
    let is_empty = |value: &ValueId| rewriter.builder.ty(*value).shape[axis].is(0);
    let kept: Vec<ValueId> = operands.iter().copied().filter(|value| !is_empty(value)).collect();
    match kept.len() {
        0 => Some(operands[0]),
        n if n == operands.len() => cat_of_views(rewriter, operands, axis),
        _ => rewriter.builder.cat(&kept, axis).ok(),
    }
}

/// Parts of one tensor that are joined where a single view has them, as those of complex numbers whose axes were moved apart.
fn cat_of_views(rewriter: &mut Rewriter, operands: &[ValueId], axis: usize) -> Option<ValueId> {
    let parts: Vec<(ValueId, &[Expr])> = operands
        .iter()
        .map(|operand| match rewriter.producer(*operand) {
            Some(Node { op: Op::View(coords), inputs, .. }) => Some((inputs[0], coords.as_slice())),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let (x, own) = *parts.first()?;
    if parts.iter().any(|(other, _)| *other != x) {
        return None;
    }
    let symbol = Symbol::axis(u32::try_from(axis).ok()?);
    let size_of = |operand: &ValueId| rewriter.builder.shape(*operand)[axis].clone();
    let sizes: Vec<Expr> = operands.iter().map(size_of).collect();
    let mut shape = rewriter.builder.shape(operands[0]);
    shape[axis] = sizes.iter().fold(Expr::int(0), |sum, size| &sum + size);
    let ranges = rewriter.builder.axis_ranges(&shape);
    let at = |coords: &[Expr], position: &Expr| -> Vec<Expr> {
        let replaced = |other: Symbol| (other == symbol).then(|| position.clone());
        coords.iter().map(|coord| coord.substitute(&replaced, &ranges)).collect()
    };
    // Of single elements the second says how far apart they are.
    let along = Expr::sym(symbol);
    let coords: Vec<Expr> = if sizes[0].is(1) {
        let (from, to) = (at(own, &Expr::int(0)), at(parts.get(1)?.1, &Expr::int(0)));
        let steps = from.iter().zip(&to).map(|(from, to)| (to - from).as_int());
        let steps = steps.collect::<Option<Vec<i64>>>()?;
        from.iter().zip(steps).map(|(from, step)| from + &(&along * step)).collect()
    } else {
        own.to_vec()
    };
    let mut start = Expr::int(0);
    for ((_, part), size) in parts.iter().zip(&sizes) {
        let local = if size.is(1) { Expr::int(0) } else { along.clone() };
        if at(part, &local) != at(&coords, &(&start + &local)) {
            return None;
        }
        start = &start + size;
    }
    rewriter.builder.view(x, &shape, coords).ok()
}

/// Axes of size 1 need no reduction.
fn reduce(
    rewriter: &mut Rewriter,
    op: ReduceOp,
    x: ValueId,
    axes: &[usize],
    ty: &TensorType,
) -> Option<ValueId> {
    let shape = rewriter.builder.shape(x);
    let single: Vec<usize> = axes.iter().copied().filter(|axis| shape[*axis].is(1)).collect();
    if single.is_empty() {
        return None;
    }
    if op.is_arg() {
        return Some(rewriter.builder.full(0i64, DType::I64, &ty.shape));
    }
    let left: Vec<usize> = axes
        .iter()
        .filter(|axis| !single.contains(axis))
        .map(|axis| axis - single.iter().filter(|gone| *gone < axis).count())
        .collect();
    let squeezed = rewriter.builder.squeeze(x, &single).ok()?;
    rewriter.builder.reduce(op, squeezed, &left, false).ok()
}

#[cfg(test)]
mod tests {
    use super::simplify;
    use crate::passes::tests::check;

    #[test]
    fn parts_of_one_tensor_side_by_side_are_a_view_of_it() {
        check(
            simplify,
            "input %x: f32[4, 5, 2]
             %re: f32[5, 4, 1] = view %x [i1, i0, 0] %im: f32[5, 4, 1] = view %x [i1, i0, 1]
             %c: f32[5, 4, 2] = cat %re, %im axis 2
             %low: f32[2, 5, 2] = view %x [i0, i1, i2] %high: f32[2, 5, 2] = view %x [i0 + 2, i1, i2]
             %d: f32[4, 5, 2] = cat %low, %high axis 0
             %other: f32[4, 5, 2] = cat %high, %low axis 0
             output %c output %d output %other",
            "input %x: f32[4, 5, 2]
             %c: f32[5, 4, 2] = view %x [i1, i0, i2]
             %low: f32[2, 5, 2] = view %x [i0, i1, i2] %high: f32[2, 5, 2] = view %x [i0 + 2, i1, i2]
             %other: f32[4, 5, 2] = cat %high, %low axis 0
             output %c output %x \"output_1\" output %other",
        );
    }
}
