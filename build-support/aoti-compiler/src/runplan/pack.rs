//! Rewrites weights into the panels that the contraction kernels read.
//!
//! The twin of `include/aoti/gemm.h` and `include/aoti/conv.h`: [`PANEL_BYTES`] and [`CONV_ROWS`] are their `kPanelBytes` and
//! `kConvRows`, equal for every CPU level because one blob serves them all. Pure functions from bytes to bytes; knows
//! nothing of graphs, blobs or generated text.

use crate::constants;
use crate::halves::{Bf16, F16};
use std::fmt;

/// Bytes of a row of a panel of a packed matrix, `kPanelBytes` of `tile.h`.
pub const PANEL_BYTES: usize = constants::PANEL_BYTES as usize;
/// Its columns where numbers are f32.
pub const PANEL: usize = PANEL_BYTES / 4;
/// Output channels of a panel of packed convolution weights, `kConvRows` of `tile.h`.
pub const CONV_ROWS: usize = constants::CONV_ROWS as usize;

/// How weights are stored; packed ones are f64 where they were, else f32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Storage {
    /// IEEE 754 binary64, of products alone.
    F64,
    /// IEEE 754 binary32.
    F32,
    /// IEEE 754 binary16.
    F16,
    /// bfloat16.
    Bf16,
    /// Integers of so many bytes, of which one byte says all.
    Integers(usize),
}

/// Why weights cannot be packed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum PackError {
    /// An element lies outside the bytes given.
    OutOfBounds {
        /// Bytes given.
        bytes: usize,
        /// Index of the element.
        element: usize,
    },
    /// The packed size overflows.
    TooLarge,
    /// Channels are not a multiple of the groups.
    Groups {
        /// Channels to split.
        channels: usize,
        /// Groups.
        groups: usize,
    },
}

impl fmt::Display for PackError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PackError::OutOfBounds { bytes, element } => {
                write!(f, "weights of {bytes} bytes do not hold element {element}")
            }
            PackError::TooLarge => f.write_str("packed weights are too large"),
            PackError::Groups { channels, groups } => {
                write!(f, "{channels} channels cannot be split into {groups} groups")
            }
        }
    }
}

impl std::error::Error for PackError {}

/// A strided little-endian matrix in bytes. Offset and strides count elements.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// The storage that the matrix lies in.
    pub bytes: &'a [u8],
    /// Type of an element.
    pub storage: Storage,
    /// Element (0, 0).
    pub offset: usize,
    /// Elements from a row to the next.
    pub row_stride: usize,
    /// Elements from a column to the next.
    pub col_stride: usize,
}

impl Source<'_> {
    fn index(&self, row: usize, col: usize) -> Option<usize> {
        row.checked_mul(self.row_stride)?
            .checked_add(col.checked_mul(self.col_stride)?)?
            .checked_add(self.offset)
    }

    /// Checks that all of a `rows` x `cols` matrix lies inside the bytes; after that, `value` cannot fail.
    fn check(&self, rows: usize, cols: usize) -> Result<(), PackError> {
        if rows == 0 || cols == 0 {
            return Ok(());
        }
        let element = self.index(rows - 1, cols - 1).ok_or(PackError::TooLarge)?;
        let size = match self.storage {
            Storage::F64 => 8,
            Storage::F32 => 4,
            Storage::F16 | Storage::Bf16 => 2,
            Storage::Integers(size) => size,
        };
        let end = element.checked_add(1).and_then(|n| n.checked_mul(size)).ok_or(PackError::TooLarge)?;
        if end > self.bytes.len() {
            return Err(PackError::OutOfBounds { bytes: self.bytes.len(), element });
        }
        Ok(())
    }

    /// An element of `N` bytes.
    fn bytes<const N: usize>(&self, row: usize, col: usize) -> [u8; N] {
        let at = self.offset + row * self.row_stride + col * self.col_stride;
        std::array::from_fn(|k| self.bytes[N * at + k])
    }

    fn value(&self, row: usize, col: usize) -> f32 {
        match self.storage {
            Storage::F64 => f64::from_le_bytes(self.bytes(row, col)) as f32,
            Storage::F32 => f32::from_le_bytes(self.bytes(row, col)),
            Storage::F16 => F16::from_le_bytes(self.bytes(row, col)).to_f32(),
            Storage::Bf16 => Bf16::from_le_bytes(self.bytes(row, col)).to_f32(),
            Storage::Integers(_) => f32::from(self.low_byte(row, col).cast_signed()),
        }
    }

    /// The lowest byte of an element.
    fn low_byte(&self, row: usize, col: usize) -> u8 {
        let size = match self.storage {
            Storage::F64 => 8,
            Storage::F32 => 4,
            Storage::F16 | Storage::Bf16 => 2,
            Storage::Integers(size) => size,
        };
        self.bytes[(self.offset + row * self.row_stride + col * self.col_stride) * size]
    }
}

