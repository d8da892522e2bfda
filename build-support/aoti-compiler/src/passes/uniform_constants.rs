//! Folds what is known without data: tensors of one number, and tensors of positions.
//!
//! A function of `Full` operands is a `Full`; a view of one too. Arithmetic on `Index` operands goes into their
//! expressions, and an indirect access whose indices are such an expression, provably in range, becomes direct.

use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{BinaryOp, Builder, Coord, Graph, Node, Op, OutputRole, Scalar, TensorType, ValueId};
use crate::interpret::{Tensor, evaluate};
use crate::symbolic::{Expr, RangeTable, Symbol, SymbolKind};

/// Positions are folded while they are certain to stay below this magnitude.
const MAX_POSITION: i64 = 1 << 53;

/// Folds tensors of one number and tensors of positions.
pub fn fold_uniform_constants(graph: Graph) -> Graph {
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| rule(rewriter, node).map(|value| vec![value]));
    })
}

/// The number that every element of a value is.
pub(super) fn splat(rewriter: &Rewriter, value: ValueId) -> Option<Scalar> {
    let Op::Full(scalar) = rewriter.op(value)? else { return None };
    Some(*scalar)
}

/// Of a value's elements as a function of their position.
fn position(rewriter: &Rewriter, value: ValueId) -> Option<Expr> {
    if let Op::Index(expr) = rewriter.op(value)? {
        return Some(expr.clone());
    }
    let Scalar::Int(number) = splat(rewriter, value)? else { return None };
    let number = i64::try_from(number).ok()?;
    (rewriter.builder.dtype(value) == DType::I64).then(|| Expr::int(number))
}

