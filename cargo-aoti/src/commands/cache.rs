//! `cache`: looks after the results of native tools that are kept between builds.

use std::path::PathBuf;

use aoti_toolchain::{LocalStore, Miss};
use clap::{Args, Subcommand};
use serde_json::json;

use super::{Context, print, print_json};
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
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Remove what was longest unused until the cache is small enough
    Gc {
        /// Size to get below, such as 500M or 2G
        #[arg(long, value_name = "SIZE", default_value = "2G", value_parser = size)]
        max_size: u64,
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
    },
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let folder = context.environment.cache_directory().ok_or_else(|| {
        Failure::Machine("the environment names no cache folder; set `AOTI_CACHE_DIR`".to_owned())
    })?;
    let store = LocalStore::new(folder);
    match &arguments.command {
        Command::Stat { json } => {
            let stat = store.stat()?;
            if *json {
                let (entries, bytes) = (stat.entries, stat.bytes);
                print_json(&json!({ "path": store.root(), "entries": entries, "bytes": bytes }));
            } else {
                let (root, entries) = (store.root().display(), stat.entries);
                print(&format!("{root}\n{entries} results, {} bytes\n", stat.bytes));
            }
        }
        Command::Gc { max_size } => {
            let report = store.gc(*max_size)?;
            let (removed, freed) = (report.removed_entries, report.freed_bytes);
            context.terminal.status("Removed", &format!("{removed} results, {freed} bytes"));
        }
        Command::Clear => {
            let removed = store.clear()?;
            context
                .terminal
                .status("Removed", &format!("{} results, {} bytes", removed.entries, removed.bytes));
        }
        Command::Why { model, levels } => return why(&store, model, levels, context),
    }
    Ok(())
}

fn why(
    store: &LocalStore,
    model: &std::path::Path,
    levels: &[String],
    context: &Context,
) -> Result<(), Failure> {
    let (path, _) = case::model_file(model)?;
    let session = single::session(context, true)?;
    let mut model = aoti_build::Model::new(single::name_of(&path), &path);
    model.levels = levels.to_vec();
    let mut text = String::new();
    for action in session.actions(&model)? {
        let label = &action.label;
        match store.why(&action, &context.environment)? {
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

/// Reads `500M`, `2G` or plain bytes.
fn size(text: &str) -> Result<u64, String> {
    let text = text.trim().trim_end_matches(['B', 'b']).trim_end_matches('i');
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&text[..at], 1 << 20),
        Some((at, 'g' | 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1u64),
    };
    let number = digits.trim().parse::<u64>().map_err(|error| error.to_string())?;
    number.checked_mul(unit).ok_or_else(|| "too large".to_owned())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!((size("500"), size("2G"), size("3 MiB")), (Ok(500), Ok(2 << 30), Ok(3 << 20)));
        assert!(size("").is_err() && size("G").is_err() && size("99999999999999999999").is_err());
        assert!(size("99999999999G").is_err());
    }
}
