//! Kernels whose reads are as they should be, and kernels whose reads are not.

use crate::loops::text::parse;
use crate::loops::verify;

/// What is found in one kernel with rows of eight elements, a temporary buffer and an index.
fn findings(kernel: &str) -> Vec<String> {
    let program = parse(&format!(
        r#"loops {{
            buffer b0: f32[4, 8] input 0
            buffer b1: f32[4, 8] output 0
            buffer b2: f32[4, 8] row 1
            buffer b3: i64[4] input 1
            inputs [b0, b3] outputs [b1]
            site "an index operator"
            kernel "k" {{ for {kernel} }}
        }}"#
    ));
    verify(&program.unwrap_or_else(|error| panic!("{error}")))
}

const READ: &str = "stage [i1 < 8] { t0: f32 = load b2[i1] at [i1] store b1[i0, i1] = t0 }";
const LOOK_UP: &str = "stage [] { t0: i64 = load b3[i0] t1: i64 = check t0 below [8] site 0
    t2: f32 = load b2[t1] by [t1: 1] store b1[i0, 0] = t2 }";

fn write(extent: i64, at: &str) -> String {
    format!("stage [i1 < {extent}] {{ t0: f32 = load b0[i0, i1] store b2[{at}] at [{at}] = t0 }}")
}

#[test]
fn rows_are_read_where_an_earlier_stage_has_written_them() {
    let missing = |number: usize| {
        vec![format!("kernel `k`: stage {number} reads of the row b2 what is not written before")]
    };
    for read in [READ, LOOK_UP] {
        assert_eq!(findings(&format!("[i0 < 4] {{ {} {read} }}", write(8, "i1"))), Vec::<String>::new());
        assert_eq!(findings(&format!("[i0 < 4] {{ {} {read} }}", write(8, "7 - i1"))), Vec::<String>::new());
        let halves = format!("[i0 < 4] {{ {} {} {read} }}", write(4, "i1"), write(4, "i1 + 4"));
        assert_eq!(findings(&halves), Vec::<String>::new());
        assert_eq!(findings(&format!("[i0 < 4] {{ {} {read} }}", write(7, "i1"))), missing(1));
        assert_eq!(findings(&format!("[i0 < 4] {{ {} {read} }}", write(8, "0"))), missing(1));
        assert_eq!(findings(&format!("[i0 < 4] {{ {read} {} }}", write(8, "i1"))), missing(0));
    }
}

#[test]
fn parts_of_a_buffer_are_apart_whatever_their_size_is() {
    let copied = |offset: &str| {
        let program = parse(&format!(
            r#"loops {{
                symbol s0 "rows" in 0..inf from input 0 axis 0
                buffer b0: f32[s0, 3] input 0
                buffer b1: f32[2, s0, 3] output 0
                inputs [b0] outputs [b1]
                kernel "k" {{ for [i0 < 3*s0] {{
                    stage [] {{ t0: f32 = load b0[] at [i0] store b1[] at [i0] = t0 }}
                    stage [] {{ t0: f32 = load b1[] at [i0] store b1[] at [{offset}] = t0 }}
                }} }}
            }}"#
        ));
        verify(&program.unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(copied("i0 + 3*s0"), Vec::<String>::new());
    assert_ne!(copied("i0 + 2*s0"), Vec::<String>::new());
}

#[test]
fn a_guard_keeps_an_access_within_its_row() {
    let padded = |guard: &str| {
        let program = parse(&format!(
            r#"loops {{
                symbol s0 "columns" in 0..inf from input 0 axis 1
                buffer b0: f32[4, s0] input 0
                buffer b1: f32[4, s0] temporary
                buffer b2: f32[4, 2, s0] output 0
                inputs [b0] outputs [b2]
                kernel "k" {{ for [i0 < 4] {{
                    stage [i1 < s0] {{ t0: f32 = load b0[] at [s0*i0 + i1] store b1[] at [s0*i0 + i1] = t0 }}
                    stage [i1 < 2, i2 < s0] {{
                        t0: f32 = load b1[] at [s0*i0 + s0*i1 + i2 - 1]{guard}
                        store b2[] at [2*s0*i0 + s0*i1 + i2] = t0
                    }}
                }} }}
            }}"#
        ));
        verify(&program.unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(padded(" if [s0*i1 + i2 - 1 < s0] else 0.0"), Vec::<String>::new());
    assert_ne!(padded(" if [s0*i1 + i2 - 1 < 2*s0] else 0.0"), Vec::<String>::new());
    assert_ne!(padded(""), Vec::<String>::new());
}

#[test]
fn inner_steps_that_lead_past_what_is_written_are_of_no_concern() {
    let sums = |offset: &str| {
        let program = parse(&format!(
            r#"loops {{
                buffer b0: f32[12] input 0
                buffer b1: f32[2, 12] output 0
                buffer b2: f32[2, 12] output 1
                inputs [b0] outputs [b1, b2]
                kernel "k" {{ for [i0 < 12] {{
                    stage [] {{ t0: f32 = load b0[] at [i0] store b1[] at [i0] = t0 }}
                    stage [i1 < 2] {{ t0: f32 = load b1[] at [{offset}] store b2[] at [i0 + 12*i1] = t0 }}
                }} }}
            }}"#
        ));
        verify(&program.unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(sums("i0 + 12*i1"), Vec::<String>::new());
    assert_ne!(sums("i0 + 11*i1"), Vec::<String>::new());
    assert_ne!(sums("i0 + 12 - 12*i1"), Vec::<String>::new(), "the last step leads back");
}

