//! The declarations in `toolchains/*.toml`.
//!
//! Owns their schema and checks it. Looks at nothing on the machine: what is really there is the business of
//! [`find`](crate::find) and [`probe`](crate::probe).

use std::collections::BTreeMap;
use std::path::Path;

use serde_core::de::Error as _;
use serde_core::{Deserialize, Deserializer, Serialize, Serializer};

use crate::device_class::Device;
use crate::error::Error;
use crate::fields::read_fields;
use crate::target::{ObjectFormat, Target};

/// Which compiler a program turns out to be, whatever its file name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    /// GNU.
    Gcc,
    /// LLVM, vendors' builds included.
    Clang,
    /// NVIDIA's driver around a host compiler.
    Nvcc,
    /// AMD's driver around clang.
    Hipcc,
}

impl Family {
    /// The name used in definitions and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Family::Gcc => "gcc",
            Family::Clang => "clang",
            Family::Nvcc => "nvcc",
            Family::Hipcc => "hipcc",
        }
    }

    const ALL: [Family; 4] = [Family::Gcc, Family::Clang, Family::Nvcc, Family::Hipcc];
}

impl<'de> Deserialize<'de> for Family {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Family, D::Error> {
        let name = String::deserialize(deserializer)?;
        let family = Family::ALL.into_iter().find(|family| family.as_str() == name);
        family.ok_or_else(|| D::Error::unknown_variant(&name, &["gcc", "clang", "nvcc", "hipcc"]))
    }
}

impl Serialize for Family {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One toolchain, as declared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    /// The name that users and reports call it by.
    pub name: String,
    /// One phrase for reports.
    pub summary: String,
    /// The compiler that the probe must find.
    pub kind: Family,
    /// Order among toolchains that serve the same request; the smallest is tried first.
    pub priority: u32,
    /// Oldest major version that understands the arguments.
    pub minimum_version: u32,
    /// How candidates are found.
    pub find: Find,
    /// The (device, target) pairs that it serves.
    pub serves: Vec<Serves>,
    /// What `{machine}` stands for in the arguments of `find`, by Rust target triple.
    pub machines: BTreeMap<String, String>,
    /// What `{static-machine}` stands for in `link-static`, where it is not the same.
    pub static_machines: BTreeMap<String, String>,
    /// What `{sdk}` stands for in the subcommand of `find`, likewise.
    pub sdks: BTreeMap<String, String>,
    /// Arguments of each kind of call for the CPU.
    pub arguments: Arguments,
    /// Lists of `arguments` that are others for targets of an object format, by its name.
    pub formats: BTreeMap<String, FormatArguments>,
    /// Arguments of calls for a GPU.
    pub device: Option<DeviceArguments>,
    /// Instruction-set levels by name.
    pub levels: BTreeMap<String, Level>,
    /// How to install it, by distribution (`ID` of os-release), or on `any` system.
    pub install: BTreeMap<String, String>,
}

read_fields!(Definition {
    name, summary, kind, priority, minimum_version = "minimum-version", find, serves,
} or_default { machines, static_machines = "static-machines", sdks, arguments, formats, device, levels, install });

/// How candidates of a toolchain are found, in this order: variables, home variables, programs on `PATH`, places,
/// packages of Python environments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Find {
    /// Arguments given in every call, the probe included.
    pub arguments: Vec<String>,
    /// Words between a program that was found by its name and everything else, where it is several tools in one; a variable
    /// says them itself.
    pub subcommand: Vec<String>,
    /// The same for its archiver.
    pub archiver_subcommand: Vec<String>,
    /// Variables that name the compiler, tried with `_<target>`, `HOST_` and `TARGET_` as the `cc` crate does.
    pub variables: Vec<String>,
    /// Variables that say where the program is, and not that it is wanted.
    pub place_variables: Vec<String>,
    /// Names on `PATH`.
    pub programs: Vec<String>,
    /// Variables that name an installation whose `bin` holds the programs.
    pub home_variables: Vec<String>,
    /// Where such an installation, if not itself, has the folder with that `bin`; `*` as in `places`.
    pub home_folders: Vec<String>,
    /// Usual installation folders; a `*` in a part stands for anything, and the newest version goes first.
    pub places: Vec<String>,
    /// Folders of Python packages that hold the programs, or a `bin` with them, below `site-packages`; `*` as in `places`.
    pub python_packages: Vec<String>,
    /// Programs beside the compiler, or found as it is, that are used where they are there.
    pub helpers: Vec<String>,
    /// Variables that name another program beside which helpers may be.
    pub helper_variables: Vec<String>,
    /// Variables that name the host compiler that the compiler itself calls.
    pub host_variables: Vec<String>,
    /// Host compilers on `PATH`, tried in this order until the compiler accepts one.
    pub host_programs: Vec<String>,
    /// Variables that name the archiver.
    pub archiver_variables: Vec<String>,
    /// Archivers on `PATH`.
    pub archivers: Vec<String>,
}

