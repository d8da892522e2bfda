//! Passes, as graphs in the text form before and after; both must compute the same.

use super::*;
use crate::graph::text::{parse, print};
use crate::interpret::{Tensor, evaluate};

/// Size of every symbolic axis in trial runs.
const SIZE: i64 = 5;

/// `after` is what the pass leaves of `before` once dead nodes are gone; both are bodies of graphs.
#[track_caller]
pub(super) fn check(pass: Pass, before: &str, after: &str) {
    let graph = |body: &str| parse(&format!("graph {{ {body} }}")).expect("the text parses");
    let (given, expected) = (graph(before), dce(graph(after)));
    verify(&given).expect("the graph is well formed");
    let result = dce(pass(given.clone()));
    verify(&result).expect("the result is well formed");
    assert_eq!(without_names(result.clone()), without_names(expected));
    let inputs = trial_inputs(&given);
    let (old, new) = (evaluate(&given, &inputs), evaluate(&result, &inputs));
    for (old, new) in old.expect("runs").iter().zip(&new.expect("runs")) {
        assert_eq!((old.dtype(), old.sizes()), (new.dtype(), new.sizes()));
        for (a, b) in old.to_f64().iter().zip(new.to_f64()) {
            assert!((a - b).abs() <= 1e-5 * (1.0 + a.abs()) || (a.is_nan() && b.is_nan()), "{old:?} {new:?}");
        }
    }
}

fn without_names(mut graph: Graph) -> String {
    graph.values.values_mut().for_each(|value| value.name.clear());
    print(&graph)
}

fn trial_inputs(graph: &Graph) -> Vec<Tensor> {
    let input = |(number, input): (usize, &crate::graph::Input)| {
        let ty = graph.ty(input.value);
        let sizes: Vec<usize> =
            ty.shape.iter().map(|size| size.evaluate(&|_| Some(SIZE)).expect("a size") as usize).collect();
        let values: Vec<f64> = (0..sizes.iter().product::<usize>())
            .map(|k| ((k * 37 + number * 11) % 17) as f64 * 0.25 - 1.5)
            .collect();
        let data: Vec<u8> = values.iter().flat_map(|value| bytes(*value, ty.dtype)).collect();
        Tensor::new(ty.dtype, sizes, data).expect("the data fit")
    };
    graph.inputs.iter().enumerate().map(input).collect()
}

fn bytes(value: f64, dtype: crate::dtype::DType) -> Vec<u8> {
    use crate::dtype::DType;
    match dtype {
        DType::Bool => vec![u8::from(value > 0.0)],
        DType::I64 => ((value.abs() * 4.0) as i64 % 3).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::I8 => vec![(value * 4.0) as i8 as u8],
        DType::U8
        | DType::I16
        | DType::I32
        | DType::U16
        | DType::U32
        | DType::U64
        | DType::F8(_)
        | DType::F16
        | DType::Bf16
        | DType::F64 => unreachable!("tests use no inputs of {dtype}"),
    }
}

#[test]
fn what_nothing_needs_goes_but_effects_stay() {
    check(
        |graph| graph,
        "const c0: f32[2] = [1, 2] const c1: f32[2] = [3, 4]
         input %x: f32[2] input %p: bool[]
         %d: f32[2] = exp %x %w: f32[2] = constant c0 %v: f32[2] = constant c1
         %y: f32[2] = add %x, %v %t: bool[] = full true assert %t \"holds\" output %y",
        "const c0: f32[2] = [3, 4]
         input %x: f32[2] input %p: bool[]
         %v: f32[2] = constant c0
         %y: f32[2] = add %x, %v %t: bool[] = full true assert %t \"holds\" output %y",
    );
}

#[test]
fn equal_nodes_become_one() {
    check(
        cse,
        "input %x: f32[s0] %a: f32[s0] = exp %x %b: f32[s0] = exp %x %c: f32[s0] = neg %x
         %y: f32[s0] = add %a, %b %z: f32[s0] = add %b, %a output %y output %z output %c
         symbol s0 \"n\" in 1..9 from input 0 axis 0"
            .split_once("symbol")
            .map(|(body, symbol)| format!("symbol{symbol} {body}"))
            .expect("a symbol")
            .as_str(),
        "symbol s0 \"n\" in 1..9 from input 0 axis 0
         input %x: f32[s0] %a: f32[s0] = exp %x %c: f32[s0] = neg %x
         %y: f32[s0] = add %a, %a output %y output %y \"output_1\" output %c \"output_2\"",
    );
}

