//! The pipeline, top to bottom: which stage follows which, and nothing else.

mod emit;
mod options;
mod overview;
mod programs;
mod read;

pub use emit::{Emit, emit};
pub use overview::{BufferView, KernelView, Overview, Place, overview};

use crate::codegen;
use crate::codegen::bundle::SourceBundle;
use crate::cost::{CostModel, MachineInfo, Rates, WorkKind};
use crate::diagnostic::{Code, Diagnostic, Diagnostics};
use crate::frontend::ModelFile;
use crate::frontend::torch::custom::Operator;
use crate::graph::{ConstantGraph, Graph, Op, SymbolSource};
use crate::loops::Program;
use crate::loops::bounds::{self, OutOfBounds};
use crate::loops::work::{Work, work};
use crate::lower::lower;
pub use crate::passes::WeightsType;
use crate::passes::rename::{Names, rename};
use crate::schedule::{self, Explanation, Schedule, Setting, TuningStage, schedule};
use crate::symbolic::{RangeTable, Symbol};
use crate::target::{CpuTarget, GpuTarget, MathLibrary, Target, Tf32, Vendor};
use crate::tuning::{Alternative, Decisions, Records, TuningKey, TuningPoint};
use crate::{interpret, kernels, loops, passes};

use read::{Stop, read};

/// What the caller decides about one compilation: [`Options::new`], and what is not as usual.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Options {
    /// The model's name: bindings, symbols and messages are named after it.
    pub name: String,
    /// The package that the model belongs to, with its version: part of symbols, so that one program may hold models of
    /// one name from several packages. Empty for a model of none.
    pub package: String,
    /// CPU levels to compile kernels for, lowest first, by toolchain name; the first must run on every machine that
    /// the library is meant for. None for a library that runs on GPUs alone.
    pub levels: Vec<String>,
    /// GPU architectures to compile kernels for, of any vendors, by their compilers' names.
    pub gpus: Vec<String>,
    /// Whether the weights are linked into the library; else they are given when a model is loaded.
    pub embed_weights: bool,
    /// Whether the library takes other weights by their names in the program, and does to them what the compiler did
    /// to those of the model file.
    pub named_weights: bool,
    /// What the weights of large products are stored in; those that a run may replace stay as they are.
    pub weights_type: WeightsType,
    /// Names that go before the program's own.
    pub names: Names,
    /// What of `f32` may be multiplied as TF32 on GPUs that can.
    pub tf32: Tf32,
    /// Libraries that products may be left to.
    pub libraries: Vec<MathLibrary>,
    /// What measurements say about kernels.
    pub records: Records,
    /// What processors reach that the library is meant for, where that was measured.
    pub rates: Option<Rates>,
    /// Operators of the user's project.
    pub operators: Vec<Operator>,
}

/// A model on its way through the stages.
struct Stages {
    graph: Graph,
    lowered: Program,
    schedule: Schedule,
    explanations: Vec<Explanation>,
}

/// What `then` makes of the graph after all transformations.
fn with_graph<T>(
    model: ModelFile,
    options: &Options,
    then: impl Fn(Graph) -> Result<T, Stop>,
) -> Result<T, Diagnostics> {
    read(&options.name, &model, &options.operators, &mut |graph| then(transformed(graph, options)?))
}

fn transformed(graph: Graph, options: &Options) -> Result<Graph, Diagnostics> {
    let graph = rename(graph, &options.names)?;
    refuse_functions_on_gpus(&graph, options)?;
    let graph = if options.named_weights { graph } else { passes::freeze(graph) };
    // Whole layers are for GPUs.
    let graph =
        if options.gpus.is_empty() { passes::unroll_recurrent(graph, &|_, _, _| false).0 } else { graph };
    // One graph serves all targets, and GPUs have no code for products of bytes.
    let graph = if options.gpus.is_empty() { passes::quantised_products(graph) } else { graph };
    let graph = passes::narrow_lookups(graph);
    let graph = passes::narrow_weights(graph, options.weights_type);
    let mut graph = passes::optimize(passes::fold_groups(graph));
    // A text may have a name of its own; symbols and bindings are found by the one asked for.
    graph.name.clone_from(&options.name);
    Ok(graph)
}

