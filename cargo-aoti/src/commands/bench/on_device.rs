//! Measures runs on a device, with everything there: nothing is copied.

use std::time::{Duration, Instant};

use aoti_runtime::{AnyView, DeviceTensor, DynTensor, Model, ModelInfo, Prepared, Stream};

use super::{MOST_RUNS, is_warm};
use crate::failure::Failure;

/// Prepared runs that are under way at one time where none is waited for before the next.
const DEPTH: usize = 4;
/// Runs back to back whose time is taken as one.
const STREAK: usize = 100;

/// The times of runs that are waited for, in microseconds, at least one; and the time of a run among many back to back.
pub(super) fn measure(
    model: &Model,
    info: &ModelInfo,
    inputs: &[DynTensor],
    limit: Duration,
) -> Result<(Vec<f64>, f64), Failure> {
    let here: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let sizes = model.output_sizes(&here)?;
    let uploaded = inputs.iter().map(|input| model.upload(input)).collect::<Result<Vec<_>, _>>()?;
    let views: Vec<AnyView<'_>> = uploaded.iter().map(DeviceTensor::view).collect();
    let outputs = info.outputs.iter().zip(&sizes);
    let outputs = outputs.map(|(output, sizes)| model.device_tensor(output.dtype, sizes));
    let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
    let mut runs = (0..DEPTH).map(|_| model.prepare(&here, 1)).collect::<Result<Vec<_>, _>>()?;
    let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
    let mut timed = |times: usize, depth: usize| -> Result<f64, Failure> {
        let begun = Instant::now();
        let (runs, state) = (&mut runs[..depth], state.as_mut());
        Prepared::run_back_to_back(runs, &views, &mut outputs, state, Stream::default(), times)?;
        Ok(begun.elapsed().as_nanos() as f64 / 1e3)
    };
    let warm = Instant::now();
    for done in 0.. {
        timed(DEPTH, DEPTH)?;
        if is_warm(done + 1, warm, limit) {
            break;
        }
    }
    let begun = Instant::now();
    let mut micros = Vec::with_capacity(1 << 16);
    while micros.is_empty() || (begun.elapsed() < limit / 2 && micros.len() < MOST_RUNS) {
        micros.push(timed(1, 1)?);
    }
    let (begun, mut streaks) = (Instant::now(), Vec::new());
    while streaks.is_empty() || begun.elapsed() < limit / 2 {
        streaks.push(timed(STREAK, DEPTH)? / STREAK as f64);
    }
    streaks.sort_by(f64::total_cmp);
    Ok((micros, streaks[streaks.len() / 2]))
}
