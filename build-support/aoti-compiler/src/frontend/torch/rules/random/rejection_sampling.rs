//! Distributions whose numbers are proposed until they are accepted: Poisson's and the gamma distribution.
//!
//! Each round of the loop has bits of its own; an element that is accepted stays as it is while others go on.

use super::super::registry::rules;
use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::distributions::{bits_under, normal_of, open_fraction};
use super::ops::all_hold;
use crate::dtype::DType;
use crate::graph::steps::{Step, repeat_while_any};
use crate::graph::{BinaryOp, IntBinary, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.poisson.default" => poisson,
    pure "aten._standard_gamma.default" => |cx, a| {
        let x = a.tensor("self")?;
        let dtype = cx.b.dtype(x);
        let result = gamma(cx, x)?;
        Ok(cx.b.cast(result, dtype).into())
    },
    pure "aten._sample_dirichlet.default" => dirichlet,
}

/// Nothing that has a probability worth naming takes as many rounds.
const ROUNDS: i64 = 1000;

/// Below this rate Poisson's numbers are counted up; above it the transformed rejection needs few rounds.
const FEW: f64 = 10.0;

/// Independent bits of a round, as many sets as there are streams.
fn bits<const N: usize>(
    cx: &mut Context,
    key: ValueId,
    round: ValueId,
    shape: &[Expr],
) -> Result<[ValueId; N], RuleError> {
    let mut sets = [key; N];
    let first = cx.with_number(BinaryOp::Mul, round, N as i64)?;
    for (stream, set) in sets.iter_mut().enumerate() {
        let number = cx.with_number(BinaryOp::Add, first, stream as i64)?;
        let own = cx.binary(IntBinary::Philox, number, key)?;
        *set = bits_under(cx, own, shape)?;
    }
    Ok(sets)
}

/// Where a step goes on: where it was open, has not found its number, and rounds are left.
fn still_open(cx: &mut Context, step: &Step<'_>, found: ValueId) -> Result<ValueId, RuleError> {
    let left = cx.with_number(Relation::Lt, step.number, ROUNDS)?;
    let (open, found, left) = (Formula::from(step.open), Formula::from(found), Formula::from(left));
    cx.formula(DType::Bool, &open.and(found.not()).and(left))
}

/// Few are counted up, many proposed. Each has a loop of its own, which does not run where no rate asks for it.
fn poisson(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let ty = cx.b.ty(x).clone();
    let rate = cx.b.cast(x, DType::F64);
    let is_rate = cx.apply([rate], DType::F64, |[rate]| rate.ge(0.0).and(rate.is_finite()))?;
    all_hold(cx, a, is_rate, "rates must be finite and not negative")?;
    let (few, many) = (few_events(cx, rate)?, many_events(cx, rate)?);
    let count =
        cx.apply([rate, few, many], DType::F64, |[rate, few, many]| rate.ge(FEW).select(many, few))?;
    Ok(cx.b.cast(count, ty.dtype).into())
}

/// Counted by the running sum of probabilities until it passes a uniform number.
fn few_events(cx: &mut Context, rate: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(rate);
    let u = cx.uniform(DType::F64, &shape)?;
    let probability = cx.apply([rate], DType::F64, |[rate]| (-rate).exp())?;
    let count = cx.b.full(0.0, DType::F64, &shape);
    let open = cx.apply([rate, u, probability], DType::F64, |[rate, u, p]| rate.lt(FEW).and(u.ge(p)))?;
    let carried = [count, probability, probability];
    let results = repeat_while_any(cx, "poisson_few", open, &carried, &[rate, u], &mut |cx, step| {
        let ([count, p, sum], [rate, u]) = (step.carried, step.captured) else {
            unreachable!("as many as were given")
        };
        let next = cx.with_number(BinaryOp::Add, step.number, 1i64)?;
        let next = cx.b.cast(next, DType::F64);
        let p = cx.apply([*p, *rate, next], DType::F64, |[p, rate, next]| p * rate / next)?;
        let sum = cx.add(*sum, p)?;
        let found = cx.binary(Relation::Lt, *u, sum)?;
        let open = still_open(cx, &step, found)?;
        let count = cx.b.select(step.open, next, *count)?;
        Ok(vec![open, count, p, sum])
    })?;
    Ok(results[0])
}

