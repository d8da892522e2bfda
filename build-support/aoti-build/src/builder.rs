//! The one line of a build script.

mod talk;

use std::ffi::OsStr;
use std::mem;
use std::path::{Path, PathBuf};

use aoti_compiler::frontend::torch::custom;
use aoti_toolchain::{Device, Environment, Target, Toolchains, UserToolchain};

use crate::build_mode::BuildMode;
use crate::error::Error;
use crate::files;
use crate::layout::Layout;
use crate::lock::FILE as LOCK_FILE;
use crate::manifest::{Manifest, Script};
use crate::model::{LinkKind, Model, Tf32};
use crate::operators::{Operator, OperatorCode, headers_beside};
use crate::problem::Problems;
use crate::session::{Job, Session, Settings};
use crate::system;
use crate::variables;

/// Builds the models of the package whose build script runs.
///
/// Writes under `OUT_DIR` only, and the cache of native tools, which `cargo aoti build` shares. Where cargo only checks, as
/// for `cargo check`, clippy, rust-analyzer and docs.rs, only Rust modules are made and no native tool is needed; the
/// variable `AOTI_BUILD` says otherwise.
#[derive(Debug)]
pub struct Builder {
    environment: Environment,
    folder: PathBuf,
    manifest: Manifest,
    script: Script,
    out_dir: PathBuf,
    /// As cargo names it, until it is known what toolchains there are.
    target: Target,
    mode: BuildMode,
}

impl Builder {
    /// Reads `[package.metadata.aoti]` of the package, else the workspace's table.
    ///
    /// # Errors
    /// [`Error::NoCargo`] outside a build script. Problems of the table are told to cargo, and end the script.
    pub fn from_manifest() -> Result<Builder, Error> {
        Builder::for_script(Environment::capture(), system::parent())
    }

    /// As [`Builder::from_manifest`], for a program that a build script started to do its work: with the environment of
    /// both, and the process of the cargo that started the script.
    ///
    /// # Errors
    /// As [`Builder::from_manifest`].
    pub fn for_script(environment: Environment, cargo: Option<u32>) -> Result<Builder, Error> {
        Builder::in_environment(environment, cargo, Manifest::of_folder).map_err(talk::failed)
    }

    /// Knows no models but those that [`Builder::model`] gives, and reads no table.
    ///
    /// ```no_run
    /// // build.rs
    /// use aoti_build::{Builder, Model, Weights};
    ///
    /// fn main() -> Result<(), aoti_build::Error> {
    ///     let digits = Model::new("digits", "models/digits.pt2").weights(Weights::Sidecar).outputs(["logits"]);
    ///     Builder::new()?.cpu(["x86-64-v3"]).model(digits).build()
    /// }
    /// ```
    ///
    /// # Errors
    /// [`Error::NoCargo`] outside a build script.
    pub fn new() -> Result<Builder, Error> {
        Builder::in_environment(Environment::capture(), system::parent(), |_| Ok(Manifest::empty()))
            .map_err(talk::failed)
    }

    /// Builds this model too. Its path is relative to the package's folder; a model that the script has written to
    /// `OUT_DIR` is not watched, as cargo would run the script each time.
    #[must_use]
    pub fn model(mut self, model: Model) -> Builder {
        self.script.models.push(model);
        self
    }

    /// The processor levels of all models that name none of their own, in place of the table's `cpu`.
    #[must_use]
    pub fn cpu(mut self, levels: impl IntoIterator<Item = impl Into<String>>) -> Builder {
        self.script.cpu = levels.into_iter().map(Into::into).collect();
        self
    }

