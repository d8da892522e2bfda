//! Places buffers of which some have sizes that are known only when the model runs.
//!
//! At a few sample sizes all buffers are placed by numbers, as fixed ones are. Of such a placement only one thing is kept: of two
//! buffers that are alive at the same time, which lies above. Each buffer then begins where the highest of those below it ends, as
//! an expression, so nothing overlaps at any size, whatever the samples were. The order that wastes the least at all samples wins.

use super::{LiveRange, ORDERS, Placed, alive_at_once, place_in_order};
use crate::loops::BufferId;
use crate::symbolic::{Expr, Node, Ranges, Symbol, common_divisor};
use std::collections::BTreeSet;

/// Sizes at which placements are compared, within the range of each symbol.
const SAMPLES: [i64; 3] = [24, 64, 500];

/// How many maxima are looked into to compare two ends.
const MAX_DEPTH: usize = 6;

/// Most nodes of an offset. A maximum that would be longer is bounded by a sum.
const MAX_NODES: usize = 48;

/// A buffer of any size.
pub(super) struct Sized {
    pub(super) id: BufferId,
    pub(super) live: LiveRange,
    pub(super) bytes: Expr,
}

/// An order from the lowest buffer to the highest, and for each, by its number, the buffers right below it.
struct Stack {
    order: Vec<usize>,
    below: Vec<Vec<usize>>,
}

/// The offsets of buffers, in their order, and where the last ends.
pub(super) fn place(buffers: &[Sized], ranges: &dyn Ranges) -> (Vec<Expr>, Expr) {
    let samples: Vec<Vec<i64>> = SAMPLES.iter().map(|typical| sizes_at(buffers, *typical, ranges)).collect();
    let mut orders = BTreeSet::new();
    for sizes in &samples {
        orders.extend(ORDERS.iter().map(|order| placed_at(buffers, sizes, *order)));
    }
    let stacks = orders.into_iter().map(|order| Stack::new(order, buffers));
    let least = stacks.min_by(|a, b| a.waste(buffers, &samples).total_cmp(&b.waste(buffers, &samples)));
    least.map_or_else(|| (Vec::new(), Expr::int(0)), |stack| stack.offsets(buffers, ranges))
}

/// The bytes of each buffer where all symbols have a typical size, or the nearest that they can have.
fn sizes_at(buffers: &[Sized], typical: i64, ranges: &dyn Ranges) -> Vec<i64> {
    let value_of = |symbol: Symbol| {
        let range = ranges.range(symbol);
        Some(typical.clamp(range.min, range.max.max(range.min)))
    };
    buffers.iter().map(|buffer| buffer.bytes.evaluate(&value_of).unwrap_or(i64::MAX).max(0)).collect()
}

/// The order, from the lowest to the highest, in which buffers of these sizes lie.
fn placed_at(buffers: &[Sized], sizes: &[i64], order: super::Order) -> Vec<usize> {
    let mut numbered: Vec<usize> = (0..buffers.len()).collect();
    let fixed = |k: usize| (buffers[k].id, buffers[k].live, sizes[k]);
    numbered.sort_by_key(|k| (order(&fixed(*k)), buffers[*k].id));
    let sorted: Vec<_> = numbered.iter().map(|k| fixed(*k)).collect();
    let (offsets, _) = place_in_order(&sorted);
    let mut placed: Vec<(i64, usize)> =
        offsets.iter().zip(numbered).map(|((_, offset), k)| (*offset, k)).collect();
    placed.sort_unstable();
    placed.into_iter().map(|(_, k)| k).collect()
}

