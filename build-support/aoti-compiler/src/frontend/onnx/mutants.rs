//! Files that are broken at random are refused, and nothing worse: no panic, no endless loop, no memory without bound.

use super::proto::{GraphProto, ModelProto, TensorProto};
use super::tensors::Beside;
use super::testing::{Model, float, int, ints, text};
use super::{external_files, import};
use crate::frontend::MinSize;
use crate::frontend::torch::custom::Operators;
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
    [convolution, arithmetic].iter().map(|model| model.file(&["y"])).collect()
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
        let _ = import(min, "mutant", file.clone(), Beside::new(), &Operators::default());
    }
}

#[test]
fn broken_files_are_refused() {
    let count = std::env::var("AOTI_MUTANTS").ok().and_then(|count| count.parse().ok()).unwrap_or(3000);
    let models = models();
    for model in &models {
        let file = Bytes::from(model.clone());
        import(MinSize::Lowered(0), "whole", file, Beside::new(), &Operators::default()).unwrap();
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
        let file = Bytes::from(model.encode_to_vec());
        let refused = import(MinSize::Stated, "m", file, Beside::new(), &Operators::default());
        assert!(refused.unwrap_err().to_string().contains("tensor `w`"));
    }
}
