//! What the service has done, in the text format of Prometheus.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counters since the start.
#[derive(Default, Debug)]
pub(crate) struct Metrics {
    pictures: AtomicU64,
    batches: AtomicU64,
    run_us: AtomicU64,
    refused: AtomicU64,
    rejected: AtomicU64,
}

impl Metrics {
    /// A run of the model.
    pub(crate) fn ran(&self, pictures: usize, time: Duration) {
        self.pictures.fetch_add(pictures as u64, Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.run_us.fetch_add(time.as_micros() as u64, Ordering::Relaxed);
    }

    /// A request that is wrong.
    pub(crate) fn refused(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }

    /// A request that found no place in the queue.
    pub(crate) fn rejected(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn text(&self) -> String {
        let counters = [
            ("classifier_pictures_total", &self.pictures),
            ("classifier_batches_total", &self.batches),
            ("classifier_run_microseconds_total", &self.run_us),
            ("classifier_bad_requests_total", &self.refused),
            ("classifier_busy_total", &self.rejected),
        ];
        let line = |(name, value): (&str, &AtomicU64)| {
            format!("# TYPE {name} counter\n{name} {}\n", value.load(Ordering::Relaxed))
        };
        counters.into_iter().map(line).collect()
    }
}
