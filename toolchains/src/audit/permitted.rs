//! The names that generated code may ask of the system: parts of libc, libm and libgcc (or compiler-rt), and nothing
//! that allocates behind a caller's back except where the run-time headers do so on purpose.

use crate::target::{ObjectFormat, Platform};

/// Memory, files, dynamic loading and threads of libc.
const LIBC: &[&str] = &[
    "abort",
    "aligned_alloc",
    "calloc",
    "clock_gettime",
    "close",
    "dl_iterate_phdr",
    "dlclose",
    "dlerror",
    "dlopen",
    "dlsym",
    "environ",
    "fclose",
    "fopen",
    "fread",
    "free",
    "fstat",
    "fwrite",
    "getauxval",
    "getenv",
    "madvise",
    "malloc",
    "memchr",
    "memcmp",
    "memcpy",
    "memmove",
    "memset",
    "mmap",
    "munmap",
    "open",
    "posix_memalign",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_once",
    "read",
    "realloc",
    "snprintf",
    "strcmp",
    "strcpy",
    "strlen",
    "strncmp",
    "vsnprintf",
];

/// Functions of libm that exist for double and, with `f`, for float.
const LIBM: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "hypot",
    "ilogb",
    "j0",
    "j1",
    "ldexp",
    "lgamma",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "modf",
    "nearbyint",
    "nextafter",
    "pow",
    "remainder",
    "remquo",
    "rint",
    "round",
    "roundeven",
    "scalbln",
    "scalbn",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "tgamma",
    "trunc",
    "y0",
    "y1",
];

/// What compilers call without being asked: wide integers, half precision, processor detection, outline atomics.
const COMPILER: &[&str] = &[
    "_GLOBAL_OFFSET_TABLE_",
    "__ashlti3",
    "__ashrti3",
    "__clzti2",
    "__cpu_features2",
    "__cpu_indicator_init",
    "__cpu_model",
    "__ctzti2",
    "__divmodti4",
    "__divti3",
    "__extendbfsf2",
    "__extendhfdf2",
    "__extendhfsf2",
    "__extendhfxf2",
    "__fixdfti",
    "__fixsfti",
    "__fixunsdfti",
    "__fixunssfti",
    "__floattidf",
    "__floattisf",
    "__floatuntidf",
    "__floatuntisf",
    "__gnu_f2h_ieee",
    "__gnu_h2f_ieee",
    "__init_cpu_features_resolver",
    "__lshrti3",
    "__aarch64_have_lse_atomics",
    "__aarch64_cpu_features",
    "__modti3",
    "__multi3",
    "__mulodi4",
    "__muloti4",
    "__popcountdi2",
    "__popcountti2",
    "__stack_chk_fail",
    "__stack_chk_guard",
    "__truncdfbf2",
    "__truncdfhf2",
    "__truncsfbf2",
    "__truncsfhf2",
    "__truncxfhf2",
    "__udivmodti4",
    "__udivti3",
    "__umodti3",
    "__tls_get_addr",
];

/// What the C library and the compiler's runtime have on Windows besides: its own calls, and what inline functions of its
/// headers call.
const WINDOWS: &[&str] = &[
    "FreeLibrary",
    "GetModuleHandleA",
    "GetProcAddress",
    "LoadLibraryA",
    "___chkstk_ms",
    "__chkstk",
    "__mingw_vsnprintf",
    "__mingw_vsprintf",
    "__stdio_common_vsnprintf_s",
    "__stdio_common_vsprintf",
    "_aligned_free",
    "_aligned_malloc",
    "_fltused",
    "_hypotf",
    "_vsnprintf",
];

/// The same of Apple's.
const APPLE: &[&str] = &[
    "__bzero",
    "__exp10",
    "__exp10f",
    "__sincos_stret",
    "__sincosf_stret",
    "__snprintf_chk",
    "__vsnprintf_chk",
    "bzero",
    "dyld_stub_binder",
    "memset_pattern16",
    "memset_pattern4",
    "memset_pattern8",
];

/// What a linker of WebAssembly makes itself, and wide integers and floats that the C library computes with.
const WASM: &[&str] =
    &["__indirect_function_table", "__linear_memory", "__memory_base", "__stack_pointer", "__table_base"];