fn rule(rewriter: &mut Rewriter, node: &Node) -> Option<ValueId> {
    let ty = rewriter.builder.ty(*node.outputs.first()?).clone();
    match &node.op {
        Op::Constant(id) => {
            let constant = &rewriter.builder.graph().constants[*id];
            let sizes =
                constant.sizes.iter().map(|size| usize::try_from(*size).ok()).collect::<Option<_>>()?;
            let tensor = Tensor::new(constant.dtype, sizes, constant.fixed()?.clone()).ok()?;
            let number = only_element(&tensor)?;
            Some(rewriter.builder.full(number, ty.dtype, &ty.shape))
        }
        Op::Unary(op) => of_numbers(rewriter, node, &ty, |b, operands| Some(b.unary(*op, operands[0]))),
        Op::Select => of_numbers(rewriter, node, &ty, |b, operands| {
            b.select(operands[0], operands[1], operands[2]).ok()
        }),
        Op::Cast => of_numbers(rewriter, node, &ty, |b, operands| Some(b.cast(operands[0], ty.dtype))),
        Op::Binary(op) => {
            of_numbers(rewriter, node, &ty, |b, operands| b.binary(*op, operands[0], operands[1]).ok())
                .or_else(|| arithmetic(rewriter, node, *op, &ty))
        }
        Op::View(coords) => {
            if let Some(number) = splat(rewriter, node.inputs[0]) {
                return Some(rewriter.builder.full(number, ty.dtype, &ty.shape));
            }
            let expr = position(rewriter, node.inputs[0])?;
            let expr = expr.substitute(&axes_at(coords), &rewriter.builder.axis_ranges(&ty.shape));
            Some(rewriter.builder.index(expr, &ty.shape))
        }
        Op::Pad { fill, .. } => {
            let number = splat(rewriter, node.inputs[0]).filter(|number| number == fill)?;
            Some(rewriter.builder.full(number, ty.dtype, &ty.shape))
        }
        Op::Cat { .. } => {
            let first = splat(rewriter, node.inputs[0])?;
            let all = node.inputs.iter().all(|input| splat(rewriter, *input) == Some(first));
            all.then(|| rewriter.builder.full(first, ty.dtype, &ty.shape))
        }
        Op::Gather(coords) => gather(rewriter, node, coords, &ty),
        Op::Full(_)
        | Op::Index(_)
        | Op::Scatter { .. }
        | Op::Reduce { .. }
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

fn axes_at(coords: &[Expr]) -> impl Fn(Symbol) -> Option<Expr> + '_ {
    move |symbol| match symbol.kind {
        SymbolKind::Axis => coords.get(symbol.index as usize).cloned(),
        SymbolKind::Size => None,
    }
}

/// An element-wise operator on operands of one number each: the reference evaluator says what it gives.
fn of_numbers(
    rewriter: &mut Rewriter,
    node: &Node,
    ty: &TensorType,
    apply: impl FnOnce(&mut Builder, &[ValueId]) -> Option<ValueId>,
) -> Option<ValueId> {
    let mut one = Builder::new("");
    let mut operands = Vec::new();
    for input in &node.inputs {
        let number = splat(rewriter, *input)?;
        operands.push(one.scalar(number, rewriter.builder.dtype(*input)));
    }
    let result = apply(&mut one, &operands)?;
    one.output("", result, OutputRole::User);
    let number = only_element(evaluate(&one.finish(), &[]).ok()?.first()?)?;
    Some(rewriter.builder.full(number, ty.dtype, &ty.shape))
}

fn only_element(tensor: &Tensor) -> Option<Scalar> {
    if tensor.numel() != 1 {
        return None;
    }
    let number = match tensor.to_i64() {
        Some(values) => Scalar::from(values[0]),
        None => Scalar::Float(tensor.to_f64()[0]),
    };
    Some(number.cast(tensor.dtype()))
}

fn arithmetic(rewriter: &mut Rewriter, node: &Node, op: BinaryOp, ty: &TensorType) -> Option<ValueId> {
    if ty.dtype != DType::I64 {
        return None;
    }
    let (a, b) = (position(rewriter, node.inputs[0])?, position(rewriter, node.inputs[1])?);
    let ranges = rewriter.builder.axis_ranges(&ty.shape);
    let positive = b.as_int().is_some_and(|b| b > 0);
    let expr = match op {
        BinaryOp::Add => &a + &b,
        BinaryOp::Sub => &a - &b,
        BinaryOp::Mul => &a * &b,
        BinaryOp::FloorDiv if positive => a.floor_div_in(&b, &ranges),
        BinaryOp::Remainder if positive => a.modulo_in(&b, &ranges),
        BinaryOp::Maximum | BinaryOp::Fmax => a.maximum_in(&b, &ranges),
        BinaryOp::Minimum | BinaryOp::Fmin => a.minimum_in(&b, &ranges),
        BinaryOp::FloorDiv
        | BinaryOp::TruncDiv
        | BinaryOp::Remainder
        | BinaryOp::Fmod
        | BinaryOp::Pow
        | BinaryOp::Compare(_)
        | BinaryOp::Int(_)
        | BinaryOp::Float(_)
        | BinaryOp::Special(_) => return None,
    };
    // Integers wrap around, expressions do not: only what stays small is the same.
    [&a, &b, &expr]
        .iter()
        .all(|expr| is_small(expr, &ranges))
        .then(|| rewriter.builder.index(expr, &ty.shape))
}

fn is_small(expr: &Expr, ranges: &RangeTable) -> bool {
    let interval = expr.interval(ranges);
    interval.min > -MAX_POSITION && interval.max < MAX_POSITION
}

/// Index operands that are positions within range become coordinates.
fn gather(rewriter: &mut Rewriter, node: &Node, coords: &[Coord], ty: &TensorType) -> Option<ValueId> {
    let data = node.inputs[0];
    let ranges = rewriter.builder.axis_ranges(&ty.shape);
    let (mut direct, mut n_found) = (Vec::new(), 0);
    for (coord, size) in coords.iter().zip(rewriter.builder.shape(data)) {
        direct.push(match coord {
            Coord::Indirect(k) | Coord::Wrapped(k) => match position(rewriter, node.inputs[k + 1]) {
                Some(expr) if expr.never_negative(&ranges) && expr.always_less(&size, &ranges) => {
                    n_found += 1;
                    Coord::Expr(expr)
                }
                _ => coord.clone(),
            },
            Coord::Expr(_) => coord.clone(),
        });
    }
    let exprs: Option<Vec<Expr>> = direct
        .iter()
        .map(|coord| match coord {
            Coord::Expr(expr) => Some(expr.clone()),
            Coord::Indirect(_) | Coord::Wrapped(_) => None,
        })
        .collect();
    match exprs {
        Some(exprs) => rewriter.builder.view(data, &ty.shape, exprs).ok(),
        None if n_found == 0 => None,
        None => {
            let (mut inputs, mut coords) = (Vec::new(), direct);
            for coord in &mut coords {
                if let Coord::Indirect(k) | Coord::Wrapped(k) = coord {
                    inputs.push(node.inputs[*k + 1]);
                    *k = inputs.len() - 1;
                }
            }
            rewriter.builder.gather(data, &inputs, coords, &ty.shape).ok()
        }
    }
}
