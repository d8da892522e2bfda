//! The text form goes in and out unchanged, and bad text is named with its line.

use super::{parse, print, print_short};
use crate::frontend::torch::aten::verify;
use crate::text::altered;
use proptest::prelude::*;

const EVERYTHING: &str = r#"program "every \"thing\"" {
  symbol s0 "batch" in 1..4096 from input 1 axis 0
  guard [2*s0] le [4096]
  const "fc.weight": f32[2, 3] = [1.0, 2.0, -0.5, inf, 0.0, 1e-7]
  const "running" named "other": i64[20] = splat 7
  tensor %dead: bool[]
  let unused = [s0 + 1]
  input %p_fc_weight: f32[2, 3] constant "fc.weight"
  input %b_running: i64[20] constant "running"
  input %x: f32[s0, 3]
  input %n int [s0]
  input %flag fixed
  int sym_size: [s0] = aten.sym_size.int(self = %x, dim = 0) @ "sym_size" "m.py:3 in forward: x.size(0)" "l.0"
  truth ge = _operator.ge({s0}, 0)
  number float = torch.sym_float({2*s0})
  %linear: f32[s0, 2] = aten.linear.default(input = %x, weight = %p_fc_weight, bias = none)
  %z: complex f32[s0, 2] = aten.mul.Tensor(self = %linear, other = complex [0.0, -1.5])
  %t: f32[2, s0] strides [1, 2] = aten.t.default(self = %linear)
  %s: f32[1, s0] strides [1, 2] offset [1] = aten.select.int(self = %t, dim = 0, index = -1)
  [%a: f32[s0, 1] strides [2, 1], %""] = aten.split.Tensor(self = %linear, split_size = 1, dim = 1)
  %"odd name", none = "custom::op"(%a, [%a, none], tensors [], [], [1, s0, 2*s0], 1.5, -inf, floats [1.0, nan], bools [true], false, f16, "te\nxt", other "cpu", truth ge, "a b" = 1)
  aten._assert_async.msg(self = %x, assert_msg = "no")
  %y: f32[s0, 3] = higher_order.cond(truth ge, program "then" {
    input %x: f32[s0, 3]
    %r: f32[s0, 3] = aten.relu.default(self = %x)
    output %r
  }, program "else" {
    input %x: f32[s0, 3]
    output %x
  }, [%x])
  output %y named "logits"
  output 7
  output none
  output %x overwrites input "x"
  output %b_running overwrites buffer "running"
}
"#;

#[test]
fn printing_gives_the_text_back() {
    let program = parse(EVERYTHING).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(print(&program), EVERYTHING);
    // NaN is not equal to itself, so the programs are compared without it.
    let text = EVERYTHING.replace(", nan]", "]");
    let program = parse(&text).expect("it parses");
    assert_eq!(parse(&print(&program)).expect("it parses again"), program);
    assert_eq!(program.calls.len(), 11);
    assert_eq!(program.tensors.len(), 10);
}

#[test]
fn short_form_leaves_data_out() {
    let program = parse("program { const \"w\": f32[400] = random 3 }").expect("it parses");
    assert!(print_short(&program).contains("const \"w\": f32[400] = ...\n"));
}

fn message(text: &str) -> String {
    parse(text).expect_err("it does not parse").0[0].message.clone()
}

#[test]
fn faults_are_located() {
    assert_eq!(message("program {\n  output\n}"), "line 3, column 1: expected a word");
    assert_eq!(message("program { %x: f33[2] = f() }"), "line 1, column 15: expected an element type");
    assert!(message("program { f(a = b) }").ends_with("column 17: expected an argument"));
    assert!(message("program { input %x: f32[] input %x: f32[] }").contains("described twice"));
    assert!(message(&"program { f(".repeat(1000)).contains("nested too deeply"));
}

#[track_caller]
fn finds(body: &str, expected: &str) {
    let program = parse(&format!("program {{ {body} }}")).unwrap_or_else(|error| panic!("{error}"));
    let findings = verify(&program).expect_err("it is malformed").to_string();
    assert!(findings.contains(expected), "{findings}");
}

#[test]
fn each_rule_is_checked() {
    assert!(
        verify(&parse(&EVERYTHING.replace("(truth ge, program", "(%flag, program")).expect("it parses"))
            .is_ok()
    );
    finds("input %x: f32[s0]", "tensor `x` mentions s0, which does not exist");
    finds("%y = f({s3})", "an argument mentions s3");
    finds("input %x: f32[] %x = f()", "`x` is defined twice");
    finds("%y = f(%x)", "`x` is used before it is defined");
    finds("output %x", "`x` is used before it is defined");
    finds("input %x", "nothing is said of input `x`");
    finds("int n = f()", "the value of the integer `n` is not known");
    finds("input %w constant \"w\"", "constant `w` of input `w` does not exist");
    finds("const \"w\": f32[2] = splat 0 input %w: f32[3] constant \"w\"", "not of the type of input `w`");
    finds("f(a = 1, a = 2)", "argument `a` of `f` is given twice");
    finds("output 1 overwrites buffer \"w\"", "overwrites what does not exist");
    finds("output 1 overwrites input \"x\"", "overwrites what does not exist");
    finds("f(program { symbol s0 in 1..2 from data })", "has symbols or constants of its own");
    finds("f(program { output %x })", "`x` is used before it is defined");
    finds("higher_order.cond(true, program \"b\" { }, [1, 2])", "body `b` takes 0 values, 2 are given");
}

proptest! {
    /// Letters and pieces put anywhere: an error or a program, never a panic; what parses is printed stably.
    #[test]
    fn altered_text_never_panics(edits in altered::edits("[%\"{}()\\[\\],:=@ \n0s.x-]{1,3}")) {
        let text = altered::altered(EVERYTHING, edits);
        if let Ok(program) = parse(&text) {
            let _ = verify(&program);
            let printed = print(&program);
            prop_assert_eq!(print(&parse(&printed).expect("what is printed parses")), printed);
        }
    }
}
