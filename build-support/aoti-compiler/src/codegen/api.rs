//! The file with the model's tables: what `include/aoti/model.h` makes the C interface of. Everything that is the same
//! for all models is there; here are names, sizes, addresses and texts.

use super::c_family::expr::{checked, condition, scalar, symbol_name};
use super::foreign::{comment, literal};
use super::interface::{DimInterface, Interface, ValueInterface};
use super::prepare;
use super::run::{Place, RunPlan};
use crate::graph::SymbolSource;
use crate::loops::{BufferId, Program};
use crate::schedule::memory::most;
use crate::symbolic::{Expr, Node, RangeTable, Ranges, Symbol};
use indexmap::IndexSet;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The level's part in identifiers and file names: `v3`, `native`, `base`.
pub(super) fn level_tag(name: &str) -> String {
    match name {
        "x86-64" => "base".to_owned(),
        _ => name.strip_prefix("x86-64-").unwrap_or(name).replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
    }
}

/// The function that tells what a processor lacks to run a level.
fn lacks(level: &str) -> &'static str {
    match level {
        "x86-64-v3" => "lacks_x86_64_v3",
        "x86-64-v4" => "lacks_x86_64_v4",
        // The baseline of a target runs everywhere; `native` is for the machine that builds.
        _ => "lacks_nothing",
    }
}

/// What the tables are printed from.
pub(super) struct Api<'a> {
    pub(super) program: &'a Program,
    pub(super) ranges: &'a RangeTable,
    pub(super) run: &'a RunPlan,
    pub(super) interface: &'a Interface,
    pub(super) identifier: &'a str,
    /// What stands for the model in symbols that are its own among all models.
    pub(super) symbol: &'a str,
    pub(super) levels: &'a [String],
    /// The levels' parts in identifiers.
    pub(super) tags: &'a [String],
    pub(super) embedded: bool,
    /// Digest of all that is compiled into the library.
    pub(super) library: String,
    /// What makes weights from tensors by name, if the library does that.
    pub(super) preparation: Option<&'a prepare::Printed>,
}

/// Tables that others point to, each once.
#[derive(Default)]
struct Shared {
    /// Bounds of the dimensions of a tensor.
    dims: IndexSet<Vec<DimInterface>>,
    /// Numbers of the expressions of a tensor's sizes.
    numbers: IndexSet<Vec<i64>>,
}

impl Shared {
    fn dims(&mut self, dims: &[DimInterface]) -> String {
        if dims.is_empty() { "nullptr".to_owned() } else { numbered("dims", &mut self.dims, dims.to_vec()) }
    }

    fn numbers(&mut self, numbers: Vec<i64>) -> String {
        if numbers.iter().all(|number| *number < 0) {
            return "nullptr".to_owned();
        }
        numbered("numbers", &mut self.numbers, numbers)
    }

    fn print(&self) -> String {
        let dim = |dim: &DimInterface| {
            let expression = dim.expression.as_deref().map_or_else(|| "nullptr".to_owned(), literal);
            format!("{{{expression}, {}, {}}}", dim.min, dim.max)
        };
        let mut out = String::new();
        for (index, dims) in self.dims.iter().enumerate() {
            let dims: Vec<String> = dims.iter().map(dim).collect();
            let _ = writeln!(out, "constexpr AotiDimInfo dims_{index}[] = {{{}}};", dims.join(", "));
        }
        for (index, numbers) in self.numbers.iter().enumerate() {
            let numbers: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            let _ = writeln!(out, "constexpr int32_t numbers_{index}[] = {{{}}};", numbers.join(", "));
        }
        out
    }
}

fn numbered<T: std::hash::Hash + Eq>(kind: &str, set: &mut IndexSet<T>, item: T) -> String {
    format!("{kind}_{}", set.insert_full(item).0)
}

/// Expressions that are evaluated together.
#[derive(Default)]
struct Expressions(IndexSet<Expr>);

impl Expressions {
    /// The number of an expression, or -1 where it is a constant.
    fn number(&mut self, expr: &Expr) -> i64 {
        if expr.as_int().is_some() {
            return -1;
        }
        i64::try_from(self.0.insert_full(expr.clone()).0).expect("few")
    }

