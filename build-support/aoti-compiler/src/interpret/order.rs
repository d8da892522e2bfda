//! Sorting and searching.

use super::error::EvalError;
use super::tensor::{Lanes, Tensor};
use std::cmp::Ordering;

/// Order of floating-point numbers in which NaN is largest and -0 equals 0.
fn order(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}

/// Stable sort along an axis: values and indices.
pub(super) fn sort(x: &Tensor, axis: usize, descending: bool) -> (Tensor, Tensor) {
    let compare: Box<dyn Fn(usize, usize) -> Ordering> = match x.lanes() {
        Lanes::F32(v) => Box::new(move |a, b| order(f64::from(v[a]), f64::from(v[b]))),
        Lanes::F64(v) => Box::new(move |a, b| order(v[a], v[b])),
        Lanes::Int(v) => Box::new(move |a, b| v[a].cmp(&v[b])),
        Lanes::Uint(v) => Box::new(move |a, b| v[a].cmp(&v[b])),
    };
    let (length, inner) = (x.sizes()[axis], x.sizes()[axis + 1..].iter().product::<usize>());
    let outer: usize = x.sizes()[..axis].iter().product();
    let width = x.dtype().size();
    let (mut values, mut indices) = (x.bytes().to_vec(), vec![0i64; x.numel()]);
    for row in 0..outer {
        for column in 0..inner {
            let offset = |k: usize| (row * length + k) * inner + column;
            let mut ranks: Vec<usize> = (0..length).collect();
            ranks.sort_by(|a, b| {
                let ascending = compare(offset(*a), offset(*b));
                if descending { ascending.reverse() } else { ascending }
            });
            for (to, from) in ranks.into_iter().enumerate() {
                indices[offset(to)] = from as i64;
                let element = &x.bytes()[offset(from) * width..][..width];
                values[offset(to) * width..][..width].copy_from_slice(element);
            }
        }
    }
    let values = Tensor::new(x.dtype(), x.sizes().to_vec(), values).expect("the operand's own size");
    (values, Tensor::from_i64(x.sizes(), &indices))
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
