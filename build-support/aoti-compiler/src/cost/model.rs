//! What work costs: amounts of it by kind, and a price for each kind.
//!
//! Only ratios of costs mean anything. Prices are fitted to measurements: `cargo xtask refit` reads the log that `tune` keeps
//! and prints what belongs into the table below.

use super::FORK_JOIN;

/// A kind of work.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Item {
    /// A multiply-add of register tiles that keep all units busy.
    Multiply,
    /// A multiply-add where each element of the result is computed by itself.
    Single,
    /// A multiply-add of two planes of numbers on matrix units.
    Unit,
    /// A plane of an element that is made for matrix units in each run.
    Plane,
    /// A multiply-add that loads an element of its own, as in a convolution channel by channel.
    Loaded,
    /// An element that is packed in each run.
    Packed,
    /// A panel's elements that a register tile loads, for each multiply-add that it saves by that.
    Panel,
    /// A number that a convolution makes of its input, or of which it makes its output, beside the products.
    Transformed,
    /// An element of a convolution's packed weights, which comes from far away once in each run.
    Weight,
    /// The same where all weights of a program stay in a cache that cores share, which is known of machines that were measured.
    SharedWeight,
    /// The same where all weights of a program stay near a core from run to run.
    NearWeight,
    /// An element of a packed matrix that is widened where a register tile reads it.
    Widened,
    /// A multiply-add of a product whose threads read as much twice as it reads at all.
    ReadTwice,
    /// A multiply-add of a convolution that goes over the other operand first.
    OtherOrder,
    /// An access to elements side by side, or to one for all lanes.
    Access,
    /// An access of each lane by itself, far from the others'.
    Gather,
    /// The same to elements that are a few apart.
    Strided,
    /// An element of a network's values that is read or written across the order in which they lie.
    Turned,
    /// A multiply-add of register tiles that takes the place of matrix units on machines that have none.
    WithoutUnits,
    /// That other threads begin, and are waited for.
    Sharing,
}

impl Item {
    /// All of them.
    pub const ALL: [Item; 20] = [
        Item::Multiply,
        Item::Single,
        Item::Unit,
        Item::Plane,
        Item::Loaded,
        Item::Packed,
        Item::Panel,
        Item::Transformed,
        Item::Weight,
        Item::SharedWeight,
        Item::NearWeight,
        Item::Widened,
        Item::ReadTwice,
        Item::OtherOrder,
        Item::Access,
        Item::Gather,
        Item::Strided,
        Item::Turned,
        Item::WithoutUnits,
        Item::Sharing,
    ];

    /// What it costs on most machines. Multiply-adds of register tiles and accesses side by side are what the others are measured by.
    const fn typical(self) -> f64 {
        match self {
            Item::Multiply => 1.0,
            Item::Single => 16.0,
            Item::Unit => 0.09,
            Item::Plane => 4.0,
            Item::Loaded => 2.5,
            Item::Packed => 12.0,
            Item::Panel => 1.5,
            Item::Transformed => 6.0,
            Item::Weight => 16.0,
            Item::SharedWeight => 16.0,
            Item::NearWeight => 1.75,
            Item::Widened => 1.3,
            Item::ReadTwice => 0.2,
            Item::OtherOrder => 0.05,
            Item::Access => 5.0,
            Item::Gather => 20.0,
            Item::Strided => 10.0,
            Item::Turned => 51.2,
            Item::WithoutUnits => 0.0,
            Item::Sharing => 80_000.0,
        }
    }

    /// Its name in logs.
    pub fn name(self) -> &'static str {
        match self {
            Item::Multiply => "multiply",
            Item::Single => "single",
            Item::Unit => "unit",
            Item::Plane => "plane",
            Item::Loaded => "loaded",
            Item::Packed => "packed",
            Item::Panel => "panel",
            Item::Transformed => "transformed",
            Item::Weight => "weight",
            Item::SharedWeight => "shared-weight",
            Item::NearWeight => "near-weight",
            Item::Widened => "widened",
            Item::ReadTwice => "read-twice",
            Item::OtherOrder => "other-order",
            Item::Access => "access",
            Item::Gather => "gather",
            Item::Strided => "strided",
            Item::Turned => "turned",
            Item::WithoutUnits => "without-units",
            Item::Sharing => "sharing",
        }
    }
}

/// Amounts of work.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Cost([f64; Item::ALL.len()]);

impl Cost {
    /// So much of one kind.
    pub fn of(item: Item, amount: f64) -> Cost {
        Cost::default().and(item, amount)
    }

