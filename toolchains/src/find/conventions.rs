//! What users of the `cc` crate set for their compilers, by its conventions: programs and flags for one target, for the host or
//! for all others.

use crate::environment::Environment;
use crate::target::Target;

/// The variables of flags beside those of programs.
const FLAGS: [(&str, &str); 1] = [("CXX", "CXXFLAGS")];
/// Takes away what is given by default.
const NO_DEFAULTS: &str = "CRATE_CC_NO_DEFAULTS";
/// Flags are words as shells read them, not what blanks separate.
const SHELL_ESCAPED: &str = "CC_SHELL_ESCAPED_FLAGS";
/// Which target code is for: of a compiler that serves several, or of one that a wrapper tells.
const TARGET: &str = "--target=";

/// The names under which a variable is looked up, most particular first.
pub(super) fn variable_names(base: &str, environment: &Environment, target: &Target) -> [String; 4] {
    let side = if target == environment.host() { "HOST" } else { "TARGET" };
    [
        format!("{base}_{target}"),
        format!("{base}_{}", target.underscored()),
        format!("{side}_{base}"),
        base.to_owned(),
    ]
}

/// What a compiler is called with first, ahead of what our own code needs: what its definition says, then the user's flags. All
/// that apply count, so that the more particular ones, which come last, override the others.
pub(super) fn arguments(
    given: &[String],
    variables: &[String],
    environment: &Environment,
    target: &Target,
) -> Vec<String> {
    let no_defaults = is_set(environment, NO_DEFAULTS);
    let is_kept = |argument: &&String| !(no_defaults && argument.starts_with(TARGET));
    let mut all: Vec<String> = given.iter().filter(is_kept).cloned().collect();
    for (_, base) in FLAGS.iter().filter(|(program, _)| variables.iter().any(|name| name == program)) {
        let names = variable_names(base, environment, target);
        let values = names.iter().rev().filter_map(|name| environment.variable(name));
        all.extend(values.flat_map(|value| words(&value.to_string_lossy(), environment)));
    }
    all
}

fn words(text: &str, environment: &Environment) -> Vec<String> {
    if is_set(environment, SHELL_ESCAPED) {
        shlex::Shlex::new(text).collect()
    } else {
        text.split_ascii_whitespace().map(str::to_owned).collect()
    }
}

fn is_set(environment: &Environment, name: &str) -> bool {
    environment.variable(name).is_some_and(|value| value != "0" && value != "false" && value != "no")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    const VARIABLES: [(&str, &str); 6] = [
        ("CXXFLAGS", "-DALL -g"),
        ("HOST_CXXFLAGS", "-DHOST"),
        ("TARGET_CXXFLAGS", "-DTARGET"),
        ("CXXFLAGS_aarch64_unknown_linux_gnu", "-DARM"),
        ("CXXFLAGS_aarch64-unknown-linux-gnu", "-DARM=2 '-DTWO WORDS'"),
        ("CXX", "c++"),
    ];

    fn ours(more: &[(&str, &str)], target: &str) -> Vec<String> {
        let variables = VARIABLES.iter().chain(more).copied();
        let environment = Environment::from_variables(variables, "/");
        let given = ["--target=x".to_owned(), "-B.".to_owned()];
        arguments(&given, &["CXX".to_owned()], &environment, &Target::new(target))
    }

    #[test]
    fn flags_of_one_target_come_after_those_of_all() {
        let host = Target::host();
        assert_eq!(ours(&[], host.as_str()), ["--target=x", "-B.", "-DALL", "-g", "-DHOST"]);
        let arm = "aarch64-unknown-linux-gnu";
        let last = |more: &[(&str, &str)]| ours(more, arm).last().cloned().unwrap();
        assert_eq!(last(&[]), "WORDS'");
        assert_eq!(last(&[(SHELL_ESCAPED, "1")]), "-DTWO WORDS");
        assert_eq!(ours(&[(NO_DEFAULTS, "1")], arm)[0], "-B.");
        assert_eq!(ours(&[(NO_DEFAULTS, "0")], arm)[0], "--target=x");
        let environment = Environment::from_variables(VARIABLES, "/");
        assert!(arguments(&[], &["NVCC".to_owned()], &environment, &host).is_empty());
    }

    /// In a process of its own, because `cc` reads the variables of its process.
    #[test]
    fn as_cc_has_them() {
        let Ok(target) = std::env::var("AOTI_TEST_TARGET") else { return };
        let mut build = cc::Build::new();
        build.cargo_metadata(false).cpp(true).target(&target).host(Target::host().as_str()).opt_level(0);
        build.no_default_flags(true).inherit_rustflags(false);
        let compiler = build.get_compiler();
        let arguments = compiler.args().iter().map(|argument| argument.to_str().unwrap());
        println!("\n{}", serde_json::to_string(&arguments.collect::<Vec<_>>()).unwrap());
    }

    #[test]
    fn flags_are_those_of_the_cc_crate() {
        let name = "find::conventions::tests::as_cc_has_them";
        for target in [Target::host().as_str(), "aarch64-unknown-linux-gnu", "wasm32-wasip1"] {
            for more in [&[][..], &[(SHELL_ESCAPED, "1")], &[(SHELL_ESCAPED, "no")]] {
                let mut command = Command::new(std::env::current_exe().unwrap());
                command.args(["--exact", name, "--nocapture"]).env("AOTI_TEST_TARGET", target);
                // Nothing is run: the arguments do not depend on the compiler.
                command.envs(VARIABLES).envs(more.iter().copied()).env("CC_FORCE_DISABLE", "1");
                let printed = String::from_utf8(command.output().unwrap().stdout).unwrap();
                let theirs = printed.lines().find(|line| line.starts_with('[')).expect("arguments");
                let theirs: Vec<String> = serde_json::from_str(theirs).unwrap();
                assert_eq!(ours(more, target)[2..], theirs, "{target} {more:?}");
            }
        }
    }
}
