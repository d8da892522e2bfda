//! What is fused and what is not, as graphs in the text form and an outline of the kernels that come out.

use super::*;
use crate::graph::Graph;
use crate::graph::text::parse;
use crate::loops::{Effect, Kernel, Storage};
use crate::lower::lower;
use crate::questions::{Answer, Question};
use crate::schedule::mapping::{GpuMapping, Multiplier};
use crate::target::GpuTarget;

/// A graph with the given statements.
fn graph_of(body: &str) -> Graph {
    parse(&format!("graph \"test\" {{\n{body}\n}}")).expect("the text parses")
}

/// What a graph becomes on a target.
fn scheduled_for(graph: &Graph, target: &Target, records: &Records) -> Outcome {
    let mut questions = Questions::new(records);
    let lowered = lower(graph, target, &mut questions);
    let (schedule, explanations) =
        schedule(lowered, &graph.ranges(), target, &mut questions).expect("all accesses are proven");
    Outcome { schedule, explanations, asked: questions.into_asked() }
}

/// What scheduling gives.
struct Outcome {
    schedule: Schedule,
    explanations: Vec<Explanation>,
    asked: Vec<Question>,
}

/// What is answered to a question about a pair, in their order.
fn joints(question: &Question) -> Vec<Joint> {
    let joint = |answer: &Answer| {
        let Setting::Pair(joint) = answer.setting else { panic!("no answer of a pair: {answer:?}") };
        joint
    };
    question.answers.iter().map(joint).collect()
}

/// A GPU with all that there is.
fn gpu() -> Target {
    Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"))
}

/// The scheduled program of a graph with the given statements.
fn scheduled(body: &str) -> (Program, Vec<Explanation>) {
    let graph = graph_of(body);
    crate::graph::verify(&graph).expect("the graph is well formed");
    let target = Target::cpu(&["x86-64-v3"]);
    let lowered = lower(&graph, &target, &mut Questions::default());
    assert_eq!(crate::loops::verify(&lowered), Vec::<String>::new());
    let Outcome { schedule, explanations, asked } = scheduled_for(&graph, &target, &Records::none());
    assert_eq!(verify(&schedule), Vec::<String>::new());
    other_answers_give_the_same(&graph, &target, &asked);
    let printed = crate::loops::text::print(&lowered);
    assert_eq!(crate::loops::text::parse(&printed).as_ref(), Ok(&lowered), "{printed}");
    let printed = text::print(&schedule);
    assert_eq!(text::parse(&printed).as_ref(), Ok(&schedule), "{printed}");
    gives_the_same(&graph, &schedule);
    other_ways_give_the_same(&graph, &schedule);
    (schedule.program, explanations)
}

/// What is open about a graph before its kernels are known.
fn asked(body: &str) -> Vec<Question> {
    scheduled_for(&graph_of(body), &Target::cpu(&["x86-64-v3"]), &Records::none()).asked
}

/// Each other answer to one of the first questions by itself, and the last ones to all.
fn other_answers_give_the_same(graph: &Graph, target: &Target, asked: &[Question]) {
    let check = |records: &Records| {
        let other = scheduled_for(graph, target, records).schedule;
        assert_eq!(verify(&other), Vec::<String>::new(), "{records:?}");
        gives_the_same(graph, &other);
        other
    };
    let (first, mut all) = (check(&Records::none()), Records::none());
    for question in asked {
        all.set(question.key.clone(), question.answers.last().expect("there are several").setting.clone());
    }
    for question in asked.iter().take(3) {
        let mut records = Records::none();
        for answer in &question.answers[1..] {
            records.set(question.key.clone(), answer.setting.clone());
            assert_ne!(check(&records).program, first.program, "{question:?}");
        }
        records.set(question.key.clone(), question.answers[0].setting.clone());
        assert_eq!(check(&records), first, "the first is the default");
        // What is said of a kernel answers no other question.
        let kernel = first.program.kernels.keys().next().expect("there is a kernel");
        records.set(question.key.clone(), Setting::of(&first.choices[kernel], &first.mappings[kernel]));
        assert_eq!(check(&records), first, "it is passed over");
    }
    check(&all);
}

/// Every way to run every kernel is well formed and gives the same.
fn other_ways_give_the_same(graph: &Graph, schedule: &Schedule) {
    let (program, target, ranges) = (&schedule.program, &schedule.target, graph.ranges());
    let kernels = program.kernels.values();
    let ways: Vec<_> = kernels.map(|kernel| (kernel, ways(program, kernel, &ranges, target))).collect();
    let most = ways.iter().map(|(_, ways)| ways.len()).max().unwrap_or(0);
    for position in 1..most {
        let mut records = Records::none();
        for (kernel, ways) in &ways {
            if let Some(way) = ways.get(position) {
                records.set(KernelKey::of(program, kernel, target), way.setting());
            }
        }
        let other = decide(program.clone(), &ranges, target, &records);
        assert_eq!(verify(&other), Vec::<String>::new(), "{records:?}");
        gives_the_same(graph, &other);
    }
}

