//! As [`super::general`], on matrix units where the machine has them.

use super::{Code, Product, Tiling, as_it_is, general, units};
use crate::kernels::{self, Algorithm, Call};

pub(crate) static GENERAL_ON_UNITS: Algorithm = Algorithm {
    word: "gemm.general-on-units",
    version: 2,
    description: "GEMM, operands packed in each run, on matrix units if present",
    headers: |_| &["gemm_units.h"],
    code: kernels::Code::Product(Code {
        applies: units::may_help,
        cost: |site| units::cost(site).plus(&site.packs()),
        weights: as_it_is,
        scratch: |site| {
            let plain = general::scratch(site.sizes, site.element_bytes(), site.target);
            units::scratch(site, units::panel(site), plain)
        },
        tiling: Tiling::Units,
        widens: false,
        library: None,
        processors: Some(|_, _| {
            let call = Call::new("gemm_general_units", units::PLANNED);
            Product { is_of_words: false, is_packed: false, call }
        }),
        gpus: None,
    }),
};
