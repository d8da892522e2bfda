//! What lies around a tensor: a number, its edge, its mirror image, or itself again.

use super::super::call::{Call, malformed};
use super::super::sizes::Amount;
use super::super::walk::Onnx;
use super::axes::Axes;
use super::{Rule, one, operators};
use crate::dtype::DType;
use crate::frontend::torch::rules::RuleError;
use crate::graph::{Scalar, ValueId};
use crate::symbolic::Expr;

operators! { "";
    "Pad" => pad,
}

fn pad(cx: &mut Onnx, c: &Call) -> Rule {
    let x = c.tensor(0)?;
    let (rank, dtype) = (cx.b.rank(x), cx.b.dtype(x));
    let axes = match c.opt_tensor(3)? {
        Some(axes) => cx.axes_of(axes, rank)?,
        None => Axes::Known((0..rank).collect()),
    };
    let list = if c.version < 11 {
        let name = if c.version < 2 { "paddings" } else { "pads" };
        let amounts = c.opt_ints(name)?.ok_or_else(|| malformed("amounts are missing"))?;
        cx.b.int_vector(&amounts)
    } else {
        let count = 2 * axes.count() as i64;
        cx.required_shape(c.tensor(1)?, &[Expr::int(count)])?
    };
    let mode = c.text("mode", "constant")?;
    let pairs = match axes {
        Axes::Known(axes) => {
            let amounts = cx.amounts(list)?;
            pairs(&amounts, &axes, rank)?
        }
        Axes::Data { count, .. } => {
            let halves = [0, count].map(|start| {
                let (start, count) = (Expr::int(start as i64), Expr::int(count as i64));
                cx.b.slice(list, 0, &start, &count, 1)
            });
            let [before, behind] = halves;
            let [before, behind] = [before?, behind?].map(|list| cx.for_each_axis(list, &axes, 0));
            let mut pairs = Vec::new();
            for (before, behind) in before?.into_iter().flatten().zip(behind?.into_iter().flatten()) {
                pairs.push((cx.amount(before)?, cx.amount(behind)?));
            }
            pairs
        }
    };
    if mode == "constant" {
        let fill =
            if c.version < 11 { Some(cx.b.scalar(c.float("value", 0.0)?, dtype)) } else { c.opt_tensor(2)? };
        let pairs: Vec<(Expr, Expr)> = pairs.iter().map(|(a, b)| (a.signed(), b.signed())).collect();
        return one(constant_pad(cx, x, &pairs, fill)?);
    }
    one(arranged_pad(cx, x, &pairs, mode)?)
}

/// Amounts before and behind each axis, of lists that have them for some.
fn pairs(amounts: &[Amount], axes: &[usize], rank: usize) -> Result<Vec<(Amount, Amount)>, RuleError> {
    if amounts.len() != 2 * axes.len() {
        return Err(malformed(format!("{} amounts for {} axes", amounts.len(), axes.len())));
    }
    let mut pairs = vec![(Amount::zero(), Amount::zero()); rank];
    for (position, axis) in axes.iter().enumerate() {
        pairs[*axis] = (amounts[position].clone(), amounts[position + axes.len()].clone());
    }
    Ok(pairs)
}

/// What is around is one number, which may be data.
fn constant_pad(
    cx: &mut Onnx,
    x: ValueId,
    pairs: &[(Expr, Expr)],
    fill: Option<ValueId>,
) -> Result<ValueId, RuleError> {
    let dtype = cx.b.dtype(x);
    let zero = Scalar::Int(0).cast(dtype);
    let Some(fill) = fill else { return Ok(cx.b.pad(x, pairs, zero)?) };
    let known = cx.b.numbers(fill).and_then(|all| all.first().copied()).filter(|_| dtype.is_float());
    let known =
        known.map(Scalar::Float).or_else(|| cx.b.element(fill)?.as_int().map(|n| Scalar::Int(n.into())));
    if let Some(number) = known {
        return Ok(cx.b.pad(x, pairs, number.cast(dtype))?);
    }
    let padded = cx.b.pad(x, pairs, zero)?;
    let own = cx.b.shape(x);
    let inside = cx.b.full(true, DType::Bool, &own);
    let inside = cx.b.pad(inside, pairs, false)?;
    let fill = cx.b.reshape(fill, &[])?;
    Ok(cx.b.select(inside, padded, fill)?)
}

