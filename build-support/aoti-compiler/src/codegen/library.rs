//! Prints the library of a model: the kernels of its programs for each device, the tables of the C interface, and the weights that
//! the programs share.

use super::bundle::{
    CalledFunction, DeviceUnit, Goal, ProgramInterface, SourceBundle, SourceFile, TranslationUnit,
    code_symbol,
};
use super::functions::Functions;
use super::interface::Interface;
use super::{api, digest, gpu, headers, kernel_files, own_tag, prepare};
use crate::loops::Program;
use crate::names;
use crate::runplan::weights::Layout;
use crate::runplan::{self, Planned};
use crate::schedule::Schedule;
use crate::symbolic::RangeTable;
use crate::target::{MathLibrary, Vendor};
use std::collections::BTreeSet;

/// A model, scheduled for each device that its library is for.
pub struct Request<'a> {
    /// The model's name.
    pub name: &'a str,
    /// The package that the model belongs to; empty for none.
    pub package: &'a str,
    /// Levels of processors, lowest first.
    pub levels: &'a [String],
    /// Whether the weights are linked into the library.
    pub embed_weights: bool,
    /// Its programs, one at least.
    pub programs: &'a [OneProgram<'a>],
}

/// A program of a model, scheduled for each device. All programs of a model are for the same devices.
pub struct OneProgram<'a> {
    /// Its name among the programs of the model; none where it is the only one.
    pub name: Option<&'a str>,
    /// For processors.
    pub cpu: Option<&'a Schedule>,
    /// For GPUs, with the architectures of each vendor.
    pub gpus: &'a [(Schedule, Vendor, Vec<String>)],
    /// Ranges of the sizes.
    pub ranges: &'a RangeTable,
    /// How weights are made from tensors by name, if the library does that. Only of a model with one program.
    pub preparation: Option<&'a prepare::Preparation<'a>>,
}

impl<'a> OneProgram<'a> {
    fn first_schedule(&self) -> &'a Schedule {
        let of_gpus = self.gpus.iter().map(|(schedule, ..)| schedule);
        self.cpu.into_iter().chain(of_gpus).next().expect("a library has code for some device")
    }
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

    fn device(&mut self, gpu: &PrintedGpu<'_>, names: &ProgramNames) {
        let (device, prefix) = (gpu.vendor.device(), &names.prefix);
        let source = format!("{prefix}{device}.{}", gpu.vendor.backend().extension);
        self.files.push(SourceFile { name: source.clone(), text: gpu.program.device.clone() });
        let (architectures, symbol) = (gpu.architectures.to_vec(), code_symbol(&names.symbol, gpu.vendor));
        self.devices.push(DeviceUnit { vendor: gpu.vendor, architectures, source, symbol });
        self.unit(&format!("{prefix}run_{device}"), gpu.program.host.clone(), Goal::Speed);
    }
}

/// What a program is called in the generated text.
struct ProgramNames {
    /// The identifier in names of kernels.
    identifier: String,
    /// What stands for it in symbols.
    symbol: String,
    /// What the names of its files begin with: nothing where it is the only program.
    prefix: String,
}

impl ProgramNames {
    fn of(program: &OneProgram<'_>, package: &str) -> ProgramNames {
        let name = &program.first_schedule().program.name;
        // Names of programs are identifiers, without dots, so that no file of one program has the name of another's.
        let prefix = program.name.map(|name| format!("{name}.")).unwrap_or_default();
        ProgramNames { identifier: names::identifier(name), symbol: names::symbol(name, package), prefix }
    }
}

/// The kernels of processors, planned and printed.
struct PrintedCpu<'a> {
    schedule: &'a Schedule,
    planned: Planned,
    functions: Functions,
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

impl PrintedGpu<'_> {
    fn device(&self) -> api::Device<'_> {
        api::Device {
            program: &self.schedule.program,
            run: &self.program.run,
            code: api::Code::Gpu {
                vendor: self.vendor,
                architectures: self.architectures,
                kernels: &self.program.kernels,
                weights: self.weights,
            },
        }
    }
}

