//! Which operators there are of complex numbers, and what each means for them.

use super::complex::How::{self, Own, Parts as ByParts, Product, Window};
use super::complex::Seen;
use super::parts::{Complex, Parts};
use super::{Args, Context, Formula, Outputs, RuleError};
use crate::aten::Arg;
use crate::dtype::DType;
use crate::graph::{FloatUnary, Relation, Scalar};
use crate::symbolic::Expr;

type Rule = Result<Outputs, RuleError>;

pub(super) const TABLE: &[(&str, How)] = &[
    // The same for both parts.
    ("aten.alias.default", ByParts(&[])),
    ("aten.as_strided.default", ByParts(&[])),
    ("aten.broadcast_to.default", ByParts(&[])),
    ("aten.chunk.default", ByParts(&[])),
    ("aten.clone.default", ByParts(&[])),
    ("aten.contiguous.default", ByParts(&[])),
    ("aten.detach.default", ByParts(&[])),
    ("aten.detach_.default", ByParts(&[])),
    ("aten.diagonal.default", ByParts(&[])),
    ("aten.expand.default", ByParts(&[])),
    ("aten.expand_as.default", ByParts(&[])),
    ("aten.flatten.using_ints", ByParts(&[])),
    ("aten.lift_fresh_copy.default", ByParts(&[])),
    ("aten.movedim.int", ByParts(&[])),
    ("aten.movedim.intlist", ByParts(&[])),
    ("aten.narrow.default", ByParts(&[])),
    ("aten.mT.default", ByParts(&[])),
    ("aten.numpy_T.default", ByParts(&[])),
    ("aten.permute.default", ByParts(&[])),
    ("aten.ravel.default", ByParts(&[])),
    ("aten.reshape.default", ByParts(&[])),
    ("aten.reshape_as.default", ByParts(&[])),
    ("aten.select.int", ByParts(&[])),
    ("aten.slice.Tensor", ByParts(&[])),
    ("aten.split.Tensor", ByParts(&[])),
    ("aten.split_with_sizes.default", ByParts(&[])),
    ("aten.squeeze.default", ByParts(&[])),
    ("aten.squeeze.dim", ByParts(&[])),
    ("aten.squeeze.dims", ByParts(&[])),
    ("aten.swapaxes.default", ByParts(&[])),
    ("aten.swapdims.default", ByParts(&[])),
    ("aten.t.default", ByParts(&[])),
    ("aten.transpose.int", ByParts(&[])),
    ("aten.unbind.int", ByParts(&[])),
    ("aten.unflatten.int", ByParts(&[])),
    ("aten.unfold.default", ByParts(&[])),
    ("aten.unsqueeze.default", ByParts(&[])),
    ("aten.view.default", ByParts(&[])),
    ("aten._unsafe_view.default", ByParts(&[])),
    ("aten.view_as.default", ByParts(&[])),
    ("aten.cat.default", ByParts(&["tensors"])),
    ("aten.stack.default", ByParts(&["tensors"])),
    ("aten.copy.default", ByParts(&["src"])),
    ("aten.cumsum.default", ByParts(&[])),
    ("aten.diag_embed.default", ByParts(&[])),
    ("aten.diff.default", ByParts(&[])),
    ("aten.flip.default", ByParts(&[])),
    ("aten.gather.default", ByParts(&[])),
    ("aten.index.Tensor", ByParts(&[])),
    ("aten.index_put.default", ByParts(&["values"])),
    ("aten.index_select.default", ByParts(&[])),
    ("aten.mean.default", ByParts(&[])),
    ("aten.mean.dim", ByParts(&[])),
    ("aten.neg.default", ByParts(&[])),
    ("aten.repeat.default", ByParts(&[])),
    ("aten.roll.default", ByParts(&[])),
    ("aten.select_scatter.default", ByParts(&["src"])),
    ("aten.slice_scatter.default", ByParts(&["src"])),
    ("aten.sum.default", ByParts(&[])),
    ("aten.sum.dim_IntList", ByParts(&[])),
    ("aten.trace.default", ByParts(&[])),
    ("aten.tril.default", ByParts(&[])),
    ("aten.triu.default", ByParts(&[])),
    ("aten.where.self", ByParts(&["self", "other"])),
    ("aten.fft_fftshift.default", ByParts(&[])),
    ("aten.fft_ifftshift.default", ByParts(&[])),
    // Linear in each operand.
    ("aten.bmm.default", Product),
    ("aten.dot.default", Product),
    ("aten.einsum.default", Product),
    ("aten.linalg_matmul.default", Product),
    ("aten.matmul.default", Product),
    ("aten.mm.default", Product),
    ("aten.mv.default", Product),
    ("aten.outer.default", Product),
    // With meanings of their own.
    ("aten.abs.default", Own(|cx, a| real(cx, a, |z| z.magnitude()))),
    ("aten.absolute.default", Own(|cx, a| real(cx, a, |z| z.magnitude()))),
    ("aten.angle.default", Own(|cx, a| real(cx, a, |z| z.angle()))),
    ("aten.add.*", Own(|cx, a| sum(cx, a, 1.0))),
    ("aten.sub.*", Own(|cx, a| sum(cx, a, -1.0))),
    (
        "aten.rsub.*",
        Own(|cx, a| {
            let alpha = Formula::from(a.scalar_or("alpha", 1i64)?.to_f64());
            two(cx, a, |x, y| y.plus(&x.scaled(&alpha).negated()))
        }),
    ),
    ("aten.mul.*", Own(|cx, a| two(cx, a, |x, y| x.times(y)))),
    ("aten.div.Tensor", Own(|cx, a| two(cx, a, |x, y| x.over(y)))),
    ("aten.div.Scalar", Own(|cx, a| two(cx, a, |x, y| x.over(y)))),
    ("aten.pow.Tensor_Scalar", Own(power)),
    ("aten.pow.Tensor_Tensor", Own(power)),
    ("aten.pow.Scalar", Own(power)),
    ("aten.square.default", Own(|cx, a| one(cx, a, |z| z.times(z)))),
    ("aten.reciprocal.default", Own(|cx, a| one(cx, a, |z| unit(z).over(z)))),
    ("aten.sqrt.default", Own(|cx, a| one(cx, a, Complex::sqrt))),
    ("aten.rsqrt.default", Own(|cx, a| one(cx, a, |z| unit(z).over(&z.sqrt())))),
    ("aten.exp.default", Own(|cx, a| one(cx, a, Complex::exp))),
    ("aten.log.default", Own(|cx, a| one(cx, a, Complex::log))),
    ("aten.log2.default", Own(|cx, a| one(cx, a, |z| z.log().divided(&std::f64::consts::LN_2.into())))),
    ("aten.log10.default", Own(|cx, a| one(cx, a, |z| z.log().divided(&std::f64::consts::LN_10.into())))),
    ("aten.sin.default", Own(|cx, a| one(cx, a, |z| z.sin_cos().0))),
    ("aten.cos.default", Own(|cx, a| one(cx, a, |z| z.sin_cos().1))),
    ("aten.sinh.default", Own(|cx, a| one(cx, a, |z| z.sinh_cosh().0))),
    ("aten.cosh.default", Own(|cx, a| one(cx, a, |z| z.sinh_cosh().1))),
    ("aten.tanh.default", Own(|cx, a| one(cx, a, tanh))),
    ("aten.sigmoid.default", Own(|cx, a| one(cx, a, |z| unit(z).over(&unit(z).plus(&z.negated().exp()))))),
    ("aten.sgn.default", Own(|cx, a| one(cx, a, direction))),
    ("aten.conj.default", Own(|cx, a| one(cx, a, Complex::conjugate))),
    ("aten._conj.default", Own(|cx, a| one(cx, a, Complex::conjugate))),
    ("aten._conj_copy.default", Own(|cx, a| one(cx, a, Complex::conjugate))),
    ("aten.conj_physical.default", Own(|cx, a| one(cx, a, Complex::conjugate))),
    ("aten._conj_physical.default", Own(|cx, a| one(cx, a, Complex::conjugate))),
    ("aten.resolve_conj.default", ByParts(&[])),
    ("aten.resolve_neg.default", ByParts(&[])),
    ("aten.real.default", Window(Seen::Real)),
    ("aten.imag.default", Window(Seen::Imaginary)),
    ("aten.view_as_real.default", Window(Seen::Both)),
    ("aten.view_as_complex.default", Window(Seen::Both)),
    ("aten.view_as_real_copy.default", Own(|_, a| Ok(a.tensor("self")?.into()))),
    ("aten.view_as_complex_copy.default", Own(|_, a| Ok(a.tensor("self")?.into()))),
    ("aten.complex.default", Own(complex)),
    ("aten.polar.default", Own(polar)),
    ("aten.linalg_eig.default", Own(super::factor::eig)),
    ("aten.linalg_eigvals.default", Own(super::factor::eigvals)),
    ("aten.linalg_solve.default", Own(super::complex_matrices::solve)),
    ("aten._linalg_solve_ex.default", Own(super::complex_matrices::solve_ex)),
    ("aten.linalg_inv_ex.default", Own(super::complex_matrices::inverse_ex)),
    ("aten.linalg_inv.default", Own(|cx, a| super::complex_matrices::inverse(cx, a, "A"))),
    ("aten.inverse.default", Own(|cx, a| super::complex_matrices::inverse(cx, a, "self"))),
    ("aten.eq.*", Own(|cx, a| compared(cx, a, false))),
    ("aten.ne.*", Own(|cx, a| compared(cx, a, true))),
    ("aten.isnan.default", Own(|cx, a| real(cx, a, |z| z.re.is_nan().or(z.imaginary().is_nan())))),
    ("aten.isinf.default", Own(|cx, a| real(cx, a, |z| z.re.is_inf().or(z.imaginary().is_inf())))),
    ("aten.isfinite.default", Own(|cx, a| real(cx, a, |z| z.re.is_finite().and(z.imaginary().is_finite())))),
    ("aten.masked_fill.*", Own(masked_fill)),
    ("aten.fill.Scalar", Own(filling)),
    ("aten.fill.Tensor", Own(filling)),
    ("aten.to.dtype", Own(convert)),
    ("aten.to.device", Own(convert)),
    ("aten.to.dtype_layout", Own(convert)),
    ("aten.type_as.default", Own(convert)),
    ("aten._to_copy.default", Own(convert)),
    ("aten.zeros.default", Own(|cx, a| filled(cx, a, 0.0))),
    ("aten.zeros_like.default", Own(|cx, a| filled(cx, a, 0.0))),
    ("aten.new_zeros.default", Own(|cx, a| filled(cx, a, 0.0))),
    ("aten.empty.memory_format", Own(|cx, a| filled(cx, a, 0.0))),
    ("aten.empty_like.default", Own(|cx, a| filled(cx, a, 0.0))),
    ("aten.ones.default", Own(|cx, a| filled(cx, a, 1.0))),
    ("aten.ones_like.default", Own(|cx, a| filled(cx, a, 1.0))),
    ("aten.new_ones.default", Own(|cx, a| filled(cx, a, 1.0))),
    ("aten.full.default", Own(filled_with)),
    ("aten.full_like.default", Own(filled_with)),
    ("aten.new_full.default", Own(filled_with)),
    ("aten.scalar_tensor.default", Own(filled_with)),
    ("aten.constant_pad_nd.default", Own(padded)),
    ("aten.pad.default", Own(padded)),
];

