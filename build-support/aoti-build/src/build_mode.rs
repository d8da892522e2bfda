//! Finds out for which command a build script runs. Knows cargo, and nothing of models.
//!
//! Cargo runs the same script for `cargo check` and `cargo build`, into the same folder, and does not say which it is. So
//! a script that made less than a build needs must be run again by the next command, whatever that is; and what tells a
//! check from a build must never take a build for a check. Where nothing tells, it is a build.

use std::ffi::OsStr;
use std::path::Path;

use aoti_toolchain::Environment;

use crate::error::Error;
use crate::problem::suggest;

const VARIABLE: &str = "AOTI_BUILD";
const CHOICES: [&str; 3] = ["auto", "bindings", "full"];

/// Cargo's own commands, with their short forms, that link nothing for the target.
const CHECKS: [&str; 7] = ["c", "check", "clippy", "d", "doc", "fix", "rustdoc"];

/// Cargo's options before the command that take a word of their own.
const WITH_VALUE: [&str; 5] = ["--color", "--config", "--explain", "-C", "-Z"];

/// What is wanted of a build script.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum BuildMode {
    /// Native code.
    Full,
    /// Rust modules, whatever else there is.
    Bindings,
    /// Rust modules; native code that is up to date may stay.
    Check,
}

impl BuildMode {
    /// By the environment, and by the command line of the process that started this one.
    ///
    /// # Errors
    /// [`Error::Variable`] for a choice that there is not.
    pub(crate) fn of(environment: &Environment, parent: Option<&[u8]>) -> Result<BuildMode, Error> {
        let choice = environment.variable(VARIABLE).unwrap_or_default();
        match choice.to_str() {
            Some("full") => return Ok(BuildMode::Full),
            Some("bindings") => return Ok(BuildMode::Bindings),
            Some("auto" | "") => {}
            _ => return Err(unknown(&choice.to_string_lossy())),
        }
        if environment.variable("DOCS_RS").is_some() {
            return Ok(BuildMode::Bindings);
        }
        let wrapper = environment.variable("RUSTC_WORKSPACE_WRAPPER");
        let is_clippy =
            wrapper.and_then(|path| Path::new(path).file_stem()) == Some(OsStr::new("clippy-driver"));
        let is_check = is_clippy
            || environment.variable("RA_RUSTC_WRAPPER").is_some()
            || parent.and_then(subcommand).is_some_and(|command| CHECKS.contains(&command));
        Ok(if is_check { BuildMode::Check } else { BuildMode::Full })
    }
}

fn unknown(value: &str) -> Error {
    let help = match suggest(value, CHOICES) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("it can be `{}`", CHOICES.join("`, `")),
    };
    Error::Variable { name: VARIABLE, value: value.to_owned(), help }
}

/// The command of a cargo's command line, of which each word ends with a zero byte. None for other programs.
fn subcommand(line: &[u8]) -> Option<&str> {
    let mut words = line.split(|&byte| byte == 0).map(|word| std::str::from_utf8(word).unwrap_or_default());
    if Path::new(words.next()?).file_stem()? != "cargo" {
        return None;
    }
    loop {
        let word = words.next()?;
        if WITH_VALUE.contains(&word) {
            words.next();
        } else if !word.starts_with(['-', '+']) {
            return Some(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)], parent: &str) -> Result<BuildMode, Error> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let line: Vec<u8> = parent.split(' ').flat_map(|word| [word.as_bytes(), b"\0"].concat()).collect();
        BuildMode::of(&Environment::from_variables(variables, "/"), Some(&line))
    }

    #[test]
    fn checks_are_known_by_their_command() {
        for line in [
            "cargo check",
            "/a/bin/cargo c",
            "cargo -v --color always check --all",
            "cargo +nightly -Zx --config a=1 -C d doc",
        ] {
            assert_eq!(of(&[], line).unwrap(), BuildMode::Check, "{line}");
        }
        for line in
            ["cargo build", "cargo run -- check", "cargo ck", "cargo", "make check", "cargo-hack check", ""]
        {
            assert_eq!(of(&[], line).unwrap(), BuildMode::Full, "{line}");
        }
    }

    #[test]
    fn editors_and_lints_are_known_by_their_variables() {
        let clippy = [("RUSTC_WORKSPACE_WRAPPER", "/x/clippy-driver")];
        assert_eq!(of(&clippy, "tool").unwrap(), BuildMode::Check);
        assert_eq!(of(&[("RUSTC_WORKSPACE_WRAPPER", "/x/sccache")], "tool").unwrap(), BuildMode::Full);
        assert_eq!(of(&[("RA_RUSTC_WRAPPER", "1")], "tool").unwrap(), BuildMode::Check);
        assert_eq!(of(&[("DOCS_RS", "1")], "cargo build").unwrap(), BuildMode::Bindings);
    }

    #[test]
    fn the_variable_has_the_last_word_and_its_values_are_known() {
        assert_eq!(of(&[("AOTI_BUILD", "full"), ("DOCS_RS", "1")], "cargo check").unwrap(), BuildMode::Full);
        assert_eq!(of(&[("AOTI_BUILD", "bindings")], "cargo build").unwrap(), BuildMode::Bindings);
        assert_eq!(of(&[("AOTI_BUILD", "auto")], "cargo check").unwrap(), BuildMode::Check);
        let error = of(&[("AOTI_BUILD", "binding")], "cargo build").unwrap_err().to_string();
        assert_eq!(error, "the variable `AOTI_BUILD` cannot be `binding`; did you mean `bindings`?");
        assert!(
            of(&[("AOTI_BUILD", "1")], "").unwrap_err().to_string().contains("`auto`, `bindings`, `full`")
        );
    }
}
