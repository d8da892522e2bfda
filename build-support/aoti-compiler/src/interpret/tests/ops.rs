//! Operators, as graphs in the text form with the outputs that PyTorch gives.

use crate::graph::text::parse;
use crate::graph::verify;
use crate::interpret::{EvalError, Tensor, evaluate};

/// Evaluates `body`, whose inputs are the constants of `given` in order.
fn run(given: &str, body: &str) -> Result<Vec<Tensor>, EvalError> {
    let graph = parse(&format!("graph {{ {body} }}")).expect("the text parses");
    verify(&graph).expect("the graph is well formed");
    evaluate(&graph, &constants(given))
}

/// Tensors written as the constants of a graph: `f32[2] = [1, 2]; i64[] = [3]`.
fn constants(text: &str) -> Vec<Tensor> {
    let items = text.split(';').filter(|item| !item.trim().is_empty());
    let lines: Vec<String> =
        items.enumerate().map(|(k, item)| format!("const c{k}: {}", item.trim())).collect();
    let graph = parse(&format!("graph {{ {} }}", lines.join("\n"))).expect("the constants parse");
    let tensor = |constant: &crate::graph::Constant| {
        let sizes = constant.sizes.iter().map(|size| usize::try_from(*size).expect("a size")).collect();
        Tensor::new(constant.dtype, sizes, constant.data.clone()).expect("the data fit")
    };
    graph.constants.values().map(tensor).collect()
}

/// Outputs must be equal bit by bit, but for the payload of NaN.
#[track_caller]
fn check(given: &str, body: &str, expected: &str) {
    let results = run(given, body).expect("the graph runs");
    let texts = |tensors: &[Tensor]| tensors.iter().map(|t| format!("{t:?}")).collect::<Vec<String>>();
    assert_eq!(texts(&results), texts(&constants(expected)));
}

