//! The environment variables that this project reads: one declaration each, with the line that documents it.
//!
//! Values are read through [`aoti_toolchain::Environment`], which is captured once.

/// One variable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Variable {
    /// Its name; `<target>` stands for the triple.
    pub name: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Whether a build script must run again when it changes.
    pub rebuilds: bool,
}

const fn build(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, meaning, rebuilds: true }
}

const fn other(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, meaning, rebuilds: false }
}

/// Every variable, in the order of the documentation.
pub const VARIABLES: &[Variable] = &[
    build(
        "AOTI_BUILD",
        "what build scripts produce: `full`, always native code; `bindings`, Rust modules only, without running native \
         tools; `auto`, the default, native code unless cargo only checks",
    ),
    other(
        "AOTI_CACHE_DIR",
        "where results of native tools are cached; by default `aoti` in the user's cache folder",
    ),
    other(
        "AOTI_CACHE_SIZE",
        "maximum size of that folder, such as `20G`; `0` for no limit; by default `10G`",
    ),
    other("AOTI_CACHE_LAYERS", "further cache folders, read-only, separated as in `PATH`"),
    other("AOTI_CACHE_REMOTE", "a cache on a server, such as `redis://host/prefix` or `s3://bucket/prefix`"),
    other("AOTI_CACHE_REMOTE_WRITE", "`1` also writes new results to that server"),
    other("AOTI_CACHE_REMOTE_USERNAME", "user name for that server"),
    other("AOTI_CACHE_REMOTE_PASSWORD", "password for that server"),
    other("AOTI_CACHE_REMOTE_TOKEN", "access token for that server"),
    other(
        "AOTI_COMPILER_LAUNCHER",
        "a program that launches compilers, such as `sccache`, `distcc` or `icecc`",
    ),
    other(
        "AOTI_TOOL_TIMEOUT",
        "seconds after which a compiler that does not end is ended, with what it has started; by default 3600",
    ),
    build(
        "CARGO_AOTI",
        "the `cargo-aoti` that build scripts use if `aoti-build` is without its feature `compiler`; by default the \
         installed one",
    ),
    other("RUSTC_LINKER", "set by cargo where its configuration names a linker for the target"),
    build("DOCS_RS", "set by docs.rs; same as `AOTI_BUILD=bindings`"),
    other("RA_RUSTC_WRAPPER", "set by rust-analyzer, which only checks"),
    other("RUSTC_WORKSPACE_WRAPPER", "names `clippy-driver` when cargo runs clippy, which only checks"),
    build("CXX", "C++ compiler"),
    build("CXX_<target>", "C++ compiler for one target; overrides `CXX`"),
    build("TARGET_CXX", "C++ compiler for targets other than the host"),
    build("HOST_CXX", "C++ compiler for the host when cross-compiling"),
    build("CXXFLAGS", "flags for C++ compilers, ahead of those that generated code needs"),
    build("CXXFLAGS_<target>", "flags for one target; after `CXXFLAGS`"),
    build("TARGET_CXXFLAGS", "flags for targets other than the host; after `CXXFLAGS`"),
    build("HOST_CXXFLAGS", "flags for the host when cross-compiling; after `CXXFLAGS`"),
    build("CC_SHELL_ESCAPED_FLAGS", "`1` to split flags as shells do"),
    build("CRATE_CC_NO_DEFAULTS", "`1` for no `--target` but that of `CXX` and `CXXFLAGS`"),
    build("AR", "archiver"),
    build("AR_<target>", "archiver for one target; overrides `AR`"),
    build("TARGET_AR", "archiver for targets other than the host"),
    build("HOST_AR", "archiver for the host when cross-compiling"),
    other(
        "CARGO_TARGET_<target>_RUNNER",
        "runs programs of another target for `verify`; as in cargo, the target is in upper case with `_` for `-`",
    ),
    build("NVCC", "CUDA compiler"),
    build("CUDACXX", "CUDA compiler, by CMake's name"),
    build("NVCC_CCBIN", "host compiler for nvcc"),
    build("CUDAHOSTCXX", "host compiler for nvcc, by CMake's name"),
    build("CUDA_PATH", "CUDA installation; searched before `PATH`"),
    build("CUDA_HOME", "same as `CUDA_PATH`"),
    build("CUDA_ROOT", "same as `CUDA_PATH`"),
    build("CLANG_CUDA", "clang for NVIDIA GPUs"),
    build("HIPCC", "HIP compiler"),
    build("HIPCXX", "HIP compiler, by CMake's name"),
    build("ROCM_PATH", "ROCm installation; searched before `PATH`"),
    build("HIP_PATH", "same as `ROCM_PATH`"),
    build("CLANG_HIP", "clang for AMD GPUs"),
    build("ANDROID_NDK_HOME", "Android NDK"),
    build("ANDROID_NDK_ROOT", "same as `ANDROID_NDK_HOME`"),
    build("ANDROID_NDK", "same as `ANDROID_NDK_HOME`"),
    build("NDK_HOME", "same as `ANDROID_NDK_HOME`"),
    build("ANDROID_HOME", "Android SDK, whose newest NDK is used"),
    build("ANDROID_SDK_ROOT", "same as `ANDROID_HOME`"),
    build("LLVM_HOME", "LLVM installation with `clang-cl`, for Windows"),
    other("VIRTUAL_ENV", "Python environment whose `nvidia` packages may contain nvcc"),
    other("CONDA_PREFIX", "same as `VIRTUAL_ENV`"),
    other("CARGO", "the cargo that the subcommand queries about the project"),
    other("CARGO_MAKEFLAGS", "cargo's jobserver, which limits native tools"),
    other("NO_COLOR", "if set, no colours"),
    other("CARGO_TERM_COLOR", "`always`, `never` or `auto`, as in cargo"),
    other("CARGO_TERM_QUIET", "`true` to print errors only, as in cargo"),
    other("CARGO_TERM_VERBOSE", "`true` to print more, as in cargo"),
    other("CARGO_TERM_PROGRESS_WHEN", "`never` for no progress bars, as in cargo"),
    other("CARGO_BUILD_TARGET", "target of `cargo aoti build`, as in cargo"),
    other("CARGO_BUILD_JOBS", "maximum number of native tools at once, as in cargo"),
];

/// The names of the variables that rebuild, for a target.
pub(crate) fn rebuilding(target: &str) -> Vec<String> {
    let underscored = target.replace(['-', '.'], "_");
    let mut names = Vec::new();
    for variable in VARIABLES.iter().filter(|variable| variable.rebuilds) {
        names.push(variable.name.replace("<target>", target));
        if variable.name.contains("<target>") {
            names.push(variable.name.replace("<target>", &underscored));
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_of_a_toolchain_is_declared() {
        for definition in aoti_toolchain::definitions() {
            let find = definition.find;
            let groups = [find.variables, find.home_variables, find.host_variables, find.archiver_variables];
            for name in groups.concat() {
                let declared = VARIABLES.iter().find(|variable| variable.name == name);
                assert!(declared.is_some_and(|variable| variable.rebuilds), "{name} of {}", definition.name);
            }
        }
    }
}
