//! The most frequent number of a row: the twin of `include/aoti/linalg_mode.h`.

use super::{Real, Results};

/// Up to so many numbers are sorted by insertion.
const FEW: usize = 16;

/// The position that ends the first of the longest runs of equal numbers, in each row.
pub(super) fn mode<T: Real>(m: usize, n: usize, x: &[T]) -> Results<T> {
    let position = |row: usize| {
        let mut order: Vec<usize> = (0..n).collect();
        let x = &x[row * n..][..n];
        sort(x, &mut order);
        longest_run(x, &order)
    };
    Results { reals: vec![], integers: vec![(0..m).map(position).collect()] }
}

fn longest_run<T: Real>(x: &[T], order: &[usize]) -> i64 {
    let (mut found, mut length, mut most) = (0, 0, 0);
    for (i, own) in order.iter().enumerate() {
        length += 1;
        if order.get(i + 1).is_some_and(|next| x[*own] == x[*next]) {
            continue;
        }
        if length > most {
            (most, found) = (length, *own as i64);
        }
        length = 0;
    }
    found
}

/// Introspective sorting by what is less alone: NaN is less than nothing.
fn sort<T: Real>(x: &[T], order: &mut [usize]) {
    let depth = order.len().checked_ilog2().unwrap_or(0) * 2;
    let mut parts = vec![(0, order.len(), depth)];
    while let Some((first, mut end, mut depth)) = parts.pop() {
        while end - first > FEW {
            if depth == 0 {
                sort_by_heap(x, &mut order[first..end]);
                break;
            }
            depth -= 1;
            let cut = partition(x, order, first, end);
            parts.push((cut, end, depth));
            end = cut;
        }
    }
    insert_all(x, order);
}

/// Divides a part at the median of its second, middle and last number, and gives where the upper half begins.
fn partition<T: Real>(x: &[T], order: &mut [usize], first: usize, end: usize) -> usize {
    let less = |a: usize, b: usize| x[order[a]] < x[order[b]];
    let (a, b, c) = (first + 1, first + (end - first) / 2, end - 1);
    let median = match (less(a, b), less(a, c), less(b, c)) {
        (true, _, true) | (false, false, false) => b,
        (true, true, false) | (false, false, true) => c,
        (true, false, false) | (false, true, _) => a,
    };
    order.swap(first, median);
    let pivot = x[order[first]];
    let (mut low, mut high) = (first + 1, end);
    loop {
        while low < order.len() && x[order[low]] < pivot {
            low += 1;
        }
        high -= 1;
        while high > 0 && pivot < x[order[high]] {
            high -= 1;
        }
        if low >= high {
            return low;
        }
        order.swap(low, high);
        low += 1;
    }
}

fn insert_all<T: Real>(x: &[T], order: &mut [usize]) {
    for i in 1..order.len() {
        let own = order[i];
        let to_front = i < FEW && x[own] < x[order[0]];
        let mut hole = i;
        while hole > 0 && (to_front || x[own] < x[order[hole - 1]]) {
            order[hole] = order[hole - 1];
            hole -= 1;
        }
        order[hole] = own;
    }
}

fn sort_by_heap<T: Real>(x: &[T], order: &mut [usize]) {
    let n = order.len();
    for parent in (0..n / 2).rev() {
        sink(x, order, parent, n, order[parent]);
    }
    for last in (1..n).rev() {
        let own = order[last];
        order[last] = order[0];
        sink(x, order, 0, last, own);
    }
}

/// Moves a hole down to a leaf, along the larger children, and what belongs there up to its place.
fn sink<T: Real>(x: &[T], order: &mut [usize], top: usize, n: usize, own: usize) {
    let (mut hole, mut child) = (top, top);
    while child < (n - 1) / 2 {
        child = 2 * (child + 1);
        if x[order[child]] < x[order[child - 1]] {
            child -= 1;
        }
        order[hole] = order[child];
        hole = child;
    }
    if n.is_multiple_of(2) && child == (n - 2) / 2 {
        child = 2 * child + 1;
        order[hole] = order[child];
        hole = child;
    }
    while hole > top && x[order[(hole - 1) / 2]] < x[own] {
        order[hole] = order[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    order[hole] = own;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(x: &[f64]) -> i64 {
        mode(1, x.len(), x).integers[0][0]
    }

    /// Positions that PyTorch gives.
    #[test]
    fn not_a_number_divides_runs_where_sorting_stops_at_it() {
        let nan = f64::NAN;
        let x = [3.7, 8.4, 1.1e-308, -0.0, 2.29, 65504.0, 128.0, 0.67, 2.29, nan, nan, -0.0, 0.67];
        assert_eq!(found(&x), 8);
        assert_eq!(found(&[1.0, nan, nan]), 0);
        assert_eq!(found(&[nan, 2.0, 2.0]), 2);
        assert_eq!(found(&[0.0, -0.0, 1.0, 1.0]), 1);
        assert_eq!(found(&[]), 0);
    }

    #[test]
    fn rows_are_sorted_whatever_their_order() {
        let rows: [&dyn Fn(usize) -> f64; 4] =
            [&|i| i as f64, &|i| -(i as f64), &|i| (i * 7919 % 1009) as f64, &|i| (i % 3) as f64];
        for (row, n) in rows.iter().flat_map(|row| [0, 1, 2, 16, 17, 100, 1000].map(|n| (row, n))) {
            let x: Vec<f64> = (0..n).map(row).collect();
            let mut order: Vec<usize> = (0..n).collect();
            sort(&x, &mut order);
            assert!(order.windows(2).all(|pair| x[pair[0]] <= x[pair[1]]), "{n}");
            let mut order: Vec<usize> = (0..n).collect();
            sort_by_heap(&x, &mut order);
            assert!(order.windows(2).all(|pair| x[pair[0]] <= x[pair[1]]), "{n}");
        }
    }
}