/// Evaluates a graph and its schedule on the same data, sizes at 3 where they are free.
fn gives_the_same(graph: &Graph, schedule: &Schedule) {
    use crate::dtype::DType;
    use crate::interpret::{Tensor, evaluate, evaluate_schedule};
    let inputs: Vec<Tensor> = graph
        .inputs
        .iter()
        .map(|input| {
            let ty = graph.ty(input.value);
            let size = |size: &crate::symbolic::Expr| {
                usize::try_from(size.evaluate(&|_| Some(3)).expect("a size")).expect("no size is negative")
            };
            let sizes: Vec<usize> = ty.shape.iter().map(size).collect();
            let count: usize = sizes.iter().product();
            if ty.dtype == DType::I64 {
                return Tensor::from_i64(&sizes, &(0..count as i64).map(|k| k * 3 % 5).collect::<Vec<_>>());
            }
            let first = input.value.as_u32() as usize;
            let numbers: Vec<f32> = (0..count).map(|k| ((k + first) * 7 % 13) as f32 / 4.0 - 1.0).collect();
            Tensor::from_f32(&sizes, &numbers)
        })
        .collect();
    let expected = evaluate(graph, &inputs).expect("the graph can be evaluated");
    let found = evaluate_schedule(schedule, &inputs).expect("the schedule can be evaluated");
    // Outputs come before states, in graphs here.
    for (expected, found) in expected.iter().zip(found.outputs.iter().chain(&found.states)) {
        for (a, b) in expected.to_f64().iter().zip(found.to_f64()) {
            let same = *a == b || (a.is_nan() && b.is_nan());
            assert!(
                same || (a - b).abs() <= 1e-5 * a.abs().max(1.0),
                "{a} became {b}:\n{}",
                text::print(schedule)
            );
        }
    }
}

/// One line a kernel: its kind, outer extents, and the extents of each stage.
fn outline(program: &Program) -> Vec<String> {
    let kernel = |step: &Step| match step {
        Step::Kernel(id) => describe(&program.kernels[*id]),
        Step::Read { .. } => "read".to_owned(),
        Step::Assert(..) => "assert".to_owned(),
        Step::Require(_) => "require".to_owned(),
        Step::If { .. } => "if".to_owned(),
        Step::Loop { .. } => "loop".to_owned(),
    };
    program.steps.iter().map(kernel).collect()
}

fn describe(kernel: &Kernel) -> String {
    let extents = |axes: &[crate::loops::Axis]| {
        let all: Vec<String> = axes.iter().map(|axis| axis.extent.to_string()).collect();
        format!("({})", all.join(", "))
    };
    let loops = |nest: &crate::loops::Nest| {
        let stages: Vec<String> = nest.stages.iter().map(|stage| extents(&stage.axes)).collect();
        format!("nest {} stages {}", extents(&nest.axes), stages.join(" "))
    };
    match &kernel.kind {
        KernelKind::Nest(nest) => loops(nest),
        KernelKind::MatMul(matmul) => {
            let rows =
                matmul.row_epilogue.as_ref().map_or(String::new(), |rows| format!(" then {}", loops(rows)));
            format!("matmul {}{rows}", extents(&matmul.axes))
        }
        KernelKind::Convolution(conv) => format!("conv {}", extents(&conv.axes)),
        KernelKind::Attention(own) => format!("attention {}", extents(&own.score_axes())),
        KernelKind::Rows(_) => "rows".to_owned(),
        KernelKind::Extern(_) => "extern".to_owned(),
    }
}

#[track_caller]
fn check(body: &str, expected: &[&str]) {
    assert_eq!(outline(&scheduled(body).0), expected);
}

#[track_caller]
fn refuses(body: &str, reason: Refusal) {
    let reasons: Vec<Refusal> =
        scheduled(body).1.into_iter().filter_map(|explanation| explanation.refusal).collect();
    assert!(reasons.contains(&reason), "{reasons:?}");
}

const SOFTMAX: &str = "
    symbol s0 \"batch\" in 1..64 from input 0 axis 0
    input %x \"x\": f32[s0, 100]
    %high: f32[s0] = max %x axes [1]
    %h: f32[s0, 100] = view %high [i0]
    %d: f32[s0, 100] = sub %x, %h
    %e: f32[s0, 100] = exp %d
    %sum: f32[s0] = sum %e axes [1]
    %s: f32[s0, 100] = view %sum [i0]
    %y: f32[s0, 100] = div %e, %s
    output %y \"y\"";

const LARGE_REDUCTION: &str = "
    input %x \"x\": f32[160, 160]
    %e: f32[160, 160] = exp %x
    %sum: f32[] = sum %e axes [0, 1]
    output %e \"e\"
    output %sum \"sum\"";

