//! Arithmetic of constants in `f64`: what is more than one correctly rounded operation is computed wider and rounded to
//! its own type, as the reference evaluator does it. So generated code and the evaluator give equal bits, whatever the
//! order in which vectors add up.

use super::rewrite::rewrite;
use crate::dtype::{Category, DType};
use crate::graph::{BinaryOp, Builder, FloatBinary, FloatUnary, Graph, Node, Op, ReduceOp, UnaryOp, ValueId};

/// Widens what is not exact by itself.
pub fn widen(mut graph: Graph) -> Graph {
    let ranges = graph.ranges();
    rewrite(&mut graph, &ranges, &mut |rewriter, node| {
        let dtype = rewriter.builder.dtype(*node.outputs.first()?);
        let narrow = dtype.category() == Category::Float && dtype != DType::F64;
        if !narrow || is_exact(&node.op) {
            return None;
        }
        let b = &mut rewriter.builder;
        let operands: Vec<ValueId> = node.inputs.iter().map(|input| b.cast(*input, DType::F64)).collect();
        let wide = in_f64(b, node, &operands)?;
        Some(vec![b.cast(wide, dtype)])
    });
    graph
}

fn in_f64(b: &mut Builder, node: &Node, operands: &[ValueId]) -> Option<ValueId> {
    match &node.op {
        Op::Unary(op) => Some(b.unary(*op, operands[0])),
        Op::Binary(op) => b.binary(*op, operands[0], operands[1]).ok(),
        Op::Reduce { op, axes } => b.reduce(*op, operands[0], axes, false).ok(),
        Op::MatMul => b.matmul(operands[0], operands[1]).ok(),
        Op::Conv(conv) => b.conv(operands[0], operands[1], conv.clone()).ok(),
        Op::Constant(_)
        | Op::Full(_)
        | Op::Index(_)
        | Op::Select
        | Op::Cast
        | Op::View(_)
        | Op::Pad { .. }
        | Op::Gather(_)
        | Op::Scatter { .. }
        | Op::Cat { .. }
        | Op::Scan { .. }
        | Op::Sort { .. }
        | Op::NthElement { .. }
        | Op::SearchSorted { .. }
        | Op::Routine(_)
        | Op::Fourier(_)
        | Op::Recurrent(_)
        | Op::Extern(_)
        | Op::Collective(_)
        | Op::Read(_)
        | Op::Assert(_)
        | Op::Require(_)
        | Op::Cond { .. }
        | Op::While { .. } => None,
    }
}

/// Whether an operator has one result that everyone computes alike.
fn is_exact(op: &Op) -> bool {
    match op {
        Op::Unary(op) => match op {
            UnaryOp::Abs
            | UnaryOp::Neg
            | UnaryOp::Sign
            | UnaryOp::Not
            | UnaryOp::Round(_)
            | UnaryOp::Test(_)
            | UnaryOp::Bits(_)
            | UnaryOp::Float(FloatUnary::Sqrt | FloatUnary::Rsqrt | FloatUnary::Reciprocal) => true,
            UnaryOp::Float(_) | UnaryOp::Special(_) => false,
        },
        Op::Binary(op) => match op {
            BinaryOp::Pow
            | BinaryOp::Float(FloatBinary::Atan2 | FloatBinary::Hypot)
            | BinaryOp::Special(_) => false,
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::FloorDiv
            | BinaryOp::TruncDiv
            | BinaryOp::Remainder
            | BinaryOp::Fmod
            | BinaryOp::Maximum
            | BinaryOp::Fmax
            | BinaryOp::Minimum
            | BinaryOp::Fmin
            | BinaryOp::Compare(_)
            | BinaryOp::Int(_)
            | BinaryOp::Float(_) => true,
        },
        Op::Reduce { op, .. } => *op != ReduceOp::Sum,
        Op::MatMul | Op::Conv(_) | Op::Fourier(_) | Op::Recurrent(_) => false,
        Op::Constant(_)
        | Op::Full(_)
        | Op::Index(_)
        | Op::Select
        | Op::Cast
        | Op::View(_)
        | Op::Pad { .. }
        | Op::Gather(_)
        | Op::Scatter { .. }
        | Op::Cat { .. }
        | Op::Scan { .. }
        | Op::Sort { .. }
        | Op::NthElement { .. }
        | Op::SearchSorted { .. }
        | Op::Routine(_)
        | Op::Extern(_)
        | Op::Collective(_)
        | Op::Read(_)
        | Op::Assert(_)
        | Op::Require(_)
        | Op::Cond { .. }
        | Op::While { .. } => true,
    }
}
