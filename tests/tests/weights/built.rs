//! A model built with its weights inside, and once more to be given them; the checkpoint of its program, and how it is run.

use aoti_compiler::frontend;
use aoti_compiler::graph::{Constant, ConstantSource};
use aoti_runtime::{DType, DynTensor, Error, Inline, Library, LoadOptions, Model, Weights, Workspace};
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use safetensors::tensor::{Dtype, TensorView};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The tensors of a program's state by name, as a checkpoint has them.
pub(crate) type Checkpoint = BTreeMap<String, (Dtype, Vec<usize>, Vec<u8>)>;

/// A model built twice: with its weights inside, and to be given them.
pub(crate) struct Built {
    pub(crate) embedded: Model,
    pub(crate) named: Library,
    /// The weights as the build wrote them.
    pub(crate) blob: Vec<u8>,
    pub(crate) checkpoint: Checkpoint,
    folder: tempfile::TempDir,
}

impl Built {
    pub(crate) fn new(path: &Path) -> Built {
        let name = if path.extension().is_some_and(|own| own == "aoti") { "model.aoti" } else { "model.pt2" };
        let project = |weights: &str| {
            let table = format!(
                "[package.metadata.aoti.models.model]\npath = \"models/{name}\"\nlink = \"dylib\"\n{weights}"
            );
            Project::new(&table).with_model(name, path)
        };
        let (inside, outside) = (project(""), project("weights = \"external\"\n"));
        inside.build();
        // Their kernels are the same, and compiled once.
        let mut build = outside.aoti(&["build"]);
        Ended::of(build.env("AOTI_CACHE_DIR", inside.folder().join("cache"))).succeeded();
        let [embedded, named] = [&inside, &outside].map(|project| aoti_tests::native::open(project, "model"));
        let embedded = embedded.load(LoadOptions::default()).expect("it has weights");
        Built {
            embedded,
            named,
            blob: fs::read(outside.artefacts("model").join("model.weights.bin")).expect("it was written"),
            checkpoint: checkpoint(path),
            folder: tempfile::tempdir().expect("there is room for a folder"),
        }
    }

    pub(crate) fn file(&self, checkpoint: &Checkpoint) -> PathBuf {
        file_in(self.folder.path(), checkpoint)
    }

    /// Loads the weights from a safetensors file of these tensors.
    pub(crate) fn weights(&self, checkpoint: &Checkpoint) -> Result<Weights, Error> {
        Weights::from_safetensors(self.file(checkpoint), &self.named.info()?)
    }

    pub(crate) fn model(&self, checkpoint: &Checkpoint) -> Result<Model, Error> {
        self.named.load(LoadOptions { weights: self.weights(checkpoint)?, ..LoadOptions::default() })
    }
}

/// A safetensors file of these tensors.
pub(crate) fn file_in(folder: &Path, checkpoint: &Checkpoint) -> PathBuf {
    let path = folder.join("checkpoint.safetensors");
    pub(crate) fn view<'a>(
        (name, (dtype, sizes, bytes)): (&'a String, &'a (Dtype, Vec<usize>, Vec<u8>)),
    ) -> (&'a str, TensorView<'a>) {
        (name, TensorView::new(*dtype, sizes.clone(), bytes).expect("the bytes fit"))
    }
    safetensors::serialize_to_file(checkpoint.iter().map(view), None, &path).expect("it can be written");
    path
}

pub(crate) fn checkpoint(path: &Path) -> Checkpoint {
    let model = fs::read(path).expect("the model can be read");
    // An exported program is asked itself, before decomposition drops anything.
    let constants: Vec<Constant> = if frontend::text::is_text(&model) {
        let graph = frontend::text::import("model", model.into()).expect("it can be imported");
        graph.constants.values().cloned().collect()
    } else {
        let program = frontend::torch::program("model", model.into()).expect("it can be imported");
        program.constants.into_values().collect()
    };
    constants
        .into_iter()
        .filter(|own| own.source == ConstantSource::Weight)
        .map(|Constant { name, dtype, sizes, data, .. }| {
            let dtype =
                serde_json::from_str(&format!("\"{}\"", dtype.name().to_uppercase())).expect("it has one");
            (name, (dtype, sizes.into_iter().map(|size| size as usize).collect(), data.to_vec()))
        })
        .collect()
}

/// Runs a case's inputs.
pub(crate) fn outputs(model: &Model, inputs: &[DynTensor]) -> Result<Vec<DynTensor>, Error> {
    let views: Vec<_> = inputs.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        model.info().outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut state = (model.info().state_bytes > 0).then(|| model.state()).transpose()?;
    let mut places: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    model.run(&views, &mut places, state.as_mut(), &mut Workspace::new(), &Inline)?;
    Ok(outputs)
}

/// Types of inputs in files.
const TYPES: [(Dtype, DType); 4] = [
    (Dtype::I64, DType::I64),
    (Dtype::I32, DType::I32),
    (Dtype::BOOL, DType::Bool),
    (Dtype::F32, DType::F32),
];

pub(crate) fn inputs(case: &Path) -> Vec<DynTensor> {
    let bytes = fs::read(case.join("inputs.safetensors")).expect("the case has inputs");
    let file = safetensors::SafeTensors::deserialize(&bytes).expect("they can be read");
    let tensor = |number: usize| {
        let view = file.tensor(&number.to_string()).expect("inputs are numbered");
        let (_, dtype) =
            TYPES.iter().find(|(file, _)| *file == view.dtype()).expect("no case has inputs of other types");
        DynTensor::from_bytes(*dtype, view.shape(), view.data()).expect("the data fit")
    };
    (0..file.len()).map(tensor).collect()
}
