//! The record of what is up to date: `state.json` beside the artefacts.
//!
//! A build is up to date when nothing that it was made from and nothing that it made has changed. Metadata decides where
//! it can; a file whose times changed is read, and only another content makes a difference.

use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use aoti_compiler::cost::Rates;
use aoti_compiler::frontend::ModelFile;
use aoti_compiler::json::{FromJson, ToJson};
use aoti_compiler::json_fields;
use aoti_compiler::names::exported_symbol;
use aoti_compiler::schedule::{Records, Setting, TuningKey};

use crate::artefacts::{Artefact, Built};
use crate::error::Error;
use crate::files::{self, FileStamp, file_error};
use crate::layout::Layout;
use crate::lock::ApplicableRecords;
use crate::model::Model;

const SCHEMA: u32 = 10;

/// Clocks of file systems tick in steps, so a file that was written just before it was looked at may have been written
/// again just after, in the same tick. Times that close to the look prove nothing.
const TICK_NS: u64 = 1_000_000_000;

/// What a build was made from, but for the model's file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Fingerprint {
    pub(crate) version: String,
    pub(crate) name: String,
    pub(crate) package: String,
    pub(crate) target: String,
    /// The levels that the manifest asks for; none for the target's defaults.
    pub(crate) asked: Vec<String>,
    /// The levels that kernels are compiled for.
    pub(crate) levels: Vec<String>,
    /// The devices that the manifest asks for, and what they may round.
    pub(crate) devices: Vec<String>,
    /// The architectures of GPUs that kernels are compiled for.
    pub(crate) architectures: Vec<String>,
    pub(crate) outputs: Vec<String>,
    pub(crate) dims: Vec<(String, String)>,
    /// Shapes of inputs that go before those of the file.
    pub(crate) shapes: Vec<(String, String)>,
    /// The programs, where there are several: names, files, and what their outputs and dimensions are called.
    pub(crate) programs: Vec<String>,
    pub(crate) weights: crate::model::Weights,
    pub(crate) named_weights: bool,
    pub(crate) weights_type: crate::model::WeightsType,
    pub(crate) link: crate::model::LinkKind,
    pub(crate) mode: String,
    /// What records say about kernels, by their keys.
    pub(crate) choices: Vec<(String, String)>,
    /// What records say about processors.
    pub(crate) rates: Option<Rates>,
    /// The project's own operators, with digests of their files.
    pub(crate) operators: Vec<String>,
    /// The file of samples and the digest of its header.
    pub(crate) samples: Option<String>,
    /// Absent where only bindings are made.
    pub(crate) toolchain: Option<String>,
}

/// Records as a recipe has them.
pub(crate) fn as_text(records: &Records) -> Vec<(String, String)> {
    records.iter().map(|(key, config)| (key.to_string(), config.to_string())).collect()
}

json_fields!(Fingerprint {
    version,
    name,
    package,
    target,
    asked,
    levels,
    devices,
    architectures,
    outputs,
    dims,
    shapes,
    programs,
    weights,
    named_weights,
    weights_type,
    link,
    mode,
    choices,
    rates,
    operators,
    samples,
    toolchain
});

impl Fingerprint {
    /// What records say.
    pub(crate) fn usable(&self) -> ApplicableRecords {
        let mut records = Records::none();
        for (key, setting) in &self.choices {
            // Both were printed by their own types.
            if let (Some(key), Ok(setting)) = (TuningKey::parse(key), setting.parse::<Setting>()) {
                records.set(key, setting);
            }
        }
        ApplicableRecords { records, rates: self.rates.clone(), notes: Vec::new() }
    }

    /// Whether this is a build of native code that is wanted otherwise as a build of bindings is. Which toolchain there is
    /// now, what it can do, and so which records fit, is left open: to find out takes running it.
    pub(crate) fn is_native_for(&self, bindings: &Fingerprint) -> bool {
        let Fingerprint { toolchain, levels, architectures, choices, rates, .. } = self.clone();
        let native = Fingerprint { toolchain, levels, architectures, choices, rates, ..bindings.clone() };
        self.toolchain.is_some() && *self == native
    }
}

#[derive(Clone, Debug)]
pub(crate) struct State {
    schema: u32,
    recipe: Fingerprint,
    model: FileStamp,
    model_digest: String,
    /// The files beside the model's that a part of its data is in.
    beside: Vec<FileStamp>,
    /// When the model was looked at.
    looked_ns: u64,
    outputs: Vec<FileStamp>,
    artefacts: Vec<Artefact>,
    compile_ms: u64,
    /// Digest of the rest: nothing of a damaged record is believed.
    check: String,
}

json_fields!(State {
    schema,
    recipe,
    model,
    model_digest,
    beside,
    looked_ns,
    outputs,
    artefacts,
    compile_ms,
    check
});

impl State {
    /// The record of a build that put these files in place.
    ///
    /// # Errors
    /// [`Error::File`] when one of them is not there.
    pub(crate) fn new(
        recipe: Fingerprint,
        model: ModelStamp,
        artefacts: Vec<Artefact>,
        placed: &[PathBuf],
        compile_ms: u64,
    ) -> Result<State, Error> {
        let paths = artefacts.iter().map(|artefact| &artefact.path).chain(placed);
        let stamp = |path: &PathBuf| FileStamp::of(path).map_err(file_error("read", path));
        let outputs = paths.map(stamp).collect::<Result<_, _>>()?;
        Ok(State {
            schema: SCHEMA,
            recipe,
            model: model.stamp,
            model_digest: model.digest,
            beside: model.beside,
            looked_ns: model.looked_ns,
            outputs,
            artefacts,
            compile_ms,
            check: String::new(),
        })
    }

