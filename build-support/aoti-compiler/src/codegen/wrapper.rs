//! The C++ around the kernels: one function that calls them in order, and the table that callers see.

use super::c_family::expr::{scalar, symbol_name};
use super::c_family::indent;
use super::c_family::terms::type_name;
use super::cpp::{KernelText, print_kernel};
use super::interface::{ConstantInterface, DimInterface, Interface, ValueInterface};
use super::names::{Language, Namer};
use super::weights::{Layout, Packing, Placed};
use crate::dtype::DType;
use crate::graph::SymbolSource;
use crate::loops::{BufferId, Kernel, Program, Step, Storage};
use crate::schedule::memory::MemoryPlan;
use crate::symbolic::{Expr, RangeTable, Ranges, Symbol};
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::fmt::Write;

/// A distinct kernel function.
pub(super) struct Function {
    pub(super) name: String,
    pub(super) text: KernelText,
}

/// Everything that the wrapper is printed from.
pub(super) struct Planned<'a> {
    pub(super) program: &'a Program,
    pub(super) memory: &'a MemoryPlan,
    pub(super) ranges: &'a RangeTable,
    pub(super) functions: Vec<Function>,
    pub(super) layout: Layout,
    /// Statements of the run.
    pub(super) calls: String,
    /// Distinct scratch expressions.
    scratch: BTreeSet<String>,
    placements: IndexMap<(BufferId, Packing), Placed>,
    /// Functions by their text.
    by_text: IndexMap<(String, String), usize>,
    namer: Namer,
    asserts: Vec<String>,
}

/// Prints every kernel and the calls, in order, and places the constants that they read.
pub(super) fn plan<'a>(program: &'a Program, memory: &'a MemoryPlan, ranges: &'a RangeTable) -> Planned<'a> {
    let mut planned = Planned {
        program,
        memory,
        ranges,
        functions: vec![],
        layout: Layout::default(),
        calls: String::new(),
        scratch: BTreeSet::new(),
        placements: IndexMap::new(),
        by_text: IndexMap::new(),
        namer: Namer::new(Language::C),
        asserts: vec![],
    };
    for name in
        ["run", "inputs", "outputs", "state", "weights", "arena", "symbols", "context", "scratch", "fault"]
    {
        planned.namer.reserve(name);
    }
    planned.calls = planned.steps(&program.steps);
    planned
}

