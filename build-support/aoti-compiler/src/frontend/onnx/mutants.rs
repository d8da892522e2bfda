//! Files that are broken at random are refused, and nothing worse: no panic, no endless loop, no memory without bound.

use super::proto::{GraphProto, ModelProto, TensorProto};
use super::testing::{Model, float, floats, int, ints, text, texts};
use super::{external_files, import};
use crate::frontend::torch::custom::Operators;
use crate::frontend::{MinSize, ModelFile};
use crate::interpret::Tensor;
use bytes::Bytes;
use prost::Message;

/// Models with a part of everything: weights, shapes that are computed, attributes of all kinds.
fn models() -> Vec<Vec<u8>> {
    let row = |values: &[f32]| Tensor::from_f32(&[values.len()], values);
    let image = Tensor::from_f32(&[1, 2, 4, 4], &[0.5; 32]);
    let weight = Tensor::from_f32(&[3, 2, 3, 3], &[0.25; 54]);
    let convolution = Model::new(17)
        .input("x", image)
        .constant("w", &weight)
        .node("Conv", &["x", "w"], &["c"], &[ints("pads", &[1, 1, 1, 1]), int("group", 1)])
        .node("Relu", &["c"], &["r"], &[])
        .node("MaxPool", &["r"], &["p"], &[ints("kernel_shape", &[2, 2]), text("auto_pad", "SAME_UPPER")])
        .node("Shape", &["p"], &["s"], &[int("start", 0), int("end", 2)])
        .node("ConstantOfShape", &["s"], &["z"], &[])
        .node("Flatten", &["p"], &["y"], &[int("axis", 1)]);
    let arithmetic = Model::new(13)
        .input("x", row(&[1.0, 2.0, 3.0]))
        .constant("k", &Tensor::from_i64(&[1], &[2]))
        .node("TopK", &["x", "k"], &["v", "i"], &[int("largest", 0)])
        .node("Gather", &["x", "i"], &["g"], &[int("axis", 0)])
        .node("LeakyRelu", &["g"], &["l"], &[float("alpha", 0.1)])
        .node("Concat", &["l", "v"], &["y"], &[int("axis", 0)]);
    let all = [convolution, arithmetic, bodies(), sequences(), quantized(), trees()];
    all.iter().map(|model| model.file(&["y"])).collect()
}

/// A loop, a scan and a branch, which see what is around them.
fn bodies() -> Model {
    let row = |values: &[f32]| Tensor::from_f32(&[values.len()], values);
    let step = Model::new(16)
        .input("i", Tensor::from_i64(&[], &[0]))
        .input("go", Tensor::from_bool(&[], &[true]))
        .input("sum", row(&[1.0]))
        .node("Add", &["sum", "x"], &["next"], &[])
        .node("Identity", &["go"], &["again"], &[]);
    let each = Model::new(16)
        .input("state", Tensor::from_f32(&[], &[0.0]))
        .input("element", Tensor::from_f32(&[], &[0.0]))
        .node("Max", &["state", "element"], &["most"], &[]);
    let negated = Model::new(16).node("Neg", &["most"], &["own"], &[]);
    let same = Model::new(16).node("Identity", &["most"], &["own"], &[]);
    Model::new(16)
        .input("x", row(&[1.0, -2.0, 3.0]))
        .input("n", Tensor::from_i64(&[], &[2]))
        .constant("zero", &Tensor::from_f32(&[], &[0.0]))
        .node("Loop", &["n", "", "x"], &["sum", "steps"], &[step.body("body", &["again", "next", "next"])])
        .node(
            "Scan",
            &["zero", "sum"],
            &["most", "all"],
            &[each.body("body", &["most", "most"]), int("num_scan_inputs", 1)],
        )
        .node("Greater", &["most", "zero"], &["c"], &[])
        .node(
            "If",
            &["c"],
            &["y"],
            &[negated.body("then_branch", &["own"]), same.body("else_branch", &["own"])],
        )
}