/// The operand, whatever the schema calls it, in the type that its parts are computed in.
fn operand(cx: &mut Context, a: &Args) -> Result<(Complex, DType), RuleError> {
    let own = a.meta("self")?.dtype.compute();
    Ok((a.complex(cx, "self", own)?, own))
}

/// A complex function of one operand.
fn one(cx: &mut Context, a: &Args, f: impl FnOnce(&Complex) -> Complex) -> Rule {
    let (z, _) = operand(cx, a)?;
    a.emitted(cx, &f(&z))
}

/// A real function of one operand.
fn real(cx: &mut Context, a: &Args, f: impl FnOnce(&Complex) -> Formula) -> Rule {
    let (z, dtype) = operand(cx, a)?;
    let result = cx.formula(dtype, &f(&z))?;
    Ok(cx.b.cast(result, a.part_type()?).into())
}

/// A complex function of two operands.
fn two(cx: &mut Context, a: &Args, f: impl FnOnce(&Complex, &Complex) -> Complex) -> Rule {
    let dtype = a.part_type()?.compute();
    let (x, y) = (a.complex(cx, "self", dtype)?, a.complex(cx, "other", dtype)?);
    a.emitted(cx, &f(&x, &y))
}

fn sum(cx: &mut Context, a: &Args, sign: f64) -> Rule {
    let dtype = a.part_type()?.compute();
    let alpha = a.scalar_or("alpha", 1i64)?.to_f64();
    two(cx, a, |x, y| {
        let factor = sign * alpha;
        let y = if factor == 1.0 { y.clone() } else { y.scaled(&factor.into()) };
        let _ = dtype;
        x.plus(&y)
    })
}

