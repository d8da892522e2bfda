//! Rules against values that PyTorch gives: one call a case, evaluated by the interpreter.

use super::{Registry, decompose};
use crate::aten::{
    Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, ProgramOutput, TensorMeta,
};
use crate::dtype::DType;
use crate::graph::Origin;
use crate::interpret::{Tensor, evaluate};
use crate::symbolic::Expr;

fn meta(dtype: DType, sizes: &[usize]) -> TensorMeta {
    let sizes = sizes.iter().map(|size| Expr::int(*size as i64)).collect();
    TensorMeta { dtype, sizes, strides: vec![], storage_offset: Expr::int(0) }
}

/// A program of one call; arguments that are tensors become its inputs.
fn program(target: &str, tensors: &[(&str, Tensor)], rest: &[(&str, Arg)], result: TensorMeta) -> Program {
    let mut program = Program { name: "case".to_owned(), ..Program::default() };
    let mut args = Vec::new();
    for (name, tensor) in tensors {
        program.tensors.insert((*name).to_owned(), meta(tensor.dtype(), tensor.sizes()));
        program.inputs.push(ProgramInput { name: (*name).to_owned(), kind: InputKind::User });
        args.push(((*name).to_owned(), Arg::Tensor((*name).to_owned())));
    }
    args.extend(rest.iter().map(|(name, arg)| ((*name).to_owned(), arg.clone())));
    program.tensors.insert("result".to_owned(), result);
    program.calls.push(Call {
        target: target.to_owned(),
        args,
        outputs: vec![Output::Tensor("result".to_owned())],
        origin: Origin::default(),
    });
    let value = Arg::Tensor("result".to_owned());
    program.outputs.push(ProgramOutput { value, kind: OutputKind::User });
    program
}

fn check(target: &str, tensors: &[(&str, Tensor)], rest: &[(&str, Arg)], expected: &Tensor) {
    let program = program(target, tensors, rest, meta(expected.dtype(), expected.sizes()));
    let graph = decompose(&program).unwrap_or_else(|error| panic!("{target}: {error}"));
    let inputs: Vec<Tensor> = tensors.iter().map(|(_, tensor)| tensor.clone()).collect();
    let results = evaluate(&graph, &inputs).unwrap_or_else(|error| panic!("{target}: {error}"));
    assert_eq!(results[0].dtype(), expected.dtype(), "{target}");
    for (got, want) in results[0].to_f64().into_iter().zip(expected.to_f64()) {
        let close = got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= 1e-6;
        assert!(close, "{target}: {:?} instead of {:?}", results[0].to_f64(), expected.to_f64());
    }
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_f32(&[values.len()], values)
}

#[test]
fn integers_promote_as_in_pytorch() {
    let x = Tensor::from_i64(&[2], &[7, -7]);
    let two = ("other", Arg::Int(Expr::int(2)));
    check("aten.div.Tensor", &[("self", x.clone())], std::slice::from_ref(&two), &f32s(&[3.5, -3.5]));
    check(
        "aten.floor_divide.default",
        &[("self", x.clone())],
        std::slice::from_ref(&two),
        &Tensor::from_i64(&[2], &[3, -4]),
    );
    check("aten.remainder.Scalar", &[("self", x.clone())], &[two], &Tensor::from_i64(&[2], &[1, 1]));
    check("aten.mul.Tensor", &[("self", x)], &[("other", Arg::Float(0.5))], &f32s(&[3.5, -3.5]));
    let flags = Tensor::from_bool(&[3], &[true, true, false]);
    check("aten.sum.default", &[("self", flags)], &[], &Tensor::from_i64(&[], &[2]));
}

#[test]
fn aliases_and_in_place_names_find_the_rule() {
    let registry = Registry::new();
    for name in
        ["aten.divide_.Tensor", "aten.__iand__.Scalar", "aten.special_expit.default", "aten.clip.default"]
    {
        assert!(registry.find(name).is_some(), "{name}");
    }
    for name in ["aten.add.out", "aten.eq.Tensor_list", "aten.nothing.default"] {
        assert!(registry.find(name).is_none(), "{name}");
    }
}

#[test]
fn nan_and_infinity_follow_pytorch() {
    let x = f32s(&[f32::NAN, f32::INFINITY, -1.0]);
    check("aten.relu.default", &[("self", x.clone())], &[], &f32s(&[f32::NAN, f32::INFINITY, 0.0]));
    let zero = ("min", Arg::Float(0.0));
    check("aten.clamp.default", &[("self", x.clone())], &[zero], &f32s(&[f32::NAN, f32::INFINITY, 0.0]));
    check("aten.sign.default", &[("self", x)], &[], &f32s(&[0.0, 1.0, -1.0]));
    let rows = f32s(&[f32::NEG_INFINITY; 2]);
    let dim = [("dim", Arg::Int(Expr::int(-1)))];
    check("aten._safe_softmax.default", &[("self", rows.clone())], &dim, &f32s(&[0.0, 0.0]));
    let dims = [("dim", Arg::Ints(vec![Expr::int(0)]))];
    check("aten.logsumexp.default", &[("self", rows)], &dims, &Tensor::from_f32(&[], &[f32::NEG_INFINITY]));
}

#[test]
fn half_types_round_once() {
    let x = Tensor::from_f16(&[2], &[half::f16::from_f32(300.0), half::f16::from_f32(300.0)]);
    // The squares overflow f16; their mean's root does not.
    let norm = Tensor::from_f16(&[], &[half::f16::from_f32(424.25)]);
    check("aten.linalg_vector_norm.default", &[("self", x)], &[], &norm);
}

