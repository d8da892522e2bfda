//! Caches what a probe found, so that a second build neither starts a process nor hashes a 30 MB compiler.
//!
//! A record is good as long as every file that it was drawn from has the same size, times and inode. Losing the
//! cache, or failing to write it, costs time only.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

use crate::beneath;
use crate::fields::{read_fields, write_fields};
use crate::probe::Facts;
use crate::system;
use crate::temporary::FileAside;

/// Longer records are not of ours.
const LONGEST_RECORD: u64 = 1 << 20;
/// The folder of records in a cache.
const FOLDER: &str = "probes-v2";

/// What tells that a file is still the same one, without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified_nanos: u64,
    /// Inode and time of its last change; zero where the system has none.
    inode: u64,
    changed_nanos: i64,
}

read_fields!(Stamp { path, bytes, modified_nanos, inode, changed_nanos });
write_fields!(Stamp { path, bytes, modified_nanos, inode, changed_nanos });

impl Stamp {
    /// The stamp of the file that this path leads to, links resolved.
    pub(crate) fn of(path: &Path) -> Option<Stamp> {
        let path = std::fs::canonicalize(path).ok()?;
        let metadata = std::fs::metadata(&path).ok()?;
        let modified = metadata.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let (inode, changed_nanos) = system::identity(&metadata);
        Some(Stamp {
            path,
            bytes: metadata.len(),
            modified_nanos: u64::try_from(modified.as_nanos()).ok()?,
            inode,
            changed_nanos,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn still_holds(&self) -> bool {
        Stamp::of(&self.path).as_ref() == Some(self)
    }
}

#[derive(Debug, Clone)]
struct Record {
    question: String,
    stamps: Vec<Stamp>,
    facts: Facts,
}

read_fields!(Record { question, stamps, facts });
write_fields!(Record { question, stamps, facts });

/// A folder of probe records, and the memory of this process for when there is no folder.
#[derive(Debug, Clone)]
pub(crate) struct ProbeCache {
    root: Option<PathBuf>,
    memory: Arc<Mutex<BTreeMap<String, Record>>>,
}

impl ProbeCache {
    pub(crate) fn new(cache: Option<&Path>) -> Self {
        ProbeCache { root: cache.map(Path::to_owned), memory: Arc::default() }
    }

    /// The facts recorded for this question, if all files they were drawn from are unchanged.
    pub(crate) fn get(&self, question: &str) -> Option<Facts> {
        let remembered = self.memory().get(question).cloned();
        let record = remembered.or_else(|| {
            let text = beneath::read_file(&self.file(question)?, LONGEST_RECORD).ok()?;
            serde_json::from_slice::<Record>(&text).ok()
        })?;
        let good = record.question == question && record.stamps.iter().all(Stamp::still_holds);
        if !good {
            self.memory().remove(question);
            return None;
        }
        self.memory().insert(question.to_owned(), record.clone());
        Some(record.facts)
    }

    /// Records an answer. Failure is silent: the next build asks again.
    pub(crate) fn put(&self, question: &str, stamps: Vec<Stamp>, facts: &Facts) {
        let record = Record { question: question.to_owned(), stamps, facts: facts.clone() };
        self.memory().insert(question.to_owned(), record.clone());
        let Some(file) = self.file(question) else { return };
        let Some(root) = &self.root else { return };
        let Ok(text) = serde_json::to_vec_pretty(&record) else { return };
        let write = || -> std::io::Result<()> {
            let mut aside = FileAside::new_in(&beneath::make_folder(root, FOLDER)?)?;
            aside.file().write_all(&text)?;
            aside.persist(&file)
        };
        // A probe without a record is only slower.
        let _ = write();
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<String, Record>> {
        // A map of whole records is sound whatever a panicking thread was doing.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn file(&self, question: &str) -> Option<PathBuf> {
        let name = blake3::hash(question.as_bytes()).to_hex();
        Some(self.root.as_ref()?.join(FOLDER).join(format!("{name}.json")))
    }
}
