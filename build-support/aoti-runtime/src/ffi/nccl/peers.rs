//! Sums over GPUs that read each other's memory (`all_reduce.cu`), in which small tensors take less time than in NCCL.
//!
//! Ranks of one process know each other's addresses; those of others on the machine open each other's memory. If one rank cannot read
//! that of another, all of them leave it to NCCL.

use super::driver::{Address, Code, Context, Driver, IpcHandle, Stream};
use crate::DType;
use crate::communicator::Reduction;
use std::{
    ffi::{CStr, c_int, c_void},
    hash::{BuildHasher, Hasher, RandomState},
    ptr,
    sync::OnceLock,
};

/// Compiled from `all_reduce.cu` by `cargo xtask regenerate`.
const CODE: &str = concat!(include_str!("all_reduce.ptx"), "\0");
const FUNCTIONS: [&CStr; 3] = [c"sum_f32", c"sum_f16", c"sum_bf16"];

/// Most ranks of a group: `kRanks` of the kernel.
const RANKS: usize = 8;
/// Threads of a block, which move 16 bytes each at a time, and what a block sums.
const THREADS: u32 = 512;
const PART_BYTES: u32 = 16 * THREADS;
/// Most blocks of a launch.
const PARTS: u32 = 64;
/// What a rank reads of the others at most. With more, NCCL's way of moving each element once takes less time.
const MOST_READ: usize = 512 << 10;

/// Where things are in a rank's memory: the parts of two turns, flags, turns, and what ranks tell each other to connect.
const FLAGS: usize = 2 * (PARTS * PART_BYTES) as usize;
const TURNS: usize = FLAGS + PARTS as usize * RANKS * size_of::<u32>();
const NOTES: usize = TURNS + PARTS as usize * size_of::<u32>();
const BYTES: usize = NOTES + (RANKS + 1) * NOTE_BYTES;
/// Of what a rank tells.
pub(super) const NOTE_BYTES: usize = 128;

/// `Group` of the kernel.
#[derive(Clone, Copy)]
#[repr(C)]
struct Group {
    memory: [Address; RANKS],
    ended: *const u32,
    rank: u32,
    ranks: u32,
    parts: u32,
    part_bytes: u32,
}

/// What a rank tells the others of its memory.
#[derive(Clone, Copy)]
struct Note {
    machine: u64,
    process: u64,
    context: u64,
    memory: Address,
    device: c_int,
    handle: IpcHandle,
}

impl Note {
    fn bytes(&self) -> [u8; NOTE_BYTES] {
        let mut bytes = [0; NOTE_BYTES];
        let numbers = [self.machine, self.process, self.context, self.memory].map(u64::to_ne_bytes);
        bytes[..32].copy_from_slice(numbers.as_flattened());
        bytes[32..36].copy_from_slice(&self.device.to_ne_bytes());
        bytes[36..100].copy_from_slice(&self.handle);
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Note> {
        let number = |at: usize| Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let device = c_int::from_ne_bytes(bytes.get(32..36)?.try_into().ok()?);
        let handle = bytes.get(36..100)?.try_into().ok()?;
        let [machine, process, context, memory] = [number(0)?, number(8)?, number(16)?, number(24)?];
        Some(Note { machine, process, context, memory, device, handle })
    }
}

/// What tells this process from all others on the machine, and the machine from others until it is started again.
fn identity() -> (u64, u64) {
    static OWN: OnceLock<u64> = OnceLock::new();
    let process = *OWN.get_or_init(|| RandomState::new().build_hasher().finish());
    let started = std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let machine = started.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (machine, process)
}

/// The memory of a group's ranks, as one of them reads it.
pub(super) struct Peers {
    driver: Driver,
    context: Context,
    code: Code<3>,
    group: Group,
    ended: *mut u32,
    /// Memory of other processes.
    opened: Vec<Address>,
}

impl Peers {
    /// The memory of one rank, in this thread's context. None where there is none, or too many ranks.
    pub(super) fn new(driver: &Driver, rank: usize, ranks: usize) -> Result<Option<Peers>, String> {
        let (Some((context, _)), 2..=RANKS) = (driver.current(), ranks) else { return Ok(None) };
        let code = CStr::from_bytes_with_nul(CODE.as_bytes()).map_err(|error| error.to_string())?;
        let code = driver.load(code, FUNCTIONS)?;
        let ended = driver.allocate_host()?;
        let mut memory = [0; RANKS];
        memory[rank] = driver.allocate(BYTES)?;
        let number = |number: usize| u32::try_from(number).map_err(|_| "too many ranks".to_owned());
        let (rank, ranks) = (number(rank)?, number(ranks)?);
        let group = Group { memory, ended, rank, ranks, parts: PARTS, part_bytes: PART_BYTES };
        Ok(Some(Peers { driver: driver.clone(), context, code, group, ended, opened: vec![] }))
    }

    fn own(&self) -> Address {
        self.group.memory[self.group.rank as usize]
    }

    /// Where the notes of all ranks come, one after the other, and where this rank's is.
    pub(super) fn notes(&self) -> (*const c_void, *mut c_void) {
        let all = self.own() + NOTES as Address;
        let own = all + (RANKS * NOTE_BYTES) as Address;
        (ptr::with_exposed_provenance(own as usize), ptr::with_exposed_provenance_mut(all as usize))
    }

