//! The distinct kernel functions of a model: kernels of equal text are one function, printed and compiled once.

use super::c_family::indent;
use super::cpp::{KernelText, print_kernel};
use super::names::{Language, Namer};
use crate::loops::KernelId;
use crate::schedule::Schedule;
use cranelift_entity::{PrimaryMap, entity_impl};
use indexmap::IndexMap;
use std::fmt::Write;

/// A kernel function.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(u32);
entity_impl!(FunctionId, "f");

/// A kernel function and its text.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) text: KernelText,
}

/// All kernel functions of a model.
pub(super) struct Functions {
    pub(super) all: PrimaryMap<FunctionId, Function>,
    by_text: IndexMap<(String, String), FunctionId>,
    namer: Namer,
}

/// Names of the run's own parameters and of what its header gives; a kernel must not hide them.
const RESERVED: [&str; 9] =
    ["run", "call", "copy", "input", "output", "state", "weights", "arena", "symbols"];

impl Functions {
    pub(super) fn new() -> Functions {
        let mut namer = Namer::new(Language::C);
        for name in RESERVED {
            namer.reserve(name);
        }
        Functions { all: PrimaryMap::new(), by_text: IndexMap::new(), namer }
    }

    /// Prints a kernel and gives its function, new or not, with this kernel's own operands.
    pub(super) fn add(&mut self, schedule: &Schedule, id: KernelId) -> (FunctionId, KernelText) {
        let text = print_kernel(schedule, id);
        let key = (text.declaration.clone(), text.body.clone());
        if let Some(&id) = self.by_text.get(&key) {
            let origins = &mut self.all[id].text.origins;
            for origin in &text.origins {
                if !origins.contains(origin) {
                    origins.push(origin.clone());
                }
            }
            return (id, text);
        }
        let name = self.namer.name(&format!("k_{}", schedule.program.kernels[id].name));
        let id = self.all.push(Function { name, text: text.clone() });
        self.by_text.insert(key, id);
        (id, text)
    }

    /// The functions' declarations, one a line.
    pub(super) fn declarations(&self) -> String {
        self.all.values().map(|f| format!("void {}({});\n", f.name, f.text.declaration)).collect()
    }
}

impl Function {
    /// The definition, below comments that say which parts of the model it computes.
    pub(super) fn definition(&self, linkage: &str) -> String {
        const SHOWN: usize = 12;
        let mut text = String::new();
        for origin in self.text.origins.iter().take(SHOWN) {
            let parts = [origin.node.as_str(), origin.source.as_str()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let line = parts.join(" at ");
            let _ = writeln!(text, "// {}", line.replace('\n', " ").trim_end_matches('\\'));
        }
        if self.text.origins.len() > SHOWN {
            let _ = writeln!(text, "// and {} more", self.text.origins.len() - SHOWN);
        }
        let _ = write!(
            text,
            "{linkage}void {}({}) {{\n  (void)run;\n{}}}\n\n",
            self.name,
            self.text.declaration,
            indent(&self.text.body, 1)
        );
        text
    }
}
