//! What work costs: amounts of it by kind, and a price for each kind.
//!
//! Only ratios of costs mean anything. Prices are fitted to measurements: `cargo xtask refit` reads the log that `tune` keeps
//! and prints what belongs into the table below.

use super::FORK_JOIN;

/// A kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WorkKind {
    /// A multiply-add of register tiles that keep all units busy.
    VectorFma,
    /// A multiply-add where each element of the result is computed by itself.
    ScalarFma,
    /// A multiply-add of two planes of numbers on matrix units.
    MatrixUnitFma,
    /// A plane of an element that is made for matrix units in each run.
    SplitBf16,
    /// A multiply-add that loads an element of its own, as in a convolution channel by channel.
    StreamedFma,
    /// An element that is packed in each run.
    PackElement,
    /// A panel's elements that a register tile loads, for each multiply-add that it saves by that.
    PanelLoad,
    /// A number that a convolution makes of its input, or of which it makes its output, beside the products.
    WinogradTransform,
    /// An element of a convolution's packed weights, which comes from far away once in each run.
    DramWeight,
    /// The same where all weights of a program stay in a cache that cores share, which is known of machines that were measured.
    LlcWeight,
    /// The same where all weights of a program stay near a core from run to run.
    L2Weight,
    /// An element of a packed matrix that is widened where a register tile reads it.
    Upcast,
    /// A multiply-add of a product whose threads read as much twice as it reads at all.
    RereadOperand,
    /// A multiply-add of a convolution that goes over the other operand first.
    LoopOrder,
    /// An access to elements side by side, or to one for all lanes.
    Access,
    /// An access of each lane by itself, far from the others'.
    Gather,
    /// The same to elements that are a few apart.
    Strided,
    /// An element of a network's values that is read or written across the order in which they lie.
    TransposedAccess,
    /// A multiply-add of register tiles that takes the place of matrix units on machines that have none.
    MatrixUnitFallback,
    /// That other threads begin, and are waited for.
    ForkJoin,
}

impl WorkKind {
    /// All of them.
    pub const ALL: [WorkKind; 20] = [
        WorkKind::VectorFma,
        WorkKind::ScalarFma,
        WorkKind::MatrixUnitFma,
        WorkKind::SplitBf16,
        WorkKind::StreamedFma,
        WorkKind::PackElement,
        WorkKind::PanelLoad,
        WorkKind::WinogradTransform,
        WorkKind::DramWeight,
        WorkKind::LlcWeight,
        WorkKind::L2Weight,
        WorkKind::Upcast,
        WorkKind::RereadOperand,
        WorkKind::LoopOrder,
        WorkKind::Access,
        WorkKind::Gather,
        WorkKind::Strided,
        WorkKind::TransposedAccess,
        WorkKind::MatrixUnitFallback,
        WorkKind::ForkJoin,
    ];

    /// What it costs on most machines. Multiply-adds of register tiles and accesses side by side are what the others are measured by.
    const fn typical(self) -> f64 {
        match self {
            WorkKind::VectorFma => 1.0,
            WorkKind::ScalarFma => 16.0,
            WorkKind::MatrixUnitFma => 0.09,
            WorkKind::SplitBf16 => 4.0,
            WorkKind::StreamedFma => 2.5,
            WorkKind::PackElement => 12.0,
            WorkKind::PanelLoad => 1.5,
            WorkKind::WinogradTransform => 6.0,
            WorkKind::DramWeight => 16.0,
            WorkKind::LlcWeight => 16.0,
            WorkKind::L2Weight => 1.75,
            WorkKind::Upcast => 1.3,
            WorkKind::RereadOperand => 0.2,
            WorkKind::LoopOrder => 0.05,
            WorkKind::Access => 5.0,
            WorkKind::Gather => 20.0,
            WorkKind::Strided => 10.0,
            WorkKind::TransposedAccess => 51.2,
            WorkKind::MatrixUnitFallback => 0.0,
            WorkKind::ForkJoin => 80_000.0,
        }
    }

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            WorkKind::VectorFma => "vector-fma",
            WorkKind::ScalarFma => "scalar-fma",
            WorkKind::MatrixUnitFma => "matrix-unit-fma",
            WorkKind::SplitBf16 => "split-bf16",
            WorkKind::StreamedFma => "streamed-fma",
            WorkKind::PackElement => "pack-element",
            WorkKind::PanelLoad => "panel-load",
            WorkKind::WinogradTransform => "winograd-transform",
            WorkKind::DramWeight => "dram-weight",
            WorkKind::LlcWeight => "llc-weight",
            WorkKind::L2Weight => "l2-weight",
            WorkKind::Upcast => "upcast",
            WorkKind::RereadOperand => "reread-operand",
            WorkKind::LoopOrder => "loop-order",
            WorkKind::Access => "access",
            WorkKind::Gather => "gather",
            WorkKind::Strided => "strided",
            WorkKind::TransposedAccess => "transposed-access",
            WorkKind::MatrixUnitFallback => "matrix-unit-fallback",
            WorkKind::ForkJoin => "fork-join",
        }
    }
}

/// Amounts of work.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Cost([f64; WorkKind::ALL.len()]);

