//! Machines on which something is missing, and command lines that are wrong: the exit code says whose fault it is.

use aoti_tests::models;
use aoti_tests::project::Project;
use aoti_tests::subcommand::Ended;
use std::path::Path;

#[test]
fn without_a_compiler_the_machine_is_at_fault() {
    let project = Project::new("");
    project.write("models/scaled.aoti", models::SCALED);
    // Cargo and rustc lie side by side; nothing else is to be found.
    let cargo = Path::new(env!("CARGO")).parent().unwrap();
    let build = |path: &Path| {
        let mut command = project.aoti(&["build"]);
        command.env("PATH", path);
        for named in
            ["CXX", "CXX_x86_64_unknown_linux_gnu", "CARGO_ZIGBUILD_ZIG_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"]
        {
            command.env_remove(named);
        }
        command.env("CARGO", env!("CARGO"));
        Ended::of(&mut command)
    };
    for path in [cargo, Path::new("")] {
        let ended = build(path);
        assert_eq!(ended.code, Some(3), "{}", ended.stderr);
        assert!(ended.stderr.contains("error") && ended.stdout.is_empty(), "{}", ended.stderr);
    }
    let said = build(cargo).stderr;
    assert!(said.contains("g++") && said.contains("clang"), "{said}");
}

#[test]
fn a_compiler_that_fails_is_shown_with_its_command_and_its_words() {
    let project = Project::new("");
    project.write("models/scaled.aoti", models::SCALED);
    project.write("c++", "#!/bin/sh\nfor a; do case $a in *kernels*) echo 'out of luck' >&2; exit 1;; esac; done\nexec c++ \"$@\"\n");
    make_executable(&project.folder().join("c++"));
    let mut command = project.aoti(&["build"]);
    command.env("CXX", project.folder().join("c++"));
    let ended = Ended::of(&mut command);
    assert_eq!(ended.code, Some(3), "{}", ended.stderr);
    assert!(ended.stderr.contains("out of luck") && ended.stderr.contains("kernels.cpp"), "{}", ended.stderr);
}

#[test]
fn wrong_command_lines_are_usage_errors() {
    let project = Project::new("");
    for arguments in [
        &["build", "--frob"][..],
        &["build", "-j", "0"],
        &["build", "-p", "other"],
        &["run"],
        &["bench", "model.aoti", "--level", "x86-64-v9"],
    ] {
        let ended = Ended::of(&mut project.aoti(arguments));
        assert_eq!(ended.code, Some(2), "{arguments:?}: {}", ended.stderr);
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty());
    }
}

fn make_executable(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}
