//! Which models are tuned, and where their locks are.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use aoti_build::{Choices, Gpus, LOCK_FILE, Model, Tf32, suggest};
use serde_json::Value;

use super::Arguments;
use crate::arguments::Numerics;
use crate::case;
use crate::commands::Context;
use crate::failure::Failure;
use crate::project::Project;
use crate::single;

/// A model to tune.
pub(super) struct Planned {
    pub(super) model: Model,
    pub(super) lock: PathBuf,
    /// The manifest of its package; none for a model of no project.
    pub(super) manifest: Option<PathBuf>,
    /// Inputs that lie beside it.
    pub(super) inputs: Option<PathBuf>,
    /// What was measured of it, as `--format json` prints it.
    pub(super) told: RefCell<Vec<Value>>,
}

impl Planned {
    /// The file that inputs are taken from, where sizes are not asked for by name.
    pub(super) fn file<'a>(&'a self, arguments: &'a Arguments) -> Option<&'a Path> {
        let beside = self.inputs.as_deref().filter(|_| arguments.dim.is_empty());
        arguments.inputs.as_deref().or(beside)
    }
}

/// The models that the command line asks for.
pub(super) fn plan(arguments: &Arguments, context: &Context) -> Result<Vec<Planned>, Failure> {
    let names = &arguments.model;
    let is_file = |name: &String| context.environment.directory().join(name).exists() && is_path(name);
    // Files need no project around them.
    let of_project = if !names.is_empty() && names.iter().all(is_file) {
        Vec::new()
    } else {
        of_project(arguments, context)?
    };
    if names.is_empty() {
        if of_project.is_empty() {
            let help = "put a model into `models/`, name one in `[package.metadata.aoti.models]`, or give a model's file";
            return Err(Failure::User(format!("there are no models to tune; {help}")));
        }
        return Ok(of_project);
    }
    let (mut planned, mut of_project) = (Vec::new(), of_project);
    for name in names {
        if let Some(position) = of_project.iter().position(|planned| planned.model.name == *name) {
            planned.push(of_project.remove(position));
        } else if context.environment.directory().join(name).exists() {
            planned.push(of_file(Path::new(name), arguments, context)?);
        } else {
            let near = suggest(name, of_project.iter().map(|planned| planned.model.name.as_str()));
            let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            return Err(Failure::Usage(format!("there is neither a model nor a file `{name}`{near}")));
        }
    }
    Ok(planned)
}

/// Whether a word can be a path, and no model's name.
fn is_path(name: &str) -> bool {
    name.contains(['/', '.']) || Path::new(name).is_dir()
}

fn of_project(arguments: &Arguments, context: &Context) -> Result<Vec<Planned>, Failure> {
    let project = Project::open(&arguments.selection, context)?;
    let mut all = Vec::new();
    for package in project.packages(&arguments.selection, context)? {
        let manifest = project.manifest(package).map_err(aoti_build::Error::from)?;
        let path = package.manifest_path.clone().into_std_path_buf();
        let lock = path.with_file_name(LOCK_FILE);
        let planned = |model: Model| Planned {
            model: Model { choices: Choices::Predicted, ..model },
            lock: lock.clone(),
            manifest: Some(path.clone()),
            inputs: None,
            told: RefCell::default(),
        };
        all.extend(manifest.models.into_iter().map(planned));
    }
    Ok(all)
}

/// A model of no project; its lock lies beside it.
fn of_file(path: &Path, arguments: &Arguments, context: &Context) -> Result<Planned, Failure> {
    let (path, case) = case::model_file(path)?;
    let mut model = Model::new(single::name_of(&path), &path).levels(["native"]);
    model.operators = single::operators(&context.environment)?;
    let Numerics { tf32, libraries, weights } = arguments.rounding.or(Tf32::default());
    (model.tf32, model.libraries) = (Some(tf32), libraries);
    model.weights_type = weights;
    let device = arguments.device;
    if single::toolchain_device(device) != aoti_toolchain::Device::Cpu {
        let architectures = vec!["native".to_owned()];
        model.gpus = vec![Gpus { device: single::toolchain_device(device), architectures }];
    }
    let inputs = case.filter(|case| case.has_inputs()).map(|case| case.inputs());
    Ok(Planned {
        model,
        lock: path.with_file_name(LOCK_FILE),
        manifest: None,
        inputs,
        told: RefCell::default(),
    })
}