#[test]
fn casts_to_different_types_are_different() {
    let text = "input %x: i64[3] %a: f32[3] = cast %x %b: f64[3] = cast %x output %a output %b";
    check(cse, text, text);
}

#[test]
fn functions_of_one_number_are_numbers() {
    check(
        fold_uniform_constants,
        "input %x: f32[2, 3] %a: f32[] = full 2.0 %b: f32[] = full 0.5 %c: f32[] = mul %a, %b %d: f32[] = exp %c
         %e: f32[2, 3] = view %d [] %y: f32[2, 3] = add %x, %e output %y",
        "input %x: f32[2, 3] %e: f32[2, 3] = full 2.7182817459106445 %y: f32[2, 3] = add %x, %e output %y",
    );
}

#[test]
fn positions_are_folded_into_accesses() {
    check(
        fold_uniform_constants,
        "input %x: f32[8, 3] %i: i64[4] = index [i0] %one: i64[4] = full 1 %j: i64[4] = add %i, %one
         %k: i64[4, 3] = view %j [i0] %y: f32[4, 3] = gather %x, %k [$0, i1] output %y",
        "input %x: f32[8, 3] %y: f32[4, 3] = view %x [i0 + 1, i1] output %y",
    );
}

#[test]
fn positions_that_may_be_out_of_range_stay_indirect() {
    let text = "input %x: f32[3] %k: i64[4] = index [i0] %y: f32[2] = view %x [i0] output %y output %k";
    check(fold_uniform_constants, text, text);
    let graph =
        parse("graph { input %x: f32[3] %k: i64[4] = index [i0] %y: f32[4] = gather %x, %k [$0] output %y }");
    let graph = fold_uniform_constants(graph.expect("parses"));
    assert!(matches!(graph.nodes[1].op, crate::graph::Op::Gather(_)));
}

#[test]
fn identities_go() {
    check(
        simplify,
        "input %x: f32[3] %one: f32[3] = full 1.0 %zero: f32[3] = full 0.0 %a: f32[3] = mul %x, %one
         %b: f32[3] = sub %a, %zero %c: f32[3] = neg %b %d: f32[3] = neg %c output %d",
        "input %x: f32[3] output %x \"output_0\"",
    );
}

#[test]
fn adding_zero_changes_negative_zero_and_stays() {
    let text = "input %x: f32[3] %zero: f32[3] = full 0.0 %y: f32[3] = add %x, %zero output %y";
    check(simplify, text, text);
}

#[test]
fn division_by_a_power_of_two_is_multiplication() {
    check(
        simplify,
        "input %x: f32[3] %k: f32[3] = full 8.0 %y: f32[3] = div %x, %k output %y",
        "input %x: f32[3] %k: f32[3] = full 0.125 %y: f32[3] = mul %x, %k output %y",
    );
    let text = "input %x: f32[3] %k: f32[3] = full 3.0 %y: f32[3] = div %x, %k output %y";
    check(simplify, text, text);
}

#[test]
fn only_casts_that_lose_nothing_are_skipped() {
    check(
        simplify,
        "input %x: i8[3] %a: f32[3] = cast %x %b: i64[3] = cast %a output %b",
        "input %x: i8[3] %b: i64[3] = cast %x output %b",
    );
    let text = "input %x: f32[3] %a: i64[3] = cast %x %b: f32[3] = cast %a output %b";
    check(simplify, text, text);
}

#[test]
fn views_of_views_and_reductions_of_single_axes_are_views() {
    check(
        simplify,
        "input %x: f32[1, 4, 3] %s: f32[4, 3] = sum %x axes [0] %t: f32[3, 4] = view %s [i1, i0]
         %m: f32[3] = max %t axes [1] output %m",
        "input %x: f32[1, 4, 3] %t: f32[3, 4] = view %x [0, i1, i0] %m: f32[3] = max %t axes [1] output %m",
    );
}

#[test]
fn views_of_one_operand_of_several_laid_in_a_row_are_views_of_it() {
    check(
        simplify,
        "input %x: f32[2, 3] input %y: f32[4, 3] %c: f32[6, 3] = cat %x, %y axis 0
         %a: f32[3, 2] = view %c [i1 + 4, i0] %b: f32[2, 3] = view %c [i0, i1] %d: f32[2, 3] = view %c [i0 + 1, i1]
         output %a output %b output %d",
        "input %x: f32[2, 3] input %y: f32[4, 3] %c: f32[6, 3] = cat %x, %y axis 0
         %a: f32[3, 2] = view %y [i1 + 2, i0] %d: f32[2, 3] = view %c [i0 + 1, i1]
         output %a output %x \"output_1\" output %d",
    );
}