impl Stack {
    fn new(order: Vec<usize>, buffers: &[Sized]) -> Stack {
        let end = buffers.iter().map(|buffer| buffer.live.to + 1).max().unwrap_or(0);
        let mut placed = Placed::new(end);
        let mut below = vec![Vec::new(); buffers.len()];
        for (rank, k) in order.iter().copied().enumerate() {
            let live = buffers[k].live;
            let mut ranks = placed.meeting(live);
            ranks.sort_unstable_by(|a, b| b.cmp(a));
            let mut nearest: Vec<usize> = Vec::new();
            for (_, other) in ranks {
                let other = usize::try_from(other).expect("a buffer's number");
                // What lies below one of the nearest ends before that one begins.
                if !nearest.iter().any(|above| buffers[*above].live.meets(buffers[other].live)) {
                    nearest.push(other);
                }
            }
            below[k] = nearest;
            let number = |k: usize| i64::try_from(k).expect("fewer buffers than bytes");
            placed.insert(live, (number(rank), number(k)));
        }
        Stack { order, below }
    }

    /// The most that this order takes at a sample, as a multiple of what is alive at once there.
    fn waste(&self, buffers: &[Sized], samples: &[Vec<i64>]) -> f64 {
        let ratios = samples.iter().map(|sizes| {
            let mut ends = vec![0i64; buffers.len()];
            for k in &self.order {
                let start = self.below[*k].iter().map(|other| ends[*other]).max().unwrap_or(0);
                ends[*k] = start.saturating_add(sizes[*k]);
            }
            let fixed: Vec<_> =
                buffers.iter().zip(sizes).map(|(buffer, bytes)| (buffer.id, buffer.live, *bytes)).collect();
            let total = ends.into_iter().max().unwrap_or(0);
            total as f64 / alive_at_once(&fixed).max(1) as f64
        });
        ratios.fold(0.0, f64::max)
    }

    fn offsets(&self, buffers: &[Sized], ranges: &dyn Ranges) -> (Vec<Expr>, Expr) {
        let mut ends = vec![Expr::int(0); buffers.len()];
        let mut offsets = ends.clone();
        for k in &self.order {
            offsets[*k] = highest(self.below[*k].iter().map(|other| &ends[*other]), ranges);
            ends[*k] = &offsets[*k] + &buffers[*k].bytes;
        }
        let total = highest(ends.iter(), ranges);
        (offsets, total)
    }
}

/// The largest of some ends, or a bound where that would be a long expression.
fn highest<'e>(ends: impl Iterator<Item = &'e Expr>, ranges: &dyn Ranges) -> Expr {
    let mut undominated: Vec<&Expr> = Vec::new();
    for end in ends {
        if undominated.iter().any(|other| reaches(other, end, ranges, MAX_DEPTH)) {
            continue;
        }
        undominated.retain(|other| !reaches(end, other, ranges, MAX_DEPTH));
        undominated.push(end);
    }
    let mut rest = undominated.into_iter();
    let first = rest.next().cloned().unwrap_or_default();
    rest.fold(first, |highest, end| {
        let maximum = highest.maximum_in(end, ranges);
        if nodes(&maximum) <= MAX_NODES { maximum } else { bound(&highest, end) }
    })
}

/// Whether `a >= b` at all sizes, as far as can be told by looking into so many maxima.
fn reaches(a: &Expr, b: &Expr, ranges: &dyn Ranges, depth: usize) -> bool {
    let difference = a - b;
    if difference.never_negative(ranges) || exceeds(&difference, ranges) {
        return true;
    }
    if depth == 0 {
        return false;
    }
    // Both of what `b` is the larger of must be reached, by either of what `a` is the larger of.
    if let Some([one, other]) = split(b) {
        return [one, other].iter().all(|b| reaches(a, b, ranges, depth - 1));
    }
    split(a).is_some_and(|parts| parts.iter().any(|a| reaches(a, b, ranges, depth - 1)))
}

/// The two expressions that one with a maximum among its terms is the larger of.
fn split(expr: &Expr) -> Option<[Expr; 2]> {
    let (_, terms) = expr.as_sum();
    let found = terms.iter().find_map(|(term, factor)| {
        let Node::Max(a, b) = term.node() else { return None };
        (*factor > 0).then_some((term, *factor, a, b))
    });
    let (term, factor, a, b) = found?;
    let rest = expr - &(term * factor);
    Some([a, b].map(|part| &rest + &(part * factor)))
}

