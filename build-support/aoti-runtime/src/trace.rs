//! What the program tells through the `tracing` crate (feature `tracing`): models that are loaded, runs, and kernels. Without the
//! feature all of this is nothing.
//!
//! The target is `aoti_runtime`. Spans of runs have the level `DEBUG`; kernels have `TRACE`, and are told of only where somebody
//! listens at that level, because runs on GPUs then wait for each of them.

#[cfg(feature = "tracing")]
mod on {
    use std::time::Instant;

    use crate::{KernelEvent, KernelPhase, Model, Verdict};
    use tracing::{Level, debug, debug_span, enabled, info, trace};

    const TARGET: &str = "aoti_runtime";

    /// Lasts as long as what it is about.
    pub(crate) type Span = tracing::span::EnteredSpan;

    pub(crate) fn loaded(model: &Model) {
        if !enabled!(target: TARGET, Level::INFO) {
            return;
        }
        let (info, plan) = (model.info(), model.plan());
        let (level, device) = (plan.level.as_str(), model.device());
        info!(target: TARGET, model = info.name, level, %device, weights_bytes = info.weights_bytes, "loaded a model");
        for candidate in plan.candidates.iter().filter(|candidate| candidate.verdict == Verdict::CannotRun) {
            let (level, reason) = (candidate.name.as_str(), candidate.reason.as_str());
            debug!(target: TARGET, model = info.name, level, reason, "does not run here");
        }
    }

    pub(crate) fn run(model: &Model) -> Span {
        debug_span!(target: TARGET, "run", model = model.info().name).entered()
    }

    pub(crate) fn wants_kernels() -> bool {
        enabled!(target: TARGET, Level::TRACE)
    }

    /// Tells of each kernel when it has ended.
    pub(crate) fn kernels() -> impl FnMut(KernelEvent<'_>) {
        let mut begun = Instant::now();
        move |event| match event.phase {
            KernelPhase::Begin => begun = Instant::now(),
            KernelPhase::End(_) => {
                let us = begun.elapsed().as_secs_f64() * 1e6;
                trace!(target: TARGET, kernel = event.kernel.name, module = event.kernel.module, us, "ran a kernel");
            }
        }
    }
}

#[cfg(not(feature = "tracing"))]
mod on {
    use crate::{KernelEvent, Model};

    pub(crate) struct Span;

    pub(crate) fn loaded(_: &Model) {}

    pub(crate) fn run(_: &Model) -> Span {
        Span
    }

    pub(crate) fn wants_kernels() -> bool {
        false
    }

    pub(crate) fn kernels() -> impl FnMut(KernelEvent<'_>) {
        |_| {}
    }
}

pub(crate) use on::{kernels, loaded, run, wants_kernels};