fn unit(z: &Complex) -> Complex {
    Complex { re: &z.re * 0.0 + 1.0, im: None }
}

fn power(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?.compute();
    let z = a.complex(cx, "self", dtype)?;
    let whole = a.scalar("exponent").ok().map(Scalar::to_f64).filter(|n| n.fract() == 0.0 && n.abs() <= 8.0);
    let result = match whole {
        Some(n) if n != 0.0 => {
            let mut product = z.clone();
            for _ in 1..n.abs() as usize {
                product = product.times(&z);
            }
            if n < 0.0 { unit(&z).over(&product) } else { product }
        }
        Some(_) => unit(&z),
        None if a.scalar("exponent").is_ok_and(|n| n.to_f64() == 0.5) => z.sqrt(),
        None => {
            let exponent = a.complex(cx, "exponent", dtype)?;
            z.power(&exponent)
        }
    };
    a.emitted(cx, &result)
}

fn tanh(z: &Complex) -> Complex {
    let (a, b) = (&z.re * 2.0, z.imaginary() * 2.0);
    let below = a.unary(FloatUnary::Cosh) + super::parts::cos(&b);
    let large = z.re.abs().gt(20.0);
    let re = a.unary(FloatUnary::Sinh) / &below;
    let im = b.sin() / &below;
    Complex::new(large.select(z.re.sign(), re), large.select(0.0, im))
}

