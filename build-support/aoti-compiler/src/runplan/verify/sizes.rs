//! Sizes of runs for which memory is looked at: the ends of ranges and values between, where the checks of the plan hold.

use crate::graph::{SymbolInfo, SymbolSource};
use crate::loops::Program;
use crate::runplan::RunPlan;
use crate::symbolic::{Expr, Symbol, SymbolKind};

/// Runs that are looked at, at most.
const MOST: usize = 4;
/// How far above its least value a size is: the same for all, or others for each.
const ABOVE: [(i64, i64); 9] =
    [(0, 0), (1, 0), (3, 1), (7, 0), (15, 0), (30, 7), (63, 0), (500, 13), (4096, 0)];

/// The values of all size symbols in one run.
pub(super) struct Sizes(Vec<i64>);

impl Sizes {
    /// The value of an expression; `None` where 64 bits do not hold it.
    pub(super) fn of(&self, expr: &Expr) -> Option<i64> {
        expr.evaluate(&|symbol| self.value(symbol))
    }

    fn value(&self, symbol: Symbol) -> Option<i64> {
        let index = usize::try_from(symbol.index).ok()?;
        self.0.get(index).copied().filter(|_| symbol.kind == SymbolKind::Size)
    }

    /// Sizes that are so far above their least values, where they may be.
    fn above(symbols: &[SymbolInfo], (all, each): (i64, i64)) -> Option<Sizes> {
        let mut sizes = Sizes(vec![]);
        for (number, info) in (0..).zip(symbols) {
            let most = match (&info.source, &info.most) {
                (SymbolSource::Data, Some(most)) => sizes.of(most)?.min(info.range.max),
                (SymbolSource::Data, None)
                | (SymbolSource::InputDim { .. } | SymbolSource::InputValue { .. }, _) => info.range.max,
            };
            let own = info.range.min.saturating_add(all).saturating_add(each * number);
            sizes.0.push(own.min(most).max(info.range.min));
            if most < info.range.min {
                return None;
            }
        }
        Some(sizes)
    }
}

/// Some runs that the plan accepts; none where its checks ask for sizes that were not thought of.
pub(super) fn runs(program: &Program, run: &RunPlan) -> Vec<Sizes> {
    let accepts = |sizes: &Sizes| {
        run.checks.iter().all(|check| check.holds.condition.evaluate(&|symbol| sizes.value(symbol)))
    };
    let mut all: Vec<Sizes> =
        ABOVE.into_iter().filter_map(|above| Sizes::above(&program.symbols, above)).filter(accepts).collect();
    all.dedup_by(|one, other| one.0 == other.0);
    // The smallest, the largest, and what lies between.
    while all.len() > MOST {
        all.remove(all.len() / 2);
    }
    all
}
