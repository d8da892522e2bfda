//! Selection by rank: the twin of `include/aoti/linalg_select.h`.

use super::{Real, Results};

/// The position of the number of a rank, from 1 on, in each row.
pub(super) fn select<T: Real>(m: usize, n: usize, x: &[T], rank: i64) -> Results<T> {
    let rank = usize::try_from(rank - 1).unwrap_or(0).min(n.saturating_sub(1));
    let position = |row: usize| {
        let mut order: Vec<usize> = (0..n).collect();
        partition_to(&x[row * n..][..n], &mut order, rank);
        order.get(rank).map_or(0, |position| *position as i64)
    };
    Results { reals: vec![], integers: vec![(0..m).map(position).collect()] }
}

/// Whether `x` comes after `y`, NaN last.
#[expect(clippy::eq_op, reason = "NaN is what differs from itself")]
fn after<T: Real>(x: T, y: T) -> bool {
    x > y || (x != x && y == y)
}

/// Puts the number of this rank in its place.
fn partition_to<T: Real>(x: &[T], order: &mut [usize], rank: usize) {
    let sort = |order: &mut [usize], a: usize, b: usize| {
        if after(x[order[a]], x[order[b]]) {
            order.swap(a, b);
        }
    };
    // One beyond the last, which can be the first.
    let (mut low, mut end) = (0, order.len());
    while end > low + 2 {
        let high = end - 1;
        order.swap(low + (high - low) / 2, low + 1);
        sort(order, low + 1, high);
        sort(order, low, high);
        sort(order, low + 1, low);
        let pivot = x[order[low]];
        let (mut i, mut j) = (low + 1, high);
        loop {
            i += 1;
            while after(pivot, x[order[i]]) {
                i += 1;
            }
            j -= 1;
            while after(x[order[j]], pivot) {
                j -= 1;
            }
            if j < i {
                break;
            }
            order.swap(i, j);
        }
        order.swap(low, j);
        if j <= rank {
            low = i;
        }
        if j >= rank {
            end = j;
        }
    }
    if end == low + 2 {
        sort(order, low, low + 1);
    }
}
