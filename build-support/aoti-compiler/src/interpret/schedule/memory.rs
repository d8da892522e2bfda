//! The memory of a run: the caller's tensors, constants, and the arena with temporaries where the plan put them.

use crate::interpret::error::EvalError;
use crate::interpret::index::Symbols;
use crate::interpret::tensor::Tensor;
use crate::loops::{BufferId, Program, Storage};
use crate::schedule::Schedule;
use crate::schedule::memory::MemoryPlan;
use std::collections::BTreeMap;

/// Bytes of a run.
pub(super) struct Memory {
    arena: Vec<u8>,
    /// Byte offsets of temporaries.
    places: BTreeMap<BufferId, usize>,
    /// Of buffers that are allocated late and take turns in one place, the one that stands for all.
    turns: BTreeMap<BufferId, BufferId>,
    /// Every other buffer by itself. Rows are made for the positions that run together.
    own: BTreeMap<BufferId, Vec<u8>>,
}

/// Memory larger than this many bytes is refused.
const MAX_BYTES: i64 = 1 << 32;

/// Makes the new bytes of an element of its old ones and of what is stored.
type Combiner<'a> = dyn FnMut(&[u8], &[u8]) -> Result<Vec<u8>, EvalError> + 'a;

impl Memory {
    pub(super) fn new(
        schedule: &Schedule,
        symbols: &Symbols,
        inputs: &[Tensor],
    ) -> Result<Memory, EvalError> {
        let program = &schedule.program;
        let bytes = symbols.value(&schedule.memory.arena_bytes)?;
        if !(0..=MAX_BYTES).contains(&bytes) {
            return Err(EvalError::TooLarge(format!("an arena of {bytes} bytes")));
        }
        let mut memory = Memory {
            // What nobody wrote shows: NaN, or a large number.
            arena: vec![0xff; usize::try_from(bytes).expect("checked above")],
            places: BTreeMap::new(),
            turns: turns(&schedule.memory),
            own: BTreeMap::new(),
        };
        for (buffer, offset) in &schedule.memory.offsets {
            let offset = usize::try_from(symbols.value(offset)?);
            memory.places.insert(*buffer, offset.map_err(|_| missing(*buffer))?);
        }
        for (id, buffer) in &program.buffers {
            let data = match buffer.storage {
                Storage::Input(_) | Storage::State(_) | Storage::Generator => continue,
                Storage::Constant(constant) => program.constants[constant].data.to_vec(),
                Storage::Output(_) => match symbols.sizes(&buffer.shape) {
                    Ok(sizes) => vec![0xff; sizes.iter().product::<usize>() * buffer.dtype.size()],
                    // Its size is still to be read from data.
                    Err(_) => vec![],
                },
                Storage::Temporary | Storage::Local { .. } => continue,
            };
            memory.own.insert(id, data);
        }
        for (buffer, tensor) in program.graph_inputs.iter().zip(inputs) {
            memory.own.insert(*buffer, tensor.bytes().to_vec());
        }
        Ok(memory)
    }

    /// Makes room for `count` rows of a buffer.
    pub(super) fn make_rows(&mut self, buffer: BufferId, bytes: usize) {
        self.own.insert(buffer, vec![0xff; bytes]);
    }

    /// The bytes of a buffer of `bytes` bytes.
    fn bytes(&self, buffer: BufferId, bytes: usize) -> Result<&[u8], EvalError> {
        let buffer = self.turns.get(&buffer).copied().unwrap_or(buffer);
        let whole = match self.places.get(&buffer) {
            Some(offset) => self.arena.get(*offset..*offset + bytes),
            None => self.own.get(&buffer).and_then(|own| own.get(..bytes)),
        };
        whole.ok_or_else(|| missing(buffer))
    }