    fn tell(&self, note: [u8; NOTE_BYTES]) -> Result<(), String> {
        self.driver.write(self.own() + (NOTES + RANKS * NOTE_BYTES) as Address, &note)
    }

    fn told(&self) -> Result<Vec<u8>, String> {
        let mut bytes = vec![0; self.group.ranks as usize * NOTE_BYTES];
        self.driver.read(self.own() + NOTES as Address, &mut bytes)?;
        Ok(bytes)
    }

    /// Notes where this rank's memory is.
    pub(super) fn tell_memory(&self) -> Result<(), String> {
        let (machine, process) = identity();
        let Some((context, device)) = self.driver.current() else { return Err("no context".to_owned()) };
        let (context, memory) = (context.expose_provenance() as u64, self.own());
        let handle = self.driver.ipc_handle(memory);
        self.tell(Note { machine, process, context, memory, device, handle }.bytes())
    }

    /// Opens the memory of all ranks, as they have told where it is, and notes whether that went well.
    pub(super) fn open(&mut self) -> Result<(), String> {
        let notes = self.told()?;
        let is_open = notes
            .chunks_exact(NOTE_BYTES)
            .enumerate()
            .all(|(rank, note)| rank == self.group.rank as usize || self.open_one(rank, note));
        let mut note = [0; NOTE_BYTES];
        note[0] = u8::from(is_open);
        self.tell(note)
    }

    fn open_one(&mut self, rank: usize, note: &[u8]) -> bool {
        let ((machine, process), Some(note)) = (identity(), Note::of(note)) else { return false };
        if note.machine != machine {
            return false;
        }
        if note.process == process {
            self.group.memory[rank] = note.memory;
            let context = ptr::with_exposed_provenance_mut(note.context as usize);
            let own = self.driver.current();
            return own.is_some_and(|(_, device)| self.driver.connect(device, note.device, context));
        }
        let Some(address) = self.driver.ipc_open(note.handle) else { return false };
        self.opened.push(address);
        self.group.memory[rank] = address;
        true
    }

    /// Whether all ranks have told that it went well.
    pub(super) fn all_are_open(&self) -> Result<bool, String> {
        Ok(self.told()?.chunks_exact(NOTE_BYTES).all(|note| note[0] == 1))
    }

    /// Whether a stream has done what it was given.
    pub(super) fn is_done(&self, stream: Stream) -> Result<bool, String> {
        self.driver.is_done(stream)
    }

    /// The function by which tensors of these are reduced here. All ranks decide alike.
    pub(super) fn function(&self, dtype: DType, reduction: Reduction, count: usize) -> Option<usize> {
        let read = count.checked_mul(dtype.size())?.checked_mul(self.group.ranks as usize - 1)?;
        if reduction != Reduction::Sum || read > MOST_READ || count == 0 {
            return None;
        }
        [DType::F32, DType::F16, DType::Bf16].iter().position(|own| *own == dtype)
    }

    /// Submits a sum.
    ///
    /// # Safety
    ///
    /// There are as many elements of the function's type, until the stream is done.
    pub(super) unsafe fn sum(
        &self,
        function: usize,
        dtype: DType,
        (mut input, mut output): (*const c_void, *mut c_void),
        count: usize,
        stream: Stream,
    ) -> Result<(), String> {
        let blocks = (count * dtype.size()).div_ceil(PART_BYTES as usize);
        let blocks = u32::try_from(blocks).map_err(|error| error.to_string())?;
        let (mut group, mut count) = (self.group, count as u64);
        let arguments: [*mut c_void; 4] = [
            (&raw mut group).cast(),
            (&raw mut input).cast(),
            (&raw mut output).cast(),
            (&raw mut count).cast(),
        ];
        // SAFETY: the kernel has these parameters; the ranks' memory lasts as long as the group is connected.
        unsafe { self.code.launch(function, [blocks, THREADS], stream, arguments) }
    }

    /// Lets nobody wait any more. What is running still reads the memory, so it stays.
    pub(super) fn end(self) {
        // SAFETY: the number lasts as long as this.
        unsafe { self.ended.write_volatile(1) };
        std::mem::forget(self);
    }

    /// Gives the memory back. No rank reads that of another any more.
    pub(super) fn close(self) {
        let (driver, context) = (self.driver.clone(), self.context);
        driver.within(context, move || {
            for address in &self.opened {
                // SAFETY: it was opened here.
                unsafe { self.driver.ipc_close(*address) };
            }
            // SAFETY: both were allocated here.
            unsafe { self.driver.free(self.own(), self.ended) };
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_back_as_they_were() {
        let handle = std::array::from_fn(|at| at as u8);
        let note = Note { machine: 1, process: 2, context: 3, memory: 4, device: 5, handle };
        let read = Note::of(&note.bytes()).unwrap();
        let numbers = (read.machine, read.process, read.context, read.memory, read.device, read.handle);
        assert_eq!(numbers, (1, 2, 3, 4, 5, handle));
        assert!(Note::of(&note.bytes()[..99]).is_none());
    }

    /// As the kernel lays its parameter out.
    #[test]
    fn a_group_is_as_large_as_the_kernel_has_it() {
        let parameter = format!("sum_f32_param_0[{}]", size_of::<Group>());
        assert!(CODE.contains(&parameter));
        // All that a launch has fits, and flags are in one place.
        assert!(MOST_READ <= (PARTS * PART_BYTES) as usize && FLAGS % 128 == 0);
    }
}