/// Functions of the user's project are given memory of the processor.
fn refuse_functions_on_gpus(graph: &Graph, options: &Options) -> Result<(), Diagnostics> {
    if options.gpus.is_empty() {
        return Ok(());
    }
    let mut findings = Vec::new();
    graph.visit(&mut |graph, node| {
        if let Op::Extern(call) = &node.op {
            let message = format!(
                "operator `{}` is a function of the project, which cannot be called on a GPU",
                call.operator
            );
            let finding = Diagnostic::new(Code::Operator, message).at(&graph.origins[node.origin]);
            findings.push(finding.help("give its `graph` in `.aoti` text, or build for `cpu` alone"));
        }
    });
    if findings.is_empty() { Ok(()) } else { Err(Diagnostics(findings)) }
}

/// What a graph becomes for a target.
struct Scheduled {
    lowered: Program,
    schedule: Schedule,
    explanations: Vec<Explanation>,
    /// What could be decided otherwise before and between kernels.
    questions: Vec<TuningPoint>,
}

/// The graph with those recurrent layers that a target has kernels for; the others are unrolled.
fn layers_for(graph: Graph, target: &Target) -> Graph {
    let (graph, unrolled) = passes::unroll_recurrent(graph, &|own, gates, ranges| match target {
        Target::Cpu(_) => false,
        Target::Gpu(gpu) => own.steps_and_batch(&gates.shape).is_some_and(|(steps, batch)| {
            kernels::axis_ops::recurrent::is_taken(own, (gates.dtype, steps, batch), ranges, gpu)
        }),
    });
    if unrolled { passes::optimize(graph) } else { graph }
}

/// From a graph to a schedule for a target.
fn scheduled(graph: &Graph, target: &Target, records: &Records) -> Result<Scheduled, OutOfBounds> {
    let mut questions = Decisions::new(records);
    let own = layers_for(graph.clone(), target);
    let own = passes::fourier_to_gemm(own, &kernels::axis_ops::fourier::passes_of(target));
    let own = passes::conv_as_gemm(passes::subpixel_conv(own, target), target);
    let own = passes::byte_functions(passes::maxima_of_bytes(own, target), target);
    let own = passes::products_of_bytes(passes::drop_nested_limits(own), target);
    let own = passes::contractions_in_floats(own, target);
    let own = passes::align_weights(passes::store_gemv_weights(own, target), target);
    let own = passes::split_reductions(own, target, &mut questions);
    let own = passes::split_scans(own, target);
    let own = passes::sorted_selections(own, target);
    let own = passes::tiny_products(own, target);
    let mut lowered = lower(&own, target, &mut questions);
    bounds::enforce_bounds(&mut lowered, "lowering")?;
    check(&loops::verify(&lowered), "lowering");
    let (schedule, explanations) = schedule(lowered.clone(), &graph.ranges(), target, &mut questions)?;
    check(&schedule::verify(&schedule), "scheduling");
    Ok(Scheduled { lowered, schedule, explanations, questions: questions.into_asked() })
}

/// The stages for the CPU levels of the options, or for their GPUs where they ask for those of one vendor alone.
fn stages(model: ModelFile, options: &Options) -> Result<Stages, Diagnostics> {
    let target = match <[_; 1]>::try_from(gpu_targets(options)?) {
        Ok([(gpu, _)]) if options.levels.is_empty() => Target::Gpu(gpu),
        _ => cpu_target(options),
    };
    with_graph(model, options, |graph| {
        let Scheduled { lowered, schedule, explanations, .. } = scheduled(&graph, &target, &options.records)?;
        Ok(Stages { graph, lowered, schedule, explanations })
    })
}

/// The processors that the options ask for.
fn cpu_target(options: &Options) -> Target {
    let target = CpuTarget::new(&options.levels).with_libraries(&options.libraries);
    Target::Cpu(target.with_rates(options.rates.clone()))
}

/// What work costs on the processors that the options ask for.
pub fn cpu_prices(options: &Options) -> CostModel {
    cpu_target(options).prices()
}

