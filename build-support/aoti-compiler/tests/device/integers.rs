//! Minima and maxima of integers, which NVIDIA's assembler gets wrong in one form (`base.h` says which): it must not see it.

use super::compilers::{ALONE, CLANG};
use super::{is_installed, manifest, run, scratch};
use std::process::Command;

/// Indices, elements, and a narrow type, in loops that an assembler unrolls.
const SOURCE: &str = r#"
#include "aoti/gpu/simt.h"
using namespace aoti;
AOTI_KERNEL(32) extremes(Run run, const i32 *in, i32 *out) {
  (void)run;
  for (i32 i = 0; i < 9; ++i) {
    const Vec<i32, 1> x = splat<1>(floor_div(5 * i + 7, 9) - 1), zero = splat<1>(i32(0));
    out[max_i64(0, floor_div(5 * i + 7, 9) - 1)] = in[min_i64(floor_div(5 * i + 7, 9) - 1, 4)];
    store(Full<1>{}, out + i, maximum(minimum(x, zero), fmax(fmin(x, zero), zero)));
    store(Full<1>{}, out + 9 + i, cast<i32>(maximum(cast<i8>(x), cast<i8>(zero))));
  }
}
"#;

#[test]
fn extremes_of_integers_are_not_fused_with_sums() {
    let Some(clang) = is_installed("clang", &CLANG) else { return };
    let folder = scratch("device-integers");
    let (source, text) = (folder.join("extremes.cu"), folder.join("extremes.ptx"));
    std::fs::write(&source, SOURCE).expect("the folder is writable");
    run(Command::new(clang)
        .args(["-std=c++17", "-O3", "-x", "cuda", "-nocudainc", "-nocudalib", "-S", "--cuda-gpu-arch=sm_90a"])
        .args(ALONE)
        .arg("-I")
        .arg(manifest("include"))
        .arg(source)
        .arg("-o")
        .arg(&text));

    let text = std::fs::read_to_string(text).expect("the compiler wrote it");
    let is_extreme =
        |line: &&str| [" max.", " min.", "\tmax.", "\tmin."].iter().any(|name| line.contains(name));
    let (turned, plain): (Vec<&str>, Vec<&str>) =
        text.lines().filter(is_extreme).partition(|line| line.contains("xor.b32"));
    assert!(plain.is_empty(), "{plain:#?}");
    for instruction in ["max.u32", "min.u32"] {
        assert!(turned.iter().any(|line| line.contains(instruction)), "no {instruction} in\n{text}");
    }
}
