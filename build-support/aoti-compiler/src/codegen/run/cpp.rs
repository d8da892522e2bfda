//! Prints a run plan as C++ that calls kernels on the host.

use super::{Action, Assert, Call, Condition, Copy, Launch, Place, Pointer, Read, RunPlan};
use crate::codegen::c_family::expr::{condition as condition_text, scalar, symbol_name};
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::type_name;
use crate::codegen::functions::Functions;
use crate::select::Scratch;
use crate::symbolic::{Expr, Symbol};
use std::collections::BTreeSet;

/// The function that runs the model at one level, and the one that tells its scratch.
pub(in crate::codegen) fn run_functions(
    plan: &RunPlan,
    functions: &Functions,
    scratch: &BTreeSet<Scratch>,
    identifier: &str,
) -> String {
    let printer = Printer { plan, functions };
    let body = printer.actions(&plan.actions);
    let mut used = BTreeSet::new();
    symbols_of(&plan.actions, &mut used);
    let sizes: String = used
        .iter()
        .map(|symbol| format!("  i64 {} = run.symbols[{}];\n", symbol_name(*symbol), symbol.index))
        .collect();
    let mut all = BTreeSet::new();
    for Scratch { shared, worker } in scratch {
        shared.collect_symbols(&mut all);
        worker.collect_symbols(&mut all);
    }
    let all: String = all.iter().map(|symbol| format!("  const i64 {};\n", known(*symbol))).collect();
    let largest: String =
        scratch.iter().map(|need| format!("  bytes = max_i64(bytes, {});\n", scratch_bytes(need))).collect();
    format!(
        "extern \"C\" int32_t AOTI_LEVEL_NAME(aoti_{identifier}_run)(const Run &run) {{\n  (void)run;\n{sizes}{}  return 0;\n}}\n\n\
         extern \"C\" int64_t AOTI_LEVEL_NAME(aoti_{identifier}_scratch)(const int64_t *symbols, int64_t threads) {{\n\
         \x20 (void)symbols, (void)threads;\n{all}  i64 bytes = 0;\n{largest}  return bytes;\n}}\n",
        indent(&body, 1)
    )
}

/// Bytes of scratch over the size symbols and `threads`.
fn scratch_bytes(scratch: &Scratch) -> String {
    let (shared, worker) = (scalar(&scratch.shared), format!("threads * ({})", scalar(&scratch.worker)));
    match (scratch.shared.is(0), scratch.worker.is(0)) {
        (_, true) => shared,
        (true, false) => worker,
        (false, false) => format!("{shared} + {worker}"),
    }
}

fn known(symbol: Symbol) -> String {
    format!("{} = symbols[{}]", symbol_name(symbol), symbol.index)
}

struct Printer<'a> {
    plan: &'a RunPlan,
    functions: &'a Functions,
}

impl Printer<'_> {
    fn actions(&self, actions: &[Action]) -> String {
        actions.iter().map(|action| self.action(action)).collect()
    }

    fn action(&self, action: &Action) -> String {
        match action {
            Action::Call(call) => {
                let name = &self.functions.all[call.function].name;
                format!("call(run, {}, {name}{});\n", call.kernel.as_u32(), arguments(call))
            }
            Action::Launch(Launch { call, grid, block, shared }) => {
                let name = &self.functions.all[call.function].name;
                let grid = grid.each_ref().map(scalar).join(", ");
                let block = block.map(|size| size.to_string()).join(", ");
                let shared = scalar(shared);
                let (number, arguments) = (call.kernel.as_u32(), arguments(call));
                format!("launch(run, {number}, {name}, {{{grid}}}, {{{block}}}, {shared}{arguments});\n")
            }
            Action::Copy(Copy { from, to, bytes }) => {
                format!("copy(run, {}, {}, {});\n", pointer(to), pointer(from), scalar(bytes))
            }
            Action::Read(Read { from, symbol, range, failure }) => {
                let (name, from) = (symbol_name(*symbol), pointer(from));
                let [min, max] = [range.min, range.max].map(|bound| scalar(&Expr::int(bound)));
                format!(
                    "{name} = run.symbols[{}] = *{from};\nif ({name} < {min} || {name} > {max}) return {};\n",
                    symbol.index,
                    self.code(*failure)
                )
            }
            Action::Assert(Assert { condition, failure }) => {
                let condition = match condition {
                    Condition::Holds(flag) => format!("*{}", pointer(flag)),
                    Condition::Sizes(guard) => format!("({})", condition_text(&guard.condition)),
                };
                format!("if (!{condition}) return {};\n", self.code(*failure))
            }
            Action::If { predicate, then, otherwise } => format!(
                "if (*{}) {{\n{}}} else {{\n{}}}\n",
                pointer(predicate),
                indent(&self.actions(then), 1),
                indent(&self.actions(otherwise), 1)
            ),
            Action::Loop { condition, predicate, body } => format!(
                "for (;;) {{\n{}  if (!*{}) break;\n{}}}\n",
                indent(&self.actions(condition), 1),
                pointer(predicate),
                indent(&self.actions(body), 1)
            ),
        }
    }

    /// What the run returns for a failure: zero is success.
    fn code(&self, failure: super::FailureId) -> usize {
        debug_assert!(self.plan.failures.is_valid(failure), "plans name failures that they have");
        failure.as_u32() as usize + 1
    }
}

/// What a kernel is given besides the run, a comma before each.
fn arguments(call: &Call) -> String {
    let tensors = call.tensors.iter().map(pointer);
    let sizes = call.sizes.iter().map(|symbol| symbol_name(*symbol));
    tensors.chain(sizes).map(|argument| format!(", {argument}")).collect()
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

/// The sizes that the actions mention.
fn symbols_of(actions: &[Action], symbols: &mut BTreeSet<Symbol>) {
    for action in actions {
        match action {
            Action::Call(call) => symbols_of_call(call, symbols),
            Action::Launch(Launch { call, grid, block: _, shared }) => {
                symbols_of_call(call, symbols);
                grid.iter().chain([shared]).for_each(|size| size.collect_symbols(symbols));
            }
            Action::Copy(Copy { from, to, bytes }) => {
                symbols_of_pointer(from, symbols);
                symbols_of_pointer(to, symbols);
                bytes.collect_symbols(symbols);
            }
            Action::Read(Read { from, symbol, .. }) => {
                symbols_of_pointer(from, symbols);
                symbols.insert(*symbol);
            }
            Action::Assert(Assert { condition: Condition::Holds(flag), .. }) => {
                symbols_of_pointer(flag, symbols);
            }
            Action::Assert(Assert { condition: Condition::Sizes(guard), .. }) => {
                symbols.extend(guard.condition.symbols());
            }
            Action::If { predicate, then, otherwise } => {
                symbols_of_pointer(predicate, symbols);
                symbols_of(then, symbols);
                symbols_of(otherwise, symbols);
            }
            Action::Loop { condition, predicate, body } => {
                symbols_of(condition, symbols);
                symbols_of_pointer(predicate, symbols);
                symbols_of(body, symbols);
            }
        }
    }
}

fn symbols_of_call(call: &Call, symbols: &mut BTreeSet<Symbol>) {
    call.tensors.iter().for_each(|tensor| symbols_of_pointer(tensor, symbols));
    symbols.extend(&call.sizes);
}

fn symbols_of_pointer(pointer: &Pointer, symbols: &mut BTreeSet<Symbol>) {
    if let Place::Arena(offset) = &pointer.place {
        offset.collect_symbols(symbols);
    }
}
