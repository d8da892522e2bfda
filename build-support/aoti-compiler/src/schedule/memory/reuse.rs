//! Temporaries that can take the place of another: the kernel that writes them is the last to read the other, and reads each
//! element right before it writes the one in its place.

use super::Life;
use crate::graph::Combine;
use crate::loops::{Access, BufferId, Effect, Kernel, KernelKind, MatMul, Program, Stage, Step, Storage};
use crate::target::Target;
use std::collections::BTreeMap;

/// For each temporary that lies where another lies, that one. Their lives become one.
pub(super) fn share(
    program: &Program,
    lives: &mut BTreeMap<BufferId, Life>,
    target: &Target,
) -> BTreeMap<BufferId, BufferId> {
    let mut homes: BTreeMap<BufferId, BufferId> = BTreeMap::new();
    // On GPUs what a kernel reads and what it writes are declared to be apart.
    let Target::Cpu(_) = target else { return homes };
    Step::walk(&program.steps, &mut |step| {
        let Step::Kernel(id) = step else { return };
        for (read, written) in replaced(program, &program.kernels[*id]) {
            let home = homes.get(&read).copied().unwrap_or(read);
            let (old, new) = (lives[&home], lives[&written]);
            if old.to == new.from && !homes.contains_key(&written) {
                lives.insert(home, Life { from: old.from, to: new.to });
                lives.remove(&written);
                homes.insert(written, home);
            }
        }
    });
    homes
}

/// Temporaries that a kernel reads, each with one that it writes element by element in the same order.
fn replaced(program: &Program, kernel: &Kernel) -> Vec<(BufferId, BufferId)> {
    // Templates of convolutions compute some pixels twice.
    let KernelKind::MatMul(matmul) = &kernel.kind else { return vec![] };
    let is_temporary = |id: BufferId| program.buffers[id].storage == Storage::Temporary;
    let alike = |a: BufferId, b: BufferId| {
        let (a, b) = (&program.buffers[a], &program.buffers[b]);
        a.shape == b.shape && a.dtype == b.dtype
    };
    let mut pairs = Vec::new();
    for effect in &matmul.epilogue.effects {
        let Effect::Store { access, combine: Combine::Set, .. } = effect else { continue };
        let mut loads = matmul.epilogue.loads().map(|(load, _)| load);
        let same_place = |load: &&Access| load.coords == access.coords && load.offset == access.offset;
        let old = loads.find(|load| load.buffer != access.buffer && load.is_direct() && same_place(load));
        let Some(old) = old.filter(|_| access.is_direct()) else { continue };
        let (read, written) = (old.buffer, access.buffer);
        if is_temporary(read)
            && is_temporary(written)
            && alike(read, written)
            && is_read_there_only(matmul, old)
            && !pairs.iter().any(|(other, _)| *other == read)
        {
            pairs.push((read, written));
        }
    }
    pairs
}

/// Whether a product reads a buffer nowhere but so in its epilogue, and does not write it.
fn is_read_there_only(matmul: &MatMul, old: &Access) -> bool {
    let buffer = old.buffer;
    let rows = matmul.row_epilogue.iter().flat_map(|rows| &rows.stages);
    let elsewhere = rows.flat_map(Stage::accesses).any(|access| access.buffer == buffer);
    matmul.a.buffer != buffer
        && matmul.b.buffer != buffer
        && !elsewhere
        && matmul.epilogue.writes().all(|written| written != buffer)
        && matmul.epilogue.loads().all(|(load, _)| load.buffer != buffer || load == old)
}
