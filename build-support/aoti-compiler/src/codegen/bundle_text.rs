//! The text of a whole source bundle, by which the bundles of two versions of the compiler are compared.

use super::bindings::{self, Link, WeightsPlacement};
use super::bundle::{SourceBundle, WeightsBlob};
use crate::json::ToJson;

/// Precedes the name of each part.
const HEADING: &str = "==== ";

/// Every file, then what is made from them and the weights, each under a heading.
pub fn print(bundle: &SourceBundle) -> String {
    let mut text = String::new();
    let mut part = |name: &str, content: &str| {
        text.push_str(&format!("{HEADING}{name}\n{content}"));
        if !content.ends_with('\n') {
            text.push('\n');
        }
    };
    for file in &bundle.files {
        part(&file.name, &file.text);
    }
    let options = bindings::Options {
        weights: WeightsPlacement::External,
        link: Link::Static,
        weights_digest: None,
        samples: None,
    };
    part("bindings", &bundle.bindings(&options));
    part("header", &bundle.header());
    part("weights", &segments(&bundle.weights));
    part("fixed", &segments(&bundle.fixed));
    part("interface", &lines(std::slice::from_ref(&bundle.interface)));
    if !bundle.programs.is_empty() {
        part("programs", &lines(&bundle.programs));
    }
    part("units", &lines(&bundle.units));
    part("devices", &lines(&bundle.devices));
    part("functions", &lines(&bundle.functions));
    part("kernels", &bundle.kernels.to_string());
    text
}

/// One line of JSON for each.
fn lines(values: &[impl ToJson]) -> String {
    values.iter().map(|value| format!("{}\n", value.to_json())).collect()
}

/// For each segment its offset and length, with a digest in place of its bytes.
fn segments(blob: &WeightsBlob) -> String {
    let line = |(offset, data): &(u64, bytes::Bytes)| {
        format!("{offset}: {} bytes, blake3 {}\n", data.len(), blake3::hash(data).to_hex())
    };
    format!("{} bytes\n{}", blob.bytes, blob.segments.iter().map(line).collect::<String>())
}
