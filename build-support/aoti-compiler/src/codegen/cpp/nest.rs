//! Loop nests as C++, mapped as the schedule says.

use super::KernelText;
use super::threads::{is_never_shared, loop_grain, parallel};
use super::turned::Turned;
use super::wide_lanes::{LANES, LEAST_LANES, lanes_of};
use crate::codegen::c_family::expr::{scalar, symbol_name, worker_bytes};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::lane_access::MOST_LANES;
use crate::codegen::c_family::operations::accumulator_type;
use crate::codegen::c_family::terms::{Context, Earlier, StageText, read_later, type_name};
use crate::codegen::headers::Header;
use crate::kernels::mapping::{CpuMapping, Lanes, Split};
use crate::kernels::{Scratch, row_bytes};
use crate::loops::{Axis, Effect, Nest, Program, Stage};
use crate::schedule::Schedule;
use crate::symbolic::Expr;
use std::fmt::Write;

pub(super) fn print(
    schedule: &Schedule,
    parameters: &Parameters,
    nest: &Nest,
    (mapping, scratch): (&CpuMapping, &Scratch),
    text: &mut KernelText,
) {
    let lanes = lanes_of(nest, mapping.lanes, parameters);
    let mut printer = Printer { schedule, parameters, nest, mapping, turned: Turned::default(), lanes };
    if let (Split::Axes(count), false) = (printer.split(), nest.serial) {
        printer.turned = Turned::of(nest, mapping.lanes, &nest.axes[..count], parameters);
    }
    text.weight = nest.stages.iter().map(|stage| stage.terms.len() + 2).sum();
    text.body = printer.function(scratch);
    if !printer.turned.blocks.is_empty() {
        text.headers.insert(Header::named("turned.h"));
    }
}

struct Printer<'a> {
    schedule: &'a Schedule,
    parameters: &'a Parameters<'a>,
    nest: &'a Nest,
    mapping: &'a CpuMapping,
    /// Rows that units of work read or write in blocks.
    turned: Turned,
    /// How many lanes loops have.
    lanes: &'static str,
}

