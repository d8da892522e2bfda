//! Fourier transforms as products with matrices of roots of unity, where no passes are written for them: of short rows, and of those
//! that are too long for the shared memory of a GPU.
//!
//! Of these a length that is a product is transformed in two steps with a multiplication by roots in between (Cooley and Tukey,
//! 1965); a large prime becomes a convolution of a length that is a power of two (Bluestein, 1970). Roots are computed
//! in `f64` when the model is compiled. Of real numbers half of the transform is computed: the other half repeats it,
//! conjugated and backwards.

use super::fourier_steps::in_steps;
use super::rewrite::{everywhere, rewrite};
use super::{dce, optimize};
use crate::dtype::{DType, bytes_of};
use crate::fourier::{Form, Fourier, Norm};
use crate::graph::{BinaryOp, Builder, Constant, Graph, Node, Op, ShapeError, UnaryOp, ValueId};
use crate::symbolic::Expr;
use std::f64::consts::TAU;

/// Up to here one product with the whole matrix takes no longer than two steps.
const SMALL: i64 = 64;
/// Above, a prime length is transformed as a convolution: its matrix would be large.
const LARGE_PRIME: i64 = 256;

type Built<T = ValueId> = Result<T, ShapeError>;

/// Whether a target has passes for a transform of elements of a type.
pub(crate) type HasPasses<'f> = &'f dyn Fn(&Fourier, DType) -> bool;

/// Replaces the transforms that a target has no passes for.
pub(crate) fn fourier_to_gemm(graph: Graph, has_passes: HasPasses) -> Graph {
    let mut is_any = false;
    graph.visit(&mut |graph, node| is_any |= wanted(graph, node, has_passes).is_some());
    if !is_any {
        return graph;
    }
    let graph = everywhere(graph, &mut |graph, ranges| {
        rewrite(graph, ranges, &mut |rewriter, node| {
            let fourier = wanted(rewriter.builder.graph(), node, has_passes)?;
            let value =
                in_steps(&mut rewriter.builder, &fourier, node.inputs[0], has_passes).unwrap_or_else(|| {
                    Products { b: &mut rewriter.builder, has_passes }.of_node(&fourier, node.inputs[0])
                });
            Some(vec![value.expect("the operand has rows of the transform")])
        });
    });
    optimize(dce(graph))
}

fn wanted(graph: &Graph, node: &Node, has_passes: HasPasses) -> Option<Fourier> {
    let Op::Fourier(fourier) = &node.op else { return None };
    let dtype = graph.ty(node.inputs[0]).dtype;
    (!has_passes(fourier, dtype)).then_some(*fourier)
}

/// The direction of a transform: the sign of the exponent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    Forward,
    Inverse,
}

impl Direction {
    fn sign(self) -> f64 {
        match self {
            Direction::Forward => -1.0,
            Direction::Inverse => 1.0,
        }
    }
}

/// Numbers to transform, of which the imaginary parts may be known to be 0.
#[derive(Clone, Copy)]
struct Signal {
    re: ValueId,
    im: Option<ValueId>,
}

/// Real and imaginary parts of numbers.
#[derive(Clone, Copy)]
struct Parts {
    re: ValueId,
    im: ValueId,
}

/// Builds transforms along the last axis, without any normalisation.
struct Products<'b> {
    b: &'b mut Builder,
    has_passes: HasPasses<'b>,
}

