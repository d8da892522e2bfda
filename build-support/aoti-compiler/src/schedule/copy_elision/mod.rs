//! Makes a temporary buffer where it is wanted: one that ends, whole, as a part of another buffer (of a stack, a
//! concatenation, an output or a state) becomes that part, and the copy goes.
//!
//! This is coalescing of copies, as register allocators know it (Chaitin, "Register Allocation and Spilling via Graph
//! Coloring", 1982), for buffers: the two may be one where nothing writes to the part between the first use of the temporary
//! buffer and the copy, nothing reads from it there what the temporary buffer has changed already, and nothing writes to it
//! afterwards for as long as the temporary buffer is used. So a state of which a program changes a row changes in place:
//! the new value begins as a copy of the old one, which as a copy of itself goes too. Runs after fusion, which decides by
//! buffers and would take kernels of different parts for dependent. Buffers that branches and loops touch stay as they are.

mod place;

use super::uses::{Uses, operands, placed_stages, takes_whole};
use crate::graph::Combine;
use crate::loops::{
    Access, Axis, Buffer, BufferId, Effect, Index, Kernel, KernelId, Program, Stage, Step, Storage, Term,
    TermId,
};
use crate::symbolic::{Expr, Ranges, SymbolKind};
use cranelift_entity::PrimaryMap;
use place::Place;
use std::collections::BTreeSet;

type Buffers = PrimaryMap<BufferId, Buffer>;

/// Makes temporary buffers in the parts of other buffers that they are copied to.
pub(super) fn elide_copies(program: &mut Program, ranges: &dyn Ranges) {
    let mut uses = Uses::of(program);
    for position in 0..program.steps.len() {
        let Step::Kernel(id) = program.steps[position] else { continue };
        while let Some(part) = parts(program, id, ranges)
            .into_iter()
            .find(|part| Place { program, ranges, uses: &uses, part, copy: position }.is_free())
        {
            part.apply(program, id, &uses, ranges);
            uses.join(part.of, part.to);
        }
    }
}

/// A temporary buffer as a part of another.
struct Part {
    of: BufferId,
    to: BufferId,
    /// For each axis of the larger buffer: the axis of the temporary one that runs along it, and where that begins.
    axes: Vec<(Option<usize>, i64)>,
    /// Elements from the beginning of the larger buffer, where the part has its elements in the same places otherwise.
    base: Option<Expr>,
    /// Whether both are stored at once; one is copied to the other otherwise.
    at_once: bool,
}

/// The parts of other buffers that a kernel fills with all of a temporary one.
fn parts(program: &Program, id: KernelId, ranges: &dyn Ranges) -> Vec<Part> {
    let mut found = Vec::new();
    for (axes, stage) in placed_stages(&program.kernels[id]) {
        for (index, effect) in stage.effects.iter().enumerate() {
            let Some((to, value)) = plain_store(effect) else { continue };
            if let Term::Load { access, guards, .. } = &stage.terms[value].term
                && guards.is_empty()
            {
                found.extend(part(program, &axes, access, to, false, ranges));
            }
            let others = stage.effects.iter().enumerate().filter(|(other, _)| *other != index);
            for (from, _) in others.filter_map(|(_, other)| plain_store(other)).filter(|(_, v)| *v == value) {
                found.extend(part(program, &axes, from, to, true, ranges));
            }
        }
    }
    found
}

fn plain_store(effect: &Effect) -> Option<(&Access, TermId)> {
    match effect {
        Effect::Store { access, value, combine: Combine::Set } => Some((access, *value)),
        Effect::Store { .. } | Effect::Accumulate { .. } => None,
    }
}

/// The part of `to` that is all of `from`, where loops over `axes` go through both.
fn part(
    program: &Program,
    axes: &[Axis],
    from: &Access,
    to: &Access,
    at_once: bool,
    ranges: &dyn Ranges,
) -> Option<Part> {
    let (small, large) = (&program.buffers[from.buffer], &program.buffers[to.buffer]);
    let fits = small.storage == Storage::Temporary
        && matches!(large.storage, Storage::Temporary | Storage::Output(_) | Storage::State(_))
        && from.buffer != to.buffer
        && small.dtype == large.dtype;
    if !fits || from.coords.len() != small.shape.len() || to.coords.len() != large.shape.len() {
        return None;
    }
    let walked = walked_axes(axes, from, small)?;
    let mut places = Vec::with_capacity(large.shape.len());
    for coord in &to.coords {
        let Index::Expr(coord) = coord else { return None };
        let along =
            walked.iter().find(|(_, axis)| coord.affine_in(axis.symbol).is_some_and(|(step, _)| step.is(1)));
        let place = match along {
            Some((own, axis)) => (Some(*own), (coord - &Expr::sym(axis.symbol)).as_int()?),
            None => (None, coord.as_int()?),
        };
        places.push(place);
    }
    // Each axis once, and none before another that it is behind: what lies side by side stays so.
    let order: Vec<usize> = places.iter().filter_map(|(own, _)| *own).collect();
    if !order.iter().copied().eq(walked.iter().map(|(own, _)| *own)) {
        return None;
    }
    let base = (&to.offset - &from.offset).simplify(ranges);
    let mut symbols = BTreeSet::new();
    base.collect_symbols(&mut symbols);
    let base = symbols.iter().all(|symbol| symbol.kind != SymbolKind::Axis).then_some(base);
    Some(Part { of: from.buffer, to: to.buffer, axes: places, base, at_once })
}