/// The GPUs that the options ask for: the architectures of each vendor, and what holds on all of them.
fn gpu_targets(options: &Options) -> Result<Vec<(GpuTarget, Vec<String>)>, Diagnostics> {
    let mut groups: Vec<(Vendor, Vec<String>)> = Vec::new();
    let mut unknown = Vec::new();
    for name in &options.gpus {
        let Some(target) = GpuTarget::named(name) else {
            let message = format!("no GPU architecture `{name}` is known");
            unknown.push(Diagnostic::new(Code::Architecture, message).help(GpuTarget::all_known()));
            continue;
        };
        match groups.iter_mut().find(|(vendor, _)| *vendor == target.vendor) {
            Some((_, names)) => names.push(name.clone()),
            None => groups.push((target.vendor, vec![name.clone()])),
        }
    }
    if !unknown.is_empty() {
        return Err(Diagnostics(unknown));
    }
    let common = |(_, names): (Vendor, Vec<String>)| {
        let target = GpuTarget::common(&names).expect("each is known, and all are of one vendor");
        (target.allowing(options.tf32).with_libraries(&options.libraries), names)
    };
    Ok(groups.into_iter().map(common).collect())
}

/// Stops debug builds at the findings of a verifier: they are our bug.
fn check(findings: &[String], pass: &str) {
    if cfg!(debug_assertions) {
        assert!(findings.is_empty(), "{pass} made a malformed program:\n{}", findings.join("\n"));
    }
}

/// Compiles a model to a source bundle.
pub fn compile(model: impl Into<ModelFile>, options: &Options) -> Result<SourceBundle, Diagnostics> {
    let (model, targets) = (model.into(), gpu_targets(options)?);
    if !model.programs.is_empty() {
        return programs::compile(&model.programs, &targets, options);
    }
    let scheduled = with_graph(model, options, |graph| Ok(for_devices(&graph, &targets, options)?))?;
    Ok(bundle(&[(None, scheduled)], options))
}

/// A graph, scheduled for all targets.
struct ForDevices {
    cpu: Option<Schedule>,
    gpus: Vec<(Schedule, Vendor, Vec<String>)>,
    ranges: RangeTable,
    constants: Option<ConstantStages>,
}

fn for_devices(
    graph: &Graph,
    targets: &[(GpuTarget, Vec<String>)],
    options: &Options,
) -> Result<ForDevices, OutOfBounds> {
    let scheduled = |target: &Target| Ok(scheduled(graph, target, &options.records)?.schedule);
    let is_for_cpu = !options.levels.is_empty() || targets.is_empty();
    let cpu = is_for_cpu.then(|| scheduled(&cpu_target(options))).transpose()?;
    let gpu = |(target, names): &(GpuTarget, Vec<String>)| {
        Ok((scheduled(&Target::Gpu(target.clone()))?, target.vendor, names.clone()))
    };
    let gpus = targets.iter().map(gpu).collect::<Result<Vec<_>, OutOfBounds>>()?;
    let programs =
        cpu.iter().chain(gpus.iter().map(|(schedule, ..)| schedule)).map(|schedule| &schedule.program);
    let constants = options.named_weights.then(|| constant_stages(graph, programs, &options.levels));
    Ok(ForDevices { cpu, gpus, ranges: graph.ranges(), constants })
}

/// The source of a model whose programs, by name where there are several, are scheduled.
fn bundle(programs: &[(Option<&str>, ForDevices)], options: &Options) -> SourceBundle {
    let preparations: Vec<Option<codegen::prepare::Preparation<'_>>> = programs
        .iter()
        .map(|(_, program)| {
            program.constants.as_ref().map(|constants| codegen::prepare::Preparation {
                constants: &constants.graph,
                schedule: &constants.schedule,
                ranges: &constants.ranges,
            })
        })
        .collect();
    let one = |(name, program, preparation)| {
        let ForDevices { cpu, gpus, ranges, .. }: &ForDevices = program;
        codegen::OneProgram { name, cpu: cpu.as_ref(), gpus, ranges, preparation }
    };
    let both = programs.iter().zip(&preparations);
    let all: Vec<codegen::OneProgram<'_>> =
        both.map(|((name, program), preparation)| one((*name, program, preparation.as_ref()))).collect();
    codegen::generate(&codegen::Request {
        name: &options.name,
        package: &options.package,
        levels: &options.levels,
        embed_weights: options.embed_weights,
        programs: &all,
    })
}

/// The constant graph on the same way through the stages.
struct ConstantStages {
    graph: ConstantGraph,
    schedule: Schedule,
    ranges: RangeTable,
}

