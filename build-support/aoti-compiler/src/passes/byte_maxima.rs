//! The largest of dequantised numbers is the largest byte, dequantised: pooling compares bytes, and what is done to numbers is done
//! to results alone. So it is for any function that never falls where its number grows, and for the least one.

use super::byte_products::is_byte;
use super::nested_limits::{Step, StepOp, step};
use super::rewrite::{Rewriter, everywhere, rewrite};
use crate::dtype::DType;
use crate::graph::{Graph, Node, Op, ReduceOp, Scalar, ValueId};
use crate::symbolic::{Expr, NoRanges, Symbol};
use crate::target::Target;

/// Functions that are looked at in a row.
const MOST_STEPS: usize = 16;
/// Positions at which a coordinate is looked at.
const MOST_POSITIONS: i64 = 1 << 16;

/// Reduces bytes, on processors.
pub fn maxima_of_bytes(graph: Graph, target: &Target) -> Graph {
    match target {
        Target::Gpu(_) => return graph,
        Target::Cpu(_) => {}
    }
    everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let Op::Reduce { op: op @ (ReduceOp::Max | ReduceOp::Min), axes } = &node.op else { return None };
            reduced(rewriter, node, *op, axes).map(|value| vec![value])
        });
    })
}

/// What is done to a byte before it is compared.
enum Function {
    /// A conversion.
    Cast(DType),
    /// A function of one number.
    Step(StepOp),
}

/// The function of the largest byte.
fn reduced(rewriter: &mut Rewriter, node: &Node, op: ReduceOp, axes: &[usize]) -> Option<ValueId> {
    let operand = node.inputs[0];
    let view = rewriter.producer(operand).filter(|maker| matches!(maker.op, Op::View(_) | Op::Pad { .. }));
    let view = view.cloned();
    let (byte, functions) = byte_behind(rewriter, view.as_ref().map_or(operand, |view| view.inputs[0]))?;
    let dtype = rewriter.builder.dtype(byte);
    let shape = rewriter.builder.shape(operand);
    let seen = match view.as_ref().map(|view| &view.op) {
        Some(Op::View(coords)) => rewriter.builder.view(byte, &shape, coords.clone()).ok()?,
        Some(Op::Pad { coords, fill }) => {
            let (outside, least) = if op == ReduceOp::Max {
                (f64::NEG_INFINITY, Scalar::lowest(dtype))
            } else {
                (f64::INFINITY, Scalar::highest(dtype))
            };
            let own = rewriter.builder.shape(byte);
            if fill.to_f64() != outside || !sees_any(coords, &own, &shape, axes) {
                return None;
            }
            rewriter.builder.padded_view(byte, &shape, coords.clone(), least).ok()?
        }
        _ => byte,
    };
    let b = &mut rewriter.builder;
    let mut value = b.reduce(op, seen, axes, false).ok()?;
    // From the innermost on.
    for function in functions.into_iter().rev() {
        value = match function {
            Function::Cast(dtype) => b.cast(value, dtype),
            Function::Step(StepOp::Unary(op)) => b.unary(op, value),
            Function::Step(StepOp::Binary(op, number)) => b.binary_scalar(op, value, number).ok()?,
        };
    }
    Some(value)
}

/// The byte of which a value is a function that never falls, and the functions that make it, the last one first.
fn byte_behind(rewriter: &Rewriter, mut value: ValueId) -> Option<(ValueId, Vec<Function>)> {
    let mut functions = Vec::new();
    while !is_byte(rewriter.builder.dtype(value)) && functions.len() < MOST_STEPS {
        let maker = rewriter.producer(value)?;
        let dtype = rewriter.builder.dtype(value);
        if maker.op == Op::Cast {
            // Of what holds all bytes, and of the like.
            let holds = |dtype: DType| is_byte(dtype) || matches!(dtype, DType::I32 | DType::F32);
            if !holds(rewriter.builder.dtype(maker.inputs[0])) || !holds(dtype) {
                return None;
            }
            functions.push(Function::Cast(dtype));
            value = maker.inputs[0];
        } else {
            let Step { op, from } = step(rewriter, maker)?;
            functions.push(Function::Step(op));
            value = from;
        }
    }
    (is_byte(rewriter.builder.dtype(value)) && !functions.is_empty()).then_some((value, functions))
}

