//! Matrix products and convolutions by plain loops.
//!
//! Floating-point numbers of every type are multiplied and summed in `f64` and rounded once; integers wrap.

use super::error::EvalError;
use super::index::{advance, strides};
use super::tensor::{Lanes, Tensor};
use crate::graph::Conv;
use std::num::Wrapping;
use std::ops::{AddAssign, Mul};

enum Wide {
    Float(Vec<f64>),
    Int(Vec<Wrapping<i64>>),
}

fn wide(x: &Tensor) -> Wide {
    match x.lanes() {
        Lanes::F32(values) => Wide::Float(values.into_iter().map(f64::from).collect()),
        Lanes::F64(values) => Wide::Float(values),
        Lanes::Int(values) => Wide::Int(values.into_iter().map(Wrapping).collect()),
        // Sums and products of bits are the same with and without a sign.
        Lanes::Uint(values) => {
            Wide::Int(values.into_iter().map(|value| Wrapping(value.cast_signed())).collect())
        }
    }
}

fn contract(
    a: &Tensor,
    b: &Tensor,
    sizes: Vec<usize>,
    floats: impl Fn(&[f64], &[f64], &mut [f64]),
    ints: impl Fn(&[Wrapping<i64>], &[Wrapping<i64>], &mut [Wrapping<i64>]),
) -> Result<Tensor, EvalError> {
    let numel = sizes.iter().product();
    let lanes = match (wide(a), wide(b)) {
        (Wide::Float(a), Wide::Float(b)) => {
            let mut out = vec![0.0; numel];
            floats(&a, &b, &mut out);
            Lanes::F64(out)
        }
        (Wide::Int(a), Wide::Int(b)) => {
            let mut out = vec![Wrapping(0); numel];
            ints(&a, &b, &mut out);
            Lanes::Int(out.into_iter().map(|value| value.0).collect())
        }
        _ => return Err(EvalError::Malformed("factors differ in type".to_owned())),
    };
    Ok(Tensor::store(a.dtype(), sizes, &lanes))
}

/// `[batch..., m, k] x [batch..., k, n]`.
pub(super) fn matmul(a: &Tensor, b: &Tensor) -> Result<Tensor, EvalError> {
    let rank = a.sizes().len();
    if rank < 2 || b.sizes().len() != rank || b.sizes()[rank - 2] != a.sizes()[rank - 1] {
        return Err(EvalError::Malformed("factors of a matrix product do not fit".to_owned()));
    }
    let (m, k, n) = (a.sizes()[rank - 2], a.sizes()[rank - 1], b.sizes()[rank - 1]);
    let mut sizes = a.sizes().to_vec();
    sizes[rank - 1] = n;
    contract(
        a,
        b,
        sizes,
        |a, b, out| products(a, b, out, [m, k, n]),
        |a, b, out| products(a, b, out, [m, k, n]),
    )
}

fn products<T: Copy + Mul<Output = T> + AddAssign>(a: &[T], b: &[T], out: &mut [T], [m, k, n]: [usize; 3]) {
    if m * k * n == 0 {
        return;
    }
    for (row, out_row) in out.chunks_exact_mut(n).enumerate() {
        let (batch, i) = (row / m, row % m);
        for inner in 0..k {
            let factor = a[(batch * m + i) * k + inner];
            let b_row = &b[(batch * k + inner) * n..][..n];
            for (sum, value) in out_row.iter_mut().zip(b_row) {
                *sum += factor * *value;
            }
        }
    }
}

/// Sizes of a convolution seen as pairs of a *near* and a *far* position along each axis:
/// `far = near * stride + tap * dilation - padding`. The far side is the input, or the result where transposed.
struct Geometry {
    batch: usize,
    in_channels: usize,
    out_channels: usize,
    groups: usize,
    input: Vec<usize>,
    window: Vec<usize>,
    output: Vec<usize>,
    stride: Vec<i64>,
    dilation: Vec<i64>,
    padding: Vec<i64>,
    transposed: bool,
}

