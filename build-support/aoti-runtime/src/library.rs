//! Models in shared libraries that are opened at run time, and why one does not open.

use crate::{Error, ErrorCode, LoadOptions, Model, ModelInfo, ffi};
use std::{error::Error as _, fs::File, io::Read, path::Path, sync::Arc};

/// An open shared library with a compiled model in it.
#[derive(Clone, Debug)]
pub struct Library {
    api: ffi::Api,
}

impl Library {
    /// Opens a library and looks up a model by its exported symbol, such as `aoti_digits_api`. The version of its interface is
    /// checked.
    ///
    /// # Safety
    ///
    /// The file and the libraries that it needs are trusted like programs that one starts: opening runs their code, in this
    /// process. `symbol` is that of a model which cargo-aoti compiled, and whose functions of the project, if it calls any,
    /// keep to their contract. The file is not changed while it is open; it may be replaced, by renaming another over it.
    #[expect(unsafe_code, reason = "nothing can be known of the code in a file")]
    pub unsafe fn open(path: impl AsRef<Path>, symbol: &str) -> Result<Library, Error> {
        let path = path.as_ref();
        if let Some(fault) = fault_of_file(path) {
            return Err(refused(path, &fault));
        }
        // SAFETY: the caller vouches for the file and the symbol.
        let api = unsafe { ffi::open(path, symbol) }?;
        Ok(Library { api })
    }

    /// What the model says about itself, before any weights are loaded.
    pub fn info(&self) -> Result<ModelInfo, Error> {
        self.api.info()
    }

    /// One of the programs of a library that has several; [`Library::open`] gives the first.
    ///
    /// # Errors
    /// A name that none has.
    pub fn program(&self, name: &str) -> Result<Library, Error> {
        Ok(Library { api: self.api.program(name)? })
    }

    /// Loads the model. It keeps the library open for as long as it lives.
    pub fn load(&self, options: LoadOptions) -> Result<Model, Error> {
        Model::from_checked_api(self.api.clone(), options)
    }
}

/// The error for a library that could not be opened or lacks the symbol.
pub(crate) fn failed(path: &Path, error: &libloading::Error) -> Error {
    // What the system says is behind what the crate says.
    let reason = error.source().map_or_else(|| error.to_string(), |source| source.to_string());
    let shown = path.display().to_string();
    // The system begins with the path, which is said already.
    let reason = reason.strip_prefix(&format!("{shown}: ")).unwrap_or(&reason);
    let help = if is_bare(path) && path.is_file() {
        Some(format!("a name without a folder is looked for in folders of the system: say `./{shown}`"))
    } else {
        known_cause(reason).map(str::to_owned)
    };
    refused(path, &help.map_or_else(|| reason.to_owned(), |help| format!("{reason}; {help}")))
}

fn refused(path: &Path, why: &str) -> Error {
    Error::new(ErrorCode::Library, format!("could not open `{}`: {why}", path.display()))
}

/// Shared ownership of an open library.
pub(crate) type Handle = Arc<libloading::Library>;

/// What dynamic loaders say, in part, and what to do about it. The first that is found counts.
const CAUSES: &[(&str, &str)] = &[
    (
        "failed to map segment from shared object",
        "where the file lies, nothing may be executed: the file system is mounted with `noexec`, or a policy of the system \
         forbids it; put the library elsewhere",
    ),
    (
        "Operation not permitted",
        "where the file lies, nothing may be executed: the file system is mounted with `noexec`, or a policy of the system \
         forbids it; put the library elsewhere",
    ),
    (
        "version `GLIBC_",
        "the library was linked for a newer C library than that of this machine: build it where the C library is as old, or for \
         another target, such as musl",
    ),
    (
        "version `",
        "a library that it needs is found in an older version than the one that it was linked with",
    ),
    (
        "undefined symbol: aoti_operator_",
        "the library calls a function of the project that nothing defines: name its `source` in the manifest",
    ),
    (
        "undefined symbol: aoti_",
        "the library is that of another model, or of another build: `cargo aoti build --message-format json` tells the symbol of each",
    ),
    ("undefined symbol", "none of the libraries that it needs has what it calls"),
    ("symbol not found", "none of the libraries that it needs has what it calls"),
    ("cannot allocate memory in static TLS block", "open it earlier, or link the model statically"),
    (
        "cannot open shared object file: No such file or directory",
        "a library that it needs is found nowhere: install it, or name its folder in `LD_LIBRARY_PATH`",
    ),
    (
        "Error loading shared library",
        "a library that it needs is found nowhere, or is one for another C library",
    ),
    // macOS.
    ("incompatible architecture", "build the library for this program's target"),
    ("Symbol not found: _aoti_operator_", "name the `source` of the project's function in the manifest"),
    ("Symbol not found", "none of the libraries that it needs has what it calls"),
    (
        "Library not loaded",
        "a library that it needs is found nowhere: install it, or name its folder in `DYLD_LIBRARY_PATH`",
    ),
    (
        "code signature",
        "the file was changed after it was linked: build it again, or sign it with `codesign --sign -`",
    ),
    // Windows, whose words are in the user's language.
    (
        "(os error 126)",
        "a library that it needs is found nowhere: put it beside the program, or its folder in `PATH`",
    ),
    (
        "(os error 127)",
        "none of the libraries that it needs has what it calls, or it is the library of another model",
    ),
    ("(os error 193)", "it is for another kind of machine or cut short: build it for this program's target"),
    ("Permission denied", "the file, or a folder above it, may not be read by this user"),
];

fn known_cause(reason: &str) -> Option<&'static str> {
    CAUSES.iter().find(|(part, _)| reason.contains(part)).map(|(_, help)| *help)
}