read_fields!(Find { variables, programs } or_default {
    arguments, subcommand, archiver_subcommand = "archiver-subcommand", place_variables = "place-variables",
    home_variables = "home-variables", home_folders = "home-folders", places, python_packages = "python-packages", helpers,
    helper_variables = "helper-variables", host_variables = "host-variables", host_programs = "host-programs",
    archiver_variables = "archiver-variables", archivers,
});

/// One device with the targets that it is served for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Serves {
    /// The device.
    pub device: Device,
    /// Rust target triples of the host side.
    pub targets: Vec<String>,
}

read_fields!(Serves { device, targets });

/// Argument lists of each kind of call. `{directory}` stands for the folder of the call, `{sanitizers}` for the
/// comma-separated sanitizers asked for; in links of shared libraries, `{name}` for that of the library and `{exports}` for the
/// file that says what it exports, as linkers of the object format read it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Arguments {
    /// Every compile of C++.
    pub compile: Vec<String>,
    /// Every compile of C.
    pub compile_c: Vec<String>,
    /// Compiles for speed.
    pub optimize: Vec<String>,
    /// Compiles for small code; as for speed, if absent.
    pub optimize_size: Option<Vec<String>>,
    /// Compiles for debugging, instead of `optimize`.
    pub debug: Vec<String>,
    /// Added under sanitizers.
    pub sanitize: Vec<String>,
    /// Every assembly.
    pub assemble: Vec<String>,
    /// Every link.
    pub link: Vec<String>,
    /// Links without sanitizers: names every library there is.
    pub link_strict: Vec<String>,
    /// Links with sanitizers, whose runtimes the driver must add.
    pub link_sanitize: Vec<String>,
    /// Links of shared libraries.
    pub link_shared: Vec<String>,
    /// Links of executables.
    pub link_executable: Vec<String>,
    /// Added for executables that need no library of the machine that they run on.
    pub link_static: Vec<String>,
    /// Removes symbols nobody resolves against; not used when debugging.
    pub strip: Vec<String>,
    /// Every compile, after all other arguments: the user's own, which can change those.
    pub last: Vec<String>,
    /// Every link, likewise.
    pub link_last: Vec<String>,
}

read_fields!(Arguments {
    compile, compile_c = "compile-c", optimize, debug, sanitize, assemble, link, link_strict = "link-strict",
    link_sanitize = "link-sanitize", link_shared = "link-shared", link_executable = "link-executable",
    link_static = "link-static", strip,
} or_default { optimize_size = "optimize-size", last, link_last = "link-last" });

/// Lists in the place of those of [`Arguments`].
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FormatArguments {
    compile: Option<Vec<String>>,
    compile_c: Option<Vec<String>>,
    assemble: Option<Vec<String>>,
    link: Option<Vec<String>>,
    link_strict: Option<Vec<String>>,
    link_shared: Option<Vec<String>>,
    link_executable: Option<Vec<String>>,
    link_static: Option<Vec<String>>,
    strip: Option<Vec<String>>,
}

read_fields!(FormatArguments {} or_default {
    compile, compile_c = "compile-c", assemble, link, link_strict = "link-strict", link_shared = "link-shared",
    link_executable = "link-executable", link_static = "link-static", strip,
});

impl FormatArguments {
    fn laid_over(&self, base: &mut Arguments) {
        let lists = [
            (&self.compile, &mut base.compile),
            (&self.compile_c, &mut base.compile_c),
            (&self.assemble, &mut base.assemble),
            (&self.link, &mut base.link),
            (&self.link_strict, &mut base.link_strict),
            (&self.link_shared, &mut base.link_shared),
            (&self.link_executable, &mut base.link_executable),
            (&self.link_static, &mut base.link_static),
            (&self.strip, &mut base.strip),
        ];
        for (own, list) in lists {
            if let Some(own) = own {
                list.clone_from(own);
            }
        }
    }
}

/// Argument lists of calls for a GPU. `{architecture}` stands for `sm_90a` or `gfx90a`, `{virtual}` for `compute_90a`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceArguments {
    /// What sources are called behind the dot.
    pub suffix: String,
    /// Every compile.
    pub compile: Vec<String>,
    /// Compiles for speed.
    pub optimize: Vec<String>,
    /// Compiles for debugging, instead of `optimize`.
    pub debug: Vec<String>,
    /// Asks for machine code of one architecture; absent where the compiler makes none.
    pub binary: Option<Vec<String>>,
    /// Asks for portable text (PTX); absent where there is none.
    pub text: Option<Vec<String>>,
    /// Every compile, after all other arguments.
    pub last: Vec<String>,
}

