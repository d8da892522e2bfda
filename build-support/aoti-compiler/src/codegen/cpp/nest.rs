//! Loop nests as C++: which axis runs along the lanes, how work is split over threads, and the loops themselves.

use super::KernelText;
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::{Context, Earlier, lane_type, type_name};
use crate::dtype::DType;
use crate::graph::ReduceOp;
use crate::loops::{Accumulator, Axis, Effect, Nest, Program, Stage, Storage};
use crate::symbolic::{Expr, Symbol};
use std::fmt::Write;

/// Work, in element operations, that is worth a thread of its own.
const GRAIN: i64 = 16384;
/// Elements of a vector axis that are one unit of work, where that axis is all there is.
const CHUNK: i64 = 1024;

/// Which axis runs along the lanes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Vector {
    /// The last axis of each stage that has axes.
    Inner,
    /// The last axis of the nest.
    Outer,
    /// None: one lane.
    None,
}

pub(super) fn print(program: &Program, parameters: &Parameters, nest: &Nest, text: &mut KernelText) {
    let vector = choose_vector(nest);
    let printer = Printer { program, parameters, nest, vector };
    text.weight = nest.stages.iter().map(|stage| stage.terms.len() + 2).sum();
    let (rows, row_bytes) = printer.row_scratch();
    if let Some(bytes) = &row_bytes {
        text.scratch = Some(format!("threads * ({bytes})"));
    }
    text.body = printer.function(&rows, row_bytes.as_deref());
}

fn choose_vector(nest: &Nest) -> Vector {
    if nest.serial {
        return Vector::None;
    }
    let has_inner = nest.stages.iter().any(|stage| !stage.axes.is_empty());
    let Some(last) = nest.axes.last() else {
        return if has_inner { Vector::Inner } else { Vector::None };
    };
    if !has_inner {
        return Vector::Outer;
    }
    let inner_score: usize =
        nest.stages.iter().filter_map(|stage| Some(contiguous(stage, stage.axes.last()?.symbol))).sum();
    let outer_score: usize = nest.stages.iter().map(|stage| contiguous(stage, last.symbol)).sum();
    let tiny = |extent: &Expr, limit: i64| extent.as_int().is_some_and(|size| size < limit);
    let inner_tiny =
        nest.stages.iter().filter_map(|stage| stage.axes.last()).all(|axis| tiny(&axis.extent, 4));
    if outer_score > inner_score || (inner_tiny && !tiny(&last.extent, 4)) {
        Vector::Outer
    } else {
        Vector::Inner
    }
}

/// Accesses that are contiguous along an axis.
fn contiguous(stage: &Stage, axis: Symbol) -> usize {
    let along = |offset: &Expr| offset.affine_in(axis).is_some_and(|(step, _)| step.is(1));
    stage.accesses().filter(|access| along(&access.offset)).count()
}

struct Printer<'a> {
    program: &'a Program,
    parameters: &'a Parameters<'a>,
    nest: &'a Nest,
    vector: Vector,
}

