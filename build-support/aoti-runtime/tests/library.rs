//! Libraries that do not open, and what is said of them.

mod support;

use aoti_runtime::{ErrorCode, Library};
use std::{fs, path::Path, process::Command};
use support::{compiled, library};

/// What is said of a file that is no library for this program.
fn said(path: &Path, symbol: &str) -> String {
    // SAFETY: the file does not open, is the model by hand, or has no code that runs when it is opened.
    let error = unsafe { Library::open(path, symbol) }.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Library);
    let message = error.message().to_owned();
    assert!(message.starts_with(&format!("could not open `{}`: ", path.display())), "{message}");
    assert!(!message.contains("dlopen failed") && !message.contains("dlsym failed"), "{message}");
    message
}

#[track_caller]
fn cc(folder: &Path, arguments: &[&str]) {
    let status =
        Command::new("cc").current_dir(folder).args(arguments).status().expect("the tests need `cc`");
    assert!(status.success(), "{arguments:?}");
}

#[test]
fn a_file_that_is_no_library_for_this_program_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let whole = fs::read(compiled(&[], folder.path())).unwrap();
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    };
    let patched = |at: usize, with: &[u8]| {
        let mut bytes = whole.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        bytes
    };
    let other: u16 = if cfg!(target_arch = "x86_64") { 183 } else { 62 };
    for (path, words) in [
        (folder.path().join("none.so"), "there is no such file"),
        (folder.path().to_owned(), "it is no regular file"),
        (file("text.so", b"INPUT(libm.so)"), "it is no shared library"),
        (file("empty.so", b""), "it is no shared library"),
        (file("machine.so", &patched(18, &other.to_ne_bytes())), ", this program for "),
        (file("bits.so", &patched(4, &[1])), "it is for 32 bits"),
        (file("head.so", &whole[..40]), "it ends too soon"),
        (file("half.so", &whole[..whole.len() / 2]), "it ends too soon"),
        (file("end.so", &whole[..whole.len() - 1]), "it ends too soon"),
    ] {
        assert!(said(&path, "aoti_fake_api").contains(words), "{}", said(&path, "aoti_fake_api"));
    }
}

#[test]
fn a_symbol_that_a_library_lacks_is_named() {
    library(&[]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let message = said(&compiled(&[], folder.path()), "aoti_other_api");
    assert!(
        message.contains("undefined symbol: aoti_other_api; the library is that of another model"),
        "{message}"
    );
}

/// Its table is shorter than ours, and nothing of it may be read beyond the version.
#[test]
fn a_library_of_the_version_before_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/interface_3.c");
    cc(folder.path(), &["-std=c11", "-Wall", "-Werror", "-shared", "-fPIC", source, "-o", "old.so"]);
    // SAFETY: the library was just made, and has nothing that runs when it is opened.
    let error = unsafe { Library::open(folder.path().join("old.so"), "aoti_old_api") }.unwrap_err();
    assert_eq!(error.code(), ErrorCode::Version);
    let message = error.message();
    assert!(message.starts_with("the library has interface version 3; this crate supports 4: "), "{message}");
    assert!(message.ends_with("(cargo-aoti is the older one)"), "{message}");
}

#[test]
fn what_a_library_needs_and_does_not_find_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("needed.c", "int needed(void) { return 1; }\n");
    write("user.c", "int needed(void);\nint user(void) { return needed(); }\n");
    write("new.map", "VERS_1 {};\nVERS_2 { needed; } VERS_1;\n");
    write("old.map", "VERS_1 { needed; };\n");
    let needed = |map: &str| {
        let script = format!("-Wl,--version-script={map}");
        cc(folder.path(), &["-shared", "-fPIC", "needed.c", &script, "-o", "libneeded.so"]);
    };
    needed("new.map");
    let rpath = format!("-Wl,-rpath,{}", folder.path().display());
    cc(folder.path(), &["-shared", "-fPIC", "user.c", "-L.", "-lneeded", &rpath, "-o", "user.so"]);
    let path = folder.path().join("user.so");
    needed("old.map");
    let message = said(&path, "user");
    assert!(message.contains("VERS_2") && message.contains("in an older version"), "{message}");
    fs::remove_file(folder.path().join("libneeded.so")).unwrap();
    let message = said(&path, "user");
    assert!(message.contains("libneeded.so") && message.contains("is found nowhere"), "{message}");
    cc(folder.path(), &["-shared", "-fPIC", "user.c", "-Wl,-z,now", "-o", "user.so"]);
    let message = said(&path, "user");
    assert!(message.contains("undefined symbol: needed; none of the libraries"), "{message}");
}

/// Where the machine has a folder whose files may not be executed.
#[test]
#[cfg(target_os = "linux")]
fn a_file_system_without_execution_is_named() {
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let forbids = |line: &&str| {
        let words: Vec<&str> = line.split(' ').collect();
        words.len() > 3 && words[3].split(',').any(|option| option == "noexec") && words[3].starts_with("rw")
    };
    let folders = mounts.lines().filter(forbids).filter_map(|line| line.split(' ').nth(1));
    for folder in folders.filter(|folder| !folder.starts_with("/proc") && !folder.starts_with("/sys")) {
        let Ok(folder) = tempfile::tempdir_in(folder) else { continue };
        let message = said(&compiled(&[], folder.path()), "aoti_fake_api");
        assert!(message.contains("`noexec`"), "{message}");
        return;
    }
}
