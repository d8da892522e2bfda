//! Which tiles products and convolutions get.

use super::*;
use crate::loops::KernelKind;
use crate::loops::text::parse;
use crate::target::Tf32;

/// The tile of a product `[m, k] x [n, k]` of `dtype`.
fn product(dtype: &str, m: &str, n: i64, k: i64, architecture: &str) -> Tile {
    product_on(dtype, m, n, k, GpuTarget::named(architecture).expect("it is in the table"))
}

fn product_on(dtype: &str, m: &str, n: i64, k: i64, target: GpuTarget) -> Tile {
    product_tiles(dtype, m, n, k, target).swap_remove(0)
}

fn product_tiles(dtype: &str, m: &str, n: i64, k: i64, target: GpuTarget) -> Vec<Tile> {
    let program = parse(&format!(
        r#"loops {{
            symbol s0 "rows" in 1..100000 from input 0 axis 0
            buffer b0 "x": {dtype}[{m}, {k}] input 0
            buffer b1 "w": {dtype}[{n}, {k}] input 1
            buffer b2: {dtype}[{m}, {n}] output 0
            kernel "p" {{ matmul {dtype} b0 [0, {k}, 1], b1 [0, 1, {k}] over [i0 < {m}, i1 < {n}] depth [{k}] {{
                t0: f32 = total t1: {dtype} = cast t0 store b2[i0, i1] = t1 }} }}
        }}"#
    ))
    .unwrap_or_else(|error| panic!("{error}"));
    let kernel = program.kernels.values().next().expect("one kernel");
    let KernelKind::MatMul(matmul) = &kernel.kind else { panic!("a product") };
    of_product(&program, matmul, IndexWidth::Narrow, &target)
}

fn sizes(tile: &Tile) -> (MathPath, i64, i64) {
    (tile.by, tile.rows, tile.columns)
}

#[test]
fn the_largest_tile_that_keeps_the_device_busy_is_taken() {
    let halves = |m, n, k| sizes(&product("bf16", m, n, k, "sm_90a"));
    assert_eq!(halves("4096", 4096, 4096), (MathPath::TensorCore, 128, 256));
    assert_eq!(halves("1024", 768, 768), (MathPath::TensorCore, 128, 64));
    assert_eq!(halves("4096", 4096, 64), (MathPath::TensorCore, 64, 64), "short sums end soon");
    assert_eq!(halves("s0", 768, 768), (MathPath::TensorCore, 128, 128), "sizes are not known");
    let floats = |m, n, k| sizes(&product("f32", m, n, k, "sm_90a"));
    assert_eq!(floats("4096", 4096, 4096), (MathPath::TensorCore, 128, 128));
    assert_eq!(floats("512", 768, 768), (MathPath::TensorCore, 64, 64));
    let old = |m| product("f32", m, 768, 768, "sm_80");
    assert_eq!(sizes(&old("128")), (MathPath::TensorCore, 32, 32));
    assert_eq!(old("128").threads, 512, "each has a multiprocessor");
    assert_eq!(old("256").threads, 256, "some share one");
    assert_eq!(sizes(&old("64")), (MathPath::Simt, 16, 32), "or each sum takes long");
    assert_eq!(floats("12", 768, 768), (MathPath::Simt, 16, 64));
    let producer_threads = |m, n, k| product("bf16", m, n, k, "sm_90a").producer_threads;
    assert_eq!(
        (producer_threads("4096", 4096, 4096), producer_threads("s0", 768, 768)),
        (PRODUCER_THREADS, PRODUCER_THREADS)
    );
    assert_eq!(producer_threads("2048", 2048, 2048), 0, "each multiprocessor has one tile");
    assert_eq!(producer_threads("4096", 4096, 4100), 0, "rows begin anywhere");
    assert_eq!(product("bf16", "4096", 4096, 4096, "sm_80").producer_threads, 0);
    let old = |m, n, k| sizes(&product("f32", m, n, k, "sm_75"));
    assert_eq!(old("128", 768, 768), (MathPath::Simt, 32, 32));
}

