//! Custom operators, from the call in a program to the run that calls the function.

use super::decompose_with;
use crate::codegen;
use crate::diagnostic::Diagnostics;
use crate::frontend::torch::aten::text::parse;
use crate::frontend::torch::custom::{Operator, OperatorCode, Operators};
use crate::graph::{Graph, Op, ReduceOp};
use crate::interpret::{Tensor, evaluate};
use crate::lower::lower;
use crate::schedule::{self, Records, decide};
use crate::target::Target;
use crate::tuning::Questions;
use crate::{graph, loops};

fn function(schema: &str) -> Operator {
    let code = OperatorCode::Function("mylib_f".to_owned());
    Operator { name: "mylib::f".to_owned(), schema: schema.to_owned(), code, decides_sizes: false }
}

fn of_text(schema: &str, text: &str) -> Operator {
    Operator { code: OperatorCode::Graph(text.to_owned()), ..function(schema) }
}

fn decomposed(operator: Operator, statements: &str) -> Result<Graph, Diagnostics> {
    let program = parse(&format!("program {{ {statements} }}")).expect("the text parses");
    decompose_with(&program, &Operators::new(&[operator]).expect("it is declared well"))
}

#[track_caller]
fn refused(schema: &str, call: &str, words: &str) {
    let statements = format!(
        "symbol s0 \"n\" in 2..64 from input 0 axis 0 input %x: f32[s0, 4] input %y: f32[4]
         {call} @ \"f\" \"m.py:7 in forward: f(x)\" \"\" output %x"
    );
    let text = decomposed(function(schema), &statements).expect_err("it is refused").to_string();
    assert!(text.contains(words) && text.contains("m.py:7"), "{text}");
}

#[test]
fn calls_that_do_not_fit_their_schema_are_refused_with_the_line() {
    let one = "%r: f32[s0, 4] = mylib.f.default(x = %x, k = 2.0)";
    refused("(Tensor x) -> Tensor", one, "the program gives `k`, which the declared schema does not have");
    refused("(Tensor x, int k) -> Tensor", one, "`k` is a float, the declared schema has `int`");
    refused("(Tensor x, str k) -> Tensor", one, "`k` is a float, the declared schema has `str`");
    refused("(Tensor x, float[] k) -> Tensor", one, "the declared schema has `float[]`");
    refused(
        "(Tensor x, float k, bool b) -> Tensor",
        one,
        "gives no `b`, for which the declared schema has no default",
    );
    refused("(Tensor[] x, float k) -> Tensor", one, "`x` is a tensor, the declared schema has `Tensor[]`");
    refused("(Tensor x, float k) -> (Tensor, Tensor)", one, "1 results, the declared schema has 2");
    refused("(Tensor x, float k) -> Tensor[]", one, "results of other types");
    refused("(Tensor x, float k) -> ()", one, "1 results, the declared schema has 0");
    refused(
        "(Tensor x, Tensor k) -> Tensor",
        "%r: f32[s0, 4] = mylib.f.default(x = %x, k = none)",
        "`k` is None",
    );
    refused("(Tensor x) -> Tensor", "%r: complex f32[s0, 4] = mylib.f.default(x = %x)", "complex");
}

#[test]
fn a_function_does_not_decide_sizes() {
    let statements = "symbol s0 \"u0\" in 0..4 from data input %x: f32[4]
        %r: f32[s0] = mylib.f.default(x = %x) @ \"f\" \"m.py:7\" \"\" output %r";
    let text = decomposed(function("(Tensor x) -> Tensor"), statements).expect_err("refused").to_string();
    assert!(text.contains("the function would decide the size `u0` of its result"), "{text}");
    assert!(text.contains("`decides-sizes = true`") && text.contains("m.py:7"), "{text}");
}

fn deciding(schema: &str) -> Operator {
    Operator { decides_sizes: true, ..function(schema) }
}

