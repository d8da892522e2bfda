//! Terms and effects of a stage as C++ on lanes.
//!
//! Lanes run along one axis, the vector axis. A term that does not depend on it is *uniform*: it is computed once,
//! in one lane, before the vector loop, and spread.

use super::expr::{LaneInteger, lanes, scalar};
use super::function::Parameters;
use super::lane_access::{
    ImageLanes, Interleaving, guard_window, image_lanes, interleaved, parts, scalar_test, scalar_tests,
    short_step, unbroken, wrapped,
};
use super::operations::{binary, cast, unary};
use super::quantised::Quantised;
use super::whole::Whole;
use crate::dtype::DType;
use crate::graph::Scalar;
use crate::kernels::index_width::is_narrow;
use crate::loops::{Access, Axis, Effect, Guard, Stage, Term, TermId, TypedTerm, ranges_over};
use crate::symbolic::{Expr, NoRanges, Symbol};
use std::collections::BTreeMap;
use std::fmt::Write;

/// How values of earlier stages look from this one.
#[derive(Clone, Copy)]
pub(in crate::codegen) enum Earlier<'a> {
    /// One lane, in variables.
    OneLane,
    /// The same lanes as here, in these stages of the nest; what does not differ between them is in one.
    SameLanes(&'a [Stage]),
}

/// Where a stage is printed.
pub(in crate::codegen) struct Context<'a> {
    pub(in crate::codegen) parameters: &'a Parameters<'a>,
    pub(in crate::codegen) stage: &'a Stage,
    /// Prefix of the stage's variables.
    pub(in crate::codegen) prefix: String,
    /// The axis along the lanes; `None` where there is one lane.
    pub(in crate::codegen) vector: Option<Symbol>,
    pub(in crate::codegen) earlier: Earlier<'a>,
    /// The number of lanes in the target's text.
    pub(in crate::codegen) width: &'static str,
    /// What the position of lane 0 along the axis is known to be a multiple of.
    pub(in crate::codegen) first_lane: i64,
    /// Where lane 0 lies at multiples of the number of lanes, and memory begins where any access may: then it is said in the text
    /// which accesses are whole, because compilers do not find out.
    pub(in crate::codegen) whole: Option<Whole>,
    /// Whether rows inside the kernel are kept by the thread that writes them, in one part for each slot.
    pub(in crate::codegen) has_own_rows: bool,
    /// Values of terms that are at hand: how the text reads them.
    pub(in crate::codegen) given: Option<&'a BTreeMap<TermId, String>>,
    /// The axes of the kernel, where addresses of lanes are computed in as few bits as they fit.
    pub(in crate::codegen) positions: Option<&'a [Axis]>,
    /// Terms that later stages read.
    pub(in crate::codegen) read_later: Vec<TermId>,
    /// Accesses that find their elements side by side in a row with a name.
    pub(in crate::codegen) turned: &'a [(Access, String)],
}

/// Terms of a stage that later ones read.
pub(in crate::codegen) fn read_later(stages: &[Stage], number: usize) -> Vec<TermId> {
    let terms = stages.iter().skip(number + 1).flat_map(|stage| &stage.terms);
    let read = |typed: &TypedTerm| {
        let Term::Earlier { stage, term } = typed.term else { return None };
        (stage == number).then_some(term)
    };
    terms.filter_map(read).collect()
}

/// Text for before the vector loop, and for its body.
#[derive(Default)]
pub(in crate::codegen) struct StageText {
    /// Terms that do not differ between lanes; all terms where there is one lane.
    pub(in crate::codegen) uniform: String,
    /// Terms that differ between lanes.
    pub(in crate::codegen) body: String,
    /// Stores where there is one lane.
    pub(in crate::codegen) stores: String,
    /// All other effects.
    pub(in crate::codegen) effects: String,
}

/// The C++ name of an element type.
pub(in crate::codegen) fn type_name(dtype: DType) -> &'static str {
    dtype.name()
}

/// The type that a term of this element type is computed in: narrow types in `f32`.
pub(in crate::codegen) fn lane_type(dtype: DType) -> &'static str {
    type_name(dtype.compute())
}

