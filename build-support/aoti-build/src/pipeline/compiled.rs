//! Caches the compiler's output for a model like the output of native tools: in a build script, which is not optimised,
//! the compiler takes as long as they do.
//!
//! It follows from the model's bytes, the options and the compiler's sources, and from nothing else.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

use aoti_compiler::codegen::bundle::{
    CalledFunction, DeviceUnit, ProgramInterface, SourceBundle, SourceFile, TranslationUnit, WeightsBlob,
};
use aoti_compiler::codegen::interface::Interface;
use aoti_compiler::compile::Options;
use aoti_compiler::frontend::ModelFile;
use aoti_compiler::json::{FromJson, Malformed, ToJson, Value, only_entry};
use aoti_compiler::json_fields;
use aoti_toolchain::{Event, Events, Outputs, Work, is_plain_file_name, is_plain_name};
use bytes::Bytes;

use crate::error::Error;
use crate::files::{self, file_error};
use crate::progress::{Forward, Progress};
use crate::session::{Job, Session};

/// Weights of more bytes than this, beyond those that lie in the model file as they are, are rather made again than kept.
const MOST_BYTES: u64 = 256 << 20;

const RECORD: &str = "record.json";
const TEXTS: &str = "texts";
const BYTES: &str = "bytes";

/// A bundle without its texts and weights.
struct Record {
    interface: Interface,
    programs: Vec<ProgramInterface>,
    identifier: String,
    symbol: String,
    library: String,
    /// Names of files with the lengths of their texts, which lie one after the other.
    files: Vec<(String, usize)>,
    units: Vec<TranslationUnit>,
    devices: Vec<DeviceUnit>,
    functions: Vec<CalledFunction>,
    kernels: usize,
    weights: Blob,
    fixed: Blob,
}

json_fields!(Record {
    interface,
    programs,
    identifier,
    symbol,
    library,
    files,
    units,
    devices,
    functions,
    kernels,
    weights,
    fixed
});

struct Blob {
    segments: Vec<(u64, Place)>,
    bytes: u64,
}

json_fields!(Blob { segments, bytes });

/// Where the bytes of a segment are.
enum Place {
    /// In a file of the model: which of them, and where.
    Model(usize, Range<usize>),
    Kept(Range<usize>),
}

impl FromJson for Place {
    fn from_json(value: Value) -> Result<Place, Malformed> {
        let (file, range) = only_entry(value, "Place")?;
        if file == "model" {
            let (number, range) = FromJson::from_json(range)?;
            return Ok(Place::Model(number, range));
        }
        let range = FromJson::from_json(range)?;
        match file.as_str() {
            "kept" => Ok(Place::Kept(range)),
            _ => Err(Malformed::new(format!("there is no place `{file}`"))),
        }
    }
}

impl ToJson for Place {
    fn to_json(&self) -> Value {
        match self {
            Place::Model(number, range) => Value::from_iter([("model", (*number, range.clone()).to_json())]),
            Place::Kept(range) => Value::from_iter([("kept", range.to_json())]),
        }
    }
}

/// Why there is nothing to keep.
enum Unkept {
    Failed(Error),
    TooLarge(Box<SourceBundle>),
}

impl From<aoti_toolchain::Error> for Unkept {
    fn from(error: aoti_toolchain::Error) -> Unkept {
        Unkept::Failed(error.into())
    }
}

