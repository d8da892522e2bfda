//! What a built library is: small, alone, quiet about its insides, and the same wherever it is built.

use aoti_runtime::__samples::{self, Sample};
use aoti_runtime::LoadOptions;
use aoti_tests::project::Project;
use aoti_tests::{models, native};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A small network's library is smaller than this, without weights and with three levels.
const SMALL: u64 = 100_000;

/// `nm` lines of a library as (type, name). It comes with every compiler.
fn symbols(library: &Path) -> Vec<(String, String)> {
    let output = Command::new("nm").arg("-D").arg(library).output().expect("nm comes with the compiler");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |line: &str| {
        let mut words = line.split_whitespace().rev();
        let name = words.next().unwrap().split('@').next().unwrap().to_owned();
        (words.next().unwrap().to_owned(), name)
    };
    text.lines().map(line).collect()
}

/// Dynamic libraries that a library asks for.
fn needed(library: &Path) -> BTreeSet<String> {
    let output = Command::new("readelf").arg("-d").arg(library).output().expect("readelf comes with it too");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| line.contains("(NEEDED)"));
    lines.filter_map(|line| Some(line.split_once('[')?.1.trim_end_matches(']').to_owned())).collect()
}

fn check(name: &str, path: &Path, static_limit: u64) {
    let levels = "[package.metadata.aoti]\n";
    for (kind, limit) in [("dylib", SMALL), ("static", static_limit)] {
        let table = format!(
            "{levels}[package.metadata.aoti.models.{name}]\npath = \"models/{name}.pt2\"\n\
             weights = \"sidecar\"\nlink = \"{kind}\"\n"
        );
        let project = Project::new(&table).with_model(&format!("{name}.pt2"), path);
        project.build();
        let library = project.library(name);
        let bytes = fs::metadata(&library).unwrap().len();
        eprintln!("{name}: {bytes} bytes as {kind}");
        assert!(bytes < limit, "{name} has {bytes} bytes as {kind}");
        if kind == "dylib" {
            check_symbols(&project.symbol(name), &library);
        }
    }
}

fn check_symbols(symbol: &str, library: &Path) {
    let (undefined, defined): (Vec<_>, Vec<_>) = symbols(library).into_iter().partition(|(kind, _)| {
        // Weak ones stay undefined where nobody defines them.
        kind == "U" || kind == "w" || kind == "v"
    });
    assert_eq!(defined, [("T".to_owned(), symbol.to_owned())]);
    let is_foreign =
        |name: &&str| name.contains("gomp") || name.starts_with("_Z") || name.starts_with("__cxa_g");
    let undefined: Vec<&str> = undefined.iter().map(|(_, name)| name.as_str()).collect();
    assert!(!undefined.iter().any(is_foreign), "{undefined:?}");
    let permitted = ["libc.so.6", "libm.so.6", "libgcc_s.so.1"];
    let needed = needed(library);
    assert!(needed.iter().all(|library| permitted.contains(&library.as_str())), "{needed:?}");
}

#[test]
fn digits_are_small_and_export_one_symbol() {
    // Archives hold what the linker drops.
    check("digits", &models::digits(), 2 * SMALL);
}

#[test]
fn an_mlp_is_small_and_exports_one_symbol() {
    let Some(path) = models::conformance("zoo/mlp") else { return };
    check("mlp", &path, SMALL);
}

#[test]
fn two_folders_give_the_same_bytes() {
    let table = "[package.metadata.aoti.models.digits]\npath = \"models/digits.pt2\"\n\
                 [package.metadata.aoti.models.shared]\npath = \"models/digits.pt2\"\nlink = \"dylib\"\n\
                 [package.metadata.aoti.models.beside]\npath = \"models/digits.pt2\"\nweights = \"sidecar\"\n";
    let build = || {
        let project = Project::new(table).with_model("digits.pt2", &models::digits());
        project.build();
        // The record of what is up to date tells paths and times; that is what it is for.
        let mut outputs = project.outputs();
        outputs.retain(|(path, _)| !path.ends_with("state.json"));
        (project, outputs)
    };
    let ((one, first), (two, second)) = (build(), build());
    assert_ne!(one.folder(), two.folder());
    assert!(first.len() > 20);
    let (of_first, of_second): (Vec<_>, Vec<_>) =
        (first.iter().map(|(path, _)| path).collect(), second.iter().map(|(path, _)| path).collect());
    assert_eq!(of_first, of_second);
    for ((path, a), (_, b)) in first.iter().zip(&second) {
        assert!(a == b, "{} differs", path.display());
    }
}

/// What a generated test does where no samples lie beside a model.
#[test]
fn inputs_that_an_archive_keeps_are_where_the_module_says_and_all_levels_agree_on_them() {
    let project = Project::new(
        "[package.metadata.aoti]\ncpu = [\"x86-64\", \"x86-64-v3\"]\n\
         [package.metadata.aoti.models.digits]\npath = \"models/digits.pt2\"\nlink = \"dylib\"\n",
    )
    .with_model("digits.pt2", &models::digits());
    project.build();
    let module = fs::read_to_string(project.artefacts("digits").join("digits.rs")).unwrap();
    assert!(module.contains("concat!(env!(\"CARGO_MANIFEST_DIR\"), \"/models/digits.pt2\")"), "{module}");
    let (_, said) = module.split_once("Sample { index: 0, sizes: &[").expect("the module has a test");
    let (sizes, said) = said.split_once("], offset: ").unwrap();
    let sizes: Vec<usize> = sizes.split(", ").map(|size| size.parse().unwrap()).collect();
    let offset: u64 = said.split_once(' ').unwrap().0.parse().unwrap();
    assert_eq!(sizes[1..], [1, 8, 8]);
    let file = project.folder().join("models/digits.pt2");
    let (bytes, count) = (fs::read(&file).unwrap(), sizes.iter().product::<usize>());
    let pixels = &bytes[offset as usize..][..4 * count];
    let pixels = pixels.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
    assert!(pixels.into_iter().all(|pixel| (-10.0..=10.0).contains(&pixel)));

    let model = native::open(&project, "digits").load(LoadOptions::default()).unwrap();
    let sizes: &'static [usize] = sizes.leak();
    let check =
        |offset| __samples::check(&model, file.to_str().unwrap(), &[Sample { index: 0, sizes, offset }], &[]);
    assert_eq!(check(offset), Ok(()));
    assert!(check(bytes.len() as u64 - 1).unwrap_err().starts_with("cannot read"));
    // Without the test, nothing of it is in the module.
    let manifest = fs::read_to_string(project.folder().join("Cargo.toml")).unwrap();
    project.write("Cargo.toml", manifest + "test = false\n");
    project.build();
    assert!(
        !fs::read_to_string(project.artefacts("digits").join("digits.rs")).unwrap().contains("__samples")
    );
}
