//! Convolutions of few channels a group as device code: `gpu/windows.h` with the sizes of windows and blocks.

use super::contraction::epilogue;
use super::{Printed, index_type};
use crate::codegen::c_family::contraction::{literal, merge_pixels, sum_type};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::type_name;
use crate::kernels::conv::windows::{PixelBlock, PlaneBlock, WindowBlock, Windows, block_of_tile};
use crate::kernels::mapping::Tile;
use crate::loops::{Channels, ConvShape, Convolution, Program};
use crate::symbolic::Expr;

pub(super) fn print(program: &Program, parameters: &Parameters, conv: &Convolution, tile: &Tile) -> Printed {
    let (shape, index) = (ConvShape::new(program, conv), index_type(tile.index));
    let windows = Windows::of_kernel(program, conv).expect("a verified tile has windows");
    let block = block_of_tile(program, conv, tile).expect("a verified tile is one of these");
    let (stage, pixel) = merge_pixels(conv);
    let is_last = conv.output_channels == Channels::Last;
    let call = match block {
        WindowBlock::Pixels(own) => pixels(&windows, &own, &shape, is_last),
        WindowBlock::Planes(own) => planes(&windows, &own, &shape, is_last),
    };
    let vector = if is_last { conv.channel().symbol } else { pixel };
    let [n, c, p] = [conv.image().symbol, conv.channel().symbol, pixel].map(symbol_name);
    let body = format!(
        "using Taps = {};\n\
         const ConvSizes<{index}> shape{};\n\
         {}<{}, Taps, {call}>(whole<{element}>({}), {}, shape,\n\
         \x20   [&]({index} {n}, {index} {c}, {index} {p}, auto lanes, auto sum) {{\n\
         \x20     (void){n}, (void){c}, (void){p};\n{}    }});\n",
        window(&windows),
        literal(&shape, &scalar),
        template(&block),
        sum_type(conv.dtype),
        parameters.buffer(conv.input),
        parameters.buffer(conv.weight),
        indent(&epilogue(parameters, &stage, vector, None), 3),
        element = type_name(conv.dtype),
    );
    Printed { body, headers: vec!["gpu/windows.h"] }
}

fn template(block: &WindowBlock) -> &'static str {
    match block {
        WindowBlock::Pixels(_) => "convolve_pixels",
        WindowBlock::Planes(_) => "convolve_planes",
    }
}

/// The type of a window.
fn window(windows: &Windows) -> String {
    let Windows { own, each, kernel: [deep, high, wide], stride, dilation, .. } = windows;
    let [_, down, across] = stride;
    let [_, far_down, far_across] = dilation;
    format!("Window<{own}, {each}, {deep}, {high}, {wide}, {down}, {across}, {far_down}, {far_across}>")
}

/// Arguments of the template that has channels last.
fn pixels(windows: &Windows, block: &PixelBlock, shape: &ConvShape, is_last: bool) -> String {
    let threads = WindowBlock::Pixels(*block).threads();
    let PixelBlock { lanes, side, outputs } = block;
    let again = windows.again(block, shape);
    format!("{lanes}, {side}, {outputs}, {again}, {threads}, {is_last}")
}

/// The same where channels are first.
fn planes(windows: &Windows, block: &PlaneBlock, shape: &ConvShape, is_last: bool) -> String {
    let threads = WindowBlock::Planes(*block).threads();
    let PlaneBlock { groups, rows, columns, own, channels } = block;
    let [_, _, wide] = &shape.output;
    let load = windows.load(&shape.input[2]);
    // Tiles begin at multiples of four columns.
    let shift = if load < 4 { 0 } else { (-shape.padding[2]).rem_euclid(4) };
    let is_whole = |lanes: &i64| !is_last && wide.modulo(&Expr::int(*lanes)).is(0) && columns % lanes == 0;
    let lanes = [4, 2].into_iter().find(is_whole).unwrap_or(1);
    format!("{groups}, {rows}, {columns}, {own}, {channels}, {shift}, {load}, {lanes}, {threads}")
}
