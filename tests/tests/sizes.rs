//! One library serves every size that a model's range allows, and refuses the others by name.

use aoti_runtime::{DType, DynTensor, ErrorCode, Model};
use aoti_tests::models;
use aoti_tests::native::{assert_close, load, numbers, reference, run_alone};
use std::path::Path;

/// Batches of so many rows as the interpreter is given at once; it is slow.
const REFERENCE_ROWS: usize = 8;

fn rows(tensor: &DynTensor, from: usize, count: usize) -> DynTensor {
    let all = tensor.as_slice::<f32>().unwrap();
    let row = all.len() / tensor.sizes()[0];
    let bytes: Vec<u8> =
        all[from * row..(from + count) * row].iter().flat_map(|value| value.to_le_bytes()).collect();
    let sizes = [&[count], &tensor.sizes()[1..]].concat();
    DynTensor::from_bytes(DType::F32, &sizes, &bytes).unwrap()
}

/// Rows do not depend on each other, so that the first and the last of a large batch tell of it.
fn check_batch(model: &Model, path: &Path, row: &[usize], batch: usize) {
    let input = numbers(&[&[batch], row].concat(), batch as u64);
    let output = run_alone(model, &input).unwrap();
    assert_eq!(output.sizes()[0], batch);
    let count = batch.min(REFERENCE_ROWS);
    for from in [0, batch - count] {
        let expected = reference(path, &rows(&input, from, count));
        assert_close(rows(&output, from, count).as_slice().unwrap(), &expected);
    }
}

fn check_refusal(model: &Model, row: &[usize], batch: usize, range: &str) {
    let refused = run_alone(model, &numbers(&[&[batch], row].concat(), 0)).unwrap_err();
    let input = &model.info().inputs[0].name;
    assert_eq!(refused.code(), ErrorCode::Range);
    for part in [input.as_str(), "dimension 0", &batch.to_string(), range] {
        assert!(refused.message().contains(part), "no `{part}` in: {refused}");
    }
}

#[test]
fn digits_run_at_every_batch_of_their_range() {
    let path = models::digits();
    let (model, row) = (load("digits", &path), [1, 8, 8]);
    for batch in [1, 7, 8, 64] {
        check_batch(&model, &path, &row, batch);
    }
    check_refusal(&model, &row, 0, "1");
    check_refusal(&model, &row, 65, "64");
}

#[test]
fn an_mlp_runs_at_every_batch_of_its_range() {
    let Some(path) = models::conformance("zoo/mlp_dynamic") else { return };
    let model = load("mlp_dynamic", &path);
    let row: Vec<usize> = model.info().inputs[0].dims[1..].iter().map(|dim| dim.max as usize).collect();
    for batch in [1, 7, 8, 1024] {
        check_batch(&model, &path, &row, batch);
    }
    check_refusal(&model, &row, 0, "1");
    check_refusal(&model, &row, 1025, "1024");
}
