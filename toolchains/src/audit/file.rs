//! What the audit wants to know of a file, whatever its format.

use std::collections::BTreeSet;

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{BinaryFormat, Object, ObjectKind, ObjectSection, ObjectSymbol, SymbolFlags, SymbolKind};

use super::{AuditError, wasm};
use crate::target::ObjectFormat;

/// An object, a shared library or a program. Names are those of C.
pub(super) struct File {
    pub(super) format: ObjectFormat,
    /// Whether it is linked with others.
    pub(super) is_object: bool,
    /// What it refers to and does not define.
    pub(super) undefined: BTreeSet<String>,
    /// Of an object: what others that are linked with it find.
    pub(super) defined: BTreeSet<String>,
    /// What others find, outside of the library that an object becomes part of.
    pub(super) exported: BTreeSet<String>,
    /// Libraries, in the order in which they are named.
    pub(super) needed: Vec<String>,
    pub(super) has_executable_stack: bool,
}

fn unreadable(error: object::Error) -> AuditError {
    AuditError::Unreadable(error.to_string())
}

impl File {
    pub(super) fn read(bytes: &[u8]) -> Result<File, AuditError> {
        if bytes.starts_with(wasm::MAGIC) {
            let module = wasm::read(bytes);
            let damaged = || AuditError::Unreadable("a damaged module of WebAssembly".to_owned());
            return module.map(File::of_module).ok_or_else(damaged);
        }
        let file = object::File::parse(bytes).map_err(unreadable)?;
        // Headers of COFF are of 32 bits, whatever the code is of.
        if file.architecture().address_size() != Some(object::AddressSize::U64) {
            return Err(AuditError::Unreadable(
                "it is not for a processor with addresses of 64 bits".to_owned(),
            ));
        }
        let format = match file.format() {
            BinaryFormat::Elf => ObjectFormat::Elf,
            BinaryFormat::Coff | BinaryFormat::Pe => ObjectFormat::Coff,
            BinaryFormat::MachO => ObjectFormat::MachO,
            other @ (BinaryFormat::Wasm | BinaryFormat::Xcoff | _) => {
                return Err(AuditError::Unreadable(format!("it has the format {other:?}")));
            }
        };
        let is_object = file.kind() == ObjectKind::Relocatable;
        let mut made = File {
            format,
            is_object,
            undefined: BTreeSet::new(),
            defined: BTreeSet::new(),
            exported: BTreeSet::new(),
            needed: Vec::new(),
            has_executable_stack: false,
        };
        made.add_symbols(&file);
        match format {
            ObjectFormat::Elf => {
                let file = ElfFile64::parse(bytes).map_err(unreadable)?;
                (made.needed, made.has_executable_stack) =
                    (needed_by_elf(&file)?, has_executable_stack(&file)?);
            }
            _ if is_object => {}
            ObjectFormat::Coff | ObjectFormat::MachO | ObjectFormat::Wasm => made.add_dependencies(&file)?,
        }
        Ok(made)
    }

    fn of_module(module: wasm::Module) -> File {
        let (is_object, imported) = (module.is_object, module.imported);
        let visible = module.defined.iter().filter(|(_, is_hidden)| !is_hidden).map(|(name, _)| name.clone());
        File {
            format: ObjectFormat::Wasm,
            is_object,
            exported: if is_object { visible.collect() } else { module.exported.into_iter().collect() },
            undefined: if is_object { module.undefined } else { imported }.into_iter().collect(),
            defined: module.defined.into_iter().map(|(name, _)| name).collect(),
            needed: Vec::new(),
            has_executable_stack: false,
        }
    }

    /// The static table of an object, the dynamic one of anything linked: the other may have been stripped.
    fn add_symbols(&mut self, file: &object::File<'_>) {
        let symbols = if self.is_object { file.symbols() } else { file.dynamic_symbols() };
        for symbol in symbols {
            let Ok(name) = symbol.name() else { continue };
            if name.is_empty() || matches!(symbol.kind(), SymbolKind::Section | SymbolKind::File) {
                continue;
            }
            let name = plain(self.format, name);
            if symbol.is_undefined() {
                self.undefined.insert(name);
            } else if symbol.is_global() && (symbol.is_definition() || symbol.is_common() || symbol.is_weak())
            {
                if is_visible(symbol.flags()) {
                    self.exported.insert(name.clone());
                }
                self.defined.insert(name);
            }
        }
    }