#[test]
fn choices_that_are_known_are_made() {
    check(
        simplify,
        "input %x: f32[3] input %y: f32[3] input %p: bool[3] %t: bool[3] = full true
         %q: bool[3] = bit_and %p, %t %n: bool[3] = bit_not %q %a: f32[3] = select %n, %x, %y
         %b: f32[3] = select %t, %a, %x %e: f32[0] = full 0.0 %c: f32[3] = cat %b, %e axis 0 output %c",
        "input %x: f32[3] input %y: f32[3] input %p: bool[3] %a: f32[3] = select %p, %y, %x
         output %a \"output_0\"",
    );
}

#[test]
fn what_depends_on_constants_is_computed_once() {
    check(
        fold_constants,
        "const c0: f32[2] = [3, 15] const c1: f32[2] = [2, 8] input %x: f32[2]
         %v: f32[2] = constant c0 %w: f32[2] = constant c1 %one: f32[2] = full 1.0
         %a: f32[2] = add %v, %one %b: f32[2] = rsqrt %a %c: f32[2] = mul %b, %w %y: f32[2] = mul %x, %c output %y",
        "const c0: f32[2] = [1, 2] input %x: f32[2]
         %c: f32[2] = constant c0 %y: f32[2] = mul %x, %c output %y",
    );
}

#[test]
fn views_of_weights_and_cheap_functions_of_positions_stay() {
    let text = "const c0: f32[2, 3] = random 1 input %x: f32[4, 3]
         %w: f32[2, 3] = constant c0 %t: f32[3, 2] = view %w [i1, i0] %y: f32[4, 2] = matmul %x, %t
         %i: i64[4, 2] = index [i0] %j: i64[4, 2] = index [i1] %m: bool[4, 2] = ge %i, %j
         %z: f32[4, 2] = full 0.0 %s: f32[4, 2] = select %m, %y, %z output %s";
    check(fold_constants, text, text);
}

#[test]
fn what_would_grow_stays() {
    let text = "const c0: f32[100] = random 1 input %x: f32[100, 100]
         %w: f32[100] = constant c0 %a: f32[100, 100] = view %w [i0] %b: f32[100, 100] = view %w [i1]
         %c: f32[100, 100] = mul %a, %b %y: f32[100, 100] = add %x, %c output %y";
    check(fold_constants, text, text);
}

#[test]
fn scale_after_a_convolution_goes_into_its_weight() {
    let conv = "stride [1] padding [0:0] dilation [1] groups 1 output_padding [0]";
    check(
        fold_batch_norm,
        &format!(
            "const c0 \"w\": f32[2, 1, 2] = [1, 2, 3, 4] const c1: f32[2] = [2, -1] const c2: f32[1, 2, 1] = [0.5, 3]
             input %x: f32[2, 1, 4] %w: f32[2, 1, 2] = constant c0 %s: f32[2] = constant c1
             %t: f32[1, 2, 1] = constant c2 %y: f32[2, 2, 3] = conv %x, %w {conv}
             %sv: f32[2, 2, 3] = view %s [i1] %tv: f32[2, 2, 3] = view %t [0, i1, 0]
             %a: f32[2, 2, 3] = sub %y, %tv %b: f32[2, 2, 3] = mul %a, %sv %c: f32[2, 2, 3] = add %b, %tv output %c"
        ),
        &format!(
            "const c0 \"w.scaled\": f32[2, 1, 2] = [2, 4, -3, -4] const c1 \"w.shift\": f32[2] = [-0.5, 6]
             input %x: f32[2, 1, 4] %w: f32[2, 1, 2] = constant c0 %y: f32[2, 2, 3] = conv %x, %w {conv}
             %t: f32[2] = constant c1 %tv: f32[2, 2, 3] = view %t [i1] %c: f32[2, 2, 3] = add %y, %tv output %c"
        ),
    );
}

#[test]
fn scale_after_a_product_goes_through_the_view_of_its_weight() {
    check(
        fold_batch_norm,
        "const c0: f32[2, 3] = [1, 2, 3, 4, 5, 6] const c1: f32[2] = [2, 10] input %x: f32[4, 3]
         %w: f32[2, 3] = constant c0 %s: f32[2] = constant c1 %t: f32[3, 2] = view %w [i1, i0]
         %y: f32[4, 2] = matmul %x, %t %sv: f32[4, 2] = view %s [i1] %z: f32[4, 2] = mul %y, %sv output %z",
        "const c0: f32[2, 3] = [2, 4, 6, 40, 50, 60] input %x: f32[4, 3]
         %w: f32[2, 3] = constant c0 %t: f32[3, 2] = view %w [i1, i0]
         %y: f32[4, 2] = matmul %x, %t output %y \"output_0\"",
    );
}

