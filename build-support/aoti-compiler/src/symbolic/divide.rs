//! Floor division and remainder: the rules that undo what reshapes do to indices.

use super::expr::{floor_div, modulo};
use super::{Expr, NoRanges, Node, Ranges, SymbolKind};
use std::collections::BTreeMap;

impl Expr {
    /// Quotient rounded down.
    pub fn floor_div(&self, divisor: &Expr) -> Expr {
        self.floor_div_in(divisor, &NoRanges)
    }

    /// Remainder with the sign of the divisor.
    pub fn modulo(&self, divisor: &Expr) -> Expr {
        self.modulo_in(divisor, &NoRanges)
    }

    /// Quotient rounded down, simplified with what the ranges tell.
    pub fn floor_div_in(&self, divisor: &Expr, ranges: &dyn Ranges) -> Expr {
        if divisor.is(1) {
            return self.clone();
        }
        if let (Some(a), Some(b)) = (self.as_int(), divisor.as_int()) {
            return floor_div(a, b).map_or_else(|| raw_div(self, divisor), Expr::int);
        }
        let positive = divisor.interval(ranges).min > 0;
        if !positive {
            return if self.is(0) { Expr::int(0) } else { raw_div(self, divisor) };
        }
        let (whole, rest) = split_multiples(self, divisor);
        if is_remainder(&rest, divisor, ranges) {
            return whole;
        }
        &whole + &div_rest(&rest, divisor, ranges)
    }

    /// What `divisor` is multiplied by to give this, if that is visible. Unlike a quotient, it is that also where the divisor
    /// may be 0.
    pub fn cofactor(&self, divisor: &Expr) -> Option<Expr> {
        let (whole, rest) = split_multiples(self, divisor);
        rest.is(0).then_some(whole)
    }

    /// Remainder with the sign of the divisor, simplified with what the ranges tell.
    pub fn modulo_in(&self, divisor: &Expr, ranges: &dyn Ranges) -> Expr {
        if divisor.is(1) || divisor == self {
            return Expr::int(0);
        }
        if let (Some(a), Some(b)) = (self.as_int(), divisor.as_int()) {
            return modulo(a, b).map_or_else(|| raw_mod(self, divisor), Expr::int);
        }
        if divisor.interval(ranges).min <= 0 {
            return if self.is(0) { Expr::int(0) } else { raw_mod(self, divisor) };
        }
        let (_, rest) = split_multiples(self, divisor);
        if is_remainder(&rest, divisor, ranges) {
            return rest;
        }
        // (a mod (b*c)) mod b == a mod b
        if let Node::Mod(inner, outer) = rest.node()
            && split_multiples(outer, divisor).1.is(0)
            && outer.interval(ranges).min > 0
        {
            return inner.modulo_in(divisor, ranges);
        }
        // (g*a) mod (g*b) == g * (a mod b)
        if let Some((common, small_rest, small_divisor)) = common_factor(&rest, divisor) {
            return &small_rest.modulo_in(&small_divisor, ranges) * &Expr::int(common);
        }
        raw_mod(&rest, divisor)
    }

    /// Whether `self < other` for every value of the symbols, as far as can be told.
    pub fn always_less(&self, other: &Expr, ranges: &dyn Ranges) -> bool {
        let gap = other - self;
        gap.interval(ranges).min > 0 || replace_axes(&gap, ranges).interval(ranges).min > 0
    }

    /// Whether `0 <= self` for every value of the symbols, as far as can be told.
    pub fn never_negative(&self, ranges: &dyn Ranges) -> bool {
        self.interval(ranges).min >= 0
    }
}

/// Makes `expr` as small as its axes can make it, in terms of their extents, where it is affine in them.
fn replace_axes(expr: &Expr, ranges: &dyn Ranges) -> Expr {
    let mut symbols = std::collections::BTreeSet::new();
    expr.collect_symbols(&mut symbols);
    let mut result = expr.clone();
    for symbol in symbols.into_iter().filter(|symbol| symbol.kind == SymbolKind::Axis) {
        let (Some(extent), Some((coefficient, rest))) = (ranges.extent(symbol), result.affine_in(symbol))
        else {
            continue;
        };
        let sign = coefficient.interval(ranges);
        if sign.min >= 0 {
            result = rest;
        } else if sign.max <= 0 {
            result = &rest + &(&coefficient * &(extent - 1));
        }
    }
    result
}

