//! The manifest of a cache entry and what two of them tell of each other.

use crate::action::{Key, KeyField, Subject};
use crate::fields::{read_fields, write_fields};
use crate::outputs::OutputFile;

/// What an entry holds and why it has its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The entry's key.
    pub key: Key,
    /// What it is, for people.
    pub label: String,
    /// Its target.
    pub target: String,
    /// The ingredients of the key, in order.
    pub fields: Vec<KeyField>,
    /// The files.
    pub outputs: Vec<ManifestOutput>,
}

read_fields!(Manifest { key, label, target, fields, outputs });
write_fields!(Manifest { key, label, target, fields, outputs });

impl Manifest {
    /// The manifest of what was made under a key.
    pub(crate) fn new(key: &Key, subject: &Subject<'_>, fields: &[KeyField], files: &[OutputFile]) -> Self {
        let outputs = files.iter().map(|file| ManifestOutput {
            name: file.name.clone(),
            digest: file.digest.clone(),
            bytes: file.bytes,
        });
        Manifest {
            key: key.clone(),
            label: subject.label.to_owned(),
            target: subject.target.as_str().to_owned(),
            fields: fields.to_vec(),
            outputs: outputs.collect(),
        }
    }

    /// Whether it is of this key and these outputs.
    pub(crate) fn is_of(&self, key: &Key, outputs: &[String]) -> bool {
        self.key == *key && self.outputs.iter().map(|output| &output.name).eq(outputs)
    }
}

/// One file of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestOutput {
    /// The name that the action has for it. On disk files are numbered, so that no name can leave the entry.
    pub name: String,
    /// BLAKE3 digest in hexadecimal digits.
    pub digest: String,
    /// Length.
    pub bytes: u64,
}

read_fields!(ManifestOutput { name, digest, bytes });
write_fields!(ManifestOutput { name, digest, bytes });

/// Why an action is, or would be, run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Miss {
    /// It is not a miss: the result is there.
    Hit,
    /// Nothing with this label and target was ever kept.
    NeverBuilt,
    /// The very same thing was kept and is gone or spoiled.
    Evicted,
    /// The last one with this label and target had another key.
    Changed(Vec<Difference>),
}

/// One ingredient that differs between two keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The ingredient: `arguments`, `tool`, `input kernel.cpp`, …
    pub field: String,
    /// Then: its text, or its digest if it is not short text; `None` if it was not there.
    pub before: Option<String>,
    /// Now.
    pub now: Option<String>,
}

/// The ingredients that differ, in the order of `now`, then those that are gone.
pub(crate) fn differences(before: &[KeyField], now: &[KeyField]) -> Vec<Difference> {
    let value = |field: &KeyField| field.text.clone().unwrap_or_else(|| field.digest.clone());
    let named = |fields: &[KeyField], name: &str| fields.iter().find(|field| field.name == name).cloned();
    let mut found = Vec::new();
    for field in now {
        let old = named(before, &field.name);
        if old.as_ref().map(|old| &old.digest) != Some(&field.digest) {
            let before = old.as_ref().map(value);
            found.push(Difference { field: field.name.clone(), before, now: Some(value(field)) });
        }
    }
    for field in before.iter().filter(|field| named(now, &field.name).is_none()) {
        found.push(Difference { field: field.name.clone(), before: Some(value(field)), now: None });
    }
    found
}
