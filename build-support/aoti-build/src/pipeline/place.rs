//! Puts what the compiler and the tools made into its place, and proves the library sound first.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aoti_compiler::codegen::bindings::{self, Link, WeightsPlacement};
use aoti_compiler::codegen::bundle::DeviceUnit;
use aoti_compiler::codegen::interface::ValueInterface;
use aoti_compiler::diagnostic::{Code, Diagnostic};
use aoti_compiler::json::ToJson;
use aoti_toolchain::audit::{self, Allow};
use aoti_toolchain::{DeviceImage, FileContent, Mode, Outputs};

use super::{Passing, is_embedded};
use crate::artefacts::{Artefact, DeviceEntry, FileEntry, ManifestFile, ToolchainEntry, ValueEntry};
use crate::error::Error;
use crate::files;
use crate::model::{LinkKind, Weights};
use crate::plan::{self, Blob};
use crate::samples;
use crate::session::Session;

/// What the linker can place beside code that reaches it by 32-bit offsets, with room for the code.
const MAX_EMBEDDED: u64 = 2_000_000_000;

/// Writes sources, header, weights and Rust module, and prepares what is to be embedded.
pub(super) fn sources(passing: &mut Passing<'_>, session: &Session) -> Result<(), Error> {
    let folder = passing.job.layout.sources();
    for file in &passing.bundle.files {
        passing.placed.push(files::write_beneath(&folder, &file.name, file.text.as_bytes())?);
    }
    let identifier = passing.bundle.identifier.clone();
    let placement = weights(passing, session)?;
    if passing.bundle.fixed.bytes > 0 {
        embed(passing, session, Blob::Fixed)?;
    }
    let weights_digest = passing
        .embedded
        .iter()
        .find(|(blob, _)| *blob == Blob::Weights)
        .map(|(_, content)| content.digest().to_owned());
    let model = &passing.job.model;
    let of_interface = |own| samples::of_interface(own, &passing.bundle.interface, !model.cpu);
    let samples = model.samples.as_ref().and_then(of_interface);
    let link = link(passing, session);
    let options = bindings::Options { weights: placement, link, weights_digest, samples };
    let module = passing.bundle.bindings(&options);
    write(passing, "bindings", passing.job.layout.bindings(&identifier), module.as_bytes())?;
    let text = passing.bundle.header();
    write(passing, "header", passing.job.layout.header(&identifier), text.as_bytes())
}

/// Writes bytes that go into the library, and what tells the assembler so.
fn embed(passing: &mut Passing<'_>, session: &Session, blob: Blob) -> Result<(), Error> {
    let content = match blob {
        Blob::Weights => &passing.bundle.weights,
        Blob::Fixed => &passing.bundle.fixed,
    };
    if content.bytes > MAX_EMBEDDED {
        return Err(too_large(passing, content.bytes));
    }
    if session.settings.bindings_only {
        return Ok(());
    }
    let folder = passing.job.layout.sources();
    let (path, assembly) = (folder.join(blob.file()), folder.join(blob.source()));
    let digest = files::weights_digest(content);
    files::write_weights(&path, content, &digest)?;
    files::write(&assembly, blob.assembly(session.target(), &passing.bundle.symbol, &digest).as_bytes())?;
    let content = FileContent::with_digest(&path, &digest).map_err(|source| {
        aoti_toolchain::Error::Input { label: format!("{}: weights", passing.job.model.name), source }
    })?;
    passing.placed.extend([path, assembly]);
    passing.embedded.push((blob, content));
    Ok(())
}

fn too_large(passing: &Passing<'_>, bytes: u64) -> Error {
    let model = &passing.job.model;
    let message = format!("the weights have {bytes} bytes; a library holds at most {MAX_EMBEDDED}");
    let help = format!("say `weights = \"sidecar\"` or `weights = \"external\"` for `{}`", model.name);
    let diagnostics = Diagnostic::new(Code::Weights, message).help(help).into();
    Error::Model { name: model.name.clone(), path: model.path.clone(), diagnostics }
}

