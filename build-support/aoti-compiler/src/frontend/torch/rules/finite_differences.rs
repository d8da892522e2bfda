//! Derivatives of samples along axes, by what PyTorch computes: infinities among the samples show which sums it takes.

use super::registry::rules;
use super::scan::differences;
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::frontend::torch::aten::Arg;
use crate::graph::ValueId;
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

rules! {
    pure "aten.gradient.*" => gradient,
}

/// Where samples lie along an axis.
enum Grid {
    /// So far from each other.
    Even(Formula),
    /// So far from each neighbour, broadcastable against the samples.
    Uneven(ValueId),
}

/// Derivatives along axes by central differences, one-sided at the ends.
fn gradient(cx: &mut Context, a: &Args) -> Rule {
    let x = a.tensor("self")?;
    let x = cx.to_float(x);
    let rank = cx.b.rank(x);
    let axes = if a.has("dim") { Context::axes(&a.ints("dim")?, rank)? } else { (0..rank).collect() };
    let is_parabola = a.int_or("edge_order", 1)? == 2;
    let mut results = Vec::new();
    for (k, axis) in axes.into_iter().enumerate() {
        let slopes = match grid(cx, a, k, x, axis)? {
            Grid::Even(step) => even(cx, x, axis, &step, is_parabola)?,
            Grid::Uneven(steps) => uneven(cx, x, axis, steps, is_parabola)?,
        };
        results.push(cx.b.cat(&slopes, axis)?);
    }
    Ok(Outputs::List(results))
}

fn grid(cx: &mut Context, a: &Args, k: usize, x: ValueId, axis: usize) -> Result<Grid, RuleError> {
    let dtype = cx.b.dtype(x);
    match a.raw("spacing") {
        Some(Arg::Tensors(_)) => {
            let points = a.tensors("spacing")?;
            let Some(points) = points.get(k) else {
                return Err(RuleError::Malformed("fewer spacings than axes".to_owned()));
            };
            let mut shape = vec![Expr::int(1); cx.b.rank(x)];
            shape[axis] = cx.b.shape(x)[axis].clone();
            let points = cx.b.cast(*points, dtype);
            let points = cx.b.reshape(points, &shape)?;
            Ok(Grid::Uneven(differences(cx, points, axis)?))
        }
        Some(Arg::Floats(_) | Arg::Ints(_)) => {
            let steps = a.floats("spacing")?;
            Ok(Grid::Even(Formula::from(*steps.get(k).or(steps.first()).unwrap_or(&1.0))))
        }
        Some(_) | None => Ok(Grid::Even(a.number_or("spacing", 1.0)?.formula(cx, dtype))),
    }
}

/// `count` neighbours of `value`, each of `length` positions along an axis, the first from `start`.
fn neighbours<const COUNT: usize>(
    cx: &mut Context,
    value: ValueId,
    axis: usize,
    start: &Expr,
    length: &Expr,
) -> Result<[ValueId; COUNT], RuleError> {
    let mut all = [value; COUNT];
    for (own, position) in all.iter_mut().zip(0i64..) {
        *own = cx.b.slice(value, axis, &(start + position), length, 1)?;
    }
    Ok(all)
}

/// Slopes at the first sample, between the ends, and at the last one.
fn even(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    step: &Formula,
    is_parabola: bool,
) -> Result<[ValueId; 3], RuleError> {
    let (dtype, size) = (cx.b.dtype(x), cx.b.shape(x)[axis].clone());
    let (zero, one) = (Expr::int(0), Expr::int(1));
    let around = neighbours::<3>(cx, x, axis, &zero, &(&size - 2))?;
    let middle = cx.apply(around, dtype, |[left, _, right]| (right - left) / step / 2.0)?;
    if is_parabola {
        let first = neighbours(cx, x, axis, &zero, &one)?;
        let last = neighbours(cx, x, axis, &(&size - 3), &one)?;
        let start = cx.apply(first, dtype, |[a, b, c]| (a * -1.5 + b * 2.0 - c * 0.5) / step)?;
        let end = cx.apply(last, dtype, |[a, b, c]| (a * 0.5 - b * 2.0 + c * 1.5) / step)?;
        return Ok([start, middle, end]);
    }
    let mut at_end = |from: &Expr| {
        let ends = neighbours(cx, x, axis, from, &one)?;
        cx.apply(ends, dtype, |[a, b]| (b - a) / step)
    };
    Ok([at_end(&zero)?, middle, at_end(&(&size - 2))?])
}

