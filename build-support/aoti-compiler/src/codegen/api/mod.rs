//! Prints the file with the model's tables, over which `include/aoti/model.h` and `include/aoti/gpu/model.h` implement the
//! C interface.
//! Everything that is the same for all models is there; here are names, sizes, addresses and texts.

pub(super) mod rows;
mod tables;

use super::foreign::{comment, literal};
use super::interface::{DimInterface, ElementType, Interface, ValueInterface};
use super::prepare;
use crate::loops::Program;
use crate::runplan::RunPlan;
use crate::symbolic::RangeTable;
use crate::target::{MathLibrary, Vendor};
use rows::{Shared, lines_of, table, value_row};
use std::fmt::Write;

/// The level's part in identifiers and file names: `v3`, `native`, `base`.
pub(super) fn level_tag(name: &str) -> String {
    match name {
        "x86-64" => "base".to_owned(),
        _ => name.strip_prefix("x86-64-").unwrap_or(name).replace(|c: char| !c.is_ascii_alphanumeric(), "_"),
    }
}

/// A library: its programs, one at least.
pub(super) struct Api<'a> {
    /// The model's name.
    pub(super) name: &'a str,
    pub(super) programs: Vec<Tables<'a>>,
}

/// What the tables of a program are printed from.
pub(super) struct Tables<'a> {
    /// Its name among the programs; none where it is the only one.
    pub(super) name: Option<&'a str>,
    pub(super) interface: &'a Interface,
    pub(super) identifier: &'a str,
    /// What stands for the program in symbols that are its own among all programs of all models.
    pub(super) own_symbol: &'a str,
    /// The devices that there is code for.
    pub(super) devices: &'a [Device<'a>],
    pub(super) ranges: &'a RangeTable,
    pub(super) embedded: bool,
    /// What makes weights from tensors by name, if the library does that.
    pub(super) preparation: Option<&'a prepare::Printed>,
    /// What stands for the model in symbols.
    pub(super) symbol: &'a str,
}

/// A device, its program and what a run does there.
pub(super) struct Device<'a> {
    pub(super) program: &'a Program,
    pub(super) run: &'a RunPlan,
    pub(super) code: Code<'a>,
}

/// The code for a device.
pub(super) enum Code<'a> {
    /// Of a processor, at these levels, lowest first.
    Levels {
        /// By their names.
        levels: &'a [String],
        /// Their parts in identifiers.
        tags: &'a [String],
        /// Those that some products are left to, where they are.
        libraries: &'a [MathLibrary],
    },
    /// Of a vendor's GPUs.
    Gpu {
        /// Whose.
        vendor: Vendor,
        /// The architectures that it is compiled for.
        architectures: &'a [String],
        /// Its kernels, in the order of the run's numbers.
        kernels: &'a [super::gpu::program::DeviceKernel],
        /// The part of the weights that they read: where it begins and its length.
        weights: [u64; 2],
    },
}

impl Device<'_> {
    /// As in file names, namespaces and on command lines.
    fn name(&self) -> &'static str {
        match &self.code {
            Code::Levels { .. } => "cpu",
            Code::Gpu { vendor, .. } => vendor.device(),
        }
    }

    fn kind(&self) -> &'static str {
        match &self.code {
            Code::Levels { .. } => "AOTI_CPU",
            Code::Gpu { vendor, .. } => vendor.backend().kind,
        }
    }

    /// The header with its side of the C interface.
    fn header(&self) -> &'static str {
        match &self.code {
            Code::Levels { .. } => "model.h",
            Code::Gpu { .. } => "gpu/model.h",
        }
    }

    /// The libraries that kernels of processors ask.
    fn libraries(&self) -> &[MathLibrary] {
        match &self.code {
            Code::Levels { libraries, .. } => libraries,
            Code::Gpu { .. } => &[],
        }
    }

    /// The functions of its side.
    fn interface(&self) -> String {
        let name = self.name();
        match &self.code {
            Code::Levels { .. } => format!("Interface<{name}::tables>"),
            Code::Gpu { .. } => format!("gpu::Interface<{name}::tables, {name}::program>"),
        }
    }
}

