//! The software bill of materials: SPDX 2.3 in JSON.

use std::collections::BTreeSet;

use aoti_build::Model;
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::{Digest, Sha256};

use super::entry::{File, hex};

/// Licence of what cargo-aoti generates and of its own headers.
const OURS: &str = "MIT OR Apache-2.0";

/// The document of a package: the model and its file, cargo-aoti and the compilers, and all files with their digests.
pub(super) fn document(
    model: &Model,
    source: &File,
    license: &str,
    files: &[File],
    tools: BTreeSet<(String, String)>,
) -> Value {
    let name = model.identifier();
    let mut packages = vec![
        package("Package", &name, None, license),
        package("Model", &model.path.file_name().unwrap_or_default().to_string_lossy(), None, license),
        package("Compiler", "cargo-aoti", Some(env!("CARGO_PKG_VERSION")), OURS),
        package("Runtime", "aoti-runtime", Some(env!("CARGO_PKG_VERSION")), OURS),
    ];
    packages[0]["filesAnalyzed"] = json!(true);
    packages[0]["licenseInfoFromFiles"] = json!(["NOASSERTION"]);
    packages[0]["packageVerificationCode"] = json!({
        "packageVerificationCodeValue": verification(files),
        "packageVerificationCodeExcludedFiles": ["./manifest.json", "./sbom.spdx.json"],
    });
    packages[1]["checksums"] = checksums(source);
    let mut relationships = vec![
        relationship("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Package"),
        relationship("SPDXRef-Package", "GENERATED_FROM", "SPDXRef-Model"),
        relationship("SPDXRef-Package", "DEPENDS_ON", "SPDXRef-Runtime"),
        relationship("SPDXRef-Compiler", "BUILD_TOOL_OF", "SPDXRef-Package"),
    ];
    for (index, (tool, version)) in tools.iter().enumerate() {
        let id = format!("Tool-{index}");
        packages.push(package(&id, tool, Some(version), "NOASSERTION"));
        relationships.push(relationship(&format!("SPDXRef-{id}"), "BUILD_TOOL_OF", "SPDXRef-Package"));
    }
    let listed: Vec<Value> = files.iter().enumerate().map(|(index, file)| listed(index, file)).collect();
    for file in &listed {
        let id = file["SPDXID"].as_str().unwrap_or_default();
        relationships.push(relationship("SPDXRef-Package", "CONTAINS", id));
    }
    // The same package has the same document, and another one another name.
    let digests: String = files.iter().map(|file| file.sha256.as_str()).collect();
    let digest = hex(&Sha256::digest(digests));
    json!({
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": name,
        "documentNamespace": format!("https://spdx.org/spdxdocs/{name}-{digest}"),
        // A time would differ from build to build.
        "creationInfo": {
            "created": "1970-01-01T00:00:00Z",
            "creators": [format!("Tool: cargo-aoti-{}", env!("CARGO_PKG_VERSION"))],
        },
        "packages": packages,
        "files": listed,
        "relationships": relationships,
    })
}

/// One digest for all files, as SPDX defines it.
fn verification(files: &[File]) -> String {
    let mut digests: Vec<&str> = files.iter().map(|file| file.sha1.as_str()).collect();
    digests.sort_unstable();
    hex(&Sha1::digest(digests.concat()))
}

fn package(id: &str, name: &str, version: Option<&str>, license: &str) -> Value {
    let mut package = json!({
        "SPDXID": format!("SPDXRef-{id}"),
        "name": name,
        "downloadLocation": "NOASSERTION",
        "filesAnalyzed": false,
        "licenseConcluded": "NOASSERTION",
        "licenseDeclared": license,
        "copyrightText": "NOASSERTION",
    });
    if let Some(version) = version {
        package["versionInfo"] = json!(version);
    }
    package
}

fn listed(index: usize, file: &File) -> Value {
    let is_weights = file.name.ends_with(".weights.bin");
    let kind = match file.name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("rs" | "h") => "SOURCE",
        Some("a" | "so" | "bin") => "BINARY",
        _ => "TEXT",
    };
    json!({
        "SPDXID": format!("SPDXRef-File-{index}"),
        "fileName": format!("./{}", file.name),
        "fileTypes": [kind],
        "checksums": checksums(file),
        "licenseConcluded": if is_weights || kind == "BINARY" { "NOASSERTION" } else { OURS },
        "licenseInfoInFiles": ["NOASSERTION"],
        "copyrightText": "NOASSERTION",
    })
}

fn checksums(file: &File) -> Value {
    json!([
        { "algorithm": "SHA1", "checksumValue": file.sha1 },
        { "algorithm": "SHA256", "checksumValue": file.sha256 },
    ])
}

fn relationship(from: &str, kind: &str, to: &str) -> Value {
    json!({ "spdxElementId": from, "relationshipType": kind, "relatedSpdxElement": to })
}
