//! Scatters on the threads of a GPU, where updates may meet.

use crate::constants;
use crate::dtype::DType;
use crate::graph::{Combine, ranges_of};
use crate::kernels::launch::{Launch, Launches, MAX_BLOCKS, at_end_of};
use crate::kernels::mapping::{GpuMapping, IndexWidth, Meeting, Scattering};
use crate::kernels::{Algorithm, Code};
use crate::loops::scatter::{PartOf, Scatter};
use crate::loops::{Effect, Nest, Program};
use crate::symbolic::{Expr, NoRanges, Ranges};
use crate::target::{GpuTarget, Target};
use std::collections::BTreeMap;

/// Updates up to which a thread for each column does them in order, as one launch costs less than several.
const FEW: i64 = 8;
/// Updates up to which each counts those before it.
const RANKED: i64 = 4096;
/// Sums that a block has of its own at most, and updates from which on it pays.
const BINS: i64 = 4096;
const MANY: i64 = 1 << 12;
/// Updates and destinations up to which a block adds up a column of them by itself (`kOwnUpdates` of each thread), and columns up to
/// which all blocks run at a time.
const OWN_UPDATES: i64 = constants::OWN_UPDATES * Scattering::COLUMN_THREADS;
const OWN_COLUMNS: i64 = 128;
/// Bytes of a sum of fixed point and its exponent.
const FIXED_BYTES: i64 = 12;
/// Shared memory that is left to what kernels declare.
const KEPT_FREE: i64 = 1024;
/// Columns up to which it costs less to add each of them by itself than to sort updates, and elements up to which it does in
/// any case, as that takes fewer launches.
const NARROW_ROWS: i64 = 4;
const FEW_ELEMENTS: i64 = 1 << 20;
/// Updates that a block ranks at a time (`kRanked`), and that a block sorts at a time (`kSortTile`).
const RANKED_AT_ONCE: i64 = constants::RANKED;
const SORT_TILE: i64 = constants::SORT_TILE;
/// Bits of a digit that updates are sorted by: more where that saves a pass.
const DIGIT_BITS: [i64; 2] = [8, 10];
/// Neighbouring updates that one thread adds up: fewer where there are few threads.
const LONG_PIECE: i64 = 32;
const SHORT_PIECE: i64 = 8;
/// Threads from which on pieces are long.
const MANY_THREADS: i64 = 1 << 14;
/// Blocks of a launch that have sums of their own.
const BIN_BLOCKS: i64 = 256;
/// What 32-bit words count to, with one to spare.
const NARROW: i64 = (1 << 32) - 2;

pub(super) static SCATTER: Algorithm = Algorithm {
    word: "scatter",
    version: 1,
    description: "scatter over all threads",
    headers: |_| &[],
    code: Code::Loops(super::Code {
        processors: false,
        applies,
        map: |program, (_, nest), index, ranges, target| vec![map(program, nest, index, (ranges, target))],
        fits: |mapping| matches!(mapping, GpuMapping::Scatter(_)),
        launches: |program, _, nest, mapping| {
            let GpuMapping::Scatter(own) = mapping else { unreachable!("it is mapped as a scatter") };
            Plan::new(program, nest, own).launches()
        },
    }),
};

/// Whether the updates of a nest may meet, and are too many to be done in order.
fn applies(program: &Program, nest: &Nest, target: &Target) -> bool {
    let Target::Gpu(target) = target else { return false };
    let ranges = ranges_of(&program.symbols);
    nest.serial
        && Scatter::of(program, nest, &ranges).is_some_and(|own| {
            let (by, updates, _) = meeting(&own, nest, &ranges, target);
            let is_ordered = matches!(by, Meeting::Last | Meeting::Ranked | Meeting::Sorted);
            !(is_ordered && updates <= FEW)
        })
}

