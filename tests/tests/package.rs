//! Archives of models: what is in them, that equal builds make equal bytes, and that what they hold is a crate that runs.

use std::io::Read;
use std::path::Path;

use aoti_tests::models::SCALED;
use aoti_tests::project::Project;
use aoti_tests::subcommand::{Ended, cargo, workspace};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// An archive, opened.
fn open(path: &Path) -> tar::Archive<Box<dyn Read>> {
    let file = std::fs::File::open(path).unwrap();
    let decoder = ruzstd::decoding::StreamingDecoder::new(std::io::BufReader::new(file)).unwrap();
    tar::Archive::new(Box::new(decoder) as Box<dyn Read>)
}

fn project() -> Project {
    let project = Project::new("[package.metadata.aoti]\ncpu = [\"x86-64\", \"x86-64-v3\"]\n");
    project.write("models/scaled.aoti", SCALED);
    project
}

#[test]
fn a_package_has_everything_and_the_same_bytes_each_time() {
    let projects = [project(), project()];
    let archives = projects.each_ref().map(|project| {
        let arguments = ["package", "scaled", "dist/scaled.tar.zst", "--license", "MIT"];
        Ended::of(&mut project.aoti(&arguments)).succeeded();
        project.folder().join("dist/scaled.tar.zst")
    });
    let [first, second] = archives.each_ref().map(|path| std::fs::read(path).unwrap());
    assert!(first == second, "two builds in two folders with two caches make other bytes");

    let (mut names, mut files) = (Vec::new(), Vec::new());
    for entry in open(&archives[0]).entries().unwrap() {
        let mut entry = entry.unwrap();
        let header = entry.header();
        let traces = (header.mtime().unwrap(), header.uid().unwrap(), header.gid().unwrap());
        assert_eq!(traces, (0, 0, 0));
        names.push(entry.path().unwrap().to_string_lossy().into_owned());
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        files.push(bytes);
    }
    assert!(names.is_sorted(), "{names:?}");
    let read = |name: &str| {
        let at = names.iter().position(|own| own.strip_prefix("scaled/") == Some(name));
        &files[at.unwrap_or_else(|| panic!("no {name} in {names:?}"))]
    };
    let manifest: Value = serde_json::from_slice(read("manifest.json")).unwrap();
    for file in manifest["files"].as_array().unwrap() {
        let digest = Sha256::digest(read(file["path"].as_str().unwrap()));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(file["sha256"], digest, "{file}");
    }
    let target = &manifest["targets"][0];
    let glibc = target["minimum"]["glibc"].as_str().unwrap();
    assert!(glibc.starts_with("2."), "{target}");
    assert_eq!(target["weights"]["embedded"], true);
    assert!(
        target["toolchains"][0]["version"].as_str().is_some_and(|version| !version.is_empty()),
        "{target}"
    );

    let sbom: Value = serde_json::from_slice(read("sbom.spdx.json")).unwrap();
    assert_eq!(sbom["spdxVersion"], "SPDX-2.3");
    let listed = sbom["files"].as_array().unwrap();
    assert_eq!(listed.len(), manifest["files"].as_array().unwrap().len());
    let model =
        sbom["packages"].as_array().unwrap().iter().find(|package| package["SPDXID"] == "SPDXRef-Model");
    let model = model.unwrap();
    assert_eq!(model["checksums"][1]["checksumValue"], manifest["model"]["sha256"]);
    assert_eq!(model["licenseDeclared"], "MIT");
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "include/aoti_scaled.h", "include/aoti/abi.h"] {
        read(name);
    }
}

#[test]
fn a_package_is_a_crate() {
    let project = project();
    Ended::of(&mut project.aoti(&["package", "scaled", "scaled.tar.zst"])).succeeded();
    open(&project.folder().join("scaled.tar.zst")).unpack(project.folder()).unwrap();
    let write = |name: &str, text: &str| project.write(&format!("user/{name}"), text);
    write(
        "Cargo.toml",
        "[package]\nname = \"user\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[dependencies]\n\
         scaled-model = { path = \"../scaled\" }\naoti-runtime = \"*\"\n[workspace]\n",
    );
    write(
        "src/main.rs",
        "use aoti_runtime::TensorView;\nuse scaled_model::scaled;\n\
         fn main() -> Result<(), aoti_runtime::Error> {\n    let model = scaled::Model::load()?;\n    \
         let x = TensorView::new(&[1.0_f32; 6], &[2, 3])?;\n    let outputs = model.run(&scaled::Inputs { x })?;\n    \
         println!(\"{:?}\", outputs.y.as_slice());\n    Ok(())\n}\n",
    );
    let runtime = workspace().join("build-support/aoti-runtime");
    let mut command = cargo(&project.folder().join("user"), &project.folder().join("cache"));
    command.args(["run", "--quiet", "--offline", "--config"]);
    command.arg(format!("patch.crates-io.aoti-runtime.path={:?}", runtime.display().to_string()));
    assert_eq!(Ended::of(&mut command).succeeded().stdout, "[1.0, 2.0, 3.0, 1.0, 2.0, 3.0]\n");
}