/// For the programs of a model, in the order of its devices.
fn constant_stages<'p>(
    model: &Graph,
    programs: impl Iterator<Item = &'p Program>,
    levels: &[String],
) -> ConstantStages {
    let read = programs.enumerate().flat_map(|(number, program)| {
        program.read_constants().into_iter().map(move |id| ((number, id), &program.constants[id]))
    });
    let graph = passes::constant_graph(model, read);
    let ranges = RangeTable::default();
    // It runs once for each set of weights: the level that every machine runs is good enough.
    let target = Target::cpu(levels.first().map_or(&[], std::slice::from_ref));
    let mut questions = Decisions::default();
    let mut lowered = lower(&passes::widen(graph.graph.clone()), &target, &mut questions);
    let own = "what is computed from constants alone stays within its buffers";
    bounds::enforce_bounds(&mut lowered, "lowering of constants").expect(own);
    check(&loops::verify(&lowered), "lowering of constants");
    let (schedule, _) = schedule(lowered, &ranges, &target, &mut questions).expect(own);
    check(&schedule::verify(&schedule), "scheduling of constants");
    ConstantStages { graph, schedule, ranges }
}

/// How much each kernel does, by its name, for inputs of these sizes. `None` where that depends on data, which nobody knows
/// before a run.
pub fn kernel_work(
    model: impl Into<ModelFile>,
    options: &Options,
    inputs: &[Vec<i64>],
) -> Result<Vec<(String, Option<Work>)>, Diagnostics> {
    let stages = stages(model.into(), options)?;
    let program = &stages.schedule.program;
    let value_of = |symbol: Symbol| {
        let (input, axis) = input_axis(program, symbol.index as usize)?;
        inputs.get(input)?.get(axis).copied()
    };
    let kernels = program.kernels.values();
    Ok(kernels.map(|kernel| (kernel.name.clone(), work(program, kernel, &value_of))).collect())
}

/// The input of the user and its axis whose size a symbol is. `None` where its value comes from data.
fn input_axis(program: &Program, symbol: usize) -> Option<(usize, usize)> {
    match program.symbols.get(symbol)?.source {
        SymbolSource::InputDim { input, axis } => {
            let buffer = program.graph_inputs.get(input)?;
            let position = program.inputs.iter().position(|own| own == buffer)?;
            Some((position, axis))
        }
        SymbolSource::InputValue { .. } | SymbolSource::Data => None,
    }
}

/// A question about a model: a kernel with the ways to run it, or what is decided before that.
#[derive(Clone, PartialEq, Debug)]
pub struct OpenKernel {
    /// What it is about: a kernel's name, of which kernels of one key may have several.
    pub name: String,
    /// What records know it by.
    pub key: TuningKey,
    /// What it is compiled for: `cpu`, or the architecture of a GPU.
    pub target: String,
    /// The sizes that the key leaves open: for each the input and the axis that it is of, where it is one.
    pub sizes: Vec<Option<(usize, usize)>>,
    /// The position of the kernel among those of a run on that target; none of what decides which kernels there are.
    pub index: Option<usize>,
    /// The ways to run it; the first is taken where no record names another.
    pub candidates: Vec<TuningCandidate>,
    /// The position of the one that is taken.
    pub taken: usize,
}

impl OpenKernel {
    /// Whether it is for machines of this kind: an architecture of processors or of GPUs.
    pub fn is_for(&self, family: &str) -> bool {
        match GpuTarget::named(family) {
            Some(_) => self.target.split('+').any(|name| name == family),
            None => self.target == "cpu",
        }
    }
}

/// A way to run a kernel.
#[derive(Clone, PartialEq, Debug)]
pub struct TuningCandidate {
    /// What distinguishes it from the others.
    pub setting: Setting,
    /// What it is thought to cost, as a multiple of the first's.
    pub cost: f64,
    /// The work of each thread behind that, by kind, with the price of each kind.
    pub parts: Vec<(&'static str, f64, f64)>,
    /// Whether there is another from which it differs only in what several threads share.
    pub is_shared: bool,
    /// Parts in which the threads get the work, where that is known.
    pub shares: Option<i64>,
}

impl TuningCandidate {
    /// An answer, beside the first's cost.
    fn new(
        answer: &Alternative,
        first: &Alternative,
        prices: &CostModel,
        facts: MachineInfo,
    ) -> TuningCandidate {
        let typical = first.cost_on(facts, prices);
        let part = |(item, amount): (WorkKind, f64)| (item.name(), amount, prices.of(item));
        TuningCandidate {
            setting: Setting::of_config(&answer.config).expect("stages offer what settings have a form for"),
            cost: if typical > 0.0 { answer.cost_on(facts, prices) / typical } else { 1.0 },
            parts: answer.work_on(facts).parts().map(part).collect(),
            is_shared: answer.is_shared,
            shares: answer.parts(facts),
        }
    }

