//! Proves that what was compiled and linked needs nothing beyond libc, libm and libgcc.
//!
//! Reads ELF files; other formats are refused, not believed. Input may be damaged: errors, never panics.

use std::collections::BTreeSet;
use std::fmt;

use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

mod permitted;

/// Why a file fails the audit.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AuditError {
    /// It refers to symbols that neither it nor libc, libm and libgcc define.
    Symbols {
        /// The symbols, sorted.
        symbols: Vec<String>,
    },
    /// It needs libraries other than libc, libm and libgcc.
    Libraries {
        /// The libraries, in the order in which they are named.
        libraries: Vec<String>,
    },
    /// It asks for a stack from which code can be run, or does not say that it needs none: the whole process would get one.
    ExecutableStack,
    /// It is not a 64-bit ELF file, or a damaged one.
    Unreadable(String),
}

impl fmt::Display for AuditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AuditError::Symbols { symbols } => {
                write!(f, "undefined symbols outside libc, libm and libgcc: `{}`", symbols.join("`, `"))
            }
            AuditError::Libraries { libraries } => {
                write!(f, "needs libraries outside libc, libm and libgcc: `{}`", libraries.join("`, `"))
            }
            AuditError::ExecutableStack => f.write_str("asks for an executable stack"),
            AuditError::Unreadable(inner) => write!(f, "cannot be read as an ELF file: {inner}"),
        }
    }
}

impl std::error::Error for AuditError {}

/// What is allowed beyond the permitted names.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Allow {
    /// Further symbols.
    pub symbols: BTreeSet<String>,
    /// Runtimes of sanitizers, symbols and libraries.
    pub sanitizers: bool,
}

impl Allow {
    /// These symbols too.
    pub fn symbols<S: Into<String>>(symbols: impl IntoIterator<Item = S>) -> Self {
        Allow { symbols: symbols.into_iter().map(Into::into).collect(), sanitizers: false }
    }

    fn permits(&self, symbol: &str) -> bool {
        permitted::is_permitted(symbol)
            || self.symbols.contains(symbol)
            || (self.sanitizers && permitted::is_of_sanitizer(symbol))
    }
}

/// Names that a file refers to and does not define, sorted. Weak references count.
///
/// # Errors
/// [`AuditError::Unreadable`].
pub fn undefined_symbols(bytes: &[u8]) -> Result<Vec<String>, AuditError> {
    let file = parse(bytes)?;
    let wanted = all_symbols(&file).filter(|symbol| symbol.is_undefined());
    Ok(sorted(wanted))
}

/// Names that a file offers to others, sorted: of a shared library those in its dynamic table, of an object its global
/// ones that are not hidden.
///
/// # Errors
/// [`AuditError::Unreadable`].
pub fn exported_symbols(bytes: &[u8]) -> Result<Vec<String>, AuditError> {
    let file = parse(bytes)?;
    let offered = all_symbols(&file).filter(|symbol| {
        let object::SymbolFlags::Elf { st_other, .. } = symbol.flags() else { return false };
        let visibility = st_other & 3;
        let is_visible = visibility == elf::STV_DEFAULT || visibility == elf::STV_PROTECTED;
        symbol.is_definition() && symbol.is_global() && is_visible
    });
    Ok(sorted(offered))
}