impl Api<'_> {
    /// The whole file; `library` is the digest of all that is compiled into the library.
    pub(super) fn print(&self, library: &str) -> String {
        let count = self.programs.len();
        let first = &self.programs[0];
        let declarations: String = self.programs.iter().map(Tables::declarations).collect();
        let declarations = declarations + &first.declarations_of_weights();
        let (body, table) = match self.programs.as_slice() {
            [only] => (only.print(library), "api".to_owned()),
            programs => {
                let space = |(position, program): (usize, &Tables<'_>)| {
                    let body = program.print(library);
                    format!("namespace program_{position} {{\n\n{body}\n}} // namespace\n\n")
                };
                let spaces: String = programs.iter().enumerate().map(space).collect();
                let row = |(position, program): (usize, &Tables<'_>)| {
                    format!("{{{}, &program_{position}::api}}", literal(program.name.unwrap_or_default()))
                };
                let rows: Vec<String> = programs.iter().enumerate().map(row).collect();
                let declared = format!("extern const AotiProgram programs[{count}];\n\n");
                let defined =
                    format!("const AotiProgram programs[{count}] = {{\n    {},\n}};\n", rows.join(",\n    "));
                (declared + &spaces + &defined, "program_0::api".to_owned())
            }
        };
        let name = super::docs::code(self.name);
        let title = format!("The C interface of the model {name}, written by cargo-aoti.");
        format!(
            "{}{}\nusing namespace aoti;\n\n{declarations}namespace {{\n\n{body}\n}} // namespace\n\n\
             extern \"C\" __attribute__((visibility(\"default\"))) const AotiApi *aoti_{}_api(void) {{ return &{table}; }}\n",
            comment(&title),
            self.includes(),
            first.symbol
        )
    }

    fn includes(&self) -> String {
        let mut headers: Vec<&str> = self.programs[0].devices.iter().map(Device::header).collect();
        headers.dedup();
        headers.extend(self.programs[0].preparation.map(|_| "prepare.h"));
        let devices = || self.programs.iter().flat_map(|program| program.devices);
        if devices().any(|device| !device.libraries().is_empty()) {
            headers.push("blas.h");
        }
        if devices().any(|device| !device.run.expansions.is_empty()) {
            headers.push("expand.h");
        }
        if self.programs[0].devices.len() > 1 {
            headers.push("devices.h");
        }
        headers.iter().map(|name| format!("#include \"aoti/{name}\"\n")).collect()
    }
}

