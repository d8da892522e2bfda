//! What is split without a record, and what can be split otherwise.

use super::split_reductions;
use crate::graph::Graph;
use crate::graph::text::{parse, print};
use crate::interpret::{Tensor, evaluate};
use crate::passes::dce;
use crate::schedule::Setting;
use crate::target::Target;
use crate::tuning::{Config, Decisions, Records, TuningPoint};

/// How many reductions there are in a graph for a target.
#[track_caller]
fn reductions_for(target: &Target, body: &str) -> usize {
    let graph = parse(&format!("graph \"test\" {{ {body} }}")).expect("the text parses");
    let split = dce(split_reductions(graph, target, &mut Decisions::default()));
    crate::graph::verify(&split).expect("the result is well formed");
    print(&split).matches(" axes [").count()
}

#[track_caller]
fn reductions(body: &str) -> usize {
    let target = crate::target::GpuTarget::named("sm_90a").expect("an architecture");
    reductions_for(&Target::Gpu(target), body)
}

/// The same for one of a matrix.
#[track_caller]
fn of_matrix(rows: i64, columns: i64, op: &str, axes: &str, shape: &str) -> usize {
    reductions(&format!(
        "input %x \"x\": f32[{rows}, {columns}]
         %y: f32[{shape}] = {op} %x axes [{axes}]
         output %y \"y\""
    ))
}

#[test]
fn long_sums_with_few_results_are_two_steps() {
    assert_eq!(of_matrix(65536, 1024, "sum", "0", "1024"), 2);
    assert_eq!(of_matrix(4096, 4096, "max", "0, 1", ""), 2);
    assert_eq!(of_matrix(16, 1 << 20, "sum", "1", "16"), 2);
}

#[test]
fn short_sums_and_those_with_many_results_stay() {
    assert_eq!(of_matrix(128, 1024, "sum", "0", "1024"), 1, "there is little to add up");
    assert_eq!(of_matrix(65536, 1024, "sum", "1", "65536"), 1, "there are results for everyone");
    assert_eq!(of_matrix(1024, 768, "sum", "1", "1024"), 1, "two parts are not worth a second step");
    assert_eq!(of_matrix(512, 1024, "sum", "1", "512"), 2);
}

#[test]
fn what_others_read_as_well_stays_a_row_unless_it_is_long() {
    let body = |length: i64| {
        format!(
            "input %x \"x\": f32[16, {length}]
             %e: f32[16, {length}] = exp %x
             %s: f32[16] = sum %e axes [1]
             %t: f32[16, {length}] = view %s [i0]
             %y: f32[16, {length}] = mul %e, %t
             output %y \"y\""
        )
    };
    assert_eq!(reductions(&body(32768)), 1);
    assert_eq!(reductions(&body(1 << 20)), 2);
}

/// A graph before and after it is split for a GPU, which give the same for an input.
#[track_caller]
fn gives_the_same(body: &str, x: &Tensor, kernels: usize) {
    let graph = parse(&format!("graph \"test\" {{ {body} }}")).expect("the text parses");
    let target = crate::target::GpuTarget::named("sm_90a").expect("an architecture");
    let split = dce(split_reductions(graph.clone(), &Target::Gpu(target), &mut Decisions::default()));
    crate::graph::verify(&split).expect("the result is well formed");
    assert_eq!(print(&split).matches(" axes [").count(), kernels, "{}", print(&split));
    let inputs = std::slice::from_ref(x);
    assert_eq!(evaluate(&split, inputs).expect("it runs"), evaluate(&graph, inputs).expect("it runs"));
}

#[test]
fn parts_of_sizes_without_divisors_leave_a_shorter_one() {
    // A prime number of rows.
    let values: Vec<f32> = (0..65537 * 8).map(|k| (k * 7 % 11) as f32 - 5.0).collect();
    let x = Tensor::from_f32(&[65537, 8], &values);
    for (op, result) in [("sum", "f32"), ("max", "f32"), ("min", "f32")] {
        let body =
            format!("input %x \"x\": f32[65537, 8] %y: {result}[8] = {op} %x axes [0] output %y \"y\"");
        gives_the_same(&body, &x, 3);
    }
}

#[test]
fn neighbouring_axes_are_cut_as_one() {
    let values: Vec<f32> = (0..3 * 41 * 2503).map(|k| (k * 7 % 11) as f32 - 5.0).collect();
    let x = Tensor::from_f32(&[3, 41, 2503, 1], &values);
    let body = "input %x \"x\": f32[3, 41, 2503, 1] %y: f32[] = sum %x axes [0, 1, 2, 3] output %y \"y\"";
    gives_the_same(body, &x, 3);
}

