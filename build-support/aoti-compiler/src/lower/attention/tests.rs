//! What is one kernel and what is not, and that it computes what the graph does.

use crate::dtype::DType;
use crate::graph::text::parse;
use crate::graph::{Graph, verify};
use crate::halves::{Bf16, F16};
use crate::interpret::{Tensor, evaluate, evaluate_schedule};
use crate::loops::{self, KernelKind, Program};
use crate::lower::lower;
use crate::schedule;
use crate::target::{GpuTarget, Target};
use crate::tuning::Decisions;

/// Every form that device code is tested with.
const FORMS: &str = include_str!("../../../tests/device/attention.aoti");

fn gpu() -> Target {
    Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"))
}

fn graph(text: &str) -> Graph {
    let graph = parse(text).unwrap_or_else(|error| panic!("{error}"));
    verify(&graph).unwrap_or_else(|findings| panic!("{findings:?}"));
    graph
}

/// The kinds of the kernels of a graph on a target.
fn kinds(program: &Program) -> Vec<&'static str> {
    let kind = |kernel: &loops::Kernel| match kernel.kind {
        KernelKind::Nest(_) => "nest",
        KernelKind::MatMul(_) => "matmul",
        KernelKind::Convolution(_) => "conv",
        KernelKind::Attention(_) => "attention",
        KernelKind::AxisOp(_) => "rows",
        KernelKind::Extern(_) => "extern",
    };
    program.kernels.values().map(kind).collect()
}

/// Attention over 6 queries and 7 keys, with other statements behind its steps and other outputs.
fn attention(between: &str, scores: &str, weights: &str, outputs: &str) -> String {
    format!(
        "graph \"a\" {{
          input %q \"q\": f32[2, 6, 4]
          input %k \"k\": f32[2, 7, 4]
          input %v \"v\": f32[2, 7, 5]
          %kt: f32[2, 4, 7] = view %k [i0, i2, i1]
          %product: f32[2, 6, 7] = matmul %q, %kt
          {between}
          %max: f32[2, 6] = max {scores} axes [2]
          %peak: f32[2, 6, 7] = view %max [i0, i1]
          %d: f32[2, 6, 7] = sub {scores}, %peak
          %e: f32[2, 6, 7] = exp %d
          %sum: f32[2, 6] = sum %e axes [2]
          %total: f32[2, 6, 7] = view %sum [i0, i1]
          %w: f32[2, 6, 7] = div %e, %total
          %y: f32[2, 6, 5] = matmul {weights}, %v
          output %y \"y\"
          {outputs}
        }}"
    )
}

#[track_caller]
fn becomes(text: &str, expected: &[&str]) -> Program {
    let graph = graph(text);
    let lowered = lower(&graph, &gpu(), &mut Decisions::default());
    assert_eq!(loops::verify(&lowered), Vec::<String>::new());
    let (schedule, _) =
        schedule::schedule(lowered.clone(), &graph.ranges(), &gpu(), &mut Decisions::default()).unwrap();
    assert_eq!(schedule::verify(&schedule), Vec::<String>::new());
    let printed = schedule::text::print(&schedule);
    assert_eq!(schedule::text::parse(&printed).as_ref(), Ok(&schedule), "{printed}");
    assert_eq!(kinds(&schedule.program), expected);
    let inputs: Vec<Tensor> =
        graph.inputs.iter().enumerate().map(|(k, one)| input(&graph, k, one.value)).collect();
    let expected = evaluate(&graph, &inputs).expect("the graph is evaluated");
    let found = evaluate_schedule(&schedule, &inputs).expect("the schedule is evaluated");
    for (expected, found) in expected.iter().zip(&found.outputs) {
        let tolerance = if expected.dtype().is_half() { 1e-2 } else { 1e-5 };
        for (a, b) in expected.to_f64().into_iter().zip(found.to_f64()) {
            let same = a == b || (a.is_nan() && b.is_nan());
            assert!(same || (a - b).abs() <= tolerance, "{a} became {b}:\n{printed}");
        }
    }
    lowered
}

