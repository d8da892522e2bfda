//! Checkpoints that do not fit: each thing that is wrong is named; and what is not a number is one in no result.

use crate::built::{Built, Checkpoint, outputs};
use aoti_runtime::{DType, DynTensor, ErrorCode, Weights};
use aoti_tests::models;
use aoti_tests::native::{numbers, run_alone};
use safetensors::tensor::Dtype;
use std::fs;

/// Tensors of a checkpoint that each mistake is tried on: some models have hundreds.
const TRIED: usize = 12;

/// What is wrong with a checkpoint, as the library says it.
fn refusal(built: &Built, change: impl FnOnce(&mut Checkpoint)) -> String {
    try_changed(built, change).expect_err("it does not fit")
}

/// What becomes of the checkpoint with a change: the weights, or what the library says against them.
fn try_changed(built: &Built, change: impl FnOnce(&mut Checkpoint)) -> Result<Weights, String> {
    let mut checkpoint = built.checkpoint.clone();
    change(&mut checkpoint);
    built.weights(&checkpoint).map_err(|error| {
        assert_eq!(error.code(), ErrorCode::Weights);
        error.message().to_owned()
    })
}

/// With every number of the checkpoint that may be none.
fn without_numbers(built: &Built) -> Checkpoint {
    let mut checkpoint = built.checkpoint.clone();
    for (_, _, bytes) in checkpoint.values_mut().filter(|(dtype, ..)| *dtype == Dtype::F32) {
        bytes.chunks_exact_mut(4).for_each(|element| element.copy_from_slice(&f32::NAN.to_le_bytes()));
    }
    checkpoint
}

/// Of a model of any kind: tensors that are missing, turned, of another type, or too much, are named; a file that ends early
/// is refused; and numbers that are none are seen in the results. Gives how many changed checkpoints were refused.
pub(crate) fn check_wrong_checkpoints(built: &Built, inputs: &[DynTensor]) -> usize {
    let names: Vec<&String> = built.checkpoint.keys().collect();
    let step = names.len().div_ceil(TRIED);
    let mut refused = 0;
    for name in names.iter().copied().step_by(step) {
        match try_changed(built, |all| drop(all.remove(name))) {
            Err(message) => {
                refused += 1;
                assert_eq!(message, format!("weight `{name}` is missing"));
            }
            // Another name of the same tensor, or nothing that a result depends on.
            Ok(weights) => assert!(weights.as_bytes().unwrap() == built.blob, "`{name}` made a difference"),
        }
        refused += names_it(built, name, |(_, sizes, _)| {
            let before = sizes.clone();
            sizes.reverse();
            *sizes != before
        });
        refused += names_it(built, name, |(dtype, ..)| {
            let is_f32 = *dtype == Dtype::F32;
            *dtype = if is_f32 { Dtype::I32 } else { *dtype };
            is_f32
        });
    }
    let message = refusal(built, |all| drop(all.insert("no.such.weight".to_owned(), all[names[0]].clone())));
    assert!(message.contains("`no.such.weight` is not a weight of the model"), "{message}");
    check_short_files(built);
    check_without_numbers(built, inputs);
    refused
}

/// Changes a tensor; where the change says that it is one, the library must name the tensor.
fn names_it(
    built: &Built,
    name: &String,
    change: impl FnOnce(&mut (Dtype, Vec<usize>, Vec<u8>)) -> bool,
) -> usize {
    let mut is_changed = false;
    let tried = try_changed(built, |all| is_changed = change(all.get_mut(name).expect("it is there")));
    if is_changed {
        let message = tried.expect_err("it does not fit");
        assert!(message.starts_with(&format!("weight `{name}` is ")), "{message}");
    }
    usize::from(is_changed)
}

fn check_short_files(built: &Built) {
    let path = built.file(&built.checkpoint);
    let bytes = fs::read(&path).unwrap();
    for length in [0, 7, 100, bytes.len() / 2, bytes.len() - 1] {
        fs::write(&path, &bytes[..length]).unwrap();
        assert!(Weights::from_safetensors(&path, &built.named.info().unwrap()).is_err(), "{length} bytes");
    }
}

/// The first result depends on every weight in the models that are tried.
fn check_without_numbers(built: &Built, inputs: &[DynTensor]) {
    let results = outputs(&built.model(&without_numbers(built)).unwrap(), inputs).unwrap();
    assert_eq!(results[0].dtype(), DType::F32);
    assert!(results[0].as_slice::<f32>().unwrap().iter().all(|number| number.is_nan()));
}

#[test]
fn what_does_not_fit_is_named_all_at_once() {
    let built = Built::new(&models::digits());
    let names: Vec<String> = built.checkpoint.keys().cloned().collect();
    let (first, last) = (&names[0], &names[names.len() - 1]);
    assert_eq!(refusal(&built, |all| drop(all.remove(first))), format!("weight `{first}` is missing"));
    let message = refusal(&built, |all| {
        let (dtype, sizes, bytes) = all.remove(first).unwrap();
        all.insert("other".to_owned(), (dtype, sizes, bytes));
        let (_, sizes, bytes) = all[last].clone();
        all.insert(last.clone(), (Dtype::I32, sizes, bytes));
    });
    for part in
        ["3 problems", "`other` is not a weight of the model", &format!("weight `{first}` is missing")]
    {
        assert!(message.contains(part), "no `{part}` in: {message}");
    }
    assert!(message.contains(&format!("weight `{last}` is i32 of ")), "{message}");
    let matrix = built.checkpoint.iter().find(|(_, (_, sizes, _))| sizes.len() == 2).unwrap().0;
    let message = refusal(&built, |all| all.get_mut(matrix).unwrap().1.reverse());
    assert!(message.starts_with(&format!("weight `{matrix}` is f32 of [")), "{message}");
    assert!(message.contains(", must be f32 of ["), "{message}");
    check_short_files(&built);
}

#[test]
fn weights_that_are_not_numbers_give_results_that_are_none() {
    let built = Built::new(&models::digits());
    let model = built.model(&without_numbers(&built)).unwrap();
    let output = run_alone(&model, &numbers(&[2, 1, 8, 8], 3)).unwrap();
    assert!(output.as_slice::<f32>().unwrap().iter().all(|number| number.is_nan()), "{output:?}");
}
