//! Matrix units of all makers: products, convolutions and attention in the emulation of their instructions, the layouts of AMD's
//! fragments, and that compilers print the instructions.

use super::compilers::{ALONE, CLANG};
use super::emulated::{GFX11, GFX12, MACHINES, NVIDIA, emulated};
use super::{compiled_text, convolutions, drawn, is_installed, kernels, manifest, run, scratch, source};
use std::collections::BTreeSet;
use std::process::Command;

/// Tiles on matrix units: the first of each kernel's, the next, and so on.
pub(super) const ON_UNITS: [&str; 3] = ["units0", "units1", "units2"];
/// The same, where products of `f32` may be TF32.
pub(super) const ON_ROUNDED_UNITS: [&str; 1] = ["rounded0"];

/// Kinds of tiles on matrix units, and how many of each `units.aoti` has at least.
const HALVES: [(&str, usize); 4] = [("f16", 2), ("bf16", 2), ("f32", 0), ("Tf32", 0)];
/// The same where `f32` is multiplied as it is.
const HALVES_AND_F32: [(&str, usize); 4] = [("f16", 3), ("bf16", 3), ("f32", 3), ("Tf32", 0)];

#[test]
fn tiles_on_matrix_units_agree_with_the_evaluator() {
    let text = source("units");
    let kinds = [[("f16", 2), ("bf16", 2), ("f32", 3), ("Tf32", 1)], HALVES_AND_F32, HALVES, HALVES];
    for (machine, kinds) in MACHINES.into_iter().zip(kinds) {
        let mut tiles = BTreeSet::new();
        for (number, name) in ON_UNITS.iter().chain(&ON_ROUNDED_UNITS).enumerate() {
            let bundle = compiled_text(name, text.clone(), machine.architecture);
            let calls = kernels(&bundle).split("contract_units<").skip(1);
            tiles.extend(calls.filter_map(|call| Some(call.split_once('>')?.0.to_owned())));
            // Two machines have one set of tiles in two layouts of fragments: each runs every other one.
            let turns = [GFX11, GFX12].map(|one| one.architecture);
            let turn = turns.iter().position(|architecture| *architecture == machine.architecture);
            if turn.is_none_or(|turn| turn == number % turns.len()) {
                emulated(name, &text, machine);
            }
            if machine.architecture == NVIDIA.architecture && number % 2 == 1 {
                // Lines that begin at no multiple of a word, on a tile of either list.
                emulated(name, &text.replace("72", "75").replace("70", "69"), machine);
            }
        }
        for (element, least) in kinds {
            let of_type = tiles.iter().filter(|tile| tile.split(',').next() == Some(element));
            assert!(of_type.count() >= least, "{element} on {}: {tiles:?}", machine.architecture);
        }
    }
}

#[test]
fn drawn_attention_agrees_with_the_evaluator() {
    const EACH: usize = 8;
    let wanted = std::env::var("AOTI_DRAWN_ATTENTION").ok().and_then(|count| count.parse().ok());
    for part in 0..wanted.unwrap_or(3 * EACH).div_ceil(EACH) {
        let text = drawn::graph(part as u64, EACH);
        let bundle = compiled_text("drawn", text.clone(), "sm_90a");
        assert_eq!(kernels(&bundle).matches("AOTI_KERNEL_END").count(), EACH, "each is one kernel");
        emulated("drawn", &text, MACHINES[part % MACHINES.len()]);
    }
}

/// Few columns, and rows that begin anywhere: of weights, and of operands that are worth a copy.
#[test]
fn thin_and_uneven_products_agree_with_the_evaluator() {
    for machine in [NVIDIA, GFX12] {
        emulated("thin", &source("thin"), machine);
    }
}

/// A thread stores as many neighbours of a row at once as begin at multiples of their number.
#[test]
fn results_whose_rows_begin_anywhere_are_stored_by_neighbours() {
    for (columns, lanes) in [(136, 8), (132, 4), (130, 2), (129, 1)] {
        let text = format!(
            "graph \"rows\" {{
               input %x \"x\": f16[128, 64] input %w \"w\": f16[64, {columns}]
               %y: f16[128, {columns}] = matmul %x, %w output %y \"y\" }}"
        );
        let bundle = compiled_text("rows", text, "sm_90a");
        let call = format!("contract_units<f16, 64, 64, 128, {lanes}>");
        assert!(kernels(&bundle).contains(&call), "{columns} columns: {}", kernels(&bundle));
    }
}

#[test]
fn drawn_convolutions_agree_with_the_evaluator() {
    const EACH: usize = 6;
    let wanted = std::env::var("AOTI_DRAWN_CONVOLUTIONS").ok().and_then(|count| count.parse().ok());
    for part in 0..wanted.unwrap_or(MACHINES.len() * EACH).div_ceil(EACH) {
        let text = convolutions::graph(part as u64, EACH);
        emulated("convolutions", &text, MACHINES[part % MACHINES.len()]);
    }
}

/// What matrix units multiply is multiplied by their instructions, not by what stands in for them elsewhere.
#[test]
fn code_for_matrix_units_has_their_instructions() {
    let Some(clang) = is_installed("clang", &CLANG) else { return };
    let wmma = ["v_wmma_f32_16x16x16_f16", "v_wmma_f32_16x16x16_bf16"];
    let mfma = |bf16| ["v_mfma_f32_16x16x16f16", bf16, "v_mfma_f32_16x16x4f32"];
    let units: [(&str, &[&str]); 5] = [
        ("gfx908", &mfma("v_mfma_f32_16x16x8bf16")),
        ("gfx90a", &mfma("v_mfma_f32_16x16x16bf16_1k")),
        ("gfx942", &["v_mfma_f32_16x16x16_f16", "v_mfma_f32_16x16x16_bf16", "v_mfma_f32_16x16x4_f32"]),
        ("gfx1100", &wmma),
        ("gfx1201", &wmma),
    ];
    for (architecture, instructions) in units {
        let folder = scratch(&format!("device-instructions-{architecture}"));
        let [input, output] = ["units.cu", "units.s"].map(|name| folder.join(name));
        std::fs::write(&input, kernels(&compiled_text(ON_UNITS[0], source("units"), architecture)))
            .expect("the folder is writable");
        run(Command::new(&clang)
            .args(["-std=c++17", "-O3", "-S", "-x", "hip", "-nogpuinc", "-nogpulib", "-I"])
            .arg(manifest("include"))
            .arg(format!("--offload-arch={architecture}"))
            .args(ALONE)
            .args([&input, std::path::Path::new("-o"), &output]));
        let text = std::fs::read_to_string(&output).expect("the compiler wrote it");
        let lacking: Vec<_> = instructions.iter().filter(|name| !text.contains(*name)).collect();
        assert!(lacking.is_empty(), "code for {architecture} has no {lacking:?}");
    }
}

/// Which lane has what, as AMD's documents say: of D of MFMA registers are four rows from 4 * (lane / 16) on; of WMMA of gfx11 even rows
/// are in lanes 0 to 15 and odd ones in the others, of gfx12 the upper and the lower eight.
#[test]
fn layouts_of_fragments_are_those_of_the_documents() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    let arguments =
        ["-std=c++17", "-fsyntax-only", "-DAOTI_EMULATED=64", "-DAOTI_EMULATED_UNITS=AOTI_MFMA", "-I"];
    run(Command::new(gcc)
        .args(arguments)
        .args([manifest("include"), manifest("tests/device/fragments.cpp")]));
}
