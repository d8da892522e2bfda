//! `package`: libraries of a model for all targets, with what belongs to them, in one archive. Equal builds make equal bytes.

mod archive;
mod entry;
mod sbom;

use std::path::{Path, PathBuf};

use aoti_build::{Built, Job, Layout, LinkKind, Model, Session, Settings};
use aoti_toolchain::{Target, TemporaryFolder, audit, temporary_folder};
use clap::Args;
use serde_json::{Value, json};

use super::vendor::files::{LICENSES, cargo_toml};
use super::{Context, tell};
use crate::arguments::Output;
use crate::code::{Code, check_portable};
use crate::failure::Failure;
use crate::progress::Shown;
use crate::project::{Selection, shown};
use crate::timings::Timings;
use archive::Archive;
use entry::{File, minimum_driver, minimum_glibc};

/// Builds a model for one or more targets and writes one archive (.tar.zst) with libraries, C header, Rust crate, a manifest with
/// digests and requirements, a software bill of materials (SPDX) and licences. Equal builds make equal bytes
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// The model's file, or the name of a model of the project, whose manifest then says what code is made
    model: PathBuf,
    /// The archive
    archive: PathBuf,
    /// Build for this target; may be repeated; by default this machine
    #[arg(long, value_name = "TRIPLE")]
    target: Vec<String>,
    /// Licence of the model's weights, as an SPDX expression
    #[arg(long, value_name = "SPDX", default_value = "NOASSERTION")]
    license: String,
    #[command(flatten, next_help_heading = "Code")]
    code: Code,
    #[command(flatten)]
    selection: Selection,
    #[command(flatten)]
    pub(crate) output: Output,
}

/// What there is for one target.
struct Part {
    built: Built,
    /// Its entry in the manifest.
    entry: Value,
    /// The compilers.
    tools: Vec<(String, String)>,
}

pub(crate) fn run(arguments: &Arguments, context: &Context) -> Result<(), Failure> {
    let model = arguments.code.model(&arguments.model, &arguments.selection, context)?;
    check_portable(&model)?;
    let place = context.environment.temporary_directory();
    let folder = temporary_folder("model", &context.environment)
        .map_err(Failure::machine("make a folder in", &place))?;
    let mut targets = arguments.target.clone();
    targets.sort();
    targets.dedup();
    if targets.is_empty() {
        targets.push(context.environment.host().to_string());
    }
    let progress = Shown::new(context.terminal);
    let timings = Timings::new(&progress);
    let mut parts = Vec::new();
    for target in &targets {
        let settings = Settings { target: Some(Target::new(target)), ..Settings::default() };
        let session = Session::new(&context.environment, settings)?;
        parts.push(part(&session, &model, &folder.path().join(target), &timings)?);
    }
    progress.finish();
    let path = context.environment.directory().join(&arguments.archive);
    let bytes = write(arguments, &model, &parts, &folder, &path)?;
    let object =
        json!({ "archive": arguments.archive, "model": model.name, "bytes": bytes, "targets": targets });
    tell(arguments.output, context, "Packaged", &shown(&arguments.archive, context), object);
    Ok(())
}

/// Builds a model for a session's target, and finds out what its library needs.
fn part(session: &Session, model: &Model, folder: &Path, timings: &Timings<'_>) -> Result<Part, Failure> {
    let build = |model: &Model, folder: PathBuf| {
        let job = Job { model: model.clone(), layout: Layout::flat(folder), incremental: false };
        session.build(&[job], timings).remove(0)
    };
    let built = build(model, folder.join("made"))?;
    // A static library says nothing of versions of the C library; what its shared twin needs here, its programs need.
    let shared = match model.link {
        LinkKind::Dylib => Some(built.clone()),
        LinkKind::Static => {
            let twin = model.clone().link(LinkKind::Dylib);
            build(&twin, folder.join("shared")).ok()
        }
    };
    let library = shared.as_ref().and_then(Built::library);
    let glibc = match library {
        Some(library) => {
            let bytes = fs_err::read(&library.path).map_err(Failure::machine("read", &library.path))?;
            let versions = audit::needed_versions(&bytes).map_err(aoti_toolchain::Error::Audit)?;
            minimum_glibc(&versions)
        }
        None => None,
    };
    let toolchains = session.toolchains_of(model)?;
    let tools: Vec<(String, String)> = toolchains
        .iter()
        .map(|toolchain| (toolchain.name().to_owned(), toolchain.compiler.version.clone()))
        .collect();
    let drivers: Vec<Value> = toolchains.iter().filter_map(|toolchain| minimum_driver(toolchain)).collect();
    let path = folder.join("made/manifest.json");
    let text = fs_err::read_to_string(&path).map_err(Failure::machine("read", &path))?;
    let mut entry: Value = serde_json::from_str(&text).unwrap_or_default();
    let toolchains = toolchains.iter().map(|toolchain| {
        let compiler = &toolchain.compiler;
        json!({ "name": toolchain.name(), "version": compiler.version, "identity": compiler.identity.as_str() })
    });
    entry["toolchains"] = toolchains.collect();
    entry["weights"] = weights(&built, &folder.join("made/src/weights.bin"))?;
    entry["minimum"] = json!({ "glibc": glibc, "drivers": drivers });
    if let Some(entry) = entry.as_object_mut() {
        entry.remove("toolchain");
    }
    Ok(Part { built, entry, tools })
}