fn weights(passing: &mut Passing<'_>, session: &Session) -> Result<WeightsPlacement, Error> {
    if is_embedded(passing) {
        embed(passing, session, Blob::Weights)?;
        return Ok(WeightsPlacement::Embedded);
    }
    let layout = &passing.job.layout;
    let (identifier, blob) = (&passing.bundle.identifier, &passing.bundle.weights);
    let digest = files::weights_digest(blob);
    let file = match passing.job.model.weights {
        Weights::Sidecar => format!("{identifier}-{}.weights.bin", &digest[..16]),
        Weights::Embed | Weights::External => format!("{identifier}.weights.bin"),
    };
    let path = layout.weights.join(&file);
    let bytes = blob.bytes;
    if !session.settings.bindings_only {
        files::write_weights(&path, blob, &digest)?;
        passing.artefacts.push(Artefact { kind: "weights".to_owned(), path, bytes, digest: digest.clone() });
    }
    Ok(match passing.job.model.weights {
        Weights::Sidecar => WeightsPlacement::Sidecar { file, digest },
        Weights::Embed | Weights::External => WeightsPlacement::External,
    })
}

/// Proves that the library needs nothing beyond libc, libm and libgcc.
pub(super) fn audit(passing: &Passing<'_>, library: &Outputs, mode: &Mode) -> Result<(), Error> {
    let sanitizers = !mode.sanitize.is_empty();
    if passing.job.model.link == LinkKind::Dylib {
        let bytes = library.first().read()?;
        let allow = Allow { sanitizers, ..Allow::default() };
        return Ok(audit::audit(&bytes, &allow).map_err(aoti_toolchain::Error::Audit)?);
    }
    // The objects of embedded bytes and of code for GPUs are large and refer to nothing.
    let of_operators = plan::operator_sources(&passing.job.model, &passing.bundle)?.len();
    let units = passing.objects.iter().take(passing.bundle.units.len() + of_operators);
    let objects = units.map(|object| object.first().read()).collect::<Result<Vec<_>, _>>()?;
    let symbols = Blob::ALL.iter().flat_map(|blob| blob.symbols(&passing.bundle.symbol));
    let codes = passing.bundle.devices.iter().map(|unit| unit.symbol.clone());
    let functions = plan::missing_functions(&passing.job.model, &passing.bundle);
    let functions = functions.map(|called| called.symbol.clone());
    let allow = Allow { sanitizers, ..Allow::symbols(symbols.chain(codes).chain(functions)) };
    let objects: Vec<&[u8]> = objects.iter().map(Vec::as_slice).collect();
    Ok(audit::audit_objects(&objects, &allow).map_err(aoti_toolchain::Error::Audit)?)
}

/// Puts the library in place.
pub(super) fn library(passing: &mut Passing<'_>, library: &Outputs) -> Result<(), Error> {
    let file = library.first();
    let path = passing.job.layout.public.join(&file.name);
    file.copy_to(&path)?;
    let artefact =
        Artefact { kind: "library".to_owned(), path, bytes: file.bytes, digest: file.digest.clone() };
    passing.artefacts.insert(0, artefact);
    Ok(())
}

/// Writes `manifest.json`.
pub(super) fn manifest(passing: &mut Passing<'_>, session: &Session) -> Result<(), Error> {
    let path = passing.job.layout.manifest();
    passing.placed.push(path.clone());
    let Passing { job, recipe, model, bundle, artefacts, images, .. } = passing;
    let toolchain =
        if session.settings.bindings_only { None } else { Some(session.toolchain_of(&job.model)?) };
    let file = |artefact: &Artefact| FileEntry {
        kind: artefact.kind.clone(),
        file: artefact.path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        bytes: artefact.bytes,
        digest: artefact.digest.clone(),
    };
    let manifest = ManifestFile {
        name: job.model.name.clone(),
        identifier: bundle.identifier.clone(),
        symbol: bundle.exported_symbol(),
        compiler: recipe.version.clone(),
        model_digest: model.digest.clone(),
        target: recipe.target.clone(),
        levels: recipe.levels.clone(),
        toolchain: toolchain.map(|toolchain| ToolchainEntry {
            name: toolchain.name().to_owned(),
            version: toolchain.compiler.version.clone(),
            identity: toolchain.compiler.identity.as_str().to_owned(),
        }),
        kernels: bundle.kernels,
        weights_bytes: bundle.weights.bytes,
        state_bytes: bundle.interface.state_bytes,
        inputs: bundle.interface.inputs.iter().map(value).collect(),
        outputs: bundle.interface.outputs.iter().map(value).collect(),
        devices: images.iter().zip(&bundle.devices).flat_map(device_entries).collect(),
        files: artefacts.iter().map(file).collect(),
    };
    let text = format!("{:#}", manifest.to_json());
    files::write(&path, text.as_bytes()).map(drop)
}