    fn bytes_mut(&mut self, buffer: BufferId, bytes: usize) -> Result<&mut [u8], EvalError> {
        let buffer = self.turns.get(&buffer).copied().unwrap_or(buffer);
        let whole = match self.places.get(&buffer) {
            Some(offset) => self.arena.get_mut(*offset..*offset + bytes),
            None => {
                let own = self.own.entry(buffer).or_default();
                if own.len() < bytes {
                    own.resize(bytes, 0xff);
                }
                own.get_mut(..bytes)
            }
        };
        whole.ok_or_else(|| missing(buffer))
    }

    /// Elements of a buffer by their offsets.
    pub(super) fn load(
        &self,
        program: &Program,
        (buffer, elements): (BufferId, usize),
        offsets: &[Option<i64>],
        fill: &[u8],
    ) -> Result<Tensor, EvalError> {
        let dtype = program.buffers[buffer].dtype;
        let width = dtype.size();
        let memory = self.bytes(buffer, elements * width)?;
        let mut data = Vec::with_capacity(offsets.len() * width);
        for offset in offsets {
            match offset {
                Some(offset) => {
                    let at = within(buffer, *offset, elements)?;
                    data.extend_from_slice(&memory[at * width..(at + 1) * width]);
                }
                None => data.extend_from_slice(fill),
            }
        }
        Ok(Tensor::new(dtype, vec![offsets.len()], data).expect("an element for each offset"))
    }

    /// Writes elements, in order; `combine` makes the new one of the old one and what is stored.
    pub(super) fn store(
        &mut self,
        (buffer, elements): (BufferId, usize),
        offsets: &[i64],
        values: &Tensor,
        combine: &mut Combiner<'_>,
    ) -> Result<(), EvalError> {
        let width = values.dtype().size();
        let memory = self.bytes_mut(buffer, elements * width)?;
        for (offset, value) in offsets.iter().zip(values.bytes().chunks_exact(width)) {
            let at = within(buffer, *offset, elements)? * width;
            let new = combine(&memory[at..at + width], value)?;
            memory[at..at + width].copy_from_slice(&new);
        }
        Ok(())
    }

    /// A whole buffer.
    pub(super) fn whole(
        &self,
        program: &Program,
        symbols: &Symbols,
        buffer: BufferId,
        sizes: Vec<usize>,
    ) -> Result<Tensor, EvalError> {
        let dtype = program.buffers[buffer].dtype;
        let elements: usize = symbols.sizes(&program.buffers[buffer].shape)?.iter().product();
        let bytes = self.bytes(buffer, elements * dtype.size())?.to_vec();
        Tensor::new(dtype, sizes, bytes)
            .map_err(|_| EvalError::Malformed(format!("{buffer} does not have as many elements as are read")))
    }

    /// Overwrites a whole buffer.
    pub(super) fn replace(
        &mut self,
        program: &Program,
        symbols: &Symbols,
        buffer: BufferId,
        value: &Tensor,
    ) -> Result<(), EvalError> {
        let own = &program.buffers[buffer];
        let elements: usize = symbols.sizes(&own.shape)?.iter().product();
        if value.dtype() != own.dtype || value.numel() != elements {
            return Err(EvalError::Malformed(format!("{buffer} is written as another type or size")));
        }
        self.bytes_mut(buffer, value.bytes().len())?.copy_from_slice(value.bytes());
        Ok(())
    }
}

fn turns(plan: &MemoryPlan) -> BTreeMap<BufferId, BufferId> {
    let mut first = BTreeMap::new();
    plan.late.iter().map(|(buffer, late)| (*buffer, *first.entry(*late).or_insert(*buffer))).collect()
}

fn missing(buffer: BufferId) -> EvalError {
    EvalError::Malformed(format!("{buffer} has no place of its size"))
}

/// An element offset within a buffer.
fn within(buffer: BufferId, offset: i64, elements: usize) -> Result<usize, EvalError> {
    let at = usize::try_from(offset).ok().filter(|at| *at < elements);
    at.ok_or_else(|| {
        EvalError::Malformed(format!("element {offset} of {buffer} is touched, which has {elements}"))
    })
}
