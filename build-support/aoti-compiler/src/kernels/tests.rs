//! Which template kernels get, from their text.

use super::*;
use crate::cost::Rates;
use crate::loops::text::parse;
use crate::target::CpuTarget;

/// The templates for a convolution of `input` by a constant `weight` to `axes`, cheapest first.
fn convolution(input: &str, weight: &str, axes: &str, how: &str) -> Vec<&'static str> {
    let program = parse(&format!(
        r#"loops {{
            symbol s0 "h" in 8..64 from input 0 axis 2
            const c0 "w": f32[{weight}] = splat 0.5
            buffer b0 "x": f32[{input}] input 0
            buffer b1: f32[{weight}] constant c0
            buffer b2: f32[1] output 0
            kernel "c" {{ conv f32 b0, b1 over [{axes}] {how} {{ t0: f32 = total store b2[] = t0 }} }}
        }}"#
    ))
    .unwrap_or_else(|error| panic!("{error}"));
    let kernel = program.kernels.values().next().expect("one kernel");
    let all = candidates(&program, kernel, &Target::cpu(&["x86-64-v3"]));
    all.iter().map(|candidate| candidate.choice.algorithm.word).collect()
}

const SAME: &str = "stride [1, 1] padding [1:1, 1:1] dilation [1, 1]";
const PLANE: &str = "i0 < 1, i1 < 32, i2 < s0, i3 < s0";

#[test]
fn convolutions_of_many_channels_are_tiled() {
    let (tiled, any) = ("conv.tiled", "conv.any");
    let all = convolution("1, 16, s0, s0", "32, 16, 5, 5", PLANE, &format!("{SAME} groups 1"));
    assert_eq!(all, [tiled, any]);
    let all = convolution("1, 16, s0, s0", "32, 16, 3, 3", PLANE, &format!("{SAME} groups 1"));
    assert_eq!(all, ["conv.winograd", tiled, any]);
    let few = convolution("1, 3, s0, s0", "32, 3, 3, 3", PLANE, &format!("{SAME} groups 1"));
    assert_eq!(few[0], tiled);
    // However many groups there are, each weight is read once.
    let grouped = "i0 < 1, i1 < 440, i2 < 7, i3 < 7";
    let all = convolution("1, 440, 7, 7", "440, 8, 3, 3", grouped, &format!("{SAME} groups 55"));
    assert_eq!(all, [tiled, any]);
}

#[test]
fn few_output_channels_for_each_input_channel_are_depthwise() {
    let all = convolution("1, 32, s0, s0", "32, 1, 3, 3", PLANE, &format!("{SAME} groups 32"));
    assert_eq!(all[0], "conv.depthwise");
    let many = convolution("1, 8, s0, s0", "32, 1, 3, 3", PLANE, &format!("{SAME} groups 8"));
    assert_eq!(many[0], "conv.tiled");
}

/// The templates for a convolution of 3 x 3 taps with channels last.
fn channels_last(channels: i64, size: i64, how: &str) -> Vec<&'static str> {
    channels_last_beside(1, channels, size, how)
}

/// The same in a program with so many numbers of other weights.
fn channels_last_beside(others: i64, channels: i64, size: i64, how: &str) -> Vec<&'static str> {
    let all = pixels(others, channels, size, how);
    all.iter().map(|candidate| candidate.choice.algorithm.word).collect()
}

fn pixels(others: i64, channels: i64, size: i64, how: &str) -> Vec<Candidate> {
    pixels_on(&Target::cpu(&["x86-64-v4"]), [others, channels, size], how)
}

fn pixels_on(target: &Target, [others, channels, size]: [i64; 3], how: &str) -> Vec<Candidate> {
    let program = parse(&format!(
        r#"loops {{
            const c0 "w": f32[{channels}, {channels}, 3, 3] = splat 0.5
            const c1 "others": f32[{others}] = splat 0.5
            buffer b0 "x": f32[1, {size}, {size}, {channels}] input 0
            buffer b1: f32[{channels}, {channels}, 3, 3] constant c0
            buffer b2: f32[1] output 0
            kernel "c" {{ conv f32 b0, b1 over [i0 < 1, i1 < {size}, i2 < {size}, i3 < {channels}] {how}
                from channels_last to channels_last {{ t0: f32 = total store b2[] = t0 }} }}
        }}"#
    ))
    .unwrap_or_else(|error| panic!("{error}"));
    let kernel = program.kernels.values().next().expect("one kernel");
    candidates(&program, kernel, target)
}