/// How a scatter is laid over threads.
fn map(
    program: &Program,
    nest: &Nest,
    index: IndexWidth,
    (ranges, target): (&dyn Ranges, &GpuTarget),
) -> GpuMapping {
    let Some(own) = Scatter::of(program, nest, ranges) else { unreachable!("it is for scatters alone") };
    let (by, updates, slots) = meeting(&own, nest, ranges, target);
    let words = if updates.max(slots) <= NARROW { IndexWidth::Narrow } else { IndexWidth::Wide };
    let lanes = match by {
        Meeting::Atomics | Meeting::Bins(_) | Meeting::Fixed | Meeting::Columns => 1,
        Meeting::Last | Meeting::Ranked | Meeting::Sorted => lanes(nest, &own),
    };
    GpuMapping::Scatter(Scattering { by, lanes, words, index })
}

/// Whether sums may be those of integers of fixed point.
fn may_be_fixed(own: &Scatter) -> bool {
    own.combine == Combine::Add && own.dtype.compute() == DType::F32
}

/// Whether blocks have room for the sums of a column each, and all of them together are soon through.
fn has_own_columns(own: &Scatter, [updates, slots, columns]: [i64; 3], target: &GpuTarget) -> bool {
    let is_small = updates > FEW && updates <= OWN_UPDATES && slots <= OWN_UPDATES && columns <= OWN_COLUMNS;
    may_be_fixed(own) && is_small && slots * FIXED_BYTES + KEPT_FREE <= target.max_shared_bytes
}

/// What becomes of updates that meet, with how many updates and destinations there are at most.
fn meeting(own: &Scatter, nest: &Nest, ranges: &dyn Ranges, target: &GpuTarget) -> (Meeting, i64, i64) {
    let most = |size: &Expr| size.interval(ranges).max;
    let (updates, slots, columns) = (most(&own.count(nest)), most(&own.slots()), most(&own.width(nest)));
    let by = if has_own_columns(own, [updates, slots, columns], target) {
        Meeting::Columns
    } else {
        meeting_of(own, updates, slots, columns)
    };
    (by, updates, slots)
}

fn meeting_of(own: &Scatter, updates: i64, slots: i64, columns: i64) -> Meeting {
    let is_exact = match own.combine {
        Combine::Set => return Meeting::Last,
        // Sums and products of floating-point numbers depend on their order.
        Combine::Add | Combine::Mul => !own.dtype.is_float(),
        Combine::Max | Combine::Min => true,
    };
    let has_bins = own.combine == Combine::Add
        && own.columns.is_empty()
        && matches!(own.dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64);
    let may_be_fixed = may_be_fixed(own);
    let is_cheap = columns <= NARROW_ROWS || updates.saturating_mul(columns) <= FEW_ELEMENTS;
    match (is_exact, has_bins) {
        (true, true) if slots <= BINS && updates >= MANY => Meeting::Bins(slots),
        (true, _) => Meeting::Atomics,
        (false, _) if updates <= RANKED => Meeting::Ranked,
        (false, _) if may_be_fixed && is_cheap => Meeting::Fixed,
        (false, _) => Meeting::Sorted,
    }
}

/// Neighbouring columns of 16 bytes, where each update and its destination begin at a multiple of that.
fn lanes(nest: &Nest, own: &Scatter) -> i64 {
    let Some(Effect::Store { access, .. }) = nest.stages[0].effects.first() else { return 1 };
    let Some((last, others)) = own.columns.split_last() else { return 1 };
    let step = |axis: usize| access.offset.affine_in(nest.axes[axis].symbol).map(|(step, _)| step);
    let axes = own.parts.iter().filter_map(|part| match part.of {
        PartOf::Axis(axis) => Some(axis),
        PartOf::Index(_) | PartOf::Element => None,
    });
    let at_zero = |symbol| nest.axes.iter().any(|axis| axis.symbol == symbol).then(|| Expr::int(0));
    let start = access.offset.substitute(&at_zero, &NoRanges);
    let mut strides = vec![start, nest.axes[*last].extent.clone()];
    strides.extend(others.iter().copied().chain(axes).filter_map(step));
    strides.extend(access.indirect.iter().map(|(_, stride)| stride.clone()));
    let is_whole =
        |lanes: &i64| strides.iter().all(|stride| stride.as_int().is_some_and(|stride| stride % lanes == 0));
    let most = 16 / i64::try_from(own.dtype.size()).expect("elements are small");
    let along = step(*last).is_some_and(|step| step.is(1));
    [8, 4, 2].into_iter().find(|lanes| *lanes <= most && along && is_whole(lanes)).unwrap_or(1)
}

