//! The ways to run a kernel: every decision about it that is open, with what it is thought to cost. The first is what a
//! build takes without a record; a record names another. Measures nothing.

use super::setting::Setting;
use crate::cost::Cost;
use crate::cost::WorkSplit;
use crate::kernels::mapped;
use crate::kernels::mapping::Mapping;
use crate::kernels::{self, Selection};
use crate::loops::{Kernel, Program};
use crate::symbolic::Ranges;
use crate::target::Target;
use crate::tuning::{Alternative, Config, Records, TuningKey, TuningPoint};

/// One way to run a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct Implementation {
    /// How it is computed.
    pub choice: Selection,
    /// How its positions are laid over the machine.
    pub mapping: Mapping,
    /// What it is thought to cost; only ratios between the ways of one kernel mean anything.
    pub cost: Cost,
    /// Whether there is another from which it differs only in what several threads share.
    pub is_shared: bool,
    /// How threads share it, where that is known.
    pub shares: Option<WorkSplit>,
}

/// How a kernel runs: as a record says, or by the first way.
pub(super) fn decide(
    records: &Records,
    program: &Program,
    kernel: &Kernel,
    ranges: &dyn Ranges,
    target: &Target,
) -> (Selection, Mapping) {
    let mut all = implementations(program, kernel, ranges, target);
    let recorded = if records.is_empty() || all.len() == 1 {
        None
    } else {
        records.get(&TuningKey::of(program, kernel, target))
    };
    let found = recorded.and_then(|config| all.iter().position(|way| Config::from(way.setting()) == *config));
    let Implementation { choice, mapping, .. } = all.swap_remove(found.unwrap_or(0));
    (choice, mapping)
}

/// The question how a kernel runs that runs as it does.
pub fn question(
    program: &Program,
    kernel: &Kernel,
    ranges: &dyn Ranges,
    target: &Target,
    own: &Setting,
) -> TuningPoint {
    let implementations = implementations(program, kernel, ranges, target);
    let answer = |way: &Implementation| Alternative {
        config: way.setting().into(),
        cost: way.cost,
        is_shared: way.is_shared,
        shares: way.shares,
    };
    let answers: Vec<Alternative> = implementations.iter().map(answer).collect();
    let own = Config::from(own.clone());
    let taken = answers.iter().position(|answer| answer.config == own).unwrap_or(0);
    let (key, sizes) = TuningKey::with_sizes(program, &[kernel], target);
    TuningPoint { key, sizes, about: kernel.name.clone(), answers, taken }
}

impl Implementation {
    /// What distinguishes it from the other ways of its kernel.
    pub fn setting(&self) -> Setting {
        Setting::of(&self.choice, &self.mapping)
    }
}

/// The ways to run a kernel: first the one that is taken without a record, then the others, cheapest first; never none.
///
/// Of the template that is taken there are all mappings, of the others what they take by themselves.
pub fn implementations(
    program: &Program,
    kernel: &Kernel,
    ranges: &dyn Ranges,
    target: &Target,
) -> Vec<Implementation> {
    let mut all: Vec<Implementation> = Vec::new();
    let prices = target.prices();
    for kernels::Candidate { choice, cost } in kernels::candidates(program, kernel, target) {
        let laid = mapped::map(program, kernel, &choice, ranges, target);
        let few = if all.is_empty() { laid.len() } else { 1 };
        all.extend(laid.into_iter().take(few).map(|laid| Implementation {
            cost: laid.cost(&cost),
            choice: choice.clone(),
            mapping: laid.mapping,
            is_shared: laid.is_shared,
            shares: laid.shares,
        }));
    }
    all[1..].sort_by(|a, b| prices.total(&a.cost).total_cmp(&prices.total(&b.cost)));
    all
}
