//! What is fused and what is not.

use super::*;

/// Normalisation over groups of channels, and what follows for each element.
#[test]
fn a_function_of_what_groups_of_channels_give_is_part_of_their_kernel() {
    check(
        "
    input %x \"x\": f32[1, 8, 10, 10]
    %g: f32[1, 4, 2, 10, 10] = view %x [0, 2*i1 + i2, i3, i4]
    %sum: f32[1, 4] = sum %g axes [2, 3, 4]
    %s: f32[1, 4, 2, 10, 10] = view %sum [0, i1]
    %d: f32[1, 4, 2, 10, 10] = div %g, %s
    %y: f32[1, 8, 10, 10] = view %d [0, i1 // 2, i1 % 2, i2, i3]
    %e: f32[1, 8, 10, 10] = exp %y
    %z: f32[1, 8, 10, 10] = sigmoid %e
    %r: f32[1, 8, 10, 10] = mul %e, %z
    output %r \"r\"",
        &["nest (4) stages (200) () (200)"],
    );
}

#[test]
fn axes_too_short_for_lanes_go_on_along_those_before() {
    let body = |size: i64| {
        format!(
            "input %x \"x\": f32[50, {size}]
             input %y \"y\": f32[{size}]
             %z: f32[50, {size}] = view %y [i1]
             %p: f32[50, {size}] = mul %x, %z
             output %p \"p\""
        )
    };
    check(&body(3), &["nest (150) stages ()"]);
    check(&body(5), &["nest (50, 5) stages ()"]);
    // What is selected of each row is side by side.
    let graph = "input %x \"x\": f32[20, 33]
                 %r: i64[20, 1] = full 16
                 %v: f32[20, 1], %p: i64[20, 1] = nth_element %x, %r axis 1
                 output %v \"v\" output %p \"p\"";
    let (program, _) = scheduled(graph);
    assert_eq!(program.kernels.len(), 1);
}

#[test]
fn reductions_walk_along_what_lies_side_by_side() {
    let body = |sizes: [i64; 3], axes: &str, result: &str| {
        let [a, b, c] = sizes;
        format!(
            "input %x \"x\": f32[{a}, {b}, {c}]
             %t: f32[{c}, {a}, {b}] = view %x [i1, i2, i0]
             %s: f32[{result}] = sum %t axes [{axes}]
             output %s \"s\""
        )
    };
    check(&body([6, 7, 20], "0, 1, 2", ""), &["nest () stages (840) ()"]);
    check(&body([6, 70, 20], "0, 2", "6"), &["nest (6) stages (1400) ()"]);
    // Runs are too short to be worth it.
    check(&body([6, 70, 4], "0, 2", "6"), &["nest (6) stages (4, 70) ()"]);
}

#[test]
fn softmax_is_one_kernel_that_keeps_its_row_local() {
    check(SOFTMAX, &["nest (s0) stages (100) () (100) () (100)"]);
    let (program, _) = scheduled(SOFTMAX);
    let rows =
        program.buffers.values().filter(|buffer| matches!(buffer.storage, Storage::Local { .. })).count();
    assert_eq!(rows, 1, "the exponentials stay in the worker's scratch");
}

#[test]
fn statistics_and_normalisation_are_one_kernel() {
    check(
        "input %x \"x\": f32[8, 96]
         %sum: f32[8] = sum %x axes [1]
         %n: f32[8] = full 96.0
         %mean: f32[8] = div %sum, %n
         %m: f32[8, 96] = view %mean [i0]
         %c: f32[8, 96] = sub %x, %m
         %q: f32[8, 96] = mul %c, %c
         %var: f32[8] = sum %q axes [1]
         %r: f32[8] = rsqrt %var
         %rr: f32[8, 96] = view %r [i0]
         %y: f32[8, 96] = mul %c, %rr
         output %y \"y\"",
        &["nest (8) stages (96) () (96) () (96)"],
    );
}

#[test]
fn products_write_the_rows_of_heads_where_they_are_joined() {
    let body = |sizes: &str, coords: &str| {
        format!(
            "input %a \"a\": f32[2, 4, 6, 16]
             input %b \"b\": f32[2, 4, 16, 8]
             %p: f32[2, 4, 6, 8] = matmul %a, %b
             %y: f32{sizes} = view %p [{coords}]
             output %y \"y\""
        )
    };
    check(&body("[2, 6, 32]", "i0, i2 // 8, i1, i2 % 8"), &["matmul (2, 4, 6, 8)"]);
    // Columns that would lie apart are turned by a pass over memory.
    check(
        &body("[2, 8, 24]", "i0, i2 // 6, i2 % 6, i1"),
        &["matmul (2, 4, 6, 8)", "nest (2, 8, 24) stages ()"],
    );
}

#[test]
fn element_wise_consumers_go_into_the_epilogue() {
    let (program, _) = scheduled(
        "const c0 \"w\": f32[16, 32] = splat 0.5
         const c1 \"b\": f32[32] = splat 0.5
         input %x \"x\": f32[6, 16]
         input %r \"r\": f32[2, 3, 32]
         %w: f32[16, 32] = constant c0
         %b: f32[32] = constant c1
         %p: f32[6, 32] = matmul %x, %w
         %bb: f32[6, 32] = view %b [i1]
         %q: f32[6, 32] = add %p, %bb
         %t: f32[2, 3, 32] = view %q [3*i0 + i1, i2]
         %y: f32[2, 3, 32] = add %t, %r
         output %y \"y\"",
    );
    assert_eq!(outline(&program), ["matmul (6, 32)"]);
    let kernel = program.kernels.values().next().expect("checked above");
    assert_eq!(kernel.stages().next().expect("a stage").effects.len(), 1, "only the result is stored");
}

#[test]
fn a_reduction_of_columns_stays_out_of_a_product() {
    let body = "
        input %a \"a\": f32[6, 16]
        input %b \"b\": f32[16, 32]
        %p: f32[6, 32] = matmul %a, %b
        %y: f32[32] = sum %p axes [0]
        output %y \"y\"";
    check(body, &["matmul (6, 32)", "nest (32) stages (6) ()"]);
    refuses(body, Refusal::NotElementWise);
    refuses(body, Refusal::OtherSpace);
}

#[test]
fn a_reduction_of_rows_follows_the_rows_of_a_product() {
    let body = "
        input %a \"a\": f32[6, 16]
        input %b \"b\": f32[16, 32]
        %p: f32[6, 32] = matmul %a, %b
        %y: f32[6] = sum %p axes [1]
        output %y \"y\"";
    check(body, &["matmul (6, 32) then nest (6) stages (32) ()"]);
    let refusals: Vec<_> = scheduled(body).1.into_iter().map(|explanation| explanation.refusal).collect();
    assert_eq!(refusals, [None], "what became one kernel is not said to stay apart");
}

/// Two rounds of a product, a residual, and what normalises the rows, which are `rows` of 32 numbers.
fn normalised(sizes: &str, rows: &str) -> String {
    format!(
        "{sizes}
         input %x \"x\": f32[{rows}, 32]
         input %w \"w\": f32[32, 32]
         %p: f32[{rows}, 32] = matmul %x, %w
         %h: f32[{rows}, 32] = add %p, %x
         %sum: f32[{rows}] = sum %h axes [1]
         %m: f32[{rows}, 32] = view %sum [i0]
         %n: f32[{rows}, 32] = sub %h, %m
         %q: f32[{rows}, 32] = matmul %n, %w
         %g: f32[{rows}, 32] = add %q, %h
         %all: f32[{rows}] = sum %g axes [1]
         %s: f32[{rows}, 32] = view %all [i0]
         %y: f32[{rows}, 32] = sub %g, %s
         output %y \"y\""
    )
}

#[test]
fn normalisation_between_products_is_no_kernel_and_its_residual_is_replaced_in_place() {
    let step = |rows: &str| format!("matmul ({rows}, 32) then nest ({rows}) stages (32) () (32)");
    let fixed = normalised("", "70");
    check(&fixed, &[&step("70"), &step("70")]);
    // The second residual takes the place of the first, which the normalised rows were made of.
    let graph = graph_of(&fixed);
    let schedule = scheduled_for(&graph, &Target::cpu(&["x86-64-v3"]), &Records::none()).schedule;
    let arena = schedule.memory.arena_bytes.as_int().expect("fixed");
    assert!(arena < 3 * 70 * 32 * 4, "{arena} bytes");
    let open = normalised("symbol s0 \"batch\" in 0..64 from input 0 axis 0", "s0");
    check(&open, &[&step("s0"), &step("s0")]);
}

#[test]
fn what_loops_read_for_the_last_time_is_replaced_in_place() {
    let arena = |old: &str| {
        let graph = graph_of(&format!(
            "input %x \"x\": f32[32, 32]
             input %w \"w\": f32[32, 64]
             %h: f32[32, 32] = matmul %x, %x
             %gates: f32[32, 64] = matmul %h, %w
             %a: f32[32, 32] = view %gates [i0, i1]
             %b: f32[32, 32] = view %gates [i0, i1 + 32]
             %gate: f32[32, 32] = mul %a, %b
             %old: f32[32, 32] = view %h {old}
             %next: f32[32, 32] = add %gate, %old
             %y: f32[32, 32] = matmul %next, %x
             output %y \"y\""
        ));
        let schedule = scheduled_for(&graph, &Target::cpu(&["x86-64-v3"]), &Records::none()).schedule;
        schedule.memory.arena_bytes.as_int().expect("fixed")
    };
    let tensor = 32 * 32 * 4;
    assert_eq!(arena("[i0, i1]"), 3 * tensor, "the next state takes the place of the last");
    assert_eq!(arena("[31 - i0, i1]"), 4 * tensor, "rows that others still need stay");
}

#[test]
fn rows_of_several_axes_follow_a_product_over_their_joint_axis() {
    check(
        "input %x \"x\": f32[70, 32]
         input %w \"w\": f32[32, 32]
         %p: f32[70, 32] = matmul %x, %w
         %h: f32[7, 10, 32] = view %p [10*i0 + i1, i2]
         %sum: f32[7, 10] = sum %h axes [2]
         output %sum \"y\"",
        &["matmul (70, 32) then nest (70) stages (32) ()"],
    );
}

#[test]
fn rows_that_are_more_work_than_the_product_stay_apart() {
    let body = "
        input %a \"a\": f32[6, 2]
        input %b \"b\": f32[2, 32]
        %p: f32[6, 32] = matmul %a, %b
        %e: f32[6, 32] = exp %p
        %y: f32[6] = sum %e axes [1]
        %z: f32[6] = sum %p axes [1]
        output %y \"y\"
        output %z \"z\"";
    refuses(body, Refusal::NotByRow);
}

#[test]
fn softmax_of_the_rows_of_a_product_keeps_its_row_in_the_scratch_of_its_template() {
    let body = "
        input %a \"a\": f32[3, 70, 256]
        input %b \"b\": f32[3, 256, 32]
        %p: f32[3, 70, 32] = matmul %a, %b
        %max: f32[3, 70] = max %p axes [2]
        %m: f32[3, 70, 32] = view %max [i0, i1]
        %d: f32[3, 70, 32] = sub %p, %m
        %e: f32[3, 70, 32] = exp %d
        %sum: f32[3, 70] = sum %e axes [2]
        %s: f32[3, 70, 32] = view %sum [i0, i1]
        %y: f32[3, 70, 32] = div %e, %s
        output %y \"y\"";
    check(body, &["matmul (3, 70, 32) then nest (3, 70) stages (32) () (32) () (32)"]);
    let rows = scheduled(body).0;
    assert!(rows.buffers.values().any(|buffer| matches!(buffer.storage, Storage::Local { .. })));
}

#[test]
fn rows_of_another_order_stay_apart() {
    let body = "
        input %a \"a\": f32[6, 64]
        input %b \"b\": f32[64, 32]
        %p: f32[6, 32] = matmul %a, %b
        %back: f32[6, 32] = view %p [-i0 + 5, i1]
        %y: f32[6] = sum %back axes [1]
        output %y \"y\"";
    check(body, &["matmul (6, 32)", "nest (6) stages (32) ()"]);
    refuses(body, Refusal::OtherPosition);
}

#[test]
fn what_another_row_produces_is_not_fused() {
    let body = "
        input %x \"x\": f32[8, 96]
        %sum: f32[8] = sum %x axes [1]
        %back: f32[8, 96] = view %sum [-i0 + 7]
        %y: f32[8, 96] = mul %x, %back
        output %y \"y\"";
    check(body, &["nest (8) stages (96) ()", "nest (8, 96) stages ()"]);
    refuses(body, Refusal::OtherPosition);
}

#[test]
fn a_large_full_reduction_leaves_its_producer_parallel() {
    refuses(LARGE_REDUCTION, Refusal::LosesParallelism);
}

#[test]
fn values_of_several_outputs_share_a_kernel() {
    check(
        "input %x \"x\": f32[7, 5]
         %a: f32[7, 5] = exp %x
         %b: f32[7, 5] = neg %a
         %c: f32[7, 5] = mul %a, %b
         output %a \"a\"
         output %b \"b\"
         output %c \"c\"",
        &["nest (35) stages ()"],
    );
}

#[test]
fn independent_steps_move_out_of_the_way() {
    // The scale is computed between the product and its consumer, from other data.
    let (program, _) = scheduled(
        "input %a \"a\": f32[6, 16]
         input %b \"b\": f32[16, 32]
         input %v \"v\": f32[32, 9]
         %p: f32[6, 32] = matmul %a, %b
         %s: f32[32] = sum %v axes [1]
         %ss: f32[6, 32] = view %s [i1]
         %y: f32[6, 32] = mul %p, %ss
         output %y \"y\"",
    );
    assert_eq!(outline(&program), ["nest (32) stages (9) ()", "matmul (6, 32)"]);
}

#[test]
fn blocks_of_a_transposed_tensor_become_plain_strides() {
    // [2, 3, 5, 32] read as [2, 5, 96]: the last axis is cut into heads of 32.
    check(
        "input %x \"x\": f32[2, 3, 5, 32]
         %y: f32[2, 5, 96] = view %x [i0, i2 // 32, i1, i2 % 32]
         output %y \"y\"",
        &["nest (2, 5, 3, 32) stages ()"],
    );
}

#[test]
fn scatters_with_indices_run_in_order() {
    let (program, _) = scheduled(
        "input %base \"base\": f32[8]
         input %at \"at\": i64[5]
         input %v \"v\": f32[5]
         %y: f32[8] = scatter %base, %v, %at add [$0]
         output %y \"y\"",
    );
    let serial = |kernel: &&Kernel| matches!(&kernel.kind, KernelKind::Nest(nest) if nest.serial);
    assert_eq!(program.kernels.values().filter(serial).count(), 1);
}

#[test]
fn nothing_is_stored_that_nobody_reads() {
    let (program, _) = scheduled(SOFTMAX);
    let kernel = program.kernels.values().next().expect("one kernel");
    for effect in kernel.stages().flat_map(|stage| &stage.effects) {
        if let Effect::Store { access, .. } = effect {
            assert_ne!(program.buffers[access.buffer].storage, Storage::Temporary);
        }
    }
}

#[test]
fn long_chains_become_kernels_of_bounded_size() {
    let mut body = "input %0 \"x\": f32[4, 8]\n".to_owned();
    for k in 0..4000 {
        body.push_str(&format!("%{}: f32[4, 8] = exp %{k}\n", k + 1));
    }
    body.push_str("output %4000 \"y\"");
    let (program, explanations) = scheduled(&body);
    assert!((8..=16).contains(&program.steps.len()), "{}", program.steps.len());
    assert!(explanations.iter().any(|explanation| explanation.refusal == Some(Refusal::TooLarge)));
}

#[test]
fn a_chain_of_dead_stores_goes_at_once() {
    let mut text = "loops { buffer b0: f32[4] input 0 buffer b1: f32[4] output 0\n".to_owned();
    for k in 2..300 {
        text.push_str(&format!("buffer b{k}: f32[4] temporary\n"));
    }
    let copy = |from: usize, to: usize| {
        format!(
            "kernel \"copy\" {{ for [i0 < 4] {{ stage [] {{ t0: f32 = load b{from}[i0] store b{to}[i0] = t0 }} }} }}\n"
        )
    };
    text.push_str(&copy(0, 1));
    text.push_str(&copy(0, 2));
    (2..299).for_each(|k| text.push_str(&copy(k, k + 1)));
    text.push('}');
    let mut program = crate::loops::text::parse(&text).unwrap_or_else(|error| panic!("{error}"));
    dead_stores::remove_dead(&mut program);
    assert_eq!(program.steps.len(), 1);
}

#[test]
fn padding_of_a_row_reads_nothing_beside_it() {
    check(
        "input %x \"x\": f32[2, 66]
        %sum: f32[2] = sum %x axes [1]
        %row: f32[2, 1] = view %sum [i0]
        %half: f32[] = full 0.5
        %halves: f32[2, 1] = view %half []
        %scaled: f32[2, 1] = mul %row, %halves
        %padded: f32[2, 5] = pad %scaled [i0, i1 - 1] fill 0
        output %padded \"y\"",
        &["nest (2) stages (66) () (5)"],
    );
}

#[test]
fn sizes_that_may_be_zero_keep_no_kernels_apart() {
    let (program, _) = scheduled(
        "
    symbol s0 \"batch\" in 0..64 from input 0 axis 0
    symbol s1 \"length\" in 0..64 from input 0 axis 2
    input %a \"a\": f32[s0, 4, s1, 8]
    input %b \"b\": f32[s0, 4, 8, 32]
    %heads: f32[s0, 4, s1, 32] = matmul %a, %b
    %rows: f32[s0*s1, 128] = view %heads [i0 // s1, i1 // 32, i0 % s1, i1 % 32]
    %y: f32[s0*s1, 128] = exp %rows
    output %y \"y\"",
    );
    assert_eq!(program.kernels.len(), 1, "{}", crate::loops::text::print(&program));
}