    /// What all models are built for, in place of the table's `devices`.
    #[must_use]
    pub fn devices(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Builder {
        self.script.devices = names.into_iter().map(Into::into).collect();
        self
    }

    /// Architectures of NVIDIA's GPUs, in place of the table's `cuda`.
    #[must_use]
    pub fn cuda(self, names: impl IntoIterator<Item = impl Into<String>>) -> Builder {
        self.architectures(Device::Cuda, names)
    }

    /// Architectures of AMD's GPUs, in place of the table's `rocm`.
    #[must_use]
    pub fn rocm(self, names: impl IntoIterator<Item = impl Into<String>>) -> Builder {
        self.architectures(Device::Rocm, names)
    }

    /// Architectures of a kind of GPUs, in place of the table's key with the name of these.
    #[must_use]
    pub fn architectures(
        mut self,
        device: Device,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Builder {
        self.script.gpus.insert(device, names.into_iter().map(Into::into).collect());
        self
    }

    /// What of `f32` GPUs may multiply as TF32, in place of the table's `allow-tf32`.
    #[must_use]
    pub fn allow_tf32(mut self, tf32: Tf32) -> Builder {
        self.script.tf32 = Some(tf32);
        self
    }

    /// Libraries that products may be left to, in place of the table's `libraries`.
    #[must_use]
    pub fn libraries(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Builder {
        self.script.libraries = names.into_iter().map(Into::into).collect();
        self
    }

    /// An operator of the project's own, as `operators` of the table, in place of one of that name there. Its paths are
    /// relative to the package's folder.
    #[must_use]
    pub fn operator(mut self, operator: Operator) -> Builder {
        self.script.operators.push(operator);
        self
    }

    /// A toolchain of the project's own, as `toolchain.<name>` of the table, before one of that name there. Its paths are
    /// relative to the package's folder.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), aoti_build::Error> {
    /// use aoti_build::{Builder, UserToolchain};
    ///
    /// let board = UserToolchain::new("gcc-aarch64").program("tools/aarch64-g++").flags(["-mcpu=neoverse-n1"]);
    /// Builder::from_manifest()?.toolchain("board", board).build()
    /// # }
    /// ```
    #[must_use]
    pub fn toolchain(mut self, name: impl Into<String>, toolchain: UserToolchain) -> Builder {
        self.script.toolchains.insert(name.into(), toolchain);
        self
    }

    fn in_environment(
        environment: Environment,
        cargo: Option<u32>,
        read: impl FnOnce(&Path) -> Result<Manifest, Problems>,
    ) -> Result<Builder, Error> {
        let path = |name: &'static str| environment.variable(name).ok_or(Error::NoCargo(name));
        let folder = PathBuf::from(path("CARGO_MANIFEST_DIR")?);
        let out_dir = PathBuf::from(path("OUT_DIR")?);
        let target = Target::new(path("TARGET")?.to_string_lossy());
        // Said before anything can fail, or cargo would not run the script again when the mistake is put right.
        println!("cargo::rerun-if-changed={}", folder.join("Cargo.toml").display());
        for name in variables::rebuilding(target.as_str()) {
            println!("cargo::rerun-if-env-changed={name}");
        }
        let models = folder.join("models");
        if models.is_dir() {
            println!("cargo::rerun-if-changed={}", models.display());
        }
        let manifest = read(&folder)?;
        let mode = BuildMode::of(&environment, cargo.and_then(system::command_line).as_deref())?;
        let script = Script::default();
        Ok(Builder { environment, folder, manifest, script, out_dir, target, mode })
    }

    /// Builds the models and tells cargo where they are.
    ///
    /// # Errors
    /// What goes wrong with tools and files. Everything found in the models is told to cargo, and ends the script.
    pub fn build(mut self) -> Result<(), Error> {
        self.settle().and_then(|()| self.run()).map_err(talk::failed)
    }

    /// Brings together what the table and the script say.
    fn settle(&mut self) -> Result<(), Error> {
        let of_package = |name| self.environment.variable(name).ok_or(Error::NoCargo(name));
        let (name, version) = (of_package("CARGO_PKG_NAME")?, of_package("CARGO_PKG_VERSION")?);
        let (name, version) = (name.to_string_lossy(), version.to_string_lossy());
        let (script, manifest) = (mem::take(&mut self.script), self.manifest.clone());
        self.manifest = manifest.with_script(script, &self.folder)?.of_package(&name, &version);
        let own = &self.manifest.settings.toolchains;
        let toolchains = Toolchains::for_project(&self.environment, None, own)?;
        self.target = platform(self.target.clone(), &toolchains, &self.environment);
        Ok(())
    }

    fn run(&self) -> Result<(), Error> {
        talk::warn(&self.manifest.notes);
        for file in &self.manifest.files {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        if let Some(file) = aoti_toolchain::user_file(&self.environment) {
            println!("cargo::rerun-if-changed={}", file.display());
        }
        // What the script itself writes is newer than its start each time.
        for model in self.manifest.models.iter().filter(|model| !model.path.starts_with(&self.out_dir)) {
            for (_, path) in model.program_files() {
                println!("cargo::rerun-if-changed={}", path.display());
                for file in files::beside(path) {
                    println!("cargo::rerun-if-changed={}", file.display());
                }
            }
            if let Some(samples) = &model.samples {
                println!("cargo::rerun-if-changed={}", samples.path.display());
            }
        }
        for path in self.manifest.operators.iter().filter_map(Operator::file) {
            println!("cargo::rerun-if-changed={}", path.display());
            for header in headers_beside(path) {
                println!("cargo::rerun-if-changed={}", header.display());
            }
        }
        // Naming a file that is not there would run the script each time; `cargo aoti tune` sees to the first one.
        let lock = self.folder.join(LOCK_FILE);
        if lock.is_file() {
            println!("cargo::rerun-if-changed={}", lock.display());
        }
        // Cargo runs the script again as long as there is no such folder: models may appear there.
        if let Some(folder) = self.manifest.searched.as_ref().filter(|folder| !folder.is_dir()) {
            println!("cargo::rerun-if-changed={}", folder.display());
        }
        let bindings_only = self.mode != BuildMode::Full;
        let settings = Settings { target: Some(self.target.clone()), bindings_only, ..Settings::default() };
        let session = Session::new(&self.environment, settings)?;
        let mut jobs: Vec<Job> = self.manifest.models.iter().map(|model| self.job(model)).collect();
        if self.mode == BuildMode::Check {
            jobs.retain(|job| !session.has_native_code(job));
            if !jobs.is_empty() {
                // There never is such a file, so the next command runs the script again: it may want native code.
                println!("cargo::rerun-if-changed={}", self.public().join("native code").display());
            }
        }
        if self.mode == BuildMode::Full && !jobs.is_empty() {
            let has_linker = self.environment.variable("RUSTC_LINKER").is_some();
            let advice = talk::linker_advice(&self.target, self.environment.host(), has_linker);
            talk::warn(&advice.into_iter().collect::<Vec<_>>());
        }
        let errors = session.build(&jobs, &talk::Talk).into_iter().filter_map(Result::err).collect();
        Error::all(errors)?;
        self.announce();
        self.announce_operators()
    }

    /// Tells the compiler of the package where the modules are, by name, and where the libraries.
    fn announce(&self) {
        let mut known = Vec::new();
        for model in &self.manifest.models {
            let (name, identifier) = (&model.name, model.identifier());
            let path = Layout::of_build_script(&self.out_dir, &identifier).bindings(&identifier);
            println!("cargo::rustc-env=AOTI_MODEL_{identifier}={}", path.display());
            if *name == identifier {
                known.push(format!("`{name}`"));
            } else {
                known.push(format!("`{}` (module `{identifier}`)", name.escape_debug()));
                // Names of variables can be anything but this.
                if !name.contains(['=', '\n', '\r', '\0']) {
                    println!("cargo::rustc-env=AOTI_MODEL_{name}={}", path.display());
                }
            }
        }
        if known.is_empty() {
            known.push(
                "none; put one into `models/`, or name one in `[package.metadata.aoti.models]`".to_owned(),
            );
        }
        println!("cargo::rustc-env=AOTI_MODELS={}", known.join(", "));
        if self.manifest.models.iter().any(|model| model.link == LinkKind::Dylib) {
            self.find_at_run_time();
        }
        // The modules themselves say which libraries they need.
        println!("cargo::rustc-link-search=native={}", self.public().display());
    }

    /// Tells the compiler of the package which parameters the program's own functions must have.
    fn announce_operators(&self) -> Result<(), Error> {
        for operator in &self.manifest.operators {
            let is_own = matches!(operator.code, OperatorCode::Function { source: None, .. });
            // It was checked with the manifest.
            let declared = operator.read()?;
            if let (Ok(Some((symbol, letters))), Ok(Some(function))) =
                (custom::signature(&declared), custom::declaration(&declared))
                && is_own
            {
                println!("cargo::rustc-env=AOTI_OPERATOR_{symbol}={letters}");
                println!("cargo::rustc-env=AOTI_FUNCTION_{symbol}={function}");
            }
        }
        Ok(())
    }

    /// Programs look for shared libraries in their own folder, where `cargo aoti collect` puts them, and then where they
    /// were built.
    fn find_at_run_time(&self) {
        let Some(own) = self.target.platform().own_folder else { return };
        for folder in [own.to_owned(), self.public().display().to_string()] {
            // Word by word, for commas in paths.
            for word in ["-Xlinker", "-rpath", "-Xlinker", &folder] {
                println!("cargo::rustc-link-arg={word}");
            }
        }
    }

    fn job(&self, model: &Model) -> Job {
        let layout = Layout::of_build_script(&self.out_dir, &model.identifier());
        Job { model: model.clone(), layout, incremental: true }
    }

    fn public(&self) -> PathBuf {
        Path::new(&self.out_dir).join("aoti")
    }
}

/// The target by a name that toolchains are declared for. One that is described by a file has a name of its own; what cargo
/// says of it in `CARGO_CFG_TARGET_*` is what it is.
fn platform(target: Target, toolchains: &Toolchains, environment: &Environment) -> Target {
    let of = |part: &str| environment.variable(&format!("CARGO_CFG_TARGET_{part}")).and_then(OsStr::to_str);
    if toolchains.declare(Device::Cpu, &target) {
        return target;
    }
    let (Some(architecture), Some(system)) = (of("ARCH"), of("OS")) else { return target };
    let library = of("ENV").map(|library| format!("-{library}")).unwrap_or_default();
    let usual = Target::new(format!("{architecture}-unknown-{system}{library}"));
    if toolchains.declare(Device::Cpu, &usual) { usual } else { target }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_of_a_users_own_are_what_cargo_says_of_them() {
        let said = |target: &str, parts: &[(&str, &str)]| {
            let parts = parts.iter().map(|(part, value)| (format!("CARGO_CFG_TARGET_{part}"), *value));
            let environment = Environment::from_variables(parts, "/");
            let toolchains = Toolchains::new(&environment, None);
            platform(Target::new(target), &toolchains, &environment).to_string()
        };
        let arm = [("ARCH", "aarch64"), ("OS", "linux"), ("ENV", "gnu")];
        assert_eq!(said("board", &arm), "aarch64-unknown-linux-gnu");
        assert_eq!(said("x86_64-alpine-linux-musl", &arm), "x86_64-alpine-linux-musl", "it is known");
        assert_eq!(said("board", &[("ARCH", "sparc64"), ("OS", "linux")]), "board");
        assert_eq!(said("board", &[]), "board");
    }
}
