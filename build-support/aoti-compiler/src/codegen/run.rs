//! Prints a run plan as C++ that runs on the host: it calls kernels, or launches them on a device, and reads what decides
//! what comes next. The vocabulary is that of `include/aoti/run.h`, and for devices of `include/aoti/gpu/host.h`.

use crate::codegen::c_family::expr::{
    checked, condition as condition_text, scalar, symbol_name, worker_bytes,
};
use crate::codegen::c_family::indent;
use crate::codegen::c_family::terms::type_name;
use crate::codegen::foreign::{comment, literal};
use crate::graph::{Collective, CollectiveKind, RankReduction};
use crate::kernels::Scratch;
use crate::kernels::gemm::tensor_map::Window;
use crate::runplan::late::symbols_of_scratch;
use crate::runplan::{
    Action, Allocate, Assert, Call, Condition, Exchange, FailureId, Launch, Map, Place, Pointer, Read,
    RunPlan,
};
use crate::symbolic::{Expr, Symbol};
use std::collections::BTreeSet;

/// How the run names functions of kernels, and what they take.
pub(in crate::codegen) trait Callees {
    /// A call on the host; sizes and tensors follow.
    fn call(&self, call: &Call) -> String;
    /// A launch on a device, with what is said of it after its end.
    fn launch(&self, launch: &Launch) -> (String, String);
    /// A size as an argument.
    fn size(&self, call: &Call, symbol: Symbol) -> String;
}

/// The statements of a run, with the sizes that they mention.
pub(in crate::codegen) fn run_body<C: Callees>(plan: &RunPlan, callees: &C) -> String {
    let printer = Printer { plan, callees };
    let body = printer.actions(&plan.actions);
    let mut used = BTreeSet::new();
    symbols_of(&plan.actions, &mut used);
    let sizes: String = used
        .iter()
        .map(|symbol| format!("  i64 {} = run.symbols[{}];\n", symbol_name(*symbol), symbol.index))
        .collect();
    format!("  (void)run;\n{sizes}{}  return 0;\n", indent(&body, 1))
}

/// The function that runs the model at one level, and the one that tells its scratch.
pub(in crate::codegen) fn run_functions<C: Callees>(
    plan: &RunPlan,
    callees: &C,
    scratch: &BTreeSet<Scratch>,
    identifier: &str,
) -> String {
    let mut all = BTreeSet::new();
    for Scratch { shared, worker, units } in scratch {
        [shared, worker].into_iter().chain(units).for_each(|bytes| bytes.collect_symbols(&mut all));
    }
    let all: String = all.iter().map(|symbol| format!("  const i64 {};\n", known(*symbol))).collect();
    let largest: String =
        scratch.iter().map(|need| format!("  bytes = max_i64(bytes, {});\n", scratch_bytes(need))).collect();
    format!(
        "extern \"C\" int32_t AOTI_LEVEL_NAME(aoti_{identifier}_run)(const Run &run) {{\n{}}}\n\n\
         extern \"C\" int64_t AOTI_LEVEL_NAME(aoti_{identifier}_scratch)(const int64_t *symbols, int64_t threads) {{\n\
         \x20 (void)symbols, (void)threads;\n{all}  i64 bytes = 0;\n{largest}  return bytes;\n}}\n",
        run_body(plan, callees)
    )
}

/// Bytes of scratch over the size symbols and `threads`.
fn scratch_bytes(scratch: &Scratch) -> String {
    let (shared, worker) = (scalar(&scratch.shared), format!("threads * ({})", worker_bytes(scratch)));
    match (scratch.shared.is(0), scratch.has_no_workers()) {
        (_, true) => shared,
        (true, false) => worker,
        (false, false) => format!("{shared} + {worker}"),
    }
}

/// The same with overflow noticed, where a run allocates it.
fn checked_bytes(Scratch { shared, worker, units }: &Scratch) -> String {
    let own = match units {
        None if worker.is(0) => return checked(shared),
        None => checked(worker),
        Some(units) => format!("(has_matrix_units() ? {} : {})", checked(units), checked(worker)),
    };
    format!("{} + Checked(run.context->threads) * {own}", checked(shared))
}

fn known(symbol: Symbol) -> String {
    format!("{} = symbols[{}]", symbol_name(symbol), symbol.index)
}

struct Printer<'a, C> {
    plan: &'a RunPlan,
    callees: &'a C,
}

