//! The text form goes in and out unchanged, and the verifier finds what is wrong in it.

use super::{parse, print};
use crate::schedule::verify;
use crate::text::altered;
use proptest::prelude::*;

const CPU: &str = r#"schedule cpu "x86-64" "x86-64-v3" {
  loops "two" {
    symbol s0 "batch" in 1..4096 from input 0 axis 0
    const c0 "w": f32[3, 2] = [0.5, 0.5, 0.5, 0.5, 0.5, 0.5]
    buffer b0 "x": f32[s0, 3] input 0
    buffer b1 "w": f32[3, 2] constant c0
    buffer b2: f32[s0, 2] temporary
    buffer b3 "y": f32[s0] output 0
    inputs [b0]
    graph_inputs [b0]
    outputs [b3]
    kernel "fc_linear" {
      note "aten.linear.default of linear" at "m.py:3" in "fc"
      choose gemm.packed
      pack b1 product [0, 2, 1, 3, 2]
      scratch [0, 64*s0] units [128*s0 + 64]
      map split rows 64 lanes outer grain [65536, 6*s0]
      call f0 of b0 [0] b1 [0] b2 [0] sizes [s0]
      matmul f32 b0 [0, 3, 1], b1 [0, 2, 1] over [i0 < s0, i1 < 2] depth [3] {
        t0: f32 = total
        store b2[i0, i1] = t0
      }
    }
    kernel "sum" {
      choose loops
      map split axes 1 lanes inner grain [16384, 3]
      call f1 of b2 [0] b3 [0] sizes [s0]
      for [i0 < s0] {
        accumulator acc0: sum f32 in stage 0
        stage [i1 < 2] {
          t0: f32 = load b2[i0, i1]
          accumulate acc0 t0
        }
        stage [] {
          t0: f32 = result acc0
          store b3[i0] = t0
        }
      }
    }
  }
  arena [8*s0]
  place b2 [0]
}
"#;

const GPU: &str = r#"schedule gpu "sm_90a" {
  loops "one" {
    buffer b0 "x": f32[8] input 0
    buffer b1 "y": f32[8] output 0
    inputs [b0]
    graph_inputs [b0]
    outputs [b1]
    kernel "neg" {
      choose loops
      map team 1 places 256 adjacent members along outer lanes 4 rows shared order [] index 32
      call f0 of b0 [0] b1 [0] sizes []
      launch grid [1] threads 256 next start
      for [i0 < 8] {
        stage [] {
          t0: f32 = load b0[i0]
          t1: f32 = neg t0
          store b1[i0] = t1
        }
      }
    }
  }
  arena [0]
}
"#;

const ROUNDED: &str = r#"schedule gpu "sm_90a" tf32-matmul {
  loops "one" {
    buffer b0 "x": f32[512, 768] input 0
    buffer b1 "w": f32[768, 256] input 1
    buffer b2 "y": f32[512, 256] output 0
    inputs [b0, b1]
    graph_inputs [b0, b1]
    outputs [b2]
    kernel "p" {
      choose gemm.any
      map tile [64, 64] by tf32 threads 256 shared 65536 index 32
      call f0 of b0 [0] b1 [0] b2 [0] sizes []
      launch grid [32] threads 256 shared [65536] next end
      matmul f32 b0 [0, 768, 1], b1 [0, 256, 1] over [i0 < 512, i1 < 256] depth [768] {
        t0: f32 = total
        store b2[i0, i1] = t0
      }
    }
  }
  arena [0]
}
"#;

const BROUGHT: &str = r#"schedule gpu "sm_90a" {
  loops "one" {
    symbol s0 "rows" in 1..4096 from input 0 axis 0
    buffer b0 "x": bf16[3, s0, 768] input 0
    buffer b1 "w": bf16[256, 768] input 1
    buffer b2 "y": bf16[3, s0, 256] output 0
    inputs [b0, b1]
    graph_inputs [b0, b1]
    outputs [b2]
    kernel "p" {
      choose gemm.any
      map tile [128, 128] by units threads 256 producers 128 shared 65536 index 32
      call f0 of b0 [0] b1 [0] b2 [0] sizes [s0]
      launch grid [6*((s0 + 127) // 128)] threads 256 producers 128 shared [65536] persistent next end
      tensor-map b0 from [0] sizes [768, s0, 3] strides [768, 768*s0] box [64, 128] along [i0]
      tensor-map b1 from [0] sizes [768, 256] strides [768] box [64, 128] along []
      matmul bf16 b0 [768*s0*i0, 768, 1], b1 [0, 1, 768] over [i0 < 3, i1 < s0, i2 < 256] depth [768] {
        t0: f32 = total
        t1: bf16 = cast t0
        store b2[256*i1 + i2 + 256*s0*i0] = t1
      }
    }
  }
  arena [0]
}
"#;

const LEFT_TO_LIBRARIES: &str = r#"schedule cpu "x86-64-v3" library "openblas" library "onednn" {
  loops "one" {
    buffer b0 "x": f32[512, 768] input 0
    buffer b1 "w": f32[768, 256] input 1
    buffer b2 "y": f32[512, 256] output 0
    inputs [b0, b1]
    graph_inputs [b0, b1]
    outputs [b2]
    kernel "p" {
      choose gemm.openblas
      map split template lanes outer grain [65536, 100663296]
      call f0 of b0 [0] b1 [0] b2 [0] sizes []
      matmul f32 b0 [0, 768, 1], b1 [0, 256, 1] over [i0 < 512, i1 < 256] depth [768] {
        t0: f32 = total
        store b2[i0, i1] = t0
      }
    }
  }
  arena [0]
}
"#;

