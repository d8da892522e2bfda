//! Every family of operators gives what PyTorch gave: in the reference evaluator, as a schedule, and as code for the
//! lowest level of the processor or for this machine's.
//!
//! All calls are evaluated in all of their element types. Compiled are those in the commonest types, for one of the levels each; with
//! `AOTI_FAMILIES=0`, or another number, also each in one of its other types; with `AOTI_FAMILIES=all` all, for both levels.
//!
//! `AOTI_FAMILIES_SANITIZED=data,integers` runs these families under the sanitizers of addresses and of undefined behaviour
//! too, with all their inputs, those that must be refused among them.
//!
//! The cases lie in `tests/cases`; `generate.py` there tells how they are made. A failure names the expression. Needs a
//! C++ compiler for the second half: `g++`, or what `CXX` names.

use aoti_compiler::lower::lower;
use aoti_compiler::schedule::schedule;
use aoti_compiler::target::Target;
use aoti_compiler::tuning::Decisions;
use aoti_compiler::{frontend, graph, interpret, passes};
use aoti_runtime::{AnyView, DynTensor, Inline, Model, Workspace};
use aoti_tests::batch::{self, Processors};
use aoti_tests::calls::{self, Extent, shared_out};
use aoti_tests::child::{self, Child, Turn};
use aoti_tests::families::{self, Case};
use bytes::Bytes;
use libtest_mimic::{Arguments, Failed, Trial};
use std::process::ExitCode;

/// Programs of one library under sanitizers.
const SANITIZED: u64 = 24;

/// Element types of the programs that are always scheduled.
const COMMON: [&str; 3] = ["f32", "i64", "bf16"];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let sanitized = std::env::var("AOTI_FAMILIES_SANITIZED").unwrap_or_default();
    for family in families::all() {
        let name = family.clone();
        trials.push(Trial::test(format!("interpreted::{family}"), move || check_interpreter(&name)));
        let name = family.clone();
        trials.push(Trial::test(format!("scheduled::{family}"), move || check_scheduled(&name)));
        if sanitized.split(',').any(|name| name == family) {
            let name = family.clone();
            trials.push(Trial::test(format!("sanitized::{family}"), move || check_sanitized(&name)));
        }
        trials.push(Trial::test(format!("compiled::{family}"), move || check_compiled(&family)));
    }
    trials.push(Trial::test("converted::float8", check_conversions));
    assert!(!trials.is_empty(), "there are no cases");
    libtest_mimic::run(&arguments, trials).exit_code()
}

fn report(differences: &[String]) -> Result<(), Failed> {
    if differences.is_empty() {
        return Ok(());
    }
    Err(format!("{} outputs differ:\n{}", differences.len(), differences.join("\n")).into())
}

/// The Rust types of one byte convert as PyTorch does: each code, each number half way between two, and what is next to it.
fn check_conversions() -> Result<(), Failed> {
    let mut differences = Vec::new();
    for case in families::read("float8") {
        macro_rules! check {
            ($($name:ident)*) => {
                match case.name.as_str() {
                    $(stringify!($name) => conversions(
                        &case,
                        |number| aoti_runtime::$name::from_f32(number).to_bits(),
                        |code| aoti_runtime::$name::from_bits(code).to_f32(),
                    ),)*
                    other => vec![format!("no type is named {other}")],
                }
            };
        }
        differences.extend(check!(f8e4m3fn f8e5m2 f8e4m3fnuz f8e5m2fnuz f8e8m0fnu));
    }
    report(&differences)
}

/// What differs from the outputs `p.to(type)`, of the numbers `p`, and `c.float()`, of all codes.
fn conversions(case: &Case, code: impl Fn(f32) -> u8, number: impl Fn(u8) -> f32) -> Vec<String> {
    let output = |start: &str| {
        let at = case.labels.iter().position(|label| label.starts_with(start)).expect("there is such a call");
        &case.outputs[at]
    };
    let (codes, numbers) = (output(&format!("p.to({})", case.name)), output("c.float()"));
    let is_operand = |x: &&DynTensor| x.dtype() == aoti_runtime::DType::F32 && x.sizes() == codes.sizes();
    let given = case.inputs.iter().find(is_operand).expect("the numbers are an input");
    let given: &[f32] = given.as_slice().expect("they are of f32");
    let numbers: &[f32] = numbers.as_slice().expect("`float` gives f32");
    let same = |a: f32, b: f32| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    let narrowed = given.iter().zip(codes.bytes()).filter_map(|(&given, &wanted)| {
        let found = code(given);
        let both_nan = number(found).is_nan() && number(wanted).is_nan();
        let differs = found != wanted && !both_nan;
        differs.then(|| format!("{}: {given:e} gives {found:#04x} instead of {wanted:#04x}", case.name))
    });
    let widened = (0..=u8::MAX).zip(numbers).filter_map(|(code, &wanted)| {
        let found = number(code);
        (!same(found, wanted)).then(|| format!("{}: {code:#04x} is {found} instead of {wanted}", case.name))
    });
    narrowed.chain(widened).collect()
}

fn check_interpreter(family: &str) -> Result<(), Failed> {
    let cases = families::read(family);
    let mut differences = Vec::new();
    for case in &cases {
        let graph = frontend::read("case", case.model.clone(), &[]).map_err(|findings| findings.to_string());
        let run = |inputs: &[DynTensor]| interpreted(graph.as_ref().map_err(Clone::clone)?, inputs);
        differences.extend(case.check(run(&case.inputs)));
        differences.extend(case.sets.iter().flat_map(|set| case.check_set(set, run(&set.inputs))));
    }
    report(&differences)
}

