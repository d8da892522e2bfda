//! Other build systems: a program in C++ with two models that Bazel or CMake compiles. Their actions read what they are given
//! and nothing else, so the same bytes come out elsewhere, and a change rebuilds what depends on it.

use std::path::{Path, PathBuf};
use std::process::Command;

use aoti_tests::models::SCALED;
use aoti_tests::subcommand::{Ended, program, workspace};
use aoti_tests::tools;
use tempfile::TempDir;

const MAIN: &str = include_str!("../programs/two_models.cc");
/// What it prints: `SCALED` multiplies by 1, 2 and 3, and the other by twice that.
const PRINTED: &str = "34 68\n";

/// The other model, with these weights.
fn other(weights: &str) -> String {
    SCALED.replace("\"scaled\"", "\"other\"").replace("1.0, 2.0, 3.0", weights)
}

fn write(folder: &Path, name: &str, text: &str) {
    let path = folder.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// What the test's program prints.
#[track_caller]
fn printed(program: &Path) -> String {
    Ended::of(&mut Command::new(program)).succeeded().stdout
}

/// Variables that mean something to cargo-aoti on its own: what actions do must not follow from them.
fn disturbed(command: &mut Command) -> &mut Command {
    command
        .env("CXX", "/bin/false")
        .env("AR", "/bin/false")
        .env("AOTI_BUILD", "bindings")
        .env("AOTI_CACHE_REMOTE", "none:")
}

/// A Bazel workspace with a toolchain and the program.
struct Bazel {
    folder: TempDir,
}

impl Bazel {
    fn new() -> Bazel {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        let rules = workspace().join("build-support/bazel");
        write(
            at,
            "ws/WORKSPACE",
            &format!(
                "workspace(name = \"ws\")\nlocal_repository(name = \"aoti\", path = {rules:?})\n\
                 register_toolchains(\"//tools:all\")\n"
            ),
        );
        write(
            at,
            "ws/tools/BUILD",
            "load(\"@aoti//:defs.bzl\", \"aoti_toolchain\")\n\
             aoti_toolchain(name = \"programs\", cargo_aoti = \"cargo-aoti\")\n\
             toolchain(name = \"aoti\", toolchain = \":programs\", toolchain_type = \"@aoti//:toolchain_type\")\n",
        );
        std::os::unix::fs::symlink(program(), at.join("ws/tools/cargo-aoti")).unwrap();
        write(
            at,
            "ws/BUILD",
            "load(\"@aoti//:defs.bzl\", \"aoti_library\")\n\
             aoti_library(name = \"scaled\", model = \"scaled.aoti\", cpu = [\"x86-64\", \"x86-64-v3\"])\n\
             aoti_library(name = \"other\", model = \"other.aoti\", cpu = [\"x86-64-v3\"], dims = {\"batch\": \"rows\"})\n\
             cc_binary(name = \"main\", srcs = [\"main.cc\"], deps = [\":scaled\", \":other\"])\n",
        );
        write(at, "ws/main.cc", MAIN);
        write(at, "ws/scaled.aoti", SCALED);
        write(at, "ws/other.aoti", &other("2.0, 4.0, 6.0"));
        // Bazel loads these even where nothing uses them, from a network that there need not be.
        let rules = [
            (
                "cc",
                &["binary", "import", "library", "proto_library", "test", "toolchain", "toolchain_suite"][..],
            ),
            (
                "java",
                &[
                    "binary",
                    "import",
                    "library",
                    "lite_proto_library",
                    "plugin",
                    "proto_library",
                    "runtime",
                    "test",
                    "toolchain",
                    "package_configuration",
                ][..],
            ),
        ];
        for (language, names) in rules {
            let rule = |name: &&str| format!("{language}_{name} = native.{language}_{name}\n");
            write(at, &format!("{language}/WORKSPACE"), "");
            write(at, &format!("{language}/{language}/BUILD"), "");
            write(
                at,
                &format!("{language}/{language}/defs.bzl"),
                &names.iter().map(rule).collect::<String>(),
            );
        }
        Bazel { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Builds the program and gives what Bazel said, with every action that it ran.
    #[track_caller]
    fn build(&self, cache: Option<&Path>) -> String {
        let mut command = Command::new("bazel");
        let root = |name: &str| format!("--override_repository=rules_{name}={}", self.path(name).display());
        command.current_dir(self.path("ws"));
        command.arg(format!("--output_user_root={}", self.path("root").display()));
        command.args([
            "--batch",
            "build",
            "--subcommands",
            "--output_groups=+rust",
            "//:main",
            "//:scaled",
            "//:other",
        ]);
        command.args(["cc", "java"].map(root));
        command.args(cache.map(|cache| format!("--disk_cache={}", cache.display())));
        Ended::of(disturbed(&mut command)).succeeded().stderr
    }

    fn output(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path("ws/bazel-bin").join(name)).unwrap()
    }
}

impl Drop for Bazel {
    /// Bazel takes from its outputs the right to be changed, and with it that to be removed.
    fn drop(&mut self) {
        let _ = Command::new("chmod").args(["-R", "u+w"]).arg(self.folder.path()).output();
    }
}

/// Whether Bazel ran the action that compiles this model.
fn compiled(said: &str, model: &str) -> bool {
    said.contains(&format!("[action 'Compiling model //:{model}'"))
}

#[test]
fn bazel_compiles_models_for_a_program() {
    if !tools::are_there("bazel", &["bazel"]) {
        return;
    }
    let cache = tempfile::tempdir().unwrap();
    let first = Bazel::new();
    let said = first.build(Some(cache.path()));
    assert!(compiled(&said, "scaled") && compiled(&said, "other"), "{said}");
    assert_eq!(printed(&first.path("ws/bazel-bin/main")), PRINTED);
    let module = String::from_utf8(first.output("other.aoti/other.rs")).unwrap();
    assert!(module.contains("pub mod other {") && module.contains("`rows`"), "{module}");
    assert!(!module.contains("#[link("), "Bazel says what is linked: {module}");

    // Only what depends on a model is made again: not the other model, and not the program's source.
    let before = [first.output("scaled.aoti/libscaled.a"), first.output("other.aoti/libother.a")];
    write(&first.path("ws"), "other.aoti", &other("3.0, 6.0, 9.0"));
    let said = first.build(Some(cache.path()));
    assert!(
        compiled(&said, "other") && !compiled(&said, "scaled") && !said.contains("Compiling main.cc"),
        "{said}"
    );
    assert_eq!(printed(&first.path("ws/bazel-bin/main")), "34 102\n");
    assert_eq!(first.output("scaled.aoti/libscaled.a"), before[0]);
    assert_ne!(first.output("other.aoti/libother.a"), before[1]);

    // Elsewhere the same bytes come out, and what was made here serves there.
    let second = Bazel::new();
    second.build(None);
    for (name, before) in ["scaled", "other"].into_iter().zip(&before) {
        assert_eq!(&second.output(&format!("{name}.aoti/lib{name}.a")), before, "{name}");
    }
    let third = Bazel::new();
    let said = third.build(Some(cache.path()));
    assert!(said.contains("cache hit"), "{said}");
    assert_eq!(third.output("scaled.aoti/libscaled.a"), before[0]);
}

/// Configures and builds a CMake project, and gives what it said.
#[track_caller]
fn cmake(folder: &Path) -> String {
    let mut configure = Command::new("cmake");
    configure.args(["-S", ".", "-B", "out", "-G", "Unix Makefiles"]).current_dir(folder);
    configure.arg(format!("-DAOTI_EXECUTABLE={}", program().display()));
    configure.arg(format!("-Daoti_DIR={}", workspace().join("build-support/cmake").display()));
    configure.env_remove("CXX");
    let configured = folder.join("out/Makefile").is_file();
    if !configured {
        Ended::of(&mut configure).succeeded();
    }
    let mut build = Command::new("cmake");
    let said = Ended::of(disturbed(build.args(["--build", "out"]).current_dir(folder))).succeeded();
    said.stdout
}

#[test]
fn cmake_compiles_models_for_a_program() {
    if !tools::are_there("cmake", &["cmake", "make"]) {
        return;
    }
    // A folder's name may have a blank.
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("a project");
    write(
        &folder,
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.20)\nproject(test CXX)\nfind_package(aoti REQUIRED)\n\
         aoti_add_model(scaled MODEL scaled.aoti CPU x86-64 x86-64-v3)\n\
         aoti_add_model(other MODEL other.aoti CPU x86-64-v3 NAMESPACE test DIMS batch=rows)\n\
         add_executable(main main.cc)\ntarget_link_libraries(main PRIVATE scaled other)\n",
    );
    write(&folder, "main.cc", MAIN);
    write(&folder, "scaled.aoti", SCALED);
    write(&folder, "other.aoti", &other("2.0, 4.0, 6.0"));
    let said = cmake(&folder);
    assert!(said.contains("Compiling model scaled") && said.contains("Compiling model other"), "{said}");
    assert_eq!(printed(&folder.join("out/main")), PRINTED);
    assert!(!cmake(&folder).contains("Compiling model"), "nothing has changed");

    write(&folder, "other.aoti", &other("3.0, 6.0, 9.0"));
    let said = cmake(&folder);
    assert!(said.contains("Compiling model other") && !said.contains("Compiling model scaled"), "{said}");
    assert_eq!(printed(&folder.join("out/main")), "34 102\n");
}

/// What `cargo aoti compile` refuses, and how it says so.
#[test]
fn compile_looks_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "scaled.aoti", SCALED);
    let refused = |arguments: &[&str]| {
        let mut command = Command::new(program());
        command.args(["aoti", "compile", "scaled.aoti", "--emit", "library=out.a"]).args(arguments);
        let ended = Ended::of(command.current_dir(folder.path()));
        assert_eq!(ended.code, Some(2), "{}", ended.stderr);
        ended.stderr
    };
    assert!(refused(&[]).contains("--cxx"));
    assert!(
        refused(&["--cxx", "g++"]).contains("there is no program"),
        "a name is not looked for on the PATH"
    );
    assert!(refused(&["--cxx", "/bin/sh", "--cpu", "native"]).contains("depends on the machine"));
    assert!(
        refused(&["--cxx", "/bin/sh", "--devices", "cuda", "--cuda", "sm_90a"]).contains("--nvcc PROGRAM")
    );
    assert!(refused(&["--cxx", "/bin/sh", "--cpu", "x86-64-v9"]).contains("x86-64-v9"));
    assert!(refused(&["--cxx", "/bin/sh", "--emit", "objects=o"]).contains("`library`, `bindings`"));
    assert!(!folder.path().join("out.a").exists());
}
