//! The C++ that is printed for processors stands in goldens, beside that of devices.
//!
//! `UPDATE_GOLDENS=1` rewrites them.

use aoti_compiler::compile::{Emit, Options, emit};
use bytes::Bytes;
use std::path::Path;

/// Graphs of the tests of devices.
const NAMES: [&str; 10] = [
    "bytes",
    "kernels",
    "control",
    "attention",
    "random",
    "matrices",
    "narrow",
    "order",
    "scatters",
    "grouped",
];

/// Both levels that templates differ for.
const LEVELS: [&str; 2] = ["x86-64-v3", "x86-64-v4"];

fn printed(folder: &Path, name: &str) -> String {
    let model =
        std::fs::read(folder.join(format!("tests/device/{name}.aoti"))).expect("the graph is in the tree");
    let options = Options::new(name, LEVELS);
    emit(Bytes::from(model), &options, Emit::Cpp).expect("the graph compiles")
}

#[test]
fn kernels_are_printed_as_the_goldens_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut stale = Vec::new();
    for name in NAMES {
        let text = printed(folder, name);
        let path = folder.join(format!("tests/goldens/cpu/{name}.cpp"));
        if std::env::var_os("UPDATE_GOLDENS").is_some() {
            std::fs::write(&path, text).expect("goldens can be written");
        } else if std::fs::read_to_string(&path).ok().as_ref() != Some(&text) {
            stale.push(path);
        }
    }
    assert!(
        stale.is_empty(),
        "{stale:?} differ from what is printed: read the new ones with UPDATE_GOLDENS=1"
    );
}
