//! Scatters on the threads of a GPU, where updates may meet.

use crate::dtype::DType;
use crate::graph::Combine;
use crate::kernels::mapping::{GpuMapping, IndexWidth, Meeting, Scattering};
use crate::loops::scatter::{PartOf, Scatter};
use crate::loops::{Effect, Nest, Program};
use crate::symbolic::{Expr, Ranges};

/// Updates up to which a thread for each column does them in order, as one launch costs less than several.
const FEW: i64 = 8;
/// Updates up to which each counts those before it.
const RANKED: i64 = 4096;
/// Sums that a block has of its own at most, and updates from which on it pays.
const BINS: i64 = 4096;
const MANY: i64 = 1 << 12;
/// Columns up to which it costs less to add each of them by itself than to sort updates, and elements up to which it does in
/// any case, as that takes fewer launches.
const NARROW_ROWS: i64 = 4;
const FEW_ELEMENTS: i64 = 1 << 20;
/// What 32-bit words count to, with one to spare.
const NARROW: i64 = (1 << 32) - 2;

/// How a scatter is laid over threads; not at all where a few updates are done in order, or it is none.
pub(super) fn map(
    program: &Program,
    nest: &Nest,
    index: IndexWidth,
    ranges: &dyn Ranges,
) -> Option<GpuMapping> {
    let own = Scatter::of(program, nest, ranges).filter(|_| nest.serial)?;
    let most = |size: &Expr| size.interval(ranges).max;
    let (updates, slots) = (most(&own.count(nest)), most(&own.slots()));
    let by = meeting(&own, updates, slots, most(&own.width(nest)));
    let in_order = matches!(by, Meeting::Last | Meeting::Ranked | Meeting::Sorted) && updates <= FEW;
    let words = if updates.max(slots) <= NARROW { IndexWidth::Narrow } else { IndexWidth::Wide };
    let lanes = match by {
        Meeting::Atomics | Meeting::Bins(_) | Meeting::Fixed => 1,
        Meeting::Last | Meeting::Ranked | Meeting::Sorted => lanes(nest, &own),
    };
    (!in_order).then_some(GpuMapping::Scatter(Scattering { by, lanes, words, index }))
}

fn meeting(own: &Scatter, updates: i64, slots: i64, columns: i64) -> Meeting {
    let is_exact = match own.combine {
        Combine::Set => return Meeting::Last,
        // Sums and products of floating-point numbers depend on their order.
        Combine::Add | Combine::Mul => !own.dtype.is_float(),
        Combine::Max | Combine::Min => true,
    };
    let has_bins = own.combine == Combine::Add
        && own.columns.is_empty()
        && matches!(own.dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64);
    let may_be_fixed = own.combine == Combine::Add && own.dtype.compute() == DType::F32;
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
    let start = access.offset.substitute(&at_zero, &crate::symbolic::NoRanges);
    let mut strides = vec![start, nest.axes[*last].extent.clone()];
    strides.extend(others.iter().copied().chain(axes).filter_map(step));
    strides.extend(access.indirect.iter().map(|(_, stride)| stride.clone()));
    let is_whole =
        |lanes: &i64| strides.iter().all(|stride| stride.as_int().is_some_and(|stride| stride % lanes == 0));
    let most = 16 / i64::try_from(own.dtype.size()).expect("elements are small");
    let along = step(*last).is_some_and(|step| step.is(1));
    [8, 4, 2].into_iter().find(|lanes| *lanes <= most && along && is_whole(lanes)).unwrap_or(1)
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
    }
}
