//! Writes weights in groups as `gemm_groups.h` reads them.

use super::pack::PANEL;
use crate::graph::Groups;

/// Bytes before the first panel: bits of a number, rows of a group, whether groups have offsets, and nothing.
const HEAD: usize = 64;
/// Bits of the word that a column has in a block of rows.
const WORD_BITS: usize = 32;

/// The panels of a matrix of `k` rows and `n` columns whose columns lie one after the other.
pub(super) fn pack(groups: &Groups, [k, n, rows, bits]: [usize; 4]) -> Vec<u8> {
    let (count, height) = (k / rows, WORD_BITS / bits);
    let blocks = rows.div_ceil(height);
    let mut packed = Vec::with_capacity(HEAD + n.div_ceil(PANEL) * count * (PANEL * 10 + blocks * PANEL * 4));
    let word = |number: usize| i32::try_from(number).expect("groups are small").to_le_bytes();
    packed.extend([word(bits), word(rows), word(usize::from(groups.offsets.is_some()))].concat());
    packed.resize(HEAD, 0);
    for first in (0..n).step_by(PANEL) {
        for group in 0..count {
            let columns: Vec<Option<usize>> = (first..first + PANEL)
                .map(|column| (column < n).then_some(column * k + group * rows))
                .collect();
            let of_run =
                |start: &Option<usize>, all: &[f32]| start.map_or(0.0, |start| all[start / groups.run]);
            let least = |start: &Option<usize>| {
                let own = start.map(|start| &groups.integers[start..start + rows]);
                own.and_then(|own| own.iter().min().copied()).unwrap_or(0)
            };
            packed.extend(columns.iter().flat_map(|start| of_run(start, &groups.scales).to_le_bytes()));
            let least: Vec<i16> = columns.iter().map(least).collect();
            packed.extend(least.iter().flat_map(|number| number.to_le_bytes()));
            if let Some(offsets) = &groups.offsets {
                packed.extend(columns.iter().flat_map(|start| of_run(start, offsets).to_le_bytes()));
            }
            for block in 0..blocks {
                let number = |column: usize, row: usize| match columns[column] {
                    Some(start) if row < rows => u8::try_from(groups.integers[start + row] - least[column])
                        .expect("the bits are enough"),
                    Some(_) | None => 0,
                };
                let byte = |column: usize, at: usize| {
                    let row = block * height + at;
                    let upper = if bits == 4 { number(column, row + 4) << 4 } else { 0 };
                    number(column, row) | upper
                };
                packed.extend((0..PANEL * 4).map(|at| byte(at / 4, at % 4)));
            }
        }
    }
    packed
}