impl Printer<'_> {
    /// Declarations of the rows of scratch, and their bytes for one worker.
    fn row_scratch(&self) -> (String, Option<String>) {
        let (mut text, mut offset) = (String::new(), Vec::new());
        for (id, name) in self.parameters.rows() {
            let buffer = &self.program.buffers[id];
            let Storage::Row { outer } = buffer.storage else { continue };
            let element = type_name(buffer.dtype);
            let at = if offset.is_empty() { "0".to_owned() } else { offset.join(" + ") };
            let _ = writeln!(text, "{element} *const {name} = ({element} *)(scratch + {at});");
            let bytes =
                &Expr::product(&buffer.shape[outer..]) * i64::try_from(buffer.dtype.size()).expect("small");
            offset.push(format!("align({})", scalar(&bytes)));
        }
        let bytes = (!offset.is_empty()).then(|| offset.join(" + "));
        (text, bytes)
    }

    fn function(&self, rows: &str, row_bytes: Option<&str>) -> String {
        let axes = &self.nest.axes;
        let vector_axis = (self.vector == Vector::Outer).then(|| axes.last()).flatten();
        let loops = &axes[..axes.len() - usize::from(vector_axis.is_some())];
        let (inner, work) = self.position(vector_axis);
        if self.nest.serial || (loops.is_empty() && vector_axis.is_none()) {
            let scratch = self.scratch_line(row_bytes, "0");
            return format!("{scratch}{rows}{}", plain_loops(loops, &inner));
        }
        if loops.is_empty() {
            return self.split_vector_axis(
                vector_axis.expect("some axis is split"),
                rows,
                row_bytes,
                &inner,
                &work,
            );
        }
        let units = Expr::product(loops.iter().map(|axis| &axis.extent));
        let mut text = format!(
            "parallel(run, {}, {}, [&](i64 begin, i64 end, i64 worker) {{\n",
            scalar(&units),
            grain(&work)
        );
        text.push_str(&indent(&self.scratch_line(row_bytes, "worker"), 1));
        text.push_str(&indent(rows, 1));
        let body = match vector_axis {
            None => inner,
            Some(axis) => over(axis, "0", &scalar(&axis.extent), false, &inner),
        };
        let names = unit_axes(loops);
        text.push_str(&indent(
            &format!(
                "for (i64 unit = begin; unit < end; ++unit) {{\n{}}}\n",
                indent(&format!("{names}{body}"), 1)
            ),
            1,
        ));
        text.push_str("});\n");
        text
    }

    fn scratch_line(&self, row_bytes: Option<&str>, worker: &str) -> String {
        match row_bytes {
            None if worker == "worker" => "(void)worker;\n".to_owned(),
            None => String::new(),
            Some(bytes) => format!("char *const scratch = run.scratch + {worker} * ({bytes});\n"),
        }
    }

    fn split_vector_axis(
        &self,
        axis: &Axis,
        rows: &str,
        row_bytes: Option<&str>,
        inner: &str,
        work: &Expr,
    ) -> String {
        let extent = scalar(&axis.extent);
        let body = over(axis, "begin * chunk", "min_i64(end * chunk, extent)", false, inner);
        let scratch = self.scratch_line(row_bytes, "worker");
        let grain = grain(&(work * CHUNK));
        format!(
            "constexpr i64 chunk = {CHUNK};\nconst i64 extent = {extent};\n\
             parallel(run, ceil_div(extent, chunk), {grain}, [&](i64 begin, i64 end, i64 worker) {{\n{}}});\n",
            indent(&format!("{scratch}{rows}{body}"), 1)
        )
    }

    /// All stages at one position of the outer loops, and the work there.
    fn position(&self, vector_axis: Option<&Axis>) -> (String, Expr) {
        let (mut text, mut work) = (String::new(), Expr::int(1));
        for (index, stage) in self.nest.stages.iter().enumerate() {
            for (number, accumulator) in self.nest.accumulators.iter().enumerate() {
                if accumulator.stage == index {
                    let _ = writeln!(text, "{} accumulator{number};", self.accumulator_type(accumulator));
                }
            }
            text.push_str(&self.stage(index, stage, vector_axis));
            let size = Expr::product(stage.axes.iter().map(|axis| &axis.extent));
            let cost = i64::try_from(stage.terms.len()).expect("few terms");
            work = &work + &(&size * cost);
        }
        // A unit is a whole row of lanes where the vector axis is not the one that is split.
        if let Some(axis) = vector_axis
            && self.nest.axes.len() > 1
        {
            work = &work * &axis.extent;
        }
        (text, work)
    }

    fn accumulator_type(&self, accumulator: &Accumulator) -> String {
        let width = if self.vector == Vector::None { "1" } else { "AOTI_LANES" };
        // Booleans are masks: their sum and maximum is "any", their product and minimum is "all".
        if accumulator.dtype == DType::Bool {
            return match accumulator.op {
                ReduceOp::Sum | ReduceOp::Max | ReduceOp::Any => format!("AnyAccumulator<{width}>"),
                ReduceOp::Prod | ReduceOp::Min | ReduceOp::All => format!("AllAccumulator<{width}>"),
                ReduceOp::Xor => format!("ParityAccumulator<{width}>"),
                ReduceOp::ArgMax => format!("ArgAccumulator<i32, {width}, true>"),
                ReduceOp::ArgMin => format!("ArgAccumulator<i32, {width}, false>"),
            };
        }
        let element = lane_type(accumulator.dtype);
        match accumulator.op {
            ReduceOp::Sum => format!("SumAccumulator<{element}, {width}>"),
            ReduceOp::Prod => format!("ProdAccumulator<{element}, {width}>"),
            ReduceOp::Max => format!("MaxAccumulator<{element}, {width}>"),
            ReduceOp::Min => format!("MinAccumulator<{element}, {width}>"),
            ReduceOp::ArgMax => format!("ArgAccumulator<{element}, {width}, true>"),
            ReduceOp::ArgMin => format!("ArgAccumulator<{element}, {width}, false>"),
            ReduceOp::Any => format!("AnyAccumulator<{width}>"),
            ReduceOp::All => format!("AllAccumulator<{width}>"),
            ReduceOp::Xor => format!("XorAccumulator<{element}, {width}>"),
        }
    }

    fn stage(&self, index: usize, stage: &Stage, vector_axis: Option<&Axis>) -> String {
        let inner_vector = if self.vector == Vector::Inner { stage.axes.last() } else { None };
        let vector = inner_vector.or(vector_axis);
        let context = Context {
            parameters: self.parameters,
            stage,
            prefix: format!("stage{index}_"),
            vector: vector.map(|axis| axis.symbol),
            earlier: if self.vector == Vector::Outer { Earlier::SameLanes } else { Earlier::OneLane },
        };
        let printed = context.print();
        let has_sums = stage.effects.iter().any(|effect| matches!(effect, Effect::Accumulate { .. }));
        if self.vector == Vector::None {
            // One lane: everything is uniform, and accumulators take one-lane vectors.
            let tags = "constexpr Full<1> lanes{};\nconstexpr Slot<0> slot{};\n(void)lanes, (void)slot;\n";
            let needs_tags = has_sums;
            let body = format!("{}{}{}", if needs_tags { tags } else { "" }, printed.uniform, printed.body);
            return plain_loops(&stage.axes, &body);
        }
        match inner_vector {
            Some(axis) => {
                let body = over(axis, "0", &scalar(&axis.extent), has_sums, &printed.body);
                plain_loops(&stage.axes[..stage.axes.len() - 1], &format!("{}{body}", printed.uniform))
            }
            None => plain_loops(&stage.axes, &format!("{}{}", printed.uniform, printed.body)),
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

/// A vector loop.
fn over(axis: &Axis, begin: &str, end: &str, slots: bool, body: &str) -> String {
    let function = if slots { "over_slots" } else { "over" };
    format!(
        "{function}<AOTI_LANES>({begin}, {end}, [&](auto lanes, i64 {}, auto slot) AOTI_LAMBDA {{\n  (void)lanes, (void)slot;\n{}}});\n",
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

/// The number of units that are worth a thread.
fn grain(work: &Expr) -> String {
    match work.as_int() {
        Some(work) => (GRAIN / work.max(1)).max(1).to_string(),
        None => format!("1 + {GRAIN} / max_i64({}, 1)", scalar(work)),
    }
}
