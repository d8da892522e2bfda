//! What templates of processors take, as far as passes over graphs have to know.

use crate::constants;
use crate::dtype::DType;
use crate::graph::{Conv, TensorType};
use crate::symbolic::Expr;

/// Kernel taps that the tiled convolution takes at most, `kMaxTaps` of `conv.h`.
pub(crate) const MAX_TAPS: i64 = constants::MAX_TAPS;
/// Kernel taps that the depthwise convolution of channels that are last takes at most, `kDepthwiseTaps` of
/// `depthwise_pixels.h`.
pub(crate) const MAX_DEPTHWISE_TAPS: i64 = constants::DEPTHWISE_TAPS;
/// What the convolution of few channels a group takes at most: rows of a window, taps of a row, and steps between windows,
/// `kGroupRows`, `kGroupTaps` and `kGroupStride` of `group_pixels.h`.
const MAX_GROUP_ROWS: i64 = constants::GROUP_ROWS;
const MAX_GROUP_TAPS: i64 = constants::GROUP_TAPS;
const MAX_GROUP_STRIDE: i64 = constants::GROUP_STRIDE;
/// Floats of the widest vectors.
pub(crate) const WIDEST_VECTOR: i64 = 16;
/// Output channels of a group that fill half of the widest vectors: with fewer, channels last are not worth it if there are groups.
pub(crate) const GROUP_CHANNELS: i64 = 8;

/// Numbers of one byte that templates multiply at once, as a word.
pub(crate) const WORD: i64 = 4;

/// So many bytes in words.
pub(crate) fn in_words(bytes: &Expr) -> Expr {
    bytes.floor_div(&Expr::int(WORD))
}

/// Whether bytes make words without rest.
pub(crate) fn are_words(bytes: &Expr) -> bool {
    &in_words(bytes) * WORD == *bytes
}

/// The groups of a convolution.
pub(crate) struct Groups {
    pub(crate) count: i64,
    /// Input and output channels of each.
    pub(crate) own: i64,
    pub(crate) each: i64,
    /// Rows of a window, and taps of a row.
    pub(crate) rows: i64,
    pub(crate) taps: i64,
    /// How windows and taps move along a row.
    pub(crate) stride: i64,
    pub(crate) dilation: i64,
}

impl Groups {
    /// Whether there is a template for so few channels a group: a part of a vector has a group, or a group some vectors, whichever
    /// level there is, and each lane finds its input channels in a vector of them.
    pub(crate) fn has_template(&self) -> bool {
        let is_few =
            self.each > 0 && WIDEST_VECTOR % self.each == 0 && (self.own == self.each || self.own == 1);
        let is_row = (1..=MAX_GROUP_TAPS).contains(&self.taps) && (self.dilation == 1 || self.taps == 1);
        let is_window =
            (1..=MAX_GROUP_ROWS).contains(&self.rows) && (1..=MAX_GROUP_STRIDE).contains(&self.stride);
        self.count > 1 && is_few && is_row && is_window
    }
}

/// Whether processors have a template for a convolution whose channels are last, with weights of this type. One with groups
/// needs them last in its input.
pub(crate) fn has_pixel_template(conv: &Conv, weight: &TensorType) -> bool {
    has_wide_template(conv, weight, false)
}

/// The same, where groups of few channels may have to fill vectors by themselves.
fn has_wide_template(conv: &Conv, weight: &TensorType, by_themselves: bool) -> bool {
    let sizes: Option<Vec<i64>> = weight.shape.iter().map(Expr::as_int).collect();
    let Some([channels, own_channels, kernel @ ..]) = sizes.as_deref() else { return false };
    let Some((row, others)) = kernel.split_last() else { return false };
    let taps: i64 = kernel.iter().product();
    let padded = conv.padding.iter().all(|(before, _)| *before >= 0);
    let is_depthwise = *own_channels == 1 && conv.groups == *channels && taps <= MAX_DEPTHWISE_TAPS;
    let has_groups = *own_channels > 1 && *channels >= GROUP_CHANNELS.saturating_mul(conv.groups);
    let groups = Groups {
        count: conv.groups,
        own: *own_channels,
        each: channels / conv.groups.max(1),
        rows: others.iter().product(),
        taps: *row,
        stride: conv.stride.last().copied().unwrap_or(1),
        dilation: conv.dilation.last().copied().unwrap_or(1),
    };
    let shares_vectors = !by_themselves && groups.has_template();
    let fits = taps <= MAX_TAPS && (conv.groups == 1 || is_depthwise || has_groups || shares_vectors);
    weight.dtype == DType::F32 && !conv.transposed && padded && fits
}

/// Whether a template may round sums that are numbers of their type, as Winograd's algorithm does.
pub(crate) fn may_round(conv: &Conv, weight: &TensorType) -> bool {
    let is_plain = conv.stride.iter().chain(&conv.dilation).all(|value| *value == 1);
    let taps = weight.shape.iter().skip(2).rev();
    // As `winograd_panels`, whose images may also be of one row of a longer axis.
    is_plain && conv.groups == 1 && taps.take(2).all(|size| size.as_int().is_none_or(|size| size == 3))
}

/// Whether a convolution has one input channel for each output channel.
pub(crate) fn is_depthwise(conv: &Conv, weight: &TensorType) -> bool {
    let [channels, own, ..] = weight.shape.as_slice() else { return false };
    conv.groups > 1 && own.is(1) && channels.is(conv.groups)
}

/// Whether there is a template for a convolution of bytes, with weights of this shape: of words of channels, or depthwise.
pub(crate) fn has_byte_template(conv: &Conv, weight: &TensorType) -> bool {
    let as_floats = TensorType { dtype: DType::F32, shape: weight.shape.clone() };
    let channels = weight.shape.get(1).and_then(Expr::as_int);
    let has_words = channels.is_some_and(|channels| channels > 0 && channels % WORD == 0);
    let is_padded = conv.padding.iter().any(|padding| *padding != (0, 0));
    // Words are read as they lie; single channels know their borders.
    ((has_words && !is_padded) || is_depthwise(conv, weight)) && has_wide_template(conv, &as_floats, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_a_template_where_their_channels_fill_vectors() {
        let fits = |channels: i64, own: i64, groups: i64, stride: i64| {
            let conv = Conv {
                stride: vec![1, stride],
                padding: vec![(1, 1); 2],
                dilation: vec![1, 1],
                groups,
                transposed: false,
                output_padding: vec![0, 0],
            };
            let shape = [channels, own, 3, 3].map(Expr::int).to_vec();
            has_pixel_template(&conv, &TensorType { dtype: DType::F32, shape })
        };
        assert!(fits(64, 64, 1, 1) && fits(64, 1, 64, 1));
        assert!(fits(64, 8, 8, 1) && fits(96, 24, 4, 1));
        assert!(fits(64, 4, 16, 2) && fits(64, 1, 4, 2), "vectors have several groups, or groups vectors");
        assert!(!fits(64, 4, 16, 3), "its windows are far apart, and most lanes of others would be empty");
        assert!(!fits(48, 4, 8, 1), "groups of six do not fill vectors");
    }
}
