//! What the builds of one process share: environment, cache, toolchain and executor.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_compiler::compile;
use aoti_compiler::diagnostic::Diagnostics;
use aoti_compiler::frontend::ModelFile;
use aoti_toolchain::{
    Action, Device, Environment, Executor, Mode, Requirements, Target, Toolchain, Toolchains, UserToolchains,
    open_store,
};

use crate::error::Error;
use crate::layout::Layout;
use crate::model::{Gpus, Model, cpu_requirements, default_architectures, default_levels};
use crate::operators::Operator;
use crate::samples;
use crate::state::{self, Fingerprint};

/// What the caller decides about all builds of a session.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The target; by default the host.
    pub target: Option<Target>,
    /// At most so many tools at once; by default as many as cargo's jobserver or the processors allow.
    pub jobs: Option<usize>,
    /// Whether results of tools are kept for later builds.
    pub cache: bool,
    /// Make the Rust module and the header only, and run no tool.
    pub bindings_only: bool,
    /// How code is compiled and linked.
    pub mode: Mode,
    /// Only the toolchain of this name will do.
    pub toolchain: Option<String>,
    /// Refuse to build a model that was tuned where records for some of its kernels are missing.
    pub locked: bool,
    /// The Rust module does not say that the library is linked: another build system does.
    pub links_elsewhere: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            target: None,
            jobs: None,
            cache: true,
            bindings_only: false,
            mode: Mode::default(),
            toolchain: None,
            locked: false,
            links_elsewhere: false,
        }
    }
}

/// One model to build, with its place.
#[derive(Clone, Debug)]
pub struct Job {
    /// The model.
    pub model: Model,
    /// Where its artefacts go.
    pub layout: Layout,
    /// Keep a record of what is up to date, and let no other process into the folder meanwhile. Not for folders that
    /// are thrown away.
    pub incremental: bool,
}

pub(crate) type Compiler = fn(ModelFile, &compile::Options) -> Result<SourceBundle, Diagnostics>;

/// What builds share. Threads may use one session at the same time.
pub struct Session {
    pub(crate) environment: Environment,
    pub(crate) settings: Settings,
    pub(crate) target: Target,
    pub(crate) executor: Executor,
    /// The compiler; tests put a small one in its place.
    pub(crate) compiler: Compiler,
    cache: Option<PathBuf>,
    resolved: Mutex<Vec<Resolved>>,
}

/// The toolchain for a device and models whose project brings these of its own.
struct Resolved {
    own: Vec<Arc<UserToolchains>>,
    device: Device,
    /// Architectures of a GPU that it was asked for.
    architectures: Vec<String>,
    toolchain: Arc<Toolchain>,
}

