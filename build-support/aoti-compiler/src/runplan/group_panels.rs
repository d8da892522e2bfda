//! Writes weights in groups as `gemm_groups.h` reads them.

use super::pack::PANEL;
use crate::graph::Groups;

/// Bytes before the first panel: bits of a number, rows of a group, and nothing.
const HEAD: usize = 64;

/// The panels of a matrix of `k` rows and `n` columns whose columns lie one after the other.
pub(super) fn pack(groups: &Groups, [k, n, rows, bits]: [usize; 4]) -> Vec<u8> {
    let count = k / rows;
    let row_bytes = PANEL * bits / 8;
    let mut packed = Vec::with_capacity(HEAD + n.div_ceil(PANEL) * count * (PANEL * 6 + rows * row_bytes));
    let word = |number: usize| i32::try_from(number).expect("groups are small").to_le_bytes();
    packed.extend([word(bits), word(rows)].concat());
    packed.resize(HEAD, 0);
    for first in (0..n).step_by(PANEL) {
        for group in 0..count {
            let columns: Vec<Option<usize>> = (first..first + PANEL)
                .map(|column| (column < n).then_some(column * k + group * rows))
                .collect();
            let scale = |start: &Option<usize>| start.map_or(0.0, |start| groups.scales[start / groups.run]);
            let least = |start: &Option<usize>| {
                let own = start.map(|start| &groups.integers[start..start + rows]);
                own.and_then(|own| own.iter().min().copied()).unwrap_or(0)
            };
            packed.extend(columns.iter().flat_map(|start| scale(start).to_le_bytes()));
            let least: Vec<i16> = columns.iter().map(least).collect();
            packed.extend(least.iter().flat_map(|number| number.to_le_bytes()));
            for row in 0..rows {
                let number = |column: usize| {
                    let own = columns[column].map_or(least[column], |start| groups.integers[start + row]);
                    u8::try_from(own - least[column]).expect("the bits are enough")
                };
                if bits == 8 {
                    packed.extend((0..PANEL).map(number));
                } else {
                    packed.extend(
                        (0..PANEL / 2).map(|column| number(column) | number(column + PANEL / 2) << 4),
                    );
                }
            }
        }
    }
    packed
}
