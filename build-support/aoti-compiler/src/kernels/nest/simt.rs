//! Kernels on the threads of a GPU: how many threads share one position, which positions lie side by side, how many
//! elements one thread loads at a time, how wide indices are, where rows are kept.
//!
//! The stages of a nest run one after the other for every position; what differs is who runs them. Knows no C++.

use super::is_along;
use crate::cost::{Cost, WorkKind};
use crate::kernels::launch::{Launch, Launches, MAX_BLOCKS};
use crate::kernels::mapping::{Along, GpuMapping, IndexWidth, Rows, Teams, is_local, row_bytes};
use crate::loops::scatter::Scatter;
use crate::loops::{Access, Axis, BufferId, Effect, Kernel, KernelKind, Nest, Program, Stage, Storage};
use crate::symbolic::{Expr, NoRanges, Ranges, Symbol};
use crate::target::GpuTarget;

/// Threads of a block where nothing else decides.
const BLOCK: i64 = 256;
/// Threads side by side that make whole memory transactions.
const SIDE_BY_SIDE: i64 = 32;
/// Inner positions up to which one thread does them alone.
const ALONE: i64 = 16;
/// The same where neighbouring threads do not read side by side.
const SHORT: i64 = 4;
/// Inner positions up to which one thread does them alone where those of neighbouring threads overlap, which are so far apart.
const WINDOW: i64 = 256;
const NEAR: i64 = 8;
/// Columns that a block has a place for each of, and threads of such a block where they make whole warps. Rows that follow each other
/// are then read as one stretch of memory.
const FEW_COLUMNS: std::ops::RangeInclusive<i64> = 2..=GpuTarget::FEW_COLUMNS;
const COLUMN_THREADS: i64 = 512;
/// Rows from which on that pays for adding up what its members have.
const MANY_ROWS: i64 = 256;
/// Positions from which on there is work for every thread of a large GPU, several elements each.
const MANY: i64 = GpuTarget::MANY_POSITIONS;
/// Elements of a position from which on blocks share it: to meet takes them as long as one of them takes for some thousand elements,
/// measured on an H100.
const SHARED_ELEMENTS: i64 = 16 * 1024;
/// Rows beyond this many bytes for a block are kept in device memory.
const MAX_ROWS: i64 = 64 * 1024;
/// What an access to shared memory costs, as a part of one to device memory.
const SHARED_ACCESS: f64 = 0.25;
/// Blocks of a launch at most whose blocks have scratch in device memory.
const SCRATCH_BLOCKS: i64 = 512;
/// Shared memory that is left to what kernels declare.
const KEPT_FREE: i64 = 4 * 1024;

/// Bytes of the rows of one position at most.
fn bytes_of_rows(program: &Program, rows: &[BufferId], ranges: &dyn Ranges) -> i64 {
    size_of_rows(program, rows).interval(ranges).max
}

/// Bytes of the rows of one position.
fn size_of_rows(program: &Program, rows: &[BufferId]) -> Expr {
    let mut total = Expr::int(0);
    for id in rows {
        let buffer = &program.buffers[*id];
        if let Storage::Local { outer } = buffer.storage {
            total = &total + &row_bytes(&buffer.shape[outer..], buffer.dtype);
        }
    }
    total
}

/// The ways to lay loops over blocks of threads; the first is taken without a record.
pub(in crate::kernels) fn map(
    program: &Program,
    (kernel, nest): (&Kernel, &Nest),
    index: IndexWidth,
    ranges: &dyn Ranges,
    target: &GpuTarget,
) -> Vec<GpuMapping> {
    let rows = kernel.rows(program);
    let bytes = bytes_of_rows(program, &rows, ranges);
    let mut teams = shape(program, nest, ranges, bytes > 0);
    let own = with_registers(program, (nest, &rows), &teams, (ranges, target));
    if rows.is_empty() {
        teams = of_blocks(nest, teams, (ranges, target));
    }
    let limit = target.max_shared_bytes.min(MAX_ROWS) - KEPT_FREE;
    if bytes.checked_mul(teams.places).is_none_or(|bytes| bytes > limit) {
        teams.rows = Rows::Scratch;
    }
    // Device memory is no place for rows that fit into registers.
    let other = (own.is_none() || teams.rows == Rows::Shared).then_some(teams);
    let all = own.into_iter().chain(other);
    all.map(|teams| GpuMapping::Teams(Teams { index, ..teams })).collect()
}