impl Cost {
    /// So much of one kind.
    pub fn of(item: WorkKind, amount: f64) -> Cost {
        Cost::default().and(item, amount)
    }

    /// This and so much of a kind.
    #[must_use]
    pub fn and(mut self, item: WorkKind, amount: f64) -> Cost {
        self.0[item as usize] += amount;
        self
    }

    /// This and the beginning of another kernel.
    #[must_use]
    pub fn and_kernel(self) -> Cost {
        /// Accesses that take as long.
        const KERNEL: f64 = 4000.0;
        self.and(WorkKind::Access, KERNEL)
    }

    /// This and that.
    #[must_use]
    pub fn plus(mut self, other: &Cost) -> Cost {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
        self
    }

    /// So many times as much of everything.
    #[must_use]
    pub fn times(mut self, factor: f64) -> Cost {
        self.0.iter_mut().for_each(|amount| *amount *= factor);
        self
    }

    /// How much of a kind.
    pub fn amount(&self, item: WorkKind) -> f64 {
        self.0[item as usize]
    }

    /// Each kind of which there is some.
    pub fn parts(&self) -> impl Iterator<Item = (WorkKind, f64)> + '_ {
        WorkKind::ALL.into_iter().map(|item| (item, self.amount(item))).filter(|(_, amount)| *amount != 0.0)
    }
}

/// What is known of a machine on which ways are measured, beside the level of its code.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct MachineInfo {
    /// Whether it multiplies tiles of matrices, where that is known.
    pub has_units: Option<bool>,
    /// Threads of a run beyond the first.
    pub more_threads: u16,
    /// Nanoseconds that they take to begin a loop together and end it; 0 where nobody knows.
    pub fork_join_ns: u32,
}

impl MachineInfo {
    /// Threads of a run.
    pub fn threads(self) -> i64 {
        i64::from(self.more_threads) + 1
    }
}

/// The price of each kind of work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CostModel([f64; WorkKind::ALL.len()]);

impl CostModel {
    /// What most machines have; `cargo xtask refit` fits prices to records.
    pub const TYPICAL: CostModel = {
        let (mut prices, mut next) = ([0.0; WorkKind::ALL.len()], 0);
        while next < prices.len() {
            prices[WorkKind::ALL[next] as usize] = WorkKind::ALL[next].typical();
            next += 1;
        }
        CostModel(prices)
    };

    /// These with another price of one kind.
    #[must_use]
    pub fn with(mut self, item: WorkKind, price: f64) -> CostModel {
        self.0[item as usize] = price;
        self
    }

    /// These on a machine of which so much is known.
    #[must_use]
    pub fn known(self, facts: MachineInfo) -> CostModel {
        let sharing = match facts.fork_join_ns {
            0 => 1.0,
            known => f64::from(known) / f64::from(FORK_JOIN),
        };
        let known = self.with(WorkKind::ForkJoin, self.of(WorkKind::ForkJoin) * sharing);
        match facts.has_units {
            Some(false) => known
                .with(WorkKind::MatrixUnitFma, 0.0)
                .with(WorkKind::SplitBf16, 0.0)
                .with(WorkKind::MatrixUnitFallback, self.of(WorkKind::VectorFma)),
            Some(true) | None => known,
        }
    }

    /// The price of a kind.
    pub fn of(&self, item: WorkKind) -> f64 {
        self.0[item as usize]
    }

    /// What work costs.
    pub fn total(&self, cost: &Cost) -> f64 {
        self.0.iter().zip(cost.0).map(|(price, amount)| price * amount).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cost_is_amounts_times_prices() {
        let cost = Cost::of(WorkKind::VectorFma, 10.0).and(WorkKind::PackElement, 2.0).times(2.0);
        assert_eq!(CostModel::TYPICAL.total(&cost), 2.0 * (10.0 + 12.0 * 2.0));
        assert_eq!(
            cost.parts().collect::<Vec<_>>(),
            [(WorkKind::VectorFma, 20.0), (WorkKind::PackElement, 4.0)]
        );
        let prices = CostModel::TYPICAL.with(WorkKind::PackElement, 0.0);
        assert_eq!((prices.total(&cost), prices.of(WorkKind::PackElement)), (20.0, 0.0));
    }

    #[test]
    fn items_are_in_order_and_no_two_have_one_name() {
        for (position, item) in WorkKind::ALL.into_iter().enumerate() {
            assert_eq!(item as usize, position);
            assert_eq!(WorkKind::ALL.iter().filter(|other| other.name() == item.name()).count(), 1);
        }
    }

    #[test]
    fn a_machine_without_units_pays_for_what_takes_their_place() {
        let cost = Cost::of(WorkKind::MatrixUnitFma, 600.0)
            .and(WorkKind::SplitBf16, 10.0)
            .and(WorkKind::MatrixUnitFallback, 100.0);
        let on = |has_units| {
            CostModel::TYPICAL.known(MachineInfo { has_units, ..MachineInfo::default() }).total(&cost)
        };
        assert_eq!((on(None), on(Some(true))), (600.0 * 0.09 + 10.0 * 4.0, on(None)));
        assert_eq!(on(Some(false)), 100.0);
    }
}
