//! Temporaries that can take the place of another: the kernel that writes them is the last to read the other, and reads each
//! element right before it writes the one in its place.

use super::LiveRange;
use crate::graph::Combine;
use crate::loops::{
    Access, Axis, BufferId, Effect, Index, Kernel, KernelKind, Program, Stage, Step, Storage,
};
use crate::schedule::uses::{operands, takes_whole};
use crate::symbolic::Expr;
use crate::target::Target;
use std::collections::BTreeMap;

/// For each temporary that lies where another lies, that one. Their lives become one.
pub(super) fn share(
    program: &Program,
    live_ranges: &mut BTreeMap<BufferId, LiveRange>,
    target: &Target,
) -> BTreeMap<BufferId, BufferId> {
    let mut homes: BTreeMap<BufferId, BufferId> = BTreeMap::new();
    // On GPUs what a kernel reads and what it writes are declared to be apart.
    let Target::Cpu(_) = target else { return homes };
    Step::walk(&program.steps, &mut |step| {
        let Step::Kernel(id) = step else { return };
        for (read, written) in replaced(program, &program.kernels[*id]) {
            let home = homes.get(&read).copied().unwrap_or(read);
            // It may lie elsewhere already, if several kernels write it.
            let (old, Some(new)) = (live_ranges[&home], live_ranges.get(&written).copied()) else { continue };
            if old.to == new.from {
                live_ranges.insert(home, LiveRange { from: old.from, to: new.to });
                live_ranges.remove(&written);
                homes.insert(written, home);
            }
        }
    });
    homes
}

/// Temporaries that a kernel reads, each with one that it writes element by element in the same order.
fn replaced(program: &Program, kernel: &Kernel) -> Vec<(BufferId, BufferId)> {
    let is_temporary = |id: BufferId| program.buffers[id].storage == Storage::Temporary;
    let alike = |a: BufferId, b: BufferId| {
        let (a, b) = (&program.buffers[a], &program.buffers[b]);
        a.shape == b.shape && a.dtype == b.dtype
    };
    let mut pairs: Vec<(BufferId, BufferId)> = Vec::new();
    for stage in stages_that_replace(kernel) {
        for effect in &stage.stage.effects {
            let Effect::Store { access, combine: Combine::Set, .. } = effect else { continue };
            let mut loads = stage.stage.loads().map(|(load, _)| load);
            let same_place = |load: &&Access| load.coords == access.coords && load.offset == access.offset;
            let old = loads.find(|load| load.buffer != access.buffer && load.is_direct() && same_place(load));
            let Some(old) = old.filter(|_| access.is_direct() && stage.stores_once(access)) else { continue };
            let (read, written) = (old.buffer, access.buffer);
            if is_temporary(read)
                && is_temporary(written)
                && alike(read, written)
                && is_read_there_only(kernel, stage.stage, old)
                && is_written_once(kernel, written)
                && !pairs.iter().any(|(other, _)| *other == read)
            {
                pairs.push((read, written));
            }
        }
    }
    pairs
}

/// A stage that computes each of its positions once, one after the other.
struct Replacing<'k> {
    stage: &'k Stage,
    /// The loops around it; none where they are those of the results of a product, of which each is an element.
    axes: Vec<&'k Axis>,
}

impl Replacing<'_> {
    /// Whether no two positions store in one element.
    fn stores_once(&self, access: &Access) -> bool {
        self.axes
            .iter()
            .all(|axis| axis.extent.is(1) || access.coords.contains(&Index::Expr(Expr::sym(axis.symbol))))
    }
}

fn stages_that_replace<'k>(kernel: &'k Kernel) -> Vec<Replacing<'k>> {
    match &kernel.kind {
        KernelKind::MatMul(matmul) => vec![Replacing { stage: &matmul.epilogue, axes: vec![] }],
        KernelKind::Nest(nest) => {
            let replacing =
                |stage: &'k Stage| Replacing { stage, axes: nest.axes.iter().chain(&stage.axes).collect() };
            nest.stages.iter().map(replacing).collect()
        }
        // Templates of convolutions compute some pixels twice; the others know whole rows.
        KernelKind::Convolution(_)
        | KernelKind::Attention(_)
        | KernelKind::AxisOp(_)
        | KernelKind::Extern(_) => vec![],
    }
}

/// Whether a kernel touches a buffer nowhere but so in a stage, which does not write it.
fn is_read_there_only(kernel: &Kernel, stage: &Stage, old: &Access) -> bool {
    let buffer = old.buffer;
    let others = kernel.stages().filter(|other| !std::ptr::eq(*other, stage));
    operands(kernel).iter().all(|placed| placed.operand.buffer != buffer)
        && !takes_whole(kernel).contains(&buffer)
        && others.flat_map(Stage::accesses).all(|access| access.buffer != buffer)
        && stage.accesses().all(|access| access.buffer != buffer || access == old)
        && stage.writes().all(|written| written != buffer)
}

/// Whether no other stage of a kernel writes a buffer, which might be before the old elements are read.
fn is_written_once(kernel: &Kernel, buffer: BufferId) -> bool {
    kernel.stages().flat_map(Stage::writes).filter(|written| *written == buffer).count() == 1
}
