//! The text forms of all stages give their programs back: for real models, where `AOTI_CONFORMANCE` names a folder of
//! cases.

use aoti_compiler::frontend::torch::aten;
use aoti_compiler::lower::lower;
use aoti_compiler::schedule::memory::least_arena;
use aoti_compiler::schedule::{self, schedule};
use aoti_compiler::symbolic::{Ranges, Symbol};
use aoti_compiler::target::Target;
use aoti_compiler::tuning::Decisions;
use aoti_compiler::{frontend, graph, loops, passes, runplan};
use bytes::Bytes;
use std::path::PathBuf;

/// Models of the cases with their paths: of each set at most `most`, evenly chosen.
fn models(most: usize) -> Vec<(PathBuf, Bytes)> {
    let Some(folder) = std::env::var_os("AOTI_CONFORMANCE") else {
        eprintln!("skipped: AOTI_CONFORMANCE does not name a folder of cases");
        return vec![];
    };
    let mut models = Vec::new();
    for set in std::fs::read_dir(folder).expect("the folder can be read") {
        let cases = std::fs::read_dir(set.expect("an entry").path()).into_iter().flatten();
        let paths = cases.map(|case| case.expect("an entry").path().join("model.pt2"));
        let mut paths: Vec<PathBuf> = paths.filter(|path| path.is_file()).collect();
        paths.sort();
        let step = paths.len().div_ceil(most).max(1);
        let read = |path: PathBuf| (path.clone(), std::fs::read(path).expect("the model can be read").into());
        models.extend(paths.into_iter().step_by(step).map(read));
    }
    assert!(!models.is_empty(), "the folder holds no case");
    models
}

#[test]
fn programs_of_aten_calls_come_back() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, model) in models(usize::MAX) {
        let Ok(program) = frontend::torch::program("model", model) else { continue };
        count += 1;
        let text = aten::text::print(&program);
        match aten::text::parse(&text) {
            // NaN is not equal to itself; its text is.
            Ok(back) if back == program || aten::text::print(&back) == text => {}
            Ok(_) => wrong.push(format!("{}: comes back changed", path.display())),
            Err(error) => wrong.push(format!("{}: {error}", path.display())),
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

/// Says where the arena of a schedule is more than a twentieth larger than what is alive at once, if it is at some sizes.
fn wasted(schedule: &schedule::Schedule, ranges: &dyn Ranges) -> Option<String> {
    [1, 7, 64, 300].into_iter().find_map(|typical| {
        let value_of = |symbol: Symbol| {
            let range = ranges.range(symbol);
            Some(typical.clamp(range.min, range.max))
        };
        let least = least_arena(&schedule.program, ranges, &schedule.target, &value_of)?;
        let arena = schedule.memory.arena_bytes.evaluate(&value_of)?;
        // Small arenas are mostly rounding.
        let allowed = least + least / 20 + 1024;
        (arena > allowed)
            .then(|| format!("{arena} bytes are planned at sizes of {typical}, {least} are alive at once"))
    })
}

/// Models of a set that go through all stages.
const SAMPLE: usize = 100;

#[test]
fn graphs_and_loops_come_back() {
    let (mut count, mut wrong) = (0, Vec::new());
    for (path, model) in models(SAMPLE) {
        let Ok(graph) = frontend::read("model", model, &[]) else { continue };
        let graph = passes::optimize(graph);
        count += 1;
        let text = graph::text::print(&graph);
        match graph::text::parse(&text) {
            Ok(back) if back == graph || graph::text::print(&back) == text => {}
            Ok(_) => wrong.push(format!("{}: the graph comes back changed", path.display())),
            Err(error) => wrong.push(format!("{}: the graph: {error}", path.display())),
        }
        // As for processors, which have no kernel for a layer.
        let graph = passes::unroll_recurrent(graph, &|_, _, _| false).0;
        let (ranges, target) = (graph.ranges(), Target::cpu(&["x86-64-v3"]));
        let lowered = lower(&graph, &target, &mut Decisions::default());
        let (scheduled, _) = schedule(lowered.clone(), &ranges, &target, &mut Decisions::default()).unwrap();
        let plan = runplan::of_schedule(&scheduled, &ranges);
        match runplan::text::parse(&runplan::text::print(&plan)) {
            Ok(back) if back == plan => {}
            Ok(_) => wrong.push(format!("{}: the run comes back changed", path.display())),
            Err(error) => wrong.push(format!("{}: the run: {error}", path.display())),
        }
        let findings = loops::verify(&lowered).into_iter().chain(schedule::verify(&scheduled));
        wrong.extend(findings.map(|finding| format!("{}: {finding}", path.display())));
        wrong.extend(
            wasted(&scheduled, &ranges).into_iter().map(|what| format!("{}: {what}", path.display())),
        );
        let text = loops::text::print(&lowered);
        match loops::text::parse(&text) {
            Ok(back) if back == lowered || loops::text::print(&back) == text => {}
            Ok(_) => wrong.push(format!("{}: the loops come back changed", path.display())),
            Err(error) => wrong.push(format!("{}: the loops: {error}", path.display())),
        }
        let text = schedule::text::print(&scheduled);
        match schedule::text::parse(&text) {
            Ok(back) if back == scheduled || schedule::text::print(&back) == text => {}
            Ok(_) => wrong.push(format!("{}: the schedule comes back changed", path.display())),
            Err(error) => wrong.push(format!("{}: the schedule: {error}", path.display())),
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}
