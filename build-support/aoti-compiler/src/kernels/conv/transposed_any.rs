//! Transposed, a tap at a time; on GPUs as a product of weights and pixels, by tiles.

use super::any::{BY_TILES, calls};
use super::{Code, OnProcessors, Site, as_they_are, no_scratch, one_order, windows};
use crate::cost::{Cost, WorkKind};
use crate::kernels::{self, Algorithm};

pub(crate) static TRANSPOSED_ANY: Algorithm = Algorithm {
    word: "conv.transposed_any",
    version: 1,
    description: "generic transposed convolution",
    headers: |_| &["conv.h", "contract_any.h"],
    code: kernels::Code::Convolution(Code {
        applies: is_transposed,
        cost: |site| Cost::of(WorkKind::ScalarFma, site.multiply_adds()),
        weights: as_they_are,
        scratch: no_scratch,
        processors: Some(OnProcessors {
            orders: one_order,
            call: |site, _, _| calls(site, "conv_transposed_any"),
        }),
        gpus: Some(BY_TILES),
    }),
};

/// Whether it is transposed, and channels are first.
pub(super) fn is_transposed(site: &Site) -> bool {
    let is_plain = !site.is_last() && !site.conv.depth_is_by_tap() && !windows::suits(site);
    is_plain && site.conv.conv.transposed
}
