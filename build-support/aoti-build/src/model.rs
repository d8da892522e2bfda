//! One model as the manifest or a command asks for it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aoti_compiler::compile;
pub use aoti_compiler::compile::WeightsType;
use aoti_compiler::cost::Rates;
use aoti_compiler::frontend::{InputShape, ModelFile};
use aoti_compiler::json_words;
use aoti_compiler::names;
pub use aoti_compiler::passes::rename::Names;
use aoti_compiler::schedule::Records;
pub use aoti_compiler::target::{MathLibrary, Tf32};
use aoti_toolchain::{Device, Requirements, Target, UserToolchains};

use crate::error::Error;
use crate::files;
use crate::lock::ApplicableRecords;
use crate::operators::{Operator, headers_beside};

/// Where the weights of a model lie.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Weights {
    /// Inside the library.
    #[default]
    Embed,
    /// In a file beside the program.
    Sidecar,
    /// Given by the program at run time.
    External,
}

json_words!(Weights { Embed = "embed", Sidecar = "sidecar", External = "external" });

/// What kind of library is made.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum LinkKind {
    /// A static library.
    #[default]
    Static,
    /// A shared library.
    Dylib,
}

json_words!(LinkKind { Static = "static", Dylib = "dylib" });

/// GPUs that a model is built for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Gpus {
    /// Whose: never the processor.
    pub device: Device,
    /// Their architectures, of which `native` stands for those of this machine; none for the default ones.
    pub architectures: Vec<String>,
}

/// Sizes of a model's open dimensions, by name.
pub type TypicalSizes = BTreeMap<String, u32>;

/// How kernels are run that can be run in more than one way.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Choices {
    /// As the compiler thinks best.
    #[default]
    Predicted,
    /// As the records of this file say, where it is there and has them.
    Lock(PathBuf),
    /// So.
    Given {
        /// The settings.
        records: Records,
        /// What processors reach.
        rates: Option<Rates>,
    },
}

/// One of several programs of a model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Program {
    /// Its name: that of a function of the model's module.
    pub name: String,
    /// Its file.
    pub path: PathBuf,
    /// What its outputs and dimensions are called, where not as the program calls them.
    pub names: Names,
}

/// One model to build.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Its file; that of its first program, where it has several.
    pub path: PathBuf,
    /// Its programs, where it has several: they share weights and what they mutate.
    pub programs: Vec<Program>,
    /// The package that it belongs to, with its version; empty for none.
    pub package: String,
    /// Where its weights lie.
    pub weights: Weights,
    /// Whether the library takes other weights by name although it has its own; one with external weights always does.
    pub named_weights: bool,
    /// What the weights of large products are stored in.
    pub weights_type: WeightsType,
    /// What kind of library is made.
    pub link: LinkKind,
    /// Whether it runs on processors.
    pub cpu: bool,
    /// CPU levels; none for the target's defaults.
    pub levels: Vec<String>,
    /// GPUs that it runs on, each device once.
    pub gpus: Vec<Gpus>,
    /// What of `f32` its GPUs may multiply as TF32; what PyTorch does where nobody says.
    pub tf32: Option<Tf32>,
    /// Libraries that products may be left to.
    pub libraries: Vec<MathLibrary>,
    /// Toolchains that its project brings, those that go first in front.
    pub toolchains: Vec<Arc<UserToolchains>>,
    /// What its outputs and dimensions are called, where not as the program calls them.
    pub names: Names,
    /// Shapes of inputs that go before those of its file, by name.
    pub shapes: BTreeMap<String, InputShape>,
    /// Sizes of its open dimensions that are typical, which its kernels are tuned for.
    pub sizes: Vec<TypicalSizes>,
    /// How its kernels are run.
    pub choices: Choices,
    /// Operators that its project adds to those of PyTorch.
    pub operators: Vec<Operator>,
    /// Whether its Rust module has a test, if there are samples beside it.
    pub test: bool,
    /// Samples beside it that are compared by that test.
    pub samples: Option<Samples>,
}

/// A file with samples of a model: a safetensors file with inputs and outputs, or the model's own archive with inputs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Samples {
    /// The file.
    pub path: PathBuf,
    /// Its place from the folder of the package, where that is below it.
    pub from_package: Option<PathBuf>,
}

impl Model {
    /// A model with default settings.
    pub fn new(name: impl Into<String>, path: impl Into<PathBuf>) -> Model {
        Model {
            name: name.into(),
            path: path.into(),
            programs: Vec::new(),
            package: String::new(),
            weights: Weights::Embed,
            named_weights: false,
            weights_type: WeightsType::Own,
            link: LinkKind::Static,
            cpu: true,
            levels: Vec::new(),
            gpus: Vec::new(),
            tf32: None,
            libraries: Vec::new(),
            toolchains: Vec::new(),
            names: Names::default(),
            shapes: BTreeMap::new(),
            sizes: Vec::new(),
            choices: Choices::Predicted,
            operators: Vec::new(),
            test: true,
            samples: None,
        }
    }