#[test]
fn printing_gives_the_text_back() {
    for text in [CPU, GPU, ROUNDED, BROUGHT, LEFT_TO_LIBRARIES] {
        let schedule = parse(text).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(print(&schedule), text);
        assert_eq!(verify(&schedule), Vec::<String>::new());
    }
}

#[track_caller]
fn finds(text: &str, from: &str, to: &str, finding: &str) {
    assert!(text.contains(from), "the text has {from}");
    let schedule = parse(&text.replacen(from, to, 1)).unwrap_or_else(|error| panic!("{error}"));
    let findings = verify(&schedule);
    assert!(findings.iter().any(|found| found.contains(finding)), "{findings:?}");
}

#[test]
fn each_rule_is_checked() {
    finds(CPU, "choose loops", "choose gemm.any", "of another kind");
    finds(CPU, "pack b1", "pack b0", "no constant that it reads");
    finds(CPU, "place b2 [0]", "", "has no place");
    finds(CPU, "split axes 1", "split axes 3", "splits 3 axes of 1");
    finds(CPU, "for [i0 < s0] {", "for [i0 < s0] serial {", "must run in order");
    finds(CPU, "call f1 of", "call f0 of", "it is not called as it computes: `call f1 of");
    finds(GPU, "b0 [0]", "b0 [4]", "it is not called as it computes");
    finds(GPU, "places 256", "places 4096", "4096 threads");
    finds(
        GPU,
        "team 1 places 256 adjacent members along outer lanes 4 rows shared order []",
        "template threads 256 rows 1",
        "loops are no template",
    );
    finds(
        GPU,
        "team 1 places 256 adjacent members along outer lanes 4 rows shared order []",
        "tile [64, 64] by units threads 128 producers 128 shared 65536",
        "only contractions and attention have tiles",
    );
    finds(GPU, "schedule gpu \"sm_90a\"", "schedule cpu", "another machine");
    finds(GPU, "      launch grid [1] threads 256 next start\n", "", "0 launches");
    finds(GPU, "grid [1]", "grid [1 - 2]", "-1 blocks");
    finds(GPU, "grid [1]", "grid [4294967296]", "4294967296 blocks");
    finds(GPU, "grid [1] threads 256", "grid [1] threads 128", "128 threads");
    finds(GPU, "grid [1] threads 256", "grid [1] threads 256 cluster 2", "clusters of 2");
    finds(GPU, "grid [1] threads 256", "grid [1] threads 256 persistent", "nobody copies");
    let scratch = "      choose loops\n      scratch [64, 0]\n";
    finds(GPU, "      choose loops\n", scratch, "not given its scratch");
    finds(GPU, "      choose loops\n", scratch, "does not lie in the arena");
    finds(ROUNDED, "shared [65536]", "shared [1048576]", "1048576 bytes");
    finds(BROUGHT, "along [i0]", "along []", "its map of b0");
    finds(BROUGHT, "box [64, 128] along []", "box [64, 512] along []", "its map of b1");
    finds(BROUGHT, "tensor-map b1", "tensor-map b2", "its map of b2");
    finds(ROUNDED, " tf32-matmul", " tf32-conv", "may not be rounded");
    finds(LEFT_TO_LIBRARIES, " library \"openblas\"", "", "its library does not compute it");
}

#[test]
fn faults_are_located() {
    let message = |from: &str, to: &str| {
        parse(&CPU.replacen(from, to, 1)).expect_err("it does not parse").0[0].message.clone()
    };
    assert!(message("gemm.packed", "gemm.fast").contains("`gemm.fast` is not an algorithm"));
    assert!(message("-v3\" {", "-v3\" library \"blas\" {").contains("there is no such library"));
    assert!(message("place b2", "place b9").contains("no such buffer"));
    assert!(message("lanes inner", "lanes sideways").contains("`one`, `inner` or `outer`"));
    assert!(message("product [0, 2, 1, 3, 2]", "product [0]").contains("a form and its sizes"));
}

proptest! {
    /// Letters and pieces put anywhere: an error or a schedule, never a panic; what parses is printed stably.
    #[test]
    fn altered_text_never_panics(edits in altered::edits("[<\"{}()\\[\\],:=tbis019 \n-]{1,3}")) {
        let text = altered::altered(CPU, edits);
        if let Ok(schedule) = parse(&text) {
            let _ = verify(&schedule);
            let printed = print(&schedule);
            prop_assert_eq!(print(&parse(&printed).expect("what is printed parses")), printed);
        }
    }
}