    /// What tables of imports and exports say, where there are such.
    fn add_dependencies(&mut self, file: &object::File<'_>) -> Result<(), AuditError> {
        for import in file.imports().map_err(unreadable)? {
            let library = String::from_utf8_lossy(import.library()).into_owned();
            if !library.is_empty() && !self.needed.contains(&library) {
                self.needed.push(library);
            }
            self.undefined.insert(plain(self.format, &String::from_utf8_lossy(import.name())));
        }
        let exports = file.exports().map_err(unreadable)?;
        self.exported = exports
            .iter()
            .map(|export| plain(self.format, &String::from_utf8_lossy(export.name())))
            .filter(|name| !name.is_empty())
            .collect();
        Ok(())
    }
}

/// The name of a symbol in C.
fn plain(format: ObjectFormat, name: &str) -> String {
    name.strip_prefix(format.symbol_prefix()).unwrap_or(name).to_owned()
}

/// Whether others find a global symbol; where flags do not say so, hidden ones are not global.
fn is_visible<S, N>(flags: SymbolFlags<S, N>) -> bool {
    let SymbolFlags::Elf { st_other, .. } = flags else { return true };
    let visibility = st_other & 3;
    visibility == elf::STV_DEFAULT || visibility == elf::STV_PROTECTED
}

fn needed_by_elf(file: &ElfFile64<'_>) -> Result<Vec<String>, AuditError> {
    let (endian, data) = (file.endian(), file.data());
    let sections = file.elf_header().sections(endian, data).map_err(unreadable)?;
    let Some((dynamic, strings)) = sections.dynamic(endian, data).map_err(unreadable)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, data, strings).map_err(unreadable)?;
    let mut needed = Vec::new();
    for entry in dynamic.iter().filter(|entry| entry.tag32(endian) == Some(elf::DT_NEEDED)) {
        let name = entry.string(endian, strings).map_err(unreadable)?;
        needed.push(String::from_utf8_lossy(name).into_owned());
    }
    Ok(needed)
}

pub(super) fn needed_versions(bytes: &[u8]) -> Result<Vec<(String, String)>, AuditError> {
    if File::read(bytes)?.format != ObjectFormat::Elf {
        return Ok(Vec::new());
    }
    let file: ElfFile64<'_> = ElfFile64::parse(bytes).map_err(unreadable)?;
    let (endian, data) = (file.endian(), file.data());
    let sections = file.elf_header().sections(endian, data).map_err(unreadable)?;
    let Some((needs, link)) = sections.gnu_verneed(endian, data).map_err(unreadable)? else {
        return Ok(Vec::new());
    };
    let strings = sections.strings(endian, data, link).map_err(unreadable)?;
    let mut found = BTreeSet::new();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    for need in needs {
        let (need, versions) = need.map_err(unreadable)?;
        let library = text(need.file(endian, strings).map_err(unreadable)?);
        for version in versions {
            let name = version.and_then(|version| version.name(endian, strings)).map_err(unreadable)?;
            found.insert((library.clone(), text(name)));
        }
    }
    Ok(found.into_iter().collect())
}

/// What a loader or linker takes the stack to be: executable, unless the file says otherwise.
fn has_executable_stack(file: &ElfFile64<'_>) -> Result<bool, AuditError> {
    let (endian, data) = (file.endian(), file.data());
    if file.kind() == ObjectKind::Relocatable {
        let note = file.section_by_name(".note.GNU-stack");
        let is_data = |flags| matches!(flags, object::SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_EXECINSTR) == 0);
        return Ok(!note.is_some_and(|note| is_data(note.flags())));
    }
    let headers = file.elf_header().program_headers(endian, data).map_err(unreadable)?;
    let stack = headers.iter().find(|header| header.p_type(endian) == elf::PT_GNU_STACK);
    Ok(stack.is_none_or(|stack| stack.p_flags(endian) & elf::PF_X != 0))
}