/// The number of magnitude 1 in the same direction; of 0, 0.
fn direction(z: &Complex) -> Complex {
    let size = z.magnitude();
    let none = size.equals(0.0);
    let unit = z.divided(&size);
    let im = unit.imaginary();
    Complex::new(none.select(0.0, &unit.re), none.select(0.0, im))
}

fn complex(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?;
    let (re, im) = (a.tensor("real")?, a.tensor("imag")?);
    let parts = Parts { re: cx.b.cast(re, dtype), im: cx.b.cast(im, dtype) };
    Ok(cx.join(parts)?.into())
}

fn polar(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?.compute();
    let (size, angle) = (a.complex(cx, "abs", dtype)?.re, a.complex(cx, "angle", dtype)?.re);
    a.emitted(cx, &Complex::new(&size * super::parts::cos(&angle), &size * angle.sin()))
}

fn compared(cx: &mut Context, a: &Args, differs: bool) -> Rule {
    let dtype = a.meta("self").or_else(|_| a.meta("other"))?.dtype.compute();
    let (x, y) = (a.complex(cx, "self", dtype)?, a.complex(cx, "other", dtype)?);
    let relation = if differs { Relation::Ne } else { Relation::Eq };
    let (re, im) = (x.re.binary(relation, &y.re), x.imaginary().binary(relation, y.imaginary()));
    let result = if differs { re.or(im) } else { re.and(im) };
    Ok(cx.formula(dtype, &result)?.into())
}

