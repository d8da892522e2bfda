//! The model that a command's argument names: a file, a case's folder, or a model of the project by its name.

use std::path::{Path, PathBuf};

use aoti_build::{LOCK_FILE, Manifest, Model, Operator, suggest};
use aoti_compiler::compile::Options;
use aoti_compiler::frontend::ModelFile;
use aoti_compiler::graph::Graph;
use aoti_compiler::{frontend, frontend::torch::custom, passes::rename};

use crate::arguments::Numerics;
use crate::case::{self, Case};
use crate::commands::Context;
use crate::failure::Failure;
use crate::memory;
use crate::project::{Project, Selection};
use crate::single;

/// A model with what is known of it outside of its file.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// What its project says of it, where it is of one: names, numerics and tuning records are as in a build.
    pub(crate) model: Model,
    /// Its case, where one is named.
    pub(crate) case: Option<Case>,
}

impl Chosen {
    /// A file or a folder where there is one of this name, else a model of the project around the command.
    pub(crate) fn find(given: &Path, context: &Context) -> Result<Chosen, Failure> {
        if context.environment.directory().join(given).exists() || !is_name(given) {
            return Chosen::of_file(given, context);
        }
        let name = given.to_string_lossy().into_owned();
        let of_project = of_project(context)?;
        if let Some((_, model)) = of_project.iter().find(|(_, model)| model.name == name) {
            return Ok(Chosen { model: model.clone(), case: None });
        }
        let names: Vec<&str> = of_project.iter().map(|(_, model)| model.name.as_str()).collect();
        let near = suggest(&name, names.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
        let known = match names.as_slice() {
            [] => String::new(),
            names => format!("; the project has `{}`", names.join("`, `")),
        };
        let help = near.unwrap_or(known);
        Err(Failure::User(format!("there is neither a file nor a model of the project `{name}`{help}")))
    }

    /// The same for one of its programs, which commands compile alone. A model with several has to be given one.
    pub(crate) fn program(self, name: Option<&str>) -> Result<Chosen, Failure> {
        let Chosen { model, case } = self;
        let known: Vec<&str> = model.programs.iter().map(|program| program.name.as_str()).collect();
        let known = format!("`{}`", known.join("`, `"));
        let refusal = match name {
            None if model.programs.is_empty() => return Ok(Chosen { model, case }),
            None => {
                format!("the model `{}` has the programs {known}: say which with `--program`", model.name)
            }
            Some(name) => match model.program(name) {
                Some(model) => return Ok(Chosen { model, case }),
                None if model.programs.is_empty() => format!("the model `{}` has one program", model.name),
                None => format!("the model `{}` has no program `{name}`, but {known}", model.name),
            },
        };
        Err(Failure::User(refusal))
    }

    fn of_file(given: &Path, context: &Context) -> Result<Chosen, Failure> {
        let (path, case) = case::model_file(given)?;
        let mut model = single::model(&path, &context.environment)?;
        model.shapes = case.as_ref().map(Case::shapes).transpose()?.unwrap_or_default();
        let Some(own) = single::listed(&path)? else { return Ok(Chosen { model, case }) };
        // A manifest beside a model file adds no code and names no tools: it comes from wherever the file does.
        let Model { name, names, shapes, sizes, tf32, libraries, weights_type, choices, .. } = own;
        let shapes = if model.shapes.is_empty() { shapes } else { model.shapes };
        let choices = if path.with_file_name(LOCK_FILE).is_file() { model.choices } else { choices };
        let model = Model { name, names, shapes, sizes, tf32, libraries, weights_type, choices, ..model };
        Ok(Chosen { model, case })
    }

    /// The model's file.
    pub(crate) fn path(&self) -> &Path {
        &self.model.path
    }

    /// Its content, with what is said of its inputs.
    pub(crate) fn file(&self) -> Result<ModelFile, Failure> {
        memory::model(&self.model)
    }

    /// What its project says of its products, or PyTorch's defaults.
    pub(crate) fn numerics(&self) -> Numerics {
        let Model { tf32, libraries, weights_type, .. } = &self.model;
        Numerics { tf32: tf32.unwrap_or_default(), libraries: libraries.clone(), weights: *weights_type }
    }

    /// Operators of the project, as the compiler is told of them.
    pub(crate) fn operators(&self) -> Result<Vec<custom::Operator>, Failure> {
        Ok(self.model.operators.iter().map(Operator::read).collect::<Result<_, _>>()?)
    }

    /// Its graph, with the names that its project gives.
    pub(crate) fn graph(&self) -> Result<Graph, Failure> {
        let graph = frontend::read(&self.model.name, self.file()?, &self.operators()?);
        let graph = graph.and_then(|graph| rename::rename(graph, &self.model.names));
        Ok(graph?)
    }

    /// What the compiler is asked for: code for these levels and GPUs.
    pub(crate) fn options(
        &self,
        levels: Vec<String>,
        gpus: Vec<String>,
        numerics: Numerics,
    ) -> Result<Options, Failure> {
        Ok(Options::new(&*self.model.name, levels)
            .with_gpus(gpus)
            .with_weights_type(numerics.weights)
            .with_tf32(numerics.tf32)
            .with_libraries(numerics.libraries)
            .with_names(self.model.names.clone())
            .with_operators(self.operators()?))
    }
}

/// Whether a word can be a model's name: a path with a folder or an extension names a file.
fn is_name(given: &Path) -> bool {
    given.components().count() == 1 && given.extension().is_none()
}

/// The models of the project around the command, those of the package that it is given in first.
fn of_project(context: &Context) -> Result<Vec<(PathBuf, Model)>, Failure> {
    let selection = Selection::whole_workspace();
    if !Project::is_there(&selection, context) {
        return Ok(Vec::new());
    }
    let project = Project::open(&selection, context)?;
    let mut all = Vec::new();
    for package in project.packages(&selection, context)? {
        let manifest: Manifest = project.manifest(package)?;
        let folder = package.manifest_path.as_std_path().with_file_name("");
        all.extend(manifest.models.into_iter().map(|model| (folder.clone(), model)));
    }
    let here = context.environment.directory();
    all.sort_by_key(|(folder, _)| !here.starts_with(folder));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_no_names() {
        for name in ["petnet", "pet-net", "net 2"] {
            assert!(is_name(Path::new(name)), "{name}");
        }
        for path in ["./petnet", "models/petnet", "petnet.pt2", "..", "/petnet"] {
            assert!(!is_name(Path::new(path)) || path == "..", "{path}");
        }
    }
}
