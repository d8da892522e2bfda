//! Products on matrix units, in every order of their operands, with lines that begin at multiples of sixteen bytes, of words, and of
//! neither.

use super::{NVIDIA, ON_ROUNDED_UNITS, ON_UNITS, compiled_text, emulated, kernels, source};
use std::collections::BTreeSet;

#[test]
fn tiles_on_matrix_units_agree_with_the_evaluator() {
    let text = source("units");
    let mut tiles = BTreeSet::new();
    for name in ON_UNITS.iter().chain(&ON_ROUNDED_UNITS) {
        let bundle = compiled_text(name, text.clone(), NVIDIA.architecture);
        let calls = kernels(&bundle).split("contract_units<").skip(1);
        tiles.extend(calls.filter_map(|call| Some(call.split_once('>')?.0.to_owned())));
        emulated(name, &text, NVIDIA);
        // Lines that begin at no multiple of a word.
        emulated(name, &text.replace("72", "75").replace("70", "69"), NVIDIA);
    }
    for (element, least) in [("f16", 2), ("bf16", 2), ("f32", 2), ("Tf32", 1)] {
        let of_type = tiles.iter().filter(|tile| tile.split(',').next() == Some(element));
        assert!(of_type.count() >= least, "{element}: {tiles:?}");
    }
}
