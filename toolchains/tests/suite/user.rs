//! What users set: toolchains of their own, and a launcher in front of compiles.

#![cfg(unix)]

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use aoti_toolchain::{
    Environment, Error, Executor, LocalStore, Mode, Requirements, Target, Toolchains, UserToolchain,
    UserToolchains,
};

use crate::common::{Log, compile, host_toolchains};

fn script(path: &Path, body: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{body}\n")).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn a_users_toolchain_goes_first_with_its_flags_and_sysroot() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("a/b");
    std::fs::create_dir_all(&project).unwrap();
    std::fs::create_dir_all(folder.path().join(".cargo")).unwrap();
    script(
        &folder.path().join("my-g++"),
        "case \"$*\" in\n*-E*) echo 'aoti_family gcc 14'; echo aoti_headers;;\n*-dumpmachine*) echo x86_64-linux-gnu;;\n\
         *-print-prog-name*) echo none;;\n*) echo 'g++ (mine) 14';;\nesac",
    );
    let text = "[toolchain.mine]\nbase = \"gcc\"\nprogram = \"./my-g++\"\nsysroot = \"root\"\n\
                flags = [\"-mtune=native\", \"-O3\"]\ntargets = [\"x86_64-unknown-linux-gnu\"]\n";
    std::fs::write(folder.path().join(".cargo/aoti.toml"), text).unwrap();
    let environment =
        Environment::from_variables([("PATH", "/usr/bin:/bin")], &project).with("TMPDIR", folder.path());
    let toolchains = Toolchains::for_project(&environment, None, &[]).unwrap();
    let found = toolchains.resolve(&Requirements::cpu(Target::new("x86_64-unknown-linux-gnu"))).unwrap();
    assert_eq!(found.name(), "mine");
    let action = compile(&found, None, &Mode::default());
    assert!(action.arguments.contains(&"-mtune=native".to_owned()));
    let place = |word: &str| action.arguments.iter().position(|argument| argument == word).unwrap();
    // Later arguments win, so that a user's can change ours.
    assert!(place("-O2") < place("-O3") && place("-DAOTI_TEST=1") < place("-O3"));
    let at_level = compile(&found, Some("x86-64-v3"), &Mode::default()).arguments;
    assert!(
        at_level.iter().position(|word| word == "-march=x86-64-v3")
            < at_level.iter().position(|word| word == "-O3")
    );
    let sysroot = format!("--sysroot={}", folder.path().join("root").display());
    assert_eq!(action.tool.launch.arguments, [sysroot]);
    assert!(toolchains.report().entries[0].summary.contains("`mine` of the user"));
}

#[test]
fn a_persons_toolchains_go_before_a_projects_and_variables_before_both() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::fs::create_dir(here.join(".cargo")).unwrap();
    for name in ["g++", "persons", "projects", "named"] {
        let answers = "case \"$*\" in\n*-E*) echo 'aoti_family gcc 14'; echo aoti_headers;;\n\
             *-dumpmachine*) echo x86_64-linux-gnu;;\n*-print-prog-name*) echo none;;\n*) echo 'g++ (shim) 14';;\nesac";
        script(&here.join(name), answers);
    }
    let table = |program: &str| UserToolchain::new("gcc").program(program);
    let tables = [("a", table("./projects")), ("b", table("./projects"))];
    let tables = tables.map(|(name, table)| (name.to_owned(), table)).into();
    let project =
        [Arc::new(UserToolchains { file: here.join("Cargo.toml"), folder: here.to_owned(), tables })];
    let environment = Environment::from_variables([("PATH", here)], here).with("TMPDIR", here);
    let order = |environment: &Environment| {
        let toolchains = Toolchains::for_project(environment, None, &project).unwrap();
        let found =
            toolchains.resolution(&Requirements::cpu(Target::new("x86_64-unknown-linux-gnu"))).unwrap();
        let name = |one: &aoti_toolchain::Toolchain| {
            let program = one.compiler.launch.program.file_name().unwrap().to_string_lossy().into_owned();
            format!("{} {program}", one.name())
        };
        found.serving.iter().map(name).collect::<Vec<_>>()
    };
    assert_eq!(order(&environment), ["a projects", "b projects", "gcc g++"]);
    let text = "[toolchain.b]\nbase = \"gcc\"\nprogram = \"./persons\"\n";
    std::fs::write(here.join(".cargo/aoti.toml"), text).unwrap();
    assert_eq!(order(&environment), ["b persons", "a projects", "gcc g++"]);
    let named = environment.with("CXX", here.join("named"));
    assert_eq!(order(&named), ["gcc named", "b persons", "a projects"]);
}

