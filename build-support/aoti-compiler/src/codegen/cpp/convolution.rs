//! Convolutions as C++: calls of the chosen template, with the epilogue as a lambda.

use super::KernelText;
use super::contraction::{epilogue, unused};
use super::threads::{grain_of, parallel, worker_scratch};
use crate::codegen::c_family::contraction::{literal, merge_pixels, sum_type};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::loops::{Channels, ConvShape, Convolution, Program, Stage};
use crate::schedule::mapping::{Block, CpuMapping};
use crate::select::{Choice, Conv, Scratch, pixel_line};
use crate::symbolic::{Expr, Symbol};
use crate::target::templates::in_words;

/// A convolution while it is printed.
struct Printer<'a> {
    parameters: &'a Parameters<'a>,
    conv: &'a Convolution,
    shape: &'a ConvShape,
    scratch: &'a Scratch,
    mapping: &'a CpuMapping,
    /// The epilogue with one axis of pixels, and that axis.
    stage: Stage,
    pixel: Symbol,
}

pub(super) fn convolution(
    program: &Program,
    parameters: &Parameters,
    conv: &Convolution,
    (algorithm, choice): (Conv, &Choice),
    mapping: &CpuMapping,
    text: &mut KernelText,
) {
    let mut shape = ConvShape::new(program, conv);
    if algorithm == Conv::PixelWords {
        shape.in_channels = in_words(&shape.in_channels);
    }
    let (stage, pixel) = merge_pixels(conv);
    let printer =
        Printer { parameters, conv, shape: &shape, scratch: &choice.scratch, mapping, stage, pixel };
    text.body = format!("const ConvShape shape{};\n{}", literal(&shape), printer.loops(algorithm));
    text.weight = 16 + conv.epilogue.terms.len();
}

/// A size as a template's parameter, where 0 is any.
fn or_open(size: &Expr) -> i64 {
    size.as_int().unwrap_or(0)
}

