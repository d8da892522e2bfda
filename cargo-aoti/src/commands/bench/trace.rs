//! What one run did and when: kernels, and the parts of their loops on each thread. As Chrome's and Perfetto's trace viewers
//! read it, and for pictures.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aoti_runtime::{AnyView, DynTensor, Executor, KernelEvent, KernelInfo, KernelPhase, Model, Workspace};
use serde_json::{Value, json};

use crate::failure::Failure;

/// Runs of which the middle one is shown.
const RUNS: usize = 15;
/// Runs before those.
const WARM_UPS: usize = 3;

/// A span of time, in microseconds from the beginning of the run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Span {
    /// The position of the kernel.
    pub(super) kernel: usize,
    /// The thread that ran a part of it; none for the kernel as a whole.
    pub(super) thread: Option<usize>,
    pub(super) from: f64,
    pub(super) to: f64,
}

/// One run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Trace {
    /// In the order in which they ended.
    pub(super) spans: Vec<Span>,
    pub(super) threads: usize,
    pub(super) micros: f64,
}

/// Notes when the parts of loops run.
struct Recorder<'a> {
    inner: &'a dyn Executor,
    begun: Instant,
    parts: Mutex<Vec<(usize, f64, f64)>>,
}

impl Recorder<'_> {
    fn now(&self) -> f64 {
        self.begun.elapsed().as_nanos() as f64 / 1e3
    }
}

// SAFETY: parts and workers are those of the executor inside, which keeps what the trait asks for; noting a time in between
// calls nothing and changes neither.
unsafe impl Executor for Recorder<'_> {
    fn threads(&self) -> usize {
        self.inner.threads()
    }

    fn fork_join(&self) -> Option<Duration> {
        self.inner.fork_join()
    }

    fn parallel_for(&self, n: i64, body: &(dyn Fn(Range<i64>, usize) + Sync)) {
        self.inner.parallel_for(n, &|part, worker| {
            let from = self.now();
            body(part, worker);
            let to = self.now();
            self.parts.lock().unwrap_or_else(PoisonError::into_inner).push((worker, from, to));
        });
    }
}

/// Records runs on processors, and gives one of middle length.
pub(super) fn record(
    model: &Model,
    views: &[AnyView<'_>],
    executor: &dyn Executor,
) -> Result<Trace, Failure> {
    let info = model.info();
    let mut outputs: Vec<DynTensor> =
        info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    let (mut workspace, mut traces) = (Workspace::new(), Vec::new());
    for round in 0..WARM_UPS + RUNS {
        let mut state = if info.state_bytes > 0 { Some(model.state()?) } else { None };
        let recorder = Recorder { inner: executor, begun: Instant::now(), parts: Mutex::default() };
        let (mut spans, mut since) = (Vec::new(), 0.0);
        let mut watch = |event: KernelEvent<'_>| match event.phase {
            KernelPhase::Begin => since = recorder.now(),
            KernelPhase::End(_) => {
                let (kernel, to) = (event.index, recorder.now());
                let mut parts = recorder.parts.lock().unwrap_or_else(PoisonError::into_inner);
                let part = |(thread, from, to)| Span { kernel, thread: Some(thread), from, to };
                spans.extend(parts.drain(..).map(part));
                spans.push(Span { kernel, thread: None, from: since, to });
            }
        };
        model.run_watched(views, &mut targets, state.as_mut(), &mut workspace, &recorder, &mut watch)?;
        if round >= WARM_UPS {
            traces.push(Trace { spans, threads: executor.threads(), micros: recorder.now() });
        }
    }
    traces.sort_by(|a, b| a.micros.total_cmp(&b.micros));
    Ok(traces.swap_remove(RUNS / 2))
}

impl Trace {
    /// Of a device, whose kernels run one after the other: these times, in microseconds.
    pub(super) fn of_times(times: impl Iterator<Item = f64>) -> Trace {
        let (mut spans, mut now) = (Vec::new(), 0.0);
        for (kernel, micros) in times.enumerate() {
            spans.push(Span { kernel, thread: None, from: now, to: now + micros });
            now += micros;
        }
        Trace { spans, threads: 0, micros: now }
    }

    /// In the format of Chrome's trace viewer.
    pub(super) fn chrome(&self, model: &str, kernels: &[KernelInfo]) -> Value {
        const KERNELS: usize = 0;
        let named = |tid: usize, name: String| json!({ "ph": "M", "name": "thread_name", "pid": 1, "tid": tid, "args": { "name": name } });
        let mut events = vec![
            json!({ "ph": "M", "name": "process_name", "pid": 1, "args": { "name": model } }),
            named(KERNELS, "kernels".to_owned()),
        ];
        events.extend((0..self.threads).map(|thread| named(thread + 1, format!("thread {thread}"))));
        events.extend(self.spans.iter().filter_map(|span| {
            let kernel = kernels.get(span.kernel)?;
            Some(json!({
                "ph": "X", "name": kernel.name, "cat": if span.thread.is_some() { "part" } else { "kernel" },
                "pid": 1, "tid": span.thread.map_or(KERNELS, |thread| thread + 1),
                "ts": span.from, "dur": span.to - span.from,
                "args": { "source": kernel.source, "module": kernel.module, "calls": kernel.calls },
            }))
        }));
        json!({ "traceEvents": events, "displayTimeUnit": "ns" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aoti_runtime::ThreadPool;

    #[test]
    fn parts_of_loops_are_noted_with_their_threads() {
        let pool = ThreadPool::new(2);
        let recorder = Recorder { inner: &pool, begun: Instant::now(), parts: Mutex::default() };
        let sum = std::sync::atomic::AtomicI64::new(0);
        recorder.parallel_for(100, &|part, _| {
            sum.fetch_add(part.sum::<i64>(), std::sync::atomic::Ordering::Relaxed);
        });
        assert_eq!(sum.into_inner(), 4950);
        let parts = recorder.parts.into_inner().unwrap();
        assert!(!parts.is_empty() && parts.iter().all(|(worker, from, to)| *worker < 2 && from <= to));
    }

    #[test]
    fn viewers_are_given_complete_events() {
        let kernel = KernelInfo {
            name: "k".to_owned(),
            calls: Vec::new(),
            source: vec!["m.py:3".to_owned()],
            module: String::new(),
            outputs: Vec::new(),
        };
        let trace = Trace::of_times([2.0, 3.0].into_iter());
        let events = trace.chrome("net", &[kernel.clone(), kernel]);
        let all = events["traceEvents"].as_array().unwrap();
        let complete: Vec<&Value> = all.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!((&complete[1]["ts"], &complete[1]["dur"]), (&json!(2.0), &json!(3.0)));
        assert_eq!(complete[0]["args"]["source"][0], "m.py:3");
    }
}