fn interpreted(graph: &graph::Graph, inputs: &[DynTensor]) -> Result<Vec<DynTensor>, String> {
    let inputs: Vec<interpret::Tensor> = inputs.iter().map(families::to_interpreter).collect();
    let values = interpret::evaluate(graph, &inputs).map_err(|error| error.to_string())?;
    let is_users = |role: graph::OutputRole| !matches!(role, graph::OutputRole::State(_));
    let outputs = values.iter().zip(&graph.outputs).filter(|(_, output)| is_users(output.role));
    Ok(outputs.map(|(value, _)| families::from_interpreter(value)).collect())
}

/// What lowering, fusion, mapping and memory planning make of a program, without a C++ compiler.
fn check_scheduled(family: &str) -> Result<(), Failed> {
    let mut cases = families::read(family);
    let is_common = |case: &Case| COMMON.iter().any(|dtype| case.name.starts_with(dtype));
    cases.retain(|case| extent() != Extent::Common || is_common(case));
    let differences = cases.iter().flat_map(|case| case.check(scheduled(case)));
    report(&differences.collect::<Vec<_>>())
}

fn scheduled(case: &Case) -> Result<Vec<DynTensor>, String> {
    let graph = frontend::read("case", case.model.clone(), &[]).map_err(|findings| findings.to_string())?;
    let graph = passes::optimize(graph);
    let target = Target::cpu(&["x86-64-v3"]);
    let mut questions = Decisions::default();
    let lowered = lower(&graph, &target, &mut questions);
    let (schedule, _) =
        schedule(lowered, &graph.ranges(), &target, &mut questions).map_err(|outside| outside.to_string())?;
    let inputs: Vec<interpret::Tensor> = case.inputs.iter().map(families::to_interpreter).collect();
    let values = interpret::evaluate_schedule(&schedule, &inputs).map_err(|error| error.to_string())?;
    Ok(values.outputs.iter().map(families::from_interpreter).collect())
}

fn check_compiled(family: &str) -> Result<(), Failed> {
    let Some(compiler) = batch::compiler() else { return Ok(()) };
    let programs = calls::programs(families::read(family));
    let levels = [Processors::All, Processors::ThisOne];
    let mut differences = Vec::new();
    for (processors, programs) in levels.into_iter().zip(shared_out(&programs, extent(), levels.len())?) {
        if programs.is_empty() {
            continue;
        }
        let models: Vec<Bytes> = programs.iter().map(|program| program.model.clone()).collect();
        let folder = tempfile::tempdir().expect("a folder for the library");
        let built = batch::build(&compiler, &models, processors, folder.path())?;
        let cases = programs.iter().zip(&built);
        for (case, model) in
            cases.flat_map(|(program, model)| program.cases.iter().map(move |case| (case, model)))
        {
            let mut lines = case.check(run(&case.inputs, model));
            lines.extend(case.sets.iter().flat_map(|set| case.check_set(set, run(&set.inputs, model))));
            differences.extend(lines.into_iter().map(|line| format!("{processors:?}: {line}")));
        }
    }
    report(&differences)
}

/// What is compiled, as `AOTI_FAMILIES` says.
fn extent() -> Extent {
    match std::env::var("AOTI_FAMILIES") {
        Err(_) => Extent::Common,
        Ok(text) if text == "all" => Extent::All,
        Ok(text) => Extent::Turn(text.parse().expect("AOTI_FAMILIES is `all` or a number")),
    }
}

/// Every program with all its inputs under sanitizers, in a process of its own.
fn check_sanitized(family: &str) -> Result<(), Failed> {
    let cases = families::read(family);
    child::here(|turn, first, count| sanitized(turn, &cases, first, count));
    let preload = batch::sanitizer();
    if preload.is_none() {
        return Ok(());
    }
    let child = Child { test: format!("sanitized::{family}"), preload, first: 0, count: cases.len() as u64 };
    let outcome = child.run();
    eprintln!("{family} under sanitizers: {outcome}");
    report(&outcome.findings)
}

/// The cases of these positions, in batches.
fn sanitized(turn: &mut Turn, cases: &[Case], first: u64, count: u64) {
    let compiler = batch::compiler().expect("the parent has seen it");
    for batch in turn.batches(first, first + count, SANITIZED) {
        let (start, own) = (batch.start, &cases[batch.start as usize..batch.end as usize]);
        turn.at(start.max(first));
        let models: Vec<Bytes> = own.iter().map(|case| case.model.clone()).collect();
        turn.in_folder(&start.to_string(), |folder| {
            let build = || batch::build_checked(&compiler, &models, Processors::ThisOne, folder);
            let built = match turn.untimed(build) {
                Ok(built) => built,
                Err(message) => return turn.finding(start, &message),
            };
            for ((number, case), model) in batch.clone().zip(own).zip(&built) {
                if number < first {
                    continue;
                }
                turn.at(number);
                turn.count("programs");
                let mut lines = case.check(run(&case.inputs, model));
                for set in &case.sets {
                    turn.count("other inputs");
                    lines.extend(case.check_set(set, run(&set.inputs, model)));
                }
                lines.iter().for_each(|line| turn.finding(number, line));
            }
        });
    }
}

fn run(inputs: &[DynTensor], model: &Model) -> Result<Vec<DynTensor>, String> {
    let infos = model.info().inputs.iter().map(|input| input.dtype);
    let inputs: Vec<DynTensor> =
        inputs.iter().zip(infos).map(|(input, dtype)| families::numbers(input, dtype)).collect();
    let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut places: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    model
        .run(&views, &mut places, None, &mut Workspace::new(), &Inline)
        .map_err(|error| error.to_string())?;
    Ok(outputs)
}
