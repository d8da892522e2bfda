//! The real gcc and clang (and cross compilers): what they make is the same in every folder, needs nothing beyond
//! libc, and is refused when it does.

use std::path::Path;
use std::process::Command;

use crate::common::{Log, compile, executor, host_toolchains, library};
use aoti_toolchain::audit::{self, Allow, AuditError};
use aoti_toolchain::{
    AssembleJob, CompileJob, Error, FileContent, Goal, Input, Language, LinkJob, Linking, Mode, Sanitizer,
    Target,
};

#[test]
fn bytes_are_the_same_in_different_folders() {
    for toolchain in host_toolchains() {
        for debug in [false, true] {
            let mode = Mode { debug, ..Mode::default() };
            let (one, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let longer = other.path().join("a much longer name");
            std::fs::create_dir(&longer).unwrap();
            let first = library(&toolchain, &executor(one.path(), None), &mode);
            let second = library(&toolchain, &executor(&longer, None), &mode);
            assert_eq!(first.len(), 4);
            for ((name, first), (_, second)) in first.iter().zip(&second) {
                assert_eq!(first, second, "{}: {name}, debug {debug}", toolchain.name());
                let place = one.path().to_string_lossy().into_owned();
                let holds_place = first.windows(place.len()).any(|window| window == place.as_bytes());
                assert!(!holds_place, "{}: {name} holds the build folder", toolchain.name());
            }
        }
    }
}

#[test]
fn a_library_exports_its_table_only_and_needs_libc_only() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let made = library(&toolchain, &executor(folder.path(), None), &Mode::default());
        let (name, bytes) = &made[3];
        assert_eq!(name, "libx.so");
        assert_eq!(audit::exported_symbols(bytes).unwrap(), ["aoti_sum"]);
        audit::audit(bytes, &Allow::default()).unwrap();
        let needed = audit::needed_libraries(bytes).unwrap();
        assert!(needed.iter().any(|library| library.starts_with("libm.")), "{needed:?}");
        assert!(!needed.iter().any(|library| library.contains("stdc++")), "{needed:?}");
        audit::audit_objects(&[&made[0].1, &made[1].1], &Allow::default()).unwrap();
        let alone = audit::audit(&made[0].1, &Allow::default()).unwrap_err();
        assert_eq!(alone, AuditError::Symbols { symbols: vec!["weights".to_owned()] });
        audit::audit(&made[0].1, &Allow::symbols(["weights"])).unwrap();
    }
}

/// An assembly file that does not say that it needs no executable stack gives the whole process one.
#[test]
fn an_object_that_asks_for_an_executable_stack_does_not_pass() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let run = executor(folder.path(), None);
        let made = library(&toolchain, &run, &Mode::default());
        let weights = &made[1].1;
        audit::audit_objects(&[weights], &Allow::default()).unwrap();
        let source = Input::text("x.S", ".data\n.globl weights\nweights: .byte 1\n");
        let job = AssembleJob { label: "x".into(), source, files: Vec::new(), output: "x.o".into() };
        let careless = run.run_one(&toolchain.assemble(job), &Log::default()).unwrap();
        let bytes = careless.first().read().unwrap();
        assert_eq!(audit::audit_objects(&[&bytes], &Allow::default()), Err(AuditError::ExecutableStack));
        let mut link = link(vec![careless.as_input("x.o").unwrap()], "liby.so", "weights");
        link.extra.push("-Wl,-z,execstack".to_owned());
        let action = toolchain.link_shared(link, &Mode::default());
        let bytes = run.run_one(&action, &Log::default()).unwrap().first().read().unwrap();
        assert_eq!(audit::audit(&bytes, &Allow::default()), Err(AuditError::ExecutableStack));
    }
}

