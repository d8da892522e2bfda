//! Parts of buffers, and states: what is made where it ends, and what changes in place.

use super::*;

#[test]
fn what_ends_as_a_part_of_a_buffer_is_made_there() {
    let (program, _) = scheduled(
        "input %x \"x\": f32[4, 8]
         input %w \"w\": f32[8, 8]
         %a: f32[4, 8] = matmul %x, %w
         %b: f32[4, 8] = matmul %a, %w
         %c: f32[8, 8] = cat %a, %b axis 0
         output %c \"c\"",
    );
    assert_eq!(outline(&program), ["matmul (4, 8)", "matmul (4, 8)"]);
    assert_eq!(temporaries(&program), 0, "products read and write the output");
    let effects =
        program.kernels.values().map(|kernel| kernel.stages().next().expect("a stage").effects.len());
    assert!(effects.into_iter().all(|count| count == 1), "nothing is stored twice");
}

#[test]
fn what_is_scattered_into_ends_where_it_is_wanted() {
    let body = |axis: usize, sizes: &str| {
        format!(
            "input %x \"x\": f32[2, 5, 4]
             input %k \"k\": f32[3, 4]
             input %at \"at\": i64[3, 4]
             %other: f32[5, 4] = view %x [0, i0, i1]
             %old: f32[5, 4] = view %x [1, i0, i1]
             %new: f32[5, 4] = scatter %old, %k, %at set [wrap $0, i1]
             %sum: f32[5] = sum %new axes [1]
             %c: f32{sizes} = cat %other, %new axis {axis}
             output %sum \"sum\"
             output %c \"c\""
        )
    };
    // An index is no coordinate of a part that begins elsewhere along the same axis.
    let copies = |program: &Program| outline(program).len();
    assert_eq!(copies(&scheduled(&body(1, "[5, 8]")).0) + 1, copies(&scheduled(&body(0, "[10, 4]")).0));
    assert_eq!(temporaries(&scheduled(&body(1, "[5, 8]")).0), 0);
    assert_eq!(temporaries(&scheduled(&body(0, "[10, 4]")).0), 1);
}

#[test]
fn what_others_write_to_or_take_whole_is_no_part() {
    // The sorted rows are known by their beginning, which is not that of the output.
    let (program, _) = scheduled(
        "input %x \"x\": f32[4, 8]
         %s: f32[4, 8] = exp %x
         %v: f32[4, 8], %i: i64[4, 8] = sort %s axis 1
         %c: f32[8, 8] = cat %x, %s axis 0
         output %v \"v\"
         output %i \"i\"
         output %c \"c\"",
    );
    assert_eq!(temporaries(&program), 1);
}

/// A state that becomes `%next`, which may read `%old`, `%x` and the index `%at`, and what the program gives.
fn with_state(body: &str, outputs: &str) -> (Program, Vec<Explanation>) {
    scheduled(&format!(
        "const c0 \"cache\": f32[2, 5, 4] = splat 0.5
         input %old \"cache\": f32[2, 5, 4] state c0
         input %x \"x\": f32[2, 1, 4]
         input %at \"at\": i64[2, 1, 4]
         {body}
         {outputs}
         output %next \"cache\" state 0"
    ))
}

const ROW: &str = "%next: f32[2, 5, 4] = scatter %old, %x, %at set [i0, wrap $0, i2]";

#[test]
fn a_row_of_a_state_changes_in_place() {
    let sum = "%sum: f32[2, 4] = sum %next axes [1]";
    let (program, _) = with_state(&format!("{ROW}\n{sum}"), "output %sum \"sum\"");
    assert_eq!(outline(&program), ["nest (2, 4) stages ()", "nest (2, 4) stages (5) ()"]);
    assert_eq!(temporaries(&program), 0);
    // What is read before the change is the old value.
    let before = "%sum: f32[2, 4] = sum %old axes [1]";
    let (program, _) = with_state(&format!("{before}\n{ROW}"), "output %sum \"sum\"");
    assert_eq!(temporaries(&program), 0, "{:?}", outline(&program));
}

#[test]
fn states_that_take_each_others_values_are_held_apart() {
    scheduled(
        "const c0 \"a\": f32[3] = splat 0.5
         const c1 \"b\": f32[3] = splat 1.5
         input %a \"a\": f32[3] state c0
         input %b \"b\": f32[3] state c1
         output %b \"a\" state 0
         output %a \"b\" state 1",
    );
}

#[test]
fn old_values_that_are_read_after_a_change_keep_their_copy() {
    let after = format!(
        "{ROW}\n%new: f32[2, 4] = sum %next axes [1]\n%sum: f32[2, 4] = sum %old axes [1]\n%both: f32[2, 4] = sub %new, %sum"
    );
    let (program, _) = with_state(&after, "output %both \"both\"");
    assert!(temporaries(&program) > 0);
    // All but the first row moves: later rows are read where earlier ones have been written.
    let moved =
        "%rest: f32[2, 4, 4] = view %old [i0, i1 + 1, i2]\n%next: f32[2, 5, 4] = cat %rest, %x axis 1";
    let (program, _) = with_state(moved, "output %at \"at\"");
    assert!(temporaries(&program) > 0);
}

#[test]
fn elements_of_a_state_that_only_their_successors_need_change_in_place() {
    let wide = "%wide: f32[2, 5, 4] = view %x [i0, 0, i2]";
    let (program, _) =
        with_state(&format!("{wide}\n%next: f32[2, 5, 4] = add %old, %wide"), "output %at \"at\"");
    assert_eq!(temporaries(&program), 0, "{:?}", outline(&program));
    // Those around the new row stay where they are.
    let parts = "%low: f32[2, 2, 4] = view %old [i0, i1, i2]
                 %high: f32[2, 2, 4] = view %old [i0, i1 + 3, i2]
                 %next: f32[2, 5, 4] = cat %low, %x, %high axis 1";
    let (program, _) = with_state(parts, "output %at \"at\"");
    assert_eq!(temporaries(&program), 0, "{:?}", outline(&program));
    let other_head = "%turned: f32[2, 5, 4] = view %old [-i0 + 1, i1, i2]
                      %next: f32[2, 5, 4] = add %old, %turned";
    let (program, _) = with_state(other_head, "output %at \"at\"");
    assert_eq!(temporaries(&program), 1, "{:?}", outline(&program));
}
