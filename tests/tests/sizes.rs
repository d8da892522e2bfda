//! One library serves every size that a model's range allows, and refuses the others by name.

use aoti_runtime::{DType, DynTensor, Error, ErrorCode, Model};
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

/// What the model gives for a number of rows: the rows, and their sum.
fn repeated(model: &Model, n: i64, sorted: &mut DynTensor) -> Result<Vec<f32>, Error> {
    let n = DynTensor::from_bytes(DType::I64, &[], &n.to_le_bytes())?;
    let x = DynTensor::from_bytes(DType::F32, &[3], &[1f32, -1.0, 0.5].map(f32::to_le_bytes).concat())?;
    let mut total = DynTensor::empty(DType::F32);
    model.run_shared(&[n.view(), x.view()], &mut [sorted, &mut total], None)?;
    Ok(total.as_slice::<f32>().expect("it is f32").to_vec())
}

#[test]
fn sizes_without_a_bound_take_the_memory_that_they_need() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/repeated.aoti");
    let model = load("repeated", &path);
    let mut sorted = DynTensor::empty(DType::F32);
    let unknown = [DynTensor::zeros(DType::I64, &[]).unwrap(), DynTensor::zeros(DType::F32, &[3]).unwrap()];
    let sizes = model.output_sizes(&[unknown[0].view(), unknown[1].view()]).unwrap();
    assert_eq!(sizes, [vec![usize::MAX, 3], vec![3]]);
    for n in [4i64, 0, 100_000, 1] {
        let total = repeated(&model, n, &mut sorted).unwrap();
        assert_eq!(sorted.sizes(), [usize::try_from(n).unwrap(), 3]);
        if n > 0 {
            assert_eq!(sorted.as_slice::<f32>().unwrap()[..3], [n as f32, -1.0, n as f32 / 2.0]);
        }
        let sum = (n * (n + 1) / 2) as f32;
        assert_close(&total, &[sum, -sum, sum / 2.0]);
    }
    // More than an address space has, more than can be counted, and what is no size.
    for (n, code, text) in [
        (1 << 46, ErrorCode::Memory, "out of memory for the tensor"),
        (1 << 47, ErrorCode::Memory, "with k = 140737488355328"),
        (1 << 62, ErrorCode::Memory, "of sizes [k, 3] with k = 4611686018427387904"),
        (-1, ErrorCode::Assert, "must be in 0..="),
    ] {
        let refused = repeated(&model, n, &mut sorted).unwrap_err();
        assert!(refused.code() == code && refused.message().contains(text), "{n}: {refused:?}");
    }
    each_thread_has_its_own(&model);
}

/// Runs of several threads keep what they allocate apart, and a run that finds no memory leaves the model as it was.
fn each_thread_has_its_own(model: &Model) {
    std::thread::scope(|scope| {
        for n in [3i64, 50, 7000] {
            scope.spawn(move || {
                let mut sorted = DynTensor::empty(DType::F32);
                for n in (n..n + 20).chain([1 << 46]) {
                    let done = repeated(model, n, &mut sorted);
                    assert_eq!(done.is_ok(), n < 1 << 46);
                    if done.is_ok() {
                        assert_eq!(sorted.as_slice::<f32>().unwrap()[0], n as f32);
                    }
                }
            });
        }
    });
}
