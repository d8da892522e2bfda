//! What code is made of a model that is given as a file: the keys of the manifest, as options.

use std::path::{Path, PathBuf};

use aoti_build::{Choices, Manifest, Model, operators_of_project, suggest};
use aoti_toolchain::Device;
use clap::{Args, FromArgMatches, ValueEnum};
use serde_json::{Map, Value, json};

use crate::arguments::Rounding;
use crate::commands::Context;
use crate::failure::Failure;
use crate::project::{Project, Selection};
use crate::single;

/// What code is made: the keys of the manifest.
#[derive(Args, Debug)]
pub(crate) struct Code {
    /// Name of the model; by default that of its file
    #[arg(long)]
    name: Option<String>,
    /// Part of the symbols of the model, so that one program may have several models of the same name
    #[arg(long, value_name = "NAME", default_value = "")]
    namespace: String,
    /// Devices, comma-separated, such as `cpu` and `cuda` [default: cpu]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) devices: Vec<String>,
    /// Instruction-set levels of processors, comma-separated [default: the target's]
    #[arg(long, value_name = "LEVELS", value_delimiter = ',')]
    cpu: Vec<String>,
    #[command(flatten)]
    architectures: Architectures,
    /// Where the weights are: in the library, or in a file that the program loads
    #[arg(long, value_enum, default_value = "embed")]
    weights: Placement,
    /// The library also accepts other weights by name
    #[arg(long)]
    named_weights: bool,
    /// Kind of library
    #[arg(long, value_enum, default_value = "static")]
    link: Link,
    /// Names of the outputs, comma-separated
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    outputs: Vec<String>,
    /// Rename a dimension, as `PROGRAM'S=NAME`; may be repeated
    #[arg(long, value_name = "OLD=NEW", value_parser = renamed)]
    dims: Vec<(String, String)>,
    /// Tuning records, as `cargo aoti tune` writes them
    #[arg(long, value_name = "PATH")]
    lock: Option<PathBuf>,
    /// Cargo manifest that declares custom operators
    #[arg(long, value_name = "PATH")]
    pub(crate) operators: Option<PathBuf>,
    #[command(flatten)]
    rounding: Rounding,
}

/// Architectures of GPUs: an option for each kind of these, by its name.
#[derive(Debug)]
struct Architectures(Vec<(Device, Vec<String>)>);

impl Args for Architectures {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(Device::GPUS.map(|device| {
            let help = format!("Architectures of {}, comma-separated", device.label());
            let option = clap::Arg::new(device.as_str()).long(device.as_str()).help(help);
            option.value_name("NAMES").value_delimiter(',').action(clap::ArgAction::Append)
        }))
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Architectures::augment_args(command)
    }
}

impl FromArgMatches for Architectures {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Architectures, clap::Error> {
        let names = |device: Device| {
            matches.get_many::<String>(device.as_str()).into_iter().flatten().cloned().collect()
        };
        Ok(Architectures(Device::GPUS.map(|device| (device, names(device))).into()))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Architectures::from_arg_matches(matches)?;
        Ok(())
    }
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Placement {
    Embed,
    External,
}

#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum Link {
    Static,
    Dylib,
}

/// Reads `OLD=NEW`, for clap.
fn renamed(text: &str) -> Result<(String, String), String> {
    let (old, new) = text.split_once('=').ok_or("expected OLD=NEW")?;
    Ok((old.trim().to_owned(), new.trim().to_owned()))
}

