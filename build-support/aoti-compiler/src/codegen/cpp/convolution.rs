//! Convolutions as C++: calls of the chosen algorithm, with the epilogue as a lambda.

use super::KernelText;
use super::contraction::{epilogue, unused};
use super::threads::{grain_of, parallel, worker_scratch};
use crate::codegen::c_family::contraction::{literal, merge_pixels, types};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::merging::{numbers, size};
use crate::kernels::conv::{Before, Calls, Operand, Results, Site, calls};
use crate::kernels::mapping::CpuMapping;
use crate::kernels::{Call, Scratch, Selection};
use crate::loops::{Convolution, Stage};
use crate::schedule::Schedule;
use crate::symbolic::{Expr, Symbol};

/// A convolution while it is printed.
struct Printer<'a> {
    parameters: &'a Parameters<'a>,
    conv: &'a Convolution,
    scratch: &'a Scratch,
    mapping: &'a CpuMapping,
    /// The epilogue with one axis of pixels, and that axis.
    stage: Stage,
    pixel: Symbol,
}

pub(super) fn convolution(
    schedule: &Schedule,
    parameters: &Parameters,
    conv: &Convolution,
    choice: &Selection,
    mapping: &CpuMapping,
    text: &mut KernelText,
) {
    let site = Site::new(&schedule.program, conv, &schedule.target);
    let calls = calls(&site, choice, mapping.block);
    let (stage, pixel) = merge_pixels(conv);
    let printer = Printer { parameters, conv, scratch: &choice.scratch, mapping, stage, pixel };
    text.body = format!(
        "const ConvShape shape{};\n{}",
        literal(&calls.shape, &|of| size(&scalar(of))),
        printer.print(&calls)
    );
    text.weight = 16 + conv.epilogue.terms.len();
}

impl Printer<'_> {
    fn print(&self, Calls { shape: _, before, results, units, call }: &Calls) -> String {
        let before = before.as_ref().map_or_else(String::new, |before| self.before(before));
        before + &self.results(results) + &self.split(units, call)
    }

    /// What threads do first.
    fn before(&self, Before { units, grain, call }: &Before) -> String {
        match grain {
            None => format!("{{\n{}}}\n", indent(&self.split(units, call), 1)),
            Some(grain) => format!(
                "parallel(run, {}, {grain}, [&](i64 begin, i64 end, i64) {{ {}; }});\n",
                self.call(units),
                self.call(call)
            ),
        }
    }

    /// The call for some of so many units of work. They are counted once: some follow from the whole plan of a convolution.
    fn split(&self, units: &Call<Operand>, call: &Call<Operand>) -> String {
        let grain = grain_of(&self.mapping.grain, "units");
        let call = format!("{};\n", self.call(call));
        format!("const i64 units = {};\n{}", self.call(units), parallel("units", &grain, &call))
    }

    fn call(&self, call: &Call<Operand>) -> String {
        call.print(types(self.conv.dtype), |operand| self.operand(operand))
    }

    fn operand(&self, operand: &Operand) -> String {
        let (input, weights) = (self.conv.input, self.conv.weight);
        match operand {
            Operand::Name(name) => (*name).to_owned(),
            Operand::Input => self.parameters.buffer(input).to_owned(),
            Operand::Weights => self.parameters.buffer(weights).to_owned(),
            Operand::InputAs(element) => format!("(const {element} *){}", self.parameters.buffer(input)),
            Operand::WeightsAs(element) => format!("(const {element} *){}", self.parameters.buffer(weights)),
            Operand::Worker(shared) if shared.is(0) => worker_scratch(self.scratch),
            Operand::Worker(shared) => {
                format!("{} + {}", worker_scratch(self.scratch), size(&scalar(shared)))
            }
        }
    }

    /// The epilogue as a lambda over what the algorithm hands it.
    fn results(&self, results: &Results) -> String {
        let positions = [self.conv.image().symbol, self.conv.channel().symbol, self.pixel];
        let [image, channel, pixel] = positions;
        match results {
            Results::Pixels => self.lambda(pixel, &positions, &unused(&positions)),
            Results::Channels => self.lambda(channel, &positions, &unused(&positions)),
            Results::Rows(depth) => self.rows(depth, [image, channel, pixel]),
        }
    }

    /// Each image is a row of a product.
    fn rows(&self, depth: &Expr, [image, channel, pixel]: [Symbol; 3]) -> String {
        let (input, k) = (self.parameters.buffer(self.conv.input), size(&scalar(depth)));
        let unused = unused(&[image, channel, pixel]);
        let zero = format!("  constexpr i64 {} = 0;\n{unused}", symbol_name(pixel));
        format!(
            "const i64 m = shape.batch, n = shape.out_channels, k = {k};\nconst Matrix<f32> a{{{input}, k, 1}};\n{}",
            self.lambda(channel, &[image, channel], &zero)
        )
    }

    fn lambda(&self, vector: Symbol, positions: &[Symbol], zero: &str) -> String {
        let positions: Vec<String> =
            positions.iter().map(|symbol| format!("i64 {}", symbol_name(*symbol))).collect();
        format!(
            "const auto epilogue = [=, &run]({}, auto lanes, auto sum) AOTI_LAMBDA {{\n{zero}{}}};\n",
            positions.join(", "),
            indent(&numbers(&epilogue(self.parameters, &self.stage, vector)), 1)
        )
    }
}
