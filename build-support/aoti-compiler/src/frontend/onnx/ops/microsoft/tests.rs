//! Numbers that were worked out by hand.

use crate::frontend::onnx::proto::AttributeProto;
use crate::frontend::onnx::testing::{Model, float, int, ints, text};
use crate::interpret::Tensor;

#[track_caller]
fn near(found: &[f64], expected: &[f64]) {
    let close = |(a, b): (&f64, &f64)| (a - b).abs() < 1e-4;
    assert!(found.len() == expected.len() && found.iter().zip(expected).all(close), "{found:?}");
}

fn number(value: f32) -> Tensor {
    Tensor::from_f32(&[], &[value])
}

#[test]
fn a_sum_is_normalised() {
    let model = Model::new(17)
        .input("x", Tensor::from_f32(&[1, 1, 2], &[1.0, 2.0]))
        .input("skip", Tensor::from_f32(&[1, 2], &[0.0, 1.0]))
        .constant("gamma", &Tensor::from_f32(&[2], &[2.0, 3.0]))
        .node(
            "com.microsoft::SkipLayerNormalization",
            &["x", "skip", "gamma"],
            &["y", "", "", "sum"],
            &[float("epsilon", 0.0)],
        );
    let results = model.run(&["y", "sum"]);
    near(&results[0].to_f64(), &[-2.0, 3.0]);
    near(&results[1].to_f64(), &[1.0, 3.0]);
}

/// Weights 1 and 2 of a block of sixteen, the others zero; the zero is 8 unless it is stated.
#[test]
fn weights_of_four_bits_are_unpacked() {
    let mut bytes = [0x88u8; 8];
    bytes[0] = 0xa9;
    let mut x = [0.0f32; 16];
    x[..2].copy_from_slice(&[10.0, 100.0]);
    let attributes = [int("K", 16), int("N", 1), int("bits", 4), int("block_size", 16)];
    let of = |zeros: &str| {
        Model::new(17)
            .input("x", Tensor::from_f32(&[1, 16], &x))
            .constant("w", &Tensor::from_u8(&[1, 1, 8], &bytes))
            .constant("scale", &Tensor::from_f32(&[1], &[0.5]))
            .constant("zeros", &Tensor::from_u8(&[1], &[9]))
            .node("com.microsoft::MatMulNBits", &["x", "w", "scale", zeros], &["y"], &attributes)
            .numbers()
    };
    near(&of(""), &[105.0]);
    near(&of("zeros"), &[50.0]);
}

/// The first row has one key of the past, the second none, in a cache of three.
#[test]
fn rows_of_a_batch_have_pasts_of_their_own() {
    let model = Model::new(17)
        .input("q", Tensor::from_f32(&[2, 1, 2], &[0.0; 4]))
        .input("new", Tensor::from_f32(&[2, 1, 1], &[4.0, 6.0]))
        .input("past", Tensor::from_f32(&[2, 1, 3, 1], &[2.0, 7.0, 7.0, 7.0, 7.0, 7.0]))
        .input("counts", Tensor::from_i32(&[2], &[1, 0]))
        .constant("total", &Tensor::from_i32(&[], &[2]))
        .node(
            "com.microsoft::GroupQueryAttention",
            &["q", "new", "new", "past", "past", "counts", "total"],
            &["y", "key"],
            &[int("num_heads", 2), int("kv_num_heads", 1)],
        );
    let results = model.run(&["y", "key"]);
    near(&results[0].to_f64(), &[3.0, 3.0, 6.0, 6.0]);
    near(&results[1].to_f64(), &[2.0, 4.0, 7.0, 6.0, 7.0, 7.0]);
}

/// Queries and keys are zeros, values are the rows themselves.
#[test]
fn attention_projects_and_masks() {
    let of = |mask: Tensor, attributes: &[AttributeProto]| {
        Model::new(17)
            .constant("x", &Tensor::from_f32(&[1, 3, 1], &[1.0, 3.0, 8.0]))
            .constant("w", &Tensor::from_f32(&[1, 3], &[0.0, 0.0, 1.0]))
            .constant("mask", &mask)
            .node(
                "com.microsoft::Attention",
                &["x", "w", "", "mask"],
                &["y"],
                &[&[int("num_heads", 1)], attributes].concat(),
            )
            .numbers()
    };
    let mask = Tensor::from_i32(&[1, 3], &[1, 1, 0]);
    near(&of(mask.clone(), &[]), &[2.0; 3]);
    near(&of(mask, &[int("unidirectional", 1)]), &[1.0, 2.0, 2.0]);
    near(&of(Tensor::from_i32(&[1], &[1]), &[]), &[1.0; 3]);
    near(&of(Tensor::from_i32(&[2], &[3, 1]), &[]), &[5.5; 3]);
}