impl Session {
    /// Compiles a model, or takes what was kept of an earlier time.
    pub(super) fn compiled(
        &self,
        job: &Job,
        (model, digest): (&ModelFile, &str),
        options: &Options,
        progress: &dyn Progress,
    ) -> Result<SourceBundle, Error> {
        let bytes = model.contents();
        let bytes = bytes.as_slice();
        let compile = || {
            (self.compiler)(model.clone(), options).map_err(|diagnostics| Error::Model {
                name: job.model.name.clone(),
                path: job.model.path.clone(),
                diagnostics,
            })
        };
        if !self.executor.has_store() {
            return compile();
        }
        let work = Work {
            label: format!("{}: source code", job.model.name),
            target: self.target.clone(),
            ingredients: vec![
                ("compiler", crate::VERSION.to_owned()),
                ("options", format!("{options:?}")),
                ("model", digest.to_owned()),
            ],
            outputs: [RECORD, TEXTS, BYTES].map(str::to_owned).to_vec(),
        };
        let made = RefCell::new(None);
        let kept = self.executor.keep(&work, &Forward(progress), |folder| {
            let bundle = compile().map_err(Unkept::Failed)?;
            let (record, kept) = Record::of(&bundle, bytes);
            if kept.iter().map(|part| part.len() as u64).sum::<u64>() > MOST_BYTES {
                return Err(Unkept::TooLarge(Box::new(bundle)));
            }
            record.write(folder, &bundle, &kept).map_err(Unkept::Failed)?;
            *made.borrow_mut() = Some(bundle);
            Ok(())
        });
        match (made.into_inner(), kept) {
            (_, Err(Unkept::Failed(error))) => Err(error),
            (_, Err(Unkept::TooLarge(bundle))) => Ok(*bundle),
            (Some(bundle), Ok(_)) => Ok(bundle),
            (None, Ok(outputs)) => match read(&outputs, bytes) {
                Some(bundle) => Ok(bundle),
                None => self.compiled_again(&work, bytes, progress, &compile),
            },
        }
    }

    /// Compiles a model of which something else was kept than this program keeps, and keeps that instead. Whoever else writes
    /// to the cache can have put it there.
    fn compiled_again(
        &self,
        work: &Work,
        bytes: &[&Bytes],
        progress: &dyn Progress,
        compile: &dyn Fn() -> Result<SourceBundle, Error>,
    ) -> Result<SourceBundle, Error> {
        let message = "cached source code was not what this program keeps, and is made again";
        Forward(progress).event(&Event::Warning { label: &work.label, message });
        let bundle = compile()?;
        let (record, kept) = Record::of(&bundle, bytes);
        self.executor.replace(work, &Forward(progress), |folder| record.write(folder, &bundle, &kept))?;
        Ok(bundle)
    }
}

impl Record {
    /// The record of a bundle, and the bytes that are to be kept beside it.
    fn of(bundle: &SourceBundle, model: &[&Bytes]) -> (Record, Vec<Bytes>) {
        let mut kept = Vec::new();
        let mut length = 0;
        let mut blob = |blob: &WeightsBlob| {
            let place = |(offset, bytes): &(u64, Bytes)| {
                let place = within(bytes, model).map_or_else(
                    || {
                        let range = length..length + bytes.len();
                        length = range.end;
                        kept.push(bytes.clone());
                        Place::Kept(range)
                    },
                    |(number, range)| Place::Model(number, range),
                );
                (*offset, place)
            };
            Blob { segments: blob.segments.iter().map(place).collect(), bytes: blob.bytes }
        };
        let (weights, fixed) = (blob(&bundle.weights), blob(&bundle.fixed));
        let record = Record {
            interface: bundle.interface.clone(),
            programs: bundle.programs.clone(),
            identifier: bundle.identifier.clone(),
            symbol: bundle.symbol.clone(),
            library: bundle.library.clone(),
            files: bundle.files.iter().map(|file| (file.name.clone(), file.text.len())).collect(),
            units: bundle.units.clone(),
            devices: bundle.devices.clone(),
            functions: bundle.functions.clone(),
            kernels: bundle.kernels,
            weights,
            fixed,
        };
        (record, kept)
    }

    fn write(&self, folder: &Path, bundle: &SourceBundle, kept: &[Bytes]) -> Result<(), Error> {
        let parts = |name: &str, parts: &mut dyn Iterator<Item = &[u8]>| {
            let path = folder.join(name);
            files::write_parts(&path, parts).map_err(file_error("write", &path))
        };
        let record = self.to_json().to_string();
        parts(RECORD, &mut [record.as_bytes()].into_iter())?;
        parts(TEXTS, &mut bundle.files.iter().map(|file| file.text.as_bytes()))?;
        parts(BYTES, &mut kept.iter().map(Bytes::as_ref))
    }