/// The libraries that a shared library or executable asks for (`DT_NEEDED`), in order.
///
/// # Errors
/// [`AuditError::Unreadable`].
pub fn needed_libraries(bytes: &[u8]) -> Result<Vec<String>, AuditError> {
    let file = parse(bytes)?;
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

/// The versions of symbols that a shared library or executable asks of others (`libm.so.6`, `GLIBC_2.29`), sorted.
///
/// # Errors
/// [`AuditError::Unreadable`].
pub fn needed_versions(bytes: &[u8]) -> Result<Vec<(String, String)>, AuditError> {
    let file = parse(bytes)?;
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

/// Audits one file: an object by its undefined symbols, a shared library or executable by the libraries that it needs
/// (its linker has found every symbol in them).
///
/// # Errors
/// [`AuditError`] with everything that is too much.
pub fn audit(bytes: &[u8], allow: &Allow) -> Result<(), AuditError> {
    let file = parse(bytes)?;
    if file.kind() == object::ObjectKind::Relocatable {
        return audit_objects(&[bytes], allow);
    }
    if has_executable_stack(&file)? {
        return Err(AuditError::ExecutableStack);
    }
    let is_permitted = |name: &String| {
        let of_sanitizer = ["libasan.", "libubsan.", "libtsan.", "libclang_rt."];
        permitted::is_permitted_library(name)
            || (allow.sanitizers && of_sanitizer.iter().any(|prefix| name.starts_with(prefix)))
    };
    let libraries =
        needed_libraries(bytes)?.into_iter().filter(|name| !is_permitted(name)).collect::<Vec<_>>();
    if libraries.is_empty() { Ok(()) } else { Err(AuditError::Libraries { libraries }) }
}

/// Audits objects that will be linked together, so may use each other's symbols.
///
/// # Errors
/// [`AuditError::Symbols`] with all symbols that are too many; [`AuditError::ExecutableStack`]; [`AuditError::Unreadable`].
pub fn audit_objects(objects: &[&[u8]], allow: &Allow) -> Result<(), AuditError> {
    let (mut wanted, mut defined) = (BTreeSet::new(), BTreeSet::new());
    for bytes in objects {
        wanted.extend(undefined_symbols(bytes)?);
        let file = parse(bytes)?;
        if has_executable_stack(&file)? {
            return Err(AuditError::ExecutableStack);
        }
        let own = all_symbols(&file).filter(|symbol| symbol.is_definition() && symbol.is_global());
        defined.extend(sorted(own));
    }
    let too_many = |name: &String| !defined.contains(name) && !allow.permits(name);
    let symbols = wanted.into_iter().filter(too_many).collect::<Vec<_>>();
    if symbols.is_empty() { Ok(()) } else { Err(AuditError::Symbols { symbols }) }
}

/// What a loader or linker takes the stack to be: executable, unless the file says otherwise.
fn has_executable_stack(file: &File<'_>) -> Result<bool, AuditError> {
    let (endian, data) = (file.endian(), file.data());
    if file.kind() == object::ObjectKind::Relocatable {
        let note = file.section_by_name(".note.GNU-stack");
        let is_data = |flags| matches!(flags, object::SectionFlags::Elf { sh_flags } if sh_flags & u64::from(elf::SHF_EXECINSTR) == 0);
        return Ok(!note.is_some_and(|note| is_data(note.flags())));
    }
    let headers = file.elf_header().program_headers(endian, data).map_err(unreadable)?;
    let stack = headers.iter().find(|header| header.p_type(endian) == elf::PT_GNU_STACK);
    Ok(stack.is_none_or(|stack| stack.p_flags(endian) & elf::PF_X != 0))
}

type File<'a> = ElfFile64<'a>;

fn parse(bytes: &[u8]) -> Result<File<'_>, AuditError> {
    ElfFile64::parse(bytes).map_err(unreadable)
}

/// The static table of an object, the dynamic one of anything linked: the other may have been stripped.
fn all_symbols<'data, 'file>(
    file: &'file File<'data>,
) -> impl Iterator<Item = object::read::elf::ElfSymbol64<'data, 'file>> {
    let is_object = file.kind() == object::ObjectKind::Relocatable;
    let symbols = if is_object { file.symbols() } else { file.dynamic_symbols() };
    symbols.filter(|symbol| !matches!(symbol.kind(), SymbolKind::Section | SymbolKind::File))
}

fn sorted<'data: 'file, 'file>(
    symbols: impl Iterator<Item = object::read::elf::ElfSymbol64<'data, 'file>>,
) -> Vec<String> {
    let names = symbols.filter_map(|symbol| symbol.name().ok().map(str::to_owned));
    let names: BTreeSet<String> = names.filter(|name| !name.is_empty()).collect();
    names.into_iter().collect()
}

fn unreadable(error: object::Error) -> AuditError {
    AuditError::Unreadable(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_files_are_errors() {
        for bytes in [&b""[..], b"\x7fELF", b"not an object at all", &[0x7f; 300]] {
            assert!(matches!(undefined_symbols(bytes), Err(AuditError::Unreadable(_))));
            assert!(matches!(audit(bytes, &Allow::default()), Err(AuditError::Unreadable(_))));
        }
    }
}
