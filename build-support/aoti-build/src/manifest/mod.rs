//! The metadata table of a cargo project: which models there are and how they are built.
//!
//! Reads `[package.metadata.aoti]`, else `[workspace.metadata.aoti]`. Cargo says nothing about unknown keys there, so this
//! does. All problems are reported at once.

mod check;
mod find;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aoti_compiler::frontend::InputShape;
use aoti_toolchain::{Device, Requirements, Target, UserToolchain, UserToolchains};
use serde_json::Value;

use crate::locate::Spot;
use crate::lock;
use crate::model::{
    Choices, Gpus, LinkKind, MathLibrary, Model, Names, Program, Tf32, TypicalSizes, Weights, WeightsType,
};
use crate::operators::Operator;
use crate::problem::Problems;
use check::Checker;
use find::Found;

/// A table with its place.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) value: Value,
    /// The manifest that it is in.
    pub(crate) file: PathBuf,
    /// `package.metadata.aoti` or `workspace.metadata.aoti`.
    pub(crate) name: &'static str,
}

/// Architectures of each kind of GPUs of which some are named.
pub type Architectures = BTreeMap<Device, Vec<String>>;

/// What a project builds for, and with what.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct BuildSettings {
    /// Devices by name; none for the processor alone.
    pub devices: Vec<String>,
    /// Levels of processors; none for the target's defaults.
    pub cpu: Vec<String>,
    /// Architectures of GPUs.
    pub gpus: Architectures,
    /// What of `f32` GPUs may multiply as TF32, if it says.
    pub tf32: Option<Tf32>,
    /// Libraries that products may be left to.
    pub libraries: Vec<MathLibrary>,
    /// Toolchains that the project brings, those that go first in front.
    pub toolchains: Vec<Arc<UserToolchains>>,
}

/// What a project says about its models.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Manifest {
    /// The models, by name.
    pub models: Vec<Model>,
    /// What they are built for.
    pub settings: BuildSettings,
    /// Manifests that were read.
    pub files: Vec<PathBuf>,
    /// The folder that was searched for models, if it was; it need not be there.
    pub searched: Option<PathBuf>,
    /// Operators of the project's own.
    pub operators: Vec<Operator>,
    /// What its owner should know though nothing is wrong, a sentence each.
    pub notes: Vec<String>,
    /// Names of the models that have levels of their own.
    own_levels: BTreeSet<String>,
}

/// What a build script says of its models itself, beside the table or in its place.
#[derive(Clone, Default, Debug)]
pub(crate) struct Script {
    /// Models, with paths from the package's folder.
    pub(crate) models: Vec<Model>,
    /// Where it says any: devices, levels of models that name none, and architectures of GPUs.
    pub(crate) devices: Vec<String>,
    pub(crate) cpu: Vec<String>,
    pub(crate) gpus: Architectures,
    pub(crate) tf32: Option<Tf32>,
    pub(crate) libraries: Vec<String>,
    /// Toolchains by name, with paths from the package's folder.
    pub(crate) toolchains: BTreeMap<String, UserToolchain>,
    /// Operators of the project's own, with paths from the package's folder.
    pub(crate) operators: Vec<Operator>,
}

/// A table as far as it makes sense.
#[derive(Debug, Default)]
struct RawTable {
    devices: Vec<String>,
    cpu: Vec<String>,
    gpus: Architectures,
    tf32: Option<Tf32>,
    libraries: Vec<String>,
    models: Option<BTreeMap<String, RawModel>>,
    toolchains: Option<BTreeMap<String, UserToolchain>>,
    operators: Vec<Operator>,
}

#[derive(Debug)]
struct RawModel {
    path: Option<PathBuf>,
    /// In the place of a path.
    programs: Option<Vec<Program>>,
    weights: Weights,
    named_weights: Option<bool>,
    weights_type: WeightsType,
    link: LinkKind,
    /// Levels of its own; the table's where it has none.
    cpu: Option<Vec<String>>,
    /// The table's where it has none.
    tf32: Option<Tf32>,
    names: Names,
    shapes: BTreeMap<String, InputShape>,
    sizes: Vec<TypicalSizes>,
    /// Whether samples beside it make a test.
    test: bool,
}

