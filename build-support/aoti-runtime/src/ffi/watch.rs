//! Tells a closure of the kernels of a run, as the C side's callback reports them.

use super::{
    abi::{self, AotiTensor},
    described::{narrow, sizes_of},
    view::AnyView,
};
use crate::{KernelEvent, KernelInfo, KernelPhase};
use std::{
    any::Any,
    ffi::c_void,
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    slice,
};

/// Who is told of kernels, for the time of one run.
pub(super) struct Watch<'w> {
    tell: &'w mut dyn FnMut(KernelEvent<'_>),
    kernels: &'w [KernelInfo],
    /// Of what a kernel wrote, one tensor after the other: memory that is used again.
    sizes: Vec<usize>,
    /// What the closure panicked with: nothing may unwind through C.
    panic: Option<Box<dyn Any + Send>>,
}

impl<'w> Watch<'w> {
    pub(super) fn new(tell: &'w mut dyn FnMut(KernelEvent<'_>), kernels: &'w [KernelInfo]) -> Watch<'w> {
        Watch { tell, kernels, sizes: Vec::new(), panic: None }
    }

    /// Goes on with a panic of the closure, if there was one.
    pub(super) fn finish(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }
}

/// Who is told of the times of kernels, for the time of one run.
pub(super) struct Clock<'w> {
    tell: &'w mut dyn FnMut(usize, f64),
    panic: Option<Box<dyn Any + Send>>,
}

impl<'w> Clock<'w> {
    pub(super) fn new(tell: &'w mut dyn FnMut(usize, f64)) -> Clock<'w> {
        Clock { tell, panic: None }
    }

    /// Goes on with a panic of the closure, if there was one.
    pub(super) fn finish(self) {
        if let Some(panic) = self.panic {
            resume_unwind(panic);
        }
    }
}

/// The callback: `arg` is a [`Clock`] that nothing else uses during the run.
pub(super) unsafe extern "C" fn on_time(arg: *mut c_void, kernel: i32, microseconds: f64) {
    // SAFETY: `arg` comes from the context of a run that is under way, and kernels are told of one at a time.
    let clock = unsafe { &mut *arg.cast::<Clock<'_>>() };
    let Ok(index) = usize::try_from(kernel) else { return };
    if clock.panic.is_some() {
        return;
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (clock.tell)(index, microseconds))) {
        clock.panic = Some(panic);
    }
}

/// The callback: `arg` is a [`Watch`] that nothing else uses during the run.
pub(super) unsafe extern "C" fn on_kernel(
    arg: *mut c_void,
    kernel: i32,
    phase: i32,
    outputs: *const AotiTensor,
) {
    // SAFETY: `arg` comes from the context of a run that is under way, and kernels are told of one at a time.
    let watch = unsafe { &mut *arg.cast::<Watch<'_>>() };
    let Some((index, info)) = usize::try_from(kernel).ok().and_then(|k| Some((k, watch.kernels.get(k)?)))
    else {
        return;
    };
    if watch.panic.is_some() {
        return;
    }
    let written = if outputs.is_null() || info.outputs.is_empty() {
        &[]
    } else {
        // SAFETY: the interface gives as many tensors as the kernel's info lists, contiguous and of known element types.
        unsafe { slice::from_raw_parts(outputs, info.outputs.len()) }
    };
    // SAFETY: the sizes of these tensors live as long as the call.
    let sizes_of = |tensor| unsafe { sizes_of(tensor) };
    watch.sizes.clear();
    watch.sizes.extend(written.iter().flat_map(sizes_of).map(narrow));
    let mut rest = watch.sizes.as_slice();
    let view = |tensor| {
        let own;
        (own, rest) = rest.split_at(sizes_of(tensor).len());
        AnyView::of_raw(tensor, own)
    };
    let views: Vec<AnyView<'_>>;
    let phase = if phase == abi::AOTI_KERNEL_BEGIN as i32 {
        KernelPhase::Begin
    } else {
        views = written.iter().map(view).collect();
        KernelPhase::End(&views)
    };
    let tell = AssertUnwindSafe(|| (watch.tell)(KernelEvent { index, kernel: info, phase }));
    if let Err(panic) = catch_unwind(tell) {
        watch.panic = Some(panic);
    }
}
