//! Scatters whose updates may meet: what each does, as functions, and the calls of `gpu/scatter.h` for them. Some take several
//! launches.

use super::{Printed, index_type};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::{Context, Earlier, type_name};
use crate::codegen::c_family::whole::{WIDEST_ACCESS, Whole};
use crate::graph::Combine;
use crate::kernels::mapping::{IndexWidth, Meeting, Scattering};
use crate::kernels::nest::scatter::Plan;
use crate::loops::scatter::PartOf;
use crate::loops::{Access, Axis, Effect, Nest, Program, Stage, TermId};
use crate::symbolic::{Expr, NoRanges, Symbol};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What each launch of a scatter does, in order.
pub(super) fn print(
    program: &Program,
    parameters: &Parameters,
    nest: &Nest,
    mapping: &Scattering,
) -> Vec<Printed> {
    let printer = Printer { parameters, nest, mapping, plan: Plan::new(program, nest, mapping) };
    let bodies = match mapping.by {
        Meeting::Atomics => vec![printer.atomic()],
        Meeting::Bins(slots) => vec![printer.in_bins(slots)],
        Meeting::Fixed => printer.fixed().into(),
        Meeting::Columns => vec![printer.in_columns()],
        Meeting::Last => printer.last().into(),
        Meeting::Ranked => std::iter::once(printer.ranked()).chain(printer.merged(0)).collect(),
        Meeting::Sorted => printer.sorted(),
    };
    bodies.into_iter().map(|body| Printed { body, headers: vec!["gpu/scatter.h"] }).collect()
}

struct Printer<'a> {
    parameters: &'a Parameters<'a>,
    nest: &'a Nest,
    mapping: &'a Scattering,
    plan: Plan,
}