fn raw_div(a: &Expr, b: &Expr) -> Expr {
    Expr::new(Node::FloorDiv(a.clone(), b.clone()))
}

fn raw_mod(a: &Expr, b: &Expr) -> Expr {
    Expr::new(Node::Mod(a.clone(), b.clone()))
}

fn is_remainder(rest: &Expr, divisor: &Expr, ranges: &dyn Ranges) -> bool {
    rest.is(0) || (rest.never_negative(ranges) && rest.always_less(divisor, ranges))
}

/// `expr == whole * divisor + rest`, taking every term that is visibly a multiple into `whole`.
fn split_multiples(expr: &Expr, divisor: &Expr) -> (Expr, Expr) {
    if let Some(whole) = multiple_of_sum(expr, divisor) {
        return (whole, Expr::int(0));
    }
    let (constant, terms) = expr.as_sum();
    let (mut whole, mut rest) = (Vec::new(), Vec::new());
    let (mut whole_constant, mut rest_constant) = (0, constant);
    if let Some(d) = divisor.as_int().filter(|d| *d > 0) {
        whole_constant = constant.div_euclid(d);
        rest_constant = constant.rem_euclid(d);
    }
    for (term, coefficient) in terms {
        match exact_quotient(&term, coefficient, divisor) {
            Some((quotient, scale)) => whole.push(&quotient * &Expr::int(scale)),
            None => rest.push((term, coefficient)),
        }
    }
    let whole = whole.into_iter().fold(Expr::int(whole_constant), |sum, part| &sum + &part);
    (whole, Expr::from_terms(rest_constant, rest))
}

/// What a sum is multiplied by to give `expr`, by long division, if nothing is left over.
fn multiple_of_sum(expr: &Expr, divisor: &Expr) -> Option<Expr> {
    /// Longer ones do not come from sizes.
    const TERMS: usize = 16;
    let (constant, terms) = divisor.as_sum();
    if terms.len() + usize::from(constant != 0) < 2 {
        return None;
    }
    let (leading, scale) = leading_term(&terms)?;
    let leading = &leading * &Expr::int(scale);
    let (mut whole, mut rest) = (Expr::int(0), expr.clone());
    for _ in 0..TERMS {
        if rest.is(0) {
            return Some(whole);
        }
        let (term, coefficient) = leading_term(&rest.as_sum().1)?;
        let (quotient, factor) = exact_quotient(&term, coefficient, &leading)?;
        let quotient = &quotient * &Expr::int(factor);
        rest = &rest - &(&quotient * divisor);
        whole = &whole + &quotient;
    }
    None
}

/// The term with most factors, of equals the last.
fn leading_term(terms: &[(Expr, i64)]) -> Option<(Expr, i64)> {
    terms.iter().max_by_key(|(term, _)| (term.factors().len(), term)).cloned()
}

/// `coefficient * term / divisor` if it is visibly whole.
fn exact_quotient(term: &Expr, coefficient: i64, divisor: &Expr) -> Option<(Expr, i64)> {
    let (constant, divisor_terms) = divisor.as_sum();
    if divisor_terms.is_empty() {
        // Zero divides nothing; a division by it is kept as it is.
        let is_whole = coefficient.checked_rem(constant)? == 0;
        return is_whole.then(|| (term.clone(), coefficient / constant));
    }
    let [(product, scale)] = divisor_terms.as_slice() else { return None };
    if constant != 0 || coefficient.checked_rem(*scale)? != 0 {
        return None;
    }
    let mut factors = term.factors();
    for factor in &product.factors() {
        let position = factors.iter().position(|candidate| candidate == factor)?;
        factors.remove(position);
    }
    let quotient = factors.iter().fold(Expr::int(1), |product, factor| &product * factor);
    Some((quotient, coefficient / scale))
}

