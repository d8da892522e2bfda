//! A row at a time, for every element type; on GPUs by tiles.

use super::{BY_TILES, Code, Operand, Product, Tiling, as_it_is, group_tiles, packed_words};
use crate::cost::{Cost, WorkKind};
use crate::kernels::{self, Algorithm, Call, Parameter, Scratch};

pub(crate) static ANY: Algorithm = Algorithm {
    word: "gemm.any",
    version: 1,
    description: "a product row by row",
    headers: |_| &["contract_any.h"],
    code: kernels::Code::Product(Code {
        applies: |site| {
            let has_none = site.sum.is_none() || (site.widens() && !site.has_widening_tiles());
            has_none && !packed_words::is_of_words(site) && group_tiles::form(site).is_none()
        },
        cost: |site| Cost::of(WorkKind::ScalarFma, site.multiply_adds()),
        weights: as_it_is,
        scratch: |_| Scratch::default(),
        tiling: Tiling::Row,
        widens: true,
        library: None,
        processors: Some(|_, _| {
            let sizes = ["n", "k", "a", "b"].map(Operand::Name);
            let operands = [Operand::Rows].into_iter().chain(sizes).chain([Operand::Epilogue]);
            let call = Call::new("gemm_any", operands).with([Parameter::Sum, "AOTI_LANES".into()]);
            Product { is_of_words: false, is_packed: false, call }
        }),
        gpus: Some(BY_TILES),
    }),
};
