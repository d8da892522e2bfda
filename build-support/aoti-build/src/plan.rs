//! Plans the native tools of one model: which actions make its library. Runs none of them.

use aoti_compiler::codegen::bundle::{DeviceUnit, SourceBundle, TranslationUnit};
use aoti_compiler::codegen::names::DIGITS;
use aoti_compiler::target::Vendor;
use aoti_toolchain::{
    Action, ArchiveJob, AssembleJob, CompileJob, Device, DeviceImage, DeviceJob, DevicePlan, FileContent,
    Input, Language, LinkJob, Mode, Outputs, Toolchain, embed_assembly,
};

use crate::error::Error;
use crate::model::{LinkKind, Model};

/// Bytes that the library holds: what they are called, as `weights.bin`, `weights.S` and `weights.o`, and in symbols.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Blob {
    /// The weights, where they are embedded.
    Weights,
    /// What preparing weights by name takes besides them.
    Fixed,
}

impl Blob {
    pub(crate) const ALL: [Blob; 2] = [Blob::Weights, Blob::Fixed];

    fn name(self) -> &'static str {
        match self {
            Blob::Weights => "weights",
            Blob::Fixed => "fixed",
        }
    }

    /// The file that the assembler reads.
    pub(crate) fn file(self) -> String {
        format!("{}.bin", self.name())
    }

    /// The file that tells it to.
    pub(crate) fn source(self) -> String {
        format!("{}.S", self.name())
    }

    fn object(self) -> String {
        format!("{}.o", self.name())
    }

    /// The name by which generated code of the model finds the bytes.
    fn symbol(self, model: &str) -> String {
        format!("aoti_{model}_{}", self.name())
    }

    /// All symbols of the object that holds the bytes.
    pub(crate) fn symbols(self, model: &str) -> [String; 3] {
        let symbol = self.symbol(model);
        [format!("{symbol}_digest"), format!("{symbol}_end"), symbol]
    }

    /// The assembler source that embeds the bytes, with their digest: the library tells that of the weights, and need not
    /// be compiled again for others.
    pub(crate) fn assembly(self, model: &str, digest: &str) -> String {
        let symbol = self.symbol(model);
        format!(
            "{}  .section .rodata.{symbol}_digest, \"a\", %progbits\n  .globl {symbol}_digest\n  .hidden {symbol}_digest\n\
             {symbol}_digest:\n  .asciz \"{digest}\"\n",
            embed_assembly(&symbol, &self.file())
        )
    }
}

/// Bundles keep headers here; sources include them without it.
const INCLUDE: &str = "include/";

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

/// The actions that make the objects; those for embedded bytes are the last.
pub(crate) fn objects(
    toolchain: &Toolchain,
    model: &Model,
    bundle: &SourceBundle,
    embedded: &[(Blob, FileContent)],
    mode: &Mode,
) -> Result<Vec<Action>, Error> {
    let headers = headers(bundle);
    let mut actions = Vec::new();
    for unit in &bundle.units {
        actions.push(toolchain.compile(compile_job(model, bundle, unit, &headers), mode)?);
    }
    for (blob, content) in embedded {
        actions.push(toolchain.assemble(AssembleJob {
            label: format!("{}: {}", model.name, blob.name()),
            source: Input::text(blob.source(), &blob.assembly(&bundle.symbol, content.digest())),
            files: vec![Input::file(blob.file(), content.clone())],
            output: blob.object(),
        }));
    }
    Ok(actions)
}

/// The device that a vendor's code is for.
pub(crate) fn device_of(vendor: Vendor) -> Device {
    match vendor {
        Vendor::Nvidia => Device::Cuda,
        Vendor::Amd => Device::Rocm,
    }
}

/// What makes the code for a vendor's GPUs.
pub(crate) fn device_code(
    toolchain: &Toolchain,
    model: &Model,
    bundle: &SourceBundle,
    unit: &DeviceUnit,
    mode: &Mode,
) -> Result<DevicePlan, Error> {
    let device = device_of(unit.vendor).as_str();
    let job = DeviceJob {
        label: format!("{}: {device} kernels", model.name),
        source: Input::text(&unit.source, source(bundle, &unit.source)),
        headers: headers(bundle),
        architectures: unit.architectures.clone(),
        portable: true,
        defines: Vec::new(),
        extra: Vec::new(),
        output: device.to_owned(),
    };
    Ok(toolchain.device_code(&job, mode)?)
}

/// Name of the object with the code for a vendor's GPUs.
pub(crate) fn code_object(unit: &DeviceUnit) -> String {
    format!("{}_code.o", device_of(unit.vendor).as_str())
}

/// The action that makes an object of the code for a vendor's GPUs.
pub(crate) fn embedded_code(
    toolchain: &Toolchain,
    model: &Model,
    unit: &DeviceUnit,
    image: &DeviceImage,
) -> Action {
    let device = device_of(unit.vendor).as_str();
    let file = format!("{device}.bin");
    toolchain.assemble(AssembleJob {
        label: format!("{}: {device} code", model.name),
        source: Input::text(format!("{device}_code.S"), &embed_assembly(&unit.symbol, &file)),
        files: vec![Input::bytes(file, image.packed())],
        output: code_object(unit),
    })
}

/// What a library is made of.
pub(crate) struct Objects<'a> {
    /// What the last of `objects` hold as bytes.
    pub(crate) embedded: &'a [Blob],
    /// What the actions of [`objects`] made.
    pub(crate) objects: &'a [Outputs],
    /// What those of [`embedded_code`] made.
    pub(crate) codes: &'a [Outputs],
}

/// The action that makes the library.
pub(crate) fn library(
    toolchain: &Toolchain,
    model: &Model,
    bundle: &SourceBundle,
    made: &Objects<'_>,
    mode: &Mode,
) -> Result<Action, Error> {
    let label = format!("{}: library", model.name);
    let output = library_name(&bundle.symbol, model.link);
    let units = bundle.units.iter().map(|unit| unit.object.clone());
    let names = units.chain(made.embedded.iter().map(|blob| blob.object()));
    let codes = bundle.devices.iter().map(code_object).zip(made.codes);
    let inputs = names.zip(made.objects).chain(codes).map(|(name, made)| made.as_input(&name));
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
    let is_unit = |name: &str| {
        bundle.units.iter().any(|unit| unit.source == name)
            || bundle.devices.iter().any(|unit| unit.source == name)
    };
    let headers = bundle.files.iter().filter(|file| !is_unit(&file.name));
    headers
        .map(|file| Input::text(file.name.strip_prefix(INCLUDE).unwrap_or(&file.name), &file.text))
        .collect()
}

/// The text of a source.
fn source<'b>(bundle: &'b SourceBundle, name: &str) -> &'b str {
    let found = bundle.files.iter().find(|file| file.name == name);
    found.map_or("#error the bundle lacks this source\n", |file| file.text.as_str())
}

fn compile_job(
    model: &Model,
    bundle: &SourceBundle,
    unit: &TranslationUnit,
    headers: &[Input],
) -> CompileJob {
    let define = |(name, value): &(String, String)| match value.as_str() {
        "" => name.clone(),
        value => format!("{name}={value}"),
    };
    CompileJob {
        label: format!("{}: {}", model.name, unit.object),
        language: Language::Cpp,
        source: Input::text(&unit.source, source(bundle, &unit.source)),
        headers: headers.to_vec(),
        level: unit.level.clone(),
        defines: unit.defines.iter().map(define).collect(),
        extra: Vec::new(),
        output: unit.object.clone(),
    }
}