    /// A model of several programs with default settings: `programs` of the manifest.
    pub fn of_programs<N: Into<String>, P: Into<PathBuf>>(
        name: impl Into<String>,
        programs: impl IntoIterator<Item = (N, P)>,
    ) -> Model {
        let program =
            |(name, path): (N, P)| Program { name: name.into(), path: path.into(), names: Names::default() };
        let programs: Vec<Program> = programs.into_iter().map(program).collect();
        let path = programs.first().map(|program| program.path.clone()).unwrap_or_default();
        Model { programs, ..Model::new(name, path) }
    }

    /// Its files by program, each with no name where it has one program.
    pub fn program_files(&self) -> Vec<(&str, &Path)> {
        if self.programs.is_empty() {
            return vec![("", &self.path)];
        }
        self.programs.iter().map(|program| (program.name.as_str(), program.path.as_path())).collect()
    }

    /// The model that one of its programs is alone.
    pub fn program(&self, name: &str) -> Option<Model> {
        let program = self.programs.iter().find(|program| program.name == name)?;
        let Program { path, names, .. } = program.clone();
        let name = format!("{} {name}", self.name);
        Some(Model { name, path, names, programs: Vec::new(), ..self.clone() })
    }

    /// Where its weights lie: `weights` of the manifest.
    #[must_use]
    pub fn weights(mut self, weights: Weights) -> Model {
        self.weights = weights;
        self
    }

    /// Whether its library takes other weights by name although it has its own: `named-weights` of the manifest.
    #[must_use]
    pub fn named_weights(mut self, named: bool) -> Model {
        self.named_weights = named;
        self
    }

    /// What the weights of large products are stored in: `weights-type` of the manifest.
    #[must_use]
    pub fn weights_type(mut self, weights: WeightsType) -> Model {
        self.weights_type = weights;
        self
    }

    /// Whether samples beside it, in a safetensors file of its name, make a test: `test` of the manifest.
    #[must_use]
    pub fn test(mut self, test: bool) -> Model {
        self.test = test;
        self
    }

    /// What kind of library is made: `link` of the manifest.
    #[must_use]
    pub fn link(mut self, link: LinkKind) -> Model {
        self.link = link;
        self
    }

    /// The processor levels of this model alone: `cpu` of the manifest.
    #[must_use]
    pub fn levels(mut self, levels: impl IntoIterator<Item = impl Into<String>>) -> Model {
        self.levels = levels.into_iter().map(Into::into).collect();
        self
    }

    /// What of `f32` its GPUs may multiply as TF32: `allow-tf32` of the manifest.
    #[must_use]
    pub fn allow_tf32(mut self, tf32: Tf32) -> Model {
        self.tf32 = Some(tf32);
        self
    }