/// What is around is taken from inside: the nearest element, a mirror image, or what comes around.
fn arranged_pad(
    cx: &mut Onnx,
    x: ValueId,
    pairs: &[(Amount, Amount)],
    mode: &str,
) -> Result<ValueId, RuleError> {
    // Negative amounts take away first.
    let zero = Expr::int(0);
    let (mut cut, mut added) = (Vec::new(), Vec::new());
    for (before, behind) in pairs {
        let ([before, off_front], [behind, off_end]) = (cx.parts(before), cx.parts(behind));
        cut.push((&zero - &off_front, &zero - &off_end));
        added.push((before, behind));
    }
    let nothing = Scalar::Int(0).cast(cx.b.dtype(x));
    let x = if cut.iter().all(|(a, b)| a.is(0) && b.is(0)) { x } else { cx.b.pad(x, &cut, nothing)? };
    let own = cx.b.shape(x);
    let (mut shape, mut coords) = (Vec::new(), Vec::new());
    let ranges = cx.b.ranges().clone();
    for (axis, ((before, behind), size)) in added.iter().zip(&own).enumerate() {
        shape.push(&(size + before) + behind);
        if before.is(0) && behind.is(0) {
            coords.push(Expr::axis(axis));
            continue;
        }
        let at = &Expr::axis(axis) - before;
        coords.push(match mode {
            "edge" => at.maximum_in(&zero, &ranges).minimum_in(&(size - 1), &ranges),
            "wrap" => at.modulo_in(size, &ranges),
            "reflect" => {
                // A period goes there and back without its ends twice.
                let period = (&(size - 1) * 2).maximum_in(&Expr::int(1), &ranges);
                let along = at.modulo_in(&period, &ranges);
                let back = (&period - &along).maximum_in(&zero, &ranges);
                along.minimum_in(&back, &ranges).minimum_in(&(size - 1), &ranges)
            }
            other => return Err(malformed(format!("mode `{other}` is unknown"))),
        });
    }
    Ok(cx.b.view(x, &shape, coords)?)
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{Model, text};
    use crate::interpret::Tensor;

    #[test]
    fn amounts_that_are_data_may_take_away() {
        let padded = |amounts: &[i64], mode: &str| {
            let x = Tensor::from_f32(&[4], &[1.0, 2.0, 3.0, 4.0]);
            let model = Model::new(19).fixed_input("x", x).fixed_input("p", Tensor::from_i64(&[2], amounts));
            model.of_one("Pad", &["x", "p"], &[text("mode", mode)])
        };
        assert_eq!(padded(&[-1, 2], "constant"), [2.0, 3.0, 4.0, 0.0, 0.0]);
        assert_eq!(padded(&[1, -3], "constant"), [0.0, 1.0]);
        assert_eq!(padded(&[1, 2], "reflect"), [2.0, 1.0, 2.0, 3.0, 4.0, 3.0, 2.0]);
        assert_eq!(padded(&[2, 0], "edge"), [1.0, 1.0, 1.0, 2.0, 3.0, 4.0]);
        // What is left is what is mirrored, repeated or begun anew.
        assert_eq!(padded(&[-1, 2], "reflect"), [2.0, 3.0, 4.0, 3.0, 2.0]);
        assert_eq!(padded(&[-2, 2], "edge"), [3.0, 4.0, 4.0, 4.0]);
        assert_eq!(padded(&[2, -1], "wrap"), [2.0, 3.0, 1.0, 2.0, 3.0]);
        assert_eq!(padded(&[-1, -1], "reflect"), [2.0, 3.0]);
    }
}
