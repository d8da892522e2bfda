//! Models that compute with other ranks, on an emulated GPU.

use super::emulated::{GFX9, NVIDIA, program_of};
use super::{is_installed, source};

#[test]
fn ranks_compute_together_on_streams_and_in_graphs() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    for machine in [NVIDIA, GFX9] {
        let program = program_of(&gcc, "ranks", ("ranks", &source("ranks")), machine, ("ranks.cpp", &[]));
        program.output();
    }
}