/// Whether a difference is never negative, for sizes that are rounded up: `(x + 63) // 64` grows with `x`, which intervals
/// do not see.
fn exceeds(difference: &Expr, ranges: &dyn Ranges) -> bool {
    let (constant, terms) = difference.as_sum();
    let (mut more, less): (Vec<_>, Vec<_>) = terms.into_iter().partition(|(_, factor)| *factor > 0);
    let mut left = Expr::int(constant);
    for (term, factor) in less {
        let mut owed = factor.saturating_neg();
        for (_, others) in more.iter_mut().filter(|(other, _)| is_no_less(other, &term, ranges)) {
            let paid = owed.min(*others);
            (owed, *others) = (owed - paid, *others - paid);
        }
        left = &left - &(&term * owed);
    }
    more.iter().fold(left, |left, (term, factor)| &left + &(term * *factor)).never_negative(ranges)
}

/// Whether one quotient that is rounded down is at least another.
fn is_no_less(a: &Expr, b: &Expr, ranges: &dyn Ranges) -> bool {
    let (Node::FloorDiv(a, by), Node::FloorDiv(b, other)) = (a.node(), b.node()) else { return false };
    let (Some(by), Some(other)) = (by.as_int(), other.as_int()) else { return false };
    let (Ok(one), Ok(two)) = (u64::try_from(by), u64::try_from(other)) else { return false };
    let common = common_divisor(one, two).max(1);
    let (Ok(k), Ok(l)) = (i64::try_from(two / common), i64::try_from(one / common)) else { return false };
    // `a // by` is also `(k * a + k - 1) // (k * by)`.
    (&(&(a * k) + (k - 1)) - &(b * l)).never_negative(ranges)
}

/// At least the larger of two sums of terms that are never negative, without maxima.
fn bound(a: &Expr, b: &Expr) -> Expr {
    let (a_constant, mut terms) = without_maxima(a).as_sum();
    let (b_constant, others) = without_maxima(b).as_sum();
    for (term, factor) in others {
        match terms.iter_mut().find(|(own, _)| *own == term) {
            Some((_, own)) => *own = (*own).max(factor),
            None => terms.push((term, factor)),
        }
    }
    let positive = terms.iter().filter(|(_, factor)| *factor > 0);
    positive.fold(Expr::int(a_constant.max(b_constant)), |sum, (term, factor)| &sum + &(term * *factor))
}

fn without_maxima(expr: &Expr) -> Expr {
    let (constant, terms) = expr.as_sum();
    terms.iter().fold(Expr::int(constant), |sum, (term, factor)| {
        let Node::Max(a, b) = term.node() else { return &sum + &(term * *factor) };
        &sum + &(&bound(a, b) * *factor)
    })
}