fn masked_fill(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?;
    let (z, value) = (a.complex(cx, "self", dtype)?, a.complex(cx, "value", dtype)?);
    let mask = cx.b.cast(a.tensor("mask")?, DType::Bool);
    let mask = Formula::from(mask);
    let result = Complex::new(mask.select(&value.re, &z.re), mask.select(value.imaginary(), z.imaginary()));
    a.emitted(cx, &result)
}

/// The same number everywhere, which may be real.
fn filling(cx: &mut Context, a: &Args) -> Rule {
    let dtype = a.part_type()?;
    let value = a.complex(cx, "value", dtype)?;
    let parts = cx.split(a.tensor("self")?)?;
    let (re, im) = (cx.formula(dtype, &value.re)?, cx.formula(dtype, &value.imaginary())?);
    let shape = cx.b.shape(parts.re);
    let parts = Parts { re: cx.b.expand(re, &shape)?, im: cx.b.expand(im, &shape)? };
    Ok(cx.join(parts)?.into())
}

/// To complex numbers of another width, from real ones, or to real ones, which drops the imaginary part.
fn convert(cx: &mut Context, a: &Args) -> Rule {
    let (x, dtype) = (a.tensor("self")?, a.part_type()?);
    let own = a.meta("self")?;
    let becomes_complex = a.output_meta(0).is_some_and(|meta| meta.is_complex);
    let parts = if own.is_complex { cx.split(x)? } else { Parts { re: x, im: cx.b.full_like(0i64, x) } };
    let re = cx.b.cast(parts.re, dtype);
    if !becomes_complex {
        return Ok(re.into());
    }
    if own.is_complex && own.dtype == dtype {
        return Ok(x.into());
    }
    let im = cx.b.cast(parts.im, dtype);
    Ok(cx.join(Parts { re, im })?.into())
}

/// One number everywhere, in the sizes that the program states.
fn everywhere(cx: &mut Context, a: &Args, re: f64, im: f64) -> Rule {
    let meta =
        a.output_meta(0).ok_or_else(|| RuleError::Malformed("the result is not described".to_owned()))?;
    let sizes: Vec<Expr> = meta.sizes.clone();
    let parts = Parts { re: cx.b.full(re, meta.dtype, &sizes), im: cx.b.full(im, meta.dtype, &sizes) };
    if !meta.is_complex {
        return Ok(parts.re.into());
    }
    Ok(cx.join(parts)?.into())
}

fn filled(cx: &mut Context, a: &Args, number: f64) -> Rule {
    everywhere(cx, a, number, 0.0)
}

fn filled_with(cx: &mut Context, a: &Args) -> Rule {
    let name = if a.has("fill_value") { "fill_value" } else { "s" };
    match a.raw(name) {
        Some(Arg::Complex { re, im }) => everywhere(cx, a, *re, *im),
        _ => everywhere(cx, a, a.scalar(name)?.to_f64(), 0.0),
    }
}

fn padded(cx: &mut Context, a: &Args) -> Rule {
    if a.str_or("mode", "constant")? != "constant" {
        return Err(RuleError::unsupported("padding with elements of the tensor"));
    }
    if a.scalar_or("value", 0.0)?.to_f64() != 0.0 {
        return Err(RuleError::unsupported("padding with another number than 0"));
    }
    let parts = cx.split(a.tensor("self")?)?;
    let amounts = a.syms("pad")?;
    let padded = |cx: &mut Context, x| -> Result<_, RuleError> {
        let rank = cx.b.rank(x);
        let mut sides = vec![(Expr::int(0), Expr::int(0)); rank];
        for (number, pair) in amounts.chunks(2).enumerate() {
            let ([low, high], Some(axis)) = (pair, rank.checked_sub(number + 1)) else {
                return Err(RuleError::Malformed("padding has two numbers for each axis".to_owned()));
            };
            sides[axis] = (low.clone(), high.clone());
        }
        Ok(cx.b.pad(x, &sides, 0.0)?)
    };
    let parts = Parts { re: padded(cx, parts.re)?, im: padded(cx, parts.im)? };
    Ok(cx.join(parts)?.into())
}
