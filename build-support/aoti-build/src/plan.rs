//! Plans the native tools of one model: which actions make its library. Runs none of them.

use std::path::{Path, PathBuf};

use aoti_compiler::codegen;
use aoti_compiler::codegen::bundle::{self, CalledFunction, DeviceUnit, SourceBundle, TranslationUnit};
use aoti_compiler::diagnostic::{Code, Diagnostic, Diagnostics};
use aoti_compiler::graph::Origin;
use aoti_compiler::names::DIGITS;
use aoti_compiler::target::Vendor;
use aoti_toolchain::{
    Action, ArchiveJob, AssembleJob, CompileJob, Device, DeviceImage, DeviceJob, DevicePlan, FileContent,
    Goal, Input, Language, LinkJob, Mode, Outputs, Platform, Target, Toolchain, embed_assembly, embed_text,
};

use crate::error::Error;
use crate::model::{LinkKind, Model};
use crate::operators::{Operator, OperatorCode, headers_beside};

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
    pub(crate) fn assembly(self, target: &Target, model: &str, digest: &str) -> String {
        let (symbol, format) = (self.symbol(model), target.platform().format);
        let text = embed_text(format, &format!("{symbol}_digest"), digest);
        format!("{}{text}", embed_assembly(format, &symbol, &self.file()))
    }
}

/// Bundles keep headers here; sources include them without it.
const INCLUDE: &str = "include/";

/// File name of the library; none of a kind that the target does not have.
pub(crate) fn library_name(target: &Target, symbol: &str, link: LinkKind) -> Option<String> {
    match link {
        LinkKind::Static => Some(static_library_name(target, symbol)),
        LinkKind::Dylib => target.platform().shared_library(&stem_of(symbol)),
    }
}

pub(crate) fn static_library_name(target: &Target, symbol: &str) -> String {
    target.platform().static_library(&stem_of(symbol))
}

fn stem_of(symbol: &str) -> String {
    format!("aoti_{symbol}")
}

/// Whether this is the name of a library of the model with this identifier, for any target and of any version of its package.
pub(crate) fn is_library_of(identifier: &str, name: &str) -> bool {
    let stem = Platform::stem_of_library(name).and_then(|stem| stem.strip_prefix("aoti_"));
    let Some(suffix) = stem.and_then(|stem| stem.strip_prefix(identifier)) else { return false };
    let digest = suffix.strip_prefix('_');
    let is_digest = |text: &str| text.len() == DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    suffix.is_empty() || digest.is_some_and(is_digest)
}

/// The actions that make the objects; those for embedded bytes are the last.
pub(crate) fn objects(
    toolchain: &Toolchain,
    model: &Model,
    bundle: &SourceBundle,
    (sources, embedded): (&[OperatorSource], &[(Blob, FileContent)]),
    mode: &Mode,
) -> Result<Vec<Action>, Error> {
    let headers = headers(bundle);
    let mut actions = Vec::new();
    for unit in &bundle.units {
        actions.push(toolchain.compile(compile_job(model, bundle, unit, &headers), mode)?);
    }
    for source in sources {
        actions.push(toolchain.compile(source.compile_job(model, &headers)?, mode)?);
    }
    for (blob, content) in embedded {
        actions.push(toolchain.assemble(AssembleJob {
            label: format!("{}: {}", model.name, blob.name()),
            source: Input::text(
                blob.source(),
                &blob.assembly(&toolchain.target, &bundle.symbol, content.digest()),
            ),
            files: vec![Input::file(blob.file(), content.clone())],
            output: blob.object(),
        }));
    }
    Ok(actions)
}

/// A file of the project that defines functions which a library calls.
pub(crate) struct OperatorSource {
    path: PathBuf,
    /// The place among those of the library, which names its object.
    number: usize,
    prototypes: Vec<String>,
}

impl OperatorSource {
    fn object(&self) -> String {
        format!("operators_{}.o", self.number)
    }

