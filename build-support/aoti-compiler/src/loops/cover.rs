//! Which elements of a row loops store, as few intervals.

use super::Axis;
use crate::symbolic::{Expr, Interval};

/// Runs of elements beyond which nobody counts.
const MOST_RUNS: i64 = 1 << 12;

/// Elements that are written.
#[derive(Default)]
pub(super) struct Cover {
    runs: Vec<Interval>,
}

impl Cover {
    /// Adds what loops over `axes` store at `offset`, where that can be seen.
    pub(super) fn add(&mut self, offset: &Expr, axes: &[Axis]) {
        self.runs.extend(runs(offset, axes).unwrap_or_default());
    }

    /// Whether all of an interval is written.
    pub(super) fn holds(&self, wanted: Interval) -> bool {
        let mut runs = self.runs.clone();
        runs.sort_unstable_by_key(|run| run.min);
        let mut next = wanted.min;
        for run in runs {
            if run.min <= next {
                next = next.max(run.max.saturating_add(1));
            }
        }
        next > wanted.max
    }
}

/// The elements at an offset that all axes move by a number of elements each.
fn runs(offset: &Expr, axes: &[Axis]) -> Option<Vec<Interval>> {
    let mut rest = offset.clone();
    let mut steps: Vec<(i64, i64)> = Vec::new();
    let mut base = 0i64;
    for axis in axes {
        let (step, without) = rest.affine_in(axis.symbol)?;
        let (step, extent) = (step.as_int()?, axis.extent.as_int()?);
        if extent < 1 {
            return Some(vec![]);
        }
        if step < 0 {
            base = base.checked_add(step.checked_mul(extent - 1)?)?;
        }
        if step != 0 && extent > 1 {
            steps.push((step.checked_abs()?, extent));
        }
        rest = without;
    }
    base = base.checked_add(rest.as_int()?)?;
    steps.sort_unstable();
    let mut length = 1i64;
    let mut begins = vec![base];
    for (step, extent) in steps {
        if step <= length && begins.len() == 1 {
            length = length.checked_add(step.checked_mul(extent - 1)?)?;
            continue;
        }
        if extent.saturating_mul(i64::try_from(begins.len()).ok()?) > MOST_RUNS {
            return None;
        }
        begins = (0..extent).flat_map(|k| begins.iter().map(move |begin| begin + k * step)).collect();
    }
    Some(begins.into_iter().map(|begin| Interval::new(begin, begin + length - 1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(index: u32, extent: i64) -> Axis {
        Axis { symbol: crate::symbolic::Symbol::axis(index), extent: Expr::int(extent) }
    }

    #[test]
    fn parts_that_lie_side_by_side_cover_a_row() {
        let (own, inner) = (Expr::axis(0), Expr::axis(1));
        let mut cover = Cover::default();
        cover.add(&(&(&own * 4) + &inner), &[axis(0, 3), axis(1, 4)]);
        assert!(cover.holds(Interval::new(0, 11)) && !cover.holds(Interval::new(0, 12)));
        cover.add(&(&Expr::int(15) - &own), &[axis(0, 4)]);
        assert!(cover.holds(Interval::new(3, 15)) && !cover.holds(Interval::new(0, 16)));
    }

    #[test]
    fn gaps_are_not_covered() {
        let mut cover = Cover::default();
        cover.add(&(&Expr::axis(0) * 2), &[axis(0, 4)]);
        assert!(cover.holds(Interval::point(2)) && !cover.holds(Interval::new(2, 3)));
        cover.add(&(&(&Expr::axis(0) * 2) + 1), &[axis(0, 4)]);
        assert!(cover.holds(Interval::new(0, 7)));
        let mut none = Cover::default();
        none.add(&Expr::axis(0), &[axis(0, 0)]);
        none.add(&Expr::axis(1), &[axis(0, 4)]);
        assert!(!none.holds(Interval::point(0)));
    }
}
