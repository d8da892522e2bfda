//! What is changed: the programs of the families of operators, as archives and as graph text, the example's network, and ONNX
//! models, those of `AOTI_CONFORMANCE` too.

use aoti_compiler::codegen::bundle::SourceBundle;
use aoti_compiler::compile::{Emit, Options, compile, emit};
use aoti_tests::archive::Archive;
use aoti_tests::child::Turn;
use aoti_tests::rng::Rng;
use aoti_tests::{families, models, mutate, wire};
use bytes::Bytes;
use std::path::{Path, PathBuf};

/// Larger archives say the same in more time.
const MOST_BYTES: usize = 40_000;
/// Of the archives, the share that is changed as text too.
const TEXTS: usize = 4;

/// Files to change.
pub(crate) struct Corpus {
    archives: Vec<Archive>,
    texts: Vec<String>,
    onnx: Vec<Vec<u8>>,
}

impl Corpus {
    pub(crate) fn new() -> Corpus {
        let cases = families::all().into_iter().flat_map(|family| families::read(&family));
        let small: Vec<Bytes> =
            cases.map(|case| case.model).filter(|model| model.len() <= MOST_BYTES).collect();
        let mut archives: Vec<Archive> = small.iter().map(|model| Archive::parse(model)).collect();
        archives.push(Archive::read(&models::digits()));
        let texts =
            small.into_iter().step_by(TEXTS).filter_map(|model| emit(model, &options(), Emit::Graph).ok());
        // Constants that are not printed whole do not come back.
        let mut texts: Vec<String> = texts.filter(|text| !text.contains("...")).collect();
        texts.push(models::SCALED.to_owned());
        Corpus { archives, texts, onnx: onnx_models() }
    }

    /// The changed file of a seed, and what it was.
    pub(crate) fn mutant(&self, seed: u64) -> (Bytes, &'static str) {
        let mut rng = Rng::new(seed);
        if rng.one_in(3) {
            let model = &self.onnx[rng.below(self.onnx.len())];
            (wire::message(&mut rng, model).into(), "ONNX models")
        } else if rng.one_in(4) {
            let text = &self.texts[rng.below(self.texts.len())];
            (mutate::words(&mut rng, text).into_bytes().into(), "texts")
        } else {
            let archive = &self.archives[rng.below(self.archives.len())];
            (mutate::archive(&mut rng, archive).into(), "archives")
        }
    }
}

/// Models of this folder, and small ones of the conformance suite where there is one.
fn onnx_models() -> Vec<Vec<u8>> {
    let files = |folder: &Path, below: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path().join(below)).collect();
        files.sort();
        files
    };
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/nodes");
    let suite = std::env::var_os("AOTI_CONFORMANCE").map(|folder| PathBuf::from(folder).join("onnx"));
    let suite = suite.map(|folder| files(&folder, "model.onnx")).unwrap_or_default();
    let all = files(&own, "").into_iter().chain(suite).filter_map(|path| std::fs::read(path).ok());
    let all: Vec<Vec<u8>> = all.filter(|model| model.len() <= MOST_BYTES).collect();
    assert!(!all.is_empty(), "there are models to change");
    all
}

fn options() -> Options {
    Options::new("m", ["native"]).with_embedded_weights(false)
}

/// The sources of a changed file, where it still is a model.
pub(crate) fn compiled(file: Bytes) -> Option<SourceBundle> {
    compile(file, &options()).ok()
}

/// Compiles every seed's file.
pub(crate) fn compile_all(turn: &mut Turn, first: u64, count: u64) {
    let corpus = Corpus::new();
    for seed in first..first + count {
        let (file, kind) = corpus.mutant(seed);
        if let Some(folder) = std::env::var_os("AOTI_MUTANT_KEEP") {
            let path = PathBuf::from(folder).join(format!("{seed}.{kind}"));
            std::fs::write(path, &file).expect("the folder is there");
        }
        let bundle = turn.guarded(seed, || compiled(file));
        turn.count(&format!("{kind} tried"));
        if bundle.flatten().is_some() {
            turn.count(&format!("{kind} compiled"));
        }
    }
}
