//! What can be decided in more than one way where nobody knows for sure which is faster: a question has a key, by which
//! records answer it, and answers, of which the first is the default.
//!
//! Stages ask where they decide: how long sums are split and how values are laid out in memory before there are kernels, which
//! kernels become one and how each of them runs afterwards. What is asked is noted, so that it can be measured. A record
//! with an answer that a question does not have is passed over: records never make a wrong build. Measures nothing.

mod config;
mod key;
#[cfg(test)]
mod tests;

pub use config::Config;
pub use key::TuningKey;
pub(crate) use key::{Roles, kind_of};

use crate::cost::{Cost, CostModel, MachineInfo, WorkKind, WorkSplit};
use std::collections::BTreeMap;

/// What can be decided in more than one way.
#[derive(Clone, PartialEq, Debug)]
pub struct TuningPoint {
    /// What records know it by.
    pub key: TuningKey,
    /// The sizes that the key leaves open: positions among the symbols of the program.
    pub sizes: Vec<usize>,
    /// What it is about, for people.
    pub about: String,
    /// What can be done; the first is done without a record.
    pub answers: Vec<Alternative>,
    /// The position of what is done.
    pub taken: usize,
}

/// One answer to a question.
#[derive(Clone, PartialEq, Debug)]
pub struct Alternative {
    /// What is done.
    pub config: Config,
    /// What that is thought to cost; only ratios between the answers to one question mean anything.
    pub cost: Cost,
    /// Whether it has nothing to offer beside another answer but work for more threads.
    pub is_shared: bool,
    /// How threads share the work, where that is known.
    pub shares: Option<WorkSplit>,
}

impl Alternative {
    /// An answer that is worth trying on one thread, too.
    pub fn new(config: impl Into<Config>, cost: Cost) -> Alternative {
        Alternative { config: config.into(), cost, is_shared: false, shares: None }
    }

    /// The work that one of the threads does: its part, and sharing it.
    pub fn work_on(&self, facts: MachineInfo) -> Cost {
        let busy = self.shares.map_or(facts.threads() as f64, |shares| shares.busy(facts));
        let is_shared = busy > 1.0 && self.cost != Cost::default();
        if is_shared { self.cost.times(1.0 / busy).and(WorkKind::ForkJoin, 1.0) } else { self.cost }
    }

    /// Parts in which the threads get the work, where that is known.
    pub fn parts(&self, facts: MachineInfo) -> Option<i64> {
        self.shares.map(|shares| shares.parts(facts))
    }

    /// What it is thought to cost on a machine of which so much is known.
    pub fn cost_on(&self, facts: MachineInfo, prices: &CostModel) -> f64 {
        prices.total(&self.work_on(facts))
    }
}

/// Configurations by the keys of what they decide. One that a question does not have is ignored.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Records(BTreeMap<TuningKey, Config>);

impl Records {
    /// No records: everything is decided by what it is thought to cost.
    pub fn none() -> Records {
        Records::default()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Records a configuration in the place of an earlier one.
    pub fn set(&mut self, key: TuningKey, config: impl Into<Config>) {
        self.0.insert(key, config.into());
    }

    /// All of them, in the order of their keys.
    pub fn iter(&self) -> impl Iterator<Item = (&TuningKey, &Config)> {
        self.0.iter()
    }

    /// What is recorded under a key.
    pub fn get(&self, key: &TuningKey) -> Option<&Config> {
        self.0.get(key)
    }
}

/// Answers questions as records say, and notes what was asked.
#[derive(Default, Debug)]
pub struct Decisions {
    records: Records,
    asked: Vec<TuningPoint>,
}

impl Decisions {
    /// Answers by these records.
    pub fn new(records: &Records) -> Decisions {
        Decisions { records: records.clone(), asked: Vec::new() }
    }

    /// The records.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// The position of the answer that a record gives, where one does. What is asked is noted once for each key.
    pub fn ask(
        &mut self,
        (key, sizes): (TuningKey, Vec<usize>),
        answers: Vec<Alternative>,
        about: impl FnOnce() -> String,
    ) -> Option<usize> {
        let config = self.records.get(&key);
        let recorded = config.and_then(|own| answers.iter().position(|answer| answer.config == *own));
        let taken = recorded.unwrap_or(0);
        if self.asked.iter().all(|question| question.key != key) {
            self.asked.push(TuningPoint { key, sizes, about: about(), answers, taken });
        }
        recorded
    }

    /// What was asked, in order.
    pub fn into_asked(self) -> Vec<TuningPoint> {
        self.asked
    }
}