    /// The file stands behind the declarations of its functions, so that one of another type does not compile.
    fn compile_job(&self, model: &Model, headers: &[Input]) -> Result<CompileJob, Error> {
        let label = format!("{}: {}", model.name, self.path.display());
        let failed = |source| aoti_toolchain::Error::Input { label: label.clone(), source };
        let named = |path: &Path| -> Result<Input, Error> {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            Ok(Input::file(format!("operators/{name}"), FileContent::read(path).map_err(failed)?))
        };
        let mut own = headers.to_vec();
        own.push(named(&self.path)?);
        for header in headers_beside(&self.path) {
            own.push(named(&header)?);
        }
        let (declared, file) = (self.prototypes.concat(), self.path.file_name().unwrap_or_default());
        let text = format!(
            "#include \"aoti/operator.h\"\n\nextern \"C\" {{\n{declared}}}\n\n#include \"operators/{}\"\n",
            file.to_string_lossy()
        );
        let source = Input::text(format!("operators_{}.cpp", self.number), &text);
        Ok(CompileJob {
            label: label.clone(),
            language: Language::Cpp,
            source,
            headers: own,
            level: None,
            goal: Goal::Speed,
            defines: Vec::new(),
            extra: Vec::new(),
            output: self.object(),
        })
    }
}

/// The files of the project that define functions which a library calls, each once.
pub(crate) fn operator_sources(model: &Model, bundle: &SourceBundle) -> Result<Vec<OperatorSource>, Error> {
    let mut sources: Vec<OperatorSource> = Vec::new();
    for called in &bundle.functions {
        let Some(path) = source_of(model, &called.operator) else { continue };
        if sources.iter().any(|source| source.path == *path) {
            continue;
        }
        let is_here = |operator: &&Operator| operator.file() == Some(path);
        let operators = model.operators.iter().filter(is_here).map(Operator::read);
        let operators = operators.collect::<Result<Vec<_>, _>>()?;
        let prototypes = codegen::prototypes(&operators).map_err(|diagnostics| Error::Model {
            name: model.name.clone(),
            path: model.path.clone(),
            diagnostics,
        })?;
        sources.push(OperatorSource { path: path.to_owned(), number: sources.len(), prototypes });
    }
    Ok(sources)
}

/// The symbol of the function that computes an operator, as the manifest has it.
fn symbol_of<'m>(model: &'m Model, operator: &str) -> Option<&'m str> {
    let declared = model.operators.iter().find(|declared| declared.name == operator);
    match &declared?.code {
        OperatorCode::Function { symbol, .. } => Some(symbol),
        OperatorCode::Graph(_) => None,
    }
}

/// The file that defines the function of an operator, which may be said of another one with this function.
fn source_of<'m>(model: &'m Model, operator: &str) -> Option<&'m Path> {
    let symbol = symbol_of(model, operator)?;
    model.operators.iter().find_map(|operator| match &operator.code {
        OperatorCode::Function { symbol: own, source, .. } if own == symbol => source.as_deref(),
        OperatorCode::Function { .. } | OperatorCode::Graph(_) => None,
    })
}

/// The functions that a library calls and does not have: the program that it is linked into has them.
pub(crate) fn missing_functions<'b>(
    model: &'b Model,
    bundle: &'b SourceBundle,
) -> impl Iterator<Item = &'b CalledFunction> {
    bundle.functions.iter().filter(|called| source_of(model, &called.operator).is_none())
}

/// Refuses a library that nobody links and that calls functions which it does not have.
pub(crate) fn check_functions(model: &Model, bundle: &SourceBundle) -> Result<(), Error> {
    if model.link == LinkKind::Static {
        return Ok(());
    }
    let finding = |called: &CalledFunction| {
        let CalledFunction { operator, source, .. } = called;
        let symbol = symbol_of(model, operator).unwrap_or_default();
        let message = format!("no definition found for `{symbol}`, the function of operator `{operator}`");
        let help = format!(
            "name the C++ file that does: `source = \"...\"` in `[package.metadata.aoti.operators.\"{operator}\"]`; functions \
             that your program defines can be used only by static libraries, which are linked into it"
        );
        let origin = Origin { source: source.clone(), ..Origin::default() };
        Diagnostic::new(Code::Operator, message).at(&origin).help(help)
    };
    let findings: Vec<Diagnostic> = missing_functions(model, bundle).map(finding).collect();
    if findings.is_empty() {
        return Ok(());
    }
    let diagnostics = Diagnostics(findings);
    Err(Error::Model { name: model.name.clone(), path: model.path.clone(), diagnostics })
}