impl Tables<'_> {
    /// Everything of a program.
    fn print(&self, library: &str) -> String {
        let (mut shared, mut rows) = (Shared::default(), String::new());
        let info = self.info(library, &mut shared, &mut rows);
        let mut first = Position::default();
        let mut devices = String::new();
        for device in self.devices {
            let printed = tables::print(self, device, &first, &mut shared);
            let _ = write!(devices, "namespace {} {{\n\n{printed}\n}}\n\n", device.name());
            first.kernel += device.run.kernels.len();
            first.value += device.run.kernels.values().map(|kernel| kernel.outputs.len()).sum::<usize>();
        }
        let preparation = self.preparation.map_or("", |printed| &printed.table);
        format!("{}{rows}\n{info}\n{preparation}{devices}{}", shared.print(), self.entry())
    }

    /// The one table of functions.
    fn entry(&self) -> String {
        let api = |table: &str| match self.name {
            None => format!("constexpr AotiApi api = {table};\n"),
            Some(_) => format!("constexpr AotiApi api = one_of({table}, programs);\n"),
        };
        if let [device] = self.devices {
            return api(&format!("{}::table()", device.interface()));
        }
        let (mut text, mut lines) = (String::new(), Vec::new());
        for device in self.devices {
            let (name, kind, interface) = (device.name(), device.kind(), device.interface());
            let _ = writeln!(text, "constexpr AotiApi {name}_api = {interface}::table();");
            lines.push(format!("{{{}, {kind}, &{name}_api}}", literal(name)));
        }
        table(&mut text, "DeviceApi ", "devices", &lines);
        let count = self.devices.len();
        text + &api(&format!("AnyDevice<devices, {count}>::table(&info)"))
    }

    /// What other objects define.
    fn declarations(&self) -> String {
        let (id, symbol) = (self.identifier, self.own_symbol);
        let mut out = String::new();
        for device in self.devices {
            match &device.code {
                Code::Levels { tags, .. } => {
                    for tag in *tags {
                        let _ = writeln!(
                            out,
                            "extern \"C\" int32_t aoti_{id}_run_{tag}(const Run &);\n\
                             extern \"C\" int64_t aoti_{id}_scratch_{tag}(const int64_t *, int64_t);"
                        );
                    }
                }
                Code::Gpu { vendor, .. } => {
                    let name = vendor.device();
                    let _ = writeln!(
                        out,
                        "extern \"C\" int32_t aoti_{symbol}_{name}_run(gpu::DeviceRun &);\n\
                         extern \"C\" const char {}[];",
                        super::bundle::code_symbol(symbol, *vendor)
                    );
                }
            }
        }
        out
    }

    /// The weights, which all programs share, and what makes them.
    fn declarations_of_weights(&self) -> String {
        let (mut out, symbol) = (String::new(), self.symbol);
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

    /// Appends what the model's info points to, and gives the info.
    fn info(&self, library: &str, shared: &mut Shared, rows: &mut String) -> String {
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
        let offsets: Vec<String> =
            self.devices[0].run.states.iter().map(|state| state.offset.to_string()).collect();
        let offsets = table(rows, "int64_t ", "state_offsets", &offsets);
        let mut out = String::new();
        let _ = writeln!(
            out,
            "constexpr AotiModelInfo info = {{\n    {}, {}, {}, {}, {}, {},\n    {inputs}, {outputs}, {constants}, {states}, {}, {},\n    {kernels}, {}, {}, {}, {}, {offsets},\n}};",
            literal(&i.name),
            literal(concat!("cargo-aoti ", env!("CARGO_PKG_VERSION"))),
            i.inputs.len(),
            i.outputs.len(),
            i.constants.len(),
            i.states.len(),
            i.weights_bytes,
            i.state_bytes,
            self.devices.iter().map(|device| device.run.kernels.len()).sum::<usize>(),
            self.devices.first().map_or(0, |device| device.run.exchanges().len()),
            literal(library),
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
                constant.dtype.code(),
                constant.sizes.len(),
                constant.tied.map_or_else(|| "-1".to_owned(), |tied| tied.to_string()),
                u8::from(constant.is_read)
            ));
        }
        table(rows, "AotiConstantInfo ", "constants", &lines)
    }

    fn kernels(&self, shared: &mut Shared, rows: &mut String) -> String {
        let (mut values, mut lines) = (Vec::new(), Vec::new());
        let all = self.devices.iter();
        let all = all.flat_map(|device| device.run.kernels.values().map(move |kernel| (device, kernel)));
        for (device, kernel) in all {
            let first = values.len();
            for output in &kernel.outputs {
                let dims =
                    output.shape.iter().map(|size| DimInterface::of(device.program, self.ranges, size));
                let (name, dims) = (output.name.clone(), dims.collect());
                let element = ElementType::Number(output.tensor.dtype);
                values.push(value_row(&ValueInterface { name, element, dims }, shared));
            }
            let calls = lines_of(kernel.origins.iter().map(|origin| origin.node.as_str()));
            let source = lines_of(kernel.origins.iter().map(|origin| origin.source.as_str()));
            let module = kernel.origins.iter().map(|origin| origin.module.as_str()).find(|m| !m.is_empty());
            // The offset is from the first of all, so that positions follow from addresses.
            lines.push(format!(
                "{{{}, {},\n     {},\n     {}, {}, {}, {}}}",
                literal(&kernel.name),
                literal(&calls),
                literal(&source),
                literal(module.unwrap_or("")),
                if kernel.outputs.is_empty() {
                    "nullptr".to_owned()
                } else {
                    format!("kernel_values + {first}")
                },
                kernel.outputs.len(),
                device.kind()
            ));
        }
        table(rows, "AotiValueInfo ", "kernel_values", &values);
        table(rows, "AotiKernelInfo ", "kernels", &lines)
    }
}

/// Where the kernels of a device begin among all, and what they write.
#[derive(Default)]
struct Position {
    kernel: usize,
    value: usize,
}