impl Printer<'_> {
    fn index(&self) -> &'static str {
        index_type(self.mapping.index)
    }

    fn word(&self) -> &'static str {
        match self.mapping.words {
            IndexWidth::Narrow => "u32",
            IndexWidth::Wide => "u64",
        }
    }

    fn access(&self) -> &Access {
        match &self.nest.stages[0].effects[0] {
            Effect::Store { access, .. } => access,
            Effect::Accumulate { .. } => unreachable!("a scatter stores"),
        }
    }

    fn axes(&self, positions: &[usize]) -> Vec<&Axis> {
        positions.iter().map(|position| &self.nest.axes[*position]).collect()
    }

    /// The axis along the lanes of a column.
    fn vector(&self) -> Option<&Axis> {
        let last = self.plan.own.columns.last().filter(|_| self.mapping.lanes > 1)?;
        Some(&self.nest.axes[*last])
    }

    /// The positions of axes from a number; of the last column, lanes are left out.
    fn decoded(&self, positions: &[usize], number: &str) -> String {
        let (axes, lanes) = (self.axes(positions), self.mapping.lanes);
        let extent = |axis: &Axis| match self.vector() {
            Some(vector) if vector == axis => axis.extent.floor_div(&Expr::int(lanes)),
            Some(_) | None => axis.extent.clone(),
        };
        let mut text = String::new();
        for (place, axis) in axes.iter().enumerate() {
            let after: Vec<Expr> = axes[place + 1..].iter().copied().map(extent).collect();
            let stride = Expr::product(&after);
            let mut value = number.to_owned();
            if !stride.is(1) {
                value = format!("{value} / ({})", scalar(&stride));
            }
            if place > 0 {
                value = format!("{value} % ({})", scalar(&extent(axis)));
            }
            if self.vector() == Some(*axis) {
                value = format!("{value} * {lanes}");
            }
            let name = symbol_name(axis.symbol);
            let _ = writeln!(text, "const {} {name} = {value};\n(void){name};", self.index());
        }
        text
    }

    /// The number of an update's destination.
    fn key(&self) -> String {
        let (indices, word) = (self.access().indirect.iter().map(|(term, _)| *term), self.word());
        let (stage, places) = only(&self.nest.stages[0], &indices.collect::<Vec<_>>());
        let terms = self.context(&stage, None).print().uniform;
        let index = |term: TermId| format!("lane(stage0_t{}, 0)", places[&term]);
        let mut number = Vec::new();
        for (place, part) in self.plan.own.parts.iter().enumerate() {
            let after = Expr::product(self.plan.own.parts[place + 1..].iter().map(|part| &part.count));
            let value = match part.of {
                PartOf::Axis(axis) => symbol_name(self.nest.axes[axis].symbol),
                PartOf::Index(term) => index(term),
                PartOf::Element => {
                    let access = self.access();
                    let indirect = access
                        .indirect
                        .iter()
                        .map(|(term, stride)| format!(" + {} * ({})", index(*term), scalar(stride)));
                    format!("({}{})", scalar(&access.offset), indirect.collect::<String>())
                }
            };
            number.push(if after.is(1) { value } else { format!("{value} * ({})", scalar(&after)) });
        }
        let number = if number.is_empty() { "0".to_owned() } else { number.join(" + ") };
        let axes = self.decoded(&self.plan.own.updates, "update");
        self.function("key", "", &format!("{axes}{terms}return {word}({number});\n"))
    }

    /// A function of an update, and of `more`.
    fn function(&self, name: &str, more: &str, body: &str) -> String {
        format!("const auto {name} = [&]({} update{more}) {{\n{}}};\n", self.index(), indent(body, 1))
    }

    /// What an update writes at a column.
    fn value(&self) -> String {
        let (mut stage, places) = only(&self.nest.stages[0], &[self.plan.own.value]);
        stage.effects = vec![Effect::Accumulate { accumulator: 0, value: places[&self.plan.own.value] }];
        let printed = self.context(&stage, self.vector().map(|axis| axis.symbol)).print();
        let body = format!(
            "constexpr Slot<0> slot{{}};\n{}{}{}{}{}",
            self.decoded(&self.plan.own.updates, "update"),
            self.decoded(&self.plan.own.columns, "column"),
            printed.uniform,
            printed.body,
            printed.effects
        );
        let index = self.index();
        format!(
            "const auto value = [&](auto lanes, {index} update, {index} column, auto &accumulator0) {{\n\
             \x20 (void)update, (void)column;\n{}}};\n",
            indent(&body, 1)
        )
    }

    fn context<'s>(&'s self, stage: &'s Stage, vector: Option<Symbol>) -> Context<'s> {
        Context {
            parameters: self.parameters,
            stage,
            prefix: "stage0_".to_owned(),
            vector,
            earlier: Earlier::OneLane,
            width: "lanes.width",
            first_lane: self.mapping.lanes,
            positions: None,
            // What is combined is no plain store.
            read_later: (0..stage.terms.len()).collect(),
            turned: &[],
            whole: Some(self.mapping.lanes).filter(|lanes| *lanes > 1).map(Whole::Always),
            has_own_rows: false,
            given: None,
        }
    }

    /// The element of a destination's column.
    fn at(&self) -> String {
        let (index, word) = (self.index(), self.word());
        let parts = &self.plan.own.parts;
        let mut place = String::new();
        if parts.iter().all(|part| part.of == PartOf::Element) && !parts.is_empty() {
            place = format!("{index}(key)");
        } else {
            for (number, part) in parts.iter().enumerate() {
                let after = Expr::product(parts[number + 1..].iter().map(|part| &part.count));
                let mut value = format!("{index}(key)");
                if !after.is(1) {
                    value = format!("{value} / ({})", scalar(&after));
                }
                if number > 0 {
                    value = format!("{value} % ({})", scalar(&part.count));
                }
                let _ = write!(place, "{value} * ({}) + ", scalar(&part.stride));
            }
            place.push_str(&format!("({})", scalar(&self.column_offset())));
        }
        let axes = self.decoded(&self.plan.own.columns, "column");
        let element = format!("out + ({place})");
        let lanes = usize::try_from(self.mapping.lanes).expect("lanes are few");
        let bytes = (lanes * self.plan.own.dtype.size()).min(WIDEST_ACCESS);
        let element = if lanes > 1 { format!("aligned<{bytes}>({element})") } else { element };
        let body = format!("(void)key, (void)column;\n{axes}return {element};\n");
        format!(
            "const auto at = [&]({} *out, {word} key, {index} column) {{\n{}}};\n",
            type_name(self.plan.own.dtype),
            indent(&body, 1)
        )
    }

    /// The offset of a column in its destination.
    fn column_offset(&self) -> Expr {
        let columns = self.axes(&self.plan.own.columns);
        let others = |symbol: Symbol| {
            let is_update =
                self.nest.axes.iter().any(|axis| axis.symbol == symbol && !columns.contains(&axis));
            is_update.then(|| Expr::int(0))
        };
        self.access().offset.substitute(&others, &NoRanges)
    }

    fn out(&self) -> String {
        self.parameters.buffer(self.plan.own.target).to_owned()
    }

    fn op(&self) -> &'static str {
        match self.plan.own.combine {
            Combine::Add => "Added",
            Combine::Mul => "Multiplied",
            Combine::Max => "Largest",
            Combine::Min => "Smallest",
            Combine::Set => unreachable!("what replaces does not merge"),
        }
    }

    /// Sizes as the templates take them.
    fn counts(&self) -> String {
        let index = self.index();
        format!("{index}({}), {index}({})", scalar(&self.plan.updates), scalar(&self.plan.columns))
    }

    fn atomic(&self) -> String {
        let (key, value, at, out) = (self.key(), self.value(), self.at(), self.out());
        let (op, counts) = (self.op(), self.counts());
        let call = format!("scatter_atomically<{op}>({out}, {counts}, key, value, at);\n");
        key + &value + &at + &call
    }

    fn in_bins(&self, slots: i64) -> String {
        let (key, value, at, out) = (self.key(), self.value(), self.at(), self.out());
        let (index, updates) = (self.index(), scalar(&self.plan.updates));
        let call = format!("scatter_in_bins<{slots}>({out}, {index}({updates}), key, value, at);\n");
        key + &value + &at + &call
    }

    fn in_columns(&self) -> String {
        let (key, value, at, out) = (self.key(), self.value(), self.at(), self.out());
        let all = format!("{}, {}({})", self.counts(), self.index(), scalar(&self.plan.slots));
        format!(
            "{key}{value}{at}AOTI_DYNAMIC_SHARED(shared);\nadd_columns(shared, {out}, {all}, key, value, at);\n"
        )
    }

    fn fixed(&self) -> [String; 4] {
        let (key, value, at, out) = (self.key(), self.value(), self.at(), self.out());
        let (element, counts) = (type_name(self.plan.own.dtype), self.counts());
        let elements = &self.plan.slots * &self.plan.columns;
        let sums = format!(
            "const FixedPoint sums((u32 *)(scratch + ({})), (u64 *)scratch, {});\n",
            scalar(&(&elements * 8)),
            scalar(&self.plan.updates)
        );
        let all = format!("{counts}, {}({})", self.index(), scalar(&self.plan.slots));
        [
            format!("{key}{sums}forget_sums(sums, {all}, key);\n"),
            format!("{key}{value}{sums}find_exponents<{element}>(sums, {counts}, key, value);\n"),
            format!("{key}{value}{sums}add_fixed<{element}>(sums, {counts}, key, value);\n"),
            format!("{key}{at}{sums}write_sums({out}, sums, {all}, key, at);\n"),
        ]
    }

    fn last(&self) -> [String; 3] {
        let (key, out, word) = (self.key(), self.out(), self.word());
        let last = format!("{word} *const last = ({word} *)scratch;\n");
        let updates = format!("{}({})", self.index(), scalar(&self.plan.updates));
        let each = |name: &str| {
            let call = format!("{name}_updates(last, {updates}, key);\n");
            format!("{key}{last}{call}")
        };
        let call = format!(
            "write_last_updates<{}>({out}, last, {}, key, value, at);\n",
            self.mapping.lanes,
            self.counts()
        );
        let write = format!("{key}{}{}{last}{call}", self.value(), self.at());
        [each("forget"), each("find_last"), write]
    }

    /// Declarations of parts of the scratch.
    fn declared(&self, names: &[(&str, &str)]) -> String {
        let places = self.plan.places().0;
        let declared = names.iter().map(|(name, element)| {
            format!("{element} *const {name} = ({element} *)(scratch + ({}));\n", scalar(&places[name]))
        });
        declared.collect()
    }

    fn ranked(&self) -> String {
        let word = self.word();
        let areas = self.declared(&[("keys0", word), ("order0", word)]);
        format!(
            "{}{areas}AOTI_DYNAMIC_SHARED(shared);\nrank_updates(keys0, order0, ({word} *)shared, {}({}), key);\n",
            self.key(),
            self.index(),
            scalar(&self.plan.updates)
        )
    }

    /// The passes of a sort, of which the lists of the last one are merged.
    fn sorted(&self) -> Vec<String> {
        let mut launches: Vec<String> = (0..self.plan.passes).flat_map(|pass| self.pass(pass)).collect();
        launches.extend(self.merged(self.plan.passes - 1));
        launches
    }

    /// The launches that sort by one digit.
    fn pass(&self, pass: i64) -> [String; 3] {
        let (index, word, shift) = (self.index(), self.word(), pass * self.plan.digit_bits);
        let (updates, bits) = (format!("{index}({})", scalar(&self.plan.updates)), self.plan.digit_bits);
        // Lists take turns: those that the first pass writes are the first.
        let (to, from) = if pass % 2 == 0 { ("0", "1") } else { ("1", "0") };
        let (keys_to, order_to) = (format!("keys{to}"), format!("order{to}"));
        let (keys_from, order_from) = (format!("keys{from}"), format!("order{from}"));
        let first = pass == 0;
        let counts = self.declared(&[("counts", "u32"), ("totals", "u32")]);
        let keys = if first {
            self.key()
        } else {
            let lists = self.declared(&[(&keys_from, word), (&order_from, word)]);
            format!("{lists}const auto key = [&]({index} i) {{ return {keys_from}[i]; }};\n")
        };
        let order = if first { format!("{word}(i)") } else { format!("{order_from}[i]") };
        let count = format!("{counts}{keys}count_digits<{bits}>(counts, {updates}, {shift}, key);\n");
        let sum = format!("{counts}sum_digits(counts, totals, {updates});\n");
        let lists = self.declared(&[(&keys_to, word), (&order_to, word)]);
        let place = format!(
            "{counts}{keys}{lists}const auto order = [&]({index} i) {{ return {order}; }};\n\
             place_updates<{bits}>({keys_to}, {order_to}, counts, totals, {updates}, {shift}, key, order);\n"
        );
        [count, sum, place]
    }

    /// The launches that add up what is grouped in the lists that a pass wrote.
    fn merged(&self, pass: i64) -> [String; 2] {
        let (word, out, op, counts) = (self.word(), self.out(), self.op(), self.counts());
        let (piece, lanes, element) = (self.plan.piece, self.mapping.lanes, type_name(self.plan.own.dtype));
        let (keys, order) = (format!("keys{}", pass % 2), format!("order{}", pass % 2));
        let held = format!("Held<{element}, {lanes}>");
        let lists = self.declared(&[(&keys, word), (&order, word), ("parts", &held)]);
        let (value, at) = (self.value(), self.at());
        let each = format!(
            "{lists}{value}{at}merge_pieces<{piece}, {lanes}, {op}>({out}, parts, {keys}, {order}, {counts}, value, at);\n"
        );
        let all = format!(
            "{lists}{at}(void){order};\nmerge_parts<{piece}, {lanes}, {op}>({out}, parts, {keys}, {counts}, at);\n"
        );
        [each, all]
    }
}

/// The terms of a stage that some of them need, without effects, and where each of them is there.
fn only(stage: &Stage, roots: &[TermId]) -> (Stage, BTreeMap<TermId, TermId>) {
    let mut needed = vec![false; stage.terms.len()];
    roots.iter().for_each(|root| needed[*root] = true);
    // Terms use only earlier ones.
    for (id, typed) in stage.terms.iter().enumerate().rev() {
        if needed[id] {
            typed.term.operands().into_iter().for_each(|operand| needed[operand] = true);
        }
    }
    let mut places = BTreeMap::new();
    let mut terms = Vec::new();
    for (id, typed) in stage.terms.iter().enumerate().filter(|(id, _)| needed[*id]) {
        let mut typed = typed.clone();
        typed.term.renumber(&|operand| places[&operand]);
        places.insert(id, terms.len());
        terms.push(typed);
    }
    (Stage { terms, ..Stage::default() }, places)
}