#[test]
fn a_function_that_decides_sizes_has_memory_for_the_largest() {
    let statements = "symbol s0 \"u0\" in 0..9 from data symbol s1 \"n\" in 2..64 from input 0 axis 0
        input %x: f32[s1, 3]
        %r: f32[s0, s1], %k: i64[s0 * 2] = mylib.f.default(x = %x) @ \"f\" \"m.py:7\" \"\"
        output %r output %k";
    let operator = deciding("(Tensor x) -> (Tensor, Tensor)");
    let graph = decomposed(operator, statements).unwrap_or_else(|error| panic!("{error}"));
    let call = graph.nodes.iter().find(|node| matches!(node.op, Op::Extern(_))).expect("it is called");
    let shapes: Vec<String> = call.outputs.iter().map(|value| graph.ty(*value).to_string()).collect();
    assert_eq!(shapes, ["f32[9, s1]", "i64[2]", "i64[18]", "i64[1]"]);
    let outputs: Vec<String> =
        graph.outputs.iter().map(|output| graph.ty(output.value).to_string()).collect();
    assert_eq!(outputs, ["f32[s0, s1]", "i64[2*s0]"]);
    let target = Target::cpu(&["x86-64-v3"]);
    let lowered = lower(&crate::passes::optimize(graph), &target, &mut Questions::default());
    assert_eq!(loops::verify(&lowered), Vec::<String>::new());
}

