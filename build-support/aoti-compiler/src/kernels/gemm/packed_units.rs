//! As [`super::packed`], on matrix units where the machine has them.

use super::{Code, Product, Tiling, units};
use crate::kernels::{self, Algorithm, Call};
use crate::symbolic::Expr;

pub(crate) static PACKED_ON_UNITS: Algorithm = Algorithm {
    word: "gemm.packed-on-units",
    version: 2,
    description: "GEMM, weights prepacked, on matrix units if present",
    headers: |_| &["gemm_units.h"],
    code: kernels::Code::Product(Code {
        applies: |site| units::may_help(site) && site.is_packable(),
        cost: |site| units::cost(site).plus(&site.read(0.5)),
        weights: |site| site.panels(site.is_of_halves()).map(Into::into),
        scratch: |site| units::scratch(site, Expr::int(0), site.packed_scratch()),
        tiling: Tiling::Units,
        widens: false,
        library: None,
        processors: Some(|_, _| {
            let call = Call::new("gemm_packed_units", units::PLANNED);
            Product { is_of_words: false, is_packed: true, call }
        }),
        gpus: None,
    }),
};
