//! The outside world as one value.
//!
//! Owns every look at process-wide state: variables, working directory, host processor, distribution, jobserver.
//! [`Environment::capture`] is called once, by the program; nothing else in the crate asks the system.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use jobserver::Client;

use crate::system;
use crate::target::Target;

/// A snapshot of variables, host and jobserver.
#[derive(Clone)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    directory: PathBuf,
    host: Target,
    host_processor: String,
    distribution: Vec<String>,
    jobserver: Option<Client>,
    parallelism: usize,
    /// What is not named in it is not looked for.
    is_sealed: bool,
}

/// Variables that would redirect a compiler's output or have it talk to a jobserver that is not its own.
const DROPPED: [&str; 6] =
    ["DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES", "MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS", "GCC_COLORS"];

/// Variables by which Zig finds the folder of its cache, its own first.
const ZIG_CACHES: [&str; 4] = ["ZIG_GLOBAL_CACHE_DIR", "XDG_CACHE_HOME", "HOME", "LOCALAPPDATA"];

/// Variables that change what compilers and linkers make; they are part of every action's key.
const INFLUENTIAL: [&str; 27] = [
    "CPATH",
    "C_INCLUDE_PATH",
    "CPLUS_INCLUDE_PATH",
    "COMPILER_PATH",
    "LIBRARY_PATH",
    "INCLUDE",
    "LIB",
    "GCC_EXEC_PREFIX",
    "LD_RUN_PATH",
    "LDEMULATION",
    "CCC_OVERRIDE_OPTIONS",
    "SDKROOT",
    "MACOSX_DEPLOYMENT_TARGET",
    "NIX_CFLAGS_COMPILE",
    "NIX_CFLAGS_LINK",
    "NIX_LDFLAGS",
    "NIX_ENFORCE_NO_NATIVE",
    "NVCC_PREPEND_FLAGS",
    "NVCC_APPEND_FLAGS",
    "HIP_PLATFORM",
    "HIP_COMPILER",
    "HIP_CLANG_PATH",
    "HIP_DEVICE_LIB_PATH",
    "DEVICE_LIB_PATH",
    "HIPCC_COMPILE_FLAGS_APPEND",
    "HIPCC_LINK_FLAGS_APPEND",
    "HCC_AMDGPU_TARGET",
];

/// Variables that change which programs are found beside the one that is asked; part of what a probe is remembered by.
const FINDING: [&str; 12] = [
    "PATH",
    "NVCC",
    "CUDACXX",
    "CUDA_PATH",
    "CUDA_HOME",
    "CUDA_ROOT",
    "NVCC_CCBIN",
    "CUDAHOSTCXX",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "ROCM_PATH",
    "HIP_PATH",
];

impl fmt::Debug for Environment {
    /// Names of variables without their values, which may be secrets.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("directory", &self.directory)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

impl Environment {
    /// Reads the process's environment. Call it early in `main`, before files are opened: the jobserver is
    /// inherited through file descriptors.
    pub fn capture() -> Self {
        // SAFETY: the descriptors named by CARGO_MAKEFLAGS were opened for us by cargo or make. The contract asks
        // for a call before this process opens descriptors that could be mistaken for them, which the doc passes on.
        let jobserver = unsafe { Client::from_env() };
        let host = Target::host();
        let variables = std::env::vars_os().map(|(name, value)| (system::variable_key(&name), value));
        Environment {
            variables: with_visual_studio(variables.collect(), &host),
            directory: std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/")),
            host,
            host_processor: system::processor(),
            distribution: distribution(),
            jobserver,
            parallelism: std::thread::available_parallelism().map_or(1, usize::from),
            is_sealed: false,
        }
    }

    /// An environment of exactly these variables, with no jobserver; for tests and sandboxes.
    pub fn from_variables<K, V>(
        variables: impl IntoIterator<Item = (K, V)>,
        directory: impl Into<PathBuf>,
    ) -> Self
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        Environment {
            variables: variables
                .into_iter()
                .map(|(name, value)| (system::variable_key(&name.into()), value.into()))
                .collect(),
            directory: directory.into(),
            host: Target::host(),
            host_processor: String::new(),
            distribution: Vec::new(),
            jobserver: None,
            parallelism: 2,
            is_sealed: false,
        }
    }

    /// The same machine and jobserver with exactly these variables: for actions of other build systems, whose results follow
    /// from what they are given. Files of the user's own are not looked for either.
    #[must_use]
    pub fn sealed<K: Into<OsString>, V: Into<OsString>>(
        &self,
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let variables = variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        // Code for the processor that a build happens to run on would follow from more than that.
        Environment { variables, host_processor: String::new(), is_sealed: true, ..self.clone() }
    }

    /// Whether nothing is looked for but what variables name.
    pub(crate) fn is_sealed(&self) -> bool {
        self.is_sealed
    }

