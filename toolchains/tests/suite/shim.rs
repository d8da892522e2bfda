//! Compilers that are scripts: what is found, what is asked, what is remembered, what is refused and why.

#![cfg(unix)]

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use aoti_toolchain::{Environment, Error, Mode, Requirements, Target, Toolchains, Verdict};

use crate::common::{Log, compile};

/// A folder with scripts, on the only `PATH` there is; `calls` gets one line for each call.
pub(crate) struct Machine {
    folder: tempfile::TempDir,
    variables: Vec<(OsString, OsString)>,
}

impl Machine {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["bin", "other", "cache", "tmp"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        Machine { folder, variables: Vec::new() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn script(&self, path: &str, body: &str) -> PathBuf {
        let path = self.path(path);
        let calls = self.path("calls");
        let text = format!("#!/bin/sh\necho \"$@\" >> {}\n{body}\n", calls.display());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A script that answers like a compiler of a family and copies its sources to its output.
    pub(crate) fn compiler(&self, path: &str, family: &str, major: u32, machine: &str) -> PathBuf {
        self.script(
            path,
            &format!(
                "case \"$*\" in\n\
                 *-E*) echo 'aoti_family {family} {major}'; echo aoti_headers;;\n\
                 *--version*) echo '{family} (shim) {major}.1';;\n\
                 *-dumpmachine*) echo {machine};;\n\
                 *-print-prog-name*) echo none;;\n\
                 *) for last; do :; done; echo object > \"$last\";;\n\
                 esac"
            ),
        )
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<OsString>) {
        self.variables.push((name.into(), value.into()));
    }

    pub(crate) fn environment(&self) -> Environment {
        let path = format!("{}:{}", self.path("bin").display(), self.path("other").display());
        Environment::from_variables(
            [("PATH", OsString::from(path)), ("TMPDIR", self.path("tmp").into())],
            "/",
        )
        .with_all(&self.variables)
    }

    pub(crate) fn toolchains(&self) -> Toolchains {
        Toolchains::new(&self.environment(), Some(&self.path("cache")))
    }

    pub(crate) fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

trait WithAll {
    fn with_all(self, variables: &[(OsString, OsString)]) -> Self;
}

impl WithAll for Environment {
    fn with_all(self, variables: &[(OsString, OsString)]) -> Self {
        variables.iter().fold(self, |environment, (name, value)| environment.with(name, value))
    }
}

pub(crate) const X86: &str = "x86_64-linux-gnu";

fn request() -> Requirements {
    Requirements::cpu(Target::new("x86_64-unknown-linux-gnu"))
}

#[test]
fn a_compile_passes_the_declared_arguments_and_relative_names() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    let toolchain = machine.toolchains().resolve(&request()).unwrap();
    let action = compile(&toolchain, Some("x86-64-v4"), &Mode::default());
    let executor = aoti_toolchain::Executor::new(&machine.environment(), None, Some(1)).unwrap();
    executor.run_one(&action, &Log::default()).unwrap();
    let call = machine.calls().pop().unwrap();
    for argument in ["-std=c++17", "-fno-exceptions", "-march=x86-64-v4", "-mprefer-vector-width=512"] {
        assert!(call.contains(argument), "{argument} is not in {call}");
    }
    assert!(call.ends_with("-DAOTI_TEST=1 -c kernel.cpp -o kernel.o"), "{call}");
    assert!(!call.contains(&*machine.folder.path().to_string_lossy()), "{call}");
}

#[test]
fn a_second_build_starts_no_process_and_a_replaced_compiler_is_noticed() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    let first = machine.toolchains().resolve(&request()).unwrap().compiler;
    let calls = machine.calls().len();
    let second = machine.toolchains().resolve(&request()).unwrap().compiler;
    assert_eq!(machine.calls().len(), calls, "the probe was not remembered");
    assert_eq!(first.identity, second.identity);

    machine.compiler("bin/g++", "gcc", 14, X86);
    let third = machine.toolchains().resolve(&request()).unwrap().compiler;
    assert_eq!(third.major, 14);
    assert_ne!(first.identity, third.identity);
}

#[test]
fn identity_does_not_depend_on_the_place() {
    let machine = Machine::new();
    let original = machine.compiler("bin/g++", "gcc", 13, X86);
    let first = machine.toolchains().resolve(&request()).unwrap().compiler;
    std::fs::rename(original, machine.path("other/c++")).unwrap();
    let second = machine.toolchains().resolve(&request()).unwrap().compiler;
    assert_ne!(first.launch.program, second.launch.program);
    assert_eq!(first.identity, second.identity);
}

#[test]
fn a_variable_goes_before_priority_and_may_hold_a_wrapper() {
    let mut machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    let clang = machine.compiler("other/my-clang", "clang", 19, X86);
    let wrapper = machine.script("bin/wrapper", "exec \"$@\"");
    machine.set("CXX", format!("wrapper {}", clang.display()));
    let resolution = machine.toolchains().resolution(&request()).unwrap();
    let names = resolution.serving.iter().map(|toolchain| toolchain.name()).collect::<Vec<_>>();
    assert_eq!(names, ["clang", "gcc"]);
    let launch = &resolution.serving[0].compiler.launch;
    assert_eq!(launch.program, wrapper);
    assert_eq!(launch.arguments, [clang.to_string_lossy()]);
    let reasons = resolution.considered.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert!(reasons.iter().any(|reason| reason.contains("variable `CXX` is clang, not gcc")), "{reasons:?}");
}

#[test]
fn a_variable_for_this_target_that_does_not_serve_is_an_error() {
    for (value, reason) in [
        ("no-such-program", "names `no-such-program`, which is not a program"),
        ("old", "is older than version 11"),
        ("arm", "makes code for `aarch64-linux-gnu`, not for `x86_64-unknown-linux-gnu`"),
        ("strange", "is neither gcc nor clang"),
        ("broken", "does not preprocess C++"),
    ] {
        let mut machine = Machine::new();
        machine.compiler("bin/g++", "gcc", 13, X86);
        machine.compiler("bin/old", "gcc", 8, X86);
        machine.compiler("bin/arm", "gcc", 13, "aarch64-linux-gnu");
        machine.compiler("bin/strange", "unknown", 1, X86);
        machine.script("bin/broken", "echo no C++ here >&2; exit 1");
        machine.set("CXX_x86_64_unknown_linux_gnu", value);
        let error = machine.toolchains().resolve(&request()).unwrap_err();
        let Error::NotFound(found) = &error else { panic!("{error}") };
        assert!(
            found.considered.iter().any(|c| matches!(&c.verdict, Verdict::Refused(r) if r.contains(reason)))
        );
        assert!(error.to_string().contains(reason), "{error}");
        assert!(error.to_string().contains("correct or unset it"), "{error}");
    }
}

#[test]
fn targets_that_nothing_serves_are_told_from_those_that_something_does() {
    let machine = Machine::new();
    let request = Requirements::cpu(Target::new("sparc64-unknown-linux-gnu"));
    let error = machine.toolchains().resolve(&request).unwrap_err().to_string();
    assert!(error.contains("help: models can be compiled for `aarch64-"), "{error}");
    assert!(!error.contains("CXX"), "{error}");
}

#[test]
fn an_empty_machine_explains_what_is_missing() {
    let machine = Machine::new();
    let error = machine.toolchains().resolve(&request()).unwrap_err().to_string();
    assert!(error.contains("no toolchain compiles cpu code for `x86_64-unknown-linux-gnu`"), "{error}");
    assert!(error.contains("gcc: not found") && error.contains("clang: not found"), "{error}");
    assert!(error.contains("\n  gcc-aarch64, clang-aarch64, nvcc"), "{error}");
    assert_eq!(error.matches("does not serve cpu on").count(), 1, "{error}");
    let report = machine.toolchains().report();
    assert!(report.entries.iter().all(|entry| entry.serves.is_empty() && entry.toolchain.is_none()));
}

#[test]
fn the_report_tells_targets_and_levels() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    machine.compiler("bin/aarch64-linux-gnu-g++", "gcc", 12, "aarch64-linux-gnu");
    let report = machine.toolchains().report();
    let entry = |name: &str| report.entries.iter().find(|entry| entry.name == name).unwrap();
    let served = |name: &str| {
        let pairs = entry(name).serves.iter();
        pairs.map(|(_, target, levels)| format!("{target}: {}", levels.join(" "))).collect::<Vec<_>>()
    };
    assert!(served("gcc")[0].starts_with("x86_64-unknown-linux-gnu: "), "{:?}", served("gcc"));
    assert!(served("gcc")[0].contains("x86-64 x86-64-v3 x86-64-v4"));
    assert_eq!(served("gcc").len(), 2);
    assert_eq!(served("gcc-aarch64")[0], "aarch64-unknown-linux-gnu: neon");
    assert_eq!(entry("gcc").candidates.len(), 1);
    assert_eq!(entry("gcc").candidates[0].version.as_deref(), Some("(shim) 13.1"));
}

#[test]
fn a_resolution_tells_of_every_candidate_in_the_order_of_preference() {
    let mut machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    machine.compiler("bin/g++-12", "gcc", 12, X86);
    machine.compiler("bin/clang++", "clang", 9, X86);
    machine.compiler("other/mine", "clang", 19, X86);
    let told = |machine: &Machine| {
        let resolution = machine.toolchains().resolution(&request()).unwrap();
        let lines = resolution.considered.iter().map(ToString::to_string).collect::<Vec<_>>();
        (lines[..5].to_vec(), resolution.into_toolchain().map(|one| one.name().to_owned()))
    };
    let (lines, taken) = told(&machine);
    assert_eq!(
        lines,
        [
            "gcc: `g++` on PATH is taken: (shim) 13.1",
            "gcc: `g++-12` on PATH is not tried: `g++` on PATH goes first",
            "clang: `clang++` on PATH is older than version 13: (shim) 9.1",
            "gcc-aarch64: does not serve cpu on `x86_64-unknown-linux-gnu`",
            "clang-aarch64: does not serve cpu on `x86_64-unknown-linux-gnu`",
        ]
    );
    assert_eq!(taken.unwrap(), "gcc");
    machine.set("CXX", machine.path("other/mine"));
    let (lines, taken) = told(&machine);
    assert_eq!(
        lines[..4],
        [
            "gcc: variable `CXX` is clang, not gcc: (shim) 19.1",
            "clang: variable `CXX` is taken: (shim) 19.1",
            "gcc: `g++` on PATH is usable: (shim) 13.1",
            "gcc: `g++-12` on PATH is not tried: `g++` on PATH goes first",
        ]
    );
    assert_eq!(taken.unwrap(), "clang");
    // A wish that cannot be met is not passed over: others would do, and none is taken.
    machine.set("CXX", machine.path("bin/clang++"));
    let resolution = machine.toolchains().resolution(&request()).unwrap();
    assert!(resolution.considered.iter().any(|one| one.verdict == Verdict::Usable));
    assert!(!resolution.considered.iter().any(|one| one.verdict == Verdict::Taken));
    assert!(resolution.help[0].contains("correct or unset it"), "{:?}", resolution.help);
    assert!(resolution.into_toolchain().is_err());
}

#[test]
fn a_fingerprint_changes_with_whatever_changes_results() {
    let mut machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    let print = |machine: &Machine, level: &str| {
        let toolchain = machine.toolchains().resolve(&request()).unwrap();
        toolchain.fingerprint(&[level.to_owned()], &machine.environment())
    };
    let plain = print(&machine, "x86-64");
    assert_eq!(plain, print(&machine, "x86-64"));
    machine.set("CPATH", "/elsewhere");
    assert_ne!(plain, print(&machine, "x86-64"));
    machine.set("CPATH", "");
    assert_eq!(plain, print(&machine, "x86-64"));
    machine.compiler("bin/g++", "gcc", 14, X86);
    assert_ne!(plain, print(&machine, "x86-64"));
}

/// As a package manager that sets times, or a file system with coarse ones: size, time and name are the same.
#[test]
fn another_compiler_at_the_same_path_and_time_is_noticed() {
    for in_place in [true, false] {
        let machine = Machine::new();
        let path = machine.compiler("bin/g++", "gcc", 13, X86);
        let first = machine.toolchains().resolve(&request()).unwrap().compiler;
        let before = std::fs::metadata(&path).unwrap();
        if in_place {
            let text = std::fs::read_to_string(&path).unwrap().replace(" 13", " 14");
            std::fs::write(&path, text).unwrap();
        } else {
            machine.compiler("bin/new", "gcc", 14, X86);
            std::fs::rename(machine.path("bin/new"), &path).unwrap();
        }
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(before.modified().unwrap())
            .unwrap();
        let after = std::fs::metadata(&path).unwrap();
        assert_eq!((before.len(), before.modified().unwrap()), (after.len(), after.modified().unwrap()));
        let second = machine.toolchains().resolve(&request()).unwrap().compiler;
        assert_eq!(second.major, 14, "in place: {in_place}");
        let keys = [first, second].map(|compiler| compiler.identity);
        assert_ne!(keys[0], keys[1], "in place: {in_place}");
    }
}

#[test]
fn a_missing_archiver_is_a_reason() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    let wish = Requirements { archive: true, ..request() };
    let error = machine.toolchains().resolve(&wish).unwrap_err().to_string();
    assert!(error.contains("has no archiver"), "{error}");
    machine.script("bin/ar", "echo 'GNU ar 2.40'");
    let toolchain = machine.toolchains().resolve(&wish).unwrap();
    assert!(toolchain.archiver.unwrap().launch.program.ends_with(Path::new("bin/ar")));
}