    /// The same with its digest.
    fn checked(&self) -> State {
        let unchecked = State { check: String::new(), ..self.clone() };
        let text = unchecked.to_json().to_string();
        State { check: blake3::hash(text.as_bytes()).to_hex().to_string(), ..unchecked }
    }

    pub(crate) fn write(&self, layout: &Layout) -> Result<(), Error> {
        let text = format!("{:#}", self.checked().to_json());
        files::write(&layout.state(), text.as_bytes()).map(drop)
    }

    fn read(layout: &Layout) -> Option<State> {
        let text = std::fs::read(layout.state()).ok()?;
        let state = State::from_json(serde_json::from_slice(&text).ok()?).ok()?;
        (state.schema == SCHEMA && state.check == state.checked().check).then_some(state)
    }
}

/// A model's files, read to their digest.
#[derive(Clone, Debug)]
pub(crate) struct ModelStamp {
    /// Of its file, or that of its first program.
    pub(crate) stamp: FileStamp,
    /// Of all files.
    pub(crate) digest: String,
    /// Of the others.
    pub(crate) beside: Vec<FileStamp>,
    pub(crate) looked_ns: u64,
}

impl ModelStamp {
    /// Of a model whose files have this content; the stamp of the first is taken before the content was.
    pub(crate) fn new(stamp: FileStamp, looked_ns: u64, model: &Model, files: &ModelFile) -> ModelStamp {
        let mut beside = Vec::new();
        let digest = if files.programs.is_empty() {
            digest_of(&stamp.path, files, &mut beside)
        } else {
            let mut hasher = blake3::Hasher::new();
            for ((name, path), (_, content)) in model.program_files().into_iter().zip(&files.programs) {
                beside.extend(FileStamp::of(path));
                let own = digest_of(path, content, &mut beside);
                hasher.update(format!("{name} {own}\n").as_bytes());
            }
            hasher.finalize().to_hex().to_string()
        };
        ModelStamp { stamp, digest, beside, looked_ns }
    }

    pub(crate) fn of(model: &Model) -> std::io::Result<ModelStamp> {
        let (looked_ns, stamp) = (now_ns(), FileStamp::of(&model.path)?);
        let files = model.read().map_err(|(_, source)| source)?;
        Ok(ModelStamp::new(stamp, looked_ns, model, &files))
    }
}

/// The digest of a file and of those beside it that a part of its data is in, whose stamps are added.
fn digest_of(path: &Path, model: &ModelFile, stamps: &mut Vec<FileStamp>) -> String {
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    let mut digest = blake3::hash(&model.file).to_hex().to_string();
    for (name, shape) in &model.shapes {
        digest = blake3::hash(format!("{digest} {name} {shape}").as_bytes()).to_hex().to_string();
    }
    for (name, content) in &model.beside {
        let own = blake3::hash(content).to_hex();
        digest = blake3::hash(format!("{digest} {name} {own}").as_bytes()).to_hex().to_string();
        // One that is gone by now is found out by the next build.
        stamps.extend(FileStamp::of(&folder.join(name)));
    }
    digest
}

/// The artefacts of the last build, if they are what a build by such a recipe would make now.
pub(crate) fn fresh(
    model: &Model,
    layout: &Layout,
    is_wanted: impl FnOnce(&Fingerprint) -> bool,
) -> Option<Built> {
    let state = State::read(layout)?;
    let outputs_hold = !state.outputs.is_empty() && state.outputs.iter().all(FileStamp::holds);
    if !is_wanted(&state.recipe) || !outputs_hold {
        return None;
    }
    let stamp = FileStamp::of(&model.path).ok()?;
    let is_before = |stamp: &FileStamp| stamp.modified_ns.saturating_add(TICK_NS) < state.looked_ns;
    let is_settled =
        is_before(&stamp) && state.beside.iter().all(|beside| beside.holds() && is_before(beside));
    if stamp != state.model || !is_settled {
        let seen = ModelStamp::of(model).ok()?;
        if seen.digest != state.model_digest || seen.stamp.path != state.model.path {
            return None;
        }
        if seen.looked_ns.saturating_sub(seen.stamp.modified_ns) > TICK_NS {
            let (model, beside) = (seen.stamp, seen.beside);
            let newer = State { model, beside, looked_ns: seen.looked_ns, ..state.clone() };
            // Only saves the next build from reading the model.
            let _ = newer.write(layout);
        }
    }
    Some(Built {
        name: model.name.clone(),
        identifier: model.identifier(),
        symbol: exported_symbol(&model.symbol()),
        artefacts: state.artefacts,
        fresh: true,
        compile_ms: state.compile_ms,
        tools_run: 0,
    })
}

pub(crate) fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok();
    since.and_then(|time| u64::try_from(time.as_nanos()).ok()).unwrap_or(0)
}