fn nodes(expr: &Expr) -> usize {
    match expr.node() {
        Node::Int(_) | Node::Sym(_) => 1,
        Node::Sum { terms, .. } => 1 + terms.iter().map(|(term, _)| nodes(term)).sum::<usize>(),
        Node::Product(factors) => 1 + factors.iter().map(nodes).sum::<usize>(),
        Node::FloorDiv(a, b) | Node::Mod(a, b) | Node::Min(a, b) | Node::Max(a, b) => 1 + nodes(a) + nodes(b),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolic::{Interval, RangeTable};
    use cranelift_entity::EntityRef;

    fn size(index: u32) -> Expr {
        Expr::sym(Symbol::size(index))
    }

    fn ranges() -> RangeTable {
        let mut ranges = RangeTable::default();
        for index in 0..2 {
            ranges.set(Symbol::size(index), Interval::new(0, i64::MAX));
        }
        ranges
    }

    fn buffer(k: usize, from: usize, to: usize, bytes: &Expr) -> Sized {
        let bytes = &(bytes + 63).floor_div_in(&Expr::int(64), &ranges()) * 64;
        Sized { id: BufferId::new(k), live: LiveRange { from, to }, bytes }
    }

    /// What an expression is where the two symbols have these values.
    fn at(expr: &Expr, values: [i64; 2]) -> i64 {
        expr.evaluate(&|symbol| values.get(symbol.index as usize).copied()).expect("it is small")
    }

    const VALUES: [[i64; 2]; 9] =
        [[0, 0], [0, 9], [1, 1], [1, 700], [700, 1], [3, 17], [64, 64], [24, 500], [2000, 3000]];

    fn check(buffers: &[Sized]) {
        let (offsets, total) = place(buffers, &ranges());
        for values in VALUES {
            let span = |k: usize| {
                let start = at(&offsets[k], values);
                (start, start + at(&buffers[k].bytes, values))
            };
            for a in 0..buffers.len() {
                assert!(0 <= span(a).0 && span(a).1 <= at(&total, values), "{a} of {total} at {values:?}");
                assert_eq!(span(a).0 % 64, 0);
                for b in (0..a).filter(|b| buffers[a].live.meets(buffers[*b].live)) {
                    let apart = span(a).1 <= span(b).0 || span(b).1 <= span(a).0;
                    assert!(apart, "{a} and {b} overlap at {values:?}: {} and {}", offsets[a], offsets[b]);
                }
            }
        }
    }

    #[test]
    fn nothing_overlaps_at_any_size() {
        let mut state = 1u64;
        let mut random = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..60 {
            let count = 2 + random(18);
            let buffers: Vec<Sized> = (0..count)
                .map(|k| {
                    let from = random(12);
                    let factor = i64::try_from(1 + random(300)).expect("small");
                    let bytes = match random(5) {
                        0 => Expr::int(factor * 16),
                        1 => &size(0) * factor,
                        2 => &size(1) * factor,
                        3 => &(&size(0) * &size(1)) * factor,
                        _ => &(&size(1) * &size(1)) * (factor % 7),
                    };
                    let number = |value: u64| usize::try_from(value).expect("small");
                    buffer(number(k), number(from), number(from + random(5)), &bytes)
                })
                .collect();
            check(&buffers);
        }
    }

    #[test]
    fn buffers_share_by_order_and_a_larger_one_is_split() {
        let rows = size(0);
        let small = |k, from, to| buffer(k, from, to, &(&rows * 256));
        // One of four parts, then two of one part and one of two, then all of it again.
        let buffers = [
            buffer(0, 0, 1, &(&rows * 1024)),
            small(1, 2, 3),
            small(2, 2, 4),
            buffer(3, 3, 5, &(&rows * 512)),
            buffer(4, 6, 7, &(&rows * 1024)),
        ];
        assert_eq!(place(&buffers, &ranges()).1, &rows * 1024);
        check(&buffers);
    }

    #[test]
    fn where_neither_size_is_the_larger_the_maximum_of_both_is_taken() {
        let (one, other) = (&size(0) * 64, &size(1) * 64);
        let fixed = Expr::int(4096);
        let buffers = [buffer(0, 0, 1, &one), buffer(1, 2, 3, &other), buffer(2, 4, 5, &fixed)];
        let (_, total) = place(&buffers, &ranges());
        for values in VALUES {
            assert_eq!(at(&total, values), 64 * values[0].max(values[1]).max(64));
        }
    }

    #[test]
    fn sizes_that_are_rounded_up_are_in_the_order_of_what_was_rounded() {
        // Neither is a multiple of 64 bytes, whatever the size is.
        let (one, other) = (&size(0) * 20, &size(0) * 40);
        let buffers = [buffer(0, 0, 1, &one), buffer(1, 2, 3, &other), buffer(2, 4, 5, &one)];
        assert_eq!(place(&buffers, &ranges()).1, buffers[1].bytes);
    }

    #[test]
    fn long_programs_have_short_offsets() {
        // Each meets the next, and none is larger than another for all sizes.
        let bytes = |k: usize| {
            let factor = i64::try_from(64 * (1 + k % 7)).expect("small");
            if k.is_multiple_of(2) { &size(0) * factor } else { &size(1) * factor }
        };
        let buffers: Vec<Sized> = (0..200).map(|k| buffer(k, k, k + 2, &bytes(k))).collect();
        let (offsets, total) = place(&buffers, &ranges());
        assert!(offsets.iter().chain([&total]).all(|offset| nodes(offset) <= 2 * MAX_NODES));
        check(&buffers);
    }
}
