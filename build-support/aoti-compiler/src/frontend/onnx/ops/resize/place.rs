//! Where along an axis of the image each result is taken from.

use super::super::super::walk::Onnx;
use super::{Axis, Scale};
use crate::dtype::DType;
use crate::frontend::torch::rules::{Formula, RuleError};
use crate::graph::ValueId;
use crate::symbolic::Expr;

/// How positions of results become positions of the image.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapping {
    /// By the middles of elements.
    HalfPixel,
    /// The same; a single result is the first element.
    HalfPixelOrFirst,
    /// The same, around the middle of the image.
    Symmetric,
    /// Middles of results become starts of elements.
    Middle,
    /// By the starts of elements.
    Asymmetric,
    /// The first and the last of both are the same.
    Corners,
    /// The first and the last are those of a region.
    Crop,
}

/// Positions in the image, over the results of an axis.
pub(super) enum Place {
    /// `(i * step + start) / denominator`.
    Fraction { step: Expr, start: Expr, denominator: Expr },
    /// A vector of `f64`.
    Number(ValueId),
}

pub(super) fn of(cx: &mut Onnx, axis: &Axis, mapping: Mapping) -> Result<Place, RuleError> {
    match (&axis.scale, mapping) {
        (_, Mapping::Crop) => of_region(cx, axis),
        (Scale::Ratio(top, bottom), _) => Ok(fraction(cx, axis, mapping, [top, bottom])),
        (Scale::Data(scale), _) => number(cx, axis, mapping, *scale),
    }
}

fn fraction(cx: &Onnx, axis: &Axis, mapping: Mapping, [top, bottom]: [&Expr; 2]) -> Place {
    let (zero, one, ranges) = (Expr::int(0), Expr::int(1), cx.b.ranges());
    let (step, start, denominator) = match mapping {
        Mapping::HalfPixel => (bottom * 2, bottom - top, top * 2),
        Mapping::HalfPixelOrFirst => {
            let has_more = (&axis.output - 1).maximum_in(&zero, ranges).minimum_in(&one, ranges);
            (&(bottom * 2) * &has_more, &(bottom - top) * &has_more, top * 2)
        }
        Mapping::Symmetric => {
            // Half of the difference between the length that the scale asks for and the one that there is.
            let rest = &(&axis.input * top) - &(&axis.output * bottom);
            (bottom * 2, &(bottom - top) + &rest, top * 2)
        }
        Mapping::Middle => (bottom * 2, bottom.clone(), top * 2),
        Mapping::Asymmetric => (bottom.clone(), zero, top.clone()),
        Mapping::Corners if cx.opened.is_by_torch() => {
            (&axis.input - 1, zero, (&axis.output - 1).maximum_in(&one, ranges))
        }
        Mapping::Corners | Mapping::Crop => {
            // The length of the result is what the scale says, whether whole or not.
            let steps = &(&axis.input * top) - bottom;
            (&(&axis.input - 1) * bottom, zero, steps.maximum_in(&one, ranges))
        }
    };
    Place::Fraction { step, start, denominator }
}

/// Sizes and positions as numbers.
fn real(cx: &mut Onnx, expr: Expr, shape: &[Expr], dtype: DType) -> Formula {
    let value = cx.b.index(expr, shape);
    cx.b.cast(value, dtype).into()
}

/// The length of the result as the scale says it, whether whole or not. PyTorch's exporters write scales where they mean lengths
/// that are whole.
fn length(cx: &mut Onnx, axis: &Axis, dtype: DType) -> Formula {
    if cx.opened.is_by_torch() {
        return real(cx, axis.output.clone(), &[], dtype);
    }
    let input = real(cx, axis.input.clone(), &[], dtype);
    match &axis.scale {
        Scale::Ratio(top, bottom) if cx.b.same_size(bottom, &axis.input) => real(cx, top.clone(), &[], dtype),
        Scale::Ratio(top, bottom) => {
            let [top, bottom] = [top, bottom].map(|size| real(cx, size.clone(), &[], dtype));
            input * top / bottom
        }
        Scale::Data(scale) => Formula::from(cx.b.cast(*scale, dtype)) * input,
    }
}

fn number(cx: &mut Onnx, axis: &Axis, mapping: Mapping, scale: ValueId) -> Result<Place, RuleError> {
    let dtype = DType::F64;
    let at = real(cx, Expr::axis(0), std::slice::from_ref(&axis.output), dtype);
    let [input, output] = [&axis.input, &axis.output].map(|size| real(cx, size.clone(), &[], dtype));
    let length = length(cx, axis, dtype);
    let scale = Formula::from(cx.b.cast(scale, dtype));
    let middle = (&at + 0.5) / &scale;
    let place = match mapping {
        Mapping::HalfPixel => middle - 0.5,
        Mapping::HalfPixelOrFirst => output.gt(1.0).select(middle - 0.5, 0.0),
        Mapping::Symmetric => input * 0.5 * (1.0 - output / length) + middle - 0.5,
        Mapping::Middle => middle,
        Mapping::Asymmetric => at / scale,
        Mapping::Corners | Mapping::Crop => {
            let steps = length - 1.0;
            steps.gt(0.0).select(at * (input - 1.0) / &steps, 0.0)
        }
    };
    let place = cx.formula(dtype, &place)?;
    Ok(Place::Number(cx.b.expand(place, std::slice::from_ref(&axis.output))?))
}

fn of_region(cx: &mut Onnx, axis: &Axis) -> Result<Place, RuleError> {
    let dtype = DType::F64;
    let shape = std::slice::from_ref(&axis.output);
    let [start, end] = match axis.region {
        Some(region) => region.map(Formula::from),
        None => [0.0, 1.0].map(|number| Formula::from(cx.b.scalar(number, dtype))),
    };
    let last = real(cx, &axis.input - 1, &[], dtype);
    let at = real(cx, Expr::axis(0), shape, dtype);
    let steps = length(cx, axis, dtype) - 1.0;
    let spread = at * (&end - &start) * &last / &steps + &start * &last;
    let place = steps.gt(0.0).select(spread, (start + end) * 0.5 * last);
    let place = cx.formula(dtype, &place)?;
    Ok(Place::Number(cx.b.expand(place, shape)?))
}