impl Printer<'_> {
    fn function(&self, scratch: &Scratch) -> String {
        let axes = &self.nest.axes;
        let vector_axis = if self.mapping.lanes == Lanes::Outer { axes.last() } else { None };
        let rows = kept_rows(&self.schedule.program, self.parameters);
        if self.nest.serial {
            return self.in_order(vector_axis);
        }
        let inner = self.position(vector_axis);
        match (self.split(), vector_axis) {
            (Split::Chunks(chunk), Some(axis)) => self.chunks(axis, chunk, scratch, &rows, &inner),
            (Split::Axes(count), _) => self.units(&axes[..count], vector_axis, scratch, &rows, &inner),
            (Split::Serial | Split::Chunks(_) | Split::RowsFrom(_) | Split::Template, _) => {
                let here = if scratch.is_empty() { "" } else { "char *const scratch = run.scratch;\n" };
                let (loops, body) = match vector_axis {
                    None => (&axes[..], inner),
                    Some(axis) => (&axes[..axes.len() - 1], over(axis, self.lanes, Part::All, false, &inner)),
                };
                format!("{here}{rows}{}", plain_loops(loops, &body))
            }
        }
    }

    /// The mapping's units, but where no run ever shares them.
    fn split(&self) -> Split {
        let CpuMapping { split, ref grain, .. } = *self.mapping;
        let units = match split {
            Split::Axes(count) => {
                Expr::product(self.nest.axes[..count].iter().map(|axis| &axis.extent)).as_int()
            }
            Split::Chunks(chunk) => {
                let extent = self.nest.axes.last().and_then(|axis| axis.extent.as_int());
                extent.map(|extent| (extent + chunk - 1) / chunk.max(1))
            }
            Split::Serial | Split::RowsFrom(_) | Split::Template => None,
        };
        if units.is_some_and(|units| is_never_shared(units, grain)) { Split::Serial } else { split }
    }

    /// Positions that run in order, but for those of the axes that the mapping shares out and that are in lanes.
    fn in_order(&self, vector_axis: Option<&Axis>) -> String {
        let axes = &self.nest.axes[..self.nest.axes.len() - usize::from(vector_axis.is_some())];
        let Some(vector) = vector_axis else {
            return self.in_order_over(axes, &self.position(None));
        };
        let extent = scalar(&vector.extent);
        let Printer { parameters, nest, ref turned, .. } = *self;
        let stages = Stages { parameters, nest, lanes: Lanes::Outer, width: self.lanes, turned };
        let printed = stages.printed(0, &nest.stages[0], Some(vector));
        let row = |part: Part| {
            let lanes = over(vector, self.lanes, part, false, &(printed.body.clone() + &printed.effects));
            format!("{}{}{lanes}", printed.uniform, printed.stores)
        };
        let Split::Chunks(chunk) = self.split() else {
            return self.in_order_over(axes, &row(Part::All));
        };
        let rows = plain_loops(axes, &row(Part::Chunks(chunk)));
        format!(
            "constexpr i64 chunk = {chunk};\nconst i64 extent = {extent};\n{}",
            parallel("ceil_div(extent, chunk)", &loop_grain(&self.mapping.grain), &rows)
        )
    }

    /// Loops over all axes around a body; the leading ones are shared out where the mapping says so.
    fn in_order_over(&self, axes: &[Axis], body: &str) -> String {
        let Split::Axes(count) = self.split() else { return plain_loops(axes, body) };
        let rest = plain_loops(&axes[count..], body);
        self.units(&axes[..count], None, &Scratch::default(), "", &rest)
    }

    /// Positions of some axes as units of work.
    fn units(
        &self,
        loops: &[Axis],
        vector_axis: Option<&Axis>,
        scratch: &Scratch,
        rows: &str,
        inner: &str,
    ) -> String {
        let units = Expr::product(loops.iter().map(|axis| &axis.extent));
        let body = match vector_axis {
            None => inner.to_owned(),
            Some(axis) => over(axis, self.lanes, Part::All, false, inner),
        };
        let own = format!("{}{}{body}", unit_axes(loops), self.turned.rows);
        let blocks = &self.turned.blocks;
        let body = format!(
            "{}{rows}{blocks}for (i64 unit = begin; unit < end; ++unit) {{\n{}}}\n",
            own_scratch(scratch),
            indent(&own, 1)
        );
        parallel(&scalar(&units), &loop_grain(&self.mapping.grain), &body)
    }

    /// Pieces of the only axis as units of work.
    fn chunks(&self, axis: &Axis, chunk: i64, scratch: &Scratch, rows: &str, inner: &str) -> String {
        let extent = scalar(&axis.extent);
        let body = over(axis, self.lanes, Part::Chunks(chunk), false, inner);
        let body = format!("{}{rows}{body}", own_scratch(scratch));
        format!(
            "constexpr i64 chunk = {chunk};\nconst i64 extent = {extent};\n{}",
            parallel("ceil_div(extent, chunk)", &loop_grain(&self.mapping.grain), &body)
        )
    }

    /// All stages at one position of the outer loops.
    fn position(&self, vector_axis: Option<&Axis>) -> String {
        let Printer { parameters, nest, mapping, ref turned, .. } = *self;
        Stages { parameters, nest, lanes: mapping.lanes, width: self.lanes, turned }.position(vector_axis)
    }
}

/// Declarations of the rows that a worker keeps, one behind the other in its scratch.
pub(super) fn kept_rows(program: &Program, parameters: &Parameters) -> String {
    let (mut text, mut offset) = (String::new(), Vec::new());
    for (id, name) in parameters.rows() {
        let element = type_name(program.buffers[id].dtype);
        let at = if offset.is_empty() { "0".to_owned() } else { offset.join(" + ") };
        let _ = writeln!(text, "{element} *const {name} = ({element} *)(scratch + {at});");
        offset.push(format!("align({})", scalar(&row_bytes(program, id))));
    }
    text
}

/// The stages of a row epilogue at one row.
pub(super) fn row_epilogue(parameters: &Parameters, rows: &Nest) -> String {
    Stages { parameters, nest: rows, lanes: Lanes::Inner, width: LANES, turned: &Turned::default() }
        .position(None)
}

/// Stages while they are printed.
struct Stages<'a> {
    parameters: &'a Parameters<'a>,
    nest: &'a Nest,
    lanes: Lanes,
    /// How many these are.
    width: &'static str,
    turned: &'a Turned,
}

