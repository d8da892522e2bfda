//! Prints planned models as source text. The only part of the compiler that knows C++ and Rust text.

mod api;
pub mod bindings;
pub mod bundle;
pub mod bundle_text;
mod c_family;
pub(crate) mod cpp;
mod docs;
mod foreign;
pub mod functions;
pub mod gpu;
mod group_panels;
pub mod harness;
pub mod header;
pub(crate) mod headers;
pub mod interface;
pub mod pack;
pub mod prepare;
pub mod run;
mod weights;

pub use cpp::external::prototypes;

use crate::loops::Program;
use crate::names;
use crate::schedule::Schedule;
use crate::symbolic::RangeTable;
use crate::target::{MathLibrary, Vendor};
use bundle::{CalledFunction, DeviceUnit, Goal, SourceBundle, SourceFile, TranslationUnit, WeightsBlob};
use cranelift_entity::PrimaryMap;
use functions::{Function, FunctionId, Functions};
use headers::Header;
use interface::Interface;
use run::Planned;
use std::collections::BTreeSet;

/// Code of more than this much goes to translation units of its own.
const UNIT_WEIGHT: usize = 160;

/// A model, scheduled for each device that its library is for.
pub struct Request<'a> {
    /// The package that the model belongs to; empty for none.
    pub package: &'a str,
    /// For processors, with their levels, lowest first.
    pub cpu: Option<(&'a Schedule, &'a [String])>,
    /// For GPUs, with the architectures of each vendor.
    pub gpus: &'a [(Schedule, Vendor, Vec<String>)],
    /// Ranges of the sizes.
    pub ranges: &'a RangeTable,
    /// Whether the weights are linked into the library.
    pub embed_weights: bool,
    /// How weights are made from tensors by name, if the library does that.
    pub preparation: Option<&'a prepare::Preparation<'a>>,
}

/// The files of a model under construction.
#[derive(Default)]
struct Files {
    files: Vec<SourceFile>,
    units: Vec<TranslationUnit>,
    devices: Vec<DeviceUnit>,
}

impl Files {
    /// Kernels of processors, which are compiled for each level.
    fn levels(&mut self, files: Vec<SourceFile>, levels: &[String], tags: &[String]) {
        for (level, tag) in levels.iter().zip(tags) {
            for file in files.iter().filter(|file| file.name.ends_with(".cpp")) {
                let stem = file.name.trim_end_matches(".cpp");
                self.units.push(TranslationUnit {
                    source: file.name.clone(),
                    object: format!("{stem}.{}.o", api::level_tag(level)),
                    level: Some(level.clone()),
                    defines: vec![("AOTI_LEVEL_NS".to_owned(), tag.clone())],
                    goal: Goal::Speed,
                });
            }
        }
        self.files.extend(files);
    }

    /// A file that is compiled once.
    fn unit(&mut self, stem: &str, text: String, goal: Goal) {
        let (source, object) = (format!("{stem}.cpp"), format!("{stem}.o"));
        self.files.push(SourceFile { name: source.clone(), text });
        self.units.push(TranslationUnit { source, object, level: None, defines: vec![], goal });
    }

    fn device(&mut self, gpu: &PrintedGpu<'_>, symbol: &str) {
        let stem = gpu.vendor.device();
        let source = match gpu.vendor {
            Vendor::Nvidia => format!("{stem}.cu"),
            Vendor::Amd => format!("{stem}.hip"),
        };
        self.files.push(SourceFile { name: source.clone(), text: gpu.program.device.clone() });
        let (architectures, symbol) = (gpu.architectures.to_vec(), bundle::code_symbol(symbol, gpu.vendor));
        self.devices.push(DeviceUnit { vendor: gpu.vendor, architectures, source, symbol });
        self.unit(&format!("run_{stem}"), gpu.program.host.clone(), Goal::Speed);
    }
}

/// The kernels of processors, planned and printed.
struct PrintedCpu<'a> {
    schedule: &'a Schedule,
    planned: Planned<Functions>,
    levels: &'a [String],
    /// The levels' parts in identifiers.
    tags: Vec<String>,
    /// Those that some kernels ask for their products.
    libraries: Vec<MathLibrary>,
    files: Vec<SourceFile>,
}

/// The program of a vendor's GPUs, planned and printed.
struct PrintedGpu<'a> {
    schedule: &'a Schedule,
    vendor: Vendor,
    architectures: &'a [String],
    program: gpu::program::Printed,
    /// Its part of the weights: where it begins and its length.
    weights: [u64; 2],
}

fn print_cpu<'a>(
    (schedule, levels): (&'a Schedule, &'a [String]),
    ranges: &RangeTable,
    symbol: &str,
) -> PrintedCpu<'a> {
    let identifier = names::identifier(&schedule.program.name);
    let planned = run::plan(schedule, ranges);
    let files = kernel_files(schedule, &planned, &identifier, "kernels");
    let tag = |level: &String| own_tag(&api::level_tag(level), &files, &identifier, symbol);
    let tags = levels.iter().map(tag).collect();
    PrintedCpu { schedule, planned, levels, libraries: libraries_of(schedule), tags, files }
}

