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
        "what build scripts make: `full`, native code always; `bindings`, Rust modules only, and no native tool is run; \
         `auto`, the default, native code unless cargo only checks",
    ),
    other(
        "AOTI_CACHE_DIR",
        "where results of native tools are kept; by default `aoti` in the user's cache folder",
    ),
    other("AOTI_CACHE_SIZE", "size of that folder, such as `20G`; `0` for no limit, by default `10G`"),
    other("AOTI_CACHE_LAYERS", "further cache folders, which are only read, separated as in `PATH`"),
    other("AOTI_CACHE_REMOTE", "a cache on a server, such as `redis://host/prefix` or `s3://bucket/prefix`"),
    other("AOTI_CACHE_REMOTE_WRITE", "`1` also keeps on that server what is made here"),
    other("AOTI_CACHE_REMOTE_USERNAME", "user name for that server"),
    other("AOTI_CACHE_REMOTE_PASSWORD", "password for that server"),
    other("AOTI_CACHE_REMOTE_TOKEN", "access token for that server"),
    other(
        "AOTI_COMPILER_LAUNCHER",
        "a program that compiles are started through, such as `sccache`, `distcc` or `icecc`",
    ),
    build(
        "CARGO_AOTI",
        "the `cargo-aoti` that build scripts run whose `aoti-build` has no feature `compiler`; by default the one that is \
         installed",
    ),
    build("DOCS_RS", "set by docs.rs; as `AOTI_BUILD=bindings`"),
    other("RA_RUSTC_WRAPPER", "set by rust-analyzer, which only checks"),
    other("RUSTC_WORKSPACE_WRAPPER", "names `clippy-driver` where cargo runs clippy, which only checks"),
    build("CXX", "C++ compiler"),
    build("CXX_<target>", "C++ compiler for one target; goes before `CXX`"),
    build("TARGET_CXX", "C++ compiler for targets other than the host"),
    build("HOST_CXX", "C++ compiler for the host when another target is built for"),
    build("AR", "archiver"),
    build("AR_<target>", "archiver for one target; goes before `AR`"),
    other(
        "CARGO_TARGET_<target>_RUNNER",
        "what `verify` runs programs of another target with, by cargo's convention: in upper case, `-` as `_`",
    ),
    build("NVCC", "CUDA compiler"),
    build("CUDACXX", "CUDA compiler too, as CMake calls it"),
    build("NVCC_CCBIN", "host compiler that nvcc calls"),
    build("CUDAHOSTCXX", "host compiler that nvcc calls, as CMake calls it"),
    build("CUDA_PATH", "installation of CUDA; goes before PATH"),
    build("CUDA_HOME", "as `CUDA_PATH`"),
    build("CUDA_ROOT", "as `CUDA_PATH`"),
    build("CLANG_CUDA", "clang for NVIDIA GPUs"),
    build("HIPCC", "HIP compiler"),
    build("HIPCXX", "HIP compiler too, as CMake calls it"),
    build("ROCM_PATH", "installation of ROCm; goes before PATH"),
    build("HIP_PATH", "as `ROCM_PATH`"),
    build("CLANG_HIP", "clang for AMD GPUs"),
    other("VIRTUAL_ENV", "Python environment whose `nvidia` packages may hold nvcc"),
    other("CONDA_PREFIX", "as `VIRTUAL_ENV`"),
    other("CARGO", "the cargo that the subcommand asks about the project"),
    other("CARGO_MAKEFLAGS", "cargo's jobserver, which native tools take their turns from"),
    other("NO_COLOR", "when set, no colours"),
    other("CARGO_TERM_COLOR", "`always`, `never` or `auto`, as in cargo"),
    other("CARGO_TERM_QUIET", "`true` for errors alone, as in cargo"),
    other("CARGO_TERM_VERBOSE", "`true` for more, as in cargo"),
    other("CARGO_TERM_PROGRESS_WHEN", "`never` for no bars, as in cargo"),
    other("CARGO_BUILD_TARGET", "what `cargo aoti build` builds for, as cargo does"),
    other("CARGO_BUILD_JOBS", "how many native tools run at once, as in cargo"),
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
