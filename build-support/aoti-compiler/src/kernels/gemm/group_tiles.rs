//! Tiles of a GPU over weights that are stored as whole numbers of a few bits, scaled in groups along the depth.

use super::{Code, OnGpus, Site, Tiling, launch, packed_groups, tiles};
use crate::cost::Cost;
use crate::dtype::DType;
use crate::halves::{Bf16, F16};
use crate::kernels::{self, Algorithm, Form, GroupTiles, Packing, Scratch};
use crate::target::{GpuTarget, Target};

pub(crate) static GROUP_TILES: Algorithm = Algorithm {
    word: "gemm.group-tiles",
    version: 1,
    description: "tiles of quantised weights",
    headers: |_| &[],
    code: kernels::Code::Product(Code {
        applies: |site| form(site).is_some(),
        // It is taken for the memory that weights need.
        cost: |_| Cost::default(),
        weights: form,
        scratch: |_| Scratch::default(),
        tiling: Tiling::Row,
        widens: false,
        library: None,
        processors: None,
        gpus: Some(OnGpus {
            tiles: |program, matmul, index, gpu| {
                let target = Target::Gpu(gpu.clone());
                match form(&Site::new(program, matmul, &target)) {
                    Some(Form::Packed(Packing::GroupTiles(groups))) => {
                        tiles::of_grouped_product(program, (matmul, &groups), index, gpu)
                    }
                    Some(_) | None => unreachable!("it applies to products with such weights"),
                }
            },
            launch: launch::of_product,
        }),
    }),
};

/// The form of the right operand, if it is all of a constant that was dequantised in groups along the depth, and the target is a GPU.
pub(super) fn form(site: &Site) -> Option<Form> {
    let Target::Gpu(_) = site.target else { return None };
    let dtype = site.matmul.dtype;
    let has_tiles = dtype == DType::F32 || dtype.is_half();
    let (groups, [k, n]) = packed_groups::of_columns(site).filter(|_| has_tiles)?;
    let (rows, bits) = groups.in_columns(k, GpuTarget::GROUP_RUN)?;
    let is_own = |scale: &f32| match dtype {
        DType::F16 => F16::from_f32(*scale).to_f32() == *scale,
        _ => Bf16::from_f32(*scale).to_f32() == *scale,
    };
    let is_narrow = dtype.is_half() && rows < k && groups.scales.iter().all(is_own);
    let scale = if is_narrow { 2 } else { 4 };
    Some(Packing::GroupTiles(GroupTiles { k, n, rows, bits, scale }).into())
}
