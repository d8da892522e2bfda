//! Random small graphs give the same in the reference evaluator and as compiled code.
//!
//! `AOTI_RANDOM_GRAPHS` is the number of graphs, `AOTI_RANDOM_SEED` the first seed; a difference is reported with the
//! seed and the graph's text. Needs a C++ compiler: `g++`, or what `CXX` names.
//!
//! `AOTI_RANDOM_CHECKED` is the number of graphs, all with sizes that are read from data, which are compiled and run under
//! sanitizers too, in a child process; there are none unless it is set.

mod accuracy;
mod folds;
mod generate;
mod moves;

use accuracy::Accuracy;
use aoti_compiler::graph::{Graph, InputRole, OutputRole, SymbolSource, text, verify};
use aoti_compiler::interpret::{Tensor, evaluate, evaluate_schedule};
use aoti_compiler::loops;
use aoti_compiler::lower::lower;
use aoti_compiler::schedule::{self, Schedule, schedule};
use aoti_compiler::target::{GpuTarget, Target};
use aoti_compiler::tuning::{Decisions, Records};
use aoti_runtime::{AnyView, DType, DynTensor, Inline, Model, State, Workspace};
use aoti_tests::batch::{self, Processors};
use aoti_tests::child::{self, Child, Turn, number};
use aoti_tests::rng::Rng;
use bytes::Bytes;
use generate::{Generated, TRIALS, at, element, generate, wild_element};

/// Graphs of one library.
const BATCH: u64 = 40;

