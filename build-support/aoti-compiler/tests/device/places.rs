//! Where things lie on GPUs: devices, contexts and streams, and weights that come and go.

use super::emulated::{GFX9, NVIDIA, program_of, program_without_a_model};
use super::{is_installed, source};

#[test]
fn models_read_their_own_weights_on_their_own_device() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    for machine in [NVIDIA, GFX9] {
        program_of(&gcc, "places", ("places", &source("places")), machine, ("places.cpp", &[])).output();
    }
}

/// A test over a driver that lets everything pass shows nothing.
#[test]
fn what_goes_to_a_wrong_place_ends_the_emulation() {
    let Some(gcc) = is_installed("gcc", &["g++"]) else { return };
    let expected = [
        "no context: no context is current",
        "stream of another context: a stream of another context, of device 1",
        "copy to a stream of another context: a stream of another context, of device 1",
        "event of another context: an event of another context, of device 1",
        "memory of another device: a copy to the device: the memory is of another context, of device 1",
        "copy between devices: a copy on the device: the memory is of another context, of device 1",
        "beyond the allocation: a copy from the device: beyond what was allocated",
        "memory that was freed: a copy to the device: the memory was freed",
        "memory that is freed before the work: a copy to the device: the memory was freed",
        "memory of another context freed: memory of another context is freed",
        "freed twice: memory is freed twice",
        "touched by the host: memory of device 0 is touched by what does not run there",
        "a stream that is gone: a stream that does not exist",
        "a stream with work: a stream goes while work is pending there",
        "waiting while captured: a stream is waited for while it is captured",
        "a leak: 1 pieces of memory are still allocated on device 0",
        "before it was waited for: old",
        "after: new",
    ];
    for machine in [NVIDIA, GFX9] {
        let output = program_without_a_model(&gcc, "misuse", machine).output();
        let lines: Vec<String> = output.lines().map(|line| line.replace("emulated driver: ", "")).collect();
        assert_eq!(lines, expected);
    }
}
