//! The hand-written headers that generated code includes, embedded in the compiler.

#[cfg(test)]
pub(crate) mod numbers;

use super::bundle::SourceFile;

macro_rules! headers {
    ($($name:literal),* $(,)?) => {
        const HEADERS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../../include/aoti/", $name))),)*];
    };
}

headers![
    "abi.h",
    "attention.h",
    "base.h",
    "blas.h",
    "bytes.h",
    "check.h",
    "checked.h",
    "collective.h",
    "contract_any.h",
    "conv.h",
    "depthwise.h",
    "depthwise_pixels.h",
    "depthwise_words.h",
    "devices.h",
    "dots.h",
    "dynamic.h",
    "exchange.h",
    "expand.h",
    "extern.h",
    "float8.h",
    "fourier.h",
    "fourier_passes.h",
    "fourier_radix.h",
    "gemm.h",
    "gemm_blas.h",
    "gemm_groups.h",
    "gemm_stream.h",
    "gemm_units.h",
    "gpu/atomics.h",
    "gpu/attention.h",
    "gpu/attention_few.h",
    "gpu/attention_tiles.h",
    "gpu/attention_units.h",
    "gpu/attention_waves.h",
    "gpu/cluster.h",
    "gpu/collective.h",
    "gpu/contract.h",
    "gpu/conv.h",
    "gpu/copies.h",
    "gpu/device.h",
    "gpu/driver.h",
    "gpu/emulate.h",
    "gpu/emulate_fragments.h",
    "gpu/emulate_units.h",
    "gpu/fourier.h",
    "gpu/fragments.h",
    "gpu/groups.h",
    "gpu/host.h",
    "gpu/library.h",
    "gpu/loaded.h",
    "gpu/mma.h",
    "gpu/model.h",
    "gpu/nth_element.h",
    "gpu/operands.h",
    "gpu/prepared.h",
    "gpu/roles.h",
    "gpu/run.h",
    "gpu/simt.h",
    "gpu/recurrent.h",
    "gpu/skinny.h",
    "gpu/scan.h",
    "gpu/scatter.h",
    "gpu/sort.h",
    "gpu/split_sums.h",
    "gpu/staged_fill.h",
    "gpu/states.h",
    "gpu/tensor_map.h",
    "gpu/timing.h",
    "gpu/unit_fill.h",
    "gpu/unit_roles.h",
    "gpu/units.h",
    "gpu/unpack.h",
    "gpu/wave_sums.h",
    "gpu/windows.h",
    "group_pixels.h",
    "host.h",
    "interleave.h",
    "lanes.h",
    "levels.h",
    "linalg.h",
    "linalg_eigen.h",
    "linalg_factor.h",
    "linalg_orthogonal.h",
    "linalg_mode.h",
    "linalg_team.h",
    "math.h",
    "math_f32.h",
    "math_f64.h",
    "math_f64_more.h",
    "math_more.h",
    "matrix.h",
    "matrix_units.h",
    "memory.h",
    "model.h",
    "nest.h",
    "nth_element.h",
    "operator.h",
    "ops.h",
    "pack.h",
    "pixel_kernels.h",
    "pixels.h",
    "prepare.h",
    "random.h",
    "round.h",
    "rows.h",
    "run.h",
    "scalar.h",
    "scan.h",
    "shuffle.h",
    "sizes.h",
    "special.h",
    "special_base.h",
    "special_bessel.h",
    "special_gamma.h",
    "special_normal.h",
    "special_polynomial.h",
    "strided.h",
    "tables.h",
    "tile.h",
    "transposed.h",
    "turned.h",
    "vec.h",
    "winograd.h",
    "winograd_bytes.h",
    "x86_gcc.h",
];

/// Headers that only some kernels need, in the order in which they are included.
const OPTIONAL: [&str; 26] = [
    "random.h",
    "special.h",
    "gemm.h",
    "gemm_units.h",
    "gemm_blas.h",
    "gemm_groups.h",
    "dots.h",
    "gemm_stream.h",
    "attention.h",
    "conv.h",
    "depthwise.h",
    "pixels.h",
    "winograd.h",
    "winograd_bytes.h",
    "depthwise_pixels.h",
    "depthwise_words.h",
    "group_pixels.h",
    "transposed.h",
    "contract_any.h",
    "linalg.h",
    "fourier.h",
    "rows.h",
    "nth_element.h",
    "scan.h",
    "extern.h",
    "turned.h",
];

/// A header that only some kernels need.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Header {
    /// Its place among those that are included.
    place: usize,
    file: &'static str,
}

impl Header {
    pub(crate) const RANDOM: Header = Header { place: 0, file: OPTIONAL[0] };
    pub(crate) const SPECIAL: Header = Header { place: 1, file: OPTIONAL[1] };

    /// The header in this file.
    pub(crate) fn named(file: &'static str) -> Header {
        let place = OPTIONAL.iter().position(|own| *own == file).unwrap_or(OPTIONAL.len());
        Header { place, file }
    }

    /// Its file.
    pub(super) fn file(self) -> &'static str {
        self.file
    }
}

/// The headers of the code for processors or for GPUs: what one of them includes.
pub(super) fn all(processors: bool, gpus: bool) -> impl Iterator<Item = SourceFile> {
    let wanted = move |name: &str| match name {
        "host.h" | "model.h" | "collective.h" | "levels.h" | "expand.h" => processors,
        name => gpus || !name.starts_with("gpu/"),
    };
    let several = processors && gpus;
    HEADERS
        .iter()
        .filter(move |(name, _)| wanted(name) && (several || *name != "devices.h"))
        .map(|(name, text)| SourceFile { name: format!("include/aoti/{name}"), text: (*text).to_owned() })
}