impl BuildSettings {
    /// Takes the tables as `cargo metadata` gives them; null stands for an absent one. Looks at no model.
    ///
    /// # Errors
    /// All [`Problems`] of the table that have nothing to do with models.
    pub fn of_metadata(
        package_manifest: &Path,
        package: &Value,
        workspace_manifest: &Path,
        workspace: &Value,
    ) -> Result<BuildSettings, Problems> {
        let table = find::of_values(package_manifest, package, workspace_manifest, workspace).table;
        let mut checker = Checker::new(table.as_ref());
        let raw = table.as_ref().map(|table| checker.table(&table.value)).unwrap_or_default();
        let settings = BuildSettings::of_table(&mut checker, table.as_ref(), raw);
        checker.finish()?;
        Ok(settings)
    }

    fn is_for(&self, device: Device) -> bool {
        self.devices.iter().any(|name| name == device.as_str())
    }

    /// The architectures of a kind of GPUs; none where it names none.
    fn architectures(&self, device: Device) -> &[String] {
        self.gpus.get(&device).map_or(&[], Vec::as_slice)
    }

    /// Whether models are built for processors, and the GPUs that they are built for.
    fn devices(&self) -> (bool, Vec<Gpus>) {
        let gpus = Device::GPUS.into_iter().filter(|device| self.is_for(*device));
        let gpus = gpus.map(|device| Gpus { device, architectures: self.architectures(device).to_vec() });
        (self.devices.is_empty() || self.is_for(Device::Cpu), gpus.collect())
    }

    /// What builds ask of toolchains for a target, one request for each device. Devices that are only given
    /// architectures are among them: nothing is built for those, but people want to know what could be.
    pub fn requirements(&self, target: &Target) -> Vec<Requirements> {
        let mut all = Vec::new();
        if self.devices.is_empty() || self.is_for(Device::Cpu) {
            all.push(crate::model::cpu_requirements(target));
        }
        for device in Device::GPUS {
            let names = self.architectures(device);
            if self.is_for(device) || !names.is_empty() {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                all.push(Requirements::gpu(device, target.clone(), &names));
            }
        }
        all
    }

    fn of_table(checker: &mut Checker<'_>, table: Option<&Table>, raw: RawTable) -> BuildSettings {
        let RawTable { devices, cpu, gpus, tf32, libraries, models: _, toolchains, operators: _ } = raw;
        let cpu = checker.levels(&cpu);
        checker.architectures(&gpus);
        let libraries = checker.libraries(&libraries);
        let toolchains = table.zip(toolchains).map(|(table, tables)| {
            let folder = table.file.parent().map(Path::to_owned).unwrap_or_default();
            Arc::new(UserToolchains { file: table.file.clone(), folder, tables })
        });
        let toolchains = toolchains.into_iter().collect();
        BuildSettings { devices, cpu, gpus, tf32, libraries, toolchains }
    }
}

impl Manifest {
    /// Reads the table of the package in this folder from its `Cargo.toml`, looking upwards for the workspace's.
    ///
    /// # Errors
    /// All [`Problems`] of the table.
    pub fn of_folder(folder: &Path) -> Result<Manifest, Problems> {
        let (found, files) = find::table(folder)?;
        Manifest::of_table(folder, found, files)
    }

    /// Takes the tables as `cargo metadata` gives them; null stands for an absent one.
    ///
    /// # Errors
    /// All [`Problems`] of the table.
    pub fn of_metadata(
        package_manifest: &Path,
        package: &Value,
        workspace_manifest: &Path,
        workspace: &Value,
    ) -> Result<Manifest, Problems> {
        let folder = package_manifest.parent().unwrap_or(Path::new("."));
        let found = find::of_values(package_manifest, package, workspace_manifest, workspace);
        Manifest::of_table(folder, found, vec![package_manifest.to_owned()])
    }

    /// No models, and nothing said of any.
    pub(crate) fn empty() -> Manifest {
        Manifest {
            models: Vec::new(),
            settings: BuildSettings::default(),
            files: Vec::new(),
            searched: None,
            operators: Vec::new(),
            notes: Vec::new(),
            own_levels: BTreeSet::new(),
        }
    }