/// A program, planned and printed.
struct Printed<'a> {
    names: ProgramNames,
    request: &'a OneProgram<'a>,
    cpu: Option<PrintedCpu<'a>>,
    gpus: Vec<PrintedGpu<'a>>,
}

fn print_cpu<'a>(
    (schedule, levels): (&'a Schedule, &'a [String]),
    ranges: &RangeTable,
    names: &ProgramNames,
    layout: &mut Layout,
) -> PrintedCpu<'a> {
    let ProgramNames { identifier, symbol, prefix } = names;
    let mut planned = runplan::plan_with(schedule, ranges, std::mem::take(layout));
    let functions = Functions::of(schedule);
    *layout = std::mem::take(&mut planned.layout);
    let files = kernel_files(schedule, (&planned.run, &functions), identifier, &format!("{prefix}kernels"));
    let tag = |level: &String| own_tag(&api::level_tag(level), &files, identifier, symbol);
    let tags = levels.iter().map(tag).collect();
    PrintedCpu { schedule, planned, functions, levels, libraries: libraries_of(schedule), tags, files }
}

/// The libraries that some kernels ask for their products.
fn libraries_of(schedule: &Schedule) -> Vec<MathLibrary> {
    let asked: BTreeSet<MathLibrary> =
        schedule.choices.values().filter_map(|choice| choice.algorithm.library()).collect();
    asked.into_iter().collect()
}

/// Prints all programs, device by device: what a device reads of the weights lies together.
fn print_programs<'a>(request: &'a Request<'a>, layout: &mut Layout) -> Vec<Printed<'a>> {
    let print = |program: &'a OneProgram<'a>| Printed {
        names: ProgramNames::of(program, request.package),
        request: program,
        cpu: None,
        gpus: Vec::new(),
    };
    let mut all: Vec<Printed<'a>> = request.programs.iter().map(print).collect();
    for printed in &mut all {
        let OneProgram { cpu, ranges, .. } = printed.request;
        printed.cpu = cpu.map(|cpu| print_cpu((cpu, request.levels), ranges, &printed.names, layout));
        if printed.cpu.is_some() {
            layout.next_program();
        }
    }
    for position in 0..request.programs.first().map_or(0, |program| program.gpus.len()) {
        layout.next_device();
        let begin = layout.bytes();
        for printed in &mut all {
            let (schedule, vendor, architectures) = &printed.request.gpus[position];
            let (ranges, symbol) = (printed.request.ranges, &printed.names.symbol);
            let program = gpu::program::print(schedule, ranges, *vendor, symbol, layout);
            layout.next_program();
            let (vendor, weights) = (*vendor, [begin, 0]);
            printed.gpus.push(PrintedGpu { schedule, vendor, architectures, program, weights });
        }
        let bytes = layout.bytes() - begin;
        all.iter_mut().for_each(|printed| printed.gpus[position].weights[1] = bytes);
    }
    all
}

impl Printed<'_> {
    /// The devices of the library, as its tables want to know them.
    fn devices(&self) -> Vec<api::Device<'_>> {
        let of_processors = self.cpu.as_ref().map(|cpu| api::Device {
            program: &cpu.schedule.program,
            run: &cpu.planned.run,
            code: api::Code::Levels { levels: cpu.levels, tags: &cpu.tags, libraries: &cpu.libraries },
        });
        of_processors.into_iter().chain(self.gpus.iter().map(PrintedGpu::device)).collect()
    }

    fn kernels(&self) -> usize {
        let of_processors = self.cpu.as_ref().map_or(0, |cpu| cpu.functions.all.len());
        of_processors + self.gpus.iter().map(|gpu| gpu.program.kernels.len()).sum::<usize>()
    }

    /// How it looks from outside; `position` is its own among the programs, which are planned for their first device first.
    fn interface(&self, position: usize, layout: &Layout, devices: &[api::Device<'_>]) -> Interface {
        let named = self.request.preparation.map(|preparation| preparation.constants);
        let placed = layout.placed().iter().filter(|placed| placed.program == position);
        Interface::of(devices[0].program, devices[0].run, placed, self.request.ranges, named)
    }
}

