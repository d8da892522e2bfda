//! Back ends for GPUs: what is called how by drivers, dialects and the C interface, and the architectures of each. Whatever
//! differs between devices is a capability or a limit of an architecture (`gpu.rs`).

use super::MathLibrary;
use super::gpu::{Architecture, MatrixUnits};
use crate::json_words;

/// Who makes the device, which decides the driver and the dialect of the code.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Vendor {
    /// NVIDIA, by CUDA.
    Nvidia,
    /// AMD, by HIP.
    Amd,
}

json_words!(Vendor { Nvidia = "nvidia", Amd = "amd" });

/// What is known of a back end.
#[derive(Debug)]
pub(crate) struct Backend {
    /// What its devices are called on command lines and in manifests.
    pub(crate) device: &'static str,
    /// What its dialect is called by `inspect --emit`.
    pub(crate) dialect: &'static str,
    /// What its code is, for people.
    pub(crate) description: &'static str,
    /// How names of files with its code end.
    pub(crate) extension: &'static str,
    /// Its devices in the C interface (`AotiDeviceKind` of `abi.h`).
    pub(crate) kind: &'static str,
    /// Its driver (`Vendor` of `gpu/driver.h`).
    pub(crate) maker: &'static str,
    /// An architecture with all that there are templates for, to show code of where none is named.
    pub(crate) newest: &'static str,
    /// The vendor's library of products, if it has one.
    pub(crate) library: Option<MathLibrary>,
    /// Its architectures.
    pub(super) architectures: &'static [Architecture],
}

static NVIDIA: Backend = Backend {
    device: "cuda",
    dialect: "cuda",
    description: "The kernels' CUDA C++",
    extension: "cu",
    kind: "AOTI_CUDA",
    maker: "kNvidia",
    newest: "sm_90a",
    library: Some(MathLibrary::CublasLt),
    architectures: &[
        with_clusters(nvidia("sm_10", 227 * 1024, 126 * MIB, MMA)),
        with_clusters(nvidia("sm_11", 227 * 1024, 32 * MIB, MMA)),
        with_clusters(nvidia("sm_12", 99 * 1024, 48 * MIB, MMA)),
        Architecture { has_tma: true, ..with_clusters(nvidia("sm_90", 227 * 1024, 50 * MIB, MMA)) },
        nvidia("sm_89", 99 * 1024, 32 * MIB, MMA),
        nvidia("sm_88", 99 * 1024, 4 * MIB, MMA),
        nvidia("sm_87", 163 * 1024, 4 * MIB, MMA),
        nvidia("sm_86", 99 * 1024, 4 * MIB, MMA),
        nvidia("sm_80", 163 * 1024, 40 * MIB, MMA),
        nvidia("sm_7", 64 * 1024, 4 * MIB, None),
    ],
};

static AMD: Backend = Backend {
    device: "rocm",
    dialect: "hip",
    description: "The kernels' HIP",
    extension: "hip",
    kind: "AOTI_ROCM",
    maker: "kAmd",
    newest: "gfx942",
    library: Some(MathLibrary::HipblasLt),
    architectures: &[
        amd("gfx908", 64, 8 * MIB, MFMA),
        amd("gfx90a", 64, 8 * MIB, MFMA),
        amd("gfx94", 64, 4 * MIB, MFMA),
        amd("gfx95", 64, 4 * MIB, MFMA),
        amd("gfx9", 64, 4 * MIB, None),
        amd("gfx11", 32, 4 * MIB, WMMA),
        // Its instructions are of another shape than those of gfx1200.
        amd("gfx125", 32, 4 * MIB, None),
        amd("gfx12", 32, 4 * MIB, WMMA12),
        amd("gfx10", 32, 4 * MIB, None),
    ],
};

const MIB: i64 = 1 << 20;
pub(super) const MMA: Option<MatrixUnits> = Some(MatrixUnits {
    name: "AOTI_MMA",
    multiplies_f32: true,
    copies_ahead: true,
    multiplies_by_warp: true,
    thread_sums: 128,
});
pub(super) const MFMA: Option<MatrixUnits> = Some(MatrixUnits {
    name: "AOTI_MFMA",
    multiplies_f32: true,
    copies_ahead: false,
    multiplies_by_warp: false,
    thread_sums: 128,
});
pub(super) const WMMA: Option<MatrixUnits> = Some(MatrixUnits {
    name: "AOTI_WMMA",
    multiplies_f32: false,
    copies_ahead: false,
    multiplies_by_warp: false,
    thread_sums: 64,
});

/// As those of gfx11, with other lanes.
const WMMA12: Option<MatrixUnits> = match WMMA {
    Some(units) => Some(MatrixUnits { name: "AOTI_WMMA12", ..units }),
    None => None,
};

const fn nvidia(
    prefix: &'static str,
    max_shared_bytes: i64,
    cache_bytes: i64,
    matrix_units: Option<MatrixUnits>,
) -> Architecture {
    Architecture {
        prefix,
        warp: 32,
        cluster_blocks: 1,
        has_tma: false,
        max_shared_bytes,
        cache_bytes,
        matrix_units,
    }
}

/// The same with clusters, of eight blocks where a kernel asks for nothing special.
const fn with_clusters(architecture: Architecture) -> Architecture {
    Architecture { cluster_blocks: 8, ..architecture }
}

const fn amd(
    prefix: &'static str,
    warp: i64,
    cache_bytes: i64,
    matrix_units: Option<MatrixUnits>,
) -> Architecture {
    Architecture {
        prefix,
        warp,
        cluster_blocks: 1,
        has_tma: false,
        max_shared_bytes: 64 * 1024,
        cache_bytes,
        matrix_units,
    }
}

impl Vendor {
    /// All of them.
    pub const ALL: [Vendor; 2] = [Vendor::Nvidia, Vendor::Amd];

    /// What is known of its back end.
    pub(crate) fn backend(self) -> &'static Backend {
        match self {
            Vendor::Nvidia => &NVIDIA,
            Vendor::Amd => &AMD,
        }
    }

    /// What its devices are called on command lines and in manifests.
    pub fn device(self) -> &'static str {
        self.backend().device
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::GpuTarget;

    #[test]
    fn what_stands_for_a_back_end_is_its_own() {
        for vendor in Vendor::ALL {
            let newest = GpuTarget::named(vendor.backend().newest).expect("it is in the table");
            assert_eq!(newest.vendor, vendor);
            let others = Vendor::ALL.into_iter().filter(|other| *other != vendor);
            let names = |own: Vendor| {
                let Backend { device, dialect, extension, kind, maker, .. } = own.backend();
                [*device, dialect, extension, kind, maker]
            };
            for other in others {
                assert!(names(vendor).iter().zip(names(other)).all(|(own, other)| *own != other));
            }
        }
    }
}