impl<C: Callees> Printer<'_, C> {
    fn actions(&self, actions: &[Action]) -> String {
        actions.iter().map(|action| self.action(action)).collect()
    }

    fn action(&self, action: &Action) -> String {
        match action {
            Action::Call(call) => format!("{}{});\n", self.callees.call(call), self.arguments(call)),
            Action::Launch(launch) => {
                let (head, note) = self.callees.launch(launch);
                let library = launch.product.as_ref().map_or_else(String::new, |product| {
                    let matrices = product.matrices.each_ref().map(pointer).join(", ");
                    let (kernel, number) = (launch.call.kernel.as_u32(), product.number);
                    let workspace = pointer(&product.workspace);
                    format!("if (!multiply(run, {kernel}, {number}, {workspace}, {matrices}))\n  ")
                });
                let kernel = launch.call.kernel.as_u32();
                let name = |position: usize| format!("map_{kernel}_{position}");
                let maps = launch.maps.iter().enumerate();
                let made: String = maps
                    .clone()
                    .map(|(position, own)| format!("const TensorMap {} = {};\n", name(position), map(own)))
                    .collect();
                let given: String = maps.map(|(position, _)| format!(", {}", name(position))).collect();
                let arguments = self.arguments(&launch.call);
                format!("{made}{library}{head}{given}{arguments}); {}", comment(&note))
            }
            Action::Exchange(own) => self.exchange(own),
            Action::Read(Read { from, symbol, range, failure }) => {
                let (name, from) = (symbol_name(*symbol), pointer(from));
                let [min, max] = [range.min, range.max].map(|bound| scalar(&Expr::int(bound)));
                format!(
                    "{name} = run.symbols[{}] = read<i64>(run, {from});\nif ({name} < {min} || {name} > {max}) return {};\n",
                    symbol.index,
                    self.code(*failure)
                )
            }
            Action::Assert(Assert { condition, failure }) => {
                let condition = match condition {
                    Condition::Holds(flag) => flag_text(flag),
                    Condition::Sizes(guard) => format!("({})", condition_text(&guard.condition)),
                    Condition::Succeeded(report) => {
                        format!("(read<i32>(run, (const i32 *){}) == 0)", pointer(report))
                    }
                };
                format!("if (!{condition}) return {};\n", self.code(*failure))
            }
            Action::Allocate(Allocate { late, bytes, output, failure }) => format!(
                "if (!allocate(run, {}, size({}), {})) return -{};\n",
                late.as_u32(),
                checked_bytes(bytes),
                output.map_or_else(|| "-1".to_owned(), |position| position.to_string()),
                self.code(*failure)
            ),
            Action::Free(late) => format!("release(run, {});\n", late.as_u32()),
            Action::If { predicate, then, otherwise } => format!(
                "if ({}) {{\n{}}} else {{\n{}}}\n",
                flag_text(predicate),
                indent(&self.actions(then), 1),
                indent(&self.actions(otherwise), 1)
            ),
            Action::Loop { condition, predicate, body } => format!(
                "for (;;) {{\n{}  if (!{} || has_fault(run)) break;\n{}}}\n",
                indent(&self.actions(condition), 1),
                flag_text(predicate),
                indent(&self.actions(body), 1)
            ),
        }
    }

    fn exchange(&self, own: &Exchange) -> String {
        let Exchange { kernel, collective: Collective { kind, group }, input, given, output, made, failure } =
            own;
        let kernel = kernel.as_u32();
        let lists = match kind {
            CollectiveKind::AllToAll { send, receive } => Some([("send", send), ("receive", receive)]),
            CollectiveKind::AllReduce(_)
            | CollectiveKind::AllGather { .. }
            | CollectiveKind::ReduceScatter { .. }
            | CollectiveKind::Broadcast { .. } => None,
        };
        let list = |(name, sizes): (&str, &Vec<Expr>)| {
            let sizes: Vec<String> = sizes.iter().map(scalar).collect();
            format!("const i64 {name}_{kernel}[] = {{{}}};\n", sizes.join(", "))
        };
        let blocks = match lists {
            Some(_) => format!("send_{kernel}, receive_{kernel}"),
            None => "nullptr, nullptr".to_owned(),
        };
        let root = if let CollectiveKind::Broadcast { root } = kind { *root } else { 0 };
        format!(
            "{}if (!exchange(run, {kernel}, {{AOTI_{}, {}, {}, {}, {root}, {}, {}, {}, {blocks}}}, {}, {})) return {};\n",
            lists.into_iter().flatten().map(list).collect::<String>(),
            kind.name().to_uppercase(),
            kind.reduction().map_or(0, RankReduction::code),
            input.dtype.code(),
            kind.ranks().unwrap_or(0),
            literal(group),
            scalar(given),
            scalar(made),
            pointer(input),
            pointer(output),
            self.code(*failure)
        )
    }

    /// What a kernel is given besides the run, a comma before each.
    fn arguments(&self, call: &Call) -> String {
        let tensors = call.tensors.iter().map(pointer);
        let sizes = call.sizes.iter().map(|symbol| self.callees.size(call, *symbol));
        tensors.chain(sizes).map(|argument| format!(", {argument}")).collect()
    }

    /// What the run returns for a failure: zero is success.
    fn code(&self, failure: FailureId) -> usize {
        debug_assert!(self.plan.failures.is_valid(failure), "plans name failures that they have");
        failure.as_u32() as usize + 1
    }
}