/// How teams are launched, with what rows take that stay inside the kernel.
pub(in crate::kernels) fn launches(
    program: &Program,
    kernel: &Kernel,
    nest: &Nest,
    teams: &Teams,
) -> Launches {
    let rows = kernel.rows(program);
    let bytes = &size_of_rows(program, &rows) * teams.places;
    let has = |place: Rows| teams.rows == place && !rows.is_empty();
    let most = if has(Rows::Scratch) { SCRATCH_BLOCKS } else { MAX_BLOCKS };
    let blocks = &teams.units(nest) * teams.blocks;
    let launch =
        Launch { cluster: teams.blocks, ..Launch::of(&blocks, teams.per_block(), teams.threads(), most) };
    let scratch = has(Rows::Scratch).then(|| &bytes * SCRATCH_BLOCKS);
    let shared = if has(Rows::Shared) { bytes } else { Expr::int(0) };
    Launches::with_scratch(vec![Launch { shared, ..launch }], scratch)
}

/// What the loops of a kernel cost beside what a template does: accesses to device memory, and to rows in shared memory.
pub(in crate::kernels) fn cost(program: &Program, kernel: &Kernel, mapping: &GpuMapping) -> Cost {
    let (KernelKind::Nest(nest), GpuMapping::Teams(teams)) = (&kernel.kind, mapping) else {
        return Cost::default();
    };
    let price = match teams.rows {
        Rows::Registers => 0.0,
        Rows::Shared => SHARED_ACCESS,
        Rows::Scratch => 1.0,
    };
    memory_cost(program, nest, price)
}

/// What accesses cost where one to a row costs as much as this part of one to device memory.
pub(crate) fn memory_cost(program: &Program, nest: &Nest, to_row: f64) -> Cost {
    let outer = extent(&Expr::product(nest.axes.iter().map(|axis| &axis.extent)), &NoRanges) as f64;
    let of_stage = |stage: &Stage| -> f64 {
        let accesses = stage.accesses().map(|access| if is_local(program, access) { to_row } else { 1.0 });
        accesses.sum::<f64>() * stage_extent(stage, &NoRanges) as f64
    };
    Cost::of(WorkKind::Access, outer * nest.stages.iter().map(of_stage).sum::<f64>())
}

fn plain(size: i64, places: i64, along: Along, lanes: i64) -> Teams {
    Teams {
        size,
        blocks: 1,
        places,
        across: false,
        along,
        lanes,
        turned: None,
        index: IndexWidth::Wide,
        rows: Rows::Shared,
        in_order: vec![],
    }
}