/// Sequences, parts and sizes that follow from others.
fn sequences() -> Model {
    Model::new(18)
        .fixed_input("x", Tensor::from_f32(&[6, 2], &[0.5; 12]))
        .constant("parts", &Tensor::from_i64(&[3], &[1, 2, 3]))
        .constant("sizes", &Tensor::from_i64(&[2], &[-1, 4]))
        .node("SplitToSequence", &["x", "parts"], &["all"], &[int("axis", 0)])
        .node("SequenceInsert", &["all", "x"], &["more"], &[])
        .node("ConcatFromSequence", &["more"], &["joined"], &[int("axis", 0)])
        .node("Reshape", &["joined", "sizes"], &["shaped"], &[int("allowzero", 0)])
        .node("Einsum", &["shaped", "shaped"], &["product"], &[text("equation", "ij,kj->ik")])
        .node("ReduceLogSumExp", &["product"], &["reduced"], &[int("keepdims", 1)])
        .node("Tile", &["reduced", "two_axes"], &["tiled"], &[])
        .constant("two_axes", &Tensor::from_i64(&[2], &[2, 3]))
        .node("Slice", &["shaped", "one", "two"], &["y"], &[])
        .constant("one", &Tensor::from_i64(&[1], &[1]))
        .constant("two", &Tensor::from_i64(&[1], &[2]))
}

/// Quantised numbers, a recurrent layer and a resized image.
fn quantized() -> Model {
    let scale = Tensor::from_f32(&[], &[0.1]);
    let weights = |rows: usize| Tensor::from_f32(&[1, 8, rows], &vec![0.1; 8 * rows]);
    Model::new(19)
        .fixed_input("x", Tensor::from_f32(&[3, 1, 2], &[0.5; 6]))
        .constant("scale", &scale)
        .constant("w", &weights(2))
        .constant("r", &weights(2))
        .constant("factors", &Tensor::from_f32(&[3], &[1.0, 2.0, 1.5]))
        .node("QuantizeLinear", &["x", "scale"], &["q"], &[int("axis", 1)])
        .node("DequantizeLinear", &["q", "scale"], &["d"], &[])
        .node("LSTM", &["d", "w", "r"], &["all", "h", "c"], &[int("hidden_size", 2)])
        .node("Squeeze", &["h"], &["flat"], &[])
        .node("Resize", &["x", "", "factors"], &["large"], &[text("mode", "linear")])
        .node("ReduceMax", &["large"], &["most"], &[int("keepdims", 0)])
        .node("Mul", &["flat", "most"], &["y"], &[])
}

/// A tree of two leaves.
fn trees() -> Model {
    Model::new(18).fixed_input("x", Tensor::from_f32(&[2, 2], &[0.5; 4])).node(
        "ai.onnx.ml::TreeEnsembleRegressor",
        &["x"],
        &["y"],
        &[
            ints("nodes_treeids", &[0, 0, 0]),
            ints("nodes_nodeids", &[0, 1, 2]),
            ints("nodes_featureids", &[1, 0, 0]),
            texts("nodes_modes", &["BRANCH_LEQ", "LEAF", "LEAF"]),
            floats("nodes_values", &[1.0, 0.0, 0.0]),
            ints("nodes_truenodeids", &[1, 0, 0]),
            ints("nodes_falsenodeids", &[2, 0, 0]),
            ints("target_treeids", &[0, 0]),
            ints("target_nodeids", &[1, 2]),
            ints("target_ids", &[0, 0]),
            floats("target_weights", &[10.0, 20.0]),
            int("n_targets", 1),
        ],
    )
}

/// Numbers that are the same in every run.
struct Draw(u64);

impl Draw {
    fn next(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % below.max(1)
    }

    fn mutant(&mut self, file: &[u8]) -> Vec<u8> {
        let mut file = file.to_vec();
        for _ in 0..=self.next(3) {
            if file.is_empty() {
                break;
            }
            let at = self.next(file.len());
            match self.next(5) {
                0 => file[at] = u8::try_from(self.next(256)).unwrap(),
                1 => file[at] ^= 1 << self.next(8),
                2 => file.truncate(at.max(1)),
                3 => {
                    let part = file[at..(at + 1 + self.next(16)).min(file.len())].to_vec();
                    let to = self.next(file.len());
                    file.splice(to..to, part);
                }
                _ => drop(file.drain(at..(at + 1 + self.next(8)).min(file.len()))),
            }
        }
        file
    }
}

fn read(file: &[u8]) {
    let file = Bytes::copy_from_slice(file);
    let _ = external_files(file.clone());
    for min in [MinSize::Lowered(0), MinSize::Stated] {
        let _ = import(min, "mutant", &ModelFile::from(file.clone()), &Operators::default());
    }
}

#[test]
fn broken_files_are_refused() {
    let count = std::env::var("AOTI_MUTANTS").ok().and_then(|count| count.parse().ok()).unwrap_or(3000);
    let models = models();
    for model in &models {
        let file = ModelFile::from(model.clone());
        import(MinSize::Lowered(0), "whole", &file, &Operators::default()).unwrap();
    }
    let mut draw = Draw(7);
    for number in 0..count {
        let model = &models[number % models.len()];
        read(&draw.mutant(model));
    }
}