/// Bytes of a `k` x `n` matrix of numbers of `size` bytes in panels of so many columns, `None` if that overflows.
fn panel_bytes(k: usize, n: usize, size: usize, columns: usize) -> Option<usize> {
    n.div_ceil(columns).checked_mul(k)?.checked_mul(columns * size)
}

/// Bytes of a packed `k` x `n` matrix of numbers of `size` bytes, `None` if that overflows.
pub fn packed_product_bytes(k: usize, n: usize, size: usize) -> Option<usize> {
    panel_bytes(k, n, size, PANEL_BYTES / size)
}

/// Packs B of `A[m, k] * B[k, n]` for `gemm_packed`: `[ceil(n / columns)][k][columns]` numbers, `columns` being what
/// [`PANEL_BYTES`] hold; those past `n` are zero.
///
/// A `Linear` weight of shape `[n, k]` is the source with `row_stride: 1, col_stride: k`.
pub fn pack_product(b: &Source<'_>, k: usize, n: usize) -> Result<Vec<u8>, PackError> {
    b.check(k, n)?;
    match b.storage {
        Storage::F64 => pack_columns(k, n, |row, col| b.bytes::<8>(row, col)),
        Storage::F32 | Storage::F16 | Storage::Bf16 | Storage::Integers(_) => {
            pack_columns(k, n, |row, col| b.value(row, col).to_le_bytes())
        }
    }
}

/// Packs B of numbers from -128 to 127 for `gemm_packed` in words: `[ceil(n / PANEL)][k / 4][PANEL]` words of four rows, numbers
/// past `n` zero. `k` is a multiple of four.
pub fn pack_product_words(b: &Source<'_>, k: usize, n: usize) -> Result<Vec<u8>, PackError> {
    b.check(k, n)?;
    pack_panels(k / 4, n, PANEL, |row, col| std::array::from_fn::<u8, 4, _>(|i| b.low_byte(4 * row + i, col)))
}

/// The same of convolution weights for `conv_pixels`, of each group by itself: as [`pack_tap_panels`], four channels of a tap in
/// a word.
pub fn pack_tap_words(
    w: &Source<'_>,
    groups: usize,
    [channels, in_channels, taps]: [usize; 3],
) -> Result<Vec<u8>, PackError> {
    pack_by_taps(w, groups, [channels, in_channels, taps], |k, own, at| {
        pack_columns(k / 4, own, |row, col| {
            std::array::from_fn::<u8, 4, _>(|i| {
                let (channel, element) = at(4 * row + i, col);
                w.low_byte(channel, element)
            })
        })
    })
}

/// Packs B of a half type or of signed bytes for `gemm_packed`, elements as they are: `[ceil(n / PANEL)][k][PANEL]`, those past
/// `n` zero.
pub fn pack_narrow(b: &Source<'_>, k: usize, n: usize) -> Result<Vec<u8>, PackError> {
    b.check(k, n)?;
    match b.storage {
        Storage::F16 | Storage::Bf16 => pack_panels(k, n, PANEL, |row, col| b.bytes::<2>(row, col)),
        Storage::F32 | Storage::F64 | Storage::Integers(_) => {
            pack_panels(k, n, PANEL, |row, col| [b.low_byte(row, col)])
        }
    }
}

/// Packs convolution weights for `conv_pixels`: for each group `[ceil(channels / PANEL)][taps][in_channels][PANEL]` f32 of
/// its own channels, those past the last zero.
///
/// The source is the model's weight `[channels][in_channels * taps]`.
pub fn pack_tap_panels(
    w: &Source<'_>,
    groups: usize,
    [channels, in_channels, taps]: [usize; 3],
) -> Result<Vec<u8>, PackError> {
    pack_by_taps(w, groups, [channels, in_channels, taps], |k, own, at| {
        pack_columns(k, own, |row, col| {
            let (channel, element) = at(row, col);
            w.value(channel, element).to_le_bytes()
        })
    })
}