    /// Names of its outputs, all of them in order: `outputs` of the manifest.
    #[must_use]
    pub fn outputs(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Model {
        self.names.outputs = names.into_iter().map(Into::into).collect();
        self
    }

    /// Sizes of its open dimensions that are typical: one of the tables of `sizes` of the manifest. `cargo aoti tune` measures
    /// kernels at each of them, and a build takes what is best at all.
    #[must_use]
    pub fn sizes<N: Into<String>>(mut self, sizes: impl IntoIterator<Item = (N, u32)>) -> Model {
        self.sizes.push(sizes.into_iter().map(|(name, size)| (name.into(), size)).collect());
        self
    }

    /// Names of its dimensions, each after the one that the program has for it: `dims` of the manifest.
    #[must_use]
    pub fn dims<P: Into<String>, N: Into<String>>(
        mut self,
        names: impl IntoIterator<Item = (P, N)>,
    ) -> Model {
        self.names.dims = names.into_iter().map(|(program, name)| (program.into(), name.into())).collect();
        self
    }

    /// Shapes of inputs, by name, where an ONNX file leaves them open: `shapes` of the manifest.
    #[must_use]
    pub fn shapes<N: Into<String>>(mut self, shapes: impl IntoIterator<Item = (N, InputShape)>) -> Model {
        self.shapes = shapes.into_iter().map(|(name, shape)| (name.into(), shape)).collect();
        self
    }

    /// Looks for samples beside the model, which belongs to the package in this folder, and else in its own file.
    pub(crate) fn find_samples(&mut self, package: &Path) {
        let beside = self.path.with_extension("safetensors");
        let own = self.programs.is_empty() && self.path.extension().is_some_and(|it| it == "pt2");
        let path = if own && !beside.is_file() { self.path.clone() } else { beside };
        let from_package = path.strip_prefix(package).ok().map(Path::to_owned);
        self.samples = (self.test && path.is_file()).then_some(Samples { path, from_package });
    }

    /// What the compiler is told.
    pub(crate) fn options(
        &self,
        levels: Vec<String>,
        gpus: Vec<String>,
        ApplicableRecords { records, rates, .. }: ApplicableRecords,
    ) -> Result<compile::Options, Error> {
        Ok(compile::Options::new(&*self.name, levels)
            .with_gpus(gpus)
            .with_package(&*self.package)
            .with_embedded_weights(self.weights == Weights::Embed)
            .with_named_weights(self.named_weights || self.weights == Weights::External)
            .with_weights_type(self.weights_type)
            .with_tf32(self.tf32.unwrap_or_default())
            .with_libraries(self.libraries.clone())
            .with_names(self.all_names())
            .with_measurements(records, rates)
            .with_operators(self.compiled_operators()?))
    }

    /// The content of its files.
    ///
    /// # Errors
    /// A file that cannot be read, with its path.
    pub(crate) fn read(&self) -> Result<ModelFile, (PathBuf, io::Error)> {
        let read = |path: &Path| files::model_file(path).map_err(|source| (path.to_owned(), source));
        if self.programs.is_empty() {
            return Ok(ModelFile { shapes: self.shapes.clone(), ..read(&self.path)? });
        }
        let program = |program: &Program| Ok((program.name.clone(), read(&program.path)?));
        Ok(ModelFile::of_programs(self.programs.iter().map(program).collect::<Result<_, _>>()?))
    }

    /// Its names, with those of its programs.
    fn all_names(&self) -> Names {
        let of_programs = self.programs.iter().map(|program| (program.name.clone(), program.names.clone()));
        Names { programs: of_programs.collect(), ..self.names.clone() }
    }

    /// The files that a build of it reads, as far as they are there; programs are not among them.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = Vec::new();
        for (_, path) in self.program_files() {
            files.push(path.to_owned());
            files.extend(files::beside(path));
        }
        let samples = self.samples.iter().map(|samples| &samples.path);
        files.extend(samples.filter(|path| **path != self.path).cloned());
        for path in self.operators.iter().filter_map(Operator::file) {
            files.push(path.to_owned());
            files.extend(headers_beside(path));
        }
        if let Choices::Lock(path) = &self.choices {
            files.extend(path.is_file().then(|| path.clone()));
        }
        files.sort();
        files.dedup();
        files
    }

    /// Its project's operators, as the compiler is told of them.
    ///
    /// # Errors
    /// [`Error::File`] for a graph that cannot be read.
    pub fn compiled_operators(&self) -> Result<Vec<aoti_compiler::frontend::torch::custom::Operator>, Error> {
        self.operators.iter().map(Operator::read).collect()
    }

    /// What it is built for, and with what numbers, as a record of builds has it.
    pub(crate) fn devices(&self) -> Vec<String> {
        let cpu = self.cpu.then(|| Device::Cpu.as_str().to_owned());
        let gpu = |gpus: &Gpus| format!("{} {}", gpus.device.as_str(), gpus.architectures.join(" "));
        let Tf32 { matmul, conv } = self.tf32.unwrap_or_default();
        let tf32 = [(matmul, "tf32 matmul"), (conv, "tf32 conv")].into_iter();
        let tf32 = tf32.filter(|(is_allowed, _)| *is_allowed && !self.gpus.is_empty());
        let tf32 = tf32.map(|(_, word)| word.to_owned());
        let libraries = self.libraries.iter().map(|library| library.name().to_owned());
        cpu.into_iter().chain(self.gpus.iter().map(gpu)).chain(tf32).chain(libraries).collect()
    }

    /// The identifier that stands for it in file names and modules.
    pub fn identifier(&self) -> String {
        names::identifier(&self.name)
    }

    /// What stands for it in symbols and names of libraries, where it may meet models of other packages.
    pub fn symbol(&self) -> String {
        names::symbol(&self.name, &self.package)
    }
}

/// The architectures that models are built for on GPUs when none are given.
pub fn default_architectures(device: Device) -> &'static [&'static str] {
    device.common_architectures()
}

/// The levels that models are built for on an architecture (as in the first part of a triple) when none are given.
pub fn default_levels(architecture: &str) -> &'static [&'static str] {
    match architecture {
        "x86_64" => &["x86-64", "x86-64-v3", "x86-64-v4"],
        "aarch64" => &["neon"],
        "riscv64" => &["rv64gc"],
        "wasm32" => &["simd128"],
        _ => &[],
    }
}

/// What a build of CPU code asks of a toolchain.
pub(crate) fn cpu_requirements(target: &Target) -> Requirements {
    Requirements { archive: true, ..Requirements::cpu(target.clone()) }
}
