//! Model files changed at random are refused with findings, or compiled: none makes the compiler panic, take long or need
//! much memory. What compiles is run under sanitizers with numbers that nobody expects.
//!
//! `AOTI_MUTANTS` is the number of files, `AOTI_MUTANT_RUNS` the number of programs that are run, `AOTI_MUTANT_SEED` the
//! first seed; a finding names its seed, and `AOTI_MUTANT_KEEP` is a folder to write the files to. Each test runs itself
//! as a child, which a crash takes with it, and goes on behind the seed at which it ended. Needs a C++ compiler with
//! sanitizers for the second half: `g++`, or what `CXX` names.

mod corpus;
mod runs;

use aoti_tests::batch;
use aoti_tests::child::{self, Child, number};

/// Tried where nothing else is asked for: seconds.
const USUAL: u64 = 300;
const USUAL_RUNS: u64 = 24;

const FIRST: &str = "AOTI_MUTANT_SEED";

#[test]
fn changed_models_are_refused_or_compiled() {
    child::here(corpus::compile_all);
    let (first, count) = (number(FIRST, 0), number("AOTI_MUTANTS", USUAL));
    let test = "changed_models_are_refused_or_compiled".to_owned();
    Child { test, preload: None, first, count }.run().report("changed models");
}

#[test]
fn changed_programs_stay_within_their_memory() {
    child::here(runs::run_all);
    let preload = batch::sanitizer();
    if preload.is_none() {
        return;
    }
    let (first, count) = (number(FIRST, 0), number("AOTI_MUTANT_RUNS", USUAL_RUNS));
    let test = "changed_programs_stay_within_their_memory".to_owned();
    Child { test, preload, first, count }.run().report("changed programs");
}
