//! Sorting, elements by their rank, and searching.

use super::error::EvalError;
use super::tensor::{Lanes, Tensor};
use crate::graph::Ties;
use std::cmp::Ordering;

/// Order of floating-point numbers in which NaN is largest and -0 equals 0.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// How two elements of a tensor compare.
type Compare<'a> = Box<dyn Fn(usize, usize) -> Ordering + 'a>;

fn compare(x: &Tensor) -> Compare<'_> {
    match x.lanes() {
        Lanes::F32(v) => Box::new(move |a, b| order(f64::from(v[a]), f64::from(v[b]))),
        Lanes::F64(v) => Box::new(move |a, b| order(v[a], v[b])),
        Lanes::Int(v) => Box::new(move |a, b| v[a].cmp(&v[b])),
        Lanes::Uint(v) => Box::new(move |a, b| v[a].cmp(&v[b])),
    }
}

/// What is sorted of a row: runs of so many elements, each by itself, of which the first so many are results.
pub(super) struct Runs {
    pub(super) length: usize,
    pub(super) kept: usize,
    pub(super) descending: bool,
}

/// Stable sort along an axis: values, and where in the row they were.
pub(super) fn sort(x: &Tensor, axis: usize, runs: &Runs) -> (Tensor, Vec<i64>) {
    let compare = compare(x);
    let (length, inner) = (x.sizes()[axis], x.sizes()[axis + 1..].iter().product::<usize>());
    let outer: usize = x.sizes()[..axis].iter().product();
    let width = x.dtype().size();
    let run = runs.length.min(length).max(1);
    let kept = |start: usize| runs.kept.min(run.min(length - start));
    let results: usize = (0..length).step_by(run).map(kept).sum();
    let mut sizes = x.sizes().to_vec();
    sizes[axis] = results;
    let numel = outer * results * inner;
    let (mut values, mut places) = (vec![0; numel * width], vec![0i64; numel]);
    for row in 0..outer {
        for column in 0..inner {
            let offset = |k: usize| (row * length + k) * inner + column;
            let mut to = row * results * inner + column;
            for start in (0..length).step_by(run) {
                let mut ranks: Vec<usize> = (start..length.min(start + run)).collect();
                ranks.sort_by(|a, b| {
                    let ascending = compare(offset(*a), offset(*b));
                    if runs.descending { ascending.reverse() } else { ascending }
                });
                for from in ranks.into_iter().take(kept(start)) {
                    places[to] = from as i64;
                    let element = &x.bytes()[offset(from) * width..][..width];
                    values[to * width..][..width].copy_from_slice(element);
                    to += inner;
                }
            }
        }
    }
    (Tensor::new(x.dtype(), sizes, values).expect("as many as were counted"), places)
}

/// Stable sort of whole rows along an axis, or the first of it: values and indices.
pub(super) fn sort_whole(x: &Tensor, axis: usize, kept: Option<i64>, descending: bool) -> Vec<Tensor> {
    let kept = kept.and_then(|kept| usize::try_from(kept).ok()).unwrap_or(usize::MAX);
    let (values, places) = sort(x, axis, &Runs { length: usize::MAX, kept, descending });
    let sizes = values.sizes().to_vec();
    vec![values, Tensor::from_i64(&sizes, &places)]
}

/// What a tensor of ranks holds.
pub(super) fn ranks(tensor: &Tensor) -> Result<Vec<i64>, EvalError> {
    tensor.to_i64().ok_or_else(|| EvalError::Malformed("ranks are integers".to_owned()))
}

/// The elements of a tensor of ranks: values and indices.
pub(super) fn nth_elements(
    x: &Tensor,
    of_rows: &Tensor,
    axis: usize,
    ties: Ties,
) -> Result<Vec<Tensor>, EvalError> {
    let (values, places) = nth_element(x, &ranks(of_rows)?, axis, ties);
    let sizes = values.sizes().to_vec();
    Ok(vec![values, Tensor::from_i64(&sizes, &places)])
}

/// The element of a rank in each row along an axis: values, and where in the row they were.
pub(super) fn nth_element(x: &Tensor, ranks: &[i64], axis: usize, ties: Ties) -> (Tensor, Vec<i64>) {
    let compare = compare(x);
    let (length, inner) = (x.sizes()[axis], x.sizes()[axis + 1..].iter().product::<usize>());
    let width = x.dtype().size();
    let mut sizes = x.sizes().to_vec();
    sizes[axis] = 1;
    let (mut values, mut places) = (vec![], vec![]);
    for (row, rank) in ranks.iter().enumerate() {
        let offset = |k: usize| (row / inner * length + k) * inner + row % inner;
        let rank = usize::try_from(*rank).unwrap_or(0).min(length - 1);
        let mut order: Vec<usize> = (0..length).collect();
        match ties {
            Ties::Stable => order.sort_by(|a, b| compare(offset(*a), offset(*b))),
            Ties::Partitioned => {
                partition_to(&|a, b| compare(offset(a), offset(b)).is_gt(), &mut order, rank);
            }
        }
        places.push(order[rank] as i64);
        values.extend_from_slice(&x.bytes()[offset(order[rank]) * width..][..width]);
    }
    (Tensor::new(x.dtype(), sizes, values).expect("one of each row"), places)
}

/// Puts the element of this rank in its place: the twin of `partition_to` of `nth_element.h`.
fn partition_to(after: &dyn Fn(usize, usize) -> bool, order: &mut [usize], rank: usize) {
    let sort = |order: &mut [usize], a: usize, b: usize| {
        if after(order[a], order[b]) {
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
        let pivot = order[low];
        let (mut i, mut j) = (low + 1, high);
        loop {
            i += 1;
            while after(pivot, order[i]) {
                i += 1;
            }
            j -= 1;
            while after(order[j], pivot) {
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

/// Where each value would be inserted into its sorted row.
pub(super) fn search_sorted(sorted: &Tensor, values: &Tensor, right: bool) -> Result<Tensor, EvalError> {
    let malformed = || EvalError::Malformed("operands of a search do not fit".to_owned());
    let (n, m) = match (sorted.sizes().last(), values.sizes().last()) {
        (Some(n), Some(m)) => (*n, *m),
        _ => return Err(malformed()),
    };
    let at_least: Box<dyn Fn(usize, usize) -> bool> = match (sorted.lanes(), values.lanes()) {
        (Lanes::F32(s), Lanes::F32(v)) => {
            Box::new(move |a, b| if right { s[a] > v[b] } else { s[a] >= v[b] })
        }
        (Lanes::F64(s), Lanes::F64(v)) => {
            Box::new(move |a, b| if right { s[a] > v[b] } else { s[a] >= v[b] })
        }
        (Lanes::Int(s), Lanes::Int(v)) => {
            Box::new(move |a, b| if right { s[a] > v[b] } else { s[a] >= v[b] })
        }
        (Lanes::Uint(s), Lanes::Uint(v)) => {
            Box::new(move |a, b| if right { s[a] > v[b] } else { s[a] >= v[b] })
        }
        _ => return Err(malformed()),
    };
    let mut result = Vec::with_capacity(values.numel());
    for position in 0..values.numel() {
        let row = position / m * n;
        let (mut low, mut high) = (0, n);
        while low < high {
            let middle = (low + high) / 2;
            if at_least(row + middle, position) { high = middle } else { low = middle + 1 }
        }
        result.push(low as i64);
    }
    Ok(Tensor::from_i64(values.sizes(), &result))
}
