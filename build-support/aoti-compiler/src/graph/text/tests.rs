//! The text form goes in and out unchanged, and bad text is named with its line.

use super::{parse, print, print_short};

const SAMPLE: &str = r#"graph "every \"op\"" {
  symbol s0 "batch" in 1..4096 from input 0 axis 0
  symbol s1 "" in 0..inf from data most [2*s0]
  symbol s2 "n" in -inf..8 from value 2
  guard [2*s0] le [4096]
  guard ([s0 % 2] eq [0] or ([s0] gt [4] and fits [3*s0])) "as the \"program\" says"
  origin o0 = "" "" ""
  origin o1 = "aten.add of add_1" "m.py:3 in forward: return \"x\"" "l.0"
  const c0 "w": f32[2, 3] = [1.0, 2.0, -0.5, inf, nan, 1e-7]
  const c1: i64[20] = splat 7
  const c2: u8[17] = hex "000102030405060708090a0b0c0d0e0f10"
  input %0 "x": f32[s0, 2]
  input %1 "cache": f32[2, 3] state c0
  input %2 "n": i64[] value "count"
  value %3 "dead": bool[]
  %4 "w": f32[2, 3] = constant c0 @ o1
  %5: f32[s0, 3] = matmul %0, %4
  %6: f32[s0, 3] = relu6 %5
}
"#;

const EVERY_OPERATOR: &str = r#"graph "ops" {
  symbol s0 "n" in 0..inf from data
  const c0: f32[2] = [nan, -0.0]
  input %0 "a": f32[4, 4]
  input %1 "i": i64[4, 4]
  input %2 "p": bool[]
  %3: f32[2] = constant c0
  %4: f32[] = full nan
  %5: i64[4] = index [2*i0 + s0 // 3]
  %6: f32[4, 4] = exp %0
  %7: f32[4, 4] = add %0, %6
  %8: f32[4, 4] = select %2, %0, %7
  %9: f16[4, 4] = cast %0
  %10: f32[4, 4] = view %0 [i1, i0]
  %11: f32[6, 4] = pad %0 [i0 - 1, i1] fill -inf
  %12: f32[4, 4] = gather %0, %1 [$0, i1]
  %13: f32[4, 4] = scatter %0, %7, %1 add [wrap $0, i1]
  %14: f32[8, 4] = cat %0, %7 axis 0
  %15: f32[4] = sum %0 axes [1]
  %16: f32[4, 4], %17: i64[4, 4] = cummax %0 axis 1
  %18: f32[4, 4], %19: i64[4, 4] = sort %0 axis 1 descending
  %20: i64[4, 4] = searchsorted %18, %0 right
  %21: f32[1, 2, 3, 3] = conv %0, %0 stride [1, 2] padding [1:1, 0:-1] dilation [1, 1] groups 2 transposed output_padding [0, 1]
  read %5 s0
  assert %2 "must \n hold"
  require [s0] le [4] "a size"
  require false
  %22: f32[4, 4] = cond %2, %0 then graph "t" {
    input %0 "a": f32[4, 4]
    output %0 "a"
  } else graph "f" {
    input %0 "a": f32[4, 4]
    %1: f32[4, 4] = neg %0
    output %1 "b"
  }
  %23: f32[4, 4] = while %0, %2 carried 1 condition graph "c" {
    input %0 "a": f32[4, 4]
    input %1 "p": bool[]
    output %1 "p"
  } body graph "b" {
    input %0 "a": f32[4, 4]
    input %1 "p": bool[]
    output %0 "a"
  }
  output %22 "y" mutation 0
}
"#;

fn round_trip(text: &str) -> String {
    let graph = parse(text).expect("parses");
    let printed = print(&graph);
    assert_eq!(parse(&printed).expect("parses again"), graph, "{printed}");
    printed
}

fn message(text: &str) -> String {
    parse(text).expect_err("does not parse").0[0].message.clone()
}

#[test]
fn printing_gives_the_text_back() {
    let text =
        SAMPLE.replace("  %6: f32[s0, 3] = relu6 %5\n", "  output %5 \"y\"\n  output %1 \"c\" state 1\n");
    assert_eq!(round_trip(&text), text);
}

#[test]
fn every_operator_survives() {
    assert_eq!(round_trip(EVERY_OPERATOR), EVERY_OPERATOR);
}

