//! Loop nests as device code: units of work over blocks and threads, stages shared out among a team.

use super::{EACH_UNIT, Printed, index_type};
use crate::codegen::c_family::expr::{scalar, symbol_name};
use crate::codegen::c_family::function::Parameters;
use crate::codegen::c_family::indent;
use crate::codegen::c_family::operations::accumulator_type;
use crate::codegen::c_family::terms::{Context, Earlier, StageText, read_later, type_name};
use crate::codegen::c_family::whole::Whole;
use crate::kernels::mapping::{Along, Rows, Teams, is_local, row_bytes};
use crate::loops::{Axis, BufferId, Effect, Nest, Program, Stage, Storage, Term, TermId};
use crate::symbolic::{Expr, NoRanges, Symbol};
use std::collections::BTreeMap;
use std::fmt::Write;

pub(super) fn print(program: &Program, parameters: &Parameters, nest: &Nest, teams: &Teams) -> Printed {
    let index = index_type(teams.index);
    let printer = Printer { program, parameters, nest, teams, index, given: vec![] };
    Printed { body: printer.function(&teams.units(nest), &printer.rows()), headers: vec![] }
}

struct Printer<'a> {
    program: &'a Program,
    parameters: &'a Parameters<'a>,
    nest: &'a Nest,
    teams: &'a Teams,
    index: &'static str,
    /// Values that are at hand, by stage.
    given: Vec<BTreeMap<TermId, String>>,
}

/// Values that a tile of two axes reads along another axis than it writes results.
#[derive(Default)]
struct Staged {
    /// Declarations of their tiles in shared memory, and how they come there.
    tiles: String,
    reads: String,
    /// How they are read there, by stage.
    given: Vec<BTreeMap<TermId, String>>,
}