/// Convolution or its transpose.
pub(super) fn conv(x: &Tensor, weight: &Tensor, conv: &Conv, sizes: Vec<usize>) -> Result<Tensor, EvalError> {
    let groups = usize::try_from(conv.groups).unwrap_or(0);
    let fits = x.sizes().len() == conv.stride.len() + 2 && weight.sizes().len() == x.sizes().len();
    let steps = conv.stride.iter().chain(&conv.dilation).all(|step| *step > 0);
    if groups == 0 || !fits || !steps {
        return Err(EvalError::Malformed("operands of a convolution do not fit".to_owned()));
    }
    // Without spatial axes it is a convolution over one axis of size 1.
    let with_unit = |sizes: &[usize]| if sizes.len() > 2 { sizes[2..].to_vec() } else { vec![1] };
    let parameters = |values: Vec<i64>, unit: i64| if values.is_empty() { vec![unit] } else { values };
    let geometry = Geometry {
        batch: x.sizes()[0],
        in_channels: x.sizes()[1],
        out_channels: sizes[1],
        groups,
        input: with_unit(x.sizes()),
        window: with_unit(weight.sizes()),
        output: with_unit(&sizes),
        stride: parameters(conv.stride.clone(), 1),
        dilation: parameters(conv.dilation.clone(), 1),
        padding: parameters(conv.padding.iter().map(|(low, _)| *low).collect(), 0),
        transposed: conv.transposed,
    };
    let g = &geometry;
    contract(x, weight, sizes, |x, w, out| convolve(g, x, w, out), |x, w, out| convolve(g, x, w, out))
}

fn convolve<T: Copy + Mul<Output = T> + AddAssign>(g: &Geometry, x: &[T], weight: &[T], out: &mut [T]) {
    let numel = |sizes: &[usize]| sizes.iter().product::<usize>();
    let (in_size, out_size, taps) = (numel(&g.input), numel(&g.output), numel(&g.window));
    if in_size * out_size * taps == 0 {
        return;
    }
    let (in_group, out_group) = (g.in_channels / g.groups, g.out_channels / g.groups);
    for n in 0..g.batch {
        for out_channel in 0..g.out_channels {
            let group = out_channel / out_group;
            for inner in 0..in_group {
                let in_channel = group * in_group + inner;
                let filter = if g.transposed {
                    in_channel * out_group + out_channel % out_group
                } else {
                    out_channel * in_group + inner
                };
                let plane = &x[(n * g.in_channels + in_channel) * in_size..][..in_size];
                let target = &mut out[(n * g.out_channels + out_channel) * out_size..][..out_size];
                accumulate(g, plane, &weight[filter * taps..][..taps], target);
            }
        }
    }
}

/// Adds the contribution of one input plane to one output plane.
fn accumulate<T: Copy + Mul<Output = T> + AddAssign>(
    g: &Geometry,
    plane: &[T],
    window: &[T],
    target: &mut [T],
) {
    let last = g.window.len() - 1;
    let (near, far) = if g.transposed { (&g.input, &g.output) } else { (&g.output, &g.input) };
    let (near_strides, far_strides) = (strides(near), strides(far));
    let mut tap = vec![0; last + 1];
    for weight in window {
        let shift = |axis: usize| tap[axis] as i64 * g.dilation[axis] - g.padding[axis];
        let mut row = vec![0; last];
        loop {
            // Offsets of the row, if its far side is inside.
            let mut far_row = Some(0);
            let near_row: usize = row.iter().zip(&near_strides).map(|(p, s)| p * s).sum();
            for (axis, position) in row.iter().enumerate() {
                let at = *position as i64 * g.stride[axis] + shift(axis);
                let inside = usize::try_from(at).ok().filter(|at| *at < far[axis]);
                far_row = far_row.zip(inside).map(|(sum, at)| sum + at * far_strides[axis]);
            }
            if let Some(far_row) = far_row {
                // Positions whose far side is inside: 0 <= position * stride + shift < far.
                let (stride, shift) = (g.stride[last], shift(last));
                let first = ceil_div((-shift).max(0), stride);
                let end = ceil_div((far[last] as i64 - shift).max(0), stride).min(near[last] as i64);
                let mut at = first * stride + shift;
                for position in first..end {
                    let (near_at, far_at) = (near_row + position as usize, far_row + at as usize);
                    if g.transposed {
                        target[far_at] += plane[near_at] * *weight;
                    } else {
                        target[near_at] += plane[far_at] * *weight;
                    }
                    at += stride;
                }
            }
            if !advance(&mut row, &near[..last]) {
                break;
            }
        }
        advance(&mut tap, &g.window);
    }
}

/// Quotient rounded up; neither operand is negative.
fn ceil_div(a: i64, b: i64) -> i64 {
    (a + b - 1) / b
}