/// Divides what is left after whole multiples were taken out.
fn div_rest(rest: &Expr, divisor: &Expr, ranges: &dyn Ranges) -> Expr {
    // (a / b) / c == a / (b*c)
    if let Node::FloorDiv(inner, first) = rest.node()
        && first.interval(ranges).min > 0
    {
        return inner.floor_div_in(&(first * divisor), ranges);
    }
    // (a mod (b*c)) / b == (a / b) mod c
    if let Node::Mod(inner, modulus) = rest.node() {
        let (quotient, remainder) = split_multiples(modulus, divisor);
        if remainder.is(0) && quotient.interval(ranges).min > 0 {
            return inner.floor_div_in(divisor, ranges).modulo_in(&quotient, ranges);
        }
    }
    if let Some((_, small_rest, small_divisor)) = common_factor(rest, divisor) {
        return small_rest.floor_div_in(&small_divisor, ranges);
    }
    if let Some((small_rest, small_divisor)) = without_common_size(rest, divisor, ranges) {
        return small_rest.floor_div_in(&small_divisor, ranges);
    }
    // (g*a + r) / (g*b) == a / b when 0 <= r < g
    if let Some(d) = divisor.as_int()
        && let Some((scaled, small_divisor)) = drop_small_part(rest, d, ranges)
    {
        return scaled.floor_div_in(&Expr::int(small_divisor), ranges);
    }
    if let Some((joint, inner)) = joint_dividend(rest, ranges) {
        return joint.floor_div_in(&(&inner * divisor), ranges);
    }
    raw_div(rest, divisor)
}

/// `a + b*c` and `b` of `a / b + c`, whose quotient by `d` is that of `a + b*c` by `b*d`.
fn joint_dividend(rest: &Expr, ranges: &dyn Ranges) -> Option<(Expr, Expr)> {
    let (_, terms) = rest.as_sum();
    let quotients = || terms.iter().filter(|(term, _)| matches!(term.node(), Node::FloorDiv(..)));
    let [(quotient, 1)] = quotients().collect::<Vec<_>>()[..] else { return None };
    let Node::FloorDiv(dividend, inner) = quotient.node() else { return None };
    let others = rest - quotient;
    (inner.interval(ranges).min > 0).then(|| (dividend + &(&others * inner), inner.clone()))
}

/// The largest integer above 1 that divides every coefficient of both.
fn common_factor(a: &Expr, b: &Expr) -> Option<(i64, Expr, Expr)> {
    let (a_constant, a_terms) = a.as_sum();
    let (b_constant, b_terms) = b.as_sum();
    let common = a_terms
        .iter()
        .chain(&b_terms)
        .map(|(_, coefficient)| *coefficient)
        .chain([a_constant, b_constant])
        .fold(0i64, gcd);
    (common > 1).then(|| {
        let scale = |constant: i64, terms: Vec<(Expr, i64)>| {
            Expr::from_terms(constant / common, terms.into_iter().map(|(term, c)| (term, c / common)))
        };
        (common, scale(a_constant, a_terms), scale(b_constant, b_terms))
    })
}

/// Both without a factor that every term of them has, if it is positive.
fn without_common_size(a: &Expr, b: &Expr, ranges: &dyn Ranges) -> Option<(Expr, Expr)> {
    let (0, terms) = b.as_sum() else { return None };
    let [(product, _)] = terms.as_slice() else { return None };
    let factors = product.factors();
    factors.iter().filter(|factor| factor.interval(ranges).min > 0).find_map(|factor| {
        let divided = |expr: &Expr| {
            let (whole, rest) = split_multiples(expr, factor);
            rest.is(0).then_some(whole)
        };
        Some((divided(a)?, divided(b)?))
    })
}

fn drop_small_part(rest: &Expr, divisor: i64, ranges: &dyn Ranges) -> Option<(Expr, i64)> {
    let (constant, terms) = rest.as_sum();
    let mut candidates: Vec<i64> =
        terms.iter().map(|(_, coefficient)| gcd(*coefficient, divisor)).filter(|g| *g > 1).collect();
    candidates.sort_unstable();
    candidates.dedup();
    for step in candidates.into_iter().rev() {
        let (big, small): (Vec<_>, Vec<_>) = terms.iter().cloned().partition(|(_, c)| c % step == 0);
        let small = Expr::from_terms(constant.rem_euclid(step), small);
        if is_remainder(&small, &Expr::int(step), ranges) {
            let big = big.into_iter().map(|(term, c)| (term, c / step));
            return Some((Expr::from_terms(constant.div_euclid(step), big), divisor / step));
        }
    }
    None
}

