//! The tables of one device: what `include/aoti/tables.h` declares.

use super::rows::{Expressions, Shared, known, pointers, table};
use super::{Code, Device, Position, Tables};
use crate::codegen::bundle::code_symbol;
use crate::codegen::c_family::expr::{checked, condition, scalar};
use crate::codegen::foreign::{comment, literal};
use crate::codegen::prepare::ENTRIES;
use crate::dtype::DType;
use crate::graph::{Condition, Relation, SymbolSource};
use crate::kernels::gemm::library::blas_type;
use crate::loops::{BufferId, Site};
use crate::runplan::{Expanded, KernelFacts, Place, Product};
use crate::schedule::memory::{is_late, is_of_data, most};
use crate::symbolic::{Expr, Node, Ranges, Symbol};
use crate::target::Backend;
use std::fmt::Write;

/// The number of a size that nobody knows before a run (`kLate` of `tables.h`).
const LATE: i64 = -2;

/// The function that tells what a processor lacks to run a level.
fn lacks(level: &str) -> &'static str {
    match level {
        "x86-64-v3" => "lacks_x86_64_v3",
        "x86-64-v4" => "lacks_x86_64_v4",
        "rv64gcv" => "lacks_rv64gcv",
        // The baseline of a target runs everywhere; `native` is for the machine that builds.
        _ => "lacks_nothing",
    }
}

/// Everything in a device's namespace.
pub(super) fn print(api: &Tables, device: &Device, first: &Position, shared: &mut Shared) -> String {
    Printer { api, device, first }.print(shared)
}

struct Printer<'a> {
    api: &'a Tables<'a>,
    device: &'a Device<'a>,
    first: &'a Position,
}