fn shape(program: &Program, nest: &Nest, ranges: &dyn Ranges, has_rows: bool) -> Teams {
    let Some(last) = nest.axes.last() else {
        return if nest.stages.iter().all(|stage| stage.axes.is_empty()) || nest.serial {
            plain(1, 1, Along::Outer, 1)
        } else {
            in_team(program, nest, has_rows, 1)
        };
    };
    if nest.serial {
        return Teams { in_order: in_order(program, nest, ranges), ..plain(1, 128, Along::Inner, 1) };
    }
    let positions = extent(&Expr::product(nest.axes.iter().map(|axis| &axis.extent)), ranges);
    let inner = nest.stages.iter().map(|stage| stage_extent(stage, ranges)).max().unwrap_or(1);
    let lanes = |limit: i64| outer_lanes(program, nest, last, positions, limit);
    if nest.stages.iter().all(|stage| stage.axes.is_empty()) {
        if has_rows {
            return plain(1, BLOCK / 2, Along::Outer, 1);
        }
        if positions >= MANY
            && let Some(axis) = turned(nest)
        {
            return Teams { across: true, turned: Some(axis), ..plain(1, BLOCK, Along::Outer, 1) };
        }
        return plain(1, BLOCK, Along::Outer, lanes(8));
    }
    // Rows that a block keeps are near, whatever their order.
    let contiguous = |stage: &Stage, axis: Symbol| {
        stage.accesses().filter(|access| !is_local(program, access) && is_along(access, axis)).count()
    };
    let inner_score: usize =
        nest.stages.iter().filter_map(|stage| Some(contiguous(stage, stage.axes.last()?.symbol))).sum();
    // What is read or written once for a position, such as its several results, decides where what is for each of its elements does not.
    let [of_elements, of_positions]: [usize; 2] = [false, true].map(|is_once| {
        let own = nest.stages.iter().filter(|stage| stage.axes.is_empty() == is_once);
        own.map(|stage| contiguous(stage, last.symbol)).sum()
    });
    // Short rows are done by narrow teams of columns sooner than a warp has compared what its members have.
    let decides = of_elements == inner_score || inner < MANY_ROWS;
    let outer_score = if decides { of_elements + of_positions } else { of_elements };
    let along_columns = outer_score > inner_score;
    if along_columns
        && inner_score == 0
        && !has_rows
        && positions < MANY
        && inner >= MANY_ROWS
        && let Some(columns) = last.extent.as_int().filter(|columns| FEW_COLUMNS.contains(columns))
    {
        return Teams { across: true, ..plain(members_of_columns(columns), columns, Along::Outer, 1) };
    }
    let by_columns = along_columns && extent(&last.extent, ranges) >= 8;
    if has_rows && inner <= (if by_columns { ALONE } else { SHORT }) && positions >= MANY {
        return plain(1, BLOCK / 2, Along::Outer, 1);
    }
    let of_windows =
        positions >= MANY && inner <= WINDOW && nest.stages.iter().all(|own| is_window(own, last));
    if !has_rows
        && (inner <= ALONE || of_windows || (by_columns && inner <= 64) || (by_columns && positions >= MANY))
    {
        let lanes = if by_columns && positions >= MANY { lanes(4) } else { 1 };
        return plain(1, BLOCK / 2, Along::Outer, lanes);
    }
    if by_columns {
        let lanes = if has_rows { 1 } else { lanes(4).min(2) };
        let team = if inner <= 128 { 8 } else { 16 };
        // Few columns of much data: narrower blocks, whose threads go down the columns.
        if !has_rows && positions < SIDE_BY_SIDE * 256 && inner >= 2048 {
            return Teams { across: true, ..plain(64, 8, Along::Outer, 1) };
        }
        return Teams { across: true, ..plain(team, SIDE_BY_SIDE, Along::Outer, lanes) };
    }
    in_team(program, nest, has_rows, positions)
}

/// Members of a team for each of a few columns: a power of two that fills whole warps.
fn members_of_columns(columns: i64) -> i64 {
    let most = COLUMN_THREADS / columns;
    (1_i64 << most.ilog2()).max(SIDE_BY_SIDE)
}

/// Whether what neighbouring positions read along the inner axes overlaps or lies side by side, a few elements further each.
fn is_window(stage: &Stage, last: &Axis) -> bool {
    let Some(inner) = stage.axes.last() else { return true };
    let step = |access: &Access, axis: &Axis| access.offset.affine_in(axis.symbol)?.0.as_int();
    stage.loads().all(|(access, _)| match (step(access, last), step(access, inner)) {
        (Some(outer @ 0..=NEAR), Some(step)) => {
            inner.extent.as_int().is_some_and(|extent| outer <= step.saturating_mul(extent))
        }
        _ => false,
    })
}

/// The outer axis along which something is read that is written along the last.
fn turned(nest: &Nest) -> Option<usize> {
    let along = |access: &Access, axis: &Axis| {
        access.is_direct() && access.offset.affine_in(axis.symbol).is_some_and(|(step, _)| step.is(1))
    };
    let long = |axis: &Axis| axis.extent.as_int().is_none_or(|extent| extent >= Teams::TILE);
    let (last, others) = nest.axes.split_last()?;
    // What is the same along the last axis is read once, wherever it lies.
    let changes = |access: &&Access| access.offset.mentions(last.symbol);
    let loads: Vec<&Access> = nest
        .stages
        .iter()
        .flat_map(|stage| stage.loads().map(|(access, _)| access))
        .filter(changes)
        .collect();
    let stores_along_last = nest.stages.iter().flat_map(|stage| &stage.effects).all(|effect| match effect {
        Effect::Store { access, .. } => along(access, last),
        Effect::Accumulate { .. } => false,
    });
    let axis =
        others.iter().position(|axis| long(axis) && loads.iter().copied().any(|load| along(load, axis)))?;
    (stores_along_last && long(last)).then_some(axis)
}

