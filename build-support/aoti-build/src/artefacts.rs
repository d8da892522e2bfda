//! What a build has made: the record that callers get and `manifest.json`.

use std::path::PathBuf;

use aoti_compiler::{json_fields, to_json};

/// One file that was made.
#[derive(Clone, PartialEq, Eq, Debug)]
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

json_fields!(Artefact { kind, path, bytes, digest });

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
#[derive(Debug)]
pub(crate) struct ManifestFile {
    pub(crate) name: String,
    pub(crate) identifier: String,
    pub(crate) symbol: String,
    pub(crate) compiler: String,
    pub(crate) model_digest: String,
    pub(crate) target: String,
    pub(crate) levels: Vec<String>,
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

to_json!(ManifestFile {
    name,
    identifier,
    symbol,
    compiler,
    model_digest,
    target,
    levels,
    toolchain,
    kernels,
    weights_bytes,
    state_bytes,
    inputs,
    outputs,
    devices,
    files,
});

#[derive(Debug)]
pub(crate) struct ToolchainEntry {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) identity: String,
}

to_json!(ToolchainEntry { name, version, identity });

#[derive(Debug)]
pub(crate) struct ValueEntry {
    pub(crate) name: String,
    pub(crate) dtype: String,
    pub(crate) sizes: Vec<String>,
}

to_json!(ValueEntry { name, dtype, sizes });

#[derive(Debug)]
pub(crate) struct DeviceEntry {
    pub(crate) device: &'static str,
    pub(crate) architecture: String,
    pub(crate) form: &'static str,
    pub(crate) bytes: u64,
}

to_json!(DeviceEntry { device, architecture, form, bytes });

#[derive(Debug)]
pub(crate) struct FileEntry {
    pub(crate) kind: String,
    pub(crate) file: String,
    pub(crate) bytes: u64,
    pub(crate) digest: String,
}

to_json!(FileEntry { kind, file, bytes, digest });
