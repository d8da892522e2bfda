//! Memory for runs, which callers keep between them.

use super::{
    abi::AotiTensor,
    buffer::Buffer,
    described::{Described, wide},
    share::ShareChoice,
    view::{AnyView, CPU},
};
use crate::{Error, Generator};
use std::fmt;

/// What a run needs besides inputs and outputs. Kept between runs, it makes them allocate nothing: it grows when a run
/// needs more and remembers the plan for the sizes it saw last. Any model may use any workspace, one run at a time.
#[derive(Default)]
pub struct Workspace {
    pub(super) arena: Buffer,
    pub(super) inputs: Staging,
    pub(super) outputs: Described,
    pub(super) plan: Plan,
    pub(super) generator: Generator,
}

/// Sizes of outputs and workspace for one model, one number of threads and one list of input sizes.
#[derive(Default)]
pub(super) struct Plan {
    /// The native model's number, then threads, then rank and sizes of each input; empty where there is no plan.
    pub(super) key: Vec<u64>,
    /// Sizes of all outputs, one after the other.
    pub(super) sizes: Vec<i64>,
    /// Where the sizes of each output lie, for the time of a call.
    pub(super) places: Places,
    /// Sizes of all outputs as a run found them: smaller where they depend on data.
    pub(super) found: Vec<i64>,
    /// Sizes of one output, where Rust needs them.
    pub(super) scratch: Vec<usize>,
    pub(super) arena_bytes: usize,
    /// Whether runs are on all threads or on one.
    pub(super) share: ShareChoice,
}

/// The inputs for the C interface, with packed copies of those that are not row-major contiguous.
#[derive(Default)]
pub(super) struct Staging {
    packed: Buffer,
    described: Described,
}

/// A reusable list of pointers for the C interface. What it points to may be gone between runs, when nobody reads it.
#[derive(Default)]
pub(super) struct Places(pub(super) Vec<*mut i64>);

// SAFETY: entries are written anew at the start of each use, under `&mut`; those left over are never read.
unsafe impl Send for Places {}
// SAFETY: as above; nothing can be done with a shared reference.
unsafe impl Sync for Places {}

impl Workspace {
    /// An empty workspace; allocates nothing until it is used.
    pub fn new() -> Workspace {
        Workspace::default()
    }

    /// Overwrites all that is held for runs, so that what a run should have written and has not shows.
    pub fn fill(&mut self, byte: u8) {
        let bytes = self.arena.capacity();
        self.arena.elements_mut::<u8>(bytes).fill(byte);
    }

    /// Sets what the random numbers of the next run follow from; before that, a seed and an offset of 0.
    pub fn set_generator(&mut self, generator: Generator) {
        self.generator = generator;
    }

    /// What the random numbers of the next run will follow from.
    pub fn generator(&self) -> Generator {
        self.generator
    }

    /// Bytes held for runs at present.
    pub fn bytes(&self) -> usize {
        self.arena.capacity() + self.inputs.packed.capacity()
    }
}

impl fmt::Debug for Workspace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workspace").field("bytes", &self.bytes()).finish_non_exhaustive()
    }
}

impl Plan {
    /// Whether this is the plan for such inputs.
    pub(super) fn is_for(&self, model: u64, threads: usize, inputs: &[AnyView<'_>]) -> bool {
        self.key.iter().copied().eq(key(model, threads, inputs))
    }

    /// Notes what the plan is for, once it is made.
    pub(super) fn set_key(&mut self, model: u64, threads: usize, inputs: &[AnyView<'_>]) {
        self.key.clear();
        self.key.extend(key(model, threads, inputs));
        self.share = ShareChoice::default();
    }
}

/// What a plan depends on, in numbers.
fn key<'v>(model: u64, threads: usize, inputs: &'v [AnyView<'_>]) -> impl Iterator<Item = u64> + 'v {
    let sizes =
        inputs.iter().flat_map(|view| [view.sizes().len()].into_iter().chain(view.sizes().iter().copied()));
    [model].into_iter().chain([threads].into_iter().chain(sizes).map(|number| number as u64))
}

impl Staging {
    /// The inputs in the layout of the C interface, those with strides replaced by packed copies.
    pub(super) fn contiguous(&mut self, views: &[AnyView<'_>]) -> Result<&[AotiTensor], Error> {
        let room = |view: &AnyView<'_>| view.packed_bytes().next_multiple_of(64);
        let strided = views.iter().filter(|view| view.strides().is_some());
        let bytes = strided
            .map(room)
            .try_fold(0usize, usize::checked_add)
            .ok_or_else(|| Error::memory(usize::MAX))?;
        if bytes > 0 {
            self.packed.reserve(bytes)?;
        }
        let mut free = self.packed.elements_mut::<u8>(bytes);
        self.described.clear();
        for view in views {
            if view.strides().is_none() {
                view.describe(&mut self.described);
                continue;
            }
            let (target, rest) = std::mem::take(&mut free).split_at_mut(room(view));
            view.pack(target);
            self.described.push(target.as_mut_ptr().cast(), view.dtype(), CPU, view.sizes().iter().map(wide));
            free = rest;
        }
        Ok(self.described.finish())
    }
}