#[test]
fn products_of_one_matrix_that_products_read_become_one() {
    check(
        merge_matmuls,
        "const c0 \"q\": f32[2, 3] = [1, 2, 3, 4, 5, 6] const c1 \"k\": f32[4, 3] = [7, 8, 9, 1, 0, 2, 3, 5, 4, 6, 1, 1]
         const c2 \"a\": f32[2] = [1, 2] const c3 \"b\": f32[4] = [3, 4, 5, 6]
         input %x: f32[6, 3] input %l: f32[2, 2, 2] input %m: f32[2, 3, 2]
         %q: f32[2, 3] = constant c0 %k: f32[4, 3] = constant c1
         %qt: f32[3, 2] = view %q [i1, i0] %kt: f32[3, 4] = view %k [i1, i0]
         %y: f32[6, 2] = matmul %x, %qt %ys: f32[2, 3, 2] = view %y [3*i0 + i1, i2]
         %a: f32[2] = constant c2 %av: f32[2, 3, 2] = view %a [i2] %ya: f32[2, 3, 2] = add %ys, %av
         %z: f32[6, 4] = matmul %x, %kt %zs: f32[2, 3, 4] = view %z [3*i0 + i1, i2]
         %b: f32[4] = constant c3 %bv: f32[2, 3, 4] = view %b [i2] %zb: f32[2, 3, 4] = add %bv, %zs
         %o: f32[2, 3, 2] = matmul %ya, %l %zt: f32[2, 4, 3] = view %zb [i0, i2, i1]
         %p: f32[2, 4, 2] = matmul %zt, %m output %o output %p",
        "const c0 \"q.joined\": f32[6, 3] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 0, 2, 3, 5, 4, 6, 1, 1]
         const c1 \"a.joined\": f32[6] = [1, 2, 3, 4, 5, 6]
         input %x: f32[6, 3] input %l: f32[2, 2, 2] input %m: f32[2, 3, 2]
         %w: f32[6, 3] = constant c0 %t: f32[3, 6] = view %w [i1, i0]
         %y: f32[6, 6] = matmul %x, %t %ys: f32[2, 3, 6] = view %y [3*i0 + i1, i2]
         %a: f32[6] = constant c1 %av: f32[2, 3, 6] = view %a [i2] %s: f32[2, 3, 6] = add %ys, %av
         %q: f32[2, 3, 2] = view %s [i0, i1, i2] %k: f32[2, 3, 4] = view %s [i0, i1, i2 + 2]
         %o: f32[2, 3, 2] = matmul %q, %l %zt: f32[2, 4, 3] = view %k [i0, i2, i1]
         %p: f32[2, 4, 2] = matmul %zt, %m output %o output %p",
    );
}

#[test]
fn scales_of_both_operands_scale_the_product() {
    check(
        hoist_scales,
        "input %x: f32[6, 4] input %y: f32[2, 3, 4]
         %s: f32[6, 4] = full 0.5 %xs: f32[6, 4] = mul %x, %s %q: f32[2, 3, 4] = view %xs [3*i0 + i1, i2]
         %k: f32[2, 4, 3] = view %y [i0, i2, i1] %t: f32[2, 4, 3] = full 0.25 %ks: f32[2, 4, 3] = mul %t, %k
         %o: f32[2, 3, 3] = matmul %q, %ks output %o",
        "input %x: f32[6, 4] input %y: f32[2, 3, 4]
         %k: f32[2, 4, 3] = view %y [i0, i2, i1] %q: f32[2, 3, 4] = view %x [3*i0 + i1, i2]
         %p: f32[2, 3, 3] = matmul %q, %k %s: f32[2, 3, 3] = full 0.125 %o: f32[2, 3, 3] = mul %p, %s output %o",
    );
}

