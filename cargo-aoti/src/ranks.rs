//! Models of several ranks: each rank is a thread of this process, on a GPU of its own or on the processor.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aoti_build::LinkKind;
use aoti_runtime::{
    AnyView, Communicator, Device, DeviceTensor, DynTensor, Model, ModelInfo, Nccl, NcclCommunicator, State,
    Stream, ThreadGroup, ThreadPool, Workspace,
};
use clap::Args;

use crate::arguments::Rounding;
use crate::case::Case;
use crate::chosen::Chosen;
use crate::commands::Context;
use crate::failure::Failure;
use crate::progress::Shown;
use crate::single::{self, Single};
use aoti_tune::tensors::room;

/// What a path has in the place of a rank's number.
const PLACE: &str = "{rank}";

/// How many ranks a model has.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct Count {
    /// Start so many ranks, each on a thread of its own, or on a GPU of its own from the one of `--device` on. A rank's model is in
    /// `rank0`, `rank1`, … of the folder that is named, or at the path with its number for `{rank}`; else all have the same
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(crate) ranks: Option<u16>,
    /// How long a rank waits for the others before it fails, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 60, requires = "ranks", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) rank_timeout: u64,
}

/// A rank that is ready to run.
pub(crate) struct Rank {
    pub(crate) number: usize,
    pub(crate) model: Model,
    pub(crate) info: ModelInfo,
    pub(crate) case: Option<Case>,
}

/// The ranks of a model, with the libraries that they are in.
pub(crate) struct Ranks {
    pub(crate) all: Vec<Rank>,
    _libraries: Vec<Single>,
}

/// A rank's own of what a path names for all.
pub(crate) fn path_of(path: &Path, rank: usize) -> PathBuf {
    let text = path.to_string_lossy();
    if text.contains(PLACE) {
        return PathBuf::from(text.replace(PLACE, &rank.to_string()));
    }
    let own = path.join(format!("rank{rank}"));
    if own.is_dir() { own } else { path.to_owned() }
}

/// The device of a rank.
fn device_of(first: Device, rank: usize) -> Result<Device, Failure> {
    if first.is_cpu() {
        return Ok(first);
    }
    let index = u16::try_from(rank).ok().and_then(|rank| first.index().checked_add(rank));
    let index = index.ok_or_else(|| Failure::Usage("there are not as many devices".to_owned()))?;
    Ok(first.with_index(index))
}

/// Connects so many ranks.
fn communicators(
    device: Device,
    count: usize,
    limit: Duration,
) -> Result<Vec<Arc<dyn Communicator>>, Failure> {
    if device == Device::Cpu {
        let ranks = ThreadGroup::new(count).with_time_limit(limit).into_ranks();
        return Ok(ranks.into_iter().map(|rank| Arc::new(rank) as Arc<dyn Communicator>).collect());
    }
    let nccl = Nccl::open(device)?;
    let id = nccl.id()?;
    let rank = |rank| NcclCommunicator::new(&nccl, id, rank, count).with_time_limit(limit);
    Ok((0..count).map(|number| Arc::new(rank(number)) as Arc<dyn Communicator>).collect())
}

/// Builds and loads the ranks of a model. A program that several have is built once.
pub(crate) fn load(
    given: &Path,
    count: Count,
    device: Device,
    rounding: &Rounding,
    context: &Context,
) -> Result<Ranks, Failure> {
    let ranks = usize::from(count.ranks.unwrap_or(1));
    let session = single::session(context, true)?;
    let progress = Shown::new(context.terminal);
    let mut libraries: Vec<(PathBuf, Single)> = Vec::new();
    let mut all = Vec::new();
    for number in 0..ranks {
        let chosen = Chosen::find(&path_of(given, number), context)?;
        if !libraries.iter().any(|(path, _)| path == chosen.path()) {
            let (levels, numerics) = (vec!["native".to_owned()], rounding.or(chosen.numerics()));
            let single =
                single::build(&session, &chosen.model, LinkKind::Dylib, device, levels, numerics, &progress);
            libraries.push((chosen.path().to_owned(), single.inspect_err(|_| progress.finish())?));
        }
        let Some((_, single)) = libraries.iter().find(|(path, _)| path == chosen.path()) else { continue };
        let (model, info) = single.load_on(device_of(device, number)?)?;
        all.push(Rank { number, model, info, case: chosen.case });
    }
    progress.finish();
    let limit = Duration::from_secs(count.rank_timeout);
    for (rank, communicator) in all.iter().zip(communicators(device, ranks, limit)?) {
        rank.model.set_communicator(communicator);
    }
    Ok(Ranks { all, _libraries: libraries.into_iter().map(|(_, single)| single).collect() })
}

impl Ranks {
    /// Does something on a thread for each rank, and gives what comes of it.
    pub(crate) fn each<T: Send>(
        &self,
        function: impl Fn(&Rank) -> Result<T, Failure> + Sync,
    ) -> Vec<Result<T, Failure>> {
        let function = &function;
        std::thread::scope(|scope| {
            let start = |rank| scope.spawn(move || function(rank));
            let threads: Vec<_> = self.all.iter().map(start).collect();
            let panicked = |_| Err(Failure::Machine("a rank panicked".to_owned()));
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(panicked)).collect()
        })
    }
}