read_fields!(DeviceArguments { suffix, compile, optimize, debug } or_default { binary, text, last });

/// One instruction-set level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// Architecture of the targets that have it; any, if absent.
    pub architecture: Option<String>,
    /// Depends on the machine that compiles, so only that machine may use the result.
    pub host_only: bool,
    /// Arguments that select it.
    pub arguments: Vec<String>,
}

read_fields!(Level { arguments } or_default { architecture, host_only = "host-only" });

impl Level {
    fn is_for(&self, target: &Target, is_native: bool) -> bool {
        let of_architecture = self.architecture.as_deref().is_none_or(|name| name == target.architecture());
        of_architecture && (is_native || !self.host_only)
    }
}

impl Definition {
    /// Reads one definition. `file` is only for messages.
    ///
    /// # Errors
    /// [`Error::Definition`] for text that is not TOML, has unknown or missing keys, or contradicts itself.
    pub fn parse(file: &str, text: &str) -> Result<Self, Error> {
        let fail = |message: String| Error::Definition { file: file.to_owned(), message };
        let definition: Definition = toml::from_str(text).map_err(|error| fail(error.to_string()))?;
        if definition.find.variables.is_empty() && definition.find.programs.is_empty() {
            return Err(fail("nothing says how it is found".to_owned()));
        }
        if definition.serves.iter().all(|serves| serves.targets.is_empty()) {
            return Err(fail("it serves no target".to_owned()));
        }
        definition.check().map_err(fail)?;
        Ok(definition)
    }

    /// What it serves and the arguments that it has must be about the same devices.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_for = |device: Device| self.serves.iter().any(|serves| serves.device == device);
        let is_for_gpu = Device::GPUS.into_iter().any(is_for);
        if is_for_gpu != self.device.is_some() {
            return Err("it needs a table `device` if it serves a GPU, and only then".to_owned());
        }
        let is_format = |name: &String| ObjectFormat::ALL.iter().any(|format| format.as_str() == name);
        if let Some(name) = self.formats.keys().find(|name| !is_format(name)) {
            return Err(format!("`{name}` is no object format"));
        }
        let names_machine = self.find.arguments.iter().any(|argument| argument.contains(MACHINE));
        let mut targets = self.serves.iter().flat_map(|serves| &serves.targets);
        if let Some(target) = targets.find(|target| names_machine && !self.machines.contains_key(*target)) {
            return Err(format!("`machines` does not say what `{target}` is"));
        }
        let names_sdk = self.find.subcommand.iter().any(|word| word.contains(SDK));
        let mut targets = self.serves.iter().flat_map(|serves| &serves.targets);
        if let Some(target) = targets.find(|target| names_sdk && !self.sdks.contains_key(*target)) {
            return Err(format!("`sdks` does not say what `{target}` is"));
        }
        if is_for(Device::Cpu) && self.arguments.compile.is_empty() {
            return Err("it serves the CPU and has no arguments for compiles".to_owned());
        }
        let makes = |device: &DeviceArguments| device.binary.is_some() || device.text.is_some();
        if self.device.as_ref().is_some_and(|device| !makes(device)) {
            return Err("its table `device` has neither `binary` nor `text`".to_owned());
        }
        Ok(())
    }

    /// The GPU that it is for, if it is for one.
    pub fn gpu(&self) -> Option<Device> {
        self.serves.iter().map(|serves| serves.device).find(|device| *device != Device::Cpu)
    }

    /// Whether the definition declares this pair.
    pub fn declares(&self, device: Device, target: &Target) -> bool {
        self.serves.iter().any(|serves| {
            let is_target = |triple: &String| Target::new(triple).is_same_platform(target);
            serves.device == device && serves.targets.iter().any(is_target)
        })
    }

    /// The same with the arguments for a target.
    pub(crate) fn for_target(&self, target: &Target) -> Definition {
        let mut made = self.clone();
        let is_target = |(triple, _): &(&String, &String)| Target::new(*triple).is_same_platform(target);
        let named =
            |names: &BTreeMap<String, String>| names.iter().find(is_target).map(|(_, name)| name.clone());
        // A target of a user's own may be none of those that the base knows.
        let machine = named(&self.machines).unwrap_or_else(|| target.to_string());
        let of_static = named(&self.static_machines).unwrap_or_else(|| machine.clone());
        for argument in &mut made.find.arguments {
            *argument = argument.replace(MACHINE, &machine);
        }
        if let Some(sdk) = named(&self.sdks) {
            for word in &mut made.find.subcommand {
                *word = word.replace(SDK, &sdk);
            }
        }
        for argument in &mut made.arguments.link_static {
            *argument = argument.replace(STATIC_MACHINE, &of_static);
        }
        if let Some(own) = self.formats.get(target.platform().format.as_str()) {
            own.laid_over(&mut made.arguments);
        }
        made
    }

    /// The level with this name, if it is one of this target's.
    pub fn level_for(&self, name: &str, target: &Target, is_native: bool) -> Option<&Level> {
        self.levels.get(name).filter(|level| level.is_for(target, is_native))
    }

    /// The names of the levels that it has for a target.
    pub fn level_names(&self, target: &Target, is_native: bool) -> Vec<&str> {
        let fits = |(_, level): &(&String, &Level)| level.is_for(target, is_native);
        self.levels.iter().filter(fits).map(|(name, _)| name.as_str()).collect()
    }

    /// How to install it on the first of these distributions that the definition knows.
    pub fn install_help(&self, distribution: &[String]) -> Option<&str> {
        let own = distribution.iter().find_map(|name| self.install.get(name));
        own.or_else(|| self.install.get("any")).map(String::as_str)
    }
}

