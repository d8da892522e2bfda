//! Calls have what their functions take, where the schedule has it.

use super::Verifier;
use crate::loops::{BufferId, KernelKind, Storage};
use crate::runplan::{Call, Launch, Map, Place, Pointer, Product};
use crate::symbolic::Symbol;
use std::collections::BTreeSet;

/// Threads of a block at most.
const MOST_THREADS: u64 = 1024;

impl Verifier<'_> {
    /// A call on the host, or one of the launches of a kernel.
    pub(super) fn call(&mut self, call: &Call, launch: Option<&Launch>, known: &BTreeSet<Symbol>) {
        let (schedule, id) = (self.schedule, call.kernel);
        let (Some(kernel), Some(wanted)) = (schedule.program.kernels.get(id), schedule.calls.get(id)) else {
            return self.find(format!("{id} is called, which is no kernel"));
        };
        let (name, number) = (self.name(id), self.called[id]);
        self.called[id] += 1;
        if wanted.functions.get(number) != Some(&call.function) {
            self.find(format!("{name} calls {}, which is not its function {number}", call.function));
        }
        if call.sizes != wanted.sizes {
            self.find(format!("{name} is given other sizes than its function takes"));
        }
        self.knows(call.sizes.iter().copied(), known, &name);
        let launches = schedule.launches.get(id).map_or(&[][..], Vec::as_slice);
        if launch.is_some() == launches.is_empty() {
            self.find(format!("{name} is called on the wrong side: it has {} launches", launches.len()));
        }
        // Scratch on a device and the report of a function come before the buffers.
        let has_scratch = launches.iter().any(|launch| launch.takes_scratch);
        let before = usize::from(has_scratch) + usize::from(matches!(kernel.kind, KernelKind::Extern(_)));
        let (given, taken) = (call.tensors.len(), before + wanted.arguments.len());
        if given != taken {
            return self.find(format!("{name} is given {given} tensors, and its function takes {taken}"));
        }
        let types = call.tensors.iter().map(|tensor| tensor.dtype).collect();
        let signature = (types, call.sizes.len());
        let first = self.signatures.entry(call.function).or_insert_with(|| signature.clone());
        if *first != signature {
            self.find(format!("{name} gives {} other types than another call does", call.function));
        }
        for (argument, pointer) in wanted.arguments.iter().zip(&call.tensors[before..]) {
            self.knows_of([&pointer.start], known, &name);
            self.tensor(&name, argument.buffer, pointer);
        }
        if let Some(launch) = launch {
            self.knows_of(launch.grid.iter().chain([&launch.shared]), known, &name);
            self.launch(&name, launch);
        }
    }

    fn launch(&mut self, name: &str, launch: &Launch) {
        let threads: u64 = launch.block.iter().map(|threads| u64::from(*threads)).product();
        if threads == 0 || threads > MOST_THREADS {
            self.find(format!("{name} has blocks of {threads} threads"));
        }
        for Map { tensor, sizes, strides, extents, .. } in &launch.maps {
            let is_given = launch.call.tensors.iter().any(|own| own.place == tensor.place);
            if !is_given || sizes.len() != strides.len() + 1 || extents.len() > sizes.len() {
                self.find(format!("{name} has a map of what it is not given"));
            }
        }
        if let Some(product) = &launch.product {
            let Product { number, matrices, .. } = product.as_ref();
            let is_numbered = self.run.products().position(|own| own.number == *number) == Some(*number);
            if !is_numbered || matrices.iter().any(|own| own.dtype != matrices[0].dtype) {
                self.find(format!("{name} asks a library for product {number}, which is none of the run's"));
            }
        }
    }

    /// A tensor is of its buffer's type and stands where the buffer does.
    pub(super) fn tensor(&mut self, name: &str, buffer: BufferId, pointer: &Pointer) {
        let own = &self.schedule.program.buffers[buffer];
        let memory = &self.schedule.memory;
        let is_there = match (own.storage, &pointer.place) {
            (Storage::Input(position), Place::Input(place))
            | (Storage::Output(position), Place::Output(place)) => position == *place,
            (Storage::State(position), Place::State(offset)) => {
                self.run.states.get(position).is_some_and(|state| state.offset == *offset)
            }
            (Storage::Generator, Place::Generator) => true,
            (Storage::Constant(_), place @ (Place::Weights(_) | Place::Expanded(_))) => self.is_placed(place),
            (Storage::Temporary, Place::Arena(offset)) => memory.offsets.get(&buffer) == Some(offset),
            (Storage::Temporary, Place::Late(late)) => memory.late.get(&buffer) == Some(late),
            _ => false,
        };
        if pointer.dtype != own.dtype || !is_there {
            self.find(format!("{name} is given {buffer} where it is not"));
        }
    }
}
