//! What a class of machines reaches, as `tune` measured it on one of them: whole numbers, so that builds by them are the same
//! everywhere.

use super::{CostModel, WorkKind};
use crate::dtype::DType;
use crate::json_fields;

/// Bytes or operations a second of a cache, of memory or of arithmetic units beyond this are no measurement.
const MOST: u64 = 1 << 40;
/// Caches of levels up to this are a core's own; larger ones are shared.
const OWN_LEVELS: usize = 2;

/// What some threads reach together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rates {
    /// Millions of multiplications and additions of `f32` a second.
    pub mflop_per_s: u64,
    /// Caches, nearest first: bytes that each holds for all of the threads, and millions of bytes a second that are read from it.
    pub caches: Vec<(u64, u64)>,
    /// Millions of bytes a second that are read from memory.
    pub memory_mb_per_s: u64,
}

json_fields!(Rates { mflop_per_s, caches, memory_mb_per_s });

impl Rates {
    /// Whether a machine can be so.
    pub fn are_possible(&self) -> bool {
        let own = self.caches.iter().flat_map(|(bytes, rate)| [bytes, rate]);
        own.chain([&self.mflop_per_s, &self.memory_mb_per_s]).all(|number| (1..MOST).contains(number))
    }

    /// Bytes of the caches that cores share.
    pub fn shared_bytes(&self) -> u64 {
        self.caches.iter().skip(OWN_LEVELS).map(|(bytes, _)| *bytes).max().unwrap_or(0)
    }

    /// What kinds of work cost that take as long as what they read.
    pub(super) fn prices(&self) -> Vec<(WorkKind, f64)> {
        let memory = Some(self.memory_mb_per_s);
        let own = self.caches.iter().take(OWN_LEVELS).next_back().map(|(_, rate)| *rate);
        let shared = self.caches.iter().skip(OWN_LEVELS).next_back().map(|(_, rate)| *rate);
        let places =
            [(WorkKind::DramWeight, memory), (WorkKind::LlcWeight, shared), (WorkKind::L2Weight, own)];
        places.into_iter().filter_map(|(item, rate)| Some((item, self.element(rate?)))).collect()
    }

    /// Multiply-adds that take as long as it takes to read an element of `f32`.
    fn element(&self, mb_per_s: u64) -> f64 {
        /// Operations of one of them.
        const OPERATIONS: f64 = 2.0;
        DType::F32.size() as f64 / mb_per_s as f64 * self.mflop_per_s as f64 / OPERATIONS
    }
}

impl CostModel {
    /// These on machines that reach so much.
    #[must_use]
    pub fn measured(self, rates: Option<&Rates>) -> CostModel {
        let own = rates.map(Rates::prices).unwrap_or_default();
        own.into_iter().fold(self, |prices, (item, price)| prices.with(item, price))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::{FromJson, ToJson};

    fn rates() -> Rates {
        let caches = vec![(48 << 10, 500_000), (1 << 20, 250_000), (32 << 20, 100_000)];
        Rates { mflop_per_s: 250_000, caches, memory_mb_per_s: 40_000 }
    }

    #[test]
    fn weights_cost_what_it_takes_to_read_them_from_where_they_are() {
        let prices = CostModel::TYPICAL.measured(Some(&rates()));
        let of = |item| prices.of(item);
        assert_eq!(
            (of(WorkKind::DramWeight), of(WorkKind::LlcWeight), of(WorkKind::L2Weight)),
            (12.5, 5.0, 2.0)
        );
        let others = WorkKind::ALL
            .into_iter()
            .filter(|item| ![WorkKind::DramWeight, WorkKind::LlcWeight, WorkKind::L2Weight].contains(item));
        others.for_each(|item| assert_eq!(of(item), CostModel::TYPICAL.of(item), "{}", item.name()));
        assert_eq!(CostModel::TYPICAL.measured(None), CostModel::TYPICAL);
    }

    #[test]
    fn a_machine_without_shared_caches_has_typical_prices_for_them() {
        let rates = Rates { caches: vec![(32 << 10, 100_000)], ..rates() };
        assert_eq!(rates.shared_bytes(), 0);
        let prices = CostModel::TYPICAL.measured(Some(&rates));
        assert_eq!(prices.of(WorkKind::LlcWeight), CostModel::TYPICAL.of(WorkKind::LlcWeight));
        assert_eq!(prices.of(WorkKind::L2Weight), 5.0, "of the only cache");
    }

    #[test]
    fn what_no_machine_reaches_is_told() {
        assert!(rates().are_possible());
        assert!(!Rates { mflop_per_s: 0, ..rates() }.are_possible(), "all would be free");
        assert!(!Rates { memory_mb_per_s: u64::MAX, ..rates() }.are_possible());
        assert!(!Rates { caches: vec![(0, 1)], ..rates() }.are_possible());
    }

    #[test]
    fn they_are_read_as_they_were_written() {
        assert_eq!(Rates::from_json(rates().to_json()), Ok(rates()));
    }
}
