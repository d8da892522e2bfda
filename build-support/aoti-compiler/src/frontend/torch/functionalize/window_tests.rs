//! What is written to memory that the program sees in several ways, and values whose shapes a program misstates.

use super::functionalize;
use crate::diagnostic::Diagnostics;
use crate::frontend::torch::aten::text::parse;
use crate::graph::{Graph, OutputRole};
use crate::interpret::{Tensor, evaluate};

fn graph(text: &str) -> Result<Graph, Diagnostics> {
    functionalize(&parse(&format!("program {{ {text} }}")).expect("the text parses"))
}

fn results(text: &str, inputs: &[Tensor]) -> Vec<Vec<f64>> {
    let graph = graph(text).unwrap_or_else(|error| panic!("{text}: {error}"));
    let results = evaluate(&graph, inputs).unwrap_or_else(|error| panic!("{text}: {error}"));
    results.iter().map(Tensor::to_f64).collect()
}

fn f32s(values: &[f32]) -> Tensor {
    Tensor::from_f32(&[values.len()], values)
}

#[test]
fn what_is_written_to_bits_shows_in_the_numbers() {
    let text = "input %x: f32[2]
        %y: f32[2] = aten.clone.default(self = %x)
        %bits: i32[2] = aten.view.dtype(self = %y, dtype = i32)
        %part: i32[1] = aten.slice.Tensor(self = %bits, dim = 0, start = 1, end = 2)
        %filled: i32[1] = aten.fill_.Scalar(self = %part, value = 1073741824)
        output %y
        output %bits";
    let one = 1f32.to_bits();
    assert_eq!(results(text, &[f32s(&[1.0, 5.0])]), [[1.0, 2.0], [f64::from(one), 1_073_741_824.0]]);
}

#[test]
fn what_is_written_to_numbers_shows_in_the_bits() {
    let text = "input %x: f32[2]
        %y: f32[2] = aten.clone.default(self = %x)
        %bits: i16[4] = aten.view.dtype(self = %y, dtype = i16)
        %filled: f32[2] = aten.fill_.Scalar(self = %y, value = 1.0)
        %cleared: i16[1] = aten.slice.Tensor(self = %bits, dim = 0, start = 1, end = 2)
        %zero: i16[1] = aten.zero_.default(self = %cleared)
        output %y
        output %bits";
    assert_eq!(results(text, &[f32s(&[3.0, 5.0])]), [vec![0.0, 1.0], vec![0.0, 0.0, 0.0, 16256.0]]);
}

#[test]
fn bits_of_a_part_are_written_to_that_part() {
    let text = "input %x: f32[2, 2]
        %y: f32[2, 2] = aten.clone.default(self = %x)
        %row: f32[2] = aten.select.int(self = %y, dim = 0, index = 1)
        %bits: i32[2] = aten.view.dtype(self = %row, dtype = i32)
        %zero: i32[2] = aten.zero_.default(self = %bits)
        output %y";
    let x = Tensor::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(results(text, &[x]), [[1.0, 2.0, 0.0, 0.0]]);
}

#[test]
fn what_is_written_behind_a_conjugate_shows_in_both() {
    let text = |view: &str, after: &str| {
        format!(
            "input %x: complex f32[2]
            input %w: complex f32[2]
            %z: complex f32[2] = aten.clone.default(self = %x)
            %seen: complex f32[2] = {view}(self = %z)
            %written: complex f32[2] = aten.add_.Tensor(self = {after}, other = %w)
            output %z
            output %seen"
        )
    };
    let inputs = [
        Tensor::from_f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]),
        Tensor::from_f32(&[2, 2], &[10.0, 20.0, 30.0, 40.0]),
    ];
    let of = |view, after| results(&text(view, after), &inputs);
    assert_eq!(of("aten.conj.default", "%z"), [[11.0, 22.0, 33.0, 44.0], [11.0, -22.0, 33.0, -44.0]]);
    assert_eq!(of("aten.conj.default", "%seen"), [[11.0, -18.0, 33.0, -36.0], [11.0, 18.0, 33.0, 36.0]]);
    assert_eq!(of("aten.conj_physical.default", "%z"), [[11.0, 22.0, 33.0, 44.0], [1.0, -2.0, 3.0, -4.0]]);
    let negative = of("aten._neg_view.default", "%seen");
    assert_eq!(negative, [[-9.0, -18.0, -27.0, -36.0], [9.0, 18.0, 27.0, 36.0]]);
}

