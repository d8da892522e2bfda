//! The kernel functions of a model, printed: kernels that do the same are one function, which is compiled once.

use super::c_family::expr::symbol_name;
use super::c_family::indent;
use super::cpp::{KernelText, print_kernel};
use super::foreign::{comment, shown};
use super::names::{Language, Namer};
use super::run::Callees;
use crate::graph::Origin;
use crate::loops::KernelKind;
use crate::runplan::{Call, Launch};
use crate::schedule::{FunctionId, Schedule};
use crate::symbolic::Symbol;
use cranelift_entity::PrimaryMap;

/// A kernel function and its text.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) text: KernelText,
}

/// All kernel functions of a model.
pub(super) struct Functions {
    pub(super) all: PrimaryMap<FunctionId, Function>,
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
                    let pushed = all.push(Function { name, text: print_kernel(schedule, id) });
                    debug_assert_eq!(
                        pushed, *function,
                        "functions are numbered in the order of their kernels"
                    );
                }
            }
        }
        Functions { all }
    }

    /// The functions' declarations, one a line.
    pub(super) fn declarations(&self) -> String {
        self.all.values().map(|f| format!("void {}({});\n", f.name, f.text.declaration)).collect()
    }
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