#[test]
fn floats_are_rounded_where_that_is_allowed_and_the_units_can() {
    let by = |dtype: &str, architecture: &str, matmul: bool| {
        let target = GpuTarget::named(architecture).expect("it is in the table");
        product_on(dtype, "512", 768, 768, target.allowing(Tf32 { matmul, conv: true })).by
    };
    assert_eq!(by("f32", "sm_90a", true), MathPath::TensorCoreTf32);
    assert_eq!(by("f32", "sm_90a", false), MathPath::TensorCore, "convolutions are others");
    assert_eq!(by("bf16", "sm_90a", true), MathPath::TensorCore);
    assert_eq!(by("f64", "sm_90a", true), MathPath::Simt);
    assert_eq!(by("f32", "sm_75", true), MathPath::Simt);
    assert_eq!(by("f32", "gfx942", true), MathPath::TensorCore, "units that know no TF32");
}

#[test]
fn units_without_copies_have_a_piece_at_a_time() {
    let amd = |dtype, architecture| product(dtype, "4096", 4096, 4096, architecture);
    let halves = amd("f16", "gfx942");
    assert_eq!(sizes(&halves), (MathPath::TensorCore, 128, 256));
    assert_eq!(halves.shared, (128 + 256) * 128, "a piece of both operands");
    assert_eq!(sizes(&amd("f16", "gfx1201")), (MathPath::TensorCore, 128, 128), "fewer registers");
    assert_eq!(product("f16", "s0", 768, 768, "gfx942").shared, 64 * (128 + 8) * 4, "half of the results");
    assert_eq!(sizes(&amd("f32", "gfx942")), (MathPath::TensorCore, 128, 128));
    assert_eq!(sizes(&amd("f32", "gfx1201")), (MathPath::Simt, 128, 128), "no instruction for them");
    assert_eq!(sizes(&amd("f16", "gfx1030")), (MathPath::Simt, 128, 128), "no units");
    assert_eq!(product("f16", "12", 768, 768, "gfx942").by, MathPath::Simt, "a few rows");
}

#[test]
fn blocks_share_tiles_where_there_are_few_and_sums_are_long() {
    let halves = |m, n, k| product("bf16", m, n, k, "sm_90a");
    let elsewhere = product("bf16", "1024", 768, 3072, "sm_100");
    assert_eq!((sizes(&elsewhere), elsewhere.blocks), ((MathPath::TensorCore, 128, 128), 2));
    assert_eq!(halves("1024", 768, 768).blocks, 1, "there are enough");
    assert_eq!(
        (sizes(&halves("196", 256, 2304)), halves("196", 256, 2304).blocks),
        ((MathPath::TensorCore, 64, 64), 4)
    );
    assert_eq!(halves("196", 256, 256).blocks, 1, "sums are short");
    assert_eq!(halves("s0", 256, 2304).blocks, 1, "sizes are not known");
    let floats = |m, n, k| product("f32", m, n, k, "sm_90a");
    assert_eq!(
        (sizes(&floats("49", 512, 4608)), floats("49", 512, 4608).blocks),
        ((MathPath::TensorCore, 64, 64), 8)
    );
    assert_eq!(
        (sizes(&floats("12", 768, 768)), floats("12", 768, 768).blocks),
        ((MathPath::Simt, 16, 64), 4)
    );
    assert_eq!(product("f32", "12", 768, 768, "sm_80").blocks, 1, "blocks there are no cluster");
}