#[test]
fn reductions_of_nothing() {
    let empty = Tensor::from_f32(&[0], &[]);
    check("aten.sum.default", &[("self", empty.clone())], &[], &Tensor::from_f32(&[], &[0.0]));
    check("aten.prod.default", &[("self", empty.clone())], &[], &Tensor::from_f32(&[], &[1.0]));
    check("aten.mean.default", &[("self", empty)], &[], &Tensor::from_f32(&[], &[f32::NAN]));
    check("aten.var.default", &[("self", f32s(&[3.0]))], &[], &Tensor::from_f32(&[], &[f32::NAN]));
}

#[test]
fn order_statistics() {
    let x = f32s(&[3.0, f32::NAN, 1.0, 2.0]);
    check("aten.median.default", &[("self", x.clone())], &[], &Tensor::from_f32(&[], &[f32::NAN]));
    check("aten.nanmedian.default", &[("self", x)], &[], &Tensor::from_f32(&[], &[2.0]));
    let q = [("q", Arg::Float(0.25))];
    check("aten.quantile.scalar", &[("self", f32s(&[1.0, 2.0, 4.0]))], &q, &Tensor::from_f32(&[], &[1.5]));
}

#[test]
fn ignored_targets_cost_nothing() {
    let x = Tensor::from_f32(&[2, 2], &[0.0, 0.0, 5.0, f32::NAN]);
    let target = Tensor::from_i64(&[2], &[1, -100]);
    let operands = [("self", x), ("target", target)];
    check(
        "aten.cross_entropy_loss.default",
        &operands,
        &[],
        &Tensor::from_f32(&[], &[std::f32::consts::LN_2]),
    );
}

#[test]
fn random_operators_are_refused_by_name() {
    let x = f32s(&[1.0]);
    let rest = [("p", Arg::Float(0.5)), ("train", Arg::Bool(true))];
    let program = program("aten.dropout.default", &[("input", x)], &rest, meta(DType::F32, &[1]));
    let error = decompose(&program).expect_err("dropout in training draws random numbers");
    assert!(error.to_string().contains("aten.dropout.default"), "{error}");
}

#[test]
fn grouped_products_take_the_matrix_of_their_run() {
    // Runs of 1, 0 and 2 rows; the last row belongs to none.
    let x = Tensor::from_f32(&[4, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    let matrices = Tensor::from_f32(&[3, 2, 1], &[1.0, 10.0, f32::NAN, 7.0, 2.0, -1.0]);
    let ends = Tensor::from_i64(&[3], &[1, 1, 3]);
    let expected = Tensor::from_f32(&[4, 1], &[21.0, 2.0, 4.0, 0.0]);
    let names = [
        ("self", "mat2", "aten._grouped_mm.default"),
        ("input", "weight", "transformers.grouped_mm_fallback.default"),
    ];
    for (left, right, target) in names {
        let operands = [(left, x.clone()), (right, matrices.clone()), ("offs", ends.clone())];
        check(target, &operands, &[], &expected);
    }
    // Groups of terms: one product each.
    let y = Tensor::from_f32(&[2, 1], &[10.0, 100.0]);
    let operands = [("self", x), ("mat2", y), ("offs", Tensor::from_i64(&[2], &[1, 2]))];
    let expected = [10.0, 30.0, 50.0, 70.0, 200.0, 400.0, 600.0, 800.0];
    check("aten._grouped_mm.default", &operands, &[], &Tensor::from_f32(&[2, 4, 1], &expected));
}

#[test]
fn regions_that_state_a_mode_are_their_bodies() {
    let x = Tensor::from_f32(&[2], &[1.0, 2.0]);
    let plain = |target: &str| program(target, &[("self", x.clone())], &[], meta(DType::F32, &[2]));
    // The body's names are those of the program outside, which it must not disturb.
    let body = Arg::Graph(Box::new(plain("aten.exp.default")));
    let mut whole = plain("aten.neg.default");
    let region = |mode: Vec<Arg>, from: &str, to: &str| {
        let mut args = mode;
        args.extend([body.clone(), Arg::Tensor(from.to_owned())]);
        Call {
            target: format!(
                "higher_order.wrap_with_{}",
                if args.len() == 3 { "set_grad_enabled" } else { "autocast" }
            ),
            args: args.into_iter().map(|arg| (String::new(), arg)).collect(),
            outputs: vec![Output::Tensor(to.to_owned())],
            origin: Origin::default(),
        }
    };
    let autocast =
        |enabled| vec![Arg::Str("cpu".to_owned()), Arg::None, Arg::Bool(enabled), Arg::Bool(false)];
    whole.calls.push(region(vec![Arg::Bool(false)], "result", "second"));
    whole.calls.push(region(autocast(false), "second", "third"));
    whole.outputs[0].value = Arg::Tensor("third".to_owned());
    let graph = decompose(&whole).expect("regions are taken apart");
    let results = evaluate(&graph, std::slice::from_ref(&x)).expect("it runs");
    let want = [(-1.0f64).exp().exp(), (-2.0f64).exp().exp()];
    for (got, want) in results[0].to_f64().into_iter().zip(want) {
        assert!((got - want).abs() < 1e-6, "{got} instead of {want}");
    }
    whole.calls.push(region(autocast(true), "third", "fourth"));
    let error = decompose(&whole).expect_err("casts that depend on the device");
    assert!(error.to_string().contains("wrap_with_autocast"), "{error}");
}
