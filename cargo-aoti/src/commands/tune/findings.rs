//! What is found of kernels, from one decision to the next.

use std::collections::BTreeMap;

use aoti_build::Record;
use aoti_compiler::schedule::{Records, Setting, TuningKey};

/// What is found of kernels at all points: records, and a way where there is none.
#[derive(Default)]
pub(super) struct Findings(BTreeMap<TuningKey, (Vec<Record>, Option<Setting>)>);

impl Findings {
    pub(super) fn record(&mut self, key: &TuningKey, record: Record) {
        self.0.entry(key.clone()).or_default().0.push(record);
    }

    pub(super) fn way(&mut self, key: &TuningKey, setting: &Setting) {
        self.0.entry(key.clone()).or_default().1 = Some(setting.clone());
    }

    /// Decides for what is best at all points.
    pub(super) fn settle(self, decided: &mut Records) {
        for (key, (records, way)) in self.0 {
            let records: Vec<&Record> = records.iter().collect();
            let best = if records.is_empty() { way } else { Some(Record::best(&records).clone()) };
            best.into_iter().for_each(|best| decided.set(key.clone(), best));
        }
    }
}
