//! System packages that the other tasks need: says what is missing, then installs it by name.
//!
//! Knows Debian's and Ubuntu's apt-get; elsewhere it says what to install.

use anyhow::{Context, bail};
use std::path::PathBuf;
use xshell::{Shell, cmd};

/// A tool of the machine: known to the tests by `name`, there if any of `programs` is, and where it is not, installed
/// as the first of `packages` that can be.
struct Tool {
    name: &'static str,
    programs: &'static [&'static str],
    packages: &'static [&'static [&'static str]],
}

const GCC: Tool = Tool { name: "gcc", programs: &["g++"], packages: &[&["g++"]] };

/// Any C++ compiler for this machine.
const ANY: Tool =
    Tool { name: "a C++ compiler", programs: &["g++", "clang++", "c++"], packages: &[&["g++"]] };

/// What `AOTI_TEST_REQUIRE` may name.
const REQUIRABLE: &[Tool] = &[
    GCC,
    Tool {
        name: "clang",
        programs: &["clang++-19", "clang++"],
        packages: &[&["clang-19", "lld-19"], &["clang", "lld"]],
    },
    // Older releases, which have fewer builtins.
    Tool { name: "g++-11", programs: &["g++-11"], packages: &[&["g++-11"]] },
    Tool { name: "clang-14", programs: &["clang++-14"], packages: &[&["clang-14"]] },
    Tool { name: "clang-16", programs: &["clang++-16"], packages: &[&["clang-16"]] },
    Tool {
        name: "gcc-aarch64",
        programs: &["aarch64-linux-gnu-g++"],
        packages: &[&["g++-aarch64-linux-gnu", "libc6-dev-arm64-cross"]],
    },
    // Clang itself is the same program for every target; what it lacks are the other target's libraries.
    Tool {
        name: "clang-aarch64",
        programs: &["aarch64-linux-gnu-gcc"],
        packages: &[&["gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"]],
    },
    Tool {
        name: "libclang",
        programs: &["libclang.so", "libclang.so.1", "libclang-19.so.1"],
        packages: &[&["libclang1-19"], &["libclang1"]],
    },
    Tool { name: "qemu", programs: &["qemu-aarch64", "qemu-aarch64-static"], packages: &[&["qemu-user"]] },
    Tool { name: "redis", programs: &["redis-server"], packages: &[&["redis-server"]] },
    Tool { name: "ccache", programs: &["ccache"], packages: &[&["ccache"]] },
    Tool { name: "bazel", programs: &["bazel"], packages: &[&["bazel-bootstrap"]] },
    Tool { name: "cmake", programs: &["cmake"], packages: &[&["cmake"]] },
    Tool { name: "musl", programs: &["musl-gcc"], packages: &[&["musl-tools"]] },
    Tool { name: "node", programs: &["node"], packages: &[&["nodejs"]] },
];

/// Makes sure that there is a C++ compiler.
pub(crate) fn compiler(shell: &Shell) -> anyhow::Result<()> {
    // Whoever names a compiler wants that one, and `doctor` judges it.
    if shell.var_os("CXX").is_some_and(|value| !value.is_empty()) {
        return Ok(());
    }
    ensure(shell, &ANY)
}

/// Makes sure of every tool that `AOTI_TEST_REQUIRE` names and that there is a C++ compiler; says which optional tools
/// are absent.
pub(crate) fn tools_for_tests(shell: &Shell) -> anyhow::Result<()> {
    compiler(shell)?;
    let required = shell.var("AOTI_TEST_REQUIRE").unwrap_or_default();
    for name in required.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        match REQUIRABLE.iter().find(|tool| tool.name == name) {
            Some(tool) => ensure(shell, tool)?,
            None => {
                eprintln!("    `{name}` is required by AOTI_TEST_REQUIRE; it is not for this task to install")
            }
        }
    }
    for tool in REQUIRABLE.iter().filter(|tool| !is_there(tool)) {
        eprintln!("    {} is not installed: its tests will be skipped", tool.name);
    }
    Ok(())
}

fn ensure(shell: &Shell, tool: &Tool) -> anyhow::Result<()> {
    if is_there(tool) {
        return Ok(());
    }
    if find("apt-get").is_none() {
        let wanted = tool.packages[0].join(" ");
        bail!(
            "{} is missing; install it with your system's package manager (on Debian: {wanted})",
            tool.name
        );
    }
    let is_root = cmd!(shell, "id -u").quiet().read()? == "0";
    let sudo = (!is_root).then_some("sudo");
    let run = |arguments: &[&str]| {
        let words: Vec<&str> = sudo.into_iter().chain(["apt-get"]).chain(arguments.iter().copied()).collect();
        let (program, rest) = words.split_first().expect("there is at least apt-get");
        cmd!(shell, "{program} {rest...}").env("DEBIAN_FRONTEND", "noninteractive").run()
    };
    eprintln!("    {} is missing: installing {}", tool.name, tool.packages[0].join(", "));
    run(&["update", "-q"]).context("could not read the list of packages")?;
    let is_installed = tool.packages.iter().any(|packages| {
        let arguments: Vec<&str> = ["install", "-y", "-q"].iter().chain(*packages).copied().collect();
        run(&arguments).is_ok()
    });
    if is_installed && is_there(tool) { Ok(()) } else { bail!("{} could not be installed", tool.name) }
}

fn is_there(tool: &Tool) -> bool {
    tool.programs.iter().any(|program| find(program).is_some())
}

/// The first file of this name in the folders of `PATH`, or for a library in those of LLVM's releases.
fn find(program: &str) -> Option<PathBuf> {
    let mut folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    if program.starts_with("lib") {
        let releases = std::fs::read_dir("/usr/lib").ok()?.filter_map(Result::ok).map(|entry| entry.path());
        folders = releases
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("llvm-")))
            .map(|path| path.join("lib"))
            .collect();
    }
    folders.into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}
