//! The hand-written headers that generated code includes, carried inside the compiler.

use super::bundle::SourceFile;

macro_rules! headers {
    ($($name:literal),* $(,)?) => {
        const HEADERS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../include/aoti/", $name))),)*];
    };
}

headers![
    "abi.h",
    "base.h",
    "contract_any.h",
    "conv.h",
    "depthwise.h",
    "gemm.h",
    "lanes.h",
    "math.h",
    "math_f32.h",
    "math_f64.h",
    "math_more.h",
    "memory.h",
    "model.h",
    "nest.h",
    "ops.h",
    "round.h",
    "rows.h",
    "run.h",
    "special.h",
    "special_base.h",
    "special_bessel.h",
    "special_gamma.h",
    "special_normal.h",
    "special_polynomial.h",
    "tile.h",
    "transposed.h",
    "vec.h",
    "x86_gcc.h",
];

/// A header that is included where a kernel's text has one of its marks.
pub(super) struct Optional {
    pub(super) name: &'static str,
    pub(super) marks: &'static [&'static str],
}

/// In the order in which they are included.
pub(super) const OPTIONAL: &[Optional] = &[
    Optional { name: "special.h", marks: &["special::"] },
    Optional { name: "gemm.h", marks: &["gemm_packed", "gemm_general"] },
    Optional { name: "conv.h", marks: &["ConvShape"] },
    Optional { name: "depthwise.h", marks: &["conv_depthwise"] },
    Optional { name: "transposed.h", marks: &["conv_transposed_"] },
    Optional { name: "contract_any.h", marks: &["gemm_any", "conv_any", "conv_transposed_any"] },
    Optional { name: "rows.h", marks: &["scan<", "scan_extreme<", "sort_rows<", "search_sorted<"] },
];

/// All headers, as files of the bundle.
pub(super) fn all() -> impl Iterator<Item = SourceFile> {
    HEADERS
        .iter()
        .map(|(name, text)| SourceFile { name: format!("include/aoti/{name}"), text: (*text).to_owned() })
}
