//! `pack.h` packs as `pack.rs` does, bit for bit: libraries pack weights that are given at run time, the compiler packs those
//! of the model file. `expand.h` makes of that what its definition says. Without a C++ compiler the test is skipped with a note, or fails if `AOTI_TEST_REQUIRE` names `gcc`.

use aoti_compiler::runplan::pack::{self, PANEL, Source, Storage};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const STORAGES: [(Storage, &str, usize); 4] = [
    (Storage::F64, "f64", 8),
    (Storage::F32, "f32", 4),
    (Storage::F16, "f16", 2),
    (Storage::Bf16, "bf16", 2),
];

/// The program, compiled once; none where there is no compiler.
fn program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    PROGRAM.get_or_init(compile).as_deref()
}

fn compile() -> Option<PathBuf> {
    let compiler = std::env::var("CXX").unwrap_or_else(|_| "g++".to_owned());
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let binary = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pack");
    let built = Command::new(&compiler)
        .args(["-std=c++17", "-O2", "-fno-exceptions", "-fno-rtti", "-Wall", "-Wextra", "-Werror"])
        .args(["-I".as_ref(), root.join("include").as_os_str()])
        .arg(root.join("tests/headers/pack.cpp"))
        .args(["-o".as_ref(), binary.as_os_str()])
        .output();
    let Ok(built) = built else {
        let required = std::env::var("AOTI_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|tool| tool == "gcc"), "`{compiler}` is required and does not run");
        eprintln!("skipped: no C++ compiler `{compiler}`");
        return None;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(binary)
}

/// Elements of every kind: zeros of both signs, denormal, infinite and quiet NaN ones among them.
fn elements(count: usize, bytes: usize) -> Vec<u8> {
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    };
    let odd32 = [0x8000_0000u32, 1, 0x7f80_0000, 0xff80_0000, 0x7fc0_0000];
    let odd64 = [1 << 63, 1, 0x7ff0 << 48, 0xfff0 << 48, 0x7ff8 << 48];
    let odd16 = [0x8000u16, 1, 0x7c00, 0xfc00, 0x7e00];
    let element = |k: usize| match (bytes, k % 11) {
        (8, 3) => u64::to_le_bytes(odd64[k / 11 % 5]).to_vec(),
        (8, _) => ((next() as f64) / 1e6 - 900.0).to_le_bytes().to_vec(),
        (4, 3) => odd32[k / 11 % 5].to_le_bytes().to_vec(),
        (4, _) => ((next() as f32) / 1e6 - 900.0).to_le_bytes().to_vec(),
        (_, 3) => odd16[k / 11 % 5].to_le_bytes().to_vec(),
        (_, _) => ((next() % 0x7c00) as u16).to_le_bytes().to_vec(),
    };
    (0..count).flat_map(element).collect()
}

#[track_caller]
fn check(program: &Path, form: &str, dtype: &str, numbers: &[usize], from: &[u8], expected: &[u8]) {
    let mut child = Command::new(program)
        .args([form, dtype, &expected.len().to_string()])
        .args(numbers.iter().map(ToString::to_string))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it was compiled");
    child.stdin.take().expect("it is piped").write_all(from).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{form} {dtype} {numbers:?}");
    assert!(output.stdout == expected, "{form} of {dtype} {numbers:?} differs");
}

/// Weights `[channels][in_channels][3][3]` at the points of Winograd's tiles, by definition: `G w G^T` in f64, rounded once, as
/// `[point][ceil(channels / PANEL)][in_channels][PANEL]`, channels past the last zero.
fn winograd(weights: &[f32], channels: usize, in_channels: usize) -> Vec<u8> {
    let row = |point: usize, [a, b, c]: [f64; 3]| match point {
        0 => a,
        1 => (a + c + b) * 0.5,
        2 => (a + c - b) * 0.5,
        _ => c,
    };
    let value = |point: usize, channel: usize, input: usize| {
        let own = &weights[(channel * in_channels + input) * 9..][..9];
        let column = |k: usize| row(point / 4, [0, 3, 6].map(|tap| f64::from(own[tap + k])));
        row(point % 4, [column(0), column(1), column(2)]) as f32
    };
    let mut all = Vec::new();
    for (point, panel) in
        (0..16).flat_map(|point| (0..channels.div_ceil(PANEL)).map(move |panel| (point, panel)))
    {
        for (input, channel) in
            (0..in_channels).flat_map(|k| (0..PANEL).map(move |lane| (k, panel * PANEL + lane)))
        {
            let value = if channel < channels { value(point, channel, input) } else { 0.0 };
            all.extend(value.to_le_bytes());
        }
    }
    all
}

#[test]
fn expanded_weights_are_as_defined() {
    let Some(program) = program() else { return };
    for (channels, in_channels) in [(1, 1), (7, 3), (33, 5), (41, 2), (64, 16), (100, 8)] {
        let data = elements(channels * in_channels * 9, 4);
        let floats: Vec<f32> =
            data.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let source = Source {
            bytes: &data,
            storage: Storage::F32,
            offset: 0,
            row_stride: in_channels * 9,
            col_stride: 1,
        };
        let packed = pack::pack_conv(&source, 1, channels, in_channels * 9).unwrap();
        let expected = winograd(&floats, channels, in_channels);
        check(program, "winograd", "none", &[channels, in_channels], &packed, &expected);
    }
}

#[test]
fn panels_are_the_same_made_of_plain_weights() {
    let Some(program) = program() else { return };
    for (groups, channels, in_channels, taps) in
        [(1, 1, 1, 1), (1, 6, 1, 25), (1, 40, 3, 9), (4, 32, 8, 9), (2, 80, 3, 4)]
    {
        let data = elements(channels * in_channels * taps, 4);
        let sizes = [channels, in_channels, taps];
        let row_stride = in_channels * taps;
        let source = Source { bytes: &data, storage: Storage::F32, offset: 0, row_stride, col_stride: 1 };
        let expected = pack::pack_tap_panels(&source, groups, sizes).unwrap();
        let packed = pack::pack_by_tap(&data, 4, sizes).unwrap();
        check(program, "panels", "none", &[groups, channels, in_channels, taps], &packed, &expected);
    }
}

#[test]
fn words_are_packed_as_the_compiler_does() {
    let Some(program) = program() else { return };
    for size in [1, 4, 8] {
        let dtype = format!("i{}", 8 * size);
        let integers = |count: usize| -> Vec<u8> {
            (0..count).flat_map(|k| ((k * 89 % 256) as i64 - 128).to_le_bytes()[..size].to_vec()).collect()
        };
        for (k, n) in [(4, 1), (8, 40), (64, 32), (132, 97)] {
            let data = integers(k * n + 5);
            for (row_stride, col_stride) in [(n, 1), (1, k)] {
                let storage = Storage::Integers(size);
                let source = Source { bytes: &data, storage, offset: 5, row_stride, col_stride };
                let expected = pack::pack_product_words(&source, k, n).unwrap();
                assert_eq!(expected.len(), n.div_ceil(PANEL) * k * PANEL);
                let numbers = [5, row_stride, col_stride, k, n];
                check(program, "product_words", &dtype, &numbers, &data, &expected);
                // What depthwise convolutions of bytes read.
                let expected = pack::pack_product(&source, k, n).unwrap();
                check(program, "product_bytes", &dtype, &numbers, &data, &expected);
                if size == 1 {
                    let expected = pack::pack_narrow(&source, k, n).unwrap();
                    assert_eq!(expected.len(), n.div_ceil(PANEL) * k * PANEL);
                    check(program, "narrow", &dtype, &numbers, &data, &expected);
                }
            }
        }
        for (groups, channels, in_channels, taps) in [(1, 1, 4, 1), (1, 33, 8, 9), (2, 80, 12, 4)] {
            let data = integers(channels * in_channels * taps);
            let row_stride = in_channels * taps;
            let storage = Storage::Integers(size);
            let source = Source { bytes: &data, storage, offset: 0, row_stride, col_stride: 1 };
            let expected = pack::pack_tap_words(&source, groups, [channels, in_channels, taps]).unwrap();
            check(program, "tap_words", &dtype, &[groups, channels, in_channels, taps], &data, &expected);
        }
    }
}

#[test]
fn libraries_pack_as_the_compiler_does() {
    let Some(program) = program() else { return };
    for (storage, dtype, bytes) in STORAGES {
        for (k, n) in [(1, 1), (3, 40), (64, 32), (130, 97), (700, 64)] {
            let data = elements(k * n + 5, bytes);
            for (row_stride, col_stride) in [(n, 1), (1, k)] {
                let source = Source { bytes: &data, storage, offset: 5, row_stride, col_stride };
                let expected = pack::pack_product(&source, k, n).unwrap();
                let numbers = [5, row_stride, col_stride, k, n];
                check(program, "product", dtype, &numbers, &data, &expected);
                if bytes == 2 {
                    let expected = pack::pack_narrow(&source, k, n).unwrap();
                    check(program, "narrow", dtype, &numbers, &data, &expected);
                }
            }
        }
        if storage == Storage::F64 {
            // Convolutions of these are computed from weights as they are.
            continue;
        }
        for (groups, channels, k) in [(1, 1, 1), (1, 20, 27), (2, 18, 9), (4, 32, 144)] {
            let data = elements(channels * k, bytes);
            let source = Source { bytes: &data, storage, offset: 0, row_stride: k, col_stride: 1 };
            let expected = pack::pack_conv(&source, groups, channels, k).unwrap();
            check(program, "conv", dtype, &[groups, channels, k], &data, &expected);
        }
        let shapes =
            [(1, 1, 1, 1), (1, 7, 3, 4), (1, 33, 5, 9), (1, 64, 16, 1), (4, 32, 8, 9), (2, 80, 3, 4)];
        for (groups, channels, in_channels, taps) in shapes {
            let data = elements(channels * in_channels * taps, bytes);
            let source =
                Source { bytes: &data, storage, offset: 0, row_stride: in_channels * taps, col_stride: 1 };
            let sizes = [channels, in_channels, taps];
            let expected = pack::pack_tap_panels(&source, groups, sizes).unwrap();
            let numbers = [groups, channels, in_channels, taps];
            check(program, "tap_panels", dtype, &numbers, &data, &expected);
        }
        for (groups, channels, rows) in [(1, 1, 1), (1, 7, 12), (2, 18, 9), (3, 24, 100)] {
            let data = elements(channels * rows, bytes);
            let source = Source { bytes: &data, storage, offset: 0, row_stride: rows, col_stride: 1 };
            let expected = pack::pack_conv_transposed(&source, groups, channels, rows).unwrap();
            check(program, "transposed", dtype, &[groups, channels, rows], &data, &expected);
        }
    }
}
