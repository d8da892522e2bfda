//! Back ends for GPUs are rows: what is true of one of them stands in few files, and everything else asks for capabilities.

use std::collections::BTreeSet;

use super::{Source, sources};

/// The files with a row for each back end, which a new one adds to. Beside them there are its toolchain's definition, and the mirror
/// of the C interface, which is generated.
const ROWS: [&str; 6] = [
    "build-support/aoti-compiler/include/aoti/abi.h",
    "build-support/aoti-compiler/include/aoti/gpu/driver.h",
    "build-support/aoti-compiler/src/target/backend.rs",
    "build-support/aoti-runtime/src/device.rs",
    "toolchains/src/device_class.rs",
    "toolchains/src/gpu.rs",
];
const GENERATED: &str = "build-support/aoti-runtime/src/ffi/abi.rs";

/// Files about something that one vendor has, of which another needs none: methods with short names, its library of products,
/// its formats of code, its compiler.
const OWN: [&str; 4] = [
    "build-support/aoti-build/src/builder.rs",
    "build-support/aoti-compiler/include/aoti/gpu/library.h",
    "toolchains/src/device_code.rs",
    "toolchains/src/probe/gpu.rs",
];

/// Files that a new back end may touch, sources alone.
const MOST: usize = 8;

/// What stands for a back end in code.
const NAMES: [&str; 12] = [
    "Vendor::Nvidia",
    "Vendor::Amd",
    "Device::Cuda",
    "Device::Rocm",
    "GpuArchitecture::Cuda",
    "GpuArchitecture::Rocm",
    "AOTI_CUDA",
    "AOTI_ROCM",
    "kNvidia",
    "kAmd",
    "\"cuda\"",
    "\"rocm\"",
];

#[test]
fn back_ends_are_named_by_their_rows_alone() {
    let listed: BTreeSet<&str> = ROWS.into_iter().chain(OWN).chain([GENERATED]).collect();
    let sources = sources();
    let found: BTreeSet<&str> =
        sources.iter().filter(|own| names_a_back_end(own)).map(|own| own.path.as_str()).collect();
    let strangers: Vec<&&str> = found.difference(&listed).collect();
    assert!(strangers.is_empty(), "these files ask for a capability, or for a row, instead: {strangers:?}");
    let gone: Vec<&&str> = listed.difference(&found).collect();
    assert!(gone.is_empty(), "take these from the lists, they name none: {gone:?}");
    // And the definition of a toolchain.
    assert!(ROWS.len() + 2 <= MOST, "a new back end touches too many files");
}

fn names_a_back_end(source: &Source) -> bool {
    let is_shipped =
        ["build-support/", "cargo-aoti/", "toolchains/"].iter().any(|at| source.path.starts_with(at));
    let is_test = source.path.contains("/tests") || source.path.starts_with("build-support/xtask/");
    if !is_shipped || is_test || !source.has_extension(&["rs", "h"]) {
        return false;
    }
    let own = source.text.find("#[cfg(test)]\nmod tests {").map_or(&*source.text, |end| &source.text[..end]);
    let code = own.lines().map(|line| line.split("//").next().unwrap_or_default());
    code.into_iter().any(|line| NAMES.iter().any(|name| line.contains(name)))
}
