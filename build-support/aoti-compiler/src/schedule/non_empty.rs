//! Sizes that are not zero where two kernels have anything to compute.

use crate::loops::{Attention, Axis, Kernel, KernelClass, Nest};
use crate::symbolic::inhabited::{factors, positive};
use crate::symbolic::{Expr, Interval, Ranges, Symbol};
use std::collections::BTreeSet;

/// Ranges inside the loops of two kernels. If one of their common sizes were zero, both would be empty, and so is whatever they
/// become together: how it addresses its buffers would not matter.
pub(super) struct Inhabited<'a> {
    ranges: &'a dyn Ranges,
    sizes: BTreeSet<Symbol>,
}

impl<'a> Inhabited<'a> {
    pub(super) fn of(producer: &Kernel, consumer: &Nest, ranges: &'a dyn Ranges) -> Inhabited<'a> {
        let sizes = factors(extents(&consumer.axes)).intersection(&factors_of(producer)).copied().collect();
        Inhabited { ranges, sizes }
    }
}

impl Ranges for Inhabited<'_> {
    fn range(&self, symbol: Symbol) -> Interval {
        let range = self.ranges.range(symbol);
        if self.sizes.contains(&symbol) { positive(range).unwrap_or(range) } else { range }
    }

    fn extent(&self, symbol: Symbol) -> Option<&Expr> {
        self.ranges.extent(symbol)
    }
}

fn extents(axes: &[Axis]) -> impl Iterator<Item = &Expr> {
    axes.iter().map(|axis| &axis.extent)
}

/// The sizes without which a kernel is empty.
fn factors_of(kernel: &Kernel) -> BTreeSet<Symbol> {
    let axes: &[Axis] = match kernel.kind.class() {
        KernelClass::Loops(Nest { axes, .. }) | KernelClass::Attention(Attention { axes, .. }) => axes,
        KernelClass::Contraction { axes, .. } => axes,
        KernelClass::Whole => return BTreeSet::new(),
    };
    factors(extents(axes))
}