/// Digest and length of the weights: of their file, else of what the library has inside.
fn weights(built: &Built, embedded: &Path) -> Result<Value, Failure> {
    let file = built.artefact("weights").map(|artefact| artefact.path.as_path());
    let Some(path) = file.or_else(|| embedded.is_file().then_some(embedded)) else { return Ok(Value::Null) };
    let file = File::at("", path)?;
    Ok(json!({ "bytes": file.bytes, "sha256": file.sha256, "embedded": path == embedded }))
}

/// Writes the archive, and gives its length.
fn write(
    arguments: &Arguments,
    model: &Model,
    parts: &[Part],
    folder: &TemporaryFolder,
    path: &Path,
) -> Result<u64, Failure> {
    let identifier = model.identifier();
    let mut files = vec![
        File::text("Cargo.toml", &cargo_toml(&identifier)),
        File::text("build.rs", BUILD_SCRIPT),
        File::text(
            "src/lib.rs",
            &format!("//! The compiled model `{identifier}`.\n\ninclude!(env!(\"AOTI_MODULE\"));\n"),
        ),
    ];
    files.extend(LICENSES.map(|(name, text)| File::text(name, text)));
    for part in parts {
        files.extend(of_part(part)?);
    }
    files.sort();
    files.dedup_by(|a, b| a.name == b.name);
    let source = File::at("", &model.path)?;
    let manifest = json!({
        "format": 1,
        "name": model.name,
        "identifier": identifier,
        "compiler": format!("cargo-aoti {}", env!("CARGO_PKG_VERSION")),
        "license": arguments.license,
        "model": {
            "file": model.path.file_name().map(|name| name.to_string_lossy()),
            "bytes": source.bytes, "sha256": source.sha256,
        },
        "targets": parts.iter().map(|part| part.entry.clone()).collect::<Vec<_>>(),
        "files": files.iter().map(|file| {
            json!({ "path": file.name, "bytes": file.bytes, "sha256": file.sha256 })
        }).collect::<Vec<_>>(),
    });
    let tools = parts.iter().flat_map(|part| part.tools.clone()).collect();
    let sbom = sbom::document(model, &source, &arguments.license, &files, tools);
    let pretty = |value: &Value| format!("{value:#}\n");
    files.push(File::text("manifest.json", &pretty(&manifest)));
    files.push(File::text("sbom.spdx.json", &pretty(&sbom)));
    files.sort();
    Archive::write(&identifier, &files, &folder.path().join("package.tar"), path)
}

/// The files of one target: library, weights and module in a folder of its own, header and interface for all.
fn of_part(part: &Part) -> Result<Vec<File>, Failure> {
    let target = part.entry["target"].as_str().unwrap_or_default();
    let mut files = Vec::new();
    for artefact in &part.built.artefacts {
        let name = artefact.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = match artefact.kind.as_str() {
            "bindings" => format!("lib/{target}/model.rs"),
            "header" => format!("include/{name}"),
            _ => format!("lib/{target}/{name}"),
        };
        files.push(File::at(&name, &artefact.path)?);
    }
    let folder = part.built.artefact("header").and_then(|header| header.path.parent());
    let interface = folder.unwrap_or(Path::new("")).join("src/include/aoti/abi.h");
    files.push(File::at("include/aoti/abi.h", &interface)?);
    Ok(files)
}

const BUILD_SCRIPT: &str = r#"//! Says where the library of the target is.

use std::path::Path;

fn main() {
    let variable = |name: &str| std::env::var(name).expect("cargo sets it");
    let target = variable("TARGET");
    let folder = Path::new(&variable("CARGO_MANIFEST_DIR")).join("lib").join(&target);
    assert!(folder.is_dir(), "this package has no library for `{target}`; the folder `lib` has those that there are");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rustc-link-search=native={}", folder.display());
    println!("cargo::rustc-env=AOTI_MODULE={}", folder.join("model.rs").display());
}
"#;
