//! Writes weights in groups as `gpu/groups.h` reads them.

use crate::dtype::DType;
use crate::graph::Groups;
use crate::halves::{Bf16, F16};
use crate::kernels::GroupTiles;

/// Columns of a block (`kColumns`).
const COLUMNS: usize = 16;
/// Depths of a run, and those of which a thread has the numbers (`kRun`).
const RUN: usize = 32;
const QUARTER: usize = 8;
/// Bytes of a thread's numbers, and of all of a block (`kNumberBytes`).
const PIECE: usize = 16;
const NUMBERS: usize = 1024;

/// The blocks of a matrix for elements of a type, whose columns lie one after the other.
pub(super) fn pack(groups: &Groups, dtype: DType, form: &GroupTiles) -> Vec<u8> {
    let GroupTiles { k, n, rows, bits, .. } = *form;
    let step = RUN * PIECE / bits;
    let least = |group: &[i16]| group.iter().min().copied().unwrap_or(0);
    let least = groups.integers.chunks(rows).map(least).collect();
    let writer = Writer { groups, least, dtype, form, step };
    let steps = k.div_ceil(step);
    let mut packed = Vec::new();
    for first in (0..n).step_by(COLUMNS) {
        for block in 0..steps {
            writer.numbers(first, block * step, &mut packed);
            if rows < k {
                writer.factors(first, block * step, &mut packed);
            }
        }
    }
    if rows == k {
        (0..n.next_multiple_of(COLUMNS)).for_each(|column| writer.factor(column, 0, &mut packed));
    }
    packed
}

struct Writer<'a> {
    groups: &'a Groups,
    /// The least number of each group.
    least: Vec<i16>,
    dtype: DType,
    form: &'a GroupTiles,
    /// Depths of a block.
    step: usize,
}

impl Writer<'_> {
    /// The number of an element, counted from the least of its group; zero outside.
    fn number(&self, column: usize, depth: usize) -> u8 {
        let GroupTiles { k, n, .. } = *self.form;
        if column >= n || depth >= k {
            return 0;
        }
        let own = self.groups.integers[column * k + depth] - self.least(column, depth);
        u8::try_from(own).expect("the bits are enough")
    }

    fn least(&self, column: usize, depth: usize) -> i16 {
        self.least[(column * self.form.k + depth) / self.form.rows]
    }

    /// The numbers of a block from a column and a depth on.
    fn numbers(&self, column0: usize, depth0: usize, packed: &mut Vec<u8>) {
        let start = packed.len();
        packed.resize(start + NUMBERS, 0);
        let block = &mut packed[start..];
        for column in 0..COLUMNS {
            for depth in 0..self.step {
                let number = self.number(column0 + column, depth0 + depth);
                let (run, quarter, own) = (depth / RUN, depth % RUN / QUARTER, depth % QUARTER);
                let thread = column % 8 * 4 + quarter;
                let piece = (column / 8 * 32 + thread) * PIECE + run * self.form.bits;
                if self.form.bits == 8 {
                    block[piece + own] = number;
                } else {
                    // Neighbours lie half a word apart.
                    let place = own % 2 * 4 + own / 2;
                    block[piece + place / 2] |= number << (place % 2 * 4);
                }
            }
        }
    }

    /// What the groups of a block are scaled by.
    fn factors(&self, column0: usize, depth0: usize, packed: &mut Vec<u8>) {
        for own in (0..self.step).step_by(self.form.depths_of_factor(self.step)) {
            (column0..column0 + COLUMNS).for_each(|column| self.factor(column, depth0 + own, packed));
        }
    }

    fn factor(&self, column: usize, depth: usize, packed: &mut Vec<u8>) {
        let is_inside = column < self.form.n && depth < self.form.k;
        let (scale, least) = if is_inside {
            (self.groups.scales[(column * self.form.k + depth) / self.groups.run], self.least(column, depth))
        } else {
            (0.0, 0)
        };
        if self.form.scale == 2 {
            let is_f16 = self.dtype == DType::F16;
            let half =
                if is_f16 { F16::from_f32(scale).to_le_bytes() } else { Bf16::from_f32(scale).to_le_bytes() };
            packed.extend(half);
            packed.extend(least.to_le_bytes());
        } else {
            packed.extend(scale.to_le_bytes());
            packed.extend(i32::from(least).to_le_bytes());
        }
    }
}