#[test]
fn a_tool_that_writes_nothing_or_is_gone_is_told() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    let toolchain = machine.toolchains().resolve(&request()).unwrap();
    let action = compile(&toolchain, None, &Mode::default());
    let executor = aoti_toolchain::Executor::new(&machine.environment(), None, Some(1)).unwrap();
    machine.script("bin/g++", "exit 0");
    let error = executor.run_one(&action, &Log::default()).unwrap_err();
    assert!(matches!(&error, Error::OutputMissing { output, .. } if output == "kernel.o"), "{error}");
    std::fs::remove_file(machine.path("bin/g++")).unwrap();
    let error = executor.run_one(&action, &Log::default()).unwrap_err();
    assert!(matches!(error, Error::Spawn { .. }), "{error}");
}

fn folders(machine: &Machine, path: &str) {
    std::fs::create_dir_all(machine.path(path)).unwrap();
}

#[test]
fn the_newest_android_ndk_of_an_sdk_is_found() {
    let mut machine = Machine::new();
    for version in ["9.2.1", "27.2.12479018"] {
        let bin = format!("sdk/ndk/{version}/toolchains/llvm/prebuilt/linux-x86_64/bin");
        folders(&machine, &bin);
        machine.compiler(&format!("{bin}/clang++"), "clang", 18, "aarch64-unknown-linux-android21");
        machine.script(&format!("{bin}/llvm-ar"), "echo LLVM version 18");
    }
    // One for the machine itself, which has no headers of Android.
    machine.compiler("bin/clang++", "clang", 19, X86);
    machine.set("ANDROID_HOME", machine.path("sdk"));
    let android = Target::new("aarch64-linux-android");
    let requirements = Requirements { archive: true, ..Requirements::cpu(android) };
    let found = machine.toolchains().resolve(&requirements).unwrap();
    assert_eq!(found.name(), "clang-android");
    let ndk = machine.path("sdk/ndk/27.2.12479018");
    assert!(found.compiler.launch.program.starts_with(&ndk), "{:?}", found.compiler.launch);
    assert_eq!(found.compiler.launch.arguments, ["--target=aarch64-linux-android21"]);
    assert!(found.archiver.unwrap().launch.program.starts_with(&ndk));

    // Its own variable names the NDK itself, and goes first.
    machine.set("ANDROID_NDK_HOME", machine.path("sdk/ndk/9.2.1"));
    let found = machine.toolchains().resolve(&requirements).unwrap();
    assert!(found.compiler.launch.program.starts_with(machine.path("sdk/ndk/9.2.1")));
}

