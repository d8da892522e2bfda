//! Rewrites an element-wise nest onto the outer axes of another nest, splitting and joining its own axes where sizes
//! show how they correspond in row-major order.

use super::axes::{rebuild, symbol};
use crate::loops::{Axis, Nest};
use crate::symbolic::{Expr, Ranges, Symbol};
use std::collections::{BTreeMap, VecDeque};

/// The nest with `outer` as its first axes; `None` where the sizes do not correspond.
pub(super) fn align(nest: &Nest, outer: &[Axis], ranges: &dyn Ranges) -> Option<Nest> {
    let same_prefix = nest.axes.len() >= outer.len()
        && nest.axes.iter().zip(outer).all(|(own, wanted)| own.extent == wanted.extent);
    if same_prefix {
        return Some(nest.clone());
    }
    let mut map: BTreeMap<Symbol, Expr> = BTreeMap::new();
    // What is left of the nest's axes: the extent, and how positions in it enter the original axis.
    let mut left: VecDeque<(Symbol, Expr)> =
        nest.axes.iter().map(|axis| (axis.symbol, axis.extent.clone())).collect();
    let mut bases: BTreeMap<Symbol, Expr> = BTreeMap::new();
    for (position, wanted) in outer.iter().enumerate() {
        let axis = Expr::axis(position);
        let (own, extent) = left.pop_front()?;
        if extent == wanted.extent {
            bind(&mut map, &bases, own, axis);
        } else if let Some(count) = factors(&extent, &left, &wanted.extent) {
            let mut parts = vec![(own, extent)];
            parts.extend(left.drain(..count));
            split_position(&axis, &parts, &bases, &mut map, ranges);
        } else {
            let (whole, part) = (extent.as_int()?, wanted.extent.as_int()?);
            if part <= 0 || whole % part != 0 {
                return None;
            }
            let rest = Expr::int(whole / part);
            let base = bases.get(&own).cloned().unwrap_or_else(|| Expr::int(0));
            bases.insert(own, &base + &(&axis * &rest));
            left.push_front((own, rest));
        }
    }
    let mut inner_axes = outer.to_vec();
    for (own, extent) in left {
        let new = symbol(inner_axes.len());
        bind(&mut map, &bases, own, Expr::sym(new));
        inner_axes.push(Axis { symbol: new, extent });
    }
    for (position, axis) in inner_axes.iter_mut().enumerate() {
        axis.symbol = symbol(position);
    }
    let mut aligned = nest.clone();
    let stages = aligned.stages.len();
    let inner = vec![vec![]; stages];
    rebuild(&mut aligned, inner_axes, inner, &vec![map; stages], ranges);
    Some(aligned)
}

fn bind(map: &mut BTreeMap<Symbol, Expr>, bases: &BTreeMap<Symbol, Expr>, own: Symbol, position: Expr) {
    let value = match bases.get(&own) {
        Some(base) => base + &position,
        None => position,
    };
    map.insert(own, value);
}

/// How many of the axes in `left` together with `first` make up `wanted`.
fn factors(first: &Expr, left: &VecDeque<(Symbol, Expr)>, wanted: &Expr) -> Option<usize> {
    let mut product = first.clone();
    for (count, (_, extent)) in left.iter().enumerate() {
        product = &product * extent;
        if product == *wanted {
            return Some(count + 1);
        }
    }
    None
}

/// Positions in several axes from the position in their product.
fn split_position(
    axis: &Expr,
    parts: &[(Symbol, Expr)],
    bases: &BTreeMap<Symbol, Expr>,
    map: &mut BTreeMap<Symbol, Expr>,
    ranges: &dyn Ranges,
) {
    for (index, (own, extent)) in parts.iter().enumerate() {
        let stride = Expr::product(parts[index + 1..].iter().map(|(_, extent)| extent));
        let quotient = axis.floor_div_in(&stride, ranges);
        let position = if index == 0 { quotient } else { quotient.modulo_in(extent, ranges) };
        bind(map, bases, *own, position);
    }
}
