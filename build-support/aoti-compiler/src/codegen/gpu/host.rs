//! Prints a run plan as host code that launches kernels on a stream, and reads small values where the data decides what
//! comes next. The vocabulary is that of `include/aoti/gpu/host.h`.

use super::functions::Functions;
use super::index_type;
use crate::codegen::c_family::expr::{condition as condition_text, scalar, symbol_name};
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::type_name;
use crate::codegen::foreign::comment;
use crate::codegen::run::{
    Action, Assert, Condition, Copy, FailureId, Launch, Place, Pointer, Read, RunPlan,
};
use crate::symbolic::Expr;

/// The function that runs the model, and the one that tells the bytes of its arena.
pub(super) fn run_functions(
    plan: &RunPlan,
    functions: &Functions,
    symbols: usize,
    identifier: &str,
) -> String {
    let printer = Printer { plan, functions };
    let locals: String =
        (0..symbols).map(|k| format!("  i64 s{k} = symbols[{k}];\n  (void)s{k};\n")).collect();
    format!(
        "int32_t aoti_{identifier}_device_run(DeviceRun &run, int64_t *symbols) {{\n  (void)symbols;\n{locals}{}  return 0;\n}}\n\n\
         int64_t aoti_{identifier}_device_arena(const int64_t *symbols) {{\n  (void)symbols;\n{locals}  return {};\n}}\n",
        indent(&printer.actions(&plan.actions), 1),
        scalar(&plan.arena_bytes)
    )
}

struct Printer<'a> {
    plan: &'a RunPlan,
    functions: &'a Functions<'a>,
}

impl Printer<'_> {
    fn actions(&self, actions: &[Action]) -> String {
        actions.iter().map(|action| self.action(action)).collect()
    }

    fn action(&self, action: &Action) -> String {
        match action {
            Action::Call(_) => unreachable!("a device has no function that the host calls"),
            Action::Launch(launch) => self.launch(launch),
            Action::Copy(Copy { from, to, bytes }) => {
                format!("copy(run, {}, {}, {});\n", pointer(to), pointer(from), scalar(bytes))
            }
            Action::Read(Read { from, symbol, range, failure }) => {
                let (name, from) = (symbol_name(*symbol), pointer(from));
                let [min, max] = [range.min, range.max].map(|bound| scalar(&Expr::int(bound)));
                format!(
                    "{name} = symbols[{}] = read<i64>(run, {from});\nif (run.error) return 0;\n\
                     if ({name} < {min} || {name} > {max}) return {};\n",
                    symbol.index,
                    self.code(*failure)
                )
            }
            Action::Assert(Assert { condition, failure }) => {
                let code = self.code(*failure);
                match condition {
                    Condition::Holds(flag) => {
                        format!("if (!read<bool>(run, {})) return run.error ? 0 : {code};\n", pointer(flag))
                    }
                    Condition::Sizes(guard) => {
                        format!("if (!({})) return {code};\n", condition_text(&guard.condition))
                    }
                }
            }
            Action::If { predicate, then, otherwise } => format!(
                "if (read<bool>(run, {})) {{\n{}}} else {{\n{}}}\n",
                pointer(predicate),
                indent(&self.actions(then), 1),
                indent(&self.actions(otherwise), 1)
            ),
            Action::Loop { condition, predicate, body } => format!(
                "for (;;) {{\n{}  if (!read<bool>(run, {})) break;\n{}}}\n",
                indent(&self.actions(condition), 1),
                pointer(predicate),
                indent(&self.actions(body), 1)
            ),
        }
    }

    fn launch(&self, Launch { call, grid, block, shared }: &Launch) -> String {
        let function = &self.functions.all[call.function];
        let index = index_type(function.text.index);
        let head = [
            "run".to_owned(),
            call.function.as_u32().to_string(),
            scalar(&grid[0]),
            block[0].to_string(),
            scalar(shared),
        ];
        let tensors = call.tensors.iter().map(pointer);
        let sizes = call.sizes.iter().map(|symbol| format!("{index}({})", symbol_name(*symbol)));
        let all: Vec<String> = head.into_iter().chain(tensors).chain(sizes).collect();
        format!("launch({}); {}", all.join(", "), comment(&function.name))
    }

    /// What the run returns for a failure: zero is success.
    fn code(&self, failure: FailureId) -> usize {
        debug_assert!(self.plan.failures.is_valid(failure), "plans name failures that they have");
        failure.as_u32() as usize + 1
    }
}

fn pointer(pointer: &Pointer) -> String {
    let (name, position) = match &pointer.place {
        Place::Input(position) => ("input", position.to_string()),
        Place::Output(position) => ("output", position.to_string()),
        Place::State(offset) => ("state", offset.to_string()),
        Place::Weights(offset) => ("weights", offset.to_string()),
        Place::Arena(offset) => ("arena", scalar(offset)),
    };
    format!("{name}<{}>(run, {position})", type_name(pointer.dtype))
}