#[test]
fn a_single_query_sees_all_keys_of_others() {
    let of = |queries: usize| {
        Model::new(17)
            .input("q", Tensor::from_f32(&[1, queries, 1], &vec![0.0; queries]))
            .input("k", Tensor::from_f32(&[1, 3, 1], &[0.0; 3]))
            .input("v", Tensor::from_f32(&[1, 3, 1], &[1.0, 3.0, 8.0]))
            .node(
                "com.microsoft::MultiHeadAttention",
                &["q", "k", "v"],
                &["y"],
                &[int("num_heads", 1), int("unidirectional", 1)],
            )
            .numbers()
    };
    near(&of(1), &[4.0]);
    near(&of(2), &[1.0, 2.0]);
    near(&of(3), &[1.0, 2.0, 4.0]);
}

#[test]
fn products_transpose_scale_and_activate() {
    let model = Model::new(17)
        .input("a", Tensor::from_f32(&[2, 1], &[1.0, -2.0]))
        .constant("b", &Tensor::from_f32(&[1, 2], &[3.0, 4.0]))
        .node(
            "com.microsoft::FusedMatMul",
            &["a", "b"],
            &["y"],
            &[int("transA", 1), int("transB", 1), float("alpha", 0.5)],
        );
    near(&model.numbers(), &[-2.5]);
    let model = Model::new(17)
        .input("x", Tensor::from_f32(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, -4.0]))
        .constant("w", &Tensor::from_f32(&[2, 1, 1, 1], &[1.0, -1.0]))
        .node(
            "com.microsoft::FusedConv",
            &["x", "w"],
            &["y"],
            &[
                text("activation", "Clip"),
                crate::frontend::onnx::testing::floats("activation_params", &[-1.0, 2.0]),
            ],
        );
    near(&model.numbers(), &[1.0, 2.0, 2.0, -1.0, -1.0, -1.0, -1.0, 2.0]);
}

#[test]
fn quantised_numbers_are_quantised_again() {
    let model = Model::new(17)
        .input("a", Tensor::from_u8(&[2], &[12, 255]))
        .constant("a_scale", &number(0.5))
        .constant("a_zero", &Tensor::from_u8(&[], &[10]))
        .constant("b", &Tensor::from_u8(&[1], &[4]))
        .constant("b_scale", &number(1.0))
        .constant("y_scale", &number(0.25))
        .node(
            "com.microsoft::QLinearAdd",
            &["a", "a_scale", "a_zero", "b", "b_scale", "", "y_scale", "a_zero"],
            &["y"],
            &[],
        );
    // (1 + 4) / 0.25 + 10, and what is beyond the range.
    near(&model.numbers(), &[30.0, 255.0]);
    let model = Model::new(17)
        .input("x", Tensor::from_f32(&[1, 2], &[0.0, 255.0]))
        .constant("w", &Tensor::from_i8(&[2, 1], &[1, 3]))
        .constant("scale", &number(2.0))
        .constant("bias", &Tensor::from_f32(&[1], &[1.0]))
        .node("com.microsoft::DynamicQuantizeMatMul", &["x", "w", "scale", "", "bias"], &["y"], &[]);
    near(&model.numbers(), &[1531.0]);
}

#[test]
fn channels_may_be_behind() {
    let pool = [ints("kernel_shape", &[1, 2]), int("channels_last", 1)];
    let model = Model::new(17)
        .input("x", Tensor::from_u8(&[1, 1, 2, 2], &[1, 10, 3, 20]))
        .constant("one", &number(1.0))
        .constant("zero", &Tensor::from_u8(&[], &[0]))
        .node("com.microsoft::QLinearAveragePool", &["x", "one", "zero", "one", "zero"], &["y"], &pool);
    near(&model.numbers(), &[2.0, 15.0]);
}

/// Four buckets one way, in a table that lies as its transpose: distances 0 and 1 have their own, those up to 2 and beyond share.
#[test]
fn distances_have_buckets() {
    let model = Model::new(17)
        .constant("table", &Tensor::from_f32(&[4, 2], &[10.0, 11.0, 12.0, 13.0, 20.0, 21.0, 22.0, 23.0]))
        .constant("queries", &Tensor::from_i64(&[], &[4]))
        .constant("keys", &Tensor::from_i64(&[], &[2]))
        .node(
            "com.microsoft::RelativePositionBias",
            &["table", "queries", "keys"],
            &["y"],
            &[int("max_distance", 4)],
        );
    let one = [10.0, 10.0, 11.0, 10.0, 12.0, 11.0, 13.0, 12.0];
    near(&model.numbers(), &[one, one.map(|number| number + 10.0)].concat());
}