#[track_caller]
fn refused(given: &str, body: &str, expected: &str) {
    let message = run(given, body).expect_err("the run fails").to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn integers_wrap() {
    check(
        "i8[4] = [-128, 127, -128, 100]; i8[4] = [-1, 1, 1, 100]",
        "input %a: i8[4] input %b: i8[4]
         %s: i8[4] = add %a, %b %m: i8[4] = mul %a, %b %n: i8[4] = neg %a %d: i8[4] = floor_div %a, %b
         output %s output %m output %n output %d",
        "i8[4] = [127, -128, -127, -56]; i8[4] = [-128, 127, -128, 16];
         i8[4] = [-128, -127, -128, -100]; i8[4] = [-128, 127, -128, 1]",
    );
}

#[test]
fn integer_division_follows_python_or_c() {
    check(
        "i64[5] = [7, -7, 7, -7, 5]; i64[5] = [2, 2, -2, -2, 0]",
        "input %a: i64[5] input %b: i64[5]
         %f: i64[5] = floor_div %a, %b %t: i64[5] = trunc_div %a, %b
         %r: i64[5] = remainder %a, %b %m: i64[5] = fmod %a, %b
         output %f output %t output %r output %m",
        "i64[5] = [3, -4, -4, 3, 0]; i64[5] = [3, -3, -3, 3, 0];
         i64[5] = [1, 1, -1, -1, 0]; i64[5] = [1, -1, 1, -1, 0]",
    );
}

#[test]
fn integer_powers_and_shifts_have_pytorch_s_edges() {
    check(
        "i32[6] = [2, -1, 1, 3, -1, 0]; i32[6] = [10, -3, -5, -1, -2, 0]; i32[6] = [1, 31, 32, -1, 4, 0]",
        "input %a: i32[6] input %b: i32[6] input %s: i32[6]
         %p: i32[6] = pow %a, %b %l: i32[6] = shl %a, %s %r: i32[6] = shr %a, %s %g: i32[6] = gcd %b, %s
         output %p output %l output %r output %g",
        "i32[6] = [1024, -1, 1, 0, 1, 1]; i32[6] = [4, -2147483648, 0, 0, -16, 0];
         i32[6] = [1, -1, 0, 0, -1, 0]; i32[6] = [1, 1, 1, 1, 2, 0]",
    );
}

#[test]
fn booleans_add_and_multiply_as_or_and_and() {
    check(
        "bool[4] = [true, true, false, false]; bool[4] = [true, false, true, false]",
        "input %a: bool[4] input %b: bool[4]
         %s: bool[4] = add %a, %b %m: bool[4] = mul %a, %b %n: bool[4] = bit_not %a %x: bool[4] = bit_xor %a, %b
         output %s output %m output %n output %x",
        "bool[4] = [true, true, true, false]; bool[4] = [true, false, false, false];
         bool[4] = [false, false, true, true]; bool[4] = [false, true, true, false]",
    );
}

#[test]
fn half_types_are_computed_in_f32_and_rounded() {
    // 2048 + 1 is not representable in f16, 256 + 1 not in bf16; both round to even.
    check(
        "f16[2] = [2048, 2050]; bf16[2] = [256, 258]",
        "input %a: f16[2] input %b: bf16[2] %p: f16[2] = full 1.0 %q: bf16[2] = full 1.0
         %x: f16[2] = add %a, %p %y: bf16[2] = add %b, %q output %x output %y",
        "f16[2] = [2048, 2052]; bf16[2] = [256, 260]",
    );
}

#[test]
fn casts_truncate_wrap_and_test_for_zero() {
    check(
        "f32[6] = [-1.9, 2.5, 300.0, nan, -0.0, inf]",
        "input %x: f32[6] %i: i64[6] = cast %x %u: u8[6] = cast %x %b: bool[6] = cast %x %h: i32[6] = cast %x
         output %i output %u output %b output %h",
        "i64[6] = [-1, 2, 300, -9223372036854775808, 0, -9223372036854775808];
         u8[6] = [255, 2, 44, 0, 0, 0]; bool[6] = [true, true, true, true, false, true];
         i32[6] = [-1, 2, 300, -2147483648, 0, -2147483648]",
    );
}

#[test]
fn nan_sticks_in_maximum_but_not_in_fmax() {
    check(
        "f32[3] = [nan, 1, 2]; f32[3] = [0, nan, 3]",
        "input %a: f32[3] input %b: f32[3] %m: f32[3] = maximum %a, %b %f: f32[3] = fmax %a, %b
         %e: bool[3] = ne %a, %a output %m output %f output %e",
        "f32[3] = [nan, nan, 3]; f32[3] = [0, 1, 3]; bool[3] = [true, false, false]",
    );
}

#[test]
fn views_pads_and_indices_follow_their_expressions() {
    check(
        "i64[2, 3] = [0, 1, 2, 3, 4, 5]",
        "input %x: i64[2, 3]
         %t: i64[3, 2] = view %x [i1, i0]
         %r: i64[6] = view %x [i0 // 3, i0 % 3]
         %f: i64[2, 3] = view %x [i0, 2 - i1]
         %p: i64[2, 5] = pad %x [i0, i1 - 1] fill -7
         %i: i64[2, 3] = index [10*i0 + min(i1, 1)]
         output %t output %r output %f output %p output %i",
        "i64[3, 2] = [0, 3, 1, 4, 2, 5]; i64[6] = [0, 1, 2, 3, 4, 5]; i64[2, 3] = [2, 1, 0, 5, 4, 3];
         i64[2, 5] = [-7, 0, 1, 2, -7, -7, 3, 4, 5, -7]; i64[2, 3] = [0, 1, 1, 10, 11, 11]",
    );
}

#[test]
fn negative_indices_count_from_the_end_where_that_is_asked() {
    let gather = "input %x: f32[3] input %i: i64[2] %y: f32[2] = gather %x, %i [wrap $0] output %y";
    check("f32[3] = [1, 2, 3]; i64[2] = [-1, -3]", gather, "f32[2] = [3, 1]");
    refused("f32[3] = [1, 2, 3]; i64[2] = [0, 3]", gather, "index 3 is out of range for an axis of size 3");
    refused("f32[3] = [1, 2, 3]; i64[2] = [-4, 0]", gather, "index -4 is out of range");
    let gather = "input %x: f32[3] input %i: i64[2] %y: f32[2] = gather %x, %i [$0] output %y";
    check("f32[3] = [1, 2, 3]; i64[2] = [2, 0]", gather, "f32[2] = [3, 1]");
    refused("f32[3] = [1, 2, 3]; i64[2] = [-1, 0]", gather, "index -1 is out of range");
}

#[test]
fn scatters_combine_in_order() {
    let scatter = |combine: &str| {
        format!(
            "input %x: f32[3] input %u: f32[4] input %i: i64[4]
             %y: f32[3] = scatter %x, %u, %i {combine} [wrap $0] output %y"
        )
    };
    let given = "f32[3] = [1, 2, 3]; f32[4] = [10, 20, 30, nan]; i64[4] = [0, 0, -1, 1]";
    check(given, &scatter("set"), "f32[3] = [20, nan, 30]");
    check(given, &scatter("add"), "f32[3] = [31, nan, 33]");
    check(given, &scatter("mul"), "f32[3] = [200, nan, 90]");
    check(given, &scatter("max"), "f32[3] = [20, nan, 30]");
    check(given, &scatter("min"), "f32[3] = [1, nan, 3]");
}

#[test]
fn concatenation_takes_empty_operands() {
    check(
        "f32[2, 1] = [1, 2]; f32[2, 0] = []; f32[2, 2] = [3, 4, 5, 6]",
        "input %a: f32[2, 1] input %b: f32[2, 0] input %c: f32[2, 2]
         %y: f32[2, 3] = cat %a, %b, %c axis 1 output %y",
        "f32[2, 3] = [1, 3, 4, 2, 5, 6]",
    );
}

#[test]
fn reductions_have_pytorch_s_neutral_elements_and_nan() {
    check(
        "f32[2, 3] = [1, nan, 3, 4, 6, 6]; f32[2, 0] = []",
        "input %x: f32[2, 3] input %e: f32[2, 0]
         %s: f32[2] = sum %e axes [1] %p: f32[2] = prod %e axes [1] %t: f32[] = sum %x axes [0, 1]
         %m: f32[2] = max %x axes [1] %n: f32[3] = min %x axes [0]
         %a: i64[2] = argmax %x axes [1] %i: i64[3] = argmin %x axes [0]
         output %s output %p output %t output %m output %n output %a output %i",
        "f32[2] = [0, 0]; f32[2] = [1, 1]; f32[] = [nan]; f32[2] = [nan, 6]; f32[3] = [1, nan, 3];
         i64[2] = [1, 1]; i64[3] = [0, 0, 0]",
    );
    check(
        "bool[2, 2] = [true, false, true, true]; u8[3] = [200, 100, 7]",
        "input %b: bool[2, 2] input %u: u8[3] %a: bool[2] = any %b axes [1] %l: bool[2] = all %b axes [1]
         %s: u8[] = sum %u axes [0] %x: u8[] = xor %u axes [0] output %a output %l output %s output %x",
        "bool[2] = [true, true]; bool[2] = [false, true]; u8[] = [51]; u8[] = [171]",
    );
}

#[test]
fn scans_run_along_their_axis() {
    check(
        "f32[2, 3] = [1, 3, 3, 2, nan, 5]; i32[4] = [1, 2, 3, 4]; f64[3] = [-inf, 0, 0]",
        "input %x: f32[2, 3] input %i: i32[4] input %l: f64[3]
         %s: f32[2, 3] = cumsum %x axis 1 %p: i32[4] = cumprod %i axis 0
         %m: f32[2, 3], %k: i64[2, 3] = cummax %x axis 1 %e: f64[3] = logcumsumexp %l axis 0
         output %s output %p output %m output %k output %e",
        "f32[2, 3] = [1, 4, 7, 2, nan, nan]; i32[4] = [1, 2, 6, 24];
         f32[2, 3] = [1, 3, 3, 2, nan, nan]; i64[2, 3] = [0, 1, 2, 0, 1, 1];
         f64[3] = [-inf, 0, 0.6931471805599453]",
    );
}

#[test]
fn sorting_is_stable_and_nan_is_largest() {
    check(
        "f32[5] = [2, nan, 1, 2, -0.0]",
        "input %x: f32[5] %v: f32[5], %i: i64[5] = sort %x axis 0 %w: f32[5], %j: i64[5] = sort %x axis 0 descending
         output %v output %i output %w output %j",
        "f32[5] = [-0.0, 1, 2, 2, nan]; i64[5] = [4, 2, 0, 3, 1];
         f32[5] = [nan, 2, 2, 1, -0.0]; i64[5] = [1, 0, 3, 2, 4]",
    );
}

#[test]
fn searches_go_left_or_right_of_equals() {
    check(
        "f32[2, 4] = [1, 3, 3, 5, 0, 0, 0, 0]; f32[2, 3] = [3, 0, 9, 0, -1, nan]",
        "input %s: f32[2, 4] input %v: f32[2, 3]
         %l: i64[2, 3] = searchsorted %s, %v %r: i64[2, 3] = searchsorted %s, %v right output %l output %r",
        "i64[2, 3] = [1, 0, 4, 0, 0, 4]; i64[2, 3] = [3, 0, 4, 4, 0, 4]",
    );
}

#[test]
fn matrix_products_are_batched_and_exact_in_integers() {
    check(
        "i64[2, 1, 2] = [1, 2, 3, 4]; i64[2, 2, 2] = [1, 2, 3, 4, 5, 6, 7, 8]; f32[2, 0] = []; f32[0, 2] = []",
        "input %a: i64[2, 1, 2] input %b: i64[2, 2, 2] input %c: f32[2, 0] input %d: f32[0, 2]
         %y: i64[2, 1, 2] = matmul %a, %b %z: f32[2, 2] = matmul %c, %d output %y output %z",
        "i64[2, 1, 2] = [7, 10, 43, 50]; f32[2, 2] = [0, 0, 0, 0]",
    );
}

#[test]
fn convolutions_take_every_parameter() {
    let conv = |parameters: &str, out: usize| {
        format!(
            "input %x: f32[1, 2, 4] input %w: f32[2, 1, 2]
             %y: f32[1, 2, {out}] = conv %x, %w {parameters} output %y"
        )
    };
    let given = "f32[1, 2, 4] = [1, 2, 3, 4, 5, 6, 7, 8]; f32[2, 1, 2] = [1, 10, 2, -1]";
    check(
        given,
        &conv("stride [1] padding [0:0] dilation [1] groups 2", 3),
        "f32[1, 2, 3] = [21, 32, 43, 4, 5, 6]",
    );
    check(
        given,
        &conv("stride [2] padding [1:2] dilation [2] groups 2", 3),
        "f32[1, 2, 3] = [20, 42, 4, -6, 4, 16]",
    );
    check(
        given,
        &conv("stride [2] padding [1:1] dilation [1] groups 2 transposed output_padding [1]", 7),
        "f32[1, 2, 7] = [10, 2, 20, 3, 30, 4, 40, -5, 12, -6, 14, -7, 16, -8]",
    );
}

#[test]
fn sizes_are_bound_checked_and_read() {
    let body = r#"
        symbol s0 "n" in 2..4 from input 0 axis 0
        symbol s1 "k" in 0..3 from data
        guard [s0] ne [3]
        input %x: f32[s0] input %k: i64[]
        read %k s1
        %y: i64[s1] = index [i0 + s0]
        output %y"#;
    check("f32[2] = [0, 0]; i64[] = [2]", body, "i64[2] = [2, 3]");
    refused("f32[5] = splat 0; i64[] = [2]", body, "`n` is 5, allowed is 2 to 4");
    refused("f32[3] = splat 0; i64[] = [2]", body, "do not satisfy `s0 != 3`");
    refused("f32[2] = splat 0; i64[] = [7]", body, "`k` is 7, allowed is 0 to 3");
    refused("f32[2] = splat 0; i32[] = [1]", body, "input `k` is i32[], expected is i64[]");
    refused("f32[2] = splat 0", body, "1 inputs are given, the graph takes 2");
}

#[test]
fn branches_and_loops_run_their_bodies() {
    let cond = "input %p: bool[] input %x: f32[2]
        %y: f32[2] = cond %p, %x
          then graph { input %x: f32[2] %y: f32[2] = neg %x output %y }
          else graph { input %x: f32[2] output %x }
        output %y";
    check("bool[] = [true]; f32[2] = [1, 2]", cond, "f32[2] = [-1, -2]");
    check("bool[] = [false]; f32[2] = [1, 2]", cond, "f32[2] = [1, 2]");
    let doubling = "input %i: i64[] input %x: i64[] input %n: i64[]
        %j: i64[], %y: i64[] = while %i, %x, %n carried 2
          condition graph { input %i: i64[] input %x: i64[] input %n: i64[] %p: bool[] = lt %i, %n output %p }
          body graph {
            input %i: i64[] input %x: i64[] input %n: i64[]
            %one: i64[] = full 1 %next: i64[] = add %i, %one %twice: i64[] = add %x, %x
            output %next output %twice
          }
        output %j output %y";
    check("i64[] = [0]; i64[] = [3]; i64[] = [4]", doubling, "i64[] = [4]; i64[] = [48]");
    check("i64[] = [5]; i64[] = [3]; i64[] = [4]", doubling, "i64[] = [5]; i64[] = [3]");
}

#[test]
fn assertions_fail_with_their_message() {
    let body = "input %p: bool[] assert %p \"must be positive\"";
    check("bool[] = [true]", body, "");
    refused("bool[] = [false]", body, "assertion failed: must be positive");
}

#[test]
fn state_starts_as_its_constant() {
    let body = "const c0: f32[2] = [1, 2] input %x: f32[2] input %s: f32[2] state c0
        %y: f32[2] = add %x, %s output %y output %y state 1";
    check("f32[2] = [10, 10]", body, "f32[2] = [11, 12]; f32[2] = [11, 12]");
    check("f32[2] = [10, 10]; f32[2] = [5, 5]", body, "f32[2] = [15, 15]; f32[2] = [15, 15]");
}
