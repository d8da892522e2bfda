//! Plans the native tools of one model: which actions make its library. Runs none of them.

use aoti_compiler::codegen::bundle::{SourceBundle, TranslationUnit};
use aoti_compiler::codegen::names::DIGITS;
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

/// The name by which generated code of the model finds embedded weights.
fn weights_symbol(model: &str) -> String {
    format!("aoti_{model}_weights")
}

/// All symbols of the object that holds the weights.
pub(crate) fn weights_symbols(model: &str) -> [String; 3] {
    let symbol = weights_symbol(model);
    [format!("{symbol}_digest"), format!("{symbol}_end"), symbol]
}

/// The assembler source that embeds the weights, with their digest: the library tells it, and need not be compiled again
/// for other weights.
pub(crate) fn weights_assembly(model: &str, digest: &str) -> String {
    let symbol = weights_symbol(model);
    format!(
        "{}  .section .rodata.{symbol}_digest, \"a\", %progbits\n  .globl {symbol}_digest\n  .hidden {symbol}_digest\n\
         {symbol}_digest:\n  .asciz \"{digest}\"\n",
        embed_assembly(&symbol, WEIGHTS)
    )
}

/// File name of the library.
pub(crate) fn library_name(symbol: &str, link: LinkKind) -> String {
    match link {
        LinkKind::Static => format!("libaoti_{symbol}.a"),
        LinkKind::Dylib => format!("libaoti_{symbol}.so"),
    }
}

/// Whether this is the name of a library of the model with this identifier, of any version of its package.
pub(crate) fn is_library_of(identifier: &str, name: &str) -> bool {
    let Some(rest) = name.strip_prefix("libaoti_").and_then(|name| name.strip_prefix(identifier)) else {
        return false;
    };
    let Some(suffix) = rest.strip_suffix(".a").or_else(|| rest.strip_suffix(".so")) else { return false };
    let digest = suffix.strip_prefix('_');
    let is_digest = |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    suffix.is_empty() || digest.is_some_and(is_digest)
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
            source: Input::text("weights.S", &weights_assembly(&bundle.symbol, weights.digest())),
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
    let output = library_name(&bundle.symbol, model.link);
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
