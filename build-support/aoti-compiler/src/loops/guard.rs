//! What is known of an access whose guards hold.

use super::bounds::fresh;
use super::{Axis, Guard};
use crate::symbolic::{Expr, RangeTable, Symbol};

/// `expr` with each guarded coordinate as an axis of its own, which runs over the size that the guard names. `ranges` learns of these
/// axes. `may_hold` sees each guard first; nothing is returned where one cannot hold.
pub(super) fn inside(
    mut expr: Expr,
    guards: &[Guard],
    axes: &[Axis],
    ranges: &mut RangeTable,
    may_hold: &mut dyn FnMut(&Guard, &RangeTable) -> bool,
) -> Option<Expr> {
    let mut guards = guards.to_vec();
    for number in 0..guards.len() {
        let guard = guards[number].clone();
        if !may_hold(&guard, ranges) {
            return None;
        }
        let inside = fresh(1024 + number, guard.size.clone());
        ranges.set_extent(inside.symbol, guard.size.clone());
        if let Some(without) = guard.exchanged(&expr, &inside) {
            expr = without;
        }
        let Some((symbol, value)) = guard.solved(axes, &inside) else { continue };
        let replace = |other: Symbol| (other == symbol).then(|| value.clone());
        expr = expr.substitute(&replace, ranges);
        for later in &mut guards[number + 1..] {
            later.coordinate = later.coordinate.substitute(&replace, ranges);
        }
    }
    Some(expr)
}

impl Guard {
    /// `expr` with multiples of the coordinate in it as multiples of the axis `inside`, which has its values where the guard holds.
    fn exchanged(&self, expr: &Expr, inside: &Axis) -> Option<Expr> {
        let coordinate = &self.coordinate;
        let (_, terms) = expr.as_sum();
        coordinate.as_sum().1.iter().find_map(|(wanted, amount)| {
            let ratios = terms.iter().filter_map(|(term, coefficient)| {
                let mut factors = term.factors();
                for factor in wanted.factors() {
                    factors.remove(factors.iter().position(|own| *own == factor)?);
                }
                let whole = coefficient.checked_rem(*amount)? == 0;
                whole.then(|| &Expr::product(&factors) * (coefficient / amount))
            });
            let ratio = ratios.reduce(|a, b| &a + &b).filter(|ratio| !ratio.is(0))?;
            Some(expr + &(&ratio * &(&Expr::sym(inside.symbol) - coordinate)))
        })
    }

    /// An axis, and what it is where the coordinate is at `inside`.
    fn solved(&self, axes: &[Axis], inside: &Axis) -> Option<(Symbol, Expr)> {
        axes.iter().find_map(|axis| {
            let (coefficient, rest) = self.coordinate.affine_in(axis.symbol)?;
            let sign = coefficient.as_int().filter(|sign| sign.abs() == 1)?;
            Some((axis.symbol, &(&Expr::sym(inside.symbol) - &rest) * sign))
        })
    }
}
