//! `clean`: removes the artefacts of a project's models. The cache stays; for that there is `cache clear`.

use clap::Args;
use serde_json::json;

use super::{Context, tell};
use crate::arguments::Output;
use crate::failure::Failure;
use crate::project::{Project, Selection, shown};

/// Removes target/aoti, or the selected packages' folders in it
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    pub(crate) output: Output,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let project = Project::open(&arguments.selection, context)?;
    let root = project.target_directory.join("aoti");
    if arguments.selection.workspace.package.is_empty() {
        return remove(&root, arguments, context);
    }
    for package in project.packages(&arguments.selection, context)? {
        for profile in children(&root) {
            for triple in children(&profile) {
                remove(&triple.join(package.name.as_str()), arguments, context)?;
            }
        }
    }
    Ok(())
}

fn children(folder: &std::path::Path) -> Vec<std::path::PathBuf> {
    let listing = fs_err::read_dir(folder).into_iter().flatten().flatten();
    listing.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
}

fn remove(folder: &std::path::Path, arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    if !folder.exists() {
        return Ok(());
    }
    fs_err::remove_dir_all(folder).map_err(Failure::machine("remove", folder))?;
    tell(arguments.output, context, "Removed", &shown(folder, context), json!({ "path": folder }));
    Ok(())
}