/// Elements of a thread, a vector each, that take as long as what the members of a team have takes to be added up; and that it takes
/// to find the best of their positions.
const TURNS: i64 = 4;
const TURNS_TO_COMPARE: i64 = 16;

/// A team along the inner axes.
fn in_team(program: &Program, nest: &Nest, has_rows: bool, positions: i64) -> Teams {
    let few = positions < 64;
    let lanes = inner_lanes(program, nest);
    let inner = nest.stages.iter().map(|stage| stage_extent(stage, &NoRanges)).max().unwrap_or(1);
    let turns = match (few, nest.accumulators.iter().any(|own| own.op.is_arg())) {
        (true, _) => 1,
        (false, true) => TURNS_TO_COMPARE,
        (false, false) => TURNS,
    };
    let wanted = inner / lanes / turns;
    let team = team_of(wanted, if few { 1024 } else { 512 }, positions);
    let places = match team {
        0..=32 if has_rows => BLOCK / 2 / team,
        0..=32 => BLOCK / team,
        _ => 1,
    };
    plain(team, places, Along::Inner, lanes)
}

/// Bytes of rows that a thread keeps in registers at most, and those of a block: a multiprocessor then has room for other blocks.
const OWN_BYTES: i64 = 160;
const BLOCK_BYTES: i64 = 96 * 1024;

/// Teams of the members that keep the rows of a nest in registers, where these are enough.
fn with_registers(
    program: &Program,
    (nest, rows): (&Nest, &[BufferId]),
    teams: &Teams,
    (ranges, target): (&dyn Ranges, &GpuTarget),
) -> Option<Teams> {
    if teams.along != Along::Inner || !teams.is_shared() {
        return None;
    }
    let length = Teams::length_of_own_rows(program, nest)?;
    let outside = |stage: &Stage| -> Option<i64> {
        let outside: Vec<&Access> = stage.accesses().filter(|access| !is_local(program, access)).collect();
        (!outside.is_empty()).then(|| lanes_of(program, stage, outside.iter().copied()))?
    };
    // Rows of several axes are one to who keeps them.
    let inside = |stage: &Stage| -> Option<i64> {
        let last = stage.axes.last().filter(|_| stage.axes.len() > 1)?;
        stage.accesses().any(|access| is_local(program, access)).then(|| fitting(last, 8))
    };
    let lanes =
        nest.stages.iter().flat_map(|stage| [outside(stage), inside(stage)]).flatten().min().unwrap_or(1);
    let positions = extent(&Expr::product(nest.axes.iter().map(|axis| &axis.extent)), ranges);
    // Two loads of a thread are on their way at a time, where there are positions for all multiprocessors. Other stages may be
    // longer than the rows that are kept.
    let longest =
        nest.stages.iter().map(|stage| stage_extent(stage, ranges)).max().unwrap_or(length).max(length);
    let (wanted, most) = if positions < 64 { (longest / lanes, 1024) } else { (longest / lanes / 2, 512) };
    let size = team_of(wanted, most, positions);
    let own = plain(size, if size <= 32 { BLOCK / size } else { 1 }, Along::Inner, lanes);
    let own = of_blocks(nest, Teams { rows: Rows::Registers, ..own }, (ranges, target));
    let element: usize = rows.iter().map(|id| program.buffers[*id].dtype.size()).sum();
    let bytes = own.steps(length) * lanes * i64::try_from(element).ok()?;
    (length % lanes == 0 && bytes <= OWN_BYTES && bytes * own.threads() <= BLOCK_BYTES).then_some(own)
}

/// The same teams, or those of several blocks for each of few positions of much data: as many as keep the device busy.
fn of_blocks(nest: &Nest, teams: Teams, (ranges, target): (&dyn Ranges, &GpuTarget)) -> Teams {
    let positions = extent(&Expr::product(nest.axes.iter().map(|axis| &axis.extent)), ranges);
    let known = |stage: &Stage| Expr::product(stage.axes.iter().map(|axis| &axis.extent)).as_int();
    let longest = nest.stages.iter().map(known).try_fold(0, |most, own| own.map(|own| most.max(own)));
    let (longest, blocks) =
        (longest.unwrap_or(0), target.splits.near.as_ref().map_or(1, |near| near.blocks_of(positions)));
    if blocks == 1 || longest < SHARED_ELEMENTS || !teams.can_be_of_blocks(nest, false) {
        return teams;
    }
    let most = if positions * blocks <= GpuTarget::MULTIPROCESSORS { 1024 } else { 512 };
    Teams { size: team_of(longest / teams.lanes / blocks, most, positions), blocks, ..teams }
}

