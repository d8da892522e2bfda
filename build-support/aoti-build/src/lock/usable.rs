//! Which records of a lock a build goes by. A function of the lock, the targets and the compilers, and not of the machine
//! that builds: everyone who builds with a lock gets the same.

use std::collections::{BTreeMap, BTreeSet};

use aoti_compiler::cost::Rates;
use aoti_compiler::schedule::{Records, Setting, TuningKey};

use super::{Lock, Place, Record};

/// The machines of one kind that a build is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machines {
    /// What the classes of machines begin with: the architecture of a processor, or of a GPU.
    pub family: String,
    /// The compiler that makes code for them; none where it is not asked for.
    pub compiler: Option<String>,
}

/// The records that a build goes by.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct ApplicableRecords {
    /// The settings.
    pub records: Records,
    /// What processors reach that the build is for.
    pub rates: Option<Rates>,
    /// What is to be said about those that it does not go by.
    pub notes: Vec<String>,
}

/// The part of a machine class that says what code it runs.
pub(super) fn family(machine: &str) -> &str {
    machine.split('.').next().unwrap_or_default()
}

impl Lock {
    /// The records for machines of these kinds.
    ///
    /// Of several classes of one kind the one counts that most records are of, else the first by name; of several numbers
    /// of threads the largest; of several sizes all. Rates are those of the same class.
    pub fn usable(&self, machines: &[Machines]) -> ApplicableRecords {
        let mut usable = ApplicableRecords::default();
        for kind in machines {
            let Some(machine) = self.machine(kind, &mut usable.notes) else { continue };
            // Classes of GPUs have none.
            usable.rates = usable.rates.or_else(|| self.rates_of(&machine).cloned());
            let (mut others, mut compilers, mut old) = (BTreeSet::new(), 0, 0);
            let mut of_kernels: BTreeMap<&TuningKey, (u16, Vec<&Record>)> = BTreeMap::new();
            for (place, record) in self.records.iter().filter(|(place, _)| place.machine == machine) {
                if kind.compiler.as_ref().is_some_and(|compiler| *compiler != record.compiler) {
                    others.insert(record.compiler.as_str());
                    compilers += 1;
                } else if record.template != record.setting.version() {
                    old += 1;
                } else {
                    let (threads, own) = of_kernels.entry(&place.kernel).or_default();
                    // In order of threads: the largest number is the last.
                    if *threads != place.threads {
                        own.clear();
                    }
                    *threads = place.threads;
                    own.push(record);
                }
            }
            for (kernel, (_, own)) in of_kernels {
                usable.records.set(kernel.clone(), Record::best(&own).clone());
            }
            if compilers > 0 {
                let own = kind.compiler.as_deref().unwrap_or_default();
                let others = others.into_iter().collect::<Vec<_>>().join("`, `");
                usable.notes.push(format!(
                    "{} in `aoti.lock` {} of another compiler (`{others}`) and ignored: this build uses `{own}`; `cargo aoti tune` measures again",
                    records(compilers),
                    is_or_are(compilers)
                ));
            }
            if old > 0 {
                usable.notes.push(format!(
                    "{} in `aoti.lock` {} out of date (the kernel template has changed) and ignored; `cargo aoti tune` measures again",
                    records(old),
                    is_or_are(old)
                ));
            }
        }
        usable
    }

    /// Whether any kernel of a model was measured on machines of this kind.
    pub fn has_model(&self, model: &str, family_: &str) -> bool {
        let is_own =
            |(place, record): (&Place, &Record)| record.model == model && family(&place.machine) == family_;
        self.records.iter().any(is_own)
    }

    /// What a class of machines reaches, with the largest number of threads.
    fn rates_of(&self, machine: &str) -> Option<&Rates> {
        self.rates.iter().filter(|(runner, _)| runner.machine == machine).map(|(_, rates)| rates).next_back()
    }

    /// What builds for machines of this kind price work by.
    pub fn rates_for(&self, family: &str) -> Option<&Rates> {
        let kind = Machines { family: family.to_owned(), compiler: None };
        self.rates_of(&self.machine(&kind, &mut Vec::new())?)
    }

    fn machine(&self, kind: &Machines, notes: &mut Vec<String>) -> Option<String> {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        let all = self.records.keys().map(|place| (&place.machine, 1));
        let all = all.chain(self.rates.keys().map(|runner| (&runner.machine, 0)));
        for (machine, count) in all.filter(|(machine, _)| family(machine) == kind.family) {
            *counts.entry(machine).or_default() += count;
        }
        // The first of equals: the last that `max_by_key` sees.
        let taken = counts.iter().rev().max_by_key(|(_, count)| **count).map(|(machine, _)| *machine)?;
        if counts.len() > 1 {
            let all = counts.keys().copied().collect::<Vec<_>>().join("`, `");
            notes.push(format!("`aoti.lock` has records of `{all}`; those of `{taken}` count"));
        }
        Some(taken.to_owned())
    }
}

impl Record {
    /// The way that is best at all sizes of one kernel that were measured, of which there is at least one.
    ///
    /// That is the least geometric mean of its time in terms of the default's. Only ways count that were measured at each of the
    /// sizes.
    pub fn best<'a>(records: &[&'a Record]) -> &'a Setting {
        let (first, rest) = records.split_first().expect("there is a record");
        if rest.iter().all(|record| record.setting == first.setting) {
            return &first.setting;
        }
        let cost = |setting: &Setting| -> Option<f64> {
            records.iter().map(|record| Some((record.micros_of(setting)? / record.default_micros).ln())).sum()
        };
        let known = records.iter().copied().flat_map(Record::settings);
        let costs = known.filter_map(|setting| Some((setting, cost(setting)?)));
        let least = costs.filter(|(_, cost)| cost.is_finite()).min_by(|a, b| a.1.total_cmp(&b.1));
        least.map_or(&first.setting, |(setting, _)| setting)
    }

    /// The ways that it has times of.
    fn settings(&self) -> impl Iterator<Item = &Setting> {
        std::iter::once(&self.setting).chain(self.others.iter().map(|(setting, _)| setting))
    }

    /// The time of a way. None was measured that is faster than the choice beyond noise.
    pub fn micros_of(&self, setting: &Setting) -> Option<f64> {
        if self.setting == *setting {
            return Some(self.micros);
        }
        let other = self.others.iter().find(|(other, _)| other == setting);
        other.map(|(_, micros)| micros.max(self.micros))
    }
}

fn records(count: usize) -> String {
    if count == 1 { "a record".to_owned() } else { format!("{count} records") }
}

fn is_or_are(count: usize) -> &'static str {
    if count == 1 { "is" } else { "are" }
}