/// Sizes of a scatter that is laid so, and what it needs.
pub(crate) struct Plan {
    pub(crate) own: Scatter,
    mapping: Scattering,
    pub(crate) updates: Expr,
    pub(crate) slots: Expr,
    /// Vectors of columns.
    pub(crate) columns: Expr,
    /// Neighbouring updates that one thread adds up.
    pub(crate) piece: i64,
    /// Digits of the largest destination, of which all may be sorted by, and the bits of each.
    pub(crate) passes: i64,
    pub(crate) digit_bits: i64,
}

impl Plan {
    pub(crate) fn new(program: &Program, nest: &Nest, mapping: &Scattering) -> Plan {
        let ranges = ranges_of(&program.symbols);
        let Some(own) = Scatter::of(program, nest, &ranges) else {
            unreachable!("what is mapped as a scatter is one")
        };
        let (updates, slots) = (own.count(nest), own.slots());
        let columns = own.width(nest).floor_div(&Expr::int(mapping.lanes));
        let most = |expr: &Expr| expr.interval(&ranges).max;
        let threads = most(&updates).saturating_mul(most(&columns)) / LONG_PIECE;
        let piece = if threads >= MANY_THREADS { LONG_PIECE } else { SHORT_PIECE };
        let (passes, digit_bits) = passes(most(&slots));
        Plan { own, mapping: *mapping, updates, slots, columns, piece, passes, digit_bits }
    }

    /// Bytes of a word.
    pub(crate) fn word(&self) -> i64 {
        match self.mapping.words {
            IndexWidth::Narrow => 4,
            IndexWidth::Wide => 8,
        }
    }

    /// Its launches, in order.
    pub(in crate::kernels) fn launches(&self) -> Launches {
        let threads = Scattering::THREADS;
        let each = |units: &Expr| Launch::of(units, threads, threads, MAX_BLOCKS);
        let all = &self.updates * &self.columns;
        let launches = match self.mapping.by {
            Meeting::Atomics => vec![each(&all)],
            // A thread has several updates, as each block adds up what all have.
            Meeting::Bins(_) => vec![Launch::of(&self.updates, threads * 4, threads, BIN_BLOCKS)],
            Meeting::Fixed => vec![each(&all); 4],
            Meeting::Columns => {
                let launch = Launch::of(&self.columns, 1, self.mapping.threads(), MAX_BLOCKS);
                vec![Launch { shared: &self.slots * FIXED_BYTES, ..launch }]
            }
            Meeting::Last => vec![each(&self.updates), each(&self.updates), each(&all)],
            Meeting::Ranked => {
                let ranked = Launch::of(&self.updates, RANKED_AT_ONCE, threads, MAX_BLOCKS);
                let ranked = Launch { shared: &self.updates * self.word(), ..ranked };
                std::iter::once(ranked).chain(self.merged()).collect()
            }
            Meeting::Sorted => (0..self.passes).flat_map(|_| self.pass()).chain(self.merged()).collect(),
        };
        let mut launches = Launches::with_scratch(launches, self.scratch());
        if self.mapping.by == Meeting::Sorted {
            // All passes add up what they counted alike.
            let passes = usize::try_from(self.passes).expect("there are a few digits");
            (0..passes).for_each(|pass| launches.all[3 * pass + 1].entry = 1);
        }
        launches
    }