#[test]
fn what_is_written_to_an_adjoint_is_transposed_too() {
    let text = "input %x: complex f32[1, 2]
        %z: complex f32[1, 2] = aten.clone.default(self = %x)
        %seen: complex f32[2, 1] = aten.mH.default(self = %z)
        %part: complex f32[1, 1] = aten.slice.Tensor(self = %seen, dim = 0, start = 1, end = 2)
        %written: complex f32[1, 1] = aten.add_.Tensor(self = %part, other = %part)
        output %z
        output %seen";
    let x = Tensor::from_f32(&[1, 2, 2], &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(results(text, &[x]), [[1.0, 2.0, 6.0, 8.0], [1.0, -2.0, 6.0, -8.0]]);
}

#[test]
fn what_is_written_behind_many_views_shows_in_the_memory() {
    let mut lines = vec!["input %x: f32[14, 15]".to_owned()];
    lines.push("%v0: f32[14, 15] = aten.clone.default(self = %x)".to_owned());
    for step in 0..40 {
        lines.push(format!("%a{step}: f32[6, 35] = aten.view.default(self = %v{step}, size = [6, 35])"));
        lines.push(format!("%b{step}: f32[35, 6] = aten.t.default(self = %a{step})"));
        lines.push(format!(
            "%v{}: f32[14, 15] = aten.view.default(self = %b{step}, size = [14, 15])",
            step + 1
        ));
    }
    lines.push("%filled: f32[14, 15] = aten.fill_.Scalar(self = %v40, value = 2.0)".to_owned());
    lines.push("output %v0".to_owned());
    let x = Tensor::from_f32(&[14, 15], &[1.0; 210]);
    assert_eq!(results(&lines.join("\n"), &[x]), [[2.0; 210]]);
}

#[test]
fn the_shape_of_an_operator_is_its_own_and_not_what_the_program_says() {
    let text = "input %x: f32[2, 3]
        %h: f32[2, 1, 3] = aten.relu.default(self = %x)
        %last: f32[1, 3] = aten.select.int(self = %h, dim = 0, index = -1)
        %both: f32[2, 3] = aten.cat.default(tensors = [%last, %last], dim = 0)
        output %both
        output %h";
    let graph = graph(text).expect("the shape is a hint");
    let shapes: Vec<usize> = graph.outputs.iter().map(|output| graph.ty(output.value).rank()).collect();
    assert_eq!(shapes, [1, 2]);
    let x = Tensor::from_f32(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(results(text, &[x])[0], [4.0, 5.0, 6.0, 4.0, 5.0, 6.0]);
}

#[test]
fn sizes_that_a_program_misstates_are_refused_where_they_are_used() {
    let text = |used: &str| {
        format!(
            "input %x: f32[2, 3]
            %h: f32[7] = aten.relu.default(self = %x)
            output {used}"
        )
    };
    graph(&text("%x")).expect("nobody asks for it");
    let error = graph(&text("%h")).expect_err("it is not what the rule gives");
    assert!(error.to_string().contains("the result `h` would be f32[2, 3]"), "{error}");
}

#[test]
fn overwritten_inputs_follow_what_is_returned_and_keep_their_names() {
    let graph = graph(
        "input %x: f32[2]
        %sum: f32[2] = aten.add.Scalar(self = %x, other = 1)
        %twice: f32[2] = aten.mul.Scalar(self = %sum, other = 2)
        output %sum overwrites input \"x\"
        output %twice",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let outputs: Vec<_> = graph.outputs.iter().map(|output| (output.name.as_str(), output.role)).collect();
    assert_eq!(outputs, [("twice", OutputRole::User), ("x", OutputRole::Mutation(0))]);
}

#[test]
fn normalisations_by_the_batch_overwrite_running_statistics() {
    let after = |operator: &str, flag: &str| {
        let text = format!(
            "input %x: f32[2, 1, 2] input %mean: f32[1] input %variance: f32[1]
            %y: f32[2, 1, 2] = aten.{operator}.default(input = %x, weight = none, bias = none, running_mean = %mean,
                running_var = %variance, {flag} = true, momentum = 0.5, eps = 0.0, cudnn_enabled = false)
            %twice: f32[1] = aten.mul.Scalar(self = %mean, other = 2)
            output %twice"
        );
        let x = Tensor::from_f32(&[2, 1, 2], &[0.0, 2.0, 4.0, 10.0]);
        results(&text, &[x, f32s(&[1.0]), f32s(&[1.0])])
    };
    // As PyTorch 2.15: all elements have the mean 4 and the unbiased variance 56 / 3, the instances' variances are 2 and 18.
    let [twice, mean, variance] = &after("batch_norm", "training")[..] else { panic!("three results") };
    assert_eq!((twice[0], mean[0]), (5.0, 2.5));
    assert!((variance[0] - 59.0 / 6.0).abs() < 1e-5);
    assert_eq!(after("instance_norm", "use_input_stats"), [[5.0], [2.5], [5.5]]);
}