/// The panels of each group's weights, with taps outside of channels: `pack(k, own, at)` of a depth, a group's channels, and where in
/// the source the element of a row and a column of the group is.
fn pack_by_taps(
    w: &Source<'_>,
    groups: usize,
    [channels, in_channels, taps]: [usize; 3],
    pack: impl Fn(usize, usize, &dyn Fn(usize, usize) -> (usize, usize)) -> Result<Vec<u8>, PackError>,
) -> Result<Vec<u8>, PackError> {
    let k = in_channels.checked_mul(taps).ok_or(PackError::TooLarge)?;
    w.check(channels, k)?;
    let own = channels / groups.max(1);
    let mut packed = Vec::new();
    for group in 0..groups {
        let at = |row: usize, col: usize| (group * own + col, row % in_channels * taps + row / in_channels);
        packed.extend(pack(k, own, &at)?);
    }
    Ok(packed)
}

/// The panels of a `k` x `n` matrix, whose elements are given by `value(row, col)` as their bytes.
fn pack_columns<const SIZE: usize>(
    k: usize,
    n: usize,
    value: impl Fn(usize, usize) -> [u8; SIZE],
) -> Result<Vec<u8>, PackError> {
    pack_panels(k, n, PANEL_BYTES / SIZE, value)
}

/// The same in panels of so many columns.
fn pack_panels<const SIZE: usize>(
    k: usize,
    n: usize,
    columns: usize,
    value: impl Fn(usize, usize) -> [u8; SIZE],
) -> Result<Vec<u8>, PackError> {
    let mut packed = Vec::with_capacity(panel_bytes(k, n, SIZE, columns).ok_or(PackError::TooLarge)?);
    for panel in (0..n).step_by(columns) {
        for row in 0..k {
            for col in panel..panel + columns {
                packed.extend_from_slice(&if col < n { value(row, col) } else { [0; SIZE] });
            }
        }
    }
    Ok(packed)
}

/// Bytes of packed convolution weights of `channels` rows of `k`, `None` if that overflows.
pub fn packed_conv_bytes(groups: usize, channels: usize, k: usize) -> Option<usize> {
    let rows = channels.checked_div(groups)?.div_ceil(CONV_ROWS);
    groups.checked_mul(rows)?.checked_mul(k)?.checked_mul(CONV_ROWS * 4)
}

/// Packs convolution weights for `conv`: `[groups][ceil(channels / groups / CONV_ROWS)][k][CONV_ROWS]` f32, rows past the
/// group's last channel zero.
///
/// The source is the model's weight `[channels][k]`, `k` being input channels per group times kernel taps.
pub fn pack_conv(w: &Source<'_>, groups: usize, channels: usize, k: usize) -> Result<Vec<u8>, PackError> {
    if groups == 0 || !channels.is_multiple_of(groups) {
        return Err(PackError::Groups { channels, groups });
    }
    w.check(channels, k)?;
    let per_group = channels / groups;
    pack_groups(groups, per_group, k, |group, row, col| w.value(group * per_group + row, col))
}

/// Packs transposed convolution weights for `conv_transposed_products`: those of the 1x1 convolution to `rows` =
/// output channels per group times kernel taps, in the layout of [`pack_conv`].
///
/// The source is the model's weight `[in_channels][rows]`; `k` of the packed weights is input channels per group.
pub fn pack_conv_transposed(
    w: &Source<'_>,
    groups: usize,
    in_channels: usize,
    rows: usize,
) -> Result<Vec<u8>, PackError> {
    if groups == 0 || !in_channels.is_multiple_of(groups) {
        return Err(PackError::Groups { channels: in_channels, groups });
    }
    w.check(in_channels, rows)?;
    let k = in_channels / groups;
    pack_groups(groups, rows, k, |group, row, col| w.value(group * k + col, row))
}

/// Weights `[channels][in_channels][taps]` as `[channels][taps][in_channels]`, elements of `width` bytes as they are.
pub fn pack_by_tap(
    bytes: &[u8],
    width: usize,
    [channels, in_channels, taps]: [usize; 3],
) -> Result<Vec<u8>, PackError> {
    let row = in_channels.checked_mul(taps).and_then(|count| count.checked_mul(width));
    let all = row.and_then(|row| row.checked_mul(channels)).ok_or(PackError::TooLarge)?;
    if all > bytes.len() {
        return Err(PackError::OutOfBounds { bytes: bytes.len(), element: all / width.max(1) });
    }
    let mut packed = Vec::with_capacity(all);
    for row in bytes[..all].chunks_exact(row.unwrap_or(0).max(1)) {
        for tap in 0..taps {
            for channel in 0..in_channels {
                packed.extend_from_slice(&row[(channel * taps + tap) * width..][..width]);
            }
        }
    }
    Ok(packed)
}

