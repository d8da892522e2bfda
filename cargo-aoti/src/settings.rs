//! What cargo's configuration says about things that this program does too: targets, jobs, and how much is said how.
//!
//! `--config` goes before the environment, which goes before the files, as in cargo.

use std::path::Path;

use cargo_config2::{Color, Config, ResolveOptions, When};
use toml::{Table, Value};

use crate::failure::Failure;

/// Settings of cargo's. What cannot be read is as if it were not set; cargo itself says so when it is asked.
#[derive(Clone, Default, Debug)]
pub(crate) struct Settings {
    /// Targets to build for; none for the host.
    pub(crate) targets: Vec<String>,
    pub(crate) jobs: Option<i64>,
    pub(crate) quiet: Option<bool>,
    pub(crate) verbose: Option<bool>,
    /// `auto`, `always` or `never`.
    pub(crate) color: Option<String>,
    /// Whether there may be progress bars.
    pub(crate) progress: Option<bool>,
}

impl Settings {
    /// Reads the configuration that holds in a folder, with what the command line puts over it.
    pub(crate) fn read(folder: &Path, overrides: &[String]) -> Result<Settings, Failure> {
        // The environment is read once, at the edge, which is here for cargo's own variables.
        let options = ResolveOptions::default().env(std::env::vars_os());
        let mut settings = Config::load_with_options(folder, options).map(of_config).unwrap_or_default();
        for text in overrides {
            settings.put(&table(folder, text)?);
        }
        Ok(settings)
    }

    fn put(&mut self, table: &Table) {
        let at = |section: &str, key: &str| table.get(section).and_then(Value::as_table)?.get(key);
        match at("build", "target") {
            Some(Value::String(target)) => self.targets = vec![target.clone()],
            Some(Value::Array(all)) => {
                self.targets = all.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            }
            _ => {}
        }
        self.jobs = at("build", "jobs").and_then(Value::as_integer).or(self.jobs);
        self.quiet = at("term", "quiet").and_then(Value::as_bool).or(self.quiet);
        self.verbose = at("term", "verbose").and_then(Value::as_bool).or(self.verbose);
        if let Some(color) = at("term", "color").and_then(Value::as_str) {
            self.color = Some(color.to_owned());
        }
        let when = at("term", "progress").and_then(|progress| progress.get("when")).and_then(Value::as_str);
        self.progress = when.map(|when| when != "never").or(self.progress);
    }
}

fn of_config(config: Config) -> Settings {
    let color = config.term.color.map(|color| match color {
        Color::Auto => "auto",
        Color::Always => "always",
        Color::Never => "never",
    });
    Settings {
        targets: config.build_target_for_cli([""; 0]).unwrap_or_default(),
        jobs: config.build.jobs.map(i64::from),
        quiet: config.term.quiet,
        verbose: config.term.verbose,
        color: color.map(str::to_owned),
        progress: config.term.progress.when.map(|when| when != When::Never),
    }
}

/// One `--config`: a file, or `KEY=VALUE`.
fn table(folder: &Path, text: &str) -> Result<Table, Failure> {
    let path = folder.join(text);
    let content = if path.is_file() {
        fs_err::read_to_string(&path).map_err(Failure::machine("read", &path))?
    } else {
        text.to_owned()
    };
    let refuse = |error: toml::de::Error| {
        Failure::Usage(format!("`--config {text}` is neither a file nor `KEY=VALUE`: {}", error.message()))
    };
    toml::from_str(&content).map_err(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_goes_before_the_files() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join(".cargo")).unwrap();
        let text = "[build]\ntarget = [\"a-b-c\", \"d-e-f\"]\njobs = -1\n[term]\nverbose = true\nprogress.when = \"never\"\n";
        fs_err::write(folder.path().join(".cargo/config.toml"), text).unwrap();
        fs_err::write(folder.path().join("over.toml"), "term.progress.when = \"auto\"\n").unwrap();
        let read = |overrides: &[&str]| {
            let overrides: Vec<String> = overrides.iter().map(ToString::to_string).collect();
            Settings::read(folder.path(), &overrides)
        };
        let plain = read(&[]).unwrap();
        assert_eq!(
            (&plain.targets[..], plain.jobs),
            (&["a-b-c".to_owned(), "d-e-f".to_owned()][..], Some(-1))
        );
        assert_eq!((plain.verbose, plain.progress), (Some(true), Some(false)));
        let over = read(&["build.target='x-y-z'", "over.toml", "term.quiet=true"]).unwrap();
        assert_eq!((&over.targets[..], over.quiet), (&["x-y-z".to_owned()][..], Some(true)));
        assert_eq!(over.progress, Some(true));
        assert!(matches!(read(&["term.quiet"]), Err(Failure::Usage(_))));
    }
}