    /// The launches that sort by one digit: they count, add up and place.
    fn pass(&self) -> [Launch; 3] {
        let tiles = Launch::of(&self.updates, SORT_TILE, Scattering::THREADS, MAX_BLOCKS);
        // Without updates there is nothing to add up.
        let grid = &tiles.grid.minimum(&Expr::int(1)) * (1 << self.digit_bits);
        let rows = Launch { trigger: at_end_of(&grid), grid, ..tiles.clone() };
        [tiles.clone(), rows, tiles]
    }

    /// The launches that add up what is grouped.
    fn merged(&self) -> [Launch; 2] {
        let pieces = &self.updates.ceil_div(&Expr::int(self.piece), &NoRanges) * &self.columns;
        let threads = Scattering::THREADS;
        let each = Launch::of(&pieces, threads, threads, MAX_BLOCKS);
        [each.clone(), each]
    }

    /// Bytes of the parts of the scratch in which updates are grouped, in order.
    fn areas(&self) -> Vec<(&'static str, Expr)> {
        let list = &self.updates * self.word();
        let pieces = self.updates.ceil_div(&Expr::int(self.piece), &NoRanges);
        let element = i64::try_from(self.own.dtype.compute().size()).expect("elements are small");
        let parts = &(&(&pieces * &self.columns) * self.mapping.lanes) * (2 * element);
        let mut areas = vec![("keys0", list.clone()), ("order0", list.clone()), ("parts", parts)];
        if self.mapping.by == Meeting::Sorted {
            let tiles = self.updates.ceil_div(&Expr::int(SORT_TILE), &NoRanges);
            areas.push(("counts", &tiles * (4 << self.digit_bits)));
            areas.push(("totals", Expr::int(4 << self.digit_bits)));
            if self.passes > 1 {
                areas.extend([("keys1", list.clone()), ("order1", list)]);
            }
        }
        areas
    }

    /// Where the parts of the scratch begin, and its size.
    pub(crate) fn places(&self) -> (BTreeMap<&'static str, Expr>, Expr) {
        let (mut places, mut end) = (BTreeMap::new(), Expr::int(0));
        for (name, bytes) in self.areas() {
            places.insert(name, end.clone());
            end = &end + &(&bytes.ceil_div(&Expr::int(16), &NoRanges) * 16);
        }
        (places, end)
    }

    fn scratch(&self) -> Option<Expr> {
        match self.mapping.by {
            Meeting::Atomics | Meeting::Bins(_) | Meeting::Columns => None,
            Meeting::Fixed => Some(&(&self.slots * &self.columns) * FIXED_BYTES),
            Meeting::Last => Some(&self.slots * self.word()),
            Meeting::Ranked | Meeting::Sorted => Some(self.places().1),
        }
    }
}

/// How many digits the numbers of so many destinations have, and of how many bits.
fn passes(slots: i64) -> (i64, i64) {
    let bits = i64::from(64 - (slots.max(2) - 1).leading_zeros());
    let [few, many] = DIGIT_BITS.map(|digit| ((bits + digit - 1) / digit, digit));
    if many.0 < few.0 { many } else { few }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::headers::numbers::number;

    #[test]
    fn sizes_are_those_of_the_headers() {
        assert_eq!(Scattering::THREADS, number("gpu/scatter.h", "kKeySorters"));
        let [ranked, rankers] = ["kRanked", "kRankers"].map(|name| number("gpu/scatter.h", name));
        assert_eq!(Scattering::THREADS, ranked * rankers);
        assert!(DIGIT_BITS.iter().all(|bits| (1 << bits) % number("gpu/scatter.h", "kKeySorters") == 0));
    }

    #[test]
    fn destinations_have_as_few_digits_as_they_can() {
        let own = [0, 256, 257, 1024, 1025, 65_536, 65_537, i64::MAX].map(passes);
        assert_eq!(own, [(1, 8), (1, 8), (1, 10), (1, 10), (2, 8), (2, 8), (2, 10), (7, 10)]);
    }
}