#[test]
fn sizes_that_a_function_decides_have_a_bound() {
    let statements = "symbol s0 \"u0\" in 0..inf from data input %x: f32[4]
        %r: f32[s0] = mylib.f.default(x = %x) @ \"f\" \"m.py:7\" \"\" output %r";
    let text = decomposed(deciding("(Tensor x) -> Tensor"), statements).expect_err("refused").to_string();
    assert!(text.contains("`u0` of its result, which has no bound in the program"), "{text}");
    assert!(text.contains("m.py:7"), "{text}");
    // One that it asserts later is one.
    let statements = "symbol s0 \"u0\" in 0..inf from data symbol s1 \"n\" in 2..64 from input 0 axis 0
        input %x: f32[s1]
        %r: f32[s0, 3] = mylib.f.default(x = %x) @ \"f\" \"m.py:7\" \"\"
        truth le: [s0] le [s1 * 2] = _operator.le(a = {s0}, b = {s1 * 2})
        aten._assert_scalar.default(self = holds [s0] le [s1 * 2], assert_msg = \"no more than two each\")
        output %r";
    let graph =
        decomposed(deciding("(Tensor x) -> Tensor"), statements).unwrap_or_else(|error| panic!("{error}"));
    let call = graph.nodes.iter().find(|node| matches!(node.op, Op::Extern(_))).expect("it is called");
    assert_eq!(graph.ty(call.outputs[0]).to_string(), "f32[2*s1, 3]");
    let target = Target::cpu(&["x86-64-v3"]);
    let lowered = lower(&crate::passes::optimize(graph), &target, &mut Questions::default());
    assert_eq!(loops::verify(&lowered), Vec::<String>::new());
}

#[test]
fn operators_that_nobody_declares_are_told_how_to() {
    let statements =
        "input %x: f32[4] %r: f32[4] = mylib.g.default(x = %x) @ \"g\" \"m.py:7\" \"\" output %r";
    let text = decomposed(function("(Tensor x) -> Tensor"), statements).expect_err("refused").to_string();
    assert!(text.contains("operators.\"mylib::g\"") && text.contains("m.py:7"), "{text}");
}

/// A call with something of every type.
const EVERYTHING: &str = "symbol s0 \"n\" in 2..64 from input 0 axis 0
    input %x: f32[s0, 4] input %y: f32[4]
    %z: f32[s0, 4] = aten.mul.Tensor(self = %x, other = 2)
    [%a: f32[s0, 4], %b: f32[4]], %c: f64[] = mylib.f.default(xs = [%z, %y], sizes = [s0, 4], mode = \"a\\\"b\", n = 3, flags = bools [true, false]) @ \"f\" \"m.py:7 in forward: f(x)\" \"\"
    %r: f32[s0, 4] = aten.add.Tensor(self = %a, other = 1)
    output %r output %c";
const SCHEMA: &str = "f(Tensor[] xs, SymInt[] sizes, *, str mode='a', Tensor? bias=None, SymInt? n=None, int[]? more=None, \
                      bool[]? flags=None, float k=2, float[] ks=[1, 2.5], str? name=None) -> (Tensor[], Tensor)";

#[test]
fn every_type_of_argument_goes_through_all_text_forms() {
    let graph = decomposed(function(SCHEMA), EVERYTHING).unwrap_or_else(|error| panic!("{error}"));
    let text = graph::text::print(&graph);
    assert!(
        text.contains(
            "\"mylib::f\" \"aoti_operator_mylib_f_LIstjJCfFuMR\" (tensors 2, all int ([s0], [4]), text \"a\\\"b\", no_tensor, maybe int [3], \
             all int none, all bool (true, false), float 2.0, all float (1.0, 2.5), text none) to (list 2, one)"
        ),
        "{text}"
    );
    assert_eq!(graph::text::parse(&text).unwrap_or_else(|error| panic!("{error}")), graph);
    let target = Target::cpu(&["x86-64-v3"]);
    let lowered = lower(&graph, &target, &mut Questions::default());
    assert_eq!(loops::verify(&lowered), Vec::<String>::new());
    let text = loops::text::print(&lowered);
    assert_eq!(loops::text::parse(&text).unwrap_or_else(|error| panic!("{error}")), lowered);
    let scheduled = decide(lowered, &graph.ranges(), &target, &Records::none());
    assert_eq!(schedule::verify(&scheduled), Vec::<String>::new());
    let text = schedule::text::print(&scheduled);
    assert_eq!(schedule::text::print(&schedule::text::parse(&text).expect("it parses")), text);
    let plan = runplan::of_schedule(&scheduled, &graph.ranges());
    let text = runplan::text::print(&plan);
    assert_eq!(runplan::text::parse(&text).unwrap_or_else(|error| panic!("{error}")), plan);
    assert!(text.contains("\"operator `mylib::f` at m.py:7 in forward: f(x)\""), "{text}");
}

#[test]
fn what_a_function_changes_is_a_result_that_later_calls_read() {
    let statements = "symbol s0 \"n\" in 2..64 from input 0 axis 0
        input %x: f32[s0, 4] input %y: f32[4]
        %z: f32[s0, 4] = aten.mul.Tensor(self = %x, other = 2)
        %row: f32[4] = aten.select.int(self = %z, dim = 0, index = 1)
        %r: f32[] = mylib.f.default(into = %row, y = %y)
        output %z output %r";
    let operator = || function("(Tensor(a!) into, Tensor y) -> Tensor");
    let graph = decomposed(operator(), statements).unwrap_or_else(|error| panic!("{error}"));
    let text = graph::text::print(&graph);
    assert!(text.contains("\"aoti_operator_mylib_f_RTR\" (changed, tensor) to (one)"), "{text}");
    assert_eq!(graph::text::parse(&text).unwrap_or_else(|error| panic!("{error}")), graph);
    let call = graph.nodes.iter().find(|node| matches!(node.op, Op::Extern(_))).expect("it is called");
    let types: Vec<String> = call.outputs.iter().map(|value| graph.ty(*value).to_string()).collect();
    assert_eq!(types, ["f32[]", "f32[4]"]);
    // The rest of what the row is a part of follows from it.
    let changed = crate::passes::optimize(graph.clone());
    let z = changed.outputs[0].value;
    assert!(changed.nodes.iter().any(|node| node.outputs.contains(&z) && !matches!(node.op, Op::Extern(_))));
    let target = Target::cpu(&["x86-64-v3"]);
    let lowered = lower(&changed, &target, &mut Questions::default());
    assert_eq!(loops::verify(&lowered), Vec::<String>::new());
    let text = loops::text::print(&lowered);
    assert_eq!(loops::text::parse(&text).unwrap_or_else(|error| panic!("{error}")), lowered);
    // The kernel gives the function a copy, where it gives it the result.
    let scheduled = decide(lowered, &graph.ranges(), &target, &Records::none());
    let calls = |kernel: &loops::Kernel| matches!(kernel.kind, loops::KernelKind::Extern(_));
    let (id, _) = scheduled.program.kernels.iter().find(|(_, kernel)| calls(kernel)).expect("it is called");
    let body = codegen::cpp::print_kernel(&scheduled, id).body;
    let copied = body.lines().find(|line| line.starts_with("copy_bytes(")).expect("it is copied");
    let (to, rest) = copied.trim_start_matches("copy_bytes(").split_once(", ").expect("two buffers");
    assert!(rest.ends_with(", 4 * 4);") && !rest.starts_with(to), "{body}");
    assert!(body.contains(&format!("list1[] = {{tensor({to}, ")), "{body}");
    // A call of which only that is read stays, too.
    let statements = "input %x: f32[4] mylib.f.default(into = %x) output %x";
    let graph = decomposed(function("(Tensor(a!) into) -> ()"), statements).expect("it fits");
    assert!(crate::passes::optimize(graph).nodes.iter().any(|node| matches!(node.op, Op::Extern(_))));
}

#[test]
fn decomposed_programs_call_what_changes_copies() {
    let statements = "input %x: f32[4, 3] input %y: f32[2, 3]
        none, %r: f32[4, 3] = higher_order.auto_functionalized_v2(_operator = other \"mylib.f.default\", y = %y, _into_base_index = 0,
            _into_slice_dim = 0, _into_slice_start = 1, _into_slice_end = 3, _all_bases = [%x])
        output %x output %r";
    let graph = decomposed(function("(Tensor(a!) into, Tensor y) -> ()"), statements)
        .unwrap_or_else(|error| panic!("{error}"));
    let call = graph.nodes.iter().find(|node| matches!(node.op, Op::Extern(_))).expect("it is called");
    let types: Vec<String> = call.inputs.iter().map(|value| graph.ty(*value).to_string()).collect();
    assert_eq!(types, ["f32[2, 3]", "f32[2, 3]"]);
    // What it was given is as it was.
    assert_eq!(graph.outputs[0].value, graph.inputs[0].value);
    assert_ne!(graph.outputs[1].value, graph.inputs[0].value);
}

#[test]
fn the_reference_evaluator_says_that_it_calls_no_functions() {
    let graph = decomposed(function(SCHEMA), EVERYTHING).expect("it fits");
    let inputs = [Tensor::from_f32(&[2, 4], &[0.0; 8]), Tensor::from_f32(&[4], &[0.0; 4])];
    let error = evaluate(&graph, &inputs).expect_err("it has no code").to_string();
    assert!(error.contains("`mylib::f` is a function of the project"), "{error}");
}

#[test]
fn calls_without_results_stay_and_calls_without_readers_go() {
    let calls = |schema: &str, call: &str| {
        let statements = format!("input %x: f32[4] {call} output %x");
        let graph = decomposed(function(schema), &statements).expect("it fits");
        let graph = crate::passes::optimize(graph);
        graph.nodes.iter().filter(|node| matches!(node.op, Op::Extern(_))).count()
    };
    assert_eq!(calls("(Tensor x) -> ()", "mylib.f.default(x = %x) mylib.f.default(x = %x)"), 2);
    assert_eq!(calls("(Tensor x) -> Tensor", "%r: f32[4] = mylib.f.default(x = %x)"), 0);
    // Nor is one call as good as two.
    let twice = "input %x: f32[4] %a: f32[4] = mylib.f.default(x = %x) %b: f32[4] = mylib.f.default(x = %x) output %a output %b";
    let graph = decomposed(function("(Tensor x) -> Tensor"), twice).expect("it fits");
    assert_eq!(crate::passes::optimize(graph).nodes.len(), 2);
}

/// Rows of any number and length, scaled by their mean and a factor.
const BY_MEAN: &str = "graph {
    symbol s0 \"rows\" in 1..1024 from input 0 axis 0
    symbol s1 \"columns\" in 1..1024 from input 0 axis 1
    input %x \"x\": f32[s0, s1]
    input %k \"k\": f64[]
    %sum: f32[s0] = sum %x axes [1]
    %i: i64[] = index [s1]
    %n: f32[] = cast %i
    %ns: f32[s0] = view %n []
    %mean: f32[s0] = div %sum, %ns
    %f: f32[] = cast %k
    %fs: f32[s0] = view %f []
    %scale: f32[s0] = mul %mean, %fs
    %scales: f32[s0, s1] = view %scale [i0]
    %y: f32[s0, s1] = mul %x, %scales
    output %y }";

#[test]
fn a_graph_becomes_part_of_the_program() {
    let operator = of_text("(Tensor x, float k=2) -> Tensor", BY_MEAN);
    let statements = "symbol s0 \"n\" in 2..64 from input 0 axis 0 input %x: f32[s0, 4]
        %z: f32[s0, 4] = aten.add.Tensor(self = %x, other = 1)
        %r: f32[s0, 4] = mylib.f.default(x = %z) output %r";
    let graph = decomposed(operator, statements).unwrap_or_else(|error| panic!("{error}"));
    graph::verify(&graph).expect("it is well formed");
    assert!(graph.nodes.iter().any(|node| matches!(node.op, Op::Reduce { op: ReduceOp::Sum, .. })));
    let x = Tensor::from_f32(&[2, 4], &[0.0, 1.0, 2.0, 3.0, -1.0, -1.0, -1.0, -1.0]);
    let y = evaluate(&graph, &[x]).expect("it runs").remove(0);
    assert_eq!(y.to_f64(), [5.0, 10.0, 15.0, 20.0, 0.0, 0.0, 0.0, 0.0]);
}

#[test]
fn graphs_take_sizes_as_numbers_and_have_branches() {
    let text = "graph {
        symbol s0 \"n\" in 1..8 from input 0 axis 0
        symbol s1 \"k\" in 0..4 from value 1
        const c0: f32[] = [10.0]
        input %x \"x\": f32[s0] input %k \"k\": i64[] input %b \"b\": bool[]
        %w: f32[s0] = cond %b, %x then graph \"then\" { input %x: f32[s0] output %x \"w\" }
          else graph \"else\" { input %x: f32[s0] %n: f32[s0] = neg %x output %n \"w\" }
        %c: f32[] = constant c0
        %cs: f32[s0] = view %c []
        %p: i64[s0] = index [i0 + s1]
        %q: f32[s0] = cast %p
        %r: f32[s0] = mul %w, %cs
        %y: f32[s0] = add %r, %q
        output %y }";
    let operator = || of_text("(Tensor x, SymInt k, bool b=False) -> Tensor", text);
    let statements = |k: &str, symbols: &str| {
        format!("{symbols} input %x: f32[s0] %r: f32[s0] = mylib.f.default(x = %x, k = {k}) output %r")
    };
    let from_input = "symbol s0 \"n\" in 1..16 from input 0 axis 0";
    let graph =
        decomposed(operator(), &statements("{s0 - 1}", from_input)).unwrap_or_else(|error| panic!("{error}"));
    let run = |n: usize| evaluate(&graph, &[Tensor::from_f32(&[n], &vec![1.0; n])]);
    assert_eq!(run(2).expect("it runs").remove(0).to_f64(), [-9.0, -8.0]);
    assert!(run(8).expect_err("k is 7").to_string().contains("the bounds of `k`"));
    let text = decomposed(operator(), &statements("9", from_input)).expect_err("9 is too large").to_string();
    assert!(text.contains("`k` is 9, must be in 0..=4"), "{text}");
}