#[test]
fn convolutions_of_bytes_take_tiles_of_taps_where_words_are_split() {
    let taken = |channels: i64, groups: i64, level: &str| {
        let own = channels / groups;
        let program = parse(&format!(
            r#"loops {{
                const c0 "w": i8[{channels}, {own}, 3, 3] = splat 5
                buffer b0 "x": u8[1, 14, 14, {channels}] input 0
                buffer b1: i8[{channels}, {own}, 3, 3] constant c0
                buffer b2: i32[1] output 0
                kernel "c" {{ conv i32 b0, b1 over [i0 < 1, i1 < 12, i2 < 12, i3 < {channels}]
                    stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups {groups}
                    from channels_last to channels_last {{ t0: i32 = total store b2[] = t0 }} }}
            }}"#
        ))
        .unwrap_or_else(|error| panic!("{error}"));
        let kernel = program.kernels.values().next().expect("one kernel");
        let all = candidates(&program, kernel, &Target::cpu(&[level]));
        all.iter().map(|candidate| candidate.choice.algorithm.word).collect::<Vec<_>>()
    };
    let (words, winograd) = ("conv.pixel-words", "conv.winograd-bytes");
    assert_eq!(taken(64, 1, "x86-64-v3"), [winograd, words]);
    assert_eq!(taken(4, 1, "x86-64-v3"), [words, winograd]);
    assert_eq!(taken(64, 1, "x86-64-v4"), [winograd, words]);
    assert_eq!(taken(64, 1, "neon"), [words], "nothing multiplies numbers of 16 bits faster");
    // Four times a pixel would not fit 32 bits.
    assert_eq!(taken(1824, 1, "x86-64-v3"), [winograd, words]);
    assert_eq!(taken(1828, 1, "x86-64-v3"), [words]);
    assert_eq!(taken(64, 64, "x86-64-v3"), ["conv.depthwise-bytes"]);
}

#[test]
fn panels_that_are_mostly_empty_are_not_stored() {
    let apart = "stride [1, 1] padding [2:2, 2:2] dilation [2, 2] groups 1";
    let form = |channels: usize| {
        let all = pixels(1, channels as i64, 16, apart);
        let pixels = all.iter().find(|own| own.choice.algorithm.word == "conv.pixels");
        pixels.expect("it is always possible").choice.packed[0].form.clone()
    };
    let sizes = |channels: usize| (1, channels, channels, 9);
    for channels in [6, 16, 40] {
        let (groups, channels, in_channels, taps) = sizes(channels);
        let panels = Expansion::Panels { groups, channels, in_channels, taps };
        assert_eq!(panels.source(), Packing::ByTap { channels, in_channels, taps });
        assert_eq!(form(channels), Form::Expanded(panels));
    }
    // Panels that are full, that are almost so, and that are small.
    for channels in [64, 56, 1] {
        let (groups, channels, in_channels, taps) = sizes(channels);
        assert_eq!(form(channels), Packing::TapPanels { groups, channels, in_channels, taps }.into());
    }
}

#[test]
fn taps_are_multiplied_in_tiles_where_that_saves_more_than_it_moves() {
    let (pixels, winograd) = ("conv.pixels", "conv.winograd");
    let same = format!("{SAME} groups 1");
    assert_eq!(channels_last(64, 56, &same), [winograd, pixels]);
    assert_eq!(channels_last(256, 14, &same), [winograd, pixels]);
    assert_eq!(channels_last(64, 8, &same), [winograd, pixels]);
    assert_eq!(channels_last(512, 7, &same), [winograd, pixels]);
    // Few tiles, weights that few pixels share, and channels that are few themselves.
    assert_eq!(channels_last(64, 2, &same), [pixels, winograd]);
    assert_eq!(channels_last(512, 4, &same), [pixels, winograd]);
    assert_eq!(channels_last(4, 56, &same), [pixels, winograd]);
    let apart = "stride [1, 1] padding [2:2, 2:2] dilation [2, 2] groups 1";
    assert_eq!(channels_last(64, 56, apart), [pixels]);
}