impl Products<'_> {
    fn of_node(&mut self, fourier: &Fourier, x: ValueId) -> Built {
        let n = fourier.length;
        let result = match fourier.form {
            Form::Forward | Form::Inverse => {
                let direction =
                    if fourier.form.is_inverse() { Direction::Inverse } else { Direction::Forward };
                let x = self.split(x)?;
                let all = self.fourier(Signal { re: x.re, im: Some(x.im) }, n, direction)?;
                self.join(all)?
            }
            Form::ToHalf => {
                let half = self.half_fourier(x, n, Direction::Forward)?;
                self.join(half)?
            }
            Form::FromHalf => {
                let half = self.split(x)?;
                self.real_fourier(half, n)?
            }
        };
        match fourier.scale() {
            1.0 => Ok(result),
            scale => self.b.binary_scalar(BinaryOp::Mul, result, scale),
        }
    }

    fn split(&mut self, pairs: ValueId) -> Built<Parts> {
        let last = self.b.rank(pairs) - 1;
        Ok(Parts {
            re: self.b.pick(pairs, last, &Expr::int(0))?,
            im: self.b.pick(pairs, last, &Expr::int(1))?,
        })
    }

    fn join(&mut self, parts: Parts) -> Built {
        let axis = self.b.rank(parts.re);
        let columns = [self.b.unsqueeze(parts.re, axis)?, self.b.unsqueeze(parts.im, axis)?];
        self.b.cat(&columns, axis)
    }

    fn mul(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.binary(BinaryOp::Mul, a, b)
    }

    fn add(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.binary(BinaryOp::Add, a, b)
    }

    fn sub(&mut self, a: ValueId, b: ValueId) -> Built {
        self.b.binary(BinaryOp::Sub, a, b)
    }

    fn unary(&mut self, op: UnaryOp, x: ValueId) -> ValueId {
        self.b.unary(op, x)
    }

    /// The real numbers whose transform has this first half, of which the imaginary parts of numbers that are their own
    /// repetition do not count.
    fn real_fourier(&mut self, half: Parts, n: i64) -> Built {
        let all = self.mirrored(half, n)?;
        Ok(self.fourier(Signal { re: all.re, im: Some(all.im) }, n, Direction::Inverse)?.re)
    }

    /// The transform by the target's own passes, where it has such.
    fn by_passes(&mut self, x: ValueId, form: Form, n: i64) -> Built<Option<Parts>> {
        let own = Fourier { form, length: n, norm: Norm::One };
        if !(self.has_passes)(&own, self.b.dtype(x)) {
            return Ok(None);
        }
        let result = self.b.fourier(own, x)?;
        self.split(result).map(Some)
    }

    /// The transform of length `n` along the last axis, without any normalisation.
    fn fourier(&mut self, x: Signal, n: i64, direction: Direction) -> Built<Parts> {
        if let Some(im) = x.im {
            let form = match direction {
                Direction::Forward => Form::Forward,
                Direction::Inverse => Form::Inverse,
            };
            let pairs = self.join(Parts { re: x.re, im })?;
            if let Some(all) = self.by_passes(pairs, form, n)? {
                return Ok(all);
            }
        }
        match Method::of(n) {
            Method::Direct => self.direct(x, n, n, direction),
            Method::TwoSteps(_) if x.im.is_none() => {
                let half = self.half_fourier(x.re, n, direction)?;
                self.mirrored(half, n)
            }
            Method::TwoSteps(first) => self.in_two_steps(x, first, n / first, direction),
            Method::Convolution => self.as_convolution(x, n, direction),
        }
    }

    /// The first `n / 2 + 1` numbers of the transform of real ones.
    fn half_fourier(&mut self, x: ValueId, n: i64, direction: Direction) -> Built<Parts> {
        let kept = n / 2 + 1;
        if direction == Direction::Forward
            && let Some(half) = self.by_passes(x, Form::ToHalf, n)?
        {
            return Ok(half);
        }
        match Method::of(n) {
            Method::Direct => self.direct(Signal { re: x, im: None }, n, kept, direction),
            Method::TwoSteps(first) => self.half_in_two_steps(x, first, n / first, direction),
            Method::Convolution => {
                let all = self.as_convolution(Signal { re: x, im: None }, n, direction)?;
                self.first_of(all, kept)
            }
        }
    }

    fn first_of(&mut self, x: Parts, count: i64) -> Built<Parts> {
        let axis = self.b.rank(x.re) - 1;
        let mut first = |part| self.b.slice(part, axis, &Expr::int(0), &Expr::int(count), 1);
        Ok(Parts { re: first(x.re)?, im: first(x.im)? })
    }

    /// All `n` numbers of a transform of real ones, of which the first half is there.
    fn mirrored(&mut self, half: Parts, n: i64) -> Built<Parts> {
        let axis = self.b.rank(half.re) - 1;
        let mut part = |part, is_imaginary: bool| -> Built {
            let rest = self.b.slice(part, axis, &Expr::int(1), &Expr::int((n - 1) / 2), 1)?;
            let rest = self.b.flip(rest, &[axis])?;
            let rest = if is_imaginary { self.unary(UnaryOp::Neg, rest) } else { rest };
            self.b.cat(&[part, rest], axis)
        };
        Ok(Parts { re: part(half.re, false)?, im: part(half.im, true)? })
    }

    /// One product with the matrix of roots, of which the first `kept` columns count.
    fn direct(&mut self, x: Signal, n: i64, kept: i64, direction: Direction) -> Built<Parts> {
        let dtype = self.b.dtype(x.re);
        let at = |at: i64| root((at / kept) * (at % kept), n, direction);
        let cos = self.table(dtype, &[n, kept], &|k| at(k).0)?;
        let sin = self.table(dtype, &[n, kept], &|k| at(k).1)?;
        let (re, im) = (self.last_product(x.re, cos)?, self.last_product(x.re, sin)?);
        let Some(imaginary) = x.im else { return Ok(Parts { re, im }) };
        let (across, along) = (self.last_product(imaginary, sin)?, self.last_product(imaginary, cos)?);
        Ok(Parts { re: self.sub(re, across)?, im: self.add(im, along)? })
    }

    /// `x` times a matrix along its last axis.
    fn last_product(&mut self, x: ValueId, matrix: ValueId) -> Built {
        let mut shape = self.b.shape(x);
        let depth = shape.pop().expect("rows have an axis");
        let rows = self.b.reshape(x, &[Expr::product(&shape), depth])?;
        let result = self.b.matmul(rows, matrix)?;
        shape.extend(self.b.shape(result).pop());
        self.b.reshape(result, &shape)
    }

    fn table(&mut self, dtype: DType, sizes: &[i64], of: &dyn Fn(i64) -> f64) -> Built {
        table(self.b, dtype, sizes, of)
    }

    /// With `j = j1 * second + j2` and `k = k1 + first * k2`: transforms of length `first` over `j1`, a multiplication by the
    /// root of `j2 * k1`, and transforms of length `second` over `j2`.
    fn in_two_steps(&mut self, x: Signal, first: i64, second: i64, direction: Direction) -> Built<Parts> {
        let n = first * second;
        let mut shape = self.b.shape(x.re);
        let axis = shape.len() - 1;
        shape.splice(axis.., [Expr::int(first), Expr::int(second)]);
        // j1 last.
        let apart = |cx: &mut Products, x| -> Built {
            let x = cx.b.reshape(x, &shape)?;
            cx.b.transpose(x, axis, axis + 1)
        };
        let re = apart(self, x.re)?;
        let im = x.im.map(|im| apart(self, im)).transpose()?;
        let inner = self.fourier(Signal { re, im }, first, direction)?;
        let outer = self.second_step(inner, [first, second], n, direction)?;
        let mut flat = shape;
        flat.splice(axis.., [Expr::int(n)]);
        let together = |cx: &mut Products, x| -> Built {
            let x = cx.b.transpose(x, axis, axis + 1)?;
            cx.b.reshape(x, &flat)
        };
        Ok(Parts { re: together(self, outer.re)?, im: together(self, outer.im)? })
    }

    /// The transforms over j2 of what the first step made for `rows` numbers k1, each turned by its root of order `n`.
    fn second_step(
        &mut self,
        inner: Parts,
        [rows, second]: [i64; 2],
        n: i64,
        direction: Direction,
    ) -> Built<Parts> {
        let (dtype, axis) = (self.b.dtype(inner.re), self.b.rank(inner.re) - 2);
        let at = |at: i64| root((at / rows) * (at % rows), n, direction);
        let cos = self.table(dtype, &[second, rows], &|k| at(k).0)?;
        let sin = self.table(dtype, &[second, rows], &|k| at(k).1)?;
        let turned = self.rotated(inner, Parts { re: cos, im: sin })?;
        // j2 last, then k2.
        let re = self.b.transpose(turned.re, axis, axis + 1)?;
        let im = self.b.transpose(turned.im, axis, axis + 1)?;
        self.fourier(Signal { re, im: Some(im) }, second, direction)
    }

    /// The same of real numbers, as far as `k1 <= first / 2`: row `first - k1` is row `k1`, conjugated and backwards.
    fn half_in_two_steps(
        &mut self,
        x: ValueId,
        first: i64,
        second: i64,
        direction: Direction,
    ) -> Built<Parts> {
        let (n, rows) = (first * second, first / 2 + 1);
        let mut shape = self.b.shape(x);
        let axis = shape.len() - 1;
        shape.splice(axis.., [Expr::int(first), Expr::int(second)]);
        let apart = self.b.reshape(x, &shape)?;
        let apart = self.b.transpose(apart, axis, axis + 1)?;
        let inner = self.half_fourier(apart, first, direction)?;
        let outer = self.second_step(inner, [rows, second], n, direction)?;
        let mut flat = shape;
        flat.splice(axis.., [Expr::int(n)]);
        let mut together = |part, is_imaginary: bool| -> Built {
            let rest = self.b.slice(part, axis, &Expr::int(1), &Expr::int(first - rows), 1)?;
            let rest = self.b.flip(rest, &[axis, axis + 1])?;
            let rest = if is_imaginary { self.unary(UnaryOp::Neg, rest) } else { rest };
            let all = self.b.cat(&[part, rest], axis)?;
            let all = self.b.transpose(all, axis, axis + 1)?;
            self.b.reshape(all, &flat)
        };
        let all = Parts { re: together(outer.re, false)?, im: together(outer.im, true)? };
        self.first_of(all, n / 2 + 1)
    }

    /// Products of complex numbers, element by element.
    fn rotated(&mut self, x: Parts, by: Parts) -> Built<Parts> {
        let (a, b) = (self.mul(x.re, by.re)?, self.mul(x.im, by.im)?);
        let (c, d) = (self.mul(x.re, by.im)?, self.mul(x.im, by.re)?);
        Ok(Parts { re: self.sub(a, b)?, im: self.add(c, d)? })
    }

    /// With `j * k = (j^2 + k^2 - (k - j)^2) / 2`: a product with a chirp, a convolution with its inverse, and another product.
    fn as_convolution(&mut self, x: Signal, n: i64, direction: Direction) -> Built<Parts> {
        let length = u64::try_from(2 * n - 1).expect("positive").next_power_of_two();
        let m = i64::try_from(length).expect("lengths are limited");
        let dtype = self.b.dtype(x.re);
        let chirp = |at: i64| {
            let square = i128::from(at) * i128::from(at) % i128::from(2 * n);
            direction.sign() * TAU * (square as f64) / (2 * n) as f64
        };
        let own = Parts {
            re: self.table(dtype, &[n], &|at| chirp(at).cos())?,
            im: self.table(dtype, &[n], &|at| chirp(at).sin())?,
        };
        // The inverse chirp, around position 0 of a circle of `m`.
        let around = |at: i64| if at < n { Some(at) } else { Some(m - at).filter(|back| *back < n) };
        let circle = Signal {
            re: self.table(dtype, &[m], &|at| around(at).map_or(0.0, |at| chirp(at).cos()))?,
            im: Some(self.table(dtype, &[m], &|at| around(at).map_or(0.0, |at| -chirp(at).sin()))?),
        };
        let im = match x.im {
            Some(im) => im,
            None => self.b.full_like(0.0, x.re),
        };
        let turned = self.rotated(Parts { re: x.re, im }, own)?;
        let mut amounts = vec![(Expr::int(0), Expr::int(0)); self.b.rank(x.re)];
        if let Some(last) = amounts.last_mut() {
            last.1 = Expr::int(m - n);
        }
        let re = self.b.pad(turned.re, &amounts, 0.0)?;
        let im = self.b.pad(turned.im, &amounts, 0.0)?;
        let spectrum = self.fourier(Signal { re, im: Some(im) }, m, Direction::Forward)?;
        let filter = self.fourier(circle, m, Direction::Forward)?;
        let product = self.rotated(spectrum, filter)?;
        let signal = Signal { re: product.re, im: Some(product.im) };
        let convolved = self.fourier(signal, m, Direction::Inverse)?;
        let axis = self.b.rank(x.re) - 1;
        let kept = |cx: &mut Products, x| -> Built {
            let x = cx.b.slice(x, axis, &Expr::int(0), &Expr::int(n), 1)?;
            cx.b.binary_scalar(BinaryOp::Mul, x, 1.0 / m as f64)
        };
        let convolved = Parts { re: kept(self, convolved.re)?, im: kept(self, convolved.im)? };
        self.rotated(convolved, own)
    }
}