    /// The same with what the build script of the package in this folder says itself, which goes first.
    ///
    /// # Errors
    /// All [`Problems`] of that.
    pub(crate) fn with_script(mut self, script: Script, folder: &Path) -> Result<Manifest, Problems> {
        let mut checker = Checker::of_script(folder);
        let Script { models, devices, cpu, gpus, tf32, libraries, toolchains, operators } = script;
        for operator in operators {
            let operator = operator.within(folder);
            checker.operator(&operator, &Spot::table().entry("operators").entry(&operator.name));
            self.operators.retain(|own| own.name != operator.name);
            self.operators.push(operator);
        }
        checker.devices(&devices);
        checker.levels(&cpu);
        checker.architectures(&gpus);
        let libraries = checker.libraries(&libraries);
        let settings = &mut self.settings;
        settings.tf32 = tf32.or(settings.tf32);
        if !libraries.is_empty() {
            settings.libraries = libraries;
        }
        for (key, said) in [&mut settings.devices, &mut settings.cpu].into_iter().zip([devices, cpu]) {
            if !said.is_empty() {
                *key = said;
            }
        }
        settings.gpus.extend(gpus.into_iter().filter(|(_, names)| !names.is_empty()));
        checker.unused(&settings.gpus, &settings.devices);
        if !toolchains.is_empty() {
            let (file, folder) = (folder.join("build.rs"), folder.to_owned());
            settings.toolchains.insert(0, Arc::new(UserToolchains { file, folder, tables: toolchains }));
        }
        for mut model in models {
            model.path = folder.join(&model.path);
            model.programs.iter_mut().for_each(|program| program.path = folder.join(&program.path));
            checker.given(&model);
            model.find_samples(folder);
            if !model.levels.is_empty() {
                self.own_levels.insert(model.name.clone());
            }
            self.models.push(model);
        }
        for model in &mut self.models {
            model.toolchains.clone_from(&settings.toolchains);
            model.tf32 = model.tf32.or(settings.tf32);
            model.libraries.clone_from(&settings.libraries);
            if !self.own_levels.contains(&model.name) {
                model.levels.clone_from(&settings.cpu);
            }
            (model.cpu, model.gpus) = settings.devices();
            model.choices = Choices::Lock(folder.join(lock::FILE));
            model.operators.clone_from(&self.operators);
        }
        checker.duplicates(&self.models);
        checker.finish()?;
        Ok(self)
    }

    /// The same, of the package with this name and version.
    #[must_use]
    pub fn of_package(mut self, name: &str, version: &str) -> Manifest {
        self.models.iter_mut().for_each(|model| model.package = format!("{name} {version}"));
        self
    }

    fn of_table(folder: &Path, found: Found, files: Vec<PathBuf>) -> Result<Manifest, Problems> {
        let (table, notes) = (found.table.as_ref(), found.notes);
        let mut checker = Checker::new(table);
        let raw = match table {
            Some(table) => checker.table(&table.value),
            None => RawTable::default(),
        };
        let mut searched = None;
        let mut models = match &raw.models {
            Some(models) => {
                let base = folder_of(table, folder);
                models.iter().filter_map(|(name, model)| checker.model(name, model, base, folder)).collect()
            }
            None => {
                let place = folder.join("models");
                let mut found = find::models(&place);
                found.iter_mut().for_each(|model| model.find_samples(folder));
                searched = Some(place);
                found
            }
        };
        checker.devices(&raw.devices);
        let operators = checker.operators(&raw.operators, folder_of(table, folder));
        let settings = BuildSettings::of_table(&mut checker, table, raw);
        let mut own_levels = BTreeSet::new();
        for model in &mut models {
            model.tf32 = model.tf32.or(settings.tf32);
            model.libraries.clone_from(&settings.libraries);
            if model.levels.is_empty() {
                model.levels.clone_from(&settings.cpu);
            } else {
                own_levels.insert(model.name.clone());
            }
            model.toolchains.clone_from(&settings.toolchains);
            (model.cpu, model.gpus) = settings.devices();
            model.choices = Choices::Lock(folder.join(lock::FILE));
            model.operators.clone_from(&operators);
        }
        checker.unused(&settings.gpus, &settings.devices);
        checker.duplicates(&models);
        checker.finish()?;
        Ok(Manifest { models, settings, files, searched, operators, notes, own_levels })
    }
}

/// What paths in a table are relative to.
fn folder_of<'a>(table: Option<&'a Table>, folder: &'a Path) -> &'a Path {
    table.and_then(|table| table.file.parent()).unwrap_or(folder)
}

/// The operators that the project in or above a folder declares, for tools that are given a model file; none where there is
/// no project.
///
/// # Errors
/// All [`Problems`] of the declarations, and of a manifest that cannot be read.
pub fn operators_of_project(folder: &Path) -> Result<Vec<Operator>, Problems> {
    let Some(folder) = folder.ancestors().find(|folder| folder.join("Cargo.toml").is_file()) else {
        return Ok(Vec::new());
    };
    let Some(table) = find::table(folder)?.0.table else { return Ok(Vec::new()) };
    let mut checker = Checker::new(Some(&table));
    let raw = checker.table_of_operators(&table.value);
    let operators = checker.operators(&raw, folder_of(Some(&table), folder));
    checker.finish()?;
    Ok(operators)
}

#[cfg(test)]
mod tests;