impl Session {
    /// A session in an environment.
    ///
    /// # Errors
    /// [`Error::Tool`] when there can be no jobserver.
    pub fn new(environment: &Environment, settings: Settings) -> Result<Session, Error> {
        let cache = environment.cache_directory();
        let store = if settings.cache { open_store(environment) } else { None };
        let executor = Executor::new(environment, store, settings.jobs)?;
        let target = settings.target.clone().unwrap_or_else(|| environment.host().clone());
        let (environment, resolved) = (environment.clone(), Mutex::default());
        let compiler: Compiler = compile::compile;
        Ok(Session { environment, settings, target, executor, compiler, cache, resolved })
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The environment.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The toolchain that builds for the target, for models of no project; looked for once.
    ///
    /// # Errors
    /// [`Error::Tool`] with every candidate and the reason against it.
    pub fn toolchain(&self) -> Result<Arc<Toolchain>, Error> {
        self.toolchain_with(&[])
    }

    /// The toolchain that builds a model for the target: perhaps one that its project brings.
    ///
    /// # Errors
    /// As [`Session::toolchain`].
    pub fn toolchain_of(&self, model: &Model) -> Result<Arc<Toolchain>, Error> {
        self.toolchain_with(&model.toolchains)
    }

    fn toolchain_with(&self, own: &[Arc<UserToolchains>]) -> Result<Arc<Toolchain>, Error> {
        let toolchain = self.settings.toolchain.clone();
        self.resolve(own, Requirements { toolchain, ..cpu_requirements(&self.target) })
    }

    /// The toolchain that makes a model's code for GPUs; it knows the architectures by name, this machine's too.
    ///
    /// # Errors
    /// As [`Session::toolchain`], and when `native` is asked for on a machine without such a GPU.
    pub(crate) fn device_toolchain(&self, model: &Model, gpus: &Gpus) -> Result<Arc<Toolchain>, Error> {
        let names = architectures_of(gpus);
        let requirements = Requirements::gpu(gpus.device, self.target.clone(), &names);
        self.resolve(&model.toolchains, requirements)
    }

    fn resolve(
        &self,
        own: &[Arc<UserToolchains>],
        requirements: Requirements,
    ) -> Result<Arc<Toolchain>, Error> {
        // Held while looking, so that two threads do not look for the same.
        let mut resolved = self.resolved.lock().unwrap_or_else(PoisonError::into_inner);
        let is_this = |known: &&Resolved| {
            let wanted = (requirements.device, &requirements.levels);
            known.own == own && (known.device, &known.architectures) == wanted
        };
        if let Some(known) = resolved.iter().find(is_this) {
            return Ok(Arc::clone(&known.toolchain));
        }
        let toolchains = Toolchains::for_project(&self.environment, self.cache.as_deref(), own)?;
        let toolchain = Arc::new(toolchains.resolve(&requirements)?);
        let Requirements { device, levels: architectures, .. } = requirements;
        let own = own.to_vec();
        resolved.push(Resolved { own, device, architectures, toolchain: Arc::clone(&toolchain) });
        Ok(toolchain)
    }

    /// All toolchains that a build of a model uses: for processors first, then for each of its GPUs.
    ///
    /// # Errors
    /// As [`Session::toolchain`].
    pub fn toolchains_of(&self, model: &Model) -> Result<Vec<Arc<Toolchain>>, Error> {
        let mut all = vec![self.toolchain_of(model)?];
        for gpus in &model.gpus {
            all.push(self.device_toolchain(model, gpus)?);
        }
        Ok(all)
    }

    /// The architectures of all GPUs that a model is compiled for, with those of this machine in the place of `native`.
    ///
    /// # Errors
    /// As a build for those GPUs.
    pub fn architectures(&self, model: &Model) -> Result<Vec<String>, Error> {
        let mut all = Vec::new();
        for gpus in &model.gpus {
            if self.settings.bindings_only {
                // Modules are the same for all; where nobody looks for a toolchain, `native` stays open.
                let named = architectures_of(gpus).into_iter().filter(|name| *name != "native");
                let named: Vec<String> = named.map(str::to_owned).collect();
                let defaults = default_architectures(gpus.device).iter().map(ToString::to_string);
                all.extend(if named.is_empty() { defaults.collect() } else { named });
            } else {
                all.extend(self.device_toolchain(model, gpus)?.levels.iter().cloned());
            }
        }
        Ok(all)
    }

    /// The levels that a model is compiled for: those asked for that are of the target's architecture, else its defaults.
    ///
    /// # Errors
    /// As [`Session::toolchain`].
    pub fn levels(&self, model: &Model) -> Result<Vec<String>, Error> {
        if !model.cpu {
            return Ok(Vec::new());
        }
        let defaults = || default_levels(self.target.architecture()).iter().map(ToString::to_string);
        if self.settings.bindings_only {
            return Ok(if model.levels.is_empty() { defaults().collect() } else { model.levels.clone() });
        }
        let toolchain = self.toolchain_of(model)?;
        let is_native = self.target == *self.environment.host();
        let known =
            |level: &String| toolchain.definition.level_for(level, &toolchain.target, is_native).is_some();
        let asked: Vec<String> = model.levels.iter().filter(|level| known(level)).cloned().collect();
        Ok(if asked.is_empty() { defaults().filter(|level| known(level)).collect() } else { asked })
    }

    /// The levels that can be asked for, by name.
    ///
    /// # Errors
    /// As [`Session::toolchain`].
    pub fn known_levels(&self) -> Result<Vec<String>, Error> {
        let toolchain = self.toolchain()?;
        let is_native = self.target == *self.environment.host();
        let names = toolchain.definition.level_names(&toolchain.target, is_native);
        Ok(names.into_iter().map(str::to_owned).collect())
    }

    /// The compile actions of a model, for questions to the cache. Runs none of them and writes nothing.
    ///
    /// # Errors
    /// As a build, as far as it does not concern files that are written.
    pub fn actions(&self, model: &Model) -> Result<Vec<Action>, Error> {
        let (name, path) = (model.name.clone(), model.path.clone());
        let unreadable = |(path, source)| Error::Unreadable { name: name.clone(), path, source };
        let model_file = model.read().map_err(unreadable)?;
        let options = model.options(self.levels(model)?, self.architectures(model)?, self.usable(model)?)?;
        let bundle = (self.compiler)(model_file, &options).map_err(|diagnostics| Error::Model {
            name,
            path,
            diagnostics,
        })?;
        let sources = crate::plan::operator_sources(model, &bundle)?;
        let toolchain = self.toolchain_of(model)?;
        crate::plan::objects(&toolchain, model, &bundle, (&sources, &[]), &self.settings.mode)
    }

    pub(crate) fn recipe(&self, model: &Model) -> Result<Fingerprint, Error> {
        if self.settings.locked {
            self.check_locked(model)?;
        }
        let levels = self.levels(model)?;
        let toolchain = if self.settings.bindings_only {
            None
        } else {
            let all = self.toolchains_of(model)?;
            let told = |toolchain: &Arc<Toolchain>| {
                format!("{} {}", toolchain.name(), toolchain.fingerprint(&levels, &self.environment))
            };
            Some(all.iter().map(told).collect::<Vec<_>>().join(" "))
        };
        let usable = self.usable(model)?;
        Ok(Fingerprint {
            version: crate::VERSION.to_owned(),
            name: model.name.clone(),
            package: model.package.clone(),
            target: self.target.to_string(),
            asked: model.levels.clone(),
            levels,
            devices: model.devices(),
            architectures: self.architectures(model)?,
            outputs: model.names.outputs.clone(),
            dims: model.names.dims.clone(),
            shapes: model.shapes.iter().map(|(name, shape)| (name.clone(), shape.to_string())).collect(),
            programs: model.programs.iter().map(|program| format!("{program:?}")).collect(),
            weights: model.weights,
            named_weights: model.named_weights,
            weights_type: model.weights_type,
            link: model.link,
            mode: format!("{:?}", self.settings.mode),
            choices: state::as_text(&usable.records),
            rates: usable.rates,
            operators: model.operators.iter().map(Operator::record).collect::<Result<_, _>>()?,
            samples: model.samples.as_ref().map(samples::record),
            toolchain,
        })
    }
}

/// The architectures that are asked for, or the default ones.
fn architectures_of(gpus: &Gpus) -> Vec<&str> {
    if gpus.architectures.is_empty() {
        return default_architectures(gpus.device).to_vec();
    }
    gpus.architectures.iter().map(String::as_str).collect()
}