    /// The bundle, if all of it is there.
    fn bundle(self, texts: &str, model: &[&Bytes], kept: &Bytes) -> Option<SourceBundle> {
        let mut at = 0usize;
        let mut files = Vec::with_capacity(self.files.len());
        for (name, length) in self.files {
            let text = texts.get(at..at.checked_add(length)?)?.to_owned();
            at += length;
            files.push(SourceFile { name, text });
        }
        let slice = |of: &Bytes, range: Range<usize>| {
            (range.start <= range.end && range.end <= of.len()).then(|| of.slice(range))
        };
        let blob = |blob: Blob| {
            let segments = blob.segments.into_iter().map(|(offset, place)| {
                let bytes = match place {
                    Place::Model(number, range) => slice(model.get(number)?, range),
                    Place::Kept(range) => slice(kept, range),
                };
                Some((offset, bytes?))
            });
            Some(WeightsBlob { segments: segments.collect::<Option<_>>()?, bytes: blob.bytes })
        };
        let bundle = SourceBundle {
            interface: self.interface,
            programs: self.programs,
            identifier: self.identifier,
            symbol: self.symbol,
            library: self.library,
            files,
            units: self.units,
            devices: self.devices,
            functions: self.functions,
            kernels: self.kernels,
            weights: blob(self.weights)?,
            fixed: blob(self.fixed)?,
        };
        is_sound(&bundle).then_some(bundle)
    }
}

/// Whether the names and places of a bundle are such as the compiler gives: files of a folder, each once, symbols of C, segments
/// in ascending order. Names become paths and arguments of tools, so those of a spoiled record must go nowhere.
fn is_sound(bundle: &SourceBundle) -> bool {
    let mut files = BTreeSet::new();
    // On some systems, names that differ by case are one.
    let has_names =
        bundle.files.iter().all(|file| is_plain_name(&file.name) && files.insert(file.name.to_lowercase()));
    let has = |source: &String| files.contains(&source.to_lowercase());
    let units = bundle.units.iter().all(|unit| {
        let defines = unit.defines.iter().all(|(name, _)| is_symbol(name));
        has(&unit.source) && is_plain_name(&unit.object) && defines
    });
    let devices = bundle.devices.iter().all(|unit| has(&unit.source) && is_symbol(&unit.symbol));
    let functions = bundle.functions.iter().all(|called| is_symbol(&called.symbol));
    let own = is_symbol(&bundle.symbol) && is_plain_file_name(&bundle.identifier);
    let blobs = [&bundle.weights, &bundle.fixed].into_iter().all(ascends);
    has_names && units && devices && functions && own && blobs
}

fn is_symbol(name: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    !name.is_empty() && !name.starts_with(|c: char| c.is_ascii_digit()) && name.chars().all(is_word)
}

/// Whether segments follow one another and end before the blob does.
fn ascends(blob: &WeightsBlob) -> bool {
    let end = blob.segments.iter().try_fold(0u64, |at, (offset, bytes)| {
        offset.checked_add(bytes.len() as u64).filter(|_| at <= *offset)
    });
    end.is_some_and(|end| end <= blob.bytes)
}

fn read(outputs: &Outputs, model: &[&Bytes]) -> Option<SourceBundle> {
    let file = |name| files::map(&outputs.file(name)?.path).ok();
    let (record, texts, kept) = (file(RECORD)?, file(TEXTS)?, file(BYTES)?);
    let record = Record::from_json(serde_json::from_slice(&record).ok()?).ok()?;
    record.bundle(std::str::from_utf8(&texts).ok()?, model, &kept)
}

/// Which of some files `part` is a part of, and where it lies there.
fn within(part: &Bytes, files: &[&Bytes]) -> Option<(usize, Range<usize>)> {
    files.iter().enumerate().find_map(|(number, whole)| Some((number, range_within(part, whole)?)))
}

fn range_within(part: &Bytes, whole: &Bytes) -> Option<Range<usize>> {
    let begin = (part.as_ptr() as usize).checked_sub(whole.as_ptr() as usize)?;
    (begin + part.len() <= whole.len()).then(|| begin..begin + part.len())
}
