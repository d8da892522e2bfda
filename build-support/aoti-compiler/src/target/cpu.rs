//! CPU levels: what the scheduler wants to know of them.

use super::{MathLibrary, SplitKPolicy, SplitPolicy};
use crate::cost::{CostModel, Rates, WorkKind};

/// A set of CPU levels with one schedule for all: they share the mapping of axes, and differ in the block sizes that the
/// headers pick when they are compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuTarget {
    /// The levels, lowest first.
    pub levels: Vec<CpuLevel>,
    /// Bytes of a cache line, and what memory is aligned to.
    pub cache_line: i64,
    /// Bytes of a worker's row: what stays in its second-level cache beside the data it is made from.
    pub row_bytes: i64,
    /// Operations of one expression that stay in registers.
    pub inline_operations: usize,
    /// Element operations that are worth a thread of their own.
    pub thread_work: i64,
    /// Multiply-adds of a contraction that are worth a thread of their own.
    pub thread_products: i64,
    /// Elements of a vector axis that are one unit of work, where that axis is all there is to split.
    pub chunk: i64,
    /// Bytes of weights that stay in a core's second-level cache from run to run, beside the data.
    pub near_weights: usize,
    /// Queries from which on the keys and values of attention are worth packing.
    pub attention_queries: i64,
    /// When long sums are split: as many parts as a machine may have threads.
    pub splits: SplitPolicy,
    /// Libraries that products may be left to.
    pub libraries: Vec<MathLibrary>,
    /// What machines of the kind that records are of reach, where that was measured.
    pub rates: Option<Rates>,
}

/// One CPU level.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CpuLevel {
    /// Its name, as toolchains know it.
    pub name: String,
    /// Bytes of a vector register.
    pub vector_bytes: i64,
    /// Whether some of its processors multiply tiles of matrices; code asks the one that runs it.
    pub may_have_units: bool,
    /// Whether some of its processors have no instruction for words of bytes, and multiply numbers of 16 bits at once (`bytes.h`); code
    /// asks the one that runs it.
    pub may_split_words: bool,
}

/// Names, bytes of a vector register, whether processors may have matrix units, and whether they may split words of bytes.
const LEVELS: &[(&str, i64, bool, bool)] = &[
    ("x86-64", 16, false, true),
    ("x86-64-v3", 32, false, true),
    ("x86-64-v4", 64, true, true),
    ("native", 32, true, true),
    ("neon", 16, false, false),
    ("rv64gc", 16, false, false),
    ("rv64gcv", 16, false, false),
    ("simd128", 16, false, false),
    ("relaxed-simd", 16, false, false),
];

/// Bytes of a vector register of a level that is in no table.
const TYPICAL_VECTOR_BYTES: i64 = 32;

impl CpuTarget {
    /// The target for levels by name.
    pub fn new<S: AsRef<str>>(levels: &[S]) -> CpuTarget {
        CpuTarget {
            levels: levels.iter().map(|name| CpuLevel::named(name.as_ref())).collect(),
            cache_line: 64,
            row_bytes: 64 * 1024,
            inline_operations: 48,
            thread_work: 16384,
            thread_products: 65536,
            chunk: 1024,
            near_weights: 1024 * 1024,
            attention_queries: 9,
            splits: SplitPolicy {
                shared: None,
                elements: 1 << 18,
                part: 65536,
                rows: 64,
                columns: 64,
                chunk: 1024,
                few: 0,
                fewest: 2,
                near: None,
                products: Some(SplitKPolicy {
                    products: 1 << 20,
                    depth: 1024,
                    many_rows: 64,
                    block: 16,
                    panel: 32,
                    enough: 8,
                    units: 64,
                }),
            },
            libraries: Vec::new(),
            rates: None,
        }
    }

    /// The same where it is known what machines reach.
    #[must_use]
    pub fn with_rates(self, rates: Option<Rates>) -> CpuTarget {
        CpuTarget { rates, ..self }
    }

    /// The same where products may be left to these libraries.
    #[must_use]
    pub fn with_libraries(self, libraries: &[MathLibrary]) -> CpuTarget {
        let libraries = libraries.iter().copied().filter(|library| library.vendor().is_none()).collect();
        CpuTarget { libraries, ..self }
    }

    /// What work costs, on a machine of which so much is measured.
    pub fn prices(&self) -> CostModel {
        CostModel::TYPICAL.measured(self.rates.as_ref())
    }

    /// What it is to read an element of weights of so many bytes.
    pub fn weight(&self, bytes: usize) -> WorkKind {
        if bytes <= self.near_weights {
            return WorkKind::L2Weight;
        }
        let are_shared = |rates: &Rates| bytes as u64 <= rates.shared_bytes();
        if self.rates.as_ref().is_some_and(are_shared) { WorkKind::LlcWeight } else { WorkKind::DramWeight }
    }

    /// Whether processors of some level may have matrix units.
    pub fn may_have_units(&self) -> bool {
        self.levels.iter().any(|level| level.may_have_units)
    }

    /// Whether processors of some level may split words of bytes.
    pub fn may_split_words(&self) -> bool {
        self.levels.iter().any(|level| level.may_split_words)
    }

    /// Bytes of the widest vector of any level.
    pub fn vector_bytes(&self) -> i64 {
        self.levels.iter().map(|level| level.vector_bytes).max().unwrap_or(TYPICAL_VECTOR_BYTES)
    }
}

impl CpuLevel {
    fn named(name: &str) -> CpuLevel {
        let known = LEVELS.iter().find(|level| level.0 == name);
        let vector_bytes = known.map_or(TYPICAL_VECTOR_BYTES, |level| level.1);
        let may_have_units = known.is_some_and(|level| level.2);
        let may_split_words = known.is_some_and(|level| level.3);
        CpuLevel { name: name.to_owned(), vector_bytes, may_have_units, may_split_words }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_widest_level_says_how_wide_vectors_are() {
        assert_eq!(CpuTarget::new(&["x86-64", "x86-64-v4", "x86-64-v3"]).vector_bytes(), 64);
        assert_eq!(CpuTarget::new(&["neon"]).vector_bytes(), 16);
        assert_eq!(CpuTarget::new(&["native"]).levels[0].name, "native");
        assert!(CpuTarget::new(&["x86-64", "x86-64-v4"]).may_have_units());
        assert!(!CpuTarget::new(&["x86-64", "x86-64-v3"]).may_have_units());
        assert!(CpuTarget::new(&["x86-64-v3", "x86-64-v4"]).may_split_words());
        assert!(!CpuTarget::new(&["neon"]).may_split_words());
    }

    #[test]
    fn weights_are_in_a_shared_cache_where_there_is_one_that_holds_them() {
        let target = CpuTarget::new(&["native"]);
        let of = |target: &CpuTarget| [1 << 20, 8 << 20, 64 << 20].map(|bytes| target.weight(bytes));
        assert_eq!(of(&target), [WorkKind::L2Weight, WorkKind::DramWeight, WorkKind::DramWeight]);
        let caches = vec![(1 << 15, 100), (1 << 20, 100), (32 << 20, 100)];
        let rates = Rates { mflop_per_s: 100, caches, memory_mb_per_s: 10 };
        let measured = target.with_rates(Some(rates));
        assert_eq!(of(&measured), [WorkKind::L2Weight, WorkKind::LlcWeight, WorkKind::DramWeight]);
    }
}