#[test]
fn blocks_share_tiles_that_are_brought() {
    let all = |m: i64, n, k| {
        let target = GpuTarget::named("sm_90a").expect("it is in the table");
        product_tiles("bf16", &m.to_string(), n, k, target)
    };
    let shared = |m, n, k| -> Vec<(i64, i64)> {
        let tiles = all(m, n, k).into_iter().filter(|tile| tile.producer_threads > 0 && tile.blocks > 1);
        tiles.map(|tile| (tile.columns, tile.blocks)).collect()
    };
    let few = product("bf16", "384", 1536, 6144, "sm_90a");
    assert!(few.producer_threads > 0, "{few:?}");
    assert_eq!((few.columns, few.blocks), (128, 2));
    assert_eq!(product("bf16", "1024", 768, 768, "sm_90a").blocks, 1, "sums are short");
    assert_eq!(product("bf16", "196", 256, 2304, "sm_90a").producer_threads, 0, "small tiles end sooner");
    assert!(shared(512, 1024, 2816).contains(&(128, 4)));
    assert!(shared(512, 1024, 128).is_empty(), "sums are short");
    assert!(shared(8192, 8192, 2816).is_empty(), "there are enough");
    assert!(shared(512, 1020, 2820).is_empty(), "rows begin anywhere");
}

#[test]
fn long_sums_of_a_few_columns_are_left_to_matrix_units_too() {
    let of = |dtype, k, architecture| sizes(&product(dtype, "4096", 16, k, architecture));
    assert_eq!(of("bf16", 4096, "sm_90a"), (MathPath::TensorCore, 64, 64));
    assert_eq!(of("f16", 128, "sm_80"), (MathPath::TensorCore, 64, 64));
    assert_eq!(of("bf16", 64, "sm_90a"), (MathPath::Simt, 64, 16), "a sum is short");
    assert_eq!(of("f32", 4096, "sm_90a"), (MathPath::Simt, 64, 16));
    assert_eq!(of("bf16", 4096, "gfx942"), (MathPath::TensorCore, 64, 64));
    assert_eq!(of("bf16", 4096, "gfx1030"), (MathPath::Simt, 64, 16), "threads multiply there");
}

#[test]
fn a_few_rows_are_a_matter_of_bandwidth() {
    let of = |dtype, m, k, architecture| sizes(&product(dtype, m, 8192, k, architecture));
    assert_eq!(of("bf16", "1", 8192, "sm_90a"), (MathPath::Gemv, 4, 8));
    assert_eq!(of("bf16", "7", 8192, "sm_90a"), (MathPath::SkinnyTensorCore, 8, 16));
    assert_eq!(of("f16", "16", 8192, "sm_80"), (MathPath::SkinnyTensorCore, 16, 16));
    assert_eq!(of("bf16", "7", 8188, "sm_90a"), (MathPath::Simt, 16, 64), "loads are not whole");
    assert_eq!(of("f32", "7", 8192, "sm_90a").0, MathPath::Simt);
    assert_eq!(of("bf16", "7", 8192, "gfx942").0, MathPath::Simt);
}

#[test]
fn no_tile_has_more_shared_memory_than_the_device() {
    for architecture in ["sm_90a", "sm_86", "sm_80", "gfx90a", "gfx942", "gfx1100", "gfx1201"] {
        let tile = product("bf16", "8192", 8192, 8192, architecture);
        let target = GpuTarget::named(architecture).expect("it is in the table");
        let unknown = sizes(&product("bf16", "s0", 8192, 8192, architecture));
        let typical = if architecture == "sm_86" { (64, 64) } else { (128, 128) };
        assert_eq!(unknown, (MathPath::TensorCore, typical.0, typical.1), "{architecture}");
        assert!(tile.shared + KEPT_FREE <= target.max_shared_bytes, "{architecture}: {tile:?}");
    }
    assert_eq!(product("bf16", "8192", 8192, 8192, "gfx906").shared, 0, "threads multiply there");
}

#[test]
fn short_sums_have_no_more_pieces_than_they_need() {
    assert_eq!(product("f32", "4096", 4096, 40, "sm_90a").shared, 128 * (128 + RESULT_PAD) * 4);
    assert_eq!(product("f32", "128", 768, 768, "sm_80").shared, 4 * 64 * 512);
    assert_eq!(product("bf16", "4096", 4096, 64, "sm_90a").shared, 64 * (64 + RESULT_PAD) * 4);
}
