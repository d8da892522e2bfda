//! The kernel functions of a model, printed: kernels that do the same are one function, which is compiled once.

use super::c_family::expr::symbol_name;
use super::c_family::indent;
use super::cpp::{KernelText, print_kernel};
use super::foreign::{comment, shown};
use super::merging::{Merged, merge, plain};
use super::names::{Language, Namer};
use super::run::Callees;
use crate::graph::Origin;
use crate::loops::KernelKind;
use crate::runplan::{Call, Launch};
use crate::schedule::{FunctionId, Schedule};
use crate::symbolic::Symbol;
use cranelift_entity::{EntityRef, PrimaryMap};
use std::collections::BTreeSet;

/// A kernel function and its text.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) text: KernelText,
    /// The function that it calls with its sizes, as the index of [`Functions::merged`].
    pub(super) merged: Option<usize>,
}

/// A function that several kernels call, each with its own sizes.
pub(super) struct MergedFunction {
    name: String,
    declaration: String,
    body: String,
}

/// How much code a call is, as [`KernelText::weight`] counts it.
const CALL_WEIGHT: usize = 1;

/// All kernel functions of a model.
pub(super) struct Functions {
    pub(super) all: PrimaryMap<FunctionId, Function>,
    /// What several of them call.
    pub(super) merged: Vec<MergedFunction>,
}

/// Names of the run's own parameters and of what its header gives; a kernel must not hide them.
const RESERVED: [&str; 13] = [
    "run", "call", "copy", "read", "input", "output", "state", "weights", "arena", "late", "allocate",
    "release", "symbols",
];

impl Functions {
    /// Those of a schedule's kernels.
    pub(super) fn of(schedule: &Schedule) -> Functions {
        let program = &schedule.program;
        let mut namer = Namer::new(Language::C);
        let called = program.kernels.values().filter_map(|kernel| {
            let KernelKind::Extern(own) = &kernel.kind else { return None };
            own.function().map(|call| call.symbol.as_str())
        });
        for name in RESERVED.into_iter().chain(called) {
            namer.reserve(name);
        }
        let mut all: PrimaryMap<FunctionId, Function> = PrimaryMap::new();
        for id in program.running() {
            let kernel = &program.kernels[id];
            for function in &schedule.calls[id].functions {
                if let Some(known) = all.get_mut(*function) {
                    join_origins(&mut known.text.origins, &kernel.origins);
                } else {
                    let name = namer.name(&format!("k_{}", kernel.name));
                    let text = print_kernel(schedule, id);
                    let pushed = all.push(Function { name, text, merged: None });
                    debug_assert_eq!(
                        pushed, *function,
                        "functions are numbered in the order of their kernels"
                    );
                }
            }
        }
        let merged = merge_functions(&mut all, &mut namer);
        Functions { all, merged }
    }

    /// Definitions of some kernels, with what they call before the first of those who do.
    pub(super) fn definitions(&self, kernels: &[&Function], linkage: &str) -> String {
        let mut printed = BTreeSet::new();
        let mut text = String::new();
        for function in kernels {
            if let Some(merged) = function.merged.filter(|merged| printed.insert(*merged)) {
                text.push_str(&self.merged[merged].definition());
            }
            text.push_str(&function.definition(linkage));
        }
        text
    }

    /// The functions' declarations, one a line.
    pub(super) fn declarations(&self) -> String {
        self.all.values().map(|f| format!("void {}({});\n", f.name, f.text.declaration)).collect()
    }
}

/// Makes kernels that differ in sizes alone calls of one function.
fn merge_functions(all: &mut PrimaryMap<FunctionId, Function>, namer: &mut Namer) -> Vec<MergedFunction> {
    let marked: Vec<_> =
        all.values().map(|one| (one.text.declaration.as_str(), one.text.body.as_str())).collect();
    let merged = merge(&marked);
    for function in all.values_mut() {
        function.text.body = plain(&function.text.body);
    }
    let one = |(index, Merged { kernels, body, parameters, arguments }): (usize, Merged)| {
        let first = &all[FunctionId::new(kernels[0])];
        let name = namer.name(&format!("{}_sized", first.name));
        let own = &first.text.declaration;
        let sizes = parameters.iter().map(|parameter| format!(", i64 {parameter}"));
        let declaration = sizes.fold(own.clone(), |all, size| all + &size);
        let given: Vec<&str> = own.split(", ").map(declared).collect();
        let given = given.join(", ");
        for (position, (kernel, sizes)) in kernels.into_iter().zip(arguments).enumerate() {
            let sizes = sizes.iter().map(|size| format!(", {}", plain(size)));
            let call = sizes.fold(format!("{name}({given}"), |all, size| all + &size);
            let function = &mut all[FunctionId::new(kernel)];
            function.text.body = format!("{call});\n");
            function.merged = Some(index);
            if position > 0 {
                function.text.weight = CALL_WEIGHT;
            }
        }
        MergedFunction { name, declaration, body }
    };
    merged.into_iter().enumerate().map(one).collect()
}

/// The name that a declaration of a parameter ends with.
fn declared(parameter: &str) -> &str {
    parameter.rsplit([' ', '*', '&']).next().unwrap_or(parameter)
}

impl Callees for Functions {
    fn call(&self, call: &Call) -> String {
        let run = match call.scratch {
            None => "run".to_owned(),
            Some(late) => format!("with_scratch(run, {})", late.as_u32()),
        };
        format!("call({run}, {}, {}", call.kernel.as_u32(), self.all[call.function].name)
    }

    fn launch(&self, _: &Launch) -> (String, String) {
        unreachable!("kernels of processors are called")
    }

    fn size(&self, _: &Call, symbol: Symbol) -> String {
        symbol_name(symbol)
    }
}

impl MergedFunction {
    /// The definition. Inlined, it would be compiled once for each of those who call it.
    fn definition(&self) -> String {
        let MergedFunction { name, declaration, body } = self;
        format!("static AOTI_NOINLINE void {name}({declaration}) {{\n  (void)run;\n{}}}\n\n", indent(body, 1))
    }
}

impl Function {
    /// The definition, below comments that say which parts of the model it computes.
    pub(super) fn definition(&self, linkage: &str) -> String {
        format!(
            "{}{linkage}void {}({}) {{\n  (void)run;\n{}}}\n\n",
            notes(&self.text.origins),
            self.name,
            self.text.declaration,
            indent(&self.text.body, 1)
        )
    }
}

/// Comments that say which parts of the model a function computes.
pub(super) fn notes(origins: &[Origin]) -> String {
    const SHOWN: usize = 12;
    let mut text = String::new();
    for origin in origins.iter().take(SHOWN) {
        let parts = [origin.node.as_str(), origin.source.as_str()];
        let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        let line = parts.join(" at ");
        text.push_str(&comment(&shown(&line.replace('\n', " "))));
    }
    if origins.len() > SHOWN {
        text.push_str(&comment(&format!("and {} more", origins.len() - SHOWN)));
    }
    text
}

/// Adds origins that are not yet there.
pub(super) fn join_origins(all: &mut Vec<Origin>, others: &[Origin]) {
    for origin in others {
        if !all.contains(origin) {
            all.push(origin.clone());
        }
    }
}
