//! One case for each rule of the verifier.

use super::verify;
use crate::graph::text::parse;
use crate::graph::{Graph, OriginId};
use cranelift_entity::EntityRef;

fn graph(body: &str) -> Graph {
    parse(&format!("graph {{ {body} }}")).expect("the text parses")
}

/// The only finding of a graph.
fn finding(graph: &Graph) -> String {
    let findings = verify(graph).expect_err("the graph is not well formed").0;
    assert_eq!(findings.len(), 1, "{findings:?}");
    findings[0].message.clone()
}

#[track_caller]
fn check(body: &str, expected: &str) {
    let message = finding(&graph(body));
    assert!(message.contains(expected), "{message}");
}

#[test]
fn a_constant_has_the_bytes_of_its_type() {
    let mut graph = graph("const c0: f32[2] = [1.0, 2.0]");
    let id = graph.constants.keys().next().expect("one");
    graph.constants[id].sizes = vec![3];
    assert_eq!(finding(&graph), "constant 0 has 8 bytes for f32[3]");
}

#[test]
fn a_symbol_has_a_range_and_a_source() {
    check(r#"symbol s0 "n" in 5..4 from data"#, "range of symbol s0 is empty");
    check(r#"symbol s0 "n" in 1..4 from input 0 axis 1 input %x: f32[2]"#, "source of symbol s0");
    check(r#"symbol s0 "n" in 1..4 from value 0 input %x: f32[1]"#, "source of symbol s0");
}

#[test]
fn a_guard_compares_sizes() {
    let bad = crate::graph::text::parse("graph { guard [1] add [2] }").expect_err("no relation");
    assert!(bad.to_string().contains("expected a relation"), "{bad}");
    check("guard [s0] le [2]", "s0, which does not exist");
}

#[test]
fn a_shape_mentions_known_sizes_only() {
    check("input %x: f32[s0]", "s0, which does not exist");
    check("input %x: f32[i0]", "mentions axis i0");
    check("input %x: f32[-2]", "is negative");
    let read = r#"symbol s0 "n" in 0..9 from data input %x: i64[]"#;
    check(&format!("{read} %y: f32[s0] = full 0.0 read %x s0"), "s0 before it is read");
    assert_eq!(verify(&graph(&format!("{read} read %x s0 %y: f32[s0] = full 0.0"))), Ok(()));
}

#[test]
fn a_value_is_defined_once_before_its_uses() {
    check("input %x: f32[] %1: f32[] = neg %2 %2: f32[] = neg %x", "used before it is defined");
    let mut graph = graph("input %x: f32[] %y: f32[] = neg %x");
    graph.nodes.push(graph.nodes[0].clone());
    assert_eq!(finding(&graph), "value %1 is defined twice");
}

#[test]
fn operands_have_the_stated_types() {
    let x = "input %x: f32[2, 3] input %i: i64[2, 3] input %b: bool[] input %h: f32[2]";
    let refused = [
        ("%y: f64[2, 3] = exp %x", "the result is f64"),
        ("%y: i64[2, 3] = exp %i", "not defined for i64"),
        ("%y: f32[2, 3] = bit_not %x", "not defined for f32"),
        ("%y: f32[2, 3] = isnan %x", "the result is f32, not bool"),
        ("%y: f32[2, 3] = add %x, %h", "the operands are"),
        ("%y: i64[2, 3] = div %i, %i", "not defined for i64"),
        ("%y: f32[2, 3] = bit_and %x, %x", "not defined for f32"),
        ("%y: f32[2, 3] = add %x", "1 operands and 1 results"),
        ("%y: f32[2, 3] = select %b, %x, %x", "the condition has another shape"),
        ("%y: f64[2] = cast %x", "the operand f32[2, 3]"),
        ("%y: f32[2, 3] = full true", ""),
        ("%y: f32[2] = index [i0]", "not i64"),
        ("%y: f32[2] = constant c0", "the constant is missing"),
        ("%y: f32[2] = sum %x axes [1, 0]", "axes [1, 0] of 2"),
        ("%y: f32[2] = sum %x axes [2]", "axes [2] of 2"),
        ("%y: f32[3] = sum %x axes [1]", "the result is f32[3]"),
        ("%y: f32[2] = argmax %x axes [1]", "not i64"),
        ("%y: f32[2] = any %x axes [1]", "not defined for f32"),
        ("%y: f32[2, 3] = cummax %x axis 1", "1 results"),
        ("%y: f32[2, 3], %z: i64[2] = sort %x axis 1", "the result is i64[2]"),
        ("%y: i64[2, 3] = searchsorted %h, %x", "ranks 1 and 2"),
        ("%y: f32[2, 2] = matmul %x, %x", "is not f32[2, 2]"),
        ("%y: f32[4, 4] = cat %x, %x axis 0", "does not fit result"),
        ("%y: f32[5, 3] = cat %x, %x axis 0", "the operands have 4"),
        ("%y: f32[2, 3] = gather %x, %i [$1, i1]", "index operand 1 of 1"),
        ("%y: f32[2, 3] = gather %x, %x [$0, i1]", "the indices are f32"),
        ("%y: f32[2, 3] = scatter %x, %i, %i set [$0, i1]", "updates are i64"),
        ("read %i s0", "not one integer"),
        ("assert %x \"m\"", "not one boolean"),
    ];
    for (node, expected) in refused {
        if expected.is_empty() {
            assert_eq!(verify(&graph(&format!("{x} {node}"))), Ok(()), "numbers are converted when parsed");
        } else {
            check(&format!("{x} {node}"), expected);
        }
    }
}

#[test]
fn a_convolution_has_the_stated_shape() {
    let x = "input %x: f32[1, 4, 8, 8] input %w: f32[6, 2, 3, 3]";
    let conv = |out: &str, groups: i64, strides: &str| {
        format!(
            "{x} %y: f32[{out}] = conv %x, %w stride {strides} padding [1:1, 0:0] dilation [1, 2] groups {groups}"
        )
    };
    assert_eq!(verify(&graph(&conv("1, 6, 4, 4", 2, "[2, 1]"))), Ok(()));
    check(&conv("1, 6, 4, 3", 2, "[2, 1]"), "axis 3 of the result is 3, not 4");
    check(&conv("1, 6, 4, 4", 1, "[2, 1]"), "do not give");
    check(&conv("1, 6, 4, 4", 2, "[2, 0]"), "must be positive");
    check(&conv("1, 6, 4, 4", 2, "[2]"), "1 entries each");
}

#[test]
fn a_coordinate_stays_in_its_space() {
    let x = "input %x: f32[4]";
    check(&format!("{x} %y: f32[2] = view %x [i1]"), "mentions axis i1 of 1");
    check(&format!("{x} %y: f32[2] = view %x [i0 + 4]"), "outside an axis of size 4");
    check(&format!("{x} %y: f32[2] = view %x [-i0 - 1]"), "outside an axis of size 4");
    check(&format!("{x} %y: f32[2] = view %x [i0, i0]"), "2 coordinates for 1 axes");
    assert_eq!(verify(&graph(&format!("{x} %y: f32[0] = view %x [i0 + 4]"))), Ok(()));
    assert_eq!(verify(&graph(&format!("{x} %y: f32[6] = pad %x [i0 - 9] fill 0.0"))), Ok(()));
}

#[test]
fn an_output_fits_its_role() {
    check(
        "const c0: f32[2] = splat 0 input %x: f32[2] state c0 input %y: f32[] output %y state 0",
        "does not fit state",
    );
    check("input %x: f32[2] output %x state 0", "does not fit state");
    check("input %x: f32[2] output %x mutation 7", "does not fit mutated");
    check("const c0: f32[3] = splat 0 input %x: f32[2] state c0", "no constant of its type");
    check("value %x: f32[2] output %x", "output 0 `output_0` is not defined");
}

#[test]
fn an_origin_exists() {
    let mut graph = graph("input %x: f32[] %y: f32[] = neg %x");
    graph.nodes[0].origin = OriginId::new(9);
    assert_eq!(finding(&graph), "%1 = neg: origin 9 does not exist");
}

#[test]
fn a_body_fits_its_node() {
    let cond = |then: &str| {
        format!(
            "input %p: bool[] input %x: f32[2]
             %y: f32[2] = cond %p, %x then graph \"t\" {{ {then} }} else graph \"f\" {{ input %x: f32[2] output %x }}"
        )
    };
    assert_eq!(verify(&graph(&cond("input %x: f32[2] output %x"))), Ok(()));
    check(&cond("input %x: f32[3] output %x"), "does not take the operands");
    check(&cond("input %x: f32[2]"), "does not give the results");
    check(&cond("input %x: f32[2] guard [1] le [2] output %x"), "guards or state of its own");
    check(&cond("input %x: f32[2] %y: f32[2] = exp %x, %x output %x"), "2 operands");
    let turn = |condition: &str| {
        format!(
            "input %x: f32[2] %y: f32[2] = while %x carried 1
             condition graph \"c\" {{ input %x: f32[2] {condition} }} body graph \"b\" {{ input %x: f32[2] output %x }}"
        )
    };
    check(&turn("output %x"), "the condition is not bool[]");
    assert_eq!(verify(&graph(&turn("%p: bool[] = full false output %p"))), Ok(()));
}

#[test]
fn all_breaches_are_reported_with_their_origin() {
    let text = r#"origin o0 = "" "" "" origin o1 = "aten.neg of neg" "m.py:1" ""
        input %x: f32[2] %y: f64[2] = neg %x @ o1 %z: f32[3] = neg %x @ o1"#;
    let findings = verify(&graph(text)).expect_err("two breaches").0;
    assert_eq!(findings.len(), 2);
    assert!(findings.iter().all(|finding| finding.origin.as_ref().is_some_and(|o| o.source == "m.py:1")));
}