#[test]
fn mistakes_in_a_users_file_are_told() {
    for (text, part) in [
        ("[toolchain.gcc]\nbase = \"gcc\"", "built in"),
        ("[toolchain.mine]\nbase = \"icc\"", "based on `icc`, which is none of `gcc`"),
        ("[toolchain.mine]\nbase = \"gcc\"\nflag = []", "unknown field `flag`"),
        ("[toolchain.mine", "TOML parse error"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(".cargo")).unwrap();
        std::fs::write(folder.path().join(".cargo/aoti.toml"), text).unwrap();
        let environment = Environment::from_variables([("PATH", "/bin")], folder.path());
        let error = Toolchains::for_project(&environment, None, &[]).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(error.contains("aoti.toml"), "{error}");
    }
}

#[test]
fn a_launcher_starts_compiles_only_and_is_no_part_of_keys() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let calls = folder.path().join("calls");
        let launcher = folder.path().join("launcher");
        script(&launcher, &format!("echo \"$@\" >> {}\nexec \"$@\"", calls.display()));
        let plain = Environment::capture().with("TMPDIR", folder.path());
        let environment = plain.clone().with("AOTI_COMPILER_LAUNCHER", &launcher);
        let store = || Some(std::sync::Arc::new(LocalStore::new(folder.path().join("cache"))) as _);
        let run = Executor::new(&environment, store(), Some(1)).unwrap();
        crate::common::library(&toolchain, &run, &Mode::default());
        let text = std::fs::read_to_string(&calls).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(
            text.starts_with(&*toolchain.compiler.launch.program.to_string_lossy())
                && text.contains("kernel.cpp")
        );
        let action = compile(&toolchain, None, &Mode::default());
        let without = Executor::new(&plain, store(), Some(1)).unwrap();
        assert!(without.run_one(&action, &Log::default()).unwrap().cached);
    }
    let environment = Environment::capture().with("AOTI_COMPILER_LAUNCHER", "no-such-program");
    let error = Executor::new(&environment, None, None).err().unwrap();
    assert!(matches!(&error, Error::Launcher { value } if value == "no-such-program"), "{error}");
}

/// A real launcher: what it has seen before it does not compile again, though our own cache is another.
#[test]
fn ccache_compiles_once_for_two_caches() {
    let count = |folder: &Path, counter: &str| -> usize {
        let output = Command::new("ccache").arg("--print-stats").env("CCACHE_DIR", folder).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix(counter)?.strip_prefix('\t')?.parse().ok());
        line.unwrap_or_else(|| panic!("{counter}: {text}"))
    };
    let is_there = Command::new("ccache").arg("--version").output().is_ok();
    assert!(is_there || !crate::common::is_required("ccache"), "`ccache` is required");
    if !is_there {
        println!("skipped: ccache is absent");
        return;
    }
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::capture()
            .with("TMPDIR", folder.path())
            .with("CCACHE_DIR", folder.path().join("ccache"))
            .with("AOTI_COMPILER_LAUNCHER", "ccache");
        let [first, second] = ["one", "two"].map(|cache| {
            let store = std::sync::Arc::new(LocalStore::new(folder.path().join(cache)));
            let run = Executor::new(&environment, Some(store), Some(1)).unwrap();
            let made = run.run_one(&compile(&toolchain, None, &Mode::default()), &Log::default()).unwrap();
            made.first().read().unwrap()
        });
        assert_eq!(first, second, "{}", toolchain.name());
        let hits = ["direct_cache_hit", "preprocessed_cache_hit"]
            .map(|counter| count(&folder.path().join("ccache"), counter));
        assert_eq!(hits.iter().sum::<usize>(), 1, "{}: {hits:?}", toolchain.name());
        assert_eq!(count(&folder.path().join("ccache"), "cache_miss"), 1);
    }
}