/// By W. Hörmann's "transformed rejection method for generating Poisson random variables" (1993), PTRS.
fn many_events(cx: &mut Context, rate: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(rate);
    let key = cx.random_key()?;
    let count = cx.b.full(0.0, DType::F64, &shape);
    let open = cx.with_number(Relation::Ge, rate, FEW)?;
    let results = repeat_while_any(cx, "poisson_many", open, &[count], &[key, rate], &mut |cx, step| {
        let ([count], [key, rate]) = (step.carried, step.captured) else {
            unreachable!("as many as were given")
        };
        let (proposed, accepted) = proposed_events(cx, *key, step.number, *rate)?;
        let open = still_open(cx, &step, accepted)?;
        Ok(vec![open, cx.b.select(step.open, proposed, *count)?])
    })?;
    Ok(results[0])
}

/// A number of events at a rate that is not small, and whether it is accepted.
fn proposed_events(
    cx: &mut Context,
    key: ValueId,
    round: ValueId,
    rate: ValueId,
) -> Result<(ValueId, ValueId), RuleError> {
    let shape = cx.b.shape(rate);
    let [u, v] = bits::<2>(cx, key, round, &shape)?;
    let (u, v) = (open_fraction(cx, u, DType::F64)?, open_fraction(cx, v, DType::F64)?);
    let (u, v, rate) = (Formula::from(u) - 0.5, Formula::from(v), Formula::from(rate).max(FEW));
    let b = rate.sqrt() * 2.53 + 0.931;
    let a = &b * 0.02483 - 0.059;
    let inverse = 1.1328 / (&b - 3.4) + 1.1239;
    let sure = 0.9277 - 3.6224 / (&b - 2.0);
    let from_edge = 0.5 - u.abs();
    let k = ((&a * 2.0 / &from_edge + &b) * u + &rate + 0.43).floor();
    let is_sure = from_edge.ge(0.07).and(v.le(sure));
    let is_out = k.lt(0.0).or(from_edge.lt(0.013).and(v.gt(&from_edge)));
    let left = v.log() + inverse.log() - (a / from_edge.square() + b).log();
    let right = &k * rate.log() - &rate - (&k + 1.0).max(1.0).lgamma();
    let accepted = is_sure.or(is_out.not().and(left.le(right)));
    Ok((cx.formula(DType::F64, &k)?, cx.formula(DType::F64, &accepted)?))
}

/// G. Marsaglia and W. Tsang's "simple method for generating gamma variables" (2000), in `f64`; shapes below one by the
/// number of one more and a power of a uniform number.
fn gamma(cx: &mut Context, x: ValueId) -> Result<ValueId, RuleError> {
    let shape = cx.b.shape(x);
    let alpha = cx.b.cast(x, DType::F64);
    let key = cx.random_key()?;
    let below = cx.open_uniform(DType::F64, &shape)?;
    let open = cx.apply([alpha], DType::F64, |[alpha]| alpha.gt(0.0).and(alpha.is_finite()))?;
    let zero = cx.b.full(0.0, DType::F64, &shape);
    let d =
        cx.apply([alpha], DType::F64, |[alpha]| alpha.lt(1.0).select(&alpha + 1.0, &alpha) - 1.0 / 3.0)?;
    let results = repeat_while_any(cx, "gamma", open, &[zero], &[key, d], &mut |cx, step| {
        let ([value], [key, d]) = (step.carried, step.captured) else {
            unreachable!("as many as were given")
        };
        let shape = cx.b.shape(*d);
        let [first, second, third] = bits::<3>(cx, *key, step.number, &shape)?;
        let z = normal_of(cx, [first, second], DType::F64)?;
        let u = open_fraction(cx, third, DType::F64)?;
        let (z, u, d) = (Formula::from(z), Formula::from(u), Formula::from(*d));
        let root = &z / (&d * 9.0).sqrt() + 1.0;
        let cube = &root * &root * &root;
        let bound = z.square() * 0.5 + &d - &d * &cube + &d * cube.max(f64::MIN_POSITIVE).log();
        let accepted = root.gt(0.0).and(u.log().lt(bound));
        let found = cx.formula(DType::F64, &accepted)?;
        let open = still_open(cx, &step, found)?;
        let proposed = Formula::from(step.open).select(d * cube, Formula::from(*value));
        Ok(vec![open, cx.formula(DType::F64, &proposed)?])
    })?;
    cx.apply([results[0], below, alpha], DType::F64, |[value, below, alpha]| {
        alpha.lt(1.0).select(&value * (below.log() / &alpha).exp(), &value)
    })
}

/// Gamma variables as parts of their sum.
fn dirichlet(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let dtype = cx.b.dtype(x);
    let last = cx.b.rank(x).checked_sub(1);
    let last = last.ok_or_else(|| RuleError::Malformed("concentrations need an axis".to_owned()))?;
    let parts = gamma(cx, x)?;
    let sum = cx.sum(parts, &[last], true)?;
    let shares = cx.div(parts, sum)?;
    Ok(cx.b.cast(shares, dtype).into())
}
