//! Measures runs on a device, with everything there: nothing is copied.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aoti_compiler::loops::work::Work;
use aoti_runtime::{AnyView, DType, DeviceTensor, DynTensor, Model, ModelInfo, Prepared, Stream};

use super::profile::{Limit, Profile, repeated};
use super::{MOST_RUNS, is_warm};
use crate::failure::Failure;
use aoti_tune::tensors::room;

/// Prepared runs that are under way at one time where none is waited for before the next.
const DEPTH: usize = 4;
/// Runs back to back whose time is taken as one.
const STREAK: usize = 100;

/// Bytes of the copy that tells how fast the device's memory is: several times its caches.
const COPY_BYTES: usize = 256 << 20;
/// Copies of which the fastest counts.
const COPIES: usize = 10;

/// What was measured, in microseconds.
pub(super) struct Measured {
    /// The times of runs that are waited for; at least one.
    pub(super) micros: Vec<f64>,
    /// The time of a run among many back to back.
    pub(super) stream: f64,
    /// The median of runs that are waited for and have other inputs and outputs than the run before them.
    pub(super) moved: f64,
}

impl Measured {
    /// The times of runs that are waited for, and the others.
    pub(super) fn apart(self) -> (Vec<f64>, Option<(f64, f64)>) {
        (self.micros, Some((self.stream, self.moved)))
    }
}

/// Inputs and outputs where the model runs.
struct Tensors<'m> {
    inputs: Vec<DeviceTensor<'m>>,
    outputs: Vec<DeviceTensor<'m>>,
}

impl<'m> Tensors<'m> {
    fn new(model: &'m Model, info: &ModelInfo, inputs: &[DynTensor]) -> Result<Tensors<'m>, Failure> {
        let sizes = room::for_outputs(model, inputs)?;
        let inputs = inputs.iter().map(|input| model.upload(input)).collect::<Result<_, _>>()?;
        let outputs = info.outputs.iter().zip(&sizes);
        let outputs = outputs.map(|(output, sizes)| model.device_tensor(output.dtype, sizes));
        Ok(Tensors { inputs, outputs: outputs.collect::<Result<_, _>>()? })
    }
}

fn views(inputs: &[DynTensor]) -> Vec<AnyView<'_>> {
    inputs.iter().map(DynTensor::view).collect()
}

/// Times runs.
pub(super) fn measure(
    model: &Model,
    info: &ModelInfo,
    inputs: &[DynTensor],
    limit: Duration,
) -> Result<Measured, Failure> {
    let mut sets = [Tensors::new(model, info, inputs)?, Tensors::new(model, info, inputs)?];
    let mut runs = (0..DEPTH).map(|_| model.prepare(&views(inputs), 1)).collect::<Result<Vec<_>, _>>()?;
    let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
    let mut timed = |set: usize, times: usize, depth: usize| -> Result<f64, Failure> {
        let Tensors { inputs, outputs } = &mut sets[set];
        let views: Vec<AnyView<'_>> = inputs.iter().map(DeviceTensor::view).collect();
        let begun = Instant::now();
        let (runs, state) = (&mut runs[..depth], state.as_mut());
        Prepared::run_back_to_back(runs, &views, outputs, state, Stream::default(), times)?;
        Ok(begun.elapsed().as_nanos() as f64 / 1e3)
    };
    let warm = Instant::now();
    for done in 0.. {
        timed(0, DEPTH, DEPTH)?;
        if is_warm(done + 1, warm, limit) {
            break;
        }
    }
    let begun = Instant::now();
    let mut micros = Vec::with_capacity(1 << 16);
    while micros.is_empty() || (begun.elapsed() < limit / 2 && micros.len() < MOST_RUNS) {
        micros.push(timed(0, 1, 1)?);
    }
    let (begun, mut streaks) = (Instant::now(), Vec::new());
    while streaks.is_empty() || begun.elapsed() < limit / 2 {
        streaks.push(timed(0, STREAK, DEPTH)? / STREAK as f64);
    }
    let (begun, mut moved) = (Instant::now(), Vec::new());
    while moved.is_empty() || (begun.elapsed() < limit / 4 && moved.len() < MOST_RUNS) {
        moved.push(timed(1 - moved.len() % 2, 1, 1)?);
    }
    streaks.sort_by(f64::total_cmp);
    moved.sort_by(f64::total_cmp);
    Ok(Measured { micros, stream: streaks[streaks.len() / 2], moved: moved[moved.len() / 2] })
}

/// The time of each kernel, by the device's clock.
pub(super) fn profile<'m>(
    model: &'m Model,
    info: &ModelInfo,
    inputs: &[DynTensor],
    limit: Duration,
    work: &BTreeMap<String, Option<Work>>,
) -> Result<Profile<'m>, Failure> {
    let Tensors { inputs: uploaded, mut outputs } = Tensors::new(model, info, inputs)?;
    let mut run = model.prepare(&views(inputs), 1)?;
    let views: Vec<AnyView<'_>> = uploaded.iter().map(DeviceTensor::view).collect();
    let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
    let profile = repeated(&model.info().kernels, limit, work, &mut |times| {
        let mut tell = |kernel: usize, micros: f64| times.add(kernel, micros);
        run.run_timed(&views, &mut outputs, state.as_mut(), Stream::default(), &mut tell)?;
        Ok(())
    })?;
    Ok(profile.against(Limit::Copy(copy_rate(model).map_err(|error| error.to_string()))))
}

/// Billions of bytes that a large copy reads and writes in a second.
fn copy_rate(model: &Model) -> Result<f64, aoti_runtime::Error> {
    let from = model.device_tensor(DType::U8, &[COPY_BYTES])?;
    let mut to = model.device_tensor(DType::U8, &[COPY_BYTES])?;
    let mut least = Duration::MAX;
    for _ in 0..COPIES {
        let begun = Instant::now();
        to.copy_from(&from)?;
        least = least.min(begun.elapsed());
    }
    Ok(2.0 * COPY_BYTES as f64 / least.as_nanos().max(1) as f64)
}