#[test]
fn random_graphs_agree_with_the_reference() {
    let Some(compiler) = batch::compiler() else { return };
    let (count, first) = (number("AOTI_RANDOM_GRAPHS", 2 * BATCH), number("AOTI_RANDOM_SEED", 0));
    let mut failures = Vec::new();
    for start in (first..first + count).step_by(BATCH as usize) {
        let seeds: Vec<u64> = (start..(start + BATCH).min(first + count)).collect();
        check_batch(&compiler, &seeds, &mut failures);
        eprintln!(
            "seeds {start} to {}: {} differences so far",
            start + seeds.len() as u64 - 1,
            failures.len()
        );
    }
    assert!(failures.is_empty(), "{} of {count} graphs differ:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn graphs_with_sizes_from_data_stay_within_their_memory() {
    child::here(check_under_sanitizers);
    let (first, count) = (number("AOTI_RANDOM_SEED", 0), number("AOTI_RANDOM_CHECKED", 0));
    let preload = batch::sanitizer();
    if preload.is_none() || count == 0 {
        return;
    }
    let test = "graphs_with_sizes_from_data_stay_within_their_memory".to_owned();
    Child { test, preload, first, count }.run().report("graphs with sizes from data");
}

/// The graph of the first of a seed's own seeds that has a size from data.
fn with_data_sizes(seed: u64) -> Generated {
    let has_data = |case: &Generated| {
        case.graph.symbols.iter().any(|symbol| matches!(symbol.source, SymbolSource::Data))
    };
    let mut own = (seed << 16..).map(generate);
    own.find(has_data).expect("one graph in a few reads a size")
}

fn check_under_sanitizers(turn: &mut Turn, first: u64, count: u64) {
    let compiler = batch::compiler().expect("the parent has seen it");
    for seeds in turn.batches(first, first + count, BATCH) {
        let start = seeds.start;
        turn.at(start.max(first));
        let cases: Vec<(u64, Generated)> = seeds.map(|seed| (seed, with_data_sizes(seed))).collect();
        let texts: Vec<Bytes> =
            cases.iter().map(|(_, case)| text::print(&case.graph).into_bytes().into()).collect();
        turn.in_folder(&start.to_string(), |folder| {
            let build = || batch::build_checked(&compiler, &texts, Processors::ThisOne, folder);
            let models = match turn.untimed(build) {
                Ok(models) => models,
                Err(message) => return turn.finding(start, &message),
            };
            let own = cases.iter().zip(&models).filter(|((seed, _), _)| *seed >= first);
            for ((seed, case), model) in own {
                turn.at(*seed);
                turn.count("graphs");
                if let Err(message) = check(*seed, case, model) {
                    turn.finding(*seed, &format!("{message}\n{}", text::print(&case.graph)));
                }
            }
        });
    }
}

fn check_batch(compiler: &str, seeds: &[u64], failures: &mut Vec<String>) {
    let cases: Vec<Generated> = seeds.iter().map(|seed| generate(*seed)).collect();
    for (seed, case) in seeds.iter().zip(&cases) {
        verify(&case.graph)
            .unwrap_or_else(|findings| panic!("seed {seed}: {findings:?}\n{}", text::print(&case.graph)));
        if let Some(text) = changed_by_its_text(&case.graph) {
            failures.push(format!("seed {seed}: a text does not come back as it went\n{text}"));
        }
    }
    let graphs: Vec<Graph> = cases.iter().map(|case| case.graph.clone()).collect();
    let folder = tempfile::tempdir().expect("a folder for the library");
    // Each graph goes through its text form, which is a test of that too.
    let texts: Vec<Bytes> = graphs.iter().map(|graph| text::print(graph).into_bytes().into()).collect();
    let models = match batch::build(compiler, &texts, Processors::ThisOne, folder.path()) {
        Ok(models) => models,
        Err(message) if seeds.len() == 1 => {
            return failures.push(format!("seed {}: {message}\n{}", seeds[0], text::print(&graphs[0])));
        }
        // One that does not compile must not hide the others.
        Err(_) => {
            let (left, right) = seeds.split_at(seeds.len() / 2);
            check_batch(compiler, left, failures);
            return check_batch(compiler, right, failures);
        }
    };
    for ((seed, case), model) in seeds.iter().zip(&cases).zip(&models) {
        if let Err(message) = check(*seed, case, model) {
            failures.push(format!("seed {seed}: {message}\n{}", text::print(&case.graph)));
        }
    }
}

/// The text of the graph, or of its loops before or after scheduling, that parses to something else.
fn changed_by_its_text(graph: &Graph) -> Option<String> {
    let own = text::print(graph);
    // NaN is not equal to itself; its text is.
    if text::parse(&own).ok().as_ref().map(text::print).as_ref() != Some(&own) {
        return Some(own);
    }
    let target = Target::cpu(&["x86-64-v3"]);
    let lowered = lower(graph, &target, &mut Decisions::default());
    let (scheduled, _) = schedule(lowered.clone(), &graph.ranges(), &target, &mut Decisions::default())
        .expect("every access is checked");
    let own = loops::text::print(&lowered);
    if loops::text::parse(&own).ok().as_ref().map(loops::text::print).as_ref() != Some(&own) {
        return Some(own);
    }
    let own = schedule::text::print(&scheduled);
    let back = schedule::text::parse(&own).ok();
    (back.as_ref().map(schedule::text::print).as_ref() != Some(&own)).then_some(own)
}

/// Runs every trial; where the program has state, it goes from one run to the next.
fn check(seed: u64, case: &Generated, model: &Model) -> Result<(), String> {
    let graph = &case.graph;
    let mut rng = Rng::new(seed ^ 0xda7a);
    let mut state = model.state().map_err(|error| error.to_string())?;
    let mut old_states = initial_states(graph);
    for trial in 0..TRIALS.len() {
        let mut inputs = trial_inputs(case, trial, &mut rng);
        for (input, old) in
            graph.inputs.iter().zip(&mut inputs).filter(|(input, _)| input.role != InputRole::User)
        {
            *old = old_states.remove(0);
            debug_assert!(input.role != InputRole::User);
        }
        let expected = evaluate(graph, &inputs);
        check_schedule(case, &inputs, &expected).map_err(|message| format!("trial {trial}: {message}"))?;
        let given: Vec<&Tensor> = graph
            .inputs
            .iter()
            .zip(&inputs)
            .filter(|(input, _)| input.role == InputRole::User)
            .map(|(_, x)| x)
            .collect();
        let results = run(model, &given, &mut state);
        let (expected, results) = match (expected, results) {
            (Ok(expected), Ok(results)) => (expected, results),
            // What is in the state after a failed run is not said.
            (Err(expected), Err(found)) => return same_failure(&expected.to_string(), &found),
            (Ok(_), Err(message)) => return Err(format!("trial {trial}: {message}")),
            (Err(error), Ok(_)) => {
                return Err(format!("trial {trial}: runs where the reference fails: {error}"));
            }
        };
        let mut next = vec![None; graph.inputs.len()];
        let mut results = results.iter();
        for (position, (output, wanted)) in graph.outputs.iter().zip(&expected).enumerate() {
            match output.role {
                OutputRole::State(input) => next[input] = Some(wanted.clone()),
                OutputRole::User | OutputRole::Mutation(_) => {
                    let found = results.next().ok_or("an output is missing")?;
                    compare(wanted, found, case.outputs[position])
                        .map_err(|message| format!("trial {trial}, output {position}: {message}"))?;
                }
            }
        }
        old_states = next.into_iter().flatten().collect();
    }
    Ok(())
}

/// A condition of the program is named by its reason, with the values at hand or without.
fn same_failure(expected: &str, found: &str) -> Result<(), String> {
    let reason = expected.trim_end_matches('`').rsplit(": ").next().unwrap_or(expected);
    if found.contains(reason) { Ok(()) } else { Err(format!("fails with `{found}` instead of `{expected}`")) }
}

/// Compares what the schedule gives, without a C++ compiler; also where everything that is open is decided otherwise.
fn check_schedule<E: std::fmt::Display>(
    case: &Generated,
    inputs: &[Tensor],
    expected: &Result<Vec<Tensor>, E>,
) -> Result<(), String> {
    let (graph, target) = (&case.graph, Target::cpu(&["x86-64-v3"]));
    let scheduled = |records: &Records| {
        let mut questions = Decisions::new(records);
        let lowered = lower(graph, &target, &mut questions);
        let scheduled = schedule(lowered, &graph.ranges(), &target, &mut questions);
        (scheduled.expect("every access is checked").0, questions.into_asked())
    };
    let (first, asked) = scheduled(&Records::none());
    gives(case, &first, inputs, expected)?;
    let gpu = Target::Gpu(GpuTarget::named("sm_90a").expect("it is in the table"));
    let lowered = lower(graph, &gpu, &mut Decisions::default());
    let on_gpu = schedule(lowered, &graph.ranges(), &gpu, &mut Decisions::default());
    let on_gpu = on_gpu.expect("every access is checked").0;
    gives(case, &on_gpu, inputs, expected).map_err(|message| format!("for a GPU: {message}"))?;
    let mut records = Records::none();
    for question in &asked {
        records.set(question.key.clone(), question.answers[1].config.clone());
    }
    if records.is_empty() {
        return Ok(());
    }
    let message = |message| format!("with other answers to what is open: {message}");
    gives(case, &scheduled(&records).0, inputs, expected).map_err(message)
}

/// Compares what a schedule gives.
fn gives<E: std::fmt::Display>(
    case: &Generated,
    schedule: &Schedule,
    inputs: &[Tensor],
    expected: &Result<Vec<Tensor>, E>,
) -> Result<(), String> {
    let graph = &case.graph;
    let (expected, found) = match (expected, evaluate_schedule(schedule, inputs)) {
        (Ok(expected), Ok(found)) => (expected, found),
        (Err(expected), Err(found)) => return same_failure(&expected.to_string(), &found.to_string()),
        (Ok(_), Err(error)) => return Err(format!("the schedule fails: {error}")),
        (Err(error), Ok(_)) => return Err(format!("the schedule runs where the reference fails: {error}")),
    };
    let is_state = |input: &usize| matches!(graph.inputs[*input].role, InputRole::State(_));
    let states: Vec<usize> = (0..graph.inputs.len()).filter(is_state).collect();
    let left = found.states;
    let mut found = found.outputs.into_iter();
    for (position, (output, wanted)) in graph.outputs.iter().zip(expected).enumerate() {
        if let OutputRole::State(input) = output.role {
            let number = states.iter().position(|state| *state == input);
            let state = number.and_then(|number| left.get(number)).ok_or("the schedule lacks a state")?;
            if state.bytes() != wanted.bytes() {
                return Err(format!("state {input} of the schedule is {state:?} instead of {wanted:?}"));
            }
            continue;
        }
        let found = found.next().ok_or("the schedule lacks an output")?;
        let found = DynTensor::from_bytes(runtime_type(found.dtype()), found.sizes(), found.bytes())
            .map_err(|error| error.to_string())?;
        compare(wanted, &found, case.outputs[position])
            .map_err(|message| format!("output {position} of the schedule: {message}"))?;
    }
    Ok(())
}

fn initial_states(graph: &Graph) -> Vec<Tensor> {
    let initial = |input: &aoti_compiler::graph::Input| match input.role {
        InputRole::User | InputRole::Generator => None,
        InputRole::State(id) => {
            let constant = &graph.constants[id];
            let sizes = constant.sizes.iter().map(|size| *size as usize).collect();
            Some(Tensor::new(constant.dtype, sizes, constant.data.clone()).expect("the data fit"))
        }
    };
    graph.inputs.iter().filter_map(initial).collect()
}

fn trial_inputs(case: &Generated, trial: usize, rng: &mut Rng) -> Vec<Tensor> {
    let graph = &case.graph;
    let of_type = if case.wild { wild_element } else { element };
    let mut inputs = Vec::new();
    for input in &graph.inputs {
        let ty = graph.ty(input.value);
        let sizes: Vec<usize> = ty.shape.iter().map(|size| at(size, trial) as usize).collect();
        let count: usize = sizes.iter().product();
        let data: Vec<u8> = (0..count).flat_map(|_| of_type(rng, ty.dtype)).collect();
        inputs.push(Tensor::new(ty.dtype, sizes, data).expect("the data fit"));
    }
    inputs
}

fn runtime_type(dtype: aoti_compiler::dtype::DType) -> DType {
    use aoti_compiler::dtype::DType as Compiled;
    use aoti_compiler::float8::Float8;
    match dtype {
        Compiled::Bool => DType::Bool,
        Compiled::U8 => DType::U8,
        Compiled::I8 => DType::I8,
        Compiled::I16 => DType::I16,
        Compiled::I32 => DType::I32,
        Compiled::I64 => DType::I64,
        Compiled::F16 => DType::F16,
        Compiled::Bf16 => DType::Bf16,
        Compiled::F32 => DType::F32,
        Compiled::F64 => DType::F64,
        Compiled::U16 => DType::U16,
        Compiled::U32 => DType::U32,
        Compiled::U64 => DType::U64,
        Compiled::F8(Float8::E4M3Fn) => DType::F8E4M3Fn,
        Compiled::F8(Float8::E5M2) => DType::F8E5M2,
        Compiled::F8(Float8::E4M3Fnuz) => DType::F8E4M3Fnuz,
        Compiled::F8(Float8::E5M2Fnuz) => DType::F8E5M2Fnuz,
        Compiled::F8(Float8::E8M0Fnu) => DType::F8E8M0Fnu,
    }
}

fn run(model: &Model, inputs: &[&Tensor], state: &mut State) -> Result<Vec<DynTensor>, String> {
    let tensors: Vec<DynTensor> = inputs
        .iter()
        .map(|x| DynTensor::from_bytes(runtime_type(x.dtype()), x.sizes(), x.bytes()))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())?;
    let views: Vec<AnyView> = tensors.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let state = (!model.info().states.is_empty()).then_some(state);
    let mut places: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    model
        .run(&views, &mut places, state, &mut Workspace::new(), &Inline)
        .map_err(|error| error.to_string())?;
    Ok(outputs)
}

fn compare(wanted: &Tensor, found: &DynTensor, accuracy: Accuracy) -> Result<(), String> {
    if runtime_type(wanted.dtype()) != found.dtype() || wanted.sizes() != found.sizes() {
        return Err(format!(
            "{:?}{:?} instead of {}{:?}",
            found.dtype(),
            found.sizes(),
            wanted.dtype(),
            wanted.sizes()
        ));
    }
    let found =
        Tensor::new(wanted.dtype(), wanted.sizes().to_vec(), found.bytes().to_vec()).expect("the same type");
    if !wanted.dtype().is_float() {
        return if *wanted == found { Ok(()) } else { Err(format!("{found:?}\ninstead of {wanted:?}")) };
    }
    for (position, (a, b)) in wanted.to_f64().into_iter().zip(found.to_f64()).enumerate() {
        let allowed = if accuracy.last { 1e-4 + 1e-3 * a.abs() } else { 4.0 * accuracy.error };
        let same = a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= allowed;
        if !same {
            return Err(format!("element {position} is {b} instead of {a} (allowed {allowed:e})"));
        }
    }
    Ok(())
}
