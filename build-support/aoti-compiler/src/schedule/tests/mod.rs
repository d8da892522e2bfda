//! Graphs in the text form, what scheduling makes of them, and an outline of the kernels that come out. Every answer to what is
//! open, and every way to run each kernel, is evaluated too.

mod fusion;
mod gpu;
mod in_place;
mod indexed;
mod memory;
mod questions;
mod vectors;

use super::*;
use crate::graph::Graph;
use crate::graph::text::parse;
use crate::kernels::mapping::{GpuMapping, Lanes, MathPath, Meeting, Rows, Scattering, Split, Teams, Tile};
use crate::loops::{Effect, Kernel, Storage};
use crate::lower::lower;
use crate::target::GpuTarget;
use crate::tuning::{Alternative, TuningPoint};

/// A graph with the given statements.
fn graph_of(body: &str) -> Graph {
    parse(&format!("graph \"test\" {{\n{body}\n}}")).expect("the text parses")
}

/// What a graph becomes on a target.
fn scheduled_for(graph: &Graph, target: &Target, records: &Records) -> Outcome {
    let mut questions = Decisions::new(records);
    let lowered = lower(graph, target, &mut questions);
    let (schedule, explanations) =
        schedule(lowered, &graph.ranges(), target, &mut questions).expect("all accesses are proven");
    Outcome { schedule, explanations, asked: questions.into_asked() }
}

/// What scheduling gives.
struct Outcome {
    schedule: Schedule,
    explanations: Vec<Explanation>,
    asked: Vec<TuningPoint>,
}

/// What is answered to a question about a pair, in their order.
fn fusion_choice(question: &TuningPoint) -> Vec<FusionChoice> {
    let joint = |answer: &Alternative| {
        let Some(Setting::Pair(joint)) = Setting::of_config(&answer.config) else {
            panic!("no answer of a pair: {answer:?}")
        };
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
    let lowered = lower(&graph, &target, &mut Decisions::default());
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
fn asked(body: &str) -> Vec<TuningPoint> {
    scheduled_for(&graph_of(body), &Target::cpu(&["x86-64-v3"]), &Records::none()).asked
}

/// Each other answer to one of the first questions by itself, and the last ones to all.
fn other_answers_give_the_same(graph: &Graph, target: &Target, asked: &[TuningPoint]) {
    let check = |records: &Records| {
        let other = scheduled_for(graph, target, records).schedule;
        assert_eq!(verify(&other), Vec::<String>::new(), "{records:?}");
        gives_the_same(graph, &other);
        other
    };
    let (first, mut all) = (check(&Records::none()), Records::none());
    for question in asked {
        all.set(question.key.clone(), question.answers.last().expect("there are several").config.clone());
    }
    for question in asked.iter().take(3) {
        let mut records = Records::none();
        for answer in &question.answers[1..] {
            records.set(question.key.clone(), answer.config.clone());
            assert_ne!(check(&records).program, first.program, "{question:?}");
        }
        records.set(question.key.clone(), question.answers[0].config.clone());
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
    let implementations: Vec<_> =
        kernels.map(|kernel| (kernel, implementations(program, kernel, &ranges, target))).collect();
    let most = implementations.iter().map(|(_, implementations)| implementations.len()).max().unwrap_or(0);
    for position in 1..most {
        let mut records = Records::none();
        for (kernel, implementations) in &implementations {
            if let Some(way) = implementations.get(position) {
                records.set(TuningKey::of(program, kernel, target), way.setting());
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
        KernelKind::AxisOp(_) => "rows".to_owned(),
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

/// Buffers of the arena that some kernel touches.
fn temporaries(program: &Program) -> usize {
    let touched = program.kernels.values().flat_map(|kernel| [kernel.reads(), kernel.writes()].concat());
    let temporary = touched.filter(|buffer| program.buffers[*buffer].storage == Storage::Temporary);
    temporary.collect::<std::collections::BTreeSet<_>>().len()
}