    /// Whether it does the same as another with as many threads: no more of the work is worth a thread, or not less.
    pub fn is_same(&self, other: &TuningCandidate) -> bool {
        let is_known = self.shares.is_some() && self.shares == other.shares;
        self.setting == other.setting || (is_known && self.setting.is_but_for_grain(&other.setting))
    }

    /// Whether it is worth measuring against the first, with so many threads.
    pub fn is_worth_trying(&self, threads: u16) -> bool {
        /// What is thought to take so many times as long will not win: of kernels, and of what makes kernels, in whose costs
        /// nothing is left out but what they have in common.
        const HOPELESS: f64 = 4.0;
        const HOPELESS_BEFORE: f64 = 1.5;
        let most = match self.setting.decided() {
            TuningStage::Kernel => HOPELESS,
            TuningStage::Graph | TuningStage::Fusion => HOPELESS_BEFORE,
        };
        self.cost <= most && (threads > 1 || !self.is_shared)
    }
}

/// The kernels of a model with the ways to run each, for all targets of the options; first what decides which kernels there
/// are. Costs are those on machines of which so much is known; what is taken without a record is the same on all.
pub fn tuning_points(
    model: impl Into<ModelFile>,
    options: &Options,
    facts: MachineInfo,
) -> Result<Vec<OpenKernel>, Diagnostics> {
    let gpus = gpu_targets(options)?;
    let cpu = (!options.levels.is_empty() || gpus.is_empty()).then(|| cpu_target(options));
    let targets: Vec<Target> =
        cpu.into_iter().chain(gpus.into_iter().map(|(target, _)| Target::Gpu(target))).collect();
    with_graph(model.into(), options, |graph| Ok(open_in(&graph, &targets, &options.records, facts)?))
}

fn open_in(
    graph: &Graph,
    targets: &[Target],
    records: &Records,
    facts: MachineInfo,
) -> Result<Vec<OpenKernel>, OutOfBounds> {
    let mut all = Vec::new();
    for target in targets {
        let Scheduled { schedule, questions, .. } = scheduled(graph, target, records)?;
        let program = &schedule.program;
        let kernels = program.kernels.iter().map(|(id, kernel)| {
            let own = Setting::of(&schedule.choices[id], &schedule.mappings[id]);
            schedule::question(program, kernel, &graph.ranges(), target, &own)
        });
        let kernels: Vec<TuningPoint> = kernels.collect();
        let open = |question, index| open(question, index, program, (target, facts));
        all.extend(questions.into_iter().map(|question| open(question, None)));
        all.extend(kernels.into_iter().enumerate().map(|(index, question)| open(question, Some(index))));
    }
    Ok(all)
}

/// A question about a program, for those who do not know it.
fn open(
    question: TuningPoint,
    index: Option<usize>,
    program: &Program,
    (target, facts): (&Target, MachineInfo),
) -> OpenKernel {
    let TuningPoint { key, sizes, about, answers, taken } = question;
    let prices = target.prices().known(facts);
    let way = |answer| TuningCandidate::new(answer, &answers[0], &prices, facts);
    OpenKernel {
        name: about,
        key,
        target: match target {
            Target::Cpu(_) => "cpu".to_owned(),
            Target::Gpu(gpu) => gpu.architecture.to_string(),
        },
        sizes: sizes.iter().map(|symbol| input_axis(program, *symbol)).collect(),
        index,
        candidates: answers.iter().map(way).collect(),
        taken,
    }
}

/// Runs a model's schedule for processors, as the records say, in the evaluator: slowly, every access checked.
pub fn evaluate(
    model: impl Into<ModelFile>,
    options: &Options,
    inputs: &[interpret::Tensor],
) -> Result<Result<Vec<interpret::Tensor>, interpret::EvalError>, Diagnostics> {
    let stages = stages(model.into(), options)?;
    Ok(interpret::evaluate_schedule(&stages.schedule, inputs).map(|found| found.outputs))
}

/// Which kernels were not fused, and why.
pub fn explain_fusion(
    model: impl Into<ModelFile>,
    options: &Options,
) -> Result<Vec<Explanation>, Diagnostics> {
    Ok(stages(model.into(), options)?.explanations)
}
