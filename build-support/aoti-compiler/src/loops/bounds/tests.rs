//! What is shown, what gets a check, and what is refused, on programs in the text form.

use super::facts::Facts;
use super::{enforce, verify};
use crate::interpret::{Tensor, evaluate_schedule};
use crate::loops::text::{parse, print};
use crate::loops::{Program, Step};
use crate::schedule::{Records, decide};
use crate::symbolic::{Expr, Interval, RangeTable, Symbol};
use crate::target::Target;

/// A copy between two buffers with symbols for sizes.
fn program(symbols: &str, from: &str, to: &str, kernel: &str) -> Program {
    let text = format!(
        "loops {{ {symbols} buffer b0: {from} input 0 buffer b1: {to} output 0 buffer b2: i64[4] input 1 inputs [b0, b2] outputs [b1]
         kernel \"copy\" {{ {kernel} }} }}"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

const SIZES: &str = "symbol s0 \"rows\" in 0..1000 from input 0 axis 0 symbol s1 \"k\" in 0..1000 from data";

#[track_caller]
fn proven(symbols: &str, from: &str, to: &str, kernel: &str) {
    assert_eq!(verify(&program(symbols, from, to, kernel)), Vec::<String>::new());
}

#[track_caller]
fn unproven(symbols: &str, from: &str, to: &str, kernel: &str) -> Program {
    let mut program = program(symbols, from, to, kernel);
    assert_ne!(verify(&program), Vec::<String>::new());
    enforce(&mut program).expect("a check can be placed");
    assert_eq!(crate::loops::verify(&program), Vec::<String>::new(), "{}", print(&program));
    program
}

#[test]
fn loops_over_the_buffer_need_no_check() {
    proven(
        SIZES,
        "f32[s0, 4]",
        "f32[s0, 4]",
        "for [i0 < s0, i1 < 4] { stage [] { t0: f32 = load b0[i0, i1] store b1[i0, i1] = t0 } }",
    );
    let reversed = "for [i0 < s0] { stage [] { t0: f32 = load b0[s0 - i0 - 1] store b1[i0] = t0 } }";
    proven(SIZES, "f32[s0]", "f32[s0]", reversed);
}

#[test]
fn guards_of_a_load_are_believed() {
    let padded = "for [i0 < s0 + 2] { stage [] { t0: f32 = load b0[i0 - 1] if [i0 - 1 < s0] else 0.0 store b1[i0] = t0 } }";
    proven(SIZES, "f32[s0]", "f32[s0 + 2]", padded);
    let windows = "for [i0 < s0, i1 < 3] { stage [] { t0: f32 = load b0[2*i0 + i1 - 1] if [2*i0 + i1 - 1 < s0] else 0.0 store b1[i0, i1] = t0 } }";
    proven(SIZES, "f32[s0]", "f32[s0, 3]", windows);
}

#[test]
fn rows_whose_length_is_a_product_lie_within_their_buffer() {
    // Multiplied out, the length has no sign that ranges tell; where there is an element, it is positive.
    let length = "(10 - s0)*(12 - s0)*(13 - s0)";
    let flat = format!(
        "for [i0 < 8, i1 < {length}] {{ stage [] {{ t0: f32 = load b0[i0*{length} + i1] store b1[i0, i1] = t0 }} }}"
    );
    proven(SIZES, &format!("f32[8*{length}]"), &format!("f32[8, {length}]"), &flat);
    unproven(SIZES, &format!("f32[7*{length}]"), &format!("f32[8, {length}]"), &flat);
}

#[test]
fn nothing_is_read_of_an_axis_without_elements() {
    let padded = "for [i0 < 1, i1 < 2] { stage [] { t0: f32 = load b0[i0 + 1, i1] if [i0 + 1 < 0] else 0.0 store b1[i0, i1] = t0 } }";
    proven(SIZES, "f32[0, 2]", "f32[1, 2]", padded);
}

#[test]
fn nothing_is_read_where_a_guard_never_holds() {
    let read = |guard: &str| {
        format!(
            "for [i0 < s0, i1 < 5] {{ stage [] {{ t0: f32 = load b0[5*i0 + i1 + 1] if [{guard}] else 0.0 store b1[i0, i1] = t0 }} }}"
        )
    };
    for never in ["1 < 1", "i1 + 5 < 5", "-i1 - 1 < s0"] {
        proven(SIZES, "f32[5*s0]", "f32[s0, 5]", &read(never));
    }
    unproven(SIZES, "f32[5*s0]", "f32[s0, 5]", &read("0 < 1"));
}

#[test]
fn a_length_read_from_data_is_compared_with_the_buffer() {
    // Two rows, and as many written as the data say: a heap overflow without the check.
    let copy = "for [i0 < s1, i1 < 4] { stage [] { t0: f32 = load b0[i0, i1] store b1[i0, i1] = t0 } }";
    let program = unproven(SIZES, "f32[2, 4]", "f32[s1, 4]", copy);
    assert!(matches!(program.steps.as_slice(), [Step::Kernel(_), Step::Assert(..), Step::Kernel(_)]));
    assert!(
        print(&program).contains("index [-s1 + 2]") || print(&program).contains("max("),
        "{}",
        print(&program)
    );
}

#[test]
fn sizes_of_inputs_are_compared_before_the_run() {
    let symbols =
        "symbol s0 \"rows\" in 0..1000 from input 0 axis 0 symbol s1 \"n\" in -inf..inf from value 1";
    let copy = "for [i0 < 4] { stage [] { t0: f32 = load b0[s1 + i0] store b1[i0] = t0 } }";
    let program = unproven(symbols, "f32[s0]", "f32[4]", copy);
    assert_eq!(program.guards.len(), 2, "{}", print(&program));
    assert_eq!(verify(&program), Vec::<String>::new());
}

#[test]
fn an_index_into_what_may_be_empty_needs_an_element_to_fall_back_to() {
    let gather = "for [i0 < 4] { stage [] { t0: i64 = load b2[i0] t1: i64 = check t0 below [s0] site 0 t2: f32 = load b0[t1] store b1[i0] = t2 } }";
    let sites = format!("{SIZES} site \"m\"");
    let program = unproven(&sites, "f32[s0]", "f32[4]", gather);
    assert_eq!(verify(&program), Vec::<String>::new());
}

#[test]
fn a_run_that_looks_up_an_index_where_there_is_nothing_fails() {
    let lookup = "for [i0 < 4] { stage [] { t0: i64 = load b2[i0] t1: i64 = check t0 below [0] site 0 t2: f32 = load b0[t1] store b1[i0] = t2 } }";
    let program = unproven("site \"lookup\"", "f32[0]", "f32[4]", lookup);
    assert_eq!(program.guards.len(), 1);
    assert_eq!(program.guards[0].message, "an index is looked up along an axis without elements in `copy`");
}

#[test]
fn what_has_no_simple_bound_is_checked_at_each_position() {
    let symbols =
        "symbol s0 \"rows\" in 0..1000 from input 0 axis 0 symbol s1 \"n\" in 1..1000 from input 0 axis 1";
    let odd = "for [i0 < s0] { stage [] { t0: f32 = load b0[(i0*i0) // s1, 0] store b1[i0] = t0 } }";
    let program = unproven(symbols, "f32[s0, s1]", "f32[s0]", odd);
    assert!(print(&program).contains("check t"), "{}", print(&program));
}

#[test]
fn a_condition_of_a_loop_that_may_have_no_position_is_known_where_it_has_one() {
    // The condition is `max(8 - 2*s0, -s0) >= 0`; where there is something to copy, the second is negative.
    let kernel = "for [i0 < s0] { stage [] { t0: f32 = load b0[s0 + i0] store b1[i0] = t0 } }";
    let program = unproven(SIZES, "f32[8]", "f32[s0]", kernel);
    assert_eq!(program.guards.len(), 1, "{}", print(&program));
}

#[test]
fn no_factor_of_an_extent_is_zero_where_the_loop_has_a_position() {
    let apart = "for [i0 < s0*s1] { stage [] { t0: f32 = load b0[i0 // s1, i0 % s1] store b1[i0] = t0 } }";
    proven(SIZES, "f32[s0, s1]", "f32[s0*s1]", apart);
    // Of a sum either part may be.
    let sum = "for [i0 < s0 + s1] { stage [] { t0: f32 = load b0[0] store b1[i0] = t0 } }";
    unproven(SIZES, "f32[s0]", "f32[s0 + s1]", sum);
}

#[test]
fn an_index_that_guards_keep_from_an_empty_axis_needs_an_element_only_where_they_hold() {
    let gather = "for [i0 < s0 + 4] { stage [] { t0: i64 = load b2[0] t1: i64 = check t0 below [s1] site 0 t2: f32 = load b0[t1] if [i0 < s0] else 0.0 store b1[i0] = t2 } }";
    let sizes = "symbol s0 \"n\" in 0..1000 from input 0 axis 0 symbol s1 \"m\" in 0..1000 from input 1 axis 0 site \"m\"";
    let program = unproven(sizes, "f32[s1]", "f32[s0 + 4]", gather);
    assert_eq!(program.guards.len(), 1, "{}", print(&program));
    assert!(print(&program).contains("max(s1 - 1, -s0)"), "{}", print(&program));
}

#[test]
fn an_operand_without_a_simple_bound_is_copied_with_checks() {
    let product = "loops { symbol s0 \"rows\" in 0..1000 from input 0 axis 0 symbol s1 \"n\" in 1..1000 from input 0 axis 1
         buffer b0: f32[s0, s1] input 0 buffer b1: f32[s0, 3, 4] output 0 buffer b2: f32[2, 4] input 1
         inputs [b0, b2] graph_inputs [b0, b2] outputs [b1]
         kernel \"bmm\" { matmul f32 b0 [(i0*i0) // s1, 2, 1], b2 [0, 4, 1] over [i0 < s0, i1 < 3, i2 < 4] depth [2] { t0: f32 = total store b1[i0, i1, i2] = t0 } } }";
    let mut program = parse(product).unwrap_or_else(|error| panic!("{error}"));
    assert_ne!(verify(&program), Vec::<String>::new());
    enforce(&mut program).expect("a check can be placed");
    let text = print(&program);
    assert_eq!(verify(&program), Vec::<String>::new(), "{text}");
    assert_eq!(crate::loops::verify(&program), Vec::<String>::new(), "{text}");
    assert!(matches!(program.steps.as_slice(), [Step::Kernel(_), Step::Kernel(_)]), "{text}");
    assert!(text.contains("[s0, 3, 2] temporary"), "{text}");
    assert!(text.contains("matmul f32 b3 [6*i0, 2, 1], b2 "), "{text}");
    let target = Target::cpu(&["x86-64-v3"]);
    let ranges = super::Prover::new(&program).ranges;
    let schedule = decide(program, &ranges, &target, &Records::none());
    let columns = Tensor::from_f32(&[2, 4], &[1.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
    let numbers: Vec<f32> = (0u8..12).map(f32::from).collect();
    let enough = [Tensor::from_f32(&[3, 4], &numbers), columns.clone()];
    let out = evaluate_schedule(&schedule, &enough).expect("all is inside").outputs.remove(0).to_f64();
    let expected = [0.0, 2.0, 4.0, 0.0, 2.0, 4.0, 1.0, 3.0, 5.0].map(|first| [first, first + 1.0, 0.0, 0.0]);
    assert_eq!(out, expected.concat());
    let less = [Tensor::from_f32(&[3, 1], &numbers[..3]), columns];
    let error = evaluate_schedule(&schedule, &less).expect_err("it reads behind the end").to_string();
    assert!(error.contains("kernel `copy`: index 4 is out of range"), "{error}");
}

#[test]
fn a_quotient_and_its_remainder_are_axes_of_their_own() {
    let sizes =
        "symbol s0 \"a\" in 0..1000 from input 0 axis 0 symbol s1 \"b\" in 0..1000 from input 0 axis 1";
    let read = |offset: &str| {
        format!(
            "for [i0 < 4*s0, i1 < 5, i2 < s1] {{ stage [] {{ t0: f32 = load b0[{offset}] store b1[i0, i1, i2] = t0 }} }}"
        )
    };
    let (from, to) = ("f32[20*s0*s1]", "f32[4*s0, 5, s1]");
    proven(sizes, from, to, &read("5*s0*s1*(i0 // s0) + s1*i1 + 5*s1*(i0 % s0) + i2"));
    unproven(sizes, from, to, &read("5*s0*s1*(i0 // s0) + s1*i1 + 5*s1*(i0 % s0) + i2 + 1"));
    // Three digits, in the order of the lowest first.
    let read = |offset: &str| {
        format!("for [i0 < 4*s0*s1] {{ stage [] {{ t0: f32 = load b0[{offset}] store b1[i0] = t0 }} }}")
    };
    let (from, to) = ("f32[4*s0*s1]", "f32[4*s0*s1]");
    let digits = "4*(i0 // s1 % s0) + 4*s0*(i0 % s1) + i0 // (s0*s1)";
    proven(sizes, from, to, &read(digits));
    unproven(sizes, from, to, &read(&format!("{digits} + 1")));
}

#[test]
fn a_multiple_of_what_is_stated_tells_where_an_axis_is_lowest() {
    let symbol = Symbol::size(0);
    let (rows, mut ranges) = (Expr::axis(0), RangeTable::default());
    ranges.set(symbol, Interval::new(0, 3));
    ranges.set_extent(Symbol::axis(0), Expr::int(5));
    let side = Expr::int(8) - &Expr::sym(symbol) * 2;
    let area = &side * &side;
    let mut facts = Facts::default();
    facts.assume(area.clone());
    assert!(facts.prove(&(&area * &(&rows * 9)), &ranges));
    assert!(!facts.prove(&(&(&area * &rows) - 1), &ranges));
}