/// What Android's headers call in the place of what they declare.
const ELF: &[&str] = &["__memcpy_chk", "__memmove_chk", "__memset_chk", "__vsnprintf_chk"];

/// Whether a symbol is of libc, libm or libgcc, or of what the system has in their place.
pub(super) fn is_permitted(format: ObjectFormat, symbol: &str) -> bool {
    let of_system = match format {
        ObjectFormat::Elf => ELF,
        ObjectFormat::Coff => WINDOWS,
        ObjectFormat::MachO => APPLE,
        ObjectFormat::Wasm => WASM,
    };
    // By the table of imports, or through the pointer to it that gcc makes.
    let imported = |symbol: &'_ str| {
        let rest = symbol.strip_prefix("__imp_").or_else(|| symbol.strip_prefix(".refptr."))?;
        Some(rest.to_owned())
    };
    if let Some(rest) = imported(symbol).filter(|_| format == ObjectFormat::Coff) {
        return is_permitted(format, &rest);
    }
    if of_system.contains(&symbol) {
        return true;
    }
    let is_math = |name: &str| LIBM.contains(&name);
    let is_outline_atomic = symbol.strip_prefix("__aarch64_").is_some_and(|rest| {
        ["cas", "swp", "ldadd", "ldset", "ldclr", "ldeor"].iter().any(|operation| rest.starts_with(operation))
    });
    LIBC.contains(&symbol)
        || is_math(symbol)
        || symbol.strip_suffix('f').is_some_and(is_math)
        || COMPILER.contains(&symbol)
        || is_outline_atomic
}

/// Whether a symbol is of a sanitizer's runtime, or of the section that clang keeps for it.
pub(super) fn is_of_sanitizer(symbol: &str) -> bool {
    const PREFIXES: [&str; 8] = [
        "__asan_",
        "__ubsan_",
        "__tsan_",
        "__msan_",
        "__lsan_",
        "__sanitizer_",
        "__start_asan_globals",
        "__stop_asan_globals",
    ];
    PREFIXES.iter().any(|prefix| symbol.starts_with(prefix))
}

/// Whether a library is one that all programs of the systems with this format have.
pub(super) fn is_permitted_library(format: ObjectFormat, name: &str) -> bool {
    // Names of libraries are in any case on Windows.
    let name = if format == ObjectFormat::Coff { name.to_lowercase() } else { name.to_owned() };
    Platform::system_libraries(format).any(|stem| name.starts_with(stem))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_permitted_and_the_cpp_library_is_not() {
        for good in ["memcpy", "expf", "exp", "__divti3", "__truncsfhf2", "__aarch64_ldadd8_acq_rel", "erff"]
        {
            assert!(is_permitted(ObjectFormat::Elf, good), "{good}");
        }
        for bad in ["_Znwm", "__cxa_throw", "__gxx_personality_v0", "omp_get_num_threads", "system", "f", ""]
        {
            assert!(!is_permitted(ObjectFormat::Elf, bad), "{bad}");
        }
        assert!(is_permitted_library(ObjectFormat::Elf, "libc.so.6"));
        assert!(is_permitted_library(ObjectFormat::Elf, "ld-linux-x86-64.so.2"));
        assert!(!is_permitted_library(ObjectFormat::Elf, "libstdc++.so.6"));
        assert!(!is_permitted_library(ObjectFormat::Elf, "libcublas.so.12"));
    }

    #[test]
    fn each_system_has_a_c_library_of_its_own() {
        for (format, symbol, library) in [
            (ObjectFormat::Coff, "__imp__aligned_malloc", "KERNEL32.dll"),
            (ObjectFormat::MachO, "memset_pattern16", "/usr/lib/libSystem.B.dylib"),
        ] {
            assert!(is_permitted(format, symbol) && is_permitted_library(format, library), "{symbol}");
            assert!(
                !is_permitted(ObjectFormat::Elf, symbol) && !is_permitted_library(ObjectFormat::Elf, library)
            );
            assert!(!is_permitted(format, "_Znwm") && !is_permitted_library(format, "libstdc++-6.dll"));
        }
        assert!(is_permitted(ObjectFormat::Wasm, "__stack_pointer"));
    }
}
