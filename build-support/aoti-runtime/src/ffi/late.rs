//! Outputs whose sizes nobody knows before a run: they get memory when the run has found them.

use super::described::narrowed;
use crate::{DynTensor, ValueInfo};
use std::{ffi::c_void, ptr, slice};

/// A size that `output_sizes` does not know.
const UNKNOWN: i64 = -1;

/// Whether an output of these sizes gets its memory during the run.
pub(super) fn is_late(sizes: &[i64]) -> bool {
    sizes.contains(&UNKNOWN)
}

/// The outputs of a run that is under way.
pub(super) struct LateOutputs<'r, 'o> {
    pub(super) tensors: &'r mut [&'o mut DynTensor],
    pub(super) infos: &'r [ValueInfo],
    pub(super) scratch: &'r mut Vec<usize>,
}

/// The callback: `arg` is a [`LateOutputs`] that nothing else uses during the run.
pub(super) unsafe extern "C" fn allocate_output(
    arg: *mut c_void,
    output: i32,
    sizes: *const i64,
    _bytes: i64,
) -> *mut c_void {
    // SAFETY: `arg` comes from the context of a run that is under way, which asks for one output at a time.
    let outputs = unsafe { &mut *arg.cast::<LateOutputs<'_, '_>>() };
    let Ok(index) = usize::try_from(output) else { return ptr::null_mut() };
    let (Some(tensor), Some(info)) = (outputs.tensors.get_mut(index), outputs.infos.get(index)) else {
        return ptr::null_mut();
    };
    // SAFETY: the interface gives as many sizes as the output has dimensions; none is negative.
    let sizes = unsafe { slice::from_raw_parts(sizes, info.dims.len()) };
    match tensor.resize(narrowed(sizes, outputs.scratch)) {
        Ok(()) => tensor.data_mut_ptr().cast(),
        Err(_) => ptr::null_mut(),
    }
}
