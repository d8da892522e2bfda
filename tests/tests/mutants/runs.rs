//! Changed programs that compile, run under sanitizers with inputs of odd sizes and hostile numbers.

use crate::corpus::{Corpus, compiled};
use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_runtime::{AnyView, DType, DynTensor, Inline, Model, ValueInfo, Workspace};
use aoti_tests::batch::{self, Processors};
use aoti_tests::child::Turn;
use aoti_tests::mutate::NUMBERS;
use aoti_tests::rng::Rng;
use bytes::Bytes;
use std::collections::BTreeMap;

/// Programs of one library.
const BATCH: u64 = 24;
/// Runs of each.
const TRIALS: u64 = 6;
/// Elements of an input.
const MOST_ELEMENTS: i64 = 1 << 14;

/// Runs so many changed programs.
pub(crate) fn run_all(turn: &mut Turn, first: u64, count: u64) {
    let corpus = Corpus::new();
    let compiler = batch::compiler().expect("the parent has seen it");
    for batch in turn.batches(first, first + count, BATCH) {
        // A run that does not end takes its process along. The next one finds the library, and goes on behind that program.
        let programs: Vec<(u64, Bytes)> = batch
            .filter_map(|seed| {
                let guarded = |file: Bytes| turn.guarded(seed, || compiled(file)).flatten();
                let tried = |file: Bytes| if seed < first { compiled(file) } else { guarded(file) };
                Some((seed, program(&corpus, seed, tried)?))
            })
            .collect();
        check(turn, &compiler, &programs, first);
    }
}

/// The program of a seed: the first of its own changed files that compiles.
fn program(corpus: &Corpus, seed: u64, compiled: impl Fn(Bytes) -> Option<SourceBundle>) -> Option<Bytes> {
    let files = (0..64).map(|attempt| corpus.mutant((seed << 8) + attempt).0);
    files.into_iter().find(|file| compiled(file.clone()).is_some())
}

fn check(turn: &Turn, compiler: &str, programs: &[(u64, Bytes)], first: u64) {
    let Some((seed, _)) = programs.first() else { return };
    let name = format!("{seed}-{}", programs.len());
    let built = turn.in_folder(&name, |folder| {
        let models: Vec<Bytes> = programs.iter().map(|(_, file)| file.clone()).collect();
        let build = || batch::build_checked(compiler, &models, Processors::ThisOne, folder);
        let models = turn.untimed(build)?;
        let own = programs.iter().zip(&models).filter(|((seed, _), _)| *seed >= first);
        for ((seed, _), model) in own {
            turn.count("programs run");
            for trial in 0..TRIALS {
                let ended = turn.runs(*seed, || run(model, &mut Rng::new(seed * TRIALS + trial)));
                turn.count(if ended { "runs with results" } else { "runs refused" });
            }
        }
        Ok::<(), String>(())
    });
    match built {
        Ok(()) => {}
        Err(message) if programs.len() == 1 => turn.finding(*seed, &message),
        // One that does not compile must not hide the others.
        Err(_) => {
            let (left, right) = programs.split_at(programs.len() / 2);
            check(turn, compiler, left, first);
            check(turn, compiler, right, first);
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
        DType::U16 => (whole as u16).to_le_bytes().to_vec(),
        DType::U32 => (whole as u32).to_le_bytes().to_vec(),
        DType::U64 => (whole as u64).to_le_bytes().to_vec(),
        DType::F8E4M3Fn | DType::F8E5M2 | DType::F8E4M3Fnuz | DType::F8E5M2Fnuz | DType::F8E8M0Fnu => {
            vec![whole as u8]
        }
        DType::C32 => [half::f16::from_f64(number), half::f16::ONE].map(half::f16::to_le_bytes).concat(),
        DType::C64 => [number as f32, 1.0].map(f32::to_le_bytes).concat(),
        DType::C128 => [number, 1.0].map(f64::to_le_bytes).concat(),
    }
}