#[test]
fn positions_whose_step_is_larger_than_what_they_touch_are_apart() {
    let pairs = |from: &str, to: &str| {
        let program = parse(&format!(
            r#"loops {{
                symbol s0 "rows" in 0..inf from input 0 axis 0
                buffer b0: f32[s0, 3] input 0
                buffer b1: f32[5, 2, s0] output 0
                inputs [b0] outputs [b1]
                kernel "k" {{ for [i0 < 5, i1 < s0] {{
                    stage [] {{ t0: f32 = load b1[] at [{from}] store b1[] at [{to}] = t0 }}
                }} }}
            }}"#
        ));
        verify(&program.unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(pairs("i1 + 2*s0*i0", "i1 + s0 + 2*s0*i0"), Vec::<String>::new());
    assert_ne!(pairs("i1 + s0*i0", "i1 + s0 + s0*i0"), Vec::<String>::new());
    assert_ne!(pairs("i1 + 2*s0*i0", "i1 + s0 - 1 + 2*s0*i0"), Vec::<String>::new());
}

#[test]
fn stages_of_different_loops_touch_different_elements() {
    let first = "stage [i1 < 8] { t0: f32 = load b0[i0, i1] store b2[i1] at [i1] = t0 }";
    let pair = "stage [i1 < 4, i2 < 2] { t0: f32 = load b2[2*i1 + i2] at [2*i1 + i2] store b1[i0, i1] = t0 }";
    assert_eq!(findings(&format!("[i0 < 4] {{ {first} {pair} }}")), Vec::<String>::new());
}

#[test]
fn what_is_added_to_a_row_is_there_before() {
    let add = "stage [i1 < 8] { t0: f32 = load b0[i0, i1] store add b2[i1] at [i1] = t0 }";
    assert_eq!(findings(&format!("[i0 < 4] {{ {add} {READ} }}")).len(), 2);
    assert_eq!(findings(&format!("[i0 < 4] {{ {} {add} {READ} }}", write(8, "i1"))), Vec::<String>::new());
}

#[test]
fn positions_read_nothing_that_others_write() {
    let wrong = ["kernel `k`: it may read of b1 what another position writes"];
    let first = "stage [i1 < 8] { t0: f32 = load b0[i0, i1] store b1[i0, i1] = t0 }";
    let then = |read: &str| {
        format!(
            "[i0 < 4] {{ {first} stage [i1 < 8] {{ t0: f32 = load b1[{read}] store b2[i1] at [i1] = t0 }} }}"
        )
    };
    assert_eq!(findings(&then("i0, i1")), Vec::<String>::new());
    assert_eq!(findings(&then("i0, 7 - i1")), Vec::<String>::new());
    assert_eq!(findings(&then("3 - i0, i1")), wrong);
    assert_eq!(findings(&then("0, i1")), wrong);
    let together = |load: &str, store: &str| {
        format!(
            "[i0 < 4] {{ stage [] {{ t0: i64 = load b3[i0] t1: i64 = check t0 below [1] site 0
            t2: f32 = load b1[{load}] store {store} = t2 }} }}"
        )
    };
    assert_eq!(findings(&together("i0, 0", "b1[i0, 0]")), Vec::<String>::new());
    assert_eq!(findings(&together("i0, 1", "b1[i0, 0]")), Vec::<String>::new());
    assert_eq!(findings(&together("i0, 0", "b1[i0, t1] by [t1: 1]")), wrong);
    assert_eq!(findings(&together("i0, 0", "add b1[i0, t1] by [t1: 1]")), wrong);
}

#[test]
fn one_part_is_written_where_all_are_read() {
    let findings = |at: &str| {
        let program = parse(&format!(
            r#"loops {{
                symbol s0 "rows" in 0..inf from input 0 axis 0
                buffer b0: f32[s0, 3] input 0
                buffer b1: f32[7, 2, s0] output 0
                buffer b2: f32[7, 2, s0] output 1
                inputs [b0] outputs [b1, b2]
                kernel "k" {{ for [i0 < 7, i1 < s0] {{
                    stage [] {{ t0: f32 = load b0[i1, 0] store b1[] at [{at}] = t0 }}
                    stage [i2 < 2] {{ t0: f32 = load b1[] at [i1 + s0*i2 + 2*s0*i0] store b2[i0, i2, i1] = t0 }}
                }} }}
            }}"#
        ));
        verify(&program.unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(findings("i1 + s0 + 2*s0*i0"), Vec::<String>::new());
    assert_eq!(findings("i1 + 2*s0*i0"), Vec::<String>::new());
    assert_ne!(findings("i1 + s0 - 1 + 2*s0*i0"), Vec::<String>::new());
    assert_ne!(findings("i1 + s0*i0"), Vec::<String>::new());
}
