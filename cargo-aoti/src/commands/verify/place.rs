//! Where cases run, from the command line: the target with what it takes to run its programs here.

use std::ffi::OsString;

use aoti_runtime::Device;
use aoti_toolchain::{Environment, Linking, Sanitizer, Target};
use clap::ValueEnum;

use super::Arguments;
use crate::failure::Failure;

/// Where a case runs.
#[derive(PartialEq, Eq, Debug)]
pub(super) enum Place {
    /// In the interpreter.
    Interpreter,
    /// As a shared library that a process of this program opens.
    Library,
    /// As a program of its own.
    Program(Program),
}

/// How a case's own program is made and started.
#[derive(PartialEq, Eq, Debug)]
pub(super) struct Program {
    pub(super) linking: Linking,
    /// Words before the program's name.
    pub(super) runner: Vec<OsString>,
    /// So many run the model at the same time.
    pub(super) callers: u16,
}

/// What generated code is made to look for while it runs.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Check {
    /// Accesses outside of memory that is allocated
    Address,
    /// Operations with undefined behaviour
    Undefined,
    /// Data races, between the threads of a run and between runs
    Thread,
}

impl Check {
    pub(super) fn sanitizer(self) -> Sanitizer {
        match self {
            Check::Address => Sanitizer::Address,
            Check::Undefined => Sanitizer::Undefined,
            Check::Thread => Sanitizer::Thread,
        }
    }
}

impl Place {
    /// Where the command line asks cases to run.
    pub(super) fn of(arguments: &Arguments, environment: &Environment) -> Result<Place, Failure> {
        let target = arguments.target.clone().map(Target::new);
        if arguments.sanitize.contains(&Check::Address) && arguments.sanitize.contains(&Check::Thread) {
            let message = "the sanitizers `address` and `thread` exclude each other; verify once with each";
            return Err(Failure::Usage(message.to_owned()));
        }
        if arguments.device != Device::Cpu
            && (arguments.reference || target.is_some() || !arguments.sanitize.is_empty())
        {
            let message = "on a GPU cases run in libraries for this machine, without sanitizers and not in the interpreter";
            return Err(Failure::Usage(message.to_owned()));
        }
        if arguments.reference {
            return Ok(Place::Interpreter);
        }
        let runner = words(arguments.runner.clone().or_else(|| by_cargo(target.as_ref()?, environment)));
        if target.is_none() && runner.is_empty() && arguments.sanitize.is_empty() {
            return Ok(Place::Library);
        }
        let foreign = target.filter(|target| !target.is_served_by(environment.host().as_str()));
        if let Some(target) = foreign.filter(|_| runner.is_empty()) {
            return Err(Failure::Usage(format!(
                "programs for `{target}` do not run here by themselves; name what runs them, as in `--runner \
                 qemu-{}`, or in `{}`",
                target.architecture(),
                variable(&target)
            )));
        }
        // Emulators need no files of the target then; the runtimes of these sanitizers are shared libraries.
        let is_shared = |check: &Check| matches!(check, Check::Address | Check::Thread);
        let is_static = !runner.is_empty() && !arguments.sanitize.iter().any(is_shared);
        let linking = if is_static { Linking::Static } else { Linking::Dynamic };
        let callers = if arguments.sanitize.contains(&Check::Thread) { 2 } else { 1 };
        Ok(Place::Program(Program { linking, runner, callers }))
    }
}

/// The variable by which cargo knows a target's runner.
fn variable(target: &Target) -> String {
    let name = target.as_str().replace(['-', '.'], "_").to_uppercase();
    format!("CARGO_TARGET_{name}_RUNNER")
}

fn by_cargo(target: &Target, environment: &Environment) -> Option<String> {
    environment.variable(&variable(target)).map(|value| value.to_string_lossy().into_owned())
}

/// Splits at white space, as cargo does.
fn words(command: Option<String>) -> Vec<OsString> {
    command.iter().flat_map(|command| command.split_whitespace()).map(OsString::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    const ARM: &str = "aarch64-unknown-linux-gnu";
    /// One whose programs no machine that runs these tests runs by itself.
    const FOREIGN: &str = "riscv64gc-unknown-linux-gnu";

    fn place(words: &[&str], variables: &[(&str, &str)]) -> Result<Place, Failure> {
        let line = Line::parse_from([&["verify", "cases"], words].concat());
        let variables = variables.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Place::of(&line.arguments, &Environment::from_variables(variables, "/"))
    }

    fn program(linking: Linking, runner: &[&str], callers: u16) -> Place {
        Place::Program(Program { linking, runner: runner.iter().map(OsString::from).collect(), callers })
    }

    #[test]
    fn plain_cases_need_no_program() {
        assert_eq!(place(&[], &[]).unwrap(), Place::Library);
        assert_eq!(place(&["--reference"], &[]).unwrap(), Place::Interpreter);
    }

    #[test]
    fn a_runner_is_split_and_its_programs_stand_alone() {
        let place = place(&["--target", ARM, "--runner", "qemu-aarch64  -cpu max"], &[]).unwrap();
        assert_eq!(place, program(Linking::Static, &["qemu-aarch64", "-cpu", "max"], 1));
    }

    #[test]
    fn cargos_runner_is_known_and_the_arguments_go_before_it() {
        let variables = [("CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_RUNNER", "qemu-riscv64 -v")];
        let found = place(&["--target", FOREIGN], &variables).unwrap();
        assert_eq!(found, program(Linking::Static, &["qemu-riscv64", "-v"], 1));
        let found = place(&["--target", FOREIGN, "--runner", "mine"], &variables).unwrap();
        assert_eq!(found, program(Linking::Static, &["mine"], 1));
        assert_eq!(place(&[], &variables).unwrap(), Place::Library);
    }

    #[test]
    fn a_foreign_target_without_a_runner_is_a_usage_error() {
        let Err(Failure::Usage(message)) = place(&["--target", FOREIGN], &[]) else { panic!("no error") };
        assert!(message.contains("CARGO_TARGET_RISCV64GC_UNKNOWN_LINUX_GNU_RUNNER"), "{message}");
        let here = Target::host();
        assert_eq!(place(&["--target", here.as_str()], &[]).unwrap(), program(Linking::Dynamic, &[], 1));
    }

    #[test]
    fn sanitizers_decide_on_linking_and_callers() {
        let found = place(&["--sanitize", "address,undefined"], &[]).unwrap();
        assert_eq!(found, program(Linking::Dynamic, &[], 1));
        assert_eq!(place(&["--sanitize", "thread"], &[]).unwrap(), program(Linking::Dynamic, &[], 2));
        let on_arm =
            |sanitize| place(&["--target", ARM, "--runner", "q", "--sanitize", sanitize], &[]).unwrap();
        assert_eq!(on_arm("undefined"), program(Linking::Static, &["q"], 1));
        assert_eq!(on_arm("address"), program(Linking::Dynamic, &["q"], 1));
        assert!(matches!(place(&["--sanitize", "address,thread"], &[]), Err(Failure::Usage(_))));
    }
}
