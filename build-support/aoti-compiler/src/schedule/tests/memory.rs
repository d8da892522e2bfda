//! How much memory temporaries take: not much more than what is alive at once.

use super::*;
use crate::schedule::memory::least_arena;

/// The bytes of a graph's arena, once nothing else is wrong with its schedule.
fn arena(body: &str) -> i64 {
    let graph = graph_of(body);
    crate::graph::verify(&graph).expect("the graph is well formed");
    let target = Target::cpu(&["x86-64-v3"]);
    let schedule = scheduled_for(&graph, &target, &Records::none()).schedule;
    assert_eq!(verify(&schedule), Vec::<String>::new());
    gives_the_same(&graph, &schedule);
    let bytes = schedule.memory.arena_bytes.as_int().expect("fixed");
    assert_eq!(least_arena(&schedule.program, &graph.ranges(), &target, &|_| None), Some(bytes));
    bytes
}

/// Six products, one after the other, from `%x` to `%y`.
const PRODUCTS: &str = "%a: f32[32, 32] = matmul %x, %w %b: f32[32, 32] = matmul %a, %w
    %c: f32[32, 32] = matmul %b, %w %d: f32[32, 32] = matmul %c, %w
    %e: f32[32, 32] = matmul %d, %w %y: f32[32, 32] = matmul %e, %w";

#[test]
fn what_an_iteration_alone_needs_is_memory_within_the_iteration() {
    let tensor = 32 * 32 * 4;
    let straight = format!("input %x: f32[32, 32] input %w: f32[32, 32] {PRODUCTS} output %y");
    assert_eq!(arena(&straight), 2 * tensor);
    let looped = format!(
        "input %i: i64[] input %x: f32[32, 32] input %w: f32[32, 32] input %n: i64[]
         %j: i64[], %y: f32[32, 32] = while %i, %x, %w, %n carried 2
           condition graph {{ input %i: i64[] input %x: f32[32, 32] input %w: f32[32, 32] input %n: i64[]
             %p: bool[] = lt %i, %n output %p }}
           body graph {{ input %i: i64[] input %x: f32[32, 32] input %w: f32[32, 32] input %n: i64[]
             %one: i64[] = full 1 %next: i64[] = add %i, %one {PRODUCTS} output %next output %y }}
         output %j output %y"
    );
    // What is carried, what the next iteration is to have, and two between: the straight chain ends in the output.
    assert!(arena(&looped) <= 4 * tensor + 8 * 64, "{} bytes", arena(&looped));
}

#[test]
fn loops_within_loops_keep_what_the_outer_iteration_still_reads() {
    let inner = "%k: i64[], %z: f32[8] = while %zero, %x, %n carried 2
          condition graph { input %k: i64[] input %x: f32[8] input %n: i64[] %p: bool[] = lt %k, %n output %p }
          body graph { input %k: i64[] input %x: f32[8] input %n: i64[]
            %one: i64[] = full 1 %next: i64[] = add %k, %one
            %a: f32[] = sum %x axes [0] %b: f32[8] = view %a [] %c: f32[8] = sin %b %y: f32[8] = add %c, %x
            output %next output %y }";
    let body = format!(
        "input %i: i64[] input %x: f32[8] input %n: i64[]
         %j: i64[], %y: f32[8] = while %i, %x, %n carried 2
           condition graph {{ input %i: i64[] input %x: f32[8] input %n: i64[] %p: bool[] = lt %i, %n output %p }}
           body graph {{ input %i: i64[] input %x: f32[8] input %n: i64[]
             %one: i64[] = full 1 %zero: i64[] = full 0 %next: i64[] = add %i, %one
             %s: f32[] = sum %x axes [0] %t: f32[8] = view %s [] %kept: f32[8] = cos %t
             {inner}
             %u: f32[8] = add %z, %kept output %next output %u }}
         output %j output %y"
    );
    arena(&body);
}