/// Stands for the target in arguments.
const MACHINE: &str = "{machine}";
/// Stands for what a target's headers and libraries are called.
const SDK: &str = "{sdk}";
/// Stands for the target in arguments that make programs which need no library.
const STATIC_MACHINE: &str = "{static-machine}";

/// The definitions that come with the crate, in order of priority.
pub fn definitions() -> Vec<Definition> {
    // Of the same priority, those of GPUs come first.
    let mut all: Vec<Definition> = Device::GPUS
        .into_iter()
        .chain([Device::Cpu])
        .flat_map(Device::toolchains)
        .map(|(file, text)| {
            Definition::parse(file, text).expect("embedded definitions are checked by a test")
        })
        .collect();
    all.sort_by_key(|definition| definition.priority);
    all
}

/// The variable that says where a compiler is which the variables of the `cc` crate do not name: one that is several tools.
pub fn place_variable(program: &Path) -> Option<String> {
    let name = program.file_stem()?.to_str()?;
    let all = definitions().into_iter().map(|definition| definition.find);
    let mut fitting =
        all.filter(|find| find.variables.is_empty() && find.programs.iter().any(|own| own == name));
    fitting.next()?.place_variables.into_iter().next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_definitions_parse_and_have_distinct_names() {
        let all = definitions();
        assert_eq!(all.len(), Device::ALL.into_iter().flat_map(Device::toolchains).count());
        let names: std::collections::BTreeSet<_> = all.iter().map(|definition| &definition.name).collect();
        assert_eq!(names.len(), all.len());
    }

    #[test]
    fn no_definition_asks_for_arguments_that_change_values() {
        for definition in definitions() {
            let ours = definition.arguments;
            let small = ours.optimize_size.unwrap_or_default();
            let mut every =
                [ours.compile, ours.compile_c, ours.optimize, small, ours.debug, ours.last].concat();
            // At a link these make compilers add start files that change how the whole process rounds.
            every.extend([ours.link, ours.link_strict, ours.link_shared, ours.link_executable].concat());
            every.extend([ours.link_static, ours.link_sanitize, ours.link_last, ours.strip].concat());
            every.extend(definition.levels.into_values().flat_map(|level| level.arguments));
            if let Some(device) = definition.device {
                every.extend([device.compile, device.optimize, device.last].concat());
            }
            for argument in every {
                for banned in [
                    "fast-math",
                    "use_fast_math",
                    "unsafe-math",
                    "finite-math",
                    "associative",
                    "Ofast",
                    "no-signed-zeros",
                    "crtfastmath",
                    "daz-ftz",
                ] {
                    assert!(!argument.contains(banned), "{}: {argument}", definition.name);
                }
            }
        }
    }

    #[test]
    fn a_compiler_that_is_several_tools_has_a_variable_of_its_own() {
        let variable = |program: &str| place_variable(Path::new(program));
        assert_eq!(variable("/opt/zig/zig").as_deref(), Some("CARGO_ZIGBUILD_ZIG_PATH"));
        assert_eq!(variable("/usr/bin/g++"), None);
        assert_eq!(variable("/usr/bin/clang++"), None);
    }

    #[test]
    fn unknown_keys_are_errors() {
        let text = format!("surprise = 1\n{}", Device::Cpu.toolchains()[0].1);
        let error = Definition::parse("x.toml", &text).unwrap_err();
        assert!(error.to_string().contains("surprise"), "{error}");
    }
}