#[test]
fn every_level_compiles_and_an_unknown_one_is_told() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let levels = toolchain.definition.level_names(&toolchain.target, true);
        let levels = levels.into_iter().map(str::to_owned).collect::<Vec<_>>();
        assert!(levels.contains(&"native".to_owned()));
        for level in levels {
            let action = compile(&toolchain, Some(&level), &Mode::default());
            assert_eq!(action.host_only, level == "native");
            executor(folder.path(), None).run_one(&action, &Log::default()).unwrap();
        }
        let mut job = job("int x;");
        job.level = Some("sm_80".to_owned());
        let error = toolchain.compile(job, &Mode::default()).unwrap_err();
        assert!(error.to_string().contains("has no level `sm_80`"), "{error}");
    }
}

#[test]
fn code_that_needs_the_cpp_library_does_not_pass() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let executor = executor(folder.path(), None);
        let job = job(EXPORTED_NEW);
        let action = toolchain.compile(job, &Mode::default()).unwrap();
        let object = executor.run_one(&action, &Log::default()).unwrap();
        let refused = audit::audit(&object.first().read().unwrap(), &Allow::default()).unwrap_err();
        assert_eq!(refused, AuditError::Symbols { symbols: vec!["_Znwm".to_owned()] });

        let link = link(vec![object.as_input("job.o").unwrap()], "lib.so", "make");
        let error = executor.run_one(&toolchain.link_shared(link, &Mode::default()), &Log::default());
        assert!(matches!(error, Err(Error::ToolFailed { .. })), "{error:?}");
    }
}

#[test]
fn a_failed_compile_leaves_a_command_that_fails_the_same_way() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let action = toolchain.compile(job("int f() { return undeclared; }"), &Mode::default()).unwrap();
        let log = Log::default();
        let error = executor(folder.path(), None).run_one(&action, &log).unwrap_err();
        let Error::ToolFailed { command, directory, stderr, .. } = error else { panic!("{error:?}") };
        assert!(stderr.contains("undeclared"), "{stderr}");
        assert!(directory.starts_with(folder.path()) && directory.join("job.cpp").exists());
        let again = Command::new("sh").args(["-c", &command]).output().unwrap();
        assert!(!again.status.success());
        assert!(String::from_utf8_lossy(&again.stderr).contains("undeclared"));
        assert_eq!(log.count("failed"), 1);
    }
}

#[test]
fn undeclared_headers_are_not_found() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        for text in ["#include \"aoti/base.h\"", "#include <vector>"] {
            let action = toolchain.compile(job(text), &Mode::default()).unwrap();
            let result = executor(folder.path(), None).run_one(&action, &Log::default());
            assert!(matches!(result, Err(Error::ToolFailed { .. })), "{text}");
        }
    }
}

#[test]
fn a_file_is_embedded_by_reference_and_a_changed_one_is_noticed() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("blob");
        std::fs::write(&path, vec![7u8; 1 << 20]).unwrap();
        let content = FileContent::read(&path).unwrap();
        let action = crate::common::weights(&toolchain, Input::file("blob.bin", content));
        let object = executor(folder.path(), None).run_one(&action, &Log::default()).unwrap();
        assert!(object.first().bytes > 1 << 20);

        std::fs::write(&path, b"short").unwrap();
        let error = executor(folder.path(), None).run_one(&action, &Log::default()).unwrap_err();
        assert!(matches!(error, Error::Input { .. }), "{error:?}");
    }
}

#[test]
fn sanitized_executables_run_and_report() {
    for toolchain in host_toolchains() {
        let folder = tempfile::tempdir().unwrap();
        let executor = executor(folder.path(), None);
        let mode = Mode { debug: true, sanitize: [Sanitizer::Address, Sanitizer::Undefined].into() };
        let text = "int main(int argc, char**) { int a[2] = {}; volatile int i = argc + 1; return a[i]; }";
        let object =
            executor.run_one(&toolchain.compile(job(text), &mode).unwrap(), &Log::default()).unwrap();
        let link = link(vec![object.as_input("job.o").unwrap()], "program", "");
        let linking = toolchain.link_executable(link, Linking::Dynamic, &mode);
        let program = executor.run_one(&linking, &Log::default()).unwrap();
        let output = Command::new(&program.first().path).output().unwrap();
        assert!(String::from_utf8_lossy(&output.stderr).contains("index 2 out of bounds"));
    }
}