/// The device that a vendor's code is for.
pub(crate) fn device_of(vendor: Vendor) -> Device {
    Device::from_name(vendor.device()).expect("there are toolchains for what the compiler has code for")
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
        source: Input::text(
            format!("{device}_code.S"),
            &embed_assembly(toolchain.target.platform().format, &unit.symbol, &file),
        ),
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
    let Some(output) = library_name(&toolchain.target, &bundle.symbol, model.link) else {
        return Err(aoti_toolchain::Error::NoSharedLibraries { target: toolchain.target.to_string() }.into());
    };
    let units = bundle.units.iter().map(|unit| unit.object.clone());
    let own = operator_sources(model, bundle)?;
    let names = units
        .chain(own.iter().map(OperatorSource::object))
        .chain(made.embedded.iter().map(|blob| blob.object()));
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
        goal: match unit.goal {
            bundle::Goal::Speed => Goal::Speed,
            bundle::Goal::Size => Goal::Size,
        },
        defines: unit.defines.iter().map(define).collect(),
        extra: Vec::new(),
        output: unit.object.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::device_of;
    use aoti_compiler::target::{GpuTarget, Vendor};
    use aoti_toolchain::gpu_architectures;

    #[test]
    fn whatever_toolchains_may_make_code_for_the_compiler_knows() {
        for vendor in Vendor::ALL {
            for architecture in gpu_architectures(device_of(vendor)) {
                let known = GpuTarget::named(&architecture.to_string());
                assert_eq!(known.map(|target| target.vendor), Some(vendor), "{architecture}");
            }
        }
    }

    /// What `gpu/device.h` says of an architecture of AMD's: the branch that holds for what its compilers define.
    fn units_of_header(architecture: &str) -> &'static str {
        const HEADER: &str = include_str!("../../aoti-compiler/include/aoti/gpu/device.h");
        let (_, chain) = HEADER.split_once("#define AOTI_NVIDIA 0\n").expect("it asks which of AMD's it is");
        let family = format!("__GFX{}__", &architecture[3..architecture.len() - 2]);
        let own = format!("__{architecture}__");
        let is_defined = |term: &str| {
            let name =
                term.trim().trim_start_matches('!').trim_start_matches("defined(").trim_end_matches(')');
            (name == own || name == family) != term.trim().starts_with('!')
        };
        let holds = |condition: &str| condition.split("||").any(|all| all.split("&&").all(is_defined));
        let mut lines = chain.lines();
        while let Some(line) = lines.next() {
            let branch = line.strip_prefix("#if ").or_else(|| line.strip_prefix("#elif "));
            if branch.map_or(line == "#else", holds) {
                let units = lines.next().and_then(|line| line.strip_prefix("#define AOTI_UNITS "));
                return units.expect("each branch says which units there are");
            }
        }
        unreachable!("the last branch holds for all others")
    }

    #[test]
    fn matrix_units_are_those_that_device_code_is_made_for() {
        for vendor in Vendor::ALL {
            for architecture in gpu_architectures(device_of(vendor)) {
                let own = GpuTarget::named(&architecture.to_string()).and_then(|target| target.matrix_units);
                let own = own.map_or("0", |units| units.name);
                let header = match architecture.base() {
                    amd if amd.starts_with("gfx") => units_of_header(&amd),
                    // All of NVIDIA's have the same, and templates for some.
                    _ if own == "0" => "0",
                    _ => "AOTI_MMA",
                };
                assert_eq!(own, header, "{architecture}");
            }
        }
    }
}