#[test]
fn sizes_beyond_all_memory_are_refused() {
    let tensor = TensorProto {
        dims: vec![i64::MAX, i64::MAX],
        data_type: Some(1),
        name: Some("w".to_owned()),
        ..TensorProto::default()
    };
    for dims in [vec![i64::MAX, i64::MAX], vec![-1], vec![1 << 40, 1 << 40], vec![1 << 46]] {
        let initializer = vec![TensorProto { dims, ..tensor.clone() }];
        let graph = GraphProto { initializer, ..GraphProto::default() };
        let model = ModelProto { ir_version: Some(8), graph: Some(graph), ..ModelProto::default() };
        let file = ModelFile::from(model.encode_to_vec());
        let refused = import(MinSize::Stated, "m", &file, &Operators::default());
        assert!(refused.unwrap_err().to_string().contains("tensor `w`"));
    }
}

#[test]
fn bodies_that_give_too_little_are_refused() {
    let truth = Tensor::from_bool(&[], &[true]);
    let step = Model::new(16)
        .input("i", Tensor::from_i64(&[], &[0]))
        .input("go", truth.clone())
        .input("sum", Tensor::from_f32(&[1], &[0.0]))
        .node("Identity", &["go"], &["again"], &[]);
    let short = step.body("body", &["again"]);
    let looped = Model::new(16)
        .input("x", Tensor::from_f32(&[1], &[1.0]))
        .input("n", Tensor::from_i64(&[], &[2]))
        .node("Loop", &["n", "", "x"], &["y"], &[short]);
    let message = looped.import(&["y"]).unwrap_err().to_string();
    assert!(message.contains("a body of 1 outputs carries 1 values"), "{message}");
    let empty = Model::new(16).input("s", truth.clone()).input("e", truth).body("body", &[]);
    let rows = Tensor::from_bool(&[3], &[true; 3]);
    let scanned = Model::new(16).input("x", rows).node(
        "Scan",
        &["x", "x"],
        &["y"],
        &[empty, int("num_scan_inputs", 1)],
    );
    let message = scanned.import(&["y"]).unwrap_err().to_string();
    assert!(message.contains("the body gives too little"), "{message}");
}

#[test]
fn numbers_out_of_proportion_are_refused() {
    let refused = |model: Model, expected: &str| {
        let message = model.import(&["y"]).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    let x = || Model::new(23).fixed_input("x", Tensor::from_f32(&[1, 2, 4], &[0.0; 8]));
    refused(x().node("Split", &["x"], &["y"], &[int("num_outputs", i64::MAX)]), "for 1 results");
    let least = Tensor::from_i64(&[3], &[1, i64::MIN, 1]);
    refused(x().constant("times", &least).node("Tile", &["x", "times"], &["y"], &[]), "negative");
    let matrix = x().constant("w", &Tensor::from_f32(&[2, 2], &[0.0; 4]));
    refused(matrix.node("ConvTranspose", &["x", "w"], &["y"], &[]), "a window of 0 axes in a tensor of 1");
    let floats = x().input("sizes", Tensor::from_f32(&[2], &[2.0, 2.0]));
    refused(floats.node("Col2Im", &["x", "sizes", "sizes"], &["y"], &[]), "sizes are integers");
    let axes = Tensor::from_i64(&[4], &[0, 1, 2, 0]);
    refused(
        x().fixed_input("axes", axes).node("ReduceSum", &["x", "axes"], &["y"], &[]),
        "4 axes of a tensor",
    );
    let shape = Tensor::from_i64(&[65], &[1; 65]);
    refused(x().fixed_input("shape", shape).node("Reshape", &["x", "shape"], &["y"], &[]), "number of axes");
    let row = x().fixed_input("row", Tensor::from_f32(&[4], &[0.0; 4]));
    refused(row.node("Attention", &["row", "x", "x"], &["y"], &[]), "three axes or four");
    let pool = [ints("pool_int64s", &[1]), ints("ngram_counts", &[0]), ints("ngram_indexes", &[i64::MAX])];
    refused(x().node("TfIdfVectorizer", &["x"], &["y"], &pool), "");
    let many = x().fixed_input("six", Tensor::from_i64(&[6], &[1; 6]));
    refused(many.node("Col2Im", &["x", "six", "six"], &["y"], &[]), "more than 5 axes");
}
