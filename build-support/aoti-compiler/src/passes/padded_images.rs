//! Images that a program is given, quantised for a convolution: what is around them, and channels that make whole words, are zeros
//! of the image itself, so that one loop reads it, quantises it and writes what the convolution reads.

use crate::dtype::DType;
use crate::graph::{BinaryOp, Builder, Op, OutputRole, Scalar, UnaryOp, ValueId};
use crate::interpret::evaluate;
use crate::symbolic::Expr;

/// Functions that are looked at in a row.
const MOST_STEPS: usize = 16;

/// A function of each element.
enum Function {
    Cast(DType),
    Unary(UnaryOp),
    /// With this number on the right.
    Binary(BinaryOp, Scalar),
}

impl Function {
    fn apply(&self, b: &mut Builder, x: ValueId) -> Option<ValueId> {
        match *self {
            Function::Cast(dtype) => Some(b.cast(x, dtype)),
            Function::Unary(op) => Some(b.unary(op, x)),
            Function::Binary(op, number) => b.binary_scalar(op, x, number).ok(),
        }
    }
}

/// Bytes with so many elements before and behind them along each axis, that are `fill`: of a padded input of the program, if they are
/// made of one, and its zeros become that.
pub(super) fn padded_image(
    b: &mut Builder,
    bytes: ValueId,
    amounts: &[(i64, i64)],
    fill: i64,
) -> Option<ValueId> {
    if amounts.iter().all(|amount| *amount == (0, 0)) {
        return None;
    }
    let (image, functions) = image_behind(b, bytes)?;
    if of_zero(b.dtype(image), &functions)? != fill {
        return None;
    }
    let amounts: Vec<(Expr, Expr)> =
        amounts.iter().map(|(low, high)| (Expr::int(*low), Expr::int(*high))).collect();
    let padded = b.pad(image, &amounts, 0.0f64).ok()?;
    functions.iter().try_fold(padded, |value, function| function.apply(b, value))
}

/// The input that a value is a function of, element by element, and the functions, the first one first.
fn image_behind(b: &Builder, mut value: ValueId) -> Option<(ValueId, Vec<Function>)> {
    let number = |value: ValueId| {
        let Op::Full(number) = b.producer(value)?.op else { return None };
        Some(number)
    };
    let mut functions = Vec::new();
    while let Some(maker) = b.producer(value) {
        if functions.len() == MOST_STEPS {
            return None;
        }
        let mut from = *maker.inputs.first()?;
        functions.push(if maker.op == Op::Cast {
            Function::Cast(b.dtype(value))
        } else if let Op::Unary(op) = maker.op {
            Function::Unary(op)
        } else if let Op::Binary(op) = maker.op {
            let other = maker.inputs[1];
            let either_way =
                matches!(op, BinaryOp::Add | BinaryOp::Mul | BinaryOp::Maximum | BinaryOp::Minimum);
            match (number(from), number(other)) {
                (None, Some(number)) => Function::Binary(op, number),
                (Some(number), None) if either_way => {
                    from = other;
                    Function::Binary(op, number)
                }
                _ => return None,
            }
        } else {
            return None;
        });
        value = from;
    }
    functions.reverse();
    (b.dtype(value) == DType::F32).then_some((value, functions))
}

/// What becomes of zero.
fn of_zero(dtype: DType, functions: &[Function]) -> Option<i64> {
    let mut b = Builder::new("");
    let zero = b.full(0.0f64, dtype, &[Expr::int(1)]);
    let result = functions.iter().try_fold(zero, |value, function| function.apply(&mut b, value))?;
    b.output("", result, OutputRole::User);
    let results = evaluate(&b.finish(), &[]).ok()?;
    results.first()?.to_i64()?.first().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::text::parse;
    use crate::graph::verify;
    use crate::interpret::Tensor;
    use crate::passes::{dce, products_of_bytes};
    use crate::target::Target;

    /// What is padded where an image is quantised by this zero point, which stands for zero if that is what is added.
    #[track_caller]
    fn padded_dtypes(zero: i64, added: i64) -> Vec<DType> {
        let all = "[1, 3, 6, 5]";
        let text = format!(
            "const c0: i8[8, 3, 3, 3] = random 1 input %x: f32{all} %w: i8[8, 3, 3, 3] = constant c0 %v: i32[8, 3, 3, 3] = cast %w
             %s: f32{all} = full 20.0 %m: f32{all} = mul %x, %s %r: f32{all} = round %m %p: f32{all} = full {added}.0
             %a: f32{all} = add %r, %p %l: f32{all} = full 0.0 %b: f32{all} = maximum %a, %l %h: f32{all} = full 255.0
             %c: f32{all} = minimum %b, %h %q: u8{all} = cast %c %i: i32{all} = cast %q %z: i32{all} = full {zero}
             %d: i32{all} = sub %i, %z
             %y: i32[1, 8, 6, 5] = conv %d, %v stride [1, 1] padding [1:1, 1:1] dilation [1, 1] groups 1 output %y \"y\""
        );
        let graph = parse(&format!("graph {{ {text} }}")).expect("the text parses");
        verify(&graph).expect("the graph is well formed");
        let result = dce(products_of_bytes(graph.clone(), &Target::cpu(&["x86-64-v3"])));
        verify(&result).expect("the result is well formed");
        let numbers: Vec<f32> = (0..90u8).map(|at| f32::from(at % 23) - 11.0).collect();
        let inputs = [Tensor::from_f32(&[1, 3, 6, 5], &numbers)];
        assert_eq!(evaluate(&graph, &inputs).expect("runs"), evaluate(&result, &inputs).expect("runs"));
        let pads = result.nodes.iter().filter(|node| matches!(node.op, Op::Pad { .. }));
        pads.map(|node| result.ty(node.outputs[0]).dtype).filter(|dtype| *dtype != DType::I8).collect()
    }

    #[test]
    fn an_image_is_padded_before_it_is_quantised_where_zeros_become_what_stands_for_them() {
        assert_eq!(padded_dtypes(117, 117), [DType::F32]);
        assert_eq!(padded_dtypes(0, 0), [DType::F32]);
        assert_eq!(padded_dtypes(117, 116), [DType::U8], "a zero is another number");
    }
}