impl Printer<'_> {
    fn loops(&self, algorithm: Conv) -> String {
        let (x, w) = (self.parameters.buffer(self.conv.input), self.parameters.buffer(self.conv.weight));
        let sum = sum_type(self.conv.dtype);
        let pixels = || self.over_pixels();
        match algorithm {
            Conv::Product => self.product(x, w),
            Conv::Pixels => self.channels_last(x, w),
            Conv::PixelWords => {
                let [x, w] = [x, w].map(|pointer| format!("(const i32 *){pointer}"));
                self.channels_last(&x, &w)
            }
            Conv::Winograd => self.winograd(x, w),
            Conv::DepthwisePixels => {
                let call = format!("conv_depthwise_pixels(shape, begin, end, {x}, {w}, epilogue);");
                self.over_channels() + &self.split("conv_depthwise_pixels_units(shape)", &call)
            }
            Conv::Depthwise => {
                let call = format!("conv_depthwise(shape, begin, end, {x}, {w}, epilogue);");
                pixels() + &self.split("conv_depthwise_units(shape)", &call)
            }
            Conv::Tiled => {
                let once = self.once();
                let call = format!("conv<{once}>(shape, begin, end, {x}, {w}, run.scratch, epilogue);");
                format!(
                    "parallel(run, conv_pad_units(shape), 8, [&](i64 begin, i64 end, i64) {{ conv_pad(shape, begin, end, {x}, run.scratch); }});\n{}{}",
                    pixels(),
                    self.split("conv_units(shape)", &call)
                )
            }
            // Windows are a way of GPUs; any code computes the same.
            Conv::Any | Conv::Windows => {
                let call = format!("conv_any<{sum}, AOTI_LANES>(shape, begin, end, {x}, {w}, epilogue);");
                pixels() + &self.split("conv_any_units(shape)", &call)
            }
            Conv::Transposed => {
                let products = format!("conv_transposed_products(shape, begin, end, {x}, {w}, run.scratch);");
                let gather = "conv_transposed_gather(shape, begin, end, run.scratch, epilogue);";
                let first = self.split("conv_transposed_product_units(shape)", &products);
                format!("{{\n{}}}\n", indent(&first, 1))
                    + &pixels()
                    + &self.split("conv_transposed_units(shape)", gather)
            }
            Conv::TransposedAny => {
                let call =
                    format!("conv_transposed_any<{sum}, AOTI_LANES>(shape, begin, end, {x}, {w}, epilogue);");
                pixels() + &self.split("conv_any_units(shape)", &call)
            }
        }
    }

    /// The call for some of so many units of work. They are counted once: some follow from the whole plan of a convolution.
    fn split(&self, units: &str, call: &str) -> String {
        let grain = grain_of(&self.mapping.grain, "units");
        format!("const i64 units = {units};\n{}", parallel("units", &grain, &format!("{call}\n")))
    }

    fn lambda(&self, vector: Symbol, positions: &[Symbol], zero: &str) -> String {
        let positions: Vec<String> =
            positions.iter().map(|symbol| format!("i64 {}", symbol_name(*symbol))).collect();
        format!(
            "const auto epilogue = [&]({}, auto lanes, auto sum) AOTI_LAMBDA {{\n{zero}{}}};\n",
            positions.join(", "),
            indent(&epilogue(self.parameters, &self.stage, vector), 1)
        )
    }

    fn positions(&self) -> [Symbol; 3] {
        [self.conv.image().symbol, self.conv.channel().symbol, self.pixel]
    }

    fn over_pixels(&self) -> String {
        let positions = self.positions();
        self.lambda(self.pixel, &positions, &unused(&positions))
    }

    fn over_channels(&self) -> String {
        let positions = self.positions();
        self.lambda(positions[1], &positions, &unused(&positions))
    }

    /// What the template passes over once, as its parameter.
    fn once(&self) -> &'static str {
        match self.mapping.block {
            Block::WeightsOnce => "ConvOnce::Weights",
            Block::PixelsOnce => "ConvOnce::Pixels",
            Block::Typical | Block::Rows(_) => "ConvOnce::Larger",
        }
    }

    /// What is known of it.
    fn known(&self) -> String {
        let channels = self.shape.out_channels.floor_div(&Expr::int(self.shape.groups.max(1)));
        let line = pixel_line(self.shape, self.shape.input_channels(self.conv));
        format!("PixelShape<{}, {}, {}>", or_open(&channels), or_open(&line), self.shape.groups > 1)
    }

    /// Where the template finds the channels of its input.
    fn order(&self) -> &'static str {
        match self.shape.input_channels(self.conv) {
            Channels::First => "ChannelOrder::First",
            Channels::Last => "ChannelOrder::Last",
        }
    }

    /// The padded copy of the input, in memory that all workers share.
    fn padded_copy(&self, x: &str) -> String {
        let (order, channels) = (self.order(), or_open(&self.shape.in_channels));
        format!(
            "parallel(run, conv_pixels_pad_units(shape, {order}), 8, [&](i64 begin, i64 end, i64) {{ conv_pixels_pad<{order}, {channels}>(shape, begin, end, {x}, run.scratch); }});\n"
        )
    }

    fn winograd(&self, x: &str, w: &str) -> String {
        let (order, shared, worker) = (self.order(), &self.scratch.shared, worker_scratch(self.scratch));
        let (copy, pointer, own) = if shared.is(0) {
            (String::new(), "nullptr", worker)
        } else {
            (self.padded_copy(x), "run.scratch", format!("{worker} + {}", scalar(shared)))
        };
        let (to, epilogue) = match self.conv.output_channels {
            Channels::First => ("ChannelOrder::First", self.over_pixels()),
            Channels::Last => ("ChannelOrder::Last", self.over_channels()),
        };
        let call =
            format!("conv_winograd<{to}>(shape, {order}, begin, end, {x}, {w}, {pointer}, {own}, epilogue);");
        copy + &epilogue + &self.split("conv_winograd_units(shape)", &call)
    }

    fn channels_last(&self, x: &str, w: &str) -> String {
        let (order, once, known) = (self.order(), self.once(), self.known());
        let call = format!(
            "conv_pixels<{once}, {known}>(shape, {order}, begin, end, {x}, {w}, run.scratch, epilogue);"
        );
        let copy = self.padded_copy(x) + &self.over_channels();
        copy + &self.split(&format!("conv_pixels_units(shape, {order})"), &call)
    }

    fn product(&self, x: &str, w: &str) -> String {
        let positions = self.positions();
        let [image, channel, pixel] = positions;
        let zero = format!("  constexpr i64 {} = 0;\n{}", symbol_name(pixel), unused(&positions));
        let over_channels = self.lambda(channel, &[image, channel], &zero);
        let k = scalar(&(&self.shape.in_channels * &self.shape.taps()));
        let call = format!("gemm_packed(0, m, begin, end, n, k, a, {w}, nullptr, epilogue);");
        format!(
            "const i64 m = shape.batch, n = shape.out_channels, k = {k};\nconst Matrix<f32> a{{{x}, k, 1}};\n{over_channels}{}",
            self.split("gemm_panels(n)", &call)
        )
    }
}
