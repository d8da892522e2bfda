//! Scalar functions against a table of PyTorch's values.

use crate::dtype::DType;
use crate::graph::{BinaryOp, IntBinary, UnaryOp};
use crate::interpret::{binary, unary};

/// PyTorch's own methods for the rarer functions are good to about this.
const TOLERANCE: f64 = 3e-6;

fn agree(a: f64, b: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= TOLERANCE * b.abs().max(1e-9)
}

/// Of the known answers of Random123, those whose counters have an upper half of zero.
#[test]
fn philox_gives_the_known_bits() {
    let philox = binary::of_integers(BinaryOp::Int(IntBinary::Philox), DType::I64).expect("a function");
    assert_eq!(philox(0, 0) as u64, 0xe169_c58d_6627_e8d5);
}

#[test]
fn functions_give_what_pytorch_gives() {
    let mut wrong = Vec::new();
    for line in include_str!("functions.txt").lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split(' ').collect();
        let numbers: Vec<f64> = words[1..].iter().map(|word| word.parse().expect("a number")).collect();
        let (result, expected) = match numbers.as_slice() {
            [x, y] => (UnaryOp::from_name(words[0]).and_then(unary::of_f64).expect("a function")(*x), *y),
            [a, b, y] => {
                (BinaryOp::from_name(words[0]).and_then(binary::of_f64).expect("a function")(*a, *b), *y)
            }
            _ => panic!("{line}"),
        };
        if !agree(result, expected) {
            wrong.push(format!("{line}, not {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
