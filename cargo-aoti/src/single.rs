//! Builds one model outside of any project, in a folder that is thrown away.

use std::path::{Path, PathBuf};

use aoti_build::{
    Built, Choices, Gpus, Job, LOCK_FILE, Layout, LinkKind, Manifest, Model, Operator, Progress, Session,
    Settings, Weights, operators_of_project,
};
use aoti_runtime::{Device, Library, LoadOptions, ModelInfo};
use aoti_toolchain::{Environment, TemporaryFolder, temporary_folder};

use crate::arguments::Numerics;
use crate::commands::Context;
use crate::failure::Failure;

/// A built model with the folder that it is in.
pub(crate) struct Single {
    pub(crate) built: Built,
    device: Device,
    /// Of GPUs, those that it is compiled for.
    pub(crate) architectures: Vec<String>,
    _folder: TemporaryFolder,
}

/// The name of a model that has none but its file's; that of its folder where the file is just `model`.
pub(crate) fn name_of(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = path.parent().and_then(Path::file_name);
    match folder {
        Some(folder) if stem == "model" => folder.to_string_lossy().into_owned(),
        _ => stem,
    }
}

/// The folder of the package that a file lies in.
pub(crate) fn package_of(path: &Path) -> Option<PathBuf> {
    let path = fs_err::canonicalize(path).ok()?;
    path.ancestors().skip(1).find(|folder| folder.join("Cargo.toml").is_file()).map(Path::to_owned)
}

/// What the manifest of the package that a model lies in says of it, if the package builds it.
pub(crate) fn listed(path: &Path) -> Result<Option<Model>, aoti_build::Error> {
    let Some(folder) = package_of(path) else { return Ok(None) };
    let manifest = Manifest::of_folder(&folder)?;
    let is_same = |model: &Model| match [&model.path, path].map(fs_err::canonicalize) {
        [Ok(own), Ok(path)] => own == path,
        _ => false,
    };
    Ok(manifest.models.into_iter().find(is_same))
}

/// A model of no project, with the operators of the one around the command.
pub(crate) fn model(path: &Path, environment: &Environment) -> Result<Model, aoti_build::Error> {
    let mut model = Model::new(name_of(path), path);
    model.operators = operators(environment)?;
    // Where `tune` leaves what it finds of such a model.
    model.choices = Choices::Lock(path.with_file_name(LOCK_FILE));
    Ok(model)
}

/// Builds a model as a library of this kind for a device, at these levels or architectures.
pub(crate) fn build(
    session: &Session,
    model: &Model,
    link: LinkKind,
    device: Device,
    levels: Vec<String>,
    numerics: Numerics,
    progress: &dyn Progress,
) -> Result<Single, aoti_build::Error> {
    let folder = temporary_folder("model", session.environment());
    let folder = folder.map_err(|source| aoti_build::Error::File {
        action: "make a folder in",
        path: session.environment().temporary_directory(),
        source,
    })?;
    let mut model = Model { link, levels: Vec::new(), gpus: Vec::new(), ..model.clone() };
    // A library of its own that is opened here takes any weights from a file; a program needs them inside.
    model.weights = match link {
        LinkKind::Dylib => Weights::Sidecar,
        LinkKind::Static => Weights::Embed,
    };
    (model.tf32, model.libraries) = (Some(numerics.tf32), numerics.libraries);
    model.weights_type = numerics.weights;
    if device.is_cpu() {
        model.levels = levels;
    } else {
        model.cpu = false;
        model.gpus = vec![Gpus { device: toolchain_device(device), architectures: levels }];
    }
    let architectures = session.architectures(&model)?;
    let job = Job { model, layout: Layout::flat(folder.path()), incremental: false };
    let built = session.build(&[job], progress).remove(0)?;
    Ok(Single { built, device, architectures, _folder: folder })
}

/// Operators that the project adds in whose folder the command runs. What lies beside a model file adds none: it comes from
/// wherever the file does.
pub(crate) fn operators(environment: &Environment) -> Result<Vec<Operator>, aoti_build::Error> {
    Ok(operators_of_project(environment.directory())?)
}

/// The same as the compiler is told of them.
pub(crate) fn read_operators(
    environment: &Environment,
) -> Result<Vec<aoti_compiler::frontend::torch::custom::Operator>, aoti_build::Error> {
    operators(environment)?.iter().map(Operator::read).collect()
}

/// A session for one model on this machine.
pub(crate) fn session(context: &Context, cache: bool) -> Result<Session, Failure> {
    Ok(Session::new(&context.environment, Settings { cache, ..Settings::default() })?)
}

/// The kind of a device, as toolchains name it.
pub(crate) fn toolchain_device(device: Device) -> aoti_toolchain::Device {
    aoti_toolchain::Device::from_name(device.kind_name())
        .expect("models run on what there are toolchains for")
}

/// Refuses a level that the session's target does not have. Of a GPU's architectures the build itself tells.
pub(crate) fn check_level(session: &Session, device: Device, level: &str) -> Result<(), Failure> {
    if device != Device::Cpu {
        return Ok(());
    }
    let known = session.known_levels()?;
    if known.iter().any(|name| name == level) {
        return Ok(());
    }
    let (target, known) = (session.target(), known.join("`, `"));
    Err(Failure::Usage(format!("`{target}` has no level `{level}`; it has `{known}`")))
}

impl Single {
    /// The file with the weights, if they are not inside the library.
    pub(crate) fn weights(&self) -> Option<&Path> {
        self.built.artefact("weights").map(|artefact| artefact.path.as_path())
    }

    /// Bytes of the library and of its weights.
    pub(crate) fn bytes(&self) -> u64 {
        let parts = [self.built.library(), self.built.artefact("weights")];
        parts.into_iter().flatten().map(|artefact| artefact.bytes).sum()
    }

    /// Opens the library and loads the model.
    pub(crate) fn load(&self) -> Result<(aoti_runtime::Model, ModelInfo), Failure> {
        self.load_on(self.device)
    }

    /// The same on another device of the kind.
    pub(crate) fn load_on(&self, device: Device) -> Result<(aoti_runtime::Model, ModelInfo), Failure> {
        let path = self.built.library().map(|library| library.path.clone()).unwrap_or_default();
        // SAFETY: this process has just built the library, of this model.
        let library = unsafe { Library::open(path, &self.built.symbol) }?;
        let info = library.info()?;
        let weights = match self.weights() {
            Some(file) => aoti_runtime::Weights::file(file)?,
            None => aoti_runtime::Weights::embedded(),
        };
        let options = LoadOptions { weights, device, ..LoadOptions::default() };
        Ok((library.load(options)?, info))
    }
}
