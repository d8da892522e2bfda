//! Changed programs that compile, run under sanitizers with inputs of odd sizes and hostile numbers.

use crate::corpus::{Corpus, compiled};
use aoti_runtime::{AnyView, DType, DynTensor, Inline, Model, ValueInfo, Workspace};
use aoti_tests::batch::{self, Processors};
use aoti_tests::child::Turn;
use aoti_tests::mutate::NUMBERS;
use aoti_tests::rng::Rng;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Programs of one library.
const BATCH: usize = 24;
/// Runs of each.
const TRIALS: u64 = 6;
/// Elements of an input.
const MOST_ELEMENTS: i64 = 1 << 14;

/// Runs so many changed programs. The files of every seed are tried until there are enough that compile.
pub(crate) fn run_all(turn: &mut Turn, first: u64, count: u64) {
    let corpus = Corpus::new();
    let compiler = batch::compiler().expect("the parent has seen it");
    let mut programs: Vec<(u64, Bytes)> = Vec::new();
    for number in first..first + count {
        // A seed has a program of its own, wherever a child begins.
        let found = (0..64).find_map(|attempt| {
            let seed = (number << 8) + attempt;
            let (file, _) = corpus.mutant(seed);
            let bundle = turn.guarded(number, || compiled(file.clone())).flatten();
            bundle.map(|_| file)
        });
        programs.extend(found.map(|file| (number, file)));
        if programs.len() == BATCH || number + 1 == first + count {
            check(turn, &compiler, &programs);
            programs.clear();
        }
    }
}

fn check(turn: &mut Turn, compiler: &str, programs: &[(u64, Bytes)]) {
    let Some((seed, _)) = programs.first() else { return };
    let folder = tempfile::tempdir().expect("a folder for the library");
    let models: Vec<Bytes> = programs.iter().map(|(_, file)| file.clone()).collect();
    let build = || batch::build_checked(compiler, &models, Processors::ThisOne, folder.path());
    let models = match turn.untimed(build) {
        Ok(models) => models,
        Err(message) if programs.len() == 1 => return turn.finding(*seed, &message),
        // One that does not compile must not hide the others.
        Err(_) => {
            let (left, right) = programs.split_at(programs.len() / 2);
            check(turn, compiler, left);
            return check(turn, compiler, right);
        }
    };
    for ((seed, _), model) in programs.iter().zip(&models) {
        turn.count("programs run");
        for trial in 0..TRIALS {
            let ended = turn.runs(*seed, || run(model, &mut Rng::new(seed * TRIALS + trial)));
            turn.count(if ended { "runs with results" } else { "runs refused" });
        }
    }
}

/// Whether a run gives results; what they are nobody knows.
fn run(model: &Model, rng: &mut Rng) -> bool {
    let mut sizes = BTreeMap::new();
    let inputs: Option<Vec<DynTensor>> =
        model.info().inputs.iter().map(|info| input(rng, info, &mut sizes)).collect();
    let (Some(inputs), Ok(mut state)) = (inputs, model.state()) else { return false };
    let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let state = (!model.info().states.is_empty()).then_some(&mut state);
    let mut places: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    model.run(&views, &mut places, state, &mut Workspace::new(), &Inline).is_ok()
}

/// An input of sizes that the model states, or nearly; `None` where it would be large.
fn input(rng: &mut Rng, info: &ValueInfo, sizes: &mut BTreeMap<String, i64>) -> Option<DynTensor> {
    let mut shape = Vec::new();
    for dim in &info.dims {
        let chosen = || {
            let near = [dim.min, dim.min.saturating_add(1), dim.max, 3, 8, 17];
            let size = rng.pick(&near);
            if rng.one_in(12) { size } else { size.clamp(dim.min.min(dim.max), dim.max) }
        };
        shape.push(match &dim.expression {
            None => dim.min,
            Some(expression) => *sizes.entry(expression.clone()).or_insert_with(chosen),
        });
    }
    let numel = shape.iter().try_fold(1i64, |numel, size| numel.checked_mul(*size));
    let numel = numel.filter(|numel| (0..=MOST_ELEMENTS).contains(numel))?;
    let is_number = shape.is_empty();
    let data: Vec<u8> = (0..numel).flat_map(|_| element(rng, info.dtype, is_number)).collect();
    let shape: Option<Vec<usize>> = shape.into_iter().map(|size| usize::try_from(size).ok()).collect();
    DynTensor::from_bytes(info.dtype, &shape?, &data).ok()
}

fn element(rng: &mut Rng, dtype: DType, is_number: bool) -> Vec<u8> {
    let hostile = rng.one_in(if is_number { 2 } else { 16 });
    let whole = if hostile { rng.pick(&NUMBERS) } else { rng.between(-3, 9) };
    let number = match rng.below(40) {
        0 => f64::NAN,
        1 => f64::INFINITY,
        _ => whole as f64 / 2.0,
    };
    match dtype {
        DType::Bool => vec![u8::from(whole & 1 == 1)],
        DType::U8 | DType::I8 => vec![whole as u8],
        DType::I16 => (whole as i16).to_le_bytes().to_vec(),
        DType::I32 => (whole as i32).to_le_bytes().to_vec(),
        DType::I64 => whole.to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f64(number).to_le_bytes().to_vec(),
        DType::Bf16 => half::bf16::from_f64(number).to_le_bytes().to_vec(),
        DType::F32 => (number as f32).to_le_bytes().to_vec(),
        DType::F64 => number.to_le_bytes().to_vec(),
    }
}
