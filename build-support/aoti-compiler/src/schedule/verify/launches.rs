//! What must hold of the launches of a kernel, whatever sizes a run has.

use crate::graph::ranges_of;
use crate::kernels::conv::brought::{MOST_STEP, corners_of};
use crate::kernels::gemm::tensor_map::Window;
use crate::kernels::launch::{Launch, MapArgument};
use crate::kernels::mapping::{GpuMapping, Mapping};
use crate::loops::{KernelId, KernelKind};
use crate::schedule::Schedule;
use crate::schedule::memory::most;
use crate::symbolic::{Expr, Interval};
use crate::target::{GpuTarget, Target};

/// Blocks of a grid at most, as drivers count them.
const MOST_BLOCKS: i64 = i32::MAX as i64;
/// Axes of a map and elements of a box along one at most, as the copy engine counts them.
const MOST_AXES: usize = 5;
const MOST_OF_BOX: i64 = 256;

/// What is wrong with the launches of a kernel.
pub(super) fn check(schedule: &Schedule, id: KernelId, mapping: &Mapping) -> Vec<String> {
    let Some(launches) = schedule.launches.get(id) else { return vec!["it has no launches".to_owned()] };
    let (gpu, mapping) = match (&schedule.target, mapping) {
        (Target::Cpu(_), _) if launches.is_empty() => return vec![],
        (Target::Cpu(_), _) => return vec!["a processor launches nothing".to_owned()],
        // That its mapping is for another machine is found already.
        (Target::Gpu(_), Mapping::Cpu(_)) => return vec![],
        (Target::Gpu(gpu), Mapping::Gpu(mapping)) => (gpu, mapping),
    };
    // What ranks compute together is launched by who connects them.
    if matches!(schedule.program.kernels[id].kind, KernelKind::Extern(_)) && launches.is_empty() {
        return vec![];
    }
    let mut findings = vec![];
    let is_scatter = matches!(mapping, GpuMapping::Scatter(_));
    if launches.is_empty() || (launches.len() > 1 && !is_scatter) {
        findings.push(format!("it has {} launches", launches.len()));
    }
    let has_scratch = !schedule.choices[id].scratch.is_empty();
    if launches.iter().any(|launch| has_scratch && !launch.takes_scratch) {
        findings.push("a launch is not given its scratch".to_owned());
    }
    if !is_covered(schedule, id) {
        findings.push("its scratch does not lie in the arena".to_owned());
    }
    for launch in launches {
        findings.extend(check_launch(schedule, launch, (mapping, gpu)));
        findings.extend(launch.maps.iter().flat_map(|map| check_map(schedule, id, map)));
    }
    findings
}

/// Whether there is as much memory behind the arena's buffers as a kernel's scratch takes, as far as that is known.
fn is_covered(schedule: &Schedule, id: KernelId) -> bool {
    let ranges = ranges_of(&schedule.program.symbols);
    let memory = &schedule.memory;
    let bytes = most(&schedule.program.symbols, &schedule.choices[id].scratch.shared, &ranges);
    let rest = &(&memory.total_bytes - &memory.arena_bytes) - &bytes;
    memory.late_scratch.contains_key(&id) || rest.interval(&ranges).max >= 0
}

fn check_launch(
    schedule: &Schedule,
    launch: &Launch,
    (mapping, gpu): (&GpuMapping, &GpuTarget),
) -> Vec<String> {
    let Launch { grid, threads, producer_threads, cluster, shared, persistent, maps, .. } = launch;
    let ranges = ranges_of(&schedule.program.symbols);
    let interval = |expr: &Expr| expr.interval(&ranges);
    let mut findings = vec![];
    let Interval { min, max } = interval(grid);
    if min < 0 || max > MOST_BLOCKS {
        findings.push(format!("its grid may have {min} to {max} blocks"));
    }
    // Blocks that only copy are there in the code of some devices, beside the threads that all have.
    if *threads != mapping.threads() || *producer_threads < 0 || threads + producer_threads > gpu.max_threads
    {
        findings.push(format!("a launch has {threads} threads and {producer_threads} that copy"));
    }
    let is_whole = *cluster >= 1 && grid.modulo(&Expr::int((*cluster).max(1))).is(0);
    let is_cut = *cluster >= 1 && grid.as_int().is_none();
    if *cluster > gpu.cluster_blocks.max(1) || !(is_whole || is_cut) {
        findings.push(format!("its grid has no clusters of {cluster} blocks"));
    }
    // More is refused when a kernel is launched, so only what is sure is an error here.
    let Interval { min, .. } = interval(shared);
    if min > gpu.max_shared_bytes || (min < 0 && shared.as_int().is_some()) {
        findings.push(format!("a block has {shared} bytes of shared memory"));
    }
    if *producer_threads == 0 && (*persistent || !maps.is_empty()) {
        findings.push("nobody copies for a launch that stays or has maps".to_owned());
    }
    findings
}

fn check_map(schedule: &Schedule, id: KernelId, own: &MapArgument) -> Option<String> {
    let MapArgument { buffer, map, extents } = own;
    let is_read = schedule.program.kernels[id].reads().contains(buffer);
    let is_box = extents.iter().all(|extent| (1..=MOST_OF_BOX).contains(extent));
    let beside = match &map.window {
        Some(window) => window.steps.len(),
        None if own.is_interleaved() => extents.len() - 2,
        None => map.batches.len(),
    };
    let has_axes = map.sizes.len() <= MOST_AXES
        && map.sizes.len() == map.strides.len() + 1
        && map.sizes.len() == beside + 2
        && map.window.as_ref().is_none_or(is_window);
    (!(is_read && is_box && has_axes)).then(|| format!("its map of {buffer} is none of an operand"))
}

/// Whether the engine moves windows so.
fn is_window(window: &Window) -> bool {
    let Window { lower, upper, steps } = window;
    let axes = steps.len();
    let are_steps = steps.iter().all(|step| (1..=MOST_STEP).contains(step));
    let corners = lower.iter().chain(upper);
    let are_near = || corners.into_iter().all(|corner| corners_of(axes).contains(corner));
    lower.len() == axes && upper.len() == axes && (1..=3).contains(&axes) && are_steps && are_near()
}