/// A boolean that a kernel wrote.
fn flag_text(flag: &Pointer) -> String {
    format!("read<bool>(run, {})", pointer(flag))
}

fn pointer(pointer: &Pointer) -> String {
    let (name, position) = match &pointer.place {
        Place::Input(position) => ("input", position.to_string()),
        Place::Output(position) => ("output", position.to_string()),
        Place::State(offset) => ("state", offset.to_string()),
        Place::Generator => ("generator", "0".to_owned()),
        Place::Weights(offset) => ("weights", offset.to_string()),
        Place::Expanded(offset) => ("expanded", offset.to_string()),
        Place::Arena(offset) => ("arena", scalar(offset)),
        Place::Late(late) => ("late", late.as_u32().to_string()),
    };
    let start = if pointer.start.is(0) { String::new() } else { format!(", {}", scalar(&pointer.start)) };
    format!("{name}<{}>(run, {position}{start})", type_name(pointer.dtype))
}

fn map(Map { tensor, sizes, strides, extents, window }: &Map) -> String {
    let numbers = |own: &[i64]| own.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
    let list = |sizes: &[Expr]| sizes.iter().map(scalar).collect::<Vec<_>>().join(", ");
    let boxes = format!(
        "Boxes<{}>{{{{{}}}, {{{}}}, {{{}}}}}",
        sizes.len(),
        list(sizes),
        list(strides),
        numbers(extents)
    );
    let windows = window.as_ref().map_or_else(String::new, |Window { lower, upper, steps }| {
        let [lower, upper, steps] = [lower, upper, steps].map(|own| numbers(own));
        format!(", Windows<{}>{{{{{lower}}}, {{{upper}}}, {{{steps}}}}}", sizes.len() - 2)
    });
    format!("tensor_map<{}>(run, {}, {boxes}{windows})", type_name(tensor.dtype), pointer(tensor))
}

/// The sizes that the actions mention.
fn symbols_of(actions: &[Action], symbols: &mut BTreeSet<Symbol>) {
    Action::walk(actions, &mut |action| match action {
        Action::Call(call) => symbols_of_call(call, symbols),
        Action::Launch(Launch { call, grid, block: _, shared, persistent: _, part: _, maps, product: _ }) => {
            symbols_of_call(call, symbols);
            grid.iter().chain([shared]).for_each(|size| size.collect_symbols(symbols));
            maps.iter().for_each(|map| symbols_of_map(map, symbols));
        }
        Action::Exchange(Exchange { collective, input, given, output, made, kernel: _, failure: _ }) => {
            collective.kind.sizes().chain([given, made]).for_each(|size| size.collect_symbols(symbols));
            [input, output].into_iter().for_each(|tensor| symbols_of_pointer(tensor, symbols));
        }
        Action::Read(Read { from, symbol, .. }) => {
            symbols_of_pointer(from, symbols);
            symbols.insert(*symbol);
        }
        Action::Assert(Assert { condition: Condition::Holds(flag) | Condition::Succeeded(flag), .. })
        | Action::If { predicate: flag, .. }
        | Action::Loop { predicate: flag, .. } => symbols_of_pointer(flag, symbols),
        Action::Assert(Assert { condition: Condition::Sizes(guard), .. }) => {
            symbols.extend(guard.condition.symbols());
        }
        Action::Allocate(Allocate { bytes, .. }) => symbols_of_scratch(bytes, symbols),
        Action::Free(_) => {}
    });
}

fn symbols_of_call(call: &Call, symbols: &mut BTreeSet<Symbol>) {
    call.tensors.iter().for_each(|tensor| symbols_of_pointer(tensor, symbols));
    symbols.extend(&call.sizes);
}

fn symbols_of_map(map: &Map, symbols: &mut BTreeSet<Symbol>) {
    symbols_of_pointer(&map.tensor, symbols);
    map.sizes.iter().chain(&map.strides).for_each(|size| size.collect_symbols(symbols));
}

fn symbols_of_pointer(pointer: &Pointer, symbols: &mut BTreeSet<Symbol>) {
    if let Place::Arena(offset) = &pointer.place {
        offset.collect_symbols(symbols);
    }
    pointer.start.collect_symbols(symbols);
}
