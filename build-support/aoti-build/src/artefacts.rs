//! What a build has made: the record that callers get and `manifest.json`.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// One file that was made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Artefact {
    /// What it is: `library`, `bindings`, `header`, `weights`.
    pub kind: String,
    /// Where it is.
    pub path: PathBuf,
    /// Length in bytes.
    pub bytes: u64,
    /// BLAKE3 digest, hexadecimal.
    pub digest: String,
}

/// One built model.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Built {
    /// Its name.
    pub name: String,
    /// Its identifier.
    pub identifier: String,
    /// The function that the library exports.
    pub symbol: String,
    /// The files, in a fixed order of kinds.
    pub artefacts: Vec<Artefact>,
    /// Nothing had to be done.
    pub fresh: bool,
    /// Wall time that its last real build took, in milliseconds.
    pub compile_ms: u64,
    /// Native tools that ran (and were not found in the cache) for this build.
    pub tools_run: usize,
}

impl Built {
    /// The file of this kind.
    pub fn artefact(&self, kind: &str) -> Option<&Artefact> {
        self.artefacts.iter().find(|artefact| artefact.kind == kind)
    }

    /// The library.
    pub fn library(&self) -> Option<&Artefact> {
        self.artefact("library")
    }
}

/// `manifest.json`: says what the artefacts are, for people and other tools. Equal builds write equal bytes.
#[derive(Serialize, Debug)]
pub(crate) struct ManifestFile<'a> {
    pub(crate) name: &'a str,
    pub(crate) identifier: &'a str,
    pub(crate) symbol: String,
    pub(crate) compiler: &'a str,
    pub(crate) model_digest: &'a str,
    pub(crate) target: &'a str,
    pub(crate) levels: &'a [String],
    pub(crate) toolchain: Option<ToolchainEntry>,
    pub(crate) kernels: usize,
    pub(crate) weights_bytes: u64,
    pub(crate) state_bytes: u64,
    pub(crate) inputs: Vec<ValueEntry>,
    pub(crate) outputs: Vec<ValueEntry>,
    /// Code for GPUs, by architecture.
    pub(crate) devices: Vec<DeviceEntry>,
    pub(crate) files: Vec<FileEntry>,
}

#[derive(Serialize, Debug)]
pub(crate) struct ToolchainEntry {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) identity: String,
}

#[derive(Serialize, Debug)]
pub(crate) struct ValueEntry {
    pub(crate) name: String,
    pub(crate) dtype: String,
    pub(crate) sizes: Vec<String>,
}

#[derive(Serialize, Debug)]
pub(crate) struct DeviceEntry {
    pub(crate) device: &'static str,
    pub(crate) architecture: String,
    pub(crate) form: &'static str,
    pub(crate) bytes: u64,
}

#[derive(Serialize, Debug)]
pub(crate) struct FileEntry {
    pub(crate) kind: String,
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) digest: String,
}