#[test]
fn gates_are_limited() {
    let model = Model::new(17)
        .input("gate", Tensor::from_f32(&[2], &[9.0, 0.0]))
        .constant("value", &Tensor::from_f32(&[2], &[-9.0, 1.0]))
        .node(
            "com.microsoft::SwiGLU",
            &["gate", "value"],
            &["y"],
            &[float("limit", 2.0), float("activation_alpha", 0.0), float("activation_beta", 1.0)],
        );
    // 2 * 0.5 * (-2 + 1).
    near(&model.numbers(), &[-1.0, 0.0]);
}

#[test]
fn tables_of_embeddings_are_what_their_numbers_stand_for() {
    let row = |numbers: &[u8]| Tensor::from_u8(&[1, 2], numbers);
    let list = |numbers: &[u8]| Tensor::from_u8(&[2], numbers);
    let operands = [
        ["ids", "", "words", "places", "", "gamma", "beta", ""],
        ["half", "half", "", "half", "half", "ten", "ten", ""],
    ];
    let model = Model::new(17)
        .constant("ids", &Tensor::from_i64(&[1, 1], &[0]))
        .constant("words", &row(&[12, 14]))
        .constant("places", &row(&[10, 12]))
        .constant("gamma", &list(&[14, 14]))
        .constant("beta", &list(&[10, 12]))
        .constant("half", &number(0.5))
        .constant("ten", &Tensor::from_u8(&[], &[10]));
    let inputs = [operands.concat().as_slice(), &["ten", "ten"]].concat();
    near(&model.of_one("com.microsoft::QEmbedLayerNormalization", &inputs, &[]), &[-2.0, 3.0]);
}

#[test]
fn rows_are_gated_scaled_and_compared() {
    let x = Model::new(17).input("x", Tensor::from_f32(&[1, 2], &[3.0, 4.0]));
    let gated = x
        .clone()
        .constant("scale", &Tensor::from_f32(&[2], &[1.0, 2.0]))
        .constant("gate", &Tensor::from_f32(&[1, 2], &[0.0, 0.0]));
    let attributes = [text("activation", "sigmoid"), float("epsilon", 0.0)];
    let found = gated.of_one("com.microsoft::GatedRMSNorm", &["x", "scale", "gate"], &attributes);
    near(&found, &[0.424_264, 1.131_371]);
    let scaled = x.of_one("com.microsoft::ScaledSiLU", &["x"], &[float("alpha", 0.5)]);
    near(&scaled, &[1.226_361, 1.761_594]);
    let other = x.constant("other", &Tensor::from_f32(&[2, 2], &[0.0, 0.0, 3.0, 5.0]));
    let far = other.of_one("com.microsoft::CDist", &["x", "other"], &[text("metric", "euclidean")]);
    near(&far, &[5.0, 1.0]);
}

#[test]
fn a_decoder_asks_with_one_query() {
    let model = Model::new(17)
        .input("q", Tensor::from_f32(&[1, 1, 2], &[1.0, 0.0]))
        .constant("k", &Tensor::from_f32(&[1, 1, 2, 2], &[1.0, 0.0, 0.0, 1.0]))
        .constant("v", &Tensor::from_f32(&[1, 1, 2, 2], &[1.0, 2.0, 3.0, 4.0]));
    let found = model.of_one(
        "com.microsoft::DecoderMaskedMultiHeadAttention",
        &["q", "k", "v"],
        &[int("num_heads", 1), float("scale", 1.0)],
    );
    near(&found, &[1.537_883, 2.537_883]);
}

/// Operators of ONNX Runtime's that the standard has too, in the form of the standard.
#[test]
fn what_the_standard_has_is_the_same() {
    let model = Model::new(9)
        .input("x", Tensor::from_f32(&[2, 2], &[2.0, 0.0, 0.0, 4.0]))
        .constant("amounts", &Tensor::from_i64(&[4], &[0, 1, 0, 0]))
        .constant("fill", &Tensor::from_f32(&[1], &[9.0]));
    let padded = model.of_one("com.microsoft::Pad", &["x", "amounts", "fill"], &[]);
    near(&padded, &[9.0, 2.0, 0.0, 9.0, 0.0, 4.0]);
    near(&model.of_one("com.microsoft::Inverse", &["x"], &[]), &[0.5, 0.0, 0.0, 0.25]);
}
