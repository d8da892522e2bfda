//! Plans the native tools of one model: which actions make its library. Runs none of them.

use aoti_compiler::codegen::bundle::{SourceBundle, TranslationUnit};
use aoti_toolchain::{
    Action, ArchiveJob, AssembleJob, CompileJob, FileContent, Input, Language, LinkJob, Mode, Outputs,
    Toolchain, embed_assembly,
};

use crate::error::Error;
use crate::model::{LinkKind, Model};

/// Name of the weights file that the assembler reads.
pub(crate) const WEIGHTS: &str = "weights.bin";
const WEIGHTS_OBJECT: &str = "weights.o";
/// Bundles keep headers here; sources include them without it.
const INCLUDE: &str = "include/";

/// The function by which generated code finds embedded weights.
pub(crate) fn weights_symbol(identifier: &str) -> String {
    format!("aoti_{identifier}_weights")
}

/// The assembler source that embeds the weights.
pub(crate) fn weights_assembly(identifier: &str) -> String {
    embed_assembly(&weights_symbol(identifier), WEIGHTS)
}

/// File name of the library.
pub(crate) fn library_name(identifier: &str, link: LinkKind) -> String {
    match link {
        LinkKind::Static => format!("libaoti_{identifier}.a"),
        LinkKind::Dylib => format!("libaoti_{identifier}.so"),
    }
}

/// The actions that make the objects; the one for the weights, if they are embedded, is the last.
pub(crate) fn objects(
    toolchain: &Toolchain,
    model: &Model,
    bundle: &SourceBundle,
    embedded: Option<FileContent>,
    mode: &Mode,
) -> Result<Vec<Action>, Error> {
    let headers = headers(bundle);
    let mut actions = Vec::new();
    for unit in &bundle.units {
        actions.push(toolchain.compile(compile_job(model, bundle, unit, &headers), mode)?);
    }
    if let Some(weights) = embedded {
        actions.push(toolchain.assemble(AssembleJob {
            label: format!("{}: weights", model.name),
            source: Input::text("weights.S", &weights_assembly(&bundle.identifier)),
            files: vec![Input::file(WEIGHTS, weights)],
            output: WEIGHTS_OBJECT.to_owned(),
        }));
    }
    Ok(actions)
}

/// The action that makes the library from what the actions of [`objects`] made.
pub(crate) fn library(
    toolchain: &Toolchain,
    model: &Model,
    bundle: &SourceBundle,
    objects: &[Outputs],
    mode: &Mode,
) -> Result<Action, Error> {
    let label = format!("{}: library", model.name);
    let output = library_name(&bundle.identifier, model.link);
    let names = bundle.units.iter().map(|unit| unit.object.as_str()).chain([WEIGHTS_OBJECT]);
    let inputs = names.zip(objects).map(|(name, made)| made.as_input(name));
    let objects = inputs
        .collect::<Result<Vec<_>, _>>()
        .map_err(|source| aoti_toolchain::Error::Input { label: label.clone(), source })?;
    Ok(match model.link {
        LinkKind::Static => toolchain.archive(ArchiveJob { label, objects, output })?,
        LinkKind::Dylib => {
            let exports = vec![bundle.exported_symbol()];
            toolchain.link_shared(LinkJob { label, objects, exports, extra: Vec::new(), output }, mode)
        }
    })
}

/// Everything that a unit may include, shared by all units.
fn headers(bundle: &SourceBundle) -> Vec<Input> {
    let is_unit = |name: &str| bundle.units.iter().any(|unit| unit.source == name);
    let headers = bundle.files.iter().filter(|file| !is_unit(&file.name));
    headers
        .map(|file| Input::text(file.name.strip_prefix(INCLUDE).unwrap_or(&file.name), &file.text))
        .collect()
}

fn compile_job(
    model: &Model,
    bundle: &SourceBundle,
    unit: &TranslationUnit,
    headers: &[Input],
) -> CompileJob {
    let source = bundle.files.iter().find(|file| file.name == unit.source);
    let text = source.map_or("#error the bundle lacks this source\n", |file| file.text.as_str());
    let define = |(name, value): &(String, String)| match value.as_str() {
        "" => name.clone(),
        value => format!("{name}={value}"),
    };
    CompileJob {
        label: format!("{}: {}", model.name, unit.object),
        language: Language::Cpp,
        source: Input::text(&unit.source, text),
        headers: headers.to_vec(),
        level: unit.level.clone(),
        defines: unit.defines.iter().map(define).collect(),
        extra: Vec::new(),
        output: unit.object.clone(),
    }
}