/// Prints schedules. There is one at least.
pub fn generate(request: &Request) -> SourceBundle {
    let (identifier, symbol) =
        (names::identifier(request.name), names::symbol(request.name, request.package));
    let is_one = request.programs.len() == 1;
    let mut layout = if is_one { Layout::default() } else { Layout::sharing() };
    let printed = print_programs(request, &mut layout);
    let devices: Vec<Vec<api::Device<'_>>> = printed.iter().map(Printed::devices).collect();
    let preparation = request.programs[0].preparation.map(|preparation| {
        let programs: Vec<&Program> = devices[0].iter().map(|device| device.program).collect();
        let level = request.programs[0].cpu.and_then(|_| request.levels.first());
        prepare::print(preparation, &programs, layout.placed(), (&identifier, &symbol), level)
    });
    let outside =
        |(position, one): (usize, &Printed<'_>)| one.interface(position, &layout, &devices[position]);
    let mut interfaces: Vec<Interface> = printed.iter().enumerate().map(outside).collect();
    let blob = layout.finish();
    interfaces.iter_mut().for_each(|interface| interface.weights_bytes = blob.bytes);
    let tables = |position: usize| api::Tables {
        name: request.programs[position].name,
        interface: &interfaces[position],
        identifier: &printed[position].names.identifier,
        own_symbol: &printed[position].names.symbol,
        devices: &devices[position],
        ranges: request.programs[position].ranges,
        embedded: request.embed_weights,
        preparation: preparation.as_ref(),
        symbol: &symbol,
    };
    let api = api::Api { name: request.name, programs: (0..printed.len()).map(tables).collect() };
    let mut files = Files::default();
    for one in &printed {
        if let Some(cpu) = &one.cpu {
            files.levels(cpu.files.clone(), cpu.levels, &cpu.tags);
        }
        one.gpus.iter().for_each(|gpu| files.device(gpu, &one.names));
    }
    if let Some(printed) = &preparation {
        files.files.extend_from_slice(&printed.files);
        files.units.extend_from_slice(&printed.units);
    }
    // What prepares weights is in the headers of this file, and takes time.
    let goal = if preparation.is_none() { Goal::Size } else { Goal::Speed };
    files.unit("model", api.print(""), goal);
    let table = files.files.len() - 1;
    let (for_cpu, for_gpus) = (request.programs[0].cpu.is_some(), !request.programs[0].gpus.is_empty());
    files.files.extend(headers::all(for_cpu || preparation.is_some(), for_gpus));
    let fixed = preparation.as_ref().map(|printed| printed.fixed.clone()).unwrap_or_default();
    // The table tells what the library is: all that is compiled into it, this very file too, as it is without that.
    let library = digest(&files.files, &fixed);
    files.files[table].text = api.print(&library);
    let kernels = printed.iter().map(Printed::kernels).sum();
    let functions = called_functions(&printed);
    drop(devices);
    let Files { files, units, devices } = files;
    SourceBundle {
        programs: if is_one { Vec::new() } else { program_interfaces(request, &interfaces) },
        interface: interfaces.swap_remove(0),
        identifier,
        symbol,
        library,
        files,
        units,
        devices,
        functions,
        kernels,
        weights: blob,
        fixed,
    }
}

fn program_interfaces(request: &Request, interfaces: &[Interface]) -> Vec<ProgramInterface> {
    let named = request.programs.iter().filter_map(|program| program.name).zip(interfaces);
    named.map(|(name, own)| ProgramInterface { name: name.to_owned(), interface: own.clone() }).collect()
}

/// The functions of the user's project that some program calls, each once.
fn called_functions(printed: &[Printed<'_>]) -> Vec<CalledFunction> {
    let mut all: Vec<CalledFunction> = Vec::new();
    for called in printed
        .iter()
        .filter_map(|one| one.cpu.as_ref())
        .flat_map(|cpu| CalledFunction::of(&cpu.schedule.program))
    {
        if !all.iter().any(|known| known.symbol == called.symbol) {
            all.push(called);
        }
    }
    all
}