#[test]
fn tiles_of_taps_read_more_weights_which_counts_where_they_come_from_far_away() {
    let (pixels, winograd) = ("conv.pixels", "conv.winograd");
    let same = format!("{SAME} groups 1");
    assert_eq!(channels_last_beside(100_000, 64, 4, &same), [winograd, pixels]);
    assert_eq!(channels_last_beside(1_000_000, 64, 4, &same), [pixels, winograd]);
    // How far that is can be measured: weights of 4 MB come from a cache that has them soon, or from memory.
    let on = |shared: u64, others: i64| {
        let caches = vec![(48 << 10, 500_000), (1 << 20, 250_000), (shared, 200_000)];
        let rates = Rates { mflop_per_s: 100_000, caches, memory_mb_per_s: 5_000 };
        let target = CpuTarget::new(&["x86-64-v4"]).with_rates(Some(rates));
        let all = pixels_on(&Target::Cpu(target), [others, 64, 4], &same);
        all.iter().map(|candidate| candidate.choice.algorithm.word).collect::<Vec<_>>()
    };
    assert_eq!(on(32 << 20, 1_000_000), [winograd, pixels]);
    assert_eq!(on(32 << 20, 10_000_000), [pixels, winograd]);
    assert_eq!(on(2 << 20, 1_000_000), [pixels, winograd]);
}

#[test]
fn few_channels_that_become_last_are_written_by_vectors_of_pixels() {
    let ways = |channels: i64, order: &str, level: &str| {
        let input = if order.is_empty() { "1, 3, 28, 28" } else { "1, 28, 28, 3" };
        let program = parse(&format!(
            r#"loops {{
                const c0 "w": f32[{channels}, 3, 5, 5] = splat 0.5
                buffer b0 "x": f32[{input}] input 0
                buffer b1: f32[{channels}, 3, 5, 5] constant c0
                buffer b2: f32[1] output 0
                kernel "c" {{ conv f32 b0, b1 over [i0 < 1, i1 < 28, i2 < 28, i3 < {channels}]
                    stride [1, 1] padding [2:2, 2:2] dilation [1, 1] groups 1 {order}
                    to channels_last {{ t0: f32 = total store b2[] = t0 }} }}
            }}"#
        ))
        .unwrap_or_else(|error| panic!("{error}"));
        let kernel = program.kernels.values().next().expect("one kernel");
        let all = candidates(&program, kernel, &Target::cpu(&[level]));
        all.iter().map(|candidate| candidate.choice.algorithm.word).collect::<Vec<_>>()
    };
    let (pixels, tiled) = ("conv.pixels", "conv.tiled");
    assert_eq!(ways(6, "", "x86-64-v4"), [tiled, pixels]);
    assert_eq!(ways(16, "", "x86-64-v4"), [pixels, tiled]);
    assert_eq!(ways(6, "", "x86-64-v3"), [tiled, pixels]);
    assert_eq!(
        ways(6, "from channels_last", "x86-64-v4"),
        [pixels],
        "they would be read against their order"
    );
}

#[test]
fn kernels_with_too_many_taps_take_one_at_a_time() {
    let all = convolution("1, 16, s0, s0", "32, 16, 64, 64", PLANE, &format!("{SAME} groups 1"));
    assert_eq!(all, ["conv.any"]);
}

#[test]
fn a_kernel_over_the_whole_input_is_a_product() {
    let over = "i0 < 2, i1 < 32, i2 < 1, i3 < 1";
    let valid = "stride [1, 1] padding [0:0, 0:0] dilation [1, 1] groups 1";
    let all = convolution("2, 16, 7, 7", "32, 16, 7, 7", over, valid);
    assert_eq!(all[0], "conv.product");
}