/// The smallest team of at least so many threads, or the largest. Where there are few positions, parts of a warp would leave the
/// rest of it idle.
fn team_of(wanted: i64, most: i64, positions: i64) -> i64 {
    let least = if positions >= MANY { 4 } else { 32 };
    let teams = [4, 8, 16, 32, 64, 128, 256, 512, 1024].into_iter().filter(|team| *team >= least);
    teams.clone().find(|team| wanted <= *team || *team == most).unwrap_or(most)
}

/// The number of values, where it is not known a large one.
fn extent(expr: &Expr, ranges: &dyn Ranges) -> i64 {
    expr.as_int().unwrap_or_else(|| expr.interval(ranges).max.clamp(1, 1 << 40))
}

fn stage_extent(stage: &Stage, ranges: &dyn Ranges) -> i64 {
    extent(&Expr::product(stage.axes.iter().map(|axis| &axis.extent)), ranges)
}

/// Lanes along the last outer axis: 16 bytes of the widest element that is contiguous along it.
fn outer_lanes(program: &Program, nest: &Nest, last: &Axis, positions: i64, limit: i64) -> i64 {
    let accesses: Vec<&Access> = nest.stages.iter().flat_map(Stage::accesses).collect();
    let lanes = whole_loads(program, accesses.iter().copied(), last.symbol);
    let fits = |lanes: i64| match last.extent.as_int() {
        Some(extent) => extent % lanes == 0 || (nest.axes.len() == 1 && extent >= 64 * lanes),
        None => nest.axes.len() == 1,
    };
    let terms: usize = nest.stages.iter().map(|stage| stage.terms.len()).sum();
    let most = if terms > 64 { 2 } else { limit };
    let most = if positions < MANY { 1 } else { most };
    [8, 4, 2].into_iter().find(|n| *n <= lanes.min(most) && fits(*n)).unwrap_or(1)
}

fn inner_lanes(program: &Program, nest: &Nest) -> i64 {
    let of_stage = |stage: &Stage| lanes_of(program, stage, stage.accesses());
    nest.stages.iter().filter_map(of_stage).min().unwrap_or(1).min(4)
}

/// Elements of the last axis of a stage that these accesses read or write at once.
fn lanes_of<'a>(program: &Program, stage: &Stage, accesses: impl Iterator<Item = &'a Access>) -> Option<i64> {
    let last = stage.axes.last()?;
    Some(fitting(last, whole_loads(program, accesses, last.symbol)))
}

/// Lanes along an axis, at most so many: rows of other sizes have every other row out of step with 16 bytes.
fn fitting(axis: &Axis, most: i64) -> i64 {
    let fits = |n: &i64| *n <= most && axis.extent.as_int().is_some_and(|extent| extent % n == 0);
    [8, 4, 2].into_iter().find(fits).unwrap_or(1)
}

/// How many elements make 16 bytes of the widest type; 1 where nothing is contiguous.
fn whole_loads<'a>(program: &Program, accesses: impl Iterator<Item = &'a Access>, axis: Symbol) -> i64 {
    let along = |access: &&Access| access.offset.affine_in(axis).is_some_and(|(step, _)| step.is(1));
    let widest = accesses.filter(along).map(|access| program.buffers[access.buffer].dtype.size()).max();
    widest.map_or(1, |size| 16 / i64::try_from(size).expect("sizes of elements are small"))
}

/// The outer axes whose positions must run in order: all but those whose positions touch different elements.
fn in_order(program: &Program, nest: &Nest, ranges: &dyn Ranges) -> Vec<usize> {
    let apart = Scatter::of(program, nest, ranges).map(|own| own.apart()).unwrap_or_default();
    (0..nest.axes.len()).filter(|axis| !apart.contains(axis)).collect()
}
