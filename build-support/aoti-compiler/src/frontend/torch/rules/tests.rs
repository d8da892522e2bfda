//! Rules against values that PyTorch gives: one call a case, evaluated by the interpreter.

mod refusals;

use super::super::functionalize::functionalize;
use super::super::rules::Registry;
use crate::dtype::DType;
use crate::frontend::torch::aten::text::parse;
use crate::frontend::torch::aten::{
    Arg, Call, InputKind, Output, OutputKind, Program, ProgramInput, ProgramOutput, TensorMeta, verify,
};
use crate::graph::Origin;
use crate::halves::F16;
use crate::interpret::{Tensor, evaluate};
use crate::symbolic::Expr;

fn meta(dtype: DType, sizes: &[usize]) -> TensorMeta {
    let sizes = sizes.iter().map(|size| Expr::int(*size as i64)).collect();
    TensorMeta { dtype, is_complex: false, sizes, strides: vec![], storage_offset: Expr::int(0) }
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
    program.outputs.push(ProgramOutput { value, kind: OutputKind::User, name: None });
    program
}

fn check(target: &str, tensors: &[(&str, Tensor)], rest: &[(&str, Arg)], expected: &Tensor) {
    let program = program(target, tensors, rest, meta(expected.dtype(), expected.sizes()));
    let graph = functionalize(&program).unwrap_or_else(|error| panic!("{target}: {error}"));
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
fn numbers_are_converted_as_tensors_are() {
    for target in ["aten._to_copy.default", "aten._efficientzerotensor.default"] {
        let (value, first) = match target {
            "aten._to_copy.default" => (1.5, ("self", Arg::Float(1.5))),
            _ => (0.0, ("size", Arg::Ints(vec![]))),
        };
        check(target, &[], &[first, ("dtype", Arg::DType(DType::F32))], &Tensor::from_f32(&[], &[value]));
    }
}

#[test]
fn half_types_round_once() {
    let x = Tensor::from_f16(&[2], &[F16::from_f32(300.0), F16::from_f32(300.0)]);
    // The squares overflow f16; their mean's root does not.
    let norm = Tensor::from_f16(&[], &[F16::from_f32(424.25)]);
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
fn matrices_of_nothing_have_a_condition_and_singular_factors_no_inverse() {
    let empty = Tensor::from_f32(&[2, 0, 0], &[]);
    let zeros = f32s(&[0.0, 0.0]);
    check("aten.linalg_cond.default", &[("self", empty.clone())], &[], &zeros);
    let one = ("p", Arg::Int(Expr::int(1)));
    check("aten.linalg_cond.default", &[("self", empty)], &[one], &zeros);

    let inverse = |diagonal: f32| {
        let factor = Tensor::from_f32(&[2, 2], &[2.0, 0.0, 0.0, diagonal]);
        let target = "aten.cholesky_inverse.default";
        let graph =
            functionalize(&program(target, &[("self", factor.clone())], &[], meta(DType::F32, &[2, 2])));
        evaluate(&graph.expect("it is supported"), &[factor]).map(|results| results[0].to_f64())
    };
    assert_eq!(inverse(1.0), Ok(vec![0.25, 0.0, 0.0, 1.0]));
    assert!(inverse(0.0).is_err_and(|error| error.to_string().contains("the matrix is singular")));
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

/// The findings of a program that cannot be compiled, as text.
pub(crate) fn refused(statements: &str) -> Vec<String> {
    let program = parse(&format!("program {{ {statements} }}")).expect("the text parses");
    verify(&program).expect("it is well formed");
    let findings = functionalize(&program).expect_err("it is refused");
    findings.0.iter().map(ToString::to_string).collect()
}

/// What a program of text gives for inputs.
pub(crate) fn evaluated(
    statements: &str,
    inputs: &[Tensor],
) -> Result<Vec<Tensor>, crate::interpret::EvalError> {
    let program = parse(&format!("program {{ {statements} }}")).expect("the text parses");
    verify(&program).expect("it is well formed");
    evaluate(&functionalize(&program).unwrap_or_else(|error| panic!("{error}")), inputs)
}

#[test]
fn sizes_that_are_read_need_no_bound() {
    let ones = r#"symbol s0 "u0" in 0..inf from data
        input %i: i64[]
        int "item": [s0] = aten.item.default(self = %i)
        %ones: f32[s0] = aten.ones.default(size = [s0]) @ "ones" "m.py:3 in forward: torch.ones(k)" ""
        output %ones"#;
    for size in [0, 3, 70_000] {
        let found = evaluated(ones, &[Tensor::from_i64(&[], &[size])]).expect("it runs");
        assert_eq!(found[0].sizes(), [usize::try_from(size).expect("not negative")]);
    }
    evaluated(ones, &[Tensor::from_i64(&[], &[-1])]).expect_err("no tensor has such a size");
}

#[test]
fn as_many_integers_are_counted_as_there_are() {
    let counts = r#"symbol s0 "u0" in 0..inf from data
        input %x: i64[2]
        %counts: i64[s0] = aten.bincount.default(self = %x) @ "bincount" "m.py:3 in forward: x.bincount()" ""
        output %counts"#;
    let found = evaluated(counts, &[Tensor::from_i64(&[2], &[3, 100_000])]).expect("it runs");
    let counts = found[0].to_i64().expect("integers");
    assert_eq!((counts.len(), counts[3], counts[4], counts[100_000]), (100_001, 1, 0, 1));
}

#[test]
fn sizes_are_inferred_beside_sizes_that_may_be_zero() {
    let text = "program {
        symbol s0 \"n\" in 0..100 from input 0 axis 0
        input %x: f32[s0, 2, 3]
        input %w: f32[1, 6]
        %y: f32[s0, 6] = aten.view.default(self = %x, size = [s0, -1])
        %z: f32[s0, 1] = aten.linear.default(input = %y, weight = %w, bias = none)
        output %z
    }";
    let graph =
        functionalize(&parse(text).expect("the text parses")).unwrap_or_else(|error| panic!("{error}"));
    let w = Tensor::from_f32(&[1, 6], &[1.0; 6]);
    for (rows, sums) in [(0, vec![]), (1, vec![6.0])] {
        let x = Tensor::from_f32(&[rows, 2, 3], &vec![1.0; rows * 6]);
        let results = evaluate(&graph, &[x, w.clone()]).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(results[0].to_f64(), sums);
    }
}

#[test]
fn loops_capture_sizes_between_tensors() {
    let text = r#"program {
        symbol s0 "n" in 1..100 from input 2 axis 0
        input %i: i64[]
        input %a: f32[]
        input %x: f32[s0]
        int n: [s0] = aten.sym_size.int(self = %x, dim = 0)
        [%count: i64[], %end: f32[]] = higher_order.while_loop(program "condition" {
            input %i: i64[]
            input %a: f32[]
            input %n int [s0]
            input %x: f32[s0]
            %more: bool[] = aten.lt.Scalar(self = %i, other = {s0})
            output %more
        }, program "body" {
            input %i: i64[]
            input %a: f32[]
            input %n int [s0]
            input %x: f32[s0]
            %next: i64[] = aten.add.Scalar(self = %i, other = 1)
            %sum: f32[] = aten.sum.default(self = %x)
            %b: f32[] = aten.add.Tensor(self = %a, other = %sum)
            output %next
            output %b
        }, [%i, %a], [%n, %x])
        output %count
        output %end
    }"#;
    let graph =
        functionalize(&parse(text).expect("the text parses")).unwrap_or_else(|error| panic!("{error}"));
    let inputs = [Tensor::from_i64(&[], &[1]), Tensor::from_f32(&[], &[0.5]), f32s(&[1.0, 2.0, 4.0])];
    let results = evaluate(&graph, &inputs).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(results[0].to_f64(), [3.0]);
    assert_eq!(results[1].to_f64(), [14.5]);
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

/// A program whose body reuses the names outside, which it must not disturb.
fn regions(mode: &str, body: &str) -> String {
    format!(
        r#"input %x: f32[2]
        %y: f32[2] = aten.neg.default(self = %x)
        %second: f32[2] = higher_order.wrap_with_set_grad_enabled(false, {body}, %y)
        %third: f32[2] = higher_order.wrap_with_autocast("cuda", none, {mode}, false, {body}, %second)
        %fourth: f32[2] = higher_order.hints_wrapper({body}, [%third], none, none)
        output %fourth"#
    )
}

#[test]
fn regions_that_state_a_mode_are_their_bodies() {
    let body = "program { input %x: f32[2] %y: f32[2] = aten.exp.default(self = %x) output %y }";
    let program = parse(&format!("program {{ {} }}", regions("false", body))).expect("the text parses");
    let graph = functionalize(&program).expect("regions are taken apart");
    let results = evaluate(&graph, &[f32s(&[1.0, 2.0])]).expect("it runs");
    let want = [(-1.0f64).exp().exp().exp(), (-2.0f64).exp().exp().exp()];
    for (got, want) in results[0].to_f64().into_iter().zip(want) {
        assert!((got - want).abs() < 1e-6 * want, "{got} instead of {want}");
    }
    let findings = refused(&regions("true", body));
    assert!(findings[0].contains("wrap_with_autocast"), "casts that depend on the device: {findings:?}");
}

/// What a recurrent layer gives for a sequence of five steps, of a length that the program does or does not know.
fn recurrent(layer: &str, gates: usize, states: &str, directions: usize, steps: &str) -> Vec<f64> {
    let parameters = format!(
        "input %w: f32[{gates}, 3] input %u: f32[{gates}, 2] input %b: f32[{gates}] input %h: f32[{directions}, 1, 2]"
    );
    let own = "%w, %u, %b, %b".to_owned();
    let params = vec![own; directions].join(", ");
    let results =
        if layer == "lstm" { ", %end: f32[_, 1, 2], %cell: f32[_, 1, 2]" } else { ", %end: f32[_, 1, 2]" }
            .replace('_', &directions.to_string());
    let text = format!(
        r#"program {{ symbol s0 "x_d0" in 1..900 from input 0 axis 0
        input %x: f32[{steps}, 1, 3] {parameters}
        %all: f32[{steps}, 1, {width}]{results} = aten.{layer}.input(input = %x, hx = {states}, params = [{params}], has_biases = true, num_layers = 1, dropout = 0.0, train = false, bidirectional = {both}, batch_first = false)
        output %all
        output %end }}"#,
        width = 2 * directions,
        both = directions == 2,
    );
    let program = parse(&text).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    let graph = functionalize(&program).unwrap_or_else(|error| panic!("{layer}: {error}"));
    let filled = |sizes: &[usize]| {
        let count: usize = sizes.iter().product();
        let values: Vec<f32> =
            (0..count).map(|k| ((k * 37 + sizes[0] * 11) % 23) as f32 / 23.0 - 0.5).collect();
        Tensor::from_f32(sizes, &values)
    };
    let inputs = [
        filled(&[5, 1, 3]),
        filled(&[gates, 3]),
        filled(&[gates, 2]),
        filled(&[gates]),
        filled(&[directions, 1, 2]),
    ];
    let results = evaluate(&graph, &inputs).unwrap_or_else(|error| panic!("{layer}: {error}"));
    results.iter().flat_map(Tensor::to_f64).collect()
}