/// Numbers of both signs, and masks that hide some of everything and all of the first row.
fn input(graph: &Graph, position: usize, value: crate::graph::ValueId) -> Tensor {
    let ty = graph.ty(value);
    let sizes: Vec<usize> =
        ty.shape.iter().map(|size| usize::try_from(size.as_int().expect("known")).expect("small")).collect();
    let count: usize = sizes.iter().product();
    let row = sizes.last().copied().unwrap_or(1);
    if ty.dtype == DType::Bool {
        let shown: Vec<bool> = (0..count).map(|k| k >= row && k % 3 != 0).collect();
        return Tensor::from_bool(&sizes, &shown);
    }
    let numbers: Vec<f32> = (0..count).map(|k| ((k + position) * 7 % 13) as f32 / 4.0 - 1.0).collect();
    let bytes: Vec<u8> = match ty.dtype {
        DType::F16 => numbers.iter().flat_map(|number| F16::from_f32(*number).to_le_bytes()).collect(),
        DType::Bf16 => numbers.iter().flat_map(|number| Bf16::from_f32(*number).to_le_bytes()).collect(),
        DType::Bool
        | DType::U8
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8(_)
        | DType::F32
        | DType::F64 => return Tensor::from_f32(&sizes, &numbers),
    };
    Tensor::new(ty.dtype, sizes, bytes).expect("as many bytes as elements")
}

fn only(program: &Program) -> &loops::Attention {
    let Some(KernelKind::Attention(own)) = program.kernels.values().map(|kernel| &kernel.kind).next_back()
    else {
        panic!("there is no attention")
    };
    own
}

#[test]
fn every_form_is_one_kernel_on_gpus() {
    let count = FORMS.matches("  output ").count();
    becomes(FORMS, &vec!["attention"; count]);
}

#[test]
fn processors_keep_products_and_softmax_of_few_queries() {
    let kinds = kinds(&lower(&graph(FORMS), &Target::cpu(&["x86-64-v3"]), &mut Decisions::default()));
    // Two of the forms have five queries, or three, and two have a single one.
    let count = FORMS.matches("  output ").count();
    assert_eq!(kinds.iter().filter(|kind| **kind == "attention").count(), count - 4);
    assert!(kinds.contains(&"matmul"));
}

#[test]
fn what_is_wanted_for_itself_keeps_its_kernel() {
    becomes(&attention("", "%product", "%w", ""), &["attention"]);
    let lowered =
        |text: &str| kinds(&lower(&graph(text), &gpu(), &mut Decisions::default())).contains(&"attention");
    for wanted in ["product", "w", "max", "e"] {
        assert!(
            !lowered(&attention("", "%product", "%w", &format!("output %{wanted} \"other\""))),
            "{wanted}"
        );
    }
    // A slice of the weights leaves out what the softmax counted.
    let slice = attention("", "%product", "%part", "")
        .replace("%y:", "%part: f32[2, 6, 3] = view %w [i0, i1, i2]\n%y:");
    let slice = slice.replace(
        "%y: f32[2, 6, 5] = matmul %part, %v",
        "%vs: f32[2, 3, 5] = view %v [i0, i1, i2]\n%y: f32[2, 6, 5] = matmul %part, %vs",
    );
    assert!(!lowered(&slice));
}

/// As exporters write it: queries and keys are scaled before the product, and weights that are NaN become zeros.
#[test]
fn scaled_operands_and_weights_that_may_be_nan_are_one_kernel() {
    let text = "graph \"a\" {
      input %q \"q\": f32[2, 6, 4]
      input %k \"k\": f32[2, 7, 4]
      input %v \"v\": f32[2, 7, 5]
      input %m \"m\": f32[6, 7]
      %c: f32[2, 6, 4] = full 0.5
      %qs: f32[2, 6, 4] = mul %q, %c
      %kt: f32[2, 4, 7] = view %k [i0, i2, i1]
      %d: f32[2, 4, 7] = full 3.0
      %ks: f32[2, 4, 7] = mul %kt, %d
      %p: f32[2, 6, 7] = matmul %qs, %ks
      %mv: f32[2, 6, 7] = view %m [i1, i2]
      %s: f32[2, 6, 7] = add %p, %mv
      %max: f32[2, 6] = max %s axes [2]
      %peak: f32[2, 6, 7] = view %max [i0, i1]
      %x: f32[2, 6, 7] = sub %s, %peak
      %e: f32[2, 6, 7] = exp %x
      %sum: f32[2, 6] = sum %e axes [2]
      %total: f32[2, 6, 7] = view %sum [i0, i1]
      %w: f32[2, 6, 7] = div %e, %total
      %n: bool[2, 6, 7] = isnan %w
      %zero: f32[2, 6, 7] = full 0.0
      %g: f32[2, 6, 7] = select %n, %zero, %w
      %y: f32[2, 6, 5] = matmul %g, %v
      output %y \"y\"
    }";
    let program = becomes(text, &["attention"]);
    assert_eq!(only(&program).of_nothing, loops::OfNothing::ZerosForNan);
    // Rows of which nothing is seen, and rows with what is no number, give zeros.
    let graph = graph(text);
    let mut inputs: Vec<Tensor> =
        graph.inputs.iter().enumerate().map(|(position, own)| input(&graph, position, own.value)).collect();
    let mask: Vec<f32> = (0..42)
        .map(|at| match at / 7 {
            0 => f32::NEG_INFINITY,
            1 if at % 7 == 3 => f32::NAN,
            2 if at % 7 == 5 => f32::INFINITY,
            _ => 0.25 * at as f32,
        })
        .collect();
    inputs[3] = Tensor::from_f32(&[6, 7], &mask);
    let found = evaluate(&graph, &inputs).expect("it runs");
    let (schedule, _) =
        schedule::schedule(program, &graph.ranges(), &gpu(), &mut Decisions::new(&Default::default()))
            .expect("it is scheduled");
    let computed = evaluate_schedule(&schedule, &inputs).expect("it runs").outputs;
    let (found, computed) = (found[0].to_f64(), computed[0].to_f64());
    assert!(found[..15].iter().all(|value| *value == 0.0) && found[15] != 0.0);
    assert!(found.iter().zip(&computed).all(|(a, b)| (a - b).abs() < 1e-5), "{found:?} {computed:?}");
}