#[test]
fn words_name_values() {
    let graph = parse("graph { input %x: f32[2] %y: f32[2] = exp %x output %y }").expect("parses");
    assert_eq!(graph.inputs[0].name, "x");
    assert_eq!(graph.values[graph.outputs[0].value].name, "y");
    assert_eq!(graph.outputs[0].name, "output_0");
    round_trip(&print(&graph));
}

#[test]
fn random_data_are_the_same_everywhere() {
    let graph = parse("graph { const c0: i64[6] = random 1 const c1: f32[2] = random 1 }").expect("parses");
    let data = &graph.constants.values().next().expect("a constant").data;
    assert_eq!(data.len(), 48);
    assert!(data.chunks(8).all(|element| element[0] < 10 && element[1..].iter().all(|byte| *byte == 0)));
    round_trip(&print(&graph));
}

#[test]
fn short_form_leaves_data_out() {
    let graph = parse("graph { const c0: f32[400] = random 3 }").expect("parses");
    assert!(print_short(&graph).contains("const c0: f32[400] = ...\n"));
}

#[test]
fn faults_are_located() {
    assert_eq!(message(SAMPLE), "line 18, column 20: `relu6` is not an operator");
    assert_eq!(message("graph {\n  output %7\n}"), "line 2, column 10: `%7` is not defined");
    assert_eq!(
        message("graph { input %x: f32[2] input %x: f32[2] }"),
        "line 1, column 32: the value is defined twice"
    );
    assert_eq!(message("graph { input %x: f33[2] }"), "line 1, column 19: expected an element type");
    assert_eq!(
        message("graph { const c1: f32[2] = [1] }"),
        "line 1, column 15: expected `c0`: definitions are numbered in order"
    );
    assert_eq!(
        message("graph { const c0: f32[2] = [1] }"),
        "line 1, column 28: 4 bytes of data, the type needs 8"
    );
    assert_eq!(message("graph {"), "line 1, column 8: expected a word");
    assert_eq!(message("graph \"a\nb\" {}"), "line 1, column 7: the string does not end on its line");
}

#[test]
fn hostile_text_is_refused() {
    assert!(message("graph { const c0: f32[99999999999] = splat 1 }").contains("too large"));
    assert!(
        message("graph { const c0: f32[4294967296, 4294967296, 4294967296] = splat 1 }")
            .contains("too large")
    );
    assert!(message("graph { const c0: f32[-1] = splat 1 }").contains("negative"));
    let nested = "graph { %a: f32[] = cond %p then ".repeat(1000);
    assert!(message(&nested).contains("nested too deeply"));
    let product = vec!["(s0 + i0 + s1 + s2 + s3)"; 100].join("*");
    assert!(parse(&format!("graph {{ input %x: f32[{product}] }}")).is_err());
    let parens = "(".repeat(3000);
    assert!(parse(&format!("graph {{ input %x: f32[{parens}] }}")).is_err());
}

#[test]
fn truncated_text_never_panics() {
    for text in [SAMPLE, "graph { const c0: f32[2] = hex \"00\\u{12}\" }"] {
        for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
            let _ = parse(&text[..end]);
        }
    }
}

#[test]
fn altered_text_never_panics() {
    let sources = [SAMPLE.as_bytes(), EVERY_OPERATOR.as_bytes()];
    let letters = b"%$#\"[]{}(),:=@-*/ \n09sico\\.x";
    let mut state = 1u64;
    let mut next = |bound: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % bound
    };
    let mut parsed = 0;
    for round in 0..4000 {
        let mut bytes = sources[round % 2].to_vec();
        for _ in 0..=next(3) {
            let at = next(bytes.len());
            match next(4) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, letters[next(letters.len())]),
                2 => bytes[at] = letters[next(letters.len())],
                _ => {
                    // Words from elsewhere: numbers where others were, axes, operators.
                    let (from, length) = (next(bytes.len()), next(8));
                    let piece = bytes[from..(from + length).min(bytes.len())].to_vec();
                    bytes.splice(at..at, piece);
                }
            }
        }
        let text = String::from_utf8(bytes).expect("only ASCII is put in");
        if let Ok(graph) = parse(&text) {
            let _ = crate::graph::verify(&graph);
            parsed += 1;
        }
    }
    assert!(parsed > 100, "some alterations still parse, so that the verifier is reached: {parsed}");
}