#[test]
fn parts_of_few_long_rows_are_those_of_the_first_axis() {
    let values: Vec<f32> = (0..2 * 16 * 9 * 1024).map(|k| (k * 7 % 11) as f32 - 5.0).collect();
    let x = Tensor::from_f32(&[2, 16, 9, 1024], &values);
    let body = "input %x \"x\": f32[2, 16, 9, 1024] %y: f32[2, 16] = sum %x axes [2, 3] output %y \"y\"";
    gives_the_same(body, &x, 2);
    let graph = parse(&format!("graph \"test\" {{ {body} }}")).expect("the text parses");
    let parts = |target: &Target| {
        print(&split_reductions(graph.clone(), target, &mut Decisions::default()))
            .contains("f32[4, 2, 16, 9] = sum")
    };
    let gpu = crate::target::GpuTarget::named("sm_90a").expect("an architecture");
    assert!(parts(&Target::Gpu(gpu)), "channels may lie side by side in memory");
    assert!(!parts(&Target::cpu(&["x86-64-v3"])));
}

#[test]
fn long_parts_of_a_first_axis_are_in_pieces() {
    let values: Vec<f32> = (0..32 * 4 * 16384).map(|k| (k * 7 % 11) as f32 - 5.0).collect();
    let x = Tensor::from_f32(&[1, 32, 4, 128, 128], &values);
    for op in ["sum", "max"] {
        let body = format!(
            "input %x \"x\": f32[1, 32, 4, 128, 128] %y: f32[1, 32] = {op} %x axes [2, 3, 4] output %y \"y\""
        );
        gives_the_same(&body, &x, 2);
        let graph = parse(&format!("graph \"test\" {{ {body} }}")).expect("the text parses");
        let gpu = Target::Gpu(crate::target::GpuTarget::named("sm_90a").expect("an architecture"));
        let split = print(&split_reductions(graph, &gpu, &mut Decisions::default()));
        assert!(split.contains("f32[64, 1, 32, 4] = "), "channels stay side by side: {split}");
    }
    // Those of a variance have means of their own.
    let ones: Vec<f32> = (0..32 * 4 * 16384).map(|at| if at % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let body = squares("1, 32, 4, 16384", "2, 3", "1, 32", "i0, i1");
    gives_the_same(&body, &Tensor::from_f32(&[1, 32, 4, 16384], &ones), 4);
}

#[test]
fn groups_of_what_convolutions_make_are_no_rows() {
    let normalised = |made: &str| {
        reductions(&format!(
            "const c0: f32[64, 64, 1, 1] = splat 0.5
             input %x \"x\": f32[2, 64, 32, 64]
             %w: f32[64, 64, 1, 1] = constant c0
             %a: f32[2, 64, 32, 64] = {made}
             %g: f32[2, 8, 8, 2048] = view %a [i0, 8*i1 + i2, i3 // 64, i3 % 64]
             %s: f32[2, 8] = sum %g axes [2, 3]
             %e: f32[2, 8, 8, 2048] = view %s [i0, i1]
             %y: f32[2, 8, 8, 2048] = sub %g, %e
             output %y \"y\""
        ))
    };
    let conv = "conv %x, %w stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1";
    assert_eq!([normalised(conv), normalised("exp %x")], [2, 1]);
}

#[test]
fn few_columns_are_one_unit_of_work() {
    let parts = |columns: i64| {
        let graph = parse(&format!(
            "graph \"test\" {{ input %x \"x\": f32[1048576, {columns}]
             %y: f32[{columns}] = sum %x axes [0] output %y \"y\" }}"
        ));
        let target = Target::Gpu(crate::target::GpuTarget::named("sm_90a").expect("an architecture"));
        let split = split_reductions(graph.expect("the text parses"), &target, &mut Decisions::default());
        let shapes = split.nodes.iter().map(|node| split.ty(node.outputs[0]).shape.clone());
        let longest = shapes.filter(|shape| shape.len() == 2 && shape[1].is(columns));
        longest.filter_map(|shape| shape[0].as_int()).max().expect("there are parts")
    };
    assert_eq!([3, 64].map(parts), [512, 512]);
}

/// The sum of (x - c)^2 along axes of `x`, where c is the same.
fn squares(shape: &str, axes: &str, results: &str, centre: &str) -> String {
    format!(
        "input %x \"x\": f32[{shape}]
         %s: f32[{results}] = sum %x axes [{axes}]
         %o: f32[{results}] = full 3.0
         %c: f32[{results}] = add %s, %o
         %e: f32[{shape}] = view %c [{centre}]
         %d: f32[{shape}] = sub %x, %e
         %q: f32[{shape}] = mul %d, %d
         %y: f32[{results}] = sum %q axes [{axes}]
         output %y \"y\""
    )
}

#[test]
fn parts_of_a_variance_have_means_of_their_own() {
    // Parts of these have a mean of zero, so that all sums are exact. A length without divisors leaves a shorter part.
    for (sizes, axes, results, centre, reductions) in [
        (&[4, 131_074][..], "1", "4", "i0", 6),
        (&[4, 1 << 17], "1", "4", "i0", 4),
        (&[1 << 17, 4], "0", "4", "i1", 4),
        (&[512, 2, 256], "0, 2", "2", "i1", 4),
    ] {
        let along = |at: usize| if sizes == [1 << 17, 4] { at / 4 } else { at };
        let values: Vec<f32> =
            (0..sizes.iter().product()).map(|at| if along(at) % 2 == 0 { 1.0 } else { -1.0 }).collect();
        let shape = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let body = squares(&shape, axes, results, centre);
        gives_the_same(&body, &Tensor::from_f32(sizes, &values), reductions);
    }
    // Rows that go on are one kernel as they are, unless they are long.
    let goes_on = |length: i64| {
        let shape = format!("64, {length}");
        format!("{} %n: f32[{shape}] = neg %d output %n \"n\"", squares(&shape, "1", "64", "i0"))
    };
    assert_eq!(reductions(&goes_on(30_680)), 2);
    assert_eq!(reductions(&goes_on(1 << 17)), 4);
    // What changes along the sum is no centre.
    let other = squares("4, 131072", "1", "4", "i0")
        .replace("%e: f32[4, 131072] = view %c [i0]", "%e: f32[4, 131072] = neg %x");
    assert_eq!(reductions(&other), 2, "one sum in two steps");
}

#[test]
fn positions_of_extremes_are_those_of_the_first() {
    for (length, place, extreme, op) in [
        (1 << 18, 5, 9.0, "argmax"),
        (1 << 18, 200_000, f32::NEG_INFINITY, "argmin"),
        (262_147, 262_146, f32::NAN, "argmax"),
    ] {
        let mut values: Vec<f32> = (0..2 * length).map(|k| (k * 7 % 11) as f32 - 5.0).collect();
        // The second row has it twice.
        for at in [place, length + place, 2 * length - 1] {
            values[at] = extreme;
        }
        let body = format!("input %x \"x\": f32[2, {length}] %y: i64[2] = {op} %x axes [1] output %y \"y\"");
        let x = Tensor::from_f32(&[2, length], &values);
        gives_the_same(&body, &x, if length % 2 == 0 { 3 } else { 5 });
    }
}

#[test]
fn narrow_numbers_are_rounded_once() {
    let target = Target::Gpu(crate::target::GpuTarget::named("sm_90a").expect("an architecture"));
    let body = "input %x \"x\": bf16[4, 262144] %y: bf16[4] = sum %x axes [1] output %y \"y\"";
    let (split, _) = asked(body, &target, &Records::none());
    assert_eq!(print(&split).matches("f32[4] = sum").count(), 1, "{}", print(&split));
}

/// A graph, split as records say, and what was asked.
fn asked(body: &str, target: &Target, records: &Records) -> (Graph, Vec<TuningPoint>) {
    let graph = parse(&format!("graph \"test\" {{ {body} }}")).expect("the text parses");
    let mut questions = Decisions::new(records);
    let split = dce(split_reductions(graph, target, &mut questions));
    crate::graph::verify(&split).expect("the result is well formed");
    (split, questions.into_asked())
}

/// Sums of a matrix of these rows, or its product with another, with something else before it.
fn sum(before: &str, rows: i64) -> String {
    format!(
        "{before} input %x \"x\": f32[{rows}, 512]
         %y: f32[512] = sum %x axes [0]
         output %y \"y\""
    )
}

#[test]
fn into_how_many_parts_is_a_question() {
    let cpu = Target::cpu(&["x86-64-v3"]);
    let product = "input %x \"x\": f32[16, 8192]
         input %z \"z\": f32[8192, 16]
         %y: f32[16, 16] = matmul %x, %z
         output %y \"y\"";
    for body in [&sum("", 4096), &sum("", 256), product] {
        let graph = parse(&format!("graph \"test\" {{ {body} }}")).expect("the text parses");
        let (first, questions) = asked(body, &cpu, &Records::none());
        let [question] = &questions[..] else { panic!("one question: {questions:?}") };
        assert_eq!(question.taken, 0);
        let shapes = graph.inputs.iter().map(|input| &graph.ty(input.value).shape);
        let inputs: Vec<Tensor> = shapes
            .map(|shape| {
                let sizes: Vec<usize> =
                    shape.iter().map(|size| size.as_int().expect("fixed") as usize).collect();
                // Sums of these are exact in any order.
                let values: Vec<f32> = (0..sizes.iter().product::<usize>()).map(|k| (k % 7) as f32).collect();
                Tensor::from_f32(&sizes, &values)
            })
            .collect();
        let expected = evaluate(&graph, &inputs).expect("it runs");
        for (position, answer) in question.answers.iter().enumerate() {
            assert!(question.answers[..position].iter().all(|other| other.config != answer.config));
            let text = answer.config.to_string();
            assert_eq!(text.parse::<Setting>().map(Config::from).as_ref(), Ok(&answer.config), "{text}");
            let mut records = Records::none();
            records.set(question.key.clone(), answer.config.clone());
            let (split, again) = asked(body, &cpu, &records);
            assert_eq!((again[0].taken, &again[0].key), (position, &question.key));
            assert_eq!(split == first, position == 0, "{text}");
            assert_eq!(evaluate(&split, &inputs).expect("it runs"), expected, "{text}");
        }
        let mut records = Records::none();
        records.set(question.key.clone(), Setting::Parts(7));
        assert_eq!(asked(body, &cpu, &records).0, first, "there is no such answer");
    }
}

#[test]
fn a_question_is_about_the_sum_alone() {
    let cpu = Target::cpu(&["x86-64-v3"]);
    let key = |body: &str, target: &Target| asked(body, target, &Records::none()).1[0].key.clone();
    let own = key(&sum("", 4096), &cpu);
    let before = "input %o \"o\": f32[7] %n: f32[7] = neg %o output %n \"n\"";
    assert_eq!(key(&sum(before, 4096), &cpu), own);
    assert_eq!(key(&sum("", 4096), &Target::cpu(&["x86-64"])), own, "levels share a schedule");
    assert_ne!(key(&sum("", 8192), &cpu), own);
    assert_ne!(key(&sum("", 4096).replace("= sum", "= max"), &cpu), own);
    // Short sums, and sums for everyone, are no question.
    assert_eq!(asked(&sum("", 64), &cpu, &Records::none()).1, []);
}

#[test]
fn processors_split_what_would_keep_one_thread_busy() {
    let cpu = Target::cpu(&["x86-64-v3"]);
    let sum = |rows: i64, columns: i64, axes: &str, shape: &str| {
        reductions_for(
            &cpu,
            &format!(
                "input %x \"x\": f32[{rows}, {columns}]
                 %y: f32[{shape}] = sum %x axes [{axes}]
                 output %y \"y\""
            ),
        )
    };
    assert_eq!(sum(1024, 1024, "0, 1", ""), 2);
    assert_eq!(sum(4096, 512, "0", "512"), 2);
    assert_eq!(sum(64, 65536, "1", "64"), 1, "there are results for everyone");
    assert_eq!(sum(64, 1024, "0, 1", ""), 1, "there is little to add up");
    let product = |rows: i64, depth: i64, columns: i64| {
        reductions_for(
            &cpu,
            &format!(
                "input %x \"x\": f32[{rows}, {depth}]
                 input %y \"y\": f32[{depth}, {columns}]
                 %z: f32[{rows}, {columns}] = matmul %x, %y
                 output %z \"z\""
            ),
        )
    };
    assert_eq!(product(16, 1 << 16, 16), 1);
    assert_eq!(product(1, 1 << 18, 10), 1);
    assert_eq!(product(64, 1 << 16, 64), 1);
    assert_eq!(product(1, 4096, 1000), 0, "panels of columns are enough");
    assert_eq!(product(256, 4096, 256), 0, "blocks of rows are enough");
}