/// The loops that go through all of a buffer, by its axes of more than one element; nothing where some do not.
fn walked_axes<'a>(axes: &'a [Axis], access: &Access, buffer: &Buffer) -> Option<Vec<(usize, &'a Axis)>> {
    let mut walked: Vec<(usize, &Axis)> = Vec::new();
    for (own, (coord, size)) in access.coords.iter().zip(&buffer.shape).enumerate() {
        let Index::Expr(coord) = coord else { return None };
        if coord.is(0) && size.is(1) {
            continue;
        }
        let axis = axes.iter().find(|axis| Expr::sym(axis.symbol) == *coord && axis.extent == *size)?;
        if walked.iter().any(|(_, other)| other.symbol == axis.symbol) {
            return None;
        }
        walked.push((own, axis));
    }
    let others = axes.iter().filter(|axis| walked.iter().all(|(_, own)| own.symbol != axis.symbol));
    others.into_iter().all(|axis| axis.extent.is(1)).then_some(walked)
}

impl Part {
    /// An access of the temporary buffer, as one of the larger.
    fn access(&self, buffers: &Buffers, access: &Access, ranges: &dyn Ranges) -> Option<Access> {
        let shape = &buffers[self.to].shape;
        // An index from data is checked where it is used, even along an axis that is none of the larger buffer's.
        let is_kept = |own: usize| self.axes.iter().any(|(along, _)| *along == Some(own));
        let loses_index = access
            .coords
            .iter()
            .enumerate()
            .any(|(own, coord)| matches!(coord, Index::Term(_)) && !is_kept(own));
        if access.coords.len() != buffers[self.of].shape.len() || loses_index {
            return None;
        }
        let coords = self.axes.iter().map(|(own, begin)| match own.map(|own| &access.coords[own]) {
            None => Some(Index::Expr(Expr::int(*begin))),
            Some(Index::Expr(coord)) => Some(Index::Expr(coord + *begin)),
            Some(Index::Term(term)) => (*begin == 0).then_some(Index::Term(*term)),
        });
        let coords: Option<Vec<Index>> = coords.collect();
        Some(Access::with_shape(self.to, shape, coords?, ranges))
    }

    /// Whether every use of the temporary buffer by a kernel can be one of the larger.
    fn can_move(&self, buffers: &Buffers, kernel: &Kernel, ranges: &dyn Ranges) -> bool {
        let accesses = kernel.stages().flat_map(Stage::accesses);
        let mut own = accesses.filter(|access| access.buffer == self.of);
        !takes_whole(kernel).contains(&self.of)
            && own.all(|access| self.access(buffers, access, ranges).is_some())
            && (self.base.is_some() || operands(kernel).iter().all(|place| place.operand.buffer != self.of))
    }

    /// Makes all uses of the temporary buffer uses of the larger, and takes away what would copy it onto itself.
    fn apply(&self, program: &mut Program, copy: KernelId, uses: &Uses, ranges: &dyn Ranges) {
        for position in uses.positions(self.of) {
            let Step::Kernel(id) = program.steps[*position] else { continue };
            let (kernel, buffers) = (&mut program.kernels[id], &program.buffers);
            for stage in kernel.stages_mut() {
                if id == copy {
                    self.drop_copies(stage);
                }
                for access in stage.accesses_mut().filter(|access| access.buffer == self.of) {
                    *access =
                        self.access(buffers, access, ranges).expect("every use was found to be movable");
                }
                let kept: Vec<bool> = stage.effects.iter().map(|effect| self.keeps(stage, effect)).collect();
                let mut kept = kept.into_iter();
                stage.effects.retain(|_| kept.next() == Some(false));
            }
            for operand in kernel.kind.matrices_mut().into_iter().filter(|operand| operand.buffer == self.of)
            {
                let base = self.base.as_ref().expect("operands move by a distance");
                operand.buffer = self.to;
                operand.offset = (&operand.offset + base).simplify(ranges);
            }
        }
    }

    /// Whether an effect stores in the larger buffer what that holds already.
    fn keeps(&self, stage: &Stage, effect: &Effect) -> bool {
        matches!(effect, Effect::Store { access, .. } if access.buffer == self.to && keeps(stage, effect, access))
    }

    fn drop_copies(&self, stage: &mut Stage) {
        let Stage { terms, effects, .. } = stage;
        if self.at_once {
            effects
                .retain(|effect| !matches!(effect, Effect::Store { access, .. } if access.buffer == self.of));
            return;
        }
        effects.retain(|effect| match plain_store(effect) {
            Some((to, value)) => {
                let is_own = |access: &Access| to.buffer == self.to && access.buffer == self.of;
                !matches!(&terms[value].term, Term::Load { access, .. } if is_own(access))
            }
            None => true,
        });
    }
}

/// Whether an effect stores in an element, as the only one of its stage that stores there, what that holds already.
fn keeps(stage: &Stage, effect: &Effect, element: &Access) -> bool {
    let Effect::Store { access, value, combine: Combine::Set } = effect else { return false };
    let Term::Load { access: loaded, guards, .. } = &stage.terms[*value].term else { return false };
    loaded == element
        && guards.is_empty()
        && stage.writes().filter(|buffer| [access.buffer, element.buffer].contains(buffer)).count() == 1
}
