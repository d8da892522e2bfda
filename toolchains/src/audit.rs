//! Proves that what was compiled and linked needs nothing beyond libc, libm and libgcc, or what a system has in their place.
//!
//! Reads ELF, COFF and PE, Mach-O and WebAssembly, all of 64 bits but the last; other files are refused, not believed. Input may
//! be damaged: errors, never panics.

use std::collections::BTreeSet;
use std::fmt;

use crate::target::ObjectFormat;

mod file;
mod permitted;
mod wasm;

use file::File;

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
    /// It is no object, library or program of a format that is known, or a damaged one.
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
            AuditError::Unreadable(inner) => {
                write!(f, "cannot be read as an object, library or program: {inner}")
            }
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

    fn permits(&self, format: ObjectFormat, symbol: &str) -> bool {
        permitted::is_permitted(format, symbol)
            || self.symbols.contains(symbol)
            || (self.sanitizers && permitted::is_of_sanitizer(symbol))
    }
}

/// Names that a file refers to and does not define, sorted. Weak references count.
///
/// # Errors
/// [`AuditError::Unreadable`].
pub fn undefined_symbols(bytes: &[u8]) -> Result<Vec<String>, AuditError> {
    Ok(File::read(bytes)?.undefined.into_iter().collect())
}

/// Names that a file offers to others, sorted: of a shared library those that programs find, of an object its global
/// ones that are not hidden.
///
/// # Errors
/// [`AuditError::Unreadable`].
pub fn exported_symbols(bytes: &[u8]) -> Result<Vec<String>, AuditError> {
    Ok(File::read(bytes)?.exported.into_iter().collect())
}

/// The libraries that a shared library or executable asks for, in order.
///
/// # Errors
/// [`AuditError::Unreadable`].
pub fn needed_libraries(bytes: &[u8]) -> Result<Vec<String>, AuditError> {
    Ok(File::read(bytes)?.needed)
}

/// The versions of symbols that a shared library or executable asks of others (`libm.so.6`, `GLIBC_2.29`), sorted; none where
/// the format has no versions.
///
/// # Errors
/// [`AuditError::Unreadable`].
pub fn needed_versions(bytes: &[u8]) -> Result<Vec<(String, String)>, AuditError> {
    file::needed_versions(bytes)
}

/// Audits one file: an object by its undefined symbols, a shared library or executable by the libraries that it needs
/// (its linker has found every symbol in them).
///
/// # Errors
/// [`AuditError`] with everything that is too much.
pub fn audit(bytes: &[u8], allow: &Allow) -> Result<(), AuditError> {
    let file = File::read(bytes)?;
    if file.is_object {
        return audit_objects(&[bytes], allow);
    }
    if file.has_executable_stack {
        return Err(AuditError::ExecutableStack);
    }
    let is_permitted = |name: &String| {
        let of_sanitizer = ["libasan.", "libubsan.", "libtsan.", "libclang_rt."];
        permitted::is_permitted_library(file.format, name)
            || (allow.sanitizers && of_sanitizer.iter().any(|prefix| name.starts_with(prefix)))
    };
    let libraries = file.needed.iter().filter(|name| !is_permitted(name)).cloned().collect::<Vec<_>>();
    if libraries.is_empty() { Ok(()) } else { Err(AuditError::Libraries { libraries }) }
}

/// Audits objects that will be linked together, so may use each other's symbols.
///
/// # Errors
/// [`AuditError::Symbols`] with all symbols that are too many; [`AuditError::ExecutableStack`]; [`AuditError::Unreadable`].
pub fn audit_objects(objects: &[&[u8]], allow: &Allow) -> Result<(), AuditError> {
    let (mut wanted, mut defined) = (BTreeSet::new(), BTreeSet::new());
    for bytes in objects {
        let file = File::read(bytes)?;
        if file.has_executable_stack {
            return Err(AuditError::ExecutableStack);
        }
        wanted.extend(file.undefined.into_iter().map(|name| (file.format, name)));
        defined.extend(file.defined);
    }
    let too_many =
        |(format, name): &(ObjectFormat, String)| !defined.contains(name) && !allow.permits(*format, name);
    let symbols = wanted.into_iter().filter(too_many).map(|(_, name)| name).collect::<Vec<_>>();
    if symbols.is_empty() { Ok(()) } else { Err(AuditError::Symbols { symbols }) }
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