#[test]
fn softmax_over_another_axis_is_not_attention() {
    let text = attention("", "%product", "%w", "")
        .replace("%max: f32[2, 6] = max %product axes [2]", "%max: f32[2, 7] = max %product axes [1]")
        .replace("%peak: f32[2, 6, 7] = view %max [i0, i1]", "%peak: f32[2, 6, 7] = view %max [i0, i2]");
    assert!(!kinds(&lower(&graph(&text), &gpu(), &mut Decisions::default())).contains(&"attention"));
}

#[test]
fn keys_hidden_by_position_are_never_read() {
    let hide = |condition: &str, hidden: &str| {
        format!(
            "%query: i64[6, 7] = index [i0]
             %key: i64[6, 7] = index [i1]
             %c: bool[6, 7] = {condition}
             %cs: bool[2, 6, 7] = view %c [i1, i2]
             %inf: f32[2, 6, 7] = full -inf
             %x: f32[2, 6, 7] = select %cs, {hidden}"
        )
    };
    let reach = |condition: &str, hidden: &str| {
        let text = attention(&hide(condition, hidden), "%x", "%w", "");
        let program = becomes(&text, &["attention"]);
        only(&program).reach.as_ref().and_then(crate::symbolic::Expr::as_int)
    };
    assert_eq!(reach("ge %query, %key", "%product, %inf"), Some(0));
    assert_eq!(reach("gt %query, %key", "%product, %inf"), Some(-1));
    assert_eq!(reach("le %key, %query", "%product, %inf"), Some(0));
    assert_eq!(reach("gt %key, %query", "%inf, %product"), Some(0));
    assert_eq!(reach("ge %key, %query", "%inf, %product"), Some(-1));
    // Hiding what came before is a mask like any other.
    assert_eq!(reach("le %query, %key", "%product, %inf"), None);
}

#[test]
fn steps_of_other_shapes_are_followed_through_reshapes() {
    let text = "graph \"bmm\" {
      input %q \"q\": f32[2, 3, 6, 4]
      input %k \"k\": f32[2, 3, 7, 4]
      input %v \"v\": f32[2, 3, 7, 5]
      %qf: f32[6, 6, 4] = view %q [i0 // 3, i0 % 3, i1, i2]
      %kf: f32[6, 4, 7] = view %k [i0 // 3, i0 % 3, i2, i1]
      %p: f32[6, 6, 7] = matmul %qf, %kf
      %x: f32[2, 3, 6, 7] = view %p [3*i0 + i1, i2, i3]
      %max: f32[2, 3, 6] = max %x axes [3]
      %peak: f32[2, 3, 6, 7] = view %max [i0, i1, i2]
      %d: f32[2, 3, 6, 7] = sub %x, %peak
      %e: f32[2, 3, 6, 7] = exp %d
      %sum: f32[2, 3, 6] = sum %e axes [3]
      %total: f32[2, 3, 6, 7] = view %sum [i0, i1, i2]
      %w: f32[2, 3, 6, 7] = div %e, %total
      %wf: f32[6, 6, 7] = view %w [i0 // 3, i0 % 3, i1, i2]
      %vf: f32[6, 7, 5] = view %v [i0 // 3, i0 % 3, i1, i2]
      %y: f32[6, 6, 5] = matmul %wf, %vf
      output %y \"y\"
    }";
    becomes(text, &["attention"]);
}

#[test]
fn heads_that_are_laid_side_by_side_are_written_there() {
    let text = attention("", "%product", "%w", "output %turned \"turned\"")
        .replace("output %y", "%turned: f32[6, 10] = view %y [i1 // 5, i0, i1 % 5]\noutput %unused")
        .replace("output %unused \"y\"", "");
    becomes(&text, &["attention"]);
}
