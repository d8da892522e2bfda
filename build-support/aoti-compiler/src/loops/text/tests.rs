//! The text form goes in and out unchanged, and bad text is named with its line. That programs made by lowering and
//! scheduling come back is seen where those are tested.

use super::{parse, print, print_short};
use crate::loops::verify;
use crate::text::altered;
use proptest::prelude::*;

const EVERYTHING: &str = r#"loops "every \"thing\"" {
  symbol s0 "batch" in 1..4096 from input 0 axis 0
  guard [2*s0] le [4096] "said"
  const c0 "w": f32[2, 3] = [1.0, 2.0, -0.5, inf, 0.0, 1e-7]
  buffer b0 "x": f32[s0, 3] input 0
  buffer b1 "y": f32[s0] output 0
  buffer b2: i64[] temporary
  buffer b3: f32[2, 3] constant c0
  buffer b4 "cache": f32[2, 3] state 0
  buffer b5: f32[s0, 3] row 1
  buffer b6: bool[] temporary
  inputs [b0]
  graph_inputs [b0, b4]
  outputs [b1]
  state b4 c0
  site "aten.index.Tensor of index_1 at m.py:3"
  kernel "y" {
    note "aten.sum of sum_1" at "m.py:3" in "layers.0"
    note "aten.add of add"
    for [i0 < s0] serial {
      accumulator acc0: sum f32 in stage 0
      accumulator acc1: argmax f32 in stage 0 at [i1]
      stage [i1 < 3] {
        t0: f32 = load b0[i0, i1]
        t1: i64 = index [2*i0 + i1]
        t2: i64 = check t1 below [s0] site 0
        t3: f32 = load b0[t2, i1] if [i0 - 1 < s0, i1 < 2] else -inf
        t4: f32 = load b0[t2, i1] at [3*i0] by [t2: 6] else 1.0
        t5: bool = inside [i1 - 1 < 3]
        t6: f32 = select t5, t3, t4
        t7: f32 = exp t6
        t8: f32 = add t7, t0
        t9: f16 = cast t8
        t10: f32 = -1.5
        t11: f32 = load b0[] at [i0]
        store b5[i0, i1] = t8
        accumulate acc0 t8
        accumulate acc1 t0
      }
      stage [] {
        t0: f32 = result acc0
        t1: i64 = result acc1
        store add b1[i0] = t0
      }
      stage [] {
        t0: f32 = earlier 1 t0
        store max b1[i0] = t0
      }
    }
  }
  kernel "p" {
    matmul f32 b0 [0, 3, 1], b3 [0, 1, 3] over [i0 < s0, i1 < 2] depth [3] {
      t0: f32 = total
      store b1[i0] = t0
    }
  }
  kernel "c" {
    conv f32 b0, b3 over [i0 < 1, i1 < 2, i2 < 3] stride [1] padding [1:0] dilation [1] groups 1 {
      t0: f32 = total
      store b1[i0] = t0
    }
  }
  kernel "a" {
    attention f16 b0 [3*i0, 3, 1], b3 [0, 1, 3], b3 [0, 3, 1] over [i0 < s0, i1 < 2, i2 < 3] depth [3] reach [s0 - 1] zeros {
      scores [i3 < 2] {
        t0: f32 = total
        accumulate acc0 t0
      }
      result {
        t0: f16 = total
        store b1[i0] = t0
      }
    }
  }
  kernel "s" {
    rows sort descending f32 from [b0] to [b5, b2] sizes [s0, 3, 1]
  }
  kernel "m" {
    rows cummax f32 from [b0] to [b5, b2] sizes [s0, 3, 1]
  }
  kernel "f" {
    rows searchsorted right f32 from [b0, b0] to [b2] sizes [s0, 3, 1]
  }
  read s0 b2 "model.py:3 in forward: k = n.item()"
  assert b6 "must \n hold"
  require [s0] ge [1] "at least one"
  if b6 {
    loop {
    }
    while b6 {
    }
  }
  else {
    read s0 b2 ""
  }
}
"#;

#[test]
fn printing_gives_the_text_back() {
    let program = parse(EVERYTHING).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(print(&program), EVERYTHING);
    assert_eq!(parse(&print(&program)).expect("it parses again"), program);
    assert_eq!(program.steps.len(), 11);
}

#[test]
fn short_form_leaves_data_out() {
    let program = parse("loops { const c0: f32[400] = random 3 }").expect("it parses");
    assert!(print_short(&program).contains("const c0: f32[400] = ...\n"));
}

#[test]
fn faults_are_located() {
    let message = |text: &str| parse(text).expect_err("it does not parse").0[0].message.clone();
    assert_eq!(message("loops {\n  inputs [b0]\n}"), "line 2, column 11: there is no such buffer");
    assert!(message("loops { state b0 }").contains("no such buffer"));
    assert!(message("loops { kernel \"k\" { for [s0 < 3] { } } }").contains("expected an axis"));
    let kernel = |term: &str| {
        format!("loops {{ buffer b0: f32[2] input 0 kernel \"k\" {{ for [] {{ stage [] {{ {term} }} }} }} }}")
    };
    assert!(message(&kernel("t1: f32 = total")).contains("expected `t0`"));
    assert!(message(&kernel("t0: f32 = relu6 t0")).contains("`relu6` is not a term"));
    let attention = |axes: &str, key: &str| {
        let buffer = "b0 [0, 1, 1]";
        message(&format!(
            "loops {{ buffer b0: f32[2] input 0 kernel \"k\" {{ attention f32 {buffer}, {buffer}, {buffer} over {axes} \
             depth [2] {{ scores {key} {{ }} result {{ }} }} }} }}"
        ))
    };
    assert!(attention("[i0 < 2]", "[i1 < 2]").contains("expected an axis of queries"));
    assert!(attention("[i0 < 2, i1 < 2]", "[]").contains("expected one axis, that of keys"));
    assert!(message(&format!("loops {{ {}", "loop { ".repeat(1000))).contains("nested too deeply"));
}

proptest! {
    /// Letters and pieces put anywhere: an error or a program, never a panic; what parses is printed stably.
    #[test]
    fn altered_text_never_panics(edits in altered::edits("[<\"{}()\\[\\],:=tbis019 \n-]{1,3}")) {
        let text = altered::altered(EVERYTHING, edits);
        if let Ok(program) = parse(&text) {
            let _ = verify(&program);
            let printed = print(&program);
            prop_assert_eq!(print(&parse(&printed).expect("what is printed parses")), printed);
        }
    }
}
