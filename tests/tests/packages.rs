//! The packages as a registry would hand them out: a project that has nothing else of ours builds and runs, offline.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use aoti_tests::subcommand::{Ended, cargo, workspace};

const CRATES: [&str; 4] = ["aoti-build", "aoti-compiler", "aoti-runtime", "aoti-toolchain"];

const MODEL: &str = "\
graph \"twice\" {
  origin o0 = \"\" \"\" \"\"
  input %0 \"x\": f32[3]
  %1: f32[3] = add %0, %0
  output %1 \"y\"
}
";

const BUILD: &str = "\
fn main() -> Result<(), aoti_build::Error> {
    aoti_build::Builder::from_manifest()?.build()
}
";

const MAIN: &str = "\
aoti_runtime::include_model!(\"twice\");

fn main() -> Result<(), aoti_runtime::Error> {
    let x = [1.0f32, 2.0, 3.0];
    println!(\"{:?}\", twice::Model::load()?.run(&twice::Inputs { x: (&x).into() })?.y.as_slice());
    Ok(())
}
";

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Packs the workspace and unpacks what its users need, always into the same folders: what has not changed since a test
/// last did so is not compiled again.
fn unpacked(root: &Path, folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let packages = folder.join("packages");
    let mut pack = cargo(root, &folder.join("cache"));
    pack.args(["package", "--workspace", "--no-verify", "--allow-dirty", "--quiet"]);
    Ended::of(pack.arg("--target-dir").arg(&packages)).succeeded();
    let version = env!("CARGO_PKG_VERSION");
    let unpack = |name: &'static str| {
        let archive = packages.join("package").join(format!("{name}-{version}.crate"));
        Ended::of(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder)).succeeded();
        let named = format!("{name}-{version}");
        let fresh = folder.join(&named);
        let readme = if name == "aoti-toolchain" { "CRATE.md" } else { "README.md" };
        for file in ["LICENSE-APACHE", "LICENSE-MIT", readme] {
            assert!(fs::metadata(fresh.join(file)).unwrap().len() > 100, "{name} lacks its {file}");
        }
        // A registry shows it alone.
        let text = fs::read_to_string(fresh.join(readme)).unwrap();
        let elsewhere = text.split("](").skip(1).find(|rest| !rest.starts_with("https://"));
        assert_eq!(elsewhere.and_then(|rest| rest.split(')').next()), None, "{name}: a link of {readme}");
        let place = Path::new(env!("CARGO_TARGET_TMPDIR")).join("packages").join(&named);
        make_equal(&fresh, &place);
        (name, place)
    };
    CRATES.map(unpack).into()
}

