//! The systems that code is made for, as a table: formats of objects, names of files, what loaders and linkers expect.
//!
//! What a compiler is told for them is in `toolchains/*.toml`; knows no compiler.

/// What objects and libraries are encoded as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectFormat {
    /// Linux, Android and the BSDs.
    Elf,
    /// Windows.
    Coff,
    /// Apple's systems.
    MachO,
    /// WebAssembly.
    Wasm,
}

impl ObjectFormat {
    pub(crate) const ALL: [ObjectFormat; 4] =
        [ObjectFormat::Elf, ObjectFormat::Coff, ObjectFormat::MachO, ObjectFormat::Wasm];

    /// The name used in definitions and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            ObjectFormat::Elf => "elf",
            ObjectFormat::Coff => "coff",
            ObjectFormat::MachO => "mach-o",
            ObjectFormat::Wasm => "wasm",
        }
    }

    /// What stands before the names of C in symbols of 64-bit code.
    pub(crate) fn symbol_prefix(self) -> &'static str {
        match self {
            ObjectFormat::MachO => "_",
            ObjectFormat::Elf | ObjectFormat::Coff | ObjectFormat::Wasm => "",
        }
    }
}

/// What stands before and behind the name of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Affixes(&'static str, &'static str);

impl Affixes {
    fn around(self, stem: &str) -> String {
        format!("{}{stem}{}", self.0, self.1)
    }

    fn within(self, name: &str) -> Option<&str> {
        name.strip_prefix(self.0)?.strip_suffix(self.1)
    }
}

/// What is known of a system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Platform {
    /// What it is called in triples; the first row whose name occurs in one is meant.
    pub(super) name: &'static str,
    /// What it is called where two triples are compared.
    pub(super) system: &'static str,
    /// What its objects are encoded as.
    pub format: ObjectFormat,
    static_library: Affixes,
    /// None where programs have all of their code inside.
    shared_library: Option<Affixes>,
    executable: &'static str,
    /// The folder of a program or library itself, in the paths that programs look for shared libraries in; none where they look there anyway,
    /// or where there are no such paths.
    pub own_folder: Option<&'static str>,
    /// Where names of shared libraries begin that all programs of the system have: parts of the C library, the compiler's
    /// runtime, the loader.
    system_libraries: &'static [&'static str],
}

const ARCHIVE: Affixes = Affixes("lib", ".a");
const ELF_LIBRARIES: &[&str] =
    &["libc.", "libm.", "libgcc_s.", "libdl.", "libpthread.", "ld-linux", "ld-musl", "ld64.", "libc.musl"];

const ELF: Platform = Platform {
    name: "linux",
    system: "linux",
    format: ObjectFormat::Elf,
    static_library: ARCHIVE,
    shared_library: Some(Affixes("lib", ".so")),
    executable: "",
    own_folder: Some("$ORIGIN"),
    system_libraries: ELF_LIBRARIES,
};

const WINDOWS: Platform = Platform {
    name: "windows",
    system: "windows",
    format: ObjectFormat::Coff,
    static_library: ARCHIVE,
    shared_library: Some(Affixes("", ".dll")),
    executable: ".exe",
    own_folder: None,
    // The universal C runtime, and that of Windows itself which older mingw uses.
    system_libraries: &["kernel32.", "ntdll.", "api-ms-win-crt-", "ucrtbase.", "msvcrt.", "vcruntime"],
};

const APPLE: Platform = Platform {
    name: "darwin",
    system: "darwin",
    format: ObjectFormat::MachO,
    static_library: ARCHIVE,
    shared_library: Some(Affixes("lib", ".dylib")),
    executable: "",
    own_folder: Some("@loader_path"),
    system_libraries: &["/usr/lib/libSystem."],
};

const WASM: Platform = Platform {
    name: "wasm",
    system: "wasm",
    format: ObjectFormat::Wasm,
    static_library: ARCHIVE,
    shared_library: None,
    executable: ".wasm",
    own_folder: None,
    system_libraries: &[],
};