/// Whether some element is within an operand wherever axes of a padded view are reduced: for each coordinate by itself, as no two
/// mention the same one of these axes.
fn sees_any(coords: &[Expr], own: &[Expr], shape: &[Expr], axes: &[usize]) -> bool {
    let symbols: Vec<(Symbol, &Expr, bool)> = (0u32..)
        .zip(shape)
        .zip(0..)
        .map(|((axis, extent), at)| (Symbol::axis(axis), extent, axes.contains(&at)))
        .collect();
    let is_shared = symbols.iter().any(|(symbol, _, is_reduced)| {
        *is_reduced && coords.iter().filter(|coord| coord.mentions(*symbol)).count() > 1
    });
    let of = |coord: &Expr, reduced: bool| {
        let all = symbols.iter().filter(|(symbol, _, own)| *own == reduced && coord.mentions(*symbol));
        all.map(|(symbol, extent, _)| Some((*symbol, extent.as_int()?))).collect::<Option<Vec<_>>>()
    };
    let sees = |(coord, size): (&Expr, &Expr)| -> Option<bool> {
        let (kept, reduced, size) = (of(coord, false)?, of(coord, true)?, size.as_int()?);
        let count = |axes: &[(Symbol, i64)]| {
            axes.iter().try_fold(1, |count: i64, (_, extent)| count.checked_mul(*extent))
        };
        let (positions, window) = (count(&kept)?, count(&reduced)?);
        if positions.checked_mul(window)? > MOST_POSITIONS {
            return None;
        }
        let within = |coord: &Expr| coord.as_int().is_some_and(|at| (0..size).contains(&at));
        Some((0..positions).all(|position| {
            let own = at(coord, &kept, position);
            (0..window).any(|position| within(&at(&own, &reduced, position)))
        }))
    };
    !is_shared && coords.iter().zip(own).all(|pair| sees(pair) == Some(true))
}

/// An expression at a position of some axes.
fn at(coord: &Expr, axes: &[(Symbol, i64)], mut position: i64) -> Expr {
    let mut coord = coord.clone();
    for (symbol, extent) in axes.iter().rev() {
        let own = Expr::int(position % extent);
        coord = coord.substitute(&|other| (other == *symbol).then(|| own.clone()), &NoRanges);
        position /= extent;
    }
    coord
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::{Tensor, evaluate};
    use crate::passes::dce;

    /// Whether bytes are compared after the pass, which keeps the results of a graph of one input.
    #[track_caller]
    fn compares_bytes(text: &str, dtype: DType) -> bool {
        let graph = parse(&format!("graph {{ {text} }}")).expect("the text parses");
        verify(&graph).expect("the graph is well formed");
        let result = dce(maxima_of_bytes(graph.clone(), &Target::cpu(&["x86-64-v3"])));
        verify(&result).expect("the result is well formed");
        let bytes: Vec<u8> = (0..2 * 7 * 9).map(|at| (at * 97 % 251) as u8).collect();
        let inputs = [Tensor::new(dtype, vec![2, 7, 9], bytes).expect("the data fit")];
        assert_eq!(evaluate(&graph, &inputs).expect("runs"), evaluate(&result, &inputs).expect("runs"));
        let mut reductions = result.nodes.iter().filter(|node| matches!(node.op, Op::Reduce { .. }));
        reductions.all(|node| is_byte(result.ty(node.inputs[0]).dtype))
    }

    /// A pooling of windows of three by three, two apart, of bytes times a number.
    fn pooled(dtype: &str, op: &str, fill: &str, scale: &str, [low, rows]: [i64; 2]) -> String {
        format!(
            "input %x: {dtype}[2, 7, 9] %w: i32[2, 7, 9] = cast %x %z: i32[2, 7, 9] = full 3 %d: i32[2, 7, 9] = sub %w, %z
             %c: f32[2, 7, 9] = cast %d %s: f32[2, 7, 9] = full {scale} %m: f32[2, 7, 9] = mul %c, %s
             %p: f32[2, {rows}, 5, 3, 3] = pad %m [i0, 2*i1 + i3 - {low}, 2*i2 + i4 - 1] fill {fill}
             %y: f32[2, {rows}, 5] = {op} %p axes [3, 4] output %y \"y\""
        )
    }

    #[test]
    fn pooling_compares_the_bytes_that_are_dequantised() {
        for (name, dtype) in [("u8", DType::U8), ("i8", DType::I8)] {
            assert!(compares_bytes(&pooled(name, "max", "-inf", "0.25", [1, 4]), dtype));
            assert!(compares_bytes(&pooled(name, "min", "inf", "0.25", [1, 4]), dtype));
        }
    }

    #[test]
    fn other_functions_and_windows_stay() {
        assert!(!compares_bytes(&pooled("u8", "max", "-inf", "-0.25", [1, 4]), DType::U8), "it falls");
        assert!(!compares_bytes(&pooled("u8", "max", "0.0", "0.25", [1, 4]), DType::U8), "zeros are around");
        assert!(
            !compares_bytes(&pooled("u8", "max", "-inf", "0.25", [4, 4]), DType::U8),
            "a window sees nothing"
        );
        assert!(
            !compares_bytes(&pooled("u8", "max", "-inf", "0.25", [1, 6]), DType::U8),
            "one behind the rows"
        );
    }
}
