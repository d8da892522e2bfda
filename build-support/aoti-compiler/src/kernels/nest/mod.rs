//! Loops: how they are laid over threads and lanes. An algorithm is a file with a row of [`ALGORITHMS`].

pub(crate) mod cpu;
pub(crate) mod scatter;
mod short_rows;
pub(crate) mod simt;

use super::launch::Launches;
use super::mapping::{GpuMapping, IndexWidth};
use super::{Algorithm, Candidate, only, scratch};
use crate::loops::{Access, Kernel, Nest, Program, Stage};
use crate::symbolic::{Ranges, Symbol};
use crate::target::{GpuTarget, Target};

/// The algorithms. The first that is for given loops is taken without a record; plain loops are for all.
pub(super) static ALGORITHMS: &[&Algorithm] = &[&scatter::SCATTER, &LOOPS];

static LOOPS: Algorithm = Algorithm {
    word: "loops",
    version: 1,
    description: "plain loops",
    headers: |_| &[],
    code: super::Code::Loops(Code {
        processors: true,
        applies: |_, _, _| true,
        map: simt::map,
        fits: |mapping| matches!(mapping, GpuMapping::Teams(_)),
        launches: |program, kernel, nest, mapping| {
            let GpuMapping::Teams(teams) = mapping else { unreachable!("plain loops are mapped to teams") };
            simt::launches(program, kernel, nest, teams)
        },
    }),
};

/// Lays loops over the blocks of threads of a GPU.
type Map = fn(&Program, (&Kernel, &Nest), IndexWidth, &dyn Ranges, &GpuTarget) -> Vec<GpuMapping>;

/// What an algorithm for loops does.
pub(crate) struct Code {
    /// Whether it is for processors too.
    pub(super) processors: bool,
    /// Whether it is for these loops on this target.
    pub(super) applies: fn(&Program, &Nest, &Target) -> bool,
    /// The ways to lay loops that it is for over blocks of threads, the first of which is taken without a record; never none.
    pub(super) map: Map,
    /// Whether it is laid over blocks of threads so.
    pub(super) fits: fn(&GpuMapping) -> bool,
    /// How a device launches loops that are laid so.
    pub(super) launches: fn(&Program, &Kernel, &Nest, &GpuMapping) -> Launches,
}

/// The part of an algorithm for loops that is theirs alone.
fn code(algorithm: &Algorithm) -> &Code {
    let super::Code::Loops(code) = &algorithm.code else {
        unreachable!("an algorithm for loops computes them")
    };
    code
}

/// The ways to compute loops, the one that is taken without a record first.
pub(super) fn candidates(program: &Program, kernel: &Kernel, nest: &Nest, target: &Target) -> Vec<Candidate> {
    let own = ALGORITHMS.iter().copied().filter(|own| (code(own).applies)(program, nest, target));
    own.map(|own| only(own, scratch::rows_of(program, kernel, nest, target))).collect()
}

/// The ways to lay loops over blocks of threads.
pub(super) fn on_gpu(
    program: &Program,
    kernel: (&Kernel, &Nest),
    algorithm: &Algorithm,
    ranges: &dyn Ranges,
    (index, gpu): (IndexWidth, &GpuTarget),
) -> Vec<GpuMapping> {
    (code(algorithm).map)(program, kernel, index, ranges, gpu)
}

/// Whether loops that are computed so are laid over blocks of threads so. An algorithm for other kernels is wrong in any case.
pub(crate) fn fits(algorithm: &Algorithm, mapping: &GpuMapping) -> bool {
    !matches!(&algorithm.code, super::Code::Loops(code) if !(code.fits)(mapping))
}

/// Accesses that are contiguous along an axis.
fn contiguous(stage: &Stage, axis: Symbol) -> usize {
    stage.accesses().filter(|access| is_along(access, axis)).count()
}

/// Whether neighbours along an axis are neighbours in memory.
fn is_along(access: &Access, axis: Symbol) -> bool {
    access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1))
}