/// The first row whose name is part of a triple is its platform. WebAssembly goes first: `wasm32-wasip1` and
/// `wasm32-unknown-unknown` have the same objects, which know no system.
const PLATFORMS: [Platform; 10] = [
    WASM,
    Platform { name: "android", system: "android", ..ELF },
    ELF,
    Platform { name: "windows-msvc", static_library: Affixes("", ".lib"), ..WINDOWS },
    WINDOWS,
    Platform { name: "mingw", ..WINDOWS },
    APPLE,
    Platform { name: "macos", ..APPLE },
    Platform { name: "ios", system: "ios", ..APPLE },
    Platform { name: "freebsd", system: "freebsd", ..ELF },
];

/// Boards without a system.
const NONE: Platform =
    Platform { name: "none", system: "none", shared_library: None, own_folder: None, ..ELF };

impl Platform {
    /// The platform of a triple, Rust's or a compiler's.
    pub(super) fn of(triple: &str) -> &'static Platform {
        PLATFORMS.iter().find(|platform| triple.contains(platform.name)).unwrap_or(&NONE)
    }

    /// Where names of shared libraries begin that all programs of some system with this format have.
    pub(crate) fn system_libraries(format: ObjectFormat) -> impl Iterator<Item = &'static str> {
        let of_format = PLATFORMS.iter().filter(move |platform| platform.format == format);
        of_format.flat_map(|platform| platform.system_libraries).copied()
    }

    /// File name of a static library.
    pub fn static_library(&self, stem: &str) -> String {
        self.static_library.around(stem)
    }

    /// File name of a shared library; none where there are none.
    pub fn shared_library(&self, stem: &str) -> Option<String> {
        Some(self.shared_library?.around(stem))
    }

    /// File name of a program.
    pub fn executable(&self, stem: &str) -> String {
        format!("{stem}{}", self.executable)
    }

    /// What a library is called without what names of libraries have around them on any platform.
    pub fn stem_of_library(name: &str) -> Option<&str> {
        // `lib` may be part of a stem, but is none of any of ours.
        let all =
            || PLATFORMS.iter().flat_map(|one| [Some(one.static_library), one.shared_library]).flatten();
        let mut stems =
            all().filter(|affixes| !affixes.0.is_empty()).filter_map(|affixes| affixes.within(name));
        let bare = || all().filter_map(|affixes| affixes.within(name)).next();
        stems.next().or_else(bare)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::Target;

    #[test]
    fn files_are_called_what_linkers_look_for() {
        let rows = [
            ("x86_64-unknown-linux-gnu", "elf", "liba.a", Some("liba.so"), "a", Some("$ORIGIN")),
            ("aarch64-linux-android", "elf", "liba.a", Some("liba.so"), "a", Some("$ORIGIN")),
            ("riscv64gc-unknown-linux-gnu", "elf", "liba.a", Some("liba.so"), "a", Some("$ORIGIN")),
            ("x86_64-pc-windows-gnu", "coff", "liba.a", Some("a.dll"), "a.exe", None),
            ("aarch64-pc-windows-gnullvm", "coff", "liba.a", Some("a.dll"), "a.exe", None),
            ("x86_64-pc-windows-msvc", "coff", "a.lib", Some("a.dll"), "a.exe", None),
            ("x86_64-apple-darwin", "mach-o", "liba.a", Some("liba.dylib"), "a", Some("@loader_path")),
            ("aarch64-apple-ios", "mach-o", "liba.a", Some("liba.dylib"), "a", Some("@loader_path")),
            ("wasm32-wasip1", "wasm", "liba.a", None, "a.wasm", None),
            ("wasm32-unknown-unknown", "wasm", "liba.a", None, "a.wasm", None),
        ];
        for (triple, format, archive, shared, program, folder) in rows {
            let target = Target::new(triple);
            let platform = target.platform();
            assert_eq!(platform.format.as_str(), format, "{triple}");
            assert_eq!(platform.static_library("a"), archive, "{triple}");
            assert_eq!(platform.shared_library("a").as_deref(), shared, "{triple}");
            assert_eq!(platform.executable("a"), program, "{triple}");
            assert_eq!(platform.own_folder, folder, "{triple}");
        }
    }

    #[test]
    fn libraries_of_every_platform_are_known_by_their_names() {
        for name in ["libaoti_x.a", "libaoti_x.so", "libaoti_x.dylib", "aoti_x.dll", "aoti_x.lib"] {
            assert_eq!(Platform::stem_of_library(name), Some("aoti_x"), "{name}");
        }
        assert_eq!(Platform::stem_of_library("aoti_x.rs"), None);
    }
}