    /// This and so much of a kind.
    #[must_use]
    pub fn and(mut self, item: Item, amount: f64) -> Cost {
        self.0[item as usize] += amount;
        self
    }

    /// This and the beginning of another kernel.
    #[must_use]
    pub fn and_kernel(self) -> Cost {
        /// Accesses that take as long.
        const KERNEL: f64 = 4000.0;
        self.and(Item::Access, KERNEL)
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
    pub fn amount(&self, item: Item) -> f64 {
        self.0[item as usize]
    }

    /// Each kind of which there is some.
    pub fn parts(&self) -> impl Iterator<Item = (Item, f64)> + '_ {
        Item::ALL.into_iter().map(|item| (item, self.amount(item))).filter(|(_, amount)| *amount != 0.0)
    }
}

/// What is known of a machine on which ways are measured, beside the level of its code.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Facts {
    /// Whether it multiplies tiles of matrices, where that is known.
    pub has_units: Option<bool>,
    /// Threads of a run beyond the first.
    pub more_threads: u16,
    /// Nanoseconds that they take to begin a loop together and end it; 0 where nobody knows.
    pub fork_join_ns: u32,
}

impl Facts {
    /// Threads of a run.
    pub fn threads(self) -> i64 {
        i64::from(self.more_threads) + 1
    }
}

/// The price of each kind of work.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prices([f64; Item::ALL.len()]);

/// Where a level's prices are others than the typical ones: what `cargo xtask refit` prints, for machines of that level.
const LEVELS: &[(&str, &[(Item, f64)])] = &[];

impl Prices {
    /// What most machines have.
    pub const TYPICAL: Prices = {
        let (mut prices, mut next) = ([0.0; Item::ALL.len()], 0);
        while next < prices.len() {
            prices[Item::ALL[next] as usize] = Item::ALL[next].typical();
            next += 1;
        }
        Prices(prices)
    };

    /// The prices on machines of a level.
    pub fn on(level: &str) -> Prices {
        let others = LEVELS.iter().find(|(name, _)| *name == level).map_or(&[][..], |(_, others)| others);
        others.iter().fold(Prices::TYPICAL, |prices, (item, price)| prices.with(*item, *price))
    }

    /// These with another price of one kind.
    #[must_use]
    pub fn with(mut self, item: Item, price: f64) -> Prices {
        self.0[item as usize] = price;
        self
    }

    /// These on a machine of which so much is known.
    #[must_use]
    pub fn known(self, facts: Facts) -> Prices {
        let sharing = match facts.fork_join_ns {
            0 => 1.0,
            known => f64::from(known) / f64::from(FORK_JOIN),
        };
        let known = self.with(Item::Sharing, self.of(Item::Sharing) * sharing);
        match facts.has_units {
            Some(false) => known
                .with(Item::Unit, 0.0)
                .with(Item::Plane, 0.0)
                .with(Item::WithoutUnits, self.of(Item::Multiply)),
            Some(true) | None => known,
        }
    }

    /// The price of a kind.
    pub fn of(&self, item: Item) -> f64 {
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
        let cost = Cost::of(Item::Multiply, 10.0).and(Item::Packed, 2.0).times(2.0);
        assert_eq!(Prices::TYPICAL.total(&cost), 2.0 * (10.0 + 12.0 * 2.0));
        assert_eq!(cost.parts().collect::<Vec<_>>(), [(Item::Multiply, 20.0), (Item::Packed, 4.0)]);
        let prices = Prices::TYPICAL.with(Item::Packed, 0.0);
        assert_eq!((prices.total(&cost), prices.of(Item::Packed)), (20.0, 0.0));
    }

    #[test]
    fn items_are_in_order_and_no_two_have_one_name() {
        for (position, item) in Item::ALL.into_iter().enumerate() {
            assert_eq!(item as usize, position);
            assert_eq!(Item::ALL.iter().filter(|other| other.name() == item.name()).count(), 1);
        }
    }

    #[test]
    fn a_machine_without_units_pays_for_what_takes_their_place() {
        let cost = Cost::of(Item::Unit, 600.0).and(Item::Plane, 10.0).and(Item::WithoutUnits, 100.0);
        let on = |has_units| Prices::TYPICAL.known(Facts { has_units, ..Facts::default() }).total(&cost);
        assert_eq!((on(None), on(Some(true))), (600.0 * 0.09 + 10.0 * 4.0, on(None)));
        assert_eq!(on(Some(false)), 100.0);
    }
}
