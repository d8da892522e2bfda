//! Convolutions whose operands the copy engine of a GPU brings ("TMA"): a product of the pixels that windows meet and of the
//! weights, for which nothing is copied in device memory. The engine takes the pixels that a tap meets one after the other, over
//! rows and images, with zeros around each image ("im2col").

use crate::kernels::gemm::tensor_map::{ROW_BYTES, TensorMap, Window};
use crate::loops::{Channels, ConvShape, Convolution, Program};
use crate::symbolic::Expr;
use std::ops::RangeInclusive;

/// Elements between windows at most.
pub(crate) const MOST_STEP: i64 = 8;
/// Bytes of an image from which on drivers make such maps as they are asked for: those up to 13.1 mistake smaller tensors.
const LEAST_BYTES: i64 = 131_072;

/// Where the first tap of a window can lie, beside the first or the last element, for so many spatial axes.
pub(crate) fn corners_of(axes: usize) -> RangeInclusive<i64> {
    match axes {
        1 => -32_768..=32_767,
        2 => -128..=127,
        _ => -16..=15,
    }
}

/// Elements between taps and the first one, at most.
fn most_reach(axes: usize) -> i64 {
    match axes {
        1 => 65_535,
        2 => 255,
        _ => 31,
    }
}

/// The maps of the pixels and of the weights, if the engine can bring both.
pub(crate) fn tensor_maps(program: &Program, conv: &Convolution) -> Option<[TensorMap; 2]> {
    let own = &conv.conv;
    if own.transposed || own.groups != 1 || conv.input_channels != Channels::Last {
        return None;
    }
    let shape = ConvShape::new(program, conv);
    let size = i64::try_from(conv.dtype.size()).expect("elements are small");
    // A row of a box is of one tap.
    let channels = shape.in_channels.as_int().filter(|channels| channels * size % ROW_BYTES == 0)?;
    let input = &program.buffers[conv.input].shape;
    let image = input[1..].iter().map(Expr::as_int).product::<Option<i64>>();
    if image.is_none_or(|elements| elements * size < LEAST_BYTES) {
        return None;
    }
    let window = window(conv, &shape)?;
    // The contiguous axis first, images last.
    let sizes: Vec<Expr> = input.iter().rev().cloned().collect();
    let strides = (1..sizes.len()).map(|axis| Expr::product(&sizes[..axis])).collect();
    let start = Expr::int(0);
    let pixels = TensorMap { start: start.clone(), sizes, strides, batches: vec![], window: Some(window) };
    let depth = &shape.taps() * channels;
    let weights = TensorMap {
        start,
        sizes: vec![depth.clone(), shape.out_channels.clone()],
        strides: vec![depth],
        batches: vec![],
        window: None,
    };
    Some([pixels, weights])
}

fn window(conv: &Convolution, shape: &ConvShape) -> Option<Window> {
    let axes = conv.conv.stride.len();
    let lead = 3usize.checked_sub(axes)?;
    let mut window = Window { lower: vec![], upper: vec![], steps: vec![] };
    for axis in (0..axes).rev() {
        let (before, after) = conv.conv.padding[axis];
        let reach = (shape.kernel[lead + axis].as_int()? - 1) * conv.conv.dilation[axis];
        let (lower, upper, step) = (-before, after - reach, conv.conv.stride[axis]);
        let corners = corners_of(axes);
        let fits = corners.contains(&lower) && corners.contains(&upper);
        if !fits || !(1..=MOST_STEP).contains(&step) || !(0..=most_reach(axes)).contains(&reach) {
            return None;
        }
        window.lower.push(lower);
        window.upper.push(upper);
        window.steps.push(step);
    }
    Some(window)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loops::KernelKind;
    use crate::loops::text::parse;

    /// The maps of a convolution of 16 images with windows of 3 by 2.
    fn maps(channels: i64, parameters: &str) -> Option<[TensorMap; 2]> {
        let program = parse(&format!(
            r#"loops {{
                buffer b0 "x": f16[16, 40, 56, {channels}] input 0
                buffer b1 "w": f16[256, {channels}, 3, 2] input 1
                buffer b2: f16[16, 20, 54, 256] output 0
                kernel "c" {{ conv f16 b0, b1 over [i0 < 16, i1 < 20, i2 < 54, i3 < 256] {parameters} {{
                    t0: f32 = total t1: f16 = cast t0 store b2[i0, i1, i2, i3] = t1 }} }}
            }}"#
        ))
        .unwrap_or_else(|error| panic!("{error}"));
        let kernel = program.kernels.values().next().expect("one kernel");
        let KernelKind::Convolution(conv) = &kernel.kind else { panic!("a convolution") };
        tensor_maps(&program, conv)
    }

    fn numbers(expressions: &[Expr]) -> Vec<i64> {
        expressions.iter().map(|own| own.as_int().expect("a number")).collect()
    }

    const LAST: &str = "from channels_last to channels_last";

    #[test]
    fn windows_begin_and_end_where_padding_and_dilation_say() {
        let parameters = "stride [2, 1] padding [1:0, 0:1] dilation [1, 3] groups 1";
        let [pixels, weights] = maps(128, &format!("{parameters} {LAST}")).expect("both fit");
        assert_eq!(numbers(&pixels.sizes), [128, 56, 40, 16]);
        assert_eq!(numbers(&pixels.strides), [128, 7168, 286_720]);
        let window = Window { lower: vec![0, -1], upper: vec![1 - 3, 0 - 2], steps: vec![1, 2] };
        assert_eq!(pixels.window, Some(window));
        assert_eq!((numbers(&weights.sizes), numbers(&weights.strides)), (vec![768, 256], vec![768]));
        assert_eq!(weights.window, None);
    }

    #[test]
    fn what_the_engine_cannot_bring_has_no_map() {
        let of = |channels: i64, step: i64, padding: i64, dilation: i64, order: &str| {
            let parameters = format!(
                "stride [{step}, 1] padding [{padding}:0, 0:0] dilation [{dilation}, 1] groups 1 {order}"
            );
            maps(channels, &parameters).is_some()
        };
        assert!(of(64, 2, 1, 1, LAST));
        assert!(!of(32, 2, 1, 1, LAST), "a piece of the depth is of two taps");
        assert!(!of(64, 9, 1, 1, LAST), "windows are far apart");
        assert!(!of(64, 2, 129, 1, LAST), "windows begin far outside");
        assert!(!of(64, 2, 1, 100, LAST), "taps are far apart");
        assert!(!of(64, 2, 1, 1, "to channels_last"), "channels lie apart");
    }
}
