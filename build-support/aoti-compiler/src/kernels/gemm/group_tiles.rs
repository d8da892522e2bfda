//! Tiles of a GPU over weights that are stored as whole numbers of a few bits, scaled in groups along the depth.

use super::loads::has_whole_rows;
use super::{Code, OnGpus, Site, Tiling, launch, packed_groups, tiles};
use crate::constants;
use crate::cost::Cost;
use crate::dtype::DType;
use crate::halves::{Bf16, F16};
use crate::kernels::launch::Launch;
use crate::kernels::mapping::{IndexWidth, MathPath, Tile};
use crate::kernels::{self, Algorithm, Form, GroupTiles, Packing, Scratch};
use crate::loops::{MatMul, Program};
use crate::target::{GpuTarget, Target};

/// Bytes of a block of numbers and scales of which less are on their way.
const LARGE_BLOCK: i64 = 1280;
/// Warps of a block, each of which has blocks on their way.
const WARPS: i64 = constants::SKINNY_THREADS / 32;

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
                let groups = tiles_of(program, matmul).expect("it is for products with such weights");
                tiles::with_groups(program, (matmul, Some(&groups)), index, gpu)
            },
            launch,
        }),
    }),
};

/// The tile of matrix units that multiply a few rows, where only a run knows whether there are more than that; those of more are
/// computed as the kernel is mapped, by as many threads.
pub(crate) fn few_in_run(
    program: &Program,
    matmul: &MatMul,
    tile: &Tile,
    groups: &GroupTiles,
) -> Option<Tile> {
    let [row, _] = matmul.axes.as_slice() else { return None };
    let few = of_few_rows(groups, tile.index);
    let is_shared = tile.threads == few.threads && tile.producer_threads == 0 && tile.blocks == 1;
    let is_open = row.extent.as_int().is_none() && !tile.by.row().is_of_few;
    (is_open && is_shared && has_whole_rows(program, matmul)).then_some(few)
}

/// A tile of a few rows with numbers in groups, and the shared memory of its blocks (`kGroupedBytes` of `gpu/groups.h`).
pub(super) fn of_few_rows(groups: &GroupTiles, index: IndexWidth) -> Tile {
    let block = groups.block_bytes() as i64;
    let places = if block > LARGE_BLOCK { 3 } else { 4 };
    let shared = places * block * WARPS;
    Tile {
        shared,
        ..tiles::plain(
            MathPath::SkinnyGroupQuantized,
            GpuTarget::SKINNY_ROWS,
            constants::SKINNY_COLUMNS,
            index,
        )
    }
}

/// As that of other tiles, with as many blocks and as much memory as a few rows take where a run may have no more.
fn launch(program: &Program, matmul: &MatMul, tile: &Tile) -> Launch {
    let own = launch::of_product(program, matmul, tile);
    let few = tiles_of(program, matmul).and_then(|groups| few_in_run(program, matmul, tile, &groups));
    let Some(few) = few else { return own };
    let few = launch::of_product(program, matmul, &few);
    Launch { grid: own.grid.maximum(&few.grid), shared: own.shared.maximum(&few.shared), ..own }
}

/// The form of the right operand, if it is all of a constant that was dequantised in groups along the depth, and the target is a GPU.
pub(super) fn form(site: &Site) -> Option<Form> {
    let is_gpu = matches!(site.target, Target::Gpu(_));
    tiles_of(site.program, site.matmul).filter(|_| is_gpu).map(|tiles| Packing::GroupTiles(tiles).into())
}

/// The form for any GPU.
fn tiles_of(program: &Program, matmul: &MatMul) -> Option<GroupTiles> {
    let dtype = matmul.dtype;
    let has_tiles = dtype == DType::F32 || dtype.is_half();
    let (groups, [k, n]) = packed_groups::of_columns(program, matmul).filter(|_| has_tiles)?;
    let (rows, bits) = groups.in_columns(k, GpuTarget::GROUP_RUN)?;
    let is_own = |scale: &f32| {
        let rounded = if dtype == DType::F16 {
            F16::from_f32(*scale).to_f32()
        } else {
            Bf16::from_f32(*scale).to_f32()
        };
        rounded == *scale
    };
    let is_narrow = dtype.is_half() && rows < k && groups.scales.iter().all(is_own);
    let scale = if is_narrow { 2 } else { 4 };
    Some(GroupTiles { k, n, rows, bits, scale })
}