/// A tensor of numbers that are known now.
pub(super) fn table(b: &mut Builder, dtype: DType, sizes: &[i64], of: &dyn Fn(i64) -> f64) -> Built {
    let count = sizes.iter().product::<i64>();
    let numbers: Vec<f64> = (0..count).map(of).collect();
    let (stored, data) = if dtype == DType::F64 {
        (DType::F64, bytes_of(&numbers, &f64::to_le_bytes))
    } else {
        (DType::F32, bytes_of(&numbers, &|number| (number as f32).to_le_bytes()))
    };
    let value = b.constant(Constant::new("", stored, sizes.to_vec(), data))?;
    Ok(b.cast(value, dtype))
}

/// How a length is transformed.
enum Method {
    /// As one product.
    Direct,
    /// In two steps, of which the first has this length.
    TwoSteps(i64),
    /// As a convolution.
    Convolution,
}

impl Method {
    fn of(n: i64) -> Method {
        match divisor(n) {
            _ if n <= SMALL => Method::Direct,
            Some(first) => Method::TwoSteps(first),
            None if n <= LARGE_PRIME => Method::Direct,
            None => Method::Convolution,
        }
    }
}

/// Cosine and sine of `product / n` turns in the direction's sign: exact at quarters, where rounding would make a small number
/// of 0.
pub(super) fn root(product: i64, n: i64, direction: Direction) -> (f64, f64) {
    let part = product.rem_euclid(n);
    let angle = TAU * part as f64 / n as f64;
    let (cos, sin) = match (4 * part % n, 4 * part / n) {
        (0, 0) => (1.0, 0.0),
        (0, 1) => (0.0, 1.0),
        (0, 2) => (-1.0, 0.0),
        (0, _) => (0.0, -1.0),
        _ => (angle.cos(), angle.sin()),
    };
    (cos, if sin == 0.0 { 0.0 } else { direction.sign() * sin })
}

/// The divisor of `n` that is nearest to its square root from below, if it has any.
fn divisor(n: i64) -> Option<i64> {
    let root = (n as f64).sqrt() as i64 + 1;
    (2..=root).rev().find(|d| n % d == 0 && d * d <= n)
}