impl Printer<'_> {
    fn print(&self, shared: &mut Shared) -> String {
        let (program, run) = (self.device.program, self.device.run);
        let mut rows = String::new();
        let (mut sizes, mut kernel_sizes) = (Expressions::default(), Expressions::default());
        let code = self.code(&mut rows);
        let kernel_outputs = self.kernel_outputs(shared, &mut kernel_sizes, &mut rows);
        let input_sizes = self.sizes(&program.inputs, shared, &mut sizes);
        let input_sizes = pointers(&mut rows, "input_sizes", &input_sizes);
        let output_sizes = self.sizes(&program.outputs, shared, &mut sizes);
        let output_sizes = pointers(&mut rows, "output_sizes", &output_sizes);
        let most_sizes = self.most_sizes(shared, &mut sizes);
        let most_sizes = pointers(&mut rows, "most_sizes", &most_sizes);
        let failure_symbols = self.failure_symbols(&mut rows);
        let symbols = table(&mut rows, "Symbol ", "symbols", &self.symbols());
        let texts = |texts: Vec<&String>| texts.into_iter().map(|text| literal(text)).collect::<Vec<_>>();
        let failures = table(&mut rows, "const char *", "failures", &texts(run.failures.values().collect()));
        let sites: Vec<String> = program.sites.iter().map(site).collect();
        let sites = table(&mut rows, "Site ", "sites", &sites);
        let states = run.states.iter();
        let states: Vec<String> =
            states.map(|state| format!("{{{}, {}, {}}}", state.offset, state.value, state.bytes)).collect();
        let states = table(&mut rows, "InitialState ", "states", &states);
        let last = self.last_entries(&mut rows);
        let weights = self.api.embedded_symbol("weights");
        let largest =
            |count: &dyn Fn(&KernelFacts) -> usize| run.kernels.values().map(count).max().unwrap_or(0);
        let most_outputs = largest(&|kernel| kernel.outputs.len());
        let most_dims = largest(&|kernel| kernel.outputs.iter().map(|output| output.shape.len()).sum());
        let kernel_values = if kernel_outputs == "nullptr" {
            "nullptr".to_owned()
        } else {
            format!("kernel_values + {}", self.first.value)
        };
        format!(
            "{rows}\n{}{}{}constexpr Tables tables = {{\n    &info, {code}, {}, {symbols},\n    \
             {}, {input_sizes}, {output_sizes}, {most_sizes}, checks, arena_bytes,\n    \
             {failures}, {failure_symbols}, {sites}, {states}, {weights},\n    \
             {kernel_outputs}, {}, {most_outputs}, {most_dims}, {}, {kernel_values},\n    {}{last},\n}};\n",
            sizes.print("sizes_of_tensors"),
            kernel_sizes.print("sizes_of_kernels"),
            self.functions(),
            program.symbols.len(),
            sizes.entry("sizes_of_tensors"),
            kernel_sizes.entry("sizes_of_kernels"),
            self.first.kernel,
            self.api.preparation.map_or("nullptr, nullptr", |_| ENTRIES),
        )
    }

    /// The code's own table; gives the tables' levels and their number.
    fn code(&self, rows: &mut String) -> String {
        let (id, symbol) = (self.api.identifier, self.api.own_symbol);
        match &self.device.code {
            Code::Levels { levels, tags, .. } => {
                let line = |(level, tag): (&String, &String)| {
                    let name = literal(level);
                    format!("{{{name}, {}, aoti_{id}_run_{tag}, aoti_{id}_scratch_{tag}}}", lacks(level))
                };
                let lines: Vec<String> = levels.iter().zip(*tags).map(line).collect();
                format!("{}, {}", table(rows, "Level ", "levels", &lines), levels.len())
            }
            Code::Gpu { vendor, architectures, kernels, weights: [begin, bytes] } => {
                let line = |kernel: &crate::codegen::gpu::program::DeviceKernel| {
                    let name = literal(&kernel.name);
                    format!("{{{name}, {}, {}, {}}}", kernel.shared, kernel.threads, kernel.producer_threads)
                };
                let lines: Vec<String> = kernels.iter().map(line).collect();
                let kernels = table(rows, "gpu::Kernel ", "device_kernels", &lines);
                let products: Vec<String> = self.device.run.products().map(product).collect();
                let count = products.len();
                let products = table(rows, "gpu::Product ", "products", &products);
                let Backend { device, maker, .. } = vendor.backend();
                let _ = writeln!(
                    rows,
                    "{}constexpr gpu::Program program = {{gpu::{maker}, {}, {kernels}, {}, {products}, {count}, aoti_{symbol}_{device}_run, {}, {}, {begin}, {bytes}}};",
                    comment(&format!("Compiled for {}.", architectures.join(", "))),
                    code_symbol(symbol, *vendor),
                    lines.len(),
                    self.device.run.launches_only(),
                    self.device.run.given_launches(),
                );
                "nullptr, 0".to_owned()
            }
        }
    }

    /// Where kernels write, in the order of `kernel_values`.
    fn kernel_outputs(&self, shared: &mut Shared, sizes: &mut Expressions, rows: &mut String) -> String {
        let mut lines = Vec::new();
        for output in self.device.run.kernels.values().flat_map(|kernel| &kernel.outputs) {
            let (place, offset) = match &output.tensor.place {
                Place::Output(position) => ("output", Expr::int(i64::try_from(*position).expect("few"))),
                Place::State(offset) => ("state", Expr::int(i64::try_from(*offset).expect("within memory"))),
                Place::Arena(offset) => ("arena", offset.clone()),
                Place::Late(late) => ("late", Expr::int(i64::from(late.as_u32()))),
                Place::Input(_) | Place::Weights(_) | Place::Expanded(_) | Place::Generator => {
                    unreachable!("kernels write neither inputs nor weights")
                }
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
            let shape = self.device.program.buffers[*id].sizes_outside().iter().enumerate();
            let number = |(axis, size): (usize, &Expr)| {
                // Where a symbol is read from, there is nothing to compare it with.
                let is_checked = self.binds(size, *id, axis) || self.compares(size, *id, axis);
                if is_checked { -1 } else { sizes.number(size) }
            };
            shared.numbers(shape.map(number).collect())
        };
        ids.iter().map(of).collect()
    }

    /// The same for the most that outputs may need, before a run has read its sizes from data.
    fn most_sizes(&self, shared: &mut Shared, sizes: &mut Expressions) -> Vec<String> {
        let symbols = &self.device.program.symbols;
        let of = |id: &BufferId| {
            let buffer = &self.device.program.buffers[*id];
            let (shape, ranges) = (buffer.sizes_outside(), self.api.ranges);
            let late = is_late(symbols, &buffer.shape, buffer.dtype, ranges);
            // A size that is fixed only as a bound is told by an expression too.
            let number = |size: &Expr| {
                if late && is_of_data(symbols, size) {
                    return LATE;
                }
                if size.as_int().is_some() { -1 } else { sizes.bound(&most(symbols, size, ranges)) }
            };
            shared.numbers(shape.iter().map(number).collect())
        };
        self.device.program.outputs.iter().map(of).collect()
    }

    /// For each failure the sizes that it is about, ended by -1.
    fn failure_symbols(&self, rows: &mut String) -> String {
        let about = self.device.run.failure_symbols();
        let mut lists = Vec::new();
        for id in self.device.run.failures.keys() {
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

    /// Which failures functions of the user's project report, what opens libraries, what expands weights, and how many pieces of
    /// memory a run allocates: the last entries of the table, which most do without.
    fn last_entries(&self, rows: &mut String) -> String {
        let late = self.device.run.late();
        let entries = [
            (self.reports(rows), "nullptr"),
            (self.opening(), "nullptr"),
            (self.expansions(rows), "nullptr, 0"),
            ((late > 0).then(|| late.to_string()), "0"),
        ];
        let count = entries.iter().rposition(|(entry, _)| entry.is_some()).map_or(0, |last| last + 1);
        let text = |(entry, none): &(Option<String>, &str)| format!(", {}", entry.as_deref().unwrap_or(none));
        entries[..count].iter().map(text).collect()
    }

    fn reports(&self, rows: &mut String) -> Option<String> {
        let reported: Vec<_> = self.device.run.reports().into_iter().map(|(failure, _)| failure).collect();
        if reported.is_empty() {
            return None;
        }
        let flags = self.device.run.failures.keys().map(|id| reported.contains(&id).to_string());
        Some(table(rows, "bool ", "reports", &[flags.collect::<Vec<_>>().join(", ")]))
    }

    fn opening(&self) -> Option<String> {
        let libraries: Vec<_> = self.device.libraries().iter().filter_map(|own| blas_type(*own)).collect();
        (!libraries.is_empty()).then(|| format!("open_libraries<{}>", libraries.join(", ")))
    }

    fn expansions(&self, rows: &mut String) -> Option<String> {
        let run = self.device.run;
        let row = |Expanded { from, to, form }: &Expanded| {
            let (word, sizes) = form.words();
            let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
            format!("{{{from}, {to}, expand_{word}, {{{}}}}}", sizes.join(", "))
        };
        let lines: Vec<String> = run.expansions.iter().map(row).collect();
        if lines.is_empty() {
            return None;
        }
        let name = table(rows, "Expansion ", "expansions", &lines);
        Some(format!("expand<{name}, {}>, {}", lines.len(), run.expanded_bytes()))
    }

    /// Whether a check of the program compares this size with what the axis has, and says what requires it.
    fn compares(&self, size: &Expr, buffer: BufferId, axis: usize) -> bool {
        let has = |own: &Expr| self.binds(own, buffer, axis);
        self.device.run.checks.iter().any(|check| match &check.holds.condition {
            Condition::Compare(left, Relation::Eq, right) => {
                (has(left) && right == size) || (has(right) && left == size)
            }
            Condition::Compare(
                _,
                Relation::Ne | Relation::Ge | Relation::Gt | Relation::Le | Relation::Lt,
                _,
            )
            | Condition::Fits(_)
            | Condition::All(_)
            | Condition::Any(_) => false,
        })
    }

    /// Whether this size is where its symbol is read from.
    fn binds(&self, size: &Expr, buffer: BufferId, axis: usize) -> bool {
        let Node::Sym(symbol) = size.node() else { return false };
        let Some(info) = self.device.program.symbols.get(symbol.index as usize) else { return false };
        match info.source {
            SymbolSource::InputDim { input, axis: own } => {
                own == axis && self.graph_input(input) == Some(buffer)
            }
            SymbolSource::InputValue { .. } | SymbolSource::Data => false,
        }
    }

    /// The buffer of an input counted with the states.
    fn graph_input(&self, input: usize) -> Option<BufferId> {
        self.device.program.graph_inputs.get(input).copied()
    }

    fn user_position(&self, input: usize) -> usize {
        let buffer = self.graph_input(input);
        self.device.program.inputs.iter().position(|own| Some(*own) == buffer).unwrap_or(0)
    }

    fn symbols(&self) -> Vec<String> {
        let symbols = self.device.program.symbols.iter().enumerate();
        symbols
            .map(|(k, info)| {
                let symbol = Symbol::size(u32::try_from(k).expect("symbols are few"));
                let (from, input, axis, range) = match info.source {
                    SymbolSource::InputDim { input, axis } => {
                        ("dimension", self.user_position(input), axis, info.range)
                    }
                    SymbolSource::InputValue { input } => ("value", self.user_position(input), 0, info.range),
                    SymbolSource::Data => ("data", 0, 0, self.api.ranges.range(symbol)),
                };
                let [min, max] = [range.min, range.max].map(|bound| scalar(&Expr::int(bound)));
                format!("{{From::{from}, {input}, {axis}, {}, {min}, {max}}}", literal(&info.name))
            })
            .collect()
    }

    /// Checks of the sizes, and the arena's length.
    fn functions(&self) -> String {
        let checks = &self.device.run.checks;
        let mut out = String::from("int32_t checks(const int64_t *symbols) {\n  (void)symbols;\n");
        out.push_str(&known(checks.iter().flat_map(|check| check.holds.condition.expressions())));
        for check in checks {
            let code = check.failure.as_u32() + 1;
            let _ = writeln!(out, "  if (!({})) return {code};", condition(&check.holds.condition));
        }
        let arena = &self.device.run.arena_bytes;
        let _ = write!(
            out,
            "  return 0;\n}}\n\nint64_t arena_bytes(const int64_t *symbols) {{\n  (void)symbols;\n{}  return size({});\n}}\n\n",
            known([arena]),
            checked(arena)
        );
        out
    }
}

/// A product as a library is told of it.
fn product(own: &Product) -> String {
    let Product { sizes: [m, n, k], matrices, leading: [a, b, result], turned: [left, right], .. } = own;
    let element = match (matrices[0].dtype, own.rounded) {
        (DType::F16, _) => "F16",
        (DType::Bf16, _) => "Bf16",
        (_, true) => "Tf32",
        (_, false) => "F32",
    };
    let bias = own.bias.map_or_else(|| "-1".to_owned(), |offset| offset.to_string());
    format!(
        "{{{m}, {n}, {k}, {a}, {b}, {result}, {left}, {right}, gpu::kProduct{element}, {}, {bias}}}",
        own.relu
    )
}

/// An entry of the table of what kernels check.
fn site(site: &Site) -> String {
    let is_assertion = match site {
        Site::Index(_) => false,
        Site::Assertion(_) => true,
    };
    format!("{{{}, {is_assertion}}}", literal(site.text()))
}
