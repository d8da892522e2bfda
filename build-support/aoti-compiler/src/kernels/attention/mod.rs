//! Attention: scores, softmax and the sums of values in one kernel.

pub(super) mod tiles;

use super::laid::{Laid, costing, with_grains};
use super::mapping::{Block, CpuMapping, Grain, Lanes, Split};
use super::scratch::{PANEL, aligned, round_up};
use super::{Algorithm, Code, Scratch};
use crate::cost::Item;
use crate::loops::Attention;
use crate::symbolic::Expr;
use crate::target::{CpuTarget, Target};

pub(crate) static ATTENTION: Algorithm = Algorithm {
    word: "attention",
    version: 2,
    description: "attention in one kernel",
    headers: |_| &["attention.h"],
    code: Code::Attention,
};

/// Queries of a block (`kAttentionRows` of `attention.h`).
const ROWS: i64 = 28;

/// Panels of keys and of values, the scores of a block of queries, and a copy of these: sizes of `attention.h`.
pub(super) fn scratch(own: &Attention, target: &Target) -> Scratch {
    if matches!(target, Target::Gpu(_)) {
        return Scratch::default();
    }
    let (keys, depth) = (&own.key().extent, &own.depth);
    let columns = own.axes.last().map_or(Expr::int(1), |axis| axis.extent.clone());
    let panels = &(&round_up(keys, PANEL) * depth) + &(&round_up(&columns, PANEL) * keys);
    let pitch = &(&round_up(keys, 16) + 16) + &(&round_up(depth, 16) + 16);
    let floats = &(&panels + &(&pitch * ROWS)) + PANEL;
    Scratch::of_worker(aligned(&(&floats * 4), target))
}

/// The ways to lay it over the threads of a processor, and all its work.
pub(super) fn on_processor(own: &Attention, target: &CpuTarget) -> (Vec<Laid>, Expr) {
    let columns = own.axes.last().map_or(Expr::int(1), |axis| axis.extent.clone());
    let work = &Expr::product(own.score_axes().iter().map(|axis| &axis.extent)) * &(&own.depth + &columns);
    let grain = Grain { enough: target.thread_products, unit: work.clone() };
    let (split, lanes, block) = (Split::Template, Lanes::Outer, Block::Typical);
    let all = with_grains(&CpuMapping { split, lanes, grain, block, rows: None }, &work);
    (costing(all, Item::Multiply, &work), work)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::headers::numbers::number;

    #[test]
    fn sizes_are_those_of_the_header() {
        assert_eq!(ROWS, number("attention.h", "kAttentionRows"));
    }
}