/// Another reader has the scaled operand anyway; a weight takes the scale; half types may not hold what is not scaled.
#[test]
fn scales_stay_where_that_is_as_good() {
    let shared =
        "input %x: f32[2, 3] input %y: f32[3, 2] %s: f32[2, 3] = full 0.5 %xs: f32[2, 3] = mul %x, %s
         %o: f32[2, 2] = matmul %xs, %y output %o output %xs";
    let weight = "const c0: f32[3, 2] = random 1 input %x: f32[2, 3] %s: f32[2, 3] = full 0.5
         %xs: f32[2, 3] = mul %x, %s %w: f32[3, 2] = constant c0 %o: f32[2, 2] = matmul %xs, %w output %o";
    let half = "input %x: f16[2, 3] input %y: f16[3, 2] %s: f16[2, 3] = full 0.5 %xs: f16[2, 3] = mul %x, %s
         %o: f16[2, 2] = matmul %xs, %y output %o";
    for text in [shared, weight, half] {
        let graph = parse(&format!("graph {{ {text} }}")).expect("the text parses");
        assert_eq!(print(&hoist_scales(graph.clone())), print(&graph));
    }
}

/// Equal biases are one constant, where the exporter stores equal ones once.
#[test]
fn products_with_one_bias_become_one() {
    check(
        merge_matmuls,
        "const c0 \"q\": f32[2, 2] = [1, 2, 3, 4] const c1 \"k\": f32[2, 2] = [5, 6, 7, 8] const c2 \"b\": f32[2] = [9, 10]
         input %x: f32[3, 2] input %l: f32[2, 4] %q: f32[2, 2] = constant c0 %k: f32[2, 2] = constant c1
         %b: f32[2] = constant c2 %bv: f32[3, 2] = view %b [i1]
         %y: f32[3, 2] = matmul %x, %q %ya: f32[3, 2] = add %y, %bv
         %z: f32[3, 2] = matmul %x, %k %za: f32[3, 2] = add %z, %bv
         %o: f32[3, 4] = matmul %ya, %l %p: f32[3, 4] = matmul %za, %l output %o output %p",
        "const c0 \"q.joined\": f32[2, 4] = [1, 2, 5, 6, 3, 4, 7, 8] const c1 \"b.joined\": f32[4] = [9, 10, 9, 10]
         input %x: f32[3, 2] input %l: f32[2, 4] %w: f32[2, 4] = constant c0 %y: f32[3, 4] = matmul %x, %w
         %b: f32[4] = constant c1 %bv: f32[3, 4] = view %b [i1] %s: f32[3, 4] = add %y, %bv
         %q: f32[3, 2] = view %s [i0, i1] %k: f32[3, 2] = view %s [i0, i1 + 2]
         %o: f32[3, 4] = matmul %q, %l %p: f32[3, 4] = matmul %k, %l output %o output %p",
    );
}

#[test]
fn products_that_others_read_stay_apart() {
    let text = "const c0: f32[3, 2] = random 1 const c1: f32[3, 2] = random 2 input %x: f32[4, 3]
         input %l: f32[2, 5] %q: f32[3, 2] = constant c0 %k: f32[3, 2] = constant c1
         %y: f32[4, 2] = matmul %x, %q %z: f32[4, 2] = matmul %x, %k %e: f32[4, 2] = exp %z
         %o: f32[4, 5] = matmul %y, %l output %o output %e";
    check(merge_matmuls, text, text);
}

#[test]
fn a_result_with_another_use_keeps_its_weight() {
    let text = "const c0: f32[3, 2] = random 2 const c1: f32[2] = [2, 10] input %x: f32[4, 3]
         %w: f32[3, 2] = constant c0 %s: f32[2] = constant c1 %y: f32[4, 2] = matmul %x, %w
         %sv: f32[4, 2] = view %s [i1] %z: f32[4, 2] = mul %y, %sv output %z output %y";
    check(fold_batch_norm, text, text);
}

#[test]
fn bodies_are_optimised_with_the_outer_symbols() {
    check(
        optimize,
        "symbol s0 \"n\" in 1..9 from input 0 axis 0
         input %x: f32[s0] input %p: bool[]
         %y: f32[s0] = cond %p, %x then graph \"t\" {
           input %a: f32[s0] %b: f32[s0] = neg %a %c: f32[s0] = neg %b %d: f32[s0] = exp %c %e: f32[s0] = exp %c
           %f: f32[s0] = add %d, %e output %f
         } else graph \"f\" { input %a: f32[s0] output %a } output %y",
        "symbol s0 \"n\" in 1..9 from input 0 axis 0
         input %x: f32[s0] input %p: bool[]
         %y: f32[s0] = cond %p, %x then graph \"t\" {
           input %a: f32[s0] %d: f32[s0] = exp %a %f: f32[s0] = add %d, %d output %f
         } else graph \"f\" { input %a: f32[s0] output %a } output %y",
    );
}