    /// The same snapshot with one variable replaced.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(system::variable_key(&name.into()), value.into());
        self
    }

    /// The value of a variable, when set and not empty.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(&system::variable_key(OsStr::new(name)));
        value.map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// The same where Zig, if it is called, keeps its cache in a folder.
    #[must_use]
    pub fn with_zig_cache(self, folder: &Path) -> Self {
        self.with(ZIG_CACHES[0], folder)
    }

    /// The machine that the build runs on.
    pub fn host(&self) -> &Target {
        &self.host
    }

    /// The directory that relative paths in variables are relative to.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Where this user's caches of the project live: `AOTI_CACHE_DIR`, else `aoti` in the user's cache folder.
    /// `None` when the environment names no such folder.
    pub fn cache_directory(&self) -> Option<PathBuf> {
        if let Some(explicit) = self.variable("AOTI_CACHE_DIR") {
            return Some(self.directory.join(explicit));
        }
        let absolute = |name: &str| self.variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
        if let Some(cache) = absolute("XDG_CACHE_HOME") {
            return Some(cache.join("aoti"));
        }
        if let Some(local) = absolute("LOCALAPPDATA") {
            return Some(local.join("aoti").join("cache"));
        }
        let home = absolute("HOME")?;
        let caches = if self.host.as_str().contains("darwin") { "Library/Caches" } else { ".cache" };
        Some(home.join(caches).join("aoti"))
    }

    /// Where temporary folders are made.
    pub fn temporary_directory(&self) -> PathBuf {
        ["TMPDIR", "TEMP", "TMP"]
            .iter()
            .find_map(|name| self.variable(name))
            .map_or_else(|| PathBuf::from("/tmp"), |value| self.directory.join(value))
    }

    /// One line that stands for this host's processor; part of the key of what is built for `native`.
    pub(crate) fn host_processor(&self) -> &str {
        &self.host_processor
    }

    /// Names of the distribution and of those that it derives from, nearest first.
    pub(crate) fn distribution(&self) -> &[String] {
        &self.distribution
    }

    pub(crate) fn jobserver(&self) -> Option<&Client> {
        self.jobserver.as_ref()
    }

    pub(crate) fn parallelism(&self) -> usize {
        self.parallelism
    }

    /// The variables that a tool is started with: ours, with messages in English and a fixed clock.
    pub(crate) fn for_tools(&self) -> BTreeMap<OsString, OsString> {
        let mut variables = self.variables.clone();
        for name in DROPPED {
            variables.remove(OsStr::new(name));
        }
        // Zig runs nowhere without a folder of its own, and containers have no `HOME`.
        let is_homeless = ZIG_CACHES.iter().all(|name| self.variable(name).is_none());
        if let Some(cache) = self.cache_directory().filter(|_| is_homeless) {
            variables.insert(ZIG_CACHES[0].into(), cache.join("zig").into());
        }
        variables.insert("LC_ALL".into(), "C".into());
        variables.insert("SOURCE_DATE_EPOCH".into(), "0".into());
        variables
    }

    /// The variables that change results, as `NAME=value` lines.
    pub(crate) fn influences(&self) -> String {
        self.lines_of(&INFLUENTIAL)
    }

    /// The variables that change which programs work together, as `NAME=value` lines.
    pub(crate) fn finding(&self) -> String {
        self.lines_of(&FINDING)
    }

    fn lines_of(&self, names: &[&str]) -> String {
        let mut lines = String::new();
        for name in names {
            if let Some(value) = self.variable(name) {
                lines.push_str(&format!("{name}={}\n", value.to_string_lossy()));
            }
        }
        lines
    }
}

/// With what Visual Studio's command prompt sets, where there is a Visual Studio and the program was started elsewhere: its
/// compilers, and clang, find headers and libraries by that.
fn with_visual_studio(
    mut variables: BTreeMap<OsString, OsString>,
    host: &Target,
) -> BTreeMap<OsString, OsString> {
    if variables.contains_key(OsStr::new("VCINSTALLDIR")) {
        return variables;
    }
    let compiler = cc::windows_registry::find_tool(host.as_str(), "cl.exe").map(|tool| tool.to_command());
    for (name, value) in compiler.iter().flat_map(|command| command.get_envs()) {
        if let Some(value) = value {
            variables.insert(system::variable_key(name), value.to_owned());
        }
    }
    variables
}

fn distribution() -> Vec<String> {
    if cfg!(any(target_os = "macos", windows)) {
        return vec![std::env::consts::OS.to_owned()];
    }
    let text = std::fs::read_to_string("/etc/os-release").unwrap_or_default();
    let mut names = Vec::new();
    for field in ["ID=", "ID_LIKE="] {
        let value = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        names.extend(value.trim_matches('"').split_whitespace().map(|name| {
            let suse = name.contains("suse");
            if suse { "suse".to_owned() } else { name.to_owned() }
        }));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zig_has_a_cache_where_there_is_no_home() {
        let cache = |variables: &[(&str, &str)]| {
            let environment = Environment::from_variables(variables.iter().copied(), "/");
            environment.for_tools().get(OsStr::new("ZIG_GLOBAL_CACHE_DIR")).cloned()
        };
        assert_eq!(cache(&[("AOTI_CACHE_DIR", "/c")]), Some("/c/zig".into()));
        assert_eq!(cache(&[("AOTI_CACHE_DIR", "/c"), ("HOME", "/h")]), None);
        assert_eq!(cache(&[]), None);
    }

    #[test]
    fn a_sealed_environment_has_what_it_is_given_and_nothing_of_the_users() {
        let folder = tempfile::tempdir().unwrap();
        fs_err::create_dir(folder.path().join(".cargo")).unwrap();
        fs_err::write(folder.path().join(".cargo/aoti.toml"), "").unwrap();
        let open = Environment::from_variables([("HOME", "/x"), ("CXX", "clang++")], folder.path());
        assert!(crate::user_file(&open).is_some() && open.cache_directory().is_some());
        let sealed = open.sealed([("PATH", "/tools")]);
        assert_eq!(crate::user_file(&sealed), None);
        assert_eq!(sealed.cache_directory(), None);
        assert_eq!(sealed.variable("CXX"), None);
        assert_eq!(sealed.variable("PATH"), Some(OsStr::new("/tools")));
        assert_eq!(sealed.directory(), open.directory());
    }
}