/// One run of a rank on tensors of the processor's.
pub(crate) fn run(rank: &Rank, inputs: &[DynTensor], threads: usize) -> Result<Vec<DynTensor>, Failure> {
    let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
    let mut outputs: Vec<DynTensor> =
        rank.info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
    let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
    let mut state = rank.state()?;
    let pool = ThreadPool::new(threads);
    rank.model.run(&views, &mut targets, state.as_mut(), &mut Workspace::new(), &pool)?;
    Ok(outputs)
}

impl Rank {
    fn state(&self) -> Result<Option<State>, Failure> {
        Ok(if self.info.state_bytes > 0 { Some(self.model.state()?) } else { None })
    }

    /// Runs again and again, in step with the others, until `stop`; gives the times in microseconds.
    fn repeated(
        &self,
        (inputs, threads): (&[DynTensor], usize),
        meeting: &Meeting,
    ) -> Result<Vec<f64>, Failure> {
        let views: Vec<AnyView<'_>> = inputs.iter().map(DynTensor::view).collect();
        let mut state = self.state()?;
        if self.model.device() == Device::Cpu {
            let mut outputs: Vec<DynTensor> =
                self.info.outputs.iter().map(|output| DynTensor::empty(output.dtype)).collect();
            let mut targets: Vec<&mut DynTensor> = outputs.iter_mut().collect();
            let (mut workspace, pool) = (Workspace::new(), ThreadPool::new(threads));
            return meeting.repeat(self.number, || {
                Ok(self.model.run(&views, &mut targets, state.as_mut(), &mut workspace, &pool)?)
            });
        }
        let sizes = room::for_outputs(&self.model, inputs)?;
        let uploaded: Vec<DeviceTensor<'_>> =
            inputs.iter().map(|input| self.model.upload(input)).collect::<Result<_, _>>()?;
        let outputs = self.info.outputs.iter().zip(&sizes);
        let outputs = outputs.map(|(output, sizes)| self.model.device_tensor(output.dtype, sizes));
        let mut outputs = outputs.collect::<Result<Vec<_>, _>>()?;
        let mut prepared = self.model.prepare(&views, 1)?;
        let views: Vec<AnyView<'_>> = uploaded.iter().map(DeviceTensor::view).collect();
        meeting.repeat(self.number, || {
            Ok(prepared.run(&views, &mut outputs, state.as_mut(), Stream::default())?)
        })
    }
}

/// Where ranks that are measured meet before each run.
struct Meeting {
    state: Mutex<Met>,
    changed: Condvar,
    ranks: usize,
    limit: Duration,
}

#[derive(Default)]
struct Met {
    waiting: usize,
    rounds: usize,
    is_over: bool,
}

impl Meeting {
    fn new(ranks: usize, limit: Duration) -> Meeting {
        Meeting { state: Mutex::default(), changed: Condvar::new(), ranks, limit }
    }

    /// Waits until all are here; whether there is one more run.
    fn goes_on(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.waiting += 1;
        if state.waiting == self.ranks {
            (state.waiting, state.rounds) = (0, state.rounds + 1);
            self.changed.notify_all();
            return !state.is_over;
        }
        let round = state.rounds;
        let waits = |state: &mut Met| state.rounds == round && !state.is_over;
        let state = self.changed.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner);
        !state.is_over
    }

    fn end(&self) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).is_over = true;
        self.changed.notify_all();
    }

    /// Runs until the first rank has had enough, or one has failed.
    fn repeat(
        &self,
        rank: usize,
        mut once: impl FnMut() -> Result<(), Failure>,
    ) -> Result<Vec<f64>, Failure> {
        const WARM_UPS: usize = 5;
        let (mut micros, mut begun) = (Vec::new(), Instant::now());
        for done in 0.. {
            if done == WARM_UPS {
                begun = Instant::now();
            }
            if rank == 0 && done > WARM_UPS && begun.elapsed() >= self.limit {
                self.end();
            }
            if !self.goes_on() {
                break;
            }
            let start = Instant::now();
            once()?;
            if done >= WARM_UPS {
                micros.push(start.elapsed().as_nanos() as f64 / 1e3);
            }
        }
        Ok(micros)
    }
}

/// Times runs of all ranks in step; each gives its times in microseconds.
pub(crate) fn measure(
    ranks: &Ranks,
    inputs: &[Vec<DynTensor>],
    threads: usize,
    limit: Duration,
) -> Vec<Result<Vec<f64>, Failure>> {
    let meeting = Meeting::new(ranks.all.len(), limit);
    ranks.each(|rank| {
        // Nobody waits for a rank that has failed.
        rank.repeated((&inputs[rank.number], threads), &meeting).inspect_err(|_| meeting.end())
    })
}