/// A C++ literal.
pub(in crate::codegen) fn literal(value: Scalar, dtype: DType) -> String {
    match dtype {
        DType::Bool => value.to_bool().to_string(),
        DType::U8 | DType::I8 | DType::I16 | DType::I32 | DType::U16 => {
            format!("{}({})", type_name(dtype), value.to_i64())
        }
        DType::U32 | DType::U64 => format!("{}({}u)", type_name(dtype), value.to_u64()),
        DType::I64 => match value.to_i64() {
            i64::MIN => "i64(-9223372036854775807 - 1)".to_owned(),
            value => format!("i64({value})"),
        },
        DType::F16 | DType::Bf16 | DType::F8(_) | DType::F32 => {
            float_literal(f64::from(value.to_f64() as f32), "f")
        }
        DType::F64 => float_literal(value.to_f64(), ""),
    }
}

fn float_literal(value: f64, suffix: &str) -> String {
    if value.is_nan() {
        format!("__builtin_nan{suffix}(\"\")")
    } else if value.is_infinite() {
        format!("{}__builtin_inf{suffix}()", if value < 0.0 { "-" } else { "" })
    } else if suffix == "f" {
        format!("{:?}f", value as f32)
    } else {
        format!("{value:?}")
    }
}

impl Context<'_> {
    /// Prints all terms and effects.
    pub(in crate::codegen) fn print(&self) -> StageText {
        let varying = self.varying();
        let mut text = StageText::default();
        let mut spread = vec![false; self.stage.terms.len()];
        let needed = self.needed();
        for id in (0..self.stage.terms.len()).filter(|id| needed[*id]) {
            if self.vector.is_some() && varying[id] {
                for operand in self.operands(id) {
                    self.spread(operand, &varying, &mut spread, &mut text);
                }
                let value = self.term(id, &varying, true);
                let _ = writeln!(text.body, "const auto {} = {value};", self.name(id));
            } else {
                let value = self.term(id, &varying, false);
                let _ = writeln!(text.uniform, "const auto {} = {value};", self.name(id));
            }
        }
        let terms = std::mem::take(&mut text.body);
        for effect in &self.stage.effects {
            for operand in self.effect_operands(effect) {
                self.spread(operand, &varying, &mut spread, &mut text);
            }
            self.effect(effect, &varying, &mut text);
        }
        text.effects = std::mem::replace(&mut text.body, terms);
        text
    }

    fn name(&self, id: TermId) -> String {
        format!("{}t{id}", self.prefix)
    }

    /// The variable to use for a term inside the vector loop.
    fn operand(&self, id: TermId, varying: &[bool], in_lanes: bool) -> String {
        if in_lanes && self.vector.is_some() && !varying[id] {
            format!("{}v{id}", self.prefix)
        } else {
            self.name(id)
        }
    }

    fn spread(&self, id: TermId, varying: &[bool], done: &mut [bool], text: &mut StageText) {
        if self.vector.is_none() || varying[id] || done[id] {
            return;
        }
        done[id] = true;
        let _ = writeln!(text.body, "const auto {}v{id} = spread(lanes, {});", self.prefix, self.name(id));
    }

    /// Which terms differ between lanes.
    fn varying(&self) -> Vec<bool> {
        match self.vector {
            Some(vector) => self.varying_in(self.stage, vector),
            None => vec![false; self.stage.terms.len()],
        }
    }

    fn varying_in(&self, stage: &Stage, vector: Symbol) -> Vec<bool> {
        let mut varying: Vec<bool> = Vec::with_capacity(stage.terms.len());
        for typed in &stage.terms {
            let own = match &typed.term {
                Term::Literal(_) => false,
                Term::Index(expr) => expr.mentions(vector),
                Term::Load { access, guards, .. } => {
                    access.offset.mentions(vector)
                        || guards.iter().any(|guard| guard.coordinate.mentions(vector))
                }
                Term::Inside(guards) => guards.iter().any(|guard| guard.coordinate.mentions(vector)),
                Term::Accumulated(_) => matches!(self.earlier, Earlier::SameLanes(_)),
                Term::Earlier { stage, term } => match self.earlier {
                    Earlier::OneLane => false,
                    Earlier::SameLanes(stages) => self.varying_in(&stages[*stage], vector)[*term],
                },
                Term::Sum => true,
                Term::Unary(..)
                | Term::Binary(..)
                | Term::Select(..)
                | Term::Cast(_)
                | Term::CheckIndex { .. } => false,
            };
            varying.push(own || typed.term.operands().iter().any(|operand| varying[*operand]));
        }
        varying
    }

    /// The value of a term without operands in one lane.
    pub(in crate::codegen) fn alone(&self, id: TermId) -> String {
        self.term(id, &[], false)
    }

    fn term(&self, id: TermId, varying: &[bool], in_lanes: bool) -> String {
        if let Some(text) = self.given.and_then(|given| given.get(&id)) {
            return text.clone();
        }
        let typed = &self.stage.terms[id];
        let tag = if in_lanes { "lanes" } else { "Full<1>{}" };
        let of = |operand: &TermId| self.operand(*operand, varying, in_lanes);
        let dtype_of = |operand: &TermId| self.stage.terms[*operand].dtype;
        match &typed.term {
            Term::Literal(value) => format!("broadcast({tag}, {})", literal(*value, typed.dtype)),
            Term::Index(expr) => match self.vector.filter(|_| in_lanes) {
                Some(vector) => match self.integer_of(&[expr]) {
                    LaneInteger::I32 if expr.affine_in(vector).is_none() => {
                        format!("convert<i64>({})", lanes(expr, vector, LaneInteger::I32))
                    }
                    LaneInteger::I32 | LaneInteger::I64 => lanes(expr, vector, LaneInteger::I64),
                },
                None => format!("broadcast({tag}, i64({}))", scalar(expr)),
            },
            Term::Load { access, guards, fill } => {
                let fill = literal(*fill, typed.dtype);
                self.load(access, guards, &fill, varying, in_lanes)
            }
            Term::Unary(op, a) => unary(*op, &of(a), dtype_of(a)),
            Term::Binary(op, a, b) => binary(*op, &of(a), &of(b), dtype_of(a)),
            Term::Select(c, a, b) => format!("select({}, {}, {})", of(c), of(a), of(b)),
            Term::Cast(a) => match Quantised::of(self.stage, id) {
                Some(own) => {
                    let (x, zero) = (of(&own.x), literal(Scalar::Float(own.zero), DType::F32));
                    format!("quantised<{}>({x}, {zero})", type_name(typed.dtype))
                }
                None => cast(&of(a), dtype_of(a), typed.dtype),
            },
            Term::Inside(guards) => self.inside(guards, in_lanes),
            Term::CheckIndex { index, size, wraps, site } => {
                let function = if *wraps { "wrap_index" } else { "check_index" };
                format!("{function}({tag}, run, {}, {}, {site})", of(index), scalar(size))
            }
            Term::Accumulated(accumulator) => match self.earlier {
                Earlier::OneLane => format!("accumulator{accumulator}.result()"),
                Earlier::SameLanes(_) => format!("accumulator{accumulator}.value()"),
            },
            Term::Earlier { stage, term } => format!("stage{stage}_t{term}"),
            Term::Sum if typed.dtype.is_float() => "sum".to_owned(),
            Term::Sum => format!("cast<{}>(sum)", type_name(typed.dtype)),
        }
    }

    /// Whether all guards hold, as a mask.
    fn inside(&self, guards: &[Guard], in_lanes: bool) -> String {
        let vector = self.vector.filter(|_| in_lanes);
        let tests: Vec<String> = guards
            .iter()
            .map(|guard| match vector {
                Some(vector) if guard.coordinate.mentions(vector) => {
                    let integer = self.integer_of(&[&guard.coordinate, &guard.size]);
                    let coordinate = lanes(&guard.coordinate, vector, integer);
                    if self.is_always_less(guard) {
                        format!("({coordinate} >= {}(0))", integer.name())
                    } else {
                        format!("inside({coordinate}, {})", scalar(&guard.size))
                    }
                }
                Some(_) => format!("broadcast(lanes, {})", scalar_test(guard)),
                None => format!("broadcast(Full<1>{{}}, {})", scalar_test(guard)),
            })
            .collect();
        tests.join(" & ")
    }

    fn load(
        &self,
        access: &Access,
        guards: &[Guard],
        fill: &str,
        varying: &[bool],
        in_lanes: bool,
    ) -> String {
        let pointer = self.parameters.buffer(access.buffer);
        let Some(vector) = self.vector.filter(|_| in_lanes) else {
            let element = self.element(pointer, access);
            return if guards.is_empty() {
                format!("load(Full<1>{{}}, {element})")
            } else {
                format!("load_between(Full<1>{{}}, {element}, 0, 1, {}, {fill})", scalar_tests(guards))
            };
        };
        if let Some(row) = self.turned_row(access, vector) {
            return format!("load(lanes, {row})");
        }
        let steady = access.indirect.iter().all(|(term, _)| !varying[*term]);
        if let Some((step, _)) = access.offset.affine_in(vector).filter(|_| steady) {
            let element = self.element(pointer, access);
            if guards.is_empty() {
                return if step.is(1) {
                    format!("load(lanes, {})", self.whole(access, vector, element))
                } else if step.is(0) {
                    format!("uniform(lanes, {element})")
                } else if let Some(step) = short_step(&step) {
                    format!("load_every<{step}>(lanes, {element})")
                } else {
                    format!("load_strided(lanes, {element}, {})", scalar(&step))
                };
            }
            if let Some(step) = short_step(&step)
                && let Some(window) = guard_window(guards, vector, self.width)
            {
                let step = if step == 1 { String::new() } else { format!("<{step}>") };
                return format!("load_between{step}(lanes, {element}, {window}, {fill})");
            }
        }
        let (base, index) = self.lane_address(access, varying, vector);
        if guards.is_empty() {
            if let Some(wrap) = wrapped(&access.offset, vector).filter(|_| steady) {
                let element = self.element(pointer, access);
                return format!("load_wrapped(lanes, {element}, {}, {})", wrap.left, wrap.jump);
            }
            if let Some(own) = interleaved(&access.offset, vector).filter(|_| steady) {
                let (element, Interleaving { channels, phase, plane }) = (self.element(pointer, access), own);
                return format!("load_interleaved<{channels}>(lanes, {element}, {phase}, {plane})");
            }
            let gather = format!("gather(lanes, {base}, {index})");
            match unbroken(&access.offset, vector, self.width).filter(|_| steady) {
                Some(test) => format!("({test} ? load(lanes, {}) : {gather})", self.element(pointer, access)),
                None => gather,
            }
        } else if let Some(own) = self.image_lanes(access, guards, vector).filter(|_| steady) {
            let (element, ImageLanes { channels, planes, apart, window }) =
                (self.element(pointer, access), own);
            format!("load_image<{channels}, {planes}>(lanes, {element}, {apart}, {window}, {fill})")
        } else {
            format!("gather_where(lanes, {base}, {index}, {}, {fill})", self.inside(guards, true))
        }
    }

    fn image_lanes(&self, access: &Access, guards: &[Guard], vector: Symbol) -> Option<ImageLanes> {
        image_lanes(&access.offset, guards, vector, (self.first_lane, self.width))
    }

    fn is_own_row(&self, access: &Access) -> bool {
        self.has_own_rows && self.parameters.is_local(access.buffer)
    }

    /// The address of lane 0's element.
    pub(super) fn element(&self, pointer: &str, access: &Access) -> String {
        if self.is_own_row(access) {
            return format!("{pointer}.at(slot)");
        }
        let mut parts = Vec::new();
        if !access.offset.is(0) {
            parts.push(scalar(&access.offset));
        }
        for (term, stride) in &access.indirect {
            let index = format!("lane({}, 0)", self.name(*term));
            parts.push(if stride.is(1) { index } else { format!("{index} * ({})", scalar(stride)) });
        }
        match parts.as_slice() {
            [] => pointer.to_owned(),
            [one] if one.bytes().all(|byte| byte.is_ascii_alphanumeric()) => format!("{pointer} + {one}"),
            _ => format!("{pointer} + ({})", parts.join(" + ")),
        }
    }

    /// An address whose lanes lie side by side, marked where it is a multiple of their bytes.
    pub(super) fn whole(&self, access: &Access, vector: Symbol, element: String) -> String {
        // Compilers leave in memory what anything is said about its address.
        let is_plain = access.indirect.is_empty() && !self.is_own_row(access);
        let Some(whole) = self.whole.filter(|_| is_plain) else { return element };
        let lanes = whole.lanes();
        let first = |symbol| (symbol == vector).then(|| &Expr::sym(vector) * lanes);
        let offset = access.offset.substitute(&first, &NoRanges);
        if !offset.modulo(&Expr::int(lanes)).is(0) {
            return element;
        }
        whole.marked(&element, self.parameters.dtype(access.buffer).size())
    }

    /// An address, and how many elements all lanes are from there.
    pub(super) fn lane_address(&self, access: &Access, varying: &[bool], vector: Symbol) -> (String, String) {
        let pointer = self.parameters.buffer(access.buffer);
        let mut own = access.clone();
        let base = if self.positions.is_some() {
            // What all lanes share is no part of their arithmetic.
            let mut shared = access.clone();
            (own.offset, shared.offset) = parts(&access.offset, vector);
            own.indirect.retain(|(term, _)| varying[*term]);
            shared.indirect.retain(|(term, _)| !varying[*term]);
            self.element(pointer, &shared)
        } else {
            pointer.to_owned()
        };
        if own.indirect.is_empty() {
            return (base, lanes(&own.offset, vector, self.integer_of(&[&own.offset])));
        }
        let offset = lanes(&own.offset, vector, LaneInteger::I64);
        let mut parts = if own.offset.is(0) && self.positions.is_some() { vec![] } else { vec![offset] };
        for (term, stride) in &own.indirect {
            parts.push(format!("{} * i64({})", self.operand(*term, varying, true), scalar(stride)));
        }
        (base, parts.join(" + "))
    }

    /// The integers in which lanes of expressions are computed.
    fn integer_of(&self, exprs: &[&Expr]) -> LaneInteger {
        let Some(outer) = self.positions else { return LaneInteger::I64 };
        let table = ranges_over(&NoRanges, &[outer, &self.stage.axes], exprs);
        let fits = exprs.iter().all(|expr| is_narrow(expr, &table));
        if fits { LaneInteger::I32 } else { LaneInteger::I64 }
    }

    /// Whether a coordinate never reaches the size, and is outside only before the first.
    fn is_always_less(&self, guard: &Guard) -> bool {
        let Some(outer) = self.positions else { return false };
        let table = ranges_over(&NoRanges, &[outer, &self.stage.axes], &[&guard.coordinate, &guard.size]);
        guard.coordinate.always_less(&guard.size, &table)
    }

    fn effect(&self, effect: &Effect, varying: &[bool], text: &mut StageText) {
        match effect {
            Effect::Accumulate { accumulator, value } => {
                let is_bool = self.stage.terms[*value].dtype == DType::Bool;
                let mut value = self.operand(*value, varying, true);
                if is_bool && self.parameters.position(*accumulator).is_some() {
                    value = format!("cast<i32>({value})");
                }
                let line = match self.parameters.position(*accumulator) {
                    None => format!("accumulator{accumulator}.add(lanes, slot, {value});"),
                    Some(position) => {
                        let at = match self.vector {
                            Some(vector) => lanes(position, vector, LaneInteger::I64),
                            None => format!("broadcast(lanes, i64({}))", scalar(position)),
                        };
                        format!("accumulator{accumulator}.add(lanes, slot, {value}, {at});")
                    }
                };
                let _ = writeln!(text.body, "{line}");
            }
            Effect::Store { access, value, combine } => {
                let value = self.operand(self.stored(effect).unwrap_or(*value), varying, true);
                let line = self.store(access, &value, *combine, varying);
                let target = if self.vector.is_some() { &mut text.body } else { &mut text.stores };
                let _ = writeln!(target, "{line}");
            }
        }
    }
}
