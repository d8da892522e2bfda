//! Memory for runs, which callers keep between them.

use super::{abi::AotiTensor, buffer::Buffer, view::AnyView};
use crate::{Error, Generator};
use std::fmt;

/// What a run needs besides inputs and outputs. Kept between runs, it makes them allocate nothing: it grows when a run
/// needs more and remembers the plan for the sizes it saw last. Any model may use any workspace, one run at a time.
#[derive(Default)]
pub struct Workspace {
    pub(super) arena: Buffer,
    pub(super) inputs: Staging,
    pub(super) outputs: Descriptors<AotiTensor>,
    pub(super) plan: Plan,
    pub(super) generator: Generator,
}

/// Sizes of outputs and workspace for one model, one number of threads and one list of input sizes.
#[derive(Default)]
pub(super) struct Plan {
    /// The native model's number, then threads, then rank and sizes of each input; empty where there is no plan.
    pub(super) key: Vec<u64>,
    /// Sizes of all outputs, one after the other.
    pub(super) sizes: Vec<usize>,
    /// Where the sizes of each output lie, for the time of a call.
    pub(super) places: Descriptors<*mut i64>,
    /// Sizes of all outputs as a run found them: smaller where they depend on data.
    pub(super) found: Vec<usize>,
    pub(super) arena_bytes: usize,
}

/// Packed copies of inputs that are not row-major contiguous.
#[derive(Default)]
pub(super) struct Staging {
    packed: Buffer,
    descriptors: Descriptors<AotiTensor>,
}

/// A reusable list of pointers for the C interface. What it points to may be gone between runs, when nobody reads it.
pub(super) struct Descriptors<T>(pub(super) Vec<T>);

// SAFETY: entries are written anew at the start of each use, under `&mut`; those left over are never read.
unsafe impl<T> Send for Descriptors<T> {}
// SAFETY: as above; nothing can be done with a shared reference.
unsafe impl<T> Sync for Descriptors<T> {}

impl<T> Default for Descriptors<T> {
    fn default() -> Self {
        Descriptors(Vec::new())
    }
}

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
    pub(super) fn contiguous<'s>(&'s mut self, views: &'s [AnyView<'_>]) -> Result<&'s [AotiTensor], Error> {
        if views.iter().all(|view| view.strides().is_none()) {
            return Ok(AnyView::as_raw_slice(views));
        }
        let room = |view: &AnyView<'_>| view.packed_bytes().next_multiple_of(64);
        let strided = views.iter().filter(|view| view.strides().is_some());
        let bytes = strided
            .map(room)
            .try_fold(0usize, usize::checked_add)
            .ok_or_else(|| Error::memory(usize::MAX))?;
        self.packed.reserve(bytes)?;
        let mut free = self.packed.elements_mut::<u8>(bytes);
        self.descriptors.0.clear();
        for view in views {
            let mut raw = view.raw();
            if view.strides().is_some() {
                let (target, rest) = std::mem::take(&mut free).split_at_mut(room(view));
                view.pack(target);
                raw.data = target.as_mut_ptr().cast();
                raw.strides = std::ptr::null();
                free = rest;
            }
            self.descriptors.0.push(raw);
        }
        Ok(&self.descriptors.0)
    }
}