#[test]
fn operands_that_do_not_fit_a_graph_are_refused() {
    let text = |input: &str| {
        let operator = of_text("(Tensor x, float k=2) -> Tensor", BY_MEAN);
        let statements = format!(
            "input %x: {input} %r: {input} = mylib.f.default(x = %x) @ \"f\" \"m.py:7\" \"\" output %r"
        );
        decomposed(operator, &statements).expect_err("it does not fit").to_string()
    };
    assert!(
        text("f64[2, 4]").contains("input `x` is f64[2, 4], must be f32[s0, s1]"),
        "{}",
        text("f64[2, 4]")
    );
    assert!(text("f32[4]").contains("input `x` is f32[4]"), "{}", text("f32[4]"));
    let other =
        "input %x: f32[2, 4] %r: f32[4, 4] = mylib.f.default(x = %x) @ \"f\" \"m.py:7\" \"\" output %r";
    let operator = of_text("(Tensor x, float k=2) -> Tensor", BY_MEAN);
    let text = decomposed(operator, other).expect_err("the result differs").to_string();
    assert!(text.contains("the result `r` would be f32"), "{text}");
}

#[test]
fn numbers_of_tensors_that_nobody_has_are_no_graph() {
    let most = usize::MAX;
    let text = format!(
        "graph {{ input %x: f32[2] %y: f32[2] = extern %x \"a::f\" \"f\" (tensors {most}, tensor) to (list {most}, one) output %y }}"
    );
    let graph = graph::text::parse(&text).expect("it parses");
    assert!(
        graph::verify(&graph).expect_err("it is refused").to_string().contains("do not fit its arguments")
    );
}

#[test]
fn text_of_a_model_calls_no_functions() {
    let model =
        b"graph { input %x: f32[2] %y: f32[2] = extern %x \"a::f\" \"system\" (tensor) to (one) output %y }";
    let text =
        crate::frontend::read("m", bytes::Bytes::from_static(model), &[]).expect_err("refused").to_string();
    assert!(text.contains("calls the function `system`, which text cannot do"), "{text}");
}