    /// The number of a bound, constants among them.
    fn bound(&mut self, expr: &Expr) -> i64 {
        i64::try_from(self.0.insert_full(expr.clone()).0).expect("few")
    }

    fn print(&self, name: &str) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut body = known(&self.0);
        for (index, expr) in self.0.iter().enumerate() {
            let _ = writeln!(body, "  values[{index}] = size({});", checked(expr));
        }
        format!("void {name}(const int64_t *symbols, int64_t *values) {{\n{body}}}\n\n")
    }

    /// The entry of the tables.
    fn entry(&self, name: &str) -> String {
        if self.0.is_empty() { "{0, nullptr}".to_owned() } else { format!("{{{}, {name}}}", self.0.len()) }
    }
}

/// Declares the symbols that expressions mention.
fn known<'e>(exprs: impl IntoIterator<Item = &'e Expr>) -> String {
    let mut symbols = BTreeSet::new();
    exprs.into_iter().for_each(|expr| expr.collect_symbols(&mut symbols));
    let line =
        |symbol: &Symbol| format!("  const i64 {} = symbols[{}];\n", symbol_name(*symbol), symbol.index);
    symbols.iter().map(line).collect()
}

/// A table, or a null pointer where it would be empty.
pub(super) fn table(out: &mut String, ty: &str, name: &str, rows: &[String]) -> String {
    if rows.is_empty() {
        return "nullptr".to_owned();
    }
    let _ = writeln!(out, "constexpr {ty}{name}[] = {{\n    {},\n}};", rows.join(",\n    "));
    name.to_owned()
}

