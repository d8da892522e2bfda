//! Libraries of matrix products that a manifest may name. Each is opened when a model is loaded, and never needed.

use super::Vendor;
use crate::dtype::DType;

/// A library of matrix products.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum MathLibrary {
    /// cuBLASLt, for NVIDIA's GPUs.
    CublasLt,
    /// hipBLASLt, for AMD's.
    HipblasLt,
    /// OpenBLAS, for processors.
    OpenBlas,
    /// oneDNN, for processors.
    OneDnn,
}

impl MathLibrary {
    /// All of them.
    pub const ALL: [MathLibrary; 4] =
        [MathLibrary::CublasLt, MathLibrary::HipblasLt, MathLibrary::OpenBlas, MathLibrary::OneDnn];

    /// What it is called in manifests.
    pub fn name(self) -> &'static str {
        match self {
            MathLibrary::CublasLt => "cublaslt",
            MathLibrary::HipblasLt => "hipblaslt",
            MathLibrary::OpenBlas => "openblas",
            MathLibrary::OneDnn => "onednn",
        }
    }

    /// Whose GPUs it is for; none where it is for processors.
    pub fn vendor(self) -> Option<Vendor> {
        Vendor::ALL.into_iter().find(|vendor| vendor.backend().library == self)
    }

    /// The files that are opened, the first that there is (`gpu/library.h` and `blas.h`).
    pub fn files(self) -> &'static [&'static str] {
        match self {
            MathLibrary::CublasLt => &["libcublasLt.so.13", "libcublasLt.so.12"],
            MathLibrary::HipblasLt => &["libhipblaslt.so.1", "libhipblaslt.so.0"],
            MathLibrary::OpenBlas => &["libopenblas.so.0"],
            MathLibrary::OneDnn => &["libdnnl.so.3", "libdnnl.so.2"],
        }
    }

    /// The types whose sums it computes.
    pub fn sums(self) -> &'static [DType] {
        match self {
            MathLibrary::CublasLt | MathLibrary::HipblasLt => &[DType::F16, DType::Bf16, DType::F32],
            MathLibrary::OpenBlas => &[DType::F32, DType::F64],
            MathLibrary::OneDnn => &[DType::F32],
        }
    }
}
