//! One run through the C interface.

use super::{
    abi::{AotiCommunicator, AotiContext, AotiState, AotiTensor},
    buffer::Buffer,
    call,
    described::{Described, narrowed},
    late::{self, LateOutputs, allocate_output},
    model::{Model, Native, count, fork_join_ns, parallel_for, take},
    share::Share,
    view::CPU,
    watch::on_kernel,
    workspace::Plan as SizePlan,
};
use crate::{Device, DynTensor, Error, ErrorCode, Executor, Generator};
use std::{
    ffi::c_void,
    ptr,
    time::{Duration, Instant},
};

/// One run, when its arguments have been checked.
pub(super) struct Run<'r, 'o> {
    pub(super) model: &'r Model,
    pub(super) native: &'r Native,
    pub(super) inputs: &'r [AotiTensor],
    pub(super) outputs: &'r mut [&'o mut DynTensor],
    pub(super) descriptors: &'r mut Described,
    pub(super) arena: &'r mut Buffer,
    pub(super) state: *mut AotiState,
    pub(super) threads: usize,
    pub(super) executor: &'r dyn Executor,
    /// A [`Watch`], or null.
    pub(super) watch: *mut c_void,
    /// Outlives the run; or null.
    pub(super) communicator: *const AotiCommunicator,
    pub(super) generator: Generator,
    /// Whether the native model was asked to run.
    pub(super) began: bool,
}

impl Run<'_, '_> {
    pub(super) fn execute(&mut self, plan: &mut SizePlan) -> Result<(), Error> {
        let SizePlan { sizes, places, found, scratch, arena_bytes, share, .. } = plan;
        self.describe_outputs(sizes, scratch)?;
        found.clone_from(sizes);
        self.model.point_at(found, places);
        self.arena.reserve(*arena_bytes)?;
        self.began = true;
        // Who watches a run sees it on all threads.
        let is_chosen = self.threads > 1 && self.watch.is_null() && self.model.device == Device::Cpu;
        let threads = if is_chosen && share.share() == Share::One { 1 } else { self.threads };
        let begun = (is_chosen && share.is_timing()).then(Instant::now);
        let infos = &self.model.info.outputs;
        let mut late = LateOutputs { tensors: &mut *self.outputs, infos, scratch: &mut *scratch };
        let context = AotiContext {
            parallel_for: if threads > 1 { Some(parallel_for) } else { None },
            pool: ptr::from_ref(&self.executor).cast_mut().cast(),
            threads: count(threads),
            fork_join_ns: fork_join_ns(self.executor, count(threads)),
            stream: ptr::null_mut(),
            on_kernel: if self.watch.is_null() { None } else { Some(on_kernel) },
            on_kernel_arg: self.watch,
            seed: self.generator.seed,
            offset: self.generator.offset,
            on_time: None,
            on_time_arg: ptr::null_mut(),
            allocate_output: Some(allocate_output),
            allocate_output_arg: ptr::from_mut(&mut late).cast(),
            communicator: self.communicator,
        };
        let run = self.model.api.table.run.expect("the table was checked");
        let (inputs, outputs) = (self.inputs, self.descriptors.as_slice());
        // SAFETY: descriptors are valid and borrowed for the call; outputs, state and arena are borrowed mutably, so
        // nothing else sees them; the context outlives the call, which ends its parallel loops before it returns.
        let done = call(|error| unsafe {
            run(
                self.native.raw.as_ptr(),
                inputs.as_ptr(),
                count(inputs.len()),
                outputs.as_ptr(),
                count(outputs.len()),
                places.0.as_ptr(),
                self.state,
                self.arena.as_mut_ptr().cast(),
                self.arena.capacity() as i64,
                &context,
                error,
            )
        });
        if is_chosen {
            share.ran(|| begun.map_or(Duration::ZERO, |begun| begun.elapsed()));
        }
        if self.model.device != Device::Cpu {
            // Of results whose sizes the run finds, the whole memory was copied.
            self.outputs.iter_mut().for_each(|tensor| tensor.settle_bools());
        }
        done?;
        self.shrink_outputs(found, scratch)
    }

    /// Whether a run that had begun found no memory for what it had read the size of. It is not begun again.
    pub(super) fn ran_out(&self, error: &Error) -> bool {
        self.began && error.code() == ErrorCode::Memory
    }

    /// Gives outputs the sizes that the run found.
    fn shrink_outputs(&mut self, mut sizes: &[i64], scratch: &mut Vec<usize>) -> Result<(), Error> {
        for (tensor, info) in self.outputs.iter_mut().zip(&self.model.info.outputs) {
            tensor.resize(narrowed(take(&mut sizes, info.dims.len()), scratch))?;
        }
        Ok(())
    }

    fn describe_outputs(&mut self, mut sizes: &[i64], scratch: &mut Vec<usize>) -> Result<(), Error> {
        self.descriptors.clear();
        for (tensor, info) in self.outputs.iter_mut().zip(&self.model.info.outputs) {
            let own = take(&mut sizes, info.dims.len());
            // What gets memory during the run has none before it.
            let mut data = ptr::null_mut();
            if !late::is_late(own) {
                tensor.resize(narrowed(own, scratch))?;
                data = tensor.data_mut_ptr().cast();
            }
            self.descriptors.push(data, tensor.dtype(), CPU, own.iter().copied());
        }
        self.descriptors.finish();
        Ok(())
    }
}
