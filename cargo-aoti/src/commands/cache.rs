//! `cache`: looks after the results of native tools that are kept between builds.

use std::path::PathBuf;

use aoti_toolchain::{Difference, LocalStore, Miss, cache_size, parse_size, sweep_temporaries};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::{Context, print, print_json};
use crate::arguments::Output;
use crate::case;
use crate::failure::Failure;
use crate::single;

/// Looks after the cache of native tools' results
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Show where the cache is and how big
    Stat {
        #[command(flatten)]
        output: Output,
    },
    /// Remove what was longest unused until the cache is small enough, and temporary folders of builds that were killed
    Gc {
        /// Size to get below, such as 500M or 2G; by default that of `AOTI_CACHE_SIZE`
        #[arg(long, value_name = "SIZE", value_parser = size)]
        max_size: Option<u64>,
    },
    /// Remove everything
    Clear,
    /// Say for each native tool that a model needs whether its result is there, and if not, what changed
    Why {
        /// A model file, or a case's folder
        model: PathBuf,
        /// Instruction-set levels; by default those of this machine's target
        #[arg(long, value_delimiter = ',')]
        levels: Vec<String>,
        #[command(flatten)]
        output: Output,
    },
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
                print_json(&json!({ "path": store.root(), "entries": entries, "bytes": bytes }));
            } else {
                let (root, entries) = (store.root().display(), stat.entries);
                print(&format!("{root}\n{entries} results, {} bytes\n", stat.bytes));
            }
        }
        Command::Gc { max_size } => {
            let limit = max_size.map_or_else(|| cache_size(&context.environment), |size| Ok(Some(size)));
            let report = store.gc(limit.map_err(Failure::Usage)?.unwrap_or(u64::MAX))?;
            let (removed, freed) = (report.removed_entries, report.freed_bytes);
            context.terminal.status("Removed", &format!("{removed} results, {freed} bytes"));
            let abandoned = sweep_temporaries(&context.environment);
            if abandoned > 0 {
                context.terminal.status("Removed", &format!("{abandoned} abandoned temporary folders"));
            }
        }
        Command::Clear => {
            let removed = store.clear()?;
            context
                .terminal
                .status("Removed", &format!("{} results, {} bytes", removed.entries, removed.bytes));
        }
        Command::Why { model, levels, output } => return why(&store, model, levels, *output, context),
    }
    Ok(())
}

fn why(
    store: &LocalStore,
    model: &std::path::Path,
    levels: &[String],
    output: Output,
    context: &Context,
) -> Result<(), Failure> {
    let (path, _) = case::model_file(model)?;
    let session = single::session(context, true)?;
    let mut model = aoti_build::Model::new(single::name_of(&path), &path);
    model.operators = single::operators(&context.environment)?;
    model.levels = levels.to_vec();
    model.choices = aoti_build::Choices::Lock(path.with_file_name(aoti_build::LOCK_FILE));
    let mut text = String::new();
    for action in session.actions(&model)? {
        let label = &action.label;
        let found = store.why(&action, &context.environment)?;
        if output.is_json() {
            print_json(&why_json(label, &found));
            continue;
        }
        match found {
            Miss::Hit => text.push_str(&format!("{label}: there\n")),
            Miss::NeverBuilt => text.push_str(&format!("{label}: never made\n")),
            Miss::Evicted => text.push_str(&format!("{label}: made once, and removed since\n")),
            Miss::Changed(differences) => {
                text.push_str(&format!("{label}: changed\n"));
                for difference in differences {
                    let shown = |value: &Option<String>| value.clone().unwrap_or_else(|| "absent".to_owned());
                    let (before, now) = (shown(&difference.before), shown(&difference.now));
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

fn why_json(label: &str, found: &Miss) -> Value {
    let (state, changes) = match found {
        Miss::Hit => ("there", &[][..]),
        Miss::NeverBuilt => ("never-made", &[][..]),
        Miss::Evicted => ("removed", &[][..]),
        Miss::Changed(differences) => ("changed", &differences[..]),
    };
    let change = |difference: &Difference| json!({ "field": difference.field, "before": difference.before, "now": difference.now });
    let changes: Vec<Value> = changes.iter().map(change).collect();
    json!({ "reason": "tool", "label": label, "state": state, "changes": changes })
}

/// Reads a size, for clap.
fn size(text: &str) -> Result<u64, String> {
    parse_size(text).ok_or_else(|| "not a size such as `500M` or `2G`".to_owned())
}
