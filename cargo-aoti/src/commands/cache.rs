//! `cache`: looks after the results of native tools that are kept between builds.

use std::path::{Path, PathBuf};

use aoti_build::Model;
use aoti_toolchain::{Difference, LocalStore, Miss, cache_size, parse_size, sweep_temporaries};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Context, print, print_json, tell};
use crate::arguments::Output;
use crate::case;
use crate::failure::Failure;
use crate::project::{Project, Selection};
use crate::single;

/// Looks after the cache of native tools' results
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show where the cache is and how large it is
    Stat {
        #[command(flatten)]
        output: Output,
    },
    /// Remove the least recently used results until the cache is small enough, and temporary folders of killed builds
    Gc {
        /// Target size, such as 500M or 2G [default: `AOTI_CACHE_SIZE`]
        #[arg(long, value_name = "SIZE", value_parser = size)]
        max_size: Option<u64>,
        #[command(flatten)]
        output: Output,
    },
    /// Remove everything
    Clear {
        #[command(flatten)]
        output: Output,
    },
    /// Show for each native tool that a model needs whether its result is cached, and if not, what changed
    Why(Box<Why>),
}

#[derive(Args, Debug)]
struct Why {
    /// A model of the project, by its name or file, as builds make it; or another model file, or a case's folder
    model: PathBuf,
    /// Instruction-set levels; by default the model's own, else those of this machine's target
    #[arg(long, value_delimiter = ',')]
    levels: Vec<String>,
    #[command(flatten)]
    output: Output,
    #[command(flatten)]
    selection: Selection,
}

impl Arguments {
    pub(crate) fn is_json(&self) -> bool {
        match &self.command {
            Command::Stat { output } | Command::Gc { output, .. } | Command::Clear { output } => {
                output.is_json()
            }
            Command::Why(why) => why.output.is_json(),
        }
    }
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let folder = context.environment.cache_directory().ok_or_else(|| {
        Failure::Machine("the environment names no cache folder; set `AOTI_CACHE_DIR`".to_owned())
    })?;
    let store = LocalStore::new(folder);
    match &arguments.command {
        Command::Stat { output } => {
            let stat = store.stat()?;
            if output.is_json() {
                let (entries, bytes) = (stat.entries, stat.bytes);
                print_json(
                    &json!({ "reason": "aoti-cache", "path": store.root(), "entries": entries, "bytes": bytes }),
                );
            } else {
                let (root, entries) = (store.root().display(), stat.entries);
                print(&format!("{root}\n{entries} results, {}\n", of_bytes(stat.bytes)));
            }
        }
        Command::Gc { max_size, output } => {
            let limit = max_size.map_or_else(|| cache_size(&context.environment), |size| Ok(Some(size)));
            let report = store.gc(limit.map_err(Failure::Usage)?.unwrap_or(u64::MAX))?;
            removed(*output, context, report.removed_entries, report.freed_bytes);
            let abandoned = sweep_temporaries(&context.environment);
            if abandoned > 0 {
                let what = format!("{abandoned} abandoned temporary folders");
                tell(*output, context, "Removed", &what, json!({ "temporary_folders": abandoned }));
            }
        }
        Command::Clear { output } => {
            let all = store.clear()?;
            removed(*output, context, all.entries, all.bytes);
        }
        Command::Why(arguments) => return why(&store, arguments, context),
    }
    Ok(())
}

fn removed(output: Output, context: &Context, entries: u64, bytes: u64) {
    let what = format!("{entries} results, {}", of_bytes(bytes));
    tell(output, context, "Removed", &what, json!({ "entries": entries, "bytes": bytes }));
}

