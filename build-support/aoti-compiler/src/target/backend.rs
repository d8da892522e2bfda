//! Back ends for GPUs: what is called how by drivers, dialects and the C interface. Everything else that differs between
//! devices is a capability or a limit of an architecture (`gpu.rs`).

use super::MathLibrary;
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
    /// Its driver (`Maker` of `gpu/driver.h`).
    pub(crate) maker: &'static str,
    /// An architecture with all that there are templates for, to show code of where none is named.
    pub(crate) newest: &'static str,
    /// The vendor's library of products.
    pub(crate) library: MathLibrary,
}

static NVIDIA: Backend = Backend {
    device: "cuda",
    dialect: "cuda",
    description: "The kernels' CUDA C++",
    extension: "cu",
    kind: "AOTI_CUDA",
    maker: "kNvidia",
    newest: "sm_90a",
    library: MathLibrary::CublasLt,
};

static AMD: Backend = Backend {
    device: "rocm",
    dialect: "hip",
    description: "The kernels' HIP",
    extension: "hip",
    kind: "AOTI_ROCM",
    maker: "kAmd",
    newest: "gfx942",
    library: MathLibrary::HipblasLt,
};

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
