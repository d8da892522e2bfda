//! The text of each stage, for `inspect --emit`.

use super::{Options, compile, stages, with_graph};
use crate::codegen::bindings::{self, WeightsPlacement};
use crate::codegen::bundle::SourceBundle;
use crate::diagnostic::Diagnostics;
use crate::frontend::ModelFile;
use crate::target::{GpuTarget, Vendor};
use crate::{codegen, frontend, loops, runplan, schedule};

/// One stage's text, for `inspect --emit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Emit {
    /// The program as it was exported, in the text form of ATen calls.
    Aten,
    /// The core graph after all transformations, in `.aoti` text.
    Graph,
    /// Loop nests before fusion.
    Loops,
    /// Kernels after fusion, with how each is computed, mapped and placed.
    Schedule,
    /// What a run does: kernels, addresses, checks.
    Run,
    /// C++ kernels.
    Cpp,
    /// Kernels for the GPUs of a vendor, in their dialect.
    Device(Vendor),
    /// The C++ that calls the kernels and checks arguments.
    Wrapper,
    /// The Rust module.
    Bindings,
    /// The C header.
    Header,
    /// All of a source bundle: every file, what is compiled from them, and the weights.
    Bundle,
}

impl Emit {
    /// All stages, in their order.
    pub fn all() -> impl Iterator<Item = Emit> {
        let devices = Vendor::ALL.map(Emit::Device);
        let kernels = [Emit::Aten, Emit::Graph, Emit::Loops, Emit::Schedule, Emit::Run, Emit::Cpp];
        let outside = [Emit::Wrapper, Emit::Bindings, Emit::Header, Emit::Bundle];
        kernels.into_iter().chain(devices).chain(outside)
    }

    /// Its name on command lines.
    pub fn name(self) -> &'static str {
        match self {
            Emit::Aten => "aten",
            Emit::Graph => "graph",
            Emit::Loops => "loops",
            Emit::Schedule => "schedule",
            Emit::Run => "run",
            Emit::Cpp => "cpp",
            Emit::Device(vendor) => vendor.backend().dialect,
            Emit::Wrapper => "wrapper",
            Emit::Bindings => "bindings",
            Emit::Header => "header",
            Emit::Bundle => "bundle",
        }
    }

    /// What it is, for people.
    pub fn description(self) -> &'static str {
        match self {
            Emit::Aten => "The program as it was exported, in calls of PyTorch's operators",
            Emit::Graph => "The core graph after all passes",
            Emit::Loops => "Kernels as loops, one for each value that is stored",
            Emit::Schedule => "Kernels after fusion",
            Emit::Run => "What a run does: kernels, addresses and checks in their order",
            Emit::Cpp => "The kernels' C++",
            Emit::Device(vendor) => vendor.backend().description,
            Emit::Wrapper => "The C++ that checks arguments and runs the kernels",
            Emit::Bindings => "The Rust module",
            Emit::Header => "The C header",
            Emit::Bundle => "Every generated file, what is compiled from them, and digests of the weights",
        }
    }
}

/// The text of one stage.
pub fn emit(model: impl Into<ModelFile>, options: &Options, what: Emit) -> Result<String, Diagnostics> {
    let model = model.into();
    match what {
        Emit::Aten => frontend::exported(&options.name, model.file),
        Emit::Graph => with_graph(model, options, |graph| Ok(crate::graph::text::print_short(&graph))),
        Emit::Loops => Ok(loops::text::print_short(&stages(model, options)?.lowered)),
        Emit::Schedule => Ok(schedule::text::print_short(&stages(model, options)?.schedule)),
        Emit::Run => {
            let stages = stages(model, options)?;
            let plan = runplan::of_schedule(&stages.schedule, &stages.graph.ranges());
            Ok(runplan::text::print(&plan))
        }
        Emit::Bindings => {
            let bundle = compile(model, options)?;
            let embedded = options.embed_weights;
            let weights = if embedded { WeightsPlacement::Embedded } else { WeightsPlacement::External };
            let options = bindings::Options {
                weights,
                link: bindings::Link::Static,
                weights_digest: None,
                samples: None,
            };
            Ok(bundle.bindings(&options))
        }
        Emit::Header => Ok(compile(model, options)?.header()),
        Emit::Bundle => Ok(codegen::bundle_text::print(&compile(model, options)?)),
        Emit::Device(vendor) => emit_device(model, options, vendor),
        Emit::Cpp => Ok(sources(&compile(model, options)?, |name| name.starts_with("kernels"))),
        Emit::Wrapper => {
            Ok(sources(&compile(model, options)?, |name| name.starts_with("run_") || name == "model.cpp"))
        }
    }
}

/// The device code for the options' architectures of a vendor, or for one that stands for its newest.
fn emit_device(model: ModelFile, options: &Options, vendor: Vendor) -> Result<String, Diagnostics> {
    let is_theirs = |name: &String| GpuTarget::named(name).is_none_or(|target| target.vendor == vendor);
    let mut gpus: Vec<String> = options.gpus.iter().filter(|name| is_theirs(name)).cloned().collect();
    if gpus.is_empty() {
        gpus.push(vendor.backend().newest.to_owned());
    }
    let alone = Options { levels: vec![], gpus, ..options.clone() };
    let bundle = compile(model, &alone)?;
    Ok(sources(&bundle, |name| bundle.devices.iter().any(|unit| unit.source == name)))
}

fn sources(bundle: &SourceBundle, wanted: impl Fn(&str) -> bool) -> String {
    bundle.files.iter().filter(|file| wanted(&file.name)).map(|file| file.text.as_str()).collect()
}
