//! Products of the elements of complex tensors, all or running.
//!
//! In each round every element is multiplied by the product that ends so many places before it, and that is twice as far in
//! the next one (Hillis and Steele, "Data parallel algorithms", 1986): as many rounds as the length has digits.

use super::super::{Args, Context, Formula, Outputs, RuleError};
use super::parts::{Complex, Parts};
use crate::dtype::DType;
use crate::graph::steps::repeat_while_any;
use crate::graph::{BinaryOp, Coord, Relation, ValueId};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

/// The operand in the type that its products are computed in.
fn operand(cx: &mut Context, a: &Args) -> Result<Parts, RuleError> {
    let dtype = a.part_type()?.compute();
    let x = a.tensor("self")?;
    let x = if a.is_complex("self") { cx.split(x)? } else { Parts { re: x, im: cx.b.full_like(0i64, x) } };
    Ok(Parts { re: cx.b.cast(x.re, dtype), im: cx.b.cast(x.im, dtype) })
}

fn rounded(cx: &mut Context, a: &Args, x: Parts) -> Rule {
    let dtype = a.part_type()?;
    let x = Parts { re: cx.b.cast(x.re, dtype), im: cx.b.cast(x.im, dtype) };
    Ok(cx.join(x)?.into())
}

/// The product of all elements, or of those along an axis.
pub(crate) fn product(cx: &mut Context, a: &Args) -> Rule {
    let mut x = operand(cx, a)?;
    let rank = cx.b.rank(x.re);
    let axis = match a.opt_int("dim")? {
        Some(dim) => Context::axis(dim, rank)?,
        None => {
            x = Parts { re: cx.flattened(x.re)?, im: cx.flattened(x.im)? };
            0
        }
    };
    if cx.b.rank(x.re) == 0 {
        return rounded(cx, a, x);
    }
    let all = of_all(cx, x, axis, a.bool_or("keepdim", false)?)?;
    rounded(cx, a, all)
}

/// The product of the elements along an axis; of none, one.
pub(crate) fn of_all(cx: &mut Context, x: Parts, axis: usize, keep: bool) -> Result<Parts, RuleError> {
    let mut amounts = vec![(Expr::int(0), Expr::int(0)); cx.b.rank(x.re)];
    amounts[axis].0 = Expr::int(1);
    let last = cx.b.shape(x.re)[axis].clone();
    let x = Parts { re: cx.b.pad(x.re, &amounts, 1.0)?, im: cx.b.pad(x.im, &amounts, 0.0)? };
    let all = products(cx, x, axis)?;
    let mut end = |part: ValueId| match keep {
        true => cx.b.slice(part, axis, &last, &Expr::int(1), 1),
        false => cx.b.pick(part, axis, &last),
    };
    Ok(Parts { re: end(all.re)?, im: end(all.im)? })
}

/// Both parts over a real number; over zero, nothing is left.
pub(crate) fn quotient_by(cx: &mut Context, x: Parts, size: ValueId) -> Result<Parts, RuleError> {
    let dtype = cx.b.dtype(x.re);
    let mut part =
        |part| cx.apply([part, size], dtype, |[part, size]| size.equals(0.0).select(0.0, part / &size));
    Ok(Parts { re: part(x.re)?, im: part(x.im)? })
}

/// As [`products`], of a call.
pub(crate) fn running(cx: &mut Context, a: &Args) -> Rule {
    let x = operand(cx, a)?;
    let axis = Context::axis(a.int("dim")?, cx.b.rank(x.re))?;
    let x = if cx.b.rank(x.re) == 0 { x } else { products(cx, x, axis)? };
    rounded(cx, a, x)
}

/// The products of each element and all before it along an axis.
pub(crate) fn products(cx: &mut Context, x: Parts, axis: usize) -> Result<Parts, RuleError> {
    let shape = cx.b.shape(x.re);
    let length = cx.b.index(shape[axis].clone(), &[]);
    let first = cx.b.scalar(1i64, DType::I64);
    let goes_on = cx.binary(Relation::Lt, first, length)?;
    let carried = [first, x.re, x.im];
    let ends = repeat_while_any(cx, "products", goes_on, &carried, &[length], &mut |cx, step| {
        let ([distance, re, im], [length]) = (step.carried, step.captured) else {
            unreachable!("as many as were given")
        };
        let place = cx.b.index(Expr::axis(axis), &shape);
        let before = cx.sub(place, *distance)?;
        let exists = cx.with_number(Relation::Ge, before, 0i64)?;
        let before = cx.with_number(BinaryOp::Maximum, before, 0i64)?;
        let coords = |k| if k == axis { Coord::Indirect(0) } else { Coord::Expr(Expr::axis(k)) };
        let coords: Vec<Coord> = (0..shape.len()).map(coords).collect();
        let mut earlier = |part| cx.b.gather(part, &[before], coords.clone(), &shape);
        let (earlier_re, earlier_im) = (earlier(*re)?, earlier(*im)?);
        let own = Complex::new((*re).into(), (*im).into());
        let product = Complex::new(earlier_re.into(), earlier_im.into()).times(&own);
        let exists = Formula::from(exists);
        let dtype = cx.b.dtype(*re);
        let re = cx.formula(dtype, &exists.select(&product.re, &own.re))?;
        let im = cx.formula(dtype, &exists.select(product.imaginary(), own.imaginary()))?;
        let distance = cx.with_number(BinaryOp::Mul, *distance, 2i64)?;
        Ok(vec![cx.binary(Relation::Lt, distance, *length)?, distance, re, im])
    })?;
    Ok(Parts { re: ends[1], im: ends[2] })
}