/// The algorithms for a product of inputs, cheapest first.
fn product_of_inputs([rows, columns, depth]: [i64; 3], right: &str) -> Vec<&'static str> {
    let program = parse(&format!(
        r#"loops {{
            buffer b0 "x": f32[{rows}, {depth}] input 0
            buffer b1 "y": f32[{columns}, {depth}] input 1
            buffer b2: f32[{rows}, {columns}] output 0
            kernel "p" {{
                matmul f32 b0 [0, {depth}, 1], b1 [{right}] over [i0 < {rows}, i1 < {columns}] depth [{depth}] {{
                    t0: f32 = total store b2[i0, i1] = t0
                }}
            }}
        }}"#
    ))
    .unwrap_or_else(|error| panic!("{error}"));
    let kernel = program.kernels.values().next().expect("one kernel");
    let all = candidates(&program, kernel, &Target::cpu(&["x86-64-v3"]));
    all.iter().map(|candidate| candidate.choice.algorithm.word).collect()
}

#[test]
fn few_rows_or_columns_are_summed_along_the_depth() {
    let along = |sizes: [i64; 3]| product_of_inputs(sizes, &format!("0, 1, {}", sizes[2]))[0];
    assert_eq!(along([12, 752, 2160]), "gemm.dots");
    assert_eq!(along([208, 1, 144]), "gemm.dots", "whole vectors of columns would be computed for one");
    assert_eq!(along([154, 112, 12]), "gemm.general", "sums are short");
    assert_eq!(along([200, 200, 500]), "gemm.general", "many rows pay for packing");
    assert_eq!(product_of_inputs([5, 256, 256], "0, 256, 1"), ["gemm.general"], "the depth lies apart");
}

#[test]
fn right_operands_of_few_rows_are_read_where_they_lie() {
    assert_eq!(product_of_inputs([3, 256, 256], "0, 256, 1")[0], "gemm.stream");
    assert_eq!(product_of_inputs([3, 256, 256], "0, 512, 2"), ["gemm.general"], "columns lie apart");
}

#[test]
fn constant_right_operands_are_packed_once() {
    let program = parse(
        r#"loops {
            const c0 "w": f32[16, 32] = splat 0.5
            buffer b0 "x": f32[6, 16] input 0
            buffer b1: f32[16, 32] constant c0
            buffer b2: f32[6, 32] output 0
            kernel "p" { matmul f32 b0 [0, 16, 1], b1 [0, 32, 1] over [i0 < 6, i1 < 32] depth [16] {
                t0: f32 = total store b2[i0, i1] = t0 } }
            kernel "q" { matmul f32 b0 [0, 16, 1], b0 [0, 1, 16] over [i0 < 6, i1 < 6] depth [16] {
                t0: f32 = total store b2[i0, i1] = t0 } }
        }"#,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let target = Target::cpu(&["x86-64-v3"]);
    let choices: Vec<Selection> = program
        .kernels
        .values()
        .map(|kernel| candidates(&program, kernel, &target).swap_remove(0).choice)
        .collect();
    assert_eq!(choices[0].algorithm.word, "gemm.packed");
    assert_eq!(
        choices[0].packed[0].form,
        Packing::Product { offset: 0, row_stride: 32, col_stride: 1, k: 16, n: 32, narrow: false }.into()
    );
    assert!(choices[0].scratch.is_empty(), "rows are read in place");
    assert_eq!(choices[1].algorithm.word, "gemm.general");
    assert!(!choices[1].scratch.is_empty());
}

#[test]
fn doubles_have_the_tiles_of_floats_and_never_matrix_units() {
    let [floats, doubles, integers] = ["f32", "f64", "i64"].map(|dtype| {
        let program = parse(&format!(
            r#"loops {{
                buffer b0 "x": {dtype}[512, 512] input 0
                buffer b1 "y": {dtype}[512, 512] input 1
                buffer b2: {dtype}[512, 512] output 0
                kernel "p" {{ matmul {dtype} b0 [0, 512, 1], b1 [0, 512, 1] over [i0 < 512, i1 < 512] depth [512] {{
                    t0: {dtype} = total store b2[i0, i1] = t0 }} }}
            }}"#
        ))
        .unwrap_or_else(|error| panic!("{error}"));
        let kernel = program.kernels.values().next().expect("there is one");
        let ways = candidates(&program, kernel, &Target::cpu(&["x86-64-v4"]));
        ways.into_iter().map(|way| (way.choice.algorithm.word, way.choice.scratch.worker)).collect::<Vec<_>>()
    });
    assert_eq!(doubles.len(), 1);
    // Four panels of 128 bytes a row; rows with a line between them, as many as pay for packing or as 384 KiB hold.
    let panels = 4 * 512 * 128;
    assert_eq!(doubles[0], ("gemm.general", Expr::int(panels + 140 * (512 + 8) * 8)));
    assert!(floats.contains(&("gemm.general", Expr::int(panels + 192 * (512 + 16) * 4))));
    assert_eq!(integers[0].0, "gemm.any");
}