/// Normalisation over groups of channels, and what follows for each element.
#[test]
fn a_function_of_what_groups_of_channels_give_is_part_of_their_kernel() {
    check(
        "
    input %x \"x\": f32[1, 8, 10, 10]
    %g: f32[1, 4, 2, 10, 10] = view %x [0, 2*i1 + i2, i3, i4]
    %sum: f32[1, 4] = sum %g axes [2, 3, 4]
    %s: f32[1, 4, 2, 10, 10] = view %sum [0, i1]
    %d: f32[1, 4, 2, 10, 10] = div %g, %s
    %y: f32[1, 8, 10, 10] = view %d [0, i1 // 2, i1 % 2, i2, i3]
    %e: f32[1, 8, 10, 10] = exp %y
    %z: f32[1, 8, 10, 10] = sigmoid %e
    %r: f32[1, 8, 10, 10] = mul %e, %z
    output %r \"r\"",
        &["nest (4) stages (200) () (200)"],
    );
}

#[test]
fn softmax_is_one_kernel_that_keeps_its_row_local() {
    check(SOFTMAX, &["nest (s0) stages (100) () (100) () (100)"]);
    let (program, _) = scheduled(SOFTMAX);
    let rows =
        program.buffers.values().filter(|buffer| matches!(buffer.storage, Storage::Row { .. })).count();
    assert_eq!(rows, 1, "the exponentials stay in the worker's scratch");
}

#[test]
fn statistics_and_normalisation_are_one_kernel() {
    check(
        "input %x \"x\": f32[8, 96]
         %sum: f32[8] = sum %x axes [1]
         %n: f32[8] = full 96.0
         %mean: f32[8] = div %sum, %n
         %m: f32[8, 96] = view %mean [i0]
         %c: f32[8, 96] = sub %x, %m
         %q: f32[8, 96] = mul %c, %c
         %var: f32[8] = sum %q axes [1]
         %r: f32[8] = rsqrt %var
         %rr: f32[8, 96] = view %r [i0]
         %y: f32[8, 96] = mul %c, %rr
         output %y \"y\"",
        &["nest (8) stages (96) () (96) () (96)"],
    );
}

#[test]
fn products_write_the_rows_of_heads_where_they_are_joined() {
    let body = |sizes: &str, coords: &str| {
        format!(
            "input %a \"a\": f32[2, 4, 6, 16]
             input %b \"b\": f32[2, 4, 16, 8]
             %p: f32[2, 4, 6, 8] = matmul %a, %b
             %y: f32{sizes} = view %p [{coords}]
             output %y \"y\""
        )
    };
    check(&body("[2, 6, 32]", "i0, i2 // 8, i1, i2 % 8"), &["matmul (2, 4, 6, 8)"]);
    // Columns that would lie apart are turned by a pass over memory.
    check(
        &body("[2, 8, 24]", "i0, i2 // 6, i2 % 6, i1"),
        &["matmul (2, 4, 6, 8)", "nest (2, 8, 24) stages ()"],
    );
}

#[test]
fn element_wise_consumers_go_into_the_epilogue() {
    let (program, _) = scheduled(
        "const c0 \"w\": f32[16, 32] = splat 0.5
         const c1 \"b\": f32[32] = splat 0.5
         input %x \"x\": f32[6, 16]
         input %r \"r\": f32[2, 3, 32]
         %w: f32[16, 32] = constant c0
         %b: f32[32] = constant c1
         %p: f32[6, 32] = matmul %x, %w
         %bb: f32[6, 32] = view %b [i1]
         %q: f32[6, 32] = add %p, %bb
         %t: f32[2, 3, 32] = view %q [3*i0 + i1, i2]
         %y: f32[2, 3, 32] = add %t, %r
         output %y \"y\"",
    );
    assert_eq!(outline(&program), ["matmul (6, 32)"]);
    let kernel = program.kernels.values().next().expect("checked above");
    assert_eq!(kernel.stages().next().expect("a stage").effects.len(), 1, "only the result is stored");
}

#[test]
fn a_reduction_of_columns_stays_out_of_a_product() {
    let body = "
        input %a \"a\": f32[6, 16]
        input %b \"b\": f32[16, 32]
        %p: f32[6, 32] = matmul %a, %b
        %y: f32[32] = sum %p axes [0]
        output %y \"y\"";
    check(body, &["matmul (6, 32)", "nest (32) stages (6) ()"]);
    refuses(body, Refusal::NotElementWise);
    refuses(body, Refusal::OtherSpace);
}

#[test]
fn a_reduction_of_rows_follows_the_rows_of_a_product() {
    let body = "
        input %a \"a\": f32[6, 16]
        input %b \"b\": f32[16, 32]
        %p: f32[6, 32] = matmul %a, %b
        %y: f32[6] = sum %p axes [1]
        output %y \"y\"";
    check(body, &["matmul (6, 32) then nest (6) stages (32) ()"]);
    let refusals: Vec<_> = scheduled(body).1.into_iter().map(|explanation| explanation.refusal).collect();
    assert_eq!(refusals, [None], "what became one kernel is not said to stay apart");
}

/// Two rounds of a product, a residual, and what normalises the rows, which are `rows` of 32 numbers.
fn normalised(sizes: &str, rows: &str) -> String {
    format!(
        "{sizes}
         input %x \"x\": f32[{rows}, 32]
         input %w \"w\": f32[32, 32]
         %p: f32[{rows}, 32] = matmul %x, %w
         %h: f32[{rows}, 32] = add %p, %x
         %sum: f32[{rows}] = sum %h axes [1]
         %m: f32[{rows}, 32] = view %sum [i0]
         %n: f32[{rows}, 32] = sub %h, %m
         %q: f32[{rows}, 32] = matmul %n, %w
         %g: f32[{rows}, 32] = add %q, %h
         %all: f32[{rows}] = sum %g axes [1]
         %s: f32[{rows}, 32] = view %all [i0]
         %y: f32[{rows}, 32] = sub %g, %s
         output %y \"y\""
    )
}

#[test]
fn normalisation_between_products_is_no_kernel_and_its_residual_is_replaced_in_place() {
    let step = |rows: &str| format!("matmul ({rows}, 32) then nest ({rows}) stages (32) () (32)");
    let fixed = normalised("", "70");
    check(&fixed, &[&step("70"), &step("70")]);
    // The second residual takes the place of the first, which the normalised rows were made of.
    let graph = graph_of(&fixed);
    let schedule = scheduled_for(&graph, &Target::cpu(&["x86-64-v3"]), &Records::none()).schedule;
    let arena = schedule.memory.arena_bytes.as_int().expect("fixed");
    assert!(arena < 3 * 70 * 32 * 4, "{arena} bytes");
    let open = normalised("symbol s0 \"batch\" in 0..64 from input 0 axis 0", "s0");
    check(&open, &[&step("s0"), &step("s0")]);
}

#[test]
fn what_loops_read_for_the_last_time_is_replaced_in_place() {
    let arena = |old: &str| {
        let graph = graph_of(&format!(
            "input %x \"x\": f32[32, 32]
             input %w \"w\": f32[32, 64]
             %h: f32[32, 32] = matmul %x, %x
             %gates: f32[32, 64] = matmul %h, %w
             %a: f32[32, 32] = view %gates [i0, i1]
             %b: f32[32, 32] = view %gates [i0, i1 + 32]
             %gate: f32[32, 32] = mul %a, %b
             %old: f32[32, 32] = view %h {old}
             %next: f32[32, 32] = add %gate, %old
             %y: f32[32, 32] = matmul %next, %x
             output %y \"y\""
        ));
        let schedule = scheduled_for(&graph, &Target::cpu(&["x86-64-v3"]), &Records::none()).schedule;
        schedule.memory.arena_bytes.as_int().expect("fixed")
    };
    let tensor = 32 * 32 * 4;
    assert_eq!(arena("[i0, i1]"), 3 * tensor, "the next state takes the place of the last");
    assert_eq!(arena("[31 - i0, i1]"), 4 * tensor, "rows that others still need stay");
}

#[test]
fn rows_of_several_axes_follow_a_product_over_their_joint_axis() {
    check(
        "input %x \"x\": f32[70, 32]
         input %w \"w\": f32[32, 32]
         %p: f32[70, 32] = matmul %x, %w
         %h: f32[7, 10, 32] = view %p [10*i0 + i1, i2]
         %sum: f32[7, 10] = sum %h axes [2]
         output %sum \"y\"",
        &["matmul (70, 32) then nest (70) stages (32) ()"],
    );
}

#[test]
fn rows_that_are_more_work_than_the_product_stay_apart() {
    let body = "
        input %a \"a\": f32[6, 2]
        input %b \"b\": f32[2, 32]
        %p: f32[6, 32] = matmul %a, %b
        %e: f32[6, 32] = exp %p
        %y: f32[6] = sum %e axes [1]
        %z: f32[6] = sum %p axes [1]
        output %y \"y\"
        output %z \"z\"";
    refuses(body, Refusal::NotByRow);
}

#[test]
fn softmax_of_the_rows_of_a_product_keeps_its_row_in_the_scratch_of_its_template() {
    let body = "
        input %a \"a\": f32[3, 70, 256]
        input %b \"b\": f32[3, 256, 32]
        %p: f32[3, 70, 32] = matmul %a, %b
        %max: f32[3, 70] = max %p axes [2]
        %m: f32[3, 70, 32] = view %max [i0, i1]
        %d: f32[3, 70, 32] = sub %p, %m
        %e: f32[3, 70, 32] = exp %d
        %sum: f32[3, 70] = sum %e axes [2]
        %s: f32[3, 70, 32] = view %sum [i0, i1]
        %y: f32[3, 70, 32] = div %e, %s
        output %y \"y\"";
    check(body, &["matmul (3, 70, 32) then nest (3, 70) stages (32) () (32) () (32)"]);
    let rows = scheduled(body).0;
    assert!(rows.buffers.values().any(|buffer| matches!(buffer.storage, Storage::Row { .. })));
}

#[test]
fn rows_of_another_order_stay_apart() {
    let body = "
        input %a \"a\": f32[6, 64]
        input %b \"b\": f32[64, 32]
        %p: f32[6, 32] = matmul %a, %b
        %back: f32[6, 32] = view %p [-i0 + 5, i1]
        %y: f32[6] = sum %back axes [1]
        output %y \"y\"";
    check(body, &["matmul (6, 32)", "nest (6) stages (32) ()"]);
    refuses(body, Refusal::OtherPosition);
}

#[test]
fn what_another_row_produces_is_not_fused() {
    let body = "
        input %x \"x\": f32[8, 96]
        %sum: f32[8] = sum %x axes [1]
        %back: f32[8, 96] = view %sum [-i0 + 7]
        %y: f32[8, 96] = mul %x, %back
        output %y \"y\"";
    check(body, &["nest (8) stages (96) ()", "nest (8, 96) stages ()"]);
    refuses(body, Refusal::OtherPosition);
}

#[test]
fn a_large_full_reduction_leaves_its_producer_parallel() {
    refuses(LARGE_REDUCTION, Refusal::LosesParallelism);
}

#[test]
fn values_of_several_outputs_share_a_kernel() {
    check(
        "input %x \"x\": f32[7, 5]
         %a: f32[7, 5] = exp %x
         %b: f32[7, 5] = neg %a
         %c: f32[7, 5] = mul %a, %b
         output %a \"a\"
         output %b \"b\"
         output %c \"c\"",
        &["nest (35) stages ()"],
    );
}

#[test]
fn independent_steps_move_out_of_the_way() {
    // The scale is computed between the product and its consumer, from other data.
    let (program, _) = scheduled(
        "input %a \"a\": f32[6, 16]
         input %b \"b\": f32[16, 32]
         input %v \"v\": f32[32, 9]
         %p: f32[6, 32] = matmul %a, %b
         %s: f32[32] = sum %v axes [1]
         %ss: f32[6, 32] = view %s [i1]
         %y: f32[6, 32] = mul %p, %ss
         output %y \"y\"",
    );
    assert_eq!(outline(&program), ["nest (32) stages (9) ()", "matmul (6, 32)"]);
}

#[test]
fn blocks_of_a_transposed_tensor_become_plain_strides() {
    // [2, 3, 5, 32] read as [2, 5, 96]: the last axis is cut into heads of 32.
    check(
        "input %x \"x\": f32[2, 3, 5, 32]
         %y: f32[2, 5, 96] = view %x [i0, i2 // 32, i1, i2 % 32]
         output %y \"y\"",
        &["nest (2, 5, 3, 32) stages ()"],
    );
}

#[test]
fn scatters_with_indices_run_in_order() {
    let (program, _) = scheduled(
        "input %base \"base\": f32[8]
         input %at \"at\": i64[5]
         input %v \"v\": f32[5]
         %y: f32[8] = scatter %base, %v, %at add [$0]
         output %y \"y\"",
    );
    let serial = |kernel: &&Kernel| matches!(&kernel.kind, KernelKind::Nest(nest) if nest.serial);
    assert_eq!(program.kernels.values().filter(serial).count(), 1);
}

#[test]
fn nothing_is_stored_that_nobody_reads() {
    let (program, _) = scheduled(SOFTMAX);
    let kernel = program.kernels.values().next().expect("one kernel");
    for effect in kernel.stages().flat_map(|stage| &stage.effects) {
        if let Effect::Store { access, .. } = effect {
            assert_ne!(program.buffers[access.buffer].storage, Storage::Temporary);
        }
    }
}

#[test]
fn long_chains_become_kernels_of_bounded_size() {
    let mut body = "input %0 \"x\": f32[4, 8]\n".to_owned();
    for k in 0..4000 {
        body.push_str(&format!("%{}: f32[4, 8] = exp %{k}\n", k + 1));
    }
    body.push_str("output %4000 \"y\"");
    let (program, explanations) = scheduled(&body);
    assert!((8..=16).contains(&program.steps.len()), "{}", program.steps.len());
    assert!(explanations.iter().any(|explanation| explanation.refusal == Some(Refusal::TooLarge)));
}

#[test]
fn a_chain_of_dead_stores_goes_at_once() {
    let mut text = "loops { buffer b0: f32[4] input 0 buffer b1: f32[4] output 0\n".to_owned();
    for k in 2..300 {
        text.push_str(&format!("buffer b{k}: f32[4] temporary\n"));
    }
    let copy = |from: usize, to: usize| {
        format!(
            "kernel \"copy\" {{ for [i0 < 4] {{ stage [] {{ t0: f32 = load b{from}[i0] store b{to}[i0] = t0 }} }} }}\n"
        )
    };
    text.push_str(&copy(0, 1));
    text.push_str(&copy(0, 2));
    (2..299).for_each(|k| text.push_str(&copy(k, k + 1)));
    text.push('}');
    let mut program = crate::loops::text::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    clean::remove_dead(&mut program);
    assert_eq!(program.steps.len(), 1);
}

#[test]
fn padding_of_a_row_reads_nothing_beside_it() {
    check(
        "input %x \"x\": f32[2, 66]
        %sum: f32[2] = sum %x axes [1]
        %row: f32[2, 1] = view %sum [i0]
        %half: f32[] = full 0.5
        %halves: f32[2, 1] = view %half []
        %scaled: f32[2, 1] = mul %row, %halves
        %padded: f32[2, 5] = pad %scaled [i0, i1 - 1] fill 0
        output %padded \"y\"",
        &["nest (2) stages (66) () (5)"],
    );
}

/// Buffers of the arena that some kernel touches.
fn temporaries(program: &Program) -> usize {
    let touched = program.kernels.values().flat_map(|kernel| [kernel.reads(), kernel.writes()].concat());
    let temporary = touched.filter(|buffer| program.buffers[*buffer].storage == Storage::Temporary);
    temporary.collect::<std::collections::BTreeSet<_>>().len()
}

#[test]
fn what_ends_as_a_part_of_a_buffer_is_made_there() {
    let (program, _) = scheduled(
        "input %x \"x\": f32[4, 8]
         input %w \"w\": f32[8, 8]
         %a: f32[4, 8] = matmul %x, %w
         %b: f32[4, 8] = matmul %a, %w
         %c: f32[8, 8] = cat %a, %b axis 0
         output %c \"c\"",
    );
    assert_eq!(outline(&program), ["matmul (4, 8)", "matmul (4, 8)"]);
    assert_eq!(temporaries(&program), 0, "products read and write the output");
    let effects =
        program.kernels.values().map(|kernel| kernel.stages().next().expect("a stage").effects.len());
    assert!(effects.into_iter().all(|count| count == 1), "nothing is stored twice");
}

#[test]
fn what_is_scattered_into_ends_where_it_is_wanted() {
    let body = |axis: usize, sizes: &str| {
        format!(
            "input %x \"x\": f32[2, 5, 4]
             input %k \"k\": f32[3, 4]
             input %at \"at\": i64[3, 4]
             %other: f32[5, 4] = view %x [0, i0, i1]
             %old: f32[5, 4] = view %x [1, i0, i1]
             %new: f32[5, 4] = scatter %old, %k, %at set [wrap $0, i1]
             %sum: f32[5] = sum %new axes [1]
             %c: f32{sizes} = cat %other, %new axis {axis}
             output %sum \"sum\"
             output %c \"c\""
        )
    };
    // An index is no coordinate of a part that begins elsewhere along the same axis.
    let copies = |program: &Program| outline(program).len();
    assert_eq!(copies(&scheduled(&body(1, "[5, 8]")).0) + 1, copies(&scheduled(&body(0, "[10, 4]")).0));
    assert_eq!(temporaries(&scheduled(&body(1, "[5, 8]")).0), 0);
    assert_eq!(temporaries(&scheduled(&body(0, "[10, 4]")).0), 1);
}

#[test]
fn what_others_write_to_or_take_whole_is_no_part() {
    // The sorted rows are known by their beginning, which is not that of the output.
    let (program, _) = scheduled(
        "input %x \"x\": f32[4, 8]
         %s: f32[4, 8] = exp %x
         %v: f32[4, 8], %i: i64[4, 8] = sort %s axis 1
         %c: f32[8, 8] = cat %x, %s axis 0
         output %v \"v\"
         output %i \"i\"
         output %c \"c\"",
    );
    assert_eq!(temporaries(&program), 1);
}

/// A state that becomes `%next`, which may read `%old`, `%x` and the index `%at`, and what the program gives.
fn with_state(body: &str, outputs: &str) -> (Program, Vec<Explanation>) {
    scheduled(&format!(
        "const c0 \"cache\": f32[2, 5, 4] = splat 0.5
         input %old \"cache\": f32[2, 5, 4] state c0
         input %x \"x\": f32[2, 1, 4]
         input %at \"at\": i64[2, 1, 4]
         {body}
         {outputs}
         output %next \"cache\" state 0"
    ))
}

const ROW: &str = "%next: f32[2, 5, 4] = scatter %old, %x, %at set [i0, wrap $0, i2]";

#[test]
fn a_row_of_a_state_changes_in_place() {
    let sum = "%sum: f32[2, 4] = sum %next axes [1]";
    let (program, _) = with_state(&format!("{ROW}\n{sum}"), "output %sum \"sum\"");
    assert_eq!(outline(&program), ["nest (2, 4) stages ()", "nest (2, 4) stages (5) ()"]);
    assert_eq!(temporaries(&program), 0);
    // What is read before the change is the old value.
    let before = "%sum: f32[2, 4] = sum %old axes [1]";
    let (program, _) = with_state(&format!("{before}\n{ROW}"), "output %sum \"sum\"");
    assert_eq!(temporaries(&program), 0, "{:?}", outline(&program));
}

#[test]
fn states_that_take_each_others_values_are_held_apart() {
    scheduled(
        "const c0 \"a\": f32[3] = splat 0.5
         const c1 \"b\": f32[3] = splat 1.5
         input %a \"a\": f32[3] state c0
         input %b \"b\": f32[3] state c1
         output %b \"a\" state 0
         output %a \"b\" state 1",
    );
}

#[test]
fn old_values_that_are_read_after_a_change_keep_their_copy() {
    let after = format!(
        "{ROW}\n%new: f32[2, 4] = sum %next axes [1]\n%sum: f32[2, 4] = sum %old axes [1]\n%both: f32[2, 4] = sub %new, %sum"
    );
    let (program, _) = with_state(&after, "output %both \"both\"");
    assert!(temporaries(&program) > 0);
    // All but the first row moves: later rows are read where earlier ones have been written.
    let moved =
        "%rest: f32[2, 4, 4] = view %old [i0, i1 + 1, i2]\n%next: f32[2, 5, 4] = cat %rest, %x axis 1";
    let (program, _) = with_state(moved, "output %at \"at\"");
    assert!(temporaries(&program) > 0);
}

#[test]
fn elements_of_a_state_that_only_their_successors_need_change_in_place() {
    let wide = "%wide: f32[2, 5, 4] = view %x [i0, 0, i2]";
    let (program, _) =
        with_state(&format!("{wide}\n%next: f32[2, 5, 4] = add %old, %wide"), "output %at \"at\"");
    assert_eq!(temporaries(&program), 0, "{:?}", outline(&program));
    // Those around the new row stay where they are.
    let parts = "%low: f32[2, 2, 4] = view %old [i0, i1, i2]
                 %high: f32[2, 2, 4] = view %old [i0, i1 + 3, i2]
                 %next: f32[2, 5, 4] = cat %low, %x, %high axis 1";
    let (program, _) = with_state(parts, "output %at \"at\"");
    assert_eq!(temporaries(&program), 0, "{:?}", outline(&program));
    let other_head = "%turned: f32[2, 5, 4] = view %old [-i0 + 1, i1, i2]
                      %next: f32[2, 5, 4] = add %old, %turned";
    let (program, _) = with_state(other_head, "output %at \"at\"");
    assert_eq!(temporaries(&program), 1, "{:?}", outline(&program));
}

/// A product with an epilogue that a loop of its own may compute as fast, behind `before` and with other names.
fn heavy_epilogue(before: &str, name: &str, rows: i64) -> String {
    format!(
        r#"const c0 "{name}": f32[64, 48] = splat 0.5
        {before}
        input %x "{name}_in": f32[{rows}, 64]
        %w: f32[64, 48] = constant c0
        %p: f32[{rows}, 48] = matmul %x, %w
        %half: f32[{rows}, 48] = full 0.5
        %one: f32[{rows}, 48] = full 1.0
        %root: f32[{rows}, 48] = full 0.7071
        %a: f32[{rows}, 48] = mul %p, %half
        %b: f32[{rows}, 48] = mul %p, %root
        %c: f32[{rows}, 48] = erf %b
        %d: f32[{rows}, 48] = add %c, %one
        %y: f32[{rows}, 48] = mul %a, %d
        output %y "{name}_out""#
    )
}

#[test]
fn a_close_call_of_fusion_is_a_question_and_the_first_answer_is_the_default() {
    let body = heavy_epilogue("", "a", 6);
    check(&body, &["matmul (6, 48)"]);
    let [pair] = &asked(&body)[..] else { panic!("one question") };
    assert_eq!((joints(pair), pair.taken), (vec![Joint::Fused, Joint::Apart], 0));
    assert!(!pair.answers[1].is_shared);
    // What there is beside it, and names, are no part of its key; sizes are.
    let before = "input %o \"o\": f32[7]\n%n: f32[7] = neg %o\noutput %n \"n\"";
    assert_eq!(asked(&heavy_epilogue(before, "b", 6))[0].key, pair.key);
    assert_ne!(asked(&heavy_epilogue("", "a", 7))[0].key, pair.key);
    // A sum that goes without saying is none.
    assert_eq!(asked(SOFTMAX), []);
}

#[test]
fn what_keeps_all_threads_busy_is_worth_a_question() {
    let [pair] = &asked(LARGE_REDUCTION)[..] else { panic!("one question") };
    assert_eq!(joints(pair), [Joint::Apart, Joint::Fused]);
    let prices = Target::cpu(&["x86-64-v3"]).prices();
    let cost = |way: usize| prices.total(&pair.answers[way].cost);
    assert!(cost(1) < cost(0), "on one thread it is better to read once");
    let graph = graph_of(LARGE_REDUCTION);
    let target = Target::cpu(&["x86-64-v3"]);
    let mut records = Records::none();
    records.set(pair.key.clone(), Setting::Pair(Joint::Fused));
    let own = scheduled_for(&graph, &target, &records);
    assert_eq!((own.schedule.program.kernels.len(), own.asked[0].taken), (1, 1));
    records.set(pair.key.clone(), Setting::Pair(Joint::Apart));
    let own = scheduled_for(&graph, &target, &records);
    assert_eq!(own.explanations[0].refusal, Some(Refusal::Measured));
    let costs = own.explanations[0].costs.expect("they could be one");
    assert_eq!([costs.apart, costs.fused], [0, 1].map(cost));
}

#[test]
fn what_became_one_kernel_is_said_with_its_costs() {
    let explanations = scheduled(SOFTMAX).1;
    let fused = explanations.iter().find(|own| own.refusal.is_none()).expect("a softmax is one kernel");
    let costs = fused.costs.expect("loops have a cost");
    assert!(costs.fused < costs.apart, "{costs:?}");
    let text = fused.to_string();
    assert!(
        text.starts_with(&format!("{} + {}: one kernel; costs ", fused.producer, fused.consumer)),
        "{text}"
    );
    let apart = Explanation { refusal: Some(Refusal::Measured), ..fused.clone() }.to_string();
    assert!(apart.contains("they were measured to be faster apart; costs "), "{apart}");
}

/// A product with a softmax over its rows.
const FINISHED_ROWS: &str = r#"
    input %x "x": f32[200, 64]
    input %w "w": f32[64, 48]
    %p: f32[200, 48] = matmul %x, %w
    %m: f32[200] = max %p axes [1]
    %mm: f32[200, 48] = view %m [i0]
    %d: f32[200, 48] = sub %p, %mm
    %e: f32[200, 48] = exp %d
    %s: f32[200] = sum %e axes [1]
    %ss: f32[200, 48] = view %s [i0]
    %y: f32[200, 48] = div %e, %ss
    output %y "y"
"#;

#[test]
fn whether_a_product_finishes_its_rows_is_a_question() {
    let (program, _) = scheduled(FINISHED_ROWS);
    let [pair] = &asked(FINISHED_ROWS)[..] else { panic!("one question") };
    assert_eq!((program.kernels.len(), joints(pair)), (1, vec![Joint::Fused, Joint::Apart]));
    let graph = graph_of(FINISHED_ROWS);
    let target = Target::cpu(&["x86-64-v3"]);
    let mut records = Records::none();
    records.set(pair.key.clone(), Setting::Pair(Joint::Apart));
    let apart = scheduled_for(&graph, &target, &records);
    assert_eq!((apart.schedule.program.kernels.len(), apart.asked[0].taken), (2, 1));
    gives_the_same(&graph, &apart.schedule);
}

#[test]
fn on_gpus_pairs_are_questions_too() {
    let target = gpu();
    for (body, first) in [(heavy_epilogue("", "a", 6), 1), (LARGE_REDUCTION.to_owned(), 2)] {
        let graph = graph_of(&body);
        let run = |records: &Records| scheduled_for(&graph, &target, records);
        let Outcome { schedule, asked, .. } = run(&Records::none());
        let [pair] = &asked[..] else { panic!("one question: {asked:?}") };
        assert_eq!(schedule.program.kernels.len(), first);
        let kernels: Vec<usize> = pair
            .answers
            .iter()
            .map(|answer| {
                let mut records = Records::none();
                records.set(pair.key.clone(), answer.setting.clone());
                let own = run(&records).schedule;
                assert_eq!(verify(&own), Vec::<String>::new());
                gives_the_same(&graph, &own);
                own.program.kernels.len()
            })
            .collect();
        assert_eq!(kernels, [first, 3 - first], "the first is the default");
    }
}

/// A softmax over rows of 96, whose input two stages read.
const READ_TWICE: &str = r#"
    input %x "x": f32[5, 96]
    %m: f32[5] = max %x axes [1]
    %mm: f32[5, 96] = view %m [i0]
    %d: f32[5, 96] = sub %x, %mm
    %e: f32[5, 96] = exp %d
    %s: f32[5] = sum %e axes [1]
    %ss: f32[5, 96] = view %s [i0]
    %y: f32[5, 96] = div %e, %ss
    output %y "y"
"#;

#[test]
fn where_rows_are_kept_on_gpus_can_be_measured() {
    let (graph, target) = (graph_of(READ_TWICE), gpu());
    let Outcome { schedule, asked, .. } = scheduled_for(&graph, &target, &Records::none());
    let [question] = &asked[..] else { panic!("one question: {asked:?}") };
    let settings: Vec<String> = question.answers.iter().map(|answer| answer.setting.to_string()).collect();
    assert_eq!(settings, ["rows-kept", "rows-read-again"]);
    let prices = target.prices();
    assert!(prices.total(&question.answers[0].cost) < prices.total(&question.answers[1].cost));
    other_answers_give_the_same(&graph, &target, &asked);
    // The kernel that keeps them has two ways, and a key that is not that of the question.
    let kernel = schedule.program.kernels.values().next().expect("one kernel");
    let all = ways(&schedule.program, kernel, &graph.ranges(), &target);
    let settings: Vec<String> = all.iter().map(|way| way.setting().to_string()).collect();
    assert_eq!(settings, ["loops team 32 rows registers", "loops team 32 rows shared"]);
    assert!(settings.iter().zip(&all).all(|(text, way)| text.parse() == Ok(way.setting())));
    assert!(prices.total(&all[0].cost) < prices.total(&all[1].cost));
    other_ways_give_the_same(&graph, &schedule);
    let mut records = Records::none();
    records.set(question.key.clone(), question.answers[1].setting.clone());
    let again = scheduled_for(&graph, &target, &records).schedule;
    let kernel = again.program.kernels.values().next().expect("one kernel");
    assert_ne!(KernelKey::of(&again.program, kernel, &target), question.key);
}

/// Trap 28: which kernels there are depends on pairs, and records of both lie side by side: one of a kernel that there is
/// no more, or of a pair whose kernels are others now, is passed over.
#[test]
fn records_of_pairs_and_of_the_kernels_that_they_make_do_not_nest() {
    let graph = graph_of(&heavy_epilogue("", "a", 6));
    let (target, mut records) = (Target::cpu(&["x86-64-v3"]), Records::none());
    let run = |records: &Records| scheduled_for(&graph, &target, records).schedule;
    let Outcome { schedule: first, asked, .. } = scheduled_for(&graph, &target, &records);
    let keys = |schedule: &Schedule| -> Vec<KernelKey> {
        let program = &schedule.program;
        program.kernels.values().map(|kernel| KernelKey::of(program, kernel, &target)).collect()
    };
    let kernel = first.program.kernels.values().next().expect("one kernel");
    let all = ways(&first.program, kernel, &graph.ranges(), &target);
    records.set(keys(&first)[0].clone(), all[1].setting());
    let tuned = run(&records);
    assert_ne!(tuned.mappings, first.mappings, "the record of the joint kernel counts");
    records.set(asked[0].key.clone(), Setting::Pair(Joint::Apart));
    let apart = run(&records);
    assert_eq!(apart.program.kernels.len(), 2);
    assert!(
        keys(&apart).iter().all(|key| records.get(key).is_none()),
        "it is of a kernel that there is no more"
    );
    gives_the_same(&graph, &apart);
    records.set(asked[0].key.clone(), Setting::Pair(Joint::Fused));
    assert_eq!(run(&records), tuned, "and counts again where it is back");
}

#[test]
fn sizes_that_may_be_zero_keep_no_kernels_apart() {
    let (program, _) = scheduled(
        "
    symbol s0 \"batch\" in 0..64 from input 0 axis 0
    symbol s1 \"length\" in 0..64 from input 0 axis 2
    input %a \"a\": f32[s0, 4, s1, 8]
    input %b \"b\": f32[s0, 4, 8, 32]
    %heads: f32[s0, 4, s1, 32] = matmul %a, %b
    %rows: f32[s0*s1, 128] = view %heads [i0 // s1, i1 // 32, i0 % s1, i1 % 32]
    %y: f32[s0*s1, 128] = exp %rows
    output %y \"y\"",
    );
    assert_eq!(program.kernels.len(), 1, "{}", crate::loops::text::print(&program));
}

#[test]
fn parts_of_a_buffer_share_launches_before_they_depend_on_each_other() {
    let graph = graph_of(
        "input %x \"x\": f32[2, 5, 4]
         input %k \"k\": f32[3, 4]
         input %at \"at\": i64[3, 4]
         %first: f32[5, 4] = view %x [0, i0, i1]
         %second: f32[5, 4] = view %x [1, i0, i1]
         %new: f32[5, 4] = scatter %first, %k, %at set [wrap $0, i1]
         %sum: f32[4] = sum %new axes [0]
         %row: f32[3, 4] = view %sum [i1]
         %next: f32[5, 4] = scatter %second, %row, %at set [wrap $0, i1]
         %c: f32[5, 8] = cat %new, %next axis 1
         output %c \"c\"",
    );
    let schedule = scheduled_for(&graph, &gpu(), &Records::none()).schedule;
    gives_the_same(&graph, &schedule);
    let kernels = schedule.program.kernels.len();
    assert_eq!(kernels, 4, "one copies both parts: {}", crate::loops::text::print(&schedule.program));
    assert_eq!(temporaries(&schedule.program), 1, "the sum alone");
}

#[test]
fn matrix_units_get_operands_that_they_can_read() {
    let findings = |depth: i64, dtype: &str| {
        let graph = graph_of(&format!(
            "input %x \"x\": {dtype}[7, {depth}]
             input %w \"w\": {dtype}[64, {depth}]
             %t: {dtype}[{depth}, 64] = view %w [i1, i0]
             %y: {dtype}[7, 64] = matmul %x, %t
             output %y \"y\""
        ));
        let mut schedule = scheduled_for(&graph, &gpu(), &Records::none()).schedule;
        let id = schedule.program.kernels.keys().next().expect("one kernel");
        let Mapping::Gpu(GpuMapping::Tiles(tile)) = &mut schedule.mappings[id] else { panic!("a tile") };
        (tile.rows, tile.columns, tile.blocks) = (8, 16, 1);
        tile.by = Multiplier::FewUnits;
        verify(&schedule)
    };
    assert_eq!(findings(96, "bf16"), Vec::<String>::new());
    for (depth, dtype) in [(100, "bf16"), (96, "f32")] {
        let found = findings(depth, dtype);
        assert!(found.iter().any(|finding| finding.contains("matrix units")), "{dtype} {depth}: {found:?}");
    }
}