impl Code {
    /// The model, read and checked as a table of a manifest with the same keys.
    pub(crate) fn model_of_file(&self, path: &Path, directory: &Path) -> Result<Model, Failure> {
        if !directory.join(path).is_file() {
            return Err(Failure::Usage(format!("there is no model `{}`", path.display())));
        }
        let name = self.name.clone().unwrap_or_else(|| single::name_of(path));
        let mut own = Map::new();
        own.insert("path".to_owned(), json!(path));
        own.insert("weights".to_owned(), json!(word(self.weights)));
        own.insert("link".to_owned(), json!(word(self.link)));
        own.insert("named-weights".to_owned(), json!(self.named_weights));
        if !self.outputs.is_empty() {
            own.insert("outputs".to_owned(), json!(self.outputs));
        }
        let dims: Map<String, Value> = self.dims.iter().map(|(old, new)| (old.clone(), json!(new))).collect();
        own.insert("dims".to_owned(), Value::Object(dims));
        let mut table = json!({ "models": { name: own } });
        let gpus = self.architectures.0.iter().map(|(device, names)| (device.as_str(), names));
        for (key, names) in [("devices", &self.devices), ("cpu", &self.cpu)].into_iter().chain(gpus) {
            if !names.is_empty() {
                table[key] = json!(names);
            }
        }
        // There is no such file; it says what paths are relative to.
        let place = directory.join("Cargo.toml");
        let manifest = Manifest::of_metadata(&place, &json!({ "aoti": table }), &place, &Value::Null);
        let manifest = manifest.map_err(|problems| {
            let text = |problem: &aoti_build::Problem| match &problem.help {
                Some(help) => format!("{}; {help}", problem.message),
                None => problem.message.clone(),
            };
            Failure::Usage(problems.0.iter().map(text).collect::<Vec<_>>().join("\n"))
        })?;
        let mut models = manifest.models.into_iter();
        let mut model = models.next().ok_or_else(|| Failure::Usage("there is no model".to_owned()))?;
        let numerics = self.rounding.or(aoti_build::Tf32::default());
        (model.tf32, model.libraries) = (Some(numerics.tf32), numerics.libraries);
        model.weights_type = numerics.weights;
        model.package.clone_from(&self.namespace);
        model.choices = match &self.lock {
            Some(lock) if !directory.join(lock).is_file() => {
                return Err(Failure::Usage(format!("there is no file `{}`", lock.display())));
            }
            Some(lock) => Choices::Lock(directory.join(lock)),
            None => Choices::Predicted,
        };
        if let Some(manifest) = &self.operators {
            let manifest = directory.join(manifest);
            model.operators = operators_of_project(manifest.parent().unwrap_or(directory))?;
        }
        Ok(model)
    }

    /// The model that this names: a file, with these options; else a model of the project by its name, as its manifest says.
    pub(crate) fn model(
        &self,
        named: &Path,
        selection: &Selection,
        context: &Context,
    ) -> Result<Model, Failure> {
        let directory = context.environment.directory();
        if directory.join(named).is_file() || !Project::is_there(selection, context) {
            return self.model_of_file(&directory.join(named), directory);
        }
        let project = Project::open(selection, context)?;
        let mut models = Vec::new();
        for package in project.packages(selection, context)? {
            models.extend(project.manifest(package)?.models);
        }
        let named = named.to_string_lossy();
        if let Some(model) = models.iter().find(|model| model.name == named) {
            return Ok(model.clone());
        }
        let near = suggest(&named, models.iter().map(|model| model.name.as_str()));
        let near = near.map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
        Err(Failure::Usage(format!("there is neither a file nor a model `{named}` of the project{near}")))
    }
}

/// Refuses code that means another thing on another machine.
pub(crate) fn check_portable(model: &Model) -> Result<(), Failure> {
    let mut levels = model.levels.iter().chain(model.gpus.iter().flat_map(|gpus| &gpus.architectures));
    if levels.any(|level| level == "native") {
        let help = "name the level, such as `x86-64-v3` or `sm_90a`";
        return Err(Failure::Usage(format!(
            "code for `native` depends on the machine that compiles; {help}"
        )));
    }
    Ok(())
}

/// The word for a value on the command line, which is the manifest's.
fn word(value: impl ValueEnum) -> String {
    value.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default()
}
