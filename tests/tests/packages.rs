//! The packages as a registry would hand them out: a project that has nothing else of ours builds and runs, offline.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

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

fn succeed(command: &mut Command) -> String {
    for name in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "OUT_DIR", "DOCS_RS", "AOTI_BUILD"] {
        command.env_remove(name);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn write(folder: &Path, name: &str, content: &str) {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Packs the workspace and unpacks what its users need.
fn unpacked(root: &Path, folder: &Path) -> Vec<(&'static str, PathBuf)> {
    let packages = folder.join("packages");
    let mut pack = Command::new(env!("CARGO"));
    pack.args(["package", "--workspace", "--no-verify", "--offline", "--allow-dirty", "--quiet"]);
    succeed(pack.arg("--target-dir").arg(&packages).current_dir(root));
    let version = env!("CARGO_PKG_VERSION");
    let unpack = |name: &'static str| {
        let archive = packages.join("package").join(format!("{name}-{version}.crate"));
        succeed(Command::new("tar").arg("xzf").arg(&archive).arg("-C").arg(folder));
        let place = folder.join(format!("{name}-{version}"));
        for file in ["LICENSE-APACHE", "LICENSE-MIT", "README.md"] {
            assert!(fs::metadata(place.join(file)).unwrap().len() > 100, "{name} lacks its {file}");
        }
        (name, place)
    };
    CRATES.map(unpack).into()
}

#[test]
fn a_project_builds_offline_from_the_packages_alone() {
    let folder = tempfile::tempdir().unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
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
    let mut run = Command::new(env!("CARGO"));
    run.args(["run", "--offline", "--quiet"]).current_dir(&project);
    run.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("project"));
    assert_eq!(succeed(run.env("AOTI_CACHE_DIR", project.join("cache"))), "[2.0, 4.0, 6.0]\n");
}