/// Makes a folder hold what another does, and touches nothing in it that is so already.
fn make_equal(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    let names = |folder: &Path| -> BTreeSet<_> {
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let wanted = names(from);
    for name in names(to).difference(&wanted) {
        let path = to.join(name);
        if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.unwrap();
    }
    for name in wanted {
        let (from, to) = (from.join(&name), to.join(&name));
        if from.is_dir() {
            make_equal(&from, &to);
        } else if fs::read(&to).ok() != Some(fs::read(&from).unwrap()) {
            // Not copied: archives have no times, and what is older than its build is not compiled again.
            fs::write(&to, fs::read(&from).unwrap()).unwrap();
        }
    }
}

/// Crates that are compiled before a project's first model is, all of ours included: everybody waits for them.
const MOST_CRATES: usize = 47;

/// The packages that a project depends on, with those of its build script.
fn dependencies(project: &Path) -> BTreeSet<String> {
    let mut tree = cargo(project, &project.join("cache"));
    let ended =
        Ended::of(tree.args(["tree", "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]));
    let lines = ended.succeeded().stdout;
    let packages = lines.lines().filter_map(|line| line.split(" (").next()).map(str::to_owned);
    packages.filter(|package| !package.is_empty() && package != "user v0.1.0").collect()
}

#[test]
fn a_project_builds_offline_from_the_packages_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = workspace();
    let crates = unpacked(root, folder.path());
    let patches: String =
        crates.iter().map(|(name, place)| format!("{name} = {{ path = {place:?} }}\n")).collect();
    let manifest = format!(
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\
         [dependencies]\naoti-runtime = \"0.1\"\n[build-dependencies]\naoti-build = \"0.1\"\n\
         [package.metadata.aoti]\ncpu = [\"native\"]\n[workspace]\n[patch.crates-io]\n{patches}"
    );
    let project = folder.path().join("user");
    write(&project, "Cargo.toml", &manifest);
    write(&project, "build.rs", BUILD);
    write(&project, "src/main.rs", MAIN);
    write(&project, "models/twice.aoti", MODEL);
    fs::copy(root.join("Cargo.lock"), project.join("Cargo.lock")).unwrap();
    let mut run = cargo(&project, &project.join("cache"));
    let ended = Ended::of(run.args(["run", "--quiet"])).succeeded();
    assert_eq!(ended.stdout, "[2.0, 4.0, 6.0]\n");

    let packages = dependencies(&project);
    let is_there = |name: &str| packages.iter().any(|package| package.split(' ').next() == Some(name));
    assert!(CRATES.into_iter().all(is_there), "{packages:?}");
    assert!(packages.len() <= MOST_CRATES, "{} crates: {packages:?}", packages.len());
    // Derives take longer to compile than what they are for.
    assert!(!is_there("syn"), "{packages:?}");
}

/// What the page says of the dependencies of each crate: its sections, whose titles are names of crates, have a table.
fn explained(page: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for section in page.split("\n## ").skip(1) {
        let (title, text) = section.split_once('\n').unwrap();
        let rows = text.lines().filter_map(|line| line.strip_prefix("| `")?.split_once(" |"));
        let names: BTreeSet<String> =
            rows.flat_map(|(cell, _)| cell.trim_end_matches('`').split("`, `").map(str::to_owned)).collect();
        all.extend(title.split(" and ").map(|crate_name| (crate_name.to_owned(), names.clone())));
    }
    all
}

/// Crates that one section explains together have one table.
#[test]
fn every_dependency_is_explained_and_nothing_else() {
    let root = workspace();
    let page = fs::read_to_string(root.join("docs/DEPENDENCIES.md")).unwrap();
    let explained = explained(&page);
    let folder = tempfile::tempdir().unwrap();
    let mut metadata = cargo(root, folder.path());
    let ended = Ended::of(metadata.args(["metadata", "--no-deps", "--format-version", "1"])).succeeded();
    let metadata: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    let mut had: BTreeMap<&BTreeSet<String>, BTreeSet<String>> = BTreeMap::new();
    for package in metadata["packages"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        let names = explained.get(name).unwrap_or_else(|| panic!("{name} has no section"));
        let dependencies = package["dependencies"].as_array().unwrap();
        let dependencies = dependencies.iter().map(|one| one["name"].as_str().unwrap().to_owned());
        had.entry(names).or_default().extend(dependencies);
    }
    assert!(explained.len() >= 7, "{explained:?}");
    for (explained, had) in had {
        assert_eq!(*explained, had);
    }
}

/// What `cargo deny check licenses` compares, without that program.
#[test]
fn every_dependency_has_a_licence_that_the_policy_allows() {
    let policy: toml::Table = fs::read_to_string(workspace().join("deny.toml")).unwrap().parse().unwrap();
    let allowed = policy["licenses"]["allow"].as_array().unwrap();
    let is_allowed = |name: &str| allowed.iter().any(|one| one.as_str() == Some(name));
    let host = aoti_toolchain::Target::host();
    let mut metadata = Command::new(env!("CARGO"));
    metadata.args(["metadata", "--format-version", "1", "--offline", "--filter-platform", host.as_str()]);
    let told = Ended::of(metadata.current_dir(workspace())).succeeded().stdout;
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    let packages = told["packages"].as_array().unwrap();
    assert!(packages.len() > 100);
    let mistake = |package: &serde_json::Value| {
        let license = package["license"].as_str().unwrap_or_default();
        let parsed = spdx::Expression::parse_mode(license, spdx::ParseMode::LAX);
        let is_fine = parsed.is_ok_and(|all| all.evaluate(|one| is_allowed(&one.to_string())));
        (!is_fine).then(|| format!("{}: `{license}`", package["name"]))
    };
    assert_eq!(packages.iter().filter_map(mistake).collect::<Vec<_>>(), [""; 0]);
}