#[test]
fn sanitized_objects_pass_the_audit_where_sanitizers_are_allowed() {
    let text = "static int table[4]; extern \"C\" int pick(int i) { return table[i] += i; }";
    for toolchain in host_toolchains() {
        for sanitize in [&[Sanitizer::Address, Sanitizer::Undefined][..], &[Sanitizer::Thread]] {
            let folder = tempfile::tempdir().unwrap();
            let mode = Mode { sanitize: sanitize.iter().copied().collect(), ..Mode::default() };
            let action = toolchain.compile(job(text), &mode).unwrap();
            let object = executor(folder.path(), None).run_one(&action, &Log::default()).unwrap();
            let bytes = object.first().read().unwrap();
            let refused = audit::audit(&bytes, &Allow::default());
            assert!(matches!(refused, Err(AuditError::Symbols { .. })), "{}: {refused:?}", toolchain.name());
            audit::audit(&bytes, &Allow { sanitizers: true, ..Allow::default() })
                .unwrap_or_else(|error| panic!("{} {sanitize:?}: {error}", toolchain.name()));
        }
    }
}

#[test]
fn executables_run_here_and_arm_ones_in_an_emulator() {
    let text = "#include <math.h>\nint main(int argc, char**) { return (int)sqrt(argc * 49.0) - 7; }";
    let arm = Target::new("aarch64-unknown-linux-gnu");
    let mut all = host_toolchains();
    all.extend(crate::common::toolchains(&["gcc-aarch64", "clang-aarch64"], &arm));
    for toolchain in all {
        let folder = tempfile::tempdir().unwrap();
        let executor = executor(folder.path(), None);
        let mode = Mode::default();
        let object =
            executor.run_one(&toolchain.compile(job(text), &mode).unwrap(), &Log::default()).unwrap();
        let link = link(vec![object.as_input("job.o").unwrap()], "program", "");
        let foreign = toolchain.target == arm && Target::host() != arm;
        let linking = if foreign { Linking::Static } else { Linking::Dynamic };
        let linked = executor.run_one(&toolchain.link_executable(link, linking, &mode), &Log::default());
        let program = linked.unwrap_or_else(|error| panic!("{}: {error}", toolchain.name()));
        let path = &program.first().path;
        let output = if foreign { run_in_emulator(path) } else { Command::new(path).output().ok() };
        match output {
            Some(output) => assert!(output.status.success(), "{}: {output:?}", toolchain.name()),
            None if crate::common::is_required("qemu") => panic!("`qemu-aarch64` is required"),
            None => println!("skipped the run for {}: qemu-aarch64 is absent", toolchain.name()),
        }
    }
}

fn run_in_emulator(program: &Path) -> Option<std::process::Output> {
    Command::new("qemu-aarch64").arg(program).output().ok()
}

fn job(text: &str) -> CompileJob {
    CompileJob {
        label: "job".to_owned(),
        language: Language::Cpp,
        source: Input::text("job.cpp", text),
        headers: Vec::new(),
        level: None,
        goal: Goal::Speed,
        defines: Vec::new(),
        extra: Vec::new(),
        output: "job.o".to_owned(),
    }
}

fn link(objects: Vec<Input>, output: &str, export: &str) -> LinkJob {
    let exports = if export.is_empty() { Vec::new() } else { vec![export.to_owned()] };
    LinkJob { label: "link".to_owned(), objects, exports, extra: Vec::new(), output: output.to_owned() }
}

const EXPORTED_NEW: &str = "extern \"C\" __attribute__((visibility(\"default\")))
void* make(unsigned long n) { return ::operator new(n); }";