/// The greatest common divisor; 0 where both are.
pub(crate) fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The same of coefficients; 1 where it is beyond them.
fn gcd(a: i64, b: i64) -> i64 {
    i64::try_from(common_divisor(a.unsigned_abs(), b.unsigned_abs())).unwrap_or(1)
}

/// Within a sum, joins `b*(a/b) + a mod b` to `a` (in whichever form the quotient is), `b*((a/b) mod c) + a mod b` to `a mod (b*c)`, `a - a mod b` to `b*(a/b)`,
/// and `a - b*(a/b)` to `a mod b`.
pub(super) fn join_quotients(terms: &mut BTreeMap<Expr, i64>) {
    join_remainders(terms);
    while let Some((parts, joined, scale)) = complement(terms) {
        terms.retain(|term, _| !parts.contains(term));
        let entry = terms.entry(joined).or_insert(0);
        *entry = entry.saturating_add(scale);
        terms.retain(|_, coefficient| *coefficient != 0);
        join_remainders(terms);
    }
}

/// The terms of `k*a` and what is taken from it, its remainder by something or the rest of it, and what is left, `k` times.
fn complement(terms: &BTreeMap<Expr, i64>) -> Option<(Vec<Expr>, Expr, i64)> {
    let all_of = |a: &Expr, scale: i64| {
        let (constant, own) = a.as_sum();
        let has = |(term, c): &(Expr, i64)| terms.get(term).copied() == c.checked_mul(scale);
        (constant == 0 && !own.is_empty() && own.iter().all(has))
            .then(|| own.into_iter().map(|(term, _)| term).collect::<Vec<_>>())
    };
    terms.iter().find_map(|(term, coefficient)| {
        let negated = coefficient.checked_neg()?;
        if let Node::Mod(a, b) = term.node() {
            let mut parts = all_of(a, negated)?;
            parts.push(term.clone());
            return Some((parts, b * &raw_div(a, b), negated));
        }
        term.factors().iter().find_map(|factor| {
            let Node::FloorDiv(a, b) = factor.node() else { return None };
            let (quotient, scale) = exact_quotient(term, negated, b)?;
            let mut parts = (quotient == *factor).then(|| all_of(a, scale)).flatten()?;
            parts.push(term.clone());
            Some((parts, raw_mod(a, b), scale))
        })
    })
}

fn join_remainders(terms: &mut BTreeMap<Expr, i64>) {
    loop {
        let found = terms.iter().find_map(|(term, scale)| {
            let Node::Mod(a, b) = term.node() else { return None };
            terms.iter().find_map(|(other, other_scale)| {
                let joined = joins(other, *other_scale, a, b, *scale)?;
                Some((term.clone(), other.clone(), joined, *scale))
            })
        });
        let Some((remainder, quotient, joined, scale)) = found else { return };
        terms.remove(&remainder);
        terms.remove(&quotient);
        let entry = terms.entry(joined).or_insert(0);
        *entry = entry.saturating_add(scale);
        terms.retain(|_, coefficient| *coefficient != 0);
    }
}

fn joins(other: &Expr, other_scale: i64, a: &Expr, b: &Expr, scale: i64) -> Option<Expr> {
    let (quotient, quotient_scale) = exact_quotient(other, other_scale, b)?;
    if quotient_scale != scale {
        return None;
    }
    // Quotients of sums of quotients are in the form of `joint_dividend`.
    let joint = joint_dividend(a, &NoRanges);
    let is_joint =
        |x: &Expr, y: &Expr| joint.as_ref().is_some_and(|(all, inner)| x == all && *y == inner * b);
    let divides = |node: &Node| matches!(node, Node::FloorDiv(x, y) if (x == a && y == b) || is_joint(x, y));
    if divides(quotient.node()) {
        return Some(a.clone());
    }
    let Node::Mod(inner, c) = quotient.node() else { return None };
    divides(inner.node()).then(|| raw_mod(a, &(b * c)))
}