/// The same where samples lie anywhere: weighted sums of three samples.
fn uneven(
    cx: &mut Context,
    x: ValueId,
    axis: usize,
    steps: ValueId,
    is_parabola: bool,
) -> Result<[ValueId; 3], RuleError> {
    let (dtype, size) = (cx.b.dtype(x), cx.b.shape(x)[axis].clone());
    let (zero, one) = (Expr::int(0), Expr::int(1));
    let mut of_three = |from: &Expr, length: &Expr, sum: &dyn Fn([Formula; 3], [Formula; 2]) -> Formula| {
        let [a, b, c] = neighbours(cx, x, axis, from, length)?;
        let [left, right] = neighbours(cx, steps, axis, from, length)?;
        cx.apply([a, b, c, left, right], dtype, |[a, b, c, left, right]| sum([a, b, c], [left, right]))
    };
    let middle = of_three(&zero, &(&size - 2), &|[a, b, c], [left, right]| {
        let both = &left + &right;
        a * (-&right / (&left * &both))
            + b * ((&right - &left) / (&left * &right))
            + c * (&left / (right * both))
    })?;
    if is_parabola {
        let start = of_three(&zero, &one, &|[a, b, c], [left, right]| {
            let both = &left + &right;
            a * (-(&left * 2.0 + &right) / (&left * &both)) + b * (&both / (&left * &right))
                - c * (left / (right * both))
        })?;
        let end = of_three(&(&size - 3), &one, &|[a, b, c], [left, right]| {
            let both = &left + &right;
            a * (&right / (&left * &both)) - b * (&both / (&left * &right))
                + c * ((&right * 2.0 + &left) / (right * both))
        })?;
        return Ok([start, middle, end]);
    }
    let mut at_end = |from: &Expr| {
        let [a, b] = neighbours(cx, x, axis, from, &one)?;
        let [step] = neighbours(cx, steps, axis, from, &one)?;
        cx.apply([a, b, step], dtype, |[a, b, step]| (b - a) / step)
    };
    Ok([at_end(&zero)?, middle, at_end(&(&size - 2))?])
}

#[cfg(test)]
mod tests {
    use crate::frontend::torch::rules::tests::evaluated;
    use crate::interpret::Tensor;

    const INF: f32 = f32::INFINITY;

    #[track_caller]
    fn check(arguments: &str, expected: [f32; 7]) {
        let statements = format!(
            "input %y: f32[7] input %c: f32[7] [%r: f32[7]] = aten.gradient.case(self = %y, {arguments}) output %r"
        );
        let samples = Tensor::from_f32(&[7], &[1.0, INF, 2.0, 3.0, -INF, -INF, INF]);
        let points = Tensor::from_f32(&[7], &[0.0, 1.0, 3.0, 4.0, 7.0, 8.0, 11.0]);
        let got = evaluated(&statements, &[samples, points]).expect("it runs").remove(0).to_f64();
        let expected = expected.map(f64::from);
        let is_same = |(got, want): (&f64, &f64)| got == want || (got.is_nan() && want.is_nan());
        assert!(got.iter().zip(&expected).all(is_same), "{arguments}: {got:?} instead of {expected:?}");
    }

    #[test]
    fn infinities_go_where_those_of_pytorch_go() {
        const NAN: f32 = f32::NAN;
        check("spacing = 2.0", [INF, 0.25, -INF, -INF, -INF, INF, INF]);
        check("spacing = 1.0, edge_order = 2", [INF, 0.5, -INF, -INF, -INF, INF, NAN]);
        check("spacing = [%c]", [INF, INF, -INF, -INF, NAN, NAN, INF]);
        check("spacing = [%c], edge_order = 2", [INF, INF, -INF, -INF, NAN, NAN, NAN]);
    }

    #[test]
    fn points_may_lie_anywhere() {
        // A parabola has the slopes that it has, with parabolas at its ends.
        let statements = "input %y: f64[4] input %c: f64[4] [%r: f64[4]] = aten.gradient.tensorarray(self = %y, spacing = [%c], edge_order = 2) output %r";
        let points = [0.0f64, 1.0, 3.0, 7.0];
        let of = |map: fn(f64) -> f64| Tensor::from_f64(&[4], &points.map(map));
        let got = evaluated(statements, &[of(|x| x * x), of(|x| x)]).expect("it runs").remove(0).to_f64();
        assert!(got.iter().zip(points).all(|(slope, x)| (slope - 2.0 * x).abs() < 1e-12), "{got:?}");
    }
}