#[test]
fn products_of_many_rows_may_run_on_matrix_units() {
    let taken = |rows: &str, level: &str| {
        let program = parse(&format!(
            r#"loops {{
                const c0 "w": f32[256, 256] = splat 0.5
                buffer b0 "x": f32[{rows}, 256] input 0
                buffer b1: f32[256, 256] constant c0
                buffer b2: f32[{rows}, 256] output 0
                kernel "p" {{ matmul f32 b0 [0, 256, 1], b1 [0, 256, 1] over [i0 < {rows}, i1 < 256] depth [256] {{
                    t0: f32 = total store b2[i0, i1] = t0 }} }}
            }}"#
        ))
        .unwrap_or_else(|error| panic!("{error}"));
        let kernel = program.kernels.values().next().expect("there is one");
        candidates(&program, kernel, &Target::cpu(&[level])).swap_remove(0).choice
    };
    let on_units = taken("128", "x86-64-v4");
    assert_eq!(on_units.algorithm.word, "gemm.packed-on-units");
    let plain = taken("128", "x86-64-v3");
    assert_eq!(plain.algorithm.word, "gemm.packed", "no processor of the level has units");
    let few = taken("47", "x86-64-v4").algorithm.word;
    assert_eq!(few, "gemm.packed", "rows are too few for planes");

    // The planes, sums and copies of 128 rows of 256, and the planes of a panel.
    let bytes = 128 * (256 * (6 + 4) + 2 * 4 * 32) + 256 * 32 * 6;
    assert_eq!(on_units.scratch.units, Some(Expr::int(bytes)));
    // Processors of the level without units need no more than those that have none.
    assert_eq!(on_units.scratch.worker, plain.scratch.worker);
    assert!(plain.scratch.units.is_none());
}

#[test]
fn weights_of_half_types_stay_narrow_where_few_rows_read_them() {
    let taken = |rows: &str, dtype: &str| {
        let program = parse(&format!(
            r#"loops {{
                const c0 "w": {dtype}[1024, 1024] = splat 0.5
                buffer b0 "x": {dtype}[{rows}, 1024] input 0
                buffer b1: {dtype}[1024, 1024] constant c0
                buffer b2: {dtype}[{rows}, 1024] output 0
                kernel "p" {{ matmul {dtype} b0 [0, 1024, 1], b1 [0, 1024, 1] over [i0 < {rows}, i1 < 1024] depth [1024] {{
                    t0: f32 = total t1: {dtype} = cast t0 store b2[i0, i1] = t1 }} }}
            }}"#
        ))
        .unwrap_or_else(|error| panic!("{error}"));
        let kernel = program.kernels.values().next().expect("there is one");
        let target = Target::cpu(&["x86-64-v3"]);
        candidates(&program, kernel, &target).iter().map(|own| own.choice.algorithm.word).collect::<Vec<_>>()
    };
    let [narrow, wide] = ["gemm.packed-narrow", "gemm.packed"];
    assert_eq!((taken("1", "bf16")[0], taken("1", "f16")[0]), (narrow, narrow));
    assert_eq!(taken("4096", "bf16")[0], wide, "each tile of rows would widen them again");
    assert!(taken("4096", "bf16").contains(&narrow), "which is measured all the same");
    assert_eq!(taken("1", "f32")[0], wide);
    assert!(!taken("1", "f32").contains(&narrow));
}

#[test]
fn words_name_one_algorithm_each() {
    let words: Vec<&str> = Algorithm::all().map(|algorithm| algorithm.word).collect();
    let distinct: std::collections::BTreeSet<&&str> = words.iter().collect();
    assert_eq!(distinct.len(), words.len(), "{words:?}");
    assert!(words.iter().all(|word| Algorithm::named(word).is_some_and(|own| own.word == *word)));
}
