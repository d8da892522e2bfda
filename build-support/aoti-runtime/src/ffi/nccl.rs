//! Collectives of GPUs by NCCL or RCCL: a rank of a group, which connects in its first run and submits to the run's stream. Small
//! tensors are summed without them, where ranks can read each other's memory.

#[macro_use]
mod functions;
mod driver;
mod library;
mod peers;

pub use library::{Nccl, NcclId};

use crate::DType;
use crate::communicator::{Collective, CollectiveKind, Communicator, Memory};
use library::{BYTES, Comm, Config, IN_PROGRESS, SUCCESS, Stream, reduced_by};
use peers::{NOTE_BYTES, Peers};
use std::{
    ffi::{c_int, c_void},
    fmt, ptr,
    sync::{Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// How long ranks wait for the others, where nobody says.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// One rank of a group of GPUs, one in each: for a model that runs there.
///
/// It connects in the first run, on the device of the model. Collectives are put on the run's stream, and captured in its graph. A
/// rank that waits longer than the limit ends what it has submitted, and its run fails; from then on it cannot be used.
pub struct NcclCommunicator {
    nccl: Nccl,
    id: NcclId,
    rank: usize,
    ranks: usize,
    limit: Duration,
    state: Mutex<State>,
}

enum State {
    New,
    Connected(Connected),
    Ended(String),
}

struct Connected {
    comm: Comm,
    peers: Option<Peers>,
}
// SAFETY: a communicator of NCCL may be used by any thread, by one at a time; so may what is in the memory of devices.
unsafe impl Send for Connected {}

impl NcclCommunicator {
    /// Rank `rank` of `ranks`, each of which is made with the same id.
    pub fn new(nccl: &Nccl, id: NcclId, rank: usize, ranks: usize) -> NcclCommunicator {
        let state = Mutex::new(State::New);
        NcclCommunicator { nccl: nccl.clone(), id, rank, ranks, limit: TIME_LIMIT, state }
    }

    /// How long ranks wait for the others before they get an error; a minute by default.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> NcclCommunicator {
        self.limit = limit;
        self
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The communicator, which is connected the first time.
    fn connected(&self, state: &mut State, stream: Stream) -> Result<Comm, String> {
        if let State::New = state {
            let mut config = Config::non_blocking();
            let number = |number: usize| c_int::try_from(number).map_err(|_| "too many ranks".to_owned());
            let (rank, ranks, mut comm) = (number(self.rank)?, number(self.ranks)?, ptr::null_mut());
            // SAFETY: arguments as the library wants them, on the device that is current in a run.
            let code =
                unsafe { (self.nccl.functions().connect)(&mut comm, ranks, self.id, rank, &mut config) };
            *state = State::Connected(Connected { comm, peers: None });
            self.settle(state, code, CONNECTING)?;
            match self.connect_peers(state, stream) {
                Ok(own) => {
                    if let State::Connected(connected) = state {
                        connected.peers = own;
                    }
                }
                Err(reason) => self.end(state, reason)?,
            }
        }
        comm_of(state)
    }

    /// The ranks' memory, if all of them can read that of all others. Two rounds of NCCL bring what they tell each other.
    fn connect_peers(&self, state: &mut State, stream: Stream) -> Result<Option<Peers>, String> {
        let Some(driver) = self.nccl.driver() else { return Ok(None) };
        let Some(mut peers) = Peers::new(driver, self.rank, self.ranks)? else { return Ok(None) };
        peers.tell_memory()?;
        self.gather(state, &peers, stream)?;
        peers.open()?;
        self.gather(state, &peers, stream)?;
        if peers.all_are_open()? {
            return Ok(Some(peers));
        }
        peers.close();
        Ok(None)
    }

    fn gather(&self, state: &mut State, peers: &Peers, stream: Stream) -> Result<(), String> {
        let (comm, (own, all)) = (comm_of(state)?, peers.notes());
        // SAFETY: there is memory for the notes of all ranks.
        let code = unsafe { (self.nccl.functions().all_gather)(own, all, NOTE_BYTES, BYTES, comm, stream) };
        self.settle(state, code, CONNECTING)?;
        let begin = Instant::now();
        while !peers.is_done(stream)? {
            if begin.elapsed() > self.limit {
                return Err(format!("{CONNECTING} took longer than {:?}", self.limit));
            }
            pause(begin);
        }
        Ok(())
    }

    /// Waits until the library has done what it was asked for; what it submits to a stream may still be under way.
    fn settle(&self, state: &mut State, mut code: c_int, what: &str) -> Result<(), String> {
        let begin = Instant::now();
        while code == IN_PROGRESS && begin.elapsed() < self.limit {
            let State::Connected(Connected { comm, .. }) = state else { break };
            // SAFETY: the communicator is alive.
            let asked = unsafe { (self.nccl.functions().state)(*comm, &mut code) };
            if asked != SUCCESS {
                code = asked;
            }
            if code == IN_PROGRESS {
                pause(begin);
            }
        }
        match code {
            SUCCESS => Ok(()),
            IN_PROGRESS => self.end(state, format!("{what} took longer than {:?}", self.limit)),
            code => self.end(state, format!("{what}: {}", self.nccl.text(code))),
        }
    }

    /// Ends everything that was submitted.
    fn end(&self, state: &mut State, reason: String) -> Result<(), String> {
        if let State::Connected(Connected { comm, peers }) =
            std::mem::replace(state, State::Ended(reason.clone()))
        {
            if let Some(peers) = peers {
                peers.end();
            }
            if !comm.is_null() {
                // SAFETY: the communicator is alive, and nobody uses it after this.
                unsafe { (self.nccl.functions().abort)(comm) };
            }
        }
        Err(reason)
    }

    fn submit(&self, comm: Comm, call: &Call<'_>) -> Result<c_int, String> {
        let functions = self.nccl.functions();
        let Call { kind, dtype, input, output, given, made, stream } = *call;
        // SAFETY: the run gives addresses of as many elements, on its stream, for as long as it takes.
        Ok(unsafe {
            match kind {
                CollectiveKind::AllReduce(reduction) => {
                    let (dtype, op) = reduced_by(dtype, reduction)?;
                    (functions.all_reduce)(input, output, made, dtype, op, comm, stream)
                }
                CollectiveKind::ReduceScatter(reduction) => {
                    let (dtype, op) = reduced_by(dtype, reduction)?;
                    (functions.reduce_scatter)(input, output, made, dtype, op, comm, stream)
                }
                CollectiveKind::AllGather => {
                    (functions.all_gather)(input, output, given * dtype.size(), BYTES, comm, stream)
                }
                CollectiveKind::Broadcast { root } => {
                    let root = c_int::try_from(root).map_err(|_| format!("there is no rank {root}"))?;
                    (functions.broadcast)(input, output, given * dtype.size(), BYTES, root, comm, stream)
                }
                CollectiveKind::AllToAll { send, receive } => self.all_to_all(comm, call, send, receive)?,
            }
        })
    }

    /// # Safety
    ///
    /// As in [`NcclCommunicator::submit`].
    unsafe fn all_to_all(
        &self,
        comm: Comm,
        call: &Call<'_>,
        send: &[i64],
        receive: &[i64],
    ) -> Result<c_int, String> {
        let (functions, size) = (self.nccl.functions(), call.dtype.size());
        let bytes = |blocks: &[i64]| -> Vec<usize> {
            blocks.iter().map(|count| usize::try_from(*count).unwrap_or(0) * size).collect()
        };
        let (send, receive) = (bytes(send), bytes(receive));
        if send.iter().sum::<usize>() != call.given * size
            || receive.iter().sum::<usize>() != call.made * size
        {
            return Err("the blocks are not what they are blocks of".to_owned());
        }
        let (mut from, mut to) = (call.input.cast::<u8>(), call.output.cast::<u8>());
        // SAFETY: blocks lie within both tensors, as was checked.
        unsafe {
            let mut code = (functions.group_start)();
            for (peer, (send, receive)) in (0..).zip(send.into_iter().zip(receive)) {
                if code == SUCCESS || code == IN_PROGRESS {
                    code = (functions.send)(from.cast(), send, BYTES, peer, comm, call.stream);
                }
                if code == SUCCESS || code == IN_PROGRESS {
                    code = (functions.receive)(to.cast(), receive, BYTES, peer, comm, call.stream);
                }
                (from, to) = (from.wrapping_add(send), to.wrapping_add(receive));
            }
            let end = (functions.group_end)();
            Ok(if code == SUCCESS || code == IN_PROGRESS { end } else { code })
        }
    }
}

/// What is told of ranks that do not get to know each other.
const CONNECTING: &str = "connecting the ranks";

fn comm_of(state: &State) -> Result<Comm, String> {
    match state {
        State::Connected(own) => Ok(own.comm),
        State::Ended(reason) => Err(reason.clone()),
        State::New => Err("the ranks are not connected".to_owned()),
    }
}

/// Between two questions: short at first.
fn pause(begin: Instant) {
    thread::sleep(Duration::from_micros(if begin.elapsed().as_millis() < 10 { 20 } else { 500 }));
}

/// What a collective is given on a device.
#[derive(Clone, Copy)]
struct Call<'a> {
    kind: CollectiveKind<'a>,
    dtype: DType,
    input: *const c_void,
    output: *mut c_void,
    given: usize,
    made: usize,
    stream: Stream,
}

impl Communicator for NcclCommunicator {
    fn exchange(&self, collective: Collective<'_>) -> Result<(), String> {
        let Collective { kind, dtype, group, ranks, memory } = collective;
        if let Some(wanted) = ranks.filter(|wanted| *wanted != self.ranks) {
            let have = self.ranks;
            return Err(format!("the program is for {wanted} ranks, and group `{group}` has {have}"));
        }
        let Memory::Device { device: _, input, input_count: given, output, output_count: made, stream } =
            memory
        else {
            return Err(
                "NCCL exchanges what is in memory of GPUs, and the model runs on the processor".to_owned()
            );
        };
        let mut state = self.lock();
        let comm = self.connected(&mut state, stream)?;
        if let State::Connected(Connected { peers: Some(peers), .. }) = &*state
            && let CollectiveKind::AllReduce(reduction) = kind
            && let Some(function) = peers.function(dtype, reduction, made)
        {
            // SAFETY: the run gives addresses of as many elements, on its stream, for as long as it takes.
            let submitted = unsafe { peers.sum(function, dtype, (input, output), made, stream) };
            return submitted.or_else(|reason| self.end(&mut state, reason));
        }
        let call = Call { kind, dtype, input, output, given, made, stream };
        match self.submit(comm, &call) {
            Ok(code) => self.settle(&mut state, code, kind.name()),
            Err(reason) => self.end(&mut state, reason),
        }
    }

    fn is_capturable(&self) -> bool {
        true
    }

    fn poll(&self, waited: Duration) -> Result<(), String> {
        let mut state = self.lock();
        let (mut code, mut asked) = (SUCCESS, SUCCESS);
        if !matches!(*state, State::New) {
            let comm = comm_of(&state)?;
            // SAFETY: the communicator is alive.
            asked = unsafe { (self.nccl.functions().state)(comm, &mut code) };
        }
        match if asked == SUCCESS { code } else { asked } {
            SUCCESS | IN_PROGRESS if waited <= self.limit => Ok(()),
            SUCCESS | IN_PROGRESS => {
                let reason = format!("rank {} waited longer than {:?} for the others", self.rank, self.limit);
                self.end(&mut state, reason)
            }
            code => self.end(&mut state, self.nccl.text(code)),
        }
    }

    fn failed(&self, reason: &str) {
        let _ = self.end(&mut self.lock(), format!("rank {} failed: {reason}", self.rank));
    }
}

impl Drop for NcclCommunicator {
    fn drop(&mut self) {
        let mut state = self.lock();
        let State::Connected(Connected { comm, .. }) = *state else { return };
        // What the other ranks still read of this one is waited for.
        // SAFETY: the communicator is alive.
        let code = unsafe { (self.nccl.functions().finalize)(comm) };
        if self.settle(&mut state, code, "leaving the group").is_ok() {
            if let State::Connected(Connected { peers, .. }) = &mut *state
                && let Some(peers) = peers.take()
            {
                peers.close();
            }
            // SAFETY: the communicator is alive, and nobody uses it after this.
            unsafe { (self.nccl.functions().destroy)(comm) };
        }
    }
}

impl fmt::Debug for NcclCommunicator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("NcclCommunicator");
        debug.field("rank", &self.rank).field("ranks", &self.ranks).finish_non_exhaustive()
    }
}