impl Stages<'_> {
    fn position(&self, vector_axis: Option<&Axis>) -> String {
        let width = if self.lanes == Lanes::One { "1" } else { self.width };
        let mut text = String::new();
        for (index, stage) in self.nest.stages.iter().enumerate() {
            for (number, accumulator) in self.nest.accumulators.iter().enumerate() {
                if accumulator.stage == index {
                    let _ = writeln!(text, "{} accumulator{number};", accumulator_type(accumulator, width));
                }
            }
            text.push_str(&self.stage(index, stage, vector_axis));
        }
        text
    }

    /// The text of a stage whose lanes, if any, are along an axis.
    fn printed(&self, index: usize, stage: &Stage, vector: Option<&Axis>) -> StageText {
        let context = Context {
            whole: None,
            has_own_rows: false,
            given: None,
            parameters: self.parameters,
            stage,
            prefix: format!("stage{index}_"),
            vector: vector.map(|axis| axis.symbol),
            earlier: match self.lanes {
                Lanes::Outer => Earlier::SameLanes(&self.nest.stages),
                Lanes::One | Lanes::Inner => Earlier::OneLane,
            },
            width: self.width,
            first_lane: LEAST_LANES,
            positions: Some(&self.nest.axes),
            read_later: read_later(&self.nest.stages, index),
            turned: self.turned.stage(index),
        };
        context.print()
    }

    fn stage(&self, index: usize, stage: &Stage, vector_axis: Option<&Axis>) -> String {
        let inner_vector = if self.lanes == Lanes::Inner { stage.axes.last() } else { None };
        let printed = self.printed(index, stage, inner_vector.or(vector_axis));
        let (uniform, body) = (printed.uniform + &printed.stores, printed.body + &printed.effects);
        let has_sums = stage.effects.iter().any(|effect| matches!(effect, Effect::Accumulate { .. }));
        if self.lanes == Lanes::One {
            // One lane: everything is uniform, and accumulators take one-lane vectors.
            let tags = "constexpr Full<1> lanes{};\nconstexpr Slot<0> slot{};\n(void)lanes, (void)slot;\n";
            let needs_tags = has_sums;
            let body = format!("{}{}{}", if needs_tags { tags } else { "" }, uniform, body);
            return plain_loops(&stage.axes, &body);
        }
        match inner_vector {
            Some(axis) => {
                let body = over(axis, self.width, Part::All, has_sums, &body);
                plain_loops(&stage.axes[..stage.axes.len() - 1], &format!("{}{body}", uniform))
            }
            None => plain_loops(&stage.axes, &format!("{}{}", uniform, body)),
        }
    }
}

/// Loops over axes around a body. Without axes the body's variables stay visible to what follows.
fn plain_loops(axes: &[Axis], body: &str) -> String {
    axes.iter().rev().fold(body.to_owned(), |body, axis| {
        let name = symbol_name(axis.symbol);
        format!(
            "for (i64 {name} = 0; {name} < {}; ++{name}) {{\n{}}}\n",
            scalar(&axis.extent),
            indent(&body, 1)
        )
    })
}

/// What a vector loop covers.
#[derive(Clone, Copy)]
enum Part {
    /// The whole axis.
    All,
    /// The chunks, of so many elements, from `begin` to `end`.
    Chunks(i64),
}

/// A vector loop. Where it is known how many steps it has, and with which lanes they begin, it says so.
fn over(axis: &Axis, lanes: &str, part: Part, slots: bool, body: &str) -> String {
    let function = if slots { "over_slots" } else { "over" };
    let extent = scalar(&axis.extent);
    let most_lanes = if lanes == LANES { MOST_LANES } else { 4 * MOST_LANES };
    let (range, begins_whole) = match part {
        Part::All => (format!("0, {extent}, "), true),
        Part::Chunks(chunk) => {
            ("begin * chunk, min_i64(end * chunk, extent), ".to_owned(), chunk % most_lanes == 0)
        }
    };
    let (count, range) = match axis.extent.as_int() {
        Some(count) if begins_whole => (format!(", {count}"), if slots { String::new() } else { range }),
        _ => (String::new(), range),
    };
    format!(
        "{function}<{lanes}{count}>({range}[&](auto lanes, i64 {}, auto slot) AOTI_LAMBDA {{\n  (void)lanes, (void)slot;\n{}}});\n",
        symbol_name(axis.symbol),
        indent(body, 1)
    )
}

/// The outer axes' positions from the number of the unit.
fn unit_axes(axes: &[Axis]) -> String {
    let mut text = String::new();
    for (index, axis) in axes.iter().enumerate() {
        let stride = Expr::product(axes[index + 1..].iter().map(|axis| &axis.extent));
        let mut value = "unit".to_owned();
        if !stride.is(1) {
            value = format!("{value} / ({})", scalar(&stride));
        }
        if index > 0 {
            value = format!("{value} % ({})", scalar(&axis.extent));
        }
        let _ = writeln!(text, "const i64 {name} = {value};\n(void){name};", name = symbol_name(axis.symbol));
    }
    text
}

/// The name of the scratch of the worker that runs here, if there is any.
fn own_scratch(scratch: &Scratch) -> String {
    if scratch.is_empty() {
        return String::new();
    }
    format!("char *const scratch = run.scratch + worker * ({});\n", worker_bytes(scratch))
}
