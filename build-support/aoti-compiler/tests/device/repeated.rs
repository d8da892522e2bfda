//! Prepared runs that are repeated: what the driver is asked for, and that results are right.

use super::emulated::{GFX9, Machine, NVIDIA, program_of};
use super::{compiled, is_installed, source, text_of};

/// What the program says of its parts: launches one by one, captures, graphs, and kernels that were given other arguments.
fn counts(machine: Machine, driver: &[&str]) -> Option<Vec<[usize; 4]>> {
    let gcc = is_installed("gcc", &["g++"])?;
    let place = if driver.is_empty() { "moving" } else { "fixed" };
    let program = program_of(&gcc, place, ("moving", &source("moving")), machine, ("moving.cpp", driver));
    let number =
        |line: &str, at: usize| line.split(' ').nth(2 * at + 1).expect("four").parse().expect("a number");
    Some(program.output().lines().map(|line| [0, 1, 2, 3].map(|at| number(line, at))).collect())
}

/// Launches of a run whose lines have one of these.
fn launches(machine: Machine, with: &[&str]) -> usize {
    let bundle = compiled("moving", machine.architecture);
    let lines = text_of(&bundle, machine.host_code()).lines().filter(|line| line.contains("launch(run"));
    lines.filter(|line| with.iter().any(|word| line.contains(word))).count()
}

#[test]
fn graphs_follow_the_callers_addresses() {
    for machine in [NVIDIA, GFX9] {
        let Some(counts) = counts(machine, &[]) else { return };
        let launches = |with: &[&str]| launches(machine, with);
        let (all, state) = (launches(&["launch("]), launches(&["state<"]));
        let given = launches(&["input<", "output<", "state<"]);
        assert!(0 < state && state < given && given < all, "{state} {given} {all}");
        // The first run is launched, the second captured, and four are told of what has moved.
        assert_eq!(counts[0], [all, 1, 1, 4 * given]);
        assert_eq!(counts[1], [0, 0, 0, 4 * state]);
        assert_eq!(counts[2], [0, 0, 0, 0]);
        // The second run is launched once and captured once.
        assert_eq!(counts[3][..3], [all, 1, 1]);
    }
}

#[test]
fn many_runs_use_no_more_memory_than_a_few_and_failures_leave_nothing() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    program_of(&gcc, "soak", ("soak", &source("soak")), NVIDIA, ("soak.cpp", &[])).output();
}

#[test]
fn drivers_that_cannot_change_a_graph_repeat_what_comes_again() {
    let Some(counts) = counts(NVIDIA, &["-DOLD_DRIVER"]) else { return };
    let all = launches(NVIDIA, &["launch("]);
    assert_eq!(counts[0], [6 * all, 0, 0, 0]);
    assert_eq!(counts[1], [4 * all, 0, 0, 0]);
    assert_eq!(counts[2], [0, 1, 1, 0]);
    assert_eq!(counts[3][3], 0);
}

#[test]
fn ranks_compute_together_on_streams_and_in_graphs() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    for machine in [NVIDIA, GFX9] {
        program_of(&gcc, "ranks", ("ranks", &source("ranks")), machine, ("ranks.cpp", &[])).output();
    }
}