/// Machines of ELF files: their number, and what Rust calls them.
const MACHINES: &[(u16, &str)] = &[
    (3, "x86"),
    (20, "powerpc"),
    (21, "powerpc64"),
    (22, "s390x"),
    (40, "arm"),
    (62, "x86_64"),
    (183, "aarch64"),
    (243, "riscv64"),
    (258, "loongarch64"),
];

/// Whether the loader looks for it in the folders of the system.
fn is_bare(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder.as_os_str().is_empty())
}

/// What is wrong with the file itself, which loaders do not say: they know no such file of one that is for another machine, and
/// end with a signal where one was cut.
fn fault_of_file(path: &Path) -> Option<String> {
    if is_bare(path) {
        return None;
    }
    let length = match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Some("it is no regular file".to_owned()),
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Some("there is no such file".to_owned());
        }
        // Loaders know what is wrong.
        Err(_) => return None,
    };
    let mut head = Vec::new();
    File::open(path).ok()?.take(HEAD).read_to_end(&mut head).ok()?;
    fault_of_head(&head, length)
}

/// Bytes of the header of an ELF file of 64 bits.
const HEAD: u64 = 64;

/// The fault of a file of this length that begins so.
fn fault_of_head(head: &[u8], length: u64) -> Option<String> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    let cut = || Some("it ends too soon: was it copied in full?".to_owned());
    if !head.starts_with(b"\x7fELF") {
        return Some("it is no shared library (an ELF file)".to_owned());
    }
    let Ok(head) = <&[u8; HEAD as usize]>::try_from(head) else { return cut() };
    let is_big = head[5] == 2;
    let short = |at: usize| {
        let bytes = [head[at], head[at + 1]];
        if is_big { u16::from_be_bytes(bytes) } else { u16::from_le_bytes(bytes) }
    };
    let (own, machine) = (std::env::consts::ARCH, short(18));
    let there =
        MACHINES.iter().find(|(number, _)| *number == machine).map_or("another machine", |(_, name)| name);
    if head[4] != 2 {
        return Some(format!("it is for 32 bits ({there}), this program for 64 ({own})"));
    }
    let known = MACHINES.iter().any(|(_, name)| *name == own);
    if known && there != own {
        return Some(format!("it is for {there}, this program for {own}: build it for this target"));
    }
    // The table of sections comes last.
    let mut at = [0; 8];
    at.copy_from_slice(&head[40..48]);
    let at = if is_big { u64::from_be_bytes(at) } else { u64::from_le_bytes(at) };
    let end = at.saturating_add(u64::from(short(58)) * u64::from(short(60)));
    if end > length { cut() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_loaders_say_has_a_known_cause() {
        for (reason, word) in [
            ("/x/m.so: failed to map segment from shared object: Operation not permitted", "noexec"),
            ("/x/m.so: failed to map segment from shared object", "noexec"),
            ("/lib/libc.so.6: version `GLIBC_2.38' not found (required by /x/m.so)", "newer C library"),
            ("/x/b.so: version `VERS_2' not found (required by /x/m.so)", "older version"),
            ("/x/m.so: undefined symbol: aoti_operator_f_TR", "`source`"),
            ("/x/m.so: undefined symbol: aoti_digits_api", "another model"),
            ("/x/m.so: undefined symbol: cblas_sgemm", "none of the libraries"),
            ("libb.so: cannot open shared object file: No such file or directory", "found nowhere"),
            (
                "Error loading shared library libb.so: No such file or directory (needed by m.so)",
                "found nowhere",
            ),
            ("/x/m.so: cannot open shared object file: Permission denied", "may not be read"),
            ("/x/m.so: cannot allocate memory in static TLS block", "statically"),
            (
                "dlopen(m.dylib, 0x0005): tried: 'm.dylib' (mach-o file, but is an incompatible architecture (have 'arm64', \
                 need 'x86_64'))",
                "this program's target",
            ),
            ("dlsym(0x1, aoti_digits_api): symbol not found", "none of the libraries"),
            ("Das angegebene Modul wurde nicht gefunden. (os error 126)", "`PATH`"),
            ("%1 is not a valid Win32 application. (os error 193)", "this program's target"),
        ] {
            assert!(known_cause(reason).is_some_and(|help| help.contains(word)), "{reason}");
        }
        assert_eq!(known_cause("something else"), None);
    }

    #[test]
    #[cfg(all(target_os = "linux", target_endian = "little"))]
    fn the_head_of_a_file_says_what_it_is_for() {
        let own =
            MACHINES.iter().find(|(_, name)| *name == std::env::consts::ARCH).expect("a known machine").0;
        let head = |bits: u8, machine: u16| {
            let mut head = [0u8; 64];
            head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', bits, 1]);
            head[18..20].copy_from_slice(&machine.to_le_bytes());
            head
        };
        let fault_of_head = |head: &[u8]| super::fault_of_head(head, head.len() as u64);
        assert_eq!(fault_of_head(&head(2, own)), None);
        let other = if own == 62 { 183 } else { 62 };
        assert!(fault_of_head(&head(2, other)).unwrap().contains(", this program for "));
        assert!(fault_of_head(&head(2, 999)).unwrap().starts_with("it is for another machine"));
        assert!(fault_of_head(&head(1, 40)).unwrap().starts_with("it is for 32 bits (arm)"));
        assert!(fault_of_head(&head(2, own)[..50]).unwrap().starts_with("it ends too soon"));
        assert!(fault_of_head(b"!<arch>").unwrap().starts_with("it is no shared library"));
        assert!(fault_of_head(b"").is_some());
        let mut long = head(2, own);
        long[40..48].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(fault_of_head(&long).unwrap().starts_with("it ends too soon"));
    }
}
