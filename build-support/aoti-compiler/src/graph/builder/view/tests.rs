//! Tests of views.

use super::*;
use crate::dtype::DType;
use crate::graph::{InputRole, SymbolInfo, SymbolSource, TensorType};
use crate::symbolic::Interval;

#[test]
fn sizes_that_may_be_zero_are_not_where_there_are_positions() {
    let mut builder = Builder::new("g");
    let mut size = |name: &str| {
        let (name, range) = (name.to_owned(), Interval::new(0, 4096));
        let source = SymbolSource::InputDim { input: 0, axis: 0 };
        Expr::sym(builder.symbol(SymbolInfo { name, range, source, most: None }))
    };
    let (rows, words) = (size("rows"), size("words"));
    let shape = vec![rows.clone(), words.clone(), Expr::int(128)];
    let x = builder.input("x", TensorType { dtype: DType::F32, shape }, InputRole::User);
    let parts = [&rows * 4, words.clone(), Expr::int(32)];
    let heads = builder.reshape(x, &[rows.clone(), words.clone(), Expr::int(4), Expr::int(32)]).unwrap();
    let heads = builder.permute(heads, &[0, 2, 1, 3]).unwrap();
    let heads = builder.reshape(heads, &parts).unwrap();
    let heads = builder.permute(heads, &[0, 2, 1]).unwrap();
    let again = builder.reshape(heads, &[rows, Expr::int(4), Expr::int(32), words]).unwrap();
    let Some(Node { op: Op::View(coords), .. }) = builder.producer(again) else {
        panic!("all of them are one view")
    };
    let along_width = &(&Expr::axis(1) * 32) + &Expr::axis(2);
    assert_eq!(*coords, [Expr::axis(0), Expr::axis(3), along_width]);
}

#[test]
fn positions_along_an_axis_of_one_element_are_zero() {
    let mut builder = Builder::new("g");
    let ty = TensorType { dtype: DType::F32, shape: vec![Expr::int(64)] };
    let x = builder.input("x", ty, InputRole::User);
    let shape = [Expr::int(1), Expr::int(64), Expr::int(1), Expr::int(1)];
    let row = builder.reshape(x, &shape).unwrap();
    let Some(Node { op: Op::View(coords), .. }) = builder.producer(row) else {
        panic!("a reshape is a view")
    };
    assert_eq!(*coords, [Expr::axis(1)], "and not 64*i0 + i1");
}

#[test]
fn sizes_that_never_broadcast_are_errors() {
    let mut builder = Builder::new("g");
    let shape = |sizes: [i64; 2]| sizes.map(Expr::int).to_vec();
    for (a, b) in [([4, 0], [4, 3]), ([4, 3], [4, 0]), ([4, 2], [4, 3])] {
        let error = builder.broadcast(&[shape(a), shape(b)]).expect_err("the sizes differ");
        assert!(error.to_string().contains("do not broadcast together"), "{error}");
    }
    assert_eq!(builder.broadcast(&[shape([4, 0]), shape([1, 1])]), Ok(shape([4, 0])));
}