/// The libraries that some kernels ask for their products.
fn libraries_of(schedule: &Schedule) -> Vec<MathLibrary> {
    let asked: BTreeSet<MathLibrary> =
        schedule.choices.values().filter_map(|choice| choice.algorithm.library()).collect();
    asked.into_iter().collect()
}

/// The devices of a library, as its tables want to know them.
fn devices<'a>(cpu: Option<&'a PrintedCpu<'_>>, gpus: &'a [PrintedGpu<'_>]) -> Vec<api::Device<'a>> {
    let of_processors = cpu.map(|cpu| api::Device {
        program: &cpu.schedule.program,
        run: &cpu.planned.run,
        code: api::Code::Levels { levels: cpu.levels, tags: &cpu.tags, libraries: &cpu.libraries },
    });
    let of_gpu = |gpu: &'a PrintedGpu<'_>| api::Device {
        program: &gpu.schedule.program,
        run: &gpu.program.run,
        code: api::Code::Gpu {
            vendor: gpu.vendor,
            architectures: gpu.architectures,
            kernels: &gpu.program.kernels,
            weights: gpu.weights,
        },
    };
    of_processors.into_iter().chain(gpus.iter().map(of_gpu)).collect()
}

/// Prints schedules. There is one at least.
pub fn generate(request: &Request) -> SourceBundle {
    let ranges = request.ranges;
    let of_gpus = request.gpus.iter().map(|(schedule, ..)| schedule);
    let mut schedules = request.cpu.iter().map(|(schedule, _)| *schedule).chain(of_gpus);
    let program = &schedules.next().expect("a library has code for some device").program;
    let identifier = names::identifier(&program.name);
    let symbol = names::symbol(&program.name, request.package);
    let mut layout = weights::Layout::default();
    let mut cpu = request.cpu.map(|cpu| print_cpu(cpu, ranges, &symbol));
    if let Some(cpu) = &mut cpu {
        layout = std::mem::take(&mut cpu.planned.layout);
        layout.next_program();
    }
    let mut gpus = Vec::new();
    for (schedule, vendor, architectures) in request.gpus {
        let begin = layout.bytes();
        let program = gpu::program::print(schedule, ranges, *vendor, &symbol, &mut layout);
        layout.next_program();
        let weights = [begin, layout.bytes() - begin];
        gpus.push(PrintedGpu { schedule, vendor: *vendor, architectures, program, weights });
    }
    let devices = devices(cpu.as_ref(), &gpus);
    let preparation = request.preparation.map(|preparation| {
        let programs: Vec<&Program> = devices.iter().map(|device| device.program).collect();
        let level = request.cpu.and_then(|(_, levels)| levels.first());
        prepare::print(preparation, &programs, layout.placed(), (&identifier, &symbol), level)
    });
    let named = request.preparation.map(|preparation| preparation.constants);
    let placed = layout.placed().iter().filter(|placed| placed.program == 0);
    let mut interface = Interface::of(program, devices[0].run, placed, ranges, named);
    let blob = layout.finish();
    interface.weights_bytes = blob.bytes;
    let mut api = api::Api {
        interface: &interface,
        identifier: &identifier,
        symbol: &symbol,
        devices: &devices,
        ranges,
        embedded: request.embed_weights,
        preparation: preparation.as_ref(),
        library: String::new(),
    };
    let mut files = Files::default();
    if let Some(cpu) = &cpu {
        files.levels(cpu.files.clone(), cpu.levels, &cpu.tags);
    }
    gpus.iter().for_each(|gpu| files.device(gpu, &symbol));
    if let Some(printed) = &preparation {
        files.files.extend_from_slice(&printed.files);
        files.units.extend_from_slice(&printed.units);
    }
    // What prepares weights is in the headers of this file, and takes time.
    let goal = if preparation.is_none() { Goal::Size } else { Goal::Speed };
    files.unit("model", api.print(), goal);
    let table = files.files.len() - 1;
    files.files.extend(headers::all(cpu.is_some() || preparation.is_some(), !gpus.is_empty()));
    let fixed = preparation.as_ref().map(|printed| printed.fixed.clone()).unwrap_or_default();
    // The table tells what the library is: all that is compiled into it, this very file too, as it is without that.
    api.library = digest(&files.files, &fixed);
    files.files[table].text = api.print();
    let library = api.library;
    let of_processors = cpu.as_ref().map_or(0, |cpu| cpu.planned.functions.all.len());
    let of_gpus: usize = gpus.iter().map(|gpu| gpu.program.kernels.len()).sum();
    let Files { files, units, devices } = files;
    SourceBundle {
        interface,
        identifier,
        symbol,
        library,
        files,
        units,
        devices,
        functions: cpu.as_ref().map(|cpu| CalledFunction::of(&cpu.schedule.program)).unwrap_or_default(),
        kernels: of_processors + of_gpus,
        weights: blob,
        fixed,
    }
}

/// The part of kernels' names that tells levels apart and, in a model of a package, all models: by a digest of their own
/// text and what it includes. It says nothing of the package, so that caches serve all.
fn own_tag(tag: &str, kernels: &[SourceFile], identifier: &str, symbol: &str) -> String {
    if identifier == symbol {
        return tag.to_owned();
    }
    let mut all = kernels.to_vec();
    all.extend(headers::all(true, false));
    format!("{tag}_{}", &digest(&all, &WeightsBlob::default())[..names::DIGITS])
}

/// A digest of names and texts, and of bytes that are embedded beside them.
fn digest(files: &[SourceFile], embedded: &WeightsBlob) -> String {
    let mut hasher = blake3::Hasher::new();
    let texts = files.iter().flat_map(|file| [file.name.as_bytes(), file.text.as_bytes()]);
    for part in texts.chain(embedded.segments.iter().map(|(_, bytes)| bytes.as_ref())) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex().to_string()
}

/// The files of the kernels, called after `stem`: one with everything where that is little, else parts that compile in
/// parallel.
fn kernel_files(
    schedule: &Schedule,
    planned: &Planned<Functions>,
    identifier: &str,
    stem: &str,
) -> Vec<SourceFile> {
    let total: usize = planned.functions.all.values().map(|function| function.text.weight).sum();
    let prologue = "#define AOTI_JOIN_(a, b) a##_##b\n#define AOTI_JOIN(a, b) AOTI_JOIN_(a, b)\n\
                    #define AOTI_LEVEL_NAME(name) AOTI_JOIN(name, AOTI_LEVEL_NS)\n\nusing namespace aoti;\n\n";
    let title = foreign::comment(&format!("Kernels of the model `{identifier}`, written by cargo-aoti."));
    let scratch = &schedule.memory.scratch;
    let run = run::run_functions(&planned.run, &planned.functions, scratch, identifier);
    let exchanges = !planned.run.exchanges().is_empty();
    let ranks = if exchanges { "#include \"aoti/collective.h\"\n" } else { "" };
    if total <= UNIT_WEIGHT {
        let all: Vec<&Function> = planned.functions.all.values().collect();
        // Inlined, all kernels of a model would share one frame, and their setting up would be mixed.
        let kernels: String =
            all.iter().map(|function| function.definition("static AOTI_NOINLINE ")).collect();
        let text = format!("{title}{ranks}{}{prologue}{}{kernels}{run}", includes(&all), externals(&all));
        return vec![SourceFile { name: format!("{stem}.cpp"), text }];
    }
    let space = format!("namespace AOTI_JOIN(aoti_{identifier}, AOTI_LEVEL_NS)");
    let include = format!("#include {}\n", foreign::literal(&format!("{stem}.h")));
    let mut files = vec![SourceFile {
        name: format!("{stem}.h"),
        text: format!(
            "{title}#pragma once\n\n#include \"aoti/run.h\"\n\n{prologue}{space} {{\n{}}}\n",
            planned.functions.declarations()
        ),
    }];
    for (number, part) in parts(&planned.functions.all, total).into_iter().enumerate() {
        let kernels: String = part.iter().map(|function| function.definition("")).collect();
        files.push(SourceFile {
            name: format!("{stem}_{number}.cpp"),
            text: format!(
                "{title}{}{include}\n{}{space} {{\n\n{kernels}}}\n",
                includes(&part),
                externals(&part)
            ),
        });
    }
    let asks_for_units = scratch.iter().any(|scratch| scratch.units.is_some());
    let units = if asks_for_units { "#include \"aoti/matrix_units.h\"\n" } else { "" };
    files.push(SourceFile {
        name: format!("run_{stem}.cpp"),
        text: format!("{title}{}{units}{ranks}{include}\nusing {space};\n\n{run}", includes(&[])),
    });
    files
}

/// Splits kernels, in order, into parts of about equal weight.
fn parts(functions: &PrimaryMap<FunctionId, Function>, total: usize) -> Vec<Vec<&Function>> {
    let count = total.div_ceil(UNIT_WEIGHT);
    let goal = total.div_ceil(count);
    let mut parts: Vec<Vec<&Function>> = vec![vec![]];
    let mut weight = 0;
    for function in functions.values() {
        if weight >= goal {
            parts.push(vec![]);
            weight = 0;
        }
        weight += function.text.weight;
        parts.last_mut().expect("never empty").push(function);
    }
    parts
}

/// Declarations of the functions of the user's project that some kernels call, each once.
fn externals(functions: &[&Function]) -> String {
    let called: BTreeSet<&String> =
        functions.iter().filter_map(|function| function.text.external.as_ref()).collect();
    let mut text: String = called.iter().map(|declaration| format!("extern \"C\" {declaration}")).collect();
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

/// Includes of the headers that some kernels need.
fn includes(functions: &[&Function]) -> String {
    let wanted: BTreeSet<Header> =
        functions.iter().flat_map(|function| function.text.headers.iter().copied()).collect();
    let names = std::iter::once("nest.h").chain(wanted.into_iter().map(Header::file));
    let mut text: String = names.map(|name| format!("#include \"aoti/{name}\"\n")).collect();
    text.push('\n');
    text
}