impl Planned<'_> {
    fn steps(&mut self, steps: &[Step]) -> String {
        let mut text = String::new();
        for step in steps {
            match step {
                Step::Kernel(id) => text.push_str(&self.call(&self.program.kernels[*id])),
                Step::Read(buffer, symbol) => {
                    let pointer = self.pointer(*buffer, &Packing::Plain);
                    let range = self.ranges.range(*symbol);
                    let name = symbol_name(*symbol);
                    self.asserts.push(format!(
                        "the size {} that is read from data must be in {}..={}",
                        self.size_text(&Expr::sym(*symbol)),
                        range.min,
                        range.max
                    ));
                    let bounds = [range.min, range.max].map(|bound| scalar(&Expr::int(bound)));
                    let _ = write!(
                        text,
                        "{name} = *{pointer};\nif ({name} < {} || {name} > {}) return {};\n",
                        bounds[0],
                        bounds[1],
                        self.asserts.len()
                    );
                }
                Step::Assert(buffer, message) => {
                    self.asserts.push(message.clone());
                    let pointer = self.pointer(*buffer, &Packing::Plain);
                    let _ = writeln!(text, "if (!*{pointer}) return {};", self.asserts.len());
                }
                Step::If { predicate, then, otherwise } => {
                    let predicate = self.pointer(*predicate, &Packing::Plain);
                    let (then, otherwise) = (self.steps(then), self.steps(otherwise));
                    let _ = write!(
                        text,
                        "if (*{predicate}) {{\n{}}} else {{\n{}}}\n",
                        indent(&then, 1),
                        indent(&otherwise, 1)
                    );
                }
                Step::Loop { condition, predicate, body } => {
                    let condition = self.steps(condition);
                    let predicate = self.pointer(*predicate, &Packing::Plain);
                    let body = self.steps(body);
                    let _ = write!(
                        text,
                        "for (;;) {{\n{}  if (!*{predicate}) break;\n{}}}\n",
                        indent(&condition, 1),
                        indent(&body, 1)
                    );
                }
            }
        }
        text
    }

    fn call(&mut self, kernel: &Kernel) -> String {
        let text = print_kernel(self.program, kernel);
        if let Some(scratch) = &text.scratch {
            self.scratch.insert(scratch.clone());
        }
        let mut arguments = vec!["run".to_owned()];
        for buffer in &text.arguments {
            let packing = text.packed.iter().find(|packed| packed.buffer == *buffer);
            let packing = packing.map_or(Packing::Plain, |packed| packed.packing.clone());
            arguments.push(self.pointer(*buffer, &packing));
        }
        arguments.extend(text.symbols.iter().map(|symbol| symbol_name(*symbol)));
        let name = self.function(&kernel.name, text);
        format!("{name}({});\n", arguments.join(", "))
    }

    /// The name of the function with this text, new or not.
    fn function(&mut self, wanted: &str, text: KernelText) -> String {
        let key = (text.declaration.clone(), text.body.clone());
        if let Some(index) = self.by_text.get(&key) {
            let function = &mut self.functions[*index];
            for origin in text.origins {
                if !function.text.origins.contains(&origin) {
                    function.text.origins.push(origin);
                }
            }
            return function.name.clone();
        }
        let name = self.namer.name(&format!("k_{wanted}"));
        self.by_text.insert(key, self.functions.len());
        self.functions.push(Function { name: name.clone(), text });
        name
    }

    /// A pointer to a buffer as the run sees it.
    fn pointer(&mut self, id: BufferId, packing: &Packing) -> String {
        let buffer = &self.program.buffers[id];
        let element = type_name(buffer.dtype);
        match buffer.storage {
            Storage::Input(position) => format!("((const {element} *)inputs[{position}])"),
            Storage::Output(position) => format!("(({element} *)outputs[{position}])"),
            Storage::State(position) => {
                format!("(({element} *)(state + {}))", state_offsets(self.program)[position])
            }
            Storage::Constant(constant) => {
                let key = (id, packing.clone());
                if !self.placements.contains_key(&key) {
                    let placed = self.layout.place(&self.program.constants[constant], packing);
                    self.placements.insert(key.clone(), placed);
                }
                format!("((const {element} *)(weights + {}))", self.placements[&key].offset)
            }
            Storage::Temporary => {
                let offset = self.memory.offsets.get(&id).map_or_else(|| "0".to_owned(), scalar);
                format!("(({element} *)(arena + {offset}))")
            }
            Storage::Row { .. } => unreachable!("rows live inside their kernel"),
        }
    }

    /// The kernels' declarations, one a line.
    pub(super) fn declarations(&self) -> String {
        self.functions.iter().map(|f| format!("void {}({});\n", f.name, f.text.declaration)).collect()
    }

    /// The definition of one kernel.
    pub(super) fn definition(&self, function: &Function, linkage: &str) -> String {
        let mut text = String::new();
        const SHOWN: usize = 12;
        for origin in function.text.origins.iter().take(SHOWN) {
            let parts = [origin.node.as_str(), origin.source.as_str()];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let line = parts.join(" at ");
            let _ = writeln!(text, "// {}", line.replace('\n', " ").trim_end_matches('\\'));
        }
        if function.text.origins.len() > SHOWN {
            let _ = writeln!(text, "// and {} more", function.text.origins.len() - SHOWN);
        }
        let _ = write!(
            text,
            "{linkage}void {}({}) {{\n  (void)run;\n{}}}\n\n",
            function.name,
            function.text.declaration,
            indent(&function.text.body, 1)
        );
        text
    }

    /// The function that runs the model at one level, and the one that tells its scratch.
    pub(super) fn run_functions(&self, identifier: &str) -> String {
        let symbols: String = (0..self.program.symbols.len())
            .map(|k| format!("  i64 s{k} = symbols[{k}];\n  (void)s{k};\n"))
            .collect();
        let scratch = self
            .scratch
            .iter()
            .fold(String::new(), |text, bytes| format!("{text}  bytes = max_i64(bytes, {bytes});\n"));
        let found: String = self
            .program
            .symbols
            .iter()
            .enumerate()
            .filter(|(_, info)| info.source == SymbolSource::Data)
            .map(|(k, _)| format!("  symbols[{k}] = s{k};\n"))
            .collect();
        format!(
            "extern \"C\" int32_t AOTI_LEVEL_NAME(aoti_{identifier}_run)(\n\
             \x20   const void *const *inputs, void *const *outputs, char *state, const char *weights, char *arena,\n\
             \x20   int64_t *symbols, const AotiContext *context, char *scratch, int *fault) {{\n\
             \x20 const Run run{{context, scratch, fault}};\n\
             \x20 (void)inputs, (void)outputs, (void)state, (void)weights, (void)arena, (void)symbols;\n\
             {symbols}{}{found}  return 0;\n}}\n\n\
             extern \"C\" int64_t AOTI_LEVEL_NAME(aoti_{identifier}_scratch)(const int64_t *symbols, int64_t threads) {{\n\
             \x20 (void)symbols, (void)threads;\n{symbols}  i64 bytes = 0;\n{scratch}  return bytes;\n}}\n",
            indent(&self.calls, 1)
        )
    }

    /// Places what only the table needs: first values of states, and outputs that are constants were placed by calls.
    pub(super) fn place_states(&mut self) -> Vec<u64> {
        let program = self.program;
        program
            .states
            .iter()
            .map(|(_, initial)| self.layout.place(&program.constants[*initial], &Packing::Plain).offset)
            .collect()
    }

    pub(super) fn asserts(&self) -> &[String] {
        &self.asserts
    }

    /// The outside view.
    pub(super) fn interface(&self, weights_bytes: u64) -> Interface {
        let value = |id: &BufferId| {
            let buffer = &self.program.buffers[*id];
            ValueInterface {
                name: buffer.name.clone(),
                dtype: buffer.dtype,
                dims: buffer.shape.iter().map(|size| self.dim(size)).collect(),
            }
        };
        let constants = self
            .placements
            .iter()
            .filter_map(|((id, _), placed)| {
                let Storage::Constant(constant) = self.program.buffers[*id].storage else { return None };
                let constant = &self.program.constants[constant];
                (!constant.name.is_empty()).then(|| ConstantInterface {
                    name: constant.name.clone(),
                    dtype: constant.dtype,
                    sizes: constant.sizes.clone(),
                    offset: placed.offset,
                    bytes: placed.bytes,
                })
            })
            .collect();
        Interface {
            name: self.program.name.clone(),
            inputs: self.program.inputs.iter().map(value).collect(),
            outputs: self.program.outputs.iter().map(value).collect(),
            states: self.program.states.iter().map(|(buffer, _)| value(buffer)).collect(),
            constants,
            weights_bytes,
            state_bytes: state_bytes(self.program),
        }
    }

    fn dim(&self, size: &Expr) -> DimInterface {
        if let Some(size) = size.as_int() {
            return DimInterface { expression: None, min: size, max: size };
        }
        let interval = size.interval(self.ranges);
        DimInterface { expression: Some(self.size_text(size)), min: interval.min.max(0), max: interval.max }
    }

    /// A size in terms of the symbols' names.
    pub(super) fn size_text(&self, size: &Expr) -> String {
        size.display_with(&|symbol: Symbol| {
            let info = self.program.symbols.get(symbol.index as usize);
            info.map(|info| info.name.clone())
                .filter(|name| !name.is_empty())
                .unwrap_or_else(|| symbol.to_string())
        })
    }
}

/// Bytes of a buffer of fixed size.
pub(super) fn fixed_bytes(program: &Program, id: BufferId) -> u64 {
    let buffer = &program.buffers[id];
    let count = Expr::product(&buffer.shape).as_int().unwrap_or(0);
    u64::try_from(count).unwrap_or(0) * dtype_bytes(buffer.dtype)
}

fn dtype_bytes(dtype: DType) -> u64 {
    dtype.size() as u64
}

/// Where each state lies in the caller's state.
pub(super) fn state_offsets(program: &Program) -> Vec<u64> {
    let mut offset = 0u64;
    program
        .states
        .iter()
        .map(|(buffer, _)| {
            let own = offset;
            offset = (offset + fixed_bytes(program, *buffer)).next_multiple_of(64);
            own
        })
        .collect()
}

fn state_bytes(program: &Program) -> u64 {
    program
        .states
        .iter()
        .fold(0, |sum, (buffer, _)| (sum + fixed_bytes(program, *buffer)).next_multiple_of(64))
}

/// An upper bound of a symbol that is read from data, for planning before it is known.
pub(super) fn bound_of(ranges: &RangeTable, symbol: Symbol) -> i64 {
    ranges.range(symbol).max
}