#[test]
fn constants_from_weights_are_computed_again_from_others() {
    let text = "graph { const c0 \"w\": f32[2] weight = [1.0, 4.0] const c1 \"unread\": f32[] weight = [7.0]
         input %x: f32[2] %w: f32[2] = constant c0 %r: f32[2] = sqrt %w %y: f32[2] = mul %x, %r output %y }";
    let graph = optimize(parse(text).expect("it parses"));
    assert_eq!(parse(&print(&graph)).expect("it parses again"), graph);
    let (id, derived) = graph.constants.iter().find(|(_, own)| own.name.is_empty()).expect("it was folded");
    assert!(derived.fixed().is_none(), "other weights give other elements");
    let constants = constant_graph(&graph, [((0, id), derived)]);
    let listed: Vec<_> =
        constants.weights.iter().map(|weight| (weight.name.as_str(), weight.input)).collect();
    assert_eq!(listed, [("unread", None), ("w", Some(0))]);
    let others = evaluate(&widen(constants.graph), &[Tensor::from_f32(&[2], &[9.0, 16.0])]);
    assert_eq!(others.expect("it runs"), [Tensor::from_f32(&[2], &[3.0, 4.0])]);
    let frozen = optimize(freeze(parse(text).expect("it parses")));
    assert!(frozen.constants.values().all(|constant| constant.fixed().is_some()));
    assert_eq!(frozen.constants.len(), 1);
}

#[test]
fn masks_of_one_sequence_do_not_ask_which_it_is() {
    // As decoders make them: keys up to the query's position, of the same packed sequence.
    let text = |start: i64| {
        format!(
            "graph {{ input %x \"x\": f32[4096, 4096] %i: i64[4096] = index [i0] %f: i64[1] = full {start}
             %c: i64[4097] = cat %f, %i axis 0 %b: i64[4096] = view %c [i0] %d: i64[4096] = sub %i, %b
             %o: i64[4096] = full 1 %n: bool[4096] = ne %d, %o %s: i64[4096] = cast %n
             %k: i64[4096] = cumsum %s axis 0 %q: i64[4096, 4096] = view %k [i0] %r: i64[4096, 4096] = view %k [i1]
             %e: bool[4096, 4096] = eq %q, %r %y: f32[4096, 4096] = full 0.0 %z: f32[4096, 4096] = select %e, %x, %y
             output %z }}"
        )
    };
    let left = |start: i64| print(&optimize(parse(&text(start)).expect("it parses")));
    assert!(!left(-1).contains("select"), "{}", left(-1));
    // Here the first element is a sequence by itself, which every element counts: all are equal too, and one number.
    assert!(!left(7).contains("cumsum"), "{}", left(7));
}

#[test]
fn lookups_in_what_is_turned_are_along_another_axis() {
    check(
        orient_lookups,
        "input %x \"x\": f32[2, 3, 4] input %k \"k\": i64[5, 2] %t: f32[3, 4, 2] = view %x [i2, i0, i1] \
         %g: f32[5, 2] = gather %t, %k [$0, 1, i1] %y: f32[2, 5] = view %g [i1, i0] output %y",
        "input %x \"x\": f32[2, 3, 4] input %k \"k\": i64[5, 2] %i: i64[2, 5] = view %k [i1, i0] \
         %y: f32[2, 5] = gather %x, %i [i0, $0, 1] output %y",
    );
}

#[test]
fn updates_of_what_is_turned_are_along_another_axis() {
    check(
        orient_lookups,
        "input %x \"x\": f32[2, 2, 3, 4] input %u \"u\": f32[1, 1, 2, 4] input %k \"k\": i64[1, 1, 2, 4] \
         %t: f32[3, 1, 2, 4] = view %x [1, i2, i0, i3] \
         %s: f32[3, 1, 2, 4] = scatter %t, %u, %k set [$0, i1, i2, i3] output %s",
        "input %x \"x\": f32[2, 2, 3, 4] input %u \"u\": f32[1, 1, 2, 4] input %k \"k\": i64[1, 1, 2, 4] \
         %t: f32[1, 2, 3, 4] = view %x [1, i1, i2, i3] \
         %s: f32[1, 2, 3, 4] = scatter %t, %u, %k set [i1, i2, $0, i3] \
         %y: f32[3, 1, 2, 4] = view %s [0, i2, i0, i3] output %y",
    );
}