/// A compiler's driver waits for programs that it has started, so those must end too.
#[test]
fn a_tool_that_hangs_is_ended_with_all_that_it_has_started() {
    let Some(toolchain) = host_toolchains().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (launcher, started) = (folder.path().join("launcher"), folder.path().join("started"));
    script(
        &launcher,
        &format!(
            "echo said; echo more >&2\nsh -c 'sleep 600 & echo $! > {0}; wait' & wait",
            started.display()
        ),
    );
    let environment = Environment::capture()
        .with("TMPDIR", folder.path())
        .with("AOTI_COMPILER_LAUNCHER", &launcher)
        .with("AOTI_TOOL_TIMEOUT", "1");
    let begun = std::time::Instant::now();
    let run = Executor::new(&environment, None, Some(1)).unwrap();
    let error = run.run_one(&compile(&toolchain, None, &Mode::default()), &Log::default()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("no end after 1 s") && text.contains("`AOTI_TOOL_TIMEOUT`"), "{text}");
    assert!(text.contains("said\nmore"), "{text}");
    assert!(begun.elapsed().as_secs() < 300);
    #[cfg(target_os = "linux")]
    {
        let process = std::fs::read_to_string(&started).unwrap();
        let state = || std::fs::read_to_string(format!("/proc/{}/stat", process.trim())).ok();
        // Who adopts it may take a moment to ask how it ended.
        let is_running = || state().is_some_and(|text| !text.contains(") Z"));
        let mut looked = 0;
        while is_running() && looked < 100 {
            std::thread::sleep(std::time::Duration::from_millis(50));
            looked += 1;
        }
        assert!(!is_running(), "{:?}", state());
    }
    for value in ["0", "soon", "-1"] {
        let error =
            Executor::new(&environment.clone().with("AOTI_TOOL_TIMEOUT", value), None, None).err().unwrap();
        assert!(error.to_string().contains(&format!("`{value}`, which is no number of seconds")), "{error}");
    }
}

#[test]
fn what_a_failed_tool_wrote_to_its_standard_output_is_shown() {
    let Some(toolchain) = host_toolchains().into_iter().next() else { return };
    let folder = tempfile::tempdir().unwrap();
    let launcher = folder.path().join("launcher");
    script(&launcher, "echo 'error 7 of the tool'; echo 'and more' >&2; exit 3");
    let environment =
        Environment::capture().with("TMPDIR", folder.path()).with("AOTI_COMPILER_LAUNCHER", &launcher);
    let run = Executor::new(&environment, None, Some(1)).unwrap();
    let error = run.run_one(&compile(&toolchain, None, &Mode::default()), &Log::default()).unwrap_err();
    assert!(error.to_string().contains("error 7 of the tool\nand more"), "{error}");
}

#[test]
fn a_killed_compiler_and_an_unsupported_one_come_with_advice() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let environment = Environment::capture().with("TMPDIR", folder.path());
        for (body, part) in [
            ("kill -9 $$", "memory runs out"),
            ("echo 'ld: cannot find -lstdc++: No such file or directory' >&2; exit 1", "install g++"),
        ] {
            let launcher = folder.path().join("launcher");
            script(&launcher, body);
            let environment = environment.clone().with("AOTI_COMPILER_LAUNCHER", &launcher);
            let run = Executor::new(&environment, None, Some(1)).unwrap();
            let error =
                run.run_one(&compile(&toolchain, None, &Mode::default()), &Log::default()).unwrap_err();
            assert!(error.advice().unwrap().contains(part), "{error}");
            assert!(error.to_string().contains("help: "), "{error}");
            let Error::ToolFailed { directory, .. } = error else { panic!("{error}") };
            assert!(directory.join("kernel.cpp").exists());
        }
    }
}