/// Bytes for people: three digits or so, in units of 1024.
fn of_bytes(bytes: u64) -> String {
    const UNITS: [&str; 4] = ["KiB", "MiB", "GiB", "TiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut size = bytes as f64 / 1024.0;
    let mut unit = 0;
    while size >= 1024.0 && unit + 1 < UNITS.len() {
        size /= 1024.0;
        unit += 1;
    }
    format!("{size:.1} {}", UNITS[unit])
}

/// The model that is meant. One of the project is built under the name of its package, and as its manifest says.
fn model_of(arguments: &Why, context: &Context) -> Result<Model, Failure> {
    let given = &arguments.model;
    let mut model = match of_project(arguments, context)? {
        Some(model) => model,
        None => {
            let (path, _) = case::model_file(given)?;
            single::model(&path, &context.environment)?
        }
    };
    if !arguments.levels.is_empty() {
        model.levels.clone_from(&arguments.levels);
    }
    Ok(model)
}

fn of_project(arguments: &Why, context: &Context) -> Result<Option<Model>, Failure> {
    let (selection, given) = (&arguments.selection, &arguments.model);
    if !Project::is_there(selection, context) {
        return Ok(None);
    }
    let file = fs_err::canonicalize(context.environment.directory().join(given)).ok();
    let project = Project::open(selection, context)?;
    for package in project.packages(selection, context)? {
        let manifest = project.manifest(package).map_err(aoti_build::Error::from)?;
        let is_it = |model: &Model| match &file {
            Some(file) => fs_err::canonicalize(&model.path).is_ok_and(|path| path == *file),
            None => Path::new(&model.name) == given,
        };
        if let Some(model) = manifest.models.into_iter().find(is_it) {
            return Ok(Some(model));
        }
    }
    Ok(None)
}

fn why(store: &LocalStore, arguments: &Why, context: &Context) -> Result<(), Failure> {
    let model = model_of(arguments, context)?;
    let (session, output) = (single::session(context, true)?, arguments.output);
    let mut text = String::new();
    for action in session.actions(&model)? {
        let label = &action.label;
        let found = store.why(&action, &context.environment)?;
        if output.is_json() {
            print_json(&why_json(label, &found));
            continue;
        }
        match found {
            Miss::Hit => text.push_str(&format!("{label}: cached\n")),
            Miss::NeverBuilt => text.push_str(&format!("{label}: never built\n")),
            Miss::Evicted => text.push_str(&format!("{label}: removed since it was built\n")),
            Miss::Changed(differences) => {
                text.push_str(&format!("{label}: changed\n"));
                for difference in differences {
                    let (before, now) = differing(&difference);
                    text.push_str(&format!(
                        "  {}\n    before: {before}\n    now:    {now}\n",
                        difference.field
                    ));
                }
            }
        }
    }
    print(&text);
    Ok(())
}

/// Both values of a field for people: of long ones, such as the arguments of a compiler, the words in which they differ.
fn differing(difference: &Difference) -> (String, String) {
    let (Some(before), Some(now)) = (&difference.before, &difference.now) else {
        let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
        return (shown(&difference.before), shown(&difference.now));
    };
    let [old, new] = [before, now].map(|value| value.split(' ').collect::<Vec<_>>());
    let equal = |(a, b): &(&&str, &&str)| a == b;
    let first = old.iter().zip(&new).take_while(equal).count();
    let last = old[first..].iter().rev().zip(new[first..].iter().rev()).take_while(equal).count();
    let part = |words: &[&str]| {
        let own = &words[first..words.len() - last];
        let (before, behind) = (if first > 0 { "… " } else { "" }, if last > 0 { " …" } else { "" });
        let own = if own.is_empty() { "(nothing)".to_owned() } else { own.join(" ") };
        format!("{before}{own}{behind}")
    };
    (part(&old), part(&new))
}

fn why_json(label: &str, found: &Miss) -> Value {
    let (state, changes) = match found {
        Miss::Hit => ("cached", &[][..]),
        Miss::NeverBuilt => ("never-built", &[][..]),
        Miss::Evicted => ("removed", &[][..]),
        Miss::Changed(differences) => ("changed", &differences[..]),
    };
    let change = |difference: &Difference| json!({ "field": difference.field, "before": difference.before, "now": difference.now });
    let changes: Vec<Value> = changes.iter().map(change).collect();
    json!({ "reason": "aoti-tool", "label": label, "state": state, "changes": changes })
}

/// Reads a size, for clap.
fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "not a size such as `500M` or `2G`".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_long_values_only_what_differs_is_shown() {
        let both = |before: Option<&str>, now: Option<&str>| {
            let [before, now] = [before, now].map(|value| value.map(str::to_owned));
            differing(&Difference { field: "arguments".to_owned(), before, now })
        };
        let shown = |before: &str, now: &str| (before.to_owned(), now.to_owned());
        assert_eq!(both(Some("-O2 -g -c x"), Some("-O2 -Oz -c x")), shown("… -g …", "… -Oz …"));
        assert_eq!(both(Some("-O2 -c"), Some("-O2 -g -c")), shown("… (nothing) …", "… -g …"));
        assert_eq!(both(Some("a a"), Some("a a a")), shown("… (nothing)", "… a"));
        assert_eq!(both(Some("f8e2"), Some("33f2")), shown("f8e2", "33f2"));
        assert_eq!(both(None, Some("-g -c")), shown("absent", "-g -c"));
    }

    #[test]
    fn sizes_are_short() {
        let shown = [0, 1023, 1024, 3_254_121, 20 << 30, 5 << 50].map(of_bytes);
        assert_eq!(shown, ["0 bytes", "1023 bytes", "1.0 KiB", "3.1 MiB", "20.0 GiB", "5120.0 TiB"]);
    }
}