impl Api<'_> {
    /// The whole file.
    pub(super) fn print(&self) -> String {
        let id = self.symbol;
        let (mut shared, mut rows) = (Shared::default(), String::new());
        let (mut sizes, mut kernel_sizes) = (Expressions::default(), Expressions::default());
        let info = self.info(&mut shared, &mut rows);
        let kernel_outputs = self.kernel_outputs(&mut shared, &mut kernel_sizes, &mut rows);
        let input_sizes = self.sizes(&self.program.inputs, &mut shared, &mut sizes);
        let input_sizes = pointers(&mut rows, "input_sizes", &input_sizes);
        let output_sizes = self.sizes(&self.program.outputs, &mut shared, &mut sizes);
        let output_sizes = pointers(&mut rows, "output_sizes", &output_sizes);
        let most_sizes = self.most_sizes(&mut shared, &mut sizes);
        let most_sizes = pointers(&mut rows, "most_sizes", &most_sizes);
        let failure_symbols = self.failure_symbols(&mut rows);
        let symbols = table(&mut rows, "Symbol ", "symbols", &self.symbols());
        let texts = |texts: Vec<&String>| texts.into_iter().map(|text| literal(text)).collect::<Vec<_>>();
        let failures =
            table(&mut rows, "const char *", "failures", &texts(self.run.failures.values().collect()));
        let sites = table(&mut rows, "const char *", "sites", &texts(self.program.sites.iter().collect()));
        let states = self.run.states.iter();
        let states: Vec<String> =
            states.map(|state| format!("{{{}, {}, {}}}", state.offset, state.value, state.bytes)).collect();
        let states = table(&mut rows, "InitialState ", "states", &states);
        let weights = self.embedded_symbol("weights");
        let largest = |count: &dyn Fn(&super::run::KernelFacts) -> usize| {
            self.run.kernels.values().map(count).max().unwrap_or(0)
        };
        let (include, preparation, prepare) = match self.preparation {
            Some(printed) => ("#include \"aoti/prepare.h\"\n", printed.table.as_str(), prepare::ENTRIES),
            None => ("", "", "nullptr, nullptr"),
        };
        let most_outputs = largest(&|kernel| kernel.outputs.len());
        let most_dims = largest(&|kernel| kernel.outputs.iter().map(|output| output.shape.len()).sum());
        let name = super::docs::code(&self.interface.name);
        format!(
            "{}#include \"aoti/model.h\"\n{include}\n\
             using namespace aoti;\n\n{}namespace {{\n\n{}{rows}\n{}{}{}{preparation}\
             constexpr Tables tables = {{\n    &info, levels, {}, {}, {symbols},\n    {}, {input_sizes}, {output_sizes}, {most_sizes}, checks, arena_bytes,\n    \
             {failures}, {failure_symbols}, {sites}, {states}, {weights},\n    {kernel_outputs}, {}, {most_outputs}, {most_dims},\n    {prepare},\n}};\n\
             constexpr AotiApi api = Interface<tables>::table();\n\n}} // namespace\n\n\
             extern \"C\" __attribute__((visibility(\"default\"))) const AotiApi *aoti_{id}_api(void) {{ return &api; }}\n",
            comment(&format!("The C interface of the model {name}, written by cargo-aoti.")),
            self.declarations(),
            shared.print(),
            sizes.print("sizes_of_tensors"),
            kernel_sizes.print("sizes_of_kernels"),
            self.functions() + &info,
            self.levels.len(),
            self.program.symbols.len(),
            sizes.entry("sizes_of_tensors"),
            kernel_sizes.entry("sizes_of_kernels"),
        )
    }

    /// What other objects define.
    fn declarations(&self) -> String {
        let (id, symbol) = (self.identifier, self.symbol);
        let mut out = String::new();
        for tag in self.tags {
            let _ = writeln!(
                out,
                "extern \"C\" int32_t aoti_{id}_run_{tag}(const Run &);\n\
                 extern \"C\" int64_t aoti_{id}_scratch_{tag}(const int64_t *, int64_t);"
            );
        }
        if self.has_weights() {
            // Whoever embeds the weights otherwise need not tell their digest.
            let _ = writeln!(
                out,
                "extern \"C\" const char aoti_{symbol}_weights[];\n\
                 extern \"C\" __attribute__((weak, visibility(\"hidden\"))) const char aoti_{symbol}_weights_digest[];"
            );
        }
        out.push_str(self.preparation.map_or("", |printed| &printed.declarations));
        out.push('\n');
        out
    }

    /// Whether there are weights in the library.
    fn has_weights(&self) -> bool {
        self.embedded && self.interface.weights_bytes > 0
    }

    /// The symbol of something that is embedded where the weights are.
    fn embedded_symbol(&self, what: &str) -> String {
        if self.has_weights() { format!("aoti_{}_{what}", self.symbol) } else { "nullptr".to_owned() }
    }

    /// Appends what the model's info points to, and gives the info and the levels.
    fn info(&self, shared: &mut Shared, rows: &mut String) -> String {
        let i = self.interface;
        let mut values = |rows: &mut String, name: &str, values: &[ValueInterface]| {
            let lines: Vec<String> = values.iter().map(|value| value_row(value, shared)).collect();
            table(rows, "AotiValueInfo ", name, &lines)
        };
        let inputs = values(rows, "inputs", &i.inputs);
        let outputs = values(rows, "outputs", &i.outputs);
        let states = values(rows, "state_values", &i.states);
        let constants = self.constants(rows);
        let kernels = self.kernels(shared, rows);
        let levels: Vec<String> = self
            .levels
            .iter()
            .zip(self.tags)
            .map(|(level, tag)| {
                let id = self.identifier;
                let (name, lacks) = (literal(level), lacks(level));
                format!("{{{name}, {lacks}, aoti_{id}_run_{tag}, aoti_{id}_scratch_{tag}}}")
            })
            .collect();
        let mut out = String::new();
        table(&mut out, "Level ", "levels", &levels);
        let _ = writeln!(
            out,
            "constexpr AotiModelInfo info = {{\n    {}, {}, {}, {}, {}, {},\n    {inputs}, {outputs}, {constants}, {states}, {}, {},\n    {kernels}, {}, 0, {}, {},\n}};",
            literal(&i.name),
            literal(concat!("cargo-aoti ", env!("CARGO_PKG_VERSION"))),
            i.inputs.len(),
            i.outputs.len(),
            i.constants.len(),
            i.states.len(),
            i.weights_bytes,
            i.state_bytes,
            self.run.kernels.len(),
            literal(&self.library),
            self.embedded_symbol("weights_digest"),
        );
        out
    }

    fn constants(&self, rows: &mut String) -> String {
        let constants = &self.interface.constants;
        let mut lines = Vec::new();
        for (k, constant) in constants.iter().enumerate() {
            let sizes: Vec<String> = constant.sizes.iter().map(ToString::to_string).collect();
            let sizes = if sizes.is_empty() {
                "nullptr".to_owned()
            } else {
                let _ = writeln!(rows, "constexpr int64_t constant_sizes_{k}[] = {{{}}};", sizes.join(", "));
                format!("constant_sizes_{k}")
            };
            lines.push(format!(
                "{{{}, {sizes}, {}, {}, {}, {}}}",
                literal(&constant.name),
                constant.dtype as u8,
                constant.sizes.len(),
                constant.tied.map_or_else(|| "-1".to_owned(), |tied| tied.to_string()),
                u8::from(constant.is_read)
            ));
        }
        table(rows, "AotiConstantInfo ", "constants", &lines)
    }

    fn kernels(&self, shared: &mut Shared, rows: &mut String) -> String {
        let (mut values, mut lines) = (Vec::new(), Vec::new());
        for kernel in self.run.kernels.values() {
            let first = values.len();
            for output in &kernel.outputs {
                let dims = output.shape.iter().map(|size| DimInterface::of(self.program, self.ranges, size));
                let (name, dtype, dims) = (output.name.clone(), output.tensor.dtype, dims.collect());
                values.push(value_row(&ValueInterface { name, dtype, dims }, shared));
            }
            let calls = lines_of(kernel.origins.iter().map(|origin| origin.node.as_str()));
            let source = lines_of(kernel.origins.iter().map(|origin| origin.source.as_str()));
            let module = kernel.origins.iter().map(|origin| origin.module.as_str()).find(|m| !m.is_empty());
            // The offset is from the first of all, so that positions follow from addresses.
            lines.push(format!(
                "{{{}, {},\n     {},\n     {}, {}, {}, AOTI_CPU}}",
                literal(&kernel.name),
                literal(&calls),
                literal(&source),
                literal(module.unwrap_or("")),
                if kernel.outputs.is_empty() {
                    "nullptr".to_owned()
                } else {
                    format!("kernel_values + {first}")
                },
                kernel.outputs.len()
            ));
        }
        table(rows, "AotiValueInfo ", "kernel_values", &values);
        table(rows, "AotiKernelInfo ", "kernels", &lines)
    }

    /// Where kernels write, in the order of `kernel_values`.
    fn kernel_outputs(&self, shared: &mut Shared, sizes: &mut Expressions, rows: &mut String) -> String {
        let mut lines = Vec::new();
        for output in self.run.kernels.values().flat_map(|kernel| &kernel.outputs) {
            let (place, offset) = match &output.tensor.place {
                Place::Output(position) => ("output", Expr::int(i64::try_from(*position).expect("few"))),
                Place::State(offset) => ("state", Expr::int(i64::try_from(*offset).expect("within memory"))),
                Place::Arena(offset) => ("arena", offset.clone()),
                Place::Input(_) | Place::Weights(_) => unreachable!("kernels write no inputs and no weights"),
            };
            let numbers = output.shape.iter().map(|size| sizes.number(size)).collect();
            let (number, fixed) = (sizes.number(&offset), offset.as_int().unwrap_or(0));
            lines.push(format!("{{Place::{place}, {number}, {fixed}, {}}}", shared.numbers(numbers)));
        }
        table(rows, "KernelOutput ", "kernel_outputs", &lines)
    }

    /// For each tensor of the caller, the numbers of its sizes that are expressions.
    fn sizes(&self, ids: &[BufferId], shared: &mut Shared, sizes: &mut Expressions) -> Vec<String> {
        let of = |id: &BufferId| {
            let shape = self.program.buffers[*id].shape.iter().enumerate();
            let number = |(axis, size): (usize, &Expr)| {
                // Where a symbol is read from, there is nothing to compare it with.
                if self.binds(size, *id, axis) { -1 } else { sizes.number(size) }
            };
            shared.numbers(shape.map(number).collect())
        };
        ids.iter().map(of).collect()
    }

    /// The same for the most that outputs may need, before a run has read its sizes from data.
    fn most_sizes(&self, shared: &mut Shared, sizes: &mut Expressions) -> Vec<String> {
        let symbols = &self.program.symbols;
        let of = |id: &BufferId| {
            let shape = &self.program.buffers[*id].shape;
            // A size that is fixed only as a bound is told by an expression too.
            let number = |size: &Expr| {
                if size.as_int().is_some() { -1 } else { sizes.bound(&most(symbols, size, self.ranges)) }
            };
            shared.numbers(shape.iter().map(number).collect())
        };
        self.program.outputs.iter().map(of).collect()
    }

    /// For each failure the sizes that it is about, ended by -1.
    fn failure_symbols(&self, rows: &mut String) -> String {
        let about = self.run.failure_symbols();
        let mut lists = Vec::new();
        for id in self.run.failures.keys() {
            if about[id].is_empty() {
                lists.push("nullptr".to_owned());
                continue;
            }
            let numbers: Vec<String> = about[id].iter().map(|symbol| symbol.index.to_string()).collect();
            let name = format!("failure_symbols_{}", id.as_u32());
            let _ = writeln!(rows, "constexpr int32_t {name}[] = {{{}, -1}};", numbers.join(", "));
            lists.push(name);
        }
        pointers(rows, "failure_symbols", &lists)
    }

    /// Whether this size is where its symbol is read from.
    fn binds(&self, size: &Expr, buffer: BufferId, axis: usize) -> bool {
        let Node::Sym(symbol) = size.node() else { return false };
        let Some(info) = self.program.symbols.get(symbol.index as usize) else { return false };
        match info.source {
            SymbolSource::InputDim { input, axis: own } => {
                own == axis && self.graph_input(input) == Some(buffer)
            }
            SymbolSource::InputValue { .. } | SymbolSource::Data => false,
        }
    }

    /// The buffer of an input counted with the states.
    fn graph_input(&self, input: usize) -> Option<BufferId> {
        self.program.graph_inputs.get(input).copied()
    }

    fn user_position(&self, input: usize) -> usize {
        let buffer = self.graph_input(input);
        self.program.inputs.iter().position(|own| Some(*own) == buffer).unwrap_or(0)
    }

    fn symbols(&self) -> Vec<String> {
        let symbols = self.program.symbols.iter().enumerate();
        symbols
            .map(|(k, info)| {
                let symbol = Symbol::size(u32::try_from(k).expect("symbols are few"));
                let (from, input, axis, range) = match info.source {
                    SymbolSource::InputDim { input, axis } => {
                        ("dimension", self.user_position(input), axis, info.range)
                    }
                    SymbolSource::InputValue { input } => ("value", self.user_position(input), 0, info.range),
                    SymbolSource::Data => ("data", 0, 0, self.ranges.range(symbol)),
                };
                let [min, max] = [range.min, range.max].map(|bound| scalar(&Expr::int(bound)));
                format!("{{From::{from}, {input}, {axis}, {}, {min}, {max}}}", literal(&info.name))
            })
            .collect()
    }

    /// Checks of the sizes, and the arena's length.
    fn functions(&self) -> String {
        let checks = &self.run.checks;
        let mut out = String::from("int32_t checks(const int64_t *symbols) {\n  (void)symbols;\n");
        out.push_str(&known(checks.iter().flat_map(|check| check.holds.condition.expressions())));
        for check in checks {
            let code = check.failure.as_u32() + 1;
            let _ = writeln!(out, "  if (!({})) return {code};", condition(&check.holds.condition));
        }
        let arena = &self.run.arena_bytes;
        let _ = write!(
            out,
            "  return 0;\n}}\n\nint64_t arena_bytes(const int64_t *symbols) {{\n  (void)symbols;\n{}  return size({});\n}}\n\n",
            known([arena]),
            checked(arena)
        );
        out
    }
}

/// The row of a tensor in a table.
fn value_row(value: &ValueInterface, shared: &mut Shared) -> String {
    let (name, dtype, rank) = (literal(&value.name), value.dtype as u8, value.dims.len());
    format!("{{{name}, {dtype}, {rank}, {}}}", shared.dims(&value.dims))
}

/// A table of tables, unless all of them are empty.
fn pointers(rows: &mut String, name: &str, lists: &[String]) -> String {
    if lists.iter().all(|list| list == "nullptr") {
        return "nullptr".to_owned();
    }
    table(rows, "const int32_t *", name, lists)
}

/// Distinct lines, in order, without those that are empty.
fn lines_of<'a>(lines: impl Iterator<Item = &'a str>) -> String {
    let distinct: IndexSet<&str> = lines.filter(|line| !line.is_empty()).collect();
    distinct.into_iter().collect::<Vec<_>>().join("\n")
}