impl Printer<'_> {
    /// Declarations of a position's rows.
    fn rows(&self) -> String {
        let (mut text, mut offset) = (String::new(), Expr::int(0));
        for (id, name) in self.parameters.rows() {
            let buffer = &self.program.buffers[id];
            let Storage::Local { outer } = buffer.storage else { continue };
            let element = type_name(buffer.dtype);
            let _ = writeln!(text, "{element} *const {name} = ({element} *)(rows + {});", scalar(&offset));
            offset = &offset + &row_bytes(&buffer.shape[outer..], buffer.dtype);
        }
        if text.is_empty() {
            return text;
        }
        let bytes = scalar(&offset);
        let memory = match self.teams.rows {
            Rows::Shared => format!(
                "AOTI_DYNAMIC_SHARED(shared);\nchar *const rows = shared + team.place() * ({bytes});\n"
            ),
            Rows::Registers => return self.own_rows(),
            Rows::Scratch => format!(
                "char *const rows = scratch + (i64(block_index()) * {} + team.place()) * ({bytes});\n",
                self.teams.places
            ),
        };
        memory + &text
    }

    /// Declarations of rows that stay with the threads that write them.
    fn own_rows(&self) -> String {
        let (lanes, steps) = (self.teams.lanes, self.own_steps().unwrap_or_default());
        let rows = self.parameters.rows().map(|(id, name)| {
            format!("OwnRow<{}, {lanes}, {steps}> {name};\n", type_name(self.program.buffers[id].dtype))
        });
        rows.collect()
    }

    /// How many times a thread takes elements of a row. Where blocks are no cluster, the first one has all of them.
    fn own_steps(&self) -> Option<String> {
        let Teams { lanes, blocks, .. } = self.teams;
        Teams::length_of_own_rows(self.program, self.nest).map(|length| match blocks {
            1 => self.teams.steps(length).to_string(),
            _ => format!("kOwnSteps<{lanes}, {length}, decltype(team)>"),
        })
    }

    fn function(&self, units: &Expr, rows: &str) -> String {
        let (teams, index) = (self.teams, self.index);
        let per_block = teams.per_block();
        let (first, step) = match (per_block, teams.blocks) {
            (1, 1) => (format!("{index}(block_index())"), format!("{index}(block_count())")),
            (1, blocks) => {
                (format!("{index}(block_index() / {blocks})"), format!("{index}(block_count() / {blocks})"))
            }
            _ => (
                format!("{index}(block_index()) * {per_block} + team.place()"),
                format!("{index}(block_count()) * {per_block}"),
            ),
        };
        let (blocks, idle) = match teams.blocks {
            1 => (String::new(), ""),
            blocks => (format!(", {blocks}"), "if (team.is_idle()) return;\nteam.gather();\n"),
        };
        let mut body = self.positions();
        if !rows.is_empty() && teams.is_shared() && teams.rows != Rows::Registers {
            body.push_str("team.sync();\n");
        }
        format!(
            "constexpr Team<{}, {}, {}{blocks}> team{{}};\n{idle}{rows}const {index} units = {};\n\
             {EACH_UNIT}for ({index} unit = {first}; unit < units; unit += {step}) {{\n{}}}\n",
            teams.size,
            teams.places,
            teams.across,
            scalar(units),
            indent(&body, 1)
        )
    }

    /// The axis along the lanes, where one outer axis is.
    fn outer_vector(&self) -> Option<&Axis> {
        let outer = self.teams.along == Along::Outer && self.teams.in_order.is_empty();
        outer.then(|| self.nest.axes.last()).flatten()
    }

    /// What happens in one unit.
    fn positions(&self) -> String {
        let index = self.index;
        if let (Some(turned), Some(last)) = (self.teams.turned, self.nest.axes.last()) {
            return self.tile_of_two_axes(turned, last);
        }
        let free: Vec<&Axis> = self.teams.free_axes(self.nest).collect();
        let Some(vector) = self.outer_vector() else {
            let ordered = self.teams.in_order.iter().map(|k| &self.nest.axes[*k]);
            let ordered: Vec<&Axis> = ordered.collect();
            return self.unit_axes(&free, "unit") + &self.plain_loops(&ordered, &self.stages(None));
        };
        let lanes = self.teams.lanes;
        let per_unit = lanes * if self.teams.across { self.teams.places } else { 1 };
        let others = &free[..free.len() - 1];
        let (name, extent) = (symbol_name(vector.symbol), scalar(&vector.extent));
        let place = if self.teams.across { format!(" + team.place() * {lanes}") } else { String::new() };
        let mut text = String::new();
        if others.is_empty() {
            let _ = writeln!(text, "const {index} {name} = unit * {per_unit}{place};");
        } else {
            let steps = vector.extent.ceil_div(&Expr::int(per_unit), &NoRanges);
            let _ = writeln!(text, "const {index} steps = {};", scalar(&steps));
            text.push_str(&self.unit_axes(others, "(unit / steps)"));
            let _ = writeln!(text, "const {index} {name} = unit % steps * {per_unit}{place};");
        }
        let body = format!("constexpr Slot<0> slot{{}};\n(void)slot;\n{}", self.stages(Some(vector)));
        if self.teams.across {
            let _ =
                write!(text, "const auto lanes = lanes_before<{lanes}>({name}, {index}({extent}));\n{body}");
        } else {
            let _ = write!(
                text,
                "with_lanes<{lanes}>({name}, {index}({extent}), [&](auto lanes) {{\n{}}});\n",
                indent(&body, 1)
            );
        }
        text
    }

    /// A tile of the last axis, along which results lie side by side, and of another, along which something is read: that goes
    /// through shared memory, so that neighbouring threads read neighbouring elements, and write them.
    fn tile_of_two_axes(&self, turned: usize, last: &Axis) -> String {
        let (index, side) = (self.index, Teams::TILE);
        let axis = &self.nest.axes[turned];
        let count = self.nest.axes.len() - 1;
        let others = self.nest.axes[..count].iter().enumerate().filter(|(k, _)| *k != turned);
        let others: Vec<&Axis> = others.map(|(_, axis)| axis).collect();
        let [(down, height), (across, width)] =
            [axis, last].map(|axis| (symbol_name(axis.symbol), scalar(&axis.extent)));
        let each = |row: &str, column: &str, body: &str| {
            format!(
                "each_of_tile(team, [&](int row, int column) {{\n\
                 \x20 const {index} {row} = {row}_first + row, {column} = {column}_first + column;\n\
                 \x20 if ({across} < {width} && {down} < {height}) {{\n{}  }}\n}});\nbarrier();\n",
                indent(body, 2)
            )
        };
        let Staged { tiles, reads, given } = self.staged(turned);
        let within = Printer { given, ..*self };
        format!(
            "const {index} tiles_across = ceil_div({index}({width}), {side}), tiles_down = ceil_div({index}({height}), {side});\n{}\
             const {index} {across}_first = unit % tiles_across * {side}, {down}_first = unit / tiles_across % tiles_down * {side};\n\
             {tiles}{}{}",
            self.unit_axes(&others, "(unit / tiles_across / tiles_down)"),
            each(&across, &down, &reads),
            each(&down, &across, &within.stages(None)),
        )
    }

    /// What is read along an outer axis, and by no position after another wrote it.
    fn staged(&self, turned: usize) -> Staged {
        let axis = self.nest.axes[turned].symbol;
        let written: Vec<BufferId> = self.nest.stages.iter().flat_map(Stage::writes).collect();
        let mut staged = Staged { given: vec![BTreeMap::new(); self.nest.stages.len()], ..Staged::default() };
        let mut count = 0;
        for (number, stage) in self.nest.stages.iter().enumerate() {
            for (id, typed) in stage.terms.iter().enumerate() {
                let Term::Load { access, .. } = &typed.term else { continue };
                let is_along = access.is_direct()
                    && access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1))
                    && !written.contains(&access.buffer);
                if !is_along || count == Teams::STAGED {
                    continue;
                }
                let element = type_name(self.program.buffers[access.buffer].dtype);
                let load = self.context(number, stage, None, false).alone(id);
                let _ = writeln!(staged.tiles, "AOTI_SHARED StagedTile<{element}> tile{count};");
                let _ = writeln!(staged.reads, "tile{count}.rows[row][column] = {load};");
                staged.given[number].insert(id, format!("tile{count}.rows[column][row]"));
                count += 1;
            }
        }
        staged
    }

    fn stages(&self, vector: Option<&Axis>) -> String {
        let mut text = String::new();
        for (number, stage) in self.nest.stages.iter().enumerate() {
            let own = self.nest.accumulators.iter().enumerate().filter(|(_, a)| a.stage == number);
            let own: Vec<_> = own.collect();
            let width = self.width(stage, vector).to_string();
            for (accumulator, declared) in &own {
                let _ = writeln!(text, "{} accumulator{accumulator};", accumulator_type(declared, &width));
            }
            text.push_str(&self.stage(number, stage, vector));
            let combine = if vector.is_some() { "combine_lanes" } else { "combine" };
            for (accumulator, _) in &own {
                let _ = writeln!(text, "accumulator{accumulator}.{combine}(team);");
            }
            if self.teams.meets_after(self.program, self.nest, number) {
                text.push_str("team.sync();\n");
            }
        }
        text
    }

    /// Lanes of a stage's accumulators.
    fn width(&self, stage: &Stage, vector: Option<&Axis>) -> i64 {
        if vector.is_some() || self.inner_vector(stage).is_some() { self.teams.lanes } else { 1 }
    }

    /// The inner axis that runs along the lanes and over the members of a team, where no outer axis does.
    fn inner_vector<'s>(&self, stage: &'s Stage) -> Option<&'s Axis> {
        stage.axes.last().filter(|_| self.teams.is_shared())
    }

    /// Whether the inner axes are shared out as one: a short last one would leave members idle, or with one load on its way.
    fn are_one(&self, axes: &[Axis]) -> bool {
        let [_, .., last] = axes else { return false };
        let (size, lanes) = (self.teams.members(), self.teams.lanes);
        last.extent.as_int().is_some_and(|extent| extent < 4 * size * lanes && extent % lanes == 0)
    }

    fn print_stage(&self, number: usize, stage: &Stage, vector: Option<Symbol>, outer: bool) -> StageText {
        self.context(number, stage, vector, outer).print()
    }

    fn context<'s>(
        &'s self,
        number: usize,
        stage: &'s Stage,
        vector: Option<Symbol>,
        outer: bool,
    ) -> Context<'s> {
        Context {
            parameters: self.parameters,
            stage,
            prefix: format!("stage{number}_"),
            vector,
            earlier: if outer { Earlier::SameLanes(&self.nest.stages) } else { Earlier::OneLane },
            width: "lanes.width",
            first_lane: self.teams.lanes,
            positions: Some(&self.nest.axes),
            read_later: read_later(&self.nest.stages, number),
            turned: &[],
            whole: Some(self.teams.lanes).filter(|lanes| *lanes > 1).map(Whole::Always),
            has_own_rows: self.teams.rows == Rows::Registers,
            given: self.given.get(number),
        }
    }

    fn stage(&self, number: usize, stage: &Stage, vector: Option<&Axis>) -> String {
        let index = self.index;
        if let Some(axis) = vector {
            let printed = self.print_stage(number, stage, Some(axis.symbol), true);
            let terms = printed.uniform + &printed.body;
            if self.teams.is_shared() && stage.axes.is_empty() {
                return terms + &self.leading(&printed.effects);
            }
            let body = terms + &printed.effects;
            return if self.teams.is_shared() {
                self.shared_loop(stage, &body)
            } else {
                self.plain_loops(&stage.axes.iter().collect::<Vec<_>>(), &body)
            };
        }
        if let Some(axis) = self.inner_vector(stage) {
            let printed = self.print_stage(number, stage, Some(axis.symbol), false);
            let is_own = self.teams.rows == Rows::Registers
                && stage.accesses().any(|access| is_local(self.program, access));
            let (function, steps) = match self.own_steps().filter(|_| is_own) {
                Some(steps) => ("over_own", format!(", {steps}")),
                None => (loop_over(stage), String::new()),
            };
            let (body, lanes) = (printed.body + &printed.effects, self.teams.lanes);
            let over = |name: &str, extent: &Expr, body: &str| {
                format!(
                    "{function}<{lanes}{steps}>(team, {index}({}), [&](auto lanes, {index} {name}, auto slot) {{\n  (void)lanes, (void)slot;\n{}}});\n",
                    scalar(extent),
                    indent(body, 1)
                )
            };
            let axes: Vec<&Axis> = stage.axes.iter().collect();
            if axes.len() > 1 && (is_own || self.are_one(&stage.axes)) {
                let total = Expr::product(stage.axes.iter().map(|axis| &axis.extent));
                return over("step", &total, &(self.unit_axes(&axes, "step") + &printed.uniform + &body));
            }
            let own = printed.uniform + &over(&symbol_name(axis.symbol), &axis.extent, &body);
            return self.plain_loops(&axes[..axes.len() - 1], &own);
        }
        let printed = self.print_stage(number, stage, None, false);
        let tags = "constexpr Full<1> lanes{};\nconstexpr Slot<0> slot{};\n(void)lanes, (void)slot;\n";
        let mut effects = printed.stores + &printed.effects;
        if !effects.is_empty() {
            effects.insert_str(0, tags);
        }
        if !stage.axes.is_empty() {
            let axes: Vec<&Axis> = stage.axes.iter().collect();
            return self.plain_loops(&axes, &(printed.uniform + &effects));
        }
        // Without axes the terms stay visible to later stages; the tags must not.
        printed.uniform + &if self.teams.is_shared() { self.leading(&effects) } else { block("", &effects) }
    }

    /// Effects that one member has for the whole team.
    fn leading(&self, effects: &str) -> String {
        block("if (team.leads()) ", effects)
    }

    /// All axes of a stage as one, shared out among the members, where lanes are positions.
    fn shared_loop(&self, stage: &Stage, body: &str) -> String {
        let index = self.index;
        let total = Expr::product(stage.axes.iter().map(|axis| &axis.extent));
        let axes: Vec<&Axis> = stage.axes.iter().collect();
        let (name, decode) = match axes.as_slice() {
            [one] => (symbol_name(one.symbol), String::new()),
            _ => ("step".to_owned(), self.unit_axes(&axes, "step")),
        };
        format!(
            "{}<1>(team, {index}({}), [&](auto, {index} {name}, auto slot) {{\n  (void)slot;\n{}}});\n",
            loop_over(stage),
            scalar(&total),
            indent(&(decode + body), 1)
        )
    }

    /// The positions of axes from the number of a unit.
    fn unit_axes(&self, axes: &[&Axis], unit: &str) -> String {
        let mut text = String::new();
        for (position, axis) in axes.iter().enumerate() {
            let stride = Expr::product(axes[position + 1..].iter().map(|axis| &axis.extent));
            let mut value = unit.to_owned();
            if !stride.is(1) {
                value = format!("{value} / ({})", scalar(&stride));
            }
            if position > 0 {
                value = format!("{value} % ({})", scalar(&axis.extent));
            }
            let name = symbol_name(axis.symbol);
            let _ = writeln!(text, "const {} {name} = {value};\n(void){name};", self.index);
        }
        text
    }

    fn plain_loops(&self, axes: &[&Axis], body: &str) -> String {
        axes.iter().rev().fold(body.to_owned(), |body, axis| {
            let name = symbol_name(axis.symbol);
            format!(
                "for ({} {name} = 0; {name} < {}; ++{name}) {{\n{}}}\n",
                self.index,
                scalar(&axis.extent),
                indent(&body, 1)
            )
        })
    }
}

/// The loop over the steps of members: several loads are on their way before the first is needed, where no store is between them.
fn loop_over(stage: &Stage) -> &'static str {
    let sums = stage.effects.iter().any(|effect| matches!(effect, Effect::Accumulate { .. }));
    if sums { "over_slots" } else { "over" }
}

/// A block of statements, if there are any.
fn block(head: &str, body: &str) -> String {
    if body.is_empty() { String::new() } else { format!("{head}{{\n{}}}\n", indent(body, 1)) }
}