#[test]
fn recurrent_layers_over_any_number_of_steps_are_those_over_a_known_one() {
    for (layer, gates, states) in
        [("lstm", 8, "[%h, %h]"), ("gru", 6, "%h"), ("rnn_tanh", 2, "%h"), ("rnn_relu", 2, "%h")]
    {
        for directions in [1, 2] {
            let known = recurrent(layer, gates, states, directions, "5");
            assert!(known.iter().any(|value| *value != 0.0), "{layer}");
            assert_eq!(recurrent(layer, gates, states, directions, "s0"), known, "{layer}, {directions}");
        }
    }
}

/// The results of a program in text form.
fn results(text: &str, inputs: &[Tensor]) -> Vec<Tensor> {
    let program = parse(&format!("program {{ {text} }}")).expect("the text parses");
    let graph = functionalize(&program).unwrap_or_else(|error| panic!("{text}: {error}"));
    evaluate(&graph, inputs).unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn negative_positions_of_take_along_dim_count_from_the_end() {
    let x = Tensor::from_f32(&[2, 3], &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let places = ("indices", Tensor::from_i64(&[2, 2], &[-1, 0, -3, 2]));
    let dim = [("dim", Arg::Int(Expr::int(1)))];
    let expected = Tensor::from_f32(&[2, 2], &[2.0, 0.0, 3.0, 5.0]);
    check("aten.take_along_dim.default", &[("self", x.clone()), places.clone()], &dim, &expected);
    check("aten.take_along_dim.default", &[("self", x), places], &[], &f32s(&[5.0, 0.0, 3.0, 2.0]));
}

#[test]
fn nothing_is_looked_up_in_a_source_that_no_true_element_takes() {
    let text = r#"symbol s0 "n" in 0..8 from input 2 axis 0
        input %x: f32[2, 2]
        input %m: bool[2, 1]
        input %f: f32[s0, 2]
        %wide: bool[2, 2] = aten.expand.default(self = %m, size = [2, 2])
        %y: f32[2, 2] = aten.masked_scatter.default(self = %x, mask = %wide, source = %f)
        output %y"#;
    let x = Tensor::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let none = [x.clone(), Tensor::from_bool(&[2, 1], &[false; 2]), Tensor::from_f32(&[0, 2], &[])];
    assert_eq!(results(text, &none)[0].to_f64(), [1.0, 2.0, 3.0, 4.0]);
    let one = [x, Tensor::from_bool(&[2, 1], &[false, true]), Tensor::from_f32(&[1, 2], &[7.0, 8.0])];
    assert_eq!(results(text, &one)[0].to_f64(), [1.0, 2.0, 7.0, 8.0]);
}

#[test]
fn differences_taken_no_times_leave_both_ends_out() {
    let statements = "input %x: f32[2] input %p: f32[1]
        %y: f32[2] = aten.diff.default(self = %x, n = 0, prepend = %p, append = %p) output %y";
    let found = evaluated(statements, &[Tensor::from_f32(&[2], &[3.0, 4.0]), Tensor::from_f32(&[1], &[7.0])]);
    assert_eq!(found.expect("it runs")[0].to_f64(), [3.0, 4.0]);
}

#[test]
fn powers_of_a_single_number_are_a_row() {
    let statements = "input %x: f32[] %y: f32[1, 3] = aten.linalg_vander.default(x = %x, N = 3) output %y";
    let found = evaluated(statements, &[Tensor::from_f32(&[], &[2.0])]).expect("it runs");
    assert_eq!(found[0].sizes(), [1, 3]);
    assert_eq!(found[0].to_f64(), [1.0, 2.0, 4.0]);
}
