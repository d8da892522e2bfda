//! A model's sources with the commands that make its library of them, for builds without cargo-aoti.
//!
//! The commands are those of a build, so the library is the same to the last byte if the compiler is. Code for GPUs is made here
//! and goes with the sources as bytes: who builds them needs a C++ compiler only.

use std::collections::BTreeSet;
use std::path::Path;

use aoti_toolchain::{Action, Content};

use super::place;
use crate::error::Error;
use crate::files::file_error;
use crate::model::LinkKind;
use crate::plan::static_library_name;
use crate::progress::Progress;
use crate::session::{Job, Session};

/// How a model's library is made of its sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Vendored {
    /// The model's identifier.
    pub identifier: String,
    /// What stands for it in symbols.
    pub symbol: String,
    /// File name of the static library.
    pub library: String,
    /// The family of compilers that the arguments are for: `gcc` or `clang`.
    pub family: &'static str,
    /// Names of all sources.
    pub files: Vec<String>,
    /// The objects, in the library's order.
    pub objects: Vec<VendoredObject>,
}

/// One call of the compiler, in the folder of the sources.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VendoredObject {
    /// File name of the object.
    pub name: String,
    /// The arguments, without `-o` and what follows it.
    pub arguments: Vec<String>,
    /// The sources that it reads, or may read.
    pub inputs: Vec<String>,
}

impl Session {
    /// Writes the sources of a model's static library into a folder; module, header and weights go where the job says.
    ///
    /// # Errors
    /// As a build.
    pub fn vendor(&self, job: &Job, sources: &Path, progress: &dyn Progress) -> Result<Vendored, Error> {
        let mut job = Job { incremental: false, ..job.clone() };
        job.model.link = LinkKind::Static;
        let recipe = self.recipe(&job.model)?;
        let mut passing = self.compile_one(&job, recipe, progress)?;
        place::sources(&mut passing, self)?;
        let mut actions = self.object_actions(&passing)?;
        let made = self.with_images(vec![(0, Ok((passing, Vec::new())))], progress);
        for (_, made) in made {
            let mut passing = made?;
            actions.extend(self.code_actions(&passing)?);
            place::manifest(&mut passing, self)?;
        }
        let mut files = BTreeSet::new();
        for action in &actions {
            write_inputs(action, sources, &mut files)?;
        }
        let (symbol, toolchain) = (job.model.symbol(), self.toolchain_of(&job.model)?);
        Ok(Vendored {
            identifier: job.model.identifier(),
            library: static_library_name(&toolchain.target, &symbol),
            symbol,
            family: toolchain.definition.kind.as_str(),
            files: files.into_iter().collect(),
            objects: actions.iter().map(object).collect(),
        })
    }
}

fn object(action: &Action) -> VendoredObject {
    let end = action.arguments.iter().position(|word| word == "-o").unwrap_or(action.arguments.len());
    VendoredObject {
        name: action.outputs.first().cloned().unwrap_or_default(),
        arguments: action.arguments[..end].to_vec(),
        inputs: action.inputs.iter().map(|input| input.name.clone()).collect(),
    }
}

/// Writes what an action reads, each file once: actions that share a name share the file.
fn write_inputs(action: &Action, folder: &Path, written: &mut BTreeSet<String>) -> Result<(), Error> {
    for input in &action.inputs {
        if !written.insert(input.name.clone()) {
            continue;
        }
        let path = folder.join(&input.name);
        let parent = path.parent().unwrap_or(folder);
        std::fs::create_dir_all(parent).map_err(file_error("make", parent))?;
        match &input.content {
            Content::Bytes(bytes) => std::fs::write(&path, bytes),
            Content::File(file) => std::fs::copy(file.path(), &path).map(drop),
        }
        .map_err(file_error("write", &path))?;
    }
    Ok(())
}
