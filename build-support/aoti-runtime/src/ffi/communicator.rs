//! Connects the C side's collectives to a communicator of the program.

use super::{
    abi::{self, AOTI_MESSAGE_BYTES, AotiCollective, AotiCommunicator, AotiError},
    model::Model,
    state::State,
    view::AnyView,
    watch::Watch,
    workspace::Workspace,
};
use crate::communicator::{Collective, CollectiveKind, Communicator, Memory, Reduction};
use crate::{DType, Device, DynTensor, Error, Executor, trace};
use std::{
    ffi::{CStr, c_void},
    panic::{AssertUnwindSafe, catch_unwind},
    ptr, slice,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// A communicator as runs are given it.
pub(super) struct Connection {
    communicator: Arc<dyn Communicator>,
    id: u64,
    /// Ranks count their collectives: those of two runs must not mix.
    turn: Mutex<()>,
}

impl Connection {
    pub(super) fn new(communicator: Arc<dyn Communicator>) -> Arc<Connection> {
        static MADE: AtomicU64 = AtomicU64::new(1);
        let id = if communicator.is_capturable() { MADE.fetch_add(1, Ordering::Relaxed) } else { 0 };
        Arc::new(Connection { communicator, id, turn: Mutex::new(()) })
    }

    /// What the C side is given, which refers to this connection.
    pub(super) fn raw(self: &Arc<Connection>) -> AotiCommunicator {
        let arg = Arc::as_ptr(self).cast_mut().cast();
        AotiCommunicator { exchange: Some(exchange), poll: Some(poll), arg, id: self.id }
    }

    /// Waits until no other run is between collectives.
    pub(super) fn take_turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Other ranks learn of a run that did not get to its end.
    pub(super) fn tell<T>(&self, done: Result<T, Error>) -> Result<T, Error> {
        done.inspect_err(|error| self.communicator.failed(error.message()))
    }
}

impl Model {
    /// Connects the model to the other ranks that it computes with ([`ModelInfo::collectives`]): for runs that begin and that are
    /// prepared from now on. One run at a time is between collectives; another waits for its turn.
    ///
    /// Where a run fails, the other ranks are told ([`Communicator::failed`]).
    pub fn set_communicator(&self, communicator: Arc<dyn Communicator>) {
        let made = Connection::new(communicator);
        *self.connection.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
    }

    /// To the other ranks, where the model has such and there is one.
    pub(super) fn connection(&self) -> Option<Arc<Connection>> {
        if self.info().collectives == 0 {
            return None;
        }
        self.connection.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn run_told(
        &self,
        inputs: &[AnyView<'_>],
        outputs: &mut [&mut DynTensor],
        state: Option<&mut State>,
        workspace: &mut Workspace,
        executor: &dyn Executor,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<(), Error> {
        let _span = trace::run(self);
        if watch.is_some() || !trace::wants_kernels() {
            return self.run_in_turn(inputs, outputs, state, workspace, executor, watch);
        }
        let mut tell = trace::kernels();
        let mut watch = Watch::new(&mut tell, &self.info().kernels);
        let done = self.run_in_turn(inputs, outputs, state, workspace, executor, Some(&mut watch));
        watch.finish();
        done
    }

    fn run_in_turn(
        &self,
        inputs: &[AnyView<'_>],
        outputs: &mut [&mut DynTensor],
        state: Option<&mut State>,
        workspace: &mut Workspace,
        executor: &dyn Executor,
        watch: Option<&mut Watch<'_>>,
    ) -> Result<(), Error> {
        let Some(connection) = self.connection() else {
            return self.run_with(inputs, outputs, state, workspace, (executor, ptr::null()), watch);
        };
        let _turn = connection.take_turn();
        let raw = connection.raw();
        connection.tell(self.run_with(inputs, outputs, state, workspace, (executor, &raw), watch))
    }
}

/// The callback: `arg` is a [`Connection`] that outlives the run.
unsafe extern "C" fn exchange(arg: *mut c_void, call: *const AotiCollective, error: *mut AotiError) -> i32 {
    // SAFETY: `arg` comes from the context of a run that is under way, and the call's description is valid for the call.
    let (connection, call) = unsafe { (&*arg.cast::<Connection>(), &*call) };
    let own = AssertUnwindSafe(|| {
        // SAFETY: the interface gives tensors of as many elements as it says, which nobody else touches during the call.
        let collective = unsafe { described(call) }?;
        let is_bool =
            collective.dtype == DType::Bool && matches!(collective.memory, Memory::Processor { .. });
        connection.communicator.exchange(collective)?;
        if is_bool {
            // SAFETY: as above; generated code relies on truth values being 0 or 1.
            let bytes = unsafe { bytes_mut(call.output.cast(), call.output_count, 1) };
            bytes.iter_mut().for_each(|byte| *byte = u8::from(*byte != 0));
        }
        Ok(())
    });
    report(catch_unwind(own), error)
}

/// The callback: as above.
unsafe extern "C" fn poll(arg: *mut c_void, waited: i64, error: *mut AotiError) -> i32 {
    // SAFETY: as above.
    let connection = unsafe { &*arg.cast::<Connection>() };
    let waited = Duration::from_nanos(u64::try_from(waited).unwrap_or_default());
    report(catch_unwind(AssertUnwindSafe(|| connection.communicator.poll(waited))), error)
}

/// Nothing may unwind through C.
fn report(done: std::thread::Result<Result<(), String>>, error: *mut AotiError) -> i32 {
    let reason = match done {
        Ok(Ok(())) => return abi::AOTI_OK as i32,
        Ok(Err(reason)) => reason,
        Err(_) => "the communicator panicked".to_owned(),
    };
    // SAFETY: the interface gives a place for the error.
    let error = unsafe { &mut *error };
    let room = AOTI_MESSAGE_BYTES as usize - 1;
    let length = (0..=room.min(reason.len())).rev().find(|end| reason.is_char_boundary(*end)).unwrap_or(0);
    error.message = [0; AOTI_MESSAGE_BYTES as usize];
    for (place, byte) in error.message.iter_mut().zip(reason[..length].bytes().filter(|byte| *byte != 0)) {
        *place = std::ffi::c_char::from_ne_bytes([byte]);
    }
    abi::AOTI_ERROR_RANKS as i32
}

/// # Safety
///
/// The call is as the interface describes it, and lasts for `'a`.
unsafe fn described<'a>(call: &'a AotiCollective) -> Result<Collective<'a>, String> {
    let reduction = || {
        let all = usize::try_from(call.reduction).ok().and_then(|code| Reduction::ALL.get(code));
        all.copied().ok_or_else(|| "a reduction that this version does not know".to_owned())
    };
    let ranks = usize::try_from(call.ranks).ok().filter(|ranks| *ranks > 0);
    let kind = match call.kind as abi::AotiCollectiveKind {
        abi::AOTI_ALL_REDUCE => CollectiveKind::AllReduce(reduction()?),
        abi::AOTI_ALL_GATHER => CollectiveKind::AllGather,
        abi::AOTI_REDUCE_SCATTER => CollectiveKind::ReduceScatter(reduction()?),
        abi::AOTI_ALL_TO_ALL => {
            let count = ranks.unwrap_or(0);
            // SAFETY: the interface gives as many sizes as there are ranks.
            let list = |sizes: *const i64| unsafe {
                if sizes.is_null() { &[][..] } else { slice::from_raw_parts(sizes, count) }
            };
            CollectiveKind::AllToAll { send: list(call.send), receive: list(call.receive) }
        }
        abi::AOTI_BROADCAST => {
            CollectiveKind::Broadcast { root: usize::try_from(call.root).unwrap_or(usize::MAX) }
        }
        _ => return Err("a collective that this version does not know".to_owned()),
    };
    let dtype = DType::from_code(call.dtype).ok_or("an element type that this version does not know")?;
    // SAFETY: the interface gives a text that ends.
    let group = unsafe { CStr::from_ptr(call.group) };
    let group = group.to_str().map_err(|_| "a group whose name is not in UTF-8".to_owned())?;
    let device = Device::of_raw(call.device);
    let memory = if device == Device::Cpu {
        // SAFETY: the caller vouches for both tensors.
        let (input, output) = unsafe {
            let (from, to) = (call.input.cast::<u8>(), call.output.cast::<u8>());
            (bytes(from, call.input_count, dtype.size()), bytes_mut(to, call.output_count, dtype.size()))
        };
        Memory::Processor { input, output }
    } else {
        let count = |count: i64| usize::try_from(count).unwrap_or(0);
        Memory::Device {
            device,
            input: call.input,
            input_count: count(call.input_count),
            output: call.output,
            output_count: count(call.output_count),
            stream: call.stream,
        }
    };
    Ok(Collective { kind, dtype, group, ranks, memory })
}

/// # Safety
///
/// So many elements lie there, and nobody changes them for `'a`.
unsafe fn bytes<'a>(data: *const u8, count: i64, size: usize) -> &'a [u8] {
    let bytes = usize::try_from(count).unwrap_or(0).saturating_mul(size);
    // SAFETY: as the caller says.
    if bytes == 0 { &[] } else { unsafe { slice::from_raw_parts(data, bytes) } }
}

/// # Safety
///
/// So many elements lie there, and nobody else has them for `'a`.
unsafe fn bytes_mut<'a>(data: *mut u8, count: i64, size: usize) -> &'a mut [u8] {
    let bytes = usize::try_from(count).unwrap_or(0).saturating_mul(size);
    // SAFETY: as the caller says.
    if bytes == 0 { &mut [] } else { unsafe { slice::from_raw_parts_mut(data, bytes) } }
}