/// The panels of `groups` matrices of `rows` x `k`, given by `value(group, row, col)`.
fn pack_groups(
    groups: usize,
    rows: usize,
    k: usize,
    value: impl Fn(usize, usize, usize) -> f32,
) -> Result<Vec<u8>, PackError> {
    let channels = groups.checked_mul(rows).ok_or(PackError::TooLarge)?;
    let mut packed = Vec::with_capacity(packed_conv_bytes(groups, channels, k).ok_or(PackError::TooLarge)?);
    for group in 0..groups {
        for panel in (0..rows).step_by(CONV_ROWS) {
            for col in 0..k {
                for row in panel..panel + CONV_ROWS {
                    let x = if row < rows { value(group, row, col) } else { 0.0 };
                    packed.extend_from_slice(&x.to_le_bytes());
                }
            }
        }
    }
    Ok(packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(bytes: &[u8]) -> Vec<f32> {
        bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
    }

    fn numbers(n: usize) -> Vec<u8> {
        (0..n).flat_map(|i| (i as f32 + 1.0).to_le_bytes()).collect()
    }

    fn rows(bytes: &[u8], storage: Storage, cols: usize) -> Source<'_> {
        Source { bytes, storage, offset: 0, row_stride: cols, col_stride: 1 }
    }

    #[test]
    fn panels_hold_consecutive_columns_of_each_row() {
        let bytes = numbers(3 * 40);
        let packed = floats(&pack_product(&rows(&bytes, Storage::F32, 40), 3, 40).unwrap());
        assert_eq!(packed.len() * 4, packed_product_bytes(3, 40, 4).unwrap());
        assert_eq!(packed[PANEL], 41.0);
        assert_eq!(packed[3 * PANEL], 33.0);
        assert_eq!(packed[3 * PANEL + 7], 40.0);
        assert!(packed[3 * PANEL + 8..4 * PANEL].iter().all(|&x| x == 0.0));
    }

    #[test]
    fn panels_of_doubles_have_half_as_many_columns() {
        let doubles: Vec<f64> = (0..2 * 20).map(|i| f64::from(i) + 1e-12).collect();
        let bytes: Vec<u8> = doubles.iter().flat_map(|x| x.to_le_bytes()).collect();
        let source =
            Source { bytes: &bytes, storage: Storage::F64, offset: 0, row_stride: 20, col_stride: 1 };
        let packed = pack_product(&source, 2, 20).unwrap();
        assert_eq!(packed.len(), packed_product_bytes(2, 20, 8).unwrap());
        let packed: Vec<f64> =
            packed.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(packed[..16], doubles[..16]);
        assert_eq!(packed[16..32], doubles[20..36]);
        assert_eq!(packed[32..36], doubles[16..20]);
        assert!(packed[36..48].iter().all(|&x| x == 0.0));
    }

    #[test]
    fn panels_of_halves_have_the_columns_of_floats() {
        let halves: Vec<u8> = (0..2 * 40_u16).flat_map(u16::to_le_bytes).collect();
        let packed = pack_narrow(&rows(&halves, Storage::Bf16, 40), 2, 40).unwrap();
        let packed: Vec<u16> =
            packed.chunks_exact(2).map(|b| u16::from_le_bytes(b.try_into().unwrap())).collect();
        assert_eq!(packed.len(), 2 * 2 * PANEL);
        assert_eq!((packed[PANEL], packed[2 * PANEL], packed[3 * PANEL + 7]), (40, 32, 79));
        assert!(packed[3 * PANEL + 8..].iter().all(|x| *x == 0));
        let short = pack_narrow(&rows(&halves, Storage::Bf16, 40), 3, 40);
        assert!(matches!(short, Err(PackError::OutOfBounds { .. })));
    }

    #[test]
    fn the_channels_of_a_tap_lie_side_by_side() {
        // Two rows of three channels by two taps.
        let packed = floats(&pack_by_tap(&numbers(12), 4, [2, 3, 2]).unwrap());
        assert_eq!(packed, [1.0, 3.0, 5.0, 2.0, 4.0, 6.0, 7.0, 9.0, 11.0, 8.0, 10.0, 12.0]);
        assert_eq!(pack_by_tap(&[], 2, [2, 0, 9]).unwrap(), Vec::<u8>::new());
        assert!(matches!(pack_by_tap(&numbers(11), 4, [2, 3, 2]), Err(PackError::OutOfBounds { .. })));
    }

    #[test]
    fn panels_of_taps_hold_the_channels_of_one_tap_after_the_other() {
        // Two output channels of three input channels by two taps.
        let bytes = numbers(12);
        let packed = floats(&pack_tap_panels(&rows(&bytes, Storage::F32, 6), 1, [2, 3, 2]).unwrap());
        assert_eq!(packed.len(), 6 * PANEL);
        let column = |channel: usize| packed.chunks(PANEL).map(|row| row[channel]).collect::<Vec<f32>>();
        assert_eq!(column(0), [1.0, 3.0, 5.0, 2.0, 4.0, 6.0]);
        assert_eq!(column(1), [7.0, 9.0, 11.0, 8.0, 10.0, 12.0]);
        assert_eq!(column(2), [0.0; 6]);
        assert!(pack_tap_panels(&rows(&[], Storage::F32, 0), 1, [4, 0, 9]).unwrap().is_empty());
        let groups = floats(&pack_tap_panels(&rows(&bytes, Storage::F32, 6), 2, [2, 3, 2]).unwrap());
        assert_eq!(
            groups.chunks(PANEL).map(|row| row[0]).collect::<Vec<f32>>(),
            [column(0), column(1)].concat()
        );
        let short = pack_tap_panels(&rows(&bytes, Storage::F32, 6), 1, [3, 3, 2]);
        assert!(matches!(short, Err(PackError::OutOfBounds { .. })));
    }

    #[test]
    fn a_transposed_weight_packs_like_its_transpose() {
        let bytes = numbers(6);
        let linear = Source { bytes: &bytes, storage: Storage::F32, offset: 0, row_stride: 1, col_stride: 3 };
        let packed = floats(&pack_product(&linear, 3, 2).unwrap());
        assert_eq!(packed[..3], [1.0, 4.0, 0.0]);
        assert_eq!(packed[PANEL..PANEL + 3], [2.0, 5.0, 0.0]);
    }

    #[test]
    fn convolution_panels_interleave_channels_of_one_group() {
        let bytes = numbers(2 * 9 * 2);
        let packed = floats(&pack_conv(&rows(&bytes, Storage::F32, 2), 2, 18, 2).unwrap());
        assert_eq!(packed.len() * 4, packed_conv_bytes(2, 18, 2).unwrap());
        assert_eq!(packed[..CONV_ROWS], [1.0, 3.0, 5.0, 7.0, 9.0, 11.0, 13.0, 15.0]);
        assert_eq!(packed[2 * CONV_ROWS..2 * CONV_ROWS + 2], [17.0, 0.0]);
        assert_eq!(packed[4 * CONV_ROWS], 19.0);
    }

    #[test]
    fn transposed_weights_pack_like_a_convolution_to_every_tap() {
        // 2 groups of 2 input channels, 3 rows each.
        let bytes = numbers(4 * 3);
        let packed = floats(&pack_conv_transposed(&rows(&bytes, Storage::F32, 3), 2, 4, 3).unwrap());
        assert_eq!(packed.len(), 2 * 2 * CONV_ROWS);
        assert_eq!(packed[..4], [1.0, 2.0, 3.0, 0.0]);
        assert_eq!(packed[CONV_ROWS..CONV_ROWS + 4], [4.0, 5.0, 6.0, 0.0]);
        assert_eq!(packed[2 * CONV_ROWS], 7.0);
    }

    #[test]
    fn halves_widen_exactly() {
        let f16s: Vec<u8> = [0.5f32, -3.0].iter().flat_map(|&x| F16::from_f32(x).to_le_bytes()).collect();
        assert_eq!(floats(&pack_product(&rows(&f16s, Storage::F16, 2), 1, 2).unwrap())[..2], [0.5, -3.0]);
        let bf16s: Vec<u8> = [2.0f32, 1e30].iter().flat_map(|&x| Bf16::from_f32(x).to_le_bytes()).collect();
        assert_eq!(floats(&pack_product(&rows(&bf16s, Storage::Bf16, 2), 1, 2).unwrap())[0], 2.0);
    }

    #[test]
    fn sources_outside_their_bytes_are_errors() {
        let bytes = numbers(5);
        let short = pack_product(&rows(&bytes, Storage::F32, 3), 2, 3);
        assert_eq!(short, Err(PackError::OutOfBounds { bytes: 20, element: 5 }));
        let huge = Source { row_stride: usize::MAX, ..rows(&bytes, Storage::F32, 3) };
        assert_eq!(pack_product(&huge, 3, 1), Err(PackError::TooLarge));
        assert_eq!(
            pack_conv(&rows(&bytes, Storage::F32, 1), 2, 5, 1),
            Err(PackError::Groups { channels: 5, groups: 2 })
        );
        assert!(pack_product(&rows(&[], Storage::F32, 3), 0, 3).unwrap().is_empty());
    }
}