#[test]
fn xcode_is_asked_for_the_sdk_of_each_system() {
    let machine = Machine::new();
    machine.script("bin/llvm-ar", "echo LLVM version 18");
    for (target, sdk, named, told) in [
        ("aarch64-apple-ios", "iphoneos", "arm64-apple-ios10.0", "arm64-apple-ios10.0.0"),
        (
            "aarch64-apple-ios-sim",
            "iphonesimulator",
            "arm64-apple-ios14.0-simulator",
            "arm64-apple-ios14.0.0-simulator",
        ),
        ("aarch64-apple-darwin", "macosx", "arm64-apple-macosx11.0", "arm64-apple-darwin20.1.0"),
    ] {
        machine.compiler("bin/xcrun", "clang", 17, told);
        let requirements = Requirements { archive: true, ..Requirements::cpu(Target::new(target)) };
        let found =
            machine.toolchains().resolve(&requirements).unwrap_or_else(|error| panic!("{target}: {error}"));
        assert_eq!((found.name(), found.compiler.machine.as_str()), ("xcode", told));
        assert_eq!(found.compiler.launch.arguments, ["--sdk", sdk, "clang++", "-target", named]);
    }
}

#[test]
fn clang_serves_windows_where_visual_studio_s_headers_are_named() {
    let mut machine = Machine::new();
    machine.script("bin/llvm-ar", "echo LLVM version 18");
    machine.script(
        "bin/clang++",
        "case \"$*\" in\n\
         *-E*) echo 'aoti_family clang 19'; [ -z \"$INCLUDE\" ] || echo aoti_headers;;\n\
         *--version*) echo 'clang (shim) 19.1';;\n\
         *-dumpmachine*) echo x86_64-pc-windows-msvc;;\n\
         esac",
    );
    let requirements = Requirements::cpu(Target::new("x86_64-pc-windows-msvc"));
    let refused = machine.toolchains().resolve(&requirements).unwrap_err().to_string();
    assert!(refused.contains("finds no C library headers for `x86_64-pc-windows-msvc`"), "{refused}");
    assert!(refused.contains("`INCLUDE` and `LIB`"), "{refused}");
    machine.set("INCLUDE", "/sdk/crt/include;/sdk/include/ucrt");
    let found = machine.toolchains().resolve(&requirements).unwrap();
    assert_eq!(found.name(), "clang-msvc");
    let action = compile(&found, Some("x86-64-v3"), &Mode::default());
    assert!(!action.arguments.iter().any(|argument| argument == "-fPIC"), "{:?}", action.arguments);
}

#[test]
fn each_target_has_a_toolchain_or_the_command_that_gets_one() {
    let machine = Machine::new();
    machine.compiler("bin/g++", "gcc", 13, X86);
    machine.script("bin/ar", "echo GNU ar 2.40");
    let targets = machine.toolchains().report().targets;
    let of = |name: &str| targets.iter().find(|entry| entry.target.as_str() == name).expect("it is listed");
    assert_eq!(of("x86_64-unknown-linux-gnu").toolchain.as_deref(), Some("gcc"));
    assert!(of("x86_64-unknown-linux-gnu").levels.contains(&"x86-64-v3".to_owned()));
    assert_eq!(of("wasm32-wasip1").install.as_deref(), Some("pip install ziglang"));
    assert!(of("aarch64-linux-android").install.as_ref().unwrap().contains("ANDROID_NDK_HOME"));
    assert!(targets.iter().all(|entry| entry.toolchain.is_some() || entry.install.is_some()));
}