/// Removes what an earlier build left and this one did not make: sources of kernels that are gone, a library of the other
/// kind, weights of another content. What cannot be removed does no harm.
pub(super) fn remove_stale(passing: &Passing<'_>) {
    let layout = &passing.job.layout;
    let folder = layout.sources();
    let mut kept: BTreeSet<PathBuf> =
        passing.bundle.files.iter().map(|file| folder.join(&file.name)).collect();
    for (blob, _) in &passing.embedded {
        kept.extend([folder.join(blob.file()), folder.join(blob.source())]);
    }
    for path in walk(&folder) {
        if !kept.contains(&path) {
            let _ = files::remove(&path);
        }
    }
    let identifier = &passing.bundle.identifier;
    let is_ours = |name: &str| {
        let is_library = plan::is_library_of(identifier, name);
        let rest = name.strip_prefix(identifier.as_str()).and_then(|rest| rest.strip_suffix("weights.bin"));
        is_library || rest.is_some_and(|rest| rest == "." || is_digest(rest))
    };
    let Ok(listing) = std::fs::read_dir(&layout.public) else { return };
    for path in listing.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_ours(&name) && !passing.artefacts.iter().any(|artefact| artefact.path == path) {
            let _ = files::remove(&path);
        }
    }
}

/// Whether this is the middle of a sidecar's name.
fn is_digest(text: &str) -> bool {
    let digits = text.strip_prefix('-').and_then(|text| text.strip_suffix('.'));
    digits.is_some_and(|digits| digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// All that lies below a folder and is not a folder; a link is itself, not what it leads to.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = std::fs::read_dir(folder) else { return Vec::new() };
    let is_folder = |entry: &std::fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    let below = |entry: std::fs::DirEntry| {
        if is_folder(&entry) { walk(&entry.path()) } else { vec![entry.path()] }
    };
    listing.flatten().flat_map(below).collect()
}

fn write(passing: &mut Passing<'_>, kind: &str, path: PathBuf, content: &[u8]) -> Result<(), Error> {
    files::write(&path, content)?;
    let (bytes, digest) = (content.len() as u64, blake3::hash(content).to_hex().to_string());
    passing.artefacts.push(Artefact { kind: kind.to_owned(), path, bytes, digest });
    Ok(())
}

fn link(passing: &Passing<'_>, session: &Session) -> Link {
    match passing.job.model.link {
        _ if session.settings.bindings_only => Link::Absent,
        _ if session.settings.links_elsewhere => Link::Elsewhere,
        LinkKind::Static => Link::Static,
        LinkKind::Dylib => Link::Dylib,
    }
}

/// The parts of the code for a vendor's GPUs.
fn device_entries<'a>(
    (image, unit): (&'a DeviceImage, &DeviceUnit),
) -> impl Iterator<Item = DeviceEntry> + use<'a> {
    let device = plan::device_of(unit.vendor).as_str();
    image.parts.iter().map(move |part| DeviceEntry {
        device,
        architecture: part.architecture.to_string(),
        form: part.form.as_str(),
        bytes: part.content.len() as u64,
    })
}

fn value(value: &ValueInterface) -> ValueEntry {
    let size = |dim: &aoti_compiler::codegen::interface::DimInterface| {
        dim.expression.clone().unwrap_or_else(|| dim.min.to_string())
    };
    ValueEntry {
        name: value.name.clone(),
        dtype: value.element.name(),
        sizes: value.dims.iter().map(size).collect(),
    }
}
